
# Random: random choices of a case, which its seed and its number decide alone.

package Random;

use strict;
use warnings;

use Digest::MD5 qw(md5);
use Exporter 'import';

our @EXPORT = qw(begin_case chance between pick weighted shuffled);

# All choices until the next call follow from these two numbers.
sub begin_case
{
	my ($seed, $number) = @_;

	srand(unpack('L', md5("$seed $number")));
	return;
}

# true in this share of the calls
sub chance
{
	my ($share) = @_;

	return rand() < $share;
}

# an integer, both ends included
sub between
{
	my ($least, $most) = @_;

	return $least + int(rand($most - $least + 1));
}

sub pick
{
	my @choices = @_;

	return $choices[ rand(@choices) ];
}

# one of the choices, given as choice => weight
sub weighted
{
	my @choices = @_;
	my $sum = 0;

	for (my $i = 1; $i < @choices; $i += 2)
	{
		$sum += $choices[$i];
	}
	my $place = rand($sum);
	for (my $i = 0; $i < @choices; $i += 2)
	{
		$place -= $choices[ $i + 1 ];
		return $choices[$i] if $place < 0;
	}
	return $choices[0];
}

sub shuffled
{
	my @items = @_;

	for (my $i = $#items; $i > 0; $i--)
	{
		my $other = between(0, $i);
		@items[ $i, $other ] = @items[ $other, $i ];
	}
	return @items;
}

1;
