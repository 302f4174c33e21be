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
use Test::More;

my $pi = 4 * atan2(1, 1);
my $sets = $ENV{GEONN_LONG} ? 400 : 20;
my $seed = $ENV{GEONN_SHAPES_SEED} // int(rand(1_000_000));

my @id_types = ('bigint', 'integer', 'text', 'uuid');

# the place at this distance, an angle in degrees, of another
sub place_from
{
	my ($lat, $lon, $bearing, $angle) = @_;
	my ($phi, $delta, $theta) = map { $_ * $pi / 180 } $lat, $angle, $bearing;
	my $sine = sin($phi) * cos($delta) + cos($phi) * sin($delta) * cos($theta);

	$sine = $sine > 1 ? 1 : $sine < -1 ? -1 : $sine;
	my $new_lat = atan2($sine, sqrt(1 - $sine * $sine)) * 180 / $pi;
	my $new_lon = $lon +
	  atan2(sin($theta) * sin($delta) * cos($phi), cos($delta) - sin($phi) * $sine) * 180 / $pi;
	$new_lon -= 360 while $new_lon > 180;
	$new_lon += 360 while $new_lon < -180;
	return [ $new_lat, $new_lon ];
}

sub as_text
{
	return '(' . join(', ', map { sprintf('%.17g %.17g', $_->[1], $_->[0]) } @_) . ')';
}

# a closed ring around a place, which it may cross itself to go around
sub ring_around
{
	my ($place, $size, $corners) = @_;
	my $begin = rand(360);
	my $least = pick(0.1, 0.6, 1);
	my @ring = map {
		place_from(@$place, $begin + $_ * 360 / $corners, $size * ($least + (1 - $least) * rand()))
	} 0 .. $corners - 1;

	return (@ring, $ring[0]);
}

# the centres and some vertices of the shapes of a set, and the size of the shapes in degrees
my (@centres, $size, @vertices);

sub begin_set
{
	$size = 10**(-8 + rand(9.7));
	@centres = map {
		weighted(
			anywhere => 3,
			pole => 1,
			meridian => 1,
			zero => 1)
	} 1 .. between(1, 4);
	@centres = map {
		$_ eq 'pole' ? [ pick(90, -90), between(-180, 180) ] :
		  $_ eq 'meridian' ? [ rand(120) - 60, pick(180, -180) ] :
		  $_ eq 'zero' ? [ 0, 0 ] :
		  [ rand(180) - 90, rand(360) - 180 ]
	} @centres;
	@vertices = map { [@$_] } @centres;
	return;
}

# a place in the set: often one that other shapes have
sub some_place
{
	return pick(@vertices) if chance(0.25);
	return place_from(@{ pick(@centres) }, rand(360), $size * rand(2));
}

# Are the places so far from each other that neither PostGIS nor geonn takes an arc between them?
sub is_antipodal
{
	my ($a, $b) = @_;
	my ($phi, $psi, $turn) = map { $_ * $pi / 180 } $a->[0], $b->[0], $a->[1] - $b->[1];

	return sin($phi) * sin($psi) + cos($phi) * cos($psi) * cos($turn) < -0.999999;
}

sub line
{
	my @line = (some_place());

	foreach (2 .. pick(2, 2, 3, between(2, 40)))
	{
		my $place = some_place();

		push(@line, $place) if !is_antipodal($line[-1], $place);
	}
	@line = ($line[0]) x 2 if @line == 1 || chance(0.03);
	push(@vertices, $line[0], $line[-1]);
	return as_text(@line);
}

sub polygon
{
	my $place = some_place();
	my $of_polygon = $size * pick(0.2, 0.5, 1);
	my @ring = ring_around($place, $of_polygon, pick(3, 4, 10, between(3, 60)));
	my @rings = as_text(@ring);

	push(@vertices, @ring[ 0 .. 1 ], $place);
	push(@rings, as_text(ring_around($place, $of_polygon * 0.09, between(3, 12)))) if chance(0.3);
	push(@rings, as_text(ring_around(some_place(), $of_polygon * 0.3, between(3, 6)))) if chance(0.1);
	return '(' . join(', ', @rings) . ')';
}

# as text; NULL: undef
sub shape
{
	my $kind = weighted(
		point => 1, line => 4, polygon => 4, points => 0.5, lines => 0.7, polygons => 1, collection => 0.7, empty => 0.2, null => 0.1);

	return
		$kind eq 'point' ? 'POINT' . as_text(some_place()) :
		$kind eq 'line' ? 'LINESTRING' . line() :
		$kind eq 'polygon' ? 'POLYGON' . polygon() :
		$kind eq 'points' ? 'MULTIPOINT' . as_text(map { some_place() } 1 .. between(1, 4)) :
		$kind eq 'lines' ? 'MULTILINESTRING(' . join(', ', map { line() } 1 .. between(1, 3)) . ')' :
		$kind eq 'polygons' ? 'MULTIPOLYGON(' . join(', ', map { polygon() } 1 .. between(1, 3)) . ')' :
		$kind eq 'collection' ? 'GEOMETRYCOLLECTION(' . join(', ', map { shape() // 'POINT EMPTY' } 1 .. between(1, 4)) . ')' :
		$kind eq 'empty' ? pick('POINT EMPTY', 'LINESTRING EMPTY', 'MULTIPOLYGON EMPTY', 'GEOMETRYCOLLECTION EMPTY') : undef;
}

sub id_of
{
	my ($type, $number) = @_;

	return $type eq 'text' ? "'" . substr('cabdgef', $number % 7, 1) . "$number'" :
	  $type eq 'uuid' ? sprintf("'%08x-0000-0000-0000-%012x'", $number * 2654435761 % 4294967296, $number) :
	  $number;
}

sub observation
{
	my $place = chance(0.3) ? pick(@vertices) : chance(0.8) ? some_place() : [ rand(180) - 90, rand(360) - 180 ];

	$place = place_from(@$place, rand(360), $size * 10**-rand(8)) if chance(0.3);
	return $place;
}

my $node = new_server('shapes');
$node->safe_psql('postgres', 'CREATE EXTENSION postgis; CREATE TYPE floatrange AS RANGE (subtype = float8)');

# Conditions that a question may have: its arguments, its options, and what they are in SQL on a pair s and an observation o.
sub conditions
{
	my $arguments = '';
	my @options = ('"ref_shape": "g"');
	my @where;

	if (chance(0.2))
	{
		$arguments .= q{, by => '{zone}'};
		push(@where, 's.zone = o.zone');
	}
	if (chance(0.25))
	{
		my $columns = pick('owner', 'owner', 'colour,owner');

		$arguments .= ", differs => '{$columns}'";
		push(@where, map { "s.$_ <> o.$_" } split(/,/, $columns));
	}
	if (chance(0.35))
	{
		my $columns = pick('span', 'hour', 'hour,span');

		$arguments .= ", overlaps => '{$columns}'";
		push(@where, map { $_ eq 'hour' ? 's.hour = o.hour' : 's.span && o.span' } split(/,/, $columns));
	}
	if (chance(0.25))
	{
		push(@options, '"ref_radius": "reach"');
		push(@where, q{d <= coalesce(s.reach, 'Infinity')});
	}
	if (chance(0.25))
	{
		push(@options, '"obs_radius": "reach"');
		push(@where, q{d <= coalesce(o.reach, 'Infinity')});
	}
	if (chance(0.2))
	{
		$arguments .= ', exclude_self => true';
		push(@where, 's.id <> o.id');
	}
	push(@options, '"batch_rows": ' . between(1, 300)) if chance(0.5);
	return ($arguments . ", options => '{" . join(', ', @options) . "}'", @where);
}

# zone, owner, colour, hour, span and reach of a row
sub condition_values
{
	my $low = between(0, 20);
	my $span = weighted(range => 8, point => 1, empty => 0.5, unbounded => 1, null => 0.3);

	return join(', ',
		between(1, 3),
		chance(0.9) ? "'" . pick('red', 'blue', 'green') . "'" : 'NULL',
		chance(0.9) ? between(1, 3) : 'NULL',
		chance(0.95) ? between(1, 3) : 'NULL',
		$span eq 'null' ? 'NULL' : $span eq 'empty' ? "'empty'" : $span eq 'point' ? "'[$low,$low]'" :
		$span eq 'unbounded' ? pick("'($low,)'", "'(,$low]'") :
		sprintf("'%s%d,%d%s'", pick('[', '('), $low, $low + between(1, 8), pick(']', ')')),
		chance(0.7) ? sprintf('%.17g', $size * 111195 * pick(-1, 0, rand(0.5), rand(3), rand(20))) : 'NULL');
}

# what the answer, and what plain SQL says: rows that are not in both
sub ask
{
	my ($name, $id_type) = @_;
	my $k = pick(1, 1, 2, between(1, 12), 1024);
	my $ties = chance(0.3);
	my $within = chance(0.3);
	my ($conditions, @conditions) = conditions();
	my $kept = chance(0.3);
	my $limit = $within || chance(0.3) ? $size * 111195 * pick(0, 0.3, 2, 20) : undef;
	my $call = $within ? sprintf("geonn_within('obs', 'shape', radius => %.17g", $limit) :
	  "geonn_nearest('obs', 'shape', k => $k" . ($ties ? ", ties => 'all'" : '') .
	  (defined $limit ? sprintf(', max_distance => %.17g', $limit) : '');
	my @where = ('d IS NOT NULL', @conditions);

	$call .= $conditions . ($kept ? ', keep_unmatched => true' : '');
	push(@where, sprintf('d <= %.17g', $limit)) if defined $limit;

	my $rows = $within ? '' : $ties ? "FETCH FIRST $k ROWS WITH TIES" : "LIMIT $k";
	my $order = $ties && !$within ? 'd' : 'd, id';
	my $join = $kept ? 'LEFT JOIN LATERAL' : 'JOIN LATERAL';
	my $said = $node->safe_psql(
		'postgres', qq{
		WITH answer AS MATERIALIZED (
			SELECT * FROM $call, row_type => NULL::record) AS n (obs_id $id_type, ref_id $id_type, distance float8, rank bigint)),
		expected AS MATERIALIZED (
			SELECT o.id AS obs_id, r.id AS ref_id, r.d AS distance, row_number() OVER (PARTITION BY o.id ORDER BY r.d, r.id) AS rank
			FROM obs o $join (
				SELECT id, d FROM pair s WHERE s.obs_id = o.id AND @{[join(' AND ', @where)]} ORDER BY $order $rows) r ON true)
		SELECT (SELECT count(*) FROM answer), (SELECT count(*) FROM expected),
			(SELECT string_agg(x::text, ' ') FROM (SELECT x FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM answer) x LIMIT 3) x),
			(SELECT string_agg(x::text, ' ') FROM (SELECT x FROM (SELECT * FROM answer EXCEPT ALL SELECT * FROM expected) x LIMIT 3) x)});
	my ($answered, $expected, $missing, $more) = split(/\|/, $said, -1);

	is("$missing$more", '', "$name: $expected rows of $call)");
	return;
}

# rows of counts that differ from those of plain SQL
sub ask_counts
{
	my ($name, $id_type) = @_;
	my ($conditions, @conditions) = conditions();
	my $weights = chance(0.7) ? ", weights => '{weight}'" : '';
	my @radii = (pick(0, 1), map { $_ * $size * 111195 } 0.3, 2, 20);
	my $radii = join(', ', map { sprintf('%.17g', $_) } $radii[0] < $radii[1] ? @radii : @radii[ 1 .. 3 ]);
	my $call = "geonn_within_count('obs', 'shape', radii => '{$radii}'$weights$conditions";
	my @where = ('d <= radius', @conditions);
	my $extremes = $weights && chance(0.5) ? ', min, max' : '';
	my $sums = $weights ? ', sum' : '';
	my $types = ($sums && ', sum float8') . ($extremes && ', min float8, max float8');
	my $summed = ($sums && ', coalesce(sum(weight), 0)') . ($extremes && ', min(weight), max(weight)');

	is($node->safe_psql(
			'postgres', qq{
		WITH answer AS MATERIALIZED (
			SELECT obs_id, radius, count$sums$extremes
			FROM $call, row_type => NULL::record) AS n (obs_id $id_type, radius float8, count bigint$types)),
		expected AS MATERIALIZED (
			SELECT o.id, radius, count(s.id)$summed
			FROM obs o CROSS JOIN unnest('{$radii}'::float8[]) radius
			LEFT JOIN pair s ON s.obs_id = o.id AND @{[join(' AND ', @where)]}
			GROUP BY o.id, radius)
		SELECT string_agg(x::text, ' ') FROM (
			(SELECT 'missing', * FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM answer) m LIMIT 3)
			UNION ALL (SELECT 'more', * FROM (SELECT * FROM answer EXCEPT ALL SELECT * FROM expected) m LIMIT 3)) x}),
		'', "$name: rows of $call)");
	return;
}

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
	my $conditions = 'zone integer, owner text, colour integer, hour integer, span floatrange, reach float8';

	$node->safe_psql(
		'postgres', qq{
		DROP TABLE IF EXISTS obs, shape, pair;
		CREATE TABLE obs (id $id_type PRIMARY KEY, $conditions, lat float8, lon float8);
		CREATE TABLE shape (id $id_type PRIMARY KEY, $conditions, g $type, weight float8);
		INSERT INTO shape VALUES @{[join(",\n", @rows)]};
		INSERT INTO obs VALUES @{[join(",\n", @observations)]};
		CREATE TABLE pair AS SELECT o.id AS obs_id, s.*, geonn_distance(o.lat, o.lon, s.g) AS d FROM obs o, shape s;
		CREATE INDEX ON pair (obs_id)});
	ask("seed $seed, set $set", $id_type) foreach 1 .. 3;
	ask_counts("seed $seed, set $set", $id_type);
	ask_places("seed $seed, set $set", $id_type);
}

done_testing();
