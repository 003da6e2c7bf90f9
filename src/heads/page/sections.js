'use strict';
/* The sections below the explorer, one a verb. To add one: a row here, and in src/cli/heads_report.c. A function gets
 * the verb's result and gives what stands in the section; a result without a row is shown as a plain table. */

/* "chance" of a row's family: the colour of a head in charts over all heads. */
const colourOf = (name) => {
    const h = HEAD.get(name);
    return h && h.main ? familyOf(h.main) : 'none';
};
const letterOf = (name) => (HEAD.get(name) && HEAD.get(name).main ? FAMILIES[familyOf(HEAD.get(name).main)].letter : '\u00b7');
const nameColumn = { title: 'head', left: true, value: (r) => r.name };
const stepColumn = { title: 'step', left: true, value: (r) => r.step };
const numberColumn = (title, key, digits, says) => ({ title, says, value: (r) => r[key], text: (r) => fixed(r[key], digits) });
const intervalColumn = (digits, low = 'low', high = 'high') => ({ title: '95\u202f%', value: (r) => r[low],
    text: (r) => interval(r, digits, low, high) });
const openHead = (r) => choose(r.name, true);

/* ---- roles ---- */

function rolesSection(result) {
    const tests = HEADS.flatMap((h) => h.tests.map((r) => ({ ...r, name: h.name })));
    const list = el('div', {}), options = [...new Set(tests.map((t) => t.role))];
    const select = el('select', { 'aria-label': 'role', onchange: () => draw(select.value) },
        options.map((o) => el('option', { value: o }, roleOf(o).short + ' \u2014 ' + (roleRow(o).counts || o))));
    const draw = (role) => {
        const rows = tests.filter((t) => t.role === role).sort((a, b) => b.score - a.score);
        list.replaceChildren(figure('role-' + role, 'every head, the best first: ' + (roleRow(role).counts || role), (width) =>
            intervalChart(rows.slice(0, 24).map((r) => ({ ...roleRowOf(r), name: r.name, label: r.name +
                (scopeMark(r) ? ' ' + scopeMark(r) : '') })), width, { low: 0, high: 1, label: 'score', room: 230,
                title: 'Role ' + role + ' over all heads', click: (name) => choose(name, true) }), { most: 860 }));
    };
    const first = HEADS.filter((h) => h.main).sort((a, b) => lift(b.main) - lift(a.main))[0];
    select.value = first ? first.main.role : options[0];
    draw(select.value);
    return [el('p', {}, 'One role over all heads: ', select), list,
        el('p', { class: 'key' }, key('circle', 'role found'), key('square', 'not passed'), key('bar', 'baseline'),
            key('cross', 'best untrained head')),
        sortableTable('roles', 'Every test of every head', [nameColumn,
            { title: 'role', left: true, value: (r) => r.role },
            { title: 'subset', left: true, value: (r) => r.subset }, stepColumn, numberColumn('score', 'score', 3),
            intervalColumn(3), numberColumn('baseline', 'baseline', 3, 'best fixed offset, diagonal or untrained head'),
            numberColumn('untrained', 'control', 3, 'the best head of three untrained copies'),
            { title: 'p', says: 'after Holm over all tests of the model', value: (r) => r.p, text: (r) => probability(r.p) },
            { title: 'cases', value: (r) => r.cases, text: (r) => count(r.cases) },
            { title: 'found', left: true, value: (r) => (r.found ? r.tier : tooStrong(r) || 'no') }],
        tests.filter((t) => t.found).concat(tests.filter((t) => !t.found)), { click: openHead }),
        el('details', {}, el('summary', {}, 'What each role asks for'), el('div', { class: 'scroll' }, el('table', {},
            el('thead', {}, el('tr', {}, ['role', 'what counts', 'least score', 'held against', 'that may reach', 'source'].map((t) =>
                el('th', { class: 'left', scope: 'col' }, t)))),
            el('tbody', {}, (result.table || []).map((r) => el('tr', {}, el('th', { scope: 'row' }, r.name),
                [r.counts, (r.threshold ? share(r.threshold) + ' and ' : '') + Math.round(100 * r.margin) +
                    ' points over the baseline', r.baseline,
                    isNumber(r.ceiling) ? share(r.ceiling) : 'anything', r.source]
                    .map((t) => el('td', { class: 'left' }, t)))))))),
        el('p', { class: 'muted' }, 'p: head against the better of baseline and untrained heads, paired and clustered by ' +
            'sentence, after Holm over the ' + plural(result.tests, 'test') + ' of this model. Heads of all roles must exceed ' +
            'the best untrained head; where the baseline is near 1, half of what is left is enough.')];
}

/* ---- alignment ---- */

function alignSection(result) {
    const best = result.best || {};
    const names = { ibm1: 'IBM model 1', diagonal: 'the diagonal' };
    const row = (r) => ({ name: HEAD.has(r.name) ? r.name : undefined, label: (names[r.name] || r.name) + (r.step ? ' ' +
        r.step : ''),
        value: r.aer, low: r.low, high: r.high, family: r.step ? (HEAD.has(r.name) ? 'aligned' : 'content') : 'places',
        hollow: !HEAD.has(r.name), marks: isNumber(r.aer_norm) ? [{ at: r.aer_norm, sign: 'bar' }] : [] });
    const rows = [...result.heads, ...result.means, ...result.baselines].sort((a, b) => a.aer - b.aer).map(row);
    return [best.name && el('p', {}, 'Best on the validation set: ', el('b', {}, best.name), ', where the word is ' +
        best.step + ', by ' + best.measure + '. On the test set its alignment error rate is ', el('b', {}, share(best.aer)),
    '.'),
    figure('alignment', 'alignment error rate, less is better', (width) => intervalChart(rows, width, { low: 0, high: 1,
        label: 'alignment error rate', room: 210, title: 'Alignment error rate', click: (name) => choose(name, true) }),
    { most: 860 }),
    el('p', { class: 'key' }, key('circle', 'a head'), key('square', 'means of heads, and baselines: the diagonal, IBM model 1'),
        key('bar', 'by norms instead of weights')),
    sortableTable('alignment', 'Alignment error rates', [nameColumn, stepColumn, numberColumn('AER', 'aer', 4),
        intervalColumn(4), numberColumn('AER by norms', 'aer_norm', 4), intervalColumn(4, 'low_norm', 'high_norm'),
        numberColumn('on validation', 'selection_aer', 4)], [...result.heads, ...result.means, ...result.baselines])];
}

/* ---- ablation ---- */

function ablateSection(result) {
    const modes = [...new Set(result.heads.map((r) => r.mode))], room = el('div', {});
    const draw = (mode) => {
        const rows = result.heads.filter((r) => r.mode === mode).sort((a, b) => b.loss_delta - a.loss_delta);
        const ends = rows.flatMap((r) => [r.low, r.high, r.loss_delta]).filter(isNumber);
        room.replaceChildren(figure('ablation-' + mode, 'change of the loss, nats a target token', (width) => intervalChart(
            rows.map((r) => ({ name: HEAD.has(r.name) ? r.name : undefined, label: r.name, value: r.loss_delta, low: r.low,
                high: r.high, family: colourOf(r.name), hollow: !(r.p < 0.05), says: r.name + ' ' + (MODES[mode] || mode) +
                    ': loss ' + signed(r.loss_delta, 4) + ' ' + interval(r, 4) + ', p ' + probability(r.p) })), width,
            { low: Math.min(0, ...ends), high: Math.max(1e-6, ...ends), label: 'change of loss', room: 150, digits: 4,
                title: 'What is lost ' + (MODES[mode] || mode), click: (name) => choose(name, true) }), { most: 860 }));
    };
    draw(modes[0]);
    const before = ['loss ' + fixed(result.loss, 4)];
    if (isNumber(result.exact_match)) before.push('exact match ' + share(result.exact_match));
    if (isNumber(result.bleu)) before.push('BLEU ' + fixed(result.bleu, 2));
    return [el('p', {}, 'The network as it is: ' + before.join(', ') + '. Each head in turn is replaced by:'),
        modes.length > 1 && choice('what takes the head\u2019s place', modes.map((m) => [m, { zero: 'nothing',
            mean: 'its mean output', uniform: 'even attention' }[m] || m]), modes[0], draw), room,
        el('p', { class: 'key' }, key('circle', 'p < 0.05 after Holm'), key('square', 'not significant')),
        sortableTable('ablation', 'What the network loses without each head', [nameColumn, { title: 'replaced by', left: true,
            value: (r) => r.mode }, { title: 'change of loss', value: (r) => r.loss_delta, text: (r) => signed(r.loss_delta, 4) },
        intervalColumn(4), { title: 'p', value: (r) => r.p, text: (r) => probability(r.p) },
        ...(result.heads.some((r) => isNumber(r.bleu_delta)) ? [
            { title: 'exact match, points', value: (r) => 100 * r.exact_match_delta, text: (r) => signed(100 *
                r.exact_match_delta, 1) },
            { title: 'BLEU', value: (r) => r.bleu_delta, text: (r) => signed(r.bleu_delta, 2) },
            intervalColumn(2, 'bleu_low', 'bleu_high')] : [])], result.heads, { click: openHead })];
}

/* ---- importance ---- */

function importanceSection(result) {
    const readings = [...new Set(result.heads.map((r) => r.reading))], room = el('div', {});
    const loss = new Map(((RESULTS.ablate || {}).heads || []).filter((r) => r.mode === 'zero').map((r) => [r.name,
        r.loss_delta]));
    const draw = (reading) => {
        const rows = result.heads.filter((r) => r.reading === reading).sort((a, b) => b.value - a.value);
        const ends = rows.flatMap((r) => [r.value, r.high]).filter(isNumber);
        const points = rows.filter((r) => loss.has(r.name)).map((r) => ({ name: r.name, x: r.value, y: loss.get(r.name),
            family: colourOf(r.name), letter: letterOf(r.name), says: r.name + ': gradient ' + fixed(r.value, 4) +
                ', loss without it ' + signed(loss.get(r.name), 4) }));
        const check = (result.correlations || []).find((c) => c.reading === reading && !c.normalised && c.mode === 'zero');
        room.replaceChildren(figure('importance-' + reading, 'gradient at the gate, |dL/d\u03be| a ' + reading, (width) =>
            intervalChart(rows.map((r) => ({ name: r.name, label: r.name, value: r.value, low: r.low, high: r.high,
                family: colourOf(r.name) })), width, { low: 0, high: Math.max(1e-9, ...ends), label: '|dL/d\u03be|',
                digits: 4, title: 'Importance by gradient', click: (name) => choose(name, true) }), { most: 860 }),
        ...(points.length > 2 ? [figure('importance-and-ablation-' + reading, 'gradient and what is really lost' +
            (check ? ': rank correlation ' + fixed(check.rho, 2) + ' ' + interval(check, 2) : ''), (width) =>
            scatterChart(points, width, { title: 'Importance against ablation', x: 'gradient, a ' + reading,
                y: 'change of loss without the head', click: (name) => choose(name, true) }), { most: 620 })] : []));
    };
    draw(readings[0]);
    return [readings.length > 1 && choice('reading', readings.map((r) => [r, 'by ' + r]), readings[0], draw), room,
        sortableTable('importance', 'Importance', [nameColumn, { title: 'reading', left: true, value: (r) => r.reading },
            numberColumn('value', 'value', 5), intervalColumn(5), numberColumn('of its layer', 'normalised', 3)],
        result.heads, { click: openHead }),
        (result.correlations || []).length > 0 && sortableTable('correlations', 'Rank correlation with ablation',
            [{ title: 'reading', left: true, value: (r) => r.reading },
                { title: 'normalised', left: true, value: (r) => (r.normalised ? 'a layer' : 'no') },
                { title: 'ablation', left: true, value: (r) => r.mode }, numberColumn('rank correlation', 'rho', 3),
                intervalColumn(3), numberColumn('resampled', 'resampled', 3, 'the mean when sentences are drawn anew, which ' +
                    'blurs both sides and lowers it; the interval is freed of that')], result.correlations)];
}

/* ---- statistics ---- */

function statsSection(result) {
    const state = { unit: 'token', measure: 'weights' }, room = el('div', {});
    const draw = () => room.replaceChildren(sortableTable('stats-' + state.unit + '-' + state.measure,
        'Statistics by ' + state.unit + ', ' + state.measure, [nameColumn, stepColumn,
            numberColumn('entropy', 'entropy', 3, 'nats'),
            numberColumn('relative', 'relative_entropy', 3, 'over the logarithm of the keys that may be seen'),
            numberColumn('confidence', 'confidence', 3, 'the largest weight on a word'),
            numberColumn('distance', 'distance', 2, 'words, weighted'), numberColumn('first', 'first', 3),
            numberColumn('last', 'last', 3), numberColumn('self', 'self', 3), numberColumn('punct', 'punct', 3,
                'on punctuation'), numberColumn('special', 'special', 3, 'on <s> and </s>')],
        result.heads.filter((r) => r.unit === state.unit && r.measure === state.measure), { click: openHead }));
    draw();
    return [el('div', { class: 'controls' },
        choice('unit', [['token', 'by token'], ['word', 'by word']], 'token', (v) => { state.unit = v; draw(); }),
        choice('measure', [['weights', 'weights'], ['norms', 'norms']], 'weights', (v) => { state.measure = v; draw(); })),
    room];
}

/* ---- diversity ---- */

const LAYER_FIGURES = [['js', 'JS distance', 'how differently two heads look, 0 to 1'], ['position', 'position',
    'the product of their weights: 1 where both look at one word'], ['output', 'output', 'the cosine of what they give'],
['subspace', 'subspace', 'the cosine of their values'], ['cka', 'CKA', 'how alike their outputs are up to rotation and scale'],
['effective_heads', 'effective heads', 'how many different ones there are, from the eigenvalues of CKA']];

function diversitySection(result) {
    const maps = Object.keys(KINDS).map((kind) => {
        const points = result.heads.filter((r) => r.kind === kind && isNumber(r.x) && isNumber(r.y)).map((r) => ({
            name: r.name, x: r.x, y: r.y, family: colourOf(r.name), letter: letterOf(r.name),
            label: HEAD.has(r.name) ? HEAD.get(r.name).layer + '.' + HEAD.get(r.name).head : '',
            says: r.name + (r.nearest ? ': nearest is ' + r.nearest + ', at ' + fixed(r.nearest_js, 2) : '') }));
        return points.length > 2 && figure('map-' + kind, KINDS[kind].title, (width) => mapChart(points, width, {
            title: 'Map of the heads: ' + KINDS[kind].title, click: (name) => choose(name, true) }), { most: 440 });
    });
    const columns = LAYER_FIGURES.map(([name, title, says]) => numberColumn(title, name, 3, says));
    return [el('p', {}, 'Heads that look alike stand near each other (a map of the Jensen-Shannon distances between their ' +
        'rows; its axes mean nothing). Beside each: layer and head.'), el('div', { class: 'maps' }, maps),
    sortableTable('diversity', 'How different the heads of each attention are', [{ title: 'attention', left: true,
        value: (r) => r.name }, { title: 'heads', value: (r) => r.heads }, ...columns], result.layers),
    sortableTable('pairs', 'Every two heads of a kind', [{ title: 'head', left: true, value: (r) => r.a },
        { title: 'and', left: true, value: (r) => r.b }, ...columns.slice(0, -1)], result.pairs.slice()
        .sort((a, b) => a.js - b.js))];
}

/* ---- whatever else ---- */

/* Each list of objects in a result as a table, figures in front. */
function plainSection(result, name) {
    const entries = Object.entries(result);
    const facts = entries.filter(([k, v]) => ['number', 'string'].includes(typeof v) && !['fingerprint', 'seed', 'data']
        .includes(k));
    const simple = (v) => v === null || ['number', 'string', 'boolean'].includes(typeof v);
    const lists = entries.filter(([, v]) => Array.isArray(v) && v.length && typeof v[0] === 'object');
    return [facts.length > 0 && el('p', {}, facts.map(([k, v], i) => (i ? ', ' : '') + k.replace(/_/g, ' ') + ' ' +
        (isNumber(v) ? +v.toPrecision(5) : v))),
    lists.map(([list, rows]) => {
        const keys = [...new Set(rows.flatMap((r) => Object.keys(r).filter((k) => simple(r[k]))))];
        return sortableTable(name + '-' + list, list, keys.map((k) => ({ title: k.replace(/_/g, ' '),
            left: rows.some((r) => typeof r[k] === 'string'), value: (r) => r[k],
            text: (r) => (isNumber(r[k]) ? String(+r[k].toPrecision(4)) : String(r[k] === undefined || r[k] === null ? '' :
                r[k])) })), rows, rows.some((r) => HEAD.has(r.name)) ? { click: openHead } : {});
    })];
}

const SECTIONS = [
    { name: 'roles', title: 'Roles', says: 'Every head held against every role.', draw: rolesSection },
    { name: 'align', title: 'Word alignment', says: 'How well cross-attention links target words to source words.',
        draw: alignSection },
    { name: 'ablate', title: 'What happens without a head', says: 'The same translations with one head put out of action.',
        draw: ablateSection },
    { name: 'importance', title: 'Importance by gradient', says: 'How the loss reacts to each head\u2019s gate.',
        draw: importanceSection },
    { name: 'stats', title: 'Statistics', says: 'Where every head looks, over all words of the data.', draw: statsSection },
    { name: 'diversity', title: 'Diversity', says: 'How different the heads are from each other.', draw: diversitySection },
    { name: 'prune', title: 'Pruning', says: 'The least important head goes, again and again.', draw: pruneSection },
    { name: 'probe', title: 'Probes', says: 'What can be read off every head, layer and the embeddings.', draw: probeSection },
    { name: 'trace', title: 'Roles over training', says: 'When each head came to do what it does.', draw: traceSection },
    { name: 'compare', title: 'Side by side', says: 'This model beside others of the same data.', draw: compareSection },
];

/* Sections of results, with what they can and cannot show; then the verbs that had nothing to give. */
function resultSections() {
    const known = SECTIONS.filter((s) => RESULTS[s.name]);
    const others = Object.keys(RESULTS).filter((n) => !SECTIONS.some((s) => s.name === n)).map((name) => ({ name,
        title: name[0].toUpperCase() + name.slice(1), says: '', draw: plainSection }));
    return [...known, ...others].map((s) => section(s.name, s.title, s.says, caveats(RESULTS[s.name]),
        s.draw(RESULTS[s.name], s.name)));
}

/* What a reader must know before he believes a result: see src/cli/heads_text.c, which says the same. */
function caveats(result) {
    const groups = new Map();
    for (const u of result.untested || []) {
        const group = '(' + u.in + '): ' + u.why;
        groups.set(group, [...(groups.get(group) || []), u.role]);
    }
    const few = result.interval_sentences;
    const unknown = result.unknown_tokens / result.tokens;
    return [unknown >= 0.1 && el('p', { class: 'caveat' }, el('b', {}, 'Take care. '), share(unknown) + ' of the tokens are ' +
        'unknown to the model: its vocabulary is not that of these sentences, and what heads do with them tells little.'),
    ...(result.left_out || []).map((set) => el('p', { class: 'caveat' }, el('b', {}, 'Take care. '), set.why + '. ' +
        (set.pairs === 1 ? '1 such pair is' : count(set.pairs) + ' such pairs are') + ' left out.')),
    result.closed_heads && el('p', { class: 'caveat' }, el('b', {}, 'Take care. '), 'Closed, what they give being multiplied ' +
        'by zeros: ' + result.closed_heads.join(', ') + '. Where they look changes nothing; figures of all heads have them in.'),
    result.chosen_on_scored && el('p', { class: 'caveat' }, el('b', {}, 'Take care. '), 'Also in the ' +
        'validation set, on which the choice was made: ' + plural(result.shared_sentences, 'sentence') + ' of those scored ' +
        'here. What is chosen on sentences looks better on them than on others.'),
    result.rough_intervals && el('p', { class: 'caveat' }, few < 2 ? 'Of one sentence there is no interval, and it tells nothing of others.'
        : 'Intervals from ' + count(few) + ' sentences are rough, and rather too narrow.'),
    groups.size > 0 && el('p', { class: 'caveat' }, 'Not tested: ' + [...groups].map(([group, roles]) => roles.join(', ') + ' ' +
        group).join('; ') + '.')];
}

function notes(name) {
    const [can, cannot] = NOTES[name] || [];
    return can && el('div', { class: 'notes' }, el('p', {}, el('b', {}, 'Shows. '), can),
        el('p', {}, el('b', {}, 'Does not show. '), cannot));
}

function section(id, title, says, ...children) {
    return el('section', { id, class: 'page-section', 'aria-labelledby': id + '-title' },
        el('h2', { id: id + '-title' }, title), says && el('p', { class: 'says' }, says), children, notes(id));
}
