-- caches: a cache goes with its table, whichever command drops that
-- rooms: cache
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA cache_drops;
SET search_path = cache_drops, public;

CREATE TABLE obs (id integer PRIMARY KEY, lat float8, lon float8);
INSERT INTO obs SELECT i, i * 7 % 90, i * 11 % 180 FROM generate_series(1, 60) i;

-- caches and what the extension's tables have of any that is gone
CREATE FUNCTION caches() RETURNS text LANGUAGE SQL AS $$
    SELECT concat_ws(' ', (SELECT string_agg(name, ' ' ORDER BY name) FROM geonn_cache),
        (SELECT 'and left over: ' || string_agg(DISTINCT cache::text, ' ')
         FROM (SELECT cache FROM geonn_cache_run UNION ALL SELECT cache FROM geonn_cache_total
               UNION ALL SELECT cache FROM geonn_cache_last_run UNION ALL SELECT cache FROM geonn_cache_block
               UNION ALL SELECT cache FROM geonn_cache_directory UNION ALL SELECT cache FROM geonn_cache_page) x
         WHERE NOT EXISTS (SELECT FROM geonn_cache c WHERE c.id = x.cache)))
$$;
CREATE FUNCTION make(target text) RETURNS regclass LANGUAGE plpgsql AS $$
BEGIN
    RETURN public.geonn_cache_create(target, 'cache_drops.obs', 'cache_drops.obs', k => 2, target => target);
END $$;
CREATE ROLE regress_keeper;
GRANT ALL ON SCHEMA cache_drops TO regress_keeper;
GRANT SELECT ON obs TO regress_keeper;

SELECT make('stays');
SELECT make('a'), make('b');
CALL geonn_refresh_all('full');
DROP TABLE a;
SELECT caches();
CREATE TABLE c ();
DROP TABLE c, b;
SELECT caches();

-- by its owner, without privileges on the extension's tables
SET ROLE regress_keeper;
SELECT make('own');
CALL geonn_refresh('own', 'full');
SELECT name FROM geonn_cache;
DROP TABLE own;
RESET ROLE;
SELECT caches();

-- with its schema, its owner, or a table that it is a part of
CREATE SCHEMA cache_drops_more;
SELECT make('cache_drops_more.a'), make('cache_drops_more.b');
DROP SCHEMA cache_drops_more CASCADE;
SELECT caches();
SET ROLE regress_keeper;
SELECT make('own'), make('own_too');
RESET ROLE;
SELECT caches();
DROP OWNED BY regress_keeper;
SELECT caches();
GRANT ALL ON SCHEMA cache_drops TO regress_keeper;
GRANT SELECT ON obs TO regress_keeper;
SELECT make('part');
CREATE TABLE whole (LIKE part) PARTITION BY LIST (rank);
ALTER TABLE whole ATTACH PARTITION part DEFAULT;
CALL geonn_refresh('part');
ALTER TABLE whole DETACH PARTITION part;
CALL geonn_refresh('part');
SELECT caches();
ALTER TABLE whole ATTACH PARTITION part DEFAULT;
DROP TABLE whole;
SELECT caches();
SELECT make('child');
CREATE TABLE parent (obs_id integer NOT NULL);
ALTER TABLE child INHERIT parent;
DROP TABLE parent CASCADE;
SELECT caches();

-- by a function, and by a trigger that drops more; back with its transaction
SELECT make('a'), make('b');
CREATE FUNCTION drop_a() RETURNS void LANGUAGE SQL AS 'DROP TABLE cache_drops.a';
BEGIN;
SELECT drop_a();
SELECT caches();
ROLLBACK;
SELECT caches();
CALL geonn_refresh('a');
SELECT drop_a();
SELECT caches();
BEGIN;
SAVEPOINT s;
DROP TABLE b;
ROLLBACK TO s;
COMMIT;
SELECT caches();

-- in sessions that fire no ordinary triggers, and in transactions with an old snapshot
SET session_replication_role = replica;
DROP TABLE b;
RESET session_replication_role;
SELECT caches();
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT make('a');
DROP TABLE a;
SELECT caches();
COMMIT;
SELECT caches();
-- of which parts are dropped, or altered, and others with it
ALTER TABLE stays ADD note text;
ALTER TABLE stays DROP note;
CREATE INDEX stays_distance ON stays (distance);
DROP INDEX stays_distance;
CREATE TEMP TABLE stays_not (id integer);
DROP TABLE stays_not;
CREATE VIEW on_stays AS TABLE stays;
DROP VIEW on_stays;
CREATE FUNCTION f() RETURNS integer LANGUAGE SQL AS 'SELECT 1';
DROP FUNCTION f();
SELECT caches();
DROP TABLE stays CASCADE;
SELECT caches();

-- what it observes is dropped: the cache stays, and its refresh says so
CREATE TABLE more AS TABLE obs;
SELECT geonn_cache_create('orphan', 'more', 'obs');
DROP TABLE more;
SELECT caches();
CALL geonn_refresh('orphan');
SELECT count(*) FROM orphan;
DROP TABLE orphan;

-- a cache whose table is gone all the same is for the extension's owner
SET ROLE regress_keeper;
SELECT make('gone'), make('gone_too');
RESET ROLE;
ALTER EVENT TRIGGER geonn_cache_dropped DISABLE;
DROP TABLE gone, gone_too;
ALTER EVENT TRIGGER geonn_cache_dropped ENABLE ALWAYS;
SET ROLE regress_keeper;
SELECT geonn_cache_alter('gone', '{"name": "renamed"}');
SELECT geonn_cache_drop('gone');
SELECT geonn_unschedule('gone');
SELECT geonn_schedule('gone', '* * * * *');
CALL geonn_refresh('gone');
CALL geonn_refresh_all();
RESET ROLE;
CALL geonn_refresh('gone');
SELECT geonn_cache_alter('gone', '{"k": 2}');
SELECT geonn_cache_drop('gone'), geonn_cache_drop('gone_too', keep_table => true);
SELECT caches();

-- or goes with whatever is dropped next
SELECT make('gone');
ALTER EVENT TRIGGER geonn_cache_dropped DISABLE;
DROP TABLE gone;
ALTER EVENT TRIGGER geonn_cache_dropped ENABLE ALWAYS;
SELECT caches();
SET ROLE regress_keeper;
CREATE TEMP TABLE of_keeper ();
DROP TABLE of_keeper;
RESET ROLE;
SELECT caches();

-- the function is an event trigger's alone
SELECT geonn_cache_dropped();

-- the extension's own tables, and caches with them
BEGIN;
SELECT make('a');
CREATE TABLE b (id integer);
-- and pg_cron in another database may be worth a warning
SET LOCAL client_min_messages = error;
DROP EXTENSION geonn CASCADE;
DROP TABLE b;
SELECT count(*) FROM a;
DROP TABLE a;
ROLLBACK;

SET client_min_messages = warning;
DROP SCHEMA cache_drops CASCADE;
DROP ROLE regress_keeper;
