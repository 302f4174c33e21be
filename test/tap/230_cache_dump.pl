
# Caches outlive pg_dump and pg_upgrade: their tables, what they ask, and that
# the next refresh finds what has changed since.
# rooms: cache

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('old', preload => 1);

$node->safe_psql(
	'postgres', q{
	CREATE SCHEMA "the Maps";
	CREATE ROLE keeper LOGIN;
	GRANT ALL ON SCHEMA "the Maps" TO keeper;
	SET ROLE keeper;
	SET search_path = "the Maps", public;
	CREATE TABLE "Obs" AS SELECT i AS id, i * 7 % 90 AS lat, i * 11 % 180 AS lon, i % 3 AS kind FROM generate_series(1, 500) i;
	CREATE TABLE ref AS SELECT 'r' || i AS id, i * 13 % 90 AS lat, i * 17 % 180 AS lon, i % 3 AS kind FROM generate_series(1, 90) i;
	CREATE VIEW even AS SELECT * FROM "Obs" WHERE id % 2 = 0;
	SELECT geonn_cache_create('it''s near', '"Obs"', 'ref', k => 3, by => '{kind}', options => '{"batch_rows": 100}', target => 'near');
	SELECT geonn_cache_create('viewed', 'even', 'ref', radius => 2e6, keep_unmatched => true, replace => 'never');
	SELECT geonn_cache_create('counted', 'even', 'ref', radii => '{2e6, 1e6}', weights => '{kind}');
	SELECT geonn_cache_create('clustered', cluster => '"Obs"', radius => 6e5, min_points => 3, by => '{kind}');
	SELECT geonn_cache_create('dropped', '"Obs"', 'ref');
	SELECT geonn_cache_drop('dropped');
	CALL geonn_refresh_all('full');
	ALTER TABLE near ADD note text;
	UPDATE near SET note = 'kept' WHERE obs_id < 10;
});

my %call = (
	near => q{geonn_nearest('"the Maps"."Obs"', '"the Maps".ref', k => 3, by => '{kind}', row_type => NULL::record)
		AS n (obs_id integer, rank integer, ref_id text, distance float8)},
	viewed => q{geonn_within('"the Maps".even', '"the Maps".ref', 2e6, keep_unmatched => true, row_type => NULL::record)
		AS n (obs_id integer, rank integer, ref_id text, distance float8)},
	counted => q{geonn_within_count('"the Maps".even', '"the Maps".ref', '{2e6, 1e6}', '{kind}', row_type => NULL::record)
		AS n (obs_id integer, rank integer, radius float8, count bigint, sums float8[])},
	clustered => q{(SELECT id, min(id) FILTER (WHERE kind = 'core') OVER (PARTITION BY cluster) AS cluster, kind
		FROM geonn_cluster('"the Maps"."Obs"', 6e5, 3, by => '{kind}')) n});
my $caches = q{SELECT id, name, target, owner.relowner::regrole, obs, ref, arguments, schedule
	FROM geonn_cache JOIN pg_class owner ON owner.oid = target ORDER BY id};
my $expected = $node->safe_psql('postgres', $caches);

# how many rows of a cache's table are not the call's, or the reverse
sub differences
{
	my ($of, $table) = @_;
	my %values = (counted => 'obs_id, rank, radius, count, sums', clustered => 'id, cluster, kind');
	my $columns = 'SELECT ' . ($values{$table} // 'obs_id, rank, ref_id, distance') . ' FROM';

	return $of->safe_psql('postgres',
		qq{SELECT count(*) FROM (($columns "the Maps".$table EXCEPT ALL $columns $call{$table})
			UNION ALL ($columns $call{$table} EXCEPT ALL $columns "the Maps".$table)) d});
}

# caches are as they were, are refreshed as their owner, and can be made and dropped
sub check
{
	my ($of, $how) = @_;

	is($of->safe_psql('postgres', $caches), $expected, "$how: the caches");
	is(differences($of, $_), 0, "$how: the rows of $_") foreach sort keys %call;
	$of->safe_psql('postgres',
		q{UPDATE "the Maps".ref SET lat = lat + 1 WHERE kind = 1; DELETE FROM "the Maps"."Obs" WHERE id > 400});
	isnt(differences($of, $_), 0, "$how: $_ is out of date") foreach sort keys %call;
	$of->safe_psql('postgres', q{SET ROLE keeper; CALL geonn_refresh_all()});
	is(differences($of, $_), 0, "$how: $_ is refreshed") foreach sort keys %call;
	is($of->safe_psql('postgres', q{SELECT count(*) FROM "the Maps".near WHERE note = 'kept' AND obs_id < 10}),
		27, "$how: a column of the user's");
	$of->safe_psql('postgres', q{UPDATE "the Maps".near SET distance = 1 WHERE obs_id = 5});
	$of->safe_psql('postgres', q{CALL geonn_refresh('it''s near')});
	is(differences($of, 'near'), 0, "$how: changes by hand are noticed");
	is( $of->safe_psql('postgres', q{
			SET ROLE keeper;
			SET search_path = "the Maps", public;
			SELECT geonn_cache_create('new', '"Obs"', 'ref') IS NOT NULL;
			SELECT geonn_cache_drop(unnest('{viewed, counted, clustered}'::text[]));
			SELECT string_agg(name, ', ' ORDER BY name) FROM geonn_caches}),
		"t\n\n\n\nit's near, new", "$how: caches are made and dropped");
}

# ---- pg_dump ----

my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';
my $restored = PostgreSQL::Test::Cluster->new('restored');

$node->command_ok([ 'pg_dump', '-Fc', '-d', $node->connstr('postgres'), '-f', $dump ], 'pg_dump');
$restored->init;
$restored->append_conf('postgresql.conf', "shared_preload_libraries = 'geonn'");
$restored->start;
$restored->safe_psql('postgres', 'CREATE ROLE keeper LOGIN');
$restored->command_ok([ 'pg_restore', '-e', '-d', $restored->connstr('postgres'), $dump ], 'pg_restore');
check($restored, 'restored');
$restored->stop;

# ---- pg_upgrade ----

my $upgraded = PostgreSQL::Test::Cluster->new('upgraded');
my $bin = $node->config_data('--bindir');

$upgraded->init;
$upgraded->append_conf('postgresql.conf', "shared_preload_libraries = 'geonn'");
$node->stop;
chdir(PostgreSQL::Test::Utils::tempdir());
command_ok(
	[
		'pg_upgrade', '--no-sync', '-b', $bin, '-B', $bin, '-d', $node->data_dir, '-D', $upgraded->data_dir,
		'-s', $node->host, '-p', $node->port, '-P', $upgraded->port
	],
	'pg_upgrade');
$upgraded->start;
check($upgraded, 'upgraded');
$upgraded->stop;

done_testing();
