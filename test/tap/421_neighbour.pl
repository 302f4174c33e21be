# Beside an extension that looks at plans, copies and writes them, as Citus and PostgreSQL do, and refuses
# columns that a statement does not need, as TimescaleDB does: all forms of both plan nodes have
# the rows that they have without it.
# rooms: plan

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('neighbour', preload => 1, conf => "autovacuum = off\nplan_cache_mode = force_generic_plan");

$node->safe_psql(
	'postgres', qq{
	CREATE TABLE obs AS SELECT i AS id, i % 3 AS kind, (i * 7919 % 1800) / 10::float8 - 90 AS lat, (i * 10473 % 3600) / 10::float8 - 180 AS lon
		FROM generate_series(1, 3000) i;
	ALTER TABLE obs ADD PRIMARY KEY (id);
	CREATE TABLE ref AS SELECT id, kind, -lat AS lat, lon FROM obs WHERE id <= 500;
	ALTER TABLE ref ADD PRIMARY KEY (id);
	CREATE TABLE compressed (LIKE obs INCLUDING ALL);
	INSERT INTO compressed TABLE obs;
	-- of two partitions one is read by an extension of its own
	CREATE TABLE parted (id integer NOT NULL, kind integer, lat float8, lon float8) PARTITION BY RANGE (id);
	CREATE TABLE compressed_part PARTITION OF parted FOR VALUES FROM (0) TO (1000);
	CREATE TABLE plain_part PARTITION OF parted FOR VALUES FROM (1000) TO (9000);
	INSERT INTO parted SELECT id, kind, lat, lon FROM obs;
	CREATE VIEW obs_view AS SELECT * FROM obs WHERE kind < 2;
	CREATE FUNCTION neighbour_seen() RETURNS bigint LANGUAGE c AS '$ENV{GEONN_BUILD}/neighbour.so';
	VACUUM ANALYZE;
});

my $sum = 'count(*), round(sum(n.distance)::numeric, 3)';
my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';
my $lateral = 'geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon]';

# what each statement is, and settings before it
my @statements = (
	[ 'a join', "SELECT $sum FROM geonn_nearest('obs', 'ref', k => 2) n" ],
	[ 'a join of no columns', "SELECT count(*) FROM geonn_nearest('obs', 'ref', k => 2)" ],
	[ 'a join in parallel', "SELECT $sum FROM geonn_nearest('obs', 'ref', k => 2) n", $parallel ],
	[ 'a query', "SELECT $sum FROM geonn_nearest_sql('SELECT id, lat, lon FROM obs WHERE kind = 1', 'TABLE ref') n" ],
	[ 'points', "SELECT $sum FROM geonn_nearest_points('{50,51}', '{10,11}', 'ref', k => 3) n" ],
	[ 'a radius', "SELECT $sum FROM geonn_within('obs', 'ref', 300000) n" ],
	[ 'a view', "SELECT $sum FROM geonn_nearest('obs_view', 'ref') n" ],
	[ 'a filter', "SELECT $sum FROM geonn_nearest('obs', 'ref') n WHERE obs_id = 77" ],
	[ 'a join with a table', "SELECT $sum FROM geonn_nearest('obs', 'ref') n JOIN ref r ON r.id = n.ref_id WHERE r.kind = 1" ],
	[ 'a common table expression', "WITH n AS MATERIALIZED (SELECT * FROM geonn_nearest('obs', 'ref')) SELECT $sum FROM n JOIN obs o ON o.id = n.obs_id" ],
	[ 'a subquery', "SELECT count(*) FROM obs WHERE id IN (SELECT obs_id FROM geonn_nearest('obs_view', 'ref') WHERE distance < 200000)" ],
	[ 'a union', "SELECT $sum FROM (SELECT * FROM geonn_nearest('obs', 'ref') UNION ALL SELECT * FROM geonn_nearest('ref', 'obs')) n" ],
	[ 'a scalar subquery', "SELECT (SELECT count(*) FROM geonn_nearest('obs', 'ref') WHERE obs_id < 100), count(*) FROM obs" ],
	[ 'own rows', "SELECT $sum, sum(o.kind) FROM obs o JOIN geonn_nearest('obs', 'ref') n ON n.obs_id = o.id" ],
	[ 'rows that each ask', "SELECT $sum FROM obs o, LATERAL $lateral, 'ref') n WHERE o.kind = 1" ],
	[ 'rows that each ask for no columns', "SELECT count(*) FROM obs o, LATERAL $lateral, 'ref') n" ],
	[ 'rows that each ask, kept', "SELECT $sum, count(o.id) FROM obs o LEFT JOIN LATERAL $lateral, 'ref', max_distance => 100000) n ON n.distance < 90000" ],
	[ 'rows without a neighbour', "SELECT count(o.id) FROM obs o WHERE NOT EXISTS (SELECT FROM $lateral, 'ref', max_distance => 100000))" ],
	[ 'rows that each ask, in parallel', "SELECT $sum FROM obs o, LATERAL $lateral, 'ref') n", $parallel ],
	[ 'rows in their order', "SELECT array_agg(ref_id) FROM (SELECT n.ref_id FROM obs o, LATERAL $lateral, 'ref') n ORDER BY o.id) s" ],
	[ 'an insertion', "WITH i AS (INSERT INTO kept SELECT obs_id FROM geonn_nearest('obs', 'ref') RETURNING 1) SELECT count(*) FROM i" , 'CREATE TEMP TABLE kept (id bigint);' ],
	[ 'a prepared statement', "EXECUTE p ('obs', 2)", "PREPARE p(text, int) AS SELECT $sum FROM geonn_nearest(\$1, 'ref', k => \$2) n;" ],
	[ 'a prepared statement, in parallel', "EXECUTE p ('obs', 2)", "$parallel PREPARE p(text, int) AS SELECT $sum FROM geonn_nearest(\$1, 'ref', k => \$2) n;" ],
	[ 'a prepared statement whose rows each ask', "EXECUTE p (1)", "PREPARE p(int) AS SELECT $sum FROM obs o, LATERAL $lateral, 'ref', k => \$1) n;" ],
	[ 'a refused column of observations', "SELECT $sum FROM geonn_nearest('compressed', 'ref') n" ],
	[ 'a refused column of observations, in parallel', "SELECT $sum FROM geonn_nearest('compressed', 'ref') n", $parallel ],
	[ 'a refused column of references, in parallel', "SELECT $sum FROM geonn_nearest('obs', 'compressed') n", $parallel ],
	[ 'a refused column of a partition, in parallel', "SELECT $sum FROM geonn_nearest('parted', 'ref') n", $parallel ],
	[ 'a refused column of a partition, with a filter', "SELECT $sum FROM geonn_nearest('parted', 'ref') n WHERE obs_id = 77", $parallel ],
	[ 'a refused column of references of rows that each ask', "SELECT $sum FROM obs o, LATERAL $lateral, 'compressed') n", $parallel ],
	[ 'a refused column of own rows', "SELECT $sum, sum(o.kind) FROM compressed o JOIN geonn_nearest('compressed', 'ref') n ON n.obs_id = o.id", $parallel ],
	[ 'a refused column of all within a distance', "SELECT $sum FROM geonn_within('parted', 'compressed', 100000) n", $parallel ]);

my $loaded = "LOAD '$ENV{GEONN_BUILD}/neighbour.so';\n";

foreach my $statement (@statements)
{
	my ($what, $sql, $before) = (@$statement, '');
	my $expected = $node->safe_psql('postgres', "$before $sql;");
	my ($status, $out, $error) = $node->psql('postgres', "$loaded $before $sql; SELECT neighbour_seen() > 0;");

	is("$out$error", "$expected\nt", $what);
}

# the two nodes are among the plans
foreach my $name ('geonn join', 'geonn lateral join')
{
	ok((grep {
		my ($what, $sql, $before) = (@$_, '');
		$sql !~ /^EXECUTE/ && $node->safe_psql('postgres', "$before EXPLAIN $sql") =~ /\($name\)/
	} @statements) >= 5, "some of the plans have the node \"$name\"");
}

# a table is read by all processes, though an index has all of its columns that are asked for
$node->safe_psql('postgres', 'CREATE TABLE small (id integer, lat float8, lon float8, PRIMARY KEY (id) INCLUDE (lat, lon));
	INSERT INTO small SELECT id, lat, lon FROM obs; VACUUM ANALYZE small');
like($node->safe_psql('postgres', "$parallel EXPLAIN SELECT $sum FROM geonn_nearest('small', 'ref') n"),
	qr/Gather.*Parallel Custom Scan \(geonn join\)/s, 'a plan that an index alone would serve has workers');

# a cache of such a table is filled and refreshed; the user's own UPDATE does need ctid
my $create = "$loaded SELECT geonn_cache_create('near', 'parted', 'compressed');";
my $refresh = "$loaded CALL geonn_refresh('near');";

is($node->safe_psql('postgres', $create), 'near', 'a cache of refused columns is filled');
$node->safe_psql('postgres', 'UPDATE parted SET lat = lat / 2 WHERE id < 20');
is($node->safe_psql('postgres', "$refresh SELECT count(*) FROM near"), 3000, 'and refreshed');

done_testing();
