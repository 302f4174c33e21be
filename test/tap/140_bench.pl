
# geonn-bench runs a small problem, finds its answers right, and says so in
# figures and in JSON.
# rooms: test/bench

use strict;
use warnings;

use JSON::PP;
use Test::More;

my $bench = "$ENV{GEONN_BUILD}/bench/geonn-bench";
my $file = "$ENV{TESTLOGDIR}/bench.json";
my $problem = '-n 2^16 -m 2^12 --device cpu --repetitions 2';

mkdir $ENV{TESTLOGDIR};
foreach my $neighbours (1, 5)
{
	my $name = "k = $neighbours";
	my $said = `$bench $problem -k $neighbours --json $file 2>&1`;

	is($?, 0, "$name: the exit status is that of right answers") or diag($said);
	like($said, qr/best [\d.]+ ms.*observations\/s/, "$name: it says how long it took");
	like($said, qr/answers: \d+ right/, "$name: and how many answers were checked");

	my $json = eval
	{
		open(my $handle, '<', $file) or die $!;
		local $/;
		decode_json(<$handle>);
	};
	my $run = $json ? $json->{runs}[0] : {};

	is($@, '', "$name: the JSON can be read");
	is_deeply(
		[ @$run{qw(observations references neighbours algorithm device)} ],
		[ 65536, 4096, $neighbours, 'index', 'cpu' ],
		"$name: it tells the problem");
	is(scalar(@{ $run->{total_ms} // [] }), 2, "$name: the time of every repetition");
	ok($run->{right} && $run->{checked} == 48, "$name: and that the answers were right");
}

foreach my $shapes ('--lines 8', '--polygons 5 -k 3')
{
	my $said = `$bench $problem $shapes 2>&1`;

	is($?, 0, "$shapes: the exit status is that of right answers") or diag($said);
	like($said, qr/answers: 48 right/, "$shapes: and answers were checked");
}

`$bench $problem --check 0 2>&1`;
is($? >> 8, 2, 'answers are never left unchecked');

done_testing();
