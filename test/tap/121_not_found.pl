
# What the documentation says of a function that is not found, of geonn switched off, and of what an
# ordinary role needs is so.
# rooms: base doc

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('not_found');
my $join = q{SELECT count(*) FROM geonn_nearest('public.ping', 'public.ping')};
my $page = Geonn::documentation();

# what psql says, as this role: rows and errors
sub said
{
	my ($role, $sql, $database) = @_;
	my ($status, $out, $error) = $node->psql($database // 'mine', "SET ROLE $role;\n$sql");

	return "$out$error";
}

$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(mine other);
$node->safe_psql('mine', q{
	CREATE ROLE ordinary;
	CREATE TABLE ping (id bigint PRIMARY KEY, lat float8, lon float8);
	INSERT INTO ping VALUES (1, 52.52, 13.40), (2, 48.85, 2.35);
	GRANT SELECT ON ping TO ordinary;
	CREATE SCHEMA geonn;
	CREATE EXTENSION geonn SCHEMA geonn;
});

# ---- three causes of "does not exist", and what psql shows of each ----

my $missing = qr/function geonn_nearest\(unknown, unknown\) does not exist/;
my $path = q{SET search_path = "$user", public, geonn};

like(said('postgres', $join, 'other'), $missing, 'another database lacks the function');
is(said('postgres', '\dx geonn', 'other') =~ /geonn/ ? 'a row' : 'none', 'none', 'and \dx has no row there');
like(said('postgres', $join), $missing, 'a session without the schema in its search_path does not find it');
like(said('postgres', '\df *.geonn_nearest'), qr/^geonn\|geonn_nearest\|/m, 'and \df shows the schema');
is(said('postgres', "$path;\n$join"), '2', 'it does with the schema in it');
like(said('ordinary', "$path;\n$join"), $missing, 'a role that may not use the schema does not find it');
$node->safe_psql('mine', 'GRANT USAGE ON SCHEMA geonn TO PUBLIC');
is(said('ordinary', "$path;\n$join"), '2', 'it does when it may');

# ---- what a role needs ----

my $create = q{SELECT geonn_cache_create('kept', 'ping', 'ping')};

like(said('ordinary', "$path;\n$create"), qr/permission denied for schema public/, 'a cache needs CREATE on the schema of its table');
$node->safe_psql('mine', 'GRANT CREATE ON SCHEMA public TO ordinary; REVOKE SELECT ON ping FROM ordinary');
like(said('ordinary', "$path;\n$create"), qr/permission denied for table ping/, 'and SELECT on its sources');
$node->safe_psql('mine', 'GRANT SELECT (id, lat, lon) ON ping TO ordinary');
is(said('ordinary', "$path;\n$create"), 'kept', 'no more than that, of the columns that the call uses');
like(said('ordinary', "$path;\nSELECT geonn_stat_reset()"), qr/permission denied for function/, 'figures are reset by superusers');

done_testing();
