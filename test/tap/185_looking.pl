
# Looking starts nothing: no view, no status function and no plan starts the engine, which
# takes the GPUs.  All that the extension has is looked at, as the catalogue lists it.
# rooms: watch base

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('looking');

sub sql { return $node->safe_psql('postgres', $_[0]); }

# ---- no engine has run ----

is(status($node, 'state'), 'stopped', 'CREATE EXTENSION starts no engine');
is(sql('SELECT count(*) FROM geonn_devices'), 0, 'and no device is known');

# ---- geonn_engine_start() ----

my $engine = sql('SELECT geonn_engine_start()');
is(status($node, 'state, engine_pid'), "running|$engine", 'geonn_engine_start() returns when the engine runs');
is(sql('SELECT geonn_engine_start()'), $engine, 'which it does not start twice');
my $devices = 'SELECT device, kind, name, uuid, threads, compute_capability, memory_total FROM geonn_devices';
my $running = sql($devices);
like($running, qr/^0\|cpu\|/, 'its devices are seen');

# a cache to look at
sql(q{SELECT geonn_cache_create('near', 'few_obs', 'few_ref')});

sub stop_engine
{
	kill('TERM', status($node, 'supervisor_pid'));
	wait_until(sub { status($node, 'state') eq 'stopped' }, 'the engine is stopped');
}
stop_engine();

# ---- looking at all that there is ----

# what searches, and so starts the engine
my %starts = map { $_ => 1 } qw(geonn_nearest geonn_nearest_sql geonn_within geonn_within_sql geonn_nearest_points
  geonn_within_count geonn_within_count_sql geonn_within_count_points geonn_cluster geonn_cluster_sql geonn_thin geonn_thin_sql
  geonn_assign geonn_assign_sql
  geonn_engine_start geonn_cache_create geonn_refresh geonn_refresh_all);

# how the functions with arguments are called; a NULL call is what only PostgreSQL calls
my %calls = (
	geonn_distance => "SELECT geonn_distance(1, 2, 3, 4, 'spheroid'), geonn_distance(1, 2, NULL::text)",
	geonn_describe => "SELECT * FROM geonn_describe('few_obs')",
	geonn_check => "SELECT * FROM geonn_check('few_obs')",
	geonn_schedule => "SELECT geonn_schedule('near', '\@daily')",
	geonn_unschedule => "SELECT geonn_unschedule('near')",
	geonn_cache_alter => q{SELECT geonn_cache_alter('near', '{"k": 2}')},
	geonn_cache_drop => "SELECT geonn_cache_drop('near')",
	geonn_shard_ddl => "SELECT * FROM geonn_shard_ddl('{shard}', 'few_obs', 'few_ref', 'dbname=postgres')",
	geonn_shard_move_ddl => "SELECT * FROM geonn_shard_move_ddl('{shard}', 'few_obs')");
# without pg_cron, foreign servers and tables that are divided among them
my %refused = map { $_ => 1 } qw(geonn_schedule geonn_shard_ddl geonn_shard_move_ddl);

my $members = q{
	FROM pg_depend WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
	AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'geonn')};
my @relations = split /\n/, sql(qq{
	SELECT oid::regclass FROM pg_class WHERE relkind IN ('r', 'v', 'm', 'S')
	AND oid IN (SELECT objid $members AND classid = 'pg_class'::regclass) ORDER BY 1});
my @functions = map { [ split /\|/ ] } split /\n/, sql(qq{
	SELECT proname, pronargs FROM pg_proc
	WHERE prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype, 'internal'::regtype)
	AND oid IN (SELECT objid $members AND classid = 'pg_proc'::regclass)
	ORDER BY proname = 'geonn_cache_drop', proname});

# Run a statement, whether or not it fails, and see that no supervisor runs after it.
sub starts_nothing
{
	my ($sql, $name) = @_;
	my ($status, undef, $error) = $node->psql('postgres', $sql);

	note($error) if $status != 0;
	is(status($node, 'state'), 'stopped', "$name starts nothing") or stop_engine();
	return $status;
}

cmp_ok(scalar(@relations), '>=', 8, 'the catalogue lists relations');
is(starts_nothing("TABLE $_", $_), 0, "$_ can be looked at") foreach @relations;

cmp_ok(scalar(@functions), '>=', 15, 'and functions');
foreach my $function (@functions)
{
	my ($name, $arguments) = @$function;

	next if $starts{$name};
	my $call = $calls{$name} // ($arguments == 0 ? "SELECT * FROM $name()" : undef);
	if (ok(defined($call), "this test knows how $name is called"))
	{
		my $status = starts_nothing($call, $name);
		is($status, 0, "$name can be called") unless $refused{$name};
	}
}

starts_nothing("EXPLAIN $small_search", 'EXPLAIN of a join');
starts_nothing("EXPLAIN SELECT * FROM few_obs, geonn_nearest('few_obs', 'few_ref') n WHERE n.obs_id = few_obs.id",
	'EXPLAIN of a join with tables');
starts_nothing("SELECT name, setting FROM pg_settings WHERE name LIKE 'geonn.%'", 'a look at the settings');
starts_nothing('SELECT * FROM pg_stat_activity, pg_available_extensions', 'a look at PostgreSQL');
is(scalar(Geonn::engines_of($node->{_pid})), 0, 'no engine runs');

# ---- what is known ----

is(sql($devices), $running, 'the devices of the last engine are known');
is(sql("SELECT DISTINCT state, used, memory_free, batches, reason FROM geonn_devices"), 'stopped|f|||', 'as stopped');
$node->restart;
is(sql("SELECT DISTINCT state FROM geonn_devices"), 'stopped', 'also when the server has been started again');
foreach my $text ('', 'noise', 'n' x 4096)
{
	open(my $file, '>', $node->data_dir . '/pg_stat_tmp/geonn.devices') or die $!;
	print $file $text;
	close($file);
	is(sql('SELECT count(*) FROM geonn_devices'), 0, 'a file of ' . length($text) . ' other bytes is passed over');
}

is(sql($small_search), '1:7 2:8 3:9', 'a join starts the engine');
is(sql('SELECT DISTINCT state FROM geonn_devices WHERE used'), 'ready', 'and then they are ready');

# ---- geonn_engine_start() where nothing can be started ----

stop_engine();
$node->append_conf('postgresql.conf', 'max_worker_processes = 1');
$node->restart;
my ($status, undef, $error) = $node->psql('postgres', 'SELECT geonn_engine_start()');
isnt($status, 0, 'without a background worker geonn_engine_start() fails');
like($error, qr/could not register the geonn supervisor.*HINT:/s, 'with the error of a join');
is(sql('SELECT DISTINCT state FROM geonn_devices'), 'stopped', 'and the devices are still known');

done_testing();
