-- ids of any type that has an order, and the columns that a row_type may have
-- rooms: join points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA ids;
SET search_path = ids, public;

-- The definition: for each observation the first references in the order
-- (distance, id, latitude, longitude).  The row_type has the tables' own types,
-- and rows are compared as they print, so ids come back as they are stored.
CREATE FUNCTION compare(obs regclass, ref regclass, k integer DEFAULT 3,
    exclude_self boolean DEFAULT false,
    OUT rows bigint, OUT missing bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
DECLARE
    id_types text[] := ARRAY(
        SELECT format_type(a.atttypid, a.atttypmod)
        FROM unnest(ARRAY[obs, ref]) WITH ORDINALITY side (relation, number)
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = 'id' ORDER BY number);
BEGIN
    EXECUTE format('CREATE TYPE pair AS (obs_id %s, ref_id %s, distance double precision, rank integer)',
        id_types[1], id_types[2]);
    EXECUTE format($query$
        CREATE TEMP TABLE expected AS
        SELECT (o.id, r.id, r.distance, r.rank)::pair AS pair
        FROM %1$s o CROSS JOIN LATERAL (
            SELECT r.id, r.distance,
                row_number() OVER (ORDER BY r.distance, r.id, r.lat, r.lon)::integer AS rank
            FROM (SELECT *, geonn_distance(o.lat, o.lon, lat, lon) AS distance FROM %2$s) r
            WHERE r.id IS DISTINCT FROM NULL %3$s
            ORDER BY rank LIMIT %4$s) r
        WHERE o.id IS DISTINCT FROM NULL
        $query$, obs, ref, CASE WHEN exclude_self THEN 'AND r.id <> o.id' END, k);
    EXECUTE format($query$
        CREATE TEMP TABLE found AS SELECT n::pair AS pair
        FROM geonn_nearest(%L, %L, k => %s, exclude_self => %L, row_type => NULL::pair) n
        $query$, obs, ref, k, exclude_self);
    SELECT count(*) INTO rows FROM found;
    SELECT count(*) INTO missing FROM (
        SELECT pair::text FROM expected EXCEPT ALL SELECT pair::text FROM found) x;
    SELECT count(*) INTO wrong FROM (
        SELECT pair::text FROM found EXCEPT ALL SELECT pair::text FROM expected) x;
    DROP TABLE expected, found;
    DROP TYPE pair;
END $$;

-- Tables with ids of a type, by an expression of the row's number i: one in
-- ten is NULL.  Distances on a grid are equal in many places.
CREATE TABLE whole AS
SELECT row_number() OVER (ORDER BY md5(lat || ' ' || lon))::integer AS i, lat, lon
FROM generate_series(0, 4) lat, generate_series(0, 5) lon;
CREATE TABLE half AS
SELECT row_number() OVER (ORDER BY md5(lat || ' ' || lon))::integer AS i, lat, lon
FROM generate_series(0, 4, 0.5) lat, generate_series(0, 5, 0.5) lon;
CREATE FUNCTION make(type text, id text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TEMP TABLE ref (id %s, lat integer, lon integer)', type);
    EXECUTE format('CREATE TEMP TABLE obs (id %s, lat float8, lon float8)', type);
    EXECUTE format('INSERT INTO ref SELECT CASE WHEN i %% 10 > 0 THEN %s END, lat, lon FROM whole', id);
    EXECUTE format('INSERT INTO obs SELECT CASE WHEN i %% 10 > 0 THEN %s END, lat, lon FROM half', id);
END $$;
-- and how many rows differ between geonn and the definition, with them
CREATE FUNCTION compare_type(type text, id text, OUT rows bigint, OUT differing bigint,
    OUT rows_without_self bigint, OUT differing_without_self bigint)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM make(type, id);
    SELECT c.rows, missing + wrong INTO rows, differing FROM compare('obs', 'ref') c;
    SELECT c.rows, missing + wrong INTO rows_without_self, differing_without_self
    FROM compare('ref', 'ref', 4, true) c;
    DROP TABLE ref, obs;
END $$;

CREATE TYPE size AS ENUM ('small', 'medium', 'large', 'huge');
ALTER TYPE size ADD VALUE 'tiny' BEFORE 'small';
CREATE DOMAIN number AS bigint CHECK (VALUE > 0);
CREATE DOMAIN code AS text CHECK (length(VALUE) < 9);
CREATE DOMAIN short_code AS code COLLATE "C" CHECK (length(VALUE) < 5);
CREATE TYPE two_parts AS (a text, b integer);
SET client_min_messages = warning;
SELECT t.*, c.* FROM (VALUES
    ('smallint', '-i'),
    ('integer', 'i % 7'),
    ('bigint', 'i * 1000000000000'),
    ('numeric', 'round(i / 4, i % 3)'),
    ('numeric', 'CASE i % 3 WHEN 0 THEN ''NaN'' WHEN 1 THEN -1e300 ELSE i END'),
    ('numeric(8,2)', 'i / 4.0'),
    ('double precision', '(ARRAY[''NaN'', ''-0'', ''0'', ''Infinity'', ''-Infinity'', ''1e-300''])[i % 6 + 1]::float8'),
    ('real', 'i / 7.0'),
    ('uuid', 'md5(i::text)::uuid'),
    ('text', 'CASE WHEN i % 2 = 0 THEN upper(md5(i::text)) ELSE md5(i::text) END'),
    ('text COLLATE "C"', 'CASE WHEN i % 2 = 0 THEN upper(md5(i::text)) ELSE md5(i::text) END'),
    ('text COLLATE "POSIX"', 'repeat('' '', i % 3) || chr(97 + i % 5)'),
    ('varchar', 'chr(35 + i % 90)'),
    ('varchar(5)', 'left(md5(i::text), 1 + i % 5)'),
    ('character(4)', 'left(md5(i::text), i % 4)'),
    ('name', 'md5(i::text)'),
    ('"char"', 'chr(35 + i % 90)'),
    ('bytea', 'decode(left(md5(i::text), 2 * (i % 3)), ''hex'')'),
    ('boolean', 'i % 2 = 0'),
    ('date', 'CASE WHEN i < 3 THEN ''infinity'' ELSE date ''2000-01-15'' - i * 40 END'),
    ('time', 'time ''12:00'' + i * interval ''7 min'''),
    ('time with time zone', '(''12:00+'' || i % 12)::timetz'),
    ('timestamp(0)', 'timestamp ''2020-01-01'' - i * interval ''0.4 s'''),
    ('timestamp with time zone', '(''2020-06-01 12:00+'' || i % 12)::timestamptz'),
    ('interval', '(ARRAY[''1 day'', ''24 hours'', ''1 month'', ''30 days'', ''-1 s''])[i % 5 + 1]::interval'),
    ('size', '(enum_range(NULL::size))[i % 5 + 1]'),
    ('number', 'i'),
    ('code', 'left(md5(i::text), 3)'),
    ('short_code', 'upper(left(md5(i::text), 3))'),
    ('text[]', 'ARRAY[left(md5(i::text), 1), NULL, i::text]'),
    ('bigint[]', 'CASE WHEN i % 4 > 0 THEN ARRAY[i % 4, -i] ELSE ''{}'' END'),
    ('inet', '(''10.'' || i % 3 || ''.0.1/'' || 8 + i % 9)::inet'),
    ('cidr', '(''10.'' || i || ''.0.0/16'')::cidr'),
    ('macaddr', 'left(md5(i::text), 12)::macaddr'),
    ('bit varying', 'i::bit(6)'),
    ('int4range', 'int4range(i % 5, i)'),
    ('jsonb', 'jsonb_build_object(''a'', i)'),
    ('oid', 'i'),
    ('pg_lsn', 'pg_lsn ''0/0'' + i'),
    ('two_parts', '(CASE WHEN i % 2 = 0 THEN ''x'' END, i)::two_parts')
    ) t (type, id), compare_type(t.type, t.id) c;
RESET client_min_messages;

-- the order of ids among equal distances, in the collation of their column
CREATE TABLE pole (id integer, lat float8, lon float8);
INSERT INTO pole VALUES (1, 90, 0);
CREATE TABLE bytewise (id text COLLATE "C", lat float8, lon float8);
INSERT INTO bytewise SELECT id, 80, 10 FROM unnest(ARRAY['b', 'B', 'a', 'A', '']) id;
SELECT string_agg(quote_literal(ref_id), ' ' ORDER BY rank)
FROM geonn_nearest('pole', 'bytewise', k => 5, row_type => NULL::record)
    AS n (ref_id text, rank integer);
CREATE TABLE sizes (id size, lat float8, lon float8);
INSERT INTO sizes SELECT s, 80, 10 FROM unnest(enum_range(NULL::size)) s ORDER BY s::text;
SELECT string_agg(ref_id::text, ' ' ORDER BY rank)
FROM geonn_nearest('pole', 'sizes', k => 5, row_type => NULL::record)
    AS n (ref_id size, rank integer);

-- A collation that takes 'a' for 'A', where this PostgreSQL has such ones.
-- Where it has not, it is one more that compares bytes; answers are those of the
-- definition with either.
SET client_min_messages = warning;
DO $$
BEGIN
    CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported THEN
    CREATE COLLATION folded FROM "C";
END $$;
SELECT differing, differing_without_self
FROM compare_type('text COLLATE folded',
    'CASE WHEN i % 2 = 0 THEN ''A'' ELSE ''a'' END || i % 5') c;
RESET client_min_messages;

-- equal ids that print differently: latitude, then longitude decides, and each
-- comes back as it is stored
CREATE TABLE equal_ids (id numeric, lat float8, lon float8);
INSERT INTO equal_ids VALUES (1.0, 0, 10), (1.00, 0, -10), (1, -10, 0), (1.000, 10, 0), (2, 9, 0),
    (0.99, 0, 10);
CREATE TABLE middle (id integer, lat float8, lon float8);
INSERT INTO middle VALUES (1, 0, 0);
SELECT * FROM geonn_nearest('middle', 'equal_ids', k => 9, row_type => NULL::record)
    AS n (ref_id numeric, distance float8, ref_lat float8, ref_lon float8, rank bigint)
ORDER BY rank;
SELECT obs_id, ref_id FROM geonn_nearest('equal_ids', 'equal_ids', row_type => NULL::record)
    AS n (obs_id numeric, ref_id numeric) ORDER BY obs_id, obs_id::text;

-- the same with integers, which travel in another way; and references that are
-- alike in everything
CREATE TABLE equal_integers (id integer, lat float8, lon float8);
INSERT INTO equal_integers VALUES (1, 2, 3), (1, 2, 1), (1, 3, 2), (1, 1, 2), (1, 2, 3);
CREATE VIEW half_ids AS SELECT i AS id, lat, lon FROM half;
SELECT * FROM compare('half_ids', 'equal_integers');
SELECT * FROM compare('equal_integers', 'half_ids');

-- different types on the two sides; exclude_self compares them, where their
-- types have an order in common
CREATE FUNCTION compare_types(obs_type text, ref_type text, id text, OUT rows bigint,
    OUT differing bigint, OUT rows_without_self bigint, OUT differing_without_self bigint)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM make(obs_type, id);
    ALTER TABLE obs RENAME TO other;
    DROP TABLE ref;
    PERFORM make(ref_type, id);
    SELECT c.rows, missing + wrong INTO rows, differing FROM compare('other', 'ref') c;
    SELECT c.rows, missing + wrong INTO rows_without_self, differing_without_self
    FROM compare('other', 'ref', 3, true) c;
    DROP TABLE other, obs, ref;
END $$;
SET client_min_messages = warning;
SELECT t.*, c.* FROM (VALUES
    ('smallint', 'integer', 'i'), ('integer', 'smallint', 'i % 9'), ('bigint', 'integer', 'i'),
    ('number', 'smallint', 'i'),
    ('real', 'double precision', 'i / 4.0'), ('text', 'varchar(9)', 'md5(i::text)::varchar(9)'),
    ('code', 'text', 'chr(35 + i % 90)'), ('name', 'text', 'chr(70 + i % 30)'),
    ('date', 'timestamp', 'date ''2000-01-01'' + i'), ('cidr', 'inet', '(''10.'' || i || ''.0.0/16'')::cidr')
    ) t (obs_type, ref_type, id), compare_types(t.obs_type, t.ref_type, t.id) c;
RESET client_min_messages;
CREATE TABLE by_uuid (id uuid, lat float8, lon float8);
CREATE TABLE by_text (id text, lat float8, lon float8);
CREATE TABLE by_integers (id integer[], lat float8, lon float8);
CREATE TABLE by_texts (id text[], lat float8, lon float8);
INSERT INTO by_uuid VALUES ('00000000-0000-4000-8000-000000000001', 1, 1);
INSERT INTO by_text VALUES ('00000000-0000-4000-8000-000000000001', 1, 2);
SELECT * FROM geonn_nearest('by_uuid', 'by_text', row_type => NULL::record)
    AS n (obs_id uuid, ref_id text, distance float8);
SELECT * FROM geonn_nearest('by_uuid', 'by_text', exclude_self => true, row_type => NULL::record)
    AS n (obs_id uuid, ref_id text, distance float8);
SELECT * FROM geonn_nearest('by_integers', 'by_texts', exclude_self => true,
    row_type => NULL::record) AS n (obs_id integer[], ref_id text[]);

-- more ids than fit a batch, on either side
CREATE TABLE many (id text PRIMARY KEY, lat float8, lon float8);
INSERT INTO many
SELECT 'ping ' || i * 7919 % 30011, (i * 104729 % 180001) / 1000.0 - 90,
       (i * 1299709 % 540001) / 1000.0 - 180
FROM generate_series(1, 30010::bigint) i;
SELECT * FROM compare('many', 'bytewise', 1);
SELECT * FROM compare('bytewise', 'many', 1000);
SELECT count(DISTINCT obs_id), count(DISTINCT ref_id), min(rank), max(rank)
FROM geonn_nearest('many', 'many', exclude_self => true, options => '{"batch_rows": 1000}',
    row_type => NULL::record) AS n (obs_id text, ref_id text, rank integer)
WHERE obs_id <> ref_id;

-- long ids: compressed, or kept beside the table
CREATE TABLE long_id (id text, lat float8, lon float8);
INSERT INTO long_id SELECT repeat('long ', 2000) || i, lat, lon FROM whole;
CREATE TABLE toasted (id text, lat float8, lon float8);
ALTER TABLE toasted ALTER id SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT repeat('long ', 2000) || i % 50, lat, lon FROM half;
SELECT max(length(id)), max(pg_column_size(id)) < 2000 AS compressed FROM long_id;
SELECT max(length(id)), pg_relation_size(reltoastrelid) > 500000 AS apart
FROM toasted, pg_class WHERE pg_class.oid = 'toasted'::regclass GROUP BY reltoastrelid;
SELECT * FROM compare('toasted', 'long_id');
SELECT * FROM compare('long_id', 'toasted');
SELECT * FROM compare('toasted', 'toasted', 2, true);

-- integers go into wider columns, not into narrower ones
CREATE TABLE by_smallint (id smallint, lat float8, lon float8);
CREATE TABLE by_integer (id integer, lat float8, lon float8);
CREATE TABLE by_bigint (id bigint, lat float8, lon float8);
INSERT INTO by_smallint VALUES (-32768, 1, 1), (32767, 2, 2);
INSERT INTO by_integer VALUES (-2147483648, 1, 1), (2147483647, 2, 2);
INSERT INTO by_bigint VALUES (-9223372036854775808, 1, 1), (9223372036854775807, 2, 2);
SELECT * FROM geonn_nearest('by_smallint', 'by_integer', row_type => NULL::record)
    AS n (obs_id integer, ref_id bigint) ORDER BY 1;
SELECT * FROM geonn_nearest('by_integer', 'by_smallint', row_type => NULL::record)
    AS n (obs_id bigint, ref_id integer, ref_lat float8) ORDER BY 1;
SELECT * FROM geonn_nearest('by_smallint', 'by_bigint', row_type => NULL::record)
    AS n (obs_id smallint, ref_id bigint) ORDER BY 1;
SELECT * FROM geonn_nearest('by_smallint', 'by_bigint', row_type => NULL::record)
    AS n (obs_id smallint, ref_id integer);
SELECT * FROM geonn_nearest('by_integer', 'by_smallint', row_type => NULL::record)
    AS n (obs_id smallint, ref_id smallint);
SELECT * FROM geonn_nearest('by_integer', 'by_smallint', row_type => NULL::record)
    AS n (obs_id numeric, ref_id bigint);

-- a domain's values fit into it and into the type below, not into another domain
CREATE TABLE by_domain (id number, lat float8, lon float8);
INSERT INTO by_domain VALUES (7, 1, 1);
CREATE TABLE by_code (id code PRIMARY KEY, lat float8, lon float8);
INSERT INTO by_code VALUES ('seven', 1, 1);
CREATE DOMAIN other_number AS bigint;
SELECT * FROM geonn_nearest('by_domain', 'by_code', row_type => NULL::record)
    AS n (obs_id number, ref_id code);
SELECT * FROM geonn_nearest('by_domain', 'by_code', row_type => NULL::record)
    AS n (obs_id bigint, ref_id text);
SELECT * FROM geonn_nearest('by_domain', 'by_code', row_type => NULL::record)
    AS n (obs_id other_number, ref_id text);
SELECT * FROM geonn_nearest('by_domain', 'by_code', row_type => NULL::record)
    AS n (obs_id integer, ref_id text);
SELECT * FROM geonn_nearest('by_domain', 'by_code', row_type => NULL::record)
    AS n (obs_id bigint, ref_id short_code);
SELECT * FROM geonn_nearest('by_domain', 'by_code');

-- lengths and precisions may be left off, not changed
CREATE TABLE by_length (id varchar(10), lat float8, lon float8);
INSERT INTO by_length VALUES ('0123456789', 1, 1);
CREATE TABLE by_precision (id numeric(8,2), lat float8, lon float8);
INSERT INTO by_precision VALUES (123456.78, 1, 1);
SELECT * FROM geonn_nearest('by_length', 'by_precision', row_type => NULL::record)
    AS n (obs_id varchar(10), ref_id numeric(8,2));
SELECT * FROM geonn_nearest('by_length', 'by_precision', row_type => NULL::record)
    AS n (obs_id varchar, ref_id numeric);
SELECT * FROM geonn_nearest('by_length', 'by_precision', row_type => NULL::record)
    AS n (obs_id text, ref_id numeric);
SELECT * FROM geonn_nearest('by_length', 'by_precision', row_type => NULL::record)
    AS n (obs_id varchar(5), ref_id numeric);
SELECT * FROM geonn_nearest('by_length', 'by_precision', row_type => NULL::record)
    AS n (obs_id varchar(20), ref_id numeric);
-- the same length means something else to another type
SELECT * FROM geonn_nearest('by_length', 'by_precision', row_type => NULL::record)
    AS n (obs_id char(10), ref_id numeric);
SELECT * FROM geonn_nearest('by_length', 'by_precision', row_type => NULL::record)
    AS n (obs_id text, ref_id numeric(8,1));
SELECT * FROM geonn_nearest('by_text', 'by_text', row_type => NULL::record)
    AS n (obs_id text, ref_id varchar(5));

-- a reference's id needs an order, an observation's does not
CREATE TABLE by_json (id json, lat float8, lon float8);
CREATE TABLE by_point (id point, lat float8, lon float8);
CREATE TABLE by_xid (id xid, lat float8, lon float8);
CREATE TABLE by_jsons (id json[], lat float8, lon float8);
INSERT INTO by_json VALUES ('{"a": [1,  2]}', 1, 1);
INSERT INTO by_point VALUES ('(1,2)', 1, 1);
INSERT INTO by_xid VALUES ('17', 1, 1);
INSERT INTO by_jsons VALUES (ARRAY['{"a":  1}'::json], 1, 1);
SELECT * FROM geonn_nearest('by_json', 'by_smallint', row_type => NULL::record)
    AS n (obs_id json, ref_id smallint);
SELECT * FROM geonn_nearest('by_point', 'by_smallint', row_type => NULL::record)
    AS n (obs_id point, ref_id smallint);
SELECT * FROM geonn_nearest('by_xid', 'by_smallint', row_type => NULL::record)
    AS n (obs_id xid, ref_id smallint);
SELECT * FROM geonn_nearest('by_jsons', 'by_smallint', row_type => NULL::record)
    AS n (obs_id json[], ref_id smallint);
SELECT * FROM geonn_nearest('pole', 'by_json', row_type => NULL::record) AS n (distance float8);
SELECT * FROM geonn_nearest('pole', 'by_point', row_type => NULL::record) AS n (distance float8);
SELECT * FROM geonn_nearest('pole', 'by_xid', row_type => NULL::record) AS n (ref_id xid);
SELECT * FROM geonn_nearest('pole', 'by_jsons', row_type => NULL::record) AS n (rank integer);
SELECT * FROM geonn_nearest('by_json', 'pole', exclude_self => true, row_type => NULL::record)
    AS n (obs_id json);

-- the error for ids that do not fit says what to do, and that works
CREATE FUNCTION hint(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    EXECUTE statement;
    RETURN NULL;
EXCEPTION WHEN datatype_mismatch THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN hint;
END $$;
SELECT hint($$SELECT * FROM geonn_nearest('by_uuid', 'by_length')$$) AS hint \gset
SELECT $$SELECT * FROM geonn_nearest('by_uuid', 'by_length', row_type => NULL::record) $$ || substring(:'hint', 'write (.*) behind') \gexec
SELECT substring(:'hint', 'CREATE TYPE [^;]*') \gexec
SELECT * FROM geonn_nearest('by_uuid', 'by_length', row_type => NULL::my_pair);
DROP TYPE my_pair;
SELECT $$SELECT * FROM geonn_nearest('by_precision', 'by_smallint', row_type => NULL::record) $$ || substring(hint($$
    SELECT * FROM geonn_nearest('by_precision', 'by_smallint', row_type => NULL::record)
        AS n (rank real, ref_id boolean, obs_id size, bearing integer)$$), 'Write (.*) behind') \gexec
SELECT $$SELECT * FROM geonn_nearest('by_uuid', 'by_length', row_type => NULL::record) $$
    || substring(hint($$SELECT geonn_nearest('by_uuid', 'by_length', row_type => 'one'::text)$$), 'write (.*) behind') \gexec

-- for text and uuid it names the type that the extension has, if both ids are of it
CREATE TYPE own_pair AS (obs_id bigint, ref_id bigint);
CREATE TABLE by_email (id varchar(20), lat float8, lon float8);
INSERT INTO by_email VALUES ('a@example.org', 1, 2), ('b@example.org', 80, 3);
SELECT hint($$SELECT * FROM geonn_nearest('by_text', 'by_text')$$), hint($$SELECT * FROM geonn_within('by_email', 'by_text', 1)$$),
    hint($$SELECT * FROM geonn_nearest('by_uuid', 'by_uuid')$$), hint($$SELECT * FROM geonn_nearest_points('{1}', '{2}', 'by_email')$$),
    hint($$SELECT * FROM geonn_nearest_points('{1}', '{2}', 'by_uuid')$$) \gx
SELECT hint($$SELECT * FROM geonn_nearest('by_uuid', 'by_text')$$) LIKE 'In FROM, %' AS mixed,
    hint($$SELECT * FROM geonn_nearest('by_smallint', 'by_text')$$) LIKE 'In FROM, %' AS integers,
    hint($$SELECT * FROM geonn_nearest('by_text', 'by_text', row_type => NULL::own_pair)$$) LIKE 'In FROM, %' AS own_type;
SELECT hint($$SELECT * FROM geonn_nearest('by_text', 'by_text', row_type => NULL::geonn_pair_uuid)$$),
    hint($$SELECT * FROM geonn_nearest('by_smallint', 'by_integer', row_type => NULL::geonn_pair_uuid)$$) \gx
SET search_path = ids;
SELECT hint($$SELECT * FROM public.geonn_nearest('by_text', 'by_text')$$);
SET search_path = ids, public;
SELECT * FROM geonn_nearest('by_email', 'by_email', exclude_self => true, row_type => NULL::geonn_pair_text) ORDER BY 1;
SELECT count(*), count(DISTINCT obs_id), min(distance) FROM geonn_nearest('by_uuid', 'by_uuid', row_type => NULL::geonn_pair_uuid);
SELECT * FROM geonn_nearest_points('{1, 79}', '{2, 3}', 'by_email', row_type => NULL::geonn_point_pair_text) ORDER BY 1;
SELECT count(*) FROM geonn_nearest_points('{1, 79}', '{2, 3}', 'by_uuid', k => 2, row_type => NULL::geonn_point_pair_uuid) ORDER BY 1;
SELECT * FROM geonn_nearest('by_text', 'by_uuid', row_type => NULL::geonn_pair_text);

-- all columns of a row_type; coordinates as they are stored, ranks as asked for
CREATE TYPE everything AS (obs_id integer, ref_id text, distance float8, rank integer,
    obs_lat float8, obs_lon float8, ref_lat float8, ref_lon float8, bearing float8);
CREATE TYPE upside_down AS (bearing float8, ref_lon float8, ref_lat float8, obs_lon float8,
    obs_lat float8, rank bigint, distance float8, ref_id text, obs_id bigint);
CREATE TABLE ship (id integer, lat real, lon numeric);
INSERT INTO ship VALUES (1, 0, 359.5), (2, 0.5, -0.5), (3, -0.5, 360), (4, 0, 180), (5, 0, -180);
CREATE TABLE port (id text, lat float8, lon float8);
INSERT INTO port VALUES ('west', 0, -1), ('east', 0, 1), ('far', 0, 181), ('here', 0, 360);
SELECT obs_id, ref_id, round(distance) AS distance, rank, obs_lat, obs_lon, ref_lat, ref_lon,
       round(bearing::numeric, 6) AS bearing
FROM geonn_nearest('ship', 'port', k => 2, row_type => NULL::everything) ORDER BY obs_id, rank;
SELECT count(*) FROM (
    SELECT obs_id, ref_id, distance, rank, obs_lat, obs_lon, ref_lat, ref_lon, bearing
    FROM geonn_nearest('ship', 'port', k => 2, row_type => NULL::everything)
    INTERSECT ALL
    SELECT obs_id, ref_id, distance, rank, obs_lat, obs_lon, ref_lat, ref_lon, bearing
    FROM geonn_nearest('ship', 'port', k => 2, row_type => NULL::upside_down)) x;
-- some of the columns, or none
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::record) AS n (obs_id integer)
ORDER BY 1;
SELECT round(distance) FROM geonn_nearest('ship', 'port', row_type => NULL::record)
    AS n (distance float8) ORDER BY 1;
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::record) AS n (ref_lon float8)
ORDER BY 1;
CREATE TYPE nothing AS ();
SELECT count(*) FROM geonn_nearest('ship', 'port', row_type => NULL::nothing);
-- a record has the columns that the statement lists, in each of several calls
SELECT k, max(rank), count(*)
FROM generate_series(1, 5) k,
     geonn_nearest('ship', 'port', k => k, row_type => NULL::record) AS n (rank integer, ref_id text)
GROUP BY k ORDER BY k;
-- any composite type will do: a table's, and one that has lost a column
CREATE TABLE result (dropped integer, ref_id text, obs_id integer, distance float8);
ALTER TABLE result DROP COLUMN dropped, DROP COLUMN distance;
INSERT INTO result SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::result);
SELECT * FROM result ORDER BY obs_id;
ALTER TYPE everything DROP ATTRIBUTE ref_id, DROP ATTRIBUTE bearing;
SELECT obs_id, round(distance) AS distance, rank, ref_lon
FROM geonn_nearest('ship', 'port', row_type => NULL::everything) ORDER BY obs_id;

-- bearings: those of the formula, on the sphere
CREATE TABLE spread AS
SELECT i AS id, (i * 7919 % 1801) / 10.0 - 90 AS lat, (i * 104729 % 5401) / 10.0 - 180 AS lon
FROM generate_series(1, 200) i;
CREATE FUNCTION course(lat1 float8, lon1 float8, lat2 float8, lon2 float8) RETURNS float8
LANGUAGE sql AS $$
    SELECT atan2d(sind(lon2 - lon1) * cosd(lat2),
                  cosd(lat1) * sind(lat2) - sind(lat1) * cosd(lat2) * cosd(lon2 - lon1))
$$;
-- the angle between two directions
CREATE FUNCTION turn(a float8, b float8) RETURNS float8
LANGUAGE sql AS 'SELECT abs(mod((a - b + 900)::numeric, 360) - 180)';
SELECT count(*), count(bearing), min(bearing) >= 0 AND max(bearing) < 360 AS in_range,
       max(turn(bearing, course(obs_lat, obs_lon, ref_lat, ref_lon))) < 1e-9 AS right
FROM geonn_nearest('spread', 'spread', k => 200, exclude_self => true, row_type => NULL::record)
    AS n (obs_lat float8, obs_lon float8, ref_lat float8, ref_lon float8, bearing float8);
-- on the spheroid a little different, far from antipodes
SELECT count(*), count(bearing), min(bearing) >= 0 AND max(bearing) < 360 AS in_range,
       max(turn(bearing, course(obs_lat, obs_lon, ref_lat, ref_lon))) BETWEEN 0.05 AND 0.3 AS right
FROM geonn_nearest('spread', 'spread', k => 20, exclude_self => true, metric => 'spheroid',
    row_type => NULL::record)
    AS n (obs_lat float8, obs_lon float8, ref_lat float8, ref_lon float8, bearing float8)
WHERE abs(obs_lat) < 80;
-- north, east, south, west; between; to and from the poles; none where they coincide
CREATE TABLE compass (id text, lat float8, lon float8);
INSERT INTO compass VALUES ('north', 1, 0), ('east', 0, 1), ('south', -1, 0), ('west', 0, 359),
    ('here', 0, 0), ('here, too', 0, 360), ('north pole', 90, 123), ('south pole', -90, 0);
CREATE TABLE centre (id integer, lat float8, lon float8);
INSERT INTO centre VALUES (1, 0, 0), (2, 90, 0), (3, 90, 90), (4, -90, 90);
SELECT a.obs_id, a.ref_id, round(a.bearing::numeric, 9) AS sphere,
       round(b.bearing::numeric, 9) AS spheroid
FROM geonn_nearest('centre', 'compass', k => 8, row_type => NULL::record)
    AS a (obs_id integer, ref_id text, distance float8, bearing float8)
JOIN geonn_nearest('centre', 'compass', k => 8, metric => 'spheroid', row_type => NULL::record)
    AS b (obs_id integer, ref_id text, bearing float8) USING (obs_id, ref_id)
WHERE a.distance < 20000000
ORDER BY obs_id, ref_id COLLATE "C";
-- NULL where the distance by the same metric is 0, and only there, however near the points are
CREATE TABLE hair AS SELECT i AS id, 89.9 * sin(i) AS lat, 179.9 * cos(i * 7) AS lon FROM generate_series(1, 5000) i;
CREATE TABLE breadth AS SELECT id, lat + (id % 5 - 2) * 7e-15 AS lat, lon + (id / 5 % 5 - 2) * 1.4e-14 AS lon FROM hair;
SELECT metric, count(*), count(*) FILTER (WHERE distance = 0) > 500 AS some_coincide,
       count(*) FILTER (WHERE distance > 0) > 500 AS some_do_not,
       count(*) FILTER (WHERE (distance = 0) <> (bearing IS NULL)) AS wrong
FROM (SELECT 'sphere' AS metric, n.* FROM geonn_nearest('hair', 'breadth', by => '{id}', row_type => NULL::record)
          AS n (distance float8, bearing float8)
      UNION ALL
      SELECT 'spheroid', n.* FROM geonn_nearest('hair', 'breadth', by => '{id}', metric => 'spheroid', row_type => NULL::record)
          AS n (distance float8, bearing float8)
      UNION ALL
      SELECT 'spheroid, lateral', n.* FROM hair h, LATERAL geonn_nearest_points(ARRAY[h.lat], ARRAY[h.lon], 'breadth',
          metric => 'spheroid', row_type => NULL::record) AS n (distance float8, bearing float8)) n
GROUP BY metric ORDER BY metric;
-- also of a bearing alone
SELECT count(*) FILTER (WHERE (d.distance = 0) <> (b.bearing IS NULL)) AS wrong
FROM geonn_nearest('hair', 'breadth', by => '{id}', metric => 'spheroid', row_type => NULL::record) AS d (obs_id integer, distance float8)
JOIN geonn_nearest('hair', 'breadth', by => '{id}', metric => 'spheroid', row_type => NULL::record) AS b (obs_id integer, bearing float8)
    USING (obs_id);

-- Ids that are no integers are not sorted where nobody asks for them, and the
-- other columns are the same: with equal ids, distances and coordinates, and
-- with NULL ids, whose rows are no references.
CREATE TABLE unnamed AS
    SELECT CASE WHEN i % 5 > 0 THEN 'name ' || i % 37 END AS id, CASE WHEN i % 41 > 0 THEN i * 7 % 11 END AS lat,
        i * 3 % 13 AS lon, i % 3 AS class
    FROM generate_series(1, 500) i;
CREATE TABLE unnamed_obs AS SELECT i AS id, i * 5 % 12 AS lat, i * 9 % 14 AS lon, i % 4 AS class
    FROM generate_series(1, 60) i;
CREATE TYPE unnamed_pair AS (obs_id integer, ref_id text, distance float8, rank bigint);
-- the rows of a node that makes fewer columns, and of a function that does
CREATE FUNCTION compare_unnamed(arguments text, OUT rows bigint, OUT different bigint,
    OUT named text, OUT named_with_ids text)
LANGUAGE plpgsql AS $$
DECLARE
    call text := 'geonn_nearest(''unnamed_obs'', ''unnamed'', ' || arguments || ', row_type => NULL::';
    projected text := 'SELECT obs_id, distance, rank FROM ' || call || 'unnamed_pair)';
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || projected INTO plan;
    named := (regexp_match(plan::text, '"References Named": (\w+)'))[1];
    EXECUTE format('EXPLAIN (ANALYZE, FORMAT JSON) CREATE TEMP TABLE with_ids AS SELECT * FROM %sunnamed_pair)', call)
        INTO plan;
    named_with_ids := (regexp_match(plan::text, '"References Named": (\w+)'))[1];
    EXECUTE format('CREATE TEMP TABLE without AS %s UNION ALL '
        'SELECT obs_id, distance, rank FROM %srecord) AS n (rank bigint, obs_id integer, distance float8)',
        projected, call);
    rows := (SELECT count(*) FROM with_ids);
    different := (SELECT count(*) FROM (
        SELECT obs_id, distance, rank, sum(copies) AS copies
        FROM (SELECT obs_id, distance, rank, 1 AS copies FROM without
            UNION ALL SELECT obs_id, distance, rank, -2 FROM with_ids) both_sides
        GROUP BY obs_id, distance, rank) counted WHERE copies <> 0);
    DROP TABLE without, with_ids;
END $$;
SELECT arguments, c.* FROM unnest(ARRAY[
    'k => 1', 'k => 7', 'k => 500', 'k => 2, ties => ''all''', 'k => 3, by => ''{class}''',
    'k => 3, max_distance => 100000, keep_unmatched => true', 'k => 3, metric => ''spheroid''',
    'k => 3, exclude_self => false, options => ''{"algorithm": "brute"}''']) arguments,
    compare_unnamed(arguments) c;
-- the same from the pages, when all of them are visible to all
VACUUM unnamed;
SELECT arguments, c.* FROM unnest(ARRAY['k => 7', 'k => 2, ties => ''all''']) arguments,
    compare_unnamed(arguments) c;
-- a bearing is that of the first of equally distant references, so that ids are sorted
SELECT count(*) FROM geonn_nearest('unnamed_obs', 'unnamed', row_type => NULL::record)
    AS n (obs_id integer, bearing float8)
JOIN geonn_nearest('unnamed_obs', 'unnamed', row_type => NULL::record)
    AS m (obs_id integer, ref_id text, bearing float8) USING (obs_id)
WHERE n.bearing IS DISTINCT FROM m.bearing;
-- an id without an order is an error all the same
CREATE TABLE unnamed_json AS SELECT json_build_object('id', i) AS id, i AS lat, i AS lon FROM generate_series(1, 3) i;
SELECT distance FROM geonn_nearest('unnamed_obs', 'unnamed_json', row_type => NULL::record)
    AS n (obs_id integer, distance float8);

-- row types that cannot be
CREATE DOMAIN pair_domain AS geonn_pair;
SELECT * FROM geonn_nearest('ship', 'port', row_type => 1);
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::text[]);
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::pair_domain);
SELECT geonn_nearest('ship', 'port', row_type => NULL::record);
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::record)
    AS n (obs_id integer, metres float8);
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::record) AS n ("Distance" float8);
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::record) AS n (ord bigint);
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::record)
    AS n (obs_id integer, distance real);
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::record)
    AS n (obs_id integer, ref_id integer);
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::record) AS n (rank smallint);
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::record) AS n (rank numeric);
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::record) AS n (obs_lat real);
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::record) AS n (bearing numeric);
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::ship);
SELECT * FROM geonn_nearest('port', 'port');
\set VERBOSITY sqlstate
SELECT * FROM geonn_nearest('ship', 'port', row_type => 1);
SELECT * FROM geonn_nearest('ship', 'port', row_type => NULL::record) AS n (ord bigint);
SELECT * FROM geonn_nearest('ship', 'port');
SELECT * FROM geonn_nearest('ship', 'by_json', row_type => NULL::record) AS n (obs_id integer);
SELECT * FROM geonn_nearest('by_uuid', 'by_text', exclude_self => true, row_type => NULL::record)
    AS n (obs_id uuid, ref_id text, distance float8);

SET client_min_messages = warning;
DROP SCHEMA ids CASCADE;
