/* Files written whole or not at all: by two at once, over links, into pipes, with names as long as can be, after a
 * kill. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <headwise/base.h>

#include "support_files.h"

static hw_error err;

/* ---- what is there ----------------------------------------------------------------------------------------------- */

static void expect_file(const char *path, const char *text)
{
    char *found = scratch_read(path, NULL);
    ck_assert_msg(found != NULL, "%s is missing", path);
    ck_assert_str_eq(found, text);
    free(found);
}

/* All names of a scratch directory in order, but for those of temporary files, which are counted. */
static int temporaries(const char *directory, const char *names)
{
    struct dirent **entry;
    int left = 0, count = scandir(scratch_path(directory), &entry, NULL, alphasort);
    const char *found = "";
    for (int i = 0; i < count; i++) {
        const char *name = entry[i]->d_name;
        if (strstr(name, ".headwise-"))
            left++;
        else if (strcmp(name, ".") && strcmp(name, ".."))
            found = hw_arena_string(scratch_arena(), "%s%s%s", found, *found ? " " : "", name);
        free(entry[i]);
    }
    free(entry);
    if (names) ck_assert_str_eq(found, names);
    return left;
}

static void begin(hw_atomic *file, const char *path, const char *text)
{
    ck_assert_msg(hw_atomic_begin(file, path, &err), "%s", err.message);
    fputs(text, file->stream);
    fflush(file->stream);
}

static void commit(hw_atomic *file) { ck_assert_msg(hw_atomic_commit(file, &err), "%s", err.message); }

static void write_whole(const char *path, const char *text)
{
    hw_atomic file;
    begin(&file, path, text);
    commit(&file);
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

START_TEST(replaced_at_once)
{
    const char *path = scratch_text("file", "old");
    hw_atomic file;
    begin(&file, path, "new");
    expect_file(path, "old");
    ck_assert_int_eq(temporaries(".", "file"), 1);
    expect_file(file.temporary, "new");
    commit(&file);
    expect_file(path, "new");
    ck_assert_int_eq(temporaries(".", "file"), 0);

    begin(&file, path, "never");
    hw_atomic_abandon(&file);
    hw_atomic_abandon(&file);
    expect_file(path, "new");
    ck_assert_int_eq(temporaries(".", "file"), 0);

    ck_assert_int_eq(chdir(scratch_path(".")), 0);
    write_whole("without_a_directory", "");
    expect_file("without_a_directory", "");
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

static void expect_no_place(const char *path, const char *reason)
{
    hw_atomic file;
    char expected[9000];
    snprintf(expected, sizeof expected, "%s: cannot be written: %s", path, reason);
    expected[sizeof err.message - 1] = 0;
    ck_assert(!hw_atomic_begin(&file, path, &err));
    if (strlen(expected) < 1000) ck_assert_str_eq(err.message, expected);
    hw_atomic_abandon(&file);
}

START_TEST(a_place_is_needed)
{
    expect_no_place(scratch_path("."), "it is a directory");
    expect_no_place(scratch_path("no/such/directory"), "No such file or directory");
    expect_no_place("/dev/null", "it is not a regular file");
    expect_no_place("", "an empty name");
    char longer[5000];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    expect_no_place(longer, "File name too long");
    expect_no_place(scratch_path("file/below"), "No such file or directory");
    scratch_text("plain", "x");
    expect_no_place(scratch_path("plain/below"), "Not a directory");
    ck_assert_int_eq(temporaries(".", "plain"), 0);
}
END_TEST

/* A limit on the size of files stands for a full disk. */
START_TEST(failed_writes_are_reported)
{
    const char *path = scratch_text("file", "old");
    struct rlimit limit = {1 << 16, RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_IGN);
    const char *expected = hw_arena_string(scratch_arena(), "%s: cannot be written whole: File too large", path);
    static const int sizes[] = {(1 << 16) + 1, 1 << 18}; /* found at the last flush, and long before */
    for (int i = 0; i < 2; i++) {
        hw_atomic file;
        begin(&file, path, "");
        for (int k = 0; k < sizes[i]; k++) putc('x', file.stream);
        ck_assert(!hw_atomic_commit(&file, &err));
        ck_assert_str_eq(err.message, expected);
        expect_file(path, "old");
        ck_assert_int_eq(temporaries(".", "file"), 0);
    }
}
END_TEST

static int mode_of(const char *path)
{
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_mode & 0777;
}

START_TEST(permissions)
{
    static const struct {
        int mask, expected;
    } cases[] = {{022, 0644}, {027, 0640}, {0, 0666}, {077, 0600}};
    for (int i = 0; i < 4; i++) {
        const char *path = scratch_path(hw_arena_string(scratch_arena(), "new%d", i));
        umask((mode_t)cases[i].mask);
        write_whole(path, "x");
        ck_assert_int_eq(mode_of(path), cases[i].expected);
        ck_assert_int_eq(chmod(path, 0750), 0);
        write_whole(path, "y");
        ck_assert_int_eq(mode_of(path), 0750);
    }
}
END_TEST

START_TEST(names_as_long_as_can_be)
{
    char name[300];
    for (int length = 225; length <= 256; length++) {
        memset(name, 'n', sizeof name);
        if (length == 241) /* characters of two bytes are not cut */
            for (int i = 1; i < length; i += 2) memcpy(name + i, "é", 2);
        name[length] = 0;
        const char *path = scratch_path(name);
        if (length > 255) {
            expect_no_place(path, "File name too long");
            continue;
        }
        hw_atomic file;
        begin(&file, path, "long");
        const char *temporary = strrchr(file.temporary, '/') + 1;
        ck_assert_msg(hw_utf8_invalid(temporary, strlen(temporary)) < 0, "%s", temporary);
        commit(&file);
        expect_file(path, "long");
    }
    ck_assert_int_eq(temporaries(".", NULL), 0);
}
END_TEST

/* ---- several at once --------------------------------------------------------------------------------------------- */

START_TEST(two_writers_do_not_mix)
{
    const char *path = scratch_path("file");
    hw_atomic one, two;
    begin(&one, path, "the first");
    begin(&two, path, "second");
    ck_assert_int_eq(temporaries(".", ""), 2);
    commit(&two);
    expect_file(path, "second");
    commit(&one);
    expect_file(path, "the first");
    ck_assert_int_eq(temporaries(".", "file"), 0);
}
END_TEST

/* What the user calls so stays, and is not followed or waited for. */
START_TEST(nobody_else_is_disturbed)
{
    const char *path = scratch_path("file"), *victim = scratch_text("victim", "precious");
    static const char *const mine[] = {"file.tmp",
                                       ".file.tmp",
                                       ".file.headwise-abc.tmp",
                                       ".file.headwise-ABCDEF.tmp",
                                       ".file.headwise-abcdef.tmp.txt",
                                       "file.headwise-abcdef.tmp",
                                       ".headwise-abcdef.tmp",
                                       ".a-longer-name.old.abcdef.tmp"};
    enum { MINE = sizeof mine / sizeof *mine };
    for (int i = 0; i < MINE; i++) scratch_text(mine[i], "mine");
    write_whole(path, "text");
    hw_atomic_clean(scratch_path("."));
    for (int i = 0; i < MINE; i++) {
        expect_file(scratch_path(mine[i]), "mine");
        ck_assert_int_eq(unlink(scratch_path(mine[i])), 0);
    }
    ck_assert_int_eq(symlink(victim, scratch_path("file.tmp")), 0);
    ck_assert_int_eq(mkfifo(scratch_path(".file.headwise-abcdef.tmp"), 0600), 0);
    write_whole(path, "more");
    hw_atomic_clean(scratch_path("."));
    expect_file(victim, "precious");
    expect_file(path, "more");
    ck_assert_int_eq(temporaries(".", "file file.tmp victim"), 1);
}
END_TEST

/* Starts a process that has begun these files, and waits until it has. */
static pid_t writer(const char *const *names, int count)
{
    int ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        hw_atomic file[8];
        for (int i = 0; i < count; i++)
            if (!hw_atomic_begin(&file[i], scratch_path(names[i]), &err) || fputs("half", file[i].stream) < 0 ||
                fflush(file[i].stream))
                _exit(1);
        if (write(ready[1], "", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void end(pid_t child, int number)
{
    int status;
    kill(child, number);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == number);
}

START_TEST(what_a_killed_one_left_is_removed)
{
    static const char *const names[] = {"file", "other"};
    scratch_text("file", "old");
    pid_t child = writer(names, 2);
    hw_atomic_clean(scratch_path("."));
    ck_assert_int_eq(temporaries(".", "file"), 2); /* it still writes */
    end(child, SIGKILL);
    ck_assert_int_eq(temporaries(".", "file"), 2);
    write_whole(scratch_path("file"), "new");
    ck_assert_int_eq(temporaries(".", "file"), 1);
    expect_file(scratch_path("file"), "new");
    hw_atomic_clean(scratch_path("."));
    ck_assert_int_eq(temporaries(".", "file"), 0);
}
END_TEST

static void remove_and_end(int number)
{
    hw_atomic_remove_all();
    signal(number, SIG_DFL);
    raise(number);
}

START_TEST(a_handler_removes_them)
{
    static const char *const names[] = {"a", "b", "c"};
    scratch_text("a", "old");
    hw_atomic closed[2];
    begin(&closed[0], scratch_path("x"), "");
    begin(&closed[1], scratch_path("y"), "");
    hw_atomic_abandon(&closed[0]);
    commit(&closed[1]);
    for (int i = 0; i < 2; i++) strcpy(closed[i].temporary, scratch_path("y")); /* they are not in the list any more */
    signal(SIGTERM, remove_and_end);
    end(writer(names, 3), SIGTERM);
    expect_file(scratch_path("a"), "old");
    ck_assert_int_eq(temporaries(".", "a y"), 0);
}
END_TEST

/* ---- files that belong together ---------------------------------------------------------------------------------- */

enum { SET = 16 };

static const char *in_set(int i) { return scratch_path(hw_arena_string(scratch_arena(), "%c", 'a' + i)); }

/* The last is too long where it is to be broken. */
static bool write_set(const char *text, bool broken)
{
    static hw_atomic file[SET];
    hw_atomic *all[SET];
    for (int i = 0; i < SET; i++) begin(all[i] = &file[i], in_set(i), text);
    for (int i = 0; broken && i < 1 << 17; i++) putc('x', file[SET - 1].stream);
    return hw_atomic_commit_all(all, SET, &err);
}

static void expect_set(const char *text)
{
    for (int i = 0; i < SET; i++) expect_file(in_set(i), text);
    ck_assert_int_eq(temporaries(".", "a b c d e f g h i j k l m n o p"), 0);
}

START_TEST(all_or_none)
{
    ck_assert(write_set("old", false));
    struct rlimit limit = {1 << 16, RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert(!write_set("new", true));
    ck_assert_str_eq(err.message,
                     hw_arena_string(scratch_arena(), "%s: cannot be written whole: File too large", in_set(SET - 1)));
    expect_set("old");
}
END_TEST

START_TEST(sets_of_one_writer)
{
    enum { WRITERS = 4 };
    for (int round = 0; round < 20; round++) {
        pid_t child[WRITERS];
        for (int i = 0; i < WRITERS; i++) {
            child[i] = fork();
            ck_assert_int_ge(child[i], 0);
            if (child[i]) continue;
            char text[] = {(char)('a' + i), 0};
            for (int k = 0; k < 3; k++)
                if (!write_set(text, false)) _exit(1);
            _exit(0);
        }
        for (int i = 0; i < WRITERS; i++) {
            int status;
            ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
            ck_assert_int_eq(status, 0);
        }
        char *text = scratch_read(in_set(0), NULL);
        expect_set(text);
        free(text);
    }
}
END_TEST

/* ---- links ------------------------------------------------------------------------------------------------------- */

static void link_to(const char *target, const char *name) { ck_assert_int_eq(symlink(target, scratch_path(name)), 0); }

static void expect_link(const char *name)
{
    struct stat status;
    ck_assert_int_eq(lstat(scratch_path(name), &status), 0);
    ck_assert_msg(S_ISLNK(status.st_mode), "%s is no link any more", name);
}

START_TEST(links_are_followed)
{
    ck_assert(hw_directory_make(scratch_path("a"), &err) && hw_directory_make(scratch_path("b"), &err));
    scratch_text("a/file", "old");
    scratch_text("a/absolute", "old");
    link_to("../a/file", "b/relative");
    link_to("b/relative", "twice");
    link_to(scratch_path("a/absolute"), "b/absolute");
    link_to("../a/new", "b/dangling");
    static const struct {
        const char *link, *file;
    } cases[] = {{"b/relative", "a/file"}, {"twice", "a/file"}, {"b/absolute", "a/absolute"}, {"b/dangling", "a/new"}};
    for (int i = 0; i < 4; i++) {
        hw_atomic file;
        begin(&file, scratch_path(cases[i].link), cases[i].link);
        ck_assert_int_eq(temporaries("a", NULL), 1); /* beside the file, in whose place it comes */
        commit(&file);
        expect_link(cases[i].link);
        expect_file(scratch_path(cases[i].file), cases[i].link);
    }
    ck_assert_int_eq(temporaries("a", "absolute file new"), 0);
    ck_assert_int_eq(temporaries("b", "absolute dangling relative"), 0);
}
END_TEST

START_TEST(links_that_lead_nowhere)
{
    hw_arena *arena = scratch_arena();
    link_to("no/such/file", "nowhere");
    link_to("loop", "loop");
    link_to(".", "directory");
    expect_no_place(scratch_path("nowhere"),
                    hw_arena_string(arena, "it leads to %s: No such file or directory", scratch_path("no/such/file")));
    expect_no_place(scratch_path("loop"), "Too many levels of symbolic links");
    expect_no_place(scratch_path("directory"),
                    hw_arena_string(arena, "it leads to %s: it is a directory", scratch_path(".")));
    expect_link("nowhere");
}
END_TEST

/* ---- pipes and devices ------------------------------------------------------------------------------------------- */

static bool output(const char *path, const char *text)
{
    hw_atomic file;
    if (!hw_output_begin(&file, path, &err)) return false;
    fputs(text, file.stream);
    return hw_atomic_commit(&file, &err);
}

START_TEST(pipes_are_written_into)
{
    const char *path = scratch_path("pipe");
    char got[16] = "";
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_no_place(path, "it is not a regular file");
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(reader, 0);
    ck_assert_msg(output(path, "through"), "%s", err.message);
    ck_assert_int_eq(read(reader, got, sizeof got - 1), 7);
    ck_assert_str_eq(got, "through");
    close(reader);
    ck_assert_int_eq(temporaries(".", "pipe"), 0);
    struct stat status;
    ck_assert(stat(path, &status) == 0 && S_ISFIFO(status.st_mode));
    ck_assert(output(scratch_path("file"), "whole")); /* all else is as ever */
    expect_file(scratch_path("file"), "whole");
}
END_TEST

START_TEST(a_device_that_is_full)
{
    const char *path = scratch_path("full");
    if (mknod(path, S_IFCHR | 0600, makedev(1, 7))) return; /* only root may */
    int fd = open(path, O_WRONLY);
    if (fd < 0) return; /* and only where devices are allowed */
    close(fd);
    ck_assert(!output(path, "text"));
    ck_assert_str_eq(err.message,
                     hw_arena_string(scratch_arena(), "%s: cannot be written whole: No space left on device", path));
    struct stat status;
    ck_assert(stat(path, &status) == 0 && S_ISCHR(status.st_mode));
}
END_TEST

/* A link to /proc/self/fd/N, as /dev/stdout is one: what stood in the file before it stays. */
START_TEST(open_files_are_written_on)
{
    const char *path = scratch_text("log", "before\n");
    int fd = open(path, O_WRONLY | O_APPEND);
    ck_assert_int_ge(fd, 0);
    link_to(hw_arena_string(scratch_arena(), "/proc/self/fd/%d", fd), "out");
    ck_assert_msg(output(scratch_path("out"), "one\n"), "%s", err.message);
    ck_assert_int_eq(write(fd, "between\n", 8), 8);
    ck_assert_msg(output(hw_arena_string(scratch_arena(), "/proc/self/fd/%d", fd), "two\n"), "%s", err.message);
    expect_file(path, "before\none\nbetween\ntwo\n");
    expect_link("out");
    hw_atomic file;
    ck_assert(!hw_atomic_begin(&file, scratch_path("out"), &err));
    close(fd);
    ck_assert(!output(scratch_path("out"), "three\n"));
    fd = open(path, O_RDONLY);
    ck_assert(!output(scratch_path("out"), "three\n"));
    ck_assert_msg(strstr(err.message, ": Bad file descriptor") != NULL, "%s", err.message);
    expect_file(path, "before\none\nbetween\ntwo\n");
    ck_assert_int_eq(temporaries(".", "log out"), 0);
    close(fd);
}
END_TEST

Suite *test_base_atomic(void);
Suite *test_base_atomic(void)
{
    Suite *suite = suite_create("base: atomic files");
    TCase *t = tcase_create("atomic");
    tcase_add_checked_fixture(t, scratch_begin_in_memory, scratch_end);
    tcase_add_test(t, replaced_at_once);
    tcase_add_test(t, a_place_is_needed);
    tcase_add_test(t, failed_writes_are_reported);
    tcase_add_test(t, permissions);
    tcase_add_test(t, names_as_long_as_can_be);
    tcase_add_test(t, two_writers_do_not_mix);
    tcase_add_test(t, nobody_else_is_disturbed);
    tcase_add_test(t, what_a_killed_one_left_is_removed);
    tcase_add_test(t, a_handler_removes_them);
    tcase_add_test(t, all_or_none);
    tcase_add_test(t, sets_of_one_writer);
    tcase_add_test(t, links_are_followed);
    tcase_add_test(t, links_that_lead_nowhere);
    tcase_add_test(t, pipes_are_written_into);
    tcase_add_test(t, a_device_that_is_full);
    tcase_add_test(t, open_files_are_written_on);
    suite_add_tcase(suite, t);
    return suite;
}
