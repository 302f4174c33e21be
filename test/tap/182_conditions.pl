
# Conditions on a join's rows, whatever they are, leave the rows that they leave where OFFSET 0
# keeps them above the join: random conditions and joins, for observations of many types and
# shapes, by random plans.
#
# short form: 400 of 4000 queries
# rooms: plan

use strict;
use warnings;

use Geonn;
use Test::More;

my $queries = $ENV{GEONN_LONG} ? 4000 : 400;
my $seed = $ENV{GEONN_CONDITIONS_SEED} // int(rand(1_000_000));

note("seed $seed: GEONN_CONDITIONS_SEED=$seed repeats it");
srand($seed);

my $node = new_server('conditions', preload => 1, initdb => [ '--encoding=UTF8', '--locale=C' ], conf => "statement_timeout = '60s'\njit = off");

# ---- observations ----

# their query, the type of the id in rows, constants for the id
my %observations = (
	integers => [ 'SELECT CASE WHEN i % 19 = 0 THEN NULL ELSE i % 60 END AS id, lat, lon', 'bigint', 'integer' ],
	smallints => [ 'SELECT (i % 60)::smallint AS id, lat::real AS lat, lon', 'integer', 'integer' ],
	codes => [ 'SELECT (i % 60)::code AS id, lat::degrees AS lat, lon', 'integer', 'integer' ],
	numerics => [ q{SELECT CASE WHEN i % 13 = 0 THEN 'NaN' ELSE round((i % 60)::numeric, i % 3) END AS id, lat, lon::numeric AS lon}, 'numeric', 'number' ],
	floats => [ q{SELECT CASE WHEN i % 13 = 0 THEN 'NaN' WHEN i % 11 = 0 THEN '-0' ELSE (i % 60)::real END AS id, lat, lon}, 'real', 'number' ],
	texts => [ q{SELECT CASE WHEN i % 2 = 0 THEN 'A' ELSE 'a' END || i % 30 AS id, lat, lon}, 'text', 'text' ],
	caseless => [ q{SELECT (CASE WHEN i % 2 = 0 THEN 'A' ELSE 'a' END || i % 30) COLLATE caseless AS id, lat, lon}, 'text COLLATE caseless', 'text' ],
	padded => [ q{SELECT ('a' || i % 30)::char(6) AS id, lat, lon}, 'bpchar', 'text' ],
	uuids => [ 'SELECT md5((i % 60)::text)::uuid AS id, lat, lon', 'uuid', 'uuid' ]);

my $setup = q{
	CREATE DOMAIN code AS integer CHECK (VALUE >= 0);
	CREATE DOMAIN degrees AS float8;
	CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE TABLE base AS SELECT i, CASE WHEN i % 17 = 0 THEN NULL WHEN i % 23 = 0 THEN 500 ELSE (i * 7919 % 1800) / 10.0::float8 - 90 END AS lat,
		(i * 10473 % 3600) / 10.0::float8 - 180 AS lon FROM generate_series(1, 120) i;
	CREATE TABLE ref AS SELECT i % 25 AS id, (i * 10472 % 1700) / 10.0::float8 - 85 AS lat, (i * 7907 % 3600) / 10.0::float8 - 180 AS lon
		FROM generate_series(1, 60) i;
	CREATE TABLE other AS SELECT i AS integer, i::smallint AS small, i::bigint AS big, i::numeric AS number, i::float8 AS double,
		'a' || i % 30 AS text, md5(i::text)::uuid AS uuid, i % 5 AS kind FROM generate_series(0, 70) i;
	CREATE INDEX ON other (integer);
	};
my %rows;
foreach my $name (keys %observations)
{
	my ($query, $type) = @{ $observations{$name} };

	$rows{$name} = "rank integer, obs_lat float8, obs_id $type, ref_id bigint, obs_lon float8";
	$setup .= "CREATE TABLE $name AS $query FROM base; CREATE INDEX ON $name (id);\n";
}
$setup .= q{
	CREATE VIEW seen AS SELECT i % 60 AS id, lat, lon FROM base WHERE i % 4 <> 1;
	CREATE VIEW first_ones AS SELECT DISTINCT ON (i % 10) i % 10 AS id, lat, lon FROM base ORDER BY i % 10, lat NULLS LAST, i;
	CREATE VIEW barred WITH (security_barrier) AS SELECT i % 60 AS id, lat, lon FROM base WHERE i % 3 <> 1;
	CREATE TABLE parted (lon float8, id integer, lat float8) PARTITION BY LIST (id);
	CREATE TABLE part (lat float8, gone text, id integer, lon float8);
	ALTER TABLE part DROP gone;
	ALTER TABLE parted ATTACH PARTITION part FOR VALUES IN (1, 2, 3, 4, 5, 6, 7, 8, 9);
	CREATE TABLE rest PARTITION OF parted DEFAULT;
	INSERT INTO parted SELECT lon, i % 60, lat FROM base;
	CREATE TABLE grown (lat float8);
	INSERT INTO grown SELECT lat FROM base;
	ALTER TABLE grown ADD id integer DEFAULT 7, ADD lon float8 DEFAULT 5;
	INSERT INTO grown SELECT lat, i % 60, lon FROM base;
	};
foreach my $name (qw(seen first_ones barred parted grown))
{
	$observations{$name} = [ undef, 'bigint', 'integer' ];
	$rows{$name} = 'obs_id bigint, ref_id bigint, obs_lon float8, obs_lat float8, rank integer';
}
$setup .= "CREATE TYPE of_$_ AS ($rows{$_});\n" foreach keys %rows;

# the rows of a query of %s, the join, and of the same above OFFSET 0; NULL: the first is an error
$setup .= q{
	CREATE FUNCTION answer(query text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		result text;
	BEGIN
		EXECUTE format('SELECT count(*) || '' '' || coalesce(md5(string_agg(q::text, '','' ORDER BY q::text COLLATE "C")), '''') FROM (%s) q', query) INTO result;
		RETURN result;
	EXCEPTION WHEN OTHERS THEN
		RETURN NULL;
	END $$;
	ANALYZE;
	};
$node->safe_psql('postgres', $setup);

# ---- queries ----

my %columns = (integer => [qw(integer small big number double)], number => [qw(number double integer)], text => ['text'], uuid => ['uuid']);

sub constant
{
	my ($kind) = @_;
	my $i = int(rand(62));

	return pick($i, "${i}::smallint", "${i}::bigint", "$i.0", 'NULL::integer', '12345678901') if $kind eq 'integer';
	return pick($i, "$i.00", "$i.5::float8", "'NaN'", '0', 'NULL::numeric') if $kind eq 'number';
	return pick("'a" . $i % 30 . "'", "'A" . $i % 30 . "'", "'a" . $i % 30 . " '", "'a" . $i % 30 . "'::varchar", 'NULL::text') if $kind eq 'text';
	return "md5('$i')::uuid";
}

sub comparison
{
	my ($kind) = @_;
	my $column = pick(@{ $columns{$kind} });
	my ($one, $two) = (constant($kind), constant($kind));
	my $operator = pick('=', '=', '=', '<', '>', '<=', '>=', '<>');
	my $degrees = int(rand(160)) - 80;

	return pick(
		"n.obs_id $operator $one", "$one $operator n.obs_id", "n.obs_id IN ($one, $two)", "n.obs_id BETWEEN $one AND $two", "n.obs_id <> ALL (ARRAY[$one, $two])",
		'n.obs_id IS NULL', "n.obs_id IS NOT DISTINCT FROM $one", "(n.obs_id = $one) IS NOT TRUE", "(n.obs_id, n.obs_lat) > ($one, $degrees)",
		"n.obs_lat > $degrees", 'n.obs_lat IS NULL', 'coalesce(n.obs_lon, 0) = 0', "least(n.obs_lat, n.obs_lon) > $degrees", 'n.rank = 2', 'n.ref_id < 12',
		"length(n.obs_id::text) = 2", "CASE WHEN n.obs_lat > $degrees THEN n.obs_id = $one ELSE n.obs_lon > 0 END",
		"n.obs_id = (SELECT $column FROM other WHERE integer = " . int(rand(60)) . ')', "n.obs_id IN (SELECT $column FROM other WHERE kind = 2)");
}

sub condition
{
	my ($kind, $depth) = @_;

	return '(' . condition($kind, $depth + 1) . pick(' AND ', ' OR ') . condition($kind, $depth + 1) . ')' if $depth < 2 && rand() < 0.4;
	return rand() < 0.1 ? 'NOT (' . comparison($kind) . ')' : comparison($kind);
}

sub query
{
	my ($kind) = @_;
	my $column = pick(@{ $columns{$kind} });
	my $equal = "n.obs_id = o.$column";
	my $condition = condition($kind, 0);
	my $of_other = pick("o.$column = " . constant($kind), "o.$column < " . constant($kind), "o.$column IN (" . constant($kind) . ', ' . constant($kind) . ')',
		'o.kind = 3', 'o.integer < 9');

	return pick(
		("SELECT * FROM %s n WHERE $condition") x 6,
		"SELECT * FROM other o JOIN %s n ON $equal AND $condition WHERE $of_other", "SELECT * FROM other o LEFT JOIN %s n ON $equal WHERE $of_other",
		"SELECT * FROM other o LEFT JOIN %s n ON $equal AND $of_other AND $condition WHERE o.integer < 20",
		"SELECT * FROM %s n LEFT JOIN other o ON $equal AND $of_other WHERE $condition",
		"SELECT * FROM other w LEFT JOIN (other o JOIN %s n ON $equal) ON w.integer = o.integer AND $of_other WHERE w.integer < 12",
		"SELECT * FROM other w LEFT JOIN other o ON w.integer = o.integer + 1 AND $of_other LEFT JOIN %s n ON $equal WHERE w.kind = 2",
		"SELECT * FROM (SELECT * FROM other o WHERE $of_other) o FULL JOIN %s n ON $equal",
		"SELECT * FROM other o WHERE NOT EXISTS (SELECT FROM %s n WHERE $equal AND $condition) AND $of_other",
		"SELECT o.integer, (SELECT sum(n.rank) FROM %s n WHERE $equal AND $condition) FROM other o WHERE o.integer < 5",
		"SELECT * FROM %s n WHERE $condition UNION ALL SELECT * FROM %s n WHERE " . condition($kind, 0));
}

my @asked;
my $script = "SET client_min_messages = error;\n";
for (1 .. $queries)
{
	my $name = pick(sort keys %observations);
	my $kind = $observations{$name}[2];
	my $arguments = join(', ', pick('k => 2', 'max_distance => 1500000', q{ties => 'all'}), "keep_unmatched => " . pick('true', 'false'), "row_type => NULL::of_$name");
	my $call = pick("geonn_nearest('$name', 'ref', $arguments)", "geonn_nearest_sql('SELECT id, lat, lon FROM $name', 'TABLE ref', $arguments)");
	my $query = query($kind);

	$call = with_list($call, $rows{$name}) if rand() < 0.5;
	my $above = $query =~ s/%s/(SELECT * FROM $call OFFSET 0)/gr;

	$query =~ s/%s/$call/g;
	push(@asked, $query);
	$script .= 'SET enable_' . pick(qw(hashjoin mergejoin material nestloop memoize)) . ' = ' . pick('on', 'off') . ";\n";
	$script .= "SELECT a IS NULL OR a = b, a IS NULL FROM answer(\$q\$$query\$q\$) a, answer(\$q\$$above\$q\$) b;\n";
}

my $output = '';
my $ended = !eval { $node->psql('postgres', $script, stdout => \$output, on_error_stop => 1); 1 };
my @answers = split /\n/, $output;
my @wrong = grep { $answers[$_] !~ /^t/ } 0 .. $#answers;

is($ended ? $asked[ @answers ] : '', '', 'no query ends its session');
is(scalar(@answers), $queries, "all of $queries have an answer");
is(join("\n", @asked[ @wrong ]), '', 'which is that of the condition above the join');
cmp_ok(scalar(grep { $_ eq 't|t' } @answers), '<', $queries / 10, 'few are in error');

done_testing();
