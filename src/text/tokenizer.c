/* The table of tokenizers, and what all of them share.
 *
 * A kind is one row of the table: it cuts a line into tokens and puts tokens together again. Ids come from the
 * vocabulary, also where a model of its own finds the pieces (SentencePiece). */
#include "text/tokenizer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text/sentencepiece.h"
#include "text/strings.h"

static const hw_tokenizer_kind *const kinds[] = {&hw_tokenizer_word, &hw_tokenizer_char, &hw_tokenizer_sentencepiece};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *hw_tokenizer_kind_name(int i) { return i >= 0 && i < KINDS ? kinds[i]->name : NULL; }

static const char *kind_name(int i, const void *argument)
{
    (void)argument;
    return kinds[i]->name;
}

static const hw_tokenizer_kind *find_kind(const char *name, hw_error *err)
{
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i]->name, name)) return kinds[i];
    char known[256] = "";
    for (int i = 0; i < KINDS; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", kinds[i]->name);
    const char *nearest = hw_nearest(name, KINDS, kind_name, NULL);
    if (nearest)
        hw_fail(err, "there is no tokenizer \"%s\"; did you mean \"%s\"? (known: %s)", name, nearest, known);
    else
        hw_fail(err, "there is no tokenizer \"%s\" (known: %s)", name, known);
    return NULL;
}

static bool set_joiner(hw_tokenizer *t, const char *joiner, hw_error *err)
{
    size_t size;
    const char *fault = hw_joiner_fault(joiner, &size);
    if (!fault && !t->kind->joins) fault = "this tokenizer has none";
    if (fault) return hw_fail(err, "joiner \"%s\" of tokenizer %s: %s", joiner, t->kind->name, fault);
    memcpy(t->mark, joiner, size);
    t->mark_bytes = size;
    return true;
}

/* The model of a kind that needs one. */
static bool set_model(hw_tokenizer *t, const char *path, hw_error *err)
{
    bool given = path && *path;
    if (given && !t->kind->models) return hw_fail(err, "%s: tokenizer %s has no model", path, t->kind->name);
    if (!given && t->kind->models)
        return hw_fail(err, "tokenizer %s needs a model, a file such as shared.model", t->kind->name);
    if (given) t->model = hw_sentencepiece_load(path, err);
    return !given || t->model;
}

hw_tokenizer *hw_tokenizer_new(const hw_tokenizer_options *options, hw_error *err)
{
    hw_tokenizer made = {.kind = find_kind(options->name, err), .owners = 1};
    if (!made.kind) return NULL;
    if (options->joiner && *options->joiner && !set_joiner(&made, options->joiner, err)) return NULL;
    if (!set_model(&made, options->model, err)) return NULL;
    hw_tokenizer *t = malloc(sizeof *t);
    HW_CHECK(t, "out of memory");
    *t = made;
    return t;
}

hw_tokenizer *hw_tokenizer_share(hw_tokenizer *t)
{
    t->owners++;
    return t;
}

void hw_tokenizer_free(hw_tokenizer *t)
{
    if (!t || --t->owners) return;
    hw_sentencepiece_free(t->model);
    free(t);
}

bool hw_tokenizer_has_model(const hw_tokenizer *t) { return t->model; }

bool hw_tokenizer_same_model(const hw_tokenizer *a, const hw_tokenizer *b)
{
    if (!a->model || !b->model) return !a->model == !b->model;
    return a->model->size == b->model->size && !memcmp(a->model->bytes, b->model->bytes, a->model->size);
}

hw_tokens hw_tokens_new(hw_arena *arena) { return (hw_tokens){.arena = arena}; }

void hw_tokens_add(hw_tokens *tokens, const char *text, size_t bytes, int32_t id)
{
    if (hw_tokens_full(tokens)) {
        tokens->unread++;
        return;
    }
    tokens->items = hw_grow(tokens->arena, tokens->items, tokens->count, &tokens->capacity, sizeof *tokens->items);
    tokens->items[tokens->count++] = (hw_token){.text = text, .bytes = bytes, .id = id};
}

bool hw_tokenizer_encode(const hw_tokenizer *t, const hw_vocabulary *v, const char *line, size_t bytes,
                         hw_tokens *tokens)
{
    tokens->count = tokens->unread = 0;
    if (t->kind->encode(t, v, line, bytes, tokens)) return true;
    tokens->count = tokens->unread = 0;
    return false;
}

bool hw_tokenizer_failed(const char *path, int64_t line, hw_error *err)
{
    return hw_fail(err, "%s:%" PRId64 ": SentencePiece fails at this line; there may be too little memory for it", path,
                   line);
}

bool hw_tokenizer_goes_on(const hw_tokenizer *t, const hw_token *token)
{
    return t->mark_bytes && token->bytes >= t->mark_bytes &&
           !memcmp(token->text + token->bytes - t->mark_bytes, t->mark, t->mark_bytes);
}

char *hw_tokens_room(hw_arena *arena, const hw_token *tokens, int64_t count)
{
    size_t room = (size_t)count + 1;
    for (int64_t i = 0; i < count; i++) room += tokens[i].bytes;
    return hw_arena_alloc(arena, room);
}

char *hw_tokenizer_decode(const hw_tokenizer *t, hw_arena *arena, const hw_token *tokens, int64_t count, size_t *bytes)
{
    size_t size;
    char *text = t->kind->decode(t, arena, tokens, count, &size);
    if (bytes) *bytes = size;
    return text;
}

hw_token hw_tokenizer_token(const hw_tokenizer *t, const hw_vocabulary *v, int32_t id)
{
    hw_token token = {.id = id};
    token.text = id == HW_UNKNOWN && t->model ? hw_spm_unknown(t->model->spm, &token.bytes)
                                              : hw_vocabulary_token(v, id, &token.bytes);
    return token;
}

char *hw_tokenizer_decode_ids(const hw_tokenizer *t, const hw_vocabulary *v, hw_arena *arena, const int32_t *ids,
                              int64_t count, size_t *bytes)
{
    hw_tokens tokens = hw_tokens_new(arena);
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] == HW_BEGIN || ids[i] == HW_END) continue;
        hw_token token = hw_tokenizer_token(t, v, ids[i]);
        hw_tokens_add(&tokens, token.text, token.bytes, token.id);
    }
    return hw_tokenizer_decode(t, arena, tokens.items, tokens.count, bytes);
}

char *hw_tokenizer_detokenize(const hw_tokenizer *t, hw_arena *arena, const char *line, size_t bytes, size_t *length)
{
    if (!t->kind->joins) {
        if (length) *length = bytes;
        return memcpy(hw_arena_calloc(arena, 1, bytes + 1), line, bytes);
    }
    hw_tokens tokens = hw_tokens_new(arena);
    hw_tokenizer_encode(t, NULL, line, bytes, &tokens);
    return hw_tokenizer_decode(t, arena, tokens.items, tokens.count, length);
}
