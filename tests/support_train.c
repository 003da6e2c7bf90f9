#include "support_train.h"

#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support_files.h"

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static void write_set(const char *directory, const char *prefix, int pairs, uint64_t seed, const char *last)
{
    hw_random random = hw_random_new(seed, 11);
    hw_arena *arena = hw_arena_new(0);
    char *text[2] = {"", ""};
    for (int i = 0; i < pairs; i++) {
        const char *source = "", *target = "";
        int words = 2 + (int)hw_random_below(&random, 5);
        for (int k = 0; k < words; k++) {
            int word = (int)hw_random_below(&random, 12);
            source = hw_arena_string(arena, "%s%sw%d", source, k ? " " : "", word);
            target = hw_arena_string(arena, "w%d%s%s", word, k ? " " : "", target);
        }
        if (last && i == pairs - 1) source = last;
        text[0] = hw_arena_string(arena, "%s%s\n", text[0], source);
        text[1] = hw_arena_string(arena, "%s%s\n", text[1], target);
    }
    scratch_text(hw_arena_string(arena, "%s/%s.en", directory, prefix), text[0]);
    scratch_text(hw_arena_string(arena, "%s/%s.fr", directory, prefix), text[1]);
    hw_arena_free(arena);
}

const char *train_corpus(const char *directory, const char *last)
{
    hw_error err;
    ck_assert(hw_directory_make(scratch_path(directory), &err));
    write_set(directory, "train", 40, 1, last);
    write_set(directory, "valid", 6, 2, NULL);
    return scratch_path(directory);
}

hw_arena *train_begin(void)
{
    scratch_begin_in_memory();
    train_corpus("data", NULL);
    return scratch_arena();
}

static void set_all(hw_config *c, hw_arena *arena, const char *settings)
{
    hw_error err;
    char *copy = hw_arena_string(arena, "%s", settings), *place;
    for (char *s = strtok_r(copy, ";", &place); s; s = strtok_r(NULL, ";", &place))
        ck_assert_msg(hw_config_set(c, s, &err), "%s", err.message);
}

hw_config *train_config(hw_arena *arena, const char *model_dir, const char *settings)
{
    hw_error err;
    hw_config *c = hw_config_new(arena);
    set_all(c, arena,
            "model.encoder_layers=1;model.decoder_layers=1;model.width=16;model.heads=2;model.feed_forward=32;"
            "model.tied_embeddings=none;training.max_steps=23;training.batch_sentences=6;training.shards=3;"
            "training.micro_batch_tokens=20;training.learning_rate=0.01;training.warmup_steps=5;"
            "training.validate_every=7;training.save_every=5;training.log_every=4;training.metric=loss;"
            "decoding.max_length=8");
    set_all(c, arena,
            hw_arena_string(arena, "training.model_dir=%s;data.dir=%s", scratch_path(model_dir), scratch_path("data")));
    set_all(c, arena, settings);
    ck_assert_msg(hw_config_check(c, NULL, &err), "%s", err.message);
    return c;
}

static void hear(const char *line, void *context)
{
    train_call *call = context;
    size_t used = strlen(call->said);
    snprintf(call->said + used, sizeof call->said - used, "%s\n", line);
    if (call->stop_in_validation && !strncmp(line, "step ", 5)) call->stop = 1;
}

static void watch(const hw_progress *progress, void *context)
{
    train_call *call = context;
    if (call->after_step) call->after_step(call, progress->done);
    if (call->stop_after == progress->done) call->stop = 1;
}

void train_run(train_call *call, const hw_config *config)
{
    call->said[0] = 0;
    call->stop = call->stop_after < 0;
    hw_train_options o = {.overwrite = call->overwrite, .progress = watch, .progress_context = call, .say = hear,
                          .say_context = call, .stop = &call->stop};
    call->err.message[0] = 0;
    call->ok = hw_train(config, &o, &call->result, &call->err);
    ck_assert(call->ok == !call->err.message[0]);
}

void train_until(train_call *call, const hw_config *config, int64_t step)
{
    *call = (train_call){.stop_after = step};
    train_run(call, config);
    ck_assert_msg(call->ok, "%s", call->err.message);
}

void train_refused(train_call *call, const hw_config *config, const char *message)
{
    train_run(call, config);
    ck_assert(!call->ok);
    ck_assert_str_eq(call->err.message, message);
}

int train_child(const hw_config *config)
{
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child) return child;
    train_call call = {0};
    train_run(&call, config);
    if (!call.ok) fprintf(stderr, "%s\n", call.err.message);
    _exit(!call.ok);
}

hw_train_result train_whole(const hw_config *config, int threads)
{
    static train_call call;
    call = (train_call){0};
    hw_threads_set(threads);
    train_run(&call, config);
    ck_assert_msg(call.ok, "%s", call.err.message);
    ck_assert(!call.result.stopped && !call.result.finished_before);
    return call.result;
}

void train_whole_and_in_parts(hw_arena *arena, const char *settings, const int64_t *stops)
{
    static train_call call;
    const hw_config *whole = train_config(arena, "whole", settings), *parts = train_config(arena, "parts", settings);
    train_whole(whole, 1);
    for (int i = 0; !i || stops[i - 1]; i++) {
        hw_threads_set(1 + i % 3);
        train_until(&call, parts, stops[i]);
    }
    same_directories(whole->training.model_dir, parts->training.model_dir);
}

void config_refused(hw_arena *arena, const char *const *settings, int most, const char *message)
{
    hw_config *c = hw_config_new(arena);
    hw_error err = {""};
    bool ok = true;
    for (int i = 0; i < most && settings[i] && ok; i++) ok = hw_config_set(c, settings[i], &err);
    ck_assert(!(ok && hw_config_check(c, NULL, &err)));
    ck_assert_str_eq(err.message, message);
}

/* ---- what they leave --------------------------------------------------------------------------------------------- */

static int wanted(const struct dirent *entry)
{
    static const char *const others[] = {".", "..", "config.yaml", "times.tsv"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(entry->d_name, others[i])) return 0;
    return 1;
}

static void same_files(const char *a, const char *b)
{
    size_t sizes[2];
    char *bytes[2] = {scratch_read(a, &sizes[0]), scratch_read(b, &sizes[1])};
    ck_assert_msg(bytes[0] && bytes[1], "%s or %s cannot be read", a, b);
    ck_assert_msg(sizes[0] == sizes[1] && !memcmp(bytes[0], bytes[1], sizes[0]), "%s and %s differ", a, b);
    free(bytes[0]);
    free(bytes[1]);
}

void same_directories(const char *a, const char *b)
{
    struct dirent **names[2];
    int counts[2] = {scandir(a, &names[0], wanted, alphasort), scandir(b, &names[1], wanted, alphasort)};
    for (int i = 0; i < counts[0] || i < counts[1]; i++) {
        char left[4096], right[4096];
        struct stat status;
        const char *name = i < counts[0] ? names[0][i]->d_name : "", *other = i < counts[1] ? names[1][i]->d_name : "";
        ck_assert_msg(!strcmp(name, other), "%s has %s, %s has %s", a, name, b, other);
        snprintf(left, sizeof left, "%s/%s", a, name);
        snprintf(right, sizeof right, "%s/%s", b, name);
        ck_assert_int_eq(stat(left, &status), 0);
        if (S_ISDIR(status.st_mode)) same_directories(left, right);
        else same_files(left, right);
    }
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < counts[k]; i++) free(names[k][i]);
        free(names[k]);
    }
}

void same_but_configuration(const char *a, const char *b)
{
    const char *const directories[] = {scratch_path(a), scratch_path(b)};
    char path[4096];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/checkpoint.safetensors", directories[i]);
        ck_assert_int_eq(unlink(path), 0);
    }
    same_directories(directories[0], directories[1]);
}

void check_directory(const char *directory)
{
    hw_error err;
    hw_run_state state;
    char path[4096];
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", directory);
    bool checkpoint = hw_file_exists(path);
    if (checkpoint) ck_assert_msg(hw_checkpoint_peek(&state, path, &err), "%s", err.message);
    snprintf(path, sizeof path, "%s/model.safetensors", directory);
    if (!hw_file_exists(path)) return;
    ck_assert(checkpoint);
    hw_bundle *b = hw_bundle_load(directory, &err);
    ck_assert_msg(b != NULL, "%s", err.message);
    hw_bundle_free(b);
}
