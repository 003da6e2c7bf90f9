#!/bin/sh
# What does pushing heads apart change? Trains the toy with 8 seeds, each with no regularizer, with the output term, the
# position term (with its entropy term) and DropHead, measures every model, and compares the three with none.
#
#   sh scripts/diversity_study.sh              the study; writes docs/diversity_study.md and .tsv
#   sh scripts/diversity_study.sh --quick      a trial of the same steps: short trainings, 2 seeds, no claims
#   ... -o DIR   where models and figures go (models/diversity_study, or models/diversity_quick)
#   ... --jobs N how many trainings run at a time, a thread each (all cores)
#
# It can be stopped at any moment: the same command goes on. Runs of one seed begin with the same weights and see the data
# in the same order. How strong each regularizer is was left to another seed: the largest of some weights that costs at
# most one point of exact match on the validation set. HEADWISE names the program (bin/headwise).
set -e

headwise=${HEADWISE:-bin/headwise}
config=configs/toy_translate.yaml
arms="none output position drophead"
seeds="1 2 3 4 5 6 7 8"
choosing=100 # the seed that weights are chosen on
quick='' dir='' one='' jobs=$(getconf _NPROCESSORS_ONLN)

while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=1 ;;
    --jobs) jobs=$2; shift ;;
    -o) dir=$2; shift ;;
    --one) one=$2; shift ;; # from this script itself: one run
    *) echo "usage: sh scripts/diversity_study.sh [--quick] [--jobs N] [-o DIR]" >&2; exit 2 ;;
    esac
    shift
done
if [ "$quick" ]; then
    seeds="1 2"
    dir=${dir:-models/diversity_quick} page=$dir
else
    dir=${dir:-models/diversity_study} page=docs
fi
length=
[ "$quick" ] && length="--set training.max_steps=500 --set training.warmup_steps=100 --set training.validate_every=250"
mkdir -p "$dir/figures"

# The options of an arm at a weight.
options() {
    case $1 in
    none) ;;
    output) echo "--set training.head_diversity.kind=output --set training.head_diversity.weight=$2" ;;
    position) echo "--set training.head_diversity.kind=position --set training.head_diversity.entropy=0.3" \
        "--set training.head_diversity.weight=$2" ;;
    drophead) echo "--set training.drop_head.rate=$2" ;;
    esac
}

# The weights that are tried for an arm; one of a trial.
weights() {
    case ${quick:+quick-}$1 in
    none | quick-none) echo 0 ;;
    quick-*) echo 0.2 ;;
    drophead) echo 0.05 0.1 0.2 ;;
    *) echo 0.1 0.3 1 ;;
    esac
}

# ---- one run --------------------------------------------------------------------------------------------------------

# ARM WEIGHT SEED: trains into $dir/ARM-WEIGHT-SEED, or goes on there.
train() {
    # shellcheck disable=SC2046,SC2086 # options are words
    $headwise train $config --quiet --threads 1 $length $(options "$1" "$2") --set training.seed="$3" \
        --set training.model_dir="$dir/$1-$2-$3" 2>>"$dir/log" || { echo "training $1-$2-$3 failed; see $dir/log" >&2; exit 1; }
}

# "key": NUMBER in a page of JSON -> all such numbers.
numbers() { sed -n "s/^ *\"$1\": \([-+0-9.e]*\),*$/\1/p"; }

# Column $1 of a table with a header, its mean.
column_mean() {
    awk -F '\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
        $at != "" { sum += $at; n++ } END { printf "%.17g\n", n ? sum / n : 0 }'
}

# A head's roles that were found -> how many heads have one, and how many kinds of roles there are.
roles() {
    awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["found"] == "true" { if (!($at["name"] in heads)) { heads[$at["name"]]; h++ } if (!($at["role"] in kinds)) { kinds[$at["role"]]; k++ } }
        END { printf "heads_with_role\t%d\nkinds_of_roles\t%d\n", h, k }'
}

# ARM WEIGHT SEED: figures of a model, a line each, into $dir/figures/ARM-SEED.
measure() {
    model=$dir/$1-$2-$3 out=$dir/figures/$1-$3
    [ -s "$out" ] && return
    set -- --quiet --threads 1
    $headwise evaluate "$model" --json "$@" >"$out.json"
    $headwise heads diversity "$model" --tsv "$@" >"$out.diversity"
    $headwise heads diversity "$model" --json "$@" >"$out.diversity.json"
    $headwise heads roles "$model" --tsv "$@" >"$out.roles"
    $headwise heads prune "$model" --json "$@" >"$out.prune.json"
    {
        printf 'removable\t%s\n' "$(numbers spare_share <"$out.prune.json")"
        for key in exact_match bleu perplexity aer; do printf '%s\t%s\n' $key "$(numbers $key <"$out.json" | head -n 1)"; done
        for key in js output output_squared subspace position cka; do
            printf '%s\t%s\n' $key "$(column_mean $key <"$out.diversity")"
        done
        printf 'effective_heads\t%s\n' "$(numbers effective_heads <"$out.diversity.json" | tail -n 1)"
        roles <"$out.roles"
    } >"$out.new"
    mv "$out.new" "$out"
}

if [ "$one" ]; then
    # shellcheck disable=SC2046,SC2086 # options are words
    set -- $(echo "$one" | tr / ' ')
    $1 "$2" "$3" "$4"
    echo "$1 $2 $3, seed $4: done" >&2
    exit 0
fi

# Lines train/ARM/WEIGHT/SEED or measure/... -> all of them, some at a time.
run_all() {
    HEADWISE=$headwise xargs -P "$jobs" -I RUN sh "$0" ${quick:+--quick} -o "$dir" --one RUN ||
        { echo "not all runs went well; the same command goes on" >&2; exit 1; }
}

# ---- how strong -----------------------------------------------------------------------------------------------------

# ARM WEIGHT -> the best exact match on the validation set with the choosing seed.
validated() { [ "$quick" ] || awk -F '\t' 'NR > 1 && $5 > best { best = $5 } END { print best + 0 }' "$dir/$1-$2-$choosing/valid.tsv"; }

if [ ! -s "$dir/weights" ]; then
    [ "$quick" ] || for arm in $arms; do for w in $(weights "$arm"); do echo "train/$arm/$w/$choosing"; done; done | run_all
    none=$(validated none 0)
    for arm in $arms; do
        for w in $(weights "$arm"); do
            exact=$(validated "$arm" "$w")
            echo "$arm $w ${exact:-0} $(awk -v e="$exact" -v n="$none" 'BEGIN { print (e >= n - 0.01 - 1e-9) }')"
        done
    done >"$dir/weights.new"
    mv "$dir/weights.new" "$dir/weights"
fi
# The largest weight that did no harm, else the smallest.
chosen() { awk -v arm="$1" '$1 == arm { if (!n++) w = $2; if ($4) w = $2 } END { print w }' "$dir/weights"; }

# ---- all runs, one table --------------------------------------------------------------------------------------------

for work in train measure; do
    for seed in $seeds; do for arm in $arms; do echo "$work/$arm/$(chosen "$arm")/$seed"; done; done | run_all
done
{
    printf 'regularizer\tweight\tseed\tfigure\tvalue\n'
    for arm in $arms; do
        for seed in $seeds; do
            awk -v arm="$arm" -v w="$(chosen "$arm")" -v seed="$seed" '{ printf "%s\t%s\t%s\t%s\t%s\n", arm, w, seed, $1, $2 }' \
                "$dir/figures/$arm-$seed"
        done
    done
} >"$dir/study.tsv"

# ---- what came out --------------------------------------------------------------------------------------------------

# Differences to none, paired by seed: mean, 95 % interval by Student's t, p by all sign flips, Holm over the family.
awk -F '\t' -v quick="$quick" -v weights="$dir/weights" -f scripts/diversity_study.awk "$dir/study.tsv" >"$dir/page.md"
if [ "$page" != "$dir" ]; then cp "$dir/study.tsv" "$page/diversity_study.tsv"; fi
cp "$dir/page.md" "$page/diversity_study.md"
echo "$page/diversity_study.md is written" >&2
