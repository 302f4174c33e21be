
# Points of PostGIS's types and of PostgreSQL's own, in tables of any layout: what reads a table by its pages finds in each row
# what the executor's rows give, and says the same of rows that are no points.
#
# needs: postgis
# rooms: points join

use strict;
use warnings;

use Geonn qw(:DEFAULT query);
use Test::More;

my $seed = $ENV{GEONN_SEED} // int(rand(1 << 30));
diag("seed $seed");
srand($seed);

my $node = new_server('points_by_page');
query('CREATE EXTENSION postgis');

# SQL of a value of a type, mostly a point, and now and then none of SRID 4326
sub value
{
	my ($type, $oddities) = @_;
	my ($lon, $lat) = (rand() < 0.02 ? pick(500, "'nan'::float8") : int(rand(36000)) / 100 - 180, int(rand(18000)) / 100 - 90);
	my $point = "ST_SetSRID(ST_MakePoint($lon, $lat), 4326)";

	return 'NULL' if rand() < 0.03;
	return "point($lon, $lat)" if $type eq 'point';
	return "'SRID=4326;POINT EMPTY'::$type" if rand() < 0.03;
	return 'ST_SetSRID(ST_MakePoint(1, 2), 3857)' if $oddities eq 'srid' && rand() < 0.002;
	return "'SRID=4326;LINESTRING(0 0, 1 1)'::$type" if $oddities eq 'shape' && rand() < 0.002;
	$point = "ST_Force3DZ($point)" if $type !~ /,/ && rand() < 0.1;
	$point = "ST_Force4D($point)" if $type !~ /,/ && rand() < 0.1;
	return "${point}::$type";
}

# A table of random columns before and behind the id and the point; some rows are deleted, one column may be dropped.
sub make_table
{
	my ($name, $rows, $type, $oddities) = @_;
	my @before = map { [ "c$_", pick('integer', 'text', 'smallint', 'boolean', 'bigint') ] } 1 .. int(rand(3));
	my $id = [ 'id', pick('integer', 'bigint', 'text') ];
	my @columns = (@before, rand() < 0.5 ? ($id, [ 'geom', $type ]) : ([ 'geom', $type ], $id), [ 'last', 'text' ]);
	my %text = (integer => sub { int(rand(1e9)) }, bigint => sub { int(rand(1e15)) }, smallint => sub { int(rand(3e4)) },
		boolean => sub { pick('true', 'false') }, text => sub { "'" . 'x' x pick(0, 1, 3, 7, 130, 400) . "'" });
	my $number = 0;

	query("CREATE TABLE $name (" . join(', ', map { "$_->[0] $_->[1]" } @columns) . ')');
	query("ALTER TABLE $name ALTER geom SET STORAGE " . pick('PLAIN', 'MAIN', 'EXTERNAL')) if $type ne 'point' && rand() < 0.5;
	foreach (1 .. $rows / 100)
	{
		my @rows = map {
			$number++;
			'(' . join(', ', map {
					my ($column, $of) = @$_;
					$column eq 'geom' ? value($type, $oddities) : $column eq 'id' ? (rand() < 0.02 ? 'NULL' : "'$number'") :
					  rand() < 0.1 ? 'NULL' : $text{$of}->();
			} @columns) . ')';
		} 1 .. 100;
		query("INSERT INTO $name VALUES " . join(', ', @rows));
	}
	query("ALTER TABLE $name DROP COLUMN $before[0][0]") if @before && rand() < 0.3;
	query("DELETE FROM $name WHERE random() < 0.05");
	return;
}

# the rows of a statement, and its error
sub outcome
{
	my ($status, $rows, $said) = $node->psql('postgres', @_);

	return ($rows, $said =~ /ERROR: +(.*)/);
}

my ($wrong, $errors, $points) = (0, 0, 0);

foreach my $round (1 .. 24)
{
	my $oddities = pick('none', 'none', 'srid', 'shape');
	my $type = $oddities eq 'none' ? pick('geometry(Point,4326)', 'geography(Point,4326)', 'geometry', 'geography', 'point') : 'geometry';

	make_table('asking', 600, $type, $oddities eq 'shape' ? pick('none', 'shape') : $oddities);
	make_table('asked', 600, $type, $oddities);
	foreach my $invalid ('skip', 'error')
	{
		my $sql = "SELECT obs_id, ref_id, distance FROM %s, k => 2, invalid => '$invalid', keep_unmatched => true) ORDER BY 1, 2, 3";
		my ($rows, $error) = outcome(sprintf($sql, "geonn_nearest('asking', 'asked'"));
		my ($other_rows, $other_error) =
		  outcome(sprintf($sql, "geonn_nearest_sql('SELECT id, geom FROM asking LIMIT 100000', 'SELECT id, geom FROM asked LIMIT 100000'"));
		my $same = $rows eq $other_rows && defined($error) eq defined($other_error);

		$points += () = $rows =~ /\n/g;
		$errors++ if defined $error;
		next if $same;
		$wrong++;
		diag("round $round, $type, $oddities, invalid $invalid: " . join("\n", map { $_ // 'no error' } $error, $other_error));
	}
	query('DROP TABLE asking, asked');
}
is($wrong, 0, 'tables read by their pages give what rows of the executor give');
cmp_ok($points, '>', 5000, "$points rows were compared");
cmp_ok($errors, '>', 0, "$errors statements met errors");
$node->stop;
done_testing();
