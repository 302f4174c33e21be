
# Shapes that ask, of tables that change: caches with shapes on both sides are what a search returns, after each of many
# steps in which shapes come, move, go, become points, empty and NULL, and points become lines; lines among live points
# are found by sessions that have answered points alone; and a session sees of observations what SELECT shows it, by
# privileges of columns, views and row-level security.
#
# The seed is in the names of the tests; GEONN_SHAPES_SEED gives it again.
#
# needs: postgis
#
# short form: 15 of 200 steps
# rooms: cache live join points

use strict;
use warnings;

use Geonn;
use Test::More;

my $steps = $ENV{GEONN_SHAPES_STEPS} // ($ENV{GEONN_LONG} ? 200 : 15);
my $seed = $ENV{GEONN_SHAPES_SEED} // int(rand(1_000_000));

srand($seed);

# memory that has been given back has other contents, lest something that is read from there go unnoticed
$ENV{MALLOC_PERTURB_} = 165;
my $node = new_server('shapes_change', preload => 1, conf => "autovacuum = off\nclient_min_messages = error");

# Shapes, many of them with places in common; points; and what plain SQL says of the nearest: rows of an observation, a reference
# and their distance that are in one of both answers alone.
$node->safe_psql('postgres', qq{
	CREATE EXTENSION postgis;
	CREATE FUNCTION random_point() RETURNS geography VOLATILE LANGUAGE sql AS \$\$
		SELECT CASE WHEN random() < 0.5 THEN ST_MakePoint(round(random() * 8) * 45 - 180, round(random() * 4) * 40 - 80)
			ELSE ST_MakePoint(random() * 360 - 180, random() * 180 - 90) END::geography \$\$;
	CREATE FUNCTION random_shape() RETURNS geography VOLATILE LANGUAGE sql AS \$\$
		SELECT CASE WHEN r < 0.03 THEN NULL WHEN r < 0.06 THEN 'LINESTRING EMPTY'::geography WHEN r < 0.3 THEN p
			WHEN r < 0.6 THEN ST_MakeLine(p::geometry, q::geometry)::geography
			WHEN r < 0.95 THEN ST_MakePolygon(ST_MakeLine(ARRAY[p::geometry, q::geometry, s::geometry, p::geometry]))::geography
			ELSE ST_Collect(p::geometry, q::geometry)::geography END
		FROM (SELECT random() AS r, p, ST_Project(p, size, turn) AS q, ST_Project(p, size, turn + 1) AS s
			FROM (SELECT random_point() AS p, 10 ^ (3 + random() * 3.3) AS size, random() * 6 AS turn OFFSET 0) a) b \$\$;
	CREATE FUNCTION differences(obs text, ref text, k integer, self boolean) RETURNS bigint LANGUAGE plpgsql AS \$\$
		DECLARE
			differing bigint;
		BEGIN
			EXECUTE format('
				WITH found AS MATERIALIZED (SELECT obs_id::bigint, ref_id::bigint, distance FROM geonn_nearest(%1\$L, %2\$L, %3\$s, exclude_self => %4\$s)),
				expected AS MATERIALIZED (
					SELECT o.id::bigint, r.id::bigint, r.d FROM %1\$s o, LATERAL (
						SELECT id, d FROM (SELECT id, geonn_distance(o.g, g) AS d FROM %2\$s OFFSET 0) r
						WHERE d IS NOT NULL AND NOT (%4\$s AND id = o.id) ORDER BY d, id LIMIT %3\$s) r)
				SELECT count(*) FROM ((TABLE found EXCEPT ALL TABLE expected) UNION ALL (TABLE expected EXCEPT ALL TABLE found)) d', obs, ref, k, self::text)
			INTO differing;
			RETURN differing;
		END \$\$;
	SELECT setseed(@{[rand]});
	CREATE SEQUENCE ids;
	CREATE TABLE obs AS SELECT nextval('ids') AS id, i % 3 AS zone, random_shape() AS g FROM generate_series(1, 100) i;
	CREATE TABLE ref AS SELECT nextval('ids') AS id, i % 4 AS zone, round(random()::numeric * 100, 1)::float8 AS weight, random_shape() AS g FROM generate_series(1, 100) i;
	CREATE TABLE turning AS SELECT nextval('ids') AS id, random_point() AS g FROM generate_series(1, 60) i;
	CREATE TABLE turned AS SELECT nextval('ids') AS id, random_point() AS g FROM generate_series(1, 60) i;
	CREATE TABLE building AS SELECT nextval('ids') AS id, ST_Buffer(random_point(), 1e4, 2)::geography(Polygon) AS g FROM generate_series(1, 60) i;
	CREATE TABLE stop AS SELECT nextval('ids') AS id, ST_Y(p) AS lat, ST_X(p) AS lon FROM (SELECT random_point()::geometry AS p FROM generate_series(1, 60)) p;
	ALTER TABLE obs ADD PRIMARY KEY (id);
	ALTER TABLE ref ADD PRIMARY KEY (id);
	ALTER TABLE turning ADD PRIMARY KEY (id);
	ALTER TABLE turned ADD PRIMARY KEY (id);
	ALTER TABLE building ADD PRIMARY KEY (id);
	ALTER TABLE stop ADD PRIMARY KEY (id)});

# ---- caches ----

my %call = (
	nearest => q{geonn_nearest('obs', 'ref', k => 2},
	tied => q{geonn_nearest('obs', 'ref', ties => 'all', max_distance => 3e6},
	kept => q{geonn_nearest('obs', 'ref', k => 3, max_distance => 1e6, keep_unmatched => true, by => '{zone}'},
	near => q{geonn_within('obs', 'ref', radius => 1e6, differs => '{zone}'},
	others => q{geonn_nearest('ref', 'ref', k => 2, exclude_self => true},
	counted => q{geonn_within_count('obs', 'ref', radii => '{0, 1e6}', weights => '{weight}'},
	of_stops => q{geonn_nearest('obs', 'stop', k => 2},
	of_buildings => q{geonn_nearest('building', 'ref'},
	turning => q{geonn_nearest('turning', 'stop', k => 2},
	both_turn => q{geonn_nearest('turning', 'turned', k => 2});

my @changes = (
	(map { ("UPDATE $_ SET g = random_shape() WHERE random() < 0.05", "DELETE FROM $_ WHERE random() < 0.03") } 'obs', 'ref'),
	"UPDATE ref SET g = random_shape() WHERE random() < 0.4",
	"INSERT INTO obs SELECT nextval('ids'), i % 3, random_shape() FROM generate_series(1, 5) i",
	"INSERT INTO ref SELECT nextval('ids'), i % 4, i, random_shape() FROM generate_series(1, 5) i",
	"UPDATE obs SET zone = 1 - zone WHERE random() < 0.05",
	"UPDATE ref SET weight = weight + 1, zone = 1 WHERE random() < 0.05",
	"UPDATE ref SET g = random_point() WHERE random() < 0.05",
	"UPDATE turning SET g = random_shape() WHERE random() < 0.05",
	"UPDATE turning SET g = random_point()",
	"UPDATE turned SET g = random_shape() WHERE random() < 0.05",
	"UPDATE turned SET g = random_point()",
	"UPDATE stop SET lat = -lat WHERE random() < 0.05",
	"UPDATE building SET g = ST_Buffer(random_point(), 1e5, 3) WHERE random() < 0.1",
	"UPDATE obs SET id = nextval('ids') WHERE random() < 0.02",
	"UPDATE cache_nearest SET distance = distance + 1 WHERE random() < 0.02",
	"VACUUM obs, ref, turning",
	"SELECT 1");

# geonn_cache_create takes a radius by its name, and the rest like both
sub create_sql
{
	my ($name) = @_;
	my ($arguments) = $call{$name} =~ /\((.*)/;

	return "SELECT geonn_cache_create('cache_$name', $arguments, replace => '" . pick(qw(auto never always)) . "');\n";
}

my $script = join('', map { create_sql($_) } sort keys %call);
foreach my $step (1 .. $steps)
{
	$script .= pick(@changes) . ";\n" foreach 0 .. rand 3;
	foreach my $name (grep { rand() > 0.1 } sort keys %call)
	{
		my $mode = pick(qw(incremental auto auto full));

		$script .= "CALL geonn_refresh('cache_$name', '$mode');
			WITH now AS MATERIALIZED (SELECT n.* FROM $call{$name}, row_type => NULL::cache_$name) n)
			SELECT 'step $step, $name, $mode: ' || count(*) || ' differences'
			FROM (SELECT obs_id, rank, t FROM cache_$name t) t FULL JOIN now n ON t.obs_id = n.obs_id AND t.rank = n.rank
			WHERE t.t OPERATOR(pg_catalog.*<>) n HAVING count(*) > 0;\n";
	}
	$script .= "SELECT 'step $step, search: ' || d || ' differences' FROM differences('$_->[0]', '$_->[1]', 2, $_->[2]) d WHERE d > 0;\n"
	  foreach [ 'obs', 'ref', 'false' ], [ 'ref', 'ref', 'true' ], [ 'turning', 'turned', 'false' ], [ 'building', 'ref', 'false' ];
}

my ($out, $err) = ('', '');
my $status = $node->psql('postgres', "SET geonn.log_keep = 100000;\n$script SELECT 'done';\nSELECT mode, status, count(*) FROM geonn_cache_log GROUP BY 1, 2 ORDER BY 1, 2;",
	stdout => \$out, stderr => \$err, on_error_stop => 1);

is($status, 0, "seed $seed: every statement succeeds") or diag(substr($err, 0, 2000));
my @differences = grep { /difference/ } split(/\n/, $out);
is(scalar(@differences), 0, "seed $seed: the tables of all caches are what a search returns, and plain SQL, after each of $steps steps")
  or diag(join("\n", @differences[ 0 .. ($#differences < 20 ? $#differences : 20) ]));
note($out =~ /^done\n(.*)/ms ? $1 : '');

# ---- lines among live points ----

$node->safe_psql('postgres', q{
	CREATE TABLE live (id integer PRIMARY KEY, g geography, note text) WITH (fillfactor = 80);
	INSERT INTO live SELECT i, random_point(), repeat('x', 100) FROM generate_series(1, 300) i;
	CREATE TABLE few_lines AS SELECT i AS id, random_shape() AS g FROM generate_series(1, 5) i;
	ALTER TABLE few_lines ADD PRIMARY KEY (id)});
my @sessions = map { $node->background_psql('postgres', on_error_die => 1) } 0, 1;
my @wrong;

foreach my $step (1 .. $steps)
{
	my $row = 1 + int(rand(300));

	$sessions[ rand 2 ]->query_safe(pick(
		"UPDATE live SET g = random_point() WHERE id % 50 = $row % 50",
		"UPDATE live SET g = random_shape() WHERE id = $row",
		"UPDATE live SET g = random_point() WHERE GeometryType(g::geometry) <> 'POINT'",
		"UPDATE live SET g = NULL WHERE id = $row",
		"DELETE FROM live WHERE id = $row",
		"INSERT INTO live VALUES ($row, random_shape()) ON CONFLICT DO NOTHING",
		"UPDATE few_lines SET g = random_shape()",
		"UPDATE few_lines SET g = random_point()",
		'VACUUM live'));
	foreach my $number (0, 1)
	{
		foreach my $sides ([ 'few_lines', 'live' ], [ 'live', 'few_lines' ], [ 'live', 'live' ])
		{
			next if $sides->[0] eq 'live' && $step % 5 > 0;
			my $k = 1 + int(rand(3));
			my $self = $sides->[1] eq $sides->[0] ? 'true' : 'false';
			my $found = $sessions[$number]->query_safe("SELECT differences('$sides->[0]', '$sides->[1]', $k, $self)");

			push(@wrong, "step $step, session $number: $found of @$sides, $k") if $found;
		}
	}
}
is(join("\n", @wrong), '', "seed $seed: lines ask live points, and live points ask lines");
$_->quit foreach @sessions;

# ---- what a role may see ----

$node->safe_psql('postgres', q{
	CREATE ROLE anna;
	CREATE ROLE ben;
	CREATE TABLE parcel AS SELECT i AS id, CASE i % 3 WHEN 0 THEN 'anna' WHEN 1 THEN 'ben' ELSE 'free' END AS owner,
		ST_Buffer(random_point(), 1e5, 2)::geography(Polygon) AS g FROM generate_series(1, 60) i;
	ALTER TABLE parcel ADD PRIMARY KEY (id);
	CREATE VIEW parcels AS SELECT id, g FROM parcel WHERE owner <> 'free';
	CREATE VIEW own_parcels WITH (security_invoker) AS SELECT id, g FROM parcel;
	GRANT SELECT ON ref TO anna, ben;
	GRANT SELECT (id, owner) ON parcel TO anna;
	GRANT SELECT ON parcel TO ben;
	GRANT SELECT ON parcels, own_parcels TO anna, ben});

# how many rows of the observations have an answer that a role sees, and what is wrong; or the error
sub seen_by
{
	my ($role, $obs, $ref) = @_;
	my ($said, $error) = ('', '');

	$node->psql('postgres', "SET ROLE $role; SELECT count(DISTINCT obs_id), (SELECT differences('$obs', '$ref', 1, false)) FROM geonn_nearest('$obs', '$ref')",
		stdout => \$said, stderr => \$error);
	return $said ne '' ? $said : $error =~ /(permission denied for \w+ \w+)/ ? $1 : $error;
}

is(seen_by('anna', 'parcel', 'ref'), 'permission denied for table parcel', 'a role without the privilege on the column of shapes');
is(seen_by('anna', 'ref', 'parcel'), 'permission denied for table parcel', 'of references, too');
is(seen_by('anna', 'own_parcels', 'ref'), 'permission denied for table parcel', 'a view of its reader');
is(seen_by('anna', 'parcels', 'ref'), '40|0', "a view has its owner's privileges");
is(seen_by('ben', 'parcel', 'ref'), '60|0', 'a role with the privilege');
$node->safe_psql('postgres', q{
	ALTER TABLE parcel ENABLE ROW LEVEL SECURITY;
	CREATE POLICY of_owners ON parcel USING (owner = current_user OR owner = 'free')});
is(seen_by('ben', 'parcel', 'ref'), '40|0', 'row-level security of observations');
is(seen_by('ben', 'own_parcels', 'parcel'), '40|0', 'and of references');
$node->safe_psql('postgres', 'GRANT SELECT ON parcel TO anna');
is(seen_by('anna', 'own_parcels', 'ref'), '40|0', 'by a view of its reader');
is($node->safe_psql('postgres', q{SET ROLE ben; SELECT count(DISTINCT obs_id), count(DISTINCT owner)
	FROM geonn_nearest_sql('SELECT id, g FROM parcel', 'TABLE ref') JOIN parcel ON id = obs_id}), '40|2', 'a query');
is($node->safe_psql('postgres', q{SET ROLE anna; PREPARE seen AS SELECT count(*) FROM geonn_nearest('parcel', 'ref');
	SET plan_cache_mode = force_generic_plan; EXECUTE seen; RESET ROLE; EXECUTE seen; SET ROLE ben; EXECUTE seen}), "40\n60\n40", 'a prepared statement of several roles');

# a cache is refreshed as its owner
is($node->safe_psql('postgres', q{
	GRANT CREATE ON SCHEMA public TO ben;
	SET ROLE ben;
	SELECT geonn_cache_create('cache_of_ben', 'parcel', 'ref');
	RESET ROLE;
	CALL geonn_refresh('cache_of_ben', 'full');
	SELECT count(*) FROM cache_of_ben}), "cache_of_ben\n40", 'a refresh by another role sees what the owner sees');

$node->stop;
done_testing();
