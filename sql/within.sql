-- geonn_within(): every pair within a radius, and nothing else
-- rooms: join engine/cpu/walk
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA within;
SET search_path = within, public;

CREATE TYPE ranked_pair AS (obs_id bigint, ref_id bigint, distance float8, rank bigint);

-- The definition: all pairs whose distance is at most the radius, numbered for
-- each observation in the order (distance, id, latitude, longitude).  Returns
-- how many rows geonn_within has, how many it lacks and how many it has too many.
CREATE FUNCTION compare(obs regclass, ref regclass, radius float8,
    arguments text DEFAULT '', metric text DEFAULT 'sphere', condition text DEFAULT 'true',
    keep boolean DEFAULT false,
    OUT rows bigint, OUT missing bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($query$
        CREATE TEMP TABLE expected AS
        SELECT o.id AS obs_id, r.id AS ref_id, r.distance, coalesce(r.rank, 1) AS rank
        FROM %1$s o LEFT JOIN LATERAL (
            SELECT r.id, r.distance,
                   row_number() OVER (ORDER BY r.distance, r.id, r.lat, r.lon) AS rank
            FROM (SELECT *, CASE WHEN o.lat BETWEEN -90 AND 90 AND o.lon BETWEEN -180 AND 360 AND
                                 r.lat BETWEEN -90 AND 90 AND r.lon BETWEEN -180 AND 360
                            THEN geonn_distance(o.lat, o.lon, r.lat, r.lon, %4$L) END AS distance
                  FROM %2$s r) r
            WHERE r.distance <= %3$L AND o.id IS NOT NULL AND r.id IS NOT NULL AND %6$s) r ON true
        WHERE r.rank IS NOT NULL OR %7$L;
        CREATE TEMP TABLE found AS
        SELECT * FROM geonn_within(%1$L, %2$L, %3$L, metric => %4$L, keep_unmatched => %7$L,
                                   row_type => NULL::ranked_pair %5$s)
        $query$, obs, ref, radius, metric, arguments, condition, keep);
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
    (14, 'APW', -13.83, -172.0083), (15, 'SUV', -18.0433, 178.5592);
SELECT c.name, a.code, round(n.distance) AS metres, n.rank
FROM geonn_within('city', 'airport', 150000, row_type => NULL::ranked_pair) n
JOIN city c ON c.id = n.obs_id JOIN airport a ON a.id = n.ref_id
ORDER BY c.name, n.rank;

-- from nothing through a few to all, for points that span the poles and the
-- antimeridian (twice: 181 is -179) and are far from evenly spread
CREATE TABLE obs AS
SELECT row_number() OVER () AS id, lat::float8, lon::float8
FROM generate_series(-90, 90, 15) lat, generate_series(-180, 360, 45) lon;
CREATE TABLE ref AS
SELECT row_number() OVER (ORDER BY md5(lat || ',' || lon))::integer AS id,
       lat::float8, lon::float8
FROM generate_series(-90, 90, 30) lat, generate_series(-180, 360, 90) lon;
INSERT INTO ref SELECT 1000 + i, 52 + i / 500.0, 13 - i / 250.0 FROM generate_series(1, 100) i;
INSERT INTO obs SELECT 1000 + i, 52 + i / 350.0, 13 - i / 200.0 FROM generate_series(1, 100) i;
SELECT radius, c.*
FROM unnest('{0, 1e-9, 0.001, 10, 1000, 20000, 500000, 1.2e6, 5e6, 1e7, 2e7, 20015114,
              20015200, 1e300, Infinity}'::float8[]) radius,
     LATERAL compare('obs', 'ref', radius) c
ORDER BY radius;
SELECT count(*) FROM obs, ref;
SELECT radius, c.*
FROM unnest('{0, 10, 20000, 1.2e6, 1e7, Infinity}'::float8[]) radius,
     LATERAL compare('obs', 'ref', radius, metric => 'spheroid') c
ORDER BY radius;

-- the radius itself is within; what is one unit in the last place less is not
CREATE TABLE edge AS
SELECT o.id AS obs_id, r.id AS ref_id, d AS distance
FROM obs o, ref r, LATERAL geonn_distance(o.lat, o.lon, r.lat, r.lon) d
WHERE d BETWEEN 8192 AND 16383
ORDER BY md5(o.id || ',' || r.id) LIMIT 50;
CREATE VIEW edges AS
SELECT e.*, format('SELECT id, lat, lon FROM obs WHERE id = %s', obs_id) AS obs_sql,
       format('SELECT id, lat, lon FROM ref WHERE id = %s', ref_id) AS ref_sql
FROM edge e;
SELECT count(*), bool_and(n.distance = e.distance) AS same
FROM edges e, LATERAL geonn_within_sql(obs_sql, ref_sql, e.distance) n;
SELECT count(*), bool_and(e.distance - 2e-12 < e.distance) AS less
FROM edges e LEFT JOIN LATERAL geonn_within_sql(obs_sql, ref_sql, e.distance - 2e-12) n ON true
WHERE n.distance IS NULL;

-- radius 0: coincident points, however they are written
CREATE TABLE here (id bigint, lat float8, lon float8);
INSERT INTO here VALUES (1, 0, -180), (2, 0, 180), (3, '-0', 180), (4, 90, 12), (5, 90, -99),
    (6, -90, 0), (7, 10, 350), (8, 10, -10), (9, 10, -10.0000001);
SELECT * FROM geonn_within('here', 'here', 0, exclude_self => true) ORDER BY 1, 2;
SELECT * FROM compare('here', 'here', 0);

-- groups, others than oneself, the unmatched, and rows that are no points
CREATE TABLE junk AS
SELECT CASE WHEN i % 31 > 0 THEN i % 150 END::bigint AS id,
       CASE WHEN i % 17 > 0 THEN (i * 7919 % 1000) / 100.0 END::float8 AS lat,
       CASE WHEN i % 19 = 0 THEN 'NaN' WHEN i % 23 = 0 THEN 400 WHEN i % 29 > 0
       THEN (i * 104729 % 1000) / 100.0 END::float8 AS lon,
       CASE WHEN i % 11 > 0 THEN i % 4 END AS kind, i % 3 = 0 AS fast
FROM generate_series(1, 400) i;
SET client_min_messages = error;
SELECT * FROM compare('junk', 'junk', 100000);
SELECT * FROM compare('junk', 'junk', 100000, keep => true);
SELECT * FROM compare('junk', 'junk', 200000, ', by => ''{kind}''', condition => 'o.kind = r.kind');
SELECT * FROM compare('junk', 'junk', 200000, ', by => ''{fast, kind}''',
                      condition => 'o.kind = r.kind AND o.fast = r.fast', keep => true);
SELECT * FROM compare('junk', 'junk', 150000, ', exclude_self => true', condition => 'o.id <> r.id');
SELECT * FROM compare('junk', 'junk', 60000, ', by => ''{kind}'', exclude_self => true',
                      metric => 'spheroid', condition => 'o.id <> r.id AND o.kind = r.kind',
                      keep => true);
SELECT * FROM compare('junk', 'junk', 'Infinity', keep => true);
SELECT * FROM compare('junk', 'junk', 100000, ', options => ''{"batch_rows": 1}''', keep => true);
SELECT * FROM compare('junk', 'junk', 100000, ', options => ''{"batch_rows": 7}''', keep => true);
RESET client_min_messages;

-- nothing on one side
CREATE TABLE nothing (id bigint, lat float8, lon float8);
SELECT * FROM geonn_within('city', 'nothing', 1e7);
SELECT * FROM geonn_within('nothing', 'city', 1e7);
SELECT * FROM geonn_within('city', 'nothing', 1e7, keep_unmatched => true) ORDER BY 1;

-- an observation may have more pairs than a batch has room for: its rows stay
-- together, in their order
CREATE TABLE crowd AS
SELECT (i * 7919::bigint) % 200000 + 1 AS id, 48.2::float8 AS lat, 16.4::float8 AS lon
FROM generate_series(1, 200000) i;
CREATE TABLE three (id integer, lat float8, lon float8);
INSERT INTO three VALUES (1, 48.2, 16.4), (2, 48.3, 16.4), (3, 48.1, 16.4);
CREATE TABLE crowded AS
SELECT row_number() OVER () AS row, n.*
FROM geonn_within('three', 'crowd', 50000, options => '{"batch_rows": 1}',
                  row_type => NULL::ranked_pair) n;
SELECT obs_id, count(*), sum(ref_id), min(rank), max(rank), bool_and(ref_id = rank) AS in_order,
       max(row) - min(row) + 1 AS apart, count(DISTINCT distance)
FROM crowded GROUP BY 1 ORDER BY 1;
SELECT count(*) AS different
FROM crowded c, three t
WHERE t.id = c.obs_id AND c.distance <> geonn_distance(t.lat, t.lon, 48.2, 16.4);
SELECT count(*), sum(obs_id), count(DISTINCT ref_id)
FROM geonn_within('crowd', 'three', 0);
DROP TABLE crowded;

-- Two millions of pairs and little work_mem: the rows go to disk, and at no
-- time are they in memory.
CREATE TABLE dense AS
SELECT i AS id, (i % 40) / 1000.0::float8 AS lat, (i / 40) / 1000.0::float8 AS lon
FROM generate_series(1, 1500) i;
CREATE FUNCTION is_little_memory() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    bytes bigint;
BEGIN
    SELECT sum(total_bytes) INTO bytes FROM pg_backend_memory_contexts;
    IF bytes > 32 * 1024 * 1024 THEN
        RAISE WARNING 'backend uses % bytes', bytes;
    END IF;
    RETURN true;
END $$;
SET work_mem = '64kB';
SELECT pg_stat_force_next_flush();
SELECT temp_bytes AS before FROM pg_stat_database WHERE datname = current_database() \gset
SELECT count(*), count(DISTINCT (n).obs_id), min((n).distance), max((n).distance) < 10000 AS near
FROM (SELECT geonn_within_sql('SELECT id, lat, lon FROM dense WHERE id % 50 > 0 OR is_little_memory()',
                              'SELECT id, lat, lon FROM dense', 10000,
                              options => '{"batch_rows": 100}') AS n) s;
SELECT pg_stat_force_next_flush();
SELECT temp_bytes - :before > 2250000 * 24 AS to_disk
FROM pg_stat_database WHERE datname = current_database();
RESET work_mem;

-- no radius, and none that could be one
SELECT * FROM geonn_within('city', 'airport', NULL);
SELECT * FROM geonn_within('city', 'airport', -1);
SELECT * FROM geonn_within('city', 'airport', 'NaN');
SELECT * FROM geonn_within('city', 'airport', '-Infinity');
SELECT count(*) FROM geonn_within('here', 'here', '-0');
\set VERBOSITY terse
SELECT * FROM geonn_within('city', 'airport');
SELECT * FROM geonn_within('city', 'airport', 1, k => 3);
\set VERBOSITY default
SELECT * FROM geonn_within(NULL, 'airport', 1);
SELECT * FROM geonn_within('city', NULL, 1);
SELECT * FROM geonn_within('city', 'airport', 1, metric => 'plane');
SELECT * FROM geonn_within('city', 'airport', 1, invalid => 'ignore');
SELECT * FROM geonn_within_sql(NULL, 'SELECT 1', 1);
SELECT * FROM geonn_within_sql('TABLE city', NULL, 1);
SELECT * FROM geonn_within_sql('TABLE city', 'TABLE airport', NULL);

SET client_min_messages = warning;
DROP SCHEMA within CASCADE;
