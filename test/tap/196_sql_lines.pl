
# Nearest-neighbour subqueries by PostGIS's <-> have the rows that they have without geonn where the references are lines:
# short ones whose ends PostGIS misses, lines near the poles and over them, long arcs, and lines that are not read.
#
# short form: 10 of 1000 statements
# needs: postgis
# rooms: sql

use strict;
use warnings;

use Geonn;
use Test::More;

my $statements = $ENV{GEONN_SQL_STATEMENTS} // ($ENV{GEONN_LONG} ? 1000 : 10);
my $seed = $ENV{GEONN_SQL_SEED} // int(rand(1_000_000));

note("seed: GEONN_SQL_SEED=$seed");
srand($seed);

my $node = new_server('sql_lines', preload => 1, conf => "statement_timeout = '300s'\njit = off");

sub degrees { return "ST_SetSRID(ST_MakePoint($_[0], greatest(-90, least(90, $_[1]))), 4326)"; }

# 1: all within a few metres, some shorter than a micrometre; 2: near the poles; 3: long, some over a pole and some almost
# half a great circle; 4: over the antimeridian; 5: of equal ends; others: a few kilometres of several arcs
my $start = degrees('x', 'y');
my $kind_of_lines = qq{CASE form
	WHEN 1 THEN ST_MakeLine(${\degrees('20 + a * 2e-5', '10 + b * 2e-5')}, ${\degrees('20 + a * 2e-5 + (c - 0.5) * size', '10 + b * 2e-5 + (d - 0.5) * size')})
	WHEN 2 THEN ST_MakeLine(ARRAY[${\degrees('x', 'sign(y) * (90 - b * b * 5)')}, ${\degrees('x * c', 'sign(y) * (90 - d * 5)')}, ${\degrees('a * 360 - 180', 'sign(y) * 87')}])
	WHEN 3 THEN ST_MakeLine($start, CASE WHEN a < 0.2 THEN ${\degrees('x + CASE WHEN x < 0 THEN 179 ELSE -179 END + b', '0.5 - y')}
		ELSE ${\degrees('a * 360 - 180', 'b * 170 - 85')} END)
	WHEN 4 THEN ST_MakeLine(${\degrees('180 - a * size', 'y')}, ${\degrees('-180 + b * size', 'y * 0.999 + c * size')})
	WHEN 5 THEN ST_MakeLine($start, $start)
	ELSE ST_MakeLine(ARRAY[$start, ${\degrees('x * 0.9999', 'y + a * 0.05')}, ${\degrees('x * 0.9998', 'y * 0.9999 - b * 0.05')}, ${\degrees('x', 'y * 0.999')}]) END};

$node->safe_psql('postgres', qq{
	SET client_min_messages = error;
	CREATE EXTENSION postgis;
	CREATE EXTENSION IF NOT EXISTS geonn;
	SELECT setseed($seed / 1e6);
	CREATE FUNCTION numbers(integer) RETURNS TABLE (id integer, form integer, x float8, y float8, a float8, b float8, c float8, d float8, size float8) LANGUAGE sql
		AS 'SELECT i, (random() * 9)::integer, random() * 350 - 175, random() * 170 - 85, random(), random(), random(), random(), 10 ^ (-3 - random() * 9) FROM generate_series(1, \$1) i';
	CREATE TABLE lines AS SELECT id, id % 7 AS kind, CASE WHEN id % 40 = 7 THEN NULL WHEN id % 40 = 8 THEN ST_GeomFromText('LINESTRING EMPTY', 4326)
		ELSE $kind_of_lines END::geometry(LineString, 4326) AS geom FROM numbers(300);
	INSERT INTO lines SELECT id + 300, kind, geom FROM lines WHERE id < 30;
	ALTER TABLE lines ADD g geography(LineString);
	UPDATE lines SET g = geom::geography;
	CREATE TABLE several AS SELECT a.id, a.kind, ST_Multi(ST_Collect(a.geom, b.geom))::geometry(MultiLineString, 4326) AS geom,
		ST_Multi(ST_Collect(a.geom, b.geom))::geography(MultiLineString) AS g FROM lines a JOIN lines b ON b.id = a.id + 3 WHERE a.id < 200;
	CREATE TABLE points AS SELECT id, kind, ST_Multi(ST_Points(geom))::geometry(MultiPoint, 4326) AS geom, ST_Multi(ST_Points(geom))::geography(MultiPoint) AS g FROM lines;
	CREATE DOMAIN way AS geography(LineString);
	CREATE DOMAIN flat_way AS geometry(LineString, 4326);
	CREATE TABLE domains AS SELECT id, kind, geom::flat_way AS geom, g::way AS g FROM lines;
	CREATE TABLE few AS SELECT * FROM lines WHERE geom IS NULL OR ST_IsEmpty(geom) OR id IN (1, 2, 3);
	CREATE VIEW viewed AS SELECT * FROM lines WHERE kind <> 5;
	CREATE TABLE far AS SELECT id, kind, ST_Translate(geom, 0, 0) AS geom, g FROM lines WHERE ST_Y(ST_StartPoint(geom)) > 0 AND abs(ST_X(ST_StartPoint(geom))) < 20;
	ALTER TABLE far ALTER geom TYPE geometry(LineString, 4326);
	CREATE TABLE o AS SELECT id, id % 7 AS kind, CASE WHEN id % 50 = 7 THEN ST_GeomFromText('POINT EMPTY', 4326) WHEN id % 50 = 8 THEN NULL WHEN form < 3 THEN
		${\degrees('20 + a * 2e-5 + (c - 0.5) * size', '10 + b * 2e-5 + (d - 0.5) * size')} WHEN form = 3 THEN ${\degrees('x', 'sign(y) * (90 - a * a * 3)')} ELSE $start END AS geom FROM numbers(80);
	INSERT INTO o SELECT id + 200, kind, ST_StartPoint(geom) FROM lines WHERE id % 9 = 1;
	INSERT INTO o SELECT id + 2000, kind, ST_LineInterpolatePoint(geom, 0.3) FROM lines WHERE id % 9 = 2;
	ALTER TABLE o ALTER geom TYPE geometry(Point, 4326), ADD g geography(Point);
	UPDATE o SET g = geom::geography;
	ANALYZE;
});

sub query
{
	my $distance = pick('o.g <-> r.g', 'r.g <-> o.g', 'o.geom::geography <-> r.g', 'r.geom::geography <-> o.g');
	my $more = pick('', ', r.id', ', r.id', ', r.kind DESC, r.id', ', abs(r.id - o.id), r.id');
	my $columns = $more eq '' ? 'r.geom IS NULL AS without' : pick('r.id', 'r.*', 'r.id, o.id + r.id AS sum');
	my $from = pick('lines', 'lines', 'lines', 'several', 'points', 'few', 'viewed', 'far', 'domains');
	my $where = pick('', '', '', 'WHERE r.kind < 4', 'WHERE r.id <> o.id', 'WHERE r.kind = o.kind', 'WHERE r.g IS NOT NULL AND r.id <> o.id');
	my $limit = 'LIMIT ' . pick(1, 1, 1, 2, 5, 20, 400) . pick('', '', '', ' OFFSET 1', ' OFFSET 3');
	my $rest = "FROM $from r $where ORDER BY $distance$more $limit";

	return "SELECT o.id AS own, (SELECT r.id $rest) AS ref FROM o" if $more ne '' && $limit =~ /^LIMIT 1\b/ && rand() < 0.3;
	return 'SELECT o.id AS own, ' . ($more eq '' ? 'n.d' : 'n.*') . " FROM o LEFT JOIN LATERAL (SELECT $columns, $distance AS d $rest) n ON true";
}

my $differences = q{SELECT 'differences: ' || count(*)
	FROM ((SELECT a::text FROM a EXCEPT ALL SELECT b::text FROM b) UNION ALL (SELECT b::text FROM b EXCEPT ALL SELECT a::text FROM a)) x};
my $with_node = 0;
my @differ;

for (1 .. $statements)
{
	my $query = query();
	my $settings = join("\n", map { "SET $_;" } 'work_mem = ' . pick(64, 4096), 'max_parallel_workers_per_gather = ' . pick(0, 0, 2));
	my $out = $node->safe_psql('postgres', qq{
		SET client_min_messages = error;
		SET geonn.enable_sql_joins = on;
		SET enable_nestloop = off;
		$settings
		CREATE TEMP TABLE a AS $query;
		EXPLAIN $query;
		SET geonn.enable_sql_joins = off;
		SET max_parallel_workers_per_gather = 0;
		CREATE TEMP TABLE b AS $query;
		$differences;
	});

	$with_node++ if $out =~ /geonn subquery join/;
	push @differ, "$settings $query" if $out !~ /differences: 0$/;
}
is(join("\n", @differ), '', "the rows of $statements random statements are those without geonn");
cmp_ok($with_node, '>', 0.4 * $statements, "many of them, $with_node, have the node");

# Of two lines, geonn_distance() and <-> have another one for the nearest: in the first pair a line of a micrometre, whose end is 9 cm away
# and the other line 7 cm, as PostGIS takes the point for its own foot; in the second the point is a quarter of the equator away from all of a
# great circle, of which PostGIS's foot is half a millimetre too far.
for my $pair ([ 'POINT(20 10.0000008)', 'LINESTRING(20 10, 20 10.00000000001)', "'LINESTRING(20.00000064 10.0000008, 20.00000064 10.0001)'" ],
	[ 'POINT(26.270568322849762 89.99986717494662)', 'LINESTRING(0 0, 50 0.000051870289186)', q{(SELECT format('LINESTRING(%1$s %2$s, %1$s %2$s)', ST_X(g), ST_Y(g) -
		degrees((geonn_distance(ST_Y(g), ST_X(g), 'LINESTRING(0 0, 50 0.000051870289186)'::geography) + 0.0002) / 6371008.7714150598))
		FROM (SELECT 'POINT(26.270568322849762 89.99986717494662)'::geometry AS g) p)} ])
{
	my ($point, $one, $other) = @$pair;
	my $of_geonn = q{SELECT id FROM pair ORDER BY geonn_distance((SELECT ST_Y(g::geometry) FROM beside LIMIT 1), (SELECT ST_X(g::geometry) FROM beside LIMIT 1), g) LIMIT 1};
	my $nearest = 'SELECT DISTINCT n.id FROM beside o, LATERAL (SELECT r.id FROM pair r ORDER BY o.g <-> r.g LIMIT 1) n';
	my $plan = $node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS pair, beside;
		CREATE TABLE pair AS SELECT 1 AS id, '$one'::geography(LineString) AS g UNION ALL SELECT 2, $other\::geography(LineString);
		CREATE TABLE beside AS SELECT '$point'::geography(Point) AS g FROM generate_series(1, 1000);
		ANALYZE;
		SET geonn.enable_sql_joins = on;
		SET enable_nestloop = off;
		EXPLAIN $nearest;
	});
	my ($with, $without) = map { $node->safe_psql('postgres', "SET enable_nestloop = off; SET geonn.enable_sql_joins = $_; $nearest") } qw(on off);

	like($plan, qr/geonn subquery join/, "$point: the node");
	is($with, $without, 'has the line that is the nearest for PostGIS');
	isnt($node->safe_psql('postgres', $of_geonn), $without, 'which is not the nearest by geonn_distance()');
}

# References that do not fit in memory are read again for each outer row, whose point must outlive that.  The plan has been
# made when the limit comes.
$node->safe_psql('postgres', 'CREATE TABLE spots AS SELECT id, ST_StartPoint(geom)::geography(Point) AS g FROM lines WHERE NOT ST_IsEmpty(geom); ANALYZE spots');
for my $from ('lines', 'spots')
{
	my $statement = "SELECT o.id AS own, n.* FROM o LEFT JOIN LATERAL (SELECT r.id, o.g <-> r.g AS d, ST_AsText(o.g) AS place FROM $from r ORDER BY o.g <-> r.g, r.id LIMIT 3) n ON true";
	my ($out, $said);

	$node->psql('postgres', qq{
		SET plan_cache_mode = force_generic_plan;
		SET enable_nestloop = off;
		SET geonn.enable_sql_joins = off;
		CREATE TEMP TABLE b AS $statement;
		SET geonn.enable_sql_joins = on;
		PREPARE searched AS $statement;
		EXPLAIN EXECUTE searched;
		SET geonn.session_memory_limit = '4kB';
		CREATE TEMP TABLE a AS EXECUTE searched;
		$differences;
	}, stdout => \$out, stderr => \$said);
	like($out, qr/geonn subquery join.*^differences: 0$/ms, "$from: the rows are those without geonn where references are read again");
	like($said, qr/WARNING: .*reads the references .* again for each row/, 'and they were');
}

# ---- which statements have the node ----

my @cases = (
	[ 1, 'lines', 'o.g <-> r.g' ],
	[ 1, 'points', 'r.g <-> o.g' ],
	[ 1, 'domains', 'r.g <-> o.g' ],
	[ 1, 'domains', 'o.g <-> r.geom::geography' ],
	[ 1, 'several', 'o.geom::geography <-> r.geom::geography' ],
	[ 0, 'lines', 'ST_Distance(o.g, r.g, false)', 'only <-> measures lines' ],
	[ 0, 'lines', 'ST_Distance(o.g, r.g)', 'only <-> measures lines' ],
	[ 0, 'lines', 'ST_DistanceSphere(o.geom, r.geom)', 'only <-> measures lines' ],
	[ 0, 'lines', 'o.geom <-> r.geom', 'its distance is in degrees of the plane' ],
	[ 0, 'lines', 'ST_Distance(r.geom, o.geom)', 'its distance is in degrees of the plane' ],
	[ 0, 'o r', 'o.geom <-> r.geom', 'its distance is in degrees of the plane' ],
	[ 1, 'polygons', 'o.g <-> r.g' ],
	[ 1, 'anything', 'o.g <-> r.g' ],
	[ 0, 'areas', 'o.g <-> r.g', 'too long for points' ],
	[ 0, 'lines', 'r.g <-> ST_MakeLine(o.geom, o.geom)::geography', 'do not say that they are points' ],
	[ 0, 'lines r WHERE ST_DWithin(o.g, r.g, 1e5)', 'o.g <-> r.g', 'ST_DWithin does not measure lines' ]);

$node->safe_psql('postgres', q{
	CREATE TABLE polygons AS SELECT id, ST_Buffer(geom, 0.1)::geography(Polygon) AS g FROM lines WHERE id < 50 AND abs(ST_YMax(geom)) < 60;
	CREATE TABLE anything AS SELECT id, ST_MakeLine(ST_StartPoint(geom), ST_EndPoint(geom))::geography AS g FROM lines; -- as short as points may be
	ALTER TABLE anything ALTER g TYPE geography;
	CREATE TABLE areas AS SELECT id, g::geography AS g FROM polygons;
	ALTER TABLE areas ALTER g TYPE geography;
	ANALYZE;
});
for my $case (@cases)
{
	my ($is_taken, $from, $distance, $reason) = @$case;
	my ($out, $said);

	$from .= ' r' if $from !~ / r\b/;
	$node->psql('postgres', "SET client_min_messages = debug1; SET enable_nestloop = off; SET geonn.enable_sql_joins = on;
		EXPLAIN SELECT o.id, n.id FROM o, LATERAL (SELECT r.id FROM $from ORDER BY $distance, r.id LIMIT 1) n", stdout => \$out, stderr => \$said);
	($is_taken ? \&like : \&unlike)->($out, qr/geonn subquery join/, "$from, $distance: " . ($is_taken ? 'taken' : 'left to PostgreSQL'));
	like($said, qr/leaves the nearest-neighbour subquery "n" to PostgreSQL: .*\Q$reason\E/, 'and DEBUG1 says why') if !$is_taken;
}

done_testing();
