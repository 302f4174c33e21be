-- geonn_describe(): the columns that would be used, or the same errors
-- rooms: points
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA describe;
SET search_path = describe, public;

CREATE TABLE station (code integer PRIMARY KEY, name text, "Latitude" numeric(9,6), lng real);
SELECT * FROM geonn_describe('station');
SELECT role, column_name, pg_typeof(column_name) AS a, type, pg_typeof(type) AS b
FROM geonn_describe('station') WHERE role <> 'id';
CREATE VIEW place AS SELECT code AS id, "Latitude" AS lat, lng AS lon FROM station;
SELECT * FROM geonn_describe('place');
CREATE TABLE part (id bigint, lat float8, lon float8, PRIMARY KEY (id, lat));
SELECT * FROM geonn_describe('part');

-- columns by options, and those with limits
CREATE DOMAIN shift AS int4range;
CREATE TABLE van (plate text, y float8, x float8, walks numeric, seen timestamptz, works shift, price real, lasts interval);
SELECT * FROM geonn_describe('van', '{"id": "plate", "lat": "y", "lon": "x", "radius": "walks"}', '{works, price, seen}');
SELECT * FROM geonn_describe('place', overlaps => '{id}');
SELECT * FROM geonn_describe('place', '{}', '{}');
SELECT * FROM geonn_describe('place', '{}', NULL);
SELECT * FROM geonn_describe('place', NULL);
-- their errors are those of a join
SELECT * FROM geonn_describe('van', '{"id": "plate", "lat": "y", "lon": "x"}', '{lasts}');
SELECT * FROM geonn_nearest('van', 'van', options => '{"obs_id": "plate", "obs_lat": "y", "obs_lon": "x"}', overlaps => '{lasts}');
SELECT * FROM geonn_describe('place', overlaps => '{id, lat, id}');
SELECT * FROM geonn_describe('place', overlaps => '{id, NULL}');
SELECT * FROM geonn_describe('place', overlaps => '{id, lat, lon, code}');
SELECT * FROM geonn_describe('place', overlaps => '{seen}');
SELECT * FROM geonn_describe('place', '{"radius": "far"}');
SELECT * FROM geonn_describe('station', '{"radius": "name"}');
SELECT * FROM geonn_describe('station', '{"obs_radius": "name"}');

SELECT * FROM geonn_describe(NULL);
SELECT * FROM geonn_describe('pg_tablespace');
SELECT * FROM geonn_describe('station_pkey');
SELECT * FROM geonn_describe('missing');
CREATE TABLE ambiguous (id bigint, lat float8, lon float8, longitude float8);
SELECT * FROM geonn_describe('ambiguous');

SET client_min_messages = warning;
DROP SCHEMA describe CASCADE;
