
# pg_dump runs while a refresh replaces a cache's table or would like to: the refresh does not wait, and the
# dump can be restored.  Before the dump has the table's lock, it gets the new rows, as of a materialized
# view; from then on, those of its snapshot.
# rooms: cache

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('dumped', preload => 1, conf => 'autovacuum = off');
my $folder = PostgreSQL::Test::Utils::tempdir();

# pg_dump locks tables in the order in which they were made
$node->safe_psql('postgres', q{
	CREATE TABLE first ();
	CREATE TABLE obs AS SELECT i AS id, i * 7 % 90 AS lat, i * 11 % 180 AS lon FROM generate_series(1, 2000) i;
	CREATE TABLE ref AS SELECT i AS id, i * 13 % 90 + 0.001 AS lat, i * 17 % 180 AS lon FROM generate_series(1, 100) i;
	SELECT geonn_cache_create('near', 'obs', 'ref');
	CREATE TABLE last ()});

# a sum of all rows of the cache's table
sub rows
{
	my ($database) = @_;

	return $node->safe_psql($database, q{SELECT md5(string_agg(n::text, ' ' ORDER BY obs_id, rank)) FROM near n});
}

my $differences = q{
	SELECT count(*) FROM near t FULL JOIN geonn_nearest('obs', 'ref', row_type => NULL::near) n
		ON (t.obs_id, t.rank, t.ref_id, t.distance) = (n.obs_id, n.rank, n.ref_id, n.distance)
	WHERE t.rank IS NULL OR n.rank IS NULL};

# Dump the database.  Another session keeps pg_dump waiting for the lock of that table; meanwhile all
# references move, and the cache is refreshed.
sub dump_meanwhile
{
	my ($waits_for, $file, @options) = @_;
	my $holder = $node->background_psql('postgres', on_error_die => 1);

	$holder->query_safe("BEGIN; LOCK TABLE $waits_for IN ACCESS EXCLUSIVE MODE");
	my $dump = IPC::Run::start(
		[ 'pg_dump', '-Fc', @options, '-d', $node->connstr('postgres'), '-f', $file ],
		'2>', \my $err, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	wait_until(sub { $node->safe_psql('postgres', q{
		SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'relation' AND query LIKE 'LOCK TABLE%'}) > 0 },
		"pg_dump @options waits for table $waits_for");
	$node->safe_psql('postgres', q{UPDATE ref SET lat = lat + 0.01; CALL geonn_refresh('near')});
	$holder->query_safe('COMMIT');
	$holder->quit;
	ok($dump->finish, "pg_dump @options that waited for table $waits_for ends well") or diag($err);
	return;
}

foreach my $case (
	[ 'first', 'replaced', 'new' ],
	[ 'last', 'updated, as other sessions held it', 'former' ])
{
	my ($waits_for, $how, $which) = @$case;

	foreach my $option ([], ['--serializable-deferrable'])
	{
		my $what = "@$option, waiting for $waits_for";
		my $copy = "copy_$waits_for" . @$option;
		my $former = rows('postgres');

		dump_meanwhile($waits_for, "$folder/$copy", @$option);
		like($node->safe_psql('postgres', q{SELECT reason FROM geonn_cache_log WHERE name = 'near' ORDER BY started DESC LIMIT 1}),
			qr/; the table was \Q$how\E$/, "$what: the refresh goes on");
		is($node->safe_psql('postgres', $differences), 0, "$what: its rows are right");
		$node->safe_psql('postgres', "CREATE DATABASE $copy");
		$node->command_ok([ 'pg_restore', '-e', '-d', $node->connstr($copy), "$folder/$copy" ], "$what: the dump is restored");
		is(rows($copy), $which eq 'new' ? rows('postgres') : $former, "$what: with the $which rows");
		isnt($former, rows('postgres'), "$what: which are others");
		is($node->safe_psql($copy, 'SELECT count(*) FROM ref JOIN obs USING (id)'), 100, "$what: and the other tables");
		is($node->safe_psql($copy, $differences) > 0, $which eq 'new', "$what: which have rows of the snapshot");
		$node->safe_psql($copy, q{CALL geonn_refresh('near')});
		is($node->safe_psql($copy, $differences), 0, "$what: the next refresh makes the rows those of the definition");
	}
}
$node->stop;
done_testing();
