# Statements that nest, in each way that has geonn plan something while the planner is at work: planning grows by the same
# for each level, as the number of relations says that the planner looks at.
#
# needs: postgis
# rooms: plan sql

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('nested', preload => 1, conf => "autovacuum = off\nmin_parallel_table_scan_size = 0\ngeonn.enable_sql_joins = on");

$node->safe_psql('postgres', qq{
	CREATE EXTENSION postgis;
	CREATE FUNCTION neighbour_relations() RETURNS bigint LANGUAGE c AS '$ENV{GEONN_BUILD}/neighbour.so';
	CREATE TABLE p (id bigint PRIMARY KEY, lat float8, lon float8, g geography(Point));
	INSERT INTO p SELECT i, lat, lon, ST_MakePoint(lon, lat) FROM
		(SELECT i, (i * 37 % 170)::float8 - 85 + i / 1e4 AS lat, (i * 59 % 350)::float8 - 175 AS lon FROM generate_series(1, 2000) i) s;
	CREATE TABLE few AS SELECT * FROM p WHERE id <= 3;
	CREATE TABLE some_p AS SELECT id, g FROM p WHERE id <= 60;
	CREATE TYPE place AS (id bigint, g geography(Point));
	CREATE ROLE reader;
	GRANT pg_read_all_data TO reader;
	GRANT TEMP ON DATABASE postgres TO reader;
	ANALYZE;
});

# The relations that the planner looks at for this statement, after these settings.
sub relations
{
	my ($statement, $settings) = @_;
	my $out = $node->safe_psql('postgres', qq{
		LOAD '$ENV{GEONN_BUILD}/neighbour.so';
		SET statement_timeout = '120s';
		$settings;
		CREATE TEMP TABLE before AS SELECT neighbour_relations() AS relations;
		EXPLAIN $statement;
		SELECT neighbour_relations() - relations FROM before;});

	return (split(/\n/, $out))[-1];
}

# Twice the levels take about twice the planning, where doubling would take a thousand times it, and so much more than without geonn.  A statement of 20 levels would take all
# memory where ten are wrong already.
sub is_bounded
{
	my ($what, $statement_of, $settings, $most) = @_;
	my $ten = relations($statement_of->(10), $settings);
	my $without = relations($statement_of->(10), "$settings; SET geonn.enable_sql_joins = off");

	cmp_ok($ten, '<=', $most // 10 * $without, "ten levels: $what") or return;
	cmp_ok(relations($statement_of->(20), $settings), '<=', 2.5 * $ten, "twenty: $what");
}

# ---- subqueries: each level has the one below as what is searched ----

my $nearest = 'LATERAL (SELECT x.id, x.g FROM BELOW x ORDER BY x.g <-> o.g LIMIT 1) n';
my $value = '(SELECT x.id FROM BELOW x ORDER BY x.g <-> o.g, x.m LIMIT 1)';
my %forms = (
	'LATERAL' => "SELECT n.id, n.g, 0 AS m FROM p o, $nearest",
	'LATERAL in subqueries of their own' => "SELECT n.id, n.g, 0 AS m FROM p o, $nearest OFFSET 0",
	'two LATERAL' => "SELECT n.id, m.g, 0 AS m FROM p o, $nearest, LATERAL (SELECT x.g FROM p x ORDER BY x.g <-> o.g, x.id LIMIT 1) m",
	'values' => "SELECT o.id, o.g, $value AS m FROM p o",
	'DISTINCT ON' => "SELECT n.id, n.g, 0 AS m FROM (SELECT DISTINCT ON (o.id) o.id, o.g, r.id AS m FROM p o, few r
		ORDER BY o.id, o.g <-> r.g, r.id) o, $nearest",
	'WITH' => 'WITH w AS MATERIALIZED (SELECT * FROM BELOW b)
		SELECT n.id, n.g, 0 AS m FROM p o, LATERAL (SELECT x.id, x.g FROM (SELECT * FROM w) x ORDER BY x.g <-> o.g LIMIT 1) n',
	'EXISTS' => "SELECT n.id, n.g, 0 AS m FROM p o, $nearest WHERE EXISTS (SELECT FROM few r WHERE ST_DWithin(r.g, o.g, 1000))",
	'NOT EXISTS' => 'SELECT o.id, o.g, 0 AS m FROM p o WHERE NOT EXISTS (SELECT FROM BELOW x WHERE ST_DWithin(x.g, o.g, 1000))',
	'joins within a distance' => 'SELECT o.id, o.g, 0 AS m FROM p o JOIN BELOW x ON ST_DWithin(x.g, o.g, 1000) OFFSET 0',
	'UNION ALL' => "SELECT n.id, n.g, 0 AS m FROM p o, $nearest UNION ALL SELECT id, g, 0 FROM few");

# A statement of so many levels over this innermost query.
sub nested
{
	my ($text, $levels, $statement) = @_;

	$statement = $text =~ s/BELOW/($statement)/gr for 1 .. $levels;
	return $statement;
}

# Each level is an object of its own, which the text makes of THIS and BELOW.
sub create_levels
{
	my ($text, $innermost) = @_;

	$node->safe_psql('postgres', 'SET client_min_messages = warning; SET geonn.enable_sql_joins = off; DROP SCHEMA IF EXISTS s CASCADE; CREATE SCHEMA s;
		GRANT USAGE ON SCHEMA s TO reader;' . join('', map {
			my $below = $_ == 1 ? $innermost : 's.l' . ($_ - 1);

			$text =~ s/BELOW/$below/gr =~ s/THIS/s.l$_/gr
	} 1 .. 20));
}

my $innermost = 'SELECT id, g, 0::bigint AS m FROM p';

foreach my $form (sort keys %forms)
{
	is_bounded($form, sub { nested($forms{$form}, $_[0], $innermost) }, '');
	create_levels("CREATE VIEW THIS AS $forms{$form};", "($innermost)");
	is_bounded("views, $form", sub { "SELECT * FROM s.l$_[0]" }, '');
}

# ---- functions, calls and policies ----

create_levels('CREATE FUNCTION THIS() RETURNS SETOF place STABLE LANGUAGE sql AS $$ ' . ($forms{LATERAL} =~ s/, 0 AS m//r) . ' $$;
	CREATE VIEW THIS AS SELECT * FROM THIS();', '(SELECT id, g FROM p)');
is_bounded('functions that are inlined', sub { "SELECT * FROM s.l$_[0]()" }, '');

my $evaluated = 'CREATE FUNCTION THIS(bigint) RETURNS bigint IMMUTABLE LANGUAGE sql AS ';

create_levels($evaluated . '$$ SELECT (SELECT r.id FROM p r ORDER BY r.g <-> o.g LIMIT 1) FROM p o WHERE o.id > BELOW(1) LIMIT 1 $$;', 'abs');
is_bounded('functions that the planner evaluates', sub { "SELECT s.l$_[0](1)" }, '');
create_levels($evaluated . '$$ SELECT n.id FROM p o, LATERAL (SELECT r.id FROM p r WHERE r.id > BELOW(1) ORDER BY r.g <-> o.g LIMIT 1) n LIMIT 1 $$;', 'abs');
is_bounded('functions in references', sub { "SELECT s.l$_[0](1)" }, '');

my $call = "CREATE VIEW THIS AS SELECT p.id, p.lat, p.lon FROM geonn_nearest('p', 'BELOW') n JOIN p ON p.id = n.obs_id;";

create_levels($call, 'p');
is_bounded('views on calls', sub { "SELECT * FROM s.l$_[0]" }, '', 50);
create_levels($call =~ s/'p'/'BELOW'/r, 'p');
is_bounded('views on calls, for both sides', sub { "SELECT * FROM s.l$_[0]" }, '', 300);
create_levels("CREATE TABLE THIS (LIKE p INCLUDING ALL); INSERT INTO THIS TABLE p; ANALYZE THIS; ALTER TABLE THIS ENABLE ROW LEVEL SECURITY;
	CREATE POLICY few ON THIS USING (id IN (SELECT obs_id FROM geonn_nearest('p', 'BELOW')));", 'p');
is_bounded('policies', sub { "SELECT * FROM geonn_nearest('s.l$_[0]', 'p')" }, 'SET ROLE reader', 150);

# ---- three levels have nodes, and all have their rows ----

my $level = 'SELECT n.id, n.g, round(n.d) AS d FROM some_p o, LATERAL
	(SELECT x.id, x.g, x.g <-> o.g AS d FROM BELOW x WHERE x.id <> o.id ORDER BY x.g <-> o.g, x.id LIMIT 1) n';
my $top = $level =~ s/some_p/few/r;

create_levels("CREATE TABLE THIS AS $level; ANALYZE THIS;", 'some_p');
foreach my $levels (1 .. 3)
{
	my $statement = nested($level, $levels, 'TABLE some_p');

	is($node->safe_psql('postgres', "$statement ORDER BY 1, 3"), $node->safe_psql('postgres', "SELECT * FROM s.l$levels ORDER BY 1, 3"),
		"$levels levels: the rows are those of one after the other");
	is(() = $node->safe_psql('postgres', "EXPLAIN $statement") =~ /geonn subquery join/g, $levels, "$levels levels: nodes");
}
my $statement = nested($top, 1, nested($level, 3, 'TABLE some_p'));
my $plan = $node->safe_psql('postgres', "EXPLAIN VERBOSE $statement");

is($node->safe_psql('postgres', "$statement ORDER BY 1, 3"),
	$node->safe_psql('postgres', 'SET geonn.enable_sql_joins = off; ' . nested($top, 1, 'TABLE s.l3') . ' ORDER BY 1, 3'),
	'four levels: the rows are those of one after the other');
is(() = $plan =~ /geonn subquery join/g, 3, 'four levels: nodes');
is(() = $plan =~ /"n": nearest-neighbour subqueries nest too deep in it/g, 1, 'four levels: a reason');

done_testing();
