-- geonn_status() and geonn_devices, whatever the devices are
-- rooms: base watch supervisor
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA status;
SET search_path = status, public;

-- one row, in whatever state the engine is
SELECT count(*), bool_and(state IS NOT NULL) AS known FROM geonn_status();

-- starts the engine if none runs, and is done when it serves
SELECT geonn_engine_start() = (SELECT engine_pid FROM geonn_status()) AS started;
SELECT geonn_engine_start() = geonn_engine_start() AS once;

-- the CPU is always there
SELECT device, kind, state, uuid, compute_capability, reason,
       name <> '' AS named, threads > 0 AS has_threads,
       memory_total > 0 AS has_memory, memory_free BETWEEN 0 AND memory_total AS plausible,
       utilization, temperature, power, batches >= 0 AS counts
FROM geonn_devices WHERE device = 0;
SELECT count(*) AS strange FROM geonn_devices
WHERE kind NOT IN ('cpu', 'cuda')
   OR state NOT IN ('ready', 'failed')
   OR (kind = 'cpu') <> (threads IS NOT NULL)
   OR (kind = 'cuda' AND state = 'ready' AND (compute_capability IS NULL OR uuid IS NULL))
   OR (state = 'failed') <> (reason IS NOT NULL)
   OR (used AND state <> 'ready')
   OR utilization NOT BETWEEN 0 AND 100 OR temperature NOT BETWEEN 0 AND 150 OR power NOT BETWEEN 0 AND 5000;
SELECT count(*) > 0 AS auto_has_a_device FROM geonn_devices WHERE used;

SELECT state, supervisor_pid > 0 AS has_supervisor, engine_pid > 0 AS has_engine,
       version = (SELECT extversion FROM pg_extension WHERE extname = 'geonn') AS same_version,
       devices = (SELECT count(*) FROM geonn_devices WHERE used) AS devices,
       transfer_memory_limit = pg_size_bytes(current_setting('geonn.transfer_memory_limit')) AS "limit",
       started_at <= now() AS started,
       (reason IS NULL) = EXISTS (SELECT FROM geonn_devices WHERE kind = 'cuda' AND state = 'ready') AS reason
FROM geonn_status();

-- a search is seen in it, and leaves nothing behind
CREATE TABLE point (id integer, lat float8, lon float8);
INSERT INTO point SELECT i, i % 90, i % 180 FROM generate_series(1, 10000) i;
SELECT sum(batches) AS batches FROM geonn_devices \gset
SELECT count(*) FROM geonn_nearest('point', 'point');
SELECT sum(batches) > :batches AS more FROM geonn_devices;
SELECT sessions, sessions_waiting AS waiting, datasets - datasets_kept AS datasets, searches,
       transfer_memory BETWEEN 0 AND transfer_memory_limit AS within,
       (kept_memory > 0) = (datasets_kept > 0) AS kept
FROM geonn_status();

-- settings
SELECT name, boot_val, unit, min_val, max_val, enumvals, context
FROM pg_settings WHERE name LIKE 'geonn.%' ORDER BY name;
SET geonn.device = 'gpu';
SET geonn.devices = 'cpu';
SET geonn.transfer_memory_limit = '64MB';
SET geonn.device = 'cpu';
SELECT count(*) FROM geonn_nearest('point', 'point');
RESET geonn.device;

SET client_min_messages = warning;
DROP SCHEMA status CASCADE;
