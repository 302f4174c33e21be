
# A backend that ends in the middle of a search leaves nothing in the engine.
# rooms: client engine/server

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('terminated', preload => 1, slow => 1);
my $search = start_slow_search($node);
my $engine = status($node, 'engine_pid');

cmp_ok(status($node, 'sessions'), '>', 0, 'each of its processes has a session');
$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . backend_of($node) . ')');
my (undef, undef, $error, undef) = finish_sql($search);
like($error, qr/terminating connection due to administrator command/, 'the backend is terminated');

foreach my $column ("sessions", "searches", "datasets - datasets_kept")
{
	wait_until(sub { status($node, $column) == 0 }, "the engine has no $column any more");
}

# a cursor that is closed before its end
my ($status, undef, $message, undef) = finish_sql(
	start_sql($node,
		"BEGIN; DECLARE c CURSOR FOR SELECT * FROM geonn_nearest('few_obs', 'few_ref'); FETCH 1 FROM c; CLOSE c; COMMIT;"
	));
is($status, 0, "a cursor can be closed before its end $message");
wait_until(sub { status($node, 'sessions') == 0 }, 'and leaves no session');

is(status($node, 'engine_pid'), $engine, 'the engine is still the same');

done_testing();
