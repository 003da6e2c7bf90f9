/* Heads tracked in training (training.track_heads) and heads trace: the figures are those of the studies, files survive
 * interruptions, and the moment when a role arises is found in traces that were written by hand. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

#include "support_files.h"
#include "support_report.h"
#include "support_train.h"

static const char *text(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }
static double number(const json_t *o, const char *key)
{
    const json_t *x = json_object_get(o, key);
    return json_is_number(x) ? json_number_value(x) : -1;
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

/* Every other unit of a file (a line, or a sentence that an empty line ends) of scratch "valid" as PREFIX. */
static void every_other(const char *prefix, const char *suffix, int first, bool sentences)
{
    char from[64], to[64], line[4096];
    snprintf(from, sizeof from, "valid.%s", suffix);
    snprintf(to, sizeof to, "%s.%s", prefix, suffix);
    FILE *in = fopen(scratch_path(from), "r"), *out = fopen(scratch_path(to), "w");
    ck_assert(in && out);
    for (int unit = 0; fgets(line, sizeof line, in);) {
        if (unit % 2 == first) fputs(line, out);
        unit += !sentences || *line == '\n';
    }
    fclose(in);
    fclose(out);
}

static void half(const char *prefix, int first)
{
    every_other(prefix, "en", first, false);
    every_other(prefix, "fr", first, false);
    every_other(prefix, "align", first, false);
    every_other(prefix, "en.conllu", first, true);
    every_other(prefix, "fr.conllu", first, true);
}

static const hw_trace_row *find(const hw_trace_row *rows, int count, const char *name, const char *figure,
                                const char *subset, const char *step)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(rows[i].name, name) && !strcmp(rows[i].figure, figure) && !strcmp(rows[i].subset, subset) &&
            !strcmp(rows[i].step, step ? step : ""))
            return &rows[i];
    ck_abort_msg("%s %s %s %s is not in the trace", name, figure, subset, step ? step : "");
}

/* A look is the study of roles with one half of the pairs as validation set and the other as test set. */
START_TEST(a_look_is_a_study_of_the_halves)
{
    half("even", 0);
    half("odd", 1);
    hw_arena *arena = hw_arena_new(0);
    hw_error err = {""};
    hw_bundle *b = hw_bundle_load(scratch_path("model"), &err);
    ck_assert_msg(b != NULL, "%s", err.message);
    hw_study_set even, odd;
    ck_assert_msg(hw_study_set_load(arena, b, scratch_path("."), "even", &even, &err) &&
                      hw_study_set_load(arena, b, scratch_path("."), "odd", &odd, &err),
                  "%s", err.message);
    const hw_roles *roles = hw_roles_study(b, &even, &odd, &(hw_roles_options){.trials = 0}, NULL, NULL, arena, &err);
    ck_assert_msg(roles != NULL, "%s", err.message);
    hw_tracer *tracer = hw_tracer_new(b, 1000, &err);
    ck_assert_msg(tracer != NULL, "%s", err.message);
    const hw_trace_row *rows;
    int count = hw_tracer_look(tracer, &rows), of_roles = 0, above = 0;
    for (int h = 0; h < roles->heads; h++)
        for (int i = 0; i < roles->head[h].count; i++, of_roles++) {
            const hw_role_result *r = &roles->head[h].results[i];
            const hw_trace_row *row = find(rows, count, roles->head[h].name, hw_role_name(r->test->role),
                                           r->test->pieces ? "pieces" : "all", hw_place_at(r->test->place)->step);
            ck_assert_double_eq(row->value, r->score);
            ck_assert_double_eq(row->p, r->p);
            ck_assert(row->is_role && row->found == r->found);
            ck_assert(row->baseline >= r->baseline && row->baseline >= r->control);
            above += r->score > row->baseline;
        }
    ck_assert_int_gt(above, 0);
    /* 8 encoder heads with one place and 16 with two. */
    ck_assert_int_eq(count - of_roles, (8 + 2 * 16) * HW_TRACE_STATISTICS);
    hw_study_stream *stream = hw_study_stream_open(b, scratch_path("."), "valid", &err);
    const hw_stats *stats = hw_stats_study(b, stream, NULL, NULL, arena, &err);
    hw_study_stream_close(stream);
    for (int i = 0; i < stats->count; i++) {
        const hw_head_stats *x = &stats->items[i];
        if (x->by_words || x->norms) continue;
        const hw_trace_row *row = find(rows, count, x->head.name, "entropy", "", hw_place_at(x->place)->step);
        ck_assert_double_eq_tol(row->value, x->sums.entropy / x->sums.queries, 1e-12);
    }
    hw_tracer_free(tracer);
    hw_bundle_free(b);
    hw_arena_free(arena);
}
END_TEST

/* ---- in training ------------------------------------------------------------------------------------------------- */

static hw_arena *arena;

static void begin(void) { arena = train_begin(); }

START_TEST(interruptions_change_no_byte)
{
    static const char settings[] = "training.track_heads=6;training.ema=0.5";
    const hw_config *whole = train_config(arena, "whole", settings), *parts = train_config(arena, "parts", settings);
    train_whole(whole, 1);
    for (int64_t step = 5; step < 23; step += 9) train_until(&(train_call){0}, parts, step);
    train_whole(parts, 3);
    same_directories(scratch_path("whole"), scratch_path("parts"));
    hw_error err;
    json_t *trace = hw_trace_load(scratch_path("whole"), &err);
    ck_assert_msg(trace != NULL, "%s", err.message);
    char *steps = json_dumps(json_object_get(trace, "steps"), JSON_COMPACT);
    ck_assert_str_eq(steps, "[7,14,21,23]");
    ck_assert_uint_eq(json_array_size(json_object_get(trace, "heads")), 6);
    free(steps);
    json_decref(trace);
}
END_TEST

/* Looking at heads changes nothing else. */
START_TEST(training_does_not_notice)
{
    train_whole(train_config(arena, "without", ""), 1);
    train_whole(train_config(arena, "with", "training.track_heads=3"), 1);
    static const char *const files[] = {"model.safetensors", "train.tsv", "valid.tsv"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[64];
        size_t size[2];
        snprintf(name, sizeof name, "without/%s", files[i]);
        char *a = scratch_read(scratch_path(name), &size[0]);
        snprintf(name, sizeof name, "with/%s", files[i]);
        char *b = scratch_read(scratch_path(name), &size[1]);
        ck_assert(a && b && size[0] == size[1] && !memcmp(a, b, size[0]));
        free(a);
        free(b);
    }
    ck_assert(!hw_file_exists(scratch_path("without/heads_trace.tsv")));
    /* Begun anew without tracking, nothing is left of the trace. */
    train_call again = {.overwrite = true};
    train_run(&again, train_config(arena, "with", ""));
    ck_assert(again.ok && !hw_file_exists(scratch_path("with/heads_trace.tsv")));
}
END_TEST

START_TEST(what_cannot_be_tracked)
{
    train_call call = {0};
    scratch_text("data/valid.en", "w1 w2\n");
    scratch_text("data/valid.fr", "w2 w1\n");
    train_refused(&call, train_config(arena, "t", "training.track_heads=2"),
                  hw_arena_string(arena,
                                  "%s/valid: roles of heads are chosen on one pair and scored on another, so "
                                  "training.track_heads needs two pairs at least",
                                  scratch_path("data")));
    ck_assert(!hw_file_exists(scratch_path("t/config.yaml")));
    hw_config *c = hw_config_new(arena);
    hw_error err;
    ck_assert(hw_config_set(c, "training.track_heads=5", &err) && hw_config_set(c, "training.validate_every=0", &err));
    ck_assert(!hw_config_check(c, NULL, &err));
    ck_assert_str_eq(err.message, "--set: training.track_heads: heads are looked at when the network is "
                                  "validated, and training.validate_every is 0: it never is");
    config_refused(
        arena, (const char *const[]){"training.track_heads=1"}, 1,
        "--set: training.track_heads: 1 pair is too few: roles of heads are chosen on some pairs and scored on "
        "others; it is 0, or at least 2");
}
END_TEST

/* ---- when a role arises ------------------------------------------------------------------------------------------ */

#define HEADER "training_step\tname\tfigure\tsubset\tstep\tvalue\tbaseline\tp\tfound\n"

/* A trace by hand: of two heads, found (1) or not (0) at each validation, every 10 steps. */
static const char *by_hand(const char *a, const char *b)
{
    const char *all = HEADER;
    for (int i = 0; a[i]; i++)
        all = hw_arena_string(arena,
                              "%s%d\tencoder.0.self.0\tprevious\tall\t\t0.%d\t0.25\t0.01\t%c\n"
                              "%d\tencoder.0.self.1\tprevious\tall\t\t0.5\t0.25\t0.01\t%c\n"
                              "%d\tencoder.0.self.0\tentropy\t\t\t1.5\t\t\t\n",
                              all, 10 * (i + 1), i + 1, a[i], 10 * (i + 1), b[i], 10 * (i + 1));
    hw_error err;
    ck_assert(hw_directory_make(scratch_path("m"), &err));
    return scratch_text("m/heads_trace.tsv", all);
}

static json_t *load(void)
{
    hw_error err;
    json_t *trace = hw_trace_load(scratch_path("m"), &err);
    ck_assert_msg(trace != NULL, "%s", err.message);
    return trace;
}

static const struct {
    const char *a, *b;
    double arises_a, first_a, arises, first; /* of the first head; of the role; -1: never */
    const char *name;
    int heads;
} courses[] = {
    {"0011", "0001", 30, 30, 30, 30, "encoder.0.self.0", 2},
    {"1101", "0111", 40, 10, 20, 10, "encoder.0.self.1",
     2}, /* what goes and comes again arises when it comes to stay */
    {"1110", "0000", -1, 10, -1, 10, NULL, 0},
    {"1111", "0010", 10, 10, 10, 10, "encoder.0.self.0", 1},
    {"1", "0", 10, 10, 10, 10, "encoder.0.self.0", 1},
};

START_TEST(arises_when_it_comes_to_stay)
{
    by_hand(courses[_i].a, courses[_i].b);
    json_t *trace = load();
    const json_t *head = json_array_get(json_object_get(trace, "heads"), 0);
    const json_t *of_head = json_array_get(json_object_get(head, "roles"), 0);
    const json_t *role = json_array_get(json_object_get(trace, "roles"), 0);
    ck_assert_double_eq(number(of_head, "arises"), courses[_i].arises_a);
    ck_assert_double_eq(number(of_head, "first"), courses[_i].first_a);
    ck_assert_double_eq(number(role, "arises"), courses[_i].arises);
    ck_assert_double_eq(number(role, "first"), courses[_i].first);
    ck_assert_double_eq(number(role, "heads"), courses[_i].heads);
    if (courses[_i].name)
        ck_assert_str_eq(text(role, "name"), courses[_i].name);
    else
        ck_assert_ptr_null(text(role, "name"));
    ck_assert_uint_eq(json_array_size(json_object_get(of_head, "scores")), strlen(courses[_i].a));
    ck_assert_double_eq(json_number_value(json_array_get(json_object_get(of_head, "scores"), 0)), 0.1);
    json_decref(trace);
}
END_TEST

/* What only the last validation saw is marked, wherever it is said. */
START_TEST(not_confirmed_yet)
{
    static const struct {
        const char *a;
        bool open;
    } cases[] = {{"0001", true}, {"1101", true}, {"1", true}, {"0011", false}, {"1110", false}, {"0000", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        by_hand(cases[i].a, &"1000"[4 - strlen(cases[i].a)]);
        json_t *trace = load();
        const json_t *head = json_array_get(json_object_get(trace, "heads"), 0);
        const json_t *is = json_object_get(json_array_get(json_object_get(head, "roles"), 0), "unconfirmed");
        ck_assert_msg(json_is_boolean(is) && json_is_true(is) == cases[i].open, "%s", cases[i].a);
        json_decref(trace);
    }
    by_hand("0001", "0000");
    json_t *trace = load();
    ck_assert(json_is_true(json_object_get(json_array_get(json_object_get(trace, "roles"), 0), "unconfirmed")));
    FILE *out = fopen(scratch_path("t.svg"), "w");
    hw_trace_draw(out, trace);
    fclose(out);
    json_decref(trace);
    char *svg = scratch_read(scratch_path("t.svg"), NULL);
    ck_assert_ptr_nonnull(strstr(svg, "encoder.0.self.0 (not confirmed yet)"));
    free(svg);
}
END_TEST

/* Of two heads of the encoder only "previous" is told, so the other roles were not tested, with gold or without. */
START_TEST(roles_not_tested)
{
    by_hand("01", "00");
    json_t *trace = load();
    const json_t *all = json_object_get(trace, "untested");
    int with_gold = 0;
    ck_assert_uint_ge(json_array_size(all), 10);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *u = json_array_get(all, i);
        ck_assert_str_eq(text(u, "in"), "encoder");
        ck_assert(strcmp(text(u, "role"), "previous") && strcmp(text(u, "role"), "aligned"));
        with_gold += strstr(text(u, "why"), "no gold beside the validation set") != NULL;
    }
    ck_assert_int_eq(with_gold, 10);
    json_decref(trace);
}
END_TEST

START_TEST(no_head_with_a_role)
{
    by_hand("000", "000");
    json_t *trace = load();
    ck_assert_uint_eq(json_array_size(json_object_get(trace, "roles")), 0);
    json_decref(trace);
}
END_TEST

static int occurrences(const char *page, const char *word)
{
    int count = 0;
    for (const char *at = page; (at = strstr(at, word)); at += strlen(word)) count++;
    return count;
}

/* Lines and rings of the picture are counted against the trace. */
START_TEST(a_line_a_head)
{
    by_hand("0111", "1000");
    json_t *trace = load();
    FILE *out = fopen(scratch_path("t.svg"), "w");
    hw_trace_draw(out, trace);
    fclose(out);
    json_decref(trace);
    char *svg = scratch_read(scratch_path("t.svg"), NULL);
    ck_assert_int_eq(occurrences(svg, "class=\"title\""), 1);
    ck_assert_int_eq(occurrences(svg, "<path class=\"on\""), 1);
    ck_assert_int_eq(occurrences(svg, "<path class=\"off\""), 1);
    ck_assert_int_eq(occurrences(svg, "<circle class=\"from\""), 1);
    ck_assert_int_eq(occurrences(svg, "<path class=\"base\""), 1);
    ck_assert_ptr_nonnull(strstr(svg, "from step 20 on: encoder.0.self.0"));
    free(svg);
}
END_TEST

/* A run that was killed, or that goes on, has a last validation that is not whole. */
START_TEST(a_last_validation_cut_short)
{
    char *all = scratch_read(by_hand("0111", "0001"), NULL), *cut = strstr(all, "40\tencoder.0.self.1");
    ck_assert_ptr_nonnull(cut);
    *cut = 0;
    scratch_text("m/heads_trace.tsv", all);
    json_t *trace = load();
    ck_assert_uint_eq(json_array_size(json_object_get(trace, "steps")), 3);
    json_decref(trace);
    free(all);
}
END_TEST

static const struct {
    const char *lines, *message; /* behind the path */
} damaged[] = {
    {NULL,
     ": heads were not tracked in training; train with training.track_heads (such as 400, pairs of the validation "
     "set), which looks at them at every validation"},
    {"", "/heads_trace.tsv:1: the columns are not those of a trace; the file is damaged"},
    {"step\tloss\n", "/heads_trace.tsv:1: the columns are not those of a trace; the file is damaged"},
    {HEADER, "/heads_trace.tsv: the network was not validated yet, so there is nothing in it"},
    {HEADER "7\ta\tb\n", "/heads_trace.tsv:2: there are 3 columns, not 9; the file is damaged"},
    {HEADER "7\ta\tb\tall\t\tx\t\t\t1\n", "/heads_trace.tsv:2: \"x\" is not a number"},
    {HEADER "-1\ta\tb\tall\t\t1\t\t\t1\n", "/heads_trace.tsv:2: \"-1\" is no step of training"},
    {HEADER "\ta\tb\tall\t\t1\t\t\t1\n", "/heads_trace.tsv:2: \"\" is no step of training"},
    {HEADER "7\ta\tb\tall\t\t1\t\t\t1\n8\ta\tc\tall\t\t1\t\t\t1\n",
     "/heads_trace.tsv:3: this should be b of a at the next validation; the file is damaged"},
    {HEADER "7\ta\tb\tall\t\t1\t\t\t1\n6\ta\tb\tall\t\t1\t\t\t1\n",
     "/heads_trace.tsv:3: this should be b of a at the next validation; the file is damaged"},
};

START_TEST(damaged_files)
{
    hw_error err;
    ck_assert(hw_directory_make(scratch_path("m"), &err));
    if (damaged[_i].lines) scratch_text("m/heads_trace.tsv", damaged[_i].lines);
    ck_assert_ptr_null(hw_trace_load(scratch_path("m"), &err));
    ck_assert_str_eq(err.message, hw_arena_string(arena, "%s%s", scratch_path("m"), damaged[_i].message));
}
END_TEST

/* ---- the command ------------------------------------------------------------------------------------------------- */

START_TEST(command)
{
    const char *model = scratch_path("run");
    train_whole(train_config(arena, "run", "training.track_heads=6"), 1);
    const outcome *o = RUN("heads", "trace", model);
    ck_assert_msg(o->status == 0, "%s", o->err);
    ck_assert_ptr_nonnull(strstr(o->out, "heads with a role"));
    o = RUN("heads", "trace", model, "--tsv", "--svg", scratch_path("t.svg"));
    ck_assert_msg(o->status == 0 && hw_file_exists(scratch_path("t.svg")), "%s", o->err);
    o = RUN("heads", "trace", model, "--json");
    json_t *json = json_loads(o->out, 0, NULL);
    ck_assert_double_eq(number(json, "sentences"), 6);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "course")), 4);
    size_t h, i, results = 0;
    json_t *head, *r;
    json_array_foreach(json_object_get(json, "heads"), h, head) json_array_foreach(json_object_get(head, "roles"), i, r)
        results++;
    json_decref(json);
    o = RUN("heads", "trace", model, "--tsv");
    ck_assert_uint_eq((size_t)occurrences(o->out, "\n"), results + 1);
    ck_assert_ptr_eq(strstr(o->out, "name\trole\tsubset\tstep\tarises\tfirst\tscore"), o->out);
    /* A role of the last validation: the mark, and what it means. */
    by_hand("0001", "0000");
    size_t size;
    char *lines = scratch_read(scratch_path("m/heads_trace.tsv"), &size);
    scratch_text("run/heads_trace.tsv", lines);
    free(lines);
    o = RUN("heads", "trace", model);
    ck_assert_ptr_nonnull(strstr(o->out, "40 ?"));
    ck_assert_ptr_nonnull(strstr(o->out, "?: seen at the last validation only"));
    ck_assert_ptr_nonnull(strstr(o->out, "Not tested: next"));
    train_whole(train_config(arena, "blind", ""), 1);
    o = RUN("heads", "trace", scratch_path("blind"));
    ck_assert_int_eq(o->status, 1);
    ck_assert_ptr_nonnull(strstr(o->err, "heads were not tracked in training"));
    o = RUN("heads", "trace", model, "--svg", scratch_path("no/where.svg"));
    ck_assert_int_eq(o->status, 1);
    ck_assert_ptr_nonnull(strstr(o->err, "no/where.svg"));
}
END_TEST

Suite *test_heads_trace(void);
Suite *test_heads_trace(void)
{
    Suite *suite = suite_create("heads_trace");
    TCase *t = tcase_create("figures");
    tcase_add_unchecked_fixture(t, report_begin, report_end);
    tcase_add_test(t, a_look_is_a_study_of_the_halves);
    suite_add_tcase(suite, t);
    t = tcase_create("training and reading");
    tcase_add_checked_fixture(t, begin, scratch_end);
    tcase_add_test(t, interruptions_change_no_byte);
    tcase_add_test(t, training_does_not_notice);
    tcase_add_test(t, what_cannot_be_tracked);
    tcase_add_loop_test(t, arises_when_it_comes_to_stay, 0, sizeof courses / sizeof *courses);
    tcase_add_test(t, not_confirmed_yet);
    tcase_add_test(t, roles_not_tested);
    tcase_add_test(t, no_head_with_a_role);
    tcase_add_test(t, a_line_a_head);
    tcase_add_test(t, a_last_validation_cut_short);
    tcase_add_loop_test(t, damaged_files, 0, sizeof damaged / sizeof *damaged);
    tcase_add_test(t, command);
    suite_add_tcase(suite, t);
    return suite;
}
