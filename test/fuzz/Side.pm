
# Side: one side of a case: random rows, and the relation or query that has
# them.  A side is a hash of
#   setup       SQL that creates what the side reads
#   arguments   what geonn is called with, as [type, SQL literal] each
#   options     names of columns for geonn's options, without obs_ or ref_
#   point, from  what brute force reads: see points_of
#   by          the names of its by columns
#   windows     SQL expressions of its windows, as ranges
#   radius      SQL expression of its radiuses; undef: it has none
#   named       arguments besides options, where it has some
#   id_name, id_type    the id column, its type of Types.pm
#   ids         its values as text, without NULL and long ones
#   unique      no two rows have equal ids, and none is NULL
#   valid       no coordinate is NaN, infinite or out of range
#   places      SQL expressions of some of its points, as [latitude, longitude]

package Side;

use strict;
use warnings;
use utf8;

use Exporter 'import';
use Points;
use Random;
use Types;
use Windows;

our @EXPORT = qw(make_side make_arrays points_of count_of_rows);

# names that only an option can tell
my @odd_names = ('key', 'Odd Name', 'quo"te', 'ünï', 'select', "apo'strophe", 'x');

sub identifier
{
	my ($name) = @_;

	$name =~ s/"/""/g;
	return qq("$name");
}

# an SQL expression of that type as float8
sub as_degrees
{
	my ($type, $expression) = @_;

	return $type =~ /^numeric/ ? "degrees_of($expression)" : "$expression\::float8";
}

# share of the rows to which something happens
sub share
{
	return weighted(0 => 65, 0.1 => 25, 0.5 => 8, 1 => 2);
}

sub count_of_rows
{
	return weighted(0 => 4, 1 => 6, between(2, 10) => 40, between(11, 40) => 50);
}

# ---- columns: {name, type, collation, values} ----

sub id_column
{
	my ($side, $rows, $type) = @_;
	my $unique = $type->{distinct} && chance(0.6);
	my @numbers = $unique ? shuffled(0 .. $rows - 1) : map { between(0, chance(0.5) ? 5 : $rows) } 1 .. $rows;
	my $nulls = share();
	my @values = map { chance($nulls) ? undef : $type->{value}->($_) } @numbers;

	$side->{id_type} = $type;
	$side->{ids} = [ grep { defined && length() < 200 } @values ];
	$side->{unique} = $unique && !grep { !defined } @values;
	return { type => $type->{type}, collation => $type->{collation}, values => \@values };
}

# The columns of the coordinates, and how brute force reads them.
sub coordinate_columns
{
	my ($side, $rows, $postgis) = @_;
	my ($nulls, $breaks) = (share(), share());
	my $form = weighted(columns => 85, point => 5, point_domain => 2, geometry => 4, geography => 4);
	my @type = $form eq 'columns' ? (coordinate_type(), coordinate_type()) : ('float8', 'float8');
	my @values = ([], []);

	$form = 'point' if $form =~ /^geo/ && !$postgis;
	$breaks = 0 if $form =~ /^geo/;

	# Z and M are not looked at
	my $dimensions = pick('', '', 'Z', 'M', 'ZM');
	my $more = ' 7' x length($dimensions);
	$side->{valid} = 1;
	for (1 .. $rows)
	{
		my @point = next_point();
		my $whole = 1;

		foreach my $which (0, 1)
		{
			$point[$which] = coordinate($type[$which], $point[$which]);
			if (chance($breaks / 2))
			{
				$point[$which] = broken_coordinate($type[$which], $which ? 'longitude' : 'latitude');
				$whole = $side->{valid} = 0;
			}
			elsif (chance($nulls / 2))
			{
				$point[$which] = undef;
				$whole = 0;
			}
			push @{ $values[$which] }, $point[$which];
		}
		push @{ $side->{places} }, [ map { as_degrees($type[$_], cast_to($type[$_], $point[$_])) } 0, 1 ] if $whole;
	}
	if ($form eq 'columns')
	{
		return map { { role => (qw(lat lon))[$_], type => $type[$_], values => $values[$_] } } 0, 1;
	}
	return {
		role => 'geog',
		type => $form =~ /^geo/ && chance(0.8) ? "$form(Point$dimensions,4326)" : $form,
		values => [
			map {
				my ($latitude, $longitude) = ($values[0][$_], $values[1][$_]);
				!defined $latitude ? undef
				  : !defined $longitude ? ($form =~ /^point/ ? undef : "SRID=4326;POINT $dimensions EMPTY")
				  : $form =~ /^point/ ? "($longitude,$latitude)"
				  : "SRID=4326;POINT $dimensions ($longitude $latitude$more)";
			} 0 .. $rows - 1
		]
	};
}

# Names as geonn finds them by itself, or by options.
sub name_columns
{
	my ($side, $rows, $id, $key, @coordinates) = @_;
	my @odd = shuffled(@odd_names);
	my @decoys;

	if ($key)
	{
		$id->{name} = pick('id', shift @odd);
	}
	elsif (chance(0.15))
	{
		$id->{name} = $side->{options}{id} = shift @odd;
	}
	else
	{
		$id->{name} = pick('id', 'id', 'id', 'ID', 'Id');
	}
	push @decoys, 'id' if lc($id->{name}) ne 'id' && chance(0.5);

	# an option for one of latitude and longitude goes with one for the other
	my $by_option = chance(0.2);
	foreach my $column (@coordinates)
	{
		if ($by_option)
		{
			$column->{name} = $side->{options}{ $column->{role} } = shift @odd;
			push @decoys, $column->{role} if $column->{role} ne 'geog' && chance(0.5);
		}
		else
		{
			$column->{name} = pick(
				$column->{role} eq 'lat' ? qw(lat lat latitude Latitude)
				: $column->{role} eq 'lon' ? qw(lon lon lng long longitude LON)
				: qw(geog place));
		}
	}
	return map {
		{ name => $_, type => pick(qw(text integer float8)), values => [ map { between(-50, 50) } 1 .. $rows ] }
	} @decoys;
}

# ---- relations ----

# a column's type with its collation, unless that is its domain's
sub typed
{
	my ($column) = @_;

	return $column->{type} if !$column->{collation} || $column->{type} =~ /domain/;
	return "$column->{type} COLLATE $column->{collation}";
}

# INSERT of some rows, given by their numbers
sub insert
{
	my ($table, $columns, @rows) = @_;

	return () unless @rows;
	return "INSERT INTO $table ("
	  . join(', ', map { identifier($_->{name}) } @$columns)
	  . ") VALUES\n\t"
	  . join(",\n\t",
		map { my $row = $_; '(' . join(', ', map { quoted($_->{values}[$row]) } @$columns) . ')' } @rows)
	  . ';';
}

# CREATE TABLE, now and then of one that had a column more
sub create_table
{
	my ($what, $table, $key, $rest, @columns) = @_;
	my @definitions = map { identifier($_->{name}) . ' ' . typed($_) } @columns;
	my $dropped = $rest !~ /PARTITION OF/ && chance(0.15);

	push @definitions, 'PRIMARY KEY (' . identifier($key->{name}) . ')' if $key;
	splice(@definitions, between(0, scalar @definitions), 0, 'dropped integer') if $dropped;
	return ("CREATE $what $table (" . join(', ', @definitions) . ")$rest;",
		$dropped ? "ALTER TABLE $table DROP COLUMN dropped;" : ());
}

# Create a relation of some kind; returns its name as SQL has it.
sub create_relation
{
	my ($side, $name, $rows, $key, @columns) = @_;
	my $relation = identifier(chance(0.2) ? ucfirst("$name table") : $name);
	my $base = "base_of_$name";
	my @half = map { chance(0.5) } 1 .. $rows;
	my @first = grep { $half[$_] } 0 .. $rows - 1;
	my @second = grep { !$half[$_] } 0 .. $rows - 1;
	my $kind = weighted(
		table => 55, view => 12, 'materialized view' => 4, union => 7, partitioned => 12, inherited => 6);
	my @setup;

	$kind = 'table' if $key;

	if ($kind eq 'table')
	{
		my $what = weighted(TABLE => 80, 'TEMPORARY TABLE' => 15, 'UNLOGGED TABLE' => 5);

		push @setup,
		  create_table($what, $relation, $key, '', @columns),
		  insert($relation, \@columns, 0 .. $rows - 1);
	}
	elsif ($kind eq 'partitioned')
	{
		my $part = { name => 'part', type => 'integer', values => [ map { $_ ? 1 : 2 } @half ] };

		@columns = shuffled(@columns, $part);
		push @setup,
		  create_table('TABLE', $relation, undef, ' PARTITION BY LIST (part)', @columns),
		  "CREATE TABLE $base PARTITION OF $relation FOR VALUES IN (1);",
		  create_table('TABLE', "other_$base", undef, '', shuffled(@columns)),
		  "ALTER TABLE $relation ATTACH PARTITION other_$base FOR VALUES IN (2);",
		  insert($relation, \@columns, 0 .. $rows - 1);
	}
	elsif ($kind eq 'inherited')
	{
		push @setup,
		  create_table('TABLE', $relation, undef, '', @columns),
		  "CREATE TABLE $base (more text) INHERITS ($relation);",
		  insert($relation, \@columns, @first),
		  insert($base, \@columns, @second);
	}
	else
	{
		my @names = map { identifier($_->{name}) } shuffled(@columns);
		my $select = 'SELECT ' . join(', ', @names) . ' FROM';
		my $other = "other_$base";

		push @setup, create_table('TABLE', $base, undef, '', @columns);
		if ($kind eq 'union')
		{
			push @setup,
			  insert($base, \@columns, @first),
			  create_table('TABLE', $other, undef, '', shuffled(@columns)),
			  insert($other, \@columns, @second),
			  "CREATE VIEW $relation AS $select $base UNION ALL $select $other;";
		}
		else
		{
			push @setup,
			  insert($base, \@columns, 0 .. $rows - 1),
			  "CREATE $kind $relation AS $select $base" . pick('', ' ORDER BY random()', ' WHERE true') . ';';
		}
	}
	push @setup, "ANALYZE $relation;" if chance(0.1) && $kind !~ /view|union/;
	push @{ $side->{setup} }, @setup;
	return $relation;
}

# A query whose rows are written in it.
sub query_of_values
{
	my ($rows, @columns) = @_;
	my @names = map { identifier($_->{name}) } @columns;
	my @rows = map {
		my $row = $_;
		[ map { cast_to(typed($_), $_->{values}[$row]) } @columns ]
	} 0 .. $rows - 1;
	my $select = sub {
		my @values = @_;
		return 'SELECT ' . join(', ', map { "$values[$_] AS $names[$_]" } 0 .. $#names);
	};

	return $select->(map { cast_to(typed($_), undef) } @columns) . ' WHERE false' unless @rows;
	return join("\nUNION ALL ", map { $select->(@$_) } @rows) if @rows < 4;
	return
	    'SELECT * FROM (VALUES '
	  . join(",\n\t", map { '(' . join(', ', @$_) . ')' } @rows)
	  . ') AS v('
	  . join(', ', @names) . ')';
}

sub query_of_relation
{
	my ($relation, @columns) = @_;
	my $names = join(', ', map { identifier($_->{name}) } @columns);

	return pick(
		"TABLE $relation",
		"SELECT $names FROM $relation",
		"SELECT $names FROM $relation ORDER BY random() -- in no order",
		"WITH points AS (SELECT * FROM $relation)\nSELECT $names FROM points\n",
		"(SELECT $names, 'junk' AS junk FROM $relation LIMIT 2000)");
}

# ---- sides ----

# The columns with windows and radiuses, and how brute force reads them.
sub limit_columns
{
	my ($side, %option) = @_;
	my @columns;

	foreach my $window (@{ $option{windows} })
	{
		my $type = $window->{ $option{name} };
		my $nulls = share();

		push @columns,
		  {
			name => $window->{name},
			type => $type->[0],
			values => [ map { chance($nulls) ? undef : random_window($type) } 1 .. $option{rows} ]
		  };
		push @{ $side->{windows} }, window_of($window->{family}, $type, identifier($window->{name}));
	}
	if ($option{radius})
	{
		my $column = radius_column($option{rows});

		$column->{name} = $side->{options}{radius} = pick('metres', 'Walks "m"');
		$side->{radius} = radius_of(identifier($column->{name}));
		push @columns, $column;
	}
	return @columns;
}

# the SQL expression of a coordinate as float8
sub degrees_of
{
	my ($column, $role) = @_;
	my $name = identifier($column->{name});

	return $name . ($role eq 'lat' ? '[1]' : '[0]') if $column->{type} =~ /^point/;
	return ($role eq 'lat' ? 'ST_Y' : 'ST_X') . "($name\::geometry)" if $column->{role} eq 'geog';
	return as_degrees($column->{type}, $name);
}

# A side:
#   name      obs or ref
#   rows      how many
#   id_type   of Types.pm
#   by        by columns, as {name, type, choices}
#   windows   columns of overlaps, as Windows.pm has them
#   radius    whether it has a column of radiuses
#   query     whether it is a query, else a relation
#   postgis   whether the server has it
sub make_side
{
	my (%option) = @_;
	my $rows = $option{rows};
	my $side = { setup => [], options => {}, places => [] };
	my $id = id_column($side, $rows, $option{id_type});
	my @coordinates = coordinate_columns($side, $rows, $option{postgis});
	my $fits_an_index = !grep { length($_ // '') > 2000 } @{ $id->{values} };
	my $key = !$option{query} && $side->{unique} && $fits_an_index && chance(0.5) ? $id : undef;
	my @decoys = name_columns($side, $rows, $id, $key, @coordinates);
	my @by;
	my @columns;
	my $source;

	foreach my $by (@{ $option{by} })
	{
		my ($type, $collation) = $by->{type} =~ /^(.*?)(?: COLLATE (.*))?$/;
		my $nulls = share();

		push @by,
		  {
			name => $by->{name},
			type => $type,
			collation => $collation,
			values => [ map { chance($nulls) ? undef : pick(@{ $by->{choices} }) } 1 .. $rows ]
		  };
	}
	my @limits = limit_columns($side, %option);
	push @decoys, { name => 'remark', type => 'text', values => [ map { pick(undef, 'junk') } 1 .. $rows ] }
	  if chance(0.3);
	@columns = shuffled($id, @coordinates, @by, @limits, @decoys);

	if (!$option{query})
	{
		$source = create_relation($side, $option{name}, $rows, $key, @columns);
		$side->{arguments} = [ [ regclass => quoted($source) . pick('', '::regclass') ] ];
	}
	else
	{
		$source =
		  $rows <= 40 && chance(0.4)
		  ? query_of_values($rows, @columns)
		  : query_of_relation(create_relation($side, $option{name}, $rows, undef, @columns), @columns);
		$side->{arguments} = [ [ text => quoted($source) ] ];
		$source = "($source\n) AS query";
	}
	$side->{id_name} = $id->{name};
	$side->{by} = [ map { $_->{name} } @by ];
	$side->{from} = $source;
	$side->{point} =
	    identifier($id->{name})
	  . ' AS id, '
	  . degrees_of($coordinates[0], 'lat')
	  . ' AS lat, '
	  . degrees_of($coordinates[-1], 'lon') . ' AS lon';
	return $side;
}

# The observations of geonn_nearest_points: arguments are two arrays, and a third one, named, where
# a column of overlaps is given.
sub make_arrays
{
	my ($rows, $window) = @_;
	my ($nulls, $breaks) = (share(), share());
	my $side = { setup => [], options => {}, places => [], valid => 1, unique => 1 };
	my @arrays = ([], []);

	for (1 .. $rows)
	{
		my @point = next_point();

		push @{ $side->{places} }, [@point];
		foreach my $which (0, 1)
		{
			my $broken = chance($breaks / 2);

			$side->{valid} = 0 if $broken;
			push @{ $arrays[$which] },
			  $broken ? broken_coordinate('float8', $which ? 'longitude' : 'latitude')
			  : chance($nulls / 2) ? 'NULL'
			  : $point[$which];
		}
	}
	my @literals = map {
		my $bounds = @$_ && chance(0.05) ? '[7:' . (6 + @$_) . ']=' : '';
		quoted($bounds . '{' . join(',', @$_) . '}') . '::float8[]';
	} @arrays;
	$side->{arguments} = [ map { [ 'float8[]' => $_ ] } @literals ];
	$side->{id_type} = { type => 'bigint', family => 'integer' };
	$side->{ids} = [ 1 .. $rows ];
	$side->{by} = [];
	$side->{point} = 'id, lat, lon';
	if ($window)
	{
		my $type = $window->{obs};
		my $share = share();
		my $array = quoted(array_of(map { chance($share) ? undef : random_window($type) } 1 .. $rows)) . "::$type->[0]\[]";

		push @literals, $array;
		$side->{named}{windows} = $array;
		$side->{windows} = [ window_of($window->{family}, $type, 'window_of_point') ];
	}
	$side->{from} = 'unnest(' . join(', ', @literals) . ') WITH ORDINALITY AS point(lat, lon, '
	  . ($window ? 'window_of_point, ' : '') . 'id)';
	return $side;
}

# The query of brute force for all rows of a side: id, lat, lon, radius, by0..., window0...
sub points_of
{
	my ($side) = @_;
	my @by = @{ $side->{by} };

	my @windows = @{ $side->{windows} // [] };

	return join(', ', "SELECT $side->{point}",
		($side->{radius} // q('Infinity'::float8)) . ' AS radius',
		(map { identifier($by[$_]) . " AS by$_" } 0 .. $#by),
		map { "$windows[$_] AS window$_" } 0 .. $#windows)
	  . " FROM $side->{from}";
}

1;
