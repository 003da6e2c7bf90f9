'use strict';
/* What things are called, and what each measure can and cannot show. */

/* Families of roles: a colour, a letter and a pattern each, so that none of the three is needed. */
const FAMILIES = {
    position: { letter: 'P', title: 'position', says: 'the word before, behind, or itself' },
    marks: { letter: 'M', title: 'matching marks', says: 'a closing bracket or quotation mark to its opening one' },
    grammar: { letter: 'G', title: 'grammar', says: 'a dependency, in either direction' },
    aligned: { letter: 'A', title: 'alignment', says: 'the source words that a target word translates' },
    content: { letter: 'R', title: 'rare word', says: 'the rarest word that can be seen' },
    places: { letter: 'E', title: 'ends and punctuation', says: 'first or last token, punctuation marks' },
    broad: { letter: 'B', title: 'broad', says: 'nearly the same weight everywhere' },
};

const ROLES = {
    previous: { family: 'position', short: 'previous' },
    next: { family: 'position', short: 'next' },
    self: { family: 'position', short: 'itself' },
    bracket: { family: 'marks', short: ') \u2192 (' },
    quote: { family: 'marks', short: '\u00bb \u2192 \u00ab' },
    amod: { family: 'grammar', short: 'noun \u2192 adj' },
    amod_inv: { family: 'grammar', short: 'adj \u2192 noun' },
    nsubj: { family: 'grammar', short: 'verb \u2192 subj' },
    nsubj_inv: { family: 'grammar', short: 'subj \u2192 verb' },
    obj: { family: 'grammar', short: 'verb \u2192 obj' },
    obj_inv: { family: 'grammar', short: 'obj \u2192 verb' },
    det: { family: 'grammar', short: 'noun \u2192 det' },
    det_inv: { family: 'grammar', short: 'det \u2192 noun' },
    rare: { family: 'content', short: 'rarest' },
    first: { family: 'places', short: 'first' },
    last: { family: 'places', short: 'last' },
    punct: { family: 'places', short: 'punctuation' },
    broad: { family: 'broad', short: 'broad' },
    aligned: { family: 'aligned', short: 'aligned' },
};
const roleRow = (name) => (RESULTS.roles.table || []).find((r) => r.name === name) || {};
const roleOf = (name) => ROLES[name] || { family: 'content', short: name };
const familyOf = (r) => roleOf(r.role).family;

/* "when fed", "over name pieces": what of the words a test was over. */
function scopeOf(r) {
    const parts = [];
    if (r.subset === 'pieces') parts.push('pieces of names');
    if (r.step) parts.push(r.step === 'fed' ? 'where the word is fed' : 'where the word is predicted');
    return parts.join(', ');
}
/* The same, short. */
const scopeMark = (r) => [r.subset === 'pieces' ? 'pieces' : '', r.step || ''].filter(Boolean).join(', ');

/* What a head does, as a sentence. */
function sentenceOf(h) {
    if (!h.found.length) return 'No role found. It may still matter: see what happens without it.';
    const parts = h.found.slice(0, 3).map((r) => (r.role === 'broad' ? 'any word to nearly all words alike'
        : (roleRow(r.role).counts || r.role).split(';')[0]) + ' (' + share(r.score) +
        (scopeMark(r) ? ', ' + scopeMark(r) : '') + ')');
    const rest = h.found.length - parts.length;
    return 'Looks from ' + parts.join('; from ') + (rest > 0 ? '; and ' + rest + ' more' : '') + '.';
}
/* The baseline of a test that no head can pass. */
const tooStrong = (r) => (r.too_strong ? 'baseline too strong (' + share(r.baseline) + ')' : '');
const isParked = (r) => isNumber(r.norm_ratio) && r.norm_ratio < 0.5;

/* Under each section: what its figures tell, and what they must not be taken for. */
const NOTES = {
    roles: ['How often a head\u2019s largest weight is where a rule or a gold annotation says, on sentences that were ' +
        'not used to choose anything, against what untrained heads reach and, for marks, grammar and alignment, what ' +
        'position alone reaches. The table of roles says by how much it must be more.',
        'Why the head looks there, that the network uses what it finds, or that another training run grows the same ' +
        'head. Intervals are over sentences and speak of this model only. \u201cNo role found\u201d means none in ' +
        'this table. Where position alone reaches so much that the data cannot tell a role from it, no head is given ' +
        'the role: that is a fault of the data and no result.'],
    explorer: ['Where a head takes its values from in one sentence. Norms weigh each word by the length of the vector ' +
        'that it sends, so weight that is parked on a word which sends nothing disappears.',
        'An explanation of the output. Attention mixes vectors that already hold other words, and very different ' +
        'attention can give the same output. One sentence is an example, never evidence.'],
    align: ['How well a head\u2019s largest weight links each target word to the source word that gold links it to. ' +
        'The alignment error rate is 0 for perfect links. The best head is picked on the validation set and reported ' +
        'on the test set.',
        'That the decoder translates by these links. Steps differ: most heads align the word that is predicted, ' +
        'not the word that is fed.'],
    ablate: ['What this trained network loses when a head\u2019s output is replaced: by nothing, by its mean over the ' +
        'data, or by what it would send if it looked everywhere alike.',
        'What a network trained without the head would lose. Heads can stand in for each other, so small losses alone ' +
        'do not add up: several heads that each seem needless may be needed together.'],
    importance: ['How strongly the loss reacts to turning a head down by a little (the gradient at its gate).',
        'What happens when the head is gone: a gradient is a slope at one point. The rank correlation with ablation ' +
        'says how far to trust it here.'],
    stats: ['How a head spreads its weight, over all words of the data: entropy, the largest weight, distance, and ' +
        'what goes to special tokens and punctuation.',
        'What a head is for. Low entropy is not importance, and weight on </s> is often a way of doing nothing: ' +
        'compare weights with norms.'],
    prune: ['How far heads can be taken away, in which order, and at what price.',
        'That the heads left are the only ones that could do the work: another order may keep others.'],
    probe: ['What can be read from a head\u2019s output by a simple classifier, held against control tasks.',
        'That the network reads it too.'],
    diversity: ['How alike the heads of a layer are.', 'That different heads are better heads.'],
    trace: ['How roles come and go over the course of training, and when a head comes to have one for good. A role must ' +
        'exceed the better of baseline and untrained heads significantly, on a part of the validation set.',
        'Why they do, and whether another seed does it in this order: a trace is one run. With few pairs weak roles waver.'],
    compare: ['Figures of two models on the same sentences, and which heads look at the same words. A match is the best ' +
        'that can be had, head by head; compare its distance with that of any two heads.',
        'That matched heads do the same: the cheapest one-to-one matching of two unrelated sets of heads also pairs ' +
        'every head. Intervals over sentences say nothing of other seeds; several runs of each do.'],
};

/* Cited as text: the page fetches nothing and links nowhere. */
const SOURCES = [
    'Vaswani et al. 2017, \u201cAttention is all you need\u201d: the network.',
    'Voita, Talbot, Moiseev, Sennrich and Titov 2019, \u201cAnalyzing multi-head self-attention: specialized heads do ' +
    'the heavy lifting, the rest can be pruned\u201d: positional, syntactic and rare-word heads.',
    'Clark, Khandelwal, Levy and Manning 2019, \u201cWhat does BERT look at?\u201d: delimiters and broad heads.',
    'Kobayashi, Kuribayashi, Yokoi and Inui 2020, \u201cAttention is not only a weight\u201d: norms.',
    'Michel, Levy and Neubig 2019, \u201cAre sixteen heads really better than one?\u201d: ablation and importance.',
    'Och and Ney 2003, \u201cA systematic comparison of various statistical alignment models\u201d: alignment error ' +
    'rate.',
    'Brown, Della Pietra, Della Pietra and Mercer 1993, \u201cThe mathematics of statistical machine ' +
    'translation\u201d: IBM model 1.',
    'Jain and Wallace 2019, \u201cAttention is not explanation\u201d, and Wiegreffe and Pinter 2019, \u201cAttention ' +
    'is not not explanation\u201d: what weights can and cannot explain.',
    'Hewitt and Liang 2019, \u201cDesigning and interpreting probes with control tasks\u201d, and Voita and Titov 2020, ' +
    '\u201cInformation-theoretic probing with minimum description length\u201d: probes.',
    'Li, Tu, Yang, Lyu and Zhang 2018, \u201cMulti-head attention with disagreement regularization\u201d: diversity.',
    'Holm 1979, \u201cA simple sequentially rejective multiple test procedure\u201d: p over many tests.',
];
