-- what others have put in geonn's way: operators, functions, types and names that are not
-- what they seem do nothing but what they may do without geonn, and their errors end the
-- statement alone
-- rooms: base join points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
DROP ROLE IF EXISTS regress_geonn_owner;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA hostile;
SET search_path = hostile, public;

CREATE TABLE obs (id bigint PRIMARY KEY, lat float8, lon float8, kind text);
CREATE TABLE ref (id bigint PRIMARY KEY, lat float8, lon float8, kind text);
INSERT INTO obs VALUES (1, 10, 10, 'a'), (2, -20, 170, 'b'), (3, 89, 0, 'a');
INSERT INTO ref VALUES (7, 11, 11, 'a'), (8, -21, -179, 'b'), (9, 90, 0, 'a');
CREATE TABLE right_answer AS
SELECT * FROM geonn_nearest('obs', 'ref', k => 2, by => '{kind}', exclude_self => true);
-- how many rows a call has too many or too few, whatever the search_path
CREATE FUNCTION differ(call text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    rows pg_catalog.int8;
BEGIN
    EXECUTE pg_catalog.replace('WITH n AS MATERIALIZED (SELECT obs_id, ref_id, distance FROM CALL)
        SELECT pg_catalog.count(*) FROM (
            (TABLE n EXCEPT ALL TABLE hostile.right_answer) UNION ALL (TABLE hostile.right_answer EXCEPT ALL TABLE n)) d',
        'CALL', call) INTO rows;
    RETURN rows;
END $$;

-- ---- a schema before pg_catalog ----

CREATE SCHEMA hostile_first;
DO $$
DECLARE
    type text;
    operator text;
BEGIN
    FOREACH type IN ARRAY '{bigint,integer,text,name,float8,oid,regclass,boolean,jsonb}'::text[] LOOP
        EXECUTE format('CREATE FUNCTION hostile_first.spy(%1$s, %1$s) RETURNS boolean LANGUAGE plpgsql
            AS ''BEGIN RAISE WARNING $x$spied on %1$s as %%$x$, current_user; RETURN true; END''', type);
        FOREACH operator IN ARRAY '{=,<>,<,>,<=,>=}'::text[] LOOP
            EXECUTE format('CREATE OPERATOR hostile_first.%1$s (FUNCTION = hostile_first.spy, LEFTARG = %2$s, RIGHTARG = %2$s)',
                operator, type);
        END LOOP;
    END LOOP;
END $$;
CREATE FUNCTION hostile_first.lie(float8) RETURNS float8 LANGUAGE plpgsql
AS $$ BEGIN RAISE WARNING 'spied as %', current_user; RETURN 0; END $$;
CREATE AGGREGATE hostile_first.count(*) (SFUNC = int8inc, STYPE = bigint, INITCOND = '1000');
CREATE FUNCTION hostile_first.unnest(anyarray) RETURNS SETOF anyelement LANGUAGE sql AS 'SELECT $1[1]';
CREATE FUNCTION hostile_first.hashint8(bigint) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION hostile_first.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2000-01-01' $$;
CREATE FUNCTION hostile_first.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql AS $$ SELECT 'DROP TABLE hostile.obs' $$;
CREATE FUNCTION hostile_first.geonn_distance(float8, float8, float8, float8, text) RETURNS float8 LANGUAGE sql AS 'SELECT 0.0::float8';
CREATE TYPE hostile_first.geonn_pair AS (obs_id text, ref_id text, distance float8);
CREATE TYPE hostile_first.float8 AS (nothing text);
CREATE TYPE hostile_first.bigint AS (nothing text);
CREATE TABLE hostile_first.geonn_cache (id integer, name text);
CREATE TABLE hostile_first.geonn_cache_run (id integer);
CREATE TABLE hostile_first.pg_class (relname text);

SET search_path = hostile_first, pg_catalog, hostile, public;
SELECT hostile.differ($$public.geonn_nearest('obs', 'ref', k => 2, by => '{kind}', exclude_self => true)$$);
SELECT hostile.differ($$public.geonn_nearest_sql('TABLE obs', 'TABLE ref', k => 2, by => '{kind}', exclude_self => true)$$);
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SELECT hostile.differ($$public.geonn_nearest('obs', 'ref', k => 2, by => '{kind}', exclude_self => true)$$);
RESET max_parallel_workers_per_gather;
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
SELECT column_name FROM geonn_describe('obs');
SELECT rows, null_coordinates FROM geonn_check('obs');
SELECT geonn_cache_create('hostile', 'obs', 'ref', k => 2, by => '{kind}', exclude_self => true, target => 'hostile.kept');
UPDATE ref SET lat = lat WHERE lat IS NOT NULL;
CALL geonn_refresh('hostile');
CALL geonn_refresh('hostile', 'full');
CALL geonn_refresh_all();
SELECT hostile.differ('hostile.kept');
SELECT geonn_cache_alter('hostile', '{"name": "hostile too"}');
SELECT pg_catalog.count(*) FROM geonn_caches;
SELECT pg_catalog.count(*) > 0 AS logged FROM geonn_cache_log;
SELECT geonn_cache_drop('hostile too');
SET search_path = hostile, public;

-- ---- what an owner's cache runs when a superuser refreshes it ----

CREATE ROLE regress_geonn_owner;
CREATE TABLE harvest (who name, what text);
CREATE TABLE secret AS SELECT 'of the superuser' AS word;
GRANT USAGE, CREATE ON SCHEMA hostile TO regress_geonn_owner;
GRANT SELECT ON ref TO regress_geonn_owner;
GRANT INSERT ON harvest TO regress_geonn_owner;
SET ROLE regress_geonn_owner;
CREATE FUNCTION reap(what text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO hostile.harvest VALUES (current_user, what);
    BEGIN
        INSERT INTO hostile.harvest SELECT current_user, word FROM hostile.secret;
    EXCEPTION WHEN insufficient_privilege THEN
    END;
    RETURN true;
END $$;
CREATE TABLE bait (id bigint PRIMARY KEY, lat float8, lon float8);
INSERT INTO bait VALUES (1, 1, 1), (2, 2, 2);
CREATE VIEW lure AS SELECT * FROM bait WHERE reap('view');
SELECT geonn_cache_create('lured', 'lure', 'ref');
CREATE FUNCTION reap_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM hostile.reap('trigger');
    RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER reap AFTER INSERT OR UPDATE OR DELETE ON lured FOR EACH ROW EXECUTE FUNCTION reap_row();
ALTER TABLE lured ADD extra boolean DEFAULT reap('default');
CREATE FUNCTION reap_index(bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM hostile.reap('index');
    RETURN $1;
END $$;
CREATE INDEX ON lured (reap_index(obs_id));
ALTER TABLE lured ADD CHECK (reap('constraint'));
RESET ROLE;
TRUNCATE harvest;
INSERT INTO bait VALUES (3, 3, 3);
CALL geonn_refresh('lured');
INSERT INTO bait VALUES (4, 4, 4);
CALL geonn_refresh('lured', 'full');
SELECT who, what FROM harvest GROUP BY 1, 2 ORDER BY 1, 2;
SELECT current_user = session_user AS still_me;
-- nor does it leave anything behind that a superuser's session runs later
SET ROLE regress_geonn_owner;
CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    CREATE TEMPORARY TABLE left_behind (i integer);
    RETURN NULL;
END $$;
CREATE TRIGGER later AFTER INSERT ON lured FOR EACH STATEMENT EXECUTE FUNCTION later();
RESET ROLE;
INSERT INTO bait VALUES (5, 5, 5);
CALL geonn_refresh('lured');
SET ROLE regress_geonn_owner;
DROP TRIGGER later ON lured;
CREATE CONSTRAINT TRIGGER deferred AFTER INSERT ON lured DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION reap_row();
RESET ROLE;
CALL geonn_refresh('lured');
SELECT geonn_cache_drop('lured');

-- ---- functions in views ----

CREATE TABLE written (id bigint);
CREATE FUNCTION write(id bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO hostile.written VALUES (id);
    RETURN id;
END $$;
CREATE VIEW writes AS SELECT write(id) AS id, lat, lon FROM obs;
SELECT obs_id, ref_id FROM geonn_nearest('writes', 'ref') ORDER BY 1;
SELECT * FROM written ORDER BY 1;
BEGIN READ ONLY;
SELECT obs_id, ref_id FROM geonn_nearest('writes', 'ref');
ROLLBACK;

CREATE FUNCTION refuse(id bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    IF id = 2 THEN
        RAISE EXCEPTION 'refused %', id USING ERRCODE = 'XX000';
    END IF;
    RETURN id;
END $$;
CREATE VIEW refuses AS SELECT refuse(id) AS id, lat, lon FROM obs;
SELECT * FROM geonn_nearest('refuses', 'ref');
SELECT * FROM geonn_nearest('ref', 'refuses');

-- that ask geonn for the very same, without end
CREATE VIEW recursive AS SELECT id, lat, lon FROM obs;
CREATE FUNCTION recurse(id bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT min(obs_id) FROM geonn_nearest('hostile.recursive', 'hostile.ref'));
END $$;
CREATE OR REPLACE VIEW recursive AS SELECT recurse(id) AS id, lat, lon FROM obs;
SET max_stack_depth = '200kB';
\set VERBOSITY sqlstate
SELECT * FROM geonn_nearest('recursive', 'ref');
\set VERBOSITY default
RESET max_stack_depth;
-- and once
CREATE FUNCTION ask(id bigint) RETURNS bigint LANGUAGE sql
AS $$ SELECT min(ref_id) + id FROM geonn_nearest('hostile.obs', 'hostile.ref') $$;
CREATE VIEW asks AS SELECT ask(id) AS id, lat, lon FROM obs;
SELECT obs_id, ref_id FROM geonn_nearest('asks', 'asks') ORDER BY 1;

-- that cancel their own statement, or stop other things
CREATE FUNCTION cancel() RETURNS boolean LANGUAGE sql VOLATILE AS 'SELECT pg_cancel_backend(pg_backend_pid())';
CREATE VIEW cancels AS SELECT * FROM obs WHERE cancel();
SELECT * FROM geonn_nearest('cancels', 'ref');
SELECT * FROM geonn_nearest('obs', 'cancels');
SET client_min_messages = warning;
CREATE FUNCTION drop_it() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN DROP TABLE hostile.obs CASCADE; RETURN true; END $$;
CREATE VIEW drops AS SELECT * FROM obs WHERE drop_it();
SELECT * FROM geonn_nearest('drops', 'ref');
SELECT * FROM geonn_nearest('obs', 'drops');
RESET client_min_messages;
CREATE FUNCTION truncate_it() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN TRUNCATE hostile.ref; RETURN true; END $$;
CREATE VIEW truncates AS SELECT * FROM ref WHERE truncate_it();
SELECT * FROM geonn_nearest('obs', 'truncates');
CREATE FUNCTION commit_it() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN COMMIT; RETURN true; END $$;
CREATE VIEW commits AS SELECT * FROM obs WHERE commit_it();
SELECT * FROM geonn_nearest('commits', 'ref');
CREATE FUNCTION set_it() RETURNS boolean LANGUAGE sql
AS $$ SELECT set_config('search_path', 'hostile_first', false) IS NOT NULL AND set_config('geonn.algorithm', 'brute', false) IS NOT NULL $$;
CREATE VIEW sets AS SELECT * FROM obs WHERE set_it();
SELECT pg_catalog.count(*) FROM geonn_nearest('sets', 'ref');
SET search_path = hostile, public;
RESET geonn.algorithm;
SELECT differ($$geonn_nearest('obs', 'ref', k => 2, by => '{kind}', exclude_self => true)$$);

-- ---- types that lie ----

SET client_min_messages = warning;
CREATE TYPE liar;
CREATE FUNCTION liar_in(cstring) RETURNS liar LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION liar_out(liar) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE liar (INPUT = liar_in, OUTPUT = liar_out, LIKE = text);
RESET client_min_messages;
CREATE TABLE lies (how text);
INSERT INTO lies VALUES ('greater');
-- the order of the type: whatever the table says at the moment
CREATE FUNCTION liar_compare(liar, liar) RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE
    lie text := (SELECT how FROM hostile.lies);
BEGIN
    CASE lie
        WHEN 'greater' THEN RETURN 1;
        WHEN 'less' THEN RETURN -1;
        WHEN 'equal' THEN RETURN 0;
        WHEN 'least' THEN RETURN -2147483648;
        WHEN 'random' THEN RETURN floor(random() * 3) - 1;
        WHEN 'null' THEN RETURN NULL;
        WHEN 'cancel' THEN PERFORM pg_cancel_backend(pg_backend_pid()); RETURN 0;
        WHEN 'ask' THEN RETURN (SELECT count(*) - 3 FROM geonn_nearest('hostile.obs', 'hostile.ref'));
        WHEN 'drop' THEN DROP TABLE hostile.liars;
    END CASE;
    RETURN 0;
END $$;
CREATE FUNCTION liar_says(liar, liar) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT hostile.liar_compare($1, $2) <> 0';
CREATE FUNCTION liar_hash(liar) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE (SELECT how FROM hostile.lies) WHEN 'null' THEN NULL WHEN 'random' THEN floor(random() * 1e9) ELSE 0 END;
END $$;
CREATE OPERATOR < (FUNCTION = liar_says, LEFTARG = liar, RIGHTARG = liar);
CREATE OPERATOR <= (FUNCTION = liar_says, LEFTARG = liar, RIGHTARG = liar);
CREATE OPERATOR = (FUNCTION = liar_says, LEFTARG = liar, RIGHTARG = liar);
CREATE OPERATOR >= (FUNCTION = liar_says, LEFTARG = liar, RIGHTARG = liar);
CREATE OPERATOR > (FUNCTION = liar_says, LEFTARG = liar, RIGHTARG = liar);
CREATE OPERATOR CLASS liar_order DEFAULT FOR TYPE liar USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 liar_compare(liar, liar);
CREATE OPERATOR CLASS liar_hashes DEFAULT FOR TYPE liar USING hash AS OPERATOR 1 =, FUNCTION 1 liar_hash(liar);
-- an unlogged table's references are not kept, so each call has them compared
CREATE UNLOGGED TABLE liars AS SELECT i::text::liar AS id, i % 80 AS lat, i % 170 AS lon, (i % 3)::text::liar AS kind FROM generate_series(1, 20) i;
CREATE TYPE liar_pair AS (obs_id liar, ref_id liar, distance float8);
CREATE FUNCTION survives(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT count(ref_id) FROM %s', call);
    RETURN 'an answer';
EXCEPTION WHEN query_canceled THEN
    RETURN 'canceled';
WHEN OTHERS THEN
    RETURN regexp_replace(sqlerrm, '\d+', 'N');
END $$;
DO $$
DECLARE
    lie text;
BEGIN
    FOREACH lie IN ARRAY '{greater,less,equal,least,random,"null",cancel,ask,drop}'::text[] LOOP
        UPDATE hostile.lies SET how = lie;
        RAISE NOTICE '%: ids: %', lie, hostile.survives($x$geonn_nearest('liars', 'liars', k => 3, row_type => NULL::liar_pair)$x$);
        RAISE NOTICE '%: own ids: %', lie, hostile.survives($x$geonn_nearest('liars', 'liars', exclude_self => true, row_type => NULL::liar_pair)$x$);
        RAISE NOTICE '%: groups: %', lie, hostile.survives($x$geonn_nearest('liars', 'liars', by => '{kind}', row_type => NULL::liar_pair)$x$);
    END LOOP;
END $$;
SELECT count(*) FROM liars;
SELECT differ($$geonn_nearest('obs', 'ref', k => 2, by => '{kind}', exclude_self => true)$$);

-- rows that change what they are
CREATE DOMAIN small AS bigint CHECK (VALUE < 8);
CREATE TYPE small_pair AS (obs_id bigint, ref_id small, distance float8);
SELECT obs_id, ref_id FROM geonn_nearest('obs', 'ref', row_type => NULL::small_pair);
CREATE DOMAIN refused AS bigint CHECK (refuse(VALUE) > 0);
CREATE TABLE of_refused (id refused, lat float8, lon float8);
CREATE TYPE refused_pair AS (obs_id refused, ref_id bigint, distance float8);
SELECT obs_id, ref_id FROM geonn_nearest('obs', 'ref', row_type => NULL::refused_pair);
CREATE TYPE composite AS (a integer, b text);
CREATE TABLE composites (id composite, lat float8, lon float8, kind composite);
INSERT INTO composites VALUES ((1, 'x'), 1, 1, (1, NULL)), ((1, NULL), 2, 2, (1, NULL)), (NULL, 3, 3, NULL);
CREATE TYPE composite_pair AS (obs_id composite, ref_id composite, distance float8);
SELECT obs_id, ref_id FROM geonn_nearest('composites', 'composites', by => '{kind}', exclude_self => true, row_type => NULL::composite_pair) ORDER BY 1;
CREATE TABLE changing (obs_id bigint, extra text, ref_id bigint, distance float8);
ALTER TABLE changing DROP extra;
PREPARE of_changing AS SELECT * FROM geonn_nearest('obs', 'ref', row_type => NULL::changing) ORDER BY 1 LIMIT 1;
EXECUTE of_changing;
ALTER TABLE changing ADD rank integer;
EXECUTE of_changing;
ALTER TABLE changing DROP ref_id, ADD ref_id text;
EXECUTE of_changing;
DEALLOCATE of_changing;

-- ---- options ----

SELECT * FROM geonn_nearest('obs', 'ref', options => '{"obs_id": "id\u0022; DROP TABLE obs; --"}');
SELECT * FROM geonn_nearest('obs', 'ref', options => jsonb_build_object('batch_rows', 'NaN'::numeric));
SELECT survives(format($$geonn_nearest('obs', 'ref', options => %L)$$, repeat('{"a":', 5000) || '1' || repeat('}', 5000)));
SELECT differ($$geonn_nearest('obs', 'ref', k => 2, by => '{kind}', exclude_self => true, options => '{"device": "gpu", "device": "cpu"}')$$);
SELECT left(survives($$geonn_nearest('obs', 'ref', options => jsonb_build_object(repeat('x', 100000), 1))$$), 80);

-- ---- names ----

CREATE SCHEMA "hostile""; DROP TABLE obs; --";
CREATE TABLE "hostile""; DROP TABLE obs; --"."li
ne'%s%n$$" ("i""d'" bigint PRIMARY KEY, "ла́т" float8, "l
on" float8, "%s%n" text, "123456789012345678901234567890123456789012345678901234567890123" bigint);
INSERT INTO "hostile""; DROP TABLE obs; --"."li
ne'%s%n$$" SELECT id, lat, lon, kind, id FROM ref;
SELECT oid::regclass AS odd FROM pg_class WHERE relname ~ '^li.ne' AND relkind = 'r' \gset
SELECT * FROM geonn_describe(:'odd');
SELECT obs_id, ref_id FROM geonn_nearest('obs', :'odd', options => '{"ref_lat": "ла́т", "ref_lon": "l\non"}') ORDER BY 1;
SELECT obs_id, ref_id FROM geonn_nearest(:'odd', :'odd', by => ARRAY['%s%n'], exclude_self => true, options =>
    '{"obs_lat": "ла́т", "obs_lon": "l\non", "ref_lat": "ла́т", "ref_lon": "l\non",
      "ref_id": "123456789012345678901234567890123456789012345678901234567890123"}') ORDER BY 1;
SELECT * FROM geonn_nearest('obs', :'odd');
SELECT * FROM geonn_nearest('obs', :'odd', by => ARRAY['%s%n'], options => '{"ref_lat": "ла́т", "ref_lon": "l\non"}');
SELECT geonn_cache_create(E'na\nme''"%s%n$$', 'obs', :'odd', options => '{"ref_lat": "ла́т", "ref_lon": "l\non"}', target => '"hostile""; DROP TABLE obs; --"."k''e""pt"');
CALL geonn_refresh(E'na\nme''"%s%n$$', 'full');
INSERT INTO obs VALUES (4, 0, 0, 'a');
CALL geonn_refresh(E'na\nme''"%s%n$$');
SELECT name, target, status, rows FROM geonn_caches WHERE name ~ 'me';
ALTER TABLE "hostile""; DROP TABLE obs; --"."li
ne'%s%n$$" RENAME "ла́т" TO "no %d";
CALL geonn_refresh(E'na\nme''"%s%n$$');
SELECT geonn_cache_drop(E'na\nme''"%s%n$$');
SELECT count(*) FROM obs;

-- ---- event triggers that alter each new table ----
CREATE FUNCTION add_column() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE
    made record;
BEGIN
    FOR made IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE command_tag = 'CREATE TABLE'
    LOOP
        EXECUTE format('ALTER TABLE %s ADD made_by text DEFAULT current_user', made.object_identity);
    END LOOP;
END $$;
CREATE EVENT TRIGGER regress_geonn_add_column ON ddl_command_end WHEN TAG IN ('CREATE TABLE')
    EXECUTE FUNCTION add_column();
SELECT geonn_cache_create('altered', 'obs', 'ref');
DROP EVENT TRIGGER regress_geonn_add_column;
SELECT count(*) FROM geonn_caches;

SET client_min_messages = warning;
DROP SCHEMA hostile, hostile_first, "hostile""; DROP TABLE obs; --" CASCADE;
DROP ROLE regress_geonn_owner;
