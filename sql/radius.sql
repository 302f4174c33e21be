-- max_distance: no neighbour that is farther, to the last bit
-- rooms: join engine/cpu/walk
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA radius;
SET search_path = radius, public;

-- The definition: for each observation the first k references in the order
-- (distance, id, latitude, longitude) of those at max_distance or nearer.
CREATE FUNCTION compare(obs regclass, ref regclass, max_distance float8, k integer DEFAULT 3,
    metric text DEFAULT 'sphere', arguments text DEFAULT '',
    OUT rows bigint, OUT missing bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($query$
        CREATE TEMP TABLE expected AS
        SELECT o.id AS obs_id, r.id AS ref_id, r.distance
        FROM %1$s o CROSS JOIN LATERAL (
            SELECT r.id, distance
            FROM (SELECT *, geonn_distance(o.lat, o.lon, lat, lon, %5$L) AS distance FROM %2$s) r
            WHERE distance <= coalesce(%3$L, 'infinity'::float8)
            ORDER BY distance, r.id, r.lat, r.lon LIMIT %4$s) r
        $query$, obs, ref, max_distance, k, metric);
    EXECUTE format($query$
        CREATE TEMP TABLE found AS
        SELECT * FROM geonn_nearest(%L, %L, k => %s, max_distance => %L, metric => %L %s)
        $query$, obs, ref, k, max_distance, metric, arguments);
    SELECT count(*) INTO rows FROM found;
    SELECT count(*) INTO missing
    FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM found) x;
    SELECT count(*) INTO wrong
    FROM (SELECT * FROM found EXCEPT ALL SELECT * FROM expected) x;
    DROP TABLE expected, found;
END $$;
-- the double precision value next to a positive one, by its bits
CREATE FUNCTION next_to(value float8, steps integer) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    bits bigint := ('x' || encode(float8send(value), 'hex'))::bit(64)::bigint + steps;
    fraction float8 := (bits & 4503599627370495) + 4503599627370496;
BEGIN
    RETURN fraction * power(2::float8, ((bits >> 52) - 1075)::float8);
END $$;
SELECT next_to(1, 1), next_to(1, -1), next_to(111195.08023353292, 0), next_to(111195.08023353292, -1);

-- an example
CREATE TABLE city (id bigint PRIMARY KEY, name text, lat float8, lon float8);
CREATE TABLE airport (id integer PRIMARY KEY, code text, lat float8, lon float8);
INSERT INTO city VALUES
    (1, 'Berlin', 52.52, 13.405), (2, 'Quito', -0.2299, -78.525),
    (3, 'Suva', -18.1416, 178.4419), (4, 'Longyearbyen', 78.2232, 15.6267);
INSERT INTO airport VALUES
    (10, 'BER', 52.3667, 13.5033), (11, 'UIO', -0.1292, -78.3575),
    (12, 'NAN', -17.7554, 177.4434), (13, 'LYR', 78.2461, 15.4656),
    (14, 'APW', -13.83, -172.0083);
SELECT c.name, a.code, round(n.distance) AS metres
FROM geonn_nearest('city', 'airport', max_distance => 20000) n
JOIN city c ON c.id = n.obs_id JOIN airport a ON a.id = n.ref_id ORDER BY c.name;

CREATE TABLE half AS
SELECT row_number() OVER () AS id, lat::float8, lon::float8
FROM generate_series(-90, 90, 7.5) lat, generate_series(-180, 360, 22.5) lon;
CREATE TABLE whole AS
SELECT row_number() OVER (ORDER BY md5(lat || ',' || lon))::integer AS id, lat::float8, lon::float8
FROM generate_series(-90, 90, 15) lat, generate_series(-180, 360, 45) lon;

-- 0: what coincides; poles and longitudes 360 degrees apart do
SELECT * FROM compare('half', 'whole', 0);
SELECT count(DISTINCT ref_id) FROM geonn_nearest('half', 'whole', k => 99, max_distance => 0);
CREATE TABLE origin (id integer, lat float8, lon float8);
INSERT INTO origin VALUES (1, 0, 0);
CREATE TABLE near (id integer, lat float8, lon float8);
INSERT INTO near VALUES (1, '-0', '-0'), (2, 0, 360), (3, 1e-15, 0), (4, 0, 1e-300), (5, 1e-9, 0);
SELECT ref_id, distance, distance = geonn_distance(0, 0, n.lat, n.lon) AS same
FROM geonn_nearest('origin', 'near', k => 9, max_distance => 0) JOIN near n ON n.id = ref_id
ORDER BY 1;
SELECT * FROM compare('origin', 'near', 0);
SELECT * FROM compare('origin', 'near', 1e-9, 5);
SELECT * FROM compare('origin', 'near', 4.9e-324, 5);

-- some, most, all
SELECT m AS max_distance, compare.*
FROM unnest(ARRAY[1, 100000, 834000, 1e6, 2e6, 5e6, 1e7, 1.5e7, 2e7, 20015113, 20015115, 1e300, 'infinity'::float8, NULL]) m,
     compare('half', 'whole', m, 3);
SELECT m AS max_distance, compare.*
FROM unnest(ARRAY[834000, 2e6, 1e7, 'infinity'::float8]) m, compare('half', 'whole', m, 200);

-- inclusive, to the last bit: of each pair, the distance itself finds it and
-- the number below does not
CREATE TABLE pairs AS
SELECT i AS id, lat, lon, CASE i % 8
           WHEN 0 THEN lat WHEN 1 THEN -lat ELSE lat * (1 - 0.1 ^ (i % 8)) END AS to_lat,
       CASE i % 8 WHEN 0 THEN lon + 1e-9 * i WHEN 1 THEN lon + 179.9 + 0.001 * (i % 11)
           ELSE lon + 0.3 ^ (i % 7) END AS to_lon
FROM (SELECT i, (i * 7919 % 1801) / 10.0::float8 - 90 AS lat,
             (i * 104729 % 1701) / 10.0::float8 - 180 AS lon FROM generate_series(1, 120) i) x;
CREATE VIEW pair_from AS SELECT id, lat, lon, id AS pair FROM pairs;
CREATE VIEW pair_to AS SELECT id, to_lat AS lat, to_lon AS lon, id AS pair FROM pairs;
CREATE FUNCTION limits(metric text, OUT pairs bigint, OUT shortest float8, OUT longest float8,
    OUT at_distance bigint, OUT below bigint, OUT all_below bigint)
LANGUAGE sql AS $$
    SELECT count(*), round(min(d)::numeric, 6), round(max(d)::numeric),
        sum((SELECT count(*) FROM geonn_nearest_sql(one_from, one_to, max_distance => d, metric => $1))),
        sum((SELECT count(*) FROM geonn_nearest_sql(one_from, one_to, max_distance => next_to(d, -1), metric => $1))),
        sum((SELECT count(*) FROM geonn_within_sql(one_from, all_to, next_to(d, -1), $1, by => '{pair}')))
    FROM (SELECT geonn_distance(lat, lon, to_lat, to_lon, $1) AS d,
                 format('SELECT * FROM pair_from WHERE id = %s', id) AS one_from,
                 format('SELECT * FROM pair_to WHERE id = %s', id) AS one_to,
                 'SELECT * FROM pair_to' AS all_to
          FROM pairs OFFSET 0) p
    WHERE d > 0
$$;
SELECT * FROM limits('sphere');
SELECT * FROM limits('spheroid');

-- half of the circumference finds all; antipodes are at that
SELECT pi() * 6371008.7714150598 AS half_of_circumference \gset
SELECT * FROM compare('half', 'whole', :half_of_circumference, 300);
CREATE TABLE antipode (id integer, lat float8, lon float8);
INSERT INTO antipode VALUES (1, 0, 180), (2, 0, -180), (3, 0, 179.9999999), (4, 1e-9, 180);
SELECT ref_id, :half_of_circumference - distance AS short_by
FROM geonn_nearest('origin', 'antipode', k => 9, max_distance => :half_of_circumference)
ORDER BY distance, ref_id;
SELECT * FROM compare('origin', 'antipode', :half_of_circumference, 9);
SELECT max(distance) AS farthest FROM geonn_nearest('origin', 'antipode', k => 9) \gset
SELECT * FROM compare('origin', 'antipode', next_to(:farthest, -1), 9);

-- on the spheroid, whose antipodes are nearer
SELECT m AS max_distance, compare.*
FROM unnest(ARRAY[0, 100000, 834000, 2e6, 1e7, 2e7, 20003931, 20003932, 'infinity'::float8]) m,
     compare('half', 'whole', m, 20, 'spheroid');
SELECT * FROM compare('origin', 'near', 0, 5, 'spheroid');
SELECT * FROM compare('origin', 'antipode', 20003931.4586, 9, 'spheroid');
SELECT * FROM compare('origin', 'antipode', 20003931.4587, 9, 'spheroid');

-- by every way to the answer
SELECT a AS algorithm, m AS max_distance, compare.*
FROM unnest(ARRAY['brute', 'index']) a, unnest(ARRAY[0, 834000, 1e7]) m,
     compare('half', 'whole', m, 4, arguments => format(', options => ''{"algorithm": "%s"}''', a));
SELECT a AS algorithm, m AS max_distance, compare.*
FROM unnest(ARRAY['brute', 'index']) a, unnest(ARRAY[0, 834000, 1e7]) m,
     compare('half', 'whole', m, 1, arguments => format(', options => ''{"algorithm": "%s"}''', a));

-- what it cannot be
SELECT * FROM geonn_nearest('city', 'airport', max_distance => -1);
SELECT * FROM geonn_nearest('city', 'airport', max_distance => -1e-300);
SELECT * FROM geonn_nearest('city', 'airport', max_distance => 'NaN');
SELECT * FROM geonn_nearest('city', 'airport', max_distance => '-infinity');
SELECT count(*) FROM geonn_nearest('city', 'city', max_distance => '-0');
\set VERBOSITY sqlstate
SELECT * FROM geonn_nearest('city', 'airport', max_distance => -1);

SET client_min_messages = warning;
DROP SCHEMA radius CASCADE;
