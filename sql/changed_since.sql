-- A refresh reads only the observations that may be new, where a column tells.
SET client_min_messages = error;
CREATE EXTENSION IF NOT EXISTS geonn;
\set SHOW_CONTEXT never
CREATE SCHEMA changed_since;
SET search_path = changed_since, public;
CREATE TABLE obs (id text PRIMARY KEY, lat float8, lon float8, at timestamptz NOT NULL DEFAULT now(), day date);
CREATE TABLE ref (id integer PRIMARY KEY, lat float8, lon float8);
INSERT INTO obs SELECT 'o' || i, i % 80, i % 170, '2020-02-02' FROM generate_series(1, 2000) i;
INSERT INTO ref SELECT i, i * 7 % 83 - 1, i * 11 % 173 - 1 FROM generate_series(1, 100) i;

-- the column must suit
SELECT geonn_cache_create('since', 'obs', 'ref', changed_since => 'when');
SELECT geonn_cache_create('since', 'obs', 'ref', changed_since => 'day');

SELECT geonn_cache_create('since', 'obs', 'ref', k => 2, changed_since => 'at');

-- how the last refresh went, and how many rows are not what a search returns
CREATE VIEW last_refresh AS
	SELECT mode, searched, inserted, updated, deleted, (
		SELECT count(*) FROM (
			(SELECT obs_id, rank, ref_id, distance FROM since
			EXCEPT ALL SELECT n.obs_id, n.rank, n.ref_id, n.distance FROM geonn_nearest('obs', 'ref', k => 2, row_type => NULL::since) n)
			UNION ALL
			(SELECT n.obs_id, n.rank, n.ref_id, n.distance FROM geonn_nearest('obs', 'ref', k => 2, row_type => NULL::since) n
			EXCEPT ALL SELECT obs_id, rank, ref_id, distance FROM since)) d) AS wrong
	FROM geonn_cache_log WHERE name = 'since' ORDER BY started DESC LIMIT 1;

-- new, moved and invalid ones are noticed, those that are written as they were cost nothing
INSERT INTO obs SELECT 'n' || i, 40.5, i FROM generate_series(1, 10) i;
UPDATE obs SET lat = lat + 0.5, at = now() WHERE id IN ('o1', 'o2', 'o3');
UPDATE obs SET lat = NULL, at = now() WHERE id = 'o4';
UPDATE obs SET lat = 'NaN', at = now() WHERE id = 'o5';
UPDATE obs SET lat = lat, at = now() WHERE id LIKE 'o10%';
CALL geonn_refresh('since');
TABLE last_refresh;

-- and so are references that move, with observations that are not read
UPDATE ref SET lat = lat + 1 WHERE id = 50;
CALL geonn_refresh('since', 'incremental');
SELECT mode, searched > 0 AS searched, inserted, deleted, wrong FROM last_refresh;

-- an invalid one that is valid again
UPDATE obs SET lat = 5, at = now() WHERE id IN ('o4', 'o5');
CALL geonn_refresh('since');
TABLE last_refresh;

-- what changes without the column is not seen, and no more is what is deleted ...
UPDATE obs SET lat = lat + 0.5 WHERE id = 'o2000';
DELETE FROM obs WHERE id = 'o1999';
CALL geonn_refresh('since');
SELECT mode, searched, wrong > 0 AS wrong FROM last_refresh;
-- ... until a refresh that looks at everything
CALL geonn_refresh('since', 'full');
TABLE last_refresh;

-- a column that was dropped since
ALTER TABLE obs DROP COLUMN at;
INSERT INTO ref VALUES (1000, 1, 1);
CALL geonn_refresh('since');
SELECT geonn_cache_alter('since', '{"changed_since": null}');
CALL geonn_refresh('since');
TABLE last_refresh;
DROP VIEW last_refresh;
SELECT geonn_cache_drop('since');
DROP SCHEMA changed_since CASCADE;
