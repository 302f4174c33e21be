
# References that have not changed are not read again, and those that have are:
# whatever changes them, and whoever looks.  Every join's rows are compared with
# those of the definition in SQL.
# rooms: pages join points engine/server

use strict;
use warnings;

use Geonn;
use Test::More;

# pages become all-visible when this test says so; and what is read when
# wal_level is minimal is another test, below
my $conf = "autovacuum = off\nwal_level = replica\nmax_parallel_workers_per_gather = 0
max_prepared_transactions = 1";
my $node = new_server('kept', preload => 1, conf => $conf);

# Whether a join reads its references (a table) or finds them kept, and whether
# its rows are those of the definition.
my $try_join = q{
	CREATE FUNCTION try_join(reference regclass, call text, definition text) RETURNS text
	LANGUAGE plpgsql AS $$
	DECLARE
		scans bigint := pg_stat_get_xact_numscans(reference);
		how text;
		rows text;
		expected text;
	BEGIN
		EXECUTE format('SELECT string_agg(j::text, '' '' ORDER BY j::text) FROM %s j', call) INTO rows;
		how := CASE pg_stat_get_xact_numscans(reference) - scans WHEN 0 THEN 'kept' ELSE 'read' END;
		EXECUTE format('SELECT string_agg(ROW(j.*)::text, '' '' ORDER BY ROW(j.*)::text) FROM (%s) j', definition)
			INTO expected;
		RETURN how || CASE WHEN rows IS DISTINCT FROM expected
			THEN format(', and wrong: %s instead of %s', rows, expected) ELSE '' END;
	END $$;
};

# the nearest of each observation, as SQL defines it; by a condition, of columns
my $nearest = q{
	SELECT o.id, r.id, r.distance FROM (SELECT * FROM obs WHERE lat IS NOT NULL) o CROSS JOIN LATERAL (
		SELECT id, geonn_distance(o.lat, o.lon, lat, lon) AS distance FROM REF r
		WHERE lat BETWEEN -90 AND 90 CONDITION ORDER BY 2, 1 LIMIT 1) r};

sub definition
{
	my ($reference, $condition) = @_;
	my $sql = $nearest;

	$sql =~ s/REF/$reference/;
	$sql =~ s/CONDITION/$condition ? "AND $condition" : ''/e;
	return $sql;
}

# SQL that says how this join had its references; arguments are further ones
sub join_sql
{
	my ($reference, $arguments, $definition) = @_;
	my $call = "geonn_nearest('obs', '$reference'" . ($arguments ? ", $arguments" : '') . ')';

	$definition //= definition($reference);
	return "SELECT try_join('$reference', \$call\$$call\$call\$, \$definition\$$definition\$definition\$);";
}

# The last of these statements' rows, by a session of its own or by this one.
sub last_row
{
	my ($sql, $session) = @_;
	my $out = $session ? $session->query_safe($sql) : $node->safe_psql('postgres', $sql);

	return (split /\n/, $out)[-1] // '';
}

sub joins
{
	my ($how, $name, %option) = @_;
	my $sql = join_sql($option{reference} // 'ref', $option{arguments}, $option{definition});

	is(last_row(($option{before} // '') . $sql . ($option{after} // ''), $option{session}),
		$how, $name);
}

# The change, once it is made, has the references read once, whether or not that prunes pages, and once more when all
# pages are visible to all.
sub change
{
	my ($sql, $name, %option) = @_;
	my $reference = $option{reference} // 'ref';

	$node->safe_psql('postgres', $sql);
	joins('read', "$name: they are read", %option) unless $option{is_kept};
	joins('kept', "$name: and kept", %option) unless $option{stays_visible};
	$node->safe_psql('postgres', "VACUUM $reference");
	joins('read', "$name: and once more when they are visible to all", %option) unless $option{stays_visible};
	joins('kept', "$name: and then kept", %option);
}

$node->safe_psql('postgres', $try_join);
$node->safe_psql(
	'postgres', q{
	-- with more rows than a base would answer (172_live_tables), most of which have no place
	CREATE TABLE obs AS SELECT i AS id, CASE WHEN i <= 20 THEN i * 7 % 90 END AS lat, i * 11 % 180 AS lon, i % 3 AS class,
		'n' || i % 3 AS name FROM generate_series(1, 70) i;
	CREATE TABLE ref (id integer PRIMARY KEY, lat float8, lon float8, class integer, name text, note text);
	INSERT INTO ref SELECT i, i * 13 % 90, i * 17 % 180, i % 3, 'n' || i % 3, repeat('x', 100)
		FROM generate_series(1, 1000) i;
});

# ---- changes ----

change('SELECT 1', 'new rows');
joins('kept', 'another session finds them kept');
change('UPDATE ref SET lat = lat + 1 WHERE id = 500', 'UPDATE');
change('UPDATE ref SET note = NULL WHERE id = 500', 'UPDATE of a column that is not asked for');
change('DELETE FROM ref WHERE id % 7 = 0', 'DELETE');
change("INSERT INTO ref VALUES (2000, 7, 11, 0, 'n0')", 'INSERT');
change('DELETE FROM ref WHERE id = 2000', 'DELETE of the last row');
change('BEGIN; INSERT INTO ref VALUES (2001, 7, 11); ROLLBACK', 'INSERT that is rolled back');
$node->safe_psql('postgres', 'SELECT id FROM ref WHERE id = 3 FOR UPDATE');
joins('kept', 'FOR UPDATE changes no rows');
change('TRUNCATE ref', 'TRUNCATE', stays_visible => 1);
change(q{INSERT INTO ref SELECT i, i * 23 % 90, i * 29 % 180, i % 3, 'n' || i % 3 FROM generate_series(1, 900) i},
	'INSERT into an empty table');
change('VACUUM FULL ref', 'VACUUM FULL');
change('CLUSTER ref USING ref_pkey', 'CLUSTER');
change('ALTER TABLE ref ALTER id TYPE bigint', 'ALTER TYPE of the ids');
change('ALTER TABLE ref ALTER lat TYPE float8 USING lat / 2', 'ALTER TYPE by an expression');
change('VACUUM (FREEZE) ref', 'VACUUM (FREEZE)', stays_visible => 1);
$node->safe_psql('postgres', 'VACUUM ref; ANALYZE ref; CHECKPOINT');
joins('kept', 'VACUUM and ANALYZE change nothing');
$node->safe_psql('postgres', 'CREATE TABLE other AS TABLE ref; VACUUM other');
joins('kept', 'nor do other tables');

# The visibility map tells, and it may be lost: then nothing is known until it is made again.
$node->safe_psql('postgres', 'CREATE EXTENSION pg_visibility');
change(q{SELECT pg_truncate_visibility_map('ref')}, 'a visibility map that was cut off');
change('BEGIN; UPDATE ref SET lat = lat + 1; ROLLBACK', 'UPDATE that is rolled back');

# a table of several pages of the map: each of them tells
$node->safe_psql(
	'postgres', q{
	CREATE TABLE wide (id integer, lat float8, lon float8, filler text) WITH (fillfactor = 10);
	ALTER TABLE wide ALTER filler SET STORAGE PLAIN;
	INSERT INTO wide SELECT i, i * 7e-4, i * 1e-3, repeat('x', 5000) FROM generate_series(1, 33000) i;
	VACUUM wide;
});
is( $node->safe_psql('postgres', q{SELECT pg_relation_size('wide', 'vm') / current_setting('block_size')::int}),
	2, 'a table whose visibility map has two pages');
foreach my $id (100, 32900)
{
	joins('read', "before row $id is deleted", reference => 'wide');
	joins('kept', "and again before row $id is deleted", reference => 'wide');
	$node->safe_psql('postgres', "DELETE FROM wide WHERE id = $id; VACUUM wide");
}
joins('read', 'after row 32900 is deleted', reference => 'wide');
$node->safe_psql('postgres', 'DELETE FROM wide WHERE id > 32000; VACUUM wide');
joins('read', 'cut short', reference => 'wide');
joins('kept', 'and kept then', reference => 'wide');
$node->safe_psql('postgres', q{INSERT INTO wide SELECT i, i * 7e-4, 5, repeat('x', 5000) FROM generate_series(32001, 33000) i; VACUUM wide});
joins('read', 'and filled again', reference => 'wide');
$node->safe_psql('postgres', 'DROP TABLE wide');

# ---- changes in place ----

# ANALYZE updates rows of pg_class in place, which leaves the page all-visible
my $is_there = q{SELECT distance FROM geonn_nearest_points(ARRAY(SELECT relpages::float8 FROM pg_class WHERE relname = 'grown'),
	ARRAY(SELECT reltuples::float8 FROM pg_class WHERE relname = 'grown'), 'sizes', invalid => 'skip',
	row_type => NULL::record) AS n(ord bigint, ref_id oid, distance float8)};
$node->safe_psql('postgres', q{
	CREATE TABLE grown (a integer, filler text DEFAULT repeat('y', 500));
	INSERT INTO grown SELECT generate_series(1, 50);
	CREATE VIEW sizes AS SELECT oid AS id, relpages AS lat, reltuples AS lon FROM pg_class;
	ANALYZE grown;
	VACUUM FREEZE pg_class});
is($node->safe_psql('postgres', $is_there), 0, "a catalog's rows");
$node->safe_psql('postgres', 'INSERT INTO grown SELECT generate_series(1, 100); ANALYZE grown');
is($node->safe_psql('postgres', $is_there), 0, 'and after they were updated in place');
$node->safe_psql('postgres', 'DROP VIEW sizes; DROP TABLE grown');

# ---- the own transaction's changes ----

joins('read', 'one sees one\'s own DELETE', before => 'BEGIN; DELETE FROM ref WHERE id % 2 = 0;', after => 'ROLLBACK;');
change('SELECT 1', 'after its rollback');
joins('read', 'one sees one\'s own TRUNCATE', before => 'BEGIN; TRUNCATE ref;', after => 'ROLLBACK;');
joins('kept', 'and its rollback leaves nothing');
joins('read', 'what a savepoint has changed', before => 'BEGIN; SAVEPOINT s; UPDATE ref SET lon = lon + 1;',
	after => 'ROLLBACK;');
change('SELECT 1', 'after that');

is(last_row('BEGIN; SAVEPOINT s; UPDATE ref SET lon = lon + 1; ROLLBACK TO s;' . join_sql('ref') x 2 . 'COMMIT;'),
	'kept', 'what a savepoint has changed and rolled back is as if it had ended');
joins('kept', 'and so it stays when the transaction has ended');

# ---- prepared transactions ----

$node->safe_psql('postgres', "BEGIN; DELETE FROM ref WHERE id % 5 = 0; PREPARE TRANSACTION 'p'");
joins('read', 'a prepared transaction may still end in either way') foreach 1 .. 2;
$node->restart;
joins('read', 'after a restart, too') foreach 1 .. 2;
$node->safe_psql('postgres', "COMMIT PREPARED 'p'");
joins('read', 'when it is committed the table is read once');
change('SELECT 1', 'and then', is_kept => 1);

# A column that is rolled back may come again with the same number and other
# values, which stand in the catalog alone.
my $by_extra = definition('ref', 'r.extra = o.extra');
my $add = sub { return "ALTER TABLE ref ADD extra integer DEFAULT $_[0];" };

$node->safe_psql('postgres', 'ALTER TABLE obs ADD extra integer DEFAULT 1');
is( $node->safe_psql(
		'postgres', 'BEGIN;' . $add->(1) . join_sql('ref', "by => '{extra}'", $by_extra) x 2 . 'ROLLBACK;'),
	"read\nkept", 'a column that is not committed yet');
is( $node->safe_psql(
		'postgres', 'BEGIN; SAVEPOINT s;' . $add->(2)
		  . join_sql('ref', "by => '{extra}'", $by_extra) x 2 . 'ROLLBACK TO s;'
		  . $add->(1) . join_sql('ref', "by => '{extra}'", $by_extra) x 2 . 'COMMIT;'),
	"read\nkept\nread\nkept", 'is not taken for another one of its number');
joins('kept', 'the last of which stays', arguments => "by => '{extra}'", definition => $by_extra);

# ---- pages that are new ----

# as a session leaves them that was to fill them and ended
change('CREATE TABLE extended AS SELECT id, lat, lon FROM ref', 'a table', reference => 'extended');
my $file = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('extended')});
$node->stop;
open(my $table, '>>', $file) or die "$file: $!";
print $table "\0" x 24576;
close($table);
$node->start;
foreach my $times (1 .. 2)
{
	$node->safe_psql('postgres', 'VACUUM (TRUNCATE false) extended');
	joins('read', 'with new pages', reference => 'extended');
	joins('kept', 'is kept', reference => 'extended');
	$node->safe_psql('postgres', q{INSERT INTO extended SELECT i, i % 90, 5 FROM generate_series(2000, 2200) i});
	joins('read', 'when they are filled it is read', reference => 'extended');
}

# ---- older snapshots ----

my $old = $node->background_psql('postgres');

joins('read', 'after ALTER TABLE');
joins('kept', 'before an older snapshot');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM obs;');
joins('kept', 'an older snapshot takes what has not changed since', session => $old);
$node->safe_psql('postgres', 'UPDATE ref SET lat = lat + 1 WHERE id < 100');
joins('read', 'an older snapshot sees what was there before an UPDATE', session => $old);
joins('read', 'and a new one what is there now');
$node->safe_psql('postgres', 'VACUUM ref');
joins('read', 'VACUUM does not hide that from the older one', session => $old);
joins('kept', 'the new one has what it has read');
joins('read', 'still', session => $old);
$old->query_safe('COMMIT');
change('SELECT 1', 'when the older one has ended', is_kept => 1);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM obs;');
$node->safe_psql('postgres', "INSERT INTO ref SELECT i, i % 90, 3, 1, 'n1' FROM generate_series(3000, 4000) i; VACUUM ref");
joins('read', 'an older snapshot does not see rows that were added', session => $old);
joins('read', 'a new one does');
$old->query_safe('COMMIT');

# one that was taken while a transaction was in progress, after whose end the pages are the same
my $writer = $node->background_psql('postgres');

$writer->query_safe('BEGIN; UPDATE ref SET lat = lat + 1 WHERE id < 50;');
joins('read', 'before a change is committed');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM obs;');
joins('read', 'an older snapshot does not see it', session => $old);
$writer->query_safe('COMMIT');
joins('read', 'a new one sees the change');
joins('kept', 'and keeps it');
joins('read', 'but not for the older one', session => $old) foreach 1 .. 2;
joins('kept', 'whose references are not kept');
$old->query_safe('COMMIT');
joins('kept', 'after it', session => $old);
joins('read', 'other reading prunes pages then');
$writer->quit;

# a cursor's snapshot is that of its declaration
change('SELECT 1', 'before a cursor', is_kept => 1);
$old->query_safe(q{BEGIN; DECLARE c CURSOR FOR SELECT ref_id FROM geonn_nearest('obs', 'ref') WHERE obs_id = 1;});
my $nearest_to_first = $node->safe_psql('postgres', q{SELECT ref_id FROM geonn_nearest('obs', 'ref') WHERE obs_id = 1});
$old->query_safe("DELETE FROM ref WHERE id = $nearest_to_first");
is(last_row('FETCH 1 FROM c', $old), $nearest_to_first, 'a cursor does not see its own transaction\'s later DELETE');
$old->query_safe('ROLLBACK');

# ---- other questions of the same table ----

my %questions = (
	'groups' => { arguments => "by => '{class}'", definition => definition('ref', 'r.class = o.class') },
	'groups by two columns' => {
		arguments  => "by => '{class,name}'",
		definition => definition('ref', 'r.class = o.class AND r.name = o.name')
	},
	'without one\'s own' => { arguments => 'exclude_self => true', definition => definition('ref', 'r.id <> o.id') },
	'ids of type text' => {
		arguments  => q{options => '{"ref_id": "name"}', row_type => NULL::named},
		definition => definition('ref') =~ s/SELECT id,/SELECT name AS id,/r
	},
	'coordinates of references' => {
		arguments  => 'row_type => NULL::located',
		definition => definition('ref') =~ s/r\.distance/r.lat, r.lon/r =~ s/AS distance/AS distance, lat, lon/r
	},
	'the spheroid' => {
		arguments  => q{metric => 'spheroid'},
		definition => definition('ref') =~ s/lat, lon\) AS/lat, lon, 'spheroid') AS/r
	});

$node->safe_psql('postgres',
	'CREATE TYPE named AS (obs_id integer, ref_id text, distance float8);'
	  . 'CREATE TYPE located AS (obs_id integer, ref_id bigint, ref_lat float8, ref_lon float8);'
	  . 'CREATE TYPE metres AS (obs_id integer, distance float8)');

# ids that would be sorted are left out where only distances are asked for
my %distances = (
	arguments  => q{options => '{"ref_id": "name"}', row_type => NULL::metres},
	definition => definition('ref') =~ s/o\.id, r\.id, r\.distance/o.id, r.distance/r);

change('UPDATE ref SET lat = lat + 1 WHERE id = 77', 'distances alone', %distances);
joins('read', 'names are not had from references without them', %{ $questions{'ids of type text'} });
change('UPDATE ref SET lat = lat - 1 WHERE id = 77', 'before other questions');
foreach my $question (sort keys %questions)
{
	joins('read', "$question: they are read once", %{ $questions{$question} });
	joins('kept', "$question: and kept", %{ $questions{$question} });
}
joins('kept', 'each question has its own');
joins('kept', 'distances are had from references that are kept with their names', %distances);
is( last_row("SELECT try_join('ref', \$\$geonn_nearest_sql('SELECT id, lat, lon FROM obs', 'SELECT id, lat, lon FROM ref')\$\$, \$\$"
		  . definition('ref') . '$$)'),
	'kept', 'a query of the same columns has the same');
is( last_row("SELECT try_join('ref', \$\$geonn_nearest_sql('SELECT id, lat, lon FROM obs', 'SELECT id, lon AS lat, lat AS lon FROM ref')\$\$, \$\$"
		  . (definition('ref') =~ s/o\.lon, lat, lon/o.lon, lon, lat/r =~ s/lat BETWEEN/lon BETWEEN/r) . '$$)'),
	'read', 'a query of others has not');

# ---- parallel workers ----

my $sum = q{SELECT count(*), round(sum(ref_id * obs_id)) FROM geonn_nearest('obs', 'ref', by => '{class}')};
my $parallel = q{
	SET max_parallel_workers_per_gather = 2;
	SET parallel_setup_cost = 0;
	SET parallel_tuple_cost = 0;
	SET min_parallel_table_scan_size = 0;};
my $explained = $node->safe_psql('postgres', "$parallel EXPLAIN (ANALYZE) $sum");

like($explained, qr/Workers Launched: [12]/, 'a parallel plan');
like($explained, qr/References Kept: true/, 'has kept references');
is($node->safe_psql('postgres', "$parallel $sum"), $node->safe_psql('postgres', $sum),
	'which all of its processes have');

# ---- rows that are no points ----

$node->safe_psql('postgres', q{INSERT INTO ref VALUES (5000, 91, 0), (5001, 'NaN', 0), (5002, NULL, 0); VACUUM ref});
foreach my $how (qw(read kept))
{
	my ($status, $out, $error) = $node->psql('postgres', join_sql('ref', undef, definition('ref', q{lat <> 'NaN'})));
	is($out, $how, "rows that are no points, $how");
	like($error, qr/WARNING:  2 rows of relation "ref" were skipped.*NULL id or coordinate: 1/s, 'are warned of');
}
my (undef, undef, $error) = $node->psql('postgres', q{SELECT geonn_nearest('obs', 'ref', invalid => 'error')});
like($error, qr/ERROR:  latitude of id 500\d of relation "ref" is out of range/, 'or are an error');
change('DELETE FROM ref WHERE id >= 5000', 'without them');
joins('kept', 'there is none', arguments => q{invalid => 'error'});

# ---- tables whose changes cannot be told ----

$node->safe_psql(
	'postgres', q{
	CREATE UNLOGGED TABLE unlogged AS SELECT id, lat, lon FROM ref;
	CREATE TABLE divided (id integer, lat float8, lon float8) PARTITION BY RANGE (id);
	CREATE TABLE part PARTITION OF divided FOR VALUES FROM (MINVALUE) TO (500);
	CREATE TABLE rest PARTITION OF divided DEFAULT;
	INSERT INTO divided SELECT id, lat, lon FROM ref;
	CREATE VIEW half AS SELECT id, lat, lon FROM ref WHERE id % 2 = 0;
	CREATE TABLE parent AS SELECT id, lat, lon FROM ref;
	CREATE TABLE child () INHERITS (parent);
	INSERT INTO child VALUES (1, 7, 11);
	VACUUM unlogged, divided, parent, child;
});
foreach my $how (qw(read read))
{
	joins($how, 'an unlogged table', reference => 'unlogged');
	joins($how, 'a table with children', reference => 'parent');
	is(last_row("SELECT try_join('part', \$\$geonn_nearest('obs', 'divided')\$\$, \$\$" . definition('divided') . '$$)'),
		$how, 'a partitioned table');
	is(last_row("SELECT try_join('ref', \$\$geonn_nearest('obs', 'half')\$\$, \$\$" . definition('half') . '$$)'),
		$how, 'a view with a condition');
	is( last_row(
			'CREATE TEMPORARY TABLE passing AS SELECT id, lat, lon FROM ref; VACUUM passing;'
			  . join_sql('passing') x 2),
		$how, 'a temporary table');
}

# ---- privileges and policies ----

$node->safe_psql(
	'postgres', q{
	CREATE ROLE reader;
	GRANT SELECT ON obs TO reader;
	CREATE TABLE owned AS SELECT id, lat, lon FROM ref;
	VACUUM owned;
});
joins('read', 'the owner reads', reference => 'owned');
joins('kept', 'and keeps', reference => 'owned');
(undef, undef, $error) = $node->psql('postgres', q{SET ROLE reader; SELECT geonn_nearest('obs', 'owned')});
like($error, qr/permission denied for table owned/, 'without privileges kept references are not to be had');
$node->safe_psql(
	'postgres', q{
	GRANT SELECT ON owned TO reader;
	CREATE POLICY even ON owned TO reader USING (id % 2 = 0);
	ALTER TABLE owned ENABLE ROW LEVEL SECURITY;
});
joins('read', 'under a policy only its rows are', reference => 'owned', before => 'SET ROLE reader;');
joins('read', 'for the owner they are read once, since the table was altered', reference => 'owned');
joins('kept', 'and kept', reference => 'owned');
joins('read', 'but not under the policy', reference => 'owned', before => 'SET ROLE reader;');

# ---- SERIALIZABLE ----

my @pair = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;

joins('kept', 'before SERIALIZABLE');
$_->query('BEGIN ISOLATION LEVEL SERIALIZABLE') foreach @pair;
is($pair[0]->query(q{SELECT count(*) FROM geonn_nearest('obs', 'ref')}), 20, 'kept references are taken under SERIALIZABLE');
$pair[1]->query('SELECT count(*) FROM other');
$pair[0]->query('INSERT INTO other VALUES (9000, 1, 1)');
$pair[1]->query('INSERT INTO ref VALUES (9000, 1, 1)');
my @ends = map { $_->query('COMMIT'); $_->{stderr} } @pair;
like(join('', @ends), qr/could not serialize access/,
	'of two transactions that read what the other writes one fails');
change('SELECT 1', 'after SERIALIZABLE');
$pair[0]->query('BEGIN; LOCK TABLE ref IN ROW EXCLUSIVE MODE');
joins('kept', 'while another transaction may be writing they are kept');
joins('read', 'but not under SERIALIZABLE, where it may have looked for conflicts before', before => 'BEGIN ISOLATION LEVEL SERIALIZABLE;');
$pair[0]->query('COMMIT');
joins('kept', 'they are once it has ended', before => 'BEGIN ISOLATION LEVEL SERIALIZABLE;');
joins('kept', 'and where the transaction itself may write',
	before => 'BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE ref IN ROW EXCLUSIVE MODE;');
$_->quit foreach @pair;
$old->quit;

# ---- memory ----

cmp_ok(status($node, 'datasets_kept'), '>', 1, 'several datasets are kept');
is(status($node, 'datasets'), status($node, 'datasets_kept'), 'and nobody has them');
cmp_ok(status($node, 'kept_memory'), '>', 0, 'their memory is known');
$node->safe_psql('postgres',
	q{CREATE TABLE large AS SELECT i AS id, i % 90 AS lat, i % 180 AS lon FROM generate_series(1, 12000) i; VACUUM large});
$node->safe_psql('postgres', q{ALTER SYSTEM SET geonn.kept_memory_limit = '1MB'; SELECT pg_reload_conf()});
wait_until(sub { $node->safe_psql('postgres', 'SHOW geonn.kept_memory_limit') eq '1MB' }, 'the limit changes with a reload');
joins('read', 'a large dataset', reference => 'large');
wait_until(sub { status($node, 'kept_memory') <= 1024 * 1024 }, 'what is kept is within the limit');
joins('kept', 'is kept', reference => 'large');
joins('kept', 'beside a small one');
$node->safe_psql('postgres', q{CREATE TABLE larger AS TABLE large; VACUUM larger});
joins('kept', 'the large one was used last', reference => 'large');
joins('read', 'another large one', reference => 'larger');
joins('kept', 'takes the room', reference => 'larger');
joins('read', 'of those that were used before it', reference => 'large');
$node->safe_psql('postgres', 'INSERT INTO large SELECT i, i % 90, i % 180 FROM generate_series(12001, 40000) i; VACUUM large');
joins('read', 'one that is larger than the limit', reference => 'large');
joins('read', 'is not kept', reference => 'large');
$node->safe_psql('postgres', q{ALTER SYSTEM SET geonn.kept_memory_limit = 0; SELECT pg_reload_conf()});
wait_until(sub { status($node, 'datasets') == 0 }, 'without memory none is kept');
joins('read', 'and all is read');
joins('read', 'always');

# ---- the engine ----

$node->safe_psql('postgres', q{ALTER SYSTEM RESET geonn.kept_memory_limit; SELECT pg_reload_conf()});
wait_until(sub { $node->safe_psql('postgres', 'SHOW geonn.kept_memory_limit') eq '1GB' }, 'it is as before');
joins('read', 'they are read');
joins('kept', 'and kept');
my $engine = status($node, 'engine_pid');
kill('KILL', $engine);
wait_until(sub { is_gone($engine) }, 'the engine is killed');
wait_until(sub { status($node, 'state') eq 'running' }, 'and another one started');
joins('read', 'which has nothing kept');
joins('kept', 'yet');
$node->stop;

# ---- files that their transaction fills ----

# Within the transaction, COPY FREEZE adds rows to pages that it has marked already.  Where the WAL
# does not have them, changes cannot be told until the commit has recorded all pages, or, of larger
# files, until a page is changed again.
foreach my $case (
	[ 'replica', 'wal_level = replica', 'kept' ],
	[ 'minimal', 'wal_level = minimal', 'kept' ],
	[ 'synchronized', "wal_level = minimal\nwal_skip_threshold = 0", 'read' ])
{
	my ($level, $setting, $after) = @$case;

	$node = new_server("freeze_$level", preload => 1,
		conf => "autovacuum = off\n$setting\nmax_wal_senders = 0\nmax_parallel_workers_per_gather = 0");
	$node->safe_psql('postgres', $try_join);
	$node->safe_psql(
		'postgres', q{
		CREATE TABLE obs AS SELECT i AS id, i * 7 % 90 AS lat, i * 11 % 180 AS lon FROM generate_series(1, 20) i;
		CREATE TABLE ref (id integer, lat float8, lon float8);
		COPY (SELECT i, i % 90, i % 180 FROM generate_series(1, 1000) i) TO '} . $node->data_dir . q{/first';
		COPY (SELECT i, i % 89, i % 180 FROM generate_series(1, 1000) i) TO '} . $node->data_dir . q{/second';
		COPY (SELECT 1000 + id, lat, lon FROM obs LIMIT 5) TO '} . $node->data_dir . q{/some';
	});
	my $add = sub { return "COPY ref FROM '" . $node->data_dir . "/$_[0]' (FREEZE);" };
	my $copy = sub { return 'TRUNCATE ref;' . $add->($_[0]) };

	is( $node->safe_psql('postgres', 'BEGIN;' . $copy->('first') . join_sql('ref') . $add->('some') . join_sql('ref') . 'ROLLBACK;'),
		"read\nread", "$level: COPY FREEZE twice, rolled back");
	is( $node->safe_psql('postgres', 'BEGIN;' . $copy->('second') . join_sql('ref') . $add->('some') . join_sql('ref') . 'COMMIT;'),
		"read\nread", "$level: COPY FREEZE twice");
	joins('read', "$level: and after its commit");
	joins($after, "$level: and then");
	$node->safe_psql('postgres', 'BEGIN;' . $copy->('first') . 'COMMIT;');
	joins('read', "$level: COPY FREEZE by another");
	joins($after, "$level: and again");
	$node->safe_psql('postgres', 'UPDATE ref SET lat = lat + 1');
	joins('read', "$level: after an UPDATE of all");
	$node->stop;
}

done_testing();
