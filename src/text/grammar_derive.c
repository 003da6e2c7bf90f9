/* Draws one derivation of a grammar: a tree of rules and words whose features agree.
 *
 * The tree grows from the top, parts from left to right. A feature of a node is a variable; a rule hands its own
 * variables to the parts that agree, so what one word says of gender or number holds for all of them. Rules and words
 * are drawn by weight among those that fit what is known so far; variables that nothing decided are drawn at the end.
 * Where nothing fits the whole derivation is given up, and the caller draws anew. */
#include "grammar.h"

#include <string.h>

enum { DEEPEST = 100, MOST_LEAVES = 512, MOST_VARIABLES = 8192 };

static bool give_up(hw_derivation *d, const char *reason)
{
    d->reason = reason;
    return false;
}

static int new_variable(hw_derivation *d, int feature, int value)
{
    d->variable[d->variables] = (hw_variable){feature, value};
    return d->variables++;
}

int hw_node_value(const hw_derivation *d, const hw_node *node, int feature)
{
    return node->variable[feature] < 0 ? -1 : d->variable[node->variable[feature]].value;
}

static bool fits(const hw_derivation *d, const hw_node *node, const hw_bundle *values)
{
    for (int f = 0; f < HW_FEATURES; f++) {
        int known = hw_node_value(d, node, f);
        if (known >= 0 && values->value[f] >= 0 && known != values->value[f]) return false;
    }
    return true;
}

static void bind(hw_derivation *d, const hw_node *node, const hw_bundle *values)
{
    for (int f = 0; f < HW_FEATURES; f++)
        if (node->variable[f] >= 0 && values->value[f] >= 0) d->variable[node->variable[f]].value = values->value[f];
}

/* The index drawn by weight, or -1 where all weights are 0. */
static int draw(hw_random *random, int count, double (*weight)(int i, const void *argument), const void *argument)
{
    double total = 0;
    for (int i = 0; i < count; i++) total += weight(i, argument);
    double left = hw_random_uniform(random) * total;
    int last = -1;
    for (int i = 0; i < count; i++) {
        double w = weight(i, argument);
        if (w <= 0) continue;
        last = i;
        if ((left -= w) < 0) break;
    }
    return last;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

typedef struct choice {
    const hw_derivation *d;
    const hw_node *node;
} choice;

static double entry_weight(int i, const void *argument)
{
    const choice *c = argument;
    const hw_entry *entry = &c->node->symbol->entry[i];
    if (c->node->entry && c->node->entry != entry) return 0;
    for (int k = 0; k < c->d->leaves && c->node->symbol->distinct; k++)
        if (c->d->leaf[k]->entry == entry) return 0;
    return fits(c->d, c->node, &entry->is) ? entry->weight : 0;
}

static double piece_weight(int i, const void *argument) { return ((const hw_symbol *)argument)->piece_weights[i]; }

/* Syllables at random, but none twice in succession. */
static void spell(hw_derivation *d, hw_random *random, hw_node *node)
{
    const hw_symbol *symbol = node->symbol;
    node->pieces = symbol->pieces[draw(random, symbol->lengths, piece_weight, symbol)];
    for (int i = 0, last = -1; i < node->pieces; i++) {
        bool any = last < 0 || symbol->syllables == 1;
        int syllable = (int)hw_random_below(random, (uint64_t)(any ? symbol->syllables : symbol->syllables - 1));
        syllable += !any && syllable >= last;
        node->piece[i] =
            hw_arena_string(d->arena, "%s%s", symbol->syllable[syllable], i + 1 < node->pieces ? symbol->joiner : "");
        last = syllable;
    }
}

static bool expand_word(hw_derivation *d, hw_random *random, hw_node *node)
{
    int i = draw(random, node->symbol->entries, entry_weight, &(choice){d, node});
    if (i < 0) return give_up(d, hw_arena_string(d->arena, "no %s has the features asked for", node->symbol->name));
    if (d->leaves == MOST_LEAVES) return give_up(d, "it grew beyond all lengths");
    node->entry = &node->symbol->entry[i];
    bind(d, node, &node->entry->is);
    if (node->symbol->syllables) spell(d, random, node);
    d->leaf[d->leaves++] = node;
    return true;
}

/* ---- phrases ----------------------------------------------------------------------------------------------------- */

static double rule_weight(int i, const void *argument)
{
    const choice *c = argument;
    const hw_rule *rule = &c->node->symbol->rule[i];
    return fits(c->d, c->node, &rule->shared) ? rule->weight : 0;
}

static hw_node *new_node(hw_derivation *d, const hw_symbol *symbol)
{
    hw_node *node = hw_arena_calloc(d->arena, 1, sizeof *node);
    node->symbol = symbol;
    memset(node->variable, -1, sizeof node->variable);
    return node;
}

/* The part's node; own: the variables of the rule, made where a part first needs them. */
static hw_node *new_child(hw_derivation *d, const hw_rule *rule, const hw_part *part, int own[HW_FEATURES])
{
    hw_node *child = new_node(d, part->symbol);
    child->entry = part->entry;
    for (int f = 0; f < HW_FEATURES; f++) {
        if (!(part->symbol->features >> f & 1)) continue;
        if (!part->free && own[f] < 0) own[f] = new_variable(d, f, rule->shared.value[f]);
        child->variable[f] = part->free ? new_variable(d, f, part->is.value[f]) : own[f];
    }
    return child;
}

static bool expand(hw_derivation *d, hw_random *random, hw_node *node, int depth)
{
    if (node->symbol && node->symbol->word) return expand_word(d, random, node);
    if (depth == DEEPEST || d->variables > MOST_VARIABLES / 2) return give_up(d, "its phrases nested without end");
    if (node->symbol) {
        int i = draw(random, node->symbol->rules, rule_weight, &(choice){d, node});
        if (i < 0)
            return give_up(d,
                           hw_arena_string(d->arena, "no rule of %s has the features asked for", node->symbol->name));
        node->rule = &node->symbol->rule[i];
        bind(d, node, &node->rule->shared);
    }
    const hw_rule *rule = node->rule;
    if (rule->phenomenon >= 0) d->counts[rule->phenomenon]++;
    node->child = hw_arena_calloc(d->arena, (size_t)rule->parts, sizeof(hw_node *));
    int own[HW_FEATURES];
    memcpy(own, node->variable, sizeof own);
    for (int i = 0; i < rule->parts; i++) {
        const hw_part *part = &rule->part[i];
        if (part->probability < 1 && hw_random_uniform(random) >= part->probability) continue;
        node->child[i] = new_child(d, rule, part, own);
    }
    for (int i = 0; i < rule->parts; i++)
        if (node->child[i] && !expand(d, random, node->child[i], depth + 1)) return false;
    return true;
}

static double value_weight(int i, const void *argument) { return ((const hw_feature *)argument)->weights[i]; }

bool hw_derive(const hw_grammar *g, const hw_rule *pin, hw_random *random, hw_derivation *d)
{
    hw_arena_reset(d->arena);
    d->variables = d->leaves = 0;
    d->reason = NULL;
    d->variable = hw_arena_alloc(d->arena, MOST_VARIABLES * sizeof *d->variable);
    d->leaf = hw_arena_alloc(d->arena, MOST_LEAVES * sizeof *d->leaf);
    d->counts = hw_arena_calloc(d->arena, (size_t)(g->phenomena + 1), sizeof *d->counts);
    d->root = new_node(d, pin ? NULL : g->start);
    d->root->rule = pin;
    for (int f = 0; f < HW_FEATURES && !pin; f++)
        if (g->start->features >> f & 1) d->root->variable[f] = new_variable(d, f, -1);
    if (!expand(d, random, d->root, 0)) return false;
    for (int v = 0; v < d->variables; v++) {
        const hw_feature *feature = &g->feature[d->variable[v].feature];
        if (d->variable[v].value < 0) d->variable[v].value = draw(random, feature->count, value_weight, feature);
    }
    return true;
}
