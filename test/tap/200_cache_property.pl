
# A table that is refreshed by what has changed is what a search for everything
# returns, to the byte: at each of many steps, in which points come, move, go, change
# their groups, their windows, radiuses and weights, become invalid, are stored in another order and are left alone, for caches
# that ask all kinds of questions, and update or replace their tables, with ids of many types:
# arrays, composites, domains over these, and such as are equal and have other bytes.
#
# short form: 40 of 200 steps
# rooms: cache

use strict;
use warnings;

use Geonn;
use Test::More;

my $steps = $ENV{GEONN_CACHE_STEPS} // ($ENV{GEONN_LONG} ? 200 : 40);
my $seed = $ENV{GEONN_CACHE_SEED} // int(rand(1_000_000));

# the arguments of each cache, as a call of the search has them
my %call = (
	nearest => q{geonn_nearest('obs', 'ref'},
	five => q{geonn_nearest('obs', 'ref', k => 5},
	tied => q{geonn_nearest('obs', 'ref', ties => 'all'},
	five_tied => q{geonn_nearest('obs', 'ref', k => 5, ties => 'all', max_distance => 3e6},
	kept => q{geonn_nearest('obs', 'ref', k => 5, max_distance => 1e6, keep_unmatched => true},
	near => q{geonn_within('obs', 'ref', radius => 1.2e6},
	near_kept => q{geonn_within('obs', 'ref', radius => 5e5, keep_unmatched => true, by => '{zone}'},
	zoned => q{geonn_nearest('obs', 'ref', k => 2, by => '{zone}'},
	zoned_kept => q{geonn_nearest('obs', 'ref', by => '{zone}', keep_unmatched => true, ties => 'all'},
	spheroid => q{geonn_nearest('obs', 'ref', metric => 'spheroid'},
	spheroid_zoned => q{geonn_nearest('obs', 'ref', k => 5, metric => 'spheroid', by => '{zone}'},
	others => q{geonn_nearest('obs', 'obs', k => 2, exclude_self => true},
	listed => q{geonn_nearest('obs_listed', 'ref_listed', k => 3, keep_unmatched => true},
	paired => q{geonn_nearest('obs_paired', 'ref_paired', k => 2, by => '{zone}'},
	paired_domain => q{geonn_within('obs_paired_domain', 'ref', radius => 8e5},
	ranges => q{geonn_nearest('obs_range', 'ref_range', k => 2},
	alike => q{geonn_nearest('obs_alike', 'ref_alike', k => 3},
	alike_tied => q{geonn_nearest('obs_alike', 'ref_alike', ties => 'all', keep_unmatched => true},
	alike_pairs => q{geonn_nearest('obs_alike_pair', 'ref_alike_pair', k => 2, by => '{price}'},
	seen => q{geonn_nearest('obs', 'ref', overlaps => '{seen}'},
	seen_kept => q{geonn_nearest('obs', 'ref', k => 3, overlaps => '{seen}', by => '{zone}', keep_unmatched => true},
	moments => q{geonn_nearest('obs_moment', 'ref', k => 2, overlaps => '{seen}', ties => 'all'},
	reached => q{geonn_nearest('obs', 'ref', k => 3, options => '{"obs_radius": "metres", "ref_radius": "metres"}'},
	reached_within => q{geonn_within('obs', 'ref', radius => 'Infinity', overlaps => '{seen}', options => '{"obs_radius": "metres"}'},
	delivered => q{geonn_within('obs', 'ref', radius => 2e6, metric => 'spheroid', keep_unmatched => true, options => '{"ref_radius": "metres"}'},
	counted => q{geonn_within_count('obs', 'ref', radii => '{2e6, 5e5}', weights => '{size, id}'},
	counted_others => q{geonn_within_count('obs', 'obs', radii => '{0, 3e6}', weights => '{size}', exclude_self => true},
	counted_zones => q{geonn_within_count('obs', 'ref', radii => '{1e6}', by => '{zone}'},
	counted_rivals => q{geonn_within_count('obs', 'ref', radii => '{4e6}', weights => '{size}', differs => '{zone}', metric => 'spheroid'},
	counted_reached => q{geonn_within_count('obs', 'ref', radii => '{Infinity, 1e6}', weights => '{size}', overlaps => '{seen}', options => '{"obs_radius": "metres", "ref_radius": "metres"}'},
	counted_named => q{geonn_within_count('obs_named', 'ref', radii => '{1e6, 3e6}', weights => '{size}'},
	named => q{geonn_nearest('obs_named', 'ref_named', k => 3, by => '{zone}', keep_unmatched => true},
);

# geonn_cache_create takes a radius by its name, and the rest like both
sub create_sql
{
	my ($name) = @_;
	my ($arguments) = $call{$name} =~ /\((.*)/;

	return "SELECT geonn_cache_create('$name', $arguments, replace => '" . pick(qw(auto auto never always)) . "');\n";
}

# a point: often on a coarse grid, so that ties and points at the same coordinates occur; sometimes
# at an edge of the map
my $place = q{CASE WHEN random() < 0.4
		THEN round((random() * 16 - 8)::numeric) * 10 ELSE random() * 180 - 90 END,
	CASE WHEN random() < 0.4 THEN round((random() * 36 - 18)::numeric) * 10
		WHEN random() < 0.1 THEN 180 ELSE random() * 360 - 180 END};
my $zone = q{(ARRAY['north', 'south', 'east', NULL])[1 + floor(random() * 4)::int]};

my @changes = (
	# references
	"UPDATE ref SET (lat, lon) = (SELECT $place WHERE ref.id IS NOT NULL) WHERE random() < 0.02",
	"UPDATE ref SET (lat, lon) = (SELECT $place WHERE ref.id IS NOT NULL) WHERE random() < 0.02",
	"UPDATE ref SET lat = lat + 0.0001 WHERE random() < 0.05",
	"UPDATE ref SET (lat, lon) = (SELECT $place WHERE ref.id IS NOT NULL) WHERE random() < 0.4",
	"INSERT INTO ref SELECT nextval('ids'), $place, $zone, random_window(), random_radius(), random_size() FROM generate_series(1, 3)",
	"DELETE FROM ref WHERE random() < 0.02",
	"UPDATE ref SET zone = $zone WHERE random() < 0.02",
	"UPDATE ref SET seen = random_window() WHERE random() < 0.02",
	"UPDATE ref SET metres = random_radius() WHERE random() < 0.02",
	"UPDATE ref SET size = random_size() WHERE random() < 0.02",
	"UPDATE ref SET size = random_size() WHERE random() < 0.3",
	"UPDATE ref SET lat = NULL WHERE random() < 0.01",
	"UPDATE ref SET lat = 'NaN' WHERE random() < 0.01",
	"UPDATE ref SET id = nextval('ids') WHERE random() < 0.02",
	# observations
	"UPDATE obs SET (lat, lon) = (SELECT $place WHERE obs.id IS NOT NULL) WHERE random() < 0.02",
	"UPDATE obs SET (lat, lon) = (SELECT $place WHERE obs.id IS NOT NULL) WHERE random() < 0.3",
	"INSERT INTO obs SELECT nextval('ids'), $place, $zone, random_window(), random_radius(), random_size() FROM generate_series(1, 20)",
	"DELETE FROM obs WHERE random() < 0.02",
	"UPDATE obs SET zone = $zone WHERE random() < 0.02",
	"UPDATE obs SET seen = random_window() WHERE random() < 0.02",
	"UPDATE obs SET metres = random_radius() WHERE random() < 0.02",
	"UPDATE obs SET size = random_size() WHERE random() < 0.02",
	"UPDATE obs SET lon = 999 WHERE random() < 0.01",
	"UPDATE obs SET lat = NULL WHERE random() < 0.01",
	"UPDATE obs SET id = nextval('ids') WHERE random() < 0.02",
	"UPDATE obs SET lat = 0, lon = 0 WHERE random() < 0.05",
	# nothing new
	"UPDATE obs SET lat = lat WHERE random() < 0.1",
	"UPDATE ref SET lat = lat",
	"VACUUM obs",
	"VACUUM ref",
	"SELECT 1",
	# another session changes a table
	"UPDATE five SET distance = distance + 1 WHERE random() < 0.01",
	"DELETE FROM kept WHERE random() < 0.01",
	"UPDATE counted SET sums = NULL, count = count + 1 WHERE random() < 0.01",
	"TRUNCATE nearest");

# rarely
my @upheavals = (
	"DELETE FROM ref",
	"TRUNCATE obs",
	"UPDATE ref SET zone = 'north'",
	"UPDATE ref SET seen = random_window(), metres = random_radius()",
	"UPDATE obs SET seen = 'empty' WHERE random() < 0.5",
	"ALTER TABLE obs ADD COLUMN IF NOT EXISTS note text",
	# the same rows in another order
	"CREATE TEMP TABLE other AS TABLE ref; TRUNCATE ref; INSERT INTO ref SELECT * FROM other ORDER BY random(); DROP TABLE other",
	"CREATE TEMP TABLE other AS TABLE ref; TRUNCATE ref; INSERT INTO ref SELECT * FROM other ORDER BY id DESC; DROP TABLE other",
	"SELECT geonn_cache_alter('counted', '{\"radii\": [1e6, 2e6, 3e6], \"weights\": null}');
		SELECT geonn_cache_alter('counted', '{\"radii\": [2e6, 5e5], \"weights\": [\"size\", \"id\"]}')",
	"SELECT geonn_cache_alter('five', '{\"k\": 4}'); SELECT geonn_cache_alter('five', '{\"k\": 5}')",
	"SELECT geonn_cache_alter(name, jsonb_build_object('replace', (ARRAY['auto', 'never', 'always'])[1 + floor(random() * 3)::int]))
		FROM geonn_caches WHERE random() < 0.5",
	"CREATE INDEX IF NOT EXISTS by_reference ON five (ref_id)");

srand($seed);
note "seed $seed: GEONN_CACHE_SEED=$seed GEONN_CACHE_STEPS=$steps repeats this";

my $node = new_server('caches', preload => 1, conf => "autovacuum = off\nclient_min_messages = error");

my $fill = "INSERT INTO obs SELECT nextval('ids'), $place, $zone, random_window(), random_radius(), random_size() FROM generate_series(1, 1000);
	INSERT INTO ref SELECT nextval('ids'), $place, $zone, random_window(), random_radius(), random_size() FROM generate_series(1, 150);\n";

my $script = qq{
	SELECT setseed(@{[rand]});
	CREATE SEQUENCE ids;
	CREATE TABLE obs (id bigint PRIMARY KEY, lat double precision, lon double precision, zone text,
		seen int8range, metres double precision, size double precision);
	CREATE TABLE ref (LIKE obs INCLUDING ALL);
	CREATE FUNCTION random_window() RETURNS int8range VOLATILE LANGUAGE sql AS \$\$
		SELECT CASE WHEN random() < 0.05 THEN NULL WHEN random() < 0.05 THEN 'empty'
			ELSE int8range(CASE WHEN random() < 0.95 THEN low END, CASE WHEN random() < 0.95 THEN low + length END, '[]') END
		FROM (SELECT floor(random() * 100)::bigint AS low, floor(random() * 30)::bigint AS length) w
	\$\$;
	CREATE FUNCTION random_radius() RETURNS double precision VOLATILE LANGUAGE sql AS \$\$
		SELECT CASE WHEN random() < 0.1 THEN NULL WHEN random() < 0.05 THEN -1 WHEN random() < 0.05 THEN 'NaN'
			WHEN random() < 0.05 THEN 0 WHEN random() < 0.05 THEN 'Infinity' ELSE random() * 3e6 END
	\$\$;
	CREATE FUNCTION random_size() RETURNS double precision VOLATILE LANGUAGE sql AS \$\$
		SELECT CASE WHEN random() < 0.1 THEN NULL WHEN random() < 0.1 THEN 0 WHEN random() < 0.05 THEN 1e300
			WHEN random() < 0.05 THEN -1e300 ELSE round((random() * 1000 - 200)::numeric, 1) END
	\$\$;
	CREATE VIEW obs_moment AS SELECT id, lat, lon, lower(seen) AS seen FROM obs;
	CREATE VIEW obs_named AS SELECT 'observation ' || id AS id, lat, lon, zone FROM obs;
	CREATE VIEW ref_named AS SELECT md5(id::text)::uuid AS id, lat, lon, zone FROM ref;
	CREATE TYPE pair AS (a numeric, b text);
	CREATE DOMAIN pair_domain AS pair CHECK ((VALUE).a > 0);
	CREATE VIEW obs_listed AS SELECT ARRAY[id % 10, id] AS id, lat, lon FROM obs;
	CREATE VIEW ref_listed AS SELECT ARRAY['reference', id::text] AS id, lat, lon FROM ref;
	CREATE VIEW obs_paired AS SELECT ROW(id, 'x')::pair AS id, lat, lon, zone FROM obs;
	CREATE VIEW ref_paired AS SELECT ROW(id % 20, id)::pair AS id, lat, lon, zone FROM ref;
	CREATE VIEW obs_paired_domain AS SELECT ROW(id, NULL)::pair::pair_domain AS id, lat, lon FROM obs;
	CREATE VIEW obs_range AS SELECT int8range(id, 2 * id) AS id, lat, lon FROM obs;
	CREATE VIEW ref_range AS SELECT nummultirange(numrange(id, id + 1)) AS id, lat, lon FROM ref;
	-- equal ids of references with other bytes, and ids of observations that get others
	CREATE VIEW obs_alike AS SELECT round(id, length(coalesce(zone, ''))) AS id, lat, lon FROM obs;
	CREATE VIEW ref_alike AS SELECT round(id / 40, (id % 5)::integer) AS id,
		round(lat / 45) * 45 AS lat, round(lon / 60) * 60 AS lon FROM ref;
	CREATE VIEW obs_alike_pair AS SELECT ROW(o.id, 'x')::pair AS id, lat, lon, length(zone)::money AS price
	FROM (SELECT round(id, length(coalesce(zone, ''))) AS id, lat, lon, zone FROM obs) o;
	CREATE VIEW ref_alike_pair AS SELECT ROW(r.id, 'y')::pair AS id, lat, lon, length(zone)::money AS price
	FROM (SELECT round(id / 40, (id % 5)::integer) AS id, round(lat / 45) * 45 AS lat, round(lon / 60) * 60 AS lon,
		zone FROM ref) r;
	$fill
};

$script .= create_sql($_) foreach sort keys %call;
foreach my $step (1 .. $steps)
{
	$script .= pick(@changes) . ";\n" foreach 0 .. rand 2;
	$script .= pick(@upheavals) . ";\n$fill" if rand() < 0.02;
	foreach my $name (sort keys %call)
	{
		# mostly by what has changed; and some do not see each step
		my $mode = pick(qw(incremental incremental incremental auto auto full));

		next if rand() < 0.1;
		$script .= "CALL geonn_refresh('$name', '$mode');
			WITH now AS MATERIALIZED (SELECT n.*
				FROM $call{$name}, row_type => NULL::$name) n)
			SELECT 'step $step, $name, $mode: ' || count(*) || ' differences'
			FROM (SELECT obs_id, rank, t FROM $name t) t FULL JOIN now n ON t.obs_id = n.obs_id AND t.rank = n.rank
			WHERE t.t OPERATOR(pg_catalog.*<>) n HAVING count(*) > 0;\n";
	}
}
$script .= "SELECT 'done';\n";
$script .= "SELECT mode || ' ' || count(*) || coalesce(substring(reason, '; the table was \\w+'), '')
	FROM geonn_cache_log GROUP BY mode, substring(reason, '; the table was \\w+') ORDER BY 1;\n";

my ($out, $err) = ('', '');
my $status = $node->psql('postgres', "SET geonn.log_keep = 100000;\n$script",
	stdout => \$out, stderr => \$err, on_error_stop => 1);

is($status, 0, 'every statement succeeds') or diag(substr($err, 0, 2000));
my @differences = grep { /difference/ } split /\n/, $out;
is(scalar @differences, 0, "the tables of all caches are what a search returns, after each of $steps steps")
  or diag("seed $seed\n" . join("\n", @differences[0 .. ($#differences < 20 ? $#differences : 20)]));
like($out, qr/^done$/m, 'all steps were made');
note $out =~ /^done\n(.*)/ms ? $1 : '';
cmp_ok($out =~ /^incremental (\d+)/m ? $1 : 0, '>', $steps, 'many of them by what had changed');
cmp_ok($out =~ /^full (\d+); the table was replaced/m ? $1 : 0, '>', $steps / 4, 'and many by another table in their place');

done_testing();
