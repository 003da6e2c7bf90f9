/* The file corpus.json: what the training set was like, so that whoever translates can tell what the model has never
 * seen. A model directory may be without it. */
#include <headwise/bundle.h>

#include <jansson.h>

static const char *const NAME = "corpus.json";

bool hw_bundle_save_corpus(const hw_corpus_counts *n, const char *directory, hw_error *err)
{
    char path[HW_PATH];
    hw_atomic file;
    if (!hw_bundle_path(path, directory, NAME, err) || !hw_atomic_begin(&file, path, err)) return false;
    fprintf(file.stream,
            "{\n  \"pairs\": %lld,\n  \"source_tokens\": %lld,\n  \"target_tokens\": %lld,\n"
            "  \"source_longest\": %lld,\n  \"target_longest\": %lld\n}\n",
            (long long)n->pairs, (long long)n->source_tokens, (long long)n->target_tokens,
            (long long)n->source_longest, (long long)n->target_longest);
    return hw_atomic_commit(&file, err);
}

int64_t hw_bundle_longest_source(const char *directory)
{
    char path[HW_PATH];
    json_t *root = hw_bundle_path(path, directory, NAME, NULL) ? json_load_file(path, 0, NULL) : NULL;
    int64_t longest = json_integer_value(json_object_get(root, "source_longest"));
    json_decref(root);
    return longest > 0 ? longest : 0;
}
