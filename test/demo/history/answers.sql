-- the whole join, timed
SELECT clock_timestamp() AS started \gset
CREATE TABLE answer AS SELECT * FROM geonn_nearest('question', 'position', overlaps => '{t}');
SELECT round(extract(epoch FROM clock_timestamp() - :'started'), 2) AS seconds,
	trim(to_char((SELECT count(*) FROM question), '999,999,999')) AS questions,
	trim(to_char((SELECT count(*) FROM position), '999,999,999')) AS positions,
	(SELECT string_agg(CASE kind WHEN 'cpu' THEN format('the CPU (%s, %s threads)', name, threads)
			ELSE format('GPU %s (%s)', device, name) END, ', ' ORDER BY device)
		FROM geonn_devices WHERE batches > 0) AS device \gset

\echo
\echo 'SELECT * FROM geonn_nearest(''question'', ''position'', overlaps => ''{t}''), for the ten largest cities:'
\echo
\pset footer off
SELECT to_char(t, 'HH24:MI:SS') AS at, city.name AS city, aircraft_id AS aircraft,
	a.ident AS from, b.ident AS to, round(distance / 1000) AS km
FROM answer
	JOIN question ON id = obs_id
	JOIN city ON city_id = obs_id
	JOIN flight ON aircraft_id = ref_id
		AND extract(epoch FROM date_trunc('minute', t) - timestamp '2026-05-01') / 3600 BETWEEN takes_off AND lands + 1
	JOIN airport a ON a.airport_id = origin
	JOIN airport b ON b.airport_id = destination
ORDER BY population DESC, city_id
LIMIT 10;
\echo :questions questions, :positions positions: :seconds s, by :device

-- what defines the answer, for some of the questions
SELECT clock_timestamp() AS started \gset
CREATE TABLE expected AS
SELECT o.id, r.id AS aircraft_id, distance
FROM (SELECT question.* FROM question JOIN city ON city_id = id ORDER BY population DESC, id LIMIT 10) AS o,
	LATERAL (
		SELECT p.id, geonn_distance(o.lat, o.lon, p.lat, p.lon) AS distance
		FROM position p WHERE p.t @> o.t
		ORDER BY distance, p.id LIMIT 1) r;
SELECT round(extract(epoch FROM clock_timestamp() - :'started'), 1) AS seconds,
	count(*) AS questions, count(*) FILTER (WHERE (ref_id, answer.distance) = (aircraft_id, expected.distance)) AS equal
FROM expected JOIN answer ON obs_id = id \gset
\echo plain SQL answers :questions of them in :seconds s, and :equal in the same way
\echo

-- the day of one city, a question a minute, of those in flight alone
CREATE VIEW flying AS SELECT id, lat, lon, t FROM position WHERE in_flight;
CREATE TABLE minute AS
SELECT n AS id, city.lat, city.lon, timestamp '2026-05-01' + n * interval '1 minute' AS t
FROM city, generate_series(0, 1439) AS n
WHERE city_id = 2643743;
CREATE TABLE nearest AS
SELECT t, ref_id AS aircraft_id, distance FROM geonn_nearest('minute', 'flying', overlaps => '{t}') JOIN minute ON id = obs_id;

\echo 'London, from minute to minute: how many in flight were the nearest, and how near they came'
\echo
SELECT to_char(date_bin('3 hours', t, '2026-05-01'), 'HH24:MI') AS from, count(DISTINCT aircraft_id) AS aircraft,
	round(min(distance) / 1000) AS nearest_km, round(max(distance) / 1000) AS farthest_km
FROM nearest GROUP BY 1 ORDER BY 1;
