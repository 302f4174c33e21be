CREATE EXTENSION geonn;

CREATE TABLE city (
	city_id bigint PRIMARY KEY,
	name text,
	country text,
	population bigint,
	lat float8,
	lon float8
);

CREATE TABLE airport (
	airport_id bigint PRIMARY KEY,
	ident text,
	name text,
	type text,
	country text,
	lat float8,
	lon float8
);
