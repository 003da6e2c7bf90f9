/* Gates of heads that training closes (training.head_l0): the distribution of a gate against its formulas and a
 * simulation, what a run leaves, and that interruptions change no byte. Gradients stand in test_gradient.c. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_train.h"
#include "train/gates.h"

Suite *test_head_l0(void);

static hw_arena *arena;

static void begin(void) { arena = train_begin(); }

/* ---- one gate ---------------------------------------------------------------------------------------------------- */

/* Louizos et al. 2018, equation 12, beside how often a drawn gate is not 0; and how often it is exactly 1, which is
 * P(s (zeta - gamma) + gamma >= 1) = sigmoid(a - beta log((1 - gamma) / (zeta - 1))). */
START_TEST(drawn_gates_follow_the_formulas)
{
    static const double log_alphas[] = {-4, -1.5, 0, 0.7, 3};
    enum { DRAWS = 20000, KINDS = sizeof log_alphas / sizeof *log_alphas };
    hw_random random = hw_random_new(3, 1);
    hw_tape *t = hw_tape_new();
    for (int k = 0; k < KINDS; k++) {
        hw_tape_reset(t, HW_INFERENCE);
        hw_tensor *a = hw_tape_matrix(t, 1, DRAWS, NULL, false);
        hw_real *noise = hw_arena_alloc(arena, DRAWS * sizeof *noise);
        for (int i = 0; i < DRAWS; i++) {
            a->data[i] = (hw_real)log_alphas[k];
            noise[i] = (hw_real)(0.000001 + 0.999998 * hw_random_uniform(&random));
        }
        const hw_real *z = hw_hard_concrete(t, a, noise)->data;
        double open = 0, whole = 0, formula = 1 / (1 + exp(-(log_alphas[k] - 2.0 / 3 * log(0.1 / 1.1))));
        for (int i = 0; i < DRAWS; i++) {
            ck_assert(z[i] >= 0 && z[i] <= 1);
            open += z[i] > 0;
            whole += z[i] == 1;
        }
        double one = 1 / (1 + exp(-(log_alphas[k] - 2.0 / 3 * log(1.1 / 0.1))));
        ck_assert_double_eq_tol((double)hw_hard_concrete_open(t, a)->data[0], formula, 1e-6);
        ck_assert_double_eq_tol(open / DRAWS, formula, 0.015);
        ck_assert_double_eq_tol(whole / DRAWS, one, 0.015);
        /* evaluation has no temperature: equation 13 */
        double s = 1 / (1 + exp(-log_alphas[k])), z_hat = fmin(1, fmax(0, 1.2 * s - 0.1));
        ck_assert_double_eq_tol((double)hw_hard_concrete(t, a, NULL)->data[0], z_hat, 1e-6);
    }
    hw_tape_free(t);
}
END_TEST

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static const char *gates_of(const char *directory)
{
    char *text = scratch_read(scratch_path(hw_arena_string(arena, "%s/gates.tsv", directory)), NULL);
    ck_assert_ptr_nonnull(text);
    const char *copy = hw_arena_string(arena, "%s", text);
    free(text);
    return copy;
}

START_TEST(interruptions_change_no_byte)
{
    static const char settings[] = "training.head_l0.weight=0.05;training.validate_every=5";
    train_whole_and_in_parts(arena, settings, (const int64_t[]){2, 5, 11, 0});
    ck_assert(!strncmp(gates_of("whole"), "name\tgate\topen\tlog_alpha\nencoder.0.self.0\t", 41));
}
END_TEST

/* A dear price closes every head: their columns of the output projections are zero in the model that is saved. */
START_TEST(closed_heads_are_zero_in_the_model)
{
    train_whole(train_config(arena, "base", ""), 2);
    const char *from = hw_arena_string(arena,
                                       "training.init_from=%s;training.head_l0.weight=100;"
                                       "training.head_l0.learning_rate=0.5;training.metric=loss;"
                                       "training.validate_every=0",
                                       scratch_path("base"));
    train_whole(train_config(arena, "closed", from), 2);
    hw_error err;
    hw_bundle *b = hw_bundle_load(scratch_path("closed"), &err);
    ck_assert_msg(b != NULL, "%s", err.message);
    for (int a = 0; a < b->network->attentions; a++) {
        const hw_tensor *w = hw_transformer_attention(b->network, a)->output_weight;
        for (int64_t i = 0; i < hw_tensor_size(w); i++) ck_assert(w->data[i] == 0);
    }
    hw_bundle_free(b);
    double gate, open;
    const char *line = strchr(gates_of("closed"), '\n') + 1;
    ck_assert_int_eq(sscanf(line, "%*s %lf %lf", &gate, &open), 2);
    ck_assert(gate == 0 && open < 0.5);
}
END_TEST

/* For free, no head closes; and gates.tsv is the gates that the model has. */
START_TEST(the_expected_number_falls_with_the_price)
{
    hw_config *c = train_config(arena, "x", "training.head_l0.weight=1");
    hw_error err;
    hw_transformer_options o = {.encoder_layers = 1,
                                .decoder_layers = 1,
                                .width = 16,
                                .heads = 4,
                                .feed_forward = 8,
                                .source_vocabulary = 9,
                                .target_vocabulary = 9,
                                .tied = HW_TIED_NONE};
    hw_transformer *m = hw_transformer_new(&o, false, &err);
    ck_assert_msg(m != NULL, "%s", err.message);
    hw_gates *g = hw_gates_new(m, c);
    hw_gate_pass pass;
    hw_gates_pass_init(g, &pass);
    double before = hw_gates_expected(g);
    ck_assert_double_eq_tol(before, 12 / (1 + exp(-(2 - 2.0 / 3 * log(0.1 / 1.1)))), 1e-4);
    for (int i = 1; i <= 20; i++) hw_gates_update(g, (const hw_gate_pass *[]){&pass}, 1, 1, i);
    ck_assert_double_lt(hw_gates_expected(g), before - 0.1);
    hw_gates_pass_clear(&pass);
    hw_gates_free(g);
    hw_transformer_free(m);
}
END_TEST

static const struct {
    const char *setting, *message;
} wrong[] = {
    {"training.ema=0.9", "--set: training.head_l0.weight: with gates of heads there is no training.ema, whose weights "
                         "would know nothing of "
                         "them"},
    {"training.keep_checkpoints=2", "--set: training.head_l0.weight: with gates of heads there is no "
                                    "training.keep_checkpoints, whose weights would know "
                                    "nothing of them"},
};

START_TEST(averages_are_refused)
{
    hw_config *c = hw_config_new(arena);
    hw_error err;
    ck_assert(hw_config_set(c, "training.head_l0.weight=0.1", &err) && hw_config_set(c, wrong[_i].setting, &err));
    ck_assert(!hw_config_check(c, NULL, &err));
    ck_assert_str_eq(err.message, wrong[_i].message);
}
END_TEST

Suite *test_head_l0(void)
{
    Suite *s = suite_create("head_l0");
    TCase *tc = tcase_create("head_l0");
    tcase_add_checked_fixture(tc, begin, scratch_end);
    tcase_add_test(tc, drawn_gates_follow_the_formulas);
    tcase_add_test(tc, interruptions_change_no_byte);
    tcase_add_test(tc, closed_heads_are_zero_in_the_model);
    tcase_add_test(tc, the_expected_number_falls_with_the_price);
    tcase_add_loop_test(tc, averages_are_refused, 0, sizeof wrong / sizeof *wrong);
    suite_add_tcase(s, tc);
    return s;
}
