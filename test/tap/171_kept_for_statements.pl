
# A subquery that asks for the ids of a table's nearest rows, and for their distances, has the references that the engine
# keeps, which calls and statements share; whatever happens to the table, its rows are those without geonn.
# rooms: pages join sql

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('for_statements', preload => 1, conf => "autovacuum = off\nmax_parallel_workers_per_gather = 0");
my $distance = 'geonn_distance(o.lat, o.lon, r.lat, r.lon)';

$node->safe_psql('postgres', q{
	CREATE TABLE obs AS SELECT i AS id, i * 7 % 170 - 85.0::float8 AS lat, i * 13 % 360 - 180.0::float8 AS lon FROM generate_series(1, 200) i;
	INSERT INTO obs VALUES (2000, NULL, 0), (2001, 5, NULL), (2002, 95, 0), (2003, 'NaN', 0);
	CREATE TABLE ref AS SELECT i AS id, i * 11 % 170 - 85.0::float8 AS lat, i * 17 % 360 - 180.0::float8 AS lon, i % 3 AS kind
		FROM generate_series(1, 300) i;
	INSERT INTO ref SELECT id + 1000, lat, lon, kind FROM ref WHERE id < 50;
	CREATE TABLE by_call AS TABLE ref;
	CREATE TABLE some_null AS TABLE ref;
	INSERT INTO some_null VALUES (3000, NULL, 0), (NULL, 5, 5);
	CREATE TABLE guarded AS TABLE ref;
	CREATE TABLE parent AS TABLE ref;
	CREATE TABLE child () INHERITS (parent);
	INSERT INTO child SELECT id + 5000, lat / 2, lon, kind FROM ref;
	CREATE VIEW lent AS SELECT o.id AS own, n.* FROM obs o, LATERAL (SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS d FROM ref r
		ORDER BY geonn_distance(o.lat, o.lon, r.lat, r.lon), r.id LIMIT 2) n;
	CREATE ROLE reader;
	CREATE ROLE stranger;
	CREATE POLICY but_one ON guarded TO reader USING (kind <> 1);
	ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
	GRANT SELECT ON obs, guarded, lent TO reader;
	GRANT SELECT ON obs TO stranger;
	GRANT SELECT (id, lat, lon) ON ref TO reader;
	GRANT SELECT (lat, lon) ON ref TO stranger;
	VACUUM ANALYZE;
});

# Whether the node of a statement names a table, whether it has read the references, and whether its rows are those without it.
sub answer
{
	my ($statement, %how) = @_;
	my ($out, $said);

	$node->psql('postgres', qq{
		LOAD 'geonn';
		SET ROLE ${\($how{role} // 'postgres')};
		PREPARE q AS $statement;
		SET plan_cache_mode = force_generic_plan;
		BEGIN ${\($how{isolation} // '')};
		${\($how{before} // '')}
		CREATE TEMP TABLE b AS EXECUTE q;
		SET geonn.enable_sql_joins = on;
		SET LOCAL enable_nestloop = off;
		DEALLOCATE q;
		PREPARE q AS $statement;
		EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) CREATE TEMP TABLE a AS EXECUTE q;
		SELECT 'differences: ' || count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) x;
	} . ($how{after} // ''), stdout => \$out, stderr => \$said);
	return $1 if $said =~ /(ERROR: .*)/;
	return $said if $said =~ /WARNING/;
	my ($differences) = $out =~ /differences: (\d+)/;
	my ($table) = $out =~ /^ +References: (\w+)$/m;

	return 'no node' if $out !~ /geonn subquery join/;
	return join(', ', $table // 'no table', $out =~ /on \w+ r_1 \(never executed\)/ ? 'kept' : 'read',
		$differences == 0 ? 'right' : "$differences differences");
}

sub nearest
{
	my ($table, $columns, $more, $rest) = @_;

	return "SELECT o.id AS own, n.* FROM obs o LEFT JOIN LATERAL (SELECT $columns FROM $table r ORDER BY $distance$more "
	  . ($rest // 'LIMIT 3') . ') n ON true WHERE o.id < 2000';
}

my $first = nearest('ref', "r.id, $distance AS d", ', r.id');

is(answer($first), 'ref, read, right', 'the first statement reads the table');
is(answer($first), 'ref, kept, right', 'the second has what the engine keeps');
is(answer(nearest('ref', "r.id, $distance AS d", ', r.id', 'LIMIT 1')), 'ref, kept, right', 'another number of rows has the same');
is(answer(nearest('ref', "$distance AS d, r.id", ', r.id', 'LIMIT 400')), 'ref, kept, right', 'more rows than the table has, too');
is(answer("$first ORDER BY o.id"), 'ref, kept, right', 'and rows in an order');
is(answer($first =~ s/2000/2002/r), 'ref, read, right', 'a row without a point has the table read, whose rows have no distance from it');
is(answer(nearest('ref', "$distance AS d", '', 'LIMIT 2')), 'ref, read, right', 'distances alone have a dataset of their own');
is(answer(nearest('ref', "$distance AS d", '', 'LIMIT 1')), 'ref, kept, right', 'which is kept, too');
is(answer("SELECT count(*) FROM obs o, LATERAL (SELECT r.id FROM ref r ORDER BY $distance LIMIT 2) n WHERE o.id < 2000"), 'ref, kept, right', 'as have rows that are counted');
is(answer(nearest('ref', "r.lat", '', 'LIMIT 1')), 'no table, read, right', 'the latitude is no id');

# calls and statements share what is kept
$node->safe_psql('postgres', q{SELECT count(*) FROM geonn_nearest('obs', 'by_call')});
is(answer(nearest('by_call', "r.id, $distance AS d", ', r.id')), 'by_call, kept, right', 'a statement has what a call has left');
like($node->safe_psql('postgres', q{EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*) FROM geonn_nearest('obs', 'ref')}), qr/References Kept: true/,
	'and a call what a statement has left');

# changes
for my $change ([ 'UPDATE ref SET lat = -lat WHERE id % 7 = 0', 'an update' ], [ 'DELETE FROM ref WHERE id % 9 = 0', 'a deletion' ],
	[ 'INSERT INTO ref SELECT id + 4000, lat / 3, lon, kind FROM ref WHERE id < 100', 'an insertion' ], [ 'VACUUM FULL ref', 'a new file' ])
{
	my ($sql, $what) = @$change;

	$node->safe_psql('postgres', $sql);
	is(answer($first), 'ref, read, right', "after $what the table is read");
	is(answer($first), 'ref, kept, right', "and kept");
}
is(answer($first, before => 'UPDATE ref SET lon = -lon WHERE id < 90;', after => 'ROLLBACK;'), 'ref, read, right', 'a statement sees what its transaction has changed');
is(answer($first, isolation => 'ISOLATION LEVEL SERIALIZABLE'), 'ref, read, right', 'and after the rollback the table is read once more');
is(answer($first, isolation => 'ISOLATION LEVEL SERIALIZABLE'), 'ref, kept, right', 'and kept');

# what calls leave out
is(answer(nearest('some_null', "r.id, $distance AS d", ', r.id')), 'some_null, read, right', 'rows without an id or a point are among those of the statement');
is(answer(nearest('some_null', "r.id, $distance AS d", ', r.id', 'LIMIT 400')), 'some_null, read, right', 'also where all rows are asked for');
$node->safe_psql('postgres', q{SELECT count(*) FROM geonn_nearest('obs', 'some_null')});
is(answer(nearest('some_null', "r.id, $distance AS d", ', r.id', 'LIMIT 400')), 'some_null, read, right', 'and where a call has left a dataset without them');
like(answer($first =~ s/WHERE .*//r), qr/ERROR:  lat1 is out of range/, 'a point out of range is an error, as without geonn');

# what needs more than a call returns, or than a table has
is(answer(nearest('ref', 'r.id, r.lat', ', r.id')), 'no table, read, right', 'another column');
is(answer(nearest('ref', 'r.id + 1 AS id', ', r.id')), 'no table, read, right', 'an expression');
is(answer(nearest('ref', 'r.id', ', r.id DESC')), 'no table, read, right', 'another order');
is(answer(nearest('ref', 'r.id', ', r.id', 'LIMIT 2 OFFSET 1')), 'no table, read, right', 'OFFSET');
is(answer(nearest('ref', 'r.id', ', r.id') =~ s/ORDER BY/WHERE r.kind < 2 ORDER BY/r), 'no table, read, right', 'a condition');
is(answer(nearest('ref', 'r.id', ', r.id') =~ s/ORDER BY/WHERE r.id <> o.id ORDER BY/r), 'no table, read, right', 'a condition that joins both rows');
is(answer(nearest('parent', 'r.id', ', r.id')), 'no table, read, right', 'a table with children');

# whose privileges these are
is(answer(nearest('guarded', 'r.id', ', r.id')), 'guarded, read, right', 'a table with policies that do not concern the role');
is(answer(nearest('guarded', 'r.id', ', r.id')), 'guarded, kept, right', 'is kept');
is(answer(nearest('guarded', 'r.id', ', r.id'), role => 'reader'), 'no table, read, right', 'one with a policy for the role has the rows of this role');
is(answer($first, role => 'reader'), 'ref, kept, right', 'privileges on the columns that the statement names are enough');
like(answer($first, role => 'stranger'), qr/ERROR:  permission denied for table ref/, 'but without one of them nothing is found');
$node->safe_psql('postgres', 'REVOKE SELECT (id, lat, lon) ON ref FROM reader');
is(answer('SELECT * FROM lent WHERE own < 2000', role => 'reader'), 'ref, kept, right', "a view has its owner's privileges");

done_testing();
