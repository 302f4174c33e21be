-- geonn_within_count(): how many references are within radii, the exact sums of their weights, and the least and greatest of them
-- rooms: join engine/cpu/counts
-- check-all: compares with PostgreSQL's own sums for two minutes
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA counts;
SET search_path = counts, public;
SET extra_float_digits = 1;

-- an example
CREATE TABLE home (id bigint PRIMARY KEY, name text, lat float8, lon float8);
CREATE TABLE shop (id integer PRIMARY KEY, lat float8, lon float8, chairs integer, size float8);
INSERT INTO home VALUES (1, 'town', 52.52, 13.405), (2, 'village', 52.6, 13.2), (3, 'island', -18, 178);
INSERT INTO shop VALUES (10, 52.521, 13.406, 20, 80.5), (11, 52.53, 13.41, NULL, 120.25),
    (12, 52.55, 13.35, 4, NULL), (13, 52.59, 13.21, 1, 35.125);
SELECT h.name, c.radius, c.count, c.sums
FROM geonn_within_count('home', 'shop', '{20000, 500, 5000}', '{chairs, size}') c
JOIN home h ON h.id = c.obs_id ORDER BY h.id, c.radius;
SELECT * FROM geonn_within_count('home', 'shop', '{5000}') ORDER BY 1;

-- The exact value of a float8, as numeric: SQL's cast has 15 digits.
CREATE TABLE power_of_two (exponent integer PRIMARY KEY, value numeric);
INSERT INTO power_of_two
WITH RECURSIVE up AS (SELECT 0 AS e, 1::numeric AS v UNION ALL SELECT e + 1, v * 2 FROM up WHERE e < 1100),
     down AS (SELECT 0 AS e, 1::numeric AS v UNION ALL SELECT e - 1, v * 0.5 FROM down WHERE e > -1100)
SELECT * FROM up UNION SELECT * FROM down;
CREATE FUNCTION exact(value float8) RETURNS numeric STRICT LANGUAGE plpgsql AS $$
DECLARE
    bits bit(64) := ('x' || encode(float8send(value), 'hex'))::bit(64);
    biased integer := substring(bits FROM 2 FOR 11)::bit(11)::integer;
    whole numeric := substring(bits FROM 13 FOR 52)::bit(52)::bigint;
BEGIN
    IF biased > 0 THEN
        whole := whole + 4503599627370496;
    END IF;
    RETURN CASE WHEN value < 0 THEN -whole ELSE whole END *
        (SELECT p.value FROM power_of_two p WHERE p.exponent = greatest(biased, 1) - 1075);
END $$;
SELECT exact(1.5), exact(-0.1), exact(5e-324) = (SELECT value FROM power_of_two WHERE exponent = -1074),
       exact(1.7976931348623157e308)::text LIKE '1797693134862315708%' AS largest;

-- The definition: for each valid observation and radius, the count, the exact sums, rounded once, and the least and
-- greatest weights.  Returns how many rows geonn_within_count, or a sibling, has, how many it lacks and how many it
-- has too many, and the greatest count.
CREATE FUNCTION compare(obs regclass, ref regclass, radii float8[], arguments text DEFAULT '',
    metric text DEFAULT 'sphere', condition text DEFAULT 'true', sibling text DEFAULT '',
    OUT rows bigint, OUT missing bigint, OUT wrong bigint, OUT most bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($query$
        CREATE TEMP TABLE expected AS
        WITH reference AS MATERIALIZED (SELECT *, exact(w) AS exact_w FROM %2$s)
        SELECT o.id AS obs_id, radius, s.count, ARRAY[s.w, s.n] AS sums, s.mins, s.maxs, s.mins[1] AS min, s.maxs[1] AS max
        FROM %1$s o CROSS JOIN unnest(%3$L::float8[]) radius CROSS JOIN LATERAL (
            SELECT count(*), coalesce(sum(r.exact_w), 0)::float8 AS w, coalesce(sum(r.n), 0)::float8 AS n,
                   ARRAY[min(r.w), min(r.n)]::float8[] AS mins, ARRAY[max(r.w), max(r.n)]::float8[] AS maxs
            FROM (SELECT *, CASE WHEN lat BETWEEN -90 AND 90 AND lon BETWEEN -180 AND 360
                                 THEN geonn_distance(o.lat, o.lon, lat, lon, %4$L) END AS distance
                  FROM reference) r
            WHERE r.distance <= radius AND r.id IS NOT NULL AND %6$s) s
        WHERE o.lat BETWEEN -90 AND 90 AND o.lon BETWEEN -180 AND 360 AND o.id IS NOT NULL;
        CREATE TEMP TABLE found AS
        SELECT * FROM geonn_within_count%7$s, %3$L, '{w, n}', metric => %4$L %5$s, row_type => NULL::record)
            AS t(%8$s bigint, radius float8, count bigint, sums float8[], mins float8[], maxs float8[], min float8, max float8)
        $query$, obs, ref, radii, metric, arguments, condition,
        CASE sibling WHEN '' THEN format('(%L, %L', obs, ref)
        WHEN 'sql' THEN format('_sql(%L, %L', 'TABLE ' || obs, 'TABLE ' || ref)
        ELSE format('_points((SELECT array_agg(lat ORDER BY id) FROM %1$s), (SELECT array_agg(lon ORDER BY id) FROM %1$s), %2$L', obs, ref)
        END, CASE sibling WHEN 'points' THEN 'ord' ELSE 'obs_id' END);
    SELECT count(*), max(count) INTO rows, most FROM found;
    SELECT count(*) INTO missing FROM (TABLE expected EXCEPT ALL TABLE found) x;
    SELECT count(*) INTO wrong FROM (TABLE found EXCEPT ALL TABLE expected) x;
    DROP TABLE expected, found;
END $$;

-- from nothing through a few to all, for points that span the poles and the antimeridian (twice: 181 is -179)
-- and are far from evenly spread; weights of all sizes and both signs
CREATE TABLE obs AS
SELECT row_number() OVER () AS id, lat::float8, lon::float8, row_number() OVER () % 3 AS kind
FROM generate_series(-90, 90, 30) lat, generate_series(-180, 360, 90) lon;
INSERT INTO obs SELECT 1000 + i, 52 + i / 35.0, 13 - i / 20.0, i % 4 FROM generate_series(1, 10) i;
CREATE TABLE ref AS
SELECT row_number() OVER (ORDER BY md5(lat || ',' || lon))::integer AS id, lat::float8, lon::float8
FROM generate_series(-90, 90, 30) lat, generate_series(-180, 360, 45) lon;
INSERT INTO ref SELECT 1000 + i, 52 + i / 500.0, 13 - i / 250.0 FROM generate_series(1, 300) i;
INSERT INTO ref SELECT 2000 + i, 52.1, 12.8 FROM generate_series(1, 100) i;
ALTER TABLE ref ADD n integer, ADD w float8, ADD kind bigint;
UPDATE ref SET kind = id % 3, n = CASE WHEN id % 7 > 0 THEN id * 7919 % 100000 - 50000 END,
    w = CASE id % 9 WHEN 0 THEN NULL WHEN 1 THEN 1e300 WHEN 2 THEN -1e300 WHEN 3 THEN 1e-300 WHEN 4 THEN -5e-324
        WHEN 5 THEN 0.1 * id WHEN 6 THEN -1e16 WHEN 7 THEN 1 ELSE id / 3.0 END;
SELECT * FROM compare('obs', 'ref', '{0, 1e-9, 10, 20000, 500000, 1.2e6, 5e6, 1e7, 2e7, 20015114, 20015200, Infinity}');
SELECT * FROM compare('obs', 'ref', '{0, 10, 20000, 1.2e6, 1e7, 1.99e7, Infinity}', metric => 'spheroid');
SELECT * FROM compare('obs', 'ref', '{3e6, 20000}', ', options => ''{"batch_rows": 1}''');
SELECT * FROM compare('obs', 'ref', '{3e6, 20000}', ', options => ''{"batch_rows": 7, "algorithm": "brute"}''');

-- the radius itself is within, what is one unit in the last place less is not: each observation's
-- distances to some references as radii
SELECT count(*), sum(c.count) = sum(e.within) AS same
FROM (SELECT o.id, array_agg(DISTINCT d) AS radii
      FROM obs o, ref r, LATERAL geonn_distance(o.lat, o.lon, r.lat, r.lon) d
      WHERE r.id % 40 = 3 AND o.id % 3 = 1 GROUP BY o.id) o,
     LATERAL (SELECT array_agg(x) AS pair
              FROM (SELECT unnest(radii[1:8]) AS x UNION SELECT r - 1e-16 * r FROM unnest(radii[1:8]) r) y) b,
     LATERAL geonn_within_count_sql(format('SELECT * FROM obs WHERE id = %s', o.id), 'TABLE ref', pair) c,
     LATERAL (SELECT count(*) AS within FROM ref r JOIN obs p ON p.id = o.id
              WHERE geonn_distance(p.lat, p.lon, r.lat, r.lon) <= c.radius) e;

-- groups, others than oneself, and rows that are no points
SELECT * FROM compare('obs', 'ref', '{1e6, 9e6}', ', by => ''{kind}''', condition => 'o.kind = r.kind');
SELECT * FROM compare('ref', 'ref', '{0, 2000, 9e6}', ', exclude_self => true', condition => 'o.id <> r.id');
SELECT * FROM compare('ref', 'ref', '{2000, 9e6}', ', exclude_self => true, by => ''{kind}''', 'spheroid',
                      'o.id <> r.id AND o.kind = r.kind');
-- many references of one id, more than are near, or fewer
CREATE TABLE fleet AS
SELECT (i % 3)::bigint AS id, 50 + (i * 7919 % 1000) / 100.0 AS lat, 5 + (i / 40 * 104729 % 1000) / 100.0 AS lon, i * 0.1 AS w, i AS n, i % 2 AS kind,
       int4range(i % 7, i % 7 + 3) AS open
FROM generate_series(1, 900) i;
SELECT * FROM compare('fleet', 'fleet', '{0, 10000, 60000, 3e5}', ', exclude_self => true', condition => 'o.id <> r.id');
SELECT * FROM compare('fleet', 'fleet', '{10000, 100000}', ', exclude_self => true, by => ''{kind}''', 'spheroid', 'o.id <> r.id AND o.kind = r.kind');
SELECT * FROM compare('fleet', 'fleet', '{10000, 100000}', ', exclude_self => true, overlaps => ''{open}''', condition => 'o.id <> r.id AND o.open && r.open');
-- references with other ids, which come sorted, and weights of other types
SELECT count(*), count(*) FILTER (WHERE t.count = b.count AND t.sums[1:3] = ARRAY[b.sums[1], b.sums[1], b.sums[1]]
                                  AND t.sums[4] = b.count::float8 / 4) AS same
FROM geonn_within_count_sql('SELECT id::text AS id, lat, lon FROM ref',
                            'SELECT id::text AS id, lat, lon, n::bigint AS a, n::numeric AS b, n::real AS c, 0.25 AS d FROM ref',
                            '{2000, 9e6}', '{a, b, c, d}', exclude_self => true, row_type => NULL::geonn_within_row_text) t
JOIN geonn_within_count('ref', 'ref', '{2000, 9e6}', '{n}', exclude_self => true) b
    ON b.obs_id::text = t.obs_id AND b.radius = t.radius;
CREATE TABLE junk AS
SELECT CASE WHEN i % 31 > 0 THEN i % 150 END::bigint AS id,
       CASE WHEN i % 17 > 0 THEN (i * 7919 % 1000) / 100.0 END::float8 AS lat,
       CASE WHEN i % 19 = 0 THEN 'NaN' WHEN i % 23 = 0 THEN 400 WHEN i % 29 > 0
       THEN (i * 104729 % 1000) / 100.0 END::float8 AS lon,
       CASE WHEN i % 19 = 0 THEN 'NaN' ELSE i / 7.0 END::float8 AS w, i AS n,
       CASE WHEN i % 11 > 0 THEN i % 4 END AS kind, tsrange('2026-01-01', '2026-01-01'::timestamp + i * interval '1 hour') AS open,
       CASE WHEN i % 13 > 0 THEN i * 1000.0 END AS reach
FROM generate_series(1, 400) i;
SET client_min_messages = error;
SELECT * FROM compare('junk', 'junk', '{100000, 500000}');
SELECT * FROM compare('junk', 'junk', '{100000, 500000}', ', by => ''{kind}''', condition => 'o.kind = r.kind');
SELECT * FROM compare('junk', 'junk', '{100000, 500000}', ', overlaps => ''{open}''', condition => 'o.open && r.open');
SELECT * FROM compare('junk', 'junk', '{100000, 500000}', ', overlaps => ''{open}'', by => ''{kind}'', exclude_self => true',
                      condition => 'o.open && r.open AND o.kind = r.kind AND o.id <> r.id');
SELECT * FROM compare('junk', 'junk', '{100000, 500000}', ', options => ''{"obs_radius": "reach"}''',
    condition => 'r.distance <= coalesce(o.reach, ''Infinity'')');
SELECT * FROM compare('junk', 'junk', '{100000, 500000}', ', exclude_self => true, options => ''{"ref_radius": "reach", "obs_radius": "reach"}''',
    condition => 'o.id <> r.id AND r.distance <= least(coalesce(o.reach, ''Infinity''), coalesce(r.reach, ''Infinity''))');
RESET client_min_messages;
SELECT count(*) FROM geonn_within_count('junk', 'junk', '{1}', invalid => 'error');

-- Random cases.  PGOPTIONS='-c counts.cases=2000' makes more of them.
CREATE UNLOGGED TABLE o (id bigint, lat float8, lon float8, kind integer, open int4range, reach float8);
CREATE UNLOGGED TABLE r (LIKE o, w float8, n integer);
CREATE FUNCTION pick(VARIADIC choices text[]) RETURNS text LANGUAGE sql AS $$
    SELECT choices[1 + floor(random() * cardinality(choices))::integer]
$$;
CREATE FUNCTION random_points(target regclass, rows integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    spread float8 := pick('0', '1e-7', '0.01', '3', '90');
BEGIN
    EXECUTE format($query$
        INSERT INTO %1$s (id, lat, lon, kind, open, reach)
        SELECT ceil(random() * %2$s * 1.3),
               least(90, greatest(-90, pick('90', '-90', '0', '52.5', '-33.25', '33.25')::float8 + %3$s * (random() - 0.5))),
               least(360, greatest(-180, pick('180', '-180', '0', '13.5', '193.5', '360')::float8 + %3$s * (random() - 0.5))),
               pick(NULL, '1', '2', '2', '3')::integer,
               pick(NULL, 'empty', '[1,5)', '(4,9]', '[5,5]', '(,7)', '[8,)', '[3,4)')::int4range,
               pick(NULL, NULL, '0', '-1', 'Infinity', '10000', '9e6')::float8
        FROM generate_series(1, %2$s)
        $query$, target, rows, spread);
END $$;
CREATE FUNCTION random_case(number integer, OUT description text, OUT differences bigint) LANGUAGE plpgsql AS $$
DECLARE
    radii float8[];
    arguments text := '';
    condition text := 'true';
    options jsonb := '{}';
    metric text := pick('sphere', 'sphere', 'sphere', 'spheroid');
    sibling text := pick('', '', 'sql', 'points');
    size text := pick('1', '0.1', '1e300', '1e-300', '5e-324', '123456789.25', '1e15');
BEGIN
    TRUNCATE o, r;
    PERFORM random_points('o', 1 + floor(random() * 20)::integer), random_points('r', ceil(random() * 60)::integer),
            random_points('r', pick('0', '1', '40', '200')::integer);
    UPDATE r SET n = pick(NULL, '1', '-7', '2147483647')::integer,
                 w = pick(NULL, size, '-' || size, '0', '1', '-0.1')::float8 * pick('1', '1', '3', '0.7')::float8;
    SELECT array_agg(radius) INTO radii
    FROM (SELECT geonn_distance(o.lat, o.lon, r.lat, r.lon, metric) AS radius
          FROM o, r ORDER BY random() LIMIT ceil(random() * 4)) d;
    radii := radii || pick('{}', '{0}', '{Infinity}', '{1234567.5}', '{20015114.3, 1e-5}')::float8[];
    SELECT array_agg(DISTINCT x) INTO radii FROM unnest(coalesce(nullif(radii, '{}'), '{100}')) x;
    IF sibling = 'points' THEN
        UPDATE o SET id = n.number FROM (SELECT ctid AS row, row_number() OVER () AS number FROM o) n WHERE o.ctid = n.row;
    END IF;
    IF random() < 0.3 AND sibling <> 'points' THEN
        arguments := arguments || ', by => ''{kind}''';
        condition := condition || ' AND o.kind = r.kind';
    END IF;
    IF random() < 0.2 AND sibling <> 'points' THEN
        arguments := arguments || ', differs => ''{kind, reach}''';
        condition := condition || ' AND o.kind <> r.kind AND o.reach <> r.reach';
    ELSIF random() < 0.2 AND sibling <> 'points' THEN
        arguments := arguments || ', differs => ''{reach}''';
        condition := condition || ' AND o.reach <> r.reach';
    END IF;
    IF random() < 0.25 THEN
        arguments := arguments || ', overlaps => ''{open}''';
        condition := condition || ' AND o.open && r.open';
        IF sibling = 'points' THEN
            arguments := arguments || ', windows => (SELECT array_agg(open ORDER BY id) FROM o)';
        END IF;
    END IF;
    IF random() < 0.3 AND sibling <> 'points' THEN
        arguments := arguments || ', exclude_self => true';
        condition := condition || ' AND o.id <> r.id';
    END IF;
    IF random() < 0.2 AND sibling <> 'points' THEN
        options := options || '{"obs_radius": "reach"}';
        condition := condition || ' AND r.distance <= coalesce(o.reach, ''Infinity'')';
    END IF;
    IF random() < 0.2 THEN
        options := options || '{"ref_radius": "reach"}';
        condition := condition || ' AND r.distance <= coalesce(r.reach, ''Infinity'')';
    END IF;
    IF random() < 0.4 THEN
        options := options || jsonb_build_object('batch_rows', pick('1', '3', '100000')::integer);
    END IF;
    arguments := arguments || format(', options => %L', options);
    SELECT c.missing + c.wrong INTO differences
    FROM compare('o', 'r', radii, arguments, metric, condition, sibling) c;
    description := format('case %s: %s %s, %s%s', number, sibling, radii, metric, arguments);
END $$;
SET client_min_messages = error;
SELECT setseed(0.625);
SELECT c.* FROM generate_series(1, coalesce(current_setting('counts.cases', true), '40')::integer) number, random_case(number) c
WHERE c.differences > 0;
RESET client_min_messages;

-- 100,000 references at one point
CREATE TABLE crowd AS
SELECT i AS id, 48.2::float8 AS lat, 16.4::float8 AS lon, i AS n, i * 0.1 AS w FROM generate_series(1, 100000) i;
SELECT radius, count, sums FROM geonn_within_count_points('{48.2, 48.3}', '{16.4, 16.4}', 'crowd', '{0, 20000}', '{n, w}');
SELECT sum(exact(w::float8))::float8 FROM crowd;
SELECT count(*), sum(c.count), min(c.sums[1]), max(c.sums[1])
FROM geonn_within_count('crowd', 'crowd', '{0}', '{n}', exclude_self => true) c;
SELECT min, max, count(*), sum(obs_id) FROM geonn_within_count('crowd', 'crowd', '{0}', '{n}', exclude_self => true,
    row_type => NULL::record) AS t(obs_id bigint, min float8, max float8) GROUP BY 1, 2 ORDER BY 1, 2;

-- nothing on one side
CREATE TABLE nothing (id bigint, lat float8, lon float8, n integer);
SELECT * FROM geonn_within_count('home', 'nothing', '{1e7, 1}', '{n}') ORDER BY 1, 2;
SELECT * FROM geonn_within_count('nothing', 'home', '{1e7}');

-- points, queries, other ids, and other columns
SELECT * FROM geonn_within_count_points('{52.52, NULL, 95}', '{13.405, 1, 1}', 'shop', '{500, 5000}', '{chairs}');
SELECT * FROM geonn_within_count_sql('SELECT name AS id, lat, lon FROM home', 'SELECT *, 2 * chairs AS twice FROM shop',
    '{5000}', '{twice}', row_type => NULL::geonn_within_row_text) ORDER BY 1;
SELECT * FROM geonn_within_count('home', 'shop', '{5000}', '{size, chairs}', row_type => NULL::record)
    AS t(obs_lat float8, count integer, obs_id bigint, sum float8, radius float8) ORDER BY 1;
SELECT * FROM geonn_within_count('home', 'shop', '{5000}', row_type => NULL::record) AS t(count bigint, sum float8, sums float8[]) ORDER BY 1;
-- the least and the greatest: of several weights, of the first one, of none, and where no reference or no weight is near
SELECT h.name, c.* FROM geonn_within_count('home', 'shop', '{20000, 500, 5000}', '{chairs, size}', row_type => NULL::record)
    AS c(obs_id bigint, radius float8, count bigint, min float8, mins float8[], maxs float8[], sums float8[])
JOIN home h ON h.id = c.obs_id ORDER BY h.id, c.radius;
SELECT * FROM geonn_within_count('home', 'shop', '{5000}', row_type => NULL::record) AS t(count bigint, min float8, maxs float8[]) ORDER BY 1;
SELECT * FROM geonn_within_count('home', 'nothing', '{1}', '{n}', row_type => NULL::record) AS t(obs_id bigint, sum float8, max float8, mins float8[]) ORDER BY 1;
SELECT * FROM geonn_within_count_sql('SELECT 1 AS id, 0.0 AS lat, 0.0 AS lon',
    'SELECT i AS id, 0.0 AS lat, 0.0 AS lon, w FROM unnest(''{-0, 0, NULL}''::float8[]) WITH ORDINALITY u(w, i)', '{1}', '{w}',
    row_type => NULL::record) AS t(count bigint, min float8, max float8);
SELECT * FROM geonn_within_count('home', 'shop', '{1}', '{chairs}', row_type => NULL::record) AS t(min integer);
SELECT * FROM geonn_within('home', 'shop', 1, row_type => NULL::record) AS t(min float8);
SELECT h.name, c.count FROM home h, LATERAL geonn_within_count_points(ARRAY[h.lat], ARRAY[h.lon], 'shop', '{5000}') c ORDER BY 1;
SELECT h.name, c.count FROM home h JOIN geonn_within_count('home', 'shop', '{5000}') c ON c.obs_id = h.id WHERE h.id = 2;

-- plans
ANALYZE home, shop;
EXPLAIN (COSTS OFF) SELECT obs_id, count FROM geonn_within_count('home', 'shop', '{5000}') WHERE obs_id < 3;
CREATE FUNCTION expected_rows(query text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;
SELECT expected_rows($$SELECT FROM geonn_within_count('home', 'shop', '{5000, 1}')$$),
       expected_rows($$SELECT FROM geonn_within_count_points('{1, 2}', '{1, 2}', 'shop', '{5000, 1, 8}')$$);
SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
CREATE TABLE many AS SELECT i AS id, (i % 170 - 85)::float8 AS lat, (i % 359 - 180)::float8 AS lon, i AS n FROM generate_series(1, 20000) i;
ANALYZE many;
EXPLAIN (COSTS OFF) SELECT sum(count) FROM geonn_within_count('many', 'many', '{200000, 1e6}', '{n}');
SELECT radius, sum(count), sum(sums[1]) FROM geonn_within_count('many', 'many', '{200000, 1e6}', '{n}') GROUP BY 1 ORDER BY 1;
SELECT radius, sum(min), sum(max) FROM geonn_within_count('many', 'many', '{200000, 1e6}', '{n}', exclude_self => true,
    row_type => NULL::record) AS t(radius float8, min float8, max float8) GROUP BY 1 ORDER BY 1;
SELECT count(*), sum(count) FROM geonn_within_count('many', 'nothing', '{200000, 1e6}', '{n}');
SET max_parallel_workers_per_gather = 0;
SELECT radius, sum(count), sum(sums[1]) FROM geonn_within_count('many', 'many', '{200000, 1e6}', '{n}') GROUP BY 1 ORDER BY 1;
SELECT radius, sum(min), sum(max) FROM geonn_within_count('many', 'many', '{200000, 1e6}', '{n}', exclude_self => true,
    row_type => NULL::record) AS t(radius float8, min float8, max float8) GROUP BY 1 ORDER BY 1;

-- the privilege to read a weight
CREATE ROLE regress_counts;
GRANT USAGE ON SCHEMA counts TO regress_counts;
GRANT SELECT (id, lat, lon, chairs) ON shop TO regress_counts;
SET ROLE regress_counts;
SELECT sum(count), sum(sums[1]) FROM geonn_within_count('shop', 'shop', '{5000}', '{chairs}');
SELECT sum(count), sum(sums[1]) FROM geonn_within_count('shop', 'shop', '{5000}', '{size}');
RESET ROLE;
DROP OWNED BY regress_counts;
DROP ROLE regress_counts;

-- sums beyond all numbers, and weights that are none
SELECT sums FROM geonn_within_count_sql('SELECT 1 AS id, 0.0 AS lat, 0.0 AS lon',
    'SELECT i AS id, 0.0 AS lat, 0.0 AS lon, 1.7e308 * s AS w FROM unnest(''{1, 1, -1}''::int[]) WITH ORDINALITY u(s, i)', '{1}', '{w}');
SELECT sums FROM geonn_within_count_sql('SELECT 1 AS id, 0.0 AS lat, 0.0 AS lon',
    'SELECT i AS id, 0.0 AS lat, 0.0 AS lon, 1.7e308 AS w FROM generate_series(1, 2) i', '{1}', '{w}');
UPDATE shop SET size = 'Infinity' WHERE id = 12;
SELECT * FROM geonn_within_count('home', 'shop', '{1}', '{size}');
-- the error names the row, and the weight as the row has it, also where double precision does not hold it
CREATE DOMAIN tonnes AS numeric;
CREATE TABLE heap (id text, lat float8, lon float8, w tonnes);
INSERT INTO heap VALUES ('light', 0, 0, 1), ('heavy', 0, 0, 1e400), (NULL, 0, 0, 'NaN');
SELECT * FROM geonn_within_count('home', 'heap', '{1}', '{w}');
SELECT * FROM geonn_within_count_sql('TABLE home', 'SELECT id, lat, lon, -w AS w FROM heap', '{1}', '{w}');
SELECT * FROM geonn_within_count_points('{1}', '{1}', 'heap', '{1}', '{w}');
UPDATE heap SET w = 'NaN' WHERE id = 'heavy';
SELECT * FROM geonn_within_count('home', 'heap', '{1}', '{w}');
-- of a row that is no candidate, no weight is read
UPDATE heap SET lat = 95 WHERE id = 'heavy';
SELECT count(*) FROM geonn_within_count('home', 'heap', '{1}', '{w}');

-- arguments that are none
SELECT * FROM geonn_within_count('home', 'shop', NULL);
SELECT * FROM geonn_within_count('home', 'shop', '{}');
SELECT * FROM geonn_within_count('home', 'shop', '{1, NULL}');
SELECT * FROM geonn_within_count('home', 'shop', '{-1}');
SELECT * FROM geonn_within_count('home', 'shop', '{1, 2, 1}');
SELECT * FROM geonn_within_count('home', 'shop', (SELECT array_agg(i::float8) FROM generate_series(1, 17) i));
SELECT * FROM geonn_within_count('home', 'shop', '{1}', '{beds}');
SELECT * FROM geonn_within_count('home', 'home', '{1}', '{name}');
SELECT * FROM geonn_within_count('home', 'shop', '{1}', '{lat, lon, id, chairs, size}');
SELECT * FROM geonn_within_count('home', 'shop', '{1}', row_type => NULL::geonn_pair);
SELECT * FROM geonn_within_count('home', 'shop', '{1}', row_type => NULL::geonn_within_row_text);
SELECT * FROM geonn_nearest('home', 'shop', row_type => NULL::geonn_within_row);
SELECT geonn_within_count('home', 'shop', '{1}', row_type => 1);

SET client_min_messages = warning;
DROP SCHEMA counts CASCADE;
