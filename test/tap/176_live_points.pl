
# A base may have points of any type of column: whatever changes the table, a few points have the rows of the definition in SQL, with
# their coordinates, equally distant ones in the order of their ids, and those of one id in the order of their coordinates.  A value that is
# no point has the error that the engine's reading of it has.
#
# needs: postgis
#
# short form: 15 of 400 random steps for each type
# rooms: live join points

use strict;
use warnings;

use Geonn;
use Test::More;

my $steps = $ENV{GEONN_LIVE_STEPS} // ($ENV{GEONN_LONG} ? 400 : 15);
my $seed = $ENV{GEONN_LIVE_SEED} // int(rand(1_000_000));
my $rows = 1000;
my $node = new_server('live_points', preload => 1, conf => "autovacuum = off\njit = off\nmax_parallel_workers_per_gather = 0");

srand($seed);
note "seed $seed: GEONN_LIVE_SEED=$seed GEONN_LIVE_STEPS=$steps repeats this";
$node->safe_psql('postgres', 'CREATE EXTENSION postgis');

# the type of a column, its value of the coordinates :lon and :lat, one without a point, and its coordinates
my %types = (
	'point' => ['point(:lon, :lat)', 'NULL', 'p[1]', 'p[0]'],
	'geometry(Point,4326)' => ['ST_SetSRID(ST_MakePoint(:lon, :lat), 4326)', q{'SRID=4326;POINT EMPTY'}, 'ST_Y(p)', 'ST_X(p)'],
	'geography(PointZ)' => ['ST_MakePoint(:lon, :lat, 7)::geography', q{'POINT Z EMPTY'}, 'ST_Y(p::geometry)', 'ST_X(p::geometry)']);

sub value_of
{
	my ($type, $lat, $lon) = @_;

	return $types{$type}[0] =~ s/:lat/($lat)/r =~ s/:lon/($lon)/r;
}

# a table of 30 places, so that many rows are equally distant, in which several rows may have one id
sub create_table
{
	my ($type) = @_;
	my (undef, undef, $lat, $lon) = @{ $types{$type} };

	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS ref;
		DROP FUNCTION IF EXISTS differences();
		CREATE TABLE ref (number integer PRIMARY KEY, id integer, p $type, note text) WITH (fillfactor = 80);
		INSERT INTO ref SELECT i, i / 3, @{[ value_of($type, 'i % 5 * 30 - 60', 'i % 6 * 60 - 180') ]}, repeat('x', 100) FROM generate_series(1, $rows) i;
		CREATE FUNCTION differences() RETURNS bigint LANGUAGE sql STABLE AS \$\$
			WITH o AS MATERIALIZED (SELECT ord, floor(random() * 13) * 15 - 90 AS lat, floor(random() * 13) * 30 - 180 AS lon FROM generate_series(1, 6) ord),
				a AS MATERIALIZED (SELECT array_agg(lat ORDER BY ord) AS lat, array_agg(lon ORDER BY ord) AS lon, 1 + (random() * 40)::integer AS k FROM o),
				n AS MATERIALIZED (SELECT ord, string_agg((ref_id, distance, ref_lat, ref_lon)::text, ' ' ORDER BY rank) AS found
					FROM geonn_nearest_points((SELECT lat FROM a), (SELECT lon FROM a), 'ref', (SELECT k FROM a),
						options => '{"ref_id": "id", "ref_geog": "p"}', row_type => NULL::record)
						AS (ord bigint, ref_id integer, distance float8, ref_lat float8, ref_lon float8, rank bigint) GROUP BY ord)
			SELECT count(*) FROM o LEFT JOIN n USING (ord),
				LATERAL (SELECT string_agg((id, distance, lat, lon)::text, ' ' ORDER BY distance, id, lat, lon) AS expected FROM (
					SELECT id, geonn_distance(o.lat, o.lon, $lat, $lon) AS distance, $lat AS lat, $lon AS lon FROM ref
					WHERE id IS NOT NULL AND $lat IS NOT NULL ORDER BY 2, 1, 3, 4 LIMIT (SELECT k FROM a)) r) e
			WHERE found IS DISTINCT FROM expected \$\$;
	});
}

my $call = q{SELECT ref_id FROM geonn_nearest_points('{1}', '{1}', 'ref', options => '{"ref_id": "id", "ref_geog": "p"}')};

sub has_base
{
	my ($session) = @_;

	return $session->query_safe("EXPLAIN (ANALYZE, COSTS OFF) $call;") =~ /Pages Read/ ? 1 : 0;
}

sub random_change
{
	my ($type) = @_;
	my $number = 1 + int(rand($rows));
	my $value = value_of($type, int(rand(5)) * 30 - 60, int(rand(6)) * 60 - 180);

	return (
		"UPDATE ref SET p = $value WHERE number = $number",
		"UPDATE ref SET p = $value WHERE number % 100 = $number % 100",
		"UPDATE ref SET p = $types{$type}[1] WHERE number = $number",
		"UPDATE ref SET id = " . (rand() < 0.3 ? 'NULL' : int(rand($rows / 3))) . " WHERE number = $number",
		"DELETE FROM ref WHERE number = $number",
		"INSERT INTO ref VALUES ($number, $number / 3, $value) ON CONFLICT DO NOTHING",
		"UPDATE ref SET note = repeat('n', " . int(rand(3000)) . ") WHERE number = $number")[rand 7];
}

foreach my $type (sort keys %types)
{
	create_table($type);
	my @sessions = map { $node->background_psql('postgres', on_error_die => 1) } 0, 1;
	my $wrong = 0;

	is(has_base($sessions[0]), 0, "$type: the first call goes to the engine");
	is(has_base($sessions[$_]), 1, "$type: a base answers session $_") foreach 1, 0;
	foreach my $step (1 .. $steps)
	{
		$sessions[rand 2]->query_safe(random_change($type)) for 0 .. rand 4;
		$node->safe_psql('postgres', 'VACUUM ref') if rand() < 0.1;
		foreach my $number (0, 1)
		{
			my $found = $sessions[$number]->query_safe('SELECT differences()');

			$wrong += $found;
			diag("seed $seed, step $step, session $number: $found points are wrong") if $found;
		}
	}
	is($wrong, 0, "$type: the rows are those of the definition");
	is(has_base($sessions[0]), 1, "$type: by a base");
	$_->quit foreach @sessions;
}

# values that are no points
$node->safe_psql('postgres', q{DROP TABLE ref; CREATE TABLE ref (number integer PRIMARY KEY, id integer, p geometry);
	INSERT INTO ref SELECT i, i, ST_SetSRID(ST_MakePoint(i, 1), 4326) FROM generate_series(1, 150) i});
my $session = $node->background_psql('postgres', on_error_stop => 0, on_error_die => 0);
has_base($session) for 1 .. 2;
is(has_base($session), 1, 'before a value of another SRID: a base answers');
$node->safe_psql('postgres', 'UPDATE ref SET p = ST_SetSRID(ST_MakePoint(1, 1), 3857) WHERE id = 77');
my (undef, $failed) = $session->query($call);
my (undef, undef, $error) = $node->psql('postgres', $call);

ok($failed, 'a value of another SRID: an error');
s{^psql:<stdin>:\d+: |\s+\z}{}g foreach $session->{stderr}, $error;
is($session->{stderr}, $error, "which is the engine's");
$session->{stderr} = '';
$node->safe_psql('postgres', 'UPDATE ref SET p = ST_SetSRID(ST_MakePoint(77, 1), 4326) WHERE id = 77');
is($session->query($call), 1, 'and the next call is answered');

is(has_base($session), 1, 'before a line: a base answers');
$node->safe_psql('postgres', q{UPDATE ref SET p = 'SRID=4326;LINESTRING(1 1, 2 2)' WHERE id = 1});
is($session->query($call), 1, 'a line is found');
$node->safe_psql('postgres', q{UPDATE ref SET p = ST_SetSRID(ST_MakePoint(9, 9), 4326) WHERE id = 1});
is($session->query($call), 2, 'and missed where it has become a point far away');
$session->quit;
$node->stop;
done_testing();
