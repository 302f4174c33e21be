-- The maps, and what each timestep's picture is made of.

CREATE TABLE map (
	name text PRIMARY KEY,
	west float8,
	south float8,
	spacing float8,			-- of the grid, in degrees
	columns integer,
	rows integer,
	stretch float8,			-- a degree of latitude is as long as so many of longitude
	least_population bigint,	-- of the cities whose links are drawn; NULL: the aircraft's tracks are
	caption text
);
INSERT INTO map VALUES
	('world', -180, -70, 0.5, 720, 310, 1, NULL,
		'Each region is nearest to one aircraft. Lines: how they came there since the picture before. Circles: on the ground.'),
	('europe', -12, 34, 0.075, 720, 380, 1.5, 100000,
		'Lines lead from cities of 100,000 people or more to the nearest aircraft. Circles: on the ground.');

-- A region is where an aircraft is nearest.  Which one that is, each point of a
-- grid asks as a city does.
CREATE TABLE grid (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	map text,
	x integer,
	y integer,
	lat float8,
	lon float8
);
INSERT INTO grid (map, x, y, lat, lon)
SELECT name, x, y, south + (y + 0.5) * spacing, west + (x + 0.5) * spacing
FROM map, generate_series(0, columns - 1) AS x, generate_series(0, rows - 1) AS y;
ANALYZE grid;

-- the nearest aircraft along a row of the grid
CREATE TABLE region (
	hour float8,
	map text,
	y integer,
	aircraft bigint[],
	PRIMARY KEY (hour, map, y)
);

-- the cities' nearest aircraft, as they were in the cache
CREATE TABLE link (
	hour float8,
	city_id bigint,
	aircraft_id bigint
);

-- Keeps what a picture of this moment shows.
CREATE PROCEDURE take_picture()
	LANGUAGE sql
	AS $$
	INSERT INTO region
	SELECT (SELECT max(hour) FROM timestep), map, y, array_agg(ref_id ORDER BY x)
	FROM geonn_nearest('grid', 'aircraft') JOIN grid ON id = obs_id
	GROUP BY map, y;

	INSERT INTO link
	SELECT (SELECT max(hour) FROM timestep), obs_id, ref_id FROM nearest_aircraft;
	$$;

