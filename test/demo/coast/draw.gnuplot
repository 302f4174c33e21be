# draw.gnuplot: cities by their distance from the coast.  Its arguments: the picture to write, and the
# folder that export.sql has filled.
set terminal pngcairo size 1100, 860 font "DejaVu Sans,12" background "#ffffff"
set output ARG1
set size ratio 28.0 / 58.0 / cos(48 * pi / 180)
set xrange [-12:46]
set yrange [34:62]
set palette defined (0 "#1f9bb5", 100 "#2fae66", 300 "#d9b300", 600 "#d62f3c", 900 "#93248c")
set cbrange [0:900]
set cblabel "km from each city to the nearest coast"
set colorbox horizontal user origin 0.2, 0.09 size 0.6, 0.02
set bmargin at screen 0.15
unset key
unset tics
set cbtics 100
set border linecolor "#555555"
set style textbox opaque fillcolor "#ffffff" noborder margins 0.5, 0.5
plot ARG2."/cities" with points pointtype 7 pointsize 0.25 linecolor palette, \
	ARG2."/coast" with lines linecolor "#404850" linewidth 0.8, \
	ARG2."/circles" with lines linecolor "#000000" linewidth 1.2, \
	ARG2."/names" using 1:2 with points pointtype 7 pointsize 0.8 linecolor "#000000", \
	ARG2."/names" using 1:2:3 with labels boxed offset 0, 1 font ",10" textcolor "#000000"
