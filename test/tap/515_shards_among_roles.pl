
# The commands that geonn_shard_ddl and geonn_shard_move_ddl print run as superusers, and other roles
# have databases in common with them.  Roles plant schemas, functions, types, tables and foreign tables
# of the names that the commands use, on shards and on the coordinator: calls and commands fail before
# they run any of it, and say whose it is and what to do.  What a role may not replace is found all the
# same where its schemas come first in the search_path and are full of traps.  Calls run no code of the
# tables that they are given, and are cancelled at once.
#
# Shards are databases of the same server, where a subscription would wait for its own slot: commands
# for subscriptions are left out.
# rooms: shard
# check-all: roles that plant names on each shard

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 'logical');
$node->append_conf('postgresql.conf', "log_min_messages = warning\n");
$node->start;
my ($host, $port, $superuser) = ($node->host, $node->port, $node->safe_psql('postgres', 'SELECT current_user'));
my $call = "geonn.geonn_shard_ddl('{shard1, shard2}', 'geo.ping', 'geo.station', 'host=$host dbname=coordinator'";
my $move = "geonn.geonn_shard_move_ddl('{shard1}', 'geo.ping')";
my $runnable = q{SELECT CASE WHEN server IS NULL THEN command ELSE format('SELECT ext.dblink_exec(%L, %L)', server, command) END};

sub coordinator { return $node->safe_psql('coordinator', $_[0]) }

# as mallory, who may create schemas in each database
sub mallory
{
	my ($database, $sql) = @_;

	$node->safe_psql($database, "SET ROLE mallory; SET client_min_messages = error; $sql");
}

# A coordinator and two shards from nothing, whose tables have all that shards carry.
sub fresh
{
	$node->safe_psql('postgres', "DROP DATABASE IF EXISTS $_ WITH (FORCE)") foreach qw(coordinator shard1 shard2);
	$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(coordinator shard1 shard2);
	$node->safe_psql('postgres', "GRANT CREATE ON DATABASE $_ TO mallory") foreach qw(coordinator shard1 shard2);
	coordinator(q{
		CREATE SCHEMA geonn;
		CREATE EXTENSION geonn SCHEMA geonn;
		CREATE SCHEMA ext;
		CREATE EXTENSION postgres_fdw SCHEMA ext;
		CREATE EXTENSION dblink SCHEMA ext;
		CREATE SCHEMA geo;
		CREATE TABLE geo.ping (id bigint PRIMARY KEY, region text COLLATE "C", tags text[] CHECK (array_length(tags, 1) > 0), lat float8 CHECK (lat < 90), lon float8,
			number_of_tags integer GENERATED ALWAYS AS (cardinality(tags) + 0) STORED);
		CREATE INDEX ON geo.ping (lower(region)) WHERE array_length(tags, 1) < 9;
		CREATE TABLE geo.station (id bigint PRIMARY KEY, kind text UNIQUE, lat float8, lon float8);
	});
	foreach my $shard (qw(shard1 shard2))
	{
		coordinator("CREATE SERVER $shard FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname '$shard');
			CREATE USER MAPPING FOR CURRENT_USER SERVER $shard");
	}
}

# Run the commands of a call; what is said of them.
sub run_printed
{
	my ($what) = @_;
	my (undef, undef, $error) = $node->psql('coordinator', "$runnable FROM $what WHERE command !~ 'SUBSCRIPTION' \\gexec", on_error_stop => 1);

	return $error;
}

# A role has done this there: the commands fail in this way, and leave no view on the shard.
sub refused_there
{
	my ($name, $plant, $pattern) = @_;

	fresh();
	$plant->();
	like(run_printed("$call)"), $pattern, "$name: refused");
	is($node->safe_psql('shard1', q{SELECT count(*) FROM pg_class WHERE relname ~ '^(ping|station)'}), 0, "$name: nothing is made");
}

# A role has done this here: the call itself fails.
sub refused_here
{
	my ($name, $sql, $what, $pattern) = @_;
	my (undef, undef, $error) = $node->psql('coordinator', "BEGIN; $sql; SELECT count(*) FROM $what; ROLLBACK");

	like($error, $pattern, "$name: refused");
}

$node->safe_psql('postgres', 'CREATE ROLE mallory LOGIN');

# ---- on a shard ----

refused_there('a schema of the extension\'s name', sub { mallory('shard1', 'CREATE SCHEMA geonn') },
	qr/ERROR:  role mallory may create objects in schema geonn\nDETAIL: .*\nHINT:  Give these objects to a superuser/);
refused_there('the same, and the extension is elsewhere', sub { $node->safe_psql('shard1', 'CREATE EXTENSION geonn'); mallory('shard1', 'CREATE SCHEMA geonn') },
	qr/ERROR:  role mallory may create objects in schema geonn\n/);
refused_there('a schema of the tables\'', sub { mallory('shard1', 'CREATE SCHEMA geo') }, qr/ERROR:  role mallory may create objects in schema geo\n/);
refused_there('a schema in which all may create', sub { $node->safe_psql('shard1', 'CREATE SCHEMA geo; GRANT CREATE ON SCHEMA geo TO PUBLIC') },
	qr/ERROR:  PUBLIC may create objects in schema geo\n/);
refused_there('a function beside the extension\'s', sub {
	$node->safe_psql('shard1', 'CREATE SCHEMA geonn; CREATE EXTENSION geonn SCHEMA geonn; GRANT CREATE ON SCHEMA geonn TO mallory');
	mallory('shard1', q{CREATE FUNCTION geonn.geonn_nearest(regclass, regclass, integer) RETURNS text LANGUAGE sql AS 'SELECT 1'});
	$node->safe_psql('shard1', 'REVOKE CREATE ON SCHEMA geonn FROM mallory');
}, qr/ERROR:  role mallory owns function geonn\.geonn_nearest\(regclass,regclass,integer\)\n/);
my $trusting = q{CREATE SCHEMA "Types"; CREATE DOMAIN "Types".kind AS text; CREATE FUNCTION "Types".size("Types".kind[]) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT 1'};
refused_there('a type of a column\'s', sub {
	coordinator(qq{$trusting; ALTER TABLE geo.station ALTER kind TYPE "Types".kind});
	$node->safe_psql('shard1', qq{$trusting; ALTER DOMAIN "Types".kind OWNER TO mallory});
}, qr/ERROR:  role mallory owns type "Types"\.kind\n/);
refused_there('a function of an index\'s', sub {
	coordinator(qq{$trusting; CREATE INDEX ON geo.ping ("Types".size(tags::"Types".kind[]))});
	$node->safe_psql('shard1', qq{$trusting; ALTER FUNCTION "Types".size OWNER TO mallory});
}, qr/ERROR:  role mallory owns function "Types"\.size\("Types"\.kind\[\]\)\n/);
refused_there('a schema with a type', sub {
	coordinator(qq{$trusting; ALTER TABLE geo.station ALTER kind TYPE "Types".kind});
	$node->safe_psql('shard1', qq{$trusting; ALTER SCHEMA "Types" OWNER TO mallory});
}, qr/ERROR:  role mallory may create objects in schema "Types"\n/);
fresh();
$node->safe_psql('shard1', 'CREATE EXTENSION geonn');
my $elsewhere = run_printed("$call)");
like($elsewhere, qr/ERROR:  extension geonn is in schema public, and the coordinator has it in another one\n/, 'the extension elsewhere');
my ($hint) = $elsewhere =~ /HINT:  Run (.*) on this shard\.$/m;
fresh();
$node->safe_psql('shard1', "CREATE EXTENSION geonn; CREATE SCHEMA geonn; $hint");
is(run_printed("$call)"), '', 'its hint can be followed');

# ---- on the coordinator ----

refused_here('a function of a schema where another role may create', 'GRANT CREATE ON SCHEMA geo TO mallory', "$call)", qr/ERROR:  role mallory may create objects in schema geo\n/);
refused_here('a table of another role\'s', 'ALTER TABLE geo.ping OWNER TO mallory', "$call)", qr/ERROR:  role mallory owns table geo\.ping\n/);
refused_here('a server of another role\'s', 'GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO mallory; ALTER SERVER shard1 OWNER TO mallory', "$call)", qr/ERROR:  role mallory owns server shard1\n/);
refused_here('a table with the ending _sharded', 'ALTER TABLE geo.ping_sharded OWNER TO mallory', $move, qr/ERROR:  role mallory owns relation geo\.ping_sharded\n/);
refused_here('a view of all shards', 'ALTER TABLE geo.ping_by_shard OWNER TO mallory', "$call)", qr/ERROR:  role mallory owns relation geo\.ping_by_shard\n/);
refused_here('a publication', 'ALTER PUBLICATION station_shards OWNER TO mallory', "$call)", qr/ERROR:  role mallory owns publication station_shards\n/);
refused_here('dblink where another role may create', 'GRANT CREATE ON SCHEMA ext TO mallory', $move, qr/ERROR:  role mallory may create objects in schema ext\n/);
fresh();
refused_here('a schema of statistics', 'CREATE SCHEMA geonn_shard1 AUTHORIZATION mallory', "$call)", qr/ERROR:  role mallory may create objects in schema geonn_shard1\n/);
refused_here('a view of statistics', 'CREATE VIEW geo.geonn_stat_by_shard AS SELECT 1 AS one; ALTER VIEW geo.geonn_stat_by_shard OWNER TO mallory', "$call)",
	qr/ERROR:  role mallory owns relation geo\.geonn_stat_by_shard\n/);

# ---- code that a call would run ----

coordinator('CREATE SCHEMA m AUTHORIZATION mallory');
mallory('coordinator', q{
	CREATE FUNCTION m.springs(anyelement) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'sprung: check, as %', current_user; RETURN true; END $$;
	CREATE DOMAIN m.number AS bigint CHECK (m.springs(VALUE));
	CREATE TYPE m.numbers AS (n m.number);
	CREATE TYPE m.range AS RANGE (subtype = m.number);
});
foreach my $type ('m.number', 'm.number[]', 'm.numbers', 'm.range')
{
	coordinator("CREATE TABLE geo.own (key $type, id bigint, lat float8, lon float8, PRIMARY KEY (key, id))");
	foreach my $arguments (q{'range', bounds => '{5}'}, q{'list', bounds => ARRAY['{5}','{6}']})
	{
		my $own = $call =~ s/geo\.ping/geo.own/r;
		my ($status, undef, $error) = $node->psql('coordinator', "SELECT count(*) FROM $own, key => 'key', partition_by => $arguments)");
		unlike($error, qr/sprung/, "bounds of type $type, $arguments: the call runs no check");
		is($error =~ /type .* does not divide a table by bounds/ ? 1 : $status, $type eq 'm.number' ? 0 : 1, 'and reads what a domain is made of');
	}
	coordinator('DROP TABLE geo.own');
}

# ---- foreign tables of others ----

is(run_printed("$call)"), '', 'two shards are set up');
coordinator('GRANT USAGE ON FOREIGN SERVER shard1, shard2 TO mallory');
mallory('coordinator', q{
	CREATE TABLE m.x (shard text NOT NULL, version bigint) PARTITION BY LIST (shard);
	CREATE FOREIGN TABLE m.x_1 PARTITION OF m.x FOR VALUES IN ('s') SERVER shard1 OPTIONS (schema_name 'm', table_name 'x_version_by_shard');
	CREATE FOREIGN TABLE m.x_2 PARTITION OF m.x FOR VALUES IN ('t') SERVER shard2 OPTIONS (schema_name 'm', table_name 'x_version_by_shard');
});
is(coordinator("SELECT count(*) > 0, count(*) FILTER (WHERE command ~ '\\ym\\.|x_version') FROM $move"), 't|0', 'a move names no foreign table of another role');

# ---- cancelled at once ----

mallory('coordinator', q{CREATE TABLE m.o (id bigint PRIMARY KEY, lat float8, lon float8); CREATE TABLE m.r (LIKE m.o INCLUDING ALL)});
coordinator('GRANT USAGE ON SCHEMA geonn TO mallory');
foreach my $arguments (q{'list', bounds => ARRAY[(SELECT array_agg(i)::text FROM generate_series(1, 2000000) i)]},
	q{'list', bounds => (SELECT array_agg('{' || i || '}') FROM generate_series(1, 500000) i)},
	q{'range', bounds => (SELECT array_agg(i::text) FROM generate_series(1, 1000000) i)})
{
	my $run = start_sql($node, "\\c coordinator\nSET ROLE mallory;\nSELECT count(*) FROM geonn.geonn_shard_ddl('{shard1}', 'm.o', 'm.r', 'host=x', partition_by => $arguments);\n");

	wait_until(sub {
		$run->{handle}->pump_nb if $run->{handle}->pumpable;
		$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = 'coordinator' AND state = 'active' AND query ~ 'geonn_shard_ddl'});
		!$run->{handle}->pumpable;
	}, "partition_by => $arguments: ends when it is cancelled");
	like((finish_sql($run))[2], qr/canceling statement due to user request/, 'by that');
}
# as many values as a quadratic search would take days for
is(coordinator(q{SET ROLE mallory; SELECT count(*) > 0 FROM geonn.geonn_shard_ddl('{shard1}', 'm.o', 'm.r', 'host=x', partition_by => 'list',
	bounds => ARRAY[(SELECT array_agg(i)::text FROM generate_series(1, 300000) i)])}), 't', 'a list of 300,000 values is read');

# ---- schemas full of traps, first in the search_path ----

# Overloads that a call with bare names would prefer: of the very types, of polymorphic ones made concrete, and
# of unknown literals.  What cannot be made is no trap.
my $traps = q{
	CREATE PROCEDURE plant_all(place text) LANGUAGE plpgsql SET search_path = pg_catalog SET check_function_bodies = off SET client_min_messages = error AS $$
	DECLARE
		f record;
		arguments text;
	BEGIN
		EXECUTE format('CREATE FUNCTION %I.springs(what anyelement) RETURNS boolean LANGUAGE plpgsql AS %L', place,
			'BEGIN RAISE WARNING ''sprung: % as %'', what, current_user; RETURN true; END');
		FOR f IN SELECT oid, proname, proargtypes, proretset, prorettype FROM pg_proc
			WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND pronargs BETWEEN 1 AND 4
			AND (proname IN ('array_length', 'cardinality', 'lower', 'format', 'row_number', 'rank', 'pg_sleep', 'clock_timestamp',
				'pg_get_object_address', 'pg_has_role', 'aclexplode', 'pg_describe_object', 'pg_identify_object', 'unnest', 'starts_with')
				OR oid IN (SELECT oprcode FROM pg_operator WHERE oprname IN ('>', '<', '=', '<>', '+', '||')))
		LOOP
			FOR arguments IN SELECT string_agg(CASE WHEN format_type(a, NULL) ~ 'array$' THEN 'text[]' WHEN format_type(a, NULL) ~ '^any' THEN t
					ELSE format_type(a, NULL) END, ', ' ORDER BY n)
				FROM unnest('{text, integer, bigint, oid}'::text[]) t, unnest(f.proargtypes::oid[]) WITH ORDINALITY u(a, n) GROUP BY t
			LOOP
				BEGIN
					EXECUTE format('CREATE FUNCTION %I.%I(%s) RETURNS %s IMMUTABLE COST 0.0001 LANGUAGE plpgsql AS %L', place, f.proname, arguments,
						CASE WHEN f.prorettype = 'record'::regtype OR format_type(f.prorettype, NULL) ~ '^any' THEN 'text' ELSE format_type(f.prorettype, NULL) END,
						format('BEGIN RAISE WARNING ''sprung: %%, as %%'', %L, current_user; RETURN NULL; END', f.proname || '(' || arguments || ')'));
				EXCEPTION WHEN OTHERS THEN
					NULL;
				END;
				BEGIN
					EXECUTE (SELECT format('CREATE OPERATOR %I.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = %I.%I)', place, oprname,
						split_part(arguments, ', ', 1), split_part(arguments, ', ', 2), place, f.proname) FROM pg_operator WHERE oprcode = f.oid LIMIT 1);
				EXCEPTION WHEN OTHERS THEN
					NULL;
				END;
			END LOOP;
		END LOOP;
		FOR f IN SELECT typname FROM pg_type WHERE typname IN ('text', 'name', 'regclass', 'oid', 'uuid', 'float8', 'int8', 'bool', 'timestamptz', 'numeric')
			AND typnamespace = 'pg_catalog'::regnamespace
		LOOP
			EXECUTE format('CREATE DOMAIN %I.%I AS pg_catalog.%2$I CHECK (%1$I.springs(%2$L::pg_catalog.text))', place, f.typname);
		END LOOP;
	END $$};

sub sprung { return join("\n", grep { /sprung/ } split /\n/, Geonn::slurp($node->logfile)) }
fresh();
foreach my $database (qw(coordinator shard1 shard2))
{
	$node->safe_psql($database, "$traps; GRANT CREATE ON SCHEMA public TO mallory; CREATE SCHEMA \"$superuser\" AUTHORIZATION mallory");
	mallory($database, qq{CALL public.plant_all('public'); CALL public.plant_all('$superuser')});
	is($node->safe_psql($database, q{SELECT count(*) > 100 FROM pg_proc WHERE proowner = 'mallory'::regrole}), 't', "$database has traps");
}
my $before = sprung();
$node->safe_psql('shard1', q{SELECT array_length('{a}'::text[], 1)});
isnt(sprung(), $before, 'a bare name springs one');
$before = sprung();
my $all = "$call, cache => true, k => 2, by => '{id}', readers => '{mallory}', view => 'near')";
my @printed = split /\n/, coordinator("SET search_path = pg_catalog; SELECT command FROM $all");
is(run_printed($all), '', 'the commands run beside traps');
is(run_printed("$call, view => 'inside', radius => 100)"), '', 'and those of another view');
coordinator(q{
	SET search_path = pg_catalog;
	INSERT INTO geo.ping_sharded (id, region, tags, lat, lon) SELECT i, 'R', '{a,b}', i, i FROM generate_series(1, 80) i;
	SELECT count(*) FROM geo.near;
	SELECT count(*) FROM geo.inside;
	SELECT * FROM geo.station_version_by_shard;
	SELECT * FROM geo.geonn_stat_by_shard});
push @printed, split /\n/, coordinator("SET search_path = pg_catalog; SELECT command FROM $move");
# nothing is replicated: a move would wait for the version
is(run_printed("(SELECT * FROM $move WHERE command !~ 'WHILE') commands"), '', 'and those of a move');
is(coordinator('SET search_path = pg_catalog; SELECT count(*) FROM geo.ping_sharded'), 80, 'with all rows');
is($node->safe_psql('shard1', 'SET search_path = pg_catalog; SELECT count(*), min(number_of_tags) FROM geo.ping'), '80|2', 'on one shard');
foreach my $where (['shard1', 'geo.ping'], ['coordinator', 'geo.ping_sharded'])
{
	my ($database, $table) = @$where;
	my (undef, undef, $error) = $node->psql($database, "SET search_path = pg_catalog; INSERT INTO $table (id, lat) VALUES (-1, 99)");

	like($error, qr/violates check constraint "ping_lat_check"/, "$table has the check");
}
is(sprung(), $before, 'no trap has sprung');

# ---- what is printed names all with its schema ----

cmp_ok(scalar(@printed), '>', 30, scalar(@printed) . ' commands');
my $resolved = 0;    # in pg_catalog alone, up to the transaction's end
foreach my $command (@printed)
{
	$resolved = 1 if $command eq 'SET LOCAL search_path = pg_catalog, pg_temp';
	$resolved = 0 if $command eq 'COMMIT';
	next if $command =~ /^SET (?:LOCAL )?search_path = pg_catalog, pg_temp/;
	my $words = $command =~ s/'(?:[^']|'')*'/''/gr;
	my @bare = $words =~ s/FROM SERVER \w+ INTO \w+//r =~ /\b(?:TABLE|VIEW|TYPE|FROM|INTO|ONLY|PARTITION OF|ATTACH PARTITION|DETACH PARTITION|TABLE IF EXISTS) (?!SERVER|IF EXISTS|ONLY|FOREIGN|pg_catalog\.|\()([\w"]+)(?![\w".])/g;
	push @bare, $resolved ? () : $words =~ /(?<![.\w])(?!PARTITION|VALUES|OPTIONS|EXISTS|COALESCE|OVER|ARRAY|WITH|ANY|IN|AND|AS|LIST|HASH|TO)\b([a-z_]\w*)\(/g;
	is("@bare", '', substr($command, 0, 70) . ': names have their schemas');
}

# ---- what another session has changed since the transaction's snapshot ----

fresh();
my $old = $node->background_psql('coordinator', on_error_stop => 1);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$old->query_safe('SELECT count(*) FROM pg_am');
coordinator('ALTER TABLE geo.ping ADD twice bigint GENERATED ALWAYS AS (id * 2) STORED');
like($old->query_safe("SELECT string_agg(command, ' ') FROM $call)"), qr/twice bigint GENERATED ALWAYS AS \(/,
	'an older snapshot has what a table is now');
$old->quit;

$node->stop;
done_testing();
