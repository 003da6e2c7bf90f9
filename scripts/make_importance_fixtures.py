#!/usr/bin/env python3
"""Makes tests/fixtures/heads/ranks.json: Spearman's rank correlations as SciPy has them, with and without equal values.

    pip install numpy scipy
    python3 scripts/make_importance_fixtures.py
"""
import json
import pathlib

import numpy as np
import scipy.stats

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "heads" / "ranks.json"
RANDOM = np.random.default_rng(20240712)


def case(x, y):
    return {"x": [float(v) for v in x], "y": [float(v) for v in y], "rho": float(scipy.stats.spearmanr(x, y).statistic)}


if __name__ == "__main__":
    x = RANDOM.normal(size=24)
    OUT.write_text(json.dumps([
        case(x, x + RANDOM.normal(size=24)),
        case(RANDOM.integers(0, 4, 30), RANDOM.integers(0, 3, 30)),      # many equal values
        case([1, 2, 3, 4, 5], [5, 4, 3, 2, 1]),
        case([0, 0, 0, 1, 2], [3, 3, 1, 3, 9]),
    ]) + "\n", encoding="utf-8")
