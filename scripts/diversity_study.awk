# The page of scripts/diversity_study.sh from its table: regularizer, weight, seed, figure, value.
#
# A regularizer is compared with none by the differences of runs with one seed: their mean, its 95 % interval by Student's
# t, and p, the share of all ways to flip the differences' signs that give a mean as far from 0 (Fisher 1935). Holm 1979
# corrects p over the comparisons of a figure.

BEGIN {
    split("0 12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262", quantile, " ") # of t, degrees of freedom + 1
    titles["removable"] = "share of heads removed before exact match falls by over one point"
    titles["exact_match"] = "exact match, test"
    titles["bleu"] = "BLEU, test"
    titles["perplexity"] = "perplexity, test"
    titles["aer"] = "AER of the best cross head"
    titles["js"] = "Jensen-Shannon distance of two heads"
    titles["output"] = "cosine of outputs"
    titles["output_squared"] = "its square"
    titles["subspace"] = "cosine of values"
    titles["position"] = "overlap of positions"
    titles["cka"] = "linear CKA"
    titles["effective_heads"] = "effective heads, of 4"
    titles["heads_with_role"] = "heads with a role"
    titles["kinds_of_roles"] = "kinds of roles"
}

FNR > 1 {
    if (!($1 in weight)) arm[++arms] = $1
    if (!($3 in seen)) seed[++seeds] = $3
    if (!($4 in known)) figure[++figures] = $4
    seen[$3] = known[$4] = 1
    weight[$1] = $2
    value[$1, $3, $4] = $5
}

function mean_of(a, f,    s, sum) {
    for (s = 1; s <= seeds; s++) sum += value[a, seed[s], f]
    return sum / seeds
}

# Fills mean, half (of the interval) and p of one comparison.
function compare(a, f,    s, d, square, ways, w, bits, sum, far) {
    mean[a, f] = square = far = 0
    for (s = 1; s <= seeds; s++) {
        d[s] = value[a, seed[s], f] - value["none", seed[s], f]
        mean[a, f] += d[s] / seeds
    }
    for (s = 1; s <= seeds; s++) square += (d[s] - mean[a, f]) ^ 2
    half[a, f] = quantile[seeds] * sqrt(square / (seeds - 1) / seeds)
    ways = 2 ^ seeds
    for (w = 0; w < ways; w++) {
        bits = w
        sum = 0
        for (s = 1; s <= seeds; s++) {
            sum += bits % 2 ? -d[s] : d[s]
            bits = int(bits / 2)
        }
        if (sum < 0) sum = -sum
        if (sum / seeds >= (mean[a, f] < 0 ? -mean[a, f] : mean[a, f]) * (1 - 1e-12)) far++
    }
    p[a, f] = far / ways
}

# Holm's correction of the comparisons first .. last of the list.
function holm(first, last,    i, k, done, best, largest, m) {
    m = last - first + 1
    for (i = 1; i <= m; i++) {
        best = 0
        for (k = first; k <= last; k++) if (!(k in done) && (!best || p[who[k], what[k]] < p[who[best], what[best]])) best = k
        done[best] = 1
        if (p[who[best], what[best]] * (m - i + 1) > largest) largest = p[who[best], what[best]] * (m - i + 1)
        adjusted[who[best], what[best]] = largest > 1 ? 1 : largest
    }
}

function row(f,    a, line) {
    line = "| " titles[f] " | " sprintf("%.4g", mean_of("none", f))
    for (a = 2; a <= arms; a++) {
        line = line " | " sprintf("%.4g", mean_of(arm[a], f))
        if (!quick) line = line sprintf(" (%+.3g, %+.3g to %+.3g, p %.3f)", mean[arm[a], f], mean[arm[a], f] - half[arm[a], f], mean[arm[a], f] + half[arm[a], f], adjusted[arm[a], f])
    }
    print line " |"
}

function table(from, to,    a, i, head, rule) {
    head = "| figure | none"
    rule = "|---|---"
    for (a = 2; a <= arms; a++) {
        head = head " | " arm[a]
        rule = rule "|---"
    }
    print head " |"
    print rule "|"
    for (i = from; i <= to; i++) row(figure[i])
    print ""
}

function verdict(a, f) {
    if (adjusted[a, f] > 0.05) return "no difference that eight seeds can tell from chance"
    return sprintf("%s by %.3g (95 %% interval %.3g to %.3g, p %.3f)", mean[a, f] > 0 ? "larger" : "smaller",
                   mean[a, f] < 0 ? -mean[a, f] : mean[a, f], mean[a, f] - half[a, f], mean[a, f] + half[a, f], adjusted[a, f])
}

function how_strong(    line, w) {
    print "## How strong\n"
    print "Weights were chosen on another seed: the largest that costs at most one point of exact match on the validation set.\n"
    print "| regularizer | weight | exact match, validation | |"
    print "|---|---|---|---|"
    while ((getline line < weights) > 0) {
        split(line, w, " ")
        printf "| %s | %s | %.1f %% | %s |\n", w[1], w[2], 100 * w[3], (w[1] in weight) && weight[w[1]] == w[2] ? "taken" : ""
    }
}

END {
    if (!quick) {
        for (i = 1; i <= figures; i++)
            for (a = 2; a <= arms; a++) {
                compare(arm[a], figure[i])
                who[++n] = arm[a]
                what[n] = figure[i]
            }
        for (i = 1; i <= n; i += arms - 1) holm(i, i + arms - 2)
    }
    print "# What pushing heads apart changes\n"
    if (quick) print "**A trial with short trainings of two seeds: it shows that the steps work, and claims nothing.**\n"
    print "Made by `scripts/diversity_study.sh`, which says how; every run's figures stand in `" (quick ? "study.tsv" : "diversity_study.tsv") "`.\n"
    print "The toy (`configs/toy_translate.yaml`, 24 heads) is trained with " seeds " seeds, each without a regularizer, with the"
    print "output term and the position term of Li et al. 2018 (`training.head_diversity`; position with an entropy term of 0.3),"
    print "and with DropHead (`training.drop_head`, Zhou et al. 2020). Runs of one seed begin with the same weights and see the data"
    print "in the same order. The primary outcome was declared before any run: the share of heads that can be removed, the least"
    print "important first (`heads prune`), before exact match on the test set falls by more than one point.\n"
    if (!quick) how_strong()
    print "\n## Primary outcome\n"
    if (!quick) {
        print "Means over seeds; in brackets the difference to none, paired by seed, its 95 % interval (of this"
        print "comparison alone), and p by sign flips after Holm's correction over the three comparisons.\n"
    }
    table(1, 1)
    if (!quick) {
        for (a = 2; a <= arms; a++) print "- " arm[a] ": " verdict(arm[a], "removable") "."
        print ""
    }
    print "## Everything else\n"
    if (!quick) print "As above, a line at a time: with so many lines some p will be small by chance; they are to look further from.\n"
    table(2, figures)
    print "Diversity is that of `heads diversity` on the test set: means over pairs of heads of one layer, then over layers. Roles"
    print "are those that `heads roles` finds."
}
