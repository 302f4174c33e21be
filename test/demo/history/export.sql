-- The map at the hour :hour as files for draw.gnuplot of test/demo/moving in :folder.
-- Colours are numbers, coordinates are degrees, longitude first.
\pset format unaligned
\pset tuples_only
\pset fieldsep ' '

\set file :folder /frame
\o :file
SELECT format('west = %s; south = %s; spacing = %s; columns = %s; rows = %s; stretch = %s; caption = "%s"',
	west, south, spacing, columns, rows, stretch, caption)
FROM map;
SELECT format('moment = "%s"; flying = %s; aircraft = %s', to_char(:hour * interval '1 hour', 'FMHH24:MI'),
	count(*) FILTER (WHERE (lat_ahead, lon_ahead) <> (lat, lon)), count(*))
FROM aircraft_at WHERE hour = :hour;

\set file :folder /cells
\o :file
SELECT string_agg(number::text, ' ' ORDER BY x)
FROM region, unnest(aircraft) WITH ORDINALITY AS cell (id, x) JOIN colour ON aircraft_id = id
WHERE hour = :hour
GROUP BY y ORDER BY y;

\set file :folder /borders
\o :file
SELECT format(E'%s %s\n%s %s\n',
	west + x1 * spacing, south + y1 * spacing, west + x2 * spacing, south + y2 * spacing)
FROM border, map
WHERE hour = :hour;

\set file :folder /lines
\o :file
SELECT drawn(array_agg(p.lat ORDER BY part), array_agg(p.lon ORDER BY part), min(number))
FROM link
	JOIN city USING (city_id)
	JOIN aircraft_at USING (aircraft_id, hour)
	JOIN colour USING (aircraft_id),
	generate_series(0, 4) AS part,
	way_point(city.lat, city.lon, aircraft_at.lat, aircraft_at.lon, part / 4.0) AS p
WHERE hour = :hour
GROUP BY city_id
UNION ALL
SELECT drawn(array_agg(r.lat ORDER BY r.t), array_agg(r.lon ORDER BY r.t), -1)
FROM moment JOIN report r ON r.t BETWEEN moment.t - interval '10 minutes' AND moment.t
WHERE hour = :hour
GROUP BY aircraft_id;

-- where the nose points on the map, in degrees from east by north
\set file :folder /flying
\o :file
SELECT lon, lat, round(degrees(atan2((lat_ahead - lat) * stretch, east - 360 * round(east / 360))))
FROM aircraft_at, map, LATERAL (SELECT lon_ahead - lon) AS ahead (east)
WHERE hour = :hour AND (lat_ahead, lon_ahead) <> (lat, lon)
	AND lat BETWEEN south AND south + spacing * rows AND lon BETWEEN west AND west + spacing * columns;

\set file :folder /landed
\o :file
SELECT DISTINCT lon, lat FROM aircraft_at WHERE hour = :hour AND (lat_ahead, lon_ahead) = (lat, lon);
