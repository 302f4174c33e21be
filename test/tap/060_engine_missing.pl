
# What a statement says when the engine's file is not what it should be.
# rooms: base client supervisor

use strict;
use warnings;

use File::Copy;
use Geonn;
use Test::More;

my ($install_path, $program) = own_installation();
my $node = new_server('missing',
	install_path => $install_path,
	conf => "geonn.engine_timeout = '5s'");

# Ends the engine and lets the next search find what change makes of its file.
sub error_after
{
	my ($name, $change) = @_;
	my $engine = status($node, 'engine_pid');
	my ($status, $error);

	$change->();
	kill('TERM', $engine) if $engine;
	wait_until(sub { Geonn::is_gone($engine) }, "$name: the engine has ended") if $engine;
	my $seconds = seconds_of(
		sub {
			($status, undef, $error) = $node->psql('postgres', $small_search);
		});
	isnt($status, 0, "$name: a search fails");
	cmp_ok($seconds, '<', $Geonn::patience, "$name: without waiting for ever");
	like($error, qr/HINT:/, "$name: the error has a hint");
	note($error);
	return $error;
}

sub works_again
{
	my ($name) = @_;

	unlink($program);
	copy("$ENV{GEONN_BUILD}/geonn-engine", $program) or die "$program: $!";
	chmod(0755, $program);
	my $answer = '';
	wait_until(
		sub { (undef, $answer) = $node->psql('postgres', $small_search); $answer eq '1:7 2:8 3:9' },
		"$name: works again once the file is right");
}

is($node->safe_psql('postgres', $small_search), '1:7 2:8 3:9', 'the copy of the installation works');

like(error_after('missing', sub { unlink($program) }), qr/geonn-engine/, 'missing: the error names the file');
unlike($node->safe_psql('postgres', 'SELECT reason FROM geonn_status()'),
	qr/^$/, 'missing: geonn_status() says why');
is($node->safe_psql('postgres', 'SELECT 1'), '1', 'missing: the server lives');
works_again('missing');

like(error_after('not executable', sub { chmod(0644, $program) }),
	qr/geonn-engine/, 'not executable: the error names the file');
works_again('not executable');

my $error = error_after(
	'other version',
	sub {
		unlink($program);
		copy("$ENV{GEONN_BUILD}/geonn-engine-older", $program);
		chmod(0755, $program);
	});
like($error, qr/version/, 'other version: the error says so');
like($error, qr/0\.0-older/, 'other version: and which');
like($error, qr/HINT:.*install geonn again/, 'other version: and the hint to install both in one');
unlink($program);
copy("$ENV{GEONN_BUILD}/geonn-engine", $program);
chmod(0755, $program);
(undef, undef, $error) = $node->psql('postgres', $small_search);
like($error, qr/HINT:.*"kill \d+"/, 'other version: and then how to end what runs');
kill('TERM', $1) if $error =~ /"kill (\d+)"/;
is($node->safe_psql('postgres', $small_search), '1:7 2:8 3:9', 'other version: which helps');

error_after(
	'not a program',
	sub {
		unlink($program);
		open(my $file, '>', $program);
		print $file "this is not a program\n";
		close($file);
		chmod(0755, $program);
	});
works_again('not a program');

done_testing();
