
# Whatever ends a backend, the supervisor or the server while a search is under way:
# the engine lets go of it, or ends with its server, and all is well afterwards.
#
# A killed backend or supervisor has PostgreSQL restart its processes, as any killed
# process of it does.
#
# short form: the faults of the server strike while the engine searches
# rooms: client supervisor engine/server
# check-all: faults at each phase

use strict;
use warnings;

use Faults;
use Geonn;
use Test::More;
use Time::HiRes qw(sleep);

my $server = Faults->new('server_faults');
my $node = $server->{node};

sub row
{
	my ($fault, $action, %option) = @_;

	return unless is_wanted($fault);
	my %cells = map { $_ => $server->strike($fault, $_, $action, %option) } places_wanted($ENV{GEONN_LONG});
	record('310', $fault, %cells);
}

# the process of the search
sub backend
{
	my $pid = join(' ', backends_at_work($node));

	like($pid, qr/^\d+$/, 'there is one backend at work');
	return $pid;
}

# of two, where one waits for the other's end, the one that has the engine
sub supervisor
{
	my ($engine) = @_;

	return (split ' ', Geonn::slurp("/proc/$engine/stat") =~ s/.*\) //sr)[1];
}

# what has to be gone before the server starts again
sub start_after
{
	my ($engine, @others) = @_;

	wait_until(sub { Geonn::is_gone($engine) }, 'the engine is gone');
	foreach my $pid (@others)
	{
		wait_until(sub { Geonn::is_gone($pid) }, 'and so is who had its data');
	}
	is(scalar(grep { Geonn::slurp("$_/cmdline") =~ /^\S*geonn-engine/ && (readlink("$_/cwd") // '') eq $node->data_dir } glob('/proc/[0-9]*')),
		0, 'and no other engine works there');
	$node->start;
}

# a statement that is ended

row('the statement is cancelled',
	sub { $node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . backend() . ')') },
	error => qr/canceling statement due to user request/);
row('its session is terminated',
	sub { $node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . backend() . ')') });

# the supervisor, and settings

row('kill -TERM of the supervisor',
	sub {
		my (undef, $engine) = @_;
		my $supervisor = supervisor($engine);
		kill('TERM', $supervisor);
		wait_until(sub { Geonn::is_gone($supervisor) && Geonn::is_gone($engine) }, 'it ends, and takes the engine along');
	},
	at_start => 'right or error');
row('the configuration is loaded again',
	sub {
		$node->safe_psql('postgres', 'ALTER SYSTEM SET geonn.cpu_threads = ' . (1 + int(rand(2))));
		$node->reload;
	});

# what restarts the server

row('kill -KILL of its backend', sub { kill('KILL', backend()) }, restarts => 1);
row('kill -KILL of the supervisor',
	sub {
		my $backend = backend();
		kill('KILL', supervisor($_[1]));
		wait_until(sub { Geonn::is_gone($backend) }, 'PostgreSQL ends its backend, too');
	},
	restarts => 1,
	either => 'error or ends');

# The supervisor and the backend are ended at the same time: a backend that hears of its
# engine's end first has an error.
foreach my $mode (qw(fast immediate))
{
	row("pg_ctl restart -m $mode",
		sub {
			$node->stop($mode);
			start_after($_[1]);
		},
		restarts => 1,
		either => 'error or ends');
}

row('kill -KILL of the postmaster',
	sub {
		my @processes = ($server->postmaster, backend(), supervisor($_[1]));
		$node->kill9;
		start_after($_[1], @processes);
	},
	restarts => 1);

done_testing();
