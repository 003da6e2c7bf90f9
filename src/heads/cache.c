/* Results kept in a model directory, so that they are computed anew only where model or data changed.
 *
 * The fingerprint is a 64-bit FNV-1a over the bytes of all files that a result depends on; it stands in the result
 * itself, and so does a checksum of the rest, as a changed digit is not seen otherwise and a changed key would leave an
 * empty table. Numbers are written with 17 digits and come back as they were. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

/* ---- fingerprints ------------------------------------------------------------------------------------------------ */

uint64_t hw_fingerprint_bytes(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    if (!hash) hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

uint64_t hw_fingerprint_text(uint64_t hash, const char *text) { return hw_fingerprint_bytes(hash, text, strlen(text) + 1); }

uint64_t hw_fingerprint_file(uint64_t hash, const char *path)
{
    hw_map map;
    if (!hw_map_open(&map, path, NULL)) return hw_fingerprint_text(hash, "no file");
    hash = hw_fingerprint_bytes(hash, &map.size, sizeof map.size);
    hash = hw_fingerprint_bytes(hash, map.data, map.size);
    hw_map_close(&map);
    return hash;
}

uint64_t hw_fingerprint_model(uint64_t hash, const char *directory)
{
    static const char *const names[] = {"model.safetensors", "config.yaml",  "shared.vocab", "source.vocab",
                                        "target.vocab",      "shared.model", "source.model", "target.model"};
    char path[HW_PATH];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (hw_bundle_path(path, directory, names[i], NULL)) hash = hw_fingerprint_file(hash, path);
    return hash;
}

uint64_t hw_fingerprint_set(uint64_t hash, const hw_bundle *bundle, const char *directory, const char *prefix)
{
    const char *source = bundle->config->data.source, *target = bundle->config->data.target;
    char conllu[2][HW_PATH], path[HW_PATH];
    snprintf(conllu[0], HW_PATH, "%s.conllu", source);
    snprintf(conllu[1], HW_PATH, "%s.conllu", target);
    const char *const suffixes[] = {source, target, conllu[0], conllu[1], "align"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        bool there = hw_corpus_path(path, directory, prefix, suffixes[i], NULL);
        hash = there ? hw_fingerprint_file(hash, path) : hw_fingerprint_text(hash, "no file");
    }
    return hash;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool path_of(char path[HW_PATH], const char *model, const char *name, const char *suffix, hw_error *err)
{
    char file[HW_PATH];
    snprintf(file, sizeof file, "heads/%s.%s", name, suffix);
    return hw_bundle_path(path, model, file, err);
}

static void fingerprint_text(char text[20], uint64_t fingerprint) { snprintf(text, 20, "%016" PRIx64, fingerprint); }

static const char *const CHECKSUM = "checksum";

void hw_study_seal(json_t *result)
{
    char sum[20];
    json_object_del(result, CHECKSUM);
    char *text = json_dumps(result, JSON_COMPACT | JSON_SORT_KEYS);
    HW_CHECK(text, "no memory for a result as JSON");
    fingerprint_text(sum, hw_fingerprint_text(0, text));
    free(text);
    json_object_set_new(result, CHECKSUM, json_string(sum));
}

/* Is it as it was sealed? Takes the seal off. */
static bool is_whole(json_t *result)
{
    json_t *was = json_incref(json_object_get(result, CHECKSUM));
    if (was) hw_study_seal(result);
    bool whole = was && json_equal(was, json_object_get(result, CHECKSUM));
    json_object_del(result, CHECKSUM);
    json_decref(was);
    return whole;
}

static json_t *recall(const char *model, const char *name, const char *key, uint64_t fingerprint)
{
    char path[HW_PATH], text[20];
    if (!path_of(path, model, name, "json", NULL)) return NULL;
    json_t *result = json_load_file(path, 0, NULL);
    const char *kept = json_string_value(json_object_get(result, key));
    fingerprint_text(text, fingerprint);
    if (kept && !strcmp(kept, text) && is_whole(result)) return result;
    json_decref(result);
    return NULL;
}

json_t *hw_study_recall(const char *model, const char *name, uint64_t fingerprint)
{
    return recall(model, name, "fingerprint", fingerprint);
}

json_t *hw_study_recall_any(const char *model, const char *name, uint64_t basis)
{
    return recall(model, name, "basis", basis);
}

void hw_study_set_basis(json_t *result, uint64_t basis)
{
    char text[20];
    fingerprint_text(text, basis);
    json_object_set_new(result, "basis", json_string(text));
}

static bool begin(hw_atomic *file, const char *model, const char *name, const char *suffix, hw_error *err)
{
    char path[HW_PATH];
    return path_of(path, model, name, suffix, err) && hw_atomic_begin(file, path, err);
}

bool hw_study_keep(const char *model, const char *name, uint64_t fingerprint, json_t *result, const char *list,
                   const char *const *columns, hw_error *err)
{
    char path[HW_PATH], text[20];
    hw_atomic json, tsv;
    fingerprint_text(text, fingerprint);
    json_object_set_new(result, "fingerprint", json_string(text));
    if (!hw_bundle_path(path, model, "heads", err) || !hw_directory_make(path, err) ||
        !begin(&json, model, name, "json", err))
        return false;
    if (!begin(&tsv, model, name, "tsv", err)) {
        hw_atomic_abandon(&json);
        return false;
    }
    hw_study_seal(result);
    json_dumpf(result, json.stream, JSON_INDENT(1));
    json_object_del(result, CHECKSUM);
    fputc('\n', json.stream);
    hw_study_tsv(tsv.stream, result, list, columns);
    return hw_atomic_commit_all((hw_atomic *[]){&json, &tsv}, 2, err);
}

/* ---- TSV --------------------------------------------------------------------------------------------------------- */

static void write_value(FILE *out, const json_t *value)
{
    if (json_is_string(value))
        fputs(json_string_value(value), out);
    else if (json_is_integer(value))
        fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        fprintf(out, "%.17g", json_real_value(value));
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "true" : "false", out);
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (i) fputc(' ', out);
        write_value(out, json_array_get(value, i));
    }
}

static void write_row(FILE *out, const json_t *entry, const json_t *head, const char *const *columns)
{
    for (const char *const *c = columns; *c; c++) {
        const json_t *value = json_object_get(entry, *c);
        if (c != columns) fputc('\t', out);
        write_value(out, value ? value : json_object_get(head, *c));
    }
    fputc('\n', out);
}

void hw_study_tsv(FILE *out, const json_t *result, const char *list, const char *const *columns)
{
    for (const char *const *c = columns; *c; c++) fprintf(out, "%s%s", c == columns ? "" : "\t", *c);
    fputc('\n', out);
    const json_t *heads = json_object_get(result, "heads");
    for (size_t h = 0; h < json_array_size(heads); h++) {
        const json_t *head = json_array_get(heads, h), *entries = list ? json_object_get(head, list) : NULL;
        if (!list) write_row(out, head, head, columns);
        for (size_t i = 0; i < json_array_size(entries); i++) write_row(out, json_array_get(entries, i), head, columns);
    }
}

double hw_study_number(const json_t *entry, const char *key)
{
    const json_t *x = json_object_get(entry, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

const char *hw_study_text(const json_t *entry, const char *key)
{
    const char *s = json_string_value(json_object_get(entry, key));
    return s ? s : "";
}
