-- the plan node of joins in FROM: the function's rows, as they come
-- rooms: plan
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA scan;
SET search_path = scan, public;

CREATE TABLE obs (id integer PRIMARY KEY, kind text, lat float8, lon float8);
INSERT INTO obs SELECT i, 'kind ' || i % 3, (i * 7919 % 1800) / 10.0 - 90, (i * 104729 % 3600) / 10.0 - 180
FROM generate_series(1, 3000) i;
INSERT INTO obs VALUES (0, 'kind 1', NULL, 1), (-1, 'kind 1', 91, 1), (-2, NULL, 1, 1);
CREATE TABLE ref (id text PRIMARY KEY, kind text, lat float8, lon float8);
INSERT INTO ref SELECT 'ref ' || i, 'kind ' || i % 4, (i * 104723 % 1800) / 10.0 - 90, (i * 7907 % 3600) / 10.0 - 180
FROM generate_series(1, 200) i;
ANALYZE obs, ref;
CREATE TYPE pair AS (obs_id integer, ref_id text, distance float8, rank integer, obs_lat float8, obs_lon float8,
    ref_lat float8, ref_lon float8, bearing float8);

-- where the node stands
EXPLAIN (COSTS OFF) SELECT * FROM geonn_nearest('obs', 'ref', row_type => NULL::pair);
EXPLAIN (COSTS OFF) SELECT count(*) FROM geonn_within('obs', 'ref', 1000, row_type => NULL::pair) WHERE distance > 7;
EXPLAIN (COSTS OFF) SELECT * FROM geonn_nearest_sql('SELECT 1 AS id, 2 AS lat, 3 AS lon', 'TABLE obs');
-- and where the function's scan does: a whole row is wanted, or rows that may be
-- checked anew, ordinality, several functions, type record, arguments of another
-- table
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ 'geonn' THEN
            RETURN substring(line FROM '(Custom|Function) Scan');
        END IF;
    END LOOP;
    RETURN 'none';
END $$;
SELECT plan_of(query), query FROM unnest(ARRAY[
    $$SELECT ref_id FROM geonn_nearest('obs', 'ref', row_type => NULL::pair)$$,
    $$SELECT ord FROM geonn_nearest_points('{1}', '{2}', 'obs')$$,
    $$SELECT n FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) n$$,
    $$SELECT * FROM obs JOIN geonn_nearest('obs', 'ref', row_type => NULL::pair) ON obs_id = id FOR UPDATE$$,
    $$UPDATE obs SET kind = ref_id FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) n WHERE n.obs_id = obs.id$$,
    $$DELETE FROM obs USING geonn_nearest('obs', 'ref', row_type => NULL::pair) n WHERE n.obs_id = obs.id$$,
    $$INSERT INTO obs (id) SELECT obs_id + 9000 FROM geonn_nearest('obs', 'ref', row_type => NULL::pair)$$,
    $$SELECT * FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) WITH ORDINALITY$$,
    $$SELECT * FROM ROWS FROM (geonn_nearest('obs', 'ref', row_type => NULL::pair), generate_series(1, 3))$$,
    $$SELECT * FROM geonn_nearest('obs', 'ref', row_type => NULL::record) n (obs_id integer)$$,
    $$SELECT * FROM ROWS FROM (geonn_nearest('obs', 'ref', row_type => NULL::record) AS (obs_id integer)) n$$,
    $$SELECT n FROM geonn_nearest('obs', 'ref', row_type => NULL::record) n (obs_id integer)$$,
    $$SELECT * FROM ROWS FROM (geonn_nearest('obs', 'ref', row_type => NULL::record) AS (obs_id integer)) WITH ORDINALITY$$,
    $$SELECT * FROM ROWS FROM (geonn_nearest('obs', 'ref', row_type => NULL::record) AS (obs_id integer), generate_series(1, 3))$$,
    $$SELECT * FROM (VALUES ('obs'::regclass), ('ref')) t (obs), LATERAL geonn_nearest(t.obs, 'obs', row_type => NULL::pair) n$$,
    $$SELECT obs_id FROM geonn_nearest((SELECT 'obs'::regclass OFFSET 0), 'ref', row_type => NULL::pair) n$$,
    $$SELECT geonn_nearest('obs', 'ref', row_type => NULL::pair)$$]) query;

-- the same rows as the function's, whatever is asked
CREATE FUNCTION compare(call text, columns text DEFAULT '*', OUT rows bigint, OUT missing bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TEMP TABLE by_node AS SELECT %s FROM %s', columns, call);
    EXECUTE format('CREATE TEMP TABLE by_function AS SELECT %s FROM (SELECT (f).* FROM (SELECT %s AS f OFFSET 0) s) t', columns, call);
    SELECT count(*) INTO rows FROM by_node;
    SELECT count(*) INTO missing FROM (SELECT * FROM by_function EXCEPT ALL SELECT * FROM by_node) x;
    SELECT count(*) INTO wrong FROM (SELECT * FROM by_node EXCEPT ALL SELECT * FROM by_function) x;
    DROP TABLE by_node, by_function;
END $$;
SET client_min_messages = error;
SELECT arguments, c.* FROM unnest(ARRAY[
    $$k => 1$$, $$k => 5, ties => 'all'$$, $$k => 3, by => '{kind}'$$, $$max_distance => 100000$$,
    $$max_distance => 100000, keep_unmatched => true$$, $$by => '{kind}', keep_unmatched => true, k => 2$$,
    $$metric => 'spheroid'$$, $$k => 1024$$,
    $$options => '{"batch_rows": 1}', keep_unmatched => true, max_distance => 300000$$,
    $$options => '{"batch_rows": 7}', k => 30$$]) arguments,
    compare(format('geonn_nearest(''obs'', ''ref'', %s, row_type => NULL::pair)', arguments)) c;
SELECT columns, c.* FROM unnest(ARRAY['rank', 'bearing, distance', 'ref_id', 'ref_lat, obs_id', 'NULL AS nothing',
    'distance, obs_lat AS a, obs_lat AS b']) columns,
    compare('geonn_nearest(''obs'', ''ref'', k => 2, keep_unmatched => true, row_type => NULL::pair)', columns) c;
SELECT c.* FROM unnest(ARRAY[
    $$geonn_within('obs', 'ref', 3000000, keep_unmatched => true, options => '{"batch_rows": 3}', row_type => NULL::pair)$$,
    $$geonn_within('obs', 'obs', 500000, exclude_self => true)$$,
    $$geonn_nearest_sql('SELECT id, lat, lon FROM obs WHERE id > 2000', 'TABLE ref', k => 2, row_type => NULL::pair)$$,
    $$geonn_nearest_points('{1,2,NULL,91}', '{3,4,5,6}', 'obs', k => 2, keep_unmatched => true)$$,
    $$geonn_nearest('obs', 'obs', k => 2)$$]) call, compare(call) c;
RESET client_min_messages;
SELECT count(*), count(DISTINCT obs_id), sum(rank) FROM geonn_nearest('obs', 'ref', k => 3, row_type => NULL::pair);

-- a LIMIT ends the reading of observations
CREATE SEQUENCE read;
CREATE VIEW counting AS SELECT id, lat, lon FROM obs WHERE id > 0 AND nextval('read') > 0;
SELECT count(*) FROM (SELECT * FROM geonn_nearest('counting', 'obs', options => '{"batch_rows": 10}') LIMIT 5) n;
SELECT nextval('read') < 1000 AS not_all;
SELECT EXISTS (SELECT FROM geonn_nearest('obs', 'ref', row_type => NULL::pair));

-- cursors: some rows now, some later, all from the cursor's own snapshot
BEGIN;
DECLARE a_few CURSOR FOR SELECT rank FROM geonn_nearest_sql('SELECT * FROM obs WHERE id > 0', 'TABLE ref', k => 2, options => '{"batch_rows": 16}', row_type => NULL::pair);
FETCH 2 FROM a_few;
DELETE FROM ref;
INSERT INTO obs VALUES (4000, 'new', 1, 1);
SAVEPOINT before;
FETCH 2 FROM a_few;
ROLLBACK TO before;
MOVE FORWARD ALL FROM a_few;
CLOSE a_few;
DECLARE back SCROLL CURSOR FOR SELECT count(*) OVER () FROM geonn_nearest_sql('SELECT * FROM obs WHERE id > 0', 'SELECT * FROM obs WHERE id > 0');
FETCH 1 FROM back;
FETCH LAST FROM back;
FETCH FIRST FROM back;
ROLLBACK;
BEGIN;
DECLARE kept CURSOR WITH HOLD FOR SELECT obs_id FROM geonn_nearest_sql('SELECT * FROM obs WHERE id > 0', 'TABLE ref', row_type => NULL::pair) WHERE obs_id < 3 ORDER BY 1;
COMMIT;
FETCH ALL FROM kept;
CLOSE kept;
-- one whose first row is taken after a savepoint, whose index it reads, and which is
-- then undone
CREATE TABLE plain AS SELECT id, lat, lon FROM obs WHERE id > 0;
BEGIN;
DECLARE early CURSOR FOR SELECT obs_id IS NOT NULL AS found FROM geonn_nearest('plain', 'plain', options => '{"batch_rows": 16}');
SAVEPOINT undone;
CREATE INDEX plain_all ON plain (id, lat, lon);
SET LOCAL enable_seqscan = off;
SET LOCAL enable_sort = off;
FETCH 1 FROM early;
ROLLBACK TO undone;
FETCH 1 FROM early;
MOVE FORWARD ALL FROM early;
COMMIT;
-- one that is left open holds a session of the engine until it is closed
BEGIN;
DECLARE left_open CURSOR FOR SELECT * FROM geonn_nearest('obs', 'ref', row_type => NULL::pair);
MOVE 1 FROM left_open;
SELECT sessions > 0 AS at_work FROM geonn_status();
ROLLBACK;

-- rescans: an inner side that is read anew for each outer row
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET client_min_messages = error;
EXPLAIN (COSTS OFF) SELECT count(*) FROM generate_series(1, 3) g LEFT JOIN geonn_nearest('obs', 'ref', row_type => NULL::pair) n ON n.obs_id > g + 0 * n.distance;
SELECT g, count(n.obs_id), max(n.obs_id) FROM generate_series(1, 3) g LEFT JOIN geonn_nearest('obs', 'ref', row_type => NULL::pair) n ON n.obs_id > g + 0 * n.distance GROUP BY g ORDER BY g;
SELECT g, (SELECT count(*) FROM geonn_nearest('obs', 'ref', k => g, row_type => NULL::pair)) FROM generate_series(1, 3) g;
SELECT count(*) FROM geonn_nearest((SELECT 'obs'::regclass OFFSET 0), 'ref', row_type => NULL::pair) n;
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- parameters, also in generic plans; plans are made anew when something changes
PREPARE nearest (regclass, integer) AS SELECT count(*) FROM geonn_nearest($1, 'ref', k => $2, row_type => NULL::pair);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE nearest ('obs', 2);
EXECUTE nearest ('obs', 2);
EXECUTE nearest ('obs', NULL);
ALTER TABLE obs RENAME lat TO latitude;
EXECUTE nearest ('obs', 1);
ALTER TABLE obs RENAME latitude TO lat;
CREATE TYPE changing AS (rank bigint, distance double precision);
PREPARE changed AS SELECT max(rank) FROM geonn_nearest('obs', 'ref', row_type => NULL::changing);
EXECUTE changed;
ALTER TYPE changing ADD ATTRIBUTE obs_lat double precision, DROP ATTRIBUTE distance;
EXECUTE changed;
ALTER TYPE changing ALTER ATTRIBUTE rank TYPE integer;
EXECUTE changed;
ALTER TYPE changing DROP ATTRIBUTE rank;
EXECUTE changed;
RESET plan_cache_mode;
CREATE ROLE regress_geonn_scan;
GRANT USAGE ON SCHEMA scan TO regress_geonn_scan;
GRANT SELECT ON obs TO regress_geonn_scan;
SET ROLE regress_geonn_scan;
SELECT count(*) FROM geonn_nearest('obs', 'obs');
SELECT count(*) FROM geonn_nearest('obs', 'ref', row_type => NULL::pair);
RESET ROLE;
REVOKE EXECUTE ON FUNCTION geonn_nearest FROM PUBLIC;
SET ROLE regress_geonn_scan;
SELECT count(*) FROM geonn_nearest('obs', 'obs');
RESET ROLE;
GRANT EXECUTE ON FUNCTION geonn_nearest TO PUBLIC;

SET client_min_messages = warning;
DROP SCHEMA scan CASCADE;
DROP ROLE regress_geonn_scan;
