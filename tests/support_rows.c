#include "support_rows.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <headwise/bundle.h>

#include "support_files.h"
#include "support_model.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static char *table_text(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "tests/rows/%s.txt", name);
    char *text = scratch_read(path, NULL);
    if (!text) {
        fprintf(stderr, "%s cannot be read; tests run in the project's directory\n", path);
        exit(2);
    }
    return text;
}

/* Where the row behind this place begins, or NULL. */
static char *next_row(char *text)
{
    if (!strncmp(text, "== ", 3)) return text;
    char *at = strstr(text, "\n== ");
    return at ? at + 1 : NULL;
}

int rows_count(const char *name)
{
    int count = 0;
    char *text = table_text(name);
    for (char *at = text; (at = next_row(at)); at += 3) count++;
    free(text);
    return count;
}

/* ---- one row ----------------------------------------------------------------------------------------------------- */

enum { MOST_CHANGES = 16 };
typedef struct row {
    char name[256], needs[32];
    char *setup, *command, *out, *err; /* lines, each ended by \n */
    int status, changes;
    char change[MOST_CHANGES][128];
} row;

/* "{a|b}" becomes a in single and b in double precision; a last `@` goes. */
static char *plain_line(hw_arena *arena, const char *line, size_t length)
{
    char *copy = hw_arena_string(arena, "%.*s", (int)length, line), *open, *bar, *close;
    if (length && copy[length - 1] == '@') copy[length - 1] = 0;
    while ((open = strchr(copy, '{')) && (bar = strchr(open, '|')) && (close = strchr(bar, '}'))) {
        *open = *bar = *close = 0;
        copy = hw_arena_string(arena, "%s%s%s", copy, sizeof(hw_real) == sizeof(float) ? open + 1 : bar + 1, close + 1);
    }
    return copy;
}

static void add(hw_arena *arena, char **text, const char *line) { *text = hw_arena_string(arena, "%s%s\n", *text, line); }

static void read_line(row *r, hw_arena *arena, const char *line, size_t length)
{
    const char *rest = plain_line(arena, line + (length > 1 ? 2 : 1), length > 1 ? length - 2 : 0);
    switch (*line) {
    case '-': snprintf(r->needs, sizeof r->needs, "%s", rest); break;
    case '+': add(arena, &r->setup, hw_arena_string(arena, "%.*s", (int)length - 2, line + 2)); break;
    case '$': add(arena, &r->command, hw_arena_string(arena, "%.*s", (int)length - 2, line + 2)); break;
    case '?': r->status = atoi(rest); break;
    case '!': add(arena, &r->err, rest); break;
    case '>': add(arena, &r->out, rest); break;
    case '~':
        ck_assert_int_lt(r->changes, MOST_CHANGES);
        snprintf(r->change[r->changes++], sizeof *r->change, "%s", rest);
        break;
    default: ck_abort_msg("%s: a line begins with none of - + $ ? ! > ~: %.*s", r->name, (int)length, line);
    }
}

static void read_row(row *r, hw_arena *arena, const char *table, int i)
{
    char *text = table_text(table), *at = next_row(text), *end;
    while (i-- > 0) at = next_row(at + 3);
    *r = (row){.setup = "", .command = "", .out = "", .err = ""};
    snprintf(r->name, sizeof r->name, "%.*s", (int)strcspn(at + 3, "\n"), at + 3);
    for (at += strcspn(at, "\n"); *at == '\n' && at[1] && strncmp(at, "\n== ", 4); at = end) {
        size_t length = strcspn(++at, "\n");
        end = at + length;
        if (length && *at != '#') read_line(r, arena, at, length);
    }
    free(text);
}

/* ---- what stands in the directory -------------------------------------------------------------------------------- */

static hw_arena *seen_arena;
static char *seen;
static const row *seen_row;
static size_t root_length;

static bool may_change(const char *name)
{
    for (int i = 0; i < seen_row->changes; i++) {
        size_t length = strlen(seen_row->change[i]);
        if (seen_row->change[i][length - 1] == '/' ? !strncmp(name, seen_row->change[i], length - 1)
                                                   : !strcmp(name, seen_row->change[i]))
            return true;
    }
    return false;
}

static int see(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)ftw;
    const char *name = strlen(path) > root_length ? path + root_length + 1 : "";
    size_t size = 0;
    ck_assert_msg(!strstr(name, ".headwise-"), "%s: %s is left over", seen_row->name, name);
    if (!*name || may_change(name)) return 0;
    uint64_t hash = 14695981039346656037u;
    char *text = type == FTW_F && S_ISREG(status->st_mode) && status->st_size < 1 << 24 ? scratch_read(path, &size) : NULL;
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    free(text);
    add(seen_arena, &seen,
        hw_arena_string(seen_arena, "%s %o %lld %llx", name, status->st_mode,
                        S_ISDIR(status->st_mode) ? 0 : (long long)status->st_size, (unsigned long long)hash));
    return 0;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Names, sizes and contents of all that the row must leave alone, in order. */
static char *look_around(const row *r, const char *directory, hw_arena *arena)
{
    char *lines[4096];
    int count = 0;
    seen_arena = arena;
    seen = "";
    seen_row = r;
    root_length = strlen(directory);
    ck_assert_int_eq(nftw(directory, see, 16, FTW_PHYS), 0);
    for (char *line = strtok(seen, "\n"); line && count < 4096; line = strtok(NULL, "\n")) lines[count++] = line;
    qsort(lines, (size_t)count, sizeof *lines, by_text);
    char *all = "";
    for (int i = 0; i < count; i++) add(arena, &all, lines[i]);
    return all;
}

/* ---- the surroundings -------------------------------------------------------------------------------------------- */

static const char *const config =
    "data: {dir: d, source: en, target: fr}\n"
    "model: {encoder_layers: 1, decoder_layers: 1, width: 16, heads: 2, feed_forward: 32}\n"
    "training: {model_dir: t, max_steps: 4, warmup_steps: 2, validate_every: 2, shards: 1}\n";

static void write_set(const char *prefix, int pairs)
{
    char *side[2];
    size_t size[2];
    char name[64];
    FILE *f[2];
    for (int s = 0; s < 2; s++) f[s] = open_memstream(&side[s], &size[s]);
    for (int i = 0; i < pairs; i++) {
        fprintf(f[0], "w%d w%d w%d\n", i % 7, i % 5, i % 3);
        fprintf(f[1], "w%d w%d w%d\n", i % 3, i % 5, i % 7);
    }
    for (int s = 0; s < 2; s++) {
        fclose(f[s]);
        snprintf(name, sizeof name, "dir/d/%s.%s", prefix, s ? "fr" : "en");
        scratch_write(name, side[s], size[s]);
        free(side[s]);
    }
}

static void surround(hw_arena *arena)
{
    hw_error err;
    ck_assert_msg(hw_directory_make(scratch_path("dir/d"), &err), "%s", err.message);
    write_set("train", 40);
    write_set("valid", 6);
    write_set("test", 6);
    scratch_text("dir/c.yaml", config);
    hw_bundle *b = tiny_bundle(arena, tiny_config(arena, "data.dir=d;text.joiner="), "w0 w1 w2 w3 w4 w5 w6",
                               "w0 w1 w2 w3 w4 w5 w6");
    save_bundle(b, scratch_path("dir/m"));
    hw_bundle_free(b);
}

/* /bin/sh with what the row says, in the row's directory. */
static int shell(const char *directory, const char *lines, const char *out, const char *err)
{
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (chdir(directory) || !freopen("/dev/null", "r", stdin) || !freopen(out, "w", stdout) ||
            !freopen(err, "w", stderr))
            _exit(99);
        execl("/bin/sh", "sh", "-c", lines, (char *)NULL);
        _exit(99);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The program that was built beside these tests, or what stands for it in $HEADWISE_PROGRAMS (scripts/valgrind.sh). */
static void put_program_first(hw_arena *arena)
{
    const char *path = getenv("PATH"), *instead = getenv("HEADWISE_PROGRAMS");
    setenv("PATH", hw_arena_string(arena, "%s:%s", instead ? instead : built_directory(), path ? path : ""), 1);
    setenv("LC_ALL", "C.UTF-8", 1);
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

/* `…` in a line stands for any characters. */
static bool line_matches(const char *expected, size_t length, const char *got, size_t got_length)
{
    static const char any[] = "…";
    const size_t size = sizeof any - 1;
    while (length && !(length >= size && !memcmp(expected, any, size))) {
        if (!got_length || *expected != *got) return false;
        expected++, length--, got++, got_length--;
    }
    if (!length) return !got_length;
    for (;; got++, got_length--) {
        if (line_matches(expected + size, length - size, got, got_length)) return true;
        if (!got_length) return false;
    }
}

bool rows_match(const char *expected, const char *got)
{
    if (!*expected) return !*got;
    size_t length = strcspn(expected, "\n");
    const char *rest = expected + length + 1;
    if (length == 3 && !strncmp(expected, "...", 3)) {
        for (; !rows_match(rest, got); got += strcspn(got, "\n") + 1)
            if (!*got) return false;
        return true;
    }
    size_t got_length = strcspn(got, "\n");
    if (!*got || !line_matches(expected, length, got, got_length)) return false;
    return rows_match(rest, got + got_length + 1);
}

static void expect(const row *r, const char *what, const char *expected, const char *path)
{
    char *got = scratch_read(path, NULL);
    ck_assert_msg(rows_match(expected, got), "%s: %s should be\n%sbut is\n%s", r->name, what, expected, got);
    free(got);
}

static bool left_out(const row *r)
{
    if (!strcmp(r->needs, "root")) return geteuid() != 0;
    if (!strcmp(r->needs, "asan")) return SANITIZED;
    return false;
}

void rows_run(const char *name, int i)
{
    row r;
    hw_arena *arena = hw_arena_new(0);
    read_row(&r, arena, name, i);
    if (!left_out(&r)) {
        const char *directory = scratch_path("dir"), *out = scratch_path("out"), *err = scratch_path("err");
        surround(arena);
        put_program_first(arena);
        int status = shell(directory, hw_arena_string(arena, "set -e\n%s", r.setup), out, err);
        char *said = scratch_read(err, NULL);
        ck_assert_msg(status == 0, "%s: the setup failed with %d: %s", r.name, status, said);
        free(said);
        const char *before = look_around(&r, directory, arena);
        status = shell(directory, r.command, out, err);
        expect(&r, "standard error", r.err, err);
        expect(&r, "standard output", r.out, out);
        ck_assert_msg(status == r.status, "%s: the status should be %d but is %d", r.name, r.status, status);
        const char *after = look_around(&r, directory, arena);
        ck_assert_msg(!strcmp(before, after), "%s: before\n%sbut after\n%s", r.name, before, after);
    }
    hw_arena_free(arena);
}
