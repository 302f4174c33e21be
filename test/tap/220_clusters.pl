
# geonn_cluster has the clusters of its definition, which is plain SQL over geonn_within: of random points with ids of several
# types, keys and windows, and of points exactly at the radius of each other. It is a plan node with WHERE and LIMIT, finds kept
# points again, and says what is wrong with an argument.
#
# The seed is the environment's SEED, else another one each day.
#
# rooms: join plan engine/cpu/clusters

use strict;
use warnings;

use Geonn;
use Test::More;

my $seed = $ENV{SEED} // int(time / 86400);
my $rounds = 40;
note("seed: $seed");
srand($seed);

my $node = new_server('clusters', preload => 1, conf => "jit = off\nautovacuum = off\nmax_parallel_workers_per_gather = 0");

sub query
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

sub error_of
{
	my ($sql) = @_;
	my ($status, $output, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");

	return $error;
}

# ---- the definition ----

# The rows of geonn_cluster with these arguments, of points that are each other's neighbours as geonn_within has it.
sub definition
{
	my ($table, $radius, $min_points, $conditions) = @_;

	return qq{
		WITH RECURSIVE pair AS MATERIALIZED (
			SELECT obs_id AS a, ref_id AS b, distance FROM geonn_within('$table', '$table', $radius$conditions, row_type => NULL::mine)),
		core AS MATERIALIZED (SELECT a FROM pair GROUP BY a HAVING count(*) >= $min_points),
		reached AS (SELECT a AS start, a FROM core UNION
			SELECT r.start, p.b FROM reached r JOIN pair p ON p.a = r.a JOIN core c ON c.a = p.b),
		least AS (SELECT a, (array_agg(start ORDER BY start))[1] AS id FROM reached GROUP BY a),
		numbered AS MATERIALIZED (SELECT a, dense_rank() OVER (ORDER BY id) AS cluster FROM least),
		border AS (SELECT DISTINCT ON (p.a) p.a, n.cluster FROM pair p JOIN numbered n ON n.a = p.b
			WHERE NOT EXISTS (SELECT FROM core c WHERE c.a = p.a) ORDER BY p.a, p.distance, p.b)
		SELECT p.a AS id, coalesce(n.cluster, b.cluster) AS cluster,
			CASE WHEN n.a IS NOT NULL THEN 'core' WHEN b.a IS NOT NULL THEN 'border' ELSE 'noise' END AS kind
		FROM (SELECT DISTINCT a FROM pair) p LEFT JOIN numbered n USING (a) LEFT JOIN border b USING (a)};
}

# some random SQL for a point's place: a lattice whose steps are radiuses, spots, or the pole and the antimeridian
my @places = (
	[ 'floor(random() * 6) / 100', 'floor(random() * 6) / 100', 'geonn_distance(0, 0, 0.01, 0)' ],
	[ '52 + floor(random() * 4) / 50 + random() / 300', '13 + floor(random() * 3) / 50 + random() / 300', '100 + random() * 300' ],
	[ '90 - random() ^ 2', 'random() * 360 - 180', '10000 * random() + 1' ],
	[ 'random() / 10', '180 - random() / 10 * (floor(random() * 2) * 2 - 1)', 'random() * 3000 + 1' ]);
my @ids = ([ 'bigint', 'i * 7 % 401' ], [ 'integer', '-i' ], [ 'text', "md5(i::text) COLLATE \"C\"" ], [ 'uuid', "md5(i::text)::uuid" ]);
my @conditions = ('', ", by => '{k}'", ", overlaps => '{w}'", ", by => '{k, f}', overlaps => '{w}'", ", metric => 'spheroid'");

my $wrong = 0;
for my $round (1 .. $rounds)
{
	my ($latitude, $longitude, $radius) = @{ $places[ int(rand(@places)) ] };
	my ($type, $id) = @{ $ids[ $round % @ids ] };
	my $condition = $conditions[ int(rand(@conditions)) ];
	my $min_points = 1 + int(rand(2 + rand(6)));
	my $suffix = $type eq 'text' || $type eq 'uuid' ? "_$type" : '';
	my $count = 1 + int(rand(140));
	my $seed_of_round = rand(2) - 1;

	$radius = query("SELECT setseed($seed_of_round); SELECT $radius") =~ s/.*\n//sr;
	my ($differences, $rows) = split /\|/, query(qq{
		SET client_min_messages = error;
		DROP TABLE IF EXISTS point;
		DROP TYPE IF EXISTS mine;
		SELECT setseed($seed_of_round) \\g /dev/null
		CREATE TABLE point AS SELECT ($id)::$type AS id, $latitude AS lat, $longitude AS lon, nullif((random() * 3)::integer, 3) AS k,
			CASE WHEN random() < 0.95 THEN 'here' END AS f, int4range(a, a + (random() * 9)::integer, '[)') AS w
			FROM generate_series(1, $count) i, LATERAL (SELECT (random() * 20 + 0 * i)::integer AS a) a ORDER BY random();
		CREATE TYPE mine AS (obs_id $type, ref_id $type, distance float8);
		WITH found AS (SELECT * FROM geonn_cluster('point', $radius, $min_points$condition, row_type => NULL::geonn_clustered$suffix)),
		right_ones AS (@{[ definition('point', $radius, $min_points, $condition) ]})
		SELECT (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE right_ones) f) + (SELECT count(*) FROM (TABLE right_ones EXCEPT ALL TABLE found) r),
			(SELECT count(*) FROM found)});
	next if $differences == 0;
	$wrong++;
	diag("$count points at ($latitude, $longitude), ids $type, radius $radius, min_points $min_points$condition: $differences differences of $rows rows");
}
is($wrong, 0, 'rows are those of the definition');

# ---- what is asked ----

query(q{
	CREATE TABLE stop (id integer PRIMARY KEY, line text, lat float8, lon float8);
	INSERT INTO stop VALUES (7, 'a', 52.5, 13.4), (3, 'a', 52.5001, 13.4), (5, 'b', 52.5002, 13.4), (1, 'b', 48.1, 11.5),
		(2, 'b', 48.1001, 11.5), (9, 'a', 10, 10), (4, NULL, 48.1, 11.5)});
my $rows = "1|1|core\n2|1|core\n3|2|core\n4|1|core\n5|2|core\n7|2|core\n9||noise";
is(query(q{SELECT * FROM geonn_cluster('stop', 15, 2)}), $rows, 'rows come in the order of ids');
is(query(q{SELECT (geonn_cluster('stop', 15, 2)).*}), $rows, 'in a SELECT list');
is(query(q{SELECT * FROM geonn_cluster_sql('SELECT id, lat, lon FROM stop', 15, 2)}), $rows, 'of a query');
is(query(q{SELECT * FROM geonn_cluster('stop', 15)}) =~ s/9\|3\|core/9||noise/r, $rows, 'with min_points 1 no point is noise');
is(query(q{SELECT * FROM geonn_cluster('stop', 15, 3)}), "1|1|core\n2|1|core\n3|2|core\n4|1|core\n5|2|border\n7|2|border\n9||noise",
	'border points are of the cluster of the nearest core point');
is(query(q{SELECT * FROM geonn_cluster('stop', 15, 2, by => '{line}')}), "1|1|core\n2|1|core\n3|2|core\n5||noise\n7|2|core\n9||noise",
	'neighbours have one key, and a point without a key has no row');
is(query(q{SELECT kind, count(*) FROM geonn_cluster('stop', 15, 3) GROUP BY 1 ORDER BY 1}), "border|2\ncore|4\nnoise|1", 'ids are not needed');
is(query(q{SELECT c FROM geonn_cluster('stop', 15, 2) AS c WHERE cluster = 2 LIMIT 1}), '(3,2,core)', 'whole rows');
is(query(q{SELECT * FROM geonn_cluster('stop', 15, 2, row_type => NULL::record) AS t(kind text, cluster integer) LIMIT 1}), 'core|1', 'columns in any order');
is(query(q{SELECT count(*) FROM geonn_cluster_sql('SELECT id, lat, lon FROM stop WHERE false', 15)}), 0, 'no points');
is(query(q{SELECT count(*), max(cluster) FROM geonn_cluster_sql('SELECT i AS id, 1.5 AS lat, 2.5 AS lon FROM generate_series(1, 100000) i', 1, 100000)}),
	'100000|1', 'many at one place, in more batches than one');
is(query(q{PREPARE near(regclass, float8, integer) AS SELECT count(DISTINCT cluster) FROM geonn_cluster($1, $2, $3); EXECUTE near('stop', 15, 2)}), 2, 'parameters');

my $plan = query(q{EXPLAIN (COSTS OFF) SELECT id FROM geonn_cluster('stop', 15, 2) WHERE kind = 'core'});
like($plan, qr/Custom Scan \(geonn join\)\n\s+Filter: .*\n\s+Function: geonn_cluster\n\s+Points: stop/, 'a plan node');
like(query(q{EXPLAIN SELECT id FROM geonn_cluster('stop', 15, 2)}), qr/rows=(7|1\d{3})\b/, 'the planner expects a row of each point');
like(query(q{EXPLAIN (ANALYZE, VERBOSE, TIMING OFF) SELECT id FROM geonn_cluster('stop', 15, 2)}), qr/by index/, 'EXPLAIN ANALYZE says which way it went');

# ---- kept points ----

query('CREATE TABLE kept AS SELECT i AS id, (i % 100) / 1000.0 AS lat, (i / 100) / 1000.0 AS lon FROM generate_series(0, 19999) i; VACUUM kept');
my $summary = q{SELECT count(*), count(DISTINCT cluster), sum(id * cluster), count(*) FILTER (WHERE kind = 'border') FROM geonn_cluster('kept', 120, 4)};
my $first = query($summary);
is(query($summary), $first, 'the engine keeps the points for the next call');
like(query("EXPLAIN (ANALYZE, COSTS OFF) $summary"), qr/kept/i, 'and EXPLAIN says so');
query('DELETE FROM kept WHERE lat = 0.05');
is(query($summary), query($summary =~ s/geonn_cluster\('kept'/geonn_cluster_sql('TABLE kept'/r), 'a change shows');
isnt(query($summary), $first, 'and divides clusters');
my ($status, $output, $error) = $node->psql('postgres',
	q{SET statement_timeout = '1ms'; SELECT count(*) FROM geonn_cluster_sql('SELECT i AS id, random() AS lat, random() AS lon FROM generate_series(1, 300000) i', 2000, 500)});
like($error, qr/canceling statement due to statement timeout/, 'a call is cancelled');
is(query(q{SELECT * FROM geonn_cluster('stop', 15, 2)}), $rows, 'and later ones go on');

# ---- limits ----

query('CREATE TABLE many AS SELECT i AS id, random() AS lat, random() AS lon FROM generate_series(1, 20000) i; VACUUM many');
my ($taken, $needed) = (0, 0);
for my $limit (map { 64 * $_ } 1 .. 100)
{
	my $said = error_of("SET geonn.session_memory_limit = '$limit kB'; SELECT count(*) FROM geonn_cluster('many', 100)");

	$taken++ if $said =~ /not enough memory for the references of/;
	next if $said !~ /ERROR:  53400: not enough memory for the clusters of relation "many": (\d+) kB needed, and geonn.session_memory_limit is $limit kB\nDETAIL:  Finding clusters of its points takes (\d+) kB; .*\nHINT:  Find the clusters of fewer points at a time/;
	$needed++ if $1 > $limit && $2 == 254;
}
cmp_ok($taken, '>', 0, 'points that are too many for the limit are not read');
cmp_ok($needed, '>=', 3, 'nor are their clusters found, if there is no room for 13 bytes more each');
query(q{SET geonn.log_min_duration = 0; SELECT count(*) FROM geonn_cluster('stop', 15)});
like(Geonn::slurp($node->logfile), qr/geonn_cluster\(public\.stop, radius => 15\): rows=7 /, 'the log names the points once');

# ---- what is wrong ----

like(error_of("SELECT geonn_cluster('stop', $_)"), qr/ERROR:  22023: radius is out of range: .*\nDETAIL:  .*above 0, and at most .* 20015114\./, "radius $_")
  foreach '0', '-1', "'NaN'", "'Infinity'", '20015115';
like(error_of("SELECT geonn_cluster('stop', 1, $_)"), qr/ERROR:  22023: min_points is out of range: $_\n/, "min_points $_") foreach 0, -5;
like(error_of("SELECT geonn_cluster($_)"), qr/ERROR:  22004: argument "\w+" of geonn_cluster is NULL\nHINT: /, "NULL: $_")
  foreach q{NULL, 1}, q{'stop', NULL}, q{'stop', 1, NULL};
like(error_of(q{SELECT geonn_cluster_sql(NULL, 1)}), qr/ERROR:  22004: argument "points_sql" of geonn_cluster_sql is NULL\n/, 'NULL: a query');
like(error_of(q{SELECT geonn_cluster('stop', 1, by => '{lane}')}), qr/ERROR:  42703: .*lane/, 'an unknown column');
like(error_of(q{SELECT geonn_cluster('stop', 1, options => '{"radius": "lat"}')}), qr/ERROR:  22023: option "radius" is not one of this function's/,
	'points have no radiuses');
like(error_of(q{SELECT * FROM geonn_cluster('stop', 1, row_type => NULL::geonn_pair)}), qr/ERROR:  42703: row_type has a column "obs_id", which geonn does not know\n.*id, cluster and kind|ERROR:  42703: row_type has a column "obs_id".*/,
	'columns of other rows');
like(error_of(q{SELECT * FROM geonn_cluster_sql('SELECT id::text, lat, lon FROM stop', 1)}), qr/HINT:  Pass row_type => NULL::geonn_clustered_text\./, 'ids of another type');
like(error_of(q{SELECT count(*) FROM geonn_cluster_sql('SELECT 1 AS id, 95 AS lat, 0 AS lon UNION ALL SELECT 2, 1, 1', 1)}), qr/WARNING: .*1 row/, 'invalid points are left out');
like(error_of(q{SELECT count(*) FROM geonn_cluster_sql('SELECT 1 AS id, 95 AS lat, 0 AS lon', 1, invalid => 'error')}), qr/ERROR: .*95/, 'or are an error');

done_testing();
