/* Trains a network to copy its input, through the library alone, and translates with it.
 *
 *     cc copy_task.c $(pkg-config --cflags --libs headwise) -o copy_task && ./copy_task DIRECTORY
 *
 * The corpus and the model go into DIRECTORY. A second call goes on from the first, that is, it only translates. */
#include <headwise.h>
#include <stdlib.h>
#include <string.h>

static void stop(const hw_error *err)
{
    fprintf(stderr, "copy_task: %s\n", err->message);
    exit(1);
}

/* Pairs of equal sides: 2 to 6 letters with blanks between. */
static void write_set(hw_arena *arena, const char *directory, const char *set, int pairs, uint64_t seed)
{
    hw_error err;
    hw_atomic side[2];
    hw_random random = hw_random_new(seed, 1);
    static const char *const suffixes[] = {"in", "out"};
    for (int s = 0; s < 2; s++)
        if (!hw_atomic_begin(&side[s], hw_arena_string(arena, "%s/%s.%s", directory, set, suffixes[s]), &err))
            stop(&err);
    for (int i = 0; i < pairs; i++) {
        char line[32] = "";
        for (int n = 2 + (int)hw_random_below(&random, 5), k = 0; k < n; k++)
            sprintf(line + strlen(line), "%s%c", k ? " " : "", 'a' + (char)hw_random_below(&random, 8));
        for (int s = 0; s < 2; s++) fprintf(side[s].stream, "%s\n", line);
    }
    for (int s = 0; s < 2; s++)
        if (!hw_atomic_commit(&side[s], &err)) stop(&err);
}

static void say(const char *line, void *unused)
{
    (void)unused;
    fprintf(stderr, "%s\n", line);
}

int main(int argc, char **argv)
{
    if (argc != 2) return fprintf(stderr, "usage: copy_task DIRECTORY\n"), 2;
    static const char *const options[] = {
        "data.source=in", "data.target=out", "model.encoder_layers=1", "model.decoder_layers=1", "model.width=32",
        "model.heads=2", "model.feed_forward=64", "text.shared_vocabulary=true", "training.max_steps=300",
        "training.warmup_steps=30", "training.learning_rate=5e-3", "training.schedule=linear",
        "training.batch_tokens=200", "training.validate_every=150"};
    hw_error err;
    hw_arena *arena = hw_arena_new(0);
    hw_config *config = hw_config_new(arena);
    const char *model = hw_arena_string(arena, "%s/model", argv[1]);
    bool ok = hw_directory_make(argv[1], &err) &&
              hw_config_set(config, hw_arena_string(arena, "data.dir=%s", argv[1]), &err) &&
              hw_config_set(config, hw_arena_string(arena, "training.model_dir=%s", model), &err);
    for (size_t i = 0; ok && i < sizeof options / sizeof *options; i++) ok = hw_config_set(config, options[i], &err);
    if (!ok || !hw_config_check(config, NULL, &err)) stop(&err);
    write_set(arena, argv[1], "train", 2000, 1);
    write_set(arena, argv[1], "valid", 50, 2);
    hw_train_result result;
    if (!hw_train(config, &(hw_train_options){.say = say}, &result, &err)) stop(&err);

    hw_bundle *bundle = hw_bundle_load(model, &err);
    if (!bundle) stop(&err);
    static const char *const lines[] = {"h e a d", "c a b b e d"};
    hw_search_options search = hw_search_options_of(bundle->config);
    hw_translator *translator = hw_translator_new(bundle, &search);
    const hw_translation *t = hw_translate_lines(translator, 2, lines, NULL);
    for (int i = 0; i < 2; i++) printf("%s\n", t[i].count ? t[i].texts[0] : "");
    hw_translator_free(translator);
    hw_bundle_free(bundle);
    hw_arena_free(arena);
    return 0;
}
