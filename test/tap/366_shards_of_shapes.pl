
# Lines and polygons whose join is divided among servers: two shards have the rows of a single server, whether the column
# of shapes says what they are or not, and whether the observations or the shapes are divided.
#
# needs: postgis
# rooms: shard
# check-all: three servers

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use Test::More;

my %node;
foreach my $name (qw(coordinator shard1 shard2))
{
	my $node = $node{$name} = PostgreSQL::Test::Cluster->new($name);

	$node->init(allows_streaming => 'logical');
	$node->append_conf('postgresql.conf', "max_logical_replication_workers = 8\nmax_worker_processes = 16\nwal_retrieve_retry_interval = 200ms");
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION postgis');
}

sub coordinator { return $node{coordinator}->safe_psql('postgres', $_[0]) }

my $shape = q{CASE i % 3 WHEN 0 THEN ST_MakeLine(p, ST_Translate(p, 5, 3)) WHEN 1 THEN ST_Buffer(p, 2) ELSE p END};
my $place = q{ST_SetSRID(ST_MakePoint(i * 77 % 350 - 175, i * 31 % 160 - 80), 4326)};
coordinator(qq{
	CREATE EXTENSION geonn;
	CREATE EXTENSION postgres_fdw;
	CREATE EXTENSION dblink;
	CREATE TABLE ping (id bigint PRIMARY KEY, lat float8, lon float8);
	CREATE TABLE fix (id bigint PRIMARY KEY, lat float8, lon float8);
	INSERT INTO ping SELECT i, i * 7 % 90, i * 11 % 180 FROM generate_series(1, 500) i;
	INSERT INTO fix TABLE ping;
	CREATE TABLE plain (id bigint PRIMARY KEY, g geography);
	INSERT INTO plain SELECT i, ($shape)::geography FROM generate_series(1, 200) i, LATERAL (SELECT $place) q (p);
	CREATE TABLE area (id bigint PRIMARY KEY, g geometry(MultiPolygon, 4326));
	INSERT INTO area SELECT i, ST_Multi(ST_Buffer($place, 2)) FROM generate_series(1, 200) i;
});
foreach my $name (qw(shard1 shard2))
{
	my ($host, $port) = ($node{$name}->host, $node{$name}->port);

	coordinator("CREATE SERVER $name FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres');
		CREATE USER MAPPING FOR CURRENT_USER SERVER $name");
}

my $address = $node{coordinator}->connstr . ' dbname=postgres';

sub run_printed
{
	coordinator(qq{SELECT CASE WHEN server IS NULL THEN command ELSE format('SELECT dblink_exec(%L, %L)', server, command) END
		FROM geonn_shard_ddl('{shard1, shard2}', $_[0]) \\gexec});
}

# how many rows a view of the shards has, and how many of them, or of the single server's, the other lacks
sub compare
{
	my ($view, $call) = @_;

	return coordinator(qq{WITH a AS MATERIALIZED (SELECT obs_id, ref_id, distance FROM $view), b AS MATERIALIZED (SELECT obs_id, ref_id, distance FROM $call)
		SELECT count(*), (SELECT count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) d) FROM b});
}

run_printed("'ping', 'plain', '$address', k => 2, cache => true");
run_printed("'ping', 'plain', '$address', view => 'ping_within', radius => 3e6");
run_printed("'fix', 'area', '$address', sharded => 'ref', k => 3");
coordinator('INSERT INTO ping_sharded TABLE ping; INSERT INTO area_sharded TABLE area');
wait_until(sub { coordinator('SELECT (SELECT count(*) FROM plain_by_shard), (SELECT count(*) FROM fix_by_shard)') eq '400|1000' }, 'both shards have all rows of what is copied');
is(compare('ping_nearest', q{geonn_nearest('ping', 'plain', k => 2)}), '1000|0', 'two neighbours in a plain column');
is(compare('ping_within', q{geonn_within('ping', 'plain', 3e6)}) =~ s/^\d{4,}\|//r, '0', 'all within a distance');
is(compare('fix_nearest_merged', q{geonn_nearest('fix', 'area', k => 3)}), '1500|0', 'three neighbours among polygons that are divided');

coordinator("SELECT dblink_exec(s, 'CALL geonn_refresh(''ping_nearest_cache'')') FROM unnest('{shard1, shard2}'::text[]) s");
is(compare('ping_nearest_kept', q{geonn_nearest('ping', 'plain', k => 2)}), '1000|0', 'and from caches of the shards');

done_testing();
