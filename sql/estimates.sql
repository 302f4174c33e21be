-- the planner expects a row for each observation
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA estimates;
SET search_path = estimates, public;

CREATE FUNCTION rows_of(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;

CREATE TABLE obs (id integer PRIMARY KEY, lat float8, lon float8, kind integer);
INSERT INTO obs SELECT i, i % 90, i % 180, i % 10 FROM generate_series(1, 5000) i;
CREATE TABLE ref (id integer PRIMARY KEY, lat float8, lon float8);
INSERT INTO ref SELECT i, i % 90, i % 180 FROM generate_series(1, 20) i;
ANALYZE obs, ref;

-- tables, views, partitions
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

-- in the target list, and filtered
SELECT rows_of($$SELECT geonn_nearest('obs', 'ref')$$);
SELECT rows_of($$SELECT * FROM geonn_nearest('obs', 'ref') LIMIT 7$$);

-- views of geonn_nearest count what they read
CREATE VIEW matched AS
SELECT obs_id AS id, 0::float8 AS lat, 0::float8 AS lon FROM geonn_nearest('few', 'ref');
SELECT rows_of($$SELECT * FROM geonn_nearest('matched', 'ref')$$);

-- a view of itself can be planned, if not run for long
CREATE OR REPLACE VIEW matched AS
SELECT obs_id AS id, 0::float8 AS lat, 0::float8 AS lon FROM geonn_nearest('matched', 'ref');
SELECT rows_of($$SELECT * FROM geonn_nearest('matched', 'ref')$$);

-- known only to a custom plan, or not at all: PostgreSQL's usual guess
PREPARE nearest (regclass) AS SELECT * FROM geonn_nearest($1, 'ref');
SET plan_cache_mode = force_custom_plan;
SELECT rows_of($$EXECUTE nearest ('obs')$$);
SET plan_cache_mode = force_generic_plan;
SELECT rows_of($$EXECUTE nearest ('obs')$$);
RESET plan_cache_mode;
SELECT rows_of($$SELECT * FROM geonn_nearest(NULL, 'ref')$$);

-- planning raises no errors of its own
SELECT rows_of($$SELECT * FROM geonn_nearest('obs_pkey', 'ref')$$);
SELECT rows_of($$SELECT * FROM geonn_nearest(12345678::regclass, 'ref')$$);

SET client_min_messages = warning;
DROP SCHEMA estimates CASCADE;
