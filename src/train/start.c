/* How a run begins: vocabularies, data, network, and first values: new ones, those of another model
 * (training.init_from), or those of the checkpoint. The directory is changed only when all of it stands. */
#include "guided.h"
#include "run.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- another model to begin with --------------------------------------------------------------------------------- */

/* Where the parts of training.init_from are. */
typedef struct origin {
    char directory[HW_PATH], model[HW_PATH];
} origin;

static bool fail(const hw_config *c, hw_error *err, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool fail(const hw_config *c, hw_error *err, const char *format, ...)
{
    char message[1800];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const char *place = hw_config_place(c, "training.init_from");
    return hw_fail(err, "%s: training.init_from: %s", place ? place : "configuration", message);
}

static bool has_config(const char *directory)
{
    char path[HW_PATH];
    return hw_bundle_path(path, directory, "config.yaml", NULL) && hw_file_exists(path);
}

/* One directory up. */
static void cut_last(char path[HW_PATH])
{
    char *slash = strrchr(path, '/');
    if (!slash) strcpy(path, *path && strcmp(path, ".") ? "." : "..");
    else if (slash > path) *slash = 0;
    else slash[1] = 0;
}

/* A file of weights has its directory's configuration and vocabularies, or (checkpoints/step-N.safetensors) those of
 * the one above. */
static bool find_origin(const hw_config *c, origin *o, hw_error *err)
{
    const char *from = c->training.init_from;
    struct stat status, own;
    bool there = strlen(from) < HW_PATH && !stat(from, &status);
    if (!there && errno == EACCES) return fail(c, err, "%.200s: cannot be read: %s", from, strerror(errno));
    if (!there) return fail(c, err, "%.200s: there is no such model", from);
    strcpy(o->directory, from);
    strcpy(o->model, from);
    if (S_ISDIR(status.st_mode)) {
        if (!hw_bundle_path(o->model, from, "model.safetensors", err)) return false;
    } else {
        cut_last(o->directory);
        if (!has_config(o->directory)) cut_last(o->directory);
    }
    bool complete = has_config(o->directory);
    if (!complete && errno == EACCES) return fail(c, err, "%s: cannot be read: %s", from, strerror(errno));
    if (!complete)
        return fail(c, err,
                    "%s: there is no config.yaml beside it; a model directory, or a file of weights in one, is needed",
                    from);
    hw_run_state state;
    if (S_ISREG(status.st_mode) && hw_checkpoint_peek(&state, from, NULL))
        return fail(c, err,
                    "%s is a checkpoint, with which only its own run goes on; its directory, or a file of weights in "
                    "it, is needed",
                    from);
    if (!stat(o->directory, &status) && !stat(c->training.model_dir, &own) && status.st_dev == own.st_dev &&
        status.st_ino == own.st_ino)
        return fail(c, err, "%s is the directory that is trained into; choose another training.model_dir", from);
    return true;
}

/* Options of text without which the values mean something else, and those that only say how a vocabulary is made. */
static const char *const reading[] = {"text.tokenizer", "text.joiner", "text.shared_vocabulary", NULL};
static const char *const making[] = {"text.min_count", "text.max_vocabulary", "text.model_type", "text.normalization",
                                     "text.character_coverage", "text.byte_fallback", "text.model_lines", NULL};

/* The options, those of the network or some of these, that have another value there; "": none has, NULL: an error. */
static const char *different(const hw_config *c, const origin *o, bool network, const char *const *some,
                             hw_arena *arena, hw_error *err)
{
    const char *list = "";
    hw_config *there = hw_bundle_config(o->directory, arena, err);
    if (!there || !hw_config_check(there, NULL, err)) return NULL;
    hw_names keys = hw_config_differences(there, c, arena);
    for (int i = 0; i < keys.count; i++) {
        bool counts = network && !strncmp(keys.items[i], "model.", 6);
        for (int k = 0; some[k]; k++) counts |= !strcmp(keys.items[i], some[k]);
        if (counts) list = hw_run_add_difference(list, there, c, keys.items[i], arena);
    }
    return list;
}

/* The values fit a network of the same sizes, and mean something for text that is cut the same way. */
static bool same_network(const hw_config *c, const origin *o, hw_arena *arena, hw_error *err)
{
    const char *list = different(c, o, true, reading, arena, err);
    return list && (!*list || fail(c, err, "%s is another network: %.1000s", c->training.init_from, list));
}

/* text.model may name what those texts were made with; another model would go unheeded. */
static bool same_pieces(const hw_config *c, const hw_texts *texts, hw_arena *arena, hw_error *err)
{
    hw_texts named;
    if (!*c->text.model || !hw_file_exists(c->text.model)) return true;
    if (!hw_texts_new(c, arena, &named, err)) return false;
    bool same =
        hw_vocabulary_fingerprint(named.source_vocabulary) == hw_vocabulary_fingerprint(texts->source_vocabulary) &&
        hw_vocabulary_fingerprint(named.target_vocabulary) == hw_vocabulary_fingerprint(texts->target_vocabulary);
    hw_texts_free(&named);
    return same || fail(c, err,
                        "%s has other pieces than text.model, %s; a network keeps its own, so leave that out "
                        "(text.model: \"\")",
                        c->training.init_from, c->text.model);
}

bool hw_start_texts(const hw_config *c, hw_arena *arena, hw_texts *texts, hw_error *err)
{
    origin o;
    if (!*c->training.init_from) return hw_texts_new(c, arena, texts, err);
    if (!find_origin(c, &o, err) || !same_network(c, &o, arena, err) ||
        !hw_texts_load(c, o.directory, arena, texts, err))
        return false;
    if (same_pieces(c, texts, arena, err)) return true;
    hw_texts_free(texts);
    return false;
}

bool hw_start_values(const hw_config *c, hw_transformer *network, hw_error *err)
{
    origin o;
    if (*c->training.init_from) return find_origin(c, &o, err) && hw_bundle_load_model(network, o.model, err);
    hw_parameters_initialise(network->parameters, (uint64_t)c->training.seed);
    return true;
}

/* ---- data and network -------------------------------------------------------------------------------------------- */

bool hw_start_data(const hw_config *c, hw_error *err)
{
    const struct {
        const char *prefix;
        bool needed;
    } sets[] = {{c->data.train, true}, {c->data.valid, c->training.validate_every > 0}};
    char path[HW_PATH];
    for (int i = 0; i < 2; i++)
        if (sets[i].needed && (!hw_corpus_path(path, c->data.dir, sets[i].prefix, c->data.source, err) ||
                               !hw_corpus_path(path, c->data.dir, sets[i].prefix, c->data.target, err)))
            return false;
    return !(c->training.guided_alignment.weight > 0) ||
           hw_corpus_path(path, c->data.dir, c->data.train, c->training.guided_alignment.suffix, err) ||
           hw_fail_in(err, "training.guided_alignment needs an alignment of the training set: ");
}

/* Says what there is to learn from an alignment. */
static bool say_guided(const hw_run *r, hw_error *err)
{
    if (!(r->config->training.guided_alignment.weight > 0)) return true;
    const char *text = hw_guided_describe(r->config, r->corpus, r->arena, err);
    if (text) hw_run_say(r, "guided alignment: %s", text);
    return text;
}

static bool make_samplers(hw_run *r, hw_error *err)
{
    const hw_bundle *b = r->bundle;
    double alpha = r->config->text.sampling;
    return alpha <= 0 || ((r->sampler[0] = hw_sampler_new(b->source_tokenizer, b->source_vocabulary, alpha, err)) &&
                          (r->sampler[1] = hw_sampler_new(b->target_tokenizer, b->target_vocabulary, alpha, err)));
}

static bool load_data(hw_run *r, hw_error *err)
{
    const hw_config *c = r->config;
    hw_side source = hw_bundle_source(r->bundle), target = hw_bundle_target(r->bundle);
    hw_corpus_options filters = hw_bundle_filters(c);
    char text[512];
    r->corpus = hw_corpus_load(c->data.dir, c->data.train, &source, &target, &filters, err);
    if (!r->corpus || !make_samplers(r, err)) return false;
    hw_run_say(r, "training data: %s", hw_corpus_describe(r->corpus, text));
    if (!say_guided(r, err)) return false;
    r->batcher = hw_batcher_new(r->corpus, &(hw_batcher_options){.seed = (uint64_t)c->training.seed,
                                                                 .target_tokens = c->training.batch_tokens,
                                                                 .sentences = c->training.batch_sentences,
                                                                 .source_sampler = r->sampler[0],
                                                                 .target_sampler = r->sampler[1]});
    if (r->batcher.oversized)
        hw_run_say(r, "warning: %lld %s larger than training.batch_tokens; each makes a batch of its own",
                   (long long)r->batcher.oversized, hw_plural(r->batcher.oversized, "pair is", "pairs are"));
    return true;
}

static void say_too_long(const hw_run *r)
{
    const hw_config *c = r->config;
    const hw_too_long *t = hw_validator_too_long(r->validator);
    char path[HW_PATH];
    if (!t->pairs ||
        !hw_corpus_path(path, c->data.dir, c->data.valid, t->side ? c->data.target : c->data.source, NULL))
        return;
    const char *first = hw_too_long_describe(t, path, r->arena);
    hw_run_say(r, "warning: %s; of the validation set %lld such %s only translated", first, (long long)t->pairs,
               hw_plural(t->pairs, "pair is", "pairs are"));
}

static bool make_network(hw_run *r, hw_texts *texts, hw_error *err)
{
    const hw_config *c = r->config;
    const hw_vocabulary *source = texts->source_vocabulary, *target = texts->target_vocabulary;
    if (!hw_train_fits(c, texts, NULL, err)) {
        hw_texts_free(texts);
        return false;
    }
    r->bundle = hw_bundle_new(c, texts, false, err);
    if (!r->bundle || !load_data(r, err) || !hw_train_fits(c, texts, r->corpus, err)) return false;
    hw_transformer *network = r->bundle->network;
    r->trainer = hw_trainer_new(network, c);
    r->shown = *r->bundle;
    r->shown.network = (hw_transformer *)hw_trainer_network(r->trainer);
    char total[32], from[32], to[32];
    hw_run_say(r, "network: %s parameters; vocabulary: %s source, %s target tokens; threads: %d, shards: %lld",
               hw_thousands(hw_parameters_total(network->parameters), total),
               hw_thousands(hw_vocabulary_size(source), from), hw_thousands(hw_vocabulary_size(target), to),
               hw_threads(), (long long)c->training.shards);
    if (c->training.validate_every > 0) r->validator = hw_validator_new(&r->shown, err);
    if (c->training.validate_every > 0 && !r->validator) return false;
    if (r->validator) say_too_long(r);
    if (c->training.track_heads > 0) r->tracer = hw_tracer_new(&r->shown, c->training.track_heads, err);
    return r->tracer || c->training.track_heads <= 0;
}

/* As it stands in the checkpoint, without a sign. */
static int64_t fingerprint(uint64_t hash) { return (int64_t)(hash >> 1); }

/* Says where the values come from, and what goes unheeded since the vocabularies come with them. */
static bool say_origin(const hw_run *r, hw_error *err)
{
    origin o;
    const char *from = r->config->training.init_from;
    if (!*from) return true;
    const char *list =
        find_origin(r->config, &o, err) ? different(r->config, &o, false, making, r->arena, err) : NULL;
    if (!list) return false;
    hw_run_say(r, "beginning with the weights of %s", from);
    if (*list) hw_run_say(r, "warning: its vocabularies stay, whatever the configuration says of new ones: %s", list);
    return true;
}

/* The configuration first: with it the directory is this run's (hw_run_may_begin). Then, before them, what tells its
 * tokenizers' models from those that were there (hw_texts_found). */
static bool write_beginning(const hw_run *r, hw_error *err)
{
    const hw_config *c = r->config;
    char path[HW_PATH];
    hw_texts texts = hw_bundle_texts(r->bundle);
    bool ok = hw_config_save(c, hw_run_path(r, "config.yaml", path), err) &&
              hw_bundle_save_corpus(hw_corpus_count(r->corpus), c, c->training.model_dir, err) &&
              hw_texts_save(&texts, c, c->training.model_dir, err);
    hw_texts_free(&texts);
    return ok;
}

static void say_found(const hw_run *r)
{
    char path[HW_PATH];
    for (int side = 0; side < 2; side++)
        if (hw_texts_found(r->config, side, path)) hw_run_say(r, "text is cut by %s, which was there", path);
}

static bool new_run(hw_run *r, hw_error *err)
{
    if (!hw_start_values(r->config, r->bundle->network, err) || !say_origin(r, err)) return false;
    say_found(r);
    hw_run_clear(r);
    r->state.train_data = fingerprint(hw_corpus_fingerprint(r->corpus));
    r->state.valid_data = r->validator ? fingerprint(hw_validator_fingerprint(r->validator)) : 0;
    return write_beginning(r, err);
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

/* Steps are a function of the data; with others, what goes on is no run that could be repeated. */
static bool same_data(const hw_run *r, hw_error *err)
{
    const hw_config *c = r->config;
    bool train = r->state.train_data == fingerprint(hw_corpus_fingerprint(r->corpus));
    bool valid = !r->validator || r->state.valid_data == fingerprint(hw_validator_fingerprint(r->validator));
    if (train && valid) return true;
    return hw_fail(
        err,
        "%s/%s: the %s set is not the one that the run in %s began with. Give that one back, begin anew with "
        "--overwrite, or begin another run with its weights (training.init_from)",
        c->data.dir, train ? c->data.valid : c->data.train, train ? "validation" : "training", c->training.model_dir);
}

static bool go_on(hw_run *r, hw_error *err)
{
    const hw_config *c = r->config;
    char path[HW_PATH], blas[64];
    if (!hw_checkpoint_load(r->trainer, &r->state, hw_run_path(r, "checkpoint.safetensors", path), blas, err))
        return false;
    if (!same_data(r, err)) return false;
    if (r->state.place.next > hw_corpus_count(r->corpus)->pairs)
        return hw_fail(err, "%s: the place in the data is beyond its end; the file is damaged", path);
    if (strcmp(blas, hw_blas_kernel()))
        hw_run_say(
            r,
            "warning: the run began with the BLAS kernel %s and goes on with %s; its last bits will not be those of "
            "one uninterrupted run",
            blas, hw_blas_kernel());
    r->batcher.place = r->state.place;
    r->saved = r->state.step;
    hw_run_say(r, "going on at step %lld of %lld", (long long)r->state.step, (long long)c->training.max_steps);
    hw_run_prune(r);
    return hw_config_save(c, hw_run_path(r, "config.yaml", path), err); /* max_steps may have grown */
}

bool hw_run_begin(hw_run *r, bool resume, hw_error *err)
{
    const hw_config *c = r->config;
    hw_texts texts;
    if (!hw_start_data(c, err)) return false;
    bool ok = resume ? hw_texts_load(c, c->training.model_dir, r->arena, &texts, err)
                     : hw_start_texts(c, r->arena, &texts, err);
    return ok && make_network(r, &texts, err) && (resume ? go_on(r, err) : new_run(r, err));
}
