-- geonn_distance() of a point and a shape
-- rooms: join points common
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA shapes;
SET search_path = shapes, public;

-- without PostGIS: no type is one of shapes, whatever it is called
CREATE TYPE shapes.geography AS (longitude float8, latitude float8);
CREATE DOMAIN shapes.geometry AS text;
SELECT geonn_distance(1, 2, 'POINT(3 4)'::text);
SELECT geonn_distance(1, 2, 3);
SELECT geonn_distance(1, 2, point '(3,4)');
SELECT geonn_distance(1, 2, (3, 4)::shapes.geography);
SELECT geonn_distance(1, 2, 'POINT(3 4)'::shapes.geometry);
SELECT geonn_distance(1, 2, NULL::text) IS NULL AS is_null;
SELECT geonn_distance('POINT(1 2)', 'POINT(3 4)');
SELECT geonn_distance((1, 2)::shapes.geography, (3, 4)::shapes.geography);
SELECT geonn_distance(NULL::text, 'POINT(3 4)') IS NULL AS is_null;
-- four values are two points, also where the client does not say of which type they are
SELECT geonn_distance('1', '2', '3', '4') = geonn_distance(1, 2, 3, 4) AS same;
PREPARE untyped AS SELECT geonn_distance($1, $2, $3, $4) = geonn_distance(1, 2, 3, 4) AS same;
EXECUTE untyped(1, 2, 3, 4);
DROP TYPE shapes.geography;
DROP DOMAIN shapes.geometry;

-- the rest needs PostGIS
SELECT count(*) = 0 AS absent FROM pg_available_extensions WHERE name = 'postgis' \gset
\if :absent
SET client_min_messages = warning;
DROP SCHEMA shapes CASCADE;
\quit
\endif

-- in a schema that is not on the search path, unless a test says so; PostGIS is not installed while pgaudit logs
SET pgaudit.log = 'none';
SET client_min_messages = warning;
CREATE SCHEMA gis;
CREATE EXTENSION postgis SCHEMA gis;
RESET client_min_messages;
SET search_path = shapes, gis, public;
SET extra_float_digits = 0;

-- every type of a geography, and what is nearest to (0, 0) there
CREATE TABLE shape (name text, g geography);
INSERT INTO shape VALUES
    ('point', 'POINT(3 4)'), ('line', 'LINESTRING(3 -4, 3 4)'), ('line of one place', 'LINESTRING(3 4, 3 4)'),
    ('polygon', 'POLYGON((-1 -1, 1 -1, 1 1, -1 1, -1 -1))'),
    ('hole', 'POLYGON((-2 -2, 2 -2, 2 2, -2 2, -2 -2), (-1 -1, 1 -1, 1 1, -1 1, -1 -1))'),
    ('island', 'MULTIPOLYGON(((-2 -2, 2 -2, 2 2, -2 2, -2 -2), (-1 -1, 1 -1, 1 1, -1 1, -1 -1)), ((0 0.5, 1 0.5, 0 1, 0 0.5)))'),
    ('corner', 'POLYGON((0 0, 1 0, 1 1, 0 0))'), ('border', 'POLYGON((0 -1, 1 -1, 1 1, 0 1, 0 -1))'),
    ('corner of a hole', 'POLYGON((-2 -2, 2 -2, 2 2, -2 2, -2 -2), (0 0, 1 0, 1 1, 0 0))'),
    ('points', 'MULTIPOINT(3 4, 2 2, 5 5)'), ('lines', 'MULTILINESTRING((3 4, 5 6), (-1 1, 1 1))'),
    ('collection', 'GEOMETRYCOLLECTION(POINT(8 8), GEOMETRYCOLLECTION(LINESTRING(3 -4, 3 4), POLYGON((5 5, 6 5, 6 6, 5 5))), POINT EMPTY)'),
    ('dimensions', 'LINESTRING ZM(3 -4 1 2, 3 4 5 6)'), ('date line', 'POLYGON((179 -1, -179 -1, -179 1, 179 1, 179 -1))'),
    ('no point', 'POINT EMPTY'), ('no line', 'LINESTRING EMPTY'), ('no polygon', 'POLYGON EMPTY'),
    ('nothing', 'GEOMETRYCOLLECTION EMPTY'), ('NULL', NULL);
SELECT name, geonn_distance(0, 0, g) AS metres, geonn_distance(0, 0, g::geometry) IS NOT DISTINCT FROM geonn_distance(0, 0, g) AS same,
       abs(geonn_distance(0, 0, g) - ST_Distance(g, 'POINT(0 0)', false)) < 1e-6 AS of_postgis
FROM shape;
-- and on the other side
SELECT geonn_distance(0, 180, g) AS "180", geonn_distance(0, -180, g) AS "-180", geonn_distance(0, 0, g) AS "0"
FROM shape WHERE name = 'date line';

-- a point as a shape is as far as the point, to the last bit
SELECT count(*) AS points, count(*) FILTER (WHERE geonn_distance(a, b, ST_Point(d, c, 4326)::geography) <> geonn_distance(a, b, c, d)) AS differing
FROM generate_series(-90, 90, 18.3) a, generate_series(-180, 180, 60.7) b, generate_series(-90, 90, 22.9) c, generate_series(-180, 180, 71.3) d;
-- a typed column, a domain, a parameter, a compressed value, and one that is stored elsewhere
CREATE DOMAIN road AS geography(LineString, 4326);
CREATE TABLE long_road (id integer, g geography(LineString), r road);
INSERT INTO long_road
SELECT 1, line, line FROM (SELECT ST_MakeLine(ST_Point(i / 1000.0, sin(i), 4326) ORDER BY i)::geography FROM generate_series(0, 50000) i) s (line);
INSERT INTO long_road
SELECT 2, line, line FROM (SELECT ST_MakeLine(ST_Point(7, 7, 4326) ORDER BY i)::geography FROM generate_series(0, 50000) i) s (line);
PREPARE with_shape(geography) AS SELECT geonn_distance(0, 60, $1) = (SELECT geonn_distance(0, 60, r) FROM long_road WHERE id = 1) AS same;
SELECT id, geonn_distance(0, 60, g) AS metres, geonn_distance(0, 60, r) = geonn_distance(0, 60, g) AS same FROM long_road;
SELECT g AS line FROM long_road WHERE id = 1 \gset
EXECUTE with_shape(:'line');

-- Two shapes: the same in both orders, NULL where one is empty, 0 where they intersect, and as far as PostGIS has them; a point
-- is as far as its coordinates, to the last bit.
SELECT count(*) AS pairs, count(*) FILTER (WHERE d IS DISTINCT FROM geonn_distance(b.g, a.g)) AS other_order,
       count(*) FILTER (WHERE (d IS NULL) <> (ST_IsEmpty(a.g::geometry) IS NOT FALSE OR ST_IsEmpty(b.g::geometry) IS NOT FALSE)) AS other_null,
       count(*) FILTER (WHERE d = 0) AS zero, count(*) FILTER (WHERE (d = 0) <> ST_Intersects(a.g, b.g) AND 'date line' NOT IN (a.name, b.name)) AS other_zero,
       max(abs(d - ST_Distance(a.g, b.g, false))) FILTER (WHERE 'date line' NOT IN (a.name, b.name)) < 1e-5 AS near,
       count(*) FILTER (WHERE d IS DISTINCT FROM geonn_distance(a.g::geometry, b.g::geometry, 'sphere') OR d IS DISTINCT FROM geonn_distance(a.g::geometry, b.g)) AS other_type
FROM shape a, shape b, LATERAL (SELECT geonn_distance(a.g, b.g) OFFSET 0) d (d);
-- where PostGIS's ST_Distance() has 0, as its short cut for points in polygons takes one for inside that is on the other side of the
-- Earth (ticket 5895)
SELECT geonn_distance(a.g, b.g) AS metres FROM shape a, shape b WHERE a.name = 'polygon' AND b.name = 'date line';
SELECT name FROM shape WHERE geonn_distance('POINT(0 0)', g) IS DISTINCT FROM geonn_distance(0, 0, g) OR geonn_distance(g, 'POINT(180 1)') IS DISTINCT FROM geonn_distance(1, 180, g);
SELECT count(*) AS points, count(*) FILTER (WHERE geonn_distance(ST_Point(b, a, 4326), ST_Point(d, c, 4326)) <> geonn_distance(a, b, c, d)) AS differing
FROM generate_series(-90, 90, 18.3) a, generate_series(-180, 180, 60.7) b, generate_series(-90, 90, 22.9) c, generate_series(-180, 180, 71.3) d;
SELECT a.id, b.id, geonn_distance(a.g, b.r) AS metres, geonn_distance(b.g, a.r) = geonn_distance(a.g, b.g) AS same FROM long_road a, long_road b WHERE a.id <= b.id;
-- a point before a geometry, where the client does not say of which type its numbers are
PREPARE untyped_point AS SELECT geonn_distance($1, $2, 'SRID=4326;POINT(4 3)'::geometry) = geonn_distance(1, 2, 3, 4) AS same;
EXECUTE untyped_point(1, 2);

-- a ring of 200,000 vertices, which is gone through in pieces: the arcs at which pieces meet count, too
WITH ring (g) AS MATERIALIZED (
    SELECT ST_MakePolygon(ST_MakeLine(ST_Point(i % 200000 * 0.0018 - 180, 60, 4326) ORDER BY i))::geography FROM generate_series(0, 200000) i)
SELECT count(*) AS points, count(*) FILTER (WHERE inside = 0) AS inside, round(min(outside)::numeric, 3) AS least, round(max(outside)::numeric, 3) AS most
FROM ring, generate_series(1, 3) piece, generate_series(-2, 1) arc,
     LATERAL (SELECT (piece * 65536 + arc + 0.5) * 0.0018 - 180 OFFSET 0) p (lon),
     LATERAL (SELECT geonn_distance(60.00001, lon, g), geonn_distance(59.99999, lon, g) OFFSET 0) d (inside, outside);

-- Polygons with holes in all sizes, some around the poles, and points in them and around them: what is
-- inside is what PostGIS has inside, and distances are those of PostGIS, whose own lose digits near the
-- poles, up to 2 mm.
CREATE FUNCTION ring(x float8, y float8, r float8, corners int, seed int) RETURNS text LANGUAGE sql AS $$
    SELECT '(' || string_agg(ST_X(p::geometry) || ' ' || ST_Y(p::geometry), ',' ORDER BY i) || ')'
    FROM generate_series(0, corners) i, ST_Project(ST_Point(x, y)::geography,
        r * (0.7 + 0.3 * sin(seed * 1000 + i % corners)), 2 * pi() * (i % corners) / corners) p $$;
CREATE TABLE polygon AS
SELECT i, x, y, r, ('POLYGON(' || ring(x, y, r, 3 + i % 30, i) ||
                    CASE WHEN i % 3 = 0 THEN ',' || ring(x, y, r * 0.35, 3 + i % 10, i + 7) ELSE '' END || ')')::geography AS g
FROM (SELECT i, i * 77 % 360 - 180 AS x, CASE i % 7 WHEN 0 THEN 90 WHEN 1 THEN -90 ELSE i * 31 % 170 - 85 END AS y,
             10 ^ (1 + 5.6 * (0.5 + 0.5 * sin(i * 1.7))) AS r FROM generate_series(1, 200) i) s;
CREATE TABLE both_distances AS
SELECT i, y, p, geonn_distance(ST_Y(p::geometry), ST_X(p::geometry), g) AS geonn, ST_Distance(g, p, false) AS postgis, ST_Covers(g, p) AS covers,
       geonn_distance(ST_Y(p::geometry), ST_X(p::geometry), ST_ExteriorRing(g::geometry)) AS geonn_ring,
       ST_Distance(ST_ExteriorRing(g::geometry)::geography, p, false) AS postgis_ring
FROM polygon, generate_series(1, 20) k,
     ST_Project(ST_Point(x, y)::geography, r * 1.3 * (0.5 + 0.5 * sin(i * 100 + k)), i * 77 + k) p;
SELECT count(*) AS points, count(*) FILTER (WHERE geonn = 0) > 1000 AS many_inside,
       count(*) FILTER (WHERE (geonn = 0) <> covers) AS other_inside, count(*) FILTER (WHERE (geonn = 0) <> (postgis = 0)) AS other_zero,
       max(greatest(abs(geonn - postgis), abs(geonn_ring - postgis_ring))) < 2e-3 AS near,
       max(greatest(abs(geonn - postgis), abs(geonn_ring - postgis_ring))) FILTER (WHERE abs(ST_Y(p::geometry)) < 89) < 1e-5 AS nearer
FROM both_distances;

-- rings through antipodes, around a great circle, of one place, there and back, and that cross themselves: kilometres to a
-- place inside if there is one, and to one outside
SELECT name, round(geonn_distance(lat, lon, g) / 1000) AS inside, round(geonn_distance(-70, 40, g) / 1000) AS outside
FROM (VALUES ('a lune', 2, 90, 'POLYGON((0 0, 90 0, 180 0, 90 45, 0 0))'), ('a lune of almost a hemisphere', 2, 90, 'POLYGON((0 0, 90 -0.001, 180 0, 180 90, 0 0))'),
    ('by the pole', 2, 5, 'POLYGON((0 -60, 0 0, 0 90, 10 0, 0 -60))'), ('one place', 5, 7, 'POLYGON((7 7, 7 7, 7 7, 7 7))'),
    ('there and back', 1, 5, 'POLYGON((0 0, 10 0, 20 0, 10 0, 0 0))'), ('there and back, 270 degrees', 1, 5, 'POLYGON((0 0, 90 0, 180 0, -90 0, 180 0, 90 0, 0 0))'),
    ('there and back, all around', 1, 5, 'POLYGON((0 0, 90 0, 180 0, -90 0, 0 0, -90 0, 180 0, 90 0, 0 0))'), ('an eight', 1, 0.5, 'POLYGON((0 0, 10 10, 10 0, 0 10, 0 0))'),
    ('twice around', 1, 5, 'POLYGON((0 0, 10 0, 5 9, 0 0, 10 0, 5 9, 0 0))')) AS v (name, lat, lon, shape), CAST(shape AS geography) g;

-- what is no shape on the sphere says so
SELECT geonn_distance(91, 0, 'POINT(0 0)'::geography);
SELECT geonn_distance(0, 361, 'POINT(0 0)'::geography);
SELECT geonn_distance(0, 'NaN', 'POINT(0 0)'::geography);
SELECT geonn_distance(0, 0, 'POINT(0 0)'::geometry);
SELECT geonn_distance(0, 0, 'SRID=3857;POINT(0 0)'::geometry);
SELECT geonn_distance(0, 0, 'SRID=4267;POINT(0 0)'::geography);
SELECT geonn_distance(0, 0, 'SRID=4326;LINESTRING(0 0, 0 1, 0 90.5)'::geometry);
SELECT geonn_distance(0, 0, 'SRID=4326;MULTIPOINT(0 0, 0 1, -200 1)'::geometry);
SELECT geonn_distance(0, 0, ST_SetSRID(ST_MakePoint('NaN', 'Infinity'), 4326));
SELECT geonn_distance(0, 0, 'SRID=4326;CIRCULARSTRING(0 0, 1 1, 2 0)'::geometry);
SELECT geonn_distance(0, 0, 'SRID=4326;CURVEPOLYGON(CIRCULARSTRING(0 0, 1 1, 2 0, 1 -1, 0 0))'::geometry);
SELECT geonn_distance(0, 0, 'SRID=4326;GEOMETRYCOLLECTION Z(POINT(1 1 1), TIN(((0 0 0, 0 0 1, 0 1 0, 0 0 0))))'::geometry);
SELECT geonn_distance(0, 0, 'SRID=4326;POLYHEDRALSURFACE(((0 0 0, 0 0 1, 0 1 0, 0 0 0)))'::geometry);
SELECT geonn_distance(0, 0, 'SRID=4326;TRIANGLE((0 0, 0 1, 1 0, 0 0))'::geometry);
SELECT geonn_distance(0, 0, 'SRID=4326;LINESTRING(10 10, 20 20, -160 -20)'::geometry);
SELECT geonn_distance(0, 0, 'SRID=4326;POLYGON((-180 -90, 180 -90, 180 90, -180 90, -180 -90))'::geometry);
SELECT geonn_distance(0, 0, 'POLYGON((0 0, 90 0, 180 0, -90 0, 0 0))'::geography);
SELECT geonn_distance(0, 0, 'POLYGON((0 0, 90 0, 180 0, -90 0, 0 0, 90 0, 180 0, -90 0, 0 0))'::geography);
-- and of two, whose it is
SELECT geonn_distance('SRID=4326;POINT(0 0)'::geometry, 'POINT(0 0)');
SELECT geonn_distance('SRID=4326;POINT(0 91)'::geometry, 'SRID=4326;POINT EMPTY');
SELECT geonn_distance('SRID=4326;POINT EMPTY'::geometry, 'SRID=4326;POINT(0 91)');
SELECT geonn_distance('SRID=4326;CIRCULARSTRING(0 0, 1 1, 2 0)'::geometry, 'SRID=4326;POINT(0 0)');
SELECT geonn_distance('POINT(0 0)'::geography, 'POLYGON((0 0, 90 0, 180 0, -90 0, 0 0))');
SELECT geonn_distance('POINT(0 0)'::geography, 'POINT(1 1)', 'spheroid');
SELECT geonn_distance('POINT(0 0)'::geography, 'POINT(1 1)', 'Sphere');

SET client_min_messages = warning;
DROP EXTENSION postgis CASCADE;
DROP SCHEMA shapes CASCADE;
DROP SCHEMA gis;
