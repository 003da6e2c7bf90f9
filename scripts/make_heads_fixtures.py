#!/usr/bin/env python3
"""Makes tests/fixtures/heads/*.json: what NumPy and SciPy say, for the tests of the head study.

    pip install numpy scipy
    python3 scripts/make_heads_fixtures.py

attention.json   blocks of attention over tokens, and what they are between words: matrices, by weights and norms, and their statistics
ibm1.json        IBM model 1: probabilities after some iterations, and links
statistics.json  bootstrap intervals of ratios and alignment error rates (the library's own draws, made again here), p-values of
                 paired differences, Holm's correction

The seed is fixed, so the same versions write the same files.
"""
import itertools
import json
import pathlib

import numpy as np
import scipy.stats

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "heads"
RANDOM = np.random.default_rng(20240711)

# ---- the library's random numbers: Philox4x32-10 (Salmon et al. 2011) ------------------------------------------------


def philox(key, counter):
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    c = list(counter)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k1, a & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def draws(seed, stream, bound, count):
    """count numbers below bound, as hw_random_below draws them."""
    surplus, position, out = (1 << 64) % bound, 0, []
    while len(out) < count:
        block = philox(seed, [position // 4, 0, stream, 0])
        bits = block[position % 4] << 32 | block[position % 4 + 1]
        position += 2
        if bits >= surplus:
            out.append(bits % bound)
    return out


# ---- attention -------------------------------------------------------------------------------------------------------

# name: (step's row, first key column, causal, keys are the queries' own sentence)
PLACES = {
    "encoder": (0, 0, False, True),
    "decoder fed": (1, 1, True, True),
    "decoder predicted": (0, 1, True, True),
    "cross fed": (1, 0, False, False),
    "cross predicted": (0, 0, False, False),
}


def sentence(sizes, punctuation):
    """Words of these numbers of tokens."""
    return {"sizes": sizes, "punctuation": [bool(i in punctuation) for i in range(len(sizes))]}


def joiner(sizes, first, special_behind):
    """[tokens and special, words and special]: which tokens a word sums."""
    tokens, words = sum(sizes), len(sizes)
    m = np.zeros((tokens + 1, words + 1))
    special = (tokens, words) if special_behind else (0, 0)
    m[special] = 1
    t = 0
    for w, size in enumerate(sizes):
        for _ in range(size):
            m[first + t, first + w] = 1
            t += 1
    return m


def between_words(block, query, key, row, first):
    sums = block @ joiner(key["sizes"], first, first == 0)
    ends = np.cumsum(query["sizes"])
    return np.array([sums[row + end - size:row + end].mean(axis=0) for end, size in zip(ends, query["sizes"])])


def statistics(a, visible, query, key, first):
    words = len(key["sizes"])
    special = 0 if first else words
    place = np.arange(words + 1) - first
    is_punctuation = np.zeros(words + 1, bool)
    is_punctuation[first:first + words] = key["punctuation"]
    s = {k: 0.0 for k in ("entropy relative confidence distance first last self punct special at_special").split()}
    s["queries"], s["choices"], s["offsets"] = 0.0, 0.0, [0.0] * 19
    for q, (whole, n) in enumerate(zip(a, visible)):
        p = whole[:n]
        entropy = scipy.stats.entropy(p)
        s["queries"] += 1
        s["entropy"] += entropy
        if n > 1:
            s["choices"] += 1
            s["relative"] += entropy / np.log(n)
        is_word = np.arange(n) != special
        s["confidence"] += p[is_word].max() if is_word.any() else 0
        s["distance"] += np.sum(p * np.abs(place[:n] - q))
        s["first"] += p[0]
        s["last"] += p[words] if n == words + 1 else 0
        s["self"] += p[first + q] if first + q < n else 0
        s["punct"] += p[is_punctuation[:n]].sum()
        s["special"] += p[special] if special < n else 0
        best = int(p.argmax())
        if best == special:
            s["at_special"] += 1
        else:
            offset = int(np.clip(place[best] - q, -9, 9))
            s["offsets"][offset + 9] += 1
    return s


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def attention_case(name, query, key):
    row, first, causal, own = PLACES[name]
    key = query if own else key
    rows, cols = sum(query["sizes"]) + 1, sum(key["sizes"]) + 1
    scores = RANDOM.normal(0, 2, (rows, cols))
    if causal:
        scores[np.triu_indices(rows, 1)] = -np.inf
    block = softmax(scores)
    norms = RANDOM.uniform(0.1, 3, cols)
    visible = [len(key["sizes"]) + 1] * len(query["sizes"])
    if causal:
        visible = [1 + w + int(row == 1 or size > 1) for w, size in enumerate(query["sizes"])]
    weights = between_words(block, query, key, row, first)
    arriving = between_words(block * norms, query, key, row, first)
    shares = arriving / arriving.sum(axis=1, keepdims=True)
    return {
        "place": name, "query": query, "key": key, "block": block.ravel().tolist(), "norms": norms.tolist(), "visible": visible,
        "weights": weights.ravel().tolist(), "shares": shares.ravel().tolist(), "arriving": float(arriving.sum()),
        "statistics": statistics(weights, visible, query, key, first),
        "statistics_by_norms": statistics(shares, visible, query, key, first),
    }


def attention():
    pairs = [
        (sentence([1, 1, 1, 1, 1], [2, 4]), sentence([1, 1, 1], [1])),                      # every word a token
        (sentence([2, 1, 3, 1], [1]), sentence([1, 4, 1, 2, 1], [0, 4])),                   # words in pieces
        (sentence([1], []), sentence([1], [])),                                             # one token
        (sentence([1] * 14 + [2], [3]), sentence([1] * 9 + [2] * 3, [11])),                 # offsets beyond 8
    ]
    return [attention_case(name, query, key) for query, key in pairs for name in PLACES]


# ---- IBM model 1 -----------------------------------------------------------------------------------------------------


def ibm1():
    sources, targets, iterations = 6, 7, 5
    pairs = [([int(x) for x in RANDOM.integers(0, sources, RANDOM.integers(1, 6))],
              [int(x) for x in RANDOM.integers(0, targets, RANDOM.integers(1, 6))]) for _ in range(25)]
    together = np.zeros((sources + 1, targets), bool)          # row 0: the empty word
    for source, target in pairs:
        together[np.ix_([0] + [s + 1 for s in source], target)] = True
    t = together.astype(float)
    for _ in range(iterations):
        counts = np.zeros_like(t)
        for source, target in pairs:
            rows = np.array([0] + [s + 1 for s in source])
            for f in target:
                posterior = t[rows, f] / t[rows, f].sum()
                np.add.at(counts, (rows, f), posterior)
        totals = counts.sum(axis=1, keepdims=True)
        t = np.divide(counts, totals, out=np.zeros_like(t), where=totals > 0)
    links = []
    for source, target in pairs:
        rows = [0] + [s + 1 for s in source]
        links.append([int(t[rows, f].argmax()) - 1 for f in target])   # argmax: the first among equals, the empty word first
    return {"iterations": iterations, "pairs": pairs, "t": t.tolist(), "links": links}


# ---- statistics ------------------------------------------------------------------------------------------------------


def bootstrap(rows, score, trials, seed):
    scores = []
    for trial in range(trials):
        sample = rows[draws(seed, trial, len(rows), len(rows))]
        scores.append(score(sample.sum(axis=0)))
    scores = np.sort(scores)
    return {"rows": rows.tolist(), "trials": trials, "seed": seed, "estimate": float(score(rows.sum(axis=0))),
            "low": float(scores[trials // 40]), "high": float(scores[trials - trials // 40 - 1])}


def aer(s):
    return 1 - (s[0] + s[1]) / (s[2] + s[3])


def aer_rows(count):
    rows = []
    for _ in range(count):
        found, sure = RANDOM.integers(1, 12), RANDOM.integers(1, 10)
        hits = RANDOM.integers(0, min(found, sure) + 1)
        rows.append([hits, RANDOM.integers(hits, found + 1), found, sure])
    return np.array(rows, float)


def paired(differences):
    d = np.array(differences)
    d = d[d != 0]
    if d.sum() <= 0:
        p = 1.0
    elif len(d) <= 14:
        sums = [abs(np.dot(signs, d)) for signs in itertools.product([-1, 1], repeat=len(d))]
        p = float(np.mean(np.array(sums) >= d.sum() - 1e-12 * np.abs(d).sum()))
    else:
        p = float(2 * scipy.stats.norm.sf(d.sum() / np.sqrt((d ** 2).sum())))
    return {"differences": [float(x) for x in differences], "p": p}


def holm(p):
    order, adjusted, largest = np.argsort(p, kind="stable"), np.zeros(len(p)), 0.0
    for i, k in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - i) * p[k]))
        adjusted[k] = largest
    return {"p": [float(x) for x in p], "adjusted": adjusted.tolist()}


def statistics_file():
    cases = RANDOM.integers(1, 8, 60)
    hits = np.array([RANDOM.integers(0, n + 1) for n in cases])
    few = RANDOM.integers(-2, 4, 9)
    return {
        "ratio": bootstrap(np.stack([hits, cases], axis=1).astype(float), lambda s: s[0] / s[1], 200, 7),
        "aer": bootstrap(aer_rows(40), aer, 200, 7),
        "paired": [paired(few), paired(RANDOM.normal(0.3, 1, 12)), paired(RANDOM.normal(0.2, 1, 200)), paired([1.0] * 300),
                   paired(RANDOM.normal(-0.5, 1, 50)), paired([0.0] * 20), paired([2.0])],
        "holm": [holm(RANDOM.uniform(0, 0.1, 20)), holm(np.array([0.01, 0.01, 0.04, 0.03, 0.005])), holm(np.array([0.5]))],
    }


def write(name, data):
    (OUT / name).write_text(json.dumps(data) + "\n", encoding="utf-8")


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    write("attention.json", attention())
    write("ibm1.json", ibm1())
    write("statistics.json", statistics_file())
