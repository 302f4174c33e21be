
# ALTER EXTENSION geonn UPDATE leaves what CREATE EXTENSION makes: for each version
# that there are scripts for, and for one that is made here, of which each statement
# that an upgrade script could forget is missed.  The caches, views and functions that a database
# has by 0.1 are answered as before: by the module before the update, and by the objects after it.  What the operator's
# page says of updates from 0.1, and of restores, is so of that database.
#
# short form: one of five statements is missed
# rooms: base

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($installation) = own_installation();
my $sharedir = `$installation/bin/pg_config --sharedir`;
chomp($sharedir);
my $scripts = "$sharedir/extension";
my ($version) = slurp_file("$scripts/geonn.control") =~ /default_version = '(.*)'/;
add_release($installation, $_) foreach former_releases();

my $node = PostgreSQL::Test::Cluster->new('main', install_path => $installation);
$node->init;
$node->start;

# What an extension has, a line for each object, with all that a script can say of it.
# Roles and files have no place in it, and neither has the extension's version.
$node->safe_psql('postgres', q{
	CREATE FUNCTION objects() RETURNS SETOF text LANGUAGE sql SET search_path = pg_catalog AS $$
	WITH member AS (
		SELECT d.classid, d.objid, i.type, i.identity, e.oid AS extension
		FROM pg_extension e
		JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
		CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) i
		WHERE e.extname = 'geonn'
	), column_of AS (
		SELECT m.objid, jsonb_agg(jsonb_build_array(a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
			a.attstorage, a.attidentity, a.attcollation::regcollation, pg_get_expr(v.adbin, v.adrelid),
			a.attacl::text, col_description(a.attrelid, a.attnum)) ORDER BY a.attnum) AS columns
		FROM member m
		LEFT JOIN pg_type t ON m.classid = 'pg_type'::regclass AND t.oid = m.objid
		JOIN pg_attribute a ON a.attrelid = CASE WHEN m.classid = 'pg_class'::regclass THEN m.objid ELSE t.typrelid END
			AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_attrdef v ON v.adrelid = a.attrelid AND v.adnum = a.attnum
		GROUP BY m.objid
	)
	SELECT jsonb_build_object('type', m.type, 'identity', m.identity,
		'comment', obj_description(m.objid, (SELECT relname FROM pg_class WHERE oid = m.classid)),
		'initial privileges', (SELECT jsonb_agg(jsonb_build_array(objsubid, privtype, initprivs::text) ORDER BY objsubid)
			FROM pg_init_privs i WHERE i.classoid = m.classid AND i.objoid = m.objid),
		'function', (SELECT jsonb_build_array(CASE WHEN prokind IN ('f', 'p', 'w') THEN pg_get_functiondef(oid) END,
			prosupport, proacl::text) FROM pg_proc p WHERE m.classid = 'pg_proc'::regclass AND p.oid = m.objid),
		'relation', (SELECT jsonb_build_array(relkind, relpersistence, reloptions, relacl::text, relrowsecurity,
				relreplident, CASE WHEN relkind = 'v' THEN pg_get_viewdef(c.oid) END)
			FROM pg_class c WHERE m.classid = 'pg_class'::regclass AND c.oid = m.objid),
		'sequence', (SELECT to_jsonb(s) - 'seqrelid' FROM pg_sequence s
			WHERE m.classid = 'pg_class'::regclass AND s.seqrelid = m.objid),
		'columns', (SELECT columns FROM column_of c WHERE c.objid = m.objid),
		'constraints', (SELECT jsonb_agg(pg_get_constraintdef(c.oid) ORDER BY c.conname) FROM pg_constraint c
			WHERE m.classid = 'pg_class'::regclass AND c.conrelid = m.objid),
		'indexes', (SELECT jsonb_agg(pg_get_indexdef(i.indexrelid) ORDER BY i.indexrelid::regclass::text) FROM pg_index i
			WHERE m.classid = 'pg_class'::regclass AND i.indrelid = m.objid),
		'triggers', (SELECT jsonb_agg(jsonb_build_array(t.tgenabled, pg_get_triggerdef(t.oid)) ORDER BY t.tgname) FROM pg_trigger t
			WHERE m.classid = 'pg_class'::regclass AND t.tgrelid = m.objid AND NOT t.tgisinternal),
		'event trigger', (SELECT jsonb_build_array(evtevent, evtenabled, evttags, evtfoid::regprocedure)
			FROM pg_event_trigger t WHERE m.classid = 'pg_event_trigger'::regclass AND t.oid = m.objid),
		'policies', (SELECT jsonb_agg(jsonb_build_array(p.polname, p.polcmd, p.polroles::regrole[],
				pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)) ORDER BY p.polname)
			FROM pg_policy p WHERE m.classid = 'pg_class'::regclass AND p.polrelid = m.objid),
		'dumped where', (SELECT jsonb_agg(e.extcondition[n]) FROM pg_extension e, generate_subscripts(e.extconfig, 1) n
			WHERE e.oid = m.extension AND e.extconfig[n] = m.objid AND m.classid = 'pg_class'::regclass))::text
	FROM member m
	$$;
	CREATE EXTENSION geonn;
	CREATE TABLE fresh AS SELECT objects() AS object;
	DROP EXTENSION geonn;
	CREATE VIEW difference AS
		(SELECT '- ' || object AS line FROM (SELECT object FROM fresh EXCEPT ALL SELECT objects()) gone)
		UNION ALL (SELECT '+ ' || object FROM (SELECT objects() AS object EXCEPT ALL SELECT object FROM fresh) new);
});

# what differs after an upgrade to that version, or what PostgreSQL says of it
sub upgraded
{
	my ($from, $to) = @_;
	my ($out, $error) = ('', '');

	$node->psql('postgres', qq{BEGIN; CREATE EXTENSION geonn VERSION '$from';
		ALTER EXTENSION geonn UPDATE TO '$to'; SELECT line FROM difference ORDER BY 1; ROLLBACK;},
		stdout => \$out, stderr => \$error, on_error_stop => 1);
	return $out . $error;
}

cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM fresh'), '>', 30, 'the comparison knows the objects of an installation');

# ---- versions that were released ----

my @former = split(/\n/, $node->safe_psql('postgres', qq{
	SELECT source FROM pg_extension_update_paths('geonn') JOIN pg_available_extension_versions v
		ON v.name = 'geonn' AND v.version = source
	WHERE target = '$version' AND path IS NOT NULL ORDER BY source}));
is(upgraded($_, $version), '', "an upgrade from $_ makes what is made afresh") foreach @former;
my @left = split(/\n/, $node->safe_psql('postgres', qq{
	SELECT version FROM pg_available_extension_versions WHERE name = 'geonn'
		AND version <> '$version' AND version NOT IN (SELECT source FROM pg_extension_update_paths('geonn')
			WHERE target = '$version' AND path IS NOT NULL)}));
is("@left", '', 'from each version there is an upgrade');

# ---- a database of 0.1 ----

# what the calls of that version answer, in views and by their text
my %call = (
	nearest => "geonn_nearest('obs', 'ref', 2, by => '{kind}', exclude_self => true)",
	nearest_sql => "geonn_nearest_sql('SELECT id, lat, lon FROM obs', 'SELECT id, lat, lon FROM ref', keep_unmatched => true)",
	within => "geonn_within('obs', 'ref', 900000, invalid => 'error')",
	within_sql => "geonn_within_sql('SELECT id, lat, lon FROM obs', 'SELECT id, lat, lon FROM ref', 900000)",
	nearest_points => "geonn_nearest_points('{1, 2}', '{3, 4}', 'ref', ties => 'all')");
my $digests = join(' UNION ALL ', map { "SELECT '$_', count(*), md5(string_agg(n::text, '|' ORDER BY n::text)) FROM $call{$_} n" } sort keys %call)
  . ' ORDER BY 1';
my $view_digests = join(' UNION ALL ', map { "SELECT '$_', count(*), md5(string_agg(n::text, '|' ORDER BY n::text)) FROM by_$_ n" } sort keys %call)
  . ' ORDER BY 1';

# A cache of this name as 0.1 leaves it behind: its table, its triggers and its rows in the extension's tables.
sub cache_of_0_1
{
	my ($name, $arguments, $join) = @_;

	return qq{
		CREATE TABLE $name (obs_id integer NOT NULL, rank integer NOT NULL, ref_id integer, distance float8) WITH (fillfactor = 90);
		INSERT INTO $name SELECT * FROM $join AS n (obs_id integer, rank integer, ref_id integer, distance float8);
		ALTER TABLE $name ADD PRIMARY KEY (obs_id, rank);
		CREATE TRIGGER geonn_cache_changed AFTER INSERT OR UPDATE OR DELETE ON $name FOR EACH ROW EXECUTE FUNCTION geonn_cache_changed();
		CREATE TRIGGER geonn_cache_truncated AFTER TRUNCATE ON $name FOR EACH STATEMENT EXECUTE FUNCTION geonn_cache_changed();
		ALTER TABLE $name ENABLE ALWAYS TRIGGER geonn_cache_changed;
		ALTER TABLE $name ENABLE ALWAYS TRIGGER geonn_cache_truncated;
		INSERT INTO geonn_cache (name, target, obs, ref, arguments) VALUES ('$name', '$name', 'obs', 'ref', '$arguments');
		INSERT INTO geonn_cache_run (cache, started, finished, status, pid, mode, rows, inserted, updated, deleted)
			SELECT id, now(), now(), 'succeeded', 1, 'fill', 1, 1, 0, 0 FROM geonn_cache WHERE name = '$name';
		INSERT INTO geonn_cache_total SELECT id, 1, 0 FROM geonn_cache WHERE name = '$name';
		INSERT INTO geonn_cache_last_run SELECT id, true, 'of 0.1', 1, '{}', '{}', NULL, false, 0, 0 FROM geonn_cache WHERE name = '$name';
	};
}
my %kept = (
	near => [ '{"k": 3, "by": ["kind"], "replace": "never"}', "geonn_nearest('obs', 'ref', k => 3, by => '{kind}', row_type => NULL::record)" ],
	since => [ '{"radius": 900000, "changed_since": "seen"}', "geonn_within('obs', 'ref', 900000, row_type => NULL::record)" ]);
my %differences = map { $_ => "SELECT count(*) FROM (SELECT * FROM $kept{$_}[1] AS n (obs_id integer, rank integer, ref_id integer, distance float8)) n
	FULL JOIN $_ c ON ROW(n.*) = ROW(c.*) WHERE n.obs_id IS NULL OR c.obs_id IS NULL" } keys %kept;

$node->safe_psql('postgres', q{CREATE DATABASE former});
$node->safe_psql('former', q{
	CREATE SCHEMA geonn;
	CREATE EXTENSION geonn SCHEMA geonn VERSION '0.1';
	GRANT USAGE ON SCHEMA geonn TO PUBLIC;
	ALTER DATABASE former SET search_path = "$user", public, geonn;
	ALTER DATABASE former SET session_preload_libraries = 'geonn';
	\c former
	CREATE TABLE obs AS SELECT i AS id, i * 7 % 90 AS lat, i * 11 % 180 AS lon, i % 3 AS kind, now() AS seen FROM generate_series(1, 500) i;
	CREATE TABLE ref AS SELECT i AS id, i * 13 % 90 AS lat, i * 17 % 180 AS lon, i % 3 AS kind FROM generate_series(1, 90) i;
	CREATE ROLE reader;
	GRANT SELECT ON obs, ref TO reader;
	} . join('', map { "CREATE VIEW by_$_ AS SELECT * FROM $call{$_} n; GRANT SELECT ON by_$_ TO reader;" } sort keys %call)
	. 'CREATE VIEW near_by_near AS SELECT n.obs_id FROM by_nearest n JOIN by_within w USING (obs_id);');
$node->safe_psql('former', cache_of_0_1($_, @{ $kept{$_} })) foreach sort keys %kept;

# this module with the objects of 0.1
my $answers = $node->safe_psql('former', $digests);
is($node->safe_psql('former', $view_digests), $answers, 'before the update the module answers the calls of 0.1, in views, too');
my $update = qr/HINT:  Run ALTER EXTENSION geonn UPDATE/;
foreach my $statement ("CALL geonn_refresh('near')", "SELECT geonn_cache_create('more', 'obs', 'ref')", q{SELECT geonn_cache_alter('near', '{"k": 2}')},
	"SELECT geonn_cache_drop('near')", "SELECT geonn_describe('obs')", "SELECT geonn_check('obs')")
{
	my (undef, undef, $error) = $node->psql('former', $statement);
	like($error, $update, "before it, $statement says what to do");
}
is($node->safe_psql('former', q{BEGIN; UPDATE since SET rank = rank; DROP TABLE since; SELECT count(*) FROM geonn_caches; ROLLBACK}), 1,
	'and rows of caches can be written, and their tables dropped');

# the update
my ($status, undef, $said) = $node->psql('former', 'ALTER EXTENSION geonn UPDATE');
is($status, 0, 'a database with caches and views is updated') or diag($said);
foreach my $name (sort keys %call)
{
	like($said, qr/function geonn_$name of version 0\.1 is now geonn_${name}_0_1.*\n(?:DETAIL: .*)?view public\.by_$name depends on function geonn_$name\(/,
		"it names the view that calls geonn_$name");
}
my ($page) = grep { m,/operations\.md$, } glob("$ENV{GEONN_PAGES}/doc/*.md");
my %section = slurp_file($page) =~ /^## ([^\n]*)\n(.*?)(?=^## |\z)/msg;
my ($shown) = $section{'Upgrade of geonn'} =~ /^```\n(WARNING.*?)^```/ms;
foreach my $line (split /\n/, $shown)
{
	my $pattern = join('.*', map { quotemeta } split /…/, $line);

	like($said, qr/$pattern/, "the page shows what it says: $line");
}
unlike($said, qr/NOTICE/, 'and nothing is installed already');
is($node->safe_psql('former', q{SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc WHERE proname ~ '^geonn_.*_0_1$'}),
	join(' ', sort map { "geonn_${_}_0_1" } keys %call), 'the functions of 0.1 that are called stay');
is($node->safe_psql('former', $digests), $answers, 'calls answer as before');
is($node->safe_psql('former', "SET ROLE reader; $view_digests"), $answers, 'and so do views, for the roles that may read them');
like($node->safe_psql('former', 'EXPLAIN SELECT * FROM by_nearest WHERE distance < 1'), qr/Custom Scan \(geonn join\).*Function: geonn_nearest_0_1/s, 'with the plans of joins');
is($node->safe_psql('former', 'SELECT name, arguments, status, runs FROM geonn_caches JOIN geonn_cache USING (name) ORDER BY 1'),
	qq(near|{"k": 3, "by": ["kind"], "replace": "never"}|succeeded|1\nsince|{"radius": 900000}|succeeded|1), 'caches have their arguments and runs');
is($node->safe_psql('former', $differences{$_}), 0, "cache $_ has its rows") foreach sort keys %kept;
foreach my $mode (qw(full incremental))
{
	$node->safe_psql('former', q{UPDATE ref SET lat = lat / 2 WHERE id % 7 = 0; DELETE FROM obs WHERE id % 50 = 0});
	$node->safe_psql('former', "CALL geonn_refresh_all()");
	is($node->safe_psql('former', $differences{$_}), 0, "a refresh of cache $_ finds what has changed: $mode") foreach sort keys %kept;
	is($node->safe_psql('former', "SELECT DISTINCT mode FROM geonn_caches"), $mode, "by a refresh that is $mode");
}

# what stays outside of the extension goes into dumps, and goes when nothing needs it
my $dump = "$installation/former.sql";
$node->command_ok([ 'pg_dump', '-d', $node->connstr('former'), '-f', $dump ], 'the database can be dumped');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('restored'), '-f', $dump ], 'and restored');
is($node->safe_psql('restored', $view_digests), $node->safe_psql('former', $view_digests), 'with its views');
my $call = "SELECT count(*) FROM geonn_nearest('obs', 'ref')";
my $settings = q{SELECT unnest(setconfig) FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase WHERE datname = current_database() ORDER BY 1};
my (undef, undef, $missed) = $node->psql('restored', $call);
like($missed, qr/function geonn_nearest\(unknown, unknown\) does not exist/, 'without -C it lacks the settings of the database');
my ($again) = $section{'Backup and restore'} =~ /^```sql\n(.*?)^```/ms;
$node->safe_psql('restored', $again);
like($node->safe_psql('restored', "$settings; $call"), qr/^search_path="\$user", public, geonn\n\d+$/, 'the line of the page gives it the search_path');
like($section{'Backup and restore'}, qr/session_preload_libraries/, 'and names the other setting');
$node->command_ok([ 'pg_dump', '-C', '-d', $node->connstr('former'), '-f', $dump ], 'with -C');
like(slurp_file($dump), qr/^ALTER DATABASE former SET $_ /m, "a dump has $_") foreach qw(search_path session_preload_libraries);
$node->safe_psql('former', join('', map { "CREATE OR REPLACE VIEW by_$_ AS SELECT * FROM $call{$_} n; DROP FUNCTION geonn_${_}_0_1;" } sort keys %call));
is($node->safe_psql('former', "SELECT count(*) FROM pg_proc WHERE proname LIKE '%0\\_1'"), 0, 'views that are defined anew need nothing of 0.1');

$node->safe_psql('postgres', 'CREATE DATABASE described');
(undef, undef, $said) = $node->psql('described', q{CREATE EXTENSION geonn VERSION '0.1'; CREATE TABLE obs (id int, lat float8, lon float8);
	CREATE VIEW columns AS SELECT * FROM geonn_describe('obs'); ALTER EXTENSION geonn UPDATE});
like($said, qr/cannot drop function geonn_describe.*\n.*view columns depends on/, 'a view with other columns than before is named, and keeps the update from it');

# ---- one that is made here ----

# The statements of the present script: each ends with the line that ends with its
# semicolon, as no body of a function here is of several statements.
my @statements = grep { /^\w/m } slurp_file("$scripts/geonn--$version.sql") =~ /(.*?;(?:[ \t]*--[^\n]*)?\n)/gs;
cmp_ok(scalar(@statements), '>', 50, 'the script has its statements');

# But the warning, which leaves nothing behind, and which an upgrade has no need of.
@statements = grep { !/^SELECT geonn_warn_of_creators\(\);/m } @statements;

# Each that is missed is a version of its own that can be reached from "none", which
# has the first statement alone; "all" misses none.
my $first = shift @statements;
sub write_script
{
	my ($name, @lines) = @_;

	open(my $file, '>', "$scripts/geonn--$name.sql") or die "$name: $!";
	print $file @lines;
	close($file);
}
write_script('none', $first);
write_script('none--all', @statements);
foreach my $i (0 .. $#statements)
{
	write_script("none--without$i", map { $_ == $i ? () : $statements[$_] } 0 .. $#statements);
}

is(upgraded('none', 'all'), '', 'an upgrade with all statements makes what is made afresh');
my @unseen;
my $others = int(rand(5));
foreach my $i (grep { $ENV{GEONN_LONG} || $_ % 5 == $others } 0 .. $#statements)
{
	push @unseen, $statements[$i] if upgraded('none', "without$i") eq '';
}
is(join("\n", @unseen), '', 'whichever statement an upgrade forgets, the comparison shows it');

done_testing();
