
# Prometheus sees what geonn does, and its alerts fire when they should: with Debian's
# prometheus and prometheus-postgres-exporter, set up as doc/watching.md says, which read a
# real server.  Each expression of the dashboard has data; nothing of it starts the engine.
#
# Alerts wait for minutes before they fire; here they do not, so that each is seen within
# seconds.  promtool tests the waiting, and what cannot be made here, by alerts_test.yaml.
# A stand-in for the view of devices has GPUs; sql_exporter is not in Debian, so its
# file is compared with the exporter's, and its queries are run.
#
# needs: prometheus promtool prometheus-postgres-exporter
# rooms: watch monitoring doc
# check-all: starts Prometheus and its exporter

use strict;
use warnings;

use CPAN::Meta::YAML;
use Geonn;
use HTTP::Tiny;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

chomp(my $share = `pg_config --sharedir`);
my $files = "$share/contrib/geonn";
my $folder = PostgreSQL::Test::Utils::tempdir();
my $page = slurp_file("$ENV{GEONN_PAGES}/doc/watching.md");
my $queries = read_yaml("$files/prometheus/queries.yaml");
my $collector = read_yaml("$files/prometheus/sql_exporter.yaml");
my $alerts_text = slurp_file("$files/prometheus/alerts.yaml");
my @alerts = $alerts_text =~ /^ +- alert: (\w+)$/mg;
my $dashboard = decode_json(slurp_file("$files/grafana/geonn.json"));

sub read_yaml
{
	my ($name) = @_;

	return CPAN::Meta::YAML->read_string(slurp_file($name))->[0];
}

sub write_file
{
	my ($name, $text) = @_;

	open(my $file, '>', "$folder/$name") or die "$folder/$name: $!";
	print $file $text;
	close($file);
	return "$folder/$name";
}

# the blocks of the page that are in this language, and match
sub blocks
{
	my ($language, $pattern) = @_;

	return grep { $_ =~ $pattern } $page =~ /^```$language\n(.*?)^```$/msg;
}

# Run promtool with this input, and see that it has nothing against it.
sub promtool_agrees
{
	my ($name, $input, @arguments) = @_;
	local $ENV{TMPDIR} = $folder;
	my $said = '';

	ok(IPC::Run::run([ 'promtool', @arguments ], '<', \$input, '>&', \$said), $name) or diag($said);
	unlike($said, qr/error|should|warn/i, 'without a complaint');
}

# ---- the files ----

# metric => [ query, column, type, help, labels ]
my %metrics;
foreach my $space (keys %$queries)
{
	my %columns = map { %$_ } @{ $queries->{$space}{metrics} };
	my @labels = grep { $columns{$_}{usage} eq 'LABEL' } sort keys %columns;

	foreach my $column (keys %columns)
	{
		my $usage = lc($columns{$column}{usage});

		next if $usage eq 'label';
		$metrics{"${space}_$column"} = [ $space, $column, $usage, $columns{$column}{description}, "@labels" ];
		is($usage eq 'counter', $column =~ /_total$/, "${space}_$column is called as a $usage is");
	}
}
is_deeply(
	{ map { $_->{metric_name} => [ $_->{query_ref}, "@{$_->{values}}", $_->{type}, $_->{help}, join(' ', sort @{ $_->{key_labels} // [] }) ] } @{ $collector->{metrics} } },
	\%metrics, 'sql_exporter has the metrics of postgres_exporter');
# indented in other ways, which some releases of CPAN::Meta::YAML keep
is_deeply({ map { $_->{query_name} => $_->{query} =~ s/^ +//mgr } @{ $collector->{queries} } },
	{ map { $_ => $queries->{$_}{query} =~ s/^ +//mgr } keys %$queries }, 'by the same queries');

promtool_agrees('the alerts are sound', '', 'check', 'rules', "$files/prometheus/alerts.yaml");
write_file('alerts.yaml', $alerts_text);
promtool_agrees('they wait, and end, as they should', '', 'test', 'rules',
	write_file('alerts_test.yaml', slurp_file('tap/alerts_test.yaml')));

my @expressions = map { $_->{expr} } map { @{ $_->{targets} // [] } } @{ $dashboard->{panels} };
cmp_ok(scalar(@expressions), '>=', 30, 'the dashboard has expressions');
my %asked = map { $_ => 1 } map { /\b(geonn_\w+)/g } @expressions, $alerts_text =~ /^ +expr: (.*?)^ +(?:for|labels):/msg;
is(join(' ', grep { !$metrics{$_} } sort keys %asked), '', 'alerts and dashboard name metrics that exist');
is(join(' ', sort $page =~ /^\| `(Geonn\w+)` \|/mg), join(' ', sort @alerts), 'the page has each alert');
is(join(' ', sort map { /`(geonn_\w+)`/g } $page =~ /^\| (`geonn_[^|]*)\|/mg), join(' ', sort keys %metrics), 'and each metric');

# ---- set up as the page says ----

my $node = new_server('watched', conf => "geonn.transfer_memory_limit = '64MB'\ngeonn.kept_memory_limit = 0");

sub sql { return $node->safe_psql('postgres', $_[0]); }

# the extension as the README installs it
sql('DROP EXTENSION geonn');
sql($_) foreach grep { /CREATE EXTENSION/ } map { s/^\\c\n//mr } slurp_file("$ENV{GEONN_PAGES}/README.md") =~ /^```sql\n(.*?)^```$/msg;

my @processes;
END
{
	local $?;
	$_->kill_kill foreach @processes;
}

# Start a program of which this file has the output.
sub start_program
{
	my ($name, @command) = @_;
	my $log = "$PostgreSQL::Test::Utils::log_path/181_$name.log";

	push @processes, IPC::Run::start([@command], '<', '/dev/null', '>&', $log);
	return $processes[-1];
}

my $exporter_port = PostgreSQL::Test::Cluster::get_free_port();
my $http = HTTP::Tiny->new(timeout => 20);

sql($_) foreach blocks('sql', qr/CREATE ROLE prometheus/);
is(sql("SELECT rolsuper, rolcanlogin, pg_has_role('prometheus', 'pg_read_all_stats', 'USAGE') FROM pg_roles WHERE rolname = 'prometheus'"),
	'f|t|t', 'the page has a role for the exporter');

my ($environment) = blocks('conf', qr/^DATA_SOURCE_NAME/);
my ($source) = $environment =~ /^DATA_SOURCE_NAME='(.*)'$/m;
my ($arguments) = $environment =~ /^ARGS="(.*)"$/m;
my ($configuration) = blocks('yaml', qr/^scrape_configs/m);
s,/usr/share/postgresql/15/contrib/geonn,$files,g foreach $arguments, $configuration;
$source =~ s,host=/run/postgresql,"host=" . $node->host . " port=" . $node->port,e;

# Start a Prometheus with so many seconds between scrapes, and alerts that do not wait.
sub start_prometheus
{
	my ($seconds) = @_;
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my $rules = write_file('rules.yaml', $alerts_text =~ s/^ +for: .*\n//mgr);
	my $text = $configuration =~ s/- \S*alerts\.yaml/- $rules/r =~ s/localhost:9187/127.0.0.1:$exporter_port/r
	  =~ s/scrape_interval: 30s/scrape_interval: ${seconds}s\n    scrape_timeout: ${seconds}s/r;
	my $file = write_file("prometheus_$seconds.yml", "global:\n  evaluation_interval: 500ms\n$text");

	return {
		port => $port,
		program => start_program("prometheus_$seconds", 'prometheus', "--config.file=$file",
			"--storage.tsdb.path=$folder/data_$seconds", "--web.listen-address=127.0.0.1:$port")
	};
}

$ENV{DATA_SOURCE_NAME} = $source;
sub start_exporter
{
	return start_program('exporter', 'prometheus-postgres-exporter', split(/ /, $arguments),
		"--web.listen-address=127.0.0.1:$exporter_port");
}
my $exporter = start_exporter();

# one that sees things soon, and one that waits for a scrape as long as it takes
my $prometheus = start_prometheus(1);
my $patient = start_prometheus(5);

# ---- the queries, before Prometheus makes its first scrape ----

# The columns of each query, for a role that has this one, in a database where geonn is in this schema.
sub columns_are_those
{
	my ($database, $role, $schema) = @_;

	foreach my $space (sort keys %$queries)
	{
		my $query = $queries->{$space}{query} =~ s/\bgeonn\.(?=geonn_)/$schema./gr;
		my $names = $node->safe_psql($database,
			"SET ROLE $role; \\pset tuples_only off\n\\pset footer off\n$query LIMIT 0");
		is(join(' ', sort split /\|/, $names), join(' ', sort map { keys %$_ } @{ $queries->{$space}{metrics} }),
			"$role in $database: $space has the columns of its metrics");
	}
}
sql('CREATE ROLE watcher; GRANT pg_read_all_stats TO watcher; CREATE DATABASE elsewhere');
columns_are_those('postgres', 'watcher', 'geonn');
$node->safe_psql('elsewhere', 'CREATE EXTENSION geonn');
my ($other_schema) = blocks('sh machine', qr/^sed /);
my ($from, $to) = $other_schema =~ m,s/(\S+)/(\S+)/g,;
is("$from $to", 'geonn\.geonn_ public.geonn_', 'the page has how names are changed');
columns_are_those('elsewhere', 'watcher', 'public');
foreach my $statement ($page =~ /`(SELECT [^`]+)`/g)
{
	is($node->psql('postgres', $statement), 0, "the page's $statement");
}
is(status($node, 'state'), 'stopped', 'none of these starts anything');

# Ask Prometheus: the series that an expression has now, each as [ labels, value ].
sub ask
{
	my ($expression) = @_;
	my $answer = $http->get("http://127.0.0.1:$prometheus->{port}/api/v1/query?" . $http->www_form_urlencode({ query => $expression }));
	my $said = eval { decode_json($answer->{content}) } // {};

	return if $answer->{status} == 599 || $answer->{status} == 503;    # it starts
	die "$expression: $answer->{content}" if ($said->{status} // '') ne 'success';
	return map { [ $_->{metric}, $_->{value}[1] ] } @{ $said->{data}{result} };
}

# the value of the only series
sub value
{
	my @series = ask(@_);

	return @series == 1 ? $series[0][1] : @series . ' series';
}

# the alerts that fire
sub firing
{
	my %names = map { $_->[0]{alertname} => 1 } ask('ALERTS{alertstate="firing"}');

	return join(' ', sort keys %names);
}

sub fires
{
	my ($alert, $why) = @_;

	wait_until(sub { firing() =~ /\b$alert\b/ }, "$alert fires: $why") or diag('firing: ' . firing());
}

sub state_is
{
	my ($state) = @_;

	wait_until(sub { value("geonn_engine_$state") eq '1' }, "Prometheus sees that the engine is $state");
}

# ---- no engine ----

state_is('stopped');
wait_until(sub { value('count_over_time(geonn_engine_stopped[1m])') >= 3 }, 'it goes on scraping');
is(value('sum({__name__=~"geonn_engine_(stopped|starting|running|not_answering|failed)"})'), 1, 'of the states one is true');
is(join(' ', grep { !/^geonn_engine_/ } map { $_->[0]{__name__} } ask('{__name__=~"geonn_.+"}')), '', 'and nothing else is to be seen');
is(firing(), '', 'which is no reason for an alert');
is(status($node, 'state'), 'stopped', 'scraping starts no engine');
is(scalar(engines_of($node->{_pid})), 0, 'none runs');

# ---- at work ----

sql(q{
	CREATE TABLE obs AS SELECT i AS id, i * 7.3 % 180 - 90 AS lat, i * 11.7 % 360 - 180 AS lon FROM generate_series(1, 200000) i;
	CREATE TABLE ref AS SELECT i AS id, i * 13.1 % 180 - 90 AS lat, i * 17.9 % 360 - 180 AS lon FROM generate_series(1, 300) i;
	SELECT geonn_cache_create('near', 'obs', 'ref');
	SELECT count(*) FROM geonn_nearest('obs', 'ref');
});
state_is('running');
wait_until(sub { value('geonn_joins_observations_total{function="geonn_nearest"}') eq '200000' }, 'the figures of a join are seen');
is(join(' ', map { value("geonn_joins_${_}_total{datname=\"postgres\", function=\"geonn_nearest\"}") } qw(calls failed rows)), '1 0 200000', 'its calls and rows');
is(value('geonn_cache_rows{datname="postgres", cache="near"}'), 200000, 'and those of a cache');
is(value('geonn_device_ready{device="0", kind="cpu"}'), 1, 'and the CPU');
is(firing(), '', 'which is no reason for an alert');

# refreshes after which none comes, and one that fails
sql("CALL geonn_refresh('near'); SELECT pg_sleep(0.2);" x 4);
fires('GeonnCacheLate', 'no refresh has come when it should');
wait_until(sub { value('geonn_cache_interval_seconds') < 2 }, 'the usual time between refreshes is seen');
unlike(firing(), qr/Failing/, 'a late one is no failing one');
sql('ALTER TABLE ref RENAME COLUMN lat TO height');
isnt($node->psql('postgres', "CALL geonn_refresh('near')"), 0, 'a refresh fails');
fires('GeonnCacheFailing', 'a refresh has failed');
sql('ALTER TABLE ref RENAME COLUMN height TO lat');
sql("CALL geonn_refresh('near')");
wait_until(sub { firing() !~ /Failing/ }, 'the next one ends that');

# limits that are less than what a session with open cursors has
my $cursors = join('', map { "DECLARE c$_ CURSOR FOR SELECT obs_id FROM geonn_nearest('obs', 'ref', k => 100, options => '{\"batch_rows\": 4194304}'); FETCH 1 FROM c$_; " } 1 .. 5);
my $holder = start_sql($node, "BEGIN; $cursors SELECT pg_sleep(600);");
wait_until(sub { status($node, 'sessions') == 5 }, 'a session has cursors open') or diag($holder->{err});
cmp_ok(status($node, 'transfer_memory'), '>', 16 * 1024 * 1024, 'and memory');
$node->append_conf('postgresql.conf', "geonn.max_sessions = 1\ngeonn.transfer_memory_limit = '16MB'");
$node->reload;
wait_until(sub { status($node, 'transfer_memory_limit') == 16 * 1024 * 1024 }, 'the limits are lower now');
my $waiter = start_sql($node, $small_search);
fires('GeonnSessionsWaiting', 'another one waits');
fires('GeonnTransferMemoryNearlyUsed', 'no memory is left');

# ---- GPUs, as a stand-in for the view has them ----

my ($devices) = sql("SELECT pg_get_viewdef('geonn.geonn_devices')") =~ /(.*);/s;
sub stand_in
{
	my ($state) = @_;

	sql("CREATE OR REPLACE VIEW geonn.geonn_devices AS $devices"
		  . ($state && " UNION ALL SELECT 1, 'cuda', 'GPU', 'GPU-1', '$state', '$state' = 'ready', NULL, '9.0', 8e10::bigint, 7e10::bigint, 42, 55, 300, 12, NULL"));
}
unlike(firing(), qr/Gpu/, 'without a GPU none is missed');
stand_in('ready');
wait_until(sub { value('geonn_device_ready{kind="cuda"}') eq '1' }, 'a GPU is seen');
is(value('geonn_device_utilization_ratio{kind="cuda"}'), 0.42, 'and its use');
unlike(firing(), qr/Gpu/, 'and is no reason for an alert');

# ---- the dashboard, while there is something of everything ----

wait_until(sub { value('count_over_time(geonn_device_ready{kind="cuda"}[10s])') >= 2 }, 'there are rates');
foreach my $expression (@expressions)
{
	my $asked = $expression =~ s/\$__rate_interval/10s/gr =~ s/\$instance/127.0.0.1:$exporter_port/gr;
	my @series = ask($asked);

	ok(scalar(@series), "the dashboard's $expression");
	is(join(' ', grep { $_ !~ /^-?[0-9.e+-]+$/ } map { $_->[1] } @series), '', 'has numbers');
}

stand_in('failed');
fires('GeonnGpuFallback', 'a GPU has failed');
stand_in('ready');
wait_until(sub { firing() !~ /Gpu/ }, 'it is ready again');
stand_in('');
fires('GeonnGpuFallback', 'a GPU is not found any more');

# ---- engines that end ----

sql("SELECT pg_terminate_backend(pid) FROM geonn_stat_progress");
finish_sql($_) foreach $holder, $waiter;
kill('KILL', status($node, 'engine_pid'));
foreach my $number (1 .. 3)
{
	my $engine = sql('SELECT geonn_engine_start()');
	my $started = sql("SELECT extract(epoch FROM started_at) FROM geonn_status()");
	wait_until(sub { abs(value('geonn_engine_start_time_seconds') - $started) < 0.01 }, "engine $number is seen");
	kill('KILL', $engine);
}
fires('GeonnEngineRestarts', 'engines have ended');

# ---- the exporter's output, and its end ----

my $answer = $http->get("http://127.0.0.1:$exporter_port/metrics");
promtool_agrees('its metrics are sound', join('', $answer->{content} =~ /^((?:# \w+ )?geonn_.*\n)/mg), 'check', 'metrics');
like($answer->{content}, qr/^pg_exporter_last_scrape_error 0$/m, 'no query failed');
$exporter->kill_kill;
fires('GeonnUnwatched', 'the exporter has ended');
start_exporter();

# ---- an engine that does not answer: a scrape takes longer then ----

$prometheus->{program}->kill_kill;
$prometheus = $patient;
my $engine = sql('SELECT geonn_engine_start()');
state_is('running');
kill('STOP', $engine);
fires('GeonnEngineNotAnswering', 'the engine is silent');
my $seconds = value('scrape_duration_seconds');
cmp_ok($seconds, '>', 2, 'a scrape takes seconds then');
kill('CONT', $engine);

done_testing();
