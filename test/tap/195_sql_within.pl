
# Joins by PostGIS's ST_DWithin and by ST_Distance with a limit, EXISTS and NOT EXISTS of it: which have geonn's node, and that their rows, errors and
# privileges are those without it.
#
# needs: postgis
# rooms: sql

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('sql_within', preload => 1, conf => "statement_timeout = '120s'\njit = off\nmax_parallel_workers_per_gather = 0");

my $tables = q{
	SET client_min_messages = error;
	CREATE EXTENSION postgis;
	CREATE TABLE o AS SELECT i AS id, i % 7 AS kind, ST_SetSRID(ST_MakePoint(i * 13 % 360 - 180, i * 7 % 181 - 90), 4326)::geography(Point) AS g
		FROM generate_series(1, 240) i;
	ALTER TABLE o ADD geom geometry(Point, 4326), ADD any_geog geography, ADD reach float8;
	UPDATE o SET geom = g::geometry, any_geog = g, reach = CASE kind WHEN 1 THEN NULL WHEN 2 THEN -1 ELSE kind * 1e5 END;
	INSERT INTO o (id, kind, g) VALUES (1000, 1, NULL), (1001, 1, 'POINT EMPTY');
	CREATE TABLE r AS SELECT i AS id, kind, ST_SetSRID(ST_MakePoint(i * 17 % 360 - 180, i * 11 % 181 - 90), 4326)::geography(Point) AS g
		FROM generate_series(1, 260) i, LATERAL (SELECT i % 5 AS kind) k;
	ALTER TABLE r ADD geom geometry(Point, 4326), ADD reach float8 DEFAULT 2e5;
	UPDATE r SET geom = g::geometry;
	INSERT INTO r (id, kind, g) VALUES (1000, 1, NULL), (1001, 1, 'POINT EMPTY');
	ANALYZE o, r;
};

$node->safe_psql('postgres', $tables . q{
	CREATE TABLE r_parts (LIKE r) PARTITION BY HASH (id);
	CREATE TABLE r_parts_0 PARTITION OF r_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	CREATE TABLE r_parts_1 PARTITION OF r_parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	INSERT INTO r_parts TABLE r;
	CREATE VIEW r_barrier WITH (security_barrier) AS SELECT * FROM r WHERE kind <> 1;
	CREATE DOMAIN place AS geography(Point) CHECK (ST_SRID(VALUE) = 4326);
	CREATE DOMAIN flat AS geometry;
	ALTER TABLE o ADD named place, ADD flat flat;
	UPDATE o SET named = g, flat = geom;
	CREATE FUNCTION unsteady(float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN $1; END';
	ANALYZE;
});

my $on = 'ST_DWithin(o.g, r.g, 3e5)';
my @cases = (
	# [ is taken, the statement ]
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON $on" ],
	[ 1, "SELECT o.id, r.id, r.g, ST_Distance(o.g, r.g) FROM o, r WHERE $on AND o.id < 150" ],
	[ 1, "SELECT o.id, r.id FROM o LEFT JOIN r ON $on" ],
	[ 1, "SELECT o.id, r.id FROM o LEFT JOIN r ON $on AND r.kind = o.kind" ],
	[ 1, "SELECT o.id, r.id FROM o LEFT JOIN r ON $on AND o.kind > 3" ],
	[ 1, "SELECT o.id, r.id FROM o LEFT JOIN r ON $on WHERE r.kind IS DISTINCT FROM 2" ],
	[ 1, "SELECT o.id, r.id FROM o LEFT JOIN r ON $on WHERE r.id IS NULL" ],
	[ 1, "SELECT o.id, r.id FROM r RIGHT JOIN o ON $on" ],
	[ 0, "SELECT o.id, r.id FROM r FULL JOIN o ON $on AND r.id = o.id" ],
	[ 1, "SELECT o.id, r, r.ctid, r.tableoid::regclass FROM o JOIN r_parts r ON $on" ],
	[ 1, "SELECT o, r.id FROM o JOIN r ON $on" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(r.g, o.g, 3e5, false) WHERE r.kind < 3" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(r.geom::geography, o.geom::geography, 3e5)" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.g, r.g, o.reach)" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.g, r.g, r.reach)" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.g, r.g, o.reach + r.reach)" ],
	[ 0, "SELECT o.id, r.id FROM o LEFT JOIN r ON ST_DWithin(o.g, r.g, r.reach)" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.g, r.g, (SELECT max(reach) / 3 FROM o))" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.g, r.g, -1)" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.g, r.g, 'NaN')" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.g, r.g, 'Infinity') WHERE o.id < 30" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON $on AND r.id <> o.id OR false" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON $on OR r.id = o.id" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON NOT $on WHERE o.id < 10" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.g, r.g, 3e5, o.kind = 3)" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.geom, r.geom, 3)" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.any_geog, r.g, 3e5)" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.named, r.g, 3e5)" ],
	[ 1, "SELECT r.id, o.id, o.named FROM r LEFT JOIN o ON ST_DWithin(o.named, r.geom::geography, 3e5) AND r.kind <> o.kind" ],
	[ 1, "SELECT o.id, r.id FROM o LEFT JOIN r ON ST_Distance(o.flat::geography, r.g) < 3e5" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(ST_Reverse(o.geom)::geography, r.g, 3e5)" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.g, r.g, unsteady(3e5)) WHERE o.id < 30" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.g, r.g, (SELECT max(x.reach) / 3 FROM o x WHERE x.id = o.id)) WHERE o.id < 30" ],

	# a distance with a limit
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON ST_Distance(o.g, r.g, false) <= 3e5" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON ST_Distance(r.g, o.g, false) < 300000 AND r.kind <> o.kind" ],
	[ 1, "SELECT o.id, r.id FROM o LEFT JOIN r ON 3e5 >= ST_Distance(o.g, r.g)" ],
	[ 1, "SELECT o.id, r.id FROM o, r WHERE o.reach > ST_Distance(o.g, r.g, true)" ],
	[ 1, "SELECT o.id, r.id FROM o, r WHERE o.g <-> r.g BETWEEN 1e5 AND 3e5" ],
	[ 1, "SELECT o.id, r.id FROM o, r WHERE ST_DistanceSphere(o.geom, r.geom) <= 3e5" ],
	[ 1, "SELECT o.id, r.id FROM o, r WHERE ST_Distance(o.g, r.g) < 1e7 AND $on" ],
	[ 1, "SELECT o.id, r.id FROM o, r WHERE ST_Distance(o.g, r.g) < CASE o.kind WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN 0 WHEN 3 THEN -1 ELSE 1e5 END" ],
	(map { my $limit = $_; map { [ 1, "SELECT o.id, r.id FROM o JOIN r ON ST_Distance(o.g, r.g, false) $_ $limit" ] } '<', '<=' } "'NaN'", "'Infinity'", "'-Infinity'", -1, 0),
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON ST_Distance(o.g, r.g, false) > 1.9e7" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON 1.9e7 <= ST_Distance(o.g, r.g, false)" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON ST_Distance(o.g, r.g, false) = 0" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON ST_Distance(o.g, r.g) <= 3e5::real" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON ST_Distance(o.g, r.g) <= o.reach + r.reach" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON ST_Distance(o.g, r.g, o.kind = 3) <= 3e5" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON ST_Distance(o.geom, r.geom) <= 3" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON ST_Distance(o.any_geog, r.g) <= 3e5" ],
	[ 0, "SELECT o.id, r.id FROM o JOIN r ON ST_Distance(o.g, r.g) <= unsteady(3e5) WHERE o.id < 30" ],
	[ 1, "SELECT o.id FROM o WHERE EXISTS (SELECT FROM r WHERE ST_Distance(o.g, r.g, false) < 3e5)" ],
	[ 1, "SELECT o.id FROM o WHERE NOT EXISTS (SELECT FROM r WHERE ST_Distance(o.g, r.g) <= 3e5 AND r.kind <> 2)" ],

	# semi and anti joins
	[ 1, "SELECT o.id FROM o WHERE EXISTS (SELECT FROM r WHERE $on)" ],
	[ 1, "SELECT o.id FROM o WHERE NOT EXISTS (SELECT FROM r WHERE $on)" ],
	[ 1, "SELECT o.id FROM o WHERE EXISTS (SELECT 1 FROM r WHERE $on AND r.kind >= o.kind)" ],
	[ 1, "SELECT o.id FROM o WHERE NOT EXISTS (SELECT 1 FROM r WHERE ST_DWithin(o.g, r.g, o.reach) AND r.kind <> o.kind AND r.kind > 1)" ],
	[ 1, "SELECT o.id FROM o WHERE EXISTS (SELECT 1 FROM r_barrier r WHERE ST_DWithin(o.g, r.g, o.reach))" ],
	[ 0, "SELECT o.id FROM o WHERE EXISTS (SELECT 1 FROM r WHERE $on) OR o.id < 10" ],

	# above and below
	[ 1, "SELECT k, (SELECT sum(o.id * r.id) FROM o JOIN r ON ST_DWithin(o.g, r.g, k * 1e5) WHERE o.kind = k) FROM generate_series(0, 4) k" ],
	[ 1, "WITH c AS MATERIALIZED (SELECT * FROM r WHERE kind > 2) SELECT o.id, r.id FROM o JOIN c r ON $on" ],
	[ 1, "WITH c AS MATERIALIZED (SELECT * FROM r WHERE kind > 2) SELECT o.id, r.id FROM o LEFT JOIN c r ON $on" ],
	[ 1, "SELECT o.id, r.id, x.id FROM o LEFT JOIN (r JOIN r x ON x.id = r.id + 1) ON $on AND x.kind <> o.kind" ],
	[ 1, "SELECT o.id, r.id, x.id FROM o LEFT JOIN (r LEFT JOIN r x ON x.id = r.id * 2) ON ST_DWithin(o.g, x.g, o.reach)" ],
	[ 1, "SELECT o.id FROM o WHERE NOT EXISTS (SELECT FROM r JOIN r x ON x.id = r.id + 1 WHERE $on AND x.kind <> o.kind)" ],
	[ 1, "SELECT o.id, r.id, x.id FROM o JOIN r ON $on LEFT JOIN r x ON ST_DWithin(r.g, x.g, 1e5)" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON $on UNION ALL SELECT 1, 1" ],
	[ 1, "SELECT o.id, count(r.id) FROM o LEFT JOIN r ON $on GROUP BY o.id" ],

	# what locks or changes rows
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON $on WHERE o.id < 30 FOR UPDATE" ],
	[ 1, "SELECT o.id, r.id FROM o JOIN r ON $on WHERE o.id < 30 FOR SHARE OF r" ]);
my @wrong;

for my $case (@cases)
{
	my ($is_taken, $query) = @$case;

	# by a GiST index PostGIS lacks pairs at the poles that its function has: r has none
	my (undef, $expected) = sql_answer($node, 'off', $query);
	my ($plan, $found) = sql_answer($node, 'on', $query);

	push @wrong, "the rows differ: $query\n" . substr($found, 0, 300) if $found ne $expected;
	push @wrong, ($is_taken ? 'not taken: ' : 'taken: ') . $query if ($plan =~ /geonn within join/) != $is_taken;
}
is(join("\n", @wrong), '', 'statements are taken, or left to PostgreSQL, and have the same rows or errors');

# ---- the border ----

$node->safe_psql('postgres', q{
	CREATE TABLE border AS SELECT o.id AS own, r.id AS ref, ST_Distance(o.g, r.g) AS spheroid, ST_Distance(o.g, r.g, false) AS sphere
		FROM o, r WHERE o.id % 20 = 3 AND r.id % 20 = 7 AND ST_Distance(o.g, r.g) IS NOT NULL;
	CREATE TABLE limits AS SELECT o.*, own, ref, d AS least FROM border JOIN o ON o.id = own, unnest(ARRAY[spheroid, sphere]) s,
		unnest(ARRAY[s, s - 1e-8, s + 1e-8, s * (1 - 2.3e-16), s * (1 + 2.3e-16), s - 2e-7, s + 2e-7]) d;
	ANALYZE limits;
});
for my $use ('true', 'false')
{
	for my $within ("ST_DWithin(o.g, r.g, o.least, $use)", "ST_Distance(o.g, r.g, $use) <= o.least", "o.least > ST_Distance(r.g, o.g, $use)")
	{
		my $query = "SELECT o.own, o.ref, o.least, r.id FROM limits o JOIN r ON $within AND r.id = o.ref";
		my (undef, $expected) = sql_answer($node, 'off', $query, 'SET enable_hashjoin = off; SET enable_mergejoin = off;');
		my ($plan, $found) = sql_answer($node, 'on', $query, 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_nestloop = off;');

		like($plan, qr/geonn within join/, "$within: the node");
		ok($found eq $expected && $expected ne '', 'and distances that are those of pairs, or differ by nanometres, have the same pairs');
	}
}

# the nearest on the sphere is too far away on the spheroid; another one is not
$node->safe_psql('postgres', q{
	CREATE TABLE near AS SELECT i AS id, 'SRID=4326;POINT(0 0)'::geography(Point) AS g FROM generate_series(1, 100) i;
	CREATE TABLE two (id integer, g geography(Point));
	INSERT INTO two VALUES (1, ST_Project('POINT(0 0)'::geography, 100050, pi() / 2)), (2, ST_Project('POINT(0 0)'::geography, 99990, 0));
	ANALYZE near, two;
});
is($node->safe_psql('postgres', q{SELECT string_agg(id::text, ' ' ORDER BY ST_Distance('POINT(0 0)'::geography, g, false)) FROM two}), '1 2', 'another is the nearest on the sphere');
for my $not ('', 'NOT ')
{
	my $query = "SELECT count(*) FROM near o WHERE ${not}EXISTS (SELECT FROM two r WHERE ST_DWithin(o.g, r.g, 1e5))";
	my ($plan, $rows) = sql_answer($node, 'on', $query, 'SET enable_nestloop = off;');

	like($plan, qr/geonn within join/, "${not}EXISTS: the node");
	is($rows, $not eq '' ? 100 : 0, 'and the rows of the one that is within the distance');
}

# ---- prepared statements, rescans, order ----

for my $mode ('force_generic_plan', 'force_custom_plan')
{
	my @rows = map { $node->safe_psql('postgres', qq{
		SET geonn.enable_sql_joins = $_;
		SET plan_cache_mode = $mode;
		PREPARE s(float8) AS SELECT o.id, r.id FROM o JOIN r ON ST_DWithin(o.g, r.g, \$1) ORDER BY 1, 2;
		EXECUTE s(1e5);
		EXECUTE s(NULL);
		EXECUTE s(5e5);
		DELETE FROM r WHERE id = 77;
		EXECUTE s(5e5);
		INSERT INTO r SELECT 77, kind, g, geom, reach FROM r WHERE id = 76}) } ('off', 'off', 'on');

	is($rows[2], $rows[1], "$mode: each execution has the rows of its own parameter and snapshot");
}

check_roles($node, 'o', 'r', $on);

# ---- left joins that change places: from PostgreSQL 16 on, columns say which of them may have made them NULL ----

$node->safe_psql('postgres', 'CREATE TABLE few AS SELECT * FROM r WHERE id % 8 = 0; ANALYZE few');
for my $query ("SELECT o.id, b.id, c.kind FROM o LEFT JOIN few b ON ST_DWithin(o.g, b.g, 3e5) LEFT JOIN few c ON c.id = b.id",
	"SELECT o.id, b.id, c.kind FROM o LEFT JOIN few b ON b.id = o.id LEFT JOIN few c ON ST_DWithin(b.g, c.g, 3e5)",
	"SELECT o.id, c.kind FROM o LEFT JOIN (few b LEFT JOIN few c ON ST_DWithin(b.g, c.g, 3e5)) ON o.id = b.id",
	"SELECT o.id, c.kind FROM o LEFT JOIN (few b LEFT JOIN r c ON ST_DWithin(b.g, c.g, 3e5) AND c.kind = 1) ON o.id = b.id WHERE c.kind IS NULL")
{
	my (undef, $expected) = sql_answer($node, 'off', $query);
	my ($plan, $found) = sql_answer($node, 'on', $query, 'SET enable_nestloop = off;');

	ok($found eq $expected && $found !~ /ERROR/, $query);
	note($plan);
}

# ---- costs, and what is said ----

$node->safe_psql('postgres', 'CREATE INDEX ON r USING gist (g); CREATE UNIQUE INDEX ON o (id); ANALYZE o, r');
unlike($node->safe_psql('postgres', "SET geonn.enable_sql_joins = on; EXPLAIN SELECT o.id, r.id FROM o JOIN r ON $on WHERE o.id = 7"),
	qr/geonn/, 'one row stays with the GiST index');
like((sql_answer($node, 'on', "SELECT count(*) FROM o JOIN r ON ST_Distance(o.g, r.g) < 1e7 AND $on", 'SET enable_nestloop = off;'))[0],
	qr/Filter: \(st_distance.*Within: st_dwithin/s, 'a search is by ST_DWithin where a distance is compared, too');
my (undef, undef, $messages) = sql_answer($node, 'on', 'SELECT count(*) FROM o JOIN r ON ST_DWithin(ST_Reverse(o.geom)::geography, r.g, 3e5)', 'SET client_min_messages = debug1;');
like($messages, qr/geonn leaves a join within a distance to PostgreSQL: the types of its points do not say/, 'DEBUG1 says why a join is not taken');
my $reason = qr/^Left to PostgreSQL: a join within a distance: the types of its points do not say/m;
for my $case ([ 'VERBOSE, COSTS OFF', 'ST_Reverse(o.geom)::geography', 'EXPLAIN (VERBOSE)', 1 ], [ 'COSTS OFF', 'ST_Reverse(o.geom)::geography', 'EXPLAIN without VERBOSE', 0 ],
	[ 'VERBOSE, COSTS OFF', 'o.g', 'EXPLAIN (VERBOSE) of a join that is taken', 0 ], [ 'VERBOSE, COSTS OFF, FORMAT json', 'ST_Reverse(o.geom)::geography', 'a format that is one object', 0 ])
{
	my ($options, $column, $of_what, $says) = @$case;
	my $plan = $node->safe_psql('postgres',
		"SET geonn.enable_sql_joins = on; SET enable_nestloop = off; EXPLAIN ($options) SELECT count(*) FROM o JOIN r ON ST_DWithin($column, r.g, 3e5)");

	is($plan =~ $reason ? 1 : 0, $says, "$of_what: the reason is " . ($says ? 'below the plan' : 'not there'));
	is($plan =~ /Left to PostgreSQL/ ? 1 : 0, $says, 'and no other');
}
like($node->safe_psql('postgres', "SET geonn.enable_sql_joins = on; SET enable_nestloop = off; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT o.id FROM o WHERE NOT EXISTS (SELECT FROM r WHERE $on)"),
	qr/Join Type: Anti\n\s*Within: st_dwithin\(o.g, r.g, '300000'.*\n\s*Pairs Decided: [1-9]\d*\n\s*Pairs Rechecked: \d+\n\s*Rows Compared with All References: 0/, 'EXPLAIN');

# ---- what a GiST index may lack: one place with two longitudes ----

$node->safe_psql('postgres', q{
	CREATE TABLE edge (id integer, g geography(Point));
	INSERT INTO edge VALUES (1, 'POINT(180 5)'), (2, 'POINT(-180 5)'), (3, 'POINT(10 90)'), (4, 'POINT(-70 90)');
	CREATE INDEX ON edge USING gist (g);
	ANALYZE edge;
});
my $at_edge = 'SELECT a.id, b.id FROM edge a JOIN edge b ON ST_DWithin(a.g, b.g, 0)';
my (undef, $by_function) = sql_answer($node, 'off', $at_edge, 'SET enable_indexscan = off; SET enable_bitmapscan = off;');
my ($index_plan, $by_index) = sql_answer($node, 'off', $at_edge, 'SET enable_seqscan = off;');
my ($edge_plan, $by_node) = sql_answer($node, 'on', $at_edge, 'SET enable_nestloop = off;');

like($index_plan, qr/edge_g_idx/, 'a join by the index');
like($edge_plan, qr/geonn within join/, 'and by the node');
is($by_function, "1|1\n1|2\n2|1\n2|2\n3|3\n3|4\n4|3\n4|4", 'points at longitudes 180 and -180, and at those of a pole, are one place to the function');
is($by_node, $by_function, 'the node has the rows of the function');
is((grep { index("\n$by_function\n", "\n$_\n") < 0 } split("\n", $by_index)), 0, 'the index has no others');
note('the index lacks ', split("\n", $by_function) - split("\n", $by_index), ' of them');

# ---- without the engine, and beyond the limit of memory ----

# PostgreSQL estimates that both conditions leave a 25th of the references; it is a fifth
$node->safe_psql('postgres', q{
	CREATE TABLE many AS SELECT r.g, r.kind, r.kind AS twin FROM r, generate_series(1, 80);
	CREATE INDEX ON many USING gist (g);
	ANALYZE many;
});
for my $case ([ '400kB', 0 ], [ '4MB', 1 ])
{
	my ($limit, $is_taken) = @$case;
	my ($plan, undef, $error) = sql_answer($node, 'on', 'SELECT count(*) FROM o LEFT JOIN many r ON ST_DWithin(o.g, r.g, 3e5) AND r.kind = 1 AND twin = 1',
		"SET geonn.session_memory_limit = '$limit'; SET enable_nestloop = off;");

	is($plan =~ /geonn within join/ ? 1 : 0, $is_taken, "$limit: references that may not fit, and have a GiST index, are left to it");
	unlike($error, qr/WARNING/, 'so that none are read again');
}

my @statements = ("SELECT o.id, r.id FROM o JOIN r ON $on AND r.kind <> o.kind", "SELECT o.id, r.id FROM o LEFT JOIN r ON $on",
	"SELECT o.id FROM o WHERE EXISTS (SELECT FROM r WHERE $on)", "SELECT o.id FROM o WHERE NOT EXISTS (SELECT FROM r WHERE $on)");
my $alone = new_server('within_alone', conf => "max_worker_processes = 0\nmax_logical_replication_workers = 0\nsession_preload_libraries = 'geonn'");

$alone->safe_psql('postgres', $tables);
for my $query (@statements)
{
	my (undef, $expected) = sql_answer($alone, 'off', $query);
	my ($plan, $found, $error) = sql_answer($alone, 'on', $query);

	like($plan, qr/geonn within join/, $query);
	ok($found eq $expected && $found ne '', 'has its rows on a server that cannot start an engine');
	like($error, qr/WARNING: .*compares each row of a join with all references.*could not register the geonn supervisor/, 'and a warning says why they took long');
	is(() = $error =~ /WARNING/g, 1, 'once');

	# the plan has been made when the limit comes
	my ($out, $limited);

	$node->psql('postgres', qq{
		SET geonn.enable_sql_joins = on;
		SET enable_nestloop = off;
		SET plan_cache_mode = force_generic_plan;
		PREPARE s AS $query;
		EXPLAIN EXECUTE s;
		SET geonn.session_memory_limit = '4kB';
		SELECT 'rows:';
		EXECUTE s;
	}, stdout => \$out, stderr => \$limited);
	my ($limited_plan, $rows) = split(/^rows:$/m, $out);
	my (undef, $full) = sql_answer($node, 'off', $query, 'SET enable_indexscan = off; SET enable_bitmapscan = off;');

	like($limited_plan, qr/geonn within join/, 'the node');
	ok(join("\n", sort grep { length } split("\n", $rows)) eq $full, 'has its rows beyond geonn.session_memory_limit');
	like($limited, $limited_plan =~ /geonn unanswered row/ ? qr/WARNING:  PostgreSQL's own plan answers rows of a join/ : qr/WARNING: .*reads the references .* again for each row/,
		'and a warning says what answers');
}

done_testing();
