
# test/bench/shards makes its servers, compares each question's rows and times, and tidies up after
# itself, whatever the environment says of another server.
# rooms: test/bench
# check-all: runs a bench

use strict;
use warnings;

use FindBin;
use Geonn;
use PostgreSQL::Test::Utils;
use Test::More;

my $bench = "$FindBin::Bin/../bench/shards";
my $scratch = PostgreSQL::Test::Utils::tempdir_short();

sub said_by
{
	my ($arguments) = @_;

	local @ENV{qw(TMPDIR PGHOST PGPORT PGUSER PGDATABASE PGOPTIONS)} = ($scratch, '/nowhere', 1, 'stranger', 'nowhere', '-c search_path=nowhere');
	return `$bench $arguments 2>&1`;
}

my $said = said_by('2 2000 300 1');
is($?, 0, 'no row differs') or diag($said);
like($said, qr/^2 shards, 2000 observations, 300 references, \d+ cores?, postgres \(PostgreSQL\) \d+/, 'it names its size and the server');

# a question, milliseconds of both, their ratio, and rows that differ
my @questions = (
	'count and sum', 'count and sum, by dblink', 'sum by region of the reference',
	'sum by region of the reference, by dblink', 'sum by region of the observation', 'by reference, HAVING',
	'WHERE on the distance', 'top 5', 'one observation', 'a row of the observations');
my @lines = split /\n/, $said =~ s/^.*?^question[^\n]*\n//msr;
is(scalar(@lines), @questions, 'a line for each question');
foreach my $question (@questions)
{
	like(shift(@lines), qr/^\Q$question\E(\s+[\d.]+){3}\s+0$/, "$question: figures, and no row that differs");
}
is_deeply([ glob("$scratch/*") ], [], 'nothing is left of the servers');

foreach my $wrong ('0', 'two', '2 1000 100 1 1')
{
	like(said_by($wrong), qr/^usage: /, "$wrong: usage");
	isnt($?, 0, 'and the exit status tells so');
}

done_testing();
