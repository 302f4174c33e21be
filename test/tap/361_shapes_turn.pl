# Observations in a column of geography whose type names no kind: points, and from some row on shapes.  The answer is that of
# geonn_distance(), wherever the first shape comes: among few rows that the session could answer alone, in a later batch, in
# a query, by parallel workers, with references that are points, shapes, or turn to shapes themselves, in a session that has
# met shapes in the column before and in a new one, and in a cursor.  Caches of such tables, and of typed ones, have the rows of
# a fresh join after each refresh, however both sides have changed.
#
# The seed is in the names of the tests; GEONN_SHAPES_SEED gives it again.
#
# short form: 6 of 60 tables of each kind, 12 of 120 refreshes
#
# needs: postgis
# rooms: join points client cache

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../fuzz";

use Geonn;
use Random;
use Test::More;

my $tables = $ENV{GEONN_LONG} ? 60 : 6;
my $refreshes = $ENV{GEONN_LONG} ? 120 : 12;
my $seed = $ENV{GEONN_SHAPES_SEED} // int(rand(1_000_000));
# memory that has been given back has other contents, lest something that is read from there go unnoticed
$ENV{MALLOC_PERTURB_} = 165;
my $node = new_server('shapes_turn');

$node->safe_psql('postgres', q{
	CREATE EXTENSION postgis;
	CREATE FUNCTION place() RETURNS geometry LANGUAGE sql AS $$ SELECT ST_MakePoint(random() * 10, random() * 10) $$;
	CREATE FUNCTION shape() RETURNS geography LANGUAGE sql AS $$
		SELECT CASE (random() * 3)::int
			WHEN 0 THEN ST_MakeLine(p, ST_Translate(p, random(), random()))
			WHEN 1 THEN ST_MakeEnvelope(ST_X(p), ST_Y(p), ST_X(p) + 0.01 + random(), ST_Y(p) + 0.01 + random())
			WHEN 2 THEN ST_Collect(p, ST_MakeLine(ST_Translate(p, 0.1, 0), ST_Translate(p, 0.1, random())))
			ELSE ST_Segmentize(ST_MakeEnvelope(ST_X(p), ST_Y(p), ST_X(p) + 0.2, ST_Y(p) + 0.2), 0.01) END::geography
		FROM (SELECT place() OFFSET 0) v (p) $$;
	CREATE FUNCTION differ(call text, expected text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		answer text;
	BEGIN
		EXECUTE format('WITH a AS MATERIALIZED (%s), b AS MATERIALIZED (%s)
			SELECT (SELECT count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) d)', call, expected) INTO answer;
		RETURN answer;
	END $$});

# the SQL that compares a call with what geonn_distance() says, of the observations from this id on
sub comparison
{
	my ($call, $least) = @_;

	return 'SELECT differ($call$' . $call . '$call$, $expected$SELECT * FROM expected WHERE obs_id >= ' . ($least // 0) . '$expected$)';
}

foreach my $table (1 .. $tables)
{
	begin_case($seed, $table);
	my $rows = pick(5, 40, 64, 65, 300, 5000);
	my $first = 1 + int(rand($rows));
	my $references = pick('points', 'lines', 'mixed', 'turning');
	my $share = $rows > 300 ? 0.01 : pick(1, 0.5, 0.01);
	my $random = rand();
	my $k = pick(1, 3);
	my $call = "SELECT * FROM geonn_nearest('obs', 'ref', k => $k)";
	my $name = "seed $seed, table $table: shape $first of $rows, references are $references";

	$node->safe_psql('postgres', qq{
		SELECT setseed($random);
		DROP TABLE IF EXISTS obs, ref, expected;
		CREATE TABLE obs (id bigint, g geography);
		INSERT INTO obs SELECT i, CASE WHEN i = $first OR (i > $first AND random() < $share) THEN shape() WHEN random() < 0.02 THEN NULL ELSE place()::geography END
			FROM generate_series(1, $rows) i;
		CREATE TABLE ref (id bigint, g geography);
		INSERT INTO ref SELECT i, CASE '$references' WHEN 'points' THEN place()::geography WHEN 'lines' THEN shape()
			WHEN 'mixed' THEN CASE WHEN random() < 0.5 THEN shape() ELSE place()::geography END
			ELSE CASE WHEN i > 25 THEN shape() ELSE place()::geography END END FROM generate_series(1, 30) i;
		CREATE TABLE expected AS SELECT o.id AS obs_id, r.id AS ref_id, d FROM obs o, LATERAL (
			SELECT id, geonn_distance(o.g, ref.g) AS d FROM ref ORDER BY 2, 1 LIMIT $k) r WHERE o.g IS NOT NULL;
		ALTER TABLE obs SET (parallel_workers = 2)});
	is($node->safe_psql('postgres', comparison($call)), '0', $name);
	# the session knows the references, as points, before it meets the shape
	is($node->safe_psql('postgres', "CREATE TEMP TABLE few AS SELECT id, g FROM obs WHERE id < $first LIMIT 3; VACUUM ref;"
			  . "SELECT count(*) FROM geonn_nearest('few', 'ref');" x 3
			  . comparison($call) . ';' . comparison($call)) =~ s/.*\n(.*\n)/$1/sr, "0\n0", "$name, twice in a session");
	is($node->safe_psql('postgres', comparison("SELECT * FROM geonn_nearest_sql('SELECT * FROM obs ORDER BY id', 'SELECT * FROM ref', k => $k, options => '{\"batch_rows\": 2}')")),
		'0', "$name, queries");
	my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';
	is($node->safe_psql('postgres', $parallel . comparison($call)), '0', "$name, by workers");
	is($node->safe_psql('postgres', "BEGIN; DECLARE c CURSOR FOR $call;" . 'FETCH 2 FROM c; MOVE ALL FROM c; COMMIT;' . comparison("$call WHERE obs_id >= $first", $first))
		  =~ s/.*\n//sr, '0', "$name, after a cursor, and of a part");
}

# a cache beside a join of the same arguments
my @caches = (
	[ 'near', "'obs', 'ref', k => 2", "SELECT obs_id, rank, ref_id, distance FROM geonn_nearest('obs', 'ref', k => 2, row_type => NULL::record) AS t (obs_id bigint, rank integer, ref_id bigint, distance float8)" ],
	[ 'other', "'obs', 'obs', exclude_self => true", "SELECT obs_id, rank, ref_id, distance FROM geonn_nearest('obs', 'obs', exclude_self => true, row_type => NULL::record) AS t (obs_id bigint, rank integer, ref_id bigint, distance float8)" ],
	[ 'within', "'obs', 'ref', radius => 50000", "SELECT obs_id, rank, ref_id, distance FROM geonn_within('obs', 'ref', 50000, row_type => NULL::record) AS t (obs_id bigint, rank integer, ref_id bigint, distance float8)" ]);

foreach my $type ('geography', 'geography(Polygon)')
{
	begin_case($seed, length($type));
	my $polygon = "ST_MakeEnvelope(ST_X(p), ST_Y(p), ST_X(p) + 0.1, ST_Y(p) + random())::geography FROM (SELECT place() OFFSET 0) v (p)";
	my $anything = $type eq 'geography' ? 'SELECT CASE WHEN $shapes THEN shape() ELSE place()::geography END' : "SELECT $polygon";
	my $number = 1000;
	my @before = map { $_ =~ s/\$shapes/false/r } $anything;

	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS obs, ref;
		CREATE TABLE obs (id bigint PRIMARY KEY, g $type);
		CREATE TABLE ref (id bigint PRIMARY KEY, g geography);
		INSERT INTO obs SELECT i, (@before OFFSET 0 * i) FROM generate_series(1, 100) i;
		INSERT INTO ref SELECT i, place()::geography FROM generate_series(1, 100) i;
		VACUUM ANALYZE obs, ref});
	$node->safe_psql('postgres', "SELECT geonn_cache_create('$_->[0]', $_->[1])") foreach @caches;
	foreach my $refresh (1 .. $refreshes)
	{
		# points at first, then shapes on one side or both, and in the end points again
		my $phase = $refresh / $refreshes;
		my $obs = $anything =~ s/\$shapes/$phase > 0.25 && $phase < 0.9 ? 'random() < 0.3' : 'false'/er;
		my $ref = $phase > 0.5 ? 'shape()' : 'place()::geography';

		foreach (1 .. between(1, 4))
		{
			$number++;
			$node->safe_psql('postgres', pick(
				"INSERT INTO obs VALUES ($number, ($obs))", "INSERT INTO ref VALUES ($number, $ref)",
				"DELETE FROM obs WHERE id IN (SELECT id FROM obs ORDER BY random() LIMIT 2)", "DELETE FROM ref WHERE id IN (SELECT id FROM ref ORDER BY random() LIMIT 2)",
				"UPDATE obs SET g = ($obs) WHERE id IN (SELECT id FROM obs ORDER BY random() LIMIT 1)", "UPDATE ref SET g = $ref WHERE id IN (SELECT id FROM ref ORDER BY random() LIMIT 1)",
				'VACUUM obs, ref'));
		}
		$node->safe_psql('postgres', "DELETE FROM obs WHERE GeometryType(g::geometry) <> 'POINT'; DELETE FROM ref WHERE GeometryType(g::geometry) <> 'POINT'")
		  if $type eq 'geography' && $phase >= 0.9;

		# however the changes fell, one refresh has a polygon that asks, and may be incremental
		my $is_middle = $refresh == int(0.7 * $refreshes);
		my $mode = $is_middle ? 'auto' : pick('auto', 'incremental', 'full');

		$node->safe_psql('postgres', 'INSERT INTO obs VALUES (' . ++$number . ", (SELECT $polygon))") if $is_middle;

		is($node->safe_psql('postgres', "CALL geonn_refresh('$_->[0]', '$mode'); SELECT differ('SELECT obs_id, rank, ref_id, distance FROM $_->[0]', \$call\$$_->[2]\$call\$)"),
			'0', "seed $seed, $type, refresh $refresh, $mode: cache $_->[0]") foreach @caches;
	}
	like($node->safe_psql('postgres', q{SELECT string_agg(DISTINCT reason, ', ' ORDER BY reason) FROM geonn_cache_log WHERE name = 'other'}),
		qr/lines and polygons/, "$type: refreshes say that shapes are searched for again");
	$node->safe_psql('postgres', "SELECT geonn_cache_drop('$_->[0]')") foreach @caches;
}
is($node->safe_psql('postgres', q{
	CREATE TABLE asks (id bigint, g geography) WITH (parallel_workers = 2);
	INSERT INTO asks SELECT i, CASE WHEN i = 20000 THEN 'LINESTRING(1 1, 2 2)' ELSE ST_MakePoint(i % 1000 * 0.01, 1)::geography END FROM generate_series(1, 50000) i;
	CREATE TEMP TABLE own AS SELECT i::bigint AS id, ST_MakePoint(i * 0.1, 1)::geography(Point) AS g FROM generate_series(1, 500) i;
	SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off;
	SELECT count(*) FROM geonn_nearest('asks', 'own')}), 50000, 'workers may meet a line, where references are a temporary table, which they cannot read');
# few observations, which the session has read before it meets the first line among the references
foreach my $id ('i::bigint', "'id' || i || repeat('x', i % 40)")
{
	my $type = $id =~ /bigint/ ? 'bigint' : 'text';
	my $call = "SELECT count(*), sum(ref_id) FROM geonn_nearest('few', 'met', row_type => NULL::record) AS t (obs_id $type, ref_id bigint, distance float8)";

	is($node->safe_psql('postgres', qq{
		CREATE TABLE few AS SELECT $id AS id, ST_MakePoint(i * 0.1, 1)::geography AS g FROM generate_series(1, 50) i;
		CREATE TABLE met AS SELECT i::bigint AS id, ST_MakePoint(i * 0.01, 1)::geography AS g FROM generate_series(1, 5000) i;
		ALTER TABLE few ADD PRIMARY KEY (id);
		ALTER TABLE met ADD PRIMARY KEY (id);
		VACUUM ANALYZE few, met;
		$call; $call; $call; $call;
		INSERT INTO met VALUES (9000, 'LINESTRING(100 50, 101 50)');
		$call; $call;
		DROP TABLE few, met}), join("\n", ('50|12750') x 6), "ids of type $type: a line comes among references of which the session has a base");
}
$node->stop;
done_testing();
