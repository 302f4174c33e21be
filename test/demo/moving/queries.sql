-- which aircraft is the nearest to London, Paris and Tokyo, by the table that pg_cron refreshes
SELECT name, ref_id AS aircraft, round(distance / 1000) AS km FROM nearest_aircraft JOIN city ON city_id = obs_id WHERE city_id IN (2643743, 2988507, 1850147) ORDER BY 1;
-- the city nearest to each of some aircraft on their way to the United States, by a join of this moment
SELECT aircraft_id, city.name, city.country, round(distance / 1000) AS km FROM geonn_nearest('aircraft', 'city') n JOIN aircraft ON aircraft_id = obs_id JOIN city ON city_id = ref_id JOIN airport ON airport_id = destination WHERE airport.country = 'US' ORDER BY aircraft_id LIMIT 5;
-- what the latest refreshes did
SELECT started, mode, rows, updated, finished - started AS took FROM geonn_cache_log ORDER BY started DESC LIMIT 3;
