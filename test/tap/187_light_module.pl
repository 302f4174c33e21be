
# A light module: a session that loads it maps no further library.  PROJ, and the forty
# libraries that PROJ needs, are mapped by the sessions that compute geodesics themselves, which
# have the very bytes that the engine has.
# rooms: src spheroid

use strict;
use warnings;

use File::Copy;
use Geonn;
use Test::More;

my ($installation, $program) = own_installation();
my $library = $program =~ s/-engine$/_spheroid.so/r;
my $node = new_server('light', install_path => $installation);

# which libraries this statement has its session map
sub maps_of
{
	my ($sql) = @_;
	my $libraries = q{SELECT string_agg(DISTINCT m[1], ' ' ORDER BY m[1])
		FROM regexp_matches(pg_read_file('/proc/self/maps'), '/([^/\n]*[.]so[^/\n]*)\n', 'g') m};
	# all but the last row is of the statement
	my @rows = split /\n/, $node->safe_psql('postgres', "$libraries; $sql; $libraries");
	my %before = map { $_ => 1 } split / /, $rows[0];

	return join(' ', grep { !$before{$_} } split / /, $rows[-1]);
}

my $types = 'CREATE TYPE answer AS (obs_id integer, ref_id integer, distance float8, bearing float8)';
my $pairs = q{SELECT %s FROM geonn_within('place', 'place', 3e7, metric => 'spheroid') n
	JOIN place o ON o.id = n.obs_id JOIN place r ON r.id = n.ref_id};

# points anywhere, and such as are hard: equal, near, at the poles and the antimeridian, and their antipodes
my $seed = 1 + int(rand(1e6));
note("seed $seed");
$node->safe_psql('postgres', qq{
	$types;
	CREATE TABLE place (id integer PRIMARY KEY, lat float8, lon float8);
	SELECT setseed(1.0 / $seed);
	INSERT INTO place SELECT i, degrees(asin(2 * random() - 1)), 360 * random() - 180 FROM generate_series(1, 100) i;
	INSERT INTO place VALUES (101, 90, 0), (102, 90, 77), (103, -90, 0), (104, 0, 180), (105, 0, -180), (106, -0.0, 360), (107, 0, 0);
	INSERT INTO place SELECT 200 + id, -lat, CASE WHEN lon > 0 THEN lon - 180 ELSE lon + 180 END FROM place WHERE id <= 107;
	INSERT INTO place SELECT 400 + id, lat, lon FROM place WHERE id <= 20;
	INSERT INTO place SELECT 500 + id, greatest(-90, lat - 1e-9 * id), lon FROM place WHERE id BETWEEN 21 AND 107;
	INSERT INTO place SELECT 700 + id, -lat + 1e-7 * id, CASE WHEN lon > 0 THEN lon - 180 ELSE lon + 180 END FROM place WHERE id <= 100;
});

# ---- who maps what ----

is(maps_of(q{LOAD 'geonn'}), 'geonn.so', 'the module maps itself alone');
is(maps_of('SELECT geonn_distance(1, 2, 3, 4)'), 'geonn.so', 'so does a session that computes distances on the sphere');
is(maps_of("$small_search; SELECT * FROM geonn_check('few_obs'); TABLE geonn_devices; TABLE geonn_caches"),
	'geonn.so', 'and one that searches and looks');
is(maps_of(q{SELECT count(*) FROM geonn_nearest('few_obs', 'few_ref', k => 2, metric => 'spheroid')}),
	'geonn.so', 'and one whose joins order by geodesics, which the engine computes');
is(maps_of(q{SELECT geonn_cache_create('near', 'few_obs', 'few_ref'); UPDATE few_ref SET lat = lat + 1; CALL geonn_refresh('near')}),
	'geonn.so', 'and one that refreshes a cache');
like(maps_of(q{SELECT geonn_distance(1, 2, 3, 4, 'spheroid')}),
	qr/^geonn\.so geonn_spheroid\.so .*libproj\.so/, 'a session that computes a geodesic maps PROJ');
like(maps_of(q{SELECT bearing FROM geonn_nearest('few_obs', 'few_ref', metric => 'spheroid', row_type => NULL::answer)}),
	qr/geonn_spheroid\.so .*libproj\.so/, 'and so does one that has a geodesic\'s bearing');

# ---- the same bytes ----

cmp_ok($node->safe_psql('postgres', sprintf($pairs, 'count(*)')), '>=', 150000, 'many pairs are compared');
is($node->safe_psql('postgres', sprintf($pairs, "count(*) FILTER (WHERE float8send(n.distance) <> float8send(geonn_distance(o.lat, o.lon, r.lat, r.lon, 'spheroid')))")),
	0, 'session and engine compute the same geodesics, to the byte');

# ---- where the library is missing ----

my $expected = $node->safe_psql('postgres', $small_search);
rename($library, "$library.away") or die $!;
my ($status, undef, $error) = $node->psql('postgres', "SELECT geonn_distance(1, 2, 3, 4, 'spheroid')");
isnt($status, 0, 'without the library a geodesic is an error');
like($error, qr/could not access file "\Q$library\E"/, 'which names the file');
like($error, qr/HINT:  "make install" or the geonn package puts that library beside the module/, 'and says what to do');
is($node->safe_psql('postgres', $small_search), $expected, 'and nothing else');

# ---- where another version's is in its place ----

copy($program =~ s/geonn-engine$/plpgsql.so/r, $library) or die $!;
(undef, undef, $error) = $node->psql('postgres', "SELECT geonn_distance(1, 2, 3, 4, 'spheroid')");
like($error, qr/could not find function "geonn_spheroid_azimuth" in file "\Q$library\E".*HINT:  .*install geonn again/s,
	'a library without what the module needs is an error that names it and says what to do');
rename("$library.away", $library) or die $!;
is($node->safe_psql('postgres', q{SELECT geonn_distance(0, 0, 0, 0, 'spheroid')}), 0, 'with it, the next one works');

done_testing();
