'use strict';
/* The sentence explorer: any heads, whole layers or means of layers, in one sentence, side by side as matrices and
 * together as lines. */

const HUES = 8;
const explorer = { pair: 0, heads: [], measure: 'weights', view: 'both', role: '', step: 'predicted', least: 12, find: '' };

/* Goes there and shows these heads; r: a test whose cells are marked. */
function explore(pair, heads, r) {
    explorer.pair = pair;
    explorer.heads = heads;
    explorer.role = r ? r.role : '';
    explorer.step = (r && r.step) || 'predicted';
    explorer.redraw();
    document.getElementById('explorer').scrollIntoView();
    explorer.focus();
}

function toggle(name) {
    const at = explorer.heads.indexOf(name);
    if (at < 0) explorer.heads.push(name);
    else explorer.heads.splice(at, 1);
    explorer.redraw();
}

/* ---- controls ---- */

const matching = (pair) => !explorer.find || [...pair.source.tokens, ...pair.target.tokens].join(' ').toLowerCase()
    .includes(explorer.find.toLowerCase());

function pairControls(redraw) {
    const select = el('select', { 'aria-label': 'sentence', onchange: () => { explorer.pair = +select.value; redraw(); } });
    const list = () => {
        const shown = PAIRS.map((p, i) => [p, i]).filter(([p, i]) => matching(p) || i === explorer.pair);
        select.replaceChildren(...shown.map(([p, i]) => el('option', { value: i, selected: i === explorer.pair },
            p.line + ': ' + cut(p.source.tokens.join(' '), 90))));
    };
    const go = (by) => {
        const all = PAIRS.map((_, i) => i).filter((i) => matching(PAIRS[i]));
        const next = by > 0 ? all.find((i) => i > explorer.pair) : all.reverse().find((i) => i < explorer.pair);
        if (next !== undefined) { explorer.pair = next; redraw(); }
    };
    const button = (text, label, by) => el('button', { type: 'button', 'aria-label': label, onclick: () => go(by) }, text);
    const find = el('input', { type: 'search', placeholder: 'find a word', 'aria-label': 'only sentences with this word',
        oninput: () => { explorer.find = find.value; list(); } });
    return { list, node: el('div', { class: 'controls' }, button('\u2190', 'previous sentence', -1), select,
        button('\u2192', 'next sentence', 1), find) };
}

function headControls() {
    const chip = (h) => el('button', { type: 'button', class: 'chip', 'data-chip': h.name, 'aria-pressed': 'false',
        title: h.mean ? describe(h) : describe(h) + '. ' + sentenceOf(h), onclick: () => toggle(h.name) },
    h.mean ? 'mean' : [String(h.head), h.main && swatch(familyOf(h.main), 14)]);
    return el('div', { class: 'chips' }, ATTENTIONS.map((attention) => el('div', { class: 'chip-row', role: 'group',
        'aria-label': attention }, el('span', { class: 'chip-name' }, attention), headsOf(attention).map(chip),
    chip(MEANS.get(attention + '.mean')),
    el('button', { type: 'button', class: 'quiet', onclick: () => {
        const names = headsOf(attention).map((h) => h.name), all = names.every((n) => explorer.heads.includes(n));
        explorer.heads = explorer.heads.filter((n) => !names.includes(n));
        if (!all) explorer.heads.push(...names);
        explorer.redraw();
    } }, 'all'))), el('div', {}, el('button', { type: 'button', class: 'quiet', onclick: () => {
        explorer.heads = [];
        explorer.redraw();
    } }, 'none of them')));
}

/* The roles that some test was over, in the order of the table. */
function roleControl(redraw) {
    const names = (RESULTS.roles.table || []).map((r) => r.name).filter((n) => n !== 'rare' && n !== 'broad');
    const select = el('select', { id: 'mark-role', onchange: () => { explorer.role = select.value; redraw(); } },
        el('option', { value: '' }, 'nothing'), names.map((n) => el('option', { value: n }, roleOf(n).short + ' \u2014 ' +
            (roleRow(n).counts || n).split(';')[0])));
    return { node: el('label', {}, 'mark ', select), set: () => { select.value = explorer.role; } };
}

/* ---- drawings ---- */

function explored(pair) {
    const drawings = [], out = el('output', { class: 'readout floating', 'aria-live': 'polite' });
    const resting = 'Point at a cell or a word; arrow keys do the same.';
    out.textContent = resting;
    const chosen = explorer.heads.map(headOrMean).filter(Boolean);
    const groups = ATTENTIONS.map((a) => [a, chosen.filter((h) => h.attention === a)]).filter(([, heads]) => heads.length);
    const parts = groups.map(([attention, heads]) => {
        const kind = kindOf(attention), labels = labelsOf(pair, kind);
        const layers = heads.map((h, i) => ({ name: shortName(h), rows: attentionOf(pair, h, explorer.measure),
            style: (h.mean ? 7 : h.place) % HUES, head: h }));
        const marks = explorer.role && !(explorer.role === 'aligned' && kind !== 'cross')
            ? targetCells(explorer.role, kind === 'encoder' ? undefined : explorer.step, kind, pair) : [];
        const point = (q, k) => {
            for (const d of drawings) d.drawing.mark(...(d.kind === kind ? [q, k] : [-1, -1]));
            out.textContent = readOut(labels, layers, q, k) || resting;
        };
        const keep = (slot, drawing) => {
            slot.drawing = drawing;
            if (!drawings.includes(slot)) drawings.push(slot);
            return drawing;
        };
        const matrices = explorer.view !== 'lines' && layers.map((l) => {
            const slot = { kind };
            return figure(l.head.name + '-line-' + pair.line, (l.head.mean ? 'mean' : l.name) + (l.head.main ? ': ' +
                roleOf(l.head.main.role).short : ''), (width) => keep(slot, matrixDrawing({ labels, rows: l.rows, kind,
                marks, point, name: l.head.name }, Math.min(width, 420))), { wide: true, class: 'small' });
        });
        const slot = { kind };
        const lines = explorer.view !== 'matrices' && figure(attention + '-line-' + pair.line + '-lines', 'lines from ' +
            explorer.least + '\u202f%', (width) => keep(slot, linesDrawing({ labels, layers, kind, point,
            least: explorer.least / 100 }, width)), { most: 520, class: 'small' });
        const names = layers.length > 1 && explorer.view !== 'matrices' && el('p', { class: 'key' }, layers.map((l) =>
            el('span', { class: 'sign' }, svg('svg', { viewBox: '0 0 28 8', width: 28, height: 8, 'aria-hidden': 'true' },
                svg('path', { class: 'line hue-' + l.style, d: 'M0 4H28', 'stroke-width': 3 })), l.name)));
        return el('section', { class: 'attention' }, el('h3', {}, attention, el('span', { class: 'muted' }, ' ' +
            KINDS[kind].says)), names, el('div', { class: 'panels' }, lines, matrices && el('div', { class: 'matrices' },
            matrices)));
    });
    return [parts.length ? parts : el('p', { class: 'muted' }, 'Choose heads above.'), out];
}

function explorerSection() {
    if (!PAIRS.length) return el('p', { class: 'muted' }, 'This page holds no sentences: those of the data are too long ' +
        'for it. `headwise heads show MODEL HEAD --pair N` draws one.');
    const room = el('div', {}), title = el('p', { class: 'sentence-title' });
    const redraw = () => {
        const pair = PAIRS[explorer.pair];
        pairs.list();
        marked.set();
        for (const chip of chips.querySelectorAll('[data-chip]'))
            chip.setAttribute('aria-pressed', String(explorer.heads.includes(chip.dataset.chip)));
        title.replaceChildren(el('bdi', {}, pair.source.tokens.join(' ')), el('br'), el('bdi', {},
            pair.target.tokens.join(' ')));
        room.replaceChildren(...[explored(pair)].flat(9));
        drawNow(room);
    };
    const pairs = pairControls(redraw), chips = headControls(), marked = roleControl(redraw);
    const least = el('input', { type: 'range', min: 1, max: 60, value: explorer.least, id: 'least',
        oninput: () => { explorer.least = +least.value; redraw(); } });
    explorer.redraw = redraw;
    explorer.focus = () => chips.querySelector('button').focus({ preventScroll: true });
    const h = defaultHead();
    explorer.heads = ATTENTIONS.includes(h.attention) ? headsOf(h.attention).slice(0, 4).map((o) => o.name) : [];
    explorer.pair = Math.max(0, bestPair(h));
    explorer.role = h.main && !['rare', 'broad'].includes(h.main.role) ? h.main.role : '';
    explorer.step = stepOf(h) || 'predicted';
    redraw();
    return [pairs.node, title, chips, el('div', { class: 'controls' },
        choice('measure', [['weights', 'weights'], ['norms', 'norms of what arrives']], explorer.measure, (v) => {
            explorer.measure = v; redraw();
        }),
        choice('view', [['both', 'both'], ['matrices', 'matrices'], ['lines', 'lines']], explorer.view, (v) => {
            explorer.view = v; redraw();
        }), marked.node,
        choice('decoder step', [['predicted', 'where predicted'], ['fed', 'where fed']], explorer.step, (v) => {
            explorer.step = v; redraw();
        }),
        el('label', {}, 'lines from ', least)), room];
}
