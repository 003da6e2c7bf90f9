#!/usr/bin/env python3
"""Makes tests/fixtures/metrics/*.json: what sacreBLEU, NumPy and SciPy say, for the tests of the metrics.

    pip install sacrebleu scipy
    python3 scripts/make_metric_fixtures.py

text.json        made-up lines, easy and hostile, with BLEU and chrF under many settings
resampling.json  two made-up systems with confidence intervals and p-values (drawn, so compared loosely)
statistics.json  exact sign-flip tests, adjusted p-values, alignment error rates

The seed is fixed, so the same versions write the same files.
"""
import json
import logging
import pathlib
import random

import numpy as np
import scipy.stats
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "metrics"
RANDOM = random.Random(20240607)

PLAIN = "the a red old cat dog tree boat sees finds likes under near with and or slowly The Red Dog".split()
HOSTILE = [
    "dog,", "3.5", "1,000", "-5", "5-6", "x-y", '"so"', "&quot;so&quot;", "&amp;lt;", "&lt;", "<skipped>",
    "(hi)", "[x]", "a.b", "a..b", ".", "...", ",,", "-", "--", "$5", "\u20ac5", "it's", "10%", "50\u00b0",
    "a/b", "a_b", "^", "`", "~", "{", "|", "\\", "\u03a3\u0391\u03a3", "\u1f48\u03a3.", "a\u03a3.b",
    "\u0130stanbul", "Stra\u00dfe", "\u01c5", "\u00e9", "e\u0301", "\ufb01", "\u6f22\u5b57",
    "\u65e5\u672c\u3002", "\u0928\u092e\u0938\u094d\u0924\u0947", "\U0001f469\u200d\U0001f467",
    "\u05e9\u05dc\u05d5\u05dd", "\u0663", "\u00bd", "\u2167", "x\u00b2", "\u200b", "\ufeff", "a\u00adb",
    "\u2026", "\u00abno\u00bb", "\u00bfsi?", "\u201cx\u201d", "\u2018y\u2019", "U.S.", "\x00", "\x7f",
    "\u00aa\u03a3", "\U0001f130\u03a3",
]
BLANKS = [" "] * 14
BLANKS += ["  ", "\t", "\u00a0", "\u2028", "\u3000", "\x1c", "\x1f", "\x85", "\u1680", "\r", "\x0b", "\x0c", ""]


def line():
    kind = RANDOM.random()
    if kind < 0.06:
        return RANDOM.choice(["", " ", "\u00a0\u2003"])
    if kind < 0.16:
        return "".join(RANDOM.choice("ab.,-1 ") for _ in range(RANDOM.randint(1, 16)))
    words = PLAIN if kind < 0.5 else PLAIN + HOSTILE if kind < 0.7 else HOSTILE
    text = "".join(RANDOM.choice(words) + RANDOM.choice(BLANKS) for _ in range(RANDOM.randint(1, 9)))
    return text + "\n" + RANDOM.choice(HOSTILE) + "-\nend" if RANDOM.random() < 0.04 else text


def changed(text, changes, words):
    parts = text.split(" ")
    for _ in range(changes):
        i = RANDOM.randrange(len(parts))
        kind = RANDOM.random()
        if kind < 0.4:
            parts[i] = RANDOM.choice(words)
        elif kind < 0.6:
            parts.insert(i, RANDOM.choice(words))
        elif kind < 0.8 and len(parts) > 1:
            del parts[i]
        else:
            parts[i] = parts[i].upper()
    return " ".join(parts)


def rounded(x):
    return round(float(x), 9)


def fields(signature):
    return str(signature).rsplit("|version:", 1)[0]


def bleu_case(hypotheses, references):
    smooth = RANDOM.choice(["exp", "exp", "floor", "add-k", "none"])
    value = RANDOM.choice([None, 0.05, 2.5]) if smooth in ("floor", "add-k") else None
    options = {
        "tokenize": RANDOM.choice(["13a", "13a", "none", "char", "intl"]),
        "smooth_method": smooth,
        "smooth_value": value,
        "lowercase": RANDOM.random() < 0.4,
        "effective_order": RANDOM.random() < 0.4,
    }
    bleu = BLEU(force=True, **options)
    score = bleu.corpus_score(hypotheses, references)
    sentences = [bleu.sentence_score(h, list(r)).score for h, *r in zip(hypotheses, *references)]
    return options | {
        "smooth_value": value or 0,
        "score": rounded(score.score),
        "precisions": [rounded(p) for p in score.precisions],
        "bp": rounded(score.bp),
        "sys_len": score.sys_len,
        "ref_len": score.ref_len,
        "sentences": [rounded(s) for s in sentences],
        "signature": fields(bleu.get_signature()),
    }


def chrf_case(hypotheses, references):
    options = {
        "char_order": RANDOM.choice([6, 6, 1, 8]),
        "word_order": RANDOM.choice([0, 0, 1, 2]),
        "beta": RANDOM.choice([2, 2, 1, 3]),
        "lowercase": RANDOM.random() < 0.3,
        "whitespace": RANDOM.random() < 0.3,
        "eps_smoothing": RANDOM.random() < 0.3,
    }
    chrf = CHRF(**options)
    score = chrf.corpus_score(hypotheses, references)
    sentences = [chrf.sentence_score(h, list(r)).score for h, *r in zip(hypotheses, *references)]
    return options | {
        "name": score.name,
        "score": rounded(score.score),
        "sentences": [rounded(s) for s in sentences],
        "signature": fields(chrf.get_signature()),
    }


def text():
    groups = []
    for _ in range(40):
        count = RANDOM.choice([1, 3, 4])
        hypotheses = [line() for _ in range(count)]
        references = [
            [changed(h, RANDOM.randint(0, 3), PLAIN + HOSTILE) if RANDOM.random() < 0.8 else line() for h in hypotheses]
            for _ in range(RANDOM.choice([1, 1, 2, 3]))
        ]
        groups.append({
            "hypotheses": hypotheses,
            "references": references,
            "bleu": [bleu_case(hypotheses, references) for _ in range(4)],
            "chrf": [chrf_case(hypotheses, references) for _ in range(3)],
        })
    return groups


def resampling():
    references = [" ".join(RANDOM.choice(PLAIN) for _ in range(RANDOM.randint(4, 10))) for _ in range(80)]
    baseline = [changed(r, RANDOM.randint(0, 4), PLAIN) for r in references]
    other = [
        b if RANDOM.random() < 0.7 else changed(r, RANDOM.randint(0, 2), PLAIN) for b, r in zip(baseline, references)
    ]
    result = {"references": references, "baseline": baseline, "other": other}
    for test, samples in (("bs", 10000), ("ar", 10000)):
        systems = [("baseline", baseline), ("other", other)]
        metrics = {"BLEU": BLEU(), "CHRF": CHRF()}
        _, scores = PairedTest(systems, metrics, [references], test_type=test, n_samples=samples)()
        for name, (first, second) in ((k, v) for k, v in scores.items() if k != "System"):
            entry = result.setdefault(name, {})
            entry["p_" + test] = second.p_value
            if test == "bs":
                figures = {"baseline": first.score, "other": second.score, "mean": second.mean, "half_width": second.ci}
                entry |= {k: rounded(v) for k, v in figures.items()}
    return result


def sign_flip(differences, cluster):
    sums = np.bincount(cluster, weights=differences)
    exact = scipy.stats.permutation_test((sums,), np.sum, permutation_type="samples", n_resamples=np.inf)
    return {"differences": [rounded(d) for d in differences], "cluster": [int(c) for c in cluster], "p": exact.pvalue}


def holm(p):
    order = np.argsort(p, kind="stable")
    scaled = np.minimum(1, np.asarray(p)[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(scaled)
    return {"p": list(p), "adjusted": adjusted.tolist()}


def alignment():
    pairs = [(i, j) for i in range(6) for j in range(6)]
    possible = set(RANDOM.sample(pairs, RANDOM.randint(0, 10)))
    sure = {link for link in sorted(possible) if RANDOM.random() < 0.6}
    found = set(RANDOM.sample(sorted(possible) + pairs[:12], RANDOM.randint(0, 8)))
    size = len(found) + len(sure)
    return {
        "found": sorted(found, key=lambda _: RANDOM.random()),
        "gold": [[i, j, (i, j) in sure] for i, j in sorted(possible)],
        "row": [len(found & sure), len(found & possible), len(found), len(sure)],
        "aer": 1 - (len(found & sure) + len(found & possible)) / size if size else 0,
    }


def statistics():
    numbers = np.random.default_rng(7)
    flips = []
    for clusters, count in ((4, 9), (8, 8), (10, 40), (11, 25)):
        cluster = np.concatenate([np.arange(clusters), numbers.integers(clusters, size=count - clusters)])
        flips.append(sign_flip(np.round(numbers.normal(0.3, 1, count), 3), cluster))
    flips.append(sign_flip(np.array([1, 1, -1, 1, 1, 1, -1, 1, 0.0]), np.arange(9)))  # ties
    families = [holm(np.round(numbers.random(n) ** 3, 6).tolist()) for n in (1, 2, 5, 12)]
    families.append(holm([0.02, 0.02, 0.02, 0.9]))
    return {"sign_flip": flips, "holm": families, "alignments": [alignment() for _ in range(12)]}


def written(content):
    """JSON in ASCII, an entry a line, so that a change can be read."""
    one = lambda x: json.dumps(x, separators=(",", ":"))
    if isinstance(content, list):
        return "[\n" + ",\n".join(one(x) for x in content) + "\n]\n"
    return "{\n" + ",\n".join(f"{one(k)}:{one(v)}" for k, v in content.items()) + "\n}\n"


def main():
    logging.disable(logging.CRITICAL)
    OUT.mkdir(parents=True, exist_ok=True)
    for name, content in (("text", text()), ("resampling", resampling()), ("statistics", statistics())):
        (OUT / f"{name}.json").write_text(written(content))


if __name__ == "__main__":
    main()
