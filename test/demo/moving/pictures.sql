-- What the pictures show of a timestep.  A map is a grid of points, each an
-- observation whose nearest aircraft says to which region it belongs.

CREATE TABLE map (
	name text PRIMARY KEY,
	west float8,
	south float8,
	step float8,		-- degrees from point to point
	columns integer,
	rows integer
);

CREATE TABLE grid (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	map text REFERENCES map,
	x integer,
	y integer,
	lat float8,
	lon float8
);

CREATE TABLE region (
	hour float8,
	map text,
	x integer,
	y integer,
	aircraft_id bigint
);

-- lines to draw: those of one number are one line
CREATE TABLE line (
	hour float8,
	kind text,
	number bigint,
	point integer,
	lat float8,
	lon float8,
	aircraft_id bigint
);
