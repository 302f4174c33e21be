
# A search of minutes ends at once when it is cancelled or its time is over.
#
# How fast that is, the engine's work says: on this server it has one thread for searches, which goes on
# with the search until then.  So the time of a busy host, in which nothing works, does not count.
# rooms: client join engine/server engine/search

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('cancel', preload => 1, slow => 1);

# cancels a backend, and waits until it is idle or gone; in the server, so that no psql's start is in it
$node->safe_psql(
	'postgres', q{
	CREATE FUNCTION cancel_and_wait(backend integer) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM pg_cancel_backend(backend);
		LOOP
			PERFORM pg_stat_clear_snapshot();
			EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = backend AND state = 'active');
			PERFORM pg_sleep(0.001);
		END LOOP;
	END $$;
});

sub judge
{
	my ($name, $median, $most, @seconds) = @_;
	my @sorted = sort { $a <=> $b } @seconds;

	note("the engine worked, s, $name: @sorted");
	cmp_ok(median(@seconds), '<', $median, "$name: the engine works in a median of five for less than $median s");
	cmp_ok($sorted[-1], '<', $most, "$name: never for $most s");
}

my $engine = status($node, 'engine_pid');
my @seconds;
my $cancelled = 0;
foreach (1 .. 5)
{
	my $search = start_slow_search($node);
	my $backend = backend_of($node);
	my $before = work_of($engine);

	$node->safe_psql('postgres', "SELECT cancel_and_wait($backend)");
	my (undef, undef, $error, undef) = finish_sql($search);
	$cancelled++ if $error =~ /canceling statement due to user request/;
	wait_until(sub { status($node, 'searches') == 0 }, 'the engine drops the search');
	push @seconds, work_of($engine) - $before;
}
is($cancelled, 5, 'pg_cancel_backend: the searches say that they were cancelled');
judge('pg_cancel_backend', 0.4, 2, @seconds);

@seconds = ();
my $timed_out = 0;
foreach (1 .. 5)
{
	my $before = work_of($engine);
	my (undef, undef, $error, undef) = finish_sql(start_sql($node, "SET statement_timeout = '2s'; $slow_search;"));

	$timed_out++ if $error =~ /canceling statement due to statement timeout/;
	wait_until(sub { status($node, 'searches') == 0 }, 'the engine drops the search');
	push @seconds, work_of($engine) - $before;
}
is($timed_out, 5, 'statement_timeout: the searches say that their time was over');
judge('statement_timeout of 2 s', 2.4, 4, @seconds);

wait_until(sub { status($node, 'sessions') == 0 }, 'no session is left in the engine');

# so many pairs that the engine is always ahead, and nobody waits for it
my $before = work_of($engine);
(undef, undef, my $error) = finish_sql(start_sql($node,
	q{SET statement_timeout = '1s';
	SELECT count(*) FROM geonn_within_sql('TABLE many_obs', 'SELECT * FROM many_ref WHERE id <= 300', 21000000,
		row_type => NULL::record) AS n (distance float8)}));
like($error, qr/canceling statement due to statement timeout/, 'the time of many pairs is over');
wait_until(sub { status($node, 'searches') == 0 }, 'and they end');
cmp_ok(work_of($engine) - $before, '<', 5, 'before the engine has worked for 5 s');

# the transaction survives in a savepoint, and so does the session
my $search = start_sql($node,
	"BEGIN; SAVEPOINT before; SET LOCAL statement_timeout = '1s';\n\\set ON_ERROR_STOP 0\n"
	  . "$slow_search;\n\\set ON_ERROR_STOP 1\nROLLBACK TO before; SET LOCAL statement_timeout = 0; $small_search; COMMIT;");
my ($status, $out, undef, undef) = finish_sql($search);
is($status, 0, 'a transaction goes on after a cancelled search');
is($out, '1:7 2:8 3:9', 'and searches again');

done_testing();
