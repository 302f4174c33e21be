
# The index of polygons of a plane agrees with PostGIS about every polygon and point: where a point is surely in a polygon,
# ST_Contains is true, and where a polygon is not found, ST_Intersects is false; both for a polygon that PostGIS meets once, and
# for one that it keeps.  Polygons cross and touch themselves and each other, repeat vertices, have spikes and edges shorter than
# 1e-12, and are of all sizes that float64 has; points lie on vertices and edges, and next to them.  Few are left in
# doubt.
#
# The seed is the environment's SEED, else another one each day; more sets of polygons than the few of this test:
# GEONN_PLANE_SETS.
#
# needs: postgis
# rooms: zones

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../fuzz";

use Geonn;
use PostgreSQL::Test::Cluster;
use Random;
use Test::More;

my $seed = $ENV{SEED} // int(time / 86400);
my $sets = $ENV{GEONN_PLANE_SETS} // 40;
my $polygons = 25;
my $points = 40;

# the helper has the module inside, so geonn itself is not loaded
my $node = PostgreSQL::Test::Cluster->new('plane');
$node->init;
$node->append_conf('postgresql.conf', "jit = off\nfsync = off");
$node->start;

sub query
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

# ---- numbers ----

# the float64 after or before a number
sub neighbour
{
	my ($number, $step) = @_;
	my $bits = unpack('q<', pack('d<', $number));

	return $step > 0 ? 2**-1074 : -2**-1074 if $number == 0;
	$bits += $number > 0 ? $step : -$step;
	my $next = unpack('d<', pack('q<', $bits));
	return abs($next) < 9**9**9 ? $next : $number;
}

sub random_number
{
	my ($least, $most) = @_;

	return $least + rand() * ($most - $least);
}

# sizes of a set: a factor, and an offset in x and y
my @sizes = ([ 1, 0 ], [ 1, 0 ], [ 100, 0 ], [ 1e-7, 50 ], [ 1, 1e6 ], [ 1e15, 0 ], [ 1, 1e15 ], [ 3e-9, 0.1 ], [ 1e300, 0 ],
	[ 1.7e307, 0 ], [ 1e-160, 0 ], [ 1e-300, 0 ], [ 4e-323, 0 ], [ 1e39, 0 ], [ 1e-12, 0 ], [ 1e-13, 1e-3 ]);

# ---- polygons: lists of members, which are lists of rings, which are lists of vertices, in a plane of about 10 by 10 ----

sub star
{
	my ($x, $y, $radius, $count, $roughness) = @_;
	my @ring = map {
		my $angle = 2 * 3.14159265358979 * $_ / $count;
		my $r = $radius * (1 - rand($roughness));
		[ $x + $r * cos($angle), $y + $r * sin($angle) ]
	} 0 .. $count - 1;

	return chance(0.5) ? [@ring] : [ reverse @ring ];
}

# repeat vertices, go back and forth, and add edges that are tiny
sub spoilt
{
	my ($ring) = @_;
	my @spoilt;

	foreach my $vertex (@$ring)
	{
		push @spoilt, $vertex;
		push @spoilt, $vertex if chance(0.05);
		push @spoilt, $spoilt[-2], $vertex if @spoilt > 1 && chance(0.05);
		push @spoilt, [ $vertex->[0] + rand(2e-12) - 1e-12, $vertex->[1] + rand(2e-12) - 1e-12 ] if chance(0.05);
		push @spoilt, [ $vertex->[0] + rand(1), $vertex->[1] ] if chance(0.05);
	}
	return \@spoilt;
}

sub random_ring
{
	my ($x, $y, $radius) = @_;
	my $ring = weighted(
		star => 4,
		walk => 1,
		lattice => 2,
		square => 2);

	return star($x, $y, $radius, between(3, chance(0.2) ? 400 : 40), rand()) if $ring eq 'star';
	return [ map { [ $x + random_number(-$radius, $radius), $y + random_number(-$radius, $radius) ] } 1 .. between(3, 30) ]
	  if $ring eq 'walk';
	return [ map { [ between(0, 8), between(0, 8) ] } 1 .. between(3, 60) ] if $ring eq 'lattice';
	($x, $y) = (int($x), int($y));
	return [ [ $x, $y ], [ $x + 1, $y ], [ $x + 1, $y + 1 ], [ $x, $y + 1 ] ];
}

sub random_member
{
	my ($x, $y) = (rand(8) + 1, rand(8) + 1);
	my $radius = chance(0.3) ? rand(6) : rand(1.5);
	my @rings = random_ring($x, $y, $radius);

	push @rings, random_ring($x + rand($radius) - $radius / 2, $y + rand($radius) - $radius / 2, $radius / 3)
	  while chance(0.3);
	@rings = map { chance(0.2) ? spoilt($_) : $_ } @rings;
	return \@rings;
}

# move the vertices to where a set lies, and close the rings
sub moved
{
	my ($members, $factor, $offset) = @_;

	return [ map {
		[ map {
			my @ring = map { [ $_->[0] * $factor + $offset, $_->[1] * $factor + $offset ] } @$_;
			[ @ring, $ring[0] ]
		} @$_ ]
	} @$members ];
}

sub polygon_hex
{
	my ($rings, $srid) = @_;
	my $bytes = $srid ? pack('CLLL', 1, 0x20000003, $srid, scalar(@$rings)) : pack('CLL', 1, 3, scalar(@$rings));

	foreach my $ring (@$rings)
	{
		$bytes .= pack('L', scalar(@$ring)) . pack('d<*', map { @$_ } @$ring);
	}
	return $bytes;
}

# as hexadecimal digits
sub value_of
{
	my ($members, $srid) = @_;
	my $bytes = @$members == 1 && chance(0.7) ? polygon_hex($members->[0], $srid)
	  : pack('CLLL', 1, 0x20000006, $srid, scalar(@$members)) . join('', map { polygon_hex($_) } @$members);

	return unpack('H*', $bytes);
}

# ---- points ----

sub random_point
{
	my ($shapes, $factor, $offset) = @_;
	my $members = pick(@$shapes);
	my $ring = @$members ? pick(map { @$_ } @$members) : undef;

	return [ rand(11) * $factor + $offset, rand(11) * $factor + $offset ] if !$ring || chance(0.2);

	my $edge = between(0, $#$ring - 1);
	my ($a, $b) = @$ring[ $edge, $edge + 1 ];
	my $t = pick(0, 0, 1, 0.5, rand());
	my $point = [ $a->[0] + $t * ($b->[0] - $a->[0]), $a->[1] + $t * ($b->[1] - $a->[1]) ];

	# beside the edge, at the same height, or anywhere near
	$point->[ between(0, 1) ] += $factor * pick(1e-3, 1e-9, 1e-14) * (rand(2) - 1) if chance(0.2);
	foreach my $axis (0, 1)
	{
		$point->[$axis] = neighbour($point->[$axis], pick(-1, 1, 2)) if chance(0.25);
	}
	$point->[0] = rand(11) * $factor + $offset if chance(0.2);
	$point->[0] = $point->[0] == 0 ? -0.0 : $point->[0];
	return $point;
}

sub point_value
{
	my ($point, $srid) = @_;

	return unpack('H*', pack('CLL', 1, 0x20000001, $srid) . pack('d<2', @$point));
}

# ---- sets ----

query(qq{
	CREATE EXTENSION postgis;
	CREATE FUNCTION plane_find(polygons geometry[], points geometry[]) RETURNS TABLE (polygon integer, point integer, is_sure boolean)
		LANGUAGE c AS '$ENV{GEONN_BUILD}/plane_finder.so';
	CREATE TABLE polygon (n serial, g geometry);
	CREATE TABLE point (n serial, g geometry);
	CREATE TABLE verdict (is_usual boolean, seen text, pairs bigint, sure bigint, doubt bigint, sure_outside bigint, missed bigint);
	CREATE FUNCTION judge(is_usual boolean) RETURNS void LANGUAGE sql AS \$\$
		WITH found AS MATERIALIZED (SELECT * FROM plane_find((SELECT array_agg(g ORDER BY n) FROM polygon), (SELECT array_agg(g ORDER BY n) FROM point))),
		said AS (
			SELECT 'kept' AS seen, a.n AS polygon, s.* FROM polygon a CROSS JOIN LATERAL
				(SELECT p.n AS point, ST_Contains(a.g, p.g) AS contains, ST_Intersects(p.g, a.g) AS meets FROM point p OFFSET 0) s
			UNION ALL
			SELECT 'once', s.polygon, p.n, s.contains, s.meets FROM point p CROSS JOIN LATERAL
				(SELECT a.n AS polygon, ST_Contains(a.g, p.g) AS contains, ST_Intersects(p.g, a.g) AS meets FROM polygon a OFFSET 0) s)
		INSERT INTO verdict
		SELECT is_usual, seen, count(*), count(*) FILTER (WHERE is_sure), count(*) FILTER (WHERE NOT is_sure),
			count(*) FILTER (WHERE is_sure AND NOT contains), count(*) FILTER (WHERE is_sure IS NULL AND meets)
		FROM said LEFT JOIN found USING (polygon, point) GROUP BY seen \$\$});

my $sql = '';
foreach my $set (1 .. $sets)
{
	begin_case($seed, $set);
	my ($factor, $offset) = @{ pick(@sizes) };
	my @shapes;
	foreach (1 .. $polygons)
	{
		# some sets have sizes of several kinds
		($factor, $offset) = @{ pick(@sizes) } if $set % 10 == 0;
		my @members = chance(0.03) ? () : map { random_member() } 1 .. (chance(0.2) ? between(1, 5) : 1);
		push @shapes, moved(\@members, $factor, $offset);
	}
	my @values = map { value_of($_, 3857) } @shapes;
	my @probes = map { point_value(random_point(\@shapes, $factor, $offset), 3857) } 1 .. $points;

	my $is_usual = $factor >= 1 && $factor <= 100 && $offset == 0 && $set % 10 ? 'true' : 'false';

	$sql .= "TRUNCATE polygon, point RESTART IDENTITY;\nINSERT INTO polygon (g) VALUES ('" . join("'), ('", @values) . "');\n" .
	  "INSERT INTO point (g) VALUES ('" . join("'), ('", @probes) . "');\nSELECT judge($is_usual);\n";
	if ($set % 20 == 0 || $set == $sets)
	{
		query($sql);
		$sql = '';
	}
}
foreach my $seen ('kept', 'once')
{
	my ($pairs, $sure, $doubt, $sure_outside, $missed) =
	  split(/\|/, query("SELECT sum(pairs), sum(sure), sum(doubt), sum(sure_outside), sum(missed) FROM verdict WHERE seen = '$seen'"));

	is("$sure_outside|$missed", '0|0',
		"PostGIS, which meets a polygon $seen, agrees about all of $pairs pairs of seed $seed ($sure sure, $doubt in doubt)");
	cmp_ok($sure, '>', $pairs / 50, 'many points are surely in polygons');
}
my ($pairs, $doubt) = split(/\|/, query('SELECT sum(pairs), sum(doubt) FROM verdict WHERE is_usual'));
# all points in the box of an invalid polygon are
cmp_ok($doubt, '<', $pairs / 8, "few of $pairs pairs of a usual size are left in doubt: $doubt");

# ---- values that the index does not take ----

is( query(q{
	WITH value (n, g) AS (VALUES
		(1, 'POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))'::geometry),
		(2, 'POLYGON EMPTY'),
		(3, 'MULTIPOLYGON EMPTY'),
		(4, 'LINESTRING(0 0, 4 4)'),
		(5, ST_MakePolygon(ST_MakeLine(ARRAY[ST_MakePoint(0, 0), ST_MakePoint('inf', 0), ST_MakePoint(0, 4), ST_MakePoint(0, 0)]))),
		(6, ST_MakePolygon(ST_MakeLine(ARRAY[ST_MakePoint(0, 0), ST_MakePoint('nan', 0), ST_MakePoint(0, 4), ST_MakePoint(0, 0)]))),
		(7, 'CURVEPOLYGON((0 0, 4 0, 4 4, 0 4, 0 0))'),
		(8, 'GEOMETRYCOLLECTION(POLYGON((0 0, 4 0, 4 4, 0 4, 0 0)))'),
		(9, 'POLYGON ZM((0 0 1 2, 4 0 1 2, 4 4 1 2, 0 4 1 2, 0 0 1 2))'),
		(10, 'MULTIPOLYGON(((0 0, 4 0, 4 4, 0 4, 0 0)), EMPTY, ((5 5, 6 5, 6 6, 5 5)))'))
	SELECT string_agg(polygon || CASE WHEN is_sure THEN '' ELSE '?' END, ' ' ORDER BY polygon)
	FROM plane_find((SELECT array_agg(g ORDER BY n) FROM value), ARRAY['POINT(1 1)'::geometry])}),
	'1 4? 5? 6? 7? 8? 9 10', 'values that are no polygons, or have numbers that are not finite, are left to PostGIS');
is(query(q{SELECT count(*) FROM plane_find('{}', ARRAY['POINT(1 1)'::geometry])}), '0', 'an index without polygons finds none');
is( query(q{SELECT count(*) FROM plane_find(ARRAY['POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))'::geometry],
		ARRAY[ST_MakePoint('nan', 1), ST_MakePoint(1, 'nan'), ST_MakePoint('inf', 1), ST_MakePoint(1, '-inf')])}),
	'0', 'points whose coordinates are not finite are in none');

$node->stop;
done_testing();
