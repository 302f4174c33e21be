
# doc/managed.md runs as written: on a server without geonn, by a role that is no superuser, and on one with it, which
# subscribes to its tables, is asked by postgres_fdw, and publishes a cache.
# rooms: doc
# check-all: holds documentation and code together

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %node;
foreach my $name (qw(managed beside))
{
	$node{$name} = PostgreSQL::Test::Cluster->new($name);
	$node{$name}->init(allows_streaming => 'logical');
	$node{$name}->append_conf('postgresql.conf', 'wal_retrieve_retry_interval = 200ms');
	# a role that is no superuser may connect only where a password is asked for
	my $rules = $node{$name}->data_dir . '/pg_hba.conf';
	my $former = Geonn::slurp($rules);
	open(my $file, '>', $rules) or die "$rules: $!";
	print $file "local all app,asker scram-sha-256\nlocal replication app,asker scram-sha-256\n$former";
	close($file);
	$node{$name}->start;
	$node{$name}->safe_psql('postgres', 'CREATE DATABASE app');
}

# a service's users, of which the page's administrator gives one its rights; before PostgreSQL 16 the administrator makes the
# subscriptions, too
my $managed = $node{managed};
my $app_subscribes = $managed->safe_psql('postgres', q{SELECT count(*) FROM pg_roles WHERE rolname = 'pg_create_subscription'});
$managed->safe_psql('postgres', q{CREATE ROLE app LOGIN PASSWORD 'secret'});
$managed->safe_psql('postgres', 'GRANT pg_create_subscription TO app') if $app_subscribes;
$managed->safe_psql('app', 'ALTER SCHEMA public OWNER TO app');

# the page's hosts and ports are those of the test's servers
sub placed
{
	my ($text) = @_;

	$text =~ s/host=(managed|beside) port=5432/'host=' . $node{$1}->host . ' port=' . $node{$1}->port/ge;
	$text =~ s/host 'beside', port '5432'/"host '" . $node{beside}->host . "', port '" . $node{beside}->port . "'"/ge;
	return $text;
}

# Each server has applied all that the other has published, its tables' first copies included.
sub await_changes
{
	foreach my $pair ([ 'managed', 'beside', 'points' ], [ 'beside', 'managed', 'answers' ])
	{
		my ($from, $to, $name) = @$pair;

		next if $node{$to}->safe_psql('app', "SELECT count(*) FROM pg_subscription WHERE subname = '$name'") eq '0';
		$node{$to}->wait_for_subscription_sync($node{$from}, $name, 'app');
		$node{$from}->wait_for_catchup($name);
	}
}

my $page = (grep { m{/managed\.md$} } Geonn::pages())[0];
my $text = Geonn::slurp($page);
my @blocks;
push @blocks, { name => $1, role => $2 // '', text => $3, shown => $4 }
  while $text =~ /^```sql (managed|beside)(?: (administrator|subscriber))?\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?/msg;
cmp_ok(scalar(@blocks), '>', 8, 'the page has blocks of two servers');
foreach my $block (@blocks)
{
	my $on = $node{ $block->{name} };
	my ($title) = $block->{text} =~ /^(?!--)(.+)/m;
	my $is_app = $block->{name} eq 'managed' && ($block->{role} eq '' || $block->{role} eq 'subscriber' && $app_subscribes);
	my ($out, $error) = ('', '');
	my $commands = placed($block->{text});
	local $ENV{PGPASSWORD} = 'secret';

	await_changes();
	IPC::Run::run([ $on->installed_command('psql'), '-Xq', '-d', $on->connstr('app'), $is_app ? ('-U', 'app') : () ],
		'<', \$commands, '>', \$out, '2>', \$error, IPC::Run::timeout(180));
	is($error =~ s/^(?:psql:.*)?NOTICE:.*\n//mgr, '', "$block->{name}: $title runs");
	is_deeply([ shown_lines($out) ], [ shown_lines($block->{shown}) ], 'and prints what the page shows') if defined($block->{shown});
}
is($managed->safe_psql('app', q{SELECT count(*) FROM pg_available_extensions e JOIN pg_extension x ON x.extname = e.name WHERE e.name = 'geonn'}), 0,
	'the managed server has no geonn');

$_->stop foreach values %node;
done_testing();
