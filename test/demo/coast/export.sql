-- what draw.gnuplot draws, as files in :folder; COPY TO takes no variables
\cd :folder
\pset format unaligned
\pset fieldsep ' '
\pset tuples_only on
SELECT CASE WHEN row_number() OVER (PARTITION BY line ORDER BY number) = 1 THEN E'\n' ELSE '' END || lon || ' ' || lat
FROM vertex ORDER BY number \g coast
SELECT lon, lat, distance / 1000 FROM answer JOIN city ON city_id = obs_id
WHERE lon BETWEEN -12 AND 46 AND lat BETWEEN 34 AND 62 ORDER BY distance, city_id \g cities
SELECT CASE WHEN bearing = 0 THEN E'\n' ELSE '' END || ST_X(place) || ' ' || ST_Y(place)
FROM shown, generate_series(0, 360, 3) bearing,
	CAST(ST_Project(ST_Point(lon, lat, 4326)::geography, distance, radians(bearing)) AS geometry) place
ORDER BY city, bearing \g circles
SELECT lon, lat, '"' || city || ', ' || round(km) || ' km"' FROM shown ORDER BY city \g names
