
# The snippets of doc/clients.md run as written, with the drivers that they are for.
#
# short form: with the drivers that are installed; make check-clients fetches those that the page names
# may skip: drivers and programs that are not installed
# rooms: doc test/clients

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Utils;
use Test::More;

my $page = "$ENV{GEONN_PAGES}/doc/clients.md";
my $text = Geonn::slurp($page);
my %module_of = (
	psycopg => 'psycopg',
	psycopg2 => 'psycopg2',
	asyncpg => 'asyncpg',
	sqlalchemy => 'sqlalchemy',
	geoalchemy => 'geoalchemy2',
	django => 'django',
	geodjango => 'django.contrib.gis.gdal',
	pandas => 'pandas',
	geopandas => 'geopandas',
	adbc => 'adbc_driver_postgresql');
my ($tables) = $text =~ /^```sql\n(.*?)^```$/ms;
my %named = map { $_ => 1 } $text =~ /^```python (\w+)$/mg;

is(join(' ', sort keys %named), join(' ', sort(keys %module_of, 'pgbouncer')), 'the page has the drivers that this test knows');

my $node = new_server('clients');
my $has_postgis = $node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'postgis'");

# The environment of libpq for a new database that has the page's tables.
sub new_database
{
	my ($name) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $name");
	$node->safe_psql($name, 'CREATE EXTENSION geonn');
	$node->safe_psql($name, $tables);
	return (
		PGHOST => $node->host,
		PGPORT => $node->port,
		PGDATABASE => $name,
		PGUSER => $node->safe_psql($name, 'SELECT current_user'));
}

# Run a command: its exit status, and what it wrote.
sub outcome_of
{
	my ($limit, @command) = @_;
	my ($out, $error) = ('', '');
	my $succeeded = eval { IPC::Run::run([@command], '<', \'', '>', \$out, '2>', \$error, IPC::Run::timeout($limit)) };

	$error .= $@;
	return ($succeeded, $out, $error);
}

sub succeeds
{
	my ($succeeded) = outcome_of(300, @_);

	return $succeeded;
}

# The snippets of a driver, as the script that runs them found them.
sub snippets_run
{
	my ($python, $driver) = @_;
	my ($succeeded, $out, $error) = outcome_of(120, $python, 'clients/snippets', $page, $driver);
	my $count = () = $text =~ /^```python $driver$/mg;
	my @verdicts = $out =~ /^(ok|not ok) - (.*)$/mg;

	while (my ($verdict, $title) = splice(@verdicts, 0, 2))
	{
		is($verdict, 'ok', $title);
		$count--;
	}
	ok($succeeded && $count == 0, "$driver: all of its snippets") or diag($error);
}

# Run the page's snippets by this Python, as far as it has the drivers.
sub drivers_run
{
	my ($python, $database) = @_;

	local %ENV = (%ENV, new_database($database));
	foreach my $driver (sort keys %module_of)
	{
	  SKIP:
		{
			skip("$python has no $module_of{$driver}", 1) if !succeeds($python, '-c', "import $module_of{$driver}");
			if ($driver =~ /^geo/)
			{
				skip('PostGIS is not installed', 1) if !$has_postgis;
				$node->safe_psql($database, 'DROP EXTENSION IF EXISTS postgis CASCADE; CREATE EXTENSION postgis');
			}
			snippets_run($python, $driver);
		}
	}
}

# ---- Python ----

drivers_run('python3', 'installed');

SKIP:
{
	skip('fetched by make check-clients', 1) if !$ENV{GEONN_LONG};
	my ($table) = $text =~ /^\| package \| version \|\n\|---\|---\|\n((?:\|.*\n)+)/m;
	my @packages = map { "$_->[0]==$_->[1]" } map { [ /^\| (\S+) \| (\S+) \|$/ ] } split /\n/, $table;
	my $venv = PostgreSQL::Test::Utils::tempdir() . '/venv';

	skip('python3 makes no virtual environment', 1) if !succeeds('python3', '-m', 'venv', $venv);
	skip('no network, or none of the packages', 1) if !succeeds("$venv/bin/pip", 'install', '-q', @packages);
	foreach my $driver (sort keys %module_of)
	{
		ok(succeeds("$venv/bin/python", '-c', "import $module_of{$driver}"), "$driver is among the page's versions");
	}
	drivers_run("$venv/bin/python", 'fetched');
}

# ---- PgBouncer ----

SKIP:
{
	my ($pgbouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';

	skip('PgBouncer is not installed', 1) if !$pgbouncer;
	skip('python3 has no psycopg', 1) if !succeeds('python3', '-c', 'import psycopg');
	my %connection = new_database('pooled');
	my $folder = PostgreSQL::Test::Utils::tempdir_short();
	my $port = PostgreSQL::Test::Cluster::get_free_port();

	append_to_file("$folder/users", qq{"$connection{PGUSER}" ""\n});
	append_to_file("$folder/ini", join("\n",
			'[databases]', "pooled = host=$connection{PGHOST} port=$connection{PGPORT}",
			'[pgbouncer]', 'pool_mode = transaction', 'listen_addr =', "listen_port = $port",
			"unix_socket_dir = $folder", 'auth_type = trust', "auth_file = $folder/users", "logfile = $folder/log", ''));
	my $process = IPC::Run::start([ $pgbouncer, '-q', "$folder/ini" ], '<', \'', '>', \my $out, '2>', \my $error);
	wait_until(sub { -S "$folder/.s.PGSQL.$port" }, 'PgBouncer listens');
	local %ENV = (%ENV, %connection, PGHOST => $folder, PGPORT => $port);
	snippets_run('python3', 'pgbouncer');
	$process->signal('INT');
	$process->finish;
}

# ---- JDBC ----

SKIP:
{
	my ($jar) = grep { -e } '/usr/share/java/postgresql.jar';
	my ($source) = $text =~ /^```java jdbc\n(.*?)^```$/ms;
	my $folder = PostgreSQL::Test::Utils::tempdir();
	my $password = join('', map { chr(97 + rand(26)) } 1 .. 20);
	my %connection;

	skip('Java, or its driver, is not installed', 1) if !$jar || !succeeds('javac', '--version');
	%connection = new_database('java');

	# it has no Unix sockets
	unlink($node->data_dir . '/pg_hba.conf');
	$node->append_conf('pg_hba.conf', "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256");
	$node->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'");
	$node->restart;
	$node->safe_psql('java', "ALTER ROLE $connection{PGUSER} PASSWORD '$password'");
	local %ENV = (%ENV, %connection, PGHOST => '127.0.0.1', PGPASSWORD => $password);
	append_to_file("$folder/Nearest.java", $source);
	my ($succeeded, $out, $error) = outcome_of(120, 'java', '-cp', $jar, "$folder/Nearest.java");
	ok($succeeded, 'jdbc: the class of the page') or diag($error);
}

done_testing();
