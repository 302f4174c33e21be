
# Jobs of pg_cron name the schema in which they find geonn's procedures.  Whatever moves, renames or drops
# that schema or the extension changes or removes them in the same transaction, so that none ever calls
# what another role has put in its place.
#
# needs: pg_cron
# rooms: cache

use strict;
use warnings;

use Geonn qw(:DEFAULT query);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('follow', conf => "shared_preload_libraries = 'geonn, pg_cron'\ncron.database_name = 'postgres'\n");

# errors and warnings of these commands
sub said
{
	my ($sql, $database) = @_;
	my ($status, $out, $err) = $node->psql($database // 'postgres', $sql);

	return $err =~ s/^psql:.*?: //gmr;
}

my $commands = 'SELECT command FROM cron.job ORDER BY jobid';

sub jobs_in
{
	my ($schema) = @_;

	return join("\n", qq{CALL $schema.geonn_refresh('near'::pg_catalog.text, 'auto'::pg_catalog.text)},
		qq{CALL $schema.geonn_refresh('it''s'::pg_catalog.text, 'auto'::pg_catalog.text)},
		"CALL $schema.geonn_refresh_all()", 'CALL elsewhere.geonn_refresh_all()', 'VACUUM');
}

query(q{
	CREATE EXTENSION pg_cron;
	CREATE ROLE keeper LOGIN;
	CREATE ROLE owner LOGIN;
	GRANT USAGE ON SCHEMA cron TO keeper;
	GRANT CREATE ON SCHEMA public TO keeper;
	SET ROLE keeper;
	CREATE TABLE obs AS SELECT i AS id, i * 7 % 90 AS lat, i * 11 % 180 AS lon FROM generate_series(1, 50) i;
	SELECT geonn_cache_create('near', 'obs', 'obs'), geonn_cache_create('it''s', 'obs', 'obs');
	RESET ROLE;
	SELECT geonn_schedule('near', '0 0 1 1 *'), geonn_schedule('it''s', '0 0 1 1 *'),
		cron.schedule('mine', '0 0 1 1 *', 'CALL public.geonn_refresh_all()'),
		cron.schedule('other', '0 0 1 1 *', 'CALL elsewhere.geonn_refresh_all()'), cron.schedule('vacuum', '0 0 1 1 *', 'VACUUM');
});
is(query($commands), jobs_in('public'), 'jobs name the schema of the extension');

# ---- it moves ----

query('CREATE SCHEMA geonn; ALTER EXTENSION geonn SET SCHEMA geonn');
is(query($commands), jobs_in('geonn'), 'ALTER EXTENSION ... SET SCHEMA');
query('ALTER SCHEMA geonn RENAME TO "Geo\.NN"');
is(query($commands), jobs_in('"Geo\.NN"'), 'ALTER SCHEMA ... RENAME');
query('CREATE SCHEMA bystander; ALTER SCHEMA bystander RENAME TO bystanders; DROP SCHEMA bystanders; ALTER EXTENSION pg_cron UPDATE');
is(query($commands), jobs_in('"Geo\.NN"'), 'commands on other schemas and extensions');
query('BEGIN; ALTER SCHEMA "Geo\.NN" RENAME TO gone; ROLLBACK');
like(said('ALTER EXTENSION geonn SET SCHEMA nowhere'), qr/schema "nowhere" does not exist/, 'a command that fails');
is(query($commands), jobs_in('"Geo\.NN"'), 'or is rolled back');

# the schema's owner renames it: that is enough to have another procedure found
query('GRANT CREATE ON DATABASE postgres TO owner; ALTER SCHEMA "Geo\.NN" OWNER TO owner; SET ROLE owner; ALTER SCHEMA "Geo\.NN" RENAME TO geonn');
is(query($commands), jobs_in('geonn'), 'whichever role renames it');

# a session that schedules meanwhile
my $session = $node->background_psql('postgres');
$session->query_safe(q{BEGIN; SELECT geonn.geonn_unschedule('near'); SELECT geonn.geonn_schedule('near', '0 0 1 1 *')});
my $moves = start_sql($node, 'ALTER EXTENSION geonn SET SCHEMA public');
wait_until(sub { query(q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'ALTER EXT%' AND wait_event_type = 'Lock'}) eq '1' },
	'the move waits for a session that schedules');
$session->query_safe('COMMIT');
$session->quit;
finish_sql($moves);
is(query(q{SELECT count(*) FROM cron.job WHERE command LIKE 'CALL geonn.%'}), 0, 'and then finds its job, too');

# ---- it goes ----

foreach my $command ('DROP EXTENSION geonn CASCADE', 'DROP SCHEMA geonn CASCADE', 'DROP OWNED BY owner CASCADE')
{
	query('ALTER EXTENSION geonn SET SCHEMA geonn');
	my ($status, $out, $err) = $node->psql('postgres', "SET client_min_messages = warning; BEGIN; $command; $commands; ROLLBACK");

	is($out, "CALL elsewhere.geonn_refresh_all()\nVACUUM", "$command: its jobs go, and no others");
	query('ALTER EXTENSION geonn SET SCHEMA public');
}
like(said('DROP EXTENSION geonn'), qr/cannot drop extension geonn because other objects depend on it/, 'a command that fails');
is(query('SELECT count(*) FROM cron.job'), 5, 'leaves the jobs');

# ---- pg_cron of another database ----

query('CREATE DATABASE apart');
query(q{
	CREATE EXTENSION geonn;
	CREATE TABLE obs AS SELECT 1 AS id, 1 AS lat, 1 AS lon;
	SELECT geonn_cache_create('near', 'obs', 'obs');
	CREATE SCHEMA geonn;
}, 'apart');
my ($call) = said(q{SELECT geonn_schedule('near', '0 0 1 1 *')}, 'apart') =~ /as a superuser: (SELECT .*;)$/m;
query($call);
my $apart = q{SELECT command FROM cron.job WHERE database = 'apart'};
my $warning = 'WARNING:  jobs of pg_cron in database "postgres" may still call geonn_refresh in schema "%s" of this database';
my $said = said('ALTER EXTENSION geonn SET SCHEMA geonn', 'apart');

like($said, qr/^\Q${\sprintf($warning, 'public')}\E$/m, 'a move warns of jobs elsewhere');
query(($said =~ /as a superuser: (UPDATE .*;)$/m)[0]);
is(query($apart), q{CALL geonn.geonn_refresh('near'::pg_catalog.text, 'auto'::pg_catalog.text)}, 'and its hint changes them');
$said = said('DROP EXTENSION geonn CASCADE', 'apart');
like($said, qr/^\Q${\sprintf($warning, 'geonn')}\E$/m, 'so does a drop');
query(($said =~ /as a superuser: (SELECT .*;)$/m)[0]);
is(query($apart), '', 'and its hint removes them');
is(query('SELECT count(*) FROM cron.job'), 5, 'those alone');

# ---- pg_cron that is not loaded ----

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'geonn'\n");
$node->restart;
like(said('DROP EXTENSION geonn CASCADE'), qr/^WARNING:  job \d+ of pg_cron stays as it is: pg_cron is not loaded\nHINT:.*cron\.unschedule\(\d+\)/m,
	'jobs that must stay are named');
$node->stop;

done_testing();
