
# geonn_assign takes the pairs of geonn_within in the order (distance, observation id, reference id), each whose observation is free
# and whose reference has room: of random points with ids of several types, keys, windows, radiuses and capacities, in any order
# of rows.  It reads all observations, whatever the statement's conditions, and says what is wrong with an argument.
#
# The seed is the environment's SEED, else another one each day.
#
# rooms: join plan engine/cpu/assign

use strict;
use warnings;

use Geonn qw(:DEFAULT query error_of);
use Test::More;

my $seed = $ENV{SEED} // int(time / 86400);
my $rounds = 40;
note("seed: $seed");
srand($seed);

my $node = new_server('assign', preload => 1, conf => "jit = off\nautovacuum = off");

# ---- the definition ----

# some random SQL for a point's place: a lattice, spots, or the pole and the antimeridian; and a distance
my @places = (
	[ 'floor(random() * 6) / 100', 'floor(random() * 6) / 100', 'geonn_distance(0, 0, 0.02, 0)' ],
	[ '52 + floor(random() * 4) / 50 + random() / 300', '13 + floor(random() * 3) / 50 + random() / 300', '1000 + random() * 3000' ],
	[ '90 - random() ^ 2', 'random() * 360 - 180', '100000 * random() + 1' ],
	[ 'random() / 10', '180 - random() / 10 * (floor(random() * 2) * 2 - 1)', 'random() * 6000 + 1' ]);
my @ids = ([ 'bigint', 'i * 7 % 401' ], [ 'integer', '-i' ], [ 'text', "md5(i::text) COLLATE \"C\"" ], [ 'uuid', "md5(i::text)::uuid" ]);
my @conditions = ('', '', ", by => '{k}'", ", overlaps => '{w}'", ", by => '{f}', overlaps => '{w}', differs => '{k}'", ", metric => 'spheroid'",
	q{, options => '{"obs_radius": "far", "ref_radius": "far"}'});

query(q{
	CREATE FUNCTION greedy(capacities text) RETURNS SETOF record LANGUAGE plpgsql AS $$
	DECLARE
		p record;
	BEGIN
		CREATE TEMP TABLE room ON COMMIT DROP AS SELECT id, 0 AS room FROM ref;
		EXECUTE 'UPDATE room SET room = coalesce((SELECT ' || capacities || ' FROM ref WHERE ref.id = room.id), 0)';
		CREATE TEMP TABLE taken ON COMMIT DROP AS SELECT o, r, distance FROM pairs WHERE false;
		FOR p IN SELECT * FROM pairs ORDER BY distance, o, r LOOP
			CONTINUE WHEN EXISTS (SELECT FROM taken t WHERE t.o = p.o);
			UPDATE room SET room = room - 1 WHERE id = p.r AND room > 0;
			IF FOUND THEN
				INSERT INTO taken VALUES (p.o, p.r, p.distance);
			END IF;
		END LOOP;
		RETURN QUERY TABLE taken;
	END $$});

my $wrong = 0;
for my $round (1 .. $rounds)
{
	my ($latitude, $longitude, $radius) = @{ $places[ int(rand(@places)) ] };
	my ($type, $id) = @{ $ids[ $round % @ids ] };
	my $condition = $conditions[ int(rand(@conditions)) ];
	my $count = 1 + int(rand(60));
	my $references = 1 + int(rand(rand() < 0.5 ? 12 : 60));
	my $seed_of_round = rand(2) - 1;
	my $capacity = int(rand(4));
	my ($capacities, $argument) = $round % 2 ? ($capacity, $capacity) : ('seats', "1, 'seats'");
	my $points = qq{
		SELECT ($id)::$type AS id, $latitude AS lat, $longitude AS lon, nullif((random() * 3)::integer, 3) AS k,
			CASE WHEN random() < 0.95 THEN 'here' END AS f, int4range(a, a + (random() * 9)::integer, '[)') AS w,
			random() * 20000 AS far, floor(random() * 4)::integer AS seats
		FROM generate_series(1, %d) i, LATERAL (SELECT (random() * 20 + 0 * i)::integer AS a) a ORDER BY random()};

	$radius = query("SELECT setseed($seed_of_round); SELECT $radius") =~ s/.*\n//sr;
	my ($differences, $rows) = split /\|/, query(qq{
		SET client_min_messages = error;
		DROP TABLE IF EXISTS obs, ref, pairs;
		DROP TYPE IF EXISTS mine;
		SELECT setseed($seed_of_round) \\g /dev/null
		CREATE TABLE obs AS @{[ sprintf $points, $count ]};
		CREATE TABLE ref AS @{[ sprintf $points, $references ]};
		CREATE TYPE mine AS (obs_id $type, ref_id $type, distance float8);
		CREATE TABLE pairs AS SELECT obs_id AS o, ref_id AS r, distance FROM geonn_within('obs', 'ref', $radius$condition, row_type => NULL::mine);
		BEGIN;
		WITH found AS (SELECT * FROM geonn_assign('obs', 'ref', $argument, max_distance => $radius$condition, row_type => NULL::mine)),
		right_ones AS (SELECT * FROM greedy('$capacities') AS (o $type, r $type, distance float8))
		SELECT (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE right_ones) f) + (SELECT count(*) FROM (TABLE right_ones EXCEPT ALL TABLE found) r),
			(SELECT count(*) FROM found);
		COMMIT});
	next if $differences == 0;
	$wrong++;
	diag("$count points and $references at ($latitude, $longitude), ids $type, radius $radius, capacity $argument$condition: $differences differences of $rows rows");
}
is($wrong, 0, 'rows are those of the definition');

# ---- what is asked ----

query(q{
	CREATE TABLE rider (id integer PRIMARY KEY, kind text, lat float8, lon float8);
	INSERT INTO rider VALUES (3, 'a', 1, 0.001), (1, 'a', 1, 0.002), (2, 'b', 1, 0.003), (4, 'b', 1, 0.009);
	CREATE TABLE taxi (id bigint PRIMARY KEY, kind text, lat float8, lon float8, seats numeric);
	INSERT INTO taxi VALUES (10, 'a', 1, 0, 2), (20, 'b', 1, 0.01, 0), (30, 'a', 1, 0.02, 1)});
is(query(q{SELECT obs_id, ref_id, round(distance) FROM geonn_assign('rider', 'taxi')}), "2|30|1890\n3|10|111\n4|20|111", 'one each, in the order of ids');
is(query(q{SELECT obs_id, ref_id FROM geonn_assign('rider', 'taxi', 2)}), "1|10\n2|20\n3|10\n4|20", 'two each');
is(query(q{SELECT obs_id, ref_id FROM geonn_assign('rider', 'taxi', capacity_column => 'seats')}), "1|10\n3|10\n4|30", 'as many as each has seats');
is(query(q{SELECT obs_id, ref_id FROM geonn_assign('rider', 'taxi', 0)}), '', 'none');
is(query(q{SELECT obs_id, ref_id FROM geonn_assign('rider', 'taxi', max_distance => 200, keep_unmatched => true)}), "1|\n2|\n3|10\n4|20",
	'the unassigned are kept');
is(query(q{SELECT obs_id, ref_id FROM geonn_assign_sql('TABLE rider', 'SELECT * FROM taxi WHERE false', keep_unmatched => true)}), "3|\n1|\n2|\n4|",
	'without references, too');
is(query(q{SELECT count(*) FROM geonn_assign_sql('SELECT * FROM rider WHERE false', 'TABLE taxi', keep_unmatched => true)}), 0, 'no observations');
is(query(q{SELECT obs_id, ref_id FROM geonn_assign_sql('SELECT * FROM rider ORDER BY id DESC', 'TABLE taxi', by => '{kind}')}), "1|30\n3|10\n4|20",
	'of queries, by a key');
query('CREATE TABLE stop AS SELECT i AS id, 0 AS lat, i * i AS lon FROM generate_series(1, 4) i');
is(query(q{SELECT obs_id, ref_id FROM geonn_assign('stop', 'stop', differs => '{id}')}), "1|2\n2|1\n3|4\n4|3", 'of a table with itself');
is(query(q{SELECT * FROM geonn_assign('rider', 'taxi', row_type => NULL::record) AS t(obs_lat float8, obs_lon float8, obs_id integer, ref_lon float8)}),
	"1|0.003|2|0.02\n1|0.001|3|0\n1|0.009|4|0.01", 'coordinates');
is(query(q{SELECT obs_id, ref_id FROM geonn_assign('rider', 'taxi') WHERE obs_id = 1}), '', 'a condition on observations leaves the others in the assignment');
is(query(q{SELECT r.id, a.ref_id FROM rider r JOIN geonn_assign('rider', 'taxi') a ON a.obs_id = r.id WHERE r.kind = 'a'}), '3|10', 'as does a join');
is(query(q{SELECT ref_id FROM geonn_assign('rider', 'taxi') LIMIT 1}), 30, 'LIMIT');
is(query(q{SELECT count(*), sum(obs_id), count(DISTINCT ref_id) FROM geonn_assign_sql('SELECT i AS id, 1.5 AS lat, 2.5 AS lon FROM generate_series(1, 50000) i',
	'SELECT i AS id, 1.5 AS lat, i / 10000.0 AS lon FROM generate_series(1, 5000) i', 9)}), '45000|1012522500|5000', 'many at one place, in more batches than one');

my $plan = query(q{EXPLAIN (COSTS OFF) SELECT obs_id FROM geonn_assign('rider', 'taxi') WHERE obs_id > 1});
like($plan, qr/Custom Scan \(geonn join\)\n\s+Filter: .*\n\s+Function: geonn_assign\n\s+Observations: rider\n\s+References: taxi/, 'a plan node');
like(query(q{EXPLAIN (ANALYZE, VERBOSE, TIMING OFF) SELECT obs_id FROM geonn_assign('rider', 'taxi')}), qr/by index/, 'EXPLAIN ANALYZE says which way it went');
like(query(q{EXPLAIN (ANALYZE) SELECT obs_id FROM geonn_assign('rider', 'taxi', capacity_column => 'seats')}),
	qr/References Kept: false \(their capacities are checked at each call\)/, 'and why references with capacities are read');
my ($status, $output, $error) = $node->psql('postgres',
	q{SET statement_timeout = '1ms'; SELECT count(*) FROM geonn_assign_sql('SELECT i AS id, random() AS lat, random() AS lon FROM generate_series(1, 200000) i',
		'SELECT i AS id, random() AS lat, random() AS lon FROM generate_series(1, 200000) i')});
like($error, qr/canceling statement due to statement timeout/, 'a call is cancelled');
is(query(q{SELECT count(*) FROM geonn_assign('rider', 'taxi')}), 3, 'and later ones go on');

# ---- what is wrong ----

like(error_of(q{SELECT geonn_assign('rider', 'taxi', -1)}), qr/ERROR:  22023: capacity is out of range: -1\n/, 'a negative capacity');
like(error_of(q{SELECT geonn_assign('rider', 'taxi', NULL)}), qr/ERROR:  22004: argument "capacity" of geonn_assign is NULL\nHINT: /, 'no capacity');
like(error_of(q{SELECT geonn_assign('rider', 'taxi', max_distance => -1)}), qr/ERROR:  22023: max_distance is out of range: -1\n/, 'a negative distance');
like(error_of(q{SELECT geonn_assign('rider', 'taxi', capacity_column => 'places')}), qr/ERROR:  42703: .*has no column "places"\nDETAIL:  The column is named by the argument capacity_column/,
	'an unknown column');
like(error_of(q{SELECT geonn_assign('rider', 'taxi', capacity_column => 'kind')}), qr/ERROR:  42804: capacity column "kind" of relation "taxi" has type text\n/, 'a column of text');
foreach my $case ([ 'NULL', '22004', 'NULL' ], [ '-1', '22003', '-1' ], [ '1.5', '22003', '1.5' ], [ "'NaN'", '22003', 'NaN' ], [ "'Infinity'", '22003', 'Infinity' ])
{
	query("UPDATE taxi SET seats = $case->[0] WHERE id = 20");
	foreach (1, 2)
	{
		like(error_of(q{SELECT geonn_assign('rider', 'taxi', capacity_column => 'seats')}),
			qr/ERROR:  $case->[1]: capacity "seats" of .*20.* is out of range: $case->[2]\nDETAIL:  Capacities are whole numbers.*\nHINT:  .*has 0 in its place/,
			"a capacity of $case->[0] names the row");
	}
}
like(error_of(q{SET geonn.session_memory_limit = '1MB'; SELECT count(*) FROM geonn_assign_sql('SELECT i AS id, 1 AS lat, 1 AS lon FROM generate_series(1, 100000) i', 'TABLE taxi')}),
	qr/ERROR:  53400: not enough memory for .* query obs_sql: \d+ kB needed so far, and geonn.session_memory_limit is 1024 kB\n/, 'observations count in the session\'s memory');

done_testing();
