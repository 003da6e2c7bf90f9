/* What a faulty grammar is told: one row a fault, with file, line, column and advice. A row's grammar is a good one
 * with one piece exchanged, so that nothing but that piece can be what is complained of. */
#include <check.h>
#include <headwise/text.h>
#include <string.h>

#include "support_files.h"

/* Line 1 is `sides`. */
static const char GOOD[] = "sides: [en, fr]\n"
                           "start: s\n"
                           "corpus: {pairs: 2, length: [1, 9]}\n"
                           "features:\n"
                           "  number: {sg: 2, pl: 1}\n"
                           "  gender: [m, f]\n"
                           "lexicon:\n"
                           "  det: {pos: DET, en: the, fr: {m.sg: le, f.sg: la, pl: les}}\n"
                           "  noun:\n"
                           "    pos: NOUN\n"
                           "    forms: {en: [sg, pl], fr: [sg, pl]}\n"
                           "    entries:\n"
                           "      - {en: [cat, cats], fr: [chat, chats], is: m}\n"
                           "  ne: {pos: ADV, fr: ne}\n"
                           "  every: {pos: DET, en: every, fr: {sg: chaque}, is: sg}\n"
                           "  name: {pos: PROPN, syllables: [ba, bo], pieces: {2: 1}, joiner: '@@'}\n"
                           "rules:\n"
                           "  s:\n"
                           "    - en: np\n"
                           "      fr: np ne:advmod\n"
                           "  np[number gender]:\n"
                           "    - both: det:det noun\n"
                           "    - both: every:det noun name:flat?0.5\n"
                           "classes: {vowel: [a, e]}\n"
                           "rewrite:\n"
                           "  fr:\n"
                           "    - {words: le, before: vowel, becomes: \"l'\"}\n"
                           "held_out: {between: [det, noun], agree: gender, share: 0, test: 0}\n";

typedef struct fault {
    const char *piece, *instead;
    const char *message; /* without the file's name */
} fault;

static const fault faults[] = {
    /* names */
    {"both: det:det", "both: dat:det", "22:13: there is no dat in lexicon or rules; did you mean det?"},
    {"fr: np ne:advmod", "fr: np nee:advmod", "20:14: there is no nee in lexicon or rules; did you mean ne?"},
    {"start: s", "start: t", "2:8: there are no rules for t; did you mean s?"},
    {"start: s", "start: noun", "2:8: noun is a word class; sentences start from a phrase of `rules:`"},
    {"  ne: {", "  n-e: {", "14:3: 'n-e' cannot be a name: use letters, digits and _ (free and else are taken)"},
    {"  np[number gender]:", "  noun:", "21:3: noun is a name already (lexicon and rules share them)"},
    {"  np[number gender]:", "  np[number genre]:", "21:13: there is no feature genre; did you mean gender?"},
    {"  np[number gender]:", "  np[number gender:",
     "21:3: 'np[number gender' cannot name a phrase: expected name or name[feature feature]"},
    {"gender: [m, f]", "gender: [m, sg]",
     "6:15: sg is a value of number already; a value's name must tell its feature"},
    {"gender: [m, f]", "gender: [m, free]",
     "6:15: 'free' cannot be a name: use letters, digits and _ (free and else are taken)"},
    {"gender: [m, f]", "gender: m",
     "6:11: features.gender: expected its values as a list [a, b], or {a: weight, b: weight}"},
    {"forms: {en: [sg, pl]", "forms: {en: [sg, plu]", "11:22: no feature has a value plu; did you mean pl?"},
    {"is: m}", "is: m f}", "13:52: f contradicts m: both are values of gender"},
    {"between: [det, noun]", "between: [det, nuon]", "28:27: the lexicon has no nuon; did you mean noun?"},
    {"agree: gender", "agree: gendre", "28:41: there is no feature gendre; did you mean gender?"},
    {"before: vowel", "before: vowels", "27:27: there is no class vowels; list its beginnings under `classes:`"},
    /* YAML and keys */
    {"start: s\n", "start: s\nstart: s\n", "3:1: the key start stands here a second time; the first is in line 2"},
    {"start: s\n", "strat: s\n", "2:1: unknown key strat; did you mean start?"},
    {"start: s\n", "", "1:1: the grammar has no `start:`"},
    {"sides: [en, fr]", "sides: [en]", "1:8: sides: expected two, source and target, as in [en, fr]"},
    {"sides: [en, fr]", "sides: [en, en]", "1:13: the two sides need different names"},
    {"sides: [en, fr]", "sides: [en, is]",
     "1:13: a side cannot be called is, as a key of grammars or a file of a corpus is; take another name, such as is_"},
    {"sides: [en, fr]", "sides: [groups, fr]",
     "1:9: a side cannot be called groups, as a key of grammars or a file of a corpus is; take another name, such as "
     "groups_"},
    {"sides: [en, fr]", "sides: [en, fr", "2:6: did not find expected ',' or ']' while parsing a flow sequence"},
    {"pairs: 2", "pairs: many", "3:17: pairs: expected a whole number, found many"},
    {"length: [1, 9]", "length: [9, 1]", "3:32: the longest length: 1 is out of range; it goes from 9 to 1000"},
    {"length: [1, 9]", "length: 9", "3:28: length: expected [shortest, longest]"},
    {"{sg: 2, pl: 1}", "{sg: 2, pl: 0}", "5:23: a weight: 0 is out of range; it goes from 1e-09 to 1e+09"},
    {"share: 0", "share: 2", "28:56: held_out.share: 2 is out of range; it goes from 0 to 1"},
    {", test: 0}", "}", "28:11: held_out: `test:` is missing"},
    {"words: le, ", "", "27:7: a final pass needs `words:` and `becomes:`, as in {words: de le, becomes: du}"},
    /* the lexicon */
    {"pos: ADV, ", "", "14:7: lexicon.ne: `pos:` is missing (NOUN, VERB ...; or {en: X, fr: Y})"},
    {"fr: [chat, chats]", "fr: [chat, chats, chat]",
     "13:31: fr has 3 forms here, and the word class declares 2 (forms: fr: [...])"},
    {"fr: [chat, chats]", "fr: {sg: chat}",
     "13:9: lexicon.noun: 'cat' has no fr form for pl; add it, or say with `is:` what it is"},
    {"is: m}\n", "is: m}\n      - {en: [dog, dogs]}\n",
     "14:9: lexicon.noun: 'dog' has no fr form, unlike the entries before it; put it into a class of its own"},
    {"is: m}\n", "is: m}\n      - {is: m}\n", "14:9: lexicon.noun: a word needs a form for en or for fr"},
    {"is: m}\n", "is: m}\n      - dog\n", "14:9: an entry: expected a mapping (name: ...) with at least one name"},
    {"f.sg: la, ", "", "8:8: lexicon.det: 'the' has no fr form for sg.f; add it, or say with `is:` what it is"},
    {"{sg: chaque}, is: sg", "{sg: chaque}",
     "15:10: lexicon.every: 'every' has no fr form for pl; add it, or say with `is:` what it is"},
    {"pieces: {2: 1}, ", "", "16:9: lexicon.name: syllables need `pieces: {how many: weight}`"},
    {"pieces: {2: 1}", "pieces: {20: 1}", "16:52: a number of pieces: 20 is out of range; it goes from 1 to 8"},
    {"classes:", "avoid: {fr: [le, [la]]}\nclasses:",
     "24:18: avoid: expected a text, found a list"},
    {"classes:", "avoid: {de: [le]}\nclasses:",
     "24:9: unknown key de"},
    {"classes:", "distinct: [noun, np]\nclasses:",
     "24:18: np is a phrase, not a word class"},
    {"classes:", "annotate: {en: nombre}\nclasses:",
     "24:16: there is no feature nombre; did you mean number?"},
    /* words that a line of text or of CoNLL-U could not hold */
    {"en: [cat, cats]", "en: [\"c\\nat\", cats]",
     "13:15: a form: a word cannot hold a line break; write it in one line"},
    {"  ne: {pos: ADV, fr: ne}", "  ne:\n    pos: ADV\n    fr: |\n      ne\n      pas\n",
     "16:9: a form: a word cannot hold a line break; write it in one line"},
    {"en: every,", "en: \"ev\\tery\",", "15:25: a form: a word cannot hold a tab; blanks separate words"},
    {"fr: ne}", "fr: \"ne\\r\"}", "14:22: a form: a word cannot hold the control character U+000D"},
    {"fr: ne}", "fr: \"n\\x7Fe\"}", "14:22: a form: a word cannot hold the control character U+007F"},
    {"fr: ne}", "fr: ' '}", "14:22: a form: a word is expected"},
    {"fr: ne}", "fr: }", "14:22: a form: a word is expected"},
    {"pos: ADV", "pos: 'AD V'", "14:13: pos: 'AD V' has a blank, but one word is expected here"},
    {"pos: ADV", "pos: ''", "14:13: pos: a word is expected"},
    {"pos: ADV", "pos: {fr: \"A\\nV\"}", "14:18: pos: a word cannot hold a line break; write it in one line"},
    {"[ba, bo]", "[ba, 'b o']", "16:38: syllables: 'b o' has a blank, but one word is expected here"},
    {"[ba, bo]", "[ba, '']", "16:38: syllables: a word is expected"},
    {"joiner: '@@'", "joiner: '@@ '", "16:67: joiner: '@@ ' has a blank, but one word is expected here"},
    {"joiner: '@@'", "joiner: \"\\t\"", "16:67: joiner: a word cannot hold a tab; blanks separate words"},
    {"words: le", "words: \"l\\ne\"", "27:15: words: a word cannot hold a line break; write it in one line"},
    {"becomes: \"l'\"", "becomes: [\"l'\", '']", "27:50: becomes: a word is expected"},
    {"becomes: \"l'\"", "becomes: [\"l' e\"]", "27:44: becomes: 'l' e' has a blank, but one word is expected here"},
    {"[a, e]", "[a, 'e i']", "24:22: vowel: 'e i' has a blank, but one word is expected here"},
    {"classes:", "avoid: {fr: ['']}\nclasses:", "24:14: avoid: a word is expected"},
    {"fr: np ne:advmod", "fr: np ne:advmod\n      count: \"a\\nb\"",
     "21:14: count: a word cannot hold a line break; write it in one line"},
    /* the notation of rules */
    {"both: det:det noun\n", "both: det:det noun:\n", "22:25: mapping values are not allowed in this context"},
    {"both: det:det noun\n", "both: det noun\n", "22:17: det and noun both have no relation; only the head has none"},
    {"both: det:det noun\n", "both: det:det noun:dep\n",
     "22:13: this side has no head: one part has no relation, the others name theirs to it"},
    {"both: det:det noun\n", "both: det:det noun?0.5\n", "22:21: the head of a rule cannot be optional"},
    {"both: det:det noun\n", "both: det:det?1.5 noun\n",
     "22:21: a probability above 0 and up to 1 is expected after the ?"},
    {"both: det:det noun\n", "both: det:det noun noun:dep\n",
     "22:26: the part noun stands here twice; tell two of a kind apart as in a=noun b=noun"},
    {"both: det:det noun\n", "both: det:det noun[past]\n", "22:26: no feature has a value past"},
    {"both: det:det noun\n", "both: det:det noun[pl\n", "22:26: the ] is missing"},
    {"both: det:det noun\n", "both: det:det noun{dog}\n", "22:26: noun has no word 'dog'"},
    {"both: det:det noun\n", "both: det:det noun{cat\n", "22:26: the } is missing"},
    {"both: det:det noun\n", "both: det:det a= noun\n", "22:23: a name is expected after the ="},
    {"both: det:det noun\n", "both: det:det + noun\n", "22:21: the name of a part is expected here"},
    {"both: det:det noun\n", "both: det:det noun!\n",
     "22:25: '!' was not expected; a part is label=symbol{word}[values]:relation?0.5"},
    {"both: det:det noun\n", "both: det:det ne:dep noun\n", "22:21: ne has no form for en"},
    {"both: det:det noun\n", "both: [det, noun]\n", "22:13: expected the parts of a side, as in `det:det noun`"},
    {"both: det:det noun\n", "en: det:det noun\n", "22:7: a rule needs `en:` and `fr:`, or `both:`"},
    {"both: det:det noun\n", "{en: noun, fr: 'det[pl]:det noun'}\n", "22:7: the part det is missing on the en side"},
    {"both: det:det noun\n", "{both: noun, fr: noun}\n", "22:14: either `both:` or `en:` and `fr:`"},
    {"fr: np ne:advmod", "fr: ne", "19:7: the part np is missing on the fr side"},
    {"fr: np ne:advmod", "fr: np[pl] ne:advmod",
     "20:13: np is described on the en side; here only its place and relation"},
    {"fr: np ne:advmod", "fr: np ne[sg]:advmod", "20:17: ne has no number, so it cannot be sg"},
    {"fr: np ne:advmod", "fr: np ne:advmod\n      align: np-no", "21:17: the rule has no part no; did you mean np?"},
    {"fr: np ne:advmod", "fr: np ne:advmod\n      align: np=ne", "21:16: expected - between two labels"},
    {"fr: np ne:advmod", "fr: np ne:advmod\n      align: ne-np", "21:14: ne is not on the en side"},
    {"fr: np ne:advmod", "fr: np ne:advmod\n      is: pl", "21:11: s has no number, so it cannot be pl"},
    {"  s:\n    - en: np\n      fr: np ne:advmod\n", "  s: np\n", "18:6: s: expected a list of rules (- en: ...)"},
    /* what shows only in the whole */
    {"every:det noun", "every[pl]:det noun", "23:7: every: no word of every is pl, which the rule asks for"},
    {"both: every:det noun", "both: det[pl]:det every:det noun",
     "23:7: every: no word of every is pl, which the rule asks for"},
    {"both: every:det noun", "both: every:det noun[f]", "23:7: noun: no word of noun is f, which the rule asks for"},
    {"both: det:det noun\n", "both: det:det noun{cat}[f]\n", "22:7: noun: 'cat' cannot be what the brackets say"},
    {"en: np\n      fr: np ne:advmod\n", "both: s np:dep\n",
     "18:3: s never ends: each of its rules leads back to a phrase that never ends; give it one that leads to words"},
    {"classes:", "  more:\n    - both: noun\nclasses:", "24:3: no rule uses more; use it or remove it"},
    {"between: [det, noun], agree: gender", "between: [name, noun], agree: gender",
     "28:22: name has no gender to agree in"},
    {"between: [det, noun], agree: gender", "between: [np, noun], agree: gender",
     "28:22: np is a phrase, not a word class"},
};

static const char *exchange(const fault *f, char *out)
{
    const char *at = strstr(GOOD, f->piece);
    ck_assert_msg(at != NULL, "the good grammar has no '%s'", f->piece);
    sprintf(out, "%.*s%s%s", (int)(at - GOOD), GOOD, f->instead, at + strlen(f->piece));
    return out;
}

START_TEST(a_fault_gets_place_and_advice)
{
    const fault *f = &faults[_i];
    char text[4096];
    hw_error err;
    const char *path = scratch_text("g.yaml", exchange(f, text));
    hw_grammar *grammar = hw_grammar_load(path, &err);
    ck_assert_msg(grammar == NULL, "'%s' was let pass", f->instead);
    ck_assert_ptr_eq(strstr(err.message, path), err.message);
    ck_assert_str_eq(err.message + strlen(path) + 1, f->message);
}
END_TEST

static void expect_fault(const char *text, const char *message)
{
    hw_error err;
    const char *path = scratch_text("g.yaml", text);
    hw_grammar *grammar = hw_grammar_load(path, &err);
    hw_grammar_report report;
    const hw_grammar_options as_written = {-1, -1, -1, -1, false};
    if (grammar)
        ck_assert(!hw_grammar_generate(grammar, &as_written, scratch_path("out"), &report, NULL, NULL, &err));
    hw_grammar_free(grammar);
    ck_assert_ptr_eq(strstr(err.message, path), err.message);
    ck_assert_str_eq(err.message + strlen(path) + 1, message);
}

/* 40 values each of four features. */
START_TEST(forms_of_too_many_features)
{
    char text[4096] = "sides: [en, fr]\nstart: s\nfeatures:\n";
    for (char f = 'a'; f < 'e'; f++) {
        sprintf(text + strlen(text), "  %c: [", f);
        for (int v = 0; v < 40; v++) sprintf(text + strlen(text), "%s%c%d", v ? ", " : "", f, v);
        strcat(text, "]\n");
    }
    strcat(text, "lexicon:\n  x: {pos: X, en: x, fr: {a0.b0.c0.d0: y, else: z}}\nrules: {s: [{both: x}]}\n");
    expect_fault(text, "9:6: lexicon.x: the fr forms of 'x' speak of 4 features with 2.56e+06 combinations of values, "
                       "of which 1000000 at most are looked at; let them speak of fewer, or say with `is:` what it is");
}
END_TEST

/* Each of 40 passes doubles the words. */
START_TEST(passes_without_measure)
{
    char text[4096] = "sides: [en, fr]\nstart: s\nlexicon: {x: {pos: X, en: a, fr: b}}\nrules: {s: [{both: x}]}\n"
                      "corpus: {pairs: 1}\nrewrite:\n  en:\n";
    for (int i = 0; i < 40; i++) strcat(text, "    - {words: a, becomes: a a}\n");
    expect_fault(text, "17:7: with this final pass and those before it a sentence grew by more than 1000 words; passes "
                       "are for a few words each");
}
END_TEST

START_TEST(the_good_one_is_good)
{
    hw_error err;
    hw_grammar *grammar = hw_grammar_load(scratch_text("g.yaml", GOOD), &err);
    ck_assert_msg(grammar != NULL, "%s", err.message);
    hw_grammar_free(grammar);
    ck_assert_ptr_null(hw_grammar_load(scratch_path("none.yaml"), &err));
    ck_assert_ptr_nonnull(strstr(err.message, "none.yaml"));
}
END_TEST

Suite *test_grammar_faults(void);
Suite *test_grammar_faults(void)
{
    Suite *suite = suite_create("grammar_faults");
    TCase *tc = tcase_create("faults");
    tcase_add_checked_fixture(tc, scratch_begin, scratch_end);
    tcase_add_test(tc, the_good_one_is_good);
    tcase_add_test(tc, forms_of_too_many_features);
    tcase_add_test(tc, passes_without_measure);
    tcase_add_loop_test(tc, a_fault_gets_place_and_advice, 0, (int)(sizeof faults / sizeof *faults));
    suite_add_tcase(suite, tc);
    return suite;
}
