/* All commands and verbs, one after the other: each has --help and --version, wants no option that it has not, and with
 * --json prints JSON and nothing else. A command that is new needs a row here. What they say stands in tests/rows/says.txt. */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "support_files.h"
#include "support_report.h"
#include "support_rows.h"
#include "support_toy.h"

/* The call of each that has --json, `@` being the directory of support_report.h; they run in this order. */
static const char *const calls[] = {
    "train @/model/config.yaml --quiet --set training.model_dir=@/tracked --set training.max_steps=2 "
    "--set training.warmup_steps=1 --set training.validate_every=1 "
    "--set training.track_heads=4 --set training.batch_tokens=100",
    "translate @/model @/few.en --beam 2 --n-best 2",
    "evaluate @/model --data few",
    "score @/model @/few.en @/few.fr",
    "inspect @/model --source cat",
    "heads stats @/model --data few",
    "heads roles @/model --data few",
    "heads align @/model --data few",
    "heads ablate @/model --data few",
    "heads importance @/model --data few",
    "heads prune @/model --data few --set data.valid=few",
    "heads probe @/model --words 50 --seeds 1 --label position",
    "heads diversity @/model --data few",
    "heads compare @/model @/model --data few",
    "heads trace @/tracked",
    "heads show @/model encoder.0.self.0 --source cat",
    "generate data/toy/grammar.yaml --output @/made --pairs 9 --valid 2 --test 2",
    "vocab @/few.en",
    "bleu @/few.fr @/few.fr",
    "bench machine",
    "bench train toy --steps 1 --length 3 --vocabulary 20 --batch-tokens 20",
    "bench decode toy --source @/few.en --target @/few.fr --vocabulary 20",
    "bench latency toy --source @/few.en --target @/few.fr --vocabulary 20",
    "bench multiply toy --rows 1 --vocabulary 20 --seconds 0.001",
};
enum { CALLS = sizeof calls / sizeof *calls, FEW = 3 };

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static hw_arena *arena;

static void begin_with(void (*make_model)(void))
{
    make_model();
    arena = scratch_arena();
    toy_copy("test", "few", FEW, true);
}

static void begin(void) { begin_with(report_begin); }
static void begin_small(void) { begin_with(report_begin_single); }

static bool begins(const char *text, const char *with)
{
    size_t length = strlen(with);
    return !strncmp(text, with, length) && strchr(" ", text[length]);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* One value, or one for each pair. */
static void check_json(const char *call, const char *text)
{
    size_t at = 0, values = 0, size = strlen(text);
    while (at < size && text[at] != '\n') {
        json_error_t why;
        json_t *value = json_loads(text + at, JSON_DISABLE_EOF_CHECK, &why);
        ck_assert_msg(value != NULL, "%s --json: %s in %.200s", call, why.text, text + at);
        json_decref(value);
        at += (size_t)why.position;
        ck_assert_msg(text[at] == '\n', "%s --json: the value ends with %.20s", call, text + at);
        at++;
        values++;
    }
    ck_assert_msg(at == size, "%s --json prints %s", call, text + at);
    bool lines = begins(call, "translate") || begins(call, "score");
    ck_assert_msg(values == (lines ? FEW : 1), "%s --json prints %zu values", call, values);
}

/* With --json where it has that. The caller frees what it printed. */
static char *printed_by(const char *call)
{
    bool training = begins(call, "train");
    const outcome *o = run_program(scratch_words(training ? call : hw_arena_string(arena, "%s --json", call)));
    ck_assert_msg(o->status == 0, "%s: %s", call, o->err);
    char *text = scratch_read(scratch_path("stdout"), NULL);
    if (training)
        ck_assert_str_eq(text, "");
    else
        check_json(call, text);
    return text;
}

START_TEST(json)
{
    for (int i = 0; i < CALLS; i++) free(printed_by(calls[i]));
}
END_TEST

static const char *replaced(const char *text, const char *what, const char *by)
{
    const char *out = "", *at;
    for (; (at = strstr(text, what)); text = at + strlen(what))
        out = hw_arena_string(arena, "%s%.*s%s", out, (int)(at - text), text, by);
    return hw_arena_string(arena, "%s%s", out, text);
}

/* ---- names of files, which are bytes of any kind ------------------------------------------------------------------
 */

/* The page names the model by the last part of its path, and the data by the last two. */
static void check_page(const char *call)
{
    const outcome *o = run_program(scratch_words(call));
    ck_assert_msg(o->status == 0, "%s: %s", call, o->err);
    char *page = scratch_read(scratch_path("page.html"), NULL);
    json_t *data = report_data(page), *model = json_object_get(data, "model");
    ck_assert_str_eq(json_string_value(json_object_get(model, "name")), "m\uFFFDl");
    ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(data, "data")), "/f\uFFFDw"));
    ck_assert_ptr_nonnull(json_object_get(json_object_get(data, "sections"), "compare"));
    json_decref(data);
    free(page);
}

static void call_with_names(const char *call)
{
    if (begins(call, "generate") || begins(call, "bench")) return;
    bool training = begins(call, "train"); /* whose names stand in a configuration, which must be UTF-8 */
    if (!training)
        call =
            replaced(replaced(replaced(call, "@/model", "@/m\xffl"), "@/", "@/\xff/"), "--data few", "--data f\xffw");
    if (begins(call, "heads report")) {
        check_page(call);
        return;
    }
    char *text = printed_by(call);
    bool tells =
        strstr(call, "--data") && begins(call, "heads") && !begins(call, "heads compare") && !strstr(call, "--remove");
    ck_assert_msg(!tells || strstr(text, "/f\uFFFDw\""), "%s: %.300s", call, text);
    free(text);
}

/* Those that are not UTF-8 stand in JSON with U+FFFD, and nothing is lost. */
START_TEST(names_that_are_not_utf8)
{
    static const char *const more[] = {
        "heads report @/model --data few --pairs 1 --compare @/model --with probe -o @/page.html",
        "bleu @/few.fr @/few.fr --paired @/few.fr",
    };
    ck_assert_int_eq(symlink(".", scratch_path("\xff")), 0);
    ck_assert_int_eq(symlink("model", scratch_path("m\xffl")), 0);
    toy_copy("test", "f\xffw", FEW, true);
    for (int i = 0; i < CALLS; i++) call_with_names(calls[i]);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) call_with_names(more[i]);
}
END_TEST

/* ---- every command ------------------------------------------------------------------------------------------------
 */

/* "--name" and a value that is read. */
static const char *words_for(const hw_cli_command *command, const char *name, size_t length)
{
    const hw_cli_option *o = NULL;
    for (int i = 0; i < command->option_count; i++)
        if (strlen(command->options[i].name) == length && !memcmp(command->options[i].name, name, length))
            o = &command->options[i];
    for (int i = 0; !o && (o = hw_cli_common_option(command->takes, i)); i++)
        if (strlen(o->name) != length || memcmp(o->name, name, length)) o = NULL;
    ck_assert_msg(o != NULL, "a rule names --%.*s, which is no option of its command", (int)length, name);
    const char *value = o->kind == HW_CLI_CHOICE ? o->choices[0]
                        : o->low > 0             ? hw_arena_string(arena, "%g", o->low)
                                                 : "1";
    return hw_arena_string(arena, " --%s%s%s", o->name, o->value ? "=" : "", o->value ? value : "");
}

/* The same and the first of those that each of its rules needs. */
static const char *words_with_needs(const hw_cli_command *command, const char *name, size_t length)
{
    const char *words = words_for(command, name, length);
    for (const hw_cli_rule *rule = command->rules; rule->option; rule++)
        if (rule->kind == HW_CLI_NEEDS && strlen(rule->option) == length && !memcmp(rule->option, name, length))
            words = hw_arena_string(arena, "%s%s", words, words_for(command, rule->others, strcspn(rule->others, " ")));
    return words;
}

static void check_rule(const char *name, const hw_cli_command *command, const hw_cli_rule *rule)
{
    const char *why = rule->why ? rule->why : "";
    bool needs = rule->kind == HW_CLI_NEEDS;
    const char *first = (needs ? words_for : words_with_needs)(command, rule->option, strlen(rule->option));
    for (const char *other = rule->others; *other; other += strcspn(other, " "), other += strspn(other, " ")) {
        int length = (int)strcspn(other, " ");
        const char *second = words_with_needs(command, other, (size_t)length);
        const outcome *o =
            run_program(scratch_words(hw_arena_string(arena, "%s%s%s", name, needs ? "" : second, first)));
        const char *says =
            needs ? hw_arena_string(arena, "--%s needs --", rule->option)
                  : hw_arena_string(arena, "--%s and --%.*s exclude each other%s\n", rule->option, length, other, why);
        ck_assert_msg(o->status == 2 && strstr(o->err, says) && !*o->out, "%s: %s%s", name, o->out, o->err);
    }
}

static void check_command(const char *name, const hw_cli_command *command)
{
    const outcome *o = run_program(scratch_words(hw_arena_string(arena, "%s --version", name)));
    ck_assert_msg(o->status == 0 && !strcmp(o->out, "headwise " HW_VERSION "\n") && !*o->err, "%s --version: %s%s", name,
                  o->out, o->err);
    o = run_program(scratch_words(hw_arena_string(arena, "%s -h", name)));
    ck_assert_msg(o->status == 0 && begins(o->out, hw_arena_string(arena, "usage: headwise %s", name)), "%s -h: %s", name,
                  o->out);
    if (command->verbs) {
        for (const hw_cli_entry *verb = command->verbs; verb->name; verb++)
            check_command(hw_arena_string(arena, "%s %s", name, verb->name), verb->command);
        return;
    }
    o = run_program(scratch_words(hw_arena_string(arena, "%s --verion", name)));
    ck_assert_int_eq(o->status, 2);
    ck_assert_str_eq(o->err, hw_arena_string(arena, "headwise: %s: unknown option --verion; did you mean --version?\n",
                                             name));
    o = run_program(scratch_words(hw_arena_string(arena, "%s --threads=0", name)));
    ck_assert_int_eq(o->status, 2);
    for (const hw_cli_rule *rule = command->rules; rule && rule->option; rule++) check_rule(name, command, rule);
    int i = 0;
    while (i < CALLS && !begins(calls[i], name)) i++;
    ck_assert_msg(i < CALLS || !(command->takes & HW_CLI_JSON), "%s has --json, but no row in this test", name);
}

START_TEST(every_command)
{
    for (const hw_cli_entry *c = hw_cli_commands(); c->name; c++) check_command(c->name, c->command);
}
END_TEST

START_TEST(says) { rows_run("says", _i); }
END_TEST

Suite *test_cli_sweep(void);
Suite *test_cli_sweep(void)
{
    Suite *suite = suite_create("cli_sweep");
    TCase *t = tcase_create("sweep");
    tcase_add_checked_fixture(t, begin, report_end);
    tcase_add_test(t, json);
    tcase_add_test(t, every_command);
    suite_add_tcase(suite, t);
    t = tcase_create("names");
    tcase_add_checked_fixture(t, begin_small, report_end);
    tcase_add_test(t, names_that_are_not_utf8);
    suite_add_tcase(suite, t);
    t = tcase_create("says");
    tcase_add_checked_fixture(t, scratch_begin_in_memory, scratch_end);
    tcase_add_loop_test(t, says, 0, rows_count("says"));
    suite_add_tcase(suite, t);
    return suite;
}
