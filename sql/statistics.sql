-- geonn_stat and geonn_stat_progress: what calls have done
-- rooms: watch engine/calls
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
DROP ROLE IF EXISTS regress_geonn_watcher, regress_geonn_reader;
RESET client_min_messages;
CREATE SCHEMA statistics;
SET search_path = statistics, public;

CREATE TABLE obs (id integer, lat float8, lon float8, class integer);
INSERT INTO obs SELECT i, i % 80, i % 170, i % 5 FROM generate_series(1, 20000) i;
INSERT INTO obs VALUES (NULL, 1, 1, 1), (20001, NULL, 1, 1), (20002, 91, 1, 1), (20003, 1, 1, NULL);
CREATE TABLE ref (id integer, lat float8, lon float8, class integer);
INSERT INTO ref SELECT i, i % 90, i % 180, i % 5 FROM generate_series(1, 2000) i;
INSERT INTO ref VALUES (2001, 'NaN', 1, 1), (NULL, 1, 1, 1);
ANALYZE obs, ref;
SET client_min_messages = error;

-- what is shown of these calls
CREATE VIEW calls AS
	SELECT function, obs_name, ref_name, arguments, calls, failed, rows, observations,
		   observations_skipped AS skipped, unmatched,
		   references_read + 2000 * references_kept AS refs, references_skipped AS refs_skipped
	FROM geonn_stat WHERE obs IN ('obs'::regclass, 'ref'::regclass) OR ref = 'ref'::regclass
	ORDER BY function, arguments, obs_name;

-- the plan node, a function, and parallel processes count alike
SET max_parallel_workers_per_gather = 0;
SELECT count(*) FROM geonn_nearest('obs', 'ref');
SELECT count(*) FROM (SELECT geonn_nearest('obs', 'ref')) n;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT count(*) FROM geonn_nearest('obs', 'ref');
SELECT * FROM calls;
SET max_parallel_workers_per_gather = 0;

-- each pair of relations and arguments has a row, of arrays there is no name
SELECT count(*) FROM geonn_nearest('obs', 'ref', k => 3, max_distance => 250000.5, metric => 'spheroid');
SELECT count(*) FROM geonn_nearest('obs', 'ref', by => '{class}', keep_unmatched => true,
	options => '{"device": "cpu", "batch_rows": 500}');
SELECT count(*) FROM geonn_nearest('ref', 'ref', exclude_self => true, ties => 'all');
SELECT count(*) FROM geonn_within('obs', 'ref', 1000);
SELECT count(*) FROM geonn_within('obs', 'ref', 1000, keep_unmatched => true);
SELECT count(*) FROM geonn_nearest_points('{1, NULL}', '{2, 3}', 'ref', k => 2);
SELECT count(*) FROM geonn_nearest('obs', 'ref', invalid => 'error');
SELECT * FROM calls WHERE arguments <> '';
SELECT count(*) > 0 AS nameless FROM geonn_stat
WHERE function = 'geonn_nearest_points' AND obs IS NULL AND obs_name IS NULL;

-- rows that a LIMIT leaves are not counted, and those of a cursor are
SELECT count(*) FROM (SELECT FROM geonn_nearest('obs', 'ref', k => 7) LIMIT 25) n;
BEGIN;
DECLARE few CURSOR FOR SELECT obs_id FROM geonn_nearest('obs', 'ref', k => 8);
MOVE 33 FROM few;

-- under way
SELECT pid = pg_backend_pid() AS own, sessions, datname = current_database() AS here,
       usename = current_user AS mine, function, obs_name, ref_name, arguments, phase IS NOT NULL AS phase,
       observations_done > 0 AS some, observations_expected, references_read, device IS NOT NULL AS device,
       started_at BETWEEN now() AND clock_timestamp() AS started
FROM geonn_stat_progress WHERE pid = pg_backend_pid();
COMMIT;
SELECT count(*) FROM geonn_stat_progress WHERE pid = pg_backend_pid();
SELECT arguments, calls, failed, rows FROM calls WHERE arguments IN ('k => 7', 'k => 8');

-- long arguments are cut
SELECT format('ALTER TABLE obs ADD COLUMN %s integer DEFAULT 1', repeat('x', 60)) \gexec
SELECT count(*) FROM geonn_nearest('obs', 'ref', options => jsonb_build_object(
	'obs_id', repeat('x', 60), 'algorithm', 'brute', 'device', 'cpu', 'obs_lat', repeat('x', 60), 'obs_lon', repeat('x', 60)));
SELECT length(arguments), right(arguments, 4) FROM calls WHERE arguments LIKE 'options%';

-- the times of phases add up; points that a session has answered alone are no bytes
SELECT count(*) AS wrong FROM geonn_stat
WHERE abs(total_time - queued_time - reading_references_time - sorting_references_time - building_time - searching_time -
          waiting_time - reading_observations_time) > 0.001
   OR least(queued_time, reading_references_time, sorting_references_time, building_time, searching_time, waiting_time,
            reading_observations_time) < 0
   OR stats_since > now() OR (bytes < 24 * references_read + 16 * observations AND batches > 0 AND function <> 'geonn_nearest_points') OR (last_error IS NULL) <> (last_error_at IS NULL);

-- others see that there are calls, but not of what, unless they may read all statistics
CREATE ROLE regress_geonn_watcher;
CREATE ROLE regress_geonn_reader IN ROLE pg_read_all_stats;
GRANT USAGE ON SCHEMA statistics TO regress_geonn_watcher, regress_geonn_reader;
SET ROLE regress_geonn_watcher;
SELECT count(*) > 1 AS calls, count(obs) AS obs, count(obs_name) AS obs_name, count(ref) AS ref, count(ref_name) AS ref_name,
    count(arguments) AS arguments
FROM geonn_stat WHERE datname = current_database() AND function = 'geonn_within';
SELECT geonn_stat_reset();
SET ROLE regress_geonn_reader;
SELECT function, obs_name, ref_name, arguments, calls
FROM geonn_stat WHERE obs = 'statistics.obs'::regclass AND ref = 'statistics.ref'::regclass AND function = 'geonn_within' ORDER BY rows;
SELECT geonn_stat_reset();
RESET ROLE;

-- relations that are gone have no names
SELECT 'obs'::regclass::oid AS gone \gset
DROP VIEW calls;
ALTER TABLE obs RENAME TO other;
SELECT DISTINCT obs_name FROM geonn_stat WHERE obs = :gone;
DROP TABLE other;
SELECT DISTINCT obs_name FROM geonn_stat WHERE obs = :gone;

-- who may have calls logged
-- the message differs between releases of PostgreSQL
\set VERBOSITY sqlstate
SET geonn.log_min_duration = -2;
\set VERBOSITY default
SET ROLE regress_geonn_watcher;
SET geonn.log_min_duration = 0;
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA statistics CASCADE;
DROP ROLE regress_geonn_watcher, regress_geonn_reader;
