/* Layer 11: what goes wrong in a run: numbers that are not finite, data that change, files that cannot be written at
 * each kind of write, damaged checkpoints. Nothing is lost, nothing stays half-written, and the run goes on when the
 * cause is gone. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support_files.h"
#include "support_train.h"
#include "train/validate.h"

static hw_arena *arena;
static train_call call;

static void begin(void)
{
    arena = train_begin();
    call = (train_call){0};
}

/* After the cause is gone, the run must end as one that nothing happened to. */
static void recovers(const hw_config *c, const char *settings)
{
    train_until(&call, c, 0);
    train_whole(train_config(arena, "whole", settings), 1);
    same_directories(scratch_path("whole"), c->training.model_dir);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* A model whose embedding of one source word is not a number: the batches with that word are skipped, no others. */
static const char *model_with_a_bad_word(const char *word)
{
    hw_error err;
    train_whole(train_config(arena, "origin", "training.max_steps=1"), 1);
    hw_bundle *b = hw_bundle_load(scratch_path("origin"), &err);
    ck_assert_msg(b != NULL, "%s", err.message);
    int32_t id = hw_vocabulary_find(b->source_vocabulary, word, strlen(word));
    ck_assert_int_ge(id, HW_SPECIALS);
    b->network->source_embedding->data[id * 16] = (hw_real)NAN;
    ck_assert(hw_bundle_save_model(b->network, NULL, scratch_path("origin"), &err));
    hw_bundle_free(b);
    return hw_arena_string(arena, "training.init_from=%s;", scratch_path("origin"));
}

static int64_t last_skipped(const char *log)
{
    char *text = scratch_read(scratch_path(log), NULL), *last = text;
    for (char *line = text; *line; line = strchr(line, '\n') + 1) last = line;
    int64_t skipped = strtoll(strrchr(last, '\t'), NULL, 10);
    free(text);
    return skipped;
}

START_TEST(bad_steps_are_skipped)
{
    train_corpus("data", "w1 rare");
    const char *settings = hw_arena_string(arena, "%straining.log_every=1", model_with_a_bad_word("rare"));
    const hw_config *c = train_config(arena, "model", settings);
    train_until(&call, c, 12);
    int64_t before = call.result.skipped;
    train_until(&call, c, 0);
    ck_assert_int_ge(call.result.skipped, 3); /* once in each epoch of 7 steps */
    ck_assert_int_le(call.result.skipped, 4);
    ck_assert_int_gt(call.result.skipped, before);
    ck_assert_int_eq(last_skipped("model/train.tsv"), call.result.skipped);
    ck_assert_msg(strstr(call.said, "loss or gradient is not finite; the step is skipped"), "%s", call.said);
    train_whole(train_config(arena, "whole", settings), 2);
    same_directories(scratch_path("whole"), scratch_path("model"));
}
END_TEST

/* An average of weights begins with the first step that changes them, wherever the run stops before it. */
START_TEST(an_average_begins_late)
{
    const char *settings = hw_arena_string(arena, "%straining.ema=0.9;training.batch_sentences=2;training.max_steps=2",
                                           model_with_a_bad_word("w0"));
    train_until(&call, train_config(arena, "model", settings), 1);
    ck_assert_int_eq(call.result.skipped, 1);
    train_whole_and_in_parts(arena, settings, (const int64_t[]){1, 0});
}
END_TEST

/* Logits so large that what flows back overflows, while the loss does not. */
START_TEST(a_gradient_alone_skips_a_step)
{
    hw_error err;
    const hw_config *c = train_config(arena, "origin", "training.max_steps=1");
    train_whole(c, 1);
    hw_bundle *b = hw_bundle_load(scratch_path("origin"), &err);
    ck_assert_msg(b != NULL, "%s", err.message);
    hw_parameters *p = b->network->parameters;
    hw_real *row = hw_parameters_find(p, "output.weight")->tensor.data + HW_SPECIALS * 16;
    for (int d = 0; d < 16; d++) row[d] = (hw_real)(sizeof(hw_real) == sizeof(float) ? 1e25 : 1e200) * (d % 3 - 1);
    hw_parameters_pack(p);
    size_t bytes = (size_t)hw_parameters_numbers(p) * sizeof(hw_real);
    hw_real *before = hw_arena_copy(arena, hw_parameters_values(p), bytes);
    hw_side source = hw_bundle_source(b), target = hw_bundle_target(b);
    hw_corpus *corpus = hw_corpus_load(scratch_path("data"), "train", &source, &target, 0, &err);
    hw_batcher batcher = hw_batcher_new(corpus, &(hw_batcher_options){.seed = 1, .sentences = 6});
    hw_trainer *t = hw_trainer_new(b->network, c);
    hw_step_result r = hw_trainer_step(t, hw_batcher_next(&batcher, arena));
    ck_assert(isfinite(r.count.loss) && !isfinite(r.gradient_norm));
    ck_assert(r.skipped && hw_trainer_steps(t) == 1);
    ck_assert(!memcmp(before, hw_parameters_values(p), bytes));
    hw_trainer_free(t);
    hw_corpus_free(corpus);
    hw_bundle_free(b);
}
END_TEST

START_TEST(ten_in_a_row_end_the_run)
{
    const char *settings =
        "training.optimizer=adamw;training.weight_decay=100;training.learning_rate=1000;"
        "training.schedule=constant;training.warmup_steps=0;training.save_every=2;training.validate_every=0;"
        "training.max_steps=500";
    const hw_config *c = train_config(arena, "model", settings);
    train_run(&call, c);
    ck_assert(!call.ok);
    hw_run_state state;
    hw_error err;
    ck_assert_msg(hw_checkpoint_peek(&state, scratch_path("model/checkpoint.safetensors"), &err), "%s", err.message);
    ck_assert_int_ge(state.step, 2);
    long long at = 0, kept = 0;
    ck_assert_msg(sscanf(call.err.message,
                         "step %lld: loss or gradient was not finite in 10 steps in a row; the checkpoint of "
                         "step %lld is kept. Begin anew with a lower training.learning_rate, a longer "
                         "training.warmup_steps, or model.norm: pre",
                         &at, &kept) == 2,
                  "%s", call.err.message);
    ck_assert_int_eq(state.step, kept);
    ck_assert_int_ge(at - kept, 10); /* of before them */
    ck_assert_int_eq(state.skipped_row, 0);
    check_directory(scratch_path("model"));
    char *before = hw_arena_string(arena, "%s", call.err.message);
    train_refused(&call, c, before); /* it is the same run, however often it is tried */
}
END_TEST

/* Too short for ten in a row, and yet no success. */
START_TEST(a_short_run_of_skipped_steps_fails)
{
    train_corpus("data", "w1 rare");
    const char *settings = hw_arena_string(arena, "%straining.max_steps=3;training.batch_sentences=1000",
                                           model_with_a_bad_word("w1"));
    const hw_config *c = train_config(arena, "model", settings);
    const char *message =
        hw_arena_string(arena, "%s: nothing was learned: loss or gradient was not finite in any step. Begin anew with a "
                               "lower training.learning_rate, a longer training.warmup_steps, or model.norm: pre",
                        scratch_path("model"));
    train_refused(&call, c, message);
    char *log = scratch_read(scratch_path("model/train.tsv"), NULL);
    ck_assert_ptr_nonnull(strstr(log, "\tnan\tnan\tnan\t")); /* no figures of nothing */
    free(log);
    train_refused(&call, c, message); /* nor is it one when it is found finished */
}
END_TEST

/* A figure that is no number is the best only as long as there is no other. */
START_TEST(which_figure_is_better)
{
    static const struct {
        int metric;
        double a, b;
        bool better;
    } cases[] = {
        {HW_METRIC_BLEU, 2, 1, true},         {HW_METRIC_BLEU, 1, 2, false},
        {HW_METRIC_BLEU, 1, 1, false},        {HW_METRIC_LOSS, 1, 2, true},
        {HW_METRIC_LOSS, 2, 1, false},        {HW_METRIC_PERPLEXITY, 1, 2, true},
        {HW_METRIC_PERPLEXITY, 2, 1, false},  {HW_METRIC_LOSS, 1, NAN, true},
        {HW_METRIC_LOSS, NAN, 1, false},      {HW_METRIC_LOSS, NAN, NAN, false},
        {HW_METRIC_BLEU, 1, NAN, true},       {HW_METRIC_EXACT_MATCH, NAN, 0, false},
        {HW_METRIC_CHRF, INFINITY, 1, false}, {HW_METRIC_PERPLEXITY, 9, INFINITY, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(hw_metric_better(cases[i].metric, cases[i].a, cases[i].b) == cases[i].better, "case %zu", i);
}
END_TEST

/* Of two validations with the same figure the one with the lower loss. */
START_TEST(which_validation_is_better)
{
    static const struct {
        double value, loss, best, best_loss;
        bool better;
    } cases[] = {
        {1, 0.3, 1, 0.4, true},      {1, 0.4, 1, 0.4, false},  {1, 0.5, 1, 0.4, false},
        {0.9, 0.3, 1, 0.4, false},   {1, 0.5, 0.9, 0.4, true}, {NAN, 0.3, NAN, 0.4, true},
        {NAN, 0.3, 0.1, 0.4, false}, {1, NAN, 1, 0.4, false},  {1, 0.3, 1, NAN, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hw_validation v = {.exact_match = cases[i].value, .loss = cases[i].loss};
        bool better = hw_validation_better(&v, HW_METRIC_EXACT_MATCH, cases[i].best, cases[i].best_loss);
        ck_assert_msg(better == cases[i].better, "case %zu", i);
    }
}
END_TEST

/* No sentence comes out whole in so short a run, so the figure is always 0, and the loss alone decides. A run in parts
 * knows the loss of the best from its checkpoint. */
START_TEST(ties_are_broken_by_the_loss)
{
    static const char settings[] = "training.metric=exact_match;training.validate_every=3";
    train_whole_and_in_parts(arena, settings, (const int64_t[]){4, 10, 16, 0});
    double least = INFINITY;
    long long best = 0, step;
    double loss;
    char *log = scratch_read(scratch_path("whole/valid.tsv"), NULL), *place;
    strtok_r(log, "\n", &place);
    for (char *line; (line = strtok_r(NULL, "\n", &place));) {
        double figures[3];
        int now;
        ck_assert_int_eq(sscanf(line, "%lld\t%lf\t%lf\t%lf\t%lf\t%*f\t%*f\t%d", &step, &loss, &figures[0], &figures[1],
                                &figures[2], &now),
                         6);
        ck_assert_double_eq(figures[2], 0);
        ck_assert_int_eq(now, loss < least);
        if (loss < least) least = loss, best = step;
    }
    free(log);
    hw_run_state state;
    hw_error err;
    ck_assert_msg(hw_checkpoint_peek(&state, scratch_path("parts/checkpoint.safetensors"), &err), "%s", err.message);
    ck_assert_int_eq(state.best_step, best);
    ck_assert_double_eq_tol(state.best_loss, least, 1e-6);
    ck_assert_int_gt(best, 3);
}
END_TEST

/* ---- data -------------------------------------------------------------------------------------------------------- */

START_TEST(data_changed)
{
    static const char *const sets[3][2] = {{"train", "training"}, {"valid", "validation"}, {"valid", "validation"}};
    const hw_config *c = train_config(arena, "model", "");
    const char *path = scratch_path(hw_arena_string(arena, "data/%s.fr", sets[_i][0]));
    size_t size;
    char *text = scratch_read(path, &size), *word = strstr(text, "w1 ");
    ck_assert_ptr_nonnull(word);
    if (_i == 2) { /* an unknown word, which becomes another one */
        word[0] = 'x';
        scratch_write(hw_arena_string(arena, "data/%s.fr", sets[_i][0]), text, size);
    }
    train_until(&call, c, 9);
    word[1] = '2';
    scratch_write(hw_arena_string(arena, "data/%s.fr", sets[_i][0]), text, size);
    train_refused(
        &call, c,
        hw_arena_string(arena,
                        "%s/%s: the %s set is not the one that the run in %s began with. Give that one back, begin "
                        "anew with --overwrite, or begin another run with its weights (training.init_from)",
                        c->data.dir, sets[_i][0], sets[_i][1], c->training.model_dir));
    word[1] = '1';
    scratch_write(hw_arena_string(arena, "data/%s.fr", sets[_i][0]), text, size);
    free(text);
    recovers(c, "");
}
END_TEST

/* ---- files that cannot be written -------------------------------------------------------------------------------- */

/* In the place of every kind of file in turn stands a directory, from the beginning or from a step on. */
static const struct {
    const char *name;
    int64_t step;
} written[] = {
    {"source.vocab", 0}, {"target.vocab", 0}, {"config.yaml", 0}, {"corpus.json", 0}, {"train.tsv", 0}, {"valid.tsv", 0},
    {"times.tsv", 0}, {"heads_trace.tsv", 0}, {"gates.tsv", 3}, {"checkpoint.safetensors", 3}, {"model.safetensors", 3},
    {"curves.svg", 3}, {"checkpoints/step-10.safetensors", 3},
};
static const char *blocked;
static int64_t blocked_at;

static void block(const train_call *one, int64_t step)
{
    (void)one;
    hw_error err;
    if (step != blocked_at) return;
    rename(blocked, scratch_path("aside"));
    ck_assert(hw_directory_make(blocked, &err));
}

START_TEST(one_file_cannot_be_written)
{
    bool gates = !strcmp(written[_i].name, "gates.tsv"); /* which have no weights of former steps */
    const char *settings = gates ? "training.head_l0.weight=0.01" : "training.keep_checkpoints=9;training.track_heads=6";
    const hw_config *c = train_config(arena, "model", settings);
    blocked = scratch_path(hw_arena_string(arena, "model/%s", written[_i].name));
    blocked_at = written[_i].step;
    block(&call, 0);
    call.after_step = block;
    train_refused(&call, c, hw_arena_string(arena, "%s: cannot be written: it is a directory", blocked));
    hw_run_state state = {0};
    if (!strcmp(written[_i].name, "curves.svg")) /* what was learned is not lost for a picture */
        ck_assert(hw_checkpoint_peek(&state, scratch_path("model/checkpoint.safetensors"), NULL) && state.step == 5);
    ck_assert_int_eq(rmdir(blocked), 0);
    rename(scratch_path("aside"), blocked);
    check_directory(scratch_path("model"));
    nothing_half_written("model");
    call.after_step = NULL;
    recovers(c, settings);
}
END_TEST

/* Who did not say --overwrite keeps what no run left. */
static const char *const kept[] = {
    "train.tsv",    "curves.svg", "source.vocab",  "shared.model", "corpus.json", "checkpoints/step-100.safetensors",
    "config.yaml",
};
enum { KEPT = sizeof kept / sizeof *kept };

START_TEST(a_new_run_replaces_nothing_of_the_users)
{
    const hw_config *c = train_config(arena, "model", "");
    hw_error err;
    const char *path = scratch_path(hw_arena_string(arena, "model/%s", kept[_i]));
    ck_assert(hw_directory_make(scratch_path("model/checkpoints"), &err));
    scratch_text(hw_arena_string(arena, "model/%s", kept[_i]), "# mine\n");
    train_refused(&call, c,
                  hw_arena_string(arena, "%s: training would replace this file; move it, choose another "
                                         "training.model_dir, or begin with --overwrite", path));
    char *text = scratch_read(path, NULL);
    ck_assert_str_eq(text, "# mine\n");
    free(text);
    call = (train_call){.overwrite = true};
    train_run(&call, c);
    ck_assert_msg(call.ok, "%s", call.err.message);
    recovers(c, "");
}
END_TEST

START_TEST(the_directory_is_a_file)
{
    const hw_config *c = train_config(arena, "model", "");
    scratch_text("model", "a file");
    train_refused(&call, c,
                  hw_arena_string(arena, "%s: the directory cannot be made: a file of that name is in the way",
                                  c->training.model_dir));
}
END_TEST

/* Nothing is read-only to root, so it becomes somebody else. */
START_TEST(the_directory_is_read_only)
{
    static const char *const mine[] = {".", "data", "model"};
    const hw_config *c = train_config(arena, "model", "");
    hw_error err;
    ck_assert(hw_directory_make(c->training.model_dir, &err));
    for (int i = 0; i < 3 && geteuid() == 0; i++) ck_assert_int_eq(chown(scratch_path(mine[i]), 65534, 65534), 0);
    if (geteuid() == 0) ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
    ck_assert_int_eq(chmod(c->training.model_dir, 0555), 0);
    train_refused(
        &call, c,
        hw_arena_string(arena, "%s/config.yaml: cannot be written: Permission denied", c->training.model_dir));
    ck_assert_int_eq(chmod(c->training.model_dir, 0755), 0);
    recovers(c, "");
}
END_TEST

/* A limit on the size of files cuts a write off in the middle, as a full disk does. */
static void limit_files(int64_t bytes)
{
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes < 0 ? RLIM_INFINITY : (rlim_t)bytes, RLIM_INFINITY}), 0);
}

static int64_t size_of(const char *name)
{
    struct stat status;
    return stat(scratch_path(name), &status) ? -1 : (int64_t)status.st_size;
}

/* Of the files before the first step, in the order in which they are written. */
START_TEST(a_file_does_not_fit)
{
    static const char *const names[] = {"config.yaml", "checkpoint.safetensors"};
    train_whole(train_config(arena, "sizes", ""), 1);
    const hw_config *c = train_config(arena, "model", "");
    limit_files(size_of(hw_arena_string(arena, "sizes/%s", names[_i])) * 9 / 10);
    train_refused(
        &call, c,
        hw_arena_string(arena, "%s/%s: cannot be written whole: File too large", c->training.model_dir, names[_i]));
    limit_files(-1);
    ck_assert(!hw_file_exists(scratch_path(hw_arena_string(arena, "model/%s", names[_i]))));
    nothing_half_written("model");
    recovers(c, "");
}
END_TEST

/* A line of each log, whose beginning would fit. The log is the largest file of all, by lines that a run which goes on
 * drops. */
static const char *const logs[] = {"train.tsv", "valid.tsv", "times.tsv", "heads_trace.tsv"};
static const char *limited;

static void limit_log(const train_call *one, int64_t step)
{
    (void)one;
    if (step != 11) return;
    FILE *log = fopen(scratch_path(limited), "a");
    for (int i = 0; i < 100000; i++) fputs("99999\t0\n", log);
    fclose(log);
    limit_files(size_of(limited) + 1);
}

START_TEST(a_line_does_not_fit)
{
    const char *settings = "training.track_heads=6";
    const hw_config *c = train_config(arena, "model", settings);
    limited = hw_arena_string(arena, "model/%s", logs[_i]);
    call.after_step = limit_log;
    train_refused(&call, c, hw_arena_string(arena, "%s: cannot be written: File too large", scratch_path(limited)));
    limit_files(-1);
    char *text = scratch_read(scratch_path(limited), NULL);
    ck_assert_str_eq(text + strlen(text) - 1, "\n");
    free(text);
    check_directory(scratch_path("model"));
    call.after_step = NULL;
    recovers(c, settings);
}
END_TEST

/* A small disk, filled up but for some bytes when a step is done. Lines of logs still go where their last ones are. */
static const struct {
    int64_t step, spare;
    const char *file;
} fillings[] = {
    {4, 0, "model.safetensors"}, /* the last, after step 5 */
    {6, 0, "model.safetensors"}, /* the best, after step 7 */
    {9, 0, "curves.svg"},
    {9, 24576, "checkpoint.safetensors"},
};
static int filling;

static void fill_disk(const train_call *one, int64_t step)
{
    (void)one;
    if (step != fillings[filling].step) return;
    int file = open(scratch_path("disk/filler"), O_WRONLY | O_CREAT, 0600);
    char block[4096] = {0};
    int64_t bytes = 0;
    for (ssize_t n; (n = write(file, block, sizeof block)) > 0;) bytes += n;
    if (fillings[filling].spare) ck_assert_int_eq(ftruncate(file, bytes - fillings[filling].spare), 0);
    close(file);
}

START_TEST(the_disk_is_full)
{
    hw_error err;
    filling = _i;
    ck_assert(hw_directory_make(scratch_path("disk"), &err));
    if (unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", scratch_path("disk"), "tmpfs", 0, "size=2m"))
        return; /* only root may */
    const hw_config *c = train_config(arena, "disk/model", "");
    call.after_step = fill_disk;
    train_refused(&call, c,
                  hw_arena_string(arena, "%s/%s: cannot be written whole: No space left on device",
                                  c->training.model_dir, fillings[_i].file));
    check_directory(c->training.model_dir);
    ck_assert_int_eq(unlink(scratch_path("disk/filler")), 0);
    recovers(c, "");
    ck_assert_int_eq(umount(scratch_path("disk")), 0);
}
END_TEST

/* The directory is moved away, and another one stands in its place, or none. */
static bool replaced;

static void move_away(const train_call *one, int64_t step)
{
    (void)one;
    hw_error err;
    if (step != 9) return;
    ck_assert_int_eq(rename(scratch_path("model"), scratch_path("moved")), 0);
    ck_assert(!replaced || hw_directory_make(scratch_path("model"), &err));
}

START_TEST(the_directory_is_moved_away)
{
    replaced = _i;
    const hw_config *c = train_config(arena, "model", "");
    call.after_step = move_away;
    train_refused(&call, c,
                  hw_arena_string(arena,
                                  "%s: the directory was moved away while the run wrote into it. What was saved is in "
                                  "it; the same command goes on when it is back, or another training.model_dir says "
                                  "where it is",
                                  c->training.model_dir));
    ck_assert_int_eq(rmdir(c->training.model_dir), replaced ? 0 : -1); /* nothing is in it */
    check_directory(scratch_path("moved"));
    call.after_step = NULL;
    recovers(train_config(arena, "moved", ""), "");
}
END_TEST

/* ---- damaged checkpoints ----------------------------------------------------------------------------------------- */

static void damage(const char *from, const char *to)
{
    size_t size;
    char *bytes = scratch_read(scratch_path("model/checkpoint.safetensors"), &size),
         *at = memmem(bytes, size, from, strlen(from));
    ck_assert_msg(at != NULL, "there is no %s", from);
    ck_assert_uint_eq(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
    scratch_write("model/checkpoint.safetensors", bytes, size);
    free(bytes);
}

static const struct {
    const char *from, *to, *message;
} damages[] = {
    {"headwise checkpoint 3", "headwise checkpoint 9",
     "%s: this is no checkpoint that this version reads (its format is \"headwise checkpoint 9\", not \"headwise "
     "checkpoint 3\")"},
    {"\"step\":\"9\"", "\"step\":\"x\"", "%s: the checkpoint's step is missing or no number"},
    {"\"step\":\"9\"", "\"stop\":\"9\"", "%s: the checkpoint's step is missing or no number"},
    {"\"updates\":\"9\"", "\"updates\":\"-\"", "%s: the checkpoint's updates is missing or no number"},
    {"\"samples\":\"0\"", "\"samples\":\"3\"", "%s: it holds 3 weights to be averaged, but training.average is 0"},
    {"\"place.next\":\"12\"", "\"place.next\":\"99\"",
     "%s: the place in the data is beyond its end; the file is damaged"},
    {"\"place.next\":\"12\"", "\"place.next\":\"-2\"", "%s: the checkpoint's place.next is missing or no number"},
    {"first.output.bias", "fresh.output.bias", "%s: there is no tensor first.output.bias"},
};

START_TEST(a_damaged_checkpoint)
{
    const hw_config *c = train_config(arena, "model", "");
    train_until(&call, c, 9);
    damage(damages[_i].from, damages[_i].to);
    char message[512];
    snprintf(message, sizeof message, damages[_i].message, scratch_path("model/checkpoint.safetensors"));
    train_run(&call, c);
    ck_assert(!call.ok);
    ck_assert_msg(!strncmp(call.err.message, message, strlen(message)), "%s\nnot %s", call.err.message, message);
    damage(damages[_i].to, damages[_i].from);
    recovers(c, "");
}
END_TEST

/* ---- a changed config.yaml --------------------------------------------------------------------------------------- */

static void put_config(const char *settings)
{
    hw_error err;
    ck_assert_msg(hw_config_save(train_config(arena, "model", settings), scratch_path("model/config.yaml"), &err), "%s",
                  err.message);
}

/* Whoever changes the directory's own config.yaml, and trains with it, would go on with another run unseen: the
 * checkpoint knows better. */
START_TEST(a_changed_configuration)
{
    const hw_config *c = train_config(arena, "model", ""), *other = train_config(arena, "model", "training.seed=2");
    const char *message = hw_arena_string(arena,
                                          "%s holds a run of another configuration: training.seed (there 1, now 2). Go "
                                          "on with that one, choose another training.model_dir, or begin anew with "
                                          "--overwrite",
                                          c->training.model_dir);
    train_until(&call, c, 9);
    put_config("training.seed=2");
    train_refused(&call, other, message);
    train_until(&call, c, 11);
    train_refused(&call, other, message); /* the file says what it did */
    recovers(c, "");
}
END_TEST

/* Of the others config.yaml is asked; none of them is in the checkpoint, which would differ from machine to machine. */
START_TEST(a_checkpoint_says_no_paths)
{
    const hw_config *c = train_config(arena, "model", "");
    train_until(&call, c, 9);
    size_t size;
    char *bytes = scratch_read(scratch_path("model/checkpoint.safetensors"), &size);
    ck_assert_ptr_nonnull(memmem(bytes, size, "training.seed: 1", 16));
    ck_assert_ptr_null(memmem(bytes, size, scratch_root(), strlen(scratch_root())));
    free(bytes);
    put_config("training.max_steps=50");
    train_refused(&call, c,
                  hw_arena_string(arena,
                                  "%s holds a run of another configuration: training.max_steps (there 50, now 23). Go on "
                                  "with that one, choose another training.model_dir, or begin anew with --overwrite",
                                  c->training.model_dir));
    put_config("");
    recovers(c, "");
}
END_TEST

/* As checkpoints of former versions. */
START_TEST(a_checkpoint_without_a_configuration)
{
    const hw_config *c = train_config(arena, "model", "");
    train_until(&call, c, 9);
    damage("\"config\":", "\"former\":");
    train_run(&call, train_config(arena, "model", "training.seed=2"));
    ck_assert_msg(strstr(call.err.message, ": training.seed (there 1, now 2). ") != NULL, "%s", call.err.message);
    recovers(c, "");
}
END_TEST

Suite *test_train_faults(void);
Suite *test_train_faults(void)
{
    Suite *suite = suite_create("train_faults");
    TCase *t = tcase_create("numbers and data");
    tcase_add_checked_fixture(t, begin, scratch_end);
    tcase_add_test(t, bad_steps_are_skipped);
    tcase_add_test(t, a_gradient_alone_skips_a_step);
    tcase_add_test(t, an_average_begins_late);
    tcase_add_test(t, ten_in_a_row_end_the_run);
    tcase_add_test(t, a_short_run_of_skipped_steps_fails);
    tcase_add_test(t, which_figure_is_better);
    tcase_add_test(t, which_validation_is_better);
    tcase_add_test(t, ties_are_broken_by_the_loss);
    tcase_add_loop_test(t, data_changed, 0, 3);
    tcase_add_loop_test(t, a_damaged_checkpoint, 0, sizeof damages / sizeof *damages);
    tcase_add_test(t, a_changed_configuration);
    tcase_add_test(t, a_checkpoint_says_no_paths);
    tcase_add_test(t, a_checkpoint_without_a_configuration);
    suite_add_tcase(suite, t);
    t = tcase_create("writing");
    tcase_add_checked_fixture(t, begin, scratch_end);
    tcase_add_loop_test(t, one_file_cannot_be_written, 0, sizeof written / sizeof *written);
    tcase_add_test(t, the_directory_is_a_file);
    tcase_add_test(t, the_directory_is_read_only);
    tcase_add_loop_test(t, the_directory_is_moved_away, 0, 2);
    tcase_add_loop_test(t, a_new_run_replaces_nothing_of_the_users, 0, KEPT);
    tcase_add_loop_test(t, a_file_does_not_fit, 0, 2);
    tcase_add_loop_test(t, a_line_does_not_fit, 0, sizeof logs / sizeof *logs);
    tcase_add_loop_test(t, the_disk_is_full, 0, sizeof fillings / sizeof *fillings);
    suite_add_tcase(suite, t);
    return suite;
}
