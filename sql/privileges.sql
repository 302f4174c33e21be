-- the caller's privileges decide, in PostgreSQL's own words
-- rooms: base points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
DROP ROLE IF EXISTS regress_geonn_user, regress_geonn_owner, regress_geonn_nobody;
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

-- a function that runs as its definer
CREATE FUNCTION as_definer() RETURNS SETOF geonn_pair
LANGUAGE sql SECURITY DEFINER SET search_path = privileges, public
AS $$ SELECT * FROM geonn_nearest('closed', 'open_to_all') $$;
SET ROLE regress_geonn_user;
SELECT * FROM as_definer() ORDER BY obs_id;
RESET ROLE;

-- only the columns that are asked for are read: id, coordinates and by, or what
-- options name in their place
CREATE TABLE columns (key bigint, id bigint, lat float8, lon float8, y float8, x float8, kind integer, note text);
INSERT INTO columns VALUES (9, 1, 10, 10, 20, 20, 1, 'a'), (8, 2, 19, 19, 11, 11, 2, 'b');
GRANT SELECT (id, lat, lon) ON columns TO regress_geonn_user;
SET ROLE regress_geonn_user;
SELECT obs_id, ref_id FROM geonn_nearest('columns', 'columns', exclude_self => true) ORDER BY 1;
SELECT obs_id, ref_id FROM geonn_within('open_to_all', 'columns', 1e6) ORDER BY 1, 2;
SELECT ord, ref_id FROM geonn_nearest_points('{19, NULL}', '{18, 1}', 'columns', keep_unmatched => true) ORDER BY 1;
SELECT obs_id, ref_id FROM geonn_nearest_sql('SELECT lat, id, lon FROM columns', 'TABLE open_to_all') ORDER BY 1;
SELECT role, column_name FROM geonn_describe('columns');
SELECT * FROM geonn_nearest('columns', 'columns', by => '{kind}');
SELECT * FROM geonn_within('columns', 'columns', 1, by => '{kind}');
SELECT * FROM geonn_nearest('columns', 'open_to_all', options => '{"obs_lat": "y", "obs_lon": "x"}');
SELECT * FROM geonn_nearest('open_to_all', 'columns', options => '{"ref_id": "key"}');
SELECT * FROM geonn_nearest_points('{1}', '{1}', 'columns', options => '{"ref_lat": "y", "ref_lon": "x"}');
SELECT * FROM geonn_nearest_sql('TABLE columns', 'TABLE open_to_all');
SELECT * FROM geonn_nearest_sql('SELECT * FROM open_to_all', 'SELECT id, lat, lon FROM columns WHERE note > ''''');
RESET ROLE;
REVOKE SELECT (lat) ON columns FROM regress_geonn_user;
GRANT SELECT (key, y, x, kind) ON columns TO regress_geonn_user;
SET ROLE regress_geonn_user;
SELECT obs_id, ref_id FROM geonn_nearest('columns', 'columns', by => '{kind}', options =>
    '{"obs_id": "key", "ref_id": "key", "obs_lat": "y", "obs_lon": "x", "ref_lat": "y", "ref_lon": "x"}') ORDER BY 1;
SELECT * FROM geonn_nearest('columns', 'open_to_all');
RESET ROLE;

-- a schema without USAGE, though its table may be read
CREATE SCHEMA privileges_hidden;
CREATE TABLE privileges_hidden.behind (id bigint, lat float8, lon float8);
INSERT INTO privileges_hidden.behind VALUES (5, 5, 5);
GRANT SELECT ON privileges_hidden.behind TO regress_geonn_user;
SELECT 'privileges_hidden.behind'::regclass::oid AS behind \gset
SET ROLE regress_geonn_user;
SELECT * FROM geonn_nearest('privileges_hidden.behind', 'open_to_all');
EXPLAIN (COSTS OFF) SELECT * FROM geonn_nearest(:behind, 'open_to_all');
SELECT * FROM geonn_nearest(:behind, 'open_to_all');
SELECT * FROM geonn_nearest_points('{1}', '{1}', :behind);
SELECT * FROM geonn_within_sql('TABLE privileges_hidden.behind', 'TABLE open_to_all', 1);
RESET ROLE;
CREATE VIEW before AS TABLE privileges_hidden.behind;
GRANT SELECT ON before TO regress_geonn_user;
SET ROLE regress_geonn_user;
SELECT obs_id, ref_id FROM geonn_nearest('before', 'open_to_all');
RESET ROLE;

-- the same errors from each function, for each side
SET ROLE regress_geonn_user;
SELECT * FROM geonn_within('closed', 'open_to_all', 1);
SELECT * FROM geonn_within('open_to_all', 'closed', 1);
SELECT * FROM geonn_nearest_sql('TABLE closed', 'TABLE open_to_all');
SELECT * FROM geonn_within_sql('TABLE open_to_all', 'TABLE closed', 1);
SELECT * FROM geonn_nearest_points('{1}', '{1}', 'closed');
SELECT * FROM geonn_nearest_points('{}', '{}', 'closed');
SELECT * FROM geonn_nearest_sql('SELECT id, lat, lon FROM open_to_all WHERE EXISTS (SELECT FROM closed)', 'TABLE empty');
SELECT * FROM geonn_check('closed');
EXPLAIN (COSTS OFF) SELECT * FROM geonn_nearest('closed', 'open_to_all');
RESET ROLE;
-- a view of a table that neither its owner nor its reader may read
CREATE VIEW blind AS SELECT id, lat, lon FROM closed;
CREATE ROLE regress_geonn_nobody;
ALTER VIEW blind OWNER TO regress_geonn_nobody;
GRANT SELECT ON blind TO regress_geonn_user;
SET ROLE regress_geonn_user;
SELECT * FROM geonn_nearest('blind', 'open_to_all');
RESET ROLE;
-- functions of a query are called as the caller, who needs to be allowed to
CREATE FUNCTION secret() RETURNS integer LANGUAGE sql AS 'SELECT 1';
REVOKE EXECUTE ON FUNCTION secret FROM PUBLIC;
SET ROLE regress_geonn_user;
SELECT * FROM geonn_nearest_sql('SELECT id, lat, lon FROM open_to_all WHERE id = secret()', 'TABLE open_to_all');
RESET ROLE;

-- the functions themselves
REVOKE EXECUTE ON FUNCTION geonn_nearest, geonn_nearest_sql, geonn_within, geonn_within_sql,
    geonn_nearest_points, geonn_check, geonn_describe, geonn_distance(float8, float8, float8, float8, text) FROM PUBLIC;
SET ROLE regress_geonn_user;
SELECT * FROM geonn_nearest('open_to_all', 'open_to_all');
SELECT * FROM geonn_nearest_sql('TABLE open_to_all', 'TABLE open_to_all');
SELECT * FROM geonn_within('open_to_all', 'open_to_all', 1);
SELECT * FROM geonn_within_sql('TABLE open_to_all', 'TABLE open_to_all', 1);
SELECT * FROM geonn_nearest_points('{1}', '{1}', 'open_to_all');
SELECT * FROM geonn_check('open_to_all');
SELECT * FROM geonn_describe('open_to_all');
SELECT * FROM geonn_distance(1, 1, 1, 1);
RESET ROLE;
GRANT EXECUTE ON FUNCTION geonn_nearest TO regress_geonn_user;
SET ROLE regress_geonn_user;
SELECT count(*) FROM geonn_nearest('open_to_all', 'open_to_all');
SELECT * FROM geonn_within('open_to_all', 'open_to_all', 1);
RESET ROLE;
REVOKE EXECUTE ON FUNCTION geonn_nearest FROM regress_geonn_user;
GRANT EXECUTE ON FUNCTION geonn_nearest, geonn_nearest_sql, geonn_within, geonn_within_sql,
    geonn_nearest_points, geonn_check, geonn_describe, geonn_distance(float8, float8, float8, float8, text) TO PUBLIC;

-- everybody may start the engine, look at it and choose a device, nobody set its settings
SET ROLE regress_geonn_user;
SELECT geonn_engine_start() > 0 AS started;
SELECT count(*) FROM geonn_status();
SELECT count(*) > 0 AS some FROM geonn_devices;
SET geonn.device = 'cpu';
SELECT count(*) FROM geonn_nearest('open_to_all', 'open_to_all');
SET geonn.cpu_threads = 1;
RESET ROLE;
RESET geonn.device;

SET client_min_messages = warning;
DROP SCHEMA privileges CASCADE;
DROP SCHEMA privileges_hidden CASCADE;
DROP ROLE regress_geonn_user, regress_geonn_owner, regress_geonn_nobody;
