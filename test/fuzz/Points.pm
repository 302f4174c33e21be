
# Points: random coordinates, as text: where filters, ranges and the order of
# ties have their corners.

package Points;

use strict;
use warnings;

use Exporter 'import';
use Random;

our @EXPORT = qw(begin_points next_point coordinate_type coordinate broken_coordinate random_distance);

# what the points of a case share
my @styles;
my @pool;
my @center;
my $scale;

my %maker = (
	uniform => sub {
		my $digits = pick(0, 1, 3, 6, 13);

		return (
			sprintf('%.*f', $digits, 57.29577951308232 * asin(2 * rand() - 1)),
			sprintf('%.*f', $digits, 360 * rand() - 180));
	},
	cluster => sub {
		return (within_90($center[0] + $scale * (rand() - 0.5)), $center[1] + $scale * (rand() - 0.5));
	},
	grid => sub {
		return (within_90($center[0] + between(-3, 3)), $center[1] + between(-3, 3));
	},
	fine_grid => sub {
		return (within_90($center[0] + between(-3, 3) / 8), $center[1] + between(-3, 3) / 8);
	},
	mirrored => sub {
		return (pick(-1, 1) * pick(1, 30, 45.5), pick(-1, 1) * pick(1, 60, 90, 179));
	},
	pole => sub {
		return (
			pick(90, -90, '89.9999999', '-89.99999999999', 89),
			pick(0, -180, 180, 360, 270, 90, between(-180, 360)));
	},
	antimeridian => sub {
		return (
			pick(0, '-0.0', '1e-300', between(-89, 89)),
			pick(
				180, -180, '179.9999999', '-179.9999999', '180.0000001', 190, -170,
				360, '359.9999999', 0, '-0.0', '-1e-300'));
	},
	eastern => sub {
		return (between(-90, 90), between(150, 360));
	},
	antipode => sub {
		my ($latitude, $longitude) = known_point();

		return (
			within_90(-$latitude + pick(0, 0, 1e-9, 1e-14) * pick(-1, 1)),
			$longitude > 0 ? $longitude - 180 : $longitude + 180);
	},
	coincident => sub {
		return known_point();
	},
	beside => sub {
		my ($latitude, $longitude) = known_point();

		return (within_90($latitude * (1 + between(-2, 2) * 2**-52)), $longitude + pick(0, 360 * 2**-53, 1e-12));
	});

sub asin
{
	my ($sine) = @_;

	return atan2($sine, sqrt(1 - $sine * $sine));
}

sub within_90
{
	my ($latitude) = @_;

	return $latitude > 90 ? 90 : $latitude < -90 ? -90 : $latitude;
}

# a number as text that gives the same number
sub shortest
{
	my ($number) = @_;
	my $short = sprintf('%.15g', $number);

	return $short == $number ? $short : sprintf('%.17g', $number);
}

# one that the case has already, else one to begin with
sub known_point
{
	return @pool ? @{ pick(@pool) } : @center;
}

# Begin the points of a case.
sub begin_points
{
	@pool = ();
	@styles = chance(0.3) ? sort keys %maker : map { pick(sort keys %maker) } 1 .. between(1, 3);
	@center = (pick(0, 90, -90, between(-89, 89), 48.137), pick(0, 180, -180, 359, between(-170, 350), 11.575));
	$scale = 10**-between(-1, 13);
	return;
}

# (latitude, longitude) in range, each as text
sub next_point
{
	my ($latitude, $longitude) = $maker{ pick(@styles) }->();

	# sums may leave the range that their terms have
	$longitude -= 360 if $longitude > 360;
	$longitude += 360 if $longitude < -180;
	($latitude, $longitude) = map { shortest($_) } ($latitude, $longitude);
	push @pool, [ $latitude, $longitude ];
	return ($latitude, $longitude);
}

sub coordinate_type
{
	return weighted(
		float8 => 60,
		real => 8,
		numeric => 12,
		'numeric(12,7)' => 3,
		smallint => 3,
		integer => 4,
		bigint => 3,
		degrees_domain => 4);
}

# A coordinate as a column of that type can have it.
sub coordinate
{
	my ($type, $text) = @_;

	return sprintf('%.0f', $text) if $type =~ /int/;
	return '1e-30' if $type eq 'real' && $text =~ /e-[3-9]\d/;
	return '-1e-400' if $type eq 'numeric' && $text == 0 && chance(0.5);
	return $text;
}

# One that makes its row invalid, in a column of that type.
sub broken_coordinate
{
	my ($type, $which) = @_;
	my @out =
	  $which eq 'latitude' ? ('91', '-91', '180') : ('361', '-181', '-360');

	return pick(@out) if $type =~ /int/;
	return pick(@out, 'NaN') if $type eq 'numeric(12,7)';
	return pick(@out, 'NaN', 'Infinity', '-Infinity', '1e38') if $type eq 'real';
	return pick(@out, 'NaN', 'Infinity', '-Infinity', '1e400', '-1e400') if $type eq 'numeric';
	return pick(@out, 'NaN', 'Infinity', '-Infinity', '1e300', $which eq 'latitude'
		? ('90.00000000000002', '-90.00000000000002')
		: ('360.00000000000006', '-180.00000000000003'));
}

# A distance as an SQL expression: now and then exactly that of a pair of two sides (Side.pm).
sub random_distance
{
	my ($obs, $ref, $metric) = @_;
	my ($one, $other) = map { @{ $_->{places} } ? pick(@{ $_->{places} }) : undef } ($obs, $ref);

	if ($one && $other && chance(0.5))
	{
		return
		    'geonn_distance('
		  . join(', ', @$one, @$other, "'$metric'") . ')'
		  . pick('', '', '', ' * 0.9999999999999998', ' * 1.0000000000000002');
	}
	return weighted(
		0 => 8,
		q('Infinity') => 4,
		20037508 => 4,
		20015115 => 4,
		sprintf('%.3f', 10**(rand() * 8 - 1)) => 80);
}

1;
