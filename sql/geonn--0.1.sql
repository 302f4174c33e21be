\echo Use "CREATE EXTENSION geonn" to load this file. \quit

CREATE TYPE geonn_pair AS (
	obs_id bigint,
	ref_id bigint,
	distance double precision
);
COMMENT ON TYPE geonn_pair IS
'an observation, its neighbour, and the metres between them';

-- What the planner asks about geonn_nearest.
CREATE FUNCTION geonn_nearest_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION geonn_nearest_support(internal) IS
'planner support for geonn_nearest';

-- One row for each observation, in no particular order: the reference that is
-- first in the order (distance, reference id), and the distance in metres as
-- geonn_distance gives it.  obs and ref are tables, partitioned tables, views,
-- materialized views or foreign tables; geonn_describe tells which of their
-- columns are used.  They are read with the snapshot of the calling statement
-- and the privileges of its user.
--
-- Rows with a NULL id or coordinate are no candidates.  Rows with a coordinate
-- that is NaN, infinite or out of range (latitude -90 ... 90, longitude
-- -180 ... 360 degrees) are skipped with one warning for each relation.  Where
-- ref has no candidate there are no rows, and obs is not read.
--
-- The searches run on the device that the setting geonn.device chooses; the
-- rows are the same on all of them.
CREATE FUNCTION geonn_nearest(obs regclass, ref regclass)
	RETURNS SETOF geonn_pair
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_nearest_support;
COMMENT ON FUNCTION geonn_nearest(regclass, regclass) IS
'for each row of obs the nearest row of ref, with the distance in metres';

-- Metres between two points given in degrees: with the metric 'sphere' along
-- the great circle of the sphere of radius 6371008.7714150598 m, with 'spheroid'
-- along the geodesic of WGS84, by PROJ.  Latitudes are from -90 to 90,
-- longitudes from -180 to 360; anything else is an error (SQLSTATE 22023), and
-- so is another metric.
CREATE FUNCTION geonn_distance(lat1 double precision, lon1 double precision,
							   lat2 double precision, lon2 double precision,
							   metric text DEFAULT 'sphere')
	RETURNS double precision
	AS 'MODULE_PATHNAME' LANGUAGE C
	IMMUTABLE STRICT PARALLEL SAFE
	COST 10;
COMMENT ON FUNCTION geonn_distance(double precision, double precision,
								   double precision, double precision, text) IS
'metres between two points of latitude and longitude in degrees';

-- The columns that geonn_nearest uses of a relation, or the error that it
-- raises where it cannot tell.
CREATE FUNCTION geonn_describe(rel regclass,
							   OUT role text,		-- id, latitude, longitude
							   OUT column_name name,
							   OUT type regtype,
							   OUT reason text)		-- why it was chosen
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE STRICT PARALLEL SAFE
	ROWS 3;
COMMENT ON FUNCTION geonn_describe(regclass) IS
'which columns of a relation are its id and its coordinates, and why';

-- How the engine is.  Starts nothing, and takes about a second at most.
CREATE FUNCTION geonn_status(
		OUT state text,			-- stopped, starting, running, not answering, failed
		OUT supervisor_pid integer,
		OUT engine_pid integer,
		OUT version text,		-- of the engine
		OUT devices integer,	-- that geonn.device = auto uses
		OUT sessions integer,	-- statements at work
		OUT datasets integer,	-- sets of references held
		OUT searches integer,	-- batches waiting or being searched
		OUT transfer_memory bigint,			-- bytes shared with sessions
		OUT transfer_memory_limit bigint,	-- bytes
		OUT started_at timestamptz,
		OUT reason text)		-- why it is not running, or why on no GPU
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION geonn_status() IS
'state of the geonn engine, without starting it';

CREATE FUNCTION geonn_device_status(
		OUT device integer,		-- 0 is the CPU
		OUT kind text,			-- cpu, cuda
		OUT name text,
		OUT uuid text,			-- of a GPU
		OUT state text,			-- ready, failed
		OUT used boolean,		-- where geonn.device = auto
		OUT threads integer,	-- of the CPU
		OUT compute_capability text,	-- of a GPU
		OUT memory_total bigint,		-- bytes
		OUT memory_free bigint,			-- bytes
		OUT batches bigint,		-- searched since the engine started
		OUT reason text)		-- why it failed
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL RESTRICTED
	ROWS 2;
COMMENT ON FUNCTION geonn_device_status() IS
'the rows of the view geonn_devices';

CREATE VIEW geonn_devices AS SELECT * FROM geonn_device_status();
COMMENT ON VIEW geonn_devices IS
'the CPU and the GPUs that the geonn engine has; starts the engine';
GRANT SELECT ON geonn_devices TO PUBLIC;
