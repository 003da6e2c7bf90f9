#!/bin/sh
# Draws what growth.sh measured, DIR/growth.tsv, as DIR/growth.svg:
#
#     sh scripts/growth_chart.sh DIR
set -eu

[ $# -eq 1 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
directory=$1

# The charts side by side, both axes logarithmic; solid: one thread, dashed: two.
awk -F'\t' '
    NR > 1 {
        if (!($1 in first)) { first[$1] = $2; names[++charts] = $1 }
        last[$1] = $2
        key = $1 SUBSEP $3
        points[key] = points[key] " " $2 ":" $4
        if (!low || $4 < low) low = $4
        if ($4 > high) high = $4
    }
    function x(name, value) { return 60 + 240 * log(value / first[name]) / log(last[name] / first[name]) }
    function y(us) { return 220 - 190 * log(us / bottom) / log(top / bottom) }
    END {
        for (bottom = 1; bottom > low; ) bottom /= 10
        while (bottom * 10 <= low) bottom *= 10
        for (top = bottom; top < high; ) top *= 10
        width = 330 * charts
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d 290\" width=\"%d\" height=\"290\" ", width, width
        print "font-family=\"sans-serif\" font-size=\"12\">"
        print "<title>Cost of a token in training</title>"
        printf "<rect width=\"%d\" height=\"290\" fill=\"#fff\"/>\n", width
        for (c = 1; c <= charts; c++) {
            name = names[c]
            printf "<g transform=\"translate(%d 20)\">\n", 330 * (c - 1)
            for (us = bottom; us <= top; us *= 10) {
                printf "<line x1=\"60\" x2=\"300\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>", y(us), y(us)
                printf "<text x=\"54\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", y(us) + 4, us
            }
            for (threads = 1; threads <= 2; threads++) {
                n = split(points[name, threads], point, " ")
                path = ""
                dashed = threads == 2 ? " stroke-dasharray=\"5 3\"" : ""
                for (i = 1; i <= n; i++) {
                    split(point[i], p, ":")
                    path = path sprintf("%s%.1f %.1f", i > 1 ? " L" : "M", x(name, p[1]), y(p[2]))
                    printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"#036\"/>\n", x(name, p[1]), y(p[2])
                    if (threads == 1 && (n < 8 || i % 2))
                        printf "<text x=\"%.1f\" y=\"238\" text-anchor=\"middle\">%s</text>\n", x(name, p[1]), p[1]
                }
                printf "<path d=\"%s\" fill=\"none\" stroke=\"#036\"%s/>\n", path, dashed
            }
            printf "<text x=\"180\" y=\"260\" text-anchor=\"middle\">%s</text>\n", name
            print "<text x=\"60\" y=\"0\">microseconds a target token</text></g>"
        }
        print "</svg>"
    }' "$directory/growth.tsv" >"$directory/growth.svg"
