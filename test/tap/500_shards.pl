
# A join that is divided among servers, by the commands that geonn_shard_ddl prints: a
# coordinator and two shards answer each question with the rows of a single server, also
# while references move and are replicated.  EXPLAIN shows which questions go to the shards
# whole.  A shard is added and another one drained, and no row is lost or counted twice.
# rooms: shard

# short form: 20,000 observations in place of 60,000, and no shard is killed, stopped or upgraded

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use Test::More;
use Time::HiRes qw(sleep);

my $long = $ENV{GEONN_LONG};
my ($observations, $references, $moves) = ($long ? 60_000 : 20_000, 2_000, 1_000);
my ($installation, $engine) = $long ? own_installation() : ();
my $seed = $ENV{GEONN_SEED} // int(rand(1 << 30));
diag("seed $seed");

# ---- three servers ----

sub cluster
{
	my ($name, %option) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name, %option);

	$node->init(allows_streaming => 'logical');
	$node->append_conf('postgresql.conf', "max_logical_replication_workers = 8\nmax_worker_processes = 16\nwal_retrieve_retry_interval = 200ms");
	$node->start;
	return $node;
}

my $coordinator = cluster('coordinator');
my %shard = map { $_ => cluster($_, $installation && $_ eq 'shard2' ? (install_path => $installation) : ()) } qw(shard1 shard2);
my $address = $coordinator->connstr . ' dbname=postgres';

sub coordinator { return $coordinator->safe_psql('postgres', $_[0]) }

# one command of the operator's, as the page has them
my $commands = 0;
sub command
{
	$commands++;
	return coordinator($_[0]);
}

# Run the commands that this query prints, each on its server, as \gexec does.
sub run_printed
{
	my ($call) = @_;

	command(qq{SELECT CASE WHEN server IS NULL THEN command ELSE format('SELECT dblink_exec(%L, %L)', server, command) END FROM $call \\gexec});
}

sub define_server
{
	my ($name) = @_;
	my ($host, $port) = ($shard{$name}->host, $shard{$name}->port);

	command("CREATE SERVER $name FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres')");
	command("CREATE USER MAPPING FOR CURRENT_USER SERVER $name");
}

# the versions of references that all shards have
sub versions { return coordinator('SELECT count(*), min(version), max(version) FROM station_version_by_shard') }

sub wait_for_version
{
	my ($name) = @_;
	my $expected = coordinator(q{SELECT count(DISTINCT shard) || '|' || v.version || '|' || v.version FROM ping_by_shard RIGHT JOIN station_version v ON true GROUP BY v.version});

	return wait_until(sub { versions() =~ /^\d+\|(\d+)\|\1$/ && "$1" eq (split /\|/, $expected)[1] }, $name);
}

# ---- set up from nothing ----

coordinator(qq{
	CREATE TABLE ping (id bigint PRIMARY KEY, region text NOT NULL, price float8, lat float8, lon float8);
	CREATE INDEX ON ping (region);
	CREATE TABLE station (id bigint PRIMARY KEY, kind text, lat float8, lon float8);
	SELECT setseed($seed / 1073741824.0);
	INSERT INTO ping SELECT i, 'r' || i % 7, 100 * random(), degrees(asin(2 * random() - 1)), 360 * random() - 180 FROM generate_series(1, $observations) i;
	INSERT INTO station SELECT i, 'k' || i % 5, degrees(asin(2 * random() - 1)), 360 * random() - 180 FROM generate_series(1, $references) i;
});
command("CREATE EXTENSION $_") foreach qw(geonn postgres_fdw dblink);
define_server($_) foreach sort keys %shard;
my @tables = ("'ping'", "'station'", "'$address'");
my $call = "geonn_shard_ddl('{shard1, shard2}', " . join(', ', @tables);
run_printed("$call, cache => true)");
command('INSERT INTO ping_sharded SELECT * FROM ping');
command(q{SELECT dblink_exec(s, 'ANALYZE') FROM unnest('{shard1, shard2}'::text[]) s});
cmp_ok($commands, '<=', 15, "two shards are set up by $commands commands");
is(coordinator("SELECT count(*) FROM $call, cache => true)"), 0, 'then nothing is left to do');
wait_for_version('all shards have the references');
run_printed("$call, view => 'ping_three', k => 3)");
run_printed("$call, view => 'ping_within', radius => 300000)");

# ---- questions ----

# The farthest five: those of each shard, of all at once, and of these the first.
sub top_of
{
	my $order = 'ORDER BY distance DESC, obs_id LIMIT 5';

	return 'WITH few AS MATERIALIZED (' . join(' UNION ALL ', map { "(SELECT obs_id, ref_id, distance FROM ping_nearest_$_ $order)" } @_) . ") TABLE few $order";
}

# [name, question, the same of a single server, what EXPLAIN shows each shard's part to be]
my $to_shard = qr/Async Foreign Scan.*Remote SQL: SELECT/s;
# sums of numeric, since those of float8 depend on the order of addition
my @questions = (
	['count and average',
		'SELECT sum(n), round(sum(s) / sum(n), 3) FROM (SELECT shard, count(*) AS n, sum(distance::numeric) AS s FROM ping_nearest GROUP BY shard) a',
		q{SELECT count(*), round(avg(distance::numeric), 3) FROM geonn_nearest('ping', 'station')},
		qr/Async Foreign Scan.*SELECT shard, count\(\*\), sum\(distance::numeric\) FROM public\.ping_nearest GROUP BY 1/s],
	['by reference',
		'SELECT ref_id, sum(n), sum(s) FROM (SELECT shard, ref_id, count(*) AS n, sum(distance::numeric) AS s FROM ping_nearest GROUP BY shard, ref_id) a GROUP BY ref_id',
		q{SELECT ref_id, count(*), sum(distance::numeric) FROM geonn_nearest('ping', 'station') GROUP BY ref_id},
		qr/Async Foreign Scan.*FROM public\.ping_nearest GROUP BY 1, 2/s],
	['by region of the observation',
		'SELECT region, sum(n), sum(s) FROM (SELECT o.shard, o.region, count(*) AS n, sum(n.distance::numeric) AS s FROM ping_by_shard o JOIN ping_nearest n ON n.shard = o.shard AND n.obs_id = o.id GROUP BY o.shard, o.region) a GROUP BY region',
		q{SELECT region, count(*), sum(distance::numeric) FROM ping JOIN geonn_nearest('ping', 'station') ON id = obs_id GROUP BY region},
		qr/Async Foreign Scan.*INNER JOIN public\.ping_nearest.*GROUP BY 1, 2/s],
	['by kind of the reference',
		'SELECT kind, sum(n) FROM (SELECT r.shard, r.kind, count(*) AS n FROM station_by_shard r JOIN ping_nearest n ON n.shard = r.shard AND n.ref_id = r.id GROUP BY r.shard, r.kind) a GROUP BY kind',
		q{SELECT kind, count(*) FROM station JOIN geonn_nearest('ping', 'station') ON id = ref_id GROUP BY kind},
		qr/Async Foreign Scan.*INNER JOIN public\.ping_nearest.*GROUP BY 1, 2/s],
	['HAVING, of each shard',
		'SELECT ref_id, sum(n) FROM (SELECT shard, ref_id, count(*) AS n FROM ping_nearest GROUP BY shard, ref_id HAVING count(*) > 0) a GROUP BY ref_id HAVING sum(n) > 20',
		q{SELECT ref_id, count(*) FROM geonn_nearest('ping', 'station') GROUP BY ref_id HAVING count(*) > 20},
		qr/Async Foreign Scan.*GROUP BY 1, 2 HAVING \(\(count\(\*\) > 0\)\)/s],
	['WHERE on the distance',
		'SELECT obs_id, ref_id, distance FROM ping_nearest WHERE distance > 500000',
		q{SELECT obs_id, ref_id, distance FROM geonn_nearest('ping', 'station') WHERE distance > 500000},
		qr/Async Foreign Scan.*Remote SQL: [^\n]*WHERE \(\(distance > /s],
	['join with columns of the observations, WHERE on them',
		q{SELECT o.*, n.ref_id, n.distance FROM ping_by_shard o JOIN ping_nearest n ON n.shard = o.shard AND n.obs_id = o.id WHERE o.price < 1} =~ s/o\.\*/o.id, o.region, o.price/r,
		q{SELECT id, region, price, ref_id, distance FROM ping JOIN geonn_nearest('ping', 'station') ON id = obs_id WHERE price < 1},
		qr/Async Foreign Scan.*Remote SQL: [^\n]*INNER JOIN public\.ping_nearest[^\n]*price < /s],
	['top n',
		top_of(qw(shard1 shard2)),
		q{SELECT obs_id, ref_id, distance FROM geonn_nearest('ping', 'station') ORDER BY distance DESC, obs_id LIMIT 5},
		qr/Append(?:\s+->  Async Foreign Scan[^>]*Remote SQL: [^\n]*ORDER BY distance DESC[^\n]*LIMIT 5[^\n]*){2}\s+->  Sort/s],
	['one observation',
		'SELECT obs_id, ref_id, distance FROM ping_nearest WHERE obs_id = 77',
		q{SELECT obs_id, ref_id, distance FROM geonn_nearest('ping', 'station') WHERE obs_id = 77},
		qr/Foreign Scan.*Remote SQL: [^\n]*WHERE \(\(obs_id = 77\)\)/s],
	['one observation, kept',
		'SELECT obs_id, rank, ref_id, distance FROM ping_nearest_kept WHERE obs_id = 77',
		q{SELECT obs_id, 1, ref_id, distance FROM geonn_nearest('ping', 'station') WHERE obs_id = 77},
		qr/Foreign Scan.*Remote SQL: [^\n]*WHERE \(\(obs_id = 77\)\)/s],
	['a row of the observations',
		'SELECT id, region, price, lat, lon FROM ping_sharded WHERE id = 77', 'SELECT * FROM ping WHERE id = 77',
		qr/^Foreign Scan on public\.ping_sharded_\d(?!.*Foreign Scan).*WHERE \(\(id = 77\)\)/s],
	['three neighbours',
		'SELECT obs_id, rank, ref_id, distance FROM ping_three',
		q{SELECT obs_id, rank, ref_id, distance FROM geonn_nearest('ping', 'station', k => 3, row_type => NULL::record) AS n (obs_id bigint, rank integer, ref_id bigint, distance float8)},
		$to_shard],
	['the average of three neighbours, by shard',
		'SELECT sum(n), round(sum(s) / sum(n), 3) FROM (SELECT shard, count(*) AS n, sum(distance::numeric) AS s FROM ping_three GROUP BY shard) a',
		q{SELECT count(*), round(avg(distance::numeric), 3) FROM geonn_nearest('ping', 'station', k => 3)},
		qr/Async Foreign Scan.*FROM public\.ping_three GROUP BY 1/s],
	['within a radius',
		'SELECT obs_id, ref_id, distance FROM ping_within', q{SELECT obs_id, ref_id, distance FROM geonn_within('ping', 'station', 300000)},
		$to_shard],
	['dblink, to all at once',
		q{SELECT sum(n), round(sum(s) / sum(n), 3) FROM (
			SELECT a.* FROM unnest('{shard1, shard2}'::text[]) s, LATERAL dblink(s, 'SELECT count(*), sum(distance::numeric) FROM geonn_nearest(''ping'', ''station'')') AS a (n bigint, s numeric)) a},
		q{SELECT count(*), round(avg(distance::numeric), 3) FROM geonn_nearest('ping', 'station')},
		qr/Function Scan on public\.dblink/s]);

# rows of either query that the other has not
sub differences
{
	my ($one, $other) = @_;

	return coordinator("WITH a AS MATERIALIZED ($one), b AS MATERIALIZED ($other)
		SELECT (SELECT count(*) FROM (TABLE a EXCEPT ALL TABLE b) x) + (SELECT count(*) FROM (TABLE b EXCEPT ALL TABLE a) x)");
}

sub questions_are_answered
{
	my ($when) = @_;
	my $different = 0;

	foreach my $question (@questions)
	{
		my $found = differences(@$question[ 1, 2 ]);
		is($found, 0, "$when: $question->[0]: the rows of a single server");
		$different += $found;
	}
	return $different;
}

# the caches of all shards
sub refresh
{
	my @servers = split /\n/, coordinator('SELECT DISTINCT shard FROM station_version_by_shard');

	coordinator(qq{SELECT dblink_exec('$_', 'CALL geonn_refresh(''ping_nearest_cache'')')}) foreach @servers;
}

refresh();
foreach my $question (@questions)
{
	my ($name, $sql, undef, $pattern) = @$question;

	like(coordinator("EXPLAIN (VERBOSE, COSTS OFF) $sql"), $pattern, "$name: goes to the shards");
}
like($shard{shard1}->safe_psql('postgres', 'EXPLAIN (COSTS OFF) SELECT o.region, sum(n.distance) FROM ping_by_shard o JOIN ping_nearest n ON n.shard = o.shard AND n.obs_id = o.id GROUP BY o.region'),
	qr/geonn lateral join(?!.*geonn join).*on ping_0/s, 'and by region of the observation, a shard reads its partitions once');
questions_are_answered('at the beginning');
is(coordinator(q{SELECT count(DISTINCT shard), count(*) FROM geonn_cache_log_by_shard WHERE status = 'succeeded'}), '2|4', 'the coordinator sees the logs of all caches');

# ---- references move meanwhile ----

coordinator(q{
	CREATE TABLE station_history AS SELECT 1::bigint AS version, id, lat, lon FROM station;
	CREATE PROCEDURE move_stations(times integer) LANGUAGE plpgsql AS $$
	DECLARE
		v bigint;
	BEGIN
		FOR i IN 1 .. times LOOP
			UPDATE station_version SET version = version + 1 RETURNING version INTO v;
			WITH moved AS (
				UPDATE station SET lat = degrees(asin(2 * random() - 1)), lon = 360 * random() - 180
				WHERE id = 1 + floor(random() * } . $references . q{) RETURNING id, lat, lon)
			INSERT INTO station_history SELECT v, * FROM moved;
			COMMIT;
			PERFORM pg_sleep(0.002);
		END LOOP;
	END $$});

# Each shard's rows are exact for the references as of its ref_version.
my $rounds = 0;
sub shards_are_exact
{
	return coordinator(q{
		CREATE TEMP TABLE got AS SELECT * FROM ping_nearest;
		SELECT count(*) FROM (SELECT DISTINCT shard, ref_version FROM got) v, LATERAL (
			SELECT count(*) FILTER (WHERE (n.ref_id, n.distance) IS DISTINCT FROM (g.ref_id, g.distance)) AS wrong
			FROM got g LEFT JOIN geonn_nearest_sql('TABLE ping', format(
				'SELECT DISTINCT ON (id) id, lat, lon FROM station_history WHERE version <= %s ORDER BY id, version DESC', v.ref_version)) n
				ON n.obs_id = g.obs_id
			WHERE g.shard = v.shard) d WHERE wrong > 0;
		SELECT count(DISTINCT obs_id) - (SELECT count(*) FROM ping) FROM got});
}
my $run = start_sql($coordinator, "CALL move_stations($moves)");
my %versions;
do
{
	is(shards_are_exact(), "0\n0", 'while references move: each shard is exact for its version');
	$versions{ (split /\|/, versions())[2] } = 1;
	$rounds++;
} while ($rounds < 3 || $run->{handle}->pumpable && coordinator('SELECT version FROM station_version') <= $moves && $rounds < 200);
is((finish_sql($run))[0], 0, "$moves references have moved");
cmp_ok(scalar(keys %versions), '>', 1, "$rounds rounds saw several versions");
wait_for_version('all shards have the last version');
refresh();
is(questions_are_answered('after the moves'), 0, 'no row differs');

# ---- one snapshot of a shard for a transaction ----

my $session = $coordinator->background_psql('postgres');
my $sum = 'SELECT sum(distance::numeric), min(ref_version) FROM ping_nearest';
$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $before = $session->query_safe($sum);
coordinator('CALL move_stations(20)');
wait_for_version('further references have moved');
is($session->query_safe($sum), $before, 'a transaction keeps each shard\'s snapshot');
$session->query_safe('COMMIT');
isnt($session->query_safe($sum), $before, 'the next one has new ones');
$session->quit;

# ---- a barrier: all caches refreshed for a version ----

# what each shard has, and when by its own clock; and whether each has refreshed since
my $seen = 'CREATE TEMP TABLE seen AS SELECT * FROM station_version_by_shard; SELECT min(version) FROM seen';
my $refreshed = q{SELECT bool_and(EXISTS (SELECT FROM geonn_cache_log_by_shard l WHERE l.shard = s.shard
	AND l.name = 'ping_nearest_cache' AND l.status = 'succeeded' AND l.started > s.seen)) FROM seen s};
$session = $coordinator->background_psql('postgres');
is($session->query_safe($seen), coordinator('SELECT version FROM station_version'), 'all shards have the version');
is($session->query_safe($refreshed), 'f', 'none has refreshed since');
coordinator(q{SELECT dblink_exec('shard1', 'CALL geonn_refresh(''ping_nearest_cache'')')});
is($session->query_safe($refreshed), 'f', 'one has');
refresh();
is($session->query_safe($refreshed), 't', 'all have');
$session->quit;
is(differences('SELECT obs_id, ref_id, distance FROM ping_nearest_kept', q{SELECT obs_id, ref_id, distance FROM geonn_nearest('ping', 'station')}), 0, 'then their rows are those of the version');

# ---- shards in trouble ----

# a shard that does not answer: the statement ends in time, on the shard, too
my $holder = $shard{shard2}->background_psql('postgres');
$holder->query_safe('BEGIN; LOCK TABLE station');
my ($status, undef, $error) = $coordinator->psql('postgres', "SET statement_timeout = '1s'; SELECT count(*) FROM ping_nearest");
like($error, qr/canceling statement due to statement timeout/, 'a shard that does not answer: statement_timeout ends the question');
is(coordinator(q{SELECT count(*) > 0 FROM ping_nearest WHERE shard = 'shard1'}), 't', 'a question to the others is answered');
$holder->query_safe('COMMIT');
$holder->quit;
wait_until(sub { $shard{shard2}->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND backend_type = 'client backend'}) eq '0' }, 'nothing of it goes on there');

# a shard that lags: its rows say so
$shard{shard2}->safe_psql('postgres', 'ALTER SUBSCRIPTION station_shard2 DISABLE');
coordinator('CALL move_stations(5)');
wait_until(sub { coordinator(q{SELECT s.version = v.version FROM station_version_by_shard s, station_version v WHERE s.shard = 'shard1'}) eq 't' }, 'one shard goes on');
is(coordinator('SELECT count(DISTINCT ref_version) FROM ping_nearest'), 2, 'a shard that lags: rows of two versions');
is(shards_are_exact(), "0\n0", 'each exact for its own');
$shard{shard2}->safe_psql('postgres', 'ALTER SUBSCRIPTION station_shard2 ENABLE');
wait_for_version('it catches up');

# a shard that is killed: questions to it fail, others do not; it needs nothing but its start
if ($long)
{
	$shard{shard2}->stop('immediate');
	($status, undef, $error) = $coordinator->psql('postgres', 'SELECT count(*) FROM ping_nearest');
	like($error, qr/could not connect to server "shard2"/, 'a shard that is killed: a question to it fails');
	is(coordinator(q{SELECT count(*) > 0 FROM ping_nearest WHERE shard = 'shard1'}), 't', 'a question to the others is answered');
	coordinator('CALL move_stations(50)');
	$shard{shard2}->start;
	wait_for_version('it starts and catches up');
	refresh();
	is(questions_are_answered('after its start'), 0, 'no row differs');

	# in the middle of a question
	$holder = start_sql($shard{shard2}, 'BEGIN; LOCK TABLE station; SELECT pg_sleep(60);');
	wait_until(sub { $shard{shard2}->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE relation = 'station'::regclass AND mode = 'AccessExclusiveLock' AND granted}) > 0 }, 'a table of a shard is locked');
	$run = start_sql($coordinator, 'SELECT count(*) FROM ping_nearest');
	wait_until(sub { $shard{shard2}->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'postgres_fdw'}) > 0 }, 'a question is under way');
	$shard{shard2}->stop('immediate');
	isnt((finish_sql($run))[0], 0, 'a shard that is killed meanwhile: the question fails');
	finish_sql($holder);
	$shard{shard2}->start;

	# of another version: its files are replaced, and it is restarted, as in an upgrade
	my $library = $engine =~ s/-engine$/.so/r;
	my %file = ($library => 'geonn-older.so', $engine => 'geonn-engine-older');
	my %present = map { $_ => Geonn::slurp($_) } keys %file;
	$shard{shard2}->stop;
	replace_file("$ENV{GEONN_BUILD}/$file{$_}", $_) foreach keys %file;
	$shard{shard2}->start;
	like($shard{shard2}->safe_psql('postgres', 'SELECT geonn_engine_start() > 0; SELECT version FROM geonn_status()'), qr/older/, 'one shard is of an older version');
	is(questions_are_answered('with an older shard'), 0, 'no row differs');
	$shard{shard2}->stop;
	foreach my $name (keys %present)
	{
		unlink($name);
		open(my $out, '>', $name) or die "$name: $!";
		print $out $present{$name};
		close($out);
		chmod(0755, $name);
	}
	$shard{shard2}->start;
	unlike($shard{shard2}->safe_psql('postgres', 'SELECT geonn_engine_start() > 0; SELECT version FROM geonn_status()'), qr/older/, 'it is upgraded');
	is(questions_are_answered('after an upgrade'), 0, 'no row differs');
}
refresh();

# ---- a reader ----

coordinator('CREATE ROLE reader LOGIN');
$shard{$_}->safe_psql('postgres', 'CREATE ROLE reader LOGIN') foreach keys %shard;
coordinator("CREATE USER MAPPING FOR reader SERVER $_ OPTIONS (password_required 'false')") foreach sort keys %shard;
run_printed("$call, view => 'ping_read', readers => '{reader}')");
is(coordinator('SET ROLE reader; SELECT count(*) FROM ping_read'), $observations, 'a role that is named may read the views');
($status, undef, $error) = $coordinator->psql('postgres', 'SET ROLE reader; SELECT count(*) FROM ping_three');
like($error, qr/permission denied/, 'and no others');

# ---- another shard, and one less ----

# Rows of the views while partitions move: start_sql runs the moves.  Meanwhile a sub is called once.
sub moves_partitions
{
	my ($servers, $what, $meanwhile) = @_;
	my @printed = split /\n/, coordinator("SELECT CASE WHEN server IS NULL THEN command ELSE format('SELECT dblink_exec(%L, %L)', server, command) END FROM geonn_shard_move_ddl('$servers', 'ping')");
	my $moving = start_sql($coordinator, join('', map { "$_;\n" } @printed));
	my ($asked, $wrong) = (0, 0);

	while ($moving->{handle}->pumpable)
	{
		$wrong++ if coordinator('SELECT count(*), count(DISTINCT obs_id) FROM ping_nearest') ne "$observations|$observations";
		$wrong++ if coordinator('SELECT count(*) FROM ping_sharded') ne $observations;
		$asked++;
		$meanwhile->() if $meanwhile && $asked == 3;
		$moving->{handle}->pump_nb;
	}
	my ($ended, undef, $complaints) = finish_sql($moving);
	is($ended, 0, "$what: the printed commands run");
	unlike($complaints, qr/ERROR|WARNING/, "$what: without a complaint");
	is($wrong, 0, "$what: $asked questions meanwhile saw each observation once");
	is(coordinator("SELECT count(*) FROM geonn_shard_move_ddl('$servers', 'ping')"), 0, "$what: then nothing is left to do");
}

$shard{shard3} = cluster('shard3');
$shard{shard3}->safe_psql('postgres', 'CREATE ROLE reader LOGIN');
# it does not copy the references yet
$shard{shard3}->safe_psql('postgres', 'ALTER SYSTEM SET max_sync_workers_per_subscription = 0');
$shard{shard3}->safe_psql('postgres', 'SELECT pg_reload_conf()');
define_server('shard3');
my $three = "geonn_shard_ddl('{shard1, shard2, shard3}', " . join(', ', @tables);
run_printed("$three, cache => true)");
run_printed("$three, view => 'ping_three', k => 3)");
run_printed("$three, view => 'ping_within', radius => 300000)");
run_printed("$three, view => 'ping_read', readers => '{reader}')");
my $version_there = q{SELECT version FROM station_version_by_shard WHERE shard = 'shard3'};
is(coordinator($version_there), 0, 'a shard that has not copied the references has version 0');
moves_partitions('{shard1, shard2, shard3}', 'a shard is added', sub {
	is(coordinator(q{SELECT count(*) FROM ping_by_shard WHERE shard = 'shard3'}), 0, 'and gets no rows before it has');
	$shard{shard3}->safe_psql('postgres', 'ALTER SYSTEM RESET max_sync_workers_per_subscription');
	$shard{shard3}->safe_psql('postgres', 'SELECT pg_reload_conf()');
	wait_until(sub { coordinator($version_there) ne '0' }, 'which takes as long as it copies them');
});
is(coordinator('SELECT string_agg(n::text, $$ $$ ORDER BY n) FROM (SELECT count(*) AS n FROM pg_inherits JOIN pg_foreign_table ON ftrelid = inhrelid WHERE inhparent = $$ping_sharded$$::regclass GROUP BY ftserver) a'), '2 3 3', 'it has its share of the partitions');
wait_for_version('the new shard has the references');
my ($top) = grep { $_->[0] eq 'top n' } @questions;
$top->[1] = top_of(qw(shard1 shard2 shard3));
$_->[1] =~ s/\{shard1, shard2\}/{shard1, shard2, shard3}/ foreach @questions;
refresh();
questions_are_answered('with three shards');

moves_partitions('{shard1, shard3}', 'a shard is drained');
is($shard{shard2}->safe_psql('postgres', 'SELECT count(*) FROM ping; SELECT count(*) FROM pg_subscription'), "0\n0", 'it has no rows and no subscription');
is(coordinator(q{SELECT count(*) FROM pg_foreign_table t JOIN pg_foreign_server s ON s.oid = t.ftserver WHERE srvname = 'shard2'}), 0, 'and the coordinator has no table of it');
coordinator('DROP SERVER shard2 CASCADE');
$top->[1] = top_of(qw(shard1 shard3));
$_->[1] =~ s/\{shard1, shard2, shard3\}/{shard1, shard3}/ foreach @questions;
refresh();
questions_are_answered('with the others');

$_->stop foreach $coordinator, values %shard;
done_testing();
