# geonn_distance() of two shapes beside PostGIS: the same bits in both orders, and those of a point's coordinates; of shapes of a kilometre
# and more never farther than ST_Distance(a, b, false) by more than a millimetre, and at most a millimetre where ST_Intersects()
# says that they meet.  Shapes are of all types, of a millimetre to thousands of kilometres, around each other, at the poles and
# the antimeridian, with holes, with vertices in common, and antipodal.  outline_test measures the distance itself.
#
# PostGIS has the distance 0 between some polygons that are far from each other (its ticket 5895): its short cut for a point in a
# polygon takes one for inside that is on the other side of the Earth.  Where ST_Distance() has 0 and ST_Intersects() is
# false, its distance is not compared.  Of arcs of less than some metres it has distances that are off by centimetres, as the
# direction in which an arc runs has few digits there.  The last tests show a pair of either kind.
#
# The nearest of the other shapes of a table is at most a millimetre farther than the least of PostGIS's distances, and the shapes
# within a distance are all those that PostGIS has there, but for a millimetre.
#
# The seed is in the names of the tests; GEONN_SHAPES_SEED gives it again.
#
# short form: 3 of 130 sets of 780 pairs
#
# needs: postgis
# rooms: join common

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../fuzz";

use Geonn;
use Random;
use Test::More;

my $sets = $ENV{GEONN_LONG} ? 130 : 3;
my $seed = $ENV{GEONN_SHAPES_SEED} // int(rand(1_000_000));
my $node = new_server('shape_distances');

$node->safe_psql('postgres', q{
	CREATE EXTENSION postgis;
	CREATE FUNCTION ring(place geography, size float8, corners int) RETURNS text LANGUAGE sql AS $$
		SELECT format('(%s, %s)', string_agg(p, ', ' ORDER BY i), min(p) FILTER (WHERE i = 1))
		FROM (SELECT i, ST_X(g) || ' ' || ST_Y(g) AS p FROM generate_series(1, corners) i,
			LATERAL (SELECT ST_Project(place, size * (0.5 + 0.5 * random()), 2 * pi() * i / corners)::geometry OFFSET 0) g (g)) v $$;
});

# a table of shapes around few places, so that many meet
sub make_set
{
	my $size = 10**pick(-3 + rand(9), 4.3 + rand(2), 4.3 + rand(2));
	my @places = map {
		pick(
			sprintf('POINT(%.15g %.15g)', rand(360) - 180, rand(170) - 85),
			sprintf('POINT(%.15g %.15g)', rand(360) - 180, pick(90, -90)),
			sprintf('POINT(180 %.15g)', rand(180) - 90))
	} 1 .. 2;

	my $antipode = $places[0] =~ s/POINT\((\S+) (\S+)\)/sprintf('POINT(%.15g %.15g)', $1 > 0 ? $1 - 180 : $1 + 180, -$2)/re;
	my $places = join(', ', map { "'$_'" } @places, $antipode);

	my $random = rand();

	$node->safe_psql('postgres', qq{
		SELECT setseed($random);
		DROP TABLE IF EXISTS shape;
		CREATE TABLE shape AS
		WITH near AS (
				SELECT i, (ARRAY[$places])[1 + (10 * random())::int % 3 % (1 + (random() < 0.3)::int * 2)]::geography AS place
			FROM generate_series(1, 40) i),
		placed AS (SELECT i, ST_Project(place, $size * 2 * random(), 2 * pi() * random()) AS p, $size * 10 ^ (-1.3 * random()) AS size FROM near)
		SELECT i, (CASE i % 8
			WHEN 0 THEN ST_AsText(p)
			WHEN 1 THEN 'LINESTRING' || ring(p, size, 2 + i % 30)
			WHEN 2 THEN 'POLYGON(' || ring(p, size, 4) || ')'
			WHEN 3 THEN 'POLYGON(' || ring(p, size, 3 + i % 40) || ')'
			WHEN 4 THEN 'POLYGON(' || ring(p, size, 20) || ', ' || ring(p, size * 0.3, 5) || ')'
			WHEN 5 THEN 'MULTIPOINT' || ring(p, size, 3)
			WHEN 6 THEN 'MULTIPOLYGON((' || ring(p, size, 5) || '), (' || ring(ST_Project(p, size * 3, 1), size, 6) || '))'
			ELSE 'GEOMETRYCOLLECTION(LINESTRING' || ring(p, size, 3) || ', ' || ST_AsText(p) || ')' END)::geography AS g
		FROM placed;
		UPDATE shape SET g = ST_MakeLine(g::geometry, (SELECT ST_StartPoint(l.g::geometry) FROM shape l WHERE l.i = 9))::geography
		WHERE i IN (16, 24);
		DROP TABLE IF EXISTS pair;
		CREATE TABLE pair AS SELECT a.i, b.i AS j, a.g, b.g AS h, d, p
		FROM shape a JOIN shape b ON a.i < b.i, LATERAL (SELECT geonn_distance(a.g, b.g), ST_Distance(a.g, b.g, false) OFFSET 0) d (d, p)});
	return $size;
}

# what geonn_nearest and geonn_within leave out that PostGIS has
sub ask
{
	my ($name, $size) = @_;
	my $believed = 'NOT (p = 0 AND NOT ST_Intersects(g, h))';

	is($node->safe_psql('postgres', qq{
		CREATE TEMP TABLE both_orders AS SELECT i, j, p FROM pair WHERE $believed UNION ALL SELECT j, i, p FROM pair WHERE $believed;
		SELECT (SELECT count(*) FROM geonn_nearest('shape', 'shape', exclude_self => true, options => '{"obs_id": "i", "ref_id": "i"}') n
				WHERE distance > 0.001 + (SELECT min(p) FROM both_orders b WHERE b.i = obs_id)),
			(SELECT count(*) FROM (SELECT i, j FROM both_orders WHERE p <= $size - 0.001
				EXCEPT SELECT obs_id, ref_id FROM geonn_within('shape', 'shape', $size, exclude_self => true, options => '{"obs_id": "i", "ref_id": "i"}')) missing)}),
		'0|0', "$name: no shape is farther than PostGIS has one");
	return;
}

foreach my $set (1 .. $sets)
{
	begin_case($seed, $set);
	my $size = make_set();
	my $is_large = $size >= 20000 ? 'true' : 'false';
	my ($pairs, $zero, @wrong) = split(/\|/, $node->safe_psql('postgres', qq{
		SELECT count(*), count(*) FILTER (WHERE d = 0),
			count(*) FILTER (WHERE d IS NULL OR d IS DISTINCT FROM geonn_distance(h, g)),
			count(*) FILTER (WHERE $is_large AND d > p + 0.001 AND NOT (p = 0 AND NOT ST_Intersects(g, h))),
			count(*) FILTER (WHERE GeometryType(g::geometry) = 'POINT' AND
				d <> geonn_distance(ST_Y(g::geometry), ST_X(g::geometry), h)),
			count(*) FILTER (WHERE $is_large AND ST_Intersects(g, h) AND d > 0.001)
		FROM pair}));
	is("@wrong", '0 0 0 0', sprintf('seed %d, set %d: %d pairs of %.3g m, of which %d meet', $seed, $set, $pairs, $size, $zero))
	  or diag($node->safe_psql('postgres', q{
		SELECT d, p, ST_Intersects(g, h), ST_AsText(g), ST_AsText(h) FROM pair WHERE d > p + 0.001 LIMIT 3}));
	ask("seed $seed, set $set", $size) if $is_large eq 'true';
}

# around (0, 0), and around (0, 180)
my @polygons = ('POLYGON((-1 -1, 1 -1, 1 1, -1 1, -1 -1))', 'POLYGON((179 -1, -179 -1, -179 1, 179 1, 179 -1))');
# a line of four vertices, and a point 7.2 cm from it, as any formula for a plane says
my @small = ('LINESTRING(-179.99999970816532 -46.30406635473863, -179.99999975311695 -46.30406635288809, -179.99999973295354 -46.304066329531274)',
	'POINT(179.99999937701804 -46.30406611195083)');

foreach ([ 'polygons at the antipodes', @polygons, 'geonn_distance(1, 1, 1, 179)' ], [ 'a line of a centimetre', @small, 0.0719911 ])
{
	my ($name, $one, $other, $expected) = @$_;
	my ($difference, $distance, $of_postgis) = split(/\|/, $node->safe_psql('postgres', qq{
		SELECT abs(d - $expected), d, ST_Distance('$one'::geography, '$other', false) FROM geonn_distance('$one'::geography, '$other') d}));

	cmp_ok($difference, '<', 1e-6, "$name: $distance m; PostGIS has $of_postgis");
}

# arcs of 11 km, a decimetre from one to the next: no box of one line is farther from the other line than most of its arcs
$node->safe_psql('postgres', q{
	CREATE TABLE zigzag AS
	SELECT n, ST_MakeLine(ST_MakePoint(i / 1e6 + 0.1 * (i % 2) + 0.101 * n, 20 + i / 1e6 - 0.1 * (i % 2) + 0.101 * n) ORDER BY i)::geography AS g
	FROM generate_series(1, 20000) i, generate_series(1, 2) n GROUP BY n});
$node->safe_psql('postgres', q{
	CREATE TABLE crowd AS
	SELECT n, ST_Collect(ST_MakePoint(i / 1e3 % 90 + n / 1e5, i / 3e3 % 60) ORDER BY i)::geography AS g
	FROM generate_series(1, 200000) i, generate_series(1, 2) n GROUP BY n});
foreach my $table (qw(zigzag crowd))
{
	my $begin = time;
	my (undef, undef, $error) = $node->psql('postgres', qq{
		SET statement_timeout = '300ms';
		SELECT geonn_distance(a.g, b.g) FROM $table a, $table b WHERE a.n < b.n});

	like($error, qr/statement timeout/, "the distance of two shapes that takes minutes is cancelled: $table");
	cmp_ok(time - $begin, '<', 60, 'soon');
}

done_testing();
