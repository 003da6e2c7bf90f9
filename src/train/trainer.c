/* One step of training: cut the batch into shards, run them, sum their gradients, clip, Adam.
 *
 * Everything behind the shards is done in chunks of numbers whose borders are fixed, each by one thread in one order,
 * so that sums do not depend on the number of threads. Adam: Kingma and Ba 2015, algorithm 1, in the order of
 * operations that PyTorch has. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer.h"

enum { CHUNK = 1 << 14 };

static int64_t chunks(const hw_trainer *t) { return (t->numbers + CHUNK - 1) / CHUNK; }

static int64_t chunk_size(const hw_trainer *t, int64_t i)
{
    int64_t left = t->numbers - i * CHUNK;
    return left < CHUNK ? left : CHUNK;
}

/* Of the term that pushes heads apart; 0: there is none. */
static double diversity_weight(const hw_trainer *t)
{
    const hw_config *c = t->config;
    if (!c->training.head_diversity.kind || !hw_diversity_attentions(t->model, c)) return 0;
    return c->training.head_diversity.weight;
}

hw_trainer *hw_trainer_new(hw_transformer *model, const hw_config *config)
{
    hw_trainer *t = calloc(1, sizeof *t);
    HW_CHECK(t, "no memory for a trainer");
    t->model = model;
    t->config = config;
    t->shards = (int)config->training.shards;
    t->gates = hw_gates_new(model, config);
    t->guided = hw_guided_new(model, config);
    t->shard = calloc((size_t)t->shards, sizeof *t->shard);
    HW_CHECK(t->shard, "no memory for %d shards", t->shards);
    for (int i = 0; i < t->shards; i++) {
        t->shard[i].replica = hw_transformer_replica(model);
        t->shard[i].tape = hw_tape_new();
        t->shard[i].arena = hw_arena_new(0);
        if (t->gates) hw_gates_pass_init(t->gates, &t->shard[i].gates);
        if (diversity_weight(t) <= 0 && !t->guided) continue;
        t->shard[i].recorded = calloc((size_t)model->attentions, sizeof *t->shard[i].recorded);
        HW_CHECK(t->shard[i].recorded, "no memory for what heads do");
    }
    t->numbers = hw_parameters_numbers(model->parameters);
    t->first = hw_numbers_new(t->numbers);
    t->second = hw_numbers_new(t->numbers);
    t->squares = calloc((size_t)chunks(t), sizeof *t->squares);
    HW_CHECK(t->squares, "no memory for a trainer");
    t->average = hw_average_new(model, config);
    t->arena = hw_arena_new(0);
    return t;
}

void hw_trainer_free(hw_trainer *t)
{
    if (!t) return;
    for (int i = 0; i < t->shards; i++) {
        hw_transformer_free(t->shard[i].replica);
        hw_tape_free(t->shard[i].tape);
        hw_arena_free(t->shard[i].arena);
        free(t->shard[i].recorded);
        hw_gates_pass_clear(&t->shard[i].gates);
        free(t->shard[i].profile);
    }
    hw_average_free(t->average);
    hw_gates_free(t->gates);
    hw_guided_free(t->guided);
    hw_arena_free(t->arena);
    free(t->shard);
    free(t->first);
    free(t->second);
    free(t->squares);
    free(t);
}

int64_t hw_trainer_steps(const hw_trainer *t) { return t->steps; }

const hw_transformer *hw_trainer_network(hw_trainer *t)
{
    if (t->gates) {
        hw_gates_settle(t->gates);
        return t->gates->network;
    }
    if (!t->average) return t->model;
    hw_average_settle(t->average, t->updates);
    return t->average->network;
}

bool hw_trainer_write_gates(hw_trainer *t, const char *path, hw_error *err)
{
    return hw_gates_write(t->gates, path, err);
}

const hw_real *hw_trainer_gradients(const hw_trainer *t)
{
    return hw_parameters_gradients(t->shard[0].replica->parameters);
}

/* ---- a shard ----------------------------------------------------------------------------------------------------- */

/* The loss with the term that pushes heads apart. */
static hw_tensor *with_diversity(const hw_trainer *t, shard *s, hw_tensor *loss)
{
    const hw_config *c = t->config;
    double weight = c->training.head_diversity.weight *
                    hw_strength(c, c->training.head_diversity.schedule, t->steps + 1);
    hw_tensor *term = hw_diversity_term(s->tape, s->replica, s->recorded, c, t->batch->source_rows,
                                        t->batch->target_rows);
    s->term += (double)term->data[0];
    return hw_add(s->tape, loss, hw_scale(s->tape, term, (hw_real)weight));
}

/* The loss with the term that teaches a head to align. */
static hw_tensor *with_guided(const hw_trainer *t, shard *s, const hw_batch *b, hw_tensor *loss)
{
    hw_tensor *term = hw_guided_term(t->guided, s->tape, s->recorded, b, t->aligned);
    if (!term) return loss;
    s->guided += (double)term->data[0];
    return hw_add(s->tape, loss, hw_scale(s->tape, term, (hw_real)t->config->training.guided_alignment.weight));
}

/* What the terms of the loss read. */
static hw_recorder recorder_of(const hw_trainer *t, const shard *s)
{
    bool all = diversity_weight(t) > 0 && hw_diversity_needs_weights(t->config);
    return (hw_recorder){.weights = all || t->guided, .only = all || !t->guided ? NULL : t->guided->only,
                         .entries = s->recorded};
}

static void run_micro_batch(const hw_trainer *t, shard *s, const hw_batch *b)
{
    hw_tape_reset(s->tape, HW_TRAINING);
    hw_tape_dropout_key(s->tape, (uint64_t)t->config->training.seed, (uint32_t)(t->steps + 1));
    const hw_config *c = t->config;
    hw_recorder recorder = recorder_of(t, s);
    hw_pass pass = {.tape = s->tape, .recorder = s->recorded ? &recorder : NULL};
    pass.drop_head = c->training.drop_head.rate * hw_strength(c, c->training.drop_head.schedule, t->steps + 1);
    if (t->gates) {
        hw_gates_apply(t->gates, &s->gates, s->tape);
        pass.settings = s->gates.settings;
    }
    hw_token_rows source = {b->source_rows, b->source_ids, b->source, b->first_source_row, NULL};
    hw_token_rows target = {b->target_rows, b->target_in, b->target, b->first_target_row, NULL};
    hw_real scale = (hw_real)(1 / (double)t->batch->target_rows);
    hw_tensor *loss = hw_transformer_loss(&pass, s->replica, &source, &target, b->target_out,
                                          (hw_real)c->training.label_smoothing, scale, &s->count, NULL);
    if (diversity_weight(t) > 0) loss = with_diversity(t, s, loss);
    if (t->guided) loss = with_guided(t, s, b, loss);
    hw_backward(s->tape, loss, 1);
    if (t->gates) hw_gates_take(t->gates, &s->gates);
}

static void run_shard(int i, void *argument)
{
    hw_trainer *t = argument;
    shard *s = &t->shard[i];
    memset(hw_parameters_gradients(s->replica->parameters), 0, (size_t)t->numbers * sizeof(hw_real));
    s->count = (hw_loss_count){0};
    s->term = s->guided = 0;
    if (t->gates) memset(s->gates.gradients, 0, (size_t)t->gates->heads * sizeof *s->gates.gradients);
    hw_arena_reset(s->arena);
    int64_t count;
    hw_batch *micro = hw_batch_micro(s->arena, &t->cut[i], t->config->training.micro_batch_tokens, &count);
    for (int64_t k = 0; k < count; k++) run_micro_batch(t, s, &micro[k]);
}

/* ---- behind the shards ------------------------------------------------------------------------------------------- */

/* Sums a chunk over the shards pairwise, ((0 + 1) + (2 + 3)) + ..., into shard 0, and squares it. */
static void reduce_chunk(int i, void *argument)
{
    hw_trainer *t = argument;
    const hw_kernels *k = hw_kernels_get();
    int64_t at = (int64_t)i * CHUNK, size = chunk_size(t, i);
    for (int stride = 1; stride < t->shards; stride *= 2)
        for (int s = 0; s + stride < t->shards; s += 2 * stride)
            k->add(hw_parameters_gradients(t->shard[s].replica->parameters) + at,
                   hw_parameters_gradients(t->shard[s + stride].replica->parameters) + at, size);
    const hw_real *g = hw_trainer_gradients(t) + at;
    t->squares[i] = (double)k->dot(g, g, size);
}

static void update_chunk(int i, void *argument)
{
    hw_trainer *t = argument;
    const hw_config *c = t->config;
    int64_t at = (int64_t)i * CHUNK;
    double beta1 = c->training.beta1, beta2 = c->training.beta2, updates = (double)t->updates;
    hw_kernels_get()->adam(hw_parameters_values(t->model->parameters) + at, t->first + at, t->second + at,
                           hw_trainer_gradients(t) + at, chunk_size(t, i), (hw_real)t->factor, (hw_real)t->rate,
                           (hw_real)beta1, (hw_real)beta2, (hw_real)c->training.epsilon,
                           (hw_real)(1 - pow(beta1, updates)), (hw_real)(1 - pow(beta2, updates)),
                           (hw_real)c->training.weight_decay, c->training.optimizer == HW_ADAMW);
}

/* PyTorch's clip_grad_norm_: gradients are scaled to the largest allowed norm where they exceed it. */
static double clip_factor(double norm, double limit)
{
    double factor = limit > 0 ? limit / (norm + 1e-6) : 1;
    return factor < 1 ? factor : 1;
}

/* Adds the time since *clock to a part of the step. */
static void end_part(hw_trainer *t, hw_step_part part, double *clock)
{
    double now = hw_seconds();
    t->parts[part] += now - *clock;
    *clock = now;
}

static void update_gates(hw_trainer *t)
{
    const hw_gate_pass **passes = hw_arena_alloc(t->arena, (size_t)t->shards * sizeof *passes);
    for (int i = 0; i < t->shards; i++) passes[i] = &t->shard[i].gates;
    hw_gates_update(t->gates, passes, t->shards, t->rate / t->config->training.learning_rate, t->updates);
}

/* Adam, unless there is something that is not finite; and what follows from the new weights. */
static void update(hw_trainer *t, const hw_step_result *result, double *clock)
{
    if (!result->skipped) {
        t->updates++;
        t->factor = clip_factor(result->gradient_norm, t->config->training.clip_norm);
        hw_parallel((int)chunks(t), update_chunk, t);
        if (t->gates) update_gates(t);
    }
    if (t->average) hw_average_step(t->average, t->steps, t->updates, !result->skipped);
    end_part(t, HW_STEP_UPDATE, clock);
    if (!result->skipped) hw_parameters_pack(t->model->parameters);
    end_part(t, HW_STEP_PACK, clock);
}

hw_step_result hw_trainer_step(hw_trainer *t, const hw_batch *batch)
{
    hw_step_result result = {0};
    double clock = hw_seconds();
    hw_arena_reset(t->arena);
    t->batch = batch;
    t->cut = hw_batch_shards(t->arena, batch, t->shards);
    t->aligned = t->guided ? hw_guided_tokens(batch) : 0;
    if (t->gates) hw_gates_begin(t->gates, t->steps + 1);
    end_part(t, HW_STEP_CUT, &clock);
    hw_parallel(t->shards, run_shard, t);
    end_part(t, HW_STEP_SHARDS, &clock);
    for (int i = 0; i < t->shards; i++) {
        const hw_loss_count *c = &t->shard[i].count;
        result.count.loss += c->loss;
        result.count.nll += c->nll;
        result.count.tokens += c->tokens;
        result.count.correct += c->correct;
        result.term += t->shard[i].term;
        result.guided += t->shard[i].guided;
    }
    hw_parallel((int)chunks(t), reduce_chunk, t);
    double squares = 0;
    for (int64_t i = 0; i < chunks(t); i++) squares += t->squares[i];
    result.gradient_norm = sqrt(squares);
    end_part(t, HW_STEP_SUM, &clock);
    t->steps++;
    result.rate = t->rate = hw_learning_rate(t->config, t->steps);
    result.skipped = !isfinite(result.count.loss) || !isfinite(result.gradient_norm);
    update(t, &result, &clock);
    if (t->gates) result.open_heads = hw_gates_expected(t->gates);
    return result;
}

/* ---- for bench --------------------------------------------------------------------------------------------------- */

void hw_trainer_profile(hw_trainer *t, bool on)
{
    memset(t->parts, 0, sizeof t->parts);
    for (int i = 0; i < t->shards; i++) {
        shard *s = &t->shard[i];
        if (!s->profile) s->profile = calloc((size_t)hw_op_count(), sizeof *s->profile);
        HW_CHECK(s->profile, "no memory for a profile");
        memset(s->profile, 0, (size_t)hw_op_count() * sizeof *s->profile);
        hw_tape_profile(s->tape, on ? s->profile : NULL);
    }
}

void hw_trainer_profile_sum(const hw_trainer *t, hw_profile_entry *entries)
{
    memset(entries, 0, (size_t)hw_op_count() * sizeof *entries);
    for (int i = 0; i < t->shards; i++)
        for (int op = 0; op < hw_op_count(); op++) hw_profile_add(&entries[op], &t->shard[i].profile[op]);
}

void hw_trainer_profile_parts(const hw_trainer *t, double seconds[HW_STEP_PARTS])
{
    memcpy(seconds, t->parts, sizeof t->parts);
}

int64_t hw_trainer_mallocs(const hw_trainer *t)
{
    int64_t mallocs = hw_arena_mallocs(t->arena);
    for (int i = 0; i < t->shards; i++)
        mallocs += hw_arena_mallocs(t->shard[i].arena) + hw_arena_mallocs(hw_tape_arena(t->shard[i].tape));
    return mallocs;
}
