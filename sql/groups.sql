-- by: the nearest reference within the same group
-- rooms: join engine/dataset
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA groups;
SET search_path = groups, public;

-- The definition: the first k references in the order (distance, id, latitude,
-- longitude) of those whose columns equal the observation's, and which
-- "further" (SQL on o, r and distance) leaves; with ties, also those as far as
-- the last of these.  arguments: the same in geonn's words.
CREATE FUNCTION compare(obs regclass, ref regclass, by name[], k integer DEFAULT 1,
    further text DEFAULT 'true', arguments text DEFAULT '', ties boolean DEFAULT false,
    keep_unmatched boolean DEFAULT false, metric text DEFAULT 'sphere',
    OUT rows bigint, OUT unmatched bigint, OUT missing bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
DECLARE
    same text := (SELECT string_agg(format('o.%1$I = r.%1$I', b), ' AND ') FROM unnest(by) b);
BEGIN
    EXECUTE format($query$
        CREATE TEMP TABLE expected AS
        SELECT o.id AS obs_id, r.id AS ref_id, r.distance, coalesce(r.rank, 1) AS rank
        FROM %1$s o %8$s JOIN LATERAL (
            SELECT r.id, distance,
                row_number() OVER (ORDER BY distance, r.id, r.lat, r.lon) AS rank,
                rank() OVER (ORDER BY distance) AS place
            FROM (SELECT *, geonn_distance(o.lat, o.lon, lat, lon, %7$L) AS distance FROM %2$s) r
            WHERE %3$s AND %4$s) r
        ON r.%6$s <= %5$s
        WHERE %9$L OR o.id IS NOT NULL
        $query$, obs, ref, same, further, k, CASE WHEN ties THEN 'place' ELSE 'rank' END, metric,
        CASE WHEN keep_unmatched THEN 'LEFT' END, keep_unmatched);
    EXECUTE format($query$
        CREATE TEMP TABLE found AS
        SELECT * FROM geonn_nearest(%L, %L, by => %L, k => %s, ties => %L, keep_unmatched => %L,
            metric => %L, row_type => NULL::record %s)
            AS n (obs_id bigint, ref_id bigint, distance float8, rank bigint)
        $query$, obs, ref, by, k, CASE WHEN ties THEN 'all' ELSE 'first' END, keep_unmatched,
        metric, arguments);
    SELECT count(*), count(*) FILTER (WHERE ref_id IS NULL) INTO rows, unmatched FROM found;
    SELECT count(*) INTO missing
    FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM found) x;
    SELECT count(*) INTO wrong
    FROM (SELECT * FROM found EXCEPT ALL SELECT * FROM expected) x;
    DROP TABLE expected, found;
END $$;

-- an example: the nearest airport in the same country
CREATE TABLE city (id bigint PRIMARY KEY, name text, country text, lat float8, lon float8);
CREATE TABLE airport (id integer PRIMARY KEY, code text, country text, lat float8, lon float8);
INSERT INTO city VALUES (1, 'Basel', 'CH', 47.56, 7.59), (2, 'Mulhouse', 'FR', 47.75, 7.34),
    (3, 'Freiburg', 'DE', 47.99, 7.85), (4, 'Vaduz', 'LI', 47.14, 9.52), (5, 'nowhere', NULL, 0, 0);
INSERT INTO airport VALUES (1, 'BSL', 'FR', 47.5896, 7.5299), (2, 'ZRH', 'CH', 47.4647, 8.5492),
    (3, 'FKB', 'DE', 48.7794, 8.0805), (4, 'STR', 'DE', 48.6899, 9.222), (5, '???', NULL, 0, 0);
SELECT c.name, a.code, round(distance) AS metres
FROM geonn_nearest('city', 'airport', by => ARRAY['country']) n
JOIN city c ON c.id = n.obs_id JOIN airport a ON a.id = n.ref_id ORDER BY c.id;
SELECT c.name, a.code, round(distance) AS metres
FROM geonn_nearest('city', 'airport', by => '{country}', keep_unmatched => true) n
JOIN city c ON c.id = n.obs_id LEFT JOIN airport a ON a.id = n.ref_id ORDER BY c.id;

-- columns of many types: i has 0 to 12, sides have some of these each, and some
-- of them are NULL
CREATE TABLE place (id bigint, i integer, lat float8, lon float8);
CREATE TABLE station (id integer, i integer, lat float8, lon float8);
INSERT INTO place SELECT row_number() OVER (), nullif((lat * 22 + lon * 6)::integer % 13, 12), lat, lon
FROM generate_series(-3, 3, 0.5) lat, generate_series(177, 183, 0.5) lon;
INSERT INTO station SELECT row_number() OVER (ORDER BY lon, lat DESC), nullif((lat * 5 + lon)::integer % 11, 0),
    lat, CASE WHEN lon > 180 THEN lon - 360 ELSE lon END
FROM generate_series(-3, 3) lat, generate_series(177, 183) lon;
SELECT * FROM compare('place', 'station', '{i}');
SELECT count(*) AS in_one_side_alone FROM (
    (SELECT i FROM place EXCEPT SELECT i FROM station) UNION ALL (SELECT i FROM station EXCEPT SELECT i FROM place)) x;
CREATE TYPE size AS ENUM ('small', 'medium', 'large', 'huge');
CREATE DOMAIN code AS varchar(9);
CREATE TYPE two_parts AS (a text, b integer);
CREATE FUNCTION compare_type(type text, key text, OUT rows bigint, OUT unmatched bigint,
    OUT missing bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE place ADD key %s', type);
    EXECUTE format('ALTER TABLE station ADD key %s', type);
    EXECUTE format('UPDATE place SET key = %s', key);
    EXECUTE format('UPDATE station SET key = %s', key);
    SELECT c.* INTO rows, unmatched, missing, wrong
    FROM compare('place', 'station', '{key}', 2, keep_unmatched => true) c;
    ALTER TABLE place DROP COLUMN key;
    ALTER TABLE station DROP COLUMN key;
END $$;
CREATE TYPE with_money AS (price money, number numeric);
SET client_min_messages = warning;
SELECT t.*, c.* FROM (VALUES
    ('bigint', 'i * 1000000000000'),
    ('smallint', '-i'),
    -- equal values that are not the same bytes
    ('numeric', 'round(i / 3, id::integer % 4)'),
    ('double precision', '(ARRAY[0, ''-0'', ''NaN'', 0.1])[(i + id) % 4 + 1]::float8'),
    ('character(8)', 'i % 5 || repeat('' '', id::integer % 3)'),
    ('interval', '(ARRAY[''1 day'', ''24 hours'', ''1 month'', ''30 days''])[(i + id) % 4 + 1]::interval'),
    ('timestamp with time zone', '(''2020-06-01 12:00+'' || i)::timestamptz'),
    ('text', 'CASE WHEN i % 2 = 0 THEN ''A'' ELSE ''a'' END || i % 3'),
    ('text COLLATE "C"', 'CASE WHEN i % 2 = 0 THEN ''A'' ELSE ''a'' END || i % 3'),
    ('varchar(20)', 'md5(i::text)::varchar(20)'),
    ('code', 'i'),
    ('name', 'md5(i::text)'),
    ('bytea', 'decode(repeat(''00'', i), ''hex'')'),
    ('uuid', 'md5(i::text)::uuid'),
    ('size', '(enum_range(NULL::size))[i % 4 + 1]'),
    ('boolean', 'i % 2 = 0'),
    ('date', 'date ''2000-01-15'' - i'),
    ('inet', '(''10.0.0.'' || i)::inet'),
    ('integer[]', 'ARRAY[i % 3, NULL]'),
    ('text[]', 'ARRAY[md5(i::text), ''x'']'),
    ('jsonb', 'jsonb_build_object(''a'', i % 3)'),
    ('int4range', 'int4range(i % 3, i)'),
    ('two_parts', '(i::text, NULL)::two_parts'),
    ('xid', 'i::text::xid'),
    -- without a hash function; of the last two equal values may have other bytes
    ('money', 'i::numeric::money'),
    ('bit varying', 'repeat(''0'', i % 5)::bit varying'),
    ('money[]', 'ARRAY[i::numeric::money, NULL]'),
    ('tsvector', '(''a'' || i)::tsvector'),
    ('with_money', '(i, round(i / 3, id::integer % 4))::with_money'),
    -- long: kept beside the table, or compressed
    ('text', '(SELECT string_agg(md5(i || ''/'' || n), '''') FROM generate_series(1, 300) n)'),
    ('text', 'repeat(''long '', 3000) || i')
    ) t (type, key), compare_type(t.type, t.key) c;

-- a collation that takes 'a' for 'A', where this PostgreSQL has such ones
DO $$
BEGIN
    CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported THEN
    CREATE COLLATION folded FROM "C";
END $$;
SELECT missing, wrong FROM compare_type('text COLLATE folded',
    'CASE WHEN id % 2 = 0 THEN ''A'' ELSE ''a'' END || i');
RESET client_min_messages;

-- several columns: all of them have to be equal, and one NULL is enough
ALTER TABLE place ADD j text, ADD "K k" uuid;
ALTER TABLE station ADD "K k" uuid, ADD j text;
UPDATE place SET j = nullif(id % 3, 2), "K k" = md5((id % 2)::text)::uuid;
UPDATE station SET j = nullif(id % 4, 3), "K k" = md5((id % 3)::text)::uuid;
SELECT * FROM compare('place', 'station', '{j}', keep_unmatched => true);
SELECT * FROM compare('place', 'station', '{i,j}', keep_unmatched => true);
SELECT * FROM compare('place', 'station', '{j,"K k"}', keep_unmatched => true);
SELECT * FROM compare('place', 'station', ARRAY['K k', 'j', 'i'], keep_unmatched => true);
-- the id and the coordinates are columns, too
SELECT * FROM compare('place', 'place', '{id}');
SELECT * FROM compare('place', 'place', '{lat}', 5);
SELECT count(*), max(distance) FROM geonn_nearest('place', 'place', by => '{lat,lon}', exclude_self => true);

-- with the other arguments
SELECT * FROM compare('place', 'station', '{i}', 3);
SELECT * FROM compare('place', 'station', '{i}', 1024, keep_unmatched => true);
SELECT * FROM compare('place', 'station', '{i}', 2, 'distance <= 222390.2', ', max_distance => 222390.2',
                      keep_unmatched => true);
SELECT * FROM compare('place', 'station', '{i}', 2, ties => true);
SELECT * FROM compare('place', 'place', '{j}', 2, 'o.id <> r.id', ', exclude_self => true', ties => true,
                      keep_unmatched => true);
SELECT * FROM compare('place', 'station', '{i}', 3, keep_unmatched => true, metric => 'spheroid');
SELECT * FROM compare('place', 'station', '{i}', 2, 'distance <= 300000 AND o.id <> r.id',
                      ', max_distance => 300000, exclude_self => true', true, true, 'spheroid');
SELECT * FROM compare('place', 'station', '{i}', 2, arguments => ', options => ''{"algorithm": "brute"}''');
SELECT * FROM compare('place', 'station', '{i}', 2, arguments => ', options => ''{"batch_rows": 7}''');
-- and with none of the references in any group, no columns, or no such array
CREATE VIEW station_without AS SELECT id, NULL::integer AS i, lat, lon FROM station;
SELECT * FROM compare('place', 'station_without', '{i}');
SELECT * FROM compare('place', 'station_without', '{i}', keep_unmatched => true);
SELECT count(*) FROM geonn_nearest('place', 'station', by => '{}');
SELECT count(*) FROM geonn_nearest('place', 'station', by => NULL);

-- within a radius
SELECT count(*), sum((n.distance = geonn_distance(o.lat, o.lon, r.lat, r.lon))::integer) AS exact
FROM geonn_within('place', 'station', 250000, by => '{i,j}') n
JOIN place o ON o.id = n.obs_id JOIN station r ON r.id = n.ref_id AND r.i = o.i AND r.j = o.j;
SELECT count(*) FROM geonn_within('place', 'station', 250000, by => '{i,j}');
SELECT count(*) FROM place o JOIN station r USING (i, j)
WHERE geonn_distance(o.lat, o.lon, r.lat, r.lon) <= 250000;

-- a group may be what a view, or a query, computes
CREATE VIEW place_band AS SELECT id, lat, lon, floor(lat) AS band FROM place;
CREATE VIEW station_band AS SELECT id, lat, lon, floor(lat) AS band FROM station;
SELECT * FROM compare('place_band', 'station_band', '{band}', 2);
SELECT count(*), (array_agg(n ORDER BY n.*))[1] FROM (
    SELECT * FROM geonn_nearest('place_band', 'station_band', by => '{band}')
    EXCEPT ALL
    SELECT * FROM geonn_nearest_sql('SELECT *, floor(lat) AS f FROM place',
                                    'SELECT *, floor(lat) AS f FROM station', by => '{f}')) n;

-- many groups, of a few references and of many each
CREATE TABLE many AS
SELECT i AS id, (i * 104729 % 180001) / 1000.0 - 90 AS lat, (i * 1299709 % 540001) / 1000.0 - 180 AS lon,
       i * 7919 % 5000 AS "group", md5((i % 3)::text) AS week
FROM generate_series(1, 20000::bigint) i;
CREATE INDEX ON many ("group");
SELECT * FROM compare('many', 'many', '{group}', 2, 'o.id <> r.id', ', exclude_self => true');
SELECT * FROM compare('many', 'many', '{group,week}', 3, 'o.id <> r.id', ', exclude_self => true',
                      keep_unmatched => true);
CREATE TABLE few AS SELECT * FROM many WHERE id <= 30;
SELECT * FROM compare('few', 'many', '{week}', 100);
SELECT * FROM compare('many', 'few', '{week}', 2);

-- columns of two names: a pair is the observations' name and the references', in tables, queries, caches, and windows
CREATE TABLE station_other AS SELECT id, lat, lon, i AS u, j AS v, i % 3 AS x, CASE WHEN i IS NOT NULL THEN int4range(i, i + 1) END AS w FROM station;
ANALYZE station_other;
SELECT count(*) FROM (
    SELECT * FROM geonn_nearest('place', 'station', by => '{i,j}', keep_unmatched => true) EXCEPT
    SELECT * FROM geonn_nearest('place', 'station_other', by => '{i=u,j=v}', keep_unmatched => true)) n;
SELECT count(*) FROM (
    SELECT * FROM geonn_nearest('station', 'place', by => '{i,j}', keep_unmatched => true) EXCEPT
    SELECT * FROM geonn_nearest('station_other', 'place', by => ARRAY['u=i', 'v=j'], keep_unmatched => true)) n;
SELECT count(*) FROM (
    SELECT * FROM geonn_nearest('place', 'station', by => '{i}') EXCEPT
    SELECT * FROM geonn_nearest_sql('TABLE place', 'TABLE station_other', by => '{i=u}')) n;
-- one column may be in two pairs, as in i = u AND i = v
SELECT count(*) > 0 AS some, count(*) = (SELECT count(*) FROM place p JOIN station_other s ON p.i = s.u AND p.i = s.x) AS both
FROM geonn_within('place', 'station_other', 'Infinity', by => '{i=u,i=x}');
EXPLAIN (COSTS OFF) SELECT * FROM geonn_nearest('place', 'station_other', by => '{i=u,j=v}');
SELECT count(*) FROM (
    SELECT * FROM geonn_nearest('place', 'station', by => '{i}') EXCEPT
    SELECT * FROM geonn_nearest('place', 'station_other', overlaps => '{i=w}')) n;
SELECT geonn_cache_create('pair', 'place', 'station_other', by => '{i=u}');
UPDATE station_other SET u = u + 1 WHERE id % 5 = 0;
CALL geonn_refresh('pair');
SELECT count(*) FROM (SELECT obs_id, ref_id, distance FROM pair EXCEPT
    SELECT * FROM geonn_nearest('place', 'station_other', by => '{i=u}')) n;
SELECT geonn_cache_drop('pair');

-- what cannot be
SELECT * FROM geonn_nearest('place', 'station', by => '{nothing}');
SELECT * FROM geonn_nearest('place', 'station_other', by => '{i}');
SELECT * FROM geonn_nearest('station_other', 'place', by => '{i}');
SELECT * FROM geonn_nearest('place', 'station_other', by => '{i=w}');
SELECT * FROM geonn_nearest('place', 'station_other', by => '{i=,=u}');
SELECT * FROM geonn_nearest('place', 'station_other', by => ARRAY['i=u', 'i=u']);
SELECT * FROM geonn_nearest('place', 'station_other', by => ARRAY[repeat('x', 40) || '=' || repeat('y', 40)]::name[]);
SELECT * FROM geonn_nearest('place', 'station_other', overlaps => '{lat=w}');
SELECT * FROM geonn_nearest_points('{1}', '{1}', 'station_other', overlaps => '{u=w}', windows => '{1}'::integer[]);
SELECT * FROM geonn_nearest('place', 'station', by => '{I}');
ALTER TABLE place ADD mine integer;
ALTER TABLE station ADD theirs integer;
SELECT * FROM geonn_nearest('place', 'station', by => '{i,mine}');
SELECT * FROM geonn_nearest('place', 'station', by => '{theirs}');
SELECT * FROM geonn_nearest('place', 'station', by => '{ctid}');
SELECT * FROM geonn_nearest('place', 'station', by => '{i,j,i}');
SELECT * FROM geonn_nearest('place', 'station', by => '{i,NULL}');
SELECT * FROM geonn_nearest('place', 'station', by => ARRAY[NULL]::name[]);
-- a name longer than 63 bytes is cut, as PostgreSQL cuts it
SELECT * FROM geonn_nearest('place', 'station', by => ARRAY['i', repeat('x', 70)]::name[]);
ALTER TABLE place ADD a integer, ADD b varchar(3), ADD c json, ADD d point, ADD e json[], ADD f code;
ALTER TABLE station ADD a bigint, ADD b text, ADD c json, ADD d point, ADD e json[], ADD f varchar;
SELECT * FROM geonn_nearest('place', 'station', by => '{a}');
SELECT * FROM geonn_nearest('place', 'station', by => '{i,b}');
SELECT * FROM geonn_nearest('place', 'station', by => '{c}');
SELECT * FROM geonn_nearest('place', 'station', by => '{d}');
SELECT * FROM geonn_nearest('place', 'station', by => '{j,e}');
-- a domain is the type below it
SELECT * FROM geonn_nearest('place', 'station', by => '{f}');
SELECT * FROM geonn_nearest_sql('SELECT * FROM place', 'SELECT id, lat, lon, i AS k FROM station', by => '{i}');
\set VERBOSITY sqlstate
SELECT * FROM geonn_nearest('place', 'station', by => '{nothing}');
SELECT * FROM geonn_nearest('place', 'station', by => '{i,j,i}');
SELECT * FROM geonn_nearest('place', 'station', by => '{i,NULL}');
SELECT * FROM geonn_nearest('place', 'station', by => '{a}');
SELECT * FROM geonn_nearest('place', 'station', by => '{c}');

SET client_min_messages = warning;
DROP SCHEMA groups CASCADE;
