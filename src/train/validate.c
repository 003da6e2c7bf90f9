/* Validation during training; see validate.h. The figures are those that `headwise evaluate` and `headwise bleu` print.
 */
#include "validate.h"

#include <math.h>
#include <stdlib.h>

#include <headwise/decode.h>
#include <headwise/heads.h>
#include <headwise/metrics.h>

enum { SAMPLES = 3 };

struct hw_validator {
    const hw_bundle *bundle;
    hw_arena *arena, *scratch; /* kept; of one validation */
    hw_corpus *corpus;
    int64_t count;             /* sentences translated */
    const char **sources;      /* [count] as they stand in the file, */
    size_t *source_bytes;      /* their lengths, */
    hw_span *references;       /* and what is to come of them */
    hw_search_options search;
    hw_translator *translator;
};

static bool read_side(const hw_validator *v, const char *suffix, hw_lines **lines, hw_error *err)
{
    const hw_config *c = v->bundle->config;
    char path[HW_PATH];
    *lines = hw_corpus_path(path, c->data.dir, c->data.valid, suffix, err) ? hw_lines_load(v->arena, path, err) : NULL;
    return *lines;
}

/* The first lines of both sides, the target as a reader would write it. */
static bool read_lines(hw_validator *v, const hw_tokenizer *target_tokenizer, hw_error *err)
{
    const hw_config *c = v->bundle->config;
    hw_lines *source, *target;
    if (!read_side(v, c->data.source, &source, err) || !read_side(v, c->data.target, &target, err)) return false;
    v->count = source->count;
    if (c->training.validate_sentences > 0 && v->count > c->training.validate_sentences)
        v->count = c->training.validate_sentences;
    size_t count = (size_t)v->count;
    v->sources = hw_arena_calloc(v->arena, count, sizeof *v->sources);
    v->source_bytes = hw_arena_calloc(v->arena, count, sizeof *v->source_bytes);
    v->references = hw_arena_calloc(v->arena, count, sizeof *v->references);
    for (int64_t i = 0; i < v->count; i++) {
        v->sources[i] = hw_lines_get(source, i, &v->source_bytes[i]);
        v->references[i] = hw_reference_of(target, i, target_tokenizer, v->arena);
    }
    return true;
}

hw_validator *hw_validator_new(const hw_bundle *bundle, hw_error *err)
{
    hw_validator *v = calloc(1, sizeof *v);
    HW_CHECK(v, "no memory for validation");
    const hw_config *c = bundle->config;
    v->bundle = bundle;
    v->arena = hw_arena_new(0);
    v->scratch = hw_arena_new(0);
    hw_side source = hw_bundle_source(bundle), target = hw_bundle_target(bundle);
    hw_corpus_options limit = {.max_length = hw_longest_source(c)};
    v->corpus = hw_corpus_load(c->data.dir, c->data.valid, &source, &target, &limit, err);
    if (!v->corpus || !read_lines(v, target.tokenizer, err)) {
        hw_validator_free(v);
        return NULL;
    }
    v->search = hw_search_options_of(c);
    v->search.beam = v->search.n_best = 1; /* greedy, whatever translate will use: it is much faster */
    v->search.patience = 1;
    v->search.sampling = false;
    v->search.ids_only = true;
    v->translator = hw_translator_new(bundle, &v->search);
    return v;
}

void hw_validator_free(hw_validator *v)
{
    if (!v) return;
    hw_translator_free(v->translator);
    hw_corpus_free(v->corpus);
    hw_arena_free(v->arena);
    hw_arena_free(v->scratch);
    free(v);
}

const hw_too_long *hw_validator_too_long(const hw_validator *v) { return &hw_corpus_count(v->corpus)->too_long; }

uint64_t hw_validator_fingerprint(const hw_validator *v)
{
    const hw_config *c = v->bundle->config;
    uint64_t print = hw_corpus_fingerprint(v->corpus);
    for (int64_t i = 0; i < v->count; i++) { /* unknown words have one id, and not one text */
        print = hw_fingerprint_bytes(print, v->sources[i], v->source_bytes[i]);
        print = hw_fingerprint_bytes(print, v->references[i].text, v->references[i].size);
    }
    return c->training.track_heads > 0 ? hw_fingerprint_set(print, v->bundle, c->data.dir, c->data.valid) : print;
}

static bool text_figures(hw_validator *v, const char **outputs, hw_validation *out, hw_error *err)
{
    hw_metric *bleu = hw_bleu_new(NULL, err), *chrf = bleu ? hw_chrf_new(NULL, err) : NULL;
    if (chrf) {
        hw_metric_add_lines(bleu, outputs, v->references, v->count);
        hw_metric_add_lines(chrf, outputs, v->references, v->count);
        out->bleu = hw_metric_score(bleu);
        out->chrf = hw_metric_score(chrf);
        hw_metric_signature(bleu, NULL, out->bleu_signature, sizeof out->bleu_signature);
        hw_metric_signature(chrf, NULL, out->chrf_signature, sizeof out->chrf_signature);
        out->exact_match = hw_exact_match(outputs, v->references, v->count);
    }
    bool ok = chrf != NULL;
    hw_metric_free(bleu);
    hw_metric_free(chrf);
    return ok;
}

bool hw_validate(hw_validator *v, hw_validation *out, hw_error *err)
{
    hw_arena_reset(v->scratch);
    hw_loss_count sums =
        hw_score_corpus(hw_translator_runner(v->translator), v->corpus, v->bundle->config->training.validate_sentences,
                        v->bundle->config->training.label_smoothing);
    double tokens = sums.tokens > 0 ? (double)sums.tokens : 1;
    out->loss = sums.loss / tokens;
    out->perplexity = hw_perplexity(sums.nll, sums.tokens);
    out->token_accuracy = (double)sums.correct / tokens;
    const hw_translation *translations = hw_translate_lines(v->translator, v->count, v->sources, v->source_bytes);
    const char **outputs = hw_arena_calloc(v->scratch, (size_t)v->count + 1, sizeof *outputs);
    for (int64_t i = 0; i < v->count; i++) outputs[i] = translations[i].count ? translations[i].texts[0] : "";
    const char *samples = "";
    for (int64_t i = 0; i < SAMPLES && i < v->count; i++) {
        int64_t k = i * v->count / SAMPLES;
        samples = hw_arena_string(v->scratch, "%s%s  source     %s\n  reference  %s\n  output   %s%s", samples,
                                  i ? "\n" : "", v->sources[k], v->references[k].text, *outputs[k] ? "  " : "",
                                  outputs[k]);
    }
    out->samples = samples;
    return text_figures(v, outputs, out, err);
}

double hw_validation_metric(const hw_validation *v, int metric)
{
    const double values[] = {
        [HW_METRIC_EXACT_MATCH] = v->exact_match,       [HW_METRIC_BLEU] = v->bleu,
        [HW_METRIC_CHRF] = v->chrf,                     [HW_METRIC_TOKEN_ACCURACY] = v->token_accuracy,
        [HW_METRIC_PERPLEXITY] = v->perplexity,         [HW_METRIC_LOSS] = v->loss,
    };
    return values[metric];
}

bool hw_metric_better(int metric, double a, double b)
{
    if (!isfinite(a) || !isfinite(b)) return isfinite(a);
    return metric == HW_METRIC_PERPLEXITY || metric == HW_METRIC_LOSS ? a < b : a > b;
}

bool hw_validation_better(const hw_validation *v, int metric, double best, double best_loss)
{
    double value = hw_validation_metric(v, metric);
    if (hw_metric_better(metric, value, best)) return true;
    return !hw_metric_better(metric, best, value) && hw_metric_better(HW_METRIC_LOSS, v->loss, best_loss);
}
