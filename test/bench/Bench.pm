
# Bench: what test/bench/sql, caches, live and postgis share: options, tables of random
# points, measuring, and the table of figures.
#
#   --results FILE    append each figure to this file (Results.pm), too
#   --section NAME    as one of that section, instead of one with the program's name
#   --limit SECONDS   all measurements end by then, and each takes two thirds of that at most

package Bench;

use strict;
use warnings;

use Exporter 'import';
use File::Basename qw(basename);
use Getopt::Long;
use List::Util qw(any min);
use POSIX qw(ceil floor strftime);

use Results;
use Server;

our @EXPORT = qw(
  read_options %option $cores
  load_points $reference_rows $random_point seed_sql settle
  measure median scan_of settings_for devices workers_of
  line no_line duration grouped size_of_join
  run_measurements);

our $reference_rows = 65_536;
our $cores = cores();
our %option = (rows => 4_000_000, repetitions => 5, seed => 1, section => basename($0));

# rows that one seed makes, so that the points do not depend on the sessions
my $chunk_rows = 1 << 20;

# a line before all that a step says
my $step_begins = '==== step';

my %loaded;

$| = 1;
$ENV{LC_ALL} = 'C';

# ---- options ----

# Read the options that all benchmarks have and those of this one: names of flags, and
# of numbers, each with its default.  Numbers are whole and at least 1, but for those
# whose names are among the fractions, which are more than 0.
sub read_options
{
	my ($flags, $fractions, %numbers) = @_;
	my @flags = ('server', @$flags);
	my @numbers = (qw(rows repetitions seed limit), sort keys %numbers);
	my %is_fraction = map { $_ => 1 } @$fractions;
	my $usage = join(' ', (map { "[--$_]" } @flags), (map { "[--$_ NUMBER]" } @numbers), '[--results FILE] [--section NAME]');

	@option{ keys %numbers } = values %numbers;
	GetOptions(\%option, @flags, 'results=s', 'section=s', map { $_ . ($is_fraction{$_} ? '=f' : '=i') } @numbers)
	  or die "usage: $0 $usage [NAME]...\n";
	foreach my $name (grep { $_ ne 'seed' && defined $option{$_} } @numbers)
	{
		die "--$name is more than 0\n" if $is_fraction{$name} && $option{$name} <= 0;
		die "--$name is at least 1\n" if !$is_fraction{$name} && $option{$name} < 1;
	}
	return;
}

# ---- tables ----

# SELECT's list of a random point
our $random_point = 'degrees(asin(2 * random() - 1)) AS lat, 360 * random() - 180 AS lon';

# SQL after which random() gives the numbers that belong to the seed and a text
sub seed_sql
{
	my ($text) = @_;
	return "SELECT WHERE setseed(hashtextextended('$text', $option{seed}) / 2.0 ^ 63) IS NULL;";
}

# Make a table of random points where there is none yet; its name.
sub load_points
{
	my ($table, $rows) = @_;
	my $chunks = floor(($rows - 1) / $chunk_rows);
	my $sessions = min($cores, $chunks + 1);
	my @runs;

	return $table if $loaded{$table};
	print STDERR "loading $table\n" if $rows > 1 << 24;
	sql("DROP TABLE IF EXISTS $table; CREATE TABLE $table (id bigint NOT NULL, lat float8, lon float8)
		WITH (autovacuum_enabled = off, parallel_workers = $cores)");
	foreach my $first (0 .. $sessions - 1)
	{
		my $sql = '';

		for (my $chunk = $first; $chunk <= $chunks; $chunk += $sessions)
		{
			my ($begin, $end) = ($chunk * $chunk_rows + 1, min($rows, ($chunk + 1) * $chunk_rows));
			$sql .= seed_sql("$table $chunk") . "
				INSERT INTO $table SELECT id, $random_point FROM generate_series($begin, $end) id;\n";
		}
		push @runs, start_sql($sql);
	}
	finish_client($_) foreach @runs;
	settle($table);
	$loaded{$table} = 1;
	return $table;
}

# Make a table what it is when nobody has changed it lately: all-visible, on
# disk, and in the cache.  What sessions that load it together have added and
# not used, a few pages at its end, is not all-visible ever.
sub settle
{
	my ($table) = @_;

	# autovacuum may be analyzing another table for some time
	foreach my $attempt (1 .. 60)
	{
		my $all_visible = sql(
			"VACUUM ANALYZE $table;
			SELECT relallvisible >= 0.99 * relpages FROM pg_class WHERE oid = '$table'::regclass");
		if ($all_visible eq 't')
		{
			sql('CHECKPOINT');
			sql("SELECT WHERE pg_prewarm('$table') IS NULL") if extension_can_be_had('pg_prewarm');
			return;
		}
		sleep(1);
	}
	die "VACUUM finds rows in $table that some snapshot does not see yet: end the oldest transactions\n";
}

# ---- measuring ----

# Run steps in turn in one session, and all again for each repetition after a
# first time that does not count.  A step is SQL that is timed, what comes before
# it, SQL or a sub that returns it, and after it, both untimed, and a check, which is
# called with all that these three answered, and dies where it is wrong.  Returns
# the milliseconds of each, as samples.
sub measure
{
	my ($settings, @steps) = @_;
	my $sql = $settings;
	my @times = map { [] } @steps;

	foreach my $repetition (0 .. $option{repetitions})
	{
		foreach my $step (@steps)
		{
			my $before = $step->{before} // '';

			$sql .= join("\n", "\\echo $step_begins", ref($before) ? $before->() : $before,
				'\timing on', "$step->{sql};", '\timing off', $step->{after} // '', '');
		}
	}
	my $said = sql($sql);
	my (undef, @answers) = split(/^$step_begins\n/m, "$said\n", -1);
	foreach my $number (0 .. $#answers)
	{
		my $step = $steps[ $number % @steps ];
		my $answer = $answers[$number];

		$answer =~ s/^Time: ([\d.]+) ms.*\n//m or die "psql told no time:\n$said\n";
		push @{ $times[ $number % @steps ] }, $1 if $number >= @steps;
		$answer =~ s/^\s+|\s+$//g;
		$step->{check}->($answer) if $step->{check};
	}
	return map { sample(@$_) } @times;
}

sub median
{
	return 0 + sample(@_);
}

sub scan_of
{
	my ($observations) = @_;
	return { sql => "SELECT count(*), sum(lat), sum(lon) FROM $observations" };
}

# settings for statements with up to that many workers on some device
sub settings_for
{
	my ($workers, $device) = @_;

	return "SET max_parallel_workers_per_gather = $workers;\nSET geonn.device = '" . ($device // 'auto') . "';\n";
}

# cpu, and cuda where there is a GPU that works
sub devices
{
	return sort(split(/\n/, sql(q{SELECT DISTINCT kind FROM geonn_devices WHERE state = 'ready'})));
}

# ", N workers" that the plan of a step has
sub workers_of
{
	my ($settings, $step) = @_;
	my ($workers) = sql("${settings}EXPLAIN (COSTS OFF) $step->{sql}") =~ /Workers Planned: (\d+)/;

	return !$workers ? '' : $workers == 1 ? ', 1 worker' : ", $workers workers";
}

# ---- the table ----

# One line.  The figure, in its unit, is compared with what it is to reach: at
# most, or at least where the goal is the larger of both bounds.
sub line
{
	my ($work, $geonn, $other, $figure, $unit, $goal, $least) = @_;
	my @bounds = map { defined $_ ? digits($_) . $unit : '' } ($goal, $least);

	print '| ' . join(' | ', $work, $geonn, $other, digits($figure) . $unit, @bounds, is_reached($figure, $goal, $least)) . " |\n";
	append_row($option{results},
		section => $option{section}, work => $work, geonn => $geonn, compared => $other, unit => $unit =~ s/^ //r,
		figure => digits($figure), least => digits(least_of($figure)), greatest => digits(greatest_of($figure)),
		goal => $goal, 'at least' => $least) if defined $option{results};
	return;
}

# A line of what cannot be measured here, and why.
sub no_line
{
	my ($work, $why) = @_;

	print "| $work | $why | | | | | |\n";
	append_row($option{results}, section => $option{section}, work => $work, note => $why) if defined $option{results};
	return;
}

sub duration
{
	my ($milliseconds) = @_;
	return $milliseconds < 1000 ? digits($milliseconds) . ' ms' : digits($milliseconds / 1000) . ' s';
}

sub grouped
{
	my ($number) = @_;
	1 while $number =~ s/^(\d+)(\d{3})/$1,$2/;
	return $number;
}

sub size_of_join
{
	my ($rows) = @_;
	return grouped($rows) . ' × ' . grouped($reference_rows);
}

# ---- the run ----

sub print_machine
{
	my ($processor) = slurp('/proc/cpuinfo') =~ /^model name\s*:\s*(.*)$/m;
	sql('SELECT geonn_engine_start()');
	my $gpus = sql(q{
		SELECT coalesce(string_agg(gpus || ' × ' || name, ', '), 'no GPU')
		FROM (SELECT count(*) AS gpus, name FROM geonn_devices WHERE kind = 'cuda' AND state = 'ready' GROUP BY name) _});

	$processor //= (POSIX::uname())[4];
	printf("%s, %d %s, %.0f GiB of memory, %s\n",
		$processor, $cores, $cores == 1 ? 'core' : 'cores', memory_bytes() / (1 << 30), $gpus);
	printf("PostgreSQL %s, geonn %s, shared_buffers %s, max_parallel_workers %s, jit off, %s\n",
		sql('SHOW server_version'), sql(q{SELECT extversion FROM pg_extension WHERE extname = 'geonn'}),
		sql('SHOW shared_buffers'), sql('SHOW max_parallel_workers'),
		strftime('%e %B %Y', localtime) =~ s/^ //r);
	printf("uniform points of seed %d, medians of %d\n\n", $option{seed}, $option{repetitions});
	print "| work | geonn | compared with | figure | goal | at least | reached |\n|---|---|---|---|---|---|---|\n";
	return;
}

# Run a measurement, for so many seconds at most; it dies of what it can't do.
sub run_limited
{
	my ($run, $seconds) = @_;
	local $SIG{ALRM} = sub { end_clients(); die "it took more than $seconds s\n" };

	alarm($seconds);
	my $ran = eval { $run->(); 1 };
	alarm(0);
	die $@ if !$ran;
	return;
}

# Run those of the measurements, pairs of a name and a sub, that the words left
# among the arguments choose.  A server of its own has so many bytes of shared
# buffers, or half of the memory.  Returns the exit status.
sub run_measurements
{
	my ($shared_buffers, @measurements) = @_;
	my $failures = 0;
	my $end = time + ($option{limit} // 0);
	my @wanted = grep {
		my $name = $_->[0];
		!@ARGV || any { index($name, $_) >= 0 } @ARGV
	} @measurements;
	die "no measurement has a name with one of: @ARGV\n" if !@wanted;

	$SIG{INT} = $SIG{TERM} = sub { print STDERR "interrupted\n"; exit(130) };
	start_server(min(memory_bytes() / 2, $shared_buffers)) if !$option{server};
	create_schema();
	print_machine();
	foreach my $measurement (@wanted)
	{
		my ($name, $run) = @$measurement;

		next if eval {
			my $seconds = defined $option{limit} ? min($end - time, ceil($option{limit} * 2 / 3)) : 0;

			die "the $option{limit} s of all measurements were over\n" if defined $option{limit} && $seconds <= 0;
			run_limited($run, $seconds);
			1;
		};
		no_line($name, 'failed: ' . $@ =~ s/\s+\z//r =~ s/\s+/ /gr);
		$failures++;
	}
	return $failures == 0 ? 0 : 1;
}

1;
