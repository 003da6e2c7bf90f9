#!/usr/bin/env python3
"""Makes tests/fixtures/sentencepiece/: two models and what SentencePiece's own Python package does with them.

    pip install sentencepiece
    python3 scripts/make_sentencepiece_fixtures.py

unigram.model  unigram, nmt_nfkc, byte fallback, <unk> <s> </s> as 0 1 2
foreign.model  BPE, no normalization, no byte fallback, special pieces of other names and ids, symbols of a user's
char.model     characters; no normalization but for blanks, no byte fallback, a surface of its own for what is unknown
word.model     whole words, blanks behind them; symbols of a user's that are called like special pieces
pieces.json    for each model lines, easy and hostile, with their pieces (a blank between) and the text of these; and
               how often the commonest cuts of a few lines were drawn, for subword regularization

The text is made up of syllables by a fixed seed, so the same version of the package writes the same files.
"""
import collections
import json
import pathlib
import random
import tempfile

import sentencepiece

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "sentencepiece"
RANDOM = random.Random(20240608)

SYLLABLES = "ba bo da de fi ga go ka ki la le lo ma mi na ne no pa ra ri ro sa se so ta te ti to va ze".split()
ENDINGS = ["", "", "s", "n", "r", "\u00e9", "ment", "able"]
WORDS = ["".join(RANDOM.choices(SYLLABLES, k=RANDOM.randint(1, 3))) + RANDOM.choice(ENDINGS) for _ in range(300)]
WEIGHTS = [1 / (rank + 3) for rank in range(len(WORDS))]
ODD = ["\u00e0", "\u00e7a", "na\u00efve", "3", "1984", "re-do", "l'ami", "(so)", "\u00abti\u00bb", "<mask>"]

HOSTILE = [
    "", " ", "   ", "a", "\u2581", "\u2581\u2581 ba \u2581", "  ba   bo  ", "\tba\tbo\t", "ba\u00a0bo\u00a0\u00a0ga",
    "ba\u2028bo\u2029ga", "\u3000ba\u3000", "ba\u200bbo", "\u200b", "\ufeffba", "ba\u00adbo", "ba\u0085bo",
    "e\u0301 a\u0308\u0302 o\u0327", "\u0301\u0301\u0301", "\ufb01ga \u00bd \u2460 \uff21 \u2163 \u338f",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 ba \U0001f3f3\ufe0f\u200d\U0001f308", "\U0001f1eb\U0001f1f7\U0001f1ea",
    "\u05e9\u05dc\u05d5\u05dd bo \u0645\u0631\u062d\u0628\u0627", "\u200fba\u200e bo",
    "\u65e5\u672c\u8a9e\u30c6\u30ad\u30b9\u30c8", "\u0928\u092e\u0938\u094d\u0924\u0947",
    "<unk> <s> </s> <pad> <0x41>", "<mask>ba<mask> bo", "BA Bo \u0130 \u00df \u1e9e", "ba\x01bo\x7f", "ba\x00bo",
    "...!!!???", "-" * 40, "ba" * 300, "bo\u00e9" * 100 + "\U0001f600" * 20, "x" * 1000, "\ue000 \U0010fffd",
]


def sentence():
    words = RANDOM.choices(WORDS, WEIGHTS, k=RANDOM.randint(3, 12))
    if RANDOM.random() < 0.2:
        words.insert(RANDOM.randrange(len(words)), RANDOM.choice(ODD))
    text = " ".join(words)
    return text[0].upper() + text[1:] + RANDOM.choice([".", ".", "!", " ?", ", ba."])


def train(text, name, **options):
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "text"
        path.write_text("\n".join(text) + "\n", encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            input=str(path), model_prefix=str(pathlib.Path(directory) / "m"), minloglevel=2, num_threads=1,
            input_sentence_size=0, **options)
        model = (pathlib.Path(directory) / "m.model").read_bytes()
    # The paths of the text and of the model stand in it; they have no place here.
    model = model.replace(str(path).encode(), b"x" * len(str(path)))
    model = model.replace(str(pathlib.Path(directory) / "m").encode(), b"x" * len(str(pathlib.Path(directory) / "m")))
    (OUT / name).write_bytes(model)
    return sentencepiece.SentencePieceProcessor(model_file=str(OUT / name))


def cases(processor, lines):
    out = []
    for line in lines:
        pieces = processor.encode(line, out_type=str)
        out.append([line, " ".join(pieces), processor.decode(pieces)])
    return out


def drawn(processor, line, alpha, times=20000):
    counts = collections.Counter(
        " ".join(processor.encode(line, out_type=str, enable_sampling=True, alpha=alpha, nbest_size=-1))
        for _ in range(times))
    return [line, alpha, {cut: count / times for cut, count in counts.most_common(12)}]


def dump(document):
    """JSON with a case a line."""
    parts = []
    for name, rows in document.items():
        body = ",\n".join(json.dumps(row, ensure_ascii=True) for row in rows)
        parts.append(f"{json.dumps(name)}: [\n{body}\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    text = [sentence() for _ in range(2000)]
    unigram = train(text, "unigram.model", model_type="unigram", vocab_size=420, byte_fallback=True)
    foreign = train(text, "foreign.model", model_type="bpe", vocab_size=200, normalization_rule_name="identity",
                    remove_extra_whitespaces=False, pad_id=0, bos_id=1, eos_id=3, unk_id=2, unk_piece="<nix>",
                    bos_piece="<begin>", user_defined_symbols=["<mask>", "\U0001f3f3"], control_symbols=["<fr>"])
    lines = HOSTILE + [sentence() for _ in range(40)]
    samples = [WORDS[0] + WORDS[1], WORDS[2] + " so", "ba\u00e9\u0ca0bo"]
    char = train(text, "char.model", model_type="char", vocab_size=60, normalization_rule_name="identity",
                 unk_surface=" NIX! ", unk_piece="[U]", unk_id=3, bos_id=0, eos_id=1, pad_id=2)
    word = train(text, "word.model", model_type="word", vocab_size=150, normalization_rule_name="identity",
                 treat_whitespace_as_suffix=True, unk_piece="<nix>", bos_id=-1, eos_piece="<end>",
                 user_defined_symbols=["<unk>", "</s>", "<0x41>"])
    document = {"unigram.model": cases(unigram, lines), "foreign.model": cases(foreign, lines),
                "char.model": cases(char, lines), "word.model": cases(word, lines)}
    for name, processor in (("unigram.model", unigram), ("foreign.model", foreign)):
        document[name + " drawn"] = [drawn(processor, line, alpha) for line in samples for alpha in (0.1, 0.3, 0.7)]
    (OUT / "pieces.json").write_text(dump(document), encoding="ascii")


if __name__ == "__main__":
    main()
