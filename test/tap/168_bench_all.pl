
# test/bench/all writes one file of results, of what this machine can measure and of why it can't measure the rest, and
# replaces the rows of a part that is measured again.
# rooms: test/bench
# check-all: runs benches

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bench";
use Geonn;
use PostgreSQL::Test::Utils;
use Results;
use Test::More;

my $scratch = PostgreSQL::Test::Utils::tempdir_short();
my $file = "$scratch/here.tsv";

sub said_by
{
	my ($arguments) = @_;

	local $ENV{TMPDIR} = $scratch;
	return `$^X $FindBin::Bin/../bench/all --quick $arguments 2>&1`;
}

my $said = said_by("--commit abc $file searches live");
is($?, 0, 'everything could be measured') or diag($said);
my $results = read_results($file);
is($results->{commit}, 'abc', 'the file names the commit');
like($results->{machine}, qr/, \d+ cores?, \d+ GiB of memory, /, 'and the machine');
like($results->{date}, qr/^\d{4}-\d\d-\d\d$/, 'and the date');
my %rows_of;
push @{ $rows_of{ $_->{section} } }, $_ foreach @{ $results->{rows} };
is_deeply([ sort keys %rows_of ], [ 'engine searches', 'live' ], 'it has the parts that were asked for');
is(scalar(@{ $rows_of{live} }), 15, 'and a row for each figure');
is_deeply([ grep { $_->{note} ne '' || $_->{figure} !~ /^[\d.]+$/ || $_->{least} > $_->{figure} || $_->{figure} > $_->{greatest} }
		  @{ $results->{rows} } ], [], 'each figure lies between the least and the greatest');

$said = said_by("--commit abc $file searches");
is($?, 0, 'a part can be measured again');
is(scalar(@{ read_results($file)->{rows} }), scalar(@{ $results->{rows} }), 'and its rows take the place of the old ones');

$said = said_by("--commit def $file searches");
isnt($?, 0, 'another commit has another file');
like($said, qr/has figures of the commit abc, and this is def/, 'and the message says so');

{
	local @ENV{qw(PG_CONFIG BIN)} = ('/nowhere/pg_config', '/nowhere');
	$said = said_by("--commit abc $file shards");
	isnt($?, 0, 'the exit status tells that a part could not be measured');
	like((grep { $_->{section} eq 'shards' } @{ read_results($file)->{rows} })[0]{note}, qr/^failed: .*nowhere/, 'and its row says why');
}

# a measurement that takes too long leaves a row, and the next one is measured
my $limited = "$scratch/limited.tsv";
{
	local $ENV{TMPDIR} = $scratch;
	$said = `$^X $FindBin::Bin/../bench/sql --rows 20000 --repetitions 20000 --limit 8 --results $limited serial limit 2>&1`;
}
is($? >> 8, 1, 'the exit status tells of a measurement that took too long');
# (on a busy machine the time is over before)
like(Geonn::slurp($limited), qr/^sql\tserial join\t.*\tfailed: (it took more than \d s|the 8 s of all measurements were over)$/m, 'and its row says so');
is_deeply([ grep { !/\.tsv$/ } glob("$scratch/*") ], [], 'nothing is left of the servers');
done_testing();
