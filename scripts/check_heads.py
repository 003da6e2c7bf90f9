#!/usr/bin/env python3
"""Checks what the head study found in a model by computing it again, with nothing of Headwise but the files.

    pip install numpy torch
    bin/headwise heads report models/toy -o /tmp/heads.html      # leaves its figures in models/toy/heads
    python3 scripts/check_heads.py models/toy

Reads model.safetensors, config.yaml, the vocabulary and the test set with its gold, runs the network in double precision and
compares: statistics of every head (weights and norms), roles (scores, cases, fixed offsets, p against them), alignment error
rates (heads, means, diagonal, IBM model 1), ablation (change of loss) and importance (both readings). Norm post, relu, one shared
vocabulary, word tokens; what a role's untrained heads reach cannot be had without the library's random numbers and is taken from
the result. Exit status 1 if a figure differs.
"""
import json
import math
import pathlib
import re
import struct
import sys
from collections import Counter, defaultdict

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
MODEL = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "models/toy")


def option(section, key):
    within = re.search(rf"^{section}:\n((?:  .*\n)+)", (MODEL / "config.yaml").read_text(), re.M).group(1)
    return re.search(rf"^  {key}: \"?([^\"\n]*)", within, re.M).group(1)


LAYERS, HEADS, WIDTH = [int(option("model", k)) for k in ("encoder_layers", "heads", "width")]
K = WIDTH // HEADS
for section, key, value in (("model", "norm", "post"), ("model", "activation", "relu"), ("model", "tied_embeddings", "all"),
                            ("model", "decoder_layers", str(LAYERS)), ("text", "tokenizer", "word")):
    if option(section, key) != value:
        sys.exit(f"{MODEL}: {section}.{key} is {option(section, key)}; this check knows {value} only")
DATA = pathlib.Path(option("data", "dir"))

# ---- the network -----------------------------------------------------------------------------------------------------


def safetensors(path):
    data = path.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: torch.tensor(np.frombuffer(data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]], "<f4")
                               .reshape(t["shape"]).astype(float)) for name, t in header.items()}


W = safetensors(MODEL / "model.safetensors")
VOCABULARY = {word: i for i, word in enumerate((MODEL / "shared.vocab").read_text().split("\n")[:-1])}
ATTENTIONS = [f"encoder.{i}.self" for i in range(LAYERS)] + [f"decoder.{i}.{k}" for i in range(LAYERS) for k in ("self", "cross")]


def linear(x, name):
    return x @ W[name + ".weight"].T + W[name + ".bias"]


def norm(x, name):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * W[name + ".weight"] + W[name + ".bias"]


def embed(ids):
    angles = torch.arange(len(ids))[:, None] * 10000.0 ** (-2 * torch.arange(WIDTH // 2) / WIDTH)
    return W["embedding.weight"][ids] * math.sqrt(WIDTH) + torch.cat([angles.sin(), angles.cos()], 1)


class Pass:
    """One pair through the network. gates: attention -> [rows, heads]; uniform, mean: what takes a head's place."""

    def __init__(self, source, target, gates=None, uniform=(), mean=None):
        self.gates, self.uniform, self.mean = gates or {}, uniform, mean or {}
        self.weights, self.norms, self.outputs = {}, {}, {}
        x = embed(torch.tensor([VOCABULARY.get(w, 0) for w in source] + [2]))
        y = embed(torch.tensor([1] + [VOCABULARY.get(w, 0) for w in target]))
        for i in range(LAYERS):
            x = self.layer(self.attend(x, x, f"encoder.{i}.self", False), f"encoder.{i}")
        for i in range(LAYERS):
            y = self.attend(y, y, f"decoder.{i}.self", True)
            y = self.layer(self.attend(y, x, f"decoder.{i}.cross", False), f"decoder.{i}")
        log_probs = (y @ W["embedding.weight"].T + W["output.bias"]).log_softmax(-1)
        self.loss = -log_probs[torch.arange(len(target) + 1), [VOCABULARY.get(w, 0) for w in target] + [2]].sum()

    def layer(self, x, name):
        hidden = torch.relu(linear(x, name + ".feed_forward.expand"))
        return norm(x + linear(hidden, name + ".feed_forward.contract"), name + ".feed_forward_norm")

    def attend(self, x, keys, name, causal):
        full = name + "_attention"
        query, key, value = linear(x, full + ".query"), linear(keys, full + ".key"), linear(keys, full + ".value")
        output, weights, norms, parts = W[full + ".output.weight"], [], [], []
        for h in range(HEADS):
            of = slice(h * K, (h + 1) * K)
            scores = query[:, of] @ key[:, of].T / math.sqrt(K) * (0 if (name, h) in self.uniform else 1)
            if causal:
                scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf)
            weights.append(scores.softmax(-1))
            norms.append((value[:, of] @ output[:, of].T).norm(dim=1))
            part = weights[-1] @ value[:, of]
            part = self.mean.get((name, h), part).expand_as(part)
            parts.append(part * self.gates[name][:, h:h + 1] if name in self.gates else part)
        self.weights[name], self.norms[name] = torch.stack(weights).detach(), torch.stack(norms).detach()
        self.outputs[name] = torch.cat(parts, 1).detach()
        return norm(x + linear(torch.cat(parts, 1), full + ".output"), full + "_norm")


# ---- data and comparison ---------------------------------------------------------------------------------------------


def lines(name):
    return (DATA / name).read_text().split("\n")[:-1]


def trees(name):
    """A list a sentence of (head, relation, match)."""
    blocks = (DATA / name).read_text().strip("\n").split("\n\n")
    rows = [[line.split("\t") for line in block.split("\n") if line and line[0] != "#"] for block in blocks]
    match = [[re.search(r"Match=(\d+)", r[9]) for r in block] for block in rows]
    return [[(int(r[6]) - 1, r[7].split(":")[0], int(m.group(1)) - 1 if m else -1) for r, m in zip(block, ms)]
            for block, ms in zip(rows, match)]


PREFIX, SOURCE, TARGET = option("data", "test"), option("data", "source"), option("data", "target")
SOURCES, TARGETS = ([line.split() for line in lines(f"{PREFIX}.{s}")] for s in (SOURCE, TARGET))
COUNT, FAULTS = len(SOURCES), 0


def result(name):
    path = MODEL / "heads" / f"{name}-{PREFIX}.json"
    if not path.exists():
        sys.exit(f"{path} is not there; headwise heads report {MODEL} -o FILE.html leaves it")
    return json.loads(path.read_text())


def compare(what, rows, tolerance):
    """rows: (name, ours, the result's)."""
    global FAULTS
    apart = [(abs(a - b), name, a, b) for name, a, b in rows if not abs(a - b) <= tolerance * max(1, abs(b))]
    largest = max((abs(a - b) for _, a, b in rows), default=0)
    print(f"{what}: {len(rows)} figures, largest difference {largest:.2g}" + (f", {len(apart)} DIFFER" if apart else ""))
    for _, name, a, b in sorted(apart, reverse=True)[:5]:
        print(f"    {name}: {a} here, {b} there")
    FAULTS += len(apart)


with torch.no_grad():
    PASSES = [Pass(s, t) for s, t in zip(SOURCES, TARGETS)]
TOKENS = sum(len(t) + 1 for t in TARGETS)
LOSS = sum(p.loss.item() for p in PASSES) / TOKENS

# kind: the steps' row of a word, the first key's column
PLACES = {"encoder.self": {None: (0, 0)}, "decoder.self": {"fed": (1, 1), "predicted": (0, 1)},
          "decoder.cross": {"fed": (1, 0), "predicted": (0, 0)}}


def kind_of(attention):
    return attention.split(".")[0] + "." + attention.split(".")[2]


def rows_of(i, attention, step, measure="weights"):
    """[heads, words, keys] of pair i, hidden keys 0; and how many keys each word sees."""
    row, _ = PLACES[kind_of(attention)][step]
    words = len(SOURCES[i] if attention.startswith("encoder") else TARGETS[i])
    a = PASSES[i].weights[attention]
    if measure == "norms":
        a = a * PASSES[i].norms[attention][:, None]
        a = a / a.sum(-1, keepdim=True)
    a = a[:, row:row + words]
    causal = kind_of(attention) == "decoder.self"
    return a, [row + q + 1 if causal else a.shape[2] for q in range(words)]


# ---- statistics ------------------------------------------------------------------------------------------------------


def statistics():
    entries = {(e["name"], e.get("step"), e["measure"]): e for e in result("stats")["heads"] if e["unit"] == "token"}
    rows = []
    for attention in ATTENTIONS:
        for step, (_, first) in PLACES[kind_of(attention)].items():
            for measure in ("weights", "norms"):
                sums = defaultdict(lambda: torch.zeros(HEADS))
                words = choices = 0
                for i in range(COUNT):
                    a, visible = rows_of(i, attention, step, measure)
                    special = 0 if first else a.shape[2] - 1
                    entropy = -torch.special.xlogy(a, a).sum(-1)
                    at = torch.arange(a.shape[2]) - first
                    away = (at[None] - torch.arange(a.shape[1])[:, None]).abs()
                    many = torch.tensor([n > 1 for n in visible])
                    words, choices = words + a.shape[1], choices + int(many.sum())
                    sums["entropy"] += entropy.sum(1)
                    sums["relative_entropy"] += (entropy / torch.tensor(visible).log().clamp_min(1e-9))[:, many].sum(1)
                    sums["confidence"] += a[:, :, [k for k in range(a.shape[2]) if k != special]].amax(-1).sum(1)
                    sums["distance"] += (a * away).sum((1, 2))
                    sums["special"] += a[:, :, special].sum(1)
                for figure, sum_ in sums.items():
                    for h in range(HEADS):
                        value = float(sum_[h]) / (choices if figure == "relative_entropy" else words)
                        rows.append((f"{attention}.{h} {step} {measure} {figure}", value,
                                     entries[f"{attention}.{h}", step, measure][figure]))
    compare("statistics", rows, 1e-5)


# ---- roles -----------------------------------------------------------------------------------------------------------

RELATIONS = ["amod", "nsubj", "obj", "det"]


def is_bracket(word):
    return word in "()[]{}"


def targets(role, pieces, words, tree, q):
    """The words that word q should look at; None: it is no case."""
    offset = {"previous": -1, "next": 1, "self": 0}.get(role)
    if offset is not None:
        spelled = (q > 0 and words[q - 1].endswith("@@")), words[q].endswith("@@")
        within = {-1: spelled[0], 1: spelled[1], 0: any(spelled)}[offset]
        return [q + offset] if 0 <= q + offset < len(words) and (within or not pieces) else None
    if role in ("bracket", "quote"):
        return [tree[q][2]] if 0 <= tree[q][2] < q and is_bracket(words[q]) == (role == "bracket") else None
    if role.endswith("_inv"):
        return [tree[q][0]] if tree[q][0] >= 0 and tree[q][1] == role[:-4] else None
    return [w for w, (head, relation, _) in enumerate(tree) if head == q and relation == role] or None


def roles():
    gold = {"encoder.self": trees(f"{PREFIX}.{SOURCE}.conllu"), "decoder.self": trees(f"{PREFIX}.{TARGET}.conllu")}
    scores, baselines, ps = [], [], []
    known = {"previous", "next", "self", "bracket", "quote", *RELATIONS, *(r + "_inv" for r in RELATIONS)}
    for head in result("roles")["heads"]:
        attention, h = head["name"].rsplit(".", 1)
        for r in head["roles"]:
            if r["role"] not in known or kind_of(attention) not in gold:
                continue
            row, first = PLACES[kind_of(attention)][r.get("step")]
            got, guess, cases = [], [], []
            for i in range(COUNT):
                words = SOURCES[i] if attention.startswith("encoder") else TARGETS[i]
                n = g = c = 0
                for q in range(len(words)):
                    goal = targets(r["role"], r["subset"] == "pieces", words, gold[kind_of(attention)][i], q)
                    visible = len(words) + 1 if attention.startswith("encoder") else q + row + 1
                    goal = [first + w for w in goal or [] if first + w < visible]
                    if not goal:
                        continue
                    c += 1
                    n += int(BEST[attention, r.get("step")][i][int(h)][q]) in goal
                    g += first + q + r.get("offset", 1 << 20) in goal
                got.append(n), guess.append(g), cases.append(c)
            name = f"{head['name']} {r['role']} {r['subset']} {r.get('step')}"
            scores += [(name, sum(got) / sum(cases), r["score"]), (name + " cases", sum(cases), r["cases"])]
            if "offset" not in r:
                continue
            baselines.append((name, sum(guess) / sum(cases), r["baseline"]))
            d = np.array(got, float) - guess
            if r["baseline"] > r["control"] and d.sum() > 0 and (d != 0).sum() > 14:
                p = math.erfc(d.sum() / math.sqrt((d ** 2).sum()) / math.sqrt(2))
                ps.append((name, math.log10(p), math.log10(r["p_raw"])))
    compare("scores of roles", scores, 2e-3)  # a case may go the other way in single precision
    compare("their fixed offsets", baselines, 1e-12)
    compare("log10 of p against these", ps, 0.02)


# ---- alignment -------------------------------------------------------------------------------------------------------


def links(line):
    pairs = [(re.split("[-p]", x), "-" in x) for x in line.split()]
    possible = {(int(i), int(j)) for (i, j), _ in pairs}
    return {(int(i), int(j)) for (i, j), sure in pairs if sure}, possible


def error_rate(found):
    gold = [links(line) for line in lines(f"{PREFIX}.align")]
    hits = sum(len(a & s) + len(a & p) for a, (s, p) in zip(found, gold))
    return 1 - hits / sum(len(a) + len(s) for a, (s, _) in zip(found, gold))


def model_1(iterations=10):
    pairs = [(["", *s.split()], t.split()) for s, t in zip(lines(f"{option('data', 'train')}.{SOURCE}"),
                                                             lines(f"{option('data', 'train')}.{TARGET}"))]
    t = {(e, f): 1.0 for s, u in pairs for e in s for f in u}
    for _ in range(iterations):
        counts, totals = dict.fromkeys(t, 0.0), Counter()
        for s, u in pairs:
            for f in u:
                total = sum(t[e, f] for e in s)
                for e in s:
                    counts[e, f] += t[e, f] / total
                    totals[e] += t[e, f] / total
        t = {(e, f): c / totals[e] for (e, f), c in counts.items()}
    found = []
    for s, u in zip(SOURCES, TARGETS):
        best = [max(range(-1, len(s)), key=lambda i: t.get((s[i] if i >= 0 else "", f), 0)) for f in u]
        found.append({(i, j) for j, i in enumerate(best) if i >= 0})
    return error_rate(found)


def alignment():
    r, rows = result("align"), []
    cross = [a for a in ATTENTIONS if a.endswith("cross")]
    for entry in r["heads"] + r["means"]:
        name, last = entry["name"].rsplit(".", 1)
        of = cross if entry["name"] == "cross.mean" else [name]
        for key, by_norm in (("aer", False), ("aer_norm", True)):
            found = []
            for i in range(COUNT):
                a = sum((w * PASSES[i].norms[n][:, None] if by_norm else w / w[:, :, :-1].sum(-1, keepdim=True)).sum(0)
                        if last == "mean" else (w * PASSES[i].norms[n][:, None] if by_norm else w)[int(last)]
                        for n in of for w in [PASSES[i].weights[n]])
                step = PLACES["decoder.cross"][entry["step"]][0]
                found.append({(int(a[q + step, :-1].argmax()), q) for q in range(len(TARGETS[i]))})
            rows.append((f"{entry['name']} {entry['step']} {key}", error_rate(found), entry[key]))
    compare("alignment error rates", rows, 2e-3)
    diagonal = [{((2 * j + 1) * len(s) // (2 * len(t)), j) for j in range(len(t))} for s, t in zip(SOURCES, TARGETS)]
    base = {b["name"]: b["aer"] for b in r["baselines"]}
    compare("their baselines", [("diagonal", error_rate(diagonal), base["diagonal"]), ("ibm1", model_1(), base["ibm1"])], 1e-9)


# ---- ablation and importance -----------------------------------------------------------------------------------------


def loss_without(attention, h, mode):
    gates, uniform, mean = None, (), None
    if mode == "mean":
        outputs = torch.cat([p.outputs[attention] for p in PASSES])
        mean = {(attention, h): outputs[:, h * K:(h + 1) * K].mean(0)}
    elif mode == "uniform":
        uniform = [(attention, h)]
    else:
        row = torch.ones(HEADS)
        row[h] = 0
        gates = {attention: row[None]}
    with torch.no_grad():
        return sum(Pass(s, t, gates, uniform, mean).loss.item() for s, t in zip(SOURCES, TARGETS)) / TOKENS


def ablation():
    r = result("ablate")
    some = [e for i, e in enumerate(r["heads"]) if i % 7 == 0]  # every mode and every attention comes up
    rows = [("loss", LOSS, r["loss"])]
    for e in some:
        attention, h = e["name"].rsplit(".", 1)
        rows.append((f"{e['name']} {e['mode']}", loss_without(attention, int(h), e["mode"]) - LOSS, e["loss_delta"]))
    compare("losses without a head", rows, 1e-6)


def importance():
    sums = {a: [torch.zeros(HEADS), torch.zeros(HEADS), 0] for a in ATTENTIONS}
    for s, t in zip(SOURCES, TARGETS):
        gates = {a: torch.ones(len(s if a.startswith("encoder") else t) + 1, HEADS, requires_grad=True) for a in ATTENTIONS}
        Pass(s, t, gates).loss.backward()
        for a, g in gates.items():
            sums[a][0] += g.grad.abs().sum(0)
            sums[a][1] += g.grad.sum(0).abs()
            sums[a][2] += len(g)
    rows = []
    for e in result("importance")["heads"]:
        attention, h = e["name"].rsplit(".", 1)
        token, sentence, count = sums[attention]
        values = token / count if e["reading"] == "token" else sentence / COUNT
        rows += [(f"{e['name']} {e['reading']}", float(values[int(h)]), e["value"]),
                 (f"{e['name']} {e['reading']} normalised", float((values / values.norm())[int(h)]), e["normalised"])]
    compare("importance", rows, 1e-5)


if __name__ == "__main__":
    statistics()
    BEST = {(a, step): [[[int(a_[h, q, :v[q]].argmax()) for q in range(len(v))] for h in range(HEADS)]
                        for i in range(COUNT) for a_, v in [rows_of(i, a, step)]]
            for a in ATTENTIONS for step in PLACES[kind_of(a)]}
    roles()
    alignment()
    ablation()
    importance()
    sys.exit(1 if FAULTS else 0)
