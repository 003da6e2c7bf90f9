/* The file corpus.json: what the training set was like, so that whoever translates can tell what the model has never
 * seen. A model directory may be without it. */
#include <headwise/bundle.h>

#include <string.h>

#include <jansson.h>

#include "corpus_file.h"

static const char *const NAME = "corpus.json";

/* Which tokenizers' models the run found, so that they are found again when it begins anew. */
static const char *const FOUND = "models_found";

static void write_found(FILE *out, const hw_config *run)
{
    char path[HW_PATH];
    int count = 0;
    for (int side = 0; run && side < 2; side++)
        if (hw_texts_found(run, side, path))
            fprintf(out, "%s\"%s\"", count++ ? ", " : ",\n  \"models_found\": [", strrchr(path, '/') + 1);
    if (count) fputc(']', out);
}

bool hw_bundle_save_corpus(const hw_corpus_counts *n, const hw_config *run, const char *directory, hw_error *err)
{
    char path[HW_PATH];
    hw_atomic file;
    if (!hw_bundle_path(path, directory, NAME, err) || !hw_atomic_begin(&file, path, err)) return false;
    fprintf(file.stream,
            "{\n  \"pairs\": %lld,\n  \"source_tokens\": %lld,\n  \"target_tokens\": %lld,\n"
            "  \"source_longest\": %lld,\n  \"target_longest\": %lld",
            (long long)n->pairs, (long long)n->source_tokens, (long long)n->target_tokens,
            (long long)n->source_longest, (long long)n->target_longest);
    write_found(file.stream, run);
    fputs("\n}\n", file.stream);
    return hw_atomic_commit(&file, err);
}

/* What stands there, or NULL. */
static json_t *load(const char *directory)
{
    char path[HW_PATH];
    return hw_bundle_path(path, directory, NAME, NULL) ? json_load_file(path, 0, NULL) : NULL;
}

bool hw_bundle_copy_corpus(const char *from, const char *directory, hw_error *err)
{
    json_t *root = load(from);
    if (!root) return true;
    hw_corpus_counts n = {.pairs = json_integer_value(json_object_get(root, "pairs")),
                          .source_tokens = json_integer_value(json_object_get(root, "source_tokens")),
                          .target_tokens = json_integer_value(json_object_get(root, "target_tokens")),
                          .source_longest = json_integer_value(json_object_get(root, "source_longest")),
                          .target_longest = json_integer_value(json_object_get(root, "target_longest"))};
    json_decref(root);
    return hw_bundle_save_corpus(&n, NULL, directory, err);
}

bool hw_bundle_wrote(const char *directory, const char *name)
{
    char path[HW_PATH];
    if (!hw_bundle_path(path, directory, NAME, NULL) || !hw_file_exists(path)) return false;
    json_t *root = load(directory);
    const json_t *found = json_object_get(root, FOUND);
    bool listed = false;
    for (size_t i = 0; i < json_array_size(found); i++) {
        const char *text = json_string_value(json_array_get(found, i));
        listed |= text && !strcmp(text, name);
    }
    json_decref(root);
    return !listed;
}

int64_t hw_bundle_longest_source(const char *directory)
{
    json_t *root = load(directory);
    int64_t longest = json_integer_value(json_object_get(root, "source_longest"));
    json_decref(root);
    return longest > 0 ? longest : 0;
}
