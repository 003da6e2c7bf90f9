/* headwise bench, end to end: what it prints, what it counts, and what it refuses. Figures of speed are only held to be
 * there. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/bench.h"
#include "support_files.h"

/* A network of which everything is done in a moment. */
#define SMALL "--set", "model.width=16", "--set", "model.heads=2", "--set", "model.feed_forward=24"
#define BENCH(...) RUN("headwise", "bench", __VA_ARGS__)

static json_t *json_of(const outcome *o)
{
    json_error_t error;
    ck_assert_msg(o->status == 0, "%s", o->err);
    json_t *root = json_loads(o->out, 0, &error);
    ck_assert_msg(root != NULL, "%s in %s", error.text, o->out);
    return root;
}

static double number(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    ck_assert_msg(json_is_number(value), "no number %s", key);
    return json_number_value(value);
}

/* The keys that other programs rely on, and shares of time that add up. */
static void check_report(const json_t *root)
{
    ck_assert_double_gt(number(root, "target_tokens_per_s"), 0);
    ck_assert_double_gt(number(root, "roof_share"), 0);
    ck_assert_double_gt(number(root, "peak_rss_mib"), 1);
    ck_assert_double_eq(number(root, "threads"), 2);
    ck_assert_double_gt(number(json_object_get(root, "machine"), "roof_gflops_a_thread"), 0);
    ck_assert_double_eq_tol(number(root, "roof_share"),
                            number(root, "target_tokens_per_s") * number(root, "useful_flops_per_target_token") / 1e9 /
                                (2 * number(json_object_get(root, "machine"), "roof_gflops_a_thread")),
                            1e-9);
    double shares = 0;
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(root, "profile"), i, entry)
    {
        shares += number(entry, "share");
        if (json_object_get(entry, "op"))
            ck_assert_double_gt(number(entry, number(entry, "flops") > 0 ? "gflops_a_thread" : "gb_per_s"), 0);
    }
    ck_assert_uint_gt(i, 3);
    ck_assert_double_eq_tol(shares, 1, 1e-6);
}

static bool has_op(const json_t *root, const char *name)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(root, "profile"), i, entry)
    {
        const char *op = json_string_value(json_object_get(entry, "op"));
        if (op && !strcmp(op, name)) return number(entry, "forward_calls") > 0;
    }
    return false;
}

/* ---- what it does ------------------------------------------------------------------------------------------------ */

START_TEST(machine_is_told)
{
    json_t *root = json_of(BENCH("machine", "--json"));
    const json_t *machine = json_object_get(root, "machine");
    ck_assert_double_ge(number(machine, "cores"), 1);
    ck_assert_double_gt(number(machine, "roof_gflops_a_thread"), 0);
    ck_assert_double_gt(number(root, "available_mib"), 1);
    ck_assert_str_eq(json_string_value(json_object_get(machine, "kernels")), hw_kernels_get()->name);
    ck_assert_str_eq(json_string_value(json_object_get(machine, "blas_kernel")), hw_blas_kernel());
    json_decref(root);
}
END_TEST

START_TEST(training_is_measured)
{
    json_t *root = json_of(BENCH("train", "toy", "--json", "--threads", "2", "--steps", "3", "--length", "5",
                                 "--vocabulary", "50", "--batch-tokens", "60", "--shards", "2", SMALL));
    check_report(root);
    ck_assert(has_op(root, "linear") && has_op(root, "attention") && has_op(root, "cross_entropy"));
    ck_assert_double_eq(number(root, "vocabulary"), 50);
    ck_assert_double_eq(number(root, "batches"), 3);
    ck_assert_double_le(number(root, "target_tokens"), 3 * 60);
    ck_assert_double_eq(number(root, "batch_tokens"), 60);
    ck_assert_double_eq(number(root, "shards"), 2);
    ck_assert_double_eq(number(root, "micro_batch_tokens"), 64);
    ck_assert_double_eq(number(root, "skipped_batches"), 0);
    ck_assert_double_gt(number(root, "loss"), 0.5);
    ck_assert_double_lt(number(root, "loss"), 20);
    json_decref(root);
}
END_TEST

START_TEST(tables_tell_the_same)
{
    const outcome *o = BENCH("train", "toy", "--threads", "1", "--steps", "1", "--length", "5", "--vocabulary", "50",
                             "--batch-tokens", "60", SMALL);
    ck_assert_int_eq(o->status, 0);
    static const char *const words[] = {
        "machine",     "roof",  "GFLOP/s a thread", "target tokens/s", "% of the roof", "MiB at the peak",
        "allocations", "\nop ", "\nlinear ",        "\nAdam ",         "backward ms"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_msg(strstr(o->out, words[i]) != NULL, "no \"%s\" in %s", words[i], o->out);
}
END_TEST

START_TEST(decoding_is_measured)
{
    const char *source = scratch_text("s", "a b c\nc b\n\na a a a\n"),
               *target = scratch_text("t", "x y\nx\n\nx y x y z\n");
    json_t *root = json_of(BENCH("decode", "toy", "--json", "--threads", "2", "--source", source, "--target", target,
                                 "--vocabulary", "40", "--batch", "2", "--beam", "3", SMALL));
    check_report(root);
    /* Sorted by target length, batches of two: lengths 1 and 2 are forced to 2, 5 stays. The blank pair is left out. */
    ck_assert_double_eq(number(root, "target_tokens"), 2 + 2 + 5);
    ck_assert_double_eq(number(root, "source_tokens"), 3 + 4 + 5);
    ck_assert_double_eq(number(root, "vocabulary"), 40);
    ck_assert_double_eq(number(root, "batches"), 2);
    ck_assert_double_eq(number(root, "beam"), 3);
    json_decref(root);

    root = json_of(BENCH("decode", "toy", "--json", "--source", source, "--target", target, "--sentences", "1", SMALL));
    ck_assert_double_eq(number(root, "target_tokens"), 1); /* the first of every third */
    ck_assert_double_eq(number(root, "vocabulary"), HW_SPECIALS + 6);
    json_decref(root);
}
END_TEST

/* Choosing tokens is not in an op: by the output layer in bytes where only the likeliest counts and the processor has
 * what that needs, else by all logits. */
START_TEST(choosing_tokens_has_its_place)
{
    for (int beam = 1; beam <= 2; beam++) {
        const char *const beams[] = {"1", "2"};
        const outcome *o = BENCH("decode", "toy", "--beam", beams[beam - 1], "--sentences", "3", "--length", "4",
                                 "--vocabulary", "2000", SMALL);
        ck_assert_int_eq(o->status, 0);
        bool bytes = strstr(o->out, "likeliest token, output layer in bytes") != NULL;
        bool logits = strstr(o->out, "log-sum-exp and ranking of logits") != NULL;
        ck_assert(bytes != logits);
        ck_assert(beam == 1 || logits);
    }
}
END_TEST

START_TEST(latency_is_measured)
{
    const outcome *o =
        BENCH("latency", "toy", "--json", "--sentences", "3", "--length", "4", "--vocabulary", "30", SMALL);
    json_t *root = json_of(o);
    ck_assert_double_eq(number(root, "threads"), 1);
    ck_assert_double_gt(number(root, "ms_per_sentence"), 0);
    ck_assert_double_gt(number(root, "target_tokens_per_s"), 0);
    ck_assert_double_gt(number(root, "read_bandwidth"), 0);
    json_decref(root);
}
END_TEST

START_TEST(shapes_are_multiplied)
{
    json_t *root =
        json_of(BENCH("multiply", "toy", "--json", "--rows", "3", "--vocabulary", "40", "--seconds", "0.0001", SMALL));
    const json_t *shapes = json_object_get(root, "shapes");
    ck_assert_uint_eq(json_array_size(shapes), 6);
    static const double sizes[6][2] = {{48, 16}, {16, 16}, {64, 16}, {24, 16}, {16, 24}, {40, 16}};
    for (size_t i = 0; i < 6; i++) {
        const json_t *shape = json_array_get(shapes, i);
        ck_assert_double_eq(number(shape, "rows"), 3);
        ck_assert_double_eq(number(shape, "outputs"), sizes[i][0]);
        ck_assert_double_eq(number(shape, "inputs"), sizes[i][1]);
        ck_assert_double_gt(number(shape, "packed_gflops"), 0);
        ck_assert_double_gt(number(shape, "dw_gflops"), 0);
        ck_assert_double_gt(number(shape, "blas_dw_gflops"), 0);
    }
    json_decref(root);
}
END_TEST

/* The work of a pair, counted by hand: two operations a multiplication. */
START_TEST(useful_work_is_counted)
{
    hw_error err;
    hw_transformer_options o = {.encoder_layers = 1,
                                .decoder_layers = 2,
                                .width = 8,
                                .heads = 2,
                                .feed_forward = 12,
                                .source_vocabulary = 20,
                                .target_vocabulary = 20,
                                .activation = HW_RELU};
    hw_transformer *m = hw_transformer_new(&o, false, &err);
    ck_assert_msg(m != NULL, "%s", err.message);
    double n = 3, t = 4, d = 8, f = 12;
    double encoder = n * (4 * d * d + 2 * d * f) + 2 * n * n * d;
    double cross = n * 2 * d * d;
    double decoder = t * (6 * d * d + 2 * d * f) + 2 * d * (1 + 2 + 3 + 4) + 2 * t * n * d, output = t * 20 * d;
    ck_assert_double_eq_tol(hw_bench_flops(m, 3, 4, 1), 2 * (encoder + 2 * (cross + decoder) + output), 1e-6);
    ck_assert_double_eq_tol(hw_bench_flops(m, 3, 4, 5), 2 * (encoder + 2 * (cross + 5 * decoder) + 5 * output), 1e-6);
    hw_transformer_free(m);
}
END_TEST

/* ---- what it refuses --------------------------------------------------------------------------------------------- */

static const struct {
    const char *words[8];
    int status;
    const char *message;
} refusals[] = {
    {{"tiny"}, 2, "there is no verb tiny"},
    {{"train"}, 2, "too few arguments"},
    {{"train", "tyni"}, 2, "there is no size tyni; did you mean tiny?"},
    {{"train", "toy", "--threads", "0"}, 2, "--threads: 0"},
    {{"train", "toy", "--batch-tokens", "0"}, 2, "--batch-tokens: 0"},
    {{"train", "toy", "--source", "x"}, 2, "--source needs --target"},
    {{"decode", "toy", "--target", "x"}, 2, "--target needs --source"},
    {{"train", "toy", "--source", "no/such", "--target", "no/such"}, 1, "no/such"},
    {{"train", "toy", "--set", "model.heads=5"}, 2, "model.heads: 5 does not divide model.width 64"},
    {{"train", "toy", "--set", "training.batch_sentences=5"}, 2, "training.batch_sentences"},
    {{"train", "base", "--set", "model.width=65536", "--set", "model.encoder_layers=256"},
     1,
     "MiB of memory would be needed"},
    {{"train", "toy", "--vocabulary", "2000000000"}, 1, "MiB of memory would be needed"},
    {{"train", "toy", "--batch-tokens", "1000000000000"}, 1, "MiB of memory would be needed"},
    {{"train", "toy", "--set", "training.batch_tokens=9223372036854775807"}, 1, "MiB of memory would be needed"},
    {{"decode", "toy", "--vocabulary", "2000000000"}, 1, "MiB of memory would be needed"},
    {{"latency", "base", "--set", "model.width=65536"}, 1, "MiB of memory would be needed"},
    {{"multiply", "toy", "--vocabulary", "2000000000"}, 1, "MiB of memory would be needed"},
    {{"decode", "toy", "--sentences", "1000000000", "--length", "1"}, 1, "MiB of memory would be needed"},
    {{"decode", "toy", "--sentences", "1000000", "--batch", "1000000", "--beam", "1024"}, 1, "a smaller beam"},
    {{"train", "toy", "--set", "text.tokenizer=char"}, 2, "text.tokenizer: it changes nothing here"},
    {{"train", "toy", "--set", "training.model_dir=x"}, 2, "training.model_dir: it changes nothing here"},
    {{"train", "toy", "--set", "training.validate_every=5"}, 2, "it changes nothing here"},
    {{"decode", "toy", "--set", "training.batch_tokens=64"}, 2, "training.batch_tokens: it changes nothing here"},
    {{"latency", "toy", "--set", "decoding.beam=5"}, 2, "decoding.beam: it changes nothing here"},
    {{"multiply", "toy", "--set", "data.source=de"}, 2, "data.source: it changes nothing here"},
    {{"train", "toy", "--source", "-", "--target", "-"}, 1, "-: it is a pipe or a device, but it is read twice"},
    {{"decode", "toy", "--source", "/dev/null", "--target", "x"}, 1, "/dev/null: it is a pipe or a device"},
};

START_TEST(bad_input_is_refused)
{
    const char *words[11] = {"headwise", "bench"};
    memcpy(words + 2, refusals[_i].words, sizeof refusals[_i].words);
    const outcome *o = run_program(words);
    ck_assert_msg(o->status == refusals[_i].status, "status %d: %s", o->status, o->err);
    ck_assert_msg(strstr(o->err, refusals[_i].message) != NULL, "\"%s\" is not in %s", refusals[_i].message, o->err);
    ck_assert_str_eq(o->out, "");
}
END_TEST

/* False where nothing can be limited: the sanitizer's shadow takes more address space than any limit. */
static bool limit_address_space(int gib)
{
#ifdef __SANITIZE_ADDRESS__
    return (void)gib, false;
#endif
    struct rlimit limit = {(rlim_t)gib << 30, RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    return true;
}

/* Less memory than the size would take, but enough for the program: the size is refused before it is tried. */
START_TEST(memory_is_reckoned_first)
{
    double bytes = hw_bench_available();
    ck_assert_double_gt(bytes, 0);
    hw_error err;
    ck_assert(hw_bench_fits(bytes / 2, &err));
    ck_assert(!hw_bench_fits(bytes * 2, &err));
    if (!limit_address_space(4)) return;
    ck_assert_double_lt(hw_bench_available(), 4.0 * (1 << 30));
    const outcome *o = BENCH("train", "base", "--set", "model.width=2048", "--steps", "1");
    ck_assert_int_eq(o->status, 1);
    ck_assert_msg(strstr(o->err, "MiB of memory would be needed") != NULL, "%s", o->err);
}
END_TEST

/* Of a sentence that is longer than a shard the other shards have nothing, so that memory is reckoned once. */
START_TEST(long_sentences_are_reckoned_once)
{
    hw_config *c = hw_config_new(scratch_arena());
    c->training.shards = 1;
    double one = hw_bench_training_bytes(c, 1000, 4096);
    c->training.shards = 4;
    ck_assert_double_lt(hw_bench_training_bytes(c, 1000, 4096), 1.5 * one);
}
END_TEST

/* Under a limit of address space, what the libraries map themselves counts too: OpenBLAS waits for ever for it. */
START_TEST(limits_leave_room_for_libraries)
{
    double before = hw_bench_available();
    if (!limit_address_space(64)) return;
    hw_threads_set(900);
    ck_assert_double_lt(hw_bench_available(), fmin(before, 2.0 * (1 << 30)));
}
END_TEST

/* Steps that change nothing are told, and what JSON has no number for stands there as null. */
START_TEST(steps_without_finite_gradients_are_told)
{
    const outcome *o = BENCH("train", "toy", "--json", "--steps", "60", "--length", "5", "--vocabulary", "50",
                             "--batch-tokens", "20", "--set", "training.optimizer=adamw", "--set",
                             "training.weight_decay=100", "--set", "training.learning_rate=1000", SMALL);
    json_t *root = json_of(o);
    ck_assert_msg(strstr(o->err, "not finite in ") != NULL, "%s", o->err);
    ck_assert_double_gt(number(root, "skipped_batches"), 0);
    ck_assert_ptr_nonnull(json_object_get(root, "loss"));
    json_decref(root);
}
END_TEST

START_TEST(fewer_sentences_are_told)
{
    const char *text = scratch_text("s", "a\nb\n");
    const outcome *o = BENCH("decode", "toy", "--json", "--source", text, "--target", text, "--sentences", "5", SMALL);
    json_t *root = json_of(o);
    ck_assert_double_eq(number(root, "sentences"), 2);
    ck_assert_msg(strstr(o->err, "hold 2 pairs of sentences, not 5") != NULL, "%s", o->err);
    json_decref(root);
}
END_TEST

/* What the scripts around bench say before they begin, and where a bench fails. */
static const struct {
    const char *command;
    int status;
    const char *message;
} script_refusals[] = {
    {"growth.sh -h", 0, ""},
    {"growth.sh -x", 2, "-b PROGRAM"},
    {"growth.sh -b no/such", 2, "there is no program no/such"},
    {"growth.sh -b \"$built/headwise\" -s huge -c '' -o \"$scratch\" && false || test ! -e \"$scratch/growth.tsv.new\"",
     0, "there is no size huge"},
    {"growth_chart.sh", 2, "growth_chart.sh DIR"},
    {"compare_peers.sh", 2, "-n N"},
    {"compare_peers.sh -r list", 0, ""},
    {"compare_peers.sh -r nonsense python3 peers", 2, "there is no row nonsense"},
    {"compare_peers.sh -n 0 python3 peers", 2, "-n and -t take a number from 1 on, not '0'"},
    {"compare_peers.sh -t two python3 peers", 2, "-n and -t take a number from 1 on, not 'two'"},
};

START_TEST(scripts_refuse)
{
    const outcome *o = run_bash(hw_arena_string(scratch_arena(), "built='%s' scratch='%s'; sh scripts/%s",
                                                built_directory(), scratch_root(), script_refusals[_i].command));
    ck_assert_msg(o->status == script_refusals[_i].status, "status %d: %s", o->status, o->err);
    ck_assert_msg(strstr(o->err, script_refusals[_i].message) != NULL, "%s", o->err);
}
END_TEST

/* A line for each of two series and each number of threads, and nothing beside the chart. */
START_TEST(growth_is_drawn)
{
    scratch_text("growth.tsv", "varied\tvalue\tthreads\tus_per_token\tpeak_mib\n"
                               "width\t32\t1\t20\t9\nwidth\t32\t2\t11\t9\nwidth\t64\t1\t50\t9\nwidth\t64\t2\t30\t9\n"
                               "words\t8\t1\t20\t9\nwords\t8\t2\t11\t9\nwords\t16\t1\t21\t9\nwords\t16\t2\t12\t9\n");
    const char *script = hw_arena_string(scratch_arena(),
                                         "top=$PWD; cd '%s' && mkdir c && mv growth.tsv c && cd c && "
                                         "sh \"$top/scripts/growth_chart.sh\" . && "
                                         "grep -c '<path' growth.svg; grep -c 'stroke-dasharray' growth.svg; ls",
                                         scratch_root());
    ck_assert_str_eq(run_bash(script)->out, "4\n2\ngrowth.svg\ngrowth.tsv\n");
}
END_TEST

START_TEST(too_many_threads_are_fewer)
{
    const outcome *o = BENCH("train", "toy", "--json", "--threads", "10000", "--steps", "1", "--length", "5",
                             "--vocabulary", "50", "--batch-tokens", "60", SMALL);
    ck_assert_msg(strstr(o->err, "10000 is more than the 1024") != NULL, "%s", o->err);
    json_decref(json_of(o));
}
END_TEST

START_TEST(long_sentences_go_alone)
{
    const char *source = scratch_text("s", "a b c d e f g h\na\nb\nc d e f g h i j k\n");
    const char *target = scratch_text("t", "x\nx\nx\nx\n");
    const outcome *o = BENCH("train", "toy", "--json", "--source", source, "--target", target, "--batch-tokens", "6",
                             "--steps", "3", SMALL);
    json_t *root = json_of(o);
    const char *message = strstr(o->err, "pairs with more than 6 tokens on a side: 2 of 4;");
    ck_assert_msg(message != NULL, "%s", o->err);
    ck_assert_ptr_null(strchr(strchr(message, '\n') + 1, '\n'));    /* one warning */
    ck_assert_double_eq(number(root, "source_tokens"), 9 + 10 + 4); /* each of the three batches once */
    json_decref(root);
}
END_TEST

START_TEST(files_must_be_parallel)
{
    const char *source = scratch_text("s", "a\nb\n"), *target = scratch_text("t", "x\n");
    const outcome *o = BENCH("decode", "toy", "--source", source, "--target", target);
    ck_assert_int_eq(o->status, 1);
    ck_assert_msg(strstr(o->err, "/t ends at line 1, where ") != NULL, "%s", o->err);
    o = BENCH("train", "toy", "--source", scratch_text("e", "\n\n"), "--target", source);
    ck_assert_int_eq(o->status, 1);
    ck_assert_msg(strstr(o->err, "hold no pair") != NULL, "%s", o->err);
}
END_TEST

Suite *test_bench(void);
Suite *test_bench(void)
{
    Suite *s = suite_create("bench");
    TCase *work = tcase_create("work"), *bad = tcase_create("bad input");
    tcase_add_checked_fixture(work, scratch_begin, scratch_end);
    tcase_add_checked_fixture(bad, scratch_begin, scratch_end);
    tcase_add_test(work, machine_is_told);
    tcase_add_test(work, training_is_measured);
    tcase_add_test(work, tables_tell_the_same);
    tcase_add_test(work, decoding_is_measured);
    tcase_add_test(work, choosing_tokens_has_its_place);
    tcase_add_test(work, latency_is_measured);
    tcase_add_test(work, shapes_are_multiplied);
    tcase_add_test(work, useful_work_is_counted);
    tcase_add_loop_test(bad, bad_input_is_refused, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(bad, memory_is_reckoned_first);
    tcase_add_test(bad, long_sentences_are_reckoned_once);
    tcase_add_test(bad, limits_leave_room_for_libraries);
    tcase_add_test(bad, steps_without_finite_gradients_are_told);
    tcase_add_test(bad, fewer_sentences_are_told);
    tcase_add_loop_test(bad, scripts_refuse, 0, sizeof script_refusals / sizeof *script_refusals);
    tcase_add_test(bad, growth_is_drawn);
    tcase_add_test(bad, too_many_threads_are_fewer);
    tcase_add_test(bad, long_sentences_go_alone);
    tcase_add_test(bad, files_must_be_parallel);
    suite_add_tcase(s, work);
    suite_add_tcase(s, bad);
    return s;
}
