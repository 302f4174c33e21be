
# geonn_cluster has the clusters of its definition, which is plain SQL over geonn_within: of random points with ids of several
# types, keys and windows, and of points exactly at the radius of each other. It is a plan node with WHERE and LIMIT, finds kept
# points again, and says what is wrong with an argument.
#
# The seed is the environment's SEED, else another one each day.
#
# rooms: join plan engine/cpu/clusters

use strict;
use warnings;

use Geonn qw(:DEFAULT query error_of);
use Test::More;

my $seed = $ENV{SEED} // int(time / 86400);
my $rounds = 40;
note("seed: $seed");
srand($seed);

my $node = new_server('clusters', preload => 1, conf => "jit = off\nautovacuum = off\nmax_parallel_workers_per_gather = 0");

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

# ---- rows that are taken, or not ----

is(query(q{SELECT * FROM geonn_cluster('stop', 15, 2) WHERE id IN (3, 9)}), "3|2|core\n9||noise", 'WHERE on ids');
is(query(q{SELECT id FROM geonn_cluster('stop', 15, 2) WHERE cluster = 1 AND id > 1}), "2\n4", 'WHERE on clusters');
is(query(q{SELECT s.line, count(DISTINCT c.cluster) FROM geonn_cluster('stop', 15, 2) c JOIN stop s USING (id) GROUP BY 1 ORDER BY 1}), "a|1\nb|2\n|1", 'a join');
like(query(q{EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM geonn_cluster('stop', 15, 2) WHERE cluster = 1}),
	qr/Custom Scan \(geonn join\) \(actual rows=3 .*\n\s+Filter: \(cluster = 1\)\n\s+Rows Removed by Filter: 4\n/, 'EXPLAIN ANALYZE tells of rows that WHERE leaves out');
my $many = q{geonn_cluster_sql('SELECT i AS id, i / 10000.0 AS lat, 2.5 AS lon FROM generate_series(1, 300000) i', 12, 3)};
is(query("SELECT * FROM $many LIMIT 2; SELECT count(*) FROM $many"), "1|1|border\n2|1|core\n300000", 'LIMIT ends a call early, and the next one begins anew');
is(query("BEGIN; DECLARE c CURSOR FOR SELECT id, kind FROM $many; FETCH 1 FROM c; MOVE 199998 IN c; FETCH 1 FROM c; CLOSE c; SELECT count(*) FROM $many WHERE kind = 'border'; COMMIT"),
	"1|border\n200000|core\n2", 'a cursor goes on from batch to batch, and may be closed before its end');

# ---- ids ----

my $points = "geonn_cluster_sql('SELECT * FROM (VALUES (NULL, 1, 1), (1, 1, 1), (3, 50, 50), (2, 1, 1), (2, NULL, 1), (1, 50, 50), (2, 1, 1)) v (id, lat, lon)', 1, ";
is(query("SELECT * FROM $points 1)"), "1|1|core\n1|2|core\n2|1|core\n2|1|core\n3|2|core", 'a row of each point, also where points have one id');
is(query("SELECT * FROM $points 4)"), "1||noise\n1||noise\n2||noise\n2||noise\n3||noise", 'a row without an id or a coordinate is no point');
is(error_of("SELECT * FROM $points 1)"), '', 'and there is nothing to warn of');
is(query(q{SELECT DISTINCT cluster, kind FROM geonn_cluster('stop', 20015114)}), '1|core', 'within half the circumference are all');
is(query(q{SELECT DISTINCT cluster, kind FROM geonn_cluster('stop', 20015114, 2147483647)}), '|noise', 'the greatest min_points is more than all');

# ---- under way ----

# every point is compared with every other, for half a minute or more
my $slow = q{SELECT count(*) FROM geonn_cluster_sql('SELECT i AS id, random() / 10 AS lat, random() / 10 AS lon, int8range(i % 2, 9) AS w FROM generate_series(1, 300000) i',
	100000, 300000, overlaps => '{w}')};
foreach my $end (qw(pg_cancel_backend pg_terminate_backend))
{
	my $run = start_sql($node, $slow);

	wait_until(sub { query(q{SELECT phase, references_read, device IS NOT NULL FROM geonn_stat_progress WHERE function = 'geonn_cluster_sql'}) eq 'searching|300000|t' },
		'progress says what a call does');
	is(query(q{SELECT * FROM geonn_cluster('stop', 15, 2)}), $rows, 'meanwhile others are answered');
	query("SELECT $end(pid) FROM geonn_stat_progress WHERE function = 'geonn_cluster_sql'");
	my ($ended, $output, $error) = finish_sql($run);
	like($error, qr/canceling statement due to user request|terminating connection due to administrator command/, "$end ends it");
	wait_until(sub { query('SELECT searches, datasets - datasets_kept, (SELECT count(*) FROM geonn_stat_progress) FROM geonn_status()') eq '0|0|0' },
		"$end: nothing stays in the engine");
}

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
