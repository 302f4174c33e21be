-- The first refresh of a cache finds what has changed since the cache was made, as any other.
-- rooms: cache
\pset format unaligned \pset footer off
SET client_min_messages = error;
CREATE EXTENSION IF NOT EXISTS geonn;
\set SHOW_CONTEXT never
CREATE SCHEMA first_refresh;
SET search_path = first_refresh, public;

-- points on a grid, with ties, some in no zone and some that are none
CREATE TABLE obs (id integer PRIMARY KEY, lat float8, lon float8, zone text, at timestamptz NOT NULL DEFAULT now());
CREATE TABLE ref (id integer PRIMARY KEY, lat float8, lon float8, zone text);
INSERT INTO obs SELECT i, i % 83 - 40, i % 173 - 80, CASE WHEN i % 7 > 0 THEN 'zone ' || i % 3 END FROM generate_series(1, 3000) i;
UPDATE obs SET lat = NULL WHERE id % 500 = 0;
UPDATE obs SET lon = 999 WHERE id % 700 = 0;
INSERT INTO ref SELECT i, i * 7 % 83 - 41, i * 11 % 173 - 81, 'zone ' || i % 3 FROM generate_series(1, 100) i;
CREATE UNLOGGED TABLE unlogged_obs AS SELECT * FROM obs;
CREATE UNLOGGED TABLE unlogged_ref AS SELECT * FROM ref;
CREATE VIEW obs_view AS SELECT 'observation ' || id AS id, lat, lon, zone, at FROM obs;
CREATE VIEW ref_view AS SELECT md5(id::text)::uuid AS id, lat, lon, zone FROM ref;

CREATE TABLE kinds (number serial, obs regclass, ref regclass, arguments text);
INSERT INTO kinds (obs, ref, arguments)
	SELECT obs, ref, arguments
	FROM (VALUES ('obs'::regclass, 'ref'::regclass), ('unlogged_obs', 'unlogged_ref'), ('obs_view', 'ref_view')) s(obs, ref),
		(VALUES (1, 'k => 1'), (2, 'k => 3, ties => ''all'''), (3, 'k => 2, by => ''{zone}'', keep_unmatched => true'),
			(4, 'k => 2, max_distance => 5e5, keep_unmatched => true'), (5, 'radius => 6e5'),
			(6, 'radius => 1e5, keep_unmatched => true'), (7, 'k => 2, metric => ''spheroid''')) a(n, arguments)
	ORDER BY n, obs;

-- Makes a cache, refreshes it with nothing changed and with one observation or reference moved;
-- tells how the last run went, and how many rows are not what a search returns.
CREATE TABLE runs (number integer, change text, mode text, reason text, searched boolean, wrong bigint);
CREATE FUNCTION run(kind kinds, change text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	call text := CASE WHEN kind.arguments LIKE 'radius%' THEN 'geonn_within' ELSE 'geonn_nearest' END;
BEGIN
	EXECUTE format('SELECT geonn_cache_create(%L, %L, %L, %s, target => ''first_refresh.target'')', 'first refresh',
		kind.obs, kind.ref, kind.arguments);
	EXECUTE change;
	CALL geonn_refresh('first refresh');
	EXECUTE format('INSERT INTO runs SELECT $1, $2, mode, reason, searched > 0, (
			SELECT count(*) FROM (
				(TABLE target EXCEPT ALL SELECT n.obs_id, n.rank, n.ref_id, n.distance FROM %1$s(%2$L, %3$L, %4$s, row_type => NULL::target) n)
				UNION ALL
				(SELECT n.obs_id, n.rank, n.ref_id, n.distance FROM %1$s(%2$L, %3$L, %4$s, row_type => NULL::target) n EXCEPT ALL TABLE target)) d)
		FROM geonn_cache_log WHERE name = ''first refresh'' ORDER BY started DESC LIMIT 1', call, kind.obs, kind.ref, kind.arguments)
	USING kind.number, change;
	PERFORM geonn_cache_drop('first refresh');
END $$;


-- nothing has changed
SELECT count(run(kinds, 'SELECT')) FROM kinds;
-- one observation has
SELECT count(run(kinds, format('UPDATE %s SET lat = 0.25 - coalesce(lat, 0) / 2, at = now() WHERE id = %s',
	CASE WHEN obs::text LIKE 'unlogged%' THEN obs::text ELSE 'obs' END, number * 20))) FROM kinds;
-- one reference has
SELECT count(run(kinds, format('UPDATE %s SET lat = 0.25 - lat / 2 WHERE id = %s',
	CASE WHEN ref::text LIKE 'unlogged%' THEN ref::text ELSE 'ref' END, number))) FROM kinds;

SELECT split_part(change, ' ', 2) AS change, mode, reason, searched, wrong, count(*)
FROM runs GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5;
SELECT kinds.*, change, mode, reason, wrong FROM runs JOIN kinds USING (number)
WHERE wrong > 0 OR mode <> CASE WHEN change = 'SELECT' THEN 'unchanged' ELSE 'incremental' END ORDER BY number;

-- in a transaction of its own, with all pages known, nothing is read
VACUUM obs;
VACUUM ref;
SELECT geonn_cache_create('first refresh', 'obs', 'ref', target => 'first_refresh.target');
CALL geonn_refresh('first refresh');
SELECT mode, reason FROM geonn_cache_log WHERE name = 'first refresh' ORDER BY started;
SELECT geonn_cache_drop('first refresh');

-- a reader with an older snapshot makes a cache of what it sees
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT geonn_cache_create('first refresh', 'obs', 'ref', target => 'first_refresh.target');
CALL geonn_refresh('first refresh');
COMMIT;
UPDATE obs SET lat = 1, at = now() WHERE id = 3;
CALL geonn_refresh('first refresh');
SELECT mode, reason, searched FROM geonn_cache_log WHERE name = 'first refresh' ORDER BY started;
SELECT geonn_cache_drop('first refresh');
DROP SCHEMA first_refresh CASCADE;
