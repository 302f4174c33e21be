-- conditions on observations reach the reading of them
-- rooms: plan
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
DROP ROLE IF EXISTS regress_geonn_owner, regress_geonn_reader;
RESET client_min_messages;
CREATE SCHEMA filter;
SET search_path = filter, public;

-- a key that is checked late: by another one the join would search for the rows of obs themselves
CREATE TABLE obs (id integer PRIMARY KEY DEFERRABLE, kind text, lat float8, lon float8);
INSERT INTO obs SELECT i, 'kind ' || i % 3, (i * 7919 % 1800) / 10.0 - 90, (i * 104729 % 3600) / 10.0 - 180
FROM generate_series(1, 3000) i;
INSERT INTO obs VALUES (0, 'kind 1', NULL, 1), (-1, 'kind 1', 91, 1), (-2, NULL, 1, 1);
CREATE TABLE ref (id bigint PRIMARY KEY, kind text, lat float8, lon float8);
INSERT INTO ref SELECT i, 'kind ' || i % 4, (i * 104723 % 1800) / 10.0 - 90, (i * 7907 % 3600) / 10.0 - 180
FROM generate_series(1, 200) i;
ANALYZE obs, ref;
CREATE TYPE pair AS (obs_id bigint, ref_id bigint, distance float8, rank integer, obs_lat float8, obs_lon float8);

-- what a plan says of a query: the condition on observations, as PostgreSQL 15 prints it
CREATE FUNCTION pushed(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ 'Filter on Observations' THEN
            line := regexp_replace(substring(line FROM 'Filter on Observations: (.*)'), '\(InitPlan (expr_)?1\)\.col1', '$0');
            RETURN regexp_replace(line, '^\((.*) = n\.obs_id\)$', '(n.obs_id = \1)');
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
-- how many observations it reads
CREATE FUNCTION observations_read(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ' || query LOOP
        IF line ~ 'Observations Read' THEN
            RETURN substring(line FROM '[0-9]+');
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
-- a query of %s, the join, gives the same rows where OFFSET 0 keeps conditions above the join
CREATE FUNCTION compare(query text, call text DEFAULT $$geonn_nearest('obs', 'ref', k => 2, row_type => NULL::pair)$$,
                        OUT pushed text, OUT read bigint, OUT rows bigint, OUT differ bigint) LANGUAGE plpgsql AS $$
DECLARE
    whole text := replace(query, '%s', '(SELECT * FROM ' || call || ' OFFSET 0)');
BEGIN
    query := replace(query, '%s', call);
    pushed := filter.pushed(query);
    read := filter.observations_read(query);
    EXECUTE format('SELECT count(*) FROM (%s) q', query) INTO rows;
    EXECUTE format('SELECT count(*) FROM (((%1$s) EXCEPT ALL (%2$s)) UNION ALL ((%2$s) EXCEPT ALL (%1$s))) q', query, whole) INTO differ;
END $$;

EXPLAIN (COSTS OFF) SELECT * FROM geonn_nearest('obs', 'ref') WHERE obs_id = 77 AND distance > 0;
SELECT * FROM geonn_nearest('obs', 'ref', row_type => NULL::pair) WHERE obs_id = 77;
-- as the definition in SQL has it
SELECT o.id, n.* FROM obs o, LATERAL (SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance FROM ref r ORDER BY 2, 1 LIMIT 1) n WHERE o.id = 77;

-- conditions on the id and the coordinates, alone or with others
SET client_min_messages = error;
SELECT c.*, condition FROM unnest(ARRAY[
    'n.obs_id = 77', '77 = n.obs_id', 'n.obs_id = 77::smallint', 'n.obs_id < 10', '10 >= n.obs_id', 'n.obs_id BETWEEN 10 AND 20',
    'n.obs_id IN (3, 5, 9000)', 'n.obs_id = ANY (ARRAY[3, 5]::smallint[])', 'n.obs_id = 12345678901', 'n.obs_id < 12345678901',
    'n.obs_id <> 5 AND n.obs_id < 8', 'n.obs_id < 4 OR n.obs_id > 2998', 'n.obs_id % 1000 = 7', 'n.obs_id = 3 + 4',
    'n.obs_id = 1.5', 'n.obs_id = 2.0', 'n.obs_id IS NULL', 'NOT n.obs_id > 3', 'n.obs_id IN (1, 2) AND n.obs_lat > 0',
    'n.obs_lat > 80', 'n.obs_lat + n.obs_lon > 240', 'n.obs_lat > 89 OR n.obs_id = 3', 'n.obs_id = 3 OR n.obs_lat > 89', 'n.obs_id = (SELECT 78 - 1)', 'n.obs_id = length(current_setting(''server_version'')) * 0 + 5',
    'n.obs_id = n.ref_id', 'n.obs_id + n.rank = 5', 'n.ref_id = 5', 'n.rank = 2', 'n.distance < 100000', 'n.obs_id = 5 AND n.rank = 2',
    'n.obs_id = 5 OR n.rank = 3', 'n.obs_id > random() - 10', 'n.obs_id IN (SELECT id FROM ref WHERE id < 4)',
    'false', 'n.obs_id = NULL']) condition,
    LATERAL compare('SELECT * FROM %s n WHERE ' || condition) c;
RESET client_min_messages;

-- an index is used
CREATE TABLE many AS SELECT i AS id, i % 90 AS lat, i % 180 AS lon FROM generate_series(1, 20000) i;
ALTER TABLE many ADD PRIMARY KEY (id);
ANALYZE many;
CREATE FUNCTION scans() RETURNS bigint[] STABLE LANGUAGE sql
AS $$ SELECT ARRAY[seq_scan, idx_scan] FROM pg_stat_xact_user_tables WHERE relid = 'filter.many'::regclass $$;
BEGIN;
SELECT scans() AS before \gset
SELECT count(*) FROM geonn_nearest('many', 'ref') WHERE obs_id = 77;
SELECT count(*) FROM geonn_nearest('many', 'ref') WHERE obs_id IN (1, 5, 6) OR obs_id BETWEEN 20 AND 30;
SELECT now[1] - was[1] AS seq_scans, now[2] > was[2] AS by_index FROM scans() now, CAST(:'before' AS bigint[]) was;
COMMIT;
-- estimates follow
CREATE FUNCTION rows_of(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;
SELECT rows_of($$SELECT * FROM geonn_nearest('many', 'ref') WHERE obs_id = 77$$),
       rows_of($$SELECT * FROM geonn_nearest('many', 'ref', 3) WHERE obs_id = 77$$),
       rows_of($$SELECT * FROM geonn_nearest('many', 'ref') WHERE obs_id IN (1, 2, 3)$$),
       rows_of($$SELECT * FROM geonn_nearest('many', 'ref') WHERE obs_id <= 1000$$) BETWEEN 900 AND 1100 AS thousand;

-- joined relations: what is said of their id is said of the observation's
SET client_min_messages = error;
SELECT c.*, query FROM unnest(ARRAY[
    'SELECT * FROM obs o JOIN %s n ON n.obs_id = o.id WHERE o.id = 77',
    'SELECT * FROM obs o JOIN %s n ON n.obs_id = o.id WHERE o.id BETWEEN 70 AND 80',
    'SELECT * FROM obs o JOIN %s n ON n.obs_id = o.id WHERE o.id IN (70, 80) AND o.kind = ''kind 1''',
    'SELECT * FROM obs o JOIN %s n ON n.obs_id = o.id WHERE 10 > o.id',
    'SELECT * FROM obs o LEFT JOIN %s n ON n.obs_id = o.id WHERE o.id = 77',
    'SELECT * FROM obs o LEFT JOIN %s n ON n.obs_id = o.id WHERE o.id < 3',
    'SELECT * FROM obs o LEFT JOIN %s n ON n.obs_id = o.id AND o.id < 3 WHERE o.id < 10',
    'SELECT * FROM obs o LEFT JOIN %s n ON n.obs_id = o.id AND n.obs_id < 3 WHERE o.id < 10',
    'SELECT * FROM obs o LEFT JOIN %s n ON n.obs_id = o.id WHERE o.id < 10 AND n.obs_id IS NULL',
    'SELECT * FROM %s n LEFT JOIN obs o ON n.obs_id = o.id AND o.id < 3',
    'SELECT * FROM %s n LEFT JOIN (SELECT * FROM obs WHERE id < 3) o ON n.obs_id = o.id',
    'SELECT * FROM %s n LEFT JOIN obs o ON n.obs_id = o.id WHERE o.id < 3',
    'SELECT * FROM %s n LEFT JOIN obs o ON n.obs_id = o.id WHERE n.obs_id < 3',
    'SELECT * FROM (SELECT * FROM obs WHERE id < 3) o FULL JOIN %s n ON n.obs_id = o.id',
    'SELECT * FROM ref r LEFT JOIN (obs o LEFT JOIN %s n ON n.obs_id = o.id) ON o.id = r.id WHERE r.id < 10',
    'SELECT * FROM obs o WHERE id < 10 AND EXISTS (SELECT FROM %s n WHERE n.obs_id = o.id)',
    'SELECT * FROM obs o WHERE id < 10 AND NOT EXISTS (SELECT FROM %s n WHERE n.obs_id = o.id)',
    'SELECT * FROM %s n WHERE NOT EXISTS (SELECT FROM obs o WHERE o.id = n.obs_id AND o.id < 10)',
    'SELECT * FROM %s n WHERE n.obs_id IN (SELECT id FROM obs WHERE id < 10)',
    'SELECT * FROM obs o JOIN %s n ON n.obs_id = o.id + 1 WHERE o.id < 10',
    'SELECT * FROM obs o JOIN %s n ON n.obs_id = o.id WHERE o.id % 500 = 3',
    'SELECT o.id, (SELECT sum(n.distance) FROM %s n WHERE n.obs_id = o.id) FROM obs o WHERE o.id < 4',
    'SELECT obs_id, ref_id FROM %s n WHERE obs_id < 5 UNION ALL SELECT obs_id, ref_id FROM %s m WHERE obs_id = 7',
    'SELECT * FROM (SELECT *, 1 AS part FROM %s a UNION ALL SELECT *, b.rank + 1 FROM %s b) n WHERE obs_id = 7',
    'SELECT * FROM (SELECT obs_id, distance FROM %s n WHERE rank = 1 UNION ALL SELECT id, lat FROM ref) n JOIN obs o ON o.id = n.obs_id WHERE o.id < 9',
    'SELECT * FROM ref r LEFT JOIN (SELECT obs_id, ref_id + 0 AS one FROM %s n UNION ALL SELECT obs_id, rank FROM %s n) n ON n.obs_id = r.id WHERE r.id < 9',
    'SELECT r.id, (SELECT sum(distance) FROM (SELECT * FROM %s a UNION ALL SELECT * FROM %s b) n WHERE obs_id = r.id) FROM ref r WHERE r.id < 4']) query,
    LATERAL compare(query) c;
-- PostgreSQL 16 sees that this condition holds below the outer join, too
SELECT rows, differ FROM compare('SELECT * FROM ref r LEFT JOIN (obs o JOIN %s n ON n.obs_id = o.id) ON o.id = r.id AND o.id < 5 WHERE r.id < 10');

-- the inner side of a nested loop searches for each row of the outer side
CREATE TABLE wanted (id integer, want integer);
INSERT INTO wanted SELECT i, i * 7 FROM generate_series(1, 4000) i;
CREATE INDEX ON wanted (id);
ANALYZE wanted;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT c.*, query FROM unnest(ARRAY[
    'SELECT * FROM wanted w JOIN %s n ON n.obs_id = w.want WHERE w.id IN (3, 7)',
    'SELECT * FROM wanted w LEFT JOIN %s n ON n.obs_id = w.want WHERE w.id IN (3, 3000)',
    'SELECT * FROM wanted w LEFT JOIN %s n ON n.obs_id = w.want AND n.rank = 2 AND n.obs_id < 30 WHERE w.id IN (3, 7)',
    'SELECT * FROM %s n LEFT JOIN wanted w ON n.obs_id = w.want WHERE n.obs_id < 10',
    'SELECT * FROM wanted w JOIN %s n ON n.obs_id BETWEEN w.want AND w.want + 3 WHERE w.id IN (3, 7)',
    'SELECT * FROM wanted w JOIN wanted v ON v.id = w.id + 1 JOIN %s n ON n.obs_id = v.want - w.want WHERE w.id = 3']) query,
    LATERAL compare(query) c;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET client_min_messages;

-- all kinds of joins; observations without neighbours; the observation itself
SET client_min_messages = error;
SELECT c.*, call FROM unnest(ARRAY[
    $$geonn_nearest('obs', 'ref', keep_unmatched => true)$$,
    $$geonn_nearest('obs', 'obs', exclude_self => true)$$,
    $$geonn_nearest('obs', 'ref', by => ARRAY['kind'], keep_unmatched => true)$$,
    $$geonn_within('obs', 'ref', 1000000)$$,
    $$geonn_nearest('obs', 'ref', max_distance => 300000, keep_unmatched => true)$$,
    $$geonn_nearest_sql('SELECT id, lat, lon FROM obs', 'TABLE ref')$$,
    $$geonn_nearest_sql('SELECT id % 10 AS id, lat, lon FROM obs', 'TABLE ref')$$,
    $$geonn_nearest_sql('SELECT id, lat, lon FROM obs ORDER BY id DESC LIMIT 3001', 'TABLE ref')$$,
    $$geonn_nearest_sql('SELECT row_number() OVER (ORDER BY id DESC) AS id, lat, lon FROM obs', 'TABLE ref')$$,
    $$geonn_within_sql('SELECT id AS x, lat, lon FROM obs UNION ALL SELECT 2, 3, 4', 'TABLE ref', 1000000, options => '{"obs_id": "x"}')$$]) call,
    LATERAL compare('SELECT * FROM %s n WHERE obs_id < 5', call) c;
RESET client_min_messages;
CREATE TYPE points_pair AS (ord bigint, ref_id bigint, obs_lat float8);
SELECT pushed, rows, differ FROM compare('SELECT * FROM %s n WHERE obs_lat < 2', $$geonn_nearest_points('{1, 2}', '{3, 4}', 'ref', row_type => NULL::points_pair)$$);

-- an observation that a condition leaves out is not read: it raises no error, and no warning
SELECT count(*) FROM geonn_nearest('obs', 'ref', invalid => 'error') WHERE obs_id = 5;
SELECT count(*) FROM geonn_nearest('obs', 'ref', invalid => 'error') WHERE obs_id = -1;
SELECT count(*) FROM geonn_nearest('obs', 'ref') WHERE obs_id BETWEEN -1 AND 3;
SELECT obs_id, ref_id, obs_lat, obs_lon FROM geonn_nearest('obs', 'ref', keep_unmatched => true, row_type => NULL::pair) WHERE obs_id < 1 ORDER BY obs_id;

-- ids of other types: duplicates, numeric that differ and are equal, text in other orders and without one, domains
SET client_min_messages = error;
CREATE TABLE numerics (id numeric, lat float8, lon float8);
INSERT INTO numerics VALUES (1, 1, 1), (1.0, 2, 2), (1.00, 3, 3), (2, 4, 4), ('NaN', 5, 5), (NULL, 6, 6);
CREATE TYPE numeric_pair AS (obs_id numeric, ref_id bigint, distance float8, obs_lat float8);
-- a collation that takes 'a' for 'A', where this PostgreSQL has such ones; 182_conditions.pl asks for its equality
DO $$
BEGIN
    CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported THEN
    CREATE COLLATION ignore_case FROM "C";
END $$;
CREATE TABLE texts (id text COLLATE ignore_case, lat float8, lon float8);
INSERT INTO texts VALUES ('a', 1, 1), ('A', 2, 2), ('b', 3, 3);
CREATE TYPE text_pair AS (obs_id text, ref_id bigint);
CREATE TABLE varchars (id varchar(3) PRIMARY KEY, lat float8, lon float8);
INSERT INTO varchars VALUES ('a', 1, 1), ('a  ', 2, 2), ('b', 3, 3);
CREATE DOMAIN code AS integer CHECK (VALUE > 0);
CREATE TABLE codes (id code PRIMARY KEY, lat float8, lon float8);
INSERT INTO codes VALUES (1, 1, 1), (2, 2, 2);
CREATE TYPE code_pair AS (obs_id code, ref_id bigint);
CREATE TABLE floats (id float4, lat real, lon numeric);
INSERT INTO floats VALUES ('-0', 1, 1), (0, 2, 2), ('NaN', 3, 3);
CREATE TYPE float_pair AS (obs_id float4, ref_id bigint, obs_lat float8);
-- one column's condition can be asked of the observation, the other's cannot
CREATE TABLE mixed (id integer, lat numeric, lon float8);
INSERT INTO mixed VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3);
CREATE TYPE mixed_pair AS (obs_id integer, ref_id bigint, obs_lat float8, obs_lon float8);
SELECT c.*, condition, obs, type FROM (VALUES
    ('numerics', 'numeric_pair', 'obs_id = 1'), ('numerics', 'numeric_pair', 'obs_id::text = ''1.0'''), ('numerics', 'numeric_pair', 'obs_id = ''NaN'''),
    ('numerics', 'numeric_pair', 'obs_id IS NULL'), ('numerics', 'numeric_pair', 'scale(obs_id) = 2'),
    ('texts', 'text_pair', 'obs_id = ''a'''),
    ('varchars', 'text_pair', 'obs_id = ''a'''), ('varchars', 'text_pair', 'obs_id LIKE ''a%'''), ('varchars', 'text_pair', 'length(obs_id) = 3'),
    ('codes', 'code_pair', 'obs_id = 1'), ('codes', 'pair', 'obs_id = 1'), ('codes', 'pair', 'obs_id IN (2, 3)'),
    ('floats', 'float_pair', 'obs_id = 0'), ('floats', 'float_pair', 'obs_id = ''NaN'''), ('floats', 'float_pair', 'obs_lat = 1'),
    ('floats', 'float_pair', 'obs_lat = 1 OR obs_id = ''NaN'''),
    ('mixed', 'mixed_pair', 'obs_lon > 1'), ('mixed', 'mixed_pair', 'obs_lon > 2 OR obs_id = 1'), ('mixed', 'mixed_pair', 'obs_lat < 2 OR obs_lon > 2'), ('mixed', 'mixed_pair', 'obs_lon + obs_lat > 5')) t (obs, type, condition),
    LATERAL compare('SELECT * FROM %s n WHERE ' || condition,
                    format('geonn_nearest(%L, ''ref'', keep_unmatched => true, row_type => NULL::%s)', obs, type)) c;
RESET client_min_messages;

-- views, a view of the join, partitions
CREATE VIEW moved AS SELECT id + 1 AS id, lat, lon FROM obs WHERE kind = 'kind 2';
CREATE VIEW neighbours AS SELECT o.*, n.ref_id, n.distance FROM obs o LEFT JOIN geonn_nearest('obs', 'ref') n ON n.obs_id = o.id;
CREATE TABLE parted (id integer, lat float8, lon float8) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (1000) TO (4000);
INSERT INTO parted SELECT id, lat, lon FROM obs WHERE id > 0;
ANALYZE parted;
SELECT pushed, rows, differ FROM compare('SELECT * FROM %s n WHERE obs_id = 12', $$geonn_nearest('moved', 'ref')$$);
SELECT pushed, read, rows, differ FROM compare('SELECT * FROM %s n WHERE obs_id = 1200', $$geonn_nearest('parted', 'ref')$$);
SELECT pushed('SELECT * FROM neighbours WHERE id BETWEEN 5 AND 6');
SELECT pushed('SELECT * FROM neighbours WHERE id = 77'), observations_read('SELECT * FROM neighbours WHERE id = 77');
SELECT id, ref_id FROM neighbours WHERE id BETWEEN 5 AND 6 ORDER BY id;

-- parameters: of a prepared statement, of a query above, of a function
PREPARE one (bigint) AS SELECT obs_id, ref_id FROM geonn_nearest('obs', 'ref') WHERE obs_id = $1;
PREPARE those (integer[], integer) AS SELECT obs_id, ref_id FROM geonn_nearest('obs', 'ref') WHERE obs_id = ANY ($1) AND obs_id < $2 + 1;
PREPARE of_any (regclass, integer) AS SELECT obs_id, ref_id FROM geonn_nearest($1, 'ref') WHERE obs_id = $2;
SET plan_cache_mode = force_generic_plan;
SELECT pushed('EXECUTE one (5)'), observations_read('EXECUTE one (5)');
EXECUTE one (5);
EXECUTE one (NULL);
EXECUTE one (12345678901);
EXECUTE those ('{7, 8, 9}', 8);
EXECUTE those (NULL, 8);
SELECT pushed($$EXECUTE of_any ('obs', 5)$$), observations_read($$EXECUTE of_any ('obs', 5)$$);
EXECUTE of_any ('obs', 5);
EXECUTE of_any ('many', 5);
RESET plan_cache_mode;
DEALLOCATE ALL;
SELECT i, n.ref_id FROM generate_series(3, 5) i, LATERAL (SELECT ref_id FROM geonn_nearest('obs', 'ref') WHERE obs_id = i OFFSET 0) n;
CREATE FUNCTION nearest_of(integer) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT ref_id FROM geonn_nearest('obs', 'ref') WHERE obs_id = $1);
END $$;
SELECT i, nearest_of(i) FROM generate_series(3, 5) i;

-- the type of the row and the columns may change under a prepared statement
CREATE TYPE changing AS (obs_id integer, ref_id integer);
SET plan_cache_mode = force_generic_plan;
CREATE TABLE small (id integer, lat float8, lon float8);
INSERT INTO small SELECT i, -i, -i FROM generate_series(1, 9) i;
INSERT INTO small SELECT i + 20, -i, -i FROM generate_series(1, 9) i;
CREATE TABLE near AS SELECT id + 100 AS id, lat, lon FROM small WHERE id < 10;
PREPARE changed AS SELECT * FROM geonn_nearest('small', 'near', row_type => NULL::changing) n WHERE obs_id = 103;
EXECUTE changed;
ALTER TYPE changing RENAME ATTRIBUTE obs_id TO former;
ALTER TYPE changing RENAME ATTRIBUTE ref_id TO obs_id;
ALTER TYPE changing RENAME ATTRIBUTE former TO ref_id;
EXECUTE changed;
DEALLOCATE changed;
RESET plan_cache_mode;

-- a function that tells what it sees is asked where PostgreSQL would ask it: not before a policy, nor in a view's barrier
CREATE ROLE regress_geonn_owner;
CREATE ROLE regress_geonn_reader;
GRANT USAGE, CREATE ON SCHEMA filter TO regress_geonn_owner;
GRANT USAGE ON SCHEMA filter TO regress_geonn_reader;
CREATE FUNCTION tells(bigint) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$
BEGIN
    RAISE NOTICE 'saw %', $1;
    RETURN true;
END $$;
ALTER FUNCTION tells(bigint) STABLE;
CREATE TABLE secret (id integer PRIMARY KEY, owner text, lat float8, lon float8);
INSERT INTO secret SELECT i, CASE WHEN i = 2 THEN 'regress_geonn_reader' ELSE 'other' END, i % 90, i % 180 FROM generate_series(1, 3000) i;
ANALYZE secret, small, ref;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (owner = current_user);
GRANT SELECT ON secret, ref TO regress_geonn_reader;
CREATE VIEW barrier WITH (security_barrier) AS SELECT id, lat, lon FROM secret WHERE id % 10 = 3;
GRANT SELECT ON barrier TO regress_geonn_reader;
CREATE VIEW hidden WITH (security_barrier) AS SELECT obs_id, ref_id FROM geonn_nearest('small', 'ref') WHERE obs_id > 28;
GRANT SELECT ON hidden, small TO regress_geonn_reader;
SET ROLE regress_geonn_reader;
SELECT pushed($$SELECT obs_id FROM geonn_nearest('secret', 'ref') WHERE tells(obs_id) AND obs_id < 10$$);
SELECT obs_id FROM geonn_nearest('secret', 'ref') WHERE tells(obs_id) AND obs_id < 10;
SELECT obs_id FROM geonn_nearest('barrier', 'ref') WHERE tells(obs_id) AND obs_id < 10;
SELECT pushed($$SELECT obs_id FROM hidden WHERE tells(obs_id)$$);
SELECT obs_id FROM hidden WHERE tells(obs_id);
SELECT pushed($$SELECT obs_id FROM hidden WHERE obs_id < 29$$);
-- privileges are checked as without a condition
SELECT * FROM geonn_nearest('obs', 'ref') WHERE obs_id = 3;
RESET ROLE;

-- rescans, and a row at a time
BEGIN;
DECLARE c CURSOR FOR SELECT obs_id FROM geonn_nearest('obs', 'ref') WHERE obs_id BETWEEN 3 AND 5;
FETCH 1 FROM c;
SAVEPOINT s;
FETCH 1 FROM c;
ROLLBACK TO s;
FETCH 5 FROM c;
COMMIT;

SET client_min_messages = warning;
DROP SCHEMA filter CASCADE;
DROP ROLE regress_geonn_owner, regress_geonn_reader;
