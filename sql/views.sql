-- geonn's joins wherever a query can stand: views, cursors, prepared statements, functions
-- rooms: plan
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA views;
SET search_path = views, public;

CREATE TYPE ranked_pair AS (rank integer, obs_id bigint, ref_id bigint, distance float8);

CREATE TABLE city (id bigint PRIMARY KEY, name text, country text, lat float8, lon float8);
CREATE TABLE airport (id integer PRIMARY KEY, code text, country text, lat float8, lon float8);
INSERT INTO city VALUES
    (1, 'Berlin', 'DE', 52.52, 13.405), (2, 'Quito', 'EC', -0.2299, -78.525),
    (3, 'Suva', 'FJ', -18.1416, 178.4419), (4, 'Longyearbyen', 'NO', 78.2232, 15.6267);
INSERT INTO airport VALUES
    (10, 'BER', 'DE', 52.3667, 13.5033), (11, 'UIO', 'EC', -0.1292, -78.3575),
    (12, 'NAN', 'FJ', -17.7554, 177.4434), (13, 'LYR', 'NO', 78.2461, 15.4656),
    (14, 'APW', 'WS', -13.83, -172.0083);

-- the definition, for the tables here
CREATE VIEW expected AS
SELECT c.id AS obs_id, a.id AS ref_id, a.distance
FROM city c CROSS JOIN LATERAL (
    SELECT a.id, geonn_distance(c.lat, c.lon, a.lat, a.lon) AS distance
    FROM airport a ORDER BY distance, a.id LIMIT 1) a;
-- the rows of a relation that are not in the other one, both ways
CREATE FUNCTION differ(a regclass, b regclass DEFAULT 'expected') RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    rows bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM ((TABLE %1$s EXCEPT ALL TABLE %2$s) UNION ALL
                                          (TABLE %2$s EXCEPT ALL TABLE %1$s)) x', a, b) INTO rows;
    RETURN rows;
END $$;

-- a view, of whose text nothing is lost
CREATE VIEW nearest AS SELECT * FROM geonn_nearest('city', 'airport');
SELECT differ('nearest');
CREATE VIEW all_arguments AS
SELECT n.ref_id, n.rank
FROM geonn_nearest('city', 'airport', k => 2, max_distance => 1e7, metric => 'spheroid', by => '{country}',
                   exclude_self => true, keep_unmatched => true, ties => 'all', invalid => 'error',
                   options => '{"batch_rows": 2}', row_type => NULL::ranked_pair) n
WHERE n.obs_id > 1;
SELECT substring(pg_get_viewdef('all_arguments') FROM 'FROM ([^\n]*)') AS text;
SELECT * FROM all_arguments ORDER BY 1;
CREATE VIEW of_points AS
SELECT * FROM geonn_nearest_points('{52.5}', '{13}', 'airport', row_type => NULL::geonn_point_pair);
SELECT substring(pg_get_viewdef('of_points') FROM 'FROM ([^\n]*)') AS text;
CREATE VIEW within_sql AS
SELECT obs_id, ref_id FROM geonn_within_sql('TABLE views.city', 'TABLE views.airport', 20000);
SELECT substring(pg_get_viewdef('within_sql') FROM 'FROM ([^\n]*)') AS text;
-- of which it can be made again
DO $$ BEGIN
    EXECUTE format('CREATE VIEW again AS %s', pg_get_viewdef('all_arguments'));
END $$;
SELECT differ('all_arguments', 'again');
-- it holds on to what it names, but for what is in texts
\set VERBOSITY terse
DROP TABLE airport;
DROP TYPE ranked_pair;
\set VERBOSITY default
ALTER TYPE ranked_pair RENAME TO numbered_pair;
ALTER TABLE airport RENAME TO aerodrome;
SELECT count(*) FROM nearest;
SELECT count(*) FROM all_arguments;
SELECT count(*) FROM within_sql;
ALTER TABLE aerodrome RENAME TO airport;
SELECT pg_get_viewdef('all_arguments') ~ 'numbered_pair' AS renamed;
ALTER TYPE numbered_pair RENAME TO ranked_pair;
-- a column that is added to its type, and one that no join has
ALTER TYPE ranked_pair ADD ATTRIBUTE bearing float8;
SELECT count(*) FROM all_arguments;
DROP VIEW again, all_arguments;
CREATE TYPE odd_pair AS (ref_id bigint, note text);
CREATE VIEW odd AS SELECT * FROM geonn_nearest('city', 'airport', row_type => NULL::odd_pair);
SELECT * FROM odd;

-- a view of views, and a join on top
CREATE VIEW named AS
SELECT c.name, a.code, round(n.distance) AS metres
FROM nearest n JOIN city c ON c.id = n.obs_id JOIN airport a ON a.id = n.ref_id;
SELECT * FROM named ORDER BY metres;
SELECT name FROM named WHERE code = 'BER';
SELECT c.name, n.ref_id FROM city c LEFT JOIN nearest n ON n.obs_id = c.id AND n.distance < 20000 ORDER BY c.id;
SELECT c.name FROM city c WHERE NOT EXISTS (SELECT FROM nearest n WHERE n.obs_id = c.id AND distance < 20000) ORDER BY 1;
SELECT name, (SELECT ref_id FROM nearest WHERE obs_id = c.id) AS ref_id FROM city c ORDER BY id;
SELECT name FROM city WHERE id IN (SELECT obs_id FROM nearest WHERE ref_id = 12);
SELECT a.code, count(n.obs_id), sum(count(n.obs_id)) OVER () AS all
FROM airport a LEFT JOIN nearest n ON n.ref_id = a.id GROUP BY a.id ORDER BY a.id;

-- a materialized view keeps what was true when it was filled
CREATE MATERIALIZED VIEW kept AS SELECT * FROM geonn_nearest('city', 'airport') WITH NO DATA;
SELECT * FROM kept;
REFRESH MATERIALIZED VIEW kept;
SELECT differ('kept');
CREATE UNIQUE INDEX ON kept (obs_id);
INSERT INTO airport VALUES (15, 'SUV', 'FJ', -18.0433, 178.5592);
SELECT differ('kept'), differ('nearest');
REFRESH MATERIALIZED VIEW CONCURRENTLY kept;
SELECT differ('kept');
SELECT ref_id FROM kept WHERE obs_id = 3;
DELETE FROM airport WHERE id = 15;

-- tables from it, and rows into tables
CREATE TABLE copy AS SELECT * FROM geonn_nearest('city', 'airport');
SELECT differ('copy');
INSERT INTO copy SELECT n.* FROM geonn_nearest('city', 'airport', k => 2) n WHERE distance > 20000
ORDER BY obs_id, distance RETURNING obs_id, ref_id;
UPDATE copy SET distance = n.distance + 1 FROM nearest n WHERE n.obs_id = copy.obs_id AND n.ref_id = copy.ref_id;
DELETE FROM copy USING nearest n WHERE n.obs_id = copy.obs_id AND n.ref_id <> copy.ref_id;
SELECT count(*), count(*) FILTER (WHERE c.distance = n.distance + 1) AS updated FROM copy c JOIN nearest n USING (obs_id, ref_id);
COPY (SELECT obs_id, ref_id FROM nearest ORDER BY obs_id) TO STDOUT;
SELECT obs_id INTO TEMP chosen FROM nearest WHERE ref_id > 11;
SELECT count(*) FROM chosen;

-- prepared statements: each argument may be a parameter, in custom and generic plans
PREPARE with_all (regclass, regclass, integer, float8, text, name[], name[], name[], boolean, boolean, text, text, jsonb) AS
SELECT obs_id, ref_id, rank
FROM geonn_nearest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, NULL::ranked_pair) ORDER BY 1, 3;
PREPARE within (regclass, regclass, float8) AS
SELECT count(*), max(distance) <= $3 AS near FROM geonn_within($1, $2, $3);
PREPARE of_queries (text, text, integer) AS
SELECT obs_id, ref_id FROM geonn_nearest_sql($1, $2, k => $3) ORDER BY 1, distance;
SET plan_cache_mode = force_custom_plan;
EXECUTE with_all ('city', 'airport', 2, 5e6, 'sphere', NULL, NULL, NULL, false, false, 'first', 'skip', '{}');
EXECUTE within ('city', 'airport', 20000);
EXECUTE of_queries ('SELECT * FROM city WHERE id = 1', 'TABLE airport', 2);
SET plan_cache_mode = force_generic_plan;
EXECUTE with_all ('city', 'airport', 2, 5e6, 'sphere', NULL, NULL, NULL, false, false, 'first', 'skip', '{}');
EXECUTE with_all ('airport', 'airport', 1, NULL, 'spheroid', '{country}', NULL, NULL, true, true, 'all', 'error', '{"device": "cpu"}');
EXECUTE with_all ('airport', 'city', 0, NULL, 'spheroid', '{country}', NULL, NULL, true, true, 'all', 'error', '{}');
EXECUTE with_all ('airport', NULL, 1, NULL, 'sphere', NULL, NULL, NULL, true, true, 'all', 'error', '{}');
EXECUTE within ('city', 'airport', 'Infinity');
EXECUTE of_queries ('SELECT * FROM city WHERE id = 3', 'TABLE airport', 1);
RESET plan_cache_mode;
DEALLOCATE with_all;
DEALLOCATE within;
DEALLOCATE of_queries;

-- cursors: forward, backward, and beyond their transaction
BEGIN;
DECLARE forward CURSOR FOR SELECT obs_id, ref_id FROM geonn_nearest('city', 'airport') ORDER BY 1;
DECLARE scroll SCROLL CURSOR FOR SELECT obs_id, ref_id FROM geonn_nearest('city', 'airport');
DECLARE held SCROLL CURSOR WITH HOLD FOR SELECT obs_id, ref_id FROM geonn_nearest('city', 'airport') ORDER BY 1 DESC;
FETCH 2 FROM forward;
SAVEPOINT before;
UPDATE airport SET lat = -lat;
FETCH ALL FROM forward;
DO $$
DECLARE
    c CONSTANT refcursor := 'scroll';
    n record;
    forward bigint[];
    backward bigint[];
BEGIN
    LOOP
        FETCH c INTO n;
        EXIT WHEN NOT FOUND;
        forward := forward || n.obs_id;
    END LOOP;
    LOOP
        FETCH PRIOR FROM c INTO n;
        EXIT WHEN NOT FOUND;
        backward := n.obs_id || backward;
    END LOOP;
    RAISE NOTICE '% rows, backward the same: %', cardinality(forward), forward = backward;
END $$;
ROLLBACK TO before;
COMMIT;
FETCH 2 FROM held;
FETCH PRIOR FROM held;
FETCH ABSOLUTE 4 FROM held;
CLOSE held;

-- LIMIT, OFFSET, ORDER BY, DISTINCT, FILTER, WITH ORDINALITY, set operations
SELECT count(*) FROM (SELECT FROM geonn_nearest('city', 'airport') LIMIT 3) x;
SELECT count(*) FROM (SELECT FROM geonn_nearest('city', 'airport') LIMIT 0) x;
SELECT obs_id FROM geonn_nearest('city', 'airport') ORDER BY distance DESC OFFSET 1 LIMIT 2;
SELECT DISTINCT ref_id > 11 AS far FROM geonn_nearest('city', 'airport') ORDER BY 1;
SELECT count(*), count(DISTINCT n.ordinality), min(n.ordinality), max(n.ordinality)
FROM geonn_nearest('city', 'airport', k => 3) WITH ORDINALITY n;
-- the rows of an observation are adjacent, and numbered in their order
SELECT bool_and(ordinality - first = rank - 1) AS in_order
FROM (SELECT *, min(ordinality) OVER (PARTITION BY obs_id) AS first
      FROM geonn_nearest('city', 'airport', k => 3, row_type => NULL::ranked_pair)
           WITH ORDINALITY) n;
SELECT obs_id, ref_id FROM geonn_nearest('city', 'airport')
INTERSECT SELECT obs_id, ref_id FROM geonn_within('city', 'airport', 20000) ORDER BY 1;

-- CTEs, kept apart or not, and called twice
WITH n AS MATERIALIZED (SELECT * FROM geonn_nearest('city', 'airport'))
SELECT count(*) FROM n a JOIN n b USING (obs_id, ref_id, distance);
WITH n AS NOT MATERIALIZED (SELECT * FROM geonn_nearest('city', 'airport'))
SELECT count(*) FROM n a JOIN n b USING (obs_id, ref_id, distance) WHERE a.obs_id > 1;
WITH RECURSIVE chain (id, step) AS (
    SELECT 10::bigint, 0 UNION ALL
    SELECT n.ref_id, step + 1
    FROM chain, geonn_nearest_sql(format('SELECT * FROM airport WHERE id = %s', chain.id),
                                  format('SELECT * FROM airport WHERE id > %s', chain.id)) n)
SELECT * FROM chain ORDER BY step;

-- in the select list, in ROWS FROM, in LATERAL
SELECT geonn_nearest('city', 'airport') ORDER BY 1;
SELECT (geonn_within('city', 'airport', 20000)).ref_id ORDER BY 1;
SELECT c.id, (n).ref_id, i
FROM (SELECT id, geonn_nearest_points(ARRAY[lat], ARRAY[lon], 'airport', k => 2) AS n, generate_series(1, 2) AS i
      FROM city WHERE id < 3) c ORDER BY 1, 3;
SELECT a.ref_id, a.number, a.ref_id2
FROM ROWS FROM (geonn_nearest_points('{52}', '{13}', 'airport', k => 2), generate_series(1, 3),
                geonn_nearest_points('{78}', '{15}', 'airport'))
     AS a (ord, ref_id, distance, number, ord2, ref_id2, distance2);
CREATE TABLE asked (obs regclass, ref regclass, k integer, radius float8);
INSERT INTO asked VALUES ('city', 'airport', 1, 1e6), ('airport', 'city', 2, 1e5), ('city', 'city', 1, 0);
SELECT a.obs, a.ref, count(*), sum(n.ref_id) FROM asked a, LATERAL geonn_nearest(obs, ref, k) n
GROUP BY 1, 2 ORDER BY a.obs::text, a.ref::text;
SELECT a.obs, a.ref, count(n), (SELECT count(*) FROM geonn_within(a.obs, a.ref, a.radius)) AS again
FROM asked a LEFT JOIN LATERAL geonn_within(obs, ref, radius) n ON true
GROUP BY 1, 2, a.radius ORDER BY a.obs::text, a.ref::text;
SELECT obs, ref FROM asked a
WHERE EXISTS (SELECT FROM geonn_nearest(a.obs, a.ref) n WHERE n.obs_id = n.ref_id);

-- plpgsql: loops that are left early, nested and with errors caught; RETURN QUERY
CREATE FUNCTION loops(OUT outer_rows integer, OUT inner_rows integer, OUT caught integer) LANGUAGE plpgsql AS $$
DECLARE
    a geonn_pair;
    b record;
BEGIN
    outer_rows := 0; inner_rows := 0; caught := 0;
    FOR a IN SELECT * FROM geonn_nearest('city', 'airport') ORDER BY obs_id LOOP
        outer_rows := outer_rows + 1;
        FOR b IN SELECT * FROM geonn_nearest('airport', 'city', k => 3) LOOP
            inner_rows := inner_rows + 1;
            EXIT WHEN inner_rows % 5 = 0;
        END LOOP;
        BEGIN
            PERFORM geonn_nearest('city', 'airport', k => a.obs_id::integer - 2);
        EXCEPTION WHEN invalid_parameter_value THEN
            caught := caught + 1;
        END;
        EXIT WHEN outer_rows = 3;
    END LOOP;
END $$;
SELECT * FROM loops();
CREATE FUNCTION return_query(k integer) RETURNS SETOF geonn_pair LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT * FROM geonn_nearest('city', 'airport', return_query.k);
    RETURN QUERY EXECUTE 'SELECT * FROM geonn_nearest($1, $2)' USING 'airport'::regclass, 'city'::regclass;
END $$;
SELECT count(*), count(*) FILTER (WHERE obs_id < 10) AS cities FROM return_query(2);
-- SQL functions, of which the second is inlined
CREATE FUNCTION strict_nearest(obs regclass, ref regclass) RETURNS SETOF geonn_pair LANGUAGE sql STABLE STRICT
AS $$ SELECT * FROM geonn_nearest(obs, ref) $$;
CREATE FUNCTION inlined_nearest(obs regclass, ref regclass) RETURNS SETOF geonn_pair LANGUAGE sql STABLE
AS $$ SELECT * FROM geonn_nearest(obs, ref) $$;
CREATE FUNCTION atomic_nearest() RETURNS SETOF geonn_pair LANGUAGE sql STABLE
BEGIN ATOMIC SELECT * FROM geonn_nearest('city', 'airport'); END;
EXPLAIN (COSTS OFF) SELECT * FROM strict_nearest('city', 'airport');
EXPLAIN (COSTS OFF) SELECT * FROM inlined_nearest('city', 'airport');
CREATE VIEW by_functions AS
SELECT * FROM strict_nearest('city', 'airport') INTERSECT ALL
SELECT * FROM inlined_nearest('city', 'airport') INTERSECT ALL SELECT * FROM atomic_nearest();
SELECT differ('by_functions');

-- a trigger that asks
CREATE TABLE visit (lat float8, lon float8, airport text);
CREATE FUNCTION set_airport() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.airport := (SELECT code FROM geonn_nearest_points(ARRAY[NEW.lat], ARRAY[NEW.lon], 'airport') n
                    JOIN airport a ON a.id = n.ref_id);
    RETURN NEW;
END $$;
CREATE TRIGGER set_airport BEFORE INSERT ON visit FOR EACH ROW EXECUTE FUNCTION set_airport();
INSERT INTO visit VALUES (52, 13), (-14, -172), (NULL, 0);
SELECT * FROM visit;

-- ids that each reading of a view makes anew are refused, wherever they come from
CREATE VIEW numbered AS SELECT row_number() OVER () AS number, * FROM city;
CREATE FUNCTION unlabelled(bigint) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN $1 + 1; END';
CREATE FUNCTION unsteady(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text;
BEGIN
    EXECUTE 'CREATE VIEW try AS ' || query;
    BEGIN
        EXECUTE 'SELECT ''answers'' FROM geonn_nearest(''try'', ''airport'', row_type => NULL::record) AS n (distance float8) LIMIT 1' INTO said;
    EXCEPTION WHEN invalid_object_definition THEN
        GET STACKED DIAGNOSTICS said = PG_EXCEPTION_DETAIL;
        said := split_part(said, '.', 1);
    END;
    DROP VIEW try;
    RETURN said;
END $$;
SELECT query, unsteady(query) FROM unnest(ARRAY[
    'SELECT row_number() OVER () AS id, lat, lon FROM city',
    'SELECT rank() OVER (ORDER BY lat) * 2 + 1 AS id, lat, lon FROM city',
    'SELECT (random() * 1000)::bigint AS id, lat, lon FROM city',
    'SELECT gen_random_uuid() AS id, lat, lon FROM city',
    'SELECT (SELECT max(random()) FROM airport WHERE code <> '''') AS id, lat, lon FROM city',
    'SELECT number AS id, lat, lon FROM numbered',
    'SELECT number + c.id AS id, c.lat, c.lon FROM city c JOIN numbered n ON n.id = c.id',
    'SELECT id, lat, lon FROM city c JOIN (SELECT number AS id, id AS other FROM numbered) n USING (id)',
    'WITH n AS (SELECT number AS id, lat, lon FROM numbered) SELECT * FROM n',
    'SELECT id, lat, lon FROM city UNION ALL SELECT number, lat, lon FROM numbered',
    'SELECT s.id, lat, lon FROM numbered n, LATERAL (SELECT n.number AS id) s',
    'SELECT number AS id, max(lat) AS lat, max(lon) AS lon FROM numbered GROUP BY number',
    -- these have ids that stay
    'SELECT id, lat, lon FROM numbered',
    'SELECT id, random() * 0 + lat AS lat, lon FROM city',
    'SELECT unlabelled(id) AS id, lat, lon FROM city',
    'WITH n AS (SELECT number, id, lat, lon FROM numbered) SELECT * FROM n',
    'SELECT id, max(lat) AS lat, max(lon) AS lon FROM city GROUP BY id'
]) AS query;
-- each column is looked at once, however often nested views name it
SELECT string_agg(format('CREATE VIEW level_%s AS SELECT a.id + b.id AS id, a.lat, a.lon FROM %s a JOIN %2$s b USING (lat);',
                         i, CASE i WHEN 1 THEN 'city' ELSE 'level_' || i - 1 END), ' ' ORDER BY i)
FROM generate_series(1, 40) i \gexec
SELECT role, reason FROM geonn_describe('level_40');
SELECT * FROM geonn_nearest('numbered', 'airport', options => '{"obs_id": "number"}');
SELECT * FROM geonn_describe('numbered', '{"id": "number"}');
SELECT * FROM geonn_within('city', 'numbered', 1, options => '{"ref_id": "number"}');
CREATE MATERIALIZED VIEW stored AS SELECT * FROM numbered;
SELECT count(*) > 0 AS answers FROM geonn_nearest('stored', 'airport', options => '{"obs_id": "number"}');

SET client_min_messages = warning;
DROP SCHEMA views CASCADE;
