
# Tables that come as parameters, of any type and by each of the protocols that drivers use, are joined as
# literal ones are: the same rows, by a hash join and in parallel, not by a loop over what is taken
# for a thousand rows.
# rooms: plan join points

use strict;
use warnings;

use Geonn;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('parameters', preload => 1, conf => q{
	autovacuum = off
	jit = off
	max_parallel_workers_per_gather = 2
	min_parallel_table_scan_size = 0
	session_preload_libraries = 'auto_explain'
	auto_explain.log_min_duration = 0
	auto_explain.log_format = json});

$node->safe_psql(
	'postgres', q{
	CREATE TABLE obs AS SELECT i AS id, (i * 7919 % 1800) / 10.0::float8 - 90 AS lat, (i * 10473::bigint % 3600) / 10.0::float8 - 180 AS lon
	FROM generate_series(1, 20000) i;
	-- not a key, so that a join reads obs twice
	CREATE UNIQUE INDEX ON obs (id);
	CREATE TABLE ref AS SELECT id, lat + 0.01 AS lat, lon FROM obs WHERE id % 100 = 0 AND lat < 89;
	CREATE VIEW seen AS SELECT * FROM obs;
	CREATE ROLE visitor;
	GRANT SELECT ON obs, ref TO visitor;
	VACUUM ANALYZE});

sub join_of
{
	my ($observations, $references) = @_;

	return "SELECT count(*) AS rows, sum(n.ref_id) AS refs, sum(o.id) AS obs FROM geonn_nearest($observations, $references) n JOIN obs o ON o.id = n.obs_id";
}

my $expected = $node->safe_psql('postgres', join_of("'obs'", "'ref'"));

# The plans that are logged while this runs.
sub plans_of
{
	my ($run) = @_;
	my $from = -s $node->logfile;

	$run->();
	my $log = substr(slurp_file($node->logfile), $from);
	return $log =~ /plan:\n(\t?\{.*?\n\t?\})/sg;
}

# The nodes of a logged plan, and the most workers of any.
sub nodes_of
{
	my ($plan) = @_;
	my @left = (decode_json($plan)->{Plan});
	my @nodes;

	while (my $node = shift @left)
	{
		push @nodes, $node;
		push @left, @{ $node->{Plans} // [] };
	}
	return @nodes;
}

sub is_joined_well
{
	my ($name, @plans) = @_;
	my @joins = grep { /geonn join/ } @plans;
	my @bad = grep {
		my @nodes = nodes_of($_);
		!(grep { $_->{'Node Type'} eq 'Hash Join' } @nodes)
		  || !(grep { ($_->{'Workers Planned'} // 0) == 2 } @nodes)
	} @joins;

	ok(@joins > 0 && @bad == 0, "$name: each plan is a parallel hash join")
	  or diag(scalar(@joins) . " plans; the first that is not: " . ($bad[0] // 'none'));
}

# ---- what drivers send ----

my $script = PostgreSQL::Test::Utils::tempdir() . '/script';
foreach my $type ('', '::text', '::varchar', '::regclass', '::text::regclass', '::varchar(20)')
{
	foreach my $mode (qw(simple extended prepared))
	{
		my $quote = $mode eq 'simple' ? "'" : '';
		my $name = "$mode protocol, parameters" . ($type eq '' ? ' without a type' : $type);

		open(my $file, '>', $script);
		print $file join_of(":o$type", ":r$type") . " \\gset got_\n";
		# pgbench fails where the rows differ
		my @expected = split(/\|/, $expected);
		print $file "SELECT 1 / (:got_rows = $expected[0] AND :got_refs = $expected[1] AND :got_obs = $expected[2])::integer;\n";
		close($file);
		my @plans = plans_of(sub {
			command_ok([
				$node->installed_command('pgbench'), '-n', '-t', $mode eq 'prepared' ? 8 : 2, '-M', $mode, '-f', $script,
				'-D', "o=${quote}obs$quote", '-D', "r=${quote}public.ref$quote", '-h', $node->host,
				'-p', $node->port, 'postgres' ], "$name: it runs") });
		is_joined_well($name, @plans);
	}
}

# ---- generic plans, executed for tables of each kind ----

my $prepared = "PREPARE j (regclass, text) AS " . join_of('$1', '$2') . ";\n";
my $generic = "SET plan_cache_mode = force_generic_plan;\n$prepared";

is_joined_well('a generic plan', plans_of(sub {
	is($node->safe_psql('postgres', "$generic EXECUTE j ('obs', 'ref')"), $expected, 'a generic plan: the same rows') }));
is_joined_well('a generic plan of a call with a column definition list', plans_of(sub {
	is($node->safe_psql('postgres', ($generic =~ s/(geonn_nearest\([^)]*)\)/with_list("$1, row_type => NULL::geonn_pair)", 'obs_id integer, ref_id bigint')/er) . "EXECUTE j ('obs', 'ref')"),
		$expected, 'a column definition list: the same rows') }));
is($node->safe_psql('postgres', "$generic EXECUTE j ('seen', 'ref')"), $expected, 'a generic plan: a view');
is($node->safe_psql('postgres', "CREATE TEMP TABLE own AS TABLE obs; $generic EXECUTE j ('own', 'ref')"),
	$expected, 'a generic plan: a temporary table');
is($node->safe_psql('postgres', "$generic EXECUTE j ('obs', 'seen')"),
	$node->safe_psql('postgres', join_of("'obs'", "'seen'")), 'a generic plan: references of a view');
is($node->safe_psql('postgres', qq{$generic EXECUTE j ('obs', 'ref');
		ALTER TABLE ref RENAME TO former; CREATE TABLE ref AS SELECT * FROM former WHERE id % 200 = 0;
		EXECUTE j ('obs', 'ref');
		DROP TABLE ref; ALTER TABLE former RENAME TO ref}),
	"$expected\n" . $node->safe_psql('postgres', join_of("'obs'", "'ref_200'") =~ s/'ref_200'/'half'/r =~ s/^/CREATE VIEW half AS SELECT * FROM ref WHERE id % 200 = 0; /r),
	'a generic plan: another table of the same name');
unlike($node->safe_psql('postgres', "$prepared" . ("EXECUTE j ('ref', 'ref');\n" x 12) . "EXPLAIN EXECUTE j ('ref', 'ref')"),
	qr/rows=1000000 /, 'PostgreSQL stays with the plans for small tables');

# ---- a name that comes to mean another table, while the plan stays ----

my $named = "PREPARE j AS " . join_of("'obs'::text", "'ref'::text") . ";\n";
is($node->safe_psql('postgres', qq{
		CREATE SCHEMA first; SET search_path = first, public;
		$named EXECUTE j;
		CREATE TABLE first.obs AS SELECT * FROM public.obs WHERE id <= 500;
		ALTER TABLE first.obs ADD PRIMARY KEY (id);
		EXECUTE j;
		SET search_path = public, first;
		EXECUTE j;
		DROP SCHEMA first CASCADE}),
	join("\n", $expected,
		$node->safe_psql('postgres', join_of("'few'", "'ref'") =~ s/^/CREATE VIEW few AS SELECT * FROM obs WHERE id <= 500; /r),
		$expected),
	'a name in text means what it means when the plan is executed');
is($node->safe_psql('postgres', qq{
		ALTER TABLE obs ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON obs USING (id <= 500);
		ALTER TABLE obs DISABLE ROW LEVEL SECURITY;
		SET ROLE visitor;
		$named EXECUTE j;
		RESET ROLE; ALTER TABLE obs ENABLE ROW LEVEL SECURITY; SET ROLE visitor;
		EXECUTE j;
		RESET ROLE; ALTER TABLE obs DISABLE ROW LEVEL SECURITY}),
	"$expected\n" . $node->safe_psql('postgres', join_of("'few'", "'ref'")),
	'a policy that comes after the plan holds');

# ---- names that are not there: the error comes with the execution ----

foreach my $name ('missing', 'no_schema.obs', 'a.b.c.d', 'a..b', '')
{
	my ($code, undef, $error) = $node->psql('postgres', "EXPLAIN " . join_of("'$name'::text", "'ref'"));

	is($code, 0, "planned for '$name'") or diag($error);
	($code) = $node->psql('postgres', join_of("'$name'::text", "'ref'"));
	isnt($code, 0, "not executed for '$name'");
}
$node->safe_psql('postgres', 'CREATE SCHEMA closed; CREATE TABLE closed.obs AS TABLE obs');
my ($code, $out, $error) = $node->psql('postgres', "SET ROLE visitor; EXPLAIN " . join_of("'closed.obs'::text", "'ref'"));
is($code, 0, 'planned for a table in a schema that the user may not use') or diag($error);
unlike($out, qr/closed/, 'its name is not looked up there');

done_testing();
