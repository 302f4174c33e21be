
# An engine that hangs is found out, killed and started again.
# rooms: supervisor

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('stopped', preload => 1, slow => 1, conf => "geonn.engine_timeout = '2s'");
my $start_time = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
my $expected = $node->safe_psql('postgres', $small_search);

my $search = start_slow_search($node);
my $engine = status($node, 'engine_pid');

kill('STOP', $engine);

# geonn_status() answers although the engine does not
is(status($node, 'state'), 'not answering', 'geonn_status() says that the engine does not answer');

my ($status, undef, $error, $seconds) = finish_sql($search);
isnt($status, 0, 'the waiting statement fails');
like($error, qr/ERROR:.*engine/, 'its error names the engine');
like($error, qr/HINT:/, 'and has a hint');
note($error);

ok(Geonn::is_gone($engine), 'the engine that hung is gone');
is($node->safe_psql('postgres', $small_search), $expected, 'the next search works');
isnt(status($node, 'engine_pid'), $engine, 'on a new engine');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'),
	$start_time, 'the server was not started again');
like(Geonn::slurp($node->logfile), qr/geonn engine.*did not answer|not answer/i, 'the log says why');

# A short pause is no reason to kill it.
$engine = status($node, 'engine_pid');
kill('STOP', $engine);
Time::HiRes::sleep(0.5);
kill('CONT', $engine);
is($node->safe_psql('postgres', $small_search), $expected, 'after a pause a search works');
is(status($node, 'engine_pid'), $engine, 'on the same engine');

done_testing();
