-- geonn_nearest(): the rows are those of the definition, row by row
-- rooms: join client engine/cpu/squares
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA nearest;
SET search_path = nearest, public;

-- The definition: for each observation the first reference in the order
-- (distance, id).  Returns how many rows geonn_nearest has, how many it lacks
-- and how many it has too many.
CREATE FUNCTION compare(obs regclass, ref regclass,
    OUT rows bigint, OUT missing bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($query$
        CREATE TEMP TABLE expected AS
        SELECT o.id AS obs_id, r.id AS ref_id, r.distance
        FROM %s o CROSS JOIN LATERAL (
            SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance
            FROM %s r ORDER BY distance, r.id LIMIT 1) r;
        CREATE TEMP TABLE found AS SELECT * FROM geonn_nearest(%L, %L)
        $query$, obs, ref, obs, ref);
    SELECT count(*) INTO rows FROM found;
    SELECT count(*) INTO missing
    FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM found) x;
    SELECT count(*) INTO wrong
    FROM (SELECT * FROM found EXCEPT ALL SELECT * FROM expected) x;
    DROP TABLE expected, found;
END $$;

-- an example
CREATE TABLE city (id bigint PRIMARY KEY, name text, lat float8, lon float8);
CREATE TABLE airport (id integer PRIMARY KEY, code text, lat float8, lon float8);
INSERT INTO city VALUES
    (1, 'Berlin', 52.52, 13.405), (2, 'Quito', -0.2299, -78.525),
    (3, 'Suva', -18.1416, 178.4419), (4, 'Longyearbyen', 78.2232, 15.6267);
INSERT INTO airport VALUES
    (10, 'BER', 52.3667, 13.5033), (11, 'UIO', -0.1292, -78.3575),
    (12, 'NAN', -17.7554, 177.4434), (13, 'LYR', 78.2461, 15.4656),
    (14, 'APW', -13.83, -172.0083);
SELECT * FROM geonn_nearest('city', 'airport') ORDER BY obs_id;
SELECT c.name, a.code, round(n.distance) AS metres
FROM geonn_nearest('city', 'airport') n
JOIN city c ON c.id = n.obs_id JOIN airport a ON a.id = n.ref_id
ORDER BY c.name;
SELECT * FROM compare('city', 'airport');
SELECT * FROM compare('airport', 'city');

-- a grid of half degrees against one of whole degrees: most have several
-- references at the same distance.  It spans the equator, the antimeridian
-- (twice: 181 is -179) and both poles.
CREATE TABLE half AS
SELECT row_number() OVER () AS id, lat::float8, lon::float8
FROM generate_series(-90, 90, 4.5) lat, generate_series(-180, 360, 13.5) lon;
CREATE TABLE whole AS
SELECT row_number() OVER (ORDER BY md5(lat || ',' || lon))::integer AS id,
       lat::float8, lon::float8
FROM generate_series(-90, 90, 9) lat, generate_series(-180, 360, 27) lon;
SELECT * FROM compare('half', 'whole');
SELECT * FROM compare('whole', 'half');
CREATE TABLE region_half AS
SELECT row_number() OVER () AS id, lat::float8, lon::float8
FROM generate_series(-3, 3, 0.5) lat, generate_series(177, 183, 0.5) lon;
CREATE TABLE region_whole AS
SELECT row_number() OVER (ORDER BY lon, lat DESC) AS id, lat::float8,
       CASE WHEN lon > 180 THEN lon - 360 ELSE lon END::float8 AS lon
FROM generate_series(-3, 3) lat, generate_series(177, 183) lon;
SELECT * FROM compare('region_half', 'region_whole');

-- coincident references: the smallest id wins, in whatever order they come
CREATE TABLE coincident (id bigint, lat float8, lon float8);
INSERT INTO coincident
SELECT i, 10 * (i % 3), 20 * (i % 3) FROM generate_series(300, 1, -1) i;
INSERT INTO coincident VALUES (-5, 10, 20), (7, 10, 20), (7, 10, 20);
SELECT * FROM geonn_nearest('coincident', 'coincident')
WHERE obs_id < 7 ORDER BY obs_id;
SELECT * FROM compare('coincident', 'coincident');

-- antipodes: every reference is far, by nearly the same
CREATE TABLE antipode AS
SELECT row_number() OVER () AS id, (-lat)::float8 AS lat, (lon + 180)::float8 AS lon
FROM generate_series(-60, 60, 30) lat, generate_series(-150, 150, 60) lon;
CREATE TABLE origin (id smallint, lat float8, lon float8);
INSERT INTO origin VALUES (2, 30, -90), (1, 30, -90.0000001), (3, 30.0000001, -90);
SELECT * FROM compare('antipode', 'origin');
SELECT * FROM geonn_nearest('antipode', 'origin')
WHERE distance > 20015114 ORDER BY obs_id;

-- poles have every longitude
CREATE TABLE pole AS
SELECT row_number() OVER (ORDER BY lon DESC, lat) AS id, lat::float8, lon::float8
FROM (VALUES (90), (-90)) l (lat), generate_series(-180, 360, 45) lon;
SELECT * FROM compare('pole', 'pole');
SELECT * FROM compare('half', 'pole');
SELECT DISTINCT ref_id, distance FROM geonn_nearest('pole', 'pole') ORDER BY 1;

-- one reference; ids at the ends of their range
CREATE TABLE single (id bigint, lat float8, lon float8);
INSERT INTO single VALUES (9223372036854775807, 0, 0);
CREATE TABLE ends (id bigint, lat float8, lon float8);
INSERT INTO ends VALUES
    (9223372036854775807, 1, 1), (-9223372036854775808, 1, 1), (0, 1, 1);
SELECT * FROM compare('half', 'single');
SELECT * FROM geonn_nearest('ends', 'single') ORDER BY obs_id;
SELECT * FROM geonn_nearest('single', 'ends');

-- equal ids
CREATE TABLE equal_ids (id bigint, lat float8, lon float8);
INSERT INTO equal_ids SELECT 1, lat, lon FROM generate_series(80, -80, -20) lat,
    generate_series(150, -150, -50) lon;
SELECT * FROM compare('equal_ids', 'equal_ids');
SELECT * FROM compare('half', 'equal_ids');

-- nothing on one side
CREATE TABLE nothing (id bigint, lat float8, lon float8);
SELECT * FROM geonn_nearest('city', 'nothing');
SELECT * FROM geonn_nearest('nothing', 'city');
SELECT * FROM geonn_nearest('nothing', 'nothing');

-- more rows than fit one batch, on either side, in no order
CREATE TABLE many AS
SELECT (i * 7919) % 30011 AS id,
       (i * 104729 % 180001) / 1000.0 - 90 AS lat,
       (i * 1299709 % 540001) / 1000.0 - 180 AS lon
FROM generate_series(1, 30010::bigint) i;
SELECT * FROM compare('many', 'airport');
SELECT * FROM compare('airport', 'many');
SELECT count(*), count(DISTINCT obs_id), sum((distance > 0)::integer) AS moved
FROM geonn_nearest('many', 'many');

-- wherever a set-returning function can stand
SELECT (n).ref_id FROM (SELECT geonn_nearest('city', 'airport') AS n) s ORDER BY 1;
SELECT count(*) FROM geonn_nearest('many', 'airport') LIMIT 1;
SELECT count(*) FROM (SELECT * FROM geonn_nearest('many', 'airport') LIMIT 10) s;
SELECT t.obs, n.ref_id, n.obs_id
FROM (VALUES ('city'::regclass), ('single')) t (obs),
     LATERAL geonn_nearest(t.obs, 'airport') n
ORDER BY t.obs::text, n.obs_id;
SELECT a.obs_id, a.ref_id, b.ref_id AS back
FROM geonn_nearest('city', 'airport') a
JOIN geonn_nearest('airport', 'city') b ON b.obs_id = a.ref_id
ORDER BY 1;
DO $$
DECLARE
    n geonn_pair;
    nearest CURSOR FOR SELECT * FROM geonn_nearest('city', 'airport') ORDER BY distance;
BEGIN
    FOR n IN nearest LOOP
        RAISE NOTICE '% -> %', n.obs_id, n.ref_id;
    END LOOP;
END $$;

-- a prepared statement finds the columns anew
PREPARE nearest (regclass) AS
SELECT obs_id, ref_id FROM geonn_nearest($1, 'airport') ORDER BY 1 LIMIT 2;
EXECUTE nearest ('city');
ALTER TABLE airport RENAME lat TO latitude;
EXECUTE nearest ('city');
ALTER TABLE airport RENAME latitude TO lat;

-- a view follows its relations when they are renamed, and keeps them
CREATE VIEW by_view AS SELECT obs_id, ref_id FROM geonn_nearest('city', 'airport');
ALTER TABLE airport RENAME TO aerodrome;
SELECT * FROM by_view ORDER BY 1 LIMIT 2;
DROP TABLE aerodrome;
ALTER TABLE aerodrome RENAME TO airport;

-- the statement's snapshot: rows of the same transaction, not of the statement
BEGIN;
INSERT INTO airport VALUES (5, 'XYZ', 52.52, 13.405);
SELECT * FROM geonn_nearest('city', 'airport') WHERE obs_id = 1;
WITH added AS (INSERT INTO airport VALUES (4, 'ZYX', 52.52, 13.405) RETURNING id)
SELECT n.*, added.id FROM geonn_nearest('city', 'airport') n, added WHERE obs_id = 1;
SELECT * FROM geonn_nearest('city', 'airport') WHERE obs_id = 1;
SAVEPOINT before;
SELECT * FROM geonn_nearest('city', 'pg_class_oid_index');
ROLLBACK TO before;
SELECT * FROM geonn_nearest('city', 'airport') WHERE obs_id = 1;
ROLLBACK;
SELECT ref_id FROM geonn_nearest('city', 'airport') WHERE obs_id = 1;

-- an argument that is missing
SELECT * FROM geonn_nearest(NULL, 'airport');
SELECT * FROM geonn_nearest('city', NULL);
SELECT * FROM geonn_nearest('city', 'no_such_table');

SET client_min_messages = warning;
DROP SCHEMA nearest CASCADE;
