-- What all pictures have in common: borders, colours, how a line is written.

-- the sides where points of two regions touch, in steps of the grid
CREATE TABLE border AS
SELECT hour, map, x AS x1, y AS y1, x AS x2, y + 1 AS y2, aircraft[x] AS one, aircraft[x + 1] AS other
FROM region, generate_series(1, cardinality(aircraft) - 1) AS x
WHERE aircraft[x] <> aircraft[x + 1]
UNION ALL
SELECT hour, map, x - 1, r.y + 1, x, r.y + 1, one, other
FROM region r JOIN region s USING (hour, map),
	unnest(r.aircraft, s.aircraft) WITH ORDINALITY AS side (one, other, x)
WHERE s.y = r.y + 1 AND one <> other;

-- An aircraft has one colour in all pictures, other than those of all regions that
-- its own ever touches.
CREATE TABLE colour (aircraft_id bigint PRIMARY KEY, number integer);
DO $$
DECLARE
	this bigint;
BEGIN
	CREATE TEMPORARY TABLE touching AS
	SELECT one, other FROM border UNION SELECT other, one FROM border;

	FOR this IN SELECT one FROM touching GROUP BY one ORDER BY count(*) DESC, one LOOP
		INSERT INTO colour
		SELECT this, min(number)
		FROM generate_series(0, 11) AS number
		WHERE number NOT IN (
			SELECT c.number FROM touching JOIN colour c ON c.aircraft_id = other WHERE one = this);
	END LOOP;
END
$$;

-- A way from point to point, as lines "longitude latitude colour".  One that crosses the antimeridian comes
-- twice, to be cut off at either edge.
CREATE FUNCTION drawn(lats float8[], lons float8[], colour integer) RETURNS text
	LANGUAGE sql IMMUTABLE
	AS $$
	SELECT string_agg(line, E'\n')
	FROM (
		SELECT string_agg(format(E'%s %s %s\n', round(x::numeric, 3), round(lat::numeric, 3), colour),
			'' ORDER BY number)
		FROM unnest(lats, lons) WITH ORDINALITY AS point (lat, lon, number),
			(VALUES (-360), (0), (360)) AS turn (degrees),
			LATERAL (SELECT lon - 360 * round((lon - lons[1]) / 360) + degrees) AS placed (x)
		GROUP BY degrees
		HAVING max(x) > -180 AND min(x) < 180) AS copy (line)
	$$;
