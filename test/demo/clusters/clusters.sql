-- the whole clustering, timed, and the largest clusters
SELECT clock_timestamp() AS started \gset
CREATE TABLE answer AS SELECT * FROM geonn_cluster('city', 7000, 10);
SELECT extract(epoch FROM clock_timestamp() - :'started')::numeric(10,2) AS seconds \gset

\echo
\echo 'SELECT * FROM geonn_cluster(''city'', 7000, 10), the ten clusters of most cities in Europe, by their largest city:'
\echo
\pset footer off
CREATE VIEW shown AS
SELECT cluster, count(*) AS cities, sum(population) AS people, (array_agg(name ORDER BY population DESC, city_id))[1] AS around,
	(array_agg(lat ORDER BY population DESC, city_id))[1] AS lat, (array_agg(lon ORDER BY population DESC, city_id))[1] AS lon
FROM answer JOIN city ON city_id = id
WHERE cluster IS NOT NULL AND lon BETWEEN -11 AND 26 AND lat BETWEEN 36 AND 59 GROUP BY cluster;
SELECT around, cities, people FROM shown ORDER BY cities DESC, cluster LIMIT 10;

SELECT trim(to_char(count(*), '999,999,999')) AS cities, trim(to_char(count(DISTINCT cluster), '999,999,999')) AS clusters,
	trim(to_char(count(*) FILTER (WHERE cluster IS NULL), '999,999,999')) AS noise FROM answer \gset
\echo :cities cities: :clusters clusters, and :noise cities in none, in :seconds s
\echo
