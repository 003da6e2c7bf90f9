#!/usr/bin/env python3
"""Makes tests/fixtures/parity: what PyTorch computes, in double precision, for small models of Headwise's kind.

    python3 scripts/make_parity_fixtures.py [DIRECTORY]

It needs the packages torch and safetensors; building, testing and running Headwise does not, since the fixtures are
committed.

The model is written out below from the formulas ("Attention is all you need", Vaswani et al. 2017), a sentence at a
time, so that nothing is padded and no mask but the causal one exists. Every layer is then held against torch.nn's own
layer and the loss against torch's cross-entropy; the fixtures are written only if they agree.

CASE/case.json            the model's shape (keys as under `model:` in a configuration), label smoothing, optimizer, and
                          the batch as ids: `source`, sentences w1 ... wn </s>, and `target`, <s> w1 ... wm </s>.
                          The decoder is fed a target without its last id and predicts it without its first, so a target
                          of m + 2 ids has m + 1 rows. `traced_sentence` counts from 0.
CASE/weights.safetensors  the parameters, F64, named and shaped as in model.safetensors. Their values fit into float32
                          exactly, so a float build starts from the very same model.
CASE/expected.safetensors F64. Rows of the sentences one after another, in the order of the batch; Ns is the number of
                          source rows, Nt that of target rows, n and m + 1 those of the traced sentence:
    encoder_output [Ns, D]        what cross-attention reads (norm: pre: after encoder.norm)
    decoder_output [Nt, D]        what the output layer reads (norm: pre: after decoder.norm)
    log_probs [Nt, V]             natural log
    encoder.I.self [H, n, n], decoder.I.self [H, m + 1, m + 1], decoder.I.cross [H, m + 1, n]
                                  attention weights of the traced sentence
    loss [1]                      label-smoothed, sum over the Nt rows / Nt
    grad.NAME                     gradient of `loss` by parameter NAME, not clipped. That of a key.bias is 0 in theory
                                  and some 1e-18 here
    step1.NAME, step2.NAME, step3.NAME
                                  the parameters after that many optimizer steps on this batch. "adam" adds
                                  weight_decay times the weight to the (clipped) gradient, "adamw" decays apart from it
    losses [3], gradient_norms [3]
                                  before each of the steps; the norm over all parameters, before clipping
"""
import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

BOS, EOS, FIRST_WORD = 1, 2, 3
EPSILON = 1e-5
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "swish": lambda x: x * torch.sigmoid(x)}
KINK_MARGIN = 3e-4  # no input of a relu is nearer to 0, so that float and double take the same side

COMMON = {"width": 16, "heads": 4, "feed_forward": 24, "label_smoothing": 0.1, "traced_sentence": 3}
ADAM = {"name": "adam", "learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9, "weight_decay": 0.0,
        "clip_norm": 1.0}
# Lengths are rows: </s> counts, <s> does not (it is fed where </s> is predicted).
CASES = {
    "post_relu_all": COMMON | {
        "seed": 1, "encoder_layers": 2, "decoder_layers": 2, "activation": "relu", "norm": "post",
        "tied_embeddings": "all", "source_vocabulary": 19, "target_vocabulary": 19, "optimizer": ADAM,
        "source_lengths": [7, 2, 13, 5, 1], "target_lengths": [4, 1, 9, 11, 3]},
    "pre_gelu_output": COMMON | {
        "seed": 2, "encoder_layers": 1, "decoder_layers": 2, "activation": "gelu", "norm": "pre",
        "tied_embeddings": "output", "source_vocabulary": 17, "target_vocabulary": 21,
        "optimizer": ADAM | {"name": "adamw", "weight_decay": 0.01},
        "source_lengths": [1, 9, 4, 12, 6], "target_lengths": [2, 13, 1, 7, 5]},
    "post_swish_none": COMMON | {
        "seed": 3, "encoder_layers": 2, "decoder_layers": 1, "activation": "swish", "norm": "post",
        "tied_embeddings": "none", "source_vocabulary": 23, "target_vocabulary": 18,
        # Decay that is added to the gradient, and a clipping norm that is never reached: gradients pass as they are.
        "optimizer": ADAM | {"weight_decay": 0.01, "clip_norm": 100.0},
        "source_lengths": [3, 11, 1, 8, 13], "target_lengths": [5, 2, 12, 6, 1]},
}


# ---- parameters and batch -------------------------------------------------------------------------------------------

def make_parameters(case):
    """Names to tensors, all of them random and of a size that matters: attention is far from uniform, biases and norms
    far from 0 and 1."""
    random = torch.Generator().manual_seed(case["seed"])
    width, inner = case["width"], case["feed_forward"]
    parameters = {}

    def add(name, shape, deviation, mean=0.0):
        values = mean + deviation * torch.randn(shape, generator=random, dtype=torch.float64)
        parameters[name] = values.float().double().requires_grad_()

    def add_linear(name, outputs, inputs, gain=1.0):
        add(name + ".weight", (outputs, inputs), gain / math.sqrt(inputs))
        add(name + ".bias", (outputs,), 0.3)

    def add_norm(name):
        add(name + ".weight", (width,), 0.3, mean=1.0)
        add(name + ".bias", (width,), 0.3)

    def add_attention(name):
        for kind, gain in (("query", 1.5), ("key", 1.5), ("value", 1.0), ("output", 1.0)):
            add_linear(f"{name}.{kind}", width, width, gain)
        add_norm(name + "_norm")

    def add_feed_forward(name):
        add_linear(name + ".expand", inner, width)
        add_linear(name + ".contract", width, inner)
        add_norm(name + "_norm")

    def add_embedding(name, rows):
        add(name + ".weight", (rows, width), 1 / math.sqrt(width))

    if case["tied_embeddings"] == "all":
        add_embedding("embedding", case["source_vocabulary"])
    else:
        add_embedding("source_embedding", case["source_vocabulary"])
        add_embedding("target_embedding", case["target_vocabulary"])
    if case["tied_embeddings"] == "none":
        add_embedding("output", case["target_vocabulary"])
    add("output.bias", (case["target_vocabulary"],), 0.3)
    for i in range(case["encoder_layers"]):
        add_attention(f"encoder.{i}.self_attention")
        add_feed_forward(f"encoder.{i}.feed_forward")
    for i in range(case["decoder_layers"]):
        add_attention(f"decoder.{i}.self_attention")
        add_attention(f"decoder.{i}.cross_attention")
        add_feed_forward(f"decoder.{i}.feed_forward")
    if case["norm"] == "pre":
        add_norm("encoder.norm")
        add_norm("decoder.norm")
    return parameters


def make_batch(case):
    random = torch.Generator().manual_seed(1000 + case["seed"])

    def words(count, vocabulary):
        return torch.randint(FIRST_WORD, vocabulary, (count,), generator=random).tolist()

    source = [words(n - 1, case["source_vocabulary"]) + [EOS] for n in case["source_lengths"]]
    target = [[BOS] + words(n - 1, case["target_vocabulary"]) + [EOS] for n in case["target_lengths"]]
    source[3][0] = 0  # <unk> is a word like any other
    return source, target


# ---- the model ------------------------------------------------------------------------------------------------------

class Model:
    def __init__(self, case, parameters):
        self.case, self.p = case, parameters
        self.activation = ACTIVATIONS[case["activation"]]
        self.trace = {}        # attention weights of the sentence that runs
        self.before_kink = []  # the smallest |input| of each activation

    def linear(self, name, x):
        return x @ self.p[name + ".weight"].T + self.p[name + ".bias"]

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        return centred / torch.sqrt(variance + EPSILON) * self.p[name + ".weight"] + self.p[name + ".bias"]

    def embed(self, side, ids):
        shared = self.case["tied_embeddings"] == "all"
        table = self.p["embedding.weight" if shared else side + "_embedding.weight"]
        width = self.case["width"]
        place = torch.arange(len(ids), dtype=torch.float64)[:, None]
        rate = 10000 ** (-2 * torch.arange(width // 2, dtype=torch.float64) / width)
        positions = torch.cat([torch.sin(place * rate), torch.cos(place * rate)], dim=1)
        return table[torch.tensor(ids)] * math.sqrt(width) + positions.to(table.dtype)

    def attention(self, name, x, memory, causal, record):
        heads = self.case["heads"]
        size = self.case["width"] // heads

        def split(kind, rows):  # [N, D] -> [H, N, K]
            return self.linear(f"{name}.{kind}", rows).view(len(rows), heads, size).transpose(0, 1)

        scores = split("query", x) @ split("key", memory).transpose(1, 2) / math.sqrt(size)
        if causal:
            scores = scores + torch.triu(torch.full((len(x), len(x)), -1e9, dtype=scores.dtype), diagonal=1)
        weights = torch.exp(scores - scores.max(-1, keepdim=True).values)
        weights = weights / weights.sum(-1, keepdim=True)
        self.trace[record] = weights
        together = (weights @ split("value", memory)).transpose(0, 1).reshape(len(x), -1)
        return self.linear(name + ".output", together)

    def feed_forward(self, name, x):
        inner = self.linear(name + ".expand", x)
        self.before_kink.append(inner.detach().abs().min().item())
        return self.linear(name + ".contract", self.activation(inner))

    def add_and_norm(self, name, x, branch):
        """norm(x + branch(x)) after, as in the paper, or x + branch(norm(x)) before."""
        if self.case["norm"] == "post":
            return self.norm(name + "_norm", x + branch(x))
        return x + branch(self.norm(name + "_norm", x))

    def encoder_layer(self, i, x):
        name = f"encoder.{i}"
        x = self.add_and_norm(name + ".self_attention", x, lambda y: self.attention(
            name + ".self_attention", y, y, False, name + ".self"))
        return self.add_and_norm(name + ".feed_forward", x, lambda y: self.feed_forward(name + ".feed_forward", y))

    def decoder_layer(self, i, x, memory):
        name = f"decoder.{i}"
        x = self.add_and_norm(name + ".self_attention", x, lambda y: self.attention(
            name + ".self_attention", y, y, True, name + ".self"))
        x = self.add_and_norm(name + ".cross_attention", x, lambda y: self.attention(
            name + ".cross_attention", y, memory, False, name + ".cross"))
        return self.add_and_norm(name + ".feed_forward", x, lambda y: self.feed_forward(name + ".feed_forward", y))

    def encode(self, source):
        x = self.embed("source", source)
        for i in range(self.case["encoder_layers"]):
            x = self.encoder_layer(i, x)
        return self.norm("encoder.norm", x) if self.case["norm"] == "pre" else x

    def decode(self, fed, memory):
        x = self.embed("target", fed)
        for i in range(self.case["decoder_layers"]):
            x = self.decoder_layer(i, x, memory)
        return self.norm("decoder.norm", x) if self.case["norm"] == "pre" else x

    def logits(self, x):
        table = {"all": "embedding", "output": "target_embedding", "none": "output"}[self.case["tied_embeddings"]]
        return x @ self.p[table + ".weight"].T + self.p["output.bias"]

    def run(self, source, target):
        """One batch: everything of expected.safetensors that is computed forwards."""
        memory, rows, traces = [], [], []
        for s, t in zip(source, target):
            self.trace = {}
            memory.append(self.encode(s))
            rows.append(self.decode(t[:-1], memory[-1]))
            traces.append(self.trace)
        logits = self.logits(torch.cat(rows))
        log_probs = logits - torch.logsumexp(logits, dim=1, keepdim=True)
        wanted = torch.tensor([w for t in target for w in t[1:]])
        smoothing, classes = self.case["label_smoothing"], logits.shape[1]
        nll = -log_probs[torch.arange(len(wanted)), wanted]
        loss = ((1 - smoothing) * nll - smoothing / classes * log_probs.sum(1)).sum() / len(wanted)
        close(loss, F.cross_entropy(logits, wanted, label_smoothing=smoothing), "loss")
        return {"encoder_output": torch.cat(memory), "decoder_output": torch.cat(rows), "log_probs": log_probs,
                "loss": loss.reshape(1)} | traces[self.case["traced_sentence"]]


# ---- held against torch.nn ------------------------------------------------------------------------------------------

def close(ours, theirs, what):
    error = (ours - theirs).abs().max().item()
    limit = 1e-12 if ours.dtype == torch.float64 else 1e-5
    assert error < limit, f"{what}: differs from torch by {error}"


def load_linear(layer, parameters, name):
    layer.weight.copy_(parameters[name + ".weight"])
    layer.bias.copy_(parameters[name + ".bias"])


def load_attention(layer, parameters, name):
    for kind in ("weight", "bias"):
        getattr(layer, "in_proj_" + kind).copy_(
            torch.cat([parameters[f"{name}.{part}.{kind}"] for part in ("query", "key", "value")]))
    load_linear(layer.out_proj, parameters, name + ".output")


@torch.no_grad()
def check_layers(case, model, source, target):
    """Every layer on every sentence against TransformerEncoderLayer and TransformerDecoderLayer."""
    options = dict(dropout=0.0, activation=model.activation, layer_norm_eps=EPSILON, batch_first=True,
                   norm_first=case["norm"] == "pre", dtype=torch.float64)
    sizes = case["width"], case["heads"], case["feed_forward"]

    def load(layer, name, parts):
        for part, attention, norm in parts:
            if attention:
                load_attention(getattr(layer, attention), model.p, f"{name}.{part}")
            load_linear(getattr(layer, norm), model.p, f"{name}.{part}_norm")
        load_linear(layer.linear1, model.p, name + ".feed_forward.expand")
        load_linear(layer.linear2, model.p, name + ".feed_forward.contract")
        return layer

    encoders = [load(torch.nn.TransformerEncoderLayer(*sizes, **options), f"encoder.{i}",
                     [("self_attention", "self_attn", "norm1"), ("feed_forward", None, "norm2")])
                for i in range(case["encoder_layers"])]
    decoders = [load(torch.nn.TransformerDecoderLayer(*sizes, **options), f"decoder.{i}",
                     [("self_attention", "self_attn", "norm1"), ("cross_attention", "multihead_attn", "norm2"),
                      ("feed_forward", None, "norm3")])
                for i in range(case["decoder_layers"])]
    for s, t in zip(source, target):
        x = model.embed("source", s)
        for i, theirs in enumerate(encoders):
            if case["norm"] == "post":
                weights = theirs.self_attn(x[None], x[None], x[None], average_attn_weights=False)[1][0]
            y = model.encoder_layer(i, x)
            if case["norm"] == "post":
                close(model.trace[f"encoder.{i}.self"], weights, f"weights of encoder.{i}")
            close(y, theirs(x[None])[0], f"encoder.{i}")
            x = y
        memory = model.encode(s)
        x = model.embed("target", t[:-1])
        mask = torch.nn.Transformer.generate_square_subsequent_mask(len(x), dtype=torch.float64)
        for i, theirs in enumerate(decoders):
            y = model.decoder_layer(i, x, memory)
            close(y, theirs(x[None], memory[None], tgt_mask=mask)[0], f"decoder.{i}")
            x = y


# ---- cases ----------------------------------------------------------------------------------------------------------

def make_optimizer(o, parameters):
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[o["name"]]
    return kind(parameters, lr=o["learning_rate"], betas=(o["beta1"], o["beta2"]), eps=o["epsilon"],
                weight_decay=o["weight_decay"])


def make_case(case):
    parameters = make_parameters(case)
    source, target = make_batch(case)
    model = Model(case, parameters)
    check_layers(case, model, source, target)
    weights = {name: w.detach().clone() for name, w in parameters.items()}
    model.before_kink.clear()
    expected = {name: x.detach() for name, x in model.run(source, target).items()}
    if case["activation"] == "relu":
        assert min(model.before_kink) > KINK_MARGIN, f"too near to the kink of relu: {min(model.before_kink)}"

    optimizer = make_optimizer(case["optimizer"], parameters.values())
    losses, norms = [], []
    for step in (1, 2, 3):
        optimizer.zero_grad()
        loss = model.run(source, target)["loss"]
        loss.backward()
        if step == 1:
            expected |= {"grad." + name: w.grad.clone() for name, w in parameters.items()}
        losses.append(loss.item())
        norms.append(torch.nn.utils.clip_grad_norm_(parameters.values(), case["optimizer"]["clip_norm"]).item())
        optimizer.step()
        expected |= {f"step{step}.{name}": w.detach().clone() for name, w in parameters.items()}
    expected["losses"] = torch.tensor(losses, dtype=torch.float64)
    expected["gradient_norms"] = torch.tensor(norms, dtype=torch.float64)
    return weights, expected, {"source": source, "target": target}


def case_text(case, batch):
    """JSON with a sentence a line."""
    head = json.dumps({k: v for k, v in case.items() if not k.endswith("_lengths")}, indent=2)
    lists = [f'  "{side}": [\n' + ",\n".join(f"    {ids}" for ids in batch[side]) + "\n  ]" for side in batch]
    return head.removesuffix("\n}") + ",\n" + ",\n".join(lists) + "\n}\n"


def main():
    home = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "parity"
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else home
    torch.set_num_threads(1)
    for name, case in CASES.items():
        weights, expected, batch = make_case(case)
        place = directory / name
        place.mkdir(parents=True, exist_ok=True)
        (place / "case.json").write_text(case_text(case, batch))
        save_file({n: w.contiguous() for n, w in weights.items()}, place / "weights.safetensors")
        save_file({n: x.contiguous() for n, x in expected.items()}, place / "expected.safetensors")
        size = sum(f.stat().st_size for f in place.iterdir())
        print(f"{name}: {sum(w.numel() for w in weights.values())} parameters, losses "
              f"{expected['losses'].tolist()}, gradient norms {expected['gradient_norms'].tolist()}, {size} bytes")


if __name__ == "__main__":
    main()
