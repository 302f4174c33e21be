-- caches: where most rows differ, a new table's files take the place of the table's, unless something hinders it
-- rooms: cache
\pset format unaligned \pset footer off
SET client_min_messages = error;
CREATE EXTENSION IF NOT EXISTS geonn;
\set SHOW_CONTEXT never
CREATE SCHEMA cache_replace;
SET search_path = cache_replace, public;

CREATE TABLE obs (id integer PRIMARY KEY, lat float8, lon float8);
CREATE TABLE ref (id integer PRIMARY KEY, lat float8, lon float8);
INSERT INTO obs SELECT i, i * 7 % 90, i * 11 % 180 FROM generate_series(1, 400) i;
INSERT INTO ref SELECT i, i * 13 % 80, i * 17 % 170 FROM generate_series(1, 100) i;
VACUUM obs, ref;
SELECT geonn_cache_create('near', 'obs', 'ref', k => 2, replace => 'sometimes');
SELECT geonn_cache_create('near', 'obs', 'ref', k => 2, replace => NULL);
SELECT geonn_cache_create('near', 'obs', 'ref', k => 2);

CREATE FUNCTION wrong() RETURNS bigint LANGUAGE SQL AS $$
    SELECT count(*) FROM cache_replace.near t
        FULL JOIN geonn_nearest('cache_replace.obs', 'cache_replace.ref', k => 2, row_type => NULL::record)
            AS n (obs_id integer, rank integer, ref_id integer, distance float8) USING (obs_id, rank)
    WHERE (t.ref_id, t.distance) IS DISTINCT FROM (n.ref_id, n.distance)
$$;
CREATE FUNCTION files() RETURNS oid[] LANGUAGE SQL AS $$
    SELECT array_agg(pg_relation_filenode(c) ORDER BY c)
    FROM (SELECT indexrelid AS c FROM pg_index WHERE indrelid = 'cache_replace.near'::regclass
        UNION SELECT 'cache_replace.near'::regclass) c
$$;
-- what a refresh does; all references have moved before
CREATE PROCEDURE refresh(how text, OUT reason text, OUT inserted bigint, OUT files text, OUT wrong bigint) LANGUAGE plpgsql AS $$
DECLARE
    former oid[] = cache_replace.files();
    latter oid[];
BEGIN
    IF how <> 'unchanged' THEN
        UPDATE cache_replace.ref SET lat = lat + 0.001;
    END IF;
    CALL geonn_refresh('near', CASE how WHEN 'full' THEN 'full' ELSE 'auto' END);
    SELECT l.reason, l.inserted INTO reason, inserted FROM geonn_cache_log l WHERE name = 'near' ORDER BY started DESC LIMIT 1;
    latter = cache_replace.files();
    files = CASE WHEN latter = former THEN 'same' WHEN latter && former THEN 'some are new' ELSE 'new' END;
    wrong = cache_replace.wrong();
END $$;

-- ---- what belongs to the table stays ----

CREATE VIEW viewed AS SELECT * FROM near WHERE rank = 1;
CREATE INDEX near_by_reference ON near (ref_id, distance DESC) INCLUDE (rank);
CREATE INDEX near_by_expression ON near ((obs_id % 10)) WHERE rank = 1;
CREATE INDEX near_blocks ON near USING brin (obs_id) WITH (pages_per_range = 2);
CREATE STATISTICS near_statistics ON ref_id, rank FROM near;
ANALYZE near;
COMMENT ON TABLE near IS 'neighbours';
COMMENT ON INDEX near_by_reference IS 'by reference';
CREATE ROLE regress_replace_reader;
GRANT SELECT ON near TO regress_replace_reader;
GRANT USAGE ON SCHEMA cache_replace TO regress_replace_reader;
ALTER TABLE near SET (fillfactor = 80, autovacuum_enabled = off);
ALTER TABLE near ALTER distance SET STATISTICS 7;
CLUSTER near USING near_by_reference;
ALTER TABLE near REPLICA IDENTITY USING INDEX near_pkey;
CREATE VIEW belongings AS
    SELECT c.oid, c.relname, c.relowner, c.relacl, c.reloptions, c.relreplident, c.reltype, c.reltablespace, obj_description(c.oid) AS comment,
        (SELECT array_agg((attname, attstattarget)::text ORDER BY attnum) FROM pg_attribute a WHERE attrelid = c.oid) AS columns,
        (SELECT array_agg((stainherit, staattnum, stadistinct)::text ORDER BY staattnum) FROM pg_statistic s WHERE starelid = c.oid) AS statistics,
        (SELECT (to_jsonb(i) - 'indcheckxmin')::text FROM pg_index i WHERE indexrelid = c.oid) AS index
    FROM pg_class c WHERE relnamespace = 'cache_replace'::regnamespace AND relname LIKE 'near%';
CREATE TEMP TABLE former AS TABLE belongings;
VACUUM obs, ref;
CALL geonn_refresh('near', 'full');
CALL refresh('auto', NULL, NULL, NULL, NULL);
SELECT count(*) AS differences FROM (
    (TABLE former EXCEPT ALL TABLE belongings) UNION ALL (TABLE belongings EXCEPT ALL TABLE former)) d;
SELECT count(*) FROM former;
SELECT count(*) FROM viewed;
SET ROLE regress_replace_reader;
SELECT count(*) FROM near;
RESET ROLE;
SELECT relname, reltuples, relpages > 0 AS pages, relallvisible = relpages AS visible FROM pg_class
WHERE relnamespace = 'cache_replace'::regnamespace AND relname LIKE 'near%' AND reltype > 0;
SELECT relname, reltuples > 0 AS tuples FROM pg_class
WHERE relnamespace = 'cache_replace'::regnamespace AND relname LIKE 'near%' AND reltype = 0 ORDER BY 1;
SELECT count(*) AS left_over FROM pg_class WHERE relname LIKE 'pg\_temp\_%';
-- its indexes are those of the new rows
SET enable_seqscan = off;
SELECT count(*) FROM near WHERE obs_id = 17;
SELECT count(*) FROM near WHERE obs_id % 10 = 3 AND rank = 1;
SELECT (SELECT count(*) FROM near WHERE ref_id = 5) = (SELECT count(*) FROM near WHERE ref_id + 0 = 5) AS same;
RESET enable_seqscan;
INSERT INTO near VALUES (17, 1, 1, 1);

-- ---- when ----

-- nothing has changed since
VACUUM obs, ref;
CALL refresh('auto', NULL, NULL, NULL, NULL);
VACUUM obs, ref;
CALL refresh('unchanged', NULL, NULL, NULL, NULL);
CALL refresh('unchanged', NULL, NULL, NULL, NULL);
SELECT mode FROM geonn_cache_log WHERE name = 'near' ORDER BY started DESC LIMIT 2;
-- a full refresh that is asked for may find few differences
CALL refresh('full', NULL, NULL, NULL, NULL);
-- what others change is unknown
DELETE FROM near WHERE obs_id < 10;
CALL refresh('auto', NULL, NULL, NULL, NULL);
-- within a transaction, also one that has changed the table
SELECT geonn_cache_alter('near', '{"replace": "always"}');
BEGIN;
DELETE FROM near WHERE obs_id = 10;
CALL refresh('auto', NULL, NULL, NULL, NULL);
CALL refresh('auto', NULL, NULL, NULL, NULL);
SELECT wrong();
ROLLBACK;
CALL refresh('auto', NULL, NULL, NULL, NULL);
BEGIN;
SAVEPOINT before;
CALL refresh('auto', NULL, NULL, NULL, NULL);
ROLLBACK TO before;
CALL refresh('auto', NULL, NULL, NULL, NULL);
COMMIT;
SELECT wrong();
SELECT geonn_cache_alter('near', '{"replace": "auto"}');

SELECT geonn_cache_alter('near', '{"replace": "often"}');
SELECT geonn_cache_alter('near', '{"replace": null}');
SELECT geonn_cache_alter('near', '{"replace": "never"}');
CALL refresh('full', NULL, NULL, NULL, NULL);
CALL refresh('auto', NULL, NULL, NULL, NULL);
SELECT geonn_cache_alter('near', '{"replace": "always"}');
CALL refresh('auto', NULL, NULL, NULL, NULL);
CALL refresh('full', NULL, NULL, NULL, NULL);
SELECT geonn_cache_alter('near', '{"replace": "auto"}');
CALL refresh('full', NULL, NULL, NULL, NULL);

-- ---- what hinders it ----

-- Does something hinder a refresh?  With 'auto' rows are updated; with 'always' the refresh may fail.
CREATE PROCEDURE hindered(OUT auto text, OUT auto_files text, OUT always text, OUT always_files text, OUT wrong bigint) LANGUAGE plpgsql AS $$
DECLARE
    same bigint;
BEGIN
    CALL cache_replace.refresh('auto', auto, same, auto_files, wrong);
    PERFORM geonn_cache_alter('near', '{"replace": "always"}');
    BEGIN
        CALL cache_replace.refresh('full', always, same, always_files, wrong);
    EXCEPTION WHEN OTHERS THEN
        always = SQLSTATE || ' ' || SQLERRM;
    END;
    PERFORM geonn_cache_alter('near', '{"replace": "auto"}');
    CALL geonn_refresh('near', 'full');
END $$;

ALTER TABLE near ADD note text;
CALL hindered(NULL, NULL, NULL, NULL, NULL);
ALTER TABLE near DROP note;
CALL hindered(NULL, NULL, NULL, NULL, NULL);
ALTER TABLE near ADD twice float8 GENERATED ALWAYS AS (distance * 2) STORED;
CALL hindered(NULL, NULL, NULL, NULL, NULL);
ALTER TABLE near DROP twice;
ALTER TABLE near ADD CHECK (distance >= 0);
CALL hindered(NULL, NULL, NULL, NULL, NULL);
ALTER TABLE near DROP CONSTRAINT near_distance_check;
ALTER TABLE near ADD CONSTRAINT overlapping EXCLUDE USING btree (obs_id WITH =, rank WITH =);
CALL hindered(NULL, NULL, NULL, NULL, NULL);
ALTER TABLE near DROP CONSTRAINT overlapping;
ALTER TABLE near ADD CONSTRAINT own_reference FOREIGN KEY (obs_id) REFERENCES obs;
CALL hindered(NULL, NULL, NULL, NULL, NULL);
ALTER TABLE near DROP CONSTRAINT own_reference;
CREATE TABLE noted (obs_id integer, rank integer, FOREIGN KEY (obs_id, rank) REFERENCES near);
CALL hindered(NULL, NULL, NULL, NULL, NULL);
DROP TABLE noted;
CREATE TABLE parent (obs_id integer);
ALTER TABLE near INHERIT parent;
CALL hindered(NULL, NULL, NULL, NULL, NULL);
ALTER TABLE near NO INHERIT parent;
DROP TABLE parent;
ALTER TABLE near ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CALL hindered(NULL, NULL, NULL, NULL, NULL);
ALTER TABLE near NO FORCE ROW LEVEL SECURITY;
CALL hindered(NULL, NULL, NULL, NULL, NULL);
ALTER TABLE near DISABLE ROW LEVEL SECURITY;
CREATE UNIQUE INDEX CONCURRENTLY once ON near (rank);
CALL hindered(NULL, NULL, NULL, NULL, NULL);
-- the error says what to do
SELECT geonn_cache_alter('near', '{"replace": "always"}');
CALL geonn_refresh('near', 'full');
DROP INDEX once;
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL geonn_refresh('near', 'full');
ROLLBACK;
SELECT 'pg_temp_' || 'near'::regclass::oid AS other \gset
CREATE TYPE :other AS ENUM ();
DO $$
DECLARE
    hint text;
BEGIN
    CALL geonn_refresh('near', 'full');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RAISE EXCEPTION '%', regexp_replace(SQLERRM, '\d+', 'N') USING HINT = hint;
END $$;
DROP TYPE :other;
SELECT geonn_cache_alter('near', '{"replace": "auto"}');
CALL geonn_refresh('near', 'full');
BEGIN;
DECLARE open CURSOR FOR SELECT obs_id FROM near;
FETCH open;
CALL hindered(NULL, NULL, NULL, NULL, NULL);
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL hindered(NULL, NULL, NULL, NULL, NULL);
COMMIT;
SELECT 'pg_temp_' || 'near'::regclass::oid AS other \gset
CREATE TABLE :other ();
CALL geonn_refresh('near', 'full');
UPDATE ref SET lat = lat + 0.001;
CALL geonn_refresh('near');
SELECT replace(reason, :'other', 'pg_temp_N') AS reason FROM geonn_cache_log WHERE name = 'near' ORDER BY started DESC LIMIT 1;
DROP TABLE :other;

-- these would only not hear of the new rows
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER hears AFTER UPDATE ON near EXECUTE FUNCTION nothing();
CALL hindered(NULL, NULL, NULL, NULL, NULL);
ALTER TABLE near DISABLE TRIGGER hears;
CALL hindered(NULL, NULL, NULL, NULL, NULL);
DROP TRIGGER hears ON near;
CREATE TRIGGER hears AFTER TRUNCATE ON near EXECUTE FUNCTION nothing();
CALL hindered(NULL, NULL, NULL, NULL, NULL);
DROP TRIGGER hears ON near;
CREATE RULE hears AS ON DELETE TO near DO ALSO NOTHING;
CALL hindered(NULL, NULL, NULL, NULL, NULL);
DROP RULE hears ON near;
CREATE PUBLICATION sends FOR TABLE near;
CALL hindered(NULL, NULL, NULL, NULL, NULL);
DROP PUBLICATION sends;
CREATE PUBLICATION sends FOR TABLES IN SCHEMA cache_replace;
CALL hindered(NULL, NULL, NULL, NULL, NULL);
DROP PUBLICATION sends;

-- ---- rows that do not fit ----

-- the same error as from an update
CREATE UNIQUE INDEX once_a_distance ON near (ref_id, distance, obs_id);
CALL hindered(NULL, NULL, NULL, NULL, NULL);
DROP INDEX once_a_distance;
CREATE TABLE doubled AS SELECT id, lat, lon FROM obs;
SELECT geonn_cache_create('twice', 'doubled', 'ref', replace => 'always');
INSERT INTO doubled SELECT * FROM doubled WHERE id = 7;
CALL geonn_refresh('twice', 'full');
DELETE FROM doubled WHERE id = 7;
CREATE UNIQUE INDEX alone ON twice (obs_id);
INSERT INTO ref SELECT 1000, lat, lon FROM ref WHERE id = 1;
SELECT geonn_cache_alter('twice', '{"k": 2}');
CALL geonn_refresh('twice', 'full');
DROP INDEX alone;
CALL geonn_refresh('twice', 'full');
SELECT reason, rows = (SELECT count(*) FROM twice) AS all_rows FROM geonn_cache_log WHERE name = 'twice' ORDER BY started DESC LIMIT 1;
DELETE FROM ref WHERE id = 1000;
-- an observation without neighbours, and a column that does not take it
SELECT geonn_cache_create('kept', 'obs', 'ref', max_distance => 1000, keep_unmatched => true, replace => 'always');
CALL geonn_refresh('kept', 'full');
SELECT reason FROM geonn_cache_log WHERE name = 'kept' ORDER BY started DESC LIMIT 1;
DELETE FROM kept WHERE ref_id IS NULL;
ALTER TABLE kept ALTER ref_id SET NOT NULL;
CALL geonn_refresh('kept', 'full');
ALTER TABLE kept ALTER ref_id DROP NOT NULL;

-- ---- part of a transaction ----

-- 'auto' updates rows where readers would wait for more than the refresh, and 'always' replaces
SELECT geonn_cache_create('part', 'obs', 'ref');
UPDATE ref SET lat = lat + 0.01;
BEGIN;
CALL geonn_refresh('part');
COMMIT;
SELECT reason FROM geonn_cache_log WHERE name = 'part' ORDER BY started DESC LIMIT 1;
SELECT geonn_cache_alter('part', '{"replace": "always"}');
BEGIN;
CALL geonn_refresh('part', 'full');
COMMIT;
SELECT reason FROM geonn_cache_log WHERE name = 'part' ORDER BY started DESC LIMIT 1;
SELECT geonn_cache_drop('part');

-- a view's function that refreshes the cache again
CREATE TABLE again_begun ();
CREATE FUNCTION refresh_again() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM cache_replace.again_begun) THEN
        CALL public.geonn_refresh('again', 'full');
    END IF;
    RETURN true;
END $$;
CREATE VIEW again_obs AS SELECT id, lat, lon FROM obs WHERE id <> 1 OR refresh_again();
SELECT geonn_cache_create('again', 'again_obs', 'ref', replace => 'always');
INSERT INTO again_begun DEFAULT VALUES;
\set VERBOSITY terse
CALL geonn_refresh('again', 'full');
\set VERBOSITY default
SELECT geonn_cache_drop('again');

-- ---- long ids ----

-- they are in the TOAST table, which gets the table's name
CREATE TABLE long_obs AS SELECT repeat(md5(id::text), 70) || id AS id, lat, lon FROM obs WHERE id <= 20;
CREATE TABLE long_ref AS SELECT (SELECT string_agg(md5(id::text || i), '') FROM generate_series(1, 300) i) AS id, lat, lon FROM ref WHERE id <= 10;
SELECT geonn_cache_create('long', 'long_obs', 'long_ref', replace => 'always');
CREATE FUNCTION long_wrong() RETURNS bigint LANGUAGE SQL AS $$
    SELECT count(*) FROM cache_replace.long t
        FULL JOIN geonn_nearest('cache_replace.long_obs', 'cache_replace.long_ref', row_type => NULL::cache_replace.long) AS n USING (obs_id, rank)
    WHERE (t.ref_id, t.distance) IS DISTINCT FROM (n.ref_id, n.distance)
$$;
CREATE VIEW toast AS SELECT t.oid::regclass::text = 'pg_toast.pg_toast_' || c.oid AS name, t.relrewrite,
        (SELECT array_agg(indexrelid::regclass::text = 'pg_toast.pg_toast_' || c.oid || '_index') FROM pg_index WHERE indrelid = t.oid) AS index,
        pg_relation_size(t.oid) > 0 AS used
    FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid WHERE c.oid = 'long'::regclass;
TABLE toast;
CALL geonn_refresh('long', 'full');
TABLE toast;
CALL geonn_refresh('long', 'full');
TABLE toast;
SELECT reason FROM geonn_cache_log WHERE name = 'long' ORDER BY started DESC LIMIT 1;
SELECT long_wrong();
DROP VIEW toast;
SELECT geonn_cache_drop('long');
SELECT count(*) AS left_over FROM pg_class WHERE relnamespace = 'pg_toast'::regnamespace AND NOT EXISTS (SELECT FROM pg_class c WHERE c.reltoastrelid = pg_class.oid)
    AND relkind = 't';

DROP VIEW viewed;
SELECT geonn_cache_drop(name) FROM geonn_caches WHERE name IN ('near', 'twice', 'kept');
DROP OWNED BY regress_replace_reader;
DROP ROLE regress_replace_reader;
