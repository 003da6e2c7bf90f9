/* scripts/check_layers.sh: a small tree that is in order passes, and each kind of fault in it is found. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <headwise/base.h>

#include "support_files.h"

/* Runs the script on the scratch directory -> its exit status, and what it said. */
static int check_layers(char *said, size_t size)
{
    char command[512];
    snprintf(command, sizeof command, "sh scripts/check_layers.sh %s 2>&1", scratch_path(""));
    FILE *out = popen(command, "r");
    ck_assert_ptr_nonnull(out);
    said[fread(said, 1, size - 1, out)] = 0;
    return WEXITSTATUS(pclose(out));
}

static const struct {
    const char *path, *text;
} tree[] = {
    {"include/headwise.h", "#include <headwise/base.h>\n#include <headwise/tensor.h>\n#include <headwise/train.h>\n"},
    {"include/headwise/base.h", "#include <stdio.h>\n"},
    {"include/headwise/tensor.h", "#include <headwise/base.h>\n"},
    {"include/headwise/train.h", "#include <headwise/tensor.h>\n"},
    {"src/base/file.c", "#include <headwise/base.h>\n#include \"base/own.h\"\n/* exit(1) is for others */\n"},
    {"src/base/own.h", "\n"},
    {"src/tensor/gemm.c", "#include <cblas.h>\n#include <headwise/tensor.h>\n"},
    {"src/tensor/own.h", "\n"},
    {"src/tensor/deeper/row.c", "#include \"../own.h\"\n  fprintf(f, \"printf(1)\"); _exit(1);\n"},
    {"src/cli/main.c", "#include <headwise/train.h>\nprintf(\"\"); exit(1);\n"},
};

static void write_tree(void)
{
    static const char *const directories[] = {"include/headwise", "src/base", "src/tensor/deeper", "src/train",
                                              "src/cli"};
    hw_error err;
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        ck_assert_msg(hw_directory_make(scratch_path(directories[i]), &err), "%s", err.message);
    for (size_t i = 0; i < sizeof tree / sizeof *tree; i++) scratch_text(tree[i].path, tree[i].text);
}

START_TEST(a_tree_in_order)
{
    char said[4096];
    write_tree();
    ck_assert_int_eq(check_layers(said, sizeof said), 0);
    ck_assert_str_eq(said, "");
}
END_TEST

static const struct {
    const char *path, *text, *fault;
} faults[] = {
    {"src/base/bad.c", "\n#include <headwise/tensor.h>\n",
     "src/base/bad.c:2: layer base includes <headwise/tensor.h>, a higher layer\n"},
    {"src/tensor/deeper/bad.c", "# include <headwise/train.h>\n",
     "src/tensor/deeper/bad.c:1: layer tensor includes <headwise/train.h>, a higher layer\n"},
    {"src/train/bad.c", "#include \"tensor/own.h\"\n",
     "src/train/bad.c:1: layer train includes src/tensor/own.h, a private header of another layer\n"},
    {"src/train/bad.c", "#include \"../tensor/own.h\"\n",
     "src/train/bad.c:1: layer train includes src/tensor/own.h, a private header of another layer\n"},
    {"src/train/bad.c", "#include \"lost.h\"\n",
     "src/train/bad.c:1: there is no \"lost.h\" beside this file or under src\n"},
    {"src/train/bad.c", "#include <headwise/attic.h>\n",
     "src/train/bad.c:1: <headwise/attic.h> is no layer that include/headwise.h lists\n"},
    {"src/train/bad.c", "#include <headwise.h>\n",
     "src/train/bad.c:1: the list of all layers is for users of the library; name the layers that are needed\n"},
    {"src/train/bad.c", "#include <openblas/cblas.h>\n", "src/train/bad.c:1: only layer tensor calls BLAS\n"},
    {"src/train/bad.c", "    if (x) printf(\"%d\", x);\n", "src/train/bad.c:1: only layer cli prints or exits\n"},
    {"src/train/bad.c", "    exit(EXIT_FAILURE);\n", "src/train/bad.c:1: only layer cli prints or exits\n"},
    {"include/headwise/base.h", "#include <headwise/train.h>\n",
     "include/headwise/base.h:1: layer base includes <headwise/train.h>, a higher layer\n"},
    {"include/headwise/base.h", "#include <headwise/base.h>\n",
     "include/headwise/base.h:1: a header includes itself\n"},
    {"include/headwise/train.h", "#include \"train/own.h\"\n",
     "include/headwise/train.h:1: a public header includes the private \"train/own.h\"\n"},
    {"include/headwise/attic.h", "\n", "include/headwise/attic.h:1: layer attic is not listed in include/headwise.h\n"},
    {"include/headwise.h",
     "#include <headwise/base.h>\n#include <headwise/tensor.h>\n#include <headwise/train.h>\n\n"
     "#include <headwise/attic.h>\n",
     "include/headwise.h:5: there is no include/headwise/attic.h\n"},
};

START_TEST(faults_are_found)
{
    char said[4096];
    write_tree();
    scratch_text(faults[_i].path, faults[_i].text);
    ck_assert_int_eq(check_layers(said, sizeof said), 1);
    ck_assert_str_eq(said, faults[_i].fault);
}
END_TEST

START_TEST(not_a_source_tree)
{
    char said[4096];
    ck_assert_int_eq(check_layers(said, sizeof said), 2);
    ck_assert_ptr_nonnull(strstr(said, "there is no include/headwise.h in "));
}
END_TEST

Suite *test_layers(void);
Suite *test_layers(void)
{
    Suite *suite = suite_create("layers");
    TCase *test = tcase_create("check_layers.sh");
    tcase_add_checked_fixture(test, scratch_begin, scratch_end);
    tcase_add_test(test, a_tree_in_order);
    tcase_add_loop_test(test, faults_are_found, 0, sizeof faults / sizeof *faults);
    tcase_add_test(test, not_a_source_tree);
    suite_add_tcase(suite, test);
    return suite;
}
