#!/bin/sh
# Prints which share of the lines of src/ the tests have run, a folder and a file each:
#
#     sh scripts/coverage.sh BUILD...       directories that `make coverage` has built and run
#
# A file that was compiled several times (float and double, a processor path each) counts once: a line is run where any of
# its copies was.
set -eu

[ $# -gt 0 ] || { echo "usage: sh scripts/coverage.sh BUILD..." >&2; exit 2; }

# gcov -t prints "count:line:text" for each line: "-" has no code, "#####" and "=====" were not run.
find "$@" -name '*.gcda' ! -path '*/tests/*' -exec gcov -t {} + 2>/dev/null | awk -F: '
/^ *-: *0:Source:/ { file = $4; next }
file !~ /^src\// { next }
{
    count = $1
    gsub(/ /, "", count)
    if (count == "-") next
    line = file ":" ($2 + 0)
    if (!(line in run)) { run[line] = 0; lines[file]++ }
    if (count !~ /^[#=]/ && !run[line]) { run[line] = 1; hit[file]++ }
}
function share(name, h, n) { return sprintf("%-44s %6d of %6d lines %6.1f %%", name, h, n, 100 * h / n) }
END {
    for (file in lines) {
        split(file, part, "/")
        folder = part[1] "/" part[2] "/"
        folder_lines[folder] += lines[file]
        folder_hit[folder] += hit[file]
        all_lines += lines[file]
        all_hit += hit[file]
        print share("  " file, hit[file], lines[file]) | "sort"
    }
    close("sort")
    for (folder in folder_lines) print share(folder, folder_hit[folder], folder_lines[folder]) | "sort"
    close("sort")
    print share("src/", all_hit, all_lines)
}'
