
# Types: the types of ids and of by columns, and the values that cases take of
# them: few enough that they coincide, and with those that are equal though
# they look different, or that order differently than they look.

package Types;

use strict;
use warnings;
use utf8;

use Exporter 'import';
use Random;

our @EXPORT = qw($create_types quoted id_type id_type_comparable_with id_types_equal by_type cast_to);

# What the types need, in the schema that the cases run in.  Where the server
# has no ICU, or the database an encoding without it, the collation is "C", and
# where it has no citext, that is a domain.
our $create_types = <<'SQL';
CREATE TYPE size AS ENUM ('small', 'medium', 'Large', 'enormous');
CREATE TYPE pair_of_them AS (a integer, b text);
CREATE TYPE pair_of_numbers AS (a numeric, b float8);
CREATE DOMAIN pair_domain AS pair_of_numbers CHECK ((VALUE).a > 0);
CREATE DOMAIN list_domain AS integer[];
CREATE DOMAIN number_domain AS integer CHECK (VALUE > -1000000);
CREATE DOMAIN domain_of_domain AS number_domain;
CREATE DOMAIN text_domain AS text COLLATE "C";
CREATE DOMAIN degrees_domain AS double precision;
CREATE DOMAIN point_domain AS point;
DO $$
BEGIN
	CREATE COLLATION regardless_of_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN OTHERS THEN
	CREATE COLLATION regardless_of_case FROM "C";
END $$;
DO $$
BEGIN
	CREATE EXTENSION citext SCHEMA geonn_fuzz;
EXCEPTION WHEN OTHERS THEN
	CREATE DOMAIN citext AS text;
END $$;
CREATE DOMAIN caseless_domain AS text COLLATE regardless_of_case;
SQL

my @words = (
	'', 'a', 'A', 'b', 'B', 'á', 'Á', 'ss', 'ß', 'z', 'Z', 'aa', 'Ab', 'é', "e\x{301}", '10', '9', '_a',
	'a b', "O'Brien", 'back\\slash', '日本', '€');

# Some are long enough for TOAST, and one is longer than geonn's buffers.
sub word
{
	my ($number) = @_;

	return $words[$number] if $number < @words;
	return "$number " . noise($number, $number == 37 ? 70_000 : 3000) if $number % 13 == 11;
	return "word $number";
}

# that many characters, which no compression makes fewer
sub noise
{
	my ($seed, $length) = @_;
	my $state = $seed;

	return join('', map { $state = ($state * 16807) % 2147483647; chr(48 + ($state >> 8) % 79) } 1 .. $length);
}

sub one_of
{
	my @values = @_;

	return sub { my ($number) = @_; return $values[ $number % @values ] };
}

sub integers
{
	my ($least, $most) = @_;

	return sub {
		my ($number) = @_;
		return $number == 0 ? $least : $number == 1 ? $most : $number - 20;
	};
}

# id types:
#   type        as SQL has it, with a modifier
#   result      types that a row type may have for it, besides
#   collation   as SQL has it, where the column is given one
#   value       of a number from 0: the text of a value
#   distinct    different numbers give different ids
#   family      ids of types of one family can be compared (else those of one
#               type), by the same collation
my @id_types = (
	{
		type => 'smallint',
		result => [ 'integer', 'bigint' ],
		value => integers(-32768, 32767),
		distinct => 1,
		family => 'integer'
	},
	{
		type => 'integer',
		result => ['bigint'],
		value => integers(-2147483648, 2147483647),
		distinct => 1,
		family => 'integer'
	},
	{
		type => 'bigint',
		value => integers('-9223372036854775808', '9223372036854775807'),
		distinct => 1,
		family => 'integer'
	},
	{ type => 'text', value => \&word, distinct => 1, family => 'text' },
	{ type => 'text', collation => '"C"', value => \&word, distinct => 1 },
	{ type => 'text', collation => 'regardless_of_case', value => \&word },
	{ type => 'varchar', result => ['text'], value => \&word, distinct => 1, family => 'text' },
	{ type => 'citext', value => \&word },
	{ type => 'caseless_domain', collation => 'regardless_of_case', value => \&word },
	{ type => 'varchar(9)', value => sub { substr(word($_[0]), 0, 9) } },
	{ type => 'char(7)', value => sub { substr(word($_[0]), 0, 7) } },
	{ type => 'name', value => sub { substr(word($_[0]), 0, 20) } },
	{ type => '"char"', value => one_of('', 'a', 'b', 'Z', '~') },
	{
		type => 'uuid',
		value => sub { sprintf('%08x-0000-4000-8000-%012x', ($_[0] * 2654435761) % 4294967296, $_[0]) },
		distinct => 1
	},
	{
		type => 'numeric',
		value => one_of(
			'1', '1.0', '1.00', '-0.0', '0', 'NaN', 'Infinity', '-Infinity', '1e30', '2', '-7.50', '-7.5', '1e-50')
	},
	{ type => 'numeric(6,2)', value => sub { $_[0] / 4 } },
	{
		type => 'float8',
		value => one_of('NaN', '-0', '0', 'Infinity', '-Infinity', '1e-310', '2', '1.5'),
		family => 'float'
	},
	{ type => 'real', value => one_of('NaN', '-0', '0', 'Infinity', '1.1', '2', '1.5'), family => 'float' },
	{
		type => 'date',
		value => sub {
			$_[0] == 0 ? '-infinity'
			  : $_[0] == 1 ? 'infinity'
			  : $_[0] == 2 ? '0044-03-15 BC'
			  : sprintf('%04d-%02d-%02d', 2000 + $_[0] % 7, 1 + $_[0] % 12, 1 + $_[0] % 28);
		},
		family => 'date'
	},
	{
		type => 'timestamp',
		value => one_of('infinity', '2000-01-01', '2000-01-01 00:00:00.000001', '2006-07-14'),
		family => 'date'
	},
	{
		type => 'timestamptz',
		value => one_of(
			'-infinity', '2024-03-31 01:30:00+00', '2024-03-31 03:30:00+02',
			'1999-12-31 23:59:59.999999-11', '2025-01-01 00:00:00+00')
	},
	{ type => 'time', value => one_of('00:00', '24:00', '12:34:56.789', '23:59:59.999999') },
	{ type => 'interval', value => one_of('1 mon', '30 days', '720:00', '-1 day', '24:00', '1 day') },
	{ type => 'size', value => one_of('small', 'medium', 'Large', 'enormous') },
	{
		type => 'number_domain',
		result => [ 'integer', 'bigint' ],
		value => sub { $_[0] - 20 },
		distinct => 1,
		family => 'integer'
	},
	{ type => 'domain_of_domain', value => sub { $_[0] % 50 } },
	{ type => 'text_domain', collation => '"C"', value => \&word, distinct => 1 },
	{ type => 'boolean', value => one_of('t', 'f') },
	{
		type => 'text[]',
		value => one_of('{}', '{a}', '{A}', '{a,NULL}', '{NULL}', '{a,b}', '{{a,b},{c,d}}', '{á,"x y"}')
	},
	{
		type => 'text[]',
		collation => 'regardless_of_case',
		value => one_of('{a}', '{A}', '{b,c}', '{B,C}', '{B}')
	},
	{ type => 'integer[]', value => one_of('{}', '{1}', '{1,2}', '{NULL}', '{-5}', '[0:1]={1,2}') },
	{
		type => 'bytea',
		value => sub {
			sprintf('\\x%08x', $_[0] * 16777619 % 4294967296)
			  . ($_[0] % 13 == 11 ? unpack('H*', noise($_[0], 2500)) : '');
		},
		distinct => 1
	},
	{ type => 'tid', value => sub { "($_[0],1)" }, distinct => 1 },
	{ type => 'timetz', value => one_of('12:00+00', '13:00+01', '12:00-12', '00:00+00') },
	{ type => 'cidr', result => ['inet'], value => one_of('10.0.0.0/8', '10.0.0.0/24', '::/0', '0.0.0.0/0') },
	{ type => 'inet', value => one_of('10.0.0.1', '10.0.0.1/24', '::1', '192.168.0.0/16', '9.9.9.9') },
	{ type => 'oid', value => sub { $_[0] == 0 ? 4294967295 : $_[0] }, distinct => 1 },
	{ type => 'bit varying', value => one_of('', '0', '00', '1', '101') },
	{ type => 'money', value => one_of('1.00', '-2.50', '12') },
	{ type => 'jsonb', value => one_of('1', '1.0', '"a"', 'null', '{"a": 1}', '{"a": 1.00}', '[]') },
	{ type => 'int4range', value => one_of('empty', '[1,3)', '[1,2]', '(,)', '[0,1)') },
	{ type => 'numrange', value => one_of('empty', '[1,3)', '[1.0,3.00)', '(,5)') },
	{ type => 'nummultirange', value => one_of('{}', '{[1,3)}', '{[1.0,3.00)}', '{[0,1],(2,3)}') },
	{ type => 'numeric[]', value => one_of('{}', '{1}', '{1.0}', '{1.00,2}', '{1,2.0}', '{NULL}') },
	{ type => 'pair_of_them', value => one_of('(1,a)', '(1,)', '(2,b)', '(,)', '(1,A)') },
	{ type => 'pair_of_numbers', value => one_of('(1,1)', '(1,1.0)', '(1.0,1)', '(,2)', '(,2.0)', '(0,-0)') },
	{ type => 'pair_domain', value => one_of('(1,1)', '(1,1.0)', '(1.0,1)', '(2,)') },
	{ type => 'pair_of_numbers[]', value => one_of('{}', '{"(1,1)"}', '{"(1.0,1)"}', '{"(1,)","(2,2)"}') },
	{ type => 'list_domain', value => one_of('{}', '{1}', '{1,2}', '{0}') },
	{ type => 'bpchar', value => one_of('a', 'a ', 'a  ', 'b', '') },
	{ type => 'tsvector', value => one_of('', 'a', 'a b', 'b:1') });

# by types, with few values each
my @by_types = (
	[ 'integer', 1, 2, -3 ],
	[ 'smallint', 1, 2, 3 ],
	[ 'bigint', '9223372036854775807', 1, 2 ],
	[ 'text', 'a', 'A', '', 'á' ],
	[ 'text COLLATE "C"', 'a', 'A', 'b' ],
	[ 'text COLLATE regardless_of_case', 'a', 'A', 'b', 'B' ],
	[ 'text[] COLLATE regardless_of_case', '{a}', '{A}', '{b}', '{}' ],
	[ 'varchar', 'a', 'b', 'c' ],
	[ 'citext', 'a', 'A', 'b' ],
	[ 'caseless_domain', 'a', 'A', 'b' ],
	[ 'varchar(4)', 'abcd', 'b', 'c' ],
	[ 'char(4)', 'a', 'b', 'a  ' ],
	[ '"char"', 'a', 'b', '' ],
	[ 'name', 'one', 'two' ],
	[ 'boolean', 't', 'f' ],
	[ 'uuid', '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff' ],
	[ 'numeric', '1', '1.0', '1.000', '2', 'NaN' ],
	[ 'float8', '0', '-0', 'NaN', '1.5' ],
	[ 'real', '0', '-0', 'NaN', '1.1' ],
	[ 'date', '2024-02-29', 'infinity', '2000-01-01' ],
	[ 'timestamp', '2024-02-29', '2024-02-29 00:00:00.000001' ],
	[ 'timestamptz', '2024-03-31 01:30:00+00', '2024-03-31 03:30:00+02', 'infinity' ],
	[ 'time', '00:00', '24:00' ],
	[ 'timetz', '12:00+00', '13:00+01', '00:00+00' ],
	[ 'interval', '1 mon', '30 days', '720:00', '1 day' ],
	[ 'size', 'small', 'Large', 'enormous' ],
	[ 'number_domain', 1, 2, 3 ],
	[ 'domain_of_domain', 1, 2, 3 ],
	[ 'text_domain', 'a', 'A', 'b' ],
	[ 'pair_of_them', '(1,a)', '(1,)', '(2,b)', '(,)' ],
	[ 'text[]', '{a}', '{}', '{NULL}', '{a,NULL}' ],
	[ 'integer[]', '{1}', '{1,2}', '{}', '{NULL}' ],
	[ 'bytea', '\\x', '\\x00', '\\x0000' ],
	[ 'jsonb', '1', '1.00', '{"a": 1}', '{"a":1.0}', 'null' ],
	[ 'inet', '10.0.0.1', '10.0.0.1/32', '::1' ],
	[ 'macaddr', '08:00:2b:01:02:03', '08002b:010204' ],
	[ 'oid', 1, 4294967295 ],
	[ 'xid', 3, 4 ],
	[ 'int4range', '[1,3)', '[1,2]', 'empty' ],
	[ 'numrange', '[1,3)', '[1.0,3.00)', 'empty' ],
	[ 'pair_of_numbers', '(1,1)', '(1.0,1)', '(1,0)', '(,0)' ],
	[ 'list_domain', '{1}', '{2}', '{}' ],
	[ 'bit varying', '', '0', '00', '1' ],
	[ 'bit(3)', '000', '101' ],
	[ 'money', '1.00', '-2.50', '0' ],
	[ 'money[]', '{1.00}', '{1.00,2.00}', '{}' ],
	[ 'tsvector', 'a', 'b', 'a b' ]);

# a text as an SQL literal
sub quoted
{
	my ($text) = @_;

	return 'NULL' unless defined $text;
	$text =~ s/'/''/g;
	return "'$text'";
}

# an SQL expression that has this value of this type and collation
sub cast_to
{
	my ($type, $value) = @_;
	my ($name, $collate) = $type =~ /^(.*?)( COLLATE .*)?$/;

	return 'CAST(' . quoted($value) . " AS $name)" . ($collate // '');
}

# A type for ids: that of an integer, where it is wanted.
sub id_type
{
	my (%wanted) = @_;
	my @choices = @id_types;

	@choices = grep { ($_->{family} // '') eq 'integer' } @choices if $wanted{integer};
	return pick(@choices);
}

# one whose ids can be compared with those of that type
sub id_type_comparable_with
{
	my ($type) = @_;

	return $type if !$type->{family} || chance(0.5);
	return pick(grep { ($_->{family} // '') eq $type->{family} } @id_types);
}

sub id_types_equal
{
	my ($one, $other) = @_;

	return $one->{type} eq $other->{type} && ($one->{collation} // '') eq ($other->{collation} // '');
}

# (type with its collation, values)
sub by_type
{
	return @{ pick(@by_types) };
}

1;
