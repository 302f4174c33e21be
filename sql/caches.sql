-- caches: tables of neighbours that are kept up to date
-- rooms: cache
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA caches;
SET search_path = caches, public;

CREATE TABLE obs (id integer PRIMARY KEY, lat float8, lon float8, kind text);
CREATE TABLE ref (id bigint PRIMARY KEY, lat float8, lon float8, kind text);
INSERT INTO obs SELECT i, i * 7 % 90, i * 11 % 180, 'kind ' || i % 3 FROM generate_series(1, 60) i;
INSERT INTO ref SELECT i, i * 13 % 90, i * 17 % 180, 'kind ' || i % 4 FROM generate_series(1, 24) i;

-- how many rows a cache's table has, and how many more or less than the call
CREATE FUNCTION compare(target regclass, call text, OUT rows bigint, OUT missing bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TEMP TABLE found AS SELECT obs_id, rank, ref_id, distance FROM %s', target);
    EXECUTE format('CREATE TEMP TABLE expected AS SELECT obs_id, rank, ref_id, distance FROM %s',
        replace(call, 'ROW', target::text));
    SELECT count(*) INTO rows FROM found;
    SELECT count(*) INTO missing FROM (TABLE expected EXCEPT ALL TABLE found) m;
    SELECT count(*) INTO wrong FROM (TABLE found EXCEPT ALL TABLE expected) w;
    DROP TABLE found, expected;
END $$;
-- what the last run of a cache did
CREATE FUNCTION last_run(cache text, OUT status text, OUT rows bigint, OUT inserted bigint, OUT updated bigint,
    OUT deleted bigint, OUT error text)
LANGUAGE SQL AS $$
    SELECT status, rows, inserted, updated, deleted, error FROM geonn_cache_log WHERE name = cache
    ORDER BY started DESC LIMIT 1
$$;

-- ---- made ----

SELECT geonn_cache_create('near', 'obs', 'ref', replace => 'never');
\d near
SELECT * FROM compare('near', 'geonn_nearest(''obs'', ''ref'', row_type => NULL::ROW)');
SELECT name, target, owner = current_user AS mine, obs, ref, last_start <= last_finish AS timed, status, error, mode, rows,
    rows_changed, runs, failures, schedule FROM geonn_caches;
SELECT name, status, pid = pg_backend_pid() AS mine, mode, reason, rows, inserted, updated, deleted, error FROM geonn_cache_log;

-- what a search can ask
SELECT geonn_cache_create('five', 'obs', 'ref', k => 5, max_distance => 2e6, metric => 'spheroid', keep_unmatched => true);
SELECT * FROM compare('five', 'geonn_nearest(''obs'', ''ref'', k => 5, max_distance => 2e6, metric => ''spheroid'', keep_unmatched => true, row_type => NULL::ROW)');
SELECT count(*) FILTER (WHERE ref_id IS NULL AND distance IS NULL AND rank = 1) AS unmatched FROM five;
SELECT geonn_cache_create('within', 'obs', 'ref', radius => 3e6, by => '{kind}');
SELECT * FROM compare('within', 'geonn_within(''obs'', ''ref'', 3e6, by => ''{kind}'', row_type => NULL::ROW)');
SELECT geonn_cache_create('tied', 'obs', 'ref', ties => 'all', by => '{kind}', options => '{"batch_rows": 7}');
SELECT * FROM compare('tied', 'geonn_nearest(''obs'', ''ref'', ties => ''all'', by => ''{kind}'', row_type => NULL::ROW)');
SELECT geonn_cache_create('others', 'obs', 'obs', k => 2, exclude_self => true, target => 'pg_temp.no');
SELECT geonn_cache_create('others', 'obs', 'obs', k => 2, exclude_self => true, target => 'others_of_obs');
SELECT * FROM compare('others_of_obs', 'geonn_nearest(''obs'', ''obs'', k => 2, exclude_self => true, row_type => NULL::ROW)');

-- names
CREATE SCHEMA "Sch""ema";
CREATE TABLE "Sch""ema"."Obs'" ("I d" uuid PRIMARY KEY, "La,t" float8, "L'on" float8, "k}ind" text);
INSERT INTO "Sch""ema"."Obs'" SELECT md5(id::text)::uuid, lat, lon, kind FROM obs;
SELECT geonn_cache_create('it''s "near"', '"Sch""ema"."Obs''"', 'ref', options => '{"obs_lat": "La,t", "obs_lon": "L''on"}',
    target => '"Sch""ema"."T''ar""get"');
INSERT INTO ref VALUES (100, 45, 45);
CALL geonn_refresh('it''s "near"');
SELECT * FROM compare('"Sch""ema"."T''ar""get"',
    'geonn_nearest(''"Sch""ema"."Obs''''"'', ''ref'', options => ''{"obs_lat": "La,t", "obs_lon": "L''''on"}'', row_type => NULL::ROW)');
SELECT * FROM last_run('it''s "near"');

-- ids
CREATE DOMAIN code AS text COLLATE "C" CHECK (VALUE <> '');
CREATE TABLE stations (code code PRIMARY KEY, lat float8, lon float8);
INSERT INTO stations SELECT chr(65 + id::integer % 26) || id, lat, lon FROM ref;
CREATE TABLE pings (at timestamptz, lat float8, lon float8, id numeric(10, 2) PRIMARY KEY);
INSERT INTO pings SELECT now(), lat, lon, id + 0.25 FROM obs;
SELECT geonn_cache_create('coded', 'pings', 'stations');
\d coded
UPDATE stations SET lat = lat + 3 WHERE code < 'H';
DELETE FROM pings WHERE id < 5;
INSERT INTO pings VALUES (now(), 1, 2, 1000.5);
CALL geonn_refresh('coded', 'full');
SELECT * FROM last_run('coded');
SELECT * FROM compare('coded', 'geonn_nearest(''pings'', ''stations'', row_type => NULL::ROW)');

-- what cannot be made
SELECT geonn_cache_create('near', 'obs', 'ref', target => 'near2');
SELECT geonn_cache_create('obs', 'obs', 'ref');
SELECT geonn_cache_create('', 'obs', 'ref');
SELECT geonn_cache_create(NULL, 'obs', 'ref');
SELECT geonn_cache_create('x', 'obs', 'ref', k => NULL);
SELECT geonn_cache_create('x', 'obs', 'ref', k => 0);
SELECT geonn_cache_create('x', 'obs', 'ref', k => 2, radius => 5);
SELECT geonn_cache_create('x', 'obs', 'ref', ties => 'all', radius => 5);
SELECT geonn_cache_create('x', 'obs', 'ref', max_distance => 5, radius => 5);
SELECT geonn_cache_create('x', 'obs', 'ref', metric => 'plane');
SELECT geonn_cache_create('x', 'obs', 'ref', options => '{"no": 1}');
SELECT geonn_cache_create('x', 'obs', 'nothing');
SELECT geonn_cache_create(repeat('x', 64), 'obs', 'ref');
SELECT geonn_cache_create('x', 'obs', 'ref', target => 'nowhere.x');
CREATE TABLE twice AS SELECT * FROM obs UNION ALL SELECT * FROM obs WHERE id = 9;
SELECT geonn_cache_create('x', 'twice', 'ref');
SELECT to_regclass('x') AS nothing_is_left, count(*) FROM geonn_caches WHERE name = 'x';

-- ---- refreshed ----

CALL geonn_refresh('near', 'full');
SELECT * FROM last_run('near');
UPDATE ref SET lat = lat + 5 WHERE id % 3 = 0;
DELETE FROM ref WHERE id = 7;
DELETE FROM obs WHERE id IN (1, 2);
INSERT INTO obs VALUES (1001, 10, 10, 'kind 0'), (1002, 20, NULL, 'kind 0');
CALL geonn_refresh('near');
SELECT status, rows, inserted, deleted FROM last_run('near');
SELECT * FROM compare('near', 'geonn_nearest(''obs'', ''ref'', row_type => NULL::ROW)');
CALL geonn_refresh('near');
SELECT * FROM last_run('near');
CALL geonn_refresh('five');
SELECT * FROM compare('five', 'geonn_nearest(''obs'', ''ref'', k => 5, max_distance => 2e6, metric => ''spheroid'', keep_unmatched => true, row_type => NULL::ROW)');
CALL geonn_refresh('within');
SELECT * FROM compare('within', 'geonn_within(''obs'', ''ref'', 3e6, by => ''{kind}'', row_type => NULL::ROW)');
CALL geonn_refresh('tied');
SELECT * FROM compare('tied', 'geonn_nearest(''obs'', ''ref'', ties => ''all'', by => ''{kind}'', row_type => NULL::ROW)');
CALL geonn_refresh('others');
SELECT * FROM compare('others_of_obs', 'geonn_nearest(''obs'', ''obs'', k => 2, exclude_self => true, row_type => NULL::ROW)');

-- a refresh undoes changes of the table's rows, and keeps its other columns
ALTER TABLE near ADD note text DEFAULT 'new', ADD seen boolean;
UPDATE near SET note = 'old', seen = true WHERE obs_id < 30;
DELETE FROM near WHERE obs_id = 12;
INSERT INTO near VALUES (77777, 1, 5, 1.5, 'by hand');
UPDATE near SET distance = distance + 1, ref_id = 3 WHERE obs_id = 13;
CALL geonn_refresh('near');
SELECT * FROM last_run('near');
SELECT * FROM compare('near', 'geonn_nearest(''obs'', ''ref'', row_type => NULL::record) AS n (obs_id integer, rank integer, ref_id bigint, distance float8)');
SELECT note, seen, count(*) FROM near GROUP BY 1, 2 ORDER BY 1;
TRUNCATE near;
CALL geonn_refresh('near');
SELECT * FROM last_run('near');

-- the table's own triggers see the differences
CREATE TABLE noted (what text, obs_id integer, by_whom name);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO caches.noted VALUES (TG_OP, coalesce(NEW.obs_id, OLD.obs_id), current_user);
    RETURN NEW;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON near FOR EACH ROW EXECUTE FUNCTION note();
DELETE FROM obs WHERE id = 20;
INSERT INTO obs VALUES (1003, 11, 11);
CALL geonn_refresh('near');
SELECT what, obs_id, by_whom = current_user AS by_me FROM noted ORDER BY what, obs_id;
DROP TRIGGER note ON near;

-- within a transaction all of it is the transaction's
BEGIN;
DELETE FROM obs WHERE id = 21;
CALL geonn_refresh('near');
SELECT count(*) FROM near WHERE obs_id = 21;
ROLLBACK;
SELECT count(*) FROM near WHERE obs_id = 21;

-- a failure leaves the former rows, and is logged
SELECT geonn_cache_create('doubled', 'twice', 'ref', target => 'doubled');
DELETE FROM twice WHERE ctid = (SELECT max(ctid) FROM twice WHERE id = 9);
SELECT geonn_cache_create('doubled', 'twice', 'ref');
INSERT INTO twice VALUES (9, 1, 1), (8, 2, 2), (5000, 1, 1);
CALL geonn_refresh('doubled');
CALL geonn_refresh('doubled', 'incremental');
SELECT name, status, error, runs, failures FROM geonn_caches WHERE name = 'doubled';
SELECT count(*), count(*) FILTER (WHERE obs_id = 5000) AS new FROM doubled;
BEGIN;
CALL geonn_refresh('doubled');
ROLLBACK;
CALL geonn_refresh_all();
DELETE FROM twice WHERE lat < 3 AND id < 10;
CALL geonn_refresh_all('full');
SELECT name, status, error, failures FROM geonn_caches ORDER BY name;

CALL geonn_refresh('nothing');
CALL geonn_refresh(NULL);
CALL geonn_refresh('near', 'fast');
CALL geonn_refresh('near', NULL);

-- the log keeps as much as it is told to
SET geonn.log_keep = 2;
CALL geonn_refresh('near');
CALL geonn_refresh('near');
CALL geonn_refresh('near');
SELECT count(*) FROM geonn_cache_log WHERE name = 'near';
RESET geonn.log_keep;

-- ---- altered ----

SELECT geonn_cache_alter('five', '{"name": "six", "k": 6, "max_distance": null, "keep_unmatched": false, "metric": "sphere"}');
CALL geonn_refresh('six');
SELECT * FROM compare('five', 'geonn_nearest(''obs'', ''ref'', k => 6, row_type => NULL::ROW)');
SELECT geonn_cache_alter('six', '{"radius": 2500000, "by": ["kind"]}');
CALL geonn_refresh('six');
SELECT * FROM compare('five', 'geonn_within(''obs'', ''ref'', 2.5e6, by => ''{kind}'', row_type => NULL::ROW)');
SELECT geonn_cache_alter('six', '{"k": 2, "by": null, "ties": "all"}');
CALL geonn_refresh('six');
SELECT * FROM compare('five', 'geonn_nearest(''obs'', ''ref'', k => 2, ties => ''all'', row_type => NULL::ROW)');
SELECT geonn_cache_alter('six', '{"name": "near"}');
SELECT geonn_cache_alter('six', '{"colour": "red"}');
SELECT geonn_cache_alter('six', '{"k": 2, "radius": 3}');
SELECT geonn_cache_alter('six', '{"k": 5000}');
SELECT geonn_cache_alter('six', '{"k": null}');
SELECT geonn_cache_alter('six', '{"name": null}');
SELECT geonn_cache_alter('six', '{"name": ""}');
SELECT geonn_cache_alter('six', '{"radius": 5, "max_distance": 5}');
SELECT geonn_cache_alter('six', '{"options": {"no": 1}}');
SELECT geonn_cache_alter('six', '[1]');
SELECT geonn_cache_alter('six', '{"obs": "ref"}');
SELECT geonn_cache_alter('nothing', '{}');
SELECT geonn_unschedule('six');

-- ---- arguments as geonn_cache has them ----

SELECT arguments FROM geonn_cache WHERE name = 'six';
-- with all digits, and what JSON has no number for
SET extra_float_digits = 0;
SELECT geonn_cache_alter('six', '{"max_distance": 1000000.1234567891}');
RESET extra_float_digits;
SELECT (arguments ->> 'max_distance')::float8 = 1000000.1234567891 AS exact FROM geonn_cache WHERE name = 'six';
SELECT geonn_cache_alter('six', '{"radius": "Infinity", "overlaps": null}');
SELECT arguments FROM geonn_cache WHERE name = 'six';
SELECT geonn_cache_alter('six', '{"k": "7", "by": ["kind"]}');
SELECT geonn_cache_alter('six', '{"by": "kind"}');
SELECT geonn_cache_alter('six', '{"k": 6, "by": null}');
SELECT arguments FROM geonn_cache WHERE name = 'six';
-- what is not there or NULL has its default
UPDATE geonn_cache SET arguments = '{"k": 6, "max_distance": null}' WHERE name = 'six';
CALL geonn_refresh('six');
SELECT * FROM compare('five', 'geonn_nearest(''obs'', ''ref'', k => 6, row_type => NULL::ROW)');
-- by hand, and wrong
CREATE FUNCTION by_hand(wrong jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    kept CONSTANT jsonb = (SELECT arguments FROM geonn_cache WHERE name = 'six');
    message text;
    context text;
BEGIN
    UPDATE geonn_cache SET arguments = wrong WHERE name = 'six';
    BEGIN
        CALL geonn_refresh('six');
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, context = PG_EXCEPTION_CONTEXT;
        message = message || ' (' || split_part(context, E'\n', 1) || ')';
    END;
    UPDATE geonn_cache SET arguments = kept WHERE name = 'six';
    RETURN message;
END $$;
SELECT wrong, by_hand(wrong) FROM jsonb_array_elements('[[], "x", {"kk": 1}, {"k": "many"}, {"k": [1]}, {"k": 0},
    {"k": 2, "radius": 5}, {"metric": "plane"}, {"options": 1}, {"by": "kind"}, {}]') AS w (wrong);
DROP FUNCTION by_hand;

-- ---- tables that are renamed, altered and dropped ----

ALTER TABLE obs RENAME TO observations;
ALTER TABLE observations SET SCHEMA "Sch""ema";
ALTER TABLE near RENAME TO nearest;
DELETE FROM "Sch""ema".observations WHERE id = 30;
CALL geonn_refresh('near');
SELECT target, obs, status FROM geonn_caches WHERE name = 'near';
SELECT * FROM compare('nearest', 'geonn_nearest(''"Sch""ema".observations'', ''ref'', row_type => NULL::record) AS n (obs_id integer, rank integer, ref_id bigint, distance float8)');
ALTER TABLE "Sch""ema".observations ALTER id TYPE bigint;
CALL geonn_refresh('near');
ALTER TABLE "Sch""ema".observations ALTER id TYPE integer;
ALTER TABLE "Sch""ema".observations RENAME lon TO easting;
CALL geonn_refresh('near');
ALTER TABLE "Sch""ema".observations RENAME easting TO lon;
ALTER TABLE nearest DROP distance;
CALL geonn_refresh('near');
ALTER TABLE nearest ADD distance float8;
CALL geonn_refresh('near');
SELECT * FROM last_run('near');
SELECT * FROM compare('nearest', 'geonn_nearest(''"Sch""ema".observations'', ''ref'', row_type => NULL::record) AS n (obs_id integer, rank integer, ref_id bigint, distance float8)');
ALTER TABLE nearest ALTER distance TYPE float8 USING distance + 1;
CALL geonn_refresh('near');
SELECT * FROM last_run('near');
VACUUM FULL nearest;
CALL geonn_refresh('near');
SELECT * FROM last_run('near');
ALTER TABLE nearest DROP CONSTRAINT near_pkey;
INSERT INTO nearest SELECT * FROM nearest WHERE obs_id < 20;
CALL geonn_refresh('near');
DELETE FROM nearest;
ALTER TABLE nearest ADD PRIMARY KEY (obs_id, rank);
CALL geonn_refresh('near');
SELECT * FROM compare('nearest', 'geonn_nearest(''"Sch""ema".observations'', ''ref'', row_type => NULL::record) AS n (obs_id integer, rank integer, ref_id bigint, distance float8)');
DROP TABLE twice;
CALL geonn_refresh('doubled');
SELECT geonn_cache_drop('doubled');
DROP TABLE within;
CALL geonn_refresh('within');
SELECT count(*) FROM geonn_caches WHERE name = 'within';
SELECT geonn_cache_drop('six', keep_table => true);
INSERT INTO five SELECT obs_id, 1000, ref_id, distance FROM five LIMIT 1;
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'five'::regclass;
CREATE VIEW uses AS SELECT * FROM tied;
SELECT geonn_cache_drop('tied');
DROP VIEW uses;
SELECT geonn_cache_drop('tied');
SELECT geonn_cache_drop('tied');
SELECT count(*) AS left_over FROM geonn_cache_run r WHERE NOT EXISTS (SELECT FROM geonn_cache c WHERE c.id = r.cache);

-- ---- privileges ----

CREATE ROLE regress_keeper;
CREATE ROLE regress_other;
CREATE ROLE regress_watcher IN ROLE pg_read_all_stats;
GRANT USAGE ON SCHEMA caches TO regress_keeper, regress_other, regress_watcher;
GRANT CREATE ON SCHEMA caches TO regress_keeper, regress_other;
CREATE TABLE own (id integer PRIMARY KEY, lat float8, lon float8, keeper name);
INSERT INTO own SELECT i, i, i, CASE WHEN i % 2 = 0 THEN 'regress_keeper' ELSE 'regress_other' END FROM generate_series(1, 10) i;

SET ROLE regress_keeper;
SELECT geonn_cache_create('kept', 'own', 'ref');
RESET ROLE;
GRANT SELECT ON own, ref TO regress_keeper;
ALTER TABLE own ENABLE ROW LEVEL SECURITY;
CREATE POLICY keep ON own USING (keeper = current_user);
SET ROLE regress_keeper;
SELECT geonn_cache_create('kept', 'own', 'ref');
SELECT name, owner FROM geonn_caches;
SELECT DISTINCT name FROM geonn_cache_log;
SELECT name FROM geonn_cache;
SELECT count(*), min(obs_id % 2), max(obs_id % 2) FROM kept;
RESET ROLE;
-- the rows are those that the owner may see, whichever role refreshes
CALL geonn_refresh('kept', 'full');
SELECT * FROM last_run('kept');
CALL geonn_refresh('kept');
SELECT * FROM last_run('kept');
-- policies of the cache's own table, which its owner has to follow where they are forced
ALTER TABLE kept ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
UPDATE own SET lat = lat + 0.1;
CALL geonn_refresh('kept');
ALTER TABLE kept NO FORCE ROW LEVEL SECURITY;
CALL geonn_refresh('kept');
ALTER TABLE kept DISABLE ROW LEVEL SECURITY;
UPDATE own SET lat = id;
CALL geonn_refresh('kept');

SET ROLE regress_other;
SELECT name FROM geonn_caches;
SELECT name FROM geonn_cache_log;
CALL geonn_refresh('kept');
SELECT geonn_cache_alter('kept', '{"k": 2}');
SELECT geonn_cache_drop('kept');
SELECT geonn_schedule('kept', '* * * * *');
SELECT geonn_unschedule('kept');
CALL geonn_refresh_all();
SELECT * FROM kept;
SET ROLE regress_watcher;
SELECT name, owner, rows FROM geonn_caches WHERE name = 'kept';
CALL geonn_refresh('kept');
RESET ROLE;
GRANT regress_keeper TO regress_other;
SET ROLE regress_other;
CALL geonn_refresh('kept');
RESET ROLE;
REVOKE regress_keeper FROM regress_other;

-- what the owner may no longer read
REVOKE SELECT ON ref FROM regress_keeper;
CALL geonn_refresh('kept');
SELECT * FROM last_run('kept');
GRANT SELECT ON ref TO regress_keeper;

-- code of the owner runs as the owner, and cannot change the session
SET ROLE regress_keeper;
CREATE FUNCTION sneak() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE 'the trigger runs as %', current_user;
    PERFORM set_config('role', 'none', false);
    RETURN NEW;
END $$;
CREATE TRIGGER sneak AFTER INSERT ON kept FOR EACH ROW EXECUTE FUNCTION sneak();
RESET ROLE;
INSERT INTO own VALUES (12, 12, 12, 'regress_keeper');
CALL geonn_refresh('kept');
DROP TRIGGER sneak ON kept;

-- operators and functions of the caller are not those of the extension
CREATE SCHEMA regress_other AUTHORIZATION regress_other;
SET ROLE regress_other;
CREATE FUNCTION regress_other.spy(text, text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE WARNING 'this runs as %', current_user;
    RETURN $1 OPERATOR(pg_catalog.=) $2;
END $$;
CREATE FUNCTION regress_other.spy(integer, integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE WARNING 'this runs as %', current_user;
    RETURN $1 OPERATOR(pg_catalog.=) $2;
END $$;
CREATE FUNCTION regress_other.count(text) RETURNS boolean LANGUAGE SQL AS 'SELECT true';
CREATE OPERATOR regress_other.= (FUNCTION = regress_other.spy, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR regress_other.= (FUNCTION = regress_other.spy, LEFTARG = integer, RIGHTARG = integer);
CREATE TABLE regress_other.geonn_cache (id integer, name text);
CREATE TABLE regress_other.o (id integer PRIMARY KEY, lat float8, lon float8);
INSERT INTO regress_other.o VALUES (1, 2, 3), (2, 3, 4);
SET search_path = regress_other, pg_catalog, public;
SELECT geonn_cache_create('spied', 'o', 'o', exclude_self => true);
INSERT INTO o VALUES (3, 4, 5);
CALL geonn_refresh('spied');
CALL geonn_refresh('spied', 'full');
CALL geonn_refresh_all();
SELECT geonn_cache_alter('spied', '{"name": "spied on"}');
SELECT geonn_unschedule('spied on');
UPDATE spied SET distance = 1;
SELECT pg_catalog.count(*) FROM geonn_caches;
SELECT pg_catalog.count(*) FROM geonn_cache_log;
SELECT geonn_cache_drop('spied on');
RESET ROLE;
SET search_path = caches, public;

-- once made, the table is read for its key's index alone
BEGIN;
CREATE TABLE few AS SELECT i AS id, i::float8 AS lat, i::float8 AS lon FROM generate_series(1, 3) i;
SELECT geonn_cache_create('read once', 'few', 'few', target => 'caches.read_once');
SELECT pg_stat_get_xact_numscans('read_once'::regclass);
ROLLBACK;

-- ---- gone ----

SET client_min_messages = warning;
SELECT geonn_cache_drop(name) FROM geonn_caches;
SELECT count(*) FROM geonn_cache_run;
DROP SCHEMA caches, regress_other, "Sch""ema" CASCADE;
DROP ROLE regress_keeper, regress_other, regress_watcher;
