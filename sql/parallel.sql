-- parallel plans: several processes divide the observations, and give the same rows
-- rooms: plan client
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA parallel;
SET search_path = parallel, public;
-- which process an error or a warning comes from is chance
\set SHOW_CONTEXT never

CREATE TABLE obs (id integer PRIMARY KEY, kind text, lat float8, lon float8);
INSERT INTO obs SELECT i, 'kind ' || i % 3, (i * 7919 % 1800) / 10.0 - 90, (i * 104729 % 3600) / 10.0 - 180
FROM generate_series(1, 3000) i;
INSERT INTO obs VALUES (0, 'kind 1', NULL, 1), (-1, 'kind 1', 91, 1), (-2, NULL, 1, 1), (-3, 'kind 0', 1, 'NaN');
CREATE TABLE ref (id text PRIMARY KEY, kind text, lat float8, lon float8);
INSERT INTO ref SELECT 'ref ' || i, 'kind ' || i % 4, (i * 104723 % 1800) / 10.0 - 90, (i * 7907 % 3600) / 10.0 - 180
FROM generate_series(1, 200) i;
CREATE TYPE pair AS (obs_id integer, ref_id text, distance float8, rank integer, obs_lat float8, obs_lon float8,
    ref_lat float8, ref_lon float8, bearing float8);
CREATE MATERIALIZED VIEW kept AS SELECT id, lat, lon FROM obs WHERE id > 0;
CREATE TABLE parts (id bigint, kind text, lat float8, lon float8) PARTITION BY HASH (id);
CREATE TABLE part_0 (lon float8, gone text, lat float8, kind text, id bigint);
ALTER TABLE part_0 DROP COLUMN gone;
ALTER TABLE parts ATTACH PARTITION part_0 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE part_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parts SELECT * FROM obs;
CREATE TABLE uuids AS SELECT md5(id::text)::uuid AS id, kind, lat, lon FROM obs WHERE id > 0;
CREATE TABLE parent (id integer, lat float8, lon float8);
CREATE TABLE child (extra text) INHERITS (parent);
INSERT INTO parent SELECT id, lat, lon FROM obs WHERE id % 2 = 0;
INSERT INTO child SELECT id, lat, lon, kind FROM obs WHERE id % 2 = 1;
CREATE VIEW seen AS SELECT id, lat, lon FROM obs;
CREATE TABLE policed AS SELECT id, lat, lon FROM obs WHERE id > 0;
CREATE TABLE alone AS SELECT id, lat, lon FROM obs WHERE id > 0;
ALTER TABLE alone SET (parallel_workers = 0);
CREATE TABLE empty (id integer, kind text, lat float8, lon float8);
CREATE TEMP TABLE temporary AS SELECT id, lat, lon FROM obs WHERE id BETWEEN 1 AND 100;
ANALYZE;

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET jit = off;

-- what can stand above
EXPLAIN (COSTS OFF) SELECT count(*), sum(distance) FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) WHERE rank = 1;
EXPLAIN (COSTS OFF) SELECT obs_id, ref_id FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) ORDER BY obs_id;
EXPLAIN (COSTS OFF) SELECT count(*), sum(distance) FROM geonn_nearest('obs', 'ref', row_type => NULL::record) AS n (obs_id integer, ref_id text, distance float8);
EXPLAIN (COSTS OFF) CREATE TABLE copied AS SELECT * FROM geonn_nearest('obs', 'ref', row_type => NULL::pair);
SET enable_nestloop = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) n JOIN obs o ON o.id + 0 = obs_id;
RESET enable_nestloop;
RESET enable_mergejoin;

-- where there is a parallel node, and where there is none
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ 'Scan.*geonn' THEN
            RETURN substring(line FROM '(?:Parallel )?(?:Custom|Function) Scan');
        END IF;
    END LOOP;
    RETURN 'none';
END $$;

-- a condition on a value of the outer query alone is the leader's, as workers do not know the value
SELECT plan_of($$ SELECT word, (SELECT count(*) FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) WHERE word LIKE 'a%')
FROM (VALUES ('a word'), ('the next')) words (word) $$);
SELECT word, (SELECT count(*) FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) WHERE word LIKE 'a%')
FROM (VALUES ('a word'), ('the next')) words (word);

CREATE FUNCTION is_unsafe(distance float8) RETURNS boolean LANGUAGE plpgsql PARALLEL UNSAFE AS 'BEGIN RETURN true; END';
CREATE FUNCTION is_restricted(distance float8) RETURNS boolean LANGUAGE plpgsql PARALLEL RESTRICTED AS 'BEGIN RETURN true; END';
CREATE FUNCTION one_or_two() RETURNS integer LANGUAGE sql VOLATILE PARALLEL SAFE AS
    'SELECT 1 + extract(microsecond FROM clock_timestamp())::integer % 2';
SELECT plan_of(query), query FROM unnest(ARRAY[
    $$SELECT * FROM geonn_nearest('kept', 'obs')$$,
    $$SELECT * FROM geonn_nearest('obs', 'kept')$$,
    $$SELECT * FROM geonn_nearest('parts', 'parts')$$,
    $$SELECT * FROM geonn_nearest('parent', 'obs')$$,
    $$SELECT * FROM geonn_nearest('obs', 'parent')$$,
    $$SELECT * FROM geonn_nearest('obs', 'temporary')$$,
    $$SELECT * FROM geonn_within('obs', 'obs', 1000)$$,
    $$SELECT * FROM geonn_nearest('obs', 'ref', by => '{kind}', keep_unmatched => true, row_type => NULL::pair)$$,
    $$SELECT * FROM geonn_nearest('obs', 'obs', exclude_self => true)$$,
    $$SELECT * FROM geonn_nearest('empty', 'obs')$$,
    $$SELECT * FROM geonn_nearest('obs', 'empty')$$,
    $$SELECT max(obs_id) OVER () FROM geonn_nearest('obs', 'obs')$$,
    $$SELECT * FROM geonn_nearest('obs', 'obs') LIMIT 3$$,
    $$SELECT obs_id FROM geonn_nearest('obs', 'obs') UNION SELECT 1$$,
    $$SELECT * FROM geonn_nearest('obs', 'obs', k => (SELECT 2))$$,
    $$SELECT * FROM geonn_nearest('temporary', 'obs')$$,
    $$SELECT * FROM geonn_nearest('seen', 'obs')$$,
    $$SELECT * FROM geonn_nearest('obs', 'seen')$$,
    $$SELECT * FROM geonn_nearest('alone', 'obs')$$,
    $$SELECT * FROM geonn_nearest_sql('TABLE obs', 'TABLE obs')$$,
    $$SELECT * FROM geonn_nearest_points('{1}', '{2}', 'obs')$$,
    $$SELECT * FROM geonn_nearest('obs', 'obs') WHERE is_unsafe(distance)$$,
    $$SELECT * FROM geonn_nearest('obs', 'obs') WHERE is_restricted(distance)$$,
    $$SELECT *, is_unsafe(distance) FROM geonn_nearest('obs', 'obs')$$,
    $$SELECT * FROM geonn_nearest('obs', 'obs', k => one_or_two())$$,
    $$SELECT (SELECT count(*) FROM geonn_nearest('obs', 'obs', k => g)) FROM generate_series(1, 3) g$$,
    $$SELECT * FROM generate_series(1, 3) g, LATERAL geonn_nearest('obs', 'obs', k => g)$$,
    $$INSERT INTO empty (id) SELECT obs_id FROM geonn_nearest('obs', 'obs')$$,
    $$DECLARE c CURSOR FOR SELECT * FROM geonn_nearest('obs', 'obs')$$,
    $$SELECT * FROM obs JOIN geonn_nearest('obs', 'obs') ON obs_id = id FOR UPDATE OF obs$$]) query;

-- a policy is the executor's; for whom there is one depends on the role, also in
-- generic plans
CREATE ROLE regress_geonn_parallel;
GRANT USAGE ON SCHEMA parallel TO regress_geonn_parallel;
GRANT SELECT ON obs, ref, policed TO regress_geonn_parallel;
CREATE POLICY few ON policed USING (id <= 10);
ALTER TABLE policed ENABLE ROW LEVEL SECURITY;
SET plan_cache_mode = force_generic_plan;
PREPARE of_policed AS SELECT count(*) FROM geonn_nearest('policed', 'obs');
PREPARE by_policed AS SELECT max(ref_id) FROM geonn_nearest('obs', 'policed');
SET client_min_messages = error;
SELECT plan_of('EXECUTE of_policed'), plan_of('EXECUTE by_policed');
EXECUTE of_policed;
EXECUTE by_policed;
SET ROLE regress_geonn_parallel;
SELECT plan_of('EXECUTE of_policed'), plan_of('EXECUTE by_policed');
EXECUTE of_policed;
EXECUTE by_policed;
RESET ROLE;
RESET plan_cache_mode;
-- the workers are the leader's user
REVOKE SELECT ON obs FROM regress_geonn_parallel;
SET ROLE regress_geonn_parallel;
SELECT count(*) FROM geonn_nearest('obs', 'ref', row_type => NULL::pair);
RESET ROLE;
RESET client_min_messages;

-- the same rows as the serial node's and the function's
CREATE FUNCTION compare(call text, columns text DEFAULT '*', OUT plan text, OUT rows bigint,
    OUT missing bigint, OUT wrong bigint, OUT serial_differs bigint)
LANGUAGE plpgsql AS $$
BEGIN
    plan := plan_of(format('CREATE TEMP TABLE in_parallel AS SELECT %s FROM %s', columns, call));
    EXECUTE format('CREATE TEMP TABLE in_parallel AS SELECT %s FROM %s', columns, call);
    EXECUTE format('CREATE TEMP TABLE by_function AS SELECT %s FROM (SELECT (f).* FROM (SELECT %s AS f OFFSET 0) s) t', columns, call);
    PERFORM set_config('max_parallel_workers_per_gather', '0', true);
    EXECUTE format('CREATE TEMP TABLE by_node AS SELECT %s FROM %s', columns, call);
    PERFORM set_config('max_parallel_workers_per_gather', '2', true);
    SELECT count(*) INTO rows FROM in_parallel;
    SELECT count(*) INTO missing FROM (SELECT * FROM by_function EXCEPT ALL SELECT * FROM in_parallel) x;
    SELECT count(*) INTO wrong FROM (SELECT * FROM in_parallel EXCEPT ALL SELECT * FROM by_function) x;
    SELECT count(*) INTO serial_differs FROM (
        (SELECT * FROM in_parallel EXCEPT ALL SELECT * FROM by_node) UNION ALL
        (SELECT * FROM by_node EXCEPT ALL SELECT * FROM in_parallel)) x;
    DROP TABLE in_parallel, by_function, by_node;
END $$;
SET client_min_messages = error;
SELECT arguments, c.* FROM unnest(ARRAY[
    $$k => 1$$, $$k => 5, ties => 'all'$$, $$k => 3, by => '{kind}'$$,
    $$max_distance => 100000, keep_unmatched => true$$, $$by => '{kind}', keep_unmatched => true, k => 2$$,
    $$metric => 'spheroid'$$, $$k => 20$$,
    $$options => '{"batch_rows": 1}', keep_unmatched => true, max_distance => 300000$$,
    $$options => '{"batch_rows": 7, "algorithm": "brute"}', k => 3$$]) arguments,
    compare(format('geonn_nearest(''obs'', ''ref'', %s, row_type => NULL::pair)', arguments)) c;
SELECT columns, c.* FROM unnest(ARRAY['rank', 'bearing', 'ref_id', 'ref_lat, obs_id', 'NULL AS nothing']) columns,
    compare('geonn_nearest(''obs'', ''ref'', k => 2, keep_unmatched => true, row_type => NULL::pair)', columns) c;
CREATE TYPE of_uuids AS (ref_id uuid, distance float8, obs_id uuid);
CREATE TYPE of_texts AS (obs_id text, ref_id text, distance float8);
SELECT call, c.* FROM unnest(ARRAY[
    $$geonn_within('obs', 'ref', 1000000, keep_unmatched => true, row_type => NULL::pair)$$,
    $$geonn_within('obs', 'obs', 200000, exclude_self => true)$$,
    $$geonn_nearest('uuids', 'uuids', exclude_self => true, by => '{kind}', row_type => NULL::of_uuids)$$,
    $$geonn_nearest('ref', 'ref', k => 3, exclude_self => true, row_type => NULL::of_texts)$$,
    $$geonn_nearest('parts', 'kept', k => 2, keep_unmatched => true)$$,
    $$geonn_nearest('parts', 'parts', by => '{kind}', exclude_self => true, keep_unmatched => true)$$,
    $$geonn_nearest('parent', 'parent', k => 2)$$,
    $$geonn_nearest('obs', 'temporary')$$,
    $$geonn_nearest('empty', 'obs', keep_unmatched => true)$$,
    $$geonn_nearest('obs', 'empty')$$,
    $$geonn_nearest('obs', 'empty', keep_unmatched => true, by => '{kind}')$$]) call, compare(call) c;
-- without the leader, without workers, and with each but one
SET parallel_leader_participation = off;
SELECT * FROM compare($$geonn_nearest('obs', 'ref', k => 2, keep_unmatched => true, row_type => NULL::pair)$$);
SET max_parallel_workers = 1;
SELECT * FROM compare($$geonn_nearest('obs', 'ref', k => 2, keep_unmatched => true, row_type => NULL::pair)$$);
SET max_parallel_workers = 0;
SELECT * FROM compare($$geonn_nearest('obs', 'ref', k => 2, keep_unmatched => true, row_type => NULL::pair)$$);
RESET parallel_leader_participation;
SELECT * FROM compare($$geonn_nearest('obs', 'ref', k => 2, keep_unmatched => true, row_type => NULL::pair)$$);
RESET max_parallel_workers;
-- tables whose index has all columns are read as tables; references are the leader's
-- even then, and workers may not read temporary tables
CREATE TABLE covered AS SELECT * FROM kept;
CREATE INDEX ON covered (id, lat, lon);
ANALYZE covered;
SET parallel_leader_participation = off;
SET enable_seqscan = off;
SELECT * FROM compare($$geonn_nearest('covered', 'temporary')$$);
RESET enable_seqscan;
RESET parallel_leader_participation;

-- a LIMIT ends all of it, and so does a join that needs no rows
SELECT count(*) FROM (SELECT * FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) LIMIT 7) n;
SELECT EXISTS (SELECT FROM geonn_nearest('obs', 'ref', row_type => NULL::pair));
SELECT count(*) FROM empty JOIN geonn_nearest('obs', 'obs') ON obs_id = id;

-- rescans: a Gather that is read anew for each outer row
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT g, count(obs_id), min(ref_id) FROM generate_series(1, 3) g
LEFT JOIN (SELECT obs_id, ref_id FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) WHERE obs_id <= 10 * rank) n ON n.obs_id > g
GROUP BY g ORDER BY g;
SELECT g, count(obs_id), min(ref_id) FROM generate_series(1, 3) g
LEFT JOIN (SELECT obs_id, ref_id FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) WHERE obs_id <= 10 * rank) n ON n.obs_id > g
GROUP BY g ORDER BY g;
SELECT g, count(rank), plan_of($$SELECT FROM generate_series(1, 3) g
LEFT JOIN (SELECT rank FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) LIMIT 5) n ON n.rank <= g$$)
FROM generate_series(1, 3) g
LEFT JOIN (SELECT rank FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) LIMIT 5) n ON n.rank <= g
GROUP BY g ORDER BY g;
SET parallel_leader_participation = off;
SELECT g, count(obs_id), min(ref_id) FROM generate_series(1, 3) g
LEFT JOIN (SELECT obs_id, ref_id FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) WHERE obs_id <= 10 * rank) n ON n.obs_id > g
GROUP BY g ORDER BY g;
RESET parallel_leader_participation;
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- parameters reach the workers: of prepared statements, of functions, of subqueries
SET plan_cache_mode = force_generic_plan;
PREPARE nearest (integer, float8, jsonb) AS
    SELECT count(*), max(rank) FROM geonn_nearest('obs', 'ref', k => $1, max_distance => $2, options => $3, row_type => NULL::pair);
SELECT plan_of($$EXECUTE nearest (1, NULL, '{}')$$);
EXECUTE nearest (1, NULL, '{}');
EXECUTE nearest (2, 1e6, '{"obs_lat": "lon", "obs_lon": "lat"}');
EXECUTE nearest (2, 1e6, '{}');
EXECUTE nearest (0, NULL, '{}');
RESET plan_cache_mode;
CREATE FUNCTION rows_of(k integer) RETURNS bigint LANGUAGE plpgsql PARALLEL RESTRICTED AS $$
DECLARE
    rows bigint;
BEGIN
    SELECT count(*) INTO rows FROM geonn_nearest('obs', 'ref', k => rows_of.k, row_type => NULL::pair);
    RETURN rows;
END $$;
SELECT g, rows_of(g) FROM generate_series(1, 7) g;
SELECT count(*), max(rank) FROM geonn_nearest('obs', 'ref', k => (SELECT max(g) FROM generate_series(1, 4) g), row_type => NULL::pair);
-- joins in joins: the leader computes the inner ones, or each worker does
CREATE TYPE ords AS (ord bigint, distance float8);
CREATE TYPE of_ref AS (obs_id text, rank integer);
SELECT sum(rows_of(rank)), count(*) FROM geonn_nearest('ref', 'ref', row_type => NULL::of_ref) WHERE obs_id LIKE 'ref 1_';
ALTER FUNCTION rows_of PARALLEL SAFE;
SELECT sum(rows_of(rank)), count(*) FROM geonn_nearest('ref', 'ref', row_type => NULL::of_ref) WHERE obs_id LIKE 'ref 1_';
-- two of them below one Gather
SET enable_nestloop = off;
SET enable_mergejoin = off;
SELECT count(*), count(*) FILTER (WHERE a.ref_id = b.ref_id) AS same
FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) a JOIN geonn_nearest('obs', 'ref', k => 2, row_type => NULL::pair) b USING (obs_id);
RESET enable_nestloop;
RESET enable_mergejoin;
-- plans that are run without workers, since rows may not all be asked for, or for only some
CREATE FUNCTION lazily() RETURNS SETOF integer LANGUAGE sql AS
    $$SELECT obs_id FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) WHERE rank = 1$$;
SELECT count(*) FROM (SELECT lazily()) n;
SELECT count(*) FROM (SELECT lazily() LIMIT 5) n;
DO $$
DECLARE
    found integer;
    rows integer := 0;
BEGIN
    SELECT obs_id INTO found FROM geonn_nearest('obs', 'ref', row_type => NULL::pair);
    ASSERT found IS NOT NULL;
    FOR found IN SELECT obs_id FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) LOOP
        rows := rows + 1;
        EXIT WHEN rows = 100;
    END LOOP;
    ASSERT rows = 100;
END $$;

-- what the transaction itself has changed, also since a savepoint
BEGIN;
DELETE FROM obs WHERE id > 2000;
UPDATE ref SET id = 'new ' || id WHERE id LIKE 'ref 1%';
SAVEPOINT later;
INSERT INTO obs SELECT i, 'late', 0, i / 100.0 FROM generate_series(5001, 6000) i;
CREATE TABLE created AS SELECT id, lat, lon FROM obs WHERE id > 0;
SELECT count(*), min(obs_id), max(obs_id), count(*) FILTER (WHERE ref_id LIKE 'new %') > 0 AS new_ones
FROM geonn_nearest('obs', 'ref', row_type => NULL::pair);
SELECT count(*), plan_of($$SELECT * FROM geonn_nearest('created', 'created')$$) FROM geonn_nearest('created', 'created') WHERE obs_id = ref_id;
ROLLBACK TO later;
SELECT count(*), min(obs_id), max(obs_id) FROM geonn_nearest('obs', 'ref', row_type => NULL::pair);
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM geonn_nearest('obs', 'ref', row_type => NULL::pair);
COMMIT;
RESET client_min_messages;

-- what EXPLAIN ANALYZE tells: devices depend on the machine, and which process did
-- what, in batches of its own, is chance
CREATE FUNCTION analysis(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
    shared boolean := false;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
        CONTINUE WHEN line ~ 'Devices:|Memory:';
        line := regexp_replace(line, '(actual rows=[0-9]+)\.00', '\1');
        shared := shared OR line ~ 'Workers Launched: [1-9]';
        IF shared THEN
            line := regexp_replace(line, 'Batches: \d+', 'Batches: some');
        END IF;
        RETURN NEXT regexp_replace(line, '((Leader|Worker \d): batches:) \d+, observations: \d+', '\1 some, observations: some');
    END LOOP;
END $$;
CREATE FUNCTION report(query text) RETURNS TABLE (property text, value text) LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, BUFFERS OFF, FORMAT JSON) ' || query INTO plan;
    plan := jsonb_path_query_first(plan, 'strict $.** ? (@."Custom Plan Provider" == "geonn join")');
    RETURN QUERY SELECT key, CASE
        WHEN key ~ 'Time|^Devices$' THEN (jsonb_typeof(p.value) IN ('number', 'array'))::text
        WHEN key = 'Processes' THEN (SELECT format('%s, %s observations', string_agg(of.key, ', ' ORDER BY of.key),
                                         sum(substring(of.value FROM 'observations: (\d+)')::integer))
                                     FROM jsonb_each_text(p.value) of)
        ELSE p.value::text END
    FROM jsonb_each(plan) p WHERE key ~ '^(Algorithm|Devices|Processes)$|Read|Skipped|Unmatched|Dataset|Engine|^Batches$';
END $$;
SET client_min_messages = error;
SELECT * FROM analysis($$SELECT obs_id FROM geonn_nearest('obs', 'ref', max_distance => 100000, options => '{"algorithm": "index"}', row_type => NULL::pair) ORDER BY obs_id OFFSET 100000$$);
-- where no worker can be started the leader does all, be it that it was not to take part
SET max_parallel_workers = 0;
SET parallel_leader_participation = off;
SELECT * FROM analysis($$SELECT obs_id FROM geonn_nearest('obs', 'ref', max_distance => 100000, options => '{"algorithm": "index"}', row_type => NULL::pair)$$);
RESET parallel_leader_participation;
RESET max_parallel_workers;
SET max_parallel_workers_per_gather = 0;
SELECT * FROM analysis($$SELECT obs_id FROM geonn_nearest('obs', 'ref', max_distance => 100000, options => '{"batch_rows": 100, "algorithm": "index"}', row_type => NULL::pair)$$);
SELECT * FROM analysis($$SELECT 1 FROM empty LEFT JOIN LATERAL (SELECT FROM geonn_nearest_points('{1,2,NULL,NULL}', '{1,91,2,NULL}', 'obs') WHERE distance < empty.id) n ON true$$);
SELECT * FROM analysis($$SELECT count(*) FROM geonn_nearest_points('{1,2,NULL,NULL}', '{1,-181,2,NULL}', 'ref', options => '{"algorithm": "brute"}', row_type => NULL::ords)$$);
SELECT * FROM report($$SELECT count(*) FROM geonn_nearest('obs', 'ref', by => '{kind}', options => '{"algorithm": "brute"}', row_type => NULL::pair)$$);
SET max_parallel_workers_per_gather = 2;
SELECT * FROM report($$SELECT count(*) FROM geonn_nearest('obs', 'ref', by => '{kind}', row_type => NULL::pair)$$)
WHERE property <> 'Batches';
-- of all rescans
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT * FROM report($$SELECT count(*) FROM generate_series(1, 3) g
LEFT JOIN (SELECT obs_id FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) WHERE obs_id <= 10 * rank) n ON n.obs_id > g$$)
WHERE property IN ('References Read', 'Observations Skipped', 'Processes');
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET client_min_messages;

-- one warning for each side, whoever reads the rows
INSERT INTO ref VALUES ('south', 'kind 1', -91, 0), ('east', NULL, 0, 361), ('nowhere', 'kind 2', NULL, NULL);
SELECT count(*) FROM geonn_nearest('obs', 'ref', row_type => NULL::pair);
SET parallel_leader_participation = off;
SELECT count(*) FROM geonn_nearest('obs', 'ref', keep_unmatched => true, row_type => NULL::pair);
SET max_parallel_workers = 0;
SELECT count(*) FROM geonn_nearest('obs', 'ref', row_type => NULL::pair);
RESET max_parallel_workers;
-- and an error
SELECT count(*) FROM geonn_nearest('kept', 'ref', invalid => 'error', row_type => NULL::pair);
DELETE FROM ref WHERE lat = -91 OR lon = 361;
DELETE FROM obs WHERE lon = 'NaN';
SELECT count(*) FROM geonn_nearest('obs', 'ref', invalid => 'error', row_type => NULL::pair);
RESET parallel_leader_participation;
BEGIN;
SAVEPOINT before;
SELECT count(*) FROM geonn_nearest('obs', 'ref', invalid => 'error', row_type => NULL::pair);
ROLLBACK TO before;
SELECT count(*) FROM geonn_nearest('kept', 'ref', invalid => 'error', row_type => NULL::pair);
COMMIT;
SELECT count(*) FROM geonn_nearest('obs', 'empty', invalid => 'error');

SET client_min_messages = warning;
DROP SCHEMA parallel CASCADE;
DROP ROLE regress_geonn_parallel;
