
# Plot: pictures of figures, bars and lines on logarithmic scales, as the text of an SVG file.
#
# A picture has no scripts, no fonts of its own and no background, and takes the colours of
# the reader's light or dark mode.  The colours are those of Okabe and Ito, which people
# who are colour-blind can tell from each other; lines have markers as well.
#
# The same data give the same text, byte for byte, so that a picture can be compared with
# the one that the figures have now.  Sizes are in pixels, texts in UTF-8.

package Plot;

use strict;
use warnings;

use Exporter 'import';
use List::Util qw(max min);
use POSIX qw(ceil floor);

our @EXPORT = qw(bars_picture lines_picture);

my $WIDTH = 800;
my $TEXT = 12;
my $BAR = 14;
my $GAP = 10;

# The colours of series, in light and in dark mode.
my @LIGHT = ('#0072b2', '#d55e00', '#00785a', '#a0447c', '#5c636b');
my @DARK = ('#56b4e9', '#e69f00', '#2bc79b', '#e59ac6', '#aab2bb');

# ---- text and shapes ----

sub escaped
{
	my ($text) = @_;
	my %entity = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;');

	return $text =~ s/([&<>])/$entity{$1}/gr;
}

# About as wide as a text is; a character of UTF-8 counts once.
sub width_of
{
	my ($text) = @_;
	return 0.55 * $TEXT * length($text =~ s/[\x80-\xbf]//gr);
}

sub text
{
	my ($x, $y, $text, $attributes) = @_;
	return sprintf("<text x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", $x, $y, $attributes // '', escaped($text));
}

sub line
{
	my ($class, @ends) = @_;
	return sprintf("<path class=\"$class\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", @ends);
}

# The marker of a series: a circle, a square, a triangle, a diamond or a cross.
sub marker
{
	my ($colour, $x, $y) = @_;
	my @shapes = ('m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0', 'm-4 -4h8v8h-8z', 'm0 -5l5 9h-10z',
		'm0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z', 'm-4 -1h3v-3h2v3h3v2h-3v3h-2v-3h-3z');

	return sprintf("<path class=\"f%d\" d=\"M%.1f %.1f%s\"/>\n", $colour, $x, $y, $shapes[$colour]);
}

sub svg
{
	my ($title, $height, @body) = @_;
	my $colours = sub {
		my ($ink, $grid, @of) = @_;
		return "text{fill:$ink}.g{stroke:$grid}" . join('', map { ".s$_\{stroke:$of[$_]}.f$_\{fill:$of[$_]}" } 0 .. $#of);
	};

	return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 $WIDTH $height\" width=\"$WIDTH\" height=\"$height\">\n"
	  . '<title>' . escaped($title) . "</title>\n"
	  . "<style>\ntext{font:${TEXT}px sans-serif}.t{font-size:14px;font-weight:bold}.b{font-weight:bold}.e{text-anchor:end}.m{text-anchor:middle}\n"
	  . "path{stroke-width:1;fill:none}.l{stroke-width:2}.d{stroke-dasharray:6 4}\n"
	  . $colours->('#1f2328', '#c8cdd3', @LIGHT) . "\n"
	  . '@media (prefers-color-scheme: dark){' . $colours->('#e6edf3', '#454c54', @DARK) . "}\n</style>\n"
	  . text($GAP, 20, $title, ' class="t"') . join('', @body) . "</svg>\n";
}

# ---- scales ----

sub log10 { return log($_[0]) / log(10); }

# From a value to its place between two others, by logarithms.
sub scale
{
	my ($least, $greatest, $from, $to) = @_;
	my $share = ($to - $from) / (log10($greatest) - log10($least));

	return sub { return $from + $share * (log10($_[0]) - log10($least)) };
}

# The powers of ten from below these values to above them.
sub decades
{
	my @values = @_;
	return map { 10**$_ } floor(log10(min(@values)) - 0.1) .. ceil(log10(max(@values)) - 1e-9);
}

# ---- bars ----

# Groups of two bars, of which the first is geonn's:
#
#   title          of the picture
#   axes           what the scale has, and what the ratios are
#   names          of both bars
#   groups         a name, a ratio, and of both bars value and label
#   tick           a function: a value's text on the scale
sub bars_picture
{
	my (%plot) = @_;
	my ($left, $right) = (290, $WIDTH - 195);
	my ($legend_bottom, @body) = legend(map { { name => $plot{names}[$_], colour => $_, bar => 1 } } 0 .. 1);
	my $top = $legend_bottom + 36;
	my @decades = decades(map { ($_->{values}[0], $_->{values}[1]) } @{ $plot{groups} });
	my $x_of = scale($decades[0], $decades[-1], $left, $right);
	my $bottom = $top + @{ $plot{groups} } * (2 * $BAR + $GAP);
	my $y = $top + $GAP / 2;

	push @body, text($left, $top - 8, $plot{axes}[0]), text($WIDTH - 5, $top - 8, $plot{axes}[1], ' class="e"');
	foreach my $index (0 .. $#decades)
	{
		my $x = $x_of->($decades[$index]);

		push @body, line('g', $x, $top, $x, $bottom);
		push @body, text($x, $bottom + 16, $plot{tick}->($decades[$index]), ' class="m"') if @decades < 6 || $index % 2 == 0;
	}
	foreach my $group (@{ $plot{groups} })
	{
		my @name = broken($group->{name}, $left - 2 * $GAP);

		foreach my $line (0 .. $#name)
		{
			push @body, text($left - 8, $y + $BAR + 4 + 14 * ($line - $#name / 2), $name[$line], ' class="e"');
		}
		foreach my $bar (0 .. 1)
		{
			my $x = $x_of->($group->{values}[$bar]);

			push @body, sprintf("<path class=\"f$bar\" d=\"M%.1f %.1fH%.1fv%dH%.1fz\"/>\n", $left, $y + $bar * $BAR, $x, $BAR - 1, $left),
			  text($x + 5, $y + $bar * $BAR + 11, $group->{labels}[$bar]);
		}
		push @body, text($WIDTH - 5, $y + $BAR + 4, $group->{ratio}, ' class="b e"');
		$y += 2 * $BAR + $GAP;
	}
	return svg($plot{title}, $bottom + 26, @body);
}

# The names of series, each behind its line or bar, in as many rows as they take: the
# place below them, and what draws them.
sub legend
{
	my @series = @_;
	my ($x, $y) = ($GAP, 44);
	my @body;

	foreach my $series (@series)
	{
		my $width = 60 + width_of($series->{name});

		($x, $y) = ($GAP, $y + 20) if $x + $width > $WIDTH;
		push @body, $series->{bar}
		  ? sprintf("<path class=\"f%d\" d=\"M%.1f %.1fh30v11h-30z\"/>\n", $series->{colour}, $x, $y - 10)
		  : stroke($series, [ $x, $y - 4 ], [ $x + 15, $y - 4 ], [ $x + 30, $y - 4 ]),
		  text($x + 39, $y, $series->{name});
		$x += $width;
	}
	return ($y, @body);
}

# A name in as many lines as it takes, broken behind commas.
sub broken
{
	my ($name, $width) = @_;
	my @lines = ('');

	foreach my $part (split(/(?<=,) (?=\D*)/, $name))
	{
		if ($lines[-1] ne '' && width_of("$lines[-1] $part") > $width) { push @lines, $part; }
		else { $lines[-1] .= ($lines[-1] eq '' ? '' : ' ') . $part; }
	}
	return @lines;
}

# ---- lines ----

# Panels beside each other, with the same scales and series:
#
#   title, x_axis, y_axis    of the picture and of its scales
#   series                   name, colour (a number) and whether the line is dashed
#   panels                   a title, and of each series its points [x, y]
#   x_tick, y_tick           functions: a value's text on the scale
sub lines_picture
{
	my (%plot) = @_;
	my @points = map { map { @$_ } @{ $_->{points} } } @{ $plot{panels} };
	my %places = map { $_->[0] => 1 } @points;
	my @places = sort { $a <=> $b } keys %places;
	my @decades = decades(map { $_->[1] } @points);
	my @used = grep { my $series = $_; grep { @{ $_->{points}[$series] } } @{ $plot{panels} } } 0 .. $#{ $plot{series} };
	my ($legend_bottom, @body) = legend(@{ $plot{series} }[@used]);
	my ($left, $top) = (70, $legend_bottom + 50);
	my $bottom = $top + 300;
	my $width = ($WIDTH - $left - 30) / @{ $plot{panels} };
	my $y_of = scale($decades[0], $decades[-1], $bottom, $top);

	push @body, text($GAP, $top - 26, $plot{y_axis});
	foreach my $panel (@{ $plot{panels} })
	{
		my $x_of = scale($places[0], $places[-1], $left + 20, $left + $width - 40);

		push @body, text($left + $width / 2 - 10, $top - 8, $panel->{title}, ' class="b m"'),
		  text($left + $width / 2 - 10, $bottom + 40, $plot{x_axis}, ' class="m"');
		foreach my $decade (@decades)
		{
			push @body, line('g', $left, $y_of->($decade), $left + $width - 20, $y_of->($decade));
			push @body, text($left - 6, $y_of->($decade) + 4, $plot{y_tick}->($decade), ' class="e"') if $panel == $plot{panels}[0];
		}
		foreach my $place (@places)
		{
			push @body, line('g', $x_of->($place), $bottom, $x_of->($place), $bottom + 5),
			  text($x_of->($place), $bottom + 20, $plot{x_tick}->($place), ' class="m"');
		}
		foreach my $series (@used)
		{
			my @places_of = map { [ $x_of->($_->[0]), $y_of->($_->[1]) ] } sort { $a->[0] <=> $b->[0] } @{ $panel->{points}[$series] };

			push @body, stroke($plot{series}[$series], @places_of);
		}
		$left += $width;
	}
	return svg($plot{title}, $bottom + 50, @body);
}

# A line through these places, with their markers.
sub stroke
{
	my ($series, @places) = @_;
	my $class = "l s$series->{colour}" . ($series->{dashed} ? ' d' : '');

	return '' if !@places;
	return sprintf("<path class=\"%s\" d=\"M%s\"/>\n", $class, join('L', map { sprintf('%.1f %.1f', @$_) } @places))
	  . join('', map { marker($series->{colour}, @$_) } @places);
}

1;
