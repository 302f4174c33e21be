
# ALTER EXTENSION geonn UPDATE leaves what CREATE EXTENSION makes: for each version
# that there are scripts for, and for one that is made here, of which each statement
# that an upgrade script could forget is missed.
#
# short form: one of five statements is missed

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
