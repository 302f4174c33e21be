-- What functions of caches say where the next step is another one than for a join or a table
-- rooms: cache
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
\set SHOW_CONTEXT never
CREATE SCHEMA cache_messages;
CREATE SCHEMA closed;
SET search_path = cache_messages, public;
CREATE TABLE obs (id integer PRIMARY KEY, lat float8, lon float8, at timestamptz DEFAULT now());
CREATE TABLE ref (id integer PRIMARY KEY, lat float8, lon float8, kind text);
ALTER TABLE obs ADD kind text DEFAULT 'a';
INSERT INTO obs SELECT i, i, i FROM generate_series(1, 5) i;
INSERT INTO ref SELECT i, i, i, 'a' FROM generate_series(1, 3) i;

-- ---- the name of a table that is there ----

SELECT geonn_cache_create('obs', 'obs', 'ref');
SELECT geonn_cache_create('near', 'obs', 'ref', target => 'cache_messages.ref');
SELECT geonn_cache_create('obs', 'obs', 'ref', target => 'near');
SELECT geonn_cache_create('obs', 'obs', 'ref');

-- ---- a schema where the role may not create ----

CREATE ROLE regress_geonn_guest;
GRANT USAGE ON SCHEMA cache_messages, closed TO regress_geonn_guest;
GRANT SELECT ON obs, ref TO regress_geonn_guest;
SET ROLE regress_geonn_guest;
SELECT geonn_cache_create('guest', 'obs', 'ref');
SELECT geonn_cache_create('guest', 'obs', 'ref', target => 'closed.guest');
RESET ROLE;
GRANT CREATE ON SCHEMA closed TO regress_geonn_guest;
SET ROLE regress_geonn_guest;
SELECT geonn_cache_create('guest', 'obs', 'ref', target => 'closed.guest');
SELECT geonn_cache_drop('guest');
RESET ROLE;

-- ---- columns that are renamed ----

ALTER TABLE obs RENAME lat TO y;
CALL geonn_refresh('obs');
SELECT geonn_cache_alter('obs', '{"options": {"obs_lat": "y", "obs_lon": "lon"}}');
CALL geonn_refresh('obs');
ALTER TABLE ref ADD latitude float8;
CALL geonn_refresh('obs');
ALTER TABLE ref DROP latitude;
SELECT geonn_cache_alter('obs', '{"by": ["kind"]}');
ALTER TABLE ref RENAME kind TO sort;
CALL geonn_refresh('obs');
ALTER TABLE ref RENAME sort TO kind;
CALL geonn_refresh('obs');
-- which calls of joins do not hear
SELECT * FROM geonn_nearest('obs', 'ref');

-- ---- what depends on the table ----

CREATE VIEW seen AS SELECT * FROM near;
CREATE VIEW seen_again AS SELECT * FROM seen;
SELECT geonn_cache_drop('obs');
SELECT geonn_cache_drop('obs', keep_table => true, cascade => true);
SELECT geonn_cache_drop('obs', cascade => true);
SELECT count(*) FROM geonn_caches;
SELECT count(*) FROM pg_class WHERE relnamespace = 'cache_messages'::regnamespace AND relname ~ 'near|seen';
SELECT geonn_cache_create('near', 'obs', 'ref', options => '{"obs_lat": "y", "obs_lon": "lon"}');
CREATE VIEW seen AS SELECT * FROM near;
SELECT geonn_cache_drop('near', keep_table => true);
SELECT count(*) FROM seen;

-- all caches at once
DROP TABLE near CASCADE;
SELECT geonn_cache_create('near ' || i, 'obs', 'ref', options => '{"obs_lat": "y", "obs_lon": "lon"}') FROM generate_series(1, 3) i;
CREATE VIEW seen AS SELECT * FROM "near 1" UNION ALL SELECT * FROM "near 3";
SELECT geonn_cache_drop(name) FROM geonn_caches;
SELECT count(*) FROM geonn_caches;
SELECT geonn_cache_drop(name, cascade => true) FROM geonn_caches;
SELECT count(*) FROM geonn_caches;

SET client_min_messages = warning;
DROP SCHEMA cache_messages, closed CASCADE;
DROP ROLE regress_geonn_guest;
