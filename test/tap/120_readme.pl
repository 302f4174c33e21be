
# The README's SQL runs as written and prints what the README shows.

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('readme');
my $readme = Geonn::slurp($ENV{GEONN_README});
my @blocks;
push @blocks, { language => $1, text => $2 } while $readme =~ /^```(\w*)\n(.*?)^```$/msg;
my $statements = 0;
my $shown = 0;

# new_server has created it
$node->safe_psql('postgres', 'DROP EXTENSION geonn CASCADE');
foreach my $number (0 .. $#blocks)
{
	my $block = $blocks[$number];
	my $next = $blocks[ $number + 1 ];

	next unless $block->{language} eq 'sql';
	my ($status, $out, $error) = $node->psql('postgres', $block->{text});

	is($status, 0, 'runs: ' . (split /\n/, $block->{text})[0]);
	is($error, '', 'without a complaint');
	$statements++;

	# a block without a language after it is its answer, as psql prints it
	next unless $next && $next->{language} eq '' && $next->{text} =~ /\(\d+ rows?\)/;
	my @rows = map { s/^\s+|\s+$//gr =~ s/\s*\|\s*/|/gr }
	  map { split /\n/ } $next->{text} =~ /^[-+]+\n(.*?)^\(\d+ rows?\)$/msg;
	is($out, join("\n", @rows), 'and prints what the README shows');
	$shown++;
}
cmp_ok($statements, '>=', 4, 'the README has SQL');
cmp_ok($shown, '>=', 1, 'and shows an answer');

done_testing();
