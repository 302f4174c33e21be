\echo Use "CREATE EXTENSION geonn" to load this file. \quit

-- How names are found.  PostgreSQL runs this script as a superuser, with a search_path
-- of the extension's schema and then pg_temp; pg_catalog is searched before both.  Other roles may
-- be able to create objects in that schema, beforehand and later.  So:
--
--	 - Functions, operators, types and relations of PostgreSQL's are qualified by pg_catalog, operators
--	   as OPERATOR(pg_catalog.=): among functions and operators a better match of another
--	   schema would win.  Constructs that look up an operator by its bare name are not used
--	   here: IN, CASE x WHEN, BETWEEN, NULLIF, IS DISTINCT FROM, USING.  Literals and the
--	   arguments of functions have exactly the types that are declared.  Types that
--	   SQL's grammar has words for (bigint, boolean, double precision, integer, smallint) are
--	   PostgreSQL's whatever the search_path.
--	 - The extension's own objects stand without a schema, since the extension can be
--	   moved to another one.  Each is made here by a CREATE without OR REPLACE or IF NOT EXISTS,
--	   which fails where an object of that name (of a function: with these arguments) is in the
--	   schema already.  What is made here is not committed yet, so no other session
--	   can rename or replace it meanwhile.  pg_temp comes last for relations and types, and is
--	   never searched for functions and operators.
--	 - Calls of the extension's own functions, and names of them without a call, have
--	   exactly the declared types of all arguments.  An exact match wins against all
--	   others; a planted function that takes the same arguments and more with defaults makes the
--	   call ambiguous, and CREATE EXTENSION fails before anything has run.
--
-- Views, defaults and other expressions are stored with the objects' OIDs, so later objects
-- are of no concern to them.

-- A warning where roles that are not superusers may create objects beside the extension's.
CREATE FUNCTION geonn_warn_of_creators() RETURNS pg_catalog.void
	AS 'MODULE_PATHNAME' LANGUAGE C;
SELECT geonn_warn_of_creators();
DROP FUNCTION geonn_warn_of_creators();

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
CREATE FUNCTION geonn_join_support(pg_catalog.internal) RETURNS pg_catalog.internal
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION geonn_join_support(pg_catalog.internal) IS
'planner support for geonn_nearest, geonn_nearest_sql, geonn_within, geonn_within_sql and geonn_nearest_points';

-- For each observation its k nearest references: the first in the order
-- (distance, reference id, latitude, longitude, bytes), the distance in metres
-- being what geonn_distance gives, ids in the btree order of their type and
-- collation, and bytes in that of ROW(latitude, longitude, id) by
-- OPERATOR(pg_catalog.*<), with coordinates as double precision.  Rows of one
-- observation are adjacent and in this order, the observations in none.
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
--					any of the columns that the README has under row_type
--
-- Rows with a NULL id or coordinate are no candidates.  Where ref has no candidate
-- obs is not read, unless its rows are kept.  The rows are the same on all
-- devices and by all algorithms.
CREATE FUNCTION geonn_nearest(obs pg_catalog.regclass, ref pg_catalog.regclass,
							  k integer DEFAULT 1,
							  max_distance double precision DEFAULT NULL,
							  metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
							  by pg_catalog.name[] DEFAULT NULL,
							  exclude_self boolean DEFAULT false,
							  keep_unmatched boolean DEFAULT false,
							  ties pg_catalog.text DEFAULT 'first'::pg_catalog.text,
							  invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
							  options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
							  row_type pg_catalog.anyelement DEFAULT NULL::geonn_pair)
	RETURNS SETOF pg_catalog.anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_join_support;
COMMENT ON FUNCTION geonn_nearest(pg_catalog.regclass, pg_catalog.regclass, integer,
	double precision, pg_catalog.text, pg_catalog.name[], boolean, boolean, pg_catalog.text,
	pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement) IS
'for each row of obs the nearest rows of ref, with the distance in metres';

-- The same for what two queries return: one SELECT each, with columns id, lat
-- and lon, or id and a point, and those of the argument by.
CREATE FUNCTION geonn_nearest_sql(obs_sql pg_catalog.text, ref_sql pg_catalog.text,
								  k integer DEFAULT 1,
								  max_distance double precision DEFAULT NULL,
								  metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
								  by pg_catalog.name[] DEFAULT NULL,
								  exclude_self boolean DEFAULT false,
								  keep_unmatched boolean DEFAULT false,
								  ties pg_catalog.text DEFAULT 'first'::pg_catalog.text,
								  invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
								  options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
								  row_type pg_catalog.anyelement DEFAULT NULL::geonn_pair)
	RETURNS SETOF pg_catalog.anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_join_support;
COMMENT ON FUNCTION geonn_nearest_sql(pg_catalog.text, pg_catalog.text, integer, double precision,
	pg_catalog.text, pg_catalog.name[], boolean, boolean, pg_catalog.text, pg_catalog.text,
	pg_catalog.jsonb, pg_catalog.anyelement) IS
'for each row of one query the nearest rows of another, with the distance in metres';

-- Every pair of an observation and a reference that are at most radius metres
-- apart; arguments and rows as those of geonn_nearest.
CREATE FUNCTION geonn_within(obs pg_catalog.regclass, ref pg_catalog.regclass,
							 radius double precision,
							 metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
							 by pg_catalog.name[] DEFAULT NULL,
							 exclude_self boolean DEFAULT false,
							 keep_unmatched boolean DEFAULT false,
							 invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
							 options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
							 row_type pg_catalog.anyelement DEFAULT NULL::geonn_pair)
	RETURNS SETOF pg_catalog.anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_join_support;
COMMENT ON FUNCTION geonn_within(pg_catalog.regclass, pg_catalog.regclass, double precision,
	pg_catalog.text, pg_catalog.name[], boolean, boolean, pg_catalog.text, pg_catalog.jsonb,
	pg_catalog.anyelement) IS
'every pair of rows of obs and ref that are within a radius in metres';

CREATE FUNCTION geonn_within_sql(obs_sql pg_catalog.text, ref_sql pg_catalog.text,
								 radius double precision,
								 metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
								 by pg_catalog.name[] DEFAULT NULL,
								 exclude_self boolean DEFAULT false,
								 keep_unmatched boolean DEFAULT false,
								 invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
								 options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
								 row_type pg_catalog.anyelement DEFAULT NULL::geonn_pair)
	RETURNS SETOF pg_catalog.anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_join_support;
COMMENT ON FUNCTION geonn_within_sql(pg_catalog.text, pg_catalog.text, double precision,
	pg_catalog.text, pg_catalog.name[], boolean, boolean, pg_catalog.text, pg_catalog.jsonb,
	pg_catalog.anyelement) IS
'every pair of rows of two queries that are within a radius in metres';

-- The nearest references of points that are given as two arrays, of latitudes
-- and of longitudes; ord is a point's place in them, from 1 on.  A row_type has
-- it in place of obs_id.
CREATE FUNCTION geonn_nearest_points(lat double precision[], lon double precision[],
									 ref pg_catalog.regclass,
									 k integer DEFAULT 1,
									 max_distance double precision DEFAULT NULL,
									 metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
									 keep_unmatched boolean DEFAULT false,
									 ties pg_catalog.text DEFAULT 'first'::pg_catalog.text,
									 invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
									 options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
									 row_type pg_catalog.anyelement DEFAULT NULL::geonn_point_pair)
	RETURNS SETOF pg_catalog.anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 100
	SUPPORT geonn_join_support;
COMMENT ON FUNCTION geonn_nearest_points(double precision[], double precision[],
	pg_catalog.regclass, integer, double precision, pg_catalog.text, boolean, pg_catalog.text,
	pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement) IS
'for each of the points in two arrays the nearest rows of ref';

-- Metres between two points given in degrees: with the metric 'sphere' along
-- the great circle of the sphere of radius 6371008.7714150598 m, with 'spheroid'
-- along the geodesic of WGS84, by PROJ.  Latitudes are from -90 to 90,
-- longitudes from -180 to 360; anything else is an error (SQLSTATE 22023), and
-- so is another metric.
CREATE FUNCTION geonn_distance(lat1 double precision, lon1 double precision,
							   lat2 double precision, lon2 double precision,
							   metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text)
	RETURNS double precision
	AS 'MODULE_PATHNAME' LANGUAGE C
	IMMUTABLE STRICT PARALLEL SAFE
	COST 10;
COMMENT ON FUNCTION geonn_distance(double precision, double precision, double precision,
	double precision, pg_catalog.text) IS
'metres between two points of latitude and longitude in degrees';

-- The columns that geonn_nearest uses of a relation, or the error that it
-- raises where it cannot tell.
CREATE FUNCTION geonn_describe(rel pg_catalog.regclass,
							   OUT role pg_catalog.text,	-- id, latitude, longitude
							   OUT column_name pg_catalog.name,
							   OUT type pg_catalog.regtype,
							   OUT reason pg_catalog.text)	-- why it was chosen
	RETURNS SETOF pg_catalog.record
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE STRICT PARALLEL SAFE
	ROWS 3;
COMMENT ON FUNCTION geonn_describe(pg_catalog.regclass) IS
'which columns of a relation are its id and its coordinates, and why';

-- What to know of a relation's points before a join: counts of rows.  options
-- may name columns by id, lat, lon and geog; else they are found as for
-- geonn_nearest.  duplicate_coordinates and duplicate_ids count the rows beyond
-- the first of each place and id; the latter is NULL where the ids' type has no
-- order.  The extents are those of the rows whose coordinates are valid, NULL where
-- none are: coordinates that are swapped and in range, as all of Europe's are, show
-- there and nowhere else.  A warning says that they may be swapped where all would be
-- valid the other way round and, besides, latitudes are out of range, or options name
-- a column that is called like a longitude as the latitude, and the other way round.
CREATE FUNCTION geonn_check(rel pg_catalog.regclass, options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
							OUT rows bigint,
							OUT null_ids bigint,
							OUT null_coordinates bigint,
							OUT not_finite bigint,				-- NaN, infinite
							OUT latitude_out_of_range bigint,	-- -90 ... 90
							OUT longitude_out_of_range bigint,	-- -180 ... 360
							OUT zero_zero bigint,				-- both are 0
							OUT longitude_over_180 bigint,		-- up to 360
							OUT duplicate_coordinates bigint,
							OUT duplicate_ids bigint,
							OUT latitude_min double precision,
							OUT latitude_max double precision,
							OUT longitude_min double precision,
							OUT longitude_max double precision)
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE STRICT PARALLEL RESTRICTED
	COST 10000;
COMMENT ON FUNCTION geonn_check(pg_catalog.regclass, pg_catalog.jsonb) IS
'counts of what a join would leave out of a relation, or may surprise by, and its extent';

-- How the engine is.  Starts nothing, and takes about a second at most.
CREATE FUNCTION geonn_status(
		OUT state pg_catalog.text,	-- stopped, starting, running, not answering, failed
		OUT supervisor_pid integer,
		OUT engine_pid integer,
		OUT version pg_catalog.text,	-- of the engine
		OUT devices integer,	-- that geonn.device = auto uses
		OUT sessions integer,	-- statements at work
		OUT sessions_waiting integer,	-- statements that wait for others to end
		OUT datasets integer,	-- sets of references held
		OUT datasets_kept integer,	-- of these: also when no statement uses them
		OUT searches integer,	-- batches waiting or being searched
		OUT transfer_memory bigint,			-- bytes shared with sessions
		OUT transfer_memory_limit bigint,	-- bytes
		OUT kept_memory bigint,	-- bytes that kept datasets take
		OUT base_memory bigint,	-- bytes that the engine takes without statements and datasets
		OUT started_at pg_catalog.timestamptz,
		OUT reason pg_catalog.text)	-- why it is not running, or why on no GPU
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION geonn_status() IS
'state of the geonn engine, without starting it';

CREATE FUNCTION geonn_device_status(
		OUT device integer,		-- 0 is the CPU
		OUT kind pg_catalog.text,	-- cpu, cuda
		OUT name pg_catalog.text,
		OUT uuid pg_catalog.text,	-- of a GPU
		OUT state pg_catalog.text,	-- ready, failed
		OUT used boolean,		-- where geonn.device = auto
		OUT threads integer,	-- of the CPU
		OUT compute_capability pg_catalog.text,	-- of a GPU
		OUT memory_total bigint,		-- bytes
		OUT memory_free bigint,			-- bytes
		OUT utilization integer,		-- of a GPU: percent of the time
		OUT temperature integer,		-- of a GPU: degrees Celsius
		OUT power double precision,		-- of a GPU: watts
		OUT batches bigint,		-- searched since the engine started
		OUT reason pg_catalog.text)	-- why it failed
	RETURNS SETOF pg_catalog.record
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

-- All caches.  Users read the view geonn_caches.
CREATE SEQUENCE geonn_cache_id AS integer;
CREATE TABLE geonn_cache (
	id integer PRIMARY KEY DEFAULT pg_catalog.nextval('geonn_cache_id'::pg_catalog.regclass),
	name pg_catalog.text NOT NULL UNIQUE,
	target pg_catalog.regclass NOT NULL UNIQUE,	-- the table with the neighbours; its owner is the cache's
	obs pg_catalog.regclass NOT NULL,
	ref pg_catalog.regclass NOT NULL,
	arguments pg_catalog.jsonb NOT NULL,	-- k ... changed_since of geonn_cache_create, by name
	schedule pg_catalog.text	-- as given to geonn_schedule
);
COMMENT ON TABLE geonn_cache IS 'tables of neighbours that geonn_refresh keeps up to date';
-- pg_dump writes the OID of a dropped relation as a number, which may be another relation's OID where the dump
-- is restored: so dumps leave such caches out.
SELECT pg_catalog.pg_extension_config_dump('geonn_cache'::pg_catalog.regclass,
	'WHERE EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) target::pg_catalog.oid)
	AND EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) obs::pg_catalog.oid)
	AND EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) ref::pg_catalog.oid)'::pg_catalog.text);
SELECT pg_catalog.pg_extension_config_dump('geonn_cache_id'::pg_catalog.regclass, ''::pg_catalog.text);

-- Runs of geonn_refresh, geonn.log_keep of each cache.
CREATE TABLE geonn_cache_run (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	cache integer NOT NULL,
	started pg_catalog.timestamptz NOT NULL,
	finished pg_catalog.timestamptz,
	status pg_catalog.text NOT NULL,	-- running, succeeded, failed, skipped
	pid integer NOT NULL,
	mode pg_catalog.text,	-- fill, full, incremental, unchanged
	reason pg_catalog.text,	-- of the mode
	searched bigint,					-- observations, if they were counted
	rows bigint,						-- of the table, afterwards
	inserted bigint,
	updated bigint,
	deleted bigint,
	error pg_catalog.text
);
CREATE INDEX ON geonn_cache_run (cache, id);
COMMENT ON TABLE geonn_cache_run IS 'the latest runs of geonn_refresh';

-- How often each cache was refreshed, beyond what is in the log.
CREATE TABLE geonn_cache_total (
	cache integer PRIMARY KEY,
	runs bigint NOT NULL,				-- that succeeded
	failures bigint NOT NULL
);

-- What the last run of each cache read: cache/last_run.c, cache/since.c and cache/baseline.c have the essays.
-- A refresh can make it anew, so it is in no WAL and no dump.
CREATE UNLOGGED TABLE geonn_cache_last_run (
	cache integer PRIMARY KEY,
	valid boolean NOT NULL,				-- false until the first run ends
	signature pg_catalog.text NOT NULL,	-- the cache's question and the types of its columns
	rows bigint NOT NULL,				-- of the table
	labels pg_catalog.bytea[] NOT NULL,	-- of obs and ref; empty if unknown
	seeds bigint[] NOT NULL,			-- of the baselines' hashes
	since pg_catalog.timestamptz,	-- for changed_since: rows since then may be new
	baselines boolean NOT NULL,			-- both have been made
	wasted integer NOT NULL,			-- baselines in a row that no run could use
	pause integer NOT NULL				-- runs until others are made
);
CREATE UNLOGGED TABLE geonn_cache_block (
	cache integer,
	side smallint,						-- 0: obs, 1: ref
	number integer,
	contents pg_catalog.bytea NOT NULL,
	PRIMARY KEY (cache, side, number)
) WITH (toast_tuple_target = 8160);
ALTER TABLE geonn_cache_block ALTER contents SET STORAGE EXTERNAL;
CREATE UNLOGGED TABLE geonn_cache_directory (
	cache integer,
	side smallint,
	number integer,
	contents pg_catalog.bytea NOT NULL,
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
--					new by it.  Only full refreshes then notice rows that were
--					deleted
--
-- The calling role owns the table and the cache; refreshes run as the table's
-- owner.  Returns the table.
CREATE FUNCTION geonn_cache_create(name pg_catalog.text, obs pg_catalog.regclass, ref pg_catalog.regclass,
								   k integer DEFAULT 1,
								   max_distance double precision DEFAULT NULL,
								   metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
								   by pg_catalog.name[] DEFAULT NULL,
								   exclude_self boolean DEFAULT false,
								   keep_unmatched boolean DEFAULT false,
								   ties pg_catalog.text DEFAULT 'first'::pg_catalog.text,
								   invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
								   options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
								   target pg_catalog.text DEFAULT NULL,
								   radius double precision DEFAULT NULL,
								   changed_since pg_catalog.name DEFAULT NULL)
	RETURNS pg_catalog.regclass
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_cache_create(pg_catalog.text, pg_catalog.regclass, pg_catalog.regclass,
	integer, double precision, pg_catalog.text, pg_catalog.name[], boolean, boolean,
	pg_catalog.text, pg_catalog.text, pg_catalog.jsonb, pg_catalog.text, double precision,
	pg_catalog.name) IS
'makes a table of neighbours that geonn_refresh keeps up to date';

-- Changes what a cache asks, or its name: changes has any of name, k, max_distance,
-- radius, metric, by, exclude_self, keep_unmatched, ties, invalid, options and
-- changed_since.  The table's rows change with the next refresh.
CREATE FUNCTION geonn_cache_alter(name pg_catalog.text, changes pg_catalog.jsonb) RETURNS pg_catalog.void
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_cache_alter(pg_catalog.text, pg_catalog.jsonb) IS
'changes what a cache asks, or its name';

-- Drops a cache with its table and its schedule; or keeps the table as it is.
CREATE FUNCTION geonn_cache_drop(name pg_catalog.text, keep_table boolean DEFAULT false) RETURNS pg_catalog.void
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_cache_drop(pg_catalog.text, boolean) IS
'drops a cache and its table';

-- Makes a cache's table what a search would return now.  mode is 'full': search
-- for all observations; 'incremental': for those whose neighbours may have
-- changed, if the last run left baselines; or 'auto', whichever is
-- less work.  Writes the rows that differ, and no others.  Called outside a
-- transaction block it keeps a record of failures, too.
CREATE PROCEDURE geonn_refresh(name pg_catalog.text, mode pg_catalog.text DEFAULT 'auto'::pg_catalog.text)
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON PROCEDURE geonn_refresh(pg_catalog.text, pg_catalog.text) IS
'brings the table of a cache up to date';

-- Refreshes all caches of the current user, one after the other; a failure of one
-- is a warning.
CREATE PROCEDURE geonn_refresh_all(mode pg_catalog.text DEFAULT 'auto'::pg_catalog.text)
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON PROCEDURE geonn_refresh_all(pg_catalog.text) IS
'brings the tables of all caches of the current user up to date';

-- Called by the triggers of caches' tables: something other than a refresh has changed rows, so
-- the next refresh compares all of them.
CREATE FUNCTION geonn_cache_changed() RETURNS pg_catalog.trigger
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON FUNCTION geonn_cache_changed() IS
'makes the next refresh of a cache compare all rows of its table';

-- Drops a cache together with its table, whichever command drops that.
CREATE FUNCTION geonn_cache_dropped() RETURNS pg_catalog.event_trigger
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON FUNCTION geonn_cache_dropped() IS
'drops the caches whose tables were dropped';
CREATE EVENT TRIGGER geonn_cache_dropped ON sql_drop EXECUTE FUNCTION geonn_cache_dropped();
ALTER EVENT TRIGGER geonn_cache_dropped ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER geonn_cache_dropped IS
'drops the caches whose tables were dropped';

-- Has pg_cron refresh a cache: schedule is one of cron's, as '*/5 * * * *', or, from
-- pg_cron 1.5 on, '30 seconds'.  A schedule takes the place of the former one.
-- The job runs as the owner of the cache's table, and the owner needs USAGE on
-- schema cron.  Returns pg_cron's number of the job.
CREATE FUNCTION geonn_schedule(name pg_catalog.text, schedule pg_catalog.text) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_schedule(pg_catalog.text, pg_catalog.text) IS
'has pg_cron refresh a cache';

-- Removes a cache's schedule and its job.  Returns whether it had one.
CREATE FUNCTION geonn_unschedule(name pg_catalog.text) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_unschedule(pg_catalog.text) IS
'removes the schedule of a cache';

-- Only the functions above write these tables, as the tables' owner: not even membership in
-- pg_write_all_data is enough.  Row-level security without a policy keeps all other roles out.  It would
-- also keep members of pg_read_all_data from dumping geonn_cache, the only one of these tables in dumps:
-- triggers guard that one, for statements and, because of logical replication, for rows.
CREATE FUNCTION geonn_cache_guard() RETURNS pg_catalog.trigger
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON FUNCTION geonn_cache_guard() IS
'refuses statements of roles without the privileges of the table''s owner';
CREATE TRIGGER geonn_cache_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON geonn_cache
	FOR EACH STATEMENT EXECUTE FUNCTION geonn_cache_guard();
ALTER TABLE geonn_cache ENABLE ALWAYS TRIGGER geonn_cache_guard;
CREATE TRIGGER geonn_cache_guard_row BEFORE INSERT OR UPDATE OR DELETE ON geonn_cache
	FOR EACH ROW EXECUTE FUNCTION geonn_cache_guard();
ALTER TABLE geonn_cache ENABLE ALWAYS TRIGGER geonn_cache_guard_row;
ALTER TABLE geonn_cache_run ENABLE ROW LEVEL SECURITY;
ALTER TABLE geonn_cache_total ENABLE ROW LEVEL SECURITY;
ALTER TABLE geonn_cache_last_run ENABLE ROW LEVEL SECURITY;
ALTER TABLE geonn_cache_block ENABLE ROW LEVEL SECURITY;
ALTER TABLE geonn_cache_directory ENABLE ROW LEVEL SECURITY;

-- The caches of roles of which the current user is a member; all of them for members of
-- pg_read_all_stats.  A cache without a table belongs to the extension's owner.  These views are
-- security barriers: functions of a query see only rows that meet the condition.
CREATE VIEW geonn_caches WITH (security_barrier) AS
	SELECT c.name, c.target, pg_catalog.pg_get_userbyid(t.relowner) AS owner, c.obs, c.ref,
		r.started AS last_start,
		r.finished AS last_finish,
		-- a process that was killed has left its row as it was
		CASE WHEN r.status OPERATOR(pg_catalog.=) 'running'::pg_catalog.text AND NOT EXISTS (
				SELECT FROM pg_catalog.pg_locks l
				WHERE l.locktype OPERATOR(pg_catalog.=) 'object'::pg_catalog.text
				AND l.granted AND l.pid OPERATOR(pg_catalog.=) r.pid
				AND l.classid OPERATOR(pg_catalog.=) e.oid
				AND l.objid OPERATOR(pg_catalog.=) c.id::pg_catalog.oid)
			THEN 'interrupted'::pg_catalog.text ELSE r.status END AS status,
		r.error, r.mode, r.rows,
		r.inserted OPERATOR(pg_catalog.+) r.updated OPERATOR(pg_catalog.+) r.deleted AS rows_changed,
		COALESCE(n.runs, 0::bigint) AS runs, COALESCE(n.failures, 0::bigint) AS failures,
		c.schedule
	FROM geonn_cache c
		JOIN pg_catalog.pg_class e
			ON e.oid OPERATOR(pg_catalog.=) 'geonn_cache'::pg_catalog.regclass::pg_catalog.oid
		LEFT JOIN pg_catalog.pg_class t ON t.oid OPERATOR(pg_catalog.=) c.target::pg_catalog.oid
		LEFT JOIN geonn_cache_total n ON n.cache OPERATOR(pg_catalog.=) c.id
		LEFT JOIN LATERAL (
			SELECT * FROM geonn_cache_run r
			WHERE r.cache OPERATOR(pg_catalog.=) c.id
			AND r.status OPERATOR(pg_catalog.<>) 'skipped'::pg_catalog.text
			ORDER BY r.id DESC LIMIT 1::bigint) r ON true
	WHERE pg_catalog.pg_has_role(COALESCE(t.relowner, e.relowner), 'USAGE'::pg_catalog.text)
		OR pg_catalog.pg_has_role('pg_read_all_stats'::pg_catalog.name, 'USAGE'::pg_catalog.text);
COMMENT ON VIEW geonn_caches IS
'tables of neighbours that are kept up to date, and how their last refresh went';
GRANT SELECT ON geonn_caches TO PUBLIC;

CREATE VIEW geonn_cache_log WITH (security_barrier) AS
	SELECT c.name, r.started, r.finished, r.status, r.pid, r.mode, r.reason,
		r.searched, r.rows, r.inserted, r.updated, r.deleted, r.error
	FROM geonn_cache_run r
		JOIN geonn_cache c ON c.id OPERATOR(pg_catalog.=) r.cache
		JOIN pg_catalog.pg_class e
			ON e.oid OPERATOR(pg_catalog.=) 'geonn_cache'::pg_catalog.regclass::pg_catalog.oid
		LEFT JOIN pg_catalog.pg_class t ON t.oid OPERATOR(pg_catalog.=) c.target::pg_catalog.oid
	WHERE pg_catalog.pg_has_role(COALESCE(t.relowner, e.relowner), 'USAGE'::pg_catalog.text)
		OR pg_catalog.pg_has_role('pg_read_all_stats'::pg_catalog.name, 'USAGE'::pg_catalog.text)
	ORDER BY r.id;
COMMENT ON VIEW geonn_cache_log IS 'the latest refreshes of each cache';
GRANT SELECT ON geonn_cache_log TO PUBLIC;

-- ---- watching ----

-- Calls under way: one row for each call of a join, whichever processes work for it.
-- Relations and arguments of other users' calls are for members of pg_read_all_stats;
-- names and arguments of calls in other databases are NULL.
CREATE FUNCTION geonn_progress(
		OUT pid integer,		-- of the process that is called
		OUT sessions integer,	-- that it and its workers have with the engine
		OUT datid pg_catalog.oid,
		OUT userid pg_catalog.oid,
		OUT function pg_catalog.text,
		OUT obs pg_catalog.oid,	-- NULL for queries and arrays
		OUT obs_name pg_catalog.text,
		OUT ref pg_catalog.oid,
		OUT ref_name pg_catalog.text,
		OUT arguments pg_catalog.text,	-- those that do not have their defaults
		OUT phase pg_catalog.text,
		OUT observations_done bigint,
		OUT observations_expected bigint,	-- as estimated; NULL where nobody knows
		OUT references_read bigint,
		OUT device pg_catalog.text,	-- that work for it, or did: CPU, GPU 1, ...
		OUT started_at pg_catalog.timestamptz)
	RETURNS SETOF pg_catalog.record
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL RESTRICTED
	ROWS 10;
COMMENT ON FUNCTION geonn_progress() IS
'the rows of the view geonn_stat_progress';

CREATE VIEW geonn_stat_progress AS
	SELECT p.pid, p.sessions, p.datid, d.datname, p.userid,
		   pg_catalog.pg_get_userbyid(p.userid) AS usename,
		   p.function, p.obs, p.obs_name, p.ref, p.ref_name, p.arguments, p.phase,
		   p.observations_done, p.observations_expected, p.references_read, p.device,
		   p.started_at
	FROM geonn_progress() p
		LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) p.datid;
COMMENT ON VIEW geonn_stat_progress IS
'calls of joins under way, and how far they are';
GRANT SELECT ON geonn_stat_progress TO PUBLIC;

-- Calls that have ended, since the engine started or the last reset: one row for each
-- database, user, function, pair of relations and arguments.  Of 1,000 of them figures
-- are kept, of those called last.  The times of the phases add up to the total.
CREATE FUNCTION geonn_statistics(
		OUT datid pg_catalog.oid,
		OUT userid pg_catalog.oid,
		OUT function pg_catalog.text,
		OUT obs pg_catalog.oid,	-- NULL for queries and arrays
		OUT obs_name pg_catalog.text,
		OUT ref pg_catalog.oid,
		OUT ref_name pg_catalog.text,
		OUT arguments pg_catalog.text,	-- those that do not have their defaults
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
		OUT last_error pg_catalog.text,	-- of the engine
		OUT last_error_at pg_catalog.timestamptz,
		OUT stats_since pg_catalog.timestamptz)
	RETURNS SETOF pg_catalog.record
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL RESTRICTED
	ROWS 100;
COMMENT ON FUNCTION geonn_statistics() IS
'the rows of the view geonn_stat';

CREATE VIEW geonn_stat AS
	SELECT s.datid, d.datname, s.userid, pg_catalog.pg_get_userbyid(s.userid) AS usename, s.function,
		   s.obs, s.obs_name, s.ref, s.ref_name, s.arguments, s.calls, s.failed, s.rows,
		   s.observations, s.observations_skipped, s.unmatched, s.references_read,
		   s.references_skipped, s.references_kept, s.batches, s.bytes, s.fallbacks,
		   s.total_time, s.queued_time, s.reading_references_time, s.sorting_references_time,
		   s.building_time, s.searching_time, s.waiting_time, s.reading_observations_time,
		   s.last_error, s.last_error_at, s.stats_since
	FROM geonn_statistics() s
		LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.datid;
COMMENT ON VIEW geonn_stat IS
'calls of joins that have ended: their rows, their times, their errors';
GRANT SELECT ON geonn_stat TO PUBLIC;

CREATE FUNCTION geonn_stat_reset() RETURNS pg_catalog.void
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION geonn_stat_reset() IS
'forget the figures of geonn_stat, those of all databases';
REVOKE ALL ON FUNCTION geonn_stat_reset() FROM PUBLIC;
