
# An engine that breaks the protocol costs the statement an error, and nothing
# else: the module checks what it reads before it uses it.

use strict;
use warnings;

use File::Copy;
use Geonn;
use Test::More;

my ($install_path, $program) = own_installation();

unlink($program);
copy("$ENV{GEONN_BUILD}/lying_engine", $program) or die "$program: $!";
chmod(0755, $program);

my $node = new_server('lies', install_path => $install_path, preload => 1);
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
	count_small count_two flags one_each partial type noise silent_end))
{
	have_it_tell($lie);
	my ($status, $out, $error) = $node->psql('postgres', $small_search);
	isnt($status, 0, "$lie: the statement fails");
	like($error, qr/ERROR:  the geonn engine (sent|ended)/, "$lie: and its error tells who is to blame");
	have_it_tell('none');
	is($node->safe_psql('postgres', $small_search), '1:0 2:0 3:0', "$lie: the next one works");
}
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'),
	$start_time, 'no process of the server has died of it');

done_testing();
