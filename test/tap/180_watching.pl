
# Calls are seen from other sessions while they are under way, and when they have
# ended: how far they are and what they came to, by those who may know of what.
# rooms: watch engine/calls

use strict;
use warnings;

use Geonn;
use Test::More;

# each call reads its references: what is counted must not depend on vacuum
my $node = new_server('watching', preload => 1, slow => 1, conf => 'geonn.kept_memory_limit = 0');

$node->safe_psql(
	'postgres', q{
	CREATE DATABASE other_database;
	CREATE ROLE watcher LOGIN;
	CREATE ROLE reader LOGIN IN ROLE pg_read_all_stats;
	CREATE ROLE owner LOGIN;
	GRANT SELECT ON many_obs, many_ref, few_obs, few_ref TO owner;
	ANALYZE;
});
$node->safe_psql('other_database', 'CREATE EXTENSION geonn');

sub sql
{
	my ($sql, %option) = @_;

	return $node->safe_psql($option{database} // 'postgres', $sql,
		extra_params => $option{user} ? [ '-U', $option{user} ] : []);
}

sub progress
{
	my ($columns, %option) = @_;

	return sql("SELECT $columns FROM geonn_stat_progress", %option);
}

# ---- under way ----

my $before = 'SET max_parallel_workers_per_gather = 0; SET ROLE owner; ';
my $search = start_slow_search($node, $before);
my $backend = backend_of($node);

wait_until(sub { progress('phase') eq 'searching' && progress('observations_done') > 0 },
	'a search of minutes is seen from other sessions, and that it gets on');
is(progress('pid, sessions, datname, usename, function, obs_name, ref_name, arguments'),
	"$backend|1|postgres|owner|geonn_nearest|public.many_obs|public.many_ref|", 'whose it is, and of what');
is(progress(
		'observations_done < 1000000, observations_expected BETWEEN 900000 AND 1100000, references_read, device'),
	't|t|1000000|CPU', 'how far it is, and where');
is(progress("started_at BETWEEN now() - interval '10 minutes' AND now()"), 't', 'and since when');
my ($done) = progress('observations_done');
wait_until(sub { progress('observations_done') > $done }, 'it goes on');
is(sql('SELECT count(*) FROM geonn_stat'), 0, 'it has not ended, so it is not in the statistics');

# a second one has to wait for its turns, and its phase says so
my $second = start_sql($node, "SET max_parallel_workers_per_gather = 0; SELECT count(*) FROM geonn_nearest('many_obs', 'many_ref', k => 2);");
wait_until(sub { progress('count(*)') == 2 }, 'two calls are two rows');
my %phases;
wait_until(
	sub {
		$phases{$_}++ foreach split /\n/, progress('phase');
		return $phases{'waiting for a device'} && $phases{'searching'};
	},
	'of two searches one waits for the device');

# ---- who may know of what ----

my $names = 'obs_name, ref_name, arguments';
my $oid = sql("SELECT 'many_obs'::regclass::oid");
is(progress("pid = $backend, obs IS NULL, $names", user => 'watcher') =~ /^t\|t\|\|\|$/m, 1,
	'others see that there is a call, but not of what');
is(progress($names, user => 'owner') =~ /^public.many_obs\|public.many_ref\|$/m, 1, 'its user sees them');
is(progress($names, user => 'owner') =~ /^\|\|$/m, 1, 'but not those of the other call');
is(scalar(() = progress($names, user => 'reader') =~ /many_obs/g), 2, 'members of pg_read_all_stats see all');
is(scalar(() = progress("datname, obs = $oid, $names", database => 'other_database') =~ /^postgres\|t\|\|\|$/mg),
	2, 'from another database there are numbers');

# ---- that ended ----

# long enough to be seen in their figures
sleep(1);
sql("SELECT pg_cancel_backend($backend)");
finish_sql($search);
wait_until(sub { progress("count(*) FILTER (WHERE pid = $backend)") == 0 }, 'a cancelled call is gone');
sql('SELECT pg_terminate_backend(pid) FROM geonn_stat_progress');
finish_sql($second);
wait_until(sub { progress('count(*)') == 0 }, 'and so is that of a backend that ended');
is(sql('SELECT arguments, calls, failed, rows FROM geonn_stat ORDER BY arguments'),
	"|1|1|0\nk => 2|1|1|0", 'they have failed');
is(sql('SELECT count(*) FROM geonn_stat WHERE searching_time + waiting_time < 100 OR references_read <> 1000000'),
	0, 'having taken time');

sql('SELECT geonn_stat_reset()');
is(sql('SELECT count(*) FROM geonn_stat'), 0, 'a reset forgets them');
sql('GRANT EXECUTE ON FUNCTION geonn_stat_reset() TO watcher');
sql($small_search);
is(sql('SELECT function, calls, failed, rows, stats_since < now() FROM geonn_stat'),
	'geonn_nearest|1|0|3|t', 'and what follows is counted');
sql('SELECT geonn_stat_reset()', user => 'watcher');
is(sql('SELECT count(*) FROM geonn_stat'), 0, 'who is granted it may reset them');

# a call is one, however many processes work for it
sql(q{
	ALTER DATABASE postgres SET geonn.algorithm = index;
	CREATE TABLE some_ref AS SELECT * FROM many_ref WHERE id <= 1000;
	ALTER TABLE many_obs SET (parallel_workers = 3);
});
my $parallel = q{SET parallel_tuple_cost = 0; SET max_parallel_workers_per_gather = 3;
	SELECT sum(id) FROM (SELECT obs_id AS id FROM geonn_nearest('many_obs', 'some_ref')) n;};
like(sql("SET parallel_tuple_cost = 0; SET max_parallel_workers_per_gather = 3; EXPLAIN SELECT sum(obs_id) FROM geonn_nearest('many_obs', 'some_ref')"),
	qr/Parallel Custom Scan/, 'a join is planned for several processes');
sql($parallel);
sql('SET max_parallel_workers_per_gather = 0; ' . $parallel =~ s/SET max.*?;//r);
is(sql(q{SELECT calls, failed, rows, observations, references_read FROM geonn_stat}),
	'2|0|2000000|2000000|2000', 'parallel processes are one call, and count what one process does');

# ---- the log ----

sub logged
{
	my ($sql) = @_;
	my $from = -s $node->logfile;

	sql($sql);
	my @lines = grep { /LOG:  duration: .*geonn_/ } split /\n/, substr(Geonn::slurp($node->logfile), $from);
	return join("\n", map { s/.*duration: [0-9.]+ ms/duration/r =~ s/[0-9.]+ ms/N ms/gr } @lines);
}

is(logged($small_search), '', 'calls are not logged unless that is asked for');
is(logged("SET geonn.log_min_duration = '1h'; $small_search"), '', 'nor those that are shorter');
my $times = 'reading references=N ms building=N ms reading observations=N ms waiting=N ms';
is(logged("SET geonn.log_min_duration = 0; $small_search"),
	"duration  geonn_nearest(public.few_obs, public.few_ref): rows=3 observations=3 skipped=0 unmatched=0 references=3 batches=1 $times",
	'a call is a line');
is(logged(q{SET geonn.log_min_duration = 0;
		SELECT count(*) FROM few_obs o, LATERAL geonn_within_sql('SELECT 1 AS id, NULL::float8 AS lat, 2 AS lon', 'TABLE few_ref', o.id)}),
	join("\n",
		map { "duration  geonn_within_sql(query obs_sql, query ref_sql, radius => $_): rows=0 observations=1 skipped=1 unmatched=0 references=3 batches=0 $times" }
		  1 .. 3),
	'each call of a statement is one');
is(logged(q{SET geonn.log_min_duration = 0; SELECT geonn_nearest_points('{1}', '{1}', 'few_ref', k => 2)}),
	"duration  geonn_nearest_points(arrays, public.few_ref, k => 2): rows=2 observations=1 skipped=0 unmatched=0 references=3 batches=1 $times",
	'and of points');
like(logged("SET geonn.log_min_duration = 0; $parallel"),
	qr/^duration  geonn_nearest\(public.many_obs, public.some_ref\): rows=1000000 observations=1000000 skipped=0 unmatched=0 references=1000 [^\n]*$/,
	'and so is that of several processes');

# ---- without an engine ----

my $engine = status($node, 'engine_pid');
sql($small_search);
kill('KILL', $engine);
wait_until(sub { status($node, 'engine_pid') ne $engine && status($node, 'state') eq 'running' }, 'an engine is killed');
is(sql('SELECT count(*) FROM geonn_stat'), 0, 'the figures end with their engine');

my $cold = new_server('cold');
is($cold->safe_psql('postgres',
		'SELECT geonn_stat_reset(), (SELECT count(*) FROM geonn_stat), (SELECT count(*) FROM geonn_stat_progress), (SELECT state FROM geonn_status())'),
	'|0|0|stopped', 'watching starts no engine');

done_testing();
