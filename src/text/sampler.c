/* Subword regularization: another cut of the same sentence in each epoch.
 *
 * A unigram model draws a cut with probability proportional to the product of its pieces' probabilities to the power
 * alpha (Kudo 2018, "Subword regularization", section 3.4, with all cuts as candidates: forward filtering, backward
 * sampling); a BPE model leaves out each merge with probability alpha (Provilkov, Emelianenko and Voita 2020,
 * "BPE-dropout"). Both start from the ids of the best cut, whose pieces hold the text as the model normalised it; so
 * neither the text nor the library is needed in training, and the draws are ours: a function of the generator that is
 * passed alone. Pieces for bytes, symbols of a user's and unknown pieces stay as they are. */
#include "text/sentencepiece.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/links.h"
#include "text/strings.h"
#include "text/tokenizer.h"

struct hw_sampler {
    const hw_vocabulary *v;
    double alpha;
    bool bpe;
    hw_arena *arena;
    hw_strings pieces; /* what may be cut otherwise, and every beginning of it; value: the id, or HW_UNKNOWN */
    float *score;      /* of each id */
    bool *fixed;       /* of each id: not among the pieces */
};

static bool is_start(const char *text, size_t bytes, size_t at)
{
    return at >= bytes || ((uint8_t)text[at] & 0xC0) != 0x80;
}

static void add_piece(hw_sampler *s, const char *piece, size_t bytes, int32_t id, float score)
{
    for (size_t to = 1; to < bytes; to++)
        if (is_start(piece, bytes, to)) hw_strings_add(&s->pieces, piece, to);
    hw_strings_add(&s->pieces, piece, bytes)->value = id;
    s->score[id] = score;
    s->fixed[id] = false;
}

hw_sampler *hw_sampler_new(const hw_tokenizer *t, const hw_vocabulary *v, double alpha, hw_error *err)
{
    const hw_spm *spm = t->model ? t->model->spm : NULL;
    if (!spm || !(hw_spm_is_unigram(spm) || hw_spm_is_bpe(spm))) {
        hw_fail(
            err,
            "text.sampling needs a SentencePiece model of the type unigram or bpe; this tokenizer has one cut a line");
        return NULL;
    }
    hw_arena *arena = hw_arena_new(0);
    hw_sampler *s = hw_arena_calloc(arena, 1, sizeof *s);
    size_t size = (size_t)hw_vocabulary_size(v);
    *s = (hw_sampler){.v = v, .alpha = alpha, .bpe = hw_spm_is_bpe(spm), .arena = arena, .pieces = {.arena = arena}};
    s->score = hw_arena_calloc(arena, size, sizeof *s->score);
    s->fixed = hw_arena_alloc(arena, size * sizeof *s->fixed);
    memset(s->fixed, true, size * sizeof *s->fixed);
    for (int i = 0; i < hw_spm_size(spm); i++) {
        size_t bytes;
        const char *piece = hw_spm_piece(spm, i, &bytes);
        int32_t id = hw_vocabulary_find(v, piece, bytes);
        if (id != HW_UNKNOWN && hw_spm_piece_kind(spm, i) == HW_SPM_TEXT)
            add_piece(s, piece, bytes, id, hw_spm_score(spm, i));
    }
    return s;
}

void hw_sampler_free(hw_sampler *s)
{
    if (s) hw_arena_free(s->arena);
}

/* A run of pieces that may be cut otherwise: their text, and ids that are drawn for it. */
typedef struct run {
    const char *text;
    size_t bytes;
    int32_t *out; /* room for an id a byte */
    int64_t count;
} run;

/* ---- unigram ----------------------------------------------------------------------------------------------------- */

/* A piece that can stand at a place of the text, and the log of the sum over all cuts that go on with it. */
typedef struct arc {
    size_t to;
    int32_t id;
    double weight;
} arc;

typedef struct lattice {
    arc *arcs;
    int64_t count, capacity;
    int64_t *first; /* [bytes] a place's arcs are first[i] .. last[i] - 1 */
    int64_t *last;
    double *after; /* [bytes + 1] the log of the sum over all cuts of text[i ..] of the product of p^alpha */
} lattice;

/* log(exp(a) + exp(b)) */
static double add_logs(double a, double b)
{
    double high = a > b ? a : b, low = a > b ? b : a;
    return low == -INFINITY ? high : high + log1p(exp(low - high));
}

/* All arcs from a place, as long as the text from there is the beginning of a piece. */
static void add_arcs(const hw_sampler *s, const run *r, hw_arena *arena, lattice *l, size_t from)
{
    uint64_t hash = HW_HASH_START;
    l->first[from] = l->count;
    l->after[from] = -INFINITY;
    for (size_t at = from, to; at < r->bytes; at = to) {
        for (to = at + 1; !is_start(r->text, r->bytes, to); to++) continue;
        hash = hw_hash(hash, r->text + at, to - at);
        int64_t found = hw_strings_find_hash(&s->pieces, hash, r->text + from, to - from);
        if (found < 0) break;
        int32_t id = (int32_t)s->pieces.items[found].value;
        if (id == HW_UNKNOWN || l->after[to] == -INFINITY) continue;
        l->arcs = hw_grow(arena, l->arcs, l->count, &l->capacity, sizeof *l->arcs);
        arc *a = &l->arcs[l->count++];
        *a = (arc){to, id, l->after[to] + s->alpha * s->score[id]};
        l->after[from] = add_logs(l->after[from], a->weight);
    }
    l->last[from] = l->count;
}

/* Sums from the end of the text to its start, then draws from the start to the end. False where the text has no cut. */
static bool draw_unigram(const hw_sampler *s, run *r, hw_random *random, hw_arena *arena)
{
    lattice l = {0};
    l.first = hw_arena_alloc(arena, r->bytes * sizeof *l.first);
    l.last = hw_arena_alloc(arena, r->bytes * sizeof *l.last);
    l.after = hw_arena_alloc(arena, (r->bytes + 1) * sizeof *l.after);
    l.after[r->bytes] = 0;
    for (size_t from = r->bytes; from-- > 0;)
        if (is_start(r->text, r->bytes, from)) add_arcs(s, r, arena, &l, from);
    if (l.after[0] == -INFINITY) return false;
    for (size_t at = 0; at < r->bytes;) {
        const arc *a = &l.arcs[l.first[at]], *last = &l.arcs[l.last[at] - 1];
        double left = hw_random_uniform(random);
        while (a < last && (left -= exp(a->weight - l.after[at])) >= 0) a++;
        r->out[r->count++] = a->id;
        at = a->to;
    }
    return true;
}

/* ---- BPE --------------------------------------------------------------------------------------------------------- */

/* The id of the piece text[from .. to - 1], or HW_UNKNOWN. */
static int32_t piece_at(const hw_sampler *s, const run *r, size_t from, size_t to)
{
    int64_t found = hw_strings_find(&s->pieces, r->text + from, to - from);
    return found < 0 ? HW_UNKNOWN : (int32_t)s->pieces.items[found].value;
}

/* A symbol in a row of them, and what it makes with the next one. */
typedef struct symbol {
    size_t from, to;
    int64_t before, next; /* -1: none */
    int32_t merged;       /* HW_UNKNOWN: no piece, or left out by chance */
} symbol;

static void look_ahead(const hw_sampler *s, const run *r, symbol *symbols, int64_t i)
{
    if (i < 0) return;
    int64_t next = symbols[i].next;
    symbols[i].merged = next < 0 ? HW_UNKNOWN : piece_at(s, r, symbols[i].from, symbols[next].to);
}

/* The merge with the highest score, the leftmost of equal ones; -1: there is none. */
static int64_t best_merge(const hw_sampler *s, const symbol *symbols)
{
    int64_t best = -1;
    for (int64_t i = 0; i >= 0; i = symbols[i].next)
        if (symbols[i].merged != HW_UNKNOWN &&
            (best < 0 || s->score[symbols[i].merged] > s->score[symbols[best].merged]))
            best = i;
    return best;
}

/* Merges from code points on. A merge that was left out comes again only as part of another pair. */
static bool draw_bpe(const hw_sampler *s, run *r, hw_random *random, hw_arena *arena)
{
    symbol *symbols = hw_arena_alloc(arena, r->bytes * sizeof *symbols);
    int64_t count = 0;
    for (size_t at = 0, to; at < r->bytes; at = to, count++) {
        for (to = at + 1; !is_start(r->text, r->bytes, to); to++) continue;
        symbols[count] = (symbol){at, to, count - 1, to < r->bytes ? count + 1 : -1, HW_UNKNOWN};
    }
    for (int64_t i = 0; i < count; i++) look_ahead(s, r, symbols, i);
    for (int64_t i; (i = best_merge(s, symbols)) >= 0;) {
        if (hw_random_uniform(random) < s->alpha) {
            symbols[i].merged = HW_UNKNOWN;
            continue;
        }
        int64_t gone = symbols[i].next, next = symbols[gone].next;
        symbols[i].to = symbols[gone].to;
        symbols[i].next = next;
        if (next >= 0) symbols[next].before = i;
        look_ahead(s, r, symbols, i);
        look_ahead(s, r, symbols, symbols[i].before);
    }
    for (int64_t i = 0; i >= 0; i = symbols[i].next) {
        r->out[r->count] = piece_at(s, r, symbols[i].from, symbols[i].to);
        if (r->out[r->count++] == HW_UNKNOWN) return false; /* a character that only stands in larger pieces */
    }
    return true;
}

/* ---- a sentence -------------------------------------------------------------------------------------------------- */

/* Draws a cut of ids[0 .. count - 1], none of which is fixed, into out; returns how many ids it has. */
static int64_t draw_run(const hw_sampler *s, const int32_t *ids, int64_t count, int32_t *out, hw_random *random,
                        hw_arena *arena)
{
    size_t bytes = 0, size;
    for (int64_t i = 0; i < count; i++) bytes += (hw_vocabulary_token(s->v, ids[i], &size), size);
    char *text = hw_arena_alloc(arena, bytes), *to = text;
    for (int64_t i = 0; i < count; i++, to += size) {
        const char *piece = hw_vocabulary_token(s->v, ids[i], &size);
        memcpy(to, piece, size);
    }
    run r = {.text = text, .bytes = bytes, .out = out};
    if (s->bpe ? draw_bpe(s, &r, random, arena) : draw_unigram(s, &r, random, arena)) return r.count;
    memcpy(out, ids, (size_t)count * sizeof *out);
    return count;
}

hw_ids hw_sampler_draw(const hw_sampler *s, hw_ids best, hw_random *random, hw_arena *arena)
{
    size_t room = 0, size;
    for (int64_t i = 0; i < best.count; i++) room += (hw_vocabulary_token(s->v, best.ids[i], &size), size);
    int32_t *out = hw_arena_alloc(arena, room * sizeof *out);
    hw_arena_mark mark = hw_arena_begin(arena);
    int64_t count = 0;
    for (int64_t i = 0, stop; i < best.count; i = stop) {
        for (stop = i; stop < best.count && !s->fixed[best.ids[stop]]; stop++) continue;
        if (stop > i)
            count += draw_run(s, best.ids + i, stop - i, out + count, random, arena);
        else
            out[count++] = best.ids[stop++];
    }
    hw_arena_end(arena, mark);
    return (hw_ids){out, count};
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Cuts of a sentence have the same text, so a word ends at the same byte in both; a token is the word's in which it
 * begins. */
const int32_t *hw_sampler_word_tokens(const hw_sampler *s, hw_ids best, const int32_t *tokens, int64_t words,
                                      hw_ids drawn, hw_arena *arena)
{
    int32_t *out = hw_arena_calloc(arena, (size_t)words, sizeof *out);
    size_t end = 0, begin = 0, size;
    int64_t b = 0, d = 0;
    for (int64_t w = 0; w < words; w++) {
        for (int32_t i = 0; i < tokens[w]; i++, b++) end += (hw_vocabulary_token(s->v, best.ids[b], &size), size);
        for (; d < drawn.count && begin < end; d++, out[w]++)
            begin += (hw_vocabulary_token(s->v, drawn.ids[d], &size), size);
    }
    return out;
}
