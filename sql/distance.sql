-- geonn_distance(): metres between two points, and its limits
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
SELECT geonn_distance(90, -180, -90, 360) > 0 AS fine;

-- beyond them is not
SELECT geonn_distance(90.000001, 0, 0, 0);
SELECT geonn_distance(0, 360.5, 0, 0);
SELECT geonn_distance(0, 0, -91, 0);
SELECT geonn_distance(0, 0, 0, -180.5);
SELECT geonn_distance('NaN', 0, 0, 0);
SELECT geonn_distance(0, 'Infinity', 0, 0);
SELECT geonn_distance(0, 0, '-Infinity', 0);
\set VERBOSITY sqlstate
SELECT geonn_distance(91, 0, 0, 0);
SELECT geonn_distance(0, 361, 0, 0);
