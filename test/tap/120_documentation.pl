
# The commands of README.md and of doc/*.md run as written, and print what the page shows.
#
# Each page has a database of its own, and one psql session that runs its blocks in their
# order, as that of a reader who pastes one after the other.  The words behind a block's
# language are what it needs, and a block whose needs are not there is skipped:
#
#   ```sql postgis    SQL; extensions (cron stands for pg_cron)
#   ```sh gnuplot     bash, in a folder of the page; programs
#   ```sh machine     never run here: what builds, installs, starts or stops something;
#                     test/tools/house-rules looks at it
#   ```sql shards     of several servers: 505_shards_page runs it; managed, beside: 520_managed_page;
#                     citus: 423_citus_tables; switch: 433_switched_off
#   ```python pandas  a script of its own; modules.  440_clients runs those of clients.md
#
# Other languages are not run.  A block without a language that follows a command's block
# at once is what that prints: each … stands for anything in its line, and for any lines
# where it has one to itself.  Lines that begin with WARNING, ERROR, DETAIL or HINT are
# complaints, in any order; others there must not be.
# rooms: doc
# check-all: holds documentation and code together

# short form: the tutorial has two pings around each city instead of 23
# may skip: blocks whose extensions, programs or modules of Python are not installed
#
# A tutorial whose reader has run a demo has that server's tables in its database.
#
# The figures of speed on the pages are those of doc/figures, which test/bench/page puts there, and the table of ways is the
# one that the engine prints.

use strict;
use warnings;

use File::Basename;
use FindBin;
use Geonn;
use PostgreSQL::Test::Utils;
use Test::More;

my $complaint = qr/^(?:ERROR|WARNING|NOTICE|DETAIL|HINT):/;
my $node = new_server('documentation');
my %available = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', 'SELECT name FROM pg_available_extensions');
my $marks = 0;

# The blocks of a page: language, needs, text and, where it is shown, what it prints.
sub blocks_of
{
	my ($text) = @_;
	my @blocks;
	my $end = 0;

	while ($text =~ /^```(\w*)([^\n]*)\n(.*?)^```\n/msg)
	{
		my ($language, $needs, $block) = ($1, $2, $3);
		my $between = substr($text, $end, $-[0] - $end);

		$end = $+[0];
		if ($language eq '' && $between !~ /\S/ && @blocks)
		{
			$blocks[-1]{shown} = $block;
			next;
		}
		push @blocks, { language => $language, needs => [ split ' ', $needs ], text => $block };
	}
	return @blocks;
}

# Whether this server and machine have what a block needs.
sub is_possible
{
	my ($language, @needs) = @_;
	my %has = (
		sql => sub { $available{ $_[0] eq 'cron' ? 'pg_cron' : $_[0] } },
		sh => sub { $_[0] ne 'machine' && grep { -x "$_/$_[0]" } split /:/, $ENV{PATH} },
		python => sub { system_log('python3', '-c', "import $_[0]") == 0 });

	return !grep { !$has{$language}->($_) } @needs;
}

# ---- what is shown, and what comes ----

sub pattern_of
{
	return join('', map { $_ eq '…' ? '(?:[^\n]*\n)*' : join('[^\n]*', map { quotemeta } split /…/, $_, -1) . '\n' } @_);
}

sub is_as_shown
{
	my ($block, $out, $error) = @_;
	my @shown = shown_lines($block->{shown} // '');
	my @complaints = shown_lines($error =~ s/^psql:[^\n:]*:\d+: //mgr =~ s/^LINE \d+:.*\n.*\n//mgr);

	if (defined($block->{shown}))
	{
		my $pattern = pattern_of(grep { !/$complaint/ } @shown);

		like(join('', map { "$_\n" } shown_lines($out)), qr/\A$pattern\z/, 'and prints what the page shows');
	}
	foreach my $line (grep { /$complaint/ } @shown)
	{
		my $pattern = pattern_of($line);

		like(join('', map { "$_\n" } @complaints), qr/^$pattern/m, 'and says what the page shows');
	}
	is($error, '', 'without a complaint') if !grep { /$complaint/ } @shown;
}

# ---- languages ----

sub connect_to
{
	my ($database) = @_;
	my %session = (in => '', out => '', error => '', limit => IPC::Run::timeout(180));

	$session{psql} = IPC::Run::start(
		[ $node->installed_command('psql'), '-Xq', '-d', $node->connstr($database) ],
		'<', \$session{in}, '>', \$session{out}, '2>', \$session{error}, $session{limit});
	return \%session;
}

# what a block prints, and its complaints
sub run_sql
{
	my ($session, $text) = @_;
	my $mark = 'end of block ' . ++$marks;

	$session->{$_} = '' foreach qw(out error);
	$session->{limit}->start(180);
	$session->{in} .= "$text\n\\echo $mark\n\\warn $mark\n";
	$session->{psql}->pump until $session->{out} =~ /^$mark\n/m && $session->{error} =~ /^$mark\n/m;
	return map { $session->{$_} =~ s/^$mark\n//mr } qw(out error);
}

sub run_program
{
	my ($folder, $text, @command) = @_;
	my ($out, $error) = ('', '');

	IPC::Run::run([@command], '<', \$text, '>', \$out, '2>', \$error, init => sub { chdir($folder) }, IPC::Run::timeout(180));
	return ($out, $error, $?);
}

# ---- pages ----

# the tables of make demo, and those that have flown of make demo-moving
sub load_demo
{
	my ($database, $moving) = @_;
	my %file = (city => 'cities', airport => 'airports');

	$node->safe_psql($database, Geonn::slurp("$ENV{GEONN_DATA}/../tables.sql") =~ s/^CREATE EXTENSION.*//mr);
	$node->safe_psql($database, "\\copy $_ FROM PROGRAM 'gzip -dc $ENV{GEONN_DATA}/$file{$_}.csv.gz' (FORMAT csv, HEADER)") foreach sort keys %file;
	$node->safe_psql($database, Geonn::slurp("$ENV{GEONN_DATA}/../flights.sql") =~ s/:aircraft/90/r . join('', map { "CALL fly($_ * 0.75);" } 0 .. 8))
	  if $moving;
	$node->safe_psql($database, 'ANALYZE');
}

# Run a page's blocks; the README's database is the one that its commands name.
sub page_runs
{
	my ($page, $name) = @_;
	my @blocks = grep { exists { sql => 1, sh => 1, python => 1 }->{ $_->{language} } } blocks_of(Geonn::slurp($page));
	my $database = $name eq 'README' ? 'postgres' : $name;
	my $scheduled = $available{pg_cron} && grep { "@{ $_->{needs} }" =~ /\bcron\b/ } @blocks;
	my $folder = PostgreSQL::Test::Utils::tempdir();

	$node->safe_psql('template1', qq{DROP DATABASE IF EXISTS "$database"});
	$node->safe_psql('template1', qq{CREATE DATABASE "$database"});
	$node->safe_psql($database, qq{
		CREATE SCHEMA geonn;
		CREATE EXTENSION geonn SCHEMA geonn;
		ALTER DATABASE "$database" SET search_path = "\$user", public, geonn;
	}) if $name ne 'README';

	if ($scheduled)
	{
		$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_cron'\ncron.database_name = '$database'");
		$node->restart;
	}

	my ($demo) = map { "@{ $_->{needs} }" eq 'machine' && $_->{text} =~ /^make (demo(?:-moving)?)$/m ? $1 : () } @blocks;
	load_demo($database, $demo eq 'demo-moving') if $demo && $name =~ /^tutorial/;

	my $session = connect_to($database);
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => $database);
	foreach my $block (@blocks)
	{
		my ($language, $text) = @$block{qw(language text)};
		my $title = "$name: " . (split /\n/, $text)[0];

		$text =~ s/^\\set copies \K\d+/2/m if !$ENV{GEONN_LONG};
		next if $language eq 'python' && $name eq 'clients' || "@{ $block->{needs} }" eq 'machine';
	  SKIP:
		{
			skip("$title needs @{ $block->{needs} }", 1) if !is_possible($language, @{ $block->{needs} });
			my ($out, $error, $status) = $language eq 'sql' ? run_sql($session, $text)
			  : run_program($folder, $text, $language eq 'sh' ? qw(bash -e) : qw(python3 -));
			ok(!$status, "$title runs");
			is_as_shown($block, $out, $error);
		}
	}
	$session->{in} .= "\\q\n";
	$session->{psql}->finish;
	forget_page($database, $scheduled);
}

# The next page's server is as new.
sub forget_page
{
	my ($database, $scheduled) = @_;

	$node->safe_psql('template1', 'ALTER SYSTEM RESET ALL');
	$node->append_conf('postgresql.conf', "shared_preload_libraries = ''") if $scheduled;
	$node->restart if $scheduled;
	$node->reload if !$scheduled;
	$node->safe_psql('template1', qq{DROP DATABASE "$database" WITH (FORCE)});
	$node->safe_psql('template1', qq{DROP ROLE "$_"})
	  foreach split /\n/, $node->safe_psql('template1', q{SELECT rolname FROM pg_roles WHERE oid >= 16384});
}

# ---- figures ----

sub figures_differ
{
	my ($folder) = @_;
	my $said = `$^X $FindBin::Bin/../bench/page --check --folder $folder 2>&1`;

	return $? == 0 ? '' : $said;
}

sub figures_are_those_of_files
{
	my $copy = PostgreSQL::Test::Utils::tempdir();

	is(figures_differ($ENV{GEONN_PAGES}), '', 'the pages and their pictures have the figures of the files of results');
	system_or_bail('cp', '-r', "$ENV{GEONN_PAGES}/README.md", "$ENV{GEONN_PAGES}/doc", $copy);
	PostgreSQL::Test::Utils::append_to_file("$copy/README.md", "<!--{gpu; sql large; ^LIMIT 10,; geonn}-->7 h<!--end-->\n");
	like(figures_differ($copy), qr/^README\.md has other figures than doc\/figures, first in line \d+:\n.*7 h/, 'a figure of other origin is noticed');
	my ($picture) = map { basename($_) } glob("$copy/doc/pictures/*.svg");
	PostgreSQL::Test::Utils::append_to_file("$copy/doc/pictures/$_", "<!-- 7 h -->\n") foreach $picture, 'lonely.svg';
	like(figures_differ($copy), qr/^doc\/pictures\/\Q$_\E has other figures than doc\/figures, first in line \d+:\n.*7 h/m, "so is the picture $_")
	  foreach $picture, 'lonely.svg';
	PostgreSQL::Test::Utils::append_to_file("$copy/README.md", "<!--{gpu; sql huge}-->not measured<!--end-->\n");
	like(figures_differ($copy), qr/^test\/bench\/all has no part sql huge$/m, 'and so is a section that no benchmark has');
}

# ---- what the engine prints of itself ----

sub ways_are_those_of_the_engine
{
	my $ways = `$ENV{GEONN_BUILD}/geonn-engine --ways`;

	ok(index(slurp_file("$ENV{GEONN_PAGES}/doc/internals.md"), $ways) >= 0 && $ways =~ /^(?:\|.*\|\n){3,}\z/,
		'internals.md has the table that geonn-engine --ways prints')
	  or diag($ways);
}

figures_are_those_of_files();
ways_are_those_of_the_engine();
foreach my $page (Geonn::pages())
{
	page_runs($page, basename($page, '.md'));
}
done_testing();
