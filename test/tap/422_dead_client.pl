# A client that dies does not cancel: its search goes on, as any statement does, unless
# client_connection_check_interval has the server look after it.
# rooms: client

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('dead_client', slow => 1);

foreach my $settings ('', 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;')
{
	my $run = start_slow_search($node, "SET client_connection_check_interval = '200ms'; $settings");
	my $backend = backend_of($node);

	$run->{handle}->kill_kill(grace => 0);
	ok(wait_until(sub { $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $backend") == 0 },
		'the backend of a client that died ends'), 'within the time of a test');
	wait_until(sub { status($node, 'searches') == 0 }, 'and so does its search');
}

done_testing();
