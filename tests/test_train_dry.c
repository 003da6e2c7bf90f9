/* Layer 11: what --dry-run tells. It counts, it estimates also where a step would take minutes, and it writes nothing. */
#include <check.h>
#include <string.h>

#include "support_files.h"
#include "support_train.h"

Suite *test_train_dry(void);

static hw_arena *arena;

static void begin(void) { arena = train_begin(); }

static double number_after(const char *text, const char *word)
{
    char plain[4096], *to = plain;
    for (const char *from = text; *from && to < plain + sizeof plain - 1; from++)
        if (*from != ',' || from[1] < '0' || from[1] > '9') *to++ = *from;
    *to = 0;
    const char *at = strstr(plain, word);
    double number = -1;
    ck_assert_msg(at && sscanf(at + strlen(word), " about %lf", &number) + sscanf(at + strlen(word), " %lf", &number) > 0,
                  "no number after %s in\n%s", word, text);
    return number;
}

static const char *dry(const char *settings)
{
    hw_error err;
    hw_config *config = train_config(arena, "model", settings);
    const char *text = hw_train_dry_run(config, arena, &err);
    ck_assert_msg(text != NULL, "%s", err.message);
    ck_assert(!hw_file_exists(scratch_path("model")));
    return text;
}

START_TEST(it_counts_and_writes_nothing)
{
    const char *text = dry("");
    hw_error err;
    hw_config *config = train_config(arena, "model", "");
    hw_texts t;
    ck_assert(hw_texts_new(config, arena, &t, &err));
    hw_transformer_options o = hw_bundle_options(config, hw_vocabulary_size(t.source_vocabulary),
                                                 hw_vocabulary_size(t.target_vocabulary));
    hw_texts_free(&t);
    ck_assert_double_eq(number_after(text, "parameters"), (double)hw_transformer_size(&o, &err));
    ck_assert_double_eq(number_after(text, "steps"), (double)config->training.max_steps);
    ck_assert_double_ge(number_after(text, "time"), 0);
    ck_assert_msg(strstr(text, "40 of 40 pairs"), "%s", text);
}
END_TEST

/* A step of a large network is reckoned from two small ones; a batch is never larger than an epoch. */
START_TEST(large_steps_are_reckoned)
{
    const char *text = dry("model.width=256;model.heads=4;model.feed_forward=1024;model.encoder_layers=6;"
                           "model.decoder_layers=6;training.batch_sentences=0;training.batch_tokens=10000000;"
                           "training.max_steps=3000");
    ck_assert_double_gt(number_after(text, "time"), 0);
    ck_assert_double_lt(number_after(text, "3000 of"), 1000);
}
END_TEST

/* Of such times an order of magnitude is told; in seconds they may be more than a whole number can be. */
START_TEST(a_run_without_end_takes_long)
{
    const char *text = dry("training.max_steps=9223372036854775807");
    ck_assert_double_gt(number_after(text, "time"), 1e12);
    ck_assert_msg(strstr(text, "e+") != NULL, "%s", text);
}
END_TEST

Suite *test_train_dry(void)
{
    Suite *s = suite_create("train_dry");
    TCase *tc = tcase_create("dry run");
    tcase_add_checked_fixture(tc, begin, scratch_end);
    tcase_add_test(tc, it_counts_and_writes_nothing);
    tcase_add_test(tc, large_steps_are_reckoned);
    tcase_add_test(tc, a_run_without_end_takes_long);
    suite_add_tcase(s, tc);
    return s;
}
