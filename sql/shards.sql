-- The commands that geonn_shard_ddl and geonn_shard_move_ddl print, and the errors for what they
-- cannot print: names are quoted, and nothing is run.  500_shards runs them.
-- rooms: shard base
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
CREATE EXTENSION postgres_fdw;
SET search_path = public;
SET client_min_messages = error;	-- of wal_level
CREATE SERVER one FOREIGN DATA WRAPPER postgres_fdw;
CREATE SERVER "Two's" FOREIGN DATA WRAPPER postgres_fdw OPTIONS (fetch_size '50');
CREATE SCHEMA "Big ""Data""";
CREATE TABLE "Big ""Data"""."Ping's" ("Region" text COLLATE "C", id uuid, price numeric(9,2) NOT NULL DEFAULT 1,
	lat float8, lon float8, twice float8 GENERATED ALWAYS AS (lat * 2) STORED, PRIMARY KEY ("Region", id));
CREATE INDEX "by price" ON "Big ""Data"""."Ping's" (price DESC) WHERE price > 0;
CREATE TABLE station (id integer PRIMARY KEY, name text UNIQUE, "Region" text COLLATE "C", lat float8, lon float8);
-- a command, whatever the database's name is, which slots of replication have at their end
CREATE FUNCTION shown(command text) RETURNS text LANGUAGE sql AS $$SELECT replace($1, '_' || current_database() || '''', '_database''')$$;

-- by list, with odd names, and each argument of the join
SELECT server, shown(command) AS command FROM geonn_shard_ddl('{one,"Two''s"}', '"Big ""Data"""."Ping''s"', 'station', 'host=c dbname=''x''',
	partition_by => 'list', key => 'Region', bounds => ARRAY['{north,"it''s"}', '{south,NULL}', '{east}'], view => 'near "it"',
	schedule => '*/5 * * * *', readers => '{Reader,"other role"}', k => 3, max_distance => 1e5, by => '{Region}', ties => 'all',
	keep_unmatched => true, options => '{"device": "cpu"}')
WHERE command !~ 'ALTER DATABASE|DECLARE named' \g (format=unaligned tuples_only=on)

-- the command that comes before all others of a server: with the types, functions and operators of the tables that are not PostgreSQL's own
CREATE SCHEMA "Types";
CREATE TYPE "Types".kind AS ENUM ('a', 'b');
CREATE FUNCTION "Types".norm("Types".kind[], text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $2';
CREATE TABLE typed (id integer PRIMARY KEY, kinds "Types".kind[], norm text GENERATED ALWAYS AS ("Types".norm(kinds, 'x')) STORED, lat float8, lon float8);
SELECT server, command FROM geonn_shard_ddl('{one}', 'typed', 'station', 'host=c') WHERE command ~ 'DECLARE named' \g (format=unaligned tuples_only=on)
-- types with what is declared for them, and with their schemas, though the caller need not name these
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TABLE moods (id numeric(9,2) PRIMARY KEY, mood mood, moods mood[], code varchar(7)[], at timestamp(3) with time zone, bits bit(4),
	name text COLLATE "C", span interval minute to second(2), lat float8, lon float8);
SELECT command FROM geonn_shard_ddl('{one}', 'moods', 'station', 'host=c', view => 'near') WHERE command ~ 'varying' \g (format=unaligned tuples_only=on)
DROP TABLE moods;
DROP SCHEMA "Types" CASCADE;
DROP TABLE typed;

-- by range and with a radius; the references divided
SELECT server, command FROM geonn_shard_ddl('{one}', '"Big ""Data"""."Ping''s"', 'station', 'host=c', sharded => 'ref');
ALTER TABLE station DROP CONSTRAINT station_name_key;
SELECT server, shown(command) AS command FROM geonn_shard_ddl('{one}', '"Big ""Data"""."Ping''s"', 'station', 'host=c', sharded => 'ref',
	partition_by => 'range', bounds => '{1000,2000}', view => 'near', radius => 500.5)
WHERE command !~ 'ALTER DATABASE|DECLARE named' \g (format=unaligned tuples_only=on)
SELECT command FROM geonn_shard_ddl('{one}', '"Big ""Data"""."Ping''s"', 'station', 'host=c', sharded => 'ref', ties => 'all', k => 2)
WHERE command LIKE '%VIEW%merged%';
-- radiuses of the points alone: an infinite radius has quotes
SELECT command FROM geonn_shard_ddl('{one}', '"Big ""Data"""."Ping''s"', 'station', 'host=c', view => 'near', cache => true,
	radius => 'Infinity', options => '{"ref_radius": "id"}')
WHERE command LIKE '%radius%' \g (format=unaligned tuples_only=on)

-- nothing was run
SELECT count(*) FROM pg_foreign_table;

-- errors
CREATE VIEW v AS TABLE station;
CREATE TABLE no_key (id integer, lat float8, lon float8);
CREATE TABLE with_shard (id integer PRIMARY KEY, shard text, lat float8, lon float8);
CREATE TABLE ping (id integer PRIMARY KEY, lat float8, lon float8);
SELECT * FROM geonn_shard_ddl('{}', 'ping', 'station', 'host=c');
SELECT * FROM geonn_shard_ddl(NULL, 'ping', 'station', 'host=c');
SELECT * FROM geonn_shard_ddl('{one,NULL}', 'ping', 'station', 'host=c');
SELECT * FROM geonn_shard_ddl('{{one},{one}}', 'ping', 'station', 'host=c');
SELECT * FROM geonn_shard_ddl('{one,one}', 'ping', 'station', 'host=c');
CREATE SERVER "One" FOREIGN DATA WRAPPER postgres_fdw;
SELECT * FROM geonn_shard_ddl('{one,One}', 'ping', 'station', 'host=c');
DROP SERVER "One";
SELECT * FROM geonn_shard_ddl('{three}', 'ping', 'station', 'host=c');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', NULL);
SELECT * FROM geonn_shard_ddl('{one}', NULL, 'station', 'host=c');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'ping', 'host=c');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'v', 'host=c');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'no_key', 'host=c');
SELECT * FROM geonn_shard_ddl('{one}', 'with_shard', 'station', 'host=c');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', sharded => 'both');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'luck');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'list');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'list', bounds => '{1,2}');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'list', bounds => '{"{1}","{}"}');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'list', bounds => ARRAY['{1,2}', '{3,4']);
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'list', bounds => ARRAY['{1,2}', '{three}']);
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'list', bounds => ARRAY['{1,2}', '{3,01}']);
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'list', bounds => ARRAY['{1,NULL}', '{NULL}']);
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'list', bounds => '{{1,2},{3,4}}');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'list', bounds => ARRAY['{{1,2},{3,4}}']);
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'range', bounds => '{1,99999999999}');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'range', bounds => '{9,10,10}');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'range', bounds => '{1,NULL}');
SELECT count(*) > 0 FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'range', bounds => '{9,10}');
-- bounds of types in which domains may be, whose checks a call would run
CREATE DOMAIN checked AS bigint CHECK (VALUE > 0);
CREATE TYPE range_of_checked AS RANGE (subtype = checked, multirange_type_name = ranges_of_checked);
CREATE TYPE pair_of_numbers AS (one bigint, other bigint);
CREATE PROCEDURE divide(type text, bound text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE divided (key %s, id bigint, lat float8, lon float8, PRIMARY KEY (key, id))', type);
	PERFORM FROM geonn_shard_ddl('{one}', 'divided', 'station', 'host=c', key => 'key', partition_by => 'range', bounds => ARRAY[bound]);
	RAISE check_violation USING MESSAGE = 'bounds are read';
EXCEPTION WHEN OTHERS THEN
	RAISE INFO '%: %', type, SQLERRM;
END $$;
CALL divide('bigint', '5');
CALL divide('bigint[]', '{5}');
CALL divide('int8range', '[1,5)');
CALL divide('int8range[]', '{"[1,5)"}');
CALL divide('int8multirange', '{[1,5)}');
CALL divide('int8multirange[]', '{"{[1,5)}"}');
CALL divide('mood', 'bad');
CALL divide('checked', '5');
CALL divide('checked[]', '{5}');
CALL divide('range_of_checked', '[1,5)');
CALL divide('range_of_checked[]', '{"[1,5)"}');
CALL divide('ranges_of_checked', '{[1,5)}');
CALL divide('ranges_of_checked[]', '{"{[1,5)}"}');
CALL divide('pair_of_numbers', '(1,2)');
DROP PROCEDURE divide;
DROP TYPE mood, range_of_checked, pair_of_numbers;
DROP DOMAIN checked;
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', bounds => '{1}');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', key => 'lat');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partitions => 0);
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'range', partitions => 2);
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', k => 0);
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', k => 2, radius => 5);
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', by => '{nothing}');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', readers => '{NULL}');
CREATE TABLE a_table_whose_name_is_as_long_as_names_of_postgresql_may_be_____ (LIKE ping INCLUDING ALL);
SELECT * FROM geonn_shard_ddl('{one}', 'a_table_whose_name_is_as_long_as_names_of_postgresql_may_be____', 'station', 'host=c');
SELECT * FROM geonn_shard_move_ddl('{one}', 'ping');
CREATE ROLE shards_stranger;
GRANT SELECT ON ping TO shards_stranger;
SET ROLE shards_stranger;
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c');
RESET ROLE;

-- what shards cannot have: of either table, of the one that is divided, of the one that is replicated
CREATE ROLE shards_reader;
CREATE TABLE near_one (LIKE station INCLUDING ALL);
CREATE PROCEDURE refused(VARIADIC statements text[]) LANGUAGE plpgsql AS $$
DECLARE
	statement text;
	message text;
	hint text;
	tables text[];
BEGIN
	FOREACH statement IN ARRAY statements LOOP
		FOREACH tables SLICE 1 IN ARRAY '{{divided,near_one},{near_one,divided}}'::text[] LOOP
			BEGIN
				CREATE TABLE divided (id integer PRIMARY KEY, price integer, lat float8, lon float8);
				EXECUTE replace(statement, '$', 'divided');
				PERFORM FROM geonn_shard_ddl('{one}', tables[1], tables[2], 'host=c');
				RAISE check_violation USING MESSAGE = 'carried or harmless';
			EXCEPTION WHEN OTHERS THEN
				GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
				RAISE INFO '% (%): % %', statement, CASE tables[1] WHEN 'divided' THEN 'divided' ELSE 'replicated' END, message, hint;
			END;
		END LOOP;
	END LOOP;
END $$;
CALL refused('ALTER TABLE $ ENABLE ROW LEVEL SECURITY', 'CREATE POLICY own ON $ USING (true)', 'GRANT SELECT (price) ON $ TO shards_reader',
	'CREATE TABLE child () INHERITS ($)', 'ALTER TABLE $ DROP CONSTRAINT divided_pkey, ADD PRIMARY KEY (id) DEFERRABLE',
	'DROP TABLE $; CREATE TEMP TABLE $ (id integer PRIMARY KEY, price integer, lat float8, lon float8)', 'ALTER TABLE $ SET UNLOGGED',
	'ALTER TABLE $ REPLICA IDENTITY NOTHING', 'ALTER TABLE $ REPLICA IDENTITY FULL',
	'CREATE TRIGGER changed BEFORE UPDATE ON $ FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()', 'CREATE RULE keep AS ON DELETE TO $ DO INSTEAD NOTHING',
	'ALTER TABLE $ ADD FOREIGN KEY (price) REFERENCES ping', 'ALTER TABLE $ ADD UNIQUE (price)', 'CREATE UNIQUE INDEX once ON $ (price) WHERE lat > 0',
	'ALTER TABLE $ ADD EXCLUDE (price WITH =)', 'ALTER TABLE $ ALTER id ADD GENERATED ALWAYS AS IDENTITY', 'CREATE TABLE parent (LIKE $); ALTER TABLE $ INHERIT parent',
	'CREATE PUBLICATION others FOR TABLE $', 'ALTER TABLE $ ADD CHECK (price > 0) NO INHERIT', 'ALTER TABLE $ ADD CHECK (price > 0) NOT VALID',
	'ALTER TABLE $ ADD CHECK (price > 0)', 'ALTER TABLE $ ALTER price SET DEFAULT 7', 'CREATE INDEX ON $ (price)', 'CREATE STATISTICS together ON id, price FROM $',
	'ALTER TABLE ping ADD FOREIGN KEY (id) REFERENCES $', 'COMMENT ON TABLE $ IS NULL', 'GRANT SELECT ON $ TO shards_reader');
DROP PROCEDURE refused;
DROP TABLE near_one;
DROP ROLE shards_reader;

-- a publication of another table
CREATE TABLE "Big ""Data""".station (LIKE station INCLUDING ALL);
CREATE PUBLICATION station_shards FOR TABLE station;
SELECT * FROM geonn_shard_ddl('{one}', 'ping', '"Big ""Data"""."station"', 'host=c');
DROP PUBLICATION station_shards;

-- more shards than slots
CREATE SERVER three FOREIGN DATA WRAPPER postgres_fdw;
CREATE SERVER four FOREIGN DATA WRAPPER postgres_fdw;
SET client_min_messages = warning;
SELECT count(*) > 0 AS printed FROM geonn_shard_ddl('{one,"Two''s",three,four}', 'ping', 'station', 'host=c');
SET client_min_messages = error;
DROP SERVER three;
DROP SERVER four;

-- moving: what the coordinator has says where the partitions are
CREATE TABLE ping_sharded (LIKE ping) PARTITION BY HASH (id);
CREATE FOREIGN TABLE ping_sharded_0 PARTITION OF ping_sharded FOR VALUES WITH (MODULUS 2, REMAINDER 0) SERVER one OPTIONS (table_name 'ping_0');
CREATE FOREIGN TABLE ping_sharded_1 PARTITION OF ping_sharded FOR VALUES WITH (MODULUS 2, REMAINDER 1) SERVER one OPTIONS (table_name 'ping_1');
SELECT * FROM geonn_shard_move_ddl('{"Two''s"}', 'ping');
CREATE EXTENSION dblink;
SELECT * FROM geonn_shard_move_ddl('{"Two''s"}', 'ping');
CREATE TABLE ping_by_shard (shard text NOT NULL, id integer) PARTITION BY LIST (shard);
CREATE FOREIGN TABLE ping_by_shard_1 PARTITION OF ping_by_shard FOR VALUES IN ('one') SERVER one;
CREATE FOREIGN TABLE ping_by_shard_2 PARTITION OF ping_by_shard FOR VALUES IN ('Two''s') SERVER "Two's";
CREATE TABLE station_version_by_shard (shard text NOT NULL, version bigint) PARTITION BY LIST (shard);
CREATE FOREIGN TABLE station_version_1 PARTITION OF station_version_by_shard FOR VALUES IN ('one') SERVER one OPTIONS (table_name 'station_version_by_shard');
CREATE FOREIGN TABLE station_version_2 PARTITION OF station_version_by_shard FOR VALUES IN ('Two''s') SERVER "Two's" OPTIONS (table_name 'station_version_by_shard');
SELECT * FROM geonn_shard_move_ddl('{one}', 'ping');
SELECT server, command FROM geonn_shard_move_ddl('{one,"Two''s"}', 'ping') WHERE command !~ 'DECLARE named' \g (format=unaligned tuples_only=on)
SELECT count(*) FROM geonn_shard_move_ddl('{"Two''s"}', 'ping');
SELECT server, command FROM geonn_shard_move_ddl('{"Two''s"}', 'ping') WHERE command ~ 'SUBSCRIPTION|DROP SCHEMA|OVER|REPLACE|by_shard' \g (format=unaligned tuples_only=on)
-- a server that has rows of another table is not forgotten
CREATE TABLE trip_sharded (id integer) PARTITION BY HASH (id);
CREATE FOREIGN TABLE trip_sharded_0 PARTITION OF trip_sharded FOR VALUES WITH (MODULUS 1, REMAINDER 0) SERVER one;
SELECT server, command FROM geonn_shard_move_ddl('{"Two''s"}', 'ping') WHERE command ~ 'SUBSCRIPTION|DROP SCHEMA|OVER|REPLACE|DROP FOREIGN TABLE.*(trip|by_shard)' \g (format=unaligned tuples_only=on)
DROP TABLE trip_sharded;
SELECT * FROM geonn_shard_ddl('{"Two''s"}', 'ping', 'station', 'host=c');
SELECT * FROM geonn_shard_ddl('{one}', 'ping', 'station', 'host=c', partition_by => 'range');

RESET search_path;
SET client_min_messages = warning;
DROP SERVER one CASCADE;
DROP SERVER "Two's" CASCADE;
DROP TABLE ping, ping_sharded, ping_by_shard, station_version_by_shard, with_shard, no_key, a_table_whose_name_is_as_long_as_names_of_postgresql_may_be_____, station CASCADE;
DROP SCHEMA "Big ""Data""" CASCADE;
DROP ROLE shards_stranger;
DROP EXTENSION dblink;
DROP EXTENSION postgres_fdw;
