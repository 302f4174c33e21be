-- the clusters in which most people live
SELECT (array_agg(name ORDER BY population DESC))[1] AS around, count(*) AS cities, sum(population) AS people FROM answer JOIN city ON city_id = id WHERE cluster IS NOT NULL GROUP BY cluster ORDER BY people DESC LIMIT 5;
-- how many clusters there are for other distances
SELECT km, count(DISTINCT cluster) AS clusters FROM generate_series(5, 20, 5) km, geonn_cluster('city', 1000 * km, 10) GROUP BY km ORDER BY km;
-- the largest cities that a map of Denmark names, if a name takes 30 km
SELECT name FROM geonn_thin_sql('SELECT city_id AS id, population, lat, lon FROM city WHERE country = ''DK''', 30000, 'population') JOIN city ON city_id = id WHERE kept_by IS NULL ORDER BY population DESC LIMIT 10;
