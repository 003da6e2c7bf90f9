#!/bin/sh
# Runs suites of the tests side by side, one a processor:
#
#     sh scripts/run_suites.sh RUN SUITE...       RUN: the program of the tests that make has built
#
# What a suite prints is shown whole when it ends. The last line says how many tests passed and failed in all. SLOT tells
# a suite which of the processors it is on.
set -eu

[ $# -gt 1 ] || { echo "usage: sh scripts/run_suites.sh RUN SUITE..." >&2; exit 2; }
run=$1
shift
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT

# shellcheck disable=SC2016
printf '%s\n' "$@" | xargs -P "$(nproc)" --process-slot-var=SLOT -I SUITE sh -c '
    "$1" SUITE > "$2/SUITE" 2>&1 || touch "$2/failed"
    cat "$2/SUITE"
    tail -n 1 "$2/SUITE" >> "$2/counts"' run "$run" "$said" | grep --line-buffered -v '^[a-z]*: [0-9]* passed, [0-9]* failed$' || :

awk '{ passed += $2; failed += $4 } END { printf "%s %d passed, %d failed\n", $1, passed, failed }' "$said/counts"
[ ! -e "$said/failed" ]
