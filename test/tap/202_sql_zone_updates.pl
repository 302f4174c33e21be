
# UPDATE ... FROM, DELETE ... USING, MERGE and SELECT ... FOR UPDATE with joins by PostGIS's predicates: they have geonn's node, and do what they do
# without it, also where another transaction has changed rows meanwhile, which PostgreSQL checks again in their new versions.
#
# needs: postgis
# rooms: sql

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('sql_zone_updates', preload => 1, conf => "statement_timeout = '300s'\nmax_parallel_workers_per_gather = 0");

# Zones are squares of a grid, and each point is inside of one or of none: a row that is updated has one partner.  In `s` and `t` these are
# of the sphere.
my $tables = q{
	SET client_min_messages = error;
	DROP TABLE IF EXISTS p, z, p_parts, z_parts;
	CREATE TABLE z (id integer, kind integer, g geometry(Polygon, 25832), s geography(Polygon));
	CREATE TABLE p (id integer, kind integer, zone integer, g geometry(Point, 25832), s geography(Point));
	INSERT INTO z SELECT i, i % 3, ST_MakeEnvelope(x, y, x + 1, y + 1, 25832), ST_MakeEnvelope(x, y, x + 1, y + 1, 4326)::geography
		FROM (SELECT i, i / 20 AS x, i % 20 AS y FROM generate_series(0, 399) i) s;
	INSERT INTO p SELECT i, i % 4, 0, ST_SetSRID(ST_MakePoint(x, y), 25832), ST_SetSRID(ST_MakePoint(x, y), 4326)::geography
		FROM (SELECT i, i / 20 + 0.4 AS x, i % 20 + 0.7 AS y FROM generate_series(0, 459) i) s;
	CREATE TABLE p_parts (LIKE p) PARTITION BY HASH (id);
	CREATE TABLE p_parts_0 PARTITION OF p_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	CREATE TABLE p_parts_1 PARTITION OF p_parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	INSERT INTO p_parts TABLE p;
	CREATE TABLE z_parts (LIKE z) PARTITION BY HASH (id);
	CREATE TABLE z_parts_0 PARTITION OF z_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	CREATE TABLE z_parts_1 PARTITION OF z_parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	INSERT INTO z_parts TABLE z;
	ANALYZE p, z, p_parts, z_parts;
};

# of points: moved inside of its zone, to another zone, to none, to NULL, to nowhere; another kind; gone.  So for zones.
my $changes = join('', map { my $p = $_; qq{
	UPDATE $p SET g = ST_Translate(g, 0.1, 0.1), s = ST_Translate(s::geometry, 0.1, 0.1)::geography WHERE id = 1;
	UPDATE $p SET g = ST_Translate(g, 5, 5), s = ST_Translate(s::geometry, 5, 5)::geography WHERE id = 2;
	UPDATE $p SET g = ST_Translate(g, 500, 5), s = ST_Translate(s::geometry, 150, 5)::geography WHERE id = 3;
	UPDATE $p SET g = NULL, s = NULL WHERE id = 4;
	UPDATE $p SET g = 'SRID=25832;POINT EMPTY', s = 'POINT EMPTY' WHERE id = 5;
	UPDATE $p SET kind = kind + 1 WHERE id IN (6, 7, 8, 9);
	UPDATE $p SET g = ST_Translate(g, -5, 0), s = ST_Translate(s::geometry, -5, 0)::geography WHERE id = 450;
	DELETE FROM $p WHERE id = 10;
} } 'p', 'p_parts') . q{
	UPDATE z SET g = ST_Translate(g, 0.1, 0.1) WHERE id = 20;
	UPDATE z SET g = ST_Translate(g, 5, 5) WHERE id = 21;
	UPDATE z SET g = ST_Translate(g, 500, 5) WHERE id = 22;
	UPDATE z SET g = NULL WHERE id = 23;
	UPDATE z SET kind = kind + 1 WHERE id IN (24, 25, 26, 27);
	DELETE FROM z WHERE id = 28;
};
my $state = q{
	SELECT 'p', id, kind, zone, ST_AsText(g) FROM p ORDER BY id;
	SELECT 'parts', id, kind, zone, ST_AsText(g) FROM p_parts ORDER BY id;
	SELECT 'z', id, kind, ST_AsText(g) FROM z ORDER BY id;
};
my $writer = $node->background_psql('postgres');

$node->safe_psql('postgres', 'CREATE EXTENSION postgis');

# The plan of a statement, and its rows with those of all tables after it: alone, or while another transaction that has made the changes ends.
sub outcome
{
	my ($setting, $statement, $is_alone) = @_;
	my $run = "SET geonn.enable_sql_joins = $setting; SET enable_nestloop = off; BEGIN; EXPLAIN (COSTS OFF) $statement; SELECT 'rows:'; $statement; COMMIT; $state";

	$node->safe_psql('postgres', $tables);
	$writer->query_safe("BEGIN; $changes") if !$is_alone;
	my $running = start_sql($node, $run);
	if (!$is_alone)
	{
		wait_until(sub { $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'}) > 0 }, 'the statement waits for the other transaction');
		$writer->query_safe('COMMIT');
	}
	my ($status, $out, $error) = finish_sql($running);
	my ($plan, $rows) = split(/^rows:$/m, $out, 2);

	return ($plan, ($rows // '') . ($error =~ /(ERROR: .*)/ ? $1 : ''));
}

my $on = 'ST_Contains(z.g, p.g)';

# [ the node that it has, the statement ]
for my $case (
	[ 'within join', "UPDATE p SET zone = z.id FROM z WHERE $on" ],
	[ 'within join', "UPDATE p SET zone = z.id FROM z WHERE ST_Intersects(p.g, z.g) AND z.kind <> p.kind RETURNING p.id, z.id" ],
	[ 'within join', "UPDATE p SET zone = z.id FROM z_parts z WHERE $on" ],
	[ 'within join', "UPDATE p SET zone = z.id FROM (SELECT * FROM z WHERE kind > 0 OFFSET 0) z WHERE $on" ],
	[ 'within join', "UPDATE p SET zone = n.zone FROM (SELECT p.id, z.id AS zone FROM p LEFT JOIN z ON $on) n WHERE n.id = p.id" ],
	[ 'within join', "UPDATE z SET kind = p.id FROM p WHERE $on" ],
	[ 'within join', "DELETE FROM p USING z WHERE $on AND z.kind = 1" ],
	[ 'within join', "DELETE FROM p WHERE EXISTS (SELECT FROM z WHERE $on)" ],
	[ 'within join', "DELETE FROM p WHERE EXISTS (SELECT FROM z WHERE $on AND z.kind <> p.kind)" ],
	[ 'within join', "DELETE FROM p WHERE NOT EXISTS (SELECT FROM z WHERE $on)" ],
	[ 'within join', "MERGE INTO p USING z ON $on WHEN MATCHED AND z.kind = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET zone = z.id" ],
	[ 'within join', "SELECT p.id, z.id, p.kind FROM p JOIN z ON $on ORDER BY p.id FOR UPDATE OF p" ],
	[ 'within join', "SELECT p.id, z.id, p.kind FROM p LEFT JOIN z ON $on ORDER BY p.id FOR NO KEY UPDATE OF p" ],
	[ 'within join', 'UPDATE p SET zone = z.id FROM z WHERE ST_Covers(z.s, p.s)' ],
	[ 'within join', 'UPDATE p SET zone = z.id FROM z WHERE ST_DWithin(z.s, p.s, 10) AND z.kind <> p.kind' ],
	[ 'within join', 'DELETE FROM p USING p q WHERE ST_DWithin(p.s, q.s, 10) AND q.id % 2 = 0' ],
	[ 'within join', 'DELETE FROM p WHERE EXISTS (SELECT FROM z WHERE ST_Intersects(z.s, p.s))' ],
	[ 'zones of a point', "UPDATE p SET zone = (SELECT z.id FROM z WHERE $on)" ],
	[ 'zones of a point', "UPDATE p SET zone = (SELECT count(*) FROM z WHERE $on AND z.kind < p.kind) WHERE EXISTS (SELECT FROM z WHERE $on) OR p.kind = 2" ],
	[ 'zones of a point', "MERGE INTO p USING p q ON q.id = p.id WHEN MATCHED AND p.kind > 0 THEN UPDATE SET zone = (SELECT z.id FROM z WHERE $on)" ],
	[ 'zones of a point', "UPDATE p SET kind = kind + 1 RETURNING id, (SELECT z.id FROM z WHERE $on)" ],
	[ 'within join', "MERGE INTO p USING z ON $on WHEN MATCHED THEN UPDATE SET zone = z.id WHEN NOT MATCHED THEN INSERT (id, kind) VALUES (-z.id, z.kind)" ],
	[ '', "UPDATE p_parts p SET zone = z.id FROM z WHERE $on" ],
	[ '', "DELETE FROM p_parts p USING z WHERE $on" ])
{
	my ($name, $statement) = @$case;

	for my $is_alone (1, 0)
	{
		my (undef, $expected) = outcome('off', $statement, $is_alone);
		my ($plan, $found) = outcome('on', $statement, $is_alone);

		like($plan, $name eq '' ? qr/^(?!.*geonn)/s : qr/geonn $name/, $statement);
		is($found, $expected, $is_alone ? 'alone' : 'beside another transaction');
	}
}
$writer->quit;

# an index has the zones of one row sooner than all of them are read
$node->safe_psql('postgres', "$tables CREATE INDEX ON z USING gist (g)");
for my $case ([ 0, 'AND q.id = 3' ], [ 1, '' ])
{
	my ($is_taken, $condition) = @$case;
	my $plan = $node->safe_psql('postgres', "SET geonn.enable_sql_joins = on; EXPLAIN MERGE INTO p USING p q ON q.id = p.id $condition WHEN MATCHED THEN UPDATE SET zone = (SELECT z.id FROM z WHERE $on)");

	is($plan =~ /geonn zones of a point/ ? 1 : 0, $is_taken, 'MERGE of ' . ($is_taken ? 'all rows has the node' : 'one row has none')) or diag($plan);
}

done_testing();
