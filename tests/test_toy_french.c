/* The French of data/toy: every word is in hunspell's French dictionary, and in every annotated sentence determiners,
 * adjectives, participles and verbs have the form that the hand-written table (tests/fixtures/toy_paradigms.tsv) gives
 * for the gender and number of what they agree with. The table and this file know nothing of the grammar. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support_files.h"
#include "support_toy.h"

static hw_arena *arena;
static toy_table *table;
static toy_set *set[2];

static void load(void)
{
    arena = hw_arena_new(1 << 24);
    table = toy_table_load(arena);
    set[0] = toy_load(arena, "data/toy", "valid", true);
    set[1] = toy_load(arena, "data/toy", "test", true);
}

static void unload(void) { hw_arena_free(arena); }

/* ---- gender and number ------------------------------------------------------------------------------------------- */

typedef struct agreement {
    bool feminine, plural;
} agreement;

static bool begins_with_vowel(const char *word)
{
    static const char *const vowels[] = {"a", "e", "i", "o", "u", "h", "é", "î"};
    for (size_t i = 0; i < sizeof vowels / sizeof *vowels; i++)
        if (!strncmp(word, vowels[i], strlen(vowels[i]))) return true;
    return false;
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(word, *list)) return true;
    return false;
}

/* Number from the determiner (souris and tapis do not show it), gender from the table. */
static agreement agreement_of(const toy_sentence *s, int i)
{
    static const char *const plurals[] = {"les", "ces", "mes", "ses", "nos", "quelques", "des", NULL};
    const hw_conllu_word *word = &s->word[i];
    agreement a = {false, false};
    if (!strcmp(word->upos, "PROPN")) return a;
    if (!strcmp(word->upos, "PRON")) {
        a.feminine = !strcmp(word->form, "elle");
        ck_assert_msg(a.feminine || !strcmp(word->form, "il"), "nothing agrees with %s", word->form);
        return a;
    }
    const toy_row *noun = toy_find(table, "noun", 4, 5, word->form);
    ck_assert_msg(noun != NULL, "%s is not a noun of the table", word->form);
    a.feminine = !strcmp(noun->field[3], "f");
    for (int k = 0; k < s->count; k++) {
        bool mine = s->word[k].head == i;
        int phrase = s->word[k].head; /* the des of près des hangs on près, which hangs on the noun */
        bool fixed = !strcmp(s->word[k].relation, "fixed") && s->word[phrase].head == i;
        a.plural |= (mine || fixed) && is_one_of(s->word[k].form, plurals);
    }
    ck_assert_msg(!strcmp(word->form, noun->field[4 + a.plural]), "%s has the wrong number", word->form);
    return a;
}

static const char *in_form(const toy_row *row, int first, agreement a) /* columns m.sg f.sg m.pl f.pl */
{
    return row->field[first + a.feminine + 2 * a.plural];
}

static void expect_form(const toy_sentence *s, int i, const char *form)
{
    char text[1024] = "";
    for (int k = 0; k < s->count; k++) strcat(strcat(text, s->word[k].form), " ");
    ck_assert_msg(!strcmp(s->word[i].form, form), "'%s' should be '%s': %s", s->word[i].form, form, text);
}

/* ---- each part of speech ----------------------------------------------------------------------------------------- */

static bool elides(const toy_sentence *s, int i) { return i + 1 < s->count && begins_with_vowel(s->word[i + 1].form); }

/* Some word of the table's kind has this English form and the French one that the agreement asks for. */
static void check_determiner(const toy_sentence *s, int i, const char *english)
{
    agreement a = agreement_of(s, s->word[i].head);
    const toy_row *row = toy_find(table, "det", 1, 2, english);
    ck_assert_msg(row != NULL, "%s is not a determiner of the table", english);
    expect_form(s, i, a.plural ? row->field[5] : row->field[(elides(s, i) ? 6 : 3) + a.feminine]);
}

static void check_adjective(const toy_sentence *s, int i, const char *english)
{
    const toy_row *row = toy_find(table, "adjective", 1, 1, english);
    if (!row) row = toy_find(table, "verb", 1, 3, english); /* sat: assis */
    ck_assert_msg(row != NULL, "%s is not an adjective of the table", english);
    int controller = toy_controller(s, i);
    ck_assert_int_ge(controller, 0);
    agreement a = agreement_of(s, controller);
    bool verb = !strcmp(row->field[0], "verb"), before = !strcmp(row->field[2], "before");
    bool described = !strcmp(s->word[i].relation, "amod");
    if (described) ck_assert_int_eq(before, i < controller);
    bool vowel = described && before && !a.feminine && !a.plural && elides(s, i) && strcmp(s->word[i + 1].form, "et");
    expect_form(s, i, vowel ? row->field[7] : in_form(row, verb ? 7 : 3, a));
}

/* Finite verbs and auxiliaries have the number of the subject; the participle that of the subject with être, of a
 * clitic object (which is never plural here) with avoir. */
static void check_verb(const toy_sentence *s, int i, const char *english, bool object_is_her)
{
    const toy_row *row = toy_find(table, "verb", 1, 3, english);
    ck_assert_msg(row != NULL, "%s is not a verb of the table", english);
    int auxiliary = toy_dependent(s, i, "aux"), subject = toy_controller(s, i);
    ck_assert_int_ge(subject, 0);
    agreement a = agreement_of(s, subject);
    if (auxiliary < 0) {
        expect_form(s, i, row->field[5 + a.plural]);
        return;
    }
    bool moving = !strcmp(row->field[4], "moving");
    expect_form(s, auxiliary, moving ? (a.plural ? "sont" : "est") : (a.plural ? "ont" : "a"));
    expect_form(s, i, moving ? in_form(row, 7, a) : row->field[7 + object_is_her]);
}

/* est, sont, était or étaient by the number of the subject and the time of the English verb. */
static void check_copula(const toy_sentence *s, int i, bool past)
{
    int subject = toy_controller(s, s->word[i].head);
    ck_assert_int_ge(subject, 0);
    bool plural = agreement_of(s, subject).plural;
    expect_form(s, i, past ? (plural ? "étaient" : "était") : (plural ? "sont" : "est"));
}

/* ---- sentences --------------------------------------------------------------------------------------------------- */

/* The English word that French word j is surely linked to (the first), or NULL. */
static const char *english_of(const toy_set *from, int64_t k, int j)
{
    for (int64_t l = from->links->start[k]; l < from->links->start[k + 1]; l++) {
        hw_link link = from->links->links[l];
        if (link.target == j && link.sure) return from->gold[0]->words[from->gold[0]->start[k] + link.source].form;
    }
    return NULL;
}

/* Did English say it in the past: was and were, did, sat? */
static bool is_past(const char *english)
{
    static const char *const past[] = {"was", "were", "did", "sat", NULL};
    return english && is_one_of(english, past);
}

static bool english_has_past(const toy_set *from, int64_t k, int j) /* by any link of French word j */
{
    bool past = false;
    for (int64_t l = from->links->start[k]; l < from->links->start[k + 1]; l++)
        if (from->links->links[l].target == j)
            past |= is_past(from->gold[0]->words[from->gold[0]->start[k] + from->links->links[l].source].form);
    return past;
}

static void check_word(const toy_set *from, int64_t k, const toy_sentence *s, int i)
{
    const hw_conllu_word *word = &s->word[i];
    const char *english = english_of(from, k, i);
    if (!strcmp(word->upos, "DET")) check_determiner(s, i, english);
    if (!strcmp(word->upos, "ADJ")) check_adjective(s, i, english);
    if (!strcmp(word->relation, "cop")) check_copula(s, i, english_has_past(from, k, i));
    if (strcmp(word->upos, "VERB")) return;
    int object = toy_dependent(s, i, "obj");
    bool clitic = object >= 0 && object < i && !strcmp(s->word[object].upos, "PRON");
    const char *whom = clitic ? english_of(from, k, object) : NULL;
    check_verb(s, i, english, whom && !strcmp(whom, "her"));
}

START_TEST(everything_agrees_as_the_table_says)
{
    int64_t checked = 0;
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < set[i]->gold[1]->count; k++) {
            toy_sentence s = toy_words(set[i]->gold[1], k);
            for (int w = 0; w < s.count; w++, checked++) check_word(set[i], k, &s, w);
        }
    ck_assert_int_gt(checked, 20000);
}
END_TEST

/* Neighbours that French does not have: no elision missed, none too many, du and des where they must be. */
START_TEST(elision_and_contraction_are_complete)
{
    static const char *const elided[] = {"le", "la", "de", "ne", "que", "ce", "ma", "sa", NULL};
    static const char *const short_forms[] = {"l'", "d'", "n'", "qu'", "cet", "vieil", "bel", "nouvel", NULL};
    static const char *const merged[] = {"le", "les", NULL};
    for (int i = 0; i < 3; i++) {
        static const char *const prefix[] = {"train", "valid", "test"};
        toy_set *all = toy_load(arena, "data/toy", prefix[i], false);
        for (int64_t k = 0; k < all->line[1]->count; k++) {
            char text[1024], *rest = text, *last = "";
            snprintf(text, sizeof text, "%s", hw_lines_get(all->line[1], k, NULL));
            for (char *word; (word = strsep(&rest, " ")); last = word) {
                bool vowel = begins_with_vowel(word) && strcmp(word, "et");
                bool wrong = (vowel && is_one_of(last, elided)) || (!vowel && is_one_of(last, short_forms)) ||
                             (!strcmp(last, "de") && is_one_of(word, merged));
                ck_assert_msg(!wrong, "%s %s: %s", last, word, hw_lines_get(all->line[1], k, NULL));
            }
        }
    }
}
END_TEST

/* ---- the dictionary ---------------------------------------------------------------------------------------------- */

/* What a command prints, its status through *status. */
static char *output_of(const char *command, int *status)
{
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    char *text = NULL;
    size_t size;
    FILE *all = open_memstream(&text, &size);
    for (int c; (c = getc(pipe)) != EOF;) putc(c, all);
    fclose(all);
    *status = pclose(pipe);
    return text;
}

START_TEST(hunspell_knows_every_word)
{
    hw_error err;
    int status;
    char *found = output_of("hunspell -D 2>&1 </dev/null", &status);
    bool installed = WIFEXITED(status) && WEXITSTATUS(status) == 0 && strstr(found, "fr_FR");
    free(found);
    if (!installed) {
        fprintf(stderr, "toy_french: hunspell and its French dictionary are not installed; spelling is not checked "
                        "(packages hunspell and hunspell-fr)\n");
        return;
    }
    hw_tokenizer *tokenizer = hw_tokenizer_new(&(hw_tokenizer_options){.name = "word", .joiner = "@@ "}, &err);
    hw_counts *counts = hw_counts_new(arena);
    const char *const files[] = {"data/toy/train.fr", "data/toy/valid.fr", "data/toy/test.fr"};
    for (int i = 0; i < 3; i++) ck_assert(hw_counts_add_file(counts, tokenizer, files[i], &err));
    hw_tokenizer_free(tokenizer);
    hw_vocabulary *v = hw_vocabulary_build(arena, counts, &(hw_vocabulary_options){0, 0});
    const char *path = scratch_path("words");
    FILE *out = fopen(path, "w");
    int words = 0;
    for (int32_t id = HW_SPECIALS; id < hw_vocabulary_size(v); id++) {
        const char *word = hw_vocabulary_token(v, id, NULL);
        if (strstr(word, "@@") || toy_find(table, "syllable", 1, 1, word)) continue;
        fprintf(out, "%s\n", word);
        words++;
    }
    fprintf(out, "vieus\n"); /* and one that it must not know */
    fclose(out);
    char *unknown =
        output_of(hw_arena_string(arena, "LC_ALL=C.UTF-8 hunspell -d fr_FR -i UTF-8 -l '%s'", path), &status);
    ck_assert_int_eq(status, 0);
    ck_assert_int_gt(words, 200);
    ck_assert_str_eq(unknown, "vieus\n");
    free(unknown);
}
END_TEST

Suite *test_toy_french(void);
Suite *test_toy_french(void)
{
    Suite *suite = suite_create("toy_french");
    TCase *tc = tcase_create("french");
    tcase_add_unchecked_fixture(tc, load, unload);
    tcase_add_checked_fixture(tc, scratch_begin, scratch_end);
    tcase_add_test(tc, everything_agrees_as_the_table_says);
    tcase_add_test(tc, elision_and_contraction_are_complete);
    tcase_add_test(tc, hunspell_knows_every_word);
    suite_add_tcase(suite, tc);
    return suite;
}
