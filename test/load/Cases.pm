
# Cases: what the sessions of a load ask, and what the right answers are.
#
# A case is a query whose rows are obs_id, ref_id and distance, and brute force in SQL
# for the same rows, which shares nothing with the engine but geonn_distance.  Answers
# are compared by their numbers of rows and two sums of hashes, of pairs and of
# distances.  Brute force is run once, before the load.
#
# Tables of many observations have each place many times, so that brute force is done with
# the places alone, in seconds; and the references that move have two states.  What the
# statement itself sees of these is part of the answer; only a cache may be behind.

package Cases;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(create_tables @cases answer_sql);

# ---- tables ----

my $place = 'degrees(asin(2 * random() - 1)) AS lat, 360 * random() - 180 AS lon';

# SQL that makes them; large is how many observations the large one has
sub create_tables
{
	my ($seed, $large) = @_;
	my $times = int($large / 200);

	return <<"SQL";
SELECT setseed(($seed % 1000000) / 1000000.0);
CREATE FUNCTION points(rows bigint) RETURNS TABLE (id bigint, lat float8, lon float8, zone integer)
	LANGUAGE sql VOLATILE AS 'SELECT i, $place, (4 * random())::integer FROM generate_series(1, rows) i';
CREATE TABLE obs_given (id, lat, lon) AS VALUES (1::bigint, 10::float8, 10::float8), (2, -20.5, 170), (3, 89, 0);
CREATE TABLE obs_tiny AS SELECT * FROM points(10);
CREATE TABLE places AS SELECT * FROM points(200);
CREATE TABLE obs_middle AS
	SELECT row_number() OVER () AS id, lat, lon, zone, place
	FROM (SELECT id AS place, lat, lon, zone FROM places, generate_series(1, 25) ORDER BY random()) p;
CREATE TABLE obs_large AS
	SELECT row_number() OVER () AS id, lat, lon, place
	FROM (SELECT id AS place, lat, lon FROM places, generate_series(1, $times) ORDER BY random()) p;
ALTER TABLE obs_large SET (parallel_workers = 2);
CREATE TABLE ref_small AS SELECT * FROM points(50);
CREATE TABLE ref_middle AS SELECT * FROM points(1000);
CREATE TABLE ref_twins AS SELECT 2 * id - i AS id, lat, lon FROM points(500), generate_series(0, 1) i;
CREATE TABLE ref_large AS SELECT * FROM points(10000);
CREATE VIEW ref_read AS SELECT id, lat, lon FROM ref_large WHERE id % 2 = 1; -- a condition: never kept
CREATE TABLE ref_moving AS SELECT id, lat, lon, 0 AS state FROM points(1000);
CREATE TABLE ref_moving_places AS SELECT m.id, s.state,
	CASE s.state WHEN 0 THEN m.lat ELSE p.lat END AS lat, CASE s.state WHEN 0 THEN m.lon ELSE p.lon END AS lon
	FROM ref_moving m JOIN points(1000) p USING (id), generate_series(0, 1) AS s(state);
CREATE PROCEDURE move() LANGUAGE sql AS '
	UPDATE ref_moving m SET state = p.state, lat = p.lat, lon = p.lon
	FROM ref_moving_places p WHERE p.id = m.id AND p.state = 1 - m.state';
VACUUM ANALYZE obs_tiny, obs_middle, places, obs_large, ref_small, ref_middle, ref_twins, ref_large, ref_moving;
SELECT geonn_cache_create('geonn_load near', 'obs_tiny', 'ref_moving', target => 'geonn_load.near', k => 2);
SELECT geonn_cache_create('geonn_load around', 'obs_middle', 'ref_moving', target => 'geonn_load.around', radius => 500000);
SQL
}

# ---- brute force ----

sub nearest_by_brute_force
{
	my ($obs, $ref, %option) = @_;
	my $condition = $option{condition} // 'true';
	my $metric = $option{metric} // 'sphere';
	my $distance = "geonn_distance(o.lat, o.lon, r.lat, r.lon, '$metric')";
	my $limit = defined $option{radius} ? '' : 'LIMIT ' . ($option{k} // 1);
	my $within = defined $option{radius} ? "AND $distance <= $option{radius}" : '';

	return "SELECT o.id AS obs_id, r.id AS ref_id, r.distance FROM $obs o CROSS JOIN LATERAL
		(SELECT r.id, $distance AS distance FROM $ref r WHERE $condition $within ORDER BY 2, 1 $limit) r";
}

# the rows of one place are those of all observations there
sub of_all_places
{
	my ($obs, @places) = @_;
	return map { "SELECT o.id AS obs_id, p.ref_id, p.distance FROM $obs o JOIN ($_) p ON p.obs_id = o.place" } @places;
}

# for each of the two states of the references that move
sub of_both_states
{
	my ($obs, %option) = @_;
	return map { nearest_by_brute_force($obs, "(SELECT * FROM ref_moving_places WHERE state = $_)", %option) } 0, 1;
}

my $given = 'ARRAY[10, -20.5, 89], ARRAY[10, 170, 0]';

# name, size, query of the answer, SQL to run before, and brute force: each of these is right
our @cases = map { { name => $_->[0], size => $_->[1], query => $_->[2], before => $_->[3], oracles => [ @$_[ 4 .. $#$_ ] ] } } (
	[ 'small', 'tiny', q{geonn_nearest('obs_tiny', 'ref_small')}, '', nearest_by_brute_force('obs_tiny', 'ref_small') ],
	[ 'points', 'tiny', qq{(SELECT ord AS obs_id, ref_id, distance FROM geonn_nearest_points($given, 'ref_middle', k => 2)) p}, '',
		nearest_by_brute_force('obs_given', 'ref_middle', k => 2) ],
	[ 'kept', 'tiny', q{geonn_nearest('obs_tiny', 'ref_large', k => 3)}, '', nearest_by_brute_force('obs_tiny', 'ref_large', k => 3) ],
	[ 'queries', 'tiny', q{geonn_nearest_sql('TABLE obs_tiny', 'SELECT id, lat, lon FROM ref_middle WHERE zone = 1')}, '',
		nearest_by_brute_force('obs_tiny', 'ref_middle', condition => 'zone = 1') ],
	[ 'cache', 'tiny', 'near', q{CALL geonn_refresh('geonn_load near')}, of_both_states('obs_tiny', k => 2) ],
	[ 'eight', 'middle', q{geonn_nearest('obs_middle', 'ref_middle', k => 8)}, '', of_all_places('obs_middle', nearest_by_brute_force('places', 'ref_middle', k => 8)) ],
	[ 'groups', 'middle', q{geonn_nearest('obs_middle', 'ref_middle', k => 2, by => '{zone}')}, '',
		of_all_places('obs_middle', nearest_by_brute_force('places', 'ref_middle', k => 2, condition => 'r.zone = o.zone')) ],
	[ 'radius', 'middle', q{geonn_within('obs_middle', 'ref_middle', 400000)}, '', of_all_places('obs_middle', nearest_by_brute_force('places', 'ref_middle', radius => 400000)) ],
	[ 'spheroid', 'middle', q{geonn_nearest('obs_middle', 'ref_middle', metric => 'spheroid')}, '', of_all_places('obs_middle', nearest_by_brute_force('places', 'ref_middle', metric => 'spheroid')) ],
	[ 'others', 'middle', q{geonn_nearest('ref_middle', 'ref_middle', exclude_self => true)}, '',
		nearest_by_brute_force('ref_middle', 'ref_middle', condition => 'r.id <> o.id') ],
	[ 'ties', 'middle', q{geonn_nearest('obs_middle', 'ref_twins', ties => 'all')}, '', of_all_places('obs_middle', nearest_by_brute_force('places', 'ref_twins', k => 2)) ],
	[ 'moving', 'middle', q{geonn_nearest('obs_middle', 'ref_moving')}, '', of_all_places('obs_middle', of_both_states('places')) ],
	[ 'cache of many', 'middle', 'around', q{CALL geonn_refresh('geonn_load around')}, of_all_places('obs_middle', of_both_states('places', radius => 500000)) ],
	[ 'many', 'large', q{geonn_nearest('obs_large', 'ref_large')}, '', of_all_places('obs_large', nearest_by_brute_force('places', 'ref_large')) ],
	[ 'many, read', 'large', q{geonn_nearest('obs_large', 'ref_read', k => 3)}, '', of_all_places('obs_large', nearest_by_brute_force('places', 'ref_read', k => 3)) ],
	[ 'many within', 'large', q{geonn_within('obs_large', 'ref_middle', 300000)}, '', of_all_places('obs_large', nearest_by_brute_force('places', 'ref_middle', radius => 300000)) ],
);

# what rows have to be for two answers to be the same; state is SQL for that of the references
# that move, where they are asked for
sub answer_sql
{
	my ($rows, $state) = @_;
	return "SELECT concat_ws(' ', " . ($state // 'NULL') . ", count(*), sum(hashint8extended(obs_id, ref_id)),
		sum(hashfloat8extended(distance, obs_id))) FROM $rows";
}

1;
