/* Reads the lexicon of a grammar: word classes, their words, and the words' forms on both sides.
 *
 * A word gives its forms as one for everything (`cat`), as a list in the columns that its class declares ([cat, cats]),
 * or with their features beside them ({m: un, f: une}). A class of names has syllables in place of words. */
#include "grammar.h"

#include <string.h>

/* Names for the columns in which a category's entries give their forms: [m.sg, f.sg, m.pl, f.pl]. */
typedef struct column_set {
    int count;
    hw_bundle *when;
} column_set;

/* Values that a form is for; `else`: for all that no other form is for. */
static bool read_column(const hw_grammar *g, const hw_yaml *node, hw_bundle *when, hw_error *err)
{
    *when = hw_bundle_open();
    return (node->kind == HW_YAML_SCALAR && !strcmp(node->text, "else")) ||
           hw_grammar_read_values(g, node, "a form", when, err);
}

static bool read_columns(const hw_grammar *g, const hw_yaml *forms, column_set out[HW_SIDES], hw_error *err)
{
    if (!forms) return true;
    if (!hw_grammar_is_mapping(forms, "forms", err) || !hw_yaml_known_keys(forms, g->side, HW_SIDES, err)) return false;
    for (int s = 0; s < HW_SIDES; s++) {
        const hw_yaml *list = hw_yaml_get(forms, g->side[s]);
        if (!list) continue;
        if (!hw_grammar_is_sequence(list, "forms", err)) return false;
        out[s].count = list->count;
        out[s].when = hw_arena_alloc(g->arena, (size_t)list->count * sizeof(hw_bundle));
        for (int i = 0; i < list->count; i++)
            if (!read_column(g, list->items[i], &out[s].when[i], err)) return false;
    }
    return true;
}

static bool read_form(const hw_yaml *node, hw_form *form, hw_error *err)
{
    if (node->kind != HW_YAML_SCALAR) return hw_yaml_fail(node, err, "expected one form, a word or several");
    if (!hw_grammar_check_text(node, "a form", true, err)) return false;
    form->text = node->text;
    return true;
}

/* One side of an entry: `cat` for all features, [cat, cats] in the category's columns, or {m: un, f: une}. */
static bool read_forms(const hw_grammar *g, const hw_yaml *node, const char *side, const column_set *columns,
                       hw_entry *entry, int s, hw_error *err)
{
    int count = node->kind == HW_YAML_SCALAR ? 1 : node->count;
    hw_form *forms = hw_arena_alloc(g->arena, (size_t)(count + 1) * sizeof *forms);
    if (node->kind == HW_YAML_SEQUENCE && count != columns->count)
        return hw_yaml_fail(node, err, "%s has %d %s here, and the word class declares %d (forms: %s: [...])", side,
                            count, hw_plural(count, "form", "forms"), columns->count, side);
    for (int i = 0; i < count; i++) {
        forms[i].when = node->kind == HW_YAML_SEQUENCE ? columns->when[i] : hw_bundle_open();
        if (node->kind == HW_YAML_MAPPING && !read_column(g, node->keys[i], &forms[i].when, err)) return false;
        if (!read_form(node->kind == HW_YAML_SCALAR ? node : node->items[i], &forms[i], err)) return false;
    }
    if (!count) return hw_yaml_fail(node, err, "%s: no form", side);
    entry->forms[s] = count;
    entry->form[s] = forms;
    return true;
}

static bool read_entry(const hw_grammar *g, hw_symbol *symbol, const hw_yaml *node, const column_set columns[HW_SIDES],
                       hw_entry *entry, hw_error *err)
{
    *entry = (hw_entry){.at = node, .weight = 1};
    const hw_yaml *weight = hw_yaml_get(node, "weight");
    if (!hw_grammar_read_values(g, hw_yaml_get(node, "is"), "is", &entry->is, err)) return false;
    if (weight && !hw_yaml_number(weight, "weight", 1e-9, 1e9, &entry->weight, err)) return false;
    for (int s = 0; s < HW_SIDES; s++) {
        const hw_yaml *side = hw_yaml_get(node, g->side[s]);
        if (side && !read_forms(g, side, g->side[s], &columns[s], entry, s, err)) return false;
        if (entry->forms[s] && !entry->name) entry->name = entry->form[s][0].text;
    }
    if (!entry->name)
        return hw_yaml_fail(node, err, "lexicon.%s: a word needs a form for %s or for %s", symbol->name, g->side[0],
                            g->side[1]);
    return true;
}

/* Which features the forms and properties of the entries speak of, and on which sides the class has words. */
static bool sum_up_entries(const hw_grammar *g, hw_symbol *symbol, hw_error *err)
{
    for (int e = 0; e < symbol->entries; e++) {
        const hw_entry *entry = &symbol->entry[e];
        for (int s = 0; s < HW_SIDES; s++) {
            bool on = entry->forms[s] > 0;
            if (e && on != symbol->on[s])
                return hw_yaml_fail(
                    entry->at, err,
                    "lexicon.%s: '%s' %s %s form, unlike the entries before it; put it into a class of its own",
                    symbol->name, entry->name, on ? "has a" : "has no", g->side[s]);
            symbol->on[s] = on;
            for (int i = 0; i < entry->forms[s]; i++)
                for (int f = 0; f < g->features; f++)
                    if (entry->form[s][i].when.value[f] >= 0) symbol->features |= 1u << f;
        }
        for (int f = 0; f < g->features; f++)
            if (entry->is.value[f] >= 0) symbol->features |= 1u << f;
    }
    return true;
}

/* Names spelled from syllables: one entry without forms; its pieces are drawn when a sentence is. */
static bool read_spelling(const hw_grammar *g, hw_symbol *symbol, const hw_yaml *node, hw_error *err)
{
    const hw_yaml *lengths = hw_yaml_get(node, "pieces"), *joiner = hw_yaml_get(node, "joiner");
    if (!hw_grammar_words(g, hw_yaml_get(node, "syllables"), "syllables", &symbol->syllables, &symbol->syllable, err))
        return false;
    if (!lengths)
        return hw_yaml_fail(node, err, "lexicon.%s: syllables need `pieces: {how many: weight}`", symbol->name);
    if (!hw_grammar_is_mapping(lengths, "pieces", err)) return false;
    symbol->joiner = "";
    if (joiner && !hw_yaml_string(joiner, "joiner", &symbol->joiner, err)) return false;
    if (*symbol->joiner && !hw_grammar_check_text(joiner, "joiner", false, err)) return false;
    for (int i = 0; i < lengths->count; i++) {
        int64_t pieces;
        if (i == HW_PIECES) return hw_yaml_fail(lengths->keys[i], err, "pieces: at most %d lengths", (int)HW_PIECES);
        if (!hw_yaml_integer(lengths->keys[i], "a number of pieces", 1, HW_PIECES, &pieces, err) ||
            !hw_yaml_number(lengths->items[i], "a weight", 1e-9, 1e9, &symbol->piece_weights[i], err))
            return false;
        symbol->pieces[symbol->lengths++] = (int)pieces;
    }
    symbol->entries = 1;
    symbol->entry = hw_arena_calloc(g->arena, 1, sizeof *symbol->entry);
    *symbol->entry = (hw_entry){.name = symbol->name, .at = node, .weight = 1};
    if (!hw_grammar_read_values(g, hw_yaml_get(node, "is"), "is", &symbol->entry->is, err)) return false;
    if (!sum_up_entries(g, symbol, err)) return false;
    symbol->on[HW_SOURCE] = symbol->on[HW_TARGET] = true;
    return true;
}

static bool read_pos(const hw_grammar *g, hw_symbol *symbol, const hw_yaml *node, const hw_yaml *class, hw_error *err)
{
    if (!node)
        return hw_yaml_fail(class, err, "lexicon.%s: `pos:` is missing (NOUN, VERB ...; or {%s: X, %s: Y})",
                            symbol->name, g->side[0], g->side[1]);
    if (node->kind == HW_YAML_MAPPING && !hw_yaml_known_keys(node, g->side, HW_SIDES, err)) return false;
    for (int s = 0; s < HW_SIDES; s++) {
        const hw_yaml *pos = node->kind == HW_YAML_MAPPING ? hw_yaml_get(node, g->side[s]) : node;
        symbol->pos[s] = "X";
        if (pos && !hw_grammar_check_text(pos, "pos", false, err)) return false;
        if (pos) symbol->pos[s] = pos->text;
    }
    return true;
}

static bool read_class(hw_grammar *g, hw_symbol *symbol, const hw_yaml *node, hw_error *err)
{
    const char *one[] = {"pos", "forms", "is", "weight", g->side[0], g->side[1]};
    const char *many[] = {"pos", "forms", "entries"}, *each[] = {"is", "weight", g->side[0], g->side[1]};
    const char *spelled[] = {"pos", "is", "syllables", "pieces", "joiner"};
    if (!hw_grammar_is_mapping(node, symbol->name, err)) return false;
    if (!read_pos(g, symbol, hw_yaml_get(node, "pos"), node, err)) return false;
    if (hw_yaml_get(node, "syllables"))
        return hw_yaml_known_keys(node, spelled, 5, err) && read_spelling(g, symbol, node, err);

    column_set columns[HW_SIDES] = {{0, NULL}, {0, NULL}};
    const hw_yaml *entries = hw_yaml_get(node, "entries");
    if (!(entries ? hw_yaml_known_keys(node, many, 3, err) : hw_yaml_known_keys(node, one, 6, err))) return false;
    if (!read_columns(g, hw_yaml_get(node, "forms"), columns, err)) return false;
    if (entries && !hw_grammar_is_sequence(entries, "entries", err)) return false;
    symbol->entries = entries ? entries->count : 1;
    symbol->entry = hw_arena_alloc(g->arena, (size_t)symbol->entries * sizeof *symbol->entry);
    for (int i = 0; i < symbol->entries; i++) {
        const hw_yaml *entry = entries ? entries->items[i] : node;
        if (entries && (!hw_grammar_is_mapping(entry, "an entry", err) || !hw_yaml_known_keys(entry, each, 4, err)))
            return false;
        if (!read_entry(g, symbol, entry, columns, &symbol->entry[i], err)) return false;
    }
    return sum_up_entries(g, symbol, err);
}

bool hw_grammar_read_lexicon(hw_grammar *g, const hw_yaml *node, const hw_yaml *rules, hw_error *err)
{
    if (!hw_grammar_is_mapping(node, "lexicon", err) || !hw_grammar_is_mapping(rules, "rules", err)) return false;
    g->symbol = hw_arena_calloc(g->arena, (size_t)(node->count + rules->count), sizeof *g->symbol);
    for (int i = 0; i < node->count; i++) {
        if (!hw_grammar_check_name(node->keys[i], err)) return false;
        hw_symbol *symbol = &g->symbol[g->symbols++];
        *symbol = (hw_symbol){.name = node->keys[i]->text, .at = node->keys[i], .word = true};
        if (!read_class(g, symbol, node->items[i], err)) return false;
    }
    return true;
}
