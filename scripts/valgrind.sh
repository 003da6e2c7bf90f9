#!/bin/sh
# Runs suites of the tests under valgrind, one a processor, and with them the programs that tables of input call:
#
#     sh scripts/valgrind.sh BUILT SUITE...       BUILT: what make built, which has tests/run and headwise
#
# Shows every report of every process, those too that a test ends by a signal; each process has its own file while it
# runs, BUILT/under/report.PID. Ends with 1 if there is any report or a test fails.
set -eu

[ $# -gt 1 ] || { echo "usage: sh scripts/valgrind.sh BUILT SUITE..." >&2; exit 2; }
built=$(realpath "$1")
under=$built/under
shift
rm -rf "$under"
mkdir -p "$under"
chmod 777 "$under" # some tests give up their rights

# Where the address space is limited, as some tests do, valgrind cannot start, and where a standard stream is closed it
# takes its place: there the program runs alone. valgrind runs one thread at a time, so a suite gets one processor, on
# which threads sleep that would spin.
for program in tests/run headwise; do
    cat > "$under/${program##*/}" << END
#!/bin/sh
[ "\$(ulimit -v)" = unlimited ] && [ -e /proc/\$\$/fd/0 ] && [ -e /proc/\$\$/fd/1 ] && [ -e /proc/\$\$/fd/2 ] ||
    exec "$built/$program" "\$@"
exec taskset -c "\${SLOT-0}" valgrind --quiet --vgdb=no --log-file="$under/report.%p" --error-exitcode=99 \
    --suppressions="$PWD/scripts/valgrind.supp" --leak-check=full --show-leak-kinds=definite \
    --errors-for-leak-kinds=definite --num-callers=50 "$built/$program" "\$@"
END
    chmod +x "$under/${program##*/}"
done

failed=0
export CK_TIMEOUT_MULTIPLIER=100 OPENBLAS_NUM_THREADS=1 HEADWISE_PROGRAMS="$under"
export OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE-Nehalem}" # without fused multiply-adds, see the Makefile
sh scripts/run_suites.sh "$under/run" "$@" || failed=1

# Three lines of valgrind's are no report but say that it does not know how a terminal is made.
awk '/unhandled ioctl/ { skip = 3 } skip > 0 { skip--; next } { print; found = 1 } END { exit found }' \
    "$under"/report.* || failed=1
exit "$failed"
