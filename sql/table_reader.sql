-- plain tables are read page by page: whatever their rows look like, they are those
-- that a scan of PostgreSQL's own gives
-- rooms: points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
CREATE SCHEMA table_reader;
SET search_path = table_reader, public;

-- Reads the table by its pages, alone and in parallel: with keep_unmatched every row comes
-- back as it was read.  The executor reads the same ones for a query with OFFSET 0, also
-- as references.
CREATE FUNCTION compare(name regclass, id text DEFAULT 'id', OUT rows bigint, OUT missing bigint, OUT wrong bigint,
    OUT parallel_differs bigint, OUT references_differ bigint)
LANGUAGE plpgsql AS $$
DECLARE
    type text := (SELECT 'of_' || typname FROM pg_attribute JOIN pg_type t ON t.oid = atttypid WHERE attrelid = name AND attname = id);
    options jsonb := jsonb_build_object('obs_id', id, 'ref_id', id);
    call text := format('geonn_nearest(%L, %L, keep_unmatched => true, options => %L, row_type => NULL::table_reader.%I)',
                        name, name, options, type);
    query text := format('SELECT %I AS id, lat, lon FROM %s OFFSET 0', id, name);
BEGIN
    EXECUTE format('CREATE TEMP TABLE expected AS SELECT id, lat::float8, lon::float8 FROM (%s) t', query);
    EXECUTE format('CREATE TEMP TABLE found AS SELECT obs_id, obs_lat, obs_lon FROM %s', call);
    PERFORM set_config('max_parallel_workers_per_gather', '2', true);
    EXECUTE format('CREATE TEMP TABLE in_parallel AS SELECT obs_id, obs_lat, obs_lon FROM %s', call);
    PERFORM set_config('max_parallel_workers_per_gather', '0', true);
    SELECT count(*) INTO rows FROM found;
    SELECT count(*) INTO missing FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM found) x;
    SELECT count(*) INTO wrong FROM (SELECT * FROM found EXCEPT ALL SELECT * FROM expected) x;
    SELECT count(*) INTO parallel_differs FROM (
        (SELECT * FROM found EXCEPT ALL SELECT * FROM in_parallel) UNION ALL
        (SELECT * FROM in_parallel EXCEPT ALL SELECT * FROM found)) x;
    EXECUTE format('SELECT count(*) FROM (SELECT * FROM %s EXCEPT ALL '
                   'SELECT * FROM geonn_nearest_sql(%L, %L, keep_unmatched => true, row_type => NULL::table_reader.%I)) x',
                   call, query, query, type) INTO references_differ;
    DROP TABLE expected, found, in_parallel;
END $$;
DO $$
DECLARE
    type text;
BEGIN
    FOREACH type IN ARRAY ARRAY['int2', 'int4', 'int8', 'text', 'uuid', 'name', 'numeric', 'timestamptz'] LOOP
        EXECUTE format('CREATE TYPE %I AS (obs_id %s, ref_id %s, distance float8, obs_lat float8, obs_lon float8, ref_lat float8, ref_lon float8)',
                       'of_' || type, type, type);
    END LOOP;
END $$;
CREATE TYPE of_mixed AS (obs_id text, ref_id int4, distance float8);
CREATE FUNCTION lat(i integer) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT (i * 7919 % 1800) / 10.0 - 90';
CREATE FUNCTION lon(i integer) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT (i * 10473 % 3600) / 10.0 - 180';
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 0;

-- columns of a fixed length, in any order, aligned in any way
CREATE UNLOGGED TABLE fixed (flag boolean, lon float8, small int2, letter "char", lat float8, id int4, code uuid, key name, moment timestamptz, big int8, "day" date);
INSERT INTO fixed SELECT i % 2 = 0, lon(i), i % 100, chr(65 + i % 26)::"char", lat(i), i, md5(i::text)::uuid, 'key ' || i,
    'epoch'::timestamptz + i * interval '1 hour', i * 10000000000, 'epoch'::date + i
FROM generate_series(1, 2000) i;
SELECT id, c.* FROM unnest('{id,small,code,key,moment,big}'::text[]) id, compare('fixed', id) c;

-- NULLs before, among and after what is read; the bitmap's bytes end before, at and
-- behind the last column
CREATE TABLE nulls (a int4, b text, id int4, c int2, d int8, e int2, lat float8, lon float8, f int4, g text);
INSERT INTO nulls SELECT nullif(i % 2, 0), CASE i % 3 WHEN 1 THEN 'b' END, nullif(i, 77), nullif(i % 5, 0), nullif(i % 7, 0), nullif(i % 11, 0),
    CASE WHEN i % 13 > 0 THEN lat(i) END, CASE WHEN i % 17 > 0 THEN lon(i) END, nullif(i % 19, 0), CASE WHEN i % 23 > 0 THEN 'g' END
FROM generate_series(1, 2000) i;
INSERT INTO nulls SELECT FROM generate_series(1, 3);
SELECT * FROM compare('nulls');
CREATE TABLE eight (a int4, b int4, c int4, d int4, e int4, id int4, lat float8, lon float8);
INSERT INTO eight SELECT i, i, i, i, i, i, lat(i), lon(i) FROM generate_series(1, 300) i;
INSERT INTO eight SELECT i, i, i, i, NULL, i, lat(i), lon(i) FROM generate_series(1, 300) i;
INSERT INTO eight SELECT i, i, i, i, i, i, lat(i), NULL FROM generate_series(1, 300) i;
SELECT * FROM compare('eight');
CREATE TABLE nine (a int4, b int4, c int4, d int4, e int4, f int4, id int4, lat float8, lon float8);
INSERT INTO nine SELECT i, i, i, i, i, i, i, lat(i), lon(i) FROM generate_series(1, 300) i;
INSERT INTO nine SELECT i, i, i, i, i, i, i, lat(i), NULL FROM generate_series(1, 300) i;
INSERT INTO nine SELECT NULL, i, i, i, i, i, i, lat(i), lon(i) FROM generate_series(1, 300) i;
SELECT * FROM compare('nine');

-- pages with no such row, with one as the first, the last or in the middle, and with several;
-- NULLs of one page are none of the next
SET client_min_messages = error;
CREATE TABLE pages (id int8, lat float8, before int4, lon float8, after text);
INSERT INTO pages SELECT nullif(i, 4000), CASE WHEN i NOT IN (1, 900, 901, 2500, 6000) THEN lat(i) END, nullif(i % 1500, 7),
    CASE WHEN i NOT IN (901, 3000, 5999) THEN lon(i) END, CASE WHEN i < 5000 THEN 'after' END
FROM generate_series(1, 6000) i;
INSERT INTO pages SELECT i, CASE i % 400 WHEN 1 THEN 91 WHEN 2 THEN 'NaN' ELSE lat(i) END, i, CASE i % 400 WHEN 2 THEN 1 WHEN 399 THEN -181 ELSE lon(i) END
FROM generate_series(6001, 9000) i;
DELETE FROM pages WHERE id % 997 BETWEEN 100 AND 160;
DELETE FROM pages USING (SELECT ctid AS first, (ctid::text::point)[0] AS page FROM pages WHERE id = 2500) f
WHERE (ctid::text::point)[0] = page AND ctid < first;
DELETE FROM pages USING (SELECT ctid AS last, (ctid::text::point)[0] AS page FROM pages WHERE id = 3000) l
WHERE (ctid::text::point)[0] = page AND ctid > last;
SELECT * FROM compare('pages');
ALTER TABLE pages ADD added int4 DEFAULT 3, DROP before;
SELECT id, c.* FROM unnest('{id,added}'::text[]) id, compare('pages', id) c;
INSERT INTO pages SELECT i, lat(i), lon(i), 'after', i FROM generate_series(9001, 11000) i;
SELECT id, c.* FROM unnest('{id,added}'::text[]) id, compare('pages', id) c;
SET client_min_messages = warning;

-- values of any length before them: short ones are not aligned
CREATE TABLE texts (before text, id int4, lat float8, after text, lon float8, last text);
INSERT INTO texts SELECT repeat('x', i % 150), i, lat(i), repeat('y', i % 7), lon(i), 'z' FROM generate_series(1, 1000) i;
SELECT * FROM compare('texts');
SELECT * FROM compare('texts', 'before');
CREATE TABLE text_at_offset (small int2, id text, lat float8, lon float8);
INSERT INTO text_at_offset SELECT i % 10, repeat('id ', i % 60) || i, lat(i), lon(i) FROM generate_series(1, 1000) i;
SELECT * FROM compare('text_at_offset');
CREATE TABLE text_first (id text, lat float8, lon float8);
INSERT INTO text_first SELECT small, lat, lon FROM text_at_offset;
SELECT * FROM compare('text_first');
CREATE TABLE text_last (lat float8, lon float8, id text);
INSERT INTO text_last SELECT lat, lon, id FROM text_at_offset;
SELECT * FROM compare('text_last');
CREATE TABLE text_unaligned (lat float8, lon float8, small int2, id text);
INSERT INTO text_unaligned SELECT lat, lon, small, id FROM text_at_offset;
SELECT * FROM compare('text_unaligned');


-- composite values and domains before them, and domains as what is read
CREATE TYPE composite AS (a int2, b text);
CREATE DOMAIN degrees AS float8 CHECK (VALUE < 1000);
CREATE DOMAIN number AS int4;
CREATE TABLE composite_before (before composite, id int4, lat float8, lon float8);
INSERT INTO composite_before SELECT ROW(i, repeat('b', i % 9))::composite, i, lat(i), lon(i) FROM generate_series(1, 500) i;
SELECT * FROM compare('composite_before');
CREATE TABLE domains (small int2, lat degrees, other number, lon degrees, id number);
INSERT INTO domains SELECT i % 100, lat(i), i, lon(i), -i FROM generate_series(1, 500) i;
SELECT count(*), count(*) FILTER (WHERE obs_lat = lat(-obs_id) AND obs_lon = lon(-obs_id)) AS as_written
FROM geonn_nearest('domains', 'fixed', row_type => NULL::of_int4);
CREATE TABLE narrow (flag boolean, lat float4, id int2, lon int2, exact numeric);
INSERT INTO narrow SELECT true, lat(i), i, lon(i), i FROM generate_series(1, 500) i;
SELECT * FROM compare('narrow');

-- long values: compressed, in the TOAST table, also as ids
CREATE TABLE toasted (id text, lat float8, lon float8, much text);
ALTER TABLE toasted ALTER much SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT CASE i % 3 WHEN 0 THEN i::text WHEN 1 THEN repeat(i::text, 3000) ELSE (SELECT string_agg(md5(i * 1000 + j || ''), '') FROM generate_series(1, 100) j) END,
    lat(i), lon(i), repeat('much', 1000)
FROM generate_series(1, 60) i;
SELECT * FROM compare('toasted');
-- what is not asked for is not fetched
BEGIN;
CREATE FUNCTION fetched() RETURNS bigint LANGUAGE sql AS
    $$SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_xact_all_tables WHERE relid = (SELECT reltoastrelid FROM pg_class WHERE oid = 'toasted'::regclass)$$;
SELECT fetched() AS before \gset
SELECT count(*), count(distance) FROM geonn_nearest('toasted', 'fixed', row_type => NULL::of_mixed);
SELECT fetched() - :before AS fetched;
SELECT count(*), sum(length(obs_id)) FROM geonn_nearest('toasted', 'fixed', row_type => NULL::of_mixed);
SELECT fetched() - :before AS fetched;
ROLLBACK;

-- columns that were dropped, added, given defaults and other types
CREATE TABLE altered (gone int4, lat float8, gone_text text, id int4, also_gone int8, lon float8);
INSERT INTO altered SELECT i, lat(i), 'gone', i, i, lon(i) FROM generate_series(1, 500) i;
ALTER TABLE altered DROP gone, DROP also_gone;
INSERT INTO altered SELECT lat(i), 'gone', i, lon(i) FROM generate_series(501, 600) i;
SELECT * FROM compare('altered');
ALTER TABLE altered DROP gone_text, ADD after int4 DEFAULT 7, DROP lon, ADD lon float8 DEFAULT 12.5;
INSERT INTO altered SELECT lat(i), i, i, lon(i) FROM generate_series(601, 700) i;
INSERT INTO altered SELECT lat(i), i, NULL, NULL FROM generate_series(701, 720) i;
SELECT * FROM compare('altered');
ALTER TABLE altered ADD name text NOT NULL DEFAULT 'each has this', ADD code uuid DEFAULT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11';
INSERT INTO altered SELECT lat(i), i, NULL, lon(i), 'name ' || i, md5(i::text)::uuid FROM generate_series(721, 740) i;
SELECT id, c.* FROM unnest('{id,name,code,after}'::text[]) id, compare('altered', id) c;
UPDATE altered SET after = 8 WHERE id % 3 = 0;
SELECT id, c.* FROM unnest('{id,name,code,after}'::text[]) id, compare('altered', id) c;
ALTER TABLE altered ALTER lat TYPE real, ALTER lon TYPE numeric(6, 2), ALTER id TYPE numeric;
SELECT * FROM compare('altered');
ALTER TABLE altered DROP lat, ADD lat float8 GENERATED ALWAYS AS (id / 100) STORED;
SELECT * FROM compare('altered');
CREATE TABLE added (id int4, lat float8);
INSERT INTO added SELECT i, lat(i) FROM generate_series(1, 200) i;
ALTER TABLE added ADD lon float8 DEFAULT 12.5, ADD code int8 DEFAULT 7;
INSERT INTO added SELECT i, lat(i), lon(i), i FROM generate_series(201, 400) i;
SELECT id, c.* FROM unnest('{id,code}'::text[]) id, compare('added', id) c;

-- two hundred columns
DO $$ BEGIN
    EXECUTE format('CREATE TABLE wide (%s, id int8, %s, lat float8, lon float8, %s)',
        (SELECT string_agg(format('a%s int4', i), ', ') FROM generate_series(1, 60) i),
        (SELECT string_agg(format('b%s int2', i), ', ') FROM generate_series(1, 60) i),
        (SELECT string_agg(format('c%s text', i), ', ') FROM generate_series(1, 77) i));
END $$;
INSERT INTO wide (a1, a60, id, b7, lat, lon, c1, c77) SELECT i, i, i, i, lat(i), lon(i), 'first', 'last' FROM generate_series(1, 400) i;
DO $$ BEGIN
    EXECUTE format('INSERT INTO wide SELECT %s, i, %s, lat(i), lon(i), ''text'' FROM generate_series(1, 200) i',
        (SELECT string_agg('i', ', ') FROM generate_series(1, 60)), (SELECT string_agg('i', ', ') FROM generate_series(1, 60)));
END $$;
SELECT id, c.* FROM unnest('{id,a60,c1,c77,b1}'::text[]) id, compare('wide', id) c;

-- dead, updated, locked and uncommitted rows
CREATE TABLE changing (id int4 PRIMARY KEY, lat float8, lon float8, note text) WITH (fillfactor = 60, autovacuum_enabled = off);
SELECT * FROM compare('changing');
INSERT INTO changing SELECT i, lat(i), lon(i) FROM generate_series(1, 1500) i;
UPDATE changing SET note = 'updated in its page' WHERE id % 4 = 0;
UPDATE changing SET lat = -lat, id = id + 5000 WHERE id % 5 = 0;
DELETE FROM changing WHERE id % 7 = 0 OR id BETWEEN 300 AND 600;
SELECT * FROM compare('changing');
BEGIN;
INSERT INTO changing SELECT i, lat(i), lon(i) FROM generate_series(9001, 9100) i;
SAVEPOINT undone;
DELETE FROM changing WHERE id % 2 = 0;
INSERT INTO changing SELECT i, lat(i), lon(i) FROM generate_series(9201, 9300) i;
SELECT * FROM compare('changing');
ROLLBACK TO undone;
SELECT id FROM changing ORDER BY id LIMIT 1 FOR UPDATE;
SELECT * FROM compare('changing');
ROLLBACK;
SELECT * FROM compare('changing');
VACUUM (FREEZE) changing;
SELECT * FROM compare('changing');
DELETE FROM changing;
SELECT * FROM compare('changing');

-- partitions, each with its own order of columns; children; a materialized view
CREATE TABLE parts (id int4, lat float8, lon float8, kind text) PARTITION BY LIST (kind);
CREATE TABLE part_a (kind text, gone int4, lon float8, id int4, lat float8);
ALTER TABLE part_a DROP gone;
ALTER TABLE parts ATTACH PARTITION part_a FOR VALUES IN ('a');
CREATE TABLE part_b PARTITION OF parts FOR VALUES IN ('b') PARTITION BY RANGE (id);
CREATE TABLE part_b_1 PARTITION OF part_b FOR VALUES FROM (0) TO (500);
CREATE TABLE part_b_2 (lon float8, lat float8, extra_gone text, kind text, id int4);
ALTER TABLE part_b_2 DROP extra_gone;
ALTER TABLE part_b ATTACH PARTITION part_b_2 FOR VALUES FROM (500) TO (100000);
CREATE TABLE part_empty PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT i, lat(i), lon(i), CASE i % 2 WHEN 0 THEN 'a' ELSE 'b' END FROM generate_series(1, 1500) i;
SELECT * FROM compare('parts');
SELECT * FROM compare('part_b');
ALTER TABLE parts ADD code int8 DEFAULT 42;
INSERT INTO parts SELECT i, lat(i), lon(i), 'c', i FROM generate_series(1501, 1600) i;
SELECT * FROM compare('parts', 'code');
CREATE TABLE no_parts (id int4, lat float8, lon float8) PARTITION BY HASH (id);
SELECT * FROM compare('no_parts');
CREATE TABLE parent (lon float8, id int4, lat float8);
CREATE TABLE child (extra text, kind int2) INHERITS (parent);
CREATE TABLE other (lat float8, name text, id int4, lon float8);
ALTER TABLE other INHERIT parent;
INSERT INTO parent SELECT lon(i), i, lat(i) FROM generate_series(1, 300) i;
INSERT INTO child SELECT lon(i), i, lat(i), 'extra' FROM generate_series(301, 600) i;
INSERT INTO other SELECT lat(i), 'name', i, lon(i) FROM generate_series(601, 900) i;
SELECT * FROM compare('parent');
SELECT * FROM compare('other');
CREATE MATERIALIZED VIEW kept AS SELECT lat, id, lon FROM parent WHERE id % 2 = 0;
SELECT * FROM compare('kept');
CREATE TEMP TABLE temporary AS SELECT id, kind, lat, lon FROM parts;
SELECT * FROM compare('temporary');

-- statistics count each row once
CREATE FUNCTION read(relation regclass, OUT scans bigint, OUT rows bigint) LANGUAGE sql AS
    'SELECT seq_scan, seq_tup_read FROM pg_stat_xact_user_tables WHERE relid = relation';
BEGIN;
SELECT * FROM read('fixed') \gset before_
SELECT count(*) FROM fixed;
SELECT scans - :before_scans AS scans, rows - :before_rows AS rows FROM read('fixed');
SELECT count(*) FROM geonn_nearest('fixed', 'kept', k => 3, row_type => NULL::of_int4);
SELECT scans - :before_scans AS scans, rows - :before_rows AS rows FROM read('fixed');
SELECT count(*) FROM geonn_nearest('kept', 'fixed', row_type => NULL::of_int4);
SELECT scans - :before_scans AS scans, rows - :before_rows AS rows FROM read('fixed');
COMMIT;

DROP SCHEMA table_reader CASCADE;
