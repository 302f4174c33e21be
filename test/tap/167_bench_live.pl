
# test/bench/live measures everything on a server of its own, and tidies up after itself.
# rooms: test/bench
# check-all: runs a bench

use strict;
use warnings;

use FindBin;
use Geonn;
use PostgreSQL::Test::Utils;
use Test::More;

my $scratch = PostgreSQL::Test::Utils::tempdir_short();
my $said = do
{
	local $ENV{TMPDIR} = $scratch;
	`$^X $FindBin::Bin/../bench/live --rows 5000 --seconds 1 --observations 2000 --clients 2 --many 2 --seed 3 2>&1`;
};

is($?, 0, 'everything could be measured') or diag($said);

# with PostGIS a figure is a ratio, without it a rate
my $rate = qr{^[\d.]+(×|/s)$};
my @expected = (
	[ 'a base, for each reference', qr/^[\d.]+ bytes$/ ],
	[ 'first call after a restart, VACUUM', qr/^[\d.]+×$/ ],
	[ 'first call after a restart, one row updated', qr/^[\d.]+×$/ ],
	[ 'second call after a restart, one row updated', qr/^[\d.]+×$/ ],
	[ 'unchanged, 1 client', $rate ],
	[ 'unchanged, 2 clients', $rate ],
	[ 'one row updated, 1 client', $rate ],
	[ 'one row updated, VACUUM, 1 client', $rate ],
	[ '100 updates/s beside, 2 clients', $rate ],
	[ '10,000 updates/s beside, 2 clients', $rate ],
	[ 'by a column, 5,000 references, 100 updates/s beside, 2 clients', $rate ],
	[ 'all rows updated each second, 2 clients', $rate ],
	[ 'updates alone', $rate ],
	[ '1 % of references changed since the last join, 2,000 observations', qr/^[\d.]+×$/ ],
	[ '1 % of references changed before the last join, 2,000 observations', qr/^[\d.]+×$/ ]);
my @lines = bench_lines($said);

has_bench_lines(\@lines, \@expected);
unlike($said, qr/failed| line \d/, 'nothing failed, and Perl has nothing to say');
is_deeply([ glob("$scratch/*") ], [], 'nothing is left of the server');
done_testing();
