#!/usr/bin/env python3
"""Makes tests/fixtures/heads/diversity.json: what NumPy and SciPy say of how different heads are.

    pip install numpy scipy
    python3 scripts/make_diversity_fixtures.py

distances  rows of weights and their Jensen-Shannon distance (base 2); cka  outputs of heads, their linear CKA and its effective
number; scaling  distances, places in two dimensions by classical scaling, and the share of the positive eigenvalues they show

The seed is fixed, so the same versions write the same file.
"""
import json
import pathlib

import numpy as np
from scipy.spatial.distance import jensenshannon

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "heads"
RANDOM = np.random.default_rng(8)


def distances():
    rows = [np.array(x, dtype=float) for x in ([1, 0, 0, 0], [0, 1, 0, 0], [.25] * 4, [.5, .5, 0, 0])]
    rows += [RANDOM.dirichlet([a] * 4) for a in (0.1, 0.5, 1, 5)]
    rows.append(rows[-1] + np.array([1, -1, 0, 0]) * 1e-6)
    matrix = [[float(jensenshannon(p, q, base=2)) if p is not q else 0.0 for q in rows] for p in rows]
    return {"rows": [r.tolist() for r in rows], "distances": matrix}


def linear_cka(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    return np.linalg.norm(y.T @ x) ** 2 / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))


def effective(similarity):
    values = np.clip(np.linalg.eigvalsh(similarity), 0, None)
    shares = values / values.sum()
    shares = shares[shares > 0]
    return float(np.exp(-(shares * np.log(shares)).sum()))


def cka():
    heads, width, rows = 5, 3, 40
    x = RANDOM.normal(1, 1, (rows, heads, width))
    turn, _ = np.linalg.qr(RANDOM.normal(size=(width, width)))
    x[:, 1] = 3 * x[:, 0] @ turn + 2  # the same up to rotation, scale and shift
    x[:, 2] += x[:, 0]
    matrix = np.array([[linear_cka(x[:, i], x[:, j]) for j in range(heads)] for i in range(heads)])
    return {"heads": heads, "width": width, "rows": x.reshape(rows, -1).tolist(), "cka": matrix.tolist(),
            "effective": effective(matrix)}


def scaling():
    n = 7
    points = RANDOM.normal(size=(n, 3))
    d = np.linalg.norm(points[:, None] - points[None], axis=2) ** 0.8
    centre = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ (d ** 2) @ centre)
    order = np.argsort(values)[::-1][:2]
    places = vectors[:, order] * np.sqrt(values[order])
    for k in range(2):
        if places[np.argmax(np.abs(places[:, k])), k] < 0:
            places[:, k] *= -1
    return {"distances": d.tolist(), "places": places.tolist(), "shown": float(values[order].sum() / values[values > 0].sum())}


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    data = {"distances": distances(), "cka": cka(), "scaling": scaling()}
    (OUT / "diversity.json").write_text(json.dumps(data) + "\n", encoding="utf-8")
