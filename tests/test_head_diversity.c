/* Training with heads pushed apart: what the terms are for rows that are known by hand, that each lowers its own
 * measure, and that runs with them are as repeatable as runs without. Their gradients stand in test_gradient.c. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

#include "support_files.h"
#include "support_train.h"

Suite *test_head_diversity(void);

static const double CLOSE = sizeof(hw_real) == 8 ? 1e-12 : 2e-6;

/* ---- known rows -------------------------------------------------------------------------------------------------- */

/* One query, three heads, four keys. */
static const struct {
    const char *name;
    hw_real weights[3][4];
    double overlap, overlap_all, orthogonal, entropy;
} rows[] = {
    {"the same one-hots", {{0, 1, 0, 0}, {0, 1, 0, 0}, {0, 1, 0, 0}}, 1, 1, 6, 0},
    {"uniform",
     {{0.25, 0.25, 0.25, 0.25}, {0.25, 0.25, 0.25, 0.25}, {0.25, 0.25, 0.25, 0.25}},
     0.25,
     0.25,
     3 * 0.75 * 0.75 + 6 * 0.0625,
     1},
    {"disjoint one-hots", {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 0, 1}}, 0, 1.0 / 3, 0, 0},
    {"disjoint, one spread over two", {{1, 0, 0, 0}, {0, 0.5, 0.5, 0}, {0, 0, 0, 1}}, 0, 2.5 / 9, 0.25, 1.0 / 6},
    {"two alike", {{1, 0, 0, 0}, {1, 0, 0, 0}, {0, 0, 1, 0}}, 1.0 / 3, 5.0 / 9, 2, 0},
};

START_TEST(position_of_known_rows)
{
    static const int64_t start[] = {0}, one[] = {1}, four[] = {4};
    const hw_attention_blocks blocks = {3, {1, start, one}, {1, start, four}, false};
    hw_tape *t = hw_tape_new();
    hw_tape_reset(t, HW_INFERENCE);
    hw_tensor *w = hw_reshape(t, hw_tape_matrix(t, 3, 4, rows[_i].weights[0], false), 1, (int64_t[]){12});
    const struct {
        double is, should;
    } figures[] = {
        {(double)hw_head_overlap(t, w, &blocks, false)->data[0], rows[_i].overlap},
        {(double)hw_head_overlap(t, w, &blocks, true)->data[0], rows[_i].overlap_all},
        {(double)hw_head_orthogonal(t, w, &blocks)->data[0], rows[_i].orthogonal},
        {(double)hw_head_entropy(t, w, &blocks)->data[0], rows[_i].entropy},
    };
    for (int i = 0; i < 4; i++)
        ck_assert_msg(fabs(figures[i].is - figures[i].should) < CLOSE, "%s, figure %d: %.9g, not %.9g", rows[_i].name,
                      i, figures[i].is, figures[i].should);
    hw_tape_free(t);
}
END_TEST

START_TEST(cosine_of_known_rows)
{
    /* Two antiparallel heads and one at a right angle; column 0 is no head's. */
    static const hw_real x[] = {9, 2, 0, -3, 0, 0, 5};
    const struct {
        bool diagonal, squared;
        double should;
    } cases[] = {{false, false, -1.0 / 3}, {false, true, 1.0 / 3}, {true, false, 1.0 / 9}, {true, true, 5.0 / 9}};
    hw_tape *t = hw_tape_new();
    hw_tape_reset(t, HW_INFERENCE);
    for (int i = 0; i < 4; i++) {
        hw_tensor *y =
            hw_head_cosine(t, hw_tape_matrix(t, 1, 7, x, false), 1, 3, 2, cases[i].diagonal, cases[i].squared);
        ck_assert_msg(fabs((double)y->data[0] - cases[i].should) < CLOSE, "case %d: %.9g", i, (double)y->data[0]);
    }
    hw_tensor *none = hw_head_cosine(t, hw_tape_matrix(t, 1, 6, NULL, false), 0, 3, 2, false, false);
    ck_assert_double_eq((double)none->data[0], 0); /* heads that give nothing */
    hw_tape_free(t);
}
END_TEST

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static hw_arena *arena;

static void begin(void) { arena = train_begin(); }

static const struct {
    const char *name, *key, *settings;
} kinds[] = {
    {"output", "output", "training.head_diversity.kind=output"},
    {"output, squared", "output_squared", "training.head_diversity.kind=output;training.head_diversity.squared=true"},
    {"subspace", "subspace", "training.head_diversity.kind=subspace;training.head_diversity.diagonal=true"},
    {"position", "position", "training.head_diversity.kind=position;training.head_diversity.entropy=0.1"},
    {"orthogonal", "orthogonal", "training.head_diversity.kind=orthogonal"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* A figure of heads diversity, over all layers, of the model in a directory on its validation set. */
static double figure_of(const char *directory, const char *key)
{
    hw_error err;
    hw_bundle *bundle = hw_bundle_load(directory, &err);
    ck_assert_msg(bundle != NULL, "%s", err.message);
    hw_study_set set;
    ck_assert_msg(hw_study_set_load(arena, bundle, scratch_path("data"), "valid", &set, &err), "%s", err.message);
    hw_diversity *d = hw_diversity_study(bundle, &set, NULL, NULL, arena);
    json_t *result = hw_diversity_json(d, bundle->network);
    double value = json_number_value(json_object_get(json_object_get(result, "overall"), key));
    json_decref(result);
    hw_bundle_free(bundle);
    return value;
}

START_TEST(each_lowers_its_own_measure)
{
    hw_config *with = train_config(arena, "with", kinds[_i].settings), *without = train_config(arena, "without", "");
    train_whole(with, 2);
    train_whole(without, 2);
    double a = figure_of(with->training.model_dir, kinds[_i].key);
    double b = figure_of(without->training.model_dir, kinds[_i].key);
    ck_assert_msg(a < b - 0.02, "%s: %g with it, %g without", kinds[_i].name, a, b);
}
END_TEST

START_TEST(weight_0_gives_the_bits_of_none)
{
    train_whole(train_config(arena, "none", "training.keep_checkpoints=1"), 1);
    const char *settings = hw_arena_string(arena, "%s;training.head_diversity.weight=0;training.keep_checkpoints=1",
                                           kinds[_i].settings);
    train_whole(train_config(arena, "zero", settings), 1);
    same_but_configuration("none", "zero");
}
END_TEST

static const char *const repeated[] = {
    "training.head_diversity.kind=output;training.head_diversity.schedule=rise",
    "training.head_diversity.kind=position;training.head_diversity.entropy=0.2;training.head_diversity.where=cross",
    "training.drop_head.rate=0.4;training.drop_head.schedule=v",
};

START_TEST(threads_and_interruptions_change_no_byte)
{
    train_whole_and_in_parts(arena, repeated[_i], (const int64_t[]){3, 5, 9, 14, 0});
    char *log = scratch_read(scratch_path("whole/train.tsv"), NULL);
    ck_assert(!strstr(log, "\thead_diversity\n") == !strstr(repeated[_i], "kind="));
    free(log);
}
END_TEST

/* A run that differs from one without it in its weights. */
START_TEST(where_and_schedule_count)
{
    static const char *const settings[] = {
        "training.head_diversity.kind=output",
        "training.head_diversity.kind=output;training.head_diversity.where=encoder",
        "training.head_diversity.kind=output;training.head_diversity.schedule=fall",
        "training.head_diversity.kind=output;training.head_diversity.diagonal=true",
        "training.head_diversity.kind=output;training.head_diversity.squared=true",
        "training.drop_head.rate=0.3",
        "training.drop_head.rate=0.3;training.drop_head.schedule=rise",
        "",
    };
    enum { RUNS = sizeof settings / sizeof *settings };
    char *bytes[RUNS];
    size_t sizes[RUNS];
    for (int i = 0; i < RUNS; i++) {
        const char *directory = hw_arena_string(arena, "run%d", i);
        train_whole(train_config(arena, directory, settings[i]), 2);
        directory = hw_arena_string(arena, "run%d/checkpoint.safetensors", i);
        bytes[i] = scratch_read(scratch_path(directory), &sizes[i]);
        for (int k = 0; k < i; k++)
            ck_assert_msg(sizes[i] != sizes[k] || memcmp(bytes[i], bytes[k], sizes[i]), "runs %d and %d are the same",
                          i, k);
    }
    for (int i = 0; i < RUNS; i++) free(bytes[i]);
}
END_TEST

START_TEST(strengths)
{
    hw_config *c = train_config(arena, "x", "training.max_steps=100;training.warmup_steps=20");
    const struct {
        int schedule;
        int64_t step;
        double should;
    } cases[] = {
        {HW_STRENGTH_CONSTANT, 1, 1}, {HW_STRENGTH_RISE, 25, 0.25}, {HW_STRENGTH_RISE, 100, 1},
        {HW_STRENGTH_FALL, 100, 0},   {HW_STRENGTH_FALL, 25, 0.75}, {HW_STRENGTH_V, 5, 0.75},
        {HW_STRENGTH_V, 20, 0},       {HW_STRENGTH_V, 60, 0.5},     {HW_STRENGTH_V, 100, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_double_eq_tol(hw_strength(c, cases[i].schedule, cases[i].step), cases[i].should, 1e-12);
}
END_TEST

/* ---- DropHead ---------------------------------------------------------------------------------------------------- */

/* What heads give goes through gates of 0 or H over the number of those that stay; a sentence has one pattern, and
 * about the wanted share is gone. */
START_TEST(drop_head_drops_whole_heads)
{
    enum { SENTENCES = 400, HEADS = 4, D = 8 };
    static int64_t start[SENTENCES], length[SENTENCES];
    for (int i = 0; i < SENTENCES; i++) start[i] = 2 * i, length[i] = 2;
    const hw_segments sentences = {SENTENCES, start, length};
    hw_tape *t = hw_tape_new();
    hw_tape_reset(t, HW_TRAINING);
    hw_tape_dropout_key(t, 5, 7);
    hw_recorded entry;
    hw_recorder recorder = {.entries = &entry};
    hw_pass pass = {.tape = t, .recorder = &recorder, .drop_head = 0.5};
    hw_tensor *x = hw_tape_matrix(t, 2 * SENTENCES, D, NULL, false), *w = hw_tape_matrix(t, 3 * D, D, NULL, false);
    hw_tensor *out = hw_tape_matrix(t, D, D, NULL, false), *ones = hw_tape_matrix(t, 1, D, NULL, false);
    hw_attention_layer a = {.scope = "layer",
                            .name = "encoder.0.self",
                            .heads = HEADS,
                            .head_width = 2,
                            .query_weight = w,
                            .query_bias = hw_tape_matrix(t, 1, 3 * D, NULL, false),
                            .output_weight = out,
                            .output_bias = ones,
                            .add_norm = {.norm = {"norm", ones, ones}, .pre = false}};
    hw_self_attention(&pass, &a, x, sentences, false, NULL);
    int gone = 0, most = 0;
    ck_assert_ptr_nonnull(entry.gates);
    for (int i = 0; i < SENTENCES; i++) {
        const hw_real *xi = entry.gates->data + start[i] * HEADS;
        int kept = 0;
        for (int h = 0; h < HEADS; h++) kept += xi[h] > 0;
        ck_assert_int_ge(kept, 1);
        for (int h = 0; h < 2 * HEADS; h++) {
            ck_assert(xi[h] == xi[h % HEADS]);
            ck_assert(xi[h] == 0 || fabs((double)xi[h] * kept - HEADS) < 1e-5);
        }
        gone += HEADS - kept;
        most = kept == HEADS ? most + 1 : most;
    }
    /* all four gone (1/16) leaves one, so the mean is 2 - 1/16 of 4 */
    ck_assert_double_eq_tol((double)gone / SENTENCES, 2 - 1.0 / 16, 0.15);
    ck_assert_int_gt(most, 0);
    hw_tape_reset(t, HW_INFERENCE);
    hw_tape_free(t);
}
END_TEST

/* ---- bad input --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *settings[2], *message;
} wrong[] = {
    {{"model.heads=1", "training.head_diversity.kind=output"},
     "--set: training.head_diversity.kind: model.heads is 1: with one head there is nothing to diversify"},
    {{"model.heads=1", "training.drop_head.rate=0.1"},
     "--set: training.drop_head.rate: model.heads is 1: with one head there is nothing to drop"},
    {{"training.head_diversity.where=", NULL},
     "--set: training.head_diversity.where: it is empty; name one of encoder, decoder, cross at least"},
    {{"training.head_diversity.where=encoder,self", NULL},
     "--set: training.head_diversity.where: self is none of encoder, decoder, cross"},
    {{"training.head_diversity.where=encoder,crss", NULL},
     "--set: training.head_diversity.where: crss is none of encoder, decoder, cross; did you mean cross?"},
    {{"training.head_diversity.where=cross,cross", NULL},
     "--set: training.head_diversity.where: cross stands there twice"},
    {{"training.head_diversity.kind=position", "training.head_diversity.squared=true"},
     "--set: training.head_diversity.squared: only kinds output and subspace have a cosine"},
    {{"training.head_diversity.kind=output", "training.head_diversity.entropy=0.1"},
     "--set: training.head_diversity.entropy: only kind position has a term of entropy"},
    {{"training.head_diversity.kind=orthogonal", "training.head_diversity.diagonal=true"},
     "--set: training.head_diversity.diagonal: only kinds output, subspace and position leave it open whether a head "
     "is "
     "paired with itself"},
    {{"training.head_diversity.weight=-0.1", NULL},
     "--set: training.head_diversity.weight: -0.1 is too small; it must be at least 0"},
    {{"training.head_diversity.weight=inf", NULL},
     "--set: training.head_diversity.weight: expected a number, found inf"},
};

START_TEST(wrong_configurations_are_refused)
{
    config_refused(arena, wrong[_i].settings, 2, wrong[_i].message);
}
END_TEST

Suite *test_head_diversity(void)
{
    Suite *s = suite_create("head_diversity");
    TCase *known = tcase_create("known rows"), *runs = tcase_create("runs"), *bad = tcase_create("bad input");
    tcase_add_loop_test(known, position_of_known_rows, 0, sizeof rows / sizeof *rows);
    tcase_add_test(known, cosine_of_known_rows);
    tcase_add_test(known, drop_head_drops_whole_heads);
    tcase_add_checked_fixture(runs, begin, scratch_end);
    tcase_add_loop_test(runs, each_lowers_its_own_measure, 0, KINDS);
    tcase_add_loop_test(runs, weight_0_gives_the_bits_of_none, 0, KINDS);
    tcase_add_loop_test(runs, threads_and_interruptions_change_no_byte, 0, sizeof repeated / sizeof *repeated);
    tcase_add_test(runs, where_and_schedule_count);
    tcase_add_test(runs, strengths);
    tcase_add_checked_fixture(bad, begin, scratch_end);
    tcase_add_loop_test(bad, wrong_configurations_are_refused, 0, sizeof wrong / sizeof *wrong);
    suite_add_tcase(s, known);
    suite_add_tcase(s, runs);
    suite_add_tcase(s, bad);
    return s;
}
