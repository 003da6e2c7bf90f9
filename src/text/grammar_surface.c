/* From a derivation to the two sentences: words in each side's order, heads and relations, matched marks, word links,
 * and the final passes that join or change words where they meet (le + ami -> l' ami, de + le -> du).
 *
 * Everything that points at a word does so by its index. A final pass builds the list of words anew and a map from old
 * to new indices; heads, marks and links go through the map, so merged words keep what pointed at either of them. */
#include "grammar.h"

#include <stdlib.h>
#include <string.h>

typedef struct surface {
    const hw_grammar *g;
    hw_derivation *d;
    hw_pair *out;
    int capacity[HW_SIDES];
} surface;

/* ---- words ------------------------------------------------------------------------------------------------------- */

static hw_word *add_word(surface *s, int side, const hw_node *node, const char *text)
{
    hw_pair *out = s->out;
    if (out->count[side] == s->capacity[side]) {
        int capacity = s->capacity[side] ? 2 * s->capacity[side] : 32;
        hw_word *more = hw_arena_alloc(s->d->arena, (size_t)capacity * sizeof *more);
        if (out->count[side]) memcpy(more, out->word[side], (size_t)out->count[side] * sizeof *more);
        out->word[side] = more;
        s->capacity[side] = capacity;
    }
    hw_word *word = &out->word[side][out->count[side]++];
    *word = (hw_word){
        .text = text, .pos = node->symbol->pos[side], .head = -1, .match = -1, .says = node->entry->is, .node = node};
    return word;
}

/* The first form that says when it is used, and is right; else the one that does not say. */
static const hw_form *choose_form(const hw_derivation *d, const hw_node *node, int side)
{
    const hw_form *otherwise = NULL;
    for (int i = 0; i < node->entry->forms[side]; i++) {
        const hw_form *form = &node->entry->form[side][i];
        bool fits = true, says = false;
        for (int f = 0; f < HW_FEATURES && fits; f++) {
            says |= form->when.value[f] >= 0;
            fits = form->when.value[f] < 0 || form->when.value[f] == hw_node_value(d, node, f);
        }
        if (fits && says) return form;
        if (fits) otherwise = form;
    }
    HW_CHECK(otherwise, "'%s' has no form for features that were drawn", node->entry->name);
    return otherwise;
}

/* The first word heads the others: pieces of a name are `flat`, the words of a form such as `près de` `fixed`. */
static int emit_word(surface *s, hw_node *node, int side)
{
    int first = s->out->count[side];
    if (node->pieces) {
        for (int i = 0; i < node->pieces; i++) add_word(s, side, node, node->piece[i])->piece = i + 1;
    } else {
        const hw_form *form = choose_form(s->d, node, side);
        const char *text = form->text;
        for (size_t length; *(text += strspn(text, " ")); text += length) {
            length = strcspn(text, " ");
            hw_word *word = add_word(s, side, node, hw_arena_string(s->d->arena, "%.*s", (int)length, text));
            hw_bundle_unify(&word->says, &form->when);
        }
    }
    for (int i = first + 1; i < s->out->count[side]; i++) {
        s->out->word[side][i].head = first;
        s->out->word[side][i].relation = node->pieces ? "flat" : "fixed";
    }
    node->head[side] = node->first[side] = first;
    node->count[side] = s->out->count[side] - first;
    return first;
}

/* -> the index of the head word of what was written */
static int emit(surface *s, hw_node *node, int side)
{
    if (node->entry) return emit_word(s, node, side);
    const hw_rule *rule = node->rule;
    int head = -1;
    for (int k = 0; k < rule->length[side]; k++) {
        int i = rule->order[side][k];
        if (!node->child[i]) continue;
        int word = emit(s, node->child[i], side);
        if (!rule->part[i].relation[side]) head = word;
    }
    for (int i = 0; i < rule->parts; i++) {
        const hw_part *part = &rule->part[i];
        if (!node->child[i] || !part->on[side] || !part->relation[side]) continue;
        hw_word *word = &s->out->word[side][node->child[i]->head[side]];
        word->head = head;
        word->relation = part->relation[side];
    }
    for (int i = 0; i < rule->matches; i++) {
        const hw_pairing *pair = &rule->match[i];
        if (!node->child[pair->first] || !node->child[pair->second]) continue;
        if (!rule->part[pair->first].on[side] || !rule->part[pair->second].on[side]) continue;
        int a = node->child[pair->first]->head[side], b = node->child[pair->second]->head[side];
        s->out->word[side][a].match = b;
        s->out->word[side][b].match = a;
    }
    return node->head[side] = head;
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

typedef struct links {
    hw_link *link;
    int count, capacity;
} links;

static void add_link(surface *s, links *l, int source, int target, bool sure)
{
    if (l->count == l->capacity) {
        hw_link *more = hw_arena_alloc(s->d->arena, (size_t)(l->capacity = 2 * l->capacity + 64) * sizeof *more);
        if (l->count) memcpy(more, l->link, (size_t)l->count * sizeof *more);
        l->link = more;
    }
    l->link[l->count++] = (hw_link){source, target, sure};
}

/* A word's two forms are each other's translation; of several words the first are sure, the others possible. */
static void link_word(surface *s, links *l, const hw_node *node)
{
    int source = node->count[HW_SOURCE], target = node->count[HW_TARGET];
    if (!source || !target) return;
    for (int i = 0; i < source || i < target; i++) {
        int a = i < source ? i : source - 1, b = i < target ? i : target - 1;
        add_link(s, l, node->first[HW_SOURCE] + a, node->first[HW_TARGET] + b, !i || node->pieces);
    }
}

static void link_rules(surface *s, links *l, const hw_node *node)
{
    if (node->entry) {
        link_word(s, l, node);
        return;
    }
    for (int i = 0; i < node->rule->links; i++) {
        const hw_pairing *pair = &node->rule->link[i];
        const hw_node *a = node->child[pair->first], *b = node->child[pair->second];
        if (a && b) add_link(s, l, a->head[HW_SOURCE], b->head[HW_TARGET], pair->sure);
    }
    for (int i = 0; i < node->rule->parts; i++)
        if (node->child[i]) link_rules(s, l, node->child[i]);
}

static int compare_links(const void *x, const void *y)
{
    const hw_link *a = x, *b = y;
    if (a->source != b->source) return a->source < b->source ? -1 : 1;
    if (a->target != b->target) return a->target < b->target ? -1 : 1;
    return (int)b->sure - (int)a->sure; /* the sure one first, so that it is the one kept */
}

static void sort_links(links *l, hw_pair *out)
{
    qsort(l->link, (size_t)l->count, sizeof *l->link, compare_links);
    out->links = 0;
    out->link = l->link;
    for (int i = 0; i < l->count; i++) {
        const hw_link *last = out->links ? &out->link[out->links - 1] : NULL;
        if (!last || last->source != l->link[i].source || last->target != l->link[i].target)
            out->link[out->links++] = l->link[i];
    }
}

/* ---- final passes ------------------------------------------------------------------------------------------------ */

enum { MOST_GROWTH = 1000 }; /* words; no sentence of a corpus may be longer */

static bool begins(const hw_rewrite *pass, const char *text)
{
    for (int i = 0; i < pass->starts; i++)
        if (!strncmp(text, pass->start[i], strlen(pass->start[i]))) return true;
    return false;
}

static bool applies(const surface *s, const hw_rewrite *pass, int side, int at)
{
    const hw_word *word = s->out->word[side] + at;
    int count = s->out->count[side];
    if (at + pass->words > count) return false;
    for (int i = 0; i < pass->words; i++)
        if (word[i].piece || strcmp(word[i].text, pass->word[i])) return false;
    for (int f = 0; f < HW_FEATURES; f++)
        if (pass->is.value[f] >= 0 && hw_node_value(s->d, word->node, f) != pass->is.value[f]) return false;
    if (pass->relation && (!word->relation || strcmp(word->relation, pass->relation))) return false;
    return !pass->starts || (at + pass->words < count && begins(pass, word[pass->words].text));
}

/* Of words that merge, the one whose head lies outside them stands for all. */
static int standing(const hw_word *words, int first, int count)
{
    for (int i = first; i < first + count; i++)
        if (words[i].head < first || words[i].head >= first + count) return i;
    return first;
}

/* Writes the words anew with those at `at` replaced: one by one, surplus old words merging into the last new one,
 * surplus new words hanging on the last old one. -> [old count] where each word is now */
static int *replace_words(surface *s, const hw_rewrite *pass, int side, int at)
{
    hw_pair *out = s->out;
    int count = out->count[side], old = pass->words, new = pass->becomes;
    int last = at + (old < new ? old : new) - 1; /* up to it one by one */
    hw_word *before = out->word[side];
    int *map = hw_arena_alloc(s->d->arena, (size_t)count * sizeof *map);
    out->count[side] = 0;
    s->capacity[side] = count + new - old;
    out->word[side] = hw_arena_alloc(s->d->arena, (size_t)s->capacity[side] * sizeof *before);
    for (int i = 0; i < count; i++) {
        map[i] = i <= last ? i : i < at + old ? last : i + new - old;
        if (i > last && i < at + old) continue;
        hw_word word = before[i == last ? standing(before, i, at + old - last) : i];
        if (i >= at && i <= last) word.text = pass->become[i - at];
        *add_word(s, side, word.node, word.text) = word;
        for (int k = last + 1; i == last && k < at + new; k++) add_word(s, side, word.node, pass->become[k - at]);
    }
    for (int i = 0; i < out->count[side]; i++) {
        hw_word *word = &out->word[side][i];
        if (word->head >= 0) word->head = map[word->head];
        if (word->match >= 0) word->match = map[word->match];
    }
    for (int k = last + 1; k < at + new; k++) {
        out->word[side][k].head = last;
        out->word[side][k].relation = "fixed";
    }
    return map;
}

static void replace(surface *s, links *l, const hw_rewrite *pass, int side, int at)
{
    int *map = replace_words(s, pass, side, at), surplus = pass->becomes - pass->words;
    for (int i = l->count - 1; i >= 0; i--) {
        hw_link link = l->link[i];
        int32_t *end = side == HW_SOURCE ? &link.source : &link.target;
        bool split = *end == at + pass->words - 1;
        *end = map[*end];
        l->link[i] = link;
        for (int k = 0; split && k < surplus; k++) { /* what a split word was linked to, each part of it may be */
            ++*end;
            add_link(s, l, link.source, link.target, false);
        }
    }
}

static bool final_passes(surface *s, links *l, int side, hw_error *err)
{
    int most = s->out->count[side] + MOST_GROWTH;
    for (int p = 0; p < s->g->rewrites[side]; p++) {
        const hw_rewrite *pass = &s->g->rewrite[side][p];
        for (int at = 0; at < s->out->count[side]; at++) {
            if (!applies(s, pass, side, at)) continue;
            replace(s, l, pass, side, at);
            at += pass->becomes - 1;
            if (s->out->count[side] > most)
                return hw_yaml_fail(pass->at, err,
                                    "with this final pass and those before it a sentence grew by more than %d words; "
                                    "passes are for a few words each",
                                    (int)MOST_GROWTH);
        }
    }
    return true;
}

static const char *join(const surface *s, int side)
{
    size_t size = 1;
    for (int i = 0; i < s->out->count[side]; i++) size += strlen(s->out->word[side][i].text) + 1;
    char *text = hw_arena_alloc(s->d->arena, size), *end = text;
    for (int i = 0; i < s->out->count[side]; i++) end += sprintf(end, i ? " %s" : "%s", s->out->word[side][i].text);
    *end = 0;
    return text;
}

bool hw_surface(const hw_grammar *g, hw_derivation *d, hw_pair *out, hw_error *err)
{
    surface s = {g, d, out, {0, 0}};
    links l = {NULL, 0, 0};
    *out = (hw_pair){.links = 0};
    for (int side = 0; side < HW_SIDES; side++) {
        int head = emit(&s, d->root, side);
        out->word[side][head].relation = "root";
    }
    link_rules(&s, &l, d->root);
    for (int side = 0; side < HW_SIDES; side++) {
        if (!final_passes(&s, &l, side, err)) return false;
        out->text[side] = join(&s, side);
    }
    sort_links(&l, out);
    return true;
}
