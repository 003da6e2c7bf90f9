/* The whole network's gradients against finite differences, with every option on: post and pre norm, embeddings tied or
 * not, each activation, every dropout with a fixed key, gates with something in a head's place, removed heads. The
 * method stands in test_gradient.c. */
#include <check.h>
#include <math.h>
#include <string.h>

#include <headwise/model.h>
#include <headwise/text.h>

Suite *test_gradient_model(void);

static const struct {
    const char *name;
    bool pre, gates, removed;
    hw_tying tied;
    hw_activation activation;
} cases[] = {
    {"post, all tied, relu", false, false, false, HW_TIED_ALL, HW_RELU},
    {"pre, output tied, gelu, gates", true, true, false, HW_TIED_OUTPUT, HW_GELU},
    {"post, not tied, swish, gates", false, true, false, HW_TIED_NONE, HW_SWISH},
    {"pre, all tied, swish, heads removed", true, false, true, HW_TIED_ALL, HW_SWISH},
};

static const char *const removed[] = {"encoder.0.self.1", "decoder.1.cross.0"};
static const hw_real gate_values[2] = {(hw_real)0.7, (hw_real)-0.4};
static const hw_real otherwise[8] = {(hw_real)0.3, -1, 2, (hw_real)0.1, (hw_real)-0.6, 1, (hw_real)0.5, (hw_real)-0.2};

typedef struct whole {
    hw_transformer *m;
    hw_tape *t;
    hw_arena *arena;
    hw_batch *batch;
    hw_head_setting settings[5];
    hw_recorded entries[5];
    hw_real gate[2]; /* of the attention that is moved */
} whole;

static void randomise(hw_transformer *m, hw_activation f)
{
    hw_random random = hw_random_new(5, 5);
    hw_parameters_initialise(m->parameters, 3);
    for (int i = 0; i < hw_parameters_count(m->parameters); i++) {
        hw_parameter *p = hw_parameters_at(m->parameters, i);
        bool kink = f == HW_RELU && strstr(p->name, "expand");
        for (int64_t j = 0; j < hw_tensor_size(&p->tensor); j++) {
            hw_real *x = &p->tensor.data[j];
            if (p->initial == HW_INITIAL_ZERO || p->initial == HW_INITIAL_ONE)
                *x += (hw_real)(0.3 * hw_random_normal(&random));
            if (kink && p->tensor.rank == 2) *x *= (hw_real)0.2; /* the bias decides every sign, far from 0 */
            if (kink && p->tensor.rank == 1) *x = j % 2 ? 3 : -3;
        }
    }
    hw_parameters_pack(m->parameters);
}

static whole build(int i)
{
    static const int32_t words[3][5] = {{3, 5, 4, 6, 3}, {6, 0, 0, 0, 0}, {5, 5, 3, 0, 0}};
    const hw_ids sources[3] = {{words[0], 5}, {words[1], 1}, {words[2], 3}},
                 targets[3] = {{words[2], 3}, {words[0], 4}, {words[1], 1}};
    const int64_t lines[3] = {1, 2, 3};
    hw_transformer_options o = {.encoder_layers = 1,
                                .decoder_layers = 2,
                                .width = 8,
                                .heads = 2,
                                .feed_forward = 6,
                                .source_vocabulary = 7,
                                .target_vocabulary = 7,
                                .activation = cases[i].activation,
                                .pre_norm = cases[i].pre,
                                .tied = cases[i].tied,
                                .dropout_embedding = 0.1,
                                .dropout_residual = 0.2,
                                .dropout_attention = 0.3,
                                .dropout_feed_forward = 0.2,
                                .removed_heads = removed,
                                .removed_count = cases[i].removed ? 2 : 0};
    hw_error err;
    whole w = {.m = hw_transformer_new(&o, true, &err), .t = hw_tape_new(), .arena = hw_arena_new(0)};
    ck_assert_msg(w.m, "%s", err.message);
    w.batch = hw_batch_new(w.arena, 3, sources, targets, lines);
    randomise(w.m, o.activation);
    for (int a = 0; cases[i].gates && a < 5; a++)
        w.settings[a] = (hw_head_setting){.gate = gate_values, .otherwise = otherwise};
    return w;
}

static void clear(whole *w)
{
    hw_transformer_free(w->m);
    hw_tape_free(w->t);
    hw_arena_free(w->arena);
}

static hw_tensor *loss_of(whole *w, bool gates)
{
    hw_parameters_pack(w->m->parameters);
    hw_tape_reset(w->t, HW_TRAINING);
    hw_tape_dropout_key(w->t, 8, 2);
    hw_recorder recorder = {.gates = gates, .entries = w->entries};
    hw_pass pass = {.tape = w->t, .recorder = &recorder, .settings = w->settings};
    const hw_batch *b = w->batch;
    hw_token_rows source = {b->source_rows, b->source_ids, b->source, 0, NULL},
                  target = {b->target_rows, b->target_in, b->target, 0, NULL};
    return hw_transformer_loss(&pass, w->m, &source, &target, b->target_out, (hw_real)0.1, (hw_real)0.2, NULL, NULL);
}

static double stencil(whole *w, hw_real *x)
{
    static const double at[4] = {-2, -1, 1, 2}, factor[4] = {1, -8, 8, -1};
    hw_real kept = *x;
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        *x = (hw_real)((double)kept + at[k] * 1e-3);
        sum += factor[k] * (double)loss_of(w, false)->data[0];
    }
    *x = kept;
    return sum / (12 * 1e-3);
}

static void compare(const char *name, double a, double n, double largest)
{
    double error = fabs(a - n) / fmax(fmax(fabs(a), fabs(n)), fmax(1e-3 * largest, 1e-3));
    ck_assert_msg(error <= 1e-6, "%s: backward gives %.10g, differences %.10g (error %.2g)", name, a, n, error);
}

START_TEST(every_parameter)
{
    if (sizeof(hw_real) < 8) return;
    hw_threads_set(1);
    whole w = build(_i);
    memset(hw_parameters_gradients(w.m->parameters), 0,
           (size_t)hw_parameters_numbers(w.m->parameters) * sizeof(hw_real));
    hw_backward(w.t, loss_of(&w, false), 1);
    hw_real *kept = hw_arena_copy(w.arena, hw_parameters_gradients(w.m->parameters),
                                  (size_t)hw_parameters_numbers(w.m->parameters) * sizeof *kept);
    for (int i = 0; i < hw_parameters_count(w.m->parameters); i++) {
        hw_parameter *p = hw_parameters_at(w.m->parameters, i);
        const hw_real *grad = kept + (p->tensor.grad - hw_parameters_gradients(w.m->parameters));
        double largest = 0;
        for (int64_t j = 0; j < hw_tensor_size(&p->tensor); j++) largest = fmax(largest, fabs((double)grad[j]));
        for (int64_t j = 0; j < hw_tensor_size(&p->tensor); j++) {
            if (strstr(p->name, "key.bias"))
                ck_assert_msg(fabs((double)grad[j]) < 1e-14, "%s: %g, not 0", p->name, (double)grad[j]);
            else
                compare(p->name, (double)grad[j], stencil(&w, &p->tensor.data[j]), largest);
        }
    }
    clear(&w);
}
END_TEST

/* dL/dxi a query row, summed over the rows, is the derivative by the gate itself. */
START_TEST(every_gate)
{
    if (sizeof(hw_real) < 8) return;
    hw_threads_set(1);
    whole w = build(_i);
    hw_backward(w.t, loss_of(&w, true), 1);
    double want[5][2] = {{0}};
    int64_t heads[5];
    for (int a = 0; a < 5; a++) {
        const hw_tensor *xi = w.entries[a].gates;
        heads[a] = hw_tensor_cols(xi);
        for (int64_t i = 0; i < hw_tensor_size(xi); i++) want[a][i % heads[a]] += (double)xi->grad[i];
    }
    for (int a = 0; a < 5; a++) {
        hw_head_setting before = w.settings[a];
        for (int h = 0; h < 2; h++) w.gate[h] = before.gate ? before.gate[h] : 1;
        w.settings[a].gate = w.gate;
        for (int64_t h = 0; h < heads[a]; h++) compare(w.entries[a].name, want[a][h], stencil(&w, &w.gate[h]), 0);
        w.settings[a] = before;
    }
    clear(&w);
}
END_TEST

/* Removing heads gives what gating them to 0 gives. */
START_TEST(removed_is_gated)
{
    hw_threads_set(1);
    whole with = build(3), without = build(3);
    hw_transformer_options o = with.m->options;
    o.removed_count = 0;
    hw_error err;
    hw_transformer_free(with.m);
    with.m = hw_transformer_new(&o, true, &err);
    ck_assert_msg(with.m, "%s", err.message);
    randomise(with.m, o.activation);
    static const hw_real first[2] = {1, 0}, second[2] = {0, 1};
    with.settings[0].gate = first;                                      /* encoder.0.self.1 */
    with.settings[4].gate = second;                                     /* decoder.1.cross.0 */
    for (int i = 0; i < hw_parameters_count(with.m->parameters); i++) { /* what is left of each parameter */
        hw_parameter *from = hw_parameters_at(with.m->parameters, i),
                     *to = hw_parameters_find(without.m->parameters, from->name);
        int64_t rows = hw_tensor_rows(&to->tensor), cols = hw_tensor_cols(&to->tensor),
                ld = hw_tensor_cols(&from->tensor);
        bool late = strstr(from->name, "decoder.1.cross_attention") && !strstr(from->name, "norm");
        int64_t row = late && to->tensor.rank == 2 && hw_tensor_rows(&from->tensor) > rows ? 4 : 0;
        int64_t column = late && ld > cols ? 4 : 0;
        for (int64_t r = 0; r < rows; r++)
            memcpy(to->tensor.data + r * cols, from->tensor.data + (r + row) * ld + column,
                   (size_t)cols * sizeof(hw_real));
    }
    hw_tape_reset(with.t, HW_INFERENCE);
    hw_tape_reset(without.t, HW_INFERENCE);
    double loss[2];
    whole *both[2] = {&with, &without};
    for (int k = 0; k < 2; k++) {
        const hw_batch *b = both[k]->batch;
        hw_parameters_pack(both[k]->m->parameters);
        hw_pass pass = {.tape = both[k]->t, .settings = both[k]->settings};
        hw_token_rows s = {b->source_rows, b->source_ids, b->source, 0, NULL},
                      t = {b->target_rows, b->target_in, b->target, 0, NULL};
        loss[k] = (double)hw_transformer_loss(&pass, both[k]->m, &s, &t, b->target_out, 0, 1, NULL, NULL)->data[0];
    }
    ck_assert_double_eq_tol(loss[0], loss[1], 1e-5 * fabs(loss[0]));
    clear(&with);
    clear(&without);
}
END_TEST

Suite *test_gradient_model(void)
{
    Suite *s = suite_create("gradient of the whole model");
    TCase *tc = tcase_create("model");
    int count = sizeof cases / sizeof *cases;
    tcase_add_loop_test(tc, every_parameter, 0, count);
    tcase_add_loop_test(tc, every_gate, 0, count);
    tcase_add_test(tc, removed_is_gated);
    suite_add_tcase(s, tc);
    return s;
}
