# SPDX-License-Identifier: Apache-2.0
# gnuplot -e "data='FILE'; out='FILE'" plot.gp: rows of "name" p50 p95, in ms
set terminal svg size 760,340 font "sans-serif,13" background "white"
set output out
set style data histogram
set style histogram clustered gap 1
set style fill solid noborder
set boxwidth 0.9
set yrange [0:*]
set ylabel "ms from spawn to reaped"
set grid ytics lc rgb "#dddddd"
set border 3
set xtics nomirror scale 0
set ytics nomirror
set key top left
plot data using 2:xtic(1) title "p50" lc rgb "#2b6cb0", '' using 3 title "p95" lc rgb "#a3bfda"
