
# What a role may not know it does not learn: not from the views of the extension, by whatever
# function in a condition that costs next to nothing, nor from its functions.  Its tables are not
# changed by members of pg_write_all_data, and dumped by members of pg_read_all_data.
# CREATE EXTENSION says who could put objects beside its own.
# rooms: base watch points

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

chomp(my $share = `pg_config --sharedir`);
my $has_cron = -e "$share/extension/pg_cron.control";
my $node = new_server('main',
	conf => $has_cron ? "shared_preload_libraries = 'geonn, pg_cron'\ncron.database_name = 'postgres'\ncron.launch_active_jobs = off\n" :
		"shared_preload_libraries = 'geonn'\n");

# oids are then numbers that no process and no figure has
$node->stop;
system_or_bail('pg_resetwal', '--next-oid', 3_999_111_222, '--pgdata', $node->data_dir);
$node->start;

sub query
{
	my ($role, $sql) = @_;

	return $node->safe_psql('postgres', "SET SESSION AUTHORIZATION $role;\n$sql");
}

# (status, standard output, standard error)
sub attempt
{
	my ($role, $sql) = @_;

	return $node->psql('postgres', "SET SESSION AUTHORIZATION $role;\n$sql", on_error_stop => 0);
}

# ---- what there is to know ----

$node->safe_psql('postgres', q{
	CREATE ROLE victim LOGIN;
	CREATE ROLE stranger LOGIN;
	CREATE ROLE watcher LOGIN IN ROLE pg_read_all_stats;
	CREATE ROLE archivist LOGIN IN ROLE pg_read_all_data, pg_write_all_data;
	CREATE SCHEMA secret AUTHORIZATION victim;
	CREATE SCHEMA strange AUTHORIZATION stranger;
});
$node->safe_psql('postgres', 'CREATE EXTENSION pg_cron; GRANT USAGE ON SCHEMA cron TO victim, stranger') if $has_cron;
query('victim', q{
	CREATE TABLE secret.obs (id bigint PRIMARY KEY, lat float8, lon float8);
	CREATE TABLE secret.ref (id bigint PRIMARY KEY, lat float8, lon float8);
	INSERT INTO secret.obs VALUES (1, 52.5, 13.4);
	INSERT INTO secret.ref VALUES (77, 52.1, 13.3);
	SELECT geonn_cache_create('secret cache', 'secret.obs', 'secret.ref', target => 'secret.near', invalid => 'error');
	SELECT geonn_cache_create('secret orphan', 'secret.obs', 'secret.ref', target => 'secret.gone');
	SELECT count(*) FROM geonn_nearest('secret.obs', 'secret.ref', max_distance => 9876.54321);
	INSERT INTO secret.obs VALUES (4711471147114711, 95.123456, 13.4);
});
attempt('victim', q{CALL geonn_refresh('secret cache')});
query('victim', q{SELECT geonn_schedule('secret cache', '59 23 * * *')}) if $has_cron;
$node->safe_psql('postgres', q{
	ALTER EVENT TRIGGER geonn_cache_dropped DISABLE;
	DROP TABLE secret.gone;
	ALTER EVENT TRIGGER geonn_cache_dropped ENABLE ALWAYS;
});
my $orphan_id = $node->safe_psql('postgres', q{SELECT id FROM geonn_cache WHERE name = 'secret orphan'});
isnt($orphan_id, '', 'a cache whose table is gone');

# names, numbers and values that none but victim and those who watch may know, and that no figure of a machine or a clock contains
my @secrets = ('secret', '95\.123456', '4711471147114711', '9876\.54321',
	map { '\b' . $node->safe_psql('postgres', "SELECT '$_'::regclass::oid") . '\b' } 'secret.obs', 'secret.ref', 'secret.near');
push @secrets, '59 23 \* \*' if $has_cron;
my $secrets = join('|', @secrets);

# ---- the views ----

query('stranger', q{
	CREATE FUNCTION strange.leak(what text, value anyelement) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$
	BEGIN
		RAISE NOTICE 'leaked % %', what, value;
		IF pg_typeof(value) = 'regclass'::regtype THEN
			RAISE NOTICE 'leaked % %', what, value::oid;
		END IF;
		RETURN true;
	END $$;
	GRANT USAGE ON SCHEMA strange TO PUBLIC;
});

# "VIEW.COLUMN" of all columns of the extension's views
my @columns = split /\n/, $node->safe_psql('postgres', q{
	SELECT c.relname || '.' || quote_ident(attname) FROM pg_class c
	JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
	JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'geonn'
	JOIN pg_attribute a ON a.attrelid = c.oid AND attnum > 0 WHERE relkind = 'v' ORDER BY 1});

# what a role gets to see of the views, in their rows and by a function that costs nothing: lines of VIEW.COLUMN and value
sub seen
{
	my ($role) = @_;
	my $sql = join("\n", map { my ($view, $column) = split /\./; "SELECT 'shown $_', $column FROM $view WHERE strange.leak('$_', $column);" } @columns);
	my ($status, $out, $error) = attempt($role, $sql);

	die $error if $error =~ /ERROR/;
	return join("\n", map { /(?:shown|leaked) (\S+?[| ].*)/ } split /\n/, "$out\n$error");
}

cmp_ok(scalar(@columns), '>', 50, 'all columns of all views');
is(join("\n", grep { /$secrets/ } split /\n/, seen('stranger')), '', 'tell a stranger nothing');
is(join("\n", grep { /$secrets/ } split /\n/, seen('archivist')), '', 'nor who may read all tables');
my $of_victim = seen('victim');
like($of_victim, qr/secret cache.*95\.123456/s, 'what is one\'s own is shown');
unlike($of_victim, qr/secret orphan/, 'but no cache whose table is gone');
my $of_watcher = seen('watcher');
like($of_watcher, qr/secret cache.*secret orphan.*secret\.obs/s, 'and all of it to who watches');
like(seen('postgres'), qr/secret orphan/, 'or owns the extension');
like($of_watcher, qr/$_/, "$_ is in a view") foreach @secrets;
foreach my $column (qw(obs ref obs_name ref_name arguments))
{
	is(query('stranger', "SELECT DISTINCT $column FROM geonn_stat WHERE usename = 'victim'"), '', "geonn_stat of others has no $column");
	isnt(query('watcher', "SELECT max(${column}::text) FROM geonn_stat WHERE usename = 'victim'"), '', 'but for who watches');
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class c JOIN pg_depend d ON d.objid = c.oid AND d.classid = 'pg_class'::regclass AND deptype = 'e'
	WHERE relname LIKE 'geonn%' AND relkind = 'v' AND pg_get_viewdef(c.oid) LIKE '%pg_has_role%' AND NOT reloptions @> '{security_barrier=true}'}),
	0, 'views with a condition on roles are barriers');

# ---- the tables ----

foreach my $table (split /\n/, $node->safe_psql('postgres', q{
	SELECT relname FROM pg_class WHERE relname LIKE 'geonn\_cache%' AND relkind = 'r'}))
{
	my $columns = $node->safe_psql('postgres', qq{SELECT string_agg(quote_ident(attname) || ' = ' || quote_ident(attname), ', ') FROM pg_attribute
		WHERE attrelid = '$table'::regclass AND attnum > 0 AND attidentity = ''});
	my $before = $node->safe_psql('postgres', "SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM $table t");
	foreach my $statement ("UPDATE $table SET $columns", "DELETE FROM $table",
		"INSERT INTO $table SELECT (jsonb_populate_record(NULL::$table, '{}')).*")
	{
		my ($status, $out, $error) = attempt('archivist', $statement);
		like($error, qr/permission denied for table geonn_cache/, "a member of pg_write_all_data is refused: $statement")
			if $table eq 'geonn_cache';
	}
	is($node->safe_psql('postgres', "SELECT md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM $table t"), $before, "$table stays as it is, whatever a member of pg_write_all_data does");
}
query('victim', q{DELETE FROM secret.obs WHERE id = 4711471147114711; CALL geonn_refresh('secret cache')});
is(query('victim', q{SELECT status FROM geonn_caches WHERE name = 'secret cache'}), 'succeeded', 'caches work all the same');

# ---- dumps: a number that names nothing is not restored as another relation's ----

$node->command_checks_all([ 'pg_dump', '-d', $node->connstr('postgres') ], 0, [ qr/secret cache/, qr/^(?!.*secret orphan)/s ], [],
	'a dump has caches, but none whose table is gone');
query('victim', q{CREATE TABLE secret.moving AS TABLE secret.ref; SELECT geonn_cache_create('secret loss', 'secret.obs', 'secret.moving', target => 'secret.lost');
	DROP TABLE secret.moving});
$node->command_checks_all([ 'pg_dump', '-d', $node->connstr('postgres') ], 0, [ qr/secret cache/, qr/^(?!.*secret loss)/s ], [],
	'or whose relations are');

$node->safe_psql('postgres', 'CREATE DATABASE archived');
$node->safe_psql('archived', q{CREATE EXTENSION geonn;
	CREATE TABLE points (id bigint PRIMARY KEY, lat float8, lon float8);
	SELECT geonn_cache_create('archived cache', 'points', 'points')});
$node->command_checks_all([ 'pg_dump', '-d', $node->connstr('archived'), '-U', 'archivist' ], 0, [ qr/archived cache/ ], [],
	'a member of pg_read_all_data dumps them');

# ---- who may create beside the extension ----

# the warning of CREATE EXTENSION in a database that is made so
sub warning
{
	my ($owner, $sql, $schema) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE creators OWNER $owner");
	$node->safe_psql('creators', $sql);
	my ($status, $out, $error) = $node->psql('creators', "CREATE EXTENSION geonn SCHEMA $schema");
	$node->safe_psql('postgres', 'DROP DATABASE creators');
	return $status == 0 ? $error : "failed: $error";
}
is(warning('postgres', 'SELECT', 'public'), '', 'no warning where superusers alone may create');
is(warning('postgres', 'CREATE SCHEMA geonn', 'geonn'), '', 'nor in a schema of its own');
like(warning('stranger', 'CREATE SCHEMA geonn', 'geonn'),
	qr/WARNING:  other roles may create functions in a schema of the search_path: "public"\nDETAIL:  The roles are: role "stranger"\.\nHINT: .* or write the schema before each call, as in geonn\.geonn_nearest\(\.\.\.\)\.$/,
	'a warning of public in a database of another\'s');
is(warning('stranger', 'CREATE SCHEMA geonn; ALTER DATABASE creators SET search_path = geonn', 'geonn'), '', 'unless it is not on the path');
like(warning('stranger', 'SELECT', 'public'),
	qr/WARNING:.* in schema "public".*\nDETAIL:  The roles are: role "stranger"\.\nHINT: .* Run CREATE SCHEMA geonn; ALTER EXTENSION geonn SET SCHEMA geonn;$/,
	'a warning where the database\'s owner may');
like(warning('postgres', 'GRANT CREATE ON SCHEMA public TO PUBLIC, victim, postgres', 'public'),
	qr/DETAIL:  The roles are: all roles \(PUBLIC\), role "victim"\.$/m, 'where all may, or some');
like(warning('postgres', 'CREATE SCHEMA geonn AUTHORIZATION victim; REVOKE ALL ON SCHEMA geonn FROM victim', 'geonn'),
	qr/DETAIL:  The roles are: role "victim"\.\nHINT: .*Give the schema to a superuser/m, 'and where the schema\'s owner may');
like(warning('postgres', 'CREATE SCHEMA geonn; CREATE SCHEMA postgres AUTHORIZATION victim; CREATE SCHEMA other; GRANT CREATE ON SCHEMA other TO stranger;
	ALTER ROLE CURRENT_USER IN DATABASE creators SET search_path = nowhere, "$user", other, public', 'geonn'),
	qr/search_path: "postgres", "other"\nDETAIL:  The roles are: role "victim", role "stranger"\.$/m, 'the path is that of new sessions');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_proc WHERE proname = 'geonn_warn_of_creators'}), 0, 'what warns is gone afterwards');
$node->safe_psql('postgres', 'CREATE DATABASE creators OWNER stranger');
(my $status, my $out, my $error) = $node->psql('creators', 'CREATE EXTENSION geonn');
my ($hint) = $error =~ /Run (CREATE SCHEMA .*)$/m;
is($node->safe_psql('creators', "$hint SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'geonn'"), 'geonn', 'its hint can be followed');

# geonn_describe tells of the path of its session
sub described
{
	my ($role, $path) = @_;
	my ($status, $out, $error) = $node->psql('creators', "SET ROLE $role; SET search_path = $path; SELECT FROM geonn.geonn_describe('open.place')");

	return $status == 0 ? $error : "failed: $error";
}
$node->safe_psql('creators', q{
	CREATE SCHEMA open;
	CREATE TABLE open.place (id bigint, lat float8, lon float8);
	GRANT USAGE ON SCHEMA open, geonn TO PUBLIC;
	GRANT CREATE ON SCHEMA open TO victim;
	GRANT SELECT ON open.place TO PUBLIC});
my $told = qr/WARNING:  other roles may create functions in a schema of the search_path: "open"\nDETAIL:  The roles are: role "victim"\.\n/;
like(described('postgres', 'geonn, open'), $told, 'geonn_describe warns, too, whatever the order');
like(described('archivist', 'open, geonn'), $told, 'any role');
is(described('victim', 'open, geonn'), '', 'but not of itself');
is(described('archivist', 'pg_temp, pg_catalog, geonn'), '', 'where no other may create it says nothing');
is(described('archivist', 'public, geonn'), '', 'the database\'s owner sets the path itself');
like(described('postgres', 'public'), qr/"public"\nDETAIL:  The roles are: role "stranger"\.$/m, 'a superuser is told of that owner');
$node->safe_psql('creators', 'GRANT CREATE ON SCHEMA geonn TO victim');
like(described('archivist', 'pg_catalog'), qr/"geonn"\nDETAIL:  The roles are: role "victim"\.\nHINT: .*; and give geonn a schema of its own\.$/m,
	'geonn\'s own schema counts, whatever the path');
$node->stop;

done_testing();
