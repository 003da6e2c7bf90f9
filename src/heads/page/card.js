'use strict';
/* The card of one head: what it does, one sentence, its tests, where it looks, what happens without it. */

const OFFSETS = Array.from({ length: 19 }, (_, i) => (i === 0 ? '< \u22128' : i === 18 ? '> 8' : signed(i - 9, 0)));

/* ---- one sentence ---- */

/* The sentence that shows a head best: of the strongest examples of its main role the shortest. */
function bestPair(h) {
    const size = (i) => PAIRS[i].source.tokens.length + PAIRS[i].target.tokens.length;
    for (const r of h.found) {
        const held = (r.strongest || []).map(pairOfLine).filter((i) => i >= 0).sort((a, b) => size(a) - size(b));
        if (held.length) return held[0];
    }
    return PAIRS.length ? Math.min(1, PAIRS.length - 1) : -1;
}

/* Matrix and lines of one head in one pair, with a line that says what is pointed at. role: whose cells are marked. */
function sentenceView(h, pair, r, measure) {
    const labels = labelsOf(pair, h.kind), rows = attentionOf(pair, h, measure);
    const out = el('output', { class: 'readout', 'aria-live': 'polite' }), drawings = [];
    const resting = r ? 'Outlined: where \u201c' + roleOf(r.role).short + '\u201d should look' +
        (r.step ? ', where the word is ' + r.step : '') + '. Point at a cell or a word.' : 'Point at a cell or a word.';
    out.textContent = resting;
    const point = (q, k) => {
        drawings.forEach((d) => d.mark(q, k));
        out.textContent = readOut(labels, [{ rows, name: shortName(h) }], q, k) || resting;
    };
    const keep = (d) => (drawings.push(d), d);
    const marks = r ? targetCells(r.role, r.step, h.kind, pair) : [];
    return el('div', { class: 'sentence' },
        figure(h.name + '-line-' + pair.line + '-matrix', 'weights: rows attend to columns', (width) => {
            drawings.length = 0;
            return keep(matrixDrawing({ labels, rows, kind: h.kind, marks, point, name: h.name }, width));
        }, { wide: true }),
        figure(h.name + '-line-' + pair.line + '-lines', 'the same as lines', (width) =>
            keep(linesDrawing({ labels, layers: [{ rows, style: 0, name: shortName(h) }], kind: h.kind, point }, width)),
        { most: 460 }), out);
}

function exampleButtons(h, show) {
    const row = (r, list, title) => (r[list] || []).length > 0 && el('span', { class: 'examples' }, title + ' ',
        r[list].map((line) => (pairOfLine(line) >= 0
            ? el('button', { class: 'quiet', type: 'button', onclick: () => show(pairOfLine(line), r) }, 'line ' + line)
            : el('span', { class: 'muted', title: 'not in this page: headwise heads show MODEL ' + h.name + ' --pair ' +
                line }, 'line ' + line + ' '))));
    return h.found.map((r) => el('div', { class: 'example-row' }, swatch(familyOf(r), 16),
        el('b', {}, roleOf(r.role).short), scopeMark(r) && el('span', { class: 'muted' }, scopeMark(r)),
        row(r, 'strongest', 'strongest'), row(r, 'failing', 'fails')));
}

function sentencePart(h) {
    const room = el('div', {}), title = el('p', { class: 'sentence-title' });
    const show = (index, r) => {
        const pair = PAIRS[index];
        title.replaceChildren('line ' + pair.line + ': ', el('bdi', {}, pair.source.tokens.join(' ')), ' \u2192 ',
            el('bdi', {}, pair.target.tokens.join(' ')), ' ',
            el('button', { class: 'quiet', type: 'button', onclick: () => explore(index, [h.name], r) },
                'open in the explorer'));
        room.replaceChildren(sentenceView(h, pair, r, 'weights'));
    };
    const first = bestPair(h);
    if (first < 0) return el('p', { class: 'muted' }, 'This page holds no sentences.');
    show(first, h.main);
    return [el('h4', {}, 'In a sentence'), title, room, el('div', { class: 'example-list' }, exampleButtons(h, show))];
}

/* ---- figures ---- */

function roleRowOf(r) {
    const scope = scopeMark(r);
    return { label: roleOf(r.role).short + (scope ? ' (' + scope + ')' : ''), value: r.score, low: r.low, high: r.high,
        family: familyOf(r), hollow: !r.found,
        marks: [{ at: r.baseline, sign: 'bar' }, { at: r.control, sign: 'cross' }],
        says: (roleRow(r.role).counts || r.role) + (scope ? ', ' + scopeOf(r) : '') + ': ' + fixed(r.score, 3) + ' ' +
            interval(r, 3) + '; baseline ' + fixed(r.baseline, 3) + '; best untrained head ' + fixed(r.control, 3) +
            '; p ' + probability(r.p) + '; ' + plural(r.cases, 'case') + (isParked(r) ? '; parked' : '') +
            (r.too_strong ? '; ' + tooStrong(r) : '') };
}

function rolesPart(h) {
    const rest = h.tests.filter((r) => !r.found).sort((a, b) => b.score - a.score);
    const chart = (rows, title, name) => figure(h.name + '-' + name, title, (width) => intervalChart(rows.map(roleRowOf),
        width, { low: 0, high: 1, label: 'score', title: h.name + ', ' + title }));
    return [el('h4', {}, 'Roles'),
        h.found.length ? chart(h.found, 'roles found', 'roles')
            : el('p', {}, 'No role found among ' + plural(rest.length, 'test') + '.'),
        h.found.some(isParked) && el('p', { class: 'muted' }, 'Parked: ' + h.found.filter(isParked).map((r) =>
            roleOf(r.role).short + ' (' + share(r.norm_ratio) + ' of the weight arrives)').join(', ') +
            '. The words that get the weight send little.'),
        rest.length > 0 && el('details', {}, el('summary', {}, 'The ' + plural(rest.length, 'test') + ' not passed'),
            chart(rest, 'tests not passed', 'other-tests')),
        el('p', { class: 'key' }, key('circle', 'score, with its 95\u202f% interval'), key('bar', 'baseline: ' +
            'best fixed offset, diagonal or untrained head'), key('cross', 'best untrained head'))];
}

/* A sign and what it means. */
const key = (sign, text) => el('span', { class: 'sign' }, svg('svg', { viewBox: '0 0 16 16', width: 16, height: 16,
    'aria-hidden': 'true' }, sign === 'circle' ? [svg('line', { class: 'range', x1: 0, x2: 16, y1: 8, y2: 8 }),
    svg('circle', { class: 'point', cx: 8, cy: 8, r: 4.5 })]
    : sign === 'bar' ? svg('line', { class: 'baseline', x1: 8, x2: 8, y1: 1, y2: 15 })
        : sign === 'square' ? svg('rect', { class: 'point hollow', x: 4, y: 4, width: 8, height: 8 })
            : svg('path', { class: 'control', d: 'M4.5 4.5l7 7m0 -7l-7 7' })), text);

function offsetsPart(h) {
    const s = statsOf(h, stepOf(h), 'weights');
    if (!s) return null;
    const special = h.kind === 'decoder' ? '<s>' : '</s>';
    const bars = [...s.offsets.map((value, i) => ({ label: OFFSETS[i], value })),
        { label: special, value: s.argmax_special, quiet: true, always: true }];
    const cross = h.kind === 'cross' ? ' (position in the source minus position in the target)' : '';
    return [el('h4', {}, 'Where the largest weight is'),
        figure(h.name + '-offsets', 'words away from the word that looks' + (s.step ? ', where it is ' + s.step : '') +
            cross, (width) => barChart(bars, width, { title: 'Offsets of the largest weight of ' + h.name }))];
}

const SPREAD = [['entropy', 'entropy, nats', 2], ['relative_entropy', 'of the possible', 2],
    ['confidence', 'largest weight', 2], ['distance', 'mean distance', 2], ['special', 'on <s> or </s>', 2],
    ['punct', 'on punctuation', 2]];

function spreadPart(h) {
    const mine = statsOf(h, stepOf(h), 'weights');
    if (!mine) return null;
    const all = HEADS.filter((o) => o.kind === h.kind).map((o) => statsOf(o, mine.step, 'weights'));
    const rows = SPREAD.filter(([name]) => isNumber(mine[name])).map(([name, label, digits]) => ({ label,
        value: mine[name], text: fixed(mine[name], digits), all: all.map((s) => s[name]) }));
    return [el('h4', {}, 'How it spreads'), figure(h.name + '-spread', 'this head among those of its kind', (width) =>
        stripChart(rows, width, 'Spread of ' + h.name))];
}

/* Importance and ablation, as far as they are there. */
function needPart(h) {
    const rows = [];
    const among = (section, entry, value, label, write, same) => rows.push({ label, value: entry[value],
        text: write(entry[value], 4), says: label + ': ' + write(entry[value], 4) + ' ' +
            (entry.low !== undefined ? interval(entry, 4) : ''),
        all: RESULTS[section].heads.filter((x) => HEAD.has(x.name) && same(x)).map((x) => x[value]) });
    for (const x of entriesOf('ablate', h.name))
        among('ablate', x, 'loss_delta', 'loss ' + (MODES[x.mode] || x.mode), signed, (o) => o.mode === x.mode);
    for (const x of entriesOf('importance', h.name))
        among('importance', x, 'value', 'slope, a ' + x.reading, fixed, (o) => o.reading === x.reading);
    if (!rows.length) return null;
    return [el('h4', {}, 'Does the network need it?'), figure(h.name + '-need', 'this head among all heads', (width) =>
        stripChart(rows, width, 'What ' + h.name + ' is worth'))];
}
const MODES = { zero: 'without it', mean: 'with its mean', uniform: 'if it is even' };

function headCard(h) {
    return el('article', { class: 'card', 'aria-label': describe(h) },
        el('header', {}, el('h3', {}, h.name), el('p', { class: 'muted' }, describe(h)),
            el('p', { class: 'does' }, h.main && swatch(familyOf(h.main), 20), sentenceOf(h))),
        el('div', { class: 'parts' },
            [sentencePart(h), rolesPart(h), offsetsPart(h), needPart(h), spreadPart(h)]
                .map((part, i) => part && el('section', { class: i ? '' : 'whole' }, part))));
}
