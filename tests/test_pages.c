/* Manual pages, completion and --help come from one table, and each says all of it: every command and verb, every
 * option with its value and its meaning. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "support_files.h"

static hw_arena *arena;

static void begin(void)
{
    scratch_begin();
    arena = scratch_arena();
    ck_assert_int_eq(RUN("headwise", "--write-pages", scratch_path("pages"))->status, 0);
}

/* The text without what roff and line breaks add: "\-" is "-", "\fB" nothing, any blanks one. */
static const char *plain(const char *text)
{
    char *out = hw_arena_string(arena, "%s", text), *to = out;
    for (const char *c = text; *c; c++) {
        if (*c == '\\' && c[1] == 'f' && c[2])
            c += 2;
        else if (*c == '\\' && c[1] == '&')
            c++;
        else if (*c == '\\' && c[1] == 'e')
            *to++ = '\\', c++;
        else if (*c == '\\')
            continue;
        else if (!strchr(" \n", *c))
            *to++ = *c;
        else if (to > out && to[-1] != ' ')
            *to++ = ' ';
    }
    *to = 0;
    return out;
}

static const char *page_of(const char *name)
{
    char *file = hw_arena_string(arena, "pages/headwise%s%s.1", *name ? "-" : "", name);
    for (char *c = file; *c; c++)
        if (*c == ' ') *c = '-';
    char *text = scratch_read(scratch_path(file), NULL);
    ck_assert_msg(text != NULL, "%s is missing", file);
    const char *page = plain(text);
    free(text);
    return page;
}

static void both_have(const char *name, const char *help, const char *page, const char *text)
{
    ck_assert_msg(strstr(help, plain(text)) != NULL, "%s --help lacks: %s", name, text);
    ck_assert_msg(strstr(page, plain(text)) != NULL, "the page of %s lacks: %s", name, text);
}

static void check_option(const char *name, const char *help, const char *page, const hw_cli_option *o)
{
    const char *letter = o->letter ? hw_arena_string(arena, "-%c, ", o->letter) : "";
    both_have(name, help, page,
              hw_arena_string(arena, "%s--%s%s%s %s", letter, o->name, o->value ? " " : "", o->value ? o->value : "",
                              o->help));
}

/* The options of a command in the order of --help. */
static const hw_cli_option *option_at(const hw_cli_command *command, int i)
{
    if (i < command->option_count) return &command->options[i];
    return hw_cli_common_option(command->takes, i - command->option_count);
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Blank-separated words, in order. */
static const char *sorted(const char *words)
{
    const char *word[256], *all = "";
    int count = 0;
    char *copy = hw_arena_string(arena, "%s", words), *place;
    for (char *w = strtok_r(copy, " \n", &place); w && count < 256; w = strtok_r(NULL, " \n", &place))
        word[count++] = w;
    qsort(word, (size_t)count, sizeof *word, by_text);
    for (int i = 0; i < count; i++) all = hw_arena_string(arena, "%s%s ", all, word[i]);
    return all;
}

static void completes_to(const char *typed, const char *expected)
{
    const outcome *o =
        run_bash(hw_arena_string(arena,
                                 "set -u; source %s; COMP_WORDS=(headwise %s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
                                 "_headwise; echo ${COMPREPLY[*]}",
                                 scratch_path("pages/headwise.bash"), typed));
    ck_assert_int_eq(o->status, 0);
    ck_assert_msg(!strcmp(sorted(o->out), sorted(expected)), "headwise %s: completes to\n%s\nnot\n%s", typed, o->out,
                  expected);
}

static void check_command(const char *name, const hw_cli_entry *entry)
{
    const hw_cli_command *command = entry->command;
    const char *help = plain(run_program(scratch_words(hw_arena_string(arena, "%s --help", name)))->out),
               *page = page_of(name), *names = "";
    ck_assert_ptr_nonnull(strstr(page, plain(entry->summary)));
    both_have(name, help, page, hw_arena_string(arena, "headwise %s %s", name, command->usage));
    char *copy = hw_arena_string(arena, "%s", command->description), *place;
    for (char *line = strtok_r(copy, "\n", &place); line; line = strtok_r(NULL, "\n", &place)) {
        ck_assert_msg(strstr(help, plain(line)) != NULL, "%s --help lacks: %s", name, line);
        ck_assert_msg(strstr(page, plain(line)) != NULL, "the page of %s lacks: %s", name, line);
    }
    if (command->verbs) {
        for (const hw_cli_entry *verb = command->verbs; verb->name; verb++) {
            both_have(name, help, page, hw_arena_string(arena, "%s %s", verb->name, verb->summary));
            check_command(hw_arena_string(arena, "%s %s", name, verb->name), verb);
            names = hw_arena_string(arena, "%s%s ", names, verb->name);
        }
        completes_to(hw_arena_string(arena, "%s ''", name), hw_arena_string(arena, "%s--help", names));
        return;
    }
    const hw_cli_option *o;
    for (int i = 0; (o = option_at(command, i)); i++) {
        check_option(name, help, page, o);
        names = hw_arena_string(arena, "%s--%s ", names, o->name);
    }
    completes_to(hw_arena_string(arena, "%s --", name), names);
}

START_TEST(pages_help_and_completion_agree)
{
    const char *help = plain(RUN("headwise", "--help")->out), *page = page_of(""), *names = "";
    for (const hw_cli_entry *c = hw_cli_commands(); c->name; c++) {
        both_have("headwise", help, page, hw_arena_string(arena, "%s %s", c->name, c->summary));
        check_command(c->name, c);
        names = hw_arena_string(arena, "%s%s ", names, c->name);
    }
    completes_to("''", hw_arena_string(arena, "%s--help --help-config --version", names));
}
END_TEST

/* The page of the program has every key of the configuration, with its default and its meaning. */
START_TEST(the_configuration_is_in_the_page)
{
    const char *page = page_of("");
    ck_assert_int_eq(RUN("headwise", "--help-config")->status, 0);
    char *config = scratch_read(scratch_path("stdout"), NULL), *place;
    int lines = 0;
    for (char *line = strtok_r(config, "\n", &place); line; line = strtok_r(NULL, "\n", &place), lines++)
        ck_assert_msg(strstr(page, plain(line)) != NULL, "the page lacks: %s", line);
    ck_assert_int_gt(lines, 100);
    free(config);
}
END_TEST

Suite *test_pages(void);
Suite *test_pages(void)
{
    Suite *suite = suite_create("pages");
    TCase *t = tcase_create("pages");
    tcase_add_checked_fixture(t, begin, scratch_end);
    tcase_add_test(t, pages_help_and_completion_agree);
    tcase_add_test(t, the_configuration_is_in_the_page);
    suite_add_tcase(suite, t);
    return suite;
}
