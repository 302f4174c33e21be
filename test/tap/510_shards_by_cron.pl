
# Caches of two shards that pg_cron refreshes, by the schedules that geonn_shard_ddl prints: references
# move on the coordinator, and its barrier, a refresh of each shard that began after the shard had the
# references, waits for both caches; then their rows are those of a single server.
#
# needs: pg_cron
# short form: what pg_cron would run within a minute is run by the test
# rooms: shard cache
# check-all: schedules of two shards

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use Test::More;

my $long = $ENV{GEONN_LONG};
my @shards = qw(shard1 shard2);
my %node;
foreach my $name ('coordinator', @shards)
{
	my $node = $node{$name} = PostgreSQL::Test::Cluster->new($name);

	$node->init(allows_streaming => 'logical');
	$node->append_conf('postgresql.conf', "max_logical_replication_workers = 8\nmax_worker_processes = 16\nwal_retrieve_retry_interval = 200ms");
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'geonn, pg_cron'\ncron.database_name = 'postgres'\ncron.use_background_workers = on")
	  if $name ne 'coordinator';
	$node->start;
}

sub coordinator { return $node{coordinator}->safe_psql('postgres', $_[0]) }
sub on_shard { return $node{ $_[0] }->safe_psql('postgres', $_[1]) }

# ---- set up, with a schedule ----

coordinator(q{
	CREATE EXTENSION geonn;
	CREATE EXTENSION postgres_fdw;
	CREATE EXTENSION dblink;
	CREATE TABLE ping (id bigint PRIMARY KEY, lat float8, lon float8);
	CREATE TABLE station (id bigint PRIMARY KEY, lat float8, lon float8);
	INSERT INTO ping SELECT i, i * 7 % 90, i * 11 % 180 FROM generate_series(1, 2000) i;
	INSERT INTO station SELECT i, i * 13 % 90, i * 17 % 180 FROM generate_series(1, 200) i;
});
foreach my $name (@shards)
{
	my ($host, $port) = ($node{$name}->host, $node{$name}->port);

	on_shard($name, 'CREATE EXTENSION pg_cron');
	coordinator("CREATE SERVER $name FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres');
		CREATE USER MAPPING FOR CURRENT_USER SERVER $name");
}
my $address = $node{coordinator}->connstr . ' dbname=postgres';
coordinator(qq{SELECT CASE WHEN server IS NULL THEN command ELSE format('SELECT dblink_exec(%L, %L)', server, command) END
	FROM geonn_shard_ddl('{shard1, shard2}', 'ping', 'station', '$address', schedule => '* * * * *') \\gexec});
foreach my $name (@shards)
{
	is(on_shard($name, 'SELECT schedule, active, command FROM cron.job'),
		q{* * * * *|t|CALL public.geonn_refresh('ping_nearest_cache'::pg_catalog.text, 'auto'::pg_catalog.text)}, "$name has a job for its cache");
	is(on_shard($name, 'SELECT schedule FROM geonn_caches'), '* * * * *', 'and its view the schedule');
}

# jobs that run, or wait
sub set_active
{
	my ($active, @of) = @_;

	on_shard($_, "UPDATE cron.job SET active = $active") foreach @of;
}
set_active('false', @shards);
coordinator('INSERT INTO ping_sharded SELECT * FROM ping');

# ---- the barrier ----

my $refreshed = q{SELECT bool_and(EXISTS (SELECT FROM geonn_cache_log_by_shard l WHERE l.shard = s.shard
	AND l.name = 'ping_nearest_cache' AND l.status = 'succeeded' AND l.started > s.seen)) FROM seen s};
my $differing = q{WITH a AS MATERIALIZED (SELECT obs_id, ref_id, distance FROM ping_nearest_kept), b AS MATERIALIZED (SELECT obs_id, ref_id, distance FROM geonn_nearest('ping', 'station'))
	SELECT (SELECT count(*) FROM (TABLE a EXCEPT ALL TABLE b) x) + (SELECT count(*) FROM (TABLE b EXCEPT ALL TABLE a) x)};

# Move references, and wait until all shards have them; what each has seen, in a session.
sub move_references
{
	my $version = coordinator('UPDATE station SET lat = -lat WHERE id % 3 = 0; UPDATE station_version SET version = version + 1 RETURNING version');

	wait_until(sub { coordinator('SELECT count(*), min(version) FROM station_version_by_shard') eq "2|$version" }, "both shards have version $version");
	my $session = $node{coordinator}->background_psql('postgres');
	is($session->query_safe('CREATE TEMP TABLE seen AS SELECT * FROM station_version_by_shard; SELECT min(version) FROM seen'), $version, 'which is what is seen');
	is($session->query_safe($refreshed), 'f', 'no shard has refreshed since');
	return $session;
}

# Have the job of one shard run: by pg_cron, or as pg_cron would.
sub run_job
{
	my ($name) = @_;
	my $runs = q{SELECT count(*) FROM geonn_cache_log_by_shard WHERE shard = '} . $name . q{' AND status = 'succeeded'};
	my $so_far = coordinator($runs);

	if ($long)
	{
		# at the very end of a minute pg_cron may see the job too late for the next one
		sleep(10) if on_shard($name, 'SELECT extract(second FROM clock_timestamp()) > 50') eq 't';
		set_active('true', $name);
	}
	else
	{
		on_shard($name, 'SELECT command FROM cron.job \gexec');
	}
	wait_until(sub { coordinator($runs) > $so_far }, "the coordinator sees a refresh of $name");
}

my $session = move_references();
isnt(coordinator($differing), 0, 'the caches are out of date');
run_job('shard1');
is($session->query_safe($refreshed), 'f', 'the barrier waits for shard2');
isnt(coordinator($differing), 0, 'whose cache is out of date still');
run_job('shard2');
is($session->query_safe($refreshed), 't', 'the barrier is passed when both have refreshed');
$session->quit;
is(coordinator($differing), 0, 'then the rows are those of a single server');

# ---- a refresh that fails ----

set_active('false', @shards);
$session = move_references();
on_shard('shard2', 'ALTER TABLE ping RENAME lat TO north');
on_shard('shard1', 'SELECT command FROM cron.job \gexec');
$node{shard2}->psql('postgres', 'SELECT command FROM cron.job \gexec');
is(coordinator(q{SELECT DISTINCT shard FROM geonn_cache_log_by_shard WHERE status = 'failed'}), 'shard2', "the coordinator's view has a refresh that failed");
is($session->query_safe($refreshed), 'f', 'which does not pass the barrier');
on_shard('shard2', 'ALTER TABLE ping RENAME north TO lat');
run_job('shard2');
is($session->query_safe($refreshed), 't', 'the next one does');
is(coordinator($differing), 0, 'and the rows are those of the last version');
if ($long)
{
	is(on_shard($_, q{SELECT string_agg(DISTINCT status, ' ') FROM cron.job_run_details WHERE status <> 'running'}), 'succeeded', "pg_cron has run the job of $_") foreach @shards;
}
$session->quit;

$_->stop foreach values %node;
done_testing();
