-- Caches whose ids are of all kinds of types: filled, unchanged, refreshed by what has changed
-- and fully, the table has the bytes that a new search returns, and those are what the
-- definition in SQL says, also where ids are equal and have other bytes.
-- rooms: cache
\pset format unaligned \pset footer off
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
CREATE SCHEMA cache_ids;
SET search_path = cache_ids, public;

CREATE TYPE size AS ENUM ('small', 'medium', 'large', 'enormous');
CREATE TYPE pair_of_numbers AS (a integer, b numeric);
CREATE TYPE nested AS (name text, pair pair_of_numbers, list text[]);
CREATE DOMAIN pair_domain AS pair_of_numbers CHECK ((VALUE).a > 0);
CREATE DOMAIN list_domain AS integer[] CHECK (array_length(VALUE, 1) > 0);
CREATE DOMAIN number_domain AS numeric;
DO $$
BEGIN
	CREATE COLLATION regardless_of_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN OTHERS THEN
	CREATE COLLATION regardless_of_case FROM "C";
END $$;
DO $$
BEGIN
	CREATE EXTENSION citext;
EXCEPTION WHEN OTHERS THEN
	CREATE DOMAIN citext AS text;
END $$;

-- rows of a cache's table that are not, to the byte, what a search returns now; or -1, where
-- the search returns anything but the definition
CREATE FUNCTION differences() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	result bigint;
BEGIN
	EXECUTE $query$
		WITH now AS MATERIALIZED (
			SELECT n.obs_id, n.rank, n.ref_id, n.distance
			FROM geonn_nearest('obs', 'ref', k => 2, row_type => NULL::neighbour) n),
		defined AS MATERIALIZED (
			SELECT o.id AS obs_id, r.rank::integer, r.id AS ref_id, r.distance
			FROM obs o CROSS JOIN LATERAL (
				SELECT r.id, d.distance, row_number() OVER (ORDER BY d.distance, r.id, r.lat, r.lon,
					ROW(r.lat, r.lon, r.id) USING OPERATOR(pg_catalog.*<)) AS rank
				FROM ref r, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS d(distance)) r
			WHERE r.rank <= 2)
		SELECT CASE WHEN EXISTS (
				SELECT FROM now n FULL JOIN defined d ON n.obs_id = d.obs_id AND n.rank = d.rank
				WHERE n OPERATOR(pg_catalog.*<>) d) THEN -1
			ELSE (SELECT count(*) FROM neighbour t FULL JOIN now n
				ON t.obs_id = n.obs_id AND t.rank = n.rank
				WHERE ROW(t.obs_id, t.rank, t.ref_id, t.distance)::record
					OPERATOR(pg_catalog.*<>) ROW(n.obs_id, n.rank, n.ref_id, n.distance)::record)
			END $query$ INTO result;
	RETURN result;
END $$;

CREATE TABLE seen (kind text, step text, differences bigint);

-- try ids of this type, which a number i from 1 to 160 gives; twin gives the same ids with other bytes
CREATE PROCEDURE try(type text, given text, twin text = NULL) LANGUAGE plpgsql AS $$
DECLARE
	step text[];
	steps text[][] := ARRAY[
		['fill', '', ''],
		['nothing new', '', 'full'],
		['nothing new', '', 'auto'],
		['a few observations', $s$
			INSERT INTO obs SELECT id, lat, lon FROM point WHERE i = 121;
			DELETE FROM obs WHERE id = (SELECT id FROM point WHERE i = 17);
			UPDATE obs SET lat = 1 WHERE id = (SELECT id FROM point WHERE i = 23) $s$, 'incremental'],
		['a reference', $s$
			DELETE FROM ref WHERE id = (SELECT id FROM point WHERE i = 3) $s$, 'incremental'],
		['many observations', $s$
			INSERT INTO obs SELECT id, lat, lon FROM point WHERE i > 121;
			DELETE FROM obs WHERE id IN (SELECT id FROM point WHERE i BETWEEN 70 AND 110) $s$, 'incremental'],
		['ids with other bytes', $s$
			UPDATE obs SET id = p.twin FROM point p WHERE p.id = obs.id AND p.i % 3 = 0;
			UPDATE ref SET id = p.twin FROM point p WHERE p.id = ref.id AND p.i % 2 = 0 $s$, 'incremental'],
		['references in another order', $s$
			CREATE TEMP TABLE other AS SELECT * FROM ref;
			TRUNCATE ref;
			INSERT INTO ref SELECT * FROM other ORDER BY ROW(id) USING OPERATOR(pg_catalog.*>), lat DESC;
			DROP TABLE other $s$, 'auto'],
		['all', '', 'full'],
		['another key', $s$
			ALTER TABLE neighbour DROP CONSTRAINT neighbour_pkey, ADD PRIMARY KEY (rank, obs_id);
			UPDATE obs SET lat = 2 WHERE id = (SELECT id FROM point WHERE i = 23) $s$, 'auto'],
		['a few observations', $s$
			UPDATE obs SET lat = 3 WHERE id = (SELECT id FROM point WHERE i = 23) $s$, 'incremental'],
		['hand-edited', $s$
			DELETE FROM neighbour WHERE ctid < '(2,1)';
			UPDATE neighbour SET distance = -1 WHERE ctid < '(3,1)' $s$, 'auto']];
BEGIN
	DROP TABLE IF EXISTS point, obs, ref CASCADE;
	-- points on a coarse grid, so that many references are at one place or as far from an observation
	EXECUTE format('CREATE TABLE point AS SELECT i, (%s)::%s AS id, (%s)::%s AS twin,'
		' (i %% 7 * 10)::float8 AS lat, (i %% 9 * 10)::float8 AS lon FROM generate_series(1, 160) i',
		given, type, coalesce(twin, given), type);
	CREATE TABLE obs AS SELECT id, lat, lon FROM point WHERE i <= 120;
	-- twins are at one place
	CREATE TABLE ref AS SELECT id, lat, lon FROM point WHERE i <= 12;
	INSERT INTO ref SELECT p.twin, p.lat, p.lon FROM point p WHERE i <= 6;
	FOREACH step SLICE 1 IN ARRAY steps LOOP
		IF step[1] = 'fill' THEN
			PERFORM geonn_cache_create('neighbour', 'obs', 'ref', k => 2);
		ELSE
			EXECUTE step[2];
			CALL geonn_refresh('neighbour', step[3]);
		END IF;
		INSERT INTO seen VALUES (type, step[1], differences());
		COMMIT;
	END LOOP;
	INSERT INTO seen SELECT type, string_agg(mode, ', ' ORDER BY started), NULL FROM geonn_cache_log;
	PERFORM geonn_cache_drop('neighbour');
END $$;

CALL try('smallint', 'i');
CALL try('bigint', 'i - 500 + (i % 2) * 9223372036854770000');
CALL try('text', '$$id $$ || i');
CALL try('varchar(9)', '$$id $$ || i');
CALL try('text COLLATE regardless_of_case', '$$id $$ || i', '$$ID $$ || i');
CALL try('citext', '$$id $$ || i', '$$Id $$ || i');
CALL try('char(9)', '$$id $$ || i');
CALL try('bpchar', '$$id $$ || i', '$$id $$ || i || $$  $$');
CALL try('name', '$$id $$ || i');
CALL try('uuid', 'md5(i::text)');
CALL try('bytea', 'sha256(i::text::bytea)');
CALL try('numeric', 'i || $$.5$$', 'i || $$.500$$');
CALL try('numeric(9,3)', 'i');
CALL try('number_domain', 'i / 4.0', 'round(i / 4.0, 20)');
CALL try('float8', 'CASE i WHEN 6 THEN 0 WHEN 2 THEN $$NaN$$ ELSE i + 0.5 END',
	'CASE i WHEN 6 THEN $$-0$$::float8 WHEN 2 THEN $$NaN$$ ELSE i + 0.5 END');
CALL try('real', 'CASE i WHEN 6 THEN 0 ELSE i END', 'CASE i WHEN 6 THEN $$-0$$::float4 ELSE i END');
CALL try('interval', 'i * interval $$1 day$$', 'i * interval $$24 hours$$');
CALL try('date', 'date $$2000-01-01$$ + i');
CALL try('timestamptz', 'timestamptz $$2000-01-01$$ + i * interval $$1 second$$');
CALL try('timetz', 'time $$00:00$$ + i * interval $$1 second$$');
CALL try('inet', '(inet $$10.0.0.0$$ + i)');
CALL try('money', 'i');
CALL try('bit varying', 'i::bit(12)');
CALL try('jsonb', 'jsonb_build_object($$n$$, i)', 'jsonb_build_object($$n$$, i + 0.0)');
CALL try('tsvector', '$$word$$ || i');
CALL try('tid', 'format($$(%s,1)$$, i)');
CALL try('integer[]', 'ARRAY[i % 10, i]');
CALL try('numeric[]', 'ARRAY[i % 10, i, 0.5]', 'ARRAY[i % 10, i, 0.50]');
CALL try('text[] COLLATE regardless_of_case', 'ARRAY[$$id$$, i::text]', 'ARRAY[$$ID$$, i::text]');
CALL try('list_domain', 'ARRAY[i % 10, i]');
CALL try('size[]', 'array_fill($$small$$::size, ARRAY[i % 30 + 1]) || array_fill($$large$$::size, ARRAY[i / 30 + 1])');
CALL try('pair_of_numbers', 'ROW(i, 0.5)::pair_of_numbers', 'ROW(i, 0.50)::pair_of_numbers');
CALL try('pair_of_numbers[]', 'ARRAY[ROW(i, 0.5), ROW(NULL, i)]::pair_of_numbers[]',
	'ARRAY[ROW(i, 0.50), ROW(NULL, i)]::pair_of_numbers[]');
CALL try('pair_domain', 'ROW(i, NULL)::pair_of_numbers');
CALL try('nested', 'ROW($$id$$, ROW(i, 1), $${a,NULL}$$)::nested', 'ROW($$id$$, ROW(i, 1.0), $${a,NULL}$$)::nested');
CALL try('int4range', 'int4range(i, 2 * i + 1)');
CALL try('numrange', 'numrange(i, 2 * i)', 'numrange(i, 2.0 * i)');
CALL try('nummultirange', 'nummultirange(numrange(-1, 0), numrange(i, 2 * i))',
	'nummultirange(numrange(-1, 0), numrange(i, 2.0 * i))');
CALL try('oid', 'i');

SELECT * FROM seen WHERE differences <> 0;
SELECT step AS runs, count(*), string_agg(kind, ', ' ORDER BY kind COLLATE "C") AS kinds
FROM seen WHERE differences IS NULL GROUP BY step ORDER BY step COLLATE "C";

-- few ids: all of an enumeration, as that of a domain over it
CREATE DOMAIN size_domain AS size;
CREATE TABLE sized (id size_domain, lat float8, lon float8);
INSERT INTO sized VALUES ('small', 0, 0), ('large', 0, 0), ('medium', 0, 1);
SELECT geonn_cache_create('sizes', 'sized', 'sized', k => 2) IS NOT NULL AS created;
CALL geonn_refresh('sizes', 'full');
INSERT INTO sized VALUES ('enormous', 0, 1);
CALL geonn_refresh('sizes', 'incremental');
TABLE sizes ORDER BY obs_id, rank;
SELECT mode FROM geonn_cache_log WHERE name = 'sizes' ORDER BY started;
SELECT geonn_cache_drop('sizes');

-- long ids, which are stored elsewhere and compressed
CREATE TABLE long (id text, lat float8, lon float8);
INSERT INTO long SELECT i || repeat(md5(i::text), CASE WHEN i % 2 = 0 THEN 200 ELSE 2 END) ||
	(SELECT string_agg(md5(i || '/' || j), '') FROM generate_series(0, i % 3 * 30) j), i % 7, i % 5
FROM generate_series(1, 60) i;
CREATE TABLE listed AS SELECT ARRAY[id, 'a'] AS id, lat, lon FROM long;
CREATE VIEW in_rows AS SELECT ROW(id, NULL, '{b}')::nested AS id, lat, lon FROM long;
CREATE FUNCTION long_differences(cache regclass, rel regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	result bigint;
BEGIN
	EXECUTE format('SELECT count(*) FROM %1$s t FULL JOIN geonn_nearest(%2$L, %2$L, k => 3,'
		' row_type => NULL::%1$s) n ON t.obs_id = n.obs_id AND t.rank = n.rank'
		' WHERE t OPERATOR(pg_catalog.*<>) n', cache, rel) INTO result;
	RETURN result;
END $$;
SELECT count(geonn_cache_create('of_' || rel, rel::regclass, rel::regclass, k => 3))
FROM unnest(ARRAY['long', 'listed', 'in_rows']) rel;
CALL geonn_refresh_all('full');
UPDATE long SET lat = lat + 1 WHERE id < '2';
UPDATE listed SET lat = lat + 1 WHERE id < '{2}';
DELETE FROM long WHERE id LIKE '5%';
CALL geonn_refresh_all('incremental');
SELECT name, string_agg(mode, ', ' ORDER BY started) AS modes FROM geonn_cache_log GROUP BY name ORDER BY name;
SELECT long_differences('of_long', 'long') AS long, long_differences('of_listed', 'listed') AS listed,
	long_differences('of_in_rows', 'in_rows') AS in_rows;
CALL geonn_refresh_all('full');
SELECT long_differences('of_long', 'long') AS long, long_differences('of_listed', 'listed') AS listed,
	long_differences('of_in_rows', 'in_rows') AS in_rows;
SELECT count(geonn_cache_drop(name)) FROM geonn_caches WHERE name LIKE 'of%';

-- equal places: 0 before -0, whatever the order in the table
CREATE TABLE zeros (id bigint, lat float8, lon float8);
INSERT INTO zeros VALUES (1, '-0', '-0'), (1, '-0', 0), (1, 0, '-0'), (1, 0, 0);
CREATE TABLE origin AS SELECT 1 AS id, 0::float8 AS lat, 0::float8 AS lon;
CREATE TYPE with_places AS (ref_id bigint, ref_lat float8, ref_lon float8);
SELECT array_agg((ref_lat, ref_lon)::text) FROM geonn_nearest('origin', 'zeros', k => 4, row_type => NULL::with_places);
CREATE TABLE soorez AS SELECT * FROM zeros ORDER BY ctid DESC;
SELECT array_agg((ref_lat, ref_lon)::text) FROM geonn_nearest('origin', 'soorez', k => 4, row_type => NULL::with_places);

-- functions and operators planted beside the extension's and the type's are not called
CREATE DOMAIN planted_id AS citext;
CREATE TABLE planted_obs (id planted_id, lat float8, lon float8);
INSERT INTO planted_obs SELECT 'id ' || i, i, i FROM generate_series(1, 50) i;
SELECT geonn_cache_create('planted', 'planted_obs', 'planted_obs') IS NOT NULL AS created;
CREATE FUNCTION trap(planted_id, planted_id) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'the trap for an operator was called';
END $$;
DO $$
DECLARE
	extension_schema name = (SELECT pronamespace::regnamespace FROM pg_proc WHERE proname = 'geonn_refresh_all');
	type_schema name = (SELECT typnamespace::regnamespace FROM pg_type WHERE typname = 'citext');
BEGIN
	EXECUTE format('CREATE OPERATOR %I.= (FUNCTION = trap, LEFTARG = planted_id, RIGHTARG = planted_id, MERGES, HASHES)', type_schema);
	EXECUTE format($create$
		CREATE FUNCTION %I.geonn_nearest(obs integer, ref integer, k integer, metric text, exclude_self boolean,
			keep_unmatched boolean, ties text, invalid text, options jsonb, row_type anyelement)
		RETURNS SETOF anyelement LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $trap$the trap for a function was called$trap$; END'
		$create$, extension_schema);
END $$;
CALL geonn_refresh('planted', 'full');
DELETE FROM planted_obs WHERE lat = 7;
UPDATE planted_obs SET lat = 9 WHERE lat = 8;
CALL geonn_refresh('planted', 'incremental');
UPDATE planted_obs SET lat = 10 WHERE lat < 30;
CALL geonn_refresh('planted', 'incremental');
CALL geonn_refresh('planted', 'full');
SELECT count(*), sum((distance = 0)::integer) FROM planted;
SELECT geonn_cache_drop('planted');
DROP FUNCTION geonn_nearest(integer, integer, integer, text, boolean, boolean, text, text, jsonb, anyelement);

-- what cannot be
\set VERBOSITY default
\set SHOW_CONTEXT never
CREATE TABLE described (id json, xid xid, ids point[], lat float8, lon float8);
SELECT geonn_cache_create('x', 'described', 'sized');
SELECT geonn_cache_create('x', 'described', 'sized', options => '{"obs_id": "xid"}');
SELECT geonn_cache_create('x', 'described', 'sized', options => '{"obs_id": "ids"}');

-- ids that are NULL, where all are kept: the same when the cache is made as later
CREATE TABLE some_null (id integer, lat float8, lon float8);
INSERT INTO some_null VALUES (1, 0, 0), (NULL, 0, 0);
SELECT geonn_cache_create('x', 'some_null', 'sized', keep_unmatched => true);
DELETE FROM some_null WHERE id IS NULL;
SELECT geonn_cache_create('kept', 'some_null', 'sized', keep_unmatched => true) IS NOT NULL AS created;
INSERT INTO some_null VALUES (NULL, NULL, 1);
CALL geonn_refresh('kept');
CALL geonn_refresh('kept', 'full');
DELETE FROM some_null WHERE id IS NULL;
CALL geonn_refresh('kept');
INSERT INTO some_null VALUES (NULL, 1, 1);
CALL geonn_refresh('kept');
CALL geonn_refresh('kept', 'incremental');
SELECT geonn_cache_drop('kept');

-- ids that are there twice, though not with the same bytes
CREATE TABLE alike (id numeric, lat float8, lon float8);
INSERT INTO alike VALUES (2.0, 0, 0), (2.00, 1, 1), (3, 1, 1);
SELECT geonn_cache_create('x', 'alike', 'sized');
\set VERBOSITY terse
DELETE FROM alike WHERE lat = 1 AND id = 2;
SELECT geonn_cache_create('alikes', 'alike', 'sized') IS NOT NULL AS created;
CALL geonn_refresh('alikes');
INSERT INTO alike VALUES (3.0, 1, 1);
CALL geonn_refresh('alikes');
CALL geonn_refresh('alikes', 'full');
UPDATE alike SET id = id + 10 WHERE id = 3;
CALL geonn_refresh('alikes', 'incremental');
TABLE alikes ORDER BY obs_id;
SELECT geonn_cache_drop('alikes');

-- a domain over a type with a length
CREATE DOMAIN short_name AS varchar(10) COLLATE "C" NOT NULL;
CREATE TABLE named (id short_name, lat float8, lon float8);
INSERT INTO named SELECT 'name ' || i, i, i FROM generate_series(1, 30) i;
SELECT geonn_cache_create('named ids', 'named', 'named', exclude_self => true, target => 'cache_ids.named_ids');
UPDATE named SET lat = -lat WHERE lat < 15;
CALL geonn_refresh('named ids', 'full');
SELECT count(*), min(obs_id), min(ref_id) FROM named_ids;
SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute
WHERE attrelid = 'named_ids'::regclass AND attnum > 0 ORDER BY attnum;
SELECT geonn_cache_drop('named ids');

DROP SCHEMA cache_ids CASCADE;
