
# Where the engine cannot be had, or references do not fit in memory, statements of PostGIS's whose references have a
# GiST index are answered by PostgreSQL's own plan, row by row; joins within a distance without one compare up to
# geonn.compared_pairs_limit pairs.
#
# needs: postgis
# rooms: sql
# check-all: the plans of 192_sql_joins once more, without the engine

use strict;
use warnings;

use Geonn;
use Test::More;

# no two references are equally far from a row of o
my $tables = q{
	CREATE EXTENSION postgis;
	CREATE TABLE o AS SELECT i AS id, i % 5 AS kind, ST_SetSRID(ST_MakePoint(i * 13 % 360 - 180 + 0.03, i * 7 % 170 - 85 + 0.01), 4326)::geography(Point) AS g FROM generate_series(1, 600) i;
	CREATE TABLE o_none AS TABLE o;
	INSERT INTO o_none VALUES (2000, 1, NULL), (2001, 1, 'POINT EMPTY');
	CREATE TABLE r AS SELECT i AS id, i % 4 AS kind, ST_SetSRID(ST_MakePoint(i * 17 % 3600 / 10.0 - 180, i * 11 % 1700 / 10.0 - 85), 4326)::geography(Point) AS g FROM generate_series(1, 20000) i;
	INSERT INTO r VALUES (50000, 1, NULL);
	CREATE TABLE bare AS SELECT * FROM r WHERE id <= 500;
	CREATE INDEX ON r USING gist (g);
	CREATE ROLE reader;
	GRANT SELECT ON o, r TO reader;
	CREATE POLICY but_one ON r TO reader USING (kind <> 1);
	ALTER TABLE r ENABLE ROW LEVEL SECURITY;
	ANALYZE;
};
my $nearest = sub { my ($columns, $limit) = @_; "LATERAL (SELECT $columns, o.g <-> r.g AS d FROM r ORDER BY o.g <-> r.g $limit) n" };
my @statements = (
	'SELECT o.id AS own, n.* FROM o, ' . $nearest->('r.id', 'LIMIT 2'),
	'SELECT o.id AS own, n.id, n.kind + 1 AS kind, n.d FROM o LEFT JOIN ' . $nearest->('r.id, r.kind', 'LIMIT 1 OFFSET 1') . ' ON n.kind > o.kind',
	'SELECT o.id AS own, n::text AS n FROM o CROSS JOIN ' . $nearest->('r.id, o.kind AS own_kind', 'LIMIT $1') . ' ORDER BY o.id, n.d',
	'SELECT count(*) AS rows FROM o_none o, ' . $nearest->('1 AS one', 'LIMIT 3'),
	'SELECT o.id AS own, (SELECT r.id FROM r WHERE r.id <> o.id ORDER BY r.g <-> o.g LIMIT 1) AS ref FROM o',
	'SELECT k, (SELECT sum(n.id) FROM o, ' . $nearest->('r.id', 'LIMIT 2') . ' WHERE o.kind = k) AS sum FROM generate_series(0, 4) k',
	'SELECT o.id AS own, r.id, r.kind FROM o JOIN r ON ST_DWithin(o.g, r.g, (o.kind + 1) * 3e4) AND r.kind <> o.kind',
	'SELECT o.id AS own, r.id, r.kind FROM o LEFT JOIN r ON ST_DWithin(o.g, r.g, o.kind * 3e4)',
	'SELECT o.id AS own FROM o_none o WHERE EXISTS (SELECT FROM r WHERE ST_DWithin(o.g, r.g, 5e4))',
	'SELECT o.id AS own FROM o_none o WHERE NOT EXISTS (SELECT FROM r WHERE ST_DWithin(o.g, r.g, 5e4) AND r.kind < 3)');

# Executes a statement with the node, with these settings first, and these after it was planned.  Returns the plan with
# figures, how many rows there are and are other ones than PostgreSQL's, and what is said on the way.
sub answer
{
	my ($node, $statement, $first, $later) = @_;
	my ($out, $messages);

	$node->psql('postgres', qq{
		LOAD 'geonn';
		SET plan_cache_mode = force_generic_plan;
		SET enable_nestloop = off;
		SET max_parallel_workers_per_gather = 0;
		$first
		PREPARE plain(bigint) AS $statement;
		CREATE TEMP TABLE b AS EXECUTE plain(2);
		SET geonn.enable_sql_joins = on;
		SET geonn.compared_pairs_limit = 1;
		PREPARE searched(bigint) AS $statement;
		EXPLAIN EXECUTE searched(2);
		$later
		CREATE TEMP TABLE a AS EXECUTE searched(2);
		EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) EXECUTE searched(2);
		SELECT 'rows: ' || (SELECT count(*) > 0 FROM a) || ', differences: ' || count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) x;
	}, stdout => \$out, stderr => \$messages);
	return ($out, $out =~ /^rows: (.*)/m ? $1 : '', $messages);
}

# an engine whose file is away can be had again
my ($install_path, $program) = own_installation();
my $node = new_server('own_plan', preload => 1, install_path => $install_path, conf => 'max_worker_processes = 8');

sub take_engine_away
{
	rename($program, "$program.away");
	kill('KILL', engines_of($node->{_pid}));
	wait_until(sub { !engines_of($node->{_pid}) }, 'the engine is gone');
}

$node->safe_psql('postgres', $tables);
take_engine_away();
for my $statement (@statements)
{
	for my $how ([ '', '', qr/WARNING:  PostgreSQL's own plan answers rows of a join, one after the other, as geonn's engine cannot search: / ],
		[ '', q{SET geonn.session_memory_limit = '4kB';}, qr/WARNING:  PostgreSQL's own plan answers rows of a join, one after the other, as geonn cannot keep its references/ ],
		[ 'SET ROLE reader;', '', qr/WARNING/ ])
	{
		my ($first, $later, $warning) = @$how;

		# PostGIS's function is not leakproof, so that PostgreSQL tests no index by it below a policy
		next if $first ne '' && $statement =~ /DWithin|o_none/;
		my ($out, $differences, $messages) = answer($node, $statement, $first, $later);
		my ($loops) = $out =~ /Nested Loop \(actual rows=\S+ loops=(\d+)\)\n\s*->  Custom Scan \(geonn unanswered row\)/;

		# of a row without a point, any references in memory are the nearest; an empty one may be beside one of another SRID
		is($differences, 'true, differences: 0', "$first$later$statement: the rows");
		is($loops, $later eq '' || $statement !~ /o_none/ ? 600 : $statement =~ /LATERAL/ ? 602 : 601, 'PostgreSQL\'s own plan has answered each');
		like($out, qr/Rows Compared with All References: 0/, 'and none was compared with all references');
		like($messages, $warning, 'a warning says so');
		unlike($messages, qr/ERROR/, 'and no error');
	}
}

# below a Gather, and where not all rows are taken
for my $statement (@statements[ 0, 1, 6, 8 ])
{
	my ($out, $differences) = answer($node, $statement, q{
		SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;}, '');

	like($out, qr/Gather.*geonn (subquery|within) join.*geonn unanswered row/s, "below a Gather: $statement");
	is($differences, 'true, differences: 0', 'the rows');
}
for my $statement ($statements[0], $statements[6])
{
	my ($with, $without) = map { $node->safe_psql('postgres', qq{
		SET client_min_messages = error;
		SET enable_nestloop = off;
		SET geonn.enable_sql_joins = $_;
		BEGIN;
		DECLARE c CURSOR FOR SELECT own, id FROM (SELECT * FROM ($statement) x ORDER BY own, id) y;
		FETCH 70 FROM c;
		SAVEPOINT s;
		FETCH 70 FROM c;
		ROLLBACK TO s;
		FETCH 70 FROM c;
		SELECT count(*) FROM (SELECT 1 FROM ($statement) x LIMIT 333) y;
	}) } qw(on off);

	is($with, $without, "a cursor, and LIMIT: $statement");
}

# ---- joins within a distance without an index ----

for my $case ([ '', qr/DETAIL:  The engine cannot search, and PostgreSQL has no index/ ],
	[ q{SET geonn.session_memory_limit = '4kB';}, qr/DETAIL:  The references need more memory than geonn.session_memory_limit/ ])
{
	my ($limit, $detail) = @$case;
	my $statement = 'SELECT o.id AS own, r.id FROM o JOIN bare r ON ST_DWithin(o.g, r.g, 1e6)';
	my ($out, $differences, $messages) = answer($node, $statement, '', "$limit SET geonn.compared_pairs_limit = 100000;");

	like($out, qr/geonn within join/, 'the node');
	unlike($out, qr/geonn unanswered row/, 'without a plan of PostgreSQL\'s');
	like($messages, qr/ERROR:  geonn has compared more than 100000 pairs of rows one by one/, 'has an error');
	like($messages, $detail, 'that says why');
	like($messages, qr/HINT:  Set geonn.enable_sql_joins to off/, 'and what to do');
	($out, $differences, $messages) = answer($node, $statement, '', "$limit SET geonn.compared_pairs_limit = 100000000;");
	is($differences, 'true, differences: 0', 'and its rows below the limit');
}

# ---- the engine comes back ----

for my $statement ('SELECT o.id AS own FROM few_o o WHERE EXISTS (SELECT FROM many_r r WHERE ST_DWithin(o.g, r.g, 0.001))',
	'SELECT o.id AS own, r.id FROM few_o o LEFT JOIN many_r r ON ST_DWithin(o.g, r.g, 0.001)')
{
	$node->safe_psql('postgres', q{
		CREATE TABLE IF NOT EXISTS few_o AS SELECT * FROM o WHERE id <= 60;
		CREATE TABLE IF NOT EXISTS many_r AS SELECT i AS id, ST_SetSRID(ST_MakePoint(i % 3593 / 10.0 - 180, i % 1699 / 10.0 - 85), 4326)::geography(Point) AS g FROM generate_series(1, 500000) i;
		ANALYZE few_o, many_r;
	});
	my $from = -s $node->logfile;
	my $run = start_sql($node, "SET geonn.enable_sql_joins = on; SET geonn.compared_pairs_limit = -1; SET max_parallel_workers_per_gather = 0; SET enable_nestloop = off;
		EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $statement;");

	wait_until(sub { substr(Geonn::slurp($node->logfile), $from) =~ /compares each row of a join with all references/ }, 'rows are compared without the engine');
	rename("$program.away", $program);
	my ($status, $out) = finish_sql($run);
	my ($compared) = $out =~ /Rows Compared with All References: (\d+)/;

	is($status, 0, "an engine that can be had again: $statement");
	cmp_ok($compared, '<', 60, 'its only round was searched for');
	take_engine_away();
}
rename("$program.away", $program);

# ---- what the engine leaves undecided ----

$node->safe_psql('postgres', q{
	CREATE TABLE heap AS SELECT i AS id, ST_SetSRID(ST_MakePoint(5, 5), 4326)::geography(Point) AS g FROM generate_series(1, 1500) i;
	CREATE INDEX ON heap USING gist (g);
	ANALYZE heap;
});
my ($out, $differences, $messages) = answer($node, 'SELECT o.id AS own, n.d FROM o, LATERAL (SELECT o.g <-> r.g AS d FROM heap r ORDER BY o.g <-> r.g LIMIT 1) n', '', '');
is($differences, 'true, differences: 0', 'more references at one place than a search returns');
like($out, qr/Rows Searched Again: 600\n\s*Rows Compared with All References: 0/, 'are compared with no row');
like($out, qr/Nested Loop \(actual rows=\S+ loops=600\)/, 'PostgreSQL\'s own plan answers');
unlike($messages, qr/WARNING/, 'and no warning says so');

# ---- a row that another transaction updates meanwhile ----

my $first = $node->background_psql('postgres');

$node->safe_psql('postgres', 'CREATE TABLE moving AS SELECT id, g, 0 AS near FROM o; ANALYZE moving');
$first->query_safe(q{BEGIN; UPDATE moving SET g = 'POINT(100.01 50.02)' WHERE id = 5});
my $update = start_sql($node, q{
	SET geonn.enable_sql_joins = on;
	SET enable_nestloop = off;
	SET plan_cache_mode = force_generic_plan;
	PREPARE p AS UPDATE moving m SET near = (SELECT r.id FROM r ORDER BY r.g <-> m.g LIMIT 1);
	EXPLAIN EXECUTE p;
	SET geonn.session_memory_limit = '4kB';
	EXECUTE p});
wait_until(sub { $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'}) eq '1' }, 'an UPDATE waits for another');
$first->query_safe('COMMIT');
$first->quit;
my ($code, $plan, $said) = finish_sql($update);
is($code, 0, 'and goes on') or diag($said);
like($plan, qr/geonn subquery join.*geonn unanswered row/s, 'with the node');
is($node->safe_psql('postgres', q{SELECT count(*) FROM moving m WHERE near IS DISTINCT FROM (SELECT r.id FROM r ORDER BY r.g <-> m.g LIMIT 1)}), 0,
	'the row has the nearest of where it is now');

# ---- a session that is not admitted ----

$node->safe_psql('postgres', 'ALTER SYSTEM SET geonn.max_sessions = 1; SELECT pg_reload_conf()');
my $other = $node->background_psql('postgres');

$other->query_safe(q{
	SET client_min_messages = error;
	BEGIN;
	DECLARE c CURSOR FOR SELECT * FROM geonn_nearest('few_obs', 'few_ref', k => 2);
	FETCH 1 FROM c});
for my $statement ($statements[0], $statements[6], $statements[8])
{
	my ($out, $differences, $messages) = answer($node, $statement, q{SET geonn.admission_timeout = '100ms';}, '');

	like($out, qr/geonn (subquery|within) join/, $statement);
	like($messages, qr/ERROR:  no session with the geonn engine became free within 100 ms/, 'without a session, it is the error of calls');
	unlike($messages, qr/WARNING/, 'and no row is answered without the engine');
}
$other->quit;

done_testing();
