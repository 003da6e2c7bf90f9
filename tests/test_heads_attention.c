/* Attention between words and the statistics of heads, against NumPy's figures (tests/fixtures/heads/attention.json);
 * norms against the network's own weights; which heads a network has. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "support_model.h"

#include <headwise/heads.h>

#ifdef HW_REAL_DOUBLE
#define TOLERANCE 1e-12
#else
#define TOLERANCE 1e-6
#endif

static hw_arena *arena;
static void begin(void) { arena = hw_arena_new(0); }
static void end(void) { hw_arena_free(arena); }

#define EXPECT(condition, ...)                                                                                         \
    do {                                                                                                               \
        if (!(condition)) ck_abort_msg(__VA_ARGS__);                                                                   \
    } while (0)

static void near(const char *what, double got, double want)
{
    EXPECT(fabs(got - want) <= TOLERANCE * fmax(1, fabs(want)), "%s is %.12g, want %.12g", what, got, want);
}

/* ---- against NumPy ----------------------------------------------------------------------------------------------- */

static hw_sentence sentence(const json_t *from)
{
    const json_t *sizes = json_object_get(from, "sizes"), *punctuation = json_object_get(from, "punctuation");
    hw_sentence s = {.count = (int32_t)json_array_size(sizes)};
    hw_study_word *words = hw_arena_calloc(arena, json_array_size(sizes), sizeof *words);
    for (size_t w = 0; w < json_array_size(sizes); w++) {
        words[w].first = (int32_t)s.ids.count;
        words[w].count = (int32_t)json_integer_value(json_array_get(sizes, w));
        words[w].punctuation = json_is_true(json_array_get(punctuation, w));
        s.ids.count += words[w].count;
    }
    s.words = words;
    return s;
}

static hw_real *numbers(const json_t *list)
{
    hw_real *out = hw_arena_alloc(arena, json_array_size(list) * sizeof *out);
    for (size_t i = 0; i < json_array_size(list); i++) out[i] = (hw_real)json_number_value(json_array_get(list, i));
    return out;
}

static int place_named(const char *name)
{
    static const char *const names[] = {"encoder", "decoder fed", "decoder predicted", "cross fed", "cross predicted"};
    for (int p = 0; p < HW_PLACES; p++)
        if (!strcmp(names[p], name)) return p;
    ck_abort_msg("no place %s", name);
}

static void same_matrix(const char *what, const hw_word_attention *a, const json_t *want)
{
    for (int32_t q = 0; q < a->queries; q++)
        for (int32_t k = 0; k < a->keys; k++)
            near(what, (double)a->weights[q * a->stride + k],
                 json_number_value(json_array_get(want, (size_t)(q * a->keys + k))));
}

static void same_statistics(const hw_word_attention *a, const json_t *want)
{
    hw_stats_sums s = {0};
    hw_stats_add(&s, a);
    const struct {
        const char *name;
        double got;
    } figures[] = {
        {"queries", s.queries},   {"choices", s.choices},       {"entropy", s.entropy},
        {"relative", s.relative}, {"first", s.first},           {"last", s.last},
        {"self", s.self},         {"punct", s.punct},           {"special", s.special},
        {"distance", s.distance}, {"at_special", s.at_special}, {"confidence", s.confidence},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        near(figures[i].name, figures[i].got, json_number_value(json_object_get(want, figures[i].name)));
    for (size_t i = 0; i < HW_STATS_OFFSETS; i++)
        near("offsets", s.offsets[i], json_number_value(json_array_get(json_object_get(want, "offsets"), i)));
}

START_TEST(equals_numpy)
{
    json_error_t error;
    json_t *all = json_load_file("tests/fixtures/heads/attention.json", 0, &error);
    ck_assert_msg(all != NULL, "%s", error.text);
    ck_assert_uint_eq(json_array_size(all), 20);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *c = json_array_get(all, i);
        const hw_place *place = hw_place_at(place_named(json_string_value(json_object_get(c, "place"))));
        hw_sentence query = sentence(json_object_get(c, "query")), key = sentence(json_object_get(c, "key"));
        const hw_real *block = numbers(json_object_get(c, "block")), *norms = numbers(json_object_get(c, "norms"));
        hw_word_attention a = hw_word_attention_new(place, &query, &key, arena);
        for (int32_t q = 0; q < a.queries; q++)
            ck_assert_int_eq(a.visible[q],
                             json_integer_value(json_array_get(json_object_get(c, "visible"), (size_t)q)));
        hw_word_attention_fill(&a, block, key.ids.count + 1, NULL);
        same_matrix("weights", &a, json_object_get(c, "weights"));
        same_statistics(&a, json_object_get(c, "statistics"));
        hw_word_attention_fill(&a, block, key.ids.count + 1, norms);
        same_matrix("norms", &a, json_object_get(c, "shares"));
        same_statistics(&a, json_object_get(c, "statistics_by_norms"));
        near("arriving", a.arriving, json_number_value(json_object_get(c, "arriving")));
    }
    json_decref(all);
}
END_TEST

/* A uniform head's largest weight stands everywhere: each offset gets its part, and the entropy is the largest
 * possible. */
START_TEST(ties_share)
{
    hw_study_word words[3] = {{.first = 0, .count = 1}, {.first = 1, .count = 1}, {.first = 2, .count = 1}};
    hw_sentence s = {.ids = {.count = 3}, .count = 3, .words = words};
    hw_real block[16];
    for (int i = 0; i < 16; i++) block[i] = (hw_real)0.25;
    hw_word_attention a = hw_word_attention_new(hw_place_at(HW_PLACE_ENCODER), &s, &s, arena);
    hw_word_attention_fill(&a, block, 4, NULL);
    hw_stats_sums sums = {0};
    hw_stats_add(&sums, &a);
    ck_assert_double_eq_tol(sums.relative, 3, 1e-12);
    ck_assert_double_eq_tol(sums.at_special, 0.75, 1e-12);
    for (int offset = -8; offset <= 8; offset++)
        ck_assert_double_eq_tol(sums.offsets[offset + 9], abs(offset) < 3 ? (3 - abs(offset)) / 4.0 : 0, 1e-12);
}
END_TEST

/* ---- a network --------------------------------------------------------------------------------------------------- */

/* What is kept of a pass: nothing; everything is checked in the visit. */
typedef struct norms_check {
    const hw_transformer *network;
    const hw_value_norms *norms;
    int checked;
} norms_check;

/* Output row q of a head is the sum of a_qk v_k; so the values are found where they should be. */
static void check_values(const hw_recorded *r, const hw_attention_layer *layer, int64_t b, const hw_real *block)
{
    int64_t n = r->queries.length[b], m = r->keys.length[b], width = layer->head_width, all = layer->heads * width;
    for (int64_t h = 0; h < layer->heads; h++)
        for (int64_t q = 0; q < n; q++)
            for (int64_t i = 0; i < width; i++) {
                double sum = 0;
                for (int64_t k = 0; k < m; k++)
                    sum += (double)block[(h * n + q) * m + k] *
                           (double)r->values->data[(r->keys.start[b] + k) * hw_tensor_cols(r->values) +
                                                   r->value_column + h * width + i];
                double got = (double)r->heads->data[(r->queries.start[b] + q) * all + h * width + i];
                EXPECT(fabs(got - sum) < 1e-5, "%s head %lld: %g, want %g", layer->name, (long long)h, got, sum);
            }
}

static void check_norms(norms_check *c, const hw_recorded *r, int attention, int64_t b)
{
    const hw_attention_layer *layer = hw_transformer_attention(c->network, attention);
    int64_t m = r->keys.length[b], width = layer->head_width, all = layer->heads * width,
            out = layer->output_weight->shape[0];
    hw_real *got = hw_arena_alloc(arena, (size_t)(layer->heads * m) * sizeof *got);
    hw_value_norms_of(c->norms, attention, r, b, got);
    for (int64_t h = 0; h < layer->heads; h++)
        for (int64_t k = 0; k < m; k++) {
            const hw_real *v =
                r->values->data + (r->keys.start[b] + k) * hw_tensor_cols(r->values) + r->value_column + h * width;
            double squares = 0;
            for (int64_t d = 0; d < out; d++) {
                double x = 0;
                for (int64_t i = 0; i < width; i++)
                    x += (double)layer->output_weight->data[d * all + h * width + i] * (double)v[i];
                squares += x * x;
            }
            near("norm", (double)got[h * m + k], sqrt(squares));
            c->checked++;
        }
}

static void check_visit(int i, const hw_visit *v, void *argument)
{
    norms_check *c = argument;
    (void)i;
    for (int a = 0; a < c->network->attentions; a++) {
        const hw_recorded *r = &v->attentions[a];
        const hw_attention_layer *layer = hw_transformer_attention(c->network, a);
        const hw_real *block = r->weights->data;
        for (int64_t b = 0; b < v->batch->sentences; b++) {
            check_values(r, layer, b, block);
            check_norms(c, r, a, b);
            block += layer->heads * r->queries.length[b] * r->keys.length[b];
        }
    }
}

START_TEST(norms_of_what_arrives)
{
    hw_transformer *m = small_network(_i, 30, 5);
    hw_value_norms *norms = hw_value_norms_new(m);
    hw_runner *runner = hw_runner_new(m);
    const hw_ids *source = random_sentences(arena, 3, 1, 7, 30, 1), *target = random_sentences(arena, 3, 1, 7, 30, 2);
    norms_check c = {m, norms, 0};
    hw_visit_pairs(runner, 3, source, target, &(hw_visit_options){.weights = true}, check_visit, &c);
    ck_assert_int_gt(c.checked, 0);
    hw_runner_free(runner);
    hw_value_norms_free(norms);
    hw_transformer_free(m);
}
END_TEST

/* The second small network has lost decoder.0.self.1, decoder.1.cross.0 and encoder.0.self.0. */
START_TEST(heads_keep_their_names)
{
    hw_transformer *m = small_network(1, 20, 1);
    int count;
    const hw_head *heads = hw_heads_of(m, arena, &count);
    ck_assert_int_eq(count, 5 * 3 - 3);
    ck_assert_str_eq(heads[0].name, "encoder.0.self.1");
    ck_assert_int_eq(heads[0].kind, HW_ENCODER_SELF);
    ck_assert_str_eq(heads[2].name, "decoder.0.self.0");
    ck_assert_str_eq(heads[3].name, "decoder.0.self.2");
    ck_assert_int_eq(heads[3].of_kind, 1);
    ck_assert_str_eq(heads[4].name, "decoder.0.cross.0");
    ck_assert_int_eq(heads[4].kind, HW_CROSS);
    ck_assert_str_eq(heads[10].name, "decoder.1.cross.1");
    ck_assert_int_eq(heads[10].of_kind, 3);
    hw_transformer_free(m);
}
END_TEST

Suite *test_heads_attention(void);
Suite *test_heads_attention(void)
{
    Suite *suite = suite_create("heads_attention");
    TCase *t = tcase_create("attention");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, equals_numpy);
    tcase_add_test(t, ties_share);
    tcase_add_loop_test(t, norms_of_what_arrives, 0, SMALL_NETWORKS);
    tcase_add_test(t, heads_keep_their_names);
    suite_add_tcase(suite, t);
    return suite;
}
