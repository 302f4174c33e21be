-- Full refreshes of every kind: whatever was done to the table by hand, and whatever has changed, it
-- has to the byte what a search returns, and its baselines serve the refreshes that follow.
-- rooms: cache
\pset format unaligned \pset footer off
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
CREATE SCHEMA full_refresh;
SET search_path = full_refresh, public;

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

CREATE TABLE points (i integer, lat float8, lon float8, kind text);
INSERT INTO points SELECT i, (i * 37 % 170) - 85, (i * 101 % 360) - 180, (ARRAY['a', 'b', 'c'])[i % 3 + 1]
	FROM generate_series(1, 400) i;

-- rows of a cache's table that are not, to the byte, what a search returns now
CREATE FUNCTION differences(question text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	result bigint;
BEGIN
	EXECUTE 'WITH now AS MATERIALIZED (
			SELECT n.obs_id, n.rank, n.ref_id, n.distance
			FROM geonn_nearest(''obs'', ''ref'', ' || question || 'row_type => NULL::neighbour) n)
		SELECT (SELECT count(*) FROM neighbour t FULL JOIN now n
			ON t.obs_id = n.obs_id AND t.rank = n.rank
			WHERE ROW(t.obs_id, t.rank, t.ref_id, t.distance)::record
				OPERATOR(pg_catalog.*<>) ROW(n.obs_id, n.rank, n.ref_id, n.distance)::record)'
	INTO result;
	RETURN result;
END $$;

CREATE TABLE seen (kind text, step text, mode text, written text, differences bigint);

-- Try a question with ids of this type, which a number i gives; twin gives the same ids with other
-- bytes.  Of each full refresh that is asked for, seen gets the numbers of rows inserted, updated and
-- deleted, unless they depend on what PostgreSQL was built with.
CREATE PROCEDURE try(what text, question text, type text, given text, twin text = NULL) LANGUAGE plpgsql AS $$
DECLARE
	step text[];
	steps text[][] := ARRAY[
		['nothing', 'SELECT'],
		['rows deleted', 'DELETE FROM neighbour t WHERE abs(hashtext(t.ref_id::text)) % 5 = 0'],
		['all rows deleted', 'DELETE FROM neighbour'],
		['distances changed', 'UPDATE neighbour SET distance = distance + 1 WHERE rank % 2 = 1'],
		['rows exchanged', 'UPDATE neighbour t SET ref_id = o.ref_id, distance = o.distance
			FROM (SELECT obs_id, rank, lead(ref_id, 1, first) OVER w AS ref_id, lead(distance, 1, first_distance) OVER w AS distance
				FROM (SELECT *, first_value(ref_id) OVER w AS first, first_value(distance) OVER w AS first_distance
					FROM neighbour WINDOW w AS (ORDER BY obs_id, rank ROWS UNBOUNDED PRECEDING)) n WINDOW w AS (ORDER BY obs_id, rank)) o
			WHERE t.obs_id = o.obs_id AND t.rank = o.rank'],
		['other ranks', 'UPDATE neighbour SET rank = rank + 100 WHERE distance > 300000'],
		['rows inserted', 'INSERT INTO neighbour SELECT obs_id, rank + 1000, ref_id, distance FROM neighbour'],
		['other ids', format('INSERT INTO neighbour SELECT (%1$s)::%2$s, 1, (SELECT min(id::text) FROM ref)::%2$s, 5
			FROM generate_series(901, 905) i', given, type)],
		['other bytes', format('UPDATE neighbour SET obs_id = %s', replace(COALESCE(twin, 'id'), 'id', 'obs_id'))],
		['ids of obs with other bytes', format('UPDATE obs SET id = %s', COALESCE(twin, 'id'))],
		['observations moved', 'UPDATE obs SET lat = -lat WHERE abs(hashtext(id::text)) % 4 = 0'],
		['observations deleted', 'DELETE FROM obs WHERE abs(hashtext(id::text)) % 7 = 0'],
		['references moved', 'UPDATE ref SET lat = lat / 2']];
BEGIN
	EXECUTE format('CREATE TABLE obs AS SELECT %s::%s AS id, lat, lon, kind FROM points i', given, type);
	EXECUTE format('CREATE TABLE ref AS SELECT %s::%s AS id, lon / 3 AS lat, lat * 2 AS lon, kind
		FROM points i WHERE i > 300', given, type);
	UPDATE obs SET lat = NULL WHERE lat = 42;
	UPDATE obs SET kind = 'z' WHERE lat = 43;
	INSERT INTO ref SELECT id, lat, lon, kind FROM ref LIMIT 20;
	ALTER TABLE obs SET (autovacuum_enabled = false);
	ALTER TABLE ref SET (autovacuum_enabled = false);
	EXECUTE 'SELECT geonn_cache_create(''neighbour'', ''obs'', ''ref'''
		|| rtrim(', ' || question, ', ') || ')';
	ALTER TABLE neighbour SET (autovacuum_enabled = false);
	INSERT INTO seen VALUES (what, 'fill', NULL, NULL, differences(question));
	FOREACH step SLICE 1 IN ARRAY steps LOOP
		IF step[1] = 'other bytes' AND twin IS NULL OR step[1] = 'ids of obs with other bytes' AND twin IS NULL THEN
			CONTINUE;
		END IF;
		EXECUTE step[2];
		CALL geonn_refresh('neighbour', 'full');
		INSERT INTO seen SELECT what, step[1], l.mode,
			CASE WHEN what NOT IN ('citext', 'collation') THEN concat_ws('/', l.inserted, l.updated, l.deleted)
				ELSE (l.inserted + l.updated + l.deleted > 0)::text END, differences(question)
			FROM geonn_cache_run l ORDER BY id DESC LIMIT 1;
		-- the baselines are right: what moves next is found by them
		UPDATE ref SET lon = -lon WHERE ctid = (SELECT min(ctid) FROM ref);
		UPDATE obs SET lon = -lon WHERE ctid = (SELECT min(ctid) FROM obs WHERE lat IS NOT NULL);
		CALL geonn_refresh('neighbour', 'incremental');
		INSERT INTO seen SELECT what, step[1] || ', then incremental', l.mode,
			CASE WHEN l.searched < 100 THEN 'few searched' ELSE 'many searched' END, differences(question)
			FROM geonn_cache_run l ORDER BY id DESC LIMIT 1;
	END LOOP;
	PERFORM geonn_cache_drop('neighbour');
	DROP TABLE IF EXISTS neighbour;
	DROP TABLE obs, ref;
END $$;

CALL try('integer', '', 'integer', 'i.i');
CALL try('bigint, k', 'k => 5, ', 'bigint', '(i.i * 10000000000)');
CALL try('smallint, unmatched kept', 'k => 2, max_distance => 500000, keep_unmatched => true, ', 'smallint', 'i.i');
CALL try('by', E'by => \'{kind}\', keep_unmatched => true, ', 'integer', 'i.i');
CALL try('by, matched', E'k => 3, by => \'{kind}\', ', 'integer', 'i.i');
CALL try('exclude_self', 'k => 2, exclude_self => true, ', 'text', $$('id ' || i.i)$$);
CALL try('ties', E'ties => \'all\', ', 'integer', 'i.i');
CALL try('spheroid', E'metric => \'spheroid\', max_distance => 1000000, ', 'integer', 'i.i');
CALL try('uuid', 'k => 2, ', 'uuid', 'md5(i.i::text)');
CALL try('citext', 'k => 2, ', 'citext', $$('id ' || i.i)$$, 'upper(id::text)::citext');
CALL try('numeric', 'k => 2, ', 'numeric', '(i.i * 1.0)', 'id * 1.00');
CALL try('collation', 'k => 2, ', 'text COLLATE regardless_of_case', $$('id ' || i.i)$$, 'upper(id)');
CALL try('array', 'k => 2, ', 'text[]', $$ARRAY['id', i.i::text]$$);

SELECT kind, step, mode, written, differences FROM seen WHERE kind IN ('integer', 'numeric') OR differences <> 0
	ORDER BY kind COLLATE "C", ctid;
SELECT kind, count(*) AS refreshes, sum(differences) AS differences,
	string_agg(DISTINCT mode, ', ' ORDER BY mode) AS modes,
	count(*) FILTER (WHERE written = 'few searched') AS few_searched FROM seen GROUP BY kind ORDER BY kind COLLATE "C";

-- a duplicate id is an error, whichever rows the table has, and leaves the table as it was
CREATE TABLE given AS SELECT i::numeric AS id, lat, lon FROM points;
CREATE VIEW obs AS SELECT * FROM given;
CREATE TABLE ref AS SELECT i AS id, lon / 3 AS lat, lat * 2 AS lon FROM points WHERE i > 300;
SELECT geonn_cache_create('neighbour', 'obs', 'ref', options => '{"obs_id": "id"}');
INSERT INTO given SELECT id * 1.00, lat, lon FROM given WHERE id = 7;
CREATE TABLE before AS SELECT ctid AS place, * FROM neighbour;
CALL geonn_refresh('neighbour', 'full');
UPDATE given SET lat = 3 WHERE ctid = (SELECT max(ctid) FROM given);
CALL geonn_refresh('neighbour', 'full');
SELECT count(*) FROM before b FULL JOIN neighbour n ON b.place = n.ctid AND b.ref_id = n.ref_id AND b.distance = n.distance
	WHERE b.place IS NULL OR n.ctid IS NULL;
DELETE FROM neighbour WHERE obs_id = 7;
CALL geonn_refresh('neighbour', 'full');
DELETE FROM given WHERE ctid = (SELECT max(ctid) FROM given);
INSERT INTO given VALUES (NULL, 1, 1);
CALL geonn_refresh('neighbour', 'full');
SELECT differences('');
SELECT geonn_cache_drop('neighbour');
DROP TABLE IF EXISTS neighbour;
DROP VIEW obs;

-- a full refresh leaves the blocks of baselines that are right, and replaces the others: of
-- observations also if only references have changed
CREATE TABLE obs AS SELECT id::integer, lat, lon FROM given WHERE id IS NOT NULL;
ALTER TABLE obs ADD PRIMARY KEY (id), SET (autovacuum_enabled = false);
SELECT geonn_cache_create('neighbour', 'obs', 'ref', max_distance => 2000000);
CREATE TABLE block AS SELECT side, number, contents FROM geonn_cache_block WHERE false;
ALTER TABLE block ADD COLUMN place tid;
CREATE FUNCTION replaced() RETURNS TABLE (side smallint, blocks_stayed boolean) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT b.side, bool_and(EXISTS (SELECT FROM block f WHERE f.side = b.side AND f.place = b.ctid))
		FROM geonn_cache_block b GROUP BY b.side ORDER BY b.side;
	DELETE FROM block;
	INSERT INTO block SELECT b.side, b.number, b.contents, b.ctid FROM geonn_cache_block b;
END $$;
SELECT * FROM replaced();
CALL geonn_refresh('neighbour', 'full');
SELECT * FROM replaced();
UPDATE obs SET lat = lat WHERE id % 3 = 0;
UPDATE ref SET lat = lat WHERE id % 3 = 0;
CALL geonn_refresh('neighbour', 'full');
SELECT * FROM replaced();
UPDATE obs SET lat = 1 WHERE id = 5;
CALL geonn_refresh('neighbour', 'full');
SELECT * FROM replaced();
UPDATE ref SET lat = 1 WHERE id = 305;
CALL geonn_refresh('neighbour', 'full');
SELECT * FROM replaced();
DELETE FROM obs WHERE id = 6;
UPDATE ref SET lat = 2 WHERE id = 306;
CALL geonn_refresh('neighbour', 'incremental');
SELECT differences('max_distance => 2000000, ');

-- points that do not fit into memory are sorted in files: blocks have the points that they should have
CREATE TABLE many AS SELECT i AS id, CASE WHEN i % 5 = 0 THEN 10 ELSE i * 7919 % 180000 / 1000.0 - 90 END::float8 AS lat,
	CASE WHEN i % 5 = 0 THEN 20 ELSE i * 104729 % 360000 / 1000.0 - 180 END::float8 AS lon FROM generate_series(1, 20000) i;
ALTER TABLE many SET (autovacuum_enabled = false);
SET maintenance_work_mem = '1MB';
SELECT geonn_cache_create('many neighbours', 'many', 'ref', target => 'many_neighbours');
DELETE FROM block;
INSERT INTO block SELECT b.side, b.number, b.contents, b.ctid FROM geonn_cache_block b;
RESET maintenance_work_mem;
CALL geonn_refresh('many neighbours', 'full');
SELECT side, blocks_stayed FROM replaced();
SELECT inserted, updated, deleted FROM geonn_cache_log WHERE name = 'many neighbours' ORDER BY started DESC LIMIT 1;
SET maintenance_work_mem = '1MB';
DELETE FROM many_neighbours WHERE obs_id % 2 = 0;
UPDATE many_neighbours SET distance = 1;
CALL geonn_refresh('many neighbours', 'full');
RESET maintenance_work_mem;
SELECT inserted, updated, deleted FROM geonn_cache_log WHERE name = 'many neighbours' ORDER BY started DESC LIMIT 1;
SELECT count(*) FROM many_neighbours t FULL JOIN geonn_nearest('many', 'ref') n USING (obs_id, ref_id, distance)
	WHERE t.obs_id IS NULL OR n.obs_id IS NULL;
SELECT geonn_cache_drop('many neighbours');

-- one without references, and one without observations
DELETE FROM ref;
CALL geonn_refresh('neighbour', 'full');
SELECT differences('max_distance => 2000000, ');
INSERT INTO ref SELECT i, lon / 3, lat * 2 FROM points WHERE i > 350;
CALL geonn_refresh('neighbour', 'incremental');
SELECT differences('max_distance => 2000000, '), count(*) > 100 AS has_rows FROM neighbour;
DELETE FROM obs;
CALL geonn_refresh('neighbour', 'full');
INSERT INTO obs SELECT id, lat, lon FROM given WHERE id < 50;
CALL geonn_refresh('neighbour', 'incremental');
SELECT differences('max_distance => 2000000, '), count(*) > 10 AS has_rows FROM neighbour;
SELECT geonn_cache_drop('neighbour');
DROP SCHEMA full_refresh CASCADE;
