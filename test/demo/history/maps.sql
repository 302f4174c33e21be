-- What the pictures show: four moments of a map, and the day of one city.

CREATE TABLE map AS
SELECT -6.0 AS west, 48.2 AS south, 0.02 AS spacing, 720 AS columns, 310 AS rows, 1.6 AS stretch,
	'Each region is nearest to one aircraft in flight at that moment. Colour: lines from cities of 100,000 people or more. Black: the last ten minutes. Circles: on the ground.' AS caption;

CREATE TABLE moment AS
SELECT hour, timestamp '2026-05-01' + hour * interval '1 hour' AS t FROM unnest('{3, 9, 15, 21}'::integer[]) AS hour;

-- Each point of the map asks at each of the moments, as a city does: one join answers all of them.
CREATE TABLE grid AS
SELECT row_number() OVER () AS id, hour, t, x, y, south + (y + 0.5) * spacing AS lat, west + (x + 0.5) * spacing AS lon
FROM map, moment, generate_series(0, columns - 1) AS x, generate_series(0, rows - 1) AS y;
ANALYZE grid;
SELECT clock_timestamp() AS started \gset
CREATE TABLE nearest_of_grid AS SELECT * FROM geonn_nearest('grid', 'flying', overlaps => '{t}');
SELECT round(extract(epoch FROM clock_timestamp() - :'started'), 2) AS seconds, trim(to_char(count(*), '999,999,999')) AS points
FROM grid \gset
\echo :points points of a map at four moments: :seconds s

-- the nearest aircraft along a row of the map
CREATE TABLE region AS
SELECT hour, 'map' AS map, y, array_agg(ref_id ORDER BY x) AS aircraft
FROM nearest_of_grid JOIN grid ON id = obs_id
GROUP BY hour, y;

CREATE TABLE asked AS
SELECT row_number() OVER () AS id, city_id, hour, t, city.lat, city.lon
FROM city, map, moment
WHERE population >= 100000
	AND lat BETWEEN south AND south + spacing * rows
	AND lon BETWEEN west AND west + spacing * columns;
CREATE TABLE link AS
SELECT city_id, hour, ref_id AS aircraft_id FROM geonn_nearest('asked', 'flying', overlaps => '{t}') JOIN asked ON id = obs_id;

-- where each was at the moments, and would be a minute later
CREATE TABLE aircraft_at AS
SELECT hour, p.id AS aircraft_id, p.lat, p.lon, ahead.lat AS lat_ahead, ahead.lon AS lon_ahead
FROM moment JOIN position p ON p.t @> moment.t
	JOIN position ahead ON ahead.id = p.id AND lower(ahead.t) = upper(p.t);
