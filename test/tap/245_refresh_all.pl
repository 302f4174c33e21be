
# geonn_refresh_all goes on after any error of one cache, whatever its owner's code
# does, and stops for what cancels the whole statement.
# rooms: cache

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('round', preload => 1, conf => 'autovacuum = off');

# Three caches; what the first one reads is trouble() to say.
$node->safe_psql(
	'postgres', q{
	CREATE ROLE first LOGIN;
	CREATE ROLE others LOGIN;
	CREATE TABLE obs AS SELECT i AS id, i * 7 % 90 AS lat, i * 11 % 180 AS lon FROM generate_series(1, 50) i;
	GRANT SELECT ON obs TO first, others;
	GRANT CREATE ON SCHEMA public TO first, others;
	SET ROLE first;
	CREATE FUNCTION trouble(float8) RETURNS float8 LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';
	CREATE VIEW first_obs AS SELECT id, public.trouble(lat) AS lat, lon FROM obs;
	SELECT geonn_cache_create('a', 'first_obs', 'obs');
	SET ROLE others;
	SELECT geonn_cache_create('b', 'obs', 'obs');
	SELECT geonn_cache_create('c', 'obs', 'obs');
});

my %block = (alone => '%s', 'within a transaction' => 'BEGIN; %s; COMMIT;');
my $round = q{CALL geonn_refresh_all('full')};

sub in_block
{
	my ($how, $sql) = @_;

	return sprintf($block{$how}, $sql);
}

sub trouble
{
	my ($body) = @_;

	$node->safe_psql('postgres', "SET ROLE first; CREATE OR REPLACE FUNCTION trouble(float8) RETURNS float8
		LANGUAGE plpgsql AS \$\$ BEGIN $body; RETURN \$1; END \$\$");
}

# the caches that were refreshed since this was called last
my $since = '-infinity';
sub refreshed
{
	my $names = $node->safe_psql('postgres', qq{SELECT string_agg(DISTINCT name, ' ' ORDER BY name) FROM geonn_cache_log
		WHERE started > '$since' AND status = 'succeeded'});
	$since = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
	return $names;
}
refreshed();

# ---- errors of one cache ----

my %errors = (
	'an error' => q{RAISE EXCEPTION 'trouble'},
	'an error that calls itself a cancel' =>
		q{RAISE EXCEPTION 'canceling statement due to user request' USING ERRCODE = 'query_canceled'},
	'one that calls itself a shutdown' => q{RAISE EXCEPTION 'trouble' USING ERRCODE = 'admin_shutdown'},
	'a lock_timeout' => q{SET LOCAL lock_timeout = 1; LOCK TABLE public.locked},
	'a serialization failure' => q{RAISE EXCEPTION 'trouble' USING ERRCODE = 'serialization_failure'},
	'a recursion without end' => 'PERFORM public.trouble($1)',
	'a cancel that its owner may not send' => 'PERFORM pg_cancel_backend(pg_backend_pid())',
	'an assertion' => q{ASSERT false, 'trouble'});

$node->safe_psql('postgres', 'CREATE TABLE locked (); GRANT ALL ON locked TO first');
my $holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN; LOCK TABLE locked;');
foreach my $how (sort keys %block)
{
	foreach my $error (sort keys %errors)
	{
		trouble($errors{$error});
		my ($status, $out, $err) = $node->psql('postgres', in_block($how, $round));
		is($status, 0, "$error, $how: the round ends well");
		like($err, qr/WARNING:  cache "a" was not refreshed: /, "$error, $how: and says what did not");
		is(refreshed(), 'b c', "$error, $how: others are refreshed");
	}
}
$holder->quit;

# a timeout that code sets is not the statement's
trouble(q{PERFORM set_config('statement_timeout', '1ms', false); IF $1 = 7 THEN PERFORM pg_sleep(0.3); END IF});
$node->safe_psql('postgres', $round);
is(refreshed(), 'a b c', 'a statement_timeout of one cache: all are refreshed');

# a commit that fails
$node->safe_psql('postgres', q{
	CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'no commit' USING ERRCODE = 'query_canceled'; END $$;
	SELECT format('CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON geonn_cache_run DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.cache = %s) EXECUTE FUNCTION refuse()', id) FROM geonn_cache WHERE name = 'b' \gexec
});
trouble('NULL');
my ($status, $out, $err) = $node->psql('postgres', $round);
is($status, 0, 'a commit that fails: the round ends well');
like($err, qr/WARNING:  cache "b" was not refreshed: no commit/, 'a commit that fails: and says what did not');
is(refreshed(), 'a c', 'a commit that fails: others are refreshed');
$node->safe_psql('postgres', 'DROP TRIGGER refuse ON geonn_cache_run');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE locktype = 'object' AND pid <> pg_backend_pid()}),
	0, 'no lock is left');

# ---- caches that are renamed, dropped or given away meanwhile ----

# a round whose first refresh waits, what is done meanwhile, and its end
sub round_meanwhile
{
	my ($how, $meanwhile, $before) = @_;

	trouble('PERFORM pg_advisory_xact_lock_shared(7)');
	my $holder = $node->background_psql('postgres');
	$holder->query_safe('SELECT pg_advisory_lock(7)');
	my $run = start_sql($node, ($before // '') . in_block($how, "$round;"));
	my $waiting = q{SELECT pid FROM pg_stat_activity WHERE wait_event = 'advisory'};
	wait_until(sub { $node->safe_psql('postgres', $waiting) ne '' }, "$how: a round is under way");
	$meanwhile->($node->safe_psql('postgres', $waiting));
	$holder->query_safe('SELECT pg_advisory_unlock(7)');
	$holder->quit;
	return finish_sql($run);
}

foreach my $how (sort keys %block)
{
	$node->safe_psql('postgres', q{SET ROLE others;
		SELECT geonn_cache_create('d', 'obs', 'obs'), geonn_cache_create('e', 'obs', 'obs'), geonn_cache_create('f', 'obs', 'obs')});
	refreshed();
	($status, $out, $err) = round_meanwhile($how, sub {
		$node->safe_psql('postgres', q{
			SELECT geonn_cache_alter('b', '{"name": "z"}');
			SELECT geonn_cache_drop('d');
			DROP TABLE e;
			ALTER TABLE c OWNER TO first})});
	is($status, 0, "$how: the round ends well");
	foreach my $gone ('b', 'd', 'e')
	{
		like($err, qr/WARNING:  cache "$gone" was not refreshed: cache "$gone" does not exist/, "$how: $gone is gone");
	}
	is(refreshed(), 'a c f', "$how: others are refreshed");
	$node->safe_psql('postgres', q{SELECT geonn_cache_alter('z', '{"name": "b"}'), geonn_cache_drop('f');
		ALTER TABLE c OWNER TO others});
}

# ---- what cancels the whole statement ----

foreach my $how (sort keys %block)
{
	refreshed();
	($status, $out, $err) = round_meanwhile($how, sub { $node->safe_psql('postgres', "SELECT pg_cancel_backend($_[0])") });
	isnt($status, 0, "a cancel, $how: ends the round");
	like($err, qr/canceling statement due to user request/, "a cancel, $how: as itself");
	is(refreshed(), '', "a cancel, $how: no other cache is refreshed");
	($status, $out, $err) = round_meanwhile($how, sub { sleep(2) }, "SET statement_timeout = '1s';");
	isnt($status, 0, "statement_timeout, $how: ends the round");
	like($err, qr/canceling statement due to statement timeout/, "statement_timeout, $how: as itself");
	is(refreshed(), '', "statement_timeout, $how: no other cache is refreshed");
	($status, $out, $err) = round_meanwhile($how, sub { $node->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])") });
	isnt($status, 0, "a termination, $how: ends the round");
	is(refreshed(), '', "a termination, $how: no other cache is refreshed");
}

$node->stop;
done_testing();
