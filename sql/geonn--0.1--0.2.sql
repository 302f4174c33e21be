\echo Use "ALTER EXTENSION geonn UPDATE TO '0.2'" to load this file. \quit

-- From 0.1 to 0.2.  geonn--0.2.sql has the same statements, with comments that say what each function
-- does and how the names in these scripts are resolved.

-- ---- types ----

CREATE TYPE geonn_pair_text AS (
	obs_id pg_catalog.text,
	ref_id pg_catalog.text,
	distance double precision
);
COMMENT ON TYPE geonn_pair_text IS
'a geonn_pair of ids of type text or varchar';

CREATE TYPE geonn_pair_uuid AS (
	obs_id pg_catalog.uuid,
	ref_id pg_catalog.uuid,
	distance double precision
);
COMMENT ON TYPE geonn_pair_uuid IS
'a geonn_pair of ids of type uuid';

CREATE TYPE geonn_point_pair_text AS (
	ord bigint,
	ref_id pg_catalog.text,
	distance double precision
);
COMMENT ON TYPE geonn_point_pair_text IS
'a geonn_point_pair of ids of type text or varchar';

CREATE TYPE geonn_point_pair_uuid AS (
	ord bigint,
	ref_id pg_catalog.uuid,
	distance double precision
);
COMMENT ON TYPE geonn_point_pair_uuid IS
'a geonn_point_pair of ids of type uuid';

CREATE TYPE geonn_within_row AS (
	obs_id bigint,
	radius double precision,
	count bigint,
	sums double precision[]
);
COMMENT ON TYPE geonn_within_row IS
'an observation, a radius in metres, how many references are within it, and the sums of their weights';

CREATE TYPE geonn_within_row_text AS (
	obs_id pg_catalog.text,
	radius double precision,
	count bigint,
	sums double precision[]
);
COMMENT ON TYPE geonn_within_row_text IS
'a geonn_within_row with an id of type text or varchar';

CREATE TYPE geonn_within_row_uuid AS (
	obs_id pg_catalog.uuid,
	radius double precision,
	count bigint,
	sums double precision[]
);
COMMENT ON TYPE geonn_within_row_uuid IS
'a geonn_within_row with an id of type uuid';

CREATE TYPE geonn_point_within_row AS (
	ord bigint,
	radius double precision,
	count bigint,
	sums double precision[]
);
COMMENT ON TYPE geonn_point_within_row IS
'the number of a point, a radius in metres, how many references are within it, and the sums of their weights';

CREATE TYPE geonn_clustered AS (
	id bigint,
	cluster bigint,
	kind pg_catalog.text
);
COMMENT ON TYPE geonn_clustered IS
'a point, the number of its cluster, and whether it is core, border or noise';

CREATE TYPE geonn_clustered_text AS (
	id pg_catalog.text,
	cluster bigint,
	kind pg_catalog.text
);
COMMENT ON TYPE geonn_clustered_text IS
'a geonn_clustered with an id of type text or varchar';

CREATE TYPE geonn_clustered_uuid AS (
	id pg_catalog.uuid,
	cluster bigint,
	kind pg_catalog.text
);
COMMENT ON TYPE geonn_clustered_uuid IS
'a geonn_clustered with an id of type uuid';

CREATE TYPE geonn_thinned AS (
	id bigint,
	kept_by bigint
);
COMMENT ON TYPE geonn_thinned IS
'a point, and the nearest kept point within the spacing; NULL: the point is kept';

CREATE TYPE geonn_thinned_text AS (
	id pg_catalog.text,
	kept_by pg_catalog.text
);
COMMENT ON TYPE geonn_thinned_text IS
'a geonn_thinned with ids of type text or varchar';

CREATE TYPE geonn_thinned_uuid AS (
	id pg_catalog.uuid,
	kept_by pg_catalog.uuid
);
COMMENT ON TYPE geonn_thinned_uuid IS
'a geonn_thinned with ids of type uuid';

-- ---- joins ----

COMMENT ON FUNCTION geonn_join_support(pg_catalog.internal) IS
'planner support for geonn_nearest, geonn_nearest_sql, geonn_within, geonn_within_sql, geonn_nearest_points, geonn_within_count with its siblings, geonn_cluster, geonn_thin, geonn_assign and their forms for queries';

-- The joins get the arguments differs, overlaps and windows, so each is another function for PostgreSQL.
-- A view or a function that calls one of 0.1 keeps that one, which the module answers as before: under
-- another name, so that a call by the old name finds the new function alone, and outside of the extension,
-- so that pg_dump takes it.
DO LANGUAGE plpgsql $$
DECLARE
	former pg_catalog.text;
	name pg_catalog.text;
	users pg_catalog.text;
BEGIN
	FOREACH former IN ARRAY ARRAY[
		'geonn_nearest(pg_catalog.regclass, pg_catalog.regclass, integer, double precision, pg_catalog.text,
			pg_catalog.name[], boolean, boolean, pg_catalog.text, pg_catalog.text, pg_catalog.jsonb,
			pg_catalog.anyelement)',
		'geonn_nearest_sql(pg_catalog.text, pg_catalog.text, integer, double precision, pg_catalog.text,
			pg_catalog.name[], boolean, boolean, pg_catalog.text, pg_catalog.text, pg_catalog.jsonb,
			pg_catalog.anyelement)',
		'geonn_within(pg_catalog.regclass, pg_catalog.regclass, double precision, pg_catalog.text,
			pg_catalog.name[], boolean, boolean, pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement)',
		'geonn_within_sql(pg_catalog.text, pg_catalog.text, double precision, pg_catalog.text,
			pg_catalog.name[], boolean, boolean, pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement)',
		'geonn_nearest_points(double precision[], double precision[], pg_catalog.regclass, integer,
			double precision, pg_catalog.text, boolean, pg_catalog.text, pg_catalog.text, pg_catalog.jsonb,
			pg_catalog.anyelement)']::pg_catalog.text[]
	LOOP
		BEGIN
			EXECUTE pg_catalog.format('DROP FUNCTION %s', former);
		EXCEPTION WHEN dependent_objects_still_exist THEN
			GET STACKED DIAGNOSTICS users = PG_EXCEPTION_DETAIL;
			SELECT pg_catalog.split_part(former, '('::pg_catalog.text, 1) INTO name;
			EXECUTE pg_catalog.format('ALTER EXTENSION geonn DROP FUNCTION %s', former);
			EXECUTE pg_catalog.format('ALTER FUNCTION %s RENAME TO %s_0_1', former, name);
			RAISE WARNING USING
				MESSAGE = pg_catalog.format('function %s of version 0.1 is now %s_0_1, outside of the extension', name, name),
				DETAIL = users,
				HINT = pg_catalog.format('Define these objects anew with %s, then drop %s_0_1.', name, name);
		END;
	END LOOP;
END
$$;

CREATE FUNCTION geonn_nearest(obs pg_catalog.regclass, ref pg_catalog.regclass,
							  k integer DEFAULT 1,
							  max_distance double precision DEFAULT NULL,
							  metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
							  by pg_catalog.name[] DEFAULT NULL,
							  differs pg_catalog.name[] DEFAULT NULL,
							  overlaps pg_catalog.name[] DEFAULT NULL,
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
	double precision, pg_catalog.text, pg_catalog.name[], pg_catalog.name[], pg_catalog.name[], boolean,
	boolean, pg_catalog.text, pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement) IS
'for each row of obs the nearest rows of ref, with the distance in metres';

CREATE FUNCTION geonn_nearest_sql(obs_sql pg_catalog.text, ref_sql pg_catalog.text,
								  k integer DEFAULT 1,
								  max_distance double precision DEFAULT NULL,
								  metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
								  by pg_catalog.name[] DEFAULT NULL,
								  differs pg_catalog.name[] DEFAULT NULL,
								  overlaps pg_catalog.name[] DEFAULT NULL,
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
	pg_catalog.text, pg_catalog.name[], pg_catalog.name[], pg_catalog.name[], boolean, boolean,
	pg_catalog.text, pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement) IS
'for each row of one query the nearest rows of another, with the distance in metres';

CREATE FUNCTION geonn_within(obs pg_catalog.regclass, ref pg_catalog.regclass,
							 radius double precision,
							 metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
							 by pg_catalog.name[] DEFAULT NULL,
							 differs pg_catalog.name[] DEFAULT NULL,
							 overlaps pg_catalog.name[] DEFAULT NULL,
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
	pg_catalog.text, pg_catalog.name[], pg_catalog.name[], pg_catalog.name[], boolean, boolean,
	pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement) IS
'every pair of rows of obs and ref that are within a radius in metres';

CREATE FUNCTION geonn_within_sql(obs_sql pg_catalog.text, ref_sql pg_catalog.text,
								 radius double precision,
								 metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
								 by pg_catalog.name[] DEFAULT NULL,
								 differs pg_catalog.name[] DEFAULT NULL,
								 overlaps pg_catalog.name[] DEFAULT NULL,
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
	pg_catalog.text, pg_catalog.name[], pg_catalog.name[], pg_catalog.name[], boolean, boolean,
	pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement) IS
'every pair of rows of two queries that are within a radius in metres';

CREATE FUNCTION geonn_nearest_points(lat double precision[], lon double precision[],
									 ref pg_catalog.regclass,
									 k integer DEFAULT 1,
									 max_distance double precision DEFAULT NULL,
									 metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
									 overlaps pg_catalog.name[] DEFAULT NULL,
									 windows pg_catalog.anycompatiblearray DEFAULT NULL::pg_catalog.text[],
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
	pg_catalog.regclass, integer, double precision, pg_catalog.text, pg_catalog.name[],
	pg_catalog.anycompatiblearray, boolean, pg_catalog.text, pg_catalog.text, pg_catalog.jsonb,
	pg_catalog.anyelement) IS
'for each of the points in two arrays the nearest rows of ref';

CREATE FUNCTION geonn_within_count(obs pg_catalog.regclass, ref pg_catalog.regclass,
								   radii double precision[],
								   weights pg_catalog.name[] DEFAULT NULL,
								   metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
								   by pg_catalog.name[] DEFAULT NULL,
								   differs pg_catalog.name[] DEFAULT NULL,
								   overlaps pg_catalog.name[] DEFAULT NULL,
								   exclude_self boolean DEFAULT false,
								   invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
								   options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
								   row_type pg_catalog.anyelement DEFAULT NULL::geonn_within_row)
	RETURNS SETOF pg_catalog.anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_join_support;
COMMENT ON FUNCTION geonn_within_count(pg_catalog.regclass, pg_catalog.regclass,
	double precision[], pg_catalog.name[], pg_catalog.text, pg_catalog.name[], pg_catalog.name[],
	pg_catalog.name[], boolean, pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement) IS
'for each row of obs how many rows of ref are within radii in metres, and the sums of their weights';

CREATE FUNCTION geonn_within_count_sql(obs_sql pg_catalog.text, ref_sql pg_catalog.text,
									   radii double precision[],
									   weights pg_catalog.name[] DEFAULT NULL,
									   metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
									   by pg_catalog.name[] DEFAULT NULL,
									   differs pg_catalog.name[] DEFAULT NULL,
									   overlaps pg_catalog.name[] DEFAULT NULL,
									   exclude_self boolean DEFAULT false,
									   invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
									   options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
									   row_type pg_catalog.anyelement DEFAULT NULL::geonn_within_row)
	RETURNS SETOF pg_catalog.anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_join_support;
COMMENT ON FUNCTION geonn_within_count_sql(pg_catalog.text, pg_catalog.text, double precision[],
	pg_catalog.name[], pg_catalog.text, pg_catalog.name[], pg_catalog.name[], pg_catalog.name[],
	boolean, pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement) IS
'for each row of one query how many rows of another are within radii in metres, and the sums of their weights';

CREATE FUNCTION geonn_within_count_points(lat double precision[], lon double precision[],
										  ref pg_catalog.regclass,
										  radii double precision[],
										  weights pg_catalog.name[] DEFAULT NULL,
										  metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
										  overlaps pg_catalog.name[] DEFAULT NULL,
										  windows pg_catalog.anycompatiblearray DEFAULT NULL::pg_catalog.text[],
										  invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
										  options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
										  row_type pg_catalog.anyelement DEFAULT NULL::geonn_point_within_row)
	RETURNS SETOF pg_catalog.anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 100
	SUPPORT geonn_join_support;
COMMENT ON FUNCTION geonn_within_count_points(double precision[], double precision[],
	pg_catalog.regclass, double precision[], pg_catalog.name[], pg_catalog.text, pg_catalog.name[],
	pg_catalog.anycompatiblearray, pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement) IS
'for each of the points in two arrays how many rows of ref are within radii in metres, and the sums of their weights';

CREATE FUNCTION geonn_cluster(points pg_catalog.regclass,
							  radius double precision,
							  min_points integer DEFAULT 1,
							  by pg_catalog.name[] DEFAULT NULL,
							  overlaps pg_catalog.name[] DEFAULT NULL,
							  metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
							  invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
							  options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
							  row_type pg_catalog.anyelement DEFAULT NULL::geonn_clustered)
	RETURNS SETOF pg_catalog.anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_join_support;
COMMENT ON FUNCTION geonn_cluster(pg_catalog.regclass, double precision, integer, pg_catalog.name[],
	pg_catalog.name[], pg_catalog.text, pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement) IS
'the cluster of each point: DBSCAN in metres';

CREATE FUNCTION geonn_cluster_sql(points_sql pg_catalog.text,
								  radius double precision,
								  min_points integer DEFAULT 1,
								  by pg_catalog.name[] DEFAULT NULL,
								  overlaps pg_catalog.name[] DEFAULT NULL,
								  metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
								  invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
								  options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
								  row_type pg_catalog.anyelement DEFAULT NULL::geonn_clustered)
	RETURNS SETOF pg_catalog.anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_join_support;
COMMENT ON FUNCTION geonn_cluster_sql(pg_catalog.text, double precision, integer, pg_catalog.name[],
	pg_catalog.name[], pg_catalog.text, pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement) IS
'the cluster of each row of a query';

CREATE FUNCTION geonn_thin(points pg_catalog.regclass,
							  spacing double precision,
							  priority pg_catalog.name DEFAULT NULL,
							  by pg_catalog.name[] DEFAULT NULL,
							  overlaps pg_catalog.name[] DEFAULT NULL,
							  metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
							  invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
							  options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
							  row_type pg_catalog.anyelement DEFAULT NULL::geonn_thinned)
	RETURNS SETOF pg_catalog.anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_join_support;
COMMENT ON FUNCTION geonn_thin(pg_catalog.regclass, double precision, pg_catalog.name, pg_catalog.name[],
	pg_catalog.name[], pg_catalog.text, pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement) IS
'which points are kept, so that no two are within a spacing';

CREATE FUNCTION geonn_thin_sql(points_sql pg_catalog.text,
							  spacing double precision,
							  priority pg_catalog.name DEFAULT NULL,
							  by pg_catalog.name[] DEFAULT NULL,
							  overlaps pg_catalog.name[] DEFAULT NULL,
							  metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
							  invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
							  options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
							  row_type pg_catalog.anyelement DEFAULT NULL::geonn_thinned)
	RETURNS SETOF pg_catalog.anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_join_support;
COMMENT ON FUNCTION geonn_thin_sql(pg_catalog.text, double precision, pg_catalog.name, pg_catalog.name[],
	pg_catalog.name[], pg_catalog.text, pg_catalog.text, pg_catalog.jsonb, pg_catalog.anyelement) IS
'which rows of a query are kept, so that no two are within a spacing';

CREATE FUNCTION geonn_assign(obs pg_catalog.regclass,
							 ref pg_catalog.regclass,
							 capacity integer DEFAULT 1,
							 capacity_column pg_catalog.name DEFAULT NULL,
							 max_distance double precision DEFAULT NULL,
							 by pg_catalog.name[] DEFAULT NULL,
							 differs pg_catalog.name[] DEFAULT NULL,
							 overlaps pg_catalog.name[] DEFAULT NULL,
							 keep_unmatched boolean DEFAULT false,
							 metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
							 invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
							 options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
							 row_type pg_catalog.anyelement DEFAULT NULL::geonn_pair)
	RETURNS SETOF pg_catalog.anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_join_support;
COMMENT ON FUNCTION geonn_assign(pg_catalog.regclass, pg_catalog.regclass, integer, pg_catalog.name, double precision,
	pg_catalog.name[], pg_catalog.name[], pg_catalog.name[], boolean, pg_catalog.text, pg_catalog.text,
	pg_catalog.jsonb, pg_catalog.anyelement) IS
'for rows of obs the nearest row of ref that has room, closest pairs first';

CREATE FUNCTION geonn_assign_sql(obs_sql pg_catalog.text,
								 ref_sql pg_catalog.text,
								 capacity integer DEFAULT 1,
								 capacity_column pg_catalog.name DEFAULT NULL,
								 max_distance double precision DEFAULT NULL,
								 by pg_catalog.name[] DEFAULT NULL,
								 differs pg_catalog.name[] DEFAULT NULL,
								 overlaps pg_catalog.name[] DEFAULT NULL,
								 keep_unmatched boolean DEFAULT false,
								 metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
								 invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
								 options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
								 row_type pg_catalog.anyelement DEFAULT NULL::geonn_pair)
	RETURNS SETOF pg_catalog.anyelement
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000 ROWS 1000
	SUPPORT geonn_join_support;
COMMENT ON FUNCTION geonn_assign_sql(pg_catalog.text, pg_catalog.text, integer, pg_catalog.name, double precision,
	pg_catalog.name[], pg_catalog.name[], pg_catalog.name[], boolean, pg_catalog.text, pg_catalog.text,
	pg_catalog.jsonb, pg_catalog.anyelement) IS
'for rows of a query the nearest row of another query that has room, closest pairs first';

CREATE FUNCTION geonn_distance(lat double precision, lon double precision,
							   shape pg_catalog.anyelement)
	RETURNS double precision
	AS 'MODULE_PATHNAME', 'geonn_distance_to_shape' LANGUAGE C
	IMMUTABLE STRICT PARALLEL SAFE
	COST 1000;
COMMENT ON FUNCTION geonn_distance(double precision, double precision, pg_catalog.anyelement) IS
'metres between a point of latitude and longitude in degrees and a geography or geometry of PostGIS';

CREATE FUNCTION geonn_distance(shape1 pg_catalog.anycompatible, shape2 pg_catalog.anycompatible,
							   metric pg_catalog.name DEFAULT 'sphere'::pg_catalog.name)
	RETURNS double precision
	AS 'MODULE_PATHNAME', 'geonn_distance_of_shapes' LANGUAGE C
	IMMUTABLE STRICT PARALLEL SAFE
	COST 2000;
COMMENT ON FUNCTION geonn_distance(pg_catalog.anycompatible, pg_catalog.anycompatible, pg_catalog.name) IS
'metres between two geographies or geometries of PostGIS';

-- ---- what to know of a relation ----

-- These two return other columns, for which views have to be defined anew: the update fails as long as an
-- object depends on them, and names it.
DROP FUNCTION geonn_describe(pg_catalog.regclass);
CREATE FUNCTION geonn_describe(rel pg_catalog.regclass, options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
							   overlaps pg_catalog.name[] DEFAULT NULL,
							   OUT role pg_catalog.text,	-- id, latitude, longitude, point, radius, window
							   OUT column_name pg_catalog.name,
							   OUT type pg_catalog.regtype,
							   OUT reason pg_catalog.text,	-- why geonn chose the column
							   OUT compared_as pg_catalog.regtype)	-- of a window: the type for all it can overlap
	RETURNS SETOF pg_catalog.record
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL SAFE
	ROWS 3;
COMMENT ON FUNCTION geonn_describe(pg_catalog.regclass, pg_catalog.jsonb, pg_catalog.name[]) IS
'which columns of a relation are its id, its coordinates and what limits its points, and why';

DROP FUNCTION geonn_check(pg_catalog.regclass, pg_catalog.jsonb);
CREATE FUNCTION geonn_check(rel pg_catalog.regclass, options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
							overlaps pg_catalog.name[] DEFAULT NULL,
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
							OUT longitude_max double precision,
							OUT null_radiuses bigint,			-- no limit
							OUT nan_radiuses bigint,			-- no limit
							OUT negative_radiuses bigint,		-- no candidate
							OUT window_types pg_catalog.regtype[],
							OUT windows_compared_as pg_catalog.regtype[],	-- the type for all they can overlap
							OUT null_windows bigint[],			-- overlap nothing
							OUT empty_windows bigint[],			-- overlap nothing
							OUT infinite_windows bigint[],		-- without a bound, or with an infinite one
							OUT empty_shapes bigint,			-- of null_coordinates
							OUT curved_shapes bigint,			-- an error of a join
							OUT invalid_shapes bigint,			-- an error of a join
							OUT examples pg_catalog.text[])		-- a row of each kind that a join leaves out or refuses
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	COST 10000;
COMMENT ON FUNCTION geonn_check(pg_catalog.regclass, pg_catalog.jsonb, pg_catalog.name[]) IS
'counts of the rows of a relation that a join would leave out, or that may be mistakes, and its extent';

-- ---- caches ----

ALTER TABLE geonn_cache SET ACCESS METHOD heap;

-- A refresh reads the pages that may have changed, and needs no column that says since when.
UPDATE geonn_cache SET arguments = arguments OPERATOR(pg_catalog.-) 'changed_since'::pg_catalog.text
	WHERE arguments OPERATOR(pg_catalog.?) 'changed_since'::pg_catalog.text;

-- What the last run of each cache read is stored in another way.  The next refresh searches for all
-- observations, and writes it anew.
DROP TABLE geonn_cache_last_run;
DROP TABLE geonn_cache_block;
DROP TABLE geonn_cache_directory;
DROP TABLE geonn_cache_page;
CREATE UNLOGGED TABLE geonn_cache_last_run (
	cache integer PRIMARY KEY,
	valid boolean NOT NULL,				-- false until the first run ends
	signature pg_catalog.text NOT NULL,	-- the cache's question and the types of its columns
	rows bigint NOT NULL,				-- of the table
	sides pg_catalog.bytea NOT NULL,	-- seeds of the baselines' hashes; labels and SRIDs of obs and ref
	baselines boolean NOT NULL,			-- both have been written
	wasted integer NOT NULL,			-- baselines in a row that no run could use
	pause integer NOT NULL				-- runs until new baselines are written
);
ALTER TABLE geonn_cache_last_run ENABLE ROW LEVEL SECURITY;
CREATE UNLOGGED TABLE geonn_cache_block (
	cache integer,
	side smallint,						-- 0: obs, 1: ref
	number bigint,
	contents pg_catalog.bytea NOT NULL,
	PRIMARY KEY (cache, side, number)
) USING heap WITH (toast_tuple_target = 8160, fillfactor = 75);
ALTER TABLE geonn_cache_block ALTER contents SET STORAGE EXTERNAL;
ALTER TABLE geonn_cache_block ENABLE ROW LEVEL SECURITY;
CREATE UNLOGGED TABLE geonn_cache_directory (
	cache integer,
	side smallint,
	number bigint,
	contents pg_catalog.bytea NOT NULL,
	PRIMARY KEY (cache, side, number)
) USING heap WITH (toast_tuple_target = 8160, fillfactor = 50);
ALTER TABLE geonn_cache_directory ALTER contents SET STORAGE EXTERNAL;
ALTER TABLE geonn_cache_directory ENABLE ROW LEVEL SECURITY;
CREATE UNLOGGED TABLE geonn_cache_page (
	cache integer,
	side smallint,
	number bigint,						-- OID of a table and, in the last 32 bits, number of one of its pages
	contents pg_catalog.bytea NOT NULL,
	PRIMARY KEY (cache, side, number)
) USING heap WITH (toast_tuple_target = 8160, fillfactor = 75);
ALTER TABLE geonn_cache_page ALTER contents SET STORAGE EXTERNAL;
ALTER TABLE geonn_cache_page ENABLE ROW LEVEL SECURITY;

DROP FUNCTION geonn_cache_create(pg_catalog.text, pg_catalog.regclass, pg_catalog.regclass, integer,
	double precision, pg_catalog.text, pg_catalog.name[], boolean, boolean, pg_catalog.text,
	pg_catalog.text, pg_catalog.jsonb, pg_catalog.text, double precision, pg_catalog.name, pg_catalog.text);
CREATE FUNCTION geonn_cache_create(name pg_catalog.text,
								   obs pg_catalog.regclass DEFAULT NULL,
								   ref pg_catalog.regclass DEFAULT NULL,
								   k integer DEFAULT 1,
								   max_distance double precision DEFAULT NULL,
								   metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
								   by pg_catalog.name[] DEFAULT NULL,
								   differs pg_catalog.name[] DEFAULT NULL,
								   overlaps pg_catalog.name[] DEFAULT NULL,
								   exclude_self boolean DEFAULT false,
								   keep_unmatched boolean DEFAULT false,
								   ties pg_catalog.text DEFAULT 'first'::pg_catalog.text,
								   invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
								   options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
								   target pg_catalog.text DEFAULT NULL,
								   radius double precision DEFAULT NULL,
								   replace pg_catalog.text DEFAULT 'auto'::pg_catalog.text,
								   radii double precision[] DEFAULT NULL,
								   weights pg_catalog.name[] DEFAULT NULL,
								   cluster pg_catalog.regclass DEFAULT NULL,
								   min_points integer DEFAULT NULL)
	RETURNS pg_catalog.regclass
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_cache_create(pg_catalog.text, pg_catalog.regclass, pg_catalog.regclass,
	integer, double precision, pg_catalog.text, pg_catalog.name[], pg_catalog.name[],
	pg_catalog.name[], boolean, boolean, pg_catalog.text, pg_catalog.text, pg_catalog.jsonb,
	pg_catalog.text, double precision, pg_catalog.text, double precision[], pg_catalog.name[],
	pg_catalog.regclass, integer) IS
'creates a table of neighbours, counts or clusters that geonn_refresh keeps up to date';

DROP FUNCTION geonn_cache_drop(pg_catalog.text, boolean);
CREATE FUNCTION geonn_cache_drop(name pg_catalog.text, keep_table boolean DEFAULT false,
		cascade boolean DEFAULT false) RETURNS pg_catalog.void
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_cache_drop(pg_catalog.text, boolean, boolean) IS
'drops a cache and its table';

CREATE FUNCTION geonn_jobs_follow() RETURNS pg_catalog.event_trigger
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON FUNCTION geonn_jobs_follow() IS
'has jobs of pg_cron call geonn_refresh where the extension is';
CREATE EVENT TRIGGER geonn_jobs_follow ON ddl_command_start
	WHEN TAG IN ('ALTER EXTENSION', 'ALTER SCHEMA', 'DROP EXTENSION', 'DROP OWNED', 'DROP SCHEMA')
	EXECUTE FUNCTION geonn_jobs_follow();
ALTER EVENT TRIGGER geonn_jobs_follow ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER geonn_jobs_follow IS
'has jobs of pg_cron call geonn_refresh where the extension is';

-- ---- shards ----

CREATE FUNCTION geonn_shard_ddl(servers pg_catalog.name[], obs pg_catalog.regclass, ref pg_catalog.regclass,
								coordinator pg_catalog.text,
								sharded pg_catalog.text DEFAULT 'obs'::pg_catalog.text,
								partition_by pg_catalog.text DEFAULT 'hash'::pg_catalog.text,
								key pg_catalog.name DEFAULT NULL,
								partitions integer DEFAULT NULL,
								bounds pg_catalog.text[] DEFAULT NULL,
								view pg_catalog.name DEFAULT NULL,
								cache boolean DEFAULT false,
								schedule pg_catalog.text DEFAULT NULL,
								readers pg_catalog.name[] DEFAULT NULL,
								k integer DEFAULT 1,
								max_distance double precision DEFAULT NULL,
								metric pg_catalog.text DEFAULT 'sphere'::pg_catalog.text,
								by pg_catalog.name[] DEFAULT NULL,
								differs pg_catalog.name[] DEFAULT NULL,
								overlaps pg_catalog.name[] DEFAULT NULL,
								exclude_self boolean DEFAULT false,
								keep_unmatched boolean DEFAULT false,
								ties pg_catalog.text DEFAULT 'first'::pg_catalog.text,
								invalid pg_catalog.text DEFAULT 'skip'::pg_catalog.text,
								options pg_catalog.jsonb DEFAULT '{}'::pg_catalog.jsonb,
								radius double precision DEFAULT NULL,
								OUT server pg_catalog.name,
								OUT command pg_catalog.text)
	RETURNS SETOF pg_catalog.record
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE PARALLEL RESTRICTED
	ROWS 100
	SET search_path TO pg_catalog, pg_temp
	SET extra_float_digits TO 3;
COMMENT ON FUNCTION geonn_shard_ddl(pg_catalog.name[], pg_catalog.regclass, pg_catalog.regclass,
	pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.name, integer, pg_catalog.text[],
	pg_catalog.name, boolean, pg_catalog.text, pg_catalog.name[], integer, double precision,
	pg_catalog.text, pg_catalog.name[], pg_catalog.name[], pg_catalog.name[], boolean, boolean,
	pg_catalog.text, pg_catalog.text, pg_catalog.jsonb, double precision) IS
'commands that divide one table of a join among servers';

CREATE FUNCTION geonn_shard_move_ddl(servers pg_catalog.name[], tab pg_catalog.regclass,
									 OUT server pg_catalog.name,
									 OUT command pg_catalog.text)
	RETURNS SETOF pg_catalog.record
	AS 'MODULE_PATHNAME' LANGUAGE C
	STABLE STRICT PARALLEL RESTRICTED
	ROWS 100
	SET search_path TO pg_catalog, pg_temp;
COMMENT ON FUNCTION geonn_shard_move_ddl(pg_catalog.name[], pg_catalog.regclass) IS
'commands that move partitions to servers that were added, or away from others';
