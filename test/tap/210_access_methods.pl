
# Tables of other access methods are read, too: by pages where their routines are the
# heap's, and else row by row.
# rooms: points cache

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('access_methods', preload => 1, conf => 'autovacuum = off');

# heap_too has the heap's very routines, other_heap has its own, which count
$node->safe_psql(
	'postgres', qq{
	CREATE ACCESS METHOD heap_too TYPE TABLE HANDLER heap_tableam_handler;
	CREATE FUNCTION other_heap_handler(internal) RETURNS table_am_handler LANGUAGE c AS '$ENV{GEONN_BUILD}/other_heap.so';
	CREATE FUNCTION other_heap_asked() RETURNS bigint LANGUAGE c AS '$ENV{GEONN_BUILD}/other_heap.so';
	CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER other_heap_handler;
	CREATE TYPE pair AS (obs_id varchar, ref_id varchar, distance float8, obs_lat float8, obs_lon float8);
});
foreach my $method (qw(heap heap_too other_heap))
{
	# some have a NULL before what is read, some have been updated or deleted
	$node->safe_psql(
		'postgres', qq{
		CREATE TABLE of_$method (before int2, id varchar(20), kind int4, lat float8, lon float8) USING $method;
		INSERT INTO of_$method SELECT nullif(i % 5, 0), 'id ' || i, i % 3,
			(i * 7919 % 1800) / 10.0 - 90, (i * 10473 % 3600) / 10.0 - 180 FROM generate_series(1, 3000) i;
		UPDATE of_$method SET lat = -lat WHERE id LIKE '%7';
		DELETE FROM of_$method WHERE id LIKE '%3';
		ALTER TABLE of_$method ADD late int4 DEFAULT 8;
		VACUUM ANALYZE of_$method;
	});
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class JOIN pg_am a ON a.oid = relam
	WHERE relname = 'of_' || amname AND amname <> 'heap'}),
	2, 'the tables have the access methods');

# the rows of a join, as one value
sub rows_sql
{
	my ($obs, $ref) = @_;

	return "SELECT count(*), md5(string_agg(n::text, ' ' ORDER BY n::text)) "
	  . "FROM geonn_nearest('$obs', '$ref', k => 3, by => '{kind}', keep_unmatched => true, row_type => NULL::pair) n;";
}

my $parallel = "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;\n";
my $expected = $node->safe_psql('postgres', rows_sql('of_heap', 'of_heap'));

like($expected, qr/^8100\|/, 'a join of heaps has its rows');
foreach my $method (qw(heap_too other_heap))
{
	foreach my $settings ('', $parallel)
	{
		my $how = $settings ? 'in parallel' : 'alone';

		is($node->safe_psql('postgres', $settings . rows_sql("of_$method", 'of_heap')),
			$expected, "observations of $method, $how");
		is($node->safe_psql('postgres', $settings . rows_sql('of_heap', "of_$method")),
			$expected, "references of $method, $how");
	}
}

# the rows that are there, and once more for the end
foreach my $join ([ 'observations', 'of_other_heap', 'of_heap' ], [ 'references', 'of_heap', 'of_other_heap' ])
{
	my ($side, $obs, $ref) = @$join;

	is($node->safe_psql('postgres',
			"SELECT 1 FROM other_heap_asked();\n" . rows_sql($obs, $ref) . "SELECT other_heap_asked();"),
		"1\n$expected\n2701", "$side of other_heap come row by row");
}

# whether they have changed can be told of the heap's pages alone
foreach my $case ([ 'heap_too', 'true' ], [ 'other_heap', 'false' ])
{
	my ($method, $kept) = @$case;
	my $explain = "EXPLAIN (ANALYZE) SELECT * FROM geonn_nearest('of_heap', 'of_$method', row_type => NULL::pair);";

	$node->safe_psql('postgres', $explain);
	like($node->safe_psql('postgres', $explain), qr/References Kept: $kept/,
		"references of $method are kept: $kept");
}

# the extension's own tables are heaps, whatever tables are by default
$node->safe_psql('postgres', 'CREATE DATABASE by_default TEMPLATE template0');
$node->safe_psql(
	'by_default', q{
	CREATE ACCESS METHOD heap_too TYPE TABLE HANDLER heap_tableam_handler;
	SET default_table_access_method = heap_too;
	CREATE EXTENSION geonn;
	CREATE TABLE obs AS SELECT i AS id, i::float8 AS lat, 0::float8 AS lon FROM generate_series(1, 80) i;
	CREATE TABLE ref AS SELECT id * 2 AS id, lat * 1.01 AS lat, lon FROM obs;
	ALTER TABLE obs ADD PRIMARY KEY (id);
	ALTER TABLE ref ADD PRIMARY KEY (id);
	SELECT FROM geonn_cache_create('kept', 'obs', 'ref');
	CALL geonn_refresh('kept');
	UPDATE ref SET lat = lat + 1 WHERE id = 20;
	CALL geonn_refresh('kept');
});
is($node->safe_psql('by_default', q{SELECT count(*), count(*) FILTER (WHERE t.ref_id = n.ref_id AND t.distance = n.distance)
	FROM kept t JOIN geonn_nearest('obs', 'ref') n USING (obs_id)}),
	'80|80', 'a cache works where another access method is the default');

done_testing();
