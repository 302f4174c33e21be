
# Results: a file of figures that benchmarks have measured on one machine, and the
# figures with their spread.
#
# test/bench/all begins such a file, benchmarks append rows to it with --results FILE,
# and test/bench/page makes tables of it.  It is text, with tabs between its fields:
#
#   # machine	AMD EPYC 7B13, 16 cores, 126 GiB of memory, 1 × NVIDIA H100
#   # commit	4f2b32aa7c14
#   # date	2026-11-27
#   # PostgreSQL	15.20
#   section	work	geonn	compared	figure	unit	least	greatest	goal	at least	note
#   sql	join, 4,000,000 × 65,536, no workers	448 ms	scan: 461 ms	0.97	×	0.95	1.02	1.2	1.4
#
# A figure is a median.  The least and the greatest are those of the repetitions, and
# of a ratio those of the ratios of the runs that followed each other.  Where the goal
# is the larger of both bounds the figure is to be at least that, else at most.  A row
# with a note has no figure: the note says why it could not be measured.

package Results;

use strict;
use warnings;

use Exporter 'import';
use List::Util qw(max min);

our @EXPORT = qw(
  sample sample_of_parts least_of greatest_of digits
  read_results begin_results append_row remove_section
  is_reached);

my @columns = ('section', 'work', 'geonn', 'compared', 'figure', 'unit', 'least', 'greatest', 'goal', 'at least', 'note');

# ---- a figure with its spread ----

# A number that remembers the numbers it is the median of.  Arithmetic with it gives
# another: of two of them, by their medians, and by the numbers that were measured
# one after the other.
package Results::Sample
{
	use overload
	  '0+' => sub { $_[0]{median} },
	  '""' => sub { $_[0]{median} },
	  '+' => sub { combine(sub { $_[0] + $_[1] }, @_) },
	  '-' => sub { combine(sub { $_[0] - $_[1] }, @_) },
	  '*' => sub { combine(sub { $_[0] * $_[1] }, @_) },
	  '/' => sub { combine(sub { $_[0] / $_[1] }, @_) },
	  fallback => 1;

	sub combine
	{
		my ($operation, $one, $other, $swapped) = @_;
		my $of = sub { $swapped ? $operation->($_[1], $_[0]) : $operation->($_[0], $_[1]) };
		my $is_sample = ref($other);
		my $count = $is_sample ? List::Util::min(map { scalar(@{ $_->{values} }) } $one, $other) : @{ $one->{values} };

		return bless {
			median => $of->($one->{median}, $is_sample ? $other->{median} : $other),
			values => [ map { $of->($one->{values}[$_], $is_sample ? $other->{values}[$_] : $other) } 0 .. $count - 1 ]
		};
	}
}

# The numbers that were measured, in their order, as one.
sub sample
{
	my @values = @_;
	my @sorted = sort { $a <=> $b } @values;

	return bless {
		median => ($sorted[ $#sorted / 2 ] + $sorted[ @sorted / 2 ]) / 2,
		values => \@values
	}, 'Results::Sample';
}

# The same of many numbers, with the spread of the medians of so many parts.
sub sample_of_parts
{
	my ($parts, @values) = @_;
	my $size = @values / $parts;

	return bless {
		median => sample(@values)->{median},
		values => [ map { sample(@values[ $_ * $size .. ($_ + 1) * $size - 1 ])->{median} } 0 .. $parts - 1 ]
	}, 'Results::Sample';
}

sub least_of { return ref($_[0]) ? min($_[0]{median}, @{ $_[0]{values} }) : $_[0]; }
sub greatest_of { return ref($_[0]) ? max($_[0]{median}, @{ $_[0]{values} }) : $_[0]; }

sub digits
{
	my ($number) = @_;
	my $text = sprintf('%.*f', $number >= 100 ? 0 : $number >= 10 ? 1 : 2, $number);

	$text =~ s/\.?0+$// if $text =~ /\./;
	return $text;
}

# What a figure reaches: "goal", "at least" or "no"; nothing where it has no goal.
sub is_reached
{
	my ($figure, $goal, $least) = @_;
	return '' if !defined $goal || $goal eq '';
	my $sign = $least ne '' && $goal > $least ? -1 : 1;

	return 'goal' if $sign * $figure <= $sign * $goal;
	return $least ne '' && $sign * $figure <= $sign * $least ? 'at least' : 'no';
}

# ---- the file ----

# Its heading, a name and a value each, and its rows, a value for each column.
sub read_results
{
	my ($name) = @_;
	my %results = (heading => [], rows => []);

	open(my $file, '<', $name) or die "could not read $name: $!\n";
	while (my $line = <$file>)
	{
		chomp($line);
		if ($line =~ /^# (.*?)\t(.*)/)
		{
			push @{ $results{heading} }, [ $1, $2 ];
			$results{$1} = $2;
			next;
		}
		my @fields = split(/\t/, $line, -1);
		my %row;

		next if $line eq join("\t", @columns);
		die "$name: line $. has not " . scalar(@columns) . " fields\n" if @fields != @columns;
		@row{@columns} = @fields;
		push @{ $results{rows} }, \%row;
	}
	return \%results;
}

sub write_results
{
	my ($name, $results) = @_;

	open(my $file, '>', $name) or die "could not write $name: $!\n";
	print $file map { "# $_->[0]\t$_->[1]\n" } @{ $results->{heading} };
	print $file join("\t", @columns), "\n";
	print $file row_text($_) foreach @{ $results->{rows} };
	close($file) or die "could not write $name: $!\n";
	return;
}

sub row_text
{
	my ($row) = @_;
	return join("\t", map { ($row->{$_} // '') =~ s/\s+/ /gr } @columns) . "\n";
}

# Begin a file, or go on with one that has the same machine and commit.
sub begin_results
{
	my ($name, @heading) = @_;
	my %new = map { @$_ } @heading;

	if (-s $name)
	{
		my $old = read_results($name);

		foreach my $field (qw(machine commit))
		{
			die "$name has figures of the $field $old->{$field}, and this is $new{$field}\n" if $old->{$field} ne $new{$field};
		}
		return;
	}
	write_results($name, { heading => \@heading, rows => [] });
	return;
}

# Remove the rows of a section, which is measured again.
sub remove_section
{
	my ($name, $section) = @_;
	my $results = read_results($name);

	@{ $results->{rows} } = grep { $_->{section} ne $section } @{ $results->{rows} };
	write_results($name, $results);
	return;
}

sub append_row
{
	my ($name, %row) = @_;

	open(my $file, '>>', $name) or die "could not write $name: $!\n";
	print $file row_text(\%row);
	close($file) or die "could not write $name: $!\n";
	return;
}

1;
