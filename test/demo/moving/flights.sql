-- Aircraft that fly great circles from one large airport to another at 900 km/h
-- and stay there for an hour.  Nothing is random: all runs see the same flights.

-- The point at this fraction of the great circle from one point to another.
CREATE FUNCTION way_point(lat1 float8, lon1 float8, lat2 float8, lon2 float8, fraction float8)
	RETURNS TABLE (lat float8, lon float8)
	LANGUAGE sql IMMUTABLE ROWS 1
	AS $$
	SELECT degrees(atan2(z, sqrt(x * x + y * y))), degrees(atan2(y, x))
	FROM (SELECT geonn_distance(lat1, lon1, lat2, lon2) / 6371008.77) AS arc (angle),
		LATERAL (SELECT CASE angle WHEN 0 THEN 1 ELSE sin((1 - fraction) * angle) END,
			sin(fraction * angle)) AS share (first, second),
		LATERAL (SELECT
			first * cosd(lat1) * cosd(lon1) + second * cosd(lat2) * cosd(lon2),
			first * cosd(lat1) * sind(lon1) + second * cosd(lat2) * sind(lon2),
			first * sind(lat1) + second * sind(lat2)) AS vector (x, y, z)
	$$;

-- Where an aircraft goes next: 1,000 to 9,000 km away.
CREATE FUNCTION next_airport(origin bigint, aircraft text) RETURNS bigint
	LANGUAGE sql STABLE
	AS $$
	SELECT b.airport_id
	FROM airport a JOIN airport b ON b.type = 'large_airport'
	WHERE a.airport_id = origin
		AND geonn_distance(a.lat, a.lon, b.lat, b.lon) BETWEEN 1e6 AND 9e6
	ORDER BY md5(aircraft || a.ident || b.ident)
	LIMIT 1
	$$;

CREATE FUNCTION flight_hours(origin bigint, destination bigint) RETURNS float8
	LANGUAGE sql STABLE
	AS $$
	SELECT geonn_distance(a.lat, a.lon, b.lat, b.lon) / 900000
	FROM airport a, airport b
	WHERE a.airport_id = origin AND b.airport_id = destination
	$$;

CREATE TABLE aircraft (
	aircraft_id bigint PRIMARY KEY,
	origin bigint NOT NULL REFERENCES airport,
	destination bigint NOT NULL REFERENCES airport,
	takes_off float8 NOT NULL,	-- hours of the simulation's clock
	lands float8 NOT NULL,
	lat float8,
	lon float8
);

-- where each of them was, and would be a moment later: on the ground the same
CREATE TABLE track (
	hour float8,
	aircraft_id bigint REFERENCES aircraft,
	lat float8,
	lon float8,
	lat_ahead float8,
	lon_ahead float8,
	PRIMARY KEY (aircraft_id, hour)
);

-- what the simulation's clock showed, and from when on
CREATE TABLE timestep (
	hour float8 PRIMARY KEY,
	began timestamptz NOT NULL
);

-- Where an aircraft is at that hour: in flight, or on the ground before or after.
CREATE FUNCTION position_at(a aircraft, hour float8) RETURNS TABLE (lat float8, lon float8)
	LANGUAGE sql STABLE ROWS 1
	AS $$
	SELECT p.lat, p.lon
	FROM airport b, airport e,
		way_point(b.lat, b.lon, e.lat, e.lon,
			least(1, greatest(0, (hour - a.takes_off) / (a.lands - a.takes_off)))) p
	WHERE b.airport_id = a.origin AND e.airport_id = a.destination
	$$;

-- A timestep: sets the clock and moves those that are not on the ground.
CREATE PROCEDURE fly(to_hour float8)
	LANGUAGE sql
	AS $$
	UPDATE aircraft a
	SET origin = destination, destination = next, takes_off = lands + 1,
		lands = lands + 1 + flight_hours(destination, next)
	FROM (SELECT aircraft_id, next_airport(destination, aircraft_id::text) FROM aircraft)
		AS plan (id, next)
	WHERE id = aircraft_id AND lands + 1 <= to_hour;

	UPDATE aircraft
	SET lat = now.lat, lon = now.lon
	FROM (SELECT a.aircraft_id AS id, p.lat, p.lon FROM aircraft a, position_at(a, to_hour) p) AS now
	WHERE id = aircraft_id AND (aircraft.lat, aircraft.lon) IS DISTINCT FROM (now.lat, now.lon);

	INSERT INTO track
	SELECT to_hour, aircraft_id, a.lat, a.lon, ahead.lat, ahead.lon
	FROM aircraft a, position_at(a, to_hour + 0.001) AS ahead;

	INSERT INTO timestep VALUES (to_hour, clock_timestamp());
	$$;

-- They start anywhere on their way.
INSERT INTO aircraft
SELECT number, origin, destination, begun, begun + hours
FROM (
		SELECT row_number() OVER (ORDER BY turn, md5(ident)), airport_id
		FROM airport, generate_series(1, 10) AS turn WHERE type = 'large_airport'
	) AS start (number, origin),
	next_airport(origin, number::text) AS destination,
	flight_hours(origin, destination) AS hours,
	LATERAL (SELECT -(hours + 1) * (number * 0.618034 - floor(number * 0.618034))) AS phase (begun)
WHERE number <= :aircraft;

