-- which aircraft is the nearest to London, Paris and Tokyo, by the table that pg_cron refreshes
SELECT name, ref_id AS aircraft, round(distance / 1000) AS km FROM nearest_aircraft JOIN city ON city_id = obs_id WHERE city_id IN (2643743, 2988507, 1850147) ORDER BY 1;
-- half an hour later they have flown on; a join answers for now, and the table within a minute
CALL fly(6.5);
SELECT name, ref_id AS aircraft, round(distance / 1000) AS km FROM geonn_nearest('city', 'aircraft') JOIN city ON city_id = obs_id WHERE city_id IN (2643743, 2988507, 1850147) ORDER BY 1;
-- what the latest refreshes did
SELECT started, mode, rows, updated, finished - started AS took FROM geonn_cache_log ORDER BY started DESC LIMIT 3;
