-- the types that ids and coordinates may have
-- rooms: join points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA types;
SET search_path = types, public;

CREATE TABLE ref (id bigint, lat float8, lon float8);
INSERT INTO ref SELECT i, i * 17 % 90, i * 31 % 180 FROM generate_series(1, 40) i;

-- ids
CREATE TABLE id_smallint (id smallint, lat float8, lon float8);
CREATE TABLE id_integer (id integer, lat float8, lon float8);
CREATE TABLE id_bigint (id bigint, lat float8, lon float8);
INSERT INTO id_smallint VALUES (-32768, 1, 1), (32767, 2, 2);
INSERT INTO id_integer VALUES (-2147483648, 1, 1), (2147483647, 2, 2);
INSERT INTO id_bigint VALUES (-9223372036854775808, 1, 1), (9223372036854775807, 2, 2);
SELECT a.obs_id AS id, b.ref_id AS back
FROM geonn_nearest('id_smallint', 'id_integer') a
JOIN geonn_nearest('id_integer', 'id_smallint') b ON b.obs_id = a.ref_id
ORDER BY 1;
SELECT * FROM geonn_nearest('id_integer', 'id_bigint') ORDER BY 1;

-- coordinates: each type answers as the same values in double precision do
CREATE FUNCTION compare(type text, coordinates text, OUT rows bigint, OUT differing bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TEMP TABLE typed AS
        SELECT i AS id, (%1$s)::%2$s AS lat, (%1$s * 2)::%2$s AS lon
        FROM generate_series(-30, 30) i', coordinates, type);
    CREATE TEMP VIEW plain AS
        SELECT id, lat::float8 AS lat, lon::float8 AS lon FROM typed;
    SELECT count(*) INTO rows FROM geonn_nearest('typed', 'ref');
    SELECT count(*) INTO differing FROM (
        (SELECT * FROM geonn_nearest('typed', 'ref') EXCEPT ALL
         SELECT * FROM geonn_nearest('plain', 'ref'))
        UNION ALL
        (SELECT * FROM geonn_nearest('ref', 'typed') EXCEPT ALL
         SELECT * FROM geonn_nearest('ref', 'plain'))) x;
    DROP TABLE typed CASCADE;
END $$;
SET client_min_messages = warning;
SELECT t.type, c.* FROM (VALUES
    ('double precision', 'i * 1.1'), ('real', 'i * 1.1'), ('numeric', 'i / 7.0'),
    ('numeric(8,5)', 'i / 7.0'), ('smallint', 'i'), ('integer', 'i'), ('bigint', 'i')
    ) t (type, coordinates), compare(t.type, t.coordinates) c;
RESET client_min_messages;

-- a real is the number that it holds, not the one that it prints
CREATE TABLE coordinate_real (id integer, lat real, lon real);
INSERT INTO coordinate_real VALUES (1, 0.1, 0.1);
CREATE TABLE coordinate_double (id integer, lat float8, lon float8);
INSERT INTO coordinate_double VALUES (1, 0.1, 0.1);
SELECT distance, distance = geonn_distance(0.1::real, 0.1::real, 0.1, 0.1) AS same
FROM geonn_nearest('coordinate_real', 'coordinate_double');

-- numeric with more digits than a double precision has, and beyond its range
CREATE TABLE coordinate_numeric (id integer, lat numeric, lon numeric);
INSERT INTO coordinate_numeric VALUES
    (1, 0.1000000000000000055511151231257827021181583404541015625, 0.1),
    (2, 1e-400, -1e-400), (3, 'NaN', 0), (4, 'Infinity', 0), (5, 0, 1e400), (6, -1e400, 0);
SELECT * FROM geonn_nearest('coordinate_numeric', 'coordinate_double') ORDER BY obs_id;

-- integers beyond every range
CREATE TABLE coordinate_bigint (id integer, lat bigint, lon bigint);
INSERT INTO coordinate_bigint VALUES
    (1, 0, 0), (2, 9223372036854775807, 0), (3, 0, -9223372036854775808);
SELECT * FROM geonn_nearest('coordinate_bigint', 'coordinate_double') ORDER BY obs_id;

-- domains are the types below them
CREATE DOMAIN number AS integer CHECK (VALUE > 0);
CREATE DOMAIN positive_number AS number;
CREATE DOMAIN latitude AS numeric(9,6) CHECK (VALUE BETWEEN -90 AND 90);
CREATE TABLE domains (id positive_number PRIMARY KEY, lat latitude, lon real);
INSERT INTO domains VALUES (8, 45.5, 7);
SELECT * FROM geonn_nearest('domains', 'domains');
SELECT * FROM geonn_describe('domains');

-- different types on the two sides, and within one
CREATE TABLE mixed (id smallint, lat smallint, lon numeric);
INSERT INTO mixed VALUES (1, 50, 8.5), (2, -50, 171.5);
SELECT * FROM geonn_nearest('mixed', 'domains') ORDER BY obs_id;

SET client_min_messages = warning;
DROP SCHEMA types CASCADE;
