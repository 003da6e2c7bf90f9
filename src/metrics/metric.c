/* Layer 9, metrics: what BLEU and chrF have in common: reading sentences in, scoring them, the signature (Post 2018,
 * "A call for clarity in reporting BLEU scores"), whose fields stand in sacreBLEU's order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metric.h"

hw_span hw_span_of(const char *text)
{
    return (hw_span){text, text ? strlen(text) : 0};
}

hw_metric *hw_metric_new(const hw_metric_kind *kind, int width)
{
    hw_metric *metric = calloc(1, sizeof *metric);
    HW_CHECK(metric, "no memory for a metric");
    metric->kind = kind;
    metric->scratch = hw_arena_new(1 << 16);
    hw_tally_init(&metric->tally, width, kind->score, &metric->options);
    return metric;
}

void hw_metric_free(hw_metric *metric)
{
    if (!metric) return;
    hw_tally_clear(&metric->tally);
    hw_arena_free(metric->scratch);
    free(metric);
}

hw_span hw_reference_of(const hw_lines *lines, int64_t i, const hw_tokenizer *tokenizer, hw_arena *arena)
{
    hw_span reference;
    size_t bytes;
    const char *line = hw_lines_get(lines, i, &bytes);
    reference.text = hw_tokenizer_detokenize(tokenizer, arena, line, bytes, &reference.size);
    return reference;
}

void hw_metric_add(hw_metric *metric, hw_span hypothesis, const hw_span *references, int count)
{
    hw_arena *scratch = metric->scratch;
    hw_arena_reset(scratch);
    hw_symbols *lines = hw_arena_alloc(scratch, (size_t)(count + 1) * sizeof *lines);
    int used = 0;
    for (int i = 0; i < count; i++)
        if (references[i].text) lines[used++] = hw_symbols_decode(scratch, references[i]);
    HW_CHECK(used > 0 && hypothesis.text, "a sentence needs a hypothesis and at least one reference");

    double row[HW_TALLY_WIDTH];
    metric->kind->row(metric, hw_symbols_decode(scratch, hypothesis), lines, used, row);
    hw_tally_add(&metric->tally, row);
    if (metric->references == 0) metric->references = used;
    else if (metric->references != used) metric->references = -1;
}

void hw_metric_add_lines(hw_metric *metric, const char *const *hypotheses, const hw_span *references, int64_t count)
{
    for (int64_t i = 0; i < count; i++) hw_metric_add(metric, hw_span_of(hypotheses[i]), &references[i], 1);
}

double hw_metric_score(const hw_metric *metric)
{
    return hw_tally_score(&metric->tally);
}

double hw_metric_sentence(const hw_metric *metric, int64_t i)
{
    HW_CHECK(i >= 0 && i < metric->tally.count, "sentence %lld of %lld", (long long)i, (long long)metric->tally.count);
    return metric->kind->score(metric->tally.rows + i * metric->tally.width, &metric->options);
}

const hw_tally *hw_metric_tally(const hw_metric *metric)
{
    return &metric->tally;
}

const char *hw_metric_name(const hw_metric *metric)
{
    return metric->name;
}

void hw_metric_signature(const hw_metric *metric, const hw_resampling *resampling, char *out, size_t size)
{
    char references[16] = "var", drawn[96] = "", own[128]; /* references: not of all sentences the same number */
    if (metric->references >= 0) snprintf(references, sizeof references, "%d", metric->references);
    if (resampling && (resampling->bootstrap || resampling->randomization)) {
        int n = 0;
        if (resampling->bootstrap) n += snprintf(drawn, sizeof drawn, "|bs:%d", resampling->bootstrap);
        if (resampling->randomization)
            n += snprintf(drawn + n, sizeof drawn - (size_t)n, "|ar:%d", resampling->randomization);
        snprintf(drawn + n, sizeof drawn - (size_t)n, "|seed:%llu", (unsigned long long)resampling->seed);
    }
    metric->kind->describe(metric, own, sizeof own);
    snprintf(out, size, "nrefs:%s%s|%s|version:headwise-%s", references, drawn, own, HW_VERSION);
}
