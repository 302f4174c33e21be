
# A reference table of Citus is read by the shard that this node has, where Citus's catalogs say so, and through
# Citus otherwise; privileges are those of the table that is named and of the shard, and no role can plant catalogs or shards.
# Then doc/citus.md runs as written.  Citus is not needed: tables like its catalogs are made members of
# an extension of its name.  The table that Citus would read through its executor is an ordinary one here, with rows of its own.
# rooms: points doc

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('citus', preload => 1, conf => "autovacuum = off\nclient_min_messages = warning");

sub sql { return $node->safe_psql('postgres', $_[0]) }

# what psql says, without places
sub said
{
	my (undef, $out, $error) = $node->psql('postgres', $_[0]);

	return $out . ($error =~ s/^psql:[^ ]* //mgr);
}

my $catalogs = q{
	CREATE SCHEMA made;
	CREATE TABLE made.pg_dist_partition (logicalrelid regclass NOT NULL, partmethod "char" NOT NULL, partkey text,
		colocationid integer NOT NULL DEFAULT 0, repmodel "char" NOT NULL DEFAULT 's', autoconverted boolean NOT NULL DEFAULT false);
	CREATE TABLE made.pg_dist_shard (logicalrelid regclass NOT NULL, shardid bigint NOT NULL, shardstorage "char" NOT NULL DEFAULT 't',
		shardalias text, shardminvalue text, shardmaxvalue text);
	ALTER TABLE made.pg_dist_shard DROP shardalias;
	CREATE TABLE made.pg_dist_placement (placementid bigserial, shardid bigint NOT NULL, shardstate integer NOT NULL DEFAULT 1,
		shardlength bigint NOT NULL DEFAULT 0, groupid integer NOT NULL);
	CREATE TABLE made.pg_dist_local_group (groupid integer NOT NULL PRIMARY KEY);
	CREATE UNIQUE INDEX pg_dist_partition_logical_relid_index ON made.pg_dist_partition (logicalrelid);
	CREATE INDEX pg_dist_shard_logical_relid_index ON made.pg_dist_shard (logicalrelid);
	CREATE INDEX pg_dist_placement_shardid_index ON made.pg_dist_placement (shardid);
	INSERT INTO made.pg_dist_local_group VALUES (0)};

# a member of the extension, in pg_catalog, where superusers alone can put it
my $adopted = q{
	SET allow_system_table_mods = on;
	INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
		VALUES (77777, 'citus', 10, 'pg_catalog'::regnamespace, false, '13.2-1');
	ALTER EXTENSION citus ADD TABLE pg_catalog.pg_dist_partition;
	ALTER EXTENSION citus ADD TABLE pg_catalog.pg_dist_shard;
	ALTER EXTENSION citus ADD TABLE pg_catalog.pg_dist_placement;
	ALTER EXTENSION citus ADD TABLE pg_catalog.pg_dist_local_group};

sql(qq{
	$catalogs;
	CREATE TABLE obs AS SELECT i AS id, (i * 7919 % 1800) / 10::float8 - 90 AS lat, (i * 10473 % 3600) / 10::float8 - 180 AS lon
		FROM generate_series(1, 3000) i;
	ALTER TABLE obs ADD PRIMARY KEY (id);
	CREATE TABLE ref (note text, id integer PRIMARY KEY, lat float8, lon float8);
	ALTER TABLE ref DROP note;
	INSERT INTO ref SELECT -id, lat, lon FROM obs WHERE id < 10;
	CREATE TABLE ref_102014 (id integer PRIMARY KEY, lat float8, lon float8);
	INSERT INTO ref_102014 SELECT id, -lat, lon FROM obs WHERE id <= 500;
	INSERT INTO made.pg_dist_partition VALUES ('ref', 'n', NULL, 5, 't'), ('obs', 'h', 'id', 6, 's');
	INSERT INTO made.pg_dist_shard VALUES ('ref', 102014), ('obs', 102008);
	INSERT INTO made.pg_dist_placement (shardid, groupid) VALUES (102014, 0), (102014, 1), (102014, 2), (102008, 1);
	CREATE ROLE reader;
	GRANT SELECT ON obs TO reader;
	VACUUM ANALYZE});

# which table a join reads, by its ids
my $which = q{SELECT CASE WHEN min(ref_id) > 0 THEN 'shard' WHEN max(ref_id) < 0 THEN 'named' ELSE 'both' END};
my $read = "$which FROM geonn_nearest('obs', 'ref')";

# ---- whose catalogs ----

is(sql($read), 'named', 'without Citus, a table is read');
sql('ALTER TABLE made.pg_dist_' . $_ . ' SET SCHEMA pg_catalog') foreach qw(partition shard placement local_group);
is(sql($read), 'named', 'catalogs that no extension has are not believed');
sql($adopted);
is(sql($read), 'shard', 'a reference table is read by its shard');
sql('ALTER EXTENSION citus DROP TABLE pg_catalog.pg_dist_placement');
is(sql($read), 'named', 'unless a catalog is not of the extension');
sql('ALTER EXTENSION citus ADD TABLE pg_catalog.pg_dist_placement');
my %spoiled = (
	'a column has another name' => [ 'ALTER TABLE pg_dist_partition RENAME repmodel TO model', 'ALTER TABLE pg_dist_partition RENAME model TO repmodel' ],
	'a column has another type' => [ 'ALTER TABLE pg_dist_placement ALTER groupid TYPE bigint', 'ALTER TABLE pg_dist_placement ALTER groupid TYPE integer' ],
	'the table is divided' => [ q{UPDATE pg_dist_partition SET partmethod = 'h' WHERE logicalrelid = 'ref'::regclass}, q{UPDATE pg_dist_partition SET partmethod = 'n' WHERE logicalrelid = 'ref'::regclass} ],
	'the table is on one node' => [ q{UPDATE pg_dist_partition SET repmodel = 's' WHERE logicalrelid = 'ref'::regclass}, q{UPDATE pg_dist_partition SET repmodel = 't' WHERE logicalrelid = 'ref'::regclass} ],
	'the shard is not on this node' => [ 'UPDATE pg_dist_local_group SET groupid = 7', 'UPDATE pg_dist_local_group SET groupid = 0' ],
	'the placement is not active' => [ 'UPDATE pg_dist_placement SET shardstate = 3', 'UPDATE pg_dist_placement SET shardstate = 1' ],
	'the shard is not there' => [ 'ALTER TABLE ref_102014 RENAME TO gone', 'ALTER TABLE gone RENAME TO ref_102014' ],
	'the shard has another owner' => [ 'ALTER TABLE ref_102014 OWNER TO reader', 'ALTER TABLE ref_102014 OWNER TO CURRENT_USER' ],
	'a view has the name of the shard' => [ 'ALTER TABLE ref_102014 RENAME TO gone; CREATE VIEW ref_102014 AS TABLE gone', 'DROP VIEW ref_102014; ALTER TABLE gone RENAME TO ref_102014' ],
	'the table has row-level security' => [ 'ALTER TABLE ref ENABLE ROW LEVEL SECURITY', 'ALTER TABLE ref DISABLE ROW LEVEL SECURITY' ]);
foreach my $what (sort keys %spoiled)
{
	sql($spoiled{$what}[0]);
	is(sql($read), 'named', "unless $what");
	sql($spoiled{$what}[1]);
	is(sql($read), 'shard', '… and again when that has ended');
}
my $long = 'r' x 60;
sql(qq{CREATE TABLE $long (LIKE ref INCLUDING ALL); INSERT INTO $long TABLE ref;
	INSERT INTO pg_dist_partition VALUES ('$long', 'n', NULL, 5, 't'); INSERT INTO pg_dist_shard VALUES ('$long', 102020);
	INSERT INTO pg_dist_placement (shardid, groupid) VALUES (102020, 0)});
is(sql("$which FROM geonn_nearest('obs', '$long')"), 'named', 'unless the names are too long');
sql('UPDATE pg_dist_local_group SET groupid = 2');
is(sql($read), 'shard', 'workers read their own');
sql('UPDATE pg_dist_local_group SET groupid = 0; DROP INDEX pg_dist_shard_logical_relid_index');
is(sql($read), 'shard', 'without an index, too');

# ---- all calls ----

my $expected = "FROM geonn_nearest('obs', 'ref_102014')";
is(sql("SELECT count(*), sum(distance) FROM geonn_nearest('obs', 'ref')"), sql("SELECT count(*), sum(distance) $expected"), 'with the rows of the shard');
is(sql("$which FROM $_"), 'shard', $_) foreach
	"geonn_within('obs', 'ref', 100000)", "geonn_nearest('obs', 'ref', by => '{lon}', exclude_self => true)",
	"geonn_nearest_points('{50}', '{10}', 'ref')", "obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n",
	"(SELECT obs_id AS ref_id FROM geonn_nearest('ref', 'obs')) n", "(SELECT obs_id AS ref_id FROM geonn_nearest('ref', 'ref', exclude_self => true)) n";
is(sql("SELECT count FROM geonn_within_count('obs', 'ref', '{1e6}') WHERE obs_id = 1"), sql("SELECT count FROM geonn_within_count('obs', 'ref_102014', '{1e6}') WHERE obs_id = 1"), 'counts');
is(sql("SELECT rows FROM geonn_check('ref')"), 500, 'geonn_check');
is(sql("SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; $read"), 'shard', 'parallel workers');
sql($read);
like(sql("EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*) FROM geonn_nearest('obs', 'ref')"), qr/References Kept: true/, 'the engine keeps its references');
is(sql("SELECT pg_stat_force_next_flush(); SELECT count(*) FROM geonn_nearest('ref', 'obs') n WHERE obs_id = 77; SELECT pg_stat_force_next_flush();
	SELECT idx_scan FROM pg_stat_user_indexes WHERE relname = 'ref_102014'") =~ s/\s+/ /gr, ' 1 1', 'a condition reaches the shard');
# as Citus's triggers on its catalogs do, whatever changes about a table is told to all sessions
my $told = 'ALTER TABLE ref RESET (fillfactor)';
is(sql(qq{PREPARE p AS $read; EXECUTE p; UPDATE pg_dist_local_group SET groupid = 7; $told; EXECUTE p; UPDATE pg_dist_local_group SET groupid = 0; $told; EXECUTE p}),
	"shard\nnamed\nshard", 'a prepared statement follows the catalogs');
is(sql(qq{$read; $read; ALTER TABLE ref ENABLE ROW LEVEL SECURITY; $read; ALTER TABLE ref DISABLE ROW LEVEL SECURITY; $read; ALTER TABLE ref_102014 RENAME TO gone; $read;
	ALTER TABLE gone RENAME TO ref_102014; $told; $read}), "shard\nshard\nnamed\nshard\nnamed\nshard", 'and so do calls of a session that remembers the table');

# ---- writers ----

is(sql("$read; BEGIN; INSERT INTO ref VALUES (-100, 0, 0); $read; ROLLBACK; $read"), "shard\nnamed\nshard", 'a transaction that has written reads what it wrote');
is(sql("BEGIN; SAVEPOINT s; UPDATE ref SET lat = 0; ROLLBACK TO s; $read; COMMIT"), 'shard', 'unless the writing was rolled back');

# ---- caches ----

sql(q{SELECT geonn_cache_create('near', 'obs', 'ref'); UPDATE ref_102014 SET lat = lat / 2 WHERE id = 3; CALL geonn_refresh('near')});
is(sql(q{SELECT mode, searched < 500 FROM geonn_cache_log WHERE name = 'near' ORDER BY started DESC LIMIT 1}), 'incremental|t', 'a cache follows the shard, by its pages');
is(sql(qq{SELECT count(*) FROM (SELECT obs_id, ref_id, distance FROM near EXCEPT SELECT obs_id, ref_id, distance $expected) x}), 0, 'and has its rows');
sql(q{SELECT geonn_cache_drop('near')});

# ---- privileges ----

my $as_reader = 'SET ROLE reader';
foreach my $call ($read, "$which FROM geonn_nearest_points('{50}', '{10}', 'ref')", "$which FROM obs o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') n")
{
	sql('GRANT SELECT ON ref_102014 TO reader; REVOKE ALL ON ref FROM reader');
	like(said("$as_reader; $call"), qr/permission denied for table ref$/m, 'a role needs the table that it names');
	sql('GRANT SELECT (id, lat) ON ref TO reader');
	like(said("$as_reader; $call"), qr/permission denied for table ref$/m, 'all of the columns');
	sql('GRANT SELECT (lon) ON ref TO reader');
	is(said("$as_reader; $call"), 'shard', 'and no others');
	sql('REVOKE ALL ON ref_102014 FROM reader');
	like(said("$as_reader; $call"), qr/permission denied for table ref_102014$/m, 'and the shard');
}

sql('GRANT SELECT ON ref, ref_102014 TO reader');
like(said("$as_reader; $read; RESET ROLE; REVOKE ALL ON ref FROM reader; $as_reader; $read"), qr/^shard\n?.*permission denied for table ref$/ms, 'privileges are looked up in each call');
sql('REVOKE ALL ON ref_102014 FROM reader');

# a role that makes tables plants no shard, and no catalog
sql(q{CREATE SCHEMA readers AUTHORIZATION reader; GRANT CREATE ON SCHEMA public TO reader; ALTER TABLE ref_102014 RENAME TO gone});
like(said("$as_reader; CREATE TABLE pg_catalog.pg_dist_mine ()"), qr/permission denied/, 'no role puts tables into pg_catalog');
sql("$as_reader; CREATE TABLE ref_102014 (id integer PRIMARY KEY, lat float8, lon float8); INSERT INTO ref_102014 VALUES (1, 0, 0);
	CREATE TABLE readers.pg_dist_local_group AS SELECT 5 AS groupid");
is(sql("SET search_path = readers, public; $read"), 'named', 'the table of another role is no shard');
sql('DROP TABLE ref_102014; ALTER TABLE gone RENAME TO ref_102014');
is(sql("SET search_path = readers, public; $read"), 'shard', 'and catalogs of other schemas are none');

# ---- messages ----

like(said(q{SET client_min_messages = notice; SELECT FROM geonn_describe('ref')}),
	qr/NOTICE:  relation "ref" is a reference table of Citus, and is read by its shard "ref_102014" on this server/, 'geonn_describe tells of the shard');
like(said(q{SELECT * FROM geonn_nearest('obs', 'ref', options => '{"ref_id": "nothing"}')}), qr/ERROR.*relation "ref"/, 'messages name the table');
like(said(q{INSERT INTO ref_102014 VALUES (9999, 99, 0); SELECT count(*) FROM geonn_nearest('obs', 'ref')}), qr/WARNING.*relation "ref"/, '… that the caller named');

# ---- doc/citus.md ----

$node->safe_psql('postgres', 'CREATE DATABASE page');
$node->safe_psql('page', qq{
	CREATE EXTENSION geonn; CREATE EXTENSION dblink;
	$catalogs;
	ALTER TABLE made.pg_dist_partition SET SCHEMA pg_catalog; ALTER TABLE made.pg_dist_shard SET SCHEMA pg_catalog;
	ALTER TABLE made.pg_dist_placement SET SCHEMA pg_catalog; ALTER TABLE made.pg_dist_local_group SET SCHEMA pg_catalog;
	$adopted;
	CREATE SEQUENCE shardids START 102008;
	CREATE FUNCTION add_shard(t regclass, options text) RETURNS bigint LANGUAGE plpgsql AS \$\$
	DECLARE s bigint = nextval('shardids'); BEGIN
		EXECUTE format('CREATE TABLE %I (LIKE %s INCLUDING ALL) %s', t || '_' || s, t, options);
		INSERT INTO pg_dist_shard VALUES (t, s);
		INSERT INTO pg_dist_placement (shardid, groupid) VALUES (s, 0);
		RETURN s;
	END \$\$;
	CREATE FUNCTION get_shard_id_for_distribution_column(t regclass, id bigint) RETURNS bigint LANGUAGE sql AS
		\$\$ SELECT shardid FROM pg_dist_shard WHERE logicalrelid = t ORDER BY shardid OFFSET id % 2 LIMIT 1 \$\$;
	-- rows go to shards, which Citus does as it plans
	CREATE FUNCTION to_shard() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
		EXECUTE format('INSERT INTO %I SELECT (\$1).*', TG_RELID::regclass || '_' || (SELECT max(shardid) FROM pg_dist_shard s JOIN pg_dist_partition p USING (logicalrelid)
			WHERE logicalrelid = TG_RELID AND (partmethod = 'n' OR shardid = get_shard_id_for_distribution_column(TG_RELID, NEW.id)))) USING NEW;
		RETURN NULL;
	END \$\$;
	CREATE FUNCTION create_reference_table(t regclass) RETURNS void LANGUAGE plpgsql AS \$\$ BEGIN
		INSERT INTO pg_dist_partition VALUES (t, 'n', NULL, 5, 't');
		PERFORM add_shard(t, '');
		EXECUTE format('CREATE TRIGGER to_shard BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION to_shard()', t);
	END \$\$;
	CREATE FUNCTION create_distributed_table(t regclass, c text, colocate_with text DEFAULT '') RETURNS void LANGUAGE plpgsql AS \$\$ BEGIN
		INSERT INTO pg_dist_partition VALUES (t, 'h', c, 6, 's');
		PERFORM add_shard(t, format('INHERITS (%s)', t)) FROM generate_series(1, 2);
		EXECUTE format('CREATE TRIGGER to_shard BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION to_shard()', t);
	END \$\$;
	CREATE FUNCTION run_command_on_shards(t regclass, command text) RETURNS TABLE (shardid bigint, success boolean, result text) LANGUAGE plpgsql AS \$\$
	DECLARE run text; BEGIN
		FOR shardid IN SELECT s.shardid FROM pg_dist_shard s WHERE logicalrelid = t LOOP
			run := format(command, t || '_' || shardid);
			IF run LIKE 'CALL%' THEN
				result := dblink_exec('} . ($node->connstr('page') =~ s/'/''/gr) . qq{', run);
			ELSE
				SELECT r INTO result FROM dblink('} . ($node->connstr('page') =~ s/'/''/gr) . qq{', run) d (r text);
			END IF;
			success := true;
			RETURN NEXT;
		END LOOP;
	END \$\$});

my $text = Geonn::slurp((grep { m{/citus\.md$} } Geonn::pages())[0]);
my $blocks = 0;
while ($text =~ /^```sql citus\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?/msg)
{
	my ($commands, $shown) = ($1, $2);
	my $title = (split /\n/, $commands)[0];
	my ($out, $error) = ('', '');

	$blocks++;
	IPC::Run::run([ $node->installed_command('psql'), '-Xq', '-d', $node->connstr('page') ],
		'<', \"SET client_min_messages = notice;\n$commands", '>', \$out, '2>', \$error, IPC::Run::timeout(180));
	unlike($error, qr/ERROR|WARNING/, "$title runs");
	next if !defined($shown);
	my @said = grep { /^(NOTICE|HINT)/ } shown_lines($shown);
	is_deeply([ map { s/station_\d+/station_…/r } shown_lines($error) ], \@said, 'and says what the page shows');
	is_deeply([ shown_lines($out) ], [ grep { !/^(NOTICE|HINT)/ } shown_lines($shown) ], 'and prints it');
}
cmp_ok($blocks, '>', 5, 'the page has blocks');
like($node->safe_psql('page', 'EXPLAIN SELECT kind, count(*) FROM near GROUP BY kind'), qr/Custom Scan \(geonn lateral join\)/, 'the function in the view becomes one search');
is($node->safe_psql('page', q{SELECT string_agg(provolatile::text || proisstrict || prosecdef, ' ') FROM pg_proc WHERE proname IN ('nearest_station', 'near_in_shard')}),
	'ifalsefalse ifalsefalse', 'of functions that Citus sends to nodes from a view');
is($node->safe_psql('page', q{SELECT count(*) FROM (SELECT obs_id, ref_id FROM near) a FULL JOIN (SELECT obs_id, ref_id FROM geonn_nearest('ping', 'station')) b USING (obs_id, ref_id) WHERE a IS NULL OR b IS NULL}), 0,
	'its rows are those of one server');

done_testing();
