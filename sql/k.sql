-- k: the nearest references of each observation, in order
-- rooms: join engine/cpu/walk
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA k;
SET search_path = k, public;

-- The definition: for each observation the first k references in the order
-- (distance, id, latitude, longitude).  The rows of an observation are adjacent
-- and in that order, so as they come they have the ranks 1, 2, 3, ...; disordered
-- counts those that are not.
CREATE FUNCTION compare(obs regclass, ref regclass, k integer, arguments text DEFAULT '',
    metric text DEFAULT 'sphere',
    OUT rows bigint, OUT disordered bigint, OUT missing bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($query$
        CREATE TEMP TABLE expected AS
        SELECT o.id AS obs_id, r.id AS ref_id, r.distance, r.rank
        FROM %1$s o CROSS JOIN LATERAL (
            SELECT r.id, distance,
                row_number() OVER (ORDER BY distance, r.id, r.lat, r.lon) AS rank
            FROM (SELECT *, geonn_distance(o.lat, o.lon, lat, lon, %4$L) AS distance FROM %2$s) r
            ORDER BY rank LIMIT %3$s) r
        $query$, obs, ref, k, metric);
    EXECUTE format($query$
        CREATE TEMP TABLE found AS
        SELECT * FROM ROWS FROM (
            geonn_nearest(%L, %L, k => %s, metric => %L, row_type => NULL::record %s)
                AS (obs_id bigint, ref_id bigint, distance float8, rank bigint))
            WITH ORDINALITY AS n (obs_id, ref_id, distance, rank, place)
        $query$, obs, ref, k, metric, arguments);
    SELECT count(*), count(*) FILTER (WHERE NOT (
               rank = 1 AND first OR
               rank > 1 AND rank = before.rank_before + 1 AND obs_id = before.obs_id_before))
    INTO rows, disordered
    FROM (SELECT rank, obs_id, lag(rank) OVER in_order AS rank_before,
                 lag(obs_id) OVER in_order AS obs_id_before,
                 row_number() OVER (PARTITION BY obs_id ORDER BY place) = 1 AS first
          FROM found WINDOW in_order AS (ORDER BY place)) before;
    SELECT count(*) INTO missing FROM (
        SELECT * FROM expected EXCEPT ALL SELECT obs_id, ref_id, distance, rank FROM found) x;
    SELECT count(*) INTO wrong FROM (
        SELECT obs_id, ref_id, distance, rank FROM found EXCEPT ALL SELECT * FROM expected) x;
    DROP TABLE expected, found;
END $$;

-- an example
CREATE TABLE city (id bigint PRIMARY KEY, name text, lat float8, lon float8);
INSERT INTO city VALUES
    (1, 'Berlin', 52.52, 13.405), (2, 'Hamburg', 53.55, 10), (3, 'Prague', 50.0755, 14.4378),
    (4, 'Warsaw', 52.2297, 21.0122), (5, 'Suva', -18.1416, 178.4419);
SELECT * FROM geonn_nearest('city', 'city', k => 2) ORDER BY obs_id, distance;
SELECT c.name, n.rank, r.name, round(n.distance) AS metres
FROM geonn_nearest('city', 'city', 2, exclude_self => true, row_type => NULL::record)
    AS n (obs_id bigint, ref_id bigint, distance float8, rank integer)
JOIN city c ON c.id = n.obs_id JOIN city r ON r.id = n.ref_id
ORDER BY c.id, n.rank;

-- points with equal distances among them: a grid, with some of it twice
CREATE TABLE grid AS
SELECT row_number() OVER (ORDER BY md5(lat || ' ' || lon)) AS id, lat::float8, lon::float8
FROM generate_series(-88, 88, 11) lat, generate_series(-180, 360, 9) lon;
CREATE TABLE point AS
SELECT i AS id, (i * 7919 % 361) / 2.0 - 90 AS lat, (i * 104729 % 1081) / 2.0 - 180 AS lon
FROM generate_series(1, 30) i;
SELECT count(*) FROM grid;
SELECT k, compare.* FROM unnest(ARRAY[1, 2, 3, 10, 100, 1000, 1024]) k, compare('point', 'grid', k);
SELECT k, compare.* FROM unnest(ARRAY[1, 2, 10, 29, 30, 31, 1024]) k, compare('grid', 'point', k);

-- fewer references than k
CREATE VIEW three AS SELECT * FROM point WHERE id <= 3;
CREATE VIEW nothing AS SELECT * FROM point WHERE id < 0;
SELECT k, compare.* FROM unnest(ARRAY[1, 2, 3, 4, 1024]) k, compare('point', 'three', k);
SELECT * FROM compare('point', 'nothing', 5);
SELECT * FROM compare('nothing', 'point', 5);

-- batches that have far fewer rows than k
SELECT b AS batch_rows, k, compare.*
FROM unnest(ARRAY[1, 2, 3, 100]) b, unnest(ARRAY[1, 2, 1024]) k,
     compare('point', 'grid', k, format(', options => ''{"batch_rows": %s}''', b));
-- and many of them
SELECT * FROM compare('grid', 'grid', 20);
SELECT * FROM compare('grid', 'grid', 7, ', options => ''{"batch_rows": 10}''');
CREATE TABLE many AS
SELECT i AS id, (i * 104729 % 180001) / 1000.0 - 90 AS lat, (i * 1299709 % 540001) / 1000.0 - 180 AS lon
FROM generate_series(1, 20000::bigint) i;
SELECT * FROM compare('many', 'three', 5);
SELECT * FROM compare('three', 'many', 1024);
SELECT * FROM compare('three', 'many', 1);

-- every reference in one place
CREATE TABLE heap AS
SELECT i AS id, 48.5 AS lat, 7.5 AS lon FROM generate_series(2000, 1, -1) i;
SELECT * FROM compare('point', 'heap', 1024);
SELECT * FROM compare('three', 'heap', 1);

-- by every way to the answer, and on the spheroid
SELECT a AS algorithm, k, compare.* FROM unnest(ARRAY['brute', 'index']) a, unnest(ARRAY[1, 10, 1024]) k,
     compare('point', 'grid', k, format(', options => ''{"algorithm": "%s"}''', a));
SELECT k, compare.* FROM unnest(ARRAY[1, 2, 10, 1024]) k,
     compare('point', 'grid', k, metric => 'spheroid');

-- what k cannot be
SELECT * FROM geonn_nearest('city', 'city', k => 0);
SELECT * FROM geonn_nearest('city', 'city', k => -1);
SELECT * FROM geonn_nearest('city', 'city', k => 1025);
SELECT * FROM geonn_nearest('city', 'city', k => 2147483647);
SELECT * FROM geonn_nearest('city', 'city', k => NULL);
\set VERBOSITY sqlstate
SELECT * FROM geonn_nearest('city', 'city', k => 0);
SELECT * FROM geonn_nearest('city', 'city', k => 1025);
SELECT * FROM geonn_nearest('city', 'city', k => NULL);

SET client_min_messages = warning;
DROP SCHEMA k CASCADE;
