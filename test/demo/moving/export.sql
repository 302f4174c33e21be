-- The map :map at the hour :hour, and how the aircraft came there since the hour
-- :before, as files for draw.gnuplot in :folder.  Colours are numbers, coordinates
-- are degrees, longitude first.
\pset format unaligned
\pset tuples_only
\pset fieldsep ' '

\set file :folder /frame
\o :file
SELECT format('west = %s; south = %s; spacing = %s; columns = %s; rows = %s; stretch = %s; caption = "%s"',
	west, south, spacing, columns, rows, stretch, caption)
FROM map WHERE name = :'map';
SELECT format('moment = "%s"; flying = %s; aircraft = %s', to_char(:hour * interval '1 hour', 'FMHH24:MI'),
	count(*) FILTER (WHERE (lat_ahead, lon_ahead) <> (lat, lon)), count(*))
FROM track WHERE hour = :hour;

\set file :folder /cells
\o :file
SELECT string_agg(number::text, ' ' ORDER BY x)
FROM region, unnest(aircraft) WITH ORDINALITY AS cell (id, x) JOIN colour ON aircraft_id = id
WHERE map = :'map' AND hour = :hour
GROUP BY y ORDER BY y;

\set file :folder /borders
\o :file
SELECT format(E'%s %s\n%s %s\n',
	west + x1 * spacing, south + y1 * spacing, west + x2 * spacing, south + y2 * spacing)
FROM border JOIN map ON name = map
WHERE map = :'map' AND hour = :hour;

\set file :folder /lines
\o :file
SELECT drawn(array_agg(p.lat ORDER BY part), array_agg(p.lon ORDER BY part), min(number))
FROM map
	JOIN city ON population >= least_population
		AND lat BETWEEN south AND south + spacing * rows
		AND lon BETWEEN west AND west + spacing * columns
	JOIN link USING (city_id)
	JOIN track USING (aircraft_id, hour)
	JOIN colour USING (aircraft_id),
	generate_series(0, 8) AS part,
	way_point(city.lat, city.lon, track.lat, track.lon, part / 8.0) AS p
WHERE map.name = :'map' AND hour = :hour
GROUP BY city_id
UNION ALL
SELECT drawn(array_agg(lat ORDER BY hour), array_agg(lon ORDER BY hour), -1)
FROM map, track
WHERE name = :'map' AND least_population IS NULL AND hour BETWEEN :before AND :hour
GROUP BY aircraft_id;

-- where the nose points on the map, in degrees from east by north
\set file :folder /flying
\o :file
SELECT lon, lat, round(degrees(atan2((lat_ahead - lat) * stretch, east - 360 * round(east / 360))))
FROM track, map, LATERAL (SELECT lon_ahead - lon) AS ahead (east)
WHERE name = :'map' AND hour = :hour AND (lat_ahead, lon_ahead) <> (lat, lon);

\set file :folder /landed
\o :file
SELECT lon, lat FROM track WHERE hour = :hour AND (lat_ahead, lon_ahead) = (lat, lon);
