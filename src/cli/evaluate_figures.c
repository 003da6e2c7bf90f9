/* The figures of headwise evaluate. They are those that training's validation computes, by the same functions: lines
 * translated and compared as a reader sees them, and the reference scored by teacher forcing. */
#include <string.h>

#include "cli/evaluate.h"

enum { BATCHES_AT_ONCE = 4 }; /* a thread, between two looks at the progress */

/* ---- translations ------------------------------------------------------------------------------------------------ */

static void keep(hw_cli *cli, const hw_translation *t, const char **to, hw_evaluation *out)
{
    *to = t->count ? hw_arena_string(cli->arena, "%s", t->texts[0]) : "";
    out->failed += !t->count && !t->broken;
    out->broken += t->broken;
    out->source_tokens += t->source.count;
    for (int64_t i = 0; i < t->source.count; i++) out->unknown += t->source.ids[i] == HW_UNKNOWN;
    out->unread_lines += t->unread > 0;
    out->unread_tokens += t->unread;
}

static void translate(hw_cli *cli, hw_translator *translator, int64_t window, const hw_test_set *set,
                      hw_evaluation *out)
{
    hw_cli_progress progress = hw_cli_progress_new(cli);
    double begun = hw_seconds();
    const char **lines = hw_arena_alloc(cli->arena, (size_t)window * sizeof *lines);
    size_t *bytes = hw_arena_alloc(cli->arena, (size_t)window * sizeof *bytes);
    out->translations = hw_arena_alloc(cli->arena, (size_t)set->count * sizeof *out->translations);
    for (int64_t first = 0, count; first < set->count; first += count) {
        count = set->count - first < window ? set->count - first : window;
        for (int64_t i = 0; i < count; i++) lines[i] = hw_lines_get(set->source, first + i, &bytes[i]);
        const hw_translation *t = hw_translate_lines(translator, count, lines, bytes);
        for (int64_t i = 0; i < count; i++) keep(cli, &t[i], &out->translations[first + i], out);
        hw_progress p = {.what = "translate",
                         .done = first + count,
                         .total = set->count,
                         .seconds = hw_seconds() - begun,
                         .detail = ""};
        if (p.done < p.total) hw_cli_progress_show(&p, &progress);
    }
    hw_cli_progress_clear();
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static bool compare(const hw_test_set *set, hw_evaluation *out, hw_error *err)
{
    hw_metric *bleu = hw_bleu_new(NULL, err), *chrf = bleu ? hw_chrf_new(NULL, err) : NULL;
    if (chrf) {
        hw_metric_add_lines(bleu, out->translations, set->references, set->count);
        hw_metric_add_lines(chrf, out->translations, set->references, set->count);
        out->bleu = hw_metric_score(bleu);
        out->chrf = hw_metric_score(chrf);
        snprintf(out->bleu_name, sizeof out->bleu_name, "%s", hw_metric_name(bleu));
        snprintf(out->chrf_name, sizeof out->chrf_name, "%s", hw_metric_name(chrf));
        hw_metric_signature(bleu, NULL, out->signature, sizeof out->signature);
        hw_metric_signature(chrf, NULL, out->chrf_signature, sizeof out->chrf_signature);
        out->exact_match = hw_exact_match(out->translations, set->references, set->count);
    }
    bool ok = chrf;
    hw_metric_free(bleu);
    hw_metric_free(chrf);
    return ok;
}

static void count_groups(hw_cli *cli, const hw_test_set *set, hw_evaluation *out)
{
    out->groups = set->groups ? set->groups->groups : 0;
    out->group = hw_arena_calloc(cli->arena, (size_t)out->groups, sizeof *out->group);
    for (int g = 0; g < out->groups; g++) out->group[g].name = set->groups->names[g];
    for (int64_t i = 0; i < set->count && out->groups; i++) {
        hw_evaluated_group *g = &out->group[set->groups->group[i]];
        g->sentences++;
        g->matches += hw_exact_match(&out->translations[i], &set->references[i], 1) > 0;
    }
}

/* The sums of one network over the corpus, by a runner of its own where none is given. */
static hw_loss_count sums_of(const hw_bundle *b, const hw_corpus *corpus, hw_runner *runner)
{
    if (runner) return hw_score_corpus(runner, corpus, 0, 0);
    runner = hw_runner_new(b->network);
    hw_loss_count sums = hw_score_corpus(runner, corpus, 0, 0);
    hw_runner_free(runner);
    return sums;
}

/* Pairs with a blank side have no tokens to score and are left out, as in training; so are those that are too long for
 * attention, which costs the square of that: they are counted. Of several models the mean of the log-probabilities
 * counts, as in the search. */
static bool score(const hw_cli_ensemble *models, const hw_test_set *set, hw_runner *runner, hw_evaluation *out,
                  hw_error *err)
{
    const hw_bundle *const *b = (const hw_bundle *const *)models->bundles;
    hw_side source = hw_bundle_source(b[0]), target = hw_bundle_target(b[0]);
    hw_corpus_options limit = {.max_length = hw_longest_source(b[0]->config)};
    hw_corpus *corpus = hw_corpus_load(set->directory, set->prefix, &source, &target, &limit, err);
    if (!corpus) return false;
    out->too_long = hw_corpus_count(corpus)->too_long;
    hw_loss_count sums = sums_of(b[0], corpus, runner);
    double apart = 0;
    for (int k = 1; k < models->count; k++) apart += sums_of(b[k], corpus, NULL).nll - sums.nll;
    out->perplexity = hw_perplexity(sums.nll + apart / models->count, sums.tokens);
    out->token_accuracy = (double)sums.correct / (double)sums.tokens;
    hw_corpus_free(corpus);
    return true;
}

bool hw_evaluate(hw_cli *cli, const hw_cli_ensemble *models, const hw_config *config, const hw_test_set *set,
                 hw_evaluation *out, hw_error *err)
{
    *out = (hw_evaluation){.sentences = set->count, .together = models->count > 1};
    hw_search_options search = hw_search_options_of(config);
    search.n_best = 1;
    search.ids_only = true;
    hw_translator *translator = hw_translator_of(models->count, (const hw_bundle *const *)models->bundles, &search);
    hw_runner *runner = hw_translator_runner(translator);
    bool ok = score(models, set, runner, out, err);
    if (ok) {
        translate(cli, translator, search.batch_sentences * hw_threads() * BATCHES_AT_ONCE, set, out);
        ok = compare(set, out, err);
        count_groups(cli, set, out);
        if (ok && set->alignments && !out->together)
            ok = hw_evaluate_alignment(models->bundles[0], set, runner, &out->alignment, err);
    }
    hw_translator_free(translator);
    return ok;
}
