
# Where the system lets the engine create no threads, searches go on with those that it
# has, and what needs another one is an error that names the limit.
# rooms: engine/base engine/search

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('no_threads', preload => 1, conf => 'geonn.cpu_threads = 4');
my $engine = $node->safe_psql('postgres', 'SELECT geonn_engine_start()');
my $supervisor = status($node, 'supervisor_pid');

$node->safe_psql('postgres', q{
	CREATE TABLE obs AS SELECT i AS id, degrees(asin(2 * random() - 1)) AS lat, 360 * random() - 180 AS lon
		FROM generate_series(1, 20000) i;
	CREATE TABLE ref AS SELECT * FROM obs ORDER BY random()});

sub limit_processes
{
	my ($process, $limit) = @_;

	system('prlimit', '--pid', $process, "--nproc=$limit:") == 0 or die "prlimit: $?";
}

my $by_number = "SELECT sum(ref_id) FROM geonn_nearest('obs', 'ref')";
my $by_text = q{
	SELECT count(*), sum(ref_id::int) FROM geonn_nearest_sql('TABLE obs', 'SELECT id::text AS id, lat, lon FROM ref',
		row_type => NULL::record) AS n(obs_id int, ref_id text)};
my $sum = $node->safe_psql('postgres', 'SELECT sum(id) FROM obs');
my $former = (split ' ', `prlimit --pid $engine --nproc --output=SOFT --noheadings --raw`)[0];

# no thread more than those of its start, each search by other references
limit_processes($engine, 0);
is($node->safe_psql('postgres', "SELECT sum(ref_id) FROM geonn_nearest_sql('TABLE obs', 'TABLE obs')"), $sum,
	'without further threads references are read and searched');
is($node->safe_psql('postgres', "SELECT count(*) FROM geonn_nearest('obs', 'obs', k => 3)"), 60000,
	'and batches of many neighbours');
is($node->safe_psql('postgres', $by_text), "20000|$sum", 'and references that PostgreSQL has sorted');
my (undef, undef, $error) = $node->psql('postgres', $by_number);
like($error, qr/ERROR:  could not create a thread to sort.*HINT:  Raise the limits on processes/s,
	'those that the engine has to sort are an error, which names the limit');
note($error);
is($node->safe_psql('postgres', 'SELECT state FROM geonn_devices WHERE kind = $$cpu$$'), 'ready', 'the views answer');
is(status($node, 'engine_pid'), $engine, 'the engine is the same');
limit_processes($engine, $former);
is($node->safe_psql('postgres', $by_number), $sum, 'once it may create threads, references are sorted');
is($node->safe_psql('postgres', $by_text), "20000|$sum", 'whatever their ids');

# nor may the supervisor start it
limit_processes($supervisor, 0);
kill('KILL', $engine);
(undef, undef, $error) = $node->psql('postgres', $by_number);
like($error, qr/ERROR:  .*geonn engine/, 'where the engine cannot be started a statement has an error');
(undef, undef, $error) = $node->psql('postgres', $by_number);
like($error, qr/ERROR:  could not start the geonn engine.*HINT:  Check the operating system's limits on processes/s,
	'and so has the next one, with the limit in its hint');
note($error);
limit_processes($supervisor, $former);
is($node->safe_psql('postgres', $by_number), $sum, 'after that the next statement starts it');

done_testing();
