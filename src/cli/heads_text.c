/* What the texts of the verbs of headwise heads have in common: figures that may be missing, intervals, p, and what a
 * reader must know before he believes a figure. The latter stands in the result itself, so that it is said again where
 * a result was kept, and that programs which read JSON learn it too. */
#include <math.h>
#include <string.h>

#include "cli/heads.h"

enum { ROUGH_BELOW = 30 }; /* sentences: percentiles of resamples are too narrow there (Hesterberg 2015) */
static const double many_unknown = 0.1;

/* ---- cells ------------------------------------------------------------------------------------------------------- */

void hw_heads_number(hw_cli_table *t, const json_t *o, const char *key, double scale, int digits, bool sign)
{
    double x = hw_study_number(o, key);
    if (isnan(x))
        hw_cli_cell(t, "-");
    else
        hw_cli_cell(t, sign ? "%+.*f" : "%.*f", digits, scale * x);
}

void hw_heads_interval(hw_cli_table *t, const json_t *o, const char *low, const char *high, double scale, int digits,
                       bool sign)
{
    double from = hw_study_number(o, low), to = hw_study_number(o, high);
    if (isnan(from))
        hw_cli_cell(t, "-");
    else
        hw_cli_cell(t, sign ? "[%+.*f, %+.*f]" : "[%.*f, %.*f]", digits, scale * from, digits, scale * to);
}

void hw_heads_p(hw_cli_table *t, const json_t *o)
{
    double p = hw_study_number(o, "p");
    bool bound = json_is_true(json_object_get(o, "p_is_bound")) && p < 1;
    if (isnan(p))
        hw_cli_cell(t, "-");
    else if (p < 1e-99)
        hw_cli_cell(t, "< 1e-99");
    else
        hw_cli_cell(t, "%s%.2g", bound ? "< " : "", p);
}

const char *hw_heads_sentences(const hw_heads *h, const json_t *result)
{
    int64_t count = json_integer_value(json_object_get(result, "sentences"));
    return hw_arena_string(h->cli->arena, "%lld %s", (long long)count, hw_plural(count, "sentence", "sentences"));
}

void hw_heads_say(const char *text)
{
    hw_cli_wrap(stdout, text, 0, 0, 100);
    putchar('\n');
}

/* ---- caveats ----------------------------------------------------------------------------------------------------- */

static bool has_intervals(const hw_heads_verb *verb)
{
    for (const char *const *c = verb->columns; *c; c++)
        if (!strcmp(*c, "low")) return true;
    return false;
}

/* Pairs of a set that are left out for their length; NULL: none is. */
static json_t *left_out_json(const hw_heads *h, const char *directory, const char *prefix, const hw_too_long *t)
{
    const hw_config *c = h->bundle->config;
    char path[HW_PATH];
    if (!t->pairs || !hw_corpus_path(path, directory, prefix, t->side ? c->data.target : c->data.source, NULL))
        return NULL;
    return json_pack("{s:I, s:o}", "pairs", (json_int_t)t->pairs, "why",
                     hw_json_text(hw_too_long_describe(t, path, h->cli->arena)));
}

static void add_left_out(json_t *result, json_t *set)
{
    json_t *list = json_object_get(result, "left_out");
    if (set && !list) json_object_set_new(result, "left_out", list = json_array());
    if (set) json_array_append_new(list, set);
}

/* How many tokens of the data the vocabularies lack; and pairs that are left out. */
static void add_data(const hw_heads *h, json_t *result)
{
    enum { AT_ONCE = 1024 };
    hw_error err;
    hw_study_stream *stream = hw_study_stream_open(h->bundle, h->directory, h->prefix, &err);
    if (!stream) return;
    hw_arena *chunk = hw_arena_new(0);
    hw_study_set set;
    int64_t tokens = 0, unknown = 0;
    while (hw_study_stream_next(stream, chunk, AT_ONCE, &set, &err) == 1) {
        for (int64_t i = 0; i < 2 * set.count; i++) {
            hw_ids of = set.pairs[i / 2].words[i % 2].ids;
            tokens += of.count;
            for (int64_t k = 0; k < of.count; k++) unknown += of.ids[k] == HW_UNKNOWN;
        }
        hw_arena_reset(chunk);
    }
    hw_arena_free(chunk);
    hw_study_stream_close(stream);
    json_object_set_new(result, "tokens", json_integer(tokens));
    json_object_set_new(result, "unknown_tokens", json_integer(unknown));
    add_left_out(result, left_out_json(h, h->directory, h->prefix, &set.too_long));
    add_left_out(result, left_out_json(h, h->config->data.dir, h->config->data.valid, &h->left_out));
}

void hw_heads_add_closed(const hw_heads *h, const char *prefix, json_t *result)
{
    int count;
    const hw_transformer *m = h->bundle->network;
    const hw_head *heads = hw_heads_of(m, h->cli->arena, &count);
    json_t *closed = json_object_get(result, "closed_heads");
    for (int i = 0; i < count; i++) {
        if (!hw_head_is_closed(m, &heads[i])) continue;
        if (!closed) json_object_set_new(result, "closed_heads", closed = json_array());
        json_array_append_new(closed, hw_json_text(hw_arena_string(h->cli->arena, "%s%s", prefix, heads[i].name)));
    }
}

void hw_heads_add_caveats(const hw_heads *h, const hw_heads_verb *verb, json_t *result)
{
    double sentences = hw_study_number(result, "sentences");
    add_data(h, result);
    hw_heads_add_closed(h, "", result);
    if (isnan(sentences)) sentences = (double)h->scored;
    if (has_intervals(verb)) hw_heads_add_rough(result, (int64_t)sentences);
    if (!h->chosen) return;
    json_object_set_new(result, "chosen_on_scored", json_boolean(h->shared > 0 && 2 * h->shared >= h->scored));
    json_object_set_new(result, "shared_sentences", json_integer(h->shared));
}

void hw_heads_add_rough(json_t *result, int64_t sentences)
{
    json_object_set_new(result, "rough_intervals", json_boolean(hw_heads_is_rough(sentences)));
    json_object_set_new(result, "interval_sentences", json_integer(sentences));
}

bool hw_heads_is_rough(int64_t sentences) { return sentences < ROUGH_BELOW; }

const char *hw_heads_rough(hw_arena *arena, int64_t sentences)
{
    if (sentences < 2) return "Of one sentence there is no interval, and it tells nothing of others.";
    return hw_arena_string(arena,
                           "Intervals from %lld sentences are rough, and rather too narrow: from %d on they can be "
                           "relied on.",
                           (long long)sentences, ROUGH_BELOW);
}

static const char *chosen_text(hw_arena *arena, const json_t *result)
{
    int64_t shared = json_integer_value(json_object_get(result, "shared_sentences"));
    return hw_arena_string(arena,
                           "NOTE: %lld %s scored here %s also in the set that was chosen or learnt on (data.valid). "
                           "What is chosen or learnt on sentences looks better on them than on others: take these "
                           "figures for too good, or name another set by --data.",
                           (long long)shared, hw_plural(shared, "sentence", "sentences"),
                           hw_plural(shared, "stands", "stand"));
}

static const char *unknown_text(hw_arena *arena, double share)
{
    return hw_arena_string(arena,
                           "NOTE: %.0f %% of the tokens are unknown to the model: its vocabulary is not that of these "
                           "sentences, and what heads do with them tells little.",
                           100 * share);
}

static const char *closed_text(hw_arena *arena, const json_t *closed)
{
    const char *names = "";
    for (size_t i = 0; i < json_array_size(closed); i++)
        names = hw_arena_string(arena, "%s%s%s", names, i ? ", " : "", json_string_value(json_array_get(closed, i)));
    return hw_arena_string(arena,
                           "NOTE: closed, what they give being multiplied by zeros: %s. Where they look changes "
                           "nothing, but figures of all heads have them in; `heads prune --remove` writes a model "
                           "without.",
                           names);
}

static const char *left_out_text(hw_arena *arena, const json_t *set)
{
    int64_t pairs = json_integer_value(json_object_get(set, "pairs"));
    return hw_arena_string(arena, "NOTE: %s. %lld such %s left out.", hw_study_text(set, "why"), (long long)pairs,
                           hw_plural(pairs, "pair is", "pairs are"));
}

void hw_heads_note_left_out(const hw_heads *h, const hw_study_set *set)
{
    json_t *left_out = left_out_json(h, set->directory, set->prefix, &set->too_long);
    if (left_out) hw_cli_note(h->cli, "%s", left_out_text(h->cli->arena, left_out));
    json_decref(left_out);
}

static void print_caveat(const hw_heads *h, bool text, const char *caveat)
{
    if (text)
        putchar('\n'), hw_heads_say(caveat);
    else
        hw_cli_note(h->cli, "%s", caveat);
}

void hw_heads_print_caveats(const hw_heads *h, const json_t *result)
{
    hw_arena *arena = h->cli->arena;
    bool text = !h->cli->json && !h->options->tsv;
    double unknown = hw_study_number(result, "unknown_tokens") / hw_study_number(result, "tokens");
    if (unknown >= many_unknown) print_caveat(h, text, unknown_text(arena, unknown));
    const json_t *left_out = json_object_get(result, "left_out");
    for (size_t i = 0; i < json_array_size(left_out); i++)
        print_caveat(h, text, left_out_text(arena, json_array_get(left_out, i)));
    const json_t *closed = json_object_get(result, "closed_heads");
    if (closed) print_caveat(h, text, closed_text(arena, closed));
    if (json_is_true(json_object_get(result, "chosen_on_scored"))) print_caveat(h, text, chosen_text(arena, result));
    if (text && json_is_true(json_object_get(result, "rough_intervals"))) {
        putchar('\n');
        hw_heads_say(hw_heads_rough(arena, json_integer_value(json_object_get(result, "interval_sentences"))));
    }
}

/* ---- roles that were not tested ---------------------------------------------------------------------------------- */

/* "bracket, quote in the encoder: there is no d/test.en.conllu", those of one kind and reason together. */
void hw_heads_print_untested(hw_arena *arena, const json_t *result)
{
    const json_t *all = json_object_get(result, "untested");
    const char *text = "";
    for (size_t i = 0, end; i < json_array_size(all); i = end) {
        const json_t *first = json_array_get(all, i);
        for (end = i; end < json_array_size(all); end++) {
            const json_t *u = json_array_get(all, end);
            if (strcmp(hw_study_text(u, "why"), hw_study_text(first, "why")) ||
                strcmp(hw_study_text(u, "in"), hw_study_text(first, "in")))
                break;
            text = hw_arena_string(arena, "%s%s%s", text, end > i ? ", " : i ? "; " : "", hw_study_text(u, "role"));
        }
        text = hw_arena_string(arena, "%s (%s): %s", text, hw_study_text(first, "in"), hw_study_text(first, "why"));
    }
    if (!*text) return;
    putchar('\n');
    hw_heads_say(hw_arena_string(arena, "Not tested: %s.", text));
}
