#!/usr/bin/env python3
"""Makes tests/fixtures/heads/compare.json: what NumPy and SciPy say where several runs are compared.

    pip install numpy scipy
    python3 scripts/make_compare_fixtures.py

student  t, degrees of freedom, two-sided p;  bounds  degrees of freedom, p, |t|
runs     figures of two kinds of runs: each mean with interval, their difference paired (where as many) and by Welch's test
assign   costs, null where a pair is not allowed, and the least sum of an assignment

The seed is fixed, so the same versions write the same file.
"""
import json
import pathlib

import numpy as np
from scipy import optimize, stats

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "heads" / "compare.json"
RANDOM = np.random.default_rng(11)


def student():
    return [[t, df, float(2 * stats.t.sf(abs(t), df))]
            for t in (0, 0.01, 0.7, -1.3, 2.365, 9, 60) for df in (1, 1.7, 4, 7, 30, 400)]


def bounds():
    return [[df, p, float(stats.t.isf(p / 2, df))] for df in (1, 2.5, 7, 14, 200) for p in (0.5, 0.05, 0.001)]


def difference(result):
    low, high = result.confidence_interval(0.95)
    return [float(low), float(high), float(result.pvalue)]


def runs():
    cases = []
    for n, m, scale in ((2, 2, 1), (3, 3, 0.01), (8, 8, 30), (5, 2, 1), (4, 9, 0.2)):
        a, b = RANDOM.normal(1, scale, n), RANDOM.normal(1.4, 3 * scale, m)
        case = {"a": a.tolist(), "b": b.tolist(), "mean": difference(stats.ttest_1samp(a, 0)),
                "welch": difference(stats.ttest_ind(b, a, equal_var=False)), "value": float(b.mean() - a.mean())}
        if n == m:
            case["paired"] = difference(stats.ttest_rel(b, a))
        cases.append(case)
    return cases


def assign():
    cases = []
    for rows, columns in ((1, 1), (2, 2), (4, 4), (8, 8), (3, 7), (7, 3), (12, 12)):
        cost = RANDOM.uniform(0, 1, (rows, columns)).round(2)  # with equal ones among them
        order, columns_of = optimize.linear_sum_assignment(cost)
        cases.append({"cost": cost.tolist(), "sum": float(cost[order, columns_of].sum())})
    return cases


def main():
    OUT.write_text(json.dumps({"student": student(), "bounds": bounds(), "runs": runs(), "assign": assign()}, indent=0) + "\n")


if __name__ == "__main__":
    main()
