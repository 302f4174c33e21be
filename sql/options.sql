-- the argument options: what each key does, and what is an error
-- rooms: points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA options;
SET search_path = options, public;

-- columns that geonn would not find, or not choose
CREATE TABLE ship (
    mmsi bigint, "Reported Lat" float8, "reported ""lon""" float8,
    id bigint, lat float8, lon float8, at point, berth point);
INSERT INTO ship VALUES
    (100, 54.0, 8.0, 1, 10, 10, '(20, 20)', '(30, 30)'),
    (200, 53.5, 9.9, 2, 11, 11, '(21, 21)', '(31, 31)');
CREATE TABLE port (code bigint PRIMARY KEY, old_code integer, y numeric, x real, lat float8, lon float8, at point);
INSERT INTO port VALUES
    (1, 11, 53.5, 10, 10, 10, '(20, 21)'), (2, 12, 54, 8, 11, 11, '(30, 31)');

SELECT * FROM geonn_nearest('ship', 'port') ORDER BY obs_id;
SELECT * FROM geonn_nearest('ship', 'port', options => '{}') ORDER BY obs_id;
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_id": "mmsi", "ref_id": "old_code"}') ORDER BY obs_id;
SELECT obs_id, ref_id, round(distance) FROM geonn_nearest('ship', 'port', options =>
    '{"obs_lat": "Reported Lat", "obs_lon": "reported \"lon\"", "ref_lat": "y", "ref_lon": "x"}') ORDER BY obs_id;
SELECT obs_id, ref_id, round(distance) FROM geonn_nearest('ship', 'port', options =>
    '{"obs_geog": "at", "ref_geog": "at"}') ORDER BY obs_id;
SELECT obs_id, ref_id, round(distance) FROM geonn_nearest('ship', 'port', options =>
    '{"obs_geog": "berth", "ref_geog": "at"}') ORDER BY obs_id;
-- one side by point, the other by latitude and longitude
SELECT obs_id, ref_id, round(distance) FROM geonn_nearest('ship', 'port', options =>
    '{"obs_id": "mmsi", "obs_geog": "at", "ref_lat": "lat", "ref_lon": "lon"}') ORDER BY obs_id;
-- what they should be, by hand
SELECT p.code, round(geonn_distance(20, 20, 21, 20)) AS at_at,
       round(geonn_distance(20, 20, p.lat, p.lon)) AS at_lat_lon,
       round(geonn_distance(30, 30, 31, 30)) AS berth_at
FROM port p ORDER BY 1;
-- the latitude for the longitude and the reverse: as asked for
SELECT obs_id, ref_id, round(distance) FROM geonn_nearest('ship', 'port', options =>
    '{"obs_lat": "reported \"lon\"", "obs_lon": "Reported Lat", "ref_lat": "x", "ref_lon": "y"}') ORDER BY obs_id;

-- each function
SELECT obs_id, ref_id, round(distance) FROM geonn_within('ship', 'port', 105000, options =>
    '{"obs_id": "mmsi", "obs_geog": "at", "ref_id": "old_code", "ref_geog": "at"}') ORDER BY 1, 2;
SELECT obs_id, ref_id, round(distance) FROM geonn_nearest_sql('SELECT * FROM ship', 'TABLE port', options =>
    '{"obs_id": "mmsi", "obs_geog": "berth", "ref_id": "old_code", "ref_lat": "y", "ref_lon": "x"}') ORDER BY 1, 2;
SELECT obs_id, ref_id, round(distance) FROM geonn_within_sql('SELECT * FROM ship', 'TABLE port', 200000, options =>
    '{"obs_id": "mmsi", "obs_geog": "berth", "ref_id": "old_code", "ref_geog": "at"}') ORDER BY 1, 2;
SELECT ord, ref_id, round(distance) FROM geonn_nearest_points('{54, 30}', '{8, 30}', 'port', options =>
    '{"ref_id": "old_code", "ref_lat": "y", "ref_lon": "x"}') ORDER BY 1, 2;
SELECT ord, ref_id, round(distance) FROM geonn_nearest_points('{54, 30}', '{8, 30}', 'port', options =>
    '{"ref_geog": "at", "device": "cpu", "algorithm": "brute", "batch_rows": 1}') ORDER BY 1, 2;
SELECT rows, null_coordinates, longitude_over_180 FROM geonn_check('ship', '{"id": "mmsi", "geog": "at"}');
SELECT rows, null_coordinates, longitude_over_180 FROM geonn_check('port', '{"id": "old_code", "lat": "y", "lon": "x"}');
-- in a prepared statement, and from a column
PREPARE by_options AS SELECT obs_id, ref_id, round(distance) FROM geonn_nearest('ship', 'port', options => $1) ORDER BY 1;
EXECUTE by_options ('{"obs_geog": "at", "ref_geog": "at"}');
EXECUTE by_options ('{"obs_geog": "berth", "ref_geog": "at"}');
SELECT o.options, n.obs_id, n.ref_id, round(distance)
FROM (VALUES ('{"obs_geog": "at"}'::jsonb), ('{"obs_geog": "berth"}')) o (options),
     LATERAL geonn_nearest('ship', 'port', options => o.options || '{"ref_geog": "at"}') n
ORDER BY 1, 2;

-- device, algorithm and batch_rows change nothing of the rows
CREATE TABLE many AS
SELECT (i * 7919) % 3011 AS id,
       (i * 104729 % 180001) / 1000.0 - 90 AS lat,
       (i * 1299709 % 540001) / 1000.0 - 180 AS lon
FROM generate_series(1, 3010::bigint) i;
CREATE TABLE few AS SELECT id, lat, lon FROM many WHERE id % 10 = 0;
CREATE TABLE answer AS SELECT * FROM geonn_nearest('many', 'few', k => 3);
SELECT count(*) FROM answer;
SELECT o.options, count(*) AS rows, count(a.*) AS equal
FROM (VALUES ('{"device": "auto"}'::jsonb), ('{"device": "cpu"}'), ('{"device": "CPU"}'),
             ('{"algorithm": "auto"}'), ('{"algorithm": "index"}'), ('{"algorithm": "Brute"}'),
             ('{"batch_rows": 1}'), ('{"batch_rows": 7}'), ('{"batch_rows": 1e3}'), ('{"batch_rows": 2048.0}'),
             ('{"batch_rows": 4194304}'),
             ('{"device": "cpu", "algorithm": "brute", "batch_rows": 100}')) o (options),
     LATERAL geonn_nearest('many', 'few', k => 3, options => o.options) n
     LEFT JOIN answer a ON a.obs_id = n.obs_id AND a.ref_id = n.ref_id AND a.distance = n.distance
GROUP BY 1 ORDER BY 1;
SELECT o.options, count(*) AS rows, count(DISTINCT (n.obs_id, n.ref_id)) AS pairs, sum(round(n.distance)) AS metres
FROM (VALUES ('{}'::jsonb), ('{"batch_rows": 1}'), ('{"batch_rows": 100}'), ('{"algorithm": "brute"}')) o (options),
     LATERAL geonn_within('few', 'many', 500000, options => o.options) n
GROUP BY 1 ORDER BY 1;
-- they come before the settings: there need be no GPU
SET geonn.device = cuda;
SELECT count(*) FROM geonn_nearest('many', 'few', options => '{"device": "cpu"}');
SELECT count(*) FROM geonn_nearest_points('{1}', '{2}', 'few', options => '{"device": "cpu"}');
RESET geonn.device;

-- not an object
SELECT * FROM geonn_nearest('ship', 'port', options => '[]');
SELECT * FROM geonn_nearest('ship', 'port', options => '["device", "cpu"]');
SELECT * FROM geonn_nearest('ship', 'port', options => '"cpu"');
SELECT * FROM geonn_nearest('ship', 'port', options => '1');
SELECT * FROM geonn_nearest('ship', 'port', options => 'true');
SELECT * FROM geonn_nearest('ship', 'port', options => 'null');
SELECT * FROM geonn_check('ship', '[]');
SELECT * FROM geonn_nearest('ship', 'port', options => NULL);

-- keys that are not known, each function its own
SELECT * FROM geonn_nearest('ship', 'port', options => '{"devise": "cpu"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"": "cpu"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"Device": "cpu"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"id": "mmsi"}');
SELECT * FROM geonn_nearest_sql('TABLE ship', 'TABLE port', options => '{"lat": "y"}');
SELECT * FROM geonn_within('ship', 'port', 1, options => '{"k": 3}');
SELECT * FROM geonn_within_sql('TABLE ship', 'TABLE port', 1, options => '{"k": 3}');
SELECT * FROM geonn_nearest_points('{1}', '{2}', 'port', options => '{"obs_lat": "y"}');
SELECT * FROM geonn_nearest_points('{1}', '{2}', 'port', options => '{"ord": "y"}');
SELECT * FROM geonn_check('port', '{"ref_id": "code"}');
SELECT * FROM geonn_check('port', '{"device": "cpu"}');
SELECT * FROM geonn_check('port', '{"key": "code"}');

-- values of the wrong type
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_id": 1}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_lat": null}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_lon": true}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_geog": ["at"]}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"ref_geog": {"column": "at"}}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"device": 0}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"algorithm": ["brute"]}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"batch_rows": "1000"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"batch_rows": null}');

-- values that are none
SELECT * FROM geonn_nearest('ship', 'port', options => '{"device": "gpu"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"device": ""}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"device": "cpu "}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"algorithm": "tree"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"batch_rows": 0}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"batch_rows": -1}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"batch_rows": 1.5}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"batch_rows": 4194305}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"batch_rows": 1e30}');

-- contradictions
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_geog": "at", "obs_lat": "lat"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_geog": "at", "obs_lon": "lon"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"ref_geog": "at", "ref_lat": "lat", "ref_lon": "lon"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_lat": "lat"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"ref_lon": "lon"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_lat": "lat", "ref_lon": "lon"}');
SELECT * FROM geonn_check('ship', '{"geog": "at", "lat": "lat"}');
SELECT * FROM geonn_check('ship', '{"geog": "at", "lon": "lon"}');
SELECT * FROM geonn_check('ship', '{"lat": "lat"}');

-- columns that are not there, or not of the type
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_id": "MMSI"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_lat": "\"Reported Lat\"", "obs_lon": "lon"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"ref_geog": ""}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"ref_id": "ctid"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_id": "at"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_lat": "at", "obs_lon": "lon"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"ref_geog": "lat"}');
SELECT * FROM geonn_nearest_sql('SELECT id, lat, lon FROM ship', 'TABLE port', options => '{"obs_id": "mmsi"}');
SELECT * FROM geonn_check('ship', '{"id": "MMSI"}');
ALTER TABLE port DROP COLUMN at;
SELECT * FROM geonn_nearest('ship', 'port', options => '{"ref_geog": "at"}');

-- SQLSTATEs
\set VERBOSITY sqlstate
SELECT * FROM geonn_nearest('ship', 'port', options => '[]');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"devise": "cpu"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"device": 1}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"batch_rows": 0}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_lat": "lat"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_geog": "at", "obs_lat": "lat"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"obs_id": "MMSI"}');
SELECT * FROM geonn_nearest('ship', 'port', options => '{"ref_geog": "lat"}');

SET client_min_messages = warning;
DROP SCHEMA options CASCADE;
