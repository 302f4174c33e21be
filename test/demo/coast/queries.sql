-- the cities of China that are the farthest from any coast
SELECT name, round(distance / 1000) AS km FROM answer JOIN city ON city_id = obs_id WHERE country = 'CN' ORDER BY distance DESC LIMIT 5;
-- how many people live within 10 km of the coast
SELECT sum(population) AS people FROM city WHERE city_id IN (SELECT obs_id FROM geonn_within('city', 'coast', 10000));
-- what PostGIS measures from Moscow to the same line, on the same sphere
SELECT round(distance) AS geonn, round(ST_Distance(way, ST_Point(lon, lat, 4326)::geography, false)) AS postgis FROM answer JOIN city ON city_id = obs_id JOIN coast ON id = ref_id WHERE name = 'Moscow' AND country = 'RU';
