# draw.gnuplot: cities in the colours of their clusters, and in grey where they are of none.  Its arguments: the picture to
# write, the coast, and the folder that export.sql has filled.
set terminal pngcairo size 1100, 1020 font "DejaVu Sans,12" background "#ffffff"
set output ARG1
set size ratio 23.0 / 37.0 / cos(48 * pi / 180)
set xrange [-11:26]
set yrange [36:59]
set palette maxcolors 12 defined (0 "#d62f3c", 1 "#1f77b4", 2 "#2fae66", 3 "#93248c", 4 "#ef7d1a", 5 "#1fb5b0", 6 "#8c564b", 7 "#d9b300", 8 "#3f51b5", 9 "#e377c2", 10 "#6b8e23", 11 "#2b2a6b")
set cbrange [-0.5:11.5]
unset colorbox
unset key
unset tics
set border linecolor "#555555"
set style textbox opaque fillcolor "#ffffff" noborder margins 0.5, 0.5
set margins 1, 1, 1, 1
plot ARG3."/cities" using 1:(strcol(3) eq "none" ? $2 : NaN) with points pointtype 7 pointsize 0.15 linecolor "#c4c9ce", \
	ARG2 using 1:2 with lines linecolor "#5f676f" linewidth 0.8, \
	ARG3."/cities" using 1:(strcol(3) eq "clustered" ? $2 : NaN):4 with points pointtype 7 pointsize 0.35 linecolor palette, \
	ARG3."/names" using 1:2:3 with labels boxed offset 0, 1 font ",10" textcolor "#000000"
