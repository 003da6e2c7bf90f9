/* Lines of text to lines of text: cut into tokens, searched, put together again. A blank line has nothing to search;
 * its translation is the empty line. */
#include <headwise/decode.h>

#include <stdlib.h>
#include <string.h>

#include "decode/unknown.h"

struct hw_translator {
    const hw_bundle *bundle; /* the first */
    const hw_search_options *options;
    int networks;
    hw_runner **runners;
    int64_t done;    /* lines, in all calls before */
    hw_arena *arena; /* as long as the results of a call */
};

/* ---- one or several ---------------------------------------------------------------------------------------------- */

hw_translator *hw_translator_of(int count, const hw_bundle *const *bundles, const hw_search_options *options)
{
    HW_CHECK(count > 0 && count <= HW_MOST_NETWORKS, "an ensemble of %d networks", count);
    hw_translator *t = calloc(1, sizeof *t);
    hw_runner **runners = calloc((size_t)count, sizeof(hw_runner *));
    HW_CHECK(t && runners, "no memory for a translator");
    *t = (hw_translator){
        .bundle = bundles[0], .options = options, .networks = count, .runners = runners, .arena = hw_arena_new(0)};
    for (int i = 0; i < count; i++) t->runners[i] = hw_runner_new(bundles[i]->network);
    return t;
}

hw_translator *hw_translator_new(const hw_bundle *bundle, const hw_search_options *options)
{
    return hw_translator_of(1, &bundle, options);
}

void hw_translator_free(hw_translator *t)
{
    if (!t) return;
    for (int i = 0; i < t->networks; i++) hw_runner_free(t->runners[i]);
    free(t->runners);
    hw_arena_free(t->arena);
    free(t);
}

hw_runner *hw_translator_runner(hw_translator *t) { return t->runners[0]; }

static bool same_vocabulary(const hw_vocabulary *a, const hw_vocabulary *b, const char *side, hw_error *err)
{
    if (hw_vocabulary_fingerprint(a) == hw_vocabulary_fingerprint(b)) return true;
    return hw_fail(err, "the %s vocabularies are not the same: %lld and %lld tokens; an ensemble needs one", side,
                   (long long)hw_vocabulary_size(a), (long long)hw_vocabulary_size(b));
}

bool hw_same_texts(const hw_bundle *a, const hw_bundle *b, hw_error *err)
{
    if (strcmp(a->config->text.tokenizer, b->config->text.tokenizer) ||
        strcmp(a->config->text.joiner, b->config->text.joiner))
        return hw_fail(err, "text is not cut alike: tokenizer %s with joiner \"%s\", and %s with \"%s\"",
                       a->config->text.tokenizer, a->config->text.joiner, b->config->text.tokenizer,
                       b->config->text.joiner);
    if (!same_vocabulary(a->source_vocabulary, b->source_vocabulary, "source", err) ||
        !same_vocabulary(a->target_vocabulary, b->target_vocabulary, "target", err))
        return false;
    if (hw_tokenizer_same_model(a->source_tokenizer, b->source_tokenizer) &&
        hw_tokenizer_same_model(a->target_tokenizer, b->target_tokenizer))
        return true;
    return hw_fail(err, "the SentencePiece models are not the same, though their pieces are: they cut text otherwise");
}

/* ---- text in ----------------------------------------------------------------------------------------------------- */

hw_ids hw_token_ids(const hw_tokens *tokens, hw_arena *arena)
{
    int32_t *ids = hw_arena_alloc(arena, (size_t)tokens->count * sizeof *ids);
    for (int64_t i = 0; i < tokens->count; i++) ids[i] = tokens->items[i].id;
    return (hw_ids){ids, tokens->count};
}

int64_t hw_longest_source(const hw_config *c)
{
    if (c->decoding.longest_source) return c->decoding.longest_source;
    return c->data.max_length > HW_LONGEST_SOURCE ? c->data.max_length : HW_LONGEST_SOURCE;
}

static int64_t longest_source(const hw_translator *t)
{
    return t->options->longest_source ? t->options->longest_source : hw_longest_source(t->bundle->config);
}

static void read_line(const hw_translator *t, hw_text line, hw_tokens *scratch, hw_translation *out)
{
    const hw_bundle *b = t->bundle;
    scratch->most = longest_source(t);
    out->broken = !hw_tokenizer_encode(b->source_tokenizer, b->source_vocabulary, line.text, line.bytes, scratch);
    out->unread = scratch->unread;
    out->source = hw_token_ids(scratch, t->arena);
    out->source_tokens = hw_arena_copy(t->arena, scratch->items, (size_t)scratch->count * sizeof *scratch->items);
}

int64_t hw_translator_longest_prefix(const hw_translator *t)
{
    return t->options->max_length ? t->options->max_length : longest_source(t);
}

static bool read_prefix(const hw_translator *t, hw_text prefix, hw_tokens *tokens)
{
    *tokens = hw_tokens_new(t->arena);
    tokens->most = hw_translator_longest_prefix(t);
    const hw_bundle *b = t->bundle;
    return !prefix.text ||
           hw_tokenizer_encode(b->target_tokenizer, b->target_vocabulary, prefix.text, prefix.bytes, tokens);
}

int64_t hw_translator_prefix_tokens(hw_translator *t, hw_text prefix)
{
    hw_arena_mark mark = hw_arena_begin(t->arena);
    hw_tokens tokens;
    read_prefix(t, prefix, &tokens);
    hw_arena_end(t->arena, mark);
    return tokens.count + tokens.unread;
}

/* ---- text out ---------------------------------------------------------------------------------------------------- */

/* A line that is being translated. */
typedef struct work {
    hw_translation *out;
    const hw_token *prefix; /* the tokens that were given, by their own letters */
    int64_t prefix_count;
    const int64_t *const *attended; /* of each hypothesis, see hw_most_attended; NULL: unknown words stay */
} work;

/* The word that a token of the source belongs to, spelled as one token. */
static hw_token whole_word(const hw_translator *t, const hw_translation *line, int64_t at)
{
    const hw_tokenizer *cutter = t->bundle->source_tokenizer;
    int64_t from = at, to = at;
    while (from > 0 && hw_tokenizer_goes_on(cutter, &line->source_tokens[from - 1])) from--;
    while (to + 1 < line->source.count && hw_tokenizer_goes_on(cutter, &line->source_tokens[to])) to++;
    if (from == to && !hw_tokenizer_goes_on(cutter, &line->source_tokens[at])) return line->source_tokens[at];
    hw_token word = {.id = HW_UNKNOWN};
    word.text = hw_tokenizer_decode(cutter, t->arena, line->source_tokens + from, to - from + 1, &word.bytes);
    return word;
}

static hw_token token_of(const hw_translator *t, const work *w, int64_t k, int64_t at)
{
    int32_t id = w->out->hypotheses[k].ids[at];
    if (at < w->prefix_count) return w->prefix[at];
    if (id == HW_UNKNOWN && w->attended) return whole_word(t, w->out, w->attended[k][at]);
    return hw_tokenizer_token(t->bundle->target_tokenizer, t->bundle->target_vocabulary, id);
}

static char *decode(const hw_translator *t, const work *w, int64_t k, size_t *bytes)
{
    const hw_bundle *b = t->bundle;
    const hw_hypothesis *h = &w->out->hypotheses[k];
    if (!w->prefix_count && !w->attended)
        return hw_tokenizer_decode_ids(b->target_tokenizer, b->target_vocabulary, t->arena, h->ids, h->length, bytes);
    hw_token *tokens = hw_arena_alloc(t->arena, (size_t)h->length * sizeof *tokens);
    for (int64_t i = 0; i < h->length; i++) tokens[i] = token_of(t, w, k, i);
    return hw_tokenizer_decode(b->target_tokenizer, t->arena, tokens, h->length, bytes);
}

/* A 0 byte, as a piece for it or a word of the source may bring one, must not hide what follows: it is a blank. NULL:
 * the tokenizer fails. */
static const char *text_of(const hw_translator *t, const work *w, int64_t k)
{
    size_t bytes;
    char *text = decode(t, w, k, &bytes);
    for (char *c = text; c && (c = memchr(c, 0, (size_t)(text + bytes - c)));) *c = ' ';
    return text;
}

static bool has_unknown(const hw_hypothesis *h)
{
    for (int64_t i = 0; i < h->length; i++)
        if (h->ids[i] == HW_UNKNOWN) return true;
    return false;
}

/* Finds the source words for all lines that have an unknown word at once. */
static void look_for_unknown(hw_translator *t, work *works, int64_t count)
{
    int64_t lines = 0, pairs = 0;
    for (int64_t i = 0; i < count; i++) pairs += works[i].out->count;
    hw_ids *sources = hw_arena_alloc(t->arena, (size_t)pairs * sizeof *sources),
           *targets = hw_arena_alloc(t->arena, (size_t)pairs * sizeof *targets);
    work **which = hw_arena_alloc(t->arena, (size_t)count * sizeof(work *));
    pairs = 0;
    for (int64_t i = 0; i < count; i++) {
        const hw_translation *out = works[i].out;
        bool any = false;
        for (int64_t k = 0; k < out->count && out->hypotheses; k++) any |= has_unknown(&out->hypotheses[k]);
        if (!any) continue;
        which[lines++] = &works[i];
        for (int64_t k = 0; k < out->count; k++) {
            sources[pairs] = out->source;
            targets[pairs++] = (hw_ids){out->hypotheses[k].ids, out->hypotheses[k].length};
        }
    }
    const int64_t *const *attended = hw_most_attended(t->networks, t->runners, pairs, sources, targets, t->arena);
    for (int64_t i = 0; i < lines; attended += which[i++]->out->count) which[i]->attended = attended;
}

static void write_lines(hw_translator *t, work *works, int64_t count)
{
    static const char *const nothing[] = {""};
    if (t->options->replace_unknown) look_for_unknown(t, works, count);
    for (int64_t i = 0; i < count; i++) {
        hw_translation *out = works[i].out;
        out->texts = nothing;
        if (!out->hypotheses) continue;
        const char **texts = hw_arena_alloc(t->arena, (size_t)out->count * sizeof *texts);
        for (int64_t k = 0; k < out->count; k++) out->broken |= !(texts[k] = text_of(t, &works[i], k));
        out->texts = texts;
        if (out->broken) out->count = 0;
    }
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

const hw_translation *hw_translate_from(hw_translator *t, int64_t count, const hw_text *lines, const hw_text *prefixes)
{
    hw_arena_reset(t->arena);
    hw_translation *out = hw_arena_calloc(t->arena, (size_t)count, sizeof *out);
    work *works = hw_arena_calloc(t->arena, (size_t)count, sizeof *works);
    hw_ids *sources = hw_arena_alloc(t->arena, (size_t)count * sizeof *sources),
           *begun = hw_arena_calloc(t->arena, (size_t)count, sizeof *begun);
    int64_t *numbers = hw_arena_alloc(t->arena, (size_t)count * sizeof *numbers), searched = 0;
    hw_tokens scratch = hw_tokens_new(t->arena);
    for (int64_t i = 0; i < count; i++) {
        works[i].out = &out[i];
        read_line(t, lines[i], &scratch, &out[i]);
        if (prefixes && out[i].source.count) {
            hw_tokens tokens;
            if (!read_prefix(t, prefixes[i], &tokens)) out[i] = (hw_translation){.broken = true};
            works[i].prefix = tokens.items;
            works[i].prefix_count = tokens.count;
            begun[searched] = hw_token_ids(&tokens, t->arena);
        }
        if (!out[i].source.count) continue;
        numbers[searched] = t->done + i;
        sources[searched++] = out[i].source;
    }
    t->done += count;
    hw_search_task task = {t->networks, t->runners, searched, sources, prefixes ? begun : NULL, numbers};
    const hw_hypotheses *found = hw_search_task_run(&task, t->options);
    for (int64_t i = 0; i < count; i++) {
        out[i].count = out[i].source.count ? found->count : !out[i].broken;
        if (out[i].source.count) out[i].hypotheses = found++->items;
    }
    write_lines(t, works, count);
    return out;
}

const hw_translation *hw_translate_lines(hw_translator *t, int64_t count, const char *const *lines, const size_t *bytes)
{
    hw_arena *arena = hw_arena_new(0);
    hw_text *texts = hw_arena_alloc(arena, (size_t)count * sizeof *texts);
    for (int64_t i = 0; i < count; i++) texts[i] = (hw_text){lines[i], bytes ? bytes[i] : strlen(lines[i])};
    const hw_translation *out = hw_translate_from(t, count, texts, NULL);
    hw_arena_free(arena);
    return out;
}
