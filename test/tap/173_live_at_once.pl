
# Sessions that change a table and ask for its rows at the same time, each in random transactions: every call has the
# rows of the definition in SQL for the same snapshot, while the table is vacuumed and written anew; and also while
# sessions are cancelled, terminated and killed, the engine is killed, and memory for bases comes and goes.
#
# short form: 1500 of 100000 calls, and 1500 of 20000 with kills
# rooms: live pages
# check-all: a long property run

use strict;
use warnings;

use Geonn;
use Test::More;
use Time::HiRes qw(sleep time);

my $sessions = 4;
my $rows = 2000;
my $calls = $ENV{GEONN_LIVE_CALLS} // ($ENV{GEONN_LONG} ? 100_000 : 1500);
my $calls_with_kills = $ENV{GEONN_LIVE_CALLS_WITH_KILLS} // ($ENV{GEONN_LONG} ? 20_000 : 1500);
my $seed = $ENV{GEONN_LIVE_SEED} // int(rand(1_000_000));
my $fill = "INSERT INTO ref SELECT i, i * 7 % 1800 / 10.0 - 90, i * 11 % 3600 / 10.0 - 180, repeat('x', 300)
	FROM generate_series(1, $rows) i";
my $node = new_server('at_once', preload => 1,
	conf => "autovacuum = off\njit = off\nmax_parallel_workers_per_gather = 0\nmax_prepared_transactions = 4\nrestart_after_crash = on\nlock_timeout = 10s\n"
	  . "geonn.kept_memory_limit = '100MB'\nwal_level = " . ($seed % 2 ? 'minimal' : 'replica'));

create_live_table($node, $fill);
srand($seed);
note "seed $seed: GEONN_LIVE_SEED=$seed has the same changes, though not at the same times";

# A session's SQL with this many calls, each of which writes a line: 'of', the number of wrong points, and the call.
sub random_session
{
	my ($number, $count) = @_;
	my @sql = ('\set ON_ERROR_STOP off', '\set VERBOSITY sqlstate', "ROLLBACK PREPARED 'p$number'");
	my $is_open = 0;

	for (my $call = 0; $call < $count;)
	{
		if (!$is_open && rand() < 0.5)
		{
			push @sql, rand() < 0.4 ? 'BEGIN ISOLATION LEVEL REPEATABLE READ' : 'BEGIN';
			$is_open = 1;
		}
		foreach (1 .. rand 3)
		{
			my $change = random_live_change($rows, $sessions, $number);

			$change =~ s/SAVEPOINT s; |; (RELEASE|ROLLBACK TO) s//g if !$is_open;
			push @sql, $change;
		}
		if (rand() < 0.7)
		{
			push @sql, 'SELECT \'of\', ' . (('differences(4)') x 6, 'by_differences()', 'join_differences()')[rand 8] . ", 'call $call of session $number'";
			$call++;
		}
		next if !$is_open || rand() < 0.6;
		$is_open = 0;
		push @sql, rand() < 0.1 ? ("PREPARE TRANSACTION 'p$number'", "SELECT 'of', differences(4) + join_differences() + by_differences(), 'prepared'",
			(rand() < 0.5 ? 'COMMIT' : 'ROLLBACK') . " PREPARED 'p$number'") : rand() < 0.7 ? 'COMMIT' : 'ROLLBACK';
	}
	return join(";\n", @sql, '') =~ s/^(\\.*);$/$1/mgr;
}

sub is_running
{
	my ($run) = @_;

	return 0 if !$run || !$run->{handle}->pumpable;
	$run->{handle}->pump_nb;
	return $run->{handle}->pumpable;
}

# Run sessions with this many calls in all, and do something beside them again and again: (calls, wrong points, errors).
sub run_sessions
{
	my ($count, $most, $beside) = @_;
	my @runs = (undef) x $sessions;
	my ($made, $wrong, %errors) = (0, 0);

	for (;;)
	{
		foreach my $number (0 .. $sessions - 1)
		{
			next if is_running($runs[$number]);
			if ($runs[$number])
			{
				my (undef, $out, $error) = finish_sql($runs[$number]);

				foreach (grep { /^of\|/ } split /\n/, $out)
				{
					$made++;
					next if /^of\|0\|/;
					$wrong++;
					diag("seed $seed: $_");
				}
				$errors{$_}++ foreach $error =~ /(?:ERROR|FATAL): +(\w{5})$/mg;
				$runs[$number] = undef;
			}
			$runs[$number] = start_sql($node, random_session($number, $most)) if $made < $count;
		}
		last if !grep { $_ } @runs;
		$beside->();
		sleep(rand 0.2);
	}
	return ($made, $wrong, %errors);
}

sub maintain
{
	# a session may wait behind this for the table, and this for the session's prepared transaction
	local $ENV{PGOPTIONS} = '-c lock_timeout=300ms';
	my @common = ('VACUUM ref', 'VACUUM (INDEX_CLEANUP off) ref', 'VACUUM (FREEZE) ref');
	my @rare = ('VACUUM FULL ref', 'CLUSTER ref USING ref_pkey', "TRUNCATE ref; $fill",
		'ALTER TABLE ref DROP IF EXISTS more; ALTER TABLE ref ADD more integer DEFAULT 7');

	$node->psql('postgres', rand() < 0.9 ? $common[rand @common] : $rare[rand @rare]) if rand() < 0.5;
}

# calls that the engine did not see
sub answered_alone
{
	return $node->safe_psql('postgres', 'SELECT coalesce(sum(calls) - sum(batches), 0) FROM geonn_stat');
}

sub expected_only
{
	my ($errors, $pattern, $name) = @_;

	note(join(', ', map { "$_: $errors->{$_}" } sort keys %$errors));
	is(join(' ', grep { !/^($pattern)$/ } sort keys %$errors), '', $name);
}

# conflicts of transactions, of which the rest is refused; and no such prepared transaction
my $conflicts = '40001|40P01|25P02|42704|3B001|55P03';
my ($made, $wrong, %errors) = run_sessions($calls, 400, \&maintain);

is($wrong, 0, "$made calls have the rows of the definition");
expected_only(\%errors, $conflicts, 'no statement failed but for conflicts of transactions');
cmp_ok(answered_alone(), '>', $made / 3, 'many of them had a base');

# what ends a session, or all of them
sub disturb
{
	my $session = 'SELECT %s(pid) FROM (SELECT pid FROM pg_stat_activity
		WHERE backend_type = \'client backend\' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1) one';
	my $choice = rand;

	maintain();
	return $node->psql('postgres', sprintf($session, 'pg_cancel_backend')) if $choice < 0.5;
	return $node->psql('postgres', sprintf($session, 'pg_terminate_backend')) if $choice < 0.7;
	return $node->psql('postgres', 'ALTER SYSTEM ' . (rand() < 0.5 ? 'SET geonn.kept_memory_limit = 0' : 'RESET geonn.kept_memory_limit')
		. '; SELECT pg_reload_conf()') if $choice < 0.75;
	if ($choice < 0.9)
	{
		my (undef, $engine) = $node->psql('postgres', 'SELECT engine_pid FROM geonn_status()');

		kill('KILL', $engine) if $engine;
	}
	elsif ($choice < 0.92)
	{
		my (undef, $backend) = $node->psql('postgres', sprintf($session, ''));

		kill('KILL', $backend) if $backend;
	}
}

($made, $wrong, %errors) = run_sessions($calls_with_kills, 100, \&disturb);
is($wrong, 0, "$made calls while sessions and the engine are killed");
# a savepoint has no transaction (25P01) where a cancel came to BEGIN
expected_only(\%errors, "$conflicts|25P01|57\\w+|08\\w+|58\\w+|53\\w+", 'no statement failed but for that');
ok($node->poll_query_until('postgres', 'SELECT true'), 'the server is there');
unlike(Geonn::slurp($node->logfile), qr/PANIC|TRAP|signal 11/, 'and has not crashed by itself');
done_testing();
