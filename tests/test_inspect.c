/* inspect from the command line: shapes and parameters of a configuration without a model, and a trained pair's
 * log-probabilities and attention, as JSON with the promised keys and as a drawing that fits a terminal. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/decode.h>

#include "cli/cli.h"
#include "support_files.h"
#include "support_model.h"

static hw_arena *arena;
static const char *model;

static void begin(void)
{
    scratch_begin();
    hw_threads_set(1); /* a child of threads that it does not have would worry the leak sanitizer */
    arena = scratch_arena();
    model = scratch_path("model");
    hw_bundle *b = tiny_bundle(arena, tiny_config(arena, ""), "the cat sat on mat bo@@ ra@@ ti",
                               "le chat assis sur tapis \xe7\x8c\xab e\xcc\x81te\xcc\x81 extraordinairement");
    save_bundle(b, model);
    hw_bundle_free(b);
}

static void ck_done(const outcome *o) { ck_assert_msg(o->status == 0, "status %d: %s", o->status, o->err); }

static void ck_has(const outcome *o, const char *text)
{
    ck_assert_msg(strstr(o->out, text) != NULL, "no \"%s\" in:\n%.2000s", text, o->out);
}

static void ck_narrow(const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        const char *line = hw_arena_string(arena, "%.*s", (int)length, text);
        ck_assert_msg(hw_cli_width(line) <= 80, "%d columns: %s", hw_cli_width(line), line);
        text += length + (text[length] == '\n');
    }
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static const char *write_config(const char *extra)
{
    return scratch_text("c.yaml", hw_arena_string(arena,
                                                  "model: {encoder_layers: 2, decoder_layers: 1, width: 64, heads: 4, "
                                                  "feed_forward: 256%s}\n",
                                                  extra));
}

START_TEST(a_configuration_shows_its_shapes)
{
    const outcome *o = RUN("headwise", "inspect", write_config(""));
    ck_done(o);
    ck_assert_ptr_nonnull(strstr(o->err, "a vocabulary of 1000 tokens is assumed"));
    ck_narrow(o->out);
    static const char *const rows[][2] = {
        {"embeddings + positions", "T x D  7 x 64"},
        {"self-attention: a head's Query", "T x K  7 x 16"},
        {"  a head's Key", "T x K  7 x 16"},
        {"  a head's Value", "T x K  7 x 16"},
        {"  scores Q K' / sqrt(K), softmax", "T x T  7 x 7"},
        {"  all heads side by side", "T x D  7 x 64"},
        {"  output projection, Add&Norm", "T x D  7 x 64"},
        {"feed-forward: inside", "T x F  7 x 256"},
        {"logits, softmax: the next token", "T x V  7 x 1000"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_has(o, rows[i][0]);
        ck_assert_ptr_nonnull(strstr(strstr(o->out, rows[i][0]), rows[i][1]));
    }
    ck_has(o, "  fed  <s>   the   cat   sat    on   the   mat\n  <s>    0  -1e9  -1e9  -1e9  -1e9  -1e9  -1e9\n");
    ck_has(o, "  mat    0     0     0     0     0     0     0\n");
    /* 4 (64 64 + 64), 64 256 + 256 + 256 64 + 64, 2 x 2 x 64 */
    ck_has(o, "encoder.1");
    ck_assert_ptr_nonnull(strstr(strstr(o->out, "encoder.1"), "16,640"));
    ck_assert_ptr_nonnull(strstr(strstr(o->out, "encoder.1"), "33,088"));
    ck_assert_ptr_nonnull(strstr(strstr(o->out, "encoder.1"), "49,984"));
}
END_TEST

START_TEST(shapes_follow_the_sentence_and_the_corpus)
{
    scratch_text("train.en", "a b c\n");
    scratch_text("train.fr", "x y\n");
    const char *config = write_config("");
    const char *data = hw_arena_string(arena, "data.dir=%s", scratch_path("."));
    const outcome *o =
        RUN("headwise", "inspect", config, "--set", data, "--source", "a b c d", "--target", "x", "--json");
    ck_done(o);
    ck_assert_str_eq(o->err, "");
    json_t *root = json_loads(o->out, 0, NULL), *parameters = json_object_get(root, "parameters"), *row;
    size_t i;
    int found = 0;
    json_array_foreach(json_object_get(root, "shapes"), i, row)
    {
        const char *letters = json_string_value(json_object_get(row, "letters"));
        const json_t *shape = json_object_get(row, "shape");
        if (strcmp(letters, "TS") && strcmp(letters, "TV")) continue;
        found++;
        ck_assert_int_eq(json_integer_value(json_array_get(shape, 0)), 2);
        ck_assert_int_eq(json_integer_value(json_array_get(shape, 1)), 5);
    }
    ck_assert_int_eq(found, 2);
    ck_assert_double_eq(json_real_value(json_array_get(json_array_get(json_object_get(root, "causal_mask"), 0), 1)),
                        -1e9);
    int64_t sum = 0;
    const char *key;
    json_object_foreach(parameters, key, row) sum += json_integer_value(row);
    ck_assert_int_eq(sum, json_integer_value(json_object_get(root, "total")));
    ck_assert_int_eq(json_integer_value(json_object_get(parameters, "encoder.0.self_attention.query.weight")), 4096);
    json_decref(root);
}
END_TEST

START_TEST(a_model_shows_its_shapes_too)
{
    const outcome *o = RUN("headwise", "inspect", model);
    ck_done(o);
    ck_has(o, "self-attention: a head's Query    T x K  7 x 8");
    ck_narrow(o->out);
}
END_TEST

/* ---- a pair ------------------------------------------------------------------------------------------------------ */

static size_t depth_size(const json_t *x, int depth)
{
    for (; depth > 0; depth--) x = json_array_get(x, 0);
    return json_array_size(x);
}

START_TEST(json_has_the_promised_keys)
{
    const outcome *o =
        RUN("headwise", "inspect", model, "--source", "the cat sat borati", "--target", "le chat nouveau", "--json");
    ck_done(o);
    json_t *root = json_loads(o->out, 0, NULL);
    ck_assert_ptr_nonnull(root);
    ck_assert_uint_eq(json_object_size(root), 4);
    const json_t *source = json_object_get(root, "source"), *target = json_object_get(root, "target");
    static const char *const tokens[2][7] = {{"the", "cat", "sat", "bo@@", "ra@@", "ti", "</s>"},
                                             {"<s>", "le", "chat", "nouveau", "</s>"}};
    static const int ids[2][7] = {{3, 4, 5, 8, 9, 10, 2}, {1, 3, 4, 0, 2}};
    for (size_t i = 0; i < 7; i++) {
        ck_assert_str_eq(json_string_value(json_array_get(json_object_get(source, "tokens"), i)), tokens[0][i]);
        ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(source, "ids"), i)), ids[0][i]);
    }
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(json_string_value(json_array_get(json_object_get(target, "tokens"), i)), tokens[1][i]);
        ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(target, "ids"), i)), ids[1][i]);
    }
    ck_assert_uint_eq(json_array_size(json_object_get(source, "tokens")), 7);
    ck_assert_uint_eq(json_array_size(json_object_get(source, "ids")), 7);
    ck_assert_uint_eq(json_array_size(json_object_get(target, "tokens")), 5);
    ck_assert_uint_eq(json_array_size(json_object_get(target, "ids")), 5);
    ck_assert_uint_eq(json_array_size(json_object_get(root, "log_probs")), 4);
    static const struct {
        const char *key;
        size_t queries, keys;
    } maps[] = {{"encoder.0.self", 7, 7},  {"encoder.1.self", 7, 7}, {"decoder.0.self", 4, 4},
                {"decoder.0.cross", 4, 7}, {"decoder.1.self", 4, 4}, {"decoder.1.cross", 4, 7}};
    const json_t *attention = json_object_get(root, "attention");
    ck_assert_uint_eq(json_object_size(attention), 6);
    for (size_t i = 0; i < 6; i++) {
        const json_t *map = json_object_get(attention, maps[i].key);
        ck_assert_uint_eq(depth_size(map, 0), 2);
        ck_assert_uint_eq(depth_size(map, 1), maps[i].queries);
        ck_assert_uint_eq(depth_size(map, 2), maps[i].keys);
    }
    /* The numbers are those that score prints. */
    const char *s = scratch_text("s", "the cat sat borati\n"), *t = scratch_text("t", "le chat nouveau\n");
    double sum = 0;
    for (size_t i = 0; i < 4; i++) sum += json_real_value(json_array_get(json_object_get(root, "log_probs"), i));
    ck_assert_double_lt(fabs(atof(RUN("headwise", "score", model, s, t)->out) - sum), 1e-6);
    json_decref(root);
}
END_TEST

/* Without a target the model translates as translate does. */
START_TEST(the_model_translates_by_itself)
{
    scratch_text("in", "the cat\n");
    const char *line = RUN("headwise", "translate", model, scratch_path("in"), "--json")->out;
    json_t *translated = json_loads(line, 0, NULL);
    json_t *root = json_loads(RUN("headwise", "inspect", model, "--source", "the cat", "--json")->out, 0, NULL);
    const json_t *best = json_array_get(json_object_get(translated, "translations"), 0);
    ck_assert(json_equal(json_object_get(best, "tokens"), json_object_get(json_object_get(root, "target"), "tokens")));
    ck_assert_uint_gt(json_array_size(json_object_get(best, "tokens")), 2);
    json_decref(translated);
    json_decref(root);
}
END_TEST

static const char *const sources[] = {
    "the cat sat on the mat",
    "",
    "a",
    "incomprehensibilities \xe7\x8c\xab\xe7\x8c\xab e\xcc\x81te\xcc\x81 \xf0\x9f\x90\x88",
    "the the the the the the the the the the the the the the the the the the the the the the the the the the the the "
    "the the the "
    "the the the the the the the the the the the the the the cat",
};
enum { SOURCES = sizeof sources / sizeof *sources };

START_TEST(the_drawing_fits_a_terminal)
{
    const outcome *o = RUN("headwise", "inspect", model, "--source", sources[_i], "--target",
                           "le chat \xe7\x8c\xab e\xcc\x81te\xcc\x81 "
                           "extraordinairement");
    ck_done(o);
    ck_narrow(o->out);
    static const char *const names[] = {"\nencoder.0.self\n", "\nencoder.1.self\n", "\ndecoder.0.self\n",
                                        "\ndecoder.1.cross\n"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) ck_has(o, names[i]);
    ck_has(o, "extraordi\xe2\x80\xa6 ");
    ck_assert_ptr_null(strchr(o->out, '\033')); /* this is no terminal */
    int masked = 0;
    for (const char *c = o->out; (c = strstr(c, " \xc2\xb7")); c++) masked++;
    ck_assert_int_eq(masked, 1 + 4 * 15); /* in the legend; 6 x 6 tokens, two layers of two heads */
}
END_TEST

START_TEST(cells_are_as_dark_as_weights)
{
    static const struct {
        double from;
        const char *cell;
    } shades[] = {{0.75, "\xe2\x96\x88\xe2\x96\x88"},
                  {0.5, "\xe2\x96\x93\xe2\x96\x93"},
                  {0.25, "\xe2\x96\x92\xe2\x96\x92"},
                  {0.05, "\xe2\x96\x91\xe2\x96\x91"},
                  {0, "  "}};
    json_t *root =
        json_loads(RUN("headwise", "inspect", model, "--source", "the", "--target", "le", "--json")->out, 0, NULL);
    const json_t *map = json_object_get(json_object_get(root, "attention"), "encoder.0.self");
    const char *row = "\n the ";
    for (size_t h = 0; h < 2; h++)
        for (size_t k = 0; k < 2; k++) {
            double w = json_real_value(json_array_get(json_array_get(json_array_get(map, h), 0), k));
            int i = 0;
            while (w < shades[i].from) i++;
            row = hw_arena_string(arena, "%s%s%s", row, h && !k ? "     " : "", shades[i].cell);
        }
    json_decref(root);
    const outcome *o = RUN("headwise", "inspect", model, "--source", "the", "--target", "le");
    ck_done(o);
    ck_has(o, "encoder.0.self\n     head 0   head 1\n       <        <\n     t /      t /\n     h s      h s\n     "
              "e >      e >\n");
    ck_has(o, row);
}
END_TEST

/* ---- faults ------------------------------------------------------------------------------------------------------ */

START_TEST(faults_are_told)
{
    const outcome *o = RUN("headwise", "inspect", scratch_path("none.yaml"));
    ck_assert_int_eq(o->status, 2);
    o = RUN("headwise", "inspect", model, "--target", "le");
    ck_assert_int_eq(o->status, 2);
    ck_assert_str_eq(o->err, "headwise: inspect: --target needs --source, the sentence that it translates\n");
    o = RUN("headwise", "inspect", model, "--source", "a\xff");
    ck_assert_int_eq(o->status, 2);
    ck_assert_str_eq(o->err, "headwise: inspect: --source: byte 2 is not valid UTF-8\n");
    o = RUN("headwise", "inspect", model, "--set", "model.width=4");
    ck_assert_int_eq(o->status, 2);
    o = RUN("headwise", "inspect", write_config(", heads: 4"));
    ck_assert_int_eq(o->status, 2);
}
END_TEST

Suite *test_inspect(void);
Suite *test_inspect(void)
{
    Suite *s = suite_create("inspect");
    TCase *c = tcase_create("inspect");
    tcase_add_checked_fixture(c, begin, scratch_end);
    tcase_add_test(c, a_configuration_shows_its_shapes);
    tcase_add_test(c, shapes_follow_the_sentence_and_the_corpus);
    tcase_add_test(c, a_model_shows_its_shapes_too);
    tcase_add_test(c, json_has_the_promised_keys);
    tcase_add_test(c, the_model_translates_by_itself);
    tcase_add_loop_test(c, the_drawing_fits_a_terminal, 0, SOURCES);
    tcase_add_test(c, cells_are_as_dark_as_weights);
    tcase_add_test(c, faults_are_told);
    suite_add_tcase(s, c);
    return s;
}
