/* Gradients against finite differences: one table with a row for every op, every layer, and the ways an op can be used.
 *
 * The loss is sum(w y) with fixed random w (equal ones would hide wrong softmax and layer-norm gradients). Each number
 * of each input is moved by -2h, -h, h, 2h and the four-point stencil is held against what hw_backward gives, relative
 * to the larger of the two, a thousandth of the tensor's largest gradient, and a thousandth. In double; the float build
 * checks that the table is complete. */
#include <check.h>
#include <math.h>
#include <string.h>

#include <headwise/nn.h>

Suite *test_gradient(void);

enum { MAX_IN = 8 };

typedef struct gradient_case {
    const char *name, *op; /* op: the one it stands for; NULL: a layer */
    int64_t shapes[MAX_IN][2];
    hw_tensor *(*build)(hw_tape *t, hw_tensor **in);
    int zero; /* 1 + the input whose gradient is exactly zero; 0: none */
} gradient_case;

static const hw_dropout off = {.scale = 1};
static hw_dropout some_dropout(void) { return hw_dropout_new(0.3, 7, 3, 11); }

/* ---- what is checked --------------------------------------------------------------------------------------------- */

static hw_tensor *add(hw_tape *t, hw_tensor **in) { return hw_add(t, in[0], in[1]); }
static hw_tensor *add_twice(hw_tape *t, hw_tensor **in) { return hw_add(t, in[0], in[0]); }
static hw_tensor *scale(hw_tape *t, hw_tensor **in) { return hw_scale(t, in[0], (hw_real)-1.7); }
static hw_tensor *multiply(hw_tape *t, hw_tensor **in) { return hw_multiply(t, in[0], in[1]); }
static hw_tensor *square(hw_tape *t, hw_tensor **in) { return hw_multiply(t, in[0], in[0]); }
static hw_tensor *relu(hw_tape *t, hw_tensor **in) { return hw_activate(t, in[0], HW_RELU); }
static hw_tensor *gelu(hw_tape *t, hw_tensor **in) { return hw_activate(t, in[0], HW_GELU); }
static hw_tensor *swish(hw_tape *t, hw_tensor **in) { return hw_activate(t, in[0], HW_SWISH); }
static hw_tensor *dropout(hw_tape *t, hw_tensor **in) { return hw_dropout_apply(t, in[0], some_dropout()); }
static hw_tensor *reshape(hw_tape *t, hw_tensor **in)
{
    hw_tensor *y = hw_reshape(t, in[0], 3, (int64_t[]){2, 3, 2});
    return hw_add(t, hw_reshape(t, y, 2, (int64_t[]){3, 4}), in[0]);
}
static hw_tensor *slice(hw_tape *t, hw_tensor **in)
{
    return hw_add(t, hw_slice(t, in[0], 1, 3), hw_slice(t, in[0], 2, 3));
}
static hw_tensor *concatenate(hw_tape *t, hw_tensor **in) { return hw_concatenate(t, 3, in); }
static hw_tensor *gather(hw_tape *t, hw_tensor **in)
{
    static const int64_t rows[] = {2, 0, 2, 3, 2};
    return hw_gather(t, in[0], rows, 5);
}
static hw_tensor *sum(hw_tape *t, hw_tensor **in) { return hw_multiply(t, hw_sum(t, in[0]), hw_sum(t, in[0])); }
static hw_tensor *row_dot(hw_tape *t, hw_tensor **in) { return hw_row_dot(t, in[0], in[1]); }
static hw_tensor *row_norm(hw_tape *t, hw_tensor **in) { return hw_row_norm(t, in[0], (hw_real)1e-3); }
static hw_tensor *matmul(hw_tape *t, hw_tensor **in) { return hw_matmul(t, in[0], in[1], false, false); }
static hw_tensor *matmul_ta(hw_tape *t, hw_tensor **in) { return hw_matmul(t, in[0], in[1], true, false); }
static hw_tensor *matmul_tb(hw_tape *t, hw_tensor **in) { return hw_matmul(t, in[0], in[1], false, true); }
static hw_tensor *matmul_tt(hw_tape *t, hw_tensor **in) { return hw_matmul(t, in[0], in[1], true, true); }
static hw_tensor *linear(hw_tape *t, hw_tensor **in) { return hw_linear(t, in[0], in[1], in[2], HW_IDENTITY, off); }
static hw_tensor *linear_plain(hw_tape *t, hw_tensor **in)
{
    return hw_linear(t, in[0], in[1], NULL, HW_IDENTITY, off);
}
static hw_tensor *linear_gelu(hw_tape *t, hw_tensor **in)
{
    return hw_linear(t, in[0], in[1], in[2], HW_GELU, some_dropout());
}
static hw_tensor *linear_swish(hw_tape *t, hw_tensor **in) { return hw_linear(t, in[0], in[1], in[2], HW_SWISH, off); }
static hw_tensor *linear_relu(hw_tape *t,
                              hw_tensor **in) /* every |pre-activation| is over 1: the bias decides its sign */
{
    hw_tensor *x = hw_scale(t, in[0], (hw_real)0.1);
    hw_tensor *b = hw_tape_matrix(t, 1, 5, (const hw_real[]){3, -3, 3, 3, -3}, false);
    return hw_linear(t, x, in[1], hw_add(t, b, in[2]), HW_RELU, some_dropout());
}
static hw_tensor *embedding(hw_tape *t, hw_tensor **in)
{
    static const int32_t ids[] = {3, 0, 3, 1}, positions[] = {0, 1, 2, 600};
    return hw_embedding(t, in[0], ids, positions, 4, 2, 5, some_dropout());
}
static hw_tensor *softmax(hw_tape *t, hw_tensor **in) { return hw_softmax(t, in[0]); }
static hw_tensor *log_softmax(hw_tape *t, hw_tensor **in) { return hw_log_softmax(t, in[0]); }
static hw_tensor *layer_norm(hw_tape *t, hw_tensor **in) { return hw_layer_norm(t, in[0], in[1], in[2]); }
static hw_tensor *residual(hw_tape *t, hw_tensor **in) { return hw_residual(t, in[0], in[1], some_dropout()); }
static hw_tensor *residual_norm(hw_tape *t, hw_tensor **in)
{
    return hw_residual_layer_norm(t, in[0], in[1], in[2], in[3], some_dropout());
}
static hw_tensor *residual_norm_itself(hw_tape *t, hw_tensor **in)
{
    return hw_residual_layer_norm(t, in[0], in[0], in[1], in[2], off);
}

/* Three sentences of 3, 1 and 4 queries over 2, 1 and 4 keys. */
static const int64_t q_start[] = {0, 3, 4}, q_length[] = {3, 1, 4}, k_start[] = {0, 2, 3}, k_length[] = {2, 1, 4};
static const hw_segments queries = {3, q_start, q_length}, keys = {3, k_start, k_length};

static hw_tensor *cross(hw_tape *t, hw_tensor **in)
{
    hw_attention_options o = {.heads = 2, .head_width = 3, .queries = queries, .keys = keys, .drop = off};
    return hw_attention(t, in[0], in[1], in[2], &o, NULL);
}
static hw_tensor *masked(hw_tape *t, hw_tensor **in) /* one tensor for all three, with dropout */
{
    hw_attention_options o = {.heads = 2,
                              .head_width = 3,
                              .queries = queries,
                              .keys = queries,
                              .key_column = 6,
                              .value_column = 12,
                              .causal = true,
                              .drop = some_dropout()};
    return hw_attention(t, in[0], in[0], in[0], &o, NULL);
}
static hw_tensor *weights_l2(hw_tape *t, hw_tensor **in) /* an L2 loss on the weights alone */
{
    hw_tensor *weights;
    hw_attention_options o = {.heads = 2, .head_width = 3, .queries = queries, .keys = keys, .drop = off};
    hw_attention(t, in[0], in[1], in[2], &o, &weights);
    return hw_sum(t, hw_multiply(t, weights, weights));
}
static hw_tensor *weights_and_heads(hw_tape *t, hw_tensor **in)
{
    static const hw_real sharpness[] = {2, 0.5};
    hw_tensor *weights;
    hw_attention_options o = {.heads = 2,
                              .head_width = 3,
                              .queries = queries,
                              .keys = queries,
                              .key_column = 6,
                              .value_column = 12,
                              .causal = true,
                              .drop = some_dropout(),
                              .sharpness = sharpness};
    hw_tensor *y = hw_attention(t, in[0], in[0], in[0], &o, &weights);
    hw_tensor *l2 = hw_sum(t, hw_multiply(t, weights, weights));
    return hw_concatenate(
        t, 2, (hw_tensor *[]){hw_reshape(t, y, 2, (int64_t[]){1, 48}), hw_reshape(t, l2, 2, (int64_t[]){1, 1})});
}
static hw_tensor *long_attention(hw_tape *t, hw_tensor **in) /* 150 queries over 150 keys: weights are computed again */
{
    static const int64_t start[] = {0}, length[] = {150};
    const hw_segments s = {1, start, length};
    int64_t *rows = hw_arena_alloc(hw_tape_arena(t), 150 * sizeof *rows);
    for (int64_t i = 0; i < 150; i++) rows[i] = i % 5;
    hw_tensor *x = hw_gather(t, in[0], rows, 150);
    hw_attention_options o = {.heads = 1,
                              .head_width = 2,
                              .queries = s,
                              .keys = s,
                              .key_column = 2,
                              .value_column = 4,
                              .causal = true,
                              .drop = some_dropout()};
    return hw_attention(t, x, x, x, &o, NULL);
}
static hw_tensor *gate(hw_tape *t, hw_tensor **in)
{
    static const hw_real otherwise[] = {(hw_real)0.3, -1, 2, (hw_real)0.7, (hw_real)-0.2, 1};
    return hw_add(t, hw_gate(t, in[0], in[1], otherwise), hw_gate(t, in[0], in[1], NULL));
}
static hw_tensor *head_cosine(hw_tape *t, hw_tensor **in) { return hw_head_cosine(t, in[0], 1, 3, 2, false, false); }
static hw_tensor *head_cosine_all(hw_tape *t, hw_tensor **in) { return hw_head_cosine(t, in[0], 1, 3, 2, true, false); }
static hw_tensor *head_cosine_squared(hw_tape *t, hw_tensor **in)
{
    return hw_head_cosine(t, in[0], 0, 2, 3, false, true);
}
/* The weights of two heads, of masked or cross-attention, and how they are laid out. */
static hw_tensor *weights_of(hw_tape *t, hw_tensor **in, bool causal, hw_attention_blocks *blocks)
{
    hw_tensor *weights, *key = causal ? in[0] : in[1];
    hw_attention_options o = {.heads = 2, .head_width = 3, .queries = queries, .keys = causal ? queries : keys,
                              .causal = causal, .drop = off};
    hw_attention(t, in[0], key, key, &o, &weights);
    *blocks = (hw_attention_blocks){2, o.queries, o.keys, causal};
    return weights;
}
static hw_tensor *head_overlap(hw_tape *t, hw_tensor **in)
{
    hw_attention_blocks b;
    hw_tensor *weights = weights_of(t, in, false, &b);
    return hw_head_overlap(t, weights, &b, false);
}
static hw_tensor *head_overlap_all(hw_tape *t, hw_tensor **in)
{
    hw_attention_blocks b;
    hw_tensor *weights = weights_of(t, in, true, &b);
    return hw_head_overlap(t, weights, &b, true);
}
static hw_tensor *head_orthogonal(hw_tape *t, hw_tensor **in)
{
    hw_attention_blocks b;
    hw_tensor *weights = weights_of(t, in, false, &b);
    return hw_head_orthogonal(t, weights, &b);
}
static hw_tensor *head_entropy(hw_tape *t, hw_tensor **in)
{
    hw_attention_blocks b;
    hw_tensor *weights = weights_of(t, in, true, &b);
    return hw_head_entropy(t, weights, &b);
}
/* Rows with one wanted key, two, all, and none. */
static hw_tensor *head_targets(hw_tape *t, hw_tensor **in)
{
    static const int64_t first[] = {0, 1, 1, 3, 4, 6, 6, 10, 11};
    static const int32_t wanted[] = {1, 0, 1, 0, 3, 1, 0, 1, 2, 3, 2};
    hw_attention_blocks b;
    hw_tensor *weights = weights_of(t, in, false, &b);
    return hw_head_targets(t, weights, &b, 1, first, wanted);
}
static hw_tensor *hard_concrete(hw_tape *t, hw_tensor **in) /* no gate within reach of 0 or 1 but the last, which is 1 */
{
    static const hw_real noise[] = {(hw_real)0.4, (hw_real)0.5, (hw_real)0.6, (hw_real)0.45, (hw_real)0.55, (hw_real)0.999};
    return hw_hard_concrete(t, in[0], noise);
}
static hw_tensor *hard_concrete_evaluated(hw_tape *t, hw_tensor **in) { return hw_hard_concrete(t, in[0], NULL); }
static hw_tensor *hard_concrete_open(hw_tape *t, hw_tensor **in) { return hw_hard_concrete_open(t, in[0]); }
static const int32_t targets[] = {1, 4, 0, 4};
static hw_tensor *cross_entropy(hw_tape *t, hw_tensor **in)
{
    return hw_cross_entropy(t, in[0], in[1], in[2], targets, (hw_real)0.1, (hw_real)0.25, NULL, NULL);
}
static hw_tensor *cross_entropy_and_more(hw_tape *t, hw_tensor **in)
{
    hw_tensor *loss = hw_cross_entropy(t, in[0], in[1], in[2], targets, 0, 1, NULL, NULL);
    return hw_add(t, loss, hw_sum(t, hw_multiply(t, in[0], in[0])));
}

/* Layers of width 4 with 2 heads. */
static hw_add_norm norm_of(hw_tensor **in, bool pre)
{
    return (hw_add_norm){.norm = {"norm", in[0], in[1]}, .pre = pre, .residual = {0.2, 5}};
}
static hw_tensor *self_layer(hw_tape *t, hw_tensor **in, bool pre, bool causal, const hw_head_setting *setting)
{
    hw_attention_layer a = {.scope = "layer",
                            .name = "encoder.0.self",
                            .heads = 2,
                            .head_width = 2,
                            .query_weight = in[1],
                            .query_bias = in[2],
                            .output_weight = in[3],
                            .output_bias = in[4],
                            .add_norm = norm_of(in + 5, pre),
                            .weights = {0.2, 6}};
    hw_pass pass = {.tape = t, .settings = setting};
    return hw_self_attention(&pass, &a, in[0], queries, causal, NULL);
}
static hw_tensor *self_post(hw_tape *t, hw_tensor **in) { return self_layer(t, in, false, false, NULL); }
static hw_tensor *self_pre(hw_tape *t, hw_tensor **in) { return self_layer(t, in, true, true, NULL); }
static hw_tensor *self_gated(hw_tape *t, hw_tensor **in)
{
    hw_head_setting setting = {.trained_gate = in[7]};
    return self_layer(t, in, false, false, &setting);
}
static hw_tensor *cross_layer(hw_tape *t, hw_tensor **in, bool pre)
{
    hw_attention_layer a = {.scope = "layer",
                            .name = "decoder.0.cross",
                            .heads = 2,
                            .head_width = 2,
                            .query_weight = in[2],
                            .query_bias = in[3],
                            .output_weight = in[4],
                            .output_bias = in[5],
                            .add_norm = norm_of(in + 6, pre),
                            .weights = {0.2, 6}};
    hw_pass pass = {.tape = t};
    return hw_cross_attention(&pass, &a, in[0], queries, in[1], 1, 5, keys);
}
static hw_tensor *cross_post(hw_tape *t, hw_tensor **in) { return cross_layer(t, in, false); }
static hw_tensor *cross_pre(hw_tape *t, hw_tensor **in) { return cross_layer(t, in, true); }
static hw_tensor *feed_forward(hw_tape *t, hw_tensor **in, hw_activation f, bool pre)
{
    hw_feed_forward_layer l = {.scope = "layer",
                               .expand_weight = in[1],
                               .expand_bias = in[2],
                               .contract_weight = in[3],
                               .contract_bias = in[4],
                               .activation = f,
                               .add_norm = norm_of(in + 5, pre),
                               .inner = {0.2, 8}};
    hw_pass pass = {.tape = t};
    return hw_feed_forward(&pass, &l, in[0]);
}
static hw_tensor *feed_forward_gelu(hw_tape *t, hw_tensor **in) { return feed_forward(t, in, HW_GELU, false); }
static hw_tensor *feed_forward_swish(hw_tape *t, hw_tensor **in) { return feed_forward(t, in, HW_SWISH, true); }
static hw_tensor *feed_forward_relu(hw_tape *t, hw_tensor **in) /* biases of +-3 keep away from the kink */
{
    hw_tensor *b = hw_tape_matrix(t, 1, 3, (const hw_real[]){4, -4, 4}, false);
    hw_tensor *moved[7] = {in[0], hw_scale(t, in[1], (hw_real)0.3), hw_add(t, b, in[2]), in[3], in[4], in[5], in[6]};
    return feed_forward(t, moved, HW_RELU, false);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const gradient_case cases[] = {
    {"add", "add", {{3, 4}, {3, 4}}, add, 0},
    {"add: one tensor twice", "add", {{3, 4}}, add_twice, 0},
    {"scale", "scale", {{3, 4}}, scale, 0},
    {"multiply", "multiply", {{3, 4}, {3, 4}}, multiply, 0},
    {"multiply: a square", "multiply", {{3, 4}}, square, 0},
    {"activate: relu", "activate", {{3, 4}}, relu, 0},
    {"activate: gelu", "activate", {{3, 4}}, gelu, 0},
    {"activate: swish", "activate", {{3, 4}}, swish, 0},
    {"dropout", "dropout", {{5, 7}}, dropout, 0},
    {"reshape", "reshape", {{3, 4}}, reshape, 0},
    {"slice", "slice", {{3, 5}}, slice, 0},
    {"concatenate", "concatenate", {{3, 2}, {3, 1}, {3, 4}}, concatenate, 0},
    {"gather", "gather", {{4, 3}}, gather, 0},
    {"sum", "sum", {{3, 4}}, sum, 0},
    {"row_dot", "row_dot", {{3, 4}, {3, 4}}, row_dot, 0},
    {"row_norm", "row_norm", {{3, 4}}, row_norm, 0},
    {"matmul", "matmul", {{3, 4}, {4, 5}}, matmul, 0},
    {"matmul: A'B", "matmul", {{4, 3}, {4, 5}}, matmul_ta, 0},
    {"matmul: AB'", "matmul", {{3, 4}, {5, 4}}, matmul_tb, 0},
    {"matmul: A'B'", "matmul", {{4, 3}, {5, 4}}, matmul_tt, 0},
    {"linear", "linear", {{3, 4}, {5, 4}, {1, 5}}, linear, 0},
    {"linear: no bias", "linear", {{3, 4}, {5, 4}}, linear_plain, 0},
    {"linear: relu, dropout", "linear", {{3, 4}, {5, 4}, {1, 5}}, linear_relu, 0},
    {"linear: gelu, dropout", "linear", {{3, 4}, {5, 4}, {1, 5}}, linear_gelu, 0},
    {"linear: swish", "linear", {{3, 4}, {5, 4}, {1, 5}}, linear_swish, 0},
    {"embedding", "embedding", {{5, 6}}, embedding, 0},
    {"softmax", "softmax", {{3, 5}}, softmax, 0},
    {"log_softmax", "log_softmax", {{3, 5}}, log_softmax, 0},
    {"layer_norm", "layer_norm", {{3, 5}, {1, 5}, {1, 5}}, layer_norm, 0},
    {"residual", "residual", {{3, 5}, {3, 5}}, residual, 0},
    {"residual_layer_norm", "residual_layer_norm", {{3, 5}, {3, 5}, {1, 5}, {1, 5}}, residual_norm, 0},
    {"residual_layer_norm: x is its own branch",
     "residual_layer_norm",
     {{3, 5}, {1, 5}, {1, 5}},
     residual_norm_itself,
     0},
    {"attention: cross", "attention", {{8, 6}, {7, 6}, {7, 6}}, cross, 0},
    {"attention: causal, fused, dropout", "attention", {{8, 18}}, masked, 0},
    {"attention: L2 of the weights", "attention", {{8, 6}, {7, 6}, {7, 6}}, weights_l2, 0},
    {"attention: weights and heads", "attention", {{8, 18}}, weights_and_heads, 0},
    {"attention: long, computed again", "attention", {{5, 6}}, long_attention, 0},
    {"gate: dL/dxi a query row", "gate", {{4, 6}, {4, 2}}, gate, 0},
    {"head_cosine", "head_cosine", {{4, 8}}, head_cosine, 0},
    {"head_cosine: i = j too", "head_cosine", {{4, 8}}, head_cosine_all, 0},
    {"head_cosine: squared", "head_cosine", {{4, 6}}, head_cosine_squared, 0},
    {"head_overlap", "head_overlap", {{8, 6}, {7, 6}}, head_overlap, 0},
    {"head_overlap: i = j too, causal", "head_overlap", {{8, 6}}, head_overlap_all, 0},
    {"head_orthogonal", "head_orthogonal", {{8, 6}, {7, 6}}, head_orthogonal, 0},
    {"head_entropy: causal", "head_entropy", {{8, 6}}, head_entropy, 0},
    {"head_targets", "head_targets", {{8, 6}, {7, 6}}, head_targets, 0},
    {"hard_concrete", "hard_concrete", {{1, 6}}, hard_concrete, 0},
    {"hard_concrete: evaluated", "hard_concrete", {{2, 3}}, hard_concrete_evaluated, 0},
    {"hard_concrete_open", "hard_concrete_open", {{2, 3}}, hard_concrete_open, 0},
    {"cross_entropy", "cross_entropy", {{4, 3}, {5, 3}, {1, 5}}, cross_entropy, 0},
    {"cross_entropy with another term", "cross_entropy", {{4, 3}, {5, 3}, {1, 5}}, cross_entropy_and_more, 0},
    {"layer: self-attention, post", NULL, {{8, 4}, {12, 4}, {1, 12}, {4, 4}, {1, 4}, {1, 4}, {1, 4}}, self_post, 3},
    {"layer: self-attention, pre, causal",
     NULL,
     {{8, 4}, {12, 4}, {1, 12}, {4, 4}, {1, 4}, {1, 4}, {1, 4}},
     self_pre,
     3},
    {"layer: self-attention, trained gates",
     NULL,
     {{8, 4}, {12, 4}, {1, 12}, {4, 4}, {1, 4}, {1, 4}, {1, 4}, {1, 2}},
     self_gated,
     3},
    {"layer: cross-attention, post",
     NULL,
     {{8, 4}, {7, 9}, {4, 4}, {1, 4}, {4, 4}, {1, 4}, {1, 4}, {1, 4}},
     cross_post,
     0},
    {"layer: cross-attention, pre",
     NULL,
     {{8, 4}, {7, 9}, {4, 4}, {1, 4}, {4, 4}, {1, 4}, {1, 4}, {1, 4}},
     cross_pre,
     0},
    {"layer: feed-forward, relu", NULL, {{8, 4}, {3, 4}, {1, 3}, {4, 3}, {1, 4}, {1, 4}, {1, 4}}, feed_forward_relu, 0},
    {"layer: feed-forward, gelu", NULL, {{8, 4}, {3, 4}, {1, 3}, {4, 3}, {1, 4}, {1, 4}, {1, 4}}, feed_forward_gelu, 0},
    {"layer: feed-forward, swish, pre",
     NULL,
     {{8, 4}, {3, 4}, {1, 3}, {4, 3}, {1, 4}, {1, 4}, {1, 4}},
     feed_forward_swish,
     0},
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- the method -------------------------------------------------------------------------------------------------- */

typedef struct inputs {
    int count;
    int64_t size[MAX_IN];
    hw_real values[MAX_IN][256], grads[MAX_IN][256];
} inputs;

static void fill(inputs *x, const gradient_case *c)
{
    hw_random random = hw_random_new(42, (uint64_t)(c - cases));
    memset(x, 0, sizeof *x);
    while (x->count < MAX_IN && c->shapes[x->count][0]) {
        int i = x->count++;
        x->size[i] = c->shapes[i][0] * c->shapes[i][1];
        ck_assert_int_le(x->size[i], 256);
        for (int64_t j = 0; j < x->size[i]; j++) { /* in -1.05 .. -0.05 and 0.05 .. 1.05 */
            double u = 2 * hw_random_uniform(&random) - 1;
            x->values[i][j] = (hw_real)(u + (u < 0 ? -0.05 : 0.05));
        }
    }
}

/* The loss; with before, gradients are taken too: on top of *before in every place, or from nothing where it is 0. */
static double run(hw_tape *t, const gradient_case *c, inputs *x, const hw_real *before)
{
    hw_tape_reset(t, HW_TRAINING);
    hw_tape_dropout_key(t, 9, 4);
    hw_tensor *in[MAX_IN] = {NULL};
    for (int i = 0; i < x->count; i++) {
        in[i] = hw_tape_matrix(t, c->shapes[i][0], c->shapes[i][1], x->values[i], true);
        if (!before || *before == 0) continue;
        in[i]->grad = hw_arena_alloc(hw_tape_arena(t), (size_t)x->size[i] * sizeof(hw_real));
        for (int64_t j = 0; j < x->size[i]; j++) in[i]->grad[j] = *before;
    }
    hw_tensor *y = c->build(t, in);
    if (hw_tensor_size(y) > 1) {
        hw_random random = hw_random_new(1, 2);
        hw_tensor *w = hw_tape_tensor(t, y->rank, y->shape, false);
        for (int64_t j = 0; j < hw_tensor_size(w); j++) w->data[j] = (hw_real)(2 * hw_random_uniform(&random) - 1);
        y = hw_sum(t, hw_multiply(t, w, y));
    }
    double loss = (double)y->data[0];
    if (!before) return loss;
    hw_backward(t, y, 1);
    for (int i = 0; i < x->count; i++)
        for (int64_t j = 0; j < x->size[i]; j++) x->grads[i][j] = in[i]->grad ? in[i]->grad[j] - *before : 0;
    return loss;
}

static double stencil(hw_tape *t, const gradient_case *c, inputs *x, int i, int64_t j)
{
    static const double at[4] = {-2, -1, 1, 2}, factor[4] = {1, -8, 8, -1};
    const double h = 1e-3;
    hw_real kept = x->values[i][j];
    double sum_of = 0;
    for (int k = 0; k < 4; k++) {
        x->values[i][j] = (hw_real)((double)kept + at[k] * h);
        sum_of += factor[k] * run(t, c, x, NULL);
    }
    x->values[i][j] = kept;
    return sum_of / (12 * h);
}

static void compare(hw_tape *t, const gradient_case *c, inputs *x, hw_real before)
{
    run(t, c, x, &before);
    for (int i = 0; i < x->count; i++) {
        double largest = 0;
        for (int64_t j = 0; j < x->size[i]; j++) largest = fmax(largest, fabs((double)x->grads[i][j]));
        for (int64_t j = 0; j < x->size[i]; j++) {
            double a = (double)x->grads[i][j];
            if (c->zero == i + 1 && j >= x->size[i] / 3 && j < 2 * x->size[i] / 3) { /* the bias of Key */
                ck_assert_msg(fabs(a) < 1e-12, "%s: the gradient of Key's bias is %g, not 0", c->name, a);
                continue;
            }
            double n = stencil(t, c, x, i, j), floor = fmax(1e-3 * largest, 1e-3);
            double error = fabs(a - n) / fmax(fmax(fabs(a), fabs(n)), floor);
            ck_assert_msg(error <= 1e-6,
                          "%s, input %d, number %d: backward gives %.10g, differences %.10g (error %.2g)", c->name, i,
                          (int)j, a, n, error);
        }
    }
}

START_TEST(gradients_equal_differences)
{
    static inputs x;
    const gradient_case *c = &cases[_i];
    if (sizeof(hw_real) < 8) return; /* the float build has not the digits */
    hw_tape *t = hw_tape_new();
    fill(&x, c);
    compare(t, c, &x, 0);
    compare(t, c, &x, 7); /* backward adds to what is there */
    hw_tape_free(t);
}
END_TEST

START_TEST(every_op_has_a_case)
{
    for (int op = 0; op < hw_op_count(); op++) {
        bool found = false;
        for (int i = 0; i < CASES; i++) found |= cases[i].op && !strcmp(cases[i].op, hw_op_name(op));
        ck_assert_msg(found, "op %s has no gradient case", hw_op_name(op));
    }
}
END_TEST

Suite *test_gradient(void)
{
    Suite *s = suite_create("gradient");
    TCase *tc = tcase_create("gradient");
    tcase_add_loop_test(tc, gradients_equal_differences, 0, CASES);
    tcase_add_test(tc, every_op_has_a_case);
    suite_add_tcase(s, tc);
    return s;
}
