/* What the studies gather from a network, against attention that is taken out of it here and joined to words the plain
 * way: statistics, evidence for roles, links; and untrained copies. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "support_files.h"
#include "support_model.h"

#include <headwise/heads.h>

enum { PAIRS = 4, HEADS = 2, LAYERS = 2 };

#define TREES                                                                                                          \
    "1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tborati\t_\tNOUN\t_\t_\t0\troot\t_\t_\n3\t,\t_\tPUNCT\t_\t_\t2\tpunct\t_\t_"  \
    "\n\n"                                                                                                             \
    "1\tb\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"                                                                           \
    "1\t(\t_\tPUNCT\t_\t_\t2\tpunct\t_\tMatch=3\n2\tboti\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"                              \
    "3\t)\t_\tPUNCT\t_\t_\t2\tpunct\t_\tMatch=1\n4\tbo@@\t_\tX\t_\t_\t2\tobj\t_\t_\n5\tti\t_\tX\t_\t_\t4\tflat\t_\t_"  \
    "\n\n"                                                                                                             \
    "1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tb\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"

static hw_arena *arena;
static hw_bundle *bundle;
static hw_study_set set;

static void begin(void)
{
    hw_error err = {""};
    scratch_begin();
    arena = scratch_arena();
    scratch_text("x.en", "a borati ,\nb\n( boti ) bo@@ ti\na b\n");
    scratch_text("x.fr", "boti , a b\na b\nborati\n( b )\n");
    scratch_text("x.align", "0-2 1-0 2-1 1p3\n0-1\n1-0\n0-0 1p1\n");
    scratch_text("x.en.conllu", TREES);
    hw_config *config = tiny_config(arena, "data.source=en;data.target=fr;text.shared_vocabulary=true");
    bundle = tiny_bundle(arena, config, "a , b bo@@ ra@@ ti ( )", NULL);
    const char *directory = hw_arena_string(arena, "%s", scratch_path("."));
    ck_assert_msg(hw_study_set_load(arena, bundle, directory, "x", &set, &err), "%s", err.message);
    ck_assert_int_eq(set.count, PAIRS);
}

static void end(void)
{
    hw_bundle_free(bundle);
    scratch_end();
}

/* ---- attention, the plain way ------------------------------------------------------------------------------------ */

/* All attention of one pair: [attentions] -> [HEADS][rows][cols], and [HEADS][cols] norms. */
typedef struct taken {
    int64_t rows[3 * LAYERS], cols[3 * LAYERS];
    double *weights[3 * LAYERS];
    hw_real *norms[3 * LAYERS];
} taken;

typedef struct taking {
    const hw_value_norms *norms;
    taken *pairs;
} taking;

static double *doubles(const hw_real *from, int64_t count)
{
    double *to = hw_arena_alloc(arena, (size_t)count * sizeof *to);
    for (int64_t i = 0; i < count; i++) to[i] = (double)from[i];
    return to;
}

static void take(int i, const hw_visit *v, void *argument)
{
    const taking *t = argument;
    (void)i;
    for (int a = 0; a < 3 * LAYERS; a++) {
        const hw_recorded *r = &v->attentions[a];
        const hw_real *at = r->weights->data;
        for (int64_t b = 0; b < v->batch->sentences; b++) {
            taken *pair = &t->pairs[v->batch->lines[b]];
            pair->rows[a] = r->queries.length[b];
            pair->cols[a] = r->keys.length[b];
            pair->weights[a] = doubles(at, HEADS * pair->rows[a] * pair->cols[a]);
            pair->norms[a] = hw_arena_alloc(arena, (size_t)(HEADS * pair->cols[a]) * sizeof(hw_real));
            hw_value_norms_of(t->norms, a, r, b, pair->norms[a]);
            at += HEADS * pair->rows[a] * pair->cols[a];
        }
    }
}

static taken *take_all(void)
{
    taken *pairs = hw_arena_calloc(arena, PAIRS, sizeof *pairs);
    hw_value_norms *norms = hw_value_norms_new(bundle->network);
    hw_runner *runner = hw_runner_new(bundle->network);
    hw_threads_set(1); /* so that the visitor may use the arena */
    hw_study_visit(&set, runner, &(hw_visit_options){.weights = true}, take, &(taking){norms, pairs});
    hw_threads_set(0);
    hw_runner_free(runner);
    hw_value_norms_free(norms);
    return pairs;
}

/* One head's weights (times norms) between words at a place, before any scaling. */
static hw_word_attention join(const taken *pair, int attention, int head, const hw_place *place,
                              const hw_sentence *query, const hw_sentence *key, bool norms)
{
    hw_word_attention a = hw_word_attention_new(place, query, key, arena);
    int64_t cols = pair->cols[attention];
    hw_real *out = hw_arena_calloc(arena, (size_t)(a.queries * a.keys), sizeof *out);
    for (int32_t q = 0; q < a.queries; q++)
        for (int64_t c = 0; c < cols; c++) {
            int32_t column = a.special;
            for (int32_t k = 0; k < key->count; k++) {
                int64_t first = place->first_key + key->words[k].first;
                if (c >= first && c < first + key->words[k].count) column = place->first_key + k;
            }
            for (int32_t t = 0; t < query->words[q].count; t++) {
                int64_t row = query->words[q].first + t + place->row;
                double w = pair->weights[attention][(head * pair->rows[attention] + row) * cols + c];
                if (norms) w *= (double)pair->norms[attention][head * cols + c];
                out[q * a.keys + column] += (hw_real)(w / query->words[q].count);
            }
        }
    a.weights = out;
    a.stride = a.keys;
    return a;
}

static void scale_rows(hw_word_attention *a)
{
    hw_real *weights = (hw_real *)a->weights;
    for (int32_t q = 0; q < a->queries; q++) {
        double sum = 0;
        for (int32_t k = 0; k < a->keys; k++) sum += (double)weights[q * a->stride + k];
        for (int32_t k = 0; k < a->keys; k++)
            weights[q * a->stride + k] = (hw_real)((double)weights[q * a->stride + k] / sum);
    }
}

static int attention_of(hw_attention_kind kind, int layer)
{
    return kind == HW_ENCODER_SELF ? layer : LAYERS + 2 * layer + (kind == HW_CROSS);
}

/* ---- statistics -------------------------------------------------------------------------------------------------- */

/* Pieces that go on belong to the word that the next one is of; such a word is punctuation where all of it is. */
static hw_sentence whole_words(const hw_sentence *s)
{
    hw_study_word *words = hw_arena_copy(arena, s->words, ((size_t)s->count + 1) * sizeof *words);
    hw_sentence out = {.ids = s->ids, .words = words, .count = s->count};
    for (int32_t w = s->count - 1; w > 0; w--) {
        if (!words[w - 1].goes_on) continue;
        words[w - 1].count += words[w].count;
        words[w - 1].punctuation = words[w - 1].punctuation && words[w].punctuation;
        memmove(words + w, words + w + 1, (size_t)(out.count - w - 1) * sizeof *words);
        out.count--;
    }
    return out;
}

START_TEST(statistics)
{
    hw_error err = {""};
    const taken *pairs = take_all();
    hw_study_stream *stream = hw_study_stream_open(bundle, set.directory, "x", &err);
    const hw_stats *stats = hw_stats_study(bundle, stream, NULL, NULL, arena, &err);
    ck_assert_msg(stats != NULL, "%s", err.message);
    hw_study_stream_close(stream);
    ck_assert_int_eq(stats->count, (1 + 2 + 2) * LAYERS * HEADS * 4);
    for (int i = 0; i < stats->count; i++) {
        const hw_head_stats *x = &stats->items[i];
        const hw_place *place = hw_place_at(x->place);
        hw_stats_sums want = {0};
        for (int p = 0; p < PAIRS; p++) {
            const hw_sentence words[2] = {whole_words(&set.pairs[p].words[0]), whole_words(&set.pairs[p].words[1])};
            const hw_sentence *units = x->by_words ? words : set.pairs[p].tokens;
            hw_word_attention a = join(&pairs[p], x->head.attention, x->head.head, place, &units[place->query_side],
                                       &units[place->key_side], x->norms);
            for (int32_t k = 0; k < a.queries * a.keys && x->norms; k++) a.arriving += (double)a.weights[k];
            if (x->norms) scale_rows(&a);
            hw_stats_add(&want, &a);
        }
        const double *got = (const double *)&x->sums, *wanted = (const double *)&want;
        for (size_t k = 0; k < sizeof want / sizeof *got; k++)
            ck_assert_msg(fabs(got[k] - wanted[k]) <= 2e-5 * (1 + wanted[k]), "%s, %s, %s, figure %zu: %g, want %g",
                          x->head.name, x->by_words ? "words" : "tokens", x->norms ? "norms" : "weights", k, got[k],
                          wanted[k]);
    }
}
END_TEST

/* ---- evidence ---------------------------------------------------------------------------------------------------- */

START_TEST(evidence)
{
    const taken *pairs = take_all();
    hw_role_test *tests;
    int count = hw_role_tests(&set, &set, arena, &tests), heads[] = {LAYERS * HEADS, LAYERS * HEADS, LAYERS * HEADS};
    hw_evidence *got = hw_evidence_new(tests, count, &set, heads, NULL, arena);
    hw_evidence *want = hw_evidence_new(tests, count, &set, heads, NULL, arena);
    hw_runner *runner = hw_runner_new(bundle->network);
    hw_evidence_collect(got, runner, bundle->network, true);
    hw_runner_free(runner);
    for (int p = 0; p < PAIRS; p++)
        for (int at = 0; at < HW_PLACES; at++) {
            const hw_place *place = hw_place_at(at);
            const hw_sentence *words = set.pairs[p].words, *tokens = set.pairs[p].tokens;
            int query = place->query_side, key = place->key_side;
            hw_role_cases *cases = hw_role_cases_new(want, at, p, arena);
            for (int h = 0; h < LAYERS * HEADS; h++) {
                int a = attention_of(place->kind, h / HEADS), head = h % HEADS;
                hw_word_attention by_words = join(&pairs[p], a, head, place, &words[query], &words[key], false);
                hw_word_attention by_tokens = join(&pairs[p], a, head, place, &tokens[query], &tokens[key], false);
                hw_word_attention by_norms = join(&pairs[p], a, head, place, &words[query], &words[key], true);
                scale_rows(&by_norms);
                hw_evidence_add(want, cases, h, &by_words, &by_tokens, &by_norms);
            }
        }
    double sum = 0;
    for (int t = 0; t < count; t++)
        for (int i = 0; i < LAYERS * HEADS * PAIRS; i++) {
            sum += (double)want->got[t][i];
            ck_assert_float_eq_tol(got->got[t][i], want->got[t][i], 1e-5f);
            for (int k = 0; k < 2 && want->mass[t]; k++)
                ck_assert_float_eq_tol(got->mass[t][2 * i + k], want->mass[t][2 * i + k], 1e-5f);
        }
    ck_assert_double_gt(sum, 100);
}
END_TEST

/* ---- links ------------------------------------------------------------------------------------------------------- */

/* Adds one cross head between words to the sums. */
static void add_head(hw_word_attention *sum, const taken *pair, int layer, int head, const hw_place *place, int p,
                     bool norms)
{
    const hw_sentence *words = set.pairs[p].words;
    hw_word_attention a =
        join(pair, attention_of(HW_CROSS, layer), head, place, &words[HW_TARGET], &words[HW_SOURCE], norms);
    for (int32_t i = 0; i < a.queries * a.keys; i++) sum->own[i] += a.weights[i];
}

/* What a linking's name stands for: "decoder.1.cross.0", "decoder.1.cross.mean", "cross.mean". */
static bool is_part(const char *name, int layer, int head)
{
    if (!strcmp(name, "cross.mean")) return true;
    if (name[8] != '0' + layer) return false;
    return !strcmp(name + 16, "mean") || name[16] == '0' + head;
}

/* The weights of cross-attention without </s>, each row renormalised: what means of heads are over. */
static const taken *renormalised(const taken *pairs)
{
    taken *all = hw_arena_copy(arena, pairs, PAIRS * sizeof *all);
    for (int p = 0; p < PAIRS; p++)
        for (int layer = 0; layer < LAYERS; layer++) {
            const int a = attention_of(HW_CROSS, layer);
            const int64_t cols = all[p].cols[a], numbers = HEADS * all[p].rows[a] * cols;
            double *w = hw_arena_copy(arena, all[p].weights[a], (size_t)numbers * sizeof *w), sum;
            all[p].weights[a] = w;
            for (int64_t i = 0; i < numbers; i += cols) {
                sum = 0;
                for (int64_t k = 0; k < cols - 1; k++) sum += w[i + k];
                for (int64_t k = 0; k < cols; k++) w[i + k] = k < cols - 1 ? w[i + k] / sum : 0;
            }
        }
    return all;
}

/* Little but what head 0 finds arrives, so that means by norms are not those by weights. */
static void favour_first_heads(void)
{
    for (int layer = 0; layer < LAYERS; layer++) {
        const hw_attention_layer *cross = hw_transformer_attention(bundle->network, attention_of(HW_CROSS, layer));
        int64_t all = cross->heads * cross->head_width;
        for (int64_t i = 0; i < hw_tensor_size(cross->output_weight); i++)
            if (i % all >= cross->head_width) cross->output_weight->data[i] *= (hw_real)0.02;
    }
    hw_parameters_pack(bundle->network->parameters);
}

START_TEST(links)
{
    favour_first_heads();
    const taken *pairs = take_all(), *without_end = renormalised(pairs);
    hw_runner *runner = hw_runner_new(bundle->network);
    const hw_linkings *l = hw_link_heads(runner, bundle->network, &set, arena);
    hw_runner_free(runner);
    ck_assert_int_eq(l->count, (LAYERS * (HEADS + 1) + 1) * 4);
    ck_assert_str_eq(l->items[8].name, "decoder.0.cross.mean");
    ck_assert_str_eq(l->items[l->count - 1].name, "cross.mean");
    int differ = 0;
    for (int i = 0; i < l->count; i += 2)
        for (int64_t w = 0; w < l->start[PAIRS] && !l->items[i].is_head; w++)
            differ += l->items[i].sources[w] != l->items[i + 1].sources[w];
    ck_assert_int_gt(differ, 0);
    for (int i = 0; i < l->count; i++)
        for (int p = 0; p < PAIRS; p++) {
            const hw_linking *x = &l->items[i];
            const hw_place *place = hw_place_at(strcmp(x->step, "fed") ? HW_PLACE_CROSS_PREDICTED : HW_PLACE_CROSS_FED);
            const hw_sentence *words = set.pairs[p].words;
            hw_word_attention sum = hw_word_attention_new(place, &words[HW_TARGET], &words[HW_SOURCE], arena);
            memset(sum.own, 0, (size_t)(sum.queries * sum.keys) * sizeof *sum.own);
            for (int h = 0; h < LAYERS * HEADS; h++)
                if (is_part(x->name, h / HEADS, h % HEADS))
                    add_head(&sum, x->is_head || x->norms ? &pairs[p] : &without_end[p], h / HEADS, h % HEADS, place, p, x->norms);
            for (int32_t q = 0; q < sum.queries; q++) {
                int32_t best = 0;
                for (int32_t k = 1; k < words[HW_SOURCE].count; k++)
                    if (sum.own[q * sum.keys + k] > sum.own[q * sum.keys + best]) best = k;
                ck_assert_msg(x->sources[l->start[p] + q] == best, "%s, %s, norms %d, pair %d, word %d: %d, want %d",
                              x->name, x->step, x->norms, p, q, x->sources[l->start[p] + q], best);
            }
        }
}
END_TEST

/* ---- untrained copies -------------------------------------------------------------------------------------------- */

/* A network with its initial values is held against others, not against itself: somewhere it exceeds all of them. */
START_TEST(controls_have_other_seeds)
{
    hw_error err = {""};
    hw_bundle *fresh = hw_bundle_untrained(bundle, (uint64_t)bundle->config->training.seed, &err);
    ck_assert_msg(fresh != NULL, "%s", err.message);
    const hw_roles *roles = hw_roles_study(fresh, &set, &set, &(hw_roles_options){.seed = 1}, NULL, NULL, arena, &err);
    ck_assert_msg(roles != NULL, "%s", err.message);
    int above = 0, below = 0;
    for (int h = 0; h < roles->heads; h++)
        for (int i = 0; i < roles->head[h].count; i++) {
            const hw_role_result *r = &roles->head[h].results[i];
            above += r->score > r->control;
            below += r->score < r->control;
        }
    ck_assert_int_gt(above, 0);
    ck_assert_int_gt(below, above);
    hw_bundle_free(fresh);
}
END_TEST

Suite *test_heads_network(void);
Suite *test_heads_network(void)
{
    Suite *suite = suite_create("heads_network");
    TCase *t = tcase_create("network");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, statistics);
    tcase_add_test(t, evidence);
    tcase_add_test(t, links);
    tcase_add_test(t, controls_have_other_seeds);
    suite_add_tcase(suite, t);
    return suite;
}
