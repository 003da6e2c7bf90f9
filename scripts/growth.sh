#!/bin/sh
# How the cost of a token in training grows with the length of sentences, the width, the vocabulary and the corpus, on one
# and two threads:
#
#     sh scripts/growth.sh [-b PROGRAM] [-s SIZE] [-c PAIRS] [-o DIR]
#
#     -b PROGRAM  bin/headwise
#     -s SIZE     the network that is varied (tiny)
#     -c PAIRS    sizes of the corpora that the toy's grammar makes ("10000 100000 1000000"); 10000000 takes six minutes
#     -o DIR      where growth.tsv and growth.svg are written (docs)
#
# Memory of the corpora is told by GNU time (Debian: time).
set -eu

program=bin/headwise size=tiny pairs='10000 100000 1000000' directory=docs
usage() { sed -n '2,12s/^# \{0,1\}//p' "$0"; }

while getopts b:s:c:o:h option; do
    case $option in
    b) program=$OPTARG ;;
    s) size=$OPTARG ;;
    c) pairs=$OPTARG ;;
    o) directory=$OPTARG ;;
    h) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
done
[ -x "$program" ] || { echo "growth: there is no program $program; run make first, or give -b" >&2 && exit 2; }
[ -z "$pairs" ] || [ -x /usr/bin/time ] || { echo "growth: /usr/bin/time is missing; or give -c ''" >&2 && exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work" "$directory/growth.tsv.new"' EXIT

# what is varied | option, @ standing for the value | values
series='
words a sentence|--length @|8 16 32 64 128 256 512 1024 2048 4096
width|--set model.width=@|32 64 128 256 512
vocabulary|--vocabulary @|1000 2000 4000 8000 16000 32000 64000
'
mkdir -p "$directory"
printf 'varied\tvalue\tthreads\tus_per_token\tpeak_mib\n' >"$directory/growth.tsv.new"
echo "$series" | grep . | while IFS='|' read -r varied option values; do
    for value in $values; do
        for threads in 1 2; do
            echo "growth: $varied $value, $threads threads" >&2
            # shellcheck disable=SC2046,SC2086 # the option is words
            "$program" bench train "$size" --quiet --json --steps 3 --threads $threads \
                $(echo "$option" | sed "s/@/$value/") >"$work/report"
            awk -F'[:,]' -v varied="$varied" -v value="$value" -v threads="$threads" '
                    { gsub(/[" ]/, "", $1) }
                    $1 == "target_tokens_per_s" { speed = $2 }
                    $1 == "peak_rss_mib" { peak = $2 }
                    END { printf "%s\t%s\t%s\t%.2f\t%.0f\n", varied, value, threads, 1e6 / speed, peak }' \
                "$work/report" >>"$directory/growth.tsv.new"
        done
    done
done
for count in $pairs; do
    "$program" generate data/toy/grammar.yaml -o "$work/data" --pairs "$count" --quiet >&2
    for threads in 1 2; do
        echo "growth: $count pairs, $threads threads" >&2
        /usr/bin/time -f %M -o "$work/kib" "$program" train configs/toy_translate.yaml --quiet --overwrite \
            --threads $threads --set data.dir="$work/data" --set training.model_dir="$work/model" \
            --set training.max_steps=400 --set training.validate_every=400 --set training.validate_sentences=100
        awk -v value="$count" -v threads="$threads" -v kib="$(cat "$work/kib")" '
            END { printf "pairs in the corpus\t%s\t%s\t%.2f\t%.0f\n", value, threads, 1e6 / $3, kib / 1024 }' \
            "$work/model/times.tsv" >>"$directory/growth.tsv.new"
    done
    rm -r "$work/data"
done
mv "$directory/growth.tsv.new" "$directory/growth.tsv"

sh "$(dirname "$0")/growth_chart.sh" "$directory"
echo "growth: $directory/growth.tsv and growth.svg are written" >&2
