
# Rows that each ask for the neighbours of their own point are what calls of the function for each
# of them return: for random points, arguments, conditions and kinds of joins.  The references are
# those of one moment, whatever other sessions change meanwhile, and a cancel ends the search.  Plans
# with workers and without have the same rows.
#
# short form: 40 of 600 statements
# rooms: plan

use strict;
use warnings;

use Geonn;
use Test::More;

my $statements = $ENV{GEONN_LONG} ? 600 : 40;
my $seed = $ENV{GEONN_LATERAL_SEED} // int(rand(1_000_000));

note("seed: GEONN_LATERAL_SEED=$seed");
srand($seed);

my $node = new_server('lateral', slow => 1);

# a point: often on a coarse grid, so that ties occur, sometimes NULL or none
my $latitude = q{CASE WHEN random() < 0.05 THEN NULL WHEN random() < 0.03 THEN 95
	WHEN random() < 0.4 THEN round(random() * 18 - 9) * 10 ELSE random() * 180 - 90 END};
my $longitude = q{CASE WHEN random() < 0.05 THEN NULL WHEN random() < 0.02 THEN 'NaN'
	WHEN random() < 0.4 THEN round(random() * 36 - 18) * 10 ELSE random() * 360 - 180 END};

my $row_of_all = 'rank integer, bearing float8, ord bigint, ref_lat float8, ref_id bigint, obs_lon float8, distance float8';

$node->safe_psql('postgres', qq{
	SELECT setseed($seed / 1e6);
	CREATE TABLE obs AS SELECT i AS id, i % 7 AS kind, $latitude AS lat, $longitude AS lon
	FROM generate_series(1, 200) i;
	CREATE TABLE ref AS SELECT i AS id, i % 5 AS kind, $latitude AS lat, $longitude AS lon
	FROM generate_series(1, 300) i;
	CREATE TABLE kinds AS SELECT i AS kind, 100000.0 * i AS far FROM generate_series(0, 9) i;
	ALTER TABLE obs ADD PRIMARY KEY (id);
	CREATE TYPE row_of_all AS ($row_of_all);
	ANALYZE obs, ref, kinds;
});

sub call_of
{
	my ($lat, $lon) = @{ pick(
		[ 'o.lat', 'o.lon' ], [ '-o.lat', 'o.lon / 2' ], [ 'o.lat', '10' ],
		[ 'o.id % 90', 'o.lon' ], [ 'round(o.lat::numeric)', 'o.kind' ]) };
	my @arguments = ("ARRAY[$lat], ARRAY[$lon], 'ref'");

	push @arguments, 'k => ' . pick(1, 1, 2, 5, 20);
	push @arguments, 'max_distance => ' . pick(0, 200000, 1000000) if rand() < 0.4;
	push @arguments, 'keep_unmatched => true' if rand() < 0.2;
	push @arguments, "ties => 'all'" if rand() < 0.2;
	push @arguments, "metric => 'spheroid'" if rand() < 0.1;
	push @arguments, sprintf(q{options => '{"batch_rows": %d}'}, pick(1, 3, 50)) if rand() < 0.3;
	push @arguments, 'row_type => NULL::row_of_all' if rand() < 0.4;
	return 'geonn_nearest_points(' . join(', ', @arguments) . ')';
}

sub condition
{
	return pick('true', 'n.distance < 300000', 'n.ref_id % 3 = o.kind % 3', 'n.ord = 1', 'o.kind < 4',
		'n.distance > 50000 * o.kind', 'n.ref_id IS NULL', 'n.ref_id IS NULL OR n.distance > 5',
		'coalesce(n.ref_id, o.id) < 200', 'EXISTS (SELECT FROM ref r WHERE r.id = n.ref_id AND r.kind < 3)');
}

sub query
{
	my $outer = pick('obs o', 'obs o', '(SELECT * FROM obs ORDER BY id LIMIT 77) o',
		'(SELECT o.* FROM obs o JOIN kinds k ON k.kind = o.kind AND k.far < 5e5) o',
		'(SELECT kind, min(id) AS id, max(lat) AS lat, 5.5 AS lon FROM obs GROUP BY kind) o',
		'kinds k LEFT JOIN obs o ON o.kind = k.kind');
	my $columns = pick('o.id, n.*', 'o.lat, n.ref_id, n.ord', 'o.kind, count(*), min(n.distance)', '1 AS one');
	my $join = pick('CROSS JOIN', 'LEFT JOIN', 'LEFT JOIN');
	my $on = $join eq 'LEFT JOIN' ? 'ON ' . pick('true', 'true', 'n.distance < 400000', 'n.distance > 60000 * o.kind') : '';
	my $group = $columns =~ /count/ ? 'GROUP BY o.kind' : '';

	$group = 'ORDER BY o.id' if $group eq '' && rand() < 0.4;
	return "SELECT $columns FROM $outer $join LATERAL THE_CALL n $on WHERE " . condition() . " $group";
}

# ---- the same rows ----

# plans with a Gather wherever PostgreSQL can have one
my $parallel = q{SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	SET min_parallel_index_scan_size = 0; SET max_parallel_workers_per_gather = 2;};
my $with_node = 0;
my $with_workers = 0;
my $differ = 0;

for (1 .. $statements)
{
	my ($query, $call) = (query(), call_of());
	my $in_from = $call =~ /row_of_all/ && rand() < 0.5 ? with_list($call, $row_of_all) : $call;
	my $by_node = $query =~ s/THE_CALL/$in_from/r;
	my $by_function = $query =~ s/THE_CALL/(SELECT (f).* FROM (SELECT $call AS f OFFSET 0) s)/r;
	my $work_mem = pick('64kB', '4MB');
	my $sort = pick('on', 'off');
	my $workers = pick('', $parallel, $parallel, "$parallel SET parallel_leader_participation = off;");
	my $out = $node->safe_psql('postgres', qq{
		$workers
		SET client_min_messages = error;
		SET work_mem = '$work_mem';
		SET enable_sort = $sort;
		EXPLAIN (COSTS OFF) $by_node;
		CREATE TEMP TABLE a AS $by_node;
		SET max_parallel_workers_per_gather = 0; -- else each call would have workers to read its references
		CREATE TEMP TABLE b AS $by_function;
		SELECT 'differences: ' || count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) x;
	});
	my ($differences) = $out =~ /^differences: (\d+)/m;

	$with_node++ if $out =~ /geonn lateral join/;
	$with_workers++ if $out =~ /Gather.*Parallel Custom Scan \(geonn lateral join/s;
	next if $differences == 0;
	$differ++;
	diag("$differences rows differ (seed $seed): $by_node");
}
is($differ, 0, "the rows of $statements random statements are those of a call for each row");
cmp_ok($with_node, '>', 0.5 * $statements, "most of them, $with_node, have the node");
cmp_ok($with_workers, '>', 0.02 * $statements, "some of them, $with_workers, have it below a Gather");

# ---- one moment ----

my $lateral = "FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n";

$node->safe_psql('postgres', q{
	DELETE FROM obs WHERE lat IS NULL OR lon IS NULL OR lat > 90 OR lon = 'NaN';
	DELETE FROM ref WHERE lat > 90 OR lon = 'NaN';
	CREATE TABLE changed (yes boolean);
});
my $answer = $node->safe_psql('postgres', "SELECT string_agg(o.id || ' ' || n.ref_id, ',' ORDER BY o.id) $lateral");
my $reader = start_sql($node, qq{
	BEGIN;
	DECLARE c CURSOR FOR SELECT o.id || ' ' || n.ref_id $lateral;
	FETCH 1 FROM c;
	DO 'BEGIN WHILE NOT EXISTS (SELECT FROM changed) LOOP PERFORM pg_sleep(0.02); END LOOP; END';
	FETCH ALL FROM c;
	COMMIT;
});
wait_until(sub { $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DO %' AND state = 'active'") == 1 },
	'a cursor has returned a row');
$node->safe_psql('postgres', q{
	BEGIN;
	UPDATE obs SET lat = -lat;
	DELETE FROM ref WHERE id % 2 = 0;
	UPDATE ref SET lon = -lon;
	INSERT INTO changed VALUES (true);
	COMMIT;
});
my ($status, $out, $error) = finish_sql($reader);
$out = join(',', sort { ($a =~ /(\d+)/)[0] <=> ($b =~ /(\d+)/)[0] } split(/\n/, $out));
is($out, $answer, 'a cursor goes on with the references and rows of its own snapshot');

# references that were just changed are read once
my $plan = $node->safe_psql('postgres', "UPDATE ref SET lat = lat; EXPLAIN (ANALYZE, TIMING OFF) SELECT 1 $lateral");
my $references = $node->safe_psql('postgres', 'SELECT count(*) FROM ref WHERE lat + lon IS NOT NULL');
like($plan, qr/geonn lateral join.*actual rows=1\d\d.*References Read: $references\n/s,
	'references that were changed a moment ago are read once');

# with little work_mem a search has few points, but more than a few
$plan = $node->safe_psql('postgres', q{
	SET work_mem = '64kB';
	EXPLAIN (ANALYZE, TIMING OFF)
	SELECT 1 FROM (SELECT * FROM many_obs LIMIT 20000) o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n});
my ($batches) = $plan =~ /geonn lateral join.*Batches: (\d+)/s;
cmp_ok($batches, '<', 500, "20,000 rows with 64 kB of work_mem are $batches batches");

# ---- errors and cancels ----

my $slow = "SELECT count(*) FROM many_obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'many_ref') n";

my $search = start_sql($node, "$slow;");
wait_until(sub { status($node, 'searches') > 0 }, 'a slow join is under way');
$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . backend_of($node) . ')');
(undef, undef, $error) = finish_sql($search);
like($error, qr/canceling statement due to user request/, 'a cancel ends a slow join');
wait_until(sub { status($node, 'searches') == 0 }, 'and the engine drops it');

my $workers = q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND query LIKE '%many_obs%'};

$search = start_sql($node, "$parallel $slow;");
wait_until(sub { status($node, 'searches') > 0 && $node->safe_psql('postgres', $workers) > 0 }, 'a slow join with workers is under way');
$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . backend_of($node) . ')');
(undef, undef, $error) = finish_sql($search);
like($error, qr/canceling statement due to user request/, 'a cancel ends it');
wait_until(sub { status($node, 'searches') == 0 && $node->safe_psql('postgres', $workers) == 0 }, 'and its workers');

# a worker that is terminated ends the statement with an error
$search = start_sql($node, "$parallel $slow;");
wait_until(sub { status($node, 'searches') > 0 && $node->safe_psql('postgres', $workers) > 0 }, 'another one is under way');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
	WHERE backend_type = 'parallel worker' AND query LIKE '%many_obs%' LIMIT 1});
(undef, $out, $error) = finish_sql($search);
like($error, qr/terminating|lost connection to parallel worker/, 'the end of a worker ends it');

# an error in the middle, which a subtransaction catches, leaves the session able to go on
$node->safe_psql('postgres', 'UPDATE obs SET lat = 91 WHERE id = (SELECT max(id) FROM obs)');
is($node->safe_psql('postgres', qq{
	CREATE FUNCTION try() RETURNS text LANGUAGE plpgsql AS \$\$
	BEGIN
		PERFORM FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', invalid => 'error') n;
		RETURN 'no error';
	EXCEPTION WHEN OTHERS THEN
		RETURN SQLERRM;
	END \$\$;
	SELECT try() FROM generate_series(1, 20) GROUP BY 1;
	SELECT sessions <= 1 FROM geonn_status();
}), "latitude of point 1 of the arrays is out of range: 91\nt", 'errors leave no session of the engine behind');

done_testing();
