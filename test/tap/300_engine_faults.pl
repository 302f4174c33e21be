
# An engine that dies, hangs or runs out of something costs the statements that it
# works for an error, wherever they are, and nobody else anything.
#
# short form: the faults of the engine strike while it searches
# rooms: client supervisor engine/server
# check-all: faults at each phase

use strict;
use warnings;

use Faults;
use Geonn;
use Test::More;

my $server = Faults->new('engine_faults');
my $node = $server->{node};

sub row
{
	my ($fault, $action, %option) = @_;

	return unless is_wanted($fault);
	my %cells = map {
		my $place = $_;
		my $plan = $option{plan} ? { plan => $option{plan} =~ s/PLACE/$place/r } : {};
		$place => $server->strike($fault, $place, $action, %option, %$plan);
	} grep { $_ ne 'start' || !$option{plan} } places_wanted($ENV{GEONN_LONG});
	record('300', $fault, %cells);
}

sub set_timeout
{
	my ($seconds) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET geonn.engine_timeout = '$seconds s'");
	$node->reload;
}

# The same limit on all that the engine does from now on, until it is lifted.
sub limit
{
	my ($engine, $what, $value) = @_;

	return if Geonn::is_gone($engine);
	system('prlimit', '--pid', $engine, "--$what=$value") == 0 or die "prlimit: $?";
}

my %former;

sub limit_row
{
	my ($fault, $what, $value) = @_;

	row($fault,
		sub {
			my (undef, $engine) = @_;
			$former{$what} = join(':', split ' ', `prlimit --pid $engine --$what --output=SOFT,HARD --noheadings --raw`);
			limit($engine, $what, (ref($value) ? $value->($engine) : $value) . ':');
		},
		meanwhile => sub {
			my ($self, $engine, $place) = @_;
			ok(!Geonn::is_gone($engine), "$fault at $place: the engine goes on") if $place ne 'start';
			limit($engine, $what, $former{$what});
		},
		fresh => 1,
		either => 'right or error');
}

# signals

foreach my $signal (qw(KILL SEGV ABRT))
{
	row("kill -$signal of the engine", sub { kill($signal, $_[1]) }, at_start => 'right or error');
}

set_timeout(2);
row('kill -STOP of the engine', sub { kill('STOP', $_[1]) }, at_start => 'right or error');
set_timeout(60);

# memory

row('no memory in the engine', undef, plan => 'exhaust PLACE 1', either => 'right or error');
limit_row('no more address space for the engine', 'as',
	sub { Geonn::slurp("/proc/$_[0]/statm") =~ /^(\d+)/; return $1 * 4096; });
limit_row('no more descriptors for the engine', 'nofile', 0);
limit_row('no larger files for the engine, as its memfds are', 'fsize', 0);

# a session with many such errors is none the worse for it

if (is_wanted('a session'))
{
	# faults are ordered for a session that begins, so each search opens one
	$node->safe_psql('postgres', 'ALTER SYSTEM SET geonn.idle_session_timeout = 0');
	$node->reload;

	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $size = 'SELECT sum(total_bytes) FROM pg_backend_memory_contexts';
	my $backend = $session->query_safe('SELECT pg_backend_pid()');
	my $errors = 0;

	$session->query($search);
	$session->query_safe($size);
	my $memory = $session->query_safe($size);
	my $descriptors = Faults::descriptors_of($backend);
	my $maps = () = Geonn::slurp("/proc/$backend/maps") =~ /memfd/g;
	foreach my $place (grep { $_ ne 'start' } @places)
	{
		foreach (1 .. 3)
		{
			$session->{stderr} = '';
			$server->order('session', "kill $place 1");
			$session->query($search);
			$errors++ if $session->{stderr} =~ /ERROR:/;
		}
	}
	$session->{stderr} = '';
	is($errors, 15, 'a session whose engine is killed many times has as many errors');
	is($session->query($search), $server->{expected}, 'and then the right rows');
	is(Faults::descriptors_of($backend), $descriptors, 'no more descriptors');
	is(scalar(() = Geonn::slurp("/proc/$backend/maps") =~ /memfd/g), $maps, 'no more mappings');
	cmp_ok($session->query_safe($size) - $memory, '<', 100000, 'and no more memory');
	$session->quit;
}

done_testing();
