'use strict';
/* A head's attention in one sentence, as a matrix and as lines between words. Both can mark the cells that a role asks
 * for, and show one row and column (mark) when the reader points at them, here or in another drawing. */

const WEIGHT_SEEN = 0.005; /* below this a cell stays empty */

/* drawing {labels, rows, kind, marks: [[q, k]], point(q, k)}: point is called with -1, -1 when nothing is pointed at.
 * room: the width that there is; with many words the drawing may be wider. */
function matrixDrawing({ labels, rows, kind, marks, point, name }, room) {
    const longest = (texts) => Math.max(...texts.map((t) => Array.from(cut(t, 14)).length));
    const rowName = (q) => (labels.predicts ? cut(labels.queries[q], 11) + ' \u25b8 ' + cut(labels.predicts[q], 11)
        : cut(labels.queries[q], 14));
    const rowNames = labels.queries.map((_, q) => rowName(q));
    const left = Math.max(...rowNames.map((t) => Array.from(t).length)) * 6.6 + 12, top = longest(labels.keys) * 6.2 + 12;
    const cell = clamp(Math.floor((room - left - 6) / labels.keys.length), 9, 19);
    const letters = { class: 'word', 'font-size': Math.min(12, cell + 2) };
    const width = left + labels.keys.length * cell + 6, height = top + labels.queries.length * cell + 6;
    const x = (k) => left + k * cell, y = (q) => top + q * cell;
    const band = (attributes) => svg('rect', { class: 'band', visibility: 'hidden', ...attributes });
    const rowBand = band({ x: 0, y: 0, width: x(labels.keys.length), height: cell });
    const columnBand = band({ x: 0, y: 0, width: cell, height: y(labels.queries.length) });
    const cursor = svg('rect', { class: 'cursor', width: cell, height: cell, visibility: 'hidden' });
    const cells = rows.map((row, q) => row.slice(0, visible(kind, q, row.length)).map((w, k) =>
        svg('rect', { class: 'cell', x: x(k) + 0.5, y: y(q) + 0.5, width: cell - 1, height: cell - 1,
            'fill-opacity': w < WEIGHT_SEEN ? 0 : (0.04 + 0.96 * w).toFixed(3) })));
    const drawing = canvas(width, height, 'Attention of ' + name + ': ' + rows.length + ' rows that attend, ' +
        labels.keys.length + ' columns that are attended to. Arrow keys read the cells.',
    svg('rect', { class: 'ground', x: left, y: top, width: labels.keys.length * cell,
        height: labels.queries.length * cell }), rowBand, columnBand, cells,
    marks.map(([q, k]) => svg('rect', { class: 'gold', x: x(k) + 1, y: y(q) + 1, width: cell - 2, height: cell - 2 })),
    cursor,
    labels.queries.map((t, q) => write(left - 6, y(q) + cell / 2 + 4, rowNames[q], { ...letters,
        'text-anchor': 'end' })),
    labels.keys.map((t, k) => write(0, 0, cut(t, 14), { ...letters, transform: 'translate(' + (x(k) + cell / 2 + 4) +
        ' ' + (top - 6) + ') rotate(-90)' })));
    drawing.setAttribute('tabindex', '0');
    drawing.setAttribute('class', 'matrix');
    drawing.mark = (q, k) => {
        const show = (node, is) => node.setAttribute('visibility', is ? 'visible' : 'hidden');
        show(rowBand, q >= 0);
        show(columnBand, k >= 0);
        show(cursor, q >= 0 && k >= 0);
        if (q >= 0) rowBand.setAttribute('y', y(q));
        if (k >= 0) columnBand.setAttribute('x', x(k));
        if (q >= 0 && k >= 0) fill(cursor, { x: x(k), y: y(q) }, []);
    };
    let here = [0, 0];
    drawing.addEventListener('pointermove', (e) => {
        const box = drawing.getBoundingClientRect(), scale = width / box.width;
        const k = Math.floor(((e.clientX - box.left) * scale - left) / cell);
        const q = Math.floor(((e.clientY - box.top) * scale - top) / cell);
        const inside = q < labels.queries.length && k < labels.keys.length && q >= -1 && k >= -1 && (q >= 0 || k >= 0);
        if (inside && q >= 0 && k >= 0) here = [q, k];
        point(inside ? q : -1, inside ? k : -1);
    });
    drawing.addEventListener('pointerleave', () => point(-1, -1));
    drawing.addEventListener('focus', () => { if (drawing.matches(':focus-visible')) point(...here); });
    drawing.addEventListener('blur', () => point(-1, -1));
    drawing.addEventListener('keydown', (e) => {
        const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[e.key];
        if (!by) return;
        e.preventDefault();
        here = [clamp(here[0] + by[0], 0, labels.queries.length - 1), clamp(here[1] + by[1], 0, labels.keys.length - 1)];
        point(...here);
    });
    return drawing;
}

/* Heads of one attention as lines from the words that attend (left) to those attended to (right). layers: a list
 * {rows, style, name}; style is the number of a colour and a dash. */
function linesDrawing({ labels, layers, kind, point, least = 0.04 }, width) {
    const step = 22, top = 26, most = Math.max(labels.queries.length, labels.keys.length);
    const height = top + most * step + 4;
    const rowName = (q) => (labels.predicts ? cut(labels.queries[q], 12) + ' \u25b8 ' + cut(labels.predicts[q], 12)
        : cut(labels.queries[q], 18));
    const size = (texts) => Math.max(...texts.map((t) => Array.from(t).length)) * 6.8 + 10;
    const left = Math.min(size(labels.queries.map((_, q) => rowName(q))), width * 0.42);
    const right = width - Math.min(size(labels.keys.map((t) => cut(t, 18))), width * 0.36);
    const y = (i) => top + (i + 0.5) * step;
    const lines = [];
    layers.forEach(({ rows, style }, i) => rows.forEach((row, q) => row.slice(0, visible(kind, q, row.length))
        .forEach((w, k) => {
            if (w < least) return;
            const shift = (i - (layers.length - 1) / 2) * 2, a = y(q) + shift, b = y(k) + shift, bend = (right - left) / 2;
            lines.push({ q, k, node: svg('path', { class: 'line hue-' + style, 'stroke-opacity': (0.12 + 0.88 * w).toFixed(3),
                'stroke-width': (0.8 + 2.6 * w).toFixed(2),
                d: 'M' + left + ' ' + a.toFixed(1) + 'C' + (left + bend).toFixed(1) + ' ' + a.toFixed(1) + ' ' +
                    (right - bend).toFixed(1) + ' ' + b.toFixed(1) + ' ' + right + ' ' + b.toFixed(1) }) });
        })));
    const words = (texts, at, anchor, side) => texts.map((t, i) => svg('g', { class: 'word-hit',
        onpointerenter: () => point(...(side ? [-1, i] : [i, -1])) },
    svg('rect', { class: 'hit', x: side ? right : 0, y: y(i) - step / 2, width: side ? width - right : left,
        height: step }), write(at, y(i) + 4, t, { class: 'word', 'text-anchor': anchor })));
    const queryWords = words(labels.queries.map((_, q) => rowName(q)), left - 5, 'end', false);
    const keyWords = words(labels.keys.map((t) => cut(t, 18)), right + 5, 'start', true);
    const drawing = canvas(width, height, 'Lines from the words that attend to the words attended to, for ' +
        layers.map((l) => l.name).join(', ') + '. Up and down keys go through the words.',
    write(0, 14, labels.predicts ? 'fed \u25b8 predicts' : 'looks from', { class: 'tick' }),
    write(width, 14, 'to', { class: 'tick', 'text-anchor': 'end' }),
    lines.map((l) => l.node), queryWords, keyWords);
    drawing.setAttribute('tabindex', '0');
    drawing.setAttribute('class', 'lines');
    drawing.mark = (q, k) => {
        const on = q >= 0 || k >= 0;
        for (const l of lines)
            l.node.classList.toggle('dim', on && (q >= 0 ? l.q !== q : l.k !== k));
        queryWords.forEach((w, i) => w.classList.toggle('on', i === q));
        keyWords.forEach((w, i) => w.classList.toggle('on', i === k));
    };
    let here = -1;
    drawing.addEventListener('pointerleave', () => point(-1, -1));
    drawing.addEventListener('blur', () => { here = -1; point(-1, -1); });
    drawing.addEventListener('keydown', (e) => {
        const by = { ArrowUp: -1, ArrowDown: 1 }[e.key];
        if (!by) return;
        e.preventDefault();
        here = clamp(here + by, 0, labels.queries.length - 1);
        point(here, -1);
    });
    return drawing;
}

/* What the reader points at, in words. */
function readOut(labels, layers, q, k) {
    const word = (texts, i) => '\u201c' + texts[i] + '\u201d';
    const from = (i) => word(labels.queries, i) + (labels.predicts ? ' (predicts ' + word(labels.predicts, i) + ')' : '');
    if (q >= 0 && k >= 0) return from(q) + ' \u2192 ' + word(labels.keys, k) + ': ' + layers.map((l) =>
        (layers.length > 1 ? l.name + ' ' : '') + share(l.rows[q][k])).join(', ');
    if (q >= 0) return from(q) + ' looks at ' + layers.map((l) => {
        const best = l.rows[q].map((w, i) => [w, i]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([w]) => w > 0.02);
        return (layers.length > 1 ? l.name + ': ' : '') + best.map(([w, i]) => word(labels.keys, i) + ' ' + share(w))
            .join(', ');
    }).join('; ');
    if (k >= 0) return word(labels.keys, k) + ' is looked at by ' + layers.map((l) => {
        const best = l.rows.map((row, i) => [row[k], i]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([w]) => w > 0.02);
        return (layers.length > 1 ? l.name + ': ' : '') + (best.map(([w, i]) => word(labels.queries, i) + ' ' + share(w))
            .join(', ') || 'nobody');
    }).join('; ');
    return '';
}
