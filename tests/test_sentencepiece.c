/* The tokenizer sentencepiece against SentencePiece's own Python package: tests/fixtures/sentencepiece holds a model of
 * each type, some with ids and special pieces of their own, and what the package makes of easy and hostile lines. It was
 * made by scripts/make_sentencepiece_fixtures.py. Then training, faults of models, and subword regularization. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_text.h"

#define FIXTURES "tests/fixtures/sentencepiece/"
static const char *const models[] = {"unigram.model", "foreign.model", "char.model", "word.model"};
enum { MODELS = 4 };

static hw_arena *arena;
static json_t *fixture;

static void begin(void)
{
    json_error_t error;
    scratch_begin();
    arena = scratch_arena();
    fixture = json_load_file(FIXTURES "pieces.json", JSON_ALLOW_NUL, &error);
    ck_assert_msg(fixture, "pieces.json:%d: %s", error.line, error.text);
}

static void end(void)
{
    json_decref(fixture);
    scratch_end();
}

static hw_tokenizer *load(const char *path)
{
    hw_error err;
    hw_tokenizer *t = hw_tokenizer_new(&(hw_tokenizer_options){.name = "sentencepiece", .model = path}, &err);
    ck_assert_msg(t, "%s", err.message);
    return t;
}

/* The pieces with a blank between are this text. */
static void check_pieces(const hw_tokens *tokens, const json_t *expected)
{
    const char *text = json_string_value(expected);
    size_t at = 0, size = json_string_length(expected);
    for (int64_t i = 0; i < tokens->count; i++) {
        const hw_token *token = &tokens->items[i];
        ck_assert_uint_le(at + token->bytes, size);
        ck_assert_msg(!memcmp(text + at, token->text, token->bytes), "%s: %.*s", text, (int)token->bytes, token->text);
        at += token->bytes + 1;
    }
    ck_assert_uint_eq(at, tokens->count ? size + 1 : size);
}

/* ---- as the package ---------------------------------------------------------------------------------------------- */

START_TEST(lines_are_cut_and_joined_as_the_package_does)
{
    hw_tokenizer *t = load(hw_arena_string(arena, FIXTURES "%s", models[_i]));
    const hw_vocabulary *v = hw_tokenizer_vocabulary(t, arena);
    const json_t *cases = json_object_get(fixture, models[_i]);
    ck_assert_uint_gt(json_array_size(cases), 60);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *row = json_array_get(cases, i), *line = json_array_get(row, 0), *text = json_array_get(row, 2);
        hw_tokens tokens = hw_tokens_new(arena);
        hw_tokenizer_encode(t, v, json_string_value(line), json_string_length(line), &tokens);
        check_pieces(&tokens, json_array_get(row, 1));
        size_t bytes;
        const char *decoded = hw_tokenizer_decode(t, arena, tokens.items, tokens.count, &bytes);
        ck_assert_uint_eq(bytes, json_string_length(text));
        ck_assert_mem_eq(decoded, json_string_value(text), bytes + 1);
    }
    hw_tokenizer_free(t);
}
END_TEST

/* Ids are places in the vocabulary, whatever the model's own are. */
START_TEST(ids_are_those_of_the_vocabulary)
{
    hw_tokenizer *t = load(hw_arena_string(arena, FIXTURES "%s", models[_i]));
    const hw_vocabulary *v = hw_tokenizer_vocabulary(t, arena);
    static const char *const specials[] = {"<unk>", "<s>", "</s>"};
    for (int i = 0; i < HW_SPECIALS; i++) ck_assert_str_eq(hw_vocabulary_token(v, i, NULL), specials[i]);
    const json_t *cases = json_object_get(fixture, models[_i]);
    int64_t unknown = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *line = json_array_get(json_array_get(cases, i), 0);
        hw_tokens tokens = hw_tokens_new(arena);
        hw_tokenizer_encode(t, v, json_string_value(line), json_string_length(line), &tokens);
        for (int64_t k = 0; k < tokens.count; k++) {
            const hw_token *token = &tokens.items[k];
            unknown += token->id == HW_UNKNOWN;
            ck_assert_int_eq(token->id, hw_vocabulary_find(v, token->text, token->bytes));
            ck_assert(token->id == HW_UNKNOWN || token->id >= HW_SPECIALS);
        }
    }
    ck_assert_int_eq(unknown == 0, _i == 0); /* byte fallback */
    hw_tokenizer_free(t);
}
END_TEST

START_TEST(special_pieces_stay_out_of_the_vocabulary)
{
    hw_tokenizer *t = load(FIXTURES "foreign.model");
    const hw_vocabulary *v = hw_tokenizer_vocabulary(t, arena);
    ck_assert_int_eq(hw_vocabulary_size(v), 200 - 5 + HW_SPECIALS); /* <pad> <begin> <nix> </s> <fr> went */
    static const char *const out[] = {"<pad>", "<begin>", "<nix>", "<fr>"};
    for (int i = 0; i < 4; i++) ck_assert_int_eq(hw_vocabulary_find(v, out[i], strlen(out[i])), HW_UNKNOWN);
    ck_assert_int_ne(hw_vocabulary_find(v, "<mask>", 6), HW_UNKNOWN);
    hw_tokenizer_free(t);
}
END_TEST

/* References are read as they stand, not as the model would normalise them. */
START_TEST(files_hold_what_readers_write)
{
    hw_tokenizer *t = load(FIXTURES "unigram.model");
    static const char line[] = "  ba\xC2\xA0 bo \xEF\xAC\x81\t";
    size_t length;
    ck_assert_str_eq(hw_tokenizer_detokenize(t, arena, line, sizeof line - 1, &length), line);
    ck_assert_uint_eq(length, sizeof line - 1);
    const hw_vocabulary *v = hw_tokenizer_vocabulary(t, arena);
    const int32_t ids[] = {HW_BEGIN,
                           hw_vocabulary_find(v,
                                              "\xE2\x96\x81"
                                              "ba",
                                              5),
                           HW_UNKNOWN, HW_END};
    ck_assert_str_eq(hw_tokenizer_decode_ids(t, v, arena, ids, 4, NULL), "ba \xE2\x81\x87 ");
    hw_tokenizer_free(t);
    /* So does a model with another name for what is unknown. */
    t = load(FIXTURES "foreign.model");
    v = hw_tokenizer_vocabulary(t, arena);
    ck_assert_str_eq(hw_tokenizer_decode_ids(t, v, arena, ids + 2, 2, NULL), " \xE2\x81\x87 ");
    hw_tokenizer_free(t);
}
END_TEST

/* ---- faults ------------------------------------------------------------------------------------------------------ */

START_TEST(what_is_no_model_is_refused)
{
    hw_error err;
    size_t size;
    char *good = scratch_read(FIXTURES "foreign.model", &size);
    const struct {
        const char *path, *reason;
    } wrong[] = {
        {scratch_text("none", ""), "unk is not defined."},
        {scratch_text("text", "this is some text, no model\n"), "the bytes are none"},
        {scratch_write("short", good, size / 2), "the bytes are none"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hw_tokenizer_options o = {.name = "sentencepiece", .model = wrong[i].path};
        ck_assert_ptr_null(hw_tokenizer_new(&o, &err));
        ck_assert_str_eq(err.message, hw_arena_string(arena, "%s: it is no SentencePiece model (%s)", wrong[i].path,
                                                      wrong[i].reason));
    }
    free(good);
    const char *path = scratch_path("missing");
    ck_assert_ptr_null(hw_tokenizer_new(&(hw_tokenizer_options){.name = "sentencepiece", .model = path}, &err));
    ck_assert_str_eq(err.message, hw_arena_string(arena, "%s: cannot be read: No such file or directory", path));
    ck_assert_ptr_null(hw_tokenizer_new(&(hw_tokenizer_options){.name = "sentencepiece"}, &err));
    ck_assert_str_eq(err.message, "tokenizer sentencepiece needs a model, a file such as shared.model");
    ck_assert_ptr_null(hw_tokenizer_new(&(hw_tokenizer_options){.name = "word", .model = "a"}, &err));
    ck_assert_str_eq(err.message, "a: tokenizer word has no model");
    ck_assert_ptr_null(
        hw_tokenizer_new(&(hw_tokenizer_options){.name = "sentencepiece", .model = path, .joiner = "@@"}, &err));
    ck_assert_str_eq(err.message, "joiner \"@@\" of tokenizer sentencepiece: this tokenizer has none");
}
END_TEST

START_TEST(a_vocabulary_belongs_to_its_model)
{
    hw_error err;
    hw_tokenizer *t = load(FIXTURES "foreign.model");
    const hw_vocabulary *v = hw_tokenizer_vocabulary(t, arena);
    const char *path = scratch_path("v");
    ck_assert(hw_vocabulary_save(v, path, &err));
    ck_assert(hw_tokenizer_fits(t, hw_vocabulary_load(arena, path, &err), "m", "v", &err));
    ck_assert(!hw_tokenizer_fits(t, vocabulary_of(arena, "a b"), "x.model", "x.vocab", &err));
    ck_assert_str_eq(err.message,
                     "x.vocab has 5 tokens, but the model x.model has 198, special tokens included; they do "
                     "not belong together");
    char *text = scratch_read(path, NULL), *mask = strstr(text, "<mask>");
    mask[1] = 'M';
    ck_assert(
        !hw_tokenizer_fits(t, hw_vocabulary_load(arena, scratch_text("w", text), &err), "x.model", "x.vocab", &err));
    ck_assert_str_eq(err.message,
                     "x.vocab does not have the piece \"<mask>\" of the model x.model; they do not belong together");
    free(text);
    t = (hw_tokenizer_free(t), tokenizer_of("word", NULL));
    ck_assert(hw_tokenizer_fits(t, v, "m", "v", &err) && !hw_tokenizer_has_model(t));
    ck_assert_ptr_null(hw_tokenizer_vocabulary(t, arena));
    hw_tokenizer_free(t);
}
END_TEST

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* Sentences of made-up words, `lines` of them, into a file. */
static const char *made_up(const char *name, int lines, uint64_t seed)
{
    static const char *const syllables[] = {"ba", "bo", "ki", "lo", "mu", "ne", "pa", "ri", "so", "tu", "ve", "za"};
    hw_random random = hw_random_new(seed, 1);
    char *text = hw_arena_calloc(arena, (size_t)lines, 64), *to = text;
    for (int i = 0; i < lines; i++) {
        for (int k = 0; k < 6; k++) {
            int first = (int)hw_random_below(&random, 12);
            to += sprintf(to, "%s%s%s", k ? " " : "", syllables[first], syllables[(first + i % 4) % 12]);
        }
        *to++ = '\n';
    }
    return scratch_text(name, text);
}

static const hw_subword_options plain = {
    .size = 400, .coverage = 1, .byte_fallback = true, .normalization = "nmt_nfkc"};

static hw_tokenizer *train(const hw_subword_options *o, const char *const *paths, int count)
{
    hw_error err;
    hw_tokenizer *t = hw_tokenizer_train(o, count, paths, &err);
    ck_assert_msg(t, "%s", err.message);
    return t;
}

static const char *ids_of(const hw_tokenizer *t, const hw_vocabulary *v, const char *line)
{
    hw_tokens tokens = hw_tokens_new(arena);
    hw_tokenizer_encode(t, v, line, strlen(line), &tokens);
    const char *text = "";
    for (int64_t i = 0; i < tokens.count; i++) text = hw_arena_string(arena, "%s %d", text, tokens.items[i].id);
    return text;
}

START_TEST(the_same_text_gives_the_same_model)
{
    hw_subword_options o = plain;
    o.bpe = _i == 1;
    const char *const files[] = {made_up("a", 300, 1), made_up("b", 300, 2)};
    char *bytes[2];
    size_t sizes[2];
    hw_error err;
    for (int k = 0; k < 2; k++) {
        hw_threads_set(1 + 2 * k);
        hw_tokenizer *t = train(&o, files, 2);
        const hw_vocabulary *v = hw_tokenizer_vocabulary(t, arena);
        ck_assert_int_le(hw_vocabulary_size(v), 400);
        ck_assert_int_gt(hw_vocabulary_size(v), HW_SPECIALS + 256 + 20);
        const char *path = scratch_path(k ? "2.model" : "1.model");
        ck_assert(hw_tokenizer_save(t, path, &err));
        bytes[k] = scratch_read(path, &sizes[k]);
        hw_tokenizer *read = load(path);
        ck_assert_str_eq(ids_of(t, v, "baba \xC3\xA9t\xF0\x9F\x98\x80"),
                         ids_of(read, v, "baba \xC3\xA9t\xF0\x9F\x98\x80"));
        ck_assert(hw_tokenizer_fits(read, v, "m", "v", &err));
        hw_tokenizer_free(t);
        hw_tokenizer_free(read);
    }
    ck_assert_uint_eq(sizes[0], sizes[1]);
    ck_assert_mem_eq(bytes[0], bytes[1], sizes[0]);
    ck_assert_ptr_null(strstr(bytes[0], "/")); /* no path of this machine; a later 0 byte ends the search */
    free(bytes[0]);
    free(bytes[1]);
}
END_TEST

/* With identity every line comes back to the byte, whatever it is made of; but for U+2581, which is a blank. */
START_TEST(nothing_is_unknown_and_nothing_lost)
{
    hw_subword_options o = plain;
    o.bpe = _i == 1;
    o.normalization = "identity";
    const char *const files[] = {made_up("a", 300, 1)};
    hw_tokenizer *t = train(&o, files, 1);
    const hw_vocabulary *v = hw_tokenizer_vocabulary(t, arena);
    const json_t *cases = json_object_get(fixture, "unigram.model");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *line = json_array_get(json_array_get(cases, i), 0);
        if (strstr(json_string_value(line), "\xE2\x96\x81")) continue;
        hw_tokens tokens = hw_tokens_new(arena);
        hw_tokenizer_encode(t, v, json_string_value(line), json_string_length(line), &tokens);
        int32_t *ids = hw_arena_calloc(arena, (size_t)tokens.count, sizeof *ids);
        for (int64_t k = 0; k < tokens.count; k++) ck_assert_int_ge(ids[k] = tokens.items[k].id, HW_SPECIALS);
        size_t bytes;
        const char *text = hw_tokenizer_decode_ids(t, v, arena, ids, tokens.count, &bytes);
        ck_assert_uint_eq(bytes, json_string_length(line));
        ck_assert_mem_eq(text, json_string_value(line), bytes);
    }
    hw_tokenizer_free(t);
}
END_TEST

START_TEST(options_of_training_count)
{
    const char *const files[] = {made_up("a", 300, 1)};
    hw_subword_options o = plain;
    o.byte_fallback = false;
    o.size = 60;
    hw_tokenizer *t = train(&o, files, 1);
    const hw_vocabulary *v = hw_tokenizer_vocabulary(t, arena);
    ck_assert_int_le(hw_vocabulary_size(v), 60);
    ck_assert_int_eq(hw_vocabulary_find(v, "<0x41>", 6), HW_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(ids_of(t, v, "q"), " 0"));
    ck_assert_str_ne(ids_of(t, v, "BA"), ids_of(t, v, "ba"));
    hw_tokenizer_free(t);
    o.normalization = "nmt_nfkc_cf";
    t = train(&o, files, 1);
    v = hw_tokenizer_vocabulary(t, arena);
    ck_assert_str_eq(ids_of(t, v, "BA"), ids_of(t, v, "ba"));
    hw_tokenizer_free(t);
}
END_TEST

/* Of 4,000 lines the first half is of one kind and the second of another; a tenth of them still has both. Lines that no
 * model is made of do not count. */
START_TEST(some_of_the_lines_are_enough)
{
    hw_subword_options o = plain;
    o.byte_fallback = false;
    o.size = 100;
    o.lines = 400;
    char *text = hw_arena_calloc(arena, 4000, 20), *to = text;
    for (int i = 0; i < 4000; i++) to += sprintf(to, "%s\n\n", i < 2000 ? "aba cab abba" : "xyx zyx xxyx");
    const char *const files[] = {scratch_text("a", text)};
    hw_tokenizer *t = train(&o, files, 1);
    const hw_vocabulary *v = hw_tokenizer_vocabulary(t, arena);
    ck_assert_ptr_null(strstr(ids_of(t, v, "cab zyx"), " 0"));
    hw_tokenizer_free(t);
    o.lines = 1;
    t = train(&o, files, 1);
    v = hw_tokenizer_vocabulary(t, arena);
    ck_assert_ptr_nonnull(strstr(ids_of(t, v, "cab zyx"), " 0"));
    hw_tokenizer_free(t);
}
END_TEST

START_TEST(training_says_why_it_cannot)
{
    hw_error err;
    hw_subword_options o = plain;
    const char *good = made_up("good", 50, 1), *missing = scratch_path("missing");
    char *line = hw_arena_calloc(arena, 1, 6000); /* longer than any that is used */
    memset(line, 'a', 5000);
    const struct {
        const char *path;
        int64_t size;
        const char *message;
    } wrong[] = {
        {missing, 400, hw_arena_string(arena, "%s: cannot be read: No such file or directory", missing)},
        {scratch_text("blank", " \n\n\t\n"), 400, NULL},
        {scratch_text("long", line), 400, NULL},
        {scratch_text("bad", "a\nb \xFF\n"), 400,
         hw_arena_string(arena, "%s:2: byte 3 is 0xFF, which is not valid UTF-8; convert the file to UTF-8",
                         scratch_path("bad"))},
        {good, 270,
         hw_arena_string(arena,
                         "%s: 270 tokens are too few for a SentencePiece model of it: the characters, 256 bytes and "
                         "the special tokens alone are 276; ask for more, or for a lower coverage of characters",
                         good)},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *const files[] = {wrong[i].path};
        o.size = wrong[i].size;
        ck_assert_ptr_null(hw_tokenizer_train(&o, 1, files, &err));
        const char *none = hw_arena_string(arena, "%s: there is no word in it to make a vocabulary of", wrong[i].path);
        ck_assert_str_eq(err.message, wrong[i].message ? wrong[i].message : none);
    }
}
END_TEST

Suite *test_sentencepiece(void);
Suite *test_sentencepiece(void)
{
    Suite *suite = suite_create("sentencepiece");
    TCase *c = tcase_create("pieces");
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_loop_test(c, lines_are_cut_and_joined_as_the_package_does, 0, MODELS);
    tcase_add_loop_test(c, ids_are_those_of_the_vocabulary, 0, MODELS);
    tcase_add_test(c, special_pieces_stay_out_of_the_vocabulary);
    tcase_add_test(c, files_hold_what_readers_write);
    tcase_add_test(c, what_is_no_model_is_refused);
    tcase_add_test(c, a_vocabulary_belongs_to_its_model);
    suite_add_tcase(suite, c);
    c = tcase_create("training");
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_loop_test(c, the_same_text_gives_the_same_model, 0, 2);
    tcase_add_loop_test(c, nothing_is_unknown_and_nothing_lost, 0, 2);
    tcase_add_test(c, options_of_training_count);
    tcase_add_test(c, some_of_the_lines_are_enough);
    tcase_add_test(c, training_says_why_it_cannot);
    suite_add_tcase(suite, c);
    return suite;
}
