
# The documentation's "Errors by symptom": what a statement says in these cases begins an entry
# there, and what the entry says to do mends it.
# rooms: base client doc

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('symptoms');
my ($entries) = Geonn::documentation() =~ /^## Errors by symptom\n(.*?)(?=^##? |\z)/ms;
$entries =~ s/\s+/ /g;
# the bold beginnings of entries; a single word of theirs is no symptom
my @symptoms = grep { / / } map { /`([^`]+)`/g } $entries =~ /\*\*(.+?)\*\*/g;

$node->safe_psql('postgres', q{
	CREATE SCHEMA "My";
	CREATE TABLE "My"."GPS Pings" AS TABLE few_obs;
	CREATE TABLE no_id AS SELECT lat, lon FROM few_obs;
	CREATE TABLE text_id AS SELECT id::text, lat, lon FROM few_obs;
	CREATE TABLE kind_obs AS SELECT *, 'a' AS kind FROM few_obs;
	CREATE TABLE kind_ref AS SELECT *, 'a' AS kind FROM few_ref;
	CREATE TABLE sort_ref AS SELECT *, 'a' AS sort FROM few_ref;
});

# what is wrong, what mends it: from tables, or from what the statement's error has as
# its HINT
my @cases = (
	[ q{SELECT * FROM geonn_nearest('My.GPS Pings', 'few_ref')}, q{SELECT * FROM geonn_nearest('"My"."GPS Pings"', 'few_ref')} ],
	[ q{SELECT * FROM geonn_nearest('"My.GPS Pings"', 'few_ref')}, q{SELECT * FROM geonn_nearest('"My"."GPS Pings"', 'few_ref')} ],
	[ q{SELECT * FROM geonn_nearest('My.Pings', 'few_ref')}, q{SELECT * FROM geonn_nearest('"My"."GPS Pings"', 'few_ref')} ],
	[ q{SELECT * FROM geonn_nearest('SELECT * FROM few_obs', 'few_ref')},
		q{SELECT * FROM geonn_nearest_sql('SELECT * FROM few_obs', 'TABLE few_ref')} ],
	[ q{SELECT * FROM geonn_nearest_sql('few_obs', 'TABLE few_ref')}, q{SELECT * FROM geonn_nearest_sql('TABLE few_obs', 'TABLE few_ref')} ],
	[ q{SELECT * FROM geonn_nearest('few_obs', 'few_ref', max_dist => 1e7)},
		q{SELECT * FROM geonn_nearest('few_obs', 'few_ref', max_distance => 1e7)} ],
	[ q{SELECT * FROM geonn_within('few_obs', 'few_ref')}, q{SELECT * FROM geonn_within('few_obs', 'few_ref', radius => 1e6)} ],
	[ q{SELECT * FROM geonn_nearest('kind_obs', 'kind_ref', by => 'kind')},
		q{SELECT * FROM geonn_nearest('kind_obs', 'kind_ref', by => '{kind}')} ],
	[ q{SELECT * FROM geonn_nearest('kind_obs', 'sort_ref', by => '{kind}')},
		sub { $_[0] =~ /as in ('\{kind=)my_column(\}')/ ? "SELECT * FROM geonn_nearest('kind_obs', 'sort_ref', by => $1sort$2)" : undef } ],
	[ q{SET search_path = pg_catalog; SELECT * FROM geonn_nearest('public.few_obs', 'public.few_ref')},
		q{SET search_path = pg_catalog; SELECT * FROM public.geonn_nearest('public.few_obs', 'public.few_ref')} ],
	[ q{SELECT * FROM geonn_nearest_points(52.5, 13.4, 'few_ref')}, q{SELECT * FROM geonn_nearest_points(ARRAY[52.5], ARRAY[13.4], 'few_ref')} ],
	[ q{WITH some AS (SELECT * FROM few_obs) SELECT * FROM geonn_nearest('some', 'few_ref')},
		q{SELECT * FROM geonn_nearest_sql('SELECT * FROM few_obs', 'TABLE few_ref')} ],
	[ q{PREPARE of_one(int) AS SELECT * FROM geonn_nearest_sql('SELECT * FROM few_obs WHERE id = $1', 'TABLE few_ref'); EXECUTE of_one(1)},
		q{PREPARE of_one(int) AS SELECT * FROM geonn_nearest_sql(format('SELECT * FROM few_obs WHERE id = %L', $1), 'TABLE few_ref'); EXECUTE of_one(1)} ],
	[ q{SELECT obs_id, ref_id, rank FROM geonn_nearest('few_obs', 'few_ref')},
		q{SELECT obs_id, ref_id, rank FROM geonn_nearest('few_obs', 'few_ref', row_type => NULL::record) AS n(obs_id bigint, ref_id bigint, rank integer)} ],
	[ q{SELECT * FROM geonn_nearest('few_obs', 'few_ref', row_type => NULL::record)},
		q{SELECT * FROM geonn_nearest('few_obs', 'few_ref', row_type => NULL::record) AS n (obs_id bigint, ref_id bigint, distance float8)} ],
	[ q{SELECT * FROM geonn_nearest('few_obs', 'few_ref') AS n (obs_id bigint, ref_id bigint, distance float8)},
		q{SELECT * FROM geonn_nearest('few_obs', 'few_ref')} ],
	[ q{CREATE ROLE ordinary; GRANT SELECT ON few_obs, few_ref TO ordinary; SET ROLE ordinary; SELECT geonn_cache_create('mine', 'few_obs', 'few_ref')},
		q{GRANT CREATE ON SCHEMA public TO ordinary; SET ROLE ordinary; SELECT geonn_cache_create('mine', 'few_obs', 'few_ref'), 2, 3} ],
	[ q{SELECT * FROM geonn_nearest('no_id', 'few_ref')},
		sub { $_[0] =~ /add one: (.*;)/ ? "$1 SELECT * FROM geonn_nearest('no_id', 'few_ref')" : undef } ],
	[ q{SELECT * FROM geonn_nearest('text_id', 'few_ref')},
		sub { $_[0] =~ /write (AS t\(.*?\)) behind/ ? "SELECT * FROM geonn_nearest('text_id', 'few_ref', row_type => NULL::record) $1" : undef } ],
	[ q{SELECT * FROM geonn_nearest('text_id', 'few_ref')},
		sub { $_[0] =~ /(CREATE TYPE .*?;)/ ? "$1 SELECT * FROM geonn_nearest('text_id', 'few_ref', row_type => NULL::my_pair)" : undef } ],
	[ q{SELECT * FROM geonn_nearest('text_id', 'text_id')},
		sub { $_[0] =~ /(row_type => \S+)\./ ? "SELECT * FROM geonn_nearest('text_id', 'text_id', $1)" : undef } ],
	[ q{SELECT geonn_cache_create('kept', 'few_obs', 'few_ref'); DROP EXTENSION geonn},
		q{SELECT geonn_cache_drop(name) FROM geonn_caches; DROP EXTENSION geonn; CREATE EXTENSION geonn; SELECT 1, 2, 3} ],
);

foreach my $case (@cases)
{
	my ($wrong, $right) = @$case;
	my ($status, $out, $error) = $node->psql('postgres', $wrong);
	my ($said) = $error =~ /ERROR:  (.*)/;

	isnt($status, 0, "fails: $wrong");
	ok((grep { my $symptom = join('.*', map { quotemeta } split /…/, $_); $said =~ /$symptom/ } @symptoms), 'the documentation has it')
	  or diag($error);
	$right = $right->($error =~ /^HINT:  (.*)/m) if ref $right;
	($status, $out, $error) = $node->psql('postgres', $right // 'no statement in the HINT');
	is($status, 0, "and works so: " . ($right // '')) or diag($error);
	like($out, qr/^[^|\n]+\|[^|\n]+\|[^|\n]+$/m, 'with rows');
}

done_testing();
