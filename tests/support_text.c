#include "support_text.h"

#include "support_files.h"

#include <check.h>
#include <string.h>
#include <zlib.h>

const char *scratch_gzip(const char *name, const char *text)
{
    const char *path = scratch_path(name);
    gzFile f = gzopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(gzwrite(f, text, (unsigned)strlen(text)), (int)strlen(text));
    ck_assert_int_eq(gzclose(f), Z_OK);
    return path;
}

hw_vocabulary *vocabulary_of(hw_arena *arena, const char *words)
{
    hw_counts *counts = hw_counts_new(arena);
    char *copy = hw_arena_string(arena, "%s", words), *place;
    int64_t times = 1000000; /* falling, so that the order is that of the list */
    for (char *word = strtok_r(copy, " ", &place); word; word = strtok_r(NULL, " ", &place))
        hw_counts_add(counts, word, strlen(word), times--);
    return hw_vocabulary_build(arena, counts, &(hw_vocabulary_options){0});
}

hw_tokenizer *tokenizer_of(const char *name, const char *joiner)
{
    hw_error err = {""};
    hw_tokenizer *t = hw_tokenizer_new(&(hw_tokenizer_options){.name = name, .joiner = joiner}, &err);
    ck_assert_msg(t != NULL, "%s", err.message);
    return t;
}

const char *tokens_text(const hw_tokens *tokens)
{
    static char text[4096];
    size_t size = 0;
    for (int64_t i = 0; i < tokens->count; i++) {
        ck_assert_uint_lt(size + tokens->items[i].bytes + 2, sizeof text);
        if (i) text[size++] = '|';
        memcpy(text + size, tokens->items[i].text, tokens->items[i].bytes);
        size += tokens->items[i].bytes;
    }
    text[size] = 0;
    return text;
}
