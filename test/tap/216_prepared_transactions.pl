
# A prepared transaction has no process, and keeps its locks until a client ends it: whatever has to
# wait for it says which one it is, and how it ends, and the wait can be cancelled.
# rooms: cache

use strict;
use warnings;

use Geonn qw(:DEFAULT query);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('prepared', preload => 1, conf => "max_prepared_transactions = 5\n");

# what a session prints that runs these commands, errors and notices included
sub said
{
	my ($status, $out, $err) = $node->psql('postgres', join('; ', 'SET lock_timeout = 100', @_));

	return $err =~ s/^psql:.*?: //gmr;
}

query(q{
	CREATE TABLE obs AS SELECT i AS id, i * 7 % 90 AS lat, i * 11 % 180 AS lon FROM generate_series(1, 50) i;
	CREATE TABLE ref AS SELECT i AS id, i * 13 % 90 AS lat, i * 17 % 180 AS lon FROM generate_series(1, 20) i;
	SELECT geonn_cache_create('near', 'obs', 'ref');
});
my $ends = qr/HINT:  The transaction ends when .* runs COMMIT PREPARED 'it''s "p"' or ROLLBACK PREPARED 'it''s "p"'\./;
my $prepare = q{PREPARE TRANSACTION 'it''s "p"'};
my $cancelled = qr/ERROR:  canceling statement due to lock timeout/;

# ---- one that refreshes the cache ----

query("BEGIN; UPDATE obs SET lat = 5 WHERE id = 3; CALL geonn_refresh('near'); $prepare");
foreach my $server ('the server that prepared it', 'one that has started since')
{
	like(said(q{CALL geonn_refresh('near')}),
		qr/^NOTICE:  cache "near" is not refreshed: prepared transaction "it's "p"" is at work on it\n$ends$/m,
		"a refresh names it: $server");
	is(query(q{SELECT status, reason FROM geonn_cache_log ORDER BY started DESC LIMIT 1}),
		q{skipped|prepared transaction "it's "p"" was at work on it}, 'and so does the log');
	foreach my $call (q{geonn_cache_drop('near')}, q{geonn_cache_alter('near', '{"k": 2}')})
	{
		my $said = said("SELECT $call");

		like($said, qr/^NOTICE:  cache "near" waits for prepared transaction "it's "p"", which has locked it\n$ends$/m,
			"$call names it");
		like($said, $cancelled, 'and waits until it is cancelled');
	}
	$node->restart;
}
query(q{COMMIT PREPARED 'it''s "p"'});
is(said(q{CALL geonn_refresh('near')}), '', 'when it has ended, nothing is said');
is(cache_differences($node), 0, 'and the cache is right');

# ---- one that writes the cache's table ----

foreach my $last_run ('known', 'not known')
{
	query(q{DELETE FROM near WHERE obs_id = 1}) if $last_run eq 'not known';
	query(qq{UPDATE obs SET lat = lat + 1 WHERE id < 10});
	query(qq{BEGIN; UPDATE near SET distance = -1 WHERE obs_id = 9; $prepare});
	my $said = said(q{CALL geonn_refresh('near')});
	like($said, qr/^NOTICE:  cache "near" waits for prepared transaction "it's "p"", which has locked its table\n$ends$/m,
		"a refresh says what it waits for: last run $last_run");
	like($said, $cancelled, 'and waits until it is cancelled');
	$said = said(q{SELECT geonn_cache_drop('near')});
	like($said, qr/^NOTICE:  cache "near" waits for prepared transaction "it's "p"", which has locked its table\n$ends$/m,
		'and so does a drop');
	query(q{COMMIT PREPARED 'it''s "p"'});
	is(said(q{CALL geonn_refresh('near')}), '', 'when it has ended, nothing is said');
	is(cache_differences($node), 0, 'and the cache is right');
}

# ---- one that only reads it ----

query("BEGIN; SELECT * FROM near; $prepare");
is(said(q{CALL geonn_refresh('near')}), '', 'a refresh waits for no reader');
like(said(q{SELECT geonn_cache_drop('near')}), qr/waits for prepared transaction/, 'and a drop does');
query(q{ROLLBACK PREPARED 'it''s "p"'; SELECT geonn_cache_drop('near')});
$node->stop;

done_testing();
