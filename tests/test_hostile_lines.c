/* Lines that nobody would want to translate: each has one line for an answer, in its place, and the same to the bit
 * whether it stands in a file or comes alone. The lines are drawn at random from a table of kinds. HEADWISE_LINES says
 * how many, HEADWISE_MODEL which model reads them (make hostile-lines N=100000); 300 and a tiny one unless given. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <headwise/bundle.h>

#include "cli/cli.h"
#include "support_files.h"
#include "support_model.h"
#include "support_translate.h"

static hw_arena *arena;

static void begin(void)
{
    scratch_begin_in_memory();
    arena = scratch_arena();
    hw_threads_set(1); /* a child of threads that it does not have would worry the leak sanitizer */
}

/* ---- the lines --------------------------------------------------------------------------------------------------- */

static const char *const words[] = {"the", "cat", "w1", "w2", "<unk>", "<s>", "</s>", "@@", "bo@@", "|||", "0", "-"};
static const char *const odd[] = {
    "\t",       "\r",           "\f",           "\v",           "\x1b[2J",          "\xc2\xa0",     "\xc2\x85",
    "\xe2\x80\xa8", "\xe2\x80\xa9", "\xef\xbb\xbf", "\xef\xbf\xbd", "\xf0\x9f\x98\x80", "e\xcc\x81",    "\xe2\x80\x8f",
    "\xed\xa0\x80", "\xc0\xaf",     "\xf8\x88",     "\xff\xfe",     "\x80",             "\xe2\x82",     "\x7f",
    "\\n",      "%s%n",         "\"",           "--help",       "&lt;",             "\xe2\x96\x81", "$(:)",
};
#define PICK(list, random) list[hw_random_below(random, sizeof list / sizeof *list)]

static void add_words(FILE *f, hw_random *random, int64_t most)
{
    for (int64_t n = (int64_t)hw_random_below(random, (uint64_t)most + 1); n > 0; n--)
        fprintf(f, "%s%s", PICK(words, random), n > 1 ? " " : "");
}

static void add_odd(FILE *f, hw_random *random, int64_t most)
{
    for (int64_t n = (int64_t)hw_random_below(random, (uint64_t)most + 1); n > 0; n--)
        fputs(hw_random_below(random, 2) ? PICK(odd, random) : PICK(words, random), f);
}

static void add_bytes(FILE *f, hw_random *random, int64_t most)
{
    for (int64_t n = (int64_t)hw_random_below(random, (uint64_t)most + 1); n > 0; n--) {
        int byte = (int)hw_random_below(random, 256);
        putc(byte == '\n' ? 0 : byte, f); /* zeros a little more often */
    }
}

static void add_blanks(FILE *f, hw_random *random, int64_t most)
{
    for (int64_t n = (int64_t)hw_random_below(random, (uint64_t)most + 1); n > 0; n--)
        putc(hw_random_below(random, 3) ? ' ' : '\t', f);
}

static void add_one_word(FILE *f, hw_random *random, int64_t most)
{
    for (int64_t n = (int64_t)hw_random_below(random, (uint64_t)most + 1); n > 0; n--) putc('x', f);
}

static const struct {
    void (*add)(FILE *f, hw_random *random, int64_t most);
    int64_t most;
    int share; /* of a hundred lines */
} kinds[] = {{add_words, 12, 40}, {add_odd, 12, 25},  {add_bytes, 60, 18},
             {add_blanks, 9, 10}, {add_words, 60, 5}, {add_one_word, 3000, 2}};

typedef struct line {
    char *text;
    size_t bytes;
} line;

/* Without their ends, which each has. */
static line *make_lines(int count)
{
    line *lines = hw_arena_alloc(arena, (size_t)count * sizeof *lines);
    hw_random random = hw_random_new(11, 2);
    for (int i = 0; i < count; i++) {
        FILE *f = open_memstream(&lines[i].text, &lines[i].bytes);
        int64_t at = (int64_t)hw_random_below(&random, 100);
        size_t k = 0;
        for (; at >= kinds[k].share; k++) at -= kinds[k].share;
        kinds[k].add(f, &random, kinds[k].most);
        fclose(f);
    }
    return lines;
}

/* ---- translating ------------------------------------------------------------------------------------------------- */

static int count(void)
{
    const char *text = getenv("HEADWISE_LINES");
    return text ? atoi(text) : 300;
}

static const char *model(void)
{
    if (getenv("HEADWISE_MODEL")) return getenv("HEADWISE_MODEL");
    hw_bundle *b = tiny_bundle(arena, tiny_config(arena, "decoding.max_length=8"), "the cat w1 w2 bo@@ 0", "le chat x y");
    save_bundle(b, scratch_path("m"));
    hw_bundle_free(b);
    return scratch_path("m");
}

static void write_line(FILE *f, const line *l)
{
    fwrite(l->text, 1, l->bytes, f);
    putc('\n', f);
}

/* All at once; a process of its own writes, since neither pipe holds all. */
static char **translate_together(const char *directory, const line *lines, int n)
{
    FILE *in, *out;
    pid_t child = translate_piped(directory, &in, &out), writer = fork();
    if (writer == 0) {
        for (int i = 0; i < n; i++) write_line(in, &lines[i]);
        fclose(in);
        _exit(0);
    }
    close(fileno(in));
    char **answers = hw_arena_calloc(arena, (size_t)n + 1, sizeof *answers);
    int got = 0;
    size_t room;
    for (; got <= n && (room = 0, getline(&answers[got], &room, out)) >= 0; got++) {}
    ck_assert_int_eq(got, n);
    int status;
    waitpid(writer, &status, 0);
    waitpid(child, &status, 0);
    fclose(out);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    return answers;
}

START_TEST(each_line_has_its_answer)
{
    int n = count(), different = 0;
    const char *directory = model();
    line *lines = make_lines(n);
    char **together = translate_together(directory, lines, n), *alone = NULL;
    size_t room = 0;
    FILE *in, *out;
    pid_t child = translate_piped(directory, &in, &out);
    for (int i = 0; i < n; i++) {
        write_line(in, &lines[i]);
        fflush(in);
        ck_assert_msg(getline(&alone, &room, out) >= 0, "line %d has no answer", i + 1);
        different += strcmp(alone, together[i]) != 0;
    }
    fclose(in);
    ck_assert_int_eq(getline(&alone, &room, out), -1);
    ck_assert_int_eq(different, 0);
    int status;
    waitpid(child, &status, 0);
    fclose(out);
    free(alone);
    for (int i = 0; i <= n; i++) {
        free(together[i]);
        if (i < n) free(lines[i].text);
    }
}
END_TEST

Suite *test_hostile_lines(void);
Suite *test_hostile_lines(void)
{
    Suite *suite = suite_create("hostile_lines");
    TCase *t = tcase_create("hostile lines");
    tcase_add_checked_fixture(t, begin, scratch_end);
    if (getenv("HEADWISE_LINES")) tcase_set_timeout(t, 7200);
    tcase_add_test(t, each_line_has_its_answer);
    suite_add_tcase(suite, t);
    return suite;
}
