# Why a call reads its references, when it does: EXPLAIN says it with what they would take and the limit, for points and shapes
# alike, and the server's log has a line of it, once for each table and kind of question.
# Lines and polygons take at most 96 bytes for each of their vertices.
#
# needs: postgis
# rooms: pages join

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('not_kept', preload => 1, conf => "autovacuum = off\nmax_parallel_workers_per_gather = 0\ngeonn.kept_memory_limit = '1MB'");

$node->safe_psql('postgres', q{
	CREATE EXTENSION postgis;
	CREATE TABLE obs AS SELECT i AS id, i * 7 % 170 - 85.0::float8 AS lat, i * 13 % 360 - 180.0::float8 AS lon FROM generate_series(1, 20) i;
	CREATE TABLE points AS SELECT i AS id, 80 * sin(i) AS lat, 170 * sin(i * 7.7) AS lon FROM generate_series(1, 30000) i;
	CREATE TABLE few AS SELECT i AS id, 80 * sin(i) AS lat, 170 * sin(i * 7.7) AS lon FROM generate_series(1, 30) i;
	-- 40,000 vertices or more in each: many corners, few corners, holes, lines of many and of two vertices
	CREATE FUNCTION ring(lat float8, lon float8, radius float8, corners integer) RETURNS geometry LANGUAGE sql AS $$
		SELECT ST_MakeLine(array_agg(ST_Point(lon + radius * cos(i % corners * 2 * pi() / corners), lat + radius * sin(i % corners * 2 * pi() / corners), 4326)
			ORDER BY i)) FROM generate_series(0, corners) i $$;
	CREATE TABLE large AS SELECT i AS id, ST_MakePolygon(ring(i * 10, i * 20, 4, 20000))::geography AS g FROM generate_series(1, 2) i;
	CREATE TABLE small AS SELECT i AS id, ST_MakePolygon(ring(70 * sin(i), 170 * sin(i * 7.7), 0.1, 4))::geography AS g FROM generate_series(1, 8000) i;
	CREATE TABLE holes AS SELECT i AS id, ST_MakePolygon(ring(70 * sin(i), 170 * sin(i * 7.7), 0.1, 8),
		ARRAY[ring(70 * sin(i), 170 * sin(i * 7.7), 0.01, 4)])::geography AS g FROM generate_series(1, 3000) i;
	CREATE TABLE lines AS SELECT i AS id, ring(70 * sin(i), 170 * sin(i * 7.7), 0.1, 99)::geography AS g FROM generate_series(1, 400) i;
	CREATE TABLE segments AS SELECT i AS id, ST_MakeLine(ST_Point(170 * sin(i * 7.7), 70 * sin(i), 4326), ST_Point(170 * sin(i * 7.7), 70 * sin(i) + 1, 4326))::geography AS g
		FROM generate_series(1, 20000) i;
	CREATE UNLOGGED TABLE unlogged AS TABLE few;
	CREATE TABLE parent AS TABLE few;
	CREATE TABLE child () INHERITS (parent);
	VACUUM ANALYZE;
});

my @shapes = qw(large small holes lines segments);
my $shapes = '^(?:' . join('|', @shapes) . ')$';

# what EXPLAIN shows of a search of such references: a table, one with shapes in column g, or a query
sub explain
{
	my ($references, %option) = @_;
	my $call = $references =~ / / ? "geonn_nearest_sql('TABLE obs', '$references')" :
		"geonn_nearest('obs', '$references'" . ($references =~ $shapes ? q{, options => '{"ref_shape": "g"}')} : ')');
	my ($status, $out, $error) = $node->psql('postgres',
		($option{before} // '') . "SET client_min_messages = log; EXPLAIN (ANALYZE, COSTS OFF, FORMAT " . ($option{format} // 'text') . ") SELECT count(*) FROM $call");

	ok($status == 0 && $error !~ /each call reads/, "$references: a client is not told what the log says") or diag($error);
	return $out;
}

sub limit
{
	my ($limit) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET geonn.kept_memory_limit = '$limit'");
	$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
	wait_until(sub { $node->safe_psql('postgres', 'SHOW geonn.kept_memory_limit') eq $limit }, "the limit is $limit");
}

# ---- too large ----

my $lines_of = sub { scalar(() = Geonn::slurp($node->logfile) =~ /each call reads the references of relation "$_[0]" anew: needs [\d.]+ MB, geonn\.kept_memory_limit is 1 MB/g) };
my %needed;

foreach my $table ('points', @shapes)
{
	foreach (1, 2)
	{
		my $shown = explain($table);

		like($shown, qr/References Kept: false \(needs \d(\.\d)? MB, geonn\.kept_memory_limit is 1 MB\)/, "$table: EXPLAIN has both figures");
		($needed{$table}) = $shown =~ /needs ([\d.]+) MB/;
	}
	is($lines_of->($table), 1, "$table: the log has one line of it");
}
my $json = explain('points', format => 'json');
like($json, qr/"References Kept": false,\s+"References Not Kept": "needs [\d.]+ MB, geonn\.kept_memory_limit is 1 MB"/, 'other formats keep the boolean value');
is($lines_of->('points'), 1, 'points: the log has one line still');

# ---- other reasons ----

like(explain('few'), qr/References Kept: false \(read now, [\d.]+ kB are kept for the next call\)/, 'a first call');
like(explain('few'), qr/References Kept: true$/m, 'the next one');
like(explain('SELECT id, lat, lon FROM points WHERE id < 9'), qr/References Kept: false \(they are not the rows of one table\)/, 'a query');
like(explain('parent'), qr/References Kept: false \(they are not the rows of one table\)/, 'two tables');
like(explain('unlogged'), qr/References Kept: false \(their table is being changed, or is temporary, unlogged/, 'an unlogged table');
like(explain('few', before => 'BEGIN; UPDATE few SET lat = lat + 1 WHERE id = 1; '), qr/References Kept: false \(their table is being changed/, 'a table that is being changed');
limit('0');
like(explain('few'), qr/References Kept: false \(geonn\.kept_memory_limit is 0\)/, 'no memory at all');

# ---- room for them: what was said is what they take ----

limit('64MB');
foreach my $table ('points', @shapes)
{
	my $before = status($node, 'kept_memory');

	like(explain($table), qr/References Kept: false \(read now/, "$table: now there is room");
	like(explain($table), qr/References Kept: true$/m, "$table: the next call finds it");
	my $kept = (status($node, 'kept_memory') - $before) / 1024 / 1024;

	ok(abs($kept - $needed{$table}) < 0.11, "$table: as much is kept as was needed") or diag("$kept MB, $needed{$table} MB");
	next if $table eq 'points';

	# but for what is rounded up to whole pages
	my $bytes = ($kept * 1024 * 1024 - 16384) / $node->safe_psql('postgres', "SELECT sum(ST_NPoints(g::geometry)) FROM $table");

	cmp_ok($bytes, '<=', 96, sprintf('%s: %.1f bytes a vertex', $table, $bytes));
}

# ---- DEBUG1 says which fate the references had, and which were tried before it ----

sub fates
{
	my (undef, undef, $said) = $node->psql('postgres', "SET client_min_messages = debug1; $_[0]");

	return join(', ', $said =~ /DEBUG:  the references of .*? are ((?:not )?(?:live|kept meanwhile|kept|counted|read)\b)/g);
}

my $read = 'not live, not kept, not counted, not kept meanwhile, read';
my $points = q{SELECT count(*) FROM geonn_nearest_points(ARRAY[1.0::float8], ARRAY[1.0::float8], 'fated')};
my $rows = q{SELECT count(*) FROM geonn_nearest('obs', 'fated')};

$node->safe_psql('postgres', 'CREATE TABLE fated AS TABLE points');
$node->safe_psql('postgres', 'VACUUM fated');
is(fates($rows), $read, 'rows: the first call reads');
is(fates($rows), 'not live, kept', 'and the next one finds what it has read');
is(fates($points), 'not live, kept', 'and so do points');
$node->safe_psql('postgres', 'UPDATE fated SET lat = lat WHERE id = 1');
is(fates($points), $read, 'points after a change: the engine reads');
is(fates($points), 'not live, not kept, counted', 'the second call makes a base');
is(fates($points), 'live', 'and a session that comes later has it');
is(fates($rows), 'not live, not kept, counted', 'few rows are answered by it, too');
is(fates(q{SELECT count(*) FROM geonn_nearest_sql('TABLE obs', 'SELECT id, lat, lon FROM fated WHERE id < 9')}), $read, 'a query: no other fate suits');
my (undef, undef, $why) = $node->psql('postgres', "SET client_min_messages = debug1; BEGIN ISOLATION LEVEL SERIALIZABLE; $points");
like($why, qr/the references of relation "fated" are not live: the transaction is serializable/, 'and why');

# a limit that changes is news
limit('1MB');
explain('large');
is($lines_of->('large'), 2, 'another limit: another line');

done_testing();
