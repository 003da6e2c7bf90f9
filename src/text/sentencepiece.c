/* Tokenizer `sentencepiece`: pieces that a model found in text by itself.
 *
 * The model (unigram, Kudo 2018, "Subword regularization"; or BPE, Sennrich, Haddow and Birch 2016) says how a line is
 * normalised and cut; the library does both (sentencepiece_shim.h). A model has ids of its own, which nobody here uses:
 * a piece is looked up in the vocabulary like any other token, and the vocabulary of a model is its pieces in their
 * order after the three special tokens. So models whose special pieces have other ids or names fit too. */
#include "text/sentencepiece.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/lines.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

/* Longer lines are passed over in training, as the library does by itself. */
enum { LONGEST_LINE = 4192 };

/* ---- the model --------------------------------------------------------------------------------------------------- */

/* Takes the bytes over. */
static hw_sentencepiece *new_model(char *bytes, size_t size, char reason[HW_SPM_REASON])
{
    hw_spm *spm = hw_spm_load(bytes, size, reason);
    if (!spm) {
        free(bytes);
        return NULL;
    }
    hw_sentencepiece *model = malloc(sizeof *model);
    HW_CHECK(model, "out of memory");
    *model = (hw_sentencepiece){spm, bytes, size};
    return model;
}

hw_sentencepiece *hw_sentencepiece_load(const char *path, hw_error *err)
{
    hw_map map;
    if (!hw_map_open(&map, path, err)) return NULL;
    char *bytes = malloc(map.size + 1), reason[HW_SPM_REASON];
    HW_CHECK(bytes, "out of memory");
    size_t size = map.size;
    if (size) memcpy(bytes, map.data, size);
    hw_map_close(&map);
    hw_sentencepiece *model = new_model(bytes, size, reason);
    if (!model) hw_fail(err, "%s: it is no SentencePiece model (%s)", path, reason);
    return model;
}

void hw_sentencepiece_free(hw_sentencepiece *model)
{
    if (!model) return;
    hw_spm_free(model->spm);
    free(model->bytes);
    free(model);
}

void hw_tokenizer_write(const hw_tokenizer *t, FILE *out)
{
    HW_CHECK(t->model, "tokenizer %s has no model", t->kind->name);
    fwrite(t->model->bytes, 1, t->model->size, out);
}

bool hw_tokenizer_save(const hw_tokenizer *t, const char *path, hw_error *err)
{
    hw_atomic file;
    if (!hw_atomic_begin(&file, path, err)) return false;
    hw_tokenizer_write(t, file.stream);
    return hw_atomic_commit(&file, err);
}

/* ---- pieces and vocabulary --------------------------------------------------------------------------------------- */

/* The i-th piece that can stand in a line; NULL for control pieces and the like. */
static const char *piece_of(const hw_spm *spm, int i, size_t *bytes)
{
    hw_spm_kind kind = hw_spm_piece_kind(spm, i);
    if (kind != HW_SPM_TEXT && kind != HW_SPM_SYMBOL && kind != HW_SPM_BYTE) return NULL;
    const char *piece = hw_spm_piece(spm, i, bytes);
    return *bytes && !memchr(piece, '\n', *bytes) ? piece : NULL;
}

hw_vocabulary *hw_tokenizer_vocabulary(const hw_tokenizer *t, hw_arena *arena)
{
    if (!t->model) return NULL;
    hw_vocabulary *v = hw_vocabulary_begin(arena);
    for (int i = 0; i < hw_spm_size(t->model->spm); i++) {
        size_t bytes;
        const char *piece = piece_of(t->model->spm, i, &bytes);
        if (piece) hw_vocabulary_add(v, piece, bytes);
    }
    return v;
}

bool hw_tokenizer_fits(const hw_tokenizer *t, const hw_vocabulary *v, const char *model, const char *vocabulary,
                       hw_error *err)
{
    if (!t->model) return true;
    hw_arena *scratch = hw_arena_new(0);
    const hw_vocabulary *own = hw_tokenizer_vocabulary(t, scratch);
    int32_t count = hw_vocabulary_size(own), found = hw_vocabulary_size(v);
    bool fits = count == found;
    if (!fits)
        hw_fail(err, "%s has %d tokens, but the model %s has %d, special tokens included; they do not belong together",
                vocabulary, found, model, count);
    for (int32_t id = HW_SPECIALS; fits && id < count; id++) {
        size_t bytes;
        char quoted[HW_QUOTE];
        const char *piece = hw_vocabulary_token(own, id, &bytes);
        fits = hw_vocabulary_find(v, piece, bytes) != HW_UNKNOWN;
        if (!fits)
            hw_fail(err, "%s does not have the piece %s of the model %s; they do not belong together", vocabulary,
                    hw_quote(quoted, piece, bytes), model);
    }
    hw_arena_free(scratch);
    return fits;
}

/* ---- cutting and joining ----------------------------------------------------------------------------------------- */

typedef struct encoding {
    const hw_vocabulary *v;
    hw_tokens *tokens;
} encoding;

static void add_piece(const char *piece, size_t bytes, void *context)
{
    encoding *e = context;
    int32_t id = e->v ? hw_vocabulary_find(e->v, piece, bytes) : HW_UNKNOWN;
    const char *text = piece;
    if (id != HW_UNKNOWN)
        text = hw_vocabulary_token(e->v, id, NULL);
    else if (!hw_tokens_full(e->tokens))
        text = hw_arena_copy(e->tokens->arena, piece, bytes);
    hw_tokens_add(e->tokens, text, bytes, id);
}

static bool encode(const hw_tokenizer *t, const hw_vocabulary *v, const char *line, size_t bytes, hw_tokens *tokens)
{
    return hw_spm_encode(t->model->spm, line, bytes, add_piece, &(encoding){v, tokens});
}

typedef struct decoding {
    hw_arena *arena;
    char *text;
    size_t bytes;
} decoding;

/* A newline, for which there is a piece among those for bytes, would end the line: it is a blank. */
static void take_text(const char *text, size_t bytes, void *context)
{
    decoding *d = context;
    d->text = hw_arena_alloc(d->arena, bytes + 1);
    memcpy(d->text, text, bytes);
    d->text[bytes] = 0;
    d->bytes = bytes;
    for (char *c = d->text; (c = memchr(c, '\n', (size_t)(d->text + bytes - c)));) *c = ' ';
}

static char *decode(const hw_tokenizer *t, hw_arena *arena, const hw_token *tokens, int64_t count, size_t *bytes)
{
    hw_spm_text *pieces = hw_arena_alloc(arena, (size_t)count * sizeof *pieces);
    for (int64_t i = 0; i < count; i++) pieces[i] = (hw_spm_text){tokens[i].text, tokens[i].bytes};
    decoding d = {.arena = arena};
    take_text("", 0, &d);
    if (!hw_spm_decode(t->model->spm, pieces, (size_t)count, take_text, &d)) return NULL;
    *bytes = d.bytes;
    return d.text;
}

const hw_tokenizer_kind hw_tokenizer_sentencepiece = {
    .name = "sentencepiece", .models = true, .encode = encode, .decode = decode};

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* The lines of all files, one after another; of more than `limit` every so many-th. */
typedef struct text {
    int count, at;
    const char *const *paths;
    hw_reader *reader;
    int64_t seen, total, limit;
    hw_error err;
    bool failed;
} text;

/* 1: the next line of the files that is not blank nor too long, 0: the end, -1: an error. */
static int next_usable(text *x, char **line, size_t *bytes)
{
    for (;;) {
        if (!x->reader && x->at == x->count) return 0;
        if (!x->reader && !(x->reader = hw_reader_open(x->paths[x->at++], &x->err))) return -1;
        int got = hw_next_line(x->reader, x->paths[x->at - 1], line, bytes, &x->err);
        if (got < 0) return got;
        if (got && *bytes <= LONGEST_LINE && hw_count_words(*line, *bytes)) return 1;
        if (got) continue;
        hw_reader_close(x->reader);
        x->reader = NULL;
    }
}

static void rewind_text(text *x)
{
    hw_reader_close(x->reader);
    x->reader = NULL;
    x->at = 0;
    x->seen = 0;
}

static bool count_lines(text *x)
{
    char *line;
    size_t bytes;
    int got;
    while ((got = next_usable(x, &line, &bytes)) == 1) x->total++;
    rewind_text(x);
    return got == 0;
}

static bool next_line(const char **line, size_t *bytes, void *context)
{
    text *x = context;
    char *found;
    int got;
    while ((got = next_usable(x, &found, bytes)) == 1) {
        int64_t i = x->seen++;
        if (i * x->limit / x->total == (i + 1) * x->limit / x->total) continue;
        *line = found;
        return true;
    }
    x->failed = got < 0;
    return false;
}

typedef struct buffer {
    char *bytes;
    size_t size;
} buffer;

static void take_model(const char *bytes, size_t size, void *context)
{
    buffer *b = context;
    b->bytes = malloc(size + 1);
    HW_CHECK(b->bytes, "out of memory");
    memcpy(b->bytes, bytes, size);
    b->size = size;
}

/* The library's reason, or, for the usual one, what to do: its own advice names options of its program. */
static void say_why(const hw_subword_options *o, const text *x, const char *reason, hw_error *err)
{
    const char *others = x->count > 1 ? " and others" : "";
    int64_t least;
    if (sscanf(reason, "Vocabulary size is smaller than required_chars. %*d vs %" SCNd64, &least) == 1)
        hw_fail(err,
                "%s%s: %" PRId64 " tokens are too few for a SentencePiece model of it: the characters%s and the special "
                "tokens alone are %" PRId64 "; ask for more, or for a lower coverage of characters",
                x->paths[0], others, o->size, o->byte_fallback ? ", 256 bytes" : "", least);
    else
        hw_fail(err, "%s%s: no SentencePiece model of %" PRId64 " tokens can be made of it: %s", x->paths[0], others,
                o->size, reason);
}

static hw_sentencepiece *train(const hw_subword_options *o, text *x, hw_error *err)
{
    char reason[HW_SPM_REASON];
    buffer made = {0};
    hw_spm_training training = {.bpe = o->bpe,
                                .size = o->size,
                                .coverage = o->coverage,
                                .byte_fallback = o->byte_fallback,
                                .normalization = o->normalization,
                                .next = next_line,
                                .context = x};
    bool good = hw_spm_train(&training, take_model, &made, reason);
    if (x->failed) {
        hw_fail(err, "%s", x->err.message);
        free(made.bytes);
        return NULL;
    }
    hw_sentencepiece *model = good ? new_model(made.bytes, made.size, reason) : NULL;
    if (!model) say_why(o, x, reason, err);
    return model;
}

hw_tokenizer *hw_tokenizer_train(const hw_subword_options *o, int count, const char *const *paths, hw_error *err)
{
    text x = {.count = count, .paths = paths};
    hw_sentencepiece *model = NULL;
    for (int i = 0; i < count; i++)
        if (!hw_check_rereadable(paths[i], err)) return NULL;
    if (!count_lines(&x)) {
        hw_fail(err, "%s", x.err.message);
    } else if (!x.total) {
        hw_fail(err, "%s%s: there is no word in it to make a vocabulary of", paths[0], count > 1 ? " and others" : "");
    } else {
        x.limit = o->lines && o->lines < x.total ? o->lines : x.total;
        model = train(o, &x, err);
    }
    rewind_text(&x);
    if (!model) return NULL;
    hw_tokenizer *t = malloc(sizeof *t);
    HW_CHECK(t, "out of memory");
    *t = (hw_tokenizer){.kind = &hw_tokenizer_sentencepiece, .owners = 1, .model = model};
    return t;
}
