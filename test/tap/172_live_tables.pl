
# A few points are answered by a base of the references and the pages that may differ from it: whatever changes the
# table, whenever it commits, and whichever snapshot looks, the rows are those of the definition in SQL.  First
# step by step, and then in random steps of four sessions at a time, in which joins, too, find those rows by references
# that the engine keeps.
#
# short form: 150 of 4000 random steps, 40 of 1000 with checksums, and 5 of 120 seconds beside changes
# rooms: live pages
# check-all: a long property run

use strict;
use warnings;

use Geonn;
use POSIX qw(ceil);
use PostgreSQL::Test::Utils;
use Test::More;

my $steps = $ENV{GEONN_LIVE_STEPS} // ($ENV{GEONN_LONG} ? 4000 : 150);
my $seconds = $ENV{GEONN_LONG} ? 120 : 5;
my $seed = $ENV{GEONN_LIVE_SEED} // int(rand(1_000_000));
my $node = new_server('live', preload => 1,
	conf => "autovacuum = off\njit = off\nmax_parallel_workers_per_gather = 0\nwal_level = replica\nmax_prepared_transactions = 4");

# hint bits give pages a later LSN where there are checksums: all but the last steps are without
if ($node->safe_psql('postgres', 'SHOW data_checksums') eq 'on')
{
	$node->stop;
	system_or_bail('pg_checksums', '--disable', '--no-sync', '-D', $node->data_dir);
	$node->start;
}

# some 20 rows a page, and 100 pages
my $rows = 2000;
my $fill = "INSERT INTO ref SELECT i, i * 7 % 1800 / 10.0 - 90, i * 11 % 3600 / 10.0 - 180, repeat('x', 300)
	FROM generate_series(1, $rows) i";

create_live_table($node, $fill);

# as differences() of create_live_table, where each point asks for its own neighbours
$node->safe_psql('postgres', q{
	CREATE FUNCTION lateral_differences(points integer) RETURNS bigint LANGUAGE sql STABLE AS $$
		WITH o AS MATERIALIZED (SELECT ord, (random() * 180 - 90)::float8 AS lat, (random() * 360 - 180)::float8 AS lon
				FROM generate_series(1, points) ord),
			n AS MATERIALIZED (SELECT o.ord, string_agg((ref_id, distance)::text, ' ' ORDER BY distance, ref_id) AS found
				FROM o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', 2) GROUP BY o.ord)
		SELECT count(*) FROM o LEFT JOIN n USING (ord),
			LATERAL (SELECT string_agg((id, distance)::text, ' ' ORDER BY distance, id) AS expected FROM (
				SELECT id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance FROM ref r
				WHERE r.lat IS NOT NULL ORDER BY 2, 1 LIMIT 2) r) e
		WHERE found IS DISTINCT FROM expected $$;
});

# a view of one row, one of many, and one whose row comes from a function that has its process look at more tables than it knows
$node->safe_psql('postgres', q{
	CREATE VIEW one AS SELECT 1 AS id, 1.0::float8 AS lat, 1.0::float8 AS lon, 'b'::text AS kind;
	CREATE VIEW many AS SELECT i AS id, 1.0::float8 AS lat, 1.0::float8 AS lon, 'b'::text AS kind FROM generate_series(1, 65) i;
	CREATE FUNCTION look_at_others() RETURNS float8 LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. 20 LOOP
			EXECUTE format('SELECT count(*) FROM geonn_nearest_points(ARRAY[1.0::float8], ARRAY[1.0::float8], %L)', 'other_' || i);
		END LOOP;
		RETURN 1;
	END $$;
	CREATE VIEW busy AS SELECT 1 AS id, look_at_others() AS lat, 1.0::float8 AS lon;
	DO $$
	BEGIN
		FOR i IN 1 .. 20 LOOP
			EXECUTE format('CREATE TABLE other_%s AS SELECT j AS id, j::float8 AS lat, j::float8 AS lon FROM generate_series(1, 50) j', i);
			EXECUTE format('ALTER TABLE other_%s ADD PRIMARY KEY (id)', i);
		END LOOP;
	END $$;
});

# How a call in this session has its references: (pages read, rows masked, rows added), or 'engine'.
sub how
{
	my ($session, $rows) = @_;
	my $sql = 'EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM ' . (!$rows ? "geonn_nearest_points('{1}', '{1}', 'ref');" :
		"generate_series(1, $rows) lat, LATERAL geonn_nearest_points(ARRAY[lat::float8], ARRAY[lat::float8], 'ref');");
	my $out = $session ? $session->query_safe($sql) : $node->safe_psql('postgres', $sql);

	return join(' ', $out =~ /(?:Pages Read|References Masked|References Added): (\d+)/g) || 'engine';
}

# Call until the references have a base.
sub make_base
{
	my ($session) = @_;

	foreach (1 .. 50)
	{
		return if how($session) ne 'engine';
	}
	fail('a base is made');
}

my $session = $node->background_psql('postgres', on_error_die => 1);
my $other = $node->background_psql('postgres', on_error_die => 1);

# After this change, a call reads so many pages, and masks and adds so many rows (a pattern); the next one reads
# none.
sub finds
{
	my ($change, $pattern, $name, $again) = @_;

	$other->query_safe($change) if $change;
	like(how($session), qr/^($pattern)$/, "$name: so much is read, masked and added");
	like(how($session), $again // qr/^0 /, "$name: and no more the next time");
	is($session->query_safe('SELECT differences(20)'), 0, "$name: the rows are those of the definition");
}

# ---- one change after the other ----

$node->safe_psql('postgres', 'VACUUM ref');
is(how($session), 'engine', 'the first call goes to the engine');
make_base($session);
like(how($session), qr/^0 0 0$/, 'and a later one has a base');
$other->query_safe('SELECT 1');
is(how($other), '0 0 0', 'which another process finds');
finds('UPDATE ref SET lat = 1 WHERE id = 1000', '[1-3] 1 1', 'an UPDATE within its page');
finds('UPDATE ref SET lat = 2 WHERE id = 1000', '[1-3] 1 1', 'another one');
finds("UPDATE ref SET lon = 3, note = repeat('y', 4000) WHERE id = 100", '[1-4] 2 2', 'an UPDATE to another page');
finds("UPDATE ref SET note = 'z' WHERE id = 300", '[1-3] 3 3', 'an UPDATE that leaves the point as it was');
finds('DELETE FROM ref WHERE id IN (500, 1500)', '[1-4] 5 3', 'DELETEs');
finds("INSERT INTO ref VALUES (5000, 3, 3, NULL)", '[1-3] 5 4', 'an INSERT');
finds('DELETE FROM ref WHERE id = 5000', '[1-3] 5 3', 'a DELETE of what was added');
finds('BEGIN; UPDATE ref SET lat = 5 WHERE id = 700; ROLLBACK', '[1-3] 5 3', 'a change that is rolled back');
finds('UPDATE ref SET lat = NULL WHERE id = 800', '[1-3] 6 4', 'a point that loses its coordinates');
finds('UPDATE ref SET lat = 8 WHERE id = 800', '[1-3] 6 4', 'and gets others');
finds('BEGIN; SELECT FROM ref WHERE id = 1 FOR UPDATE; COMMIT', '[1-3] 6 4', 'a locked row');
finds('VACUUM ref', '\d+ 6 4', 'VACUUM');
finds('VACUUM (FREEZE) ref', '\d+ 6 4', 'VACUUM (FREEZE)');
finds("DELETE FROM ref WHERE id > $rows - 100; VACUUM ref", '\d+ 10[56] [34]', 'pages that VACUUM cuts off');
finds("INSERT INTO ref SELECT i, 3, 4, repeat('x', 1000) FROM generate_series(6000, 6040) i", '\d+ 10[56] 4[45]', 'pages that come back');
$other->query_safe('BEGIN; UPDATE ref SET lat = 20 WHERE id = 900');
finds('', '0 10[56] 4[45]', 'a change that is not committed');
finds('COMMIT', '[1-3] 10[67] 4[56]', 'its COMMIT');
$other->query_safe("BEGIN; UPDATE ref SET lat = 21 WHERE id = 901; PREPARE TRANSACTION 'p'");
finds('', '0 .*', 'a prepared transaction');
finds("COMMIT PREPARED 'p'", '[1-3] 10[78] 4[67]', 'its COMMIT');

# rows that each ask for the neighbours of their own point
$node->safe_psql('postgres', 'UPDATE ref SET lat = 22 WHERE id = 902');
like(how($session, 20), qr/^[1-3] /, 'rows of a lateral join: they are answered alike');
is($session->query_safe('SELECT lateral_differences(20)'), 0, 'as the definition has them');
is(how($session, 65), 'engine', 'many of them: the engine answers');
is($session->query_safe('SELECT lateral_differences(100)'), 0, 'as well');

# a few rows of a table, by a column: the engine reads the references once, and after the next change a base answers
sub how_by
{
	my ($call) = @_;
	my $out = $session->query_safe('EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM ' . ($call // q{geonn_nearest('obs', 'ref', ties => 'all', by => '{kind}')}));

	return join(' ', $out =~ /(?:Pages Read|References Masked|References Added): (\d+)/g) || 'engine';
}

is(how_by(), 'engine', 'by a column: the first call goes to the engine');
is(how_by(), 'engine', 'and the next one, to the references that it keeps');
foreach my $change ("kind = 'a' WHERE id = 902", "kind = 'new 1' WHERE id = 902", "kind = 'new 2' WHERE id = 902", 'kind = NULL WHERE id = 902')
{
	$node->safe_psql('postgres', "UPDATE ref SET $change");
	like(how_by(), $change =~ /^kind = 'a'/ ? qr/^\d+ 0 0$/ : qr/^[1-3] 1 1$/, "an UPDATE to $change: a base answers");
	is($session->query_safe('SELECT by_differences()'), 0, 'as the definition has it');
}
my $of_query = q{geonn_nearest_sql('SELECT i AS id, 1.0::float8 AS lat, 1.0::float8 AS lon, ''b''::text AS kind FROM generate_series(1, %d) i',
	'TABLE ref', by => '{kind}')};

is($session->query_safe('SELECT count(*) FROM ' . sprintf($of_query, 1)), 1, 'the row of a query');
is($session->query_safe('SELECT count(*) FROM ' . sprintf($of_query, 65)), 65, 'many rows');
how_by("geonn_nearest('$_', 'ref', by => '{kind}')") foreach ('one', 'many');
$node->safe_psql('postgres', 'UPDATE ref SET lat = 22 WHERE id = 902');
isnt(how_by(q{geonn_nearest('one', 'ref', by => '{kind}')}), 'engine', 'a base answers the row of a view');
is(how_by(q{geonn_nearest('many', 'ref', by => '{kind}')}), 'engine', 'many rows are left to the engine');

# other questions of a few rows or points
foreach my $call (q{geonn_within('one', 'ref', 2e6)}, q{geonn_nearest('one', 'ref', exclude_self => true)},
	q{geonn_nearest('one', 'ref', row_type => NULL::record) AS (ref_lat float8, ref_lon float8, bearing float8)},
	q{geonn_nearest_points('{1}', '{1}', 'ref', row_type => NULL::record) AS (ref_lat float8, ref_lon float8)})
{
	$node->safe_psql('postgres', 'UPDATE ref SET lat = 22 WHERE id = 902');
	isnt(how_by($call), 'engine', "a base answers $call");
}
is($session->query_safe('SELECT join_differences()'), 0, 'as the definition has them') for 1 .. 5;
# a process keeps what is within a distance: where all references would take more than it may have, the engine answers
$session->query_safe(q{SET geonn.session_memory_limit = '140kB'});
$node->safe_psql('postgres', 'UPDATE ref SET lat = 21 WHERE id = 902');
isnt(how_by(q{geonn_nearest('one', 'ref')}), 'engine', 'a base answers under a low limit');
is(how_by(q{geonn_within('one', 'ref', 2e6)}), 'engine', 'but not for all within a distance');
$session->query_safe('RESET geonn.session_memory_limit');

# the view's row comes from a function that has this process look at more tables than it knows at a time
$node->safe_psql('postgres', 'UPDATE ref SET lat = 23 WHERE id = 902');
isnt(how_by(q{geonn_nearest('busy', 'ref')}), '', 'rows that use other bases while they are counted');
foreach my $change (1 .. 3)
{
	$node->safe_psql('postgres', "UPDATE ref SET lat = 20 + $change WHERE id = 902");
	is($session->query_safe(q{SELECT n.ref_id = r.id AND n.distance = r.distance FROM geonn_nearest('busy', 'ref') n, (
		SELECT id, geonn_distance(1, 1, lat, lon) AS distance FROM ref ORDER BY 2, 1 LIMIT 1) r}), 't', 'have their own neighbours');
}

# while a transaction is in progress, its changes have no page read; once another one has ended, each page is read once
$other->query_safe('BEGIN; UPDATE ref SET lat = -lat WHERE lat IS NOT NULL');
finds('', '0 .*', 'a large UPDATE that is in progress');
$node->safe_psql('postgres', 'UPDATE ref SET note = note WHERE id = 850 AND false; SELECT txid_current()');
like(how($session), qr/^\d\d\d? /, 'once another transaction has ended: its pages are read');
finds('', '0 .*', 'while it is in progress');
$other->query_safe('ROLLBACK');
like(how($session), qr/^\d\d\d? /, 'after its ROLLBACK: its pages are read again');
finds('', '0 .*', 'after its ROLLBACK');
finds('VACUUM ref', '\d+ .*', 'and VACUUM');

# the own transaction's changes
$session->query_safe('BEGIN; UPDATE ref SET lat = 30 WHERE id = 1100');
finds('', '[1-3] .*', 'an own change', qr/^0 /);
$session->query_safe('SAVEPOINT s; DELETE FROM ref WHERE id = 1101');
finds('', '[1-3] .*', 'an own change in a subtransaction', qr/^0 /);
$session->query_safe('ROLLBACK TO s');
finds('', '[1-3] .*', 'after it was rolled back', qr/^0 /);
$session->query_safe('ROLLBACK');
finds('', '[1-3] 10[89] 4[78]', 'after all was rolled back');

# snapshots of two transactions that see the same of all others, the own changes of which differ: the first one sees one of
# its two UPDATEs, and the oldest transaction is in progress all the time
my $oldest = $node->background_psql('postgres', on_error_die => 1);

$oldest->query_safe('BEGIN; SELECT txid_current()');
$session->query_safe('BEGIN; UPDATE ref SET lat = 31 WHERE id = 1100');
$node->safe_psql('postgres', 'SELECT txid_current()');
finds('', '[1-3] .*', 'an own change, and a later transaction has ended', qr/^0 /);
$session->query_safe('UPDATE ref SET lat = 32 WHERE id = 1101; COMMIT');
finds('', '[1-9] .*', 'the next transaction', qr/^0 /);
$oldest->query_safe('COMMIT');
$oldest->quit;

# an old snapshot
$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM ref');
my $before = $session->query_safe(q{SELECT * FROM geonn_nearest_points('{50}', '{60}', 'ref')});
$other->query_safe('UPDATE ref SET lat = 50, lon = 60 WHERE id = 1200');
is($session->query_safe('SELECT differences(20)'), 0, 'an old snapshot: the rows are those of the definition');
is($session->query_safe(q{SELECT * FROM geonn_nearest_points('{50}', '{60}', 'ref')}), $before, 'as before');
is($other->query_safe(q{SELECT * FROM geonn_nearest_points('{50}', '{60}', 'ref')}), '1|1200|0', 'another session sees the change');
$session->query_safe('COMMIT');
is($session->query_safe(q{SELECT * FROM geonn_nearest_points('{50}', '{60}', 'ref')}), '1|1200|0', 'and this one, too, when it has ended');

# another file, other columns
foreach my $change ('VACUUM FULL ref', 'CLUSTER ref USING ref_pkey', 'ALTER TABLE ref ADD extra integer DEFAULT 3', "TRUNCATE ref; $fill")
{
	$other->query_safe($change);
	is(how($session), 'engine', "$change: the first call goes to the engine");
	is(how($other), '0 0 0', "$change: the second one, of another session, makes another base");
	is(how($session), '0 0 0', "$change: which the first session has, too");
	is($session->query_safe('SELECT differences(20)'), 0, "$change: the rows are those of the definition");
}

# the rows that were added are searched first
$other->query_safe('UPDATE ref SET lat = -lat, lon = -lon');
like(how($session), qr/^\d+ $rows $rows$/, 'an UPDATE of all rows: all of the base is masked');
is($session->query_safe('SELECT differences(20)'), 0, 'the rows are those of the definition');
$other->query_safe('DELETE FROM ref WHERE id % 10 > 0');
is($session->query_safe('SELECT differences(20)'), 0, 'also where few are left');
$other->query_safe("TRUNCATE ref; $fill");
make_base($session);

# a large base, most rows of which have changed: of all sessions that call at once, each has the next base
$node->safe_psql('postgres', "CREATE TABLE large AS SELECT i AS id, i % 1800 / 10.0 - 90 AS lat, i % 3600 / 10.0 - 180 AS lon
	FROM generate_series(1, 100000) i; ALTER TABLE large ADD PRIMARY KEY (id)");
my $nearest_large = q{SELECT * FROM geonn_nearest_points('{1}', '{1}', 'large')};

$session->query_safe($nearest_large) for 1 .. 2;
$other->query_safe('SELECT pg_advisory_lock(172)');
my @at_once = map { start_sql($node, "$nearest_large; SELECT pg_advisory_lock_shared(172); EXPLAIN (ANALYZE, COSTS OFF) $nearest_large;
	SELECT 'distance ' || (distance - (SELECT min(geonn_distance(1, 1, lat, lon)) FROM large))::numeric FROM ($nearest_large) n") } 1 .. 3;

ok($node->poll_query_until('postgres', q{SELECT count(*) = 3 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}), 'sessions wait');
$other->query_safe('UPDATE large SET lat = -lat / 2');
$other->query_safe('SELECT pg_advisory_unlock(172)');
foreach my $run (@at_once)
{
	my (undef, $out, $error) = finish_sql($run);

	is(join(' ', $out =~ /(?:Masked:|Added:|distance) (\d+)/g) . $error, '0 0 0', 'one of them has the next base');
}

# a limit that is lowered to less than what a session keeps, where no page of the table has changed since
my $nearest_few = q{SELECT * FROM geonn_nearest_points('{30}', '{30}', 'few')};
$other->query_safe('CREATE TABLE few AS SELECT id, lat, lon FROM ref WHERE id <= 500; UPDATE few SET lat = 20 WHERE id = 100');
$session->query_safe($nearest_few) for 1 .. 2;
$other->query_safe('UPDATE few SET lat = 30, lon = 30 WHERE id = 100');
is($session->query_safe($nearest_few), '1|100|0', 'a session that keeps a row');
$other->query_safe('UPDATE ref SET lat = 30 WHERE id = 950');
$session->query_safe(q{SET geonn.session_memory_limit = '43kB'});
is($session->query_safe($nearest_few), '1|100|0', 'and may not any more');
$session->query_safe('RESET geonn.session_memory_limit');

# what goes to the engine
$session->query_safe('BEGIN; CREATE TABLE made AS SELECT id, lat, lon FROM ref');
is($session->query_safe(q{SELECT count(*) FROM generate_series(1, 20), LATERAL (SELECT geonn_nearest_points('{1}', '{1}', 'made') OFFSET 0) n}),
	20, 'a table of the own transaction');
$session->query_safe('ROLLBACK');
$session->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE');
is(how($session), 'engine', 'SERIALIZABLE');
$session->query_safe('COMMIT');

# the engine lets go of a base
$node->safe_psql('postgres', 'ALTER SYSTEM SET geonn.kept_memory_limit = 0; SELECT pg_reload_conf()');
wait_until(sub { how($session) eq 'engine' }, 'no base is used when the engine may keep none');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET geonn.kept_memory_limit; SELECT pg_reload_conf()');
wait_until(sub { how($session) ne 'engine' }, 'and one is made again');

# calls that were answered without the engine are counted
my $calls = 'SELECT sum(calls), sum(observations), sum(rows) FROM geonn_stat';
my @counted = split /\|/, $session->query_safe($calls);
$session->query_safe(q{DO $$ BEGIN FOR i IN 1 .. 100 LOOP PERFORM geonn_nearest_points('{1, 2}', '{1, 2}', 'ref', 3); END LOOP; END $$});
my @more = split /\|/, $session->query_safe($calls);
is(join(' ', map { $more[$_] - $counted[$_] } 0 .. 2), '100 200 600', 'calls that the engine did not see are counted');

# the engine is killed
kill 'KILL', status($node, 'engine_pid');
$session->query_safe(q{SELECT pg_sleep(1.1)});
make_base($session);
is($session->query_safe('SELECT differences(20)'), 0, 'after the engine was killed');

# a snapshot has no list of subtransactions where one session has too many, though others before and behind it have one
$node->safe_psql('postgres', 'CREATE TABLE aside (number integer)');
my @busy = map { $node->background_psql('postgres', on_error_die => 1) } 0 .. 2;
foreach my $number (0 .. 2)
{
	my $subtransactions = $number == 1 ? 100 : 1;

	$busy[$number]->query_safe("BEGIN; DO \$\$ BEGIN FOR i IN 1 .. $subtransactions LOOP
		BEGIN INSERT INTO aside VALUES (i); EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END \$\$");
}
make_base($session);
for (1 .. 3)
{
	$node->safe_psql('postgres', 'UPDATE ref SET lat = -lat WHERE id = 5');
	is($session->query_safe('SELECT differences(20)'), 0, 'many subtransactions: the rows are those of the definition');
}
$_->query_safe('COMMIT') for @busy;
is($session->query_safe('SELECT differences(20)'), 0, 'also when they have ended');
$_->quit for @busy;

# a look that a cancel ends among new pages, which are gone at the next one
make_base($session);
$node->safe_psql('postgres', q{INSERT INTO ref SELECT i, i % 180 - 90, i % 360 - 180, repeat('x', 300)
	FROM generate_series(100001, 300000) i});
$session->query_safe('SET statement_timeout = 25');
$session->query_safe(q{DO $$ BEGIN PERFORM geonn_nearest_points('{1}', '{1}', 'ref');
	EXCEPTION WHEN query_canceled THEN NULL; END $$});
$session->query_safe('RESET statement_timeout');

# a session that has less time than the making of a base takes leaves it to others; a statement that a busy machine
# does not get to its end in that time shows nothing
{
	my $call = q{EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM geonn_nearest_points('{1}', '{1}', 'ref');};
	my @timeouts = ('statement_timeout', $node->pg_version < 17 ? () : 'transaction_timeout');

	# another table to the engine, and to this session
	my $forget = 'ALTER TABLE ref SET (fillfactor = 100); ALTER TABLE ref RESET (fillfactor);';
	foreach my $timeout (@timeouts)
	{
		$node->safe_psql('postgres', $forget);
		my (undef, $short) = $node->psql('postgres', "SET $timeout = '500ms';" . "\n$call" x 6, on_error_stop => 0);
		unlike($short, qr/References Masked/, "no base is made by statements that $timeout would end before");
		my $long = $node->safe_psql('postgres', "SET $timeout = '1h';" . "\n$call" x 6);
		like($long, qr/References Masked/, "and one by statements that it leaves time");
	}
}
$node->safe_psql('postgres', 'DELETE FROM ref WHERE id > 100000');
$node->safe_psql('postgres', 'VACUUM ref');
is($session->query_safe('SELECT differences(20)'), 0, 'after a cancelled look: the rows are those of the definition');

# ---- random steps of four sessions ----

srand($seed);
note "seed $seed: GEONN_LIVE_SEED=$seed GEONN_LIVE_STEPS=$steps repeats this";

# (points with wrong rows, calls) of so many steps
sub random_steps
{
	my ($count) = @_;
	my @sessions = map { $node->background_psql('postgres', on_error_die => 1) } 0 .. 3;
	my @is_open = (0) x 4;
	my ($wrong, $calls) = (0, 0);

	foreach my $step (1 .. $count)
	{
		foreach my $number (0 .. 3)
		{
			my $sql = '';

			if (!$is_open[$number] && rand() < 0.5)
			{
				$sql .= rand() < 0.4 ? 'BEGIN ISOLATION LEVEL REPEATABLE READ; ' : 'BEGIN; ';
				$is_open[$number] = 1;
			}
			$sql .= random_live_change($rows, 4, $number) . '; ' foreach 1 .. rand 3;
			$sql =~ s/SAVEPOINT s;|RELEASE s;|ROLLBACK TO s;//g if !$is_open[$number];
			$sessions[$number]->query_safe($sql) if $sql;
			if (rand() < 0.7)
			{
				my $asked = ('differences(20)', 'by_differences()', 'lateral_differences(20)', 'join_differences()')[rand 4];
				my $found = $sessions[$number]->query_safe("SELECT $asked");

				$calls++;
				$wrong += $found;
				diag("seed $seed, step $step, session $number, $asked: $found of 20 points are wrong") if $found ne '0';
			}
			next if !$is_open[$number] || rand() < 0.6;
			$is_open[$number] = 0;
			if (rand() < 0.1)
			{
				$sessions[$number]->query_safe("PREPARE TRANSACTION 'p$number'");
				$wrong += $sessions[($number + 1) % 4]->query_safe('SELECT differences(20) + join_differences() + by_differences()');
				$sessions[$number]->query_safe((rand() < 0.5 ? 'COMMIT' : 'ROLLBACK') . " PREPARED 'p$number'");
				next;
			}
			$sessions[$number]->query_safe(rand() < 0.7 ? 'COMMIT' : 'ROLLBACK');
		}
		$node->safe_psql('postgres', rand() < 0.3 ? 'VACUUM (FREEZE) ref' : 'VACUUM ref') if rand() < 0.15;
		next if rand() < 0.98 || grep { $_ } @is_open;
		$node->safe_psql('postgres', ('VACUUM FULL ref', 'CLUSTER ref USING ref_pkey', "TRUNCATE ref; $fill",
			'ALTER TABLE ref DROP IF EXISTS more; ALTER TABLE ref ADD more integer DEFAULT 7')[rand 4]);
	}
	$_->quit foreach @sessions;
	return ($wrong, $calls);
}

# (points with wrong rows, calls) while clients of pgbench change the table for so many seconds
sub beside_changes
{
	my ($seconds) = @_;
	my ($wrong, $calls, $out) = (0, 0, '');
	my @asking = map { $node->background_psql('postgres', on_error_die => 1) } 0 .. 1;
	my @changes = (
		"UPDATE ref SET lat = random() * 90 WHERE id = :i;\n",
		"BEGIN;\nUPDATE ref SET lat = random() * 90 WHERE id = :i;\nSAVEPOINT s;\nDELETE FROM ref WHERE id = :i + 1;\nROLLBACK TO s;\n" .
		  "UPDATE ref SET lon = random() * 90 WHERE id = :i;\nCOMMIT;\n",
		"BEGIN;\nDELETE FROM ref WHERE id = :i;\nINSERT INTO ref VALUES (:i, random() * 90, 50, 'i') ON CONFLICT DO NOTHING;\nCOMMIT;\n",
		"BEGIN;\nUPDATE ref SET note = repeat('n', 500) WHERE id = :i;\nROLLBACK;\n");
	my @scripts = map { ('-f', $node->basedir . "/change$_.sql") } 0 .. $#changes;

	append_to_file($scripts[ 2 * $_ + 1 ], "\\set i random(1, $rows - 1)\n$changes[$_]") foreach 0 .. $#changes;
	my $changing = IPC::Run::start([ $node->installed_command('pgbench'), '-n', '-c', 3, '-T', $seconds, @scripts,
			$node->connstr('postgres') ], '>&', \$out);
	while ($changing->pumpable)
	{
		$changing->pump_nb;
		foreach my $session (@asking)
		{
			$wrong += $session->query_safe('SELECT ' . (rand() < 0.7 ? 'differences(20)' : 'by_differences()'));
			$calls++;
		}
	}
	$changing->finish or diag($out);
	$_->quit foreach @asking;
	return ($wrong, $calls);
}

my ($beside_wrong, $beside_calls) = beside_changes($seconds);
is($beside_wrong, 0, "the rows are those of the definition, for 20 points each of calls while other sessions change the table");
cmp_ok($beside_calls, '>', 20, "which were $beside_calls");

my $alone = $node->safe_psql('postgres', 'SELECT sum(calls) - sum(batches) FROM geonn_stat');
my ($wrong, $made) = random_steps($steps);
is($wrong, 0, "the rows are those of the definition, for 20 points each of $made calls in random steps");
$alone = $node->safe_psql('postgres', 'SELECT sum(calls) - sum(batches) FROM geonn_stat') - $alone;
cmp_ok($alone, '>', $made / 3, "of which at least $alone had a base");

$session->quit;
$other->quit;
$node->stop;
system_or_bail('pg_checksums', '--enable', '--no-sync', '-D', $node->data_dir);
$node->start;
($wrong, $made) = random_steps(ceil($steps / 4));
is($wrong, 0, "with checksums, too, of $made calls");
$node->stop;
done_testing();
