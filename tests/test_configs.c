/* The configurations in configs/ say what their heads claim, train --dry-run takes each of them, on made-up data under
 * the names that it expects, and ten steps of each leave a model that translates. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/config.h>

#include "support_files.h"

/* What a configuration must have, "key=value" words separated by semicolons, and what makes its trial small enough. */
static const struct {
    const char *path, *expected, *smaller;
    bool cut; /* the text comes cut, "@@ " */
} configs[] = {
    {"configs/toy_translate.yaml", "model.encoder_layers=2;model.width=64;text.joiner=\"@@ \"", "", true},
    {"configs/multi30k_tiny.yaml",
     "model.encoder_layers=4;model.decoder_layers=4;model.width=128;model.feed_forward=256;model.heads=4;"
     "model.tied_embeddings=all;model.norm=post;text.shared_vocabulary=true;text.tokenizer=word;text.joiner=\"@@ \";"
     "training.learning_rate=0.005;training.warmup_steps=2000;training.label_smoothing=0.1;training.beta2=0.98;"
     "training.schedule=inverse_sqrt;training.average=10;decoding.beam=5;data.valid=\"valid\";data.test=\"test.2016\"",
     "", true},
    {"configs/multi30k.yaml",
     "text.tokenizer=sentencepiece;text.shared_vocabulary=true;text.byte_fallback=true;data.valid=\"val\";"
     "data.test=\"test_2016_flickr\"",
     "", false},
    {"configs/translate_base.yaml",
     "model.encoder_layers=6;model.decoder_layers=6;model.width=512;model.feed_forward=2048;model.heads=8;"
     "model.activation=relu;model.norm=post;model.tied_embeddings=all;text.max_vocabulary=37000;training.schedule=noam;"
     "training.learning_rate=1;training.warmup_steps=4000;training.batch_tokens=25000;training.beta1=0.9;"
     "training.beta2=0.98;training.epsilon=1e-09;training.label_smoothing=0.1;training.dropout_residual=0.1;"
     "decoding.beam=4;decoding.length_penalty=0.6",
     "training.shards=1;model.encoder_layers=1;model.decoder_layers=1;training.average=0;training.average_every=0",
     false},
};
enum { CONFIGS = sizeof configs / sizeof *configs };

static hw_arena *arena;

static void begin(void)
{
    scratch_begin_in_memory();
    arena = scratch_arena();
}

START_TEST(values_are_as_claimed)
{
    hw_error err;
    hw_names warnings = {0};
    hw_config *c = hw_config_load(arena, configs[_i].path, &err);
    ck_assert_msg(c && hw_config_check(c, &warnings, &err), "%s", err.message);
    ck_assert_int_eq(warnings.count, 0);
    char *copy = hw_arena_string(arena, "%s", configs[_i].expected), *place;
    for (char *word = strtok_r(copy, ";", &place); word; word = strtok_r(NULL, ";", &place)) {
        char *equals = strchr(word, '=');
        *equals = 0;
        ck_assert_msg(!strcmp(hw_config_value(c, word, arena), equals + 1), "%s is %s", word,
                      hw_config_value(c, word, arena));
    }
}
END_TEST

static void write_side(const char *prefix, const char *suffix, int lines, bool cut)
{
    hw_random random = hw_random_new(1, (uint64_t)strlen(prefix) + (uint64_t)*suffix);
    const char *text = "";
    for (int i = 0; i < lines; i++) {
        for (int k = 0; k < 5; k++)
            text = hw_arena_string(arena, "%s%sw%s%d", text, k ? " " : "", cut && k == 1 ? "@@ " : "",
                                   (int)hw_random_below(&random, 30));
        text = hw_arena_string(arena, "%s\n", text);
    }
    scratch_text(hw_arena_string(arena, "%s.%s", prefix, suffix), text);
}

/* Words of the command line, with --set before each of those separated by semicolons. */
static int set_words(const char **words, int count, const char *settings)
{
    char *copy = hw_arena_string(arena, "%s", settings), *place;
    for (char *word = strtok_r(copy, ";", &place); word; word = strtok_r(NULL, ";", &place)) {
        words[count++] = "--set";
        words[count++] = word;
    }
    return count;
}

/* Trains with the i-th configuration on data made for it. */
static const outcome *train(int i, const char *option, const char *settings)
{
    hw_error err;
    hw_config *c = hw_config_load(arena, configs[i].path, &err);
    ck_assert_msg(c, "%s", err.message);
    for (int side = 0; side < 2; side++) {
        write_side(c->data.train, side ? c->data.target : c->data.source, 80, configs[i].cut);
        write_side(c->data.valid, side ? c->data.target : c->data.source, 5, configs[i].cut);
    }
    const char *words[48] = {"train", configs[i].path, option};
    int count = set_words(words, 3,
                          hw_arena_string(arena, "data.dir=%s;training.model_dir=%s;training.batch_tokens=60;%s",
                                          scratch_path(""), scratch_path("m"), settings));
    set_words(words, count, configs[i].smaller);
    return run_program(words);
}

START_TEST(a_dry_run_takes_it)
{
    const outcome *o = train(_i, "--dry-run", "");
    ck_assert_msg(o->status == 0, "%s", o->err);
    ck_assert_ptr_nonnull(strstr(o->out, "data         80 of 80 pairs, "));
    ck_assert_ptr_nonnull(strstr(o->out, "(0 unknown)"));
    ck_assert_ptr_nonnull(strstr(o->out, "\nparameters   "));
    ck_assert(!hw_file_exists(scratch_path("m/config.yaml")));
}
END_TEST

START_TEST(ten_steps_leave_a_model)
{
    const outcome *o = train(_i, "--quiet", "training.max_steps=10;training.validate_every=10");
    ck_assert_msg(o->status == 0, "%s", o->err);
    char *log = scratch_read(scratch_path("m/valid.tsv"), NULL);
    ck_assert_ptr_nonnull(strstr(log, "\n10\t"));
    free(log);
    scratch_text("lines", "w1 w2\n\nw3\n");
    const outcome *t = RUN("headwise", "translate", scratch_path("m"), scratch_path("lines"), "--max-length", "3");
    ck_assert_msg(t->status == 0, "%s", t->err);
    const char *end = strchr(t->out, '\n');
    ck_assert(end && end[1] == '\n' && strchr(end + 2, '\n') && !strchr(end + 2, '\n')[1]);
}
END_TEST

Suite *test_configs(void);
Suite *test_configs(void)
{
    Suite *suite = suite_create("configs");
    TCase *c = tcase_create("configs");
    tcase_add_checked_fixture(c, begin, scratch_end);
    tcase_add_loop_test(c, values_are_as_claimed, 0, CONFIGS);
    tcase_add_loop_test(c, a_dry_run_takes_it, 0, CONFIGS);
    tcase_add_loop_test(c, ten_steps_leave_a_model, 0, CONFIGS);
    suite_add_tcase(suite, c);
    return suite;
}
