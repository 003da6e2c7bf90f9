'use strict';
/* Puts the page together. What is chosen stands in the address behind #, so that a view can be kept and sent on:
 * #head=encoder.1.self.2; #roles goes to a section. */

const wanted = new URLSearchParams(location.hash.slice(1));

/* The head that the page opens with: the one asked for, else the one that exceeds chance most. */
function defaultHead() {
    return HEAD.get(wanted.get('head')) || HEADS.filter((h) => h.main).sort((a, b) => lift(b.main) - lift(a.main))[0] ||
        HEADS[0];
}

let cardRoom;
/* Opens a head's card; go: and brings it before the reader. */
function choose(name, go) {
    const h = HEAD.get(name);
    if (!h) return;
    for (const t of document.querySelectorAll('.tile'))
        t.setAttribute('aria-pressed', String(t.dataset.head === name));
    cardRoom.replaceChildren(headCard(h));
    drawNow(cardRoom);
    wanted.set('head', name);
    history.replaceState(null, '', '#' + wanted.toString());
    if (go) {
        cardRoom.scrollIntoView({ block: 'start' });
        cardRoom.focus({ preventScroll: true });
    }
}

function themeButton() {
    const themes = ['auto', 'light', 'dark'];
    let at = Math.max(0, themes.indexOf(wanted.get('theme')));
    const apply = () => {
        if (at) document.documentElement.dataset.theme = themes[at];
        else delete document.documentElement.dataset.theme;
        button.textContent = 'colours: ' + themes[at];
    };
    const button = el('button', { class: 'quiet theme', type: 'button', onclick: () => { at = (at + 1) % 3; apply(); } });
    apply();
    return button;
}

/* The finding in one paragraph. */
function summary() {
    const named = HEADS.filter((h) => h.main).length, best = (RESULTS.align || {}).best;
    const lost = ((RESULTS.ablate || {}).heads || []).filter((r) => r.mode === 'zero' && HEAD.has(r.name));
    const worst = lost.slice().sort((a, b) => b.loss_delta - a.loss_delta)[0];
    const parts = [el('b', {}, named + ' of ' + plural(HEADS.length, 'head')), ' ' + (named === 1 ? 'does' : 'do') +
        ' something that has a name, by more than chance. '];
    if (best && best.name)
        parts.push('The best cross-attention head aligns words with an error rate of ', el('b', {}, share(best.aer)), '. ');
    if (worst && worst.loss_delta > 0)
        parts.push('The network would miss ', el('button', { class: 'link', type: 'button', onclick: () =>
            choose(worst.name, true) }, worst.name), ' most; without any one of ' + count(lost.filter((r) =>
            !(r.p < 0.05 && r.loss_delta > 0)).length) + ' heads its loss is not significantly higher. ');
    parts.push('Attention tells where a head looks, not whether the network needs it.');
    return el('p', { class: 'lead' }, parts);
}

function pageHead() {
    const m = DATA.model, facts = [plural(HEADS.length, 'head'), m.encoder_layers + ' + ' + m.decoder_layers + ' layers',
        'width ' + count(m.width), plural(m.parameters, 'parameter'), m.source + ' \u2192 ' + m.target,
        DATA.data + ', ' + plural(RESULTS.roles.sentences, 'sentence')];
    return el('header', { class: 'top' }, el('div', { class: 'top-row' }, el('p', { class: 'brand' }, 'Headwise'),
        themeButton()),
    el('h1', {}, 'What the heads of ', el('bdi', {}, m.name), ' do'), summary(),
    el('ul', { class: 'facts' }, facts.map((f) => el('li', {}, f))));
}

function headsSection() {
    cardRoom = el('div', { class: 'card-room', tabindex: -1 });
    return el('section', { id: 'heads', class: 'page-section', 'aria-labelledby': 'heads-title' },
        el('h2', { id: 'heads-title' }, 'All heads'),
        el('p', { class: 'says' }, 'Layers down, heads across; named and coloured by the role in which a head exceeds chance ' +
            'most, the fuller the stronger. Small letters are further roles. Choose a head to open its card.'),
        el('div', { class: 'heads' }, el('div', { class: 'grids' }, Object.keys(KINDS).filter((k) => HEADS.some((h) =>
            h.kind === k)).map((k) => headGrid(k, (name) =>
                choose(name, matchMedia('(max-width: 1100px)').matches))), legend()), cardRoom), headTable());
}

/* One row a head, with the figures of all sections. */
function headTable() {
    const find = (section, test) => (name) => entriesOf(section, name).find(test) || {};
    const align = find('align', (x) => x.step === 'predicted'), need = find('ablate', (x) => x.mode === 'zero');
    const gradient = find('importance', (x) => x.reading === 'token');
    const rows = HEADS.map((h) => ({ h, name: h.name, s: statsOf(h, stepOf(h), 'weights') || {}, r: h.main || {},
        a: align(h.name), n: need(h.name), g: gradient(h.name) }));
    const figureOf = (title, value, digits, says) => ({ title, says, value, text: (row) => fixed(value(row), digits) });
    const columns = [nameColumn,
        { title: 'main role', left: true, value: (row) => row.r.role || 'none', text: (row) => (row.r.role ?
            [swatch(familyOf(row.r), 14), ' ' + roleOf(row.r.role).short + ' ', el('span', { class: 'muted' },
                scopeMark(row.r))] : 'no role found') },
        figureOf('score', (row) => row.r.score, 3), { title: '95\u202f%', value: (row) => row.r.low, text: (row) =>
            (row.r.role ? interval(row.r, 3) : '') },
        figureOf('baseline', (row) => row.r.baseline, 3), figureOf('untrained', (row) => row.r.control, 3),
        { title: 'roles', value: (row) => row.h.found.length, says: 'how many were found' },
        figureOf('entropy', (row) => row.s.relative_entropy, 2, 'relative to the most that is possible'),
        figureOf('confidence', (row) => row.s.confidence, 2, 'the largest weight'),
        figureOf('distance', (row) => row.s.distance, 2, 'words'),
        RESULTS.align && figureOf('AER', (row) => row.a.aer, 3, 'where the word is predicted'),
        RESULTS.ablate && { title: 'loss without', value: (row) => row.n.loss_delta, text: (row) =>
            signed(row.n.loss_delta, 4) },
        RESULTS.importance && figureOf('gradient', (row) => row.g.value, 4, 'importance by token')];
    return sortableTable('heads', 'All heads', columns.filter(Boolean), rows, { click: (row) => choose(row.name, true) });
}

function missingSection() {
    if (!DATA.missing.length) return null;
    return el('section', { id: 'missing', class: 'page-section' }, el('h2', {}, 'Not in this report'),
        el('ul', {}, DATA.missing.map((m) => el('li', {}, el('b', {}, m.name), ': ' + m.why))));
}

function sourcesSection() {
    return el('section', { id: 'sources', class: 'page-section' }, el('h2', {}, 'How to read this, and sources'),
        el('p', {}, 'Every score stands beside what position alone and untrained heads reach, and has a 95\u202f% interval ' +
            'by bootstrap over sentences. Intervals speak of this trained model: another seed may grow other heads in ' +
            'other places. Labels and offsets are chosen on the validation set and scored on the test set. In the decoder ' +
            'a word has two rows: where it is fed, and one before it, where it is predicted.'),
        el('ul', { class: 'sources' }, SOURCES.map((s) => el('li', {}, s))),
        el('p', { class: 'muted' }, 'Written by ' + DATA.program + ' (headwise heads report), seed ' +
            RESULTS.roles.seed + '.'));
}

function main() {
    document.title = 'The heads of ' + DATA.model.name + ' \u2014 Headwise';
    const page = document.getElementById('page');
    const sections = [headsSection(), section('explorer', 'Sentence explorer',
        plural(PAIRS.length, 'sentence') + ' of the data: the first ones, and those where roles are strongest and where ' +
        'they fail.', explorerSection()), ...resultSections(), missingSection(), sourcesSection()].filter(Boolean);
    const links = sections.map((s) => el('a', { href: '#' + s.id, onclick: (e) => {
        e.preventDefault();
        s.scrollIntoView();
    } }, s.querySelector('h2').textContent));
    page.append(pageHead(), el('nav', { 'aria-label': 'sections' }, links), ...sections);
    const place = sections.find((s) => wanted.has(s.id));
    if (place) wanted.delete(place.id);
    choose(defaultHead().name);
    drawNow(page);
    if (place) place.scrollIntoView();
}
main();
