# draw.gnuplot: a map at four moments, two by two.  Its arguments: the picture to
# write, the coast, and four folders that export.sql has filled.
load ARG3."/frame"

# in pixels; not integers, which would be divided as such
width = 720.0
height = floor(width * rows * stretch / columns + 0.5) + 0.0
gap = 12
above = 36	# for a title
below = 40	# for the legend
total_width = 2 * width + 3 * gap
total_height = 2 * (height + above) + gap + below
set terminal pngcairo size total_width, total_height font "DejaVu Sans,12" background "#ffffff"
set output ARG1

# a region's colour, and its links'
set palette maxcolors 12 defined ( \
	0 "#b5d5ea", 1 "#fbe3ae", 2 "#c3e2ae", 3 "#f6c3c1", 4 "#d7cbe8", 5 "#fad6b0", \
	6 "#b9e3db", 7 "#ebe8b6", 8 "#f0cfe2", 9 "#d3d7dd", 10 "#dfcfb8", 11 "#b0c4de")
array strong[12] = [0x1f78b4, 0xb07d00, 0x33902c, 0xd7302f, 0x6a3d9a, 0xd96200, \
	0x128f7d, 0x857f00, 0xb83280, 0x5a6270, 0x7d5a2b, 0x2c4a8a]
set cbrange [-0.5:11.5]
unset colorbox
unset key
unset tics
set border linecolor "#555555"
set label 1 caption at screen 0.5, screen below / 2 / total_height center
set multiplot

do for [panel = 0:3] {
	folder = value(sprintf("ARG%d", panel + 3))
	load folder."/frame"
	left = gap + (panel % 2) * (width + gap)
	top = total_height - above - (panel / 2) * (height + above + gap / 2)
	set lmargin at screen left / total_width
	set rmargin at screen (left + width) / total_width
	set tmargin at screen top / total_height
	set bmargin at screen (top - height) / total_height
	set title sprintf("{/:Bold %s}   %d of %d aircraft in flight", moment, flying, aircraft) offset 0, -0.5
	plot [west:west + spacing * columns] [south:south + spacing * rows] \
		folder."/cells" matrix using (west + ($1 + 0.5) * spacing):(south + ($2 + 0.5) * spacing):3 with image, \
		ARG2 using 1:2 with lines linecolor "#8f979e" linewidth 0.7, \
		folder."/lines" using 1:2:($3 < 0 ? 0x202020 : strong[int($3) + 1]) with lines linecolor rgb variable linewidth 0.7, \
		folder."/borders" using 1:2 with lines linecolor "#505050" linewidth 1, \
		folder."/landed" using 1:2 with points pointtype 7 pointsize 0.7 linecolor "#ffffff", \
		folder."/landed" using 1:2 with points pointtype 6 pointsize 0.7 linecolor "#000000", \
		folder."/flying" using 1:2:("✈"):3 with labels rotate variable font ",14" textcolor "#ffffff", \
		folder."/flying" using 1:2:("✈"):3 with labels rotate variable font ",11" textcolor "#000000"
	unset label 1
}
unset multiplot
