#!/usr/bin/env python3
"""Makes tests/fixtures/heads/probe.json: linear probes as NumPy has them, trained as src/heads/probe.c says (standardised
inputs, mean cross-entropy with weight decay, 150 steps of Adam from 0), how many test rows they get right, -log2 p of all
test labels, the online code length of the labels learnt from, and selectivity: by how much the share of right rows exceeds
that with control labels, a random one for each word type (Hewitt and Liang 2019).

    pip install numpy
    python3 scripts/make_probe_fixtures.py
"""
import json
import math
import pathlib

import numpy as np

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "heads" / "probe.json"
RANDOM = np.random.default_rng(20240713)
CONTROL = np.random.default_rng(5)


def softmax(s):
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def standard(x, mean, deviation):
    z = (x - mean) / deviation
    return np.hstack([z, np.ones((len(z), 1))])


def train(x, labels, classes, steps=150, rate=0.05, beta1=0.9, beta2=0.999, epsilon=1e-8, decay=2e-3):
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    deviation = np.where(deviation ** 2 > 1e-18, deviation, 1.0)
    z, y = standard(x, mean, deviation), np.eye(classes)[labels]
    w = np.zeros((z.shape[1], classes))
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t in range(1, steps + 1):
        g = z.T @ (softmax(z @ w) - y) / len(z)
        g[:-1] += decay * w[:-1]
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        w = w - rate * (m / (1 - beta1 ** t)) / (np.sqrt(v / (1 - beta2 ** t)) + epsilon)
    return lambda q: softmax(standard(q, mean, deviation) @ w)


def bits(p, labels):
    return float(-np.log2(p[np.arange(len(labels)), labels]).sum())


def code_length(x, labels, classes):
    total, known = 0.0, 0
    for share in (1, 2, 4, 8, 16, 32, 62.5, 125, 250, 500, 1000):
        end = math.ceil(len(x) * share / 1000)
        if known == 0:
            total += end * math.log2(classes)
        elif end > known:
            total += bits(train(x[:known], labels[:known], classes)(x[known:end]), labels[known:end])
        known = end
    return total


def case(count, width, classes, noise, constant=False):
    directions = RANDOM.normal(size=(classes, width))
    labels = RANDOM.integers(0, classes, 2 * count)
    x = directions[labels] + noise * RANDOM.normal(size=(2 * count, width)) + 3
    if constant:
        x[:, 1] = 0.25
    x = x.round(3)
    p = train(x[:count], labels[:count], classes)(x[count:])
    words = CONTROL.integers(0, 12, 2 * count)
    control = CONTROL.integers(0, classes, 12)[words]
    q = train(x[:count], control[:count], classes)(x[count:])
    right, by_chance = (p.argmax(axis=1) == labels[count:]).mean(), (q.argmax(axis=1) == control[count:]).mean()
    return {"control_learn": control[:count].tolist(), "control_test": control[count:].tolist(),
            "selectivity": float(right - by_chance),
            "width": width, "classes": classes, "learn": x[:count].ravel().tolist(), "learn_labels": labels[:count].tolist(),
            "test": x[count:].ravel().tolist(), "test_labels": labels[count:].tolist(),
            "right": int((p.argmax(axis=1) == labels[count:]).sum()), "bits": bits(p, labels[count:]),
            "code_length": code_length(x[:count], labels[:count], classes)}


if __name__ == "__main__":
    OUT.write_text(json.dumps([case(60, 3, 3, 0.7), case(150, 5, 4, 1.5), case(40, 4, 2, 0.5, constant=True)]) + "\n",
                   encoding="utf-8")
