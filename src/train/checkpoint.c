/* checkpoint.safetensors: all that a run needs to go on, in one file.
 *
 * Values stand under the names of the model directory; moments of Adam under first.NAME and second.NAME; averages of
 * the weights under average.NAME, or what they are made of under sample.I.NAME, the oldest first; the run's state as
 * texts in the metadata (doubles in hexadecimal, so that they come back to the bit), and its configuration, since
 * config.yaml beside it can be changed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trainer.h"

/* ---- state as text ----------------------------------------------------------------------------------------------- */

typedef struct state_field {
    const char *key;
    size_t offset;
    bool number; /* double; else int64_t */
} state_field;

#define INTEGER(field) {#field, offsetof(hw_run_state, field), false}
#define NUMBER(field) {#field, offsetof(hw_run_state, field), true}
static const state_field fields[] = {
    INTEGER(step),           INTEGER(place.epoch), INTEGER(place.next),  NUMBER(best),        NUMBER(best_loss),
    INTEGER(best_step),      INTEGER(unimproved),  NUMBER(window.loss),  NUMBER(window.nll),  INTEGER(window.tokens),
    INTEGER(window.correct), INTEGER(skipped),     INTEGER(skipped_row), INTEGER(train_data), INTEGER(valid_data),
};
enum { FIELDS = sizeof fields / sizeof *fields };

static const char FORMAT[] = "headwise checkpoint 3";

static const char *field_text(hw_arena *arena, const state_field *f, const hw_run_state *state)
{
    const char *at = (const char *)state + f->offset;
    if (f->number) return hw_arena_string(arena, "%a", *(const double *)at);
    return hw_arena_string(arena, "%" PRId64, *(const int64_t *)at);
}

static bool field_read(const state_field *f, const char *text, hw_run_state *state)
{
    char *at = (char *)state + f->offset, *end;
    if (!text || !*text || (!f->number && *text == '-')) return false;
    if (f->number) *(double *)at = strtod(text, &end);
    else *(int64_t *)at = strtoll(text, &end, 10);
    return !*end;
}

/* ---- configuration ----------------------------------------------------------------------------------------------- */

static const char CONFIG[] = "config";

bool hw_checkpoint_leaves_out(const char *key)
{
    static const char *const keys[] = {
        "data.dir",           "text.model",         "training.model_dir",   "training.init_from",
        "training.max_steps", "training.patience",  "training.tensorboard",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(keys[i], key)) return true;
    return false;
}

bool hw_checkpoint_config(const char *path, hw_arena *arena, hw_config **config, hw_error *err)
{
    hw_safetensors *file = hw_safetensors_open(path, err);
    const char *text = file ? hw_safetensors_metadata(file, CONFIG) : NULL;
    *config = text ? hw_config_parse(arena, path, text, strlen(text), err) : NULL;
    bool good = file && (*config || !text);
    hw_safetensors_close(file);
    return good;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* Numbers laid out as the values are, and what stands before each parameter's name. */
typedef struct block {
    const char *prefix;
    hw_real *numbers;
} block;

/* All blocks that the trainer has now -> their number. */
static int blocks_of(const hw_trainer *t, hw_arena *arena, block **out)
{
    const hw_average *a = t->average;
    int64_t samples = a ? a->count : 0;
    block *blocks = *out = hw_arena_calloc(arena, (size_t)samples + 4, sizeof *blocks);
    int count = 0;
    blocks[count++] = (block){"", hw_parameters_values(t->model->parameters)};
    blocks[count++] = (block){"first.", t->first};
    blocks[count++] = (block){"second.", t->second};
    if (a && a->ema > 0) blocks[count++] = (block){"average.", hw_parameters_values(a->network->parameters)};
    for (int64_t i = 0; i < samples; i++)
        blocks[count++] = (block){hw_arena_string(arena, "sample.%" PRId64 ".", i), a->samples[i]};
    return count;
}

/* Log alpha of the heads' gates and its moments, where there are gates. */
enum { GATE_TENSORS = 3 };
static const char *const gate_names[GATE_TENSORS] = {"gates", "first.gates", "second.gates"};

/* Parameter p's numbers in a block. */
static hw_real *within(const hw_trainer *t, const hw_parameter *p, const block *b)
{
    return b->numbers + (p->tensor.data - hw_parameters_values(t->model->parameters));
}

static int metadata_of(const hw_trainer *t, const hw_run_state *state, hw_arena *arena, hw_metadata **out)
{
    hw_metadata *m = *out = hw_arena_calloc(arena, FIELDS + 5, sizeof *m);
    int pairs = 0;
    m[pairs++] = (hw_metadata){"format", FORMAT};
    m[pairs++] = (hw_metadata){CONFIG, hw_config_text(t->config, hw_checkpoint_leaves_out, arena)};
    m[pairs++] = (hw_metadata){"blas", hw_blas_kernel()};
    m[pairs++] = (hw_metadata){"updates", hw_arena_string(arena, "%" PRId64, t->updates)};
    m[pairs++] = (hw_metadata){"samples", hw_arena_string(arena, "%" PRId64, t->average ? t->average->count : 0)};
    for (int i = 0; i < FIELDS; i++) m[pairs++] = (hw_metadata){fields[i].key, field_text(arena, &fields[i], state)};
    return pairs;
}

bool hw_checkpoint_save(const hw_trainer *t, const hw_run_state *state, const char *path, hw_error *err)
{
    const hw_parameters *p = t->model->parameters;
    hw_arena *arena = hw_arena_new(0);
    block *blocks;
    int count = hw_parameters_count(p), kinds = blocks_of(t, arena, &blocks);
    hw_stored *tensors = hw_arena_calloc(arena, (size_t)kinds * (size_t)count + GATE_TENSORS, sizeof *tensors);
    for (int kind = 0; kind < kinds; kind++)
        for (int i = 0; i < count; i++) {
            const hw_parameter *item = hw_parameters_at(p, i);
            hw_stored *s = &tensors[kind * count + i];
            *s = (hw_stored){.name = hw_arena_string(arena, "%s%s", blocks[kind].prefix, item->name),
                             .dtype = HW_DTYPE_REAL, .rank = item->tensor.rank, .data = within(t, item, &blocks[kind])};
            memcpy(s->shape, item->tensor.shape, (size_t)s->rank * sizeof *s->shape);
        }
    int total = kinds * count;
    for (int i = 0; t->gates && i < GATE_TENSORS; i++)
        tensors[total++] = (hw_stored){.name = gate_names[i], .dtype = HW_DTYPE_REAL, .rank = 1,
                                       .shape = {t->gates->heads}, .data = t->gates->values[i]};
    hw_metadata *metadata;
    int pairs = metadata_of(t, state, arena, &metadata);
    bool ok = hw_safetensors_save(path, tensors, total, metadata, pairs, err);
    hw_arena_free(arena);
    return ok;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool read_tensors(hw_trainer *t, const hw_safetensors *file, hw_error *err)
{
    const hw_parameters *p = t->model->parameters;
    hw_arena *arena = hw_arena_new(0);
    block *blocks;
    int kinds = blocks_of(t, arena, &blocks);
    bool ok = true;
    for (int kind = 0; kind < kinds && ok; kind++)
        for (int i = 0; i < hw_parameters_count(p) && ok; i++) {
            const hw_parameter *item = hw_parameters_at(p, i);
            ok = hw_safetensors_read(file, hw_arena_string(arena, "%s%s", blocks[kind].prefix, item->name),
                                     HW_DTYPE_REAL, item->tensor.rank, item->tensor.shape,
                                     within(t, item, &blocks[kind]), err);
        }
    for (int i = 0; t->gates && i < GATE_TENSORS && ok; i++)
        ok = hw_safetensors_read(file, gate_names[i], HW_DTYPE_REAL, 1, (int64_t[]){t->gates->heads}, t->gates->values[i],
                                 err);
    hw_arena_free(arena);
    return ok;
}

static bool read_integer(const hw_safetensors *file, const char *path, const char *key, int64_t *out, hw_error *err)
{
    const char *text = hw_safetensors_metadata(file, key);
    char *end;
    if (text) *out = strtoll(text, &end, 10);
    if (text && *text && !*end && *out >= 0) return true;
    return hw_fail(err, "%s: the checkpoint's %s is missing or no number", path, key);
}

static bool read_state(hw_run_state *state, const hw_safetensors *file, const char *path, hw_error *err)
{
    const char *format = hw_safetensors_metadata(file, "format");
    if (!format || strcmp(format, FORMAT))
        return hw_fail(err,
                       "%s: this is no checkpoint that this version reads (its format is \"%.40s\", not \"%s\"); "
                       "its run can begin anew with --overwrite, and another one with its weights (training.init_from)",
                       path, format ? format : "", FORMAT);
    for (int i = 0; i < FIELDS; i++)
        if (!field_read(&fields[i], hw_safetensors_metadata(file, fields[i].key), state))
            return hw_fail(err, "%s: the checkpoint's %s is missing or no number", path, fields[i].key);
    return true;
}

/* Counters and room of the trainer. */
static bool read_counters(hw_trainer *t, const hw_run_state *state, const hw_safetensors *file, const char *path,
                          hw_error *err)
{
    int64_t samples = 0, most = t->average ? t->average->most : 0;
    if (!read_integer(file, path, "updates", &t->updates, err) || !read_integer(file, path, "samples", &samples, err))
        return false;
    if (samples > most)
        return hw_fail(err, "%s: it holds %" PRId64 " weights to be averaged, but training.average is %" PRId64, path,
                       samples, most);
    while (t->average && t->average->count < samples) hw_average_room(t->average);
    t->steps = state->step;
    return true;
}

bool hw_checkpoint_load(hw_trainer *t, hw_run_state *state, const char *path, char blas[64], hw_error *err)
{
    hw_safetensors *file = hw_safetensors_open(path, err);
    if (!file) return false;
    bool ok =
        read_state(state, file, path, err) && read_counters(t, state, file, path, err) && read_tensors(t, file, err);
    const char *kernel = ok ? hw_safetensors_metadata(file, "blas") : NULL;
    if (blas) snprintf(blas, 64, "%s", kernel ? kernel : "");
    hw_safetensors_close(file);
    if (ok) hw_parameters_pack(t->model->parameters);
    return ok;
}

bool hw_checkpoint_peek(hw_run_state *state, const char *path, hw_error *err)
{
    hw_safetensors *file = hw_safetensors_open(path, err);
    if (!file) return false;
    bool ok = read_state(state, file, path, err);
    hw_safetensors_close(file);
    return ok;
}
