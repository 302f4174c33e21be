-- ties => 'all': also those as far as the last of the k nearest
-- rooms: join engine/cpu/walk
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA ties;
SET search_path = ties, public;

-- The definition, for each observation: all references of which fewer than k
-- are nearer.  Their ranks are 1, 2, 3, .... in the order (distance, id, latitude,
-- longitude).
CREATE FUNCTION compare(obs regclass, ref regclass, k integer DEFAULT 1,
    further text DEFAULT 'true', arguments text DEFAULT '', metric text DEFAULT 'sphere',
    OUT rows bigint, OUT most bigint, OUT missing bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($query$
        CREATE TEMP TABLE expected AS
        SELECT o.id AS obs_id, r.id AS ref_id, r.distance, r.rank
        FROM %1$s o CROSS JOIN LATERAL (
            SELECT r.id, distance,
                row_number() OVER (ORDER BY distance, r.id, r.lat, r.lon) AS rank,
                rank() OVER (ORDER BY distance) AS place
            FROM (SELECT *, geonn_distance(o.lat, o.lon, lat, lon, %5$L) AS distance FROM %2$s) r
            WHERE %4$s) r
        WHERE place <= %3$s
        $query$, obs, ref, k, further, metric);
    EXECUTE format($query$
        CREATE TEMP TABLE found AS
        SELECT * FROM geonn_nearest(%L, %L, k => %s, ties => 'all', metric => %L,
            row_type => NULL::record %s)
            AS n (obs_id bigint, ref_id bigint, distance float8, rank bigint)
        $query$, obs, ref, k, metric, arguments);
    SELECT count(*), max(rank) INTO rows, most FROM found;
    SELECT count(*) INTO missing
    FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM found) x;
    SELECT count(*) INTO wrong
    FROM (SELECT * FROM found EXCEPT ALL SELECT * FROM expected) x;
    DROP TABLE expected, found;
END $$;

-- an example: two doors of one station, and another station as far
CREATE TABLE home (id integer, lat float8, lon float8);
INSERT INTO home VALUES (1, 0, 0);
CREATE TABLE station (id integer, name text, lat float8, lon float8);
INSERT INTO station VALUES (7, 'east, front', 0, 1), (3, 'east, back', 0, 1), (5, 'west', 0, -1),
    (4, 'far', 0, 2), (9, 'north', 1, 0), (1, 'far, too', -2, 0);
SELECT t.ties, n.rank, s.name, n.distance
FROM (VALUES ('first'), ('all')) t (ties),
     geonn_nearest('home', 'station', ties => t.ties, row_type => NULL::record)
         AS n (rank integer, ref_id integer, distance float8)
JOIN station s ON s.id = n.ref_id ORDER BY ties DESC, rank;

-- k counts references: when the k-th shares its distance, all that do come too
SELECT k, array_agg(ref_id ORDER BY rank) AS refs, array_agg(rank ORDER BY rank) AS ranks
FROM generate_series(1, 7) k,
     geonn_nearest('home', 'station', k => k, ties => 'all', row_type => NULL::record)
         AS n (rank integer, ref_id integer) GROUP BY k ORDER BY k;
SELECT k, compare.* FROM unnest(ARRAY[1, 2, 3, 4, 5, 6, 7, 1024]) k, compare('home', 'station', k);

-- a grid in the middle of its cells, and on its lines; the antimeridian; poles
CREATE TABLE grid AS
SELECT row_number() OVER (ORDER BY md5(lat || ',' || lon)) AS id, lat::float8, lon::float8
FROM generate_series(-90, 90, 15) lat, generate_series(-180, 330, 30) lon;
CREATE TABLE half AS
SELECT row_number() OVER () AS id, lat::float8, lon::float8
FROM generate_series(-90, 90, 7.5) lat, generate_series(-180, 180, 15) lon;
SELECT k, compare.* FROM unnest(ARRAY[1, 2, 3, 5, 100]) k, compare('half', 'grid', k);
SELECT k, compare.* FROM unnest(ARRAY[1, 2, 3]) k, compare('grid', 'half', k);
-- poles are as near to all points of a circle of latitude, but for the last bits;
-- and to themselves at every longitude
CREATE TABLE pole AS
SELECT row_number() OVER () AS id, lat::float8, lon::float8
FROM (VALUES (90), (-90)) l (lat), generate_series(0, 270, 90) lon;
SELECT k, compare.* FROM unnest(ARRAY[1, 5, 40]) k, compare('pole', 'grid', k);
SELECT * FROM compare('half', 'pole', 1);
SELECT * FROM compare('half', 'pole', 5);

-- the same points twice, and with the same id
CREATE VIEW twice AS SELECT * FROM grid UNION ALL SELECT id + 1000, lat, lon FROM grid;
CREATE VIEW doubled AS SELECT * FROM grid UNION ALL SELECT * FROM grid;
SELECT k, compare.* FROM unnest(ARRAY[1, 2, 3]) k, compare('half', 'twice', k);
SELECT k, compare.* FROM unnest(ARRAY[1, 2, 3]) k, compare('half', 'doubled', k);

-- thousands in one place, more than a batch has room for, and than k may be
CREATE TABLE heap AS
SELECT i * 7919 % 30011 AS id, 48.5 AS lat, 7.5 AS lon FROM generate_series(1, 3000) i;
INSERT INTO heap VALUES (100000, 48.5, 7.6), (100001, 48.5, 7.4);
CREATE TABLE few AS
SELECT i AS id, 48 + i * 0.1 AS lat, 7 + i * 0.1 AS lon FROM generate_series(1, 9) i;
SELECT k, compare.* FROM unnest(ARRAY[1, 2, 1024]) k, compare('few', 'heap', k);
SELECT b AS batch_rows, compare.*
FROM unnest(ARRAY[1, 2, 5]) b,
     compare('few', 'heap', 2, arguments => format(', options => ''{"batch_rows": %s}''', b));
SELECT a AS algorithm, compare.*
FROM unnest(ARRAY['brute', 'index']) a,
     compare('few', 'heap', 1, arguments => format(', options => ''{"algorithm": "%s"}''', a));
CREATE VIEW heap_part AS SELECT * FROM heap WHERE id < 5000;
SELECT count(*), (SELECT count(*) * (count(*) - 1) FROM heap_part) AS expected
FROM geonn_nearest('heap_part', 'heap_part', ties => 'all', exclude_self => true);

-- with the other arguments
ALTER TABLE grid ADD kind text;
ALTER TABLE half ADD kind text;
UPDATE grid SET kind = nullif(id % 3, 0);
UPDATE half SET kind = nullif(id % 4, 0);
SELECT * FROM compare('half', 'grid', 2, 'o.kind = r.kind', ', by => ''{kind}''');
SELECT * FROM compare('grid', 'grid', 2, 'o.id <> r.id', ', exclude_self => true');
SELECT * FROM compare('twice', 'twice', 1, 'o.id <> r.id', ', exclude_self => true');
SELECT * FROM compare('doubled', 'doubled', 1, 'o.id <> r.id', ', exclude_self => true');
SELECT * FROM compare('grid', 'grid', 3, 'o.kind = r.kind AND o.id <> r.id',
                      ', by => ''{kind}'', exclude_self => true');
SELECT * FROM compare('few', 'heap', 2, 'o.id <> r.id', ', exclude_self => true');
SELECT * FROM compare('half', 'grid', 3, 'distance <= 1667926.158', ', max_distance => 1667926.158');
SELECT * FROM compare('half', 'twice', 3, 'distance <= 0', ', max_distance => 0');
-- on the spheroid, where more depends on the last bits
SELECT k, missing, wrong
FROM unnest(ARRAY[1, 2, 3, 5]) k, compare('half', 'grid', k, metric => 'spheroid');
SELECT * FROM compare('few', 'heap', 2, metric => 'spheroid');
SELECT missing, wrong
FROM compare('twice', 'twice', 1, 'o.id <> r.id', ', exclude_self => true', 'spheroid');

-- 'first' is the default: one of them, that with the first id
SELECT count(*) AS differing FROM (
    (SELECT * FROM geonn_nearest('half', 'grid') EXCEPT ALL
     SELECT * FROM geonn_nearest('half', 'grid', ties => 'first'))
    UNION ALL
    (SELECT * FROM geonn_nearest('half', 'grid') EXCEPT ALL
     (SELECT DISTINCT ON (obs_id) * FROM geonn_nearest('half', 'grid', ties => 'all')
      ORDER BY obs_id, distance, ref_id))) x;

-- what ties cannot be
SELECT * FROM geonn_nearest('home', 'station', ties => 'last');
SELECT * FROM geonn_nearest('home', 'station', ties => 'ALL');
SELECT * FROM geonn_nearest('home', 'station', ties => '');
SELECT * FROM geonn_nearest('home', 'station', ties => NULL);
\set VERBOSITY sqlstate
SELECT * FROM geonn_nearest('home', 'station', ties => 'last');
SELECT * FROM geonn_nearest('home', 'station', ties => NULL);

SET client_min_messages = warning;
DROP SCHEMA ties CASCADE;
