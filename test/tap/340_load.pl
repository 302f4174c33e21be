
# 64 sessions at a time, of all sizes, whose answers are known beforehand: all are right, none
# starves, cancelled ones end at once, memory is flat; without a limit of sessions, and with one.
# GEONN_LOAD_SECONDS is how long, SEED which points and orders.
# short form: 16 of 600 seconds
# alone: how long searches take beside each other is what it looks at
# rooms: client engine/server engine/search
# check-all: has the machine to itself

use strict;
use warnings;

use FindBin;
use Geonn;
use Test::More;

my $seconds = $ENV{GEONN_LOAD_SECONDS} // ($ENV{GEONN_LONG} ? 600 : 16);
my $seed = $ENV{SEED} // int(time / 86400);
my $node = new_server('load', preload => 1, conf => "max_connections = 100\nshared_buffers = '256MB'");

local @ENV{qw(PGHOST PGPORT PGDATABASE)} = ($node->host, $node->port, 'postgres');
my $said = `$^X $FindBin::Bin/../load/run --seconds $seconds --seed $seed --limit 8 2>&1`;

is($?, 0, "a load of $seconds s, seed $seed, holds all that it should");
foreach my $line (split /\n/, $said)
{
	$line =~ /^(not )?ok - (.*)/ ? ok(!$1, $2) : note($line);
}

done_testing();
