-- keep_unmatched: a left join, every observation appears
-- rooms: join
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA unmatched;
SET search_path = unmatched, public;

CREATE FUNCTION valid(lat float8, lon float8) RETURNS boolean LANGUAGE sql IMMUTABLE AS
    'SELECT coalesce(lat BETWEEN -90 AND 90 AND lon BETWEEN -180 AND 360, false)';

-- The definition: each row of obs, left-joined to the first k in the order
-- (distance, id, latitude, longitude) of the references that "further" (SQL on
-- o, r and distance) leaves it.  Rows that are no points have none.  The rank
-- of a row without a reference is 1, and its coordinates come back as well.
-- matched: the rows without keep_unmatched, which have to be the others.
CREATE FUNCTION compare(obs regclass, ref regclass, k integer DEFAULT 1,
    further text DEFAULT 'true', arguments text DEFAULT '', metric text DEFAULT 'sphere',
    OUT rows bigint, OUT unmatched bigint, OUT missing bigint, OUT wrong bigint,
    OUT lost bigint, OUT matched_differ bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($query$
        CREATE TEMP TABLE expected AS
        SELECT o.id AS obs_id, r.id AS ref_id, r.distance, coalesce(r.rank, 1) AS rank,
               o.lat AS obs_lat, o.lon AS obs_lon, r.lat AS ref_lat, r.lon AS ref_lon
        FROM %1$s o LEFT JOIN LATERAL (
            SELECT r.*, row_number() OVER (ORDER BY distance, r.id, r.lat, r.lon) AS rank
            FROM (SELECT *, CASE WHEN valid(o.lat, o.lon)
                                 THEN geonn_distance(o.lat, o.lon, lat, lon, %5$L) END AS distance
                  FROM %2$s WHERE valid(lat, lon) OFFSET 0) r
            WHERE o.id IS NOT NULL AND r.id IS NOT NULL AND distance IS NOT NULL AND %4$s
            ORDER BY rank LIMIT %3$s) r ON true
        $query$, obs, ref, k, further, metric);
    EXECUTE format($query$
        CREATE TEMP TABLE found AS
        SELECT * FROM geonn_nearest(%1$L, %2$L, k => %3$s, metric => %4$L, keep_unmatched => true,
            row_type => NULL::record %5$s)
            AS n (obs_id bigint, ref_id bigint, distance float8, rank bigint,
                  obs_lat float8, obs_lon float8, ref_lat float8, ref_lon float8);
        CREATE TEMP TABLE matched AS
        SELECT * FROM geonn_nearest(%1$L, %2$L, k => %3$s, metric => %4$L,
            row_type => NULL::record %5$s)
            AS n (obs_id bigint, ref_id bigint, distance float8, rank bigint,
                  obs_lat float8, obs_lon float8, ref_lat float8, ref_lon float8)
        $query$, obs, ref, k, metric, arguments);
    SELECT count(*), count(*) FILTER (WHERE ref_id IS NULL) INTO rows, unmatched FROM found;
    SELECT count(*) INTO missing
    FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM found) x;
    SELECT count(*) INTO wrong
    FROM (SELECT * FROM found EXCEPT ALL SELECT * FROM expected) x;
    EXECUTE format($query$
        SELECT count(*) FROM (
            SELECT id, lat, lon FROM %s EXCEPT ALL
            SELECT obs_id, obs_lat, obs_lon FROM found WHERE rank = 1) x
        $query$, obs) INTO lost;
    SELECT count(*) INTO matched_differ FROM (
        (SELECT * FROM found WHERE ref_id IS NOT NULL EXCEPT ALL SELECT * FROM matched) UNION ALL
        (SELECT * FROM matched EXCEPT ALL SELECT * FROM found WHERE ref_id IS NOT NULL)) x;
    DROP TABLE expected, found, matched;
END $$;

-- an example
CREATE TABLE ship (id bigint PRIMARY KEY, name text, lat float8, lon float8);
CREATE TABLE port (id integer PRIMARY KEY, name text, lat float8, lon float8);
INSERT INTO ship VALUES (1, 'near', 53.9, 8.5), (2, 'far out', 30, -40), (3, 'silent', NULL, NULL);
INSERT INTO port VALUES (10, 'Cuxhaven', 53.87, 8.71), (20, 'Horta', 38.53, -28.62);
SELECT * FROM geonn_nearest('ship', 'port', max_distance => 50000);
SELECT * FROM geonn_nearest('ship', 'port', max_distance => 50000, keep_unmatched => true)
ORDER BY obs_id;
SELECT s.name, p.name AS port, round(distance) AS metres
FROM geonn_nearest('ship', 'port', k => 2, keep_unmatched => true) n
JOIN ship s ON s.id = n.obs_id LEFT JOIN port p ON p.id = n.ref_id ORDER BY s.id, distance;

-- no references; references that are no candidates
CREATE TABLE nothing (id bigint, kind text, lat float8, lon float8);
CREATE TABLE no_candidates (id bigint, kind text, lat float8, lon float8);
INSERT INTO no_candidates VALUES (NULL, 'a', 1, 1), (1, 'a', NULL, 1), (2, 'b', 1, NULL);
CREATE TABLE no_points (id bigint, kind text, lat float8, lon float8);
INSERT INTO no_points VALUES (1, 'a', 'NaN', 1), (2, 'a', 1, 'Infinity'), (3, 'b', 90.1, 0), (4, 'b', 0, -181);
SELECT * FROM geonn_nearest('ship', 'nothing', k => 3, keep_unmatched => true) ORDER BY obs_id;
SELECT * FROM geonn_nearest('ship', 'no_points', keep_unmatched => true) ORDER BY obs_id;
SELECT * FROM geonn_nearest('nothing', 'port', keep_unmatched => true);
SELECT * FROM geonn_nearest('nothing', 'nothing', keep_unmatched => true);

-- all that a row can lack: its columns show what there is
CREATE TABLE mixed (id bigint, kind text, lat float8, lon float8);
INSERT INTO mixed VALUES (1, 'a', 10, 10), (2, 'b', NULL, 20), (3, 'a', 30, NULL), (4, NULL, NULL, NULL),
    (NULL, 'a', 40, 40), (NULL, 'a', NULL, 40), (NULL, NULL, NULL, NULL), (NULL, NULL, NULL, NULL),
    (5, 'b', 'NaN', 50), (6, 'a', 60, '-Infinity'), (7, NULL, 90.5, 70), (8, 'b', -80, 360.5),
    (9, 'b', -10, 350), (9, 'b', -10, 350), (10, NULL, 10, -170), (NULL, 'b', 91, 10);
SELECT * FROM geonn_nearest('mixed', 'port', keep_unmatched => true, row_type => NULL::record)
    AS n (obs_id bigint, obs_lat float8, obs_lon float8, ref_id integer, rank integer,
          distance float8, ref_lat float8, ref_lon float8, bearing float8)
WHERE ref_id IS NULL ORDER BY obs_id, obs_lat, obs_lon;

-- every row of a larger table appears, whatever there is to find
CREATE TABLE obs (id bigint, kind text, lat float8, lon float8);
INSERT INTO obs
SELECT nullif(i % 400, 0), (ARRAY['a', 'b', 'c', NULL])[i % 4 + 1],
       CASE i % 23 WHEN 3 THEN NULL WHEN 7 THEN 'NaN' WHEN 11 THEN 95
           ELSE i * 7919 % 181 - 90.0::float8 END,
       CASE i % 29 WHEN 5 THEN NULL WHEN 8 THEN 'Infinity' WHEN 13 THEN -200
           ELSE i * 104729 % 541 - 180.0::float8 END
FROM generate_series(1, 500) i;
CREATE TABLE ref (id bigint, kind text, lat float8, lon float8);
INSERT INTO ref
SELECT nullif(i * 3, 27), (ARRAY['b', 'c', 'd', NULL])[i % 4 + 1],
       CASE i % 13 WHEN 3 THEN NULL WHEN 7 THEN 'NaN' ELSE (i * 7919 % 89)::float8 END,
       CASE i % 17 WHEN 5 THEN NULL WHEN 8 THEN 1000 ELSE (i * 104729 % 181)::float8 END
FROM generate_series(1, 150) i;
SET client_min_messages = error;
SELECT * FROM compare('obs', 'ref');
SELECT r AS ref, k, compare.*
FROM unnest(ARRAY['nothing', 'no_candidates', 'no_points', 'ref']) r, unnest(ARRAY[1, 3, 1024]) k,
     compare('obs', r::regclass, k);
SELECT * FROM compare('mixed', 'mixed', 2);
SELECT * FROM compare('nothing', 'ref');
SELECT m AS max_distance, compare.* FROM unnest(ARRAY[0, 1, 3e5, 3e6, 3e7]) m,
     compare('obs', 'ref', 3, format('distance <= %L', m), format(', max_distance => %L', m));
SELECT * FROM compare('obs', 'ref', 2, 'o.kind = r.kind', ', by => ''{kind}''');
SELECT * FROM compare('obs', 'nothing', 2, 'o.kind = r.kind', ', by => ''{kind}''');
SELECT * FROM compare('obs', 'obs', 1, 'o.id <> r.id', ', exclude_self => true');
SELECT * FROM compare('obs', 'obs', 3, 'o.id <> r.id AND o.kind = r.kind AND distance <= 500000',
                      ', exclude_self => true, by => ''{kind}'', max_distance => 500000');
SELECT * FROM compare('obs', 'ref', 3, metric => 'spheroid');
SELECT * FROM compare('obs', 'ref', 3, 'distance <= 1e6', ', max_distance => 1e6', 'spheroid');
SELECT b AS batch_rows, compare.* FROM unnest(ARRAY[1, 3, 100]) b,
     compare('obs', 'ref', 5, 'distance <= 1e6',
             format(', max_distance => 1e6, options => ''{"batch_rows": %s}''', b));
SELECT a AS algorithm, k, compare.* FROM unnest(ARRAY['brute', 'index']) a, unnest(ARRAY[1, 2]) k,
     compare('obs', 'ref', k, 'distance <= 1e6',
             format(', max_distance => 1e6, options => ''{"algorithm": "%s"}''', a));
-- its own is the only one there is
SELECT * FROM compare('ship', 'ship', 1, 'o.id <> r.id AND distance <= 1e6',
                      ', exclude_self => true, max_distance => 1e6');

-- more of them than fit a batch, between others
CREATE TABLE many (id bigint, lat float8, lon float8);
INSERT INTO many
SELECT i, nullif((i * 104729 % 180001) / 1000.0, i % 1000) - 90, (i * 1299709 % 540001) / 1000.0 - 180
FROM generate_series(1, 30000::bigint) i;
INSERT INTO many SELECT i, NULL, i % 360 FROM generate_series(30001, 40000) i;
SELECT * FROM compare('many', 'port', 1, 'distance <= 2e6', ', max_distance => 2e6');
SELECT * FROM compare('many', 'nothing');

-- within a radius
SELECT count(*), count(ref_id), count(DISTINCT obs_id),
       count(*) FILTER (WHERE ref_id IS NULL AND (distance IS NOT NULL OR rank <> 1)) AS odd
FROM geonn_within('obs', 'ref', 1e6, keep_unmatched => true, row_type => NULL::record)
    AS n (obs_id bigint, ref_id bigint, distance float8, rank integer);
SELECT count(*), count(r.id), count(DISTINCT o.id)
FROM obs o LEFT JOIN ref r ON o.id IS NOT NULL AND r.id IS NOT NULL
    AND CASE WHEN valid(o.lat, o.lon) AND valid(r.lat, r.lon)
             THEN geonn_distance(o.lat, o.lon, r.lat, r.lon) <= 1e6 END;
-- ties: an observation without a neighbour has one row all the same
SELECT count(*), count(DISTINCT obs_id) FROM geonn_nearest('obs', 'nothing', k => 5, ties => 'all',
    keep_unmatched => true);

-- the ids of unmatched rows are the tables' own
CREATE TABLE tagged (id text, lat float8, lon float8);
INSERT INTO tagged VALUES ('nowhere', NULL, 1), (NULL, 1, 1), ('here', 1, 1), (repeat('long ', 1000), NULL, NULL);
SELECT left(obs_id, 10) AS obs_id, length(obs_id), ref_id, rank
FROM geonn_nearest('tagged', 'tagged', keep_unmatched => true, row_type => NULL::record)
    AS n (obs_id text, ref_id text, rank integer) ORDER BY obs_id;
RESET client_min_messages;

-- the warnings are the same as without
SELECT count(*) FROM geonn_nearest('mixed', 'no_points', keep_unmatched => true);
-- invalid coordinates can be an error, missing ones are none
SELECT count(*) FROM geonn_nearest('mixed', 'port', keep_unmatched => true, invalid => 'error');
SELECT count(*) FROM geonn_nearest('no_candidates', 'no_candidates', keep_unmatched => true,
                                   invalid => 'error');
-- what it cannot be
SELECT * FROM geonn_nearest('ship', 'port', keep_unmatched => NULL);
\set VERBOSITY sqlstate
SELECT * FROM geonn_nearest('ship', 'port', keep_unmatched => NULL);

SET client_min_messages = warning;
DROP SCHEMA unmatched CASCADE;
