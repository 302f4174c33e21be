
# An engine that dies takes the searches under way with it, and nothing else.
# rooms: client supervisor

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('killed', preload => 1, slow => 1);
my $start_time = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
my $expected = $node->safe_psql('postgres', $small_search);

# a session with plain queries, before, during and after
my $bystander = start_sql($node, "SELECT sum(id) FROM few_ref; SELECT pg_sleep(0.02);\n" x 300);
my $search = start_slow_search($node);
my $engine = status($node, 'engine_pid');

kill('KILL', $engine);
my ($status, undef, $error, undef) = finish_sql($search);
isnt($status, 0, 'the search that was under way fails');
like($error, qr/ERROR:.*engine/, 'its error names the engine');
like($error, qr/HINT:/, 'and has a hint');
note($error);

is($node->safe_psql('postgres', $small_search), $expected, 'the next search works');
isnt(status($node, 'engine_pid'), $engine, 'on a new engine');
is(status($node, 'sessions'), 0, 'which has no session of the old one');

($status, undef, $error, undef) = finish_sql($bystander);
is($status, 0, 'a session with plain queries never noticed');
is($error, '', 'and was told nothing');

is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'),
	$start_time, 'the server was not started again');
my $log = Geonn::slurp($node->logfile);
unlike($log, qr/terminating any other active server processes/, 'no server process was ended');
like($log, qr/geonn.*engine/i, 'the log tells of it');

# killed while idle, nobody is told anything
$engine = status($node, 'engine_pid');
kill('KILL', $engine);
wait_until(sub { Geonn::is_gone($engine) }, 'an idle engine is gone');
is($node->safe_psql('postgres', $small_search), $expected, 'the next search works again');

done_testing();
