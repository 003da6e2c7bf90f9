/* What `make install` puts under a PREFIX serves another program: the one in examples/ is built by headers, library and
 * pkg-config file from there alone, and does its work. The manual pages are pages, the completion completes, and
 * `make uninstall` leaves no file. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/base.h>
#include <headwise/tensor.h>

#include "support_files.h"

static hw_arena *arena;

static void begin(void)
{
    scratch_begin();
    arena = scratch_arena();
}

/* Runs a command that must go well -> what it printed. */
static const char *shell(const char *command)
{
    const outcome *o = run_bash(command);
    ck_assert_msg(o->status == 0, "%.500s\nended with %d: %.1500s%.1500s", command, o->status, o->out, o->err);
    return o->out;
}

/* make, for what was built beside this program; it builds nothing. */
static const char *make(const char *target)
{
    const char *built = built_directory();
    return hw_arena_string(arena,
                           "env -u MAKEFLAGS -u MAKELEVEL make -s -o %s/headwise -o %s/libheadwise.a OUT=%s REAL=%s "
                           "PREFIX=%s %s 2>&1",
                           built, built, built, HW_REAL_NAME, scratch_path("prefix"), target);
}

static void example_works(void)
{
    const char *from = hw_arena_string(arena, "export PKG_CONFIG_PATH=%s/lib/pkgconfig; ", scratch_path("prefix"));
    shell(hw_arena_string(arena,
                          "%s test $(wc -l < examples/copy_task.c) -lt 80 && ${CC:-cc} -std=c11 -Wall -Wextra -Werror "
                          "${EXTRA-} examples/copy_task.c $(pkg-config --cflags --libs headwise) -o %s",
                          from, scratch_path("copy_task")));
    const char *said = shell(hw_arena_string(arena, "cd %s && ./copy_task copy 2> /dev/null", scratch_path("")));
    ck_assert_str_eq(said, "h e a d\nc a b b e d\n");
}

/* A line that begins with a dot is a macro of man(7) that pages.c uses. */
static void pages_are_pages(void)
{
    const char *odd = shell(hw_arena_string(
        arena, "cd %s/share/man/man1 && ls headwise.1 headwise-train.1 headwise-heads-roles.1 > /dev/null && "
               "{ grep -hE '^[.]' *.1 | grep -vE '^[.](TH|SH|PP|TP|B|I|nf|fi)( |$)'; grep -hE \"^'\" *.1; :; }",
        scratch_path("prefix")));
    ck_assert_str_eq(odd, "");
}

static void completes(const char *words, const char *expected)
{
    const char *got = shell(hw_arena_string(arena,
                                            "source %s/share/bash-completion/completions/headwise; "
                                            "COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _headwise; "
                                            "echo ${COMPREPLY[*]}",
                                            scratch_path("prefix"), words));
    ck_assert_str_eq(got, expected);
}

START_TEST(install_and_uninstall)
{
    shell(make("install"));
    ck_assert_str_eq(shell(hw_arena_string(arena, "%s/bin/headwise --version", scratch_path("prefix"))),
                     "headwise " HW_VERSION "\n");
    pages_are_pages();
    completes("headwise tra", "train translate\n");
    completes("headwise heads ro", "roles\n");
    completes("headwise train --dry", "--dry-run\n");
    completes("headwise train x.yaml --set model.wi", "model.width=\n");
    completes("headwise vocab --type b", "bpe\n");
    completes("headwise translate models", "\n"); /* a file: bash's own completion */
    example_works();
    shell(make("uninstall"));
    ck_assert_str_eq(shell(hw_arena_string(arena, "find %s ! -type d", scratch_path("prefix"))), "");
}
END_TEST

Suite *test_install(void);
Suite *test_install(void)
{
    Suite *suite = suite_create("install");
    TCase *t = tcase_create("install");
    tcase_add_checked_fixture(t, begin, scratch_end);
    tcase_add_test(t, install_and_uninstall);
    suite_add_tcase(suite, t);
    return suite;
}
