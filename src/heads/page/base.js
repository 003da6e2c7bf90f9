'use strict';
/* Making elements, writing numbers, and saving what was drawn.
 *
 * Text always goes in as text nodes and attributes, never as HTML: whatever a corpus holds is shown as it stands. */

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
        if (value === undefined || value === null || value === false) continue;
        if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
        else node.setAttribute(name, value === true ? '' : value);
    }
    for (const child of children.flat(9))
        if (child !== undefined && child !== null && child !== false) node.append(child);
    return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/* ---- numbers ---- */

const isNumber = (x) => typeof x === 'number' && isFinite(x);
/* Digits behind the point, with a true minus sign; an en dash where there is no number. */
const fixed = (x, digits) => (isNumber(x) ? x.toFixed(digits).replace('-', '\u2212') : '\u2013');
const share = (x) => (isNumber(x) ? (100 * x).toFixed(x > 0 && x < 0.0995 ? 1 : 0) + '\u202f%' : '\u2013');
const count = (x) => (isNumber(x) ? Math.round(x).toLocaleString('en-US') : '\u2013');
const signed = (x, digits) => (isNumber(x) ? (x > 0 ? '+' : '') + fixed(x, digits) : '\u2013');
const probability = (p) => (!isNumber(p) ? '\u2013' : p < 1e-99 ? '< 1e\u221299' : p >= 0.001 ? p.toFixed(3)
    : p.toExponential(0).replace('-', '\u2212'));
const interval = (o, digits, low = 'low', high = 'high') =>
    (isNumber(o[low]) ? '[' + fixed(o[low], digits) + ', ' + fixed(o[high], digits) + ']' : 'one sentence');
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
const plural = (n, one, many) => count(n) + ' ' + (n === 1 ? one : many || one + 's');

/* Text cut to so many characters, ended by an ellipsis; never within a character or in front of a combining mark. */
function cut(text, most) {
    const characters = window.Intl && Intl.Segmenter
        ? Array.from(new Intl.Segmenter().segment(text), (s) => s.segment) : Array.from(text);
    return characters.length <= most ? text : characters.slice(0, most - 1).join('') + '\u2026';
}

/* ---- keeping ---- */

function save(name, type, text) {
    const link = el('a', { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const KEPT_STYLES = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray',
    'stroke-linecap', 'font-family', 'font-size', 'font-weight', 'font-style', 'text-anchor', 'opacity', 'visibility',
    'paint-order'];

/* An SVG that stands alone: colours and fonts that the page's style gives are written into it. */
function standalone(drawing) {
    const copy = drawing.cloneNode(true);
    const from = [drawing, ...drawing.querySelectorAll('*')], to = [copy, ...copy.querySelectorAll('*')];
    from.forEach((node, i) => {
        const style = getComputedStyle(node);
        for (const name of KEPT_STYLES) {
            const value = style.getPropertyValue(name);
            if (value) to[i].setAttribute(name, value);
        }
        for (const name of ['class', 'style', 'tabindex']) to[i].removeAttribute(name);
    });
    const box = drawing.viewBox.baseVal;
    copy.setAttribute('xmlns', SVG);
    copy.setAttribute('width', box.width);
    copy.setAttribute('height', box.height);
    copy.prepend(svg('rect', { x: box.x, y: box.y, width: box.width, height: box.height,
        fill: getComputedStyle(document.body).backgroundColor }));
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(copy) + '\n';
}

async function copyText(text, button) {
    const label = button.textContent;
    let done = true;
    try {
        await navigator.clipboard.writeText(text);
    } catch (e) {
        const area = el('textarea', { 'aria-hidden': 'true', class: 'unseen' });
        area.value = text;
        document.body.append(area);
        area.select();
        done = document.execCommand('copy');
        area.remove();
    }
    button.textContent = done ? 'copied' : 'cannot copy here';
    setTimeout(() => { button.textContent = label; }, 1600);
}

/* A group of buttons of which one is chosen: options [[value, label], ...]. */
function choice(label, options, value, change) {
    const group = el('div', { class: 'choice', role: 'radiogroup', 'aria-label': label });
    const name = 'choice-' + (choice.made = (choice.made || 0) + 1);
    for (const [key, text] of options)
        group.append(el('label', {}, el('input', { type: 'radio', name, value: key, checked: key === value,
            onchange: () => change(key) }), el('span', {}, text)));
    return group;
}
