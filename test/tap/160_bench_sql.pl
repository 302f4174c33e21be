
# test/bench/sql measures everything on a server of its own, and some of it on
# one that runs, and tidies up after itself.
# rooms: test/bench
# check-all: runs a bench

use strict;
use warnings;

use FindBin;
use Geonn;
use PostgreSQL::Test::Utils;
use Test::More;

my $bench = "$^X $FindBin::Bin/../bench/sql";
my $problem = '--rows 20000 --repetitions 1 --seed 3';

# a line of the table: what was measured, and the figure
my @expected = (
	[ 'join, 20,000 × 65,536, no workers, cpu', qr/^[\d.]+×$/ ],
	[ qr/^join, 20,000 × 65,536, up to \d+ workers, cpu$/, qr/^[\d.]+×$/ ],
	[ 'CREATE TABLE AS SELECT *, 20,000 × 65,536', qr/^[\d.]+×$/ ],
	(map { [ "k = $_, 20,000 × 65,536, cpu", qr/^[\d.]+×$/ ] } 2, 10, 30),
	[ 'exclude_self, 20,000 × 20,000, cpu', qr/^[\d.]+×$/ ],
	[ 'within 100 km, 20,000 × 65,536, cpu', qr/^[\d.]+×$/ ],
	(map { [ "count within $_ km, 20,000 × 1,048,576, cpu", qr/^[\d.]+×$/ ] } '112', '672', '33.6, 168 and 672'),
	(map { [ "$_, differs, 5,000 × 1,048,576, cpu", qr/^[\d.]+×$/ ] }
		  'nearest', 'k = 10', 'within 50 km', 'count within 112 km', 'count within 672 km'),
	[ 'spheroid, 20,000 × 65,536, cpu', qr/^[\d.]+×$/ ],
	[ 'join by 1,000 steps, 5,000 × 5,000, cpu', qr/^[\d.]+×$/ ],
	[ 'join by overlaps, 1,000 steps, 20,000 × 50,000, cpu', qr/^[\d.]+×$/ ],
	[ 'windows of ±1 % of the time, 200 × 50,000, cpu', qr/^[\d.]+×$/ ],
	[ "PostGIS's LATERAL by time, 100 × 50,000", qr/^([\d.]+×)?$/ ],
	[ "one observation, 1,048,576 unchanged references, the session's next calls, cpu", qr/^[\d.]+ ms$/ ],
	[ "join, 100 × 1,000, the session's next calls, cpu", qr/^[\d.]+ ms$/ ],
	[ 'geonn_nearest_points, one point, 65,536 kept references, 16 clients, cpu', qr{^\d+/s$} ],
	[ 'LATERAL geonn_nearest_points, 20,000 × 65,536 just updated', qr/^[\d.]+×$/ ],
	(map { my $kind = $_; map { [ "join with $kind, $_, 20,000 × 65,536", qr/^[\d.]+×$/ ] } 'tables as text', 'a prepared statement' }
		  'obs', 'obs, never analysed'),
	(map { my $work = $_; map { [ "$work, $_, 20,000 × 65,536", qr/^[\d.]+ ms$/ ] } 'the function', 'a view' }
		  'one observation by its id', '1,001 ids by a range'),
	[ 'counts within 5 km, the first call, 2,097,152 references, lat and lon', qr/^[\d.]+×$/ ],
	[ 'counts within 5 km, the first call, 2,097,152 references, geometry(Point)', qr/^([\d.]+×)?$/ ],
	[ "LOAD 'geonn', a new session", qr/^[\d.]+ ms$/ ],
	[ 'LIMIT 10, 20,000 × 65,536', qr/^[\d.]+ ms$/ ],
	[ 'memory of backend and workers, 20,000 × 65,536', qr/^[\d.]+ MiB$/ ],
	[ "PostGIS's LATERAL, 100 × 65,536", qr/^([\d.]+×)?$/ ]);

my $scratch = PostgreSQL::Test::Utils::tempdir_short();
my $said = do
{
	local $ENV{TMPDIR} = $scratch;
	`$bench $problem 2>&1`;
};

is($?, 0, 'everything could be measured') or diag($said);
like($said, qr/ cores?, .* GiB of memory, .*\nPostgreSQL .*\nuniform points of seed 3/, 'it names the machine and the points');

my @lines = grep { $_->[0] !~ /, cuda$/ } bench_lines($said);
has_bench_lines(\@lines, \@expected);
unlike($said, qr/failed| line \d/, 'nothing failed, and Perl has nothing to say');
is_deeply([ glob("$scratch/*") ], [], 'nothing is left of the server');

my $node = new_server('bench', preload => 1);
{
	local @ENV{qw(PGHOST PGPORT PGDATABASE)} = ($node->host, $node->port, 'postgres');

	$said = `$bench --server $problem serial limit 2>&1`;
	is($?, 0, 'a running server can be measured') or diag($said);
	is(scalar(grep { $_->[0] !~ /, cuda$/ } bench_lines($said)), 2, 'in what is asked for alone');
	unlike($said, qr/ line \d/, 'and Perl has nothing to say');
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_namespace WHERE nspname = 'geonn_bench'}),
		0, 'its schema is gone');
	is($node->safe_psql('postgres', $small_search), '1:7 2:8 3:9', 'the rest is still there');

	# a table that cannot be made all-visible cannot be measured
	my $old = start_sql($node, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; SELECT pg_sleep(600);');
	wait_until(
		sub {
			$node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()});
		},
		'an old snapshot is there');
	$said = `$bench --server $problem limit 2>&1`;
	is($? >> 8, 1, 'the exit status tells what could not be measured');
	like($said, qr/\| limit \| failed: .*snapshot/, 'and the table why');
	$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()});
	finish_sql($old);
}

$said = `$bench nothing 2>&1`;
like($said, qr/no measurement has a name/, 'an unknown name is an error');
isnt($?, 0, 'and its exit status tells so');

done_testing();
