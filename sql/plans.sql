-- what the planner expects of the joins, and the plans that come of it
-- rooms: plan
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
DROP ROLE IF EXISTS regress_geonn_user;
RESET client_min_messages;
CREATE SCHEMA plans;
SET search_path = plans, public;

CREATE FUNCTION plan_of(query text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN plan -> 0 -> 'Plan';
END $$;
CREATE FUNCTION rows_of(query text) RETURNS bigint LANGUAGE sql
AS $$ SELECT (plan_of(query) ->> 'Plan Rows')::bigint $$;

CREATE TABLE obs (id integer PRIMARY KEY, lat float8, lon float8, kind integer);
INSERT INTO obs SELECT i, i % 90, i % 180, i % 10 FROM generate_series(1, 5000) i;
CREATE TABLE ref (id integer PRIMARY KEY, lat float8, lon float8);
INSERT INTO ref SELECT i, i % 90, i % 180 FROM generate_series(1, 20) i;
CREATE TABLE gaps (id integer PRIMARY KEY, latitude float8, lng float8);
INSERT INTO gaps SELECT i, CASE WHEN i % 5 > 0 THEN 1 END, 2 FROM generate_series(1, 2000) i;
ANALYZE obs, ref, gaps;

-- nearest: a row for each observation
SELECT rows_of($$SELECT * FROM geonn_nearest('obs', 'ref')$$);
SELECT rows_of($$SELECT * FROM geonn_nearest('ref', 'obs')$$);
CREATE VIEW few AS SELECT id, lat, lon FROM obs WHERE kind = 3;
SELECT rows_of($$SELECT * FROM geonn_nearest('few', 'ref')$$);
CREATE VIEW ten AS SELECT id, lat, lon FROM obs LIMIT 10;
SELECT rows_of($$SELECT * FROM geonn_nearest('ten', 'ref')$$);
CREATE TABLE parted (id integer, lat float8, lon float8) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (300);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (300) TO (1000);
INSERT INTO parted SELECT i, 0, 0 FROM generate_series(1, 700) i;
ANALYZE parted;
SELECT rows_of($$SELECT * FROM geonn_nearest('parted', 'ref')$$);
-- k for each, as long as there are so many references
SELECT k, rows_of(format('SELECT * FROM geonn_nearest(''obs'', ''ref'', %s)', k)) FROM unnest('{1, 2, 20, 1000}'::integer[]) k;
SELECT rows_of($$SELECT * FROM geonn_nearest('ref', 'obs', k => 1000)$$);
-- none where coordinates are NULL, unless they are kept
SELECT rows_of($$SELECT * FROM geonn_nearest('gaps', 'ref')$$);
SELECT rows_of($$SELECT * FROM geonn_nearest('gaps', 'ref', keep_unmatched => true)$$);
SELECT rows_of($$SELECT * FROM geonn_nearest('gaps', 'ref', k => 3, keep_unmatched => true)$$);

-- within: by the radius, as if references were spread evenly; one at least
SELECT radius, rows_of(format('SELECT * FROM geonn_within(''ref'', ''obs'', %L)', radius))
FROM unnest('{0, 1000, 100000, 1000000, 5003771.7, 10007543.4, 20015086.8, Infinity}'::float8[]) radius;
SELECT rows_of($$SELECT * FROM geonn_within('obs', 'ref', 1000)$$);
SELECT rows_of($$SELECT * FROM geonn_within('gaps', 'ref', 1000)$$);
SELECT rows_of($$SELECT * FROM geonn_within('gaps', 'ref', 1000, keep_unmatched => true)$$);

-- queries
SELECT rows_of($$SELECT * FROM geonn_nearest_sql('SELECT * FROM obs WHERE kind = 3', 'TABLE ref')$$);
SELECT rows_of($$SELECT * FROM geonn_nearest_sql('SELECT * FROM obs WHERE kind < 3', 'TABLE ref', 2)$$);
SELECT rows_of($$SELECT * FROM geonn_nearest_sql('TABLE obs', 'SELECT * FROM ref LIMIT 3', 7)$$);
SELECT rows_of($$SELECT * FROM geonn_within_sql('SELECT * FROM ref LIMIT 4', 'TABLE obs', 'Infinity')$$);

-- points
SELECT rows_of($$SELECT * FROM geonn_nearest_points('{1, 2, 3}', '{4, 5, 6}', 'ref')$$);
SELECT rows_of($$SELECT * FROM geonn_nearest_points('{1, 2, 3}', '{4, 5, 6}', 'ref', k => 5)$$);
SELECT rows_of($$SELECT * FROM geonn_nearest_points('{1, 2, 3}', '{4, 5, 6}', 'ref', k => 50)$$);
SELECT rows_of($$SELECT * FROM obs, geonn_nearest_points(ARRAY[obs.lat], ARRAY[obs.lon], 'ref') WHERE obs.kind = 3$$);

-- in the select list, and filtered
SELECT rows_of($$SELECT geonn_nearest('obs', 'ref')$$);
SELECT rows_of($$SELECT * FROM geonn_nearest('obs', 'ref') LIMIT 7$$);

-- a column definition list says what a row type says
CREATE TYPE plans_row AS (obs_id integer, rank integer);
SELECT condition, rows_of(format('SELECT * FROM geonn_nearest(''obs'', ''ref'', k => 5, row_type => NULL::plans_row) n WHERE %s', condition)),
       rows_of(format('SELECT * FROM geonn_nearest(''obs'', ''ref'', k => 5, row_type => NULL::record) n (obs_id integer, rank integer) WHERE %s', condition))
FROM unnest('{true, obs_id = 7, rank < 3, rank = 2 AND obs_id < 100}'::text[]) condition;
EXPLAIN (COSTS OFF)
SELECT * FROM geonn_nearest('obs', 'ref', row_type => NULL::record) n (obs_id integer, ref_id integer) WHERE obs_id = 7;
-- versions differ in which side of an equality comes first
CREATE FUNCTION shown(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query;
END $$;
SELECT line FROM shown($$SELECT o.kind, n.ref_id FROM obs o JOIN geonn_nearest('obs', 'ref', row_type => NULL::record) n (obs_id integer, ref_id integer) ON o.id = n.obs_id$$) line WHERE line !~ ' Filter: ';

-- views of joins count what they read
CREATE VIEW matched AS
SELECT obs_id AS id, 0::float8 AS lat, 0::float8 AS lon FROM geonn_nearest('few', 'ref');
SELECT rows_of($$SELECT * FROM geonn_nearest('matched', 'ref')$$);
-- a view of itself can be planned, if not run for long
CREATE OR REPLACE VIEW matched AS
SELECT obs_id AS id, 0::float8 AS lat, 0::float8 AS lon FROM geonn_nearest('matched', 'ref');
SELECT rows_of($$SELECT * FROM geonn_nearest('matched', 'ref')$$);

-- known only to a custom plan: else many rows, or PostgreSQL's usual guess for points
PREPARE nearest (regclass, integer) AS SELECT * FROM geonn_nearest($1, 'ref', $2);
PREPARE points (float8[]) AS SELECT * FROM geonn_nearest_points($1, $1, 'ref');
PREPARE within (text, float8) AS SELECT * FROM geonn_within_sql('TABLE ref', $1, $2);
SET plan_cache_mode = force_custom_plan;
SELECT rows_of($$EXECUTE nearest ('obs', 3)$$);
SELECT rows_of($$EXECUTE points ('{1, 2, 3, 4}')$$);
SELECT rows_of($$EXECUTE within ('TABLE obs', 'Infinity')$$);
SET plan_cache_mode = force_generic_plan;
SELECT rows_of($$EXECUTE nearest ('obs', 3)$$);
SELECT rows_of($$EXECUTE points ('{1, 2, 3, 4}')$$);
SELECT rows_of($$EXECUTE within ('TABLE obs', 'Infinity')$$);
RESET plan_cache_mode;
DEALLOCATE nearest;
DEALLOCATE points;
DEALLOCATE within;
SELECT rows_of($$SELECT * FROM geonn_nearest(NULL, 'ref')$$);
SELECT rows_of($$SELECT * FROM geonn_nearest('obs', NULL)$$);
SELECT rows_of($$SELECT * FROM geonn_nearest('obs', 'ref', NULL)$$);
SELECT rows_of($$SELECT * FROM geonn_within('obs', 'ref', NULL)$$);

-- relations raise no errors here; queries do, as they would a moment later
SELECT rows_of($$SELECT * FROM geonn_nearest('obs_pkey', 'ref')$$);
SELECT rows_of($$SELECT * FROM geonn_nearest('obs', 'ref_pkey')$$);
SELECT rows_of($$SELECT * FROM geonn_nearest(12345678::regclass, 'ref')$$);
SELECT rows_of($$SELECT * FROM geonn_nearest('obs', 'ref', k => -7)$$);
SELECT rows_of($$SELECT * FROM geonn_within('obs', 'ref', '-1')$$);
SELECT rows_of($$SELECT * FROM geonn_within('obs', 'ref', 'NaN')$$);
EXPLAIN (COSTS OFF) SELECT * FROM geonn_nearest('obs', 'ref', metric => 'plane', by => '{x}', options => '[]');
EXPLAIN (COSTS OFF) SELECT * FROM geonn_nearest_points('{{1}}', '{1, 2}', 'ref_pkey');
EXPLAIN (COSTS OFF) SELECT * FROM geonn_nearest_sql('TABLE ob', 'TABLE ref');
EXPLAIN (COSTS OFF) SELECT * FROM geonn_nearest_sql('TABLE obs', 'DELETE FROM ref RETURNING *');

-- estimates are for those who may read
CREATE ROLE regress_geonn_user;
GRANT USAGE ON SCHEMA plans TO regress_geonn_user;
GRANT SELECT ON ref TO regress_geonn_user;
CREATE VIEW window_on_few AS SELECT id, lat, lon FROM obs WHERE kind = 3;
GRANT SELECT ON window_on_few TO regress_geonn_user;
SET ROLE regress_geonn_user;
SELECT rows_of($$SELECT * FROM geonn_nearest('obs', 'ref')$$);
SELECT rows_of($$SELECT * FROM geonn_nearest_sql('SELECT * FROM obs WHERE kind = 3', 'TABLE ref')$$);
SELECT rows_of($$SELECT * FROM geonn_nearest('window_on_few', 'ref')$$);
RESET ROLE;
GRANT SELECT (id, lat, lon) ON obs TO regress_geonn_user;
SET ROLE regress_geonn_user;
SELECT rows_of($$SELECT * FROM geonn_nearest('obs', 'ref')$$);
SELECT rows_of($$SELECT * FROM geonn_nearest_sql('SELECT id, lat, lon FROM obs WHERE kind = 3', 'TABLE ref')$$);
RESET ROLE;

-- reading the references comes before the first row, the observations after it;
-- there is more of it for more to read
SELECT name, startup BETWEEN references_cost AND 1.01 * references_cost + 0.1 AS references_first,
       total > lag(total) OVER (ORDER BY number) AS more
FROM (VALUES (1, 'few few', 'ref', $$SELECT * FROM geonn_nearest('ref', 'ref')$$),
             (2, 'few many', 'obs', $$SELECT * FROM geonn_nearest('ref', 'obs')$$),
             (3, 'many few', 'ref', $$SELECT * FROM geonn_nearest('obs', 'ref')$$),
             (4, 'many many', 'obs', $$SELECT * FROM geonn_nearest('obs', 'obs')$$),
             (5, 'more of them', 'obs', $$SELECT * FROM geonn_nearest('obs', 'obs', k => 9)$$),
             (6, 'all', 'obs', $$SELECT * FROM geonn_within('obs', 'obs', 'Infinity')$$)) q (number, name, refs, query),
     LATERAL json_to_record(plan_of(query)) p ("Startup Cost" float8, "Total Cost" float8),
     LATERAL json_to_record(plan_of(format('SELECT FROM %I WHERE lat IS NOT NULL AND lon IS NOT NULL', refs))) r ("Total Cost" float8),
     LATERAL (SELECT p."Startup Cost", p."Total Cost", r."Total Cost") c (startup, total, references_cost)
ORDER BY number;

-- a few rows look for their kind in a table, many are hashed with it
CREATE TABLE big (id integer PRIMARY KEY, name text);
INSERT INTO big SELECT i, md5(i::text) FROM generate_series(1, 30000) i;
ANALYZE big;
EXPLAIN (COSTS OFF)
SELECT * FROM geonn_nearest('ten', 'ref') n JOIN big b ON b.id = n.obs_id;
EXPLAIN (COSTS OFF)
SELECT * FROM geonn_nearest('obs', 'ref', k => 5) n JOIN big b ON b.id = n.obs_id;
EXPLAIN (COSTS OFF)
SELECT * FROM geonn_nearest_points('{1, 2}', '{3, 4}', 'obs') n JOIN big b ON b.id = n.ref_id;
EXPLAIN (COSTS OFF)
SELECT * FROM geonn_within('obs', 'obs', 'Infinity') n JOIN big b ON b.id = n.ref_id;

-- restricted in parallel: a join is the leader's, while workers read the table beside it
SELECT proname, provolatile, proparallel, proisstrict, proretset, prosupport
FROM pg_proc WHERE pronamespace = (SELECT extnamespace FROM pg_extension WHERE extname = 'geonn') AND proretset AND
    proname ~ '^geonn_(nearest|within)' ORDER BY 1;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF)
SELECT count(*) FROM big b JOIN geonn_nearest('obs', 'ref', k => 5) n ON b.id = n.obs_id;
SELECT count(*), count(DISTINCT b.name) FROM big b JOIN geonn_nearest('obs', 'ref', k => 5) n ON b.id = n.obs_id;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- a join in FROM is run once, however often its rows are read again
CREATE SEQUENCE number;
SELECT count(*) FROM generate_series(1, 5) i
LEFT JOIN geonn_nearest_sql('SELECT nextval(''plans.number'') AS id, lat, lon FROM plans.ten', 'TABLE ref') n ON n.obs_id <= i;
SELECT last_value FROM number;

SET client_min_messages = warning;
DROP SCHEMA plans CASCADE;
DROP ROLE regress_geonn_user;
