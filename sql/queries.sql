-- geonn_nearest_sql() and geonn_within_sql(): the points are those of any query that only reads
-- rooms: points
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
DROP ROLE IF EXISTS regress_geonn_user;
RESET client_min_messages;
CREATE SCHEMA queries;
SET search_path = queries, public;

-- The definition: for each row of one query the first k rows of the other in the
-- order (distance, id).  Returns how many rows geonn_nearest_sql has, how many
-- it lacks and how many it has too many.
CREATE FUNCTION compare(obs_sql text, ref_sql text, k integer DEFAULT 2,
    OUT rows bigint, OUT missing bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format($query$
        CREATE TEMP TABLE expected AS
        SELECT o.id AS obs_id, r.id AS ref_id, r.distance
        FROM (%1$s) o CROSS JOIN LATERAL (
            SELECT r.id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance
            FROM (%2$s) r ORDER BY distance, r.id LIMIT %3$s) r;
        CREATE TEMP TABLE found AS SELECT * FROM geonn_nearest_sql(%1$L, %2$L, %3$L)
        $query$, obs_sql, ref_sql, k);
    SELECT count(*) INTO rows FROM found;
    SELECT count(*) INTO missing
    FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM found) x;
    SELECT count(*) INTO wrong
    FROM (SELECT * FROM found EXCEPT ALL SELECT * FROM expected) x;
    DROP TABLE expected, found;
END $$;

CREATE TABLE country (code text PRIMARY KEY, name text);
INSERT INTO country VALUES ('DE', 'Germany'), ('EC', 'Ecuador'), ('FJ', 'Fiji'), ('NO', 'Norway');
CREATE TABLE city (id bigint PRIMARY KEY, name text, country text, lat float8, lon float8);
CREATE TABLE airport (id integer PRIMARY KEY, code text, country text, lat float8, lon float8);
INSERT INTO city VALUES
    (1, 'Berlin', 'DE', 52.52, 13.405), (2, 'Quito', 'EC', -0.2299, -78.525),
    (3, 'Suva', 'FJ', -18.1416, 178.4419), (4, 'Longyearbyen', 'NO', 78.2232, 15.6267);
INSERT INTO airport VALUES
    (10, 'BER', 'DE', 52.3667, 13.5033), (11, 'UIO', 'EC', -0.1292, -78.3575),
    (12, 'NAN', 'FJ', -17.7554, 177.4434), (13, 'LYR', 'NO', 78.2461, 15.4656),
    (14, 'APW', 'WS', -13.83, -172.0083);

-- an example
SELECT * FROM geonn_nearest_sql('SELECT id, lat, lon FROM city WHERE country <> ''DE''',
                                'SELECT id, lat, lon FROM airport')
ORDER BY obs_id;
SELECT * FROM geonn_within_sql('SELECT id, lat, lon FROM city',
                               'SELECT id, lat, lon FROM airport', 20000)
ORDER BY obs_id;

-- whatever a SELECT can be
SELECT * FROM compare('TABLE city', 'TABLE airport');
SELECT * FROM compare('SELECT * FROM city WHERE lat > 0 ORDER BY name DESC LIMIT 2',
                      'SELECT * FROM airport OFFSET 1', 3);
SELECT * FROM compare($$SELECT c.id, c.lat, c.lon
                        FROM city c JOIN country n ON n.code = c.country WHERE n.name ~ 'a'$$,
                      'SELECT DISTINCT ON (country) * FROM airport ORDER BY country, code');
SELECT * FROM compare('WITH north AS (SELECT * FROM city WHERE lat > 0) SELECT * FROM north',
                      'WITH RECURSIVE a AS (SELECT * FROM airport WHERE id = 10 UNION ALL
                       SELECT b.* FROM a, airport b WHERE b.id = a.id + 1) SELECT * FROM a');
SELECT * FROM compare('SELECT * FROM (VALUES (7, 1.5, 2), (8, -1.5, NULL)) v (id, lat, lon) WHERE lon > 0',
                      'SELECT 1 AS id, 2 AS lat, 3 AS lon UNION ALL SELECT 2, 3, 4');
SELECT * FROM compare('SELECT i AS id, (i * 7 % 90)::float8 AS lat, i * 13 % 180 AS lon FROM generate_series(1, 500) i',
                      'SELECT generate_series(1, 50) AS id, generate_series(-49, 49, 2) AS lat,
                              unnest(array_agg(i)) AS lon FROM generate_series(1, 50) i', 5);
SELECT * FROM compare('SELECT min(id) AS id, avg(lat) AS lat, avg(lon) AS lon FROM city GROUP BY lat > 0',
                      'SELECT row_number() OVER (ORDER BY code) AS id, lat::numeric(8, 2), lon::real FROM airport');
SELECT * FROM compare($$SELECT * FROM jsonb_to_recordset('[{"id": 5, "lat": 50, "lon": 9}]')
                                      AS x (id integer, lat float8, lon float8)$$,
                      'SELECT a.* FROM city c, LATERAL (SELECT a.* FROM airport a WHERE a.country = c.country) a');
SELECT * FROM compare('SELECT * FROM city TABLESAMPLE BERNOULLI (100) WHERE id IN (SELECT id - 9 FROM airport)',
                      'SELECT * FROM airport EXCEPT SELECT * FROM airport WHERE code = ''APW''');

-- comments and a semicolon
SELECT * FROM geonn_nearest_sql('/* cities */ SELECT * FROM city WHERE id = 1; -- one',
                                E'-- airports\nTABLE airport;');

-- columns in any order, in any case, and more of them than are needed
SELECT * FROM geonn_nearest_sql('SELECT lon, name, lat, country, id FROM city WHERE id = 1',
                                'SELECT code, lon AS "LNG", lat AS "Latitude", country, id AS "ID" FROM airport');
SELECT * FROM geonn_nearest_sql('SELECT id, point(lon, lat) AS place FROM city WHERE id = 1',
                                'SELECT id, lat + 1 AS lat, lon FROM airport');
SELECT * FROM geonn_nearest_sql('SELECT id AS number, lat AS y, lon AS x, 0 AS lat FROM city WHERE id = 1',
                                'TABLE airport',
                                options => '{"obs_id": "number", "obs_lat": "y", "obs_lon": "x"}');

-- groups by expressions
SELECT n.*
FROM geonn_nearest_sql('SELECT id, lat, lon, lat > 0 AS north, left(name, 1) AS letter FROM city',
                       'SELECT id, lat, lon, lat > 0 AS north, left(code, 1) AS letter FROM airport',
                       by => '{letter,north}', keep_unmatched => true) n
ORDER BY obs_id;
SELECT o.id AS obs_id, r.*
FROM city o LEFT JOIN LATERAL (
    SELECT r.id AS ref_id, d AS distance
    FROM airport r, LATERAL geonn_distance(o.lat, o.lon, r.lat, r.lon) d
    WHERE left(r.code, 1) = left(o.name, 1) AND (r.lat > 0) = (o.lat > 0)
    ORDER BY d, r.id LIMIT 1) r ON true
ORDER BY obs_id;
SELECT * FROM geonn_nearest_sql('SELECT *, 1 AS kind FROM city', 'SELECT *, ''1'' AS kind FROM airport',
                                by => '{kind}');
SELECT * FROM geonn_nearest_sql('SELECT *, 1 AS kind FROM city', 'TABLE airport', by => '{kind}');

-- queries that ask geonn themselves
SELECT * FROM compare($$SELECT n.ref_id AS id, a.lat, a.lon
                        FROM geonn_nearest('city', 'airport') n JOIN airport a ON a.id = n.ref_id$$,
                      'TABLE city');
SELECT * FROM compare('TABLE city',
                      $$SELECT r.id, r.lat, r.lon
                        FROM geonn_nearest_sql('TABLE city', 'TABLE airport', k => 2) n
                        JOIN airport r ON r.id = n.ref_id WHERE n.obs_id IN (1, 3)$$);

-- read in parallel, where PostgreSQL likes to
CREATE TABLE many AS
SELECT i AS id, (i * 104729 % 180001) / 1000.0::float8 - 90 AS lat,
       (i * 1299709 % 540001) / 1000.0::float8 - 180 AS lon
FROM generate_series(1, 1500::bigint) i;
ANALYZE many;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT * FROM many WHERE id % 3 = 0;
CREATE TABLE nearest AS
SELECT * FROM geonn_nearest_sql('SELECT * FROM many WHERE id % 3 = 0', 'SELECT * FROM many WHERE id % 3 = 1');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
SELECT count(*), count(r.id) AS right
FROM nearest n FULL JOIN (
    SELECT o.id, r.* FROM many o, LATERAL (
        SELECT r.id, d FROM many r, LATERAL geonn_distance(o.lat, o.lon, r.lat, r.lon) d
        WHERE r.id % 3 = 1 ORDER BY d, r.id LIMIT 1) r
    WHERE o.id % 3 = 0) r (obs_id, id, distance)
ON r.obs_id = n.obs_id AND r.id = n.ref_id AND r.distance = n.distance;

-- no parameters: a format() puts values into the text
PREPARE nearest (float8) AS
SELECT obs_id, ref_id FROM geonn_nearest_sql('SELECT * FROM city WHERE lat > $1', 'TABLE airport');
EXECUTE nearest (0);
DEALLOCATE nearest;
PREPARE nearest (text) AS
SELECT obs_id, ref_id FROM geonn_nearest_sql(format('SELECT * FROM city WHERE name = %L', $1), 'TABLE airport');
EXECUTE nearest ('Quito');
EXECUTE nearest ('''; DROP TABLE city --');
SELECT c.name, a.code
FROM city c, LATERAL geonn_nearest_sql(format('SELECT %s AS id, %s AS lat, %s AS lon', c.id, c.lat, c.lon),
                                       format('SELECT * FROM airport WHERE country <> %L', c.country)) n
JOIN airport a ON a.id = n.ref_id
ORDER BY c.id;

-- names are looked up as in the calling statement
CREATE SCHEMA queries_other;
CREATE TABLE queries_other.airport (id integer, lat float8, lon float8);
INSERT INTO queries_other.airport VALUES (99, 50, 10);
SELECT ref_id FROM geonn_nearest_sql('TABLE city', 'TABLE airport') WHERE obs_id = 1;
SET search_path = queries_other, queries, public;
SELECT ref_id FROM geonn_nearest_sql('TABLE city', 'TABLE airport') WHERE obs_id = 1;
SET search_path = queries, public;
CREATE TEMP TABLE airport (id integer, lat float8, lon float8);
INSERT INTO airport VALUES (88, 50, 11);
SELECT ref_id FROM geonn_nearest_sql('TABLE city', 'TABLE airport') WHERE obs_id = 1;
DROP TABLE pg_temp.airport;
CREATE FUNCTION elsewhere() RETURNS SETOF integer LANGUAGE sql STABLE SET search_path = queries_other, public
AS $$ SELECT ref_id::integer FROM geonn_nearest_sql('SELECT 1 AS id, 2 AS lat, 3 AS lon', 'TABLE airport') $$;
SELECT * FROM elsewhere();

-- the caller's privileges and policies, or those of a function's definer
CREATE ROLE regress_geonn_user;
GRANT USAGE ON SCHEMA queries TO regress_geonn_user;
GRANT SELECT ON city TO regress_geonn_user;
CREATE FUNCTION as_definer(OUT obs_id bigint, OUT ref_id bigint) RETURNS SETOF record
LANGUAGE sql SECURITY DEFINER SET search_path = queries, public
AS $$ SELECT obs_id, ref_id FROM geonn_nearest_sql('TABLE city', 'TABLE airport') $$;
SET ROLE regress_geonn_user;
SELECT * FROM geonn_nearest_sql('TABLE city', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('TABLE airport', 'TABLE city');
SELECT count(*) FROM geonn_within_sql('TABLE city', 'TABLE city', 1);
SELECT * FROM as_definer() ORDER BY 1;
RESET ROLE;
ALTER TABLE city ENABLE ROW LEVEL SECURITY;
CREATE POLICY north ON city TO regress_geonn_user USING (lat > 0);
SET ROLE regress_geonn_user;
SELECT obs_id FROM geonn_nearest_sql('TABLE city', 'TABLE city') ORDER BY 1;
SELECT * FROM as_definer() ORDER BY 1;
RESET ROLE;
ALTER TABLE city DISABLE ROW LEVEL SECURITY;

-- each query is run once, and its functions once a row; what functions change
-- is changed, as in every statement, though the statement does not see it
CREATE SEQUENCE number;
SELECT obs_id, ref_id FROM geonn_nearest_sql('SELECT nextval(''number'') AS id, lat, lon FROM city ORDER BY name',
                                             'TABLE airport') ORDER BY 1;
SELECT last_value FROM number;
CREATE TABLE seen (id bigint);
CREATE FUNCTION note(id bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO seen VALUES (id);
    RETURN id;
END $$;
SELECT obs_id, (SELECT count(*) FROM seen) AS seen
FROM geonn_nearest_sql('SELECT note(id) AS id, lat, lon FROM city', 'TABLE airport') ORDER BY 1;
SELECT * FROM seen ORDER BY 1;
BEGIN READ ONLY;
SELECT count(*) FROM geonn_nearest_sql('TABLE city', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('SELECT note(id) AS id, lat, lon FROM city', 'TABLE airport');
ROLLBACK;
CREATE FUNCTION insert_and_count() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO city VALUES (5, 'Apia', 'WS', -13.8333, -171.7667);
    RETURN (SELECT count(*) FROM geonn_nearest_sql('TABLE city', 'TABLE airport'));
END $$;
SELECT insert_and_count();
DELETE FROM city WHERE id = 5;

-- no rows, and nothing but NULL
SELECT * FROM geonn_nearest_sql('SELECT * FROM city WHERE false', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('SELECT * FROM city LIMIT 0', 'SELECT * FROM airport LIMIT 0');
SELECT * FROM geonn_nearest_sql('TABLE city', 'SELECT id, NULL::float8 AS lat, lon FROM airport',
                                keep_unmatched => true) ORDER BY 1;
SELECT * FROM geonn_nearest_sql(NULL, 'TABLE airport');
SELECT * FROM geonn_nearest_sql('TABLE city', NULL);

-- rows that are no points
SELECT * FROM geonn_nearest_sql('SELECT id, CASE id WHEN 1 THEN ''NaN'' ELSE lat END AS lat, lon FROM city',
                                'SELECT id, lat * 2 AS lat, lon FROM airport') ORDER BY 1;
SELECT * FROM geonn_nearest_sql('TABLE city', 'SELECT id, lat * 2 AS lat, lon FROM airport ORDER BY id',
                                invalid => 'error');

-- columns that are missing, ambiguous or of another type
SELECT * FROM geonn_nearest_sql('SELECT name, lat, lon FROM city', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('TABLE city', 'SELECT id, lat FROM airport');
SELECT * FROM geonn_nearest_sql('VALUES (1, 2, 3)', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('SELECT', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('TABLE city', 'SELECT a.id, b.* FROM airport a, airport b');
SELECT * FROM geonn_nearest_sql('TABLE city', 'SELECT a.*, b.country FROM airport a, airport b', by => '{country}');
SELECT * FROM geonn_nearest_sql('SELECT *, id AS x, lat AS x FROM city', 'TABLE airport', options => '{"obs_id": "x"}');
SELECT * FROM geonn_nearest_sql('SELECT id, lat::text AS lat, lon FROM city', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('SELECT name AS id, lat, lon FROM city', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('SELECT id, NULL AS lat, lon FROM city', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('TABLE city', 'TABLE airport', options => '{"ref_lat": "y", "ref_lon": "x"}');

-- errors in a query are shown where they are
SELECT * FROM geonn_nearest_sql('SELECT id lat lon FROM city', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('TABLE city', 'SELECT * FROM no_such_table');
SELECT * FROM geonn_within_sql('TABLE city', 'SELECT id, lat, no_such_column AS lon FROM airport', 1);
SELECT * FROM geonn_nearest_sql('SELECT id, lat, lon FROM city WHERE lat / (id - 2) > 0', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('TABLE city', 'SELECT id, lat, (country || ''x'')::float8 AS lon FROM airport');

-- a table where a query is meant
SELECT * FROM geonn_nearest_sql('city', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('TABLE city', '
  queries."airport"');
SELECT * FROM geonn_nearest_sql('city WHERE id = 1', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('city;', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('(city)', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('"GPS Pings"', 'TABLE airport');
DO $$BEGIN PERFORM * FROM geonn_within_sql('City', 'TABLE airport', 1); END$$;
-- which the HINT mends
SELECT count(*) FROM geonn_nearest_sql('TABLE city', 'TABLE queries.airport');

-- only one SELECT that changes nothing
SELECT * FROM geonn_nearest_sql('', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('TABLE city', ' -- nothing');
SELECT * FROM geonn_nearest_sql('TABLE city; TABLE city', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('TABLE city', 'TABLE airport; DROP TABLE city');
SELECT * FROM geonn_nearest_sql('INSERT INTO city SELECT id + 10, name, country, lat, lon FROM city RETURNING *',
                                'TABLE airport');
SELECT * FROM geonn_nearest_sql('TABLE city', 'UPDATE airport SET lat = 0 RETURNING *');
SELECT * FROM geonn_nearest_sql('WITH gone AS (DELETE FROM city RETURNING *) SELECT * FROM gone', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('SELECT * FROM city FOR UPDATE', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('TABLE city', 'SELECT * FROM airport FOR KEY SHARE OF airport');
SELECT * FROM geonn_nearest_sql('SELECT * INTO copy FROM city', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('CREATE TABLE copy AS TABLE city', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('DROP TABLE city', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('TABLE city', 'EXPLAIN TABLE airport');
SELECT * FROM geonn_nearest_sql('COPY city TO STDOUT', 'TABLE airport');
SELECT * FROM geonn_nearest_sql('COMMIT', 'TABLE airport');
SELECT count(*), min(lat) FROM city;

SET client_min_messages = warning;
DROP SCHEMA queries CASCADE;
DROP SCHEMA queries_other CASCADE;
DROP ROLE regress_geonn_user;
