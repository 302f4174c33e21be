\echo Use "CREATE EXTENSION geonn" to load this file. \quit

CREATE TYPE geonn_pair AS (
	obs_id bigint,
	ref_id bigint,
	distance double precision
);
COMMENT ON TYPE geonn_pair IS
'an observation, its neighbour, and the metres between them';

CREATE TYPE geonn_point_pair AS (
	ord bigint,
	ref_id bigint,
	distance double precision
);
COMMENT ON TYPE geonn_point_pair IS
'the number of a point, its neighbour, and the metres between them';

-- What the planner asks about the joins below.
CREATE FUNCTION geonn_nearest_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION geonn_nearest_support(internal) IS
'planner support for geonn_nearest and geonn_nearest_sql';
CREATE FUNCTION geonn_within_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION geonn_within_support(internal) IS
'planner support for geonn_within and geonn_within_sql';
CREATE FUNCTION geonn_points_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION geonn_points_support(internal) IS
'planner support for geonn_nearest_points';

-- For each observation its k nearest references: the first in the order
-- (distance, reference id, latitude, longitude), the distance in metres being
-- what geonn_distance gives, and ids in the btree order of their type and
-- collation.  Rows of one observation are adjacent and in this order, the
-- observations in none.
--
-- obs, ref			tables, partitioned tables, views, materialized views or
--					foreign tables; geonn_describe tells which of their columns are
--					used.  They are read with the snapshot of the calling statement
--					and the privileges of its user.
-- k				1 ... 1024; there are fewer where there are fewer references
-- max_distance		metres, inclusive; NULL: however far
-- metric			'sphere' or 'spheroid'
-- by				columns that both have, of the same types: only references
--					that equal the observation in all of them count
-- exclude_self		leave out references whose id equals the observation's
-- keep_unmatched	as a left join does: observations without a neighbour come
--					once, with NULL in place of the reference and rank 1
-- ties				'first' or 'all': also what is as far as the k-th
-- invalid			what to do with coordinates that are NaN, infinite or out of
--					range (latitude -90 ... 90, longitude -180 ... 360): 'skip' such
--					rows with one warning for each relation, or raise an 'error'
--					that names the first
-- options			obs_id, obs_lat, obs_lon, obs_geog, ref_id, ref_lat, ref_lon,
--					ref_geog: names of columns; device, algorithm: instead of the
--					settings geonn.device and geonn.algorithm; batch_rows:
--					observations sent at a time
-- row_type			NULL of the composite type that the rows are to have, with
--					any of the columns obs_id, ref_id, distance, rank, obs_lat,
--					obs_lon, ref_lat, ref_lon, bearing
--
-- Rows with a NULL id or coordinate are no candidates.  Where ref has no candidate
-- obs is not read, unless its rows are kept.  The rows are the same on all
-- devices and by all algorithms.
CREATE FUNCTION geonn_nearest(obs regclass, ref regclass,
							  k integer DEFAULT 1,
							  max_distance double precision DEFAULT NULL,
							  metric text DEFAULT 'sphere',
							  by name[] DEFAULT NULL,
							  exclude_self boolean DEFAULT false,
							  keep_unmatched boolean DEFAULT false,
							  ties text DEFAULT 'first',
							  invalid text DEFAULT 'skip',
							  options jsonb DEFAULT '{}',
							  row_type anyelement DEFAULT NULL::geonn_pair)
	RETURNS SETOF anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_nearest_support;
COMMENT ON FUNCTION geonn_nearest(regclass, regclass, integer, double precision, text, name[],
								  boolean, boolean, text, text, jsonb, anyelement) IS
'for each row of obs the nearest rows of ref, with the distance in metres';

-- The same for what two queries return: one SELECT each, with columns id, lat
-- and lon, or id and a point, and those of the argument by.
CREATE FUNCTION geonn_nearest_sql(obs_sql text, ref_sql text,
								  k integer DEFAULT 1,
								  max_distance double precision DEFAULT NULL,
								  metric text DEFAULT 'sphere',
								  by name[] DEFAULT NULL,
								  exclude_self boolean DEFAULT false,
								  keep_unmatched boolean DEFAULT false,
								  ties text DEFAULT 'first',
								  invalid text DEFAULT 'skip',
								  options jsonb DEFAULT '{}',
								  row_type anyelement DEFAULT NULL::geonn_pair)
	RETURNS SETOF anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_nearest_support;
COMMENT ON FUNCTION geonn_nearest_sql(text, text, integer, double precision, text, name[],
									  boolean, boolean, text, text, jsonb, anyelement) IS
'for each row of one query the nearest rows of another, with the distance in metres';

-- Every pair of an observation and a reference that are at most radius metres
-- apart; arguments and rows as those of geonn_nearest.
CREATE FUNCTION geonn_within(obs regclass, ref regclass,
							 radius double precision,
							 metric text DEFAULT 'sphere',
							 by name[] DEFAULT NULL,
							 exclude_self boolean DEFAULT false,
							 keep_unmatched boolean DEFAULT false,
							 invalid text DEFAULT 'skip',
							 options jsonb DEFAULT '{}',
							 row_type anyelement DEFAULT NULL::geonn_pair)
	RETURNS SETOF anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_within_support;
COMMENT ON FUNCTION geonn_within(regclass, regclass, double precision, text, name[], boolean,
								 boolean, text, jsonb, anyelement) IS
'every pair of rows of obs and ref that are within a radius in metres';

CREATE FUNCTION geonn_within_sql(obs_sql text, ref_sql text,
								 radius double precision,
								 metric text DEFAULT 'sphere',
								 by name[] DEFAULT NULL,
								 exclude_self boolean DEFAULT false,
								 keep_unmatched boolean DEFAULT false,
								 invalid text DEFAULT 'skip',
								 options jsonb DEFAULT '{}',
								 row_type anyelement DEFAULT NULL::geonn_pair)
	RETURNS SETOF anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_within_support;
COMMENT ON FUNCTION geonn_within_sql(text, text, double precision, text, name[], boolean,
									 boolean, text, jsonb, anyelement) IS
'every pair of rows of two queries that are within a radius in metres';

-- The nearest references of points that are given as two arrays, of latitudes
-- and of longitudes; ord is a point's place in them, from 1 on.  A row_type may
-- have the columns ord, ref_id, distance, rank, obs_lat, obs_lon, ref_lat,
-- ref_lon and bearing.
CREATE FUNCTION geonn_nearest_points(lat double precision[], lon double precision[],
									 ref regclass,
									 k integer DEFAULT 1,
									 max_distance double precision DEFAULT NULL,
									 metric text DEFAULT 'sphere',
									 keep_unmatched boolean DEFAULT false,
									 ties text DEFAULT 'first',
									 invalid text DEFAULT 'skip',
									 options jsonb DEFAULT '{}',
									 row_type anyelement DEFAULT NULL::geonn_point_pair)
	RETURNS SETOF anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 100
	SUPPORT geonn_points_support;
COMMENT ON FUNCTION geonn_nearest_points(double precision[], double precision[], regclass,
										 integer, double precision, text, boolean, text, text,
										 jsonb, anyelement) IS
'for each of the points in two arrays the nearest rows of ref';

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

-- What to know of a relation's points before a join: counts of rows.  options
-- may name columns by id, lat, lon and geog; else they are found as for
-- geonn_nearest.  duplicate_coordinates and duplicate_ids count the rows beyond
-- the first of each place and id; the latter is NULL where the ids' type has no
-- order.
CREATE FUNCTION geonn_check(rel regclass, options jsonb DEFAULT '{}',
							OUT rows bigint,
							OUT null_ids bigint,
							OUT null_coordinates bigint,
							OUT not_finite bigint,				-- NaN, infinite
							OUT latitude_out_of_range bigint,	-- -90 ... 90
							OUT longitude_out_of_range bigint,	-- -180 ... 360
							OUT zero_zero bigint,				-- both are 0
							OUT longitude_over_180 bigint,		-- up to 360
							OUT duplicate_coordinates bigint,
							OUT duplicate_ids bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE STRICT PARALLEL RESTRICTED
	COST 10000;
COMMENT ON FUNCTION geonn_check(regclass, jsonb) IS
'counts of what a join would leave out of a relation, or may surprise by';

-- How the engine is.  Starts nothing, and takes about a second at most.
CREATE FUNCTION geonn_status(
		OUT state text,			-- stopped, starting, running, not answering, failed
		OUT supervisor_pid integer,
		OUT engine_pid integer,
		OUT version text,		-- of the engine
		OUT devices integer,	-- that geonn.device = auto uses
		OUT sessions integer,	-- statements at work
		OUT datasets integer,	-- sets of references held
		OUT datasets_kept integer,	-- of these: also when no statement uses them
		OUT searches integer,	-- batches waiting or being searched
		OUT transfer_memory bigint,			-- bytes shared with sessions
		OUT transfer_memory_limit bigint,	-- bytes
		OUT kept_memory bigint,	-- bytes that kept datasets take
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
