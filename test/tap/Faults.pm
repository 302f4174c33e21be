
# Faults: a server whose engine fails where a test wants it, and what must be so
# after whatever happened.
#
# The engine is build/test/geonn-engine-faults: test/engine/faults/plan.h says what can be
# ordered.  A fault strikes while a statement is at one of these places:
#
#	start		the engine starts
#	references	it receives references
#	sort		it sorts them
#	build		the device builds its index
#	search		it is about to search
#	drain		it is about to send pairs
#
# Each fault is a row of the table in the documentation, each place a column, and what became
# of the statement the cell:
#
#	right		it had the right rows all the same
#	error		it had an error with an SQLSTATE and a hint
#	ends		its session ended, as asked for
#
# Where the environment variable GEONN_OUTCOMES names a file, the cells are written
# to it, for test/tools/fault-table to make the table of; otherwise they must be as the
# table has them.  FAULT in the environment is the one row to run, at all places.

package Faults;

use strict;
use warnings;

use Exporter 'import';
use File::Copy;
use Geonn;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(@places $search backends_at_work is_wanted places_wanted record);

our @places = qw(start references sort build search drain);

# references that come unsorted, and are enough for an index
our $search = "SELECT md5(string_agg(obs_id || ':' || ref_id || ':' || distance, ' ' ORDER BY obs_id)) FROM geonn_nearest('obs', 'ref')";

sub is_wanted
{
	my ($fault) = @_;

	return !defined($ENV{FAULT}) || $ENV{FAULT} eq $fault;
}

# the backends whose search is under way
sub backends_at_work
{
	my ($node) = @_;

	return split /\n/, $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE query LIKE '%geonn_nearest%' AND pid <> pg_backend_pid() AND state = 'active'");
}

# all of them, or of a short form the one that matters most
sub places_wanted
{
	my ($long) = @_;

	return $long || defined($ENV{FAULT}) ? @places : ('search');
}

# The cells of a row: a place and what happened there, each.
sub record
{
	my ($test, $fault, %cells) = @_;
	my ($line) = grep { /^\| \Q$fault\E \|/ } split /\n/, Geonn::documentation();
	my @row = split / *\| */, $line // '';

	if ($ENV{GEONN_OUTCOMES})
	{
		open(my $file, '>>', $ENV{GEONN_OUTCOMES}) or die "$ENV{GEONN_OUTCOMES}: $!";
		print $file join("\t", $test, $fault, $_, $cells{$_}) . "\n" foreach sort keys %cells;
		close($file);
		return;
	}
	foreach my $i (0 .. $#places)
	{
		next unless exists($cells{ $places[$i] });
		is($cells{ $places[$i] }, $row[ $i + 2 ],
			"$fault at $places[$i]: the documentation has it; test/tools/fault-table writes it");
	}
}

# A server of this kind, with a session that must not notice anything.
sub new
{
	my ($class, $name, %option) = @_;
	my ($install_path, $program) = own_installation();
	my $self = bless({ folder => PostgreSQL::Test::Utils::tempdir() }, $class);

	unlink($program);
	copy("$ENV{GEONN_BUILD}/geonn-engine-faults", $program) or die "$program: $!";
	chmod(0755, $program);
	$ENV{GEONN_FAULTS} = $self->{folder};
	$self->{node} = new_server($name, %option,
		install_path => $install_path,
		preload => 1,
		conf => "autovacuum = off\nrestart_after_crash = on\ngeonn.kept_memory_limit = 0\nmax_parallel_workers_per_gather = 0\n"
		  . ($option{conf} // ''));
	$self->{node}->safe_psql(
		'postgres', q{
		CREATE TABLE obs AS SELECT i AS id, i * 7.3 % 180 - 90 AS lat, i * 11.7 % 360 - 180 AS lon FROM generate_series(1, 2000) i;
		CREATE TABLE ref AS SELECT i AS id, i * 13.1 % 180 - 90 AS lat, i * 17.9 % 360 - 180 AS lon FROM generate_series(300, 1, -1) i;
	});
	$self->{expected} = $self->{node}->safe_psql(
		'postgres', q{
		SELECT md5(string_agg(o.id || ':' || n.id || ':' || n.distance, ' ' ORDER BY o.id))
		FROM obs o CROSS JOIN LATERAL (
			SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance
			FROM ref r ORDER BY 2, 1 LIMIT 1) n});
	is($self->{node}->safe_psql('postgres', $search), $self->{expected}, 'without a fault, the search is right');
	$self->watch;
	return $self;
}

sub postmaster
{
	my ($self) = @_;
	my ($pid) = split /\n/, Geonn::slurp($self->{node}->data_dir . '/postmaster.pid');

	return $pid;
}

sub engine
{
	my ($self) = @_;

	return (engines_of($self->postmaster))[0];
}

# Have a bystander, and take down what there is.
sub watch
{
	my ($self) = @_;
	my $node = $self->{node};

	$self->{start_time} = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
	$self->{log_from} = -s $node->logfile;
	$self->{bystander} = $node->background_psql('postgres');
	$self->{bystander}->query_safe("BEGIN; SET LOCAL faults.mine = '42'");
	$node->safe_psql('postgres', $search);
	$self->{before} = $self->census;
}

sub descriptors_of
{
	my ($pid) = @_;

	# memory of batches is kept for the next ones
	return scalar(grep { (readlink($_) // '') !~ /geonn batch|^$/ } glob("/proc/$pid/fd/*"));
}

# What of the server's could leak, when it has nothing to do.
sub census
{
	my ($self) = @_;
	my $node = $self->{node};
	my $supervisor = status($node, 'supervisor_pid');
	my @engines = engines_of($self->postmaster);
	my $idle = 'SELECT sessions, searches, datasets FROM geonn_status()';
	my $left;

	my $end = time + $Geonn::patience;

	sleep(0.05) until ($left = $node->safe_psql('postgres', $idle)) eq '0|0|0' || time > $end;
	sleep(0.05);
	return {
		'the postmaster' => $self->postmaster,
		'the supervisor' => $supervisor,
		'sessions, searches and datasets' => $left,
		'engines' => scalar(@engines),
		"the engine's descriptors" => descriptors_of($engines[0] // 0),
		"the supervisor's descriptors" => descriptors_of($supervisor),
		"the postmaster's descriptors" => descriptors_of($self->postmaster),
		'files of pg_stat_tmp' => join(' ', grep { $_ ne 'geonn.launch' } sort map { s,.*/,,r } glob($node->data_dir . '/pg_stat_tmp/*')),
		'temporary files' => join(' ', glob($node->data_dir . '/base/pgsql_tmp/*'))
	};
}

# The engine follows this from its start, or its next session on.
sub order
{
	my ($self, $when, $plan) = @_;

	unlink("$self->{folder}/fired");
	open(my $file, '>', "$self->{folder}/draft") or die $!;
	print $file "$plan\n";
	close($file);
	rename("$self->{folder}/draft", "$self->{folder}/$when") or die $!;
}

sub has_fired
{
	my ($self) = @_;

	return -e "$self->{folder}/fired";
}

# Have a statement get to a place, wait there in the engine, and then this happen.
# It returns what became of the statement.  restarts: PostgreSQL may restart its
# processes, or be restarted.  either: what may become of it, where that depends on
# who is faster, or on how much memory was there; at_start: the same of that place alone.
# fresh: the engine has not searched before.
sub strike
{
	my ($self, $fault, $place, $action, %option) = @_;
	my $node = $self->{node};
	my $name = "$fault at $place";
	my $plan = $option{plan} // "wait $place 1";
	my $end = time + $Geonn::patience;

	# one that has no memory of batches to give again
	if ($option{fresh} && $place ne 'start')
	{
		my $former = $self->engine;

		kill('TERM', $former);
		sleep(0.01) until Geonn::is_gone($former) || time > $end;
		$node->safe_psql('postgres', "SELECT count(*) FROM geonn_nearest('few_obs', 'few_ref') LIMIT 0");
	}
	$self->order($place eq 'start' ? 'start' : 'session', $plan);
	kill('TERM', $self->engine) if $place eq 'start';
	my $run = start_sql($node, ($option{before} // '') . ($option{sql} // $search) . ';');
	sleep(0.01) while (!$self->has_fired && time < $end);
	ok($self->has_fired, "$name: the statement gets there") or return 'nothing';

	# an engine that starts for the next one may be faster than the statement
	wait_until(sub { backends_at_work($node) == 1 }, "$name: one backend is at work") if $place eq 'start';
	my $engine = $self->engine;
	$action->($self, $engine) if $action;
	unlink("$self->{folder}/fired");

	# where it waits for what it cannot have, it is given that
	if ($option{meanwhile})
	{
		$end = time + 1;
		sleep(0.02) while ($run->{handle}->pumpable && time < $end && ($run->{handle}->pump_nb || 1));
		$option{meanwhile}->($self, $engine, $place);
	}

	my ($status, $out, $error, $seconds) = finish_sql($run);
	my $outcome =
	  $status == 0 ? ($out eq ($option{expected} // $self->{expected}) ? 'right' : 'WRONG')
	  : $error =~ /server closed the connection|terminating connection|connection to server .* failed/ ? 'ends'
	  : $error =~ /ERROR:/ ? 'error' : 'WITHOUT A WORD';
	like($outcome, qr/^(right|error|ends)$/, "$name: the statement has its rows, or an error") or diag($out, $error);
	like($error, $option{error} // qr/HINT:/, "$name: whose hint says what to do") if $outcome eq 'error';
	cmp_ok($seconds, '<', $Geonn::patience, "$name: and does not hang");
	note("$name: $outcome\n$error");
	$self->order('session', 'none - 0');
	$self->all_is_well($name, $option{restarts});
	my $either = $place eq 'start' && $option{at_start} || $option{either};
	return $outcome unless $either;
	like($either, qr/\b$outcome\b/, "$name: $either");
	return $either;
}

sub all_is_well
{
	my ($self, $name, $restarts) = @_;
	my $node = $self->{node};
	my $answer = '';

	if ($restarts)
	{
		eval { $self->{bystander}->quit };
		wait_until(sub { $node->psql('postgres', 'SELECT 1') == 0 }, "$name: the server is there again");
		is($node->safe_psql('postgres', $search), $self->{expected}, "$name: the next search is right");
		$self->{bystander} = $node->background_psql('postgres');
		$self->{bystander}->query_safe("BEGIN; SET LOCAL faults.mine = '42'");
		$self->{start_time} = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
	}
	else
	{
		is($node->safe_psql('postgres', $search), $self->{expected}, "$name: the next search is right");
		is($self->{bystander}->query_safe('SHOW faults.mine'), '42', "$name: another session has what it had");
		is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'),
			$self->{start_time}, "$name: the server was not started again");
		unlike(substr(Geonn::slurp($node->logfile), $self->{log_from}),
			qr/terminating any other active server processes|was terminated by signal \d+.*server process/s,
			"$name: nor were its processes");
	}
	$self->{log_from} = -s $node->logfile;
	my $now = $self->census;

	# a later one has other descriptors from who started it
	foreach my $process ('the postmaster', 'the supervisor')
	{
		next if $now->{$process} == $self->{before}{$process};
		$self->{before}{$_} = $now->{$_} foreach $process, "${process}'s descriptors";
	}
	is_deeply($now, $self->{before}, "$name: nothing is left behind");
}

1;
