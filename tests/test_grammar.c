/* The grammar engine on small grammars: agreement, order, forms, final passes and what they do to indices,
 * probabilities, held-out combinations, and sets that do not overlap. Faults and their messages are in
 * test_grammar_faults.c. */
#include <check.h>
#include <headwise/text.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static hw_grammar_report report; /* numbers only; its arrays are cleared */
static hw_error error;
static const hw_grammar_options AS_WRITTEN = {-1, -1, -1, -1, false};

static bool generate_into(const char *where, const char *text, hw_grammar_options options)
{
    hw_grammar *grammar = hw_grammar_load(scratch_text("grammar.yaml", text), &error);
    ck_assert_msg(grammar != NULL, "%s", error.message);
    bool good = hw_grammar_generate(grammar, &options, scratch_path(where), &report, NULL, NULL, &error);
    hw_grammar_report_clear(&report);
    hw_grammar_free(grammar);
    return good;
}

static void generate(const char *text) { ck_assert_msg(generate_into("out", text, AS_WRITTEN), "%s", error.message); }

static void expect_file(const char *name, const char *expected)
{
    char path[128];
    snprintf(path, sizeof path, "out/%s", name);
    char *text = scratch_read(scratch_path(path), NULL);
    ck_assert_msg(text != NULL, "%s is missing", name);
    ck_assert_str_eq(text, expected);
    free(text);
}

static bool same_files(const char *a, const char *b)
{
    char *one = scratch_read(scratch_path(a), NULL), *two = scratch_read(scratch_path(b), NULL);
    ck_assert_msg(one && two, "%s or %s is missing", a, b);
    bool same = !strcmp(one, two);
    free(one);
    free(two);
    return same;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The pairs of train as sorted lines "source = target". */
static void expect_pairs(const char *expected)
{
    char sorted[4096] = "", *lines[64], *text[2], *rest[2];
    for (int s = 0; s < 2; s++) {
        rest[s] = text[s] = scratch_read(scratch_path(s ? "out/train.fr" : "out/train.en"), NULL);
        ck_assert_ptr_nonnull(text[s]);
    }
    int count = 0;
    for (char *a, *b; (a = strsep(&rest[0], "\n")) && (b = strsep(&rest[1], "\n")) && *a;) {
        ck_assert_int_lt(count, 64);
        lines[count] = malloc(512);
        snprintf(lines[count++], 512, "%s = %s\n", a, b);
    }
    qsort(lines, (size_t)count, sizeof *lines, by_text);
    for (int i = 0; i < count; i++) {
        strcat(sorted, lines[i]);
        free(lines[i]);
    }
    ck_assert_str_eq(sorted, expected);
    free(text[0]);
    free(text[1]);
}

static int lines_with(const char *path, const char *word)
{
    char *text = scratch_read(scratch_path(path), NULL), *rest = text;
    ck_assert_ptr_nonnull(text);
    int count = 0;
    for (char *line; (line = strsep(&rest, "\n"));) {
        bool found = false;
        for (char *w; (w = strsep(&line, " "));) found |= !strcmp(w, word);
        count += found;
    }
    free(text);
    return count;
}

/* ---- agreement and order ----------------------------------------------------------------------------------------- */

#define HEAD "sides: [en, fr]\nstart: s\n"
#define FEATURES "features:\n  number: [sg, pl]\n  gender: [m, f]\n"
#define WORDS                                                                                                          \
    "lexicon:\n"                                                                                                       \
    "  det: {pos: DET, en: the, fr: {m.sg: le, f.sg: la, pl: les}}\n"                                                  \
    "  noun:\n"                                                                                                        \
    "    pos: NOUN\n"                                                                                                  \
    "    forms: {en: [sg, pl], fr: [sg, pl]}\n"                                                                        \
    "    entries:\n"                                                                                                   \
    "      - {en: [cat, cats], fr: [chat, chats], is: m}\n"                                                            \
    "      - {en: [star, stars], fr: [étoile, étoiles], is: f}\n"                                                    \
    "  adj:\n"                                                                                                         \
    "    pos: ADJ\n"                                                                                                   \
    "    forms: {fr: [m.sg, f.sg, m.pl, f.pl]}\n"                                                                      \
    "    entries:\n"                                                                                                   \
    "      - {en: old, fr: [vieux, vieille, vieux, vieilles]}\n"
#define NOUN_PHRASE                                                                                                    \
    "rules:\n"                                                                                                         \
    "  s:\n"                                                                                                           \
    "    - en: det:det adj:amod noun\n"                                                                                \
    "      fr: det:det noun adj:amod\n"

START_TEST(parts_agree_and_change_places)
{
    generate(HEAD "corpus: {pairs: 4}\n" FEATURES WORDS NOUN_PHRASE);
    expect_pairs("the old cat = le chat vieux\n"
                 "the old cats = les chats vieux\n"
                 "the old star = la étoile vieille\n"
                 "the old stars = les étoiles vieilles\n");
}
END_TEST

START_TEST(agreement_crosses_phrases_but_not_free_parts)
{
    generate(HEAD "corpus: {pairs: 5}\n"
                  "features: {number: [sg, pl], person: [first, third]}\n"
                  "lexicon:\n"
                  "  i: {pos: PRON, en: {sg: i, pl: we}, fr: {sg: je, pl: nous}, is: first}\n"
                  "  cat: {pos: NOUN, en: {sg: cat, pl: cats}, fr: {sg: chat, pl: chats}, is: third}\n"
                  "  see: {pos: VERB, en: {else: see, third.sg: sees},\n"
                  "        fr: {first.sg: vois, first.pl: voyons, third.sg: voit, third.pl: voient}}\n"
                  "rules:\n"
                  "  s:\n"
                  "    - weight: 9\n"
                  "      both: subject:nsubj acts\n"
                  "    - both: subject[sg first]:nsubj acts cat[free pl]:obj\n"
                  "  subject[number person]:\n"
                  "    - both: i\n"
                  "    - both: cat\n"
                  "  acts[number person]:\n"
                  "    - both: see\n");
    expect_pairs("cat sees = chat voit\n"
                 "cats see = chats voient\n"
                 "i see = je vois\n"
                 "i see cats = je vois chats\n"
                 "we see = nous voyons\n");
}
END_TEST

START_TEST(words_of_one_side_and_chosen_words)
{
    generate(HEAD "corpus: {pairs: 0, test: 2}\n" FEATURES WORDS "  ne: {pos: ADV, fr: ne}\n"
                  "  pas: {pos: ADV, fr: pas}\n"
                  "  not: {pos: PART, en: not}\n"
                  "  do: {pos: AUX, en: {sg: does, pl: do}}\n"
                  "  sleep: {pos: VERB, en: sleep, fr: {sg: dort, pl: dorment}}\n"
                  "pinned:\n"
                  "  - en: subject=noun{star}[pl]:nsubj do:aux not:advmod sleep\n"
                  "    fr: subject:nsubj ne:advmod sleep pas:advmod\n"
                  "    align: not-ne not-pas do~sleep\n"
                  "  - both: noun{cat}[sg] adj:amod det:det\n"
                  "rules:\n"
                  "  s:\n"
                  "    - both: noun\n");
    expect_file("test.en", "stars do not sleep\ncat old the\n");
    expect_file("test.fr", "étoiles ne dorment pas\nchat vieux le\n");
    expect_file("test.align", "0-0 1p2 2-1 2-3 3-2\n0-0 1-1 2-2\n");
    expect_file("test.fr.conllu", "1\tétoiles\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_\n"
                                  "2\tne\t_\tADV\t_\t_\t3\tadvmod\t_\t_\n"
                                  "3\tdorment\t_\tVERB\t_\t_\t0\troot\t_\t_\n"
                                  "4\tpas\t_\tADV\t_\t_\t3\tadvmod\t_\t_\n\n"
                                  "1\tchat\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"
                                  "2\tvieux\t_\tADJ\t_\t_\t1\tamod\t_\t_\n"
                                  "3\tle\t_\tDET\t_\t_\t1\tdet\t_\t_\n\n");
}
END_TEST

START_TEST(features_are_annotated_where_a_form_or_word_has_them)
{
    generate(HEAD "corpus: {pairs: 0, test: 1}\n"
                  "annotate: {en: number, fr: number gender}\n" FEATURES WORDS "pinned:\n"
                  "  - both: det:det noun{star}[pl]\n" NOUN_PHRASE);
    expect_file("test.en.conllu", "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n"
                                  "2\tstars\t_\tNOUN\t_\tnumber=pl\t0\troot\t_\t_\n\n");
    expect_file("test.fr.conllu", "1\tles\t_\tDET\t_\tnumber=pl\t2\tdet\t_\t_\n"
                                  "2\tétoiles\t_\tNOUN\t_\tgender=f|number=pl\t0\troot\t_\t_\n\n");
}
END_TEST

/* ---- final passes ------------------------------------------------------------------------------------------------ */

/* One pinned sentence; `passes` are those of the French side. */
static void surface(const char *pinned, const char *passes)
{
    char text[4096];
    snprintf(text, sizeof text,
             HEAD "corpus: {pairs: 0, test: 1}\n" FEATURES WORDS
                  "      - {en: new, fr: [nouveau, nouvelle, nouveaux, nouvelles]}\n"
                  "  friend: {pos: NOUN, en: {sg: friend, pl: friends}, fr: {sg: ami, pl: amis}, is: m}\n"
                  "  of: {pos: ADP, en: of, fr: de}\n"
                  "  near: {pos: ADP, en: near, fr: près de}\n"
                  "  cannot: {pos: AUX, en: cannot, fr: ne}\n"
                  "  open: {pos: PUNCT, en: '\"', fr: «}\n"
                  "  close: {pos: PUNCT, en: '\"', fr: »}\n"
                  "  name: {pos: PROPN, syllables: [le], pieces: {3: 1}, joiner: '@@'}\n"
                  "pinned:\n"
                  "  - both: %s\n"
                  "    match: %s\n"
                  "classes: {vowel: [a, é]}\n"
                  "rewrite:\n"
                  "  en:\n"
                  "    - {words: cannot, becomes: can not}\n"
                  "  fr:\n%s"
                  "rules:\n"
                  "  s:\n"
                  "    - both: adj:amod noun of:dep near:dep cannot:dep open:dep close:dep name:dep of_cat:dep "
                  "of_friend:dep near_cat:dep\n"
                  "  of_cat:\n"
                  "    - both: of:case det[sg]:det noun{cat}\n"
                  "  of_friend:\n"
                  "    - both: of:case det[sg]:det friend\n"
                  "  near_cat:\n"
                  "    - both: near:case det[sg]:det noun{cat}\n",
             pinned, strstr(pinned, "open") ? "open-close" : "''", passes);
    generate(text);
}

static const char *const MERGE = "    - {words: le, before: vowel, becomes: \"l'\"}\n"
                                 "    - {words: de le, becomes: du}\n";

START_TEST(merged_words_keep_heads_and_links)
{
    surface("noun{star}[sg] of_cat:nmod", MERGE);
    expect_file("test.fr", "étoile du chat\n");
    expect_file("test.align", "0-0 1-1 2-1 3-2\n");
    expect_file("test.fr.conllu", "1\tétoile\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"
                                  "2\tdu\t_\tADP\t_\t_\t3\tcase\t_\t_\n"
                                  "3\tchat\t_\tNOUN\t_\t_\t1\tnmod\t_\t_\n\n");
}
END_TEST

START_TEST(passes_run_in_order)
{
    surface("noun{star}[sg] of_friend:nmod", MERGE);
    expect_file("test.fr", "étoile de l' ami\n");
    expect_file("test.align", "0-0 1-1 2-2 3-3\n");
}
END_TEST

START_TEST(forms_of_several_words_can_merge_with_others)
{
    surface("noun{star}[sg] near_cat:nmod", MERGE);
    expect_file("test.fr", "étoile près du chat\n");
    expect_file("test.align", "0-0 1-1 1p2 2-2 3-3\n");
    expect_file("test.fr.conllu", "1\tétoile\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"
                                  "2\tprès\t_\tADP\t_\t_\t4\tcase\t_\t_\n"
                                  "3\tdu\t_\tADP\t_\t_\t2\tfixed\t_\t_\n"
                                  "4\tchat\t_\tNOUN\t_\t_\t1\tnmod\t_\t_\n\n");
}
END_TEST

START_TEST(of_merged_words_the_one_that_hangs_outside_stands_for_all)
{
    surface("noun{star}[sg] of_cat:nmod", "    - {words: le chat, becomes: minet}\n");
    expect_file("test.fr", "étoile de minet\n");
    expect_file("test.align", "0-0 1-1 2-2 3-2\n");
    expect_file("test.fr.conllu", "1\tétoile\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"
                                  "2\tde\t_\tADP\t_\t_\t3\tcase\t_\t_\n"
                                  "3\tminet\t_\tNOUN\t_\t_\t1\tnmod\t_\t_\n\n");
    surface("noun{star}[sg] near_cat:nmod", "    - {words: près de, becomes: chez}\n");
    expect_file("test.fr", "étoile chez le chat\n");
    expect_file("test.align", "0-0 1-1 2-2 3-3\n"); /* a link that was sure and possible is sure */
}
END_TEST

START_TEST(a_pass_does_not_apply_to_what_it_wrote)
{
    surface("noun{star}[sg] of_cat:nmod", "    - {words: de, becomes: de de}\n");
    expect_file("test.fr", "étoile de de le chat\n");
    expect_file("test.align", "0-0 1-1 1p2 2-3 3-4\n");
}
END_TEST

START_TEST(split_words_keep_heads_and_links)
{
    surface("cannot:aux noun{cat}[sg]", MERGE);
    expect_file("test.en", "can not cat\n");
    expect_file("test.align", "0-0 1p0 2-1\n");
    expect_file("test.en.conllu", "1\tcan\t_\tAUX\t_\t_\t3\taux\t_\t_\n"
                                  "2\tnot\t_\tAUX\t_\t_\t1\tfixed\t_\t_\n"
                                  "3\tcat\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n");
}
END_TEST

START_TEST(marks_stay_matched_when_words_before_them_merge_or_split)
{
    surface("cannot:aux of_cat:nmod open:punct noun{star}[sg] close:punct", MERGE);
    expect_file("test.en", "can not of the cat \" star \"\n");
    expect_file("test.fr", "ne du chat « étoile »\n");
    expect_file("test.align", "0-0 1p0 2-1 3-1 4-2 5-3 6-4 7-5\n");
    expect_file("test.en.conllu", "1\tcan\t_\tAUX\t_\t_\t7\taux\t_\t_\n"
                                  "2\tnot\t_\tAUX\t_\t_\t1\tfixed\t_\t_\n"
                                  "3\tof\t_\tADP\t_\t_\t5\tcase\t_\t_\n"
                                  "4\tthe\t_\tDET\t_\t_\t5\tdet\t_\t_\n"
                                  "5\tcat\t_\tNOUN\t_\t_\t7\tnmod\t_\t_\n"
                                  "6\t\"\t_\tPUNCT\t_\t_\t7\tpunct\t_\tMatch=8\n"
                                  "7\tstar\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"
                                  "8\t\"\t_\tPUNCT\t_\t_\t7\tpunct\t_\tMatch=6\n\n");
    expect_file("test.fr.conllu", "1\tne\t_\tAUX\t_\t_\t5\taux\t_\t_\n"
                                  "2\tdu\t_\tADP\t_\t_\t3\tcase\t_\t_\n"
                                  "3\tchat\t_\tNOUN\t_\t_\t5\tnmod\t_\t_\n"
                                  "4\t«\t_\tPUNCT\t_\t_\t5\tpunct\t_\tMatch=6\n"
                                  "5\tétoile\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"
                                  "6\t»\t_\tPUNCT\t_\t_\t5\tpunct\t_\tMatch=4\n\n");
}
END_TEST

START_TEST(passes_can_ask_for_features_and_relations)
{
    const char *pass = "    - {words: vieux, before: vowel, is: sg, relation: amod, becomes: vieil}\n";
    surface("adj{old}:amod friend[sg]", pass);
    expect_file("test.fr", "vieil ami\n");
    surface("adj{old}:amod friend[pl]", pass);
    expect_file("test.fr", "vieux amis\n");
    surface("adj{old}[m]:xcomp friend[sg]", pass);
    expect_file("test.fr", "vieux ami\n");
    surface("adj{old}:amod noun{cat}[sg]", pass);
    expect_file("test.fr", "vieux chat\n");
    surface("friend[sg] adj{old}:amod", pass); /* nothing comes after it */
    expect_file("test.fr", "ami vieux\n");
}
END_TEST

START_TEST(names_are_spelled_alike_and_passes_leave_them_alone)
{
    surface("name:flat friend[sg]", MERGE);
    expect_file("test.en", "le@@ le@@ le friend\n");
    expect_file("test.fr", "le@@ le@@ le ami\n");
    expect_file("test.align", "0-0 1-1 2-2 3-3\n");
    expect_file("test.fr.conllu", "1\tle@@\t_\tPROPN\t_\t_\t4\tflat\t_\tPiece=1\n"
                                  "2\tle@@\t_\tPROPN\t_\t_\t1\tflat\t_\tPiece=2\n"
                                  "3\tle\t_\tPROPN\t_\t_\t1\tflat\t_\tPiece=3\n"
                                  "4\tami\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n");
}
END_TEST

/* ---- chance ------------------------------------------------------------------------------------------------------ */

/* Names make all sentences different, so that nothing is refused and shares are those of the weights. */
static const char CHANCE[] = HEAD
    "corpus: {pairs: 2000, seed: 3}\n"
    "features: {number: {sg: 3, pl: 1}}\n"
    "lexicon:\n"
    "  word: {pos: X, forms: {en: [sg, pl]}, entries: [{en: [a, as], fr: a, weight: 4}, {en: [b, bs], fr: b}]}\n"
    "  very: {pos: ADV, en: very, fr: très}\n"
    "  mark: {pos: PUNCT, en: '!', fr: '!'}\n"
    "  name: {pos: PROPN, syllables: [ba, be, bi, bo, bu, da, de, di, do, du], pieces: {6: 1, 7: 3}, joiner: '@@'}\n"
    "rules:\n"
    "  s:\n"
    "    - weight: 2\n"
    "      both: very:advmod?0.3 word name:flat\n"
    "      count: plain\n"
    "    - weight: 3\n"
    "      both: word name:flat mark:punct\n";

/* count of 2,000 is within four deviations of its expectation */
static void expect_share(int count, double p)
{
    ck_assert_double_le(fabs(count - 2000 * p), 4 * sqrt(2000 * p * (1 - p)));
}

START_TEST(weights_and_probabilities_are_kept)
{
    generate(CHANCE);
    expect_share(lines_with("out/train.en", "!"), 0.6);
    expect_share(lines_with("out/train.en", "very"), 0.4 * 0.3);
    expect_share(lines_with("out/train.fr", "a"), 0.8);
    expect_share(lines_with("out/train.en", "a"), 0.8 * 0.75);
    expect_share(lines_with("out/train.en", "bs"), 0.2 * 0.25);
    ck_assert_double_eq_tol(report.spelled_share, (0.25 * 6 + 0.75 * 7) / (0.25 * 6 + 0.75 * 7 + 1 + 0.6 + 0.12), 0.01);
    ck_assert_int_eq(report.vocabulary[1], 20 + 4);
}
END_TEST

START_TEST(the_same_seed_gives_the_same_bytes)
{
    ck_assert(generate_into("a", CHANCE, (hw_grammar_options){100, 10, 10, -1, true}));
    ck_assert(generate_into("b", CHANCE, (hw_grammar_options){100, 10, 10, 3, true}));
    ck_assert(generate_into("c", CHANCE, (hw_grammar_options){100, 10, 10, 4, true}));
    ck_assert(generate_into("d", CHANCE, (hw_grammar_options){200, 10, 10, 3, false}));
    static const char *const names[] = {"train.en",        "train.fr", "train.align",   "train.en.conllu",
                                        "train.fr.conllu", "valid.en", "valid.fr",      "valid.align",
                                        "valid.fr.conllu", "test.en",  "test.fr.conllu"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[4][64];
        for (int d = 0; d < 4; d++) snprintf(path[d], sizeof path[d], "%c/%s", 'a' + d, names[i]);
        ck_assert_msg(same_files(path[0], path[1]), "%s differs", names[i]);
        ck_assert_msg(!same_files(path[0], path[2]), "%s does not depend on the seed", names[i]);
        if (names[i][0] != 't' || names[i][1] == 'e')
            ck_assert_msg(same_files(path[0], path[3]), "%s depends on the number of training pairs", names[i]);
    }
    ck_assert_msg(!scratch_read(scratch_path("d/train.align"), NULL), "train was annotated without being asked for");
}
END_TEST

/* ---- sets -------------------------------------------------------------------------------------------------------- */

static const char COMBINATIONS[] =
    HEAD "corpus: {pairs: 1500, valid: 200, test: 101}\n"
         "held_out: {between: [noun, adj], agree: gender, share: 0.2, test: 0.4}\n"
         "features: {gender: [m, f]}\n"
         "lexicon:\n"
         "  noun:\n"
         "    pos: NOUN\n"
         "    entries: [{en: n0, fr: n0, is: m}, {en: n1, fr: n1, is: f}, {en: n2, fr: n2, is: f}, {en: n3, fr: n3, "
         "is: m}]\n"
         "  adj:\n"
         "    pos: ADJ\n"
         "    entries: [{en: a0, fr: {m: a0, f: a0}}, {en: a1, fr: {m: a1, f: a1}}, {en: a2, fr: {m: a2, f: a2}}]\n"
         "  name: {pos: PROPN, syllables: [ba, be, bi, bo, bu, da, de, di, do, du], pieces: {5: 1}, joiner: '@@'}\n"
         "pinned:\n"
         "  - both: name noun{n0}:dep\n"
         "rules:\n"
         "  s:\n"
         "    - both: adj:amod noun other[free]:dep name:flat\n"
         "  other[gender]:\n"
         "    - both: adj:amod noun\n";

/* Marks the combinations "adj noun" that the lines of a file have (of one group, where groups is not NULL); crossed,
 * where not NULL: also the first adjective with the second noun, which it does not describe. */
static void collect(const char *path, const char *groups, const char *group, bool pairs[4][3], bool crossed[4][3])
{
    char *text = scratch_read(scratch_path(path), NULL), *rest = text;
    char *labels = groups ? scratch_read(scratch_path(groups), NULL) : NULL, *labels_rest = labels;
    ck_assert_ptr_nonnull(text);
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        const char *label = labels ? strsep(&labels_rest, "\n") : NULL;
        if (label && strcmp(label, group)) continue;
        if (line[0] != 'a') continue;                                                      /* the pinned one */
        pairs[line[4] - '0'][line[1] - '0'] = pairs[line[10] - '0'][line[7] - '0'] = true; /* a0 n0 a1 n1 */
        if (crossed) crossed[line[10] - '0'][line[1] - '0'] = true;
    }
    free(text);
    free(labels);
}

START_TEST(held_out_combinations_are_in_the_test_set_only)
{
    bool train[4][3] = {{false}}, crossed[4][3] = {{false}}, seen[4][3] = {{false}}, unseen[4][3] = {{false}};
    for (int seed = 1; seed <= 2; seed++) {
        ck_assert_msg(generate_into("out", COMBINATIONS, (hw_grammar_options){-1, -1, -1, seed, false}), "%s",
                      error.message);
        ck_assert_int_eq(report.unseen, 40);
        ck_assert_int_eq(lines_with("out/test.groups", "unseen"), 40);
        ck_assert_int_eq(lines_with("out/test.groups", "seen"), 61);
        collect("out/train.en", NULL, NULL, train, crossed);
        collect("out/valid.en", NULL, NULL, train, NULL);
        collect("out/test.en", "out/test.groups", "seen", seen, NULL);
        collect("out/test.en", "out/test.groups", "unseen", unseen, NULL);
    }
    int held = 0;
    for (int n = 0; n < 4; n++)
        for (int a = 0; a < 3; a++) {
            ck_assert_msg(!seen[n][a] || train[n][a], "n%d a%d is called seen", n, a);
            ck_assert_msg(crossed[n][a], "n%d a%d are kept out where they do not belong together", n, a);
            held += !train[n][a];
            ck_assert_msg(train[n][a] || unseen[n][a], "n%d a%d is nowhere", n, a);
        }
    ck_assert_int_ge(held, 1);
    ck_assert_int_le(held, 6);
}
END_TEST

START_TEST(no_source_stands_twice_and_pinned_ones_come_first)
{
    generate(COMBINATIONS);
    char *text[3], *lines[1801];
    int count = 0;
    static const char *const paths[] = {"out/train.en", "out/valid.en", "out/test.en"};
    for (int i = 0; i < 3; i++) {
        char *rest = text[i] = scratch_read(scratch_path(paths[i]), NULL);
        for (char *line; (line = strsep(&rest, "\n")) && *line;) lines[count++] = line;
    }
    ck_assert_int_eq(count, 1801);
    ck_assert_ptr_nonnull(strstr(lines[1700], " n0"));
    ck_assert_ptr_null(strstr(lines[1700], "a0"));
    qsort(lines, (size_t)count, sizeof *lines, by_text);
    for (int i = 1; i < count; i++) ck_assert_str_ne(lines[i - 1], lines[i]);
    for (int i = 0; i < 3; i++) free(text[i]);
}
END_TEST

START_TEST(lengths_and_distinct_words_are_kept)
{
    generate(HEAD "corpus: {pairs: 6, length: [2, 3]}\n"
                  "distinct: [word]\n"
                  "lexicon:\n"
                  "  word: {pos: X, entries: [{en: a, fr: a}, {en: b, fr: b}]}\n"
                  "  mark: {pos: PUNCT, en: '!', fr: '!'}\n"
                  "rules:\n"
                  "  s:\n"
                  "    - both: word\n"
                  "    - both: word other=word:dep mark:punct?0.5\n"
                  "    - both: first=s mark:punct other=mark:punct\n");
    expect_pairs("a ! ! = a ! !\n"
                 "a b ! = a b !\n"
                 "a b = a b\n"
                 "b ! ! = b ! !\n"
                 "b a ! = b a !\n"
                 "b a = b a\n");
}
END_TEST

START_TEST(words_in_a_row_are_avoided)
{
    generate(HEAD "corpus: {pairs: 11}\n"
                  "avoid: {en: [a b], fr: [c]}\n"
                  "lexicon:\n"
                  "  word: {pos: X, entries: [{en: a, fr: a}, {en: b, fr: b}, {en: ab, fr: c}, {en: d, fr: cc}]}\n"
                  "rules:\n"
                  "  s:\n"
                  "    - both: word\n"
                  "    - both: word other=word:dep\n");
    expect_pairs("a = a\na a = a a\na d = a cc\n"
                 "b = b\nb a = b a\nb b = b b\nb d = b cc\n"
                 "d = cc\nd a = cc a\nd b = cc b\nd d = cc cc\n");
}
END_TEST

START_TEST(a_source_with_two_targets_is_reported)
{
    generate(HEAD "corpus: {pairs: 2}\n"
                  "lexicon:\n"
                  "  word: {pos: X, entries: [{en: bank, fr: rive, weight: 9}, {en: bank, fr: banque, weight: 9}, {en: "
                  "cat, fr: chat}]}\n"
                  "rules:\n"
                  "  s:\n"
                  "    - both: word\n");
    ck_assert_int_ge(report.ambiguous, 1);
    ck_assert_msg(!strcmp(report.ambiguity, "bank => rive") || !strcmp(report.ambiguity, "bank => banque"), "%s",
                  report.ambiguity);
    ck_assert_int_eq(lines_with("out/train.en", "bank"), 1);
}
END_TEST

START_TEST(what_cannot_be_had_is_said)
{
    char expected[512];
    snprintf(expected, sizeof expected,
             "%s: no further sentence was found in 200000 tries; of the last one: it was there already. Ask for fewer "
             "pairs or "
             "let the grammar say more",
             scratch_path("grammar.yaml"));
    ck_assert(!generate_into("out", HEAD "corpus: {pairs: 5}\n" FEATURES WORDS NOUN_PHRASE, AS_WRITTEN));
    ck_assert_str_eq(error.message, expected);
    ck_assert(!hw_file_exists(scratch_path("out/train.en")));
    nothing_half_written("out");
    scratch_text("file", "");
    ck_assert(!generate_into("file/out", HEAD "corpus: {pairs: 4}\n" FEATURES WORDS NOUN_PHRASE, AS_WRITTEN));
    ck_assert_ptr_nonnull(strstr(error.message, "file"));
}
END_TEST

/* ---- counts ------------------------------------------------------------------------------------------------------ */

START_TEST(the_report_counts_phenomena_and_distances)
{
    hw_grammar *grammar = hw_grammar_load(scratch_text("grammar.yaml", HEAD "corpus: {pairs: 3}\n"
                                                                            "lexicon:\n"
                                                                            "  noun: {pos: NOUN, en: cat, fr: chat}\n"
                                                                            "  old: {pos: ADJ, en: old, fr: vieux}\n"
                                                                            "  open: {pos: PUNCT, en: (, fr: (}\n"
                                                                            "  close: {pos: PUNCT, en: ), fr: )}\n"
                                                                            "rules:\n"
                                                                            "  s:\n"
                                                                            "    - both: noun\n"
                                                                            "    - en: aged:amod noun\n"
                                                                            "      fr: noun aged:amod\n"
                                                                            "    - both: a=aged:amod b=aged:amod noun\n"
                                                                            "  aged:\n"
                                                                            "    - both: open:punct old close:punct\n"
                                                                            "      match: open-close\n"
                                                                            "      count: aged\n"),
                                          &error);
    ck_assert_msg(grammar != NULL, "%s", error.message);
    hw_grammar_report r;
    ck_assert(hw_grammar_generate(grammar, &AS_WRITTEN, scratch_path("out"), &r, NULL, NULL, &error));
    ck_assert_int_eq(r.phenomena, 1);
    ck_assert_str_eq(r.phenomenon[0].name, "aged");
    ck_assert_int_eq(r.phenomenon[0].times, 3);
    ck_assert_int_eq(r.phenomenon[0].sentences, 2);
    ck_assert_int_eq(r.phenomenon[0].repeated, 1);
    int found = 0;
    for (int i = 0; i < r.relations; i++) {
        const hw_grammar_relation *relation = &r.relation[i];
        if (!strcmp(relation->side, "en") && !strcmp(relation->name, "amod")) { /* +2, and +5 +2 */
            ck_assert_int_eq(relation->count, 3);
            ck_assert_int_eq(relation->commonest, 2);
            ck_assert_double_eq_tol(relation->share, 2.0 / 3, 1e-12);
            found++;
        }
        if (!strcmp(relation->side, "fr") && !strcmp(relation->name, "match )")) {
            ck_assert_int_eq(relation->count, 3);
            ck_assert_int_eq(relation->commonest, -2);
            ck_assert_double_eq_tol(relation->share, 1, 1e-12);
            found++;
        }
    }
    ck_assert_int_eq(found, 2);
    ck_assert_double_eq_tol(r.mean_length[0], (1 + 4 + 7) / 3.0, 1e-12);
    ck_assert_int_eq(r.longest[1], 7);
    hw_grammar_report_clear(&r);
    hw_grammar_free(grammar);
}
END_TEST

Suite *test_grammar(void);
Suite *test_grammar(void)
{
    Suite *suite = suite_create("grammar");
    TCase *tc = tcase_create("grammar");
    tcase_add_checked_fixture(tc, scratch_begin, scratch_end);
    tcase_add_test(tc, parts_agree_and_change_places);
    tcase_add_test(tc, agreement_crosses_phrases_but_not_free_parts);
    tcase_add_test(tc, words_of_one_side_and_chosen_words);
    tcase_add_test(tc, features_are_annotated_where_a_form_or_word_has_them);
    tcase_add_test(tc, merged_words_keep_heads_and_links);
    tcase_add_test(tc, passes_run_in_order);
    tcase_add_test(tc, forms_of_several_words_can_merge_with_others);
    tcase_add_test(tc, of_merged_words_the_one_that_hangs_outside_stands_for_all);
    tcase_add_test(tc, a_pass_does_not_apply_to_what_it_wrote);
    tcase_add_test(tc, split_words_keep_heads_and_links);
    tcase_add_test(tc, marks_stay_matched_when_words_before_them_merge_or_split);
    tcase_add_test(tc, passes_can_ask_for_features_and_relations);
    tcase_add_test(tc, names_are_spelled_alike_and_passes_leave_them_alone);
    tcase_add_test(tc, weights_and_probabilities_are_kept);
    tcase_add_test(tc, the_same_seed_gives_the_same_bytes);
    tcase_add_test(tc, held_out_combinations_are_in_the_test_set_only);
    tcase_add_test(tc, no_source_stands_twice_and_pinned_ones_come_first);
    tcase_add_test(tc, lengths_and_distinct_words_are_kept);
    tcase_add_test(tc, words_in_a_row_are_avoided);
    tcase_add_test(tc, a_source_with_two_targets_is_reported);
    tcase_add_test(tc, what_cannot_be_had_is_said);
    tcase_add_test(tc, the_report_counts_phenomena_and_distances);
    suite_add_tcase(suite, tc);
    return suite;
}
