
# Joins by PostGIS's ST_Covers, ST_CoveredBy, ST_Intersects, ST_DWithin and ST_Distance with a limit, of points, lines and polygons, have the
# rows that they have without geonn, but for those where PostGIS errs: each pair that only one of them has is measured again with 50 digits, and is
# geonn's if it should be a row, and PostGIS's if not.  Left, semi and anti joins, LATERAL, prepared statements, workers and policies have the rows
# that follow from the pairs.  Empty members of a value make no difference.  The nearest polygons by <-> are the nearest by geonn_distance().  The last tests show PostGIS's ticket 5895.
#
# short form: 12 of 500 statements
# needs: postgis
# rooms: sql

use strict;
use warnings;

use Geonn;
use List::Util qw(max);
use Math::BigFloat;
use Test::More;

my $statements = $ENV{GEONN_SQL_STATEMENTS} // ($ENV{GEONN_LONG} ? 500 : 12);
my $seed = $ENV{GEONN_SQL_SEED} // int(rand(1_000_000));

note("seed: GEONN_SQL_SEED=$seed");
srand($seed);

my $node = new_server('sql_shapes', preload => 1, conf => "statement_timeout = '300s'\njit = off");

# ---- distances with 50 digits, of which nothing is shared with src ----

my $sphere = Math::BigFloat->new('6371008.77141505950');
my $to_radians = Math::BigFloat->bpi(60)->bdiv(180, 60);
my %shapes;

sub number { return Math::BigFloat->new($_[0], 50); }

sub vector
{
	my ($longitude, $latitude) = map { number($_)->bmul($to_radians)->bround(50) } @_;
	my $cosine = $latitude->copy->bcos(50);

	return [ $cosine * $longitude->copy->bcos(50), $cosine * $longitude->copy->bsin(50), $latitude->copy->bsin(50) ];
}

sub dot { my ($u, $v) = @_; return ($u->[0] * $v->[0] + $u->[1] * $v->[1] + $u->[2] * $v->[2])->bround(50); }

sub cross
{
	my ($u, $v) = @_;

	return [ map { ($u->[ ($_ + 1) % 3 ] * $v->[ ($_ + 2) % 3 ] - $u->[ ($_ + 2) % 3 ] * $v->[ ($_ + 1) % 3 ])->bround(50) } 0 .. 2 ];
}

sub norm { return dot($_[0], $_[0])->bsqrt(50); }

sub angle { my ($u, $v) = @_; return norm(cross($u, $v))->batan2(dot($u, $v), 50); }

sub angle_to_arc
{
	my ($p, $a, $b) = @_;
	my $n = cross($a, $b);

	if (!norm($n)->is_zero && dot(cross($n, $a), $p) >= 0 && dot(cross($b, $n), $p) >= 0)
	{
		return dot($n, $p)->babs->batan2(norm(cross($n, $p)), 50);
	}
	my ($one, $other) = (angle($p, $a), angle($p, $b));

	return $one < $other ? $one : $other;
}

sub side { my ($a, $b, $c) = @_; return dot(cross($a, $b), $c)->sign eq '-' ? -1 : 1; }

# do the arcs from p to q and from a to b cross?
sub crosses
{
	my ($p, $q, $a, $b) = @_;
	my $side = side($p, $b, $a);

	return side($b, $q, $p) == $side && side($q, $a, $b) == $side && side($a, $p, $q) == $side;
}

# the parts of a shape of a table: [ is a polygon, its lines or rings ]
sub parts_of
{
	my ($table, $id) = @_;

	return $shapes{"$table $id"} //= do
	{
		my %parts;

		for (split("\n", $node->safe_psql('postgres', qq{
			SELECT d.path::text, ST_Dimension(d.geom), coalesce(p.path[array_length(p.path, 1) - 1], 0), ST_X(p.geom), ST_Y(p.geom)
			FROM $table r, ST_Dump(g::geometry) WITH ORDINALITY d (path, geom, o), ST_DumpPoints(d.geom) WITH ORDINALITY p (path, geom, o) WHERE r.id = $id ORDER BY d.o, p.o})))
		{
			my ($part, $dimension, $ring, @place) = split(/\|/);

			$parts{$part}[0] = $dimension == 2;
			push @{ $parts{$part}[1]{$ring} }, vector(@place);
		}
		[ values %parts ];
	};
}

# metres from a point to a shape; 0 inside of a polygon of less than half the Earth
sub metres_of_point
{
	my ($p, $parts) = @_;
	my $least;

	for my $part (@$parts)
	{
		my ($is_area, $chains) = @$part;
		my @chains = values %$chains;
		my $first = $chains->{ (sort keys %$chains)[0] };
		my $outside = [ map { my $i = $_; my $sum = number(0); $sum -= $_->[$i] for @$first; $sum } 0 .. 2 ];
		my $crossings = 0;

		for my $chain (@chains)
		{
			for my $i (1 .. max(1, $#$chain))
			{
				my ($a, $b) = ($chain->[ $i - 1 ], $chain->[ $i > $#$chain ? 0 : $i ]);
				my $angle = angle_to_arc($p, $a, $b);

				$least = $angle if !defined $least || $angle < $least;
				$crossings++ if $is_area && crosses($p, $outside, $a, $b);
			}
		}
		return 0 if $crossings % 2 == 1;
	}
	return 0 + ($least * $sphere)->bround(30)->bstr;
}

# metres between two shapes
sub metres
{
	my ($one, $other) = @_;
	my $least;

	for my $pair ([ $one, $other ], [ $other, $one ])
	{
		for my $vertex (map { map { @$_ } values %{ $_->[1] } } @{ $pair->[0] })
		{
			my $metres = metres_of_point($vertex, $pair->[1]);

			$least = $metres if !defined $least || $metres < $least;
		}
	}
	for my $chain (map { values %{ $_->[1] } } @$one)
	{
		for my $i (1 .. $#$chain)
		{
			for my $against (map { values %{ $_->[1] } } @$other)
			{
				$least = 0 if grep { crosses($chain->[ $i - 1 ], $chain->[$i], $against->[ $_ - 1 ], $against->[$_]) } 1 .. $#$against;
			}
		}
	}
	return $least;
}

# ---- tables ----

sub degrees { return "ST_SetSRID(ST_MakePoint($_[0], greatest(-90, least(90, $_[1]))), 4326)"; }

my $start = degrees('x', 'y');
my $line = qq{CASE form
	WHEN 1 THEN ST_MakeLine(${\degrees('20 + a * 2e-5', '10 + b * 2e-5')}, ${\degrees('20 + a * 2e-5 + (c - 0.5) * size', '10 + b * 2e-5 + (d - 0.5) * size')})
	WHEN 2 THEN ST_MakeLine(ARRAY[${\degrees('x', 'sign(y) * (90 - b * b * 5)')}, ${\degrees('x * c', 'sign(y) * (90 - d * 5)')}, ${\degrees('a * 360 - 180', 'sign(y) * 87')}])
	WHEN 3 THEN ST_MakeLine($start, ${\degrees('x * 0.8', '-y')})
	WHEN 4 THEN ST_MakeLine(${\degrees('180 - a * size', 'y')}, ${\degrees('-180 + b * size', 'y * 0.999 + c * size')})
	ELSE ST_MakeLine(ARRAY[$start, ${\degrees('x * 0.9999', 'y + a * 0.05')}, ${\degrees('x * 0.9998', 'y * 0.9999 - b * 0.05')}]) END};

# a ring of so many corners around a place, in metres
my $polygon = q{(SELECT ST_SetSRID(ST_MakePolygon(ST_AddPoint(l, ST_StartPoint(l)), CASE WHEN c > 0.5 THEN ARRAY[ST_AddPoint(h, ST_StartPoint(h))] END), 4326) FROM (SELECT
	ST_MakeLine(ST_Project(place, metres * (0.6 + 0.4 * abs(sin(id * i))), 2 * pi() * i / corners)::geometry ORDER BY i) AS l, ST_MakeLine(ST_Project(place, metres * 0.2, 2 * pi() * i / corners)::geometry ORDER BY i) AS h
	FROM generate_series(1, corners) i) x)};

$node->safe_psql('postgres', qq{
	SET client_min_messages = error;
	CREATE EXTENSION postgis;
	CREATE EXTENSION IF NOT EXISTS geonn;
	SELECT setseed($seed / 1e6);
	CREATE FUNCTION numbers(integer) RETURNS TABLE (id integer, form integer, x float8, y float8, a float8, b float8, c float8, d float8, size float8) LANGUAGE sql
		AS 'SELECT i, (random() * 9)::integer, random() * 350 - 175, random() * 170 - 85, random(), random(), random(), random(), 10 ^ (-3 - random() * 6) FROM generate_series(1, \$1) i';
	CREATE TABLE lines AS SELECT id, id % 7 AS kind, ($line)::geography(LineString) AS g FROM numbers(150);
	CREATE TABLE zones AS SELECT id, id % 7 AS kind, $polygon\::geography(Polygon) AS g
		FROM (SELECT *, ${\degrees('CASE WHEN form = 1 THEN 180 WHEN form < 4 THEN 20 + a ELSE x END', 'CASE WHEN form < 4 THEN 10 + b WHEN form = 4 THEN sign(y) * (90 - d) ELSE y END')}::geography AS place,
			10 ^ (1 + b * 5.3) AS metres, 3 + (d * 12)::integer AS corners FROM numbers(150)) n;
	CREATE TABLE several AS SELECT a.id, a.kind, ST_Multi(ST_Collect(a.g::geometry, b.g::geometry))::geometry(MultiPolygon, 4326) AS g FROM zones a JOIN zones b ON b.id = a.id + 3 AND NOT ST_Intersects(a.g, b.g);
	CREATE TABLE mixed (id integer, kind integer, g geography);
	INSERT INTO mixed SELECT id, kind, g FROM lines UNION ALL SELECT id + 1000, kind, g FROM zones UNION ALL SELECT id + 2000, kind, ST_StartPoint(g::geometry)::geography FROM lines WHERE id < 60
		UNION ALL SELECT id + 3000, kind, ST_Multi(ST_Points(g::geometry))::geography FROM lines WHERE id < 60;
	INSERT INTO mixed VALUES (5000, 1, NULL), (5001, 1, 'POLYGON EMPTY'), (5002, 1, 'LINESTRING(0 0, 179.99 0)'), (5003, 1, 'GEOMETRYCOLLECTION(POINT(20 10), LINESTRING(20 10, 21 11))'),
		(5004, 1, 'POLYGON((0 0, 90 0, 180 0, -90 0, 0 0))');
	CREATE TABLE o AS SELECT id, id % 5 AS kind, CASE WHEN form < 5 THEN ${\degrees('20 + a * 1.2', '10 + b * 1.2')} WHEN form = 5 THEN ${\degrees('x', 'sign(y) * (90 - d * d)')} ELSE $start END::geography(Point) AS g FROM numbers(300);
	INSERT INTO o SELECT id + 1000, kind, ST_StartPoint(g::geometry)::geography FROM lines WHERE id % 5 = 1;
	INSERT INTO o SELECT id + 2000, kind, ST_PointN(ST_ExteriorRing(g::geometry), 2)::geography FROM zones WHERE id % 5 = 2;
	INSERT INTO o SELECT id + 3000, kind, ST_LineInterpolatePoint(ST_ExteriorRing(g::geometry), 0.3)::geography FROM zones WHERE id % 5 = 2;
	INSERT INTO o SELECT id + 4000, kind, ST_Project(ST_StartPoint(g::geometry)::geography, 500 * (1 + (id % 3 - 1) * 1e-6), id) FROM lines WHERE id % 5 = 3;
	INSERT INTO o VALUES (9000, 1, NULL), (9001, 1, 'POINT EMPTY');
	ALTER TABLE o ADD geom geometry(Point, 4326), ADD reach float8;
	UPDATE o SET geom = g::geometry, reach = CASE kind WHEN 1 THEN NULL WHEN 2 THEN 0 ELSE kind * 1e4 END;
	ANALYZE;
});

# ---- statements ----

my @wrong;
my $with_node = 0;
my $erring = 0;

# what must be true of a pair's distance on the sphere for it to be a row that only geonn has, or only PostGIS
sub is_right
{
	my ($metres, $limit, $is_spheroid, $is_row) = @_;

	return $is_row ? $metres <= 1e-8 || $metres * ($is_spheroid ? 1.0045 : 1) < $limit : $metres * ($is_spheroid ? 0.9944 : 1) > $limit;
}

for (1 .. $statements)
{
	my $outer = pick('o', 'o', 'lines', 'zones', 'several');
	my $table = $outer eq 'o' ? pick('lines', 'zones', 'zones', 'several', 'mixed') : pick('o', 'o', 'zones', 'lines');
	my $reference = $table eq 'several' ? 'r.g::geography' : 'r.g';
	my $point = $outer eq 'several' ? 'o.g::geography' : $outer eq 'o' ? pick('o.g', 'o.geom::geography') : 'o.g';
	my $limit = pick(0, 1, 500, 1e5, 2e6);
	my $is_spheroid = 0;
	my $covers = $outer eq 'o' ? pick("ST_Covers($reference, $point)", "ST_CoveredBy($point, $reference)") : $table eq 'o' ? pick("ST_Covers($point, $reference)", "ST_CoveredBy($reference, $point)") : '';
	my $condition = pick($covers, $covers, "ST_Intersects($point, $reference)", "ST_Intersects($reference, $point)", '', '', '', '');

	if ($condition eq '')
	{
		my $use = pick('true', 'false', 'false');
		my $pair = pick("$point, $reference", "$reference, $point");

		$is_spheroid = $use eq 'true';
		$limit = 'o.reach' if $outer eq 'o' && rand() < 0.2;
		$condition = pick("ST_DWithin($pair, $limit, $use)", "ST_DWithin($pair, $limit, $use)", "ST_Distance($pair, $use) <= $limit", "ST_Distance($pair, $use) < $limit");
	}
	else
	{
		$limit = 0;
	}
	my $more = pick('', '', ' AND r.kind <> o.kind', ' AND r.id % 3 = 1');
	my $value = $limit eq 'o.reach' ? 'reach' : $limit;
	my $generic = $condition =~ s/\Q$limit\E/\$1/r;
	my %statement = (
		left => [ "SELECT o.id AS own, r.id AS ref FROM $outer o LEFT JOIN $table r ON $condition$more", "SELECT o.id, a.ref FROM $outer o LEFT JOIN a ON a.own = o.id" ],
		semi => [ "SELECT o.id AS own FROM $outer o WHERE EXISTS (SELECT FROM $table r WHERE $condition$more)", 'SELECT DISTINCT own FROM a' ],
		anti => [ "SELECT o.id AS own FROM $outer o WHERE NOT EXISTS (SELECT FROM $table r WHERE $condition$more)", "SELECT id FROM $outer EXCEPT ALL SELECT DISTINCT own FROM a" ],
		lateral => [ "SELECT o.id AS own, n.id AS ref FROM $outer o CROSS JOIN LATERAL (SELECT r.id FROM $table r WHERE $condition$more) n", 'SELECT own, ref FROM a' ]);
	my ($variant, $follows) = @{ $statement{ pick(keys %statement) } };
	my $inner = "SELECT o.id AS own, r.id AS ref FROM $outer o JOIN $table r ON $condition$more";
	my $prepared = $limit =~ /reach/ || $condition !~ /DWithin/ || rand() < 0.5 ? "CREATE TEMP TABLE c AS $variant;" :
		"SET plan_cache_mode = force_generic_plan; PREPARE s(float8) AS " . $variant =~ s/\Q$condition\E/$generic/r . "; CREATE TEMP TABLE c AS EXECUTE s($limit);";
	my $workers = pick(0, 0, 2);
	my $out = $node->safe_psql('postgres', qq{
		SET client_min_messages = error;
		SET enable_nestloop = off;
		SET max_parallel_workers_per_gather = 0;
		SET geonn.enable_sql_joins = on;
		CREATE TEMP TABLE a AS $inner;
		SET geonn.enable_sql_joins = off;
		CREATE TEMP TABLE b AS $inner;
		SET geonn.enable_sql_joins = on;
		SET max_parallel_workers_per_gather = $workers;
		SET parallel_setup_cost = 0;
		SET parallel_tuple_cost = 0;
		SET min_parallel_table_scan_size = 0;
		EXPLAIN $variant;
		$prepared
		SELECT 'differences: ' || count(*) FROM ((TABLE c EXCEPT ALL ($follows)) UNION ALL (($follows) EXCEPT ALL TABLE c)) x;
		SELECT 'pair', is_row, own, ref, $value FROM (SELECT true, * FROM (TABLE a EXCEPT ALL TABLE b) x UNION ALL SELECT false, * FROM (TABLE b EXCEPT ALL TABLE a) x) d (is_row, own, ref)
			JOIN $outer o ON o.id = own ORDER BY own, ref LIMIT 20;
	});

	$with_node++ if $out =~ /geonn within join/;
	push @wrong, "$variant does not follow from the pairs" if $out !~ /^differences: 0$/m;
	for ($out =~ /^pair\|(.*)$/mg)
	{
		my ($is_row, $own, $ref, $within) = split(/\|/);
		my $metres = metres(parts_of($outer, $own), parts_of($table, $ref));

		$erring++;
		push @wrong, "$inner: $own and $ref, $metres m" if !is_right($metres, $within, $is_spheroid, $is_row eq 't');
	}
}
is(join("\n", @wrong), '', "the rows of $statements random statements are those without geonn, but where PostGIS errs");
cmp_ok($with_node, '>', 0.4 * $statements, "many of them, $with_node, have the node");
note("PostGIS erred for $erring pairs");

# ---- the nearest ----

for my $table ('zones', 'several')
{
	my $reference = $table eq 'several' ? 'r.g::geography' : 'r.g';
	my $k = pick(1, 2, 5);
	my $query = "SELECT o.id, n.t FROM o CROSS JOIN LATERAL (SELECT r.id, geonn_distance(ST_Y(o.geom), ST_X(o.geom), $reference) AS t FROM $table r ORDER BY o.g <-> $reference LIMIT $k) n";
	my $out = $node->safe_psql('postgres', qq{
		SET enable_nestloop = off;
		SET geonn.enable_sql_joins = on;
		CREATE TEMP TABLE a AS $query;
		EXPLAIN $query;
		SELECT 'farther: ' || count(*) FROM (SELECT id, t, row_number() OVER (PARTITION BY id ORDER BY t) AS n FROM a) a
			FULL JOIN (SELECT o.id, t, row_number() OVER (PARTITION BY o.id ORDER BY t) AS n FROM o, $table r, LATERAL (SELECT geonn_distance(ST_Y(o.geom), ST_X(o.geom), $reference) AS t) t) b USING (id, n)
			WHERE n <= $k AND abs(a.t - b.t) > 1.3;
	});

	like($out, qr/geonn subquery join/, "the $k nearest of $table: the node");
	like($out, qr/^farther: 0$/m, 'has the nearest by geonn_distance(), but for a metre');
}

# ---- privileges, the order of arguments, what is left to PostgreSQL ----

$node->safe_psql('postgres', q{
	CREATE ROLE reader;
	GRANT SELECT ON o, zones TO reader;
	ALTER TABLE zones ENABLE ROW LEVEL SECURITY;
	CREATE POLICY but_two ON zones TO reader USING (kind <> 2);
	CREATE DOMAIN area AS geography(Polygon) CHECK (ST_NPoints(VALUE::geometry) > 3);
	CREATE DOMAIN place AS geography(Point);
	CREATE DOMAIN flat AS geometry(MultiPolygon, 4326);
	CREATE TABLE domain_zones AS SELECT id, kind, g::area AS g FROM zones;
	CREATE TABLE domain_several AS SELECT id, kind, g::flat AS g FROM several;
	CREATE TABLE domain_o AS SELECT id, kind, g::place AS g FROM o;
	CREATE TABLE plain_o (id integer, kind integer, g geography);
	INSERT INTO plain_o SELECT id, kind, g FROM o;
	ANALYZE domain_zones, domain_several, domain_o, plain_o;
});
is($node->safe_psql('postgres', q{
	SET ROLE reader;
	SET enable_nestloop = off;
	SET geonn.enable_sql_joins = on;
	SELECT count(*) > 0, count(*) FILTER (WHERE r.kind = 2) FROM o JOIN zones r ON ST_Covers(r.g, o.g)}), 't|0', 'a policy hides zones');
for my $case (
	[ 1, 'o JOIN zones r ON ST_Covers(r.g, o.g)' ],
	[ 1, 'zones r JOIN o ON ST_Covers(r.g, o.g)' ],
	[ 1, 'o JOIN lines r ON ST_Distance(r.g, o.g) < 100' ],
	[ 1, 'o JOIN mixed r ON ST_Intersects(r.g, o.g)' ],
	[ 1, 'zones z LEFT JOIN o r ON ST_Covers(z.g, r.g)' ],
	[ 1, 'zones z LEFT JOIN plain_o r ON ST_Covers(z.g, r.g)' ],
	[ 1, 'zones z LEFT JOIN plain_o r ON ST_CoveredBy(r.g, z.g)' ],
	[ 0, 'plain_o z LEFT JOIN plain_o r ON ST_Covers(z.g, r.g)', 'shapes that cover shapes' ],
	[ 0, 'zones z LEFT JOIN mixed r ON ST_Covers(z.g, r.g)', 'shapes that cover shapes' ],
	[ 1, 'domain_zones z LEFT JOIN domain_o r ON ST_Covers(z.g, r.g)' ],
	[ 1, 'domain_o o LEFT JOIN domain_several r ON ST_CoveredBy(o.g, r.g::geography)' ],
	[ 1, 'zones z JOIN zones r ON ST_Intersects(z.g, r.g)' ],
	[ 0, 'o LEFT JOIN zones r ON ST_Covers(o.g, r.g)', 'shapes that cover shapes' ],
	[ 0, 'zones z JOIN lines r ON ST_CoveredBy(r.g, z.g)', 'shapes that cover shapes' ],
	[ 0, 'o JOIN zones r ON ST_Covers(ST_Reverse(r.g::geometry)::geography, o.g)', 'do not say that they are points' ])
{
	my ($is_taken, $from, $reason) = @$case;
	my ($out, $said);

	$node->psql('postgres', "SET client_min_messages = debug1; SET enable_nestloop = off; SET geonn.enable_sql_joins = on; EXPLAIN SELECT r.id FROM $from", stdout => \$out, stderr => \$said);
	is($out =~ /geonn within join/ ? 1 : 0, $is_taken, "$from: " . ($is_taken ? 'taken' : 'left to PostgreSQL'));
	like($said, qr/leaves a join by st_cover\w+ to PostgreSQL: .*\Q$reason\E/, 'and DEBUG1 says why') if !$is_taken;
}
for my $query ('SELECT z.id, r.id FROM zones z LEFT JOIN o r ON ST_Covers(z.g, r.g)', 'SELECT o.id, r.id, r.g FROM o o LEFT JOIN several r ON ST_DWithin(o.g, r.g::geography, 1000)',
	'SELECT o.id, n.* FROM o o, LATERAL (SELECT r.id, r.g FROM zones r ORDER BY o.g <-> r.g, r.id LIMIT 2) n', 'SELECT o.id FROM o o WHERE NOT EXISTS (SELECT FROM zones r WHERE ST_Intersects(r.g, o.g) AND r.kind <> o.kind)')
{
	my ($of_types, $of_domains) = map { $node->safe_psql('postgres', "SET enable_nestloop = off; SET geonn.enable_sql_joins = on; EXPLAIN $_; SELECT 'rows:'; SELECT * FROM ($_) s ORDER BY s") =~ s/.*(geonn \w+ join).*^rows:$/$1/msr }
		$query, $query =~ s/\b(o|zones|several) ([orz])\b/domain_$1 $2/gr;

	like($of_types, qr/^geonn \w+ join/, $query);
	is($of_domains, $of_types, 'has the same plan and rows where columns are of domains');
}
$node->safe_psql('postgres', 'CREATE INDEX ON zones USING gist (g); CREATE UNIQUE INDEX ON o (id); ANALYZE zones, o');
unlike($node->safe_psql('postgres', 'SET geonn.enable_sql_joins = on; EXPLAIN SELECT r.id FROM o JOIN zones r ON ST_Covers(r.g, o.g) WHERE o.id = 7'), qr/geonn/,
	'one row stays with the GiST index');

# ---- borders ----

$node->safe_psql('postgres', q{
	CREATE TABLE holed AS SELECT 1 AS id, 'POLYGON((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 4 2, 4 4, 2 4, 2 2))'::geography(Polygon) AS g;
	CREATE TABLE edges AS SELECT 100 * x + y AS id, ST_SetSRID(ST_MakePoint(x, y), 4326)::geography(Point) AS g FROM generate_series(0, 10) x, generate_series(0, 10) y;
	-- vertices with two longitudes, and at a pole, which has any
	INSERT INTO holed VALUES (2, 'POLYGON((170 -10, -170 -10, -170 10, 170 10, 170 -10), (180 5, 176 4, 176 6, 180 5))'),
		(3, 'POLYGON((0 70, 120 70, -120 70, 0 70), (30 90, 10 85, 50 85, 30 90))');
	INSERT INTO edges VALUES (2001, 'POINT(-180 5)'), (2002, 'POINT(180 5)'), (2003, 'POINT(176 4)'), (2004, 'POINT(178 0)'), (2005, 'POINT(30 90)'),
		(2006, 'POINT(0 90)'), (2007, 'POINT(-77 90)'), (2008, 'POINT(10 85)'), (2009, 'POINT(200 80)');
	CREATE TABLE turned AS SELECT id, CASE WHEN ST_X(g::geometry) < 0 THEN ST_SetSRID(ST_MakePoint(ST_X(g::geometry) + 360, ST_Y(g::geometry)), 4326) ELSE g::geometry END AS g FROM edges;
	ANALYZE holed, edges, turned;
});
for my $from ('edges o JOIN holed r ON ST_Covers(r.g, o.g)', 'holed r LEFT JOIN edges o ON ST_CoveredBy(o.g, r.g)',
	'holed r LEFT JOIN turned o ON ST_Covers(r.g, o.g::geography)')
{
	my ($with, $without) = map { $node->safe_psql('postgres', "SET enable_nestloop = off; SET geonn.enable_sql_joins = $_; SELECT o.id, r.id FROM $from ORDER BY 1, 2") } qw(on off);

	is($with, $without, "$from: a border is PostGIS's");
	unlike($with, qr/^(202|200[1-35-8])\|/m, 'and the vertices of a hole are not covered');
	like($with, qr/^2004\|2\n2009\|3$/m, 'others are');
}

# ---- empty members, and collections ----

# half has the zones of whole, three of four in a collection or beside empty members, for which PostGIS's functions fail
$node->safe_psql('postgres', q{
	CREATE TABLE places AS SELECT i AS id, i % 5 AS kind, ST_MakePoint(i % 40 / 4., i / 40 / 4.)::geography(Point) AS g FROM generate_series(1, 1600) i;
	CREATE TABLE whole AS SELECT i AS id, i % 3 AS kind, ST_Multi(ST_MakeEnvelope(i % 10, i / 10, i % 10 + 0.7, i / 10 + 0.6, 4326)) AS zone FROM generate_series(0, 99) i;
	ALTER TABLE whole ALTER zone TYPE geometry(MultiPolygon, 4326), ADD g geography;
	UPDATE whole SET g = zone;
	CREATE TABLE half AS SELECT * FROM whole;
	ALTER TABLE half ALTER zone TYPE geometry(MultiPolygon, 4326);
	UPDATE half SET zone = ST_GeomFromText('SRID=4326;MULTIPOLYGON(EMPTY,' || substr(ST_AsText(zone), 14)) WHERE id % 2 = 0;
	UPDATE half SET g = CASE id % 4 WHEN 0 THEN zone::geography ELSE format(CASE id % 4 WHEN 1 THEN 'GEOMETRYCOLLECTION(%1$s)'
		ELSE 'GEOMETRYCOLLECTION(POINT EMPTY, GEOMETRYCOLLECTION(LINESTRING EMPTY, %1$s), POLYGON EMPTY)' END, ST_AsText(g))::geography END WHERE id % 4 < 3;
	CREATE TABLE plain (id integer, kind integer, g geography);
	INSERT INTO plain TABLE places;
	INSERT INTO plain SELECT 1600 + i, i, v::geography FROM unnest('{"POLYGON((0.1 0.1, 0.3 0.1, 0.3 0.3, 0.1 0.1))", "POLYGON((0.1 0.1, 0.3 0.1, 1.3 0.3, 0.1 0.1))", "POLYGON((-1 -1, 5 -1, 5 5, -1 5, -1 -1))",
		"LINESTRING(1.1 1.1, 1.2 1.3)", "LINESTRING(1.1 1.1, 1.9 1.3)", "MULTIPOINT(2.1 2.1, 2.2 2.3)", "MULTIPOINT(2.1 2.1, 2.9 2.3)", "POINT EMPTY", NULL, "GEOMETRYCOLLECTION(POINT(3.1 3.1))",
		"POINT(4.1 3.1)", "MULTIPOLYGON(((3.1 3.1, 3.2 3.1, 3.2 3.2, 3.1 3.1)), ((4.1 3.1, 4.2 3.1, 4.2 3.2, 4.1 3.1)))"}'::text[]) WITH ORDINALITY u (v, i);
	INSERT INTO whole VALUES (1000, 1, NULL, 'POINT(4.1 3.1)'), (1001, 2, NULL, 'LINESTRING(4 3, 5 4)');
	INSERT INTO half SELECT * FROM whole WHERE id > 999;
	ANALYZE places, whole, half, plain;
});
for my $query (
	(map { "SELECT o.id, r.id FROM places o JOIN ZONES r ON $_" } 'ST_Covers(r.g, o.g)', 'ST_CoveredBy(o.g, r.g)', 'ST_Intersects(r.g, o.g)', 'ST_DWithin(r.g, o.g, 16600)', 'ST_DWithin(o.g, r.zone::geography, 16600)',
		'ST_Distance(r.g, o.g) < 16600 AND r.kind <> o.kind', 'ST_DWithin(r.g, o.g, 16600, false)'),
	(map { "SELECT o.id, r.id FROM ZONES o LEFT JOIN places r ON $_" } 'ST_Covers(o.g, r.g)', 'ST_DWithin(o.g, r.g, 16600)', 'ST_Distance(o.zone::geography, r.g) < 16600 AND r.kind <> o.kind'),
	(map { "SELECT o.id, r.id FROM ZONES o LEFT JOIN plain r ON $_" } 'ST_Covers(o.g, r.g)', 'ST_CoveredBy(r.g, o.g) AND r.kind <> o.kind', 'ST_Covers(o.g, r.g) AND r.id > 1600'),
	'SELECT o.id FROM ZONES o WHERE NOT EXISTS (SELECT FROM plain r WHERE ST_Covers(o.g, r.g))', 'SELECT o.id FROM ZONES o WHERE EXISTS (SELECT FROM (SELECT * FROM plain WHERE id > 1600) r WHERE ST_Covers(o.g, r.g))',
	'SELECT o.id, r.id FROM ZONES o LEFT JOIN ZONES r ON ST_DWithin(o.g, r.g, 34000)', 'SELECT o.id FROM places o WHERE NOT EXISTS (SELECT FROM ZONES r WHERE ST_DWithin(r.g, o.g, 16600))',
	'SELECT o.id FROM ZONES o WHERE EXISTS (SELECT FROM places r WHERE ST_DWithin(o.g, r.g, 16600) AND r.kind <> o.kind)')
{
	my ($without, $with) = map { my ($setting, $table) = @$_;
		$node->safe_psql('postgres', "SET enable_nestloop = off; SET geonn.enable_sql_joins = $setting; SELECT * FROM (" . ($query =~ s/ZONES/$table/gr) . ') s ORDER BY s') } ([ 'off', 'whole' ], [ 'on', 'half' ]);

	is($with, $without, $query);
}
is($node->safe_psql('postgres', q{SET enable_nestloop = off; SET geonn.enable_sql_joins = on;
	SELECT count(*) > 0, count(*) FILTER (WHERE z.g::text <> s.g::text) FROM (SELECT r.id, r.g FROM places o JOIN half r ON ST_DWithin(o.g, r.g, 16600)) s JOIN half z USING (id)}), 't|0', 'and rows have them');

# ---- ticket 5895 ----

$node->safe_psql('postgres', q{
	CREATE TABLE slices AS SELECT i AS id, format('POLYGON((%1$s 0, %2$s 0, %2$s 30, %2$s 60, %1$s 90, %1$s 60, %1$s 30, %1$s 0))', i * 3 - 180, i * 3 - 177)::geography(Polygon) AS g FROM generate_series(0, 119) i;
	CREATE TABLE spots AS SELECT i AS id, ST_MakePoint(i * 137.507764 - 360 * floor(i * 137.507764 / 360) - 180, degrees(asin((i - 0.5) / 2000)))::geography(Point) AS g FROM generate_series(1, 2000) i;
	ANALYZE slices, spots;
});
for my $condition ('ST_Covers(r.g, o.g)', 'ST_CoveredBy(o.g, r.g)', 'ST_Intersects(o.g, r.g)', 'ST_DWithin(o.g, r.g, 0)', 'ST_Distance(o.g, r.g) <= 0')
{
	my ($plan, $counts) = split(/^rows:\n/m, $node->safe_psql('postgres', qq{
		SET enable_nestloop = off;
		SET geonn.enable_sql_joins = on;
		EXPLAIN SELECT count(*) FROM spots o JOIN slices r ON $condition;
		SELECT 'rows:';
		SELECT count(*), count(DISTINCT o.id) FROM spots o JOIN slices r ON $condition}));

	like($plan, qr/geonn within join/, "$condition: the node");
	is($counts, '2000|2000', 'each of 2,000 points is in one of the slices of the hemisphere');
}
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM spots o JOIN slices r ON ST_Covers(r.g, o.g)'), '>', 2000, 'where PostGIS finds some of them in others, too');

done_testing();
