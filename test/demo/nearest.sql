-- the whole join, timed
SELECT clock_timestamp() AS started \gset
CREATE TABLE answer AS SELECT * FROM geonn_nearest('city', 'airport');
SELECT extract(epoch FROM clock_timestamp() - :'started')::numeric(10,2) AS seconds \gset

\echo
\echo 'SELECT * FROM geonn_nearest(''city'', ''airport''), for the ten largest cities, with names:'
\echo
\pset footer off
SELECT city.name AS city, city.country, airport.name AS nearest_airport,
	(answer.distance / 1000)::numeric(10,1) AS km
FROM answer
JOIN city ON city.city_id = answer.obs_id
JOIN airport ON airport.airport_id = answer.ref_id
ORDER BY city.population DESC, city.city_id
LIMIT 10;

SELECT trim(to_char((SELECT count(*) FROM city), '999,999,999')) AS cities,
	trim(to_char((SELECT count(*) FROM airport), '999,999,999')) AS airports,
	trim(to_char((SELECT count(*) FROM answer), '999,999,999')) AS answers,
	(SELECT string_agg(CASE kind WHEN 'cpu' THEN format('the CPU (%s, %s threads)', name, threads)
			ELSE format('GPU %s (%s)', device, name) END, ', ' ORDER BY device)
		FROM geonn_devices WHERE batches > 0) AS device \gset
\echo :cities cities, :airports airports: :answers answers in :seconds s, by :device
\echo
