-- Plans of nearest-neighbour subqueries, where a session may have them.
-- rooms: sql
SET geonn.enable_sql_joins = on;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE subquery_o AS
SELECT i AS id, i % 4 AS kind, i * 7 % 170 - 85.0::float8 AS lat, i * 13 % 360 - 180.0::float8 AS lon FROM generate_series(1, 400) i;
CREATE TABLE subquery_r AS
SELECT i AS id, i % 5 AS kind, i * 11 % 170 - 85.0::float8 AS lat, i * 17 % 360 - 180.0::float8 AS lon FROM generate_series(1, 500) i;
ALTER TABLE subquery_o ADD PRIMARY KEY (id);
ANALYZE subquery_o, subquery_r;

-- behind LATERAL
EXPLAIN (COSTS OFF)
SELECT o.id, n.id, n.d FROM subquery_o o CROSS JOIN LATERAL (
	SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS d FROM subquery_r r
	WHERE r.kind < 4 ORDER BY geonn_distance(o.lat, o.lon, r.lat, r.lon), r.id LIMIT 3) n;

-- with conditions that join both rows
EXPLAIN (COSTS OFF)
SELECT o.id, n.id FROM subquery_o o LEFT JOIN LATERAL (
	SELECT r.id FROM subquery_r r WHERE r.id <> o.id AND r.kind = o.kind
	ORDER BY geonn_distance(o.lat, o.lon, r.lat, r.lon, 'spheroid'), r.id LIMIT 1 OFFSET 1) n ON true;

-- as a value
EXPLAIN (COSTS OFF)
SELECT o.id, (SELECT r.id FROM subquery_r r ORDER BY geonn_distance(o.lat, o.lon, r.lat, r.lon), r.id LIMIT 1) FROM subquery_o o;

-- with DISTINCT ON
EXPLAIN (COSTS OFF)
SELECT DISTINCT ON (o.id) o.id, r.id FROM subquery_o o, subquery_r r
WHERE o.kind > 1 AND r.kind < 4 ORDER BY o.id, geonn_distance(o.lat, o.lon, r.lat, r.lon), r.id;

-- what is not taken
SET enable_memoize = off;
-- another extension may log plans, which a client of this level would see
SET auto_explain.log_min_duration = -1;
SET client_min_messages = debug1;
EXPLAIN (COSTS OFF)
SELECT o.id, n.id FROM subquery_o o CROSS JOIN LATERAL (
	SELECT r.id FROM subquery_r r WHERE r.kind < o.kind ORDER BY geonn_distance(o.lat, o.lon, r.lat, r.lon), r.id LIMIT 3) n;
RESET client_min_messages;
SET compute_query_id = off;
EXPLAIN (VERBOSE, COSTS OFF)
SELECT o.id, n.id FROM subquery_o o CROSS JOIN LATERAL (
	SELECT r.id FROM subquery_r r WHERE r.kind < o.kind ORDER BY geonn_distance(o.lat, o.lon, r.lat, r.lon), r.id LIMIT 3) n;

-- below a Gather
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF)
SELECT o.id, n.id FROM subquery_o o CROSS JOIN LATERAL (
	SELECT r.id FROM subquery_r r ORDER BY geonn_distance(o.lat, o.lon, r.lat, r.lon), r.id LIMIT 3) n;

-- the rows are those without the node
SELECT sum(n.id), sum(round(n.d)), count(*) FROM subquery_o o CROSS JOIN LATERAL (
	SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS d FROM subquery_r r
	WHERE r.id <> o.id AND r.kind = o.kind ORDER BY geonn_distance(o.lat, o.lon, r.lat, r.lon), r.id LIMIT 3) n;
SET geonn.enable_sql_joins = off;
SELECT sum(n.id), sum(round(n.d)), count(*) FROM subquery_o o CROSS JOIN LATERAL (
	SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS d FROM subquery_r r
	WHERE r.id <> o.id AND r.kind = o.kind ORDER BY geonn_distance(o.lat, o.lon, r.lat, r.lon), r.id LIMIT 3) n;
DROP TABLE subquery_o, subquery_r;
