/* What turns the text of both sides into ids and back: read from a model directory, made from a training set, written.
 *
 * A directory has shared.vocab or source.vocab and target.vocab, and beside each, where the tokenizer has a model, the
 * same name with .model. */
#include <headwise/bundle.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "corpus_file.h"

/* How many sides have files of their own, and their names. */
static int sides(const hw_config *c) { return c->text.shared_vocabulary ? 1 : 2; }

static const char *const stems[3] = {"shared", "source", "target"};
static const char *stem(const hw_config *c, int side) { return stems[c->text.shared_vocabulary ? 0 : 1 + side]; }

static bool has_pieces(const hw_config *c) { return !strcmp(c->text.tokenizer, "sentencepiece"); }

bool hw_texts_path(const hw_config *c, const char *directory, int side, const char *ending, char path[HW_PATH],
                   hw_error *err)
{
    char name[32];
    snprintf(name, sizeof name, "%s.%s", stem(c, side), ending);
    return hw_bundle_path(path, directory, name, err);
}

static hw_tokenizer *tokenizer(const hw_config *c, const char *model, hw_error *err)
{
    return hw_tokenizer_new(&(hw_tokenizer_options){c->text.tokenizer, c->text.joiner, model}, err);
}

/* Takes the tokenizer over; both sides have it where they share. */
static void set(hw_texts *texts, const hw_config *c, int side, hw_tokenizer *t, const hw_vocabulary *v)
{
    if (side == 0) texts->source_tokenizer = t, texts->source_vocabulary = v;
    if (side == 1) texts->target_tokenizer = t, texts->target_vocabulary = v;
    if (sides(c) == 1 && t) texts->target_tokenizer = hw_tokenizer_share(t), texts->target_vocabulary = v;
}

void hw_texts_free(hw_texts *texts)
{
    hw_tokenizer_free(texts->source_tokenizer);
    hw_tokenizer_free(texts->target_tokenizer);
    *texts = (hw_texts){0};
}

/* ---- reading and writing ----------------------------------------------------------------------------------------- */

static bool load_side(const hw_config *c, const char *directory, int side, hw_arena *arena, hw_texts *texts,
                      hw_error *err)
{
    char vocabulary[HW_PATH], model[HW_PATH];
    if (!hw_texts_path(c, directory, side, "vocab", vocabulary, err) ||
        !hw_texts_path(c, directory, side, "model", model, err))
        return false;
    const hw_vocabulary *v = hw_vocabulary_load(arena, vocabulary, err);
    hw_tokenizer *t = v ? tokenizer(c, has_pieces(c) ? model : NULL, err) : NULL;
    set(texts, c, side, t, v);
    return t && hw_tokenizer_fits(t, v, model, vocabulary, err);
}

bool hw_texts_load(const hw_config *c, const char *directory, hw_arena *arena, hw_texts *texts, hw_error *err)
{
    *texts = (hw_texts){0};
    for (int side = 0; side < sides(c); side++) {
        if (load_side(c, directory, side, arena, texts, err)) continue;
        hw_texts_free(texts);
        return false;
    }
    return true;
}

/* Those of another sharing or tokenizer, which an earlier run left. */
static void remove_others(const hw_texts *texts, const hw_config *c, const char *directory)
{
    const hw_tokenizer *const tokenizers[] = {texts->source_tokenizer, texts->target_tokenizer};
    char path[HW_PATH], name[32];
    for (int i = 0; i < 3; i++) {
        bool used = c->text.shared_vocabulary ? i == 0 : i > 0;
        snprintf(name, sizeof name, "%s.vocab", stems[i]);
        if (!used && hw_bundle_path(path, directory, name, NULL)) unlink(path);
        snprintf(name, sizeof name, "%s.model", stems[i]);
        if (!(used && hw_tokenizer_has_model(tokenizers[i == 2])) && hw_bundle_path(path, directory, name, NULL))
            unlink(path);
    }
}

bool hw_texts_save(const hw_texts *texts, const hw_config *c, const char *directory, hw_error *err)
{
    const hw_tokenizer *const tokenizers[] = {texts->source_tokenizer, texts->target_tokenizer};
    const hw_vocabulary *const vocabularies[] = {texts->source_vocabulary, texts->target_vocabulary};
    char path[HW_PATH];
    for (int side = 0; side < sides(c); side++)
        if (!hw_texts_path(c, directory, side, "vocab", path, err) ||
            !hw_vocabulary_save(vocabularies[side], path, err))
            return false;
    for (int side = 0; side < sides(c); side++)
        if (hw_tokenizer_has_model(tokenizers[side]) &&
            (!hw_texts_path(c, directory, side, "model", path, err) || !hw_tokenizer_save(tokenizers[side], path, err)))
            return false;
    remove_others(texts, c, directory);
    return true;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* The files of a side's training text, of both where the sides share; their number, 0 for an error. */
static int training_files(const hw_config *c, int side, char paths[2][HW_PATH], hw_error *err)
{
    const char *const suffixes[] = {c->data.source, c->data.target};
    int count = sides(c) == 1 ? 2 : 1;
    for (int i = 0; i < count; i++)
        if (!hw_corpus_path(paths[i], c->data.dir, c->data.train, suffixes[side + i], err)) return 0;
    return count;
}

static const hw_vocabulary *count_words(const hw_config *c, const hw_tokenizer *t, int files, char paths[2][HW_PATH],
                                        hw_arena *arena, hw_error *err)
{
    hw_arena *scratch = hw_arena_new(0);
    hw_counts *counts = hw_counts_new(scratch);
    bool good = true;
    for (int i = 0; good && i < files; i++) {
        int64_t before = hw_counts_total(counts);
        good = hw_counts_add_file(counts, t, paths[i], err);
        if (good && hw_counts_total(counts) == before)
            good = hw_fail(err, "%s: there is no word in it to make a vocabulary of", paths[i]);
    }
    hw_vocabulary_options o = {.min_count = c->text.min_count, .max_size = c->text.max_vocabulary};
    const hw_vocabulary *v = good ? hw_vocabulary_build(arena, counts, &o) : NULL;
    hw_arena_free(scratch);
    return v;
}

static hw_tokenizer *train_pieces(const hw_config *c, int files, char paths[2][HW_PATH], hw_error *err)
{
    const char *const list[] = {paths[0], paths[1]};
    hw_subword_options o = {
        .bpe = !strcmp(c->text.model_type, "bpe"),
        .size = c->text.max_vocabulary ? c->text.max_vocabulary : HW_SUBWORDS,
        .coverage = c->text.character_coverage,
        .byte_fallback = c->text.byte_fallback,
        .normalization = c->text.normalization,
        .lines = c->text.model_lines,
    };
    return hw_tokenizer_train(&o, files, list, err);
}

/* text.model: a file for both sides, or a directory. */
static bool given_model(const hw_config *c, int side, char path[HW_PATH], hw_error *err)
{
    struct stat status;
    if (!stat(c->text.model, &status) && S_ISDIR(status.st_mode))
        return hw_texts_path(c, c->text.model, side, "model", path, err);
    if (snprintf(path, HW_PATH, "%s", c->text.model) < HW_PATH) return true;
    return hw_fail(err, "text.model: %.200s...: the path is too long", path);
}

bool hw_texts_found(const hw_config *c, int side, char path[HW_PATH])
{
    const char *directory = c->training.model_dir;
    char given[HW_PATH];
    struct stat there, named;
    if (side >= sides(c) || !has_pieces(c) || *c->training.init_from || !*directory ||
        !hw_texts_path(c, directory, side, "model", path, NULL) || stat(path, &there))
        return false;
    if (!*c->text.model) return !hw_bundle_wrote(directory, strrchr(path, '/') + 1);
    return given_model(c, side, given, NULL) && !stat(given, &named) && named.st_dev == there.st_dev &&
           named.st_ino == there.st_ino;
}

static hw_tokenizer *make_tokenizer(const hw_config *c, int side, int files, char paths[2][HW_PATH], hw_error *err)
{
    char model[HW_PATH];
    if (!has_pieces(c)) return tokenizer(c, NULL, err);
    if (*c->text.model) return given_model(c, side, model, err) ? tokenizer(c, model, err) : NULL;
    return hw_texts_found(c, side, model) ? tokenizer(c, model, err) : train_pieces(c, files, paths, err);
}

static bool make_side(const hw_config *c, int side, hw_arena *arena, hw_texts *texts, hw_error *err)
{
    char paths[2][HW_PATH];
    int files = training_files(c, side, paths, err);
    hw_tokenizer *t = files ? make_tokenizer(c, side, files, paths, err) : NULL;
    const hw_vocabulary *v = NULL;
    if (t) v = has_pieces(c) ? hw_tokenizer_vocabulary(t, arena) : count_words(c, t, files, paths, arena, err);
    set(texts, c, side, t, v);
    return v != NULL;
}

bool hw_texts_new(const hw_config *c, hw_arena *arena, hw_texts *texts, hw_error *err)
{
    *texts = (hw_texts){0};
    for (int side = 0; side < sides(c); side++) {
        if (make_side(c, side, arena, texts, err)) continue;
        hw_texts_free(texts);
        return false;
    }
    return true;
}
