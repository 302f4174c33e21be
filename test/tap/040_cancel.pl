
# A search of minutes ends at once when it is cancelled or its time is over.
#
# alone: it looks at milliseconds

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('cancel', preload => 1, slow => 1);

# Cancels a backend and returns the milliseconds until it is idle or gone:
# measured in the server, so that no psql's start is in it.
$node->safe_psql(
	'postgres', q{
	CREATE FUNCTION cancel_and_wait(backend integer) RETURNS float8 LANGUAGE plpgsql AS $$
	DECLARE
		started timestamptz;
	BEGIN
		started := clock_timestamp();
		PERFORM pg_cancel_backend(backend);
		LOOP
			PERFORM pg_stat_clear_snapshot();
			EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = backend AND state = 'active');
			PERFORM pg_sleep(0.001);
		END LOOP;
		RETURN extract(epoch FROM clock_timestamp() - started) * 1000;
	END $$;
});

sub judge
{
	my ($name, @milliseconds) = @_;
	my $text = join(', ', map { sprintf('%.0f', $_) } sort { $a <=> $b } @milliseconds);

	note("took, ms, $name: $text");
	cmp_ok(median(@milliseconds), '<', 200, "$name: in a median of five under 200 ms");
	cmp_ok((sort { $b <=> $a } @milliseconds)[0], '<', 2000, "$name: never over 2 s");
}

my @milliseconds;
my $cancelled = 0;
foreach (1 .. 5)
{
	my $search = start_slow_search($node);

	push @milliseconds, $node->safe_psql('postgres', 'SELECT cancel_and_wait(' . backend_of($node) . ')');
	my (undef, undef, $error, undef) = finish_sql($search);
	$cancelled++ if $error =~ /canceling statement due to user request/;
	wait_until(sub { status($node, 'searches') == 0 }, 'the engine drops the search', 5);
}
is($cancelled, 5, 'pg_cancel_backend: the searches say that they were cancelled');
judge('pg_cancel_backend', @milliseconds);

@milliseconds = ();
my $timed_out = 0;
foreach (1 .. 5)
{
	my ($status, $out, $error, undef) =
	  finish_sql(start_sql($node, "SET statement_timeout = '4s';\n\\timing on\n$slow_search;"));

	$timed_out++ if $error =~ /canceling statement due to statement timeout/;
	push @milliseconds, $1 - 4000 if $out =~ /^Time: ([0-9.]+) ms/m;
}
is($timed_out, 5, 'statement_timeout: the searches say that their time was over');
is(scalar(@milliseconds), 5, 'statement_timeout: all were timed');
judge('statement_timeout', @milliseconds);

wait_until(sub { status($node, 'sessions') == 0 }, 'no session is left in the engine', 5);

# so many pairs that the engine is always ahead, and nobody waits for it
(undef, undef, my $error, my $seconds) = finish_sql(start_sql($node,
	q{SET statement_timeout = '1s';
	SELECT count(*) FROM geonn_within_sql('TABLE many_obs', 'SELECT * FROM many_ref WHERE id <= 300', 21000000,
		row_type => NULL::record) AS n (distance float8)}));
like($error, qr/canceling statement due to statement timeout/, 'the time of many pairs is over');
cmp_ok($seconds, '<', 5, 'and they end');

# the transaction survives in a savepoint, and so does the session
my $search = start_sql($node,
	"BEGIN; SAVEPOINT before; SET LOCAL statement_timeout = '3s';\n\\set ON_ERROR_STOP 0\n"
	  . "$slow_search;\n\\set ON_ERROR_STOP 1\nROLLBACK TO before; SET LOCAL statement_timeout = 0; $small_search; COMMIT;");
my ($status, $out, undef, undef) = finish_sql($search);
is($status, 0, 'a transaction goes on after a cancelled search');
is($out, '1:7 2:8 3:9', 'and searches again');

done_testing();
