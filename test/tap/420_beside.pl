# Beside other extensions, as far as they are installed: what each of them does to statements, and says of them.
# The topics of SQL run beside all of them together, too (regress_beside and regress_behind of test/check).
#
# may skip: extensions that are not installed
# rooms: plan sql
# check-all: other extensions

use strict;
use warnings;

use Geonn;
use Test::More;

my ($folder) = map { chomp; $_ } `pg_config --pkglibdir`;
my $servers = 0;

sub is_installed { return -e "$folder/$_[0].so"; }

# a server with these modules beside geonn, in an order; tables obs and ref of some thousand points
sub server_beside
{
	my ($name, $modules, $conf) = @_;
	my $node = new_server($name, conf => "shared_preload_libraries = '$modules'\nautovacuum = off\n$conf\n");

	$node->safe_psql(
		'postgres', q{
		CREATE TABLE obs AS SELECT i AS id, i % 100 AS kind, (i * 7919 % 1800) / 10::float8 - 90 AS lat, (i * 10473 % 3600) / 10::float8 - 180 AS lon
			FROM generate_series(1, 20000) i;
		CREATE TABLE ref AS SELECT id, kind, -lat AS lat, lon FROM obs WHERE id <= 2000;
		ALTER TABLE obs ADD PRIMARY KEY (id);
		ALTER TABLE ref ADD PRIMARY KEY (id);
		SELECT geonn_cache_create('near', 'obs', 'ref');
		VACUUM ANALYZE;
	});
	return $node;
}

# what the server's log says of a session's statements
sub logged
{
	my ($node, $sql) = @_;
	my $from = -s $node->logfile;

	$node->safe_psql('postgres', $sql);
	return substr(slurp($node->logfile), $from);
}

sub slurp
{
	my ($file) = @_;

	open(my $handle, '<', $file) or die "$file: $!";
	local $/;
	return <$handle>;
}

my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';
my $lateral = q{obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n};
my @joins = (
	q{SELECT count(*) FROM geonn_nearest('obs', 'ref')},
	q{SELECT count(*) FROM geonn_nearest('obs', 'ref') WHERE obs_id < 500},
	q{SELECT count(*) FROM geonn_within('obs', 'ref', 100000)},
	q{SELECT count(*) FROM geonn_nearest_sql('SELECT id, lat, lon FROM obs WHERE kind = 3', 'TABLE ref')},
	qq{SELECT count(*) FROM $lateral},
	q{SELECT count(*) FROM obs o JOIN geonn_nearest('obs', 'ref') n ON n.obs_id = o.id WHERE o.kind = 3});

# ---- pgaudit ----

SKIP:
{
	skip 'pgaudit is not installed', 1 unless is_installed('pgaudit');

	foreach my $modules ('geonn,pgaudit', 'pgaudit,geonn', 'pgaudit')
	{
		my $node = server_beside('audit' . ++$servers, $modules, '');

		$node->safe_psql('postgres', q{CREATE ROLE auditor; GRANT SELECT ON ref TO auditor; CREATE ROLE reader; GRANT SELECT ON obs TO reader; GRANT SELECT (id, lat, lon) ON ref TO reader});
		foreach my $setting ("pgaudit.log = 'read'", "pgaudit.log = 'write'", "pgaudit.log = 'ddl'", "pgaudit.log = 'all'", "pgaudit.role = 'auditor'")
		{
			my $answers = join("\n", map { $node->safe_psql('postgres', "SET $setting; SET pgaudit.log_relation = on; $_") } @joins);

			is($answers, join("\n", map { $node->safe_psql('postgres', $_) } @joins),
				"with \"$modules\" and $setting, joins have their rows");
		}
		my $log = logged($node, q{SET pgaudit.log = 'read'; SET pgaudit.log_relation = on; SELECT count(*) FROM geonn_nearest('obs', 'ref')});

		like($log, qr/AUDIT: SESSION.*,READ,SELECT,TABLE,public\.$_,/, "and a join is logged as a reading of $_") foreach qw(obs ref);
		is($node->safe_psql('postgres', q{SET pgaudit.log = 'all'; SET ROLE reader; SELECT count(*) FROM geonn_nearest('obs', 'ref')}),
			20000, 'a user with privileges on columns alone has the rows');
		is($node->safe_psql('postgres', q{SET pgaudit.log = 'all'; UPDATE ref SET lat = lat / 2 WHERE id < 5; CALL geonn_refresh('near')} )
			. cache_differences($node), 0, 'and refreshes run');
		$node->stop;
	}
}

# ---- pg_stat_statements, auto_explain ----

my $node = server_beside('beside', join(',', 'geonn', 'pg_stat_statements', 'auto_explain', grep { is_installed($_) } qw(hypopg plpgsql_check)),
	"pg_stat_statements.track = all\nmax_parallel_workers_per_gather = 2");
my $reads = q{SELECT count(*) FROM pg_stat_statements WHERE toplevel AND query LIKE 'SELECT%id%lat%lon FROM public.%'};
my $half_read = q{
	BEGIN;
	DECLARE c CURSOR FOR SELECT * FROM geonn_nearest('obs', 'ref');
	FETCH 1 FROM c;
	CLOSE c;
	COMMIT;
	SELECT obs_id FROM geonn_nearest('obs_view', 'ref') LIMIT 1;
	BEGIN;
	DECLARE c CURSOR FOR SELECT * FROM geonn_nearest('obs_view', 'ref', options => '{"batch_rows": 10}');
	FETCH 1 FROM c;
	CLOSE c;
	COMMIT;};

$node->safe_psql('postgres', q{CREATE EXTENSION pg_stat_statements; CREATE VIEW obs_view AS SELECT id, lat, lon FROM obs WHERE kind < 50; SELECT pg_stat_statements_reset()});
like($node->safe_psql('postgres', "$parallel EXPLAIN $joins[0]"), qr/Gather/, 'a join has workers');
$node->safe_psql('postgres', "$parallel $_;") foreach (@joins, $half_read);
$node->safe_psql('postgres', "$_;") foreach (@joins, $half_read);
is($node->safe_psql('postgres', $reads), 0, 'pg_stat_statements has no reading of tables as a statement of a session');
is($node->safe_psql('postgres', q{SELECT count(*), min(calls) FROM pg_stat_statements WHERE toplevel AND query LIKE 'SELECT count(*) FROM geonn_nearest(\$1, \$2)'}),
	'1|2', 'and the join once, with its constants left out');

my $explained = "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;";

foreach my $settings ('', $parallel)
{
	my $log = join('', map { logged($node, "$explained $settings $_;") } (@joins, $half_read));

	unlike($log, qr/Query Text: SELECT id, lat, lon FROM/, 'auto_explain has no reading of tables as a statement of a session');
	like($log, qr/Query Text: SELECT count.*Custom Scan \(geonn/s, 'and has the joins');
}
foreach my $format (qw(text json xml yaml))
{
	my $log = logged($node, "$explained SET auto_explain.log_format = '$format'; SET auto_explain.log_nested_statements = on;
		SET auto_explain.log_verbose = on; SET auto_explain.log_buffers = on; SET auto_explain.log_wal = on; SET auto_explain.log_triggers = on;
		SET auto_explain.log_settings = on; $joins[1]; UPDATE obs SET lat = lat / 2 WHERE id < 50; CALL geonn_refresh('near');");

	like($log, qr/geonn join.*UPDATE.*geonn_refresh/s, "auto_explain shows nested statements as $format");
}
is(cache_differences($node), 0, 'the cache has the rows of the join');

# ---- hypopg, plpgsql_check ----

SKIP:
{
	skip 'hypopg is not installed', 1 unless is_installed('hypopg');
	like($node->safe_psql('postgres', q{CREATE EXTENSION hypopg;
		SELECT indexname IS NOT NULL FROM hypopg_create_index('CREATE INDEX ON obs (kind)');
		EXPLAIN SELECT n.* FROM obs o JOIN geonn_nearest('obs', 'ref') n ON n.obs_id = o.id WHERE o.kind = 3}),
		qr/geonn lateral join.*<\d+>btree_obs_kind/s, 'a hypothetical index is in the plan of observations');
}
SKIP:
{
	skip 'plpgsql_check is not installed', 1 unless is_installed('plpgsql_check');
	$node->safe_psql('postgres', q{CREATE EXTENSION plpgsql_check;
		CREATE FUNCTION right_one(t text) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE r record; c bigint := 0;
			BEGIN FOR r IN SELECT * FROM geonn_nearest(t, 'ref') LOOP c := c + r.ref_id; END LOOP; CALL geonn_refresh('near'); RETURN c; END $$;
		CREATE FUNCTION wrong_column() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE r record; c bigint := 0;
			BEGIN FOR r IN SELECT * FROM geonn_nearest('obs', 'ref') LOOP c := c + r.nothere; END LOOP; RETURN c; END $$;
		CREATE FUNCTION wrong_table() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM geonn_nearest('obs', 'nowhere')); END $$});
	is($node->safe_psql('postgres', q{SELECT * FROM plpgsql_check_function('right_one(text)')}), '', 'plpgsql_check finds nothing in a function that calls a join');
	like($node->safe_psql('postgres', q{SELECT * FROM plpgsql_check_function('wrong_column()')}), qr/has no field "nothere"/, 'and finds a wrong column');
	like($node->safe_psql('postgres', q{SELECT * FROM plpgsql_check_function('wrong_table()')}), qr/relation "nowhere" does not exist/, 'and a table that is missing');
}
$node->stop;

# ---- pg_hint_plan ----

SKIP:
{
	skip 'pg_hint_plan is not installed', 1 unless is_installed('pg_hint_plan');
	my $hinted = server_beside('hinted', 'geonn,pg_hint_plan', '');

	like($hinted->safe_psql('postgres', q{/*+ MergeJoin(o n) Leading((n o)) */ EXPLAIN SELECT count(*), sum(o.lat) FROM geonn_nearest('obs', 'ref') n JOIN obs o ON o.kind = n.obs_id}),
		qr/Merge Join.*geonn join/s, 'hints of pg_hint_plan on the alias of a call are followed');
	is($hinted->safe_psql('postgres', "/*+ SeqScan(obs) IndexScan(ref) Set(work_mem '1MB') */ $_"), $hinted->safe_psql('postgres', $_), "rows with hints: $_") foreach @joins;
	$hinted->stop;
}

# ---- pg_repack ----

SKIP:
{
	my ($program) = map { chomp; "$_/pg_repack" } `pg_config --bindir`;

	skip 'pg_repack is not installed', 1 unless is_installed('pg_repack') && -x $program;
	my $packed = server_beside('packed', 'geonn', '');
	my $expected = $packed->safe_psql('postgres', $joins[0]);
	my @wrong;

	$packed->safe_psql('postgres', 'CREATE EXTENSION pg_repack');
	foreach my $table (qw(obs ref near geonn_cache_run))
	{
		my $rows = start_sql($packed, "$joins[0]; CALL geonn_refresh('near'); $joins[0];" x 3);

		$packed->command_ok([ $program, '-d', $packed->connstr('postgres'), '-t', $table ], "pg_repack of $table while joins and refreshes run");
		my (undef, $out, $error) = finish_sql($rows);
		is("$out$error", join("\n", ($expected) x 6), 'and they have their rows');
		$packed->safe_psql('postgres', "UPDATE ref SET lat = lat * 0.999 WHERE id < 50; CALL geonn_refresh('near')");
		is(cache_differences($packed), 0, 'and the next refresh leaves the rows of the join');
	}
	$packed->stop;
}

# ---- pg_partman ----

SKIP:
{
	skip 'pg_partman is not installed', 1 unless is_installed('pg_partman_bgw');
	my $parted = server_beside('parted', 'geonn,pg_partman_bgw', '');
	my $create = $parted->safe_psql('postgres', q{CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman;
		SELECT proargnames @> '{p_type}' AND extversion < '5' FROM pg_proc, pg_extension WHERE proname = 'create_parent' AND extname = 'pg_partman'}) eq 't' ?
		q{partman.create_parent('public.event', 't', 'native', 'daily', p_start_partition => (now() - interval '5 days')::text)} :
		q{partman.create_parent('public.event', 't', '1 day', p_start_partition => (now() - interval '5 days')::text)};

	is($parted->safe_psql('postgres', qq{
		CREATE TABLE event (id bigint NOT NULL, t timestamptz NOT NULL, lat float8, lon float8) PARTITION BY RANGE (t);
		DO \$\$ BEGIN PERFORM $create; END \$\$;
		INSERT INTO event SELECT id, now() - (id % 5) * interval '1 day', lat, lon FROM obs;
		SELECT geonn_cache_create('events', 'event', 'ref');
		UPDATE partman.part_config SET retention = '3 days', retention_keep_table = false WHERE parent_table = 'public.event';
		DO \$\$ BEGIN PERFORM partman.run_maintenance('public.event'); END \$\$;
		CALL geonn_refresh('events');
		SELECT (SELECT count(*) FROM events) = (SELECT count(*) FROM event), (SELECT count(*) FROM event) < 20000}),
		"events\nt|t", 'a refresh follows partitions that pg_partman drops');
	$parted->stop;
}

done_testing();
