-- geonn_nearest_points(): the points are those of two arrays
-- rooms: join points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA points;
SET search_path = points, public;

CREATE TYPE every_column AS (bearing float8, obs_lon float8, rank integer, ref_id integer, distance float8,
    ref_lat float8, ord bigint, obs_lat float8, ref_lon float8);
CREATE TYPE ranked_pair AS (ord bigint, ref_id bigint, distance float8, rank bigint);

CREATE TABLE airport (id integer PRIMARY KEY, code text, lat float8, lon float8);
INSERT INTO airport VALUES
    (10, 'BER', 52.3667, 13.5033), (11, 'UIO', -0.1292, -78.3575),
    (12, 'NAN', -17.7554, 177.4434), (13, 'LYR', 78.2461, 15.4656),
    (14, 'APW', -13.83, -172.0083);

-- an example: Berlin, Quito and Suva
SELECT * FROM geonn_nearest_points('{52.52, -0.2299, -18.1416}', '{13.405, -78.525, 178.4419}', 'airport')
ORDER BY ord;
SELECT n.ord, a.code, round(n.distance) AS metres
FROM geonn_nearest_points(ARRAY[52.52, -0.2299], ARRAY[13.405, -78.525], 'airport', k => 2,
                          max_distance => 5e6, row_type => NULL::ranked_pair) n
JOIN airport a ON a.id = n.ref_id
ORDER BY n.ord, n.rank;

-- The definition: for each point the references in the order (distance, id), up
-- to the k-th or, with ties, to all that are as far as the k-th.  Returns how
-- many rows geonn_nearest_points has, how many it lacks and how many it has too
-- many.
CREATE FUNCTION compare(lat float8[], lon float8[], ref regclass, k integer DEFAULT 1,
    max_distance float8 DEFAULT NULL, metric text DEFAULT 'sphere', keep boolean DEFAULT false,
    ties boolean DEFAULT false, OUT rows bigint, OUT missing bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($query$
        CREATE TEMP TABLE expected AS
        SELECT o.ord, r.id AS ref_id, r.distance, coalesce(r.rank, 1) AS rank
        FROM unnest($1, $2) WITH ORDINALITY o (lat, lon, ord) LEFT JOIN LATERAL (
            SELECT r.id, d AS distance,
                   row_number() OVER (ORDER BY d, r.id, r.lat, r.lon) AS rank,
                   rank() OVER (ORDER BY d) AS place
            FROM %s r, LATERAL (SELECT CASE WHEN o.lat BETWEEN -90 AND 90 AND o.lon BETWEEN -180 AND 360
                                       THEN geonn_distance(o.lat, o.lon, r.lat, r.lon, $5) END) x (d)
            WHERE d <= coalesce($4, 'Infinity')) r
        ON CASE WHEN $7 THEN r.place <= $3 ELSE r.rank <= $3 END
        WHERE r.rank IS NOT NULL OR $6
        $query$, ref) USING lat, lon, k, max_distance, metric, keep, ties;
    CREATE TEMP TABLE found AS
    SELECT * FROM geonn_nearest_points(lat, lon, ref, k, max_distance, metric, keep_unmatched => keep,
                                       ties => CASE WHEN ties THEN 'all' ELSE 'first' END,
                                       row_type => NULL::ranked_pair);
    SELECT count(*) INTO rows FROM found;
    SELECT count(*) INTO missing
    FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM found) x;
    SELECT count(*) INTO wrong
    FROM (SELECT * FROM found EXCEPT ALL SELECT * FROM expected) x;
    DROP TABLE expected, found;
END $$;

-- k, max_distance, metric, ties, keep_unmatched
CREATE TABLE grid AS
SELECT row_number() OVER (ORDER BY md5(lat || ',' || lon))::integer AS id, lat::float8, lon::float8
FROM generate_series(-90, 90, 30) lat, generate_series(-180, 360, 30) lon;
SELECT array_agg(lat::float8) AS lat, array_agg(lon::float8) AS lon
FROM generate_series(-90, 90, 22.5) lat, generate_series(-180, 360, 22.5) lon \gset
SELECT * FROM compare(:'lat', :'lon', 'grid');
SELECT * FROM compare(:'lat', :'lon', 'grid', 3);
SELECT * FROM compare(:'lat', :'lon', 'grid', 1024);
SELECT * FROM compare(:'lat', :'lon', 'grid', 2, ties => true);
SELECT * FROM compare(:'lat', :'lon', 'grid', 3, max_distance => 1e6);
SELECT * FROM compare(:'lat', :'lon', 'grid', 3, max_distance => 1e6, keep => true);
SELECT * FROM compare(:'lat', :'lon', 'grid', 3, max_distance => 0, keep => true, ties => true);
SELECT * FROM compare(:'lat', :'lon', 'grid', 2, metric => 'spheroid', ties => true);

-- many points, of which every hundredth is compared
CREATE TABLE many AS
SELECT i AS id, (i * 104729 % 180001) / 1000.0::float8 - 90 AS lat,
       (i * 1299709 % 540001) / 1000.0::float8 - 180 AS lon
FROM generate_series(1, 100000::bigint) i;
CREATE TABLE found AS
SELECT n.* FROM (SELECT array_agg(lat ORDER BY id) AS lat, array_agg(lon ORDER BY id) AS lon FROM many) a,
              LATERAL geonn_nearest_points(a.lat, a.lon, 'airport') n;
SELECT count(*), count(DISTINCT ord), min(ord), max(ord) FROM found;
SELECT count(*), count(*) FILTER (WHERE r.id = f.ref_id AND r.distance = f.distance) AS right
FROM found f JOIN many o ON o.id = f.ord, LATERAL (
    SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance
    FROM airport r ORDER BY distance, r.id LIMIT 1) r
WHERE o.id % 100 = 0;
-- and against the same join of tables, and in whatever batches
SELECT count(*) FROM (TABLE found EXCEPT ALL SELECT * FROM geonn_nearest('many', 'airport')) x;
SELECT count(*)
FROM (SELECT n.* FROM (SELECT array_agg(lat ORDER BY id) AS lat, array_agg(lon ORDER BY id) AS lon FROM many) a,
                     LATERAL geonn_nearest_points(a.lat, a.lon, 'airport', options => '{"batch_rows": 777}') n
      EXCEPT ALL TABLE found) x;

-- parameters of a prepared statement, with custom and generic plans
PREPARE nearest (float8[], float8[], integer) AS
SELECT ord, ref_id FROM geonn_nearest_points($1, $2, 'airport', k => $3) ORDER BY ord, distance;
EXECUTE nearest ('{52.52, -18}', '{13.4, 178}', 2);
SET plan_cache_mode = force_generic_plan;
EXECUTE nearest ('{52.52, -18}', '{13.4, 178}', 1);
EXECUTE nearest ('{}', '{}', 1);
RESET plan_cache_mode;
CREATE FUNCTION nearest_airport(lat float8, lon float8) RETURNS text LANGUAGE sql STABLE
AS $$ SELECT code FROM geonn_nearest_points(ARRAY[lat], ARRAY[lon], 'airport') JOIN airport ON id = ref_id $$;
SELECT nearest_airport(78, 15), nearest_airport(-90, 0), nearest_airport(NULL, 0);

-- all columns, in any order
SET extra_float_digits = -3;
SELECT * FROM geonn_nearest_points('{52.52, NULL, 90, -13.83}', '{13.405, 7, 100, 187.9917}', 'airport',
                                   keep_unmatched => true, row_type => NULL::every_column) ORDER BY ord;
RESET extra_float_digits;
SELECT round(bearing) AS bearing, round((azimuth + 360)::numeric % 360) AS azimuth
FROM geonn_nearest_points('{52.52}', '{13.405}', 'airport', k => 5, row_type => NULL::every_column) n,
     LATERAL degrees(atan2(sin(radians(ref_lon - obs_lon)) * cos(radians(ref_lat)),
                           cos(radians(obs_lat)) * sin(radians(ref_lat)) -
                           sin(radians(obs_lat)) * cos(radians(ref_lat)) * cos(radians(ref_lon - obs_lon)))) azimuth
ORDER BY rank;
CREATE TYPE only_id AS (ref_id bigint);
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', row_type => NULL::only_id);
CREATE TYPE obs_pair AS (obs_id bigint, ref_id bigint);
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', row_type => NULL::obs_pair);
CREATE TYPE small_pair AS (ord smallint, ref_id integer);
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', row_type => NULL::small_pair);
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', row_type => NULL::geonn_pair);

-- ids of any type
CREATE TABLE by_code AS SELECT code AS id, lat, lon FROM airport;
CREATE TYPE code_pair AS (ord bigint, ref_id text, distance float8);
SELECT ord, ref_id FROM geonn_nearest_points('{52, -13}', '{13, -172}', 'by_code', row_type => NULL::code_pair) ORDER BY 1;
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'by_code');
SELECT ord, ref_id FROM geonn_nearest_points('{52, -13}', '{13, -172}', 'airport', options => '{"ref_id": "code"}',
                                             row_type => NULL::code_pair) ORDER BY 1;

-- NULL elements are no points; ord counts from 1 wherever an array begins
SELECT * FROM geonn_nearest_points('{52, NULL, 78, -18}', '{13, 7, NULL, 178}', 'airport') ORDER BY ord;
SELECT * FROM geonn_nearest_points('{52, NULL, 78, -18}', '{13, 7, NULL, 178}', 'airport',
                                   keep_unmatched => true) ORDER BY ord;
SELECT ord, ref_id FROM geonn_nearest_points('[5:7]={52, 78, -18}', '[-3:-1]={13, 15, 178}', 'airport') ORDER BY ord;
SELECT * FROM geonn_nearest_points('{}', '{}', 'airport');
SELECT * FROM geonn_nearest_points('{}', '{}', 'airport', keep_unmatched => true);
SELECT * FROM geonn_nearest_points('{NULL, NULL}', '{NULL, NULL}', 'airport');

-- nothing to be near
CREATE TABLE nothing (id bigint, lat float8, lon float8);
SELECT * FROM geonn_nearest_points('{52, 78}', '{13, 15}', 'nothing');
SELECT * FROM geonn_nearest_points('{52, 78}', '{13, 15}', 'nothing', keep_unmatched => true) ORDER BY 1;

-- points that are none: skipped and counted, or an error
SELECT * FROM geonn_nearest_points('{52, NaN, 90.5, 0, 0}', '{13, 0, 0, 361, -Infinity}', 'airport');
SELECT * FROM geonn_nearest_points('{52, NaN, 90.5, NULL}', '{13, 0, 0, 0}', 'airport',
                                   keep_unmatched => true) ORDER BY ord;
SELECT * FROM geonn_nearest_points('{52, NULL, 90.5, 0}', '{13, 0, 0, 361}', 'airport', invalid => 'error');
SELECT * FROM geonn_nearest_points('{52, 0}', '{13, 361}', 'airport', invalid => 'error');
SELECT * FROM geonn_nearest_points('{NaN}', '{0}', 'airport', invalid => 'error');
SELECT ord, ref_id FROM geonn_nearest_points('{90, -90, NULL}', '{-180, 360, NaN}', 'airport', invalid => 'error')
ORDER BY ord;
CREATE VIEW astray AS SELECT id, lat * 2 AS lat, lon FROM airport WHERE id < 12;
SELECT ref_id FROM geonn_nearest_points('{52}', '{13}', 'astray');
SELECT ref_id FROM geonn_nearest_points('{52}', '{13}', 'astray', invalid => 'error');
SELECT ref_id FROM geonn_nearest_points('{}', '{}', 'astray', invalid => 'error');

-- arrays that are no points
SELECT * FROM geonn_nearest_points('{52, 78}', '{13}', 'airport');
SELECT * FROM geonn_nearest_points('{}', '{13}', 'airport');
SELECT * FROM geonn_nearest_points('{{52, 78}, {1, 2}}', '{13, 1, 1, 2}', 'airport');
SELECT * FROM geonn_nearest_points('{52}', '{{13}}', 'airport');
SELECT * FROM geonn_nearest_points('{52}', '{east}', 'airport');

-- arguments that are missing, or not among this function's
SELECT * FROM geonn_nearest_points(NULL, '{13}', 'airport');
SELECT * FROM geonn_nearest_points('{52}', NULL, 'airport');
SELECT * FROM geonn_nearest_points('{52}', '{13}', NULL);
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', k => NULL);
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', k => 0);
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', k => 1025);
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', max_distance => -1);
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', metric => NULL);
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', ties => 'last');
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', keep_unmatched => NULL);
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', invalid => NULL);
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', options => NULL);
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', options => '{"obs_id": "id"}');
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', options => '{"obs_lat": "lat", "obs_lon": "lon"}');
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', options => '{"lat": "lat"}');
SELECT ref_id FROM geonn_nearest_points('{52}', '{13}', 'airport', options => '{"ref_lat": "lat", "ref_lon": "lon"}');
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'no_such_table');
\set VERBOSITY terse
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', by => '{code}');
SELECT * FROM geonn_nearest_points('{52}', '{13}', 'airport', exclude_self => true);

SET client_min_messages = warning;
DROP SCHEMA points CASCADE;
