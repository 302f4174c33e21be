-- columns of points: PostgreSQL's own, and PostGIS's
-- rooms: points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA postgis;
SET search_path = postgis, public;

-- the type point: x is the longitude, y is the latitude
CREATE TABLE city (id integer PRIMARY KEY, name text, place point);
INSERT INTO city VALUES
    (1, 'Berlin', '(13.405,52.52)'), (2, 'Quito', '(-78.525,-0.2299)'),
    (3, 'Suva', '(178.4419,-18.1416)'), (4, 'Longyearbyen', '(15.6267,78.2232)'),
    (5, 'nowhere', NULL);
CREATE TABLE airport (id integer PRIMARY KEY, code text, lat float8, lon float8);
INSERT INTO airport VALUES
    (10, 'BER', 52.3667, 13.5033), (11, 'UIO', -0.1292, -78.3575),
    (12, 'NAN', -17.7554, 177.4434), (13, 'LYR', 78.2461, 15.4656),
    (14, 'APW', -13.83, -172.0083);
SELECT * FROM geonn_describe('city');
SELECT * FROM geonn_nearest('city', 'airport') ORDER BY 1;
SELECT c.id, a.id, geonn_distance(c.place[1], c.place[0], a.lat, a.lon) AS distance
FROM city c, LATERAL (SELECT * FROM airport
                      ORDER BY geonn_distance(c.place[1], c.place[0], lat, lon), id LIMIT 1) a
ORDER BY 1;
SELECT * FROM geonn_nearest('city', 'airport', keep_unmatched => true) WHERE ref_id IS NULL;
SELECT * FROM geonn_nearest_sql('SELECT id, lat, lon FROM airport', 'SELECT id, place FROM city') ORDER BY 1;
SELECT * FROM geonn_nearest_points('{52.5, -18}', '{13.4, 178}', 'city') ORDER BY 1;

-- a domain, a view, a longitude beyond 180, and what is no point of the earth
CREATE DOMAIN waypoint AS point CHECK (VALUE[0] > -1000);
CREATE TABLE waypoints (id bigint, "Where?" waypoint);
INSERT INTO waypoints VALUES (1, '(13,52)'), (2, '(181.5,-18)'), (3, '(52,100)'),
    (4, '(-180.5,0)'), (5, '(NaN,0)'), (6, '(0,-Infinity)'), (NULL, '(0,0)');
CREATE VIEW waypoint_view AS SELECT "Where?" AS x, id FROM waypoints;
SELECT * FROM geonn_describe('waypoints');
SELECT * FROM geonn_nearest('waypoints', 'airport') ORDER BY 1;
SELECT * FROM geonn_nearest('waypoint_view', 'airport', invalid => 'error') ORDER BY 1;

-- a latitude and a longitude come first, and a point does where one of them is missing
CREATE TABLE both_kinds (id bigint, lat float8, lon float8, place point);
CREATE TABLE half_and_point (id bigint, lat float8, place point);
INSERT INTO both_kinds VALUES (1, 52, 13, '(178,-18)');
INSERT INTO half_and_point VALUES (1, 52, '(178,-18)');
SELECT * FROM geonn_nearest('both_kinds', 'airport');
SELECT * FROM geonn_nearest('both_kinds', 'airport', options => '{"obs_geog": "place"}');
SELECT * FROM geonn_nearest('half_and_point', 'airport');

-- several
CREATE TABLE trip (id bigint, start point, finish point, vehicle integer);
INSERT INTO trip VALUES (1, '(13,52)', '(-78,0)', 7);
SELECT * FROM geonn_nearest('trip', 'airport');
SELECT * FROM geonn_nearest('trip', 'airport', options => '{"obs_geog": "start"}');
SELECT * FROM geonn_nearest('trip', 'airport', options => '{"obs_geog": "finish"}');

-- types of PostGIS's names that are not PostGIS's
CREATE SCHEMA impostor;
CREATE TYPE impostor.geography AS (longitude float8, latitude float8);
CREATE DOMAIN impostor.geometry AS text;
CREATE TABLE imitated (id bigint, a impostor.geography, b impostor.geometry);
SELECT * FROM geonn_nearest('imitated', 'airport');
SELECT * FROM geonn_nearest('imitated', 'airport', options => '{"obs_geog": "a"}');
SELECT * FROM geonn_nearest('imitated', 'airport', options => '{"obs_geog": "b"}');

-- the rest needs PostGIS
SELECT count(*) = 0 AS absent FROM pg_available_extensions WHERE name = 'postgis' \gset
\if :absent
SET client_min_messages = warning;
DROP SCHEMA postgis, impostor CASCADE;
\quit
\endif

-- in a schema that is not on the search path, unless a test says so; PostGIS is not installed while pgaudit logs
SET pgaudit.log = 'none';
SET client_min_messages = warning;
CREATE SCHEMA gis;
CREATE EXTENSION postgis SCHEMA gis;
RESET client_min_messages;
SET search_path = postgis, gis, public;

-- points over all of the earth, in all the ways that a column can have them
CREATE TABLE obs AS
SELECT i AS id, (i * 104729 % 180001) / 1000.0 - 90 AS lat,
       (i * 1299709 % 360001) / 1000.0 - 180 AS lon
FROM generate_series(1, 1200) i;
INSERT INTO obs SELECT 1200 + i, 60 + i / 50.0, 179.9 + i % 3 / 100.0 FROM generate_series(1, 9) i;
CREATE TABLE ref AS
SELECT i AS id, (i * 7919 % 17989) / 100.0 - 90 AS lat, (i * 6007 % 35999) / 100.0 - 180 AS lon
FROM generate_series(1, 250) i;
INSERT INTO ref VALUES (1001, 90, 0), (1002, -90, 77), (1003, 61, -180);
CREATE FUNCTION put(source regclass, name text, type text, expression text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (id integer, place %s)', name, type);
    EXECUTE format('INSERT INTO %I SELECT id, %s FROM %s', name, expression, source);
    RETURN name;
END $$;
SELECT put(side::regclass, side || '_' || kind, type, expression)
FROM (VALUES
    ('geog', 'geography(Point)', 'ST_Point(lon, lat)'),
    ('geog_any', 'geography', 'ST_Point(lon, lat)'),
    ('geog_zm', 'geography(PointZM,4326)', 'ST_MakePoint(lon, lat, 1e9, -7)'),
    ('geom', 'geometry(Point,4326)', 'ST_Point(lon, lat, 4326)'),
    ('geom_any', 'geometry', 'ST_Point(lon, lat, 4326)'),
    ('geom_srid', 'geometry(Geometry,4326)', 'ST_Point(lon, lat, 4326)'),
    ('geom_z', 'geometry(PointZ,4326)', 'ST_SetSRID(ST_MakePoint(lon, lat, id), 4326)'),
    ('geom_m', 'geometry(PointM,4326)', 'ST_SetSRID(ST_MakePointM(lon, lat, id), 4326)'),
    ('geom_zm', 'geometry(PointZM,4326)', 'ST_SetSRID(ST_MakePoint(lon, lat, id, ''NaN''), 4326)'),
    ('geom_box', 'geometry(Point,4326)', 'PostGIS_AddBBox(ST_Point(lon, lat, 4326))'),
    ('geom_zm_box', 'geometry', 'PostGIS_AddBBox(ST_SetSRID(ST_MakePoint(lon, lat, 1, 2), 4326))'),
    ('native', 'point', 'point(lon, lat)')) kinds (kind, type, expression),
    unnest('{obs,ref}'::text[]) side
ORDER BY 1;
CREATE TABLE answer AS SELECT * FROM geonn_nearest('obs', 'ref', k => 2);
SET search_path = postgis, public;
SELECT k AS kind, count(*) AS rows, count(a.*) AS equal
FROM unnest('{geog,geog_any,geog_zm,geom,geom_any,geom_srid,geom_z,geom_m,geom_zm,geom_box,geom_zm_box,native}'::text[]) k,
     LATERAL geonn_nearest(('obs_' || k)::regclass, ('ref_' || k)::regclass, k => 2) n
     LEFT JOIN answer a ON a.obs_id = n.obs_id AND a.ref_id = n.ref_id AND a.distance = n.distance
GROUP BY 1 ORDER BY 1;
SELECT * FROM geonn_describe('obs_geog');
SELECT * FROM geonn_describe('obs_geom_zm');
SELECT * FROM geonn_describe('obs_native');

-- and they are PostGIS's answers, to a micrometre
SET search_path = postgis, gis, public;
ALTER TABLE obs_geog ADD PRIMARY KEY (id);
ALTER TABLE ref_geog ADD PRIMARY KEY (id);
CREATE INDEX ON ref_geog USING gist (place);
ANALYZE obs_geog, ref_geog;
-- by its index
SELECT count(*) AS rows, sum((n.ref_id = p.id)::integer) AS same,
       sum((abs(n.distance - ST_Distance(o.place, p.place, false)) < 1e-6)::integer) AS as_far
FROM obs_geog o
JOIN geonn_nearest('obs_geog', 'ref_geog') n ON n.obs_id = o.id
CROSS JOIN LATERAL (SELECT * FROM ref_geog r ORDER BY r.place <-> o.place LIMIT 1) p;
-- by all distances: the three nearest, on the sphere and on the spheroid
CREATE TYPE ranked AS (obs_id integer, ref_id integer, rank integer, distance float8);
SELECT m.metric, count(*) AS rows, sum((n.ref_id = p.id)::integer) AS same,
       sum((abs(n.distance - p.distance) < 1e-6)::integer) AS as_far
FROM (VALUES ('sphere', false), ('spheroid', true)) m (metric, use_spheroid)
CROSS JOIN obs_geog o
CROSS JOIN LATERAL (
    SELECT id, distance, row_number() OVER (ORDER BY distance, id) AS rank
    FROM (SELECT id, ST_Distance(o.place, place, use_spheroid) AS distance FROM ref_geog) r
    ORDER BY distance, id LIMIT 3) p
JOIN (SELECT 'sphere' AS metric, * FROM geonn_nearest('obs_geog', 'ref_geog', k => 3,
                                                      row_type => NULL::ranked)
      UNION ALL
      SELECT 'spheroid', * FROM geonn_nearest('obs_geog', 'ref_geog', k => 3, metric => 'spheroid',
                                              row_type => NULL::ranked)) n
    ON n.metric = m.metric AND n.obs_id = o.id AND n.rank = p.rank
GROUP BY m.metric ORDER BY 1;
-- within
SELECT radius, metric, count(found) AS rows, count(expected) AS of_postgis,
       sum((found = expected)::integer) AS same
FROM (VALUES (1e5, 'sphere'), (7e5, 'sphere'), (7e5, 'spheroid'), (3e6, 'spheroid')) w (radius, metric)
CROSS JOIN LATERAL (
    SELECT n.ref_id AS found, p.ref_id AS expected
    FROM geonn_within('obs_geog', 'ref_geog', radius, metric => w.metric) n
    FULL JOIN (SELECT o.id AS obs_id, r.id AS ref_id FROM obs_geog o
               JOIN ref_geog r ON ST_DWithin(o.place, r.place, radius, w.metric = 'spheroid')) p
        ON p.obs_id = n.obs_id AND p.ref_id = n.ref_id) pairs
GROUP BY 1, 2 ORDER BY 1, 2;

-- rows with the coordinates; the course on the spheroid is PostGIS's azimuth
CREATE TYPE located AS (obs_id integer, obs_lat float8, obs_lon float8,
                        ref_id integer, ref_lat float8, ref_lon float8, bearing float8);
SELECT count(*) AS rows,
       sum((obs_lat = ST_Y(o.place::geometry) AND obs_lon = ST_X(o.place::geometry))::integer) AS observations,
       sum((ref_lat = ST_Y(r.place::geometry) AND ref_lon = ST_X(r.place::geometry))::integer) AS refs,
       sum((abs(bearing - degrees(ST_Azimuth(o.place, r.place))) < 1e-8)::integer) AS bearings
FROM geonn_nearest('obs_geog', 'ref_geog', metric => 'spheroid', row_type => NULL::located) n
JOIN obs_geog o ON o.id = n.obs_id
JOIN ref_geog r ON r.id = n.ref_id;

-- a geometry keeps a longitude beyond 180; a geography was moved there as it was stored
SET client_min_messages = warning;
CREATE TABLE turned_geog AS SELECT 1 AS id, geography 'POINT(190 -15)' AS place;
CREATE TABLE turned_geom AS SELECT 1 AS id, geometry 'SRID=4326;POINT(190 -15)' AS place;
RESET client_min_messages;
SELECT g.obs_id, g.ref_id, g.distance = m.distance AS equal
FROM geonn_nearest('turned_geog', 'airport') g, geonn_nearest('turned_geom', 'airport') m;

-- NULL and empty points are no points; what is out of range is skipped, or an error
CREATE TABLE strange (id integer, place geometry);
INSERT INTO strange VALUES
    (1, 'SRID=4326;POINT(13 52)'), (2, NULL), (3, 'SRID=4326;POINT EMPTY'), (4, 'SRID=4326;POINT ZM EMPTY'),
    (5, 'POINT EMPTY'), (6, ST_Point('NaN', 'NaN', 4326)), (7, 'SRID=4326;POINT(13 95)'),
    (8, 'SRID=4326;POINT(359.5 0)'), (9, 'SRID=4326;POINT(360.5 0)'), (10, ST_Point('Infinity', 0, 4326));
CREATE TABLE empty_geog AS SELECT i AS id, geography 'POINT EMPTY' AS place FROM generate_series(1, 2) i;
SELECT * FROM geonn_nearest('strange', 'airport') ORDER BY 1;
SELECT obs_id, ref_id FROM geonn_nearest('strange', 'airport', keep_unmatched => true) ORDER BY 1;
SELECT rows, null_coordinates, not_finite, latitude_out_of_range, longitude_out_of_range, longitude_over_180
FROM geonn_check('strange');
SELECT obs_id, ref_id FROM geonn_nearest('airport', 'strange') ORDER BY 1;
SELECT * FROM geonn_nearest('empty_geog', 'airport', keep_unmatched => true) ORDER BY 1;
SELECT * FROM geonn_nearest('airport', 'empty_geog');
SELECT obs_id, ref_id FROM geonn_nearest('strange', 'airport', invalid => 'error') ORDER BY 1;
DELETE FROM strange WHERE id IN (6, 10);
SELECT obs_id, ref_id FROM geonn_nearest('airport', 'strange', invalid => 'error') ORDER BY 1;
DELETE FROM strange WHERE id = 7;
SELECT obs_id, ref_id FROM geonn_nearest('airport', 'strange', invalid => 'error') ORDER BY 1;
DELETE FROM strange WHERE id = 9;
SELECT obs_id, ref_id FROM geonn_nearest('airport', 'strange', invalid => 'error') ORDER BY 1;

-- another SRID is a mistake that is not skipped; observations that are no points ask as what they are; what is empty counts as NULL
CREATE TABLE wrong_geom (id integer, place geometry);
CREATE TABLE wrong_geog (id integer, place geography);
INSERT INTO wrong_geom VALUES (1, 'SRID=4326;POINT(13 52)'), (2, 'SRID=3857;POINT(1447153 6800125)');
SELECT * FROM geonn_nearest('wrong_geom', 'airport') ORDER BY 1;
SELECT * FROM geonn_nearest('airport', 'wrong_geom');
UPDATE wrong_geom SET place = ST_SetSRID(place, 0) WHERE id = 2;
SELECT * FROM geonn_nearest('wrong_geom', 'airport') ORDER BY 1;
UPDATE wrong_geom SET place = 'SRID=4326;LINESTRING(13 52,14 53)' WHERE id = 2;
SELECT * FROM geonn_nearest('wrong_geom', 'airport', invalid => 'skip') ORDER BY 1;
UPDATE wrong_geom SET place = 'SRID=4326;MULTIPOINT(13 52)' WHERE id = 2;
SELECT * FROM geonn_nearest('wrong_geom', 'airport', invalid => 'error') ORDER BY 1;
UPDATE wrong_geom SET place = 'SRID=4326;LINESTRING EMPTY' WHERE id = 2;
SELECT * FROM geonn_nearest('wrong_geom', 'airport', keep_unmatched => true) ORDER BY 1;
INSERT INTO wrong_geom VALUES (NULL, 'SRID=4326;LINESTRING(13 52,14 53)');
DELETE FROM wrong_geom WHERE id = 2;
SELECT * FROM geonn_nearest('wrong_geom', 'airport') ORDER BY 1;
UPDATE wrong_geom SET id = 2 WHERE id IS NULL;
SELECT * FROM geonn_check('wrong_geom');
-- one of 2 MB
ALTER TABLE wrong_geom ALTER place SET STORAGE EXTERNAL;
UPDATE wrong_geom SET place = ST_Segmentize(ST_MakeEnvelope(12, 51, 14, 53, 4326), 0.00005) WHERE id = 2;
SELECT pg_column_size(place) > 2000000 AS large FROM wrong_geom WHERE id = 2;
SELECT * FROM geonn_nearest('wrong_geom', 'airport') ORDER BY 1;
CREATE VIEW right_geom AS SELECT * FROM wrong_geom WHERE GeometryType(place) = 'POINT' AND ST_SRID(place) = 4326;
SELECT * FROM geonn_nearest('right_geom', 'airport');
INSERT INTO wrong_geog VALUES (1, 'SRID=4267;POINT(13 52)');
SELECT * FROM geonn_nearest('wrong_geog', 'airport');
UPDATE wrong_geog SET place = 'POLYGON((0 0,0 1,1 1,0 0))';
SELECT * FROM geonn_nearest('airport', 'wrong_geog') ORDER BY 1;

-- columns that can have no such points, by their types
CREATE DOMAIN track AS geometry(LineString,4326);
CREATE DOMAIN spot AS geometry(Point,4326);
CREATE TABLE typed (
    id integer, mercator geometry(Point,3857), line geometry(LineString,4326), area geography(Polygon),
    nad27 geography(PointZ,4267), several geometry(MultiPoint), tin geometry(GeometryZ,25832),
    track track, spot spot, open_point geometry(Point), open_type geometry(Geometry,4326), number integer);
SELECT column_name, n.*
FROM unnest('{mercator,line,area,nad27,several,tin,track,spot,open_point,open_type,number}'::text[]) column_name
LEFT JOIN LATERAL geonn_nearest('typed', 'airport', options => jsonb_build_object('obs_geog', column_name)) n ON true
WHERE column_name IN ('spot', 'open_point', 'open_type');
SELECT * FROM geonn_nearest('typed', 'airport', options => '{"obs_geog": "mercator"}');
SELECT * FROM geonn_nearest('typed', 'airport', options => '{"obs_geog": "line"}');
SELECT * FROM geonn_nearest('typed', 'airport', options => '{"obs_geog": "area"}');
SELECT * FROM geonn_nearest('typed', 'airport', options => '{"obs_geog": "nad27"}');
SELECT * FROM geonn_nearest('typed', 'airport', options => '{"obs_geog": "several"}');
SELECT * FROM geonn_nearest('airport', 'typed', options => '{"ref_geog": "tin"}');
SELECT * FROM geonn_nearest('airport', 'typed', options => '{"ref_geog": "track"}');
SELECT * FROM geonn_nearest('airport', 'typed', options => '{"ref_geog": "number"}');
-- geometry(Point) leaves the SRID open
CREATE TABLE open_srid (id integer, place geometry(Point));
INSERT INTO open_srid VALUES (1, 'SRID=4326;POINT(13 52)');
SELECT * FROM geonn_nearest('open_srid', 'airport');
INSERT INTO open_srid VALUES (2, 'POINT(13 52)');
SELECT * FROM geonn_nearest('open_srid', 'airport');

-- which column: the only one that can be, else an error that lists them
SELECT * FROM geonn_nearest('typed', 'airport');
CREATE TABLE shop (id integer, area geometry(Polygon,4326), place geography(Point), mercator geometry(Point,3857));
INSERT INTO shop VALUES (1, NULL, 'POINT(13 52)', NULL);
SELECT * FROM geonn_describe('shop');
SELECT * FROM geonn_nearest('shop', 'airport');
ALTER TABLE shop ADD entrance geometry(Point,4326), ADD exit point;
SELECT * FROM geonn_nearest('shop', 'airport');
SELECT * FROM geonn_describe('shop');
SELECT * FROM geonn_nearest('shop', 'airport', options => '{"obs_geog": "place"}');
ALTER TABLE shop DROP place, DROP entrance, DROP exit;
SELECT * FROM geonn_nearest('shop', 'airport');
ALTER TABLE shop ADD latitude float8, ADD place geography(Point);
INSERT INTO shop (id, latitude, place) VALUES (2, 10, 'POINT(13 52)');
SELECT * FROM geonn_nearest('shop', 'airport');
ALTER TABLE shop ADD lon float8 DEFAULT 15;
SELECT * FROM geonn_nearest('shop', 'airport');

-- views, materialized views, partitions and queries
CREATE TABLE mercator (id integer, place geometry(Point,3857));
INSERT INTO mercator SELECT id, ST_Transform(place, 3857) FROM ref_geom WHERE id <= 250;
SELECT count(*) AS rows, sum((n.obs_id = n.ref_id AND n.distance = 0)::integer) AS same FROM geonn_nearest('mercator', 'mercator') n;
SELECT * FROM geonn_nearest('mercator', 'mercator', options => '{"transform": false}');
CREATE VIEW transformed AS SELECT id, ST_Transform(place, 4326) AS place FROM mercator;
CREATE MATERIALIZED VIEW kept AS SELECT * FROM transformed;
CREATE VIEW centres AS SELECT id, ST_Centroid(ST_Buffer(place, 1)) AS centre FROM mercator;
SELECT v, count(*) AS rows, sum((n.obs_id = n.ref_id AND n.distance < 1e-6)::integer) AS same
FROM unnest('{transformed,kept}'::regclass[]) v, LATERAL geonn_nearest(v, 'ref_geog') n
GROUP BY 1 ORDER BY 1;
SELECT * FROM geonn_nearest('centres', 'ref_geog', options => '{"transform": false}');
SELECT count(*) AS rows, sum((n.obs_id = n.ref_id AND n.distance < 1e-6)::integer) AS same FROM geonn_nearest('centres', 'ref_geog') n;
SELECT count(*) AS rows, sum((n.obs_id = n.ref_id AND n.distance < 1e-6)::integer) AS same
FROM geonn_nearest_sql('SELECT id, ST_Transform(centre, 4326) FROM centres',
                       'SELECT id, place::geometry FROM ref_geog WHERE id <= 250') n;
CREATE TABLE parted (id integer, place geography(Point)) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (600);
CREATE TABLE parted_2 (place geography(Point), id integer);
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (600) TO (2000);
INSERT INTO parted SELECT id, place FROM obs_geog;
SELECT count(*) FROM (SELECT * FROM geonn_nearest('parted', 'ref_geog', k => 2) INTERSECT SELECT * FROM answer) x;
SELECT count(*) AS rows, sum((n.ord = a.obs_id AND n.ref_id = a.ref_id AND n.distance = a.distance)::integer) AS same
FROM (SELECT array_agg(lat ORDER BY id) AS lat, array_agg(lon ORDER BY id) AS lon FROM obs) o,
     LATERAL geonn_nearest_points(lat, lon, 'ref_geom_zm_box') n
     LEFT JOIN (SELECT DISTINCT ON (obs_id) * FROM answer ORDER BY obs_id, distance, ref_id) a ON a.obs_id = n.ord;
SELECT count(*) AS pairs, count(DISTINCT ref_id) AS refs
FROM geonn_within_sql('SELECT id, place FROM obs_geog', 'SELECT id, place FROM ref_native', 500000);

-- points that a wide row has moved to its TOAST table
CREATE TABLE wide (id integer, place geometry, filler text);
ALTER TABLE wide ALTER place SET STORAGE EXTERNAL, ALTER filler SET STORAGE PLAIN;
INSERT INTO wide SELECT id, place, repeat('x', 8000) FROM ref_geom_zm_box;
SELECT pg_relation_size(reltoastrelid) > 0 AS toasted FROM pg_class WHERE oid = 'wide'::regclass;
SELECT count(*) FROM (SELECT * FROM geonn_nearest('obs', 'wide', k => 2) INTERSECT SELECT * FROM answer) x;

-- SQLSTATEs
\set VERBOSITY sqlstate
SELECT * FROM geonn_nearest('wrong_geom', 'airport') ORDER BY 1;
SELECT * FROM geonn_nearest('wrong_geog', 'airport');
SELECT * FROM geonn_nearest('open_srid', 'airport');
SELECT * FROM geonn_nearest('mercator', 'airport', options => '{"transform": false}');
SELECT * FROM geonn_nearest('typed', 'airport');
SELECT * FROM geonn_nearest('centres', 'airport', options => '{"transform": false}');
\set VERBOSITY default

-- PostGIS is gone, and comes back elsewhere
SET client_min_messages = warning;
DROP EXTENSION postgis CASCADE;
RESET client_min_messages;
SELECT * FROM geonn_nearest('obs_geog', 'airport');
SELECT * FROM geonn_nearest('city', 'airport') ORDER BY 1 LIMIT 1;
SET client_min_messages = warning;
CREATE SCHEMA "Geo Data";
CREATE EXTENSION postgis SCHEMA "Geo Data";
RESET client_min_messages;
CREATE TABLE again AS SELECT 1 AS id, "Geo Data".ST_Point(13, 52, 4326) AS place;
SELECT * FROM geonn_describe('again');
SELECT * FROM geonn_nearest('again', 'airport');

-- values that PostGIS never makes: points that end early, or whose flags lie about what
-- follows, as a broken page or a wrong cast could have them
CREATE FUNCTION raw(bytea, bytea DEFAULT '') RETURNS "Geo Data".geometry LANGUAGE internal IMMUTABLE STRICT AS 'byteacat';
CREATE TABLE broken (id integer, place "Geo Data".geometry);
-- these values have no text that another extension could log
SET auto_explain.log_verbose = off;
DO $$
DECLARE
    -- SRID 4326 or 3857, flags, type 1, 1 point, longitude, latitude
    sounds bytea[] := '{"\\x0010e60001000000010000000000000000002a400000000000004a40", "\\x000f110001000000010000000000000000002a400000000000004a40"}';
    sound bytea;
    told text[];
    value bytea;
    flags integer;
    message text;
BEGIN
    -- Z, M, a box, geodetic, extended, of version 2, and combined
    FOR sound, flags IN SELECT s, f FROM unnest(sounds) s, unnest('{0,1,2,4,8,12,16,64,80,92,255}'::integer[]) f LOOP
        FOR bytes IN 0..length(sound) LOOP
            value := substr(CASE WHEN bytes < 4 THEN sound ELSE set_byte(sound, 3, flags) END, 1, bytes);
            UPDATE postgis.broken SET place = postgis.raw(value);
            INSERT INTO postgis.broken SELECT 1, postgis.raw(value) WHERE NOT EXISTS (SELECT FROM postgis.broken);
            BEGIN
                PERFORM geonn_nearest('postgis.broken', 'postgis.airport');
                IF bytes < length(sound) THEN
                    told := array_append(told, 'an answer');
                END IF;
            EXCEPTION WHEN data_exception OR data_corrupted OR feature_not_supported THEN
                told := array_append(told, regexp_replace(sqlerrm, '[0-9]+', 'N', 'g'));
            END;
        END LOOP;
    END LOOP;
    FOR message IN SELECT DISTINCT unnest FROM unnest(told) LOOP
        RAISE NOTICE '%', message;
    END LOOP;
END $$;

SET client_min_messages = warning;
DROP EXTENSION postgis CASCADE;
DROP SCHEMA postgis, impostor, gis, "Geo Data" CASCADE;
