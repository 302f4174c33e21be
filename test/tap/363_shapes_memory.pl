# Lines and polygons that ask count in geonn.session_memory_limit as long as the engine has a copy of them: one that does not fit
# is an error with what is needed and the limit, many that do not fit together are searched for a few at a time, with the same
# answers, and once they are answered, or after an error, or when a cursor is closed, they count no longer.
#
# needs: postgis
# rooms: client join points

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('shapes_memory', preload => 1);

# a large ring of 20,000 vertices takes 156 bytes a vertex in the engine, and 24 to 40 while the session reads it
$node->safe_psql('postgres', q{
	CREATE EXTENSION postgis;
	CREATE FUNCTION ring(x float8, y float8, size float8, vertices integer) RETURNS geography LANGUAGE sql AS $$
		SELECT ST_MakePolygon(ST_AddPoint(r, ST_StartPoint(r)))::geography
		FROM (SELECT ST_MakeLine(array_agg(ST_Point(x + size * cos(2 * pi() * i / vertices), y + size * sin(2 * pi() * i / vertices), 4326) ORDER BY i))
			FROM generate_series(1, vertices) i) l (r) $$;
	CREATE TABLE large AS SELECT 1 AS id, ring(10, 5, 3, 20000) AS g;
	CREATE TABLE small AS SELECT i AS id, ring(i % 10 * 3, i % 7 * 4, 1 + i % 3, 1500) AS g FROM generate_series(1, 60) i;
	CREATE TABLE wrong AS TABLE small;
	INSERT INTO wrong VALUES (61, 'LINESTRING(0 0, 180 0)');
	-- an arc of 10,000 km is 40 pieces, of 56 bytes
	CREATE TABLE long AS SELECT 1 AS id, ST_MakeLine(array_agg(ST_Point(i % 2 * 80, i * 0.01, 4326) ORDER BY i))::geography AS g FROM generate_series(1, 1000) i;
	CREATE TABLE ref AS SELECT i AS id, ring(i % 11 * 3, i % 13 * 2, 0.1, 8) AS g FROM generate_series(1, 100) i;
	CREATE TABLE expected AS SELECT obs_id, ref_id, distance FROM geonn_nearest('small', 'ref', k => 3)});

my $count = q{SELECT count(*) FROM geonn_nearest('%s', 'ref', k => 3)};
my $few = 'SELECT count(*), count(e) FROM geonn_nearest(\'small\', \'ref\', k => 3) n LEFT JOIN expected e USING (obs_id, ref_id, distance)';

# what psql answers, and says, in one session
sub session
{
	my (@statements) = @_;
	my ($status, $out, $error) = $node->psql('postgres', join(";\n", @statements) . ';', on_error_stop => 0);

	return ($out, $error);
}

# ---- one that does not fit ----

my ($out, $error) = session("SET geonn.session_memory_limit = '3MB'", sprintf($count, 'large'), sprintf($count, 'large'), $few);
my @needed = $error =~ /ERROR:  not enough memory for the shapes of relation "large": (\d+) kB needed so far, and geonn\.session_memory_limit is 3072 kB\nDETAIL:  Searching for shapes, this join has (\d+) kB; its references, other joins and cursors of this session have (\d+) kB\.\nHINT:  Divide large shapes, as ST_Subdivide does/g;
is(scalar @needed, 6, 'a shape that does not fit is an error with what is needed and the limit') or diag($error);
cmp_ok($needed[1], '>', 20000 * 180 / 1024, 'which has what the engine and the session take');
cmp_ok($needed[1], '<', 20000 * 230 / 1024, 'and no more');
cmp_ok($needed[0], '<=', $needed[1] + $needed[2], 'the sum is that of the DETAIL');
is("@needed[0 .. 2]", "@needed[3 .. 5]", 'it counts nothing once it has failed');
is($out, '180|180', 'and leaves room for those that fit');
(undef, $error) = session("SET geonn.session_memory_limit = '2MB'", sprintf($count, 'long'));
like($error, qr/not enough memory for the shapes of relation "long": \d+ kB needed so far/, 'the pieces of long arcs count');

# an error: PostgreSQL does not answer in the place of the engine, which is there
$node->safe_psql('postgres', 'ANALYZE large, ref');
($out, $error) = session("SET geonn.session_memory_limit = '3MB'; SET geonn.enable_sql_joins = on; SET enable_nestloop = off",
	'EXPLAIN SELECT FROM large l JOIN ref r ON ST_Intersects(l.g, r.g)', 'SELECT count(*) FROM large l JOIN ref r ON ST_Intersects(l.g, r.g)');
like($out, qr/geonn within join/, 'a join in PostGIS\'s words has the node');
like($error, qr/^\S*\s*ERROR:  not enough memory for the given shapes: \d+ kB needed so far, and geonn\.session_memory_limit is 3072 kB\nDETAIL:  Searching for shapes, this join has \d+ kB/,
	'and the same error');
$node->safe_psql('postgres', 'CREATE INDEX ON ref USING gist (g)');
($out, $error) = session("SET geonn.session_memory_limit = '3MB'; SET geonn.enable_sql_joins = on; SET enable_nestloop = off",
	'EXPLAIN SELECT FROM large l JOIN ref r ON ST_Intersects(l.g, r.g)', 'SELECT count(*) FROM large l JOIN ref r ON ST_Intersects(l.g, r.g)', 'SET geonn.enable_sql_joins = off', 'SELECT count(*) FROM large l JOIN ref r ON ST_Intersects(l.g, r.g)');
like($out, qr/geonn within join.*\n(\d+)\n\1$/s, 'where an index has the references of a row, PostgreSQL answers');
like($error, qr/^\S*\s*WARNING:  PostgreSQL's own plan answers rows of a join, one after the other, as geonn's engine cannot search: not enough memory for the given shapes/, 'and a warning says so');

# ---- those that fit ----

my $limit = $needed[0] + 100;
($out, $error) = session("SET geonn.session_memory_limit = '${limit}kB'", map { sprintf($count, 'large') } 1 .. 3);
is("$out$error", "3\n3\n3", 'a shape that fits does so again and again');

# 60 rings take 14 MB together, and one 300 kB
foreach my $batch_rows (0, 1, 4000)
{
	my $options = $batch_rows > 0 ? qq{, options => '{"batch_rows": $batch_rows}'} : '';

	($out, $error) = session("SET geonn.session_memory_limit = '700kB'", $few =~ s/k => 3/k => 3$options/r);
	is("$out$error", '180|180', "many that do not fit together have the same answers, batch_rows $batch_rows");
}
($out, $error) = session("SET geonn.session_memory_limit = '700kB'", 'SELECT count(*), count(e) FROM geonn_nearest_sql(\'SELECT * FROM small\', \'TABLE ref\', k => 3) n LEFT JOIN expected e USING (obs_id, ref_id, distance)');
is("$out$error", '180|180', 'also those of a query');

# ---- after an error of another kind, and in a cursor ----

($out, $error) = session("SET geonn.session_memory_limit = '${limit}kB'", sprintf($count, 'wrong'), sprintf($count, 'wrong'), sprintf($count, 'large'));
like($error, qr/ERROR:  vertices 1 and 2 of the shape of id 61 .* are antipodal.*ERROR:  vertices 1 and 2/s, 'an error of another kind');
is($out, '3', 'leaves nothing that counts');
($out, $error) = session("SET geonn.session_memory_limit = '${limit}kB'", 'BEGIN',
	q{DECLARE c CURSOR FOR SELECT obs_id FROM geonn_nearest('large', 'ref', k => 3)}, 'FETCH c', 'SAVEPOINT s', sprintf($count, 'large'), 'ROLLBACK TO s', 'CLOSE c', sprintf($count, 'large'));
like($error, qr/not enough memory for the shapes of relation "large".*other joins and cursors of this session have (\d+) kB/s, 'a cursor whose pairs have not all been taken counts');
is($out, "1\n3", 'and no more once it is closed');

$node->stop;
done_testing();
