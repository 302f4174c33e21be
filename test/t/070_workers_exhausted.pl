
# Where PostgreSQL has no background worker to spare, the error says what to do; and where
# it has one for geonn, but none for a parallel plan, the leader does all.

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('exhausted', conf => 'max_worker_processes = 0');

foreach my $workers (0, 1)
{
	# the logical replication launcher takes the only one
	$node->append_conf('postgresql.conf', "max_worker_processes = $workers");
	$node->restart;
	my ($status, undef, $error) = $node->psql('postgres', $small_search);
	isnt($status, 0, "max_worker_processes = $workers: a search fails");
	like($error, qr/HINT:.*max_worker_processes/s, "max_worker_processes = $workers: the hint names the setting");
	note($error);
	is($node->safe_psql('postgres', 'SELECT engine_pid IS NULL FROM geonn_status()'),
		't', "max_worker_processes = $workers: geonn_status() works");
}

$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'geonn'\nmax_worker_processes = 2\n");
$node->restart;
is($node->safe_psql('postgres', $small_search), '1:7 2:8 3:9', 'preloaded, geonn has its worker');

my $parallel = "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;\n";
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
