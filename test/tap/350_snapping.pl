# The arc that is nearest, the side on which an observation lies, and the measure at the nearest place, are what other formulas
# say: arcs are numbered as ST_DumpSegments has them, distances come from cross products and arc tangents, the side at a vertex
# from the angles between bearings, and of short lines PostGIS's ST_InterpolatePoint says the measure.  For random lines,
# some closed, with repeated vertices, sharp bends or arcs up to almost half a great circle, several of them in one value,
# polygons with holes, and collections.  Functions, plans, prepared statements, ids of text and batches of one row
# give the same rows.  Lines and polygons that ask have the arcs, sides and measures of their own place that is nearest, which is as far
# as the nearest of all vertices of either shape is from an arc of the other one.
#
# The seed is in the names of the tests; GEONN_SNAPPING_SEED gives it again.
#
# needs: postgis
# rooms: join points engine/cpu/arcs

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../fuzz";

use Geonn;
use List::Util qw(min sum);
use POSIX ();
use Random;
use Test::More;

my $pi = 4 * atan2(1, 1);
my $radius = 6371008.7714150598;
my $cases = 2000;
my $seed = $ENV{GEONN_SNAPPING_SEED} // int(rand(1_000_000));

# what is nearer to a limit than this many metres, or this sine, may be decided either way
my $metres = 1e-6;
my $sine = 1e-14;

# ---- vectors ----

sub vector
{
	my ($lat, $lon) = map { $_ * $pi / 180 } @{ $_[0] };

	return [ cos($lat) * cos($lon), cos($lat) * sin($lon), sin($lat) ];
}

sub dot { my ($u, $v) = @_; return $u->[0] * $v->[0] + $u->[1] * $v->[1] + $u->[2] * $v->[2]; }

sub cross
{
	my ($u, $v) = @_;

	return [ $u->[1] * $v->[2] - $u->[2] * $v->[1], $u->[2] * $v->[0] - $u->[0] * $v->[2], $u->[0] * $v->[1] - $u->[1] * $v->[0] ];
}

sub minus { my ($u, $v) = @_; return [ map { $u->[$_] - $v->[$_] } 0 .. 2 ]; }
sub scaled { my ($u, $by) = @_; return [ map { $_ * $by } @$u ]; }
sub size { return sqrt(dot($_[0], $_[0])); }
sub angle { my ($u, $v) = @_; return atan2(size(cross($u, $v)), dot($u, $v)); }

# a text for each place, to the last bit
sub place_text { return join(' ', map { sprintf('%.17g', $_) } @{ $_[0] }[ 0, 1 ]); }

# the bearing from u to v, in radians from north by east
sub bearing
{
	my ($u, $v) = @_;
	my $east = [ -$u->[1], $u->[0], 0 ];

	return atan2(dot($east, $v), dot(cross($u, $east), $v));
}

# the place at this angle and bearing, in degrees, of another
sub place_from
{
	my ($place, $bearing, $degrees) = @_;
	my $from = vector($place);
	my $east = scaled([ -$from->[1], $from->[0], 0 ], 1 / sqrt($from->[0]**2 + $from->[1]**2));
	my $north = cross($from, $east);
	my ($b, $a) = map { $_ * $pi / 180 } $bearing, $degrees;
	my @to = map { $from->[$_] * cos($a) + ($north->[$_] * cos($b) + $east->[$_] * sin($b)) * sin($a) } 0 .. 2;

	return [ map { $_ * 180 / $pi } atan2($to[2], sqrt($to[0]**2 + $to[1]**2)), atan2($to[1], $to[0]) ];
}

# ---- shapes: parts, each of a kind and with vertices, which are latitude, longitude and measure ----

sub walk
{
	my ($place, $size, $count) = @_;
	my @vertices = ([@$place]);
	my $bearing = rand(360);

	while (@vertices < $count)
	{
		my $last = $vertices[-1];

		if (chance(0.08))
		{
			push(@vertices, [@$last]);
			next;
		}
		$bearing += pick(rand(20) - 10, rand(180) - 90, rand(360));
		push(@vertices, place_from($last, $bearing, $size * (0.2 + rand())));
		pop(@vertices) if angle(vector($last), vector($vertices[-1])) > 3.1;
	}
	push(@vertices, [ @{ $vertices[0] } ]) if $count > 3 && $size < 30 && chance(0.25);
	return @vertices;
}

sub ring
{
	my ($place, $size, $least) = @_;
	my $corners = between(3, 12);
	my $begin = rand(360);
	my $turn = pick(1, -1);
	my @ring = map { place_from($place, $begin + $turn * $_ * 360 / $corners, $size * ($least + (1 - $least) * rand())) } 0 .. $corners - 1;

	@ring = map { chance(0.1) ? ([@$_], [@$_]) : $_ } @ring;
	return (@ring, [ @{ $ring[0] } ]);
}

sub measured
{
	my $measure = between(-1000, 1000);

	return map { [ @$_[ 0, 1 ], $measure += between(0, 80) / 8 ] } @_;
}

sub new_case
{
	my $kind = weighted(short => 5, line => 4, long => 3, lines => 3, polygon => 3, collection => 2, place => 0.5, point => 0.3);
	my $short = $kind eq 'short';
	my $place = $short ? [ rand(0.02) - 0.01, rand(300) - 150 ] : [ rand(120) - 60, rand(300) - 150 ];
	my $size = $short ? 10**(-4 - rand(1)) : $kind eq 'long' ? pick(20, 60, 100, 170) : 10**(-4 + rand(4.5));
	my %case = (kind => $kind, size => $size);

	$case{parts} =
	  $kind eq 'polygon' ? [ [ 'ring', ring($place, $size, 0.7) ], chance(0.6) ? [ 'ring', ring($place, $size * 0.2, 0.7) ] : () ] :
	  $kind eq 'lines' ? [ map { [ 'line', measured(walk(place_from($place, rand(360), $size * rand(4)), $size, between(2, 8))) ] } 1 .. between(2, 4) ] :
	  $kind eq 'collection' ? [ shuffled(
			(map { [ 'line', measured(walk(place_from($place, rand(360), $size * rand(4)), $size, between(2, 6))) ] } 1 .. between(1, 3)),
			(map { [ 'point', measured(place_from($place, rand(360), $size * rand(6))) ] } 1 .. between(1, 3)),
			[ 'ring', measured(ring(place_from($place, rand(360), $size * 4), $size, 0.7)) ]) ] :
	  $kind eq 'point' ? [ [ 'point', measured($place) ] ] :
	  $kind eq 'place' ? [ [ 'line', measured(($place) x between(2, 4)) ] ] :
	  [ [ 'line', measured(walk($place, $size, between(2, 10))) ] ];

	# an observation near a vertex, on one, near the middle of an arc, or in the polygon
	my ($part) = pick(@{ $case{parts} });
	my @vertices = @$part[ 1 .. $#$part ];
	my $at = between(0, $#vertices);
	my $near = chance(0.5) || $at == 0 ? $vertices[$at] :
	  place_from($vertices[$at - 1], bearing(map { vector($vertices[$_]) } $at - 1, $at) * 180 / $pi,
		rand() * angle(map { vector($vertices[$_]) } $at - 1, $at) * 180 / $pi);
	$case{point} = chance(0.1) ? [ @$near[ 0, 1 ] ] : place_from($near, rand(360), min(80, $size * 10**(0.3 - rand(4))));
	$case{inside} = $kind eq 'polygon' && chance(0.15);
	$case{point} = place_from($place, rand(360), $size * (0.21 + rand(0.1))) if $case{inside};
	return \%case;
}

sub as_text
{
	my ($case) = @_;
	my $dimensions = $case->{kind} eq 'polygon' ? '' : pick(' M', ' ZM');
	my @parts = map {
		my ($kind, @vertices) = @$_;
		[ $kind, '(' . join(', ', map { join(' ', map { sprintf('%.17g', $_) } @$_[ 1, 0 ], $dimensions eq ' ZM' ? 5 : (), $dimensions ? $_->[2] : ()) } @vertices) . ')' ]
	} @{ $case->{parts} };

	return
	  $case->{kind} eq 'polygon' ? 'POLYGON(' . join(', ', map { $_->[1] } @parts) . ')' :
	  $case->{kind} eq 'lines' ? "MULTILINESTRING$dimensions(" . join(', ', map { $_->[1] } @parts) . ')' :
	  $case->{kind} eq 'collection' ? "GEOMETRYCOLLECTION$dimensions(" . join(', ', map {
			$_->[0] eq 'ring' ? "POLYGON$dimensions($_->[1])" : ($_->[0] eq 'line' ? 'LINESTRING' : 'POINT') . $dimensions . $_->[1]
		} @parts) . ')' :
	  ($parts[0][0] eq 'line' ? 'LINESTRING' : 'POINT') . $dimensions . $parts[0][1];
}

# ---- what is right ----

# The arcs of a case with their numbers, and points without: each with its distance and its nearest place.
sub arcs_of
{
	my ($case) = @_;
	my $point = vector($case->{point});
	my $number = 0;
	my @arcs;

	foreach my $part (@{ $case->{parts} })
	{
		my ($kind, @vertices) = @$part;

		foreach my $i (1 .. ($kind eq 'point' ? 1 : $#vertices))
		{
			my ($a, $b) = map { vector($_) } @vertices[ $i - 1, $kind eq 'point' ? 0 : $i ];
			# differences first: short arcs, near the observation, have a sure direction then
			my $normal = cross($a, minus($b, $a));
			my $arc = {
				part => $part, number => $kind eq 'point' ? undef : ++$number, i => $i, a => $a, b => $b, sine => size($normal),
				measures => [ $kind eq 'line' ? ($vertices[$i - 1][2], $vertices[$i][2]) : (undef, undef) ]
			};
			my ($to_a, $to_b) = map { angle($point, $_) } $a, $b;
			my @feet = $arc->{sine} < 1e-14 ? (-1) : (dot(cross($normal, $a), minus($point, $a)) / $arc->{sine}, dot(cross($b, $normal), minus($point, $b)) / $arc->{sine});

			$arc->{margin} = min(map { abs } @feet);
			if (min(@feet) > 0)
			{
				$arc->{where} = 'between';
				$arc->{turn} = dot($normal, minus($point, $a)) / $arc->{sine};
				$arc->{distance} = $radius * atan2(abs($arc->{turn}), size(cross($normal, $point)) / $arc->{sine});
			}
			else
			{
				$arc->{where} = $to_a <= $to_b ? 'begin' : 'end';
				$arc->{distance} = $radius * min($to_a, $to_b);
				$arc->{vertex} = place_text($vertices[ $kind eq 'point' || $to_a <= $to_b ? $i - 1 : $i ]);
			}
			push(@arcs, $arc);
		}
	}
	return @arcs;
}

# The words that a side may have; undef: the line has none.
sub sides_of
{
	my ($case, $arc) = @_;
	my $point = vector($case->{point});
	my (undef, @vertices) = @{ $arc->{part} };
	my @vectors = map { vector($_) } @vertices;
	my $same = sub { place_text($vertices[ $_[0] ]) eq place_text($vertices[ $_[1] ]) };
	my $closed = $same->(0, -1);
	my $at = $arc->{where} eq 'end' ? $arc->{i} : $arc->{i} - 1;
	my ($before, $behind) = ($at, $at);

	return abs($arc->{turn}) < $sine ? ('left', 'right', 'on') : $arc->{turn} > 0 ? ('left') : ('right') if $arc->{where} eq 'between';
	my $n = $#vertices;
	my $steps = 0;
	while (defined $before && $same->($before, $at))
	{
		$before = $before > 0 ? $before - 1 : $closed ? $n - 1 : undef;
		return undef if $steps++ > $n;
	}
	$steps = 0;
	while (defined $behind && $same->($behind, $at))
	{
		$behind = $behind < $n ? $behind + 1 : $closed ? 1 : undef;
		return undef if $steps++ > $n;
	}
	return undef if !defined $before && !defined $behind;
	return ('on') if place_text($vertices[$at]) eq place_text($case->{point});
	return ('left', 'right', 'on') if $arc->{distance} < 1e-6;

	# counterclockwise from the way that the line goes on to the way that it has come from is its left
	my $to_point = bearing($vectors[$at], $point);
	my $forward = defined $behind ? bearing($vectors[$at], $vectors[$behind]) : bearing($vectors[$at], $vectors[$before]) + $pi;
	my $back = defined $before ? bearing($vectors[$at], $vectors[$before]) : $forward + $pi;
	my ($left, $there) = map { my $turn = ($forward - $_) / (2 * $pi); $turn - POSIX::floor($turn) } $back, $to_point;

	return ('left', 'right', 'on') if grep { abs($_) < 1e-9 || abs($_) > 1 - 1e-9 } $left, $there, $there - $left;
	return $there < $left ? ('left') : ('right');
}

# Is the observation in the polygon: do bearings of its rings turn around an odd number of times?
sub is_inside
{
	my ($case) = @_;
	my $point = vector($case->{point});
	my $inside = 0;

	foreach my $ring (grep { $_->[0] eq 'ring' } @{ $case->{parts} })
	{
		my @bearings = map { bearing($point, vector($_)) } @$ring[ 1 .. $#$ring ];
		my $turns = sum(map { my $turn = ($bearings[$_] - $bearings[ $_ - 1 ]) / (2 * $pi); $turn - POSIX::floor($turn + 0.5) } 1 .. $#bearings);

		$inside ^= 1 if abs($turns) > 0.5;
	}
	return $inside;
}

# What is wrong with an answer; '' if nothing is.  Notes in the case how it was decided.
sub problem
{
	my ($case, $answer) = @_;
	my ($distance, $segment, $side, $measure) = @$answer{qw(distance segment side measure)};
	my @arcs = arcs_of($case);

	# a polygon's border counts as its inside
	my $least = min(map { $_->{distance} } @arcs);
	$case->{how} = 'border';
	return '' if $distance < 2 * $metres && grep { $_->{part}[0] eq 'ring' && $_->{distance} < $metres } @arcs;
	$case->{how} = 'inside';
	# of a collection, a line that is met may go through the polygon
	my $is_met = $distance == 0 && grep { ($_->{number} // '') eq $segment && $_->{part}[0] ne 'ring' && $_->{distance} < $metres } @arcs;
	return "distance $distance, $segment, $side, $measure inside" if is_inside($case) && "$distance$segment$side$measure" ne '0' && !$is_met;
	return '' if is_inside($case);
	return "the distance $distance instead of $least" if abs($least - $distance) > 1e-6 + 1e-13 * $radius;
	my @nearest = grep { $_->{distance} <= $least + $metres } @arcs;

	# the first of those that meet at one place
	my %vertices = map { ($_->{vertex} // 'between') => 1 } @nearest;
	@nearest = ($nearest[0]) if keys %vertices == 1 && !exists $vertices{between} &&
	  (exists $vertices{ place_text($case->{point}) } || !grep { $_->{margin} < $sine } @nearest);
	my @arc = grep { ($_->{number} // '') eq $segment } @nearest;
	return "arc '$segment' instead of " . join(' or ', map { $_->{number} // "''" } @nearest) if !@arc;
	my $arc = $arc[0];
	$case->{how} = 'point';
	return '' if !defined $arc->{number};
	$case->{clear} = @nearest == 1;

	if ($arc->{margin} > $sine || $arc->{where} ne 'between')
	{
		my @sides = $arc->{margin} < $sine && $arc->{sine} > 1e-14 ? (qw(left right on)) : sides_of($case, $arc);

		$case->{how} = @sides > 1 ? 'either' : "$arc->{where} " . ($sides[0] // 'none');
		return "side '$side' instead of " . join(' or ', map { $_ // "''" } @sides) if !grep { ($_ // '') eq $side } @sides;
	}

	my ($from, $to) = @{ $arc->{measures} };
	my $polygon = $arc->{part}[0] eq 'ring';
	return "measure '$measure' of a polygon" if $polygon && $measure ne '';
	return '' if $polygon;
	my $whole = angle($arc->{a}, $arc->{b});
	my $normal = scaled(cross($arc->{a}, minus($arc->{b}, $arc->{a})), 1 / ($arc->{sine} || 1));
	my $foot = minus(vector($case->{point}), scaled($normal, $arc->{turn} // 0));
	my $share = $arc->{where} eq 'begin' ? 0 : $arc->{where} eq 'end' ? 1 : angle($arc->{a}, $foot) / $whole;
	my $expected = $from + ($to - $from) * $share;

	# so much the rounding of the foot, which lies at right angles to a far observation, changes
	my $error = 1e-12 + ($whole > 0 ? ($to - $from) * 1e-14 / $whole / (abs(cos($distance / $radius)) + 1e-9) : 0) * 100;
	return "measure '$measure' instead of $expected" if $measure eq '' || abs($measure - $expected) > $error + 1e-12 * abs($expected);
	return '';
}

# ---- the test ----

my $node = new_server('snapping');
my @cases = map { begin_case($seed, $_); new_case() } 0 .. $cases - 1;
my @texts = map { begin_case($seed, $_ + $cases); as_text($cases[$_]) } 0 .. $cases - 1;
my @rows = map { "($_, $_, 'SRID=4326;$texts[$_]')" } shuffled(0 .. $cases - 1);
my @observations = map { sprintf('(%d, %d, %.17g, %.17g)', $_, $_, @{ $cases[$_]{point} }) } 0 .. $cases - 1;

$node->safe_psql(
	'postgres', qq{
	CREATE EXTENSION postgis;
	CREATE TABLE obs (id integer PRIMARY KEY, pair integer, lat float8, lon float8);
	CREATE TABLE shape (id integer PRIMARY KEY, pair integer, g geometry);
	INSERT INTO obs VALUES @{[join(",\n", @observations)]};
	INSERT INTO shape VALUES @{[join(",\n", @rows)]};
	CREATE TYPE snapped AS (obs_id integer, distance float8, ref_segment integer, ref_side text, ref_measure float8, ref_fraction float8);
	CREATE VIEW named AS SELECT id::text AS id, pair, g::geography AS g FROM shape});

my $columns = 'obs_id integer, distance float8, ref_segment integer, ref_side text, ref_measure float8, ref_fraction float8';
my $call = q{geonn_nearest('obs', 'shape', by => '{pair}', options => '{"ref_shape": "g"}', row_type => NULL::snapped)};
$node->safe_psql('postgres', "CREATE TABLE answer AS SELECT * FROM $call");
my %answers;
foreach (split(/\n/, $node->safe_psql('postgres', 'SELECT * FROM answer')))
{
	my %answer;

	@answer{qw(id distance segment side measure fraction)} = split(/\|/, $_, -1);
	$answers{ $answer{id} } = \%answer;
}
is(scalar(keys %answers), $cases, "seed $seed: each observation has its shape");

my %problems;
my %ways;
foreach my $i (0 .. $cases - 1)
{
	my $problem = problem($cases[$i], $answers{$i});

	$problems{$i} = $problem if $problem ne '';
	$ways{ $cases[$i]{how} }++;
}
note(join(', ', map { "$_: $ways{$_}" } sort keys %ways));
is(join("\n", map { "$_: $problems{$_} at @{$cases[$_]{point}} of $texts[$_]" } (sort { $a <=> $b } keys %problems)[ 0 .. min(4, keys(%problems) - 1) ]),
	'', "seed $seed: arcs, sides and measures are those of other formulas");
cmp_ok($ways{either} // 0, '<', $cases / 10, "seed $seed: few sides are too close to call");
cmp_ok(min(map { $ways{$_} // 0 } 'begin left', 'begin right', 'end left', 'end right', 'between left', 'between right'), '>', 20,
	"seed $seed: places of each kind have both sides");

# numbers as ST_DumpSegments has them, where PostGIS's distances from short arcs are off by centimetres, and measures of short lines at the equator, where degrees are as long in both directions
my @clear = grep { $cases[$_]{kind} eq 'short' && $cases[$_]{clear} && $answers{$_}{distance} < 1000 } 0 .. $cases - 1;
my $clear = join(', ', @clear);
cmp_ok(scalar(@clear), '>', 200, "seed $seed: many short lines are clear");
is($node->safe_psql('postgres', qq{
	SELECT count(*), min(obs_id) FROM answer JOIN obs o ON o.id = obs_id JOIN shape s USING (pair),
		LATERAL (SELECT ST_SetSRID(ST_MakePoint(lon, lat), 4326)) p (p), LATERAL (SELECT max(ST_M(v.geom)) - min(ST_M(v.geom)) FROM ST_DumpPoints(g) v) m (span)
	WHERE obs_id IN ($clear) AND abs(ST_InterpolatePoint(g, p) - ref_measure) > 1e-4 * span + 1e-6}), '0|',
	"seed $seed: ST_InterpolatePoint has the measures of short lines");
is($node->safe_psql('postgres', q{
	SELECT count(*), min(obs_id) FROM answer JOIN obs o ON o.id = obs_id JOIN shape s USING (pair),
		LATERAL (SELECT ST_SetSRID(ST_MakePoint(lon, lat), 4326)::geography) p (p),
		LATERAL (SELECT d.geom FROM ST_DumpSegments(ST_Force2D(g)) WITH ORDINALITY d (path, geom, n) WHERE n = ref_segment) d (arc)
	WHERE abs(ST_Distance(arc::geography, p, false) - distance) > 0.1 + 1e-9 * distance}), '0|',
	"seed $seed: ST_DumpSegments numbers the arcs in the same way");

# the same rows in other ways
sub same
{
	my ($name, $from) = @_;
	my $names = 'obs_id, distance, ref_segment, ref_side, ref_measure, ref_fraction';

	is($node->safe_psql('postgres', "
		WITH other AS MATERIALIZED (SELECT $names FROM $from)
		SELECT count(*) FROM ((SELECT * FROM other EXCEPT ALL SELECT $names FROM answer) UNION ALL (SELECT $names FROM answer EXCEPT ALL SELECT * FROM other)) d"),
		'0', "seed $seed: $name");
	return;
}

same('batches of seven rows', qq{geonn_nearest('obs', 'shape', by => '{pair}', options => '{"ref_shape": "g", "batch_rows": 7}', row_type => NULL::record) AS n ($columns)});
same('all within a distance', qq{geonn_within('obs', 'shape', 3e7, by => '{pair}', options => '{"ref_shape": "g"}', row_type => NULL::snapped) n});
same('ids of text, geography', qq{geonn_nearest('obs', 'named', by => '{pair}', row_type => NULL::record, options => '{"ref_shape": "g"}') AS n ($columns)});
same('queries', qq{geonn_nearest_sql('TABLE obs', 'TABLE shape', by => '{pair}', row_type => NULL::record, options => '{"ref_shape": "g"}') AS n ($columns)});
same('one point after the other',
	q{obs o, LATERAL (SELECT id AS obs_id, n.* FROM geonn_nearest_sql(format('SELECT %s AS id, %s::float8 AS lat, %s::float8 AS lon', id, lat, lon), format('SELECT id, g FROM shape WHERE pair = %s', pair), }
	  . q{options => '{"ref_shape": "g"}', row_type => NULL::record) AS n (distance float8, ref_segment integer, ref_side text, ref_measure float8, ref_fraction float8)) n WHERE o.id < 100}
	  . " UNION ALL SELECT obs_id, distance, ref_segment, ref_side, ref_measure, ref_fraction FROM answer WHERE obs_id >= 100");
is($node->safe_psql('postgres', qq{
	PREPARE snap (integer) AS SELECT ref_side FROM geonn_nearest('obs', 'shape', by => '{pair}', options => '{"ref_shape": "g"}', row_type => NULL::record) AS n ($columns) WHERE obs_id = \$1;
	SET plan_cache_mode = force_generic_plan;} . join('', map { "EXECUTE snap ($_);" } 0 .. 9)),
	join("\n", map { $answers{$_}{side} } 0 .. 9), "seed $seed: a prepared statement");

# several shapes of each observation, by a lateral join of points, too
$node->safe_psql('postgres', 'CREATE VIEW few AS SELECT id, lat, lon FROM obs WHERE id < 200');
is($node->safe_psql('postgres', q{
	WITH joined AS MATERIALIZED (SELECT n.* FROM geonn_nearest('few', 'shape', k => 3, options => '{"ref_shape": "g"}', row_type => NULL::record)
			AS n (obs_id integer, ref_id integer, ref_segment bigint, ref_side text, ref_measure float8)),
		one_by_one AS MATERIALIZED (SELECT o.id, n.* FROM few o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'shape', k => 3, options => '{"ref_shape": "g"}',
			row_type => NULL::record) AS n (ref_id integer, ref_segment bigint, ref_side text, ref_measure float8))
	SELECT (SELECT count(*) FROM joined), count(*) FROM ((SELECT * FROM joined EXCEPT ALL SELECT * FROM one_by_one) UNION ALL (SELECT * FROM one_by_one EXCEPT ALL SELECT * FROM joined)) d}),
	'600|0', "seed $seed: a lateral join of points");

# a line that is turned around has the other side, the arcs from its end, and the same measure
$node->safe_psql('postgres', q{CREATE VIEW turned AS SELECT id, pair, ST_Reverse(g) AS g FROM shape
	WHERE GeometryType(g) = 'LINESTRING' AND ST_NPoints(ST_RemoveRepeatedPoints(ST_Force2D(g))) > 3});
is($node->safe_psql('postgres', qq{
	SELECT count(*) > 200, count(*) FILTER (WHERE a.ref_side IS DISTINCT FROM CASE b.ref_side WHEN 'left' THEN 'right' WHEN 'right' THEN 'left' ELSE b.ref_side END),
		count(*) FILTER (WHERE abs(a.ref_measure - b.ref_measure) > 1e-6 AND abs(a.ref_fraction + b.ref_fraction - 1) > 1e-6)
	FROM answer a JOIN geonn_nearest('obs', 'turned', by => '{pair}', options => '{"ref_shape": "g"}', row_type => NULL::snapped) b USING (obs_id) JOIN shape s ON s.pair = obs_id
	WHERE abs(a.ref_fraction + b.ref_fraction - 1) < 1e-9}), 't|0|0', "seed $seed: a line that is turned around");

# ---- lines and polygons that ask ----

my @asking;
foreach my $i (0 .. 799)
{
	begin_case($seed, $i + 2 * $cases);
	my ($case, $size) = ($cases[$i], min(40, $cases[$i]{size}) * 10**(0.3 - rand(2)));
	my @part = chance(0.3) ? ('ring', ring($case->{point}, $size, 0.7)) : ('line', measured(walk($case->{point}, $size, between(2, 6))));

	push(@asking, { kind => $part[0] eq 'ring' ? 'polygon' : 'line', parts => [ \@part ] });
}
$node->safe_psql('postgres', 'CREATE TABLE asking (id integer PRIMARY KEY, pair integer, g geometry);
	INSERT INTO asking VALUES ' . join(",\n", map { "($_, $_, 'SRID=4326;" . as_text($asking[$_]) . "')" } 0 .. $#asking));

# What is wrong with an answer for a shape that asks; '' if nothing is.  @$near is the place of that shape.
sub problem_of_asking
{
	my ($asking, $case, $near, $answer) = @_;
	my $distance = $answer->{distance};
	my ($of_asking, $of_case) = map { my ($from, $to) = @$_;
		min(map { my ($kind, @vertices) = @$_; map { map { $_->{distance} } arcs_of({ parts => $to->{parts}, point => $_ }) } @vertices } @{ $from->{parts} }) }
	  [ $asking, $case ], [ $case, $asking ];
	my $least = min($of_asking, $of_case);

	return "the distance $distance instead of $least" if $distance > 0 ? abs($least - $distance) > 1e-6 + 1e-13 * $radius : 0;
	return "side $answer->{side} where the shapes meet" if $distance == 0 && $answer->{side} !~ /^(on)?$/;
	my %placed = (%$case, point => $near);
	my $problem = problem(\%placed, $answer);
	$answer->{how} = $distance > 0 ? ($of_asking < $of_case ? 'a vertex asks, ' : 'an arc asks, ') . $placed{how} : 'meeting';
	return $problem;
}

my (%wrong, %how);
foreach (split(/\n/, $node->safe_psql('postgres', q{SELECT * FROM geonn_nearest('asking', 'shape', by => '{pair}', options => '{"obs_shape": "g", "ref_shape": "g"}',
	row_type => NULL::record) AS n (obs_id integer, obs_near_lat float8, obs_near_lon float8, distance float8, ref_segment integer, ref_side text, ref_measure float8)})))
{
	my ($id, $lat, $lon, %answer);

	($id, $lat, $lon, @answer{qw(distance segment side measure)}) = split(/\|/, $_, -1);
	my $problem = problem_of_asking($asking[$id], $cases[$id], [ $lat, $lon ], \%answer);
	$wrong{$id} = $problem if $problem ne '';
	$how{ $answer{how} // 'wrong' }++;
}
note(join('; ', map { "$_: $how{$_}" } sort keys %how));
is(sum(values %how), scalar(@asking), "seed $seed: each shape that asks has its shape");
is(join("\n", map { "$_: $wrong{$_}, " . as_text($asking[$_]) . " of $texts[$_]" } (sort { $a <=> $b } keys %wrong)[ 0 .. min(4, keys(%wrong) - 1) ]),
	'', "seed $seed: arcs, sides and measures of shapes that ask are those of other formulas");
cmp_ok(min(map { $how{$_} // 0 } 'a vertex asks, between left', 'a vertex asks, between right', 'an arc asks, begin left', 'an arc asks, begin right', 'meeting'),
	'>', 5, "seed $seed: vertices and arcs that ask lie on both sides, and some shapes meet");
done_testing();
