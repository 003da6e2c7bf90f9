/* The model directory: its parts are made, read and written here, and held against each other. model.safetensors itself
 * is model_file.c's work. */
#include <headwise/bundle.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle/model_file.h"

bool hw_bundle_path(char path[HW_PATH], const char *directory, const char *name, hw_error *err)
{
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/') length--;
    int size = snprintf(path, HW_PATH, "%.*s/%s", (int)(length < HW_PATH ? length : HW_PATH), directory, name);
    if (size < 0 || size >= HW_PATH) return hw_fail(err, "%.200s...: the path is too long", directory);
    return true;
}

/* ---- what the configuration says --------------------------------------------------------------------------------- */

hw_transformer_options hw_bundle_options(const hw_config *c, int64_t source_vocabulary, int64_t target_vocabulary)
{
    static const hw_tying tyings[] = {
        [HW_TIE_ALL] = HW_TIED_ALL, [HW_TIE_OUTPUT] = HW_TIED_OUTPUT, [HW_TIE_NONE] = HW_TIED_NONE};
    return (hw_transformer_options){
        .encoder_layers = c->model.encoder_layers,
        .decoder_layers = c->model.decoder_layers,
        .width = c->model.width,
        .heads = c->model.heads,
        .feed_forward = c->model.feed_forward,
        .source_vocabulary = source_vocabulary,
        .target_vocabulary = target_vocabulary,
        .activation = (hw_activation)c->model.activation,
        .pre_norm = c->model.norm == HW_NORM_PRE,
        .tied = tyings[c->model.tied_embeddings],
        .dropout_embedding = c->training.dropout_embedding,
        .dropout_residual = c->training.dropout_residual,
        .dropout_attention = c->training.dropout_attention,
        .dropout_feed_forward = c->training.dropout_feed_forward,
        .attention_gain = c->training.attention_gain,
        .removed_heads = c->model.removed_heads.items,
        .removed_count = c->model.removed_heads.count,
    };
}

/* An array of the training set that is larger than so many bytes goes to a file. */
enum { ARRAY_MEMORY = 1 << 24 };

hw_corpus_options hw_bundle_filters(const hw_config *c)
{
    return (hw_corpus_options){
        .max_length = c->data.max_length,
        .max_ratio = c->data.max_ratio,
        .drop_identical = c->data.drop_identical,
        .drop_duplicates = c->data.drop_duplicates,
        .alignment = c->training.guided_alignment.weight > 0 ? c->training.guided_alignment.suffix : NULL,
        .scratch = c->training.model_dir,
        .memory = ARRAY_MEMORY,
    };
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* What the network takes, against the memory there is: to be heard before anything is allocated, and not as the end of
 * the process. Values are there twice, as they are and packed. */
static bool fits(const hw_transformer_options *o, bool gradients, hw_error *err)
{
    int64_t numbers = hw_transformer_size(o, err);
    if (numbers < 0) return false;
    double bytes = (double)numbers * (double)sizeof(hw_real) * (gradients ? 3 : 2), gib = 1 << 30;
    double memory = hw_memory_most();
    if (bytes <= memory) return true;
    return hw_fail(err,
                   "the network has %.3g parameters and needs %.1f GiB for them, but this process has at most %.1f "
                   "GiB of memory; make model.width, model.feed_forward or the numbers of layers smaller",
                   (double)numbers, bytes / gib, memory / gib);
}

/* The network of a bundle that has the rest. */
static bool build(hw_bundle *b, bool gradients, hw_error *err)
{
    hw_transformer_options o = hw_bundle_options(b->config, hw_vocabulary_size(b->source_vocabulary),
                                                 hw_vocabulary_size(b->target_vocabulary));
    b->network = fits(&o, gradients, err) ? hw_transformer_new(&o, gradients, err) : NULL;
    return b->network;
}

static void set_texts(hw_bundle *b, const hw_texts *texts)
{
    b->source_vocabulary = texts->source_vocabulary;
    b->target_vocabulary = texts->target_vocabulary;
    b->source_tokenizer = texts->source_tokenizer;
    b->target_tokenizer = texts->target_tokenizer;
}

/* With the same owner. */
static hw_texts texts_of(const hw_bundle *b)
{
    return (hw_texts){b->source_vocabulary, b->target_vocabulary, b->source_tokenizer, b->target_tokenizer};
}

hw_texts hw_bundle_texts(const hw_bundle *b)
{
    hw_tokenizer_share(b->source_tokenizer);
    hw_tokenizer_share(b->target_tokenizer);
    return texts_of(b);
}

static hw_bundle *new_bundle(void)
{
    hw_bundle *b = calloc(1, sizeof *b);
    HW_CHECK(b, "no memory for a bundle");
    return b;
}

hw_bundle *hw_bundle_new(const hw_config *config, const hw_texts *texts, bool gradients, hw_error *err)
{
    hw_bundle *b = new_bundle();
    b->config = config;
    set_texts(b, texts);
    if (build(b, gradients, err)) return b;
    hw_bundle_free(b);
    return NULL;
}

void hw_bundle_free(hw_bundle *b)
{
    if (!b) return;
    hw_texts texts = texts_of(b);
    hw_transformer_free(b->network);
    hw_texts_free(&texts);
    hw_arena_free(b->arena);
    free(b);
}

hw_side hw_bundle_source(const hw_bundle *b)
{
    return (hw_side){b->config->data.source, b->source_tokenizer, b->source_vocabulary};
}

hw_side hw_bundle_target(const hw_bundle *b)
{
    return (hw_side){b->config->data.target, b->target_tokenizer, b->target_vocabulary};
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool is_there(const char *directory, const char *name)
{
    char path[HW_PATH];
    return hw_bundle_path(path, directory, name, NULL) && hw_file_exists(path);
}

static bool check_directory(const char *directory, hw_error *err)
{
    struct stat status;
    bool there = !stat(directory, &status);
    if (there && !S_ISDIR(status.st_mode))
        return hw_fail(err,
                       "%s: it is a file; a model is a directory with config.yaml, vocabularies and model.safetensors",
                       directory);
    if (there && is_there(directory, "config.yaml")) return true;
    if (errno == EACCES) return hw_fail(err, "%s: cannot be read: %s", directory, strerror(errno));
    return hw_fail(err, there ? "%s: it is no model directory, there is no config.yaml in it"
                              : "%s: there is no such model directory", directory);
}

hw_config *hw_bundle_config(const char *directory, hw_arena *arena, hw_error *err)
{
    char path[HW_PATH];
    if (!check_directory(directory, err) || !hw_bundle_path(path, directory, "config.yaml", err)) return NULL;
    hw_config *config = hw_config_load(arena, path, err);
    if (config && !is_there(directory, "source.vocab") && is_there(directory, "shared.vocab"))
        config->text.shared_vocabulary = true;
    return config;
}

enum { FITS = 3 };

/* What each vocabulary has to fit, with the paths that messages name. */
typedef struct vocabulary_files {
    char path[2][HW_PATH];
    hw_vocabulary_fit fits[FITS];
} vocabulary_files;

static bool load_texts(hw_bundle *b, const char *directory, vocabulary_files *files, hw_error *err)
{
    hw_texts texts;
    for (int side = 0; side < 2; side++)
        if (!hw_texts_path(b->config, directory, side, "vocab", files->path[side], err)) return false;
    if (!hw_texts_load(b->config, directory, b->arena, &texts, err)) return false;
    set_texts(b, &texts);
    int64_t source = hw_vocabulary_size(b->source_vocabulary), target = hw_vocabulary_size(b->target_vocabulary);
    files->fits[0] = (hw_vocabulary_fit){files->path[1], "embedding.weight", target};
    files->fits[1] = (hw_vocabulary_fit){files->path[0], "source_embedding.weight", source};
    files->fits[2] = (hw_vocabulary_fit){files->path[1], "target_embedding.weight", target};
    return true;
}

static bool load(hw_bundle *b, const char *directory, bool settle, hw_error *err)
{
    char path[HW_PATH];
    vocabulary_files files;
    hw_config *config = hw_bundle_config(directory, b->arena, err);
    if (!config || !hw_config_check(config, NULL, err)) return false;
    b->config = config;
    if (!is_there(directory, "model.safetensors"))
        return hw_fail(err, "%s: there is no model.safetensors in it; the model is not trained yet", directory);
    if (!load_texts(b, directory, &files, err)) return false;
    if (!build(b, false, err)) return hw_fail_in(err, "%s: ", directory);
    return hw_bundle_path(path, directory, "model.safetensors", err) &&
           hw_model_file_load(b->network, path, files.fits, FITS, settle, err);
}

static hw_bundle *load_new(const char *directory, bool settle, hw_error *err)
{
    hw_bundle *b = new_bundle();
    b->arena = hw_arena_new(0);
    if (load(b, directory, settle, err)) return b;
    hw_bundle_free(b);
    return NULL;
}

hw_bundle *hw_bundle_load(const char *directory, hw_error *err) { return load_new(directory, false, err); }
hw_bundle *hw_bundle_load_settled(const char *directory, hw_error *err) { return load_new(directory, true, err); }

bool hw_bundle_is_finite(const hw_bundle *b, const char *directory, hw_error *err)
{
    const hw_parameters *p = b->network->parameters;
    for (int i = 0; i < hw_parameters_count(p); i++) {
        const hw_parameter *item = hw_parameters_at(p, i);
        for (int64_t k = 0; k < hw_tensor_size(&item->tensor); k++)
            if (!isfinite(item->tensor.data[k]))
                return hw_fail(err, "%s: %s holds numbers that are not finite, so no figure means anything", directory,
                               item->name);
    }
    return true;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

bool hw_bundle_save_texts(const hw_bundle *b, const char *directory, hw_error *err)
{
    hw_texts texts = texts_of(b);
    char path[HW_PATH];
    return hw_directory_make(directory, err) && hw_texts_save(&texts, b->config, directory, err) &&
           hw_bundle_path(path, directory, "config.yaml", err) && hw_config_save(b->config, path, err);
}
