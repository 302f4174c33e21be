
# A call that is joined with the table of its observations by their unique id has the rows that it
# has where OFFSET 0 keeps the two apart: random arguments, conditions, joins and plans, with
# policies and barriers; and the node is left out where the rows could be others.
#
# short form: 30 of 800 statements
# rooms: plan

use strict;
use warnings;

use Geonn;
use Test::More;

my $statements = $ENV{GEONN_LONG} ? 800 : 30;
my $seed = $ENV{GEONN_OWN_ROWS_SEED} // int(rand(1_000_000));

note("seed: GEONN_OWN_ROWS_SEED=$seed");
srand($seed);

my $node = new_server('own_rows', conf => "statement_timeout = '60s'\njit = off");

my $latitude = q{CASE WHEN random() < 0.05 THEN NULL WHEN random() < 0.03 THEN 95
	WHEN random() < 0.4 THEN round(random() * 18 - 9) * 10 ELSE random() * 180 - 90 END};
my $longitude = q{CASE WHEN random() < 0.05 THEN NULL WHEN random() < 0.02 THEN 'NaN'
	WHEN random() < 0.4 THEN round(random() * 36 - 18) * 10 ELSE random() * 360 - 180 END};

my %rows = (
	row_of_integers => 'rank integer, obs_lon float8, obs_id bigint, bearing float8, ref_lat float8, ref_id bigint, obs_lat float8, distance float8',
	row_of_texts => 'distance float8, ref_id bigint, obs_lat float8, obs_id text, rank integer');

$node->safe_psql('postgres', qq{
	SELECT setseed($seed / 1e6);
	CREATE TABLE ints AS SELECT i AS id, i % 7 AS kind, $latitude AS lat, $longitude AS lon FROM generate_series(1, 400) i;
	CREATE TABLE texts AS SELECT 'a' || id AS id, lon::real, kind, lat::real FROM ints;
	CREATE TABLE named AS SELECT lon AS x, id::smallint AS code, lat AS y, kind, id FROM ints;
	CREATE TABLE ref AS SELECT i AS id, i % 5 AS kind, $latitude AS lat, $longitude AS lon FROM generate_series(1, 300) i;
	CREATE TABLE parted (id integer PRIMARY KEY, kind integer, lat float8, lon float8) PARTITION BY HASH (id);
	CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 3, REMAINDER 0);
	CREATE TABLE parted_1 (lon float8, gone text, lat float8, kind integer, id integer NOT NULL);
	ALTER TABLE parted_1 DROP gone;
	ALTER TABLE parted ATTACH PARTITION parted_1 FOR VALUES WITH (MODULUS 3, REMAINDER 1);
	CREATE TABLE parted_2 PARTITION OF parted FOR VALUES WITH (MODULUS 3, REMAINDER 2) PARTITION BY RANGE (id);
	CREATE TABLE parted_2a PARTITION OF parted_2 FOR VALUES FROM (MINVALUE) TO (200);
	CREATE TABLE parted_2b PARTITION OF parted_2 FOR VALUES FROM (200) TO (MAXVALUE);
	INSERT INTO parted SELECT id, kind, lat, lon FROM ints;
	CREATE TABLE kinds AS SELECT i AS kind, 100000.0 * i AS far, i * 11 AS id, 'a' || i * 11 AS text FROM generate_series(0, 9) i;
	-- a worker for each row of a join takes minutes
	ALTER TABLE kinds SET (parallel_workers = 0);
	ALTER TABLE ints ADD PRIMARY KEY (id);
	ALTER TABLE texts ADD PRIMARY KEY (id);
	ALTER TABLE named ALTER code SET NOT NULL, ADD UNIQUE (code);
	CREATE TYPE row_of_integers AS ($rows{row_of_integers});
	CREATE TYPE row_of_texts AS ($rows{row_of_texts});
	CREATE ROLE reader;
	GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
	CREATE POLICY but_four ON ints TO reader USING (kind <> 4);
	CREATE POLICY but_four ON parted TO reader USING (kind <> 4);
	ALTER TABLE ints ENABLE ROW LEVEL SECURITY;
	ALTER TABLE parted ENABLE ROW LEVEL SECURITY;
	ANALYZE;
});

# tables, the type of their rows, options, and the id
my @tables = (
	[ 'ints', 'row_of_integers', '{}', 'id' ], [ 'ints', 'row_of_integers', '{"batch_rows": 7}', 'id' ],
	[ 'texts', 'row_of_texts', '{}', 'id' ], [ 'parted', 'row_of_integers', '{}', 'id' ], [ 'parted', 'row_of_integers', '{"batch_rows": 7}', 'id' ],
	[ 'named', 'row_of_integers', '{"obs_id": "code", "obs_lat": "y", "obs_lon": "x"}', 'code' ]);

sub call_of
{
	my ($table, $type, $options) = @_;
	my $within = rand() < 0.2;
	my $call;
	my @arguments = ("'$table'" . pick('', '', '::text') . ", 'ref'");

	push @arguments, $within ? pick(0, 400000, 2000000) : 'k => ' . pick(1, 1, 2, 20);
	push @arguments, 'max_distance => ' . pick(0, 200000, 1000000) if !$within && rand() < 0.4;
	push @arguments, "keep_unmatched => true" if rand() < 0.3;
	push @arguments, "ties => 'all'" if !$within && rand() < 0.2;
	push @arguments, "options => '$options'", "row_type => NULL::$type";
	$call = ($within ? 'geonn_within' : 'geonn_nearest') . '(' . join(', ', @arguments) . ')';
	return rand() < 0.5 ? with_list($call, $rows{$type}) : $call;
}

sub condition
{
	my ($id) = @_;

	return pick('true', 'n.distance < 300000', 'n.ref_id % 3 = o.kind % 3', 'o.kind < 4', 'o.kind = 4', "o.$id IN (SELECT o.$id FROM kinds)",
		'n.distance > 50000 * o.kind', 'n.ref_id IS NULL', 'n.obs_id IS NULL', 'n.ref_id IS NULL OR n.distance > 5', 'n.rank = 1',
		'n.obs_lat > 0', 'EXISTS (SELECT FROM ref r WHERE r.id = n.ref_id AND r.kind < 3)', "length(o.$id\::text) = 2");
}

sub query
{
	my ($table, $id, $text) = @_;
	my $equal = pick("n.obs_id = o.$id", "o.$id = n.obs_id");
	my $far = $text ? "o.$id = k.text" : "o.$id = k.id";
	my $outer = pick(
		"$table o", "$table o", "$table o", "(SELECT * FROM $table WHERE kind > 2 OFFSET 0) o", "$table o JOIN kinds k ON k.kind = o.kind AND k.far < 5e5",
		"kinds k LEFT JOIN $table o ON o.kind = k.kind AND k.far > 2e5", "kinds k JOIN $table o ON $far", "kinds k LEFT JOIN $table o ON $far");
	my $columns = pick("o.$id, n.*", "o::text, n.ref_id", 'o.kind, n.distance', 'o.kind, count(*), min(n.distance)', '1 AS one');
	my $join = pick('JOIN', 'JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN');
	my $on = $equal . ($join eq 'FULL JOIN' ? '' : pick('', '', ' AND n.distance < 400000', ' AND n.distance > 60000 * o.kind', ' AND o.kind <> 1'));
	my $group = $columns =~ /count/ ? 'GROUP BY o.kind' : '';

	return "SELECT o.* FROM $outer WHERE NOT EXISTS (SELECT FROM THE_CALL n WHERE $equal AND n.distance < 500000)" if rand() < 0.1;
	return "SELECT $columns FROM $outer, THE_CALL n WHERE $equal AND $far AND " . condition($id) . " $group" if $outer =~ /kinds/ && rand() < 0.3;
	return "SELECT $columns FROM $outer $join THE_CALL n ON $on WHERE " . condition($id) . " $group";
}

# ---- the same rows ----

my $with_node = 0;
my @differ;

for (1 .. $statements)
{
	my ($table, $type, $options, $id) = @{ pick(@tables) };
	my ($query, $call) = (query($table, $id, $type eq 'row_of_texts'), call_of($table, $type, $options));
	my $by_node = $query =~ s/THE_CALL/$call/r;
	my $by_function = $query =~ s/THE_CALL/(SELECT * FROM $call OFFSET 0)/r;
	my $settings = join("\n", map { "SET $_;" } 'work_mem = ' . pick(64, 4096), 'enable_sort = ' . pick('on', 'off'),
		'enable_nestloop = ' . pick('on', 'off'), 'max_parallel_workers_per_gather = ' . pick(0, 2),
		'plan_cache_mode = ' . pick('force_generic_plan', 'force_custom_plan'));
	my $role = pick('SET ROLE reader;', '');
	my $moved = $table eq 'named' ? 'y' : 'lat';
	my $change = $role eq '' ? "UPDATE $table SET $moved = -$moved WHERE kind = 2; DELETE FROM $table WHERE kind = 6;" : '';
	my $out = $node->safe_psql('postgres', qq{
		SET client_min_messages = error;
		SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
		$settings
		BEGIN;
		$role
		$change
		PREPARE a AS $by_node;
		PREPARE b AS $by_function;
		CREATE TEMP TABLE a AS EXECUTE a;
		CREATE TEMP TABLE b AS EXECUTE b;
		SELECT count(*) FROM ((SELECT a::text FROM a EXCEPT ALL SELECT b::text FROM b) UNION ALL (SELECT b::text FROM b EXCEPT ALL SELECT a::text FROM a)) x;
		EXPLAIN (COSTS OFF) EXECUTE a;
		ROLLBACK;
	});
	my ($differences) = $out =~ /^(\d+)/;

	$with_node++ if $out =~ /geonn lateral join/;
	push @differ, "$differences rows: $settings $role $by_node" if $differences != 0;
}
is(join("\n", @differ), '', "the rows of $statements random statements are those of the call alone");
cmp_ok($with_node, '>', 0.25 * $statements, "many of them, $with_node, have the node");

# ---- where the node is, and where it is not ----

sub plan_of { return $node->safe_psql('postgres', "SET client_min_messages = error; " . ($_[1] // '') . "; EXPLAIN (COSTS OFF) $_[0]"); }

my $usual = q{SELECT o.kind, n.distance FROM ints o JOIN geonn_nearest('ints', 'ref') n ON n.obs_id = o.id};

$node->safe_psql('postgres', q{
	CREATE TABLE twice AS SELECT * FROM ints;
	CREATE INDEX ON twice (id);
	CREATE TABLE late (LIKE ints, UNIQUE (id) DEFERRABLE);
	CREATE TABLE partly (LIKE ints);
	CREATE UNIQUE INDEX ON partly (id) WHERE kind = 1;
	CREATE TABLE parent (LIKE ints INCLUDING ALL);
	CREATE TABLE child () INHERITS (parent);
	CREATE TABLE numerics AS SELECT id, lat::numeric, lon::numeric FROM ints;
	ALTER TABLE numerics ADD PRIMARY KEY (id);
	CREATE VIEW owned AS SELECT o.kind, n.distance FROM ints o JOIN geonn_nearest('ints', 'ref') n ON n.obs_id = o.id;
	CREATE VIEW seen AS SELECT * FROM ints;
	CREATE VIEW barrier WITH (security_barrier, security_invoker) AS SELECT * FROM ints WHERE kind = 3;
	CREATE VIEW invoked WITH (security_invoker) AS SELECT * FROM ints WHERE kind <> 2;
	GRANT SELECT ON owned, seen, barrier, invoked TO reader;
	ALTER TABLE twice ALTER id SET NOT NULL;
	ALTER TABLE late ALTER id SET NOT NULL;
	ALTER TABLE partly ALTER id SET NOT NULL;
});
like(plan_of($usual), qr/geonn lateral join/, 'a join with the own table has the node');
like(plan_of($usual, 'SET ROLE reader'), qr/geonn lateral join.*Filter: \(kind <> 4\)/s, 'and so it has with a policy');
unlike(plan_of($usual =~ s/ints o/barrier o/r, 'SET ROLE reader'), qr/geonn lateral join/, 'but not behind a barrier, which PostgreSQL reads as a query of its own');
like(plan_of($usual =~ s/ints o/invoked o/r, 'SET ROLE reader'), qr/geonn lateral join/, "though in a view with the invoker's privileges");
foreach my $table (qw(twice late partly parent numerics))
{
	unlike(plan_of($usual =~ s/ints/$table/gr =~ s/o.kind/1/r), qr/geonn lateral join/, "the table $table has none");
}

# a partitioned table's rows are those of its partitions, which its own unique index holds apart
my $parted = $usual =~ s/ints/parted/gr;
my $swapped = q{SELECT o.kind, n.distance FROM geonn_nearest('parted', 'ref') n JOIN parted o ON n.obs_id = o.id};
foreach my $query ($parted, $swapped, "$parted WHERE o.id < 100", $parted =~ s/parted/parted_2/gr . ' WHERE o.id < 100', $parted =~ s/parted o/parted_1 o/r =~ s/'parted'/'parted_1'/r)
{
	like(plan_of($query), qr/geonn lateral join/, "the node is in $query");
	is($node->safe_psql('postgres', "SET client_min_messages = error; SELECT count(*) FROM (SELECT a::text, count(*) FROM ($query) a GROUP BY 1 EXCEPT SELECT a::text, count(*) FROM (" . apart($query) . ') a GROUP BY 1) d'),
		0, 'with the rows of the call alone');
}
like(plan_of($parted, 'SET enable_partition_pruning = off; SET enable_sort = off'), qr/geonn lateral join.*(?:Seq Scan on parted_\S+ o_\d.*){4}$/s, 'all partitions are read once');
unlike(plan_of("$parted WHERE o.id < 100"), qr/on parted_2b/, 'but for those that cannot have rows');
$node->safe_psql('postgres', q{
	CREATE EXTENSION postgres_fdw;
	DO $$ BEGIN EXECUTE format('CREATE SERVER itself FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L)',
		current_setting('unix_socket_directories'), current_setting('port'), current_database()); END $$;
	CREATE USER MAPPING FOR CURRENT_USER SERVER itself;
	CREATE TABLE far (id integer NOT NULL, kind integer, lat float8, lon float8) PARTITION BY RANGE (id);
	CREATE TABLE far_here PARTITION OF far FOR VALUES FROM (1) TO (200);
	CREATE FOREIGN TABLE far_there PARTITION OF far FOR VALUES FROM (200) TO (1000) SERVER itself OPTIONS (table_name 'ints');
	INSERT INTO far SELECT id, kind, lat, lon FROM ints WHERE id < 200;
	DELETE FROM ints WHERE id < 200;
	ALTER TABLE far_here ADD UNIQUE (id);
	CREATE TABLE started (id integer NOT NULL, kind integer, lat float8, lon float8) PARTITION BY RANGE (id);
	CREATE TABLE started_0 PARTITION OF started FOR VALUES FROM (1) TO (1000);
	INSERT INTO started TABLE parted;
	CREATE UNIQUE INDEX ON ONLY started (id);
});
foreach my $table (qw(far started))
{
	my $query = $usual =~ s/ints/$table/gr;

	unlike(plan_of($query), qr/geonn lateral join/, "$table: no index holds the rows of all partitions apart");
	is($node->safe_psql('postgres', "SET client_min_messages = error; SELECT count(*) > 100, count(*) = (SELECT count(*) FROM geonn_nearest('$table', 'ref')) FROM ($query) a"), 't|t', 'and the rows are there');
}

# a key of id and time lets two partitions have one id: each of its rows meets the neighbours of both, whatever the time
$node->safe_psql('postgres', q{
	CREATE TABLE timed (id integer, t date, kind integer, lat float8, lon float8, PRIMARY KEY (id, t)) PARTITION BY RANGE (t);
	CREATE TABLE timed_1 PARTITION OF timed FOR VALUES FROM ('2026-01-01') TO ('2026-01-02');
	CREATE TABLE timed_2 PARTITION OF timed FOR VALUES FROM ('2026-01-02') TO ('2026-01-03');
	INSERT INTO timed VALUES (1, '2026-01-01', 1, 10, 10), (1, '2026-01-02', 1, -10, -10), (2, '2026-01-02', 1, 20, 20)});
unlike(plan_of($usual =~ s/ints/timed/gr . q{ WHERE o.t = '2026-01-02'}), qr/geonn lateral join/, 'a key of id and time makes no rows the own ones');
is($node->safe_psql('postgres', q{SELECT o.id, count(*) FROM timed o JOIN geonn_nearest('timed', 'ref') n ON n.obs_id = o.id WHERE o.t = '2026-01-02' GROUP BY 1 ORDER BY 1}),
	"1|2\n2|1", 'and a row meets the neighbours of both with its id');
foreach my $kind ('STORED', $node->safe_psql('postgres', 'SHOW server_version_num') < 180000 ? () : 'VIRTUAL')
{
	$node->safe_psql('postgres', "CREATE TABLE computed (id integer PRIMARY KEY, kind integer, y float8, lat float8 GENERATED ALWAYS AS (y / 2) $kind, lon float8);
		INSERT INTO computed (id, kind, y, lon) SELECT id, kind, lat, lon FROM parted");
	my $query = $usual =~ s/ints/computed/gr;
	my $answer = "SET client_min_messages = error; SELECT count(*), sum(distance::numeric) FROM (QUERY) a";

	$kind eq 'STORED' ? like(plan_of($query), qr/geonn lateral join/, 'stored generated coordinates have the node') :
		unlike(plan_of($query), qr/geonn lateral join/, 'those that are generated as they are read have none');
	is($node->safe_psql('postgres', $answer =~ s/QUERY/$query/r), $node->safe_psql('postgres', $answer =~ s/QUERY/apart($query)/er), 'and the rows are those of the call alone');
	$node->safe_psql('postgres', 'DROP TABLE computed');
}
(undef, undef, my $refused) = $node->psql('postgres', 'ALTER TABLE far ADD PRIMARY KEY (id)');
like($refused, qr/foreign (table|partition)/i, 'an index that would, PostgreSQL makes of no table with foreign partitions');
$node->safe_psql('postgres', 'INSERT INTO ints SELECT id, kind, lat, lon FROM far_here');

# two rows with one id can be in a snapshot that is older than the index
$node->safe_psql('postgres', q{
	CREATE TABLE doubled (id integer NOT NULL, kind integer, lat float8, lon float8) PARTITION BY RANGE (id);
	CREATE TABLE doubled_0 PARTITION OF doubled FOR VALUES FROM (1) TO (1000);
	INSERT INTO doubled SELECT id, kind, lat, lon FROM parted;
	INSERT INTO doubled SELECT id, -1, lat, lon FROM parted;
});
my $of_doubled = $usual =~ s/ints/doubled/gr;
my $old = $node->background_psql('postgres', on_error_stop => 1);
$old->query_safe('SET client_min_messages = error; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$node->safe_psql('postgres', 'DELETE FROM doubled WHERE kind = -1; CREATE UNIQUE INDEX ON doubled (id)');
unlike($old->query_safe("EXPLAIN (COSTS OFF) $of_doubled"), qr/geonn lateral join/, 'a snapshot that is older than the index has no node');
$old->query_safe('COMMIT');
like($old->query_safe("EXPLAIN (COSTS OFF) $of_doubled"), qr/geonn lateral join/, 'the next one has it');
# and such rows can be in a partition that is newer
$node->safe_psql('postgres', q{
	CREATE TABLE doubled_1 (LIKE doubled);
	INSERT INTO doubled_1 SELECT id + CASE WHEN i = 1 THEN 1000 ELSE 0 END, kind, lat, lon FROM parted, generate_series(1, 2) i;
});
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$node->safe_psql('postgres', 'DELETE FROM doubled_1 WHERE id < 1000; ALTER TABLE doubled ATTACH PARTITION doubled_1 FOR VALUES FROM (1000) TO (2000)');
unlike($old->query_safe("EXPLAIN (COSTS OFF) $of_doubled"), qr/geonn lateral join/, 'a snapshot that is older than a partition has no node');
$old->query_safe('COMMIT');
like($old->query_safe("EXPLAIN (COSTS OFF) $of_doubled"), qr/geonn lateral join/, 'the next one has it, again');
$old->quit;
like(plan_of("$of_doubled; ROLLBACK", 'BEGIN; DROP INDEX doubled_id_idx; CREATE UNIQUE INDEX ON doubled (id)'), qr/geonn lateral join/,
	'and the transaction that builds the index has it, too');

# In a view, PostgreSQL reads the table as the view's owner, and the call reads it as the user.
sub apart { return $_[0] =~ s/(geonn_nearest\([^)]*\)) n/(SELECT * FROM $1 OFFSET 0) n/r; }
$node->safe_psql('postgres', 'CREATE VIEW apart AS ' . apart($usual) . '; GRANT SELECT ON apart TO reader');
my @views = ([ 'SELECT * FROM owned WHERE kind <> 1', 'SELECT * FROM apart WHERE kind <> 1' ]);
push @views, map { [ $_, apart($_) ] } $usual =~ s/ints o/seen o/r;
foreach my $policies ('ENABLE', 'DISABLE')
{
	$node->safe_psql('postgres', "ALTER TABLE ints $policies ROW LEVEL SECURITY");
	foreach my $view (@views)
	{
		my ($with, $without) = map { "SET client_min_messages = error; SET plan_cache_mode = force_generic_plan;
			PREPARE a AS SELECT count(*), sum(kind), sum(distance::numeric) FROM ($_) v; EXECUTE a; SET ROLE reader; EXECUTE a; RESET ROLE; EXECUTE a" } @$view;

		like(plan_of($view->[0]), qr/geonn lateral join/, "$policies: the view's owner has the node");
		my $found = plan_of($view->[0], 'SET ROLE reader') =~ /geonn lateral join/;
		is($found ? 'yes' : 'no', $policies eq 'ENABLE' ? 'no' : 'yes', "$policies: another role, unless policies could make a difference");
		is($node->safe_psql('postgres', $with), $node->safe_psql('postgres', $without), "$policies: both have the rows of the call alone");
	}
}
$node->safe_psql('postgres', 'ALTER TABLE ints ENABLE ROW LEVEL SECURITY');

# names in text, as drivers send them
foreach my $name ("'ints'::text::regclass", "'public.ints'::varchar::regclass")
{
	like(plan_of($usual =~ s/'ints'/$name/r), qr/geonn lateral join/, "$name has the node");
}
like(plan_of("EXECUTE a ('ints')", 'PREPARE a (text) AS ' . $usual =~ s/'ints'/\$1/r), qr/geonn lateral join/, 'so has a parameter of type text');
# a plan for all executions does not know that the table is the joined one: those for each cost less, whatever its size
foreach my $times (1, 25000)
{
	my $prepared = $usual =~ s/o\.kind/count(*)/r =~ s/n\.distance/sum(n.distance::numeric)/r =~ s/ints o/large o/r =~ s/'ints'/\$1/r;
	my $out = $node->safe_psql('postgres', "SET client_min_messages = error; DROP TABLE IF EXISTS large; CREATE TABLE large AS TABLE ints;
		ALTER TABLE large ADD PRIMARY KEY (id); ANALYZE large; UPDATE pg_class SET reltuples = $times * reltuples WHERE relname = 'large';
		PREPARE a (regclass) AS $prepared;" . ("EXECUTE a ('large'); " x 8) . "SELECT generic_plans, custom_plans FROM pg_prepared_statements; EXPLAIN (COSTS OFF) EXECUTE a ('large')");

	like($out, qr/^0\|8\n.*geonn lateral join/ms, "$times times the rows: each execution of a prepared statement has its own plan, with the node");
	is($node->safe_psql('postgres', "SET client_min_messages = error; SET plan_cache_mode = force_generic_plan; PREPARE a (regclass) AS $prepared; EXECUTE a ('large')"),
		(split /\n/, $out)[0], 'the plan for all has the same rows');
}
my $named = $usual =~ s/'ints'/'ints'::text/r =~ s/ints o/public.ints o/r;
my @answers = map { my $calls = $_; my $error; my $out;
	(undef, $out, $error) = $node->psql('postgres', qq{
		SET client_min_messages = error; SET plan_cache_mode = force_generic_plan;
		CREATE SCHEMA first; SET search_path = first, public;
		PREPARE a AS SELECT count(*), sum(kind) FROM ($calls) s;
		EXECUTE a;
		CREATE TABLE first.ints AS SELECT * FROM public.ints WHERE id <= 50;
		EXECUTE a;
		EXECUTE a;
		DROP SCHEMA first CASCADE}, on_error_stop => 0);
	[ $out, $error ] } $named, apart($named);
my @rows = split /\n/, $answers[1][0];
is($answers[0][0], "$rows[0]\n$rows[2]", 'a name in text that comes to mean another table: the next execution has its rows');
like($answers[0][1], qr/the observations are of another table than when the statement was planned.*HINT:  Execute the statement again/s, 'after an error');
is($answers[1][1], '', 'which the function alone has not');
foreach my $other (
	$usual =~ s/ints o/twice o/r, "$usual FOR UPDATE OF o",
	$usual =~ s/'ref'\)/'ref', by => '{kind}')/r, $usual =~ s/'ref'\)/'ints', exclude_self => true)/r, $usual =~ s/'ref'\)/'ref', invalid => 'error')/r,
	$usual =~ s/'ints'/(SELECT 'ints'::regclass)/r, $usual =~ s/ints o/ints o TABLESAMPLE SYSTEM (50)/r, "$usual + 1", $usual =~ s/= o.id/= o.kind/r,
	$usual =~ s/= o.id/>= o.id/r, $usual =~ s/= o.id/= o.id::numeric/r, $usual =~ s/'ref'\)/'ref', (random() * 0)::integer + 1)/r,
	$usual =~ s/'ref'\)/'ref', options => '{"obs_id": "kind"}')/r)
{
	unlike(plan_of($other), qr/geonn lateral join/, "nor has $other");
}

# ---- privileges, policies and warnings ----

my ($status, $out, $error);

(undef, undef, $error) = $node->psql('postgres', qq{
	REVOKE SELECT ON ints FROM reader;
	GRANT SELECT (id, kind) ON ints TO reader;
	SET ROLE reader;
	$usual;
});
like($error, qr/permission denied for table ints/, 'coordinates need the privilege that the call needs');
$node->safe_psql('postgres', q{
	GRANT SELECT ON ints TO reader;
	CREATE FUNCTION tell(kind integer, distance float8) RETURNS boolean COST 0.0001 LANGUAGE plpgsql AS $$
	BEGIN
		RAISE WARNING 'kind %', kind;
		RETURN true;
	END $$});
($status, $out, $error) = $node->psql('postgres', "SET ROLE reader; $usual AND tell(o.kind, n.distance) AND tell(o.kind, 1)");
unlike($error, qr/kind 4/, 'no function sees a row that the policy hides');
like($error, qr/kind 3/, 'though it sees the others');
($status, $out, $error) = $node->psql('postgres', $usual =~ s/ints o/barrier o/r . ' AND tell(o.kind, n.distance) AND tell(o.kind, 1)');
unlike($error, qr/kind [^3]/, 'nor one behind a barrier');

my $invalid = $node->safe_psql('postgres', q{SELECT count(*) FROM ints WHERE kind < 4 AND (lat > 90 OR lon = 'NaN') AND lat + lon IS NOT NULL});
(undef, undef, $error) = $node->psql('postgres', "$usual WHERE o.kind < 4");
$invalid == 0 ? unlike($error, qr/WARNING/, 'no warning') :
	like($error, qr/$invalid rows? of relation "ints" (was|were) skipped/, 'the warning counts invalid rows among those of the table that are joined');

# an outer join's rows of NULLs are none of the table's
(undef, undef, $error) = $node->psql('postgres', q{
	CREATE TYPE neighbour AS (obs_id integer, ref_id integer);
	CREATE TABLE places (id integer PRIMARY KEY, lat float8, lon float8);
	INSERT INTO places SELECT i, nullif(i, 3) + CASE i WHEN 2 THEN 90 ELSE 0 END, 1 FROM generate_series(1, 80) i;
	INSERT INTO places SELECT i, 1, 1 FROM generate_series(101, 1000) i;
	ANALYZE places;
	SELECT count(n.ref_id) FROM generate_series(1, 90) i LEFT JOIN places o ON o.id = i
	LEFT JOIN geonn_nearest('places', 'ref', row_type => NULL::neighbour) n ON n.obs_id = o.id});
like($error, qr/1 row of relation "places" was skipped.* NULL id or coordinate: 1\.\n/s, 'and no row that an outer join has filled with NULLs');

# a LIMIT ends the reading, in the order of the key too
my $few = $node->safe_psql('postgres', "SET client_min_messages = error; SET enable_sort = off; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $usual ORDER BY o.id LIMIT 3");
like($few, qr/geonn lateral join.*Index Scan using ints_pkey on ints o \(actual rows=(6[0-9]|1?\d\d)(\.00)? /s, 'a LIMIT ends the reading of the table');

done_testing();
