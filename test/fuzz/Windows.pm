
# Windows: the types of columns of overlaps, and the values that cases take of
# them: few enough that bounds coincide, with infinite, empty and unbounded ones.
# Brute force compares the windows of a family by one range type.

package Windows;

use strict;
use warnings;

use Exporter 'import';
use Random;

our @EXPORT = qw($create_windows random_windows random_window window_of array_of radius_column radius_of);

# after Types.pm's
our $create_windows = <<'SQL';
CREATE TYPE smallrange AS RANGE (subtype = smallint);
CREATE TYPE plainrange AS RANGE (subtype = integer);
CREATE TYPE widerange AS RANGE (subtype = bigint);
CREATE TYPE realrange AS RANGE (subtype = real);
CREATE TYPE floatrange AS RANGE (subtype = double precision);
CREATE TYPE degreesrange AS RANGE (subtype = degrees_domain);
CREATE TYPE clockrange AS RANGE (subtype = time);
CREATE DOMAIN moment_domain AS timestamptz CHECK (VALUE > '-infinity');
CREATE DOMAIN validity_domain AS tstzrange;
CREATE DOMAIN floatrange_domain AS floatrange CHECK (VALUE IS DISTINCT FROM 'empty');
SQL

# Values in their order.  Ranges with a canonical form have bounds of their own where it
# leaves the type.
my @moments = ('2026-01-01 00:00:00+00', '2026-01-01 00:00:00.000001+00', '2026-01-01 12:00:00+00', '2026-01-02 00:00:00+00', '2026-03-01 00:00:00+00');
my @times = map { s/\+00$//r } @moments;
my @integers = (-32768, -2 .. 4, 9, 32766);
my @floats = ('-Infinity', '-1.5', '-1e-40', '-0', '0', '1e-40', '1', '1.5', 'Infinity', 'NaN');

# each family: the range type that brute force compares by, the type of its bounds, and types with their values
my @families = (
	{
		range => 'numrange',
		bound => 'numeric',
		types => [
			[ smallint => \@integers ],
			[ integer => \@integers ],
			[ number_domain => \@integers ],
			[ bigint => [ '-9223372036854775808', @integers, '9223372036854775807' ] ],
			[ smallrange => \@integers, 1 ],
			[ int4range => \@integers, 1 ],
			[ plainrange => \@integers, 1 ],
			[ int8range => \@integers, 1 ],
			[ widerange => [ '-9223372036854775808', @integers, '9223372036854775807' ], 1 ]
		]
	},
	{
		range => 'floatrange',
		bound => 'float8',
		types => [
			[ real => \@floats ],
			[ float8 => \@floats ],
			[ degrees_domain => \@floats ],
			[ realrange => \@floats, 1 ],
			[ floatrange => \@floats, 1 ],
			[ degreesrange => \@floats, 1 ],
			[ floatrange_domain => \@floats, 1 ]
		]
	},
	{
		range => 'daterange',
		bound => 'date',
		types => [ map { [ @$_, 1 ], [ date => $_->[1] ] }
			  [ daterange => [ '-infinity', '2025-12-31', '2026-01-01', '2026-01-02', '2026-02-28', 'infinity' ] ] ]
	},
	{
		range => 'clockrange',
		bound => 'time',
		types => [ map { [ time => $_ ], [ clockrange => $_, 1 ] }
			  [ '00:00', '10:00', '10:00:00.000001', '10:30', '24:00' ] ]
	},
	{
		range => 'tsrange',
		bound => 'timestamp',
		types => [ map { [ timestamp => $_ ], [ tsrange => $_, 1 ] } [ '-infinity', @times, 'infinity' ] ]
	},
	{
		range => 'tstzrange',
		bound => 'timestamptz',
		types => [
			[ timestamptz => [ '-infinity', @moments, 'infinity' ] ],
			[ moment_domain => [ @moments, 'infinity' ] ],
			[ tstzrange => [ '-infinity', @moments, 'infinity' ], 1 ],
			[ validity_domain => [ '-infinity', @moments, 'infinity' ], 1 ]
		]
	});

# columns of overlaps: {name, family, obs, ref}, with a type of either side
sub random_windows
{
	my ($most) = @_;
	my @names = shuffled('seen', 'Valid "at"', 'between');
	my $count = weighted(0 => 60, 1 => 27, 2 => 9, 3 => 4);

	return map {
		my $family = pick(@families);
		{ name => $_, family => $family, obs => pick(@{ $family->{types} }), ref => pick(@{ $family->{types} }) }
	} @names[ 0 .. ($count < $most ? $count : $most) - 1 ];
}

# A value of the type as text, never NULL.
sub random_window
{
	my ($type) = @_;
	my ($name, $values, $is_range) = @$type;
	my ($low, $high) = sort { $a <=> $b } map { between(0, $#$values) } 1 .. 2;
	my ($open, $close) = (pick('[', '('), pick(']', ')'));

	return pick(@$values) unless $is_range;
	return 'empty' if chance(0.08) && $name ne 'floatrange_domain';
	$high = $low if chance(0.15);

	# the checks of a domain, and what has no canonical form
	($open, $close) = ('[', ']') if $name eq 'floatrange_domain' && ($low == $high || "$values->[$low] $values->[$high]" eq '-0 0');
	return $open
	  . (chance(0.12) ? '' : qq("$values->[$low]")) . ','
	  . (chance(0.12) ? '' : qq("$values->[$high]"))
	  . $close;
}

# The SQL expression of a column as a range of the family's type; NULL of NULL, which a range
# function would take for no bound.
sub window_of
{
	my ($family, $type, $column) = @_;
	my ($range, $bound) = @$family{qw(range bound)};

	return "CASE WHEN $column IS NOT NULL THEN $range($column\::$bound, $column\::$bound, '[]') END" unless $type->[2];
	return "CASE WHEN isempty($column) THEN 'empty' WHEN $column IS NOT NULL THEN "
	  . "$range(lower($column)::$bound, upper($column)::$bound, "
	  . "CASE WHEN lower_inc($column) THEN '[' ELSE '(' END || CASE WHEN upper_inc($column) THEN ']' ELSE ')' END) END";
}

# the literal of an array of texts, some of them undef
sub array_of
{
	return '{' . join(',', map { !defined $_ ? 'NULL' : '"' . s/(["\\])/\\$1/gr . '"' } @_) . '}';
}

# A column of radiuses, {type, values} for so many rows.
sub radius_column
{
	my ($rows) = @_;
	my $type = pick('float8', 'float8', 'real', 'numeric', 'integer');
	my @odd = (undef, '-1', '0', $type eq 'integer' ? () : ('NaN', 'Infinity', '-Infinity'));
	my $oddity = pick(0.05, 0.3);
	my $scale = between(-1, 7);

	return {
		type => $type,
		values => [
			map { chance($oddity) ? pick(@odd) : sprintf($type eq 'integer' ? '%.0f' : '%.3f', rand() * 10**$scale) } 1 .. $rows
		]
	};
}

# the SQL expression of that column as the metres that limit a row
sub radius_of
{
	my ($column) = @_;

	return "coalesce(nullif($column\::float8, 'NaN'), 'Infinity')";
}

1;
