
# A hot standby searches too, with an engine of its own.
# rooms: client supervisor

use strict;
use warnings;

use Geonn;
use Test::More;

my $primary = new_server('primary', allows_streaming => 1, preload => 1, conf => 'autovacuum = off');
$primary->safe_psql('postgres', 'VACUUM few_ref');
my $expected = $primary->safe_psql('postgres', $small_search);
is(status($primary, 'datasets_kept'), 1, 'the primary keeps its references');

$primary->backup('copy');
ok(!-e $primary->backup_dir . '/copy/pg_stat_tmp/geonn.sock', 'a base backup has no socket of the engine');

foreach my $preload (1, 0)
{
	my $name = $preload ? 'preloaded' : 'not preloaded';
	my $standby = PostgreSQL::Test::Cluster->new("standby$preload");

	$standby->init_from_backup($primary, 'copy', has_streaming => 1);
	$standby->append_conf('postgresql.conf', "shared_preload_libraries = ''") unless $preload;
	$standby->start;
	is($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery()'), 't', "$name: the standby is one");
	is($standby->safe_psql('postgres', $small_search), $expected, "$name: it searches");
	isnt(status($standby, 'engine_pid'), status($primary, 'engine_pid'), "$name: with its own engine");
	like($standby->safe_psql('postgres', "EXPLAIN (ANALYZE) $small_search"), qr/References Kept: false/,
		"$name: and reads all references, always");
	$standby->promote;
	is($standby->safe_psql('postgres', $small_search), $expected, "$name: and after its promotion");
	like($standby->safe_psql('postgres', "EXPLAIN (ANALYZE) $small_search"), qr/References Kept: true/,
		"$name: when it keeps them");
	$standby->stop;
}

done_testing();
