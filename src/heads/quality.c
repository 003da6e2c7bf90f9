/* What a network is worth on a set: loss with the target fed, and exact match and BLEU of its translations; measured
 * again and again with heads changed. Figures are those of headwise evaluate, from sums that are kept a row a sentence,
 * so that two measurements can be compared sentence by sentence (hw_paired_difference). */
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

enum { BATCHES_AT_ONCE = 4 }; /* a thread, that translate together */

struct hw_meter {
    const hw_bundle *bundle;
    const hw_study_set *set;
    const hw_search_options *search; /* NULL: loss only */
    hw_translator *translator;       /* or a runner alone */
    hw_runner *runner;
    hw_arena *arena;
    hw_span *references; /* [pairs] as a reader would write them */
    hw_ids *ids[2];
};

hw_meter *hw_meter_new(const hw_bundle *bundle, const hw_study_set *set, const hw_search_options *search)
{
    hw_arena *arena = hw_arena_new(0);
    hw_meter *m = hw_arena_calloc(arena, 1, sizeof *m);
    *m = (hw_meter){.bundle = bundle, .set = set, .search = search, .arena = arena};
    m->translator = search ? hw_translator_new(bundle, search) : NULL;
    m->runner = search ? hw_translator_runner(m->translator) : hw_runner_new(bundle->network);
    for (int s = 0; s < 2; s++) {
        m->ids[s] = hw_arena_alloc(arena, (size_t)set->count * sizeof *m->ids[s]);
        for (int64_t i = 0; i < set->count; i++) m->ids[s][i] = set->pairs[i].words[s].ids;
    }
    m->references = hw_arena_alloc(arena, (size_t)set->count * sizeof *m->references);
    for (int64_t i = 0; i < set->count && search; i++)
        m->references[i] =
            hw_reference_of(set->texts[HW_TARGET], set->pairs[i].line, bundle->target_tokenizer, arena);
    return m;
}

void hw_meter_free(hw_meter *m)
{
    if (!m) return;
    if (m->translator)
        hw_translator_free(m->translator);
    else
        hw_runner_free(m->runner);
    hw_arena_free(m->arena);
}

hw_runner *hw_meter_runner(hw_meter *m) { return m->runner; }

void hw_quality_clear(hw_quality *q)
{
    hw_tally_clear(&q->loss);
    hw_tally_clear(&q->match);
    hw_metric_free(q->bleu);
    q->bleu = NULL;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static void measure_loss(hw_meter *m, hw_quality *out)
{
    int64_t tokens = 0, count = m->set->count;
    for (int64_t i = 0; i < count; i++) tokens += m->ids[HW_TARGET][i].count + 1;
    hw_real *nll = malloc((size_t)tokens * sizeof *nll), *at = nll;
    HW_CHECK(nll, "no memory for the losses of %lld tokens", (long long)tokens);
    hw_score_pairs(m->runner, count, m->ids[HW_SOURCE], m->ids[HW_TARGET], 0, nll);
    for (int64_t i = 0; i < count; i++) {
        int64_t n = m->ids[HW_TARGET][i].count + 1;
        double row[2] = {0, (double)n};
        for (int64_t t = 0; t < n; t++) row[0] += (double)*at++;
        hw_tally_add(&out->loss, row);
    }
    free(nll);
}

static void add_translation(const hw_meter *m, int64_t i, const hw_translation *t, hw_quality *out)
{
    const char *text = t->count ? t->texts[0] : "";
    hw_tally_add(&out->match, (const double[]){hw_exact_match(&text, &m->references[i], 1), 1});
    hw_metric_add_lines(out->bleu, &text, &m->references[i], 1);
}

static void measure_translations(hw_meter *m, hw_quality *out)
{
    int64_t window = m->search->batch_sentences * hw_threads() * BATCHES_AT_ONCE, count;
    const char **lines = malloc((size_t)window * sizeof *lines);
    size_t *bytes = malloc((size_t)window * sizeof *bytes);
    HW_CHECK(lines && bytes, "no memory for %lld lines", (long long)window);
    out->bleu = hw_bleu_new(NULL, NULL);
    for (int64_t first = 0; first < m->set->count; first += count) {
        count = m->set->count - first < window ? m->set->count - first : window;
        for (int64_t i = 0; i < count; i++)
            lines[i] = hw_lines_get(m->set->texts[HW_SOURCE], m->set->pairs[first + i].line, &bytes[i]);
        const hw_translation *t = hw_translate_lines(m->translator, count, lines, bytes);
        for (int64_t i = 0; i < count; i++) add_translation(m, first + i, &t[i], out);
    }
    free(lines);
    free(bytes);
}

void hw_meter_measure(hw_meter *m, const hw_head_setting *settings, hw_quality *out)
{
    *out = (hw_quality){0};
    hw_tally_init(&out->loss, 2, hw_ratio_score, NULL);
    hw_tally_init(&out->match, 2, hw_ratio_score, NULL);
    hw_runner_settings(m->runner, settings);
    measure_loss(m, out);
    if (m->search) measure_translations(m, out);
    hw_runner_settings(m->runner, NULL);
}
