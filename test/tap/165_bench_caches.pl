
# test/bench/caches measures everything on a server of its own, and some of it on one
# that runs, and tidies up after itself.
#
# short form: without growth, kinds of baselines, and references that move while pg_cron refreshes
# may skip: the server with pg_cron, where that is not installed
# rooms: test/bench
# check-all: runs a bench

use strict;
use warnings;

use FindBin;
use Geonn;
use PostgreSQL::Test::Utils;
use Test::More;

my $bench = "$^X $FindBin::Bin/../bench/caches";
my $problem = '--rows 5000 --repetitions 1 --seconds 1 --seed 3';

# a line of the table: what was measured, and the figure
my @expected = (
	[ 'first fill, 5,000 × 65,536', qr/^[\d.]+×$/ ],
	[ 'first refresh, 1 % of references moved, 5,000 × 65,536', qr/^[\d.]+×$/ ],
	[ 'full, nothing differs, 5,000 × 65,536', qr/^[\d.]+×$/ ],
	[ 'nothing changed, pages tell, 5,000 × 65,536', qr/^[\d.]+ ms$/ ],
	[ 'one observation changed, 5,000 × 65,536', qr/^[\d.]+ ms$/ ],
	[ '10 references moved, 5,000 × 65,536', qr/^[\d.]+×$/ ],
	[ '1 % of references moved, 5,000 × 65,536', qr/^[\d.]+×$/ ],
	[ 'all references moved, 5,000 × 65,536', qr/^[\d.]+×$/ ],
	[ 'longest wait of a reader at the end of a refresh, 5,000 × 65,536', qr/^[\d.]+ ms$/ ],
	[ '1 % of references moved, tables never analyzed, 5,000 × 65,536', qr/^[\d.]+×$/ ],
	[ 'the table after 50 refreshes of 1 %, 5,000 × 65,536', qr/^[\d.]+×$/ ],
	[ 'its index after 50 refreshes of 1 %, 5,000 × 65,536', qr/^[\d.]+×$/ ],
	[ 'its baselines after 50 refreshes of 1 %, 5,000 × 65,536', qr/^[\d.]+×$/ ],
	[ '1 % of references moved, table, 5,000 × 65,536', qr/^[\d.]+×$/ ],
	[ '1 % of references moved, spheroid, 5,000 × 65,536', qr/^[\d.]+×$/ ],
	[ '10 references moved, k = 100, 1,000 × 65,536', qr/^[\d.]+×$/ ],
	[ '1 % of references moved, foreign table, 5,000 × 65,536', qr/^[\d.]+×$/ ],
	[ "a reader's 99th percentile, 5,000 × 65,536", qr/^[\d.]+×$/ ]);

# growth and baselines have seven of them
splice(@expected, 10, 7) if !$ENV{GEONN_LONG};
my $names = $ENV{GEONN_LONG} ? '' : 'fill full changed moved references statistics readers';

my $scratch = PostgreSQL::Test::Utils::tempdir_short();
my $said = do
{
	local $ENV{TMPDIR} = $scratch;
	`$bench $problem $names 2>&1`;
};

is($?, 0, 'everything could be measured') or diag($said);

my @lines = bench_lines($said);
has_bench_lines(\@lines, \@expected);
unlike($said, qr/failed| line \d/, 'nothing failed, and Perl has nothing to say');
is_deeply([ glob("$scratch/*") ], [], 'nothing is left of the server');

# on a server of its own, too
SKIP:
{
	chomp(my $share = `pg_config --sharedir`);
	skip('pg_cron takes a minute to begin', 8) if !$ENV{GEONN_LONG};
	skip('pg_cron is not installed', 8) if !-e "$share/extension/pg_cron.control";

	local $ENV{TMPDIR} = $scratch;
	$said = `$bench $problem --minutes 0.3 cron 2>&1`;
	is($?, 0, 'references that move while pg_cron refreshes can be measured') or diag($said);

	my $moves = 'every reference moves for 0.3 minutes, 5,000 × 65,536';
	@lines = map { join(': ', @$_) } bench_lines($said);
	like($lines[0], qr/^$moves: [\d.]+×$/, 'how many refreshes');
	like($lines[1], qr/^$moves: [\d.]+ ms$/, 'how long they take');
	like($lines[2], qr/^$moves: [\d.]+ ms$/, 'how late the table is');
	like($lines[3], qr/^a reader's 99th percentile meanwhile, 5,000 × 65,536: [\d.]+×$/, 'and how long a reader waits');
	is(scalar(@lines), 4, 'that is all');
	unlike($said, qr/failed| line \d/, 'nothing failed');
	is_deeply([ glob("$scratch/*") ], [], 'and nothing is left of the server');
}

my $node = new_server('bench', preload => 1);
{
	local @ENV{qw(PGHOST PGPORT PGDATABASE)} = ($node->host, $node->port, 'postgres');

	$node->safe_psql('postgres', q{SELECT geonn_cache_create('few', 'few_obs', 'few_ref')});
	$said = `$bench --server $problem unchanged 2>&1`;
	is($?, 0, 'a running server can be measured') or diag($said);
	is(scalar(bench_lines($said)), 1, 'in what is asked for alone');
	unlike($said, qr/ line \d/, 'and Perl has nothing to say');
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_namespace WHERE nspname = 'geonn_bench'}),
		0, 'its schema is gone');
	is($node->safe_psql('postgres', 'SELECT name, status FROM geonn_caches'),
		'few|succeeded', 'and its caches, and the others are still there');

	# a run leaves a row that is not what a search returns, and its last run as if it had not
	$node->safe_psql(
		'postgres', q{
		CREATE TABLE former AS SELECT * FROM geonn_cache_last_run WITH NO DATA;
		CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			INSERT INTO public.former SELECT * FROM public.geonn_cache_last_run;
			UPDATE geonn_bench.kept SET distance = distance OPERATOR(pg_catalog.+) 1 WHERE obs_id = 7;
			INSERT INTO public.geonn_cache_last_run SELECT * FROM public.former ON CONFLICT DO NOTHING;
			DELETE FROM public.former;
			RETURN NULL;
		END $$;
		CREATE TRIGGER spoil AFTER UPDATE ON geonn_cache_run FOR EACH STATEMENT EXECUTE FUNCTION spoil();
	});
	$said = `$bench --server $problem unchanged 2>&1`;
	is($? >> 8, 1, 'the exit status tells what could not be measured');
	like($said, qr/\| unchanged \| failed: WRONG: .* rows/, 'and the table that rows are wrong');
	is($node->safe_psql('postgres', 'SELECT name FROM geonn_caches'), 'few', 'all is gone, too');
}

done_testing();
