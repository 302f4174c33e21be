
# The image's entrypoint and health check, without a container: each variable that the
# official image of PostgreSQL has makes the server that it says, which becomes healthy, also
# when it starts again, and asks for a password wherever TCP reaches it.
#
# needs: pg_cron
# rooms: container
# check-all: starts a server for each variable

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $programs = "$ENV{GEONN_PAGES}/container";
my $sharedir = `pg_config --sharedir`;
chomp($sharedir);

my $folder = PostgreSQL::Test::Utils::tempdir_short();
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $run;

sub write_file
{
	my ($name, $text) = @_;

	PostgreSQL::Test::Utils::append_to_file("$folder/$name", $text);
	return "$folder/$name";
}

# A program's exit status and all that it says, in the environment of a container with these variables.
sub in_container
{
	my ($variables, @command) = @_;
	my $said = '';
	local %ENV = (PATH => $ENV{PATH}, HOME => $folder, LANG => 'C.UTF-8', PGDATA => "$folder/data", %$variables);

	IPC::Run::run([@command], '<', '/dev/null', '>&', \$said, IPC::Run::timeout(180));
	return ($? >> 8, $said);
}

# The container's server starts, and is healthy in the end.
sub starts
{
	my ($name, $variables, @arguments) = @_;
	my ($health, $said);
	local %ENV = (PATH => $ENV{PATH}, HOME => $folder, LANG => 'C.UTF-8', PGDATA => "$folder/data", %$variables);

	$run = { log => '' };
	$run->{handle} = IPC::Run::start(
		[ "$programs/entrypoint", 'postgres', '-c', 'listen_addresses=127.0.0.1', '-c', "port=$port",
			'-c', "unix_socket_directories=$folder", '-c', 'fsync=off', @arguments ],
		'<', '/dev/null', '>&', \$run->{log}, IPC::Run::timeout(300));
	return ok(0, "$name: it starts") if !wait_until(
		sub {
			$run->{handle}->pump_nb;
			($health, $said) = in_container($variables, "$programs/health");
			return $health == 0 || !$run->{handle}->pumpable;
		}, "$name: it starts, or ends", 180);
	return is($health, 0, "$name: it is healthy") || diag("$run->{log}\n$said");
}

sub ends
{
	my ($name) = @_;

	$run->{handle}->signal('INT');
	$run->{handle}->finish;
	like($run->{log}, qr/database system is shut down/, "$name: it ends well");
}

# what psql says by TCP, as another container of the pod would ask
sub by_tcp
{
	my ($user, $database, $password, $sql) = @_;

	return in_container({ PGHOST => '127.0.0.1', PGPORT => $port, PGUSER => $user, PGDATABASE => $database,
		$password ne '' ? (PGPASSWORD => $password) : () }, 'psql', '-XAtqw', '-c', $sql);
}

sub password_is_asked_for
{
	my ($name, $user, $database) = @_;
	my ($status, $said) = by_tcp($user, $database, '', 'SELECT 1');

	isnt($status, 0, "$name: without a password the superuser does not come in by TCP");
	like($said, qr/no password supplied/, "$name: it is asked for");
	($status, $said) = by_tcp($user, $database, 'secret', q{SELECT current_user, current_database(), geonn_distance(0, 0, 0, 0)});
	is($said, "$user|$database|0\n", "$name: with it that works, in the database with geonn");
}

# the next first start is of new data
sub forget_data
{
	PostgreSQL::Test::Utils::system_or_bail('rm', '-rf', "$folder/data");
}

my @cases = (
	[ 'a password alone', { POSTGRES_PASSWORD => 'secret' }, 'postgres', 'postgres' ],
	[ 'files', {
		POSTGRES_PASSWORD_FILE => write_file('password', "secret\n"),
		POSTGRES_USER_FILE => write_file('user', "app\n"),
		POSTGRES_DB_FILE => write_file('database', 'shop'),
		POSTGRES_INITDB_ARGS_FILE => write_file('arguments', "--no-sync --data-checksums\n") }, 'app', 'shop' ],
	[ 'a user alone', { POSTGRES_PASSWORD => 'secret', POSTGRES_USER => 'my app=50%' }, ('my app=50%') x 2 ],
	[ 'a database of signs', { POSTGRES_PASSWORD => 'secret', POSTGRES_DB => qq{a\\b'c"d=\ne%s \$(id)} }, 'postgres', qq{a\\b'c"d=\ne%s \$(id)} ],
	[ 'a socket that asks for a password', { POSTGRES_PASSWORD => 'secret', POSTGRES_INITDB_ARGS => '--auth=scram-sha-256' }, 'postgres', 'postgres' ],
	[ 'other hosts by md5', { POSTGRES_PASSWORD => 'secret', POSTGRES_HOST_AUTH_METHOD => 'md5' }, 'postgres', 'postgres' ],
	[ 'files of the log elsewhere', { POSTGRES_PASSWORD => 'secret', POSTGRES_INITDB_WALDIR => "$folder/wal" }, 'postgres', 'postgres' ],
	[ 'a host and port of clients', { POSTGRES_PASSWORD => 'secret', PGHOST => 'nowhere.invalid', PGHOSTADDR => '192.0.2.1', PGPORT => 1 }, 'postgres', 'postgres' ],
);

foreach my $case (@cases)
{
	my ($name, $variables, $user, $database) = @$case;
	my $socket = $variables->{POSTGRES_INITDB_ARGS} ? 'scram-sha-256' : 'trust';

	starts($name, $variables) or do { $run->{handle}->kill_kill; forget_data(); next };
	password_is_asked_for($name, $user, $database);
	my (undef, $hba) = by_tcp($user, $database, 'secret', q{SELECT DISTINCT type, auth_method FROM pg_hba_file_rules WHERE auth_method <> 'md5' ORDER BY 1});
	is($hba, "host|scram-sha-256\nlocal|$socket\n", "$name: and so is it of whoever replicates");
	my (undef, $shown) = by_tcp($user, $database, 'secret', q{SELECT current_setting('cron.database_name') = current_database()});
	is($shown, "t\n", "$name: its schedules are of that database");
	ends($name);
	# the variables count in the first start alone
	starts("$name, again", {}) if !$variables->{POSTGRES_INITDB_ARGS};
	ends("$name, again") if !$variables->{POSTGRES_INITDB_ARGS};
	ok(-e "$folder/wal/archive_status", "$name: they are there") if $variables->{POSTGRES_INITDB_WALDIR};
	forget_data();
}

starts('trust', { POSTGRES_HOST_AUTH_METHOD => 'trust' }) and do
{
	my ($status, $said) = by_tcp('postgres', 'postgres', '', 'SELECT 1');
	is($said, "1\n", 'trust: a superuser comes in by TCP without a password');
	ends('trust');
};
forget_data();

my ($status, $said) = in_container({}, "$programs/entrypoint", 'postgres');
isnt($status, 0, 'without a password it does not start');
like($said, qr/set POSTGRES_PASSWORD/, 'and says what to set');
($status, $said) = in_container({ POSTGRES_PASSWORD => 'a', POSTGRES_PASSWORD_FILE => '/b' }, "$programs/entrypoint", 'postgres');
like($said, qr/are both set/, 'a password and a file of one are one too many');

done_testing();
