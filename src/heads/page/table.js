'use strict';
/* Tables that can be sorted, copied and saved. columns: {title, value(row), text(row), says, left}; what is copied is
 * the value, unrounded. */
function sortableTable(name, caption, columns, rows, { click, sorted } = {}) {
    const body = el('tbody', {}), order = { column: -1, down: false };
    const value = (c, row) => (c.value ? c.value(row) : undefined);
    const shown = () => {
        if (order.column < 0) return rows;
        const c = columns[order.column], sign = order.down ? -1 : 1;
        const missing = (x) => x === undefined || x === null || (typeof x === 'number' && isNaN(x));
        return rows.slice().sort((a, b) => {
            const x = value(c, a), y = value(c, b);
            if (missing(x) || missing(y)) return missing(x) - missing(y);
            return sign * (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y)));
        });
    };
    const draw = () => body.replaceChildren(...shown().map((row) => el('tr', {}, columns.map((c, i) => {
        const text = c.text ? c.text(row) : value(c, row);
        const content = i === 0 && click ? el('button', { class: 'link', type: 'button', onclick: () => click(row) }, text)
            : text;
        return el(i === 0 ? 'th' : 'td', { class: c.left ? 'left' : '', scope: i === 0 ? 'row' : null }, content);
    }))));
    const heads = columns.map((c, i) => el('th', { scope: 'col', class: c.left ? 'left' : '', title: c.says },
        el('button', { type: 'button', onclick: () => sort(i) }, c.title, el('span', { class: 'arrow',
            'aria-hidden': 'true' }))));
    const sort = (i) => {
        const numbers = rows.some((r) => typeof value(columns[i], r) === 'number');
        order.down = order.column === i ? !order.down : numbers;
        order.column = i;
        heads.forEach((h, k) => {
            if (k === i) h.setAttribute('aria-sort', order.down ? 'descending' : 'ascending');
            else h.removeAttribute('aria-sort');
        });
        draw();
    };
    const clean = (x) => String(x === undefined || x === null ? '' : x).replace(/[\t\n\r]+/g, ' ');
    const tsv = () => [columns.map((c) => clean(c.title)), ...shown().map((row) => columns.map((c) =>
        clean(value(c, row))))].map((line) => line.join('\t')).join('\n') + '\n';
    if (sorted !== undefined) sort(sorted);
    else draw();
    return el('div', { class: 'table' }, el('div', { class: 'table-tools' }, el('span', { class: 'muted' }, caption + ' (' +
        plural(rows.length, 'row') + '; a click on a column sorts)'),
    el('button', { class: 'quiet', type: 'button', onclick: (e) => copyText(tsv(), e.target) }, 'copy'),
    el('button', { class: 'quiet', type: 'button', onclick: () => save(name + '.tsv', 'text/tab-separated-values', tsv()) },
        'TSV')),
    el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption }, el('table', {},
        el('caption', { class: 'unseen' }, caption), el('thead', {}, el('tr', {}, heads)), body)));
}
