
# A cache's table that logical replication writes to: the next refresh notices each
# change, also those that fire no triggers of statements, and undoes it.  The extension's
# own table of caches takes no changes that way.
# rooms: cache

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use Test::More;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->start;
my $node = new_server('subscriber', preload => 1, conf => "autovacuum = off\nmax_logical_replication_workers = 8");

my $columns = '(obs_id integer, rank integer, ref_id integer, distance float8, PRIMARY KEY (obs_id, rank))';
$node->safe_psql(
	'postgres', q{
	CREATE TABLE obs AS SELECT i AS id, i * 7 % 90 AS lat, i * 11 % 180 AS lon FROM generate_series(1, 50) i;
	CREATE TABLE ref AS SELECT i AS id, i * 13 % 90 AS lat, i * 17 % 180 AS lon FROM generate_series(1, 20) i;
	SELECT geonn_cache_create('near', 'obs', 'ref');
	CALL geonn_refresh('near', 'full')});

# what a run of the refresh did
sub refresh
{
	$node->safe_psql('postgres', q{CALL geonn_refresh('near')});
	return $node->safe_psql('postgres', q{SELECT mode FROM geonn_cache_log WHERE name = 'near' ORDER BY started DESC LIMIT 1});
}

sub differences
{
	return $node->safe_psql('postgres', q{
		SELECT count(*) FROM near t FULL JOIN geonn_nearest('obs', 'ref', row_type => NULL::near) n USING (obs_id, rank)
		WHERE (t.ref_id, t.distance) IS DISTINCT FROM (n.ref_id, n.distance)});
}

# Publish a change, and see what the next two refreshes do.
sub check
{
	my ($what, $sql) = @_;

	is(refresh(), 'unchanged', "$what: nothing has changed before");
	$publisher->safe_psql('postgres', $sql);
	$publisher->wait_for_catchup('subscription');
	cmp_ok(differences(), '>', 0, "$what: is applied");
	is(refresh(), 'full', "$what: the next refresh is a full one");
	is(differences(), 0, "$what: and undoes it");
}

# The publisher has rows of its own, and some that the cache has, too.
$publisher->safe_psql('postgres', "CREATE TABLE near $columns;
	INSERT INTO near SELECT i, 1, 0, -1 FROM generate_series(101, 150) i; CREATE PUBLICATION publication FOR TABLE near");
my $address = $publisher->connstr . ' dbname=postgres';
is(refresh(), 'unchanged', 'the first copy: nothing has changed before');
$node->safe_psql('postgres', "CREATE SUBSCRIPTION subscription CONNECTION '$address' PUBLICATION publication");
$node->wait_for_subscription_sync($publisher, 'subscription');
is(differences(), 50, 'the first copy: is applied');
is(refresh(), 'full', 'the first copy: the next refresh is a full one');
is(differences(), 0, 'the first copy: and undoes it');

check('an INSERT', 'INSERT INTO near VALUES (1000, 1, 1, 1)');
$node->safe_psql('postgres', 'INSERT INTO obs SELECT i, 0, 0 FROM generate_series(101, 150) i');
$node->safe_psql('postgres', q{CALL geonn_refresh('near', 'full')});
check('an UPDATE', 'UPDATE near SET distance = -2 WHERE obs_id = 110');
check('a DELETE', 'DELETE FROM near WHERE obs_id BETWEEN 120 AND 130');
check('one transaction with a savepoint',
	'BEGIN; UPDATE near SET distance = -3 WHERE obs_id < 105; SAVEPOINT s; DELETE FROM near WHERE obs_id = 140; COMMIT');
check('a TRUNCATE', 'TRUNCATE near');

# by way of a partitioned table
$node->safe_psql('postgres', q{
	ALTER SUBSCRIPTION subscription DISABLE;
	ALTER TABLE near RENAME TO part;
	CREATE TABLE near (LIKE part, PRIMARY KEY (obs_id, rank)) PARTITION BY RANGE (obs_id);
	ALTER TABLE near ATTACH PARTITION part DEFAULT;
	ALTER SUBSCRIPTION subscription ENABLE;
	ALTER SUBSCRIPTION subscription REFRESH PUBLICATION WITH (copy_data = false)});
$node->safe_psql('postgres', q{CALL geonn_refresh('near', 'full')});
$node->wait_for_subscription_sync($publisher, 'subscription');
check('an INSERT by way of a partitioned table', 'INSERT INTO near VALUES (1000, 1, 1, 1)');

# and after it all
$node->safe_psql('postgres', 'DROP SUBSCRIPTION subscription');
is(refresh(), 'unchanged', 'without a subscription nothing changes');

# nor does the owner of a subscription write the extension's table of caches
my $published = q{SELECT obs::regclass FROM geonn_cache};
$publisher->safe_psql('postgres', 'CREATE TABLE geonn_cache (id integer PRIMARY KEY, obs text);
	INSERT INTO geonn_cache SELECT i FROM generate_series(1, 9) i; CREATE PUBLICATION caches FOR TABLE geonn_cache');
my $as_owner = $node->safe_psql('postgres', 'SHOW server_version_num') >= 160000 ? ', run_as_owner = true, password_required = false' : '';
$node->safe_psql('postgres', "CREATE ROLE thief SUPERUSER LOGIN; SET ROLE thief;
	CREATE SUBSCRIPTION theft CONNECTION '$address' PUBLICATION caches WITH (copy_data = false$as_owner);
	RESET ROLE; ALTER ROLE thief NOSUPERUSER; GRANT pg_read_all_data, pg_write_all_data TO thief");
$node->wait_for_subscription_sync($publisher, 'theft');
$publisher->safe_psql('postgres', q{UPDATE geonn_cache SET obs = 'public.ref'});
wait_until(
	sub {
		return $node->safe_psql('postgres', $published) ne 'obs' ||
			Geonn::slurp($node->logfile) =~ /permission denied for table geonn_cache/;
	}, 'a change of the table of caches arrives');
is($node->safe_psql('postgres', $published), 'obs', 'and is refused');
$node->safe_psql('postgres', 'DROP SUBSCRIPTION theft');

$node->stop;
$publisher->stop;
done_testing();
