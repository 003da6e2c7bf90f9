/* checkpoint.safetensors: values under the names of the model directory, moments of Adam under first.NAME and second.NAME, and the
 * run's state as texts in the metadata (doubles in hexadecimal, so that they come back to the bit). */
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
    INTEGER(step),          INTEGER(place.epoch), INTEGER(place.next),      NUMBER(best),
    INTEGER(best_step),     NUMBER(window.loss),  NUMBER(window.nll),       INTEGER(window.tokens),
    INTEGER(window.correct), INTEGER(skipped),    INTEGER(skipped_row),
};
enum { FIELDS = sizeof fields / sizeof *fields };

static const char *field_text(hw_arena *arena, const state_field *f, const hw_run_state *state)
{
    const char *at = (const char *)state + f->offset;
    if (f->number) return hw_arena_string(arena, "%a", *(const double *)at);
    return hw_arena_string(arena, "%" PRId64, *(const int64_t *)at);
}

static bool field_read(const state_field *f, const char *text, hw_run_state *state)
{
    char *at = (char *)state + f->offset, *end;
    if (!text || !*text) return false;
    if (f->number) *(double *)at = strtod(text, &end);
    else *(int64_t *)at = strtoll(text, &end, 10);
    return !*end;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static const char *const kinds[3] = {"", "first.", "second."};

static const hw_real *block_of(const hw_trainer *t, int kind)
{
    return kind == 0 ? hw_parameters_values(t->model->parameters) : kind == 1 ? t->first : t->second;
}

/* The numbers of parameter p in a block laid out as the values are. */
static const hw_real *within(const hw_trainer *t, const hw_parameter *p, const hw_real *block)
{
    return block + (p->tensor.data - hw_parameters_values(t->model->parameters));
}

bool hw_checkpoint_save(const hw_trainer *t, const hw_run_state *state, const char *path, hw_error *err)
{
    const hw_parameters *p = t->model->parameters;
    int count = hw_parameters_count(p);
    hw_arena *arena = hw_arena_new(0);
    hw_stored *tensors = hw_arena_calloc(arena, 3 * (size_t)count, sizeof *tensors);
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < count; i++) {
            const hw_parameter *item = hw_parameters_at(p, i);
            hw_stored *s = &tensors[kind * count + i];
            *s = (hw_stored){.name = hw_arena_string(arena, "%s%s", kinds[kind], item->name), .dtype = HW_DTYPE_REAL,
                             .rank = item->tensor.rank, .data = within(t, item, block_of(t, kind))};
            memcpy(s->shape, item->tensor.shape, (size_t)s->rank * sizeof *s->shape);
        }
    hw_metadata metadata[FIELDS + 3];
    int pairs = 0;
    metadata[pairs++] = (hw_metadata){"format", "headwise checkpoint 1"};
    metadata[pairs++] = (hw_metadata){"blas", hw_blas_kernel()};
    metadata[pairs++] = (hw_metadata){"updates", hw_arena_string(arena, "%" PRId64, t->updates)};
    for (int i = 0; i < FIELDS; i++) metadata[pairs++] = (hw_metadata){fields[i].key, field_text(arena, &fields[i], state)};
    bool ok = hw_safetensors_save(path, tensors, 3 * count, metadata, pairs, err);
    hw_arena_free(arena);
    return ok;
}

static bool read_tensors(hw_trainer *t, const hw_safetensors *file, hw_error *err)
{
    const hw_parameters *p = t->model->parameters;
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < hw_parameters_count(p); i++) {
            const hw_parameter *item = hw_parameters_at(p, i);
            char name[320];
            snprintf(name, sizeof name, "%s%s", kinds[kind], item->name);
            if (!hw_safetensors_read(file, name, HW_DTYPE_REAL, item->tensor.rank, item->tensor.shape,
                                     (hw_real *)within(t, item, block_of(t, kind)), err))
                return false;
        }
    return true;
}

static bool read_state(hw_trainer *t, const hw_safetensors *file, const char *path, hw_run_state *state, char blas[64],
                       hw_error *err)
{
    const char *format = hw_safetensors_metadata(file, "format"), *updates = hw_safetensors_metadata(file, "updates");
    if (!format || strcmp(format, "headwise checkpoint 1"))
        return hw_fail(err, "%s: this is no checkpoint that this version reads (its format is \"%s\", not \"headwise checkpoint 1\")",
                       path, format ? format : "");
    for (int i = 0; i < FIELDS; i++)
        if (!field_read(&fields[i], hw_safetensors_metadata(file, fields[i].key), state))
            return hw_fail(err, "%s: the checkpoint's %s is missing or no number", path, fields[i].key);
    if (!updates) return hw_fail(err, "%s: the checkpoint's updates is missing", path);
    t->updates = strtoll(updates, NULL, 10);
    t->steps = state->step;
    const char *kernel = hw_safetensors_metadata(file, "blas");
    if (blas) snprintf(blas, 64, "%s", kernel ? kernel : "");
    return true;
}

bool hw_checkpoint_load(hw_trainer *t, hw_run_state *state, const char *path, char blas[64], hw_error *err)
{
    hw_safetensors *file = hw_safetensors_open(path, err);
    if (!file) return false;
    bool ok = read_state(t, file, path, state, blas, err) && read_tensors(t, file, err);
    hw_safetensors_close(file);
    if (ok) hw_parameters_pack(t->model->parameters);
    return ok;
}
