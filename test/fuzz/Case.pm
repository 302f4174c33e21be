
# Case: one random call of geonn, and the same by brute force in SQL.  Form.pm writes it
# once more, as part of a larger statement.
#
# Brute force is the definition word by word: for each observation the
# references in the order (geonn_distance, id, latitude, longitude, bytes).  It shares
# geonn_distance with what it checks, and nothing else.  It numbers the
# observations (number) and the neighbours of each (place).
#
# Two answers are the same if they have the same observations, each as often,
# and each with the same rows in the same order; the rows of an observation come
# one after the other.  An observation's rows are told apart by a rank that
# begins anew, else by an id that no other has.  Where the columns asked for
# have neither, rows are compared one by one.  Distances are equal to the last
# bit; ids are equal as their type has it, and look the same.  Bearings are compared with spherical
# trigonometry, to a millionth of a degree.

package Case;

use strict;
use warnings;
use utf8;

use Exporter 'import';
use Form;
use Points;
use Random;
use Side;
use Types;
use Windows;

our @EXPORT = qw($create_functions make_case);

our $create_functions = <<'SQL';
-- a number beyond float8's range is an error of the cast
CREATE FUNCTION degrees_of(value numeric) RETURNS float8 IMMUTABLE LANGUAGE sql AS $$
	SELECT CASE WHEN value = 'NaN' THEN 'NaN'
		WHEN value > 1e300 THEN 'Infinity'
		WHEN value < -1e300 THEN '-Infinity'
		WHEN abs(value) < 1e-305 THEN sign(value)::float8 * 0
		ELSE value::float8 END
$$;
-- without the error of an underflow
CREATE FUNCTION sine(degrees float8) RETURNS float8 IMMUTABLE LANGUAGE sql AS $$
	SELECT CASE WHEN abs(degrees) < 1e-100 THEN 0 ELSE sind(degrees) END
$$;
-- whether a bearing is what spherical trigonometry has, where that is certain
CREATE FUNCTION bearing_is_right(
	bearing float8, lat1 float8, lon1 float8, lat2 float8, lon2 float8, sphere boolean)
RETURNS boolean IMMUTABLE LANGUAGE sql AS $$
	SELECT CASE
		WHEN lat2 IS NULL THEN bearing IS NULL
		WHEN lat1 = lat2 AND lon1 = lon2 THEN bearing IS NULL
		WHEN bearing IS NULL THEN geonn_distance(lat1, lon1, lat2, lon2) < 0.001
		WHEN NOT (bearing >= 0 AND bearing < 360) THEN false
		WHEN geonn_distance(lat1, lon1, lat2, lon2)
			NOT BETWEEN 1 AND CASE WHEN sphere THEN 20015085 ELSE 5000000 END THEN true
		ELSE abs(mod((bearing - degrees(atan2(
				sine(lon2 - lon1) * cosd(lat2),
				cosd(lat1) * sine(lat2) - sine(lat1) * cosd(lat2) * cosd(lon2 - lon1))))::numeric + 540, 360) - 180)
			< CASE WHEN sphere THEN 0.000001 ELSE 0.5 END
		END
$$;
SQL

sub valid
{
	my ($point) = @_;

	return "$point.lat BETWEEN -90 AND 90 AND $point.lon BETWEEN -180 AND 360";
}

# of arguments that have a name in the call; row_type takes what type the rows have
my %argument_types = (
	k => 'integer',
	max_distance => 'float8',
	(map { $_ => 'name[]' } qw(by differs overlaps)),
	(map { $_ => 'boolean' } qw(exclude_self keep_unmatched)),
	(map { $_ => 'text' } qw(metric ties invalid)),
	options => 'jsonb');

# settings that change no answer
my @settings = (
	"SET LOCAL work_mem = '64kB';",
	"SET LOCAL geonn.algorithm = 'brute';",
	"SET LOCAL geonn.algorithm = 'index';",
	"SET LOCAL min_parallel_table_scan_size = 0;",
	"SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0;",
	q{SELECT set_config(name, 'on', true) FROM pg_settings
	WHERE name IN ('force_parallel_mode', 'debug_parallel_query');});

# ---- arguments ----

sub random_k
{
	return weighted(
		1 => 40, between(2, 5) => 30, between(6, 40) => 15, between(41, 200) => 8, 1023 => 2, 1024 => 5);
}

# The row type: SQL that creates it, its expression, the types of columns, its columns.
sub row_type
{
	my ($obs_id, $obs, $ref) = @_;
	my %type = (
		distance => 'double precision',
		rank => pick('integer', 'bigint'),
		map { $_ => 'float8' } qw(obs_lat obs_lon ref_lat ref_lon bearing));
	my @columns = grep { chance(0.5) } qw(distance rank obs_lat obs_lon ref_lat ref_lon bearing);

	push @columns, $obs_id if chance(0.85);
	push @columns, 'ref_id' if chance(0.9);
	if ((grep { $_ eq 'bearing' } @columns) && chance(0.8))
	{
		my %has = map { $_ => 1 } @columns;
		push @columns, grep { !$has{$_} } qw(obs_lat obs_lon ref_lat ref_lon);
	}
	@columns = ('distance') unless @columns;
	@columns = shuffled(@columns);

	$type{ord} = 'bigint';
	foreach my $side ([ obs_id => $obs ], [ ref_id => $ref ])
	{
		my ($name, $id) = ($side->[0], $side->[1]{id_type}) or next;

		next unless $id;
		$type{$name} = pick($id->{type}, @{ $id->{result} // [] });
		$type{$name} .= " COLLATE $id->{collation}" if $id->{collation} && $id->{type} !~ /domain/;
	}
	my @definitions = map { "$_ $type{$_}" } @columns;
	my $create = 'CREATE TYPE answer_row AS (' . join(', ', @definitions) . ');';

	if (chance(0.2))
	{
		# a table's row type may have columns that were dropped
		splice(@definitions, between(0, scalar @definitions), 0, 'dropped integer');
		$create = 'CREATE TABLE answer_row (' . join(', ', @definitions) . ");\n"
		  . 'ALTER TABLE answer_row DROP COLUMN dropped;';
	}
	return ($create, 'NULL::answer_row', \%type, @columns);
}

sub json
{
	my (%value) = @_;
	my @members;

	foreach my $key (shuffled(sort keys %value))
	{
		my $text = $value{$key};

		$text =~ s/(["\\])/\\$1/g;
		$text = qq("$text") if $text !~ /^\d+$/;
		push @members, qq("$key": $text);
	}
	return '{' . join(', ', @members) . '}';
}

# columns of by and differs, as make_side has them
sub random_by
{
	my @names = shuffled('b', 'Group', 'region', 'kind "of"');
	my @by;

	for (1 .. weighted(0 => 60, 1 => 25, 2 => 10, 3 => 5))
	{
		my ($type, @choices) = by_type();
		push @by, { name => shift(@names), type => $type, choices => \@choices };
	}
	return @by;
}

# The arguments of a call, as [name or '', type or undef, SQL]: those by position, and named ones
# in any order.
sub arguments
{
	my ($positional, %named) = @_;

	return ((map { [ '', @$_ ] } @$positional),
		map { [ $_, $argument_types{$_}, $named{$_} ] } shuffled(sort keys %named));
}

# ---- brute force ----

sub brute_force
{
	my ($case) = @_;
	my ($obs, $ref) = @$case{qw(obs ref)};
	my %expression = (
		$case->{obs_id} => 'o.id',
		ref_id => 'a.id::' . ($case->{types}{ref_id} =~ s/ COLLATE .*//r),
		distance => 'a.distance',
		rank => 'coalesce(a.place, 1)',
		obs_lat => 'o.lat',
		obs_lon => 'o.lon',
		ref_lat => 'a.lat',
		ref_lon => 'a.lon',
		bearing => 'NULL::float8');
	my $differ_from = @{ $obs->{by} } - $case->{differs};
	my @conditions = map { "o.by$_ " . ($_ < $differ_from ? '=' : '<>') . " r.by$_" } 0 .. $#{ $obs->{by} };
	my $within = defined $case->{radius} ? "distance <= $case->{radius}" : 'distance IS NOT NULL';
	my $first = !$case->{k} ? 'true' : ($case->{all} ? 'level' : 'place') . " <= $case->{k}";

	push @conditions, map { "o.window$_ && r.window$_" } 0 .. $#{ $ref->{windows} // [] };
	push @conditions, 'NOT (o.id = r.id)' if $case->{exclude_self};
	push @conditions, 'true' unless @conditions;
	return
	    "WITH o AS MATERIALIZED (\n"
	  . "\tSELECT row_number() OVER () AS number, point.* FROM (${\ points_of($obs) }) AS point),\n"
	  . "r AS MATERIALIZED (\n\tSELECT * FROM (${\ points_of($ref) }) AS point\n\tWHERE point.id IS DISTINCT FROM NULL AND "
	  . valid('point') . ")\n"
	  . 'SELECT o.number, coalesce(a.place, 1) AS place, '
	  . join(', ', map { "$expression{$_} AS $_" } @{ $case->{columns} })
	  . "\nFROM o " . ($case->{keep} ? 'LEFT' : 'INNER') . " JOIN LATERAL (\n"
	  . "\tSELECT *, row_number() OVER (ORDER BY distance, id, lat, lon,\n"
	  . "\t\t\tROW(lat, lon, id) USING OPERATOR(pg_catalog.*<)) AS place,\n"
	  . "\t\trank() OVER (ORDER BY distance) AS level\n"
	  . "\tFROM (SELECT r.*, CASE WHEN o.id IS DISTINCT FROM NULL AND " . valid('o')
	  . " THEN geonn_distance(o.lat, o.lon, r.lat, r.lon, '$case->{metric}') END AS distance\n"
	  . "\t\tFROM r WHERE " . join(' AND ', @conditions) . ") AS pair\n"
	  . "\tWHERE $within AND distance <= least(o.radius, radius)) AS a ON $first";
}

# The table of brute force's rows, as geonn's row type has them.
sub expected_table
{
	my ($case) = @_;

	return
	    'CREATE TEMPORARY TABLE expected (number bigint, place bigint, '
	  . join(', ', map { "$_ $case->{types}{$_}" } @{ $case->{columns} }) . ");\n"
	  . "INSERT INTO expected\n$case->{brute_force};\n";
}

# One row: whether both answers are the same.
sub comparison
{
	my ($case) = @_;
	my %has = map { $_ => 1 } @{ $case->{columns} };
	my $collation = $case->{ref}{id_type}{collation} // '';
	my %compared = (
		$case->{obs_id} => "$case->{obs_id}::text COLLATE \"C\"",
		ref_id => 'ref_id'
		  . ($collation ? " COLLATE $collation" : '')
		  . ', ref_id::text COLLATE "C"',
		rank => 'rank::bigint',
		obs_lat => 'obs_lat::text',
		obs_lon => 'obs_lon::text',
		ref_lat => 'ref_lat::text',
		ref_lon => 'ref_lon::text',
		bearing => 'NULL::float8');
	my $row = 'ROW(0, ' . join(', ', map { $compared{$_} // $_ } @{ $case->{columns} }) . ')';
	my ($observation, $number) =
	    $has{rank} ? ('count(*) FILTER (WHERE rank = 1) OVER (ORDER BY nth)', 'number')
	  : $has{ $case->{obs_id} } && $case->{obs}{unique}
	  ? ("ROW($case->{obs_id}, nth - row_number() OVER (PARTITION BY $case->{obs_id} ORDER BY nth))", 'number')
	  : ('nth', 'number, place');
	my $bearings =
	  !$has{bearing} ? 'false'
	  : (grep { !$has{$_} } qw(obs_lat obs_lon ref_lat ref_lon))
	  ? 'EXISTS (SELECT FROM answer WHERE bearing NOT BETWEEN 0 AND 360)'
	  : 'EXISTS (SELECT FROM answer WHERE bearing_is_right(bearing, obs_lat, obs_lon, ref_lat, ref_lon, '
	  . ($case->{metric} eq 'sphere' ? 'true' : 'false')
	  . ') IS NOT TRUE)';

	return <<"SQL";
WITH answer AS MATERIALIZED (
SELECT * FROM $case->{call} WITH ORDINALITY AS answer(${\ join(', ', @{ $case->{columns} }, 'nth') })),
answered AS MATERIALIZED (
SELECT array_agg($row ORDER BY nth) AS neighbours
FROM (SELECT *, $observation AS observation FROM answer) AS answer GROUP BY observation),
wanted AS MATERIALIZED (
SELECT array_agg($row ORDER BY place) AS neighbours FROM expected GROUP BY $number)
SELECT '$case->{name}', CASE
	WHEN EXISTS (TABLE answered EXCEPT ALL TABLE wanted) THEN 'differs'
	WHEN EXISTS (TABLE wanted EXCEPT ALL TABLE answered) THEN 'differs'
	WHEN $bearings THEN 'has another bearing'
	ELSE 'is the same' END,
	(SELECT count(*) FROM answer);
SQL
}

# ---- cases ----

# A case of this seed and number:
#   name         to tell it by in what the comparison returns
#   setup        SQL that creates what it reads, and its row type
#   call         of geonn, as FROM has it
#   brute_force  the query whose rows it should return
#   expected     SQL that creates a table of those
#   comparison   a query of both: the name, how they compare, rows
#   form         of Form.pm, which compares once more
sub make_case
{
	my ($seed, $number, $postgis) = @_;

	begin_case($seed, $number);
	begin_points();

	my $function = weighted(nearest => 44, nearest_sql => 15, within => 18, within_sql => 8, nearest_points => 15);
	my $query = $function =~ /_sql/;
	my $points = $function eq 'nearest_points';
	my %case = (name => "case $number", obs_id => $points ? 'ord' : 'obs_id', setup => []);
	my $default_row = chance(0.25);
	my @by = $points ? () : random_by();
	my $differs = !@by ? 0 : weighted(0 => 50, 1 => 35, (@by > 1 ? 2 : 1) => 15);
	my @overlaps = random_windows($points ? 1 : 3);
	my ($obs_rows, $ref_rows) = (count_of_rows(), count_of_rows());
	my ($obs_type, $ref_type) = (id_type(integer => $default_row), id_type(integer => $default_row));
	my %named;

	$case{differs} = $differs;
	$case{exclude_self} = !$points && chance(0.25);
	$ref_type = id_type_comparable_with($obs_type) if $case{exclude_self} && !id_types_equal($obs_type, $ref_type);
	($obs_rows, $ref_rows) = shuffled(1100, between(0, 40)) if chance(0.01);
	my %both = (by => \@by, windows => \@overlaps, query => $query, postgis => $postgis);

	if ($points)
	{
		$case{obs} = make_arrays($obs_rows, @overlaps);
	}
	else
	{
		$case{obs} = make_side(%both, name => 'obs', rows => $obs_rows, id_type => $obs_type, radius => chance(0.15));
	}
	if (!$points && $obs_rows < 200 && chance($case{exclude_self} ? 0.4 : 0.05))
	{
		$case{ref} = $case{obs};
		push @{ $case{setup} }, @{ $case{obs}{setup} };
	}
	else
	{
		$case{ref} = make_side(%both, name => 'ref', rows => $ref_rows, id_type => $ref_type, radius => chance(0.15));
		push @{ $case{setup} }, @{ $case{obs}{setup} }, @{ $case{ref}{setup} };
	}

	# the ids may be a group column, too
	if (  !$points
		&& $case{obs}{id_name} eq $case{ref}{id_name}
		&& id_types_equal($obs_type, $case{ref}{id_type})
		&& chance(0.05))
	{
		unshift @by, { name => $case{obs}{id_name} };
		$_->{by} = [ map { $_->{name} } @by ] foreach @case{qw(obs ref)};
	}

	# what the call and brute force both follow
	$case{metric} = weighted(sphere => 80, spheroid => 20);
	$named{metric} = quoted($case{metric}) if $case{metric} ne 'sphere' || chance(0.2);
	if ($function =~ /within/)
	{
		my $limited = $case{obs}{radius} || $case{ref}{radius};

		$case{radius} = random_distance(@case{qw(obs ref metric)}) unless $limited && chance(0.4);
	}
	else
	{
		$case{radius} = random_distance(@case{qw(obs ref metric)}) if chance(0.4);
		$case{k} = random_k();
		$named{k} = $case{k} if $case{k} != 1 || chance(0.3);
		$named{max_distance} = $case{radius} // 'NULL' if defined $case{radius} || chance(0.1);
		$case{all} = chance(0.3);
		$named{ties} = $case{all} ? "'all'" : "'first'" if $case{all} || chance(0.2);
	}
	$named{overlaps} = 'ARRAY[' . join(', ', map { quoted($_->{name}) } @overlaps) . ']::name[]' if @overlaps;
	%named = (%named, %{ $case{obs}{named} // {} });
	if (!$points)
	{
		my @names = map { quoted($_->{name}) } @by;
		my @differ = splice(@names, @names - $differs);

		$named{by} = 'ARRAY[' . join(', ', @names) . ']' . pick('', '::name[]') if @names;
		$named{by} = 'NULL' if !@names && chance(0.1);
		$named{differs} = 'ARRAY[' . join(', ', @differ) . ']' . pick('', '::name[]') if @differ;
		$named{differs} = 'NULL' if !@differ && chance(0.1);
		$named{exclude_self} = $case{exclude_self} ? 'true' : 'false' if $case{exclude_self} || chance(0.1);
	}
	$case{keep} = chance(0.35);
	$named{keep_unmatched} = $case{keep} ? 'true' : 'false' if $case{keep} || chance(0.1);
	$named{invalid} = $case{obs}{valid} && $case{ref}{valid} && chance(0.5) ? "'error'" : "'skip'" if chance(0.4);

	# what must not change anything, and the names of columns
	my %options;
	$options{algorithm} = pick('auto', 'index', 'brute') if chance(0.3);
	$options{batch_rows} = weighted(1 => 30, between(2, 9) => 40, 1048576 => 30) if chance(0.3);
	foreach my $side (qw(obs ref))
	{
		my $named = $case{$side}{options};
		$options{"${side}_$_"} = $named->{$_} foreach keys %$named;
	}
	$named{options} = quoted(json(%options)) if %options;

	if ($default_row && chance(0.8))
	{
		@{ $case{columns} } = ($case{obs_id}, 'ref_id', 'distance');
		$case{types} = { $case{obs_id} => 'bigint', ref_id => 'bigint', distance => 'float8' };
	}
	else
	{
		my ($create, $expression, $types, @columns) = row_type($case{obs_id}, @case{qw(obs ref)});
		push @{ $case{setup} }, $create;
		$named{row_type} = $expression;
		if (chance(0.4))
		{
			$named{row_type} = 'NULL::record';
			$case{list} = join(', ', map { "$_ $types->{$_}" } @columns);
		}
		$case{types} = $types;
		$case{columns} = \@columns;
	}

	my @positional = (@{ $case{obs}{arguments} }, @{ $case{ref}{arguments} });
	push @positional, [ float8 => $case{radius} // 'NULL' ] if $function =~ /within/;
	push @positional, [ integer => delete $named{k} ] if $function !~ /within/ && $named{k} && chance(0.5);
	$case{function} = "geonn_$function";
	$case{arguments} = [ arguments(\@positional, %named) ];
	$case{call} = call_of(\%case, sub { $_[1] });
	push @{ $case{setup} }, $settings[ rand(@settings) ] if chance(0.1);
	$case{setup} = join("\n", @{ $case{setup} });
	$case{brute_force} = brute_force(\%case);
	$case{expected} = expected_table(\%case);
	$case{comparison} = comparison(\%case);
	$case{form} = make_form(\%case);
	return \%case;
}

1;
