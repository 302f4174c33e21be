-- the three airports nearest to London, Paris and Tokyo
SELECT city.name, airport.name AS airport, round(n.distance / 1000) AS km FROM geonn_nearest('city', 'airport', k => 3) n JOIN city ON city_id = n.obs_id JOIN airport ON airport_id = n.ref_id WHERE city_id IN (2643743, 2988507, 1850147) ORDER BY 1, n.distance;
-- the airports that are the nearest of most cities
SELECT airport.name, count(*) AS cities FROM geonn_nearest('city', 'airport') n JOIN airport ON airport_id = n.ref_id GROUP BY airport_id ORDER BY 2 DESC LIMIT 5;
-- how many people live within 20 km of the airports of Frankfurt, Heathrow and Charles de Gaulle
SELECT airport.name, sum(population) AS people FROM geonn_within('airport', 'city', 20000) w JOIN airport ON airport_id = w.obs_id JOIN city ON city_id = w.ref_id WHERE ident IN ('EDDF', 'EGLL', 'LFPG') GROUP BY airport_id ORDER BY 2 DESC;
