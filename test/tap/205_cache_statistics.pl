
# What the planner's statistics say changes neither the plans of a refresh nor its time: in
# three databases, where no table was ever analyzed, all were analyzed before the points came, and
# all were analyzed afterwards, each kind of refresh has statements of the same plans, also
# where the session has other settings of the planner, and takes as much CPU time.
# rooms: cache
# check-all: compares plans and times of three databases

use strict;
use warnings;

use Geonn;
use POSIX ();
use Test::More;

my $observations = 50_000;
my $references = 2000;
my $rounds = 5;

# how much longer one database may take than another, and what does not count
my $most = 1.5;
my $noise = 0.02;

my @databases = qw(never before after);

# what happens before each kind of refresh; %d is a number of its own each time
my @kinds = (
	[ '1 % of the references moved', 'UPDATE ref SET lat = lat * 0.999 WHERE id % 100 = %d % 100' ],
	[ '10 references moved', 'UPDATE ref SET lat = lat * 0.999 WHERE id / 10 = %d' ],
	[ 'one observation moved', 'UPDATE obs SET lat = lat * 0.999 WHERE id = %d' ],
	[ 'nothing changed', 'VACUUM obs; VACUUM ref' ],
	[ 'full, and nothing changed', 'VACUUM obs; VACUUM ref', 'full' ],
	[ 'all references moved', 'UPDATE ref SET lat = lat * 0.999, lon = lon * 0.999 + %d * 1e-9' ]);

my $node = new_server('statistics', preload => 1, conf => "autovacuum = off");

my $point = 'degrees(asin(2 * random() - 1)), 360 * random() - 180';
my $create = 'CREATE TABLE obs (id bigint PRIMARY KEY, lat float8, lon float8);
	CREATE TABLE ref (id bigint PRIMARY KEY, lat float8, lon float8);
	' . "SELECT geonn_cache_create('near', 'obs', 'ref');";
my $fill = "SELECT setseed(0.5);
	INSERT INTO obs SELECT i, $point FROM generate_series(1, $observations) i;
	INSERT INTO ref SELECT i, $point FROM generate_series(1, $references) i;
	VACUUM obs;
	VACUUM ref;
	CALL geonn_refresh('near');
	-- it makes baselines
	CALL geonn_refresh('near', 'full');";

foreach my $database (@databases)
{
	$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE postgres");
	$node->safe_psql($database, $create);
	$node->safe_psql($database, 'ANALYZE') if $database eq 'before';
	$node->safe_psql($database, $fill);
	$node->safe_psql($database, 'ANALYZE') if $database eq 'after';
}

my $number = 0;

sub change_of { return $_[0][1] =~ s/%d/$number/gr; }
sub call_of { return "CALL geonn_refresh('near', '" . ($_[0][2] // 'auto') . "')"; }

# Change points in a database, and refresh its cache.  Returns what psql was told meanwhile.
sub refresh
{
	my ($database, $kind, $settings) = @_;
	my $messages;

	$node->safe_psql($database, change_of($kind));
	$node->psql($database, ($settings // '') . call_of($kind), stderr => \$messages, on_error_die => 1);
	return $messages;
}

# ---- plans ----

my $show_plans = "LOAD 'auto_explain';
	SET auto_explain.log_min_duration = 0;
	SET auto_explain.log_nested_statements = on;
	SET auto_explain.log_level = notice;\n";
my $other_planner = "SET enable_nestloop = off; SET enable_tidscan = off; SET enable_indexscan = off;
	SET jit = on; SET jit_above_cost = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
	SET min_parallel_table_scan_size = 0; SET random_page_cost = 1000; SET enable_sort = off;\n";

# the nodes of the plans of a refresh's statements, without those that read obs and ref; PostgreSQL
# 16 and later also show parameters
sub plans_of
{
	my ($messages) = @_;
	my @plans = grep { /Query Text: .*(geonn_cache_| difference )/ } split(/^.*NOTICE: .*\n/m, $messages);

	s/Query Text: (\w+).*/$1:/, s/ \(cost=[^)]*\)//g, s/^ *((\w+ )*(Cond|Filter)|Query Parameters): .*\n//mg
	  foreach @plans;
	return join('', @plans);
}

foreach my $kind (@kinds)
{
	$number++;
	my %plans = map { $_ => plans_of(refresh($_, $kind, $show_plans)) } @databases;
	like($plans{after}, qr/Index Scan/, "$kind->[0]: its statements have plans");
	is($plans{$_}, $plans{after}, "$kind->[0], analyzed: $_: the same plans") foreach qw(never before);
	$number++;
	is(plans_of(refresh('never', $kind, $other_planner . $show_plans)),
		$plans{after}, "$kind->[0]: the same plans, whatever the session's settings");
	refresh($_, $kind) foreach qw(before after);
}

# ---- times ----

# the CPU time that a backend has for a refresh, in seconds
sub time_of
{
	my ($database, $kind) = @_;
	my $stat = "SELECT pg_read_file('/proc/self/stat', 0, 1000)";
	my ($before, $after) = map { [ split(' ', s/^.*\)//r) ] }
	  split(/\n+/, $node->safe_psql($database, change_of($kind) . ";\n$stat;\n" . call_of($kind) . ";\n$stat") =~ s/^\s+//r);

	return ($after->[11] + $after->[12] - $before->[11] - $before->[12]) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# Refresh the databases in turn, and return how much longer each takes than the one that was
# analyzed afterwards: medians of the rounds.
sub ratios_of
{
	my ($kind) = @_;
	my %ratios;

	foreach my $round (1 .. $rounds)
	{
		my %time;
		my @order = $round % 2 ? @databases : reverse @databases;

		$number++;
		$time{$_} = time_of($_, $kind) foreach @order;
		push @{ $ratios{$_} }, ($time{$_} + $noise) / ($time{after} + $noise) foreach qw(never before);
		note(join(', ', $kind->[0], map { sprintf('%s %.0f ms', $_, $time{$_} * 1000) } @databases));
	}
	return map { $_ => median(@{ $ratios{$_} }) } keys %ratios;
}

# Rounds in which other work of the host made caches cold are repeated.
foreach my $kind (@kinds)
{
	my %ratio;

	foreach my $attempt (1 .. 3)
	{
		%ratio = ratios_of($kind);
		last unless grep { $_ > $most || $_ < 1 / $most } values %ratio;
	}
	ok($ratio{$_} <= $most && $ratio{$_} >= 1 / $most,
		sprintf('%s, analyzed: %s: takes %.2f times as long', $kind->[0], $_, $ratio{$_}))
	  foreach qw(never before);
}

$node->stop;
done_testing();
