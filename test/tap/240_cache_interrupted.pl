
# A refresh that ends without a word, by the end of its process or of the server,
# leaves the former rows and is said to have been interrupted; the next one does
# all of its work.
# rooms: cache

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('interrupted', preload => 1, conf => "restart_after_crash = on\nautovacuum = off");

# a refresh waits when it begins to write, while another session has the lock
$node->safe_psql(
	'postgres', q{
	CREATE TABLE obs AS SELECT i AS id, i * 7 % 90 AS lat, i * 11 % 180 AS lon FROM generate_series(1, 2000) i;
	CREATE TABLE ref AS SELECT i AS id, i * 13 % 90 AS lat, i * 17 % 180 AS lon FROM generate_series(1, 100) i;
	SELECT geonn_cache_create('near', 'obs', 'ref');
	CREATE FUNCTION wait_to_write() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM pg_advisory_lock_shared(7);
		PERFORM pg_advisory_unlock_shared(7);
		RETURN NULL;
	END $$;
	CREATE TRIGGER wait BEFORE UPDATE ON near EXECUTE FUNCTION wait_to_write();
	CALL geonn_refresh('near', 'full');
});

sub cache_status
{
	return $node->safe_psql('postgres', q{SELECT status FROM geonn_caches});
}

# Have references moved and a refresh wait half-way, and end it so; then the next one.
sub interrupt
{
	my ($how, $end) = @_;

	$node->safe_psql('postgres', q{UPDATE ref SET lat = lat + 0.5 WHERE id % 20 = 0});
	my $former = $node->safe_psql('postgres', q{SELECT md5(string_agg(n::text, ' ' ORDER BY obs_id, rank)) FROM near n});
	my $holder = $node->background_psql('postgres', on_error_stop => 0);
	$holder->query_safe('SELECT pg_advisory_lock(7)');
	my $run = start_sql($node, q{CALL geonn_refresh('near')});
	my $waiting = q{SELECT pid FROM pg_stat_activity WHERE wait_event = 'advisory'};
	wait_until(sub { $node->safe_psql('postgres', $waiting) ne '' }, "$how: a refresh is under way");
	is(cache_status(), 'running', "$how: which can be seen");
	$end->($node->safe_psql('postgres', $waiting));
	isnt((finish_sql($run))[0], 0, "$how: it ends");
	$node->poll_query_until('postgres', 'SELECT true');
	is($node->safe_psql('postgres', q{SELECT md5(string_agg(n::text, ' ' ORDER BY obs_id, rank)) FROM near n}),
		$former, "$how: the former rows are there");
	wait_until(sub { cache_status() eq 'interrupted' }, "$how: the refresh was interrupted");
	eval { $holder->quit };
	$node->safe_psql('postgres', q{CALL geonn_refresh('near')});
	is(cache_status(), 'succeeded', "$how: the next one succeeds");
	is(cache_differences($node), 0, "$how: and has done it all");
}

interrupt('terminated', sub { $node->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])") });
interrupt('killed', sub { kill 'KILL', $_[0] });
interrupt('stopped', sub { $node->stop('immediate'); $node->start; });

$node->stop;
done_testing();
