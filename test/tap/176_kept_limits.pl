
# What one role keeps in the engine takes from others neither time nor descriptors nor memory
# beyond the limits, and tells them nothing.
#
# short form: 5,000 sets of references

use strict;
use warnings;

use Geonn;
use Test::More;

# so many sets are kept at most (src/engine/server/datasets.c)
my $most = 4096;
my $sets = $ENV{GEONN_LONG} ? 50000 : 5000;

my $node = new_server('limits', preload => 1,
	conf => "autovacuum = off\nmax_parallel_workers_per_gather = 0");

$node->safe_psql(
	'postgres', q{
	CREATE ROLE attacker;
	CREATE ROLE victim;
	CREATE TABLE person AS SELECT 42::bigint AS id, 52.53::float8 AS lat, 13.41::float8 AS lon;
	CREATE TABLE many AS SELECT i::bigint AS id, (i % 90)::float8 AS lat, (i % 180)::float8 AS lon FROM generate_series(1, 2000) i;
	GRANT SELECT ON person, many TO victim;

	CREATE FUNCTION search_sql(query text) RETURNS text LANGUAGE sql AS $$
		SELECT format('SELECT obs_id, ref_id FROM geonn_nearest_sql(''SELECT 1::bigint AS id, 0 AS lat, 0 AS lon'', %L)', query)
	$$;

	-- so many sets of so many references each, none of which is another's; with ids of type text they have files
	CREATE TYPE by_bigint AS (obs_id bigint, ref_id bigint, distance float8);
	CREATE TYPE by_text AS (obs_id bigint, ref_id text, distance float8);
	CREATE PROCEDURE search_sets(sets integer, size integer, type text) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. sets LOOP
			EXECUTE format('SELECT count(*) FROM geonn_nearest_sql(''SELECT 1::bigint AS id, 0 AS lat, 0 AS lon'', %L, row_type => NULL::by_%s)',
				format('SELECT i::%s AS id, i %% 90 AS lat, %s / 1e6 AS lon FROM generate_series(1, %s) i', type, i, size), type);
		END LOOP;
	END $$;

	-- searches of 2,000 references, which are others each time
	CREATE PROCEDURE search_anew(runs integer) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. runs LOOP
			EXECUTE search_sql(format('SELECT id, lat, lon + %s / 1e9 AS lon FROM many WHERE id > 0', (random() * 1e9)::integer));
		END LOOP;
	END $$;
});

sub sql_as
{
	my ($role, $sql) = @_;

	return $node->safe_psql('postgres', "SET ROLE $role; $sql");
}

# the work that searches are for the engine, in seconds
sub work_of_searches
{
	my ($runs) = @_;
	my $engine = status($node, 'engine_pid');
	my $before = work_of($engine);

	sql_as('victim', "CALL search_anew($runs)");
	return work_of($engine) - $before;
}

sub plan_of
{
	my ($role, $references) = @_;
	my $search = sql_as($role, "SELECT search_sql(\$q\$$references\$q\$)");

	return sql_as($role, "EXPLAIN (ANALYZE) $search");
}

# the engine takes what its status says, or not much more
sub memory_is_told
{
	my ($name) = @_;
	my ($taken, $told);

	wait_until(
		sub {
			$told = status($node, 'kept_memory + transfer_memory + base_memory');
			($taken) = Geonn::slurp('/proc/' . status($node, 'engine_pid') . '/status') =~ /VmRSS:\s+(\d+) kB/;
			return $taken * 1024 <= 1.3 * $told;
		},
		$name, 10);
	note(sprintf('%.1f MB are resident, %.1f MB told', $taken / 1024, $told / 1048576));
}

# ---- what is told ----

foreach my $case (
	[ 'false', 'one row', 'SELECT id, lat, lon FROM person WHERE id = 42', 'SELECT 42::bigint AS id, 52.53::float8 AS lat, 13.41::float8 AS lon' ],
	[
		'true', 'many rows', 'SELECT id, lat, lon FROM many WHERE id > 0',
		'SELECT i::bigint AS id, (i % 90)::float8 AS lat, (i % 180)::float8 AS lon FROM generate_series(1, 2000) i'
	])
{
	my ($recognised, $what, $references, $guess) = @$case;

	plan_of('victim', $references);
	like(plan_of('victim', $guess), qr/References Recognised: $recognised/, "$what of one's own are recognised: $recognised");
	like(plan_of('attacker', $guess), qr/References Recognised: false/, "$what of another role never");
}

# ---- time and memory ----

my $before = work_of_searches(300);
my $kept = status($node, 'datasets_kept');

sql_as('attacker', "CALL search_sets($sets, 1, 'bigint')");
is(status($node, 'datasets_kept'), $kept, 'single references are not kept');
sql_as('attacker', "CALL search_sets($sets, 1000, 'bigint')");
is(status($node, 'datasets_kept'), $most, 'of larger sets so many are');

my $after = work_of_searches(300);
cmp_ok($after, '<', 3 * $before + 0.1, 'which is no work for the searches of others');
note("300 searches of 2,000 references were $before s of work before, $after s after");
memory_is_told('the engine takes the memory that its status tells');

# all of them leave at a time
my $largest = 0;
$node->safe_psql('postgres', 'ALTER SYSTEM SET geonn.kept_memory_limit = 0; SELECT pg_reload_conf()');
foreach (1 .. 30)
{
	my $work = work_of_searches(1);

	$largest = $work if $work > $largest;
}
cmp_ok($largest, '<', 2, 'others search while all of them leave');
wait_until(sub { status($node, 'datasets') == 0 }, 'and they are gone');
memory_is_told('with their memory');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET geonn.kept_memory_limit; SELECT pg_reload_conf()');

# ---- descriptors ----

# the next engine has the supervisor's limits
my $engine = status($node, 'engine_pid');
my $supervisor = status($node, 'supervisor_pid');
system('prlimit', '--pid', $supervisor, '--nofile=512') == 0 or die "prlimit: $?";
kill('KILL', $engine);
wait_until(sub { is_gone($engine) && status($node, 'state') eq 'running' }, 'an engine that may have few descriptors');
$engine = status($node, 'engine_pid');

my ($status, undef, $error) = $node->psql('postgres', q{SET ROLE attacker; CALL search_sets(600, 1000, 'text')});
is("$status $error", '0 ', 'sets with files are searched, more than there are descriptors');
cmp_ok(status($node, 'datasets_kept'), '>', 20, 'some of them are kept');
cmp_ok(scalar(my @files = glob("/proc/$engine/fd/*")), '<', 256, 'with a part of the descriptors');
foreach my $type ('bigint', 'text')
{
	($status, undef, $error) = $node->psql('postgres', "SET ROLE victim; CALL search_sets(3, 1500, '$type')");
	is("$status $error", '0 ', "and others find what they need, with ids of type $type");
}
is(status($node, 'engine_pid'), $engine, 'the engine is still the same');
$node->stop;

done_testing();
