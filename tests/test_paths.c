/* A line's translation and score have the same bits on every processor path, with any BLAS kernel, batch, order and
 * number of threads: the built program is run on the committed model under each of them. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <headwise/tensor.h>

Suite *test_paths(void);

enum { ROOM = 1 << 16 };
static const char *const program = "bin/headwise";

/* The tests may be built alone (make check-one); `make check` builds the program first. */
static bool is_built(void) { return access(program, X_OK) == 0; }

static void run(const char *before, const char *after, char *out)
{
    char command[1024];
    snprintf(command, sizeof command,
             "sed -n 1,40p data/toy/test.en | env %s %s translate models/toy --scores --quiet %s 2>&1", before, program,
             after);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    size_t used = fread(out, 1, ROOM - 1, pipe);
    out[used] = 0;
    ck_assert_msg(pclose(pipe) == 0, "%s\nsaid: %s", command, out);
}

static const struct {
    const char *before, *after, *path; /* path: run only where the processor has it */
} ways[] = {
    {"HEADWISE_CPU=generic", "", "generic"},
    {"HEADWISE_CPU=avx2", "", "avx2"},
    {"HEADWISE_CPU=avx512", "", "avx512"},
    {"OPENBLAS_CORETYPE=Haswell", "", "avx2"},
    {"OPENBLAS_CORETYPE=Haswell HEADWISE_CPU=avx2", "--batch 7", "avx2"},
    {"", "--batch 1 --threads 1", "generic"},
    {"", "--threads 3", "generic"},
};

static bool available(const char *path)
{
    for (int i = 0; hw_kernels_at(i); i++)
        if (!strcmp(hw_kernels_at(i)->name, path)) return true;
    return false;
}

START_TEST(the_same_bits)
{
    static char want[ROOM], got[ROOM];
    if (!is_built() || !available(ways[_i].path)) return;
    run("", "", want);
    run(ways[_i].before, ways[_i].after, got);
    ck_assert_msg(strchr(want, '\t') && strlen(want) > 1000, "said: %s", want);
    ck_assert_msg(!strcmp(want, got), "%s %s differs:\n%s\n---\n%s", ways[_i].before, ways[_i].after, want, got);
}
END_TEST

/* Said by any command, before it does anything. */
START_TEST(a_path_that_there_is_not)
{
    char said[512];
    if (!is_built()) return;
    FILE *pipe = popen("HEADWISE_CPU=sparc bin/headwise vocab none 2>&1", "r");
    ck_assert_ptr_nonnull(pipe);
    said[fread(said, 1, sizeof said - 1, pipe)] = 0;
    int status = pclose(pipe);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 2, "status %x", (unsigned)status);
    static const char begins[] =
        "headwise: the environment has HEADWISE_CPU=sparc, which this processor does not run; it runs generic";
    ck_assert_msg(!strncmp(said, begins, strlen(begins)), "%s", said);
}
END_TEST

Suite *test_paths(void)
{
    Suite *s = suite_create("paths");
    TCase *tc = tcase_create("paths");
    tcase_add_loop_test(tc, the_same_bits, 0, sizeof ways / sizeof *ways);
    tcase_add_test(tc, a_path_that_there_is_not);
    suite_add_tcase(s, tc);
    return s;
}
