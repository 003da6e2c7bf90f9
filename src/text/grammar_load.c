/* Reads a grammar: its features, its final passes and what it says of the corpus; the lexicon is read by
 * grammar_lexicon.c, the rules by grammar_rules.c.
 *
 * Names are checked where they are read, so that a misspelt one is reported at its own line and column with the nearest
 * that exists. What shows only in the whole (missing forms, endless rules) is grammar_check.c's. */
#include "grammar.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

hw_bundle hw_bundle_open(void)
{
    hw_bundle open;
    memset(open.value, -1, sizeof open.value);
    return open;
}

bool hw_bundle_unify(hw_bundle *a, const hw_bundle *b)
{
    for (int f = 0; f < HW_FEATURES; f++) {
        if (b->value[f] < 0) continue;
        if (a->value[f] >= 0 && a->value[f] != b->value[f]) return false;
        a->value[f] = b->value[f];
    }
    return true;
}

hw_symbol *hw_grammar_symbol(const hw_grammar *g, const char *name)
{
    for (int i = 0; i < g->symbols; i++)
        if (!strcmp(g->symbol[i].name, name)) return &g->symbol[i];
    return NULL;
}

bool hw_grammar_fail(const hw_yaml *at, const char *text, hw_error *err, const char *format, ...)
{
    hw_yaml here = *at;
    if (text >= at->text && text <= at->text + strlen(at->text)) here.column += (int)(text - at->text) + at->quoted;
    char message[1536];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return hw_yaml_fail(&here, err, "%s", message);
}

const char *hw_grammar_hint(const hw_grammar *g, const char *word, int count, const char *(*name)(int, const void *),
                            const void *argument)
{
    const char *nearest = hw_nearest(word, count, name, argument);
    return nearest ? hw_arena_string(g->arena, "; did you mean %s?", nearest) : "";
}

/* ---- names and values -------------------------------------------------------------------------------------------- */

/* The i-th value of all features together. */
static const char *value_name(int i, const void *argument)
{
    const hw_grammar *g = argument;
    for (int f = 0; f < g->features; i -= g->feature[f++].count)
        if (i < g->feature[f].count) return g->feature[f].values[i];
    return "";
}

static int value_count(const hw_grammar *g)
{
    int count = 0;
    for (int f = 0; f < g->features; f++) count += g->feature[f].count;
    return count;
}

static bool find_value(const hw_grammar *g, const char *name, int *feature, int *value)
{
    for (int f = 0; f < g->features; f++)
        for (int v = 0; v < g->feature[f].count; v++)
            if (!strcmp(g->feature[f].values[v], name)) {
                *feature = f;
                *value = v;
                return true;
            }
    return false;
}

bool hw_grammar_values(const hw_grammar *g, const hw_yaml *at, const char *text, int size, hw_bundle *out,
                       hw_error *err)
{
    const char *end = text + size;
    while (text < end) {
        size_t blanks = strspn(text, " ."), length = strcspn(text + blanks, " .]");
        text += blanks;
        if (text >= end) break;
        if (text + length > end) length = (size_t)(end - text);
        const char *name = hw_arena_string(g->arena, "%.*s", (int)length, text);
        int feature, value;
        if (!find_value(g, name, &feature, &value))
            return hw_grammar_fail(at, text, err, "no feature has a value %s%s", name,
                                   hw_grammar_hint(g, name, value_count(g), value_name, g));
        if (out->value[feature] >= 0 && out->value[feature] != value)
            return hw_grammar_fail(at, text, err, "%s contradicts %s: both are values of %s", name,
                                   g->feature[feature].values[out->value[feature]], g->feature[feature].name);
        out->value[feature] = (int8_t)value;
        text += length;
    }
    return true;
}

static const char *feature_name(int i, const void *argument) { return ((const hw_grammar *)argument)->feature[i].name; }

static int find_feature(const hw_grammar *g, const char *name)
{
    for (int f = 0; f < g->features; f++)
        if (!strcmp(g->feature[f].name, name)) return f;
    return -1;
}

bool hw_grammar_features(const hw_grammar *g, const hw_yaml *at, const char *text, int size, uint32_t *out,
                         hw_error *err)
{
    for (const char *end = text + size; (text += strspn(text, " ")) < end;) {
        int length = (int)strcspn(text, " ]");
        const char *name = hw_arena_string(g->arena, "%.*s", length, text);
        int f = find_feature(g, name);
        if (f < 0)
            return hw_grammar_fail(at, text, err, "there is no feature %s%s", name,
                                   hw_grammar_hint(g, name, g->features, feature_name, g));
        *out |= 1u << f;
        text += length;
    }
    return true;
}

bool hw_grammar_read_values(const hw_grammar *g, const hw_yaml *node, const char *what, hw_bundle *out, hw_error *err)
{
    *out = hw_bundle_open();
    const char *text;
    if (!node) return true;
    return hw_yaml_string(node, what, &text, err) && hw_grammar_values(g, node, text, (int)strlen(text), out, err);
}

/* A name of the grammar's own: letters, digits and _ so that it can stand in the notation of rules. */
bool hw_grammar_check_name(const hw_yaml *node, hw_error *err)
{
    size_t good = strspn(node->text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (good && !node->text[good] && strcmp(node->text, "free") && strcmp(node->text, "else")) return true;
    return hw_yaml_fail(node, err, "'%s' cannot be a name: use letters, digits and _ (free and else are taken)",
                        node->text);
}

bool hw_grammar_is_mapping(const hw_yaml *node, const char *what, hw_error *err)
{
    if (node->kind == HW_YAML_MAPPING && node->count) return true;
    return hw_yaml_fail(node, err, "%s: expected a mapping (name: ...) with at least one name", what);
}

bool hw_grammar_is_sequence(const hw_yaml *node, const char *what, hw_error *err)
{
    if (node->kind == HW_YAML_SEQUENCE && node->count) return true;
    return hw_yaml_fail(node, err, "%s: expected a list with at least one item", what);
}

bool hw_grammar_check_text(const hw_yaml *node, const char *what, bool blanks, hw_error *err)
{
    const char *text;
    if (node->kind == HW_YAML_SCALAR && !node->text[strspn(node->text, " ")])
        return hw_yaml_fail(node, err, "%s: a word is expected", what);
    if (!hw_yaml_string(node, what, &text, err)) return false;
    for (const char *c = text; *c; c++) {
        if (*c == '\n')
            return hw_yaml_fail(node, err, "%s: a word cannot hold a line break; write it in one line", what);
        if (*c == '\t') return hw_yaml_fail(node, err, "%s: a word cannot hold a tab; blanks separate words", what);
        if ((uint8_t)*c < ' ' || *c == 0x7f)
            return hw_yaml_fail(node, err, "%s: a word cannot hold the control character U+%04X", what, (unsigned)*c);
        if (*c == ' ' && !blanks)
            return hw_yaml_fail(node, err, "%s: '%s' has a blank, but one word is expected here", what, text);
    }
    return true;
}

/* The words of "de le", cut at blanks. */
static void cut_words(const hw_grammar *g, const char *text, int *count, const char ***words)
{
    *words = hw_arena_alloc(g->arena, (strlen(text) / 2 + 1) * sizeof **words);
    *count = 0;
    for (size_t length; *(text += strspn(text, " ")); text += length) {
        length = strcspn(text, " ");
        (*words)[(*count)++] = hw_arena_string(g->arena, "%.*s", (int)length, text);
    }
}

/* blanks: an item may be several words. */
static bool read_list(const hw_grammar *g, const hw_yaml *node, const char *what, bool blanks, int *count,
                      const char ***words, hw_error *err)
{
    if (!hw_grammar_is_sequence(node, what, err)) return false;
    *count = node->count;
    *words = hw_arena_alloc(g->arena, (size_t)node->count * sizeof **words);
    for (int i = 0; i < node->count; i++) {
        if (!hw_grammar_check_text(node->items[i], what, blanks, err)) return false;
        (*words)[i] = node->items[i]->text;
    }
    return true;
}

bool hw_grammar_words(const hw_grammar *g, const hw_yaml *node, const char *what, int *count, const char ***words,
                      hw_error *err)
{
    if (node->kind != HW_YAML_SCALAR) return read_list(g, node, what, false, count, words, err);
    if (!hw_grammar_check_text(node, what, true, err)) return false;
    cut_words(g, node->text, count, words);
    return true;
}

/* ---- features ---------------------------------------------------------------------------------------------------- */

/* gender: [m, f]   or   number: {sg: 2, pl: 1} */
static bool read_feature(hw_grammar *g, const hw_yaml *name, const hw_yaml *node, hw_error *err)
{
    if (node->kind == HW_YAML_SCALAR || node->count < 1 || node->count > 120)
        return hw_yaml_fail(node, err, "features.%s: expected its values as a list [a, b], or {a: weight, b: weight}",
                            name->text);
    hw_feature *feature = &g->feature[g->features];
    feature->name = name->text;
    feature->values = hw_arena_alloc(g->arena, (size_t)node->count * sizeof *feature->values);
    feature->weights = hw_arena_alloc(g->arena, (size_t)node->count * sizeof *feature->weights);
    g->features++; /* now, so that a value that stands twice in it is found */
    for (int i = 0, f, v; i < node->count; i++) {
        const hw_yaml *value = node->kind == HW_YAML_MAPPING ? node->keys[i] : node->items[i];
        const char *text;
        if (!hw_yaml_string(value, "the name of a value", &text, err) || !hw_grammar_check_name(value, err))
            return false;
        feature->count = i;
        if (find_value(g, text, &f, &v))
            return hw_yaml_fail(value, err, "%s is a value of %s already; a value's name must tell its feature", text,
                                g->feature[f].name);
        feature->values[i] = text;
        feature->weights[i] = 1;
        if (node->kind == HW_YAML_MAPPING &&
            !hw_yaml_number(node->items[i], "a weight", 1e-9, 1e9, &feature->weights[i], err))
            return false;
    }
    feature->count = node->count;
    return true;
}

static bool read_features(hw_grammar *g, const hw_yaml *node, hw_error *err)
{
    if (!node) return true;
    if (!hw_grammar_is_mapping(node, "features", err)) return false;
    if (node->count > HW_FEATURES) return hw_yaml_fail(node, err, "features: at most %d", (int)HW_FEATURES);
    for (int i = 0; i < node->count; i++)
        if (!hw_grammar_check_name(node->keys[i], err) || !read_feature(g, node->keys[i], node->items[i], err))
            return false;
    return true;
}

/* ---- final passes ------------------------------------------------------------------------------------------------ */

static bool read_rewrite(hw_grammar *g, const hw_yaml *classes, const hw_yaml *node, hw_rewrite *out, hw_error *err)
{
    static const char *const keys[] = {"words", "before", "is", "relation", "becomes"};
    if (!hw_grammar_is_mapping(node, "a final pass", err) || !hw_yaml_known_keys(node, keys, 5, err)) return false;
    const hw_yaml *words = hw_yaml_get(node, "words"), *becomes = hw_yaml_get(node, "becomes");
    const hw_yaml *before = hw_yaml_get(node, "before"), *relation = hw_yaml_get(node, "relation");
    if (!words || !becomes)
        return hw_yaml_fail(node, err, "a final pass needs `words:` and `becomes:`, as in {words: de le, becomes: du}");
    *out = (hw_rewrite){.at = node};
    if (!hw_grammar_words(g, words, "words", &out->words, &out->word, err) ||
        !hw_grammar_words(g, becomes, "becomes", &out->becomes, &out->become, err) ||
        !hw_grammar_read_values(g, hw_yaml_get(node, "is"), "is", &out->is, err) ||
        (relation && !hw_yaml_string(relation, "relation", &out->relation, err)))
        return false;
    if (!before) return true;
    const char *name;
    if (!hw_yaml_string(before, "before", &name, err)) return false;
    const hw_yaml *starts = classes && classes->kind == HW_YAML_MAPPING ? hw_yaml_get(classes, name) : NULL;
    if (!starts) return hw_yaml_fail(before, err, "there is no class %s; list its beginnings under `classes:`", name);
    return hw_grammar_words(g, starts, name, &out->starts, &out->start, err);
}

static bool read_rewrites(hw_grammar *g, const hw_yaml *root, hw_error *err)
{
    const hw_yaml *node = hw_yaml_get(root, "rewrite"), *classes = hw_yaml_get(root, "classes");
    if (!node) return true;
    if (!hw_grammar_is_mapping(node, "rewrite", err) || !hw_yaml_known_keys(node, g->side, HW_SIDES, err)) return false;
    for (int s = 0; s < HW_SIDES; s++) {
        const hw_yaml *list = hw_yaml_get(node, g->side[s]);
        if (!list) continue;
        if (!hw_grammar_is_sequence(list, "rewrite", err)) return false;
        g->rewrites[s] = list->count;
        g->rewrite[s] = hw_arena_alloc(g->arena, (size_t)list->count * sizeof(hw_rewrite));
        for (int i = 0; i < list->count; i++)
            if (!read_rewrite(g, classes, list->items[i], &g->rewrite[s][i], err)) return false;
    }
    return true;
}

/* ---- the corpus -------------------------------------------------------------------------------------------------- */

static bool read_corpus(hw_grammar *g, const hw_yaml *node, hw_error *err)
{
    static const char *const keys[] = {"pairs", "valid", "test", "seed", "length"};
    int64_t *const numbers[] = {&g->pairs, &g->valid, &g->test, &g->seed};
    if (!node) return true;
    if (!hw_grammar_is_mapping(node, "corpus", err) || !hw_yaml_known_keys(node, keys, 5, err)) return false;
    for (int i = 0; i < 4; i++) {
        const hw_yaml *number = hw_yaml_get(node, keys[i]);
        if (number && !hw_yaml_integer(number, keys[i], 0, i < 3 ? 100000000 : INT64_MAX, numbers[i], err))
            return false;
    }
    const hw_yaml *length = hw_yaml_get(node, "length");
    if (!length) return true;
    int64_t low, high;
    if (length->kind != HW_YAML_SEQUENCE || length->count != 2)
        return hw_yaml_fail(length, err, "length: expected [shortest, longest]");
    if (!hw_yaml_integer(length->items[0], "the shortest length", 1, 1000, &low, err) ||
        !hw_yaml_integer(length->items[1], "the longest length", low, 1000, &high, err))
        return false;
    g->min_length = (int)low;
    g->max_length = (int)high;
    return true;
}

static const char *symbol_name(int i, const void *argument) { return ((const hw_grammar *)argument)->symbol[i].name; }

/* The word class that the scalar names, or NULL with the message. */
static hw_symbol *word_class(const hw_grammar *g, const hw_yaml *node, hw_error *err)
{
    const char *name;
    if (!hw_yaml_string(node, "a word class", &name, err)) return NULL;
    hw_symbol *symbol = hw_grammar_symbol(g, name);
    if (symbol && symbol->word) return symbol;
    if (symbol)
        hw_yaml_fail(node, err, "%s is a phrase, not a word class", name);
    else
        hw_yaml_fail(node, err, "the lexicon has no %s%s", name, hw_grammar_hint(g, name, g->symbols, symbol_name, g));
    return NULL;
}

/* distinct: [noun, adjective] */
static bool read_distinct(const hw_grammar *g, const hw_yaml *node, hw_error *err)
{
    if (!node) return true;
    if (!hw_grammar_is_sequence(node, "distinct", err)) return false;
    for (int i = 0; i < node->count; i++) {
        hw_symbol *symbol = word_class(g, node->items[i], err);
        if (!symbol) return false;
        symbol->distinct = true;
    }
    return true;
}

static bool read_held_out(hw_grammar *g, const hw_yaml *node, hw_error *err)
{
    static const char *const keys[] = {"between", "agree", "share", "test"};
    if (!node) return true;
    if (!hw_grammar_is_mapping(node, "held_out", err) || !hw_yaml_known_keys(node, keys, 4, err)) return false;
    const hw_yaml *part[4];
    for (int i = 0; i < 4; i++)
        if (!(part[i] = hw_yaml_get(node, keys[i])))
            return hw_yaml_fail(node, err, "held_out: `%s:` is missing", keys[i]);
    if (part[0]->kind != HW_YAML_SEQUENCE || part[0]->count != 2)
        return hw_yaml_fail(part[0], err, "held_out.between: expected two word classes, as in [noun, adjective]");
    const char *name;
    for (int i = 0; i < 2; i++)
        if (!(g->held[i] = word_class(g, part[0]->items[i], err))) return false;
    if (!hw_yaml_string(part[1], "agree", &name, err)) return false;
    if ((g->held_feature = find_feature(g, name)) < 0)
        return hw_yaml_fail(part[1], err, "there is no feature %s%s", name,
                            hw_grammar_hint(g, name, g->features, feature_name, g));
    for (int i = 0; i < 2; i++)
        if (!(g->held[i]->features >> g->held_feature & 1))
            return hw_yaml_fail(part[0]->items[i], err, "%s has no %s to agree in", g->held[i]->name, name);
    return hw_yaml_number(part[2], "held_out.share", 0, 1, &g->held_share, err) &&
           hw_yaml_number(part[3], "held_out.test", 0, 1, &g->held_test, err);
}

/* annotate: {en: Number Tense, fr: Number Gender Tense} */
static bool read_annotate(hw_grammar *g, const hw_yaml *node, hw_error *err)
{
    if (!node) return true;
    if (!hw_grammar_is_mapping(node, "annotate", err) || !hw_yaml_known_keys(node, g->side, HW_SIDES, err))
        return false;
    for (int s = 0; s < HW_SIDES; s++) {
        const hw_yaml *list = hw_yaml_get(node, g->side[s]);
        const char *text;
        if (!list) continue;
        if (!hw_yaml_string(list, "annotate", &text, err) ||
            !hw_grammar_features(g, list, text, (int)strlen(text), &g->annotated[s], err))
            return false;
    }
    return true;
}

/* avoid: {en: ['" "']} */
static bool read_avoid(hw_grammar *g, const hw_yaml *node, hw_error *err)
{
    if (!node) return true;
    if (!hw_grammar_is_mapping(node, "avoid", err) || !hw_yaml_known_keys(node, g->side, HW_SIDES, err)) return false;
    for (int s = 0; s < HW_SIDES; s++) {
        const hw_yaml *list = hw_yaml_get(node, g->side[s]);
        if (list && !read_list(g, list, "avoid", true, &g->avoided[s], &g->avoid[s], err)) return false;
    }
    return true;
}

/* Keys that stand beside a side's in lexicon and rules, and suffixes of other files of the corpus. */
static bool is_taken(const char *name)
{
    static const char *const taken[] = {"is",   "weight", "pos",   "forms", "entries", "syllables",
                                        "both", "align",  "match", "count", "groups",  "gz"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (!strcmp(name, taken[i])) return true;
    return false;
}

static bool read_sides(hw_grammar *g, const hw_yaml *node, hw_error *err)
{
    if (node->kind != HW_YAML_SEQUENCE || node->count != HW_SIDES)
        return hw_yaml_fail(node, err, "sides: expected two, source and target, as in [en, fr]");
    for (int s = 0; s < HW_SIDES; s++) {
        if (!hw_yaml_string(node->items[s], "a side", &g->side[s], err) || !hw_grammar_check_name(node->items[s], err))
            return false;
        if (is_taken(g->side[s]))
            return hw_yaml_fail(node->items[s], err,
                                "a side cannot be called %s, as a key of grammars or a file of a corpus is; take "
                                "another name, such as %s_",
                                g->side[s], g->side[s]);
    }
    if (!strcmp(g->side[0], g->side[1])) return hw_yaml_fail(node->items[1], err, "the two sides need different names");
    return true;
}

static bool read_grammar(hw_grammar *g, const hw_yaml *root, hw_error *err)
{
    static const char *const keys[] = {"sides",   "corpus",  "features", "lexicon",  "rules",    "start", "pinned",
                                       "rewrite", "classes", "held_out", "annotate", "distinct", "avoid"};
    static const char *const needed[] = {"sides", "lexicon", "rules", "start"};
    if (root->kind != HW_YAML_MAPPING)
        return hw_yaml_fail(root, err, "a grammar is a mapping with sides, features, lexicon, rules, start ...");
    if (!hw_yaml_known_keys(root, keys, (int)(sizeof keys / sizeof *keys), err)) return false;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!hw_yaml_get(root, needed[i])) return hw_yaml_fail(root, err, "the grammar has no `%s:`", needed[i]);
    return read_sides(g, hw_yaml_get(root, "sides"), err) && read_features(g, hw_yaml_get(root, "features"), err) &&
           hw_grammar_read_lexicon(g, hw_yaml_get(root, "lexicon"), hw_yaml_get(root, "rules"), err) &&
           hw_grammar_read_rules(g, root, err) && read_rewrites(g, root, err) &&
           read_corpus(g, hw_yaml_get(root, "corpus"), err) && read_held_out(g, hw_yaml_get(root, "held_out"), err) &&
           read_annotate(g, hw_yaml_get(root, "annotate"), err) &&
           read_distinct(g, hw_yaml_get(root, "distinct"), err) && read_avoid(g, hw_yaml_get(root, "avoid"), err) &&
           hw_grammar_check(g, err);
}

hw_grammar *hw_grammar_load(const char *path, hw_error *err)
{
    hw_arena *arena = hw_arena_new(1 << 20);
    hw_grammar *g = hw_arena_calloc(arena, 1, sizeof *g);
    *g = (hw_grammar){.arena = arena, .pairs = 1000, .seed = 1, .min_length = 1, .max_length = 1000};
    g->path = hw_arena_string(arena, "%s", path);
    const hw_yaml *root = hw_yaml_load(arena, g->path, err);
    if (root && read_grammar(g, root, err)) return g;
    hw_arena_free(arena);
    return NULL;
}

void hw_grammar_free(hw_grammar *grammar)
{
    if (grammar) hw_arena_free(grammar->arena);
}
