
# The planner's estimates of a join's rows are within a factor of 3 of the truth: for cities,
# airports and points strewn evenly over the Earth, with distances, groups, windows, radiuses and
# conditions on the rows.  They are within a factor of 10 for even points, few of which have any of the
# crowded cities near, and for tables that were never analysed, whose samples have no candidate of most
# observations.
# rooms: plan
# check-all: counts the rows of joins of cities and airports for half a minute

use strict;
use warnings;

use Geonn;
use JSON::PP;
use Test::More;

my $data = $ENV{GEONN_DATA};
my $node = new_server('estimates', preload => 1, conf => "autovacuum = off\nmax_parallel_workers_per_gather = 0\njit = off");

# the demo's data, and points that are even
$node->safe_psql(
	'postgres', qq{
	CREATE TABLE city (city_id bigint PRIMARY KEY, name text, country text, population integer, lat float8, lon float8);
	CREATE TABLE airport (airport_id bigint PRIMARY KEY, ident text, name text, type text, country text, lat float8, lon float8);
	COPY city FROM PROGRAM 'gzip -dc $data/cities.csv.gz' (FORMAT csv, HEADER);
	COPY airport FROM PROGRAM 'gzip -dc $data/airports.csv.gz' (FORMAT csv, HEADER);
	SELECT setseed(0.5);
	CREATE TABLE even AS SELECT i AS id, i % 7 AS country, degrees(asin(2 * random() - 1)) AS lat, 360 * random() - 180 AS lon
	FROM generate_series(1, 100000) i;
	CREATE TABLE other AS SELECT i AS id, i % 7 AS country, degrees(asin(2 * random() - 1)) AS lat, 360 * random() - 180 AS lon
	FROM generate_series(1, 20000) i;
	-- moments and stays of a day, each at one place; and how far a row goes
	CREATE TABLE moment AS SELECT id, lat, lon, random() * 24 * interval '1 hour' + timestamptz '2026-01-01' AS t, random() * 600000 AS reach FROM even;
	CREATE TABLE stay AS SELECT id, lat, lon, tstzrange(t, t + interval '1 hour') AS t, random() * 1000000 AS reach
	FROM (SELECT *, random() * 24 * interval '1 hour' + timestamptz '2026-01-01' AS t FROM other) o;
	CREATE TABLE visit AS SELECT id, lat, lon, tstzrange(t, t + interval '1 second') AS t
	FROM (SELECT *, random() * 24 * interval '1 hour' + timestamptz '2026-01-01' AS t FROM other) o;
	CREATE VIEW of_even AS SELECT * FROM even;
	CREATE TYPE pair AS (obs_id bigint, ref_id bigint, distance float8, rank integer);
	VACUUM ANALYZE});

sub estimate
{
	my ($query) = @_;

	return decode_json($node->safe_psql('postgres', "EXPLAIN (FORMAT JSON) $query"))->[0]{Plan}{'Plan Rows'};
}

# columns that options name, beside others of the usual names that have no value, or that the user may not read
$node->safe_psql('postgres', q{
	CREATE TABLE named AS SELECT id, NULL::float8 AS lat, NULL::float8 AS lon, lat AS y, lon AS x, point(lon, lat) AS place FROM other;
	ANALYZE named;
	CREATE ROLE reader;
	GRANT SELECT (id, y, x) ON named TO reader;
	GRANT SELECT ON other TO reader});
foreach my $as ('', 'SET ROLE reader; ')
{
	like($node->safe_psql('postgres', qq{${as}EXPLAIN SELECT obs_id FROM geonn_nearest('named', 'other', options => '{"obs_lat": "y", "obs_lon": "x"}')}),
		qr/rows=20000 /, "${as}rows are those of the columns that options name");
}
like($node->safe_psql('postgres', q{EXPLAIN SELECT obs_id FROM geonn_nearest('named', 'other', options => '{"obs_geog": "place"}')}),
	qr/rows=20000 /, 'and so they are of a point');


# ... and that the planner cannot know, as options are computed by the executor, or come with it
$node->safe_psql('postgres', q{CREATE TABLE abroad AS SELECT id, lat AS breite, lon AS laenge FROM other; ANALYZE abroad});
like($node->safe_psql('postgres', $_), qr/rows=20000 /, 'rows of a table whose columns are unknown are those of the table')
  foreach q{EXPLAIN SELECT obs_id FROM geonn_nearest('abroad', 'other', options => jsonb_build_object('obs_lat', 'breite', 'obs_lon', 'laenge'))},
  q{SET plan_cache_mode = force_generic_plan; PREPARE near(jsonb) AS SELECT obs_id FROM geonn_nearest('abroad', 'abroad', options => $1);
	EXPLAIN EXECUTE near('{"obs_lat": "breite", "obs_lon": "laenge", "ref_lat": "breite", "ref_lon": "laenge"}')};

my @calls = (
	# within
	"geonn_within('city', 'airport', 10000)", "geonn_within('city', 'airport', 100000)",
	"geonn_within('airport', 'city', 10000)", "geonn_within('city', 'city', 1000)",
	"geonn_within('city', 'city', 30000)", "geonn_within('airport', 'airport', 100000)",
	"geonn_within('even', 'other', 3000)", "geonn_within('even', 'other', 300000)",
	"geonn_within('even', 'even', 10000)", "geonn_within('even', 'city', 30000)",
	"geonn_within('city', 'airport', 30000, keep_unmatched => true)",
	"geonn_within('airport', 'city', 20000, by => '{country}')",
	"geonn_within('even', 'other', 100000, by => '{country}')",
	"geonn_within('of_even', 'other', 100000)",
	# k
	"geonn_nearest('city', 'airport')", "geonn_nearest('city', 'airport', 5)",
	"geonn_nearest('city', 'city', 2, exclude_self => true)",
	"geonn_nearest('airport', 'city', 10, by => '{country}')",
	"geonn_nearest('even', 'other', 3, by => '{country}')",
	# windows and radiuses
	"geonn_nearest('moment', 'stay', overlaps => '{t}')",
	"geonn_nearest('moment', 'stay', 5, overlaps => '{t}', max_distance => 300000)",
	"geonn_nearest('moment', 'visit', overlaps => '{t}')",
	"geonn_within('moment', 'stay', 500000, overlaps => '{t}')",
	"geonn_within('moment', 'stay', 500000, overlaps => '{t}', keep_unmatched => true)",
	"geonn_within('moment', 'stay', NULL, options => '{\"obs_radius\": \"reach\"}')",
	"geonn_within('moment', 'stay', 300000, options => '{\"ref_radius\": \"reach\"}')",
	"geonn_within('moment', 'stay', NULL, overlaps => '{t}', options => '{\"obs_radius\": \"reach\", \"ref_radius\": \"reach\"}')",
	"geonn_nearest('moment', 'stay', 3, options => '{\"obs_radius\": \"reach\"}')",
	# max_distance
	"geonn_nearest('city', 'airport', max_distance => 30000)",
	"geonn_nearest('city', 'airport', 10, max_distance => 100000)",
	"geonn_nearest('airport', 'city', max_distance => 10000)",
	"geonn_nearest('even', 'other', max_distance => 10000)",
	"geonn_nearest('even', 'other', max_distance => 10000, keep_unmatched => true)",
	"geonn_nearest('even', 'other', 10, max_distance => 300000)",
	"geonn_nearest('city', 'city', exclude_self => true, max_distance => 3000)",
	"geonn_nearest('city', 'airport', by => '{country}', max_distance => 30000)",
	"geonn_nearest('even', 'city', max_distance => 30000, options => '{\"ref_lat\": \"lat\", \"ref_lon\": \"lon\"}')",
	# conditions on the rows
	"geonn_nearest('city', 'airport') WHERE distance < 30000",
	"geonn_nearest('even', 'other') WHERE distance > 100000",
	"geonn_nearest('city', 'airport', 5, row_type => NULL::pair) WHERE rank <= 2",
	"geonn_nearest('city', 'airport', 5, row_type => NULL::pair) WHERE rank = 3",
	"geonn_nearest('city', 'airport', 5, row_type => NULL::pair) WHERE 1 < rank",
	"geonn_nearest('city', 'airport', 5) WHERE obs_id = 3041563",
	"geonn_nearest('even', 'other') WHERE ref_id = 7",
	"geonn_nearest('even', 'other', max_distance => 30000, keep_unmatched => true) WHERE ref_id IS NULL",
	"geonn_nearest('even', 'other', max_distance => 30000, keep_unmatched => true) WHERE distance IS NOT NULL",
	"geonn_nearest('even', 'other') WHERE ref_id IS NULL",
	"geonn_nearest('even', 'other', 4, row_type => NULL::pair) WHERE obs_id = 7 AND rank <= 2");

foreach my $call (@calls)
{
	my $estimated = estimate("SELECT * FROM $call");
	my $actual = $node->safe_psql('postgres', "SELECT count(*) FROM $call");
	my $ratio = $estimated / ($actual || 1);

	note(sprintf('%6.2f = %d / %d', $ratio, $estimated, $actual));
	cmp_ok($ratio > 1 ? $ratio : 1 / $ratio, '<=', $call =~ /'even', 'city'/ ? 10 : 3, $call);
}

# ---- samples in which most observations have no candidate ----

# Each moment of one table has one reference: in tables of all orders, as those in the same order have the same moments
# at the same places.
$node->safe_psql(
	'postgres', q{
	CREATE FUNCTION moment(n float8) RETURNS timestamptz LANGUAGE SQL IMMUTABLE AS $$ SELECT timestamptz '2026-01-01' + n * interval '1 second' $$;
	SELECT setseed(0.5);
	CREATE TABLE place AS SELECT i AS id, degrees(asin(2 * random() - 1)) AS lat, 360 * random() - 180 AS lon, random() AS r, random() AS s
	FROM generate_series(1, 200000) i;
	CREATE TABLE fix AS SELECT id, lat, lon, tstzrange(moment(id), moment(id + 1)) AS t FROM place;
	CREATE TABLE fix_in_disorder AS SELECT * FROM fix ORDER BY lat;
	CREATE TABLE ask AS SELECT id, lat, lon, moment(2 * id) AS t FROM place WHERE id <= 100000;
	CREATE TABLE ask_in_disorder AS SELECT * FROM ask ORDER BY lat;
	-- within 1 % of all moments, and most windows are NULL
	CREATE TABLE around AS SELECT id, lat, lon, tstzrange(t - interval '2000 s', t + interval '2000 s') AS t FROM ask;
	CREATE TABLE seldom AS SELECT id, lat, lon, CASE WHEN r < 0.01 THEN t END AS t FROM around a JOIN place p USING (id, lat, lon);
	CREATE TABLE report AS SELECT id, lat, lon, moment(r * 200000) AS t FROM place;
	-- a budget that some, and one that few references are within
	CREATE TABLE buyer AS SELECT id, lat, lon, int4range(NULL, (r * 1000)::int) AS price FROM place WHERE id <= 100000;
	CREATE TABLE poor AS SELECT id, lat, lon, int4range(NULL, 1, '[]') AS price FROM place WHERE id <= 100000;
	CREATE TABLE offer AS SELECT id, lat, lon, (s * 1000)::int AS price FROM place;
	-- groups of 2, of 10 and of 100 references, and one that most observations lack; groups of one place each
	CREATE TABLE asker AS SELECT id, lat, lon, id % 100000 AS two, id % 20000 AS ten, id % 2000 AS hundred,
	    CASE WHEN r < 0.01 THEN id % 10 END AS rare, floor(lat) * 360 + floor(lon) AS cell FROM place WHERE id <= 100000;
	CREATE TABLE giver AS SELECT id, lat, lon, id % 100000 AS two, id % 20000 AS ten, id % 2000 AS hundred,
	    id % 10 AS rare, floor(lat) * 360 + floor(lon) AS cell FROM (SELECT lat, lon, row_number() OVER (ORDER BY s)::integer AS id FROM place) p});

my @asked = (
	(map { my $tables = $_; map { [ $tables, "overlaps => '{t}'", $_ ] } ', 5', ", 'Infinity'", ", 1000000", ', max_distance => 300000' }
		  "'ask', 'fix'", "'ask_in_disorder', 'fix'", "'ask', 'fix_in_disorder'", "'ask_in_disorder', 'fix_in_disorder'"),
	(map { [ "'around', 'report'", "overlaps => '{t}'", $_ ], [ "'seldom', 'report'", "overlaps => '{t}'", $_ ] } ', 5', ", 1000000", ', max_distance => 300000'),
	(map { [ "'buyer', 'offer'", "overlaps => '{price}'", $_ ], [ "'poor', 'offer'", "overlaps => '{price}'", $_ ] } ', 5', ", 100000"),
	(map { my $by = $_; map { [ "'asker', 'giver'", "by => '{$by}'", $_ ] } ', 5', ", 1000000", ', max_distance => 300000' } qw(two ten hundred rare cell)),
	(map { [ "'asker', 'giver'", "by => '{$_}'", ", 'Infinity'" ] } qw(two ten cell)));
foreach my $asked (@asked)
{
	my ($tables, $columns, $bound) = @$asked;
	my $call = ($bound =~ /5|max/ ? 'geonn_nearest' : 'geonn_within') . "($tables$bound, $columns)";
	my $estimated = estimate("SELECT * FROM $call");
	my $actual = $node->safe_psql('postgres', "SELECT count(*) FROM $call");
	my $ratio = $estimated / ($actual || 1);

	note(sprintf('%6.2f = %d / %d', $ratio, $estimated, $actual));
	cmp_ok($ratio > 1 ? $ratio : 1 / $ratio, '<=', 10, $call);
}

# ---- the plans above ----

# An index is asked for a few rows, and many are hashed, where the node of joins with the observations stands aside.
sub plan { return $node->safe_psql('postgres', "EXPLAIN (COSTS OFF) $_[0]") }
my $joined = "SELECT c.name FROM geonn_nearest('city', 'airport', max_distance => %s) n JOIN city c ON c.city_id = n.obs_id + 0";
like(plan(sprintf($joined, '10')), qr/Nested Loop/, 'few cities are within 10 m of an airport');
like(plan(sprintf($joined, '100000')), qr/Hash Join/, 'many are within 100 km');

# ---- who may see what ----

$node->safe_psql(
	'postgres', q{
	CREATE ROLE visitor;
	GRANT SELECT (id) ON even TO visitor;
	GRANT SELECT ON other TO visitor;
	CREATE TABLE policed AS TABLE other;
	ALTER TABLE policed ENABLE ROW LEVEL SECURITY;
	GRANT SELECT ON policed TO visitor});
my $all = estimate("SELECT * FROM geonn_within('other', 'other', 100000)");
is($node->safe_psql('postgres', "SET ROLE visitor; EXPLAIN SELECT * FROM geonn_within('other', 'policed', 100000)") =~ /rows=$all /,
	'', 'points of a table with a policy are not sampled for those that it is about');
is($node->safe_psql('postgres', "EXPLAIN SELECT * FROM geonn_within('even', 'other', 100000); SET ROLE visitor; EXPLAIN SELECT * FROM geonn_within('even', 'other', 100000)")
	=~ /rows=(\d+) .*rows=\1 /s, '', 'nor columns for those that may not read them');

# ---- the sample follows the table ----

$node->safe_psql('postgres', 'CREATE TABLE moved AS SELECT id, lat, lon FROM even WHERE id <= 5000; ANALYZE moved');
my ($before, $after) = split(/\n/, $node->safe_psql('postgres', q{
	CREATE FUNCTION rows_of(query text) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE plan json; BEGIN
		EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan; RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows'; END $$;
	SELECT rows_of($$SELECT * FROM geonn_within('moved', 'moved', 1000)$$);
	BEGIN; TRUNCATE moved; INSERT INTO moved SELECT i, 1, 1 FROM generate_series(1, 5000) i;
	SELECT rows_of($$SELECT * FROM geonn_within('moved', 'moved', 1000)$$); COMMIT}));
cmp_ok($after, '>', 100 * $before, 'a table that is filled anew is sampled anew');

# ---- nor is it taken for one in which its columns have another purpose ----

my $by = q{EXPLAIN SELECT * FROM geonn_within('numbered', 'numbered', 1000000, by => '{country}')};
my ($of_groups) = $node->safe_psql('postgres', qq{
	CREATE TABLE numbered AS SELECT id, lat, lon, country::float8 AS country FROM other; ANALYZE numbered;
	$by}) =~ /rows=(\d+) /;
like($node->safe_psql('postgres', qq{
	SELECT rows_of(\$\$SELECT * FROM geonn_within('numbered', 'numbered', 1000000, options => '{"ref_radius": "country"}')\$\$); $by}),
	qr/rows=$of_groups /, 'a column that was sampled as radius is sampled anew to join by');

done_testing();
