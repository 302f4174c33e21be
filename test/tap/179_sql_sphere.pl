
# PostGIS's statements on points with lines and polygons of type geography have the right rows by geonn's node: ST_Covers,
# ST_CoveredBy, ST_Intersects, ST_DWithin and ST_Distance with a limit agree with test/fuzz/shape_distances, which
# computes with 50 digits and shares no code with geonn, for each point that is farther than a millimetre from a
# boundary, or from the distance asked for.  Where the spheroid decides, pairs that it may decide either way are left out: a
# distance on it is 0.9944 to 1.0046 times as long as on the sphere.
# Polygons are slices from the equator to both poles, cells with borders in common, and stars with holes, of ten metres to
# a quarter of the earth, at the poles and the antimeridian; points lie on vertices, on arcs, a millimetre and more
# beside them, at antipodes and anywhere.
#
# The seed is in the names of the tests; GEONN_SHAPES_SEED gives it again.
#
# short form: 4 of 40 sets
#
# needs: postgis python3
# rooms: sql engine/cpu/arcs

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../fuzz";

use Geonn;
use List::Util qw(min);
use PostgreSQL::Test::Utils;
use Random;
use Shapes qw(place_from);
use Test::More;

my $sets = $ENV{GEONN_LONG} ? 40 : 4;
my $seed = $ENV{GEONN_SHAPES_SEED} // int(rand(1_000_000));
my $folder = PostgreSQL::Test::Utils::tempdir();
my $pi = 4 * atan2(1, 1);
my $metre = 180 / ($pi * 6371008.7714150598);

my $node = new_server('sql_sphere', preload => 1, conf => 'max_parallel_workers_per_gather = 0');
$node->safe_psql('postgres', 'CREATE EXTENSION postgis');

# ---- shapes: a polygon is a list of rings, a ring or line a list of places; a place is its latitude and longitude ----

# The cells of a grid of so many degrees from a corner on, but for those whose row ends at a pole: these are slices.
sub cells
{
	my ($south, $west, $size, $columns, $rows) = @_;
	my $place = sub {
		my ($column, $row) = @_;
		my ($lat, $lon) = ($south + $row * $size, $west + $column * $size);

		return [ $lat, $lon > 180 ? $lon - 360 : $lon ];
	};

	return map {
		my $row = $_;
		map { [ [ map { $place->(@$_) } [ $_, $row ], [ $_ + 1, $row ], [ $_ + 1, $row + 1 ], [ $_, $row + 1 ], [ $_, $row ] ] ] } 0 .. $columns - 1;
	} 0 .. $rows - 1;
}

sub slices
{
	my ($count) = @_;
	my $width = 360 / $count;

	return map {
		my ($west, $east) = ($_ * $width - 180, ($_ + 1) * $width - 180);
		map { [ [ [ 0, $west ], [ 0, $east ], [ $_, $west ], [ 0, $west ] ] ] } 90, -90;
	} 0 .. $count - 1;
}

# A star around a place, with a hole of its form or without.
sub star
{
	my ($place, $degrees) = @_;
	my $corners = between(3, 12);
	my @radii = map { $degrees * (0.4 + 0.6 * rand()) } 1 .. $corners;
	my $begin = rand(360);
	my $ring = sub {
		my ($scale) = @_;
		my @ring = map { place_from(@$place, $begin + $_ * 360 / $corners, $radii[$_] * $scale) } 0 .. $corners - 1;

		return [ @ring, $ring[0] ];
	};

	return [ $ring->(1), chance(0.5) ? $ring->(0.2) : () ];
}

sub hard_place
{
	return pick([ 90, 0 ], [ -90, 0 ], [ rand(120) - 60, 180 ], [ 0, 0 ], [ 90 - rand(1), rand(360) - 180 ], [ rand(170) - 85, rand(360) - 180 ]);
}

sub wandering_line
{
	my ($place, $degrees) = @_;
	my @line = ($place);

	push(@line, place_from(@{ $line[-1] }, rand(360), $degrees * rand())) foreach 1 .. between(1, 8);
	return [@line];
}

# ---- points ----

# Places on, beside and between those of a ring or line, and antipodes of some.
sub places_about
{
	my ($line) = @_;
	my $number = between(0, $#$line - 1);
	my ($a, $b) = @$line[ $number, $number + 1 ];
	my $middle = middle($a, $b, rand());
	my $beside = place_from(@$middle, rand(360), $metre * pick(0.0011, 0.002, 0.01, 1, 1000));

	return ($a, middle($a, $b, 0.5), $middle, $beside, place_from(@$a, rand(360), $metre * pick(0.0011, 0.1, 1e4)),
		chance(0.3) ? [ -$a->[0], $a->[1] > 0 ? $a->[1] - 180 : $a->[1] + 180 ] : ());
}

# The place at a fraction of an arc, as doubles have it.
sub middle
{
	my ($a, $b, $fraction) = @_;
	my @vectors = map {
		my ($lat, $lon) = map { $_ * $pi / 180 } @$_;
		[ cos($lat) * cos($lon), cos($lat) * sin($lon), sin($lat) ]
	} $a, $b;
	my @sum = map { $vectors[0][$_] * (1 - $fraction) + $vectors[1][$_] * $fraction } 0 .. 2;

	return [ atan2($sum[2], sqrt($sum[0]**2 + $sum[1]**2)) * 180 / $pi, atan2($sum[1], $sum[0]) * 180 / $pi ];
}

# ---- tables ----

sub text_of
{
	my ($place, $separator) = @_;

	return join($separator, map { sprintf('%.17g', $_) } reverse @$place);
}

sub wkt
{
	my ($ring) = @_;
	return '(' . join(', ', map { text_of($_, ' ') } @$ring) . ')';
}

# A polygon's or line's lines for the program, and its value for SQL.
sub for_program
{
	my ($rings) = @_;
	return join('/', map { my $ring = $_; join(';', map { text_of($_, ',') } @$ring) } @$rings);
}

# The tables point, area and path, and truth, with each point's distance to each, and whether it is in it.
sub make_tables
{
	my ($type, $areas, $paths) = @_;
	my @places = map { places_about($_) } map { pick(@$_) } (map { $areas->[ rand(@$areas) ] } 1 .. 60), map { [ $paths->[ rand(@$paths) ] ] } 1 .. 20;

	push(@places, map { hard_place() } 1 .. 40);
	push(@places, map { place_from(0, 0, rand(360), atan2(sqrt(rand()), sqrt(rand())) * 360 / $pi) } 1 .. 100);
	open(my $file, '>', "$folder/shapes") or die "could not write $folder/shapes: $!\n";
	print $file map { "point $_ " . text_of($places[$_], ' ') . "\n" } 0 .. $#places;
	print $file map { "area a$_ " . for_program($areas->[$_]) . "\n" } 0 .. $#$areas;
	print $file map { "line p$_ " . for_program([ $paths->[$_] ]) . "\n" } 0 .. $#$paths;
	close($file) or die "could not write $folder/shapes: $!\n";
	system("$FindBin::Bin/../fuzz/shape_distances < $folder/shapes > $folder/truth") == 0 or die "shape_distances failed\n";

	my $value = sub { my $polygon = '(' . join(', ', map { wkt($_) } @{ $_[0] }) . ')'; return $type eq 'Polygon' ? $polygon : "($polygon)" };
	my %rows = (
		point => [ map { "($_, 'POINT(" . text_of($places[$_], ' ') . ")')" } 0 .. $#places ],
		area => [ map { "('a$_', '$type" . $value->($areas->[$_]) . "')" } 0 .. $#$areas ],
		path => [ map { "('p$_', 'LINESTRING" . wkt($paths->[$_]) . "')" } 0 .. $#$paths ]);

	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS point, area, path, truth;
		CREATE TABLE point (id integer, g geography(Point, 4326));
		CREATE TABLE area (id text, g geography($type, 4326));
		CREATE TABLE path (id text, g geography(LineString, 4326));
		CREATE TABLE truth (point integer, shape text, metres float8, inside integer, PRIMARY KEY (shape, point));
		COPY truth FROM '$folder/truth' (DELIMITER ' ');
		} . join('', map { "INSERT INTO $_ VALUES " . join(",\n", @{ $rows{$_} }) . ";\n" } sort keys %rows) . 'ANALYZE');
	return;
}

# ---- statements ----

# Pairs that a join has and the truth has not, and those that it lacks, among those with room to the limit on both sides.
sub pairs_are_right
{
	my ($name, $table, $condition, $limit, $least, $most) = @_;
	my $settings = 'SET geonn.enable_sql_joins = on; SET enable_nestloop = off;';
	my $join = "SELECT p.id, s.id AS shape_id FROM point p JOIN $table s ON $condition";
	my $kind = substr($table, 0, 1);
	my $distance = 'CASE inside WHEN 1 THEN 0 ELSE metres END';
	my $may_be_either = $limit == 0 ? 'metres <= 0.001' : "$distance BETWEEN $limit * $least - 0.001 AND $limit * $most + 0.001";

	like($node->safe_psql('postgres', "$settings EXPLAIN $join"), qr/Custom Scan \(geonn/, "$name, $condition: the node");
	is($node->safe_psql('postgres', "$settings
		CREATE TEMP TABLE found AS $join;
		SELECT string_agg(point || ' ' || shape || ' ' || metres || ' ' || inside || CASE WHEN f.id IS NULL THEN ' is missing' ELSE ' is wrong' END, ', ')
		FROM (SELECT t.*, f.id FROM truth t LEFT JOIN found f ON (id, shape_id) = (point, shape)
			WHERE shape LIKE '$kind%' AND NOT ($may_be_either) AND ($distance <= $limit) <> (f.id IS NOT NULL) ORDER BY 1, 2 LIMIT 5) f" =~ s/\n\s+/ /gr),
		'', "$name, $condition: no pair is wrong, and none is missing");
	return;
}

foreach my $set (1 .. $sets)
{
	begin_case($seed, $set);
	my $degrees = min(60, 10**(rand(5.8) - 4));
	my @places = map { hard_place() } 1 .. 3;
	my $type = $set % 4 == 1 ? 'Polygon' : pick('Polygon', 'MultiPolygon');
	my $step = pick(0.5, 3, 10);
	my @areas =
	  $set % 4 == 1 ? slices(120) :
	  $set % 4 == 2 ? (cells(-$step, 180 - 3 * $step, $step, 6, 3), cells(90 - 3 * $step, between(-180, 150), $step, 5, 3)) :
	  map { star(pick(@places), $degrees * rand()) } 1 .. 30;
	my $name = sprintf('seed %d, set %d, %d %ss', $seed, $set, scalar(@areas), $type);

	make_tables($type, \@areas, [ map { wandering_line(pick(@places), min(20, $degrees)) } 1 .. 20 ]);
	pairs_are_right($name, 'area', $_, 0) foreach 'ST_Covers(s.g, p.g)', 'ST_CoveredBy(p.g, s.g)', 'ST_Intersects(s.g, p.g)';
	pairs_are_right($name, 'path', 'ST_Intersects(p.g, s.g)', 0);
	foreach my $table (qw(area path))
	{
		my $limit = sprintf('%.9g', $degrees / $metre * pick(0.01, 0.3, 1));

		pairs_are_right($name, $table, "ST_DWithin(p.g, s.g, $limit, false)", $limit, 1, 1);
		pairs_are_right($name, $table, "ST_DWithin(s.g, p.g, $limit)", $limit, 1 / 1.0046, 1 / 0.9944);
		pairs_are_right($name, $table, "ST_Distance(s.g, p.g, false) <= $limit", $limit, 1, 1);
	}
}
$node->stop;
done_testing();
