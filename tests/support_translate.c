#include "support_translate.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "support_model.h"

/* ---- a model ----------------------------------------------------------------------------------------------------- */

const char translate_source[] = "the cat sat on mat a big red dog sees bo@@ ra@@ ti .";
const char translate_target[] = "le chat assis sur tapis un gros chien rouge voit bo@@ ra@@ ti .";
static hw_bundle *bundle;

hw_bundle *translate_bundle(void) { return bundle; }

void translate_save(const char *directory, double to_end, double to_unknown)
{
    favour(bundle->network, HW_END, to_end);
    favour(bundle->network, HW_UNKNOWN, to_unknown);
    save_bundle(bundle, directory);
    favour(bundle->network, HW_END, -to_end);
    favour(bundle->network, HW_UNKNOWN, -to_unknown);
}

void translate_begin(void)
{
    scratch_begin_in_memory();
    hw_threads_set(1); /* a child of threads that it does not have would worry the leak sanitizer */
    hw_arena *arena = scratch_arena();
    const char *settings = hw_arena_string(arena, "data.dir=%s;decoding.max_length=9", scratch_root());
    bundle = tiny_bundle(arena, tiny_config(arena, settings), translate_source, translate_target);
    translate_save(scratch_path("model"), 1, 0);
}

void translate_end(void)
{
    hw_bundle_free(bundle);
    scratch_end();
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

const char *const some[SOME] = {"the cat sat on the mat",         "",
                                "borati sees a big dog .",        " \t ",
                                "unseen words \xe2\x80\xa8 here", "red red red red red red red red red",
                                "the cat sat on the mat",         "bo@@ ra@@ ti"};

const char *some_lines(const char *between, const char *after)
{
    const char *text = "";
    for (int i = 0; i < SOME; i++)
        text = hw_arena_string(scratch_arena(), "%s%s%s", text, some[i], i + 1 < SOME ? between : after);
    return text;
}

const char *line_of(const char *text, int i)
{
    for (; i > 0 && text; i--) text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
    const char *stop = text ? strchr(text, '\n') : NULL;
    return stop ? hw_arena_string(scratch_arena(), "%.*s", (int)(stop - text), text) : NULL;
}

int lines_in(const char *text)
{
    int count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

typedef struct call {
    const char *const *words;
    const char *input;
} call;

static int call_with_input(void *argument)
{
    const call *c = argument;
    int fd = open(c->input, O_RDONLY), argc = 0;
    if (fd < 0 || dup2(fd, 0) < 0) _exit(99);
    while (c->words[argc]) argc++;
    return hw_cli_main(argc, (char **)(uintptr_t)c->words);
}

const outcome *feed_words(const char *input, size_t size, const char *const *words)
{
    return run_captured(call_with_input, &(call){words, scratch_write("input", input, size)});
}

const outcome *feed(const char *text, const char *line) { return feed_words(text, strlen(text), scratch_words(line)); }

const outcome *fed(const char *text, const char *line)
{
    const outcome *o = feed(text, line);
    ck_assert_msg(o->status == 0 && !*o->err, "%s: status %d: %s", line, o->status, o->err);
    return o;
}

pid_t translate_piped(const char *directory, FILE **in, FILE **out)
{
    int to[2], from[2];
    ck_assert(!pipe(to) && !pipe(from));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        if (!freopen("/dev/null", "w", stderr)) _exit(99);
        close(to[0]), close(to[1]), close(from[0]), close(from[1]);
        char *words[] = {"headwise", "translate", (char *)(uintptr_t)directory, "-q", NULL};
        exit(hw_cli_main(4, words));
    }
    close(to[0]);
    close(from[1]);
    *in = fdopen(to[1], "w");
    *out = fdopen(from[0], "r");
    return child;
}
