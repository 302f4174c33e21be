-- caches of counts within radii: made, refreshed by what has changed, altered
-- rooms: cache
\pset format unaligned \pset footer off
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA cache_counts;
SET search_path = cache_counts, public;

CREATE TABLE home (id bigint PRIMARY KEY, lat float8, lon float8, brand text);
CREATE TABLE shop (id integer PRIMARY KEY, lat float8, lon float8, chairs integer, size float8, brand text);
INSERT INTO home SELECT i, 52 + i * 0.01, 13, (ARRAY['a', 'b'])[1 + i % 2] FROM generate_series(1, 100) i;
INSERT INTO shop SELECT i, 52 + i * 0.05, 13.01, i, i * 0.1, (ARRAY['a', 'b'])[1 + i % 2] FROM generate_series(1, 20) i;
ANALYZE home, shop;

-- its table, and its rows
SELECT geonn_cache_create('around', 'home', 'shop', radii => '{5000, 1000, 20000}', weights => '{chairs, size}');
SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid = 'around'::regclass AND attnum > 0 ORDER BY attnum;
SELECT * FROM around WHERE obs_id IN (5, 7) ORDER BY obs_id, rank;
SELECT geonn_cache_create('rivals', 'home', 'shop', radii => '{20000}', differs => '{brand}', replace => 'always');
SELECT * FROM rivals WHERE obs_id = 5;
SELECT arguments FROM geonn_cache WHERE name IN ('around', 'rivals') ORDER BY name;

-- what a refresh does about a change, and how many rows are wrong after it
CREATE FUNCTION refreshed(cache text, arguments text, OUT mode text, OUT searched bigint, OUT inserted bigint, OUT updated bigint,
    OUT deleted bigint, OUT wrong bigint) LANGUAGE plpgsql AS $$
BEGIN
    SELECT l.mode, l.searched, l.inserted, l.updated, l.deleted INTO mode, searched, inserted, updated, deleted
    FROM geonn_cache_log l WHERE name = cache ORDER BY started DESC LIMIT 1;
    EXECUTE format('SELECT count(*) FROM (SELECT obs_id, rank, t FROM %1$I t) t
        FULL JOIN geonn_within_count(''home'', ''shop'', %2$s, row_type => NULL::%1$I) n USING (obs_id, rank)
        WHERE t.t OPERATOR(pg_catalog.*<>) n', cache, arguments) INTO wrong;
END $$;
\set around 'radii => ''{5000, 1000, 20000}'', weights => ''{chairs, size}'''
-- a weight changes, one becomes NULL, and a column that the cache does not read
UPDATE shop SET chairs = 1000 WHERE id = 3;
CALL geonn_refresh('around', 'incremental');
SELECT * FROM refreshed('around', :'around');
UPDATE shop SET size = NULL WHERE id = 20;
CALL geonn_refresh('around', 'incremental');
SELECT * FROM refreshed('around', :'around');
UPDATE shop SET brand = 'c';
CALL geonn_refresh('around', 'incremental');
SELECT * FROM refreshed('around', :'around');
-- a reference moves, comes, goes; observations do
UPDATE shop SET lat = lat + 0.2 WHERE id = 10;
INSERT INTO shop VALUES (21, 52.3, 13, 7, 7, 'a');
DELETE FROM shop WHERE id = 1;
CALL geonn_refresh('around', 'incremental');
SELECT * FROM refreshed('around', :'around');
UPDATE home SET lat = lat + 0.1 WHERE id = 50;
DELETE FROM home WHERE id = 51;
INSERT INTO home VALUES (101, 52.5, 13, 'a'), (102, NULL, 13, 'a');
CALL geonn_refresh('around', 'incremental');
SELECT * FROM refreshed('around', :'around');
CALL geonn_refresh('rivals');
SELECT * FROM refreshed('rivals', 'radii => ''{20000}'', differs => ''{brand}''');
-- nothing has changed; the table was changed; no reference is left
CALL geonn_refresh('around');
SELECT * FROM refreshed('around', :'around');
UPDATE around SET sums = '{0, 0}' WHERE obs_id = 7;
CALL geonn_refresh('around', 'full');
SELECT * FROM refreshed('around', :'around');
DELETE FROM shop;
CALL geonn_refresh('around');
SELECT * FROM refreshed('around', :'around');

-- other radii and weights
INSERT INTO shop SELECT i, 52 + i * 0.05, 13.01, i, i * 0.1, 'a' FROM generate_series(1, 20) i;
SELECT geonn_cache_alter('around', '{"radii": [10000], "weights": null}');
CALL geonn_refresh('around');
SELECT * FROM refreshed('around', 'radii => ''{10000}''');
SELECT * FROM around WHERE obs_id = 5;
SELECT geonn_cache_alter('around', '{"k": 3}');
SELECT geonn_cache_alter('around', '{"radius": 3}');
SELECT geonn_cache_alter('around', '{"radii": null}');
SELECT geonn_cache_alter('around', '{"radii": [-1]}');
SELECT geonn_cache_alter('around', '{"radii": [1], "k": 1}');
SELECT geonn_cache_create('near', 'home', 'shop');
SELECT geonn_cache_alter('near', '{"radii": [3]}');
SELECT geonn_cache_alter('near', '{"weights": ["size"]}');

-- arguments that do not go together
SELECT geonn_cache_create('wrong', 'home', 'shop', 2, radii => '{1}');
SELECT geonn_cache_create('wrong', 'home', 'shop', radii => '{1}', radius => 1);
SELECT geonn_cache_create('wrong', 'home', 'shop', radii => '{1}', keep_unmatched => true);
SELECT geonn_cache_create('wrong', 'home', 'shop', radii => '{1}', ties => 'all');
SELECT geonn_cache_create('wrong', 'home', 'shop', weights => '{size}');
SELECT geonn_cache_create('wrong', 'home', 'shop', radii => '{1}', weights => '{beds}');
SELECT geonn_cache_create('wrong', 'home', 'shop', radii => '{}');

SET client_min_messages = warning;
SELECT geonn_cache_drop(name, cascade => true) FROM geonn_caches WHERE name IN ('around', 'rivals', 'near') ORDER BY name;
DROP SCHEMA cache_counts CASCADE;
