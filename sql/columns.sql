-- which columns geonn uses, and the errors where it cannot tell
-- rooms: points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA columns;
SET search_path = columns, public;

-- the names that coordinates may have, in any case
CREATE TABLE spelling_1 (id bigint, lat float8, lon float8);
CREATE TABLE spelling_2 (id bigint, latitude float8, lng float8);
CREATE TABLE spelling_3 ("ID" bigint, "LAT" float8, "Long" float8);
CREATE TABLE spelling_4 ("Id" bigint, "Latitude" float8, "LongITUDE" float8);
INSERT INTO spelling_1 VALUES (1, 10, 10);
INSERT INTO spelling_2 VALUES (2, 10, 11);
INSERT INTO spelling_3 VALUES (3, 10, 12);
INSERT INTO spelling_4 VALUES (4, 10, 13);
SELECT * FROM geonn_nearest('spelling_1', 'spelling_2')
UNION ALL SELECT * FROM geonn_nearest('spelling_2', 'spelling_3')
UNION ALL SELECT * FROM geonn_nearest('spelling_3', 'spelling_4')
UNION ALL SELECT * FROM geonn_nearest('spelling_4', 'spelling_1');

-- names that need quotes
CREATE SCHEMA "Odd ""schema""";
CREATE TABLE "Odd ""schema"""."select from" (lat float8, lon float8, "The ""Id"", of" bigint PRIMARY KEY);
INSERT INTO "Odd ""schema"""."select from" VALUES (1, 2, 3);
SELECT * FROM geonn_nearest('"Odd ""schema"""."select from"', 'spelling_1');

-- the primary key comes before a column "id", where it is one column
CREATE TABLE keyed (id bigint, code integer PRIMARY KEY, lat float8, lon float8);
INSERT INTO keyed VALUES (1, 77, 10, 10);
SELECT * FROM geonn_nearest('keyed', 'keyed');
CREATE TABLE keyed_twice (id bigint, code integer, lat float8, lon float8, PRIMARY KEY (code, id));
INSERT INTO keyed_twice VALUES (1, 77, 10, 10);
SELECT * FROM geonn_nearest('keyed_twice', 'keyed_twice');
-- one that is checked later is one, too
CREATE TABLE keyed_later (id bigint, code integer PRIMARY KEY DEFERRABLE, lat float8, lon float8);
INSERT INTO keyed_later VALUES (1, 77, 10, 10);
SELECT * FROM geonn_nearest('keyed_later', 'keyed_later');
-- a unique constraint is no primary key
CREATE TABLE keyed_uniquely (id bigint, code integer UNIQUE NOT NULL, lat float8, lon float8);
INSERT INTO keyed_uniquely VALUES (1, 77, 10, 10);
SELECT * FROM geonn_nearest('keyed_uniquely', 'keyed_uniquely');

-- dropped and further columns do not matter
CREATE TABLE altered (lat text, a integer, id bigint, b text, latitude float8, lon float8);
INSERT INTO altered VALUES ('x', 1, 2, 'y', 3, 4);
SELECT * FROM geonn_nearest('altered', 'altered');
ALTER TABLE altered DROP COLUMN lat, DROP COLUMN b;
ALTER TABLE altered ADD COLUMN c text DEFAULT 'z';
SELECT * FROM geonn_nearest('altered', 'altered');

-- nothing that could be it
CREATE TABLE no_id (key bigint, lat float8, lon float8);
CREATE TABLE no_id_two_keys (a integer, b integer, lat float8, lon float8, PRIMARY KEY (a, b));
CREATE TABLE no_latitude (id bigint, y float8, lon float8);
CREATE TABLE no_longitude (id bigint, lat float8, x float8);
CREATE TABLE no_columns ();
SELECT * FROM geonn_nearest('no_id', 'spelling_1');
SELECT * FROM geonn_nearest('no_id_two_keys', 'spelling_1');
-- how to come by an id, where one may add a column and where not
CREATE TABLE "No ""id""" (lat float8, lon float8);
CREATE TABLE parted (lat float8, lon float8) PARTITION BY RANGE (lat);
CREATE TABLE part PARTITION OF parted DEFAULT;
CREATE TABLE parent (lat float8, lon float8);
CREATE TABLE child () INHERITS (parent);
CREATE TYPE coordinates AS (lat float8, lon float8);
CREATE TABLE typed OF coordinates;
CREATE VIEW view_no_id AS SELECT lat, lon FROM no_id;
CREATE MATERIALIZED VIEW copy_no_id AS SELECT lat, lon FROM no_id;
SELECT * FROM geonn_nearest('"No ""id"""', 'spelling_1');
SELECT * FROM geonn_nearest('parted', 'spelling_1');
SELECT * FROM geonn_nearest('part', 'spelling_1');
SELECT * FROM geonn_nearest('parent', 'spelling_1');
SELECT * FROM geonn_nearest('child', 'spelling_1');
SELECT * FROM geonn_nearest('typed', 'spelling_1');
SELECT * FROM geonn_nearest('view_no_id', 'spelling_1');
SELECT * FROM geonn_nearest('copy_no_id', 'spelling_1');
CREATE ROLE regress_geonn_columns;
GRANT USAGE ON SCHEMA columns TO regress_geonn_columns;
GRANT SELECT ON no_id TO regress_geonn_columns;
SET ROLE regress_geonn_columns;
SELECT * FROM geonn_nearest('no_id', 'spelling_1');
RESET ROLE;
-- the HINT has the column that looks like a key
CREATE FUNCTION pg_temp.hinted(key text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    EXECUTE format('CREATE TABLE columns.loaded (%s, lat float8, lon float8)', key);
    PERFORM * FROM geonn_nearest('spelling_1', 'columns.loaded');
    RETURN NULL;
EXCEPTION WHEN undefined_column THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN substring(hint, '^[^;]*');
END $$;
SELECT key, pg_temp.hinted(key)
FROM unnest('{gid integer,ogc_fid integer,"osm_id bigint, way_id bigint","index bigint","\"OBJECTID\" integer",stop_id text,"stop_id text, zone_id text"}'::text[]) AS key;
DROP FUNCTION pg_temp.hinted;
-- and what it has works as it is
CREATE FUNCTION hint(relation regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    PERFORM * FROM geonn_nearest(relation, 'spelling_1');
    RETURN NULL;
EXCEPTION WHEN undefined_column THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN hint;
END $$;
BEGIN;
INSERT INTO no_id VALUES (3, 10, 10), (4, 20, 20);
INSERT INTO "No ""id""" VALUES (10, 10), (20, 20);
INSERT INTO parted VALUES (10, 10), (20, 20);
INSERT INTO parent VALUES (10, 10);
INSERT INTO child VALUES (20, 20);
INSERT INTO typed VALUES (10, 10), (20, 20);
SET client_min_messages = warning;
SELECT format('%s SELECT count(DISTINCT obs_id) FROM geonn_nearest(%L, ''spelling_1''); DROP TABLE IF EXISTS my_points;',
              substring(hint(relation), '(?:add one|numbers them): (.*)'),
              CASE WHEN hint(relation) LIKE '%CREATE TABLE my_points%' THEN 'my_points' ELSE relation::text END)
FROM unnest('{view_no_id,part,typed,parent,parted,no_id,"\"No \"\"id\"\"\""}'::regclass[]) AS relation \gexec
ROLLBACK;
DROP FUNCTION hint;
DROP OWNED BY regress_geonn_columns;
DROP ROLE regress_geonn_columns;
SELECT * FROM geonn_nearest('spelling_1', 'no_latitude');
SELECT * FROM geonn_nearest('no_longitude', 'no_id');
SELECT * FROM geonn_nearest('no_columns', 'no_columns');
SELECT format('CREATE TABLE wide (%s)', string_agg('c' || i || ' integer', ', ' ORDER BY i))
FROM generate_series(1, 30) i \gexec
SELECT * FROM geonn_nearest('wide', 'wide');
-- which a view mends
CREATE VIEW mended AS SELECT key AS id, lat, lon FROM no_id;
SELECT * FROM geonn_nearest('mended', 'spelling_1');

-- more than one that could be it
CREATE TABLE two_ids (id bigint, "ID" bigint, lat float8, lon float8);
CREATE TABLE two_latitudes (id bigint, lat float8, "Latitude" float8, lon float8);
CREATE TABLE three_longitudes (id bigint, lat float8, lon float8, lng float8, "LONG" float8);
SELECT * FROM geonn_nearest('two_ids', 'spelling_1');
SELECT * FROM geonn_nearest('spelling_1', 'two_latitudes');
SELECT * FROM geonn_nearest('three_longitudes', 'spelling_1');

-- types that are none
CREATE TABLE text_id (id text PRIMARY KEY, lat float8, lon float8);
CREATE TABLE uuid_id (id bigint, key uuid PRIMARY KEY, lat float8, lon float8);
CREATE TABLE text_latitude (id bigint, lat text, lon float8);
CREATE TABLE array_longitude (id bigint, lat float8, lon float8[]);
SELECT * FROM geonn_nearest('text_id', 'spelling_1');
SELECT * FROM geonn_nearest('uuid_id', 'spelling_1');
SELECT * FROM geonn_nearest('spelling_1', 'text_latitude');
SELECT * FROM geonn_nearest('array_longitude', 'spelling_1');

-- relations that have no rows to read, or are not there
CREATE SEQUENCE number;
CREATE TYPE point_type AS (id bigint, lat float8, lon float8);
CREATE TABLE indexed (id bigint, lat float8, lon float8);
CREATE INDEX index_of_indexed ON indexed (id);
SELECT * FROM geonn_nearest('number', 'spelling_1');
SELECT * FROM geonn_nearest('point_type', 'spelling_1');
SELECT * FROM geonn_nearest('spelling_1', 'index_of_indexed');
SELECT * FROM geonn_nearest(0, 'spelling_1');
SELECT * FROM geonn_nearest('no_such_table', 'spelling_1');
PREPARE dropped AS SELECT * FROM geonn_nearest($1, 'spelling_1');
SELECT 'indexed'::regclass::oid AS oid \gset
DROP TABLE indexed;
\set VERBOSITY sqlstate
EXECUTE dropped (:oid);
SELECT * FROM geonn_nearest('number', 'spelling_1');
SELECT * FROM geonn_nearest('no_id', 'spelling_1');
SELECT * FROM geonn_nearest('two_ids', 'spelling_1');
SELECT * FROM geonn_nearest('text_id', 'spelling_1');

SET client_min_messages = warning;
DROP SCHEMA columns CASCADE;
DROP SCHEMA "Odd ""schema""" CASCADE;
