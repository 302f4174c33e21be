
# A reader who is no superuser, but owns the database: a block of a page that such a role may not run
# says before it that it needs a superuser.
# rooms: doc
# check-all: holds documentation and code together

use strict;
use warnings;

use File::Basename;
use Geonn;
use Test::More;

my $node = new_server('ordinary');

$node->safe_psql('postgres', 'CREATE ROLE ordinary LOGIN');

# Run a page's statements as that role; the rest of a block that it may not run is a superuser's.
sub page_is_marked
{
	my ($page) = @_;
	my $name = basename($page, '.md');
	my $text = Geonn::slurp($page);
	my $before = '';
	my $blocks = 0;

	$node->safe_psql('postgres', qq{CREATE DATABASE "of $name" OWNER ordinary});
	$node->safe_psql("of $name", q{
		CREATE SCHEMA geonn;
		CREATE EXTENSION geonn SCHEMA geonn;
		GRANT USAGE ON SCHEMA geonn TO PUBLIC;
		ALTER DATABASE "of } . $name . q{" SET search_path = "$user", public, geonn});
	while ($text =~ /(.*?)^```sql *\n(.*?)^```/msg)
	{
		my ($words, $block) = ($1, $2);
		my ($status, $out, $error) = $node->psql("of $name", $block,
			extra_params => [ '-U', 'ordinary' ], on_error_stop => 0, on_error_die => 0);

		$blocks++;
		next if $error !~ /^.*(?:permission denied|must be (?:owner|superuser|a superuser|able)).*$/m;
		like($words =~ s/.*^```//msr, qr/superuser/i, "$name marks: " . (split /\n/, $block)[0]) or diag($error);
		$node->psql("of $name", $block, on_error_stop => 0);
	}
	ok($blocks, "$name has blocks") if $blocks;
	$node->safe_psql('postgres', qq{DROP DATABASE "of $name" WITH (FORCE)});
}

page_is_marked($_) foreach grep { basename($_) ne 'README.md' } Geonn::pages();
done_testing();
