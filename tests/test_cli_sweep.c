/* All commands and verbs, one after the other: each has --help and --version, wants no option that it has not, and with
 * --json prints JSON and nothing else. A command that is new needs a row here. What they say stands in tests/rows/says.txt. */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

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

static void begin(void)
{
    report_begin();
    arena = scratch_arena();
    toy_copy("test", "few", FEW, true);
}

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

START_TEST(json)
{
    for (int i = 0; i < CALLS; i++) {
        bool training = begins(calls[i], "train");
        const outcome *o = run_program(scratch_words(training ? calls[i] : hw_arena_string(arena, "%s --json", calls[i])));
        ck_assert_msg(o->status == 0, "%s: %s", calls[i], o->err);
        char *text = scratch_read(scratch_path("stdout"), NULL);
        if (training) ck_assert_str_eq(text, "");
        else check_json(calls[i], text);
        free(text);
    }
}
END_TEST

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
    t = tcase_create("says");
    tcase_add_checked_fixture(t, scratch_begin_in_memory, scratch_end);
    tcase_add_loop_test(t, says, 0, rows_count("says"));
    suite_add_tcase(suite, t);
    return suite;
}
