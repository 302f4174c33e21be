
# A backend's memory does not grow with its tables.
# rooms: join points client cache
# check-all: large tables

use strict;
use warnings;

use Geonn;
use Test::More;

# few pages of shared buffers and small batches, since both count as a
# backend's memory, and how many batches it comes to have is a matter of time;
# and no compiler, which large tables make worth its 60 MB
my $node = new_server('memory', preload => 1,
	conf => "shared_buffers = 4MB\njit = off\nmax_parallel_workers_per_gather = 0\ngeonn.transfer_memory_limit = '16MB'");

$node->safe_psql(
	'postgres', q{
	CREATE TABLE million AS
		SELECT i AS id, degrees(asin(2 * random() - 1)) AS lat, 360 * random() - 180 AS lon
		FROM generate_series(1, 1000000) i;
	CREATE TABLE millions AS
		SELECT i AS id, degrees(asin(2 * random() - 1)) AS lat, 360 * random() - 180 AS lon
		FROM generate_series(1, 6000000) i;
});

# (rows, most memory in kB) of a backend that has done one search
sub search
{
	my ($obs, $ref, $row_type) = @_;
	my $arguments = join(', ', "'$obs', '$ref'", $row_type // ());
	my $out = $node->safe_psql(
		'postgres', qq{
		SELECT count(*) FROM geonn_nearest($arguments) WHERE ref_id IS NOT NULL;
		SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\\s+(\\d+) kB');
	});
	note("$obs by $ref: $out kB") if $out =~ s/\n/ rows, /;
	return split / rows, /, $out;
}

# Batches and the ids beside them take up to 20 MB, sooner or later; an array
# of ids alone would take 40 MB more for the larger table.
my $allowed = 20 * 1024;

my ($rows, $memory) = search('million', 'few_ref');
my ($more_rows, $more_memory) = search('millions', 'few_ref');
is($rows, 1000000, 'a million observations are answered');
is($more_rows, 6000000, 'six million observations are answered');
cmp_ok($more_memory - $memory, '<', $allowed, 'in the same memory');

($rows, $memory) = search('few_obs', 'million');
($more_rows, $more_memory) = search('few_obs', 'millions');
is($rows, 3, 'a million references are searched');
is($more_rows, 3, 'six million references are searched');
cmp_ok($more_memory - $memory, '<', $allowed, 'in the same memory');

# a thousand ids of a megabyte each: batches end before their rows do
$node->safe_psql('postgres', q{
	CREATE VIEW long_ids AS
		SELECT repeat(chr(65 + i % 26), 1000000) AS id, i % 90 AS lat, 0 AS lon
		FROM generate_series(1, 1000) i;
	CREATE TYPE long_pair AS (obs_id text, ref_id bigint);
});
my ($long_rows, $long_memory) = search('long_ids', 'few_ref', 'row_type => NULL::long_pair');
is($long_rows, 1000, 'observations with long ids are answered');
cmp_ok($long_memory - $memory, '<', 256 * 1024, 'in less memory than their ids would take');

# one session with many cursors, each of which asks for all that there is, and reads none
$node->safe_psql('postgres', 'CREATE ROLE greedy LOGIN; CREATE ROLE modest LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO greedy, modest');
my $cursors = join('', map { "DECLARE c$_ CURSOR FOR SELECT obs_id FROM geonn_nearest('million', 'few_ref', options => '{\"batch_rows\": 4194304}'); FETCH 1 FROM c$_; " } 1 .. 20);
my $greedy = start_sql($node, "SET SESSION AUTHORIZATION greedy; BEGIN; $cursors SELECT pg_sleep(600);");
wait_until(sub { status($node, 'sessions') == 20 }, 'a session opens twenty cursors and leaves them idle')
  or diag($greedy->{err});
cmp_ok(status($node, 'transfer_memory'), '<=', 16 * 1024 * 1024, 'within the limit');
foreach my $role (qw(greedy modest))
{
	my @run = map { start_sql($node, "SET SESSION AUTHORIZATION $role; SELECT count(*) FROM geonn_nearest('million', 'few_ref');") } 1 .. 3;

	is_deeply([ map { [ (finish_sql($_))[0 .. 2] ] } @run ], [ ([ 0, 1000000, '' ]) x 3 ],
		"other sessions of " . ($role eq 'greedy' ? 'this role' : 'another role') . ' search meanwhile');
}
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()");
finish_sql($greedy);

# a cursor whose rows are all read
my $read = start_sql($node, "BEGIN; DECLARE c CURSOR FOR SELECT obs_id FROM geonn_nearest('million', 'few_ref', options => '{\"batch_rows\": 100000}'); MOVE ALL IN c; SELECT pg_sleep(600);");
wait_until(sub { $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") eq '1' },
	'a cursor is at its end, and open');
is($node->safe_psql('postgres', "SELECT count(*) FROM geonn_nearest('few_obs', 'few_ref', options => '{\"batch_rows\": 163840}'); SELECT fallbacks FROM geonn_stat WHERE arguments LIKE '%163840%'"),
	"3\n0", 'which leaves all its batches to others');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()");
finish_sql($read);

# a search that begins while memory is short, and goes on when it is not
my @greedy = map {
	$node->safe_psql('postgres', "CREATE ROLE greedy_$_ LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO greedy_$_");
	start_sql($node, "SET SESSION AUTHORIZATION greedy_$_; BEGIN; $cursors SELECT pg_sleep(600);")
} 1 .. 5;
wait_until(sub { status($node, 'sessions') == 100 }, 'five roles take what they get');
my $patient = start_sql($node, "SELECT count(*) FROM geonn_nearest('millions', 'few_ref', ties => 'all');");
wait_until(sub { $node->safe_psql('postgres', "SELECT count(*) FROM geonn_stat_progress WHERE arguments LIKE '%ties%' AND observations_done > 0") eq '1' },
	'another one searches in small batches');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()");
finish_sql($_) foreach @greedy;
is((finish_sql($patient))[1], 6000000, 'and to its end');
cmp_ok($node->safe_psql('postgres', "SELECT batches FROM geonn_stat WHERE arguments LIKE '%ties%'"), '<', 1500,
	'and in larger batches once there is memory for them');

# the limit of all sessions' batches makes them smaller, and fails nobody
my @sessions = map { start_sql($node, "SELECT count(*) FROM geonn_nearest('million', 'few_ref');") } 1 .. 8;
my @results = map { [ finish_sql($_) ] } @sessions;
is_deeply([ map { $_->[1] } @results ], [ (1000000) x 8 ], 'eight sessions share little transfer memory');
is(join('', map { $_->[2] } @results), '', 'without an error');

done_testing();
