/* The table of head roles: what each is called, which words it is about and where they should look.
 *
 * To add one, write a row, and a function for its targets if none here fits. Sources: Voita et al. 2019, "Analyzing
 * multi-head self-attention: specialized heads do the heavy lifting, the rest can be pruned", section 5 (positional,
 * syntactic, rare words); Clark et al. 2019, "What does BERT look at?", sections 3 and 4.2 (delimiters, broad heads);
 * Kobayashi et al. 2020 (what is parked on delimiters has small norms). Thresholds: Voita et al. ask for 90 %
 * (positional) and 10 points over the best fixed offset (syntactic); weaker tiers are named as such. */
#include <string.h>
#include <utf8proc.h>

#include "role.h"

/* ---- targets ----------------------------------------------------------------------------------------------------- */

static int one(hw_role_target *out, int32_t column)
{
    *out = (hw_role_target){column, 1};
    return 1;
}

static int32_t first_key(const hw_role_view *v) { return hw_place_at(v->test->place)->first_key; }

/* Is a word a piece of the same spelled word as its neighbour (offset 0: any)? */
static bool spelled_with(const hw_sentence *s, int32_t q, int32_t offset)
{
    bool before = q > 0 && s->words[q - 1].goes_on, after = s->words[q].goes_on && q + 1 < s->count;
    return offset < 0 ? before : offset > 0 ? after : before || after;
}

static int at_offset(const hw_role_view *v, int32_t q, hw_role_target *out)
{
    int32_t offset = v->test->role->offset, target = q + offset;
    if (target < 0 || target >= v->key->count) return -1;
    if (v->test->pieces && !spelled_with(v->query, q, offset)) return -1;
    return one(out, first_key(v) + target);
}

static bool is_bracket(const char *form)
{
    int bytes;
    utf8proc_category_t category = utf8proc_category(hw_utf8_decode(form, strlen(form), &bytes));
    return category == UTF8PROC_CATEGORY_PS || category == UTF8PROC_CATEGORY_PE;
}

static int opening_mark(const hw_role_view *v, int32_t q, hw_role_target *out)
{
    const hw_conllu_word *word = &v->tree[q];
    if (word->match < 0 || word->match >= q || is_bracket(word->form) != v->test->role->bracket) return -1;
    return one(out, first_key(v) + word->match);
}

/* nsubj:pass is an nsubj too. */
static bool is_relation(const char *has, const char *wanted)
{
    size_t size = strlen(wanted);
    return !strncmp(has, wanted, size) && (has[size] == 0 || has[size] == ':');
}

static int related(const hw_role_view *v, int32_t q, hw_role_target *out)
{
    const hw_role *role = v->test->role;
    if (role->inverse)
        return v->tree[q].head >= 0 && is_relation(v->tree[q].relation, role->relation)
                   ? one(out, first_key(v) + v->tree[q].head)
                   : -1;
    int count = 0;
    for (int32_t i = 0; i < v->key->count; i++)
        if (v->tree[i].head == q && is_relation(v->tree[i].relation, role->relation))
            count += one(out + count, first_key(v) + i);
    return count ? count : -1;
}

/* The words that a query may see. */
static int32_t visible_words(const hw_role_view *v, int32_t q)
{
    int32_t words = v->visible[q] - first_key(v);
    return words < v->key->count ? words : v->key->count;
}

static int rarest(const hw_role_view *v, int32_t q, hw_role_target *out)
{
    int32_t words = visible_words(v, q), rank = 0;
    int count = 0;
    for (int32_t i = 0; i < words; i++)
        if (v->key->words[i].rank > rank) rank = v->key->words[i].rank;
    for (int32_t i = 0; i < words; i++)
        if (v->key->words[i].rank == rank) count += one(out + count, first_key(v) + i);
    return count < words ? count : -1;
}

static int first_of_all(const hw_role_view *v, int32_t q, hw_role_target *out)
{
    (void)v, (void)q;
    return one(out, 0);
}

static int last_of_all(const hw_role_view *v, int32_t q, hw_role_target *out)
{
    (void)q;
    return one(out, v->keys - 1);
}

static int punctuation(const hw_role_view *v, int32_t q, hw_role_target *out)
{
    int32_t words = visible_words(v, q);
    int count = 0;
    for (int32_t i = 0; i < words; i++)
        if (v->key->words[i].punctuation) count += one(out + count, first_key(v) + i);
    return count && count < words ? count : -1;
}

/* |A & S| + |A & P| of the one link that a target word gets: a sure link is a possible one too. */
static int linked(const hw_role_view *v, int32_t q, hw_role_target *out)
{
    int count = 0;
    for (int64_t i = 0; i < v->link_count; i++)
        if (v->links[i].target == q) out[count++] = (hw_role_target){v->links[i].source, v->links[i].sure ? 2 : 1};
    return count;
}

/* Its share of |A| + |S|. */
static float link_worth(const hw_role_view *v, int32_t q)
{
    float worth = 1;
    for (int64_t i = 0; i < v->link_count; i++) worth += v->links[i].target == q && v->links[i].sure;
    return worth;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define VOITA "Voita et al. 2019, section 5"
#define CLARK "Clark et al. 2019, section 3"

#define SELF (HW_IN_ENCODER | HW_IN_DECODER)
#define EVERYWHERE (SELF | HW_IN_CROSS)

#define POSITIONAL(label, where, what, by)                                                                             \
    {                                                                                                                  \
        .name = label, .counts = what, .source = VOITA, .kinds = where, .both_steps = true, .pieces = true,            \
        .threshold = 0.5, .margin = 0.1, .targets = at_offset, .offset = by                                            \
    }
/* What exceeds a fixed offset by little may be that offset with exceptions: where the data put most targets at one
 * place, they cannot tell grammar from position, and a name of grammar would be a fault of theirs. An alignment is what
 * it is by whatever means it comes about, so aligned has no ceiling. */
#define OVER_OFFSET                                                                                                    \
    .both_steps = true, .gold = HW_GOLD_TREE, .baseline = HW_BASELINE_OFFSET, .margin = 0.1, .ceiling = 0.6
#define MARK(label, what, is)                                                                                          \
    {                                                                                                                  \
        .name = label, .counts = what, .source = "ours", .kinds = SELF, OVER_OFFSET, .targets = opening_mark,          \
        .bracket = is                                                                                                  \
    }
#define RELATION(label, of, what, back)                                                                                \
    {                                                                                                                  \
        .name = label, .counts = what, .source = VOITA, .kinds = SELF, OVER_OFFSET, .targets = related,                \
        .relation = of, .inverse = back                                                                                \
    }
#define ANYWHERE(label, where, what, by, aims, keeps_mass)                                                             \
    {                                                                                                                  \
        .name = label, .counts = what, .source = by, .kinds = where, .threshold = 0.5, .margin = 0.1, .targets = aims, \
        .mass = keeps_mass                                                                                             \
    }

static const hw_role table[] = {
    POSITIONAL("previous", SELF, "a word to the one before it", -1),
    POSITIONAL("next", HW_IN_ENCODER, "a word to the one behind it", 1),
    POSITIONAL("self", SELF, "a word to itself", 0),
    MARK("bracket", "a closing bracket to the one that opened", true),
    MARK("quote", "a closing quotation mark to the one that opened", false),
    RELATION("amod", "amod", "a noun to an adjective of it", false),
    RELATION("amod_inv", "amod", "an adjective to its noun", true),
    RELATION("nsubj", "nsubj", "a verb to its subject", false),
    RELATION("nsubj_inv", "nsubj", "a subject to its verb", true),
    RELATION("obj", "obj", "a verb to its object", false),
    RELATION("obj_inv", "obj", "an object to its verb", true),
    RELATION("det", "det", "a noun to its determiner", false),
    RELATION("det_inv", "det", "a determiner to its noun", true),
    ANYWHERE("rare", EVERYWHERE, "any word to the rarest that it may see", VOITA, rarest, false),
    ANYWHERE("first", EVERYWHERE, "any word to the first token, in the decoder <s>", CLARK, first_of_all, true),
    ANYWHERE("last", HW_IN_ENCODER | HW_IN_CROSS, "any word to the last token, </s>", CLARK, last_of_all, true),
    ANYWHERE("punct", EVERYWHERE, "any word to a punctuation mark", CLARK, punctuation, true),
    {.name = "broad",
     .counts = "entropy, relative to the logarithm of the allowed keys",
     .source = CLARK,
     .kinds = EVERYWHERE,
     .threshold = 0.9,
     .margin = 0.02},
    {.name = "aligned",
     .counts = "a target word to the source words that gold links it to; 1 - AER",
     .source = "Och and Ney 2003",
     .kinds = HW_IN_CROSS,
     .both_steps = true,
     .gold = HW_GOLD_LINKS,
     .baseline = HW_BASELINE_DIAGONAL,
     .margin = 0.1,
     .words_only = true,
     .targets = linked,
     .worth = link_worth},
};
enum { ROLES = sizeof table / sizeof *table };

const hw_role *hw_role_at(int i) { return i >= 0 && i < ROLES ? &table[i] : NULL; }
const char *hw_role_name(const hw_role *role) { return role->name; }

json_t *hw_role_table_json(void)
{
    static const char *const baselines[] = {[HW_BASELINE_CONTROL] = "the best untrained head",
                                            [HW_BASELINE_OFFSET] = "the best fixed offset",
                                            [HW_BASELINE_DIAGONAL] = "the diagonal"};
    json_t *list = json_array();
    for (int i = 0; i < ROLES; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:f, s:f, s:o, s:s, s:s}", "name", table[i].name, "counts",
                                        table[i].counts, "threshold", table[i].threshold, "margin", table[i].margin,
                                        "ceiling", table[i].ceiling > 0 ? json_real(table[i].ceiling) : json_null(),
                                        "baseline", baselines[table[i].baseline], "source", table[i].source));
    return list;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static bool has_gold(const hw_role *role, const hw_place *place, const hw_study_set *set)
{
    return role->gold == HW_GOLD_NONE ||
           (role->gold == HW_GOLD_LINKS ? set->links != NULL : set->trees[place->query_side] != NULL);
}

bool hw_role_is_for(const hw_role *role, const hw_place *place)
{
    bool predicted = place->step && !strcmp(place->step, "predicted");
    return role->kinds & 1u << place->kind && (!predicted || role->both_steps);
}

const char *hw_role_lacks(const hw_role *role, const hw_place *place, const hw_config *config, const hw_study_set *set,
                          hw_arena *arena)
{
    if (has_gold(role, place, set)) return NULL;
    if (role->gold == HW_GOLD_LINKS) return "align";
    return hw_arena_string(arena, "%s.conllu",
                           place->query_side == HW_SOURCE ? config->data.source : config->data.target);
}

int hw_role_tests(const hw_study_set *selection, const hw_study_set *test, hw_arena *arena, hw_role_test **out)
{
    hw_role_test *tests = hw_arena_alloc(arena, ROLES * HW_PLACES * 2 * sizeof *tests);
    int count = 0;
    for (int p = 0; p < HW_PLACES; p++) {
        const hw_place *place = hw_place_at(p);
        for (const hw_role *role = table; role < table + ROLES; role++) {
            if (!hw_role_is_for(role, place)) continue;
            if (!has_gold(role, place, selection) || !has_gold(role, place, test)) continue;
            tests[count++] = (hw_role_test){role, p, false};
            if (role->pieces) tests[count++] = (hw_role_test){role, p, true};
        }
    }
    *out = tests;
    return count;
}
