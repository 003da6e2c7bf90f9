'use strict';
/* All heads of the network: layers down, heads across, each by its main role. Colour, letter and pattern name the
 * family of the role, the filling its strength, words and number both. */

/* Patterns of the families, drawn on the tile's left edge. */
const PATTERNS = {
    position: 'M0 6L6 0', marks: 'M0 3H6', grammar: 'M3 0V6', aligned: 'M0 0L6 6', content: 'M1.5 1.5h1v1h-1z',
    places: 'M0 3H6M3 0V6', broad: 'M1 1h1v1h-1zM4 4h1v1h-1z',
};
const patternDefs = (id) => svg('defs', {}, Object.entries(PATTERNS).map(([family, d]) => svg('pattern',
    { id: id + family, width: 6, height: 6, patternUnits: 'userSpaceOnUse' },
    svg('path', { class: 'hatch', d }))));

function swatch(family, size = 18) {
    const id = 'swatch-' + (swatch.made = (swatch.made || 0) + 1) + '-';
    return svg('svg', { class: 'swatch', viewBox: '0 0 18 18', width: size, height: size, 'aria-hidden': 'true' },
        patternDefs(id),
        svg('g', { class: 'of-' + family }, svg('rect', { class: 'solid', width: 18, height: 18, rx: 4 }),
            svg('rect', { fill: 'url(#' + id + family + ')', width: 18, height: 18, rx: 4 }),
            write(9, 13.5, FAMILIES[family].letter, { class: 'letter', 'text-anchor': 'middle' })));
}

const TILE = { width: 108, height: 58, gap: 6, left: 54, top: 22 };

function tile(h, x, y, id, choose) {
    const main = h.main, family = main && familyOf(main), strong = main && main.score >= 0.78;
    const says = describe(h) + '. ' + sentenceOf(h);
    const others = h.found.slice(1, main && main.step ? 4 : 7);
    return svg('g', { class: 'tile ' + (main ? 'of-' + family + (strong ? ' strong' : '') : 'no-role'),
        'data-head': h.name, role: 'button', tabindex: 0, 'aria-label': says, 'aria-pressed': 'false',
        transform: 'translate(' + x + ' ' + y + ')', onclick: () => choose(h.name),
        onkeydown: (e) => {
            if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); choose(h.name); }
        } },
    hint(says),
    svg('rect', { class: 'base', width: TILE.width, height: TILE.height, rx: 7 }),
    main && svg('rect', { class: 'tint', width: TILE.width, height: TILE.height, rx: 7,
        'fill-opacity': (0.12 + 0.88 * Math.pow(clamp(main.score, 0, 1), 1.5)).toFixed(3) }),
    main && [svg('path', { class: 'solid', d: 'M7 0H13V58H7A7 7 0 0 1 0 51V7A7 7 0 0 1 7 0' }),
        svg('path', { fill: 'url(#' + id + family + ')', d: 'M7 0H13V58H7A7 7 0 0 1 0 51V7A7 7 0 0 1 7 0' })],
    main ? [write(20, 19, roleOf(main.role).short, { class: 'name' }),
        write(20, 35, share(main.score), { class: 'score' }),
        main.subset === 'pieces' && write(TILE.width - 6, 34, 'pieces', { class: 'scope', 'text-anchor': 'end' }),
        main.step && write(TILE.width - 6, 51, main.step, { class: 'scope', 'text-anchor': 'end' }),
        others.map((r, i) => svg('g', { class: 'of-' + familyOf(r), transform: 'translate(' + (20 + i * 12) + ' 42)' },
            svg('rect', { class: 'solid edge', width: 10, height: 10, rx: 2.5 }),
            write(5, 8.2, FAMILIES[familyOf(r)].letter, { class: 'small letter', 'text-anchor': 'middle' })))]
        : write(TILE.width / 2, TILE.height / 2 + 4, 'no role', { class: 'none', 'text-anchor': 'middle' }),
    svg('rect', { class: 'ring', x: -2, y: -2, width: TILE.width + 4, height: TILE.height + 4, rx: 9 }));
}

/* Every attention of a kind is a row; columns are the heads' numbers, so pruned ones leave a gap. */
function headGrid(kind, choose) {
    const heads = HEADS.filter((h) => h.kind === kind);
    const layers = [...new Set(heads.map((h) => h.layer))].sort((a, b) => a - b);
    const columns = Math.max(...heads.map((h) => h.head), DATA.model.heads_a_layer - 1) + 1;
    const width = TILE.left + columns * (TILE.width + TILE.gap), height = TILE.top + layers.length * (TILE.height + TILE.gap);
    const x = (head) => TILE.left + head * (TILE.width + TILE.gap), y = (row) => TILE.top + row * (TILE.height + TILE.gap);
    const id = 'grid-' + kind + '-';
    const gone = [];
    layers.forEach((layer, row) => {
        for (let head = 0; head < columns; head++)
            if (!heads.some((h) => h.layer === layer && h.head === head))
                gone.push(svg('g', { transform: 'translate(' + x(head) + ' ' + y(row) + ')' },
                    svg('rect', { class: 'gone', width: TILE.width, height: TILE.height, rx: 7 }),
                    write(TILE.width / 2, TILE.height / 2 + 4, 'removed', { class: 'none', 'text-anchor': 'middle' })));
    });
    const drawing = svg('svg', { class: 'grid', viewBox: '-3 0 ' + (width + 3) + ' ' + height, width: width + 3, height,
        role: 'group', 'aria-label': KINDS[kind].title + ': heads by role. Arrow keys move between heads.' },
    patternDefs(id),
    Array.from({ length: columns }, (_, head) => write(x(head) + TILE.width / 2, 14, 'head ' + head,
        { class: 'tick', 'text-anchor': 'middle' })),
    layers.map((layer, row) => write(TILE.left - 8, y(row) + TILE.height / 2 + 4, 'layer ' + layer,
        { class: 'tick', 'text-anchor': 'end' })),
    gone, heads.map((h) => tile(h, x(h.head), y(layers.indexOf(h.layer)), id, choose)));
    drawing.addEventListener('keydown', (e) => {
        const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[e.key];
        const h = HEAD.get(e.target.dataset && e.target.dataset.head);
        if (!by || !h) return;
        e.preventDefault();
        const next = heads.filter((o) => by[0] ? o.head === h.head && (o.layer - h.layer) * by[0] > 0
            : o.layer === h.layer && (o.head - h.head) * by[1] > 0)
            .sort((a, b) => Math.abs(a.layer - h.layer) + Math.abs(a.head - h.head) - Math.abs(b.layer - h.layer) -
                Math.abs(b.head - h.head))[0];
        if (next) drawing.querySelector('[data-head="' + next.name + '"]').focus();
    });
    return el('figure', { class: 'kind' },
        el('figcaption', {}, el('span', {}, el('b', {}, KINDS[kind].title), ' ', KINDS[kind].says),
            el('button', { class: 'quiet save', type: 'button', 'aria-label': 'save the grid of ' + KINDS[kind].title +
                ' as an SVG file', onclick: () => save('heads-' + kind + '.svg', 'image/svg+xml', standalone(drawing)) },
            'SVG')),
        el('div', { class: 'scroll' }, drawing));
}

/* The families that occur, with how many heads have them as their main role. */
function legend() {
    const of = (family) => HEADS.filter((h) => h.main && familyOf(h.main) === family).length;
    return el('ul', { class: 'legend' }, Object.entries(FAMILIES).map(([family, f]) => el('li',
        { class: of(family) ? '' : 'faint' }, swatch(family), el('span', {}, el('b', {}, f.title), ' ',
            el('span', { class: 'muted' }, f.says)), el('span', { class: 'count' }, count(of(family))))),
    el('li', {}, el('span', { class: 'swatch empty', 'aria-hidden': 'true' }), el('span', {}, el('b', {}, 'no role'), ' ',
        el('span', { class: 'muted' }, 'none of this table was found')),
    el('span', { class: 'count' }, count(HEADS.filter((h) => !h.main).length))));
}
