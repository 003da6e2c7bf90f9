/* The tape's manners: misuse is a message with the scope and an abort, not a crash; steps reuse their memory; attention
 * does what the textbook says. */
#include <check.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <headwise/nn.h>

Suite *test_autograd(void);

static hw_tensor *some(hw_tape *t, int64_t rows, int64_t cols)
{
    hw_tensor *x = hw_tape_matrix(t, rows, cols, NULL, true);
    hw_random random = hw_random_new(3, (uint64_t)(rows * 1000 + cols));
    for (int64_t i = 0; i < rows * cols; i++) x->data[i] = (hw_real)hw_random_normal(&random);
    return x;
}

/* ---- misuse ------------------------------------------------------------------------------------------------------ */

static void backward_twice(hw_tape *t)
{
    hw_tensor *loss = hw_sum(t, some(t, 2, 3));
    hw_backward(t, loss, 1);
    hw_backward(t, loss, 1);
}
static void forward_after_backward(hw_tape *t)
{
    hw_tensor *x = some(t, 2, 3);
    hw_backward(t, hw_sum(t, x), 1);
    hw_scale(t, x, 2);
}
static void stale_tensor(hw_tape *t)
{
    hw_tensor *x = some(t, 2, 3);
    hw_tape_reset(t, HW_GRADIENTS);
    hw_scale(t, x, 2);
}
static void stale_loss(hw_tape *t)
{
    hw_tensor *loss = hw_sum(t, some(t, 2, 3));
    hw_tape_reset(t, HW_GRADIENTS);
    hw_backward(t, loss, 1);
}
static void other_tape(hw_tape *t) { hw_scale(t, some(hw_tape_new(), 2, 3), 2); }
static void no_number(hw_tape *t) { hw_backward(t, hw_scale(t, some(t, 2, 3), 2), 1); }
static void inference(hw_tape *t)
{
    hw_tape_reset(t, HW_INFERENCE);
    hw_backward(t, hw_sum(t, some(t, 2, 3)), 1);
}
static void add_shapes(hw_tape *t) { hw_add(t, some(t, 2, 3), some(t, 3, 2)); }
static void linear_shapes(hw_tape *t)
{
    hw_linear(t, some(t, 2, 3), some(t, 4, 5), NULL, HW_IDENTITY, (hw_dropout){0});
}
static void matmul_shapes(hw_tape *t) { hw_matmul(t, some(t, 2, 3), some(t, 2, 3), false, false); }
static void norm_shapes(hw_tape *t) { hw_layer_norm(t, some(t, 2, 3), some(t, 1, 4), some(t, 1, 3)); }
static void gate_shapes(hw_tape *t) { hw_gate(t, some(t, 2, 6), some(t, 2, 4), NULL); }
static void gather_range(hw_tape *t) { hw_gather(t, some(t, 2, 3), (const int64_t[]){0, 2}, 2); }
static void slice_range(hw_tape *t) { hw_slice(t, some(t, 2, 3), 2, 2); }
static void reshape_size(hw_tape *t) { hw_reshape(t, some(t, 2, 3), 1, (const int64_t[]){7}); }
static void token_range(hw_tape *t)
{
    hw_embedding(t, some(t, 4, 2), (const int32_t[]){4}, NULL, 1, 1, 0, (hw_dropout){0});
}
static void attention_keys(hw_tape *t)
{
    const int64_t start[] = {0, 2}, length[] = {2, 2};
    hw_attention_options o = {.heads = 1, .head_width = 2, .queries = {1, start, length}, .keys = {2, start, length}};
    hw_attention(t, some(t, 4, 2), some(t, 4, 2), some(t, 4, 2), &o, NULL);
}
static void attention_rows(hw_tape *t)
{
    const int64_t start[] = {0, 2}, length[] = {2, 3};
    hw_attention_options o = {.heads = 1, .head_width = 2, .queries = {2, start, length}, .keys = {2, start, length}};
    hw_attention(t, some(t, 4, 2), some(t, 4, 2), some(t, 4, 2), &o, NULL);
}
static void loss_factor(hw_tape *t)
{
    hw_tensor *loss =
        hw_cross_entropy(t, some(t, 1, 2), some(t, 3, 2), some(t, 1, 3), (const int32_t[]){1}, 0, 1, NULL, NULL);
    hw_backward(t, hw_scale(t, loss, 2), 1);
}

static const struct {
    void (*misuse)(hw_tape *t);
    const char *message; /* what standard error must hold */
} misuses[] = {
    {backward_twice, "headwise: decoder.1.test: backward: called twice in one step; hw_tape_reset begins the next"},
    {forward_after_backward, "decoder.1.test: scale: the tape went backward already"},
    {stale_tensor, "scale: an input is from before the last hw_tape_reset"},
    {stale_loss, "backward: the loss does not come from this step"},
    {other_tape, "decoder.1.test: scale: an input was computed on another tape"},
    {no_number, "decoder.1.test: backward: the loss has shape [2, 3], one number was expected"},
    {inference, "backward: the tape records nothing in HW_INFERENCE"},
    {add_shapes, "decoder.1.test: add: shapes [2, 3] and [3, 2] differ"},
    {linear_shapes, "decoder.1.test: linear: input [2, 3] does not fit weight [4, 5]"},
    {matmul_shapes, "decoder.1.test: matmul: inner sizes 3 and 2 differ"},
    {norm_shapes, "decoder.1.test: layer_norm: gamma [1, 4] does not fit rows of [2, 3]"},
    {gate_shapes, "decoder.1.test: gate: gates [2, 4] do not fit heads [2, 6]"},
    {gather_range, "decoder.1.test: gather: row 2 of 2"},
    {slice_range, "decoder.1.test: slice: columns 2 to 4 of 3"},
    {reshape_size, "decoder.1.test: reshape: shape [2, 3] has not as many numbers as [7]"},
    {token_range, "decoder.1.test: embedding: token 4 of a vocabulary of 4"},
    {attention_keys, "decoder.1.test: attention: queries of 1 sentences, keys of 2"},
    {attention_rows, "decoder.1.test: attention: queries of sentence 1 are rows 2 to 5 of 4"},
    {loss_factor, "decoder.1.test: the gradient of the loss must be 1 (it is 2)"},
};

START_TEST(misuse_is_a_message)
{
    int fd[2];
    ck_assert_int_eq(pipe(fd), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(fd[1], 2);
        hw_tape *t = hw_tape_new();
        hw_tape_reset(t, HW_GRADIENTS);
        hw_tape_scope(t, "decoder.1.test");
        misuses[_i].misuse(t);
        _exit(0);
    }
    close(fd[1]);
    char text[1024] = "";
    size_t used = 0;
    for (ssize_t n; used < sizeof text - 1 && (n = read(fd[0], text + used, sizeof text - 1 - used)) > 0;)
        used += (size_t)n;
    close(fd[0]);
    int status;
    waitpid(child, &status, 0);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %d, said: %s", status, text);
    ck_assert_msg(strstr(text, misuses[_i].message), "said: %s\nexpected: %s", text, misuses[_i].message);
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------------------------------ */

START_TEST(steady_step_calls_no_malloc)
{
    hw_tape *t = hw_tape_new();
    int64_t mallocs = 0;
    for (int step = 0; step < 5; step++) {
        hw_tape_reset(t, HW_GRADIENTS);
        hw_tensor *x = some(t, 300, 40), *w = some(t, 40, 40);
        for (int i = 0; i < 300; i++) x = hw_linear(t, x, w, NULL, HW_GELU, (hw_dropout){0});
        hw_backward(t, hw_sum(t, x), 1);
        if (step == 1) mallocs = hw_arena_mallocs(hw_tape_arena(t));
    }
    ck_assert_int_eq(hw_arena_mallocs(hw_tape_arena(t)), mallocs);
    hw_tape_free(t);
}
END_TEST

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* The textbook's: every score, -1e9 added above the diagonal where causal, softmax, weighted sum. */
static void textbook(const hw_tensor *q, const hw_tensor *k, const hw_tensor *v, int64_t heads, int64_t width,
                     bool causal, double *weights, double *out)
{
    int64_t n = q->shape[0], m = k->shape[0];
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < n; i++) {
            double *a = weights + (h * n + i) * m, most = -INFINITY, total = 0;
            for (int64_t j = 0; j < m; j++) {
                a[j] = causal && j > i + m - n ? -1e9 : 0;
                for (int64_t d = 0; d < width; d++)
                    a[j] += (double)q->data[i * heads * width + h * width + d] *
                            (double)k->data[j * heads * width + h * width + d] / sqrt((double)width);
                most = fmax(most, a[j]);
            }
            for (int64_t j = 0; j < m; j++) total += a[j] = exp(a[j] - most);
            for (int64_t j = 0; j < m; j++) a[j] /= total;
            for (int64_t d = 0; d < width; d++) {
                double sum = 0;
                for (int64_t j = 0; j < m; j++) sum += a[j] * (double)v->data[j * heads * width + h * width + d];
                out[i * heads * width + h * width + d] = sum;
            }
        }
}

static const struct {
    int64_t n, m, heads, width;
    bool causal;
} shapes[] = {{1, 1, 1, 2, true},     {1, 9, 2, 3, false},    {5, 5, 4, 16, true},
              {12, 17, 4, 16, false}, {33, 33, 2, 5, true},   {3, 20, 2, 16, true},
              {40, 3, 1, 64, false},  {200, 200, 1, 8, true}, {16, 130, 3, 24, false}};

START_TEST(attention_is_the_textbook_s)
{
    hw_tape *t = hw_tape_new();
    hw_tape_reset(t, HW_INFERENCE);
    int64_t n = shapes[_i].n, m = shapes[_i].m, heads = shapes[_i].heads, width = shapes[_i].width, zero = 0;
    hw_tensor *q = some(t, n, heads * width), *k = some(t, m, heads * width), *v = some(t, m, heads * width), *weights;
    hw_attention_options o = {.heads = heads,
                              .head_width = width,
                              .queries = {1, &zero, &n},
                              .keys = {1, &zero, &m},
                              .causal = shapes[_i].causal};
    hw_tensor *y = hw_attention(t, q, k, v, &o, &weights);
    double *want = hw_arena_alloc(hw_tape_arena(t), (size_t)(heads * n * m + n * heads * width) * sizeof *want);
    double *out = want + heads * n * m, tolerance = sizeof(hw_real) == 8 ? 1e-13 : 2e-6;
    textbook(q, k, v, heads, width, shapes[_i].causal, want, out);
    for (int64_t i = 0; i < heads * n * m; i++) ck_assert_double_eq_tol((double)weights->data[i], want[i], tolerance);
    for (int64_t i = 0; i < n * heads * width; i++) ck_assert_double_eq_tol((double)y->data[i], out[i], 10 * tolerance);
    hw_tape_free(t);
}
END_TEST

START_TEST(sharpness_0_is_uniform)
{
    hw_tape *t = hw_tape_new();
    hw_tape_reset(t, HW_INFERENCE);
    const int64_t zero = 0, n = 4;
    const hw_real sharpness[] = {0};
    hw_tensor *x = some(t, n, 6), *weights;
    hw_attention_options o = {.heads = 1,
                              .head_width = 2,
                              .queries = {1, &zero, &n},
                              .keys = {1, &zero, &n},
                              .key_column = 2,
                              .value_column = 4,
                              .causal = true,
                              .sharpness = sharpness};
    hw_attention(t, x, x, x, &o, &weights);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            ck_assert_double_eq_tol((double)weights->data[i * n + j], j <= i ? 1 / (double)(i + 1) : 0, 1e-7);
    hw_tape_free(t);
}
END_TEST

/* With many tokens only a few rows of logits are in memory at once: the gradients must not tell where blocks end. */
START_TEST(cross_entropy_has_no_seams)
{
    enum { ROWS = 30, WIDTH = 4, TOKENS = 60000 }; /* 12 rows a block at most */
    hw_tape *whole = hw_tape_new(), *single = hw_tape_new();
    hw_tape_reset(whole, HW_GRADIENTS);
    hw_tape_reset(single, HW_GRADIENTS);
    int32_t targets[ROWS];
    int64_t places[ROWS];
    for (int r = 0; r < ROWS; r++) targets[r] = (int32_t)(places[r] = r) * 1999;
    hw_tensor *in[2][3], *loss[2] = {NULL};
    hw_loss_count count[2] = {{0}};
    hw_real nll[2][ROWS];
    for (int k = 0; k < 2; k++) {
        hw_tape *t = k ? single : whole;
        in[k][0] = some(t, ROWS, WIDTH);
        in[k][1] = some(t, TOKENS, WIDTH);
        in[k][2] = some(t, 1, TOKENS);
    }
    const hw_real smoothing = (hw_real)0.1, scale = (hw_real)0.5;
    loss[0] = hw_cross_entropy(whole, in[0][0], in[0][1], in[0][2], targets, smoothing, scale, &count[0], nll[0]);
    for (int r = 0; r < ROWS; r++) {
        hw_tensor *row = hw_gather(single, in[1][0], &places[r], 1);
        hw_tensor *x = hw_cross_entropy(single, row, in[1][1], in[1][2], &targets[r], smoothing, scale, &count[1],
                                        &nll[1][r]);
        loss[1] = r ? hw_add(single, loss[1], x) : x;
    }
    hw_backward(whole, loss[0], 1);
    hw_backward(single, loss[1], 1);
    ck_assert_double_eq_tol(count[0].loss, count[1].loss, 1e-6 * fabs(count[1].loss));
    ck_assert_int_eq(count[0].tokens, ROWS);
    for (int r = 0; r < ROWS; r++) ck_assert_double_eq_tol((double)nll[0][r], (double)nll[1][r], 1e-4);
    for (int i = 0; i < 3; i++)
        for (int64_t j = 0; j < hw_tensor_size(in[0][i]); j++)
            ck_assert_msg(fabs((double)(in[0][i]->grad[j] - in[1][i]->grad[j])) < 1e-5, "input %d, %lld: %g, %g", i,
                          (long long)j, (double)in[0][i]->grad[j], (double)in[1][i]->grad[j]);
    hw_tape_free(whole);
    hw_tape_free(single);
}
END_TEST

Suite *test_autograd(void)
{
    Suite *s = suite_create("autograd");
    TCase *tc = tcase_create("autograd");
    tcase_add_loop_test(tc, misuse_is_a_message, 0, sizeof misuses / sizeof *misuses);
    tcase_add_test(tc, steady_step_calls_no_malloc);
    tcase_add_loop_test(tc, attention_is_the_textbook_s, 0, sizeof shapes / sizeof *shapes);
    tcase_add_test(tc, sharpness_0_is_uniform);
    tcase_add_test(tc, cross_entropy_has_no_seams);
    suite_add_tcase(s, tc);
    return s;
}
