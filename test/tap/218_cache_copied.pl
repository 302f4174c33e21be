
# A copy of a database has the cache with what its last refresh knew: whichever way it was made, and wherever
# it then differs from what it was copied from, the next refreshes are right, and take the way that they
# should: an incremental one where the unlogged tables came along, a full one where a recovery emptied them.
# rooms: cache
# check-all: copies servers

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('copied', preload => 1, allows_streaming => 1,
	conf => "wal_log_hints = on\nautovacuum = off\nwal_keep_size = '500MB'\n");

# refresh after this change of that database; the mode it took
sub refreshed
{
	my ($name, $expected, $of, $database, $change) = @_;

	$of->safe_psql($database, "$change; CALL geonn_refresh('near')");
	is($of->safe_psql($database, q{
		SELECT (SELECT mode FROM geonn_cache_log WHERE name = 'near' ORDER BY started DESC LIMIT 1), count(*)
		FROM near t FULL JOIN geonn_nearest_sql('SELECT * FROM obs OFFSET 0', 'SELECT * FROM ref OFFSET 0', k => 2, row_type => NULL::near) n
			ON (t.obs_id, t.rank, t.ref_id, t.distance) = (n.obs_id, n.rank, n.ref_id, n.distance)
		WHERE t.rank IS NULL OR n.rank IS NULL}), "$expected|0", $name);
}

sub moved
{
	my ($id) = @_;

	return "UPDATE obs SET lat = lat + 1 WHERE id BETWEEN $id AND $id + 4; UPDATE ref SET lat = lat - 1 WHERE id = $id";
}

$node->safe_psql('postgres', 'CREATE DATABASE first');
$node->safe_psql('first', q{
	CREATE EXTENSION geonn;
	CREATE TABLE obs AS SELECT i AS id, (i * 7919 % 1600) / 10.0 - 80 AS lat, (i * 104729 % 1600) / 10.0 - 80 AS lon, repeat('x', 300) AS note
		FROM generate_series(1, 3000) i;
	CREATE TABLE ref AS SELECT * FROM obs LIMIT 100;
	VACUUM obs; VACUUM ref;
	SELECT geonn_cache_create('near', 'obs', 'ref', k => 2)});
refreshed('the first', 'incremental', $node, 'first', moved(10));

# ---- another tablespace, and a template ----

my $folder = PostgreSQL::Test::Utils::tempdir();
$node->safe_psql('postgres', "CREATE TABLESPACE other LOCATION '$folder'");
$node->safe_psql('postgres', 'ALTER DATABASE first SET TABLESPACE other');
refreshed('a database that was moved', 'unchanged', $node, 'first', 'SELECT');
refreshed('and changed then', 'incremental', $node, 'first', moved(20));
$node->safe_psql('postgres', 'ALTER DATABASE first SET TABLESPACE pg_default');
$node->safe_psql('postgres', 'DROP TABLESPACE other');
foreach my $strategy ('file_copy', 'wal_log')
{
	$node->safe_psql('postgres', "CREATE DATABASE $strategy TEMPLATE first STRATEGY $strategy");
	refreshed("a database made of it by $strategy", 'incremental', $node, $strategy, moved(30));
}
refreshed('which stays as it is', 'unchanged', $node, 'first', 'SELECT');

# ---- files ----

my $session = $node->background_psql('first');
$session->query_safe('BEGIN; ' . moved(40));
$node->backup('meanwhile');
$session->query_safe('COMMIT');
$session->quit;
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($node, 'meanwhile');
$restored->start;
refreshed('a base backup', 'full', $restored, 'first', moved(50));
refreshed('and later', 'incremental', $restored, 'first', moved(60));
$restored->stop;
refreshed('what was backed up', 'incremental', $node, 'first', moved(50));

$node->stop;
$node->backup_fs_cold('cold');
$node->start;
my $cold = PostgreSQL::Test::Cluster->new('cold');
$cold->init_from_backup($node, 'cold');
$cold->start;
refreshed('a copy of a server that was stopped', 'incremental', $cold, 'first', moved(70));
$cold->stop;

# ---- two servers that part ----

$node->backup('together');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'together', has_streaming => 1);
$standby->start;
refreshed('a primary', 'incremental', $node, 'first', moved(80));
$node->wait_for_catchup($standby);
$standby->promote;
refreshed('the standby, promoted', 'full', $standby, 'first', moved(200));
refreshed('the former primary', 'incremental', $node, 'first', moved(100));
$standby->safe_psql('postgres', 'CHECKPOINT');
$node->stop;
my $port = $node->port;
command_ok([ 'pg_rewind', '--target-pgdata', $node->data_dir, '--source-server', $standby->connstr('postgres') ], 'pg_rewind');
$node->append_conf('postgresql.conf', "port = $port");
unlink $node->data_dir . '/standby.signal';
$node->start;
refreshed('rewound', 'full', $node, 'first', moved(100));
refreshed('and later', 'incremental', $node, 'first', moved(110));
$node->stop;
$standby->stop;

done_testing();
