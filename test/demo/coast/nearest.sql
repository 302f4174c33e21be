-- the coast as lines, the whole join, timed, and an answer that a map can tell
CREATE TABLE coast AS
SELECT line AS id, ST_MakeLine(ST_Point(lon, lat, 4326) ORDER BY number)::geography(LineString, 4326) AS way
FROM vertex GROUP BY line HAVING count(*) > 1;
ALTER TABLE coast ADD PRIMARY KEY (id);
ANALYZE coast;

SELECT clock_timestamp() AS started \gset
CREATE TABLE answer AS SELECT * FROM geonn_nearest('city', 'coast');
SELECT extract(epoch FROM clock_timestamp() - :'started')::numeric(10,2) AS seconds \gset

\echo
\echo 'SELECT * FROM geonn_nearest(''city'', ''coast''), for some cities, with names:'
\echo
\pset footer off
CREATE VIEW shown AS
SELECT city.name AS city, city.country, (answer.distance / 1000)::numeric(10,1) AS km, city.lat, city.lon, answer.distance
FROM answer JOIN city ON city.city_id = answer.obs_id
WHERE (city.name, city.country) IN (('Madrid', 'ES'), ('Paris', 'FR'), ('Munich', 'DE'), ('Budapest', 'HU'), ('Warsaw', 'PL'),
	('Minsk', 'BY'), ('Ankara', 'TR'), ('Moscow', 'RU'));
SELECT city, country, km FROM shown ORDER BY km;

SELECT trim(to_char((SELECT count(*) FROM city), '999,999,999')) AS cities,
	trim(to_char((SELECT count(*) FROM coast), '999,999,999')) AS lines,
	trim(to_char((SELECT count(*) FROM answer), '999,999,999')) AS answers \gset
\echo :cities cities, :lines lines: :answers answers in :seconds s
\echo
