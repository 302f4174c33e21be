-- geonn_distance(): metres between two points, and its limits
-- rooms: join common spheroid
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;

-- a degree of the equator, a quarter, half and none of a great circle
SELECT geonn_distance(0, 0, 0, 1) AS degree,
       geonn_distance(0, 0, 0, 90) AS quarter,
       geonn_distance(0, 0, 0, 180) AS half,
       geonn_distance(12.5, 34.5, 12.5, 34.5) AS none;

-- Berlin to Paris
SELECT geonn_distance(52.5200, 13.4050, 48.8566, 2.3522);

-- all meridians meet at the poles
SELECT count(*) AS differing
FROM generate_series(-180, 360, 15) a, generate_series(-180, 360, 15) b
WHERE geonn_distance(90, a, 90, b) <> 0
   OR geonn_distance(-90, a, -90, b) <> 0
   OR geonn_distance(90, a, -90, b) <> geonn_distance(90, 0, -90, 0);

-- a meridian has more than one name
SELECT geonn_distance(10, -180, 10, 180) AS "180",
       geonn_distance(10, 0, 10, 360) AS "360",
       geonn_distance(10, -90, 10, 270) AS "270",
       geonn_distance(10, 179.5, 10, -179.5) = geonn_distance(10, -0.5, 10, 0.5) AS same;

-- antipodes are half a great circle apart
SELECT count(*) AS differing
FROM generate_series(-90, 90, 7.5) lat, generate_series(-180, 180, 22.5) lon
WHERE abs(geonn_distance(lat, lon, -lat, lon + 180) - pi() * 6371008.7714150598) > 1e-8;

-- neither order nor sign of zero matters
SELECT count(*) AS differing
FROM generate_series(-90, 90, 11.25) a, generate_series(-180, 180, 33.75) b,
     generate_series(-90, 90, 17.5) c, generate_series(-180, 180, 41.5) d
WHERE geonn_distance(a, b, c, d) <> geonn_distance(c, d, a, b);
SELECT geonn_distance('-0', '-0', 0, 0) AS zero,
       geonn_distance('-0', 1, 2, 3) = geonn_distance(0, 1, 2, 3) AS same;

-- small distances keep their digits
SELECT geonn_distance(50, 8, 50.000001, 8) AS decimetre,
       geonn_distance(50, 8, 50, 8.00000000001) AS micrometre;

-- other numeric types convert
SELECT geonn_distance(1::smallint, 2::integer, 3::bigint, 4::numeric) =
       geonn_distance(1, 2, 3, 4) AS same,
       geonn_distance(1.5::real, 0, 0, 0) = geonn_distance(1.5, 0, 0, 0) AS real_too;

-- NULL in, NULL out
SELECT geonn_distance(NULL, 0, 0, 0) IS NULL AS is_null;

-- immutable, so it can be indexed
CREATE TEMP TABLE place (lat float8, lon float8);
CREATE INDEX ON place (geonn_distance(lat, lon, 0, 0));

-- the limits themselves are fine
SELECT geonn_distance(90, -180, -90, 360) > 0 AS fine,
       geonn_distance(90, -180, -90, 360, 'spheroid') > 0 AS spheroid;

-- on the spheroid: a degree of the equator, a meridian's quarter, Berlin to Paris,
-- places that are all but antipodes, and none at all
SELECT round(metres::numeric, 6) AS metres
FROM (VALUES (1, geonn_distance(0, 0, 0, 1, 'spheroid')),
             (2, geonn_distance(0, 0, 90, 0, 'spheroid')),
             (3, geonn_distance(52.5200, 13.4050, 48.8566, 2.3522, 'spheroid')),
             (4, geonn_distance(0, 0, 0.5, 179.5, 'spheroid')),
             (5, geonn_distance(0, 0, 0.5, 179.7, 'spheroid')),
             (6, geonn_distance(12.5, 34.5, 12.5, 34.5, 'spheroid'))) v(i, metres)
ORDER BY i;

-- there, too, poles and meridians have more than one name
SELECT count(*) AS differing
FROM generate_series(-180, 360, 15) a, generate_series(-180, 360, 15) b
WHERE geonn_distance(90, a, 90, b, 'spheroid') <> 0
   OR geonn_distance(90, a, -90, b, 'spheroid') <> geonn_distance(90, 0, -90, 0, 'spheroid')
   OR geonn_distance(90, a, 45, b, 'spheroid') <> geonn_distance(90, 0, 45, 0, 'spheroid');
SELECT geonn_distance(10, -180, 10, 180, 'spheroid') AS "180",
       geonn_distance(10, 0, 10, 360, 'spheroid') AS "360",
       geonn_distance(10, -90, 10, 270, 'spheroid') AS "270",
       geonn_distance('-0', '-0', 0, 0, 'spheroid') AS zero;

-- neither order nor the name of a meridian matters
SELECT count(*) AS differing
FROM generate_series(-90, 90, 22.5) a, generate_series(-180, 0, 33.75) b,
     generate_series(-90, 90, 17.5) c, generate_series(-180, 0, 41.5) d
WHERE geonn_distance(a, b, c, d, 'spheroid') <> geonn_distance(c, d, a, b, 'spheroid')
   OR geonn_distance(a, b, c, d, 'spheroid') <> geonn_distance(a, b + 360, c, d, 'spheroid')
   OR geonn_distance(a, b, c, d, 'spheroid') <> geonn_distance(a, b, c, d + 360, 'spheroid');

-- the metrics disagree about the airport that is nearest to each of these places
CREATE TEMP TABLE town (name text, lat float8, lon float8);
INSERT INTO town VALUES
	('Arivechi', 28.92765, -109.18681), ('Nyazura', -18.70587, 32.16796),
	('Trinidad', 37.16946, -104.50054), ('Bateau Bay', -33.38334, 151.46671),
	('Redland', 39.14539, -77.14415);
CREATE TEMP TABLE airport (name text, lat float8, lon float8);
INSERT INTO airport VALUES
	('Hermosillo', 29.0958995819, -111.047996521), ('Ciudad Obregon', 27.3925991058, -109.833000183),
	('Chimoio', -19.1513004303, 33.4290008545), ('Mutoko', -17.4319000244, 32.1845016479),
	('Alamosa', 37.434898, -105.866997), ('Pueblo', 38.289101, -104.497002),
	('Richmond', -33.604652, 150.783051), ('Sydney', -33.9460983276, 151.177001953),
	('Tipton', 39.0853996277, -76.7593994141), ('Washington National', 38.8521, -77.037697);
SELECT t.name, s.name AS sphere, round(s.metres) AS metres, g.name AS spheroid, round(g.metres) AS metres
FROM town t
CROSS JOIN LATERAL (
	SELECT name, geonn_distance(t.lat, t.lon, lat, lon) AS metres FROM airport
	ORDER BY geonn_distance(t.lat, t.lon, lat, lon), name LIMIT 1) s
CROSS JOIN LATERAL (
	SELECT name, geonn_distance(t.lat, t.lon, lat, lon, metric => 'spheroid') AS metres FROM airport
	ORDER BY geonn_distance(t.lat, t.lon, lat, lon, 'spheroid'), name LIMIT 1) g
ORDER BY t.name;

-- the default is the sphere; another metric is an error, none is NULL
SELECT geonn_distance(1, 2, 3, 4) = geonn_distance(1, 2, 3, 4, 'sphere') AS same,
       geonn_distance(1, 2, 3, 4, NULL) IS NULL AS is_null;
SELECT geonn_distance(1, 2, 3, 4, 'Spheroid');
SELECT geonn_distance(1, 2, 3, 4, 'sphere2');
SELECT geonn_distance(1, 2, 3, 4, '');

-- where the server compiles just in time, the same
SET jit = on;
SET jit_above_cost = 0;
SET jit_inline_above_cost = 0;
SET jit_optimize_above_cost = 0;
SELECT count(*) AS differing
FROM town t
WHERE geonn_distance(lat, lon, lat, lon, 'spheroid') <> 0 OR geonn_distance(lat, lon, lat, lon) <> 0;
RESET jit;
RESET jit_above_cost;
RESET jit_inline_above_cost;
RESET jit_optimize_above_cost;

-- beyond the limits is not fine
SELECT geonn_distance(90.000001, 0, 0, 0);
SELECT geonn_distance(0, 360.5, 0, 0);
SELECT geonn_distance(0, 0, -91, 0);
SELECT geonn_distance(0, 0, 0, -180.5);
SELECT geonn_distance('NaN', 0, 0, 0);
SELECT geonn_distance(0, 'Infinity', 0, 0);
SELECT geonn_distance(0, 0, '-Infinity', 0);
SELECT geonn_distance(0, 0, 0, 'NaN', 'spheroid');
\set VERBOSITY sqlstate
SELECT geonn_distance(91, 0, 0, 0);
SELECT geonn_distance(0, 361, 0, 0);
SELECT geonn_distance(0, 0, 0, 0, 'plane');
