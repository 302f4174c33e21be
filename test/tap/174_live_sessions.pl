
# What a session does with the bases that it knows: its calls are counted, however short it is and whatever it asks in
# turn; it holds the memory of a few tables; a base that has no room is made once it has.
# rooms: live pages

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('live_sessions', preload => 1, conf => "autovacuum = off\nmax_parallel_workers_per_gather = 0");
my $tables = 40;

$node->safe_psql('postgres', qq{
	DO \$\$ BEGIN FOR i IN 1 .. $tables LOOP
		EXECUTE format('CREATE TABLE t%s (id integer PRIMARY KEY, lat float8, lon float8)', i);
		EXECUTE format('INSERT INTO t%s SELECT i, i %% 180 - 90, i %% 360 - 180 FROM generate_series(1, 1000) i', i);
	END LOOP; END \$\$;
	CREATE FUNCTION call(name text, count integer, k integer DEFAULT 1) RETURNS void LANGUAGE plpgsql AS \$\$
		BEGIN FOR i IN 1 .. count LOOP PERFORM geonn_nearest_points('{1}', '{1}', name::regclass, k); END LOOP; END \$\$;
	-- does a base answer?
	CREATE FUNCTION has_base(name text) RETURNS boolean LANGUAGE plpgsql AS \$\$
		DECLARE
			line text;
			found boolean := false;
		BEGIN
			FOR line IN EXECUTE format('EXPLAIN (ANALYZE) SELECT * FROM geonn_nearest_points(''{1}'', ''{1}'', %L)', name) LOOP
				found := found OR line LIKE '%Pages Read%';
			END LOOP;
			RETURN found;
		END \$\$;
});

sub counted
{
	return $node->safe_psql('postgres', 'SELECT coalesce(sum(calls), 0) FROM geonn_stat');
}

# ---- calls are counted ----

$node->safe_psql('postgres', q{SELECT call('t1', 20)});

my $before = counted();

$node->safe_psql('postgres', q{SELECT geonn_nearest_points('{1}', '{1}', 't1')}) for 1 .. 10;
is(counted() - $before, 10, 'sessions of one call each are counted');

$before = counted();
$node->safe_psql('postgres', q{SELECT call('t1', 1000)});
cmp_ok(counted() - $before, '>=', 500, 'at least half of the calls of a short session are counted');

$before = counted();

my $session = $node->background_psql('postgres', on_error_die => 1);

$session->query_safe(qq{DO \$\$ BEGIN FOR i IN 1 .. $tables LOOP PERFORM call('t' || i, 10); END LOOP; END \$\$});
$session->query_safe(q{DO $$ BEGIN FOR i IN 1 .. 30 LOOP PERFORM call('t1', 1, k) FROM generate_series(1, 20) k; END LOOP; END $$});
is($session->query_safe('SELECT sum(calls) FROM geonn_stat') - $before, 10 * $tables + 600,
	'all calls are counted, of many tables and with many arguments in turn');
is($session->query_safe(q{SELECT sum(calls) FROM geonn_stat WHERE arguments = 'k => 7'}), 30, 'each with its arguments');

# ---- memory ----

cmp_ok($session->query_safe(q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'geonn live references'}),
	'<=', 16, 'a session knows the bases of a few tables');
cmp_ok($session->query_safe(q{SELECT count(*) FROM regexp_split_to_table(pg_read_file('/proc/self/maps'), E'\n') line
	WHERE line LIKE '%memfd:geonn%'}), '<=', 20, 'and maps no others');

$node->safe_psql('postgres', 'CREATE TABLE filled (id integer PRIMARY KEY, lat float8, lon float8)');

my $other = $node->background_psql('postgres', on_error_die => 1);

foreach (1 .. 5)
{
	$other->query_safe('TRUNCATE filled; INSERT INTO filled SELECT i, i % 90, i % 180 FROM generate_series(1, 1000) i');
	$other->query_safe(q{SELECT call('filled', 20)});
	is($other->query_safe(q{SELECT has_base('filled')}), 't', 'a table that is filled anew has a base');
}
is($other->query_safe(q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'geonn live references'}), 1,
	'and the session holds none of those before');
$other->quit;

# ---- another table with the name ----

is($session->query_safe(q{SELECT has_base('t1')}), 't', 'a table has a base');
$session->query_safe('DROP TABLE t1; CREATE TABLE t1 (id integer PRIMARY KEY, lat float8, lon float8); INSERT INTO t1 VALUES (77, 1, 1)');
is($session->query_safe(q{SELECT ref_id FROM geonn_nearest_points('{1}', '{1}', 't1')}), 77, 'another table of that name has other rows');
$node->safe_psql('postgres', 'DROP TABLE t1; CREATE TABLE t1 (id integer PRIMARY KEY, lat float8, lon float8); INSERT INTO t1 VALUES (78, 1, 1)');
is($session->query_safe(q{SELECT ref_id FROM geonn_nearest_points('{1}', '{1}', 't1')}), 78, 'also where another session has made it');
$session->quit;

# ---- a limit that is too small, and then is not ----

$node->safe_psql('postgres', q{
	CREATE TABLE large AS SELECT i AS id, i % 180 - 90::float8 AS lat, i % 360 - 180::float8 AS lon FROM generate_series(1, 40000) i;
	ALTER SYSTEM SET geonn.kept_memory_limit = '1MB'; SELECT pg_reload_conf()});
$session = $node->background_psql('postgres', on_error_die => 1);
wait_until(sub { $session->query_safe('SHOW geonn.kept_memory_limit') eq '1MB' }, 'the limit is 1 MB');
$session->query_safe(q{SELECT call('large', 30)});
is($session->query_safe(q{SELECT has_base('large')}), 'f', 'a base that would be larger is not made');
is(scalar(() = Geonn::slurp($node->logfile) =~ /this session leaves single points to be searched in relation "large"/g), 1,
	'the log says so once');
like(Geonn::slurp($node->logfile), qr/A base of the references takes at least (\d+) kB, more than 1024 kB, the lower one/,
	'with what it takes and what it may take');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET geonn.kept_memory_limit; SELECT pg_reload_conf()');
wait_until(sub { $session->query_safe(q{SELECT has_base('large')}) eq 't' }, 'the same session makes it once it has room');
$session->quit;

# ---- a base that cannot be made ----

# this process can write no more bytes to a file
$node->safe_psql('postgres', q{
	CREATE TABLE crowded AS SELECT i AS id, i % 180 - 90::float8 AS lat, i % 360 - 180::float8 AS lon FROM generate_series(1, 40000) i;
	VACUUM crowded; UPDATE crowded SET id = id WHERE id = 1});
$node->safe_psql('postgres', q{SELECT geonn_nearest_points('{1}', '{1}', 'crowded')});
$session = $node->background_psql('postgres', on_error_die => 1);
$session->query_safe('SELECT count(*) FROM crowded');

my $backend = $session->query_safe('SELECT pg_backend_pid()');

system('prlimit', '--pid', $backend, '--fsize=65536:') == 0 or die "prlimit: $?";
is($session->query_safe(q{
	BEGIN; SAVEPOINT s; SELECT ref_id FROM geonn_nearest_points('{1}', '{1}', 'crowded'); SELECT 'and on'; COMMIT}),
	$node->safe_psql('postgres', 'SELECT id FROM crowded ORDER BY geonn_distance(1, 1, lat, lon), id LIMIT 1') . "\nand on",
	'a base cannot be made: the engine answers, and the transaction goes on');
$session->query_safe(q{SELECT call('crowded', 20)});
is($session->query_safe(q{SELECT has_base('crowded')}), 'f', 'the session has no base');
is(scalar(() = Geonn::slurp($node->logfile) =~ /searched in relation "crowded" to the geonn engine/g), 1, 'the log says so once');
like(Geonn::slurp($node->logfile), qr/DETAIL:  A base of the references could not be made: could not allocate memory/, 'and why');
is($node->safe_psql('postgres', q{SELECT has_base('crowded')}), 't', 'another session makes one');
$session->query_safe('SELECT pg_sleep(1.1)');
is($session->query_safe(q{SELECT has_base('crowded')}), 't', 'which this one uses');
$session->quit;
done_testing();
