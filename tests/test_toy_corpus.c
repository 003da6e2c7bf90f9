/* data/toy as it is committed: made from its grammar byte for byte, and with the properties that training and the study
 * of heads rely on (sizes, shares of phenomena, nothing in two sets, new combinations in the test set only, no relation
 * that a fixed offset would find). Its French is checked in test_toy_french.c. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_toy.h"

static const char *const TOY = "data/toy", *const SETS[] = {"train", "valid", "test"};

/* The toy is read once, and generated once, for all tests of a process. */
static hw_arena *arena;
static toy_set *set[3]; /* train's annotation is that of the generated copy */
static toy_table *table;

static const char *copy; /* the directory that the corpus was generated into anew */
static hw_grammar_report report;

static void load(void)
{
    hw_error err;
    scratch_begin();
    arena = hw_arena_new(1 << 24);
    hw_grammar *grammar = hw_grammar_load("data/toy/grammar.yaml", &err);
    ck_assert_msg(grammar != NULL, "%s", err.message);
    copy = scratch_path("toy");
    const hw_grammar_options options = {-1, -1, -1, -1, true};
    ck_assert_msg(hw_grammar_generate(grammar, &options, copy, &report, NULL, NULL, &err), "%s", err.message);
    hw_grammar_report_clear(&report);
    hw_grammar_free(grammar);
    for (int i = 0; i < 3; i++) set[i] = toy_load(arena, i ? TOY : copy, SETS[i], true);
    table = toy_table_load(arena);
}

static void unload(void)
{
    scratch_end();
}

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static int64_t pairs(int i) { return set[i]->line[0]->count; }
static const char *line(int i, int side, int64_t k) { return hw_lines_get(set[i]->line[side], k, NULL); }

/* How often a word stands in a line of words between blanks. */
static int times(const char *text, const char *word)
{
    int count = 0;
    size_t size = strlen(word);
    for (size_t length; *text; text += length + (text[length] == ' ')) {
        length = strcspn(text, " ");
        count += length == size && !memcmp(text, word, size);
    }
    return count;
}

static int words(const char *text)
{
    int count = *text != 0;
    for (; *text; text++) count += *text == ' ';
    return count;
}

static bool is_joined(const char *word, size_t length) { return length > 2 && !memcmp(word + length - 2, "@@", 2); }

/* The names of a line, calling use(name, argument) for each; returns how many pieces they have. */
static int names(const char *text, void (*use)(const char *name, void *argument), void *argument)
{
    char name[64] = "";
    int pieces = 0;
    for (size_t length; *text; text += length + (text[length] == ' ')) {
        length = strcspn(text, " ");
        bool joined = is_joined(text, length);
        if (joined || *name) {
            strncat(name, text, joined ? length - 2 : length);
            pieces++;
            if (!joined && use) use(name, argument);
            if (!joined) *name = 0;
        }
    }
    return pieces;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void expect_between(const char *what, double value, double low, double high)
{
    ck_assert_msg(value >= low && value <= high, "%s: %g is not within %g to %g", what, value, low, high);
}

/* ---- the files --------------------------------------------------------------------------------------------------- */

START_TEST(the_grammar_makes_exactly_these_files)
{
    static const char *const files[] = {"train.en",        "train.fr",        "valid.en",   "valid.fr", "valid.align",
                                        "valid.en.conllu", "valid.fr.conllu", "test.en",    "test.fr",  "test.align",
                                        "test.en.conllu",  "test.fr.conllu",  "test.groups"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        size_t size[2];
        snprintf(path, sizeof path, "%s/%s", copy, files[i]);
        char *made = scratch_read(path, &size[0]);
        snprintf(path, sizeof path, "%s/%s", TOY, files[i]);
        char *committed = scratch_read(path, &size[1]);
        ck_assert_msg(made && committed && size[0] == size[1] && !memcmp(made, committed, size[0]),
                      "%s is not what headwise generate data/toy/grammar.yaml -o data/toy makes", path);
        free(made);
        free(committed);
    }
}
END_TEST

START_TEST(text_is_small_lower_case_and_of_the_right_length)
{
    double bytes = 0, tokens = 0, sentences = 0;
    ck_assert_int_eq(pairs(0), 40000);
    ck_assert_int_eq(pairs(1), 1000);
    ck_assert_int_eq(pairs(2), 1000);
    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; k < pairs(i); k++)
            for (int s = 0; s < 2; s++) {
                const char *text = line(i, s, k);
                int count = words(text);
                ck_assert_msg(count >= 4 && count <= 24, "%d words: %s", count, text);
                ck_assert_msg(!strpbrk(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ\t") && !strstr(text, "  "), "%s", text);
                bytes += (double)strlen(text) + 1;
                if (!s) tokens += count, sentences++;
            }
    ck_assert_double_lt(bytes, 6e6);
    expect_between("words of an English sentence", tokens / sentences, 11, 12);
}
END_TEST

START_TEST(no_sentence_is_in_two_places_and_none_has_two_translations)
{
    const char **all = malloc(42000 * sizeof *all);
    int count = 0;
    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; k < pairs(i); k++) all[count++] = line(i, 0, k);
    qsort(all, (size_t)count, sizeof *all, by_text);
    for (int i = 1; i < count; i++) ck_assert_msg(strcmp(all[i - 1], all[i]), "twice: %s", all[i]);
    free(all);
    ck_assert_msg(!report.ambiguous, "two translations: %s", report.ambiguity);
    ck_assert_str_eq(line(2, 0, 0), "the cat sat on the mat");
    ck_assert_str_eq(line(2, 1, 0), "le chat était assis sur le tapis");
}
END_TEST

/* Is it an entry of the lexicon whose English is none of these words? */
static bool is_left_out(const char *row)
{
    static const char *const kept[] = {"cat", "star", "old", "green", "see", "fall", "sleep",
                                       "the", "he",   "him", "her",   "on",  "often"};
    const char *english = strncmp(row, "      - {", 9) ? NULL : strstr(row, "en: ");
    if (!english) return false;
    english += 4 + strspn(english + 4, "[\"");
    size_t length = strcspn(english, ",\"");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strlen(kept[i]) == length && !memcmp(kept[i], english, length)) return false;
    return true;
}

/* The toy's rules with one or two words a class, one name, no held-out pairs, and many more noun phrases than
 * sentences. The caller frees it. */
static char *small_grammar(void)
{
    char *text = scratch_read("data/toy/grammar.yaml", NULL), *rest = text, *small = NULL;
    size_t size;
    ck_assert_ptr_nonnull(text);
    FILE *out = open_memstream(&small, &size);
    bool pinned = false;
    for (char *row; (row = strsep(&rest, "\n"));) {
        if (strstr(row, "---- the parts of the pinned")) pinned = true;
        if (!strncmp(row, "classes:", 8)) pinned = false;
        if (pinned || is_left_out(row) || !strncmp(row, "held_out", 8) || !strncmp(row, "distinct", 8)) continue;
        if (strstr(row, "syllables: [")) row = "    syllables: [ba]";
        if (strstr(row, "pieces: {")) row = "    pieces: {2: 1}";
        if (!strncmp(row, "corpus:", 7)) row = "corpus: {pairs: 5000, length: [2, 9]}";
        if (!strcmp(row, "  sentence:")) row = "  sentence:\n    - weight: 3000\n      both: np";
        fprintf(out, "%s\n", row);
    }
    fclose(out);
    free(text);
    return small;
}

/* With so few words the same English comes up again and again by all ways that the rules have for it: two of them with
 * different French (to which of two nouns does a relative clause belong?) are found. */
START_TEST(a_small_copy_of_the_grammar_is_unambiguous)
{
    hw_error err;
    char *text = small_grammar();
    hw_grammar *grammar = hw_grammar_load(scratch_text("small.yaml", text), &err);
    ck_assert_msg(grammar != NULL, "%s", err.message);
    hw_grammar_report r;
    const hw_grammar_options options = {-1, -1, -1, -1, false};
    ck_assert_msg(hw_grammar_generate(grammar, &options, scratch_path("small"), &r, NULL, NULL, &err), "%s",
                  err.message);
    ck_assert_msg(!r.ambiguous, "%lld have two translations: %s", (long long)r.ambiguous, r.ambiguity);
    hw_grammar_report_clear(&r);
    hw_grammar_free(grammar);
    free(text);
}
END_TEST

/* ---- what stands in it ------------------------------------------------------------------------------------------- */

START_TEST(phenomena_have_their_shares)
{
    double of = 0, relative = 0, quoted = 0, twice = 0, nested = 0, named = 0, pieces = 0, tokens = 0, all = 0;
    double negated = 0, clitic = 0, very = 0;
    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; k < pairs(i); k++) {
            const char *en = line(i, 0, k), *fr = line(i, 1, k);
            int quotes = times(en, "\""), spelled = names(en, NULL, NULL);
            ck_assert_int_eq(quotes, times(fr, "«") + times(fr, "»"));
            of += times(en, "of") > 0;
            relative += times(en, "(") > 0;
            quoted += quotes > 0;
            twice += quotes > 2;
            const char *second = strstr(fr, "« ") ? strstr(strstr(fr, "« ") + 1, "« ") : NULL;
            nested += second && strstr(fr, "»") > second;
            named += spelled > 0;
            pieces += spelled;
            tokens += words(en);
            negated += times(en, "not") > 0;
            clitic += times(en, "him") + times(en, "her") + times(en, "them") > 0;
            very += times(en, "very") > 0;
            all++;
        }
    expect_between("sentences with of", of / all, 0.12, 0.16);
    expect_between("sentences with a relative clause", relative / all, 0.23, 0.27);
    expect_between("sentences with a quotation", quoted / all, 0.38, 0.42);
    expect_between("of them with two or nested ones", twice / quoted, 0.18, 0.22);
    expect_between("nested ones", nested / all, 0.02, 0.1);
    expect_between("sentences with a name", named / all, 0.38, 0.43);
    expect_between("pieces of names among words", pieces / tokens, 0.13, 0.15);
    expect_between("sentences with not", negated / all, 0.15, 0.25);
    expect_between("sentences with him, her or them", clitic / all, 0.05, 0.1);
    expect_between("sentences with very", very / all, 0.1, 0.3);
}
END_TEST

static int row_count(const char *kind, int field, const char *value)
{
    int count = 0;
    for (int i = 0; i < table->count; i++)
        count += !strcmp(table->row[i].field[0], kind) && (!value || !strcmp(table->row[i].field[field], value));
    return count;
}

static bool is_syllable(const char *word, size_t length)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)(is_joined(word, length) ? length - 2 : length), word);
    return toy_find(table, "syllable", 1, 1, text) != NULL;
}

/* Is the word of that side anywhere in the table? */
static bool is_known(const char *word, int side)
{
    static const struct {
        const char *kind;
        int from[2], to[2]; /* the fields of English and of French words */
    } kinds[] = {{"noun", {1, 4}, {2, 5}},   {"adjective", {1, 3}, {1, 7}}, {"verb", {1, 5}, {3, 10}},
                 {"det", {1, 3}, {2, 7}},    {"aux", {9, 1}, {9, 2}},       {"preposition", {1, 2}, {1, 2}},
                 {"adverb", {1, 2}, {1, 2}}, {"english", {1, 9}, {1, 9}},   {"french", {9, 1}, {9, 1}}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (toy_find(table, kinds[i].kind, kinds[i].from[side], kinds[i].to[side], word)) return true;
    return false;
}

START_TEST(every_word_is_in_the_table_and_every_form_is_used)
{
    ck_assert_int_eq(row_count("noun", 0, NULL), 30);
    ck_assert_int_eq(row_count("adjective", 2, "before"), 8);
    ck_assert_int_eq(row_count("adjective", 2, "after"), 13);
    ck_assert_int_eq(row_count("verb", 4, "transitive"), 11);
    ck_assert_int_eq(
        row_count("verb", 4, "intransitive") + row_count("verb", 4, "moving") + row_count("verb", 4, "seated"), 7);
    ck_assert_int_eq(row_count("preposition", 0, NULL), 7);
    ck_assert_int_eq(row_count("adverb", 0, NULL), 3);
    ck_assert_int_eq(row_count("syllable", 0, NULL), 20);

    hw_error err;
    hw_tokenizer *tokenizer = hw_tokenizer_new(&(hw_tokenizer_options){.name = "word"}, &err);
    hw_counts *side[2], *both = hw_counts_new(arena);
    for (int s = 0; s < 2; s++) {
        side[s] = hw_counts_new(arena);
        const char *path = hw_arena_string(arena, "%s/train.%s", TOY, s ? "fr" : "en");
        ck_assert(hw_counts_add_file(side[s], tokenizer, path, &err) &&
                  hw_counts_add_file(both, tokenizer, path, &err));
    }
    hw_tokenizer_free(tokenizer);
    expect_between("different words", (double)hw_counts_distinct(both), 465, 495);
    for (int s = 0; s < 2; s++) {
        hw_vocabulary *v = hw_vocabulary_build(arena, side[s], &(hw_vocabulary_options){0, 0});
        for (int32_t id = HW_SPECIALS; id < hw_vocabulary_size(v); id++) {
            const char *word = hw_vocabulary_token(v, id, NULL);
            ck_assert_msg(is_syllable(word, strlen(word)) || is_known(word, s), "'%s' is not in the table", word);
        }
    }
    for (int i = 0; i < table->count; i++)
        for (int k = 1; k < table->row[i].fields; k++) {
            const char *kind = table->row[i].field[0], *word = table->row[i].field[k];
            bool label = !strcmp(word, "-") || (!strcmp(kind, "noun") && k == 3) ||
                         (!strcmp(kind, "adjective") && k == 2) || (!strcmp(kind, "verb") && k == 4);
            ck_assert_msg(label || hw_counts_get(both, word, strlen(word)), "'%s' is never used", word);
        }
}
END_TEST

typedef struct collected {
    int count, capacity;
    char **name;
} collected;

static void collect(const char *name, void *argument)
{
    collected *c = argument;
    if (c->count == c->capacity)
        c->name = realloc(c->name, (size_t)(c->capacity = 2 * c->capacity + 64) * sizeof *c->name);
    c->name[c->count++] = hw_arena_string(arena, "%s", name);
}

START_TEST(most_names_of_the_test_set_are_new)
{
    collected train = {0, 0, NULL}, test = {0, 0, NULL};
    for (int64_t k = 0; k < pairs(0); k++) names(line(0, 0, k), collect, &train);
    for (int64_t k = 0; k < pairs(2); k++) names(line(2, 0, k), collect, &test);
    qsort(train.name, (size_t)train.count, sizeof *train.name, by_text);
    int new = 0;
    for (int i = 0; i < test.count; i++)
        new += !bsearch(&test.name[i], train.name, (size_t)train.count, sizeof *train.name, by_text);
    expect_between("share of new names", (double)new / test.count, 0.5, 1);
    free(train.name);
    free(test.name);
}
END_TEST

/* ---- new combinations -------------------------------------------------------------------------------------------- */

enum { NOUNS = 30, ADJECTIVES = 21 };

/* Marks the noun-adjective pairs of a sentence by their rows in the table. */
static void mark_pairs(const toy_sentence *s, bool marked[TOY_ROWS][TOY_ROWS])
{
    for (int i = 0; i < s->count; i++) {
        if (strcmp(s->word[i].upos, "ADJ")) continue;
        const toy_row *adjective = toy_find(table, "adjective", 1, 1, s->word[i].form);
        int noun = toy_controller(s, i);
        const toy_row *row = noun < 0 ? NULL : toy_find(table, "noun", 1, 2, s->word[noun].form);
        ck_assert_msg(adjective != NULL, "%s is not an adjective of the table", s->word[i].form);
        if (row) marked[row - table->row][adjective - table->row] = true;
    }
}

START_TEST(half_of_the_test_set_has_combinations_that_training_never_shows)
{
    static bool seen[TOY_ROWS][TOY_ROWS];
    hw_error err;
    hw_groups *groups = hw_groups_load(arena, "data/toy/test.groups", &err);
    ck_assert_msg(groups && groups->count == 1000 && groups->groups == 2, "%s", err.message);
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < pairs(i); k++) {
            toy_sentence s = toy_words(set[i]->gold[0], k);
            mark_pairs(&s, seen);
        }
    int shown = 0, unseen = 0;
    for (int a = 0; a < TOY_ROWS; a++)
        for (int b = 0; b < TOY_ROWS; b++) shown += seen[a][b];
    expect_between("combinations that training shows", shown, 0.85 * NOUNS * ADJECTIVES, 0.95 * NOUNS * ADJECTIVES);
    for (int64_t k = 0; k < 1000; k++) {
        static bool own[TOY_ROWS][TOY_ROWS];
        memset(own, 0, sizeof own);
        toy_sentence s = toy_words(set[2]->gold[0], k);
        mark_pairs(&s, own);
        bool new = false;
        for (int a = 0; a < TOY_ROWS; a++)
            for (int b = 0; b < TOY_ROWS; b++) new |= own[a][b] && !seen[a][b];
        ck_assert_msg(new == !strcmp(groups->names[groups->group[k]], "unseen"), "%s is called %s", line(2, 0, k),
                      groups->names[groups->group[k]]);
        unseen += new;
    }
    ck_assert_int_eq(unseen, 500);
}
END_TEST

/* ---- the gold ---------------------------------------------------------------------------------------------------- */

START_TEST(every_sentence_is_a_tree_and_every_word_is_linked)
{
    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; k < pairs(i); k++) {
            uint32_t linked[2] = {0, 0};
            for (int64_t l = set[i]->links->start[k]; l < set[i]->links->start[k + 1]; l++) {
                linked[0] |= 1u << set[i]->links->links[l].source;
                linked[1] |= 1u << set[i]->links->links[l].target;
            }
            for (int s = 0; s < 2; s++) {
                toy_sentence sentence = toy_words(set[i]->gold[s], k);
                int roots = 0;
                for (int w = 0; w < sentence.count; w++) {
                    roots += sentence.word[w].head < 0;
                    ck_assert_int_eq(sentence.word[w].head < 0, !strcmp(sentence.word[w].relation, "root"));
                }
                ck_assert_int_eq(roots, 1);
                ck_assert_msg(linked[s] == (1u << sentence.count) - 1, "a word without a link: %s", line(i, s, k));
            }
        }
}
END_TEST

/* Marks match mutually, each kind with its own, nested without crossing. */
START_TEST(brackets_and_quotes_are_matched)
{
    for (int64_t k = 0; k < pairs(0); k++) {
        toy_sentence s = toy_words(set[0]->gold[1], k);
        int open[24], depth = 0;
        for (int w = 0; w < s.count; w++) {
            const char *form = s.word[w].form;
            bool opens = !strcmp(form, "«") || !strcmp(form, "("), closes = !strcmp(form, "»") || !strcmp(form, ")");
            if (opens) open[depth++] = w;
            ck_assert_msg(closes || opens || s.word[w].match < 0, "%s", line(0, 1, k));
            if (!closes) continue;
            ck_assert_msg(depth > 0 && s.word[w].match == open[--depth] && s.word[open[depth]].match == w, "%s",
                          line(0, 1, k));
            ck_assert_int_eq(form[0] == ')', s.word[open[depth]].form[0] == '(');
        }
        ck_assert_int_eq(depth, 0);
    }
}
END_TEST

/* What a head that always looks at the same distance would reach. A role with a high baseline would show little. */
static double best_offset(int side, const char *relation, const char *mark)
{
    int at[64] = {0}, best = 0, all = 0;
    for (int i = 1; i < 3; i++)
        for (int64_t k = 0; k < pairs(i); k++) {
            toy_sentence s = toy_words(set[i]->gold[side], k);
            for (int w = 0; w < s.count; w++) {
                int to = mark ? s.word[w].match : s.word[w].head;
                if (strcmp(mark ? s.word[w].form : s.word[w].relation, mark ? mark : relation) || to < 0) continue;
                if (mark && to > w) continue;
                all++;
                at[to - w + 32]++;
            }
        }
    for (int k = 0; k < 64; k++) best = at[k] > best ? at[k] : best;
    ck_assert_int_gt(all, 200);
    return (double)best / all;
}

START_TEST(no_fixed_offset_finds_a_relation)
{
    static const struct {
        int side;
        const char *relation, *mark;
        double most;
    } roles[] = {{0, "amod", NULL, 0.55}, {0, "det", NULL, 0.45}, {0, "nsubj", NULL, 0.4}, {0, "obj", NULL, 0.4},
                 {0, NULL, "\"", 0.35},   {0, NULL, ")", 0.35},   {1, "amod", NULL, 0.55}, {1, "det", NULL, 0.59},
                 {1, "nsubj", NULL, 0.4}, {1, "obj", NULL, 0.4},  {1, NULL, "»", 0.35},    {1, NULL, ")", 0.35}};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        char what[64];
        snprintf(what, sizeof what, "best fixed offset of %s on side %d",
                 roles[i].mark ? roles[i].mark : roles[i].relation, roles[i].side);
        expect_between(what, best_offset(roles[i].side, roles[i].relation, roles[i].mark), 0, roles[i].most);
    }
}
END_TEST

Suite *test_toy_corpus(void);
Suite *test_toy_corpus(void)
{
    Suite *suite = suite_create("toy_corpus");
    TCase *tc = tcase_create("toy");
    tcase_add_unchecked_fixture(tc, load, unload);
    tcase_add_test(tc, the_grammar_makes_exactly_these_files);
    tcase_add_test(tc, text_is_small_lower_case_and_of_the_right_length);
    tcase_add_test(tc, no_sentence_is_in_two_places_and_none_has_two_translations);
    tcase_add_test(tc, a_small_copy_of_the_grammar_is_unambiguous);
    tcase_add_test(tc, phenomena_have_their_shares);
    tcase_add_test(tc, every_word_is_in_the_table_and_every_form_is_used);
    tcase_add_test(tc, most_names_of_the_test_set_are_new);
    tcase_add_test(tc, half_of_the_test_set_has_combinations_that_training_never_shows);
    tcase_add_test(tc, every_sentence_is_a_tree_and_every_word_is_linked);
    tcase_add_test(tc, brackets_and_quotes_are_matched);
    tcase_add_test(tc, no_fixed_offset_finds_a_relation);
    suite_add_tcase(suite, tc);
    return suite;
}
