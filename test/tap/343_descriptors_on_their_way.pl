
# The kernel lets a user's processes have only so many descriptors on their way to each
# other.  Other servers of that user may have them all: a search waits until they
# arrive, can be cancelled, and fails with an error that names the limit.
# rooms: client engine/server
# check-all: waits for half a minute

use strict;
use warnings;

use Geonn;
use IPC::Run;
use Test::More;

my $node = new_server('on_their_way', preload => 1, conf => 'geonn.idle_session_timeout = 0');
my $engine = status($node, 'engine_pid') || $node->safe_psql('postgres', 'SELECT geonn_engine_start()');
my $program = "$ENV{GEONN_BUILD}/in_flight";

# references with text ids: the backend sends the engine a file, and the engine sends it batches
my $search = q{
	SELECT string_agg(obs_id || ' ' || ref_id, ',' ORDER BY obs_id) FROM geonn_nearest_sql(
		'SELECT id::text AS id, lat, lon FROM few_obs', 'SELECT id::text AS id, lat, lon FROM few_ref',
		row_type => NULL::record) AS n(obs_id text, ref_id text)};
my $expected = $node->safe_psql('postgres', $search);

sub limit_files
{
	my ($process, $files) = @_;

	system('prlimit', '--pid', $process, "--nofile=$files:") == 0 or die "prlimit: $?";
}

# Start what other servers of this user would do, until its input ends.
sub crowd
{
	my %crowd = (in => '', out => '');

	$crowd{handle} = IPC::Run::start([ $program, 1000 ], '<', \$crowd{in}, '>', \$crowd{out});
	$crowd{handle}->pump until $crowd{out} =~ /ready/;
	return \%crowd;
}

sub disperse
{
	my ($crowd) = @_;

	$crowd->{handle}->finish;
}

# with few files the one side, or the other, may not add to them
foreach my $side ('the backend', 'the engine')
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $backend = $session->query_safe('SELECT pg_backend_pid()');
	my $process = $side eq 'the engine' ? $engine : $backend;
	my $former = (split ' ', `prlimit --pid $process --nofile --output=SOFT --noheadings --raw`)[0];
	my $crowd = crowd();

	limit_files($process, 100);
	$session->{stderr} = '';
	$session->query("SET statement_timeout = '1s'; $search; RESET statement_timeout");
	like($session->{stderr}, qr/canceling statement due to statement timeout/, "$side waits, and is cancelled");

	$session->{stderr} = '';
	$session->query($search);
	like($session->{stderr}, qr/ERROR:  .*could not send/, "$side waits, and then the search fails");
	like($session->{stderr}, qr/too many references/i, 'with the reason');
	like($session->{stderr}, qr/HINT:  .*LimitNOFILE/, 'and a hint at the limit');
	note($session->{stderr});

	$session->query_until(qr/begins/, "\\echo begins\n$search;\n");
	wait_until(
		sub {
			$node->safe_psql('postgres', "SELECT wait_event_type FROM pg_stat_activity WHERE pid = $backend") eq 'Extension';
		},
		'another search waits');
	disperse($crowd);
	like($session->query('SELECT 0'), qr/^\Q$expected\E$/m, 'until the others are done, and then has the right rows');
	limit_files($process, $former);
	is($session->query($search), $expected, 'and so has the next one of that session');
	$session->quit;
}

done_testing();
