-- rows that each ask for the neighbours of their own point: one search for many of them
-- rooms: plan
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
DROP ROLE IF EXISTS regress_geonn_reader;
RESET client_min_messages;
CREATE SCHEMA lateral_join;
SET search_path = lateral_join, public;

CREATE TABLE obs (id integer PRIMARY KEY, kind integer, lat float8, lon float8, name text);
INSERT INTO obs SELECT i, i % 5, (i * 7919 % 1800) / 10.0 - 90, (i * 104729 % 3600) / 10.0 - 180, 'name of ' || i
FROM generate_series(1, 450) i;
INSERT INTO obs VALUES (0, 1, NULL, 1), (-1, 1, 91, 1), (-2, NULL, 1, NULL), (-3, 2, 'NaN', 1), (-4, 3, 5, 361), (-5, 1, 90, 360);
CREATE TABLE ref (id bigint PRIMARY KEY, kind integer, lat float8, lon float8);
INSERT INTO ref SELECT i, i % 4, (i * 104723 % 1800) / 10.0 - 90, (i * 7907 % 3600) / 10.0 - 180
FROM generate_series(1, 200) i;
CREATE TABLE few (id integer, k integer, number numeric);
INSERT INTO few SELECT i, i, 10 * i FROM generate_series(1, 4) i;
CREATE TABLE nothing (id bigint, lat float8, lon float8);
ANALYZE obs, ref, few;
CREATE TYPE every_column AS (ref_lat float8, bearing float8, ord bigint, rank integer, obs_lon float8, ref_id bigint,
    ref_lon float8, obs_lat float8, distance float8);
CREATE TYPE without_ord AS (ref_id bigint, distance float8);

-- where the node stands
EXPLAIN (COSTS OFF) SELECT o.id, n.ref_id FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n;
EXPLAIN (COSTS OFF) SELECT o.name, n.* FROM obs o LEFT JOIN LATERAL geonn_nearest_points(ARRAY[o.lat + 1], ARRAY[o.lon], 'ref', 3) n ON n.distance < 1e6
WHERE o.kind = 3 AND coalesce(n.distance, 5) = 5;
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ 'geonn' THEN
            RETURN substring(line FROM '(?:Custom|Function) Scan(?: \(geonn [a-z ]*\))?');
        END IF;
    END LOOP;
    RETURN 'none';
END $$;
SELECT plan_of(query), query FROM unnest(ARRAY[
    $$SELECT count(*) FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n$$,
    $$SELECT o FROM obs o CROSS JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n$$,
    $$SELECT * FROM obs o, LATERAL (SELECT ref_id FROM geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') WHERE distance > 5) n$$,
    $$SELECT * FROM few o, LATERAL geonn_nearest_points(ARRAY[o.number], ARRAY[o.k], 'ref') n$$,
    $$SELECT * FROM (SELECT id, lat / 2 AS lat, -lon AS lon FROM obs) o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n$$,
    $$SELECT * FROM (SELECT avg(lat) AS lat, kind FROM obs GROUP BY kind) o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.kind], 'ref') n$$,
    $$SELECT * FROM (VALUES (1, 2), (3, 4)) o (lat, lon), LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n$$,
    $$SELECT * FROM obs o JOIN few f ON f.id = o.kind, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[f.number], 'ref') n$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n JOIN ref r ON r.id = n.ref_id$$,
    $$INSERT INTO few (id) SELECT ref_id FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', row_type => NULL::every_column) n$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', row_type => NULL::record) n (ord bigint)$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', options => (SELECT '{}'::jsonb)) n$$]) query;
-- and where the function is called for each row: it has other arguments there, several points, or more to tell
SELECT plan_of(query), query FROM unnest(ARRAY[
    $$SELECT * FROM few o, LATERAL geonn_nearest_points(ARRAY[o.number], ARRAY[o.number], 'ref', o.k) n$$,
    $$SELECT * FROM few o, LATERAL geonn_nearest_points(ARRAY[1], ARRAY[2], 'ref', o.k) n$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat, 1], ARRAY[o.lon, 2], 'ref') n$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[]::float8[], ARRAY[o.lon], 'ref') n$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat] || 5::float8, ARRAY[o.lon], 'ref') n$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat + random()], ARRAY[o.lon], 'ref') n$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', 1 + (random() * 0)::integer) n$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[(SELECT lat FROM ref WHERE id = o.id)], ARRAY[o.lon], 'ref') n$$,
    $$SELECT n FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') WITH ORDINALITY n$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', row_type => NULL::without_ord) n$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', row_type => NULL::record) n (ref_id bigint)$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_sql(format('SELECT 1 AS id, %s AS lat, %s AS lon', o.lat, o.lon), 'TABLE ref') n$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n FOR UPDATE OF o$$,
    $$UPDATE obs SET kind = ref_id FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n WHERE o.id = obs.id$$]) query;

-- Each query has the same rows where the function is called for each row of its outer side.
CREATE FUNCTION compare(query text, call text DEFAULT $$geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', 2)$$,
                        OUT rows bigint, OUT missing bigint, OUT wrong bigint) LANGUAGE plpgsql AS $$
DECLARE
    by_node text := replace(query, '%s', call);
    by_function text := replace(query, '%s', '(SELECT (f).* FROM (SELECT ' || call || ' AS f OFFSET 0) s)');
    workers text := current_setting('max_parallel_workers_per_gather');
BEGIN
    IF lateral_join.plan_of(by_node) <> 'Custom Scan (geonn lateral join)' THEN
        RAISE 'no node in %', by_node;
    END IF;
    EXECUTE format('CREATE TEMP TABLE by_node AS %s', by_node);
    -- else each call would have workers to read its references
    PERFORM set_config('max_parallel_workers_per_gather', '0', false);
    EXECUTE format('CREATE TEMP TABLE by_function AS %s', by_function);
    PERFORM set_config('max_parallel_workers_per_gather', workers, false);
    SELECT count(*) INTO rows FROM by_node;
    SELECT count(*) INTO missing FROM (SELECT * FROM by_function EXCEPT ALL SELECT * FROM by_node) x;
    SELECT count(*) INTO wrong FROM (SELECT * FROM by_node EXCEPT ALL SELECT * FROM by_function) x;
    DROP TABLE by_node, by_function;
END $$;
CREATE VIEW ref_view AS TABLE ref LIMIT 50;
CREATE FUNCTION for_leader(float8) RETURNS boolean PARALLEL RESTRICTED LANGUAGE plpgsql AS 'BEGIN RETURN $1 > 0; END';
SET client_min_messages = error;
-- whatever is asked of the function
SELECT c.*, side, arguments FROM unnest(ARRAY['JOIN', 'LEFT JOIN']) side, unnest(ARRAY[
    $$k => 1$$, $$k => 5, ties => 'all'$$, $$max_distance => 300000$$, $$max_distance => 0, k => 3$$,
    $$max_distance => 500000, keep_unmatched => true$$, $$k => 200$$, $$metric => 'spheroid', k => 2$$,
    $$options => '{"batch_rows": 7}', k => 3$$, $$options => '{"ref_lat": "lon", "ref_lon": "lat"}', invalid => 'skip'$$]) arguments,
    compare('SELECT * FROM obs o ' || side || ' LATERAL %s n ON true WHERE o.id < 150',
            format('geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], ''ref'', %s, row_type => NULL::every_column)', arguments)) c;
-- whatever stands around it
SELECT c.*, query FROM unnest(ARRAY[
    'SELECT o.id, n.ord FROM obs o, LATERAL %s n',
    'SELECT 1 FROM obs o, LATERAL %s n',
    'SELECT n.distance FROM obs o, LATERAL %s n WHERE n.distance > 400000',
    'SELECT o.id, n.ref_id FROM obs o, LATERAL %s n WHERE n.ref_id = o.id',
    'SELECT o.id, n.ref_id FROM obs o, LATERAL %s n WHERE n.distance > 10000 * o.kind AND o.id % 3 = 0 OR n.ref_id < 10',
    'SELECT * FROM obs o LEFT JOIN LATERAL %s n ON n.distance < 500000',
    'SELECT * FROM obs o LEFT JOIN LATERAL %s n ON n.distance < 100000 * o.kind',
    'SELECT * FROM obs o LEFT JOIN LATERAL %s n ON o.kind = 2',
    'SELECT * FROM obs o LEFT JOIN LATERAL %s n ON n.distance < 500000 WHERE n.ref_id IS NULL',
    'SELECT * FROM obs o LEFT JOIN LATERAL %s n ON n.distance < 500000 WHERE n.ref_id IS NULL OR o.id < n.ref_id',
    'SELECT o.id, n.* FROM obs o LEFT JOIN LATERAL %s n ON true WHERE n.ref_id IS NULL',
    'SELECT o.id FROM obs o LEFT JOIN LATERAL %s n ON n.distance < 100000 * o.kind WHERE n.ref_id IS NULL AND o.id > 7 AND n.distance IS NULL',
    'SELECT * FROM obs o LEFT JOIN LATERAL %s n ON true WHERE coalesce(n.distance, 9e9) > 500000',
    'SELECT o.id, r.lat FROM obs o, LATERAL %s n JOIN ref r ON r.id = n.ref_id',
    'SELECT o.id, n.ref_id, r.kind FROM obs o LEFT JOIN LATERAL %s n ON true LEFT JOIN ref r ON r.id = n.ref_id AND r.kind = 1',
    'SELECT o.id, f.id AS f, n.ref_id FROM obs o JOIN few f ON f.id = o.kind, LATERAL %s n WHERE n.distance < 100000 * f.k',
    'SELECT o.id, f.id AS f, n.ref_id FROM few f LEFT JOIN obs o ON f.id = o.kind AND o.id < 500 LEFT JOIN LATERAL %s n ON true',
    'SELECT o.kind, count(*), sum(n.ref_id) FROM obs o, LATERAL %s n GROUP BY o.kind',
    'SELECT * FROM (SELECT id, -lat AS lat, lon FROM obs) o, LATERAL %s n',
    'SELECT * FROM (SELECT kind, avg(lat) AS lat, 7 AS lon FROM obs WHERE id > 0 GROUP BY kind) o, LATERAL %s n',
    'SELECT * FROM (SELECT DISTINCT ON (kind) * FROM obs ORDER BY kind, id) o, LATERAL %s n',
    'SELECT f.id, (SELECT sum(n.ref_id) FROM obs o, LATERAL %s n WHERE o.kind = f.id AND n.distance > 100 * f.k) FROM few f',
    'SELECT o, o.ctid AS place, o.tableoid AS t, n.ref_id FROM obs o, LATERAL %s n WHERE o.id < 10',
    'SELECT o.id, n.ref_id FROM obs o, LATERAL %s n WHERE o.id < 9 UNION ALL SELECT o.id, n.ref_id FROM obs o, LATERAL %s n WHERE o.id = 77',
    'SELECT * FROM (SELECT o.id, n.ref_id FROM obs o, LATERAL %s n ORDER BY n.distance, 1, 2 LIMIT 50 OFFSET 20) q',
    'SELECT o.id FROM obs o, LATERAL %s n WHERE o.id < 0',
    'SELECT o.id FROM nothing o LEFT JOIN LATERAL %s n ON true']) query, compare(query) c;
SELECT c.* FROM compare('SELECT * FROM obs o, LATERAL %s n', $$geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'nothing')$$) c;
SELECT c.* FROM compare('SELECT * FROM obs o LEFT JOIN LATERAL %s n ON true', $$geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'nothing')$$) c;
SELECT c.* FROM compare('SELECT * FROM obs o, LATERAL %s n', $$geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'nothing', keep_unmatched => true)$$) c;
-- rows of other queries' rows: rescans, with arguments that change
SELECT c.* FROM compare('SELECT f.id, m.* FROM few f, LATERAL (SELECT o.id AS o, n.ref_id FROM obs o LEFT JOIN LATERAL %s n ON true WHERE o.kind = f.id OFFSET 0) m',
    $$geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', f.k)$$) c;
-- few rows at a time, of which each is large
SET work_mem = '64kB';
SELECT c.* FROM compare('SELECT * FROM (SELECT id, lat, lon, repeat(name, 300) AS name FROM obs) o LEFT JOIN LATERAL %s n ON true') c;
RESET work_mem;
-- below a Gather each process searches for a part of the outer rows
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT o.id, n.ref_id FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n WHERE o.id % 3 = 1;
CREATE FUNCTION is_parallel(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    line text;
    gathers boolean := false;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        gathers := gathers OR line ~ '  Gather|^Gather';
        IF gathers AND line ~ 'Parallel Custom Scan \(geonn lateral join\)' THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END $$;
SELECT c.*, is_parallel(replace(query, '%s', $$geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', 2)$$)), query FROM unnest(ARRAY[
    'SELECT o.id, n.* FROM obs o, LATERAL %s n WHERE o.id % 3 = 1',
    'SELECT o.id, n.* FROM obs o LEFT JOIN LATERAL %s n ON n.distance < 100000 * o.kind',
    'SELECT o.id FROM obs o LEFT JOIN LATERAL %s n ON n.distance < 500000 WHERE n.ref_id IS NULL',
    'SELECT o.kind, count(*), sum(n.ref_id) FROM obs o, LATERAL %s n GROUP BY o.kind',
    'SELECT o.id, f.k, n.ref_id FROM obs o JOIN few f ON f.id = o.kind, LATERAL %s n',
    'SELECT o.id, r.kind FROM obs o, LATERAL %s n JOIN ref r ON r.id = n.ref_id',
    'SELECT o.id, n.ref_id FROM obs o, LATERAL %s n WHERE o.id < 0']) query, compare(query) c;
SET parallel_leader_participation = off;
SELECT c.* FROM compare('SELECT o.id, n.* FROM obs o LEFT JOIN LATERAL %s n ON n.distance < 100000 * o.kind') c;
RESET parallel_leader_participation;
-- not where workers cannot do all of it
SELECT is_parallel(query), query FROM unnest(ARRAY[
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref_view') n$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n WHERE for_leader(n.distance)$$,
    $$SELECT * FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[for_leader(o.lat)::integer], 'ref') n$$,
    $$SELECT for_leader(n.distance) FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n$$]) query;
-- in an order that PostgreSQL merges
SET min_parallel_index_scan_size = 0;
SET enable_sort = off;
SELECT is_parallel($$SELECT o.id, n.ref_id FROM obs o LEFT JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', 2) n ON true WHERE sqrt(o.id * o.id + o.kind * o.kind) >= 0 AND o.kind < 7 ORDER BY o.id$$);
SELECT c.*, (SELECT count(*) FROM (SELECT id, lag(id) OVER () AS before FROM (
    SELECT o.id, n.ref_id FROM obs o LEFT JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', 2) n ON true
    WHERE sqrt(o.id * o.id + o.kind * o.kind) >= 0 AND o.kind < 7 ORDER BY o.id OFFSET 0) q) q WHERE id < before) AS out_of_order
FROM compare('SELECT o.id, n.* FROM obs o LEFT JOIN LATERAL %s n ON n.distance < 400000 WHERE sqrt(o.id * o.id + o.kind * o.kind) >= 0 AND o.kind < 7 ORDER BY o.id') c;
RESET enable_sort;
RESET min_parallel_index_scan_size;
-- again and again, and without the workers that were planned
SET enable_material = off;
CREATE TEMP TABLE again AS
SELECT f.id, q.* FROM few f LEFT JOIN (
    SELECT count(*) AS rows, sum(n.ref_id) AS sum, max(n.distance) AS most
    FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', 2) n) q ON true;
SELECT count(*), count(DISTINCT (rows, sum, most)) AS different, max(rows) AS rows FROM again;
RESET enable_material;
SET max_parallel_workers = 0;
SELECT c.* FROM compare('SELECT o.id, n.* FROM obs o LEFT JOIN LATERAL %s n ON n.distance < 100000 * o.kind') c;
RESET max_parallel_workers;
-- relations that come with parameters
SET plan_cache_mode = force_generic_plan;
PREPARE shared (regclass, integer) AS
SELECT count(*), count(DISTINCT n.ref_id) FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], $1, $2) n;
SELECT is_parallel($$EXECUTE shared ('ref', 2)$$);
EXECUTE shared ('ref', 2);
EXECUTE shared ('nothing', 2);
EXECUTE shared ('ref_view', 1);
RESET plan_cache_mode;
RESET client_min_messages;
-- one warning for the points of all processes, and the errors of each
SELECT count(*) FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n;
SET parallel_leader_participation = off;
SELECT count(*) FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n;
\set SHOW_CONTEXT never
SELECT count(*) FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', invalid => 'error') n;
SELECT count(*) FROM obs o, LATERAL geonn_nearest_points(ARRAY[100 / (o.id - o.id)], ARRAY[o.lon], 'ref') n WHERE o.id > 0;
SELECT count(*) FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', k => 0) n;
\set SHOW_CONTEXT errors
RESET parallel_leader_participation;
-- a LIMIT ends all of it, without a word of points that were not asked for
SELECT count(*) FROM (SELECT o.id FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n LIMIT 5) q;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;

-- plain SQL defines the result
SELECT count(*) FROM (
    (SELECT o.id, n.ord, n.ref_id, n.distance FROM obs o LEFT JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', 3, max_distance => 400000) n ON true
     WHERE o.id > 0
     EXCEPT ALL
     SELECT o.id, r.ord, r.id, r.distance FROM obs o LEFT JOIN LATERAL (
        SELECT 1 AS ord, r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance FROM ref r
        WHERE geonn_distance(o.lat, o.lon, r.lat, r.lon) <= 400000 ORDER BY distance, r.id LIMIT 3) r ON true
     WHERE o.id > 0)) x;

-- the references are read once
CREATE SEQUENCE read;
CREATE VIEW counting AS SELECT id, lat, lon FROM ref WHERE nextval('read') > 0;
SELECT count(*) FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'counting') n WHERE o.id > 0;
SELECT last_value FROM read;
-- and a LIMIT ends the reading of the outer rows
CREATE VIEW counting_obs AS SELECT id, lat, lon FROM obs WHERE id > 0 AND nextval('read') > 0;
SELECT setval('read', 1);
SELECT count(*) FROM (SELECT * FROM counting_obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n LIMIT 5) q;
SELECT last_value < 100 AS few FROM read;
-- in the order of an index, too, with rows that have no neighbour in their places
EXPLAIN (COSTS OFF) SELECT * FROM obs o LEFT JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n ON true ORDER BY o.id LIMIT 5;
SET client_min_messages = error;
SET enable_sort = off;
SELECT o.id, n.ref_id FROM obs o LEFT JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', 2, max_distance => 1e6) n ON n.ref_id > 20 ORDER BY o.id LIMIT 12;
SELECT count(*), count(*) FILTER (WHERE id < before) AS out_of_order, count(*) FILTER (WHERE ref_id IS NULL) AS unmatched FROM (
    SELECT id, lag(id) OVER () AS before, ref_id FROM (
        SELECT o.id, n.ref_id FROM obs o LEFT JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', 2, options => '{"batch_rows": 7}') n ON n.distance < 500000
        ORDER BY o.id OFFSET 0) q) q;
SELECT c.* FROM compare('SELECT * FROM (SELECT o.id, n.* FROM obs o LEFT JOIN LATERAL %s n ON n.distance < 400000 ORDER BY o.id) q') c;
SELECT c.* FROM compare('SELECT * FROM (SELECT o.id, n.* FROM obs o LEFT JOIN LATERAL %s n ON n.distance < 400000 WHERE n.ref_id IS NULL ORDER BY o.id) q') c;
SELECT c.* FROM compare('SELECT o.id, n.ref_id FROM (SELECT * FROM obs ORDER BY id DESC) o, LATERAL %s n ORDER BY o.id DESC') c;
RESET enable_sort;
RESET client_min_messages;

-- points that are none: one warning for all, the function's error, and the rows in front of it
SELECT count(*) FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n;
SELECT count(*) FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', keep_unmatched => true) n;
CREATE VIEW last_is_wrong AS SELECT 1 AS id, 1 AS lat, 2 AS lon UNION ALL SELECT 2, NULL, 2 UNION ALL SELECT 3, 5, 5 UNION ALL SELECT 4, 90.5, 0;
SELECT count(*) FROM last_is_wrong o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', invalid => 'error') n;
SELECT count(*) FROM last_is_wrong o, LATERAL (SELECT geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', invalid => 'error') OFFSET 0) n;
SELECT o.id, n.ref_id FROM last_is_wrong o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', invalid => 'error') n LIMIT 2;
SELECT id FROM last_is_wrong o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', invalid => 'error') n WHERE id < 4 ORDER BY 1;

-- without rows nothing is read: neither arguments nor references
SELECT * FROM nothing o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', k => 0) n;
SELECT * FROM few o, LATERAL geonn_nearest_points(ARRAY[o.number], ARRAY[o.number], 'ref', k => 0) n;
SELECT * FROM few o, LATERAL geonn_nearest_points(ARRAY[o.number], ARRAY[o.number], NULL) n;

-- parameters, with custom and generic plans
PREPARE near_kind (integer, float8, regclass) AS
SELECT o.id, n.ref_id FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat + $2], ARRAY[o.lon], $3, k => $1) n
WHERE o.id <= $1 ORDER BY 1, 2;
EXECUTE near_kind (2, 0, 'ref');
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE near_kind (2, 0, 'ref');
EXECUTE near_kind (2, 0, 'ref');
EXECUTE near_kind (1, 0, 'nothing');
RESET plan_cache_mode;

-- cursors: some rows now, some later, all from the cursor's own snapshot
BEGIN;
DECLARE a_few CURSOR FOR SELECT row_number() OVER () FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', 2) n WHERE o.id > 0;
FETCH 2 FROM a_few;
DELETE FROM ref;
INSERT INTO obs VALUES (4000, 4, 1, 1);
SAVEPOINT before;
FETCH 2 FROM a_few;
ROLLBACK TO before;
MOVE FORWARD 300 FROM a_few;
SAVEPOINT again;
MOVE FORWARD 400 FROM a_few;
ROLLBACK TO again;
MOVE FORWARD 194 FROM a_few;
FETCH ALL FROM a_few;
CLOSE a_few;
ROLLBACK;
-- one whose first row is taken after a savepoint, which is then undone
BEGIN;
DECLARE early CURSOR FOR SELECT row_number() OVER () FROM obs o LEFT JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n ON true WHERE o.id > 0;
SAVEPOINT undone;
INSERT INTO ref VALUES (9000, 1, 1, 1);
FETCH 1 FROM early;
ROLLBACK TO undone;
MOVE FORWARD 447 FROM early;
FETCH ALL FROM early;
DECLARE back SCROLL CURSOR FOR SELECT o.id FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n WHERE o.id BETWEEN 5 AND 7 ORDER BY 1;
FETCH LAST FROM back;
FETCH FIRST FROM back;
ROLLBACK;

-- figures
CREATE FUNCTION figures(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        IF line ~ 'Observations|References (Read|Skipped)|Custom Scan|Removed|Seq Scan|Join Type' THEN
            RETURN NEXT regexp_replace(line, ' \(actual .*', '');
        END IF;
    END LOOP;
END $$;
SET client_min_messages = error;
SELECT figures($$SELECT * FROM obs o LEFT JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n ON true WHERE n.distance IS NULL OR n.distance < 10000$$);
RESET client_min_messages;

-- privileges and EXECUTE are the function's; policies and barriers hold
CREATE ROLE regress_geonn_reader;
GRANT USAGE ON SCHEMA lateral_join TO regress_geonn_reader;
GRANT SELECT ON obs, nothing, few TO regress_geonn_reader;
SET ROLE regress_geonn_reader;
SELECT count(*) FROM few o, LATERAL geonn_nearest_points(ARRAY[o.number], ARRAY[o.number], 'ref') n;
SELECT count(*) FROM nothing o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n;
RESET ROLE;
GRANT SELECT (id, lat, lon) ON ref TO regress_geonn_reader;
SET ROLE regress_geonn_reader;
SELECT count(*) FROM few o, LATERAL geonn_nearest_points(ARRAY[o.number], ARRAY[o.number], 'ref') n;
RESET ROLE;
BEGIN;
REVOKE EXECUTE ON FUNCTION geonn_nearest_points FROM PUBLIC;
SET LOCAL ROLE regress_geonn_reader;
SELECT count(*) FROM nothing o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n;
ROLLBACK;
ALTER TABLE obs ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_kind ON obs TO regress_geonn_reader USING (kind = 3);
CREATE FUNCTION tell(name text, distance float8) RETURNS boolean COST 0.0001 LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% has a neighbour', name;
    RETURN true;
END $$;
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM obs WHERE kind = 2;
GRANT SELECT ON barrier TO regress_geonn_reader;
SET ROLE regress_geonn_reader;
SELECT plan_of($$SELECT 1 FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n$$);
SELECT o.kind, count(*) FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n WHERE o.id > 0 GROUP BY 1;
SELECT o.id FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n WHERE o.id BETWEEN 1 AND 9 AND tell(o.name, n.distance) ORDER BY 1;
SELECT o.id FROM barrier o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n WHERE o.id BETWEEN 1 AND 9 AND tell(o.name, n.distance) ORDER BY 1;
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA lateral_join CASCADE;
DROP ROLE regress_geonn_reader;
