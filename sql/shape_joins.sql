-- the nearest lines, polygons and other shapes
-- rooms: join points engine/cpu/arcs
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;

-- all of it needs PostGIS
SELECT count(*) = 0 AS absent FROM pg_available_extensions WHERE name = 'postgis' \gset
\if :absent
\quit
\endif

-- in a schema that is not on the search path, unless a test says so; PostGIS is not installed while pgaudit logs
CREATE SCHEMA shape_joins;
SET pgaudit.log = 'none';
SET client_min_messages = warning;
CREATE SCHEMA gis;
CREATE EXTENSION postgis SCHEMA gis;
RESET client_min_messages;
SET search_path = shape_joins, gis, public;
SET extra_float_digits = 0;

-- which column has shapes: one whose type names lines, polygons or collections
CREATE TABLE obs (id bigint PRIMARY KEY, lat float8, lon float8);
INSERT INTO obs VALUES (1, 0, 0), (2, 3.5, 3), (3, 60, 180), (4, NULL, 3);
CREATE TABLE road (id bigint PRIMARY KEY, name text, way geography(LineString));
INSERT INTO road VALUES (1, 'east', 'LINESTRING(3 -4, 3 4)'), (2, 'north', 'LINESTRING(-10 5, 10 5)'), (3, 'nowhere', 'LINESTRING EMPTY'), (4, 'unknown', NULL);
CREATE TABLE zone (id bigint PRIMARY KEY, area geometry(MultiPolygon, 4326));
CREATE TABLE mixed (id bigint PRIMARY KEY, place geography);
CREATE TABLE both_kinds (id bigint PRIMARY KEY, stop geography(Point), way geography(LineString));
CREATE TABLE two_shapes (id bigint PRIMARY KEY, way geography(LineString), area geography(Polygon));
CREATE TABLE curve (id bigint PRIMARY KEY, way geometry(CompoundCurve, 4326));
CREATE TABLE plane (id bigint PRIMARY KEY, way geometry(LineString, 3857));
SELECT role, column_name, type, reason FROM geonn_describe('road');
SELECT role, column_name, type, reason FROM geonn_describe('zone');
SELECT role, column_name, type, reason FROM geonn_describe('mixed');
SELECT role, column_name, type, reason FROM geonn_describe('mixed', '{"shape": "place"}');
SELECT role, column_name, type, reason FROM geonn_describe('both_kinds');
SELECT role, column_name, type, reason FROM geonn_describe('both_kinds', '{"shape": "way"}');
SELECT * FROM geonn_describe('two_shapes');
SELECT * FROM geonn_describe('curve');
SELECT * FROM geonn_describe('plane');
SELECT * FROM geonn_describe('road', '{"shape": "name"}');
SELECT * FROM geonn_describe('road', '{"shape": "path"}');
SELECT * FROM geonn_describe('road', '{"shape": "way", "geog": "way"}');
SELECT * FROM geonn_describe('obs', '{"shape": "way", "lat": "lat", "lon": "lon"}');

-- the nearest, ties and all within; what is empty or NULL is no candidate
SELECT * FROM geonn_nearest('obs', 'road', k => 5);
SELECT * FROM geonn_nearest('obs', 'road', keep_unmatched => true, max_distance => 1e6) ORDER BY obs_id;
SELECT * FROM geonn_within('obs', 'road', 350000);
SELECT * FROM geonn_nearest_points(ARRAY[0, 3.5], ARRAY[0, 3], 'road');
SELECT * FROM geonn_nearest_sql('SELECT id, lat, lon FROM obs', 'SELECT id, way FROM road WHERE id = 2');
SELECT * FROM geonn_nearest('road', 'obs');
SELECT * FROM geonn_nearest('obs', 'obs', options => '{"obs_shape": "lat"}');

-- counts within radii, and what is known of the shapes that are counted
SELECT * FROM geonn_within_count('obs', 'road', '{1, 200000, 400000}', '{id}', row_type => NULL::record)
    AS t (obs_id bigint, radius float8, count bigint, sum float8, min float8, max float8) ORDER BY 1, 2;
SELECT * FROM geonn_within_count_points(ARRAY[0, 3.5], ARRAY[0, 3], 'road', '{400000}');

-- shapes beside points are not used, unless an option says so, and the client is told once a statement
CREATE TABLE lot (id bigint PRIMARY KEY, lat float8, lon float8, area geography(Polygon));
INSERT INTO lot VALUES (1, 50, 50, 'POLYGON((-1 -1, 1 -1, 1 1, -1 1, -1 -1))');
SELECT count(*) FROM geonn_nearest('obs', 'lot');
SELECT count(*), count(b.obs_id) FROM geonn_nearest('obs', 'lot') a JOIN geonn_nearest('obs', 'lot') b USING (obs_id);
SELECT count(*) FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'lot') n;
SELECT count(*) FILTER (WHERE distance = 0) AS inside FROM geonn_nearest('obs', 'lot', options => '{"ref_shape": "area"}');
SELECT count(*) FROM geonn_nearest('obs', 'lot', options => '{"ref_lat": "lat", "ref_lon": "lon"}');
SELECT count(*) FROM geonn_nearest('lot', 'obs');
SELECT * FROM geonn_describe('lot');
SELECT rows FROM geonn_check('lot');
-- a column whose type names none has what its values are
INSERT INTO mixed VALUES (1, 'POINT(1 1)'), (2, 'LINESTRING(2 2, 2 3)'), (3, 'POLYGON((-1 -1, 1 -1, 1 1, -1 1, -1 -1))');
SELECT * FROM geonn_nearest('obs', 'mixed');
SELECT * FROM geonn_nearest('obs', 'mixed', options => '{"ref_shape": "place"}');

-- what joins of shapes do not have
SELECT * FROM geonn_nearest('obs', 'road', metric => 'spheroid');
SELECT * FROM geonn_cluster('road', 5);
SELECT * FROM geonn_cluster('mixed', 5);
SELECT * FROM geonn_assign('obs', 'mixed');
DELETE FROM mixed WHERE id > 1;
SELECT * FROM geonn_cluster('mixed', 5);
SELECT * FROM geonn_cluster('lot', 5);
SELECT * FROM geonn_cluster('lot', 5, options => '{"geog": "area"}');
SELECT * FROM geonn_cluster_sql('SELECT id, area, area AS outline FROM lot', 5);
SELECT * FROM geonn_assign('obs', 'road');

-- of another owner, open at the time, and within the radius of either: a shape has one of each, whatever its arcs
CREATE TABLE walker (id bigint PRIMARY KEY, owner text, at integer, reach float8, lat float8, lon float8);
INSERT INTO walker VALUES (1, 'city', 8, 400000, 0, 0), (2, 'state', 12, NULL, 3.5, 3), (3, NULL, 20, 0, 3.5, 3);
CREATE TABLE path (id bigint PRIMARY KEY, owner text, at int4range, reach float8, way geography(LineString));
INSERT INTO path SELECT id, o, t, r, way FROM road, (VALUES (1, 'city', int4range(0, 10), 5e5::float8), (2, 'state', int4range(8, 12), 2e5), (3, 'city', NULL, NULL)) v (i, o, t, r) WHERE i = id;
SELECT * FROM geonn_nearest('walker', 'path', k => 2, differs => '{owner}');
SELECT * FROM geonn_nearest('walker', 'path', k => 2, overlaps => '{at}');
SELECT * FROM geonn_nearest_points('{0}', '{0}', 'path', k => 2, overlaps => '{at}', windows => ARRAY[int4range(9, 9, '[]')]);
SELECT * FROM geonn_nearest_points('{0, 0}', '{0, 0}', 'path', k => 2, overlaps => '{at}', windows => ARRAY[int4range(9, 9, '[]'), NULL]);
SELECT * FROM geonn_nearest('walker', 'path', k => 2, options => '{"obs_radius": "reach"}');
SELECT * FROM geonn_nearest('walker', 'path', k => 2, options => '{"ref_radius": "reach"}');
SELECT * FROM geonn_within('walker', 'path', 1e6, options => '{"ref_radius": "reach", "obs_radius": "reach"}');

-- the nearest place of a shape, and its fraction of the length of the shape's lines: on the first of two arcs that are as
-- near, of lines end to end; NULL on points, on polygons, and without a shape
CREATE TABLE track (id bigint PRIMARY KEY, way geography);
INSERT INTO track VALUES (1, 'LINESTRING(0 0, 10 0, 0 0)'), (2, 'MULTILINESTRING((40 0, 50 0), (60 0, 90 0))'),
    (3, 'GEOMETRYCOLLECTION(POINT(100 1), POLYGON((110 0, 120 0, 120 10, 110 0)), LINESTRING(130 0, 140 0))'),
    (4, 'LINESTRING(150 0, 150 0, 160 0)'), (5, 'LINESTRING(-100 0, -50 0, 50 20)'), (6, 'POINT(0 80)');
CREATE TYPE placed AS (obs_id bigint, ref_id bigint, distance float8, ref_lat float8, ref_lon float8, bearing float8, ref_fraction float8);
SELECT what, ref_id, round(ref_lat::numeric, 9) AS lat, round(ref_lon::numeric, 9) AS lon, round(bearing::numeric, 9) AS bearing,
       round(ref_fraction::numeric, 12) AS fraction
FROM (VALUES (1, 'there and back', 1, 5), (2, 'on the second line', 1, 75), (3, 'between lines', 1, 56), (4, 'a point', 2, 100),
        (5, 'inside', 3, 118), (6, 'a polygon''s border', -1, 115), (7, 'a line of a collection', 1, 135), (8, 'before the line', 0, 149),
        (9, 'at its end', 0, 160), (10, 'a long arc', 20, 0), (11, 'a table''s point', 89, 0), (12, 'nothing', 45, 180)) o (ord, what, lat, lon)
    CROSS JOIN LATERAL geonn_nearest_points(ARRAY[lat], ARRAY[lon], 'track', keep_unmatched => true, max_distance => 2e6, options => '{"ref_shape": "way"}',
        row_type => NULL::record) AS n (ref_id bigint, ref_lat float8, ref_lon float8, bearing float8, ref_fraction float8)
ORDER BY o.ord;
SELECT ref_id, ref_fraction FROM geonn_nearest('obs', 'obs', row_type => NULL::placed);

-- the arc that is nearest, its side on which the observation is, and the measure there
CREATE TABLE snap (id int PRIMARY KEY, what text, lat float8, lon float8, way geography);
INSERT INTO snap VALUES (1, 'left', 1, 5, 'LINESTRING M (0 0 100, 10 0 200, 20 0 220)'), (2, 'right', -1, 15, 'LINESTRING M (0 0 100, 10 0 200, 20 0 220)'),
    (3, 'on it', 0, 15, 'LINESTRING ZM (0 0 7 100, 10 0 8 200, 20 0 9 220)'), (4, 'at a vertex', 0, 10, 'LINESTRING Z (0 0 7, 10 0 8, 20 0 9)'),
    (5, 'beside a vertex', 1, 10, 'LINESTRING(0 0, 10 0, 20 0)'), (6, 'straight ahead', 0, 25, 'LINESTRING M (0 0 1, 10 0 2, 20 0 3)'),
    (7, 'behind, to the right', -1, -3, 'LINESTRING M (0 0 1, 10 0 2, 20 0 3)'), (8, 'there and back', 1, 5, 'LINESTRING M (0 0 1, 10 0 2, 0 0 3)'),
    (9, 'beyond there and back', 1, 11, 'LINESTRING(0 0, 10 0, 0 0)'),
    (10, 'beyond a sharp bend to the left, ahead of its first arc', 0.2, 11, 'LINESTRING(0 0, 10 0, 0 1)'),
    (11, 'the same bend to the right', 0.8, 11, 'LINESTRING(0 1, 10 0, 0 0)'), (12, 'inside of a bend', 1, 8, 'LINESTRING(0 0, 10 0, 0 5)'),
    (13, 'where a closed line begins', 0.2, 11, 'LINESTRING(10 0, 0 1, 0 0, 10 0)'), (14, 'a repeated vertex', -1, -1, 'LINESTRING M (0 0 1, 0 0 2, 10 0 3)'),
    (15, 'a bend that is repeated', 0.2, 11, 'LINESTRING M (0 0 1, 10 0 2, 10 0 3, 0 1 4)'), (16, 'a line of one place', 1, 5, 'LINESTRING M (0 0 7, 0 0 8)'),
    (17, 'the second line', 1, 35, 'MULTILINESTRING M ((0 0 1, 10 0 2, 20 0 3), (30 0 10, 40 0 20))'),
    (18, 'a line behind a point', 1, 35, 'GEOMETRYCOLLECTION M (POINT M (0 0 9), LINESTRING M (0 0 1, 10 0 2), MULTIPOINT M (50 50 3, 51 50 4), LINESTRING M (30 0 10, 40 0 20))'),
    (19, 'that point', -1, -1, 'GEOMETRYCOLLECTION M (POINT M (0 0 9), LINESTRING M (0 0 1, 10 0 2))'), (20, 'a point', 1, 1, 'POINT M (0 0 5)'),
    (21, 'a polygon, outside', -1, 5, 'POLYGON M ((0 0 1, 10 0 2, 10 10 3, 0 10 4, 0 0 5), (4 4 1, 4 6 2, 6 6 3, 6 4 4, 4 4 5))'),
    (22, 'in its hole', 5.5, 5, 'POLYGON((0 0, 10 0, 10 10, 0 10, 0 0), (4 4, 4 6, 6 6, 6 4, 4 4))'), (23, 'inside', 2, 2, 'POLYGON((0 0, 10 0, 10 10, 0 10, 0 0))'),
    (24, 'on its border', 0, 5, 'POLYGON((0 0, 10 0, 10 10, 0 10, 0 0))'), (25, 'where a ring begins', -0.2, 11, 'POLYGON((10 0, 0 1, 0 0, 10 0))'),
    (26, 'a long arc', 1, 100, 'LINESTRING M (0 0 0, 160 0 160, 160 10 170)'), (27, 'no measure at one end', 1, 5, ST_MakeLine(ST_MakePointM(0, 0, 'NaN'), ST_MakePointM(10, 0, 1))::geography),
    (28, 'across a pole', 89, 100, 'LINESTRING M (0 80 1, 180 80 2)'), (29, 'across the antimeridian', -1, 180, 'LINESTRING M (170 0 10, -170 0 30)'),
    (30, 'huge measures', 0, 6, 'LINESTRING M (0 0 -1.5e308, 10 0 1.5e308)'), (31, 'nothing', 0, 0, NULL);
CREATE VIEW snapped AS SELECT id, lat, lon FROM snap;
CREATE TYPE snap_row AS (ref_side text, obs_id int, ref_segment int, ref_measure float8);
SELECT what, ref_segment AS segment, ref_side AS side, ref_measure AS measure
FROM geonn_nearest('snapped', 'snap', by => '{id}', keep_unmatched => true, options => '{"ref_shape": "way"}', row_type => NULL::snap_row) JOIN snap ON id = obs_id ORDER BY id;
-- each alone, and of points
SELECT count(*), sum(s) FROM geonn_nearest('snapped', 'snap', by => '{id}', options => '{"ref_shape": "way"}', row_type => NULL::record) AS n (ref_segment bigint), LATERAL (SELECT ref_segment) m (s);
SELECT ref_side, count(*) FROM geonn_within('snapped', 'snap', 2e7, by => '{id}', options => '{"ref_shape": "way"}', row_type => NULL::record) AS n (ref_side text) GROUP BY 1 ORDER BY 1;
SELECT count(*), count(ref_measure) FROM geonn_nearest('snapped', 'snap', by => '{id}', options => '{"ref_shape": "way"}', row_type => NULL::record) AS n (ref_measure float8);
SELECT * FROM geonn_nearest('obs', 'obs', row_type => NULL::record) AS n (obs_id bigint, ref_segment int, ref_side text, ref_measure float8);
SELECT * FROM geonn_nearest_points('{0, 0}', '{0, 3}', 'obs', row_type => NULL::record) AS n (ord bigint, ref_side text);
-- the other types are refused
SELECT * FROM geonn_nearest('snapped', 'snap', options => '{"ref_shape": "way"}', row_type => NULL::record) AS n (ref_side char(5), ref_segment bigint);
SELECT * FROM geonn_nearest('snapped', 'snap', options => '{"ref_shape": "way"}', row_type => NULL::record) AS n (ref_segment smallint, ref_side text);
SELECT * FROM geonn_nearest('snapped', 'snap', options => '{"ref_shape": "way"}', row_type => NULL::record) AS n (ref_measure numeric);
SELECT * FROM geonn_within_count('snapped', 'snap', '{1}', options => '{"ref_shape": "way"}', row_type => NULL::record) AS n (ref_segment bigint);

-- of shapes at one distance the place is on the first by its id, whether or not the answer has the id
CREATE TABLE junction (id text PRIMARY KEY, way geography(LineString));
INSERT INTO junction VALUES ('b', 'LINESTRING(10 0, 0 0)'), ('a', 'LINESTRING(0 0, 10 1)');
SELECT ref_fraction FROM geonn_nearest_points('{0}', '{-5}', 'junction', row_type => NULL::record) AS n (ref_fraction float8);
SELECT ref_id, ref_fraction FROM geonn_nearest_points('{0}', '{-5}', 'junction', row_type => NULL::record) AS n (ref_id text, ref_fraction float8);

-- a place at a vertex has its coordinates, to the last bit
CREATE TABLE equator AS SELECT 1 AS id, ST_MakeLine(ST_MakePoint(i / 7.0, 0) ORDER BY i)::geography(LineString) AS way FROM generate_series(0, 700) i;
SELECT count(*) FROM generate_series(0, 700) i, geonn_nearest_points('{0}', ARRAY[i / 7.0], 'equator', row_type => NULL::record) AS n (distance float8, ref_lat float8, ref_lon float8)
WHERE distance = 0 AND ref_lat = 0 AND ref_lon = (i / 7.0)::float8;

-- lines that pass an observation at a pole by less than a square can say: the fraction is that of the first
CREATE TABLE past_pole (id int PRIMARY KEY, way geography(LineString));
INSERT INTO past_pole VALUES (1, 'LINESTRING(180 17.5, 0 0)'), (2, 'LINESTRING(180 17.5, 1e-310 1e-310)'), (3, 'LINESTRING(180 17.5, -1e-310 0)'),
    (4, 'LINESTRING(180 17.5, 1e-300 0)'), (5, 'LINESTRING(180 17.5, 1e-170 0)'), (6, 'LINESTRING(180 17.5, 1e-150 0)');
SELECT ref_id, distance < 1e-140 AS at_pole, ref_lat, ref_lon BETWEEN -180 AND 180 AS is_longitude, ref_fraction
FROM geonn_nearest_points('{90}', '{35}', 'past_pole', k => 10, row_type => NULL::record) AS n (ref_id int, distance float8, ref_lat float8, ref_lon float8, ref_fraction float8)
ORDER BY ref_id;
-- distances and bearings between points whose coordinates are tiny or at an end of their range are numbers, and those of a range
CREATE TABLE hostile_point AS SELECT row_number() OVER () AS id, lat, lon
FROM unnest('{0,-0,5e-324,-5e-324,1e-310,-1e-160,1e-155,45,90,-90,89.99999999999999}'::float8[]) lat,
    unnest('{0,-0,5e-324,-1e-310,1e-170,90,180,-180,179.99999999999997,360}'::float8[]) lon;
SELECT metric, count(*) = 110 * 110 AS all_pairs, count(*) FILTER (WHERE distance BETWEEN 0 AND 20015116) - count(*) AS no_distances,
    count(*) FILTER (WHERE bearing < 0 OR bearing >= 360) AS no_bearings, count(bearing) > 9000 AS many_bearings
FROM unnest('{sphere,spheroid}'::text[]) metric, geonn_nearest('hostile_point', 'hostile_point', k => 110, metric => metric, row_type => NULL::record)
    AS n (obs_id bigint, ref_id bigint, distance float8, bearing float8)
GROUP BY metric ORDER BY metric;

-- Polygons about as small as those of which a join makes no vectors, at the poles, around them and elsewhere
CREATE TABLE part AS
SELECT row_number() OVER () AS id, ST_GeomFromText(format('POLYGON((%1$s %4$s, %2$s %4$s, %3$s %4$s, %3$s %5$s, %2$s %5$s, %1$s %5$s, %1$s %4$s))',
    west, west + width / 2, west + width, south, north), 4326) AS g
FROM unnest(ARRAY[-180, -20, 240]) west, unnest(ARRAY[0.5, 40, 79.4, 80.6, 120]) width,
    (VALUES (-90, -89.5), (-89.5, -89.1), (-89.4, -89), (-10, -9.5), (88.5, 89), (89, 89.5), (89.5, 90), (60, 90)) latitudes (south, north)
UNION ALL SELECT 1000, ST_GeomFromText('POLYGON((0 80, 120 80, 240 80, 0 80))', 4326)
UNION ALL SELECT 1001, ST_GeomFromText('POLYGON((0 90, 0 80, 40 80, 0 90))', 4326);
CREATE TABLE probe AS SELECT row_number() OVER () AS id, lat::float8, lon::float8
FROM (SELECT generate_series(-90, 90, 15) UNION SELECT unnest(ARRAY[-89.8, -89.3, -89.2, -9.7, 88.7, 89.2, 89.8, 82])) a (lat), generate_series(-175, 175, 25) lon;
SELECT count(*) AS pairs, count(*) FILTER (WHERE distance = 0) > 1000 AS inside, count(*) FILTER (WHERE distance <> geonn_distance(lat, lon, g)) AS others
FROM geonn_within('probe', 'part', 'Infinity', options => '{"ref_shape": "g"}') n JOIN probe o ON o.id = obs_id JOIN part p ON p.id = ref_id;

-- The planner's estimates are within a factor of 3 of the truth: for lines and areas that are smaller and larger than the
-- distance, in boxes and without, in groups, and for EXPLAIN where it cannot tell where a shape is
SELECT setseed(0.5) \g /dev/null
CREATE TABLE spot AS SELECT i AS id, i % 4 AS zone, degrees(asin(2 * random() - 1)) AS lat, 360 * random() - 180 AS lon FROM generate_series(1, 10000) i;
CREATE TABLE start AS SELECT i AS id, i % 4 AS zone, random() * 340 - 170 AS x, random() * 150 - 75 AS y, 2 * pi() * random() AS turn FROM generate_series(1, 10000) i;
CREATE TABLE lane AS SELECT id, zone, ST_MakeLine(ARRAY[ST_MakePoint(x, y), ST_MakePoint(x + 0.01, y), ST_MakePoint(x + 0.01, y + 0.01)])::geography AS g FROM start;
CREATE TABLE pipe AS SELECT id, ST_Multi(ST_SetSRID(ST_MakeLine(ST_MakePoint(x, y), ST_MakePoint(x + 3 * cos(turn), y + 3 * sin(turn))), 4326)) AS g FROM start;
CREATE TABLE curl AS SELECT id, ST_SetSRID(ST_MakeLine(ARRAY[ST_MakePoint(x, y), ST_MakePoint(x + cos(turn), y + sin(turn)), ST_MakePoint(x + 3 * cos(turn), y + 3 * sin(turn))]), 4326) AS g FROM start;
CREATE TABLE field AS SELECT row_number() OVER () AS id, ST_MakeEnvelope(x, y, x + 3, y + 3, 4326)::geography AS g FROM generate_series(-180, 177, 3) x, generate_series(-81, 78, 3) y;
CREATE TABLE vague AS SELECT 1 AS id, ST_SetSRID(ST_GeomFromText('LINESTRING EMPTY'), 4326) AS g UNION ALL SELECT 2, NULL UNION ALL SELECT 3, ST_GeomFromText('POINT(1 1)', 3857)
    UNION ALL SELECT 4, ST_GeomFromText('LINESTRING(NaN 0, 0 1)', 4326) UNION ALL SELECT 5, ST_GeomFromText('LINESTRING(0 200, 0 1, 1 1)', 4326);
ANALYZE spot, lane, pipe, curl, field, vague;
CREATE FUNCTION estimated(query text) RETURNS float8 LANGUAGE plpgsql AS $$ DECLARE plan json; BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) SELECT * FROM ' || query INTO plan; RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows'; END $$;
CREATE FUNCTION counted(query text) RETURNS float8 LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN
    EXECUTE 'SELECT count(*) FROM ' || query INTO n; RETURN n; END $$;
SELECT call, estimated(call) / counted(call) BETWEEN 1.0 / 3 AND 3 AS fits
FROM (SELECT replace(q, ')', $$, options => '{"ref_shape": "g"}')$$) AS call FROM unnest(ARRAY[
    $$geonn_nearest('spot', 'lane')$$, $$geonn_nearest('spot', 'field', 5)$$, $$geonn_nearest('spot', 'lane', 3, max_distance => 100000)$$,
    $$geonn_within('spot', 'lane', 10000)$$, $$geonn_within('spot', 'lane', 100000)$$, $$geonn_within('spot', 'lane', 300000, by => '{zone}')$$,
    $$geonn_within('spot', 'pipe', 3000)$$, $$geonn_within('spot', 'pipe', 100000)$$, $$geonn_within('spot', 'curl', 3000)$$, $$geonn_within('spot', 'curl', 100000)$$,
    $$geonn_within('spot', 'field', 0)$$, $$geonn_within('spot', 'field', 300000)$$, $$geonn_nearest('spot', 'field', max_distance => 1000)$$]) q) c;
SELECT estimated($$geonn_within('spot', 'vague', 1000, options => '{"ref_shape": "g"}')$$) >= 1 AS says_something;

-- Random lines, polygons with holes, and others, nested, touching, over the poles and the antimeridian: the answers are
-- those of plain SQL, to the last bit
CREATE FUNCTION ring(x float8, y float8, r float8, corners int, seed int) RETURNS text LANGUAGE sql SET search_path = gis, pg_catalog AS $$
    SELECT '(' || string_agg(ST_X(p::geometry) || ' ' || ST_Y(p::geometry), ',' ORDER BY i) || ')'
    FROM generate_series(0, corners) i, ST_Project(ST_Point(x, y)::geography,
        r * (0.7 + 0.3 * sin(seed * 1000 + i % corners)), 2 * pi() * (i % corners) / corners) p $$;
CREATE TABLE shape AS
SELECT i AS id, i % 3 AS zone, (CASE i % 5
        WHEN 0 THEN 'LINESTRING' || ring(x, y, r, 2 + i % 20, i)
        WHEN 1 THEN 'GEOMETRYCOLLECTION(POINT(' || x || ' ' || y || '), LINESTRING' || ring(x, y, r / 3, 4, i) || ')'
        WHEN 2 THEN 'MULTIPOLYGON((' || ring(x, y, r / 4, 3, i) || '), (' || ring(x + 1, y, r / 5, 7, i) || '))'
        ELSE 'POLYGON(' || ring(x, y, r, 3 + i % 20, i) || CASE WHEN i % 3 = 0 THEN ',' || ring(x, y, r * 0.35, 3 + i % 10, i + 7) ELSE '' END || ')'
    END)::geography AS g
FROM (SELECT i, i * 77 % 360 - 180 AS x, CASE i % 11 WHEN 0 THEN 90 WHEN 1 THEN -90 ELSE i * 31 % 170 - 85 END AS y,
             10 ^ (3 + 3.5 * (0.5 + 0.5 * sin(i * 1.7))) AS r FROM generate_series(1, 150) i) s;
CREATE TABLE ping AS
SELECT row_number() OVER () AS id, i % 3 AS zone, lat, lon
FROM (SELECT i, asin(sin(i * 12.9898)) * 180 / pi() AS lat, i * 137.508 - 360 * floor(i * 137.508 / 360) - 180 AS lon FROM generate_series(1, 150) i
      UNION ALL SELECT i, ST_Y(p), ST_X(p) FROM generate_series(1, 50) i, (SELECT id, g FROM shape) s,
          LATERAL (SELECT (ST_DumpPoints(g::geometry)).geom LIMIT 1) d (p) WHERE s.id = i) p;
CREATE TABLE pair AS
SELECT o.id AS obs_id, s.id AS ref_id, o.zone = s.zone AS same, geonn_distance(o.lat, o.lon, s.g) AS distance FROM ping o, shape s;
SELECT count(*) AS pairs, count(*) FILTER (WHERE distance = 0) > 100 AS many_inside FROM pair;
CREATE FUNCTION differing(call text, expected text) RETURNS TABLE (expects_some boolean, differs bigint) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('WITH answer AS MATERIALIZED (SELECT * FROM %s), expected AS MATERIALIZED (%s)
        SELECT (SELECT count(*) FROM expected) > 10, (SELECT count(*) FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM answer) d) +
               (SELECT count(*) FROM (SELECT * FROM answer EXCEPT ALL SELECT * FROM expected) d)', call, expected);
END $$;
CREATE FUNCTION nearest_of(what text) RETURNS text LANGUAGE sql AS $$
    SELECT 'SELECT obs_id, ref_id, distance FROM ping p, LATERAL (SELECT obs_id, ref_id, distance FROM pair WHERE obs_id = p.id AND ' || what || ') n' $$;
SELECT * FROM differing($$geonn_nearest('ping', 'shape', options => '{"ref_shape": "g"}')$$, nearest_of('true ORDER BY distance, ref_id LIMIT 1'));
SELECT * FROM differing($$geonn_nearest('ping', 'shape', k => 7, max_distance => 2e6, options => '{"ref_shape": "g"}')$$,
                        nearest_of('distance <= 2e6 ORDER BY distance, ref_id LIMIT 7'));
SELECT * FROM differing($$geonn_nearest('ping', 'shape', k => 2, ties => 'all', options => '{"ref_shape": "g"}')$$,
                        nearest_of('true ORDER BY distance FETCH FIRST 2 ROWS WITH TIES'));
SELECT * FROM differing($$geonn_nearest('ping', 'shape', k => 3, by => '{zone}', exclude_self => true, options => '{"ref_shape": "g"}')$$,
                        nearest_of('same AND ref_id <> p.id ORDER BY distance, ref_id LIMIT 3'));
SELECT * FROM differing($$geonn_within('ping', 'shape', 3e6, options => '{"ref_shape": "g"}')$$, nearest_of('distance <= 3e6'));
SELECT * FROM differing($$geonn_within('ping', 'shape', 0, options => '{"ref_shape": "g"}')$$, nearest_of('distance <= 0'));
-- counts: a shape counts once, however many of its arcs lie within a radius
CREATE FUNCTION counts_of(what text) RETURNS text LANGUAGE sql AS $$
    SELECT 'SELECT p.id, radius, count(x.id), sum(weight), min(weight), max(weight) FROM ping p CROSS JOIN unnest(''{0, 100000, 3e6}''::float8[]) radius
        LEFT JOIN (pair JOIN (SELECT id, CASE WHEN id % 4 > 0 THEN id / 8.0::float8 END AS weight FROM shape) x ON x.id = ref_id) ON obs_id = p.id AND distance <= radius AND ' || what || ' GROUP BY p.id, radius' $$;
CREATE VIEW weighed AS SELECT *, CASE WHEN id % 4 > 0 THEN id / 8.0::float8 END AS weight FROM shape;
SELECT * FROM differing($$(SELECT obs_id, radius, count, CASE WHEN min IS NOT NULL THEN sum END, min, max FROM geonn_within_count('ping', 'weighed', '{0, 100000, 3e6}', '{weight}', options => '{"ref_shape": "g"}',
                            row_type => NULL::record) AS t (obs_id bigint, radius float8, count bigint, sum float8, min float8, max float8)) t$$, counts_of('true'));
SELECT * FROM differing($$(SELECT obs_id, radius, count, CASE WHEN min IS NOT NULL THEN sum END, min, max FROM geonn_within_count('ping', 'weighed', '{0, 100000, 3e6}', '{weight}', by => '{zone}', exclude_self => true, options => '{"ref_shape": "g"}',
                            row_type => NULL::record) AS t (obs_id bigint, radius float8, count bigint, sum float8, min float8, max float8)) t$$, counts_of('same AND ref_id <> p.id'));

-- of another zone, with windows that overlap, and within radiuses; some radiuses and windows are NULL, some windows empty
CREATE VIEW timed AS SELECT id, zone, g, CASE WHEN id % 7 > 0 THEN int8range(id % 20, id % 20 + id % 4) END AS t, CASE WHEN id % 5 > 0 THEN 4e5 * (id % 9 - 1) END AS reach FROM shape;
CREATE VIEW seen AS SELECT id, zone, lat, lon, int8range(id % 25, id % 25 + 1 + id % 6, '[]') AS t, CASE WHEN id % 4 > 0 THEN 3e5 * (id % 20 - 1) END AS reach FROM ping;
CREATE TABLE timed_pair AS SELECT pair.*, NOT same AS other, s.t && o.t AS meets, distance <= coalesce(s.reach, 'Infinity') AS theirs, distance <= coalesce(o.reach, 'Infinity') AS own
FROM pair JOIN timed s ON s.id = ref_id JOIN seen o ON o.id = obs_id;
CREATE FUNCTION timed_of(what text) RETURNS text LANGUAGE sql AS $$
    SELECT 'SELECT p.id, n.* FROM ping p, LATERAL (SELECT ref_id, distance FROM timed_pair WHERE obs_id = p.id AND ' || what || ') n' $$;
SELECT * FROM differing($$geonn_nearest('seen', 'timed', k => 3, differs => '{zone}', options => '{"ref_shape": "g"}')$$, timed_of('other ORDER BY distance, ref_id LIMIT 3'));
SELECT * FROM differing($$geonn_nearest('seen', 'timed', k => 3, overlaps => '{t}', options => '{"ref_shape": "g"}')$$, timed_of('meets ORDER BY distance, ref_id LIMIT 3'));
SELECT * FROM differing($$geonn_nearest('seen', 'timed', k => 3, options => '{"ref_shape": "g", "ref_radius": "reach"}')$$, timed_of('theirs ORDER BY distance, ref_id LIMIT 3'));
SELECT * FROM differing($$geonn_nearest('seen', 'timed', k => 3, options => '{"ref_shape": "g", "obs_radius": "reach"}')$$, timed_of('own ORDER BY distance, ref_id LIMIT 3'));
SELECT * FROM differing($$geonn_within_sql('TABLE seen', 'TABLE timed', 5e6, by => '{zone}', overlaps => '{t}', options => '{"ref_shape": "g", "obs_radius": "reach", "ref_radius": "reach"}')$$,
                        timed_of('same AND meets AND own AND theirs AND distance <= 5e6'));
SELECT * FROM differing($$(SELECT obs_id, radius, count FROM geonn_within_count('seen', 'timed', '{0, 3e6}', differs => '{zone}', overlaps => '{t}', options => '{"ref_shape": "g", "obs_radius": "reach", "ref_radius": "reach"}')) t$$,
                        $$SELECT p.id, radius, count(ref_id) FROM ping p CROSS JOIN unnest('{0, 3e6}'::float8[]) radius LEFT JOIN timed_pair ON obs_id = p.id AND distance <= radius AND other AND meets AND own AND theirs GROUP BY 1, 2$$);
CREATE VIEW timed_names AS SELECT 'shape ' || id AS id, zone, g, t, reach FROM timed;
SELECT * FROM differing($$geonn_nearest('seen', 'timed_names', differs => '{zone}', overlaps => '{t}', options => '{"ref_shape": "g", "ref_radius": "reach"}', row_type => NULL::record) AS n (obs_id bigint, ref_id text, distance float8)$$,
                        $$SELECT p.id, n.* FROM ping p, LATERAL (SELECT 'shape ' || ref_id, distance FROM timed_pair WHERE obs_id = p.id AND other AND meets AND theirs ORDER BY distance, 'shape ' || ref_id LIMIT 1) n$$);
SELECT * FROM differing($$(SELECT p.id, n.ref_id, n.distance FROM seen p, LATERAL geonn_nearest_points(ARRAY[p.lat], ARRAY[p.lon], 'timed', k => 2, overlaps => '{t}', windows => ARRAY[p.t], options => '{"ref_shape": "g"}') n) n$$,
                        timed_of('meets ORDER BY distance, ref_id LIMIT 2'));

-- point by point, in a join with a condition, and as text ids, whose shapes PostgreSQL sorts
SELECT * FROM differing($$ping p, LATERAL (SELECT p.id, n.ref_id, n.distance FROM geonn_nearest_points(ARRAY[p.lat], ARRAY[p.lon], 'shape', k => 2,
                            options => '{"ref_shape": "g"}') n) n (obs_id, ref_id, distance)$$,
                        'SELECT p.*, n.* FROM ping p, LATERAL (SELECT obs_id, ref_id, distance FROM pair WHERE obs_id = p.id ORDER BY distance, ref_id LIMIT 2) n');
SELECT * FROM differing($$(SELECT n.* FROM ping p JOIN geonn_nearest('ping', 'shape', options => '{"ref_shape": "g"}') n ON n.obs_id = p.id WHERE p.id < 20) n$$,
                        nearest_of('p.id < 20 ORDER BY distance, ref_id LIMIT 1'));
CREATE VIEW named AS SELECT 'shape ' || id AS id, g FROM shape;
SELECT * FROM differing($$geonn_nearest('ping', 'named', k => 3, options => '{"ref_shape": "g"}', row_type => NULL::record) AS n (obs_id bigint, ref_id text, distance float8)$$,
                        $$SELECT n.* FROM ping p, LATERAL (SELECT obs_id, 'shape ' || ref_id, distance FROM pair WHERE obs_id = p.id ORDER BY distance, 'shape ' || ref_id LIMIT 3) n$$);
-- places are on their shapes, as far from the observations as the distances say, and the same in batches of any size
CREATE TABLE place AS SELECT * FROM geonn_nearest('ping', 'shape', k => 5, options => '{"ref_shape": "g"}', row_type => NULL::placed);
SELECT count(*) > 900 AS many, count(*) FILTER (WHERE abs(geonn_distance(lat, lon, ref_lat, ref_lon) - distance) > 2e-8) AS elsewhere,
       count(*) FILTER (WHERE geonn_distance(ref_lat, ref_lon, g) > 2e-8) AS off_the_shape, count(*) FILTER (WHERE (bearing IS NULL) <> (distance = 0)) AS wrong,
       count(*) FILTER (WHERE ref_fraction BETWEEN 0 AND 1) > 100 AS on_lines
FROM place n JOIN ping p ON p.id = n.obs_id JOIN shape s ON s.id = n.ref_id;
SELECT * FROM differing($$geonn_nearest('ping', 'shape', k => 5, options => '{"ref_shape": "g", "batch_rows": 3, "algorithm": "brute"}', row_type => NULL::placed)$$,
                        'SELECT * FROM place');
SELECT * FROM differing($$(SELECT p.id, n.ref_id, n.ref_lat, n.ref_lon, n.ref_fraction FROM ping p, LATERAL geonn_nearest_points(ARRAY[p.lat], ARRAY[p.lon], 'shape',
                            k => 5, options => '{"ref_shape": "g"}', row_type => NULL::record) AS n (ref_id bigint, ref_lat float8, ref_lon float8, ref_fraction float8)) n$$,
                        'SELECT obs_id, ref_id, ref_lat, ref_lon, ref_fraction FROM place');
SELECT count(*) AS differs FROM (SELECT obs_id, ref_id, ref_lat, ref_lon, ref_fraction FROM place EXCEPT ALL
    SELECT obs_id, ref_id, ref_lat, ref_lon, ref_fraction FROM geonn_within('ping', 'shape', 1e7, options => '{"ref_shape": "g"}', row_type => NULL::placed)) n;
-- a change of the shapes is seen, and what is rolled back is not
BEGIN;
DELETE FROM shape WHERE id % 5 > 1;
SELECT * FROM differing($$geonn_nearest('ping', 'shape', options => '{"ref_shape": "g"}')$$, nearest_of('ref_id % 5 < 2 ORDER BY distance, ref_id LIMIT 1'));
ROLLBACK;
SELECT * FROM differing($$geonn_nearest('ping', 'shape', options => '{"ref_shape": "g"}')$$, nearest_of('true ORDER BY distance, ref_id LIMIT 1'));
-- arcs are counted in the session's memory
SET geonn.session_memory_limit = '100kB';
\set VERBOSITY sqlstate
SELECT count(*) FROM geonn_nearest('ping', 'shape', options => '{"ref_shape": "g"}');
\set VERBOSITY default
RESET geonn.session_memory_limit;

-- a shape that is none on the sphere is an error that names its row
CREATE TABLE wrong (id text PRIMARY KEY, g geometry);
CREATE FUNCTION try(shape text) RETURNS text LANGUAGE plpgsql SET search_path = shape_joins, gis, public AS $$
DECLARE
    said text;
    hint text;
BEGIN
    TRUNCATE wrong;
    INSERT INTO wrong VALUES ('fine', 'SRID=4326;POINT(0 0)'), ('b', shape::geometry);
    PERFORM * FROM geonn_nearest('obs', 'wrong', options => '{"ref_shape": "g"}', row_type => NULL::record) AS n (obs_id bigint, ref_id text);
    RETURN 'none';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS said = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
    RETURN said;
END $$;
SELECT try(shape) FROM unnest(ARRAY['POINT(0 0)', 'SRID=3857;POINT(0 0)', 'SRID=4326;CIRCULARSTRING(0 0, 1 1, 2 0)',
    'SRID=4326;GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(10 10, -170 -10))',
    'SRID=4326;POLYGON((-180 -90, 180 -90, 180 90, -180 90, -180 -90))', 'SRID=4326;POLYGON((0 0, 90 0, 180 0, -90 0, 0 0))',
    'SRID=4326;POLYGON((0 0, 0 90, 180 0, 0 -90, 0 0))', 'SRID=4326;POLYGON((0 0, 90 0, 180 0, -90 0, 0 0, 90 0, 180 0, -90 0, 0 0))']) shape;
-- coordinates out of range are as those of points
TRUNCATE wrong;
INSERT INTO wrong VALUES ('fine', 'SRID=4326;POINT(5 0)'), ('north', 'SRID=4326;LINESTRING(0 0, 0 90.5)'), ('far', 'SRID=4326;MULTIPOINT(0 0, 361 0)'),
    ('nan', ST_SetSRID(ST_MakePoint('NaN', 0), 4326)), ('empty', 'SRID=4326;POLYGON EMPTY');
SELECT * FROM geonn_nearest('obs', 'wrong', options => '{"ref_shape": "g"}', row_type => NULL::record) AS n (obs_id bigint, ref_id text, distance float8);
SELECT * FROM geonn_nearest('obs', 'wrong', options => '{"ref_shape": "g"}', invalid => 'error', row_type => NULL::record) AS n (obs_id bigint, ref_id text);
SELECT rows, null_coordinates, not_finite, latitude_out_of_range, longitude_out_of_range, zero_zero, duplicate_coordinates, longitude_max
FROM geonn_check('wrong', '{"shape": "g"}');
SELECT rows, null_coordinates, zero_zero, duplicate_coordinates, latitude_min, latitude_max, longitude_min, longitude_max FROM geonn_check('road');
-- a vertex counts its row; ids, radiuses and windows are as those of points
CREATE VIEW checked AS SELECT 1 AS id, 0.5 AS size, tstzrange(NULL, NULL) AS t, ST_GeomFromText('LINESTRING(0 0, 190 1, 200 2)', 4326) AS g
    UNION ALL SELECT 1, 1, NULL, 'SRID=4326;POLYGON((1 1, 2 1, 2 2, 1 1))' UNION ALL SELECT NULL, 1, NULL, 'SRID=4326;POINT(1 1)' UNION ALL SELECT 2, NULL, NULL, NULL
    UNION ALL SELECT 3, NULL, NULL, 'SRID=4326;GEOMETRYCOLLECTION EMPTY';
SELECT rows, null_ids, null_coordinates, zero_zero, longitude_over_180, duplicate_coordinates, duplicate_ids, latitude_min, latitude_max, longitude_min, longitude_max
FROM geonn_check('checked', '{"shape": "g"}');
SELECT role, column_name, type FROM geonn_describe('checked', '{"shape": "g", "radius": "size"}', '{t}');
SELECT null_radiuses, negative_radiuses, null_windows, infinite_windows FROM geonn_check('checked', '{"shape": "g", "radius": "size"}', '{t}');
-- the warnings of points
CREATE VIEW swapped AS SELECT id, ST_SetSRID(ST_MakeLine(ST_MakePoint(50 + id, 113), ST_MakePoint(52, 114)), 4326) AS g FROM road;
CREATE VIEW microdegrees AS SELECT id, ST_SetSRID(ST_MakeLine(ST_MakePoint(13e6, 52e6), ST_MakePoint(14e6, 53e6)), 4326) AS g FROM road;
CREATE VIEW radians AS SELECT id, ST_SetSRID(ST_MakeLine(ST_MakePoint(1, 0.1), ST_MakePoint(2, 0.3)), 4326) AS g FROM road;
SELECT rows, latitude_out_of_range FROM geonn_check('swapped', '{"shape": "g"}');
SELECT rows, latitude_out_of_range FROM geonn_check('microdegrees', '{"shape": "g"}');
SELECT rows, latitude_max, longitude_max FROM geonn_check('radians', '{"shape": "g"}');
-- a shape that would be an error of a join is counted
CREATE VIEW antipodal AS SELECT 7 AS id, ST_GeomFromText('LINESTRING(0 0, 180 0)', 4326) AS g;
SELECT * FROM geonn_check('antipodal', '{"shape": "g"}');

SET client_min_messages = warning;
DROP EXTENSION postgis CASCADE;
DROP SCHEMA shape_joins CASCADE;
DROP SCHEMA gis;
