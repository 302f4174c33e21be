
# EXPLAIN (ANALYZE, VERBOSE) says which fate the references of a call had and why none before it, which way each kind of device
# went, and why the CPU did: for each node, in each format, and of all processes together.  A function in a SELECT list has no
# node: DEBUG2 says the same of it.
# rooms: join engine/search

use strict;
use warnings;

use Geonn;
use JSON::PP;
use Test::More;

my $node = new_server('ways', preload => 1, conf => "autovacuum = off\nmax_parallel_workers_per_gather = 0\ngeonn.device = cpu");
my @labels = ('References Fate', 'Fates Not Taken', 'Ways', 'Left to the CPU');
my $cpu = 'the CPU was asked for';

$node->safe_psql('postgres', q{
	CREATE TABLE obs AS SELECT i AS id, 80 * sin(i) AS lat, 170 * sin(i * 7.7) AS lon FROM generate_series(1, 100000) i;
	CREATE TABLE few AS TABLE obs LIMIT 3;
	CREATE TABLE ref AS SELECT i AS id, 80 * cos(i) AS lat, 170 * cos(i * 7.7) AS lon FROM generate_series(1, 3000) i;
	ALTER TABLE ref ADD PRIMARY KEY (id);
	CREATE TABLE other AS TABLE ref;
	CREATE TABLE asked AS TABLE ref;
	VACUUM ANALYZE;
});

# what EXPLAIN prints of the query, after these settings
sub shown
{
	my ($options, $query, $before) = @_;

	return $node->safe_psql('postgres', ($before // '') . "; EXPLAIN ($options) $query");
}

# the four properties of the query's node that has them
sub ways
{
	my ($query, $before) = @_;
	my @plans = (decode_json(shown('ANALYZE, VERBOSE, FORMAT JSON', $query, $before))->[0]{Plan});

	while (my $plan = shift @plans)
	{
		return [ map { $plan->{$_} } @labels ] if exists $plan->{'References Fate'};
		push @plans, @{ $plan->{Plans} // [] };
	}
	return 'no node has them';
}

# two neighbours each, which no table of squares answers
sub nearest { return "SELECT count(*) FROM geonn_nearest('$_[0]', '$_[1]', 2, options => '{\"algorithm\": \"$_[2]\"}')"; }

# ---- fates of the references ----

my $live = 'live (the engine is asked before rows are counted)';
my $unkept = 'kept (the engine keeps no dataset of their table as it is now)';

is_deeply(
	ways(nearest('obs', 'ref', 'index')),
	[
		['read'],
		[ $live, $unkept, 'counted (the observations are many, or this process has no base of them)', $unkept =~ s/kept/kept meanwhile/r ],
		['CPU by index'], [$cpu] ],
	'a first call reads, and each fate before has a reason');
is_deeply(ways(nearest('obs', 'ref', 'brute')), [ ['kept'], ['live (a GPU or brute force was asked for)'], ['CPU by brute force'], [$cpu] ], 'the next one finds them kept');
my $twice = "SELECT count(*) FROM generate_series(1, 2) i LEFT JOIN geonn_nearest('few', 'other', options => '{\"algorithm\": \"index\"}') ON i <= obs_id";
is_deeply(
	ways($twice, 'SET enable_material = off'),
	[ [ 'kept', 'read' ], [ $live, $unkept, 'counted (the observations are many, or this process has no base of them)', $unkept =~ s/kept/kept meanwhile/r ],
		['CPU by index'], [$cpu] ],
	'of several executions all fates are named, and all reasons');
my $point = q{SELECT count(*) FROM geonn_nearest_points('{1}', '{1}', 'asked')};
is_deeply(
	decode_json((split(/\n(?=\[)/, $node->safe_psql('postgres', join(';', ("EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) $point") x 3))))[-1])
	  ->[0]{Plan}{Plans}[0]{'References Fate'},
	['live'], 'a few points are answered by a base in the end');

# ---- formats ----

my $text = shown('ANALYZE, VERBOSE, COSTS OFF', nearest('obs', 'ref', 'index'));
my @lines = map { s/^ +//r } grep { /^ +(References Fate|Fates Not Taken|Ways|Left to the CPU): / } split(/\n/, $text);
is_deeply(\@lines, [ 'References Fate: kept', "Fates Not Taken: $live", 'Ways: CPU by index', "Left to the CPU: $cpu" ], 'the lines of EXPLAIN');
unlike(shown($_, nearest('obs', 'ref', 'index')), qr/Fate|Ways|Left to the CPU/, "EXPLAIN ($_) has none of them")
	foreach ('ANALYZE', 'VERBOSE');
foreach my $format ('YAML', 'XML')
{
	my $shown = shown("ANALYZE, VERBOSE, FORMAT $format", nearest('obs', 'ref', 'index'));

	like($shown, $format eq 'YAML' ? qr/^ +References Fate: *\n +- "kept"$/m : qr{<References-Fate>\s*<Item>kept</Item>\s*</References-Fate>}, $format);
}

# ---- a function without a node ----

my ($status, $out, $error) = $node->psql('postgres',
	q{SET client_min_messages = debug2; SELECT geonn_nearest('obs', 'ref', 2, options => '{"algorithm": "index"}') OFFSET 100000});
like($error, qr/DEBUG:  geonn_nearest\(public\.obs, public\.ref\) has ended\nDETAIL:  \Q@{[ join("\n", @lines) ]}\E$/m, 'DEBUG2 has the same lines');

# ---- all processes ----

my $parallel = join('; ', 'SET max_parallel_workers_per_gather = 2', 'SET parallel_setup_cost = 0', 'SET parallel_tuple_cost = 0',
	'SET min_parallel_table_scan_size = 0', 'SET parallel_leader_participation = off');
like(shown('ANALYZE, COSTS OFF', nearest('obs', 'ref', 'index'), $parallel), qr/Leader: batches: 0,.*Worker \d: batches: [1-9]/s, 'the leader does not search');
is_deeply(ways(nearest('obs', 'ref', 'index'), $parallel), [ ['kept'], ['live (the observations are many, or shared, or watched)'], ['CPU by index'], [$cpu] ],
	'the fate is the leader\'s, the ways are the workers\'');

# ---- the ways of the CPU, and why it is the CPU ----

my $seen = '';
for (my $try = 0; $try < 100 && $seen !~ /squares/; $try++)
{
	$seen = join(', ', @{ ways(q{SELECT count(*) FROM geonn_nearest('obs', 'ref')})->[2] });
}
like($seen, qr/CPU by a table of squares/, 'a dataset that is asked often has a table of squares');
my $gpus = $node->safe_psql('postgres', q{SELECT count(*) FROM geonn_devices WHERE kind <> 'cpu'});
my $auto = ways(nearest('few', 'other', 'index'), 'SET geonn.device = auto');
is_deeply([ @$auto[ 2, 3 ] ], $gpus ? [ ['GPU by index'], undef ] : [ ['CPU by index'], ['no GPU can be used'] ], 'auto means the GPUs, if there are any');
my $spheroid = ways(q{SELECT count(*) FROM geonn_nearest('few', 'other', 2, metric => 'spheroid')}, 'SET geonn.device = auto');
is_deeply($spheroid->[3], [ $gpus ? 'a GPU has no way for this question' : 'no GPU can be used' ], 'the CPU answers what a GPU is not made for');
my $empty = ways(q{SELECT count(*) FROM geonn_nearest_sql('TABLE few', 'SELECT * FROM ref WHERE id < 0')});
is_deeply([ @$empty[ 0, 2, 3 ] ], [ ['read'], undef, undef ], 'without references no device has anything to do');

$node->stop;
done_testing();
