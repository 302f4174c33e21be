-- columns whose type does not say what they have: points, lines, polygons, or all of these
-- rooms: points join pages live cache
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;

-- all of it needs PostGIS
SELECT count(*) = 0 AS absent FROM pg_available_extensions WHERE name = 'postgis' \gset
\if :absent
\quit
\endif

CREATE SCHEMA plain_columns;
SET pgaudit.log = 'none';
SET client_min_messages = warning;
CREATE SCHEMA gis;
CREATE EXTENSION postgis SCHEMA gis;
RESET client_min_messages;
SET search_path = plain_columns, gis, public;
\set SHOW_CONTEXT never

-- the same values in columns of a type and without; NULL and empty values of any type are no candidates
CREATE FUNCTION point_at(i bigint) RETURNS geography LANGUAGE sql AS
    $$ SELECT ST_SetSRID(ST_MakePoint(i * 77.7 - 360 * floor(i * 77.7 / 360) - 180, asin(sin(i * 12.9898)) * 170 / pi()), 4326)::geography $$;
CREATE FUNCTION shape_at(i bigint) RETURNS geography LANGUAGE sql AS $$
    SELECT CASE i % 5 WHEN 0 THEN p WHEN 1 THEN ST_MakeLine(p::geometry, q::geometry)::geography
        WHEN 2 THEN ST_MakePolygon(ST_MakeLine(ARRAY[p::geometry, q::geometry, r::geometry, p::geometry]))::geography
        WHEN 3 THEN ST_Collect(ARRAY[p::geometry, ST_MakeLine(q::geometry, r::geometry)])::geography
        ELSE ST_Force4D(ST_MakeLine(p::geometry, r::geometry))::geography END
    FROM (SELECT p, ST_Project(p, 6e5, 1) AS q, ST_Project(p, 6e5, 2 + i % 2) AS r FROM point_at(i) p) a $$;
CREATE TABLE obs AS SELECT i AS id, (i % 3)::integer AS zone, point_at(i * 31) AS g FROM generate_series(1, 200::bigint) i;
CREATE TABLE typed_obs AS SELECT id, zone, g::geography(Point) AS g FROM obs;
CREATE TABLE point AS SELECT i AS id, (i % 3)::integer AS zone, i / 4.0::float8 AS weight, point_at(i) AS g FROM generate_series(1, 300::bigint) i;
INSERT INTO point VALUES (301, 1, 1, NULL), (302, 1, 1, 'POINT EMPTY'), (303, 1, 1, 'LINESTRING EMPTY'), (304, 1, 1, 'POLYGON EMPTY'), (305, 1, 1, 'GEOMETRYCOLLECTION EMPTY'),
    (306, 1, 1, 'POINT Z(1 2 3)'), (307, 2, 1, 'POINT ZM(1 2 3 4)'), (308, 0, 1, 'POINT M(3 2 4)'), (309, 0, 1, 'POINT(190 5)');
CREATE TABLE typed_point (id bigint, zone integer, weight float8, g geography(Geometry));
INSERT INTO typed_point SELECT id, zone, weight, ST_Force2D(g::geometry) FROM point;
CREATE TABLE geom_point AS SELECT id, zone, weight, g::geometry AS g FROM point;
CREATE TABLE only_point (id bigint, zone integer, weight float8, g geography(Point));
INSERT INTO only_point SELECT id, zone, weight, ST_Force2D(g::geometry) FROM point WHERE ST_GeometryType(g::geometry) = 'ST_Point';
CREATE TABLE line AS SELECT i AS id, (i % 3)::integer AS zone, i / 4.0::float8 AS weight, shape_at(i * 5 + 1) AS g FROM generate_series(1, 300::bigint) i;
CREATE TABLE only_line (id bigint, zone integer, weight float8, g geography(LineString));
INSERT INTO only_line SELECT * FROM line;
-- the first shape comes after many points
CREATE TABLE mixed AS SELECT * FROM point;
INSERT INTO mixed SELECT i + 1000, i % 3, i / 4.0, shape_at(i) FROM generate_series(1, 300) i;
CREATE TABLE geom_mixed AS SELECT id, zone, weight, g::geometry AS g FROM mixed;
CREATE TABLE named_mixed AS SELECT 'p' || id AS id, zone, weight, g FROM mixed;
CREATE TABLE divided (LIKE mixed) PARTITION BY RANGE (id);
CREATE TABLE divided_1 PARTITION OF divided FOR VALUES FROM (0) TO (1050);
CREATE TABLE divided_2 PARTITION OF divided FOR VALUES FROM (1050) TO (9999);
INSERT INTO divided SELECT * FROM mixed;
CREATE VIEW viewed AS SELECT * FROM mixed WHERE id <> 7;

SELECT role, column_name, type, reason FROM geonn_describe('mixed') WHERE role <> 'id';
SELECT role, column_name, type, reason FROM geonn_describe('typed_point') WHERE role <> 'id';
SELECT role, column_name, type, reason FROM geonn_describe('point', '{"geog": "g"}') WHERE role <> 'id';
SELECT role, column_name, type, reason FROM geonn_describe('only_point') WHERE role <> 'id';

-- two calls that differ in the names of their tables and in options: how many rows, and how many of them only one has
CREATE FUNCTION same(call text, one text, other text, options text DEFAULT '{}') RETURNS TABLE (rows bigint, differ bigint) LANGUAGE plpgsql AS $$
DECLARE
    first text := replace(replace(call, '$R', one), '$O', '{}');
    second text := replace(replace(call, '$R', other), '$O', options);
BEGIN
    RETURN QUERY EXECUTE format('WITH a AS MATERIALIZED (%1$s), b AS MATERIALIZED (%2$s)
        SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) d)', first, second);
END $$;
CREATE TABLE call (number integer PRIMARY KEY, call text);
INSERT INTO call VALUES
    (1, $$SELECT obs_id, ref_id, distance, rank, ref_lat, ref_lon, bearing, ref_fraction FROM geonn_nearest('obs', '$R', k => 3, row_type => NULL::record, options => '$O') AS t (obs_id bigint, ref_id bigint, distance float8, rank integer, ref_lat float8, ref_lon float8, bearing float8, ref_fraction float8)$$),
    (2, $$SELECT * FROM geonn_nearest('obs', '$R', by => '{zone}', ties => 'all', exclude_self => true, options => '$O')$$),
    (3, $$SELECT * FROM geonn_within('obs', '$R', 1e6, differs => '{zone}', options => '$O')$$),
    (4, $$SELECT * FROM geonn_within_count('obs', '$R', '{1e5, 2e6}', '{weight}', options => '$O', row_type => NULL::record) AS t (obs_id bigint, radius float8, count bigint, sum float8, min float8, max float8)$$),
    (5, $$SELECT * FROM geonn_nearest_points(ARRAY[0, 50.5, -33], ARRAY[0, 8, 151], '$R', k => 2, options => '$O')$$),
    (6, $$SELECT * FROM geonn_nearest_sql('SELECT * FROM obs', 'SELECT * FROM $R', max_distance => 5e5, keep_unmatched => true, options => '$O')$$),
    (7, $$SELECT sum(distance), count(*) FROM geonn_nearest('obs', '$R', options => '$O')$$),
    (8, $$SELECT o.id, n.ref_id, n.distance FROM obs o, LATERAL geonn_nearest_points(ARRAY[ST_Y(o.g::geometry)], ARRAY[ST_X(o.g::geometry)], '$R', k => 2, options => '$O') n$$);

-- points: as in a column of points; the second time from what the engine has kept
SELECT number, rows, differ FROM call, LATERAL same(call, 'point', 'only_point') ORDER BY 1;
SELECT number, rows, differ FROM call, LATERAL same(call, 'geom_point', 'typed_point') ORDER BY 1;
SELECT number, rows, differ FROM call, LATERAL same(call, 'point', 'only_point') ORDER BY 1;
-- and as observations
SELECT rows, differ FROM same($$SELECT * FROM geonn_nearest('$R', 'only_point', k => 2)$$, 'obs', 'typed_obs');
SELECT rows, differ FROM same($$SELECT * FROM geonn_within('$R', 'point', 1e6)$$, 'obs', 'typed_obs');

-- lines and mixed shapes: as if the option named the column of shapes
SELECT number, rows, differ FROM call, LATERAL same(call, 'line', 'line', '{"ref_shape": "g"}') ORDER BY 1;
SELECT number, rows, differ FROM call, LATERAL same(call, 'line', 'only_line') ORDER BY 1;
SELECT number, rows, differ FROM call, LATERAL same(call, 'mixed', 'mixed', '{"ref_shape": "g"}') ORDER BY 1;
SELECT number, rows, differ FROM call, LATERAL same(call, 'geom_mixed', 'mixed', '{"ref_shape": "g"}') ORDER BY 1;
SELECT number, rows, differ FROM call, LATERAL same(call, 'divided', 'mixed', '{"ref_shape": "g"}') ORDER BY 1;
SELECT number, rows, differ FROM call, LATERAL same(call, 'viewed', 'viewed', '{"ref_shape": "g"}') ORDER BY 1;
SELECT rows, differ FROM same($$SELECT * FROM geonn_nearest('obs', '$R', k => 3, options => '$O', row_type => NULL::record) AS t (obs_id bigint, ref_id text, distance float8, ref_lat float8, bearing float8)$$,
    'named_mixed', 'named_mixed', '{"ref_shape": "g"}');

-- by workers, which learn from the leader what the column has
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER TABLE obs SET (parallel_workers = 2);
CREATE TABLE unseen AS TABLE mixed;
SELECT number, rows, differ FROM call, LATERAL same(call, 'unseen', 'mixed', '{"ref_shape": "g"}') WHERE number IN (1, 4, 8) ORDER BY 1;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- a later INSERT adds the first line to a table of points, of which the engine keeps a dataset, this process a base, and a
-- statement its plan
CREATE TABLE grows AS TABLE point;
PREPARE nearest AS SELECT * FROM geonn_nearest('obs', 'grows', k => 2);
PREPARE alone(float8, float8) AS SELECT * FROM geonn_nearest_points(ARRAY[$1], ARRAY[$2], 'grows');
CREATE FUNCTION repeat(lat float8, lon float8) RETURNS TABLE (ref_id bigint, distance float8) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. 6 LOOP
        RETURN QUERY SELECT n.ref_id, round(n.distance::numeric)::float8 FROM geonn_nearest_points(ARRAY[lat], ARRAY[lon], 'grows') n;
    END LOOP;
END $$;
SELECT number, rows, differ FROM call, LATERAL same(call, 'grows', 'only_point') ORDER BY 1;
EXECUTE alone(2, 1.1);
EXECUTE alone(2, 1.1);
EXECUTE alone(2, 1.1);
SELECT DISTINCT * FROM repeat(2, 1.1);
INSERT INTO grows VALUES (5000, 1, 7, 'LINESTRING(1.05 1, 1.05 3)');
EXECUTE alone(2, 1.1);
SELECT DISTINCT * FROM repeat(2, 1.1);
SELECT number, rows, differ FROM call, LATERAL same(call, 'grows', 'grows', '{"ref_shape": "g"}') ORDER BY 1;
CREATE TABLE answered AS EXECUTE nearest;
SELECT count(*) FROM ((TABLE answered) EXCEPT ALL SELECT * FROM geonn_nearest('obs', 'grows', k => 2, options => '{"ref_shape": "g"}')) d;
DELETE FROM grows WHERE id = 5000;
EXECUTE alone(2, 1.1);
SELECT number, rows, differ FROM call, LATERAL same(call, 'grows', 'only_point') ORDER BY 1;

-- in a new session, which does not know that the column had a line
\c -
SET search_path = plain_columns, gis, public;
\set SHOW_CONTEXT never
SELECT number, rows, differ FROM call, LATERAL same(call, 'grows', 'only_point') ORDER BY 1;
UPDATE grows SET g = 'POLYGON((1.05 1, 1.2 1, 1.2 3, 1.05 3, 1.05 1))' WHERE id = 17;
SELECT number, rows, differ FROM call, LATERAL same(call, 'grows', 'grows', '{"ref_shape": "g"}') ORDER BY 1;
SELECT ref_id, distance FROM geonn_nearest_points(ARRAY[2], ARRAY[1.1], 'grows');

-- caches
CREATE TABLE cached AS SELECT * FROM point WHERE g IS NOT NULL;
ALTER TABLE obs ADD PRIMARY KEY (id);
SELECT geonn_cache_create('near', 'obs', 'cached', k => 2);
CREATE FUNCTION check_cache() RETURNS TABLE (differ bigint, mode text, reason text, status text) LANGUAGE sql AS $$
    WITH expected AS MATERIALIZED (SELECT obs_id, rank, ref_id, distance FROM geonn_nearest('obs', 'cached', k => 2, options => '{"ref_shape": "g"}', row_type => NULL::record)
            AS t (obs_id bigint, rank integer, ref_id bigint, distance float8)),
        cache AS (SELECT obs_id, rank, ref_id, distance FROM near)
    SELECT (SELECT count(*) FROM ((TABLE cache EXCEPT ALL TABLE expected) UNION ALL (TABLE expected EXCEPT ALL TABLE cache)) d), mode, reason, status
    FROM geonn_cache_log WHERE name = 'near' ORDER BY started DESC LIMIT 1 $$;
SELECT * FROM check_cache();
INSERT INTO cached SELECT i, 1, 1, point_at(i) FROM generate_series(4001, 4003) i;
CALL geonn_refresh('near');
SELECT * FROM check_cache();
INSERT INTO cached SELECT i, 1, 1, shape_at(i) FROM generate_series(4011, 4013) i;
CALL geonn_refresh('near');
SELECT * FROM check_cache();
INSERT INTO cached SELECT i, 1, 1, shape_at(i) FROM generate_series(4021, 4023) i;
CALL geonn_refresh('near');
SELECT * FROM check_cache();
DELETE FROM cached WHERE id BETWEEN 4010 AND 4030;
CALL geonn_refresh('near', 'full');
SELECT * FROM check_cache();
SELECT geonn_cache_drop('near');

-- what values are wrong, and what lines cannot be asked for, and cannot ask for
SELECT * FROM geonn_nearest('obs', 'mixed', metric => 'spheroid');
SELECT count(*) FROM geonn_nearest('obs', 'point', metric => 'spheroid');
SELECT * FROM geonn_nearest('mixed', 'point', metric => 'spheroid');
SELECT count(*) FROM geonn_nearest('mixed', 'point');
SELECT count(*) FROM geonn_nearest_sql('SELECT id, g FROM mixed WHERE id < 1000', 'SELECT id, g FROM line');
CREATE TABLE plane (id bigint, g geometry);
INSERT INTO plane VALUES (1, 'SRID=4326;POINT(1 1)'), (2, 'SRID=4326;LINESTRING(1 1, 2 2)'), (3, 'SRID=3857;POINT(1 1)');
SELECT * FROM geonn_nearest('obs', 'plane');
-- an empty value is NULL, whatever its SRID, beside points alone and beside lines
UPDATE plane SET g = 'POINT EMPTY' WHERE id = 3;
SELECT count(*), sum(ref_id) FROM geonn_nearest('obs', 'plane');
SELECT count(*), sum(ref_id) FROM geonn_nearest_sql('TABLE obs', 'SELECT * FROM plane WHERE id <> 2');
UPDATE plane SET g = 'POINT(1 1)' WHERE id = 3;
SELECT * FROM geonn_nearest('obs', 'plane');
UPDATE plane SET g = 'SRID=4326;CIRCULARSTRING(0 0, 1 1, 2 0)' WHERE id = 3;
SELECT * FROM geonn_nearest('obs', 'plane');
UPDATE plane SET g = 'SRID=4326;LINESTRING(1 91, 2 2)' WHERE id = 3;
SELECT count(*) FROM geonn_nearest('obs', 'plane');
SELECT count(*) FROM geonn_nearest('obs', 'plane', invalid => 'error');

-- an empty curve is NULL, too, beside lines and in a collection
UPDATE plane SET g = 'SRID=4326;CIRCULARSTRING EMPTY' WHERE id = 3;
SELECT count(*), sum(ref_id) FROM geonn_nearest('obs', 'plane');
UPDATE plane SET g = 'SRID=4326;GEOMETRYCOLLECTION(CURVEPOLYGON EMPTY, TIN EMPTY, POINT(60 2))' WHERE id = 3;
SELECT ref_id, count(*) FROM geonn_nearest('obs', 'plane') GROUP BY 1 ORDER BY 1;
UPDATE plane SET g = 'SRID=4326;LINESTRING(1 91, 2 2)' WHERE id = 3;

SELECT rows, null_coordinates, latitude_out_of_range, duplicate_coordinates, latitude_max FROM geonn_check('plane');
SELECT rows, null_coordinates, latitude_out_of_range, duplicate_coordinates IS NULL AS are_shapes FROM geonn_check('mixed');
SELECT rows, null_coordinates, latitude_out_of_range, duplicate_coordinates FROM geonn_check('point');

-- geonn_check counts all values of which a join says no more than the first, and names a row of each kind
CREATE TABLE fault (id text, g geometry);
INSERT INTO fault VALUES ('fine', 'SRID=4326;POINT(10 50)'), ('null', NULL), ('empty point', 'SRID=4326;POINT EMPTY'),
    ('nan', ST_SetSRID(ST_MakePoint('NaN', 0), 4326)), ('north', 'SRID=4326;POINT(0 90.5)'), ('far', 'SRID=4326;POINT(361 0)'), ('plane', 'SRID=3857;POINT(1 1)'), ('none', 'POINT(1 1)');
CREATE FUNCTION faults() RETURNS TABLE (rows bigint, nulls bigint, not_finite bigint, latitude bigint, longitude bigint, empty bigint, curved bigint, invalid bigint, extent float8[], examples text)
LANGUAGE sql AS $$ SELECT rows, null_coordinates, not_finite, latitude_out_of_range, longitude_out_of_range, empty_shapes, curved_shapes, invalid_shapes,
    ARRAY[latitude_min, latitude_max, longitude_min, longitude_max], array_to_string(examples, E'\n') FROM geonn_check('fault') $$;
SELECT * FROM faults();
INSERT INTO fault VALUES ('fine line', 'SRID=4326;LINESTRING(12 52, 13 53)'), ('empty collection', 'SRID=4326;GEOMETRYCOLLECTION(POINT EMPTY, LINESTRING EMPTY)'), ('empty curve', 'SRID=4326;CURVEPOLYGON EMPTY'),
    ('arc', 'SRID=4326;CIRCULARSTRING(0 0, 1 1, 2 0)'), ('compound', 'SRID=4326;COMPOUNDCURVE(CIRCULARSTRING(0 0, 1 1, 2 0), (2 0, 3 3))'),
    ('curved', 'SRID=4326;CURVEPOLYGON(CIRCULARSTRING(0 0, 1 1, 2 0, 1 -1, 0 0))'), ('curves', 'SRID=4326;MULTICURVE((0 0, 5 5), CIRCULARSTRING(0 0, 1 1, 2 0))'),
    ('surfaces', 'SRID=4326;MULTISURFACE(CURVEPOLYGON(CIRCULARSTRING(0 0, 1 1, 2 0, 1 -1, 0 0)), ((10 10, 14 12, 11 10, 10 10)))'),
    ('tin', 'SRID=4326;TIN(((0 0 0, 0 0 1, 0 1 0, 0 0 0)))'), ('solid', 'SRID=4326;POLYHEDRALSURFACE(((0 0 0, 0 0 1, 0 1 1, 0 1 0, 0 0 0)))'), ('triangle', 'SRID=4326;TRIANGLE((0 0, 0 9, 9 0, 0 0))'),
    ('nested arc', 'SRID=4326;GEOMETRYCOLLECTION(POINT(80 80), GEOMETRYCOLLECTION(CIRCULARSTRING(0 0, 1 1, 2 0)))'),
    ('antipodes', 'SRID=4326;GEOMETRYCOLLECTION(POINT(70 70), LINESTRING(0 0, 180 0))'), ('equator', 'SRID=4326;POLYGON((0 0, 90 0, 180 0, -90 0, 0 0))'),
    (NULL, 'SRID=4326;LINESTRING(0 0, 180 0)'), ('line in a plane', 'SRID=3857;LINESTRING(1 1, 2 2)'), ('north line', 'SRID=4326;LINESTRING(1 1, 0 95)');
SELECT * FROM faults();
-- each of them is an error of a join, or left out
CREATE FUNCTION said(fault_id text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found bigint;
BEGIN
    SELECT count(*) INTO found FROM geonn_nearest_sql('TABLE obs', format('SELECT 1 AS id, g FROM fault WHERE id = %L', fault_id), options => '{"ref_shape": "g"}');
    RETURN found || ' rows';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ': ' || SQLERRM;
END $$;
SET client_min_messages = error;
SELECT id, said(id) FROM fault WHERE id IS NOT NULL ORDER BY said(id) COLLATE "C", id COLLATE "C";
RESET client_min_messages;
-- a column whose values are all points, and those without one
SELECT empty_shapes, curved_shapes, invalid_shapes, examples FROM geonn_check('only_point');
SELECT empty_shapes, curved_shapes, invalid_shapes, examples FROM geonn_check('line');

SET client_min_messages = warning;
DROP EXTENSION postgis CASCADE;
DROP SCHEMA plain_columns CASCADE;
DROP SCHEMA gis CASCADE;
