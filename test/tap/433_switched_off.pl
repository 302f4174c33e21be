
# "Switch it off" of the operator's page, word by word: which functions of the extension search is found by calling each of
# them, from the catalogs.  Without geonn.enabled, or without the privilege, they refuse, no statement has a plan node, and
# no engine runs; so does no statement in a database without the extension.  What prepared statements, roles, views and
# functions of others make of it; and a session that loads the module with a setting of its own.
#
# needs: postgis
# rooms: base plan doc
# check-all: calls every function

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Utils;
use Test::More;

my ($page) = grep { m,/operations\.md$, } Geonn::pages();
my ($section) = Geonn::slurp($page) =~ /^### Switch it off\n(.*?)(?=^##)/ms;
my ($off, $on, $database, $revoke, $grant) = $section =~ /^```sql[^\n]*\n(.*?)^```/msg;
my $node = new_server('switched_off', preload => 1, conf => 'geonn.enable_sql_joins = on');
my $postmaster = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()') && (split /\n/, Geonn::slurp($node->data_dir . '/postmaster.pid'))[0];

sub said
{
	my ($user, $sql, %option) = @_;
	my ($out, $error);

	$node->psql($option{database} // 'postgres', "\\set VERBOSITY verbose\n$sql", stdout => \$out, stderr => \$error,
		extra_params => [ '-U', $user ], on_error_stop => 0, on_error_die => 0);
	return $out . $error;
}

my $superuser = $node->safe_psql('postgres', 'SELECT current_user');

# A line of EXPLAIN that tells of a node of geonn's, or none
my $has_node = q{
	CREATE FUNCTION has_node(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
	DECLARE
		line text;
	BEGIN
		FOR line IN EXECUTE 'EXPLAIN ' || statement LOOP
			IF line ~ 'Custom Scan \(geonn' THEN RETURN true; END IF;
		END LOOP;
		RETURN false;
	END $$;
};
my $sites = q{
	CREATE TABLE sites AS SELECT i AS id, i * 7 % 90 AS lat, i * 11 % 180 AS lon, ST_MakePoint(i * 11 % 180, i * 7 % 90)::geography(Point) AS g, 0 AS near
		FROM generate_series(1, 600) i;
	ALTER TABLE sites ADD PRIMARY KEY (id);
	ANALYZE sites;
};

$node->safe_psql('postgres', qq{
	SET client_min_messages = error;
	CREATE EXTENSION postgis;
	$has_node
	$sites
	CREATE ROLE ordinary LOGIN;
	CREATE ROLE pilot LOGIN;
	ALTER ROLE pilot SET geonn.enabled = on;
	GRANT ALL ON SCHEMA public TO ordinary;
	GRANT SELECT ON sites, few_obs, few_ref TO ordinary, pilot;
	SET ROLE ordinary;
	SELECT geonn_cache_create('near', 'few_obs', 'few_ref');
});

# ---- the functions of the extension, and those that do not search ----

my %searches_not = map { $_ => 1 } qw(geonn_distance geonn_describe geonn_check geonn_status geonn_device_status
  geonn_progress geonn_statistics geonn_stat_reset geonn_cache_alter geonn_cache_drop geonn_schedule geonn_unschedule);
my %value = (
	obs => "'few_obs'", ref => "'few_ref'", rel => "'few_obs'", tab => "'few_obs'",
	points => "'few_obs'", points_sql => "'SELECT id, lat, lon FROM few_obs'", spacing => '1e6',
	obs_sql => "'SELECT id, lat, lon FROM few_obs'", ref_sql => "'SELECT id, lat, lon FROM few_ref'",
	radius => '1e6', radii => "'{1e6}'", 'lat double precision[]' => "'{1}'", 'lon double precision[]' => "'{1}'",
	(map { $_ => 1 } qw(lat lon lat1 lon1 lat2 lon2)), (map { $_ => 'ST_MakePoint(1, 1)::geography' } qw(shape shape1 shape2)), name => "'near'",
	schedule => "'\@daily'", changes => q('{"k": 2}'), servers => "'{a}'", coordinator => "'host=a'");

# a call of each function with the arguments that have no default: its name and its text
my @calls;
my @by_postgresql;
foreach my $line (split /\n/, $node->safe_psql('postgres', q{
	SELECT p.proname, p.prokind, p.prorettype IN ('trigger'::regtype, 'event_trigger'::regtype, 'internal'::regtype),
		array_to_string(ARRAY(SELECT a.name || ' ' || format_type(t.type, NULL) FROM unnest(p.proargnames) WITH ORDINALITY a(name, n)
			JOIN unnest(p.proargtypes) WITH ORDINALITY t(type, n) USING (n) WHERE n <= p.pronargs - p.pronargdefaults ORDER BY n), ',')
	FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
	WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
		AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'geonn') ORDER BY 1, 4}))
{
	my ($name, $kind, $by_postgresql, $arguments) = split /\|/, $line;
	my @values;

	if ($by_postgresql eq 't')
	{
		push @by_postgresql, $name;
		next;
	}
	foreach my $argument (split /,/, $arguments // '')
	{
		my ($word) = $argument =~ /^(\w+)/;
		my $value = $value{$argument} // $value{$word};

		ok(defined($value), "this test has a value for $argument of $name") or next;
		push @values, "$word => $value";
	}
	push @calls, [ $name, ($kind eq 'p' ? 'CALL ' : 'SELECT * FROM ') . "$name(" . join(', ', @values) . ')' ];
}
cmp_ok(scalar(@calls), '>', 20, 'the functions are found');
is_deeply([ sort(keys %searches_not) ], [ grep { $searches_not{$_} } sort(keys %{ { map { $_->[0] => 1 } @calls } }) ],
	'those that do not search are among them');
like(said($superuser, "SELECT $_()"), qr/ERROR:  (?:0A000|42883|39P01|39P03|XX000)/, "$_ is PostgreSQL's to call") foreach @by_postgresql;

# Each function that searches refuses for this role with this; the others do what they do.
sub refuses
{
	my ($user, $refusal, $when) = @_;

	foreach my $call (@calls)
	{
		my ($name, $text) = @$call;
		my $said = said($user, "BEGIN; $text; ROLLBACK;");

		if (!$searches_not{$name})
		{
			like($said, $refusal, "$when: $text");
		}
		elsif ($name eq 'geonn_schedule')
		{
			like($said, qr/pg_cron/, "$when, and not refused: $text");
		}
		elsif ($name eq 'geonn_stat_reset' && $user ne $superuser)
		{
			like($said, qr/permission denied for function geonn_stat_reset/, "$when, superusers reset figures");
		}
		else
		{
			unlike($said, qr/ERROR/, "$when, and not refused: $text");
		}
	}
	foreach my $view (qw(geonn_caches geonn_cache_log geonn_stat geonn_stat_progress geonn_devices))
	{
		unlike(said($user, "SELECT * FROM $view"), qr/ERROR/, "$when, $view can be read");
	}
}

# ---- statements ----

my @statements = (
	'SELECT o.id, n.id FROM sites o, LATERAL (SELECT r.id FROM sites r ORDER BY r.g <-> o.g LIMIT 1) n',
	'SELECT o.id, r.id FROM sites o JOIN sites r ON ST_DWithin(o.g, r.g, 1000)',
	'SELECT o.id, r.id FROM sites o JOIN sites r ON ST_Distance(o.g, r.g) <= 1000',
	'SELECT o.id FROM sites o WHERE NOT EXISTS (SELECT FROM sites r WHERE ST_DWithin(o.g, r.g, 1000, false))',
	'SELECT o.id, (SELECT r.id FROM sites r ORDER BY r.g <-> o.g LIMIT 1) FROM sites o',
	'SELECT DISTINCT ON (o.id) o.id, r.id FROM sites o, sites r ORDER BY o.id, r.g <-> o.g',
	'UPDATE sites o SET near = (SELECT r.id FROM sites r ORDER BY r.g <-> o.g LIMIT 1)',
	'SELECT o.id, n.id FROM sites o, LATERAL (SELECT r.id FROM sites r ORDER BY geonn_distance(o.lat, o.lon, r.lat, r.lon) LIMIT 1) n',
	q{SELECT * FROM geonn_nearest('few_obs', 'few_ref')},
	q{SELECT * FROM geonn_within('few_obs', 'few_ref', 1e6) LIMIT 1},
	q{SELECT * FROM sites o JOIN geonn_nearest('sites', 'few_ref') n ON n.obs_id = o.id},
	q{SELECT * FROM sites o, LATERAL geonn_nearest_points(ARRAY[o.lat]::float8[], ARRAY[o.lon]::float8[], 'few_ref')});

sub have_nodes
{
	my ($user, $expected, $when) = @_;

	foreach my $statement (@statements)
	{
		my $plan = said($user, "SET enable_nestloop = " . ($expected ? 'off' : 'on') . "; EXPLAIN $statement");

		next if $user ne $superuser && $statement =~ /^UPDATE/;
		$expected ? like($plan, qr/Custom Scan \(geonn/, "$when: node: $statement")
		  : unlike($plan, qr/Custom Scan \(geonn|ERROR/, "$when: no node: $statement");
	}
}

have_nodes($superuser, 1, 'at first');
my $rows = said($superuser, "SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM ($statements[0]) t");

# ---- off, as the page says ----

my $small = "SELECT count(*) FROM geonn_nearest('few_obs', 'few_ref')";
my $refusal = qr/ERROR:  55000: geonn is switched off\n.*DETAIL:  .*\nHINT:  .*pg_settings/s;

is(said('ordinary', $small), 3, 'a search');
is(scalar(engines_of($postmaster)), 1, 'an engine runs');

# one of two backends that ask at once does so when the engine is there
kill('USR1', status($node, 'supervisor_pid'));
said($superuser, $off);
wait_until(sub { !engines_of($postmaster) }, 'switched off, the engine ends');
wait_until(sub { said($superuser, 'SHOW geonn.enabled') eq 'off' }, 'and sessions have it off');
refuses('ordinary', $refusal, 'off');
refuses($superuser, $refusal, 'off, as a superuser');
have_nodes('ordinary', 0, 'off');
is(said($superuser, "SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM ($statements[0]) t"), $rows, 'with the same rows');
is(said('ordinary', 'SELECT state, reason FROM geonn_status()'), "stopped|geonn.enabled is off in the server's configuration", 'the state says so');
is(said('ordinary', 'SELECT count(*) FROM near'), 3, 'tables of caches can be read');
like(said('ordinary', 'SET geonn.enabled = on'), qr/42501: permission denied to set parameter "geonn.enabled"/, 'a role cannot set it');
like(said('ordinary', 'SELECT geonn_engine_start()'), $refusal, 'no engine is started');
is(scalar(engines_of($postmaster)), 0, 'and no engine was');

$node->restart;
$postmaster = (split /\n/, Geonn::slurp($node->data_dir . '/postmaster.pid'))[0];
wait_until(sub { status($node, 'supervisor_pid') ne '' }, 'after a restart the supervisor is there');
is(status($node, 'state'), 'stopped', 'without an engine');
is(scalar(engines_of($postmaster)), 0, 'indeed');

# for a role that has it on
is(said('pilot', $small), 3, 'a role that has it on searches');
is(scalar(engines_of($postmaster)), 1, 'and its search has started an engine');
like(said('ordinary', $small), $refusal, 'which others are not given');
is(said($superuser, "SET geonn.enabled = on; $small"), "3", 'a superuser can set it for a session');
said($superuser, $on);
wait_until(sub { said('ordinary', $small) eq '3' }, 'switched on, all search');

# a statement that runs meanwhile reads no configuration, nor do its parallel workers: they start no engine
$node->safe_psql('postgres', q{
	CREATE TABLE many AS SELECT s.g FROM sites s, generate_series(1, 10);
	ALTER TABLE many SET (parallel_workers = 2);
	ANALYZE many;
	CREATE FUNCTION is_slow(g geography) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN PERFORM pg_sleep(0.001); RETURN true; END'});
foreach my $workers (0, 2)
{
	my $run = start_sql($node, qq{
		SET enable_nestloop = off;
		SET max_parallel_workers_per_gather = $workers; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
		SET parallel_leader_participation = off;
		SET work_mem = '64kB';
		PREPARE p AS SELECT count(*) FROM many o, LATERAL (SELECT r.id FROM sites r ORDER BY r.g <-> o.g LIMIT 1) n WHERE is_slow(o.g);
		EXPLAIN EXECUTE p;
		EXECUTE p});
	wait_until(sub { said($superuser, 'SELECT count(*) > 0 FROM geonn_stat_progress') eq 't' }, 'a statement searches');
	said($superuser, $off);
	my ($code, $counted, $warned) = finish_sql($run);
	is($code, 0, "$workers workers: a statement that runs while geonn is switched off ends");
	like($counted, $workers > 0 ? qr/Gather.*geonn subquery join.*\n6000$/s : qr/geonn subquery join.*\n6000$/s, 'with its rows');
	like($warned, qr/WARNING:  geonn compares each row .*: geonn is switched off in the server's configuration\nDETAIL: .*\nHINT: /, 'without the engine');
	is(scalar(engines_of($postmaster)), 0, 'which it has not started');
	said($superuser, $on);
	wait_until(sub { said('ordinary', $small) eq '3' }, 'switched on again');
}

# one database, for new connections; each statement of the block by itself
my ($set, $reset) = map { s/:"DBNAME"/postgres/r } split /^/m, $database;
said($superuser, $set);
like(said('ordinary', $small), $refusal, 'a database has it off');
is(said('pilot', $small), 3, 'but for a role that has it on');
said($superuser, $reset);
is(said('ordinary', $small), 3, 'and on again');

# ---- one privilege, as the page says ----

my $denied = qr/ERROR:  42501: permission denied (?:to search with geonn\n|for function geonn_engine_start)/;

said($superuser, $revoke);
refuses('ordinary', $denied, 'without the privilege');
have_nodes('ordinary', 0, 'without the privilege');
is(said('ordinary', "SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM ($statements[0]) t"), $rows, 'with the same rows');
like(said('ordinary', $small), qr/DETAIL:  Role "ordinary" needs EXECUTE on geonn_engine_start\(\)\.\nHINT:  Run, as a superuser: GRANT EXECUTE ON FUNCTION public\.geonn_engine_start\(\) TO ordinary;/,
	'the error has the GRANT to type');
is(said($superuser, $small), 3, 'a superuser searches');
have_nodes($superuser, 1, 'a superuser');
like(said($superuser, "CALL geonn_refresh('near')"), qr/permission denied to search with geonn\n.*Role "ordinary"/s, 'a refresh asks the owner of the cache');

# functions and views of others
$node->safe_psql('postgres', qq{
	CREATE FUNCTION lent() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS \$\$ $small \$\$;
	CREATE VIEW shown AS SELECT * FROM geonn_nearest('few_obs', 'few_ref');
	GRANT SELECT ON shown TO ordinary;
	SET ROLE ordinary;
	CREATE FUNCTION of_ordinary() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS \$\$ $small \$\$;
});
is(said('ordinary', 'SELECT lent()'), 3, 'a function with the privileges of a role that may lends them');
like(said($superuser, 'SELECT of_ordinary()'), $denied, 'that of a role that may not has none, for superusers either');
like(said('ordinary', 'SELECT * FROM shown'), $denied, "a view's calls are those of the role that reads it");

# prepared statements are planned anew
$node->safe_psql('postgres', q{
	CREATE FUNCTION withdraw() RETURNS void LANGUAGE sql SECURITY DEFINER AS 'REVOKE EXECUTE ON FUNCTION geonn_engine_start() FROM ordinary';
	CREATE FUNCTION give() RETURNS void LANGUAGE sql SECURITY DEFINER AS 'GRANT EXECUTE ON FUNCTION geonn_engine_start() TO ordinary'});
foreach my $statement (@statements[ 0, 1, 4, 8, 11 ])
{
	is(said($superuser, qq{
		SET plan_cache_mode = force_generic_plan;
		SET enable_nestloop = off;
		PREPARE p AS $statement;
		SELECT has_node('EXECUTE p');
		SET geonn.enabled = off;
		SELECT has_node('EXECUTE p');
		RESET geonn.enabled;
		SELECT has_node('EXECUTE p');
		SET ROLE ordinary;
		SELECT has_node('EXECUTE p');
		RESET ROLE;
		SELECT has_node('EXECUTE p');
		SELECT give();
		SET ROLE ordinary;
		SELECT has_node('EXECUTE p');
		SELECT withdraw();
		SELECT has_node('EXECUTE p');
		SELECT give();
		SELECT has_node('EXECUTE p');
		SELECT withdraw();
		SELECT has_node('EXECUTE p');
		}) =~ s/\n+/ /gr, 't f t f t t f t f', "a prepared statement has a node only while it may: $statement");
}

# a node whose setting changes after its plan was made
like(said($superuser, q{SELECT * FROM (SELECT set_config('geonn.enabled', 'off', true) OFFSET 0) s, geonn_nearest('few_obs', 'few_ref') n}),
	qr/^(?:off\|\d.*\n?){3}$|geonn is switched off/, 'a setting that changes while a statement runs is no harm');
said($superuser, $grant);
is(said('ordinary', $small), 3, 'granted, the role searches again');

# ---- databases without the extension ----

$node->safe_psql('postgres', 'CREATE DATABASE bare');
$node->safe_psql('bare', "CREATE EXTENSION postgis; $has_node $sites");
is(said($superuser, qq{
	SET client_min_messages = error;
	SELECT has_node('$statements[0]'), has_node('$statements[1]'), has_node('$statements[6]');
	CREATE FUNCTION geonn_engine_start() RETURNS integer LANGUAGE sql AS 'SELECT 1';
	SELECT has_node('$statements[0]');
	DROP FUNCTION geonn_engine_start();
	CREATE EXTENSION geonn;
	SELECT has_node('$statements[0]');
	BEGIN;
	DROP EXTENSION geonn;
	SELECT has_node('$statements[0]');
	ROLLBACK;
	SELECT has_node('$statements[0]');
	CREATE SCHEMA geonn;
	ALTER EXTENSION geonn SET SCHEMA geonn;
	SELECT has_node('$statements[0]');
	DROP EXTENSION geonn;
	SELECT has_node('$statements[0]');
	}, database => 'bare') =~ s/\n+/ /gr, 'f|f|f f t f t t f', 'nodes are where the extension is');
$node->stop;

# ---- a session that loads the module ----

$node = new_server('loaded', conf => "geonn.enabled = off\ngeonn.session_memory_limit = '1MB'");
$node->safe_psql('postgres', 'CREATE ROLE ordinary LOGIN; GRANT SELECT ON few_obs, few_ref TO ordinary');
like(said('ordinary', $small), $refusal, 'a session that loads the module has the setting of the file');
is(said('ordinary', 'SELECT state, reason FROM geonn_status()'), 'stopped|geonn.enabled is off', 'and the state says so');
like(said('ordinary', "SET geonn.enabled = on; $small"), $refusal, 'whatever it was set to before');
foreach my $option ('geonn.enabled=on', 'geonn.session_memory_limit=-1')
{
	local $ENV{PGOPTIONS} = "-c $option";
	my ($name) = $option =~ /(.*)=/;

	like(said('ordinary', "$small; DISCARD ALL; $small"), qr/(?:ERROR:  (?:42501: permission denied to set parameter "$name"|55000: geonn is switched off)\n.*){2}/s,
		"$option among the connection's options opens nothing");
}
{
	local $ENV{PGOPTIONS} = '-c geonn.enabled=on';
	is(said($superuser, $small), 3, "but a superuser's");
}
$node->append_conf('postgresql.conf', 'geonn.enabled = on');
$node->reload;
wait_until(sub { said('ordinary', $small) eq '3' }, 'the file switches it on');
{
	local $ENV{PGOPTIONS} = '-c geonn.session_memory_limit=-1';
	like(said('ordinary', $small), qr/permission denied to set parameter "geonn.session_memory_limit"\n.*DETAIL/s, 'a limit is none that options raise');
}

is(said('ordinary', "SET geonn.session_memory_limit = '2MB'; SET client_min_messages = error; $small") =~ s/.*WARNING.*\n//r, 3, 'what a session sets and may not is no harm');
$node->append_conf('postgresql.conf', "geonn.session_memory_limit = 'lots'");
$node->reload;
wait_until(sub { said($superuser, $small) =~ /ERROR/ }, 'the file has a value that is none');
like(said($superuser, $small), qr/ERROR:  22023: invalid value for parameter "geonn.session_memory_limit": "lots"\n.*DETAIL:  .*\nHINT:  .*ALTER SYSTEM RESET geonn.session_memory_limit/s, 'the error says so');

done_testing();
