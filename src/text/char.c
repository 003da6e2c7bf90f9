/* Tokenizer `char`: every code point is a token.
 *
 * A blank is shown as U+2581 (as SentencePiece does; Kudo and Richardson 2018), so that a vocabulary file and a list of
 * tokens can be read. U+2581 itself becomes two of them, so that decoding gives back every line to the byte. */
#include "text/tokenizer.h"

#include <string.h>

#define BLANK "\xE2\x96\x81"
enum { BLANK_BYTES = sizeof BLANK - 1 };

static bool is(const char *text, size_t bytes, const char *what, size_t size)
{
    return bytes == size && !memcmp(text, what, size);
}

static bool encode(const hw_tokenizer *t, const hw_vocabulary *v, const char *line, size_t bytes, hw_tokens *tokens)
{
    (void)t;
    int step;
    for (size_t at = 0; at < bytes; at += (size_t)step) {
        hw_utf8_decode(line + at, bytes - at, &step);
        const char *token = line + at;
        size_t size = (size_t)step;
        if (is(token, size, " ", 1))
            token = BLANK, size = BLANK_BYTES;
        else if (is(token, size, BLANK, BLANK_BYTES))
            token = BLANK BLANK, size = 2 * BLANK_BYTES;
        hw_tokens_add(tokens, token, size, v ? hw_vocabulary_find(v, token, size) : HW_UNKNOWN);
    }
    return true;
}

static char *decode(const hw_tokenizer *t, hw_arena *arena, const hw_token *tokens, int64_t count, size_t *bytes)
{
    (void)t;
    char *out = hw_tokens_room(arena, tokens, count), *to = out;
    for (int64_t i = 0; i < count; i++) {
        const char *text = tokens[i].text;
        size_t size = tokens[i].bytes;
        if (is(text, size, BLANK, BLANK_BYTES))
            text = " ", size = 1;
        else if (is(text, size, BLANK BLANK, 2 * BLANK_BYTES))
            size = BLANK_BYTES;
        memcpy(to, text, size);
        to += size;
    }
    *to = 0;
    *bytes = (size_t)(to - out);
    return out;
}

const hw_tokenizer_kind hw_tokenizer_char = {.name = "char", .encode = encode, .decode = decode};
