
# Parallel workers that read references end with their statement, when it is cancelled at
# any moment, and the statement fails when one of them is ended; then others can be launched,
# and data be changed.
# rooms: points
# check-all: large tables

use strict;
use warnings;

use Geonn;
use Test::More;

my $seed = $ENV{SEED} // int(rand(1e9));
my $node = new_server('parallel_references', preload => 1,
	conf => "autovacuum = off\nmax_parallel_workers_per_gather = 2\nmin_parallel_table_scan_size = 0");

srand($seed);
$node->safe_psql(
	'postgres', q{
	CREATE UNLOGGED TABLE many_ref AS SELECT i AS id, (i * 7919::bigint % 1800) / 10.0::float8 - 90 AS lat, (i * 10473::bigint % 3600) / 10.0::float8 - 180 AS lon
	FROM generate_series(1, 1000000) i;
});

my $join = "SELECT count(*), sum(ref_id) AS ref_id, sum(distance) AS distance FROM geonn_nearest('few_obs', 'many_ref', k => 5)";
my $expected = $node->safe_psql('postgres', "SET max_parallel_workers_per_gather = 0; $join");

like($node->safe_psql('postgres', "EXPLAIN (ANALYZE) $join"), qr/Reference Workers: 2/, 'workers read the references');
is($node->safe_psql('postgres', $join), $expected, 'the rows are those of one reader');

# a reading that begins in the middle of the table, where another session's scan is
my $scan = $node->background_psql('postgres');
my $begin = 0;
for (my $tries = 0; $tries < 20 && $begin == 0; $tries++)
{
	$scan->query_safe('BEGIN; DECLARE scan CURSOR FOR SELECT id FROM many_ref; MOVE 500000 FROM scan; COMMIT');
	$begin = $node->safe_psql('postgres', 'SELECT split_part(trim(ctid::text, $$()$$), $$,$$, 1) FROM many_ref LIMIT 1');
	is($node->safe_psql('postgres', $join), $expected, "begun at page $begin: the rows are the same");
}
cmp_ok($begin, '>', 0, 'one began in the middle');
$scan->quit;

# the observations' workers find room, though as many have just read the references
my $both = "SELECT count(*) FROM geonn_nearest('many_ref', 'many_ref')";
like($node->safe_psql('postgres', "SET max_parallel_workers = 2; EXPLAIN (ANALYZE) $both"),
	qr/Workers Launched: 2.*Reference Workers: 2/s, 'workers of the references have ended when others are launched');

sub no_worker_left
{
	wait_until(
		sub { $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'") eq '0' },
		'no worker is left');
}

# one session, so that what a cancelled statement leaves behind would be found by the next
my $cancelled = 0;
my $answers = 0;
my $wrong = 0;
my $sql = join('', map { sprintf("SET statement_timeout = %d;\n%s;\n", 2 + rand(300), $join) } (1 .. 60));
my (undef, $out, $error) = $node->psql('postgres', "$sql\nSET statement_timeout = 0;\n$join;", on_error_stop => 0);

foreach my $line (split /\n/, $out)
{
	$answers++;
	$wrong++ if $line ne $expected;
}
$cancelled++ while $error =~ /canceling statement due to statement timeout/g;
note("seed $seed: $cancelled of 60 statements were cancelled");
is($wrong, 0, "cancelled at any moment, seed $seed: no wrong answer");
cmp_ok($cancelled, '>', 0, 'some statements were cancelled');
# a timeout can also end the SET after it
cmp_ok($cancelled + $answers, '>=', 61, 'all others were answered');
no_worker_left();
wait_until(sub { status($node, 'sessions') == 0 }, 'no session of the engine is left');

# tables that the engine can keep, with a row that is not valid, one since scans may begin anywhere: the error and
# the warning are those of one reader
foreach my $invalid ('error', 'skip')
{
	my @told;

	foreach my $workers (0, 2)
	{
		my $ask = "SELECT count(*), sum(ref_id), sum(distance) FROM geonn_nearest('few_obs', 'some_invalid', invalid => '$invalid');";

		$node->safe_psql(
			'postgres', q{
			DROP TABLE IF EXISTS some_invalid;
			CREATE TABLE some_invalid AS SELECT id, CASE WHEN id = 7 THEN 91 ELSE lat END AS lat, lon FROM many_ref});
		$node->safe_psql('postgres', 'VACUUM some_invalid');
		push @told, map { join("\n", $node->psql('postgres', "SET max_parallel_workers_per_gather = $workers; $_")) }
			("BEGIN ISOLATION LEVEL SERIALIZABLE; $ask COMMIT", $ask);
	}
	like($told[0], qr/some_invalid/, "invalid => '$invalid': what is not valid is told");
	is(scalar(grep { $_ ne $told[0] } @told), 0, 'in the same way by workers, and of references that the engine keeps')
		or diag(join("\n--\n", @told));
}

# a type that is passed by value; PostgreSQL forbids what its functions do while workers read
$node->safe_psql(
	'postgres', q{
	CREATE SEQUENCE calls;
	CREATE TYPE unsafe;
	CREATE FUNCTION unsafe_in(cstring) RETURNS unsafe LANGUAGE internal IMMUTABLE STRICT AS 'int8in';
	CREATE FUNCTION unsafe_out(unsafe) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int8out';
	CREATE TYPE unsafe (INPUT = unsafe_in, OUTPUT = unsafe_out, LIKE = int8);
	CREATE CAST (unsafe AS int8) WITHOUT FUNCTION;
	CREATE CAST (int8 AS unsafe) WITHOUT FUNCTION;
	CREATE FUNCTION unsafe_cmp(a unsafe, b unsafe) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
	BEGIN
		PERFORM nextval('calls');
		RETURN btint8cmp(a::int8, b::int8);
	END $$;
	CREATE FUNCTION unsafe_hash(a unsafe) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
	BEGIN
		PERFORM nextval('calls');
		RETURN hashint8(a::int8);
	END $$;
	CREATE FUNCTION unsafe_lt(a unsafe, b unsafe) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT unsafe_cmp(a, b) < 0';
	CREATE FUNCTION unsafe_le(a unsafe, b unsafe) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT unsafe_cmp(a, b) <= 0';
	CREATE FUNCTION unsafe_eq(a unsafe, b unsafe) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT unsafe_cmp(a, b) = 0';
	CREATE FUNCTION unsafe_ge(a unsafe, b unsafe) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT unsafe_cmp(a, b) >= 0';
	CREATE FUNCTION unsafe_gt(a unsafe, b unsafe) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT unsafe_cmp(a, b) > 0';
	CREATE OPERATOR < (LEFTARG = unsafe, RIGHTARG = unsafe, FUNCTION = unsafe_lt);
	CREATE OPERATOR <= (LEFTARG = unsafe, RIGHTARG = unsafe, FUNCTION = unsafe_le);
	CREATE OPERATOR = (LEFTARG = unsafe, RIGHTARG = unsafe, FUNCTION = unsafe_eq, HASHES);
	CREATE OPERATOR >= (LEFTARG = unsafe, RIGHTARG = unsafe, FUNCTION = unsafe_ge);
	CREATE OPERATOR > (LEFTARG = unsafe, RIGHTARG = unsafe, FUNCTION = unsafe_gt);
	CREATE OPERATOR CLASS unsafe_ops DEFAULT FOR TYPE unsafe USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
		OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 unsafe_cmp(unsafe, unsafe);
	CREATE OPERATOR CLASS unsafe_hash_ops DEFAULT FOR TYPE unsafe USING hash AS OPERATOR 1 =, FUNCTION 1 unsafe_hash(unsafe);
	CREATE TABLE unsafe_ref AS SELECT id::bigint::unsafe AS id, (id % 3)::bigint::unsafe AS kind, lat, lon FROM many_ref WHERE id <= 20000;
	CREATE TABLE safe_ref AS SELECT id, lat, lon FROM many_ref WHERE id <= 20000;
	CREATE TABLE unsafe_obs AS SELECT * FROM unsafe_ref WHERE id::bigint <= 1000;
	CREATE TYPE unsafe_pair AS (obs_id unsafe, ref_id unsafe, distance float8);
});
foreach my $type ('safe', 'unsafe')
{
	my $plan = $node->safe_psql('postgres', "EXPLAIN (ANALYZE) SELECT count(*) FROM geonn_nearest('few_obs', '${type}_ref', row_type => NULL::record) n(distance float8)");

	is($plan =~ /Reference Workers: 2/ ? 'safe' : 'unsafe', $type, "$type functions: workers read only for the safe ones");
}
foreach my $by ('', ", by => '{kind}'")
{
	my $ask = "SELECT count(*), sum(ref_id::bigint), sum(distance) FROM geonn_nearest('unsafe_obs', 'unsafe_ref', exclude_self => true, row_type => NULL::unsafe_pair$by)";

	is($node->safe_psql('postgres', "SET work_mem = '64kB'; $ask"), $node->safe_psql('postgres', "SET max_parallel_workers_per_gather = 0; $ask"),
		"a type's functions may be parallel unsafe" . ($by && ', those of groups, too'));
}

# the same, where the statement itself goes on after it was cancelled
$node->safe_psql(
	'postgres', qq{
	CREATE TABLE caught (id int);
	CREATE FUNCTION catching() RETURNS text LANGUAGE plpgsql AS \$\$
	DECLARE
		found record;
	BEGIN
		BEGIN
			$join INTO found;
		EXCEPTION WHEN query_canceled THEN
			INSERT INTO caught VALUES (1);
		END;
		$join INTO found;
		RETURN concat_ws('|', found.count, found.ref_id, found.distance);
	END \$\$;
});
$sql = join('', map { sprintf("SET statement_timeout = %d;\nSELECT catching();\n", 2 + rand(150)) } (1 .. 40));
(undef, $out, $error) = $node->psql('postgres', $sql, on_error_stop => 0);
is(scalar(grep { $_ ne $expected } split /\n/, $out), 0, "cancelled and caught, seed $seed: no wrong answer");
unlike($error, qr/parallel/, 'what follows may change data');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM caught'), '>', 0, 'some were cancelled and caught');
no_worker_left();

# ended by an administrator: the reader goes on until one of its workers is
my $reader = start_sql($node, "$join;\n" x 200);
my $ended = 0;
for (my $tries = 0; $tries < 2000 && !$ended; $tries++)
{
	$ended = $node->safe_psql('postgres',
		"SELECT count(*) FROM (SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity WHERE backend_type = 'parallel worker' LIMIT 1) e WHERE ended");
}
(undef, $out, $error) = finish_sql($reader);
is($ended, 1, 'a worker was ended');
like($error, qr/terminating .* due to administrator command/, 'the statement says so');
is(scalar(grep { $_ ne $expected } split /\n/, $out), 0, 'statements before gave the right rows');
no_worker_left();
is($node->safe_psql('postgres', $join), $expected, 'and so does the next one');

done_testing();
