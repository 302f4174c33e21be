-- rows that are no points: skipped, counted, never answered
-- rooms: join points
\pset format unaligned \pset footer off
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

-- kept, where the unmatched are
SELECT * FROM geonn_nearest('bad', 'good', max_distance => 1e6, keep_unmatched => true) ORDER BY obs_id;
SELECT * FROM geonn_nearest('good', '"Odd name"', keep_unmatched => true) ORDER BY obs_id;

-- numbers that float8 cannot hold are infinite, in whatever type they come
CREATE TABLE great (id bigint, lat numeric, lon numeric);
INSERT INTO great VALUES (1, 1e400, 0), (2, 0, -1e400), (3, 'NaN', 0), (4, 1e-400, 90.00000000000000000000001),
    (5, 90.0000000000001, 0);
SELECT obs_id, ref_id FROM geonn_nearest('great', 'good');
CREATE VIEW far_bigint AS SELECT id, 9223372036854775807 AS lat, -181 AS lon FROM good;
CREATE VIEW far_real AS SELECT id, 90.00001::real AS lat, 'Infinity'::real AS lon FROM good;
SELECT * FROM geonn_nearest('far_bigint', 'good');
SELECT * FROM geonn_nearest('far_real', 'good');

-- the other functions warn likewise
SELECT obs_id, ref_id FROM geonn_within('bad', 'good', 1e6);
SELECT obs_id, ref_id FROM geonn_within_sql('TABLE bad', 'SELECT * FROM good UNION ALL SELECT 9, 99, 0', 1e6);
SELECT obs_id, ref_id FROM geonn_nearest_sql('TABLE good', 'TABLE bad') ORDER BY 1;
SELECT ord, ref_id FROM geonn_nearest_points('{10, 95}', '{10, 0}', 'bad');

-- or the first such row is an error, of which nothing is answered: on either
-- side, of each function
CREATE VIEW seventh AS SELECT * FROM bad WHERE id = 7;
CREATE VIEW ninth AS SELECT * FROM bad WHERE id = 9;
SELECT * FROM geonn_nearest('seventh', 'good', invalid => 'error');
SELECT * FROM geonn_nearest('good', 'ninth', invalid => 'error');
SELECT * FROM geonn_nearest_sql('SELECT * FROM bad WHERE id = 7', 'TABLE good', invalid => 'error');
SELECT * FROM geonn_nearest_sql('TABLE good', 'SELECT * FROM bad WHERE id = 9', invalid => 'error');
SELECT * FROM geonn_within('seventh', 'good', 10, invalid => 'error');
SELECT * FROM geonn_within('good', 'ninth', 10, invalid => 'error');
SELECT * FROM geonn_within_sql('SELECT * FROM bad WHERE id = 7', 'TABLE good', 10, invalid => 'error');
SELECT * FROM geonn_within_sql('TABLE good', 'SELECT * FROM bad WHERE id = 9', 10, invalid => 'error');
SELECT * FROM geonn_nearest_points('{1, 91}', '{1, 1}', 'good', invalid => 'error');
SELECT * FROM geonn_nearest_points('{1}', '{1}', 'ninth', invalid => 'error');

-- every value that is none
DO $$
DECLARE
    number integer;
    message text;
BEGIN
    FOR number IN SELECT id FROM bad WHERE id IS NOT NULL ORDER BY id LOOP
        BEGIN
            PERFORM geonn_nearest_sql(format('SELECT * FROM invalid.bad WHERE id = %s', number),
                                      'TABLE invalid.good', invalid => 'error');
            RAISE NOTICE '%: no error', number;
        EXCEPTION WHEN numeric_value_out_of_range THEN
            GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
            RAISE NOTICE '%', message;
        END;
    END LOOP;
END $$;
SELECT * FROM geonn_nearest('great', 'good', invalid => 'error');
SELECT * FROM geonn_nearest('far_bigint', 'good', invalid => 'error');
SELECT * FROM geonn_nearest('far_real', 'good', invalid => 'error');

-- it names ids of any type
CREATE TABLE by_text (id text, lat float8, lon float8);
INSERT INTO by_text VALUES ('the "first"', 1, 1), ('O''Hare', 1, 361);
CREATE TABLE by_uuid (key uuid PRIMARY KEY, lat float8, lon float8);
INSERT INTO by_uuid VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', -91, 0);
CREATE TYPE colour AS ENUM ('red', 'green');
CREATE TABLE by_colour (id colour, lat float8, lon float8);
INSERT INTO by_colour VALUES ('green', '-Infinity', 0);
CREATE TYPE text_pair AS (obs_id text, ref_id bigint);
CREATE TYPE uuid_pair AS (obs_id bigint, ref_id uuid);
CREATE TYPE colour_pair AS (obs_id colour, ref_id bigint);
SELECT * FROM geonn_nearest('by_text', 'good', invalid => 'error', row_type => NULL::text_pair);
SELECT * FROM geonn_nearest('good', 'by_uuid', invalid => 'error', row_type => NULL::uuid_pair);
SELECT * FROM geonn_within('by_colour', 'good', 1, invalid => 'error', row_type => NULL::colour_pair);
SELECT * FROM geonn_nearest('by_text', 'good', row_type => NULL::text_pair);

-- also where the row could have no neighbour: of another group, or without candidates
CREATE TABLE grouped (id bigint, lat float8, lon float8, kind integer);
INSERT INTO grouped VALUES (1, 1, 1, 1), (2, 2, 500, 2), (3, 3, 3, NULL);
CREATE TABLE group_1 AS SELECT * FROM grouped WHERE kind = 1;
SELECT * FROM geonn_nearest('grouped', 'group_1', by => '{kind}', invalid => 'error');
SELECT * FROM geonn_nearest('group_1', 'grouped', by => '{kind}', invalid => 'error');
SELECT * FROM geonn_nearest('grouped', 'group_1', by => '{kind}');
SELECT * FROM geonn_nearest('grouped', 'good', keep_unmatched => true, invalid => 'error');
CREATE TABLE nothing (id bigint, lat float8, lon float8);
SELECT * FROM geonn_nearest('grouped', 'nothing', invalid => 'error');
SELECT * FROM geonn_nearest('nothing', 'grouped', invalid => 'error');
SELECT * FROM geonn_nearest('nothing', 'nothing', invalid => 'error');

-- what is NULL is no error, nor is a row without an id
SELECT obs_id, ref_id FROM geonn_nearest('nulls', 'good', invalid => 'error');
SELECT obs_id, ref_id FROM geonn_nearest('good', 'nulls', invalid => 'error') ORDER BY 1;
CREATE VIEW nameless AS SELECT NULL::bigint AS id, 91 AS lat, 0 AS lon;
SELECT * FROM geonn_nearest('nameless', 'good', invalid => 'error');

-- a word that is none
SELECT * FROM geonn_nearest('bad', 'good', invalid => 'ignore');
SELECT * FROM geonn_nearest('bad', 'good', invalid => 'SKIP');
SELECT * FROM geonn_nearest('bad', 'good', invalid => NULL);
SELECT * FROM geonn_within('bad', 'good', 1, invalid => '');

SET client_min_messages = warning;
DROP SCHEMA invalid CASCADE;
