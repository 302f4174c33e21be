
# A nearest-neighbour subquery that PostgreSQL answers has its rows, too, where the engine cannot be had, where its
# references need more memory than geonn may take, and in cursors.
# rooms: sql
# check-all: the plans of 192_sql_joins once more, without the engine

use strict;
use warnings;

use Geonn;
use Test::More;

my $tables = q{
	CREATE TABLE o AS SELECT i AS id, i * 7 % 170 - 85.0::float8 AS lat, i * 13 % 360 - 180.0::float8 AS lon FROM generate_series(1, 1500) i;
	CREATE TABLE r AS SELECT i AS id, i * 11 % 170 - 85.0::float8 AS lat, i * 17 % 360 - 180.0::float8 AS lon FROM generate_series(1, 300) i;
	CREATE TABLE whole AS TABLE r;
	INSERT INTO o VALUES (2000, NULL, 0), (2001, 5, NULL);
	INSERT INTO r VALUES (2000, NULL, 0), (2001, 5, 200);
	ANALYZE o, r, whole;
};
my $distance = 'geonn_distance(o.lat, o.lon, r.lat, r.lon)';
my $subquery = "SELECT r.id, r.lat, $distance AS d FROM r ORDER BY $distance, r.id LIMIT \$1 OFFSET \$2";

# the engine may keep these references
my $of_table = "SELECT r.id, $distance AS d FROM whole r ORDER BY $distance, r.id LIMIT \$1";

# The rows of a statement with the node, `before` its execution some more statements; and what is said on the way.
sub rows_of
{
	my ($node, $join, $values, $before, $asked) = @_;
	my $statement = "SELECT o.id AS own, n.* FROM o $join LATERAL (${\($asked // $subquery)}) n ON true";
	my ($out, $messages);

	$node->psql('postgres', qq{
		LOAD 'geonn';
		SET plan_cache_mode = force_generic_plan;
		SET jit = off;
		PREPARE plain(bigint, bigint) AS $statement;
		CREATE TEMP TABLE b AS EXECUTE plain$values;
		SET geonn.enable_sql_joins = on;
		PREPARE searched(bigint, bigint) AS $statement;
		EXPLAIN (COSTS OFF) EXECUTE searched$values;
		$before
		CREATE TEMP TABLE a AS EXECUTE searched$values;
		SELECT 'rows: ' || (SELECT count(*) FROM a) || ', differences: ' || count(*)
		FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) x;
	}, stdout => \$out, stderr => \$messages);
	like($out, $before =~ /parallel_setup_cost/ ? qr/Gather.*geonn subquery join.*Parallel Seq Scan on o/s : qr/geonn subquery join/, "the plan has the node");
	return ($out =~ /(rows: .*)/ ? $1 : '', $messages);
}

# no background worker is left for the supervisor
my $alone = new_server('sql_alone', conf => "max_worker_processes = 0\nmax_logical_replication_workers = 0");

$alone->safe_psql('postgres', $tables);
for my $case ([ 'JOIN', '(3, 0)', 4506 ], [ 'LEFT JOIN', '(1, 2)', 1502 ], [ 'LEFT JOIN', '(0, 0)', 1502 ],
	[ 'JOIN', '(3, 0)', 4506, $of_table ], [ 'LEFT JOIN', '(0, 0)', 1502, $of_table ])
{
	my ($join, $values, $rows, $asked) = @$case;
	my ($found, $messages) = rows_of($alone, $join, $values, '', $asked);

	is($found, "rows: $rows, differences: 0", "$join, $values: the rows of a server that cannot start an engine");
	if ($values eq '(0, 0)')
	{
		unlike($messages, qr/WARNING/, 'and without rows nothing is searched for');
		next;
	}
	like($messages, qr/WARNING: .*compares each row .* with all references.*could not register the geonn supervisor/, 'and a warning says why they took long');
	is(() = $messages =~ /WARNING/g, 1, 'once');
}

# Pairs are compared up to geonn.compared_pairs_limit: 302 for each row.
sub limited
{
	my ($server, $pairs, $before) = @_;
	my $statement = "SELECT o.id AS own, n.* FROM o JOIN LATERAL ($subquery) n ON true";
	my ($out, $error);

	$server->psql('postgres', qq{
		LOAD 'geonn';
		SET plan_cache_mode = force_generic_plan;
		SET geonn.enable_sql_joins = on;
		SET geonn.compared_pairs_limit = $pairs;
		PREPARE searched(bigint, bigint) AS $statement;
		EXPLAIN (COSTS OFF) EXECUTE searched(3, 0);
		$before
		SELECT 'executed';
		EXECUTE searched(3, 0);
	}, stdout => \$out, stderr => \$error);
	like($out, qr/geonn subquery join/, "$pairs pairs: the plan has the node");
	return ($out =~ /^executed\n(.*)/ms ? $1 =~ tr/\n// + 1 : 0, $error);
}

for my $case ([ $alone, '', qr/DETAIL:  The engine cannot search, and PostgreSQL has no index that finds the references of a row: could not register/ ],
	[ $alone, q{SET geonn.session_memory_limit = '4kB';}, qr/DETAIL:  The references need more memory than geonn.session_memory_limit, which is 4 kB/ ])
{
	my ($server, $before, $detail) = @$case;
	my ($rows, $error) = limited($server, 302 * 1000, $before);

	like($error, qr/ERROR:  geonn has compared more than 302000 pairs of rows one by one/, 'beyond it, that is an error');
	like($error, $detail, 'which says why');
	like($error, qr/HINT:  Set geonn.enable_sql_joins to off for this statement/, 'and what to do');
	for my $pairs (302 * 1502, -1)
	{
		($rows, $error) = limited($server, $pairs, $before);
		is($rows, 4506, 'up to it, all rows are there');
		unlike($error, qr/ERROR/, 'without an error');
	}
}

# The pairs of all nodes of a statement count, and no longer than that.
{
	my ($error, $out);
	my $one = "SELECT n.* FROM o, LATERAL ($subquery) n";

	$one =~ s/\$1/3/g;
	$one =~ s/\$2/0/g;
	$alone->psql('postgres', "LOAD 'geonn'; SET geonn.enable_sql_joins = on; SET geonn.compared_pairs_limit = @{[302 * 1502]};
		$one; $one;
		SELECT 'together'; $one UNION ALL $one", stdout => \$out, stderr => \$error);
	like($out, qr/together$/, 'two statements, each up to the limit, have their rows');
	like($error, qr/ERROR:  geonn has compared more than/, 'a statement with both is an error');
}

my $node = new_server('sql_with', preload => 1, conf => q{
	geonn.idle_session_timeout = 0
	session_preload_libraries = 'auto_explain'
	auto_explain.log_analyze = on
	auto_explain.log_timing = off});

$node->safe_psql('postgres', $tables);

# the plan has been made when the limit comes
for my $case ([ 'JOIN', '(3, 0)', 4506 ], [ 'LEFT JOIN', '(2, 1)', 3004 ], [ 'LEFT JOIN', '(NULL, 290)', 18024 ], [ 'JOIN', '(0, 0)', 0 ],
	[ 'JOIN', '(3, 0)', 4506, $of_table ], [ 'LEFT JOIN', '(NULL, 0)', 450600, $of_table ])
{
	my ($join, $values, $rows, $asked) = @$case;
	my ($found, $messages) = rows_of($node, $join, $values, q{SET geonn.session_memory_limit = '4kB';}, $asked);

	is($found, "rows: $rows, differences: 0", "$join, $values: the rows beyond geonn.session_memory_limit");
}

# another session has the only place
$node->safe_psql('postgres', 'ALTER SYSTEM SET geonn.max_sessions = 1; SELECT pg_reload_conf()');
my $other = $node->background_psql('postgres');

$other->query_safe(q{
	BEGIN;
	DECLARE c CURSOR FOR SELECT * FROM geonn_nearest('o', 'r', k => 5);
	FETCH 1 FROM c});
my $query = 'SELECT count(*) FROM o, LATERAL (' . ($subquery =~ s/\$1/2/r =~ s/\$2/0/r) . ') n';

# nor for any process below a Gather
$node->safe_psql('postgres', 'ALTER TABLE o SET (parallel_workers = 2)');
for my $case ([ 'a session' ], [ 'parallel processes', 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;' ])
{
	my ($whose, $setting) = (@$case, '');
	my ($out, $error);
	my $status = $node->psql('postgres', "SET geonn.enable_sql_joins = on; $setting SET geonn.admission_timeout = '100ms'; EXPLAIN (COSTS OFF) $query; $query",
		on_error_stop => 1, stdout => \$out, stderr => \$error);

	like($out, $setting eq '' ? qr/geonn subquery join/ : qr/Gather.*geonn subquery join/s, "$whose: the plan");
	isnt($status, 0, 'without a session, the statement fails');
	like($error, qr/ERROR:  no session with the geonn engine became free within 100 ms/, 'with the error of calls');
	unlike($error, qr/WARNING/, 'and does not compare pairs instead');
}
$node->safe_psql('postgres', 'ALTER TABLE o RESET (parallel_workers)');
$other->quit;
$node->safe_psql('postgres', 'ALTER SYSTEM RESET geonn.max_sessions; SELECT pg_reload_conf()');

# the engine ends between two rounds
my $select = 'SELECT o.id, n.id AS ref FROM o, LATERAL (' . ($subquery =~ s/\$1/3/r =~ s/\$2/0/r) . ') n';

# a node that has returned all rows holds no session: others of a long statement need its descriptors
is($node->safe_psql('postgres', "LOAD 'geonn'; SET geonn.enable_sql_joins = on; SET max_parallel_workers_per_gather = 0;
	SELECT count(*), max(sessions) FROM (" . ("SELECT ref, NULL::integer AS sessions FROM ($select) s UNION ALL " x 20) .
	"SELECT NULL, sessions FROM geonn_status()) all_parts"), '90121|0', 'of 20 nodes, one after the other, none holds a session at the end');

for my $ended ([ $select, 1 ], [ $select, 300 ], map { [ 'SELECT o.id, n.id AS ref FROM o, LATERAL (' . ($of_table =~ s/\$1/$_->[0]/r) . ') n', $_->[1] ] }
	[ 3, 1 ], [ 3, 300 ], [ 1, 100 ])
{
	my ($statement, $fetched) = @$ended;
	my $rows = $statement =~ /LIMIT 1\)/ ? 1502 : 4506;
	my $client = $node->background_psql('postgres', on_error_stop => 0);
	my $engine;

	my $from = -s $node->logfile;

	$client->query_safe(qq{
		SET geonn.enable_sql_joins = on;
		SET auto_explain.log_min_duration = 0;
		BEGIN;
		DECLARE c CURSOR FOR $statement;
		FETCH $fetched FROM c});
	($engine) = engines_of($node->{_pid});
	kill('KILL', $engine);
	wait_until(sub { return is_gone($engine) }, 'the engine is gone');
	is(split(/\n/, $client->query('FETCH ALL FROM c')), $rows - $fetched, "an engine that ends between two rounds, after $fetched rows");
	$client->query('COMMIT');
	$client->quit;

	# two rows of o have no point
	my $log = substr(Geonn::slurp($node->logfile), $from);
	my ($compared) = $log =~ /Rows Compared with All References: (\d+)/;
	is($compared, 2, 'the next one searches for the rest');
	unlike($log, qr/WARNING/, 'without a word');
	wait_until(sub { return engines_of($node->{_pid}) }, 'another engine is there');
}

# An engine that can be had again within a round answers the rest of that round.
my ($install_path, $program) = own_installation();
my $again = new_server('sql_again', preload => 1, install_path => $install_path);

$again->safe_psql('postgres', q{
	CREATE TABLE o AS SELECT i AS id, i * 7 % 170 - 85.0::float8 AS lat, i * 13 % 360 - 180.0::float8 AS lon FROM generate_series(1, 60) i;
	CREATE TABLE r AS SELECT i AS id, i % 1699 / 10.0 - 85::float8 AS lat, i % 3593 / 10.0 - 180::float8 AS lon FROM generate_series(1, 500000) i;
	ANALYZE o, r;
});
rename($program, "$program.away");
kill('KILL', engines_of($again->{_pid}));
wait_until(sub { !engines_of($again->{_pid}) }, 'the engine is gone');

my $run = start_sql($again, "SET geonn.enable_sql_joins = on; SET geonn.compared_pairs_limit = -1; SET max_parallel_workers_per_gather = 0;
	EXPLAIN (ANALYZE, TIMING OFF) SELECT o.id, n.id FROM o, LATERAL (SELECT r.id, r.lat FROM r ORDER BY geonn_distance(o.lat, o.lon, r.lat, r.lon), r.id LIMIT 1) n;");
wait_until(sub { Geonn::slurp($again->logfile) =~ /compares each row of a join with all references/ }, 'rows are compared without the engine');
rename("$program.away", $program);
my ($status, $out, $error) = finish_sql($run);
is($status, 0, 'a statement goes on when the engine can be had again');
like($out, qr/rows=60 /, 'it has all rows');
my ($compared) = $out =~ /Rows Compared with All References: (\d+)/;
cmp_ok($compared, '<', 60, 'its only round was searched for');

# cursors go backwards where they do without geonn
for my $setting ('off', 'on')
{
	my ($out, $error);

	$node->psql('postgres', "SET geonn.enable_sql_joins = $setting; SET enable_nestloop = $setting; BEGIN; DECLARE c CURSOR FOR $select; FETCH 5 FROM c; FETCH BACKWARD 2 FROM c",
		stdout => \$out, stderr => \$error);
	like($error, qr/cursor can only scan forward/, "$setting: a cursor without SCROLL goes forwards, as those of PostgreSQL's joins");
	is($node->safe_psql('postgres', qq{
		SET geonn.enable_sql_joins = $setting;
		BEGIN;
		DECLARE c SCROLL CURSOR FOR $select;
		MOVE 200 FROM c;
		FETCH BACKWARD 1 FROM c;
		FETCH FIRST FROM c;
		FETCH LAST FROM c;
	}) =~ tr/\n//, 2, "$setting: one with SCROLL goes back");
}

done_testing();
