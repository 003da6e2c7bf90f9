/* The page of heads report, as bytes: what it holds, that it stands alone, and how bad input ends. What a browser makes
 * of it is in test_report_browser.c. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

#include "support_files.h"
#include "support_report.h"

static const char *text(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }
static const json_t *in(const json_t *o, const char *a, const char *b)
{
    return json_object_get(json_object_get(o, a), b);
}

static int occurrences(const char *page, const char *word)
{
    int count = 0;
    for (const char *at = page; (at = strstr(at, word)); at += strlen(word)) count++;
    return count;
}

static void expect_failure(const outcome *o, int status, const char *message)
{
    ck_assert_msg(o->status == status && strstr(o->err, message), "status %d: %s", o->status, o->err);
}

/* ---- what it holds ----------------------------------------------------------------------------------------------- */

START_TEST(one_page_that_stands_alone)
{
    char *page = report_page(NULL);
    ck_assert_ptr_eq(strstr(page, "<!doctype html>"), page);
    ck_assert_int_eq(occurrences(page, "<!-- "), 0);
    ck_assert_int_eq(occurrences(page, "<script"), 2);
    ck_assert_int_eq(occurrences(page, "</script>"), 2);
    /* The only addresses are names of the SVG language; nothing is fetched. */
    ck_assert_int_eq(occurrences(page, "://"), occurrences(page, "http://www.w3.org/2000/svg"));
    static const char *const fetching[] = {" src=", "@import", "url(\"", "fetch(", "XMLHttpRequest", "import("};
    for (size_t i = 0; i < sizeof fetching / sizeof *fetching; i++)
        ck_assert_msg(!strstr(page, fetching[i]), "%s", fetching[i]);
    /* Where things are kept is nobody's business. */
    json_t *data = report_data(page);
    ck_assert_str_eq(text(json_object_get(data, "model"), "name"), "model");
    ck_assert_ptr_null(strstr(text(data, "data"), "/tmp"));
    ck_assert_uint_eq(json_array_size(in(data, "model", "heads")), 24);
    static const char *const sections[] = {"stats", "roles", "align", "ablate", "importance", "diversity"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        ck_assert_msg(in(data, "sections", sections[i]) != NULL, "there is no section %s", sections[i]);
    ck_assert_uint_eq(json_array_size(json_object_get(data, "missing")), 0);
    json_decref(data);
    free(page);
}
END_TEST

START_TEST(equal_results_make_equal_bytes)
{
    char *first = report_page(NULL), *second = report_page(NULL);
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
}
END_TEST

static int digit(char letter)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(alphabet, letter);
    ck_assert_msg(letter && at, "%c is no letter of base 64", letter);
    return (int)(at - alphabet);
}

/* Weights as the page has them are those that heads show prints. */
static void compare_with_show(const json_t *pair, const char *head, size_t place, bool norms)
{
    char line[32], attention[64];
    snprintf(line, sizeof line, "%lld", (long long)json_integer_value(json_object_get(pair, "line")));
    snprintf(attention, sizeof attention, "%s", head);
    *strrchr(attention, '.') = 0;
    const outcome *o = RUN("heads", "show", scratch_path("model"), head, "--json", "--pair", line, norms ? "--norms" : "--quiet");
    ck_assert_msg(o->status == 0, "%s", o->err);
    json_t *shown = json_loads(o->out, 0, NULL);
    const json_t *rows = json_object_get(shown, "weights");
    const char *weights = text(json_object_get(pair, "weights"), attention);
    const char *sent = text(json_object_get(pair, "norms"), attention);
    size_t queries = json_array_size(rows), keys = json_array_size(json_array_get(rows, 0));
    weights += 2 * place * queries * keys;
    sent += 2 * place * keys;
    for (size_t q = 0; q < queries; q++) {
        double row[256], sum = 0;
        for (size_t k = 0; k < keys; k++) {
            const char *w = weights + 2 * (q * keys + k), *s = sent + 2 * k;
            row[k] = (64 * digit(w[0]) + digit(w[1])) / 4095.0;
            if (norms) row[k] *= (64 * digit(s[0]) + digit(s[1])) / 4095.0;
            sum += row[k];
        }
        for (size_t k = 0; k < keys; k++) {
            double expected = json_number_value(json_array_get(json_array_get(rows, q), k));
            ck_assert_double_eq_tol(norms ? row[k] / sum : row[k], expected, norms ? 2e-3 : 2e-4);
        }
    }
    json_decref(shown);
}

START_TEST(holds_the_weights_of_its_sentences)
{
    char *page = report_page(NULL);
    json_t *data = report_data(page);
    const json_t *pairs = json_object_get(data, "pairs"), *second = json_array_get(pairs, 1);
    ck_assert_uint_gt(json_array_size(pairs), 4);
    ck_assert_int_eq(json_integer_value(json_object_get(second, "line")), 2);
    compare_with_show(second, "encoder.1.self.2", 2, false);
    compare_with_show(second, "decoder.0.self.3", 3, false);
    compare_with_show(second, "decoder.1.cross.1", 1, false);
    compare_with_show(second, "decoder.1.cross.1", 1, true);
    ck_assert_uint_eq(json_array_size(in(second, "source", "tokens")), json_array_size(in(second, "source", "tree")));
    ck_assert_uint_gt(json_array_size(json_object_get(second, "links")), 0);
    json_decref(data);
    free(page);
}
END_TEST

/* The first example of every role that was found is there. */
START_TEST(holds_the_examples_of_roles)
{
    char *page = report_page(NULL);
    json_t *data = report_data(page);
    const json_t *head, *result, *pair, *heads = json_object_get(in(data, "sections", "roles"), "heads");
    size_t h, r, p;
    int found = 0;
    json_array_foreach(heads, h, head)
        json_array_foreach(json_object_get(head, "roles"), r, result)
        {
            if (!json_is_true(json_object_get(result, "found"))) continue;
            json_int_t line = json_integer_value(json_array_get(json_object_get(result, "strongest"), 0));
            bool there = false;
            json_array_foreach(json_object_get(data, "pairs"), p, pair)
                there |= json_integer_value(json_object_get(pair, "line")) == line;
            ck_assert_msg(there || !line, "line %d of %s", (int)line, text(head, "name"));
            found++;
        }
    ck_assert_int_gt(found, 0);
    json_decref(data);
    free(page);
}
END_TEST

/* ---- experiments ------------------------------------------------------------------------------------------------- */

static size_t entries(const json_t *data, const char *section, const char *list)
{
    return json_array_size(json_object_get(in(data, "sections", section), list));
}

/* Pruning, probes and traces are shown where they are; none is computed unasked. */
START_TEST(experiments_where_they_are)
{
    char *page = report_page(NULL);
    json_t *data = report_data(page);
    static const char *const sections[] = {"prune", "probe", "trace", "compare"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        ck_assert_msg(!in(data, "sections", sections[i]), "there is a section %s", sections[i]);
    json_decref(data);
    free(page);
    report_experiments();
    page = report_page_with(NULL, "--compare", scratch_path("model"));
    data = report_data(page);
    ck_assert_uint_eq(entries(data, "prune", "heads"), 19); /* of 24 heads in 6 attentions */
    ck_assert_uint_gt(entries(data, "probe", "heads"), 24);
    ck_assert_uint_eq(entries(data, "trace", "steps"), 3);
    ck_assert_uint_eq(entries(data, "trace", "roles"), 1);
    ck_assert_uint_eq(entries(data, "compare", "heads"), 24);
    const json_t *models = json_object_get(in(data, "sections", "compare"), "models");
    ck_assert_str_eq(text(json_array_get(models, 0), "model"), "model");
    ck_assert_str_eq(text(json_array_get(models, 1), "model"), "model (2)"); /* and not where it is kept */
    ck_assert_uint_eq(json_array_size(json_object_get(data, "missing")), 0);
    json_decref(data);
    free(page);
    /* What holds no more is left out, and a damaged trace is named. */
    ck_assert(!remove(scratch_path("model/heads/prune-test.json")));
    scratch_text("model/heads_trace.tsv", "step\n");
    page = report_page(NULL);
    data = report_data(page);
    ck_assert(!in(data, "sections", "prune") && in(data, "sections", "probe"));
    ck_assert_str_eq(text(json_array_get(json_object_get(data, "missing"), 0), "name"), "trace");
    json_decref(data);
    free(page);
    remove(scratch_path("model/heads_trace.tsv"));
}
END_TEST

START_TEST(experiments_that_are_asked_for)
{
    report_set("asked", "the cat sleeps\na dog\n", "le chat dort\nun chien\n");
    char *page = report_page_with("asked", "--with", "prune");
    json_t *data = report_data(page);
    ck_assert_uint_eq(entries(data, "prune", "heads"), 19);
    json_decref(data);
    free(page);
    const char *model = scratch_path("model");
    expect_failure(RUN("heads", "report", model, "-o", scratch_path("p.html"), "--with", "roles"), 2,
                   "--with roles: expected prune or probe; the other sections are always there");
    expect_failure(RUN("heads", "report", model, "-o", scratch_path("p.html"), "--data", "asked", "--compare", "none"), 1,
                   "none");
    ck_assert(!hw_file_exists(scratch_path("p.html")));
}
END_TEST

/* ---- words ------------------------------------------------------------------------------------------------------- */

START_TEST(words_are_not_html)
{
    report_set("odd", "</script><script>alert(1)</script> & \"quoted\" 'too' <b>\n\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d\n",
               "<!-- data --> <!-- script --> \\u003c &lt;\n\xf0\x9f\x98\x80\n");
    char *page = report_page("odd");
    ck_assert_int_eq(occurrences(page, "</script>"), 2);
    ck_assert_int_eq(occurrences(page, "alert(1)<"), 0);
    json_t *data = report_data(page);
    const json_t *first = json_array_get(json_object_get(data, "pairs"), 0);
    ck_assert_str_eq(json_string_value(json_array_get(in(first, "source", "tokens"), 0)),
                     "</script><script>alert(1)</script>");
    ck_assert_str_eq(json_string_value(json_array_get(in(first, "target", "tokens"), 0)), "<!--");
    json_decref(data);
    free(page);
}
END_TEST

/* ---- bad input --------------------------------------------------------------------------------------------------- */

START_TEST(without_gold)
{
    report_set("plain", "the cat sleeps\na dog\n", "le chat dort\nun chien\n");
    char *page = report_page("plain");
    json_t *data = report_data(page);
    const json_t *missing = json_array_get(json_object_get(data, "missing"), 0);
    ck_assert_str_eq(text(missing, "name"), "align");
    ck_assert_ptr_nonnull(strstr(text(missing, "why"), "need gold alignments"));
    ck_assert_ptr_null(json_object_get(json_array_get(json_object_get(data, "pairs"), 0), "links"));
    json_decref(data);
    free(page);
}
END_TEST

START_TEST(one_sentence_of_one_token)
{
    report_set("one", "cat\n", "chat\n");
    char *page = report_page("one");
    json_t *data = report_data(page);
    ck_assert_uint_eq(json_array_size(json_object_get(data, "pairs")), 1);
    json_decref(data);
    free(page);
}
END_TEST

/* One head an attention has nothing beside it to be compared with. */
START_TEST(one_head)
{
    report_set("one", "cat\n", "chat\n");
    static const char *const sets[] = {"test", "one"};
    for (int i = 0; i < 2; i++) {
        char *page = report_page(sets[i]);
        json_t *data = report_data(page);
        ck_assert_uint_eq(json_array_size(in(data, "model", "heads")), 3);
        ck_assert_uint_eq(json_array_size(json_object_get(in(data, "sections", "ablate"), "heads")), 3 * 3);
        json_decref(data);
        free(page);
    }
}
END_TEST

START_TEST(places_that_cannot_be_written)
{
    const char *model = scratch_path("model");
    report_set("unwritten", "a cat\n", "un chat\n");
    expect_failure(RUN("heads", "report", model), 2, "-o FILE.html");
    expect_failure(RUN("heads", "report", model, "-o", ""), 2, "--output: FILE is empty");
    expect_failure(RUN("heads", "report", model, "-o", scratch_path("no/such/page.html"), "--data", "unwritten"), 1,
                   "no/such/page.html");
    /* Nothing was computed for it. */
    ck_assert(!hw_file_exists(scratch_path("model/heads/stats-unwritten.json")));
    expect_failure(RUN("heads", "report", model, "-o", scratch_path(".")), 1, scratch_path("."));
    /* And where there is no page, nothing is left of it. */
    const char *page = scratch_path("other.html");
    expect_failure(RUN("heads", "report", model, "--data", "nowhere", "-o", page), 1, "nowhere.en");
    ck_assert(!hw_file_exists(page));
    nothing_half_written(".");
}
END_TEST

START_TEST(results_that_hold_are_used)
{
    report_set("kept", "the cat sleeps\na dog\n", "le chat dort\nun chien\n");
    free(report_page("kept"));
    const char *path = scratch_path("model/heads/roles-kept.json");
    json_t *kept = json_load_file(path, 0, NULL);
    json_object_set_new(kept, "sentences", json_integer(12345));
    hw_study_seal(kept);
    json_dump_file(kept, path, 0);
    json_decref(kept);
    char *page = report_page("kept");
    json_t *data = report_data(page);
    ck_assert_int_eq(json_integer_value(json_object_get(in(data, "sections", "roles"), "sentences")), 12345);
    json_decref(data);
    free(page);
}
END_TEST

/* ---- which sentences --------------------------------------------------------------------------------------------- */

START_TEST(no_more_letters_than_allowed)
{
    hw_arena *arena = hw_arena_new(0);
    hw_error err = {""};
    hw_bundle *b = hw_bundle_load(scratch_path("model"), &err);
    ck_assert_msg(b != NULL, "%s", err.message);
    hw_study_set set;
    ck_assert_msg(hw_study_set_load(arena, b, scratch_path("."), "test", &set, &err), "%s", err.message);
    int64_t count;
    const int64_t *chosen = hw_report_choose(b->network, &set, NULL, 1000, 1 << 30, arena, &count);
    ck_assert_int_eq(count, set.count);
    ck_assert_int_eq(chosen[count - 1], set.count - 1);
    hw_report_choose(b->network, &set, NULL, 3, 1 << 30, arena, &count);
    ck_assert_int_eq(count, 3);
    /* The first pair: 7 source rows, 8 target rows, 4 heads, 2 + 2 + 2 attentions; a row more for the norms of keys. */
    int64_t letters = 2 * 4 * 2 * (8 * 7 + 9 * 8 + 9 * 7);
    hw_report_choose(b->network, &set, NULL, 1, letters, arena, &count);
    ck_assert_int_eq(count, 1);
    hw_report_choose(b->network, &set, NULL, 1, letters - 1, arena, &count);
    ck_assert_int_eq(count, 0);
    json_t *none = hw_report_pairs(b->network, &set, chosen, 0);
    ck_assert_uint_eq(json_array_size(none), 0);
    json_decref(none);
    hw_bundle_free(b);
    hw_arena_free(arena);
}
END_TEST

Suite *test_report(void);
Suite *test_report(void)
{
    Suite *suite = suite_create("report");
    TCase *t = tcase_create("page");
    tcase_add_unchecked_fixture(t, report_begin, report_end);
    tcase_add_test(t, one_page_that_stands_alone);
    tcase_add_test(t, equal_results_make_equal_bytes);
    tcase_add_test(t, holds_the_weights_of_its_sentences);
    tcase_add_test(t, holds_the_examples_of_roles);
    tcase_add_test(t, experiments_where_they_are);
    tcase_add_test(t, experiments_that_are_asked_for);
    tcase_add_test(t, words_are_not_html);
    tcase_add_test(t, without_gold);
    tcase_add_test(t, one_sentence_of_one_token);
    tcase_add_test(t, places_that_cannot_be_written);
    tcase_add_test(t, results_that_hold_are_used);
    tcase_add_test(t, no_more_letters_than_allowed);
    suite_add_tcase(suite, t);
    t = tcase_create("one head");
    tcase_add_unchecked_fixture(t, report_begin_single, report_end);
    tcase_add_test(t, one_head);
    suite_add_tcase(suite, t);
    return suite;
}
