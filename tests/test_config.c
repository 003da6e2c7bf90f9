/* YAML with its places, and the table of options: exact messages for wrong configurations, round trips. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/config.h>

#include "support_files.h"

static hw_arena *arena;

static void begin(void)
{
    scratch_begin();
    arena = scratch_arena();
}

/* ---- YAML -------------------------------------------------------------------------------------------------------- */

static hw_yaml *parse(const char *text)
{
    hw_error err;
    hw_yaml *root = hw_yaml_parse(arena, "x.yaml", text, strlen(text), &err);
    ck_assert_msg(root, "%s", err.message);
    return root;
}

START_TEST(tree_knows_its_places)
{
    hw_yaml *root = parse("\xEF\xBB\xBF# comment\na: 1\nb:\n  - x\n  - \"y\"\n  - {c: ''}\n\"d\": |\n  two\n  lines\n");
    ck_assert_int_eq(root->kind, HW_YAML_MAPPING);
    ck_assert_int_eq(root->count, 3);
    const hw_yaml *a = hw_yaml_get(root, "a"), *b = hw_yaml_get(root, "b"), *d = hw_yaml_get(root, "d");
    ck_assert_str_eq(a->text, "1");
    ck_assert_str_eq(a->file, "x.yaml");
    ck_assert(a->line == 2 && a->column == 4 && !a->quoted);
    ck_assert(b->kind == HW_YAML_SEQUENCE && b->count == 3);
    ck_assert(b->items[0]->line == 4 && b->items[0]->column == 5);
    ck_assert(b->items[1]->quoted && !strcmp(b->items[1]->text, "y"));
    const hw_yaml *c = hw_yaml_get(b->items[2], "c");
    ck_assert(c->quoted && !*c->text && c->line == 6 && c->column == 9);
    ck_assert(root->keys[2]->line == 7 && root->keys[2]->column == 1);
    ck_assert_str_eq(d->text, "two\nlines\n");
    ck_assert_ptr_null(hw_yaml_get(root, "e"));
    ck_assert_ptr_null(hw_yaml_get(b, "a"));
}
END_TEST

START_TEST(empty_files_are_empty_mappings)
{
    static const char *const texts[] = {"", "\n", "# only a comment\n", "\xEF\xBB\xBF"};
    for (int i = 0; i < 4; i++) {
        hw_yaml *root = parse(texts[i]);
        ck_assert(root->kind == HW_YAML_MAPPING && root->count == 0);
    }
}
END_TEST

START_TEST(large_lists)
{
    size_t size = 0, room = 20000 * 12;
    char *text = malloc(room);
    for (int i = 0; i < 20000; i++) size += (size_t)snprintf(text + size, room - size, "k%d: 1\n", i);
    hw_yaml *root = parse(text);
    ck_assert_int_eq(root->count, 20000);
    ck_assert_str_eq(root->keys[19999]->text, "k19999");
    ck_assert_int_eq(root->items[19999]->line, 20000);
    free(text);
}
END_TEST

static const struct {
    const char *text, *message;
} bad_yaml[] = {
    {"a: 1\n\tb: 2",
     "x.yaml:2:1: found a tab character that violates indentation while scanning a plain scalar; YAML is "
     "indented by spaces, not tabs"},
    {"a: &x 1", "x.yaml:1:4: anchors (&name) are not used here; write the value out"},
    {"a: *x", "x.yaml:1:4: aliases (*name) are not used here; write the value out"},
    {"a: !!str 1", "x.yaml:1:4: tags (!name) are not used here"},
    {"a: ! 1", "x.yaml:1:4: tags (!name) are not used here"},
    {"--- \na: 1\n---\nb: 2", "x.yaml:3:1: a second document begins here; one file holds one"},
    {"a: 1\nb: 3\n\na: 2", "x.yaml:4:1: the key a stands here a second time; the first is in line 1"},
    {"l:\n  - {c: 1, d: 2, \"c\": 3}", "x.yaml:2:18: the key c stands here a second time; the first is in line 2"},
    {"a: \xff", "x.yaml:1:4: this byte is no UTF-8 text that YAML allows (invalid leading UTF-8 octet)"},
    {"a: 1\nb: x\xc3", "x.yaml:2:5: this byte is no UTF-8 text that YAML allows (incomplete UTF-8 octet sequence)"},
    {"a: x\x01", "x.yaml:1:5: this byte is no UTF-8 text that YAML allows (control characters are not allowed)"},
    {"a: \"x\\0y\"", "x.yaml:1:4: a zero byte cannot be part of a text"},
    {"? [a]\n: b", "x.yaml:1:3: a key must be a single word, not a list or mapping"},
    {"a: b: c", "x.yaml:1:5: mapping values are not allowed in this context"},
    {"a: [1, 2", "x.yaml:2:1: did not find expected ',' or ']' while parsing a flow sequence"},
    {"a: @x", "x.yaml:1:4: found character that cannot start any token while scanning for the next token"},
    {"a: \"x", "x.yaml:1:6: found unexpected end of stream while scanning a quoted scalar"},
};

START_TEST(malformed_yaml)
{
    hw_error err = {""};
    ck_assert_ptr_null(hw_yaml_parse(arena, "x.yaml", bad_yaml[_i].text, strlen(bad_yaml[_i].text), &err));
    ck_assert_str_eq(err.message, bad_yaml[_i].message);
}
END_TEST

START_TEST(unreadable_yaml)
{
    hw_error err;
    char expected[256];
    ck_assert_ptr_null(hw_yaml_load(arena, scratch_path("missing.yaml"), &err));
    snprintf(expected, sizeof expected, "%s: cannot be read: No such file or directory", scratch_path("missing.yaml"));
    ck_assert_str_eq(err.message, expected);
    ck_assert_ptr_null(hw_yaml_load(arena, scratch_path("."), &err));

    char deep[201];
    memset(deep, '[', 200);
    deep[200] = 0;
    ck_assert_ptr_null(hw_yaml_parse(arena, "x.yaml", deep, 200, &err));
    ck_assert_str_eq(err.message, "x.yaml:1:66: lists and mappings are nested too deeply");
    const char *path = scratch_text("nul.yaml", "");
    ck_assert_ptr_nonnull(hw_yaml_load(arena, path, &err));
    path = scratch_write("nul.yaml", "a: x\0y\n", 7);
    ck_assert_ptr_null(hw_yaml_load(arena, path, &err));
}
END_TEST

static const struct {
    const char *text;
    char kind; /* i, n, b, s */
    double low, high;
    const char *message; /* NULL: it is right, and the value is: */
    double value;
    const char *string;
} scalars[] = {
    {"12", 'i', 0, 100, NULL, 12, NULL},
    {"-3", 'i', -10, 100, NULL, -3, NULL},
    {"+3", 'i', 0, 3, NULL, 3, NULL},
    {"007", 'i', 0, 100, NULL, 7, NULL},
    {"9223372036854775807", 'i', 0, INFINITY, NULL, 0x1p63, NULL},
    {"9223372036854775808", 'i', 0, INFINITY,
     "x:1:1: k: 9223372036854775808 is too large; it must be at most 9223372036854775807", 0, NULL},
    {"0", 'i', 1, 100, "x:1:1: k: 0 is out of range; it goes from 1 to 100", 0, NULL},
    {"0", 'i', 1, INFINITY, "x:1:1: k: 0 is too small; it must be at least 1", 0, NULL},
    {"1.5", 'i', 0, 100, "x:1:1: k: expected a whole number, found 1.5", 0, NULL},
    {"1e3", 'i', 0, 10000, "x:1:1: k: expected a whole number, found 1e3", 0, NULL},
    {"12x", 'i', 0, 100, "x:1:1: k: expected a whole number, found 12x", 0, NULL},
    {"+", 'i', 0, 100, "x:1:1: k: expected a whole number, found +", 0, NULL},
    {"0x10", 'i', 0, 100, "x:1:1: k: expected a whole number, found 0x10", 0, NULL},
    {"\"12\"", 'i', 0, 100, "x:1:1: k: expected a whole number, found \"12\"", 0, NULL},
    {"[12]", 'i', 0, 100, "x:1:1: k: expected a whole number, found a list", 0, NULL},
    {"{a: b}", 'i', 0, 100, "x:1:1: k: expected a whole number, found a mapping", 0, NULL},
    {"0.5", 'n', 0, 1, NULL, 0.5, NULL},
    {".5", 'n', 0, 1, NULL, 0.5, NULL},
    {"5.", 'n', 0, 10, NULL, 5, NULL},
    {"1e-9", 'n', 0, 1, NULL, 1e-9, NULL},
    {"-2.5E+3", 'n', -INFINITY, 1, NULL, -2500, NULL},
    {"1e-400", 'n', 0, 1, NULL, 0, NULL},
    {"1e400", 'n', 0, 1, "x:1:1: k: 1e400 is out of range; it goes from 0 to 1", 0, NULL},
    {"1e400", 'n', 0, INFINITY, "x:1:1: k: 1e400 is too large; it must be at most 1.79769e+308", 0, NULL},
    {"-0.1", 'n', 0, INFINITY, "x:1:1: k: -0.1 is too small; it must be at least 0", 0, NULL},
    {"NaN", 'n', 0, 1, "x:1:1: k: expected a number, found NaN", 0, NULL},
    {".nan", 'n', 0, 1, "x:1:1: k: expected a number, found .nan", 0, NULL},
    {"inf", 'n', 0, INFINITY, "x:1:1: k: expected a number, found inf", 0, NULL},
    {".inf", 'n', 0, INFINITY, "x:1:1: k: expected a number, found .inf", 0, NULL},
    {".", 'n', 0, 1, "x:1:1: k: expected a number, found .", 0, NULL},
    {"1e", 'n', 0, 1, "x:1:1: k: expected a number, found 1e", 0, NULL},
    {"0,5", 'n', 0, 1, "x:1:1: k: expected a number, found 0,5", 0, NULL},
    {"true", 'b', 0, 0, NULL, 1, NULL},
    {"false", 'b', 0, 0, NULL, 0, NULL},
    {"yes", 'b', 0, 0, "x:1:1: k: expected true or false, found yes", 0, NULL},
    {"\"true\"", 'b', 0, 0, "x:1:1: k: expected true or false, found \"true\"", 0, NULL},
    {"1", 'b', 0, 0, "x:1:1: k: expected true or false, found 1", 0, NULL},
    {"word", 's', 0, 0, NULL, 0, "word"},
    {"no", 's', 0, 0, NULL, 0, "no"},
    {"''", 's', 0, 0, NULL, 0, ""},
    {"[a]", 's', 0, 0, "x:1:1: k: expected a text, found a list", 0, NULL},
    {"---\n", 's', 0, 0, "x:2:1: k: expected a text (\"\" if it is to be empty), found nothing", 0, NULL},
    {"1234567890123456789012345678901234567890123456789012345678901234567890", 'b', 0, 0,
     "x:1:1: k: expected true or false, found 123456789012345678901234567890123456789012345678901234567890...", 0,
     NULL},
};

START_TEST(scalar)
{
    hw_error err = {""};
    const hw_yaml *node = hw_yaml_parse(arena, "x", scalars[_i].text, strlen(scalars[_i].text), &err);
    ck_assert_msg(node, "%s", err.message);
    int64_t integer = 0;
    double number = 0, low = scalars[_i].low, high = scalars[_i].high;
    bool boolean = false, ok = false;
    const char *string = NULL;
    switch (scalars[_i].kind) {
    case 'i':
        ok = hw_yaml_integer(node, "k", (int64_t)low, high < 0x1p63 ? (int64_t)high : INT64_MAX, &integer, &err);
        number = (double)integer;
        break;
    case 'n':
        ok = hw_yaml_number(node, "k", low, high, &number, &err);
        break;
    case 'b':
        ok = hw_yaml_boolean(node, "k", &boolean, &err);
        number = boolean;
        break;
    case 's':
        ok = hw_yaml_string(node, "k", &string, &err);
        break;
    }
    if (scalars[_i].message) {
        ck_assert(!ok);
        ck_assert_str_eq(err.message, scalars[_i].message);
    } else {
        ck_assert_msg(ok, "%s", err.message);
        ck_assert_double_eq(number, scalars[_i].value);
        if (scalars[_i].string) ck_assert_str_eq(string, scalars[_i].string);
    }
}
END_TEST

START_TEST(known_keys)
{
    static const char *const allowed[] = {"name", "weight"};
    hw_error err;
    ck_assert(hw_yaml_known_keys(parse("{name: 1, weight: 2}"), allowed, 2, &err));
    ck_assert(hw_yaml_known_keys(parse(""), allowed, 2, &err));
    ck_assert(!hw_yaml_known_keys(parse("name: 1\nwieght: 2"), allowed, 2, &err));
    ck_assert_str_eq(err.message, "x.yaml:2:1: unknown key wieght; did you mean weight?");
    ck_assert(!hw_yaml_known_keys(parse("zzzzzz: 2"), allowed, 2, &err));
    ck_assert_str_eq(err.message, "x.yaml:1:1: unknown key zzzzzz");
    ck_assert(!hw_yaml_known_keys(parse("- 2"), allowed, 2, &err));
    ck_assert_str_eq(err.message, "x.yaml:1:1: expected a mapping, `key: value` a line");
}
END_TEST

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *text, *set, *message; /* set: one --set, or NULL */
} bad_configs[] = {
    {"model:\n  width: 128\n  heads: 5\n", NULL, "c.yaml:3:10: model.heads: 5 does not divide model.width 128"},
    {"model:\n  width: 100\n", NULL, "c.yaml:2:10: model.heads: 8 does not divide model.width 100"},
    {"model:\n  width: 128\n", "model.heads=7", "--set: model.heads: 7 does not divide model.width 128"},
    {"model: {width: 81, heads: 3}", NULL,
     "c.yaml:1:16: model.width: 81 is odd; half of a position's numbers are sines, half cosines"},
    {"model:\n  haeds: 5\n", NULL, "c.yaml:2:3: unknown key model.haeds; did you mean model.heads?"},
    {"heads: 5\n", NULL, "c.yaml:1:1: unknown key heads; did you mean model.heads?"},
    {"training:\n  heads: 5\n", NULL, "c.yaml:2:3: unknown key training.heads; did you mean model.heads?"},
    {"modle:\n  heads: 5\n", NULL, "c.yaml:1:1: unknown key modle; did you mean model?"},
    {"zzzzzzzz: 1\n", NULL, "c.yaml:1:1: unknown key zzzzzzzz; headwise --help-config lists them"},
    {"model:\n  heads: 5\n  heads: 5\n", NULL,
     "c.yaml:3:3: the key heads stands here a second time; the first is in line 2"},
    {"model:\n  heads: 4\nmodel.heads: 5\n", NULL,
     "c.yaml:3:1: model.heads is set here a second time; the first is c.yaml:2:10"},
    {"model: [1]\n", NULL, "c.yaml:1:8: model: expected a mapping, its options below it, `key: value` a line"},
    {"model: 4\n", NULL, "c.yaml:1:8: model: expected a mapping, its options below it, `key: value` a line"},
    {"- a\n", NULL, "c.yaml:1:1: expected a mapping: sections such as `model:` with their options below them"},
    {"model:\n  heads: 0\n", NULL, "c.yaml:2:10: model.heads: 0 is out of range; it goes from 1 to 1024"},
    {"model:\n  heads: -1\n", NULL, "c.yaml:2:10: model.heads: -1 is out of range; it goes from 1 to 1024"},
    {"model:\n  heads: 4.0\n", NULL, "c.yaml:2:10: model.heads: expected a whole number, found 4.0"},
    {"model:\n  heads:\n", NULL, "c.yaml:2:9: model.heads: expected a whole number, found nothing"},
    {"model:\n  heads: [4]\n", NULL, "c.yaml:2:10: model.heads: expected a whole number, found a list"},
    {"model:\n  heads: {a: 4}\n", NULL, "c.yaml:2:10: model.heads: expected a whole number, found a mapping"},
    {"model:\n  activation: rellu\n", NULL,
     "c.yaml:2:15: model.activation: rellu is none of relu, gelu, swish; did you mean relu?"},
    {"model:\n  norm: both\n", NULL, "c.yaml:2:9: model.norm: both is none of post, pre"},
    {"model:\n  tied_embeddings: all\n", NULL,
     "c.yaml:2:20: model.tied_embeddings: all needs one vocabulary for both sides, text.shared_vocabulary: true"},
    {"model:\n  removed_heads: encoder.0.self.1\n", NULL,
     "c.yaml:2:18: model.removed_heads: expected a list, [a, b] or a line `- a` each"},
    {"model:\n  removed_heads: [encoder.0.cross.1]\n", NULL,
     "c.yaml:2:18: model.removed_heads: this model has no head encoder.0.cross.1; names are encoder.LAYER.self.HEAD, "
     "decoder.LAYER.self.HEAD and decoder.LAYER.cross.HEAD, from 0"},
    {"model:\n  removed_heads: [encoder.6.self.1]\n", NULL,
     "c.yaml:2:18: model.removed_heads: this model has no head encoder.6.self.1; names are encoder.LAYER.self.HEAD, "
     "decoder.LAYER.self.HEAD and decoder.LAYER.cross.HEAD, from 0"},
    {"model:\n  removed_heads: [encoder.1.self.08]\n", NULL,
     "c.yaml:2:18: model.removed_heads: this model has no head encoder.1.self.08; names are encoder.LAYER.self.HEAD, "
     "decoder.LAYER.self.HEAD and decoder.LAYER.cross.HEAD, from 0"},
    {"", "model.removed_heads=decoder.0.self.0,decoder.0.cross.1,decoder.0.self.0",
     "--set: model.removed_heads: decoder.0.self.0 stands there twice"},
    {"data: {source: fr}", NULL, "c.yaml:1:16: data.target: fr is the suffix of the source side too"},
    {"data: {dir: [a]}", NULL, "c.yaml:1:13: data.dir: expected a text, found a list"},
    {"data: {dir: }", NULL, "c.yaml:1:13: data.dir: expected a text (\"\" if it is to be empty), found nothing"},
    {"data: {dir: ~}", NULL, "c.yaml:1:13: data.dir: expected a text (\"\" if it is to be empty), found ~"},
    {"data: {dir: null}", NULL, "c.yaml:1:13: data.dir: expected a text (\"\" if it is to be empty), found null"},
    {"data: {dir: 'null', max_length: 1e400}", NULL, "c.yaml:1:33: data.max_length: expected a whole number, found 1e400"},
    {"text: {tokenizer: char, joiner: '@@ '}", NULL,
     "c.yaml:1:33: text.joiner: only the tokenizer word has a joiner, not char"},
    {"text: {joiner: ' '}", NULL, "c.yaml:1:16: text.joiner: \" \": it is only blank"},
    {"", "text.joiner=a b", "--set: text.joiner: \"a b\": it has a blank inside"},
    {"text: {model: a.model}", NULL,
     "c.yaml:1:15: text.model: only the tokenizer sentencepiece has it, not word"},
    {"text: {sampling: 0.1, tokenizer: char}", NULL,
     "c.yaml:1:18: text.sampling: only the tokenizer sentencepiece has it, not char"},
    {"text: {tokenizer: sentencepiece, min_count: 2}", NULL,
     "c.yaml:1:45: text.min_count: a SentencePiece model leaves no pieces out; text.max_vocabulary says how many there "
     "are"},
    {"data: {max_ratio: 0.5}", NULL,
     "c.yaml:1:19: data.max_ratio: 0.5 is below 1; no pair has a longer side that is the shorter one"},
    {"text: {shared_vocabulary: yes}", NULL, "c.yaml:1:27: text.shared_vocabulary: expected true or false, found yes"},
    {"training: {learning_rate: 1e400}", NULL,
     "c.yaml:1:27: training.learning_rate: 1e400 is out of range; it goes from 1e-12 to 1000"},
    {"training: {learning_rate: NaN}", NULL, "c.yaml:1:27: training.learning_rate: expected a number, found NaN"},
    {"training: {dropout_attention: 1}", NULL,
     "c.yaml:1:31: training.dropout_attention: 1 is out of range; it goes from 0 to 0.99"},
    {"training: {clip_norm: -1}", NULL, "c.yaml:1:23: training.clip_norm: -1 is too small; it must be at least 0"},
    {"training: {max_steps: 0}", NULL, "c.yaml:1:23: training.max_steps: 0 is too small; it must be at least 1"},
    {"training: {batch_tokens: 100, batch_sentences: 4}", NULL,
     "c.yaml:1:48: training.batch_sentences: training.batch_tokens is given too; a batch is counted in one of the two, "
     "set "
     "the other to 0"},
    {"training: {batch_tokens: 0}", NULL,
     "c.yaml:1:26: training.batch_tokens: it is 0, and so is training.batch_sentences; one must be given"},
    {"training: {ema: 0.9, average: 3}", NULL,
     "c.yaml:1:31: training.average: training.ema is given too; one average is validated and saved, set the other to 0"},
    {"training: {validate_every: 0, average: 3}", NULL,
     "c.yaml:1:40: training.average: training.average_every and training.validate_every are 0; one must say when weights "
     "are taken"},
    {"training: {average_every: 3}", NULL,
     "c.yaml:1:27: training.average_every: training.average is 0, so no weights are averaged"},
    {"training: {validate_every: 0, patience: 3}", NULL,
     "c.yaml:1:41: training.patience: it counts validations, and training.validate_every is 0: there are none"},
    {"training: {ema: 1}", NULL, "c.yaml:1:17: training.ema: 1 is out of range; it goes from 0 to 0.999999"},
    {"decoding: {n_best: 5}", NULL, "c.yaml:1:20: decoding.n_best: 5 is more than decoding.beam 1"},
    {"decoding: {beam: 0}", NULL, "c.yaml:1:18: decoding.beam: 0 is out of range; it goes from 1 to 1024"},
    {"", "model.heads", "--set: model.heads: expected key=value, such as model.heads=4"},
    {"", "=4", "--set: =4: expected key=value, such as model.heads=4"},
    {"", "model.haeds=4", "--set: unknown key model.haeds; did you mean model.heads?"},
    {"", "model.heads=four", "--set: model.heads: expected a whole number, found four"},
    {"", "model.heads=", "--set: model.heads: expected a whole number, found nothing"},
    {"", "model.activation=", "--set: model.activation: expected a text (\"\" if it is to be empty), found nothing"},
    {"", "data.dir=a\xff", "--set: data.dir: this is not valid UTF-8, which the saved configuration must be"},
};

START_TEST(bad_config)
{
    hw_error err = {""};
    hw_config *c = hw_config_parse(arena, "c.yaml", bad_configs[_i].text, strlen(bad_configs[_i].text), &err);
    bool ok =
        c && (!bad_configs[_i].set || hw_config_set(c, bad_configs[_i].set, &err)) && hw_config_check(c, NULL, &err);
    ck_assert(!ok);
    ck_assert_str_eq(err.message, bad_configs[_i].message);
}
END_TEST

static hw_config *config_of(const char *text)
{
    hw_error err;
    hw_config *c = hw_config_parse(arena, "c.yaml", text, strlen(text), &err);
    ck_assert_msg(c, "%s", err.message);
    return c;
}

static void check(hw_config *c, hw_names *warnings)
{
    hw_error err;
    ck_assert_msg(hw_config_check(c, warnings, &err), "%s", err.message);
}

START_TEST(values_arrive)
{
    hw_config *c =
        config_of("model:\n  width: 64\n  heads: 4\n  activation: swish\n  norm: pre\n  tied_embeddings: all\n"
                  "  removed_heads: [encoder.0.self.3, \"decoder.5.cross.0\"]\n"
                  "data:\ndata.dir: a b\ntext:\n  joiner: '@@ '\n  shared_vocabulary: true\n"
                  "training:\n  learning_rate: 5e-3\n  schedule: cosine\n  seed: 9007199254740993\n");
    check(c, NULL);
    ck_assert(c->model.width == 64 && c->model.heads == 4 && c->model.encoder_layers == 6);
    ck_assert(c->model.activation == HW_CONFIG_SWISH && c->model.norm == HW_NORM_PRE);
    ck_assert(c->model.tied_embeddings == HW_TIE_ALL && c->text.shared_vocabulary);
    ck_assert_int_eq(c->model.removed_heads.count, 2);
    ck_assert_str_eq(c->model.removed_heads.items[1], "decoder.5.cross.0");
    ck_assert_str_eq(c->data.dir, "a b");
    ck_assert_str_eq(c->text.joiner, "@@ ");
    ck_assert_str_eq(c->text.tokenizer, "word");
    ck_assert_double_eq(c->training.learning_rate, 0.005);
    ck_assert_int_eq(c->training.schedule, HW_SCHEDULE_COSINE);
    ck_assert_int_eq(c->training.seed, 9007199254740993);
    ck_assert_double_eq(c->training.epsilon, 1e-9);
    ck_assert_str_eq(c->file, "c.yaml");
    ck_assert_str_eq(hw_config_place(c, "model.heads"), "c.yaml:3:10");
    ck_assert_ptr_null(hw_config_place(c, "model.feed_forward"));
}
END_TEST

START_TEST(set_overrides)
{
    hw_config *c = config_of("model: {heads: 4}\ntraining: {seed: 3}\n");
    static const char *const sets[] = {"model.heads=16", "data.dir=a=b, \"c\"", "text.joiner=@@ ", "text.joiner=",
                                       "training.beta1=.8", "text.shared_vocabulary=true", "training.metric=chrf",
                                       "model.removed_heads=encoder.0.self.1,decoder.1.cross.2", "training.seed=4",
                                       "training.seed=5"};
    hw_error err;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        ck_assert_msg(hw_config_set(c, sets[i], &err), "%s", err.message);
    ck_assert_int_eq(c->model.heads, 16);
    ck_assert_str_eq(c->data.dir, "a=b, \"c\"");
    ck_assert_str_eq(c->text.joiner, "");
    ck_assert_double_eq(c->training.beta1, 0.8);
    ck_assert(c->text.shared_vocabulary);
    ck_assert_int_eq(c->training.metric, HW_METRIC_CHRF);
    ck_assert_int_eq(c->model.removed_heads.count, 2);
    ck_assert_int_eq(c->training.seed, 5);
    ck_assert_str_eq(hw_config_place(c, "model.heads"), "--set");
    ck_assert(hw_config_set(c, "model.removed_heads=[\"encoder.0.self.0\", decoder.1.self.3 ]", &err));
    ck_assert_int_eq(c->model.removed_heads.count, 2);
    ck_assert_str_eq(c->model.removed_heads.items[0], "encoder.0.self.0");
    ck_assert_str_eq(c->model.removed_heads.items[1], "decoder.1.self.3");
    ck_assert(hw_config_set(c, "model.removed_heads=[]", &err));
    ck_assert_int_eq(c->model.removed_heads.count, 0);
    ck_assert(hw_config_set(c, "model.removed_heads=", &err));
    ck_assert_int_eq(c->model.removed_heads.count, 0);
}
END_TEST

START_TEST(batch_size_in_sentences_settles_tokens)
{
    hw_config *c = config_of("training: {batch_sentences: 32}");
    check(c, NULL);
    ck_assert(c->training.batch_sentences == 32 && c->training.batch_tokens == 0);
    hw_error err;
    ck_assert(hw_config_save(c, scratch_path("c.yaml"), &err));
    hw_config *again = hw_config_load(arena, scratch_path("c.yaml"), &err);
    ck_assert_ptr_nonnull(again);
    check(again, NULL);
}
END_TEST

START_TEST(warnings_are_collected)
{
    hw_names warnings = {0};
    check(config_of(""), &warnings);
    ck_assert_int_eq(warnings.count, 0);
    check(config_of("training:\n  max_steps: 100\n"), &warnings);
    ck_assert_int_eq(warnings.count, 1);
    ck_assert_str_eq(warnings.items[0],
                     "c.yaml:2:14: training.max_steps: 100 steps are fewer than training.warmup_steps "
                     "4000, so the learning rate never reaches training.learning_rate");
    check(config_of("training:\n  schedule: noam\n"), &warnings);
    ck_assert_int_eq(warnings.count, 2);
    ck_assert_str_eq(warnings.items[1],
                     "c.yaml: training.learning_rate: with schedule noam it is a factor of about 1, not a "
                     "rate; 0.001 will hardly train");
    check(config_of("training: {max_steps: 4000}"), NULL);
    static const char *const one_head = "model:\n"
                                        "  {encoder_layers: 1, decoder_layers: 1, heads: 2,\n"
                                        "   removed_heads: [encoder.0.self.1, decoder.0.self.0%s]}\n"
                                        "training: {head_diversity: {kind: output, where: [%s]},\n"
                                        "   drop_head.rate: 0.1}\n";
    warnings = (hw_names){0};
    check(config_of(hw_arena_string(arena, one_head, "", "encoder, cross")), &warnings);
    ck_assert_int_eq(warnings.count, 0);
    check(config_of(hw_arena_string(arena, one_head, "", "encoder, decoder")), &warnings);
    ck_assert_int_eq(warnings.count, 1);
    ck_assert_str_eq(warnings.items[0],
                     "c.yaml:4:50: training.head_diversity.where: model.removed_heads leaves one head in each of these "
                     "attentions: there is nothing to diversify");
    check(config_of(hw_arena_string(arena, one_head, ", decoder.0.cross.0", "cross")), &warnings);
    ck_assert_int_eq(warnings.count, 3);
    ck_assert_ptr_nonnull(strstr(warnings.items[2], "training.drop_head.rate: model.removed_heads leaves one head in "
                                                    "each attention: there is nothing to drop"));
}
END_TEST

START_TEST(required_options)
{
    static const char *const keys[] = {"training.model_dir", "data.dir", NULL};
    hw_error err;
    hw_config *c = config_of("");
    ck_assert(!hw_config_require(c, keys, &err));
    ck_assert_str_eq(err.message, "c.yaml: training.model_dir is needed: the directory that the model is written to");
    ck_assert(hw_config_set(c, "training.model_dir=m", &err) && hw_config_set(c, "data.dir=d", &err));
    ck_assert(hw_config_require(c, keys, &err));
}
END_TEST

/* Texts and numbers of every kind come back as they were. */
START_TEST(saved_files_read_back)
{
    static const char *const texts[] = {
        "", " ", "@@ ", "\"", "\\", "a\"b\\c", "'", "# no comment", "true", "null", "~", "1e5", "- x", "a: b", "{a}",
        "line\nbreak", "tab\tand\rreturn", "\x01\x1f\x7f", "\xc2\x85\xc2\xa0", "a \xe2\x80\xa8 b\xe2\x80\xa9",
        "\xef\xbb\xbf", "\xef\xbf\xbe\xef\xbf\xbf", "\xf0\x9f\x98\x80", "\xc3\xa9t\xc3\xa9", "%", "|", ">", "&a",
        "*a", "!a", "  x  ", "\xee\x80\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf", "\xf0\x9f\xbf\xbf",
    };
    static const char *const numbers[] = {"0.1",     "1e-9",  "0.30000000000000004",
                                          "123.456", "1e-12", "0.3333333333333333"};
    hw_error err;
    const char *path = scratch_path("config.yaml");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hw_config *c = config_of("model:\n  removed_heads: [encoder.0.self.1, decoder.0.self.1]\n");
        char number[64], text[64];
        snprintf(text, sizeof text, "data.dir=%s", texts[i]);
        snprintf(number, sizeof number, "training.learning_rate=%s", numbers[i % 6]);
        ck_assert_msg(hw_config_set(c, text, &err) && hw_config_set(c, number, &err), "%s", err.message);
        ck_assert(hw_config_save(c, path, &err));
        hw_config *again = hw_config_load(arena, path, &err);
        ck_assert_msg(again, "%s", err.message);
        ck_assert_str_eq(again->data.dir, texts[i]);
        ck_assert_double_eq(again->training.learning_rate, c->training.learning_rate);
        ck_assert_int_eq(hw_config_differences(c, again, arena).count, 0);
        ck_assert_str_eq(again->model.removed_heads.items[1], "decoder.0.self.1");
    }
    for (int i = 0; hw_config_key(i); i++) { /* complete: every option stands in the file */
        ck_assert_ptr_nonnull(hw_config_place(hw_config_load(arena, path, &err), hw_config_key(i)));
    }
}
END_TEST

START_TEST(differences_name_the_keys)
{
    hw_config *a = config_of(""), *b = config_of("model: {width: 64, norm: pre}\ntraining: {max_steps: 5}");
    hw_names keys = hw_config_differences(a, b, arena);
    ck_assert_int_eq(keys.count, 3);
    ck_assert_str_eq(keys.items[0], "model.width");
    ck_assert_str_eq(keys.items[1], "model.norm");
    ck_assert_str_eq(keys.items[2], "training.max_steps");
    ck_assert_str_eq(hw_config_value(b, "model.norm", arena), "pre");
    ck_assert_str_eq(hw_config_value(b, "model.width", arena), "64");
    ck_assert_str_eq(hw_config_value(b, "data.train", arena), "\"train\"");
    ck_assert_str_eq(hw_config_value(b, "training.epsilon", arena), "1e-09");
}
END_TEST

/* The page of help is a configuration with all defaults, has every option, and fits a terminal. */
START_TEST(help_is_a_configuration)
{
    const char *path = scratch_path("help.yaml");
    FILE *f = fopen(path, "w");
    hw_config_help(f);
    fclose(f);
    hw_error err;
    hw_config *c = hw_config_load(arena, path, &err);
    ck_assert_msg(c, "%s", err.message);
    ck_assert_int_eq(hw_config_differences(c, hw_config_new(arena), arena).count, 0);
    for (int i = 0; hw_config_key(i); i++) ck_assert_ptr_nonnull(hw_config_place(c, hw_config_key(i)));
    char *text = scratch_read(path, NULL);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        ck_assert_msg(strlen(line) <= 80, "%s", line);
    free(text);
}
END_TEST

START_TEST(config_files_that_cannot_be_written)
{
    hw_error err;
    char expected[256];
    const char *path = scratch_path("no/config.yaml");
    snprintf(expected, sizeof expected, "%s: cannot be written: No such file or directory", path);
    ck_assert(!hw_config_save(hw_config_new(arena), path, &err));
    ck_assert_str_eq(err.message, expected);
}
END_TEST

Suite *test_config(void);
Suite *test_config(void)
{
    Suite *suite = suite_create("config");
    TCase *t = tcase_create("yaml");
    tcase_add_checked_fixture(t, begin, scratch_end);
    tcase_add_test(t, tree_knows_its_places);
    tcase_add_test(t, empty_files_are_empty_mappings);
    tcase_add_test(t, large_lists);
    tcase_add_loop_test(t, malformed_yaml, 0, sizeof bad_yaml / sizeof *bad_yaml);
    tcase_add_test(t, unreadable_yaml);
    tcase_add_loop_test(t, scalar, 0, sizeof scalars / sizeof *scalars);
    tcase_add_test(t, known_keys);
    suite_add_tcase(suite, t);
    t = tcase_create("options");
    tcase_add_checked_fixture(t, begin, scratch_end);
    tcase_add_loop_test(t, bad_config, 0, sizeof bad_configs / sizeof *bad_configs);
    tcase_add_test(t, values_arrive);
    tcase_add_test(t, set_overrides);
    tcase_add_test(t, batch_size_in_sentences_settles_tokens);
    tcase_add_test(t, warnings_are_collected);
    tcase_add_test(t, required_options);
    tcase_add_test(t, saved_files_read_back);
    tcase_add_test(t, differences_name_the_keys);
    tcase_add_test(t, help_is_a_configuration);
    tcase_add_test(t, config_files_that_cannot_be_written);
    suite_add_tcase(suite, t);
    return suite;
}
