
# Server: the server that test/bench/sql, caches, live and postgis measure, and SQL on it.
#
# It is one of its own, in a scratch folder, or one that runs already.  All that
# is made there is in the schema geonn_bench.  What was started and made is gone
# when the program ends, however it ends short of SIGKILL.

package Server;

use strict;
use warnings;

use Exporter 'import';
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use POSIX qw(floor);

our @EXPORT = qw(
  start_server restart_server create_schema extension_can_be_had before_the_end
  start_sql sql start_client finish_client end_clients set_options
  cores memory_bytes slurp);

# what every session begins with
my $session = <<'SQL';
SET client_min_messages = warning;
SET search_path = geonn_bench, public;
SET synchronous_commit = on; -- rows of a commit that is not on disk are not all-visible
SET jit = off;
SET client_connection_check_interval = '1s';
SQL

# what joins are compared with is PostgreSQL's own work
my $own_work = 'geonn.enable_sql_joins=off';

my @as_server_user;
my ($scratch, $bin);
my $has_schema = 0;
my $last_sql = '';
my $owner = $$;
my %children;

# ---- SQL ----

# Start SQL in a psql of its own; finish_client waits for its end.
sub start_sql
{
	my ($sql) = @_;
	my $file = File::Temp->new(SUFFIX => '.sql');

	print $file "$session$sql";
	close($file) or die "could not write $file: $!\n";
	my $run = start_client('psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-f', "$file");
	return { %$run, file => $file };
}

sub sql
{
	return finish_client(start_sql($_[0]));
}

# ---- programs ----

sub start_program
{
	my @command = @_;
	my $process = open(my $pipe, '-|') // die "could not start $command[0]: $!\n";

	if ($process == 0)
	{
		open(STDERR, '>&', \*STDOUT);
		{ no warnings 'exec'; exec(@command) }
		print "could not run $command[0]: $!\n";
		POSIX::_exit(127);
	}
	return ($process, $pipe);
}

# Start a program that connects to the server; finish_client waits for its end.
sub start_client
{
	my ($program, @arguments) = @_;
	my ($process, $pipe) = start_program(defined $bin ? "$bin/$program" : $program, @arguments);

	$children{$process} = 1;
	return { pipe => $pipe, process => $process };
}

# What it said; dies of an error.
sub finish_client
{
	my ($run) = @_;
	my ($said, $status) = finish_program($run->{pipe});

	delete $children{ $run->{process} };
	$said =~ s/^psql:\S+ //mg;
	chomp($said);
	die "$said\n" if $status != 0;
	return $said;
}

# End the programs that are connected to the server, and what their sessions do.
sub end_clients
{
	kill('TERM', keys %children);
	%children = ();
	return;
}

# Have sessions of programs other than psql begin with these settings, too.
sub set_options
{
	$ENV{PGOPTIONS} = join(' ', map { "-c $_" } $own_work, @_);
	return;
}

# (what it said, its exit status)
sub finish_program
{
	my ($pipe) = @_;
	my $said = do { local $/; <$pipe> } // '';

	close($pipe);
	return ($said, $?);
}

# Run one of the server's programs, as the server's user.
sub server_program
{
	my ($program, @arguments) = @_;
	my (undef, $pipe) = start_program(@as_server_user, "$bin/$program", @arguments);
	my ($said, $status) = finish_program($pipe);

	die "$program failed:\n$said" . slurp("$scratch/log") if $status != 0;
	return;
}

sub slurp
{
	my ($name) = @_;
	open(my $file, '<', $name) or return '';
	local $/;
	return <$file> // '';
}

# ---- the machine ----

sub cores
{
	my $cores = `nproc`;
	chomp($cores);
	return $cores;
}

# of the machine
sub memory_bytes
{
	my ($kilobytes) = slurp('/proc/meminfo') =~ /MemTotal:\s+(\d+)/;
	return 1024 * $kilobytes;
}

# ---- the server ----

# Start a server of its own with that many bytes of shared buffers.
sub start_server
{
	my ($shared_buffers) = @_;
	my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
	my $cores = cores();

	chomp($bin = do { no warnings 'exec'; `$pg_config --bindir` } // '');
	die "could not run $pg_config: set PG_CONFIG\n" if $bin eq '';
	$scratch = tempdir('geonn-bench.XXXXXX', TMPDIR => 1);

	# root may not run a server: the user postgres does
	if ($> == 0)
	{
		@as_server_user = qw(setpriv --reuid=postgres --regid=postgres --init-groups env -C /);
		chown((getpwnam('postgres'))[ 2, 3 ], $scratch)
		  or die "there is no user postgres to run a server as\n";
	}
	delete @ENV{ grep { /^PG(?!_CONFIG)/ } keys %ENV };
	@ENV{qw(PGHOST PGUSER PGDATABASE)} = ($scratch, 'postgres', 'postgres');

	server_program('initdb', '-D', "$scratch/data", '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync');
	# jobs of pg_cron, where it is installed
	chomp(my $sharedir = `$pg_config --sharedir`);
	my $has_cron = -e "$sharedir/extension/pg_cron.control";
	my $libraries = $has_cron ? 'geonn, pg_cron' : 'geonn';
	open(my $conf, '>>', "$scratch/data/postgresql.conf")
	  or die "could not write the server's settings: $!\n";
	print $conf <<"CONF";
listen_addresses = ''
unix_socket_directories = '$scratch'
shared_preload_libraries = '$libraries'
shared_buffers = '${\floor($shared_buffers / (1 << 20))}MB'
geonn.kept_memory_limit = '4GB'
max_wal_size = '16GB'
max_worker_processes = ${\($cores + 8)}
max_parallel_workers = $cores
CONF
	print $conf "cron.host = '$scratch'\n" if $has_cron;
	close($conf);
	server_program('pg_ctl', '-D', "$scratch/data", '-l', "$scratch/log", '-w', 'start');
	return;
}

# Restart the server of its own, with these libraries preloaded if they are given.
sub restart_server
{
	my ($libraries) = @_;

	server_program('pg_ctl', '-D', "$scratch/data", '-l', "$scratch/log", '-w',
		(defined $libraries ? ('-o', "-c shared_preload_libraries='$libraries'") : ()), 'restart');
	return;
}

# Make the schema that all is made in, and the extensions that are not there yet.
sub create_schema
{
	set_options();
	sql('SET client_min_messages = error; DROP SCHEMA IF EXISTS geonn_bench CASCADE; CREATE SCHEMA geonn_bench');
	$has_schema = 1;
	sql('CREATE EXTENSION IF NOT EXISTS geonn SCHEMA geonn_bench');
	foreach my $extension (grep { extension_can_be_had($_) } qw(pg_prewarm postgis))
	{
		sql("CREATE EXTENSION IF NOT EXISTS $extension SCHEMA geonn_bench");
	}

	# a running server may have them in schemas of their own
	my $schemas = sql(q{
		SELECT string_agg(DISTINCT quote_ident(nspname), ', ')
		FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
		WHERE extname IN ('geonn', 'pg_prewarm', 'postgis') AND nspname <> 'geonn_bench'});
	$session .= "SET search_path = geonn_bench, public, $schemas;\n" if $schemas ne '';
	return;
}

# Have SQL run before the schema is dropped, for what is elsewhere.
sub before_the_end
{
	$last_sql .= "$_[0]\n";
	return;
}

sub extension_can_be_had
{
	my ($name) = @_;
	return sql("SELECT count(*) FROM pg_available_extensions WHERE name = '$name'");
}

END
{
	my $status = $?;

	# a child that a signal reaches before it is another program has nothing to tidy up
	if ($$ == $owner)
	{
		local @SIG{qw(INT TERM)} = ('IGNORE') x 2;
		end_clients();
		if (defined $scratch)
		{
			eval { server_program('pg_ctl', '-D', "$scratch/data", '-m', 'immediate', 'stop') }
			  if -e "$scratch/data/postmaster.pid";
			remove_tree($scratch);
		}
		elsif ($has_schema)
		{
			eval { sql("SET client_min_messages = error;\n${last_sql}DROP SCHEMA geonn_bench CASCADE"); 1 }
			  or print STDERR "the schema geonn_bench is still there: $@";
		}
	}
	$? = $status;
}

1;
