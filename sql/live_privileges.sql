-- A session that knows a table's rows by a base answers only where the role, as it is now, may read all of them.
-- rooms: live
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
DROP ROLE IF EXISTS regress_geonn_reader, regress_geonn_group;
RESET client_min_messages;
CREATE ROLE regress_geonn_reader;
CREATE ROLE regress_geonn_group;
-- a session that is to search on a GPU has no base
SET geonn.device = auto;
CREATE SCHEMA live_privileges;
SET search_path = live_privileges, public;
GRANT USAGE ON SCHEMA live_privileges TO regress_geonn_reader;
CREATE TABLE ref (id integer PRIMARY KEY, lat float8, lon float8, note text) WITH (autovacuum_enabled = off);
INSERT INTO ref SELECT i, i % 90, i % 180 FROM generate_series(1, 1000) i;

-- what answers the role's calls once a base is made, and how many rows one has
CREATE FUNCTION answer() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	source text := 'the engine';
BEGIN
	FOR i IN 1 .. 50 LOOP
		PERFORM geonn_nearest_points('{1}', '{1}', 'live_privileges.ref');
	END LOOP;
	FOR line IN EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM geonn_nearest_points('{1}', '{1}', 'live_privileges.ref') LOOP
		source := CASE WHEN line LIKE '%Pages Read%' THEN 'a base' ELSE source END;
	END LOOP;
	RETURN format('%s rows by %s', (SELECT count(*) FROM geonn_nearest_points('{1}', '{1}', 'live_privileges.ref', 1024)), source);
EXCEPTION WHEN insufficient_privilege THEN
	RETURN SQLERRM;
END $$;
CREATE FUNCTION lent() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT live_privileges.answer()';

SELECT answer();
SET ROLE regress_geonn_reader;
SELECT answer();
SELECT lent();
SELECT answer();
RESET ROLE;

-- the table, its columns, a group and the schema
GRANT SELECT ON ref TO regress_geonn_reader;
SET ROLE regress_geonn_reader; SELECT answer(); RESET ROLE;
REVOKE SELECT ON ref FROM regress_geonn_reader;
SET ROLE regress_geonn_reader; SELECT answer(); RESET ROLE;
GRANT SELECT (id, lat, lon) ON ref TO regress_geonn_reader;
SET ROLE regress_geonn_reader; SELECT answer(); RESET ROLE;
REVOKE SELECT (lon) ON ref FROM regress_geonn_reader;
SET ROLE regress_geonn_reader; SELECT answer(); RESET ROLE;
GRANT SELECT ON ref TO regress_geonn_group;
GRANT regress_geonn_group TO regress_geonn_reader;
SET ROLE regress_geonn_reader; SELECT answer(); RESET ROLE;
REVOKE USAGE ON SCHEMA live_privileges FROM regress_geonn_reader;
SELECT 'ref'::regclass::oid AS ref \gset
SET ROLE regress_geonn_reader;
SELECT count(*) FROM geonn_nearest_points('{1}', '{1}', :ref::regclass, 1024);
RESET ROLE;
GRANT USAGE ON SCHEMA live_privileges TO regress_geonn_reader;
REVOKE regress_geonn_group FROM regress_geonn_reader;
SET ROLE regress_geonn_reader; SELECT answer(); RESET ROLE;
GRANT regress_geonn_group TO regress_geonn_reader;
SET ROLE regress_geonn_reader; SELECT answer(); RESET ROLE;

-- row-level security, for a reader, with row_security off, for the owner, forced and not
ALTER TABLE ref ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON ref USING (id > 990);
SELECT answer();
SET ROLE regress_geonn_reader;
SELECT answer();
SELECT lent();
SET row_security = off;
SELECT answer();
RESET row_security;
RESET ROLE;
ALTER TABLE ref OWNER TO regress_geonn_reader;
SET ROLE regress_geonn_reader; SELECT answer(); RESET ROLE;
ALTER TABLE ref FORCE ROW LEVEL SECURITY;
SET ROLE regress_geonn_reader; SELECT answer(); RESET ROLE;
ALTER TABLE ref NO FORCE ROW LEVEL SECURITY;
SET ROLE regress_geonn_reader; SELECT answer(); RESET ROLE;
ALTER TABLE ref OWNER TO CURRENT_USER;
SET ROLE regress_geonn_reader; SELECT answer(); RESET ROLE;
ALTER TABLE ref DISABLE ROW LEVEL SECURITY;
SET ROLE regress_geonn_reader; SELECT answer(); RESET ROLE;

-- what the table is: a child, a parent no more, other columns
CREATE TABLE child () INHERITS (ref);
INSERT INTO child VALUES (2000, 1, 1);
SELECT answer();
DROP TABLE child;
SELECT answer();
ALTER TABLE ref RENAME lat TO former;
ALTER TABLE ref ADD lat float8 DEFAULT 1;
SELECT answer(), ref_id FROM geonn_nearest_points('{1}', '{90}', 'ref');

-- a view is read with its owner's privileges, and the table behind it is not open for that
REVOKE ALL ON ref FROM regress_geonn_group;
CREATE VIEW shown AS SELECT id, lat, lon FROM ref;
GRANT SELECT ON shown TO regress_geonn_reader;
SET ROLE regress_geonn_reader;
SELECT count(*) FROM geonn_nearest_points('{1}', '{1}', 'shown', 1024);
SELECT answer();
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA live_privileges CASCADE;
DROP ROLE regress_geonn_reader, regress_geonn_group;
