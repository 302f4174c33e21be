-- geonn.algorithm: how to search, never what is found
-- rooms: base engine/search engine/cpu
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA algorithms;
SET search_path = algorithms, public;

-- How many rows each algorithm finds, and whether they are those of the first.
CREATE FUNCTION compare_algorithms(obs regclass, ref regclass,
    OUT algorithm text, OUT rows bigint, OUT same boolean)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    FOREACH algorithm IN ARRAY ARRAY['brute', 'index', 'auto'] LOOP
        PERFORM set_config('geonn.algorithm', algorithm, true);
        EXECUTE format('CREATE TEMP TABLE %I AS SELECT * FROM geonn_nearest(%L, %L)',
                       'found_by_' || algorithm, obs, ref);
        EXECUTE format($query$
            SELECT count(*), NOT EXISTS (SELECT * FROM %1$I EXCEPT ALL SELECT * FROM found_by_brute)
                AND count(*) = (SELECT count(*) FROM found_by_brute)
            FROM %1$I
            $query$, 'found_by_' || algorithm) INTO rows, same;
        RETURN NEXT;
    END LOOP;
    DROP TABLE found_by_brute, found_by_index, found_by_auto;
END $$;

-- everywhere, in a town, on top of each other, and a few of them
CREATE TABLE scattered AS
SELECT i AS id, degrees(asin(2 * (i * 0.6180339887498949 % 1) - 1)) AS lat,
       (i * 271.7558 % 360 - 180)::float8 AS lon
FROM generate_series(1, 5000) i;
CREATE TABLE town AS
SELECT i AS id, (48.1 + i * 0.618034 % 1 / 50)::float8 AS lat,
       (11.5 + i * 0.754878 % 1 / 50)::float8 AS lon
FROM generate_series(1, 5000) i;
CREATE TABLE heap AS
SELECT i AS id, (i % 7 * 10)::float8 AS lat, (i % 3 * 60 - 180)::float8 AS lon
FROM generate_series(1, 5000) i;
CREATE TABLE few AS SELECT * FROM scattered WHERE id <= 20;
CREATE TABLE nobody AS SELECT * FROM scattered WHERE false;

SELECT * FROM compare_algorithms('scattered', 'scattered');
SELECT * FROM compare_algorithms('scattered', 'town');
SELECT * FROM compare_algorithms('town', 'town');
SELECT * FROM compare_algorithms('town', 'scattered');
SELECT * FROM compare_algorithms('scattered', 'heap');
SELECT * FROM compare_algorithms('heap', 'heap');
SELECT * FROM compare_algorithms('scattered', 'few');
SELECT * FROM compare_algorithms('scattered', 'nobody');

-- and these are the definition's
SET geonn.algorithm = 'index';
SELECT count(*) AS wrong
FROM geonn_nearest('few', 'heap') n
JOIN few o ON o.id = n.obs_id
CROSS JOIN LATERAL (
    SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance
    FROM heap r ORDER BY distance, r.id LIMIT 1) r
WHERE (n.ref_id, n.distance) IS DISTINCT FROM (r.id, r.distance);
SET geonn.algorithm = 'grid';
RESET geonn.algorithm;

-- auto goes by what the ways cost on this device, and EXPLAIN says which it took
SET geonn.device = 'cpu';
CREATE TABLE many AS SELECT i AS id, i % 179 - 89.5 AS lat, i % 359 - 179.5 AS lon FROM generate_series(1, 10000) i;
CREATE TABLE once AS SELECT * FROM many;
CREATE TABLE handful AS SELECT * FROM scattered WHERE id <= 50;
CREATE TABLE single AS SELECT * FROM scattered WHERE id = 1;
VACUUM many, once, handful;
CREATE TYPE pair AS (obs_id integer, ref_id integer, distance float8);
CREATE FUNCTION algorithm_of(source text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT obs_id FROM ' || source LOOP
        EXIT WHEN line ~ 'Algorithm:';
    END LOOP;
    RETURN substring(line FROM 'Algorithm: (.*)');
END $$;
SELECT algorithm_of($$geonn_nearest('scattered', 'handful', row_type => NULL::pair)$$) AS handful,
    algorithm_of($$geonn_nearest('scattered', 'many', row_type => NULL::pair)$$) AS many;
-- references have their index once it pays, kept or not
SELECT algorithm_of($$geonn_nearest('single', 'many', row_type => NULL::pair)$$) AS kept,
    algorithm_of($$geonn_nearest('single', 'once', row_type => NULL::pair)$$) AS first_asked,
    algorithm_of($$geonn_nearest('scattered', 'once', row_type => NULL::pair)$$) AS then_for_more,
    algorithm_of($$geonn_nearest('single', 'once', row_type => NULL::pair)$$) AS and_again,
    algorithm_of($$geonn_nearest_sql('TABLE single', 'SELECT id, lat + pg_backend_pid() * 1e-7 AS lat, lon FROM many', row_type => NULL::pair)$$) AS queried,
    algorithm_of($$geonn_nearest_sql('TABLE scattered', 'SELECT id, lat + pg_backend_pid() * 1e-7 AS lat, lon FROM many', row_type => NULL::pair)$$) AS asked_more;
-- and by name it is that one
SELECT algorithm_of(format($$geonn_nearest(%L, %L, options => '{"algorithm": "%s"}', row_type => NULL::pair)$$,
    obs, ref, algorithm)) AS took, algorithm, obs, ref
FROM unnest(ARRAY['index', 'brute']) algorithm, unnest(ARRAY['single', 'scattered']) obs, unnest(ARRAY['handful', 'many']) ref
ORDER BY algorithm, obs, ref;
-- with VERBOSE: which fate the references had, which way each device went, and why
CREATE TEMP TABLE passing AS SELECT * FROM many;
CREATE FUNCTION ways_of(source text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT obs_id FROM ' || source LOOP
        CONTINUE WHEN line !~ '(Fate|Fates Not Taken|Ways|Left to the CPU):';
        RETURN NEXT trim(line);
    END LOOP;
END $$;
SELECT ways_of($$geonn_nearest('single', 'passing', row_type => NULL::pair)$$);
SELECT ways_of($$geonn_nearest('scattered', 'passing', k => 2, row_type => NULL::pair)$$);
SELECT ways_of($$geonn_nearest_sql('TABLE single', 'SELECT id, lat + pg_backend_pid() * 1e-7 AS lat, lon FROM many', row_type => NULL::pair)$$);
RESET geonn.device;

SET client_min_messages = warning;
DROP SCHEMA algorithms CASCADE;
