
# A refresh that reads only what changed_since says may be new misses no row: in random
# schedules of several sessions, which begin, stamp rows by now(), prepare, commit and roll back
# while refreshes go on, each refreshed table is what a new search returns.  Some sessions are not
# tracked (track_activities = off), some only for part of a transaction.
#
# Rows are stamped earlier than now() by the margin that a refresh leaves, so that the
# margin hides no transaction that is overlooked.
#
# short form: 400 of 4000 steps

use strict;
use warnings;

use Geonn;
use Test::More;

my $steps = $ENV{GEONN_SINCE_STEPS} // ($ENV{GEONN_LONG} ? 4000 : 400);
my $seed = $ENV{GEONN_SINCE_SEED} // int(rand(1_000_000));
my $lag = $ENV{GEONN_SINCE_LAG} // 10;
my $writers = 5;

srand($seed);
note "seed $seed: GEONN_SINCE_SEED=$seed GEONN_SINCE_STEPS=$steps repeats this";

my $node = new_server('since', preload => 1,
	conf => "autovacuum = off\nclient_min_messages = error\nmax_prepared_transactions = 10\n"
	  . "wal_level = logical\nmax_wal_senders = 4\nmax_replication_slots = 4");
my $connection = "host=" . $node->host . " port=" . $node->port . " dbname=postgres";
my $refreshed = 0;

# a session's own rows, so that no session waits for another
sub update_sql
{
	my ($writer) = @_;
	my $when = "now() - interval '$lag s'" . (rand() < 0.05 ? " + interval '1 day'" : '');
	my $id = int(rand(50)) * ($writers + 1) + $writer;

	return sprintf("UPDATE obs SET lat = %.3f, lon = %.3f, at = %s WHERE id = %d",
		rand(180) - 90, rand(360) - 180, $when, $id)
	  if rand() < 0.7;
	return sprintf("INSERT INTO obs (id, lat, lon, at) VALUES (nextval('ids') * %d + %d, %.3f, %.3f, %s)",
		$writers + 1, $writer, rand(180) - 90, rand(360) - 180, $when);
}

sub run_in
{
	my ($writer, $sql) = @_;
	$sql =~ s/'/''/g;
	return "SELECT dblink_exec('w$writer', '$sql');\n";
}

# the comparison, by the snapshot of the refresh where a transaction block has one
sub compare_sql
{
	my ($what) = @_;

	$refreshed++;
	return "WITH now AS MATERIALIZED (
			SELECT n.obs_id, n.rank, n.ref_id, n.distance FROM geonn_nearest('obs', 'ref', k => 2, row_type => NULL::kept) n)
		SELECT '$what: ' || count(*) || ' differences' FROM (
			(TABLE kept EXCEPT ALL TABLE now) UNION ALL (TABLE now EXCEPT ALL TABLE kept)) d
		HAVING count(*) > 0;
		INSERT INTO bounds SELECT since IS NOT NULL FROM geonn_cache_last_run;\n";
}

sub pick
{
	return $_[rand @_];
}

# writers that are in a transaction, and prepared ones with the rows that they lock
my %open;
my %prepared;
my $next_prepared = 0;
my %untracked;

# mostly few of them write, else one that begins early hides what is overlooked of others
my $busy = 1;

sub end_sql
{
	my ($writer) = @_;

	delete $open{$writer};
	return run_in($writer, rand() < 0.9 ? 'COMMIT' : 'ROLLBACK');
}

sub track
{
	my ($writer, $how) = @_;

	$untracked{$writer} = $how eq 'off';
	return run_in($writer, "SET track_activities = $how");
}

sub writer_step
{
	my %locked = map { $_ => 1 } values %prepared;

	$busy = 1 + int(rand(rand($writers))) if rand() < 0.1;
	my ($late) = grep { $_ > $busy } sort keys %open;
	return end_sql($late) if defined $late;
	my ($hidden) = grep { $_ > $busy && $untracked{$_} } 1 .. $writers;
	return track($hidden, 'on') if defined $hidden;
	my $writer = 1 + int(rand($busy));
	return '' if $locked{$writer};
	if (rand() < ($untracked{$writer} ? 0.4 : 0.04))
	{
		return track($writer, $untracked{$writer} ? 'on' : 'off');
	}
	if (!$open{$writer})
	{
		return run_in($writer, update_sql($writer)) if rand() < 0.2;
		$open{$writer} = 1;
		return run_in($writer, pick('BEGIN', 'BEGIN; SAVEPOINT s; ' . update_sql($writer) . '; ROLLBACK TO s',
			'BEGIN ISOLATION LEVEL REPEATABLE READ'));
	}
	my $way = rand();
	return run_in($writer, update_sql($writer)) if $way < 0.4;
	return run_in($writer, 'SAVEPOINT s; ' . update_sql($writer)) if $way < 0.5;
	return run_in($writer, 'COMMIT AND CHAIN') if $way < 0.55;
	return run_in($writer, 'COMMIT; BEGIN; ' . update_sql($writer)) if $way < 0.6;
	return end_sql($writer) if $way < 0.9;
	delete $open{$writer};
	my $name = 'p' . $next_prepared++;
	$prepared{$name} = $writer;
	return run_in($writer, "PREPARE TRANSACTION '$name'");
}

sub step
{
	my ($number) = @_;
	my $way = rand();

	if ($way < 0.1 && %prepared)
	{
		my $name = pick(sort keys %prepared);

		delete $prepared{$name};
		return pick('COMMIT', 'COMMIT', 'ROLLBACK') . " PREPARED '$name';\n";
	}
	return writer_step() if $way < 0.6;
	my $call = "CALL geonn_refresh('kept', '" . pick(qw(incremental incremental incremental auto auto full)) . "');\n";
	my $own = update_sql(0) . ";\n";
	return $call . compare_sql("step $number") if $way < 0.85;
	return $own . $call . compare_sql("step $number") if $way < 0.88;
	return "BEGIN;\n$call" . compare_sql("step $number, in a block") . $own . pick('COMMIT', 'COMMIT', 'ROLLBACK') . ";\n"
	  if $way < 0.95;
	# a row that an older snapshot does not see
	my %locked = map { $_ => 1 } values %prepared;
	my ($idle) = grep { !$open{$_} && !$locked{$_} } 1 .. $writers;
	return "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT FROM obs LIMIT 0;\n"
	  . (defined $idle ? run_in($idle, update_sql($idle)) : '')
	  . $call . compare_sql("step $number, with an older snapshot") . "COMMIT;\n";
}

my $script = qq{
	SET geonn.log_keep = 100000;
	SET statement_timeout = '60s';
	CREATE EXTENSION dblink;
	CREATE SEQUENCE ids START 1000;
	CREATE TABLE obs (id bigint PRIMARY KEY, lat float8, lon float8, at timestamptz NOT NULL DEFAULT now());
	CREATE TABLE ref (id bigint PRIMARY KEY, lat float8, lon float8);
	CREATE TABLE bounds (known boolean);
	INSERT INTO obs SELECT i, i * 37 % 180 - 90, i * 91 % 360 - 180, '2020-02-02' FROM generate_series(1, 300) i;
	INSERT INTO ref SELECT i, i * 7 % 180 - 90, i * 11 % 360 - 180 FROM generate_series(1, 40) i;
	SELECT geonn_cache_create('kept', 'obs', 'ref', k => 2, changed_since => 'at');
};

$script .= "SELECT dblink_connect('w$_', '$connection');\n" foreach 1 .. $writers;
$script .= step($_) foreach 1 .. $steps;
$script .= "ROLLBACK PREPARED '$_';\n" foreach sort keys %prepared;
$script .= "SELECT 'done';
	SELECT 'bounds known ' || count(*) FILTER (WHERE known) || ', unknown ' || count(*) FILTER (WHERE NOT known) FROM bounds;
	SELECT mode || ' ' || count(*) FROM geonn_cache_log GROUP BY mode ORDER BY mode;\n";

my ($out, $err) = ('', '');
my $status = $node->psql('postgres', $script, stdout => \$out, stderr => \$err, on_error_stop => 1);
is($status, 0, 'every statement succeeds') or diag(substr($err, 0, 2000));
my @differences = grep { /difference/ } split /\n/, $out;
is(scalar @differences, 0, "the table is what a search returns, after each of $refreshed refreshes")
  or diag("seed $seed\n" . join("\n", @differences[0 .. ($#differences < 20 ? $#differences : 20)]));
like($out, qr/^done$/m, 'all steps were made');
note $out =~ /^done\n(.*)/ms ? $1 : '';
my ($known, $unknown) = $out =~ /^bounds known (\d+), unknown (\d+)$/m;
cmp_ok($known // 0, '>', 0, 'some refreshes know since when rows may be new');
cmp_ok($unknown // 0, '>', 0, 'and some do not, and the next one compares all');

# ---- one transaction at a time ----

# a row that is stamped by now()
sub stamped
{
	my ($id) = @_;
	return "INSERT INTO obs VALUES ($id, 1, 2, now() - interval '$lag s')";
}

# refreshes by what has changed; how many rows are not what a search returns
sub refresh
{
	return $node->safe_psql('postgres', "CALL geonn_refresh('kept');
		SELECT count(*) FROM geonn_nearest('obs', 'ref', k => 2, row_type => NULL::kept) n
			FULL JOIN kept k ON (n.obs_id, n.rank, n.ref_id) = (k.obs_id, k.rank, k.ref_id)
			WHERE n.obs_id IS NULL OR k.obs_id IS NULL;");
}

sub since
{
	my ($sql) = @_;
	return $node->safe_psql('postgres', "SELECT $sql FROM geonn_cache_last_run");
}

# A session that is not tracked: whether its transaction had begun with it, or was tracked later.
foreach my $settings ([ 'SET track_activities = off', '' ], [ 'SET track_activities = off', 'SET track_activities = on' ])
{
	my ($before, $after) = @$settings;
	my $writer = $node->background_psql('postgres');
	my $id = 5_000_000 + length($after);

	refresh();
	$writer->query_safe($before);
	$writer->query_safe('BEGIN');
	$writer->query_safe($after) if $after;
	$writer->query_safe(stamped($id));
	refresh();
	is(since('since IS NULL'), 't', 'nothing is known of a transaction that is not tracked' . ($after ? ' from its beginning' : ''));
	$writer->query_safe('COMMIT');
	is(refresh(), 0, 'and its row is not missed');
	$writer->quit;
}

# A prepared transaction has no session.
refresh();
$node->safe_psql('postgres', 'BEGIN; ' . stamped(5_500_000) . q{; PREPARE TRANSACTION 'alone'});
refresh();
is(since('since IS NULL'), 't', 'nothing is known of a prepared transaction');
$node->safe_psql('postgres', q{COMMIT PREPARED 'alone'});
is(refresh(), 0, 'and its row is not missed');

# Transactions that begin while a session works on one message have the message's time.
my $holder = $node->background_psql('postgres');
$holder->query_safe("SELECT pg_advisory_lock($_)") foreach 1 .. 3;
my $message = start_sql($node, join(" \\; ", 'BEGIN', stamped(6_000_001), 'SELECT pg_advisory_lock(1)',
	'COMMIT AND CHAIN', stamped(6_000_002), 'SELECT pg_advisory_lock(2)',
	'COMMIT', 'BEGIN', stamped(6_000_003), 'SELECT pg_advisory_lock(3)', 'COMMIT') . ";\n");
foreach my $lock (1 .. 3)
{
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = $lock AND NOT granted")
	  or die "the message does not come to lock $lock";
	is(refresh(), 0, "a message at its transaction $lock: the table is right");
	is(since('since IS NOT NULL'), 't', 'it is known since when rows may be new');
	$holder->query_safe("SELECT pg_advisory_unlock($lock)");
}
is((finish_sql($message))[0], 0, 'the message ends');
is(refresh(), 0, 'and its last row is not missed');
$holder->quit;

# A cache that is made meanwhile does not see it, either, and its first refresh is by what has changed.
my $early = $node->background_psql('postgres');
$early->query_safe('BEGIN');
$early->query_safe(stamped(7_000_000));
$node->safe_psql('postgres', q{SELECT geonn_cache_create('made', 'obs', 'ref', changed_since => 'at')});
$early->query_safe('COMMIT');
$early->quit;
is($node->safe_psql('postgres', q{CALL geonn_refresh('made');
		SELECT mode, (SELECT count(*) FROM made WHERE obs_id = 7000000) FROM geonn_cache_log WHERE name = 'made' ORDER BY started DESC LIMIT 1;
		SELECT geonn_cache_drop('made')}),
	"incremental|1\n", 'a row that a new cache does not see is not missed');

# A session that sends WAL works on one message for as long as it lives.
$node->safe_psql('postgres', 'CREATE PUBLICATION rows FOR ALL TABLES');
my $from = $node->connstr('postgres');
my @senders = map { IPC::Run::start($_, '<', '/dev/null', '>', '/dev/null', '2>', '/dev/null') } (
	[ 'pg_receivewal', '-d', $from, '-D', PostgreSQL::Test::Utils::tempdir() ],
	[ 'pg_recvlogical', '-d', $from, '-S', 'rows', '--create-slot', '--start', '-P', 'pgoutput',
		'-o', 'proto_version=1', '-o', 'publication_names=rows', '-f', '-' ]);
$node->poll_query_until('postgres', "SELECT count(*) = 2 FROM pg_stat_replication WHERE state = 'streaming'")
  or die 'no WAL is sent';
refresh();
is(since("since + interval '10 s' > (SELECT max(query_start) FROM pg_stat_activity WHERE backend_type = 'walsender')"),
	't', 'sessions that send WAL keep nothing back');
$_->kill_kill foreach @senders;

# A deleted row stays in the baseline until a full refresh, also if the pages have not changed since.
my $deleted = $node->safe_psql('postgres', 'SELECT max(obs_id) FROM kept');
my $near = $node->safe_psql('postgres', "SELECT ref_id FROM kept WHERE obs_id = $deleted AND rank = 1");
my $rows_of_deleted = "SELECT count(*) FROM kept WHERE obs_id = $deleted";
is($node->safe_psql('postgres', "DELETE FROM obs WHERE id = $deleted;\nCALL geonn_refresh('kept');\n$rows_of_deleted"),
	2, 'a refresh of what may be new leaves the rows of a deleted observation');
$node->safe_psql('postgres', "VACUUM obs, ref;\nCALL geonn_refresh('kept');\nCALL geonn_refresh('kept', 'full');");
is($node->safe_psql('postgres', $rows_of_deleted), 0, 'a full refresh deletes them');
$node->safe_psql('postgres', "UPDATE ref SET lat = -lat WHERE id = $near;\nCALL geonn_refresh('kept', 'incremental');");
is($node->safe_psql('postgres', $rows_of_deleted), 0, 'and they do not come back');
is(refresh(), 0, 'the table is right');

done_testing();
