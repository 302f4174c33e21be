
# All cities against all airports, and the other way round, agree with an
# independent brute force in 128-bit floating point.
# rooms: join points engine/cpu/walk engine/cpu/squares

use strict;
use warnings;

use Geonn;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('oracle', preload => 1);
my $data = $ENV{GEONN_DATA};
my $folder = PostgreSQL::Test::Utils::tempdir();

# Run SQL whose output is a file of the oracle's.
sub write_csv
{
	my ($name, $sql) = @_;
	my $file = "$folder/$name.csv";

	system_or_bail($node->installed_command('psql'),
		'-XAtq', '-F,', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-o', $file, '-c', $sql);
	return $file;
}

$node->safe_psql(
	'postgres', qq{
	CREATE TABLE city (city_id bigint PRIMARY KEY, name text, country text, population bigint, lat float8, lon float8);
	CREATE TABLE airport (airport_id bigint PRIMARY KEY, ident text, name text, type text, country text, lat float8, lon float8);
	COPY city FROM PROGRAM 'gzip -dc $data/cities.csv.gz' (FORMAT csv, HEADER);
	COPY airport FROM PROGRAM 'gzip -dc $data/airports.csv.gz' (FORMAT csv, HEADER);

	-- cities where another one has the same coordinates: their nearest city is a tie
	CREATE VIEW twin AS
		SELECT city_id AS id, lat, lon
		FROM city JOIN (SELECT lat, lon FROM city GROUP BY lat, lon HAVING count(*) > 1) AS place USING (lat, lon);
});

my %points = (
	city => write_csv('city', 'SELECT city_id, lat, lon FROM city'),
	airport => write_csv('airport', 'SELECT airport_id, lat, lon FROM airport'),
	twin => write_csv('twin', 'SELECT id, lat, lon FROM twin'));

foreach my $pair ([ 'city', 'airport' ], [ 'airport', 'city' ], [ 'twin', 'city' ])
{
	my ($obs, $ref) = @$pair;
	my $answers =
	  write_csv("$obs-$ref", "SELECT obs_id, ref_id, distance FROM geonn_nearest('$obs', '$ref')");
	my $verdicts =
	  `$ENV{GEONN_BUILD}/nearest_oracle $points{$obs} $points{$ref} $answers`;

	is($?, 0, "the oracle is content with $obs by $ref");
	foreach my $line (grep { /^(?:not )?ok/ } split /\n/, $verdicts)
	{
		ok($line =~ /^ok/, $line =~ s/^(not )?ok - /$obs by $ref: /r);
	}
}

# Where every longitude is the same place
is( $node->safe_psql(
		'postgres', q{
		SELECT airport.ident, city.name, city.country, round(distance::numeric / 1000)
		FROM geonn_nearest('airport', 'city')
		JOIN airport ON airport_id = obs_id JOIN city ON city_id = ref_id
		WHERE airport.lat = -90}),
	$node->safe_psql(
		'postgres', q{
		SELECT 'NZSP', name, country, round(geonn_distance(-90, 0, lat, lon)::numeric / 1000)
		FROM city ORDER BY lat, city_id LIMIT 1}),
	"the airport at the South Pole has the southernmost city");

done_testing();
