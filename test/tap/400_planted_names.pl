
# Nothing that the extension stores or runs is found by a name that another role could
# have planted: in databases whose schemas are full of traps, functions, operators, types and
# relations of the names that it uses, it is installed, updated and used to the full, and no trap
# springs.  A trap says so in the server log, whatever becomes of the transaction.
# rooms: base cache join points shard
# check-all: every function among traps

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($installation) = own_installation();
chomp(my $sharedir = `$installation/bin/pg_config --sharedir`);
chomp(my $libdir = `$installation/bin/pg_config --pkglibdir`);
my $scripts = "$sharedir/extension";
my ($version) = slurp_file("$scripts/geonn.control") =~ /default_version = '(.*)'/;
my $script = slurp_file("$scripts/geonn--$version.sql");
my $has_cron = -e "$scripts/pg_cron.control";

my $node = PostgreSQL::Test::Cluster->new('main', install_path => $installation);
$node->init;
$node->append_conf('postgresql.conf', $has_cron ?
	"shared_preload_libraries = 'geonn, pg_cron'\ncron.database_name = 'afterwards'\n" :
	"shared_preload_libraries = 'geonn'\n");
# of no interest are the runs of jobs, which would need a connection
$node->append_conf('postgresql.conf', "cron.launch_active_jobs = off\nlog_min_messages = warning\n");
$node->start;

# ---- traps ----

# Words of the script and of the module's own statements: what PostgreSQL has of these names
# is what there are traps for.
my @statements_of_module = grep { /\b(SELECT|INSERT|UPDATE|DELETE|WHERE|FROM|SET|VALUES|CALL|CREATE|ALTER|ORDER|pg_catalog)\b/ }
  slurp_file("$libdir/geonn.so") =~ /[\t\n\x20-\x7e]{8,}/g;
my %words = map { lc($_) => 1 } join(' ', $script, @statements_of_module) =~ /[A-Za-z_][A-Za-z_0-9]{0,62}/g;

$node->safe_psql('template1', q{
	CREATE TABLE words AS SELECT regexp_split_to_table('} . join(' ', sort keys %words) . q{', ' ') AS word;
	GRANT SELECT ON words TO PUBLIC;

	-- make what is told, with a body that springs; what cannot be made is no trap, and neither is what is the extension's
	CREATE PROCEDURE plant(kind text, name text, arguments text, result text) LANGUAGE plpgsql
		SET search_path = pg_catalog SET check_function_bodies = off AS $$
	BEGIN
		EXECUTE format('CREATE OR REPLACE %s %s(%s) %s LANGUAGE plpgsql AS %L', kind, name, arguments,
			CASE WHEN result <> '' THEN 'RETURNS ' || result || ' COST 0.0000001' ELSE '' END,
			format($f$BEGIN RAISE WARNING 'sprung: %%, as %%', %L, current_user; %s END$f$, name || '(' || arguments || ')',
				CASE WHEN result = '' OR result LIKE 'SETOF %' THEN 'RETURN;' ELSE 'RETURN NULL;' END));
	EXCEPTION WHEN OTHERS THEN
		NULL;
	END $$;

	-- the function types of a function's arguments become others of
	CREATE FUNCTION with_types(arguments oidvector, type text) RETURNS text LANGUAGE sql SET search_path = pg_catalog
	RETURN (SELECT string_agg(coalesce(type, format_type(a, NULL)), ', ' ORDER BY n)
		FROM unnest(arguments::oid[]) WITH ORDINALITY u(a, n));

	CREATE PROCEDURE plant_all(place text) LANGUAGE plpgsql SET search_path = pg_catalog AS $$
	DECLARE
		f record;
		left_type text;
		right_type text;
		o text;
		words text[] = (SELECT array_agg(word) FROM public.words);
		types text[] = '{text, name, oid, regclass, integer, smallint, bigint, boolean, jsonb, timestamptz, interval,
			double precision, bytea, anyelement, anycompatible}';
	BEGIN
		-- functions: of the very types, of others that unknown literals prefer or that casts lead to
		FOR f IN SELECT proname, proargtypes, proretset, pronargs, format_type(prorettype, NULL) AS result FROM pg_proc
			WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('f', 'a') AND proname = ANY (words)
		LOOP
			f.result := CASE WHEN f.proretset THEN 'SETOF ' ELSE '' END
				|| CASE WHEN f.result LIKE 'any%' OR f.result IN ('record', '"any"', 'internal', 'void') THEN 'text' ELSE f.result END;
			FOREACH left_type IN ARRAY '{NULL, text, integer, bigint, oid, anyelement, anycompatible}'::text[]
			LOOP
				CALL public.plant('FUNCTION', format('%I.%I', place, f.proname),
					public.with_types(f.proargtypes, left_type), f.result);
			END LOOP;
		END LOOP;

		-- operators
		FOREACH o IN ARRAY '{=, <>, <, <=, >, >=, +, -, ->, ->>, ||, ~~, @>}'::text[]
		LOOP
			FOREACH left_type IN ARRAY types
			LOOP
				FOREACH right_type IN ARRAY types
				LOOP
					CONTINUE WHEN (left_type = 'anyelement') <> (right_type = 'anyelement')
						OR (left_type = 'anycompatible') <> (right_type = 'anycompatible');
					CALL public.plant('FUNCTION', format('%I.%I', place, 'operator ' || o), left_type || ', ' || right_type,
						CASE WHEN o IN ('+', '-') AND left_type NOT LIKE 'any%' THEN left_type
							WHEN o IN ('->>', '||') THEN 'text' WHEN o = '->' THEN 'jsonb' ELSE 'boolean' END);
					EXECUTE format('CREATE OPERATOR %I.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = %I.%I)', place, o,
						left_type, right_type, place, 'operator ' || o);
				END LOOP;
			END LOOP;
		END LOOP;

		-- relations and types
		CALL public.plant('FUNCTION', format('%I.springs', place), 'what text', 'boolean');
		FOR f IN SELECT relname, string_agg(attname, ', ' ORDER BY attnum) AS columns FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
			WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') AND relname = ANY (words)
			AND attnum > 0 AND atttypid <> 'anyarray'::regtype GROUP BY relname
		LOOP
			EXECUTE format('CREATE VIEW %I.%I AS SELECT %s FROM pg_catalog.%2$I WHERE %1$I.springs(%2$L)', place, f.relname, f.columns);
		END LOOP;
		FOR f IN SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b'
			AND typname = ANY (words) AND typname NOT LIKE '\_%'
		LOOP
			EXECUTE format('CREATE DOMAIN %I.%I AS pg_catalog.%2$I CHECK (%1$I.springs(%2$L))', place, f.typname);
		END LOOP;
	END $$;

	-- overloads of the extension's own functions, given as (kind, name, arguments' types and names, how many are needed)
	CREATE PROCEDURE plant_own(place text, own jsonb) LANGUAGE plpgsql SET search_path = pg_catalog AS $$
	DECLARE
		f record;
		a text[];
	BEGIN
		FOR f IN SELECT * FROM jsonb_to_recordset(own) AS r(kind text, name text, arguments text[], needed integer)
		LOOP
			FOR a IN SELECT f.arguments[:f.needed]
				UNION ALL SELECT array_replace(array_replace(array_replace(f.arguments, 'regclass', t), 'oid', t), 'name', 'text')
					FROM unnest('{integer, bigint, oid, text}'::text[]) t
				UNION ALL SELECT array_replace(f.arguments[:f.needed], 'regclass', t) FROM unnest('{integer, text}'::text[]) t
				UNION ALL SELECT array_agg(t) FROM unnest(f.arguments), unnest('{text, anyelement, anycompatible}'::text[]) t GROUP BY t
				UNION ALL SELECT array_replace(array_replace(f.arguments, 'anyelement', place || '.geonn_pair'), 'regclass', 'integer')
			LOOP
				CONTINUE WHEN EXISTS (SELECT FROM jsonb_to_recordset(own) AS r(name text, arguments text[])
					WHERE r.name = f.name AND r.arguments = coalesce(a, '{}'));
				CALL public.plant(f.kind, format('%I.%I', place, f.name), array_to_string(a, ', '),
					CASE WHEN f.kind = 'PROCEDURE' THEN '' WHEN a && '{anyelement}' THEN 'SETOF anyelement' ELSE 'text' END);
			END LOOP;
		END LOOP;
	END $$;

	-- such that differ in the type of relations alone, and have the same names and defaults
	CREATE PROCEDURE plant_named(place text, own jsonb) LANGUAGE plpgsql SET search_path = pg_catalog AS $$
	DECLARE
		f record;
		t text;
		list text;
	BEGIN
		FOR f IN SELECT * FROM jsonb_to_recordset(own) AS r(name text, arguments text[], names text[], needed integer)
			WHERE 'regclass' = ANY (arguments)
		LOOP
			FOREACH t IN ARRAY '{integer, bigint, oid}'::text[]
			LOOP
				list = (SELECT string_agg(format('%I %s%s', name, CASE type WHEN 'regclass' THEN t ELSE type END, CASE WHEN n <= f.needed THEN ''
						WHEN type = 'anyelement' THEN ' DEFAULT NULL::integer' ELSE ' DEFAULT NULL' END), ', ' ORDER BY n)
					FROM unnest(f.names, f.arguments) WITH ORDINALITY u(name, type, n));
				CALL public.plant('FUNCTION', format('%I.%I', place, f.name), list,
					CASE WHEN 'anyelement' = ANY (f.arguments) THEN 'SETOF anyelement' ELSE 'text' END);
			END LOOP;
		END LOOP;
	END $$;

	-- and such that take the same arguments, and more by default
	CREATE PROCEDURE plant_twins(place text, own jsonb) LANGUAGE plpgsql SET search_path = pg_catalog AS $$
	DECLARE
		f record;
	BEGIN
		FOR f IN SELECT * FROM jsonb_to_recordset(own) AS r(kind text, name text, arguments text[])
		LOOP
			CALL public.plant(f.kind, format('%I.%I', place, f.name),
				concat_ws(', ', VARIADIC f.arguments || 'integer DEFAULT 1'::text), CASE f.kind WHEN 'FUNCTION' THEN 'text' ELSE '' END);
		END LOOP;
	END $$;
});

$node->safe_psql('postgres', 'CREATE ROLE planter LOGIN; CREATE ROLE keeper LOGIN');

# A database with traps in the schema hers, and what keeper is going to search.
sub create_database
{
	my ($name) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $name");
	$node->safe_psql($name, qq{
		GRANT CREATE ON DATABASE $name TO planter;
		GRANT CREATE ON SCHEMA public TO PUBLIC;
		CREATE SCHEMA data AUTHORIZATION keeper;
		CREATE TABLE data.obs AS SELECT i AS id, (i * 7 % 90)::float8 AS lat, (i * 11 % 180)::float8 AS lon, 'k' || i % 3 AS kind, i % 9 AS seen
			FROM generate_series(1, 300) i;
		CREATE TABLE data.ref AS SELECT 'r' || i AS id, (i * 13 % 90)::float8 AS lat, (i * 17 % 180)::float8 AS lon, 'k' || i % 3 AS kind, int4range(i % 5, 9) AS seen
			FROM generate_series(1, 90) i;
		ALTER TABLE data.obs OWNER TO keeper;
		ALTER TABLE data.ref OWNER TO keeper;
		CREATE TYPE data.pair AS (obs_id integer, ref_id text, rank integer, distance float8);
		CREATE TYPE data.points AS (ord bigint, ref_id text);
	});
	$node->safe_psql($name, 'CREATE EXTENSION pg_cron; GRANT USAGE ON SCHEMA cron TO keeper') if $has_cron && $name eq 'afterwards';
	$node->safe_psql($name, 'CREATE SCHEMA hers; GRANT USAGE ON SCHEMA hers TO PUBLIC', connstr => $node->connstr($name) . ' user=planter');
}

sub plant_own
{
	my ($database, $schema, $what, $own) = @_;

	$node->safe_psql($database, "CALL public.plant_$what('$schema', '$own')", connstr => $node->connstr($database) . ' user=planter');
}

sub plant
{
	my ($database, $own, @schemas) = @_;

	foreach my $schema (@schemas)
	{
		plant_own($database, $schema, 'own', $own);
		$node->safe_psql($database, "CALL public.plant_all('$schema')", connstr => $node->connstr($database) . ' user=planter');
	}
}

# what has sprung since the last call
my $read = 0;
sub sprung
{
	my %sprung = map { $_ => 1 } slurp_file($node->logfile, $read) =~ /WARNING:  sprung: (.*)/g;

	$read = -s $node->logfile;
	return join("\n", sort keys %sprung);
}

# ---- what the extension has ----

create_database('clean');
$node->safe_psql('clean', 'CREATE EXTENSION geonn');
my $own = $node->safe_psql('clean', q{
	SELECT jsonb_agg(jsonb_build_object('kind', CASE prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END, 'name', proname,
		'needed', pronargs - pronargdefaults, 'names', coalesce(proargnames[:pronargs], '{}'),
		'arguments', coalesce((SELECT array_agg(format_type(a, NULL) ORDER BY n) FROM unnest(proargtypes::oid[]) WITH ORDINALITY u(a, n)), '{}')))
	FROM pg_proc JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e'
	WHERE proname LIKE 'geonn%'});

# What objects of the extension, with their rules, defaults and the like, depend on that is neither its own
# nor of pg_catalog; $S is its schema.
sub dependencies
{
	my ($database) = @_;

	return $node->safe_psql($database, q{
		SET search_path = pg_catalog;
		WITH RECURSIVE part AS (
			SELECT classid, objid FROM pg_depend WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
				AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'geonn')
			UNION SELECT d.classid, d.objid FROM pg_depend d JOIN part p ON d.refclassid = p.classid AND d.refobjid = p.objid
				WHERE d.deptype IN ('i', 'a', 'P', 'S')
		)
		SELECT pg_describe_object(d.classid, d.objid, 0) || ' needs ' || pg_describe_object(d.refclassid, d.refobjid, 0)
		FROM pg_depend d JOIN part p USING (classid, objid)
		CROSS JOIN LATERAL pg_identify_object(d.refclassid, d.refobjid, 0) i
		WHERE (d.refclassid, d.refobjid) NOT IN (SELECT classid, objid FROM part)
			AND d.refclassid NOT IN ('pg_namespace'::regclass, 'pg_extension'::regclass)
			AND i.schema IS DISTINCT FROM 'pg_catalog'});
}

is(dependencies('clean'), '', 'by itself it depends on nothing but PostgreSQL');
cmp_ok($node->safe_psql('clean', q{SELECT count(*) FROM pg_depend WHERE refobjid = 'pg_locks'::regclass AND classid = 'pg_rewrite'::regclass
	AND objid IN (SELECT oid FROM pg_rewrite WHERE ev_class = 'geonn_caches'::regclass)}), '>', 0, 'and its dependencies are looked at');

# ---- use ----

# Call all that there is, with all arguments of exactly their types: what planted functions that need others
# would otherwise do to a user's own call is not the extension's to prevent.
my $calls = q{
	SET search_path = hers, public, pg_catalog;
	SELECT * FROM $S.geonn_describe('data.obs'::pg_catalog.regclass, '{}'::pg_catalog.jsonb, NULL::pg_catalog.name[]);
	SELECT * FROM $S.geonn_check('data.obs'::pg_catalog.regclass, '{}'::pg_catalog.jsonb, NULL::pg_catalog.name[]);
	SELECT $S.geonn_distance(1::double precision, 2::double precision, 3::double precision, 4::double precision, 'sphere'::pg_catalog.text);
	SELECT $S.geonn_distance(1::double precision, 2::double precision, NULL::pg_catalog.text);
	SELECT pg_catalog.count(*) FROM $S.geonn_nearest('data.obs'::pg_catalog.regclass, 'data.ref'::pg_catalog.regclass, 2, NULL::double precision,
		'sphere'::pg_catalog.text, '{kind}'::pg_catalog.name[], NULL::pg_catalog.name[], '{seen}'::pg_catalog.name[], false, false, 'first'::pg_catalog.text, 'skip'::pg_catalog.text,
		'{}'::pg_catalog.jsonb, NULL::data.pair);
	SELECT pg_catalog.count(*) FROM $S.geonn_within('data.obs'::pg_catalog.regclass, 'data.ref'::pg_catalog.regclass, 1e6::double precision,
		'sphere'::pg_catalog.text, NULL::pg_catalog.name[], '{kind}'::pg_catalog.name[], '{seen}'::pg_catalog.name[], false, false, 'skip'::pg_catalog.text, '{}'::pg_catalog.jsonb,
		NULL::data.pair);
	SELECT pg_catalog.count(*) FROM $S.geonn_nearest_sql('SELECT * FROM data.obs'::pg_catalog.text, 'TABLE data.ref'::pg_catalog.text, 1,
		NULL::double precision, 'sphere'::pg_catalog.text, NULL::pg_catalog.name[], NULL::pg_catalog.name[], NULL::pg_catalog.name[], false, false, 'first'::pg_catalog.text, 'skip'::pg_catalog.text,
		'{}'::pg_catalog.jsonb, NULL::data.pair);
	SELECT pg_catalog.count(*) FROM $S.geonn_within_sql('TABLE data.obs'::pg_catalog.text, 'TABLE data.ref'::pg_catalog.text, 1e6::double precision,
		'sphere'::pg_catalog.text, NULL::pg_catalog.name[], NULL::pg_catalog.name[], '{seen}'::pg_catalog.name[], false, false, 'skip'::pg_catalog.text, '{}'::pg_catalog.jsonb,
		NULL::data.pair);
	SELECT pg_catalog.count(*) FROM $S.geonn_within_count('data.obs'::pg_catalog.regclass, 'data.ref'::pg_catalog.regclass, '{1e6}'::double precision[],
		'{lat}'::pg_catalog.name[], 'sphere'::pg_catalog.text, '{kind}'::pg_catalog.name[], NULL::pg_catalog.name[], NULL::pg_catalog.name[], false,
		'skip'::pg_catalog.text, '{}'::pg_catalog.jsonb, NULL::$S.geonn_within_row);
	SELECT pg_catalog.count(*) FROM $S.geonn_within_count_sql('TABLE data.obs'::pg_catalog.text, 'TABLE data.ref'::pg_catalog.text,
		'{1e6}'::double precision[], '{lat}'::pg_catalog.name[], 'sphere'::pg_catalog.text, NULL::pg_catalog.name[], NULL::pg_catalog.name[],
		NULL::pg_catalog.name[], false, 'skip'::pg_catalog.text, '{}'::pg_catalog.jsonb, NULL::$S.geonn_within_row);
	SELECT pg_catalog.count(*) FROM $S.geonn_cluster('data.ref'::pg_catalog.regclass, 1e6::double precision, 2, '{kind}'::pg_catalog.name[],
		'{seen}'::pg_catalog.name[], 'sphere'::pg_catalog.text, 'skip'::pg_catalog.text, '{}'::pg_catalog.jsonb, NULL::$S.geonn_clustered_text);
	SELECT pg_catalog.count(*) FROM $S.geonn_cluster_sql('TABLE data.ref'::pg_catalog.text, 1e6::double precision, 2, NULL::pg_catalog.name[],
		NULL::pg_catalog.name[], 'sphere'::pg_catalog.text, 'skip'::pg_catalog.text, '{}'::pg_catalog.jsonb, NULL::$S.geonn_clustered_text);
	SELECT pg_catalog.count(*) FROM $S.geonn_thin('data.ref'::pg_catalog.regclass, 1e6::double precision, 'lat'::pg_catalog.name, '{kind}'::pg_catalog.name[],
		'{seen}'::pg_catalog.name[], 'sphere'::pg_catalog.text, 'skip'::pg_catalog.text, '{}'::pg_catalog.jsonb, NULL::$S.geonn_thinned_text);
	SELECT pg_catalog.count(*) FROM $S.geonn_thin_sql('TABLE data.ref'::pg_catalog.text, 1e6::double precision, 'lat'::pg_catalog.name, NULL::pg_catalog.name[],
		NULL::pg_catalog.name[], 'sphere'::pg_catalog.text, 'skip'::pg_catalog.text, '{}'::pg_catalog.jsonb, NULL::$S.geonn_thinned_text);
	SELECT pg_catalog.count(*) FROM $S.geonn_nearest_points('{1}'::double precision[], '{2}'::double precision[], 'data.ref'::pg_catalog.regclass,
		1, NULL::double precision, 'sphere'::pg_catalog.text, '{seen}'::pg_catalog.name[], '{3}'::integer[], false, 'first'::pg_catalog.text, 'skip'::pg_catalog.text,
		'{}'::pg_catalog.jsonb, NULL::data.points);
	SELECT $S.geonn_cache_create('near'::pg_catalog.text, 'data.obs'::pg_catalog.regclass, 'data.ref'::pg_catalog.regclass, 2, NULL::double precision,
		'sphere'::pg_catalog.text, '{kind}'::pg_catalog.name[], NULL::pg_catalog.name[], '{seen}'::pg_catalog.name[], false, false, 'first'::pg_catalog.text, 'skip'::pg_catalog.text,
		'{}'::pg_catalog.jsonb, 'data.near'::pg_catalog.text, NULL::double precision);
	SELECT $S.geonn_cache_create('within'::pg_catalog.text, 'data.obs'::pg_catalog.regclass, 'data.ref'::pg_catalog.regclass, 1, NULL::double precision,
		'sphere'::pg_catalog.text, NULL::pg_catalog.name[], NULL::pg_catalog.name[], NULL::pg_catalog.name[], false, true, 'first'::pg_catalog.text, 'skip'::pg_catalog.text,
		'{}'::pg_catalog.jsonb, 'data.within'::pg_catalog.text, 1e6::double precision);
	SELECT $S.geonn_cache_create('clusters'::pg_catalog.text, NULL::pg_catalog.regclass, NULL::pg_catalog.regclass, 1, NULL::double precision,
		'sphere'::pg_catalog.text, '{kind}'::pg_catalog.name[], NULL::pg_catalog.name[], '{seen}'::pg_catalog.name[], false, false, 'first'::pg_catalog.text, 'skip'::pg_catalog.text,
		'{}'::pg_catalog.jsonb, 'data.clusters'::pg_catalog.text, 1e6::double precision, 'auto'::pg_catalog.text, NULL::double precision[], NULL::pg_catalog.name[],
		'data.ref'::pg_catalog.regclass, 2);
	CALL $S.geonn_refresh('clusters'::pg_catalog.text, 'full'::pg_catalog.text);
	CALL $S.geonn_refresh('near'::pg_catalog.text, 'full'::pg_catalog.text);
	CALL $S.geonn_refresh('near'::pg_catalog.text, 'auto'::pg_catalog.text);
	CALL $S.geonn_refresh('within'::pg_catalog.text, 'full'::pg_catalog.text);
	UPDATE data.obs SET lat = 1 WHERE id OPERATOR(pg_catalog.=) 7;
	UPDATE data.ref SET lat = 2 WHERE id OPERATOR(pg_catalog.=) 'r8'::pg_catalog.text;
	CALL $S.geonn_refresh('near'::pg_catalog.text, 'incremental'::pg_catalog.text);
	UPDATE data.obs SET lat = 3 WHERE id OPERATOR(pg_catalog.=) 9;
	CALL $S.geonn_refresh('within'::pg_catalog.text, 'auto'::pg_catalog.text);
	CALL $S.geonn_refresh_all('auto'::pg_catalog.text);
	UPDATE data.near SET distance = 1 WHERE obs_id OPERATOR(pg_catalog.=) 9;
	DELETE FROM data.near WHERE obs_id OPERATOR(pg_catalog.=) 10;
	CALL $S.geonn_refresh('near'::pg_catalog.text, 'auto'::pg_catalog.text);
	SELECT $S.geonn_cache_alter('near'::pg_catalog.text, '{"name": "nearest", "k": 1, "ties": "all"}'::pg_catalog.jsonb);
	CALL $S.geonn_refresh('nearest'::pg_catalog.text, 'auto'::pg_catalog.text);
	SELECT $S.geonn_unschedule('nearest'::pg_catalog.text);
	TABLE $S.geonn_caches;
	TABLE $S.geonn_cache_log;
	TABLE $S.geonn_stat;
	TABLE $S.geonn_stat_progress;
	TABLE $S.geonn_devices;
	SELECT * FROM $S.geonn_status();
	SELECT $S.geonn_engine_start();
};
my $schedule = q{
	SELECT $S.geonn_schedule('nearest'::pg_catalog.text, '@daily'::pg_catalog.text);
	SELECT $S.geonn_cache_alter('nearest'::pg_catalog.text, '{"name": "nearer"}'::pg_catalog.jsonb);
	TABLE $S.geonn_caches;
	DO LANGUAGE plpgsql 'DECLARE command pg_catalog.text; BEGIN SELECT j.command INTO STRICT command FROM cron.job j; EXECUTE command; END';
	SELECT $S.geonn_unschedule('nearer'::pg_catalog.text);
	SELECT $S.geonn_schedule('nearer'::pg_catalog.text, '@daily'::pg_catalog.text);
	SELECT $S.geonn_cache_alter('nearer'::pg_catalog.text, '{"name": "nearest"}'::pg_catalog.jsonb);
};
my $drop = q{
	SELECT $S.geonn_cache_drop('nearest'::pg_catalog.text, false), $S.geonn_cache_drop('within'::pg_catalog.text, true);
	DROP TABLE data.within, data.clusters;
};

sub use_all
{
	my ($database, $schema, $how) = @_;

	foreach my $role ('keeper', 'postgres')
	{
		my $sql = $calls . ($has_cron && $database eq 'afterwards' ? $schedule : '') . $drop;
		my $user = $role eq 'postgres' ? '' : "SET SESSION AUTHORIZATION $role;";
		$sql =~ s/\$S/$schema/g;
		my ($status, $out, $error) = $node->psql($database, "$user$sql", on_error_stop => 1);
		is($status, 0, "$how: $role calls all that the extension has") or diag($error);
		is(sprung(), '', "$how: and no trap springs");
	}
	is(dependencies($database), '', "$how: it depends on nothing that was planted");
}

# ---- traps that are there before ----

create_database('beforehand');
plant('beforehand', $own, 'public', 'hers');
cmp_ok($node->safe_psql('beforehand', q{SELECT count(*) FROM pg_proc WHERE proowner = 'planter'::regrole AND pronamespace = 'public'::regnamespace}),
	'>', 2000, 'there are many traps');
is($node->safe_psql('beforehand', q{SELECT to_regprocedure('public.geonn_refresh(text)'), to_regprocedure('public.nextval(text)'),
	to_regprocedure('hers.geonn_cache_alter(text,text)'), to_regoperator('public.=(oid,regclass)'), to_regtype('hers.jsonb')}),
	'geonn_refresh(text)|nextval(text)|hers.geonn_cache_alter(text,text)|=(oid,regclass)|hers.jsonb', 'of all kinds');
is(sprung(), '', 'planting springs none');
foreach my $statement (q{SELECT pg_catalog.now(), nextval('none')}, q{SELECT 1::pg_catalog.oid = 'pg_catalog.pg_class'::pg_catalog.regclass},
	q{SET search_path = hers, pg_catalog; SELECT now()}, q{SET search_path = hers, pg_catalog; SELECT 1 + 1},
	q{SET search_path = hers, pg_catalog; SELECT 'x'::text}, q{SET search_path = hers, pg_catalog; SELECT FROM pg_database})
{
	$node->psql('beforehand', $statement);
	isnt(sprung(), '', "a trap that is trodden on springs: $statement");
}

my ($status, $out, $error) = $node->psql('beforehand', 'CREATE EXTENSION geonn SCHEMA public');
is($status, 0, 'it is installed among traps') or diag($error);
is(sprung(), '', 'and none springs');
use_all('beforehand', 'public', 'traps that were there before');

# ---- traps that come later ----

create_database('afterwards');
$node->safe_psql('afterwards', 'CREATE SCHEMA geonn; GRANT ALL ON SCHEMA geonn TO PUBLIC; CREATE EXTENSION geonn SCHEMA geonn');
plant('afterwards', $own, 'geonn', 'public', 'hers');
use_all('afterwards', 'geonn', 'traps that came later');

# ---- functions of the same names and arguments' names, for relations that are given by number ----

plant_own('afterwards', 'geonn', 'named', $own);
use_all('afterwards', 'geonn', 'functions of the same argument names');

# ---- twins, which make a call ambiguous: it fails, and runs nothing of theirs ----

plant_own('afterwards', 'geonn', 'twins', $own);
(my $ambiguous = "$calls$schedule$drop") =~ s/\$S/geonn/g;
($status, $out, $error) = $node->psql('afterwards', $ambiguous, on_error_stop => 0);
like($error, qr/is not unique/, 'twins of the extension\'s functions are noticed');
is(sprung(), '', 'and do not run');

create_database('twins');
plant_own('twins', 'public', 'twins', $own);
($status, $out, $error) = $node->psql('twins', 'CREATE EXTENSION geonn SCHEMA public');
like($error, qr/is not unique/, 'nor is it installed beside such twins');
is(sprung(), '', 'which do not run either');

# ---- an update among traps ----

my @statements = grep { /^\w/m } $script =~ /(.*?;(?:[ \t]*--[^\n]*)?\n)/gs;
sub write_script
{
	my ($name, @lines) = @_;

	open(my $file, '>', "$scripts/geonn--$name.sql") or die "$name: $!";
	print $file @lines;
	close($file);
}
my $made_first = shift @statements;
add_release($installation, '0.1');
write_script('none', $made_first);
write_script('none--all', @statements);
foreach my $update ([ 'none', 'all' ], [ '0.1', $version ])
{
	my ($from, $to) = @$update;
	my $database = "updated_from_$from" =~ tr/./_/r;

	create_database($database);
	$node->safe_psql($database, qq{CREATE EXTENSION geonn VERSION '$from' SCHEMA public});
	plant($database, $own, 'public', 'hers');
	($status, $out, $error) = $node->psql($database, qq{ALTER EXTENSION geonn UPDATE TO '$to'});
	is($status, 0, "it is updated from $from among traps") or diag($error);
	is(sprung(), '', 'and none springs');
	use_all($database, 'public', "an update from $from among traps");
}

$node->stop;
done_testing();
