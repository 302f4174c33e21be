
# Statements in PostGIS's words have geonn's nodes, and the rows that they have without, wherever PostgreSQL runs them: in
# scrollable cursors, COPY, materialized views and inlined functions; of temporary, foreign and generated data; from plans that
# DDL has made anew; with both extensions in schemas that are not searched; and on a hot standby.
#
# needs: postgis postgres_fdw
# rooms: sql
# check-all: every place in which PostgreSQL runs a statement

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('anywhere', allows_streaming => 1, preload => 1);

sub create_tables
{
	my ($database, $schema) = @_;

	$node->safe_psql($database, qq{
		CREATE TABLE o AS SELECT i AS id, $schema.ST_MakePoint(i * 11.3 % 360 - 180, i * 5.1 % 170 - 85)::$schema.geography(Point) AS g
			FROM generate_series(1, 200) i;
		CREATE TABLE r AS SELECT i AS id, i % 7 AS kind, $schema.ST_MakePoint(i * 7.13 % 360 - 180, i * 3.77 % 170 - 85)::$schema.geography(Point) AS g
			FROM generate_series(1, 700) i;
		ALTER TABLE o ADD PRIMARY KEY (id);
		ALTER TABLE r ADD PRIMARY KEY (id);
		ANALYZE o, r;
	});
}

# The forms, of any schema of PostGIS and relations.
sub forms
{
	my ($schema, $o, $r) = @_;
	my $distance = "o.g OPERATOR($schema.<->) r.g";
	my $within = "$schema.ST_DWithin(o.g, r.g, 300000)";

	return ("SELECT o.id, n.* FROM $o o, LATERAL (SELECT r.id AS ref, $distance AS d FROM $r r ORDER BY $distance, r.id LIMIT 3) n",
		"SELECT o.id, (SELECT r.id FROM $r r ORDER BY $distance, r.id LIMIT 1) AS ref FROM $o o",
		"SELECT o.id, r.id AS ref FROM $o o LEFT JOIN $r r ON $within",
		"SELECT o.id, 0 AS ref FROM $o o WHERE EXISTS (SELECT FROM $r r WHERE $within)",
		"SELECT o.id, 0 AS ref FROM $o o WHERE NOT EXISTS (SELECT FROM $r r WHERE $within)");
}

# What statements print on a server with the setting on, and off, in any order of lines.
sub both_ways
{
	my ($server, $database, $sql) = @_;

	return map {
		my ($status, $out, $error) = $server->psql($database, "SET geonn.enable_sql_joins = $_; BEGIN; $sql; ROLLBACK;");
		join("\n", sort(split(/\n/, $out)), $error =~ /(ERROR:.*)/)
	} qw(on off);
}

sub has_node
{
	my ($server, $database, $before, $form) = @_;

	like($server->safe_psql($database, "SET geonn.enable_sql_joins = on; BEGIN; $before; EXPLAIN $form; ROLLBACK;"),
		qr/Custom Scan \(geonn/, "a node of geonn's: $form");
}

# Each form after some statements, FORM standing for it in what is compared.
sub same_rows
{
	my ($name, $before, $use, %option) = @_;
	my ($server, $database) = ($option{server} // $node, $option{database} // 'postgres');

	foreach my $form (forms($option{schema} // 'public', $option{o} // 'o', $option{r} // 'r'))
	{
		has_node($server, $database, $before, $form) if $option{node};
		my ($on, $off) = both_ways($server, $database, "$before; " . ($use =~ s/\bFORM\b/$form/gr));

		is($on, $off, "$name: the rows are those without geonn");
		cmp_ok(length($on), '>', 0, "$name: rows or an error");
	}
}

$node->safe_psql('postgres', 'CREATE EXTENSION postgis;');
create_tables('postgres', 'public');

# ---- ways to run a statement ----

same_rows('COPY', 'SELECT', 'COPY (FORM) TO STDOUT', node => 1);
same_rows('scrollable cursor', 'SELECT', 'DECLARE c SCROLL CURSOR FOR SELECT * FROM (FORM) q ORDER BY q;
	FETCH 50 FROM c; FETCH BACKWARD 30 FROM c; FETCH ABSOLUTE 5 FROM c; FETCH LAST FROM c; FETCH BACKWARD 2 FROM c; FETCH FIRST FROM c');
same_rows('cursor that moves back', 'SELECT', 'DECLARE c SCROLL CURSOR FOR FORM; MOVE 50 FROM c; MOVE BACKWARD 30 FROM c; MOVE LAST FROM c;
	MOVE BACKWARD ALL IN c; FETCH ALL FROM c');
same_rows('cursor across a savepoint', 'SELECT', 'DECLARE c CURSOR FOR FORM; MOVE 3 FROM c; SAVEPOINT a; MOVE 3 FROM c; ROLLBACK TO a;
	DECLARE d CURSOR FOR FORM; FETCH ALL FROM d');
same_rows('FOR UPDATE', 'SELECT', 'SELECT id FROM (FORM FOR UPDATE OF o) q');
same_rows('materialized view', 'SELECT', 'CREATE MATERIALIZED VIEW kept AS FORM;
	UPDATE r SET g = (SELECT g FROM o WHERE id = 5) WHERE kind = 3; REFRESH MATERIALIZED VIEW kept; SELECT * FROM kept');
same_rows('inlined function', 'SELECT', 'CREATE FUNCTION f() RETURNS TABLE (id integer, rest text) STABLE LANGUAGE sql
	AS $$ SELECT q.id, q::text FROM (FORM) q $$; SELECT f.* FROM o JOIN f() USING (id)');

# ---- plans made anew ----

foreach my $change ('ALTER TABLE r DROP COLUMN kind', 'ALTER TABLE r ALTER COLUMN g TYPE geography', 'ALTER TABLE r DROP COLUMN g',
	'CREATE INDEX ON r USING gist (g)', 'TRUNCATE r', 'ALTER TABLE r RENAME TO renamed', 'DROP EXTENSION geonn',
	'CREATE SCHEMA elsewhere; ALTER EXTENSION geonn SET SCHEMA elsewhere')
{
	same_rows($change, 'SELECT', "SET LOCAL plan_cache_mode = force_generic_plan; PREPARE s AS FORM; EXECUTE s; $change; EXECUTE s");
}

# ---- kinds of relations ----

same_rows('temporary tables', 'CREATE TEMP TABLE temporary_o AS TABLE o; CREATE TEMP TABLE temporary_r AS TABLE r; ANALYZE temporary_o, temporary_r', 'FORM',
	o => 'temporary_o', r => 'temporary_r', node => 1);
same_rows('generated column', 'CREATE TABLE generated (id integer, x float8, y float8, g geography(Point)
	GENERATED ALWAYS AS (ST_MakePoint(x, y)::geography) STORED);
	INSERT INTO generated SELECT id, ST_X(g::geometry), ST_Y(g::geometry) FROM r; ANALYZE generated', 'FORM', r => 'generated', node => 1);

my ($host, $port) = ($node->host, $node->port);

$node->safe_psql('postgres', qq{
	CREATE EXTENSION postgres_fdw;
	CREATE SERVER itself FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres', extensions 'postgis');
	CREATE USER MAPPING FOR CURRENT_USER SERVER itself;
	CREATE FOREIGN TABLE foreign_o (id integer, g geography(Point)) SERVER itself OPTIONS (table_name 'o');
	CREATE FOREIGN TABLE foreign_r (id integer, g geography(Point)) SERVER itself OPTIONS (table_name 'r');
});
same_rows('foreign tables', 'SELECT', 'FORM', o => 'foreign_o', r => 'foreign_r', node => 1);
same_rows('foreign references', 'SELECT', 'FORM', r => 'foreign_r', node => 1);

# ---- schemas that are not searched ----

$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
$node->safe_psql('elsewhere', 'CREATE SCHEMA gis; CREATE SCHEMA nearest; CREATE EXTENSION postgis SCHEMA gis; CREATE EXTENSION geonn SCHEMA nearest');
create_tables('elsewhere', 'gis');
same_rows('other schemas', 'SELECT', 'FORM', database => 'elsewhere', schema => 'gis', node => 1);

# ---- a hot standby ----

my $standby = PostgreSQL::Test::Cluster->new('standby');

$node->backup('copy');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
is($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery()'), 't', 'the standby is one');
same_rows('hot standby', 'SELECT', 'FORM', server => $standby, node => 1);
$standby->stop;

done_testing();
