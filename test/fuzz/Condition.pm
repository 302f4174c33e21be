
# Condition: random conditions on columns, as WHERE and ON have them.  None raises an error, and each
# has the same value wherever and however often it is evaluated.
#
# A column is a hash of
#   sql       its expression
#   type      as SQL has it, without a collation
#   family    integer, if it is compared with integers of all widths
#   values    some values to compare it with, as SQL
#
# A value is written by a sub of (type, SQL), which returns an SQL expression of it.

package Condition;

use strict;
use warnings;

use Exporter 'import';
use Random;
use Types;

our @EXPORT = qw(random_condition comparison_with id_column_of number_column);

my @comparisons = qw(= = = < <= > >= <>);

# the column of ids of a type of Types.pm, of which these, as text, are some
sub id_column_of
{
	my ($sql, $type, $id_type, @ids) = @_;

	$type =~ s/ COLLATE .*//;
	return {
		sql => $sql,
		type => $type,
		family => $id_type->{family} // '',
		values => [ map { cast_to($type, $_) } @ids, chance(0.1) ? undef : () ]
	};
}

sub number_column
{
	my ($sql, $type, @values) = @_;

	return { sql => $sql, type => $type, family => '', values => \@values };
}

# ---- terms ----

# an integer of any width that it fits in
sub integer_value
{
	my ($write, $number) = @_;

	return $write->('numeric', "$number" . pick('', '.0', '.5')) if chance(0.1);
	return $write->(pick('smallint', 'integer'), "($number)") if abs($number) < 32768 && chance(0.5);
	return $write->('bigint', "($number)");
}

sub value_of
{
	my ($write, $column) = @_;
	my @values = @{ $column->{values} };
	my $value = @values ? pick(@values) : "CAST(NULL AS $column->{type})";
	my ($number) = $column->{family} eq 'integer' ? $value =~ /^CAST\('(-?\d{1,15})' / : ();

	return defined $number && chance(0.4)
	  ? integer_value($write, $number + (chance(0.2) ? pick(-1, 1) : 0))
	  : $write->($column->{type}, $value);
}

# The column compared with the value of this expression, on either side.
sub comparison_with
{
	my ($column, $value) = @_;
	my $comparison = pick(@comparisons);

	return chance(0.7) ? "$column->{sql} $comparison $value" : "$value $comparison $column->{sql}";
}

# what is no comparison with one value, and a planner may look into
my @terms = (
	sub {
		my ($write, $column) = @_;
		return "$column->{sql} IN (" . join(', ', map { value_of($write, $column) } 1 .. between(1, 4)) . ')';
	},
	sub {
		my ($write, $column) = @_;
		return "$column->{sql} BETWEEN " . value_of($write, $column) . ' AND ' . value_of($write, $column);
	},
	sub {
		my ($write, $column) = @_;
		return "$column->{sql} IS " . pick('', 'NOT ') . 'NULL';
	},
	sub {
		my ($write, $column) = @_;
		return "$column->{sql} IS " . pick('', 'NOT ') . 'DISTINCT FROM ' . value_of($write, $column);
	},
	sub {
		my ($write, $column) = @_;
		my $value = value_of(sub { $_[1] }, $column);
		return "coalesce($column->{sql}, $value) = $value";
	},
	sub {
		my ($write, $column) = @_;
		return "CASE WHEN $column->{sql} > ${\value_of($write, $column)} THEN true ELSE $column->{sql} IS NULL END";
	},
	sub {
		my ($write, $column) = @_;
		return "hashtext($column->{sql}::text) % " . between(2, 3) . ' = 0';
	},
	sub {
		my ($write, $column) = @_;
		return comparison_with($column, value_of($write, $column)) . ' AND random() >= 0';
	});

sub random_term
{
	my ($write, @columns) = @_;
	my $column = pick(@columns);
	my @like = grep { $_->{type} eq $column->{type} && $_->{sql} ne $column->{sql} } @columns;

	return comparison_with($column, pick(@like)->{sql}) if @like && $column->{type} eq 'float8' && chance(0.15);
	return $terms[ rand(@terms) ]->($write, $column) if chance(0.45);
	return comparison_with($column, value_of($write, $column));
}

# ---- conditions ----

# A condition on some of these columns, in parentheses.
sub random_condition
{
	my ($write, @columns) = @_;
	return 'true' unless @columns;
	my $condition = '(' . random_term($write, @columns) . ')';

	while (chance(0.4))
	{
		$condition = "($condition " . pick('AND', 'AND', 'OR') . ' (' . random_term($write, @columns) . '))';
	}
	return chance(0.08) ? "(NOT $condition)" : $condition;
}

1;
