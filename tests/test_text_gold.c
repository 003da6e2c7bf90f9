/* Gold annotation beside a corpus: what is right is read, and every fault is said with its line. */
#include <check.h>
#include <string.h>

#include "support_files.h"
#include "support_text.h"

static hw_arena *arena;
static hw_error err;

static void begin(void)
{
    scratch_begin();
    arena = scratch_arena();
}

static const hw_lines *lines_of(const char *name, const char *text)
{
    const hw_lines *lines = hw_lines_load(arena, scratch_text(name, text), &err);
    ck_assert_msg(lines != NULL, "%s", err.message);
    return lines;
}

/* ---- alignments -------------------------------------------------------------------------------------------------- */

START_TEST(links_are_read_in_order_and_once)
{
    const hw_alignments *a =
        hw_alignments_load(arena, scratch_text("a", "1-0 0-1\t0p0\n\n 2p3 2-3 2p3 10-2147483647 2-1\n"), &err);
    ck_assert_msg(a != NULL, "%s", err.message);
    ck_assert_int_eq(a->count, 3);
    static const hw_link expected[] = {{0, 0, false}, {0, 1, true}, {1, 0, true},
                                       {2, 1, true},  {2, 3, true}, {10, 2147483647, true}};
    static const int64_t start[] = {0, 3, 3, 6};
    for (int i = 0; i < 4; i++) ck_assert_int_eq(a->start[i], start[i]);
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(a->links[i].source, expected[i].source);
        ck_assert_int_eq(a->links[i].target, expected[i].target);
        ck_assert_int_eq(a->links[i].sure, expected[i].sure);
    }
}
END_TEST

static const char *const no_links[] = {"0",     "-1",      "0-",           "0x1", "0-1-2", "a-1",
                                       "0 - 1", "0-1,1-2", "0-2147483648", "0P1", "1--2"};

START_TEST(what_is_no_link)
{
    const char *path = scratch_text("a", hw_arena_string(arena, "0-0\n1-1 %s\n", no_links[_i]));
    ck_assert_ptr_null(hw_alignments_load(arena, path, &err));
    ck_assert_str_eq(
        err.message,
        hw_arena_string(arena, "%s:2:5: \"%.*s\" is no link; links are i-j (sure) or ipj (possible), counted from 0",
                        path, (int)strcspn(no_links[_i], " "), no_links[_i]));
}
END_TEST

START_TEST(links_must_fit_their_pair)
{
    const hw_lines *source = lines_of("s", "a b c\n\n"), *target = lines_of("t", "x  y\n\n"),
                   *more = lines_of("m", "x\n");
    const hw_alignments *a = hw_alignments_load(arena, scratch_text("a", "2-1 0p0\n\n"), &err);
    ck_assert_msg(hw_alignments_fit(a, source, target, &err), "%s", err.message);
    a = hw_alignments_load(arena, scratch_text("a", "0-1 1p2\n\n"), &err);
    ck_assert(!hw_alignments_fit(a, source, target, &err));
    ck_assert_str_eq(err.message, hw_arena_string(arena,
                                                  "%s:1: link 1p2 points beyond the pair, which has 3 source and 2 "
                                                  "target words",
                                                  a->path));
    a = hw_alignments_load(arena, scratch_text("a", "\n\n\n"), &err);
    ck_assert(!hw_alignments_fit(a, source, target, &err));
    ck_assert_str_eq(err.message,
                     hw_arena_string(arena, "%s has 3 lines, but %s has 2; each pair needs a line, empty or not",
                                     a->path, source->path));
    ck_assert(!hw_alignments_fit(a, source, more, &err));
}
END_TEST

/* ---- dependencies ------------------------------------------------------------------------------------------------ */

#define WORD(id, form, upos, head, relation, misc)                                                                     \
    id "\t" form "\t_\t" upos "\t_\t_\t" head "\t" relation "\t_\t" misc "\n"

static const char *const trees = "# sent_id = 1\n# text = the cat ( sleeps )\n" WORD("1", "the", "DET", "2", "det", "_")
    WORD("2", "cat", "NOUN", "4", "nsubj", "_") WORD("3", "(", "PUNCT", "4", "punct", "SpaceAfter=No|Match=5")
        WORD("4", "sleeps", "VERB", "0", "root", "_")
            WORD("5", ")", "PUNCT", "4", "punct", "Match=3") "\n\n" WORD("1-2", "du", "_", "_", "_", "_")
                WORD("1", "de", "ADP", "0", "root", "_") WORD("2", "le", "DET", "1", "det", "_")
                    WORD("2.1", "x", "X", "_", "_", "_");

START_TEST(trees_are_read)
{
    const hw_conllu *c = hw_conllu_load(arena, scratch_text("c", trees), &err);
    ck_assert_msg(c != NULL, "%s", err.message);
    ck_assert_int_eq(c->count, 2);
    static const struct {
        const char *form, *upos, *relation;
        int head, match, line;
    } expected[] = {
        {"the", "DET", "det", 1, -1, 3},       {"cat", "NOUN", "nsubj", 3, -1, 4}, {"(", "PUNCT", "punct", 3, 4, 5},
        {"sleeps", "VERB", "root", -1, -1, 6}, {")", "PUNCT", "punct", 3, 2, 7},   {"de", "ADP", "root", -1, -1, 11},
        {"le", "DET", "det", 0, -1, 12},
    };
    ck_assert_int_eq(c->start[0], 0);
    ck_assert_int_eq(c->start[1], 5);
    ck_assert_int_eq(c->start[2], 7);
    for (int i = 0; i < 7; i++) {
        const hw_conllu_word *w = &c->words[i];
        ck_assert_str_eq(w->form, expected[i].form);
        ck_assert_str_eq(w->upos, expected[i].upos);
        ck_assert_str_eq(w->relation, expected[i].relation);
        ck_assert_int_eq(w->head, expected[i].head);
        ck_assert_int_eq(w->match, expected[i].match);
        ck_assert_int_eq(w->line, expected[i].line);
    }
    ck_assert_msg(hw_conllu_fit(c, lines_of("l", "the cat ( sleeps )\nde  le\n"), &err), "%s", err.message);
}
END_TEST

static const struct {
    const char *text, *message; /* after the path */
} wrong_trees[] = {
    {"1\ta\t_\tX\t_\t_\t0\troot\t_\n", ":1: 9 columns, but CoNLL-U has 10, separated by tabs"},
    {"1\ta\t_\tX\t_\t_\t0\troot\t_\t_\t_\n", ":1: 11 columns, but CoNLL-U has 10, separated by tabs"},
    {"1 a _ X _ _ 0 root _ _\n", ":1: 1 column, but CoNLL-U has 10, separated by tabs"},
    {WORD("1", "a", "X", "0", "root", "_") WORD("3", "b", "X", "1", "dep", "_"), ":2: ID is \"3\", but 2 comes next"},
    {WORD("1", "a", "X", "0", "root", "_") WORD("1", "b", "X", "1", "dep", "_"), ":2: ID is \"1\", but 2 comes next"},
    {WORD("x", "a", "X", "0", "root", "_"), ":1: ID is \"x\", but 1 comes next"},
    {WORD("1", "", "X", "0", "root", "_"), ":1: FORM is empty"},
    {WORD("1", "a", "X", "_", "root", "_"), ":1: HEAD is \"_\", not a number"},
    {WORD("1", "a", "X", "4294967297", "root", "_"), ":1: HEAD is \"4294967297\", not a number"},
    {"# c\n" WORD("1", "a", "X", "2", "root", "_") "\n", ":2: HEAD is 2, but the sentence has 1 word"},
    {WORD("1", "a", "X", "1", "dep", "_"), ":1: word 1 is its own head"},
    {WORD("1", "a", "X", "0", "root", "_") WORD("2", "b", "X", "3", "dep", "_") WORD("3", "c", "X", "2", "dep", "_"),
     ":2: the heads of word 2 lead back to it in a circle"},
    {WORD("1", "d", "X", "2", "dep", "_") WORD("2", "b", "X", "3", "dep", "_") WORD("3", "c", "X", "2", "dep", "_"),
     ":2: the heads of word 2 lead back to it in a circle"},
    {WORD("1", "(", "X", "0", "root", "Match=2"), ":1: Match=2, but the sentence has 1 word"},
    {WORD("1", "(", "X", "0", "root", "Match=1"), ":1: Match=1, but word 1 does not name word 1 in turn"},
    {WORD("1", "(", "X", "0", "root", "Match=2") WORD("2", ")", "X", "1", "punct", "_"),
     ":1: Match=2, but word 2 does not name word 1 in turn"},
    {WORD("1", "(", "X", "0", "root", "Match=x"), ":1: Match= is not followed by a number"},
    {WORD("1", "\xE9", "X", "0", "root", "_"),
     ":1: byte 3 is 0xE9, which is not valid UTF-8; convert the file to UTF-8"},
};

START_TEST(wrong_trees_are_refused)
{
    const char *path = scratch_text("c", wrong_trees[_i].text);
    ck_assert_ptr_null(hw_conllu_load(arena, path, &err));
    ck_assert_str_eq(err.message, hw_arena_string(arena, "%s%s", path, wrong_trees[_i].message));
}
END_TEST

START_TEST(trees_must_fit_their_lines)
{
    const hw_conllu *c = hw_conllu_load(arena, scratch_text("c", trees), &err);
    const hw_lines *l = lines_of("l1", "the cat ( sleeps )\n");
    ck_assert(!hw_conllu_fit(c, l, &err));
    ck_assert_str_eq(err.message,
                     hw_arena_string(arena, "%s has 2 sentences, but %s has 1 line; each line needs its sentence",
                                     c->path, l->path));
    l = lines_of("l2", "the cat ( sleeps )\nde le chat\n");
    ck_assert(!hw_conllu_fit(c, l, &err));
    ck_assert_str_eq(err.message,
                     hw_arena_string(arena, "%s:11: a sentence of 2 words, but line 2 of %s has 3", c->path, l->path));
    l = lines_of("l3", "the cat ( slept )\nde le\n");
    ck_assert(!hw_conllu_fit(c, l, &err));
    ck_assert_str_eq(
        err.message,
        hw_arena_string(arena, "%s:6: the word is \"sleeps\", but line 1 of %s has \"slept\" there", c->path, l->path));
}
END_TEST

START_TEST(long_chains_are_no_circles)
{
    char *text = hw_arena_alloc(arena, 2000 * 64), *to = text;
    for (int i = 1; i <= 2000; i++) to += sprintf(to, "%d\tw\t_\tX\t_\t_\t%d\tdep\t_\t_\n", i, i - 1);
    const hw_conllu *c = hw_conllu_load(arena, scratch_text("c", text), &err);
    ck_assert_msg(c != NULL, "%s", err.message);
    ck_assert_int_eq(c->start[1], 2000);
}
END_TEST

/* ---- groups ------------------------------------------------------------------------------------------------------ */

START_TEST(labels_become_groups)
{
    const hw_groups *g = hw_groups_load(arena, scratch_text("g", "seen\nunseen\nseen\nseen\n"), &err);
    ck_assert_msg(g != NULL, "%s", err.message);
    ck_assert_int_eq(g->count, 4);
    ck_assert_int_eq(g->groups, 2);
    ck_assert_str_eq(g->names[0], "seen");
    ck_assert_str_eq(g->names[1], "unseen");
    static const int expected[] = {0, 1, 0, 0};
    for (int i = 0; i < 4; i++) ck_assert_int_eq(g->group[i], expected[i]);
    const char *path = scratch_text("g", "seen\n \nseen\n");
    ck_assert_ptr_null(hw_groups_load(arena, path, &err));
    ck_assert_str_eq(err.message,
                     hw_arena_string(arena, "%s:2: a label is missing; each pair has one, a line each", path));
}
END_TEST

#define COUNT(table) (int)(sizeof table / sizeof *table)

Suite *test_text_gold(void);
Suite *test_text_gold(void)
{
    Suite *suite = suite_create("text_gold");
    TCase *c = tcase_create("text_gold");
    tcase_add_checked_fixture(c, begin, scratch_end);
    tcase_add_test(c, links_are_read_in_order_and_once);
    tcase_add_loop_test(c, what_is_no_link, 0, COUNT(no_links));
    tcase_add_test(c, links_must_fit_their_pair);
    tcase_add_test(c, trees_are_read);
    tcase_add_loop_test(c, wrong_trees_are_refused, 0, COUNT(wrong_trees));
    tcase_add_test(c, trees_must_fit_their_lines);
    tcase_add_test(c, long_chains_are_no_circles);
    tcase_add_test(c, labels_become_groups);
    suite_add_tcase(suite, c);
    return suite;
}
