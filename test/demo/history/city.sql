-- The day of London as files for city.gnuplot in :folder: numbers are degrees, longitude
-- first, kilometres, and hours of the day.
\pset format unaligned
\pset tuples_only
\pset fieldsep ' '

\set file :folder /frame
\o :file
SELECT format('lat = %s; lon = %s; caption = "%s"', lat, lon,
	format('%s aircraft were London''s nearest on that day, each drawn while it was. Grey: all flights of the day', count(DISTINCT aircraft_id)))
FROM city, nearest WHERE city_id = 2643743 GROUP BY lat, lon;

-- Each stretch of a flight on which it was the nearest, to where it was when the next took over.
\set file :folder /nearest
\o :file
WITH stretch AS (
	SELECT *, count(*) FILTER (WHERE comes) OVER (ORDER BY t) AS number
	FROM (SELECT *, aircraft_id IS DISTINCT FROM lag(aircraft_id) OVER (ORDER BY t) AS comes FROM nearest) AS marked
)
SELECT E'\n' || string_agg(format('%s %s %s', round(lon::numeric, 4), round(lat::numeric, 4),
	round(extract(epoch FROM r.t - timestamp '2026-05-01') / 3600, 4)), E'\n' ORDER BY r.t)
FROM (SELECT number, min(aircraft_id) AS aircraft_id, min(t) AS begins, max(t) + interval '1 minute' AS ends FROM stretch GROUP BY number) AS s
	JOIN report r ON r.aircraft_id = s.aircraft_id AND r.t BETWEEN begins AND ends
GROUP BY number ORDER BY number;

\set file :folder /distances
\o :file
SELECT round(extract(epoch FROM t - timestamp '2026-05-01') / 3600, 4), round(distance / 1000), aircraft_id FROM nearest ORDER BY t;

-- circles around the city, in km
\set file :folder /circles
\o :file
SELECT E'\n' || string_agg(format('%s %s',
		round((lon + degrees(atan2(sind(bearing) * sin(angle) * cosd(lat), cos(angle) - sind(lat) * sind(around)))::numeric)::numeric, 4), round(around::numeric, 4)), E'\n' ORDER BY bearing)
FROM city, unnest('{50, 100, 150, 200}'::integer[]) AS km, generate_series(0, 360, 3) AS bearing,
	LATERAL (SELECT km / 6371.0) AS arc (angle),
	LATERAL (SELECT degrees(asin(sind(lat) * cos(angle) + cosd(lat) * sin(angle) * cosd(bearing)))) AS circle (around)
WHERE city_id = 2643743
GROUP BY km ORDER BY km;

-- all flights that come near
\set file :folder /flights
\o :file
SELECT drawn(array_agg(lat ORDER BY t), array_agg(lon ORDER BY t), 0)
FROM report
WHERE lat BETWEEN 40 AND 60 AND lon BETWEEN -20 AND 20
GROUP BY aircraft_id;
