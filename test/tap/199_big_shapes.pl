# Lines and polygons of very many vertices: a join has the answers of geonn_distance, its memory stays within
# geonn.session_memory_limit, and it ends soon when it is cancelled, whether the session reads the shapes or the
# engine checks, sorts or searches them.
#
# How soon that is, the work of the session and of the engine says, so that the time of a busy host does not count.
#
# GEONN_BIG_SHAPE is the number of vertices, 200,000 unless it says otherwise; 10,000,000 take minutes.
#
# needs: postgis
# rooms: points join engine/cpu/arcs engine/shapes engine/dataset
# check-all: shapes of very many vertices

use strict;
use warnings;

use Geonn;
use POSIX ();
use Test::More;

my $vertices = $ENV{GEONN_BIG_SHAPE} // 200_000;

# kB that an engine takes for a vertex of many with its index, and of a session for reading a vertex, as they are counted
my $needed = int($vertices * (93 + 24) / 1024);

my $node = new_server('big_shapes', preload => 1, slow => 1);

$node->safe_psql(
	'postgres', qq{
	CREATE EXTENSION postgis;
	CREATE TABLE big (id bigint PRIMARY KEY, g geography);
	ALTER TABLE big ALTER g SET STORAGE EXTERNAL;
	-- a line around the globe, a ring around the Gulf of Guinea, both ragged, and as many vertices in shapes of four
	INSERT INTO big
	SELECT 1, ST_MakeLine(array_agg(ST_Point(-170 + 340.0 * i / $vertices, 60 * sin(i * 30.0 / $vertices) + 1e-4 * sin(i), 4326) ORDER BY i))
	FROM generate_series(1, $vertices) i;
	INSERT INTO big
	SELECT 2, ST_MakePolygon(ST_AddPoint(ring, ST_StartPoint(ring)))
	FROM (SELECT ST_MakeLine(array_agg(ST_Point(10 + 30 * cos(angle), 5 + 30 * sin(angle) + 1e-4 * sin(i), 4326) ORDER BY i))
	      FROM (SELECT i, i * 2 * pi() / $vertices FROM generate_series(1, $vertices) i) a (i, angle)) r (ring);
	CREATE TABLE small (id bigint PRIMARY KEY, g geography);
	INSERT INTO small
	SELECT i, ST_MakeLine(ARRAY[ST_Point(x, y, 4326), ST_Point(x + 0.01, y, 4326), ST_Point(x + 0.01, y + 0.01, 4326), ST_Point(x, y + 0.01, 4326)])
	FROM (SELECT i, 300.0 * i / $vertices, 60 * sin(i) FROM generate_series(1, $vertices / 4) i) s (i, x, y);
	CREATE TABLE near AS SELECT i AS id, 80 * sin(i) AS lat, 170 * cos(i * 7) AS lon FROM generate_series(1, 24) i;
	-- from each of 40 places to the next and back again and again, as a line and as a ring that lies in no hemisphere and goes around once
	CREATE TABLE endless (id bigint PRIMARY KEY, g geography);
	ALTER TABLE endless ALTER g SET STORAGE EXTERNAL;
	INSERT INTO endless
	WITH place AS (
		SELECT i, encode(substr(ST_AsBinary(ST_Point(9 * i - 180, 20 + 40 * sin(i * pi() / 10))), 6), 'hex') AS body FROM generate_series(0, 39) i)
	SELECT id, ST_GeomFromWKB(decode(head || bodies || (SELECT body FROM place WHERE i = 0), 'hex'), 4326)
	FROM (SELECT string_agg(repeat(a.body || b.body, 4000000 / 80), '' ORDER BY a.i) FROM place a JOIN place b ON b.i = (a.i + 1) % 40) p (bodies),
	     (VALUES (1, '010200000001093d00'), (2, '01030000000100000001093d00')) s (id, head);
});

my $options = q{options => '{"ref_shape": "g", "algorithm": "index"}'};

# ---- memory ----

my ($status, undef, $error) = $node->psql('postgres', "SET geonn.session_memory_limit = '1MB'; SELECT count(*) FROM geonn_nearest('near', 'big', $options)");
like($error, qr/not enough memory for the references of relation "big": \d+ kB needed so far, and geonn\.session_memory_limit is 1024 kB.*Reading their shapes, this join has \d+ kB/s,
	'a limit that reading a shape exceeds is named with what is needed');
($status, undef, $error) = $node->psql('postgres', "SET geonn.session_memory_limit = '${needed}kB'; SELECT count(*) FROM geonn_nearest('near', 'big', $options)");
like($error, qr/: \d+ kB needed so far, and geonn\.session_memory_limit is $needed kB/, 'and so is one that the second shape exceeds');

# ---- answers ----

foreach my $table (qw(big small))
{
	is( $node->safe_psql(
			'postgres', qq{
			SELECT count(*), count(*) FILTER (WHERE j.distance = d.distance AND j.ref_id = d.id)
			FROM geonn_nearest('near', '$table', $options) j JOIN near o ON o.id = j.obs_id
			CROSS JOIN LATERAL (SELECT r.id, geonn_distance(o.lat, o.lon, r.g) AS distance FROM $table r ORDER BY distance, id LIMIT 1) d}),
		'24|24', "$vertices vertices of $table shapes: all answers are those of geonn_distance");
}

# ---- cancelled ----

my $engine = status($node, 'engine_pid');

# Cancel a join of endless shape $id when the session and the engine have worked for so many seconds; what both work
# after that, the session until its next statement.
sub work_when_cancelled
{
	my ($id, $after) = @_;
	my $search = start_sql($node, qq{\\set ON_ERROR_STOP 0
		SELECT count(*) FROM geonn_nearest_sql('TABLE many_obs', 'SELECT id, g FROM endless WHERE id = $id', options => '{"ref_shape": "g"}');
		SELECT pg_read_file('/proc/self/stat');});
	my $backend;

	wait_until(sub { ($backend = backend_of($node)) ne '' }, 'a join begins');
	my $begin = work_of($backend) + work_of($engine);
	wait_until(sub { work_of($backend) + work_of($engine) - $begin >= $after }, "and works for $after s");
	my $phase = $node->safe_psql('postgres', "SELECT string_agg(phase, ', ') FROM geonn_stat_progress");
	my ($of_backend, $of_engine) = map { work_of($_) } $backend, $engine;
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($backend)");
	my (undef, $stat, $said) = finish_sql($search);
	wait_until(sub { status($node, 'searches') == 0 && status($node, 'sessions') == 0 }, 'the engine drops the search');
	like($said, qr/canceling statement due to user request/, "shape $id: the join says that it was cancelled");

	my @fields = split(/ /, $stat =~ s/^.*\) //sr);
	my $worked = ($fields[11] + $fields[12]) / POSIX::sysconf(POSIX::_SC_CLK_TCK()) - $of_backend + work_of($engine) - $of_engine;
	note("shape $id, cancelled after $after s, $phase: $worked s more");
	return $worked;
}

# a ring takes longer to read, and to build
my %moments = (1 => [ 0.3, 1, 1.7, 2.5 ], 2 => [ 0.3, 1.5, 2.5, 4 ]);
foreach my $id (1, 2)
{
	my @seconds = map { work_when_cancelled($id, $_) } @{ $moments{$id} };

	cmp_ok(median(@seconds), '<', 0.4, "shape $id: session and engine work in a median of four for less than 0.4 s after that");
	cmp_ok((sort { $a <=> $b } @seconds)[-1], '<', 0.8, "shape $id: never for 0.8 s");
}

done_testing();
