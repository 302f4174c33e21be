
# The documentation's "Removal", word by word, also in a database that was updated from 0.1: afterwards the server starts
# again and nothing of geonn is left.  Without it, it does not start, and "Errors by symptom" says how it does.
# rooms: doc
# check-all: holds documentation and code together

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Utils;
use Test::More;

my ($section) = Geonn::documentation() =~ /^## Removal\n(.*?)^## /ms;
my ($settings, $each) = $section =~ /^```sql\n(.*?)^```\n/msg;
my ($root) = $section =~ /^```sh machine\n(.*?)^```\n/ms;
my @databases = ('postgres', 'Other "DB"', 'template1', 'former');
my ($path) = own_installation();
add_release($path, '0.1');
my $node = new_server('removal', install_path => $path);
my $data = $node->data_dir;
my $programs = `pg_config --bindir`;
chomp($programs);

# what the copy of the installation has of geonn
sub files_of_geonn
{
	my ($root) = "$path/bin" =~ /^(.*)\Q$programs\E$/;

	return split /\n/, `find '$root' -name 'geonn*' -prune`;
}

# psql with what a page shows, which has psql's own commands and variables
sub paste
{
	my ($database, $sql) = @_;
	my ($out, $error) = ('', '');

	IPC::Run::run([ $node->installed_command('psql'), '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($database) ],
		'<', \$sql, '>', \$out, '2>', \$error);
	return ($? == 0, $out, $error);
}

# ---- a server that uses all of it ----

sub use_in
{
	my ($database) = @_;
	my ($fine, undef, $error) = paste($database, q{
		DROP EXTENSION IF EXISTS geonn;
		CREATE SCHEMA geonn;
	} . ($database ne 'former' ? 'CREATE EXTENSION geonn SCHEMA geonn;' : q{
		CREATE EXTENSION geonn SCHEMA geonn VERSION '0.1';
		CREATE TABLE old (id int PRIMARY KEY, lat float8, lon float8);
		CREATE VIEW on_nearest AS SELECT * FROM geonn.geonn_nearest('old', 'old');
		CREATE VIEW on_within AS SELECT * FROM geonn.geonn_within('old', 'old', 1e6);
		DO $$ BEGIN EXECUTE 'CREATE FUNCTION rows_of() RETURNS SETOF geonn.geonn_pair LANGUAGE sql BEGIN ATOMIC SELECT * FROM geonn.geonn_nearest(''old'', ''old''); END'; END $$;
		ALTER EXTENSION geonn UPDATE;
		DROP VIEW on_within;
		CREATE FUNCTION public.geonn_mine_0_1() RETURNS int LANGUAGE sql AS 'SELECT 7';
	}) . q{
		GRANT USAGE ON SCHEMA geonn TO PUBLIC;
		ALTER DATABASE :"DBNAME" SET search_path = "$user", public, geonn;
		\c
		CREATE TABLE obs (id int PRIMARY KEY, lat float8, lon float8);
		INSERT INTO obs VALUES (1, 10, 10), (2, 20, 20);
		SELECT geonn_cache_create('near', 'obs', 'obs') \g /dev/null
		CREATE VIEW on_cache AS SELECT * FROM near JOIN obs ON id = obs_id;
		CREATE VIEW on_view AS SELECT distance FROM on_cache;
		CREATE VIEW on_function AS SELECT * FROM geonn_nearest('obs', 'obs', k => 2);
	});

	return ok($fine, "$database has caches, and views on them") || diag($error);
}

$node->safe_psql('template1', $_) foreach q{CREATE DATABASE "Other ""DB"""}, 'CREATE DATABASE former';
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_stat_statements, geonn'");
$node->safe_psql('postgres', q{
	ALTER SYSTEM SET shared_preload_libraries = 'geonn', 'auto_explain';
	CREATE ROLE late LOGIN SUPERUSER;
	ALTER ROLE late SET session_preload_libraries = 'geonn';
});
$node->restart;
use_in($_) foreach @databases;

# ---- as the page says ----

# first query: take geonn out of the list in each line of these files
my ($fine, $out, $error) = paste('postgres', $settings);
ok($fine, 'the settings are shown') or diag($error);
my @shown = map { [ split /\|/ ] } split /\n/, $out;
is_deeply([ map { $_->[-1] } @shown ], [ 'pg_stat_statements, geonn', 'geonn, auto_explain', '{session_preload_libraries=geonn}' ],
	'where geonn is preloaded: a file, ALTER SYSTEM, ALTER ROLE')
  or diag($out);
foreach my $line (@shown)
{
	if (@$line == 3)
	{
		$node->safe_psql('postgres', qq{ALTER ROLE "$line->[1]" RESET ALL});
	}
	elsif ($line->[0] =~ /auto\.conf$/)
	{
		$node->safe_psql('postgres', "ALTER SYSTEM SET $line->[2] = 'auto_explain'");
	}
	else
	{
		my @lines = split /^/m, Geonn::slurp($line->[0]);

		$lines[$line->[1] - 1] =~ s/, geonn//;
		open(my $file, '>', $line->[0]) or die $!;
		print $file @lines;
		close($file);
	}
}
(undef, $out) = paste('postgres', $settings);
is($out, '', 'no setting names it any more');

# each line of the block in each database; where DETAIL names views and functions, drop them and run the line again
foreach my $database (@databases)
{
	foreach my $line (split /\n/, $each)
	{
		for (my $tries = 0; $tries < 5; $tries++)
		{
			my %seen;

			($fine, $out, $error) = paste($database, $line);
			my @users = grep { !$seen{$_}++ } $error =~ /(?:^DETAIL:  |^)((?:view|function) \S+) depends on/mg;
			last if $fine || !@users;
			paste($database, "DROP $_ CASCADE") foreach @users;
		}
		ok($fine, "$database: $line") or diag($error);
	}
	is($node->safe_psql($database, q{
		SELECT (SELECT count(*) FROM pg_extension WHERE extname = 'geonn'), (SELECT count(*) FROM pg_namespace WHERE nspname = 'geonn'),
			(SELECT count(*) FROM pg_proc WHERE proname LIKE 'geonn%' AND prosrc <> 'SELECT 7'), (SELECT count(*) FROM pg_class WHERE relname LIKE 'geonn%' OR relname = 'near'),
			(SELECT count(*) FROM pg_event_trigger WHERE evtname LIKE 'geonn%'), (SELECT count(*) FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase
				WHERE datname = current_database() AND setconfig::text LIKE '%geonn%')}),
		'0|0|0|0|0|0', "$database: nothing of geonn is left in the catalogs");
	is($node->safe_psql($database, 'SELECT count(*) FROM obs'), '2', "$database: its own tables are");
	like((paste($database, 'SELECT public.geonn_mine_0_1()'))[1], qr/^7$/m, 'and its own function with such a name') if $database eq 'former';
}

# what root does, for this server
my %done = (
	'pg_ctlcluster 15 main restart' => sub { $node->restart },
	'apt-get purge postgresql-15-geonn geonn-engine-cpu' => sub { system_or_bail('rm', '-rf', files_of_geonn()) },
	'rm -f /var/lib/postgresql/15/main/pg_stat_tmp/geonn.*' => sub { unlink(glob("$data/pg_stat_tmp/geonn.*")) });
my ($copy) = map { $_ =~ s,/[^/]*$,,r } grep { /geonn\.so$/ } files_of_geonn();
ok(-e "$copy/geonn.so", 'the files are there');
foreach my $line (split /\n/, $root)
{
	ok($done{$line}, "\"$line\" is known to this test") or next;
	$done{$line}->();
}
is_deeply([ files_of_geonn() ], [], 'and are not any more');
is_deeply([ glob("$data/pg_stat_tmp/*geonn*") ], [], 'nor is one of the data directory');

$node->restart;
is($node->safe_psql('postgres', 'SHOW shared_preload_libraries'), 'auto_explain', 'the server starts again, with what else it preloads');
is($node->safe_psql('postgres', q{CREATE TABLE t (); DROP TABLE t; SELECT 'fine'}), 'fine', 'and drops tables');
ok((paste('postgres', '\c - late'))[0], 'and takes sessions of each role');
$node->stop;

# ---- without the page: the files alone are removed ----

($path) = own_installation();
$node = new_server('purged', install_path => $path, preload => 1);
$data = $node->data_dir;
system_or_bail('rm', '-rf', files_of_geonn());
$node->stop;
ok(!$node->start(fail_ok => 1), 'a server that preloads what is not there does not start');
my ($message) = Geonn::slurp($node->logfile) =~ /(FATAL:  could not access file "geonn": No such file or directory)\n(?!.*FATAL)/s;
ok($message, 'and says why');
$message =~ s/  / /;
my ($entry) = Geonn::documentation() =~ /^\*\*(.*\Q$message\E.*?)(?=^\*\*|\z)/ms;
ok($entry, '"Errors by symptom" has it');
my ($option) = ($entry // '') =~ /start -o "(.*?)"/;
ok($option, 'and how to start once without')
  and system_or_bail('pg_ctl', '--silent', '--wait', "--pgdata=$data", '--log=' . $node->logfile, "--options=$option", 'start');
$node->_update_pid(1);
is($node->safe_psql('postgres', 'DROP EXTENSION geonn; SELECT 1'), '1', 'which works, and the extension goes without its files');
$node->stop;

done_testing();
