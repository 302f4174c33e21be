
# Form: a case's call once more, as programs and people write it: somewhere in a prepared
# statement, with arguments that are parameters or text, below conditions and joins.
#
# The statement is written twice: with the call, and with the table expected in its place, which has
# brute force's rows.  Both have the same rows, in any order.  Where the call stands alone
# with a plain FROM it is a plan node, which reads only the observations that conditions leave,
# and may run in parallel; Case.pm's comparison, WITH ORDINALITY, has the function's rows.

package Form;

use strict;
use warnings;

use Condition;
use Exporter 'import';
use Points;
use Random;
use Side;
use Types;

our @EXPORT = qw(make_form call_of);

# joins of more observations, whose ids need not be unique, have too many rows
my $joined_at_most = 40;

# settings of the planner, each with its weight
my @plans = (
	'' => 50,
	'SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_material = off;' => 25,
	'SET LOCAL enable_nestloop = off; SET LOCAL enable_sort = off;' => 5,
	'SET LOCAL max_parallel_workers_per_gather = 2; SET LOCAL min_parallel_table_scan_size = 0; '
	  . 'SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0;' => 20);

# ---- the call ----

# The call of a case, each argument of which is written by a sub of (type, SQL).  With a column definition
# list, ROWS FROM lets it stand wherever others do.
sub call_of
{
	my ($case, $write) = @_;
	my @written;

	foreach my $argument (@{ $case->{arguments} })
	{
		my ($name, $type, $sql) = @$argument;

		push @written, ($name ? "$name => " : '') . ($type ? $write->($type, $sql) : $sql);
	}
	my $call = "$case->{function}(" . join(', ', @written) . ')';
	return $case->{list} ? "ROWS FROM ($call AS ($case->{list}))" : $call;
}

# A writer of values for a form, of which this share are parameters, [type, SQL].
sub writer
{
	my ($parameters, $share) = @_;

	return sub {
		my ($type, $sql) = @_;

		return chance(0.05) ? "(SELECT ($sql)::$type)" : $sql if !chance($share);
		push @$parameters, [ $type, $sql ];
		return "\$${\scalar(@$parameters)}";
	};
}

# the same for arguments of the call: a name's literal may be text
sub argument_writer
{
	my ($parameters, $share) = @_;

	return sub {
		my ($type, $sql) = @_;

		if (chance($share))
		{
			my $declared =
			    $type eq 'regclass' ? pick('regclass', 'text', 'varchar')
			  : $type eq 'integer' ? pick('integer', 'smallint')
			  : $type eq 'text' ? pick('text', 'varchar')
			  : $type;

			$sql =~ s/::regclass$//;
			push @$parameters, [ $declared, $sql ];
			return "\$${\scalar(@$parameters)}";
		}
		return $sql if $type ne 'regclass' || chance(0.5);
		$sql =~ s/::regclass$//;
		return $sql . pick('::text', '::varchar', '::text::regclass');
	};
}

# ---- columns ----

# columns of the call's rows that say what conditions compare
sub answer_columns
{
	my ($case, $alias) = @_;
	my ($obs, $ref) = @$case{qw(obs ref)};
	my @columns;

	foreach my $name (@{ $case->{columns} })
	{
		my $sql = "$alias.$name";
		my $type = $case->{types}{$name};
		my $side = $name =~ /^ref/ ? $ref : $obs;

		push @columns,
		    $name eq 'bearing' ? ()
		  : $name eq 'distance' ? number_column($sql, 'float8', map { random_distance($obs, $ref, $case->{metric}) } 1 .. 3)
		  : $name eq 'rank' ? number_column($sql, 'integer', 1, 2, 3, 40)
		  : $name =~ /_l(at|on)$/ ? coordinate_column($sql, $1 eq 'lat' ? 0 : 1, $side)
		  : id_column_of($sql, $type, $side->{id_type}, some_ids($side));
	}
	return @columns;
}

sub coordinate_column
{
	my ($sql, $which, $side) = @_;

	return number_column($sql, 'float8', (map { $_->[$which] } @{ $side->{places} }), between(-90, 90));
}

# whether the call's rows have the observations' ids
sub has_id
{
	my ($case) = @_;

	return scalar(grep { $_ eq $case->{obs_id} } @{ $case->{columns} });
}

# a few of a side's ids
sub some_ids
{
	my ($side) = @_;

	return @{ $side->{ids} } ? map { pick(@{ $side->{ids} }) } 1 .. 3 : ();
}

# the columns of points_of the observations
sub observation_columns
{
	my ($case, $alias) = @_;
	my $obs = $case->{obs};

	return (
		id_column_of("$alias.id", $obs->{id_type}{type}, $obs->{id_type}, some_ids($obs)),
		map { coordinate_column("$alias." . (qw(lat lon))[$_], $_, $obs) } 0, 1);
}

# ---- statements: %s is the call, and then the table expected ----

# as text: equal rows look the same
sub row
{
	my @expressions = @_;

	return 'ROW(' . join(', ', @expressions) . ')::text';
}

# some of the call's columns, as a row
sub some_columns
{
	my ($case, $alias) = @_;
	my @names = grep { $_ ne 'bearing' && chance(0.7) } @{ $case->{columns} };

	return row('count(*)') if !@names;
	return row(map { "$alias.$_" } shuffled(@names));
}

sub where
{
	my @conditions = grep { defined } @_;

	return @conditions ? "\nWHERE " . join(' AND ', @conditions) : '';
}

# Conditions come from a sub of columns, which has none now and then.
sub from_call
{
	my ($case, $condition) = @_;
	my $from = pick('%s AS n', '%s AS n', '(SELECT * FROM %s) AS n', '(SELECT * FROM %s OFFSET 0) AS n');

	return "SELECT ${\some_columns($case, 'n')} FROM $from" . where($condition->(answer_columns($case, 'n')));
}

# A volatile function is called once for each row.
sub from_call_volatile
{
	my ($case) = @_;

	my @names = grep { $_ ne 'bearing' } @{ $case->{columns} };

	return "SELECT ${\row(map { qq{n.$_} } @names)} FROM %s AS n WHERE nextval('calls') >= 0"
	  . (has_id($case) && chance(0.5) ? " * hashtext(coalesce(n.$case->{obs_id}::text, ''))" : '');
}

# the table of the observations as o
sub observations
{
	my ($case) = @_;

	return "(${\points_of($case->{obs})}) AS o";
}

sub join_with_observations
{
	my ($case, $condition) = @_;
	my @of_answer = answer_columns($case, 'n');
	my @of_observation = observation_columns($case, 'o');
	my $equal = pick("n.$case->{obs_id} = o.id", "o.id = n.$case->{obs_id}");
	my ($one, $other) = shuffled(observations($case), '%s AS n');
	my $join = pick('JOIN', 'JOIN', 'LEFT JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN');
	my $more = $join ne 'FULL JOIN' && chance(0.3) ? $condition->(@of_answer, @of_observation) : undef;
	my $columns = some_columns($case, 'n');

	$columns =~ s/^ROW\(/ROW(o.id, / if $columns !~ /count/ && chance(0.6);
	return "SELECT $columns FROM $one $join $other ON $equal" . ($more ? " AND $more" : '') . where(
		$condition->(@of_observation),
		chance(0.4) ? $condition->(@of_answer) : undef,
		chance(0.15) ? $condition->(@of_answer, @of_observation) : undef);
}

sub observations_that_exist
{
	my ($case, $condition) = @_;
	my $exists = pick('EXISTS', 'NOT EXISTS')
	  . " (SELECT FROM %s AS n WHERE n.$case->{obs_id} = o.id"
	  . (chance(0.5) ? ' AND (' . ($condition->(answer_columns($case, 'n')) // 'true') . ')' : '') . ')';

	return "SELECT ${\row(qw(o.id o.lat o.lon))} FROM ${\observations($case)}"
	  . where($condition->(observation_columns($case, 'o')), $exists);
}

sub ids_that_observations_have
{
	my ($case, $condition) = @_;

	return "SELECT ${\some_columns($case, 'n')} FROM %s AS n"
	  . where($condition->(answer_columns($case, 'n')),
		"n.$case->{obs_id} " . pick('', 'NOT ') . "IN (SELECT o.id FROM ${\observations($case)}"
		  . where('o.id IS NOT NULL', $condition->(observation_columns($case, 'o'))) . ')');
}

# The call's rows are asked for anew for each of some ids.
sub once_for_each_id
{
	my ($case, $condition, $write) = @_;
	my ($column) = grep { $_->{sql} eq "n.$case->{obs_id}" } answer_columns($case, 'n');
	my @ids = (some_ids($case->{obs}), undef);
	my $wanted = '(VALUES '
	  . join(', ', map { '(' . $write->($column->{type}, cast_to($column->{type}, $_)) . ')' } @ids)
	  . ') AS w(id)';
	my $compared = comparison_with($column, 'w.id');
	my $rows = "%s AS n" . where($compared, $condition->(answer_columns($case, 'n')));
	my $columns = some_columns($case, 'n') =~ s/^ROW\((?!count)/ROW(w.id, /r;

	return "SELECT ${\row('w.id', qq{(SELECT count(*) FROM $rows)})} FROM $wanted" if chance(0.25);
	return "SELECT $columns FROM $wanted " . pick('JOIN', 'LEFT JOIN') . " %s AS n ON $compared"
	  . where($condition->(answer_columns($case, 'n')))
	  if chance(0.4);
	return "SELECT $columns FROM $wanted "
	  . pick('CROSS JOIN LATERAL (%s) AS n', 'LEFT JOIN LATERAL (%s) AS n ON true') =~ s/%s/SELECT * FROM $rows OFFSET 0/r;
}

sub random_statement
{
	my ($case, $condition, $write) = @_;
	my $few = @{ $case->{obs}{places} } <= $joined_at_most;
	my $statement = weighted(
		\&from_call => 40,
		\&from_call_volatile => 4,
		!has_id($case) || !$few ? () : (
			\&join_with_observations => 26,
			\&observations_that_exist => 6,
			\&ids_that_observations_have => 6,
			\&once_for_each_id => 18));

	return $statement->($case, $condition, $write);
}

# ---- forms ----

# The form of a case, its setup made already: a hash of
#   settings     SQL that precedes it
#   parameters   [type, SQL of its value] of each
#   answer       the statement with the call
#   expected     the statement with the table expected
#   call         SQL that runs the first
#   comparison   SQL that runs both and says how they compare, as Case.pm's does
#   difference   SQL that shows the rows of either alone
sub make_form
{
	my ($case) = @_;
	my @parameters;
	my $share = pick(0, 0.5, 1);
	my $write = writer(\@parameters, pick(0, 0.5, 1));
	my $condition = sub { return chance(0.2) ? undef : random_condition($write, @_) };
	my $statement = random_statement($case, $condition, $write);
	my $call = call_of($case, argument_writer(\@parameters, $share));
	my @settings = (weighted(@plans), 'SET LOCAL plan_cache_mode = ' . pick(qw(auto force_generic_plan force_custom_plan)) . ';');

	push @settings, 'CREATE TEMPORARY SEQUENCE calls MINVALUE 0;' if $statement =~ /nextval/;
	if ($call !~ /\$/ && chance(0.3))
	{
		push @settings,
		  'CREATE TEMPORARY VIEW asked ' . pick('', 'WITH (security_barrier) ') . "AS SELECT * FROM $call;";
		$call = 'asked';
	}
	my %form = (
		name => "$case->{name} form",
		settings => join("\n", grep { $_ } @settings),
		parameters => \@parameters,
		answer => $statement =~ s/%s/$call/gr,
		expected => $statement =~ s/%s/expected/gr);
	$form{call} = prepared(\%form, 'call', $form{answer});
	$form{comparison} = compared(\%form, 'form', verdict(\%form));
	$form{difference} = compared(\%form, 'difference', <<'SQL');
(SELECT 'geonn alone', * FROM (TABLE answered EXCEPT ALL TABLE wanted) AS _)
UNION ALL (SELECT 'brute force alone', * FROM (TABLE wanted EXCEPT ALL TABLE answered) AS _)
SQL
	return \%form;
}

sub prepared
{
	my ($form, $name, $query) = @_;
	my @parameters = @{ $form->{parameters} };
	my ($types, $values) = map {
		my $which = $_;
		@parameters ? ' (' . join(', ', map { $_->[$which] } @parameters) . ')' : '';
	} 0, 1;

	$query =~ s/\s+$//;
	return "PREPARE $name$types AS\n$query;\nEXECUTE $name$values;\n";
}

# A query of what was answered and what is wanted, prepared.
sub compared
{
	my ($form, $name, $query) = @_;

	return prepared($form, $name, <<"SQL");
WITH answered(neighbour) AS MATERIALIZED (
$form->{answer}),
wanted(neighbour) AS MATERIALIZED (
$form->{expected})
$query
SQL
}

sub verdict
{
	my ($form) = @_;
	my $calls =
	  $form->{answer} =~ /nextval/
	  ? "\n\tWHEN (SELECT last_value + is_called::integer FROM calls) <> 2 * (SELECT count(*) FROM wanted) THEN 'calls a volatile function otherwise'"
	  : '';

	return <<"SQL";
SELECT '$form->{name}', CASE
	WHEN EXISTS (TABLE answered EXCEPT ALL TABLE wanted) THEN 'differs'
	WHEN EXISTS (TABLE wanted EXCEPT ALL TABLE answered) THEN 'differs'$calls
	ELSE 'is the same' END,
	(SELECT count(*) FROM answered)
SQL
}

1;
