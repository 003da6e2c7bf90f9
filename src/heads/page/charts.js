'use strict';
/* Charts, each an SVG in a figure with its title and a button that saves it. A chart is a function of the width that it
 * gets, so that letters have one size on a telephone and on a wide screen, and is drawn again when the width changes. */

const figures = new ResizeObserver((entries) => requestAnimationFrame(() => {
    for (const { target, contentRect } of entries) {
        const width = Math.floor(contentRect.width);
        if (width > 0 && width !== target.drawnAt) target.draw(width);
    }
}));

/* Draws at once what was put into the page, without waiting for the observer. */
function drawNow(within) {
    for (const room of within.querySelectorAll('.drawing'))
        if (!room.drawnAt && room.clientWidth) room.draw(room.clientWidth);
}

/* name: of the saved file. draw(width) -> an SVG. */
function figure(name, title, draw, options = {}) {
    const room = el('div', { class: 'drawing' + (options.wide ? ' wide' : '') });
    const button = el('button', { class: 'quiet save', type: 'button', title: 'save this picture as an SVG file',
        'aria-label': 'save ' + title + ' as an SVG file',
        onclick: () => save(name.replace(/[^A-Za-z0-9.]+/g, '-') + '.svg', 'image/svg+xml',
            standalone(room.querySelector('svg'))) }, 'SVG');
    room.draw = (width) => {
        room.drawnAt = width;
        room.replaceChildren(draw(clamp(width, 240, options.most || 760)));
    };
    const node = el('figure', { class: 'chart ' + (options.class || ''), style: 'max-width:' + (options.most || 760) + 'px' },
        el('figcaption', {}, el('span', {}, title), button), room);
    node.redraw = () => room.draw(room.drawnAt || 480);
    figures.observe(room);
    return node;
}

const canvas = (width, height, label, ...children) =>
    svg('svg', { viewBox: '0 0 ' + width + ' ' + height, width, height, role: 'img', 'aria-label': label }, children);
const write = (x, y, text, attributes) => svg('text', { x, y, ...attributes }, text);
const hint = (text) => svg('title', {}, text);

/* Round numbers between low and high. */
function ticksOf(low, high, most) {
    const span = high - low || 1, power = Math.pow(10, Math.floor(Math.log10(span / most)));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => span / s <= most);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * span; i++) ticks.push(i * step);
    return { ticks, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/* The axis below a chart, with its lines: scale has low, high, left, right. */
const place = (scale, x) => scale.left + (scale.right - scale.left) * (x - scale.low) / (scale.high - scale.low || 1);
function axis(scale, top, bottom, label) {
    const { ticks, digits } = ticksOf(scale.low, scale.high, Math.max(2, (scale.right - scale.left) / 70));
    return [ticks.map((t) => [
        svg('line', { class: t === 0 ? 'zero' : 'rule', x1: place(scale, t), x2: place(scale, t), y1: top, y2: bottom }),
        write(place(scale, t), bottom + 15, fixed(t, digits), { class: 'tick', 'text-anchor': 'middle' })]),
    label && write((scale.left + scale.right) / 2, bottom + 32, label, { class: 'tick', 'text-anchor': 'middle' })];
}

/* Rows of a figure with its interval: rows {label, note, value, low, high, marks: [{at, sign, says}], family, says}. The
 * point is full; marks are a bar (baseline) or a cross (untrained). */
function intervalChart(rows, width, { low, high, label, title, room = 150, digits = 3, click }) {
    const left = Math.min(room, width * 0.42), height = rows.length * 24 + 46;
    const scale = { low, high, left: left + 8, right: width - 16 };
    const at = (x) => place(scale, clamp(x, low, high));
    const drawn = rows.map((r, i) => {
        const y = 6 + i * 24 + 12;
        return svg('g', { class: 'row ' + (r.family ? 'of-' + r.family : '') + (r.chosen ? ' chosen' : '') +
            (click && r.name ? ' can' : ''), onclick: click && r.name ? () => click(r.name) : undefined },
        hint(r.says || r.label + ': ' + fixed(r.value, digits) + ' ' + interval(r, digits)),
        svg('rect', { class: 'stripe', x: 0, y: y - 12, width, height: 24 }),
        write(left, y + 4, cut(r.label, Math.floor(left / 6.3)), { class: 'label', 'text-anchor': 'end' }),
        (r.marks || []).filter((m) => isNumber(m.at)).map((m) => (m.sign === 'bar'
            ? svg('line', { class: 'baseline', x1: at(m.at), x2: at(m.at), y1: y - 8, y2: y + 8 })
            : svg('path', { class: 'control', d: 'M' + (at(m.at) - 3.5) + ' ' + (y - 3.5) + 'l7 7m0 -7l-7 7' }))),
        isNumber(r.low) && svg('line', { class: 'range', x1: at(r.low), x2: at(r.high), y1: y, y2: y }),
        isNumber(r.value) && (r.hollow
            ? svg('rect', { class: 'point hollow', x: at(r.value) - 4, y: y - 4, width: 8, height: 8 })
            : svg('circle', { class: 'point', cx: at(r.value), cy: y, r: 4.5 })));
    });
    return canvas(width, height, title + '. ' + rows.map((r) => r.label + ' ' + fixed(r.value, digits)).join('; '),
        axis(scale, 4, height - 38, label), drawn);
}

/* Bars over categories; bars {label, value, says, quiet}. */
function barChart(bars, width, { title, height = 150, percent = true }) {
    const top = Math.max(...bars.map((b) => b.value || 0), percent ? 0.1 : 1e-12);
    const left = 38, bottom = height - 24, step = (width - left - 6) / bars.length;
    const y = (v) => bottom - (bottom - 14) * v / top;
    const { ticks } = ticksOf(0, top, 4);
    const every = Math.ceil(26 / step);
    return canvas(width, height, title + '. ' + bars.filter((b) => b.value > 0.05 * top).map((b) => b.label + ' ' +
        share(b.value)).join('; '),
    ticks.map((t) => [svg('line', { class: t ? 'rule' : 'zero', x1: left, x2: width - 6, y1: y(t), y2: y(t) }),
        write(left - 5, y(t) + 4, share(t), { class: 'tick', 'text-anchor': 'end' })]),
    bars.map((b, i) => svg('g', {}, hint(b.label + ': ' + share(b.value)),
        svg('rect', { class: 'hit', x: left + i * step, y: 4, width: step, height: bottom - 4 }),
        svg('rect', { class: 'bar' + (b.quiet ? ' special' : ''), x: left + i * step + step * 0.12, width: step * 0.76,
            y: y(b.value || 0), height: Math.max(0, bottom - y(b.value || 0)) }),
        (b.always || (i - 1) % every === 0) && write(left + (i + 0.5) * step, bottom + 15, b.label,
            { class: 'tick', 'text-anchor': 'middle' }))));
}

/* One figure of all heads as ticks on a line, this head's as a full point above it. */
function stripChart(rows, width, title) {
    const left = Math.min(146, width * 0.42), height = rows.length * 30 + 8, right = width - 66;
    return canvas(width, height, title + '. ' + rows.map((r) => r.label + ' ' + r.text).join('; '),
        rows.map((r, i) => {
            const y = 4 + i * 30 + 15, values = r.all.filter(isNumber);
            const scale = { low: Math.min(0, ...values), high: Math.max(r.high || 0, ...values) || 1, left: left + 10,
                right };
            return svg('g', {}, hint(r.says || r.label + ': ' + r.text),
                write(left, y + 4, r.label, { class: 'label', 'text-anchor': 'end' }),
                svg('line', { class: 'zero', x1: scale.left, x2: right, y1: y, y2: y }),
                values.map((v) => svg('line', { class: 'other', x1: place(scale, v), x2: place(scale, v), y1: y - 5,
                    y2: y + 5 })),
                isNumber(r.value) && svg('circle', { class: 'point', cx: place(scale, r.value), cy: y, r: 5 }),
                write(width - 4, y + 4, r.text, { class: 'figure', 'text-anchor': 'end' }));
        }));
}

const headPoint = (p, x, y, click) => svg('g', { class: 'can of-' + p.family, onclick: () => click(p.name) }, hint(p.says),
    svg('circle', { class: 'point', cx: x, cy: y, r: 9 }), write(x, y + 4, p.letter, { class: 'letter',
        'text-anchor': 'middle' }), p.label && write(x + 12, y + 4, p.label, { class: 'tick' }));

/* Heads as points of a map: both directions have one scale, and no axis means anything. */
function mapChart(points, width, { title, click }) {
    const xs = points.map((p) => p.x), ys = points.map((p) => p.y), edge = 24;
    const low = [Math.min(...xs), Math.min(...ys)], span = Math.max(Math.max(...xs) - low[0], Math.max(...ys) - low[1], 1e-9);
    const scale = (width - 2 * edge - 20) / span, height = (Math.max(...ys) - low[1]) * scale + 2 * edge;
    return canvas(width, height, title + '. ' + points.map((p) => p.says).join('; '),
        svg('rect', { class: 'frame', x: 0.5, y: 0.5, width: width - 1, height: height - 1, rx: 8 }),
        points.map((p) => headPoint(p, edge + (p.x - low[0]) * scale, edge + (p.y - low[1]) * scale, click)));
}

/* Two figures of every head against each other: points {name, x, y, family, says}. */
function scatterChart(points, width, { title, x, y, click }) {
    const height = Math.min(width * 0.7, 380), xs = points.map((p) => p.x), ys = points.map((p) => p.y);
    const across = { low: Math.min(0, ...xs), high: Math.max(...xs, 1e-9), left: 58, right: width - 20 };
    const up = { low: Math.min(0, ...ys), high: Math.max(...ys, 1e-9), left: height - 44, right: 14 };
    const { ticks, digits } = ticksOf(up.low, up.high, 5);
    return canvas(width, height, title, axis(across, 8, height - 44, x),
        ticks.map((t) => [svg('line', { class: t === 0 ? 'zero' : 'rule', x1: across.left, x2: across.right,
            y1: place(up, t), y2: place(up, t) }),
        write(across.left - 6, place(up, t) + 4, fixed(t, digits), { class: 'tick', 'text-anchor': 'end' })]),
        write(12, (up.left + up.right) / 2, y, { class: 'tick', 'text-anchor': 'middle',
            transform: 'rotate(-90 12 ' + (up.left + up.right) / 2 + ')' }),
        points.map((p) => headPoint(p, place(across, p.x), place(up, p.y), click)));
}

/* Lines over an axis: series {name, points: [{x, y, low, high, says}], strong, dots, ring: an x, click, says}; rules are
 * levels that are drawn dashed, marked an x. Where a number is missing the line has a gap. */
function lineChart(series, width, { title, x, low, high, height = 300, rules = [], marked }) {
    const points = series.flatMap((s) => s.points), ys = points.flatMap((p) => [p.y, p.low, p.high]).filter(isNumber);
    const bottom = low === undefined ? Math.min(0, ...ys, ...rules) : low, top = high === undefined ? Math.max(0, ...ys) : high;
    const across = { low: 0, high: Math.max(1, ...points.map((p) => p.x)), left: 52, right: width - 14 };
    const up = { low: bottom, high: top > bottom ? top : bottom + 1, left: height - 44, right: 10 };
    const at = (p) => place(across, p.x).toFixed(1) + ' ' + place(up, clamp(p.y, up.low, up.high)).toFixed(1);
    const path = (list) => list.map((p, i) => (isNumber(p.y) ? (i && isNumber(list[i - 1].y) ? 'L' : 'M') + at(p) : '')).join('');
    const band = (list) => (list.length ? 'M' + [...list.map((p) => at({ x: p.x, y: p.high })), ...list.slice().reverse().map((p) =>
        at({ x: p.x, y: p.low }))].join('L') + 'Z' : '');
    const { ticks, digits } = ticksOf(up.low, up.high, 5);
    return canvas(width, height, title + '. ' + series.filter((s) => s.strong).map((s) => s.says || s.name).join('; '),
        axis(across, 8, height - 44, x),
        ticks.map((t) => [svg('line', { class: t === 0 ? 'zero' : 'rule', x1: across.left, x2: across.right, y1: place(up, t),
            y2: place(up, t) }),
        write(across.left - 6, place(up, t) + 4, fixed(t, digits), { class: 'tick', 'text-anchor': 'end' })]),
        rules.map((r) => svg('line', { class: 'level', x1: across.left, x2: across.right, y1: place(up, r), y2: place(up, r) })),
        isNumber(marked) && svg('line', { class: 'level', x1: place(across, marked), x2: place(across, marked), y1: 10,
            y2: height - 44 }),
        series.map((s) => svg('g', { class: s.click ? 'can' : '', onclick: s.click }, hint(s.says || s.name),
            svg('path', { class: 'course-band', d: band(s.points.filter((p) => isNumber(p.low) && isNumber(p.high))) }),
            svg('path', { class: 'course' + (s.strong ? ' strong' : ''), d: path(s.points) }),
            s.dots && s.points.filter((p) => isNumber(p.y)).map((p) => svg('circle', { class: 'point', cx: place(across, p.x),
                cy: place(up, clamp(p.y, up.low, up.high)), r: 3.5 }, p.says && hint(p.says))),
            s.points.filter((p) => isNumber(s.ring) && p.x === s.ring && isNumber(p.y)).map((p) => svg('circle', { class: 'ring-at',
                cx: place(across, p.x), cy: place(up, clamp(p.y, up.low, up.high)), r: 4 })))));
}

/* Rows of cells, the darker the larger their value from 0 to 1: rows {label, click, cells: [{value, outlined, says}]}. */
function gridChart(rows, columns, width, { title, down, across }) {
    const left = 48, top = 40, cell = clamp((width - left - 8) / columns.length, 12, 40), height = top + rows.length * cell + 8;
    return canvas(left + columns.length * cell + 8, height, title + '. ' + rows.flatMap((r) => r.cells.filter((c) => c.outlined)
        .map((c) => c.says)).join('; '),
    write(left, 12, across + ' \u2192', { class: 'tick' }), write(4, 30, down + ' \u2193', { class: 'tick' }),
    columns.map((c, k) => write(left + (k + 0.5) * cell, top - 6, c, { class: 'tick', 'text-anchor': 'middle' })),
    rows.map((r, i) => [write(left - 6, top + (i + 0.5) * cell + 4, r.label, { class: 'label', 'text-anchor': 'end' }),
        r.cells.map((c, k) => svg('g', { class: 'can', onclick: r.click }, hint(c.says),
            svg('rect', { class: 'ground', x: left + k * cell + 1, y: top + i * cell + 1, width: cell - 2, height: cell - 2 }),
            svg('rect', { class: 'cell', x: left + k * cell + 1, y: top + i * cell + 1, width: cell - 2, height: cell - 2,
                'fill-opacity': clamp(c.value, 0, 1).toFixed(3) }),
            c.outlined && svg('rect', { class: 'gold', x: left + k * cell + 2, y: top + i * cell + 2, width: cell - 4,
                height: cell - 4 })))]));
}
