
# An engine that breaks the protocol costs the statement an error, and nothing
# else: the module checks what it reads before it uses it.
# rooms: client

use strict;
use warnings;

use File::Copy;
use Geonn;
use Test::More;

my ($install_path, $program) = own_installation();

unlink($program);
copy("$ENV{GEONN_BUILD}/lying_engine", $program) or die "$program: $!";
chmod(0755, $program);

my $node = new_server('lies', install_path => $install_path, preload => 1, conf => 'autovacuum = off');
my $start_time = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');

# What the next searches are told.
sub have_it_tell
{
	my ($lie) = @_;

	open(my $file, '>', $node->data_dir . '/lie') or die $!;
	print $file "$lie\n";
	close($file);
}

# It is believed as long as it keeps to the protocol.
have_it_tell('none');
is($node->safe_psql('postgres', $small_search), '1:0 2:0 3:0', 'without a lie its answers are taken');

foreach my $lie (
	qw(unsealed short no_memory rows slot other_slot metric columns references
	files file sealed pairs observations no_observations first count_large
	count_small count_two flags way cpu_reason one_each partial type noise silent_end queued_twice queued_late))
{
	have_it_tell($lie);
	my ($status, $out, $error) = $node->psql('postgres', $small_search);
	isnt($status, 0, "$lie: the statement fails");
	like($error, qr/ERROR:  the geonn engine (sent|ended)/, "$lie: and its error tells who is to blame");
	have_it_tell('none');
	is($node->safe_psql('postgres', $small_search), '1:0 2:0 3:0', "$lie: the next one works");
}
# A statement's own references are named by their numbers.  These rows are one round of a node's, which has one session.
my $nearest = q{SET geonn.enable_sql_joins = on; SET enable_nestloop = off;
	SELECT count(r_lat) FROM (SELECT i % 90 AS lat, i % 180 AS lon FROM generate_series(1, (SELECT 60)) i) o, LATERAL
	(SELECT r.lat AS r_lat FROM few_ref r ORDER BY geonn_distance(o.lat, o.lon, r.lat, r.lon) LIMIT 1) n};

have_it_tell('none');
like($node->safe_psql('postgres', $nearest =~ s/SELECT count/EXPLAIN SELECT count/r), qr/Custom Scan \(geonn subquery join/,
	'a statement has references of its own');
is($node->safe_psql('postgres', $nearest), '60', 'without a lie they are taken');
have_it_tell('tag');
my ($own_status, $own_out, $own_error) = $node->psql('postgres', $nearest);
isnt($own_status, 0, 'an unknown reference: the statement fails');
like($own_error, qr/ERROR:  the geonn engine named an unknown reference/, 'and its error tells who is to blame');

# A dataset that is said to be kept is believed likewise.
$node->safe_psql(
	'postgres', q{
	CREATE TABLE named_obs AS SELECT id, lat, lon, 1 AS class FROM few_obs;
	CREATE TABLE named_ref AS SELECT 'name ' || id AS id, lat, lon, 1 AS class FROM few_ref;
	CREATE UNLOGGED TABLE unkept_ref AS TABLE few_ref;
	CREATE TYPE named_pair AS (obs_id integer, ref_id text, ref_lat float8);
	VACUUM named_ref;
});
my $by_name = q{SELECT string_agg(obs_id || ':' || ref_id || ' at ' || ref_lat, ' ' ORDER BY obs_id)
	FROM geonn_nearest('named_obs', 'named_ref', row_type => NULL::named_pair)};
my $by_class = $by_name =~ s/, row_type/, by => '{class}', row_type/r;

# the hash of a key of this class, as groups.c has it
my $hash = ($node->safe_psql('postgres', 'SELECT hashint4(1)') + 0x9e3779b9) & 0xffffffff;
foreach my $step ([ 16, 0x85ebca6b ], [ 13, 0xc2b2ae35 ], [ 16, 1 ])
{
	$hash = (($hash ^ ($hash >> $step->[0])) * $step->[1]) & 0xffffffff;
}

have_it_tell('kept');
is($node->safe_psql('postgres', $by_name), '1:id 0 at 0 2:id 0 at 0 3:id 0 at 0', 'without a lie its references are taken');
is($node->safe_psql('postgres', $by_class), '', 'and its groups');

foreach my $lie (
	qw(kept_unasked kept_no_file kept_pipe kept_open kept_records kept_place
	kept_external kept_long kept_table kept_slots kept_keys))
{
	have_it_tell("$lie $hash");
	my ($status, $out, $error) = $node->psql('postgres',
		$lie eq 'kept_unasked' ? $small_search =~ s/few_ref/unkept_ref/r : $lie =~ /table|slots|keys/ ? $by_class : $by_name);
	isnt($status, 0, "$lie: the statement fails");
	like($error, qr/ERROR:  the geonn engine sent/, "$lie: and its error tells who is to blame");
}

have_it_tell("kept $hash");
my ($base_status, $base_out, $base_error) =
	$node->psql('postgres', q{SELECT * FROM geonn_nearest_points('{1}', '{1}', 'few_ref')});
isnt($base_status, 0, 'a base of another form: the statement fails');
like($base_error, qr/ERROR:  the geonn engine sent a base of another form/, 'and its error tells who is to blame');

# So are lists of calls, for those who watch.
my $watch = 'SELECT pid, sessions, phase FROM geonn_stat_progress';
have_it_tell('none');
is($node->safe_psql('postgres', $watch), "1|0|reading observations\n2|0|reading observations", 'without a lie its list is taken');
foreach my $lie (qw(list_none list_open list_short list_odd list_phase list_label))
{
	have_it_tell($lie);
	my ($status, $out, $error) = $node->psql('postgres', $watch);
	isnt($status, 0, "$lie: the statement fails");
	like($error, qr/ERROR:  the geonn engine sent/, "$lie: and its error tells who is to blame");
}

# The supervisor believes an engine no more: it starts another.
foreach my $lie (qw(start_noise start_settings start_version start_status start_device))
{
	have_it_tell($lie);
	my $before = -s $node->logfile;
	my $logged = sub { substr(Geonn::slurp($node->logfile), $before) =~ $_[0] };
	kill('KILL', Geonn::engines_of($node->{_pid}));
	wait_until(sub { $logged->(qr/was terminated by signal 9/) }, "$lie: the engine is gone");
	my ($status, $out, $error) = $node->psql('postgres', $small_search);
	isnt($status, 0, "$lie: the statement fails");
	like($error, qr/ERROR:  the (installed )?geonn engine/, "$lie: and its error tells who is to blame");
	ok($logged->(qr/sent its supervisor an unknown message/), "$lie: which the log says, too");
	have_it_tell('none');
	is($node->safe_psql('postgres', $small_search), '1:0 2:0 3:0', "$lie: the next one works");
}

is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'),
	$start_time, 'no process of the server has died of it');

done_testing();
