
# geonn_thin keeps the points of its definition, a loop over the rows by priority and id: of random points with ids of several
# types, priorities that tie or are NULL, keys and windows, and of points exactly at the spacing from each other. The order of
# the rows does not show. It is a plan node, and says what is wrong with an argument.
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

my $node = new_server('thin', preload => 1, conf => "jit = off\nautovacuum = off\nmax_parallel_workers_per_gather = 0");

# ---- the definition ----

# SQL that makes the table kept of the rows that are kept, with their ranks, out of the pairs of points within the spacing.
my $loop = q{
	DO $$
	DECLARE
		r record;
	BEGIN
		FOR r IN SELECT id, row_number() OVER (ORDER BY rank DESC NULLS LAST, id) AS n FROM point WHERE id IN (SELECT a FROM pair) ORDER BY n
		LOOP
			INSERT INTO kept SELECT r.id, r.n WHERE NOT EXISTS (SELECT FROM pair JOIN kept ON id = b WHERE a = r.id);
		END LOOP;
	END $$;};

# some random SQL for a point's place: a lattice whose steps are the spacing, spots, or the pole and the antimeridian
my @places = (
	[ 'floor(random() * 6) / 100', 'floor(random() * 6) / 100', 'geonn_distance(0, 0, 0.01, 0)' ],
	[ '52 + floor(random() * 4) / 50 + random() / 300', '13 + floor(random() * 3) / 50 + random() / 300', '100 + random() * 300' ],
	[ '90 - random() ^ 2', 'random() * 360 - 180', '10000 * random() + 1' ],
	[ 'random() / 10', '180 - random() / 10 * (floor(random() * 2) * 2 - 1)', 'random() * 3000 + 1' ]);
my @ids = ([ 'bigint', 'i * 7 % 401' ], [ 'integer', '-i' ], [ 'text', "md5(i::text) COLLATE \"C\"" ], [ 'uuid', "md5(i::text)::uuid" ]);
my @conditions = ('', ", by => '{k}'", ", overlaps => '{w}'", ", by => '{k, f}', overlaps => '{w}'", ", metric => 'spheroid'");
my @priorities = ('NULL::integer', 'nullif((random() * 9)::integer, 4)', 'random() - 0.5', 'CASE WHEN random() < 0.9 THEN (random() * 3)::numeric(9, 1) END');

my $wrong = 0;
my $unsteady = 0;
for my $round (1 .. $rounds)
{
	my ($latitude, $longitude, $spacing) = @{ $places[ int(rand(@places)) ] };
	my ($type, $id) = @{ $ids[ $round % @ids ] };
	my $condition = $conditions[ int(rand(@conditions)) ];
	my $priority = $priorities[ int(rand(@priorities)) ];
	my $ranked = $priority =~ /^NULL/ ? '' : ", 'rank'";
	my $suffix = $type eq 'text' || $type eq 'uuid' ? "_$type" : '';
	my $count = 1 + int(rand(140));
	my $seed_of_round = rand(2) - 1;

	$spacing = query("SELECT setseed($seed_of_round); SELECT $spacing") =~ s/.*\n//sr;
	$condition = "$ranked$condition, row_type => NULL::geonn_thinned$suffix";
	my ($differences, $others) = split /\|/, query(qq{
		SET client_min_messages = error;
		DROP TABLE IF EXISTS point;
		DROP TYPE IF EXISTS mine;
		SELECT setseed($seed_of_round) \\g /dev/null
		CREATE TABLE point AS SELECT ($id)::$type AS id, $latitude AS lat, $longitude AS lon, nullif((random() * 3)::integer, 3) AS k,
			CASE WHEN random() < 0.95 THEN 'here' END AS f, int4range(a, a + (random() * 9)::integer, '[)') AS w, $priority AS rank
			FROM generate_series(1, $count) i, LATERAL (SELECT (random() * 20 + 0 * i)::integer AS a) a ORDER BY random();
		CREATE TYPE mine AS (obs_id $type, ref_id $type, distance float8);
		CREATE TEMP TABLE pair AS SELECT obs_id AS a, ref_id AS b, distance
			FROM geonn_within('point', 'point', $spacing@{[ $condition =~ s/, 'rank'//r =~ s/NULL::\w+/NULL::mine/r ]});
		CREATE TEMP TABLE kept (id $type, n bigint);
		$loop
		CREATE TEMP TABLE right_ones AS SELECT p.a AS id, (SELECT b FROM pair q JOIN kept k ON k.id = q.b
			WHERE q.a = p.a AND p.a NOT IN (SELECT id FROM kept) ORDER BY distance, n LIMIT 1) AS kept_by FROM (SELECT DISTINCT a FROM pair) p;
		CREATE TEMP TABLE found AS SELECT * FROM geonn_thin('point', $spacing$condition);
		CREATE TEMP TABLE found_otherwise AS SELECT * FROM geonn_thin_sql('SELECT * FROM point ORDER BY lat, random()', $spacing$condition);
		SELECT (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE right_ones) f) + (SELECT count(*) FROM (TABLE right_ones EXCEPT ALL TABLE found) r),
			(SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE found_otherwise) f)});
	$unsteady++ if $others != 0;
	next if $differences == 0;
	$wrong++;
	diag("$count points at ($latitude, $longitude), ids $type, spacing $spacing, priority $priority$condition: $differences differences");
}
is($wrong, 0, 'rows are those of the definition');
is($unsteady, 0, 'in whatever order the table has them');

# ---- what is asked ----

query(q{
	CREATE TABLE fix (id integer PRIMARY KEY, line text, quality integer, lat float8, lon float8);
	INSERT INTO fix VALUES (7, 'a', 1, 52.5, 13.4), (3, 'a', 5, 52.5001, 13.4), (5, 'b', NULL, 52.5002, 13.4), (1, 'b', 2, 48.1, 11.5),
		(2, 'b', 3, 48.1001, 11.5), (9, 'a', 0, 10, 10), (4, NULL, 2, 48.1, 11.5)});
my $rows = "1|2\n2|\n3|\n4|2\n5|3\n7|3\n9|";
is(query(q{SELECT * FROM geonn_thin('fix', 15, 'quality')}), $rows, 'rows come in the order of ids');
is(query(q{SELECT (geonn_thin('fix', 15, 'quality')).*}), $rows, 'in a SELECT list');
is(query(q{SELECT * FROM geonn_thin_sql('SELECT * FROM fix', 15, 'quality')}), $rows, 'of a query');
is(query(q{SELECT * FROM geonn_thin('fix', 15)}), "1|\n2|1\n3|\n4|1\n5|3\n7|3\n9|", 'without priorities ids decide');
is(query(q{SELECT * FROM geonn_thin('fix', 15, 'quality', by => '{line}')}), "1|2\n2|\n3|\n5|\n7|3\n9|",
	'neighbours have one key, and a point without a key has no row');
is(query(q{SELECT count(*) FROM geonn_thin('fix', 15) WHERE kept_by IS NULL}), 3, 'conditions');
is(query(q{SELECT t FROM geonn_thin('fix', 15, 'quality') AS t WHERE id = 1 LIMIT 1}), '(1,2)', 'whole rows');
is(query(q{SELECT * FROM geonn_thin('fix', 15, row_type => NULL::record) AS t(kept_by bigint, id integer) LIMIT 1}), '|1', 'columns in any order');
is(query(q{SELECT count(*) FROM geonn_thin_sql('SELECT * FROM fix WHERE false', 15, 'quality')}), 0, 'no points');
is(query(q{SELECT count(*), count(kept_by), max(kept_by) FROM geonn_thin_sql('SELECT i AS id, 1.5 AS lat, 2.5 AS lon FROM generate_series(1, 100000) i', 1)}),
	'100000|99999|1', 'many at one place, in more batches than one');
is(query(q{SELECT * FROM geonn_thin_sql('SELECT * FROM (VALUES (''a'', 1.5, 2.5), (''a'', 1.5, 2.5)) t (id, lat, lon)', 1, row_type => NULL::geonn_thinned_text)}),
	"a|\na|a", 'one id twice, which the engine numbers');
my $plan = query(q{EXPLAIN (COSTS OFF) SELECT id FROM geonn_thin('fix', 15) WHERE kept_by IS NULL});
like($plan, qr/Custom Scan \(geonn join\)\n\s+Filter: .*\n\s+Function: geonn_thin\n\s+Points: fix/, 'a plan node');

# ---- what is wrong ----

like(error_of("SELECT geonn_thin('fix', $_)"), qr/ERROR:  22023: spacing is out of range: .*\nDETAIL:  The spacing is in metres, above 0, and at most .* 20015114\./, "spacing $_")
  foreach '0', '-1', "'NaN'", "'Infinity'", '20015115';
like(error_of("SELECT geonn_thin($_)"), qr/ERROR:  22004: argument "\w+" of geonn_thin is NULL\nHINT: /, "NULL: $_") foreach q{NULL, 1}, q{'fix', NULL};
like(error_of(q{SELECT geonn_thin('fix', 1, 'grade')}), qr/ERROR:  42703: .*grade.*priority|ERROR:  42703: .*priority.*grade/s, 'an unknown column');
like(error_of(q{SELECT geonn_thin('fix', 1, 'line')}), qr/ERROR:  42804: priority column "line" of .* has type text\nDETAIL: .*\nHINT: /, 'a priority of words');
like(error_of(q{SELECT * FROM geonn_thin_sql('SELECT id, lat, lon, ''Infinity''::float8 AS p FROM fix', 1, 'p')}), qr/ERROR:  22003: priority "p" .*Infinity\nDETAIL:  Priorities are finite/, 'an infinite priority');
like(error_of(q{SELECT * FROM geonn_thin('fix', 1, row_type => NULL::geonn_clustered)}), qr/ERROR:  42703: row_type has a column "cluster"/, 'columns of other rows');
like(error_of(q{SELECT * FROM geonn_thin_sql('SELECT id::text, lat, lon FROM fix', 1)}), qr/HINT:  Pass row_type => NULL::geonn_thinned_text\./, 'ids of another type');
like(error_of(q{SELECT * FROM geonn_thin_sql('SELECT 5 AS id, 1.5 AS lat, 2.5 AS lon FROM generate_series(1, 2)', 1)}),
	qr/ERROR:  23505: .* id 5 twice\nDETAIL: .*\nHINT: /, 'one integer id twice within the spacing');
query('CREATE TABLE many AS SELECT i AS id, (i % 100) / 1000.0 AS lat, (i / 100) / 1000.0 AS lon FROM generate_series(0, 19999) i; VACUUM many');
is((scalar grep { error_of("SET geonn.session_memory_limit = '${\(64 * $_)} kB'; SELECT count(*) FROM geonn_thin('many', 100)")
		  =~ /ERROR:  53400: not enough memory to thin out relation "many": .*\nDETAIL:  Thinning out its points takes 469 kB; / } 1 .. 60) >= 3, 1,
	'memory for 24 bytes a point is in the limit');
like(error_of(q{SELECT count(*) FROM geonn_thin_sql('SELECT 1 AS id, 95 AS lat, 0 AS lon UNION ALL SELECT 2, 1, 1', 1)}), qr/WARNING: .*1 row/, 'invalid points are left out');

done_testing();
