
# test/bench/postgis measures PostGIS's statements on a server of its own, with geonn and without, and tidies up after
# itself.
#
# needs: postgis
# rooms: test/bench
# check-all: runs a bench

use strict;
use warnings;

use FindBin;
use Geonn;
use PostgreSQL::Test::Utils;
use Test::More;

my $bench = "$^X $FindBin::Bin/../bench/postgis";

my @expected = (
	(map { [ "$_, 20,000 rows", qr/^[\d.]+×$/ ] }
		  '(a) LIMIT 1, id and distance', '(a) LIMIT 10, ids', '(a) LIMIT 10, ids and distances', '(c) as a value',
		'(d) DISTINCT ON', '(d) DISTINCT ON, ST_DWithin', '(b) ORDER BY ST_Distance',
		'(f) WHERE r.id <> o.id', '(f) WHERE ST_DWithin(o.g, r.g, 100000)', '(f) WHERE r.c = o.c',
		'(e) JOIN, 10 pairs a row', '(e) JOIN by ST_Distance(a, b) <= d', '(e) EXISTS, true for 3 of 10 rows', '(e) NOT EXISTS, the same distance'),
	(map { [ qr/^the nearest of [\d,]+ $_, 20,000 rows$/, qr/^[\d.]+×$/ ] } 'lines', 'polygons'),
	(map { [ "(a) LIMIT 1 of lines$_, 20,000 rows", qr/^[\d.]+×$/ ] } '', ', id and distance'),
	(map { [ "geography alone, $_, 20,000 rows", qr/^[\d.]+×$/ ] } 'LATERAL <->, id and distance', 'geonn_nearest'),
	[ '(b) ORDER BY geonn_distance, 20,000 rows', qr/^[\d.]+×$/ ],
	(map { [ "$_, one row by its key", qr/^[\d.]+×$/ ] } '(a) LIMIT 1', '(c)', '(e) JOIN'),
	(map { [ "planning, $_", qr/^[\d.]+ µs$/ ] } 'a row by its key', 'a join of four tables', 'LATERAL by another order', 'ST_Intersects of polygons'),
	[ 'the nearest of 20,000 roads, 20,000 buildings', qr/^[\d.]+×$/ ],
	[ 'the nearest other building, 20,000 buildings', qr/^[\d.]+×$/ ],
	[ 'other buildings within 100 m, 40,000 buildings', qr/^[\d.]+ s$/ ],
	[ 'the nearest of 2,000 flights, 20,000 rows', qr/^[\d.]+ ms$/ ],
	[ 'the first join of 40,000 references in 3857', qr/^[\d.]+×$/ ],
	(map { [ qr/^$_ zones, 160,000 rows$/, qr/^[\d.]+×$/ ] } 'ST_Covers of geography, \d+', 'ST_Contains of geometry, \d+'),
	[ qr/^counts by GROUP BY, \d+ zones$/, qr/^[\d.]+×$/ ],
	(map { [ "$_, one row by its key", qr/^[\d.]+×$/ ] } 'ST_Contains', 'ST_Covers'),
	[ 'ST_DWithin, 500 m, of 20,000 streets, 20,000 rows', qr/^[\d.]+×$/ ],
	[ 'clusters of 20,000 points, 50 m', qr/^[\d.]+×$/ ],
	[ qr/^clusters of 20,000 points, 50 m: scikit-learn/, qr/^(?:[\d.]+×)?$/ ],
	[ 'clusters of 20,000 points at one place', qr/^[\d.]+ ms$/ ],
	[ 'assignment of 20,000 orders to 2,000 drivers', qr/^[\d.]+ s$/ ],
	(map { [ "thinning of 20,000 $_", qr/^[\d.]+ s$/ ] } 'scattered points, 5 km', 'points in crowds, 50 m'));

my $scratch = PostgreSQL::Test::Utils::tempdir_short();
my $said = do
{
	local $ENV{TMPDIR} = $scratch;
	`$bench --rows 20000 --sample 100 --repetitions 1 --seed 3 2>&1`;
};

is($?, 0, 'everything could be measured') or diag($said);
like($said, qr/ cores?, .* GiB of memory, .*\nPostgreSQL .*\nuniform points of seed 3/, 'it names the machine and the points');

# what this host lacks has no figure
my @lines = map { [ $_->[0], $_->[1] // '' ] } bench_lines($said);
has_bench_lines(\@lines, \@expected);
unlike($said, qr/failed| line \d/, 'nothing failed, and Perl has nothing to say');
is_deeply([ glob("$scratch/*") ], [], 'nothing is left of the server');

$said = `$bench --rows 20000 --sample 100 --repetitions 1 'ten million' 2>&1`;
has_bench_lines([ bench_lines($said) ], [ map { [ "clusters of 200,000 points, 30 others within the radius$_->[0]", $_->[1] ] }
		[ '', qr/^[\d.]+ s$/ ], [ ": the engine's share", qr/^0*[1-9.][\d.]*×$/ ] ]);

$said = `$bench --rows 100 --sample 200 2>&1`;
like($said, qr/--sample is at most --rows/, 'a sample is no larger than the table');
isnt($?, 0, 'and its exit status tells so');

done_testing();
