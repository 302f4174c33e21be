
# Geonn: what the tests of this folder share.  They use PostgreSQL's own test
# modules, and psql sessions in the background for what must happen meanwhile.

package Geonn;

use strict;
use warnings;

use Exporter 'import';
use File::Basename;
use File::Copy;
use File::Path;
use File::Temp;
use IO::Uncompress::Gunzip qw(gunzip $GunzipError);
use IPC::Run;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(
  new_server own_installation former_releases add_release replace_file create_small_tables create_large_tables
  $small_search $slow_search
  start_sql start_slow_search finish_sql backend_of
  status engines_of is_gone work_of wait_until seconds_of median cache_differences with_list create_live_table
  random_row_change random_live_change bench_lines has_bench_lines shown_lines sql_answer check_as check_roles pick);
our @EXPORT_OK = qw(query error_of);

# Seconds that a test waits for what comes soon: only what hangs takes so long, however busy the host is.
# What has to be fast is measured as work (work_of), or by what comes first.
our $patience = 300;

# three observations and their answers, to see that a search works
our $small_search =
  "SELECT string_agg(obs_id || ':' || ref_id, ' ' ORDER BY obs_id) FROM geonn_nearest('few_obs', 'few_ref')";

# a search of many minutes on a server made with slow => 1: every pair of a
# million by a million
our $slow_search = "SELECT count(*) FROM geonn_nearest('many_obs', 'many_ref')";

# VACUUM passes over a page that another process has pinned, as those that write pages
# do, and does not make it all-visible.  So a test's VACUUM has nothing written beside it.
my $nothing_written = "bgwriter_lru_maxpages = 0\ncheckpoint_timeout = 1d\nmax_wal_size = 4GB\n";

# the first server that new_server has made: that of query and error_of
my $first_server;

# A server that has the extension; conf is text for postgresql.conf, initdb has options of initdb.
sub new_server
{
	my ($name, %option) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name,
		$option{install_path} ? (install_path => $option{install_path}) : ());

	$node->init(allows_streaming => $option{allows_streaming}, extra => $option{initdb} // []);
	$node->append_conf('postgresql.conf', $nothing_written);

	# brute force in SQL, with which answers are compared, is PostgreSQL's own work
	$node->append_conf('postgresql.conf', 'geonn.enable_sql_joins = off');
	# compiling takes longer than these statements
	$node->append_conf('postgresql.conf', 'jit = off');
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'geonn'")
	  if $option{preload};
	# slow things stay slow, whatever the host and the index can do
	$node->append_conf('postgresql.conf',
		"geonn.algorithm = 'brute'\ngeonn.device = 'cpu'\ngeonn.cpu_threads = 1")
	  if $option{slow};
	$node->append_conf('postgresql.conf', $option{conf}) if $option{conf};
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION geonn');
	create_small_tables($node);
	create_large_tables($node) if $option{slow};
	$first_server //= $node;
	return $node;
}

sub query
{
	my ($sql, $database) = @_;

	return $first_server->safe_psql($database // 'postgres', $sql);
}

# what psql says of SQL that fails, with SQLSTATE
sub error_of
{
	my ($sql) = @_;
	my (undef, undef, $error) = $first_server->psql('postgres', "\\set VERBOSITY verbose\n$sql");

	return $error;
}

# one of these, at random
sub pick { return $_[ rand @_ ]; }

# Rows of the cache near, of obs and ref, that are not those of a search, and those that are missing.
sub cache_differences
{
	my ($node) = @_;

	return $node->safe_psql('postgres', q{
		SELECT count(*) FROM near t FULL JOIN geonn_nearest('obs', 'ref', row_type => NULL::near) n
			ON (t.obs_id, t.rank, t.ref_id, t.distance) = (n.obs_id, n.rank, n.ref_id, n.distance)
		WHERE t.rank IS NULL OR n.rank IS NULL});
}

# A call in FROM whose last argument is its row type, with a column definition list in place of that.
sub with_list
{
	my ($call, $columns) = @_;

	return 'ROWS FROM (' . ($call =~ s/NULL::\w+\)$/NULL::record)/r) . " AS ($columns))";
}

# Put a program or library there as an installation does: a new file, so that processes
# keep the one that they have.
sub replace_file
{
	my ($from, $to) = @_;

	copy($from, "$to.new") or die "$from: $!";
	chmod(0755, "$to.new");
	rename("$to.new", $to) or die "$to: $!";
}

# A copy of the installation for a test to spoil: its path for new_server, and
# the engine's file in it.  PostgreSQL finds its folders relative to its
# programs, which are copied, and the engine is looked for where the module's
# file lies, which is copied, too; the rest is links.
sub own_installation
{
	my $root = PostgreSQL::Test::Utils::tempdir();
	my %folder;
	my %how = (bindir => '-rL', pkglibdir => '-rs', sharedir => '-rs');

	foreach my $kind (keys %how)
	{
		my $from = `pg_config --$kind`;
		chomp($from);
		$folder{$kind} = "$root$from";
		mkpath(dirname($folder{$kind}));
		system_or_bail('cp', $how{$kind}, $from, $folder{$kind});
	}
	replace_file("$folder{pkglibdir}/geonn.so", "$folder{pkglibdir}/geonn.so");
	return (dirname($folder{bindir}), "$folder{pkglibdir}/geonn-engine");
}

# The former releases whose install scripts releases/README.md describes.
sub former_releases
{
	return map { m,/geonn--([^/]+)\.sql\.gz$, } glob(dirname(__FILE__) . '/releases/*');
}

# Put the install script of a former release, which no package has, into a test's own installation.  Returns the script's path.
sub add_release
{
	my ($installation, $version) = @_;
	my $name = "geonn--$version.sql";

	chomp(my $sharedir = `$installation/bin/pg_config --sharedir`);
	unlink("$sharedir/extension/$name");	# a link, where a former build is installed
	gunzip(dirname(__FILE__) . "/releases/$name.gz" => "$sharedir/extension/$name") or die "$name: $GunzipError";
	return "$sharedir/extension/$name";
}

sub create_small_tables
{
	my ($node) = @_;

	$node->safe_psql(
		'postgres', q{
		CREATE TABLE few_obs (id integer PRIMARY KEY, lat float8, lon float8);
		CREATE TABLE few_ref (id integer PRIMARY KEY, lat float8, lon float8);
		INSERT INTO few_obs VALUES (1, 10, 10), (2, -20, 170), (3, 89, 0);
		INSERT INTO few_ref VALUES (7, 11, 11), (8, -21, -179), (9, 90, 0);
	});
}

sub create_large_tables
{
	my ($node) = @_;

	foreach my $table (qw(many_obs many_ref))
	{
		$node->safe_psql(
			'postgres', qq{
			CREATE TABLE $table AS
				SELECT i AS id, degrees(asin(2 * random() - 1)) AS lat, 360 * random() - 180 AS lon
				FROM generate_series(1, 1000000) i;
		});
	}
}

# Start SQL in a psql of its own, which reads it from a file since nobody feeds
# a pipe meanwhile; finish_sql waits for its end.
sub start_sql
{
	my ($node, $sql) = @_;
	my %run = (out => '', err => '', started => time);
	my ($file, $name) = File::Temp::tempfile(UNLINK => 1);

	print $file $sql;
	close($file);
	$run{handle} = IPC::Run::start(
		[
			$node->installed_command('psql'), '-XAtq', '-v', 'ON_ERROR_STOP=1',
			'-d', $node->connstr('postgres'), '-f', $name
		],
		'<', '/dev/null', '>', \$run{out}, '2>', \$run{err},
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	return \%run;
}

# Start a search of minutes and wait until the engine works on it.
sub start_slow_search
{
	my ($node, $before) = @_;
	my $run = start_sql($node, ($before // '') . "$slow_search;");

	wait_until(sub { status($node, 'searches') > 0 }, 'a slow search is under way')
	  or diag("its session says: $run->{err}");
	return $run;
}

# (exit status, standard output, standard error, seconds since its start)
sub finish_sql
{
	my ($run) = @_;

	$run->{handle}->finish;
	chomp($run->{out});
	return ($run->{handle}->result(0), $run->{out}, $run->{err}, time - $run->{started});
}

# the process that runs a slow search: of several, the leader
sub backend_of
{
	my ($node) = @_;

	return $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%many_obs%' AND pid <> pg_backend_pid() AND backend_type = 'client backend'");
}

# one column of geonn_status()
sub status
{
	my ($node, $column) = @_;

	return $node->safe_psql('postgres', "SELECT $column FROM geonn_status()");
}

# Of the table that a bench prints, each line's work and figure.
sub bench_lines
{
	my ($said) = @_;

	return map { my @cells = split(/ *\| */, $_); [ $cells[1], $cells[4] ] } $said =~ /^\| (?!work).*/mg;
}

# Are these lines those that are expected: of each the work, or a pattern of it, and a pattern of its figure?
sub has_bench_lines
{
	my ($lines, $expected) = @_;

	is(scalar(@$lines), scalar(@$expected), 'the table has a line for each measurement');
	foreach my $i (0 .. $#$expected)
	{
		my ($work, $figure) = @{ $expected->[$i] };

		ref($work) ? like($lines->[$i][0], $work, 'a line') : is($lines->[$i][0], $work, 'a line');
		like($lines->[$i][1], $figure, 'and its figure');
	}
}

# The lines of what psql prints, or a page shows: columns may be wider or narrower, and blanks at a line's end are seen
# by no reader.
sub shown_lines
{
	return map { s/-{2,}/--/gr } grep { $_ ne '' } map { s/\s+/ /gr =~ s/^ | $//gr } split /\n/, $_[0];
}

# the pages of the documentation: their files
sub pages
{
	return ("$ENV{GEONN_PAGES}/README.md", sort(glob("$ENV{GEONN_PAGES}/doc/*.md")));
}

# what all of them say
sub documentation
{
	return join('', map { slurp($_) } pages());
}

sub slurp
{
	my ($name) = @_;
	open(my $file, '<', $name) or return '';
	local $/;
	my $text = <$file>;
	return $text // '';
}

# the engines that run under a server: grandchildren of its postmaster
sub engines_of
{
	my ($postmaster) = @_;
	my %parent;
	my @engines;

	foreach my $directory (glob('/proc/[0-9]*'))
	{
		my ($pid) = $directory =~ /(\d+)$/;
		$parent{$pid} = $1 if slurp("$directory/stat") =~ /\) [^Z] (\d+) /s;
	}
	foreach my $pid (keys %parent)
	{
		push @engines, $pid
		  if ($parent{ $parent{$pid} } // 0) == $postmaster
		  && slurp("/proc/$pid/cmdline") =~ /geonn-engine/;
	}
	return @engines;
}

# Processes whose parent ends become this one's children, which is_gone collects: process 1 of a container may
# collect none, and PostgreSQL does not start while the former postmaster is a zombie.
my $prctl = { x86_64 => 157, aarch64 => 167 }->{ (POSIX::uname())[4] };
my $pr_set_child_subreaper = 36;

syscall($prctl, $pr_set_child_subreaper, 1, 0, 0, 0) if $prctl;

# whether a process has ended; its parent need not have collected it
sub is_gone
{
	my ($pid) = @_;

	waitpid($pid, POSIX::WNOHANG());
	my $stat = slurp("/proc/$pid/stat");
	my @threads = glob("/proc/$pid/task/*");

	# its first thread can end before others, which still have its sockets
	return $stat eq '' || ($stat =~ /\) [ZX] /s && @threads <= 1);
}

# the CPU time that a process has had, in seconds, with all of its threads
sub work_of
{
	my ($pid) = @_;
	my (undef, @fields) = split(/\) |\s/, slurp("/proc/$pid/stat") =~ s/^.*\)/)/sr);

	return ($fields[11] + $fields[12]) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# Wait for a condition, and count that as a test.
sub wait_until
{
	my ($condition, $name) = @_;
	my $end = time + $patience;

	while (time < $end)
	{
		return ok(1, $name) if $condition->();
		sleep(0.1);
	}
	return ok(0, "$name, within $patience s");
}

sub seconds_of
{
	my ($action) = @_;
	my $start = time;

	$action->();
	return time - $start;
}

sub median
{
	my @sorted = sort { $a <=> $b } @_;

	return $sorted[ $#sorted / 2 ];
}

# A table ref (id, lat, lon, note, kind) that this SQL fills, of some 20 rows a page; and differences(points): of how many random
# points a call of geonn_nearest_points, with ties or without, by the statement's snapshot, finds other neighbours than the
# definition in SQL; join_differences(): the same of a table's 20 points and two joins with random arguments; and
# by_differences(): of a join by the column kind, among whose values are NULL and some that come and go.
sub create_live_table
{
	my ($node, $fill) = @_;

	$node->safe_psql('postgres', qq{
		CREATE TABLE ref (id integer PRIMARY KEY, lat float8, lon float8, note text,
			kind text DEFAULT (ARRAY['a', 'b', 'c', NULL])[(0.5 + random() * 4)::integer]) WITH (fillfactor = 80);
		ALTER TABLE ref ALTER note SET STORAGE PLAIN;
		CREATE INDEX ON ref (lon);
		$fill;
		CREATE FUNCTION differences(points integer) RETURNS bigint LANGUAGE sql STABLE AS \$\$
			WITH o AS MATERIALIZED (SELECT array_agg(CASE WHEN random() < 0.5 THEN 30 ELSE random() * 180 - 90 END::float8) AS lat,
					array_agg(CASE WHEN random() < 0.5 THEN 40 ELSE random() * 360 - 180 END::float8) AS lon,
					1 + (random() * 3)::integer AS k, (ARRAY['first', 'all'])[(1 + random())::integer] AS ties FROM generate_series(1, points)),
				n AS MATERIALIZED (SELECT ord, string_agg((ref_id, distance)::text, ' ' ORDER BY distance, ref_id) AS found
					FROM geonn_nearest_points((SELECT lat FROM o), (SELECT lon FROM o), 'ref', (SELECT k FROM o),
						ties => (SELECT ties FROM o))
					GROUP BY ord)
			SELECT count(*) FROM o, unnest(o.lat, o.lon) WITH ORDINALITY p (lat, lon, ord) LEFT JOIN n USING (ord),
				LATERAL (SELECT string_agg((id, distance)::text, ' ' ORDER BY distance, id) AS expected FROM (
					SELECT id, geonn_distance(p.lat, p.lon, r.lat, r.lon) AS distance FROM ref r
					WHERE r.lat IS NOT NULL ORDER BY 2, CASE WHEN (SELECT ties FROM o) = 'first' THEN id END
					FETCH FIRST (SELECT k FROM o) ROWS WITH TIES) r) e
			WHERE found IS DISTINCT FROM expected \$\$;
		CREATE TABLE obs AS SELECT i AS id, CASE WHEN i < 5 THEN 30 ELSE random() * 180 - 90 END::float8 AS lat,
			CASE WHEN i < 5 THEN 40 ELSE random() * 360 - 180 END::float8 AS lon, (ARRAY['a', 'b', 'new 1', 'new 2', NULL])[1 + i % 5] AS kind
			FROM generate_series(1, 20) i;
		CREATE FUNCTION by_differences() RETURNS bigint LANGUAGE sql STABLE AS \$\$
			WITH q AS MATERIALIZED (SELECT 1 + (random() * 2)::integer AS k, (ARRAY['first', 'all'])[(1 + random())::integer] AS ties),
				n AS MATERIALIZED (SELECT obs_id, string_agg((ref_id, distance)::text, ' ' ORDER BY distance, ref_id) AS found
					FROM geonn_nearest('obs', 'ref', (SELECT k FROM q), by => '{kind}', ties => (SELECT ties FROM q)) GROUP BY obs_id)
			SELECT count(*) FROM obs o LEFT JOIN n ON n.obs_id = o.id,
				LATERAL (SELECT string_agg((id, distance)::text, ' ' ORDER BY distance, id) AS expected FROM (
					SELECT id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance FROM ref r
					WHERE r.lat IS NOT NULL AND r.kind = o.kind ORDER BY 2, CASE WHEN (SELECT ties FROM q) = 'first' THEN id END
					FETCH FIRST (SELECT k FROM q) ROWS WITH TIES) r) e
			WHERE found IS DISTINCT FROM expected \$\$;
		-- more rows than one process answers alone
		CREATE TABLE many_obs AS TABLE obs UNION ALL SELECT 100000 + i, i, i, NULL FROM generate_series(1, 45) i;
		CREATE FUNCTION join_differences() RETURNS bigint LANGUAGE sql STABLE AS \$\$
			WITH q AS MATERIALIZED (SELECT 1 + (random() * 2)::integer AS k, random() < 0.5 AS excludes, 1e6 * random() AS radius,
					(ARRAY['obs', 'many_obs'])[1 + (random() * 1)::integer] AS observations),
				n AS MATERIALIZED (SELECT obs_id, string_agg((ref_id, distance)::text, ' ' ORDER BY distance, ref_id) AS nearest
					FROM geonn_nearest((SELECT observations FROM q), 'ref', (SELECT k FROM q), exclude_self => (SELECT excludes FROM q)) GROUP BY obs_id),
				w AS MATERIALIZED (SELECT obs_id, string_agg((ref_id, distance, ref_lat, ref_lon)::text, ' ' ORDER BY rank) AS within
					FROM geonn_within((SELECT observations FROM q), 'ref', (SELECT radius FROM q), exclude_self => (SELECT excludes FROM q),
						row_type => NULL::record) AS (obs_id integer, ref_id integer, distance float8, ref_lat float8, ref_lon float8, rank bigint)
					GROUP BY obs_id)
			SELECT count(*) FROM q, obs o LEFT JOIN n ON n.obs_id = o.id LEFT JOIN w ON w.obs_id = o.id,
				LATERAL (SELECT string_agg((id, distance)::text, ' ' ORDER BY distance, id) FILTER (WHERE rank <= k) AS nearest,
						string_agg((id, distance, lat, lon)::text, ' ' ORDER BY distance, id) FILTER (WHERE distance <= radius) AS within
					FROM (SELECT id, distance, lat, lon, row_number() OVER (ORDER BY distance, id) AS rank FROM (
						SELECT id, geonn_distance(o.lat, o.lon, r.lat, r.lon) AS distance, r.lat, r.lon FROM ref r
						WHERE r.lat IS NOT NULL AND NOT (excludes AND r.id = o.id)) r) r) e
			WHERE (n.nearest, w.within) IS DISTINCT FROM (e.nearest, e.within) \$\$;
	});
}

# A random change of a table (id, lat, lon, note) with so many rows, among those that are this one's of so many sessions.
sub random_row_change
{
	my ($table, $rows, $sessions, $number) = @_;
	my $id = $sessions * int(rand($rows / $sessions)) + $number;
	my $place = sprintf('%.1f', rand(180) - 90);

	return (
		"UPDATE $table SET lat = $place WHERE id = $id",
		"UPDATE $table SET lat = $place WHERE id = $id",
		"UPDATE $table SET lon = $place WHERE id = $id",
		"UPDATE $table SET lat = 30, lon = 40 WHERE id = $id",
		"UPDATE $table SET lat = NULL WHERE id = $id",
		"UPDATE $table SET note = repeat('r', " . int(rand(4000)) . ") WHERE id = $id",
		"DELETE FROM $table WHERE id = $id",
		"INSERT INTO $table VALUES ($id, $place, 50) ON CONFLICT DO NOTHING",
		"INSERT INTO $table VALUES ($id, $place, 50) ON CONFLICT DO NOTHING",
		"UPDATE $table SET lat = $place WHERE id % $sessions = $number AND id / 100 = $id / 100",
		"DELETE FROM $table WHERE id % $sessions = $number AND id > $rows - 200",
		"SELECT FROM $table WHERE id % $sessions = $number AND id < 100 FOR UPDATE",
		"SAVEPOINT s; UPDATE $table SET lat = $place WHERE id = $id; " . (rand() < 0.5 ? 'RELEASE s' : 'ROLLBACK TO s'))[rand 13];
}

# A random change of the table ref of create_live_table, likewise.
sub random_live_change
{
	my ($rows, $sessions, $number) = @_;
	my $id = $sessions * int(rand($rows / $sessions)) + $number;

	return random_row_change('ref', $rows, $sessions, $number) if rand() < 0.8;
	return (
		"UPDATE ref SET kind = 'a' WHERE id = $id",
		"UPDATE ref SET kind = 'new ' || id % 3 WHERE id % $sessions = $number AND id / 50 = $id / 50",
		"UPDATE ref SET kind = NULL WHERE id = $id")[rand 3];
}

# The plan, the rows or the error, and what else is said of a statement, with geonn.enable_sql_joins as given, after other SQL.
sub sql_answer
{
	my ($node, $setting, $query, $before) = @_;
	my ($out, $error);

	$node->psql('postgres', qq{
		SET geonn.enable_sql_joins = $setting;
		@{[ $before // '' ]}
		EXPLAIN (VERBOSE, COSTS OFF) $query;
		SELECT 'rows:';
		$query;
	}, stdout => \$out, stderr => \$error);
	my ($plan, $rows) = split(/^rows:$/m, $out);

	return ($plan, join("\n", sort grep { length } split("\n", $rows // '')) . ($error =~ /(ERROR: .*)/ ? $1 : ''), $error);
}

# Test that a statement has the rows or error of this role that it has without geonn.
sub check_as
{
	my ($node, $role, $query) = @_;
	my (undef, $expected) = sql_answer($node, 'off', $query, "SET ROLE $role;");
	my ($plan, $found, $error) = sql_answer($node, 'on', $query, "SET ROLE $role;");

	ok($found eq $expected, "$role: $query");
	like($plan, qr/geonn (within join|zones of a point)/, 'by the node') if $found !~ /ERROR/;
	unlike($error, qr/kind 1/, 'and a function sees no row that a barrier hides');
	return;
}

# Test that joins of these tables, by this condition, have the rows and errors of each role that they have without geonn. _parts is the
# second table with partitions, and _barrier a view of it, with a security barrier, without kind 1.
sub check_roles
{
	my ($node, $first, $second, $on) = @_;

	$node->safe_psql('postgres', qq{
		CREATE ROLE reader;
		CREATE ROLE other;
		GRANT SELECT ON $first TO reader, other;
		GRANT SELECT (g) ON $second TO reader;
		GRANT SELECT ON ${second}_barrier TO other;
		ALTER TABLE ${second}_parts ENABLE ROW LEVEL SECURITY;
		CREATE POLICY but_two ON ${second}_parts TO reader USING (kind <> 2);
		GRANT SELECT ON ${second}_parts TO reader;
		CREATE FUNCTION leaks(integer) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS 'BEGIN RAISE NOTICE ''kind %'', \$1; RETURN true; END';
	});
	for my $case (
		[ 'reader', "SELECT count(*) FROM $first JOIN $second ON $on" ],
		[ 'reader', "SELECT $first.id, $second.id FROM $first JOIN $second ON $on" ],
		[ 'reader', "SELECT $first.id FROM $first WHERE NOT EXISTS (SELECT FROM $second WHERE $on)" ],
		[ 'reader', "SELECT $first.id, $second.id, $second.kind FROM $first JOIN ${second}_parts $second ON $on" ],
		[ 'reader', "SELECT $first.id FROM $first WHERE NOT EXISTS (SELECT FROM ${second}_parts $second WHERE $on)" ],
		[ 'other', "SELECT $first.id, $second.id FROM $first JOIN $second ON $on" ],
		[ 'other', "SELECT $first.id, $second.id FROM $first JOIN ${second}_barrier $second ON $on AND leaks($second.kind)" ])
	{
		check_as($node, @$case);
	}
}

1;
