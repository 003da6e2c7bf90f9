/* Any bytes as each kind of text file, plain or as gzip finds them: lines, a vocabulary, alignments, dependencies,
 * groups. */
#include "fuzz.h"

static void read_each(hw_arena *arena, const char *path)
{
    hw_error err;
    hw_tokenizer *t = hw_tokenizer_new(&(hw_tokenizer_options){.name = "word", .joiner = "@@"}, &err);
    hw_counts *counts = hw_counts_new(arena);
    hw_lines_load(arena, path, &err);
    hw_vocabulary_load(arena, path, &err);
    hw_alignments_load(arena, path, &err);
    hw_conllu_load(arena, path, &err);
    hw_groups_load(arena, path, &err);
    if (hw_counts_add_file(counts, t, path, &err)) {
        const hw_vocabulary *v = hw_vocabulary_build(arena, counts, &(hw_vocabulary_options){.max_size = 20});
        hw_tokens tokens = hw_tokens_new(arena);
        hw_lines *lines = hw_lines_load(arena, path, &err);
        for (int64_t i = 0; lines && i < lines->count; i++) {
            size_t bytes;
            const char *line = hw_lines_get(lines, i, &bytes);
            hw_tokenizer_encode(t, v, line, bytes, &tokens);
        }
    }
    hw_tokenizer_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    hw_arena *arena = hw_arena_new(0);
    int file = fuzz_file(data, size, path);
    read_each(arena, path);
    close(file);
    hw_arena_free(arena);
    return 0;
}
