/* Tokenizers and vocabularies: what is cut is put together again, what is saved is loaded again, and everything that is
 * wrong with a vocabulary file is said exactly. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_text.h"

static hw_arena *arena;

static void begin(void)
{
    scratch_begin();
    arena = scratch_arena();
}

/* ---- tokenizers -------------------------------------------------------------------------------------------------- */

static const struct {
    const char *line, *tokens, *joined; /* joined: with the joiner @@ */
} word_lines[] = {
    {"", "", ""},
    {" \t ", "", ""},
    {"the cat", "the|cat", "the cat"},
    {"  the\t\tcat  sat ", "the|cat|sat", "the cat sat"},
    {"bo@@ ra@@ ti sleeps", "bo@@|ra@@|ti|sleeps", "borati sleeps"},
    {"a bo@@", "a|bo@@", "a bo"},
    {"a @@ b", "a|@@|b", "a b"},
    {"@@a b@@c", "@@a|b@@c", "@@a b@@c"},
    {"a@@@@ b", "a@@@@|b", "a@@b"},
    {"un\xC2\xA0mot l\xE2\x80\xA8igne \xC2\x85 \f \v \r x", "un\xC2\xA0mot|l\xE2\x80\xA8igne|\xC2\x85|\f|\v|\r|x",
     "un\xC2\xA0mot l\xE2\x80\xA8igne \xC2\x85 \f \v \r x"},
};

START_TEST(word_cuts_at_blanks_only)
{
    hw_tokenizer *t = tokenizer_of("word", "@@ "), *plain = tokenizer_of("word", NULL);
    const char *line = word_lines[_i].line;
    hw_tokens tokens = hw_tokens_new(arena);
    hw_tokenizer_encode(t, NULL, line, strlen(line), &tokens);
    ck_assert_str_eq(tokens_text(&tokens), word_lines[_i].tokens);
    for (int64_t i = 0; i < tokens.count; i++) ck_assert_int_eq(tokens.items[i].id, HW_UNKNOWN);
    size_t bytes;
    const char *text = hw_tokenizer_detokenize(t, arena, line, strlen(line), &bytes);
    ck_assert_str_eq(text, word_lines[_i].joined);
    ck_assert_uint_eq(bytes, strlen(text));
    hw_tokenizer_encode(plain, NULL, line, strlen(line), &tokens);
    ck_assert_str_eq(tokens_text(&tokens), word_lines[_i].tokens);
    if (!strstr(line, "@@"))
        ck_assert_str_eq(hw_tokenizer_decode(plain, arena, tokens.items, tokens.count, NULL), text);
    hw_tokenizer_free(t);
    hw_tokenizer_free(plain);
}
END_TEST

/* The vocabulary: bo ra ti in pieces; ab ab@@ and abc@@, where the longest first piece leads nowhere; é in two bytes.
 */
static const char *const pieces = "sleeps bo@@ ra@@ ti bora@@ ab@@ abc@@ cd a@@ \xC3\xA9@@ t\xC3\xA9 x <@@ s>";

static const struct {
    const char *line, *tokens;
} cuts[] = {
    {"borati sleeps", "bora@@|ti|sleeps"},
    {"bo@@ ra@@ ti sleeps", "bo@@|ra@@|ti|sleeps"},
    {"raboti", "ra@@|bo@@|ti"},
    {"abcd", "ab@@|cd"}, /* abc@@ + d is tried first, and d is unknown */
    {"abccd", "abc@@|cd"},
    {"aab", "aab"}, /* no piece `b` ends it */
    {"ti", "ti"},
    {"bo", "bo"},   /* only bo@@ is known: no last piece */
    {"xti", "xti"}, /* x is known as a word only */
    {"\xC3\xA9t\xC3\xA9", "\xC3\xA9@@|t\xC3\xA9"},
    {"bobo@@ ti", "bo@@|bo@@|ti"}, /* a word that goes on by itself */
    {"<s>", "<@@|s>"},             /* not the special token */
};

START_TEST(unknown_words_are_cut_into_known_pieces)
{
    hw_tokenizer *t = tokenizer_of("word", "@@ ");
    const hw_vocabulary *v = vocabulary_of(arena, pieces);
    const char *line = cuts[_i].line;
    hw_tokens tokens = hw_tokens_new(arena);
    hw_tokenizer_encode(t, v, line, strlen(line), &tokens);
    ck_assert_str_eq(tokens_text(&tokens), cuts[_i].tokens);
    char *once = hw_tokenizer_decode(t, arena, tokens.items, tokens.count, NULL);
    ck_assert_str_eq(once, hw_tokenizer_detokenize(t, arena, line, strlen(line), NULL));
    for (int64_t i = 0; i < tokens.count; i++)
        ck_assert_int_eq(tokens.items[i].id, hw_vocabulary_find(v, tokens.items[i].text, tokens.items[i].bytes));
    hw_tokenizer_free(t);
}
END_TEST

START_TEST(a_word_that_cannot_be_cut_takes_no_time)
{
    /* a, aa, aaa ... are pieces, but nothing ends the word: without memory of dead ends this takes 2^200 steps. */
    char words[1024] = "", word[400];
    for (int n = 1; n <= 12; n++) {
        memset(word, 'a', (size_t)n);
        strcpy(word + n, "@@ ");
        strcat(words, word);
    }
    hw_tokenizer *t = tokenizer_of("word", "@@");
    const hw_vocabulary *v = vocabulary_of(arena, words);
    hw_tokens tokens = hw_tokens_new(arena);
    for (size_t size = 200; size < sizeof word; size += 100) { /* 300: longer than is ever cut */
        memset(word, 'a', size);
        hw_tokenizer_encode(t, v, word, size, &tokens);
        ck_assert_int_eq(tokens.count, 1);
        ck_assert_int_eq(tokens.items[0].id, HW_UNKNOWN);
        ck_assert_uint_eq(tokens.items[0].bytes, size);
    }
    hw_tokenizer_free(t);
}
END_TEST

static const char *const hard_lines[] = {
    "the cat sat",
    "  two  blanks, a\ttab and one at the end ",
    "\xE2\x96\x81 \xE2\x96\x81\xE2\x96\x81 U+2581 itself\xE2\x96\x81",
    "l\xE2\x80\xA8ine \xC2\x85 \xC2\xA0 \f \v \r",
    "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7 e\xCC\x81 \xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D `'\"# </s>",
    "",
};

START_TEST(char_gives_back_every_line)
{
    hw_tokenizer *t = tokenizer_of("char", NULL);
    const char *line = hard_lines[_i];
    hw_counts *counts = hw_counts_new(arena);
    hw_tokens tokens = hw_tokens_new(arena);
    hw_tokenizer_encode(t, NULL, line, strlen(line), &tokens);
    for (int64_t i = 0; i < tokens.count; i++) hw_counts_add(counts, tokens.items[i].text, tokens.items[i].bytes, 1);
    const hw_vocabulary *made = hw_vocabulary_build(arena, counts, &(hw_vocabulary_options){0});
    const char *path = scratch_path("char.vocab");
    hw_error err = {""};
    ck_assert_msg(hw_vocabulary_save(made, path, &err), "%s", err.message);
    const hw_vocabulary *v = hw_vocabulary_load(arena, path, &err);
    ck_assert_msg(v != NULL, "%s", err.message);
    hw_tokenizer_encode(t, v, line, strlen(line), &tokens);
    int32_t *ids = hw_arena_alloc(arena, ((size_t)tokens.count + 1) * sizeof *ids);
    for (int64_t i = 0; i < tokens.count; i++) ck_assert_int_ne(ids[i] = tokens.items[i].id, HW_UNKNOWN);
    size_t bytes;
    ck_assert_str_eq(hw_tokenizer_decode_ids(t, v, arena, ids, tokens.count, &bytes), line);
    ck_assert_uint_eq(bytes, strlen(line));
    hw_tokenizer_free(t);
}
END_TEST

START_TEST(char_cuts_code_points)
{
    hw_tokenizer *t = tokenizer_of("char", "");
    hw_tokens tokens = hw_tokens_new(arena);
    hw_tokenizer_encode(t, NULL, "\xC3\xA9 \xE2\x96\x81x", 7, &tokens);
    ck_assert_str_eq(tokens_text(&tokens), "\xC3\xA9|\xE2\x96\x81|\xE2\x96\x81\xE2\x96\x81|x");
    hw_tokenizer_encode(t, NULL, "a\0b", 3, &tokens);
    ck_assert_int_eq(tokens.count, 3);
    size_t bytes;
    const char *text = hw_tokenizer_decode(t, arena, tokens.items, tokens.count, &bytes);
    ck_assert_uint_eq(bytes, 3);
    ck_assert_mem_eq(text, "a\0b", 4);
    hw_tokenizer_free(t);
}
END_TEST

START_TEST(ids_become_text)
{
    hw_tokenizer *t = tokenizer_of("word", "@@ ");
    const hw_vocabulary *v = vocabulary_of(arena, "bo@@ ra@@ ti sleeps");
    const int32_t ids[] = {HW_BEGIN, 3, 4, 5, HW_UNKNOWN, 6, HW_END};
    ck_assert_str_eq(hw_tokenizer_decode_ids(t, v, arena, ids, 7, NULL), "borati <unk> sleeps");
    ck_assert_str_eq(hw_tokenizer_decode_ids(t, v, arena, ids, 0, NULL), "");
    hw_tokenizer_free(t);
}
END_TEST

static const struct {
    const char *name, *joiner, *message;
} wrong_tokenizers[] = {
    {"wrod", NULL, "there is no tokenizer \"wrod\"; did you mean \"word\"? (known: word, char, sentencepiece)"},
    {"japanese", NULL, "there is no tokenizer \"japanese\" (known: word, char, sentencepiece)"},
    {"char", "@@", "joiner \"@@\" of tokenizer char: this tokenizer has none"},
    {"word", "  ", "joiner \"  \" of tokenizer word: it is only blank"},
    {"word", "@ @", "joiner \"@ @\" of tokenizer word: it has a blank inside"},
    {"word", "0123456789abcdef", "joiner \"0123456789abcdef\" of tokenizer word: it is longer than 15 bytes"},
    {"word", "\xC3", "joiner \"\xC3\" of tokenizer word: it is not valid UTF-8"},
};

START_TEST(wrong_tokenizers_are_refused)
{
    hw_error err = {""};
    hw_tokenizer_options options = {.name = wrong_tokenizers[_i].name, .joiner = wrong_tokenizers[_i].joiner};
    ck_assert_ptr_null(hw_tokenizer_new(&options, &err));
    ck_assert_str_eq(err.message, wrong_tokenizers[_i].message);
}
END_TEST

/* What is behind the first tokens costs no memory but is counted. */
START_TEST(tokens_behind_the_most_are_only_counted)
{
    static const hw_tokenizer_options kinds[] = {
        {.name = "word"},
        {.name = "char"},
        {.name = "sentencepiece", .model = "tests/fixtures/sentencepiece/unigram.model"}};
    const char *line = "ba  ka zo";
    hw_error err;
    hw_tokenizer *t = hw_tokenizer_new(&kinds[_i], &err);
    hw_tokens all = hw_tokens_new(arena), some = hw_tokens_new(arena);
    hw_tokenizer_encode(t, NULL, line, strlen(line), &all);
    for (some.most = 1; some.most <= all.count; some.most++) {
        ck_assert(hw_tokenizer_encode(t, NULL, line, strlen(line), &some));
        ck_assert_int_eq(some.count, some.most);
        ck_assert_int_eq(some.unread, all.count - some.most);
        const hw_token *last = &some.items[some.count - 1], *same = &all.items[some.count - 1];
        ck_assert_mem_eq(last->text, same->text, same->bytes);
    }
    ck_assert_int_gt(some.most, 3);
    char *unknown = hw_arena_calloc(arena, 1, 40000);
    for (int i = 0; i < 10000; i++) memcpy(unknown + 4 * i, "\xE4\xB8\xAD ", 4);
    size_t used = hw_arena_used(arena);
    some.most = 10;
    hw_tokenizer_encode(t, NULL, unknown, 39999, &some);
    ck_assert_int_ge(some.unread, 9990);
    ck_assert_uint_lt(hw_arena_used(arena) - used, 4096);
    hw_tokenizer_free(t);
}
END_TEST

/* ---- vocabulary -------------------------------------------------------------------------------------------------- */

START_TEST(commonest_first_then_bytes)
{
    hw_tokenizer *t = tokenizer_of("word", NULL);
    hw_counts *counts = hw_counts_new(arena);
    hw_error err = {""};
    const char *path = scratch_text("a.txt", "b a c\nb a\n\xC3\xA9 b zz z\n <s> <s> <s> <unk> </s>\n");
    ck_assert_msg(hw_counts_add_file(counts, t, path, &err), "%s", err.message);
    ck_assert_int_eq(hw_counts_total(counts), 14);
    ck_assert_int_eq(hw_counts_distinct(counts), 9);
    ck_assert_int_eq(hw_counts_get(counts, "b", 1), 3);
    ck_assert_int_eq(hw_counts_get(counts, "q", 1), 0);
    const hw_vocabulary *v = hw_vocabulary_build(arena, counts, &(hw_vocabulary_options){0});
    static const char *const order[] = {"<unk>", "<s>", "</s>", "b", "a", "c", "z", "zz", "\xC3\xA9"};
    ck_assert_int_eq(hw_vocabulary_size(v), 9);
    for (int32_t i = 0; i < 9; i++) {
        size_t bytes;
        ck_assert_str_eq(hw_vocabulary_token(v, i, &bytes), order[i]);
        ck_assert_uint_eq(bytes, strlen(order[i]));
        ck_assert_int_eq(hw_vocabulary_find(v, order[i], bytes), i < HW_SPECIALS ? HW_UNKNOWN : i);
    }
    ck_assert_uint_eq(hw_vocabulary_longest(v), 5);
    v = hw_vocabulary_build(arena, counts, &(hw_vocabulary_options){.min_count = 2});
    ck_assert_int_eq(hw_vocabulary_size(v), 5);
    v = hw_vocabulary_build(arena, counts, &(hw_vocabulary_options){.max_size = 4});
    ck_assert_int_eq(hw_vocabulary_size(v), 4);
    ck_assert_int_eq(hw_vocabulary_find(v, "b", 1), 3);
    ck_assert_int_eq(hw_vocabulary_find(v, "a", 1), HW_UNKNOWN);
    hw_tokenizer_free(t);
}
END_TEST

START_TEST(special_tokens_in_text_are_unknown_words)
{
    hw_tokenizer *t = tokenizer_of("word", NULL);
    const hw_vocabulary *v = vocabulary_of(arena, "a b");
    hw_tokens tokens = hw_tokens_new(arena);
    hw_tokenizer_encode(t, v, "a <s> </s> <unk> b", 18, &tokens);
    ck_assert_str_eq(tokens_text(&tokens), "a|<s>|</s>|<unk>|b");
    static const int32_t ids[] = {3, 0, 0, 0, 4};
    for (int i = 0; i < 5; i++) ck_assert_int_eq(tokens.items[i].id, ids[i]);
    hw_tokenizer_free(t);
}
END_TEST

static void check_same(const hw_vocabulary *a, const hw_vocabulary *b)
{
    ck_assert_int_eq(hw_vocabulary_size(a), hw_vocabulary_size(b));
    for (int32_t i = 0; i < hw_vocabulary_size(a); i++) {
        size_t x, y;
        const char *token = hw_vocabulary_token(a, i, &x), *other = hw_vocabulary_token(b, i, &y);
        ck_assert_uint_eq(x, y);
        ck_assert_mem_eq(token, other, x + 1);
        if (i >= HW_SPECIALS) ck_assert_int_eq(hw_vocabulary_find(b, token, x), i);
    }
    ck_assert(hw_vocabulary_fingerprint(a) == hw_vocabulary_fingerprint(b));
}

START_TEST(any_token_comes_back_from_its_file)
{
    static const struct {
        const char *text;
        size_t bytes;
    } hard[] = {
        {"\xC2\xA0", 2},
        {"`", 1},
        {"'", 1},
        {"\"", 1},
        {"#", 1},
        {"# a: b", 6},
        {"\r", 1},
        {"a\r", 2},
        {"\t", 1},
        {" ", 1},
        {" a ", 3},
        {"\xE2\x80\xA8", 3},
        {"\xC2\x85", 2},
        {"\f", 1},
        {"\xEF\xBB\xBF", 3},
        {"\0", 1},
        {"a\0b", 3},
        {"\\n", 2},
        {"\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7", 11},
        {"e\xCC\x81", 3},
        {"\x7F", 1},
        {"<S>", 3},
    };
    hw_counts *counts = hw_counts_new(arena);
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) hw_counts_add(counts, hard[i].text, hard[i].bytes, 1);
    hw_random random = hw_random_new(1, 0);
    for (int i = 0; i < 3000; i++) {
        char token[8];
        size_t bytes = 1 + hw_random_below(&random, 4);
        for (size_t k = 0; k < bytes; k++) token[k] = (char)('a' + hw_random_below(&random, 26));
        hw_counts_add(counts, token, bytes, (int64_t)hw_random_below(&random, 5) + 1);
    }
    const hw_vocabulary *v = hw_vocabulary_build(arena, counts, &(hw_vocabulary_options){0});
    ck_assert_int_eq(hw_vocabulary_size(v), HW_SPECIALS + hw_counts_distinct(counts));
    hw_error err = {""};
    const char *path = scratch_path("hard.vocab");
    ck_assert_msg(hw_vocabulary_save(v, path, &err), "%s", err.message);
    const hw_vocabulary *loaded = hw_vocabulary_load(arena, path, &err);
    ck_assert_msg(loaded != NULL, "%s", err.message);
    check_same(v, loaded);
    const hw_vocabulary *other = hw_vocabulary_build(arena, counts, &(hw_vocabulary_options){.max_size = 1000});
    ck_assert(hw_vocabulary_fingerprint(v) != hw_vocabulary_fingerprint(other));
}
END_TEST

START_TEST(line_ends_of_other_systems)
{
    hw_error err = {""};
    const char *path = scratch_text("crlf.vocab", "\xEF\xBB\xBF<unk>\r\n<s>\r\n</s>\r\na\r\nb\r\n");
    const hw_vocabulary *v = hw_vocabulary_load(arena, path, &err);
    ck_assert_msg(v != NULL, "%s", err.message);
    check_same(vocabulary_of(arena, "a b"), v);
    v = hw_vocabulary_load(arena, scratch_text("last.vocab", "<unk>\n<s>\n</s>\na\nb"), &err);
    ck_assert_msg(v != NULL, "%s", err.message);
    check_same(vocabulary_of(arena, "a b"), v);
    v = hw_vocabulary_load(arena, scratch_text("none.vocab", "<unk>\n<s>\n</s>"), &err);
    ck_assert_msg(v != NULL, "%s", err.message);
    ck_assert_int_eq(hw_vocabulary_size(v), 3);
}
END_TEST

#define EXPECTED " is expected; a vocabulary file begins with the lines <unk>, <s>, </s>"
static const struct {
    const char *text, *message; /* the message after the path */
} wrong_files[] = {
    {"", ":1: the file ends where <unk>" EXPECTED},
    {"<unk>\n<s>\n", ":3: the file ends where </s>" EXPECTED},
    {"the\ncat\n", ":1: \"the\" where <unk>" EXPECTED},
    {"<unk>\n</s>\n<s>\n", ":2: \"</s>\" where <s>" EXPECTED},
    {"\n", ":1: \"\" where <unk>" EXPECTED},
    {"<unk>\n<s>\n</s>\na\n\nb\n", ":5: an empty line; a vocabulary file has a token a line"},
    {"<unk>\n<s>\n</s>\na\n\n", ":5: an empty line; a vocabulary file has a token a line"},
    {"<unk>\n<s>\n</s>\na\nb\na\n", ":6: \"a\" stands in line 4 already; a vocabulary has each token once"},
    {"<unk>\n<s>\n</s>\n<s>\n", ":4: \"<s>\" stands in line 2 already; a vocabulary has each token once"},
    {"<unk>\n<s>\n</s>\nab\xE9"
     "c\n",
     ":4: byte 3 is 0xE9, which is not valid UTF-8; convert the file to UTF-8"},
    {"<unk>\n<s>\n</s>\n\xED\xA0\x80\n", ":4: byte 1 is 0xED, which is not valid UTF-8; convert the file to UTF-8"},
};

START_TEST(wrong_vocabulary_files_are_refused)
{
    hw_error err = {""};
    const char *path = scratch_text("wrong.vocab", wrong_files[_i].text);
    ck_assert_ptr_null(hw_vocabulary_load(arena, path, &err));
    ck_assert_str_eq(err.message, hw_arena_string(arena, "%s%s", path, wrong_files[_i].message));
}
END_TEST

START_TEST(files_that_cannot_be_read)
{
    hw_error err = {""};
    const char *path = scratch_path("missing");
    ck_assert_ptr_null(hw_vocabulary_load(arena, path, &err));
    ck_assert_str_eq(err.message, hw_arena_string(arena, "%s: cannot be read: No such file or directory", path));
    hw_tokenizer *t = tokenizer_of("word", NULL);
    hw_counts *counts = hw_counts_new(arena);
    ck_assert(!hw_counts_add_file(counts, t, path, &err));
    ck_assert_str_eq(err.message, hw_arena_string(arena, "%s: cannot be read: No such file or directory", path));
    path = scratch_text("latin1", "un\n\xE9t\xE9\n");
    ck_assert(!hw_counts_add_file(counts, t, path, &err));
    ck_assert_str_eq(
        err.message,
        hw_arena_string(arena, "%s:2: byte 1 is 0xE9, which is not valid UTF-8; convert the file to UTF-8", path));
    path = hw_arena_string(arena, "%s/no/such/place", scratch_path("x"));
    ck_assert(!hw_vocabulary_save(vocabulary_of(arena, "a"), path, &err));
    ck_assert_ptr_nonnull(strstr(err.message, path));
    hw_tokenizer_free(t);
}
END_TEST

#define COUNT(table) (int)(sizeof table / sizeof *table)

Suite *test_text_tokens(void);
Suite *test_text_tokens(void)
{
    Suite *suite = suite_create("text_tokens");
    TCase *c = tcase_create("text_tokens");
    tcase_add_checked_fixture(c, begin, scratch_end);
    tcase_add_loop_test(c, word_cuts_at_blanks_only, 0, COUNT(word_lines));
    tcase_add_loop_test(c, unknown_words_are_cut_into_known_pieces, 0, COUNT(cuts));
    tcase_add_test(c, a_word_that_cannot_be_cut_takes_no_time);
    tcase_add_loop_test(c, char_gives_back_every_line, 0, COUNT(hard_lines));
    tcase_add_test(c, char_cuts_code_points);
    tcase_add_loop_test(c, tokens_behind_the_most_are_only_counted, 0, 3);
    tcase_add_test(c, ids_become_text);
    tcase_add_loop_test(c, wrong_tokenizers_are_refused, 0, COUNT(wrong_tokenizers));
    tcase_add_test(c, commonest_first_then_bytes);
    tcase_add_test(c, special_tokens_in_text_are_unknown_words);
    tcase_add_test(c, any_token_comes_back_from_its_file);
    tcase_add_test(c, line_ends_of_other_systems);
    tcase_add_loop_test(c, wrong_vocabulary_files_are_refused, 0, COUNT(wrong_files));
    tcase_add_test(c, files_that_cannot_be_read);
    suite_add_tcase(suite, c);
    return suite;
}
