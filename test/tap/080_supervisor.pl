
# The supervisor and its engine begin and end together, and there is one.
# rooms: supervisor

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Utils;
use Test::More;

sub postmaster_of
{
	my ($node) = @_;
	my ($pid) = split /\n/, Geonn::slurp($node->data_dir . '/postmaster.pid');

	return $pid;
}

my $node = new_server('supervisor', preload => 1, conf => 'restart_after_crash = on');
my $expected = $node->safe_psql('postgres', $small_search);

# a new configuration
my $engine = status($node, 'engine_pid');
foreach my $threads (1, 3)
{
	$node->safe_psql('postgres', "ALTER SYSTEM SET geonn.cpu_threads = $threads");
	$node->reload;
	wait_until(
		sub { $node->safe_psql('postgres', "SELECT threads FROM geonn_devices WHERE kind = 'cpu'") eq $threads },
		"geonn.cpu_threads = $threads reaches the engine");
}
$node->safe_psql('postgres', "ALTER SYSTEM SET geonn.gpu_memory_limit = '512MB'");
$node->reload;
wait_until(sub { $node->safe_psql('postgres', 'SHOW geonn.gpu_memory_limit') eq '512MB' },
	'geonn.gpu_memory_limit changes with a reload');
is($node->safe_psql('postgres', $small_search), $expected, 'after a reload a search works');
is(status($node, 'engine_pid'), $engine, 'and the engine is the same');

# the supervisor is killed, which makes PostgreSQL restart its processes
my $supervisor = status($node, 'supervisor_pid');
kill('KILL', $supervisor);
wait_until(sub { Geonn::is_gone($engine) }, 'the engine ends with its supervisor');
my $answer = '';
wait_until(
	sub { (undef, $answer) = $node->psql('postgres', $small_search); $answer eq $expected },
	'then a new one works');
is(scalar(engines_of(postmaster_of($node))), 1, 'and it is the only one');

# the supervisor is asked to end: the server goes on, and so does geonn
$supervisor = status($node, 'supervisor_pid');
$engine = status($node, 'engine_pid');
my $start_time = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
kill('TERM', $supervisor);
wait_until(sub { Geonn::is_gone($engine) && Geonn::is_gone($supervisor) },
	'a supervisor that is asked to end takes its engine along');
wait_until(
	sub { (undef, $answer) = $node->psql('postgres', $small_search); $answer eq $expected },
	'a search starts it again');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $start_time, 'in the same server');

# somebody tidies up too much
unlink($node->data_dir . '/pg_stat_tmp/geonn.sock');
is($node->safe_psql('postgres', $small_search), $expected, 'without its socket, the engine is started again');

# the server's own ends
foreach my $mode (qw(fast immediate smart))
{
	$node->safe_psql('postgres', $small_search);
	$engine = status($node, 'engine_pid');
	ok($node->stop($mode, fail_ok => 1), "pg_ctl stop -m $mode does not hang");
	wait_until(sub { Geonn::is_gone($engine) }, "pg_ctl stop -m $mode leaves no engine");
	$node->start;
}
wait_until(sub { status($node, 'state') eq 'running' }, 'preloaded, the engine starts with the server');
$engine = status($node, 'engine_pid');
my $postmaster = postmaster_of($node);
$node->kill9;
wait_until(sub { Geonn::is_gone($engine) }, 'the engine ends with a killed postmaster');
wait_until(sub { is_gone($postmaster) }, 'whose process is gone too');
$node->start;
is($node->safe_psql('postgres', $small_search), $expected, 'after which the server starts and searches');
$node->stop;

# not preloaded, many sessions start it at the same time
my $on_demand = new_server('on_demand');
is(scalar(engines_of(postmaster_of($on_demand))), 0, 'not preloaded, the engine waits for the first call');
my @sessions = map { start_sql($on_demand, "$small_search;") } 1 .. 6;
my @answers = map { (finish_sql($_))[1] } @sessions;
is_deeply(\@answers, [ ($expected) x 6 ], 'six sessions that start it at once are all answered');
is(scalar(engines_of(postmaster_of($on_demand))), 1, 'by one engine');
$engine = status($on_demand, 'engine_pid');
$on_demand->stop('fast');
wait_until(sub { Geonn::is_gone($engine) }, 'not preloaded, it ends with the server too');

done_testing();
