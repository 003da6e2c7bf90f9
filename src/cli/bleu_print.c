/* What headwise bleu prints: the figures in sacreBLEU's words, a table for several systems, TSV by sentence, or JSON.
 *
 * Text is rounded to two decimals; JSON is not rounded. Both carry the signatures, whose fields bs, ar and seed say
 * what was drawn. In JSON every figure is named after its metric: bleu, bleu_confidence, bleu_p, and so for chrf. */
#include "cli/bleu.h"

#include <jansson.h>
#include <string.h>

enum { SIGNATURE = 256 };

/* "BLEU|nrefs:1|..." */
static void describe(const bleu_inputs *all, int k, char text[SIGNATURE])
{
    const hw_metric *metric = all->baseline->metrics[k];
    int n = snprintf(text, SIGNATURE, "%s|", hw_metric_name(metric));
    hw_metric_signature(metric, &all->drawn, text + n, SIGNATURE - (size_t)n);
}

/* "BLEU|signature = 20.80 (μ = 20.79 ± 0.55) ...", the equals signs of both metrics one below the other. */
void hw_bleu_print_figures(const bleu_inputs *all)
{
    const bleu_input *in = all->baseline;
    char left[METRICS][SIGNATURE];
    int width = 0;
    for (int k = 0; k < METRICS; k++) {
        describe(all, k, left[k]);
        if ((int)strlen(left[k]) > width) width = (int)strlen(left[k]);
    }
    for (int k = 0; k < METRICS; k++) {
        printf("%*s = %.2f", width, left[k], hw_metric_score(in->metrics[k]));
        if (all->drawn.bootstrap) printf(" (μ = %.2f ± %.2f)", in->intervals[k].mean, in->intervals[k].half_width);
        if (k == BLEU) {
            hw_bleu_result r = hw_bleu_details(in->metrics[k]);
            const double *p = r.precisions, ratio = r.ref_len ? (double)r.sys_len / (double)r.ref_len : 0;
            printf(" %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = %lld)", p[0], p[1], p[2],
                   p[3], r.bp, ratio, (long long)r.sys_len, (long long)r.ref_len);
        }
        printf("\n");
    }
}

void hw_bleu_print_comparison(hw_arena *arena, const bleu_inputs *all)
{
    hw_cli_table *table = hw_cli_table_new(arena, "lrrrrrr");
    hw_cli_cell(table, "system");
    for (int k = 0; k < METRICS; k++) {
        hw_cli_cell(table, "%s", hw_metric_name(all->baseline->metrics[k]));
        hw_cli_cell(table, "μ ± 95%% CI");
        hw_cli_cell(table, "p");
    }
    for (const bleu_input *in = all->baseline; in < all->at + all->count; in++) {
        hw_cli_cell(table, "%s%s", in == all->baseline ? "baseline: " : "", in->path);
        for (int k = 0; k < METRICS; k++) {
            hw_cli_cell(table, "%.2f", hw_metric_score(in->metrics[k]));
            hw_cli_cell(table, "%.2f ± %.2f", in->intervals[k].mean, in->intervals[k].half_width);
            if (in == all->baseline) hw_cli_cell(table, "-");
            else hw_cli_cell(table, "%.4f", in->p[k]);
        }
    }
    hw_cli_table_print(table, stdout);
    for (int k = 0; k < METRICS; k++) {
        char text[SIGNATURE];
        describe(all, k, text);
        printf("%s\n", text);
    }
}

void hw_bleu_print_sentences(const bleu_inputs *all)
{
    const bleu_input *in = all->baseline;
    for (int64_t i = 0; i < in->lines && !ferror(stdout); i++)
        printf("%lld\t%.2f\t%.2f\n", (long long)i, hw_metric_sentence(in->metrics[BLEU], i),
               hw_metric_sentence(in->metrics[CHRF], i));
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static const char *const keys[METRICS] = {"bleu", "chrf"};

static void set(json_t *to, const char *key, const char *suffix, json_t *value)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", key, suffix);
    json_object_set_new(to, name, value);
}

static json_t *interval_json(const hw_interval *x)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "mean", x->mean, "half_width", x->half_width, "low", x->low, "high",
                     x->high);
}

static void set_figures(json_t *to, const bleu_inputs *all, const bleu_input *in)
{
    for (int k = 0; k < METRICS; k++) {
        set(to, keys[k], "", json_real(hw_metric_score(in->metrics[k])));
        if (all->drawn.bootstrap) set(to, keys[k], "_confidence", interval_json(&in->intervals[k]));
        if (in != all->baseline) set(to, keys[k], "_p", json_real(in->p[k]));
    }
}

static json_t *sentences_json(const bleu_input *in)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < in->lines; i++) {
        json_t *scores = json_object();
        for (int k = 0; k < METRICS; k++) set(scores, keys[k], "", json_real(hw_metric_sentence(in->metrics[k], i)));
        json_array_append_new(list, scores);
    }
    return list;
}

static json_t *others_json(const bleu_inputs *all)
{
    json_t *list = json_array();
    for (const bleu_input *in = all->baseline + 1; in < all->at + all->count; in++) {
        json_t *other = json_object();
        json_object_set_new(other, "system", hw_json_text(in->path));
        set_figures(other, all, in);
        json_array_append_new(list, other);
    }
    return list;
}

void hw_bleu_print_json(const bleu_inputs *all, bool sentences)
{
    const bleu_input *in = all->baseline;
    hw_bleu_result r = hw_bleu_details(in->metrics[BLEU]);
    const double *p = r.precisions;
    char bleu[SIGNATURE], chrf[SIGNATURE];
    hw_metric_signature(in->metrics[BLEU], &all->drawn, bleu, sizeof bleu);
    hw_metric_signature(in->metrics[CHRF], &all->drawn, chrf, sizeof chrf);
    json_t *root = json_object();
    set_figures(root, all, in);
    json_object_set_new(root, "signature", json_string(bleu));
    json_object_set_new(root, "chrf_signature", json_string(chrf));
    json_object_set_new(root, "chrf_name", json_string(hw_metric_name(in->metrics[CHRF])));
    json_object_set_new(root, "precisions", json_pack("[f, f, f, f]", p[0], p[1], p[2], p[3]));
    json_object_set_new(root, "brevity_penalty", json_real(r.bp));
    json_object_set_new(root, "hypothesis_length", json_integer(r.sys_len));
    json_object_set_new(root, "reference_length", json_integer(r.ref_len));
    json_object_set_new(root, "sentences", json_integer(in->lines));
    if (sentences) json_object_set_new(root, "sentence_scores", sentences_json(in));
    if (in + 1 < all->at + all->count) json_object_set_new(root, "paired", others_json(all));
    json_dumpf(root, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(root);
}
