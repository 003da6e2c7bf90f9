/* Averages of the weights; see average.h. They are made chunk by chunk, elementwise, so that threads do not matter. */
#include "average.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 14 };

hw_real *hw_numbers_new(int64_t count)
{
    size_t bytes = (size_t)count * sizeof(hw_real);
    hw_real *numbers = hw_memory_new(bytes);
    HW_CHECK(numbers, "no memory for %lld numbers", (long long)count);
    memset(numbers, 0, bytes);
    return numbers;
}

hw_average *hw_average_new(const hw_transformer *model, const hw_config *config)
{
    if (!config->training.average && !(config->training.ema > 0)) return NULL;
    hw_average *a = calloc(1, sizeof *a);
    HW_CHECK(a, "no memory for an average");
    hw_error err;
    *a = (hw_average){.model = model, .ema = config->training.ema, .most = config->training.average,
                      .every = config->training.average_every ? config->training.average_every
                                                              : config->training.validate_every,
                      .last_step = config->training.max_steps};
    a->network = hw_transformer_new(&model->options, false, &err);
    HW_CHECK(a->network, "%s", err.message);
    a->samples = calloc((size_t)a->most + 1, sizeof *a->samples);
    HW_CHECK(a->samples, "no memory for an average");
    return a;
}

void hw_average_free(hw_average *a)
{
    if (!a) return;
    for (int64_t i = 0; i < a->count; i++) free(a->samples[i]);
    hw_transformer_free(a->network);
    free(a->samples);
    free(a);
}

static int64_t numbers_of(const hw_average *a) { return hw_parameters_numbers(a->network->parameters); }
static hw_real *average_of(const hw_average *a) { return hw_parameters_values(a->network->parameters); }
static const hw_real *weights_of(const hw_average *a) { return hw_parameters_values(a->model->parameters); }

/* ---- the moving average ------------------------------------------------------------------------------------------ */

typedef struct move {
    const hw_average *a;
    hw_real share; /* 1 - d */
} move;

static void move_chunk(int i, void *argument)
{
    const move *m = argument;
    hw_real *average = average_of(m->a);
    const hw_real *weights = weights_of(m->a);
    int64_t from = (int64_t)i * CHUNK, to = from + CHUNK < numbers_of(m->a) ? from + CHUNK : numbers_of(m->a);
    for (int64_t j = from; j < to; j++) average[j] += m->share * (weights[j] - average[j]);
}

/* ---- the mean of samples ----------------------------------------------------------------------------------------- */

static void mean_chunk(int i, void *argument)
{
    const hw_average *a = argument;
    hw_real *average = average_of(a);
    int64_t from = (int64_t)i * CHUNK, to = from + CHUNK < numbers_of(a) ? from + CHUNK : numbers_of(a);
    for (int64_t j = from; j < to; j++) {
        double sum = 0;
        for (int64_t s = 0; s < a->count; s++) sum += (double)a->samples[s][j];
        average[j] = (hw_real)(sum / (double)a->count);
    }
}

/* The oldest one's memory goes to the newest. */
hw_real *hw_average_room(hw_average *a)
{
    if (a->count < a->most) return a->samples[a->count++] = hw_numbers_new(numbers_of(a));
    hw_real *oldest = a->samples[0];
    memmove(a->samples, a->samples + 1, (size_t)(a->most - 1) * sizeof *a->samples);
    return a->samples[a->most - 1] = oldest;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static int chunks(const hw_average *a) { return (int)((numbers_of(a) + CHUNK - 1) / CHUNK); }

void hw_average_step(hw_average *a, int64_t step, int64_t updates, bool changed)
{
    double n = (double)updates;
    if (a->ema > 0 && changed && updates == 1) /* whatever hw_average_settle put there */
        memcpy(average_of(a), weights_of(a), (size_t)numbers_of(a) * sizeof(hw_real));
    else if (a->ema > 0 && changed)
        hw_parallel(chunks(a), move_chunk, &(move){a, (hw_real)(1 - fmin(a->ema, (n - 1) / (n + 8)))});
    if (a->most && (step % a->every == 0 || step == a->last_step))
        memcpy(hw_average_room(a), weights_of(a), (size_t)numbers_of(a) * sizeof(hw_real));
}

void hw_average_settle(hw_average *a, int64_t updates)
{
    bool nothing_yet = a->ema > 0 ? updates == 0 : a->count == 0;
    if (nothing_yet) memcpy(average_of(a), weights_of(a), (size_t)numbers_of(a) * sizeof(hw_real));
    else if (a->count) hw_parallel(chunks(a), mean_chunk, a);
    hw_parameters_pack(a->network->parameters);
}
