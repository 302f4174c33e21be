
# References that have to be read are recognised where the engine keeps the same
# ones, and only there: none of a changed bit is taken for what was there before.
# Every join's rows are compared with those of the definition in SQL.

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('recognised', preload => 1,
	conf => "autovacuum = off\nmax_parallel_workers_per_gather = 0");

# Whether a join's references are new to the engine, recognised or kept, and whether its rows
# are those of the definition.
$node->safe_psql(
	'postgres', q{
	CREATE FUNCTION try_join(call text, definition text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		plan json;
		rows text;
		expected text;
	BEGIN
		EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) CREATE TEMPORARY TABLE result AS SELECT * FROM ' || call INTO plan;
		SELECT string_agg(r::text, ' ' ORDER BY r::text) INTO rows FROM result r;
		DROP TABLE result;
		EXECUTE format('SELECT string_agg(ROW(j.*)::text, '' '' ORDER BY ROW(j.*)::text) FROM (%s) j', definition)
			INTO expected;
		RETURN CASE WHEN plan::text ~ '"References Kept": true' THEN 'kept'
			WHEN plan::text ~ '"References Recognised": true' THEN 'recognised' ELSE 'new' END ||
			CASE WHEN rows IS DISTINCT FROM expected
			THEN format(', and wrong: %s instead of %s', rows, expected) ELSE '' END;
	END $$;

	CREATE TYPE named AS (obs_id integer, ref_id text, distance float8);
	CREATE TYPE located AS (obs_id integer, ref_id integer, ref_lat float8, ref_lon float8);
	CREATE TABLE obs AS SELECT i AS id, i * 7 % 90 AS lat, i * 11 % 180 AS lon, i % 3 AS class
		FROM generate_series(1, 20) i;
	CREATE UNLOGGED TABLE ref AS
		SELECT i AS id, (i * 13 % 90)::float8 AS lat, (i * 17 % 180)::float8 AS lon, i % 3 AS class,
			'name ' || to_char(i, 'FM0000') AS name
		FROM generate_series(1, 1000) i;
});

# SQL that says how the nearest references of a table were had; arguments are further ones,
# columns those of a reference in the result, condition one of SQL's
sub join_sql
{
	my (%option) = @_;
	my $reference = $option{reference} // 'ref';
	my $columns = $option{columns} // 'id, distance';
	my $call = "geonn_nearest('obs', '$reference'" . ($option{arguments} ? ", $option{arguments}" : '') . ')';
	my $id = $columns =~ /name/ ? 'name' : 'id';
	my $definition = qq{SELECT o.id, } . ($columns =~ s/(\w+)/r.$1/gr) . qq{
		FROM obs o CROSS JOIN LATERAL (
			SELECT *, geonn_distance(o.lat, o.lon, lat, lon) AS distance FROM $reference r
			WHERE } . ($option{condition} // 'true') . qq{ ORDER BY distance, $id LIMIT 1) r};

	$call = $option{sql} if $option{sql};
	return "SELECT try_join(\$call\$$call\$call\$, \$definition\$$definition\$definition\$);";
}

sub joins
{
	my ($how, $name, %option) = @_;
	my $sql = ($option{before} // '') . join_sql(%option) . ($option{after} // '');

	is(($option{session} ? $option{session}->query_safe($sql) : $node->safe_psql('postgres', $sql)), $how, $name);
}

# ---- what cannot be told by the table ----

$node->safe_psql(
	'postgres', q{
	CREATE TABLE divided (id integer, lat float8, lon float8, class integer, name text) PARTITION BY RANGE (id);
	CREATE TABLE part PARTITION OF divided FOR VALUES FROM (MINVALUE) TO (500);
	CREATE TABLE rest PARTITION OF divided DEFAULT;
	INSERT INTO divided SELECT id, lat / 2, lon, class, name FROM ref;
	CREATE VIEW eighth AS SELECT id, lat / 8 AS lat, lon, class, name FROM ref WHERE id > 0;
	CREATE VIEW few AS SELECT * FROM ref WHERE id < 1000;
	CREATE TABLE unsettled AS SELECT id, lat / 4 AS lat, lon FROM ref;
});
foreach my $how (qw(new recognised recognised))
{
	joins($how, "an unlogged table is $how");
	joins($how, "a partitioned table is $how", reference => 'divided');
	joins($how, "a view with a condition is $how", reference => 'eighth');
	joins('new', 'few references are new', reference => 'few');
	joins($how, "a table that VACUUM has not seen is $how", reference => 'unsettled');
}
joins('recognised', 'a temporary table of the same rows is recognised',
	before => 'CREATE TEMPORARY TABLE passing AS TABLE ref;', reference => 'passing');
joins('recognised', 'and so is a query of them',
	sql => q{geonn_nearest_sql('SELECT id, lat, lon FROM obs', 'SELECT id, lat, lon FROM ref ORDER BY id DESC')});
$node->safe_psql('postgres', 'VACUUM unsettled');
joins('recognised', 'a table is recognised when VACUUM has been there', reference => 'unsettled');
joins('kept', 'and then kept', reference => 'unsettled');

# ---- a changed bit ----

my %questions = (
	'plain'       => { columns => 'id, distance' },
	'groups'      => { columns => 'id, distance', arguments => "by => '{class}'", condition => 'r.class = o.class' },
	'others'      => { columns => 'id, distance', arguments => 'exclude_self => true', condition => 'r.id <> o.id' },
	'names'       => { columns => 'name, distance', arguments => q{options => '{"ref_id": "name"}', row_type => NULL::named} },
	'coordinates' => { columns => 'id, lat, lon', arguments => 'row_type => NULL::located' });
my @changes = (
	[ 'a latitude', 'UPDATE ref SET lat = lat * (1 + 2 ^ -52) WHERE id = 614', 'UPDATE ref SET lat = id * 13 % 90 WHERE id = 614',
		qw(plain groups others names coordinates) ],
	[ 'a longitude', 'UPDATE ref SET lon = lon * (1 + 2 ^ -52) WHERE id = 1', 'UPDATE ref SET lon = 17 WHERE id = 1',
		qw(plain groups others names coordinates) ],
	[ 'an id', 'UPDATE ref SET id = 1001 WHERE id = 1000', 'UPDATE ref SET id = 1000 WHERE id = 1001',
		qw(plain groups others coordinates) ],
	[ 'an id that moves in their order', 'UPDATE ref SET id = -5 WHERE id = 5', 'UPDATE ref SET id = 5 WHERE id = -5',
		qw(plain groups others coordinates) ],
	[ 'a text id of the same length', q{UPDATE ref SET name = 'name 0a00' WHERE id = 100},
		q{UPDATE ref SET name = 'name 0100' WHERE id = 100}, qw(names) ],
	[ 'a group', 'UPDATE ref SET class = 2 WHERE id = 300', 'UPDATE ref SET class = 0 WHERE id = 300', qw(groups) ],
	[ 'two ids that become equal', 'UPDATE ref SET id = 7 WHERE id = 8', q{UPDATE ref SET id = 8 WHERE name = 'name 0008'},
		qw(plain others) ]);

foreach my $question (sort keys %questions)
{
	joins($question eq 'plain' ? 'recognised' : 'new', "$question: they are known", %{ $questions{$question} });
}
foreach my $change (@changes)
{
	my ($what, $there, $back, @asked) = @$change;

	foreach my $question (@asked)
	{
		joins('new', "$what changes: $question", %{ $questions{$question} },
			before => "BEGIN; $there;", after => 'ROLLBACK;');
	}
	# the rows come in another order now, which only numbers of groups depend on
	$node->safe_psql('postgres', "$there; $back; VACUUM FULL ref");
	foreach my $question (@asked)
	{
		joins('recognised', "$what changes back: $question", %{ $questions{$question} })
		  unless $question eq 'groups';
	}
}
joins('new', 'a row less', before => 'BEGIN; DELETE FROM ref WHERE id = 1000;', after => 'ROLLBACK;');

# ---- one's own changes ----

my $own = $node->background_psql('postgres');

$own->query_safe('BEGIN; UPDATE ref SET lat = lat + 0.5 WHERE id % 10 = 0;');
joins('new', 'one\'s own changes make other references', session => $own);
joins('recognised', 'which are recognised', session => $own);
joins('recognised', 'while others see what was there');
$own->query_safe('COMMIT');
joins('recognised', 'until they see the same');
$own->quit;

# ---- other users ----

# what is the same for two users is not known to be: not by the plan, nor by what is kept
$node->safe_psql('postgres', q{
	CREATE ROLE other;
	GRANT SELECT ON ALL TABLES IN SCHEMA public TO other;
	GRANT TEMPORARY ON DATABASE postgres TO other});
joins('recognised', 'references that one user has searched');
my $kept = status($node, 'datasets_kept');
joins('new', 'are new to another', before => 'SET ROLE other;');
is(status($node, 'datasets_kept'), $kept + 1, 'and kept for that one, too');
joins('recognised', 'and then recognised', before => 'SET ROLE other;');
$node->safe_psql('postgres', 'CREATE DATABASE copied TEMPLATE postgres');
is($node->safe_psql('copied', join_sql()), 'new', 'likewise in another database');
joins('new', 'a table whose privileges have changed is new', reference => 'unsettled');
joins('kept', 'and then kept for all that may read it', before => 'SET ROLE other;',
	reference => 'unsettled');

# ---- several processes, and several sessions ----

my $parallel = q{
	SET max_parallel_workers_per_gather = 2;
	SET parallel_setup_cost = 0;
	SET parallel_tuple_cost = 0;
	SET min_parallel_table_scan_size = 0;};
my $sum = q{SELECT count(*), sum(ref_id * obs_id), sum(distance::numeric) FROM geonn_nearest('obs', 'ref')};
my $explained = $node->safe_psql('postgres', "$parallel EXPLAIN (ANALYZE) $sum");

like($explained, qr/Workers Launched: [12]/, 'a parallel plan');
like($explained, qr/References Recognised: true/, 'has recognised references');
is($node->safe_psql('postgres', "$parallel $sum"), $node->safe_psql('postgres', $sum), 'which all of its processes have');

my @runs = map { start_sql($node, scalar(join_sql() x 10)) } 1 .. 4;
my @rows = map { my ($status, $out) = finish_sql($_); split(/\n/, $out) } @runs;
is(scalar(grep { $_ eq 'recognised' } @rows), 40, 'sessions have the same dataset at a time');
is(status($node, 'datasets'), status($node, 'datasets_kept'), 'and nobody has one in the end');

# ---- memory ----

$node->safe_psql('postgres', q{ALTER SYSTEM SET geonn.kept_memory_limit = 0; SELECT pg_reload_conf()});
wait_until(sub { status($node, 'datasets') == 0 }, 'without memory none is kept');
joins('new', 'and none recognised') foreach 1 .. 2;
$node->stop;

done_testing();
