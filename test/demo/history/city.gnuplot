# city.gnuplot: the nearest aircraft of a city through a day, on a map and by their
# distance.  Its arguments: the picture to write, the coast, and the folder that
# city.sql has filled.
load ARG3."/frame"

# in pixels; not integers, which would be divided as such
width = 1100.0
height = 680.0
chart = 170.0
gap = 34.0
left = 84.0
total_width = left + width + gap
total_height = 34 + height + 46 + chart + 44
set terminal pngcairo size total_width, total_height font "DejaVu Sans,12" background "#ffffff"
set output ARG1

stretch = 1 / cos(lat * pi / 180)
degrees_high = 4.1
degrees_wide = degrees_high * stretch * width / height
south = lat - degrees_high / 2
west = lon - degrees_wide / 2

# the colours of a day, from midnight to midnight
set palette defined (0 "#2b2a6b", 3 "#3f51b5", 6 "#1f9bb5", 9 "#2fae66", 12 "#d9b300", 15 "#ef7d1a", 18 "#d62f3c", 21 "#93248c", 24 "#2b2a6b")
set cbrange [0:24]
unset colorbox
unset key
set border linecolor "#555555"
set multiplot

set lmargin at screen left / total_width
set rmargin at screen (left + width) / total_width
set tmargin at screen (total_height - 34) / total_height
set bmargin at screen (total_height - 34 - height) / total_height
unset tics
set title caption offset 0, -0.6
set style textbox opaque fillcolor "#ffffff" noborder margins 0.5, 0.5
do for [km = 50:200:50] {
	set label sprintf("%d km", km) at lon, lat - km / 111.2 center font ",10" textcolor "#333333" boxed front offset 0, 0
}
set label "{/:Bold London}" at lon, lat offset 1, 0.9 font ",15" boxed front
plot [west:west + degrees_wide] [south:south + degrees_high] \
	ARG3."/flights" using 1:2 with lines linecolor rgb "#dcdfe3" linewidth 0.5, \
	ARG2 using 1:2 with lines linecolor rgb "#5f676f" linewidth 1.2, \
	ARG3."/circles" using 1:2 with lines linecolor rgb "#555555" linewidth 1 dashtype 2, \
	ARG3."/nearest" using 1:2 with lines linecolor rgb "#ffffff" linewidth 3.2, \
	ARG3."/nearest" using 1:2:3 with lines linecolor palette linewidth 1.8, \
	"+" using (lon):(lat) every ::0::0 with points pointtype 7 pointsize 1.6 linecolor rgb "#000000"
unset label
unset title

set tmargin at screen (chart + 44) / total_height
set bmargin at screen 44 / total_height
set xtics 0, 3, 24 scale 0.4 format "%.0f:00"
set ytics 0, 100 scale 0.4
set ylabel "km to the nearest" offset 0.5
set grid ytics linecolor "#dddddd"
plot [0:24] [0:*] \
	ARG3."/distances" using 1:2:1 with impulses linecolor palette linewidth 1, \
	ARG3."/distances" using 1:2 with lines linecolor rgb "#333333" linewidth 0.8
unset multiplot
