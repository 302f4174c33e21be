# Lines, polygons, collections and points ask for the nearest of such shapes, and of points: the answers are those that
# geonn_distance(shape, shape) orders, ids, distances, ranks and counts, to the last bit, and nearest places within 50 nm, for
# k neighbours, ties, all within a distance and counts within radii, with by, differs, exclude_self, radiuses and
# keep_unmatched, in batches of any size.
# Shapes are of all types, of a millimetre to thousands of kilometres, around each other, at the poles and the antimeridian,
# with holes, with vertices in common, and antipodal; and columns name one type, or none.
#
# The seed is in the names of the tests; GEONN_SHAPES_SEED gives it again.
#
# short form: 4 of 60 sets
#
# needs: postgis
# rooms: join points client engine/cpu/arcs

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../fuzz";

use Geonn;
use Random;
use Test::More;

my $sets = $ENV{GEONN_LONG} ? 60 : 4;
my $seed = $ENV{GEONN_SHAPES_SEED} // int(rand(1_000_000));
my $node = new_server('shapes_ask');

$node->safe_psql('postgres', q{
	CREATE EXTENSION postgis;
	CREATE FUNCTION ring(place geography, size float8, corners int) RETURNS text LANGUAGE sql AS $$
		SELECT format('(%s, %s)', string_agg(p, ', ' ORDER BY i), min(p) FILTER (WHERE i = 1))
		FROM (SELECT i, ST_X(g) || ' ' || ST_Y(g) AS p FROM generate_series(1, corners) i,
			LATERAL (SELECT ST_Project(place, size * (0.5 + 0.5 * random()), 2 * pi() * i / corners)::geometry OFFSET 0) g (g)) v $$;
	CREATE FUNCTION shape(kind int, p geography, size float8) RETURNS geography LANGUAGE sql AS $$
		SELECT (CASE kind
			WHEN 0 THEN ST_AsText(p)
			WHEN 1 THEN 'LINESTRING' || ring(p, size, 2 + (random() * 30)::int)
			WHEN 2 THEN 'POLYGON(' || ring(p, size, 4) || ')'
			WHEN 3 THEN 'POLYGON(' || ring(p, size, 20) || ', ' || ring(p, size * 0.3, 5) || ')'
			WHEN 4 THEN 'MULTIPOINT' || ring(p, size, 3)
			WHEN 5 THEN 'MULTIPOLYGON((' || ring(p, size, 5) || '), (' || ring(ST_Project(p, size * 3, 1), size, 6) || '))'
			WHEN 6 THEN 'MULTILINESTRING(' || ring(p, size, 5) || ', ' || ring(ST_Project(p, size * 3, 1), size, 2) || ')'
			ELSE 'GEOMETRYCOLLECTION(LINESTRING' || ring(p, size, 3) || ', POINT EMPTY, ' || ST_AsText(p) || ')' END)::geography $$;
	CREATE FUNCTION differ(call text, expected text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		answer text;
	BEGIN
		EXECUTE format('WITH a AS MATERIALIZED (%s), b AS MATERIALIZED (%s)
			SELECT (SELECT count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) d)', call, expected) INTO answer;
		RETURN answer;
	END $$});

# observations and references around few places, so that many meet; and all pairs, by geonn_distance()
sub make_set
{
	my ($obs_kinds, $ref_kinds) = @_;
	my $size = 10**pick(-3 + rand(9), 4.3 + rand(2), 4.3 + rand(2));
	my @places = map {
		pick(
			sprintf('POINT(%.15g %.15g)', rand(360) - 180, rand(170) - 85),
			sprintf('POINT(%.15g %.15g)', rand(360) - 180, pick(90, -90)),
			sprintf('POINT(180 %.15g)', rand(180) - 90))
	} 1 .. 2;

	my $antipode = $places[0] =~ s/POINT\((\S+) (\S+)\)/sprintf('POINT(%.15g %.15g)', $1 > 0 ? $1 - 180 : $1 + 180, -$2)/re;
	my $places = join(', ', map { "'$_'" } @places, $antipode);
	my $id = pick('i::bigint', 'i::text', 'i::numeric');
	my $random = rand();

	$node->safe_psql('postgres', qq{
		SELECT setseed($random);
		DROP TABLE IF EXISTS obs, ref, pair;
		CREATE TABLE made AS
			SELECT side, i, (ARRAY[$places])[1 + (10 * random())::int % 3 % (1 + (random() < 0.3)::int * 2)]::geography AS place,
				$size * 10 ^ (-1.3 * random()) AS size,
				(CASE side WHEN 1 THEN ARRAY[$obs_kinds] ELSE ARRAY[$ref_kinds] END) AS kinds, (random() * 3)::int AS zone,
				CASE WHEN random() < 0.8 THEN $size * random() * 3 END AS reach, round((random() * 100)::numeric)::float8 AS weight
			FROM generate_series(1, 40) i, generate_series(1, 2) side;
		CREATE TABLE shapes AS SELECT side, $id AS id, zone, reach, weight,
				shape(kinds[1 + (random() * 1000)::int % array_length(kinds, 1)], ST_Project(place, $size * 2 * random(), 2 * pi() * random()), size) AS g
			FROM made;
		UPDATE shapes SET g = CASE WHEN random() < 0.5 OR (CASE side WHEN 1 THEN ARRAY[$obs_kinds] ELSE ARRAY[$ref_kinds] END)[8] IS NULL THEN NULL
			ELSE 'GEOMETRYCOLLECTION EMPTY'::geography END WHERE random() < 0.05;
		UPDATE shapes s SET g = t.g FROM shapes t WHERE random() < 0.05 AND t.side = s.side AND t.id::text = (s.zone + 1)::text;
		CREATE TABLE obs AS SELECT id, zone, reach, g FROM shapes WHERE side = 1 ORDER BY random();
		CREATE TABLE ref AS SELECT id, zone, reach, weight, g FROM shapes WHERE side = 2 ORDER BY random();
		DROP TABLE made, shapes;
		CREATE TABLE pair AS SELECT o.id AS o, r.id AS r, o.zone AS oz, r.zone AS rz, o.reach AS oreach, r.reach AS rreach, r.weight, geonn_distance(o.g, r.g) AS d
			FROM obs o, ref r WHERE NOT ST_IsEmpty(o.g::geometry) AND NOT ST_IsEmpty(r.g::geometry)});
	return ($size, $id =~ s/.*:://r);
}

foreach my $set (1 .. $sets)
{
	begin_case($seed, $set);
	my ($obs_kinds, $ref_kinds) = map {
		pick('0', '1', '2, 3', '0, 1, 2, 3, 4, 5, 6, 7', '0, 1, 2, 3, 4, 5, 6, 7')
	} 1 .. 2;
	my ($size, $type) = make_set($obs_kinds, $ref_kinds);
	my $k = pick(1, 1, 2, 5, 50);
	my $limit = $size * 10**(rand(2) - 1);
	my $rows = "row_type => NULL::record) AS t (obs_id $type, ref_id $type, distance float8, rank integer)";
	my $reach = 'coalesce(oreach, 0)';

	# the columns name their kind where all have one
	foreach (
		[ obs => $obs_kinds ],
		[ ref => $ref_kinds ])
	{
		my ($table, $kinds) = @$_;
		my $column = $kinds eq '0' ? 'Point' : $kinds eq '1' ? 'LineString' : $kinds eq '2, 3' ? 'Polygon' : undef;

		$node->safe_psql('postgres', "ALTER TABLE $table ALTER g TYPE " . pick(
				$column ? "geography($column)" : 'geography', 'geography', 'geometry',
				$column ? "geometry($column, 4326)" : 'geometry(Geometry, 4326)') . ' USING g::geometry');
	}

	# references that are points, in two columns
	my $lat_lon = $ref_kinds eq '0' && chance(0.5);
	$node->safe_psql('postgres', q{ALTER TABLE ref ADD lat float8, ADD lon float8;
		UPDATE ref SET lat = ST_Y(g::geometry), lon = ST_X(g::geometry); ALTER TABLE ref DROP g}) if $lat_lon;

	my $options = sprintf("options => '{%s}'", join(', ', map { '"' . $_->[0] . '": ' . $_->[1] } grep { $_->[2] }
			[ 'batch_rows', pick(1, 7, 100, 4000), chance(0.6) ], [ 'algorithm', '"brute"', chance(0.2) ]));
	my @calls = (
		[ "$k neighbours", "SELECT * FROM geonn_nearest('obs', 'ref', k => $k, $options, $rows",
			"SELECT o, r, d, rank::integer FROM (SELECT *, row_number() OVER (PARTITION BY o ORDER BY d, r) AS rank FROM pair) p WHERE rank <= $k" ],
		[ 'ties', "SELECT obs_id, ref_id, distance FROM geonn_nearest('obs', 'ref', k => $k, ties => 'all', $options, $rows",
			"SELECT o, r, d FROM (SELECT *, rank() OVER (PARTITION BY o ORDER BY d) AS rank FROM pair) p WHERE rank <= $k" ],
		[ 'by', "SELECT * FROM geonn_nearest('obs', 'ref', by => '{zone}', k => $k, $options, $rows",
			"SELECT o, r, d, rank::integer FROM (SELECT *, row_number() OVER (PARTITION BY o ORDER BY d, r) AS rank FROM pair WHERE oz = rz) p WHERE rank <= $k" ],
		[ 'differs and exclude_self', "SELECT * FROM geonn_nearest('obs', 'ref', differs => '{zone}', exclude_self => true, k => $k, $options, $rows",
			"SELECT o, r, d, rank::integer FROM (SELECT *, row_number() OVER (PARTITION BY o ORDER BY d, r) AS rank FROM pair WHERE oz <> rz AND o <> r) p WHERE rank <= $k" ],
		[ 'the limit', "SELECT * FROM geonn_nearest('obs', 'ref', max_distance => $limit, keep_unmatched => true, $options, $rows",
			"SELECT id, r, d, 1 FROM obs LEFT JOIN (SELECT *, row_number() OVER (PARTITION BY o ORDER BY d, r) AS rank FROM pair WHERE d <= $limit) p ON id = o AND rank = 1" ],
		[ 'all within', "SELECT * FROM geonn_within('obs', 'ref', $limit, $options, $rows",
			"SELECT o, r, d, (row_number() OVER (PARTITION BY o ORDER BY d, r))::integer FROM pair WHERE d <= $limit" ],
		[ 'queries', "SELECT * FROM geonn_within_sql('SELECT * FROM obs', 'SELECT * FROM ref', $limit, $options, $rows",
			"SELECT o, r, d, (row_number() OVER (PARTITION BY o ORDER BY d, r))::integer FROM pair WHERE d <= $limit" ],
		[ 'radiuses', "SELECT * FROM geonn_nearest('obs', 'ref', k => $k, options => '{\"obs_radius\": \"reach\", \"ref_radius\": \"reach\"}', $rows",
			"SELECT o, r, d, rank::integer FROM (SELECT *, row_number() OVER (PARTITION BY o ORDER BY d, r) AS rank FROM pair
			WHERE d <= coalesce(oreach, 'Infinity') AND d <= coalesce(rreach, 'Infinity')) p WHERE rank <= $k" ],
		[ 'counts', "SELECT * FROM geonn_within_count('obs', 'ref', ARRAY[$limit / 10, $limit], '{weight}', $options, row_type => NULL::record) AS t (obs_id $type, radius float8, count bigint, sum float8, max float8)",
			"SELECT id, radius, count(r), coalesce(sum(weight), 0), max(weight) FROM (SELECT id FROM obs WHERE NOT ST_IsEmpty(g::geometry)) o
			CROSS JOIN (VALUES ($limit / 10), ($limit)) v (radius) LEFT JOIN pair ON o = id AND d <= radius GROUP BY 1, 2" ]);

	# a NULL radius does not limit a row
	foreach (@calls)
	{
		my ($name, $call, $expected) = @$_;

		is($node->safe_psql('postgres', 'SELECT differ($call$' . $call . '$call$, $expected$' . $expected . '$expected$)'),
			'0', "seed $seed, set $set, $name: shapes of $obs_kinds ask for " . ($lat_lon ? 'points in two columns' : $ref_kinds) . sprintf(', %.3g m', $size))
		  or diag("$call\n$expected");
	}
	# a place on each shape, as far from the other one as the distance says
	my $reference = $lat_lon ? 'r.lat, r.lon' : 'r.g';

	is($node->safe_psql('postgres', "SELECT count(*) - (SELECT count(*) FROM geonn_nearest('obs', 'ref', k => $k, $rows),
			count(*) FILTER (WHERE (abs(geonn_distance(obs_near_lat, obs_near_lon, ref_lat, ref_lon) - distance) <= 5e-8) IS NOT TRUE),
			count(*) FILTER (WHERE (geonn_distance(obs_near_lat, obs_near_lon, o.g) <= 5e-8) IS NOT TRUE),
			count(*) FILTER (WHERE (geonn_distance(ref_lat, ref_lon, $reference) <= 5e-8) IS NOT TRUE),
			count(*) FILTER (WHERE (bearing IS NULL) <> (distance = 0))
		FROM geonn_nearest('obs', 'ref', k => $k, $options, row_type => NULL::record) AS t (obs_id $type, ref_id $type, distance float8,
			obs_near_lat float8, obs_near_lon float8, ref_lat float8, ref_lon float8, bearing float8)
		JOIN obs o ON o.id = obs_id JOIN ref r ON r.id = ref_id"), '0|0|0|0|0', "seed $seed, set $set: nearest places");
	is($node->safe_psql('postgres', "SELECT differ(\$\$SELECT * FROM geonn_nearest('obs', 'obs', exclude_self => true, $rows\$\$,
			\$\$SELECT o.id, r.id, d, 1 FROM obs o, LATERAL (SELECT id, geonn_distance(o.g, obs.g) AS d FROM obs WHERE id <> o.id AND NOT ST_IsEmpty(g::geometry) ORDER BY 2, 1 LIMIT 1) r
				WHERE NOT ST_IsEmpty(o.g::geometry)\$\$)"), '0', "seed $seed, set $set: the nearest other one");
}
$node->stop;
done_testing();
