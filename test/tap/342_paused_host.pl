
# A host that stands still, or has no time for the engine, has it taken for well: no
# statement fails for that.
#
# waits: for a host that stands still for half a minute
# rooms: supervisor
# check-all: waits for half a minute

use strict;
use warnings;

use Geonn;
use Test::More;
use Time::HiRes qw(sleep);

my $node = new_server('paused_host', preload => 1, conf => "geonn.engine_timeout = '20s'");
my $expected = $node->safe_psql('postgres', $small_search);
my $engine = status($node, 'engine_pid');
my $supervisor = status($node, 'supervisor_pid');

# A pause longer than geonn.engine_timeout begins while a ping is unanswered, which comes
# within 5 s; what is last to go on is the engine.
my $session = $node->background_psql('postgres');
$session->query_safe("BEGIN; DECLARE c CURSOR FOR SELECT obs_id FROM geonn_nearest('few_obs', 'few_ref')");
$session->query_safe('FETCH 1 FROM c');
kill('STOP', $engine);
sleep(6);
kill('STOP', $supervisor);
sleep(22);
kill('CONT', $supervisor);
sleep(1);
ok(!Geonn::is_gone($engine), 'the supervisor that wakes before the engine does not kill it');
kill('CONT', $engine);
is($session->query_safe('FETCH ALL FROM c') =~ tr/0-9//, 2, 'a statement that was under way goes on');
$session->quit;
is($node->safe_psql('postgres', $small_search), $expected, 'the next search works');
is(status($node, 'engine_pid'), $engine, 'on the same engine');
unlike(Geonn::slurp($node->logfile), qr/has not answered/, 'the log says nothing of an engine that does not answer');

done_testing();
