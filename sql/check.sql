-- geonn_check(): what to know of a relation's points before a join
-- rooms: points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA "check";
SET search_path = "check", public;

-- each kind of row is counted once where it is not a point, and the points'
-- peculiarities beside
CREATE TABLE mixed (id text, lat float8, lon float8);
INSERT INTO mixed VALUES
    ('good', 52, 13), ('east', 52, 181), (NULL, 1, 1), (NULL, NULL, NULL),
    ('no lat', NULL, 1), ('no lon', 1, NULL), ('nan', 'NaN', 1), ('infinite', 1, '-Infinity'),
    ('north', 90.0000001, 1), ('south', -91, 500), ('west', 1, -180.0000001), ('far', 1, 360.0000001),
    ('null island', 0, 0), ('-0', -0.0, -0.0);
SELECT * FROM geonn_check('mixed') \gx
SELECT count(*) AS rows, count(*) FILTER (WHERE id IS NULL) AS null_ids,
       count(*) FILTER (WHERE lat IS NULL OR lon IS NULL) AS null_coordinates,
       count(*) FILTER (WHERE lat = 0 AND lon = 0) AS zero_zero,
       count(*) FILTER (WHERE lon > 180 AND lon <= 360 AND lat BETWEEN -90 AND 90) AS longitude_over_180
FROM mixed;

-- one place has several coordinates: longitudes a turn apart, all of a pole's,
-- zeros of both signs
CREATE TABLE place (id integer, lat numeric, lon numeric);
INSERT INTO place VALUES
    (1, 10, -179), (2, 10, 181), (3, 10.0, 181.00), (4, 10, -180), (5, 10, 180),
    (6, 90, 1), (7, 90, 200), (8, -90, 0), (9, -90, 360), (10, 5, 0), (11, 5, 360), (12, 5, 1);
SELECT duplicate_coordinates, duplicate_ids, longitude_over_180 FROM geonn_check('place');
SELECT count(*) AS same_place FROM place a JOIN place b ON a.id < b.id
WHERE geonn_distance(a.lat::float8, a.lon::float8, b.lat::float8, b.lon::float8) = 0;

-- ids are equal as their type and collation have it
CREATE TABLE number (id numeric, lat float8, lon float8);
INSERT INTO number VALUES (1, 1, 1), (1.0, 2, 2), (1.00, 3, 3), (2, 4, 4), (NULL, 5, 5), (NULL, 6, 6), ('NaN', 7, 7), ('NaN', 8, 8);
SELECT duplicate_ids, null_ids FROM geonn_check('number');
CREATE TABLE long_id AS SELECT repeat('x', 5000) || i % 7 AS id, i AS lat, i AS lon FROM generate_series(1, 80) i;
SELECT duplicate_ids, duplicate_coordinates FROM geonn_check('long_id');
-- where their type has no order nobody can tell
CREATE TABLE json_id (id json, lat float8, lon float8);
INSERT INTO json_id VALUES ('1', 52, 13), ('1', 52, 13);
SELECT rows, duplicate_ids, duplicate_coordinates FROM geonn_check('json_id');

-- more than fits into work_mem
SET work_mem = '64kB';
CREATE TABLE many AS SELECT (i % 9000)::text AS id, i % 1000 / 20.0 AS lat, i % 1000 / 10.0 AS lon FROM generate_series(1, 20000) i;
SELECT * FROM geonn_check('many') \gx
SELECT count(*) - count(DISTINCT (lat, lon)) AS duplicate_coordinates, count(*) - count(DISTINCT id) AS duplicate_ids FROM many;
RESET work_mem;

-- the extent is that of valid rows, with longitudes as they are stored
SELECT latitude_min, latitude_max, longitude_min, longitude_max FROM geonn_check('mixed');
SELECT min(lat), max(lat), min(lon), max(lon) FROM mixed
WHERE lat BETWEEN -90 AND 90 AND lon BETWEEN -180 AND 360;
SELECT latitude_min, latitude_max, longitude_min, longitude_max FROM geonn_check('place');

-- Coordinates that are swapped: a warning where that shows.  The table of Europe shows it by its
-- extent alone, as one of Africa has the same.
CREATE TABLE europe AS SELECT i AS id, 36 + i % 35 AS lat, -10 + i % 51 AS lon FROM generate_series(1, 1785) i;
CREATE VIEW europe_swapped AS SELECT id, lon AS lat, lat AS lon FROM europe;
CREATE TABLE world AS SELECT i AS id, -90 + i % 181 AS lat, -180 + i % 361 AS lon FROM generate_series(1, 5000) i;
CREATE VIEW world_swapped AS SELECT id AS key, lon AS lat, lat AS lon FROM world;
CREATE TABLE asia (id integer, at point);
INSERT INTO asia VALUES (1, '(35.7, 139.7)'), (2, '(31.2, 121.5)'), (3, '(1.3, 103.8)'), (4, NULL);
CREATE VIEW swapped_back AS SELECT id, point(at[1], at[0]) AS at FROM asia;
SELECT latitude_out_of_range, latitude_min, latitude_max, longitude_min, longitude_max FROM geonn_check('europe');
SELECT latitude_out_of_range, latitude_min, latitude_max, longitude_min, longitude_max FROM geonn_check('europe_swapped');
SELECT latitude_out_of_range, longitude_out_of_range FROM geonn_check('world');
SELECT latitude_out_of_range, longitude_out_of_range FROM geonn_check('world_swapped', '{"id": "key"}');
SELECT latitude_out_of_range, longitude_out_of_range FROM geonn_check('world_swapped', '{"id": "key", "lat": "lon", "lon": "lat"}');
SELECT latitude_out_of_range, longitude_out_of_range FROM geonn_check('asia');
SELECT latitude_out_of_range, longitude_out_of_range FROM geonn_check('swapped_back');
-- a few rows that are wrong are no swap, and neither are rows that are wrong either way
INSERT INTO europe VALUES (0, 100, 10), (-1, -100, 10);
SELECT latitude_out_of_range FROM geonn_check('europe');
INSERT INTO asia VALUES (5, '(139.7, 139.7)');
SELECT latitude_out_of_range, longitude_out_of_range FROM geonn_check('asia');
-- units other than degrees: all points are out of range, or all within a circle of radians
CREATE VIEW microdegrees AS SELECT id, lat * 1000000 AS lat, lon * 1000000 AS lon FROM europe WHERE id > 0;
CREATE VIEW zeros AS SELECT i AS id, 0 AS lat, 0 AS lon FROM generate_series(1, 3) i;
CREATE VIEW radians AS SELECT id, radians(lat) AS lat, radians(lon) AS lon FROM world;
SELECT latitude_out_of_range, longitude_out_of_range FROM geonn_check('microdegrees');
SELECT round(latitude_min::numeric, 4) AS south, round(longitude_max::numeric, 4) AS east FROM geonn_check('radians');
SELECT rows, zero_zero FROM geonn_check('zeros');
SELECT count(*) FROM geonn_nearest('microdegrees', 'world');
-- a join says the same of either side, of points, of queries, and of the points of a lateral join
SELECT count(*) FROM geonn_nearest('world_swapped', 'world', options => '{"obs_id": "key"}');
SELECT count(*) FROM geonn_nearest('world', 'world_swapped', options => '{"ref_id": "key"}');
SELECT count(*) FROM geonn_nearest_sql('SELECT * FROM asia WHERE id < 5', 'TABLE world');
SELECT count(*) FROM geonn_nearest_sql('SELECT key AS id, lat, lon FROM world_swapped', 'TABLE world');
SELECT count(*) FROM world_swapped w, LATERAL geonn_nearest_points(ARRAY[w.lat::float8], ARRAY[w.lon::float8], 'world') n;
SELECT count(*) FROM geonn_nearest('world_swapped', 'world', options => '{"obs_id": "key"}', invalid => 'error');
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE world_wrong AS SELECT * FROM world_swapped;
ANALYZE world_wrong;
SELECT count(*) FROM geonn_nearest('world_wrong', 'world', options => '{"obs_id": "key"}');
RESET ALL;
SET search_path = "check", public;
-- options that name them the wrong way round
CREATE TABLE named (id integer, "X" float8, "Y" float8, start_lon float8, start_latitude float8, "a ""b"" lon" float8, "a ""b"" lat" float8);
INSERT INTO named SELECT id, lon, lat, lon, lat, lon, lat FROM europe WHERE id > 0;
SELECT latitude_min FROM geonn_check('named', '{"lat": "Y", "lon": "X"}');
SELECT latitude_min FROM geonn_check('named', '{"lat": "X", "lon": "Y"}');
SELECT latitude_min FROM geonn_check('named', '{"lat": "start_lon", "lon": "start_latitude"}');
SELECT latitude_min FROM geonn_check('named', '{"lat": "start_latitude", "lon": "start_lon"}');
SELECT latitude_min FROM geonn_check('named', '{"id": "id", "lat": "a \"b\" lon", "lon": "a \"b\" lat"}');
SELECT latitude_min FROM geonn_check('named', '{"id": "id", "lat": "a \"b\" lat", "lon": "a \"b\" lon"}');
-- but where only they fit
UPDATE named SET "X" = 20, "Y" = 120 WHERE id = 1;
SELECT latitude_max, longitude_max FROM geonn_check('named', '{"lat": "X", "lon": "Y"}');

-- windows and radiuses: those of all rows are counted, of valid points or not
CREATE DOMAIN stay AS tstzrange;
CREATE TYPE floatrange AS RANGE (subtype = double precision);
CREATE TABLE van (id integer, lat float8, lon float8, reach numeric, walks float4, t timestamptz, stay stay, price floatrange,
    paid float8, day date, shift int4range, week daterange, clock time, period tsrange);
INSERT INTO van VALUES
    (1, 52, 13, 5, 5, '2026-01-01', '[2026-01-01, 2026-01-02)', '[1, 2]', 1, '2026-01-01', '[1, 2]', '[2026-01-01, 2026-01-02]', '12:00', '[2026-01-01, 2026-01-02]'),
    (2, NULL, 13, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, 52, 500, 'NaN', 'NaN', 'infinity', 'empty', 'empty', 'NaN', '-infinity', 'empty', 'empty', '24:00', 'empty'),
    (4, 52, 13, -1, -2, '-infinity', '[2026-01-01,)', '[1, Infinity)', '-Infinity', 'infinity', '(,)', '[-infinity, 2026-01-01)', '00:00', '[2026-01-01, infinity]'),
    (NULL, 52, 13, 0, '-Infinity', 'infinity', '(,2026-01-01)', '[NaN,NaN]', 'Infinity', 'infinity', '(,1)', '[2026-01-01, infinity]', NULL, '(,)');
SELECT null_radiuses, nan_radiuses, negative_radiuses, window_types, null_windows FROM geonn_check('van', '{"radius": "reach"}');
SELECT null_radiuses, nan_radiuses, negative_radiuses FROM geonn_check('van', '{"radius": "walks"}');
SELECT null_radiuses, window_types, windows_compared_as, null_windows, empty_windows, infinite_windows FROM geonn_check('van', overlaps => '{t, stay, price}');
SELECT rows, window_types, windows_compared_as, null_windows, empty_windows, infinite_windows FROM geonn_check('van', '{"radius": "walks"}', '{shift, day, week}');
SELECT w.* FROM geonn_check('van', overlaps => '{paid, clock, period}'),
    unnest(window_types, windows_compared_as, null_windows, empty_windows, infinite_windows) w;
-- as SQL has it
SELECT count(*) FILTER (WHERE stay IS NULL) AS null, count(*) FILTER (WHERE isempty(stay)) AS empty,
    count(*) FILTER (WHERE lower_inf(stay) AND NOT isempty(stay) OR upper_inf(stay)) AS infinite FROM van;
-- rows of a view, and a range type that is none of windows
CREATE VIEW van_view AS SELECT * FROM van WHERE id IS NOT NULL;
CREATE TYPE textrange AS RANGE (subtype = text);
CREATE TABLE long_window (id integer, lat float8, lon float8, t tstzrange, name textrange);
INSERT INTO long_window VALUES (1, 52, 13, '(,)', textrange(repeat('a', 100000), NULL));
SELECT rows, null_windows, empty_windows, infinite_windows FROM geonn_check('van_view', '{}', '{stay}');
SELECT infinite_windows FROM geonn_check('long_window', overlaps => '{t}');
SELECT infinite_windows FROM geonn_check('long_window', overlaps => '{t, name}');
-- a swap is told with all columns that were named
CREATE VIEW van_swapped AS SELECT i AS id, 100 + i AS lat, i AS lon, i AS reach FROM generate_series(1, 5) i;
SELECT rows FROM geonn_check('van_swapped', '{"radius": "reach"}');

-- columns by options; views; nothing at all
CREATE VIEW renamed AS SELECT id AS name, lat AS y, lon AS x, id AS id FROM mixed;
SELECT rows, zero_zero, duplicate_ids FROM geonn_check('renamed', '{"id": "name", "lat": "y", "lon": "x"}');
CREATE TABLE nothing (id integer, lat float8, lon float8);
SELECT * FROM geonn_check('nothing') \gx
SELECT geonn_check('place');
SELECT geonn_check(NULL);
SELECT geonn_check('place', NULL);
SELECT duplicate_ids, window_types FROM geonn_check('place', '{}', NULL);
SELECT duplicate_ids, window_types FROM geonn_check('place', '{}', '{}');

-- its errors
SELECT * FROM geonn_check('renamed');
SELECT * FROM geonn_check('place', '{"obs_id": "id"}');
SELECT * FROM geonn_check('place', '{"id": "key"}');
SELECT * FROM geonn_check('place', '{"lat": "lat"}');
SELECT * FROM geonn_check('place', overlaps => '{t}');
SELECT * FROM geonn_check('place', overlaps => '{lat}');
SELECT * FROM geonn_check('place', overlaps => '{id, id}');
SELECT * FROM geonn_check('place', '{"radius": "id", "obs_radius": "id"}');
SELECT * FROM geonn_check('number', '{"radius": "t"}');
CREATE ROLE regress_geonn_check;
GRANT USAGE ON SCHEMA "check" TO regress_geonn_check;
SET ROLE regress_geonn_check;
SELECT * FROM geonn_check('place');
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA "check" CASCADE;
DROP ROLE regress_geonn_check;
