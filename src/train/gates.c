/* Gates of heads that training closes; see gates.h. */
#include "gates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "average.h"

enum { LOG_ALPHA, FIRST, SECOND };
static const hw_real BEGINNING = 2; /* log alpha at first: open 97 % of the time */

static int heads_of(const hw_gates *g, int attention)
{
    return (int)hw_transformer_attention(g->model, attention)->heads;
}

hw_gates *hw_gates_new(const hw_transformer *model, const hw_config *config)
{
    if (!(config->training.head_l0.weight > 0)) return NULL;
    hw_error err;
    hw_gates *g = calloc(1, sizeof *g);
    HW_CHECK(g, "no memory for gates");
    *g = (hw_gates){.model = model, .config = config, .tape = hw_tape_new()};
    g->first = calloc((size_t)model->attentions, sizeof *g->first);
    HW_CHECK(g->first, "no memory for gates");
    for (int a = 0; a < model->attentions; a++) {
        g->first[a] = g->heads;
        g->heads += heads_of(g, a);
    }
    for (int i = 0; i < 3; i++) g->values[i] = hw_numbers_new(g->heads);
    g->noise = hw_numbers_new(g->heads);
    for (int i = 0; i < g->heads; i++) g->values[LOG_ALPHA][i] = BEGINNING;
    g->network = hw_transformer_new(&model->options, false, &err);
    HW_CHECK(g->network, "%s", err.message);
    return g;
}

void hw_gates_free(hw_gates *g)
{
    if (!g) return;
    hw_transformer_free(g->network);
    hw_tape_free(g->tape);
    for (int i = 0; i < 3; i++) free(g->values[i]);
    free(g->noise);
    free(g->first);
    free(g);
}

void hw_gates_pass_init(const hw_gates *g, hw_gate_pass *p)
{
    p->settings = calloc((size_t)g->model->attentions, sizeof *p->settings);
    p->log_alpha = calloc((size_t)g->model->attentions, sizeof *p->log_alpha);
    p->gradients = hw_numbers_new(g->heads);
    HW_CHECK(p->settings && p->log_alpha, "no memory for gates");
}

void hw_gates_pass_clear(hw_gate_pass *p)
{
    free(p->settings);
    free(p->log_alpha);
    free(p->gradients);
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

void hw_gates_begin(hw_gates *g, int64_t step)
{
    hw_random random = hw_random_new((uint64_t)g->config->training.seed, 0x6761746573u << 24 | (uint64_t)step);
    for (int i = 0; i < g->heads; i++) { /* in float, too, never 0 or 1 */
        double u = hw_random_uniform(&random);
        g->noise[i] = (hw_real)(u < 1e-6 ? 1e-6 : u > 1 - 1e-6 ? 1 - 1e-6 : u);
    }
}

static hw_tensor *log_alpha_of(const hw_gates *g, hw_tape *tape, int attention)
{
    return hw_tape_matrix(tape, 1, heads_of(g, attention), g->values[LOG_ALPHA] + g->first[attention], true);
}

void hw_gates_apply(const hw_gates *g, hw_gate_pass *p, hw_tape *tape)
{
    for (int a = 0; a < g->model->attentions; a++) {
        p->log_alpha[a] = log_alpha_of(g, tape, a);
        p->settings[a].trained_gate = hw_hard_concrete(tape, p->log_alpha[a], g->noise + g->first[a]);
    }
}

void hw_gates_take(const hw_gates *g, hw_gate_pass *p)
{
    for (int a = 0; a < g->model->attentions; a++)
        for (int h = 0; h < heads_of(g, a) && p->log_alpha[a]->grad; h++)
            p->gradients[g->first[a] + h] += p->log_alpha[a]->grad[h];
}

/* All log alphas on the gates' own tape, and how likely they are open. */
static hw_tensor *open_of(hw_gates *g, hw_tensor **a)
{
    hw_tape_reset(g->tape, HW_GRADIENTS);
    *a = hw_tape_matrix(g->tape, 1, g->heads, g->values[LOG_ALPHA], true);
    return hw_hard_concrete_open(g->tape, *a);
}

void hw_gates_update(hw_gates *g, const hw_gate_pass *const *passes, int count, double share, int64_t updates)
{
    const hw_config *c = g->config;
    double beta1 = c->training.beta1, beta2 = c->training.beta2, steps = (double)updates;
    hw_tensor *a, *open = open_of(g, &a);
    hw_backward(g->tape, hw_sum(g->tape, open), (hw_real)c->training.head_l0.weight);
    for (int i = 0; i < count; i++) hw_kernels_get()->add(a->grad, passes[i]->gradients, g->heads);
    hw_kernels_get()->adam(g->values[LOG_ALPHA], g->values[FIRST], g->values[SECOND], a->grad, g->heads, 1,
                           (hw_real)(share * c->training.head_l0.learning_rate), (hw_real)beta1, (hw_real)beta2,
                           (hw_real)c->training.epsilon, (hw_real)(1 - pow(beta1, steps)),
                           (hw_real)(1 - pow(beta2, steps)), 0, false);
}

double hw_gates_expected(hw_gates *g)
{
    hw_tensor *a, *open = open_of(g, &a);
    double sum = 0;
    for (int i = 0; i < g->heads; i++) sum += (double)open->data[i];
    return sum;
}

/* ---- what comes of it -------------------------------------------------------------------------------------------- */

/* The gates of evaluation, and how likely each is open in training, until the tape's next step. */
static const hw_real *evaluated(hw_gates *g, const hw_real **open)
{
    hw_tensor *a;
    *open = open_of(g, &a)->data;
    return hw_hard_concrete(g->tape, a, NULL)->data;
}

void hw_gates_settle(hw_gates *g)
{
    const hw_parameters *from = g->model->parameters;
    memcpy(hw_parameters_values(g->network->parameters), hw_parameters_values(from),
           (size_t)hw_parameters_numbers(from) * sizeof(hw_real));
    const hw_real *open, *gate = evaluated(g, &open);
    for (int a = 0; a < g->network->attentions; a++) {
        const hw_attention_layer *layer = hw_transformer_attention(g->network, a);
        hw_tensor *w = layer->output_weight;
        int64_t columns = hw_tensor_cols(w);
        for (int64_t i = 0; i < hw_tensor_size(w); i++)
            w->data[i] *= gate[g->first[a] + i % columns / layer->head_width];
    }
    hw_parameters_pack(g->network->parameters);
}

bool hw_gates_write(hw_gates *g, const char *path, hw_error *err)
{
    hw_atomic file;
    if (!hw_atomic_begin(&file, path, err)) return false;
    const hw_real *open, *gate = evaluated(g, &open);
    fprintf(file.stream, "name\tgate\topen\tlog_alpha\n");
    for (int a = 0; a < g->model->attentions; a++) {
        const hw_attention_layer *layer = hw_transformer_attention(g->model, a);
        for (int h = 0; h < layer->heads; h++) {
            int i = g->first[a] + h;
            fprintf(file.stream, "%s.%d\t%.6g\t%.6g\t%.6g\n", layer->name, layer->head_names[h], (double)gate[i],
                    (double)open[i], (double)g->values[LOG_ALPHA][i]);
        }
    }
    return hw_atomic_commit(&file, err);
}
