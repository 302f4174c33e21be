-- A day of :aircraft aircraft: where each was in each minute, and from when until
-- when that was what was known of it.  Nothing is random: all runs see the same day.

-- the flights of the day, as fly() of test/demo/moving has them
CREATE TABLE flight AS
WITH RECURSIVE leg AS (
	SELECT aircraft_id, origin, destination, takes_off, lands FROM aircraft
	UNION ALL
	SELECT aircraft_id, destination, next, lands + 1, lands + 1 + flight_hours(destination, next)
	FROM leg, next_airport(destination, aircraft_id::text) AS next
	WHERE lands + 1 < 24
)
SELECT * FROM leg;
ANALYZE flight;

-- what the aircraft reported, once a minute: in flight, and on the ground until the next
CREATE TABLE report AS
SELECT aircraft_id, timestamp '2026-05-01' + minute * interval '1 minute' AS t, p.lat, p.lon,
	minute < 60 * lands AS in_flight
FROM flight
	JOIN airport a ON a.airport_id = origin
	JOIN airport b ON b.airport_id = destination,
	generate_series(greatest(0, ceil(60 * takes_off))::integer,
		least(1440, ceil(60 * (lands + 1)))::integer - 1) AS minute,
	way_point(a.lat, a.lon, b.lat, b.lon, least(1, (minute / 60.0 - takes_off) / (lands - takes_off))) AS p;
ANALYZE report;

-- A position holds until the aircraft's next one.
SELECT clock_timestamp() AS started \gset
CREATE TABLE position AS
SELECT aircraft_id AS id, lat, lon, tsrange(t, lead(t) OVER (PARTITION BY aircraft_id ORDER BY t)) AS t, in_flight
FROM report;
SELECT round(extract(epoch FROM clock_timestamp() - :'started'), 1) AS seconds,
	trim(to_char(count(*), '999,999,999')) AS positions FROM position \gset
ANALYZE position;
\echo :positions positions, each of which holds until the next of its aircraft: made by lead() in :seconds s

-- each city asks once, at some second of the day
CREATE TABLE question (id bigint PRIMARY KEY, lat float8, lon float8, t timestamp);
INSERT INTO question
SELECT city_id, lat, lon, timestamp '2026-05-01' + ('x' || left(md5(name || city_id), 7))::bit(28)::integer % 86400 * interval '1 second'
FROM city;
ANALYZE question;
