
# A base may have ids of any type whose equal values have the same bytes: whatever changes the table, a few points have
# the rows of the definition in SQL, equally distant ones in the order of their ids, with ties or without.  Two sessions ask, one of which takes
# the base that the other one has made.  Other types are left to the engine.
#
# short form: 15 of 400 random steps for each type
# rooms: live pages

use strict;
use warnings;

use Geonn;
use Test::More;

my $steps = $ENV{GEONN_LIVE_STEPS} // ($ENV{GEONN_LONG} ? 400 : 15);
my $seed = $ENV{GEONN_LIVE_SEED} // int(rand(1_000_000));
my $rows = 1000;
my $node = new_server('live_ids', preload => 1, initdb => [ '--encoding=UTF8', '--locale=C' ], conf => "autovacuum = off\njit = off\nmax_parallel_workers_per_gather = 0");
# databases whose encoding says nothing of characters have no collations of ICU
my $has_icu = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_collation WHERE collname = 'und-x-icu' AND getdatabaseencoding() <> 'SQL_ASCII'});

srand($seed);
note "seed $seed: GEONN_LIVE_SEED=$seed GEONN_LIVE_STEPS=$steps repeats this";
$node->safe_psql('postgres', q{CREATE DOMAIN code AS text CHECK (value <> ''); });
$node->safe_psql('postgres', q{CREATE COLLATION fold (provider = icu, locale = 'und-u-ks-level2', deterministic = false)}) if $has_icu;

# the type of ids, and the id of row :n
my %by_base = (
	'text' => q{'Id ' || md5(:n::text)},
	'text COLLATE "C"' => q{upper(left(md5(:n::text), :n % 7)) || md5(:n::text)},
	'code' => q{repeat(md5(:n::text), 90)},
	'varchar(5000)' => q{(SELECT string_agg(md5((:n + i)::text), '') FROM generate_series(1, 60 + :n % 20) i)},
	'uuid' => q{md5(:n::text)::uuid},
	'name' => q{md5(:n::text)::name},
	'oid' => q{(4000000000 - :n)::oid},
	'timestamptz' => q{'2020-01-01'::timestamptz - :n * interval '1 s'},
	'bytea' => q{decode(md5(:n::text), 'hex')});
my %by_engine = (
	'numeric' => q{:n / 7.0},
	'char(40)' => q{md5(:n::text)},
	'float8' => q{:n / 7.0::float8});

$by_base{'text COLLATE "und-x-icu"'} = q{'Id ' || md5(:n::text)} if $has_icu;
$by_engine{'text COLLATE fold'} = q{'Id ' || md5(:n::text)} if $has_icu;

# a table of 30 places, so that many rows are equally distant
sub create_table
{
	my ($type, $id) = @_;
	my $base_type = $type =~ s/ COLLATE.*//r;
	# long ids are out of line
	my $storage = $base_type =~ /^varchar/ ? 'ALTER TABLE ref ALTER id SET STORAGE EXTERNAL;' : '';

	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS ref;
		DROP FUNCTION IF EXISTS differences(), new_id(integer);
		CREATE TABLE ref (number integer, id $type PRIMARY KEY, lat float8, lon float8, note text) WITH (fillfactor = 80);
		$storage
		CREATE FUNCTION new_id(n integer) RETURNS $base_type STABLE LANGUAGE sql AS \$\$ SELECT (@{[ $id =~ s/:n\b/n/gr ]})::$base_type \$\$;
		INSERT INTO ref SELECT i, new_id(i), i % 5 * 30 - 60, i % 6 * 60 - 180, repeat('x', 100) FROM generate_series(1, $rows) i;
		CREATE FUNCTION differences() RETURNS bigint LANGUAGE sql STABLE AS \$\$
			WITH p AS MATERIALIZED (SELECT ord, floor(random() * 13) * 15 - 90 AS lat, floor(random() * 13) * 30 - 180 AS lon FROM generate_series(1, 6) ord),
				a AS MATERIALIZED (SELECT array_agg(lat ORDER BY ord) AS lat, array_agg(lon ORDER BY ord) AS lon, 1 + (random() * 40)::integer AS k,
					(ARRAY['first', 'all'])[(1 + random())::integer] AS ties FROM p)
			SELECT count(*) FROM a, p, LATERAL (
				SELECT array_agg(ref_id::text COLLATE "C" || ' ' || distance ORDER BY rank) AS found FROM geonn_nearest_points((SELECT lat FROM a), (SELECT lon FROM a), 'ref',
					(SELECT k FROM a), ties => (SELECT ties FROM a), row_type => NULL::record) AS (ord bigint, ref_id $base_type, distance float8, rank bigint) WHERE ord = p.ord) n,
				LATERAL (SELECT array_agg(id::text COLLATE "C" || ' ' || distance ORDER BY distance, r.id) AS expected FROM (
					SELECT id, geonn_distance(p.lat, p.lon, r.lat, r.lon) AS distance FROM ref r WHERE r.lat IS NOT NULL
					ORDER BY 2, CASE WHEN (SELECT ties FROM a) = 'first' THEN id END FETCH FIRST (SELECT k FROM a) ROWS WITH TIES) r) e
			WHERE found IS DISTINCT FROM expected \$\$;
	});
}

# Does a base answer this session's calls?
sub has_base
{
	my ($session, $type) = @_;
	my $base_type = $type =~ s/ COLLATE.*//r;

	return $session->query_safe(qq{EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM geonn_nearest_points('{1}', '{1}', 'ref',
		row_type => NULL::record) AS (ref_id $base_type);}) =~ /Pages Read/ ? 1 : 0;
}

sub random_change
{
	my $number = 1 + int(rand($rows));

	return (
		"UPDATE ref SET lat = " . (int(rand(5)) * 30 - 60) . " WHERE number = $number",
		"UPDATE ref SET lat = " . (int(rand(5)) * 30 - 60) . " WHERE number % 100 = $number % 100",
		"UPDATE ref SET lat = NULL WHERE number = $number",
		"UPDATE ref SET id = new_id(number + $rows), number = number + $rows WHERE number = $number",
		"DELETE FROM ref WHERE number = $number",
		"DELETE FROM ref WHERE number > $rows",
		"INSERT INTO ref VALUES ($number, new_id($number), 0, 0) ON CONFLICT DO NOTHING",
		"UPDATE ref SET note = repeat('n', " . int(rand(3000)) . ") WHERE number = $number")[rand 8];
}

# How many points of so many random steps are wrong.
sub random_steps
{
	my ($count, @sessions) = @_;
	my $wrong = 0;
	my $is_open = 0;

	foreach my $step (1 .. $count)
	{
		my $choice = rand;

		if ($choice < 0.3)
		{
			$sessions[0]->query_safe($is_open ? ($choice < 0.2 ? 'COMMIT' : 'ROLLBACK') : 'BEGIN');
			$is_open = !$is_open;
		}
		$sessions[$is_open ? 0 : int(rand(2))]->query_safe(random_change()) for 1 .. rand 4;
		$node->safe_psql('postgres', 'VACUUM ref') if rand() < 0.1;
		foreach my $number (0, 1)
		{
			my $found = $sessions[$number]->query_safe('SELECT differences()');

			$wrong += $found;
			diag("seed $seed, step $step, session $number: $found points are wrong") if $found;
		}
	}
	$sessions[0]->query_safe('COMMIT') if $is_open;
	return $wrong;
}

foreach my $type (sort keys %by_base)
{
	create_table($type, $by_base{$type});
	my @sessions = map { $node->background_psql('postgres', on_error_die => 1) } 0, 1;

	is(has_base($sessions[0], $type), 0, "$type: the first call goes to the engine");
	is(has_base($sessions[$_], $type), 1, "$type: a base answers session $_") foreach 1, 0;
	is(random_steps($steps, @sessions), 0, "$type: the rows are those of the definition");
	is(has_base($sessions[0], $type), 1, "$type: by a base");
	$_->quit foreach @sessions;
}

foreach my $type (sort keys %by_engine)
{
	create_table($type, $by_engine{$type});
	my $session = $node->background_psql('postgres', on_error_die => 1);

	is(join(' ', map { has_base($session, $type) } 1 .. 3), '0 0 0', "$type: the engine answers");
	is($session->query_safe('SELECT differences()'), 0, "$type: the rows are those of the definition");
	$session->quit;
}
$node->stop;
done_testing();
