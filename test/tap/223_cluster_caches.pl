
# A cache of clusters has the rows of geonn_cluster after each refresh, with the least id of a cluster's core points in place of its
# number, whatever came, moved and went; it writes only rows that differ. Privileges, names, errors, limits and cancels are as of
# other caches.
#
# The seed is the environment's SEED, else another one each day.
#
# rooms: cache join

use strict;
use warnings;

use Geonn;
use Test::More;

my $seed = $ENV{SEED} // int(time / 86400);
my $rounds = 25;
note("seed: $seed");
srand($seed);

my $node = new_server('cluster_caches', preload => 1, conf => "jit = off\nautovacuum = off\nmax_parallel_workers_per_gather = 0");

sub query
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

sub error_of
{
	my ($sql) = @_;
	my ($status, $output, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");

	return $error;
}

sub pick
{
	return $_[ rand @_ ];
}

# what the last run of a cache did
sub last_run
{
	my ($name, $columns) = @_;

	return query("SELECT $columns FROM geonn_cache_log WHERE name = '$name' ORDER BY started DESC LIMIT 1");
}

# ---- each refresh makes the rows of a call ----

# the caches: their relations, the arguments that a call has as well, their result types and what else they have
my %caches = (
	linked => [ 'point', 'radius => 900, min_points => 1', 'geonn_clustered', '' ],
	crowded => [ 'point', q{radius => 1500, min_points => 4, by => '{k}'}, 'geonn_clustered', q{, replace => 'never'} ],
	seen => [ 'named', q{radius => 2500, min_points => 3, overlaps => '{w}'}, 'geonn_clustered_text', '' ],
	coded => [ 'point_code', q{radius => 1200, min_points => 2, metric => 'spheroid', options => '{"id": "code"}'}, 'geonn_clustered_uuid', '' ],
	replaced => [ 'point', 'radius => 1200, min_points => 3', 'geonn_clustered', q{, replace => 'always'} ]);
my $place = '10 + random() / 5, 20 + random() / 5, nullif((random() * 3)::integer, 3), int4range(low, low + (random() * 9)::integer)';
my $new = "INSERT INTO point SELECT nextval('ids'), $place FROM (SELECT (random() * 20)::integer AS low FROM generate_series(1, %d)) l";

query(qq{
	SELECT setseed(@{[ rand(2) - 1 ]});
	CREATE SEQUENCE ids MINVALUE -100;
	CREATE TABLE point (id bigint PRIMARY KEY, lat float8, lon float8, k integer, w int4range);
	CREATE VIEW named AS SELECT 'point ' || id AS id, lat, lon, w FROM point;
	CREATE VIEW point_code AS SELECT md5(id::text)::uuid AS code, lat, lon FROM point;
	@{[ sprintf($new, 300) ]}});
query("SELECT geonn_cache_create('$_', cluster => '$caches{$_}[0]', $caches{$_}[1]$caches{$_}[3])") foreach keys %caches;

my @changes = (
	sprintf($new, 5),
	"UPDATE point SET (lat, lon, k, w) = (SELECT $place FROM (SELECT 7 + 0 * point.id::integer AS low) l) WHERE random() < 0.03",
	'UPDATE point SET lat = lat + 0.001 WHERE random() < 0.05',
	'DELETE FROM point WHERE random() < 0.03',
	'DELETE FROM point WHERE id = (SELECT min(id) FROM point)',
	"UPDATE point SET id = nextval('ids') WHERE random() < 0.02",
	"UPDATE point SET id = (SELECT min(id) FROM point) - 1 WHERE id = (SELECT max(id) FROM point)",
	'UPDATE point SET k = 1 WHERE random() < 0.05',
	'UPDATE point SET lat = NULL WHERE random() < 0.01',
	'UPDATE point SET lat = lat WHERE random() < 0.1',
	'UPDATE linked SET cluster = -cluster, kind = NULL WHERE random() < 0.1',
	'DELETE FROM crowded WHERE random() < 0.1',
	'SELECT 1');
my ($wrong, $moved, $rewritten, $kept) = (0, 0, 0, 0);
for my $round (1 .. $rounds)
{
	my $sql = "SET client_min_messages = error;\n";

	$sql .= pick(@changes) . ";\n" foreach 0 .. rand(3);
	for my $name (sort keys %caches)
	{
		my ($points, $arguments, $type, $more) = @{ $caches{$name} };
		my $mode = pick(qw(auto auto full incremental));

		# before: the row and its version; numbered: the rows that a call has; right_rows: with least ids
		$sql .= qq{
			CREATE TEMP TABLE before AS SELECT *, ctid AS place, xmin AS version FROM $name;
			CALL geonn_refresh('$name', '$mode');
			CREATE TEMP TABLE numbered AS SELECT * FROM geonn_cluster('$points', $arguments, row_type => NULL::$type);
			CREATE TEMP TABLE right_rows AS SELECT n.id, l.id AS cluster, n.kind FROM numbered n LEFT JOIN (
				SELECT cluster, (array_agg(id ORDER BY id))[1] AS id FROM numbered WHERE kind = 'core' GROUP BY 1) l USING (cluster);
			SELECT 'round $round, $name, $mode', (SELECT count(*) FROM (TABLE $name EXCEPT ALL TABLE right_rows) f)
				+ (SELECT count(*) FROM (TABLE right_rows EXCEPT ALL TABLE $name) r),
				-- clusters that have kept their least core point, and another name
				(SELECT count(*) FROM before b JOIN $name n USING (id) JOIN right_rows r USING (id)
					WHERE b.cluster = id AND b.kind = 'core' AND r.cluster = id AND n.cluster <> b.cluster),
				-- rows that were written, though they are the same
				(SELECT count(*) FROM before b JOIN $name n ON (n.id, n.kind) = (b.id, b.kind) AND n.cluster IS NOT DISTINCT FROM b.cluster
					WHERE b.place <> n.ctid OR b.version <> n.xmin),
				(SELECT count(*) FROM before b JOIN $name n USING (id) WHERE b.place = n.ctid AND b.version = n.xmin);
			DROP TABLE before, numbered, right_rows;\n};
	}
	for my $line (split /\n/, query($sql))
	{
		my ($what, @counts) = split /\|/, $line;

		next if $what !~ /^round/;
		diag("$line: rows that differ, clusters renamed, rows written anew, rows left") if $counts[0] > 0 || $counts[1] > 0;
		$wrong += $counts[0];
		$moved += $counts[1];
		$rewritten += $counts[2] if $what !~ /replaced/;
		$kept += $counts[3] if $what !~ /replaced/;
	}
}
is($wrong, 0, 'after each refresh the rows are those of geonn_cluster');
is($moved, 0, 'clusters keep their names while their least core points stay');
is($rewritten, 0, 'and no row is written that has not changed');
cmp_ok($kept, '>', 300 * $rounds, 'most rows stay as they are');
is(query(q{SELECT string_agg(DISTINCT mode, ' ' ORDER BY mode) FROM geonn_cache_log WHERE status = 'succeeded'}), 'fill full', 'refreshes are full ones');
is(query(q{SELECT DISTINCT reason FROM geonn_cache_log WHERE name = 'replaced' AND reason ~ 'depend'}),
	'clusters depend on all points; the table was replaced', 'and say why');
query(q{VACUUM point; CALL geonn_refresh('crowded'); CALL geonn_refresh('crowded')});
is(last_run('crowded', 'mode, rows = (SELECT count(*) FROM crowded)'), 'unchanged|t', 'unless the visibility map says that nothing has changed');
is(query(q{SELECT count(*) FROM geonn_cache_block}), 0, 'there are no baselines');

# ---- its table ----

is(query(q{SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' not null' ELSE '' END, ', ' ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = 'coded'::regclass AND attnum > 0}), 'id uuid not null, cluster uuid, kind text', 'columns');
is(query(q{SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'coded'::regclass AND contype <> 'n'}), 'PRIMARY KEY (id)', 'and key');
is(query(q{SELECT obs, ref FROM geonn_caches WHERE name = 'seen'}), 'named|named', 'its points are on both sides');
is(query(q{SELECT arguments->'min_points', arguments->'radius', arguments->'k' FROM geonn_cache WHERE name = 'seen'}), '3|2500|', 'its arguments');
like(error_of(q{ALTER TABLE linked DROP CONSTRAINT linked_pkey; CALL geonn_refresh('linked')}),
	qr/ERROR:  55000: the table of cache "linked" has no primary key \(id\)\nHINT:  Run ALTER TABLE public\.linked ADD PRIMARY KEY \(id\)\./, 'a key that is gone');
query('ALTER TABLE linked ADD PRIMARY KEY (id)');
query(q{UPDATE replaced SET cluster = 0 WHERE cluster IS NULL; ALTER TABLE replaced ALTER cluster SET NOT NULL});
like(error_of(q{CALL geonn_refresh('replaced')}), qr/ERROR:  55000: the table of cache "replaced" cannot be replaced: its column cluster is NOT NULL\n/,
	'noise has no cluster');
query(q{ALTER TABLE replaced ALTER cluster DROP NOT NULL; CALL geonn_refresh('replaced')});

# ---- what becomes of its points ----

query(q{
	CREATE SCHEMA elsewhere;
	CREATE TABLE stop (id integer PRIMARY KEY, lat float8, lon float8);
	INSERT INTO stop VALUES (7, 52.5, 13.4), (3, 52.5001, 13.4), (1, 48.1, 11.5), (2, 48.1001, 11.5), (9, 10, 10);
	SELECT geonn_cache_create('stops', cluster => 'stop', radius => 15, min_points => 2);
	ALTER TABLE stop RENAME TO halt; ALTER TABLE halt SET SCHEMA elsewhere; ALTER TABLE stops SET SCHEMA elsewhere;
	DELETE FROM elsewhere.halt WHERE id = 1;
	CALL geonn_refresh('stops')});
is(query('SELECT * FROM elsewhere.stops ORDER BY id'), "2||noise\n3|3|core\n7|3|core\n9||noise", 'tables may be renamed and moved');
is(query(q{SELECT geonn_cache_alter('stops', '{"radius": 2000000, "min_points": 1, "name": "halts"}'); CALL geonn_refresh('halts');
		SELECT DISTINCT cluster, kind FROM elsewhere.stops ORDER BY 1}) =~ s/^\n//r, "2|core\n9|core", 'arguments are altered');
like(error_of(q{ALTER TABLE elsewhere.halt RENAME lat TO y; CALL geonn_refresh('halts')}),
	qr/ERROR:  42703: .* has no latitude column\n.*\nHINT:  .*geonn_cache_alter\('halts', '\{"options": \{"lat": "y", "lon": "x"\}\}'\)/, 'a column that is gone');
is(query(q{SELECT geonn_cache_alter('halts', '{"options": {"lat": "y", "lon": "lon"}}'); CALL geonn_refresh('halts')}), '', 'may be named');
query('INSERT INTO elsewhere.halt VALUES (11, 10, 10); ALTER TABLE elsewhere.halt DROP CONSTRAINT stop_pkey; INSERT INTO elsewhere.halt VALUES (11, 1, 1)');
like(error_of(q{CALL geonn_refresh('halts')}), qr/ERROR:  23505: ids of relation "halt" are not unique\nDETAIL:  Id 11 .*\nHINT:  Name another column as id in options/,
	'ids are unique');
like(error_of(q{DROP TABLE elsewhere.halt; CALL geonn_refresh('halts')}), qr/ERROR:  42P01: relation of points of cache "halts" was dropped\n/, 'points that are gone');
is(query(q{SELECT geonn_cache_drop('halts'); SELECT to_regclass('elsewhere.stops')}), "\n", 'a drop');

# ---- privileges ----

query(q{
	CREATE ROLE keeper; CREATE ROLE other; GRANT USAGE, CREATE ON SCHEMA elsewhere TO keeper;
	CREATE TABLE secret AS SELECT i AS id, i / 1e5 AS lat, 0 AS lon FROM generate_series(1, 9) i});
my $create = q{SELECT geonn_cache_create('kept', cluster => 'secret', radius => 2, min_points => 2, target => 'elsewhere.kept')};
like(error_of("SET ROLE keeper; $create"), qr/ERROR:  42501: permission denied for .*secret/, 'the points are read as by a SELECT');
query("GRANT SELECT ON secret TO keeper; SET ROLE keeper; $create");
like(error_of(q{SET ROLE other; CALL geonn_refresh('kept')}), qr/ERROR:  42501: must be owner of cache/, 'the owner alone refreshes');
query(q{ALTER TABLE secret ENABLE ROW LEVEL SECURITY; CREATE POLICY first_ones ON secret USING (id < 5); CALL geonn_refresh('kept')});
is(query('SELECT count(*), min(cluster), max(cluster) FROM elsewhere.kept'), '4|1|1', 'as the owner of the table, whose policies hold');
query('REVOKE SELECT ON secret FROM keeper');
like(error_of(q{CALL geonn_refresh('kept')}), qr/ERROR:  42501: permission denied for .*secret/, 'who has to have the privilege still');
is(query(q{SELECT count(*) FROM elsewhere.kept; SELECT status FROM geonn_caches WHERE name = 'kept'}), "4\nfailed", 'and the rows stay');

# ---- ids of a domain ----

query(q{CREATE DOMAIN sure AS numeric(9, 2) NOT NULL; CREATE TABLE surely (id sure, lat float8, lon float8); INSERT INTO surely VALUES (1.5, 0, 0), (2.5, 0, 0), (7, 9, 9);
	SELECT geonn_cache_create('sures', cluster => 'surely', radius => 1, min_points => 2)});
is(query(q{SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'sures'::regclass AND attnum > 0}),
	'id sure, cluster numeric(9,2), kind text', 'noise has no cluster, where ids are of a domain without NULL, too');
query(q{INSERT INTO surely VALUES (8, 9, 9); CALL geonn_refresh('sures')});
is(query('TABLE sures ORDER BY id'), "1.50|1.50|core\n2.50|1.50|core\n7.00|7.00|core\n8.00|7.00|core", 'and is refreshed');

# ---- limits and cancels ----

query('CREATE TABLE many AS SELECT i AS id, random() AS lat, random() AS lon FROM generate_series(1, 20000) i; VACUUM many');
my $cached = q{SELECT geonn_cache_create('many_clusters', cluster => 'many', radius => 1, min_points => 1)};
my $lacks = 0;
for my $limit (map { 64 * $_ } 1 .. 60)
{
	my $set = "SET geonn.session_memory_limit = '$limit kB'";

	next if error_of("$set; SELECT count(*) FROM geonn_cluster('many', 1)") ne '';
	last if error_of("$set; BEGIN; $cached; ROLLBACK") !~ /ERROR:  53400: not enough memory for the ids of the clusters of relation "many": \d+ kB needed so far, and geonn.session_memory_limit is $limit kB\n/;
	$lacks++;
}
cmp_ok($lacks, '>=', 1, 'names of clusters count in geonn.session_memory_limit');
query("SET maintenance_work_mem = '1MB'; SET geonn.session_memory_limit = '100MB'; $cached");
is(query('SELECT count(*), count(DISTINCT cluster), count(*) FILTER (WHERE cluster = id) >= count(DISTINCT cluster) FROM many_clusters'),
	query(q{SELECT count(*), count(DISTINCT cluster), true FROM geonn_cluster('many', 1)}), 'rows that wait on disk are all there');
query(q{CREATE TABLE crowd AS SELECT i AS id, random() / 10 AS lat, random() / 10 AS lon, int8range(i % 2, 9) AS w FROM generate_series(1, 300000) i});
my $run = start_sql($node, q{SELECT geonn_cache_create('crowds', cluster => 'crowd', radius => 100000, min_points => 300000, overlaps => '{w}')});
wait_until(sub { query(q{SELECT function, phase, ref_name FROM geonn_stat_progress}) eq 'geonn_refresh|searching|public.crowd' }, 'progress says what a cache does');
query('SELECT pg_cancel_backend(pid) FROM geonn_stat_progress');
like((finish_sql($run))[2], qr/canceling statement due to user request/, 'it can be cancelled');
is(query(q{SELECT to_regclass('crowds'); SELECT count(*) FROM geonn_caches WHERE name = 'crowds'}), "\n0", 'and nothing stays');

# ---- what is wrong ----

my $detail = qr/DETAIL:  A cache has the k nearest references, all references within radius, how many are within radii, or the clusters of one relation\.\n/;
for my $case (
	[ q{min_points => 2, radius => 3}, qr/22004: argument "cluster" of geonn_cache_create is NULL\nHINT:  Name a table or view, as in geonn_cache_create\('stops', cluster => / ],
	[ q{cluster => 'point', radius => 3}, qr/22004: argument "min_points" of geonn_cache_create is NULL\nHINT:  Give 1 for connected points/ ],
	[ q{cluster => 'point', min_points => 2}, qr/22004: argument "radius" of geonn_cache_create is NULL\nHINT:  Give metres/ ],
	[ q{obs => 'point', radius => 3}, qr/22004: argument "ref" of geonn_cache_create is NULL\nHINT:  Name a table or view, as in / ],
	[ q{cluster => 'point', radius => 3, min_points => 0}, qr/22023: min_points is out of range: 0\n/ ],
	[ q{cluster => 'point', radius => 0, min_points => 1}, qr/22023: radius is out of range: 0\n.*above 0, and at most / ],
	[ q{cluster => 'point', radius => 'Infinity', min_points => 1}, qr/22023: radius is out of range: Infinity\n/ ],
	[ q{cluster => 'point', radius => 1, min_points => 1, by => '{zone}'}, qr/42703: .*zone/ ],
	[ q{cluster => 'point', radius => 1, min_points => 1, options => '{"obs_id": "id"}'}, qr/22023: option "obs_id" is not one of this function's\n/ ],
	(map { [ "cluster => 'point', radius => 3, min_points => 2, $_->[0] => $_->[1]", qr/22023: cluster is given together with $_->[0]\n${detail}HINT:  Leave $_->[0] out\./ ] }
		[ 'obs', "'point'" ], [ 'ref', "'point'" ], [ 'k', 2 ], [ 'max_distance', 3 ], [ 'radii', "'{1}'" ], [ 'weights', "'{k}'" ], [ 'differs', "'{k}'" ],
		[ 'exclude_self', 'true' ], [ 'keep_unmatched', 'true' ], [ 'ties', "'all'" ]))
{
	like(error_of("SELECT geonn_cache_create('wrong', $case->[0])"), qr/ERROR:  $case->[1]/, $case->[0]);
}
query(q{SELECT geonn_cache_create('near', 'point', 'point')});
for my $case (
	[ 'linked', '{"k": 2}', qr/0A000: a cache of clusters cannot become one of neighbours\n.*\nHINT:  Create a new cache/ ],
	[ 'linked', '{"radii": [2]}', qr/0A000: a cache of clusters cannot become one of counts\n/ ],
	[ 'near', '{"min_points": 2, "radius": 3}', qr/0A000: a cache of neighbours cannot become one of clusters\n/ ],
	[ 'linked', '{"min_points": null}', qr/22004: "min_points" of a cache cannot be null\n/ ],
	[ 'linked', '{"radius": -1}', qr/22023: radius is out of range: -1\n/ ],
	[ 'linked', '{"radius": 1, "k": 3}', qr/22023: min_points is given together with k\n$detail/ ],
	[ 'linked', '{"exclude_self": true}', qr/22023: min_points is given together with exclude_self\n$detail/ ],
	[ 'linked', '{"cluster": "point"}', qr/22023: "cluster" of a cache cannot be changed\n.*min_points/ ])
{
	like(error_of("SELECT geonn_cache_alter('$case->[0]', '$case->[1]')"), qr/ERROR:  $case->[2]/, "$case->[0]: $case->[1]");
}

done_testing();
