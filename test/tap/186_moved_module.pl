
# The engine, and the library of the spheroid, are found beside the module that was loaded, wherever that was: by a full path,
# by a relative one, by dynamic_library_path, by a link, and on PostgreSQL 18 by
# extension_control_path.
#
# may skip: what PostgreSQL 18 brought
# rooms: base client supervisor spheroid

use strict;
use warnings;

use Cwd qw(realpath);
use File::Basename;
use File::Path;
use Geonn;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($installation, $program) = own_installation();
my $library = dirname($program);
my $share = `$installation/bin/pg_config --sharedir`;
chomp($share);
my $control = "$share/extension/geonn.control";
my $control_text = Geonn::slurp($control);

my $root = realpath(PostgreSQL::Test::Utils::tempdir_short());
my ($module) = glob("$library/geonn.so");
my ($spheroid) = glob("$library/geonn_spheroid.so");
my $built = "$ENV{GEONN_BUILD}/geonn-engine";

# a folder with a module, its library and an engine
sub folder
{
	my ($path) = @_;

	mkpath($path);
	replace_file($module, "$path/geonn.so");
	replace_file($spheroid, "$path/geonn_spheroid.so");
	replace_file($built, "$path/geonn-engine");
	return $path;
}

my $moved = folder("$root/moved");
my $odd = folder("$root/it's \$HOME `x` \"here\"");
my $long = folder("$root/" . 'long' x 30);
mkpath("$root/links");
symlink("$moved/geonn.so", "$root/links/geonn.so") or die $!;
mkpath("$root/alone");
replace_file($module, "$root/alone/geonn.so");

my $node = PostgreSQL::Test::Cluster->new('moved', install_path => $installation);
$node->init;
folder($node->data_dir . '/of_data');

# nothing is where PostgreSQL looks by itself
rename($spheroid, "$root/geonn_spheroid.so") or die $!;
$spheroid = "$root/geonn_spheroid.so";
unlink($module, $program);

sub write_control
{
	my ($module_pathname) = @_;
	my $text = $control_text;

	$text =~ s/^module_pathname = .*$/module_pathname = '$module_pathname'/m or die $control;
	unlink($control);
	open(my $file, '>', $control) or die $!;
	print $file $text;
	close($file);
}

my $search = q{SELECT ref_id FROM geonn_nearest_sql('SELECT 1 AS id, 10::float8 AS lat, 10::float8 AS lon',
	'SELECT 7 AS id, 11::float8 AS lat, 11::float8 AS lon')};
my $server = $node->data_dir . '/postgresql.conf';
my $server_text = Geonn::slurp($server);
my $cases = 0;

# A server with this configuration in which the extension has this module: a search has the
# engine in this folder answer it, and the library is there, too, unless it is elsewhere.
sub finds
{
	my ($name, $folder, $module_pathname, $conf, $folder_of_library) = @_;
	my $database = 'case_' . ++$cases;

	$folder_of_library //= $folder;
	write_control($module_pathname);
	open(my $file, '>', $server) or die $!;
	print $file "$server_text\n$conf\n";
	close($file);
	$node->start;
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION geonn');
	is($node->safe_psql($database, $search), '7', "$name: a search works");
	my $engine = $node->safe_psql($database, 'SELECT engine_pid FROM geonn_status()');
	is(readlink("/proc/$engine/exe"), "$folder/geonn-engine", "$name: by the engine beside the module");
	like($node->safe_psql($database, "SELECT geonn_distance(1, 2, 3, 4, 'spheroid'); SELECT pg_read_file('/proc/self/maps')"),
		qr/ \Q$folder_of_library\E\/geonn_spheroid\.so$/m, "$name: and geodesics by the library there");
	$node->stop;
}

my $quoted = $odd =~ s/'/''/gr;
finds('a full path', $moved, "$moved/geonn", '');
finds('a full path, preloaded', $moved, "$moved/geonn", "shared_preload_libraries = '$moved/geonn'");
finds('dynamic_library_path', $moved, 'geonn', "dynamic_library_path = '$root/none:$moved:\$libdir'");
finds('dynamic_library_path, preloaded', $moved, 'geonn', "dynamic_library_path = '$moved'\nshared_preload_libraries = 'geonn'");
finds('a relative path', realpath($node->data_dir) . '/of_data', 'of_data/geonn', '');
finds('a relative path, preloaded', realpath($node->data_dir) . '/of_data', 'of_data/geonn', "shared_preload_libraries = 'of_data/geonn'");
finds('a link to the module', $moved, "$root/links/geonn", '');
finds('quotes and blanks', $odd, 'geonn', "dynamic_library_path = '$quoted'");
finds('a long path', $long, 'geonn', "dynamic_library_path = '$long'");

# beside a link it is the link's neighbour, if it has one
symlink($built, "$root/links/geonn-engine") or die $!;
$built = realpath($built);
finds('a link to the module beside one to the engine', dirname($built), "$root/links/geonn", '', $moved);

# and at last in PostgreSQL's folder
replace_file($built, $program);
replace_file($spheroid, "$library/geonn_spheroid.so");
finds('a module without an engine', realpath($library), "$root/alone/geonn", '');
unlink($program);

# ---- where it is missing, or of another version ----

sub error_of
{
	my ($folder, $engine) = @_;

	unlink("$folder/geonn-engine");
	replace_file($engine, "$folder/geonn-engine") if $engine;
	my ($status, $out, $error) = $node->psql("case_$cases", $search);
	isnt($status, 0, 'a search fails');
	return $error;
}

++$cases;
write_control('geonn');
open(my $file, '>', $server) or die $!;
print $file "$server_text\ndynamic_library_path = '$quoted'\n";
close($file);
$node->start;
$node->safe_psql('postgres', "CREATE DATABASE case_$cases");
$node->safe_psql("case_$cases", 'CREATE EXTENSION geonn');
like(error_of($odd), qr/Could not execute "\Q$odd\E\/geonn-engine"/, 'without a program the error has its path');
is((error_of($odd, "$ENV{GEONN_BUILD}/geonn-engine-older"))[0] =~ /The installed engine is version 0\.0-older/, 1,
	'of another version, it is asked by that path');
$node->stop;

# ---- PostgreSQL 18 ----

SKIP:
{
	skip 'PostgreSQL before 18 has no extension_control_path', 2 if $node->pg_version < 18;

	write_control('$libdir/geonn');
	mkpath("$root/share");
	system_or_bail('cp', '-rL', "$share/extension", "$root/share/extension");
	unlink(glob("$share/extension/geonn*"));
	$control = "$root/share/extension/geonn.control";
	finds('extension_control_path', $moved, '$libdir/geonn',
		"extension_control_path = '$root/share:\$system'\ndynamic_library_path = '$moved:\$libdir'");
}

done_testing();
