/* The rules of a grammar and the small notation in which their parts are written.
 *
 *   np[number gender]:  a phrase and its features
 *     - weight: 2
 *       en: det:det adjective[after]:amod noun
 *       fr: det:det noun adjective:amod
 *
 * A part of the source side is  label=symbol{word}[values]:relation?probability ; all but the symbol may be left out:
 * the label is then the symbol, any word of the class will do, and the part without a relation is the rule's head. The
 * target side names the same parts by their labels; a part that only the target has is written out there. `both:` gives
 * one order for both sides. Within a rule a feature has one value, shared by the phrase and all parts that have the
 * feature, except parts marked [free]. */
#include "grammar.h"

#include <stdlib.h>
#include <string.h>

static const char NAME[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
enum { PARTS = 64 };

static const char *symbol_name(int i, const void *argument) { return ((const hw_grammar *)argument)->symbol[i].name; }
static const char *entry_name(int i, const void *argument) { return ((const hw_symbol *)argument)->entry[i].name; }
static const char *part_label(int i, const void *argument) { return ((const hw_rule *)argument)->part[i].label; }

/* ---- declarations ------------------------------------------------------------------------------------------------ */

/* np[number gender] */
static bool declare(hw_grammar *g, const hw_yaml *key, hw_error *err)
{
    const char *text = key->text, *open = text + strspn(text, NAME);
    if (open == text || (*open && (*open != '[' || text[strlen(text) - 1] != ']')))
        return hw_yaml_fail(key, err, "'%s' cannot name a phrase: expected name or name[feature feature]", text);
    const char *name = hw_arena_string(g->arena, "%.*s", (int)(open - text), text);
    if (hw_grammar_symbol(g, name))
        return hw_yaml_fail(key, err, "%s is a name already (lexicon and rules share them)", name);
    hw_symbol *symbol = &g->symbol[g->symbols++];
    *symbol = (hw_symbol){.name = name, .at = key};
    return !*open || hw_grammar_features(g, key, open + 1, (int)strlen(open) - 2, &symbol->features, err);
}

/* ---- one part ---------------------------------------------------------------------------------------------------- */

/* Where reading stands within a scalar. */
typedef struct scan {
    hw_grammar *g;
    const hw_yaml *at;
    const char *p;
    hw_error *err;
} scan;

static const char *scan_name(scan *s)
{
    size_t length = strspn(s->p, NAME);
    if (!length) return NULL;
    const char *name = hw_arena_string(s->g->arena, "%.*s", (int)length, s->p);
    s->p += length;
    return name;
}

/* {word} */
static bool scan_entry(scan *s, hw_part *part)
{
    if (*s->p != '{') return true;
    const char *start = ++s->p;
    size_t length = strcspn(start, "}");
    const char *name = hw_arena_string(s->g->arena, "%.*s", (int)length, start);
    if (!start[length]) return hw_grammar_fail(s->at, start, s->err, "the } is missing");
    for (int e = 0; e < part->symbol->entries && !part->entry; e++)
        if (!strcmp(part->symbol->entry[e].name, name)) part->entry = &part->symbol->entry[e];
    if (!part->entry)
        return hw_grammar_fail(s->at, start, s->err, "%s has no word '%s'%s", part->symbol->name, name,
                               hw_grammar_hint(s->g, name, part->symbol->entries, entry_name, part->symbol));
    s->p = start + length + 1;
    return true;
}

/* [value value free] */
static bool scan_values(scan *s, hw_part *part)
{
    if (*s->p != '[') return true;
    const char *start = ++s->p, *end = strchr(start, ']');
    if (!end) return hw_grammar_fail(s->at, start, s->err, "the ] is missing");
    while (s->p < end) {
        s->p += strspn(s->p, " ");
        int length = (int)strcspn(s->p, " ]");
        if (length == 4 && !memcmp(s->p, "free", 4))
            part->free = true;
        else if (!hw_grammar_values(s->g, s->at, s->p, length, &part->is, s->err))
            return false;
        s->p += length;
    }
    for (int f = 0; f < s->g->features; f++)
        if (part->is.value[f] >= 0 && !(part->symbol->features >> f & 1))
            return hw_grammar_fail(s->at, start, s->err, "%s has no %s, so it cannot be %s", part->symbol->name,
                                   s->g->feature[f].name, s->g->feature[f].values[part->is.value[f]]);
    s->p = end + 1;
    return true;
}

/* :relation */
static bool scan_relation(scan *s, const char **relation)
{
    if (*s->p != ':') return true;
    size_t length = strspn(++s->p, "abcdefghijklmnopqrstuvwxyz:_");
    if (!length)
        return hw_grammar_fail(s->at, s->p, s->err, "a relation is expected after the colon (det, amod, obj ...)");
    *relation = hw_arena_string(s->g->arena, "%.*s", (int)length, s->p);
    s->p += length;
    return true;
}

/* ?0.3 */
static bool scan_probability(scan *s, hw_part *part)
{
    if (*s->p != '?') return true;
    const char *start = ++s->p;
    char *end;
    part->probability = strtod(start, &end);
    if (end == start || !(part->probability > 0 && part->probability <= 1))
        return hw_grammar_fail(s->at, start, s->err, "a probability above 0 and up to 1 is expected after the ?");
    s->p = end;
    return true;
}

static int find_part(const hw_rule *rule, const char *label)
{
    for (int i = 0; i < rule->parts; i++)
        if (!strcmp(rule->part[i].label, label)) return i;
    return -1;
}

/* A part written out, at the label that stands before s->p. */
static bool scan_new_part(scan *s, hw_rule *rule, const char *label, const char *start)
{
    const char *name = label;
    if (*s->p == '=') {
        s->p++;
        const char *at = s->p;
        if (!(name = scan_name(s))) return hw_grammar_fail(s->at, at, s->err, "a name is expected after the =");
    }
    hw_symbol *symbol = hw_grammar_symbol(s->g, name);
    if (!symbol)
        return hw_grammar_fail(s->at, start, s->err, "there is no %s in lexicon or rules%s", name,
                               hw_grammar_hint(s->g, name, s->g->symbols, symbol_name, s->g));
    if (rule->parts == PARTS) return hw_grammar_fail(s->at, start, s->err, "at most %d parts in a rule", (int)PARTS);
    symbol->used = true;
    hw_part *part = &rule->part[rule->parts++];
    *part = (hw_part){.label = label, .symbol = symbol, .is = hw_bundle_open(), .probability = 1};
    return scan_entry(s, part) && scan_values(s, part);
}

/* One part of a side, at s->p; it is added to the side's order. */
static bool scan_part(scan *s, hw_rule *rule, int side)
{
    const char *start = s->p, *label = scan_name(s);
    if (!label) return hw_grammar_fail(s->at, s->p, s->err, "the name of a part is expected here");
    int i = find_part(rule, label);
    if (i >= 0 && rule->part[i].on[side])
        return hw_grammar_fail(s->at, start, s->err,
                               "the part %s stands here twice; tell two of a kind apart as in a=%s b=%s", label,
                               rule->part[i].symbol->name, rule->part[i].symbol->name);
    if (i >= 0 && strspn(s->p, "={[?"))
        return hw_grammar_fail(s->at, s->p, s->err, "%s is described on the %s side; here only its place and relation",
                               label, s->g->side[HW_SOURCE]);
    if (i < 0) {
        i = rule->parts;
        if (!scan_new_part(s, rule, label, start)) return false;
    }
    hw_part *part = &rule->part[i];
    if (!scan_relation(s, &part->relation[side]) || !scan_probability(s, part)) return false;
    if (*s->p && *s->p != ' ')
        return hw_grammar_fail(s->at, s->p, s->err,
                               "'%c' was not expected; a part is label=symbol{word}[values]:relation?0.5", *s->p);
    if (part->symbol->word && !part->symbol->on[side])
        return hw_grammar_fail(s->at, start, s->err, "%s has no form for %s", part->symbol->name, s->g->side[side]);
    part->on[side] = true;
    rule->order[side][rule->length[side]++] = i;
    return true;
}

/* ---- one rule ---------------------------------------------------------------------------------------------------- */

static bool scan_side(hw_grammar *g, hw_rule *rule, int side, const hw_yaml *node, hw_error *err)
{
    scan s = {g, node, node->text, err};
    if (node->kind != HW_YAML_SCALAR)
        return hw_yaml_fail(node, err, "expected the parts of a side, as in `det:det noun`");
    const hw_part *head = NULL;
    while (*(s.p += strspn(s.p, " "))) {
        const char *start = s.p;
        if (!scan_part(&s, rule, side)) return false;
        const hw_part *part = &rule->part[rule->order[side][rule->length[side] - 1]];
        if (part->relation[side]) continue;
        if (head)
            return hw_grammar_fail(node, start, err, "%s and %s both have no relation; only the head has none",
                                   head->label, part->label);
        if (part->probability < 1) return hw_grammar_fail(node, start, err, "the head of a rule cannot be optional");
        head = part;
    }
    if (!rule->length[side]) return hw_yaml_fail(node, err, "this side has no parts");
    if (!head)
        return hw_yaml_fail(node, err, "this side has no head: one part has no relation, the others name theirs to it");
    return true;
}

/* `opening-closing`, `not~ne`: pairs of labels; - sure, ~ possible. */
static bool scan_pairings(hw_grammar *g, const hw_rule *rule, const hw_yaml *node, const char *joins, int sides[2],
                          int *count, hw_pairing **out, hw_error *err)
{
    scan s = {g, node, node->text, err};
    if (node->kind != HW_YAML_SCALAR)
        return hw_yaml_fail(node, err, "expected pairs of parts, as in `not-pas does~verb`");
    *out = hw_arena_alloc(g->arena, (strlen(node->text) / 2 + 1) * sizeof **out);
    while (*(s.p += strspn(s.p, " "))) {
        hw_pairing *pairing = &(*out)[(*count)++];
        int *const ends[2] = {&pairing->first, &pairing->second};
        for (int k = 0; k < 2; k++) {
            const char *start = s.p, *label = scan_name(&s);
            if (!label) return hw_grammar_fail(node, start, err, "the label of a part is expected here");
            *ends[k] = find_part(rule, label);
            if (*ends[k] < 0)
                return hw_grammar_fail(node, start, err, "the rule has no part %s%s", label,
                                       hw_grammar_hint(g, label, rule->parts, part_label, rule));
            if (sides[k] >= 0 && !rule->part[*ends[k]].on[sides[k]])
                return hw_grammar_fail(node, start, err, "%s is not on the %s side", label, g->side[sides[k]]);
            if (k) continue;
            if (!*s.p || !strchr(joins, *s.p))
                return hw_grammar_fail(node, s.p, err, "expected %c between two labels", joins[0]);
            pairing->sure = *s.p++ == '-';
        }
    }
    return true;
}

static bool on_both_sides(const hw_grammar *g, const hw_rule *rule, hw_error *err)
{
    for (int i = 0; i < rule->parts; i++) {
        const hw_part *part = &rule->part[i];
        for (int s = 0; s < HW_SIDES; s++)
            if (!part->on[s] && (!part->symbol->word || part->symbol->on[s]))
                return hw_yaml_fail(rule->at, err, "the part %s is missing on the %s side", part->label, g->side[s]);
    }
    return true;
}

static int phenomenon(hw_grammar *g, const char *name)
{
    for (int i = 0; i < g->phenomena; i++)
        if (!strcmp(g->phenomenon[i], name)) return i;
    if (!(g->phenomena & (g->phenomena - 1))) { /* 0, 1, 2, 4 ...: full */
        const char **more = hw_arena_alloc(g->arena, (size_t)(g->phenomena ? 2 * g->phenomena : 1) * sizeof *more);
        if (g->phenomena) memcpy(more, g->phenomenon, (size_t)g->phenomena * sizeof *more);
        g->phenomenon = more;
    }
    g->phenomenon[g->phenomena] = name;
    return g->phenomena++;
}

static bool read_sides_of(hw_grammar *g, hw_rule *rule, const hw_yaml *node, hw_error *err)
{
    const hw_yaml *both = hw_yaml_get(node, "both"), *side[HW_SIDES];
    for (int s = 0; s < HW_SIDES; s++) {
        side[s] = both ? both : hw_yaml_get(node, g->side[s]);
        if (both && hw_yaml_get(node, g->side[s]))
            return hw_yaml_fail(both, err, "either `both:` or `%s:` and `%s:`", g->side[0], g->side[1]);
        if (!side[s])
            return hw_yaml_fail(node, err, "a rule needs `%s:` and `%s:`, or `both:`", g->side[0], g->side[1]);
        rule->order[s] = hw_arena_alloc(g->arena, PARTS * sizeof(int));
    }
    rule->part = hw_arena_alloc(g->arena, PARTS * sizeof *rule->part);
    if (!scan_side(g, rule, HW_SOURCE, side[HW_SOURCE], err)) return false;
    if (!both) return scan_side(g, rule, HW_TARGET, side[HW_TARGET], err) && on_both_sides(g, rule, err);
    rule->order[HW_TARGET] = rule->order[HW_SOURCE];
    rule->length[HW_TARGET] = rule->length[HW_SOURCE];
    for (int i = 0; i < rule->parts; i++) {
        if (rule->part[i].symbol->word && !rule->part[i].symbol->on[HW_TARGET])
            return hw_yaml_fail(both, err, "%s has no form for %s", rule->part[i].symbol->name, g->side[HW_TARGET]);
        rule->part[i].on[HW_TARGET] = true;
        rule->part[i].relation[HW_TARGET] = rule->part[i].relation[HW_SOURCE];
    }
    return true;
}

/* What the rule says of the phrase itself; the phrase must have those features. */
static bool read_rule_values(const hw_grammar *g, hw_rule *rule, const hw_symbol *symbol, const hw_yaml *node,
                             hw_error *err)
{
    const char *text;
    rule->is = hw_bundle_open();
    if (!node) return true;
    if (!hw_yaml_string(node, "is", &text, err) || !hw_grammar_values(g, node, text, (int)strlen(text), &rule->is, err))
        return false;
    for (int f = 0; f < g->features; f++)
        if (rule->is.value[f] >= 0 && (!symbol || !(symbol->features >> f & 1)))
            return hw_yaml_fail(node, err, "%s has no %s, so it cannot be %s",
                                symbol ? symbol->name : "a pinned sentence", g->feature[f].name,
                                g->feature[f].values[rule->is.value[f]]);
    return true;
}

static bool read_rule(hw_grammar *g, hw_rule *rule, const hw_symbol *symbol, const hw_yaml *node, hw_error *err)
{
    const char *keys[] = {"weight", "both", "is", "align", "match", "count", g->side[0], g->side[1]};
    *rule = (hw_rule){.at = node, .weight = 1, .phenomenon = -1};
    if (node->kind != HW_YAML_MAPPING)
        return hw_yaml_fail(node, err, "a rule is a mapping (%s: ..., %s: ...)", g->side[0], g->side[1]);
    if (!hw_yaml_known_keys(node, keys, 8, err)) return false;
    const hw_yaml *weight = hw_yaml_get(node, "weight"), *count = hw_yaml_get(node, "count");
    const hw_yaml *align = hw_yaml_get(node, "align"), *match = hw_yaml_get(node, "match");
    if (weight && !hw_yaml_number(weight, "weight", 1e-9, 1e9, &rule->weight, err)) return false;
    if (!read_sides_of(g, rule, node, err) || !read_rule_values(g, rule, symbol, hw_yaml_get(node, "is"), err))
        return false;
    if (align && !scan_pairings(g, rule, align, "-~", (int[]){HW_SOURCE, HW_TARGET}, &rule->links, &rule->link, err))
        return false;
    if (match && !scan_pairings(g, rule, match, "-", (int[]){-1, -1}, &rule->matches, &rule->match, err)) return false;
    if (count && !hw_grammar_check_text(count, "count", true, err)) return false;
    if (count) rule->phenomenon = phenomenon(g, count->text);
    return true;
}

/* -> the list's rules; symbol NULL: pinned sentences. */
static hw_rule *read_list(hw_grammar *g, const hw_symbol *symbol, const hw_yaml *list, hw_error *err)
{
    if (list->kind != HW_YAML_SEQUENCE || !list->count) {
        hw_yaml_fail(list, err, "%s: expected a list of rules (- %s: ...)", symbol ? symbol->name : "pinned",
                     g->side[0]);
        return NULL;
    }
    hw_rule *rules = hw_arena_alloc(g->arena, (size_t)list->count * sizeof *rules);
    for (int i = 0; i < list->count; i++)
        if (!read_rule(g, &rules[i], symbol, list->items[i], err)) return NULL;
    return rules;
}

bool hw_grammar_read_rules(hw_grammar *g, const hw_yaml *root, hw_error *err)
{
    const hw_yaml *rules = hw_yaml_get(root, "rules"), *start = hw_yaml_get(root, "start"),
                  *pinned = hw_yaml_get(root, "pinned");
    int first = g->symbols;
    for (int i = 0; i < rules->count; i++)
        if (!declare(g, rules->keys[i], err)) return false;
    for (int i = 0; i < rules->count; i++) {
        hw_symbol *symbol = &g->symbol[first + i];
        symbol->rules = rules->items[i]->count;
        if (!(symbol->rule = read_list(g, symbol, rules->items[i], err))) return false;
    }
    if (pinned) {
        g->pinned = pinned->count;
        if (!(g->pin = read_list(g, NULL, pinned, err))) return false;
    }
    const char *name;
    if (!hw_yaml_string(start, "start", &name, err)) return false;
    g->start = hw_grammar_symbol(g, name);
    if (!g->start)
        return hw_yaml_fail(start, err, "there are no rules for %s%s", name,
                            hw_grammar_hint(g, name, g->symbols, symbol_name, g));
    if (g->start->word)
        return hw_yaml_fail(start, err, "%s is a word class; sentences start from a phrase of `rules:`", name);
    g->start->used = true;
    return true;
}
