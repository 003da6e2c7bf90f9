#!/bin/sh
# Holds the speed and memory of Headwise against PyTorch (training) and CTranslate2 (translation), doing the same work:
#
#     sh scripts/compare_peers.sh [OPTION]... PYTHON PEERS [DATA]
#
#     PYTHON     a Python that has torch, transformers and ctranslate2
#     PEERS      the directory of torch_train.py and ctranslate2_decode.py, which print a line of JSON
#     DATA       the directory of train.en.gz, train.fr.gz, test.2016.en.gz and test.2016.fr.gz, words apart by blanks
#                (PEERS/../data/multi30k_bpe, where the peers' scripts look)
#     -r ROWS    only these rows, separated by commas; -r list lists them
#     -n N       how often each side runs (3); the median counts
#     -t N       threads (2)
#     -o FILE    where every single run is written, as TSV (build/compare_peers.tsv); messages go to FILE.log
#
# Both sides run alternately, ours, peer, ours, peer ..., since a machine's speed drifts. Prints TSV: row, what each
# side reached (target tokens/s, or ms where less is better), their ratio, what was to be reached, the share of the
# roof, peak memory of both in MiB. docs/benchmarks.md tells what is measured and why so.
set -eu

# row | measured | `headwise bench` of | the peer's words | at least | aim
rows='
train-tiny | speed | train tiny TRAIN THREADS | torch tiny TRAIN THREADS | 2.5 | 3
train-tiny-bf16 | speed | train tiny TRAIN THREADS | torch tiny TRAIN --bf16 THREADS |  |
train-toy | speed | train toy TRAIN THREADS | torch toy TRAIN THREADS | 3.5 | 4.5
train-toy-data | speed | train toy TOY --batch-tokens 1024 THREADS | torch toy TOY --max-tokens 1024 --steps 60 THREADS | 4 | 5.5
train-small | speed | train small TRAIN --steps 4 THREADS | torch small TRAIN --steps 4 THREADS |  |
train-base | speed | train base TRAIN --steps 3 THREADS | torch base TRAIN --steps 3 THREADS | 1.35 | 1.5
train-base-bf16 | speed | train base TRAIN --steps 3 THREADS | torch base TRAIN --steps 3 --bf16 THREADS |  |
threads-toy | speed | train toy TRAIN --threads 2 | ours train toy TRAIN --threads 1 | 1.85 |
threads-tiny | speed | train tiny TRAIN --threads 2 | ours train tiny TRAIN --threads 1 | 1.85 |
threads-base | speed | train base TRAIN --steps 3 --threads 2 | ours train base TRAIN --steps 3 --threads 1 | 1.85 |
decode-toy | speed | decode toy TEST THREADS | ct2 toy TEST THREADS | 1.7 | 2.2
decode-tiny | speed | decode tiny TEST THREADS | ct2 tiny TEST THREADS | 1.7 | 2.2
decode-toy-beam | speed | decode toy TEST --beam 5 THREADS | ct2 toy TEST --beam 5 THREADS | 1.6 | 2
decode-tiny-beam | speed | decode tiny TEST --beam 5 THREADS | ct2 tiny TEST --beam 5 THREADS | 1.6 | 2
decode-base | speed | decode base TEST THREADS | ct2 base TEST THREADS | 1.5 | 1.65
decode-base-beam | speed | decode base TEST --beam 5 THREADS | ct2 base TEST --beam 5 THREADS | 1.2 | 1.35
decode-base-int8 | speed | decode base TEST THREADS | ct2 base TEST --compute int8 THREADS |  |
latency-toy | time | latency toy TEST --threads 1 | ct2 toy TEST --batch 1 --threads 1 | 1.6 | 2.5
latency-tiny | time | latency tiny TEST --threads 1 | ct2 tiny TEST --batch 1 --threads 1 | 1.5 | 2
latency-base | time | latency base TEST --sentences 64 --threads 1 | ct2 base TEST --batch 1 --sentences 64 --threads 1 | 1.15 | 1.6
latency-base-int8 | time | latency base TEST --sentences 64 --threads 1 | ct2 base TEST --batch 1 --sentences 64 --compute int8 --threads 1 |  |
start-toy | time | start | ct2 start |  |
'

usage() { sed -n '2,18s/^# \{0,1\}//p' "$0"; }

fail()
{
    echo "compare_peers: $*" >&2
    exit 2
}

wanted='' repeats=3 threads=2 record=build/compare_peers.tsv
while getopts r:n:t:o:h option; do
    case $option in
    r) wanted=$OPTARG ;;
    n) repeats=$OPTARG ;;
    t) threads=$OPTARG ;;
    o) record=$OPTARG ;;
    h) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
names=$(echo "$rows" | awk -F'|' 'NF > 1 { gsub(/ /, "", $1); print $1 }')
if [ "$wanted" = list ]; then
    echo "$names"
    exit 0
fi
if [ $# -lt 2 ] || [ $# -gt 3 ]; then
    usage >&2
    exit 2
fi
for number in "$repeats" "$threads"; do
    case $number in
    '' | 0* | *[!0-9]*) fail "-n and -t take a number from 1 on, not '$number'" ;;
    esac
done
for name in $(echo "$wanted" | tr , ' '); do
    echo "$names" | grep -qx "$name" || fail "there is no row $name; -r list lists them"
done

python=$1 peers=$2 data=${3:-$2/../data/multi30k_bpe}
top=$(dirname "$0")/..
headwise=$top/bin/headwise toy=$top/data/toy
[ -x "$headwise" ] || fail "there is no $headwise; run make first"
for script in torch_train.py ctranslate2_decode.py; do
    [ -f "$peers/$script" ] || fail "there is no $peers/$script; PEERS is the directory of the peers' scripts"
done
"$python" -c 'import torch, transformers, ctranslate2' 2>/dev/null ||
    fail "$python cannot import torch, transformers and ctranslate2. To make one that can: python3 -m venv DIR &&" \
        "DIR/bin/pip install torch transformers ctranslate2; PYTHON is then DIR/bin/python"
for file in train.en.gz train.fr.gz test.2016.en.gz test.2016.fr.gz; do
    [ -f "$data/$file" ] || fail "there is no $data/$file; DATA is the directory of the text"
done

# The words for a side, a line each, with the capitals replaced by what stands for them.
expand()
{
    side=$1
    for word in "$@"; do
        case "$side $word" in
        "ct2 TEST") ;; # it reads these files by itself
        *" TRAIN") printf '%s\n' --source "$data/train.en.gz" --target "$data/train.fr.gz" ;;
        *" TEST") printf '%s\n' --source "$data/test.2016.en.gz" --target "$data/test.2016.fr.gz" --vocabulary 9537 ;;
        *" TOY") printf '%s\n' --source "$toy/train.en" --target "$toy/train.fr" ;;
        *" THREADS") printf '%s\n' --threads "$threads" ;;
        *) printf '%s\n' "$word" ;;
        esac
    done
}

# The median time in which a command translates its first sentence, as JSON, from start to end.
time_start()
{
    "$python" -c '
import json, statistics, subprocess, sys, time
times = []
for _ in range(11):
    begun = time.perf_counter()
    subprocess.run(sys.argv[1:], input=b"my kings often dance\n", stdout=subprocess.DEVNULL, check=True)
    times.append(time.perf_counter() - begun)
print(json.dumps({"target_tokens_per_s": 0, "ms_per_sentence": 1000 * statistics.median(times[1:])}))' "$@"
}

# Runs a side, which prints JSON.
run()
{
    side=$1
    words=$(expand "$@" | tail -n +2)
    IFS=$newline
    # shellcheck disable=SC2086
    case "$side $words" in
    "ours start") time_start "$headwise" translate "$top/models/toy" ;;
    *" start") time_start "$python" -c 'import ctranslate2' ;; # not even a model loaded
    ours*) "$headwise" bench $words --json --quiet ;;
    torch*) "$python" "$peers/torch_train.py" $words | tail -n 1 ;;
    ct2*) "$python" "$peers/ctranslate2_decode.py" $words | tail -n 1 ;;
    esac
}

# The JSON on standard input as: figure, share of the roof, peak memory.
figures()
{
    "$python" -c '
import json, sys
r = json.load(sys.stdin)
speed = r["target_tokens_per_s"]
time = r.get("ms_per_sentence", r.get("median_ms_a_batch", 0))
print(time if sys.argv[1] == "time" else speed, r.get("roof_share", ""), r.get("peak_rss_mib", ""), sep="\t")' "$1"
}

median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }

column() { awk -F'\t' -v row="$1" -v side="$2" -v c="$3" '$1 == row && $2 == side { print $c }' "$record" | median; }

newline='
'
mkdir -p "$(dirname "$record")"
log=$record.log
printf 'row\tside\tfigure\troof_share\tpeak_mib\n' >"$record"
printf 'row\tmeasured\tours\tpeer\tratio\tat_least\taim\troof_share\tours_mib\tpeer_mib\n'
echo "$rows" | while IFS='|' read -r name measured ours peer least aim; do
    name=$(echo "$name" | tr -d ' ') measured=$(echo "$measured" | tr -d ' ') least=$(echo "$least" | tr -d ' ')
    [ -n "$name" ] || continue
    case ",$wanted," in
    ,, | *",$name,"*) ;;
    *) continue ;;
    esac
    i=0
    while [ $i -lt "$repeats" ]; do
        # shellcheck disable=SC2086
        a=$(run ours $ours </dev/null 2>"$log" | figures "$measured" 2>>"$log") || fail "$name: bench $ours failed, see $log"
        # shellcheck disable=SC2086
        b=$(run $peer </dev/null 2>"$log" | figures "$measured" 2>>"$log") || fail "$name: $peer failed, see $log"
        printf '%s\tours\t%s\n%s\tpeer\t%s\n' "$name" "$a" "$name" "$b" >>"$record"
        i=$((i + 1))
    done
    a=$(column "$name" ours 3) b=$(column "$name" peer 3)
    ratio=$(awk -v a="$a" -v b="$b" -v m="$measured" 'BEGIN { printf "%.2f", m == "time" ? b / a : a / b }')
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t' "$name" "$measured" "$a" "$b" "$ratio" "$least" "${aim# }"
    printf '%s\t%s\t%s\n' "$(column "$name" ours 4)" "$(column "$name" ours 5)" "$(column "$name" peer 5)"
done
