'use strict';
/* Sections of experiments: heads pruned, roles over training, probes, two models side by side. They are there where the
 * results are kept or were asked for. */

/* ---- prune ---- */

function pruneSection(result) {
    const rows = result.heads, room = el('div', {});
    const figures = {
        exact_match: { title: 'change of exact match, points', scale: 100, digits: 1, delta: 'exact_match_delta',
            low: 'exact_match_low', high: 'exact_match_high', rules: [-1] },
        bleu: { title: 'change of BLEU', scale: 1, digits: 2, delta: 'bleu_delta', low: 'bleu_low', high: 'bleu_high', rules: [] },
        loss: { title: 'change of the loss, nats a target token', scale: 1, digits: 4, delta: 'loss_delta', low: 'low',
            high: 'high', rules: [] },
    };
    const draw = (name) => {
        const f = figures[name];
        const points = rows.map((r) => ({ x: r.removed, y: f.scale * r[f.delta], low: isNumber(r[f.low]) ? f.scale * r[f.low]
            : undefined, high: isNumber(r[f.high]) ? f.scale * r[f.high] : undefined,
        says: plural(r.removed, 'head') + ' gone' + (r.name ? ', the last ' + r.name : '') + ': ' + signed(f.scale *
            r[f.delta], f.digits) }));
        room.replaceChildren(figure('pruning-' + name, f.title, (width) => lineChart([{ name: f.title, points, strong: true,
            dots: true }], width, { title: 'Pruning: ' + f.title, x: 'heads gone', rules: f.rules, marked: result.spare }),
        { most: 760 }));
    };
    draw('exact_match');
    const spare = result.spare_undefined
        ? ['It is not defined how many of the ' + plural(result.network_heads, 'head') + ' go before exact match falls by more ' +
            'than a point: ' + result.spare_undefined + '.']
        : [el('b', {}, result.spare + ' of ' + plural(result.network_heads, 'head')), ' go, the least important first, before ' +
            'exact match falls by more than a point (' + share(result.spare_share) + '). One head of each attention stays.'];
    return [el('p', {}, ...spare),
    choice('figure', [['exact_match', 'exact match'], ['bleu', 'BLEU'], ['loss', 'loss']], 'exact_match', draw), room,
    el('p', { class: 'key' }, 'The band is the 95\u202f% interval over sentences, paired with the whole network; dashed: the ' +
        'last step within a point of exact match, and a point less.'),
    sortableTable('pruning', 'Heads taken away, one after another', [{ title: 'gone', value: (r) => r.removed },
        { title: 'the last', left: true, value: (r) => r.name || '', text: (r) => r.name || '\u2013' },
        numberColumn('importance', 'importance', 5), numberColumn('loss', 'loss', 4), intervalColumn(4),
        { title: 'exact match', value: (r) => r.exact_match, text: (r) => fixed(100 * r.exact_match, 1) },
        { title: '95\u202f%', says: 'of the change, in points', value: (r) => r.exact_match_low, text: (r) => interval(isNumber(
            r.exact_match_low) ? { low: 100 * r.exact_match_low, high: 100 * r.exact_match_high } : {}, 1) }, numberColumn('BLEU', 'bleu', 2),
        intervalColumn(2, 'bleu_low', 'bleu_high')], rows)];
}

/* ---- trace ---- */

const sameScope = (a, b) => a.role === b.role && a.subset === b.subset && a.step === b.step;
const scopedRole = (r) => r.role + (scopeMark(r) ? ', ' + scopeMark(r) : '');

/* One role over training: a line a head, strong where the head has it at the end. */
function roleCourse(result, role) {
    const lines = result.heads.flatMap((h) => h.roles.filter((r) => sameScope(r, role)).map((r) => ({ ...r, name: h.name })));
    const series = lines.map((r) => ({ name: r.name, strong: isNumber(r.arises), click: () => choose(r.name, true),
        says: r.name + ': ' + (isNumber(r.arises) ? 'from step ' + count(r.arises) + ' on' : 'not at the end') + ', ' +
            fixed(r.score, 2) + ' at the end',
        points: result.steps.map((x, i) => ({ x, y: r.scores[i] })), 
        ring: isNumber(r.arises) ? result.steps.find((x) => x >= r.arises) : undefined }))
        .sort((a, b) => a.strong - b.strong);
    const baseline = lines.map((r) => r.baseline).find(isNumber);
    const note = isNumber(role.arises) ? 'from step ' + count(role.arises) + ' on: ' + role.name + (role.unconfirmed
        ? ' (not confirmed yet)' : '') : 'seen at step ' +
        count(role.first) + ', does not stay';
    return figure('trace-' + scopedRole(role), scopedRole(role) + ': ' + note, (width) => lineChart(series, width, {
        title: 'Role ' + scopedRole(role) + ' over training, ' + note, x: 'training step', low: 0, high: 1, height: 190,
        rules: isNumber(baseline) ? [baseline] : [] }), { most: 420 });
}

function traceSection(result) {
    const stepColumns = ['arises', 'first'].map((key) => ({ title: key === 'first' ? 'first seen' : key, value: (r) => r[key],
        text: (r) => (isNumber(r[key]) ? count(r[key]) + (key === 'arises' && r.unconfirmed ? ' ?' : '') : '\u2013') }));
    const roleColumn = { title: 'role', left: true, value: (r) => r.role };
    const scopeColumn = { title: 'where', left: true, value: (r) => scopeMark(r) };
    const rows = result.heads.flatMap((h) => h.roles.filter((r) => isNumber(r.first)).map((r) => ({ ...r, name: h.name })));
    const course = (key, title, digits) => figure('trace-' + key, title, (width) => lineChart([{ name: title, strong: true,
        points: result.course.map((r) => ({ x: r.training_step, y: r[key], says: 'step ' + count(r.training_step) + ': ' +
            fixed(r[key], digits) })), dots: true }], width, { title, x: 'training step', low: 0, height: 190 }), { most: 420 });
    return [el('p', {}, 'At ' + plural(result.steps.length, 'validation') + ', on ' + plural(result.sentences, 'pair') +
        ' of the validation set at most. A role arises in a head at the first validation from which on it has it to the end.' +
        (result.heads.some((h) => h.roles.some((r) => r.unconfirmed)) ? ' ?: at the last one only, not confirmed yet.' : '')),
    el('div', { class: 'maps' }, course('heads_with_role', 'heads with a role', 0), course('relative_entropy',
        'entropy over its largest value, mean of the heads', 3), result.roles.map((r) => roleCourse(result, r))),
    el('p', { class: 'key' }, 'Strong lines: heads that have the role at the end, with a ring where it arises. Dashed: the ' +
        'better of baseline and untrained heads.'),
    result.roles.length > 0 && sortableTable('arising', 'When each role arises', [roleColumn, scopeColumn, ...stepColumns,
        { title: 'in', left: true, value: (r) => r.name || '' }, { title: 'heads at the end', value: (r) => r.heads }],
    result.roles),
    rows.length > 0 && sortableTable('arising-heads', 'By head', [nameColumn, roleColumn, scopeColumn, ...stepColumns,
        numberColumn('at the end', 'score', 3), numberColumn('chance', 'baseline', 3)], rows, { click: openHead })];
}

/* ---- probe ---- */

function probeSection(result) {
    const sideOf = (r) => (r.name.startsWith('decoder') ? 'target' : 'source'), room = el('div', {});
    const groups = [...new Set(result.heads.map((r) => sideOf(r) + ': ' + r.label))];
    const of = (group) => result.heads.filter((r) => sideOf(r) + ': ' + r.label === group);
    const select = el('select', { 'aria-label': 'label', onchange: () => draw(select.value) }, groups.map((g) =>
        el('option', { value: g }, g)));
    const draw = (group) => {
        const rows = of(group), first = rows[0];
        room.replaceChildren(el('p', { class: 'muted' }, first.classes + ' classes; the commonest is ' + share(first.majority) +
            '; ' + count(first.learnt) + ' words learnt, ' + count(first.tested) + ' tested' + (first.words_held_out
            ? ', none of them learnt.' : '.')),
        figure('probe-' + group, 'accuracy of a probe: ' + group, (width) => intervalChart(rows.map((r) => ({
            name: r.is_head ? r.name : undefined, label: r.name, value: r.accuracy, low: r.low, high: r.high,
            family: r.is_head ? colourOf(r.name) : 'none', hollow: !r.is_head, marks: [{ at: r.embeddings, sign: 'bar' },
                { at: r.untrained, sign: 'cross' }], says: r.name + ': ' + fixed(r.accuracy, 3) + ' ' + interval(r, 3) +
                ', selectivity ' + signed(r.selectivity, 3) })), width, { low: 0, high: 1, label: 'accuracy', room: 190,
            title: 'Probes: ' + group, click: (name) => choose(name, true) }), { most: 860 }));
    };
    if (groups.length) draw(groups[0]);
    return [groups.length > 0 && el('p', {}, 'What is read off: ', select), room,
        el('p', { class: 'key' }, key('circle', 'a head'), key('square', 'embeddings, and what comes out of a layer'),
            key('bar', 'the same probe on the embeddings'), key('cross', 'on an untrained network')),
        sortableTable('probes', 'All probes', [nameColumn, { title: 'label', left: true, value: (r) => r.label },
            numberColumn('accuracy', 'accuracy', 3), intervalColumn(3), numberColumn('commonest', 'majority', 3),
            numberColumn('embeddings', 'embeddings', 3), numberColumn('untrained', 'untrained', 3),
            numberColumn('control', 'control', 3, 'each word type has the label of a word drawn at random'),
            { title: 'selectivity', value: (r) => r.selectivity, text: (r) => signed(r.selectivity, 3) },
            numberColumn('bits', 'bits', 0, 'online code length of the labels learnt from'),
            numberColumn('compression', 'compression', 2)], result.heads),
        result.skipped.length > 0 && el('p', { class: 'muted' }, 'Not probed: ' + result.skipped.join('; ') + '.')];
}

/* ---- compare ---- */

const COMPARED = { loss: ['loss', 4, 1], exact_match: ['exact match', 1, 100], bleu: ['BLEU', 2, 1], relative_entropy: [
    'relative entropy', 3, 1], js: ['JS distance in a layer', 3, 1], position: ['overlap of weights', 3, 1], output: [
    'cosine of outputs', 3, 1], cka: ['CKA', 3, 1], effective_heads: ['effective heads a layer', 2, 1], heads_with_role: [
    'heads with a role', 1, 1], kinds_of_roles: ['kinds of roles', 1, 1] };
const comparedName = (r) => (COMPARED[r.figure] || [r.figure])[0];
const comparedText = (r, x, sign) => {
    const [, digits, scale] = COMPARED[r.figure] || ['', 3, 1];
    return (sign ? signed : fixed)(isNumber(x) ? scale * x : undefined, digits);
};

/* All heads of a kind here (down) and there (across): the darker, the more alike they look; matches are outlined. */
function likenessMap(result, table, kind) {
    const place = (names) => names.map((name, i) => ({ name, i, kind: name.includes('.cross.') ? 'cross' : name.split('.')[0] }))
        .filter((h) => h.kind === kind);
    const rows = place(table.rows), columns = place(table.columns);
    const match = new Map(result.heads.filter((r) => r.with === table.with).map((r) => [r.name, r.match]));
    const short = (name) => name.split('.')[1] + '.' + name.split('.')[3];
    return rows.length > 0 && columns.length > 0 && figure('likeness-' + table.with + '-' + kind, KINDS[kind].title, (width) =>
        gridChart(rows.map((r) => ({ label: short(r.name) + ' ' + letterOf(r.name), click: () => choose(r.name, true),
            cells: columns.map((c) => ({ value: 1 - table.js[r.i][c.i], outlined: match.get(r.name) === c.name,
                says: r.name + ' and ' + c.name + ' there: JS distance ' + fixed(table.js[r.i][c.i], 2) })) })),
        columns.map((c) => short(c.name)), width, { title: 'How alike heads look: ' + KINDS[kind].title, down: 'here',
            across: table.with }), { most: 440 });
}

function compareSection(result) {
    const others = result.models.some((m) => m.against), first = result.models[0].model;
    const mean = (against) => {
        const names = result.models.filter((m) => m.against === against).map((m) => m.model);
        return names.length === 1 ? names[0] : 'mean of ' + names.length;
    };
    const figureColumns = [{ title: 'figure', left: true, value: comparedName },
        { title: mean(false), value: (r) => r.mean, text: (r) => comparedText(r, r.mean) },
        others && { title: mean(true), value: (r) => r.against, text: (r) => comparedText(r, r.against) },
        others && { title: 'difference', value: (r) => r.difference, text: (r) => comparedText(r, r.difference, true) },
        { title: '95\u202f%', value: (r) => r.low, text: (r) => (isNumber(r.low) ? '[' + comparedText(r, r.low, others) + ', ' +
            comparedText(r, r.high, others) + ']' : '\u2013') },
        others && { title: 'p', says: 'after Holm over these figures', value: (r) => r.p, text: (r) => (r.p_is_bound && r.p < 1 ?
            '< ' : '') + probability(r.p) }];
    return [el('p', {}, 'Intervals are over ' + result.over + '.' + (result.over === 'sentences' ? ' They tell these two models ' +
        'apart, not two ways of training.' : '') + result.models.filter((m) => m.same_as).map((m) => ' ' + m.model + ' and ' +
        m.same_as + ' are the same run: their weights are the same.').join('')),
    sortableTable('compared', 'Figures side by side', figureColumns.filter(Boolean), result.figures),
    result.matching.map((m) => el('p', {}, 'Matched one to one with ', el('b', {}, m.with), ', heads of ' + first + ' are at a ' +
        'mean Jensen-Shannon distance of ' + fixed(m.js, 3) + '; any two are at ' + fixed(m.chance, 3) + '. Of ' +
        plural(m.heads_with_role, 'matched head') + ' with a role ' + m.role_shared + ' share one with their match; by chance ' +
        fixed(m.role_shared_by_chance, 1) + '.')),
    result.distances.map((t) => el('div', { class: 'maps' }, Object.keys(KINDS).map((kind) => likenessMap(result, t, kind)))),
    el('p', { class: 'key' }, 'Heads by layer and number, with the letter of their role. Dark: they look alike; outlined: matched.'),
    sortableTable('matches', 'Which head does the same there', [nameColumn,
        { title: 'roles', left: true, value: (r) => r.roles.join(' ') },
        result.models.length > 2 && { title: 'with', left: true, value: (r) => r.with },
        { title: 'match', left: true, value: (r) => r.match || '' },
        { title: 'roles there', left: true, value: (r) => r.match_roles.join(' ') },
        numberColumn('JS distance', 'js', 3), numberColumn('of any', 'chance', 3, 'mean distance to all that could be matched'),
        { title: 'nearest', left: true, value: (r) => r.nearest || '' }].filter(Boolean), result.heads, { click: openHead })];
}
