# The nearest lines, polygons and other shapes are those that ORDER BY geonn_distance(...), id finds, to the last bit:
# for random sets of shapes that cross, touch and lie in each other, of a millimetre to a hemisphere, over the poles and
# the antimeridian, with observations on their vertices, in them and anywhere, and for random questions, with conditions
# that columns of both sides must meet: by, differs, overlaps and radiuses.  Counts within
# radiuses are those of the same distances, with exact sums, and the least and greatest weights.  Nearest places
# lie on the shapes at their distances, and at their fractions of the lengths of lines.
#
# The seed is in the names of the tests; GEONN_SHAPES_SEED gives it again.
#
# short form: 20 of 400 sets
#
# needs: postgis
# rooms: points join engine/cpu/arcs engine/cpu/counts

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../fuzz";

use Geonn;
use Random;
use Shapes;
use Test::More;

my $sets = $ENV{GEONN_LONG} ? 400 : 20;
my $seed = $ENV{GEONN_SHAPES_SEED} // int(rand(1_000_000));

my @id_types = ('bigint', 'integer', 'text', 'uuid');

sub observation
{
	my $place = chance(0.3) ? some_vertex() : chance(0.8) ? some_place() : [ rand(180) - 90, rand(360) - 180 ];

	$place = place_from(@$place, rand(360), set_size() * 10**-rand(8)) if chance(0.3);
	return $place;
}

my $node = new_server('shapes');
$node->safe_psql('postgres', 'CREATE EXTENSION postgis; CREATE TYPE floatrange AS RANGE (subtype = float8)');

# places, whose fractions are told by arcs between the vertices of lines: one begins so much before the place; a
# line without length is a point, which has none
sub ask_places
{
	my ($name, $id_type) = @_;
	my $k = pick(1, 2, 5);
	my $options = '"ref_shape": "g"' . (chance(0.5) ? ', "batch_rows": ' . between(1, 50) : '');
	my $said = $node->safe_psql(
		'postgres', qq{
		WITH answer AS MATERIALIZED (
			SELECT * FROM geonn_nearest('obs', 'shape', k => $k, options => '{$options}', row_type => NULL::record) AS
				n (obs_id $id_type, ref_id $id_type, distance float8, ref_lat float8, ref_lon float8, bearing float8, ref_fraction float8)),
		vertex AS (
			SELECT s.id, d.path AS line, p.path[1] AS number, ST_Y(p.geom) AS lat, ST_X(p.geom) AS lon
			FROM shape s, ST_Dump(s.g::geometry) d, ST_DumpPoints(d.geom) p WHERE GeometryType(d.geom) = 'LINESTRING'),
		arc AS (
			SELECT *, geonn_distance(lat, lon, end_lat, end_lon) AS length FROM (
				SELECT *, lead(lat) OVER line AS end_lat, lead(lon) OVER line AS end_lon FROM vertex
				WINDOW line AS (PARTITION BY id, line ORDER BY number)) v WHERE end_lat IS NOT NULL),
		measured AS MATERIALIZED (
			SELECT *, sum(length) OVER (PARTITION BY id ORDER BY line, number) - length AS before, sum(length) OVER (PARTITION BY id) AS total FROM arc),
		part AS MATERIALIZED (SELECT id, min(lat) AS lat, min(lon) AS lon, sum(length) AS length FROM arc GROUP BY id, line),
		seen AS (
			SELECT n.*, o.lat, o.lon, s.g, EXISTS (
				SELECT FROM measured a WHERE a.id = n.ref_id AND total > 0 AND
					abs(before + geonn_distance(a.lat, a.lon, ref_lat, ref_lon) - ref_fraction * total) < 1e-6 AND
					geonn_distance(a.lat, a.lon, ref_lat, ref_lon) + geonn_distance(ref_lat, ref_lon, end_lat, end_lon) - length < 1e-6) AS at_fraction,
				EXISTS (SELECT FROM part p WHERE p.id = n.ref_id AND p.length = 0 AND geonn_distance(p.lat, p.lon, ref_lat, ref_lon) < 1e-6) AS at_point
			FROM answer n JOIN obs o ON o.id = n.obs_id JOIN shape s ON s.id = n.ref_id)
		SELECT count(*), count(*) FILTER (WHERE abs(geonn_distance(lat, lon, ref_lat, ref_lon) - distance) > 2e-8 OR geonn_distance(ref_lat, ref_lon, g) > 2e-8),
			count(*) FILTER (WHERE (bearing IS NULL) <> (distance = 0)),
			count(*) FILTER (WHERE ref_fraction IS NOT NULL AND NOT at_fraction),
			count(*) FILTER (WHERE ref_fraction IS NULL AND GeometryType(g::geometry) LIKE '%LINESTRING' AND NOT at_point OR
				ref_fraction IS NOT NULL AND GeometryType(g::geometry) NOT LIKE '%LINESTRING' AND GeometryType(g::geometry) <> 'GEOMETRYCOLLECTION')
		FROM seen});
	my ($count, @wrong) = split(/\|/, $said);

	is("@wrong", '0 0 0 0', "$name: $count places with $options");
	return;
}

foreach my $set (1 .. $sets)
{
	my $id_type;

	begin_case($seed, $set);
	begin_set();
	$id_type = pick(@id_types);
	my @shapes = map { shape() } 1 .. pick(1, 3, 30, between(1, 80));
	my @ids = chance(0.5) ? 1 .. @shapes : shuffled(1 .. @shapes);
	my @rows = map {
		sprintf('(%s, %s, %s, %s)', id_of($id_type, $ids[$_]), condition_values(), defined $shapes[$_] ? "'SRID=4326;$shapes[$_]'" : 'NULL',
			chance(0.8) ? between(-800, 800) / 16 : 'NULL')
	} 0 .. $#shapes;
	my @observations = map {
		my $place = observation();
		sprintf('(%s, %s, %.17g, %.17g)', id_of($id_type, $_), condition_values(), @$place)
	} 1 .. between(1, 100);
	my $type = pick('geometry', 'geography', 'geography(Geometry, 4326)');

	$node->safe_psql(
		'postgres', qq{
		DROP TABLE IF EXISTS obs, shape, pair;
		CREATE TABLE obs (id $id_type PRIMARY KEY, $condition_columns, lat float8, lon float8);
		CREATE TABLE shape (id $id_type PRIMARY KEY, $condition_columns, g $type, weight float8);
		INSERT INTO shape VALUES @{[join(",\n", @rows)]};
		INSERT INTO obs VALUES @{[join(",\n", @observations)]};
		CREATE TABLE pair AS SELECT o.id AS obs_id, s.*, geonn_distance(o.lat, o.lon, s.g) AS d FROM obs o, shape s;
		CREATE INDEX ON pair (obs_id)});
	foreach my $ask ((\&ask_neighbours) x 3, \&ask_counts)
	{
		my @batch_rows = chance(0.5) ? '"batch_rows": ' . between(1, 300) : ();

		$ask->($node, "seed $seed, set $set", $id_type, options => [ '"ref_shape": "g"', @batch_rows ]);
	}
	ask_places("seed $seed, set $set", $id_type);
}

done_testing();
