-- what a role may have without privileges on the tables: by whom it is lent, and what is not
-- rooms: base plan points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
DROP ROLE IF EXISTS regress_geonn_lender, regress_geonn_borrower;
RESET client_min_messages;
CREATE ROLE regress_geonn_lender;
CREATE ROLE regress_geonn_borrower;
DO $$ BEGIN
    EXECUTE format('GRANT CREATE, TEMPORARY ON DATABASE %I TO regress_geonn_lender, regress_geonn_borrower', current_database());
END $$;
\set VERBOSITY terse
SET ROLE regress_geonn_lender;
CREATE SCHEMA lender;
GRANT USAGE ON SCHEMA lender TO regress_geonn_borrower;
SET search_path = lender, public;
CREATE TABLE obs (id bigint PRIMARY KEY, lat float8, lon float8);
CREATE TABLE ref (id bigint PRIMARY KEY, lat float8, lon float8);
CREATE TABLE hidden (id bigint PRIMARY KEY, lat float8, lon float8);
INSERT INTO obs VALUES (1, 10, 10), (2, 20, 20), (3, -30, 30);
INSERT INTO ref VALUES (7, 11, 11), (8, 19, 19), (9, -30, 40);
INSERT INTO hidden VALUES (66, 6, 6);

-- a view over a join: functions in views run as the caller, like any other
CREATE VIEW live AS SELECT * FROM geonn_nearest('obs', 'ref');
CREATE VIEW live_points AS SELECT * FROM geonn_nearest_points('{10}', '{10}', 'ref');
CREATE VIEW live_barrier WITH (security_barrier) AS SELECT * FROM geonn_within('obs', 'ref', 1e6);
CREATE VIEW live_invoker WITH (security_invoker) AS SELECT * FROM geonn_nearest('obs', 'ref');
CREATE VIEW live_deep AS SELECT max(distance) AS most FROM live;
CREATE VIEW live_query AS SELECT * FROM geonn_nearest_sql('TABLE lender.obs', 'TABLE lender.ref');
-- with a table that the caller chooses
CREATE VIEW chosen AS SELECT * FROM geonn_nearest_points('{6}', '{6}', current_setting('lender.ref')::regclass);
GRANT SELECT ON live, live_points, live_barrier, live_invoker, live_deep, live_query, chosen TO regress_geonn_borrower;
SET ROLE regress_geonn_borrower;
SELECT * FROM live;
SELECT * FROM live;
SELECT * FROM live_points;
SELECT * FROM live_barrier;
SELECT * FROM live_invoker;
SELECT * FROM live_deep;
SELECT * FROM live_query;
SET lender.ref = 'lender.hidden';
SELECT * FROM chosen;
PREPARE reading AS SELECT count(*) FROM live;
SET ROLE regress_geonn_lender;
SELECT count(*) FROM live;
EXECUTE reading;
SET ROLE regress_geonn_borrower;
EXECUTE reading;
RESET ROLE;

-- views in the tables' place lend what they select, and a view over that join, too
SET ROLE regress_geonn_lender;
CREATE VIEW obs_shown AS TABLE obs;
CREATE VIEW ref_shown AS SELECT id, lat, lon FROM ref WHERE id < 9;
CREATE VIEW live_shown AS SELECT * FROM geonn_nearest('obs_shown', 'ref_shown');
GRANT SELECT ON obs_shown, ref_shown, live_shown TO regress_geonn_borrower;
SET ROLE regress_geonn_borrower;
SELECT obs_id, ref_id FROM live_shown ORDER BY 1;
RESET ROLE;

-- stored rows: a materialized view, a cache
SET ROLE regress_geonn_lender;
CREATE MATERIALIZED VIEW stored AS SELECT * FROM geonn_nearest('obs', 'ref');
SELECT geonn_cache_create('lent', 'obs', 'ref', target => 'cached');
GRANT SELECT ON stored, cached TO regress_geonn_borrower;
SET ROLE regress_geonn_borrower;
SELECT obs_id, ref_id FROM stored ORDER BY 1;
SELECT obs_id, ref_id FROM cached ORDER BY 1;
CALL geonn_refresh('lent');
RESET ROLE;

-- the documentation's function of its definer
SET ROLE regress_geonn_lender;
BEGIN;
CREATE FUNCTION lend(at_most float8) RETURNS TABLE (obs_id bigint, ref_id bigint, metres float8)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 1000 SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT n.obs_id, n.ref_id, round(n.distance) FROM geonn_nearest('obs', 'ref', max_distance => at_most) AS n;
END;
REVOKE EXECUTE ON FUNCTION lend FROM PUBLIC;
COMMIT;
-- one whose names are looked up when it runs
CREATE FUNCTION careless() RETURNS SETOF geonn_pair LANGUAGE sql STABLE SECURITY DEFINER
AS $$ SELECT * FROM geonn_nearest('obs', 'ref', max_distance => 200000) $$;
CREATE VIEW lent_view AS SELECT obs_id, metres FROM lend(200000);
GRANT SELECT ON lent_view TO regress_geonn_borrower;
SET ROLE regress_geonn_borrower;
SELECT * FROM lend(200000);
SELECT * FROM lent_view;
SET ROLE regress_geonn_lender;
GRANT EXECUTE ON FUNCTION lend TO regress_geonn_borrower;
SET ROLE regress_geonn_borrower;
SELECT * FROM lend(200000) ORDER BY 1;
SELECT * FROM lent_view ORDER BY 1;
TABLE obs;

-- the caller plants what these names could mean, in a schema of its own and among temporary tables
CREATE SCHEMA borrower;
GRANT USAGE ON SCHEMA borrower TO regress_geonn_lender;
CREATE FUNCTION borrower.geonn_nearest(obs regclass, ref regclass, max_distance float8) RETURNS SETOF geonn_pair LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'planted, as %', current_user; END $$;
CREATE FUNCTION borrower.round(float8) RETURNS float8 LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted, as %', current_user; END $$;
CREATE TABLE borrower.obs (id bigint, lat float8, lon float8);
CREATE TABLE pg_temp.obs (id bigint, lat float8, lon float8);
CREATE TABLE pg_temp.ref (id bigint, lat float8, lon float8);
SET search_path = borrower, pg_temp, pg_catalog, lender, public;
SELECT * FROM lender.lend(200000) ORDER BY 1;
SELECT * FROM lender.careless();
SET search_path = lender, public;
RESET ROLE;

-- for its caller it is a function like any other, which is not inlined
EXPLAIN (COSTS OFF) SELECT * FROM lend(1e6) WHERE obs_id = 1 LIMIT 1;

-- its tables can be renamed, and not be dropped
ALTER TABLE lender.obs RENAME TO observed;
SET ROLE regress_geonn_borrower;
SELECT count(*) FROM lend(200000);
RESET ROLE;
DROP TABLE lender.ref;

-- a new owner lends what it has
ALTER FUNCTION lend OWNER TO regress_geonn_borrower;
SELECT * FROM lend(200000);

SET client_min_messages = warning;
SELECT geonn_cache_drop('lent');
DROP SCHEMA lender, borrower CASCADE;
DROP OWNED BY regress_geonn_lender, regress_geonn_borrower;
DROP ROLE regress_geonn_lender, regress_geonn_borrower;
