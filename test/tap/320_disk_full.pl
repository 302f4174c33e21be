
# Where results, or what a search needs, cannot be written, the statement has
# PostgreSQL's own error for that, or the engine's, and no more happens.
# rooms: client

use strict;
use warnings;

use Faults;
use Geonn;
use Test::More;

# segments of the write-ahead log are below the limit that files have here
my $server = Faults->new('disk_full', conf => "geonn.cpu_threads = 1\ntemp_file_limit = '1MB'\nmax_wal_size = '64MB'");
my $node = $server->{node};
my $table = "CREATE UNLOGGED TABLE result AS SELECT obs_id, ref_id, distance, repeat('x', 1000) FROM geonn_nearest('obs', 'ref', k => 16)";

$node->safe_psql('postgres', 'ALTER TABLE obs SET (parallel_workers = 0)');

# a file of the result may be as large as one of the log, and that is too small
sub limit_backend
{
	my ($node) = @_;
	my $backend = $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE query LIKE '%result%' AND pid <> pg_backend_pid() AND state = 'active'");

	system('prlimit', '--pid', $backend, '--fsize=' . (16 << 20) . ':') == 0 or die "prlimit: $?";
}

if (is_wanted('disk full under the results'))
{
	my $outcome = $server->strike('disk full under the results', 'drain', sub { limit_backend($node) },
		sql => $table,
		error => qr/ERROR:  could not (extend|write).*\n(DETAIL:.*\n)?HINT:  Check free disk space/);

	is($node->safe_psql('postgres', q{SELECT to_regclass('result') IS NULL}), 't', 'there is no table of half the results');
	record('320', 'disk full under the results', drain => $outcome);
}

if (is_wanted('no room for temporary files'))
{
	my $outcome = $server->strike('no room for temporary files', 'drain', undef,
		before => "SET work_mem = '64kB'; ",
		sql => "SELECT count(*) FROM (SELECT * FROM geonn_nearest('obs', 'ref', k => 64) ORDER BY distance, obs_id) n",
		error => qr/ERROR:  temporary file size exceeds "?temp_file_limit/);

	record('320', 'no room for temporary files', drain => $outcome);
}

# nothing of the engine's lies in /dev/shm, which containers keep small

my $engine = $server->engine;
$node->safe_psql('postgres', $search);
unlike(join("\n", Geonn::slurp("/proc/$engine/maps"), map { readlink($_) // '' } glob("/proc/$engine/fd/*")),
	qr{/dev/shm/}, 'the engine has nothing in /dev/shm');

done_testing();
