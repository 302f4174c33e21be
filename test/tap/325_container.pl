
# In a container whose memory or whose /dev/shm is full, the engine is the process that
# the kernel ends, and searches need no more of /dev/shm than PostgreSQL does.
#
# in a container: it has limits of its own
# short form: /dev/shm is full while the engine searches
# may skip: what takes a memory cgroup or a mount of /dev/shm that this host does not give
# rooms: client supervisor
# check-all: faults at each phase

use strict;
use warnings;

use Faults;
use Geonn;
use List::Util qw(max);
use Test::More;

my $group = $ENV{GEONN_MEMORY_CGROUP};
my $server = Faults->new('container');
my $node = $server->{node};

# ---- memory ----

sub write_to
{
	my ($name, $text) = @_;

	open(my $file, '>', "$group/$name") or die "$group/$name: $!";
	syswrite($file, $text) or die "$group/$name: $!";
	close($file);
}

# what the kernel goes by where there is no more memory: the highest is ended
sub score_of
{
	my ($pid) = @_;

	return Geonn::slurp("/proc/$pid/oom_score") + 0;
}

SKIP:
{
	my $fault = 'no more memory in the container';

	skip('this host lets nobody make a memory cgroup', 1) if !$group;
	last SKIP unless is_wanted($fault);
	my $next = max(map { score_of($_) } $server->postmaster, split /\n/, $node->safe_psql('postgres', 'SELECT pid FROM pg_stat_activity'));
	cmp_ok(score_of($server->engine), '>', $next + 300, 'of all processes of the server the kernel would end the engine');

	# it alone is in the group, so that nothing of others' can be given up instead
	write_to('memory.limit_in_bytes', 16 << 20);
	$node->safe_psql('postgres', 'CREATE VIEW many_ref AS SELECT i AS id, i * 13.1 % 180 - 90 AS lat, i * 17.9 % 360 - 180 AS lon
		FROM (SELECT generate_series(1, 4000000) AS i) s');
	my $outcome = $server->strike($fault, 'references', sub { write_to('cgroup.procs', $_[1]) },
		sql => "SELECT count(*) FROM geonn_nearest('obs', 'many_ref')",
		expected => 2000,
		fresh => 1);
	record('325', $fault, references => $outcome);
}

# ---- /dev/shm ----

sub fill_dev_shm
{
	open(my $file, '>', '/dev/shm/full') or die "/dev/shm/full: $!";
	1 while syswrite($file, "\0" x 4096);
	close($file);
}

SKIP:
{
	my $fault = 'no room in /dev/shm';

	skip('this host lets nobody mount a /dev/shm', 1) if !$ENV{GEONN_DEV_SHM};
	last SKIP unless is_wanted($fault);
	my %cells = map { $_ => $server->strike($fault, $_, sub { fill_dev_shm() }) } places_wanted($ENV{GEONN_LONG});
	record('325', $fault, %cells);

	my $parallel = "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; ";
	like($node->safe_psql('postgres', "$parallel EXPLAIN $search"), qr/Workers Planned: 2/, 'a plan with workers');
	my ($status, undef, $error) = finish_sql(start_sql($node, "$parallel $search;"));
	isnt($status, 0, 'has no room there');
	like($error, qr/ERROR:  could not resize shared memory segment .*: No space left on device/, "which is PostgreSQL's own error");
	unlink('/dev/shm/full');
	is($node->safe_psql('postgres', "$parallel $search"), $server->{expected}, 'and then its rows are right');
	$server->all_is_well('afterwards');
}

done_testing();
