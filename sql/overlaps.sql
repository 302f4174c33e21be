-- overlaps, and a radius of each row: nearest among those of which && says so, and within both radiuses
-- rooms: join points engine/cpu/walk
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
DROP ROLE IF EXISTS regress_geonn_overlaps;
SET client_min_messages = error;
CREATE SCHEMA overlapping;
SET search_path = overlapping, public;

CREATE TYPE smallrange AS RANGE (subtype = smallint);
CREATE TYPE plainrange AS RANGE (subtype = integer);	-- without a canonical form
CREATE TYPE floatrange AS RANGE (subtype = double precision);
CREATE TYPE realrange AS RANGE (subtype = real);
CREATE TYPE clockrange AS RANGE (subtype = time);
CREATE DOMAIN moment AS timestamptz;
CREATE DOMAIN validity AS tstzrange CHECK (lower(VALUE) > '1999-01-01' OR lower(VALUE) IS NULL);
CREATE TYPE momentrange AS RANGE (subtype = moment);

-- points, and numbers for their windows
CREATE TABLE point (side text, id integer, lat double precision, lon double precision,
    low integer, high integer, bounds text, is_null boolean, is_empty boolean);
SELECT setseed(0.21);
INSERT INTO point
SELECT side, id, round((random() * 20)::numeric, 1), round((random() * 20)::numeric, 1), low,
    CASE WHEN random() < 0.1 THEN low ELSE low + (random() * 6)::integer END,
    (ARRAY['[]', '[)', '(]', '()'])[1 + floor(random() * 4)::integer], random() < 0.07, random() < 0.07
FROM (SELECT side, id, (random() * 60)::integer AS low
    FROM (VALUES ('obs', 150), ('ref', 120)) s (side, count), generate_series(1, count) id OFFSET 0) p;
CREATE TABLE unbounded (side text, id integer, low boolean, high boolean);
INSERT INTO unbounded SELECT side, id, random() < 0.1, random() < 0.1 FROM point;

-- how a number becomes a value of each type
CREATE TABLE kind (nr integer, name text, range text, value text);
INSERT INTO kind VALUES
    (1, 'smallint', 'smallrange', '%s::smallint'),
    (2, 'integer', 'int4range', '%s'),
    (3, 'integer', 'plainrange', '%s'),
    (4, 'bigint', 'int8range', '-9223372036854775807 - 1 + %s'),
    (5, 'date', 'daterange', $$date '2026-01-01' + %s$$),
    (6, 'timestamp', 'tsrange', $$timestamp '2026-01-01' + %s * interval '1 hour'$$),
    (7, 'timestamptz', 'tstzrange', $$timestamptz '2026-01-01 00:00+00' + %s * interval '0.000001'$$),
    (8, 'time', 'clockrange', $$time '10:00' + %s * interval '1 minute'$$),
    (9, 'real', 'realrange', '((%s - 30) / 8.0)::real'),
    (10, 'double precision', 'floatrange', '(30 - %s)::double precision * -1e-310'),
    (11, 'moment', 'momentrange', $$(timestamptz '2026-01-01 00:00+00' + %s * interval '1 day')::moment$$),
    (12, 'moment', 'validity', $$timestamptz '2026-01-01 00:00+00' + %s * interval '1 day'$$);

-- the columns of one side, w as single values or as ranges
CREATE FUNCTION windows_of(side text, kind kind, is_range boolean) RETURNS text LANGUAGE sql AS $$
SELECT format('SELECT p.id, p.lat, p.lon, CASE WHEN NOT p.is_null THEN %s END AS w FROM point p JOIN unbounded u USING (side, id) WHERE side = %L',
    CASE WHEN is_range THEN format('CASE WHEN p.is_empty THEN ''empty'' ELSE %s(CASE WHEN NOT u.low THEN %s END, CASE WHEN NOT u.high THEN %s END, p.bounds) END::%s',
        CASE kind.range WHEN 'validity' THEN 'tstzrange' ELSE kind.range END, format(kind.value, 'p.low'), format(kind.value, 'p.high'), kind.range)
    ELSE format('(%s)::%s', format(kind.value, 'p.low'), kind.name) END, side)
$$;

-- how rows of a call differ from those of a query
CREATE FUNCTION compare(call text, definition text, OUT rows bigint, OUT missing bigint, OUT wrong bigint) LANGUAGE plpgsql AS $$
BEGIN
    DROP TABLE IF EXISTS found, wanted;
    EXECUTE 'CREATE TEMP TABLE found AS ' || call;
    EXECUTE format('CREATE TEMP TABLE wanted (%s) AS %s', (SELECT string_agg(attname, ', ' ORDER BY attnum)
        FROM pg_attribute WHERE attrelid = 'found'::regclass AND attnum > 0), definition);
    SELECT count(*) INTO rows FROM found;
    SELECT count(*) INTO missing FROM (TABLE wanted EXCEPT ALL TABLE found) m;
    SELECT count(*) INTO wrong FROM (TABLE found EXCEPT ALL TABLE wanted) w;
END
$$;
CREATE TYPE found_row AS (obs_id integer, ref_id integer, distance double precision, rank integer);

-- as_range(o.w) && as_range(r.w), by the kind's range type, of which a function makes (,) of NULLs
CREATE FUNCTION compare_kind(kind kind, obs_is_range boolean, ref_is_range boolean, algorithm text,
    OUT rows bigint, OUT missing bigint, OUT wrong bigint) LANGUAGE plpgsql AS $$
DECLARE
    range text := CASE kind.range WHEN 'validity' THEN 'tstzrange' ELSE kind.range END;
    o text := CASE WHEN obs_is_range THEN 'o.w' ELSE format('CASE WHEN o.w IS NOT NULL THEN %s(o.w, o.w, ''[]'') END', range) END;
    r text := CASE WHEN ref_is_range THEN 'r.w' ELSE format('CASE WHEN r.w IS NOT NULL THEN %s(r.w, r.w, ''[]'') END', range) END;
BEGIN
    DROP VIEW IF EXISTS o, r;
    EXECUTE 'CREATE VIEW o AS ' || windows_of('obs', kind, obs_is_range);
    EXECUTE 'CREATE VIEW r AS ' || windows_of('ref', kind, ref_is_range);
    SELECT c.* INTO rows, missing, wrong FROM compare(format(
        $q$SELECT * FROM geonn_nearest('o', 'r', k => 3, overlaps => '{w}', keep_unmatched => true,
            options => '{"algorithm": "%s"}', row_type => NULL::found_row)$q$, algorithm), format(
        $q$SELECT o.id, n.id, n.distance, coalesce(n.rank, 1)::integer FROM o LEFT JOIN LATERAL (
            SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance,
                row_number() OVER (ORDER BY geonn_distance(o.lat, o.lon, r.lat, r.lon), r.id) AS rank
            FROM r WHERE %s && %s ORDER BY distance, r.id LIMIT 3) n ON true$q$, o, r)) c;
END
$$;
SELECT name, range, obs_is_range, ref_is_range, algorithm, c.*
FROM kind, (VALUES (false), (true)) a (obs_is_range), (VALUES (false), (true)) b (ref_is_range),
    (VALUES ('index'), ('brute')) d (algorithm), compare_kind(kind, obs_is_range, ref_is_range, algorithm) c
WHERE obs_is_range OR ref_is_range OR algorithm = 'index'
ORDER BY nr, obs_is_range, ref_is_range, algorithm DESC;

-- integers of all widths, and floating point of both, can be compared; and single values of both sides
CREATE VIEW small AS SELECT id, lat, lon, low::smallint AS w FROM point WHERE side = 'obs';
CREATE VIEW wide AS SELECT id, lat, lon, int8range(low, high, '[]') AS w FROM point WHERE side = 'ref';
SELECT * FROM compare($$SELECT * FROM geonn_nearest('small', 'wide', overlaps => '{w}', row_type => NULL::found_row)$$,
    $$SELECT o.id, n.id, n.distance, 1 FROM small o CROSS JOIN LATERAL (
    SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance FROM wide r
    WHERE int8range(o.w, o.w, '[]') && r.w ORDER BY distance, r.id LIMIT 1) n$$);

-- bounds that no value lies between, and values beyond all others
CREATE TABLE seen (id integer PRIMARY KEY, lat double precision, lon double precision, w plainrange, f floatrange,
    t tstzrange, n double precision);
INSERT INTO seen VALUES (1, 0, 0, '(1,2)', '(0,4.94065645841247e-324)', '[2026-01-01,infinity)', 'NaN');
CREATE TABLE place (LIKE seen INCLUDING ALL);
INSERT INTO place
SELECT row_number() OVER (), 0, 0, w, f, t, n FROM (VALUES
    (plainrange '(1,2)', floatrange '(0,4.94065645841247e-324)', tstzrange '[infinity,infinity]', floatrange '[Infinity,NaN]'),
    ('[1,1]', '[-0,0]', '[infinity,]', '[Infinity,NaN)'),
    ('[2,2]', '[4.94065645841247e-324,1]', '(,2026-01-01]', '(NaN,)'),
    ('(,2)', '(,4.94065645841247e-324)', '(,2026-01-01)', '[NaN,]'),
    ('(,1]', '(,0]', '(,)', '(,)'),
    ('(1,)', '(0,)', '[-infinity,infinity]', '(,NaN)')) v (w, f, t, r), LATERAL (SELECT 0::double precision AS n) z;
CREATE VIEW place_n AS SELECT id, lat, lon, r AS n FROM (SELECT p.id, p.lat, p.lon,
    (ARRAY['[Infinity,NaN]', '[Infinity,NaN)', '(NaN,)', '[NaN,]', '(,)', '(,NaN)'])[id]::floatrange AS r FROM place p) q;
SELECT p.id, s.w && p.w AS w, n.ref_id IS NOT NULL AS w_found, s.f && p.f AS f, f.ref_id IS NOT NULL AS f_found,
    s.t && p.t AS t, t.ref_id IS NOT NULL AS t_found, floatrange(s.n, s.n, '[]') && v.n AS n, m.ref_id IS NOT NULL AS n_found
FROM place p JOIN place_n v USING (id) CROSS JOIN seen s
LEFT JOIN geonn_nearest('seen', 'place', k => 9, overlaps => '{w}') n ON n.ref_id = p.id
LEFT JOIN geonn_nearest('seen', 'place', k => 9, overlaps => '{f}') f ON f.ref_id = p.id
LEFT JOIN geonn_nearest('seen', 'place', k => 9, overlaps => '{t}') t ON t.ref_id = p.id
LEFT JOIN geonn_nearest('seen', 'place_n', k => 9, overlaps => '{n}') m ON m.ref_id = p.id
ORDER BY p.id;

-- with all other arguments: several columns, groups, itself, ties, distances, metrics
CREATE TABLE obs AS
SELECT p.id, lat, lon, p.low, int4range(p.low, p.high, '[]') AS span, tstzrange('2026-01-01', timestamptz '2026-01-01' + p.high * interval '1 day') AS t,
    p.low % 3 AS zone, CASE WHEN p.id % 7 > 0 THEN p.high * 20000 END AS walks
FROM point p WHERE side = 'obs';
CREATE TABLE ref AS
SELECT p.id, lat, lon, int4range(p.low - 20, p.high, '[]') AS low, p.high AS span, timestamptz '2026-01-01' + p.low * interval '1 day' AS t,
    p.low % 3 AS zone, (ARRAY['NaN', '-1', '0', 'Infinity', '250000.5', NULL]::numeric[])[1 + p.id % 6] AS delivers
FROM point p WHERE side = 'ref' AND p.id % 6 <> 3
UNION ALL
SELECT p.id, lat, lon, int4range(p.low - 20, p.high, '[]'), p.high, timestamptz '2026-01-01' + p.low * interval '1 day', p.low % 3, 1e9
FROM point p WHERE side = 'ref' AND p.id % 6 = 3;
ALTER TABLE obs ADD PRIMARY KEY (id);
ALTER TABLE ref ADD PRIMARY KEY (id);
SELECT * FROM compare($$SELECT * FROM geonn_nearest('obs', 'ref', k => 4, overlaps => '{low,span,t}', row_type => NULL::found_row)$$,
    $$SELECT o.id, n.id, n.distance, n.rank FROM obs o CROSS JOIN LATERAL (
    SELECT r.id, d AS distance, row_number() OVER (ORDER BY d, r.id)::integer AS rank
    FROM ref r CROSS JOIN LATERAL geonn_distance(o.lat, o.lon, r.lat, r.lon) d
    WHERE r.low @> o.low AND o.span @> r.span AND o.t @> r.t ORDER BY d, r.id LIMIT 4) n$$);
SELECT * FROM compare($$SELECT * FROM geonn_nearest('obs', 'ref', ties => 'all', by => '{zone}', overlaps => '{low}', exclude_self => true,
    metric => 'spheroid', max_distance => 500000, row_type => NULL::found_row)$$,
    $$SELECT o.id, n.id, n.distance, n.rank FROM obs o CROSS JOIN LATERAL (
    SELECT r.id, d AS distance, row_number() OVER (ORDER BY d, r.id)::integer AS rank, rank() OVER (ORDER BY d) AS level
    FROM ref r CROSS JOIN LATERAL geonn_distance(o.lat, o.lon, r.lat, r.lon, 'spheroid') d
    WHERE r.low @> o.low AND o.zone = r.zone AND o.id <> r.id AND d <= 500000) n WHERE level = 1$$);
SELECT * FROM compare($$SELECT * FROM geonn_within('obs', 'ref', 400000, overlaps => '{t}', row_type => NULL::found_row)$$,
    $$SELECT o.id, r.id, d, row_number() OVER (PARTITION BY o.id ORDER BY d, r.id)::integer
    FROM obs o CROSS JOIN ref r CROSS JOIN LATERAL geonn_distance(o.lat, o.lon, r.lat, r.lon) d WHERE o.t @> r.t AND d <= 400000$$);
CREATE TYPE text_row AS (obs_id text, ref_id text, distance double precision, ref_lat double precision);
SELECT * FROM compare($$SELECT * FROM geonn_nearest_sql('SELECT ''o'' || id AS id, lat, lon, low FROM obs', 'SELECT ''r'' || id AS id, lat, lon, low FROM ref',
    k => 2, overlaps => '{low}', row_type => NULL::text_row)$$,
    $$SELECT 'o' || o.id, n.id, n.d, n.lat FROM obs o CROSS JOIN LATERAL (
    SELECT 'r' || r.id AS id, d, r.lat FROM ref r CROSS JOIN LATERAL geonn_distance(o.lat, o.lon, r.lat, r.lon) d
    WHERE r.low @> o.low ORDER BY d, 1 LIMIT 2) n$$);
SELECT * FROM compare($$SELECT * FROM geonn_within_sql('TABLE obs', 'TABLE ref', 300000, overlaps => '{low,span}', by => '{zone}', row_type => NULL::found_row)$$,
    $$SELECT o.id, r.id, d, row_number() OVER (PARTITION BY o.id ORDER BY d, r.id)::integer
    FROM obs o JOIN ref r USING (zone) CROSS JOIN LATERAL geonn_distance(o.lat, o.lon, r.lat, r.lon) d
    WHERE r.low @> o.low AND o.span @> r.span AND d <= 300000$$);

-- a table's windows are read by parallel workers, too
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SELECT * FROM compare($$SELECT * FROM geonn_nearest('obs', 'ref', overlaps => '{low}', row_type => NULL::found_row)$$,
    $$SELECT o.id, n.id, n.distance, 1 FROM obs o CROSS JOIN LATERAL (
    SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance FROM ref r
    WHERE r.low @> o.low ORDER BY distance, r.id LIMIT 1) n$$);
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;

-- a dataset that is kept is one of its columns
VACUUM obs, ref;
SELECT a.ref_id = b.ref_id AS both, count(*) FROM geonn_nearest('obs', 'ref', overlaps => '{low}') a
JOIN geonn_nearest('obs', 'ref', overlaps => '{t}') b USING (obs_id) GROUP BY 1 ORDER BY 1;
SELECT a.ref_id = b.ref_id AS both, count(*) FROM geonn_nearest('obs', 'ref', overlaps => '{low}') a
JOIN geonn_nearest('obs', 'ref', overlaps => '{t}') b USING (obs_id) GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM geonn_nearest('obs', 'ref', overlaps => NULL);
SELECT count(*) FROM geonn_nearest('obs', 'ref', overlaps => '{}');

-- ---- a radius of each row ----
CREATE FUNCTION least_radius(walks integer, delivers numeric) RETURNS double precision LANGUAGE sql AS
$$SELECT coalesce(least(walks, delivers::double precision), 'Infinity')$$;
SELECT * FROM compare($$SELECT * FROM geonn_nearest('obs', 'ref', k => 2, options => '{"obs_radius": "walks", "ref_radius": "delivers"}', row_type => NULL::found_row)$$,
    $$SELECT o.id, n.id, n.distance, n.rank FROM obs o CROSS JOIN LATERAL (
    SELECT r.id, d AS distance, row_number() OVER (ORDER BY d, r.id)::integer AS rank
    FROM ref r CROSS JOIN LATERAL geonn_distance(o.lat, o.lon, r.lat, r.lon) d
    WHERE d <= least_radius(o.walks, r.delivers) ORDER BY d, r.id LIMIT 2) n$$);
SELECT * FROM compare($$SELECT * FROM geonn_nearest('obs', 'ref', max_distance => 200000, options => '{"obs_radius": "walks"}', keep_unmatched => true, row_type => NULL::found_row)$$,
    $$SELECT o.id, n.id, n.distance, 1 FROM obs o LEFT JOIN LATERAL (
    SELECT r.id, d AS distance FROM ref r CROSS JOIN LATERAL geonn_distance(o.lat, o.lon, r.lat, r.lon) d
    WHERE d <= least(200000, o.walks) ORDER BY d, r.id LIMIT 1) n ON true$$);
SELECT * FROM compare($$SELECT * FROM geonn_within('obs', 'ref', NULL, overlaps => '{low}', options => '{"ref_radius": "delivers"}', row_type => NULL::found_row)$$,
    $$SELECT o.id, r.id, d, row_number() OVER (PARTITION BY o.id ORDER BY d, r.id)::integer
    FROM obs o CROSS JOIN ref r CROSS JOIN LATERAL geonn_distance(o.lat, o.lon, r.lat, r.lon) d
    WHERE r.low @> o.low AND d <= least_radius(NULL, r.delivers)$$);
SELECT * FROM compare($$SELECT * FROM geonn_within('obs', 'ref', 300000, metric => 'spheroid', options => '{"obs_radius": "walks", "ref_radius": "delivers", "algorithm": "brute"}', row_type => NULL::found_row)$$,
    $$SELECT o.id, r.id, d, row_number() OVER (PARTITION BY o.id ORDER BY d, r.id)::integer
    FROM obs o CROSS JOIN ref r CROSS JOIN LATERAL geonn_distance(o.lat, o.lon, r.lat, r.lon, 'spheroid') d
    WHERE d <= least(300000, least_radius(o.walks, r.delivers))$$);
SELECT ord, n.ref_id, round(distance) FROM geonn_nearest_points('{1,2}', '{3,4}', 'ref', k => 2, options => '{"ref_radius": "delivers"}') n;

-- ---- points of arrays, and of other rows ----
SELECT * FROM compare($$SELECT ord, ref_id, distance FROM geonn_nearest_points((SELECT array_agg(lat ORDER BY id) FROM obs), (SELECT array_agg(lon ORDER BY id) FROM obs),
    'ref', overlaps => '{low}', windows => (SELECT array_agg(span ORDER BY id) FROM obs), keep_unmatched => true)$$,
    $$SELECT o.id::bigint, n.id::bigint, n.distance FROM obs o LEFT JOIN LATERAL (
    SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance FROM ref r
    WHERE o.span && r.low ORDER BY distance, r.id LIMIT 1) n ON true$$);
SELECT * FROM compare($$SELECT o.id, n.ref_id, n.distance FROM obs o LEFT JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon],
    'ref', k => 2, overlaps => '{t}', windows => ARRAY[CASE WHEN o.id % 9 > 0 THEN o.t END]) n ON true$$,
    $$SELECT o.id, n.id::bigint, n.distance FROM obs o LEFT JOIN LATERAL (
    SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance FROM ref r
    WHERE o.t @> r.t AND o.id % 9 > 0 ORDER BY distance, r.id LIMIT 2) n ON true$$);
SELECT * FROM compare($$SELECT o.id, n.ref_id, n.distance FROM obs o CROSS JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon],
    'ref', overlaps => '{low}', windows => '{7}'::integer[]) n$$,
    $$SELECT o.id, n.id::bigint, n.distance FROM obs o CROSS JOIN LATERAL (
    SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance FROM ref r
    WHERE r.low @> 7 ORDER BY distance, r.id LIMIT 1) n$$);
EXPLAIN (COSTS OFF) SELECT o.id, n.ref_id FROM obs o LEFT JOIN LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon],
    'ref', k => 2, overlaps => '{t}', windows => ARRAY[o.t]) n ON true;
EXPLAIN (COSTS OFF) SELECT * FROM geonn_nearest('obs', 'ref', by => '{zone}', overlaps => '{low,span}', options => '{"obs_radius": "walks", "ref_radius": "delivers"}');
-- a join with the own observations reads them twice, and is right
SELECT count(*), sum(n.ref_id) FROM obs o JOIN geonn_nearest('obs', 'ref', overlaps => '{low}') n ON n.obs_id = o.id;
SELECT count(*), sum(n.ref_id) FROM geonn_nearest('obs', 'ref', overlaps => '{low}') n;

-- ---- errors ----
RESET client_min_messages;
CREATE VIEW odd AS SELECT id, lat, lon, 1.5 AS price, numrange(1, 2) AS prices, 'now'::text AS word, int4multirange(low) AS many,
    date '2026-01-01' AS t, low AS low, interval '1 day' AS span, bool(true) AS flag FROM ref;
CREATE FUNCTION later_first(integer, integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS later_first FOR TYPE integer USING btree AS
    OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 later_first(integer, integer);
CREATE TYPE backwards AS RANGE (subtype = integer, subtype_opclass = later_first);
CREATE VIEW reverse AS SELECT id, lat, lon, backwards(2, 1) AS low FROM ref;
SELECT * FROM geonn_nearest('odd', 'odd', overlaps => '{price}');
SELECT * FROM geonn_nearest('odd', 'odd', overlaps => '{prices}');
SELECT * FROM geonn_nearest('odd', 'odd', overlaps => '{word}');
SELECT * FROM geonn_nearest('odd', 'odd', overlaps => '{many}');
SELECT * FROM geonn_nearest('odd', 'odd', overlaps => '{span}');
SELECT * FROM geonn_nearest('odd', 'odd', overlaps => '{flag}');
CREATE TYPE time_span AS (first timestamptz, last timestamptz);
CREATE FUNCTION tstzrange(s time_span) RETURNS tstzrange IMMUTABLE LANGUAGE sql AS 'SELECT tstzrange(s.first, s.last)';
CREATE CAST (time_span AS tstzrange) WITH FUNCTION tstzrange(time_span);
CREATE VIEW spans AS SELECT id, lat, lon, (now(), now())::time_span AS t FROM ref;
SELECT * FROM geonn_nearest('odd', 'spans', overlaps => '{t}');
SELECT * FROM geonn_nearest('obs', 'reverse', overlaps => '{low}');
SELECT * FROM geonn_nearest('obs', 'odd', overlaps => '{t}');
SELECT * FROM geonn_nearest('odd', 'ref', overlaps => '{t}');
SELECT * FROM geonn_nearest('obs', 'ref', overlaps => '{low,nothing}');
SELECT * FROM geonn_nearest('obs', 'ref', overlaps => '{low,low}');
SELECT * FROM geonn_nearest('obs', 'ref', overlaps => '{low,NULL}');
SELECT * FROM geonn_nearest('obs', 'ref', overlaps => '{low,span,t,zone}');
SELECT * FROM geonn_nearest('obs', 'ref', options => '{"obs_radius": "nothing"}');
SELECT * FROM geonn_nearest('obs', 'ref', options => '{"ref_radius": "t"}');
SELECT * FROM geonn_nearest('obs', 'ref', options => '{"ref_radius": 5}');
SELECT * FROM geonn_within('obs', 'ref', NULL);
SELECT * FROM geonn_within_sql('TABLE obs', 'TABLE ref', NULL, overlaps => '{low}');
SELECT * FROM geonn_within('obs', 'ref', -1, options => '{"obs_radius": "walks"}');
SELECT * FROM geonn_nearest_points('{1}', '{1}', 'ref', overlaps => '{low}');
SELECT * FROM geonn_nearest_points('{1}', '{1}', 'ref', windows => '{1}'::integer[]);
SELECT * FROM geonn_nearest_points('{1}', '{1}', 'ref', overlaps => '{low,span}', windows => '{1}'::integer[]);
SELECT * FROM geonn_nearest_points('{1}', '{1}', 'ref', overlaps => '{low}', windows => '{1,2}'::integer[]);
SELECT * FROM geonn_nearest_points('{1}', '{1}', 'ref', overlaps => '{low}', windows => '{{1}}'::integer[]);
SELECT count(*) FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref', overlaps => '{low}', windows => '{{1}}'::integer[]) n;
SELECT * FROM geonn_nearest_points('{1}', '{1}', 'ref', overlaps => '{low}', windows => '{1}');
SELECT * FROM geonn_nearest_points('{1}', '{1}', 'ref', overlaps => '{low}', windows => '{1}'::float8[]);
SELECT * FROM geonn_nearest_points('{1}', '{1}', 'ref', options => '{"obs_radius": "walks"}');

-- ---- privileges ----
CREATE ROLE regress_geonn_overlaps;
GRANT USAGE ON SCHEMA overlapping TO regress_geonn_overlaps;
GRANT SELECT (id, lat, lon, low) ON obs, ref TO regress_geonn_overlaps;
SET ROLE regress_geonn_overlaps;
SELECT count(*) > 0 FROM geonn_nearest('obs', 'ref', overlaps => '{low}');
SELECT count(*) FROM geonn_nearest('obs', 'ref', overlaps => '{t}');
SELECT count(*) FROM geonn_nearest('obs', 'ref', options => '{"obs_radius": "walks"}');
SELECT count(*) FROM geonn_nearest('obs', 'ref', options => '{"ref_radius": "delivers"}');
RESET ROLE;
DROP OWNED BY regress_geonn_overlaps;
DROP ROLE regress_geonn_overlaps;
SET client_min_messages = warning;
DROP SCHEMA overlapping CASCADE;
