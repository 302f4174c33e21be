
# A nearest-neighbour subquery that PostgreSQL answers has its rows, too, where the engine cannot be had, where its
# references need more memory than geonn may take, and in cursors.

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

my $node = new_server('sql_with', preload => 1, conf => 'geonn.idle_session_timeout = 0');

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
my ($found, $messages) = rows_of($node, 'JOIN', '(2, 0)', q{SET geonn.admission_timeout = '100ms';});
is($found, 'rows: 3004, differences: 0', 'the rows where no session becomes free');
like($messages, qr/WARNING: .*no session with the geonn engine became free within 100 ms/, 'and the warning');

# nor for any process below a Gather
$node->safe_psql('postgres', 'ALTER TABLE o SET (parallel_workers = 2)');
($found, $messages) = rows_of($node, 'JOIN', '(2, 0)', q{
	SET geonn.admission_timeout = '100ms';
	SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
	DISCARD PLANS;
	EXPLAIN (COSTS OFF) EXECUTE searched(2, 0);});
is($found, 'rows: 3004, differences: 0', 'the rows of parallel processes without a session');
cmp_ok(scalar(() = $messages =~ /WARNING: .*became free within 100 ms/g), '>', 0, 'and warnings');
$node->safe_psql('postgres', 'ALTER TABLE o RESET (parallel_workers)');
$other->quit;
$node->safe_psql('postgres', 'ALTER SYSTEM RESET geonn.max_sessions; SELECT pg_reload_conf()');

# the engine ends between two rounds
my $select = 'SELECT o.id, n.id AS ref FROM o, LATERAL (' . ($subquery =~ s/\$1/3/r =~ s/\$2/0/r) . ') n';

for my $ended ([ $select, 1 ], [ $select, 300 ], map { [ 'SELECT o.id, n.id AS ref FROM o, LATERAL (' . ($of_table =~ s/\$1/$_->[0]/r) . ') n', $_->[1] ] }
	[ 3, 1 ], [ 3, 300 ], [ 1, 100 ])
{
	my ($statement, $fetched) = @$ended;
	my $rows = $statement =~ /LIMIT 1\)/ ? 1502 : 4506;
	my $client = $node->background_psql('postgres', on_error_stop => 0);
	my $engine;

	$client->query_safe(qq{
		SET geonn.enable_sql_joins = on;
		SET client_min_messages = error;
		BEGIN;
		DECLARE c CURSOR FOR $statement;
		FETCH $fetched FROM c});
	($engine) = engines_of($node->{_pid});
	kill('KILL', $engine);
	wait_until(sub { return is_gone($engine) }, 'the engine is gone');
	is(split(/\n/, $client->query('FETCH ALL FROM c')), $rows - $fetched, "an engine that ends between two rounds, after $fetched rows");
	$client->quit;
	wait_until(sub { return engines_of($node->{_pid}) }, 'another engine is there');
}

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
