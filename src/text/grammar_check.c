/* Faults of a grammar that show only in the whole: a phrase that never ends, names that nothing uses, features that
 * cannot agree, words without a form that they may be asked for.
 *
 * Checks are static, so a faulty grammar fails when it is read and not at the ten-thousandth sentence. What they let
 * pass (features that contradict only several rules apart) is met when drawing: that derivation is dropped and drawn
 * anew. */
#include "grammar.h"

#include <string.h>

/* ---- does it end, is it used ------------------------------------------------------------------------------------- */

static bool rule_ends(const hw_rule *rule, const hw_grammar *g, const bool *ends)
{
    for (int i = 0; i < rule->parts; i++)
        if (rule->part[i].probability == 1 && !ends[rule->part[i].symbol - g->symbol]) return false;
    return true;
}

/* Marks, round by round, the phrases that can be rewritten into words alone. */
static bool check_ends(const hw_grammar *g, hw_error *err)
{
    bool *ends = hw_arena_calloc(g->arena, (size_t)g->symbols, sizeof *ends);
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < g->symbols; i++) {
            const hw_symbol *symbol = &g->symbol[i];
            bool can = symbol->word;
            for (int r = 0; r < symbol->rules && !can; r++) can = rule_ends(&symbol->rule[r], g, ends);
            changed |= can && !ends[i];
            ends[i] |= can;
        }
    }
    for (int i = 0; i < g->symbols; i++)
        if (!ends[i])
            return hw_yaml_fail(
                g->symbol[i].at, err,
                "%s never ends: each of its rules leads back to a phrase that never ends; give it one that "
                "leads to words",
                g->symbol[i].name);
    return true;
}

static bool check_used(const hw_grammar *g, hw_error *err)
{
    for (int i = 0; i < g->symbols; i++)
        if (!g->symbol[i].used)
            return hw_yaml_fail(g->symbol[i].at, err, "no rule uses %s; use it or remove it", g->symbol[i].name);
    return true;
}

/* ---- features that cannot agree ---------------------------------------------------------------------------------- */

static const char *value_text(const hw_grammar *g, const hw_bundle *bundle, int feature)
{
    return g->feature[feature].values[(int)bundle->value[feature]];
}

/* Puts the values that all members of a rule must share into rule->shared; false at the first contradiction. */
static bool unify_rule(const hw_grammar *g, hw_rule *rule, hw_error *err)
{
    hw_bundle *all = &rule->shared;
    *all = rule->is;
    for (int i = 0; i < rule->parts; i++) {
        const hw_part *part = &rule->part[i];
        hw_bundle own = part->is;
        if (part->entry && !hw_bundle_unify(&own, &part->entry->is))
            return hw_yaml_fail(rule->at, err, "%s: '%s' cannot be what the brackets say", part->label,
                                part->entry->name);
        if (part->free) continue;
        for (int f = 0; f < g->features; f++)
            if (all->value[f] >= 0 && own.value[f] >= 0 && all->value[f] != own.value[f])
                return hw_yaml_fail(rule->at, err,
                                    "%s is %s, but the rule's %s is %s; mark it [free] if it need not agree",
                                    part->label, value_text(g, &own, f), g->feature[f].name, value_text(g, all, f));
        hw_bundle_unify(all, &own);
    }
    return true;
}

/* Is there a word, or a rule by its own values, that fits these? */
static bool can_be(const hw_symbol *symbol, const hw_entry *only, const hw_bundle *values)
{
    for (int e = 0; e < symbol->entries; e++) {
        hw_bundle both = *values;
        if ((!only || only == &symbol->entry[e]) && hw_bundle_unify(&both, &symbol->entry[e].is)) return true;
    }
    for (int r = 0; r < symbol->rules; r++) {
        hw_bundle both = *values;
        if (hw_bundle_unify(&both, &symbol->rule[r].is)) return true;
    }
    return false;
}

static bool check_rule(const hw_grammar *g, hw_rule *rule, hw_error *err)
{
    if (!unify_rule(g, rule, err)) return false;
    for (int i = 0; i < rule->parts; i++) {
        const hw_part *part = &rule->part[i];
        hw_bundle values = part->is;
        for (int f = 0; f < g->features && !part->free; f++)
            if (part->symbol->features >> f & 1) values.value[f] = rule->shared.value[f];
        if (can_be(part->symbol, part->entry, &values)) continue;
        char text[256] = "";
        for (int f = 0; f < g->features; f++)
            if (values.value[f] >= 0)
                snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? " " : "",
                         value_text(g, &values, f));
        return hw_yaml_fail(rule->at, err, "%s: no %s of %s is %s, which the rule asks for", part->label,
                            part->symbol->word ? "word" : "rule", part->symbol->name, text);
    }
    return true;
}

static bool check_rules(const hw_grammar *g, hw_error *err)
{
    for (int i = 0; i < g->symbols; i++)
        for (int r = 0; r < g->symbol[i].rules; r++)
            if (!check_rule(g, &g->symbol[i].rule[r], err)) return false;
    for (int r = 0; r < g->pinned; r++)
        if (!check_rule(g, &g->pin[r], err)) return false;
    return true;
}

/* ---- forms ------------------------------------------------------------------------------------------------------- */

enum { MOST_COMBINATIONS = 1000000 };

/* Goes through every combination of the features that this entry's forms speak of, within what the entry is. */
static bool check_forms(const hw_grammar *g, const hw_symbol *symbol, const hw_entry *entry, int side, hw_error *err)
{
    uint32_t asked = 0;
    for (int i = 0; i < entry->forms[side]; i++)
        for (int f = 0; f < g->features; f++)
            if (entry->form[side][i].when.value[f] >= 0) asked |= 1u << f;
    hw_bundle values = entry->is;
    int open[HW_FEATURES], count = 0;
    double combinations = 1;
    for (int f = 0; f < g->features; f++)
        if ((asked >> f & 1) && values.value[f] < 0) {
            open[count++] = f;
            values.value[f] = 0;
            combinations *= g->feature[f].count;
        }
    if (combinations > MOST_COMBINATIONS)
        return hw_yaml_fail(entry->at, err,
                            "lexicon.%s: the %s forms of '%s' speak of %d features with %.3g combinations of values, "
                            "of which %d at most are looked at; let them speak of fewer, or say with `is:` what it is",
                            symbol->name, g->side[side], entry->name, count, combinations, (int)MOST_COMBINATIONS);
    for (;;) {
        bool found = false;
        for (int i = 0; i < entry->forms[side] && !found; i++) {
            hw_bundle both = values;
            found = hw_bundle_unify(&both, &entry->form[side][i].when);
        }
        if (!found) {
            char text[256] = "";
            for (int i = 0; i < count; i++)
                snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? "." : "",
                         value_text(g, &values, open[i]));
            return hw_yaml_fail(entry->at, err,
                                "lexicon.%s: '%s' has no %s form for %s; add it, or say with `is:` what it is",
                                symbol->name, entry->name, g->side[side], text);
        }
        int k = 0;
        while (k < count && ++values.value[open[k]] == g->feature[open[k]].count) values.value[open[k++]] = 0;
        if (k == count) return true;
    }
}

static bool check_lexicon(const hw_grammar *g, hw_error *err)
{
    for (int i = 0; i < g->symbols; i++)
        for (int e = 0; e < g->symbol[i].entries; e++)
            for (int s = 0; s < HW_SIDES; s++)
                if (g->symbol[i].entry[e].forms[s] && !check_forms(g, &g->symbol[i], &g->symbol[i].entry[e], s, err))
                    return false;
    return true;
}

bool hw_grammar_check(hw_grammar *g, hw_error *err)
{
    return check_lexicon(g, err) && check_rules(g, err) && check_ends(g, err) && check_used(g, err);
}
