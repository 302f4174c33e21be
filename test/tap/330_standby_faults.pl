
# A standby that is promoted, or loads its configuration again, while it searches
# goes on searching; a table of neighbours is refreshed on the primary alone, and a
# standby says so.
#
# short form: a standby is promoted while its engine searches
# rooms: client supervisor cache
# check-all: faults at each phase

use strict;
use warnings;

use Faults;
use Geonn;
use PostgreSQL::Test::Cluster;
use Test::More;

my $server = Faults->new('primary', allows_streaming => 1);
my $primary = $server->{node};

$primary->safe_psql('postgres', q{SELECT geonn_cache_create('near', 'obs', 'ref'); CALL geonn_refresh('near');});
$server->{bystander}->quit;
$primary->backup('copy');
$primary->stop;

sub standby
{
	my ($name) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name, install_path => $primary->{_install_path});

	$standby->init_from_backup($primary, 'copy', has_streaming => 1);
	$standby->start;
	is($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery()'), 't', "$name: the standby is one");
	return $standby;
}

# what changes a table does not work on a standby, and the error says that
my $standby = standby('refreshed');
is($standby->safe_psql('postgres', $search), $server->{expected}, 'a standby searches');
foreach my $change (
	"CALL geonn_refresh('near')", "CALL geonn_refresh('near', 'full')",
	'CALL geonn_refresh_all()', "SELECT geonn_cache_create('other', 'obs', 'ref')",
	"SELECT geonn_cache_drop('near')")
{
	my ($status, undef, $error) = $standby->psql('postgres', $change);

	isnt($status, 0, "$change: not on a standby");
	like($error, qr/ERROR:  caches cannot be changed or refreshed during recovery/, "$change: and the error says why");
	note($error);
}
is($standby->safe_psql('postgres', 'SELECT count(*) > 0 FROM near'), 't', 'its rows can be read');
like($standby->safe_psql('postgres', 'SELECT status FROM geonn_caches'), qr/./, 'and what is known of it');
$standby->stop;

# promoted while a search is under way
if (is_wanted('a standby is promoted'))
{
	my %cells;

	foreach my $place (places_wanted($ENV{GEONN_LONG}))
	{
		$server->{node} = standby("promoted_$place");
		$server->watch;
		$cells{$place} = $server->strike('a standby is promoted', $place, sub { $server->{node}->promote });
		is($server->{node}->safe_psql('postgres', "CALL geonn_refresh('near', 'full'); SELECT pg_is_in_recovery()"),
			'f', "$place: and then refreshes");
		$server->{bystander}->quit;
		$server->{node}->stop;
	}
	record('330', 'a standby is promoted', %cells);
}

done_testing();
