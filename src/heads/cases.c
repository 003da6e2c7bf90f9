/* The cases of a pair: for every test of a place, which queries count and which keys they should attend to. They come
 * from words and gold alone and are the same for every head. Left out: queries without a target in the sentence, and
 * targets that a causal mask hides. */
#include <string.h>

#include "role.h"

/* Cases while they are listed. */
typedef struct listing {
    const hw_role_view *view;
    hw_arena *arena;
    hw_cases *cases;
    int32_t used, room; /* of the targets */
} listing;

/* The end of the targets, with room for as many as one query may have. */
static hw_role_target *next_targets(listing *l)
{
    int32_t most = l->view->keys + (int32_t)l->view->link_count;
    if (l->used + most > l->room) {
        l->room = 2 * (l->used + most);
        hw_role_target *more = hw_arena_alloc(l->arena, (size_t)l->room * sizeof *more);
        if (l->used) memcpy(more, l->cases->targets, (size_t)l->used * sizeof *more);
        l->cases->targets = more;
    }
    return l->cases->targets + l->used;
}

static void add_case(listing *l, int32_t q)
{
    const hw_role_view *v = l->view;
    const hw_role *role = v->test->role;
    hw_role_target *targets = next_targets(l);
    int count = role->targets ? role->targets(v, q, targets) : 0, kept = 0;
    if (count < 0) return;
    for (int i = 0; i < count; i++)
        if (targets[i].column < v->visible[q]) targets[kept++] = targets[i];
    if (role->targets && !role->worth && !kept) return;
    float worth = role->worth ? role->worth(v, q) : 1;
    l->cases->items[l->cases->count++] = (hw_role_case){.query = q, .first = l->used, .count = kept, .worth = worth};
    l->used += kept;
}

static hw_cases cases_of(const hw_role_view *view, hw_arena *arena)
{
    hw_cases cases = {.items = hw_arena_alloc(arena, ((size_t)view->query->count + 1) * sizeof *cases.items)};
    listing l = {.view = view, .arena = arena, .cases = &cases};
    for (int32_t q = 0; q < view->query->count; q++) add_case(&l, q);
    return cases;
}

static hw_role_view view_of(const hw_evidence *e, const hw_role_test *test, int64_t pair, hw_arena *arena)
{
    const hw_place *place = hw_place_at(test->place);
    const hw_study_pair *p = &e->set->pairs[pair];
    const hw_sentence *sides = test->pieces ? p->tokens : p->words;
    hw_word_attention shape = hw_word_attention_new(place, &sides[place->query_side], &sides[place->key_side], arena);
    hw_role_view v = {.test = test,
                      .query = shape.query,
                      .key = shape.key,
                      .keys = shape.keys,
                      .special = shape.special,
                      .visible = shape.visible};
    const hw_conllu *tree = e->set->trees[place->query_side];
    if (test->role->gold == HW_GOLD_TREE) v.tree = tree->words + tree->start[p->line];
    if (test->role->gold == HW_GOLD_LINKS) {
        const hw_alignments *links = e->set->links;
        v.links = links->links + links->start[p->line];
        v.link_count = links->start[p->line + 1] - links->start[p->line];
    }
    return v;
}

hw_role_cases *hw_role_cases_new(const hw_evidence *e, int place, int64_t pair, hw_arena *arena)
{
    hw_role_cases *all = hw_arena_calloc(arena, 1, sizeof *all);
    hw_cases *of = hw_arena_calloc(arena, (size_t)e->count, sizeof *of);
    for (int t = 0; t < e->count; t++) {
        if (e->tests[t].place != place) continue;
        hw_role_view view = view_of(e, &e->tests[t], pair, arena);
        of[t] = cases_of(&view, arena);
    }
    size_t queries = (size_t)e->set->pairs[pair].tokens[hw_place_at(place)->query_side].count;
    for (int i = 0; i < HW_ROLE_WAYS; i++) {
        all->best[i] = hw_arena_alloc(arena, queries * sizeof *all->best[i] + 1);
        all->ties[i] = hw_arena_alloc(arena, queries * sizeof *all->ties[i] + 1);
    }
    all->place = place;
    all->pair = pair;
    all->of = of;
    return all;
}

float hw_case_credit(const hw_cases *cases, const hw_role_case *c, int32_t column)
{
    for (int32_t i = c->first; i < c->first + c->count; i++)
        if (cases->targets[i].column == column) return cases->targets[i].credit;
    return 0;
}
