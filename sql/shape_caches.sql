-- caches over lines, polygons and other shapes: each refresh searches for all observations
-- rooms: cache
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;

-- all of it needs PostGIS
SELECT count(*) = 0 AS absent FROM pg_available_extensions WHERE name = 'postgis' \gset
\if :absent
\quit
\endif

CREATE SCHEMA shape_caches;
SET pgaudit.log = 'none';
SET client_min_messages = warning;
CREATE SCHEMA gis;
CREATE EXTENSION postgis SCHEMA gis;
RESET client_min_messages;
SET search_path = shape_caches, gis, public;
\set SHOW_CONTEXT never

CREATE TABLE obs (id bigint PRIMARY KEY, zone integer, lat float8, lon float8);
INSERT INTO obs SELECT i, i % 3, asin(sin(i * 12.9898)) * 180 / pi(), i * 137.508 - 360 * floor(i * 137.508 / 360) - 180 FROM generate_series(1, 150) i;
CREATE TABLE shape (id text PRIMARY KEY, zone integer, weight float8, g geography(Geometry, 4326));
CREATE FUNCTION shape_at(i bigint) RETURNS geography LANGUAGE sql AS $$
    SELECT CASE i % 4 WHEN 0 THEN p WHEN 1 THEN ST_MakeLine(p::geometry, q::geometry)::geography
        ELSE ST_MakePolygon(ST_MakeLine(ARRAY[p::geometry, q::geometry, r::geometry, p::geometry]))::geography END
    FROM (SELECT p, ST_Project(p, 6e5, 1) AS q, ST_Project(p, 6e5, 2 + i % 2) AS r FROM (SELECT ST_Point(i * 77 % 360 - 180, i * 31 % 170 - 85)::geography AS p) a) b $$;
INSERT INTO shape SELECT 'shape ' || i, i % 3, CASE WHEN i % 5 > 0 THEN i / 4.0 END, shape_at(i) FROM generate_series(1, 90) i;

-- how a cache differs from what plain SQL says, and what its last run did
CREATE TABLE pair (obs_id bigint, id text, same boolean, theirs boolean, weight float8, d float8);
CREATE TABLE cached (name text, expected text);
CREATE FUNCTION pairs(what text) RETURNS text LANGUAGE sql AS $$
    SELECT 'SELECT o.id, row_number() OVER (PARTITION BY o.id ORDER BY d, r.id)::int, r.id, d FROM obs o, LATERAL (SELECT id, d FROM pair WHERE obs_id = o.id AND ' || what || ') r' $$;
INSERT INTO cached VALUES ('nearest', pairs('true ORDER BY d, id LIMIT 2')), ('near', pairs('d <= 1e6 AND same')),
    ('others', pairs('NOT same AND d <= coalesce(weight, ''Infinity'') ORDER BY d, id LIMIT 2')),
    ('counted', 'SELECT o.id, rank::int, radius, count(p.id), ARRAY[coalesce(sum(weight), 0)] FROM obs o CROSS JOIN unnest(''{0, 2e6}''::float8[]) WITH ORDINALITY r (radius, rank)
        LEFT JOIN pair p ON obs_id = o.id AND d <= radius WHERE lat IS NOT NULL GROUP BY 1, 2, 3');
CREATE FUNCTION check_caches() RETURNS TABLE (name text, has_rows boolean, differs bigint, mode text, reason text, status text) LANGUAGE plpgsql AS $$
DECLARE
    cache record;
BEGIN
    TRUNCATE pair;
    INSERT INTO pair SELECT * FROM (SELECT o.id, s.id, s.zone = o.zone, s.zone <> 1, weight, geonn_distance(lat, lon, g) AS d FROM obs o, shape s OFFSET 0) p WHERE d IS NOT NULL;
    FOR cache IN SELECT * FROM cached LOOP
        RETURN QUERY EXECUTE format('WITH expected AS MATERIALIZED (%2$s)
            SELECT %1$L, (SELECT count(*) > 20 FROM %1$I), (SELECT count(*) FROM ((TABLE %1$I EXCEPT ALL TABLE expected) UNION ALL (TABLE expected EXCEPT ALL TABLE %1$I)) d),
            mode, reason, status FROM geonn_cache_log WHERE name = %1$L ORDER BY started DESC LIMIT 1', cache.name, cache.expected);
    END LOOP;
END $$;

SELECT geonn_cache_create('nearest', 'obs', 'shape', k => 2, options => '{"ref_shape": "g"}');
SELECT geonn_cache_create('near', 'obs', 'shape', radius => 1e6, by => '{zone}', options => '{"ref_shape": "g"}');
SELECT geonn_cache_create('others', 'obs', 'shape', k => 2, differs => '{zone}', options => '{"ref_shape": "g", "ref_radius": "weight"}');
SELECT geonn_cache_create('counted', 'obs', 'shape', radii => '{0, 2e6}', weights => '{weight}', options => '{"ref_shape": "g"}');
SELECT * FROM check_caches();

-- what has not changed is told by the visibility map, as of points
VACUUM obs, shape;
CALL geonn_refresh_all('full');
CALL geonn_refresh_all();
SELECT * FROM check_caches();

-- a shape changes, is added and is deleted between refreshes; others become empty and NULL
UPDATE shape SET g = shape_at(47) WHERE id = 'shape 11';
INSERT INTO shape SELECT 'shape ' || i, 0, i, shape_at(i) FROM generate_series(91, 93) i;
DELETE FROM shape WHERE id = 'shape 3';
UPDATE shape SET g = 'LINESTRING EMPTY' WHERE id = 'shape 5';
UPDATE shape SET g = NULL WHERE id = 'shape 6';
CALL geonn_refresh_all();
SELECT * FROM check_caches();
SELECT DISTINCT ON (name) name, inserted, updated, deleted, searched FROM geonn_cache_log ORDER BY name, started DESC;
SELECT name, mode, rows_changed FROM geonn_caches ORDER BY name;
-- an observation moves, comes and goes; a zone and a weight change
UPDATE obs SET lat = -lat WHERE id = 7;
INSERT INTO obs VALUES (1001, 1, 10, 20), (1002, 1, NULL, 20);
DELETE FROM obs WHERE id = 9;
UPDATE shape SET zone = 2, weight = 1000 WHERE id = 'shape 12';
CALL geonn_refresh_all('incremental');
SELECT * FROM check_caches();
-- a transaction refreshes by its own change, and both are rolled back
BEGIN;
DELETE FROM shape WHERE zone = 1;
CALL geonn_refresh_all();
SELECT * FROM check_caches();
ROLLBACK;
CALL geonn_refresh_all();
SELECT * FROM check_caches();
-- all shapes go, and come back
CREATE TABLE kept AS TABLE shape;
TRUNCATE shape;
CALL geonn_refresh_all();
SELECT name, differs, mode, reason, status FROM check_caches();
INSERT INTO shape TABLE kept;
CALL geonn_refresh_all();
SELECT * FROM check_caches();
-- rows that a hand has changed are put right
UPDATE nearest SET distance = 0 WHERE obs_id = 1;
UPDATE counted SET count = 7 WHERE obs_id = 2;
CALL geonn_refresh_all();
SELECT * FROM check_caches();
-- a shape that no join reads fails the refresh, and the table keeps its rows
INSERT INTO shape VALUES ('antipodal', 0, 0, 'LINESTRING(0 0, 180 0)');
CALL geonn_refresh('nearest');
SELECT status, error FROM geonn_cache_log WHERE name = 'nearest' ORDER BY started DESC LIMIT 1;
DELETE FROM shape WHERE id = 'antipodal';
SELECT * FROM check_caches();

-- the table is replaced where that is asked for
SELECT geonn_cache_alter('nearest', '{"replace": "always"}');
UPDATE shape SET g = shape_at(48) WHERE id = 'shape 12';
CALL geonn_refresh_all();
SELECT * FROM check_caches();

-- a cache of points becomes one of shapes, and leaves no baselines; and one of points again
CREATE TABLE stop (id bigint PRIMARY KEY, lat float8, lon float8, way geography(LineString));
INSERT INTO stop SELECT i, i, 2 * i, ST_MakeLine(ST_Point(-2 * i, -i), ST_Point(-i, i))::geography FROM generate_series(1, 50) i;
SELECT geonn_cache_create('stops', 'obs', 'stop');
CREATE FUNCTION stops() RETURNS TABLE (differs bigint, mode text, reason text, has_baselines boolean) LANGUAGE sql AS $$
    SELECT (SELECT count(*) FROM stops s WHERE distance <> CASE WHEN (SELECT arguments::text LIKE '%way%' FROM geonn_cache WHERE name = 'stops') THEN
            (SELECT min(geonn_distance(o.lat, o.lon, way)) FROM stop, obs o WHERE o.id = obs_id)
            ELSE (SELECT min(geonn_distance(o.lat, o.lon, r.lat, r.lon)) FROM stop r, obs o WHERE o.id = obs_id) END),
        mode, reason, EXISTS (SELECT FROM geonn_cache_block b JOIN geonn_cache c ON c.id = b.cache WHERE name = 'stops')
    FROM geonn_cache_log WHERE name = 'stops' ORDER BY started DESC LIMIT 1 $$;
SELECT * FROM stops();
SELECT geonn_cache_alter('stops', '{"options": {"ref_shape": "way"}}');
CALL geonn_refresh('stops');
SELECT * FROM stops();
UPDATE stop SET way = 'LINESTRING(0 0, 1 1)' WHERE id = 7;
CALL geonn_refresh('stops');
SELECT * FROM stops();
SELECT geonn_cache_alter('stops', '{"options": {}}');
CALL geonn_refresh('stops');
SELECT * FROM stops();
UPDATE stop SET lat = lat + 1 WHERE id = 7;
CALL geonn_refresh('stops');
SELECT * FROM stops();

-- a refresh reads as the owner of the table: what row-level security lets in, and nothing without the privilege
CREATE ROLE regress_geonn_shapes;
GRANT USAGE ON SCHEMA gis TO regress_geonn_shapes;
GRANT USAGE, CREATE ON SCHEMA shape_caches TO regress_geonn_shapes;
GRANT SELECT ON obs, shape TO regress_geonn_shapes;
ALTER TABLE shape ENABLE ROW LEVEL SECURITY;
CREATE POLICY two_zones ON shape FOR SELECT TO regress_geonn_shapes USING (zone <> 1);
SET ROLE regress_geonn_shapes;
SELECT geonn_cache_create('theirs', 'obs', 'shape', k => 2, options => '{"ref_shape": "g"}');
RESET ROLE;
TRUNCATE cached;
INSERT INTO cached VALUES ('theirs', pairs('theirs ORDER BY d, id LIMIT 2'));
SELECT * FROM check_caches();
UPDATE shape SET zone = 1 - zone WHERE zone < 2 AND id < 'shape 3';
CALL geonn_refresh('theirs');
SELECT * FROM check_caches();
REVOKE SELECT ON shape FROM regress_geonn_shapes;
CALL geonn_refresh('theirs');
SELECT * FROM check_caches();

SET client_min_messages = warning;
SELECT count(geonn_cache_drop(name)) FROM geonn_caches;
DROP EXTENSION postgis CASCADE;
DROP SCHEMA shape_caches CASCADE;
DROP SCHEMA gis CASCADE;
DROP ROLE regress_geonn_shapes;
