
# A refresh of a cache of plain tables reads only the pages that may have changed since the last
# one, whatever changes them and whenever it commits, and the cache's rows are always those of the
# definition: first step by step, and then in random steps of three sessions at a time.
#
# short form: 60 of 1000 random steps, and 12 of 200 with checksums
# rooms: pages cache
# check-all: random steps of three sessions for three quarters of a minute

use strict;
use warnings;

use Geonn;
use POSIX qw(ceil);
use PostgreSQL::Test::Utils;
use Test::More;

my $steps = $ENV{GEONN_PAGE_STEPS} // ($ENV{GEONN_LONG} ? 1000 : 60);
my $seed = $ENV{GEONN_PAGE_SEED} // int(rand(1_000_000));

# few shared buffers: so a scan begins where the last one was
my $node = new_server('pages', preload => 1,
	conf => "autovacuum = off\nshared_buffers = 1MB\nmax_parallel_workers_per_gather = 0\nwal_level = replica");

# with checksums, hint bits and marks of all-visible pages give pages a later LSN, and more pages are read:
# so all but the last steps are without
if ($node->safe_psql('postgres', 'SHOW data_checksums') eq 'on')
{
	$node->stop;
	system_or_bail('pg_checksums', '--disable', '--no-sync', '-D', $node->data_dir);
	$node->start;
}

# some 13 rows a page, and 230 pages
my $rows = 3000;
my $fill = "INSERT INTO obs SELECT i, i * 7 % 1800 / 10.0 - 90, i * 11 % 3600 / 10.0 - 180, repeat('x', 400)
	FROM generate_series(1, $rows) i";

sub create_tables
{
	return qq{
		CREATE TABLE obs (id integer PRIMARY KEY, lat float8, lon float8, note text) WITH (fillfactor = 70);
		ALTER TABLE obs ALTER note SET STORAGE PLAIN;
		CREATE INDEX ON obs (lon);
		CREATE TABLE ref (id integer PRIMARY KEY, lat float8, lon float8);
		$fill;
		INSERT INTO ref SELECT i, i * 13 % 180 - 90, i * 17 % 360 - 180 FROM generate_series(1, 40) i;
	};
}

# How many of a cache's rows differ from those that SQL finds.
sub wrong_rows
{
	my ($cache, $obs, $ref, $k) = @_;

	return "SELECT count(*) FROM $cache t FULL JOIN (
		SELECT o.id AS obs_id, (row_number() OVER (PARTITION BY o.id ORDER BY r.distance, r.id))::integer AS rank,
			r.id AS ref_id, r.distance
		FROM $obs o LEFT JOIN LATERAL (SELECT id, geonn_distance(o.lat, o.lon, lat, lon) AS distance FROM $ref
			WHERE o.lat IS NOT NULL ORDER BY 2, 1 LIMIT $k) r ON true) n USING (obs_id, rank)
		WHERE (t.obs_id IS NULL) <> (n.obs_id IS NULL) OR (t.ref_id, t.distance) IS DISTINCT FROM (n.ref_id, n.distance)";
}
# the rows of the last pages: as few that VACUUM cuts them off, and as many that it does
my $at_end = "(ctid::text::point)[0] >= pg_relation_size('obs') / 8192 - 20";
my $wrong = wrong_rows('near', 'obs', 'ref', 1);

# Refresh the cache.  Returns on how many pages a table was read ("none": it was not even looked at,
# "whole": on all), and whether points have changed.
sub refresh
{
	my ($table, $before, $after) = @_;
	my ($out, $err);

	$node->psql('postgres', 'BEGIN; ' . ($before // '') . "SET LOCAL client_min_messages = debug1;
			CALL geonn_refresh('near', 'incremental');
			SELECT 'read ' || pg_stat_get_xact_tuples_returned('$table'::regclass);
			SELECT mode FROM geonn_cache_log WHERE name = 'near' ORDER BY started DESC LIMIT 1;" . ($after // 'COMMIT'),
		stdout => \$out, stderr => \$err, on_error_die => 1);

	my $changes = $out =~ /^unchanged/m ? 0 : 1;
	my ($rows_read) = $out =~ /^read (\d+)/m;
	my ($pages) = $err =~ /relation "(?!ref|few)\w+" is read where it may have changed: on (\d+) of/;

	return ($rows_read == 0 ? 'none' : 'whole', $changes) if !defined $pages;
	return ($rows_read <= 100 * $pages ? $pages : "$rows_read rows on $pages", $changes);
}

# Refresh until nothing is read: when a refresh reads a page, it may also prune it, and so the next one
# reads it again.
sub settle
{
	my ($table) = @_;

	foreach (1 .. 4)
	{
		my ($read) = refresh($table // 'obs');
		return if $read eq 'none' || $read eq '0';
	}
	fail('nothing is read if nothing changes');
}

# After this change, the refresh reads so many pages of obs (a pattern), and finds that points have
# changed, or not.
sub reads
{
	my ($change, $pages, $changes, $name) = @_;

	$node->safe_psql('postgres', $change) if $change;
	my ($read, $changed) = refresh('obs');

	like($read, qr/^($pages)$/, "$name: this much is read");
	is($changed, $changes, "$name: the refresh finds " . ($changes ? 'a change' : 'no change'));
	is($node->safe_psql('postgres', $wrong), 0, "$name: the rows are those of the definition");
}

# ---- one change after the other ----

foreach my $vacuum ('', 'VACUUM obs;')
{
	my $of = $vacuum ? 'of a vacuumed table' : 'of a table never vacuumed';
	my @changes = (
		[ 'an UPDATE within its page', 'UPDATE obs SET lat = 1 WHERE id = 1500', 1, 1 ],
		[ 'an UPDATE of an indexed column', 'UPDATE obs SET lon = 1 WHERE id = 1500', 1, 1 ],
		[ 'an UPDATE to another page', "UPDATE obs SET lat = 2, note = repeat('y', 4000) WHERE id = 100", 2, 1 ],
		[ 'an UPDATE that leaves the point as it was', "UPDATE obs SET note = repeat('z', 4000) WHERE id = 200", 2, 0 ],
		[ 'an INSERT', "INSERT INTO obs VALUES (10000, 3, 3, repeat('n', 4000))", 1, 1 ],
		[ 'a DELETE', 'DELETE FROM obs WHERE id = 10000', 1, 1 ],
		[ 'DELETEs on two pages', 'DELETE FROM obs WHERE id IN (700, 1700)', 2, 1 ],
		[ 'a change that is rolled back', 'BEGIN; UPDATE obs SET lat = 5 WHERE id = 800; ROLLBACK', 1, 0 ],
		[ 'points that lose their coordinates', 'UPDATE obs SET lat = NULL WHERE id IN (5, 1005, 2005)', 3, 1 ],
		[ 'one that gets them again', 'UPDATE obs SET lat = 9 WHERE id = 1005', 1, 1 ],
		[ 'points that meet at the same coordinates', 'UPDATE obs SET lat = 10, lon = 10 WHERE id % 500 = 7', 6, 1 ],
		[ 'one of them goes', 'DELETE FROM obs WHERE id = 507', 1, 1 ],
		[ 'one of them moves away', 'UPDATE obs SET lat = 11 WHERE id = 1007', 1, 1 ],
		[ 'one of them gets another id', 'UPDATE obs SET id = id + 20000 WHERE id = 1507', '[12]', 1 ],
		[ 'a locked row', 'BEGIN; SELECT FROM obs WHERE id = 1 FOR UPDATE; COMMIT', 1, 0 ],
		[ 'pages that VACUUM prunes', 'VACUUM obs', '\d+', 0 ],
		[ 'changes on some pages', 'UPDATE obs SET lat = lat * 0.99 WHERE id < 900', 'whole', 1 ],
		[ 'the refresh after it', 'UPDATE obs SET lat = 12 WHERE id = 600', '\d+', 1 ],
		[ 'changes on most pages', 'UPDATE obs SET lat = lat * 0.99 WHERE id % 3 = 0', 'whole', 1 ],
		[ 'the refresh after it, which makes lists anew', 'UPDATE obs SET lat = 12 WHERE id = 600', 'whole', 1 ],
		[ 'the one after that', 'UPDATE obs SET lat = 13 WHERE id = 600', 1, 1 ],
		[ 'VACUUM of the whole table', 'VACUUM obs', '\d+|whole', 0 ],
		[ 'points of the last pages go', "DELETE FROM obs WHERE id > $rows - 50", '[3-6]', 1 ],
		[ 'VACUUM cuts their pages off', 'VACUUM obs', '\d+', 0 ],
		[ 'VACUUM cuts off pages whose points went since', "DELETE FROM obs WHERE $at_end; VACUUM obs", '\d+', 1 ],
		[ 'pages come back', "INSERT INTO obs SELECT i, 3, 4, repeat('x', 1000) FROM generate_series(30000, 30040) i", '\d+', 1 ],
		[ 'VACUUM FULL', 'VACUUM FULL obs', 'whole', 0 ],
		[ 'a change after VACUUM FULL', 'UPDATE obs SET lat = 14 WHERE id = 2300', '[12]', 1 ],
		[ 'ADD COLUMN', 'ALTER TABLE obs ADD extra integer DEFAULT 3', 'whole', 0 ],
		[ 'a change after ADD COLUMN', 'UPDATE obs SET lat = 15 WHERE id = 2300', '[12]', 1 ],
		[ 'row-level security that does not apply', 'ALTER TABLE obs ENABLE ROW LEVEL SECURITY', 'whole', 0 ],
		[ 'TRUNCATE', 'TRUNCATE obs', 'none', 1 ],
		[ 'the table filled again', $fill, '\d+|whole', 1 ]);

	$node->safe_psql('postgres', create_tables() . $vacuum);
	$node->safe_psql('postgres', "SELECT geonn_cache_create('near', 'obs', 'ref', keep_unmatched => true)");
	foreach my $change (@changes)
	{
		settle() if $change->[0] !~ /anew/;
		reads(@$change[1 .. 3], "$change->[0], $of");
	}
	$node->safe_psql('postgres', "SELECT geonn_cache_drop('near'); DROP TABLE obs, ref");
}

# ---- transactions that are open while the cache is refreshed ----

$node->safe_psql('postgres', create_tables() . 'VACUUM obs');
$node->safe_psql('postgres', "SELECT geonn_cache_create('near', 'obs', 'ref', keep_unmatched => true)");
my $other = $node->background_psql('postgres', on_error_die => 1);

# what a transaction does that is open during one refresh, and ends before the next
my @open = (
	[ 'an UPDATE', 'UPDATE obs SET lat = 20 WHERE id = 1000' ],
	[ 'a DELETE', 'DELETE FROM obs WHERE id = 1001' ],
	[ 'an INSERT', 'INSERT INTO obs VALUES (40000, 5, 5, NULL)' ],
	[ 'an UPDATE in a subtransaction', 'SAVEPOINT s; UPDATE obs SET lat = 21 WHERE id = 1002; RELEASE s' ],
	[ 'an UPDATE of a row that others lock', 'SELECT FROM obs WHERE id = 1003 FOR KEY SHARE; SAVEPOINT s; UPDATE obs SET lat = 22 WHERE id = 1003' ]);

foreach my $how (@open)
{
	my ($name, $change) = @$how;

	foreach my $end ('ROLLBACK', 'COMMIT')
	{
		settle();
		$other->query_safe("BEGIN; $change;");
		reads('', '[12]', 0, "$name that is not committed");
		reads('', '[12]', 0, "$name that is not committed for longer");
		$other->query_safe($end);
		reads('', '[12]', $end eq 'COMMIT' ? 1 : 0, "$name before its $end");
	}
}

# a refresh by an older snapshot does not see what was committed before it read
settle();
$other->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM ref;');
$node->safe_psql('postgres', 'UPDATE obs SET lat = 23 WHERE id = 1500');
$other->query_safe("CALL geonn_refresh('near', 'incremental'); COMMIT;");
reads('', 1, 1, 'a change that the last refresh\'s older snapshot did not see');

# what the own transaction has changed
foreach my $end ('COMMIT', 'ROLLBACK')
{
	settle();
	my ($read, $changed) = refresh('obs', 'UPDATE obs SET lat = lat * 0.99 WHERE id = 1600;', "$end;");

	is("$read $changed", '1 1', "a refresh sees its own transaction's change before its $end");
	reads('', 1, 0, "after the $end of change and refresh");
	settle();
	$node->safe_psql('postgres', "BEGIN; UPDATE obs SET lat = lat * 0.99 WHERE id = 1700; SAVEPOINT s;
		CALL geonn_refresh('near', 'incremental'); ROLLBACK TO s; UPDATE obs SET lat = lat * 0.99 WHERE id = 200;
		CALL geonn_refresh('near', 'incremental'); $end");
	reads('UPDATE obs SET lat = lat * 0.99 WHERE id = 901', '[1-4]', 1, "after a refresh that was rolled back to a savepoint, and $end");
}

$other->quit;

# ---- the order of pages, and other kinds of tables ----

# a full refresh whose scans begin in the middle, where another one ended
$node->safe_psql('postgres', "SELECT note FROM obs OFFSET 1500 LIMIT 1; CALL geonn_refresh('near', 'full')");
settle();
reads('DELETE FROM obs WHERE id IN (1, 2, 1499, 1500, 1501, 1525, 1530, 1550, 2990)', '[4-9]', 1,
	'lists that a scan from the middle on has made');
reads('UPDATE obs SET lat = lat * 0.99 WHERE id < 900; SELECT note FROM obs OFFSET 1500 LIMIT 1', 'whole', 1,
	'a scan from the middle on after changes on some pages');
settle();
reads('DELETE FROM obs WHERE id IN (3, 4, 895, 896, 1502, 2989)', '\d+', 1, 'lists that this scan has changed');

# pages that VACUUM cut off come back as new ones, as after a crash of a session that added them
$node->safe_psql('postgres', 'VACUUM obs');
settle();
$node->safe_psql('postgres', "DELETE FROM obs WHERE $at_end; VACUUM obs");
my $file = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('obs')});
$node->stop;
open(my $table, '>>', $file) or die "$file: $!";
print $table "\0" x (20 * 8192);
close($table);
$node->start;
reads('', '\d+', 1, 'pages that come back as new ones');
$node->safe_psql('postgres', 'VACUUM obs');
$node->safe_psql('postgres', "SELECT geonn_cache_drop('near')");

# what is read of a view, or of a table that the WAL has nothing of
foreach my $kind (
	[ 'a view of all rows', 'CREATE VIEW other_obs AS SELECT note, lon, lat, id FROM obs', '[12]', 'VIEW' ],
	[ 'a view of some rows', 'CREATE VIEW other_obs AS SELECT id, lat, lon FROM obs WHERE id > 0', 'whole', 'VIEW' ],
	[ 'an unlogged table', 'CREATE UNLOGGED TABLE other_obs AS TABLE obs', 'whole', 'TABLE' ],
	[ 'a materialized view', 'CREATE MATERIALIZED VIEW other_obs AS TABLE obs', 0, 'MATERIALIZED VIEW' ],
	[ 'a partitioned table', 'CREATE TABLE other_obs (LIKE obs) PARTITION BY RANGE (id);
		CREATE TABLE other_1 PARTITION OF other_obs FOR VALUES FROM (0) TO (1000);
		CREATE TABLE other_2 PARTITION OF other_obs DEFAULT; INSERT INTO other_obs TABLE obs', '[12]', 'TABLE' ])
{
	my ($name, $create, $pages, $drop) = @$kind;

	$node->safe_psql('postgres', $create);
	$node->safe_psql('postgres', "SELECT geonn_cache_create('near', 'other_obs', 'ref')");
	$node->safe_psql('postgres', "UPDATE @{[$name =~ /view/ ? 'obs' : 'other_obs']} SET lat = lat * 0.99 WHERE id = 901");
	my ($read) = refresh($drop eq 'VIEW' ? 'obs' : $name =~ /partition/ ? 'other_1' : 'other_obs');

	like($read, qr/^($pages)$/, "$name is read " . ($pages eq 'whole' ? 'whole' : 'where it may have changed'));
	is($node->safe_psql('postgres', wrong_rows('near', '(SELECT * FROM other_obs WHERE lat IS NOT NULL)', 'ref', 1)), 0, "$name: the rows are those of the definition");
	$node->safe_psql('postgres', "SELECT geonn_cache_drop('near'); DROP $drop other_obs");
}

# ---- a table whose visibility map has two pages ----

$node->safe_psql('postgres', q{
	CREATE TABLE wide (id integer, lat float8, lon float8, filler text) WITH (fillfactor = 10);
	ALTER TABLE wide ALTER filler SET STORAGE PLAIN;
	INSERT INTO wide SELECT i, i * 27 % 1800 / 10.0 - 90, i * 11 % 3600 / 10.0 - 180, repeat('x', 5000)
		FROM generate_series(1, 33000) i;
	VACUUM wide});
is($node->safe_psql('postgres', q{SELECT pg_relation_size('wide', 'vm') / current_setting('block_size')::int}),
	2, 'a table whose visibility map has two pages');
$node->safe_psql('postgres', "SELECT geonn_cache_create('near', 'wide', 'ref')");
foreach my $change (
	[ '', 'none', 'nothing' ],
	[ 'DELETE FROM wide WHERE id = 32900', 1, 'a row of its second page' ],
	[ 'DELETE FROM wide WHERE id = 100', 1, 'a row of its first page' ],
	[ 'DELETE FROM wide WHERE id IN (32672, 32673, 32800, 200)', 4, 'rows of both' ],
	[ 'VACUUM wide', '\d+', 'pages that VACUUM marks' ],
	[ 'UPDATE wide SET lat = lat * 0.99 WHERE id = 32950', '[12]', 'a row of its second page, which VACUUM has marked' ])
{
	my ($sql, $pages, $what) = @$change;

	settle('wide');
	$node->safe_psql('postgres', $sql) if $sql;
	my ($read) = refresh('wide');
	like($read, qr/^($pages)$/, "a map of two pages: after a change of $what, so much is read");
	is($node->safe_psql('postgres', wrong_rows('near', 'wide', 'ref', 1)), 0, 'the rows are those of the definition');
}
$node->safe_psql('postgres', "SELECT geonn_cache_drop('near'); DROP TABLE wide");

# ---- references, of which several are the same ----

$node->safe_psql('postgres', q{
	CREATE TABLE twins (id integer, lat float8, lon float8, note text);
	INSERT INTO twins SELECT i % 500, i % 500 * 13 % 180 - 90, i % 500 * 17 % 360 - 180, repeat('x', 100)
		FROM generate_series(1, 3000) i});
$node->safe_psql('postgres', "SELECT geonn_cache_create('near', 'few_obs', 'twins', k => 9)");
foreach my $change (
	"DELETE FROM twins WHERE ctid IN (SELECT min(ctid) FROM twins GROUP BY id ORDER BY id LIMIT 5)",
	"INSERT INTO twins SELECT id, lat, lon FROM twins WHERE id = 7 LIMIT 1",
	"UPDATE twins SET note = repeat('y', 4000) WHERE ctid IN (SELECT max(ctid) FROM twins GROUP BY id ORDER BY id LIMIT 3)",
	"UPDATE twins SET id = 3 WHERE ctid IN (SELECT max(ctid) FROM twins WHERE id = 4)",
	"DELETE FROM twins WHERE id = 9",
	"VACUUM twins")
{
	$node->safe_psql('postgres', $change);
	my ($read) = refresh('twins');

	like($read, qr/^\d+$/, "references that are the same: not all are read after $change");
	is($node->safe_psql('postgres', wrong_rows('near', 'few_obs', 'twins', 9)), 0, 'the rows are those of the definition');
}
$node->safe_psql('postgres', "SELECT geonn_cache_drop('near')");

# ---- random steps of three sessions ----

srand($seed);
note "seed $seed: GEONN_PAGE_SEED=$seed GEONN_PAGE_STEPS=$steps repeats this";

$node->safe_psql('postgres', "SELECT geonn_cache_create('near', 'obs', 'ref', keep_unmatched => true)");
$node->safe_psql('postgres', "SELECT geonn_cache_create('far', 'few_obs', 'obs', k => 100)");

# (refreshes with wrong rows, how often a refresh read only some pages, refreshes) of so many steps
sub random_steps
{
	my ($count) = @_;
	my @sessions = map { $node->background_psql('postgres', on_error_die => 1) } 0, 1;
	my @is_open = (0, 0);
	my ($differences, $few, $refreshes) = (0, 0, 0);

	foreach my $step (1 .. $count)
	{
		foreach my $session (0, 1)
		{
			next if rand() < 0.3;
			$sessions[$session]->query_safe('BEGIN') if !$is_open[$session];
			$sessions[$session]->query_safe(random_row_change('obs', $rows, 2, $session) . ';') foreach 0 .. rand 2;
			$is_open[$session] = rand() < 0.4;
			$sessions[$session]->query_safe(rand() < 0.7 ? 'COMMIT' : 'ROLLBACK') if !$is_open[$session];
		}
		$node->safe_psql('postgres', 'VACUUM obs') if rand() < 0.15;
		$node->safe_psql('postgres', 'VACUUM FULL obs') if rand() < 0.02 && !$is_open[0] && !$is_open[1];
		next if rand() < 0.2;

		my ($out, $err);
		my $mode = rand() < 0.05 ? 'full' : 'incremental';

		$node->psql('postgres', "SET client_min_messages = debug1;
				CALL geonn_refresh('near', '$mode'); CALL geonn_refresh('far', '$mode');
				SET client_min_messages = error;
				SELECT count(*) FROM near t FULL JOIN geonn_nearest('obs', 'ref', keep_unmatched => true,
						row_type => NULL::near) n USING (obs_id, rank)
					WHERE (t.ref_id, t.distance) IS DISTINCT FROM (n.ref_id, n.distance)
						OR (t.obs_id IS NULL) <> (n.obs_id IS NULL);
				SELECT count(*) FROM far t FULL JOIN geonn_nearest('few_obs', 'obs', k => 100, row_type => NULL::far) n
						USING (obs_id, rank)
					WHERE (t.ref_id, t.distance) IS DISTINCT FROM (n.ref_id, n.distance);",
			stdout => \$out, stderr => \$err, on_error_die => 1);
		$refreshes++;
		$few += () = $err =~ /relation "obs" is read where it may have changed/g;
		next if $out eq "0\n0";
		$differences++;
		diag("seed $seed, step $step, $mode: differences of near and far: $out");
	}
	$_->quit foreach @sessions;
	return ($differences, $few, $refreshes);
}

my ($differences, $few, $refreshes) = random_steps($steps);
is($differences, 0, "the rows are those of a search for everything, after each of $refreshes refreshes in random steps");
cmp_ok($few, '>', $refreshes, 'most of which read only some pages');

# ---- with checksums ----

# hint bits give pages a later LSN, too: so more pages are read
$node->stop;
system_or_bail('pg_checksums', '--enable', '--no-sync', '-D', $node->data_dir);
$node->start;
($differences, $few, $refreshes) = random_steps(ceil($steps / 5));
is($differences, 0, "with checksums the rows are right after each of $refreshes refreshes in random steps");
cmp_ok($few, '>', 0, 'some of which read only some pages');
$node->stop;
done_testing();
