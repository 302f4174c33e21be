-- whichever columns of a result a query asks for, and whatever integers the ids are, the
-- rows are those of the definition: where all of them can be copied as they came from the
-- engine, and where some are computed
-- rooms: join plan
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA result_columns;
SET search_path = result_columns, public;

-- tables whose ids are of each of these types, some of them negative
CREATE FUNCTION id(i integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT CASE i % 2 WHEN 0 THEN i ELSE -i END';
DO $$
DECLARE
    type text;
    other text;
BEGIN
    FOREACH type IN ARRAY ARRAY['int2', 'int4', 'int8', 'text'] LOOP
        EXECUTE format('CREATE TABLE obs_%1$s AS SELECT id(i)::%1$s AS id, (i * 7919 %% 1800) / 10.0::float8 - 90 AS lat,
            (i * 10473 %% 3600) / 10.0::float8 - 180 AS lon FROM generate_series(1, 120) i', type);
        EXECUTE format('CREATE TABLE ref_%1$s AS SELECT id(i)::%1$s AS id, (i * 6317 %% 1800) / 10.0::float8 - 90 AS lat,
            (i * 8543 %% 3600) / 10.0::float8 - 180 AS lon FROM generate_series(1, 25) i', type);
        FOREACH other IN ARRAY ARRAY['int2', 'int4', 'int8', 'text'] LOOP
            EXECUTE format('CREATE TYPE row_%1$s_%2$s AS (distance float8, ref_id %2$s, obs_lat float8, rank bigint, obs_id %1$s, ref_lat float8, obs_lon float8, ref_lon float8)',
                type, other);
        END LOOP;
    END LOOP;
END $$;

-- How many rows of these columns differ from those of the definition; the ids of the result are
-- of the tables' types, or bigint.
CREATE FUNCTION differing(obs text, ref text, wide boolean, columns text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    obs_type text := CASE WHEN wide AND obs <> 'text' THEN 'int8' ELSE obs END;
    ref_type text := CASE WHEN wide AND ref <> 'text' THEN 'int8' ELSE ref END;
    found text := format('SELECT %s FROM geonn_nearest(%L, %L, row_type => NULL::%I)', columns, 'obs_' || obs, 'ref_' || ref,
        'row_' || obs_type || '_' || ref_type);
    defined text := format('SELECT %s FROM (SELECT geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance, r.id::%s AS ref_id, o.lat AS obs_lat,
        1::bigint AS rank, o.id::%s AS obs_id, r.lat AS ref_lat, o.lon AS obs_lon, r.lon AS ref_lon
        FROM %I o CROSS JOIN LATERAL (SELECT * FROM %I r ORDER BY geonn_distance(o.lat, o.lon, r.lat, r.lon), r.id LIMIT 1) r) t',
        columns, ref_type, obs_type, 'obs_' || obs, 'ref_' || ref);
    rows bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM ((%1$s EXCEPT ALL %2$s) UNION ALL (%2$s EXCEPT ALL %1$s)) x', found, defined) INTO rows;
    RETURN rows;
END $$;
EXPLAIN (COSTS OFF) SELECT obs_id FROM geonn_nearest('obs_int2', 'ref_int4', row_type => NULL::row_int2_int4);
SELECT columns, count(*) AS joins, sum(differing(obs, ref, wide, columns)) AS differing
FROM unnest('{int2,int4,int8,text}'::text[]) obs, unnest('{int2,int4,int8,text}'::text[]) ref, unnest('{false,true}'::boolean[]) wide,
    unnest(ARRAY['distance', 'obs_id', 'ref_id', 'obs_lat, obs_lon', 'obs_id, ref_id, distance', 'distance, obs_lat, ref_id, obs_lon, obs_id',
                 'rank, distance', 'ref_lat, ref_lon', 'obs_id, ref_lat, distance', 'ref_id, rank']) columns
GROUP BY columns ORDER BY columns;

-- without any column
SELECT count(*) FROM geonn_nearest('obs_int8', 'ref_int8');

-- rows of observations that are kept come in between, and NULLs are in none but these
INSERT INTO obs_int8 SELECT 1000 + i, CASE i % 3 WHEN 0 THEN 91 WHEN 1 THEN 1 END, CASE i % 2 WHEN 0 THEN 2 END FROM generate_series(1, 300) i;
INSERT INTO obs_int8 SELECT 2000 + i, lat, lon FROM obs_int8, generate_series(1, 100) i WHERE id BETWEEN -119 AND 120;
SELECT count(*), count(obs_id) AS obs_ids, count(ref_id) AS ref_ids, count(distance) AS distances, count(obs_lat) AS latitudes, count(obs_lon) AS longitudes
FROM geonn_nearest('obs_int8', 'ref_int8', keep_unmatched => true, row_type => NULL::row_int8_int8);
SELECT count(*), count(obs_id) AS obs_ids, count(nearest.ref_id) AS ref_ids, count(distance) AS distances, count(lat) AS latitudes, count(lon) AS longitudes
FROM (SELECT o.id AS obs_id, o.lat, o.lon, n.* FROM obs_int8 o LEFT JOIN LATERAL (
    SELECT r.id AS ref_id, 0 AS distance FROM ref_int8 r WHERE o.lat BETWEEN -90 AND 90 AND o.lon BETWEEN -180 AND 360 LIMIT 1) n ON true) nearest;

-- ids are read, and rows without one left out, where no column has them
CREATE TABLE without_id (id bigint, lat float8, lon float8);
INSERT INTO without_id SELECT nullif(i % 10, 0), i % 90, i % 180 FROM generate_series(1, 1000) i;
SELECT count(*), count(distance) FROM geonn_nearest('without_id', 'ref_int8');
SELECT count(*), count(distance) FROM geonn_nearest('without_id', 'ref_int8', keep_unmatched => true);

SET client_min_messages = warning;
DROP SCHEMA result_columns CASCADE;
