-- row-level security: geonn sees the rows that a SELECT of the caller sees, and no others
-- rooms: points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
DROP ROLE IF EXISTS regress_geonn_anna, regress_geonn_ben, regress_geonn_owner, regress_geonn_bypass;
RESET client_min_messages;
CREATE SCHEMA rls;
SET search_path = rls, public;

CREATE ROLE regress_geonn_owner;
CREATE ROLE regress_geonn_anna;
CREATE ROLE regress_geonn_ben;
CREATE ROLE regress_geonn_bypass BYPASSRLS;
GRANT USAGE, CREATE ON SCHEMA rls TO regress_geonn_owner, regress_geonn_anna, regress_geonn_ben, regress_geonn_bypass;

CREATE TABLE ship (id integer PRIMARY KEY, fleet text, lat float8, lon float8);
INSERT INTO ship
SELECT i, (ARRAY['anna', 'ben', 'free'])[i % 3 + 1], i * 7919 % 180 - 90, i * 104729 % 360 - 180
FROM generate_series(1, 60) i;
CREATE TABLE port (id integer PRIMARY KEY, fleet text, lat float8, lon float8);
INSERT INTO port
SELECT i, (ARRAY['anna', 'ben', 'free'])[i % 3 + 1], i * 6151 % 180 - 90, i * 7907 % 360 - 180
FROM generate_series(1, 60) i;
ALTER TABLE ship OWNER TO regress_geonn_owner;
ALTER TABLE port OWNER TO regress_geonn_owner;
GRANT SELECT ON ship, port TO regress_geonn_anna, regress_geonn_ben, regress_geonn_bypass;

-- What the present user sees of both, as SELECT and as geonn have it.  The
-- definition is that of sql/nearest.sql; missing and wrong are 0 where they agree.
CREATE FUNCTION see(obs regclass DEFAULT 'ship', ref regclass DEFAULT 'port',
    OUT observations bigint, OUT refs bigint, OUT pairs bigint, OUT missing bigint, OUT wrong bigint)
LANGUAGE plpgsql SET search_path = rls, public AS $$
DECLARE
    found text := format('SELECT * FROM geonn_nearest(%L, %L)', obs, ref);
    expected text := format($query$
        SELECT o.id AS obs_id, r.id AS ref_id, r.distance
        FROM %s o CROSS JOIN LATERAL (
            SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance
            FROM %s r ORDER BY distance, r.id LIMIT 1) r $query$, obs, ref);
BEGIN
    EXECUTE format('SELECT count(*) FROM %s', obs) INTO observations;
    EXECUTE format('SELECT count(*) FROM %s', ref) INTO refs;
    EXECUTE format('SELECT count(*) FROM (%s) x', found) INTO pairs;
    EXECUTE format('SELECT count(*) FROM (%s EXCEPT ALL %s) x', expected, found) INTO missing;
    EXECUTE format('SELECT count(*) FROM (%s EXCEPT ALL %s) x', found, expected) INTO wrong;
END $$;

-- without policies: everybody sees all
SET ROLE regress_geonn_anna;
SELECT * FROM see();
RESET ROLE;

-- security without a policy: nobody but the owner and who passes by sees anything
ALTER TABLE port ENABLE ROW LEVEL SECURITY;
SELECT * FROM see();
SET ROLE regress_geonn_owner;
SELECT * FROM see();
SET ROLE regress_geonn_bypass;
SELECT * FROM see();
SET ROLE regress_geonn_anna;
SELECT * FROM see();
SELECT * FROM see('port', 'ship');
SELECT count(*), count(ref_id) FROM geonn_nearest('ship', 'port', keep_unmatched => true);
RESET ROLE;

-- policies by user, on one table and on both
CREATE POLICY fleet ON port USING (fleet = 'free' OR current_user = 'regress_geonn_' || fleet);
SET ROLE regress_geonn_anna;
SELECT * FROM see();
SELECT * FROM see('port', 'ship');
SELECT fleet, count(*) FROM geonn_nearest('ship', 'port') JOIN port ON id = ref_id GROUP BY 1 ORDER BY 1;
SET ROLE regress_geonn_ben;
SELECT * FROM see();
SELECT fleet, count(*) FROM geonn_nearest('ship', 'port') JOIN port ON id = ref_id GROUP BY 1 ORDER BY 1;
RESET ROLE;
ALTER TABLE ship ENABLE ROW LEVEL SECURITY;
CREATE POLICY fleet ON ship TO regress_geonn_anna USING (fleet = 'anna');
CREATE POLICY south ON ship TO regress_geonn_anna USING (lat < 0);
CREATE POLICY east ON ship AS RESTRICTIVE TO regress_geonn_anna USING (lon > 0);
SET ROLE regress_geonn_anna;
SELECT * FROM see();
SET ROLE regress_geonn_ben;
SELECT * FROM see();
SET ROLE regress_geonn_bypass;
SELECT * FROM see();
RESET ROLE;

-- the owner, too, where it is forced
SET ROLE regress_geonn_owner;
SELECT * FROM see();
ALTER TABLE port FORCE ROW LEVEL SECURITY;
SELECT * FROM see();
ALTER TABLE port NO FORCE ROW LEVEL SECURITY;
RESET ROLE;

-- the other functions
SET ROLE regress_geonn_anna;
SELECT count(*), count(DISTINCT n.obs_id) = (SELECT count(*) FROM ship) AS all_ships,
       count(DISTINCT n.ref_id) = (SELECT count(*) FROM port) AS all_ports
FROM geonn_within('ship', 'port', 'Infinity') n;
SELECT count(*), count(DISTINCT n.obs_id) = (SELECT count(*) FROM ship) AS all_ships
FROM geonn_nearest_sql('TABLE rls.ship', 'TABLE rls.port', k => 1024) n;
SELECT count(*) = (SELECT count(*) FROM ship, port) AS all_pairs
FROM geonn_within_sql('TABLE ship', 'TABLE port', 'Infinity') n;
SELECT count(*) = (SELECT count(*) FROM port) AS all_ports
FROM geonn_nearest_points('{1}', '{2}', 'port', k => 1024) n;
RESET ROLE;

-- whoever wants all rows or an error
SET ROLE regress_geonn_anna;
SET row_security = off;
SELECT * FROM geonn_nearest('ship', 'port');
SELECT * FROM geonn_nearest_points('{1}', '{2}', 'port');
RESET row_security;
RESET ROLE;

-- policies that go by a setting
CREATE POLICY area ON port TO regress_geonn_ben USING (lat BETWEEN current_setting('rls.low', true)::float8
                                                           AND current_setting('rls.high', true)::float8);
DROP POLICY fleet ON port;
CREATE POLICY all_ships ON ship TO regress_geonn_ben USING (true);
SET ROLE regress_geonn_ben;
PREPARE nearest AS SELECT count(*), count(DISTINCT ref_id) AS ports FROM geonn_nearest('ship', 'port');
SELECT * FROM see();
SET rls.low = '-30';
SET rls.high = '30';
SELECT * FROM see();
EXECUTE nearest;
SET rls.high = '-10';
SELECT * FROM see();
EXECUTE nearest;
RESET rls.low;
RESET rls.high;
-- a prepared statement of another user
RESET ROLE;
EXECUTE nearest;
SET ROLE regress_geonn_anna;
EXECUTE nearest;
RESET ROLE;
DEALLOCATE nearest;
DROP POLICY area ON port;

-- policies that ask another table, and one that asks geonn
CREATE TABLE member (name name, port integer);
INSERT INTO member SELECT 'regress_geonn_ben', i FROM generate_series(1, 60, 7) i;
GRANT SELECT ON member TO regress_geonn_ben;
CREATE POLICY membership ON port TO regress_geonn_ben
USING (EXISTS (SELECT FROM rls.member WHERE name = current_user AND port = id));
SET ROLE regress_geonn_ben;
SELECT * FROM see();
RESET ROLE;
CREATE TABLE harbour (id integer PRIMARY KEY, lat float8, lon float8);
INSERT INTO harbour VALUES (1, 10, 10), (2, -40, 100);
GRANT SELECT ON harbour TO regress_geonn_ben;
CREATE POLICY near_harbours ON ship AS RESTRICTIVE TO regress_geonn_ben
USING (EXISTS (SELECT FROM geonn_nearest_points(ARRAY[lat], ARRAY[lon], 'rls.harbour', max_distance => 5e6)));
SET ROLE regress_geonn_ben;
SELECT * FROM see();
RESET ROLE;
SELECT count(*) FROM ship s
WHERE EXISTS (SELECT FROM harbour h WHERE geonn_distance(s.lat, s.lon, h.lat, h.lon) <= 5e6);
DROP POLICY near_harbours ON ship;

-- a policy that raises an error, and what it would have shown
CREATE FUNCTION refuse(integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'not for %', current_user;
END $$;
CREATE POLICY refused ON ship AS RESTRICTIVE TO regress_geonn_ben USING (refuse(id));
SET ROLE regress_geonn_ben;
SELECT * FROM geonn_nearest('ship', 'port');
RESET ROLE;
DROP POLICY refused ON ship;

-- messages of invalid rows tell nothing of those that are hidden
INSERT INTO port VALUES (101, 'anna', 'NaN', 0), (102, 'ben', 95, 0);
INSERT INTO member VALUES ('regress_geonn_ben', 102);
SET ROLE regress_geonn_ben;
SELECT count(*) FROM geonn_nearest('ship', 'port');
SELECT count(*) FROM geonn_nearest('ship', 'port', invalid => 'error');
RESET ROLE;
DELETE FROM member WHERE port = 102;
SET ROLE regress_geonn_ben;
SELECT count(*) FROM geonn_nearest('ship', 'port', invalid => 'error');
RESET ROLE;
DELETE FROM port WHERE id > 100;

-- views: with their owner's rights, or the caller's; security barriers
CREATE VIEW ports AS SELECT id, lat, lon FROM port;
CREATE VIEW ports_of_caller WITH (security_invoker) AS SELECT id, lat, lon FROM port;
CREATE VIEW ports_of_ben WITH (security_barrier) AS SELECT id, lat, lon FROM port WHERE fleet = 'ben';
ALTER VIEW ports OWNER TO regress_geonn_bypass;
ALTER VIEW ports_of_caller OWNER TO regress_geonn_bypass;
ALTER VIEW ports_of_ben OWNER TO regress_geonn_ben;
GRANT SELECT ON ports, ports_of_caller, ports_of_ben TO regress_geonn_ben, regress_geonn_anna;
SET ROLE regress_geonn_ben;
SELECT * FROM see('ship', 'ports');
SELECT * FROM see('ship', 'ports_of_caller');
SELECT * FROM see('ship', 'ports_of_ben');
SET ROLE regress_geonn_anna;
SELECT * FROM see('ship', 'ports');
SELECT * FROM see('ship', 'ports_of_caller');
SELECT * FROM see('ship', 'ports_of_ben');
RESET ROLE;
-- materialized views have the rows that whoever filled them saw
SET ROLE regress_geonn_ben;
CREATE MATERIALIZED VIEW ports_kept AS SELECT id, lat, lon FROM port;
GRANT SELECT ON ports_kept TO regress_geonn_anna;
SET ROLE regress_geonn_anna;
SELECT * FROM see('ship', 'ports_kept');
RESET ROLE;

-- functions that run as their definer see the definer's rows; others the caller's
CREATE FUNCTION nearest_definer() RETURNS SETOF geonn_pair
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = rls, public
AS $$ SELECT * FROM geonn_nearest('ship', 'port') $$;
ALTER FUNCTION nearest_definer() OWNER TO regress_geonn_ben;
CREATE FUNCTION nearest_invoker() RETURNS SETOF geonn_pair LANGUAGE sql STABLE
AS $$ SELECT * FROM geonn_nearest('rls.ship', 'rls.port') $$;
SET ROLE regress_geonn_anna;
SELECT count(*), count(DISTINCT ref_id) AS ports FROM nearest_definer();
SELECT count(*), count(DISTINCT ref_id) AS ports FROM nearest_invoker();
SET ROLE regress_geonn_ben;
SELECT count(*), count(DISTINCT ref_id) AS ports FROM nearest_definer();
SELECT count(*), count(DISTINCT ref_id) AS ports FROM nearest_invoker();
SET ROLE regress_geonn_owner;
SELECT count(*), count(DISTINCT ref_id) AS ports FROM nearest_definer();
SELECT count(*), count(DISTINCT ref_id) AS ports FROM nearest_invoker();
RESET ROLE;
-- functions in a view run as its reader, whoever owns it
CREATE VIEW nearest_view AS SELECT * FROM geonn_nearest('rls.ship', 'rls.port');
ALTER VIEW nearest_view OWNER TO regress_geonn_ben;
GRANT SELECT ON nearest_view TO regress_geonn_anna;
SET ROLE regress_geonn_ben;
SELECT count(*) FROM nearest_view;
SET ROLE regress_geonn_anna;
SELECT count(*) FROM nearest_view;
RESET ROLE;

-- partitions: the policies of the table that is named count
CREATE TABLE parted (id integer, fleet text, lat float8, lon float8) PARTITION BY LIST (fleet);
CREATE TABLE parted_anna PARTITION OF parted FOR VALUES IN ('anna');
CREATE TABLE parted_ben PARTITION OF parted FOR VALUES IN ('ben');
INSERT INTO parted SELECT id, fleet, lat, lon FROM port WHERE fleet <> 'free';
GRANT SELECT ON parted, parted_anna, parted_ben TO regress_geonn_ben;
ALTER TABLE parted ENABLE ROW LEVEL SECURITY;
CREATE POLICY fleet ON parted USING (current_user = 'regress_geonn_' || fleet);
SET ROLE regress_geonn_ben;
SELECT * FROM see('ship', 'parted');
SELECT * FROM see('ship', 'parted_anna');
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA rls CASCADE;
DROP ROLE regress_geonn_anna, regress_geonn_ben, regress_geonn_owner, regress_geonn_bypass;
