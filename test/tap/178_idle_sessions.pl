
# A backend keeps its session with the engine for its next call: it is seen as idle, is none
# of those at work, and takes nothing from them; it ends with its time, its role, its engine
# and its backend, and the next call knows nothing of that.
# rooms: client engine/server

use strict;
use warnings;

use Geonn;
use Test::More;

# without bases, as these would answer few rows without a session
my $node = new_server('idle', preload => 1,
	conf => "autovacuum = off\ngeonn.kept_memory_limit = 0\nrestart_after_crash = on\ngeonn.idle_session_timeout = '1h'");
my $answer = $node->safe_psql('postgres', $small_search);

$node->safe_psql('postgres', q{
	CREATE ROLE other;
	GRANT SELECT ON few_obs, few_ref TO other;
	CREATE TABLE go (step integer);
	GRANT SELECT ON go TO other;
	CREATE TABLE some_obs AS SELECT i AS id, (i % 170) - 85 AS lat, i % 180 AS lon FROM generate_series(1, 50000) i;
	ALTER TABLE some_obs SET (parallel_workers = 2);
	ANALYZE some_obs;
	CREATE FUNCTION near() RETURNS bigint LANGUAGE sql VOLATILE AS $$SELECT count(*) FROM geonn_nearest('few_obs', 'few_ref')$$;

	-- a session waits here until it is told to go on; to begin a statement takes the present state
	CREATE PROCEDURE wait_for(next integer) LANGUAGE plpgsql AS $$
	BEGIN
		WHILE NOT EXISTS (SELECT FROM go WHERE step >= next) LOOP
			PERFORM pg_sleep(0.02);
		END LOOP;
	END $$;
});

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

sub idle
{
	return status($node, 'sessions, sessions_idle');
}

sub set
{
	sql("ALTER SYSTEM SET geonn.$_[0] = '$_[1]'");
	$node->reload;
}

# Wait until so many backends are at this step, and return their processes.
sub at_step
{
	my ($step, $count) = @_;
	my @backends;

	wait_until(sub {
		@backends = split(/\n/, sql("SELECT pid FROM pg_stat_activity WHERE query LIKE 'CALL wait_for($step)%' AND pid <> pg_backend_pid()"));
		return @backends == ($count // 1);
	}, "step $step");
	return @backends;
}

sub go
{
	sql("INSERT INTO go VALUES ($_[0])");
}

# the sockets of a process, and its mappings of batches
sub sockets_of
{
	return join(' ', sort grep { /^socket:/ } map { readlink($_) // '' } glob("/proc/$_[0]/fd/*"));
}

sub batches_of
{
	return scalar(() = Geonn::slurp("/proc/$_[0]/maps") =~ /geonn batch/g);
}

# kilobytes of batches that a process maps
sub batch_memory_of
{
	my ($kilobytes) = Geonn::slurp("/proc/$_[0]/smaps") =~ /geonn batch.*?^Rss: +(\d+)/ms;

	return $kilobytes;
}

wait_until(sub { idle() eq '0|0' }, 'an idle session ends with its backend');

# ---- one backend, step by step ----

my $search = "$small_search;\n";
my $run = start_sql($node, join('', $search, 'CALL wait_for(1);', $search, 'CALL wait_for(2);',
	'SET SESSION AUTHORIZATION other;', $search, 'CALL wait_for(3);', $search, 'CALL wait_for(4); RESET SESSION AUTHORIZATION;',
	$search, 'CALL wait_for(5);', $search, 'CALL wait_for(6);', $search, 'CALL wait_for(7);',
	"SET client_min_messages = warning; DISCARD ALL; DROP EXTENSION geonn; CREATE EXTENSION geonn;\n", $search, 'CALL wait_for(8);',
	"SELECT string_agg(o || ':' || r, ' ' ORDER BY o) FROM (SELECT obs_id, ref_id FROM geonn_nearest_sql('SELECT id, lat, lon FROM few_obs WHERE near() = 3', 'TABLE few_ref')) n(o, r);\n",
	'CALL wait_for(9);', $search));
my ($backend) = at_step(1);
my $first = sockets_of($backend);

is(idle(), '0|1', 'a session that is kept is idle, and is not counted among those at work');
is(sql('SELECT count(*) FROM geonn_stat_progress'), 0, 'nor is it a call');
is(batches_of($backend), 1, 'it keeps a batch');

go(1);
at_step(2);
is(sockets_of($backend), $first, 'the next call uses its connection');
is(batches_of($backend), 1, 'and its batch');
is(idle(), '0|1', 'and keeps it again');

go(2);
at_step(3);
my $of_other = sockets_of($backend);
isnt($of_other, $first, 'another role that logs in gets a session of its own');
is(idle(), '0|1', 'in place of the first one');
go(3);
at_step(4);
is(sockets_of($backend), $of_other, 'which it keeps as well');

my $engine = status($node, 'engine_pid');
kill('KILL', $engine);
wait_until(sub { (status($node, 'engine_pid') || $engine) != $engine }, 'the engine is killed, and another one starts');
go(4);
at_step(5);
is(idle(), '0|1', 'a call finds that its engine has ended, and goes to the next one');

# its time
my $before = sockets_of($backend);
cmp_ok(batch_memory_of($backend), '>', 0, 'while it is idle, its batch has memory');
set('idle_session_timeout', '200ms');
wait_until(sub { idle() eq '0|0' }, 'an idle session ends when its time is over');
is(status($node, 'transfer_memory'), 0, 'and its memory is free');
is(batch_memory_of($backend), 0, 'although its backend still maps it');
set('idle_session_timeout', '1h');
go(5);
at_step(6);
isnt(sockets_of($backend), $before, 'the next call has a connection of its own');
is(idle(), '0|1', 'which is kept');

# another session needs more memory than is left
$before = sockets_of($backend);
set('transfer_memory_limit', '16MB');
wait_until(sub {
	# the join's processes ask in any order, and some orders leave room for a small batch
	sql(q{SELECT count(*) FROM geonn_nearest('some_obs', 'few_ref', options => '{"batch_rows": 300000}')});
	return idle() eq '0|0';
}, 'an idle session gives way to one at work');
go(6);
at_step(7);
isnt(sockets_of($backend), $before, 'and its backend has another one for its next call');
set('transfer_memory_limit', '1GB');

go(7);
at_step(8);
is(idle(), '0|1', 'DISCARD ALL and DROP EXTENSION let it be');
go(8);
at_step(9);
is(idle(), '0|1', 'of a search within a search one session is kept');
is(scalar(split(/ /, sockets_of($backend))), scalar(split(/ /, $first)), 'and no other is open');

# an engine that ends before it has answered was not at work for the statement
$engine = status($node, 'engine_pid');
kill('STOP', $engine);
go(9);
wait_until(sub { sql("SELECT state FROM pg_stat_activity WHERE pid = $backend AND query LIKE '%few_obs%'") eq 'active' }, 'a call waits for the engine');
sleep(1);
kill('KILL', $engine);
my ($status, $out, $err) = finish_sql($run);
is_deeply([ $status, $err ], [ 0, '' ], 'no call has failed or warned');
is($out, join("\n", ($answer) x 10), 'and all have the same rows');
sql('TRUNCATE go');

# a process with several roles
$run = start_sql($node, "$search CALL wait_for(1); SET ROLE other; $search RESET ROLE; $search SET ROLE other; $search CALL wait_for(2);");
($backend) = at_step(1);
$before = sockets_of($backend);
go(1);
at_step(2);
is(sockets_of($backend), $before, 'SET ROLE changes nothing, and no call connects again');
go(2);
is((finish_sql($run))[1], join("\n", ($answer) x 4), 'nor do the rows');
sql('TRUNCATE go');
is(sql("BEGIN; SET SESSION AUTHORIZATION other; DECLARE c CURSOR FOR SELECT obs_id FROM geonn_nearest('few_obs', 'few_ref'); MOVE 1 IN c;
	RESET SESSION AUTHORIZATION; $search $search $search"), join("\n", ($answer) x 3),
	'a session is of the role of its last call, whatever role began the first session of its process');

# many cursors at their end
$run = start_sql($node, 'BEGIN; ' . join('', map { "DECLARE c$_ CURSOR FOR SELECT obs_id FROM geonn_nearest('few_obs', 'few_ref'); MOVE ALL IN c$_; " } 1 .. 30) . "CALL wait_for(1); $search CALL wait_for(2); CLOSE ALL; CALL wait_for(3);");
($backend) = at_step(1);
is(idle(), '30|0', 'cursors at their end are at work');
is(batches_of($backend), 1, 'and one of them holds a batch');
go(1);
at_step(2);
is(idle(), '30|1', 'a search beside them leaves its session');
is(batches_of($backend), 1, 'and its batch, in place of the one that was held');
go(2);
at_step(3);
is(idle(), '0|1', 'which stays when the cursors end');
is(batches_of($backend), 1, 'with its batch');
go(3);
finish_sql($run);
sql('TRUNCATE go');

# ---- what is not kept ----

$run = start_sql($node, "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	SELECT count(*) FROM geonn_nearest('some_obs', 'few_ref'); CALL wait_for(1);");
at_step(1);
is(idle(), '0|1', 'parallel workers keep no session');
go(1);
finish_sql($run);
sql('TRUNCATE go');

$run = start_sql($node, "\\set ON_ERROR_STOP 0\nSELECT obs_id / 0 FROM geonn_nearest('few_obs', 'few_ref'); CALL wait_for(1); $search");
at_step(1);
is(idle(), '0|0', 'nor does a statement that fails amid its rows');
go(1);
($status, $out) = finish_sql($run);
is($out, $answer, 'whose backend goes on');
sql('TRUNCATE go');

set('idle_session_timeout', '0');
$run = start_sql($node, "$search CALL wait_for(1);");
($backend) = at_step(1);
is(idle(), '0|0', 'with a time of 0 none is kept');
is(batches_of($backend), 0, 'nor is a batch');
go(1);
finish_sql($run);
sql('TRUNCATE go');
set('idle_session_timeout', '1h');

# ---- places ----

set('max_sessions', 1);
my @runs = map { start_sql($node, "$search CALL wait_for(1); $search") } 1 .. 5;
at_step(1, 5);
is(idle(), '0|5', 'idle sessions take no place of geonn.max_sessions');
is(sql("SET geonn.admission_timeout = '10s'; $small_search"), $answer, 'so another one gets it');
go(1);
is_deeply([ map { [ (finish_sql($_))[ 0, 1 ] ] } @runs ], [ ([ 0, "$answer\n$answer" ]) x 5 ],
	'and each of them in its turn');
wait_until(sub { idle() eq '0|0' }, 'and all end with their backends');

done_testing();
