-- PostGIS's statements on columns whose type does not say what they have: the rows are those without geonn, whatever the values are
-- rooms: sql
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;

-- all of it needs PostGIS
SELECT count(*) = 0 AS absent FROM pg_available_extensions WHERE name = 'postgis' \gset
\if :absent
\quit
\endif

CREATE SCHEMA plain_statements;
SET pgaudit.log = 'none';
SET client_min_messages = warning;
CREATE SCHEMA gis;
CREATE EXTENSION postgis SCHEMA gis;
RESET client_min_messages;
SET search_path = plain_statements, gis, public;
\set SHOW_CONTEXT never
SET max_parallel_workers_per_gather = 0;
SET geonn.enable_sql_joins = on;

CREATE FUNCTION point_at(i bigint) RETURNS geography LANGUAGE sql AS
    $$ SELECT ST_SetSRID(ST_MakePoint(i * 77.7 - 360 * floor(i * 77.7 / 360) - 180, asin(sin(i * 12.9898)) * 150 / pi()), 4326)::geography $$;
CREATE FUNCTION line_at(i bigint) RETURNS geography LANGUAGE sql AS $$ SELECT ST_MakeLine(p::geometry, ST_Project(p, 6e5, 1)::geometry)::geography FROM point_at(i) p $$;
CREATE FUNCTION area_at(i bigint) RETURNS geography LANGUAGE sql AS $$ SELECT ST_Buffer(p, 3e4) FROM point_at(i) p $$;
CREATE TABLE o AS SELECT i AS id, (i % 3)::integer AS zone, point_at(i * 31) AS g FROM generate_series(1, 300::bigint) i;
INSERT INTO o VALUES (401, 1, NULL), (402, 1, 'LINESTRING EMPTY'), (403, 2, line_at(7)), (404, 0, area_at(9));
CREATE TABLE r AS SELECT i AS id, (i % 3)::integer AS zone, point_at(i) AS g FROM generate_series(1, 2000::bigint) i;
INSERT INTO r VALUES (3001, 1, NULL), (3002, 1, 'POINT EMPTY'), (3003, 1, 'POLYGON EMPTY'), (3004, 1, 'POINT ZM(1 2 3 4)');
CREATE TABLE typed_o (id bigint, zone integer, g geography(Point));
INSERT INTO typed_o SELECT * FROM o WHERE id < 400;
CREATE TABLE long_r AS SELECT i AS id, (i % 3)::integer AS zone, area_at(i) AS g FROM generate_series(1, 300::bigint) i;
CREATE VIEW long_viewed AS SELECT * FROM long_r WHERE id > 3;
CREATE TABLE geom_o AS SELECT id, zone, g::geometry AS g FROM o;
CREATE TABLE geom_r AS SELECT id, zone, g::geometry AS g FROM r;
INSERT INTO geom_r SELECT i, 1, line_at(i)::geometry FROM generate_series(4001, 4003) i;
-- statistics are what this test makes them
ALTER TABLE r SET (autovacuum_enabled = off);
CREATE VIEW viewed AS SELECT * FROM r WHERE id <> 7;
ANALYZE;

-- the rows of a statement with the node and without: how many, how many only one has, and whether the plan has the node
CREATE FUNCTION taken(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
    found text := 'left';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || statement LOOP
        IF line ~ 'Custom Scan \(geonn (subquery|within) join' THEN
            found := 'taken';
        ELSIF line ~ '^Left to PostgreSQL' THEN
            RETURN regexp_replace(line, '^Left to PostgreSQL: [^:]*: ', '');
        END IF;
    END LOOP;
    RETURN found;
END $$;
CREATE FUNCTION same(statement text) RETURNS TABLE (rows bigint, differ bigint, plan text) LANGUAGE plpgsql AS $$
BEGIN
    DROP TABLE IF EXISTS a, b;
    PERFORM set_config('geonn.enable_sql_joins', 'off', true);
    EXECUTE 'CREATE TEMP TABLE b AS ' || statement;
    PERFORM set_config('geonn.enable_sql_joins', 'on', true);
    EXECUTE 'CREATE TEMP TABLE a AS ' || statement;
    RETURN QUERY SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) d), taken(statement);
END $$;
SET client_min_messages = warning;
SET enable_nestloop = off;
CREATE TABLE statement (number integer PRIMARY KEY, statement text);
INSERT INTO statement VALUES
    (1, 'SELECT o.id AS own, n.* FROM o, LATERAL (SELECT r.id, o.g <-> r.g AS d FROM r ORDER BY o.g <-> r.g, r.id LIMIT 2) n'),
    (2, 'SELECT o.id AS own, n.* FROM o LEFT JOIN LATERAL (SELECT r.id, ST_Distance(o.g, r.g) AS d FROM r WHERE r.id <> o.id ORDER BY ST_Distance(o.g, r.g), r.id LIMIT 1 OFFSET 1) n ON true'),
    (3, 'SELECT o.id AS own, (SELECT r.id FROM r WHERE r.zone = o.zone ORDER BY r.g <-> o.g LIMIT 1) AS ref FROM typed_o o'),
    (4, 'SELECT o.id AS own, n.* FROM o, LATERAL (SELECT o.g <-> r.g AS d FROM viewed r ORDER BY o.g <-> r.g LIMIT 1) n'),
    (5, 'SELECT o.id AS own, r.id FROM o JOIN r ON ST_DWithin(o.g, r.g, 5e5)'),
    (6, 'SELECT o.id AS own, r.id FROM o LEFT JOIN r ON ST_DWithin(o.g, r.g, 3e5, false) AND r.zone <> o.zone'),
    (7, 'SELECT o.id AS own FROM o WHERE EXISTS (SELECT FROM r WHERE ST_DWithin(o.g, r.g, 2e5))'),
    (8, 'SELECT o.id AS own FROM o WHERE NOT EXISTS (SELECT FROM r WHERE ST_DWithin(r.g, o.g, 2e5))'),
    (9, 'SELECT o.id AS own, r.id FROM typed_o o JOIN r ON ST_Distance(o.g, r.g) <= 3e5'),
    (10, 'SELECT o.id AS own, n.* FROM o, LATERAL (SELECT r.id FROM (TABLE r UNION ALL TABLE long_r) r ORDER BY o.g <-> r.g, r.id LIMIT 3) n'),
    (11, 'SELECT o.id AS own, n.* FROM geom_o o, LATERAL (SELECT r.id FROM geom_r r ORDER BY ST_DistanceSphere(o.g, r.g), r.id LIMIT 1) n'),
    (12, 'SELECT o.id AS own, r.id FROM geom_o o LEFT JOIN geom_r r ON ST_DWithin(o.g::geography, r.g::geography, 2e5)');
SELECT number, s.* FROM statement, LATERAL same(statement) s ORDER BY 1;
PREPARE nearest AS SELECT o.id AS own, n.id FROM o, LATERAL (SELECT r.id FROM r ORDER BY o.g <-> r.g, r.id LIMIT 1) n;
PREPARE near AS SELECT o.id AS own, r.id FROM o JOIN r ON ST_DWithin(o.g, r.g, 2e5);
SET plan_cache_mode = force_generic_plan;
CREATE TABLE before_1 AS EXECUTE nearest;
CREATE TABLE before_2 AS EXECUTE near;

-- later INSERTs add lines and polygons, first few and then many; the plans stay, until new statistics say what the values are
INSERT INTO r SELECT i, 1, line_at(i) FROM generate_series(4001, 4003) i;
INSERT INTO r SELECT i, 2, area_at(i) FROM generate_series(4004, 4006) i;
SELECT number, s.* FROM statement, LATERAL same(statement) s ORDER BY 1;
CREATE TABLE after_1 AS EXECUTE nearest;
CREATE TABLE after_2 AS EXECUTE near;
SELECT count(*) FROM ((TABLE after_1) EXCEPT (TABLE before_1)) d;
SET geonn.enable_sql_joins = off;
SELECT count(*) FROM ((TABLE after_1) EXCEPT ALL SELECT o.id, n.id FROM o, LATERAL (SELECT r.id FROM r ORDER BY o.g <-> r.g, r.id LIMIT 1) n) d;
SELECT count(*) FROM ((TABLE after_2) EXCEPT ALL SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.g, r.g, 2e5)) d;
SET geonn.enable_sql_joins = on;
INSERT INTO r SELECT i, 2, line_at(i) FROM generate_series(5001, 5200) i;
SELECT number, s.* FROM statement, LATERAL same(statement) s WHERE number < 10 ORDER BY 1;

-- with an index, PostgreSQL's own plan answers then
CREATE INDEX ON r USING gist (g);
SELECT number, s.* FROM statement, LATERAL same(statement) s WHERE number < 10 ORDER BY 1;
CREATE FUNCTION by_own_plan(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || statement LOOP
        IF line ~ 'geonn (subquery|within) join|unanswered|Compared|Rechecked' THEN
            RETURN NEXT regexp_replace(trim(line), 'actual rows=[0-9.]+ ', '');
        END IF;
    END LOOP;
END $$;
SELECT by_own_plan(statement) FROM statement WHERE number IN (4, 6, 7) ORDER BY number;
DELETE FROM r WHERE id > 4003;
SELECT by_own_plan(statement) FROM statement WHERE number IN (4, 6, 7) ORDER BY number;
DROP INDEX r_g_idx;

-- what is left to PostgreSQL: subqueries of values that are too long for points, and expressions; casts of columns are taken
CREATE TABLE plane (id bigint, zone integer, g geometry);
INSERT INTO plane SELECT id, zone, g::geometry FROM typed_o;
ANALYZE plane;
SELECT * FROM same('SELECT o.id AS own, n.* FROM o, LATERAL (SELECT r.id FROM long_r r ORDER BY o.g <-> r.g, r.id LIMIT 1) n');
SELECT * FROM same('SELECT o.id AS own, n.* FROM o, LATERAL (SELECT r.id FROM long_viewed r ORDER BY o.g <-> r.g, r.id LIMIT 1) n');
SELECT * FROM same('SELECT o.id AS own, r.id FROM o JOIN long_r r ON ST_DWithin(o.g, r.g, 1e5)');
SELECT * FROM same('SELECT o.id AS own, n.* FROM o, LATERAL (SELECT r.id FROM r ORDER BY o.g <-> ST_Reverse(r.g::geometry)::geography, r.id LIMIT 1) n WHERE o.id < 9');
SELECT * FROM same('SELECT o.id AS own, n.* FROM o, LATERAL (SELECT r.id FROM plane r ORDER BY o.g <-> r.g::geography, r.id LIMIT 1) n');
SELECT * FROM same('SELECT o.id AS own, n.* FROM o, LATERAL (SELECT r.id FROM plane r WHERE r.zone = o.zone ORDER BY o.g <-> r.g::geography, r.id LIMIT 1) n');
SELECT * FROM same('SELECT o.id AS own, r.id FROM plane o JOIN plane r ON ST_DWithin(o.g::geography, r.g::geography, 1e5)');
SELECT * FROM same('SELECT o.id AS own, r.id FROM plane o JOIN plane r ON ST_DWithin(o.g::geography, r.g::geography, 1e5) AND r.zone = o.zone');

-- the cast, or the distance, is an error for some values, which PostgreSQL's own plan does not reach, nor does geonn
CREATE TABLE bad (id bigint, zone integer, g geometry);
INSERT INTO bad SELECT * FROM plane WHERE zone < 2;
INSERT INTO bad VALUES (800, 9, 'SRID=3857;POINT(1 1)'), (801, 9, 'CIRCULARSTRING(0 0, 1 1, 2 0)');
CREATE TABLE bad_geog AS SELECT id, zone, g::geography AS g FROM bad WHERE zone < 9;
INSERT INTO bad_geog VALUES (800, 9, 'SRID=4267;POINT(1 1)');
ANALYZE bad, bad_geog;
CREATE TABLE bad_statement (number integer, statement text);
INSERT INTO bad_statement VALUES
    (1, 'SELECT o.id AS own, n.* FROM o, LATERAL (SELECT r.id, o.g <-> r.g::geography AS d FROM bad r WHERE r.zone = o.zone ORDER BY o.g <-> r.g::geography, r.id LIMIT 2) n'),
    (2, 'SELECT o.id AS own, n.* FROM plane o, LATERAL (SELECT r.id, r.g::geography <-> o.g::geography AS d FROM bad r WHERE ST_DWithin(r.g::geography, o.g::geography, 1e6) AND r.zone = o.zone ORDER BY r.g::geography <-> o.g::geography LIMIT 1) n'),
    (3, 'SELECT o.id AS own, n.* FROM o, LATERAL (SELECT r.id FROM bad_geog r WHERE r.zone = o.zone ORDER BY o.g <-> r.g, r.id LIMIT 1) n'),
    (4, 'SELECT o.id AS own, r.id FROM o JOIN bad r ON ST_DWithin(o.g, r.g::geography, 1e6) AND r.zone = o.zone'),
    (5, 'SELECT o.id AS own, r.id FROM o LEFT JOIN bad r ON ST_DWithin(o.g, r.g::geography, 1e6) AND r.zone = o.zone AND r.id <> o.id'),
    (6, 'SELECT o.id AS own, r.id FROM o JOIN bad_geog r ON ST_DWithin(o.g, r.g, 1e6) AND r.zone = o.zone'),
    (7, 'SELECT o.id AS own FROM o WHERE EXISTS (SELECT FROM bad r WHERE ST_DWithin(o.g, r.g::geography, 1e6) AND r.zone = o.zone)'),
    (8, 'SELECT o.id AS own FROM o WHERE NOT EXISTS (SELECT FROM bad_geog r WHERE ST_DWithin(o.g, r.g, 1e6) AND r.zone = o.zone)'),
    (9, 'SELECT o.id AS own FROM bad_geog o WHERE o.zone < 9 AND EXISTS (SELECT FROM bad r WHERE ST_DWithin(o.g, r.g::geography, 10))'),
    (10, 'SELECT count(*) FROM (SELECT FROM bad o JOIN typed_o r ON ST_DWithin(o.g::geography, r.g, 1e6) LIMIT 3) few'),
    (11, 'SELECT count(*) FROM (SELECT FROM bad o, LATERAL (SELECT FROM r ORDER BY o.g::geography <-> r.g LIMIT 1) n LIMIT 3) few'),
    (12, 'SELECT o.id AS own, r.id FROM (SELECT * FROM bad WHERE id < 0) o JOIN bad r ON ST_DWithin(o.g::geography, r.g::geography, 1e6)'),
    (13, 'SELECT o.id AS own, r.id FROM bad o LEFT JOIN (SELECT * FROM bad WHERE id < 0) r ON ST_DWithin(o.g::geography, r.g::geography, 1e6)');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT number, s.* FROM bad_statement, LATERAL same(statement) s ORDER BY 1;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- of values without a distance, those come first that the other keys say
CREATE TABLE absent AS SELECT id, zone, g FROM r WHERE id <= 100;
INSERT INTO absent VALUES (201, 7, 'POINT(1 1)'), (203, 7, 'GEOMETRYCOLLECTION(POINT EMPTY)'), (202, 7, NULL);
CREATE TABLE seven AS SELECT id, 7 AS zone, g FROM o;
ANALYZE absent, seven;
SELECT * FROM same('SELECT o.id AS own, n.* FROM seven o, LATERAL (SELECT r.id FROM absent r WHERE r.zone = o.zone ORDER BY o.g <-> r.g, r.id LIMIT 2) n');

-- other SRIDs: the same error as without geonn, and none where an index need not look at the value
INSERT INTO plane VALUES (900, 1, 'SRID=3857;POINT(1 1)'), (901, 2, 'POINT(3 3)');
SELECT * FROM same('SELECT o.id AS own, n.* FROM o, LATERAL (SELECT r.id FROM plane r ORDER BY o.g <-> r.g::geography, r.id LIMIT 1) n');
SELECT * FROM same('SELECT o.id AS own, n.* FROM geom_o o, LATERAL (SELECT r.id FROM plane r WHERE r.id <> 900 ORDER BY ST_DistanceSphere(o.g, r.g), r.id LIMIT 1) n');
SELECT * FROM same('SELECT o.id AS own, n.* FROM geom_o o, LATERAL (SELECT r.id FROM plane r ORDER BY ST_DistanceSphere(o.g, r.g), r.id LIMIT 1) n');
CREATE TABLE foreign_r AS SELECT * FROM r WHERE id <= 2000;
INSERT INTO foreign_r VALUES (9000, 1, 'SRID=4267;POINT(0 89)'), (9001, 1, 'SRID=4267;POINT EMPTY');
SELECT * FROM same('SELECT o.id AS own, n.* FROM o, LATERAL (SELECT r.id FROM foreign_r r ORDER BY o.g <-> r.g, r.id LIMIT 1) n');
CREATE INDEX ON foreign_r USING gist (g);
ANALYZE foreign_r;
SELECT * FROM same('SELECT o.id AS own, r.id FROM typed_o o JOIN foreign_r r ON ST_DWithin(o.g, r.g, 2e5)');

-- an empty value of the outer side, beside references of another SRID, is PostGIS's error, too; NULL is none
CREATE TABLE absent_o AS SELECT o.id, o.g FROM o WHERE o.id IN (401, 402);
CREATE TABLE far_r AS SELECT id, g FROM foreign_r;
ANALYZE absent_o, far_r;
CREATE FUNCTION ending(statement text, is_on boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    rows bigint;
BEGIN
    PERFORM set_config('geonn.enable_sql_joins', is_on::text, true);
    EXECUTE 'SELECT count(*) FROM (' || statement || ' OFFSET 0) s' INTO rows;
    RETURN rows || ' rows';
EXCEPTION WHEN OTHERS THEN
    RETURN 'an error: ' || SQLERRM;
END $$;
SELECT value, number, ending(s, false) = ending(s, true) AS same, left(ending(s, true), 8) AS ending, taken(s) AS plan
FROM (VALUES (401, 'a NULL'), (402, 'an empty value')) outer_row (id, value), (VALUES
    (1, 'SELECT o.id, n.id FROM absent_o o, LATERAL (SELECT r.id FROM far_r r ORDER BY o.g <-> r.g LIMIT 1) n WHERE o.id = %s'),
    (2, 'SELECT o.id, n.id FROM absent_o o LEFT JOIN LATERAL (SELECT r.id FROM far_r r ORDER BY ST_Distance(o.g, r.g), r.id LIMIT 1) n ON true WHERE o.id = %s'),
    (3, 'SELECT o.id, r.id FROM absent_o o JOIN far_r r ON ST_DWithin(o.g, r.g, 2e5) WHERE o.id = %s'),
    (4, 'SELECT o.id, r.id FROM absent_o o LEFT JOIN far_r r ON ST_DWithin(r.g, o.g, 2e5, false) WHERE o.id = %s'),
    (5, 'SELECT o.id FROM absent_o o WHERE NOT EXISTS (SELECT FROM far_r r WHERE ST_DWithin(o.g, r.g, 2e5)) AND o.id = %s')) v (number, statement), format(statement, id) s
ORDER BY 1, 2;

SET client_min_messages = warning;
DROP EXTENSION postgis CASCADE;
DROP SCHEMA plain_statements CASCADE;
DROP SCHEMA gis CASCADE;
