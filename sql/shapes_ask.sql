-- lines and polygons ask for the nearest
-- rooms: join points client engine/cpu/arcs
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;

-- all of it needs PostGIS
SELECT count(*) = 0 AS absent FROM pg_available_extensions WHERE name = 'postgis' \gset
\if :absent
\quit
\endif

-- PostGIS is not installed while pgaudit logs
CREATE SCHEMA shapes_ask;
SET pgaudit.log = 'none';
SET client_min_messages = warning;
CREATE SCHEMA gis;
CREATE EXTENSION postgis SCHEMA gis;
RESET client_min_messages;
SET search_path = shapes_ask, gis, public;
SET extra_float_digits = 0;
\set SHOW_CONTEXT never

-- buildings at a road: one that it crosses, one beside it, one whose corner touches it; and rows without a shape
CREATE TABLE building (id bigint PRIMARY KEY, owner text, reach float8, outline geography(Polygon));
INSERT INTO building VALUES (1, 'city', 100, 'POLYGON((0 -0.001, 0.002 -0.001, 0.002 0.001, 0 0.001, 0 -0.001))'),
    (2, 'state', 400, 'POLYGON((0.01 0.002, 0.012 0.002, 0.012 0.004, 0.01 0.004, 0.01 0.002))'),
    (3, 'city', 0, 'POLYGON((0.02 0, 0.022 0.001, 0.021 0.002, 0.02 0))'), (4, 'city', NULL, NULL), (5, 'state', NULL, 'POLYGON EMPTY');
CREATE TABLE road (id bigint PRIMARY KEY, owner text, way geography(LineString));
INSERT INTO road VALUES (1, 'city', 'LINESTRING(-1 0, 1 0)'), (2, 'state', 'LINESTRING(0.011 1, 0.011 0.005)'), (3, 'city', 'LINESTRING EMPTY');
SELECT * FROM geonn_nearest('building', 'road') ORDER BY 1;
SELECT * FROM geonn_nearest('building', 'road', k => 2, keep_unmatched => true) ORDER BY 1, 3;
SELECT * FROM geonn_within('building', 'road', 150) ORDER BY 1;
SELECT * FROM geonn_within_count('building', 'road', '{0, 200, 1000}') ORDER BY 1, 2;
SELECT * FROM geonn_nearest('building', 'road', differs => '{owner}') ORDER BY 1;
SELECT * FROM geonn_nearest('building', 'road', by => '{owner}', options => '{"obs_radius": "reach"}', keep_unmatched => true) ORDER BY 1;
-- as plain SQL has it
SELECT b.id, r.id, geonn_distance(b.outline, r.way) FROM building b, LATERAL (SELECT * FROM road r WHERE geonn_distance(b.outline, r.way) IS NOT NULL
    ORDER BY geonn_distance(b.outline, r.way), r.id LIMIT 1) r ORDER BY 1;
-- the other way round, each building's nearest other one, of queries, and in a plan
SELECT * FROM geonn_nearest('road', 'building', k => 3) ORDER BY 1, 3, 2;
SELECT * FROM geonn_nearest('building', 'building', exclude_self => true) ORDER BY 1;
SELECT * FROM geonn_nearest_sql('SELECT id, outline FROM building WHERE id < 3', 'SELECT id::text, way FROM road', row_type => NULL::record) AS t (obs_id bigint, ref_id text, rank int) ORDER BY 1;
SELECT b.owner, r.owner, distance = 0 AS meet FROM building b JOIN geonn_nearest('building', 'road') n ON n.obs_id = b.id JOIN road r ON r.id = n.ref_id WHERE b.id <> 2 ORDER BY b.id;
SELECT count(*) FROM geonn_nearest('building', 'road') WHERE obs_id = 2;

-- in each other, in a hole, around a pole, across the antimeridian; a point and a place of several kinds
CREATE TABLE area (id int PRIMARY KEY, what text, g geometry(Geometry, 4326));
INSERT INTO area VALUES (1, 'square', 'SRID=4326;POLYGON((0 0, 10 0, 10 10, 0 10, 0 0), (4 4, 4 6, 6 6, 6 4, 4 4))'), (2, 'in the square', 'SRID=4326;POLYGON((1 1, 2 1, 2 2, 1 1))'),
    (3, 'in its hole', 'SRID=4326;POLYGON((4.9 4.9, 5.1 4.9, 5.1 5.1, 4.9 4.9))'), (4, 'around the pole', 'SRID=4326;POLYGON((0 80, 120 80, -120 80, 0 80))'),
    (5, 'at the pole', 'SRID=4326;LINESTRING(10 89, 100 89)'), (6, 'at 180', 'SRID=4326;POLYGON((179 -1, -179 -1, -179 1, 179 1, 179 -1))'), (7, 'across 180', 'SRID=4326;LINESTRING(170 0.5, -170 0.5)'),
    (8, 'point in the square', 'SRID=4326;POINT(8 8)'), (9, 'several', 'SRID=4326;GEOMETRYCOLLECTION(POINT(50 50), LINESTRING(20 0, 20 1), POLYGON((179.5 0, 179.7 0, 179.6 0.1, 179.5 0)))');
SELECT o.what, r.what AS nearest, round(distance::numeric, 3) AS distance FROM geonn_nearest('area', 'area', exclude_self => true) n JOIN area o ON o.id = obs_id JOIN area r ON r.id = ref_id ORDER BY o.id;
SELECT o.id, string_agg(ref_id::text, ' ' ORDER BY ref_id) AS meets FROM area o LEFT JOIN geonn_within('area', 'area', 0, exclude_self => true) ON o.id = obs_id GROUP BY 1 ORDER BY 1;

-- references that are points, of each type, and points among them on the side that asks
CREATE TABLE stop (id bigint PRIMARY KEY, lat float8, lon float8, place point, geog geography(Point));
INSERT INTO stop SELECT i, i, i, point(i, i), ST_MakePoint(i, i)::geography FROM generate_series(1, 9) i;
SELECT * FROM geonn_nearest('area', 'stop', k => 2) WHERE obs_id IN (1, 3, 8) ORDER BY 1, 3, 2;
SELECT * FROM geonn_nearest('area', 'stop', k => 2, options => '{"ref_geog": "place"}') WHERE obs_id IN (1, 3, 8) ORDER BY 1, 3, 2;
SELECT * FROM geonn_nearest('area', 'stop', k => 2, options => '{"ref_geog": "geog"}') WHERE obs_id IN (1, 3, 8) ORDER BY 1, 3, 2;

-- a column whose type names no kind: points ask as points, until the first value that is none
CREATE TABLE anything (id bigint PRIMARY KEY, g geography);
INSERT INTO anything SELECT i, ST_MakePoint(i, i / 2.0 + 0.3) FROM generate_series(1, 100) i;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM geonn_nearest('anything', 'stop');
SELECT count(*), sum(ref_id), sum(distance) FROM geonn_nearest('anything', 'stop');
INSERT INTO anything VALUES (101, 'LINESTRING(2 3, 9 9)'), (102, 'POINT(1 1)');
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM geonn_nearest('anything', 'stop');
SELECT * FROM geonn_nearest('anything', 'stop') WHERE obs_id > 98 ORDER BY 1;
SELECT count(*), sum(ref_id), sum(distance) FROM geonn_nearest('anything', 'stop') WHERE obs_id <= 100;

-- the nearest place of each: the same where they meet; of points that ask and that are found, themselves
SELECT obs_id AS id, ref_id, round(distance) AS metres, round(obs_near_lat::numeric, 6) AS obs_near_lat, round(obs_near_lon::numeric, 6) AS obs_near_lon, round(ref_lat::numeric, 6) AS ref_lat,
    round(ref_lon::numeric, 6) AS ref_lon, round(bearing)::int % 360 AS bearing, round(ref_fraction::numeric, 6) AS fraction, ref_segment AS segment, CASE WHEN obs_id <> 2 THEN ref_side END AS side
FROM geonn_nearest('building', 'road', k => 2, row_type => NULL::record, keep_unmatched => true)
    AS t (obs_id bigint, ref_id bigint, distance float8, obs_near_lat float8, obs_near_lon float8, ref_lat float8, ref_lon float8, bearing float8, ref_fraction float8, ref_segment int, ref_side text) ORDER BY 1, 3;
SELECT * FROM geonn_nearest('stop', 'stop', exclude_self => true, row_type => NULL::record, options => '{"obs_geog": "geog"}') AS t (obs_id bigint, ref_id bigint, obs_near_lat float8, obs_near_lon float8, ref_lat float8, ref_lon float8) WHERE obs_id = 1;
SELECT * FROM geonn_nearest('area', 'stop', row_type => NULL::record) AS t (obs_id int, ref_id bigint, obs_near_lat float8, obs_near_lon float8, ref_lat float8, ref_lon float8) WHERE obs_id IN (2, 8) ORDER BY 1;
SELECT obs_id, ref_id, round(obs_near_lat::numeric, 6) AS obs_near_lat, round(obs_near_lon::numeric, 6) AS obs_near_lon, ref_lat, ref_lon
FROM geonn_nearest('anything', 'stop', row_type => NULL::record) AS t (obs_id bigint, ref_id bigint, obs_near_lat float8, obs_near_lon float8, ref_lat float8, ref_lon float8) WHERE obs_id IN (1, 2, 101, 102) ORDER BY 1;

-- which column; and the points beside shapes are used, unless an option says so
ALTER TABLE stop ADD square geography(Polygon);
SELECT count(*) FROM geonn_nearest('stop', 'road');
UPDATE stop SET square = 'POLYGON((-1 -1, 1 -1, 1 1, -1 1, -1 -1))';
SELECT DISTINCT distance FROM geonn_nearest('stop', 'road', options => '{"obs_shape": "square"}');
SELECT * FROM geonn_nearest('stop', 'road', options => '{"obs_shape": "id"}');
SELECT * FROM geonn_nearest('stop', 'road', options => '{"obs_shape": "square", "obs_geog": "place"}');
SELECT * FROM geonn_nearest_points('{0}', '{0}', 'road', options => '{"obs_shape": "square"}');

-- what shapes that ask do not have
SELECT * FROM geonn_nearest('building', 'road', row_type => NULL::record) AS t (obs_id bigint, obs_lat float8);
SELECT * FROM geonn_nearest('anything', 'road', row_type => NULL::record) AS t (obs_id bigint, obs_lat float8);
SELECT * FROM geonn_nearest('building', 'stop', metric => 'spheroid');
SELECT * FROM geonn_nearest('anything', 'stop', metric => 'spheroid');

-- invalid values: skipped and reported, or an error; and rings and arcs that say nothing
CREATE TABLE wrong (id bigint PRIMARY KEY, g geometry);
INSERT INTO wrong VALUES (1, 'SRID=4326;LINESTRING(0 0, 1 91)'), (2, 'SRID=4326;LINESTRING(0 0, 1 1)');
SELECT * FROM geonn_nearest('wrong', 'road', keep_unmatched => true) ORDER BY 1;
SELECT * FROM geonn_nearest('wrong', 'road', invalid => 'error');
UPDATE wrong SET g = 'SRID=4326;LINESTRING(0 0, 180 0)' WHERE id = 1;
SELECT * FROM geonn_nearest('wrong', 'road');
UPDATE wrong SET g = 'SRID=3857;LINESTRING(0 0, 18 0)' WHERE id = 1;
SELECT * FROM geonn_nearest('wrong', 'road');

-- more arcs than a batch has rows
CREATE TABLE coast AS SELECT 1 AS id, ST_MakeLine(ST_MakePoint(i / 1000.0, 0.01) ORDER BY i)::geography AS g FROM generate_series(0, 20000) i;
INSERT INTO coast SELECT i, ST_MakePoint(i, 0.01) FROM generate_series(2, 9) i;
SELECT * FROM geonn_nearest('coast', 'stop', options => '{"batch_rows": 3}') ORDER BY 1;

SET client_min_messages = warning;
DROP EXTENSION postgis CASCADE;
DROP SCHEMA shapes_ask CASCADE;
DROP SCHEMA gis CASCADE;
