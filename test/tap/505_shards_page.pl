
# doc/scale-out.md runs as written on a coordinator and three shards, and says what comes.  Two
# shards are set up by at most 15 commands.  Then other ways to divide: references in place of
# observations, whose answers are merged, and lists and ranges, also in partitions that pg_partman
# makes.  The rows are those of a single server.  Last, all is taken apart, as the page says.
#
# may skip: partitions of pg_partman, where that is not installed
# rooms: shard doc
# check-all: holds documentation and code together

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my %node;
foreach my $name (qw(coordinator shard1 shard2 shard3))
{
	$node{$name} = PostgreSQL::Test::Cluster->new($name);
	$node{$name}->init(allows_streaming => 'logical');
	$node{$name}->append_conf('postgresql.conf', "max_logical_replication_workers = 8\nmax_worker_processes = 16\nwal_retrieve_retry_interval = 200ms");
	$node{$name}->start;
}
my $coordinator = $node{coordinator};
my $user = $coordinator->safe_psql('postgres', 'SELECT current_user');

sub coordinator { return $coordinator->safe_psql('postgres', $_[0]) }

# the page's hosts, ports and users are those of the test's servers
sub placed
{
	my ($text) = @_;

	$text =~ s/host '(shard\d)', port '5432'/"host '" . $node{$1}->host . "', port '" . $node{$1}->port . "'"/ge;
	$text =~ s/host=coordinator port=5432/'host=' . $coordinator->host . ' port=' . $coordinator->port/ge;
	$text =~ s/user '?\K=?postgres(?=['])/$& =~ s,postgres,$user,r/ge;
	return $text;
}

# the blocks of several servers, each with what it prints where the page shows that
my $page = (grep { m{/scale-out\.md$} } Geonn::pages())[0];
my @blocks;
my $text = Geonn::slurp($page);
push @blocks, { text => $1, shown => $2 } while $text =~ /^```sql shards\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?/msg;
cmp_ok(scalar(@blocks), '>', 5, 'the page has blocks of several servers');

my %session = (in => '', out => '', error => '');
my $psql = IPC::Run::start([ $coordinator->installed_command('psql'), '-Xq', '-d', $coordinator->connstr('postgres') ],
	'<', \$session{in}, '>', \$session{out}, '2>', \$session{error}, IPC::Run::timeout(180));
my ($commands, $started) = (0, time);
foreach my $block (@blocks)
{
	my $title = (split /\n/, $block->{text})[0];
	my $is_setup = $block->{text} !~ /INSERT INTO/ && !defined($session{loaded});

	if ($is_setup)
	{
		$commands += () = $block->{text} =~ /;$|\\gexec$/mg;
	}
	elsif (!defined($session{loaded}))
	{
		cmp_ok($commands, '<=', 15, "two shards are set up by $commands commands");
		cmp_ok(time - $started, '<', 300, 'in less than 5 minutes');
		$session{loaded} = 1;
	}
	$session{$_} = '' foreach qw(out error);
	$session{in} .= placed($block->{text}) . "\n\\echo end of block\n\\warn end of block\n";
	$psql->pump until $session{out} =~ /^end of block$/m && $session{error} =~ /^end of block$/m;
	unlike($session{error}, qr/ERROR|WARNING|FATAL/, "$title: runs");
	# before a question, the shards have all references
	coordinator(q{
		DO $$ BEGIN
			WHILE (SELECT min(version) FROM station_version_by_shard) IS DISTINCT FROM (SELECT version FROM station_version)
				OR (SELECT count(*) FROM station_by_shard) <> (SELECT count(*) FROM station) * (SELECT count(*) FROM station_version_by_shard) LOOP
				COMMIT;
				PERFORM pg_sleep(0.05);
			END LOOP;
		END $$}) if coordinator(q{SELECT to_regclass('station_version_by_shard') IS NOT NULL}) eq 't';
	next if !defined($block->{shown});
	my @printed = shown_lines(placed($session{out}));
	foreach my $line (grep { !/^…$/ } shown_lines(placed($block->{shown})))
	{
		shift @printed while @printed && index($printed[0], substr($line, 0, 60)) != 0;
		ok(@printed > 0, "prints $line");
	}
}
is(coordinator('SELECT count(*), count(DISTINCT obs_id) FROM ping_nearest'), '20000|20000', 'at the end of the page each observation has its neighbour');
is(coordinator('SELECT count(*) FROM ping_nearest n JOIN ping_sharded p ON p.id = n.obs_id JOIN station s ON s.id = n.ref_id WHERE n.distance <> geonn_distance(p.lat, p.lon, s.lat, s.lon)'), 0, 'at its distance');
$session{in} .= "\\q\n";
$psql->finish;

# ---- other ways to divide ----

my $address = $coordinator->connstr . ' dbname=postgres';

sub run_printed
{
	my ($call) = @_;

	coordinator("SELECT CASE WHEN server IS NULL THEN command ELSE format('SELECT dblink_exec(%L, %L)', server, command) END FROM $call \\gexec");
}

# Rows that a view of all shards has, and a single server has not, and those that are missing.
sub differences
{
	my ($view, $join) = @_;
	my $row = 'obs_id, rank, ref_id, distance';

	return coordinator("WITH a AS MATERIALIZED (SELECT $row FROM $view), b AS MATERIALIZED (SELECT $row FROM $join AS n (obs_id bigint, rank bigint, ref_id bigint, distance float8))
		SELECT (SELECT count(*) FROM (TABLE a EXCEPT ALL TABLE b) x) + (SELECT count(*) FROM (TABLE b EXCEPT ALL TABLE a) x), (SELECT count(*) > 0 FROM a)" =~ s/rank bigint/rank integer/r);
}

# few places, so that many references are as far
coordinator(q{
	CREATE TABLE trip (id bigint PRIMARY KEY, lat float8, lon float8);
	CREATE TABLE beacon (id bigint PRIMARY KEY, lat float8, lon float8);
	INSERT INTO trip SELECT i, i % 30, i % 50 FROM generate_series(1, 3000) i;
	INSERT INTO beacon SELECT i, i * 7 % 40, i * 11 % 60 FROM generate_series(1, 2000) i});
my %merged = (
	trip_one => '', trip_three => 'k => 3', trip_ties => "k => 3, ties => 'all'",
	trip_near => 'k => 50, max_distance => 300000, keep_unmatched => true', trip_within => 'radius => 300000, keep_unmatched => true');
foreach my $view (sort keys %merged)
{
	my $arguments = $merged{$view};

	run_printed("geonn_shard_ddl('{shard1, shard3}', 'trip', 'beacon', '$address', sharded => 'ref', view => '$view'" . ($arguments ? ", $arguments)" : ')'));
	coordinator('INSERT INTO beacon_sharded SELECT * FROM beacon') if $view eq 'trip_near';
}
foreach my $shard (qw(shard1 shard3))
{
	wait_until(sub { $node{$shard}->safe_psql('postgres', 'SELECT count(*) FROM trip') eq '3000' }, "$shard has the observations");
}
foreach my $view (sort keys %merged)
{
	my $function = $merged{$view} =~ /radius/ ? 'geonn_within' : 'geonn_nearest';

	is(differences("${view}_merged", "$function('trip', 'beacon'" . ($merged{$view} ? ", $merged{$view}" : '') . ', row_type => NULL::record)'), '0|t',
		"references on several servers, $merged{$view}: the rows of a single server");
}

coordinator(q{
	CREATE TABLE spot (id bigint, region text, day date, lat float8, lon float8, PRIMARY KEY (id, region, day));
	INSERT INTO spot SELECT i, (ARRAY['north', 'east', 'south'])[i % 3 + 1], DATE '2026-01-01' + i % 90, i % 30, i % 50 FROM generate_series(1, 900) i;
	CREATE TABLE visit (LIKE spot INCLUDING ALL);
	INSERT INTO visit TABLE spot;
});
run_printed("geonn_shard_ddl('{shard1, shard3}', 'spot', 'station', '$address', partition_by => 'list', key => 'region', bounds => ARRAY['{north,east}', '{south}'])");
run_printed("geonn_shard_ddl('{shard1, shard3}', 'visit', 'station', '$address', partition_by => 'range', key => 'day', bounds => '{2026-02-01,2026-03-01}')");
foreach my $table (qw(spot visit))
{
	coordinator("INSERT INTO ${table}_sharded TABLE $table");
	is(differences("${table}_nearest", "geonn_nearest('$table', 'station', row_type => NULL::record)"), '0|t', "$table: the rows of a single server");
}
is($node{shard3}->safe_psql('postgres', q{SELECT string_agg(DISTINCT region, ' ') FROM spot}), 'south', 'a list of values lies on its server');
is($node{shard3}->safe_psql('postgres', 'SELECT min(day), max(day) FROM visit'), '2026-03-01|2026-03-31', 'a range lies on its server');

# ---- pg_partman ----

SKIP:
{
	my $partman = $node{shard1}->safe_psql('postgres', q{SELECT split_part(default_version, '.', 1) FROM pg_available_extensions WHERE name = 'pg_partman'});
	skip('pg_partman is not installed', 2) if !$partman;
	# from 5 on, it knows PostgreSQL's own partitions alone
	my $interval = $partman < 5 ? "'native', 'daily'" : "'1 day'";
	my $shard = $node{shard1};

	$shard->safe_psql('postgres', qq{
		CREATE SCHEMA partman;
		CREATE EXTENSION pg_partman SCHEMA partman;
		CREATE TABLE pass (id bigint, at timestamptz NOT NULL, lat float8, lon float8, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
		SELECT partman.create_parent('public.pass', 'at', $interval);
		INSERT INTO pass SELECT i, now() + (i % 3 - 1) * interval '1 day', i % 30, i % 50 FROM generate_series(1, 3000) i;
		ANALYZE pass});
	like($shard->safe_psql('postgres', q{EXPLAIN ANALYZE SELECT count(*) FROM geonn_nearest('pass', 'station')}), qr/geonn join.*Observations: pass/s, 'partitions of pg_partman are read by a join');
	is($shard->safe_psql('postgres', q{SELECT count(*) FILTER (WHERE distance = geonn_distance(p.lat, p.lon, s.lat, s.lon)), count(*) FROM geonn_nearest('pass', 'station') n
		JOIN pass p ON p.id = n.obs_id JOIN station s ON s.id = n.ref_id}), '3000|3000', 'to the last row');
}

# ---- tables of the same names in another database of the same servers ----

foreach my $name (qw(coordinator shard1 shard3))
{
	$node{$name}->safe_psql('postgres', 'CREATE DATABASE other');
}
$coordinator->safe_psql('other', 'CREATE EXTENSION geonn; CREATE EXTENSION postgres_fdw; CREATE EXTENSION dblink;
	CREATE TABLE ping (id bigint PRIMARY KEY, lat float8, lon float8);
	CREATE TABLE station (id bigint PRIMARY KEY, lat float8, lon float8);
	INSERT INTO ping SELECT i, i % 30, i % 50 FROM generate_series(1, 100) i;
	INSERT INTO station SELECT i, i * 7 % 40, i * 11 % 60 FROM generate_series(1, 100) i');
foreach my $name (qw(shard1 shard3))
{
	my ($host, $port) = ($node{$name}->host, $node{$name}->port);

	$coordinator->safe_psql('other', "CREATE SERVER $name FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'other'); CREATE USER MAPPING FOR CURRENT_USER SERVER $name");
}
$coordinator->safe_psql('other', "SELECT CASE WHEN server IS NULL THEN command ELSE format('SELECT dblink_exec(%L, %L)', server, command) END
	FROM geonn_shard_ddl('{shard1, shard3}', 'ping', 'station', '" . $coordinator->connstr . " dbname=other') \\gexec");
$coordinator->safe_psql('other', 'INSERT INTO ping_sharded TABLE ping');
wait_until(sub { $coordinator->safe_psql('other', 'SELECT min(version) FROM station_version_by_shard') eq '1' }, 'another database of the same servers can divide tables of the same names');
is($coordinator->safe_psql('other', q{SELECT count(*), count(*) FILTER (WHERE (g.ref_id, g.distance) = (n.ref_id, n.distance)) FROM ping_nearest g JOIN geonn_nearest('ping', 'station') n USING (obs_id)}), '100|100', 'with the rows of a single server');
$coordinator->safe_psql('other', "SELECT dblink_exec(s, 'DROP SUBSCRIPTION station_' || s) FROM unnest('{shard1, shard3}'::text[]) s");

# ---- take it apart ----

my ($apart) = $text =~ /^```sql shards apart\n(.*?)^```\n/ms;
my ($status, undef, $complaints) = $coordinator->psql('postgres', "SET client_min_messages = warning; $apart", on_error_stop => 1);
is("$status$complaints", '0', 'what is set up is taken apart');
is(coordinator(q{SELECT string_agg(relname, ' ') FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'f') AND relname ~ '^(ping|station|geonn.*by_shard)' AND relname NOT IN ('ping', 'station')}), '', 'of tables and views the first two stay');
is(coordinator(q{SELECT (SELECT count(*) FROM pg_publication WHERE pubname = 'station_shards') + (SELECT count(*) FROM pg_replication_slots WHERE slot_name ~ '^station') + (SELECT count(*) FROM pg_foreign_server)}), 0, 'and nothing keeps WAL');
is($node{$_}->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p', 'v') AND relname ~ '^(ping|station)'}), 0, "nor is anything left on $_") foreach qw(shard1 shard3);

$_->stop foreach values %node;
done_testing();
