
# A refresh that replaces a cache's table leaves the former rows, and no files, if it ends
# half-way: cancelled, terminated, killed, or with the server.
# A standby gets its rows.  Slots of logical decoding hinder it; and with wal_level = minimal its
# rows outlive a crash.
# rooms: cache

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use Test::More;

my $node = new_server('replaced', preload => 1, allows_streaming => 'logical',
	conf => "restart_after_crash = on\nautovacuum = off\nmax_wal_senders = 4");

# A refresh waits where another session has the lock of a phase: it fills the new table, or builds
# an index.
my $points = q{
	CREATE TABLE obs AS SELECT i AS id, i * 7 % 90 AS lat, i * 11 % 180 AS lon FROM generate_series(1, 2000) i;
	CREATE TABLE ref AS SELECT i AS id, i * 13 % 90 + 0.001 AS lat, i * 17 % 180 AS lon FROM generate_series(1, 100) i};
$node->safe_psql('postgres', qq{$points;
	CREATE FUNCTION wait_in(phase integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS \$\$
	BEGIN
		PERFORM pg_advisory_lock_shared(phase), pg_advisory_unlock_shared(phase);
		RETURN phase;
	END \$\$;
	CREATE VIEW waiting AS SELECT id, lat, lon FROM obs WHERE id <> 1000 OR wait_in(7) = 7;
	SELECT geonn_cache_create('near', 'waiting', 'ref', replace => 'always');
	CREATE INDEX expression ON near ((CASE WHEN obs_id = 1000 THEN wait_in(8) ELSE 0 END));
	CALL geonn_refresh('near', 'full');
});

sub rows
{
	return $node->safe_psql('postgres', q{SELECT md5(string_agg(n::text, ' ' ORDER BY obs_id, rank)) FROM near n});
}

sub last_reason
{
	my ($name) = @_;

	return $node->safe_psql('postgres',
		"SELECT reason FROM geonn_cache_log WHERE name = '$name' ORDER BY started DESC LIMIT 1");
}

# files of no relation
my $orphans = q{
	SELECT count(*) FROM pg_database d, pg_ls_dir('base/' || d.oid) f
	WHERE datname = current_database() AND f ~ '^\d+' AND pg_filenode_relation(0, substring(f, '^\d+')::oid) IS NULL};

# Where a refresh waits: the statement of the session that it waits for, and its wait event.
my %phase = (
	'filling' => [ 'SELECT pg_advisory_lock(7)', 'advisory' ],
	'building an index' => [ 'SELECT pg_advisory_lock(8)', 'advisory' ],
	# it has swapped the files, and stores what it read
	'about to commit' => [ 'BEGIN; LOCK TABLE geonn_cache_last_run IN SHARE MODE', 'relation' ]);

# Have references moved and a refresh wait in a phase, and end it so; then the next one.
sub interrupt
{
	my ($phase, $how, $leaves_files, $end) = @_;
	my ($hold, $event) = @{ $phase{$phase} };
	my $what = "$phase, $how";

	$node->safe_psql('postgres', q{UPDATE ref SET lat = lat + 0.5 WHERE id % 20 = 0; CHECKPOINT});
	my $former = rows();
	my $before = $node->safe_psql('postgres', $orphans);
	my $holder = $node->background_psql('postgres', on_error_stop => 0);
	$holder->query_safe($hold);
	my $run = start_sql($node, q{CALL geonn_refresh('near', 'full')});
	my $waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = '$event' AND query LIKE 'CALL%'";
	wait_until(sub { $node->safe_psql('postgres', $waiting) ne '' }, "$what: a refresh waits");
	$end->($node->safe_psql('postgres', $waiting));
	isnt((finish_sql($run))[0], 0, "$what: it ends");
	$node->poll_query_until('postgres', 'SELECT true');
	eval { $holder->quit };
	is(rows(), $former, "$what: the former rows are there");
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname LIKE 'pg\_temp\_%'}),
		0, "$what: no other table is");
	# PostgreSQL does not remove new files when it recovers from a crash
	$node->safe_psql('postgres', 'CHECKPOINT');
	is($node->safe_psql('postgres', $orphans), $before, "$what: no files are left") unless $leaves_files;
	$node->safe_psql('postgres', q{CALL geonn_refresh('near', 'full')});
	is(last_reason('near'), 'asked for; the table was replaced', "$what: the next one replaces the table");
	is(cache_differences($node), 0, "$what: and has done it all");
}

foreach my $phase (sort keys %phase)
{
	interrupt($phase, 'cancelled', 0, sub { $node->safe_psql('postgres', "SELECT pg_cancel_backend($_[0])") });
	interrupt($phase, 'terminated', 0, sub { $node->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])") });
	interrupt($phase, 'killed', 1, sub { kill 'KILL', $_[0] });
	interrupt($phase, 'with the server', 1, sub { $node->stop('immediate'); $node->start; });
}

# ---- after a crash ----

$node->stop('immediate');
$node->start;
is(cache_differences($node), 0, 'a replaced table outlives a crash');
is($node->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM near WHERE obs_id = 1000}), 1, 'with its indexes');

# ---- on a standby ----

$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', q{UPDATE ref SET lat = lat + 0.01; CALL geonn_refresh('near', 'full')});
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', q{SELECT md5(string_agg(n::text, ' ' ORDER BY obs_id, rank)) FROM near n}),
	rows(), 'a standby has the new rows');
is($standby->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM near WHERE obs_id = 1000}),
	1, 'with their indexes');

# the refresh gets the table's lock, but not that of its index, and its transaction goes on
my $commenter = $node->background_psql('postgres', on_error_die => 1);
my $refresher = $node->background_psql('postgres', on_error_die => 1);
$commenter->query_safe(q{BEGIN; COMMENT ON INDEX expression IS 'of phases'});
$refresher->query_safe(q{BEGIN; CALL geonn_refresh('near', 'full')});
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND relation = 'near'::regclass}),
	0, 'a lock that was given up is no longer held on the standby');
$refresher->query_safe('COMMIT');
$commenter->query_safe('COMMIT');
$_->quit foreach $commenter, $refresher;
like(last_reason('near'), qr/the table was updated, as other sessions held it$/, 'as on the primary');
$standby->stop;

# ---- an unlogged table ----

$node->safe_psql('postgres', q{ALTER TABLE near SET UNLOGGED; CALL geonn_refresh('near', 'full')});
is(cache_differences($node), 0, 'an unlogged table is replaced');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', q{SELECT count(*) FROM near}), 0, 'and is empty after a crash');
$node->safe_psql('postgres', q{CALL geonn_refresh('near')});
is(last_reason('near'), 'what the table was made of is not known; the table was replaced', 'the next refresh fills it');
is(cache_differences($node), 0, 'and has done it all');

# ---- logical decoding ----

$node->safe_psql('postgres', q{
	SELECT geonn_cache_create('sent', 'obs', 'ref');
	SELECT pg_create_logical_replication_slot('other', 'test_decoding')});
sub moved
{
	$node->safe_psql('postgres', q{UPDATE ref SET lat = lat + 0.01; CALL geonn_refresh('sent')});
	return last_reason('sent');
}
like(moved(), qr/the table was updated, as replication slot other would not send its rows$/, 'a slot hinders it');
my $changes = $node->safe_psql('postgres', q{
	SELECT count(*) FROM pg_logical_slot_get_changes('other', NULL, NULL) WHERE data ~ '^table public.sent: UPDATE'});
cmp_ok($changes, '>', 1900, 'and sends the rows');
$node->safe_psql('postgres', q{SELECT pg_drop_replication_slot('other')});
like(moved(), qr/the table was replaced$/, 'until it is dropped');
$node->safe_psql('postgres', q{
	CREATE PUBLICATION sends FOR TABLE obs; SELECT pg_create_logical_replication_slot('own', 'pgoutput')});
like(moved(), qr/the table was replaced$/, 'a slot for publications does not, if none has the table');
$node->safe_psql('postgres', q{ALTER PUBLICATION sends ADD TABLE sent});
like(moved(), qr/the table was updated, as publication sends would not send its rows$/, 'one that has it does');
$node->safe_psql('postgres', q{SELECT pg_drop_replication_slot('own'); DROP PUBLICATION sends});
$node->stop;

# ---- files that are not in the WAL ----

$node = new_server('minimal', preload => 1, conf => "wal_level = minimal\nmax_wal_senders = 0\nwal_skip_threshold = 0\nautovacuum = off");
$node->safe_psql('postgres', qq{$points; SELECT geonn_cache_create('near', 'obs', 'ref');
	CREATE INDEX other ON near (ref_id);
	UPDATE ref SET lat = lat + 0.01; CALL geonn_refresh('near')});
like(last_reason('near'), qr/the table was replaced$/, 'wal_level = minimal: a table is replaced');
$node->stop('immediate');
$node->start;
is(cache_differences($node), 0, 'wal_level = minimal: its rows outlive a crash');
is($node->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM near WHERE ref_id > 0}), 2000, 'and so do its indexes');
$node->stop;
done_testing();
