-- every kind of relation that a SELECT reads
-- rooms: points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
CREATE EXTENSION IF NOT EXISTS file_fdw;
RESET client_min_messages;
CREATE SCHEMA relations;
SET search_path = relations, public;

CREATE TABLE ref (id integer PRIMARY KEY, lat float8, lon float8);
INSERT INTO ref SELECT i, i * 10, i * 10 FROM generate_series(0, 8) i;

-- views: of one table, of joins and aggregates, with their own computations
CREATE TABLE fix (ship integer, at timestamp, lat float8, lon float8);
INSERT INTO fix VALUES (1, '2024-01-01', 1, 1), (1, '2024-01-02', 12, 12),
    (2, '2024-01-01', 50, 49), (2, '2024-01-03', 71, 70);
CREATE VIEW latest AS
SELECT DISTINCT ON (ship) ship AS id, lat, lon FROM fix ORDER BY ship, at DESC;
CREATE VIEW average AS
SELECT ship::bigint AS id, avg(lat) AS latitude, avg(lon)::numeric AS longitude
FROM fix GROUP BY ship;
CREATE VIEW latest_far AS SELECT * FROM latest WHERE lat > 20;
SELECT * FROM geonn_nearest('latest', 'ref') ORDER BY obs_id;
SELECT * FROM geonn_nearest('average', 'ref') ORDER BY obs_id;
SELECT * FROM geonn_nearest('ref', 'latest_far') WHERE obs_id < 2 ORDER BY obs_id;

-- a view of geonn_nearest itself
CREATE VIEW matched AS
SELECT n.obs_id AS id, r.lat, r.lon FROM geonn_nearest('latest', 'ref') n JOIN ref r ON r.id = n.ref_id;
SELECT * FROM geonn_nearest('matched', 'latest') ORDER BY obs_id;

-- materialized views
CREATE MATERIALIZED VIEW latest_kept AS SELECT * FROM latest;
SELECT * FROM geonn_nearest('latest_kept', 'ref') ORDER BY obs_id;
CREATE MATERIALIZED VIEW latest_later AS SELECT * FROM latest WITH NO DATA;
SELECT * FROM geonn_nearest('latest_later', 'ref');

-- partitioned tables, with columns in another order below, and their parts
CREATE TABLE parted (id bigint, region text, lat float8, lon float8) PARTITION BY LIST (region);
CREATE TABLE parted_east PARTITION OF parted FOR VALUES IN ('east');
CREATE TABLE parted_west (lon float8, region text, id bigint, extra integer, lat float8);
ALTER TABLE parted_west DROP COLUMN extra;
ALTER TABLE parted ATTACH PARTITION parted_west FOR VALUES IN ('west');
INSERT INTO parted VALUES (1, 'east', 1, 2), (2, 'west', 21, -22), (3, 'west', -31, 32);
SELECT obs_id, ref_id FROM geonn_nearest('parted', 'ref') ORDER BY obs_id;
SELECT obs_id, ref_id FROM geonn_nearest('parted_west', 'parted') ORDER BY obs_id;
SELECT obs_id, ref_id FROM geonn_nearest('parted', 'parted_east') ORDER BY obs_id;
CREATE TABLE parted_by_key (id integer PRIMARY KEY, lat float8, lon float8) PARTITION BY HASH (id);
CREATE TABLE parted_by_key_0 PARTITION OF parted_by_key FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parted_by_key_1 PARTITION OF parted_by_key FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parted_by_key SELECT i, i, -i FROM generate_series(1, 50) i;
SELECT count(*), count(DISTINCT obs_id), max(distance) FROM geonn_nearest('parted_by_key', 'parted_by_key');

-- inheritance includes the children
CREATE TABLE parent (id bigint, lat float8, lon float8);
CREATE TABLE child (more text) INHERITS (parent);
INSERT INTO parent VALUES (1, 1, 1);
INSERT INTO child VALUES (2, 2, 2, 'x');
SELECT obs_id, ref_id FROM geonn_nearest('parent', 'ref') ORDER BY obs_id;

-- foreign tables
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE remote (id integer, lat float8, lon float8)
SERVER files OPTIONS (program 'printf "%s\n" 1,12,13 2,NaN,13 3,44,45', format 'csv');
SELECT * FROM geonn_nearest('remote', 'ref') ORDER BY obs_id;
SELECT * FROM geonn_nearest('latest', 'remote') ORDER BY obs_id;
CREATE FOREIGN TABLE broken (id integer, lat float8, lon float8)
SERVER files OPTIONS (program 'printf "%s\n" 1,12,13 2,x,13', format 'csv');
SELECT * FROM geonn_nearest('broken', 'ref');
SELECT * FROM geonn_nearest('latest', 'ref') ORDER BY obs_id;

-- temporary and unlogged tables
CREATE TEMP TABLE passing (id bigint, lat float8, lon float8);
INSERT INTO passing VALUES (1, 33, 33);
CREATE UNLOGGED TABLE light (id bigint, lat float8, lon float8);
INSERT INTO light VALUES (2, 34, 33);
SELECT * FROM geonn_nearest('passing', 'light');
SELECT * FROM geonn_nearest('light', 'pg_temp.passing');

-- generated columns
CREATE TABLE computed (id bigint GENERATED ALWAYS AS IDENTITY, micro_lat integer,
    lat float8 GENERATED ALWAYS AS (micro_lat / 1e6) STORED, lon float8);
INSERT INTO computed (micro_lat, lon) VALUES (39900000, 41);
SELECT * FROM geonn_nearest('computed', 'ref');

-- a relation that is not on the search path, or hidden by another
CREATE SCHEMA elsewhere;
CREATE TABLE elsewhere.ref (id integer, lat float8, lon float8);
INSERT INTO elsewhere.ref VALUES (100, 0, 0);
SELECT DISTINCT ref_id FROM geonn_nearest('ref', 'elsewhere.ref');
SET search_path = '';
SELECT DISTINCT ref_id FROM public.geonn_nearest('relations.latest', 'elsewhere.ref');
SELECT count(*) FROM public.geonn_describe('relations.ref');
SET search_path = relations, public;

-- a view that fails on its way says which relation was being read
CREATE VIEW failing AS SELECT id, 1 / (id - 3) AS lat, lon FROM ref;
SELECT * FROM geonn_nearest('failing', 'ref');

-- a name that comes to mean another table while the references are read: the observations are those that were chosen
CREATE TABLE before (id integer PRIMARY KEY, lat numeric, lon numeric);
INSERT INTO before VALUES (1, 1, 1);
CREATE TABLE after (id integer PRIMARY KEY, lat float8, lon float8);
INSERT INTO after VALUES (1, 1, 1);
CREATE FUNCTION exchange() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    ALTER TABLE before RENAME TO former;
    ALTER TABLE after RENAME TO before;
    RETURN true;
END $$;
CREATE VIEW exchanging AS SELECT id, lat, lon FROM (SELECT * FROM ref LIMIT 1) one WHERE exchange();
SELECT * FROM geonn_nearest('before', 'exchanging');
-- which cannot be altered by then
CREATE FUNCTION alter_type() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    ALTER TABLE before ALTER lat TYPE float8;
    RETURN true;
END $$;
CREATE VIEW altering AS SELECT id, lat, lon FROM (SELECT * FROM ref LIMIT 1) one WHERE alter_type();
SELECT * FROM geonn_nearest('before', 'altering');

-- the extension moves with its schema
BEGIN;
ALTER EXTENSION geonn SET SCHEMA elsewhere;
SELECT (elsewhere.geonn_nearest('latest', 'ref')).ref_id ORDER BY 1;
ROLLBACK;

SET client_min_messages = warning;
DROP SCHEMA relations CASCADE;
DROP SCHEMA elsewhere CASCADE;
DROP SERVER files CASCADE;
