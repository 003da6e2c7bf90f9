#include "support_files.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

static char directory[64];
static hw_arena *arena;

static void begin_in(const char *parent)
{
    snprintf(directory, sizeof directory, "%s/headwise-test-XXXXXX", parent);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    arena = hw_arena_new(0);
}

void scratch_begin(void) { begin_in("/tmp"); }
void scratch_begin_in_memory(void) { begin_in(access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm"); }

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)status, (void)type, (void)ftw;
    return remove(path);
}

void scratch_end(void)
{
    ck_assert_int_eq(nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    hw_arena_free(arena);
}

hw_arena *scratch_arena(void) { return arena; }

const char *scratch_root(void) { return directory; }

const char *scratch_path(const char *name) { return hw_arena_string(arena, "%s/%s", directory, name); }

const char *scratch_write(const char *name, const void *bytes, size_t size)
{
    const char *path = scratch_path(name);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
    return path;
}

const char *scratch_text(const char *name, const char *text) { return scratch_write(name, text, strlen(text)); }

char *scratch_read(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    char *text = NULL;
    size_t room = 0;
    FILE *all = open_memstream(&text, &room);
    for (int c; (c = getc(f)) != EOF;) putc(c, all);
    fclose(f);
    fclose(all);
    if (size) *size = room;
    return text;
}

static int no_temporary(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)status, (void)type, (void)ftw;
    const char *name = strrchr(path, '/');
    ck_assert_msg(!name || !strstr(name, ".headwise-"), "%s is left over", path);
    return 0;
}

void nothing_half_written(const char *name)
{
    if (hw_file_exists(scratch_path(name))) ck_assert_int_eq(nftw(scratch_path(name), no_temporary, 16, FTW_PHYS), 0);
}

static void read_back(const char *path, char *to, size_t size)
{
    char *text = scratch_read(path, NULL);
    snprintf(to, size, "%s", text);
    free(text);
}

static void redirect(int fd, const char *path, int flags)
{
    int opened = open(path, flags, 0600);
    if (opened < 0 || dup2(opened, fd) < 0) _exit(99);
    close(opened);
}

const outcome *run_captured(int (*function)(void *argument), void *argument)
{
    static outcome o;
    const char *out = scratch_path("stdout"), *err = scratch_path("stderr");
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        redirect(0, "/dev/null", O_RDONLY);
        redirect(1, out, O_WRONLY | O_CREAT | O_TRUNC);
        redirect(2, err, O_WRONLY | O_CREAT | O_TRUNC);
        exit(function(argument));
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    read_back(out, o.out, sizeof o.out);
    read_back(err, o.err, sizeof o.err);
    ck_assert_msg(WIFEXITED(status), "it died of signal %d, having said: %s", WTERMSIG(status), o.err);
    o.status = WEXITSTATUS(status);
    return &o;
}

static int call_main(void *words)
{
    char **argv = words;
    int argc = 0;
    while (argv[argc]) argc++;
    return hw_cli_main(argc, argv);
}

const outcome *run_program(const char *const *words) { return run_captured(call_main, (void *)(uintptr_t)words); }

const char *const *scratch_words(const char *call)
{
    enum { MOST = 48 };
    const char **words = hw_arena_calloc(arena, MOST, sizeof *words), *placed = "";
    for (size_t length; *call; call += length + (call[length] == '@')) {
        length = strcspn(call, "@");
        placed = hw_arena_string(arena, "%s%.*s%s", placed, (int)length, call, call[length] ? directory : "");
    }
    char *copy = hw_arena_string(arena, "%s", placed), *place;
    int count = 0;
    words[count++] = "headwise";
    for (char *word = strtok_r(copy, " ", &place); word; word = strtok_r(NULL, " ", &place)) {
        ck_assert_int_lt(count, MOST - 1);
        words[count++] = word;
    }
    return words;
}

static int call_bash(void *script)
{
    execl("/bin/bash", "bash", "-c", script, (char *)NULL);
    return 127;
}

const outcome *run_bash(const char *script) { return run_captured(call_bash, (void *)(uintptr_t)script); }

/* The sanitizer would keep what was freed. */
long peak_of_program(const char *words)
{
    struct rusage used;
    const char *script = hw_arena_string(arena, "export ASAN_OPTIONS=quarantine_size_mb=1; exec %s/headwise %s",
                                         built_directory(), words);
    const outcome *o = run_bash(script);
    ck_assert_msg(o->status == 0 && !getrusage(RUSAGE_CHILDREN, &used), "%s: %s", words, o->err);
    return used.ru_maxrss;
}

const char *built_directory(void)
{
    static char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert_int_gt(length, 0);
    self[length] = 0;
    return dirname(dirname(self)); /* BUILT/tests/run */
}
