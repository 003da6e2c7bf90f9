/* README says nothing that is not so: every command in its blocks runs, what it shows of their output is what they print,
 * and the options and keys it names exist.
 *
 * In a block ```sh each line is a command; in a block ```console a line `$ COMMAND` is one and the lines below it are its
 * output, `...` standing for any lines. They run in order in a directory that looks like the project's. What would take
 * long is made shorter, and what README supposes to be there is made up, by the two tables below and nothing else. */
#include <check.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "support_files.h"
#include "support_rows.h"

#if defined(__SANITIZE_ADDRESS__)
#define FEW "6"
#else
#define FEW "12"
#endif

/* In front of every command. */
static const char prelude[] =
    "set -e -o pipefail\n"
    "train() { bin/train \"$@\" --set training.max_steps=2 --set training.warmup_steps=1 --set training.batch_tokens=200 "
    "--set training.validate_every=1 --set training.validate_sentences=3 --set training.metric=loss; }\n"
    "heads() { if [ $1 = trace ]; then bin/heads \"$@\"; else bin/heads \"$@\" --data few; fi; }\n" /* few pairs */
    "target() { grep -qE \"^([a-z -]+ )?$1( [a-z -]+)?:\" Makefile; }\n";

/* What stands in a command, and what runs in its place. All rows apply, from the first on. `other`: the run is another
 * one, so that what it prints is the same but for numbers and translations. */
static const struct {
    const char *shown, *run;
    bool other;
} shorter[] = {
    {"sh scripts/setup.sh", "sh -n scripts/setup.sh", false},
    {"make ", "target ", false}, /* it is there; .ci/run and others run it */
    {"bin/train configs/toy_translate.yaml\n",
     "train configs/toy_translate.yaml 2>&1 | grep -v '^train '; cp models/toy/* models/toy_translate", true},
    {"bin/train ", "train ", false},
    {"bin/heads trace ", "bin/headwise heads trace ", false}, /* of what was trained, so it has no --data */
    {"bin/heads ", "heads ", false},
    {"heads probe models/toy", "heads probe models/toy --label depth --seeds 1 --words 50", false},
    {"--max-size 8000", "--max-size 300", false},
};

/* The directory. mine.yaml is README's own. */
static const char directory[] =
    "mkdir bin data data/toy data/mine models\n"
    "for name in headwise $(sed -n 's/^ *COMMAND.\\([a-z]*\\),.*/\\1/p' $TOP/src/cli/commands.h); do\n"
    "    ln -s $BUILT/headwise bin/$name\n"
    "done\n"
    "ln -s $TOP/Makefile $TOP/scripts $TOP/configs .\n"
    "ln -s $TOP/data/toy/* data/toy\n"
    "rm data/toy/valid.*\n"
    "for set in valid:valid test:few; do\n"
    "    for suffix in en fr align; do head -n " FEW " $TOP/data/toy/${set%:*}.$suffix > data/toy/${set#*:}.$suffix; done\n"
    "    for suffix in en fr; do\n"
    "        awk -v RS= -v ORS='\\n\\n' 'NR <= " FEW "' $TOP/data/toy/${set%:*}.$suffix.conllu > "
    "data/toy/${set#*:}.$suffix.conllu\n"
    "    done\n"
    "done\n"
    "for suffix in en fr; do\n"
    "    for set in train valid test; do head -n 40 $TOP/data/toy/test.$suffix > data/mine/$set.$suffix; done\n"
    "    head -n 500 $TOP/data/toy/train.$suffix > train.$suffix\n"
    "done\n"
    "head -n 3 $TOP/data/toy/test.en > file.en\n"
    "printf 'le\\n\\nla\\n' > begun.fr\n"
    "mkdir models/toy && cp $TOP/models/toy/* models/toy 2> /dev/null || :\n"
    "for name in a c; do ln -s toy models/$name; done\n"
    /* b is another run: one weight of it is a little larger or smaller. */
    "cp -r models/toy models/b && printf x | dd conv=notrunc bs=1 of=models/b/model.safetensors "
    "seek=$(($(stat -c %s models/b/model.safetensors) - 4)) 2> /dev/null\n";

/* ---- reading README ---------------------------------------------------------------------------------------------- */

enum { MOST_COMMANDS = 100 };
typedef struct shown {
    int line;
    char *command, *output; /* output NULL: not shown */
} shown;

static hw_arena *arena;
static char *prose, *yaml; /* what is outside of blocks; the configuration in it */
static shown commands[MOST_COMMANDS];
static int command_count;

static char *add(const char *text, const char *line) { return hw_arena_string(arena, "%s%s\n", text, line); }

static void read_line(const char *block, const char *line, int number)
{
    static bool goes_on; /* behind a backslash */
    shown *last = command_count ? &commands[command_count - 1] : NULL;
    bool transcript = !strcmp(block, "console");
    if (!strcmp(block, "yaml")) {
        yaml = add(yaml, line);
    } else if (!transcript && strcmp(block, "sh")) {
        return;
    } else if (goes_on) {
        last->command = add(last->command, line);
    } else if (transcript && strncmp(line, "$ ", 2)) {
        last->output = add(last->output, line);
    } else {
        HW_CHECK(command_count < MOST_COMMANDS, "README.md has more commands");
        commands[command_count++] = (shown){number, add("", transcript ? line + 2 : line), transcript ? "" : NULL};
    }
    if (strcmp(block, "yaml")) goes_on = *line && line[strlen(line) - 1] == '\\';
}

static void read_readme(void)
{
    char block[32] = "", *readme = scratch_read("README.md", NULL);
    if (!readme) {
        fprintf(stderr, "README.md cannot be read; tests run in the project's directory\n");
        exit(2);
    }
    int number = 0;
    arena = hw_arena_new(0);
    prose = yaml = "";
    command_count = 0;
    char *rest = readme;
    for (char *line; (line = strsep(&rest, "\n"));) {
        number++;
        if (!strncmp(line, "```", 3)) snprintf(block, sizeof block, "%s", *block ? "" : line[3] ? line + 3 : "text");
        else if (*block) read_line(block, line, number);
        else prose = add(prose, line);
    }
    free(readme);
}


/* ---- running ----------------------------------------------------------------------------------------------------- */

static void begin(void)
{
    char top[4096];
    ck_assert_ptr_nonnull(getcwd(top, sizeof top));
    setenv("TOP", top, 1);
    setenv("BUILT", built_directory(), 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    scratch_begin_in_memory();
    const outcome *o = run_bash(hw_arena_string(arena, "set -e; cd '%s'\n%s", scratch_path(""), directory));
    ck_assert_msg(o->status == 0, "the directory: %s", o->err);
    scratch_text("mine.yaml", yaml);
}

/* The command with what is shorter in it. *other: another run than the one shown. */
static const char *shortened(const char *command, bool *other)
{
    *other = false;
    for (size_t i = 0; i < sizeof shorter / sizeof *shorter; i++) {
        const char *at = strstr(command, shorter[i].shown);
        if (!at) continue;
        command = hw_arena_string(arena, "%.*s%s%s", (int)(at - command), command, shorter[i].run,
                                  at + strlen(shorter[i].shown));
        *other |= shorter[i].other;
    }
    return command;
}

/* Each number as 0, and nothing behind "output". */
static const char *without_figures(const char *text)
{
    char *bare = hw_arena_string(arena, "%s", text), *to = bare;
    for (const char *c = text; *c;) {
        if (!isdigit((unsigned char)*c)) {
            *to++ = *c++;
            if (to - bare >= 9 && !memcmp(to - 9, "   output", 9)) c += strcspn(c, "\n");
            continue;
        }
        *to++ = '0';
        while (isdigit((unsigned char)*c) || (strchr(",.:", *c) && isdigit((unsigned char)c[1]))) c++;
    }
    *to = 0;
    return bare;
}

/* Numbers are those of the program as it is shipped. */
static void compare(const shown *s, const char *got, bool other)
{
    char *expected = s->output;
    for (size_t n; (n = strlen(expected)) > 1 && !strcmp(expected + n - 2, "\n\n");) expected[n - 1] = 0;
    if (sizeof(hw_real) != sizeof(float)) return;
    bool same = other ? rows_match(without_figures(expected), without_figures(got)) : rows_match(expected, got);
    ck_assert_msg(same, "README.md:%d: %sshould print\n%sbut prints\n%s", s->line, s->command, expected, got);
}

START_TEST(commands_run)
{
    const shown *s = &commands[_i];
    bool other;
    const char *command = shortened(s->command, &other);
    const outcome *o = run_bash(hw_arena_string(arena, "cd '%s'\n%s%s", scratch_path(""), prelude, command));
    ck_assert_msg(o->status == 0, "README.md:%d: %sran as %s%s%s", s->line, s->command, command, o->out, o->err);
    if (s->output) compare(s, o->out, other);
}
END_TEST

/* ---- what it says beside ----------------------------------------------------------------------------------------- */

START_TEST(commands_are_in_blocks)
{
    static const char *const first[] = {"bin/", "make", "sh ", "$ "};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        const char *at = strstr(prose, hw_arena_string(arena, "\n    %s", first[i]));
        ck_assert_msg(!at, "a command is not in a block of README.md: %s", at);
    }
    ck_assert_int_gt(command_count, 25);
}
END_TEST

/* The figures that training prints are those of the model that is in the repository. */
START_TEST(validations_are_of_the_toy)
{
    static const char *const names[] = {"loss ",        "perplexity ", "token accuracy ",
                                        "exact match ", "BLEU ",       "chrF "};
    static const int unit[] = {1, 1, 100, 100, 1, 1};
    static const char *const formats[] = {"%.4f", "%.4f", "%.2f", "%.2f", "%.2f", "%.2f"};
    char *table = scratch_read("models/toy/valid.tsv", NULL), *at = commands[2].output;
    int count = 0;
    for (; (at = strstr(at, "headwise: step ")); count++) {
        at += strlen("headwise: step ");
        double figure[6];
        char *row = strstr(table, hw_arena_string(arena, "\n%d\t", atoi(at)));
        ck_assert_msg(row && sscanf(row, "%*d %lf %lf %lf %lf %lf %lf", &figure[0], &figure[1], &figure[2], &figure[3],
                                    &figure[4], &figure[5]) == 6, "%s", at);
        const char *line = hw_arena_string(arena, "%.*s", (int)strcspn(at, "\n"), at);
        for (int i = 0; i < 6; i++) {
            const char *number = hw_arena_string(arena, formats[i], unit[i] * figure[i]);
            ck_assert_msg(strstr(line, hw_arena_string(arena, "%s%s", names[i], number)), "%s%s: %s", names[i], number,
                          line);
        }
    }
    ck_assert_int_ge(count, 2);
    free(table);
}
END_TEST

static bool has_option(const hw_cli_command *command, const char *name, size_t length)
{
    for (const hw_cli_entry *verb = command->verbs; verb && verb->name; verb++)
        if (has_option(verb->command, name, length)) return true;
    const hw_cli_option *option;
    for (int i = 0; i < command->option_count; i++)
        if (strlen(command->options[i].name) == length && !strncmp(command->options[i].name, name, length)) return true;
    for (int i = 0; (option = hw_cli_common_option(command->takes, i)); i++)
        if (strlen(option->name) == length && !strncmp(option->name, name, length)) return true;
    return false;
}

/* In the row of a command in a table, an option of this one; elsewhere, of any. */
START_TEST(options_exist)
{
    int count = 0;
    for (const char *line = prose; *line; line += strcspn(line, "\n") + 1) {
        const char *end = line + strcspn(line, "\n"), *at = line;
        const hw_cli_entry *row = hw_cli_commands();
        for (; row->name; row++)
            if (!strncmp(line, "| `", 3) && !strncmp(line + 3, row->name, strlen(row->name)) &&
                strchr(" `", line[3 + strlen(row->name)]))
                break;
        for (; (at = strstr(at, "`--")) && at < end; count++) {
            size_t length = strspn(at += 3, "abcdefghijklmnopqrstuvwxyz-");
            bool known = !strncmp(at, "quick`", 6); /* of scripts/diversity_study.sh */
            for (const hw_cli_entry *c = hw_cli_commands(); !known && c->name; c++)
                known = (c == row || !row->name) && has_option(c->command, at, length);
            ck_assert_msg(known, "README.md: there is no option --%.*s: %.*s", (int)length, at, (int)(end - line), line);
        }
    }
    ck_assert_int_gt(count, 40);
}
END_TEST

START_TEST(keys_exist)
{
    static const char *const sections[] = {"`data.", "`text.", "`model.", "`training.", "`decoding."};
    int count = 0;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        const char *at = prose, *key;
        for (; (at = strstr(at, sections[i])); count++) {
            size_t length = strspn(++at, "abcdefghijklmnopqrstuvwxyz_.0123456789");
            bool known = length && (at[length - 1] == '.' || !strncmp(at, "model.safetensors", length));
            for (int k = 0; !known && (key = hw_config_key(k)); k++)
                known = !strncmp(key, at, length) && strchr(".", key[length]);
            ck_assert_msg(known, "README.md: there is no key %.*s", (int)length, at);
        }
    }
    ck_assert_int_gt(count, 20);
}
END_TEST

Suite *test_readme(void);
Suite *test_readme(void)
{
    read_readme();
    Suite *suite = suite_create("readme");
    TCase *t = tcase_create("commands");
    tcase_add_unchecked_fixture(t, begin, scratch_end);
    tcase_add_loop_test(t, commands_run, 0, command_count);
    suite_add_tcase(suite, t);
    t = tcase_create("text");
    tcase_add_test(t, commands_are_in_blocks);
    tcase_add_test(t, validations_are_of_the_toy);
    tcase_add_test(t, options_exist);
    tcase_add_test(t, keys_exist);
    suite_add_tcase(suite, t);
    return suite;
}
