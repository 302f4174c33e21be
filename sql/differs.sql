-- differs: the nearest reference of another brand, owner or track
-- rooms: join engine/cpu/walk
-- check-all: compares with brute force for half a minute
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA differs;
SET search_path = differs, public;
SET extra_float_digits = 1;

-- an example: the nearest competitor, in the same country or in any
CREATE TABLE shop (id bigint PRIMARY KEY, brand text, country text, lat float8, lon float8);
INSERT INTO shop VALUES (1, 'red', 'CH', 47.56, 7.59), (2, 'red', 'CH', 47.57, 7.6), (3, 'blue', 'FR', 47.59, 7.56),
    (4, 'green', 'CH', 47.38, 8.54), (5, NULL, 'CH', 47.561, 7.591), (6, 'blue', NULL, 47.38, 8.5);
SELECT o.id, o.brand, r.id AS ref_id, r.brand AS other, round(n.distance) AS metres
FROM geonn_nearest('shop', 'shop', differs => '{brand}', keep_unmatched => true) n
JOIN shop o ON o.id = n.obs_id LEFT JOIN shop r ON r.id = n.ref_id ORDER BY 1;
SELECT obs_id, ref_id, round(distance) AS metres FROM geonn_nearest('shop', 'shop', by => '{country}', differs => '{brand}') ORDER BY 1;
SELECT obs_id, ref_id FROM geonn_within('shop', 'shop', 5000, differs => '{brand}') ORDER BY 1, 2;
SELECT obs_id, radius, count, sums FROM geonn_within_count('shop', 'shop', '{5000, 1e6}', '{id}', differs => '{brand}') ORDER BY 1, 2;

-- The definition: a reference is a candidate only if `o.column <> r.column` is true for each of the columns; the
-- other conditions are SQL on o and r, and the arguments the same in geonn's words.  Each function's rows: how many
-- they are, and how many are missing or wrong, for nearest, within and within_count.
CREATE FUNCTION compare(obs regclass, ref regclass, differs name[], k integer DEFAULT 1, radius float8 DEFAULT 'Infinity',
    condition text DEFAULT 'true', arguments text DEFAULT '', ties boolean DEFAULT false,
    keep_unmatched boolean DEFAULT false, metric text DEFAULT 'sphere', queries boolean DEFAULT false,
    OUT rows bigint, OUT nearest bigint, OUT within bigint, OUT counts bigint)
LANGUAGE plpgsql AS $$
DECLARE
    other text := (SELECT string_agg(format('o.%1$I <> r.%1$I', d), ' AND ') FROM unnest(differs) d);
    of text := CASE WHEN queries THEN '_sql(''TABLE ' || obs || ''', ''TABLE ' || ref || '''' ELSE '(''' || obs || ''', ''' || ref || '''' END;
BEGIN
    arguments := format('differs => %L, metric => %L%s', differs, metric, arguments);
    EXECUTE format($query$
        CREATE TEMP TABLE pair AS
        SELECT o.id AS obs_id, r.id AS ref_id, r.distance, r.w, row_number() OVER nearer AS rank, rank() OVER (PARTITION BY o.id ORDER BY distance) AS place
        FROM %1$s o JOIN LATERAL (SELECT *, geonn_distance(o.lat, o.lon, lat, lon, %3$L) AS distance FROM %2$s) r
            ON %4$s AND %5$s AND r.distance <= %6$L
        WINDOW nearer AS (PARTITION BY o.id ORDER BY distance, r.id);
        CREATE TEMP TABLE answer AS
        SELECT * FROM geonn_nearest%7$s, k => %8$s, max_distance => %6$L, ties => %9$L, keep_unmatched => %10$L, %11$s,
            row_type => NULL::record) n (obs_id bigint, ref_id bigint, distance float8, rank bigint);
        CREATE TEMP TABLE around AS SELECT * FROM geonn_within%7$s, %6$L, %11$s);
        CREATE TEMP TABLE counted AS SELECT * FROM geonn_within_count%7$s, ARRAY[%6$L, 1000]::float8[], '{w}', %11$s)
        $query$, obs, ref, metric, other, condition, radius, of, k, CASE WHEN ties THEN 'all' ELSE 'first' END, keep_unmatched, arguments);
    EXECUTE format($query$
        CREATE TEMP TABLE expected AS
        SELECT o.id AS obs_id, p.ref_id, p.distance, coalesce(p.rank, 1) AS rank
        FROM %1$s o %2$s JOIN pair p ON p.obs_id = o.id AND p.%3$s <= %4$s;
        CREATE TEMP TABLE sums AS
        SELECT o.id AS obs_id, radius, count(p.w), ARRAY[coalesce(sum(p.w), 0)::float8]
        FROM %1$s o CROSS JOIN unnest(ARRAY[%5$L, 1000]::float8[]) radius LEFT JOIN pair p ON p.obs_id = o.id AND p.distance <= radius
        GROUP BY 1, 2
        $query$, obs, CASE WHEN keep_unmatched THEN 'LEFT' END, CASE WHEN ties THEN 'place' ELSE 'rank' END, k, radius);
    rows := (SELECT count(*) FROM answer);
    nearest := (SELECT count(*) FROM ((TABLE answer EXCEPT ALL TABLE expected) UNION ALL (TABLE expected EXCEPT ALL TABLE answer)) x);
    within := (SELECT count(*) FROM (
        (TABLE around EXCEPT ALL SELECT obs_id, ref_id, distance FROM pair) UNION ALL
        (SELECT obs_id, ref_id, distance FROM pair EXCEPT ALL TABLE around)) x);
    counts := (SELECT count(*) FROM ((TABLE counted EXCEPT ALL TABLE sums) UNION ALL (TABLE sums EXCEPT ALL TABLE counted)) x);
    DROP TABLE pair, answer, around, counted, expected, sums;
END $$;

-- Places with brands that lie anywhere, owners that have a region each, and some of either that are not known.
CREATE TABLE place AS
SELECT i::bigint AS id, (i * 7919 % 5000) / 500.0 AS lat, 175 + (i * 104729 % 5000) / 500.0 AS lon,
       nullif(i * 31 % 11, 10) AS brand, CASE WHEN i % 17 > 0 THEN 'owner ' || (i * 7919 % 5000) / 1500 END AS owner,
       i % 7 AS w, i % 2 AS kind, CASE WHEN i % 5 > 0 THEN int4range(i % 9, i % 9 + 4) END AS open
FROM generate_series(1, 400) i;
UPDATE place SET lon = lon - 360 WHERE lon > 180;
-- many at one point, and at another one of the same brand all
INSERT INTO place SELECT 1000 + i, 5, 180, i % 3, 'owner ' || i % 2, i, i % 2, '[1,3)' FROM generate_series(1, 60) i;
INSERT INTO place SELECT 2000 + i, 6, 179, 4, 'owner 4', i, 0, '[1,3)' FROM generate_series(1, 100) i;
SELECT * FROM compare('place', 'place', '{brand}');
SELECT * FROM compare('place', 'place', '{owner}');
SELECT * FROM compare('place', 'place', '{brand,owner}', keep_unmatched => true);
SELECT * FROM compare('place', 'place', '{owner}', 5);
SELECT * FROM compare('place', 'place', '{brand}', 12, 200000);
SELECT * FROM compare('place', 'place', '{owner}', 3, 50000, ties => true, keep_unmatched => true);
SELECT * FROM compare('place', 'place', '{brand}', 2, 300000, metric => 'spheroid');
SELECT * FROM compare('place', 'place', '{owner,brand}', 40, 100000, metric => 'spheroid', ties => true);
SELECT * FROM compare('place', 'place', '{brand}', 300);
SELECT * FROM compare('place', 'place', '{owner}', 1024, 0);
SELECT * FROM compare('place', 'place', '{brand}', 3, 100000, arguments => ', options => ''{"algorithm": "brute"}''');
SELECT * FROM compare('place', 'place', '{brand,owner}', 3, 100000, arguments => ', options => ''{"batch_rows": 7}''');
SELECT * FROM compare('place', 'place', '{brand}', 3, 100000, 'o.id <> r.id AND o.kind = r.kind', ', by => ''{kind}'', exclude_self => true');
SELECT * FROM compare('place', 'place', '{kind}', 3, 100000, 'o.id <> r.id', ', exclude_self => true');
SELECT * FROM compare('place', 'place', '{brand}', 1, 100000, 'o.open && r.open', ', overlaps => ''{open}''');
SELECT * FROM compare('place', 'place', '{owner}', 4, 'Infinity', 'o.open && r.open AND o.kind = r.kind AND o.id <> r.id',
                      ', overlaps => ''{open}'', by => ''{kind}'', exclude_self => true', keep_unmatched => true);
SELECT * FROM compare('place', 'place', '{brand,owner}', 2, 200000, queries => true);
-- a value that no reference has differs from all; the id may differ, too
CREATE TABLE visitor AS SELECT id, lat, lon, brand + 7 AS brand, 'none'::text AS owner, w FROM place WHERE id % 3 = 0;
SELECT * FROM compare('visitor', 'place', '{brand}', 2);
SELECT * FROM compare('visitor', 'place', '{owner}', 2);
SELECT * FROM compare('place', 'visitor', '{id}', 2, 100000);
-- as many values as rows, and one alone
SELECT * FROM compare('place', 'place', '{lat}', 2, 100000);
CREATE VIEW same AS SELECT id, lat, lon, w, 7 AS one, NULL::integer AS none FROM place;
SELECT * FROM compare('same', 'same', '{one}', keep_unmatched => true);
SELECT * FROM compare('same', 'same', '{none}', keep_unmatched => true);
-- ids that PostgreSQL sorts
SELECT count(*) FROM (
    SELECT obs_id::text, ref_id::text, distance FROM geonn_nearest('place', 'place', by => '{kind}', differs => '{brand,owner}') EXCEPT ALL
    SELECT ltrim(obs_id), ltrim(ref_id), distance FROM geonn_nearest_sql('SELECT lpad(id::text, 5) AS id, lat, lon, kind, brand, owner FROM place',
        'SELECT lpad(id::text, 5) AS id, lat, lon, kind, brand, owner FROM place', by => '{kind}', differs => '{brand,owner}',
        row_type => NULL::geonn_pair_text)) x;

-- Equal values that are not the same bytes, and values that differ by their collation alone
CREATE FUNCTION compare_type(type text, value text, OUT nearest bigint, OUT within bigint, OUT counts bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE typed AS SELECT id, lat, lon, w, (%s)::%s AS value FROM place, LATERAL (SELECT id::integer AS i) i WHERE id <= 200', value, type);
    SELECT c.nearest, c.within, c.counts INTO nearest, within, counts FROM compare('typed', 'typed', '{value}', 3, 100000) c;
    DROP TABLE typed;
END $$;
SELECT t.*, c.* FROM (VALUES
    ('numeric', 'round(i % 3, i % 4)'),
    ('double precision', '(ARRAY[0, ''-0'', ''NaN'', 0.1])[i % 4 + 1]::float8'),
    ('character(8)', 'i % 5 || repeat('' '', i % 3)'),
    ('interval', '(ARRAY[''1 day'', ''24 hours'', ''1 month'', ''30 days''])[i % 4 + 1]::interval'),
    ('uuid', 'md5((i % 4)::text)::uuid'),
    ('money', '(i % 3)::numeric::money'),
    ('integer[]', 'ARRAY[i % 3, NULL]'),
    ('text', 'repeat(''long '', 3000) || i % 4')
    ) t (type, value), compare_type(t.type, t.value) c;

-- columns of two names
CREATE VIEW other AS SELECT id, lat, lon, brand AS maker, owner AS keeper FROM place;
SELECT count(*) FROM (
    SELECT * FROM geonn_nearest('place', 'place', differs => '{brand,owner}') EXCEPT
    SELECT * FROM geonn_nearest('place', 'other', differs => '{brand=maker,owner=keeper}')) n;
EXPLAIN (COSTS OFF) SELECT * FROM geonn_nearest('place', 'other', by => '{id}', differs => '{brand=maker}') WHERE obs_id < 5;
SELECT count(*) FROM geonn_nearest('place', 'place', differs => '{}');
SELECT count(*) FROM geonn_nearest('place', 'place', differs => NULL);

-- below a Gather, with conditions on observations, and of kept references
ANALYZE place;
SELECT count(*), sum(ref_id), count(DISTINCT obs_id) FROM geonn_nearest('place', 'place', 2, differs => '{brand}') WHERE obs_id BETWEEN 10 AND 90;
SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
SELECT count(*), sum(ref_id), count(DISTINCT obs_id) FROM geonn_nearest('place', 'place', 2, differs => '{brand}') WHERE obs_id BETWEEN 10 AND 90;
SELECT count(*), sum(count) FROM geonn_within_count('place', 'place', '{100000}', differs => '{brand}');
RESET min_parallel_table_scan_size; RESET parallel_setup_cost; RESET parallel_tuple_cost;
SELECT count(*), sum(p.id) FROM shop s JOIN LATERAL (
    SELECT ref_id AS id FROM geonn_nearest_sql(format('SELECT %s AS id, %s AS lat, %s AS lon, %L::text AS brand', s.id, s.lat, s.lon, s.brand),
        'TABLE shop', 2, differs => '{brand}')) p ON true;

-- Caches follow what changes: a brand, a place, a row that comes or goes; by mode auto and full.
SELECT geonn_cache_create('rival', 'place', 'place', 3, differs => '{brand}');
SELECT geonn_cache_create('rivals', 'place', 'place', radius => 60000, by => '{kind}', differs => '{owner}');
CREATE FUNCTION differences(OUT rival bigint, OUT rivals bigint) LANGUAGE sql AS $$
    SELECT (SELECT count(*) FROM (SELECT obs_id, ref_id, distance, rank FROM rival EXCEPT ALL
                SELECT * FROM geonn_nearest('place', 'place', 3, differs => '{brand}', row_type => NULL::record)
                    n (obs_id bigint, ref_id bigint, distance float8, rank integer)) x) +
           abs((SELECT count(*) FROM rival) - (SELECT count(*) FROM geonn_nearest('place', 'place', 3, differs => '{brand}'))),
           (SELECT count(*) FROM (SELECT obs_id, ref_id, distance FROM rivals EXCEPT ALL
                SELECT * FROM geonn_within('place', 'place', 60000, by => '{kind}', differs => '{owner}')) x) +
           abs((SELECT count(*) FROM rivals) - (SELECT count(*) FROM geonn_within('place', 'place', 60000, by => '{kind}', differs => '{owner}')))
$$;
CALL geonn_refresh('rival');
CALL geonn_refresh('rivals');
SELECT * FROM differences();
UPDATE place SET brand = coalesce(brand, 3) % 4 WHERE id IN (7, 10, 77, 150, 1003);
UPDATE place SET owner = 'owner 1' WHERE id IN (8, 17, 34, 200);
UPDATE place SET owner = NULL, brand = NULL WHERE id IN (9, 99);
UPDATE place SET lat = 3 WHERE id IN (33, 66);
DELETE FROM place WHERE id IN (50, 51);
INSERT INTO place VALUES (3000, 4.5, 179.5, 5, 'owner 2', 1, 1), (3001, 4.6, 179.5, 6, 'owner 9', 1, 0);
SELECT (differences()).rival > 0 AS rival, (differences()).rivals > 0 AS rivals;
CALL geonn_refresh('rival');
CALL geonn_refresh('rivals');
SELECT name, mode FROM geonn_caches ORDER BY 1;
SELECT * FROM differences();
SELECT geonn_cache_alter('rival', '{"differs": ["owner"]}');
CALL geonn_refresh('rival');
SELECT count(*) FROM (SELECT obs_id, ref_id, distance FROM rival EXCEPT ALL SELECT * FROM geonn_nearest('place', 'place', 3, differs => '{owner}')) x;
SELECT geonn_cache_drop('rival'), geonn_cache_drop('rivals');

-- what cannot be
SELECT * FROM geonn_nearest('place', 'place', differs => '{nothing}');
SELECT * FROM geonn_nearest('place', 'other', differs => '{brand}');
SELECT * FROM geonn_nearest('place', 'place', differs => '{brand,owner,kind}');
SELECT * FROM geonn_nearest('place', 'place', differs => '{brand,brand}');
SELECT * FROM geonn_nearest('place', 'place', differs => '{brand,NULL}');
SELECT * FROM geonn_nearest('place', 'other', differs => '{brand=keeper}');
SELECT * FROM geonn_within('place', 'place', 1, differs => '{ctid}');
ALTER TABLE place ADD c json;
SELECT * FROM geonn_within_count('place', 'place', '{1}', differs => '{c}');
\set VERBOSITY sqlstate
SELECT * FROM geonn_nearest_points('{1}', '{1}', 'place', differs => '{brand}');
\set VERBOSITY default

SET client_min_messages = warning;
DROP SCHEMA differs CASCADE;
