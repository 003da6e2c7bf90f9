#!/bin/sh
# Do heads with the same roles grow from other seeds? Looks for some roles of the toy's in several models and says in how
# many of them a head has each, with scores, baselines and alignment error rates.
#
#   sh scripts/roles_of_seeds.sh MODEL...        models that are there, such as models/diversity_study/none-0-*
#   sh scripts/roles_of_seeds.sh --train N       trains N seeds first, into models/roles_of_seeds/SEED
#   ... --config FILE   of what is trained (configs/toy_translate.yaml)
#   ... -o PREFIX       writes PREFIX.md and PREFIX.tsv (docs/roles_of_seeds)
#
# It can be stopped at any moment: the same command goes on, since trainings resume and results are kept in the models.
# A head has a role as `headwise heads roles` says; of several the one is shown that is best on the validation set, and its
# figures are those of the test set. HEADWISE names the program (bin/headwise).
set -e

headwise=${HEADWISE:-bin/headwise}
usage() { echo "usage: sh scripts/roles_of_seeds.sh [--train N] [--config FILE] [-o PREFIX] [MODEL...]" >&2; exit 2; }
config=configs/toy_translate.yaml train=0 prefix=docs/roles_of_seeds
while [ $# -gt 0 ]; do
    case $1 in
    --train | --config | -o)
        [ $# -ge 2 ] || usage
        case $1 in
        --train) train=$2 ;;
        --config) config=$2 ;;
        -o) prefix=$2 ;;
        esac
        shift 2
        ;;
    -*) usage ;;
    *) break ;;
    esac
done
case $train in *[!0-9]*) usage ;; esac

seed=0
while [ $((seed += 1)) -le "$train" ]; do
    $headwise train "$config" --quiet --set training.seed=$seed --set training.model_dir=models/roles_of_seeds/$seed
    set -- "$@" "models/roles_of_seeds/$seed"
done
[ $# -gt 0 ] || usage

# ---- figures --------------------------------------------------------------------------------------------------------

# Attention, role, subset and step, and what they are called.
looked_for='encoder previous pieces - previous word, on pieces of names
encoder amod_inv all - adjective to its noun
encoder det_inv all - determiner to its noun
decoder quote all predicted closing quotation mark to its opening one, when predicted
cross aligned all predicted target word to the source words it is linked to, when predicted
decoder bracket all predicted closing bracket to its opening one, when predicted (only reported)'

seed_of() { awk '/^[a-z]/ { within = $1 == "training:" } within && $1 == "seed:" { print $2 }' "$1/config.yaml"; }

# MODEL: of each role the head that has it, or else the nearest, a line of TSV.
roles() {
    echo "$looked_for" >"$work/looked_for"
    $headwise heads roles "$1" --tsv --quiet >"$work/roles"
    awk -F '\t' -v OFS='\t' -v model="$1" -v seed="$(seed_of "$1")" '
        FNR == NR { split($0, x, " "); wanted[++n] = x[1] " " x[2] " " x[3] " " x[4]; title[n] = $0
            for (i = 0; i < 4; i++) sub(/^[^ ]* /, "", title[n]); next }
        FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        {
            split($at["name"], part, ".")
            key = (part[3] == "cross" ? "cross" : part[1]) " " $at["role"] " " $at["subset"] " " \
                ($at["step"] == "" ? "-" : $at["step"])
            rank = ($at["found"] == "true") * 2 + $at["selection_score"]
            if (key in best && rank <= best[key]) next
            best[key] = rank
            line[key] = $at["name"] OFS $at["score"] OFS $at["low"] OFS $at["high"] OFS $at["baseline"] OFS \
                $at["control"] OFS $at["p"] OFS $at["found"]
        }
        END { for (i = 1; i <= n; i++) if (wanted[i] in line) print seed, model, title[i], line[wanted[i]] }' \
        "$work/looked_for" "$work/roles"
}

# MODEL: the best head on the validation set and what it does on the test set; the baselines.
alignment() {
    $headwise heads align "$1" --json --quiet >"$work/align"
    awk -v OFS='\t' -v model="$1" -v seed="$(seed_of "$1")" '
        function value(line) { sub(/^[^:]*: "?/, "", line); sub(/"?,?$/, "", line); return line }
        /^  "best": / { best = 1 }
        /^  "baselines": / { base = 1 }
        best && /^    "/ { key = $1; gsub(/[":]/, "", key); x[key] = value($0) }
        /^  }/ { best = 0 }
        base && /"name"/ { name = value($0) }
        base && /"aer"/ { aer[name] = value($0) }
        base && /^  \]/ { base = 0 }
        END { print seed, model, "alignment error rate (" x["step"] ", " x["measure"] ")", x["name"], x["aer"], x["low"], \
            x["high"], aer["diagonal"], aer["ibm1"], "", "" }' "$work/align"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir -p "$(dirname "$prefix")"
{
    printf 'seed\tmodel\twhat\thead\tscore\tlow\thigh\tbaseline\tuntrained\tp\tfound\n'
    for model; do
        roles "$model"
        alignment "$model"
    done
} >"$work/table.tsv"

# ---- the page -------------------------------------------------------------------------------------------------------

awk -F '\t' '
    function range(low, high) { return sprintf(low == high ? "%.3f" : "%.3f to %.3f", low, high) }
    function widen(name, x) {
        if (!((name, "low") in ends) || x < ends[name, "low"]) ends[name, "low"] = x
        if (!((name, "high") in ends) || x > ends[name, "high"]) ends[name, "high"] = x
    }
    function spread(name) { return range(ends[name, "low"], ends[name, "high"]) }
    NR == 1 { next }
    !($2 in seen) { seen[$2]; order[++models] = $2; seed[$2] = $1 }
    $11 == "" { aer[$2] = sprintf("%.4f [%.4f, %.4f] | %s, %s", $5, $6, $7, $4, substr($3, 23, length($3) - 23))
        under += $5 < 0.1; widen("aer", $5); widen("diagonal", $8); widen("ibm1", $9); next }
    !($3 in at) { at[$3] = ++roles; title[roles] = $3 }
    {
        found[at[$3]] += $11 == "true"
        cell[at[$3], $2] = sprintf("%.3f [%.3f, %.3f], %s%s", $5, $6, $7, $4, $11 == "true" ? "" : " (not passed)")
        widen("score " at[$3], $5); widen("base " at[$3], $8); widen("untrained " at[$3], $9)
    }
    END {
        print "# Roles by seed\n"
        print "Of " models " model" (models > 1 ? "s" : "") " trained alike but for the seed, in how many a head has each role:",
            "it exceeds baseline and\nthe best head of three untrained copies by 10 points, significantly (paired test by",
            "sentence, Holm over the model).\nScores are of the head that is best on the validation set, on the test set;",
            "a range is over seeds. Written by\n`scripts/roles_of_seeds.sh`.\n"
        print "| role | found in | score | baseline | untrained |\n|---|---|---|---|---|"
        for (i = 1; i <= roles; i++)
            print "| " title[i] " | " found[i] " of " models " | " spread("score " i) " | " spread("base " i) " | " \
                spread("untrained " i) " |"
        print "\nAlignment error rate of the best head: under 10 % in " under " of " models ", " spread("aer") "; the diagonal has",
            spread("diagonal") ", IBM model 1\n" spread("ibm1") ".\n"
        print "Each seed, with 95 % intervals over sentences:\n"
        printf "| seed |"
        for (i = 1; i <= roles; i++) printf " %s |", title[i]
        print " AER | head, step, by |"
        printf "|---|"
        for (i = 1; i <= roles + 2; i++) printf "---|"
        print ""
        for (m = 1; m <= models; m++) {
            printf "| %s |", seed[order[m]]
            for (i = 1; i <= roles; i++) printf " %s |", cell[i, order[m]]
            print " " aer[order[m]] " |"
        }
    }' "$work/table.tsv" >"$work/page.md"
cp "$work/table.tsv" "$prefix.tsv"
cp "$work/page.md" "$prefix.md"
cat "$prefix.md"
