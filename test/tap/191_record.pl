
# A call with a column definition list has the plan, the rows and the errors that a call with a row
# type of these columns has: in every form in which a plan node stands, for ids of many types, with
# workers and without, in views and in generic plans.  Where the function is left to itself, both are.
# rooms: plan join

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('record', preload => 1, conf => "jit = off\nautovacuum = off");

# the id of both sides from a number, and its type in rows
my %ids = (
	text => [ q{'a' || i}, 'text' ],
	uuid => [ 'md5(i::text)::uuid', 'uuid' ],
	varchar => [ q{('a' || i)::varchar(9) COLLATE "C"}, 'varchar(9) COLLATE "C"' ],
	integer => [ 'i', 'bigint' ]);

my $setup = 'CREATE TABLE base AS SELECT i, i % 5 AS kind, (i * 7919 % 1700) / 10.0::float8 - 85 AS lat, (i * 10473 % 3600) / 10.0::float8 - 180 AS lon FROM generate_series(1, 3000) i;';
my %columns;
foreach my $name (sort keys %ids)
{
	my ($id, $type) = @{ $ids{$name} };
	my $rows = "obs_id $type, ref_id $type, distance float8, rank integer, obs_lat float8";
	my $points = "ord bigint, ref_id $type, distance float8, rank integer";

	$columns{"${name}_row"} = $rows;
	$columns{"${name}_point"} = $points;
	$setup .= "CREATE TABLE ${name}_obs AS SELECT $id AS id, kind, lat, lon FROM base; ALTER TABLE ${name}_obs ADD PRIMARY KEY (id);
		CREATE TABLE ${name}_ref AS SELECT $id AS id, -lat AS lat, lon + 0.5 AS lon FROM base WHERE i % 10 = 0;
		CREATE TYPE ${name}_row AS ($rows); CREATE TYPE ${name}_point AS ($points);\n";
}
$node->safe_psql('postgres', "$setup VACUUM ANALYZE");

# The query with column definition lists in place of all row types.
sub with_record
{
	my ($query) = @_;

	return $query =~ s/(geonn_\w+\((?:[^()]|\([^()]*\))*NULL::(\w+)\))/with_list($1, $columns{$2})/ger;
}

# The errors of SQL, as one text.
sub error_of
{
	my (undef, undef, $error) = $node->psql('postgres', $_[0], on_error_stop => 0);

	return $error =~ s/^psql:<stdin>:\d+: //gmr =~ s/^LINE \d+:.*\n.*\n//gmr;
}

# ---- plans and rows ----

my $workers = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;';
my $alone = 'SET max_parallel_workers_per_gather = 0;';
# NAME_obs and so on are tables and types; the node that stands there
my @forms = (
	[ join => q{SELECT * FROM geonn_nearest('NAME_obs', 'NAME_ref', row_type => NULL::NAME_row) n} ],
	[ join => q{SELECT count(*), sum(distance::numeric) FROM geonn_nearest('NAME_obs', 'NAME_ref', k => 3, row_type => NULL::NAME_row) n} ],
	[ join => q{SELECT n.ref_id FROM geonn_within('NAME_obs', 'NAME_ref', 300000, row_type => NULL::NAME_row) n WHERE n.distance > 1000} ],
	[ join => q{SELECT * FROM geonn_nearest_sql('SELECT * FROM NAME_obs WHERE kind < 3', 'TABLE NAME_ref', row_type => NULL::NAME_row) n} ],
	[ join => q{SELECT * FROM geonn_within_sql('TABLE NAME_obs', 'SELECT * FROM NAME_ref', 200000, row_type => NULL::NAME_row) n ORDER BY distance, obs_id} ],
	[ join => q{SELECT * FROM geonn_nearest_points('{1, 2}', '{3, 4}', 'NAME_ref', k => 2, row_type => NULL::NAME_point) n} ],
	[ join => q{SELECT * FROM geonn_nearest('NAME_obs', 'NAME_ref', k => 2, row_type => NULL::NAME_row) n WHERE obs_id = (SELECT id FROM NAME_obs ORDER BY id LIMIT 1)}, 'Filter on Observations' ],
	[ join => q{SELECT * FROM geonn_nearest('NAME_obs', 'NAME_ref', row_type => NULL::NAME_row) n WHERE obs_lat > 80 AND rank = 1}, 'Filter on Observations' ],
	[ join => q{SELECT count(*) FROM (SELECT FROM geonn_nearest('NAME_obs', 'NAME_ref', row_type => NULL::NAME_row) n LIMIT 1) l}, 'Limit' ],
	[ join => q{SELECT obs_id FROM geonn_nearest('NAME_obs', 'NAME_ref', row_type => NULL::NAME_row) n UNION ALL SELECT ref_id FROM geonn_nearest('NAME_ref', 'NAME_ref', exclude_self => true, row_type => NULL::NAME_row) n} ],
	[ join => q{SELECT o.id, (SELECT sum(n.rank) FROM geonn_nearest('NAME_obs', 'NAME_ref', row_type => NULL::NAME_row) n WHERE n.obs_id = o.id) FROM (SELECT id FROM NAME_obs ORDER BY id LIMIT 3) o}, 'Filter on Observations' ],
	[ 'lateral join' => q{SELECT o.id, n.* FROM NAME_obs o CROSS JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'NAME_ref', row_type => NULL::NAME_point) n} ],
	[ 'lateral join' => q{SELECT o.id, n.* FROM NAME_obs o LEFT JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'NAME_ref', k => 2, row_type => NULL::NAME_point) n ON n.distance < 500000} ],
	[ 'lateral join' => q{SELECT o.id FROM NAME_obs o LEFT JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'NAME_ref', max_distance => 400000, row_type => NULL::NAME_point) n ON true WHERE n.ref_id IS NULL} ],
	[ 'lateral join' => q{SELECT o.kind, count(*), sum(n.distance::numeric) FROM NAME_obs o JOIN geonn_nearest('NAME_obs', 'NAME_ref', row_type => NULL::NAME_row) n ON n.obs_id = o.id GROUP BY 1} ],
	[ 'lateral join' => q{SELECT o.kind, n.* FROM NAME_obs o LEFT JOIN geonn_within('NAME_obs', 'NAME_ref', 300000, row_type => NULL::NAME_row) n ON n.obs_id = o.id WHERE o.kind < 3} ]);

foreach my $name (sort keys %ids)
{
	foreach my $form (@forms)
	{
		my ($scan, $query, $other) = @$form;
		my $named = $query =~ s/NAME/$name/gr;
		my $record = with_record($named);

		foreach my $settings ($alone, $workers)
		{
			my ($plan, $of_record) = map { $node->safe_psql('postgres', "$settings EXPLAIN $_") } $named, $record;

			is($of_record, $plan, "the plan, with its costs, of $record");
			like($of_record, qr/Custom Scan \(geonn $scan\)/, 'it has the node');
			like($of_record, qr/$other/, "and $other") if $other;
		}
		is($node->safe_psql('postgres', "$workers SELECT count(*) > 0 FROM ($named) q; SELECT count(*) FROM ((SELECT q::text FROM ($named) q EXCEPT ALL SELECT q::text FROM ($record) q) UNION ALL (SELECT q::text FROM ($record) q EXCEPT ALL SELECT q::text FROM ($named) q)) d")
			=~ s/\n/|/r, 't|0', 'and the rows');
	}
}
foreach my $query (
	q{SELECT * FROM geonn_nearest('text_obs', 'text_ref', row_type => NULL::text_row) n},
	q{SELECT o.id, n.* FROM text_obs o CROSS JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'text_ref', row_type => NULL::text_point) n},
	q{SELECT o.kind, n.* FROM text_obs o JOIN geonn_nearest('text_obs', 'text_ref', row_type => NULL::text_row) n ON n.obs_id = o.id})
{
	like($node->safe_psql('postgres', "$workers EXPLAIN " . with_record($query)), qr/Gather.*Parallel Custom Scan/s, "workers take part in $query");
}

# ---- prepared statements, views and functions ----

foreach my $form (
	q{SELECT n.* FROM geonn_nearest($1, $2, k => 2, row_type => NULL::text_row) n WHERE n.obs_id = $3 OR n.distance < 100000},
	q{SELECT o.id, n.* FROM text_obs o CROSS JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], $2, row_type => NULL::text_point) n WHERE o.id <> $3 AND o.tableoid = $1},
	q{SELECT o.kind, n.* FROM text_obs o JOIN geonn_nearest($1, $2, row_type => NULL::text_row) n ON n.obs_id = o.id WHERE o.id >= $3})
{
	foreach my $mode (qw(force_generic_plan force_custom_plan))
	{
		my ($named, $record) = map {
			$node->safe_psql('postgres', "$workers SET plan_cache_mode = $mode; PREPARE q (regclass, regclass, text) AS $_;
				EXPLAIN EXECUTE q ('text_obs', 'text_ref', 'a7'); CREATE TEMP TABLE t AS EXECUTE q ('text_obs', 'text_ref', 'a7'); SELECT count(*), md5(string_agg(t::text, ',' ORDER BY t::text)) FROM t")
		} $form, with_record($form);

		is($record, $named, "$mode: plan and rows of $form");
		like($record, qr/Custom Scan \(geonn/, 'with the node');
	}
}
my $record = with_record(q{SELECT obs_id AS observation, ref_id, distance FROM geonn_nearest('text_obs', 'text_ref', row_type => NULL::text_row) n});
$node->safe_psql('postgres', "CREATE VIEW of_records AS $record;
	CREATE FUNCTION of_records() RETURNS TABLE (observation text, ref_id text, distance float8) STABLE LANGUAGE sql BEGIN ATOMIC $record; END");
foreach my $from ('of_records', 'of_records()')
{
	like($node->safe_psql('postgres', "EXPLAIN (COSTS OFF) SELECT * FROM $from WHERE observation = 'a7'"),
		qr/Custom Scan \(geonn join\).*Filter on Observations/s, "$from has the node, and conditions reach it");
	is($node->safe_psql('postgres', "SELECT count(*) FROM $from WHERE observation = 'a7'"), 1, 'with its row');
}

# ---- the extension's own row types ----

my $email = q{SELECT o.kind, n.* FROM emails o JOIN geonn_nearest('emails', 'emails', k => 3, row_type => NULL::geonn_pair_text) n ON n.obs_id = o.id};
$node->safe_psql('postgres', 'CREATE TABLE emails (id varchar(30) PRIMARY KEY, kind integer, lat float8, lon float8); INSERT INTO emails TABLE text_obs; ANALYZE emails');
like($node->safe_psql('postgres', "EXPLAIN $email"), qr/Custom Scan \(geonn lateral join\)/, 'ids of type varchar are text in rows, and joined as such');
is($node->safe_psql('postgres', "SELECT count(*) FROM (SELECT q::text FROM ($email) q EXCEPT ALL SELECT q::text FROM (" . $email =~ s/(geonn_nearest\(.*?\)) n/(SELECT * FROM $1 OFFSET 0) n/r . ') q) d'), 0, 'with the rows of the call alone');
foreach my $form (
	q{SELECT * FROM geonn_nearest('TYPE_obs', 'TYPE_ref', row_type => NULL::geonn_pair_TYPE) n WHERE obs_id = (SELECT min(id::text) FROM TYPE_obs)::TYPE},
	q{SELECT o.id, n.ord, n.ref_id, n.distance FROM TYPE_obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'TYPE_ref', row_type => NULL::geonn_point_pair_TYPE) n})
{
	foreach my $type (qw(text uuid))
	{
		my $ready = $form =~ s/TYPE/$type/gr;
		my $own = $ready =~ s/geonn_pair_(\w+)/$1_row/r =~ s/geonn_point_pair_(\w+)/$1_point/r =~ s/SELECT \*/SELECT obs_id, ref_id, distance/r;

		is($node->safe_psql('postgres', "SELECT count(*) > 0, md5(string_agg(q::text, ',' ORDER BY q::text)) FROM ($ready) q"),
			$node->safe_psql('postgres', "SELECT true, md5(string_agg(q::text, ',' ORDER BY q::text)) FROM ($own) q"), "the rows of $ready");
	}
}

# ---- columns ----

# an alias has other names than the list, by which the columns are known
my $aliased = q{SELECT p FROM ROWS FROM (geonn_nearest('text_obs', 'text_ref', row_type => NULL::record) AS (distance float8, obs_id text)) n (obs_id, p) WHERE p = 'a7'};
like($node->safe_psql('postgres', "EXPLAIN $aliased"), qr/Custom Scan \(geonn join\).*rows=1 .*Filter on Observations: \(p = 'a7'/s, 'an alias changes no column, nor what is expected of it');
is($node->safe_psql('postgres', $aliased), 'a7', 'nor its rows');

# ---- errors ----

foreach my $list ('obs_id integer, ref_id text', 'obs_id text, ref_id uuid', 'obs_id varchar(3)', 'obs_id text, rank smallint', 'obs_id text, distance numeric',
	'obs_id text, place text', 'ord bigint', 'ref_lat real')
{
	my $call = qq{geonn_nearest('text_obs', 'text_ref', row_type => NULL::record)};
	my $error = error_of("SELECT * FROM $call AS n ($list)");

	like($error, qr/^ERROR:  .*\n.*HINT:  /s, "an error for ($list)");
	is($error, error_of("SELECT * FROM ROWS FROM ($call AS ($list)) WITH ORDINALITY"), 'which is that of the function');
}

# ---- the function by itself ----

foreach my $query (
	q{SELECT * FROM CALL WITH ORDINALITY}, q{SELECT n FROM CALL n}, q{SELECT * FROM text_obs o JOIN CALL n ON n.obs_id = o.id FOR UPDATE OF o})
{
	my $named = $query =~ s/CALL/geonn_nearest('text_obs', 'text_ref', row_type => NULL::text_row)/r;

	foreach my $either ($named, with_record($named))
	{
		like($node->safe_psql('postgres', "EXPLAIN (COSTS OFF) $either"), qr/Function Scan/, "no node in $either");
	}
}

done_testing();
