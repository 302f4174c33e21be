
# Random statements in PostGIS's words have the rows that they have without geonn.  Tables are random, with ties,
# duplicates, NULL and empty points, poles and the antimeridian.  PostGIS leaves open which of two references at one
# distance comes first: where ids differ, PostGIS's distances must not.  No table has a GiST index: by one, PostGIS
# lacks pairs at the poles that its function has, and fails with "index returned tuples in wrong order".  Columns without a kind
# have points, and now and then empty values, but no lines and no MultiPoints: PostGIS's distances of these depend on the calls
# before (50 of 3,600 pairs of a MultiPoint and a point differ with the order of the tables).
#
# short form: 300 of 20000 statements
# needs: postgis
# rooms: sql

use strict;
use warnings;

use File::Temp;
use Geonn;
use IPC::Run;
use List::Util qw(min);
use Test::More;

my $statements = $ENV{GEONN_SQL_STATEMENTS} // ($ENV{GEONN_LONG} ? 20000 : 300);
my $seed = $ENV{GEONN_SQL_SEED} // int(rand(1_000_000));
my $at_once = 50;

# as many sessions run them, each in a database of its own
my $sessions = $ENV{GEONN_SQL_SESSIONS} // min(12, `nproc`);

note("seed: GEONN_SQL_SEED=$seed");

my $processes = 8 + 3 * $sessions;
my $node = new_server('sql_statements', preload => 1,
	conf => "statement_timeout = '120s'\njit = off\nlog_statement = none\nmax_worker_processes = $processes\nmax_parallel_workers = $processes");

$node->safe_psql('postgres', q{
	SET client_min_messages = error;
	CREATE EXTENSION postgis;
	CREATE ROLE reader;
});
$node->safe_psql('postgres', "CREATE DATABASE statements_$_ TEMPLATE postgres") foreach 1 .. $sessions;

# ---- tables ----

# A grid for ties and duplicates, points that PostGIS takes for one, and the sphere's seams.
sub points
{
	my $grid = pick(0, 0.4, 0.9, 1);
	my $step = pick(10, 1, 0.01);
	my $near = pick(0, 0.3);
	my $seam = pick(0, 0.05, 0.2);
	my $absent = pick(0, 0.05, 0.5);
	my $longitude = "CASE WHEN random() < $seam THEN 180 WHEN random() < $seam THEN -180 WHEN random() < $grid THEN round(random() * 36 - 18) * $step
		WHEN random() < $near THEN 20 + round(random() * 9) * 2e-11 ELSE random() * 360 - 180 END";
	my $latitude = "CASE WHEN random() < $seam THEN 90 WHEN random() < $seam THEN -90 WHEN random() < $grid THEN round(random() * 18 - 9) * $step
		WHEN random() < $near THEN 10 + round(random() * 9) * 2e-11 ELSE degrees(asin(random() * 2 - 1)) END";

	return "CASE WHEN random() < $absent / 2 THEN NULL WHEN random() < $absent / 2 THEN ST_GeomFromText('POINT EMPTY', 4326)
		ELSE ST_SetSRID(ST_MakePoint($longitude, $latitude), 4326) END";
}

# A value in place of a point that a column without a kind has: mostly the point.
sub plain
{
	my $others = pick(0, 0, 0.02, 0.6);
	my $other = pick('ST_Force3D(geom)', q{ST_GeomFromText('GEOMETRYCOLLECTION(POINT EMPTY)', 4326)},
		q{ST_GeomFromText('LINESTRING EMPTY', 4326)}, 'NULL');

	return "CASE WHEN random() < $others THEN $other ELSE geom END";
}

# Metres: distances that the grid's points have, and any others.
sub radius
{
	return pick('0', '1e-5', '1e-3', '-1', '1111.9507973', '111195.07973', '1111950.7973', '2e6', '30000', '1e8', "'Infinity'::float8",
		"'NaN'::float8", '(SELECT ST_Distance(x.g, y.g) FROM places x, places y WHERE x.id = 3 AND y.id = 200)');
}

sub tables
{
	my ($number) = @_;
	my ($o, $r) = (points(), points());
	my $plain = plain();
	my $rows = pick(200, 200, 200, 20, 1, 0);

	return qq{
		SET client_min_messages = error;
		DROP SCHEMA IF EXISTS tables CASCADE;
		CREATE SCHEMA tables;
		GRANT USAGE ON SCHEMA tables TO reader;
		SET search_path = tables, public;
		SELECT setseed(} . $number % 1_000_000 / 1e6 . qq{);
		CREATE TABLE places AS SELECT i AS id, i % 7 AS kind, ($o)::geometry(Point, 4326) AS geom FROM generate_series(1, 130) i;
		INSERT INTO places SELECT 130 + i, i % 7, $r FROM generate_series(1, 200) i;
		ALTER TABLE places ADD g geography(Point), ADD lat float8, ADD lon float8, ADD reach float8, ADD b geometry, ADD a geography;
		UPDATE places SET b = $plain;
		UPDATE places SET g = geom::geography, a = b::geography, lat = ST_Y(geom), lon = ST_X(geom), reach = CASE kind WHEN 1 THEN NULL WHEN 2 THEN -1 ELSE 3e5 * (id % 5) END;
		CREATE TABLE o AS SELECT * FROM places WHERE id < 150;
		CREATE TABLE r AS SELECT * FROM places WHERE id > 100 AND id <= 100 + $rows;
		CREATE TABLE r_parts (LIKE places) PARTITION BY HASH (id);
		CREATE TABLE r_parts_0 PARTITION OF r_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE r_parts_1 (a geography, g geography(Point), b geometry, gone text, lat float8, reach float8, kind integer, id integer, geom geometry(Point, 4326), lon float8);
		ALTER TABLE r_parts_1 DROP gone;
		ALTER TABLE r_parts ATTACH PARTITION r_parts_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
		INSERT INTO r_parts TABLE r;
		CREATE TABLE o_parts (LIKE places) PARTITION BY RANGE (id);
		CREATE TABLE o_parts_0 PARTITION OF o_parts FOR VALUES FROM (0) TO (100);
		CREATE TABLE o_parts_1 PARTITION OF o_parts FOR VALUES FROM (100) TO (2000);
		INSERT INTO o_parts TABLE o;
		CREATE MATERIALIZED VIEW r_kept AS TABLE r;
		CREATE VIEW r_view AS SELECT * FROM r WHERE kind <> 5;
		CREATE VIEW r_barrier WITH (security_barrier) AS SELECT * FROM r WHERE kind <> 1;
		CREATE VIEW o_view AS SELECT *, id * 2 AS twice FROM o WHERE kind < 6;
		CREATE TABLE o_set AS SELECT *, 0 AS nearest FROM o;
		CREATE TABLE found (own integer, ref integer);
		CREATE TABLE kinds AS SELECT i AS kind FROM generate_series(0, 6) i;
		CREATE POLICY but_four ON r TO reader USING (kind <> 4);
		CREATE POLICY but_three ON o TO reader USING (kind <> 3);
		ALTER TABLE r ENABLE ROW LEVEL SECURITY;
		ALTER TABLE o ENABLE ROW LEVEL SECURITY;
		CREATE POLICY but_two ON o_set TO reader USING (kind <> 2);
		ALTER TABLE o_set ENABLE ROW LEVEL SECURITY;
		GRANT SELECT ON ALL TABLES IN SCHEMA tables TO reader;
		GRANT UPDATE ON o_set TO reader;
		GRANT INSERT ON found TO reader;
		ANALYZE;
	};
}

# ---- statements: each returns own and ref, the ids of an observation and of a reference, and d, their distance or 0 ----

my $references;
my $observations;

sub choose_sides
{
	$references = pick('r', 'r', 'r_parts', 'r_view', 'r_barrier', 'r_kept');
	$observations = pick('o', 'o', 'o_parts', 'o_view', '(SELECT * FROM o WHERE kind > 2 OFFSET 0)', '(SELECT o.* FROM kinds k JOIN o USING (kind))');
}

sub point { return pick("$_[0].g", "$_[0].g", "$_[0].geom::geography", "$_[0].a", "$_[0].b::geography"); }

sub distance
{
	my @points = map { point($_) } rand() < 0.5 ? qw(o r) : qw(r o);
	my $pair = join(', ', @points);

	return pick(join(' <-> ', @points), join(' <-> ', @points), "ST_Distance($pair, false)", "ST_Distance($pair)", "ST_Distance($pair, true)",
		'ST_DistanceSphere(o.' . pick('geom', 'b') . ', r.' . pick('geom', 'b') . ')', 'geonn_distance(o.lat, o.lon, r.lat, r.lon)',
		q{geonn_distance(r.lat, r.lon, o.lat, o.lon, 'spheroid')});
}

sub within
{
	my ($distance) = @_;
	my @points = map { point($_) } rand() < 0.5 ? qw(o r) : qw(r o);

	return 'ST_DWithin(' . join(', ', @points, $distance) . pick('', '', ', true', ', false') . ')';
}

# The same question, by a distance and a limit.
sub limited
{
	my ($limit) = @_;
	my $distance = distance();

	return pick("$distance <= $limit", "$distance < $limit", "$limit >= $distance", "$limit > $distance");
}

# Conditions of a subquery: on the references, and on both.
sub conditions
{
	my ($both) = @_;
	my @conditions = pick('true', 'true', 'r.kind < 4', 'r.id % 50 = 7', 'r.g IS NOT NULL AND r.kind IN (1, 2, 6)', 'false');

	push @conditions, pick('r.kind = o.kind', 'r.id <> o.id', within(radius()), 'r.id > o.id', 'r.kind <> o.kind AND r.id <> o.id') if rand() < $both;
	return join(' AND ', @conditions);
}

sub nearest
{
	my $distance = distance();
	my $more = pick('', '', ', r.id', ', r.kind DESC, r.id', ', abs(r.id - o.id), r.id', ', r.kind');
	my $limit = 'LIMIT ' . pick(1, 1, 1, 2, 5, 20, 800, 0, 'NULL', '$1', '$1') . pick('', '', ' OFFSET 1', ' OFFSET 3', ' OFFSET $2');
	my $subquery = "(SELECT r.id, $distance AS d FROM $references r WHERE " . conditions(0.2) . " ORDER BY $distance$more $limit)";
	my $join = pick("CROSS JOIN LATERAL $subquery n", "JOIN LATERAL $subquery n ON true", "LEFT JOIN LATERAL $subquery n ON true",
		"LEFT JOIN LATERAL $subquery n ON n.d < 4e6", "JOIN LATERAL $subquery n ON n.d > o.kind * 1e5", ", LATERAL $subquery n");
	my $where = pick('', '', 'WHERE o.kind < 4', 'WHERE n.d < 3e6 OR o.id < 20', 'WHERE n.d IS NULL');

	return ("SELECT o.id AS own, n.id AS ref, n.d FROM $observations o $join $where", $distance);
}

# A value, and the distance by which it is chosen.
sub nearest_value
{
	my $distance = distance();

	return ("(SELECT r.id FROM $references r WHERE " . conditions(0.2) . " ORDER BY $distance LIMIT 1" . pick('', '', ' OFFSET $2') . ')', $distance);
}

sub scalar_nearest
{
	my ($value, $distance) = nearest_value();

	return ("SELECT o.id AS own, $value AS ref, 0::float8 AS d FROM $observations o " . pick('', '', 'WHERE o.kind < 4'), $distance);
}

# A statement that stores the value.
sub stored_nearest
{
	my ($value, $distance) = nearest_value();
	my $change = "INSERT INTO found SELECT o.id, $value FROM $observations o RETURNING own, ref";

	if (rand() < 0.7)
	{
		$observations = 'o_set';
		$change = "UPDATE o_set o SET nearest = $value, lat = o.lat " . pick('', 'WHERE o.kind < 4', 'FROM kinds k WHERE k.kind = o.kind') . ' RETURNING o.id AS own, o.nearest AS ref';
	}
	return ("WITH changed AS ($change) SELECT own, ref, 0::float8 AS d FROM changed", $distance);
}

sub distinct_nearest
{
	my $distance = distance();

	return ("SELECT DISTINCT ON (o.id) o.id AS own, r.id AS ref, $distance AS d FROM $observations o, $references r WHERE " . conditions(0.5) .
		" ORDER BY o.id, $distance", $distance);
}

sub joined_within
{
	my $radius = pick(radius(), radius(), 'o.reach', 'o.kind * 1e6', '$1 * 1e6');
	my $condition = pick(\&within, \&limited)->($radius) . ' AND ' . conditions(0.3);
	my $exists = "EXISTS (SELECT FROM $references r WHERE $condition)";

	return (pick(
			"SELECT o.id AS own, r.id AS ref, 0::float8 AS d FROM $observations o JOIN $references r ON $condition",
			"SELECT o.id AS own, r.id AS ref, 0::float8 AS d FROM $observations o, $references r WHERE $condition",
			"SELECT o.id AS own, r.id AS ref, 0::float8 AS d FROM $observations o LEFT JOIN $references r ON $condition" . pick('', '', ' WHERE r.id IS NULL', ' WHERE o.kind < 3', ' WHERE r.kind IS DISTINCT FROM 3'),
			"SELECT o.id AS own, r.id AS ref, 0::float8 AS d FROM $references r RIGHT JOIN $observations o ON $condition",
			"SELECT o.id AS own, (r).id AS ref, 0::float8 AS d FROM $observations o JOIN $references r ON $condition ORDER BY o.id, r.id LIMIT 100000",
			"SELECT o.id AS own, 0 AS ref, 0::float8 AS d FROM $observations o WHERE $exists", "SELECT o.id AS own, 0 AS ref, 0::float8 AS d FROM $observations o WHERE $exists ORDER BY o.id LIMIT 100000",
			"SELECT o.id AS own, 0 AS ref, 0::float8 AS d FROM $observations o WHERE NOT $exists", "SELECT o.id AS own, 0 AS ref, 0::float8 AS d FROM $observations o WHERE NOT $exists AND o.kind < 5",
			"SELECT o.id AS own, CASE WHEN $exists THEN 1 ELSE 0 END AS ref, 0::float8 AS d FROM $observations o",
			"SELECT o.id AS own, k.kind AS ref, 0::float8 AS d FROM kinds k LEFT JOIN $observations o ON o.kind = k.kind AND o.id % 2 = 0 WHERE NOT $exists",
			"SELECT o.id AS own, count(*) AS ref, 0::float8 AS d FROM $observations o JOIN $references r ON $condition GROUP BY o.id",
			"SELECT k.kind AS own, (SELECT count(*) FROM $observations o JOIN $references r ON $condition WHERE o.kind = k.kind) AS ref, 0::float8 AS d FROM kinds k"), 0);
}

# A statement, and the distance by which it may choose among rows; 0: it may not choose.
sub statement
{
	choose_sides();
	return stored_nearest() if rand() < 0.1;

	my ($query, $distance) = pick(\&nearest, \&nearest, \&nearest, \&scalar_nearest, \&distinct_nearest, (\&joined_within) x 4)->();

	$query = pick($query, $query, "WITH q AS ($query) SELECT * FROM q", "WITH q AS MATERIALIZED ($query) SELECT * FROM q",
		"SELECT q.own, q.ref, q.d FROM ($query) q JOIN kinds k ON k.kind = q.own % 7", "SELECT * FROM ($query) q WHERE own % 2 = 0",
		"($query) UNION ALL SELECT -1, 1, 2");
	return ($query, $distance);
}

# ---- comparison ----

# The number of rows that one of both tables has more often: of ids, and of PostGIS's distances.
sub differences
{
	my ($columns, $rest) = @_;

	return "(SELECT count(*) FROM ((SELECT $columns FROM a x $rest EXCEPT ALL SELECT $columns FROM b x $rest) UNION ALL
		(SELECT $columns FROM b x $rest EXCEPT ALL SELECT $columns FROM a x $rest)) differ)";
}

# What psql executes for a statement: it prints whether the plan has one of geonn's nodes, and the two differences.  Rows
# with the same ids have the same distances.
sub comparison
{
	my ($query, $distance) = @_;

	# a subquery that is left to PostgreSQL starts workers for each row, which takes long
	my $with_workers = rand() < ($query =~ /\(SELECT r/ ? 0.02 : $query =~ /EXISTS/ ? 0.1 : 0.3);
	my %settings = (
		work_mem => pick(64, 4096),
		plan_cache_mode => pick('force_generic_plan', 'force_custom_plan'),
		max_parallel_workers_per_gather => $with_workers ? 2 : 0,
		map { $_ => pick('on', 'on', 'off') } qw(enable_nestloop enable_indexscan enable_bitmapscan enable_hashjoin enable_mergejoin enable_sort enable_memoize enable_material));
	my $settings = join(' ', map { "SET LOCAL $_ = $settings{$_};" } sort keys %settings);
	my $defaults = join(' ', map { "SET LOCAL $_ = DEFAULT;" } sort keys %settings);
	my $role = pick('SET LOCAL ROLE reader;', '');
	my $change = $role eq '' ? pick('', 'UPDATE r SET (g, a, b) = (SELECT g, a, b FROM o WHERE id = 1) WHERE kind = 2; DELETE FROM r WHERE kind = 6;') : '';
	my $values = '(' . pick(1, 3, 12) . '::bigint, ' . pick(0, 2) . '::bigint)';
	my $distances = $distance eq '0' ? differences('own, ref', '') :
		differences("own, $distance AS d, ref IS NULL AS is_null", "LEFT JOIN $observations o ON o.id = x.own LEFT JOIN $references r ON r.id = x.ref");

	# workers cost something, or PostgreSQL's own plans start them anew for each pair of rows
	return qq{
		BEGIN;
		SET LOCAL parallel_setup_cost = 1; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0;
		$change
		$role
		PREPARE s(bigint, bigint) AS $query;
		SET LOCAL geonn.enable_sql_joins = off;
		SET LOCAL max_parallel_workers_per_gather = 0;
		CREATE TEMP TABLE b ON COMMIT DROP AS EXECUTE s$values;
		DEALLOCATE s;
		SET LOCAL geonn.enable_sql_joins = on;
		$settings
		PREPARE s(bigint, bigint) AS $query;
		EXPLAIN EXECUTE s$values;
		CREATE TEMP TABLE a ON COMMIT DROP AS EXECUTE s$values;
		DEALLOCATE s;
		SET LOCAL geonn.enable_sql_joins = off;
		$defaults
		SELECT 'ids: ' || ids || ', distances: ' || CASE WHEN ids = 0 THEN 0 ELSE $distances END || ', returned: ' || returned
			|| ', twice: ' || CASE WHEN ids = 0 THEN 0 ELSE (SELECT count(*) - count(DISTINCT (own, ref)) FROM a) - (SELECT count(*) - count(DISTINCT (own, ref)) FROM b) END
		FROM (SELECT } . differences('own, ref', '') . qq{ AS ids, } . differences('own, d', '') . qq{ AS returned OFFSET 0) compared;
		ROLLBACK;
		DEALLOCATE ALL;
	};
}

# Of some statements: a seed, with which a search for a difference begins, and what psql executes.
my @batches;

for (my $first = 0; $first < $statements; $first += $at_once)
{
	srand($seed + $first);
	my $tables = tables($seed + $first);
	push @batches, { seed => $seed + $first, tables => $tables, comparisons => [ map { comparison(statement()) } 1 .. min($at_once, $statements - $first) ] };
}

# Each session has every so many batches.
my @runs;

foreach my $session (1 .. $sessions)
{
	my ($file, $name) = File::Temp::tempfile(UNLINK => 1);
	my %run = (out => '', error => '');

	for (my $number = $session - 1; $number < @batches; $number += $sessions)
	{
		my ($tables, $comparisons) = @{ $batches[$number] }{qw(tables comparisons)};

		print $file $tables, map { "\\echo statement $number $_\n$comparisons->[$_]" } 0 .. $#$comparisons;
	}
	close($file) or die "$name: $!";
	$run{handle} = IPC::Run::start([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr("statements_$session"), '-f', $name ],
		'<', '/dev/null', '>', \$run{out}, '2>', \$run{error});
	push @runs, \%run;
}

my %answers;

foreach my $run (@runs)
{
	$run->{handle}->finish;
	my (undef, @answers) = split(/^statement (\d+ \d+)$/m, $run->{out});
	%answers = (%answers, @answers);
	note($_) foreach $run->{error} =~ /ERROR.*/g;
}

my $with_node = 0;
my $ties = 0;
my @differ;

foreach my $batch (0 .. $#batches)
{
	my $comparisons = $batches[$batch]->{comparisons};

	for my $number (0 .. $#$comparisons)
	{
		my $answer = $answers{"$batch $number"} // '';

		$with_node++ if $answer =~ /Custom Scan \(geonn/;
		$ties++ if $answer =~ /ids: [1-9]/;
		push @differ, "GEONN_SQL_SEED=$batches[$batch]->{seed}, statement $number: " . ($answer =~ /(ids: .*)/ ? $1 : 'no answer') . "\n$comparisons->[$number]"
		  if $answer !~ /distances: 0, returned: 0, twice: 0$/m;
	}
}
note("$ties statements chose other references at the same distances");
is(join("\n", @differ), '', "$statements random statements have the rows that they have without geonn");
cmp_ok($with_node, '>', 0.3 * $statements, "many of them, $with_node, have a node of geonn's");

done_testing();
