
# The files of geonn are replaced by those of another version, newer or older, while
# sessions, the supervisor and the engine run: where these do not fit together the HINT
# says what to do, and once it is done the next statement works.  All cases: each is a
# version of the session's module, of the engine and of the files, with and without
# preloading.
# rooms: base client supervisor engine/server
# check-all: every pair of versions

use strict;
use warnings;

use File::Copy;
use Geonn;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($installation, $program) = own_installation();
my $library = $program =~ s/-engine$/.so/r;

# "older" is another release with the same protocol, "newer" has another protocol, too
my %suffix = (present => '', older => '-older', newer => '-newer');

# the module as it was built, as the copy of the installation is of links
copy($library, "$installation/present.so") or die "$library: $!";

# Put a version's files there as an installation does: new ones, so that processes keep
# those that they have.
sub install
{
	my ($version) = @_;
	my $module = $version eq 'present' ? "$installation/present.so" : "$ENV{GEONN_BUILD}/geonn-$version.so";

	unlink($library, $program);
	copy($module, $library) or die "$module: $!";
	copy("$ENV{GEONN_BUILD}/geonn-engine$suffix{$version}", $program) or die "$version: $!";
	chmod(0755, $library, $program);
}

my $node = new_server('versions', install_path => $installation);

# ---- sessions ----

# of psql in the background, as that keeps its module
sub connect_session
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query('SELECT geonn_distance(1, 2, 3, 4)');
	return $session;
}

# what a search says: its answer, and its error
sub search
{
	my ($session) = @_;

	$session->{stderr} = '';
	my $answer = $session->query($small_search);
	return ($answer, $session->{stderr});
}

# kill a process and see that it is gone
sub end_process
{
	my ($pid, $name) = @_;

	kill('TERM', $pid);
	return wait_until(sub { Geonn::is_gone($pid) }, "$name: process $pid has ended");
}

# ---- the property ----

# Have a session search.  Where it says that versions differ, do what the HINT says, and
# that only; then the next search has the answer.
sub works_after_hint
{
	my ($session, $name) = @_;
	my ($answer, $error) = search($session);

	if ($answer eq '1:7 2:8 3:9')
	{
		$session->quit;
		return 'no error';
	}
	my ($hint) = $error =~ /^(?:psql:.*?)?HINT:  (.*)$/m;
	like($error, qr/version/, "$name: the error tells of versions");
	$hint //= "none: $error";
	my $did = '';
	if ($hint =~ /End the (?:geonn )?(engine|supervisor) with "kill (\d+)"/)
	{
		$did = "kill $1";
		end_process($2, $name);
	}
	if ($hint =~ /^Restart the server/)
	{
		$did = 'restart';
		eval { $session->quit };
		$node->restart;
		$session = connect_session();
	}
	if ($hint =~ /\bconnect again\b/i && $hint !~ /^Restart/)
	{
		$did .= ' connect';
		$session->quit;
		$session = connect_session();
	}
	isnt($did, '', "$name: the HINT says what to do: $hint");
	($answer, $error) = search($session);
	is($answer, '1:7 2:8 3:9', "$name: once it is done, a search works")
	  or diag("it said: $error, after the hint: $hint");
	eval { $session->quit };
	return $did;
}

# ---- all cases ----

my %done;

foreach my $preload (0, 1)
{
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '" . ($preload ? 'geonn' : '') . "'");

	foreach my $case (
		[qw(present older present)], [qw(present older older)], [qw(present older newer)],
		[qw(present newer present)], [qw(present newer older)], [qw(present newer newer)],
		[qw(newer present newer)], [qw(newer present present)])
	{
		my ($module, $engine, $installed) = @$case;
		my $name = ($preload ? 'preloaded, ' : '') . "module $module, engine $engine, installed $installed";

		install($module);
		$node->restart;
		my $session = connect_session();

		# another session starts the engine; where all have the postmaster's module, the
		# supervisor that has it starts the other engine in place of its own
		my $running = status($node, 'engine_pid');
		install($engine);
		end_process($running, $name) if $running;
		$node->psql('postgres', $small_search);
		install($installed);
		$done{$name} = works_after_hint($session, $name);
	}

	# a supervisor whose engine is killed finds one of another protocol
	install('present');
	$node->restart;
	$node->safe_psql('postgres', $small_search);
	install('newer');
	end_process(status($node, 'engine_pid'), 'the supervisor is older');
	my $name = ($preload ? 'preloaded, ' : '') . 'supervisor present, installed newer';
	$done{$name} = works_after_hint(connect_session(), $name);

	# and an installation alone stops no session
	install('present');
	$node->restart;
	my $session = connect_session();
	is((search($session))[0], '1:7 2:8 3:9', 'before an installation a search works');
	install('older');
	is((search($session))[0], '1:7 2:8 3:9', 'and after it, in the same session');
	$session->quit;
}
note("$_: $done{$_}") foreach sort keys %done;

# ---- files that do not run ----

$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
install('present');
$node->restart;
my $session = connect_session();
install('older');
$node->psql('postgres', $small_search);
unlink($program);
my (undef, $error) = search($session);
like($error, qr/DETAIL: .* does not run.*HINT:  Install geonn again and restart the server\./s, 'without the files the HINT says to install them');
$session->quit;
install('older');
$node->restart;
is($node->safe_psql('postgres', $small_search), '1:7 2:8 3:9', 'which helps');

done_testing();
