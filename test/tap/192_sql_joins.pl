
# Nearest-neighbour subqueries in PostGIS's words have the rows that they have without geonn: random tables with ties,
# duplicates, empty points, poles and the antimeridian, random forms, nesting, roles with policies, and plans.
#
# short form: 40 of 2000 statements
# needs: postgis
# rooms: sql
# check-all: a long property run

use strict;
use warnings;

use Geonn;
use Test::More;

my $statements = $ENV{GEONN_SQL_STATEMENTS} // ($ENV{GEONN_LONG} ? 2000 : 40);
my $seed = $ENV{GEONN_SQL_SEED} // int(rand(1_000_000));

note("seed: GEONN_SQL_SEED=$seed");
srand($seed);

my $node = new_server('sql_joins', preload => 1, conf => "statement_timeout = '120s'\njit = off");

# a grid for ties and duplicates, points that PostGIS takes for one, and the sphere's seams
my $longitude = q{CASE WHEN random() < 0.1 THEN 180 WHEN random() < 0.1 THEN -180 WHEN random() < 0.4 THEN round(random() * 36 - 18) * 10
	WHEN random() < 0.3 THEN 20 + round(random() * 9) * 2e-11 ELSE random() * 360 - 180 END};
my $latitude = q{CASE WHEN random() < 0.05 THEN 90 WHEN random() < 0.05 THEN -90 WHEN random() < 0.4 THEN round(random() * 18 - 9) * 10
	WHEN random() < 0.3 THEN 10 + round(random() * 9) * 2e-11 ELSE degrees(asin(random() * 2 - 1)) END};
my $point = qq{CASE WHEN random() < 0.03 THEN NULL WHEN random() < 0.03 THEN ST_GeomFromText('POINT EMPTY', 4326)
	ELSE ST_SetSRID(ST_MakePoint($longitude, $latitude), 4326) END};

$node->safe_psql('postgres', qq{
	SET client_min_messages = error;
	CREATE EXTENSION postgis;
	SELECT setseed($seed / 1e6);
	CREATE TABLE places AS SELECT i AS id, i % 7 AS kind, $point AS geom FROM generate_series(1, 700) i;
	INSERT INTO places SELECT 700 + i, i % 7, ST_SetSRID(ST_MakePoint(20, 10), 4326) FROM generate_series(1, 30) i;
	ALTER TABLE places ALTER geom TYPE geometry(Point, 4326);
	ALTER TABLE places ADD g geography(Point), ADD lat float8, ADD lon float8;
	UPDATE places SET g = geom::geography, lat = ST_Y(geom), lon = ST_X(geom);
	CREATE TABLE o AS TABLE places;
	DELETE FROM o WHERE id > 250 AND id < 720;
	CREATE TABLE r AS TABLE places;
	CREATE TABLE r_none AS TABLE places WITH NO DATA;
	CREATE TABLE r_few AS SELECT * FROM places WHERE geom IS NULL OR ST_IsEmpty(geom) OR id < 3;
	CREATE TABLE r_parts (LIKE places) PARTITION BY HASH (id);
	CREATE TABLE r_parts_0 PARTITION OF r_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	CREATE TABLE r_parts_1 (g geography(Point), gone text, lat float8, kind integer, id integer, geom geometry(Point, 4326), lon float8);
	ALTER TABLE r_parts_1 DROP gone;
	ALTER TABLE r_parts ATTACH PARTITION r_parts_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	INSERT INTO r_parts TABLE places;
	CREATE TABLE o_parts (LIKE places) PARTITION BY RANGE (id);
	CREATE TABLE o_parts_0 PARTITION OF o_parts FOR VALUES FROM (0) TO (100);
	CREATE TABLE o_parts_1 PARTITION OF o_parts FOR VALUES FROM (100) TO (2000);
	INSERT INTO o_parts TABLE o;
	CREATE MATERIALIZED VIEW r_kept AS TABLE places;
	CREATE VIEW r_view AS SELECT * FROM r WHERE kind <> 5;
	CREATE VIEW r_barrier WITH (security_barrier) AS SELECT * FROM r WHERE kind <> 1;
	CREATE VIEW r_joined AS SELECT a.id, b.kind, a.geom, a.g, a.lat, a.lon FROM r a JOIN r b ON b.id = a.id + 1;
	CREATE VIEW o_view AS SELECT *, id * 2 AS twice FROM o WHERE kind < 6;
	CREATE TABLE kinds AS SELECT i AS kind, 100000.0 * i AS far FROM generate_series(0, 9) i;
	CREATE ROLE reader;
	CREATE POLICY but_four ON r TO reader USING (kind <> 4);
	CREATE POLICY but_three ON o TO reader USING (kind <> 3);
	ALTER TABLE r ENABLE ROW LEVEL SECURITY;
	ALTER TABLE o ENABLE ROW LEVEL SECURITY;
	GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
	ANALYZE;
});

# A distance between o and r; the statement is left to PostgreSQL where the types do not say that these are points.
sub distance
{
	my @points = map { pick("$_.g", "$_.g", "$_.geom::geography") } qw(o r);
	my $pair = join(', ', rand() < 0.5 ? @points : reverse @points);

	return pick(join(' <-> ', split(', ', $pair)), join(' <-> ', split(', ', $pair)), "ST_Distance($pair, false)", "ST_Distance($pair)",
		"ST_Distance($pair, true)", 'ST_DistanceSphere(o.geom, r.geom)', 'geonn_distance(o.lat, o.lon, r.lat, r.lon)',
		q{geonn_distance(r.lat, r.lon, o.lat, o.lon, 'spheroid')});
}

# A subquery n, and whether its order is total: only then do all of its columns follow from the statement.
sub subquery
{
	my $distance = distance();
	my $more = pick('', '', ', r.id', ', r.id', ', r.kind DESC, r.id', ', abs(r.id - o.id), r.id');
	my $columns = $more eq '' ? 'r.geom IS NULL AS without' : pick('r.id', 'r.*', 'r.id, o.id + r.id AS sum', 'r.id, r.kind, r');
	my $from = pick('r', 'r', 'r', 'r_parts r', 'r_view r', 'r_barrier r', 'r_joined r', 'r_kept r', 'r_none r', 'r_few r');
	my $where = pick('', '', '', 'WHERE r.kind < 4', 'WHERE r.id % 50 = 7', 'WHERE r.g IS NOT NULL AND r.kind IN (1, 2, 6)', 'WHERE false');
	if ($where !~ /false/ && rand() < 0.4)
	{
		my $joined = join(' AND ', map { pick('r.id <> o.id', 'r.id <> o.id', 'r.kind = o.kind', 'ST_DWithin(o.g, r.g, 1e6)', 'ST_DWithin(r.g, o.g, o.kind * 1e5, false)',
			'o.kind <> r.kind', 'int4range(o.kind, o.kind + 3) @> r.kind') } 1 .. pick(1, 1, 2));
		$where = $where eq '' ? "WHERE $joined" : "$where AND $joined";
	}
	my $limit = 'LIMIT ' . pick(1, 1, 1, 2, 5, 20, 800, 0, 'NULL', '$1', '$1');

	$where = '' if $more eq '' && $columns =~ /without/ && rand() < 0.5;
	return ("(SELECT $columns, $distance AS d FROM $from $where ORDER BY $distance$more $limit" . pick('', '', '', ' OFFSET 1', ' OFFSET 3', ' OFFSET $2') . ')',
		$more ne '');
}

sub query
{
	my ($subquery, $is_total) = subquery();
	my $outer = pick('o', 'o', 'o', 'o_parts o', 'o_view o', '(SELECT * FROM o WHERE kind > 2 OFFSET 0) o', 'kinds k JOIN o ON k.kind = o.kind',
		'kinds k LEFT JOIN o ON o.kind = k.kind AND k.far > 2e5');
	my $join = pick("CROSS JOIN LATERAL $subquery n", "JOIN LATERAL $subquery n ON true", "LEFT JOIN LATERAL $subquery n ON true",
		"LEFT JOIN LATERAL $subquery n ON n.d < 4e6", "JOIN LATERAL $subquery n ON n.d > o.kind * 1e5", ", LATERAL $subquery n");
	my $columns = $is_total ? pick('o.id AS own, n.*', 'o.id, n.id AS ref', 'o.kind, n.id AS ref, n.d', 'o.id, n::text') : pick('o.id, n.d', 'n.d', 'o.id');
	my $where = pick('', '', '', 'WHERE o.kind < 4', 'WHERE n.d < 3e6 OR o.id < 20', 'WHERE n.d IS NULL', $is_total ? 'WHERE n.id % 3 = o.id % 3' : 'WHERE o.id > 9');

	$columns = 'o.id, n.d' if $columns =~ /n\.id|n\.\*|n::/ && !$is_total;
	my $query = "SELECT $columns FROM $outer $join $where";

	return "SELECT count(*), sum(x.d) > 0 AS far FROM (SELECT n.d FROM $outer $join $where) x" if rand() < 0.1;
	return "WITH q AS (SELECT o.id, n.d FROM $outer $join $where) SELECT * FROM q ORDER BY id, d" if rand() < 0.1;
	return "SELECT k.kind, (SELECT max(n.d) FROM $outer $join WHERE o.kind < 3) AS m FROM kinds k" if rand() < 0.1 && $outer !~ /kinds/;
	return $query;
}

# PostgreSQL's own plans can start workers for each row of a join, which takes minutes: only the node's have any.
$node->safe_psql('postgres', q{
	CREATE FUNCTION plan_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
		DECLARE
			line text;
			lines text := '';
		BEGIN
			FOR line IN EXECUTE 'EXPLAIN ' || statement LOOP
				lines := lines || line || chr(10);
			END LOOP;
			RETURN lines;
		END $$
});

my $with_node = 0;
my $with_gather = 0;
my @differ;

for (1 .. $statements)
{
	my $query = query();
	my $settings = join("\n", map { "SET $_;" } 'work_mem = ' . pick(64, 4096), 'enable_nestloop = ' . pick('on', 'off', 'off'),
		'plan_cache_mode = ' . pick('force_generic_plan', 'force_custom_plan'), 'max_parallel_workers_per_gather = ' . pick(0, 2));
	my $role = pick('SET ROLE reader;', '');
	my $change = $role eq '' ? 'UPDATE r SET g = (SELECT g FROM o WHERE id = 1) WHERE kind = 2; DELETE FROM r WHERE kind = 6;' : '';
	my $values = '(' . pick(1, 3, 12) . '::bigint, ' . pick(0, 2) . '::bigint)';
	my $out = $node->safe_psql('postgres', qq{
		SET client_min_messages = error;
		SET geonn.enable_sql_joins = on;
		SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
		$settings
		BEGIN;
		$role
		$change
		PREPARE a(bigint, bigint) AS $query;
		SELECT set_config('max_parallel_workers_per_gather', '0', false) WHERE plan_of('EXECUTE a$values') !~ 'geonn subquery join';
		DEALLOCATE a;
		PREPARE a(bigint, bigint) AS $query;
		PREPARE b(bigint, bigint) AS $query;
		CREATE TEMP TABLE a AS EXECUTE a$values;
		EXPLAIN (VERBOSE) EXECUTE a$values;
		SET geonn.enable_sql_joins = off;
		SET max_parallel_workers_per_gather = 0;
		CREATE TEMP TABLE b AS EXECUTE b$values;
		SELECT 'differences: ' || count(*) FROM ((SELECT a::text FROM a EXCEPT ALL SELECT b::text FROM b) UNION ALL (SELECT b::text FROM b EXCEPT ALL SELECT a::text FROM a)) x;
		ROLLBACK;
	});

	$with_node++ if $out =~ /geonn subquery join/;
	$with_gather++ if $out =~ /Gather.*geonn subquery join/s;
	push @differ, "$settings $role $change $query $values" if $out !~ /differences: 0$/;
}
is(join("\n", @differ), '', "the rows of $statements random statements are those without geonn");
cmp_ok($with_node, '>', 0.3 * $statements, "many of them, $with_node, have the node");
note("below a Gather: $with_gather");


# What the random statements lack: whether the node takes each of these, and the same rows or the same error.
$node->safe_psql('postgres', q{
	SET client_min_messages = error;
	CREATE TABLE heirs (more text) INHERITS (r);
	INSERT INTO heirs SELECT id + 5000, kind, geom, g, lat, lon FROM r WHERE id % 3 = 0;
	CREATE VIEW r_locked AS SELECT * FROM r FOR UPDATE;
	CREATE FUNCTION unsteady(float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN $1; END';
	CREATE FUNCTION twice(bigint) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT 2 * $1';
	CREATE FUNCTION numbers(integer) RETURNS integer[] LANGUAGE plpgsql IMMUTABLE AS 'DECLARE a integer[] := ARRAY[$1]; BEGIN a[2] := 7; RETURN a; END';
	CREATE FUNCTION with_another(a integer[]) RETURNS integer[] LANGUAGE plpgsql IMMUTABLE AS 'BEGIN a[3] := 8; RETURN a; END';
	CREATE SCHEMA other;
	CREATE FUNCTION other.geography(g geometry) RETURNS geography LANGUAGE sql IMMUTABLE
		AS 'SELECT public.geography(public.ST_Buffer(g, 3))';
	CREATE TABLE keyed AS SELECT * FROM o;
	ALTER TABLE keyed ADD PRIMARY KEY (id);
	GRANT SELECT ON keyed TO reader;
	CREATE TABLE merged (id integer, n integer);
	CREATE VIEW v_nearest AS SELECT DISTINCT ON (k.id) k.id, r.id AS ref FROM keyed k, r WHERE r.kind > 1 ORDER BY k.id, r.g <-> k.g, r.id;
	ANALYZE r, heirs, keyed;
});

my $d = 'geonn_distance(o.lat, o.lon, r.lat, r.lon)';
my $first = "SELECT r.id FROM r ORDER BY $d, r.id LIMIT 1";
my $o = '(SELECT * FROM o WHERE id < 150) o';
my @cases = (
	# [ is taken, the subquery, the rest of the statement ]
	[ 1, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT 2" ],
	[ 1, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT twice(2) OFFSET twice(1)" ],
	[ 1, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT 2 OFFSET 900" ],
	[ 1, "SELECT r.id FROM r ORDER BY $d, r.id FETCH FIRST 3 ROWS ONLY" ],
	[ 1, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT 2 OFFSET -1" ],
	[ 0, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT -1" ],
	[ 0, "SELECT r.id FROM r WHERE r.id < 20 ORDER BY $d, r.id LIMIT NULL" ],
	[ 0, "SELECT r.id FROM r WHERE r.id < 20 ORDER BY $d, r.id" ],
	[ 0, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT (SELECT 2)" ],
	[ 0, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT o.kind" ],
	[ 0, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT 1023 OFFSET 1" ],
	[ 0, "SELECT $d AS d FROM r WHERE r.id < 300 ORDER BY 1 FETCH FIRST 2 ROWS WITH TIES" ],

	# the order
	[ 0, "SELECT r.id FROM r ORDER BY $d DESC, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r ORDER BY $d NULLS FIRST, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r ORDER BY $d USING >, r.id LIMIT 2" ],
	[ 1, "SELECT r.id FROM r ORDER BY $d USING <, r.id DESC NULLS LAST LIMIT 2" ],
	[ 1, "SELECT r.id, $d AS d FROM r ORDER BY d, r.kind DESC NULLS FIRST, r.id LIMIT 5" ],
	[ 1, "SELECT $d, r.id FROM r ORDER BY 1, 2 LIMIT 5" ],
	[ 1, "SELECT r.id FROM r ORDER BY $d, r.kind::text COLLATE \"C\" DESC, r.id LIMIT 5" ],
	[ 0, "SELECT r.id FROM r ORDER BY $d\::numeric, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r ORDER BY $d\::float4, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r ORDER BY round($d), r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r ORDER BY -$d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r ORDER BY r.kind, $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r ORDER BY geonn_distance(lon1 => o.lon, lat1 => o.lat, lon2 => r.lon, lat2 => r.lat), r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r ORDER BY geonn_distance(o.lat, r.lon, r.lat, o.lon), r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r ORDER BY geonn_distance(r.lat, r.lon, r.lat, o.lon), r.id LIMIT 2" ],
	[ 1, "SELECT r.id FROM r ORDER BY geonn_distance(-o.lat, o.lon / 2, r.lat / 2, -r.lon), r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r ORDER BY other.geography(r.geom) <-> o.g, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r ORDER BY r.geom <-> o.geom, r.id LIMIT 2" ],

	# what a row of the subquery is
	[ 0, "SELECT count(*) AS id FROM r ORDER BY geonn_distance(o.lat, o.lon, max(r.lat), max(r.lon)) LIMIT 2" ],
	[ 0, "SELECT DISTINCT r.id, $d FROM r ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT DISTINCT ON ($d) r.id FROM r ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id, row_number() OVER (ORDER BY r.id) FROM r ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id, generate_series(1, 2) AS s FROM r ORDER BY $d, r.id, s LIMIT 3" ],
	[ 0, "SELECT r.id, unsteady(r.lat) FROM r ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r WHERE unsteady(r.lat) > 0 ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r WHERE r.id IN (SELECT kind FROM o) ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id, (SELECT max(kind) FROM o) FROM r ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r JOIN kinds k ON k.kind = r.kind + o.kind ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r FOR UPDATE LIMIT 2" =~ s/ FOR UPDATE/ ORDER BY $d, r.id/r . ' FOR UPDATE' ],
	[ 1, "SELECT r.id FROM r_locked r ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r UNION ALL SELECT 1 LIMIT 0" ],
	[ 1, "SELECT r.id FROM (TABLE r UNION ALL TABLE r_few) r ORDER BY $d, r.id LIMIT 4" ],
	[ 1, "SELECT r.id FROM (SELECT max(id) AS id, lat, lon FROM r GROUP BY lat, lon) r ORDER BY $d, r.id LIMIT 4" ],
	[ 1, "SELECT r.id FROM (SELECT i AS id, i % 90 AS lat, i AS lon FROM generate_series(1, 500) i) r ORDER BY $d, r.id LIMIT 1" ],
	[ 1, "SELECT r.id, k.far FROM r NATURAL JOIN kinds k ORDER BY $d, r.id LIMIT 2" ],
	[ 1, "SELECT r.id, r.lat IS NULL AS a, o.lat IS NOT NULL AS b, coalesce(r.id, 0) AS c FROM r ORDER BY $d, r.lat IS NULL, r.id LIMIT 2" ],
	[ 1, "SELECT r.id, numbers(r.id) AS a FROM r ORDER BY $d, numbers(r.kind), r.id LIMIT 2",
		"SELECT o.id, with_another(n.a), with_another(n.a) AS b, n.a FROM $o, LATERAL (%s) n" ],

	# which rows
	[ 1, "SELECT r.id, r.tableoid::regclass, r.ctid, r.xmin FROM heirs r ORDER BY $d, r.id LIMIT 2" ],
	[ 1, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT 2", "SELECT o.id, n.* FROM (SELECT * FROM o WHERE id > 710) o, LATERAL (%s) n" ],
	[ 1, "SELECT r.id, r.tableoid::regclass FROM ONLY r ORDER BY $d, r.id LIMIT 2" ],
	[ 1, "SELECT r.id, r.tableoid::regclass FROM r_parts r ORDER BY $d, r.id LIMIT 2" ],
	[ 1, "SELECT r.id, o.ctid AS own FROM r ORDER BY $d, r.id LIMIT 2", "o CROSS JOIN LATERAL (%s) n" ],
	[ 1, "SELECT r.id FROM r TABLESAMPLE bernoulli (40) REPEATABLE (7) ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r TABLESAMPLE bernoulli (o.kind * 10) REPEATABLE (7) ORDER BY $d, r.id LIMIT 2" ],
	[ 1, "SELECT r.id, r FROM r_barrier r WHERE r.kind > 2 ORDER BY $d, r.id LIMIT 2" ],
	[ 1, "SELECT r.id FROM c r ORDER BY $d, r.id LIMIT 2", "WITH c AS MATERIALIZED (SELECT * FROM r WHERE kind > 3) SELECT o.id, n.* FROM $o, LATERAL (%s) n" ],
	[ 1, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT 2", "WITH RECURSIVE t AS (SELECT id, lat, lon, 1 AS n FROM o WHERE id < 50 UNION ALL
		SELECT o.id + 1000, o.lat / 2, o.lon, o.n + 1 FROM t o, LATERAL (%s) n WHERE o.n < 4) SELECT id, lat, n FROM t" ],
	[ 0, "SELECT r.id FROM t r ORDER BY $d, r.id LIMIT 1", "WITH RECURSIVE t AS (SELECT id, lat, lon, 1 AS n FROM r WHERE id < 50 UNION ALL
		SELECT n.id, o.lat / 2, o.lon, 9 FROM o, LATERAL (%s) n WHERE o.id < 20 AND n.id < 50) SELECT count(*) FROM (SELECT * FROM t LIMIT 3000) x" ] ,

	# outer levels
	[ 0, "SELECT r.id, k.kind FROM r ORDER BY $d, r.id LIMIT 2", "SELECT k.kind, (SELECT sum(n.id * n.kind) FROM o, LATERAL (%s) n) FROM kinds k WHERE k.kind < 3" ],
	[ 0, "SELECT r.id FROM r WHERE r.kind = k.kind ORDER BY $d, r.id LIMIT 2", "SELECT k.kind, (SELECT sum(n.id) FROM o, LATERAL (%s) n) FROM kinds k WHERE k.kind < 3" ],
	[ 0, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT k.kind", "SELECT k.kind, (SELECT sum(n.id) FROM o, LATERAL (%s) n) FROM kinds k WHERE k.kind < 3" ],
	[ 1, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT 2", "SELECT k.kind, (SELECT sum(n.id) FROM o, LATERAL (%s) n WHERE o.kind = k.kind) FROM kinds k WHERE k.kind < 3" ],
	[ 1, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT 2", "SELECT o.id, n.*, m.id AS second FROM $o, LATERAL (%s) n, LATERAL (SELECT r.id FROM r ORDER BY $d, r.id LIMIT 1 OFFSET 1) m" ],
	[ 0, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT 2", "SELECT o.id, n.* FROM o, LATERAL (%s) n FOR UPDATE OF o" ],

	# conditions that join both rows
	[ 1, "SELECT r.id FROM r WHERE r.kind = o.kind ORDER BY $d, r.id LIMIT 2" ],
	[ 1, "SELECT r.id FROM r WHERE o.kind + 1 = r.kind AND r.id > 9 ORDER BY $d, r.id LIMIT 3 OFFSET 1" ],
	[ 1, "SELECT r.id, r.kind FROM r WHERE r.kind = o.kind AND r.id <> o.id AND r.kind <> o.id ORDER BY $d, r.kind, r.id LIMIT 20" ],
	[ 1, "SELECT r.id FROM r WHERE r.id <> o.id ORDER BY $d, r.id LIMIT 1" ],
	[ 1, "SELECT r.id FROM r WHERE r.kind = o.kind AND (r.lat IS NULL OR r.id < 30) ORDER BY $d, r.id LIMIT 5" ],
	[ 1, "SELECT r.id FROM r_parts r WHERE o.id <> r.id ORDER BY $d, r.id LIMIT 800" ],
	[ 1, "SELECT r.id FROM r WHERE ST_DWithin(o.g, r.g, 2e6) ORDER BY o.g <-> r.g, r.id LIMIT 3" ],
	[ 1, "SELECT r.id FROM r WHERE ST_DWithin(r.g, o.g, o.kind * 1e5, false) AND r.kind <> 3 ORDER BY ST_Distance(o.g, r.g), r.id LIMIT 20" ],
	[ 1, "SELECT r.id FROM r WHERE ST_DWithin(o.g, r.g, nullif(o.kind, 2) * 0) AND r.id <> o.id ORDER BY o.g <-> r.g, r.id LIMIT 20" ],
	[ 1, "SELECT r.id FROM r WHERE ST_DWithin(o.g, r.g, -1) ORDER BY o.g <-> r.g, r.id LIMIT 20" ],
	[ 1, "SELECT r.id FROM r WHERE int4range(r.kind, r.kind + 2) && int4range(o.kind, o.kind + 1) ORDER BY $d, r.id LIMIT 4" ],
	[ 1, "SELECT r.id FROM r WHERE int4range(r.kind, 5) @> o.kind AND r.kind IS NOT NULL ORDER BY $d, r.id LIMIT 4" ],
	[ 1, "SELECT r.id FROM r WHERE r.id <> o.id ORDER BY $d, r.id LIMIT 1", "SELECT o.id, (%s) FROM o" ],
	[ 1, "SELECT r.id FROM r WHERE r.id <> o.id AND r.kind = o.kind ORDER BY $d, r.id LIMIT 2", "SELECT o.id, n.id AS n FROM o LEFT JOIN LATERAL (%s) n ON n.id > 50" ],
	[ 0, "SELECT r.id FROM r WHERE r.id = o.id + 1 ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r_view r WHERE r.kind = o.kind ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r WHERE r.kind < o.kind ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r WHERE o.kind = 3 ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r WHERE r.kind = o.kind OR r.id < 9 ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r WHERE r.kind + o.kind = 7 ORDER BY $d, r.id LIMIT 2" ],
	[ 0, "SELECT r.id FROM r WHERE ST_DWithin(o.g, r.g, r.kind) ORDER BY o.g <-> r.g, r.id LIMIT 3" ],
	[ 0, "SELECT r.id FROM r WHERE ST_DWithin(o.geom, r.geom, 2) ORDER BY o.g <-> r.g, r.id LIMIT 3" ],
	[ 0, "SELECT r.id FROM r WHERE ST_DWithin(o.g, ST_Translate(r.geom, 1, 0)::geography, 2e6) ORDER BY o.g <-> r.g, r.id LIMIT 3" ],

	# DISTINCT ON
	[ 1, '', "SELECT DISTINCT ON (o.id) o.id, r.id AS ref, $d AS d FROM keyed o, r ORDER BY o.id, $d, r.id" ],
	[ 1, '', "SELECT DISTINCT ON (o.id) o.id, r FROM keyed o CROSS JOIN r ORDER BY o.id DESC, $d, r.kind DESC, r.id LIMIT 40" ],
	[ 1, '', "SELECT DISTINCT ON (o.id) r.id + o.kind AS x, r.ctid, r.tableoid::regclass FROM keyed o JOIN r_parts r ON r.kind = o.kind ORDER BY o.id, $d, r.id" ],
	[ 1, '', "SELECT DISTINCT ON (o.kind, o.id) o.id, r.id FROM r, keyed o WHERE o.kind > 2 AND r.kind < 4 AND r.id <> o.id ORDER BY o.id, o.kind, o.g <-> r.g, r.id" ],
	[ 1, '', "SELECT DISTINCT ON (o.id) o.id, r.id FROM keyed o JOIN r ON ST_DWithin(o.g, r.g, 1e6) ORDER BY o.id, o.g <-> r.g, r.id DESC" ],
	[ 1, '', "SELECT x.ref, count(*) FROM (SELECT DISTINCT ON (o.id) o.id, r.id AS ref FROM keyed o, r ORDER BY o.id, $d, r.id) x GROUP BY x.ref" ],
	[ 1, '', "SELECT k.kind, v.* FROM kinds k LEFT JOIN v_nearest v ON v.id < 3 * k.kind" ],
	[ 1, '', "SET ROLE reader; SELECT DISTINCT ON (o.id) o.id, r.id AS ref FROM keyed o, r ORDER BY o.id, $d, r.id" ],
	[ 0, '', "SELECT DISTINCT ON (o.id) o.id, r.id FROM o, r WHERE r.id < 200 ORDER BY o.id, $d, r.id" ],
	[ 0, '', "SELECT DISTINCT ON (o.kind) o.id, r.id FROM keyed o, r WHERE r.id < 200 ORDER BY o.kind, $d, r.id, o.id" ],
	[ 0, '', "SELECT DISTINCT ON (o.id, r.kind) o.id, r.id FROM keyed o, r WHERE r.id < 200 ORDER BY o.id, r.kind, $d, r.id" ],
	[ 0, '', "SELECT DISTINCT ON (o.id) o.id, r.id FROM keyed o LEFT JOIN r ON r.id < 200 ORDER BY o.id, $d, r.id" ],
	[ 0, '', "SELECT DISTINCT ON (o.id) o.id, r.id FROM keyed o, r, kinds k WHERE r.id < 20 ORDER BY o.id, $d, r.id, k.kind" ],
	[ 0, '', "SELECT DISTINCT ON (o.id) o.id, r.id FROM keyed o JOIN r USING (kind) WHERE kind > 3 ORDER BY o.id, r.id, $d" ],
	[ 0, '', "SELECT DISTINCT ON (o.id) o.id, count(*) FROM keyed o, r WHERE r.id < 20 GROUP BY o.id, r.lat, r.lon ORDER BY o.id, $d, r.lat" ],
	[ 0, '', "SELECT DISTINCT ON (o.id) o.id, row_number() OVER () > 0 FROM keyed o, r WHERE r.id < 20 ORDER BY o.id, $d, r.id" ],

	# as a value
	[ 1, $first, "SELECT o.id, (%s) FROM o" ],
	[ 1, $first, "SELECT o.id, (%s)::text AS n, o.lat FROM $o" ],
	[ 1, $first, "SELECT DISTINCT (%s) AS n FROM o ORDER BY 1 LIMIT 7" ],
	[ 1, $first, "SELECT o.id FROM o ORDER BY (%s), o.id LIMIT 30" ],
	[ 1, "$first OFFSET 729", "SELECT o.id, (%s) FROM o WHERE o.id > 3" ],
	[ 1, "SELECT o.kind + r.id FROM r WHERE r.kind = 3 ORDER BY $d, r.id LIMIT 1", "SELECT (%s) FROM o LEFT JOIN kinds k ON k.kind = o.kind AND k.far > 2e5" ],
	[ 0, "SELECT r.id FROM r WHERE false ORDER BY $d, r.id LIMIT 1", "SELECT o.id, (%s) FROM o" ],
	[ 1, "SELECT r FROM r_barrier r ORDER BY $d, r.id FETCH FIRST ROW ONLY", "SELECT o.id, (%s) FROM o" ],
	[ 1, $first, "SELECT k.kind, x.n FROM kinds k LEFT JOIN (SELECT o.kind, (%s) AS n, o.id FROM o) x ON x.kind = k.kind AND x.id < k.far" ],
	[ 1, $first, "SELECT x.n, count(*) FROM (SELECT o.id, (%s) AS n FROM o) x GROUP BY x.n" ],
	[ 1, $first, "WITH x AS MATERIALIZED (SELECT o.id, (%s) AS n FROM o) SELECT * FROM x a JOIN x b ON a.id = b.n" ],
	[ 1, $first, "SELECT o.id, (%1\$s) AS a, (%1\$s OFFSET 1) AS b, (SELECT max(kind) FROM kinds) AS c FROM o" ],
	[ 1, $first, "SELECT o.id, (%s) AS a FROM o UNION ALL SELECT id, kind FROM kinds k JOIN r USING (kind)" ],
	[ 1, $first, "WITH x AS (UPDATE keyed k SET kind = k.kind + 0 * coalesce(s.n, 0) FROM (SELECT o.id, (%s) AS n FROM o) s WHERE s.id = k.id RETURNING k.id) SELECT * FROM x" ],
	[ 1, $first, "WITH x AS (INSERT INTO merged SELECT o.id, (%s) FROM o RETURNING *) SELECT * FROM x" ],
	[ 1, $first, "MERGE INTO merged m USING (SELECT o.id, (%s) AS n FROM o) s ON s.id = m.id WHEN MATCHED THEN UPDATE SET n = s.n + 1
		WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n); SELECT * FROM merged; TRUNCATE merged" ],
	[ 0, $first, "WITH x AS (UPDATE keyed o SET kind = o.kind + 0 * (%s) RETURNING o.id) SELECT * FROM x" ],
	[ 0, "SELECT r.id FROM r ORDER BY $d, r.id LIMIT 2", "SELECT o.id, (%s) FROM o" ],
	[ 0, $first, "SELECT o.id, coalesce((%s), 0) FROM o" ],
	[ 0, $first, "SELECT o.id, CASE WHEN o.id < 9 THEN (%s) END FROM o" ],
	[ 0, $first, "SELECT o.lat, (%s), count(*) FROM o GROUP BY o.lat, o.lon" ],
	[ 0, $first, "SELECT o.id FROM o WHERE (%s) < 40" ],
	[ 0, $first, "SELECT o.id, (%s) FROM o FOR UPDATE" ],
	[ 0, $first, "SELECT k.kind, (SELECT o.id FROM o WHERE o.id = (%s) LIMIT 1) FROM kinds k" ],
	[ 0, "SELECT r.id + k.kind FROM r ORDER BY $d, r.id LIMIT 1", "SELECT k.kind, (SELECT sum(x.n) FROM (SELECT (%s) AS n FROM o) x) FROM kinds k WHERE k.kind < 2" ],
	[ 0, "SELECT unsteady(r.lat) FROM r ORDER BY $d, r.id LIMIT 1", "SELECT o.id, (%s) FROM o" ]);

my @wrong;

for my $case (@cases)
{
	my ($is_taken, $subquery, $rest) = @$case;
	my $query = $subquery eq '' ? $rest : sprintf($rest // "SELECT o.id AS own, n.* FROM $o CROSS JOIN LATERAL (%s) n", $subquery);
	my $role = $query =~ s/^(SET ROLE \w+;)// ? $1 : '';
	my %rows;
	my ($plan, $said);

	$query = "SELECT o.id, n.* FROM $query" if $query =~ /^o /;
	for my $setting ('off', 'on')
	{
		my ($out, $error);

		$node->psql('postgres', qq{
			$role
			SET geonn.enable_sql_joins = $setting;
			SET max_parallel_workers_per_gather = 0;
			EXPLAIN (VERBOSE, COSTS OFF) $query;
			SELECT 'rows:';
			$query;
		}, stdout => \$out, stderr => \$error);
		$said = $error;
		($plan, $rows{$setting}) = split(/^rows:$/m, $out);
		$rows{$setting} = join("\n", sort split("\n", $rows{$setting} // '')) . ($error =~ /((?:ERROR|WARNING): .*)/ ? $1 : '');
	}
	push @wrong, "warning: $query\n$said" if $said =~ /WARNING/;
	push @wrong, "the rows differ: $query\n" . substr($rows{on}, 0, 300) if $rows{off} ne $rows{on};
	push @wrong, ($is_taken ? 'not taken: ' : 'taken: ') . $query if ($plan =~ /geonn subquery join/) != $is_taken;
}
is(join("\n", @wrong), '', 'special forms are taken, or left to PostgreSQL, and have the same rows or errors');

is($node->safe_psql('postgres', qq{
		SET plan_cache_mode = force_generic_plan;
		PREPARE q(bigint) AS SELECT o.id, n.* FROM o, LATERAL (SELECT r.id AS ref FROM r WHERE 10 / (r.id - 5) < 100 ORDER BY $d, r.id LIMIT \$1) n;
		EXECUTE q(0);
	}), '', 'LIMIT 0: no expression of the subquery is evaluated');

# many references are at one place
for my $case ([ 'r.kind DESC, r.id', qr/Candidates Rechecked: 0\n/, 'a search has the references in order' ],
	[ 'abs(r.id - o.id), r.id', qr/Candidates Rechecked: [1-9]/, 'each row has an order of its own' ])
{
	my ($keys, $rechecked, $why) = @$case;

	like($node->safe_psql('postgres', qq{
		SET geonn.enable_sql_joins = on;
		SET enable_nestloop = off;
		SET max_parallel_workers_per_gather = 0;
		EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
			SELECT n.id FROM (SELECT * FROM o WHERE lat IS NOT NULL) o, LATERAL (SELECT r.id FROM r ORDER BY $d, $keys LIMIT 3) n;
	}), $rechecked, "ORDER BY distance, $keys: $why");
}

# The node reads all of a table page by page, and the executor's rows where these have a condition; some rows are older than a column.
$node->safe_psql('postgres', q{
	CREATE TABLE valid_r AS SELECT id, lat, lon FROM r WHERE lat IS NOT NULL AND lon IS NOT NULL;
	CREATE TABLE pages (gone integer, id integer, lat float8, word text);
	INSERT INTO pages SELECT i, i, CASE WHEN i % 11 > 0 THEN i % 180 - 90 END, repeat('x', i % 40) FROM generate_series(1, 5000) i;
	ALTER TABLE pages DROP gone, ADD lon float8 DEFAULT 7;
	INSERT INTO pages SELECT 5000 + i, i % 150 - 70, NULL, CASE WHEN i % 13 > 0 THEN i % 360 - 170 END FROM generate_series(1, 5000) i;
	DELETE FROM pages WHERE id % 17 = 0;
});
for my $columns ('o.id, n.id, n.d', 'n.id, o.word, n.d', 'n.d')
{
	my $rows = "FROM %s o LEFT JOIN LATERAL (SELECT r.id, $d AS d FROM valid_r r ORDER BY $d, r.id LIMIT 1) n ON true";
	my @found = map {
		$node->safe_psql('postgres', qq{
			SET geonn.enable_sql_joins = on;
			SET enable_nestloop = off;
			SET max_parallel_workers_per_gather = 0;
			SELECT count(*), sum(hashtextextended(ROW($columns)::text, 0)) } . sprintf($rows, $_) . qq{;
			EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT $columns } . sprintf($rows, $_))
	} 'pages', '(SELECT * FROM pages WHERE id > 0)';

	like($found[0], qr/^9412\|.*Custom Scan \(geonn subquery join\).*Seq Scan on pages( o)? \(actual rows=9412(\.00)? loops=1\)/s, "$columns: all rows of the table");
	is(($found[0] =~ /^(.*)$/m)[0], ($found[1] =~ /^(.*)$/m)[0], 'are the same page by page and one by one');
}

# Rows of many rounds: those that are made of a search's pairs, and others, of which the executor computes something, or
# which have no point.
$node->safe_psql('postgres', qq{
	CREATE TABLE few_r AS SELECT id, lat, lon FROM valid_r ORDER BY id LIMIT 40;
	CREATE TABLE many_o AS SELECT i AS id, i % 7 AS kind, CASE WHEN i % 997 > 0 THEN i % 1790 / 10.0::float8 - 90 END AS lat, i % 3599 / 10.0::float8 - 180 AS lon,
		CASE WHEN i % 3 > 0 THEN repeat('x', i % 40) END AS word, ARRAY[i, -i] AS list FROM generate_series(1, 40000) i;
	ANALYZE few_r, many_o;
	CREATE TABLE found AS SELECT o.id AS own, n.* FROM many_o o, LATERAL (SELECT r.id, $d AS d FROM few_r r ORDER BY $d, r.id LIMIT 1) n;
});
my $nearest = "LATERAL (SELECT r.id, $d AS d FROM few_r r ORDER BY $d, r.id LIMIT 1) n";
my $by_node = q{
	SET geonn.enable_sql_joins = on;
	SET enable_nestloop = off;
	SET max_parallel_workers_per_gather = 0;
	SET client_min_messages = error;
};

for my $case ([ 'n.id, n.d' ], [ 'n.d, o.word, n.d AS again, o.id, o.list' ], [ 'n.d / 1000, o.word' ], [ 'o.id, n.id AS ref', 'WHERE n.d < 3e6' ], [ 'o.id, n.d', 'WHERE coalesce(n.d, o.id) < 3e6' ], [ 'o' ], [ '1 AS one' ],
	[ 'o.list || n.id::integer AS list', 'WHERE n.id IS NOT NULL' ])
{
	my ($columns, $where) = (@$case, '');

	for my $join ([ 'JOIN' ], [ 'LEFT JOIN' ], [ 'JOIN', q{SET work_mem = '64kB';} ])
	{
		my ($type, $setting) = (@$join, '');
		my $out = $node->safe_psql('postgres', qq{
			CREATE TEMP TABLE b AS SELECT $columns FROM many_o o JOIN found n ON n.own = o.id $where;
			$by_node $setting
			EXPLAIN SELECT $columns FROM many_o o $type $nearest ON true $where;
			CREATE TEMP TABLE a AS SELECT $columns FROM many_o o $type $nearest ON true $where;
			SELECT 'differences: ' || count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) x;
		});

		like($out, qr/geonn subquery join.*differences: 0$/s, "$type $setting: $columns $where");
	}
}
is($node->safe_psql('postgres', "$by_node SELECT count(*), count(DISTINCT own) FROM (SELECT o.id AS own, n.id FROM many_o o, $nearest LIMIT 7777) x"),
	'7777|7777', 'LIMIT ends in the middle of the pairs');
is($node->safe_psql('postgres', qq{
		$by_node
		SELECT count(*) FROM (SELECT k.kind, (SELECT sum(n.d)::bigint FROM many_o o, $nearest WHERE o.kind = k.kind) AS sum FROM kinds k
			EXCEPT SELECT k.kind, (SELECT sum(n.d)::bigint FROM many_o o JOIN found n ON n.own = o.id WHERE o.kind = k.kind) FROM kinds k) x;
	}), 0, 'the node begins anew for other rows');

# some rounds begin in a subtransaction, which is rolled back
for my $work_mem ('64kB', '4MB')
{
	my @fetched = split(/\n/, $node->safe_psql('postgres', qq{
		$by_node
		SET work_mem = '$work_mem';
		BEGIN;
		DECLARE c CURSOR FOR SELECT o.id, n.id FROM many_o o, $nearest;
		FETCH 700 FROM c;
		SAVEPOINT s;
		FETCH 5000 FROM c;
		ROLLBACK TO s;
		FETCH 5000 FROM c;
		SAVEPOINT s;
		FETCH 5000 FROM c;
		RELEASE s;
		FETCH ALL FROM c;
	}));

	is(join("\n", sort @fetched), join("\n", sort split(/\n/, $node->safe_psql('postgres', 'SELECT own, id FROM found'))), "$work_mem: a cursor returns all rows");
}

# PostgreSQL takes the two conditions for independent, and estimates 312 of 2,500 references
$node->safe_psql('postgres', q{
	CREATE TABLE many AS SELECT i AS id, i % 8 AS kind, i % 8 AS twin, ST_SetSRID(ST_MakePoint(i * 17 % 360 - 180, i * 11 % 181 - 90), 4326)::geography(Point) AS g
		FROM generate_series(1, 20000) i;
	CREATE INDEX ON many USING gist (g);
	ANALYZE many;
});
for my $case ([ '200kB', 0 ], [ '900kB', 1 ], [ '8MB', 1 ])
{
	my ($limit, $is_taken) = @$case;
	my $query = 'SELECT count(n.id) FROM o, LATERAL (SELECT r.id FROM many r WHERE kind = 1 AND twin = 1 ORDER BY o.g <-> r.g LIMIT 1) n';
	my ($out, $messages);

	$node->psql('postgres', "SET geonn.enable_sql_joins = on; SET geonn.session_memory_limit = '$limit'; SET enable_nestloop = off; EXPLAIN $query; $query",
		stdout => \$out, stderr => \$messages);
	($is_taken ? \&like : \&unlike)->($out, qr/geonn subquery join/, "$limit: references that may not fit, and have a GiST index, are left to it");
	unlike($messages, qr/WARNING/, 'so that none are read again');
}

# A process takes its first distances from PostGIS's operator, and then computes most of them.
for my $distance ('o.g <-> r.g', 'r.g <-> o.g')
{
	my ($plan, $differences) = split(/^rows: /m, $node->safe_psql('postgres', qq{
		SET geonn.enable_sql_joins = on;
		SET max_parallel_workers_per_gather = 0;
		PREPARE q AS SELECT o.id AS own, n.* FROM places o, LATERAL (SELECT r.id, $distance AS d, ARRAY[-($distance), r.id] AS more
			FROM many r ORDER BY $distance, r.id LIMIT 20) n;
		EXPLAIN EXECUTE q;
		CREATE TEMP TABLE found AS EXECUTE q;
		SELECT 'rows: ' || count(*) || ', ' || count(*) FILTER (WHERE (d, more) IS DISTINCT FROM ($distance, ARRAY[-($distance), r.id]))
			FROM found JOIN places o ON o.id = own JOIN many r ON r.id = found.id;
	}));

	like($plan, qr/geonn subquery join/, "$distance has the node");
	is($differences, '14600, 0', "and has PostGIS's values to the last bit");
}

done_testing();
