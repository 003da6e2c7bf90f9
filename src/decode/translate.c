/* Lines of text to lines of text: cut into tokens, searched, put together again. A blank line has nothing to search;
 * its translation is the empty line. */
#include <headwise/decode.h>

#include <stdlib.h>
#include <string.h>

struct hw_translator {
    const hw_bundle *bundle;
    const hw_search_options *options;
    hw_runner *runner;
    hw_arena *arena; /* as long as the results of a call */
};

hw_translator *hw_translator_new(const hw_bundle *bundle, const hw_search_options *options)
{
    hw_translator *t = calloc(1, sizeof *t);
    HW_CHECK(t, "no memory for a translator");
    *t = (hw_translator){bundle, options, hw_runner_new(bundle->network), hw_arena_new(0)};
    return t;
}

void hw_translator_free(hw_translator *t)
{
    if (!t) return;
    hw_runner_free(t->runner);
    hw_arena_free(t->arena);
    free(t);
}

hw_runner *hw_translator_runner(hw_translator *t) { return t->runner; }

hw_ids hw_token_ids(const hw_tokens *tokens, hw_arena *arena)
{
    int32_t *ids = hw_arena_alloc(arena, (size_t)tokens->count * sizeof *ids);
    for (int64_t i = 0; i < tokens->count; i++) ids[i] = tokens->items[i].id;
    return (hw_ids){ids, tokens->count};
}

static void read_line(const hw_translator *t, const char *line, size_t bytes, hw_tokens *scratch, hw_translation *out)
{
    const hw_bundle *b = t->bundle;
    hw_tokenizer_encode(b->source_tokenizer, b->source_vocabulary, line, bytes, scratch);
    int64_t longest = b->config->data.max_length > HW_LONGEST_SOURCE ? b->config->data.max_length : HW_LONGEST_SOURCE;
    if (scratch->count > longest) {
        out->unread = scratch->count - longest;
        scratch->count = longest;
    }
    out->source = hw_token_ids(scratch, t->arena);
    out->source_tokens = hw_arena_copy(t->arena, scratch->items, (size_t)scratch->count * sizeof *scratch->items);
}

static void write_line(const hw_translator *t, const hw_hypotheses *found, hw_translation *out)
{
    const hw_bundle *b = t->bundle;
    const char **texts = hw_arena_alloc(t->arena, (size_t)found->count * sizeof *texts);
    for (int64_t k = 0; k < found->count; k++)
        texts[k] = hw_tokenizer_decode_ids(b->target_tokenizer, b->target_vocabulary, t->arena, found->items[k].ids,
                                           found->items[k].length, NULL);
    out->count = found->count;
    out->texts = texts;
    out->hypotheses = found->items;
}

const hw_translation *hw_translate_lines(hw_translator *t, int64_t count, const char *const *lines, const size_t *bytes)
{
    static const char *const nothing[] = {""};
    hw_arena_reset(t->arena);
    hw_translation *out = hw_arena_calloc(t->arena, (size_t)count, sizeof *out);
    hw_ids *sources = hw_arena_alloc(t->arena, (size_t)count * sizeof *sources);
    hw_tokens scratch = hw_tokens_new(t->arena);
    int64_t searched = 0;
    for (int64_t i = 0; i < count; i++) {
        read_line(t, lines[i], bytes ? bytes[i] : strlen(lines[i]), &scratch, &out[i]);
        if (out[i].source.count)
            sources[searched++] = out[i].source;
        else
            out[i] = (hw_translation){.count = 1, .texts = nothing};
    }
    const hw_hypotheses *found = hw_search(t->runner, t->options, searched, sources);
    for (int64_t i = 0; i < count; i++)
        if (out[i].source.count) write_line(t, found++, &out[i]);
    return out;
}
