
# Values of all kinds, nested in collections, with Z and M and with empty members, as WKB brings them: the reader finds in
# each what PostGIS's ST_Dump finds in it.
#
# needs: postgis
# rooms: points join

use strict;
use warnings;

use Geonn;
use Test::More;

my $seed = $ENV{GEONN_SEED} // int(rand(1 << 30));
diag("seed $seed");
srand($seed);

# ---- random WKB ----

my @dimensions = (0, 1000, 2000, 3000);
my %numbers = (0 => 2, 1000 => 3, 2000 => 3, 3000 => 4);

sub number { return rand() < 0.05 ? (0, 90, -90, 180, -180, 179.5)[ rand 6 ] : int(rand(1000)) / 10 - 50 }

sub vertex
{
	my ($kind) = @_;
	my $latitude = number();

	$latitude = 90 if abs($latitude) > 90;
	return pack('d*', number(), $latitude, map { int(rand(100)) } 3 .. $numbers{$kind});
}

sub begin
{
	my ($type, $kind) = @_;

	# either order of bytes would do; this host's suits pack
	return pack('CL', 1, $type + $kind);
}

# some of the members of each collection are empty
sub geometry
{
	my ($type, $kind, $depth) = @_;
	my $head = begin($type, $kind);
	my $is_empty = rand() < 0.2;

	return $head . ($is_empty ? pack('d*', ('nan') x $numbers{$kind}) : vertex($kind)) if $type == 1;
	return $head . pack('L', 0) if $is_empty;
	if ($type == 2)
	{
		my $count = 2 + int(rand(4));

		return $head . pack('L', $count) . join('', map { vertex($kind) } 1 .. $count);
	}
	if ($type == 3)
	{
		my $rings = 1 + int(rand(3));
		my ($x, $y) = (int(rand(80)) - 40, int(rand(80)) - 40);

		return $head . pack('L', $rings) . join('', map {
			my $size = 9 / $_;
			my @corners = map { pack('d*', @$_, (5) x ($numbers{$kind} - 2)) } ([ $x, $y ], [ $x + $size, $y ], [ $x + $size, $y + $size ], [ $x, $y ]);
			pack('L', 4) . join('', @corners)
		} 1 .. $rings);
	}
	my $members = 1 + int(rand(4));

	return $head . pack('L', $members) . join('', map {
		geometry($type < 7 ? $type - 3 : 1 + int(rand($depth < 6 ? 7 : 3)), $kind, $depth + 1)
	} 1 .. $members);
}

my $node = new_server('mixed');
my @values = map { unpack('H*', geometry(1 + $_ % 7, $dimensions[ rand 4 ], 0)) } 1 .. 1500;

$node->safe_psql('postgres', 'CREATE EXTENSION postgis; CREATE TABLE wkb (id bigserial PRIMARY KEY, wkb text)');
$node->safe_psql('postgres', "INSERT INTO wkb (wkb) VALUES " . join(', ', map { "('$_')" } @values));
$node->safe_psql(
	'postgres', q{
	CREATE TABLE plain AS SELECT id, ST_GeomFromWKB(decode(wkb, 'hex'), 4326) AS g FROM wkb;
	CREATE TABLE place AS SELECT i AS id, i * 37 % 170 - 85 AS lat, i * 71 % 350 - 175 AS lon FROM generate_series(1, 40) i;
	-- lines with antipodal neighbours are an error, whichever way they are read
	CREATE FUNCTION measured(lat float8, lon float8, g geometry) RETURNS float8 LANGUAGE plpgsql AS $$
	BEGIN
		RETURN geonn_distance(lat, lon, g);
	EXCEPTION WHEN invalid_parameter_value THEN
		RETURN -1;
	END $$;
	DELETE FROM plain WHERE measured(0, 0, g) < 0;
	CREATE TABLE dumped AS SELECT id, (ST_Dump(g)).geom AS g FROM plain;
	CREATE TABLE pair AS SELECT p.id AS obs_id, r.id AS ref_id, geonn_distance(lat, lon, g) AS distance FROM place p, plain r;
});

sub ask { return $node->safe_psql('postgres', $_[0]) }

is(ask(q{SELECT count(*) > 1300, count(*) FILTER (WHERE ST_NDims(g) > 2) > 500, count(*) FILTER (WHERE ST_IsEmpty(g)) BETWEEN 50 AND 700 FROM plain}), 't|t|t', 'values of all kinds');
is(ask(q{SELECT count(*) FROM pair WHERE (distance IS NULL) <> (SELECT ST_IsEmpty(g) FROM plain WHERE id = ref_id)}), 0, 'empty values alone have no distance');
# rings of a polygon belong together, and members do not
is(ask(q{SELECT count(*) FROM pair FULL JOIN (SELECT p.id AS obs_id, r.id AS ref_id, min(geonn_distance(lat, lon, g)) AS least FROM place p, dumped r GROUP BY 1, 2) d USING (obs_id, ref_id)
	WHERE distance IS DISTINCT FROM least}), 0, 'the distance of a value is the least of its members');
foreach my $type ('geometry', 'geography')
{
	my $references = "SELECT id, g::$type AS g FROM plain";

	is(ask(qq{WITH a AS MATERIALIZED (SELECT obs_id, ref_id, distance FROM geonn_nearest_sql('TABLE place', '$references', k => 5)),
		b AS MATERIALIZED (SELECT p.id, n.ref_id, n.distance FROM place p, LATERAL (SELECT * FROM pair WHERE obs_id = p.id AND distance IS NOT NULL ORDER BY distance, ref_id LIMIT 5) n)
		SELECT count(*), (SELECT count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) d) FROM a}), '200|0', "a join of $type finds the nearest");
}
is(ask(q{SELECT rows = (SELECT count(*) FROM plain) AND null_coordinates = e AND empty_shapes = e AND curved_shapes + invalid_shapes = 0
	FROM geonn_check('plain'), (SELECT count(*) FROM plain WHERE ST_IsEmpty(g)) s (e)}), 't', 'geonn_check counts the empty ones');

done_testing();
