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
		OUT sessions_waiting integer,	-- statements that wait for others to end
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
		OUT utilization integer,		-- of a GPU: percent of the time
		OUT temperature integer,		-- of a GPU: degrees Celsius
		OUT power double precision,		-- of a GPU: watts
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

-- ---- caches: tables of neighbours that are kept up to date ----

-- What caches there are.  Users read the view geonn_caches.
CREATE SEQUENCE geonn_cache_id AS integer;
CREATE TABLE geonn_cache (
	id integer PRIMARY KEY DEFAULT nextval('geonn_cache_id'),
	name text NOT NULL UNIQUE,
	target regclass NOT NULL UNIQUE,	-- the table with the neighbours; its owner is the cache's
	obs regclass NOT NULL,
	ref regclass NOT NULL,
	k integer,							-- NULL: all within radius
	max_distance double precision,
	radius double precision,
	metric text NOT NULL,
	by name[],
	exclude_self boolean NOT NULL,
	keep_unmatched boolean NOT NULL,
	ties text NOT NULL,
	invalid text NOT NULL,
	options jsonb NOT NULL,
	changed_since name,					-- column of obs, or NULL
	schedule text						-- as geonn_schedule was given it
);
COMMENT ON TABLE geonn_cache IS 'tables of neighbours that geonn_refresh keeps up to date';
SELECT pg_catalog.pg_extension_config_dump('geonn_cache', '');
SELECT pg_catalog.pg_extension_config_dump('geonn_cache_id', '');

-- Runs of geonn_refresh, geonn.log_keep of each cache.
CREATE TABLE geonn_cache_run (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	cache integer NOT NULL,
	started timestamptz NOT NULL,
	finished timestamptz,
	status text NOT NULL,				-- running, succeeded, failed, skipped
	pid integer NOT NULL,
	mode text,							-- fill, full, incremental, unchanged
	reason text,						-- of the mode
	searched bigint,					-- observations, where they were counted
	rows bigint,						-- of the table, afterwards
	inserted bigint,
	updated bigint,
	deleted bigint,
	error text
);
CREATE INDEX ON geonn_cache_run (cache, id);
COMMENT ON TABLE geonn_cache_run IS 'the latest runs of geonn_refresh';

-- How often each cache was refreshed, beyond what is in the log.
CREATE TABLE geonn_cache_total (
	cache integer PRIMARY KEY,
	runs bigint NOT NULL,				-- that succeeded
	failures bigint NOT NULL
);

-- What the last run saw, of which cache_seen.c, cache_since.c and cache_copy.c have the essays.  It
-- can be had anew, so it is in no WAL and no dump.
CREATE UNLOGGED TABLE geonn_cache_seen (
	cache integer PRIMARY KEY,
	valid boolean NOT NULL,				-- else the first run has yet to end
	signature text NOT NULL,			-- what the cache asked, of which types
	rows bigint NOT NULL,				-- of the table
	labels bytea[] NOT NULL,			-- of obs and ref; empty where there is none
	seeds bigint[] NOT NULL,			-- of the copies' hashes
	since timestamptz,					-- for changed_since: what is not older may be new
	copied boolean NOT NULL,			-- are there copies?
	futile integer NOT NULL,			-- copies in a row that were of no use
	pause integer NOT NULL				-- runs until another one is made
);
CREATE UNLOGGED TABLE geonn_cache_part (
	cache integer,
	side smallint,						-- 0: obs, 1: ref
	number integer,
	contents bytea NOT NULL,
	PRIMARY KEY (cache, side, number)
) WITH (toast_tuple_target = 8160);
ALTER TABLE geonn_cache_part ALTER contents SET STORAGE EXTERNAL;
CREATE UNLOGGED TABLE geonn_cache_directory (
	cache integer,
	side smallint,
	number integer,
	contents bytea NOT NULL,
	PRIMARY KEY (cache, side, number)
);
ALTER TABLE geonn_cache_directory ALTER contents SET STORAGE EXTERNAL;

-- A table of the neighbours of obs in ref, with the columns obs_id, rank, ref_id
-- and distance, filled and then kept up to date by geonn_refresh.  Its primary key is
-- (obs_id, rank): an id that obs has twice is an error.
--
-- name				of the cache, as the other functions take it
-- k ... options	as for geonn_nearest; with radius, as for geonn_within
-- target			name of the table to make, with or without schema; NULL: the
--					cache's name
-- radius			metres: all references within it, instead of k
-- changed_since	a column of obs of type timestamptz, which every INSERT and UPDATE
--					sets to now() or later: a refresh reads only the rows that may be
--					new by it.  Rows that are deleted are then noticed by full
--					refreshes alone
--
-- Whoever calls it owns the table and the cache; refreshes run as the table's
-- owner.  Returns the table.
CREATE FUNCTION geonn_cache_create(name text, obs regclass, ref regclass,
								   k integer DEFAULT 1,
								   max_distance double precision DEFAULT NULL,
								   metric text DEFAULT 'sphere',
								   by name[] DEFAULT NULL,
								   exclude_self boolean DEFAULT false,
								   keep_unmatched boolean DEFAULT false,
								   ties text DEFAULT 'first',
								   invalid text DEFAULT 'skip',
								   options jsonb DEFAULT '{}',
								   target text DEFAULT NULL,
								   radius double precision DEFAULT NULL,
								   changed_since name DEFAULT NULL)
	RETURNS regclass
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_cache_create(text, regclass, regclass, integer, double precision, text,
									   name[], boolean, boolean, text, text, jsonb, text,
									   double precision, name) IS
'makes a table of neighbours that geonn_refresh keeps up to date';

-- Changes what a cache asks, or its name: changes has any of name, k, max_distance,
-- radius, metric, by, exclude_self, keep_unmatched, ties, invalid, options and
-- changed_since.  The table's rows change with the next refresh.
CREATE FUNCTION geonn_cache_alter(name text, changes jsonb) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_cache_alter(text, jsonb) IS
'changes what a cache asks, or its name';

-- Drops a cache with its table and its schedule; or keeps the table as it is.
CREATE FUNCTION geonn_cache_drop(name text, keep_table boolean DEFAULT false) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_cache_drop(text, boolean) IS
'drops a cache and its table';

-- Makes a cache's table what a search would return now.  mode is 'full': search
-- for all observations; 'incremental': for those whose neighbours may have
-- changed, if there is a copy of what the last run saw; or 'auto', whichever is
-- less work.  Writes the rows that differ, and no others.  Called outside a
-- transaction block it keeps a record of failures, too.
CREATE PROCEDURE geonn_refresh(name text, mode text DEFAULT 'auto')
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON PROCEDURE geonn_refresh(text, text) IS
'brings the table of a cache up to date';

-- The same for all caches of the current user, one after the other; a failure of
-- one is a warning.
CREATE PROCEDURE geonn_refresh_all(mode text DEFAULT 'auto')
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON PROCEDURE geonn_refresh_all(text) IS
'brings the tables of all caches of the current user up to date';

-- Of the tables' triggers: somebody else has changed the rows, so that the next
-- refresh looks at all of them.
CREATE FUNCTION geonn_cache_changed() RETURNS trigger
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON FUNCTION geonn_cache_changed() IS
'has the next refresh of a cache look at all rows of its table';

-- Has pg_cron refresh a cache: schedule is one of cron's, as '*/5 * * * *', or, from
-- pg_cron 1.5 on, '30 seconds'.  A schedule takes the place of the former one.
-- The job runs as the owner of the cache's table, and it is the owner who needs
-- USAGE on schema cron.  Returns pg_cron's number of the job.
CREATE FUNCTION geonn_schedule(name text, schedule text) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_schedule(text, text) IS
'has pg_cron refresh a cache';

-- Ends that.  Returns whether there was a schedule.
CREATE FUNCTION geonn_unschedule(name text) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_unschedule(text) IS
'has pg_cron refresh a cache no more';

-- The first start after that time by a schedule of pg_cron; of one in seconds, the
-- latest that it can be.  NULL for '@reboot', and where there is none within 40 years.
CREATE FUNCTION geonn_next_start(schedule text, after timestamptz DEFAULT now(),
								 time_zone text DEFAULT 'GMT')
	RETURNS timestamptz
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION geonn_next_start(text, timestamptz, text) IS
'when a schedule of pg_cron is due';

-- For the view geonn_caches: of the job that pg_cron has, which may be inactive or gone.
CREATE FUNCTION geonn_cache_next_start(cache integer, name text, owner oid) RETURNS timestamptz
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_cache_next_start(integer, text, oid) IS
'when pg_cron refreshes a cache next';

-- The caches of roles that the current user is a member of; to pg_read_all_stats
-- all of them.
CREATE VIEW geonn_caches AS
	SELECT c.name, c.target, pg_catalog.pg_get_userbyid(t.relowner) AS owner, c.obs, c.ref,
		r.started AS last_start,
		r.finished AS last_finish,
		-- a process that ended without a word has left its row as it was
		CASE WHEN r.status = 'running' AND NOT EXISTS (
				SELECT FROM pg_catalog.pg_locks l
				WHERE l.locktype = 'object' AND l.granted AND l.pid = r.pid
				AND l.classid = 'geonn_cache'::pg_catalog.regclass
				AND l.objid = c.id::pg_catalog.oid)
			THEN 'interrupted' ELSE r.status END AS status,
		r.error, r.mode,
		r.rows, r.inserted + r.updated + r.deleted AS rows_changed,
		coalesce(n.runs, 0) AS runs, coalesce(n.failures, 0) AS failures,
		c.schedule,
		geonn_cache_next_start(c.id, c.name, t.relowner) AS next_start
	FROM geonn_cache c
		LEFT JOIN pg_catalog.pg_class t ON t.oid = c.target
		LEFT JOIN geonn_cache_total n ON n.cache = c.id
		LEFT JOIN LATERAL (
			SELECT * FROM geonn_cache_run r
			WHERE r.cache = c.id AND r.status <> 'skipped'
			ORDER BY r.id DESC LIMIT 1) r ON true
	WHERE t.oid IS NULL
		OR pg_catalog.pg_has_role(t.relowner, 'USAGE')
		OR pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE');
COMMENT ON VIEW geonn_caches IS
'tables of neighbours that are kept up to date, and how their last refresh went';
GRANT SELECT ON geonn_caches TO PUBLIC;

CREATE VIEW geonn_cache_log AS
	SELECT c.name, r.started, r.finished, r.status, r.pid, r.mode, r.reason,
		r.searched, r.rows, r.inserted, r.updated, r.deleted, r.error
	FROM geonn_cache_run r
		JOIN geonn_cache c ON c.id = r.cache
		LEFT JOIN pg_catalog.pg_class t ON t.oid = c.target
	WHERE t.oid IS NULL
		OR pg_catalog.pg_has_role(t.relowner, 'USAGE')
		OR pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')
	ORDER BY r.id;
COMMENT ON VIEW geonn_cache_log IS 'the latest refreshes of each cache';
GRANT SELECT ON geonn_cache_log TO PUBLIC;

-- ---- watching ----

-- Calls under way: one row for each call of a join, whichever processes work for it.
-- Names and arguments of other users' calls are for members of pg_read_all_stats;
-- those of calls in other databases are NULL.
CREATE FUNCTION geonn_progress(
		OUT pid integer,		-- of the process that is called
		OUT sessions integer,	-- that it and its workers have with the engine
		OUT datid oid,
		OUT userid oid,
		OUT function text,
		OUT obs oid,			-- NULL for queries and arrays
		OUT obs_name text,
		OUT ref oid,
		OUT ref_name text,
		OUT arguments text,		-- those that do not have their defaults
		OUT phase text,
		OUT observations_done bigint,
		OUT observations_expected bigint,	-- as estimated; NULL where nobody knows
		OUT references_read bigint,
		OUT device text,		-- that work for it, or did: CPU, GPU 1, ...
		OUT started_at timestamptz)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL RESTRICTED
	ROWS 10;
COMMENT ON FUNCTION geonn_progress() IS
'the rows of the view geonn_stat_progress';

CREATE VIEW geonn_stat_progress AS
	SELECT p.pid, p.sessions, p.datid, d.datname, p.userid, pg_get_userbyid(p.userid) AS usename,
		   p.function, p.obs, p.obs_name, p.ref, p.ref_name, p.arguments, p.phase,
		   p.observations_done, p.observations_expected, p.references_read, p.device,
		   p.started_at
	FROM geonn_progress() p LEFT JOIN pg_database d ON d.oid = p.datid;
COMMENT ON VIEW geonn_stat_progress IS
'calls of joins under way, and how far they are';
GRANT SELECT ON geonn_stat_progress TO PUBLIC;

-- Calls that have ended, since the engine started or the last reset: one row for each
-- database, user, function, pair of relations and arguments.  Of 1,000 of them figures
-- are kept, of those called last.  The times of the phases add up to the total.
CREATE FUNCTION geonn_statistics(
		OUT datid oid,
		OUT userid oid,
		OUT function text,
		OUT obs oid,			-- NULL for queries and arrays
		OUT obs_name text,
		OUT ref oid,
		OUT ref_name text,
		OUT arguments text,		-- those that do not have their defaults
		OUT calls bigint,
		OUT failed bigint,		-- of these: cancelled, or ended by an error
		OUT rows bigint,		-- returned
		OUT observations bigint,			-- answered by the engine
		OUT observations_skipped bigint,	-- for their NULLs or coordinates
		OUT unmatched bigint,	-- other observations without a neighbour
		OUT references_read bigint,
		OUT references_skipped bigint,
		OUT references_kept bigint,	-- calls that found them in the engine
		OUT batches bigint,
		OUT bytes bigint,		-- through batches, to and from the engine
		OUT fallbacks bigint,	-- smaller batches, second attempts, CPU for GPU
		OUT total_time double precision,	-- milliseconds
		OUT queued_time double precision,	-- waiting for a session
		OUT reading_references_time double precision,
		OUT sorting_references_time double precision,
		OUT building_time double precision,
		OUT searching_time double precision,
		OUT waiting_time double precision,	-- for a device
		OUT reading_observations_time double precision,
		OUT last_error text,	-- of the engine
		OUT last_error_at timestamptz,
		OUT stats_since timestamptz)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL RESTRICTED
	ROWS 100;
COMMENT ON FUNCTION geonn_statistics() IS
'the rows of the view geonn_stat';

CREATE VIEW geonn_stat AS
	SELECT s.datid, d.datname, s.userid, pg_get_userbyid(s.userid) AS usename, s.function,
		   s.obs, s.obs_name, s.ref, s.ref_name, s.arguments, s.calls, s.failed, s.rows,
		   s.observations, s.observations_skipped, s.unmatched, s.references_read,
		   s.references_skipped, s.references_kept, s.batches, s.bytes, s.fallbacks,
		   s.total_time, s.queued_time, s.reading_references_time, s.sorting_references_time,
		   s.building_time, s.searching_time, s.waiting_time, s.reading_observations_time,
		   s.last_error, s.last_error_at, s.stats_since
	FROM geonn_statistics() s LEFT JOIN pg_database d ON d.oid = s.datid;
COMMENT ON VIEW geonn_stat IS
'calls of joins that have ended: their rows, their times, their errors';
GRANT SELECT ON geonn_stat TO PUBLIC;

CREATE FUNCTION geonn_stat_reset() RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION geonn_stat_reset() IS
'forget the figures of geonn_stat, those of all databases';
REVOKE ALL ON FUNCTION geonn_stat_reset() FROM PUBLIC;
