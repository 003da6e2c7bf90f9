'use strict';
/* What the page shows, as `headwise heads report` wrote it:
 *
 *   program, data         "headwise 0.1.0", "toy/test"
 *   model                 name, sizes, and heads, the list of all heads' names: "encoder.0.self.2"
 *   sections              a result a verb: stats, roles, ... as `headwise heads VERB --json` prints it
 *   missing               name and why of each verb that had no result to give
 *   pairs                 sentences: line, source and target (tokens; words: the word of each token, where they differ;
 *                         tree: head, relation and matching mark of each word), links (source word, target word, sure),
 *                         weights and norms of each attention, two letters of base 64 a number
 */
const DATA = JSON.parse(document.getElementById('data').textContent);
const RESULTS = DATA.sections;

/* ---- heads ---- */

const KINDS = {
    encoder: { title: 'Encoder self-attention', says: 'each source word looks at the source words' },
    decoder: { title: 'Decoder self-attention', says: 'each target word looks at the target words up to itself' },
    cross: { title: 'Cross-attention', says: 'each target word looks at the source words' },
};

const HEADS = DATA.model.heads.map((name) => {
    const [stack, layer, what, head] = name.split('.');
    const attention = stack + '.' + layer + '.' + what;
    return { name, attention, layer: +layer, head: +head, kind: what === 'cross' ? 'cross' : stack };
});
const HEAD = new Map(HEADS.map((h) => [h.name, h]));
const ATTENTIONS = [...new Set(HEADS.map((h) => h.attention))];
const headsOf = (attention) => HEADS.filter((h) => h.attention === attention);
for (const attention of ATTENTIONS) headsOf(attention).forEach((h, i) => { h.place = i; });
const kindOf = (attention) => headsOf(attention)[0].kind;
/* All heads' means, by the name of the attention. */
const MEANS = new Map(ATTENTIONS.map((a) => [a + '.mean', { name: a + '.mean', attention: a, mean: true,
    layer: headsOf(a)[0].layer, kind: kindOf(a) }]));
const headOrMean = (name) => HEAD.get(name) || MEANS.get(name);
const describe = (h) => KINDS[h.kind].title + ', layer ' + h.layer + ', ' + (h.mean ? 'mean of the heads' : 'head ' +
    h.head);
const shortName = (h) => (h.mean ? 'mean' : 'head ' + h.head);

/* ---- results by head ---- */

/* Tests of roles, and the ones found, the one that exceeds chance most first. */
const reference = (r) => Math.max(r.baseline || 0, r.control || 0);
const lift = (r) => (r.score - reference(r)) / (1 - reference(r) || 1);
for (const h of HEADS) {
    const entry = RESULTS.roles.heads.find((x) => x.name === h.name);
    h.tests = entry ? entry.roles : [];
    h.found = h.tests.filter((r) => r.found).sort((a, b) => lift(b) - lift(a));
    h.main = h.found[0] || null;
}
/* Entries of a section's "heads" about this head. */
const entriesOf = (section, name) => ((RESULTS[section] || {}).heads || []).filter((x) => x.name === name);
const statsOf = (h, step, measure) => entriesOf('stats', h.name).find((x) => x.unit === 'token' &&
    x.measure === measure && (!x.step || x.step === step));
/* The step at which a head of the decoder is looked at: that of its main role, else where words are predicted. */
const stepOf = (h) => (h.kind === 'encoder' ? undefined : (h.main && h.main.step) || 'predicted');

/* ---- sentences ---- */

const PAIRS = DATA.pairs;
const pairOfLine = (line) => PAIRS.findIndex((p) => p.line === line);

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const LEVEL = new Map(Array.from(LETTERS, (letter, i) => [letter, i]));
const numberAt = (text, i) => (64 * LEVEL.get(text[2 * i]) + LEVEL.get(text[2 * i + 1])) / 4095;

/* What rows and columns are called. */
function labelsOf(pair, kind) {
    const source = [...pair.source.tokens, '</s>'], fed = ['<s>', ...pair.target.tokens];
    const predicted = [...pair.target.tokens, '</s>'];
    if (kind === 'encoder') return { queries: source, keys: source };
    return { queries: fed, predicts: predicted, keys: kind === 'cross' ? source : fed };
}

/* A head's attention in a pair: rows[query][key], each summing to 1. Norms weigh each key by what it sends. */
function attentionOf(pair, head, measure) {
    if (head.mean) {
        const all = headsOf(head.attention).map((h) => attentionOf(pair, h, measure));
        return all[0].map((row, q) => row.map((_, k) => all.reduce((sum, rows) => sum + rows[q][k], 0) / all.length));
    }
    const { queries, keys } = labelsOf(pair, head.kind);
    const weights = pair.weights[head.attention], norms = pair.norms[head.attention], rows = [];
    for (let q = 0; q < queries.length; q++) {
        const row = keys.map((_, k) => {
            const w = numberAt(weights, (head.place * queries.length + q) * keys.length + k);
            return measure === 'norms' ? w * numberAt(norms, head.place * keys.length + k) : w;
        });
        const sum = row.reduce((a, b) => a + b, 0);
        rows.push(sum > 0 ? row.map((w) => w / sum) : row);
    }
    return rows;
}

/* How many keys a query may see. */
const visible = (kind, query, keys) => (kind === 'decoder' ? query + 1 : keys);

/* ---- where a role says that a head should look ---- */

const sameRelation = (has, wanted) => has === wanted || has.startsWith(wanted + ':');
const isBracket = (word) => /^[\p{Ps}\p{Pe}]/u.test(word);

/* The target words (of the key side) of word q (of the query side): null where gold or rule say nothing. */
function targetWords(role, kind, pair, q) {
    const side = kind === 'encoder' ? pair.source : pair.target;
    const words = side.words ? 1 + side.words[side.words.length - 1] : side.tokens.length;
    const offset = { previous: -1, next: 1, self: 0 }[role];
    if (offset !== undefined) return q + offset >= 0 && q + offset < words ? [q + offset] : [];
    if (role === 'aligned') return (pair.links || []).filter((l) => l[1] === q).map((l) => l[0]);
    const tree = side.tree;
    if (!tree) return [];
    if (role === 'bracket' || role === 'quote') {
        const match = tree[q][2], word = side.tokens[side.words ? side.words.indexOf(q) : q];
        return match !== undefined && match < q && isBracket(word) === (role === 'bracket') ? [match] : [];
    }
    const [relation, inverse] = role.split('_');
    if (inverse) return tree[q][0] >= 0 && sameRelation(tree[q][1], relation) ? [tree[q][0]] : [];
    return tree.map((t, i) => (t[0] === q && sameRelation(t[1], relation) ? i : -1)).filter((i) => i >= 0);
}

/* Cells [query row, key column] that a role asks for, by tokens, at the step where the word is fed or predicted. */
function targetCells(role, step, kind, pair) {
    const cells = [], querySide = kind === 'encoder' ? pair.source : pair.target;
    const keySide = kind === 'decoder' ? pair.target : pair.source;
    const { queries, keys } = labelsOf(pair, kind);
    const add = (row, column) => {
        if (row < queries.length && column < visible(kind, row, keys.length)) cells.push([row, column]);
    };
    querySide.tokens.forEach((_, token) => {
        const row = token + (step === 'fed' ? 1 : 0), word = querySide.words ? querySide.words[token] : token;
        if (role === 'first') return add(row, 0);
        if (role === 'last') return add(row, keys.length - 1);
        if (role === 'punct') return keys.forEach((key, k) => {
            if (/^[\p{P}\p{S}]+$/u.test(key) && key !== '<s>' && key !== '</s>') add(row, k);
        });
        const targets = targetWords(role, kind, pair, word);
        keySide.tokens.forEach((__, k) => {
            if (targets.includes(keySide.words ? keySide.words[k] : k)) add(row, k + (kind === 'decoder' ? 1 : 0));
        });
    });
    return cells;
}
