\echo Use "CREATE EXTENSION geonn" to load this file. \quit

-- How PostgreSQL resolves the names in this script.  It runs the script as a superuser, with a
-- search_path of the extension's schema and then pg_temp, and searches pg_catalog before both.  Other
-- roles may be able to create objects in the extension's schema, before and after this.  So:
--
--	 - PostgreSQL's functions, operators, types and relations are qualified by pg_catalog, operators
--	   as OPERATOR(pg_catalog.=): otherwise a function or operator in another schema that matches
--	   better would be called.  The script avoids constructs that look up an operator by its bare
--	   name: IN, CASE x WHEN, BETWEEN, NULLIF, IS DISTINCT FROM, USING.  Literals and arguments of
--	   functions have exactly the declared types.  Types for which SQL's grammar has words (bigint,
--	   boolean, double precision, integer, smallint) are PostgreSQL's whatever the search_path.
--	 - The extension's own objects are not qualified, since the extension can be moved to another
--	   schema.  The script creates each by a CREATE without OR REPLACE or IF NOT EXISTS, which fails
--	   if the schema already has an object of that name (for a function: with these arguments).
--	   These objects are not committed yet, so no other session can rename or replace them meanwhile.
--	   pg_temp comes last for relations and types, and is never searched for functions and operators.
--	 - Calls and names of the extension's own functions have exactly the declared types of all
--	   arguments.  An exact match wins over all others.  If another role has planted a function with
--	   the same arguments and further ones with defaults, the call is ambiguous, and CREATE EXTENSION
--	   fails before it has run any function.
--
-- Views, defaults and other expressions are stored with the objects' OIDs, so objects created later
-- do not change their meaning.

-- Warn if roles that are not superusers may create objects in the extension's schema.
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

CREATE TYPE geonn_point_pair AS (
	ord bigint,
	ref_id bigint,
	distance double precision
);
COMMENT ON TYPE geonn_point_pair IS
'the number of a point, its neighbour, and the metres between them';

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

-- What the planner asks about the joins below.
CREATE FUNCTION geonn_join_support(pg_catalog.internal) RETURNS pg_catalog.internal
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
COMMENT ON FUNCTION geonn_join_support(pg_catalog.internal) IS
'planner support for geonn_nearest, geonn_nearest_sql, geonn_within, geonn_within_sql, geonn_nearest_points, geonn_within_count with its siblings, geonn_cluster, geonn_thin, geonn_assign and their forms for queries';

-- Returns for each observation its k nearest references: the first ones in the order
-- (distance, reference id, latitude, longitude, bytes).  The distance is in metres, as
-- geonn_distance returns it; ids are in the btree order of their type and collation,
-- and bytes in the order of ROW(latitude, longitude, id) by OPERATOR(pg_catalog.*<),
-- with coordinates as double precision.  The rows of one observation are adjacent and
-- in this order; the observations come in no particular order.
--
-- obs, ref			tables, partitioned tables, views, materialized views or
--					foreign tables; geonn_describe shows which of their columns are
--					used.  The function reads them with the snapshot of the calling
--					statement and the privileges of its user.
-- k				1 ... 1024; fewer rows come if ref has fewer candidates
-- max_distance		metres, inclusive; NULL: no limit
-- metric			'sphere' or 'spheroid'
-- by				columns of both relations, with the same types: a reference is
--					a candidate only if it equals the observation in all of them.  'a=b'
--					is a of obs and b of ref.
-- differs			up to two columns of both relations, or pairs, with the same types: a reference is a
--					candidate only if it differs from the observation in all of them, as
--					by the operator <>
-- overlaps			up to three columns of both relations, each of a range type or of
--					single values of the same type, or pairs 'a=b': a reference is a candidate only
--					if it has the value of each in common with the observation, as by
--					the operator &&.  A single value v counts as the range [v,v].
-- exclude_self		leave out references whose id equals the observation's
-- keep_unmatched	return an observation without a neighbour once, as a left join
--					does, with NULL in place of the reference, and rank 1
-- ties				'first'; or 'all': also return references as far as the k-th
-- invalid			for coordinates that are NaN, infinite or out of range (latitude
--					-90 ... 90, longitude -180 ... 360): 'skip' such rows with one
--					warning for each relation, or raise an 'error' that names the
--					first
-- options			obs_id, obs_lat, obs_lon, obs_geog, ref_id, ref_lat, ref_lon,
--					ref_geog, ref_shape: names of columns; obs_radius, ref_radius: columns with
--					the metres that limit each row, NULL for no limit; device, algorithm: in place of the
--					settings geonn.device and geonn.algorithm; batch_rows: the
--					observations of a batch
-- row_type			NULL of the composite type of the result, with any of the
--					columns that doc/geonn.md has under row_type; of type record, with a
--					column definition list behind the call
--
-- A row with a NULL id or coordinate is not a candidate, nor one with a NULL in a column of
-- by, differs or overlaps.  If ref has no candidate, obs
-- is not read, unless keep_unmatched is set.  The rows are the same on all devices
-- and with all algorithms.
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

-- The same for the rows of two queries: one SELECT each, with columns id, lat and
-- lon, or id and a point, and the columns that the arguments by, differs and overlaps name.
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

-- Returns every pair of an observation and a reference that are at most radius metres
-- apart.  Arguments and rows are those of geonn_nearest.  radius may be NULL where options
-- name a column of radiuses.
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

-- Returns the nearest references of points in two arrays, of latitudes and of
-- longitudes; ord is a point's number in the arrays, from 1 on.  A row_type has it in
-- place of obs_id.
--
-- overlaps, windows	one column of ref, and an array with a value of its type, or of
--						the range over it, for each point
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

-- Returns for each observation and radius how many references are at most so many metres away, and
-- the sums of their weights: what SELECT count(*), coalesce(sum(weight), 0) over the pairs of
-- geonn_within does, without the pairs.  Each observation with valid coordinates has a row for each
-- radius, by rising radius; with no reference there, of zeros.  Arguments and observations are those of
-- geonn_within.
--
-- radii			1 ... 16 radii in metres, inclusive, in any order, each once
-- weights			up to four numeric columns of ref, read as double precision; a NULL adds nothing,
--					and NaN or an infinite number is an error
--
-- A sum is the exact sum of the weights, rounded once to double precision; so it depends neither on
-- their order nor on devices, batches or workers.  One beyond all double precision is an error.  The
-- least and the greatest weights, where row_type has columns for them, are NULL if no weight is there.
-- The engine counts by its index, whatever algorithm says.
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

-- The same for the points of geonn_nearest_points, with ord in place of obs_id.
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

-- Returns for each row of points its cluster, as DBSCAN finds them, but with one answer: it depends
-- neither on the order of rows nor on devices, batches or turns.
--
-- radius			metres, above 0, inclusive
-- min_points		a point with so many points within the radius, itself among them, is core: 1 finds
--					connected points, 2 those that are not alone
-- by, overlaps		columns: only points with equal keys, and overlapping windows, are neighbours; a point
--					with a NULL in one of them, or an empty range, has no row
--
-- Core points that are neighbours are of one cluster, with all that a chain of them connects.  A border
-- point is not core, and belongs to the cluster of its nearest core neighbour, the first by (distance, id).
-- The others are noise: their cluster is NULL.  Clusters are numbered from 1 on, by their least core id.
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

-- Thins the rows of points out: of those that are kept, no two are within the spacing.  Rows are taken by
-- priority, the greatest first and NULL last, then by id.  A row is kept unless a kept one before it is within
-- the spacing.  Returns each row's id, and in kept_by NULL for a kept one; for another one the id of the nearest
-- kept row within the spacing, the first by (distance, priority, id).
--
-- points			as obs of geonn_nearest; without NULLs among the columns of by and overlaps
-- spacing			metres, inclusive, above 0
-- priority			a column of numbers, which are compared as double precision; NULL: ids alone decide
-- by, overlaps, metric, invalid, options, row_type	as for geonn_cluster
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

-- Assigns rows of obs to rows of ref, each of which has room for so many.  Pairs are taken in the order
-- (distance, observation id, reference id), each whose observation has no reference yet, and whose reference
-- has room: greedy, not the assignment with the least sum of distances.  An observation has a row
-- if a reference with room is left for it.
--
-- capacity			how many observations a reference may have, at most; 0 closes all
-- capacity_column	a column of ref with the capacity of each, in place of capacity: whole numbers from 0 on
-- max_distance		no pair is farther apart, in metres; NULL: any distance
-- by, differs, overlaps, keep_unmatched and the others are as in geonn_nearest
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

-- Returns the metres between two points in degrees: with the metric 'sphere' along
-- the great circle of the sphere of radius 6371008.7714150598 m, with 'spheroid'
-- along the geodesic of WGS84, as PROJ computes it.  Latitudes are from -90 to 90,
-- longitudes from -180 to 360; other values, and other metrics, are an error
-- (SQLSTATE 22023).
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

-- Returns the metres between a point in degrees and a shape, along the great circle of
-- the same sphere: a PostGIS geography, or geometry with SRID 4326, of points,
-- lines, polygons or collections of them.  0 inside a polygon and on its border, NULL for
-- an empty shape.  Other types of shapes are an error (SQLSTATE 42804), and so are
-- coordinates that are out of range, other SRIDs, curves, surfaces, arcs between
-- antipodal vertices, and rings whose two sides are of the same size (22023).
--
-- No fourth argument has a default: calls with four values of unknown type are
-- those of two points.
CREATE FUNCTION geonn_distance(lat double precision, lon double precision,
							   shape pg_catalog.anyelement)
	RETURNS double precision
	AS 'MODULE_PATHNAME', 'geonn_distance_to_shape' LANGUAGE C
	IMMUTABLE STRICT PARALLEL SAFE
	COST 1000;
COMMENT ON FUNCTION geonn_distance(double precision, double precision, pg_catalog.anyelement) IS
'metres between a point of latitude and longitude in degrees and a geography or geometry of PostGIS';

-- Returns the metres between two such shapes: between their nearest places, and 0 where they
-- touch or cross, or one lies in the other.  (shape1, shape2) gives the same bits as (shape2, shape1), a
-- point those of its coordinates, and an empty shape NULL.  The metric 'sphere' is the only one.
--
-- The metric is a name, as PostGIS turns a geometry into a text, if asked for one: calls with a
-- geometry behind two values of unknown type are those of a point and a shape.
CREATE FUNCTION geonn_distance(shape1 pg_catalog.anycompatible, shape2 pg_catalog.anycompatible,
							   metric pg_catalog.name DEFAULT 'sphere'::pg_catalog.name)
	RETURNS double precision
	AS 'MODULE_PATHNAME', 'geonn_distance_of_shapes' LANGUAGE C
	IMMUTABLE STRICT PARALLEL SAFE
	COST 2000;
COMMENT ON FUNCTION geonn_distance(pg_catalog.anycompatible, pg_catalog.anycompatible, pg_catalog.name) IS
'metres between two geographies or geometries of PostGIS';

-- Returns the columns of a relation that geonn_nearest uses, or raises the same error
-- if it cannot find them.  options name columns as for geonn_check, and overlaps those with
-- windows.
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

-- Counts rows of a relation that matter for a join.  options may name columns by id,
-- lat, lon, geog, radius and shape; otherwise geonn finds them as geonn_nearest does.  overlaps names
-- columns with windows; arrays of the result have an element for each of these.  Counts of
-- radiuses and windows are of all rows, NULL if no such column is named.
-- duplicate_coordinates and duplicate_ids count the rows beyond the first of each place
-- and id; duplicate_ids is NULL if the ids' type has no order.  The extents are those of
-- the rows with valid coordinates, NULL if no row has any.  Coordinates that are swapped
-- but in range, as all of Europe's are, show in the extents only.  Warnings say that
-- latitude and longitude may be swapped: if all rows would be valid when swapped and, in
-- addition, latitudes are out of range, or each column has the name of the other
-- coordinate; and that units may be others than degrees: if no row is in range, or all
-- rows are where radians would be.
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

-- Returns the engine's state.  Starts nothing, and takes about a second at most.
CREATE FUNCTION geonn_status(
		OUT state pg_catalog.text,	-- stopped, starting, running, not answering, failed
		OUT supervisor_pid integer,
		OUT engine_pid integer,
		OUT version pg_catalog.text,	-- of the engine
		OUT devices integer,	-- that geonn.device = auto uses
		OUT sessions integer,	-- statements that have a session
		OUT sessions_waiting integer,	-- statements that wait for one
		OUT sessions_idle integer,	-- sessions that server processes keep for their next calls
		OUT datasets integer,	-- sets of references that the engine holds
		OUT datasets_kept integer,	-- of these: kept for later statements
		OUT searches integer,	-- batches waiting or being searched
		OUT transfer_memory bigint,			-- bytes shared with sessions
		OUT transfer_memory_limit bigint,	-- bytes
		OUT kept_memory bigint,	-- bytes that kept datasets take
		OUT base_memory bigint,	-- bytes that the engine takes before any statement or dataset
		OUT started_at pg_catalog.timestamptz,
		OUT reason pg_catalog.text)	-- why the engine does not run, or uses no GPU
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION geonn_status() IS
'state of the geonn engine, without starting it';

-- Starts the engine if none runs, waits until it has found its devices, and returns its
-- process id: what a join does first.  EXECUTE on it is the privilege to search that all joins,
-- refreshes and plan nodes ask for.
CREATE FUNCTION geonn_engine_start() RETURNS integer
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION geonn_engine_start() IS
'starts the geonn engine if none runs, and returns its process id';

-- Returns the devices of the running engine, or else those of the last one.  Starts nothing.
CREATE FUNCTION geonn_device_status(
		OUT device integer,		-- 0 is the CPU
		OUT kind pg_catalog.text,	-- cpu, cuda
		OUT name pg_catalog.text,
		OUT uuid pg_catalog.text,	-- of a GPU
		OUT state pg_catalog.text,	-- ready, failed; stopped with the engine
		OUT used boolean,		-- where geonn.device = auto
		OUT threads integer,	-- of the CPU
		OUT compute_capability pg_catalog.text,	-- of a GPU
		OUT memory_total bigint,		-- bytes
		OUT memory_free bigint,			-- bytes
		OUT utilization integer,		-- of a GPU: percent of the time
		OUT temperature integer,		-- of a GPU: degrees Celsius
		OUT power double precision,		-- of a GPU: watts
		OUT batches bigint,		-- searched since the engine started
		OUT reason pg_catalog.text)	-- why the device failed
	RETURNS SETOF pg_catalog.record
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL RESTRICTED
	ROWS 2;
COMMENT ON FUNCTION geonn_device_status() IS
'the rows of the view geonn_devices';

CREATE VIEW geonn_devices AS SELECT * FROM geonn_device_status();
COMMENT ON VIEW geonn_devices IS
'the CPU and the GPUs of the geonn engine, without starting it';
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
	arguments pg_catalog.jsonb NOT NULL,	-- k ... replace of geonn_cache_create, by name
	schedule pg_catalog.text	-- as given to geonn_schedule
) USING heap;
COMMENT ON TABLE geonn_cache IS 'tables of neighbours that geonn_refresh keeps up to date';
-- pg_dump writes the OID of a dropped relation as a number, which may be another relation's OID in the database
-- to which the dump is restored.  So a dump leaves out caches with a dropped relation.
SELECT pg_catalog.pg_extension_config_dump('geonn_cache'::pg_catalog.regclass,
	'WHERE EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) target::pg_catalog.oid)
	AND EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) obs::pg_catalog.oid)
	AND EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) ref::pg_catalog.oid)'::pg_catalog.text);
SELECT pg_catalog.pg_extension_config_dump('geonn_cache_id'::pg_catalog.regclass, ''::pg_catalog.text);

-- Runs of geonn_refresh: of each cache the last geonn.log_keep.
CREATE TABLE geonn_cache_run (
	id bigint GENERATED ALWAYS AS IDENTITY,
	cache integer,
	started pg_catalog.timestamptz NOT NULL,
	finished pg_catalog.timestamptz,
	status pg_catalog.text NOT NULL,	-- running, succeeded, failed, skipped
	pid integer NOT NULL,
	mode pg_catalog.text,	-- fill, full, incremental, unchanged
	reason pg_catalog.text,	-- of the mode
	searched bigint,					-- observations; NULL if not counted
	rows bigint,						-- of the table, after the run
	inserted bigint,
	updated bigint,
	deleted bigint,
	error pg_catalog.text,
	PRIMARY KEY (cache, id)
);
COMMENT ON TABLE geonn_cache_run IS 'the latest runs of geonn_refresh';

-- How often each cache was refreshed, including runs that are no longer in the log.
CREATE TABLE geonn_cache_total (
	cache integer PRIMARY KEY,
	runs bigint NOT NULL,				-- that succeeded
	failures bigint NOT NULL
);

-- What the last run of each cache read: cache/last_run.c and cache/baseline.c have the essays.
-- A refresh can create these rows again, so they are neither in the WAL nor in dumps.
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
CREATE UNLOGGED TABLE geonn_cache_block (
	cache integer,
	side smallint,						-- 0: obs, 1: ref
	number bigint,
	contents pg_catalog.bytea NOT NULL,
	PRIMARY KEY (cache, side, number)
) USING heap WITH (toast_tuple_target = 8160, fillfactor = 75);
ALTER TABLE geonn_cache_block ALTER contents SET STORAGE EXTERNAL;
CREATE UNLOGGED TABLE geonn_cache_directory (
	cache integer,
	side smallint,
	number bigint,
	contents pg_catalog.bytea NOT NULL,
	PRIMARY KEY (cache, side, number)
) USING heap WITH (toast_tuple_target = 8160, fillfactor = 50);
ALTER TABLE geonn_cache_directory ALTER contents SET STORAGE EXTERNAL;
CREATE UNLOGGED TABLE geonn_cache_page (
	cache integer,
	side smallint,
	number bigint,						-- OID of a table and, in the last 32 bits, number of one of its pages
	contents pg_catalog.bytea NOT NULL,
	PRIMARY KEY (cache, side, number)
) USING heap WITH (toast_tuple_target = 8160, fillfactor = 75);
ALTER TABLE geonn_cache_page ALTER contents SET STORAGE EXTERNAL;

-- Creates a table of the neighbours of obs in ref, with the columns obs_id, rank,
-- ref_id and distance; geonn_refresh fills it and then keeps it up to date.  Its
-- primary key is (obs_id, rank): a duplicate id in obs is an error.
--
-- name				the cache's name, for the other functions
-- k ... options	as for geonn_nearest; with radius, as for geonn_within
-- target			name of the table to create, with or without schema; NULL: the
--					cache's name
-- radius			metres: all references within it, in place of k
-- radii, weights	as for geonn_within_count, in place of k: the table then has the columns radius,
--					count and sums in place of ref_id and distance, and rank is the number of the
--					radius, from 1 on, by rising radius
-- cluster, radius, min_points	a relation and what geonn_cluster takes, in place of obs, ref and k: the table
--					then has the columns id, cluster and kind, and a cluster is the least id of its
--					core points
-- replace			when a refresh makes new files for the table, as REFRESH MATERIALIZED
--					VIEW does, and updates no rows.  'auto': when most rows differ, and
--					nothing depends on the updates; 'never'; 'always': in each full
--					refresh
--
-- The calling role owns the table and the cache; refreshes run as the table's
-- owner.  Returns the table.
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

-- Changes the arguments of a cache, or its name: changes has any of name, k,
-- max_distance, radius, min_points, radii, weights, metric, by, differs, overlaps, exclude_self,
-- keep_unmatched, ties, invalid, options and replace.  The table's rows change with the next refresh.
CREATE FUNCTION geonn_cache_alter(name pg_catalog.text, changes pg_catalog.jsonb) RETURNS pg_catalog.void
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_cache_alter(pg_catalog.text, pg_catalog.jsonb) IS
'changes the arguments of a cache, or its name';

-- Drops a cache with its schedule and, unless keep_table is set, its table; with cascade also what depends
-- on the table, as views do.
CREATE FUNCTION geonn_cache_drop(name pg_catalog.text, keep_table boolean DEFAULT false,
		cascade boolean DEFAULT false) RETURNS pg_catalog.void
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION geonn_cache_drop(pg_catalog.text, boolean, boolean) IS
'drops a cache and its table';

-- Gives a cache's table the rows that a join would return now.  mode is 'full': search
-- for all observations; 'incremental': search for those whose neighbours may have
-- changed, if the last run left baselines; or 'auto': whichever is less work.  Writes
-- only the rows that differ, or replaces the table.  Called outside a transaction
-- block, it also records failures.
CREATE PROCEDURE geonn_refresh(name pg_catalog.text, mode pg_catalog.text DEFAULT 'auto'::pg_catalog.text)
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON PROCEDURE geonn_refresh(pg_catalog.text, pg_catalog.text) IS
'brings the table of a cache up to date';

-- Refreshes all caches of the current user, one after the other; if one fails, it raises
-- a warning and goes on.
CREATE PROCEDURE geonn_refresh_all(mode pg_catalog.text DEFAULT 'auto'::pg_catalog.text)
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON PROCEDURE geonn_refresh_all(pg_catalog.text) IS
'brings the tables of all caches of the current user up to date';

-- The triggers of caches' tables call this when anything but a refresh changes rows: the
-- next refresh then compares all of them.
CREATE FUNCTION geonn_cache_changed() RETURNS pg_catalog.trigger
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON FUNCTION geonn_cache_changed() IS
'makes the next refresh of a cache compare all rows of its table';

-- Drops a cache when its table is dropped, by whichever command.
CREATE FUNCTION geonn_cache_dropped() RETURNS pg_catalog.event_trigger
	AS 'MODULE_PATHNAME' LANGUAGE C;
COMMENT ON FUNCTION geonn_cache_dropped() IS
'drops the caches whose tables were dropped';
CREATE EVENT TRIGGER geonn_cache_dropped ON sql_drop EXECUTE FUNCTION geonn_cache_dropped();
ALTER EVENT TRIGGER geonn_cache_dropped ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER geonn_cache_dropped IS
'drops the caches whose tables were dropped';

-- Has pg_cron refresh a cache: schedule is one of cron's, as in '*/5 * * * *', or, from
-- pg_cron 1.5 on, '30 seconds'.  A new schedule replaces the former one.
-- The job runs as the owner of the cache's table, and the owner needs USAGE on
-- schema cron.  Returns pg_cron's job id.
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

-- Before a command that moves, renames or drops the extension or its schema, changes or removes the jobs
-- of pg_cron that call its procedures there.
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

-- Only the functions above write these tables, as the tables' owner: membership in
-- pg_write_all_data is not enough.  Row-level security without a policy keeps all other roles out.  On
-- geonn_cache, the only one of these tables in dumps, it would also keep members of pg_read_all_data from
-- dumping: so triggers guard that table, for statements and, because of logical replication, for rows.
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
ALTER TABLE geonn_cache_page ENABLE ROW LEVEL SECURITY;

-- These views show the caches of roles of which the current user is a member; members of
-- pg_read_all_stats see all caches.  A cache without a table belongs to the extension's owner.  The
-- views are security barriers: functions in a query see only rows that meet the condition.
CREATE VIEW geonn_caches WITH (security_barrier) AS
	SELECT c.name, c.target, pg_catalog.pg_get_userbyid(t.relowner) AS owner, c.obs, c.ref,
		r.started AS last_start,
		r.finished AS last_finish,
		-- a process that was killed leaves its row as running
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

-- ---- shards: one side of a join divided among servers ----

-- Returns the commands that divide one table of a join among servers, and replicate the other to
-- all of them; server is NULL for commands that run here, on the coordinator.  Runs none of them.  What
-- exists already gets no command.
--
-- servers			foreign servers of postgres_fdw, with user mappings
-- obs, ref			tables of this database with primary keys: the shards get their columns, indexes and
--					checks; what shards cannot have, as row-level security, is an error
-- coordinator		connection string by which shards reach this database
-- sharded			'obs' or 'ref': the table that is divided; the other one is replicated
-- partition_by		'hash', 'list' or 'range'
-- key				column to divide by, of the primary key; NULL: its first one
-- partitions		with 'hash': how many; NULL: 4 for each server
-- bounds			with 'list': arrays of values, one for each partition; with 'range': the
--					values at which partitions begin, but for the first
-- view				name of the view of the answer; NULL: that of obs and _nearest
-- cache			keep the answer in a cache on each shard, too
-- schedule			of the caches, for geonn_schedule; they are made even if cache is not set
-- readers			roles that may read the tables and views
-- k ... options	as for geonn_nearest; with radius, as for geonn_within
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

-- Returns the commands that move partitions of a table that is divided among servers, until
-- these servers have about the same number, and others have none.  Runs none of them.
--
-- servers			as for geonn_shard_ddl, each of them set up by its commands
-- tab				the table that is divided: the one named there, not the one with _sharded
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

-- ---- watching ----

-- Joins under way: one row for each call of a join, however many processes work for it.
-- Relations and arguments of other users' calls are shown to members of
-- pg_read_all_stats only; names and arguments of calls in other databases are NULL.
CREATE FUNCTION geonn_progress(
		OUT pid integer,		-- of the process that is called
		OUT sessions integer,	-- with the engine, of this process and its workers
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
		OUT observations_expected bigint,	-- as estimated; NULL if unknown
		OUT references_read bigint,
		OUT device pg_catalog.text,	-- that work or worked for it: CPU, GPU 1, ...
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
'joins under way, and how far they are';
GRANT SELECT ON geonn_stat_progress TO PUBLIC;

-- Joins that have ended, since the engine started or the last reset: one row for each
-- combination of database, user, function, relations and arguments.  Only the 1,000
-- combinations called last are kept.  The times of the phases add up to the total.
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
		OUT references_kept bigint,	-- calls that found them kept in the engine
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
'joins that have ended: their rows, their times, their errors';
GRANT SELECT ON geonn_stat TO PUBLIC;

CREATE FUNCTION geonn_stat_reset() RETURNS pg_catalog.void
	AS 'MODULE_PATHNAME' LANGUAGE C
	VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION geonn_stat_reset() IS
'resets the figures of geonn_stat, of all databases';
REVOKE ALL ON FUNCTION geonn_stat_reset() FROM PUBLIC;
