-- caches: no change of a cache's table passes its refresh by, whichever way it is made
-- rooms: cache
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA cache_changes;
SET search_path = cache_changes, public;

CREATE TABLE obs (id integer PRIMARY KEY, lat float8, lon float8);
CREATE TABLE ref (id integer PRIMARY KEY, lat float8, lon float8);
INSERT INTO obs SELECT i, i * 7 % 90, i * 11 % 180 FROM generate_series(1, 60) i;
INSERT INTO ref SELECT i, i * 13 % 90, i * 17 % 180 FROM generate_series(1, 24) i;
SELECT geonn_cache_create('near', 'obs', 'ref');

-- what the next refresh does about a change, and how many rows are wrong after it; what
-- another one does, and one after the change of a point
CREATE FUNCTION wrong() RETURNS bigint LANGUAGE SQL AS $$
    SELECT count(*) FROM cache_changes.near t
        FULL JOIN geonn_nearest('cache_changes.obs', 'cache_changes.ref', row_type => NULL::record)
            AS n (obs_id integer, rank integer, ref_id integer, distance float8) USING (obs_id, rank)
    WHERE (t.ref_id, t.distance) IS DISTINCT FROM (n.ref_id, n.distance)
$$;
CREATE FUNCTION last_mode() RETURNS text LANGUAGE SQL AS $$
    SELECT mode FROM geonn_cache_log WHERE name = 'near' ORDER BY started DESC LIMIT 1
$$;
CREATE PROCEDURE next(OUT next text, OUT reason text, OUT wrong bigint, OUT then_next text, OUT moved text) LANGUAGE plpgsql AS $$
BEGIN
    CALL geonn_refresh('near');
    SELECT l.mode, l.reason INTO next, reason FROM geonn_cache_log l WHERE name = 'near' ORDER BY started DESC LIMIT 1;
    wrong = cache_changes.wrong();
    CALL geonn_refresh('near');
    then_next = cache_changes.last_mode();
    UPDATE cache_changes.obs SET lat = lat + 0.001 WHERE id = 60;
    CALL geonn_refresh('near');
    moved = cache_changes.last_mode();
END $$;

-- to begin with
CALL geonn_refresh('near', 'full');
CALL next(NULL, NULL, NULL, NULL, NULL);

-- ---- statements that name the table ----

UPDATE near SET distance = -1 WHERE obs_id = 1;
CALL next(NULL, NULL, NULL, NULL, NULL);
DELETE FROM near WHERE obs_id = 1;
CALL next(NULL, NULL, NULL, NULL, NULL);
INSERT INTO near VALUES (1000, 1, 1, 1);
CALL next(NULL, NULL, NULL, NULL, NULL);
INSERT INTO near VALUES (1, 1, 1, 1) ON CONFLICT (obs_id, rank) DO UPDATE SET distance = -1;
CALL next(NULL, NULL, NULL, NULL, NULL);
TRUNCATE near;
CALL next(NULL, NULL, NULL, NULL, NULL);
COPY near FROM STDIN;
1001	1	1	1
\.
CALL next(NULL, NULL, NULL, NULL, NULL);
MERGE INTO near t USING (VALUES (1), (1002)) n (id) ON t.obs_id = n.id
    WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (n.id, 1, 1, 1);
CALL next(NULL, NULL, NULL, NULL, NULL);
CREATE VIEW near_view AS TABLE near;
UPDATE near_view SET ref_id = NULL WHERE obs_id = 2;
CALL next(NULL, NULL, NULL, NULL, NULL);
CREATE TABLE other (id integer);
CREATE RULE other AS ON INSERT TO other DO ALSO DELETE FROM near WHERE obs_id = NEW.id;
INSERT INTO other VALUES (3);
CALL next(NULL, NULL, NULL, NULL, NULL);
CREATE TABLE keys (id integer PRIMARY KEY);
INSERT INTO keys SELECT obs_id FROM near;
ALTER TABLE near ADD FOREIGN KEY (obs_id) REFERENCES keys ON DELETE CASCADE;
DELETE FROM keys WHERE id = 4;
INSERT INTO keys VALUES (4);
CALL next(NULL, NULL, NULL, NULL, NULL);
ALTER TABLE near DROP CONSTRAINT near_obs_id_fkey;
-- none of which changes a row
UPDATE near SET distance = -1 WHERE obs_id = -1;
DELETE FROM near WHERE false;
BEGIN;
UPDATE near SET distance = -1;
ROLLBACK;
BEGIN;
SAVEPOINT s;
UPDATE near SET distance = -1;
ROLLBACK TO s;
COMMIT;
CALL next(NULL, NULL, NULL, NULL, NULL);
-- after a savepoint, and beside a refresh of the same transaction
BEGIN;
SAVEPOINT s;
UPDATE near SET distance = -1;
ROLLBACK TO s;
UPDATE near SET distance = -1 WHERE obs_id = 5;
COMMIT;
CALL next(NULL, NULL, NULL, NULL, NULL);
BEGIN;
UPDATE near SET distance = -1 WHERE obs_id = 5;
CALL geonn_refresh('near');
UPDATE near SET distance = -1 WHERE obs_id = 6;
COMMIT;
CALL next(NULL, NULL, NULL, NULL, NULL);
BEGIN;
CALL geonn_refresh('near');
UPDATE near SET distance = -1 WHERE obs_id = 5;
CALL geonn_refresh('near');
UPDATE near SET distance = -1 WHERE obs_id = 6;
CALL next(NULL, NULL, NULL, NULL, NULL);
COMMIT;

-- ---- statements that name a parent ----

CREATE TABLE parent (obs_id integer NOT NULL, rank integer NOT NULL, distance float8);
ALTER TABLE near INHERIT parent;
CALL next(NULL, NULL, NULL, NULL, NULL);
UPDATE parent SET distance = -1 WHERE obs_id = 5;
CALL next(NULL, NULL, NULL, NULL, NULL);
DELETE FROM parent WHERE obs_id = 5;
CALL next(NULL, NULL, NULL, NULL, NULL);
UPDATE parent SET distance = -1 WHERE obs_id = 6;
ALTER TABLE near NO INHERIT parent;
CALL next(NULL, NULL, NULL, NULL, NULL);
TRUNCATE parent;
CALL next(NULL, NULL, NULL, NULL, NULL);
CREATE TABLE without_columns ();
ALTER TABLE near INHERIT without_columns;
DELETE FROM without_columns WHERE tableoid = 'near'::regclass;
ALTER TABLE near NO INHERIT without_columns;
CALL next(NULL, NULL, NULL, NULL, NULL);
CREATE TABLE partitioned (obs_id integer NOT NULL, rank integer NOT NULL, ref_id integer, distance float8) PARTITION BY RANGE (obs_id);
ALTER TABLE partitioned ATTACH PARTITION near FOR VALUES FROM (0) TO (5000);
CREATE TABLE rest PARTITION OF partitioned DEFAULT;
CALL next(NULL, NULL, NULL, NULL, NULL);
UPDATE partitioned SET distance = -1 WHERE obs_id = 5;
CALL next(NULL, NULL, NULL, NULL, NULL);
UPDATE partitioned SET obs_id = 6000 WHERE obs_id = 6;
CALL next(NULL, NULL, NULL, NULL, NULL);
UPDATE partitioned SET obs_id = 1000 WHERE obs_id = 6000;
CALL next(NULL, NULL, NULL, NULL, NULL);
INSERT INTO partitioned VALUES (1001, 1, 1, 1);
CALL next(NULL, NULL, NULL, NULL, NULL);
COPY partitioned FROM STDIN;
1001	1	1	1
\.
CALL next(NULL, NULL, NULL, NULL, NULL);
DELETE FROM partitioned WHERE obs_id = 7;
ALTER TABLE partitioned DETACH PARTITION near;
CALL next(NULL, NULL, NULL, NULL, NULL);

-- ---- sessions that fire no ordinary triggers ----

SET session_replication_role = replica;
UPDATE near SET distance = -1 WHERE obs_id = 5;
CALL next(NULL, NULL, NULL, NULL, NULL);
TRUNCATE near;
CALL next(NULL, NULL, NULL, NULL, NULL);
RESET session_replication_role;
CALL next(NULL, NULL, NULL, NULL, NULL);

-- ---- triggers that were off, changed or gone meanwhile ----

ALTER TABLE near DISABLE TRIGGER USER;
UPDATE near SET distance = -1 WHERE obs_id = 5;
CALL next(NULL, NULL, NULL, NULL, NULL);
ALTER TABLE near ENABLE TRIGGER USER;
CALL next(NULL, NULL, NULL, NULL, NULL);
ALTER TABLE near ENABLE ALWAYS TRIGGER geonn_cache_changed, ENABLE ALWAYS TRIGGER geonn_cache_truncated;
CALL next(NULL, NULL, NULL, NULL, NULL);
BEGIN;
ALTER TABLE near DISABLE TRIGGER geonn_cache_changed;
UPDATE near SET distance = -1 WHERE obs_id = 5;
ALTER TABLE near ENABLE ALWAYS TRIGGER geonn_cache_changed;
COMMIT;
CALL next(NULL, NULL, NULL, NULL, NULL);
-- also within the transaction that refreshes
BEGIN;
ALTER TABLE near DISABLE TRIGGER geonn_cache_changed;
ALTER TABLE near ENABLE ALWAYS TRIGGER geonn_cache_changed;
CALL geonn_refresh('near');
ALTER TABLE near DISABLE TRIGGER geonn_cache_changed;
UPDATE near SET distance = -1 WHERE obs_id = 5;
ALTER TABLE near ENABLE ALWAYS TRIGGER geonn_cache_changed;
COMMIT;
CALL next(NULL, NULL, NULL, NULL, NULL);
DROP TRIGGER geonn_cache_changed ON near;
CALL next(NULL, NULL, NULL, NULL, NULL);
CREATE TRIGGER geonn_cache_changed AFTER INSERT OR UPDATE OR DELETE ON near
    FOR EACH ROW WHEN (false) EXECUTE FUNCTION geonn_cache_changed();
ALTER TABLE near ENABLE ALWAYS TRIGGER geonn_cache_changed;
CALL next(NULL, NULL, NULL, NULL, NULL);
CREATE OR REPLACE TRIGGER geonn_cache_changed AFTER INSERT OR UPDATE OF distance OR DELETE ON near
    FOR EACH ROW EXECUTE FUNCTION geonn_cache_changed();
ALTER TABLE near ENABLE ALWAYS TRIGGER geonn_cache_changed;
CALL next(NULL, NULL, NULL, NULL, NULL);
CREATE OR REPLACE TRIGGER geonn_cache_changed AFTER INSERT OR UPDATE OR DELETE ON near
    FOR EACH ROW EXECUTE FUNCTION geonn_cache_changed();
ALTER TABLE near ENABLE ALWAYS TRIGGER geonn_cache_changed;
CALL next(NULL, NULL, NULL, NULL, NULL);

-- ---- what triggers and rules of the user's make of a refresh's own changes ----

CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_catalog.pg_trigger_depth() = 1 THEN
        UPDATE cache_changes.near SET distance = -1 WHERE obs_id = 9;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER spoil AFTER UPDATE ON near EXECUTE FUNCTION spoil();
UPDATE obs SET lat = lat + 0.001 WHERE id = 10;
CALL geonn_refresh('near');
DROP TRIGGER spoil ON near;
SELECT wrong();
CALL next(NULL, NULL, NULL, NULL, NULL);
CREATE RULE spoil AS ON INSERT TO near DO ALSO UPDATE near SET distance = -1 WHERE obs_id = 9;
INSERT INTO obs VALUES (61, 1, 1);
CALL geonn_refresh('near');
DROP RULE spoil ON near;
SELECT wrong();
CALL next(NULL, NULL, NULL, NULL, NULL);
-- rows that a trigger alters are wanted so; when it is gone, they are wrong
CREATE FUNCTION alter_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.distance = -1;
    RETURN NEW;
END $$;
CREATE TRIGGER alter_row BEFORE UPDATE ON near FOR EACH ROW EXECUTE FUNCTION alter_row();
UPDATE obs SET lat = lat + 0.001 WHERE id = 10;
CALL geonn_refresh('near');
CALL geonn_refresh('near');
SELECT wrong(), last_mode();
DROP TRIGGER alter_row ON near;
CALL next(NULL, NULL, NULL, NULL, NULL);
-- a refresh that triggers of another cache's table call
SELECT geonn_cache_create('first', 'obs', 'ref');
CREATE FUNCTION go_on() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    CALL public.geonn_refresh('near');
    UPDATE cache_changes.near SET distance = -1 WHERE obs_id = 9;
    RETURN NULL;
END $$;
CREATE TRIGGER go_on AFTER INSERT OR UPDATE ON first EXECUTE FUNCTION go_on();
UPDATE obs SET lat = lat + 0.001 WHERE id = 11;
CALL geonn_refresh('first');
SELECT wrong();
CALL next(NULL, NULL, NULL, NULL, NULL);
UPDATE first SET distance = -1 WHERE obs_id = 12;
CALL geonn_refresh('first');
SELECT count(*) FILTER (WHERE distance < 0) FROM first;

-- ---- a table with children, among which its rows may be, as those of a hypertable ----

CREATE TABLE chunk () INHERITS (near);
INSERT INTO chunk SELECT * FROM ONLY near;
TRUNCATE ONLY near;
CALL geonn_refresh('near');
CALL geonn_refresh('near', 'full');
DROP TABLE chunk;
CALL next(NULL, NULL, NULL, NULL, NULL);

-- ---- a key with its columns in another order ----

ALTER TABLE near DROP CONSTRAINT near_pkey;
ALTER TABLE near ADD PRIMARY KEY (rank, obs_id);
CALL next(NULL, NULL, NULL, NULL, NULL);
-- which changes no row
INSERT INTO ref VALUES (1000, -89, 0);
CALL geonn_refresh('near', 'incremental');
SELECT last_mode(), wrong();

-- ---- code of the user's that keeps rows from being written ----

CREATE FUNCTION keep_out() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER keep_out BEFORE INSERT ON near FOR EACH ROW WHEN (NEW.obs_id = 1501) EXECUTE FUNCTION keep_out();
INSERT INTO obs SELECT i, 10, 10 FROM generate_series(1500, 1502) i;
CALL geonn_refresh('near');
DROP TRIGGER keep_out ON near;
CREATE RULE keep_out AS ON INSERT TO near WHERE NEW.obs_id = 1501 DO INSTEAD NOTHING;
CALL geonn_refresh('near');
DROP RULE keep_out ON near;
CALL geonn_refresh('near');
SELECT wrong();

-- ---- differences that do not fit into memory ----

SET maintenance_work_mem = '1MB';
INSERT INTO obs SELECT i, i * 7 % 90, i * 11 % 180 FROM generate_series(2000, 20000) i;
CALL geonn_refresh('near', 'full');
UPDATE ref SET lat = lat - 0.5;
CALL geonn_refresh('near', 'incremental');
SELECT last_mode(), wrong();
RESET maintenance_work_mem;

-- ---- rows without coordinates are in blocks as others are, and behind these ----

CREATE TABLE lost AS SELECT i AS id, CASE WHEN i % 20 = 5 THEN i % 90 END::float8 AS lat, (i % 180)::float8 AS lon FROM generate_series(1, 20000) i;
SELECT geonn_cache_create('lost and found', 'lost', 'ref', keep_unmatched => true);
CREATE FUNCTION lost_blocks(OUT many boolean, OUT small boolean) LANGUAGE sql AS $$
    SELECT count(*) > 200, max(octet_length(contents)) < 20000
    FROM geonn_cache_block b JOIN geonn_cache c ON c.id = b.cache WHERE c.name = 'lost and found' AND b.side = 0
$$;
SELECT * FROM lost_blocks();
UPDATE lost SET lat = 1, lon = 1 WHERE id % 100 = 7;
UPDATE lost SET id = -id WHERE id % 100 = 8;
DELETE FROM lost WHERE id % 100 = 9;
CALL geonn_refresh('lost and found', 'incremental');
UPDATE lost SET lat = NULL WHERE id % 200 = 7;
INSERT INTO lost SELECT i FROM generate_series(30000, 30100) i;
CALL geonn_refresh('lost and found', 'incremental');
SELECT count(*) FILTER (WHERE t.obs_id IS NULL OR n.obs_id IS NULL OR (t.ref_id, t.distance) IS DISTINCT FROM (n.ref_id, n.distance)) AS wrong,
       count(t.ref_id) AS found, count(*) AS all
FROM "lost and found" t FULL JOIN geonn_nearest('lost', 'ref', keep_unmatched => true, row_type => NULL::record)
    AS n (obs_id integer, rank integer, ref_id integer, distance float8) USING (obs_id, rank);
SELECT * FROM lost_blocks();

DROP VIEW near_view;
DROP TABLE other;
SELECT count(geonn_cache_drop(name)) AS dropped FROM geonn_caches;
SET client_min_messages = warning;
DROP SCHEMA cache_changes CASCADE;
