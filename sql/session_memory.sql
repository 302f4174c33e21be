-- geonn.session_memory_limit: what references take is bounded, whichever way they come
-- rooms: client join
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
LOAD 'geonn';
DROP ROLE IF EXISTS regress_geonn_plain;
RESET client_min_messages;
CREATE SCHEMA session_memory;
SET search_path = session_memory, public;

CREATE TABLE obs AS SELECT i AS id, i % 5 AS kind, i AS lat, i AS lon FROM generate_series(1, 10) i;
CREATE TABLE ref AS SELECT i AS id, i % 5 AS kind, 'name ' || i AS name, repeat('x', 300) || i AS key,
    (i * 7919 % 1800) / 10.0 - 90 AS lat, (i * 10473 % 3600) / 10.0 - 180 AS lon
FROM generate_series(1, 40000) i;
ALTER TABLE ref SET (parallel_workers = 2, autovacuum_enabled = off);
ALTER TABLE obs ADD key text;
CREATE VIEW ref_names AS SELECT name AS id, lat, lon FROM ref;
CREATE VIEW long_ids AS SELECT repeat(chr(65 + i), 100000) AS id, i AS lat, 1 AS lon FROM generate_series(1, 30) i;
CREATE TYPE text_pair AS (obs_id integer, ref_id text, distance float8);
CREATE TYPE place_pair AS (obs_id integer, ref_id integer, ref_lat float8);

-- What a join is refused for: which references, what was read of them, and whether both numbers are as they
-- should be: more than the limit, by no more than some pages of references, or an id.
CREATE FUNCTION refused(query text, OUT refs text, OUT reading text, OUT just_above boolean, OUT hint text)
LANGUAGE plpgsql AS $$
DECLARE
    message text;
    detail text;
    numbers text[];
BEGIN
    EXECUTE 'SELECT count(r::text) FROM ' || query || ' r';
EXCEPTION WHEN configuration_limit_exceeded THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    numbers := regexp_match(message, '^not enough memory for the references of (.*): (\d+) kB needed so far, and geonn.session_memory_limit is (\d+) kB$');
    refs := numbers[1];
    just_above := numbers[2]::int BETWEEN numbers[3]::int + 1 AND numbers[3]::int + 512
        AND numbers[3] = (SELECT setting FROM pg_settings WHERE name = 'geonn.session_memory_limit')
        AND numbers[2]::int <= (SELECT sum(m[1]::int) FROM regexp_matches(detail, '(\d+) kB', 'g') m);
    reading := (regexp_match(detail, '^Reading their (.*), this join has \d+ kB; other joins and cursors of this session have \d+ kB.$'))[1];
    hint := left(hint, 44);
END
$$;

-- 40,000 references take 24 bytes each, and 42 more with their index: 2,578 kB
SET geonn.session_memory_limit = '2MB';
SET max_parallel_workers_per_gather = 0;
SELECT * FROM refused($$geonn_nearest('obs', 'ref')$$);
SELECT refs, reading, just_above FROM unnest(ARRAY[
    $$geonn_nearest('obs', 'ref', k => 3)$$,
    $$geonn_nearest_sql('SELECT * FROM obs', 'SELECT id, lat, lon FROM ref')$$,
    $$geonn_nearest_sql('SELECT * FROM obs', 'SELECT i AS id, 1 AS lat, 1 AS lon FROM generate_series(1, 5000000) i')$$,
    $$geonn_within('obs', 'ref', 1000)$$,
    $$geonn_nearest_points(ARRAY[1, 2]::float8[], ARRAY[1, 2]::float8[], 'ref', metric => 'spheroid')$$,
    $$geonn_nearest('obs', 'ref', row_type => NULL::place_pair)$$,
    $$geonn_nearest('obs', 'ref', exclude_self => true)$$,
    $$geonn_nearest('obs', 'ref', by => '{kind}')$$,
    $$geonn_nearest('obs', 'ref_names', row_type => NULL::text_pair)$$,
    $$geonn_nearest('obs', 'long_ids', row_type => NULL::text_pair)$$,
    $$geonn_nearest('obs', 'ref', by => '{key}')$$]) query, refused(query);
-- a weight takes 8 bytes, and its sums a word of 8 or more: 40,000 of sizes that differ take 2,578 kB, and 10 MB;
-- so where the engine keeps the references, too
SET geonn.session_memory_limit = '12MB';
SELECT refs, reading, just_above FROM unnest(ARRAY[
    $$geonn_within_count('obs', 'ref', '{1000}', '{id}')$$,
    $$geonn_within_count_sql('SELECT * FROM obs', 'SELECT *, 1e300 * id AS w FROM ref', '{1000}', '{w}')$$,
    $$geonn_within_count_sql('SELECT * FROM obs', 'SELECT *, 10.0::float8 ^ (id % 600 - 300) AS w FROM ref', '{1000}', '{w}')$$,
    $$geonn_within_count_sql('SELECT * FROM obs', 'SELECT lat, lon, name AS id, 10.0::float8 ^ (id % 600 - 300) AS w FROM ref', '{1000}', '{w}', exclude_self => false)$$]) query, refused(query);
CREATE TABLE weighed AS SELECT id, lat, lon, 10.0::float8 ^ (id % 600 - 300) AS w FROM ref WHERE id <= 4000;
VACUUM weighed;
SET geonn.session_memory_limit = '2MB';
SELECT count(*) FROM geonn_within_count('obs', 'weighed', '{1000}', '{w}');
SET geonn.session_memory_limit = '1MB';
SELECT refs, just_above FROM refused($$geonn_within_count('obs', 'weighed', '{1000}', '{w}')$$);
SET geonn.session_memory_limit = '2MB';
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SELECT refs, reading, just_above FROM unnest(ARRAY[
    $$geonn_nearest('obs', 'ref')$$,
    $$geonn_nearest('obs', 'ref', by => '{kind}')$$,
    $$geonn_nearest('obs', 'ref_names', row_type => NULL::text_pair)$$]) query, refused(query);

-- an error leaves nothing that counts
SELECT count(*) FROM geonn_nearest_sql('SELECT * FROM obs', 'SELECT id, lat, lon FROM ref WHERE id <= 30000');
SELECT refs FROM refused($$geonn_nearest('obs', 'long_ids', row_type => NULL::text_pair)$$);
SELECT count(*) FROM geonn_nearest_sql('SELECT * FROM obs', 'SELECT id, lat, lon FROM ref WHERE id <= 30000');

-- cursors and calls of a session count together, and a cursor that is closed does not
BEGIN;
DECLARE a CURSOR FOR SELECT obs_id FROM geonn_nearest_sql('SELECT * FROM obs', 'SELECT id, lat, lon FROM ref WHERE id <= 20000');
FETCH a;
SELECT refs, reading, just_above FROM refused($$geonn_nearest_sql('SELECT * FROM obs', 'SELECT id, lat, lon FROM ref WHERE id > 20000')$$);
SAVEPOINT before;
DECLARE b CURSOR FOR SELECT obs_id FROM geonn_nearest_sql('SELECT * FROM obs', 'SELECT id, lat, lon FROM ref WHERE id > 30000');
FETCH b;
SELECT refs IS NOT NULL AS refused FROM refused($$geonn_nearest_sql('SELECT * FROM obs', 'SELECT id, lat, lon FROM ref WHERE id <= 10000')$$);
ROLLBACK TO before;
SELECT refs IS NOT NULL AS refused FROM refused($$geonn_nearest_sql('SELECT * FROM obs', 'SELECT id, lat, lon FROM ref WHERE id <= 10000')$$);
CLOSE a;
SELECT count(*) FROM geonn_nearest_sql('SELECT * FROM obs', 'SELECT id, lat, lon FROM ref WHERE id <= 30000');
COMMIT;

-- kept references count, and once where several joins of a session have them
CREATE TABLE kept (id integer, kind integer, lat float8, lon float8) WITH (autovacuum_enabled = off);
INSERT INTO kept SELECT id, kind, lat, lon FROM ref WHERE id <= 20000;
VACUUM kept;
SELECT count(*) FROM geonn_nearest('obs', 'kept');
BEGIN;
DECLARE a CURSOR FOR SELECT obs_id FROM geonn_nearest('obs', 'kept');
FETCH a;
DECLARE b CURSOR FOR SELECT obs_id FROM geonn_nearest('obs', 'kept', k => 2);
FETCH b;
SELECT count(*) FROM geonn_nearest('obs', 'kept');
CLOSE a;
SELECT refs, reading, just_above FROM refused($$geonn_nearest_sql('SELECT * FROM obs', 'SELECT id, lat, lon FROM ref WHERE id > 20000')$$);
COMMIT;
SET geonn.session_memory_limit = '1MB';
SELECT refs, reading, just_above FROM refused($$geonn_nearest('obs', 'kept')$$);

-- without a limit, and what else it may be
SET geonn.session_memory_limit = -1;
SELECT count(*) FROM geonn_nearest('obs', 'ref');
SET geonn.session_memory_limit = 0;
RESET geonn.session_memory_limit;
SHOW geonn.session_memory_limit;
CREATE ROLE regress_geonn_plain;
ALTER ROLE regress_geonn_plain SET geonn.session_memory_limit = '1GB';
SET ROLE regress_geonn_plain;
SET geonn.session_memory_limit = '8GB';
ALTER ROLE regress_geonn_plain SET geonn.session_memory_limit = '8GB';
RESET ROLE;
DROP ROLE regress_geonn_plain;

SET client_min_messages = warning;
DROP SCHEMA session_memory CASCADE;
