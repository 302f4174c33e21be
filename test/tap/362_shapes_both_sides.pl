
# Lines, polygons and any other shapes ask for the nearest shapes, for all within a distance and for counts, and the
# answers are those of geonn_distance(geography, geography) in plain SQL, to the last bit: of each kind of observations
# with each kind of references, in columns whose type names the kind and in columns of any values, with points of
# latitude and longitude as references, and with conditions that columns of both sides must meet.  Shapes are those of
# test 198; some observations are references, too.  Batches have one row, seven, and as many as they like; the engine
# has one thread and four, an index and brute force; plans have workers and have none.
#
# The seed is in the names of the tests; GEONN_SHAPES_SEED gives it again.
#
# short form: 20 of 600 sets
#
# needs: postgis
# rooms: points join plan engine/cpu/arcs engine/cpu/counts

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../fuzz";

use Geonn;
use Random;
use Shapes;
use Test::More;

my $sets = $ENV{GEONN_SHAPES_SETS} // ($ENV{GEONN_LONG} ? 600 : 20);
my $seed = $ENV{GEONN_SHAPES_SEED} // int(rand(1_000_000));
my @id_types = ('bigint', 'integer', 'text', 'uuid');
my $workers = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';

# a kind of observations that is not points alone, and one of references, which may have a latitude and longitude each
sub some_kinds
{
	return (pick(grep { $_ ne 'point' } @shape_kinds), pick(@shape_kinds, 'coordinates')) if chance(0.9);
	return ('point', pick(grep { $_ ne 'point' } @shape_kinds));
}

# The type of a column of shapes: one that names their kind, or one that has any.
sub column_type
{
	my ($kind) = @_;
	my $type = type_of_kind($kind);

	return pick("geography($type)", "geometry($type, 4326)", 'geography', 'geometry');
}

# a shape of this kind, or the coordinates of a point, as SQL
sub place_values
{
	my ($kind) = @_;
	my $shape = $kind eq 'coordinates' ? undef : shape_of($kind);

	return sprintf('%.17g, %.17g', @{ some_place() }) if $kind eq 'coordinates';
	return defined $shape ? "'SRID=4326;$shape'" : 'NULL';
}

# The option that names the column of a side, where it is neither needed nor wrong.
sub shape_option
{
	my ($side, $kind) = @_;

	return $kind ne 'coordinates' && $kind ne 'point' && chance(0.3) ? qq("${side}_shape": "g") : ();
}

# rows of ids, conditions, and what these subs return
sub rows_of
{
	my ($count, $id_type, $values) = @_;
	my @ids = chance(0.5) ? 1 .. $count : shuffled(1 .. $count);

	return join(",\n", map { sprintf('(%s, %s, %s)', id_of($id_type, $_), condition_values(), $values->()) } @ids);
}

my $node = new_server('shapes_both_sides', preload => 1);
$node->safe_psql('postgres', 'CREATE EXTENSION postgis; CREATE TYPE floatrange AS RANGE (subtype = float8)');

sub make_tables
{
	my ($id_type, $asks, $answers) = @_;
	my $places = $answers eq 'coordinates' ? 'lat float8, lon float8' : 'g ' . column_type($answers);
	my $distance = $answers eq 'coordinates' ? 'geonn_distance(s.lat, s.lon, o.g)' : 'geonn_distance(o.g::geography, s.g::geography)';
	my $own = $asks eq $answers && chance(0.3) ? 'SELECT id, zone, owner, colour, hour, span, reach, g::geometry FROM shape' : undef;
	my $references = rows_of(pick(1, 3, 30, between(1, 60)), $id_type,
		sub { return (chance(0.8) ? between(-800, 800) / 16 : 'NULL') . ', ' . place_values($answers); });
	my $observations = $own // 'VALUES ' . rows_of(between(1, 60), $id_type, sub { return place_values($asks); });

	$node->safe_psql(
		'postgres', qq{
		DROP TABLE IF EXISTS obs, shape, pair;
		CREATE TABLE shape (id $id_type PRIMARY KEY, $condition_columns, weight float8, $places);
		CREATE TABLE obs (id $id_type PRIMARY KEY, $condition_columns, g @{[ column_type($asks) ]}) WITH (parallel_workers = 2);
		INSERT INTO shape VALUES $references;
		INSERT INTO obs $observations;
		CREATE TABLE pair AS SELECT o.id AS obs_id, s.*, $distance AS d FROM obs o, shape s;
		CREATE INDEX ON pair (obs_id)});
	return;
}

foreach my $set (1 .. $sets)
{
	begin_case($seed, $set);
	begin_set();
	my ($asks, $answers) = some_kinds();
	my $id_type = pick(@id_types);

	make_tables($id_type, $asks, $answers);
	$node->safe_psql('postgres', 'ALTER SYSTEM SET geonn.cpu_threads = ' . pick(1, 4));
	$node->reload;
	foreach my $ask ((\&ask_neighbours) x 3, \&ask_counts)
	{
		my @options = (shape_option('obs', $asks), shape_option('ref', $answers),
			@{ pick([], ['"batch_rows": 1'], ['"batch_rows": 7'], [ '"batch_rows": ' . between(8, 300) ]) },
			@{ pick([], ['"algorithm": "brute"'], ['"algorithm": "index"']) });

		$ask->($node, "seed $seed, set $set, $asks × $answers", $id_type,
			options => \@options,
			settings => $workers . 'SET max_parallel_workers_per_gather = ' . pick(0, 2) . ';',
			of_queries => chance(0.3),
			has_place => 'o.g IS NOT NULL AND NOT ST_IsEmpty(o.g::geometry)');
	}
}

done_testing();
