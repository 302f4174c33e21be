
# A limit of sessions: so many processes work with the engine, others are queued, are
# seen there, and come in their order; no process waits for itself, and a wait for locks of
# each other ends by geonn.admission_timeout.
# rooms: client engine/server

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('admission', preload => 1,
	conf => "geonn.max_sessions = 1\ndeadlock_timeout = 500ms\nrestart_after_crash = on\ngeonn.kept_memory_limit = 0");
my $wait_event = $node->pg_version >= 17 ? 'GeonnAdmission' : 'Extension';

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

sub waiting
{
	return status($node, 'sessions_waiting');
}

sub backend_named
{
	return sql("SELECT pid FROM pg_stat_activity WHERE application_name = '$_[0]'");
}

sub set_limit
{
	sql("ALTER SYSTEM SET geonn.max_sessions = $_[0]");
	$node->reload;
}

# A session that has a place until it is let go: it has an open cursor, and waits.
sub start_holder
{
	my ($name, $after) = @_;
	my $run = start_sql($node, "SET application_name = '$name'; BEGIN;
		DECLARE held CURSOR FOR SELECT obs_id FROM geonn_nearest('few_obs', 'few_ref'); FETCH held;
		@{[$after // 'SELECT pg_sleep(600)']}; COMMIT; $small_search;");

	wait_until(
		sub { sql("SELECT count(*) FROM pg_stat_activity a JOIN geonn_stat_progress USING (pid) WHERE application_name = '$name' AND phase <> 'waiting for a session'") eq '1' },
		"$name has a place");
	return $run;
}

# a session that comes after those who wait already
sub start_waiter
{
	my ($name, $sql) = @_;
	my $before = waiting();
	my $run = start_sql($node, "SET application_name = '$name'; $sql;");

	wait_until(sub { waiting() == $before + 1 }, "$name waits");
	return $run;
}

sub end_backend
{
	sql("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = '$_[0]'");
}

# ---- the queue ----

my $holder = start_holder('holder');
my @queued = map { start_waiter("queued $_",
		"SET geonn.log_min_duration = 0; SELECT count(*) FROM geonn_nearest('few_obs', 'few_ref', k => $_, ties => 'all')") } 1 .. 3;

is(sql("SELECT DISTINCT wait_event_type || ' ' || wait_event FROM pg_stat_activity WHERE application_name LIKE 'queued %'"),
	"Extension $wait_event", 'pg_stat_activity says what they wait for');
is(sql("SELECT phase, count(*), sum(references_read) FROM geonn_stat_progress GROUP BY phase ORDER BY phase"),
	"reading observations|1|3\nwaiting for a session|3|0", 'and so does geonn_stat_progress');
is(status($node, 'sessions, sessions_waiting'), '1|3', 'and geonn_status()');

my ($status, $out, $err, $seconds) = finish_sql(start_sql($node,
	"\\set VERBOSITY verbose\nSET geonn.admission_timeout = '300ms'; $small_search;"));
isnt($status, 0, 'who has geonn.admission_timeout set does not wait for longer');
like($err, qr/53400: no session with the geonn engine became free within 300 ms/, 'its error says for how long it waited');
like($err, qr/DETAIL:  All 1 processes that geonn.max_sessions allows had sessions, and 3 more waited before this one\./, 'and for whom');
cmp_ok($seconds, '>', 0.3, 'it waits for all of that time');
is(waiting(), 3, 'and no longer: it has left the queue');

($status, $out, $err) = finish_sql(start_sql($node, "SET statement_timeout = '300ms'; $small_search;"));
like($err, qr/canceling statement due to statement timeout/, 'statement_timeout ends the waiting, too');

my $cancelled = start_waiter('cancelled', $small_search);
sql("SELECT pg_cancel_backend(" . backend_named('cancelled') . ")");
($status, $out, $err) = finish_sql($cancelled);
like($err, qr/canceling statement due to user request/, 'and so does a cancellation');
my $ended = start_waiter('ended', $small_search);
end_backend('ended');
finish_sql($ended);
wait_until(sub { waiting() == 3 }, 'a backend that ends while it waits leaves the queue');

my $from = -s $node->logfile;
end_backend('holder');
finish_sql($holder);
is_deeply([ map { [ (finish_sql($_))[0, 1] ] } @queued ], [ [ 0, 3 ], [ 0, 6 ], [ 0, 9 ] ],
	'when a backend with a place ends, those queued get their answers');
my @order = Geonn::slurp($node->logfile) =~ /LOG:  duration: .* geonn_nearest\(public.few_obs, public.few_ref, (?:k => (\d), )?ties/g;
is(join(' ', map { $_ // 1 } @order), '1 2 3', 'one after the other, as they came');
is(sql(q{SELECT count(*) FROM geonn_stat WHERE arguments LIKE '%ties%' AND queued_time >= 300 AND queued_time <= total_time}),
	3, 'geonn_stat says how long they waited');

# ---- nobody waits for himself ----

sql(q{
	SET client_min_messages = warning;
	CREATE TABLE some_obs AS SELECT i AS id, (i % 170) - 85 AS lat, i % 180 AS lon FROM generate_series(1, 50000) i;
	ALTER TABLE some_obs SET (parallel_workers = 2);
	ANALYZE some_obs;
	CREATE FUNCTION near() RETURNS bigint LANGUAGE sql VOLATILE AS $$SELECT count(*) FROM geonn_nearest('few_obs', 'few_ref')$$;
	CREATE VIEW asking AS SELECT id, lat, lon FROM few_obs WHERE near() = 3;
	SELECT geonn_cache_create('kept', 'few_obs', 'few_ref');
});
my $timeout = "SET geonn.admission_timeout = '5s'; ";
is(sql("$timeout SELECT count(*) FROM geonn_nearest('few_obs', 'few_ref') a, geonn_nearest('few_obs', 'few_obs', k => 2) b, geonn_nearest('few_ref', 'few_ref') c"),
	54, 'three joins of one statement have one place');
is(sql("$timeout SELECT count(*) FROM geonn_nearest('asking', 'few_ref')"), 3, 'and so has one that a view of the other side asks');
is(sql("$timeout BEGIN; DECLARE a CURSOR FOR SELECT obs_id FROM geonn_nearest('few_obs', 'few_ref'); MOVE a;
	CALL geonn_refresh('kept', 'full'); $small_search; COMMIT"), '1:7 2:8 3:9', 'and a cursor, a refresh and a search');
is(sql("$timeout SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET max_parallel_workers_per_gather = 2;
	SELECT count(*) FROM geonn_nearest('some_obs', 'few_ref')"), 50000, 'and a leader with its workers');
is(status($node, 'sessions'), 0, 'and then it is free again');

# parallel workers that search by themselves, while their leader has an open cursor, or has none
sql('CREATE FUNCTION near_in_worker(integer) RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE AS $$SELECT near() + 0 * $1$$;
	ALTER FUNCTION near() PARALLEL SAFE');
my $workers = "$timeout SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET max_parallel_workers_per_gather = 2;
	SET parallel_leader_participation = off;";
my $by_workers = 'SELECT count(*) FROM some_obs WHERE id % 20000 = 1 AND near_in_worker(id) = 3';
like(sql("$workers EXPLAIN (COSTS OFF) $by_workers"), qr/Workers Planned: 2/, 'workers call a function that searches');
is(sql("$workers BEGIN; DECLARE a CURSOR FOR SELECT obs_id FROM geonn_nearest('few_obs', 'few_ref'); MOVE a; $by_workers; COMMIT"),
	3, 'workers that search have the place of their leader');
is(sql("$workers $by_workers"), 3, 'and one place for all of them');
is(status($node, 'sessions'), 0, 'and then it is free again');

# the holder has the place, two workers are queued with another session between or behind them: all get their answers
$holder = start_holder('holder');
my $group = start_sql($node, "SET application_name = 'group'; $workers SET geonn.admission_timeout = 0; $by_workers;");
wait_until(sub { waiting() == 2 }, 'two workers of one leader wait');
my $behind = start_waiter('behind', $small_search);
end_backend('holder');
finish_sql($holder);
is((finish_sql($group))[1], 3, 'workers of one leader are admitted together');
is((finish_sql($behind))[1], '1:7 2:8 3:9', 'and then a session that came after them');
is(status($node, 'sessions, sessions_waiting'), '0|0', 'and then all is free');

# ---- locks ----

# the one with a place waits for a lock of a queued one
my $owner = start_sql($node, "SET application_name = 'owner'; SET geonn.admission_timeout = '4s'; BEGIN;
	LOCK TABLE some_obs IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(1.5); $small_search; COMMIT;");
wait_until(sub { sql("SELECT count(*) FROM pg_locks WHERE relation = 'some_obs'::regclass AND mode = 'AccessExclusiveLock'") eq '1' },
	'a table is locked');
my $reader = start_holder('reader', 'SELECT count(*) FROM some_obs');
($status, $out, $err) = finish_sql($owner);
like($err, qr/no session with the geonn engine became free within 4000 ms/,
	'a queued session, for whose lock the only one with a place waits, has its timeout');
is((finish_sql($reader))[1], "1\n50000\n1:7 2:8 3:9", 'and the other goes on');
is(status($node, 'sessions, sessions_waiting'), '0|0', 'and then all is free');

# a wait is no secret
sql("ALTER SYSTEM SET log_lock_waits = on");
$node->reload;
$holder = start_holder('holder');
$from = -s $node->logfile;
my $first = start_waiter('first', $small_search);
wait_until(sub { Geonn::slurp($node->logfile) =~ /LOG:  process \d+ still waits for a session with the geonn engine after 500 ms/ },
	'log_lock_waits has waits for a session logged');
end_backend('holder');
finish_sql($_) foreach $holder, $first;

# ---- another limit ----

my ($code, $message);
$code = $node->psql('postgres', 'ALTER SYSTEM SET geonn.max_sessions = 0', stderr => \$message);
isnt($code, 0, 'there is no limit of 0');
like($message, qr/invalid value for parameter "geonn.max_sessions": 0\nDETAIL:  The value must be 1 or more, or -1 for no limit\./, 'and the error says what there is');
$holder = start_holder('holder');
foreach my $case ([ 2, 'a higher limit lets those in who wait' ], [ -1, 'and so does none' ])
{
	my $waiter = start_waiter('waiter', $small_search);
	set_limit($case->[0]);
	is((finish_sql($waiter))[1], '1:7 2:8 3:9', $case->[1]);
	set_limit(1);
}

# ---- a crash ----

# the server takes a moment to end the others; until then this one may have the place
$first = start_waiter('first', "$small_search; SELECT pg_sleep(600)");
kill('KILL', backend_named('holder'));
isnt((finish_sql($_))[0], 0, 'a crash of one with a place ends all') foreach $holder, $first;
$node->poll_query_until('postgres', 'SELECT true');
is(sql("$timeout $small_search"), '1:7 2:8 3:9', 'then there is a place');
is(waiting(), 0, 'and nobody waits');

done_testing();
