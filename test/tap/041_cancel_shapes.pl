# The distance to a shape of four million vertices ends soon when the statement's time is over, wherever it is then.
#
# What soon is, the time says that the same statement takes on this host when nothing ends it.
#
# needs: postgis
# rooms: join points
# check-all: shapes of millions of vertices

use strict;
use warnings;

use Geonn;
use Test::More;

my $node = new_server('cancel_shapes');

$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION postgis;
	CREATE TABLE shape (name text, g geography);
	ALTER TABLE shape ALTER g SET STORAGE EXTERNAL;
	-- a ring that lies in no hemisphere, so that its smaller side takes longest to find, and the same as a line
	INSERT INTO shape
	SELECT name, ST_GeomFromWKB(decode(head || body || substr(body, 1, 32), 'hex'), 4326)
	FROM (SELECT string_agg(repeat(encode(substr(ST_AsBinary(ST_Point(9 * i - 180, 20 + 40 * sin(i * pi() / 10))), 6), 'hex'), 4000000 / 40), '' ORDER BY i)
	      FROM generate_series(0, 39) i) p (body),
	     (VALUES ('ring', '01030000000100000001093d00'), ('line', '010200000001093d00')) s (name, head);
	CREATE FUNCTION seconds_of(shape_name text) RETURNS float8 LANGUAGE plpgsql AS $$
	DECLARE
		started timestamptz := clock_timestamp();
	BEGIN
		PERFORM geonn_distance(1, 2, g) FROM shape WHERE name = shape_name;
		RETURN extract(epoch FROM clock_timestamp() - started);
	EXCEPTION WHEN query_canceled THEN
		RETURN -extract(epoch FROM clock_timestamp() - started);
	END $$;
});

foreach my $name ('ring', 'line')
{
	my $seconds = $node->safe_psql('postgres', "SELECT seconds_of('$name')");

	foreach my $share (0.5, 0.8)
	{
		my $is_soon = 0;

		# a busy host may let a statement end before its time is over, or late: some of them end soon
		for (my $tries = 0; !$is_soon && $tries < 10; $tries++)
		{
			my $timeout = int($share * $seconds * 1000);
			my $taken = $node->safe_psql('postgres', "SET statement_timeout = '${timeout}ms'; SELECT seconds_of('$name')");

			note("$name: of $seconds s, $timeout ms, ended after $taken s");
			$is_soon = $taken < 0 && -$taken - $timeout / 1000 < 0.2 * $seconds;
			$seconds = $taken if $taken > 0 && $taken < $seconds;
		}
		ok($is_soon, "$name: cancelled at $share of its time, it ends within a fifth of that");
	}
}

done_testing();
