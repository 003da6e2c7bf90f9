#!/bin/sh
# How many heads does a trained model need? Closes heads of converged models by L0 gates (training.head_l0; Louizos et al.
# 2018, Voita et al. 2019) beside greedy pruning by importance, for several seeds.
#
#   sh scripts/gates_of_seeds.sh MODEL...        such as models/diversity_study/none-0-1 none-0-2 none-0-3
#   ... -o DIR      where models and figures go (models/gates_of_seeds); DIR/gates.md is the table
#   ... --steps N   of each training with gates (1200)
#
# From each model gates are trained at several prices of an open head. Of those that keep exact match on the validation set
# within a point of the model's, the one with the fewest open heads counts; the test set is only reported. Greedy pruning
# is measured by its own rule, on the test set, without further training. It can be stopped at any moment: the same command goes on. HEADWISE names the program (bin/headwise).
set -e

headwise=${HEADWISE:-bin/headwise}
usage() { echo "usage: sh scripts/gates_of_seeds.sh [-o DIR] [--steps N] MODEL..." >&2; exit 2; }
dir=models/gates_of_seeds steps=1200
prices="0.003 0.01 0.015 0.02"
while [ $# -gt 0 ]; do
    case $1 in
    -o | --steps)
        [ $# -ge 2 ] || usage
        case $1 in
        -o) dir=$2 ;;
        --steps) steps=$2 ;;
        esac
        shift 2
        ;;
    -*) usage ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || usage
case $steps in '' | *[!0-9]*) usage ;; esac
mkdir -p "$dir"

# "key": NUMBER in a page of JSON -> the first such number.
number() { sed -n "s/^ *\"$1\": \([-+0-9.e]*\),*$/\1/p" | head -n 1; }

# MODEL: its exact match on the validation set and on the test set.
exact_match() {
    valid=$(sed -n 's/^  valid: "*\([^"]*\)"*$/\1/p' "$1/config.yaml")
    printf '%s\t%s' "$($headwise evaluate "$1" --data "$valid" --json --quiet | number exact_match)" \
        "$($headwise evaluate "$1" --json --quiet | number exact_match)"
}

# MODEL NAME PRICE: a line of both exact matches and open heads, into $dir/NAME-PRICE.tsv.
close_heads() {
    out=$dir/$2-$3
    [ -s "$out.tsv" ] && return
    $headwise train "$1/config.yaml" --quiet --set training.init_from="$1" --set training.model_dir="$out" \
        --set training.head_l0.weight="$3" --set training.learning_rate=1e-3 --set training.max_steps="$steps" \
        --set training.warmup_steps=100 --set training.validate_every=0 --set training.track_heads=0
    exact=$(exact_match "$out")
    open=$(awk -F '\t' 'NR > 1 && $2 > 0 { n++ } END { print n + 0 }' "$out/gates.tsv")
    printf '%s\t%s\t%s\t%s\n' "$2" "$3" "$exact" "$open" >"$out.new"
    mv "$out.new" "$out.tsv"
}

for model in "$@"; do
    name=$(basename "$model")
    for price in $prices; do close_heads "$model" "$name" "$price"; done
    if [ ! -s "$dir/$name.tsv" ]; then
        exact=$(exact_match "$model")
        $headwise heads prune "$model" --json --quiet >"$dir/prune.json"
        printf '%s\t%s\t%s\t%s\n' "$name" "$exact" "$(number network_heads <"$dir/prune.json")" \
            "$(number spare <"$dir/prune.json")" >"$dir/model.new"
        rm "$dir/prune.json"
        mv "$dir/model.new" "$dir/$name.tsv"
    fi
done

{
    echo "| model | exact match | heads | left by greedy pruning | left by L0 gates | their price | exact match then |"
    echo "|---|---|---|---|---|---|---|"
    for model in "$@"; do
        name=$(basename "$model")
        for price in $prices; do cat "$dir/$name-$price.tsv"; done | awk -F '\t' -v base="$(cat "$dir/$name.tsv")" '
            BEGIN { split(base, b, "\t"); best = "" }
            $3 >= b[2] - 0.01 - 1e-9 && (best == "" || $5 < best) { best = $5; price = $2; exact = $4 }
            END {
                printf "| %s | %.1f %% | %d | %d | ", b[1], 100 * b[3], b[4], b[4] - b[5]
                if (best == "") print "none keeps within a point | | |"
                else printf "%d | %s | %.1f %% |\n", best, price, 100 * exact
            }'
    done
} >"$dir/gates.md"
cat "$dir/gates.md"
