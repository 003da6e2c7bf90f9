/* The file model.safetensors: a network's values under the names of the model directory.
 *
 * What is read must be what the configuration asks for, tensor by tensor; nothing is taken from a file that has other
 * tensors, too few or too many, since that file belongs to another network. The file's metadata says in which format it
 * is, so that an old program can refuse a new model instead of misreading it. */
#include "bundle/model_file.h"

#include <stdlib.h>
#include <string.h>

static const char *const FORMAT_KEY = "headwise_format";
enum { FORMAT = 1 }; /* the latest that is understood */

/* What no tensor's shape tells: with another number of heads or another activation the same tensors are another
 * network. */
static const char *const HEADS_KEY = "headwise_heads", *const ACTIVATION_KEY = "headwise_activation";
static const char *const activations[] = {[HW_RELU] = "relu", [HW_GELU] = "gelu", [HW_SWISH] = "swish"};

/* ---- writing ----------------------------------------------------------------------------------------------------- */

bool hw_bundle_save_weights(const hw_transformer *network, const hw_real *values, const char *path, hw_error *err)
{
    char format[16], heads[32];
    const hw_transformer_options *o = &network->options;
    const hw_parameters *p = network->parameters;
    int count = hw_parameters_count(p);
    hw_arena *arena = hw_arena_new(0);
    hw_stored *tensors = hw_arena_calloc(arena, (size_t)count, sizeof *tensors);
    for (int i = 0; i < count; i++) {
        const hw_parameter *item = hw_parameters_at(p, i);
        const hw_real *data = item->tensor.data;
        if (values) data = values + (data - hw_parameters_values(p));
        tensors[i] = (hw_stored){.name = item->name, .dtype = HW_DTYPE_REAL, .rank = item->tensor.rank, .data = data};
        for (int d = 0; d < item->tensor.rank; d++) tensors[i].shape[d] = item->tensor.shape[d];
    }
    snprintf(format, sizeof format, "%d", FORMAT);
    snprintf(heads, sizeof heads, "%lld", (long long)o->heads);
    const hw_metadata texts[] = {
        {FORMAT_KEY, format}, {HEADS_KEY, heads}, {ACTIVATION_KEY, activations[o->activation]}};
    bool ok = hw_safetensors_save(path, tensors, count, texts, sizeof texts / sizeof *texts, err);
    hw_arena_free(arena);
    return ok;
}

bool hw_bundle_save_model(const hw_transformer *network, const hw_real *values, const char *directory, hw_error *err)
{
    char path[HW_PATH];
    return hw_bundle_path(path, directory, "model.safetensors", err) &&
           hw_bundle_save_weights(network, values, path, err);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Files by other programs do not say their format; they have the names of the first one. */
static bool check_format(const hw_safetensors *file, const char *path, hw_error *err)
{
    const char *format = hw_safetensors_metadata(file, FORMAT_KEY);
    char *end;
    if (!format) return true;
    long number = strtol(format, &end, 10);
    if (*end || end == format || number < 1)
        return hw_fail(err, "%s: %s is \"%.40s\" in its metadata, a number from 1 was expected", path, FORMAT_KEY,
                       format);
    if (number > FORMAT)
        return hw_fail(
            err,
            "%s: written by a later version of Headwise (format %ld); headwise %s reads formats up to %d, update it",
            path, number, HW_VERSION, FORMAT);
    return true;
}

/* Files by other programs do not say this; then the configuration is believed. */
static bool check_network(const hw_safetensors *file, const char *path, const hw_transformer_options *o, hw_error *err)
{
    char heads[32];
    snprintf(heads, sizeof heads, "%lld", (long long)o->heads);
    const struct {
        const char *key, *option, *now;
    } texts[] = {{HEADS_KEY, "model.heads", heads},
                 {ACTIVATION_KEY, "model.activation", activations[o->activation]}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *there = hw_safetensors_metadata(file, texts[i].key);
        if (there && strcmp(there, texts[i].now))
            return hw_fail(err, "%s: it was trained with %s %.40s, but the configuration beside it says %s", path,
                           texts[i].option, there, texts[i].now);
    }
    return true;
}

static bool check_vocabularies(const hw_safetensors *file, const char *path, const hw_vocabulary_fit *fits, int count,
                               hw_error *err)
{
    for (int i = 0; i < count; i++) {
        const hw_stored *t = hw_safetensors_find(file, fits[i].tensor);
        if (t && t->rank == 2 && t->shape[0] != fits[i].tokens)
            return hw_fail(err, "%s has %lld tokens, but %s has %lld %s in %s; the two do not belong together",
                           fits[i].vocabulary, (long long)fits[i].tokens, fits[i].tensor, (long long)t->shape[0],
                           hw_plural(t->shape[0], "row", "rows"), path);
    }
    return true;
}

/* Every parameter is read, and no tensor of the file is left over. */
static bool read_values(hw_parameters *p, const hw_safetensors *file, const char *path, hw_error *err)
{
    for (int i = 0; i < hw_parameters_count(p); i++) {
        hw_parameter *item = hw_parameters_at(p, i);
        if (!hw_safetensors_find(file, item->name))
            return hw_fail(err, "%s: tensor %s is missing; the configuration beside it describes a network that has it",
                           path, item->name);
        if (!hw_safetensors_read(file, item->name, HW_DTYPE_REAL, item->tensor.rank, item->tensor.shape,
                                 item->tensor.data, err))
            return false;
    }
    for (int i = 0; i < hw_safetensors_count(file) && hw_safetensors_count(file) > hw_parameters_count(p); i++) {
        const char *name = hw_safetensors_at(file, i)->name;
        if (!hw_parameters_find(p, name))
            return hw_fail(
                err, "%s: tensor %.200s is one too many; the configuration beside it describes a network without it",
                path, name);
    }
    return true;
}

bool hw_model_file_load(hw_transformer *network, const char *path, const hw_vocabulary_fit *fits, int count,
                        bool settle, hw_error *err)
{
    hw_safetensors *file = hw_safetensors_open(path, err);
    if (!file) return false;
    bool ok = check_format(file, path, err) && check_vocabularies(file, path, fits, count, err) &&
              check_network(file, path, &network->options, err) &&
              read_values(network->parameters, file, path, err);
    hw_safetensors_close(file);
    if (ok && settle) hw_parameters_settle(network->parameters);
    else if (ok) hw_parameters_pack(network->parameters);
    return ok;
}

bool hw_bundle_load_model(hw_transformer *network, const char *path, hw_error *err)
{
    return hw_model_file_load(network, path, NULL, 0, false, err);
}
