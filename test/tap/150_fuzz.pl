
# Random tables and random arguments get the answers that brute force in SQL
# has.  The seed is the environment's SEED, else another one each day; more
# cases, and one case alone, are test/fuzz/run's to do.
#
# short form: 400 of 10000 cases
# rooms: join points client engine/cpu/walk engine/cpu/counts

use strict;
use warnings;

use FindBin;
use Geonn;
use Test::More;

my $seed = $ENV{SEED} // int(time / 86400);
my $cases = $ENV{GEONN_LONG} ? 10000 : 400;

# a database where the order of text is not that of its bytes, if ICU is there
my $node = new_server('fuzz', preload => 1);
my $create = "CREATE DATABASE fuzz TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'";
$node->psql('postgres', "$create LOCALE_PROVIDER icu ICU_LOCALE 'en-US'") == 0
  or $node->safe_psql('postgres', $create);
$node->safe_psql('fuzz', 'CREATE EXTENSION geonn');
$node->safe_psql('fuzz', 'CREATE EXTENSION postgis')
  if $node->safe_psql('fuzz', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'postgis'});

local @ENV{qw(PGHOST PGPORT PGDATABASE)} = ($node->host, $node->port, 'fuzz');
my $said = `$^X $FindBin::Bin/../fuzz/run --seed $seed --cases $cases 2>&1`;

is($?, 0, "$cases random cases of seed $seed have brute force's answers")
  or diag($said);
like($said, qr/^$cases cases without a difference/m, 'all of them were compared');
note($said) if $? == 0;

done_testing();
