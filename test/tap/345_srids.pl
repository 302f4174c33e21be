
# Columns of geometry in another SRID than 4326 have the rows of a table that ST_Transform made of them before, bit by bit:
# points and shapes, of either side, with the SRID in the type or in the values; also by references that the engine
# keeps, by a base, in caches, and after changes.  ST_Transform is PostGIS's, whatever another role plants.  Values that it cannot
# transform are invalid coordinates, and other errors of it name the row.  Columns without an SRID, or with several, and curves are errors, and so are all of them with transform => false.
#
# needs: postgis
# rooms: points join pages live cache

use strict;
use warnings;

use Geonn qw(:DEFAULT query);
use Test::More;

my $node = new_server('srids', preload => 1, conf => "autovacuum = off\nmax_parallel_workers_per_gather = 0");

# an SRID, and where its projection is used: west, east, south, north
my %areas = (
	3857 => [ -179, 179, -80, 80 ],
	27700 => [ -6, 1, 50, 58 ],
	25832 => [ 6, 12, 47, 55 ],
	5070 => [ -120, -70, 25, 48 ]);

# the error of SQL, without where psql read it
sub error_of
{
	my ($sql, $role) = @_;
	my (undef, undef, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql", on_error_stop => 0,
		extra_params => $role ? [ '-U', $role ] : []);

	$error =~ s/^psql:<stdin>:\d+: //mg;
	return $error;
}

# ---- the rows of tables that were transformed before ----

query(q{
	CREATE EXTENSION postgis;
	CREATE TYPE pair AS (obs_id bigint, ref_id bigint, rank integer, distance float8, obs_lat float8, obs_lon float8,
		ref_lat float8, ref_lon float8, bearing float8);
	CREATE TYPE text_pair AS (obs_id integer, ref_id text, distance float8);
	CREATE FUNCTION place(i integer, west float8, east float8, south float8, north float8) RETURNS geometry LANGUAGE sql IMMUTABLE AS $$
		SELECT ST_SetSRID(ST_MakePoint(west + (east - west) * (i * 7919 % 10007) / 10007, south + (north - south) * (i * 104729 % 9973) / 9973), 4326) $$;
	CREATE FUNCTION shape(i integer, west float8, east float8, south float8, north float8) RETURNS geometry LANGUAGE sql IMMUTABLE AS $$
		SELECT CASE i % 5 WHEN 0 THEN p WHEN 1 THEN ST_MakeLine(p, ST_Translate(p, 0.02, 0.01)) WHEN 2 THEN ST_Buffer(p, 0.02)
			WHEN 3 THEN ST_Collect(p, ST_Translate(p, 0.01, -0.01)) ELSE ST_Force3D(ST_MakeLine(p, ST_Translate(p, -0.02, 0.01)), 7) END
		FROM place(i, west, east, south, north) p $$;
	CREATE FUNCTION differing(a text, b text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		found text;
	BEGIN
		EXECUTE format('WITH a AS MATERIALIZED (SELECT t::text FROM %s t), b AS MATERIALIZED (SELECT t::text FROM %s t)
			SELECT format(''%%s rows, %%s differ'', (SELECT count(*) FROM a), (SELECT count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) d))',
			a, b) INTO found;
		RETURN found;
	END $$});

foreach my $srid (sort { $a <=> $b } keys %areas)
{
	my $area = join(', ', @{ $areas{$srid} });

	query(qq{
		DROP TABLE IF EXISTS obs, ref, plain, shape, anyshape, mixed, obs_degrees, ref_degrees, shape_degrees, mixed_degrees;
		CREATE TABLE obs AS SELECT i AS id, i % 3 AS kind, ST_Transform(place(i * 3, $area), $srid)::geometry(Point, $srid) AS g FROM generate_series(1, 200) i;
		CREATE TABLE ref AS SELECT i AS id, i % 3 AS kind, ST_Transform(ST_Force3D(place(i, $area), i), $srid)::geometry(PointZ, $srid) AS g FROM generate_series(1, 700) i;
		CREATE TABLE shape AS SELECT i AS id, i % 3 AS kind, ST_Transform(ST_Force2D(shape(i, $area)), $srid)::geometry(Geometry, $srid) AS g FROM generate_series(1, 300) i;
		ALTER TABLE shape ALTER g SET STORAGE EXTERNAL;
		INSERT INTO obs VALUES (1001, 0, NULL), (1002, 0, 'SRID=$srid;POINT EMPTY');
		INSERT INTO ref VALUES (1001, 0, NULL), (1002, 0, 'SRID=$srid;POINT Z EMPTY');
		INSERT INTO shape VALUES (1001, 0, NULL), (1002, 0, 'SRID=$srid;LINESTRING EMPTY');
		INSERT INTO shape SELECT 1003, 0, ST_Segmentize(ST_Buffer(g, 1000), 1) FROM obs WHERE id = 1;
		CREATE TABLE plain AS SELECT id, kind, g::geometry FROM ref;
		CREATE TABLE anyshape AS SELECT id, kind, g::geometry FROM shape;
		CREATE TABLE mixed AS SELECT id, kind, g::geometry FROM ref WHERE id < 400;
		INSERT INTO mixed SELECT id + 2000, kind, g FROM shape;
		INSERT INTO mixed VALUES (3001, 0, 'POINT EMPTY'), (3002, 0, 'SRID=4326;LINESTRING EMPTY'), (3003, 0, 'SRID=5069;POLYGON EMPTY');
		CREATE TABLE obs_degrees AS SELECT id, kind, ST_Transform(g, 4326)::geometry(Point, 4326) AS g FROM obs;
		CREATE TABLE ref_degrees AS SELECT id, kind, ST_Transform(g, 4326)::geometry(PointZ, 4326) AS g FROM ref;
		CREATE TABLE shape_degrees AS SELECT id, kind, ST_Transform(g, 4326)::geometry(Geometry, 4326) AS g FROM shape;
		CREATE TABLE mixed_degrees AS SELECT id, kind, CASE WHEN NOT ST_IsEmpty(g) THEN ST_Transform(g, 4326) END AS g FROM mixed});
	foreach (
		[ "geonn_nearest('OBS', 'REF', k => 3, row_type => NULL::pair)", 600 ],
		[ "geonn_nearest('OBS', 'PLAIN', k => 3, by => '{kind}', row_type => NULL::pair)", 600 ],
		[ "geonn_nearest('OBS', 'OBS', exclude_self => true, row_type => NULL::pair)", 200 ],
		[ "geonn_nearest('OBS', 'REF', metric => 'spheroid', keep_unmatched => true, row_type => NULL::pair)", 202 ],
		[ "geonn_within('OBS', 'REF', 30000, row_type => NULL::pair)" ],
		[ "geonn_within_count('OBS', 'PLAIN', '{10000, 300000}')", 400 ],
		[ "geonn_nearest_sql('SELECT * FROM OBS OFFSET 0', 'TABLE REF', row_type => NULL::pair)", 200 ],
		[ "geonn_nearest_points('{50, 51}', '{0, 7}', 'REF', k => 7)", 14 ],
		[ "(SELECT n.* FROM few_obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'PLAIN', k => 5) n)", 15 ],
		[ "geonn_nearest('OBS', 'SHAPE', k => 2, options => '{\"ref_shape\": \"g\"}', row_type => NULL::pair)", 400 ],
		[ "geonn_nearest('OBS', 'ANYSHAPE', k => 2, by => '{kind}', options => '{\"ref_shape\": \"g\"}', row_type => NULL::pair)", 400 ],
		[ "geonn_nearest_sql('TABLE OBS', 'SELECT id::text AS id, g FROM ANYSHAPE', options => '{\"ref_shape\": \"g\"}', row_type => NULL::text_pair)", 200 ],
		[ "geonn_within('OBS', 'SHAPE', 20000, options => '{\"ref_shape\": \"g\"}', row_type => NULL::pair)" ],
		[ "geonn_nearest('OBS', 'MIXED', k => 2, row_type => NULL::pair)", 400 ],
		[ "geonn_nearest('OBS', 'MIXED', k => 2, by => '{kind}', metric => 'sphere', keep_unmatched => true, row_type => NULL::pair)", 402 ],
		[ "geonn_nearest('OBS', 'SHAPE', k => 2, row_type => NULL::pair)", 400 ],
		[ "geonn_nearest_sql('TABLE OBS', 'SELECT id, g FROM MIXED OFFSET 0', row_type => NULL::pair)", 200 ],
		[ "geonn_within_count('OBS', 'MIXED', '{10000, 300000}')", 400 ],
		[ "geonn_nearest_points('{50, 51}', '{0, 7}', 'MIXED', k => 7)", 14 ],
		[ "(SELECT rows, null_coordinates, latitude_min, latitude_max, longitude_min, longitude_max FROM geonn_check('MIXED'))", 1 ],
		[ "(SELECT rows, null_coordinates, latitude_min, latitude_max, longitude_min, longitude_max FROM geonn_check('REF'))", 1 ],
		[ "(SELECT rows, null_coordinates, latitude_min, latitude_max, longitude_min, longitude_max FROM geonn_check('ANYSHAPE', options => '{\"shape\": \"g\"}'))", 1 ])
	{
		my ($call, $rows) = @$_;
		my %names = (OBS => 'obs', REF => 'ref', PLAIN => 'plain', SHAPE => 'shape', ANYSHAPE => 'anyshape', MIXED => 'mixed');
		my %degrees = (OBS => 'obs_degrees', REF => 'ref_degrees', PLAIN => 'ref_degrees', SHAPE => 'shape_degrees', ANYSHAPE => 'shape_degrees', MIXED => 'mixed_degrees');
		my ($own, $before) = map { my $with = $_; $call =~ s/\b(OBS|REF|PLAIN|SHAPE|ANYSHAPE|MIXED)\b/$with->{$1}/gr } \%names, \%degrees;

		$rows //= '[1-9]\d*';
		like(query("SET client_min_messages = warning; SELECT differing(\$\$$own\$\$, \$\$$before\$\$)"), qr/^$rows rows, 0 differ$/, "$srid: $call");
	}
	is(query(q{SELECT differing($$geonn_nearest('obs', 'ref_degrees')$$, $$geonn_nearest('obs_degrees', 'ref')$$)}),
		'200 rows, 0 differ', "$srid: one side alone is transformed");
}
like(query(q{SELECT reason FROM geonn_describe('ref') WHERE role = 'point'}), qr/^column type; transformed from SRID 27700 to 4326$/,
	'geonn_describe says the SRID of a type');
like(error_of(q{SELECT rows FROM geonn_check('plain');}), qr/NOTICE:  00000: column "g" of relation "plain" has SRID 27700, and is transformed to 4326/,
	'geonn_check says the SRID of values');

# parallel workers transform, too
query(q{CREATE TABLE many AS SELECT i AS id, ST_Transform(place(i % 10000, -6, 1, 50, 58), 27700)::geometry(Point, 27700) AS g FROM generate_series(1, 40000) i;
	CREATE TABLE many_degrees AS SELECT id, ST_Transform(g, 4326)::geometry(Point, 4326) AS g FROM many; ANALYZE});
my $parallel = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; ';
my $all = "SELECT count(*), sum(ref_id), sum(distance::numeric) FROM geonn_nearest('MANY', 'ref', row_type => NULL::pair)";
like(query($parallel . 'EXPLAIN (ANALYZE, COSTS OFF) ' . $all =~ s/MANY/many/r), qr/Workers Launched: 2.*Parallel Custom Scan/s, 'a parallel plan');
is(query($parallel . $all =~ s/MANY/many/r), query($all =~ s/MANY/many_degrees/r), 'has the same rows');

# two processes read one value each, since the first value that a process transforms takes long
query(q{CREATE TABLE halves (id integer, g geometry, note text); ALTER TABLE halves ALTER note SET STORAGE PLAIN;
	INSERT INTO halves SELECT id, CASE id WHEN 1 THEN g WHEN 2 THEN ST_Transform(g, 25832) END, repeat('x', 7900) FROM many WHERE id <= 40 ORDER BY id});
my @errors = map { error_of($parallel . 'SET parallel_leader_participation = off; ' . $all =~ s/MANY/halves/r . ';') } 1 .. 10;
is(scalar(grep { /ERROR:  22023: the point of id \d+ of relation "halves" has SRID (27700|25832)\nDETAIL:  Other values of column "g" have SRID (27700|25832)/ } @errors),
	10, 'values of two SRIDs are an error, whichever process reads which');

# ---- which column, and the option ----

query(q{
	CREATE TABLE degrees_too (id integer, grid geometry(Point, 27700), place geometry(Point, 4326));
	CREATE TABLE shape_too (id integer, grid geometry(Point, 27700), way geometry(LineString, 4326));
	CREATE TABLE grids (id integer, way geometry(LineString, 27700), place geometry(Point, 25832));
	CREATE TABLE two_grids (id integer, one geometry(Point, 27700), other geometry(Point, 25832));
	CREATE TABLE way (id integer, way geometry(LineString, 27700));
	CREATE TABLE curve (id integer, way geometry(CompoundCurve, 27700));
	CREATE TABLE nad27 (id integer, place geography(Point, 4267))});
is(query("SELECT string_agg(role || ' ' || column_name, ', ') FROM geonn_describe('$_->[0]') WHERE role IN ('point', 'shape')"), $_->[1], "$_->[0]: $_->[1]")
  foreach [ 'degrees_too', 'point place' ], [ 'shape_too', 'shape way' ], [ 'grids', 'point place' ], [ 'way', 'shape way' ];
like(error_of(q{SELECT geonn_describe('two_grids');}), qr/ERROR:  42702: .* more than one point column\nDETAIL:  Candidates are "one", "other", of other SRIDs than 4326\.\nHINT:  .*"geog": "other"/,
	'two columns that could be transformed are ambiguous');
like(error_of(q{SELECT geonn_nearest('few_obs', 'curve');}), qr/ERROR:  42804: shape column "way" .*CompoundCurve,27700.*\n.*\nHINT:  .*ST_CurveToLine/, 'curves by type');
like(error_of(q{SELECT geonn_nearest('few_obs', 'nad27');}), qr/ERROR:  42804: .*\nDETAIL:  .*and geonn reads SRID 4326/, 'a geography of another SRID');

my $refused = qr/ERROR:  42804: (point|shape) column .*\nDETAIL:  Its type is geometry\(\w+,27700\), and geonn reads SRID 4326\.\nHINT:  .*ST_Transform/;
like(error_of("SELECT $_;"), $refused, "refused: $_")
  foreach q{geonn_nearest('few_obs', 'ref', options => '{"transform": false}')}, q{geonn_within('obs', 'few_ref', 5, options => '{"transform": false}')},
	q{geonn_within_count_points('{1}', '{1}', 'ref', '{5}', options => '{"transform": false}')}, q{geonn_check('ref', options => '{"transform": false}')},
	q{geonn_describe('way', options => '{"transform": false}')}, q{geonn_cache_create('refused', 'few_obs', 'ref', options => '{"transform": false}')};
like(error_of(q{SELECT geonn_nearest('few_obs', 'plain', options => '{"transform": false}');}),
	qr/ERROR:  22023: the point of id 1 of relation "plain" has SRID 27700\nDETAIL:  geonn reads longitudes and latitudes of SRID 4326\.\nHINT:  .*ST_Transform/, 'refused: values');
like(error_of(q{SELECT geonn_nearest('few_obs', 'anyshape', options => '{"transform": false, "ref_shape": "g"}');}), qr/ERROR:  22023: the shape of id 1 .* has SRID 27700/, 'refused: values of shapes');
like(error_of(q{SELECT geonn_nearest('few_obs', 'plain', options => '{"transform": "no"}');}), qr/ERROR:  22023: option "transform" is the string "no"\nHINT:  Give true or false\./, 'true or false');

# ---- values ----

my $check_wrong = q{SET client_min_messages = error; SELECT empty_shapes, curved_shapes, invalid_shapes, examples[1] FROM geonn_check('wrong')};

# (errors of the point as reference, as observation, and as shape; and geonn_check's, or its example)
sub wrong
{
	my ($value, $expected, $what, $example) = @_;

	query("CREATE TABLE wrong AS SELECT i AS id, ST_Transform(place(i, -6, 1, 50, 58), 27700) AS g FROM generate_series(1, 9) i; UPDATE wrong SET g = $value WHERE id = 7");
	foreach my $call (q{geonn_nearest('few_obs', 'wrong')}, q{geonn_nearest('wrong', 'few_ref')}, q{geonn_nearest('few_obs', 'wrong', options => '{"ref_shape": "g"}')},
		defined $example ? () : q{geonn_check('wrong')})
	{
		my $error = error_of("SELECT $call;");

		like($error, $expected, "$what: $call");
		unlike($error, qr/FATAL|PANIC|server closed/, 'and no more');
	}
	like(query($check_wrong), $example, "$what: geonn_check") if defined $example;
	query('DROP TABLE wrong');
	return;
}
wrong("ST_SetSRID(g, 25832)", qr/ERROR:  22023: the (point|shape) of id 7 of relation "wrong" has SRID 25832\nDETAIL:  Other values of column "g" have SRID 27700\.\nHINT:  .*ST_Transform/, 'another SRID', qr/^0\|0\|1\|id 7: the point has SRID 25832$/);
wrong("ST_Transform(g, 4326)", qr/ERROR:  22023: the (point|shape) of id 7 of relation "wrong" has SRID 4326\nDETAIL:  Other values of column "g" have SRID 27700/, 'degrees among others', qr/^0\|0\|1\|id 7: the point has SRID 4326$/);
wrong("ST_SetSRID(g, 0)", qr/ERROR:  22023: the (point|shape) of id 7 of relation "wrong" has SRID 0\n.*\nHINT:  .*ST_SetSRID/, 'no SRID', qr/^0\|0\|1\|id 7: the point has SRID 0/);
wrong("ST_SetSRID('CIRCULARSTRING(0 0, 1 1, 2 0)'::geometry, 27700)", qr/ERROR:  0A000: the shape of id 7 of relation "wrong" has a CircularString\n.*\nHINT:  .*ST_CurveToLine/, 'a curve',
	qr/^0\|1\|0\|id 7: the shape has a CircularString$/);
# coordinates that are no numbers
query(q{CREATE TABLE not_finite AS SELECT i AS id, ST_SetSRID(g, 27700) AS g FROM unnest(ARRAY[ST_MakePoint(400000, 300000), ST_MakePoint('NaN', 1), ST_MakePoint(1, '-Infinity')]) WITH ORDINALITY u(g, i);
	CREATE TABLE not_finite_lines AS SELECT id, CASE WHEN id = 1 THEN g ELSE ST_MakeLine(ST_SetSRID(ST_MakePoint(400000, 300000), 27700), g) END AS g FROM not_finite});
foreach my $table ('not_finite', 'not_finite_lines')
{
	is(query("SET client_min_messages = error; SELECT string_agg(obs_id || ':' || ref_id, ' ' ORDER BY obs_id) FROM geonn_nearest('few_obs', '$table', k => 3)"), '1:1 2:1 3:1',
		"$table: numbers alone are neighbours");
	like(error_of("SELECT FROM geonn_nearest('few_obs', '$table');"), qr/WARNING:  01000: 2 rows of relation "$table" were skipped: coordinates out of range\nDETAIL:  NaN, infinite, or not to be transformed to SRID 4326: 2;/, "$table: others are skipped");
	like(error_of("SELECT FROM geonn_nearest('few_obs', '$table', invalid => 'error');"), qr/ERROR:  22003: longitude of id 2 of relation "$table" is out of range: NaN/, "$table: or an error");
	is(query("SET client_min_messages = error; SELECT rows, not_finite FROM geonn_check('$table')"), '3|2', "$table: and counted");
}
query("CREATE TABLE wrong AS SELECT id, g FROM mixed WHERE id < 50; UPDATE wrong SET g = ST_SetSRID(ST_MakeLine(g, ST_Translate(g, 9, 9)), 25832) WHERE id = 7");
like(error_of("SELECT $_;"), qr/ERROR:  22023: the shape of id 7 of relation "wrong" has SRID 25832\nDETAIL:  Other values of column "g" have SRID 27700\./, "a line of another SRID: $_")
  foreach q{geonn_nearest('few_obs', 'wrong')}, q{geonn_nearest_points('{51}', '{0}', 'wrong')};
is(query($check_wrong), '0|0|1|id 7: the shape has SRID 25832', 'a line of another SRID: geonn_check');
query('DROP TABLE wrong');
is(query(q{CREATE TABLE far AS SELECT i AS id, ST_SetSRID(ST_MakePoint(1e300, -1e300), 27700)::geometry(Point, 27700) AS g FROM generate_series(1, 900) i;
	CREATE TABLE unknown (id integer, g geometry(Point, 910000)); INSERT INTO unknown VALUES (5, 'SRID=910000;POINT(1 1)'); ANALYZE;
	EXPLAIN SELECT * FROM geonn_within('obs', 'far', 1000) WHERE ref_id = 1}) =~ /geonn/ ? 1 : 0, 1, 'planning transforms nothing');
like(error_of(q{SELECT geonn_nearest('few_obs', 'unknown');}), qr/ERROR:  .*910000.*\nCONTEXT:  transforming the point of id 5/, 'an SRID that PostGIS does not know');

# ---- places that cannot be transformed ----

query(q{CREATE TABLE outside AS SELECT i AS id, CASE WHEN i IN (3, 4, 8) THEN ST_SetSRID(ST_MakePoint(1e8, 1e8), 27700) ELSE ST_Transform(place(i, -6, 1, 50, 58), 27700) END AS g
		FROM generate_series(1, 900) i;
	CREATE TABLE outside_lines AS SELECT id, ST_MakeLine(ST_SetSRID(ST_MakePoint(400000, 300000), 27700), g) AS g FROM outside;
	CREATE VIEW of_outside AS TABLE outside;
	CREATE VIEW of_outside_lines AS TABLE outside_lines});
foreach my $table ('outside', 'outside_lines')
{
	my $what = $table eq 'outside' ? 'point' : 'shape';
	my $said = qr/WARNING:  01000: 3 rows of relation "$table" were skipped: coordinates out of range\nDETAIL:  NaN, infinite, or not to be transformed to SRID 4326: 3; latitude not from -90 to 90: 0;/;
	my $named = qr/ERROR:  22003: the $what of id 3 of relation "$table" cannot be transformed from SRID 27700 to 4326: .*\nHINT:  .*invalid => 'skip'/;
	my $same = sub {
		my ($source, $settings) = @_;

		return query("SET client_min_messages = error; $settings
			SELECT count(*), count(a), count(b) FROM (SELECT obs_id, ref_id, distance, 1 AS a FROM geonn_nearest('few_obs', '$source', k => 1000)) a
				FULL JOIN (SELECT obs_id, ref_id, distance, 1 AS b FROM geonn_nearest('few_obs', 'inside_$table', k => 1000)) b USING (obs_id, ref_id, distance);
			SELECT count(*), count(a), count(b) FROM (SELECT obs_id, ref_id, distance, 1 AS a FROM geonn_nearest('$source', 'few_ref')) a
				FULL JOIN (SELECT obs_id, ref_id, distance, 1 AS b FROM geonn_nearest('inside_$table', 'few_ref')) b USING (obs_id, ref_id, distance)");
	};
	my $pairs = query('SELECT count(*) FROM few_obs') * 897;

	query("CREATE TABLE inside_$table AS SELECT id, ST_Transform(g, 4326) AS g FROM $table WHERE id NOT IN (3, 4, 8); ANALYZE; VACUUM $table");
	is($same->($table, ''), "$pairs|$pairs|$pairs\n897|897|897", "$table: the others have their rows") for 1 .. 2;
	is($same->("of_$table", 'SET max_parallel_workers_per_gather = 2; SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;'),
		"$pairs|$pairs|$pairs\n897|897|897", "$table: also in parallel workers");
	foreach my $sides ("'few_obs', '$table'", "'$table', 'few_ref'")
	{
		like(error_of("SELECT FROM geonn_nearest($sides);"), $said, "$sides: values that cannot be transformed are skipped");
		like(error_of("SELECT FROM geonn_nearest($sides, invalid => 'error');"), $named, "$sides: or an error that names the row");
	}
	is(query("SET client_min_messages = error; SELECT count(*), count(ref_id) FROM geonn_nearest('$table', 'few_ref', keep_unmatched => true)"), '900|897', "$table: or stay without a neighbour");
	like(query("SET client_min_messages = error; SELECT not_finite, invalid_shapes, examples[1] FROM geonn_check('$table')"), qr/^3\|0\|id 3: the $what cannot be transformed from SRID 27700 to 4326: /, "$table: geonn_check counts them, and names one");
	query("UPDATE $table SET g = (SELECT g FROM $table WHERE id = 3) WHERE id = 5; DELETE FROM inside_$table WHERE id = 5");
	$pairs -= query('SELECT count(*) FROM few_obs');
	is($same->($table, ''), "$pairs|$pairs|$pairs\n896|896|896", "$table: after a change") for 1 .. 2;
}

# ---- whose function ----

query(q{
	CREATE ROLE mallory LOGIN;
	CREATE ROLE reader LOGIN;
	GRANT CREATE ON DATABASE postgres TO mallory;
	GRANT CREATE ON SCHEMA public TO mallory;
	GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
	SET SESSION AUTHORIZATION mallory;
	CREATE SCHEMA evil;
	GRANT USAGE ON SCHEMA evil TO PUBLIC;
	CREATE FUNCTION evil.st_transform(g public.geometry, s integer) RETURNS public.geometry LANGUAGE plpgsql AS $$ BEGIN RAISE 'sprung'; END $$;
	CREATE FUNCTION public.st_transform(g public.geometry, s bigint) RETURNS public.geometry LANGUAGE plpgsql AS $$ BEGIN RAISE 'sprung'; END $$;
	CREATE FUNCTION public.st_transform(g anyelement, s integer) RETURNS anyelement LANGUAGE plpgsql AS $$ BEGIN RAISE 'sprung'; END $$;
	CREATE TABLE evil.spatial_ref_sys AS SELECT * FROM public.spatial_ref_sys;
	UPDATE evil.spatial_ref_sys SET proj4text = '+proj=longlat', srtext = NULL, auth_name = NULL, auth_srid = NULL});
is(query(q{SET SESSION AUTHORIZATION reader; SET search_path = evil, public;
	SELECT differing($$geonn_nearest('obs', 'plain')$$, $$geonn_nearest('obs_degrees', 'ref_degrees')$$)}), '200 rows, 0 differ', 'no planted function is taken');
query('REVOKE EXECUTE ON FUNCTION ST_Transform(geometry, integer) FROM PUBLIC');
like(error_of(q{SELECT geonn_nearest('few_obs', 'obs');}, 'reader'), qr/ERROR:  42501: permission denied for function st_transform/, 'the role needs EXECUTE');
query('GRANT EXECUTE ON FUNCTION ST_Transform(geometry, integer) TO PUBLIC');

# ---- kept references, bases, caches, and what an SRID means ----

sub is_kept
{
	my ($call) = @_;

	return query("EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM $call") =~ /References Kept: true/ ? 1 : 0;
}

# a table whose type has the SRID, and one whose values have it
query(q{INSERT INTO spatial_ref_sys SELECT 990001, auth_name, auth_srid, srtext, proj4text FROM spatial_ref_sys WHERE srid = 25832;
	CREATE TABLE zone AS SELECT i AS id, ST_SetSRID(ST_Transform(place(i, 6, 12, 47, 55), 25832), 990001)::geometry(Point, 990001) AS g FROM generate_series(1, 900) i;
	CREATE TABLE open_zone AS SELECT id, g::geometry FROM zone;
	CREATE TABLE german AS SELECT i AS id, place(i * 5, 6, 12, 47, 55)::geometry(Point, 4326) AS g FROM generate_series(1, 90) i;
	CREATE VIEW degrees_of_zone AS SELECT id, ST_Transform(g, 4326) AS g FROM zone;
	CREATE VIEW degrees_of_open_zone AS SELECT id, ST_Transform(g, 4326) AS g FROM open_zone;
	ALTER TABLE zone ADD PRIMARY KEY (id); ALTER TABLE open_zone ADD PRIMARY KEY (id); ALTER TABLE german ADD PRIMARY KEY (id)});
$node->safe_psql('postgres', 'VACUUM zone, open_zone, german');
my $former = $node->background_psql('postgres', on_error_die => 1);
my $log = "SELECT mode FROM geonn_cache_log ORDER BY started DESC LIMIT 1";

sub joined
{
	my ($table) = @_;

	return "geonn_nearest('german', '$table', k => 2, row_type => NULL::pair)";
}

sub transformed_before
{
	my ($table) = @_;

	return "geonn_nearest_sql('TABLE german', 'SELECT id, ST_Transform(g, 4326) AS g FROM $table', k => 2, row_type => NULL::pair)";
}

my $points = q{SELECT string_agg((ref_id, distance)::text, ' ' ORDER BY ord, rank) FROM geonn_nearest_points('{50, 51, 52}', '{7, 8, 9}', '%s', k => 5, row_type => NULL::record) AS (ord bigint, rank integer, ref_id integer, distance float8)};

sub same
{
	my ($table) = @_;

	return "SELECT differing(\$\$" . joined($table) . "\$\$, \$\$" . transformed_before($table) . "\$\$)";
}

sub cached
{
	my ($table) = @_;

	return "SELECT differing('(SELECT obs_id, ref_id, rank, distance FROM near_$table)', \$\$(SELECT obs_id, ref_id, rank, distance FROM "
		. transformed_before($table) . ")\$\$)";
}

foreach my $table ('zone', 'open_zone')
{
	is($former->query(same($table)), '180 rows, 0 differ', "$table: before a change");
	is(is_kept(joined($table)), 1, "$table: references are kept");
	query("SELECT geonn_cache_create('near_$table', 'german', '$table', k => 2)");
	query("UPDATE $table SET g = ST_Translate(g, 1000, 1000) WHERE id < 50; DELETE FROM $table WHERE id > 880; INSERT INTO $table SELECT id + 1000, ST_Translate(g, -3000, 0) FROM $table WHERE id < 20");
	is(query(same($table)), '180 rows, 0 differ', "$table: a change of rows is seen");
	query("CALL geonn_refresh('near_$table')");
	is(query(cached($table)), '180 rows, 0 differ', "$table: by a refresh, too");
	isnt(query($log), 'full', "$table: which is no full one");
	query("CALL geonn_refresh('near_$table')");
	is(is_kept(joined($table)), 1, "$table: references are kept again");
	$former->query(sprintf($points, $table)) foreach 1 .. 4;
	like($former->query('EXPLAIN (ANALYZE, COSTS OFF) ' . sprintf($points, $table)), qr/Pages Read/, "$table: points are answered by a base");
}
query("UPDATE spatial_ref_sys s SET auth_name = o.auth_name, auth_srid = o.auth_srid, srtext = o.srtext, proj4text = o.proj4text FROM spatial_ref_sys o WHERE s.srid = 990001 AND o.srid = 25833");
foreach my $table ('zone', 'open_zone')
{
	is($former->query(same($table)), '180 rows, 0 differ', "$table: another definition of the SRID: an older session is at one with its ST_Transform");
	is(query(sprintf($points, $table)), query(sprintf($points, 'degrees_of_' . $table)), "$table: a new session has no base of the former definition");
	is(is_kept(joined($table)), 0, "$table: a new session finds no references of the former definition");
	is(query(same($table)), '180 rows, 0 differ', "$table: and has the new one");
	is(is_kept(joined($table)), 1, "$table: whose references are kept");
	query("CALL geonn_refresh('near_$table')");
	is(query(cached($table)), '180 rows, 0 differ', "$table: a cache follows at its next refresh");
}
$former->quit;

# a role that may not transform has no rows of what others have transformed, but those of 4326
query(q{CREATE TABLE degrees AS SELECT id, g::geometry FROM german; ALTER TABLE degrees ADD PRIMARY KEY (id); GRANT SELECT ON zone, open_zone, german, degrees TO reader;
	REVOKE EXECUTE ON FUNCTION ST_Transform(geometry, integer) FROM PUBLIC});
$node->safe_psql('postgres', 'VACUUM zone, open_zone, degrees');
foreach my $table ('zone', 'open_zone', 'degrees')
{
	query("SELECT count(*) FROM " . joined($table)) foreach 1 .. 2;
	query(sprintf($points, $table) . ';' . sprintf($points, $table) . ';' . sprintf($points, $table));
	foreach my $call ('SELECT count(*) FROM ' . joined($table), sprintf($points, $table))
	{
		my $error = error_of("$call;$call;", 'reader');

		is($error =~ /permission denied for function st_transform/ ? 'denied' : $error, $table eq 'degrees' ? '' : 'denied', "$table: whose rows a role has that may not transform");
	}
}
query('GRANT EXECUTE ON FUNCTION ST_Transform(geometry, integer) TO PUBLIC');

# a session that has joined columns of 70 SRIDs still has the definitions that it has begun with, and says so of the references that it keeps
query(q{INSERT INTO spatial_ref_sys SELECT 991000 + i, auth_name, auth_srid, srtext, proj4text FROM spatial_ref_sys, generate_series(1, 70) i WHERE srid = 25832;
	CREATE TABLE alone AS SELECT 1 AS id, 50::float8 AS lat, 9::float8 AS lon;
	DO $$
	BEGIN
		FOR i IN 1 .. 70 LOOP
			EXECUTE format('CREATE TABLE zone_%s AS SELECT i AS id, ST_SetSRID(ST_MakePoint(500000 + i * 100, 5500000), %s)::geometry(Point, %2$s) AS g FROM generate_series(1, 30) i',
				i, 991000 + i);
			EXECUTE format('ALTER TABLE zone_%s ADD PRIMARY KEY (id)', i);
		END LOOP;
	END $$});
$node->safe_psql('postgres', 'VACUUM zone_1');
$former = $node->background_psql('postgres', on_error_die => 1);
$former->query(q{DO $$ BEGIN FOR i IN 1 .. 70 LOOP PERFORM geonn_nearest('alone', 'zone_' || i); END LOOP; END $$});
query("UPDATE spatial_ref_sys s SET auth_name = o.auth_name, auth_srid = o.auth_srid, srtext = o.srtext, proj4text = o.proj4text FROM spatial_ref_sys o WHERE s.srid = 991001 AND o.srid = 25833");
$former->query("SELECT geonn_nearest('alone', 'zone_1')") foreach 1 .. 2;
$former->quit;
is(query(q{SELECT count(*) FROM geonn_nearest('alone', 'zone_1') n JOIN zone_1 z ON z.id = n.ref_id WHERE distance = geonn_distance(50, 9, ST_Transform(g, 4326))}),
	1, 'a new session finds no references of the first of 70 definitions');

# ---- refreshes that read a few pages ----

query(q{CREATE TABLE sparse (id integer PRIMARY KEY, g geometry, note text) WITH (fillfactor = 70);
	ALTER TABLE sparse ALTER note SET STORAGE PLAIN;
	INSERT INTO sparse SELECT i, ST_Transform(place(i, 6, 12, 47, 55), 25832), repeat('x', 400) FROM generate_series(1, 2000) i;
	CREATE TABLE sparse_german AS SELECT * FROM sparse WHERE id % 2 = 1;
	ALTER TABLE sparse_german ADD PRIMARY KEY (id)});
$node->safe_psql('postgres', 'VACUUM sparse, sparse_german');
query("SELECT geonn_cache_create('near_sparse', 'sparse_german', 'sparse', k => 2)");
my $sparse = q{SELECT differing('(SELECT obs_id, ref_id, rank, distance FROM near_sparse)', $$(SELECT obs_id, ref_id, rank, distance FROM
	geonn_nearest_sql('SELECT id, ST_Transform(g, 4326) AS g FROM sparse_german', 'SELECT id, ST_Transform(g, 4326) AS g FROM sparse', k => 2, row_type => NULL::pair))$$)};

# refresh the cache; returns how it was read, or its error
sub refreshed
{
	my $error = error_of("SET client_min_messages = debug1; CALL geonn_refresh('near_sparse');");

	return $1 if $error =~ /(ERROR: .*)/s;
	return query($sparse) . ($error =~ /is read where it may have changed/ ? ', of few pages' : ', of all') . ', ' . query($log);
}
foreach my $table ('sparse', 'sparse_german')
{
	query("UPDATE $table SET g = ST_Translate(g, 20, 20) WHERE id = 77");
	like(refreshed(), qr/^200[02] rows, 0 differ, of few pages, incremental/, "$table: a changed page is read alone");
	# a refresh may prune pages that the next one reads
	query("CALL geonn_refresh('near_sparse')") foreach 1 .. 3;
	query("INSERT INTO $table VALUES (5000, 'SRID=25833;POINT(300000 5500000)', repeat('x', 7900))");
	like(refreshed(), qr/^ERROR:  22023: the point of id 5000 of relation "$table" has SRID 25833\nDETAIL:  Other values of column "g" have SRID 25832\./,
		"$table: a value of another SRID, alone on its page");
	query("UPDATE $table SET g = ST_Transform(g, 25832), note = NULL WHERE id = 5000");
	like(refreshed(), qr/^200[02] rows, 0 differ, of few pages, incremental/, "$table: is set right");
	query("UPDATE $table SET g = ST_Transform(g, 25833)");
	like(refreshed(), qr/^200[02] rows, 0 differ/, "$table: all values get another SRID");
	query("CALL geonn_refresh('near_sparse', 'full'); UPDATE $table SET g = ST_Translate(g, 20, 20) WHERE id = 77");
	like(refreshed(), qr/^200[02] rows, 0 differ, of few pages, incremental/, "$table: and a page is read alone again");
	query("UPDATE $table SET g = NULL WHERE id = 79");
	like(refreshed(), qr/^200[02] rows, 0 differ, of few pages, incremental/, "$table: a NULL has no SRID") if $table eq 'sparse';
}

# a base, of a column whose values have the SRID
query(q{CREATE TABLE live (id integer PRIMARY KEY, g geometry); INSERT INTO live SELECT id, ST_Transform(ST_SetSRID(g, 25832), 25833) FROM zone WHERE id < 500});
my $live = $node->background_psql('postgres', on_error_die => 0, on_error_stop => 0);
sub live_is_right
{
	my ($what, $has_base) = @_;
	my $table = query(q{CREATE OR REPLACE VIEW live_degrees AS SELECT id, ST_Transform(g, 4326) AS g FROM live; SELECT 'live_degrees'});
	my $found = $live->query(sprintf($points, 'live'));

	is($found, query(sprintf($points, $table)), $what);
	is($live->query('EXPLAIN (ANALYZE, COSTS OFF) ' . sprintf($points, 'live')) =~ /Pages Read/ ? 1 : 0, $has_base, "$what: by a base") if defined($has_base);
	return;
}
$live->query(sprintf($points, 'live')) foreach 1 .. 3;
live_is_right('a base of another SRID', 1);
query('UPDATE live SET g = ST_Translate(g, 5000, 0) WHERE id % 7 = 1; DELETE FROM live WHERE id % 11 = 1');
live_is_right('and its changes', 1);
query(q{INSERT INTO live VALUES (1000, 'SRID=4326;POINT(7 50)')});
$live->{stderr} = '';
$live->query(sprintf($points, 'live'));
like($live->{stderr}, qr/the point of id 1000 of relation "live" has SRID 4326/, 'a value of another SRID is an error of a base, too');
$live->{stderr} = '';
query('UPDATE live SET g = ST_Transform(g, 4326)');
live_is_right('all values have the new SRID');
query('UPDATE live SET g = ST_Transform(g, 25833)');
$live->query(sprintf($points, 'live')) foreach 1 .. 3;
query('UPDATE live SET g = ST_MakeLine(g, ST_Translate(g, 9000, 500)) WHERE id % 3 = 1');
live_is_right('points of which some become lines');
$live->query(sprintf($points, 'live')) foreach 1 .. 3;
live_is_right('and stay such');
query('DELETE FROM live WHERE id % 3 = 1');
live_is_right('and are deleted');
$live->quit;
is(query(q{CREATE TABLE ask AS SELECT i AS id, ST_SetSRID(g, 3857) AS g FROM unnest(ARRAY['POINT(1124300 6530000)', 'LINESTRING(1124300 6530000, 1124400 6530000)']::geometry[]) WITH ORDINALITY u (g, i);
	CREATE TABLE park AS SELECT i AS id, ST_SetSRID(ST_MakePoint(10 + i * 0.01, 50.5), 4326) AS g FROM generate_series(1, 999) i;
	DO $$
	BEGIN
		FOR i IN 1 .. 60 LOOP
			PERFORM geonn_nearest_points(ARRAY[50.5], ARRAY[10.1 + i * 0.001], 'park');
			CONTINUE WHEN i % 7 > 0;
			INSERT INTO park VALUES (1000 + i, ST_SetSRID(ST_MakePoint(11, 51), 4326));
		END LOOP;
	END $$;
	SELECT count(DISTINCT distance) FROM geonn_nearest('ask', 'park')}), 2, 'few points and lines of another SRID, where the references have a base');

$node->stop;
done_testing();
