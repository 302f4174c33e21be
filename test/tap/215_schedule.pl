
# Caches on a schedule, with the real pg_cron: what it runs and logs, which roles may,
# and what becomes of jobs when caches are renamed, dropped, dumped and restored.
# Jobs start with the minute, so that all that need one wait for the same two. A minute
# more passes where the machine is busy, and then each job has run once more.
#
# needs: pg_cron
# waits: for pg_cron, which starts jobs once a minute
# rooms: cache
# check-all: waits for minutes

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $with_cron = "shared_preload_libraries = 'geonn, pg_cron'\n";
my $node = new_server('cron', preload => 1, conf => "timezone = 'GMT'");

sub query
{
	my ($sql, %option) = @_;

	return ($option{node} // $node)->safe_psql($option{database} // 'postgres', $sql);
}

# the error of a statement that fails
sub failure
{
	my ($sql, %option) = @_;
	my ($status, $out, $err) = $node->psql($option{database} // 'postgres', $sql);

	return $status == 0 ? "none: $out" : $err;
}

sub restart_with
{
	my ($conf) = @_;

	$node->append_conf('postgresql.conf', $conf);
	$node->restart;
}

query(q{
	CREATE TABLE obs AS SELECT i AS id, i * 7 % 90 AS lat, i * 11 % 180 AS lon FROM generate_series(1, 50) i;
	CREATE TABLE ref AS SELECT i AS id, i * 13 % 90 AS lat, i * 17 % 180 AS lon FROM generate_series(1, 20) i;
	SELECT geonn_cache_create('near', 'obs', 'ref');
});

# ---- where pg_cron is not at hand ----

like(failure(q{SELECT geonn_schedule('near', '* * * * *')}),
	qr/pg_cron, by which caches are scheduled, is not loaded.*HINT:  Add pg_cron to shared_preload_libraries, set cron\.database_name = 'postgres'/s,
	'pg_cron that is not loaded');
like(failure(q{SET cron.database_name = 'postgres'; SELECT geonn_schedule('near', '* * * * *')}),
	qr/pg_cron, by which caches are scheduled, is not loaded/, 'a setting that a session made does not count');
is(query(q{SELECT geonn_unschedule('near')}), 'f', 'nothing to unschedule');

query('CREATE DATABASE "of cron"');
restart_with($with_cron . "cron.database_name = 'of cron'\ncron.host = '" . $node->host . "'\n");
query('CREATE EXTENSION pg_cron', database => 'of cron');
my $elsewhere = failure(q{SELECT geonn_schedule('near', '*/5 * * * *')});
like($elsewhere, qr/the jobs of pg_cron are in database "of cron", and the cache in "postgres"/,
	'pg_cron of another database');
my ($call) = $elsewhere =~ /as a superuser: (SELECT .*;)$/m;
query($call, database => 'of cron');
is( query('SELECT jobname, schedule, database, username, command FROM cron.job', database => 'of cron'),
	join('|', 'geonn in postgres: near', '*/5 * * * *', 'postgres', query('SELECT current_user'),
		q{CALL public.geonn_refresh('near'::pg_catalog.text, 'auto'::pg_catalog.text)}),
	'the hint is the call that makes the job there');
is(query('SELECT count(schedule) FROM geonn_caches'), 0, 'of which the view knows nothing');

restart_with("cron.database_name = 'postgres'\n");
like(failure(q{SELECT geonn_schedule('near', '* * * * *')}),
	qr/is not an extension of this database.*HINT:  Run CREATE EXTENSION pg_cron\./s,
	'a database without the extension');
query('CREATE EXTENSION pg_cron');

# ---- which roles may, and what ----

query(q{
	CREATE ROLE keeper LOGIN;
	CREATE ROLE other LOGIN;
	CREATE ROLE keepers;
	GRANT CREATE ON SCHEMA public TO keeper, keepers;
	GRANT SELECT ON obs, ref TO keeper, keepers;
	SET ROLE keeper;
	SELECT geonn_cache_create('keeper''s "own"', 'obs', 'ref', target => 'kept');
	SET ROLE keepers;
	SELECT geonn_cache_create('of many', 'obs', 'ref');
});
my $keep = q{SELECT geonn_schedule('keeper''s "own"', '* * * * *')};

like(failure("SET ROLE other; $keep"), qr/must be owner of cache/, 'others may not schedule');
like(failure(q{SET ROLE other; SELECT geonn_unschedule('near')}), qr/must be owner of cache/, 'nor unschedule');
like(failure("SET ROLE keeper; $keep"),
	qr/role "keeper".* may not use pg_cron.*HINT:  Run, as a superuser: (GRANT USAGE ON SCHEMA cron TO keeper;)/s,
	'an owner without the privilege to use pg_cron');
like(failure($keep), qr/role "keeper".* may not use pg_cron/, 'a superuser does not lend it');
query('GRANT USAGE ON SCHEMA cron TO keeper, keepers');
like(failure(q{SELECT geonn_schedule('of many', '* * * * *')}),
	qr/role "keepers".* may not log in.*HINT:.*ALTER ROLE keepers LOGIN/s, 'an owner without LOGIN');
like(failure(q{SELECT geonn_schedule('nowhere', '* * * * *')}), qr/cache "nowhere" does not exist/, 'no such cache');
like(failure(q{SELECT geonn_schedule('near', '* * * *')}), qr/invalid schedule: \* \* \* \*\n.*HINT:  A schedule has five fields: minute, hour, day, month and weekday/s,
	'no such schedule: pg_cron says so, and the hint what one is');
is(query('SELECT count(*) FROM cron.job'), 0, 'none of that has made a job');

# ---- jobs ----

my $jobs = 'SELECT jobname, schedule, username, active FROM cron.job ORDER BY jobname';
my $me = query('SELECT current_user');

query(q{SELECT geonn_schedule('near', '30 4 * * *')});
is(query($jobs), "geonn: near|30 4 * * *|$me|t", 'a job');
is(query('SELECT schedule FROM geonn_caches WHERE name = \'near\''), '30 4 * * *', 'and the view has its schedule');
query(q{SELECT cron.alter_job(jobid, active => false) FROM cron.job});
query(q{SELECT geonn_schedule('near', '@hourly')});
is(query($jobs), "geonn: near|\@hourly|$me|t", 'a schedule takes the place of the former one');
query(q{SELECT geonn_cache_alter('near', '{"name": "nearest"}')});
is(query($jobs), "geonn: nearest|\@hourly|$me|t", 'a renamed cache takes its job along');
is(query('SELECT command FROM cron.job'), q{CALL public.geonn_refresh('nearest'::pg_catalog.text, 'auto'::pg_catalog.text)},
	'which calls it by its name');
is(query(q{SELECT geonn_unschedule('nearest')}), 't', 'unscheduled');
is(query($jobs), '', 'no job is left');
is(query(q{SELECT geonn_unschedule('nearest')}), 'f', 'unscheduled once more');

my $long = 'a' x 63;
query(qq{
	SELECT geonn_cache_create('$long' || n, 'obs', 'ref', target => 'long' || n) FROM generate_series(1, 2) n;
	SELECT geonn_schedule('$long' || n, '\@daily') FROM generate_series(1, 2) n;
});
is(query('SELECT count(*), count(DISTINCT jobname), count(DISTINCT command) FROM cron.job'), '2|2|2',
	'names that are too long for pg_cron are told apart');
query(qq{SELECT geonn_cache_drop('$long' || n) FROM generate_series(1, 2) n});
is(query($jobs), '', 'a cache that is dropped takes its job along');

query(q{
	SELECT geonn_cache_create('soon gone', 'obs', 'ref');
	SELECT geonn_schedule('soon gone', '@daily');
	DROP TABLE "soon gone";
});
is(query($jobs), '', 'and so does one whose table is dropped');
query(q{
	SET ROLE keeper;
	SELECT geonn_cache_create('soon gone', 'obs', 'ref');
	SELECT geonn_schedule('soon gone', '@daily');
	DROP TABLE "soon gone";
});
is(query($jobs), '', 'also by its owner, without the privilege to change the jobs of others');

query(q{SELECT geonn_schedule('nearest', '@daily'); ALTER TABLE near OWNER TO keeper});
is(query($jobs), "geonn: nearest|\@daily|$me|t",
	'a table that is given to another owner leaves the job behind');
query(q{SET ROLE keeper; SELECT geonn_schedule('nearest', '@weekly')});
is(query($jobs), 'geonn: nearest|@weekly|keeper|t', 'until that one schedules it');
query(qq{ALTER TABLE near OWNER TO $me; SELECT geonn_unschedule('nearest')});
is(query($jobs), '', 'and the former owner\'s job goes, too');
query(qq{
	SELECT geonn_schedule('nearest', '\@daily');
	UPDATE cron.job SET command = 'by hand';
	SELECT geonn_cache_alter('nearest', '{"name": "renamed"}'), geonn_cache_alter('renamed', '{"name": "nearest"}');
});
is(query('SELECT command FROM cron.job'), q{CALL public.geonn_refresh('nearest'::pg_catalog.text, 'auto'::pg_catalog.text)},
	'a renamed cache\'s job gets its command anew');
query(q{SELECT geonn_unschedule('nearest')});
query(q{
	SET ROLE other;
	RESET ROLE;
	GRANT USAGE ON SCHEMA cron TO other;
	SET ROLE other;
	SELECT cron.schedule('geonn: nearest', '@daily', 'SELECT 1');
	RESET ROLE;
	SELECT geonn_schedule('nearest', '@daily'), geonn_unschedule('nearest');
});
is(query($jobs), 'geonn: nearest|@daily|other|t', 'what another user calls so is his own');
query('SELECT cron.unschedule(jobid) FROM cron.job');

# ---- what runs ----

query(qq{
	SELECT geonn_schedule('nearest', '* * * * *');
	$keep;
	CREATE TABLE twice AS TABLE obs;
	SELECT geonn_cache_create('failing', 'twice', 'ref');
	SELECT geonn_schedule('failing', '* * * * *');
	SELECT geonn_cache_create('busy', 'obs', 'ref');
	SELECT geonn_schedule('busy', '* * * * *');
	SELECT geonn_cache_create('no more', 'obs', 'ref');
	SELECT geonn_schedule('no more', '* * * * *'), geonn_unschedule('no more');
	UPDATE cron.job SET active = false;	-- until all is ready
});

# another server gets a dump, and runs its jobs as background workers
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';
$node->command_ok([ 'pg_dump', '-d', $node->connstr('postgres'), '-f', $dump ], 'pg_dump');
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init;
$restored->append_conf('postgresql.conf', $with_cron . "cron.use_background_workers = on\nmax_worker_processes = 20\ntimezone = 'GMT'\n");
$restored->start;
query('CREATE ROLE keeper LOGIN; CREATE ROLE other LOGIN; CREATE ROLE keepers', node => $restored);
$restored->command_ok(
	[ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $restored->connstr('postgres'), '-f', $dump ], 'restored');

# what has changed since the caches were filled
my $change = q{UPDATE ref SET lat = lat + 1; DELETE FROM obs WHERE id = 7;};
query($change);
query($change, node => $restored);
query('INSERT INTO twice SELECT * FROM twice WHERE id = 9');
my $busy = $node->background_psql('postgres');
$busy->query_safe(q{BEGIN; CALL geonn_refresh('busy');});

# at the very end of a minute pg_cron may see the jobs too late for the next one
sleep(10) if query('SELECT extract(second FROM clock_timestamp()) > 50') eq 't';
query('UPDATE cron.job SET active = true');
query('UPDATE cron.job SET active = true', node => $restored);
my $runs = q{SELECT string_agg(status, ' ' ORDER BY runid) FROM cron.job_run_details d JOIN cron.job j USING (jobid)
	WHERE jobname = 'geonn: NAME'};

# how the runs that pg_cron has made of a cache ended
sub ended
{
	my ($name, $of) = @_;

	return query($runs =~ s/NAME/$name/r, node => $of // $node);
}

sub log_of
{
	my ($name, $columns, $of) = @_;

	return query("SELECT $columns FROM geonn_cache_log WHERE name = '$name' AND mode IS DISTINCT FROM 'fill'
		ORDER BY started DESC LIMIT 1", node => $of // $node);
}

# the rows that a cache should have differ from those that it has
sub differences
{
	my ($table, $of) = @_;

	return query("SELECT count(*) FROM $table t FULL JOIN geonn_nearest('obs', 'ref') n
		ON (t.obs_id, t.rank, t.ref_id, t.distance) = (n.obs_id, 1, n.ref_id, n.distance)
		WHERE t.rank IS NULL OR n.ref_id IS NULL", node => $of // $node);
}

isnt(differences('near'), 0, 'the caches are out of date');
foreach my $name ('nearest', 'failing', 'busy', q{keeper''s "own"})
{
	wait_until(sub { ended($name) =~ /^(succeeded|failed)/ }, "$name: a scheduled run");
	wait_until(sub { ended($name, $restored) =~ /^(succeeded|failed)/ }, "$name: where it was restored");
}
like(ended('nearest'), qr/^succeeded( succeeded)*$/, 'a scheduled refresh runs');
is(differences('near'), 0, 'and has the cache up to date');
is(query(q{SELECT DISTINCT username FROM cron.job_run_details WHERE command LIKE '%own%'}), 'keeper', 'as the owner');
is(differences('kept'), 0, 'of a name with quotes, too');
like(ended('failing'), qr/^failed( failed)*$/, 'a refresh that fails');
is(log_of('failing', 'status, error'), 'failed|ids of relation "twice" are not unique', 'is logged');
is( query(q{SELECT status, error, failures, count(started) FROM geonn_caches c JOIN geonn_cache_log l USING (name, status, error)
		WHERE name = 'failing' GROUP BY 1, 2, 3}) =~ s/\|(\d+)\|\1$/|each/r,
	'failed|ids of relation "twice" are not unique|each', 'and counted');
like(ended('busy'), qr/^succeeded( succeeded)*$/, 'a refresh while there is another one');
like(log_of('busy', 'status, reason'), qr/^skipped\|process \d+ was at work on it$/, 'is skipped, and names the process that is at work');
is(ended('no more'), '', 'a cache that was unscheduled is not refreshed');

is(query($jobs, node => $restored), query($jobs), 'a restored server has the same jobs');
is(query('SELECT name, schedule FROM geonn_caches ORDER BY name', node => $restored),
	query('SELECT name, schedule FROM geonn_caches ORDER BY name'), 'and the same schedules');
like(ended('nearest', $restored), qr/^succeeded( succeeded)*$/, 'which run there');
is(differences('near', $restored), 0, 'and have its caches up to date');
query('SELECT geonn_schedule(name, schedule) FROM geonn_caches WHERE schedule IS NOT NULL', node => $restored);
is(query($jobs, node => $restored), query($jobs), 'to schedule them all again makes no job twice');
query(q{DELETE FROM cron.job}, node => $restored);
query('SELECT geonn_schedule(name, schedule) FROM geonn_caches WHERE schedule IS NOT NULL', node => $restored);
is(query($jobs, node => $restored), query($jobs), 'and can be had anew');
$restored->stop;

# ---- the next minute ----

query(q{DELETE FROM twice WHERE ctid = (SELECT max(ctid) FROM twice WHERE id = 9)});
$busy->query_safe('COMMIT');
$busy->quit;
my $so_far = ended('failing');
wait_until(sub { ended('failing') =~ /^$so_far (succeeded|failed)/ }, 'a further run');
like(ended('failing'), qr/^$so_far succeeded/, 'the run after a failed one succeeds');
wait_until(sub { log_of('busy', 'status') ne 'skipped' }, 'a run that is not skipped');
like(log_of('busy', 'status, reason'), qr/^succeeded\|/, 'and the one after the other process has ended');

# ---- a schema that is not pg_cron's ----

like(failure(q{
	BEGIN;
	ALTER SCHEMA cron RENAME TO former;
	CREATE SCHEMA cron;
	CREATE TABLE cron.job (LIKE former.job);
	CREATE FUNCTION cron.schedule(text, text, text) RETURNS bigint LANGUAGE plpgsql AS
		$$ BEGIN RAISE 'sprung, as %', current_user; END $$;
	SELECT geonn_schedule('nearest', '@daily');
	ROLLBACK;
}), qr/ERROR:  pg_cron, by which caches are scheduled, is not an extension of this database/,
	'functions of the same names are not called');
like(failure(q{
	BEGIN;
	CREATE FUNCTION former_schedule(text, text, text) RETURNS bigint LANGUAGE plpgsql AS
		$$ BEGIN RAISE 'sprung, as %', current_user; END $$;
	ALTER FUNCTION cron.schedule(text, text, text) SET SCHEMA public;
	ALTER FUNCTION former_schedule SET SCHEMA cron;
	ALTER FUNCTION cron.former_schedule RENAME TO schedule;
	SELECT geonn_schedule('nearest', '@daily');
	ROLLBACK;
}), qr/ERROR:  a name in a statement of geonn's is that of another object\nDETAIL:  The statement is: SELECT cron\.schedule/,
	'nor in the very schema of pg_cron');

# ---- a database that is not pg_cron's ----

query('CREATE DATABASE copy');
$node->psql('copy', "\\i $dump", on_error_stop => 0);
is( query('SELECT name, schedule FROM geonn_caches WHERE schedule IS NOT NULL ORDER BY name', database => 'copy'),
	join("\n", map { "$_|* * * * *" } 'busy', 'failing', 'keeper\'s "own"', 'nearest'),
	'there, schedules are restored without jobs');
query(q{CALL geonn_refresh('nearest')}, database => 'copy');
like(failure(q{SELECT geonn_schedule('nearest', '@daily')}, database => 'copy'),
	qr/HINT:  In database "postgres" run.*'geonn in copy: nearest'/, 'and can be had from pg_cron\'s');
query(q{SELECT geonn_cache_drop('nearest')}, database => 'copy');
is(query(q{SELECT count(*) FROM cron.job WHERE jobname = 'geonn: nearest'}), 1, 'the other database\'s job stays');

# ---- pg_cron that is taken away ----

restart_with("shared_preload_libraries = 'geonn'\n");
my ($status, $out, $err) = $node->psql('postgres', q{SELECT geonn_cache_drop('nearest')});
is($status, 0, 'a cache can be dropped');
like($err, qr/WARNING:  job \d+ of pg_cron stays as it is: pg_cron is not loaded\nHINT:.*cron\.unschedule\(\d+\)/,
	'and a job that cannot be is named');
($status, $out, $err) = $node->psql('postgres', q{SELECT geonn_cache_alter('busy', '{"name": "idle"}')});
is($status, 0, 'a cache can be renamed');
like($err, qr/WARNING:  job \d+ of pg_cron stays as it is/, 'and a job that cannot be is named');
$node->stop;

done_testing();
