
# Where PostgreSQL has no background worker to spare, the error says what to do; and where
# it has one for geonn, but none for a parallel plan, the leader does all.
# rooms: plan supervisor

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('exhausted', conf => 'max_worker_processes = 0');

# Do what the HINT of a search's error says of settings, restart, and search again.
sub works_after_hint
{
	my ($name, $hint) = @_;
	my ($status, undef, $error) = $node->psql('postgres', $small_search);

	isnt($status, 0, "$name: a search fails");
	like($error, $hint, "$name: the hint says what helps here");
	note($error);
	is($node->safe_psql('postgres', 'SELECT engine_pid IS NULL FROM geonn_status()'), 't', "$name: geonn_status() works");

	$node->append_conf('postgresql.conf', "max_worker_processes = $1") if $error =~ /max_worker_processes to (\d+)/;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'geonn'") if $error =~ /add geonn to shared_preload_libraries/;
	$node->restart;
	is($node->safe_psql('postgres', $small_search), '1:7 2:8 3:9', "$name: which it does");
}

# the launcher of logical replication takes the first one, if it is wanted
foreach my $preload ('', 'geonn')
{
	foreach my $launcher (0, 1)
	{
		foreach my $workers (0 .. $launcher)
		{
			$node->append_conf('postgresql.conf', "shared_preload_libraries = '$preload'\n"
				. "max_worker_processes = $workers\nmax_logical_replication_workers = $launcher");
			$node->restart;
			works_after_hint("max_worker_processes = $workers, launcher $launcher, preloaded '$preload'",
				qr/HINT:  Set max_worker_processes to @{[ $launcher + 1 ]} or more and restart the server\.$/m);
		}
	}
}

# others have them all for a while
my $parallel = "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;\n";
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\nmax_worker_processes = 2\n");
$node->restart;
$node->safe_psql('postgres', q{
	CREATE TABLE busy AS SELECT 1 AS a FROM generate_series(1, 1000);
	ALTER TABLE busy SET (parallel_workers = 2);
	CREATE FUNCTION work(integer) RETURNS bool PARALLEL SAFE COST 10000 LANGUAGE plpgsql
		AS 'BEGIN PERFORM pg_sleep(600); RETURN true; END'});

sub start_busy
{
	my $run = start_sql($node, "${parallel}SET parallel_leader_participation = off; SELECT count(*) FROM busy WHERE work(a);");

	wait_until(sub { $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'}) == 1 },
		'a parallel query has the last worker');
	return $run;
}

my $busy = start_busy();
my (undef, undef, $error) = $node->psql('postgres', $small_search);
like($error, qr/HINT:  Run the statement again when another background worker has ended\./, 'others: the hint says to wait');
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%work(a)%' AND backend_type = 'client backend' AND pid <> pg_backend_pid()});
finish_sql($busy);
is($node->safe_psql('postgres', $small_search), '1:7 2:8 3:9', 'others: and then it works');

$node->restart;
$busy = start_busy();
works_after_hint('others have all workers', qr/set max_worker_processes to 3 or more, add geonn to shared_preload_libraries, and restart the server\.$/m);
finish_sql($busy);

# preloaded, geonn keeps its worker whatever parallel queries take
$node->append_conf('postgresql.conf', "max_worker_processes = 2\n");
$node->restart;
is($node->safe_psql('postgres', $small_search), '1:7 2:8 3:9', 'preloaded, geonn has its worker');

$node->safe_psql('postgres', 'ALTER TABLE few_obs SET (parallel_workers = 2)');

foreach my $participation (qw(on off))
{
	my $settings = "${parallel}SET parallel_leader_participation = $participation;\n";
	my $plan = $node->safe_psql('postgres', "${settings}EXPLAIN (ANALYZE) $small_search");

	like($plan, qr/Workers Planned: [1-9]\s+Workers Launched: 0\n/, 'a parallel plan is run without workers');
	like($plan, qr/Leader: batches: 1, observations: 3,/, 'its leader does all');
	is($node->safe_psql('postgres', $settings . $small_search), '1:7 2:8 3:9', 'and gives the rows');
}

done_testing();
