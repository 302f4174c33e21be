
# Shapes: random sets of shapes of PostGIS that cross, touch and lie in each other, of a millimetre to a hemisphere, over
# the poles and the antimeridian, and random questions about them, whose answers are compared with plain SQL.
#
# The tables that are asked are obs and shape, both with an id and the columns of $condition_columns, shape also with a weight.  The
# table pair has for each two rows obs_id, the columns of shape, and the distance d.

package Shapes;

use strict;
use warnings;

use Exporter 'import';
use Test::More;

use Random;

our @EXPORT = qw(
  begin_set set_size some_place some_vertex place_from shape shape_of type_of_kind @shape_kinds
  id_of $condition_columns condition_values ask_neighbours ask_counts);

my $pi = 4 * atan2(1, 1);

# a kind: the type of PostGIS that names it
my %types = (
	point => 'Point',
	line => 'LineString',
	polygon => 'Polygon',
	points => 'MultiPoint',
	lines => 'MultiLineString',
	polygons => 'MultiPolygon',
	collection => 'GeometryCollection',
	mixed => 'Geometry');

our @shape_kinds = sort keys %types;

# the centres and some vertices of the shapes of a set, and the size of the shapes in degrees
my (@centres, $size, @vertices);

# ---- places ----

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
	push(@centres, [ -$centres[0][0], $centres[0][1] > 0 ? $centres[0][1] - 180 : $centres[0][1] + 180 ]) if chance(0.1);
	@vertices = map { [@$_] } @centres;
	return;
}

# the size of the shapes of the set, in degrees
sub set_size { return $size; }

# a place in the set: often one that other shapes have
sub some_place
{
	return some_vertex() if chance(0.25);
	return place_from(@{ pick(@centres) }, rand(360), $size * rand(2));
}

sub some_vertex { return pick(@vertices); }

# Are the places so far from each other that neither PostGIS nor geonn takes an arc between them?
sub is_antipodal
{
	my ($a, $b) = @_;
	my ($phi, $psi, $turn) = map { $_ * $pi / 180 } $a->[0], $b->[0], $a->[1] - $b->[1];

	return sin($phi) * sin($psi) + cos($phi) * cos($psi) * cos($turn) < -0.999999;
}

# ---- shapes ----

sub as_text
{
	return '(' . join(', ', map { sprintf('%.17g %.17g', $_->[1], $_->[0]) } @_) . ')';
}

# a closed ring around a place, which it may cross itself to go around
sub ring_around
{
	my ($place, $of_ring, $corners) = @_;
	my $begin = rand(360);
	my $least = pick(0.1, 0.6, 1);
	my @ring = map {
		place_from(@$place, $begin + $_ * 360 / $corners, $of_ring * ($least + (1 - $least) * rand()))
	} 0 .. $corners - 1;

	return (@ring, $ring[0]);
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
	my $of_polygon = $size * pick(0.01, 0.2, 0.5, 1);
	my @ring = chance(0.03) ? ($place) x 4 : ring_around($place, $of_polygon, pick(3, 4, 10, between(3, 60)));
	my @rings = as_text(@ring);

	push(@vertices, @ring[ 0 .. 1 ], $place);
	push(@rings, as_text(ring_around($place, $of_polygon * 0.09, between(3, 12)))) if chance(0.3);
	push(@rings, as_text(ring_around(some_place(), $of_polygon * 0.3, between(3, 6)))) if chance(0.1);
	return '(' . join(', ', @rings) . ')';
}

my %bodies = (
	point => sub { return as_text(some_place()); },
	line => \&line,
	polygon => \&polygon,
	points => sub { return as_text(map { some_place() } 1 .. between(1, 4)); },
	lines => sub { return '(' . join(', ', map { line() } 1 .. between(1, 3)) . ')'; },
	polygons => sub { return '(' . join(', ', map { polygon() } 1 .. between(1, 3)) . ')'; },
	collection => sub { return '(' . join(', ', map { shape() // 'POINT EMPTY' } 1 .. between(1, 4)) . ')'; });

sub type_of_kind
{
	my ($kind) = @_;

	return $types{$kind};
}

# one of a kind, some empty, as text; NULL: undef
sub shape_of
{
	my ($kind) = @_;

	my $is = weighted(full => 30, empty => 0.5, null => 0.3);

	return shape() if $kind eq 'mixed';
	return $is eq 'null' ? undef : uc($types{$kind}) . ($is eq 'empty' ? ' EMPTY' : $bodies{$kind}->());
}

# of any kind, as text; NULL: undef
sub shape
{
	my $kind = weighted(
		point => 1, line => 4, polygon => 4, points => 0.5, lines => 0.7, polygons => 1, collection => 0.7, empty => 0.2, null => 0.1);

	return
	  $kind eq 'null' ? undef :
	  $kind eq 'empty' ? pick('POINT EMPTY', 'LINESTRING EMPTY', 'MULTIPOLYGON EMPTY', 'GEOMETRYCOLLECTION EMPTY') :
	  uc($types{$kind}) . $bodies{$kind}->();
}

# ---- other columns ----

sub id_of
{
	my ($type, $number) = @_;

	return $type eq 'text' ? "'" . substr('cabdgef', $number % 7, 1) . "$number'" :
	  $type eq 'uuid' ? sprintf("'%08x-0000-0000-0000-%012x'", $number * 2654435761 % 4294967296, $number) :
	  $number;
}

# columns of a row that conditions are about, of which the type floatrange is the test's to create, and random values of them
our $condition_columns = 'zone integer, owner text, colour integer, hour integer, span floatrange, reach float8';

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

# ---- questions ----

# Conditions that a question may have: its arguments, with these options and others, and what they are in SQL on a pair s and
# an observation o.
sub conditions
{
	my (@options) = @_;
	my $arguments = '';
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
	return ($arguments . ", options => '{" . join(', ', @options) . "}'", @where);
}

# a call of a function for the tables, or of the one for queries
sub call_of
{
	my ($function, $of_queries, $arguments) = @_;

	return $of_queries ? "${function}_sql('SELECT * FROM obs', 'TABLE shape', $arguments" : "$function('obs', 'shape', $arguments";
}

# Are the rows of a random question those of plain SQL, to the last bit?  How it is asked: options; settings, as SQL; of_queries;
# has_place, an SQL condition on an observation o, if some have none: then these have rows with keep_unmatched alone.
sub ask_neighbours
{
	my ($node, $name, $id_type, %how) = @_;
	my $k = pick(1, 1, 2, between(1, 12), 1024);
	my $ties = chance(0.3);
	my $within = chance(0.3);
	my ($conditions, @conditions) = conditions(@{ $how{options} });
	my $kept = chance(0.3);
	my $limit = $within || chance(0.3) ? $size * 111195 * pick(0, 0.3, 2, 20) : undef;
	my $call = $within ? call_of('geonn_within', $how{of_queries}, sprintf('radius => %.17g', $limit)) :
	  call_of('geonn_nearest', $how{of_queries}, "k => $k" . ($ties ? ", ties => 'all'" : '') .
		  (defined $limit ? sprintf(', max_distance => %.17g', $limit) : ''));
	my @where = ('d IS NOT NULL', @conditions);

	$call .= $conditions . ($kept ? ', keep_unmatched => true' : '');
	push(@where, sprintf('d <= %.17g', $limit)) if defined $limit;

	my $rows = $within ? '' : $ties ? "FETCH FIRST $k ROWS WITH TIES" : "LIMIT $k";
	my $order = $ties && !$within ? 'd' : 'd, id';
	my $join = $kept ? 'LEFT JOIN LATERAL' : 'JOIN LATERAL';
	my $said = $node->safe_psql(
		'postgres', qq{
		@{[ $how{settings} // '' ]}
		WITH answer AS MATERIALIZED (
			SELECT obs_id, ref_id, float8send(distance) AS distance, rank
			FROM $call, row_type => NULL::record) AS n (obs_id $id_type, ref_id $id_type, distance float8, rank bigint)),
		expected AS MATERIALIZED (
			SELECT o.id AS obs_id, r.id AS ref_id, float8send(r.d) AS distance, row_number() OVER (PARTITION BY o.id ORDER BY r.d, r.id) AS rank
			FROM obs o $join (
				SELECT id, d FROM pair s WHERE s.obs_id = o.id AND @{[ join(' AND ', @where) ]} ORDER BY $order $rows) r ON true
			WHERE @{[ $kept ? 'true' : $how{has_place} // 'true' ]})
		SELECT (SELECT count(*) FROM expected),
			(SELECT string_agg(x::text, ' ') FROM (SELECT x FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM answer) x LIMIT 3) x),
			(SELECT string_agg(x::text, ' ') FROM (SELECT x FROM (SELECT * FROM answer EXCEPT ALL SELECT * FROM expected) x LIMIT 3) x)});
	my ($expected, $missing, $more) = split(/\|/, $said, -1);

	is("$missing$more", '', "$name: $expected rows of $call)");
	return;
}

# Are counts, sums and extremes those of plain SQL?  How they are asked for is as above.
sub ask_counts
{
	my ($node, $name, $id_type, %how) = @_;
	my ($conditions, @conditions) = conditions(@{ $how{options} });
	my $weights = chance(0.7) ? ", weights => '{weight}'" : '';
	my @radii = (pick(0, 1), map { $_ * $size * 111195 } 0.3, 2, 20);
	my $radii = join(', ', map { sprintf('%.17g', $_) } $radii[0] < $radii[1] ? @radii : @radii[ 1 .. 3 ]);
	my $call = call_of('geonn_within_count', $how{of_queries}, "radii => '{$radii}'$weights$conditions");
	my @where = ('d <= radius', @conditions);
	my $extremes = $weights && chance(0.5) ? ', min, max' : '';
	my $sums = $weights ? ', sum' : '';
	my $types = ($sums && ', sum float8') . ($extremes && ', min float8, max float8');
	my $summed = ($sums && ', coalesce(sum(weight), 0)') . ($extremes && ', min(weight), max(weight)');

	is($node->safe_psql(
			'postgres', qq{
		@{[ $how{settings} // '' ]}
		WITH answer AS MATERIALIZED (
			SELECT obs_id, radius, count$sums$extremes
			FROM $call, row_type => NULL::record) AS n (obs_id $id_type, radius float8, count bigint$types)),
		expected AS MATERIALIZED (
			SELECT o.id, radius, count(s.id)$summed
			FROM obs o CROSS JOIN unnest('{$radii}'::float8[]) radius
			LEFT JOIN pair s ON s.obs_id = o.id AND @{[ join(' AND ', @where) ]}
			WHERE @{[ $how{has_place} // 'true' ]}
			GROUP BY o.id, radius)
		SELECT string_agg(x::text, ' ') FROM (
			(SELECT 'missing', * FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM answer) m LIMIT 3)
			UNION ALL (SELECT 'more', * FROM (SELECT * FROM answer EXCEPT ALL SELECT * FROM expected) m LIMIT 3)) x}),
		'', "$name: rows of $call)");
	return;
}

1;
