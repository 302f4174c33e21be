
# A refresh of a cache of a partitioned table, of a table with children or of a view of several tables reads
# only the pages that may have changed, of those tables that may have changed: whatever changes them, moves
# rows between them, attaches, detaches, empties or rewrites them, and whenever it commits.  The cache's rows are
# always those of the definition: first step by step, and then in random steps of three sessions at a time.
#
# short form: 40 of 600 random steps
# rooms: pages cache
# check-all: a long property run

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Utils;
use Test::More;

my $steps = $ENV{GEONN_PAGE_STEPS} // ($ENV{GEONN_LONG} ? 600 : 40);
my $seed = $ENV{GEONN_PAGE_SEED} // int(rand(1_000_000));

my $node = new_server('leaves', preload => 1,
	conf => "autovacuum = off\nshared_buffers = 1MB\nmax_parallel_workers_per_gather = 0\nwal_level = replica");

# hint bits would give pages a later LSN (test 206 has this case)
if ($node->safe_psql('postgres', 'SHOW data_checksums') eq 'on')
{
	$node->stop;
	system_or_bail('pg_checksums', '--disable', '--no-sync', '-D', $node->data_dir);
	$node->start;
}

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

# Three sides with the same rows: some 13 rows a page, and 20 leaves of 10 pages each.  Leaves have their columns
# in several orders, and some have had other columns.
my $columns = 'id integer, part integer, lat float8, lon float8, note text';
my $other_columns = 'gone text, note text, lon float8, gone_too bigint, lat float8, id integer, part integer';
my $leaves = 20;
my $rows = $leaves * 130;

sub leaf_sql
{
	my ($leaf, $number) = @_;

	return "CREATE TABLE $leaf (" . ($number % 3 == 1 ? $other_columns : $columns) . ') WITH (fillfactor = 70); '
		. ($number % 3 == 1 ? "ALTER TABLE $leaf DROP gone, DROP gone_too; " : '')
		. "ALTER TABLE $leaf ALTER note SET STORAGE PLAIN;\n";
}

# the rows of a leaf
sub fill_sql
{
	my ($leaf, $number) = @_;

	return "INSERT INTO $leaf (id, part, lat, lon, note) SELECT i, $number, i * 7 % 1800 / 10.0 - 90, i * 11 % 3600 / 10.0 - 180,
		repeat('x', 400) FROM generate_series($number, $rows - 1, $leaves) i;\n";
}

# a partitioned table: leaves 0 to 9 of the table itself, 10 to 18 of a partition, and the default, which is 19
my $partitioned = "CREATE TABLE parts ($columns) PARTITION BY LIST (part);
	CREATE TABLE parts_some PARTITION OF parts FOR VALUES IN (@{[join ', ', 10 .. 18]}) PARTITION BY RANGE (part);\n";
foreach my $number (0 .. $leaves - 1)
{
	my $bound = $number < 10 ? "parts ATTACH PARTITION parts_$number FOR VALUES IN ($number)"
		: $number < 19 ? "parts_some ATTACH PARTITION parts_$number FOR VALUES FROM ($number) TO (" . ($number + 1) . ')'
		: "parts ATTACH PARTITION parts_$number DEFAULT";

	$partitioned .= leaf_sql("parts_$number", $number) . fill_sql("parts_$number", $number) . "ALTER TABLE $bound;\n";
}

# a table with rows of its own, which are leaf 0, and children, of whom one has the others from 10 on
my $inherited = "CREATE TABLE heirs ($columns) WITH (fillfactor = 70); ALTER TABLE heirs ALTER note SET STORAGE PLAIN;"
	. fill_sql('heirs', 0);
foreach my $number (1 .. $leaves - 1)
{
	$inherited .= leaf_sql("heirs_$number", $number) . fill_sql("heirs_$number", $number)
		. "ALTER TABLE heirs_$number INHERIT " . ($number <= 10 ? 'heirs' : 'heirs_10') . ";\n";
}

# a view of tables
my $united = join('', map { leaf_sql("united_$_", $_) . fill_sql("united_$_", $_) } 0 .. $leaves - 1)
	. 'CREATE VIEW united AS ' . join(' UNION ALL ', map { "SELECT id, lat, lon FROM united_$_" } 0 .. $leaves - 1);

my $few = "CREATE TABLE few (id integer PRIMARY KEY, lat float8, lon float8);
	INSERT INTO few SELECT i, i * 13 % 180 - 90, i * 17 % 360 - 180 FROM generate_series(1, 40) i;";

# How many of the cache's rows differ from those that a search finds.
sub wrong_rows
{
	my ($cache, $call) = @_;

	return "SELECT count(*) FROM $cache t FULL JOIN geonn_nearest($call, row_type => NULL::$cache) n USING (obs_id, rank)
		WHERE (t.obs_id IS NULL) <> (n.obs_id IS NULL) OR (t.ref_id, t.distance) IS DISTINCT FROM (n.ref_id, n.distance);";
}

# Refresh the cache near.  Returns of which leaves rows were read, with how many pages in all ("all": whole), and
# whether points have changed.
sub refresh
{
	my ($side, $before, $after) = @_;
	my ($out, $err);

	$node->psql('postgres', 'BEGIN; ' . ($before // '') . "SET LOCAL client_min_messages = debug1;
			CALL geonn_refresh('near', 'incremental');
			SELECT 'read ' || relname || ' ' || pg_stat_get_xact_tuples_returned(oid) FROM pg_class
				WHERE relname ~ '^$side(_[0-9a-z]+)?\$' AND relkind = 'r' AND pg_stat_get_xact_tuples_returned(oid) > 0
				ORDER BY ('0' || regexp_replace(relname, '\\D', '', 'g'))::integer;
			SELECT mode FROM geonn_cache_log WHERE name = 'near' ORDER BY started DESC LIMIT 1;" . ($after // 'COMMIT'),
		stdout => \$out, stderr => \$err, on_error_die => 1);

	my $changes = $out =~ /^unchanged/m ? 0 : 1;
	my %read = $out =~ /^read (\w+) (\d+)/mg;
	my ($pages) = $err =~ /relation "$side" is read where it may have changed: on (\d+) of/;
	my $names = join ' ', map { /(?:_|^)(\d+|new)$/ ? $1 : '0' } $out =~ /^read (\w+)/mg;
	my $most = 0;
	$most += $_ foreach values %read;

	return ("all $names", $changes) if !defined $pages && $names;
	return ($names, $changes) if !defined $pages || $most <= 100 * $pages;
	return ("$names: $most rows on $pages", $changes);
}

# A refresh that reads pages may prune them, and then the next one reads them again.
sub settle
{
	my ($side) = @_;

	foreach (1 .. 4)
	{
		my ($read) = refresh($side);
		return if $read eq '';
	}
	fail("$side: nothing is read if nothing changes");
}

# After this change, the refresh reads rows of these leaves (a pattern), and finds that points have changed, or not.
sub reads
{
	my ($side, $change, $leaves, $changes, $name) = @_;

	sql($change) if $change;
	my ($read, $changed) = refresh($side);

	like($read, qr/^($leaves)$/, "$side, $name: rows of these tables are read");
	is($changed, $changes, "$side, $name: the refresh finds " . ($changes ? 'a change' : 'no change'));
	is(sql(wrong_rows('near', "'$side', 'few', keep_unmatched => true")), 0, "$side, $name: the rows are those of the definition");
}

# ---- one change after the other ----

my $all = 'all [0-9 ]+';
my $foreign = $node->basedir . '/foreign.csv';
append_to_file($foreign, "99999,20,1.5,2.5,foreign,3\n");

my %changes = (
	parts => [
		[ 'an UPDATE', 'UPDATE parts SET lat = 1 WHERE id = 503', '3', 1 ],
		[ 'an UPDATE of a leaf with other columns', 'UPDATE parts SET lat = 1 WHERE id = 504', '4', 1 ],
		[ 'UPDATEs of two leaves', 'UPDATE parts SET lat = 2 WHERE id IN (503, 512)', '3 12', 1 ],
		[ 'a row that goes to another leaf', 'UPDATE parts SET part = 5 WHERE id = 506', '5 6', 0 ],
		[ 'a row that goes to another leaf and place', 'UPDATE parts SET part = 15, lat = 3 WHERE id = 506', '5 15', 1 ],
		[ 'a row that goes to the default', 'UPDATE parts SET part = 77 WHERE id = 506', '15 19', 0 ],
		[ 'an INSERT', "INSERT INTO parts VALUES (10000, 7, 3, 3, 'new')", '7', 1 ],
		[ 'a DELETE', 'DELETE FROM parts WHERE id = 10000', '7', 1 ],
		[ 'a change that is rolled back', 'BEGIN; UPDATE parts SET part = 9, lat = 5 WHERE id = 508; ROLLBACK', '8 9', 0 ],
		[ 'VACUUM', 'VACUUM parts', '[0-9 ]*', 0 ],
		[ 'a DETACH', 'ALTER TABLE parts DETACH PARTITION parts_2', '', 1 ],
		[ 'the ATTACH of the same', 'ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES IN (2)', '2', 1 ],
		[ 'DETACH and ATTACH', 'ALTER TABLE parts DETACH PARTITION parts_2; ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES IN (2)', '2', 0 ],
		[ 'a DETACH CONCURRENTLY', 'ALTER TABLE parts_some DETACH PARTITION parts_11 CONCURRENTLY', '', 1 ],
		[ 'its change while it is detached', 'UPDATE parts_11 SET lat = 8; ALTER TABLE parts_some ATTACH PARTITION parts_11 FOR VALUES FROM (11) TO (12)', '11', 1 ],
		[ 'a new leaf', 'CREATE TABLE parts_20 PARTITION OF parts FOR VALUES IN (20)', '', 0 ],
		[ 'rows of the new leaf', fill_sql('parts_20', 20) =~ s/SELECT i,/SELECT i + 5000,/r, '20', 1 ],
		[ 'a row of the new leaf', 'UPDATE parts SET lat = 9 WHERE id = 5020', '20', 1 ],
		[ 'DROP of a leaf', 'DROP TABLE parts_20', '', 1 ],
		[ 'a leaf that another one follows', 'DROP TABLE parts_13; CREATE TABLE parts_20 PARTITION OF parts FOR VALUES IN (20); '
			. "INSERT INTO parts_20 VALUES (5020, 20, 1, 1, 'x')", '20', 1 ],
		[ 'TRUNCATE of a leaf', 'TRUNCATE parts_20', '', 1 ],
		[ 'TRUNCATE of a large one', 'TRUNCATE parts_14', '', 1 ],
		[ 'rows of it', fill_sql('parts_14', 14), '14', 1 ],
		[ 'VACUUM FULL of a leaf', 'VACUUM FULL parts_9', '9', 0 ],
		[ 'a change after VACUUM FULL', 'UPDATE parts SET lat = 14 WHERE id = 509', '9', 1 ],
		[ 'CLUSTER of a leaf', 'CREATE INDEX by_lat ON parts_8 (lat); CLUSTER parts_8 USING by_lat', '8', 0 ],
		[ 'DETACH of half of the leaves', 'ALTER TABLE parts DETACH PARTITION parts_some', '[0-9 ]*|' . $all, 1 ],
		[ 'their ATTACH', "ALTER TABLE parts ATTACH PARTITION parts_some FOR VALUES IN (@{[join ', ', 10 .. 18]})", $all, 1 ],
		[ 'a change after it', 'UPDATE parts SET lat = 15 WHERE id = 510', '10', 1 ],
		[ 'ADD COLUMN', 'ALTER TABLE parts ADD extra integer DEFAULT 3', $all, 0 ],
		[ 'a change after ADD COLUMN', 'UPDATE parts SET lat = 16 WHERE id = 510', '10', 1 ],
		[ 'row-level security of a leaf, which does not apply', 'ALTER TABLE parts_3 ENABLE ROW LEVEL SECURITY', '3', 0 ],
		[ 'an unlogged leaf', 'DROP TABLE parts_20; CREATE UNLOGGED TABLE parts_20 PARTITION OF parts FOR VALUES IN (20)', $all, 0 ],
		[ 'a change beside an unlogged leaf', 'UPDATE parts SET lat = 17 WHERE id = 510', $all, 1 ],
		[ 'a foreign leaf', "DROP TABLE parts_20; CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
			CREATE FOREIGN TABLE parts_foreign ($columns, extra integer) SERVER files OPTIONS (filename '$foreign', format 'csv');
			ALTER TABLE parts ATTACH PARTITION parts_foreign FOR VALUES IN (20)", $all, 1 ],
		[ 'a change beside a foreign leaf', 'UPDATE parts_10 SET lat = 18 WHERE id = 510', $all, 1 ],
		[ 'no foreign leaf', 'DROP FOREIGN TABLE parts_foreign', $all, 1 ],
		[ 'a change after that', 'UPDATE parts SET lat = 19 WHERE id = 510', '10', 1 ],
		[ 'all leaves go', 'TRUNCATE parts', '', 1 ],
		[ 'rows come back', fill_sql('parts', 5), $all . '|5', 1 ] ],
	heirs => [
		[ 'an UPDATE', 'UPDATE heirs SET lat = 1 WHERE id = 503', '3', 1 ],
		[ 'an UPDATE of the table itself', 'UPDATE ONLY heirs SET lat = 1 WHERE id = 500', '0', 1 ],
		[ 'an UPDATE of a child\'s child', 'UPDATE heirs SET lat = 1 WHERE id = 516', '16', 1 ],
		[ 'an INSERT', "INSERT INTO heirs VALUES (10000, 0, 3, 3, 'new')", '0', 1 ],
		[ 'NO INHERIT', 'ALTER TABLE heirs_16 NO INHERIT heirs_10', '', 1 ],
		[ 'INHERIT elsewhere', 'ALTER TABLE heirs_16 INHERIT heirs_3', '(3 )?16', 1 ],
		[ 'a new child', 'CREATE TABLE heirs_20 () INHERITS (heirs)', '', 0 ],
		[ 'rows of it', "INSERT INTO heirs_20 VALUES (5020, 20, 1, 1, 'x')", '20', 1 ],
		[ 'more rows of it', fill_sql('heirs_20', 20) =~ s/SELECT i,/SELECT i + 6000,/r, '20', 1 ],
		[ 'VACUUM of it', 'VACUUM heirs_20', '(20)?', 0 ],
		[ 'DROP TABLE', 'DROP TABLE heirs_20', '', 1 ],
		[ 'TRUNCATE ONLY', 'TRUNCATE ONLY heirs', '', 1 ],
		[ 'all children go', 'DROP TABLE ' . join(', ', map { "heirs_$_" } 1 .. 10) . ' CASCADE', '', 1 ],
		[ 'rows of the table itself', fill_sql('heirs', 0), $all . '|0', 1 ],
		[ 'an UPDATE after that', 'UPDATE heirs SET lat = 5 WHERE id = 500', '0', 1 ] ],
	united => [
		[ 'an UPDATE', 'UPDATE united_3 SET lat = 1 WHERE id = 503', '3', 1 ],
		[ 'a row that goes to another table', 'WITH gone AS (DELETE FROM united_4 WHERE id = 504 RETURNING id, lat, lon)
			INSERT INTO united_5 (id, lat, lon) SELECT * FROM gone', '4 5', 0 ],
		[ 'a view of fewer tables', 'CREATE OR REPLACE VIEW united AS '
			. join(' UNION ALL ', map { "SELECT id, lat, lon FROM united_$_" } 1 .. $leaves - 1), '', 1 ],
		[ 'a view that reads a table twice', 'CREATE OR REPLACE VIEW united AS '
			. join(' UNION ALL ', map { "SELECT id, lat, lon FROM united_$_" } 1 .. $leaves - 1)
			. ' UNION ALL SELECT part + 50000 AS id, lat, lon FROM ONLY united_1 WHERE id = 1', $all, 1 ] ]);

sql($few);
my %create = (parts => $partitioned, heirs => $inherited, united => $united);
foreach my $side (qw(parts heirs united))
{
	sql("$create{$side};");
	sql('VACUUM');
	sql("SELECT geonn_cache_create('near', '$side', 'few', keep_unmatched => true)");
	foreach my $change (@{$changes{$side}})
	{
		my ($name, @rest) = @$change;

		settle($side) if $name !~ /unlogged|foreign/;
		reads($side, @rest, $name);
	}
	sql("SELECT geonn_cache_drop('near')");
}

# ---- transactions that are open while the cache is refreshed, and what attaches meanwhile ----

sql('DROP TABLE parts, parts_2; DROP VIEW united;');
sql("$partitioned; VACUUM");
sql("SELECT geonn_cache_create('near', 'parts', 'few', keep_unmatched => true)");
my $other = $node->background_psql('postgres', on_error_die => 1);

foreach my $end ('ROLLBACK', 'COMMIT')
{
	settle('parts');
	$other->query_safe('BEGIN; UPDATE parts SET part = 12 WHERE id = 507;');
	reads('parts', '', '7( 12)?', 0, 'a row that goes to another leaf and is not committed');
	reads('parts', '', '7( 12)?', 0, 'a row that goes to another leaf and is not committed for longer');
	$other->query_safe("UPDATE parts SET lat = 33 WHERE id = 507; $end");
	reads('parts', '', '7( 12)?', $end eq 'COMMIT' ? 1 : 0, "a row that goes to another leaf, and $end");
}

# a refresh by an older snapshot does not see what was committed before it read
settle('parts');
$other->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM few;');
sql('UPDATE parts SET part = 3, lat = 34 WHERE id = 507');
$other->query_safe("CALL geonn_refresh('near', 'incremental'); COMMIT;");
reads('parts', '', '3( 12)?', 1, 'a change that the last refresh\'s older snapshot did not see');

# what the own transaction has emptied, or attached
foreach my $end ('ROLLBACK', 'COMMIT')
{
	settle('parts');
	my ($read, $changed) = refresh('parts', 'TRUNCATE parts_4;', "$end;");
	is($changed, 1, "a refresh sees that its own transaction has emptied a leaf, before its $end");
	is(sql(wrong_rows('near', "'parts', 'few', keep_unmatched => true")), 0, "the rows are right after the $end");
	($read, $changed) = refresh('parts', 'CREATE TABLE parts_20 PARTITION OF parts FOR VALUES IN (20); '
		. "INSERT INTO parts VALUES (5020, 20, 1, 1, 'x');", "$end;");
	is($changed, 1, "a refresh sees a leaf that its own transaction has made, before its $end");
	is(sql(wrong_rows('near', "'parts', 'few', keep_unmatched => true")), 0, "the rows are right after the $end");
}

# a table that becomes a child while a refresh reads: this waits for a lock when it reads its references
sql(q{
	CREATE FUNCTION wait() RETURNS boolean VOLATILE LANGUAGE sql AS 'SELECT pg_advisory_xact_lock(1) IS NOT NULL';
	CREATE VIEW slow AS SELECT id, lat, lon FROM few WHERE wait();
	SELECT geonn_cache_create('slowly', 'heirs', 'slow', keep_unmatched => true)});
sql(leaf_sql('heirs_21', 21) . "INSERT INTO heirs_21 (id, part, lat, lon) SELECT 6000 + i, 21, i, i FROM generate_series(1, 10) i");
foreach my $mode ('incremental', 'full')
{
	$other->query_safe('SELECT pg_advisory_lock(1)');
	my ($out, $err) = ('', '');
	my $refresh = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', '\set VERBOSITY verbose', '-c',
		"CALL geonn_refresh('slowly', '$mode')" ], '>', \$out, '2>', \$err);
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted});
	sql('ALTER TABLE heirs_21 INHERIT heirs');
	$other->query_safe('SELECT pg_advisory_unlock(1)');
	$refresh->finish;
	like($err, qr/ERROR:  40001: relation "heirs" got or lost a table while cache "slowly" was made from it/,
		"$mode: a refresh fails if a table becomes a child while it works");
	sql("CALL geonn_refresh('slowly', 'incremental')");
	is(sql(wrong_rows('slowly', "'heirs', 'few', keep_unmatched => true")), 0, "$mode: the next refresh has the rows of that child");
	sql('ALTER TABLE heirs_21 NO INHERIT heirs');
}
sql("SELECT geonn_cache_drop('slowly'); DROP TABLE heirs_21; SELECT geonn_cache_drop('near')");
$other->quit;

# ---- random steps of three sessions ----

srand($seed);
note "seed $seed: GEONN_PAGE_SEED=$seed GEONN_PAGE_STEPS=$steps repeats this";

sql("DROP TABLE heirs; $inherited; CREATE TABLE some_obs (id integer, lat float8, lon float8);
	INSERT INTO some_obs SELECT i, i * 29 % 180 - 90, i * 31 % 360 - 180 FROM generate_series(1, 30) i; VACUUM");
# observations and references of both kinds
my %call = (
	near => "'parts', 'few', keep_unmatched => true",
	far => "'some_obs', 'parts', k => 100",
	near_heirs => "'heirs', 'few', keep_unmatched => true",
	far_heirs => "'some_obs', 'heirs', k => 100",
	two => "'heirs', 'parts', k => 2");
sql("SELECT geonn_cache_create('$_', $call{$_})") foreach sort keys %call;

# a change of rows that are this session's own
sub random_change
{
	my ($session) = @_;
	my $side = (qw(parts heirs))[rand 2];
	my $id = 2 * int(rand($rows / 2)) + $session;
	my $place = sprintf('%.1f', rand(180) - 90);
	my $move = $side eq 'parts' ? "UPDATE parts SET part = " . int(rand($leaves + 2)) . " WHERE id = $id"
		: "WITH gone AS (DELETE FROM heirs WHERE id = $id RETURNING id, part, lat, lon, note) INSERT INTO heirs_" . (1 + int(rand(3)))
			. ' (id, part, lat, lon, note) SELECT * FROM gone';

	return (
		"UPDATE $side SET lat = $place WHERE id = $id",
		"UPDATE $side SET lat = 30, lon = 40 WHERE id = $id",
		"UPDATE $side SET lat = NULL WHERE id = $id",
		"UPDATE $side SET note = repeat('r', " . int(rand(4000)) . ") WHERE id = $id",
		"DELETE FROM $side WHERE id = $id",
		"INSERT INTO $side SELECT $id, " . int(rand($leaves)) . ", $place, 50 WHERE NOT EXISTS (SELECT FROM $side WHERE id = $id)",
		"UPDATE $side SET lat = $place WHERE id % 2 = $session AND id / 50 = $id / 50",
		$move, $move,
		"SAVEPOINT s; $move; " . (rand() < 0.5 ? 'RELEASE s' : 'ROLLBACK TO s'))[rand 10];
}

# what needs both tables for itself
sub upheaval
{
	my $number = 1 + int(rand(9));
	my $parts = "parts_$number";
	my $heirs = "heirs_$number";
	my $from = 20 + int(rand(50));
	my $list = "FOR VALUES IN ($number)";

	return (
		"VACUUM FULL $parts", "VACUUM FULL $heirs", "VACUUM (FREEZE) $parts", "VACUUM (FREEZE) $heirs",
		"TRUNCATE $parts", "TRUNCATE $heirs",
		"ALTER TABLE parts DETACH PARTITION $parts; UPDATE $parts SET part = $number; ALTER TABLE parts ATTACH PARTITION $parts $list",
		"BEGIN; ALTER TABLE parts DETACH PARTITION $parts; ROLLBACK",
		"ALTER TABLE parts DETACH PARTITION $parts; DROP TABLE $parts; CREATE TABLE $parts PARTITION OF parts (id) $list",
		"ALTER TABLE $heirs NO INHERIT heirs; DELETE FROM $heirs WHERE id % 7 = 0; ALTER TABLE $heirs INHERIT heirs",
		"DROP TABLE $heirs; CREATE TABLE $heirs () INHERITS (heirs)",
		"BEGIN; TRUNCATE parts_2; UPDATE parts SET lat = 1 WHERE part = 5; SELECT 1; COMMIT",
		"CREATE TABLE IF NOT EXISTS heirs_$from () INHERITS (heirs)",
		"ALTER TABLE heirs ADD COLUMN IF NOT EXISTS extra integer DEFAULT 3",
		"VACUUM", "VACUUM")[rand 16];
}

my @sessions = map { $node->background_psql('postgres', on_error_die => 1) } 0, 1;
my @is_open = (0, 0);
my ($wrong, $read_few, $refreshes) = (0, 0, 0);

foreach my $step (1 .. $steps)
{
	my @changes;

	foreach my $session (0, 1)
	{
		next if rand() < 0.3;
		$sessions[$session]->query_safe('BEGIN') if !$is_open[$session];
		$sessions[$session]->query_safe(random_change($session) . ';') foreach 0 .. rand 2;
		$is_open[$session] = rand() < 0.3;
		$sessions[$session]->query_safe(rand() < 0.7 ? 'COMMIT' : 'ROLLBACK') if !$is_open[$session];
	}
	sql(join "\n", map { "$_;" } split /; /, upheaval()) if rand() < 0.3 && !$is_open[0] && !$is_open[1];
	sql('VACUUM parts; ') if rand() < 0.1;
	next if rand() < 0.2;

	my ($out, $err);
	my $mode = rand() < 0.05 ? 'full' : 'incremental';
	my @names = sort keys %call;
	$node->psql('postgres', 'SET client_min_messages = debug1;' . join('', map { "CALL geonn_refresh('$_', '$mode');" } @names)
			. 'SET client_min_messages = error;' . join('', map { wrong_rows($_, $call{$_}) } @names),
		stdout => \$out, stderr => \$err, on_error_die => 1);
	$refreshes++;
	$read_few += () = $err =~ /is read where it may have changed/g;
	next if $out eq join "\n", (0) x @names;
	$wrong++;
	diag("seed $seed, step $step, $mode: differences of @names: $out");
}
$_->quit foreach @sessions;
is($wrong, 0, "the rows are those of a search for everything, after each of $refreshes refreshes in random steps");
cmp_ok($read_few, '>', 2 * $refreshes, 'most of which read only some pages');
sql("SELECT geonn_cache_drop('$_')") foreach sort keys %call;

# ---- many leaves ----

sql('DROP TABLE parts; CREATE TABLE parts (id integer, part integer, lat float8, lon float8) PARTITION BY LIST (part);
	' . join('', map { "CREATE TABLE parts_$_ PARTITION OF parts FOR VALUES IN ($_);\n" } 0 .. 999)
	. 'INSERT INTO parts SELECT i, i % 1000, i % 180 - 90, i % 360 - 180 FROM generate_series(1, 20000) i; VACUUM;');
sql("SELECT geonn_cache_create('near', 'parts', 'few')");
settle('parts');
reads('parts', 'UPDATE parts SET lat = lat * 0.99 WHERE id IN (700, 1200)', '200 700', 1, 'one of 1,000 leaves');
settle('parts');
my $scans = q{SELECT idx_scan FROM pg_stat_user_indexes WHERE relname = 'geonn_cache_page'};
my $before = sql("SELECT pg_stat_force_next_flush(); $scans") =~ s/\s//gr;
sql(q{UPDATE parts SET lat = lat * 0.99 WHERE id = 800; CALL geonn_refresh('near', 'incremental')});
my $after = sql("SELECT pg_stat_force_next_flush(); $scans") =~ s/\s//gr;
cmp_ok($after - $before, '<', 3000, 'the states of 1,000 leaves are looked up once each');
sql('DROP TABLE parts_5; CREATE TABLE parts_1000 PARTITION OF parts FOR VALUES IN (1000); INSERT INTO parts VALUES (50000, 1000, 1, 1)');
reads('parts', '', '800 1000|1000', 1, 'leaves that come and go among 1,000');
$node->stop;
done_testing();
