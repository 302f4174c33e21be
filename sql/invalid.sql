-- rows that are no points: skipped, counted, never answered
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA invalid;
SET search_path = invalid, public;

CREATE TABLE good (id bigint, lat float8, lon float8);
INSERT INTO good VALUES (1, 10, 10), (2, -10, 20);

-- the limits belong to the range
CREATE TABLE limits (id bigint, lat float8, lon float8);
INSERT INTO limits VALUES (1, 90, 0), (2, -90, 0), (3, 0, -180), (4, 0, 360), (5, '-0', '-0');
SELECT obs_id FROM geonn_nearest('limits', 'good') ORDER BY 1;

-- NULL makes no candidate, without a warning
CREATE TABLE nulls (id bigint, lat float8, lon float8);
INSERT INTO nulls VALUES (NULL, 10, 10), (1, NULL, 10), (2, 10, NULL), (3, NULL, NULL),
    (NULL, NULL, NULL), (4, 11, 10);
SELECT * FROM geonn_nearest('nulls', 'good');
SELECT * FROM geonn_nearest('good', 'nulls') ORDER BY obs_id;

-- what is out of range gives one warning for each relation
CREATE TABLE bad (id bigint, lat float8, lon float8);
INSERT INTO bad VALUES
    (1, 'NaN', 0), (2, 0, 'NaN'), (3, 'Infinity', 0), (4, 0, '-Infinity'), (5, 'NaN', 'NaN'),
    (6, 90.0000001, 0), (7, -90.0000001, 0), (8, 1e300, 0),
    (9, 0, -180.0000001), (10, 0, 360.0000001),
    (11, 91, 361), (12, 91, 'NaN'),
    (13, NULL, 'NaN'), (NULL, 91, 0),
    (14, 12, 10);
SELECT * FROM geonn_nearest('bad', 'good');
SELECT * FROM geonn_nearest('good', 'bad') ORDER BY obs_id;
SELECT * FROM geonn_nearest('bad', 'bad');
-- the hint finds just those (and those with a NULL beside)
SELECT * FROM invalid.bad WHERE lat NOT BETWEEN -90 AND 90 OR lon NOT BETWEEN -180 AND 360
ORDER BY id;

-- a single one
CREATE TABLE "Odd name" (id bigint, "Lat" float8, "Lon" float8);
INSERT INTO "Odd name" VALUES (1, 'NaN', 0);
SELECT * FROM geonn_nearest('"Odd name"', 'good');

-- no reference is left: no rows, and the observations are not read
SELECT * FROM geonn_nearest('bad', '"Odd name"');

SET client_min_messages = warning;
DROP SCHEMA invalid CASCADE;
