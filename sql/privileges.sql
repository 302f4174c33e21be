-- the caller's privileges decide, in PostgreSQL's own words
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
DROP ROLE IF EXISTS regress_geonn_user, regress_geonn_owner;
RESET client_min_messages;
CREATE SCHEMA privileges;
SET search_path = privileges, public;

CREATE ROLE regress_geonn_owner;
CREATE ROLE regress_geonn_user;
GRANT USAGE ON SCHEMA privileges TO regress_geonn_user, regress_geonn_owner;
CREATE TABLE open_to_all (id bigint, lat float8, lon float8);
INSERT INTO open_to_all VALUES (1, 10, 10), (2, 20, 20);
CREATE TABLE closed (id bigint, lat float8, lon float8, note text);
INSERT INTO closed VALUES (7, 11, 11, 'a'), (8, 19, 19, 'b');
ALTER TABLE closed OWNER TO regress_geonn_owner;
GRANT SELECT ON open_to_all TO regress_geonn_user, regress_geonn_owner;

-- no privilege on a table, as observations and as references
SET ROLE regress_geonn_user;
SELECT * FROM geonn_nearest('closed', 'open_to_all');
SELECT * FROM geonn_nearest('open_to_all', 'closed');
RESET ROLE;

-- on some columns, but not all that are needed
GRANT SELECT (id, lat) ON closed TO regress_geonn_user;
SET ROLE regress_geonn_user;
SELECT * FROM geonn_nearest('closed', 'open_to_all');
RESET ROLE;
GRANT SELECT (lon) ON closed TO regress_geonn_user;
SET ROLE regress_geonn_user;
SELECT * FROM geonn_nearest('closed', 'open_to_all') ORDER BY obs_id;
SELECT note FROM closed;
RESET ROLE;
REVOKE SELECT (id, lat, lon) ON closed FROM regress_geonn_user;

-- privileges are checked before a row is read, also where none would be
CREATE TABLE empty (id bigint, lat float8, lon float8);
GRANT SELECT ON empty TO regress_geonn_user;
SET ROLE regress_geonn_user;
SELECT * FROM geonn_nearest('closed', 'empty');
RESET ROLE;

-- a view gives its owner's
CREATE VIEW window_on_closed AS SELECT id, lat, lon FROM closed;
ALTER VIEW window_on_closed OWNER TO regress_geonn_owner;
GRANT SELECT ON window_on_closed TO regress_geonn_user;
SET ROLE regress_geonn_user;
SELECT * FROM geonn_nearest('window_on_closed', 'open_to_all') ORDER BY obs_id;
RESET ROLE;
-- unless it is told not to
ALTER VIEW window_on_closed SET (security_invoker = true);
SET ROLE regress_geonn_user;
SELECT * FROM geonn_nearest('window_on_closed', 'open_to_all');
RESET ROLE;

-- row-level security
CREATE TABLE secured (id bigint, owner name, lat float8, lon float8);
INSERT INTO secured VALUES
    (1, 'regress_geonn_user', 10, 10), (2, 'regress_geonn_owner', 20, 20),
    (3, 'regress_geonn_owner', 10, 10.5);
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secured USING (owner = current_user);
GRANT SELECT ON secured TO regress_geonn_user, regress_geonn_owner;
SELECT obs_id, ref_id FROM geonn_nearest('secured', 'secured') ORDER BY obs_id;
SET ROLE regress_geonn_user;
SELECT obs_id, ref_id FROM geonn_nearest('secured', 'secured') ORDER BY obs_id;
SELECT obs_id, ref_id FROM geonn_nearest('open_to_all', 'secured') ORDER BY obs_id;
SET ROLE regress_geonn_owner;
SELECT obs_id, ref_id FROM geonn_nearest('secured', 'secured') ORDER BY obs_id;
SELECT obs_id, ref_id FROM geonn_nearest('open_to_all', 'secured') ORDER BY obs_id;
SET row_security = off;
SELECT obs_id, ref_id FROM geonn_nearest('secured', 'secured') ORDER BY obs_id;
RESET row_security;
RESET ROLE;

-- a function that runs as its definer
CREATE FUNCTION as_definer() RETURNS SETOF geonn_pair
LANGUAGE sql SECURITY DEFINER SET search_path = privileges, public
AS $$ SELECT * FROM geonn_nearest('closed', 'open_to_all') $$;
SET ROLE regress_geonn_user;
SELECT * FROM as_definer() ORDER BY obs_id;
RESET ROLE;

-- the function itself
REVOKE EXECUTE ON FUNCTION geonn_nearest FROM PUBLIC;
SET ROLE regress_geonn_user;
SELECT * FROM geonn_nearest('open_to_all', 'open_to_all');
RESET ROLE;
GRANT EXECUTE ON FUNCTION geonn_nearest TO PUBLIC;

-- everybody may look at the engine and choose a device, nobody set its settings
SET ROLE regress_geonn_user;
SELECT count(*) FROM geonn_status();
SELECT count(*) > 0 AS some FROM geonn_devices;
SET geonn.device = 'cpu';
SELECT count(*) FROM geonn_nearest('open_to_all', 'open_to_all');
SET geonn.cpu_threads = 1;
RESET ROLE;
RESET geonn.device;

SET client_min_messages = warning;
DROP SCHEMA privileges CASCADE;
DROP ROLE regress_geonn_user, regress_geonn_owner;
