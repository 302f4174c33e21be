-- many references are read by parallel workers for one process, and are the same ones
-- rooms: points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA parallel_references;
SET search_path = parallel_references, public;
-- which process an error comes from is chance
\set SHOW_CONTEXT never

CREATE FUNCTION lat(i integer) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT (i * 7919 % 1800) / 10.0 - 90';
CREATE FUNCTION lon(i integer) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT (i * 10473 % 3600) / 10.0 - 180';
CREATE TABLE obs AS SELECT i AS id, i % 7 AS kind, date '2000-01-01' + i % 3 AS day, lat(i * 31) AS lat, lon(i * 17) AS lon
FROM generate_series(1, 500) i;
-- Four rows for each id, two for each place; NULLs before what is read, deleted and updated rows.
-- The tables are unlogged: references of others would be kept, and not be read again.
CREATE UNLOGGED TABLE ref (note text, id int4, small int2, big int8, half float8, moment timestamptz, code uuid, name text,
    kind int4, day date, lat float8, lon float8, number_lat numeric, number_lon real, place point);
INSERT INTO ref SELECT CASE i % 3 WHEN 0 THEN 'note' END, i / 4, i / 4, i / 4 + 10000000000, i / 4 / 2.0,
    timestamptz 'epoch' + i / 4 * interval '1 hour', md5((i / 4)::text)::uuid, 'name ' || i / 4,
    nullif(i % 8, 7), date '2000-01-01' + i % 3, lat(i / 2), lon(i / 2), lat(i / 2), lon(i / 2), point(lon(i / 2), lat(i / 2))
FROM generate_series(1, 8000) i;
UPDATE ref SET lat = -lat WHERE id % 10 = 4;
DELETE FROM ref WHERE id % 10 = 3;
CREATE UNLOGGED TABLE unordered AS SELECT * FROM ref ORDER BY md5(ctid::text);
CREATE TABLE parts (day date, id int4, lat float8, lon float8, kind int4) PARTITION BY LIST (day);
CREATE UNLOGGED TABLE part_0 PARTITION OF parts FOR VALUES IN ('2000-01-01');
CREATE UNLOGGED TABLE part_1 (lon float8, gone text, kind int4, lat float8, id int4, day date);
ALTER TABLE part_1 DROP gone;
ALTER TABLE parts ATTACH PARTITION part_1 DEFAULT;
INSERT INTO parts SELECT day, id, lat, lon, kind FROM unordered;
CREATE UNLOGGED TABLE alone AS SELECT id, lat, lon FROM ref;
ALTER TABLE alone SET (parallel_workers = 0);
CREATE UNLOGGED TABLE by_one AS SELECT id, lat, lon FROM ref;
ALTER TABLE by_one SET (parallel_workers = 1);
CREATE VIEW seen AS SELECT id, lat, lon FROM ref;
CREATE VIEW even AS SELECT id, lat, lon FROM ref WHERE id % 2 = 0;
CREATE MATERIALIZED VIEW copied AS SELECT id, lat, lon FROM ref;
CREATE TEMP TABLE temporary AS SELECT id, lat, lon FROM ref;
CREATE UNLOGGED TABLE empty (id int4, lat float8, lon float8);
ANALYZE;

SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET jit = off;

-- How many workers read the references, and the rows compared with those of references
-- that one process reads.
CREATE FUNCTION explain(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query;
END $$;
CREATE FUNCTION compare(call text, OUT workers integer, OUT rows bigint, OUT missing bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
BEGIN
    workers := (SELECT max(substring(line FROM 'Reference Workers: (\d+)')::integer) FROM explain('SELECT * FROM ' || call) line);
    EXECUTE 'CREATE TEMP TABLE in_parallel AS SELECT * FROM ' || call;
    PERFORM set_config('max_parallel_workers_per_gather', '0', true);
    EXECUTE 'CREATE TEMP TABLE expected AS SELECT * FROM ' || call;
    PERFORM set_config('max_parallel_workers_per_gather', '2', true);
    SELECT count(*) INTO rows FROM in_parallel;
    SELECT count(*) INTO missing FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM in_parallel) x;
    SELECT count(*) INTO wrong FROM (SELECT * FROM in_parallel EXCEPT ALL SELECT * FROM expected) x;
    DROP TABLE in_parallel, expected;
END $$;
CREATE TYPE pair AS (obs_id int4, ref_id int4, distance float8, rank int4, ref_lat float8, ref_lon float8);
CREATE TYPE of_small AS (obs_id int4, ref_id int2, distance float8);
CREATE TYPE of_half AS (obs_id int4, ref_id float8, distance float8);
CREATE TYPE of_moment AS (obs_id int4, ref_id timestamptz, distance float8);
CREATE TYPE of_day AS (obs_id int4, ref_id date, distance float8);
CREATE TYPE of_code AS (obs_id int4, ref_id uuid, distance float8);
CREATE TYPE of_name AS (obs_id int4, ref_id text, distance float8);

SELECT call, c.* FROM unnest(ARRAY[
    $$geonn_nearest('obs', 'ref')$$,
    $$geonn_nearest('obs', 'unordered')$$,
    $$geonn_nearest('obs', 'parts')$$,
    $$geonn_nearest('obs', 'copied')$$,
    $$geonn_nearest('obs', 'by_one')$$,
    $$geonn_nearest('obs', 'empty', keep_unmatched => true)$$,
    $$geonn_nearest('obs', 'ref', k => 9, ties => 'all')$$,
    $$geonn_nearest('obs', 'ref', k => 3, row_type => NULL::pair)$$,
    $$geonn_nearest('obs', 'unordered', k => 3, metric => 'spheroid', row_type => NULL::pair)$$,
    $$geonn_within('obs', 'ref', 300000)$$,
    $$geonn_nearest('ref', 'ref', exclude_self => true)$$,
    $$geonn_nearest('obs', 'ref', by => '{kind}')$$,
    $$geonn_nearest('obs', 'parts', by => '{day,kind}', keep_unmatched => true, row_type => NULL::pair)$$,
    $$geonn_nearest('unordered', 'ref', by => '{kind}', exclude_self => true, k => 2)$$,
    $$geonn_nearest_sql('SELECT id, lat, lon FROM obs', 'SELECT lon, lat, big AS id FROM ref')$$,
    $$geonn_nearest_points('{1,2}', '{3,4}', 'unordered', ties => 'all')$$,
    $$geonn_nearest('obs', 'ref', options => '{"ref_id": "big"}')$$,
    $$geonn_nearest('obs', 'ref', options => '{"ref_id": "small"}', row_type => NULL::of_small)$$,
    $$geonn_nearest('obs', 'ref', options => '{"ref_id": "half"}', row_type => NULL::of_half)$$,
    $$geonn_nearest('obs', 'ref', options => '{"ref_id": "moment"}', row_type => NULL::of_moment)$$,
    $$geonn_nearest('obs', 'ref', options => '{"ref_id": "day"}', row_type => NULL::of_day)$$,
    $$geonn_nearest('obs', 'ref', options => '{"ref_lat": "number_lat", "ref_lon": "number_lon"}')$$,
    $$geonn_nearest('obs', 'unordered', options => '{"ref_geog": "place"}')$$]) call, compare(call) c;
-- without the leader's help, with one worker of two, and with none
SET parallel_leader_participation = off;
SELECT * FROM compare($$geonn_nearest('obs', 'ref', by => '{kind}', k => 2)$$);
-- (on a busy machine the first may have ended before the second is asked for, which then starts)
SET max_parallel_workers = 1;
SELECT workers > 0 AS workers, rows, missing, wrong FROM compare($$geonn_nearest('obs', 'ref', k => 2)$$);
RESET parallel_leader_participation;
SELECT workers > 0 AS workers, rows, missing, wrong FROM compare($$geonn_nearest('obs', 'ref', k => 2)$$);
SET max_parallel_workers = 0;
SELECT * FROM compare($$geonn_nearest('obs', 'ref', k => 2)$$);
RESET max_parallel_workers;
-- one process reads what workers may not or cannot read, and ids and keys that are passed by
-- reference
SELECT call, c.* FROM unnest(ARRAY[
    $$geonn_nearest('obs', 'alone')$$,
    $$geonn_nearest('obs', 'temporary')$$,
    $$geonn_nearest('obs', 'even')$$,
    $$geonn_nearest('obs', 'ref', options => '{"ref_id": "name"}', row_type => NULL::of_name)$$,
    $$geonn_nearest('obs', 'ref', options => '{"ref_id": "code"}', row_type => NULL::of_code)$$,
    $$geonn_nearest_sql('SELECT id, day::text AS key, lat, lon FROM obs', 'SELECT id, name AS key, lat, lon FROM ref', by => '{key}')$$])
    call, compare(call) c;
-- a view that is its table
SELECT * FROM compare($$geonn_nearest('obs', 'seen')$$);
-- the table is small
RESET min_parallel_table_scan_size;
SELECT * FROM compare($$geonn_nearest('obs', 'ref')$$);
SET min_parallel_table_scan_size = 0;

-- the functions' own scan, and wherever else a join can stand
SELECT count(*), min(n.distance) > 0 AS is_far FROM (SELECT (geonn_nearest('obs', 'ref')).*) n;
SELECT count(*) FROM (SELECT * FROM geonn_nearest('obs', 'unordered') LIMIT 7) n;
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT obs_id, ref_id FROM geonn_nearest('obs', 'ref') ORDER BY 1;
FETCH 2 FROM c;
COMMIT;
FETCH 1 FROM c;
CLOSE c;
CREATE TABLE answer (obs_id int8, ref_id int8);
INSERT INTO answer SELECT obs_id, ref_id FROM geonn_nearest('obs', 'ref');
CREATE FUNCTION farthest(reference regclass) RETURNS float8 LANGUAGE plpgsql PARALLEL RESTRICTED AS $$
BEGIN
    RETURN (SELECT max(distance) FROM geonn_nearest('obs', reference));
END $$;
CREATE FUNCTION farthest_or_null(reference regclass) RETURNS float8 LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT max(distance) FROM geonn_nearest('obs', reference, invalid => 'error'));
EXCEPTION WHEN numeric_value_out_of_range THEN
    RETURN NULL;
END $$;
SELECT farthest('ref') = farthest('alone') AS same, farthest_or_null('unordered') = farthest('alone') AS also_the_same;
-- below a Gather: the observations' workers come after the references'
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM geonn_nearest('ref', 'unordered');
SELECT * FROM compare($$geonn_nearest('ref', 'unordered', by => '{kind}', exclude_self => true, keep_unmatched => true)$$);
SELECT sum(farthest('ref')) / count(*) = max(farthest('ref')) AS same FROM geonn_nearest('obs', 'ref') WHERE obs_id <= 5;
SET max_parallel_workers = 2;
SELECT count(*) FROM geonn_nearest('ref', 'unordered');
RESET max_parallel_workers;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;

-- what the transaction has changed itself, and what a savepoint brings back
BEGIN ISOLATION LEVEL REPEATABLE READ;
UPDATE ref SET id = id + 100000 WHERE id < 1000;
DELETE FROM ref WHERE id BETWEEN 1000 AND 1400;
SAVEPOINT later;
INSERT INTO ref (id, lat, lon) SELECT 500000 + i, lat(i), lon(i) FROM generate_series(1, 1000) i;
CREATE TABLE created AS SELECT id, lat, lon FROM ref;
SELECT * FROM compare($$geonn_nearest('obs', 'ref', k => 3)$$);
SELECT * FROM compare($$geonn_nearest('obs', 'created', k => 3)$$);
SELECT count(*) FILTER (WHERE ref_id < 1400) AS deleted, count(*) FILTER (WHERE ref_id > 500000) > 0 AS added
FROM geonn_nearest('obs', 'ref', k => 3);
ROLLBACK TO later;
SELECT * FROM compare($$geonn_nearest('obs', 'ref', k => 3)$$);
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT * FROM compare($$geonn_nearest('obs', 'ref', k => 3)$$);
COMMIT;

-- rows that are no points: the same warning, counts and error
INSERT INTO ref (id, lat, lon) VALUES (-5, 91, 0), (-4, 0, 361), (NULL, 1, 1), (-3, NULL, 0), (-2, 'NaN', 0), (-1, 0, '-Infinity');
SELECT count(*) FROM geonn_nearest('obs', 'ref');
SET max_parallel_workers_per_gather = 0;
SELECT count(*) FROM geonn_nearest('obs', 'ref');
SELECT count(*) FROM geonn_nearest('obs', 'ref', invalid => 'error');
SET max_parallel_workers_per_gather = 2;
SELECT count(*) FROM geonn_nearest('obs', 'ref', invalid => 'error');
SET client_min_messages = error;
SELECT farthest_or_null('ref') IS NULL AS failed, farthest('ref') = farthest_or_null('alone') AS same;
SELECT line FROM explain($$SELECT FROM geonn_nearest('obs', 'ref')$$) line WHERE line ~ 'Reference';
BEGIN;
SAVEPOINT before;
SELECT count(*) FROM geonn_nearest('obs', 'ref', invalid => 'error');
ROLLBACK TO before;
SELECT * FROM compare($$geonn_nearest('obs', 'ref', by => '{kind}')$$);
COMMIT;

DROP SCHEMA parallel_references CASCADE;
