/* What concerns several options at once.
 *
 * Rows of the table bound one value; here stands what two or more of them make wrong together, in the order in which a
 * person would want to hear it. An error points to where one of the options was set. What is allowed but hardly meant
 * becomes a warning, which the caller shows or not. */
#include "config/options.h"

#include <string.h>

/* Was it set by an option of a command, over what files say? */
static bool by_command(const char *place) { return place && !strncmp(place, "--", 2); }

/* Where `key` was set; where it has its default, or only `other` (may be NULL) was set by a command, where that was;
 * else the file. */
static const char *place_of(const hw_config *config, const char *key, const char *other)
{
    const char *place = hw_config_place(config, key), *second = other ? hw_config_place(config, other) : NULL;
    if (!place || (by_command(second) && !by_command(place))) place = second ? second : place;
    if (!place) place = config->file;
    return place ? place : "configuration";
}

/* Writes "place: key: message". Where `key` has its default the fault lies with `other`. */
static bool fail(const hw_config *config, hw_error *err, const char *key, const char *other, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
static bool fail(const hw_config *config, hw_error *err, const char *key, const char *other, const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return hw_fail(err, "%s: %s: %s", place_of(config, key, other), key, message);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static bool check_model(const hw_config *c, hw_error *err)
{
    if (c->model.width % c->model.heads)
        return fail(c, err, "model.heads", "model.width", "%lld does not divide model.width %lld",
                    (long long)c->model.heads, (long long)c->model.width);
    if (c->model.width % 2)
        return fail(c, err, "model.width", NULL, "%lld is odd; half of a position's numbers are sines, half cosines",
                    (long long)c->model.width);
    if (c->model.tied_embeddings == HW_TIE_ALL && !c->text.shared_vocabulary)
        return fail(c, err, "model.tied_embeddings", "text.shared_vocabulary",
                    "all needs one vocabulary for both sides, text.shared_vocabulary: true");
    return true;
}

/* A head's name is STACK.LAYER.KIND.HEAD; the decoder has cross-attention beside self-attention. */
static bool is_head(const hw_config *c, const char *name)
{
    const struct {
        const char *form;
        int64_t layers;
    } kinds[] = {{"encoder.%d.self.%d", c->model.encoder_layers},
                 {"decoder.%d.self.%d", c->model.decoder_layers},
                 {"decoder.%d.cross.%d", c->model.decoder_layers}};
    for (int i = 0; i < 3; i++) {
        int layer, head;
        char text[64];
        if (sscanf(name, kinds[i].form, &layer, &head) != 2 || layer < 0 || head < 0) continue;
        snprintf(text, sizeof text, kinds[i].form, layer, head); /* refuses 01, +1 and what may follow */
        return !strcmp(text, name) && layer < kinds[i].layers && head < c->model.heads;
    }
    return false;
}

static bool check_removed_heads(const hw_config *c, hw_error *err)
{
    const hw_names *names = &c->model.removed_heads;
    for (int i = 0; i < names->count; i++) {
        if (!is_head(c, names->items[i]))
            return fail(c, err, "model.removed_heads", NULL,
                        "this model has no head %.80s; names are encoder.LAYER.self.HEAD, decoder.LAYER.self.HEAD and "
                        "decoder.LAYER.cross.HEAD, from 0",
                        names->items[i]);
        for (int j = 0; j < i; j++)
            if (!strcmp(names->items[i], names->items[j]))
                return fail(c, err, "model.removed_heads", NULL, "%s stands there twice", names->items[i]);
    }
    return true;
}

#define ONLY_PIECES "only the tokenizer sentencepiece has it, not %s"

static bool check_sentencepiece(const hw_config *c, hw_error *err)
{
    bool pieces = !strcmp(c->text.tokenizer, "sentencepiece");
    if (!pieces && *c->text.model) return fail(c, err, "text.model", "text.tokenizer", ONLY_PIECES, c->text.tokenizer);
    if (!pieces && c->text.sampling > 0)
        return fail(c, err, "text.sampling", "text.tokenizer", ONLY_PIECES, c->text.tokenizer);
    if (pieces && c->text.min_count > 1)
        return fail(c, err, "text.min_count", "text.tokenizer",
                    "a SentencePiece model leaves no pieces out; text.max_vocabulary says how many there are");
    return true;
}

/* Names of files are made of these. */
static bool check_data(const hw_config *c, hw_error *err)
{
    const struct {
        const char *key, *value, *example;
    } names[] = {
        {"data.source", c->data.source, "the source side's suffix, such as en"},
        {"data.target", c->data.target, "the target side's suffix, such as fr"},
        {"data.train", c->data.train, "the training set's prefix, such as train"},
        {"data.valid", c->training.validate_every ? c->data.valid : "-",
         "the validation set's prefix, such as valid (training.validate_every: 0 does without one)"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!*names[i].value) return fail(c, err, names[i].key, NULL, "it is empty; it is %s", names[i].example);
    return true;
}

/* Training replaces files such as config.yaml there, so it must be a place of its own. */
static bool check_model_dir(const hw_config *c, hw_error *err)
{
    const char *at = c->training.model_dir;
    if (!*at) return true;
    while (*at) { /* are all its parts `.`, `..` or nothing? */
        size_t length = strcspn(at, "/");
        if (length > 2 || strncmp(at, "..", length)) return true;
        at += length + (at[length] == '/');
    }
    return fail(c, err, "training.model_dir", NULL,
                "%s is no directory for one model alone; name one that is made for it, such as models/mine",
                c->training.model_dir);
}

const char *hw_joiner_fault(const char *joiner, size_t *bytes)
{
    size_t size = strlen(joiner);
    while (size && strchr(" \t", joiner[size - 1])) size--;
    *bytes = size;
    if (!size) return "it is only blank";
    if (strcspn(joiner, " \t\n") < size) return "it has a blank inside";
    if (size > HW_LONGEST_JOINER) return "it is longer than 15 bytes";
    return hw_utf8_invalid(joiner, size) >= 0 ? "it is not valid UTF-8" : NULL;
}

static bool check_text(const hw_config *c, hw_error *err)
{
    size_t bytes;
    const char *fault = *c->text.joiner ? hw_joiner_fault(c->text.joiner, &bytes) : NULL;
    if (fault) return fail(c, err, "text.joiner", NULL, "\"%s\": %s", c->text.joiner, fault);
    if (!strcmp(c->data.source, c->data.target))
        return fail(c, err, "data.target", "data.source", "%s is the suffix of the source side too", c->data.target);
    if (*c->text.joiner && strcmp(c->text.tokenizer, "word"))
        return fail(c, err, "text.joiner", "text.tokenizer", "only the tokenizer word has a joiner, not %s",
                    c->text.tokenizer);
    if (c->data.max_ratio > 0 && c->data.max_ratio < 1)
        return fail(c, err, "data.max_ratio", NULL, "%g is below 1; no pair has a longer side that is the shorter one",
                    c->data.max_ratio);
    return check_sentencepiece(c, err);
}

/* Whoever gives the size of a batch in sentences does not mean the default in tokens. */
static void settle_batch(hw_config *c)
{
    if (c->training.batch_sentences && !hw_config_place(c, "training.batch_tokens")) c->training.batch_tokens = 0;
}

static bool check_training(const hw_config *c, hw_error *err)
{
    if (c->training.batch_tokens && c->training.batch_sentences)
        return fail(c, err, "training.batch_sentences", NULL,
                    "training.batch_tokens is given too; a batch is counted in one of the two, set the other to 0");
    if (!c->training.batch_tokens && !c->training.batch_sentences)
        return fail(c, err, "training.batch_tokens", NULL,
                    "it is 0, and so is training.batch_sentences; one must be given");
    return true;
}

static bool check_averages(const hw_config *c, hw_error *err)
{
    if (c->training.average && c->training.ema > 0)
        return fail(c, err, "training.average", NULL,
                    "training.ema is given too; one average is validated and saved, set the other to 0");
    if (c->training.average && !c->training.average_every && !c->training.validate_every)
        return fail(c, err, "training.average", NULL,
                    "training.average_every and training.validate_every are 0; one must say when weights are taken");
    if (c->training.average_every && !c->training.average)
        return fail(c, err, "training.average_every", NULL, "training.average is 0, so no weights are averaged");
    if (c->training.track_heads == 1)
        return fail(
            c, err, "training.track_heads", NULL,
            "1 pair is too few: roles of heads are chosen on some pairs and scored on others; it is 0, or at least 2");
    if (c->training.track_heads && !c->training.validate_every)
        return fail(c, err, "training.track_heads", NULL,
                    "heads are looked at when the network is validated, and training.validate_every is 0: it never is");
    if (c->training.patience && !c->training.validate_every)
        return fail(c, err, "training.patience", NULL,
                    "it counts validations, and training.validate_every is 0: there are none");
    return true;
}

static const char *const places[] = {"encoder", "decoder", "cross"};
static const char *place_at(int i, const void *unused)
{
    (void)unused;
    return places[i];
}

/* head_diversity.where: each of the places once at most, and one at least. */
static bool check_places(const hw_config *c, hw_error *err)
{
    static const char key[] = "training.head_diversity.where";
    const hw_names *where = &c->training.head_diversity.where;
    for (int i = 0; i < where->count; i++) {
        bool known = false;
        for (int k = 0; k < 3; k++) known |= !strcmp(where->items[i], places[k]);
        char suggestion[HW_SUGGESTION];
        if (!known)
            return fail(c, err, key, NULL, "%.60s is none of encoder, decoder, cross%s", where->items[i],
                        hw_suggestion(hw_nearest(where->items[i], 3, place_at, NULL), suggestion));
        for (int k = 0; k < i; k++)
            if (!strcmp(where->items[i], where->items[k]))
                return fail(c, err, key, NULL, "%s stands there twice", where->items[i]);
    }
    if (!where->count) return fail(c, err, key, NULL, "it is empty; name one of encoder, decoder, cross at least");
    return true;
}

/* Options of a term that the kind does not have are meant for another. */
static bool check_diversity(const hw_config *c, hw_error *err)
{
    int kind = c->training.head_diversity.kind;
    bool cosine = kind == HW_DIVERSITY_OUTPUT || kind == HW_DIVERSITY_SUBSPACE;
    if (!check_places(c, err)) return false;
    if (c->model.heads < 2 && (kind || c->training.drop_head.rate > 0))
        return fail(c, err, kind ? "training.head_diversity.kind" : "training.drop_head.rate", "model.heads",
                    "model.heads is 1: with one head there is nothing to %s", kind ? "diversify" : "drop");
    if (c->training.head_diversity.squared && !cosine)
        return fail(c, err, "training.head_diversity.squared", NULL, "only kinds output and subspace have a cosine");
    if (c->training.head_diversity.diagonal && !cosine && kind != HW_DIVERSITY_POSITION)
        return fail(c, err, "training.head_diversity.diagonal", NULL,
                    "only kinds output, subspace and position leave it open whether a head is paired with itself");
    if (c->training.head_diversity.entropy > 0 && kind != HW_DIVERSITY_POSITION)
        return fail(c, err, "training.head_diversity.entropy", NULL, "only kind position has a term of entropy");
    return true;
}

/* What is saved has the gates in its weights, and nothing else changes these. */
static bool check_gates(const hw_config *c, hw_error *err)
{
    static const char key[] = "training.head_l0.weight";
    const char *other = c->training.ema > 0            ? "training.ema"
                        : c->training.average          ? "training.average"
                        : c->training.keep_checkpoints ? "training.keep_checkpoints"
                                                       : NULL;
    if (!(c->training.head_l0.weight > 0) || !other) return true;
    return fail(c, err, key, other, "with gates of heads there is no %s, whose weights would know nothing of them",
                other);
}

/* The head that is guided is there. */
static bool check_guided(const hw_config *c, hw_error *err)
{
    int64_t layer = hw_guided_layer(c), head = c->training.guided_alignment.head;
    if (!(c->training.guided_alignment.weight > 0)) return true;
    if (layer >= c->model.decoder_layers)
        return fail(c, err, "training.guided_alignment.layer", "model.decoder_layers",
                    "there is no layer %lld; the decoder has %lld, from 0", (long long)layer,
                    (long long)c->model.decoder_layers);
    if (head >= c->model.heads)
        return fail(c, err, "training.guided_alignment.head", "model.heads",
                    "there is no head %lld; a layer has %lld, from 0", (long long)head, (long long)c->model.heads);
    char name[64];
    snprintf(name, sizeof name, "decoder.%lld.cross.%lld", (long long)layer, (long long)head);
    for (int i = 0; i < c->model.removed_heads.count; i++)
        if (!strcmp(c->model.removed_heads.items[i], name))
            return fail(c, err, "training.guided_alignment.head", "model.removed_heads", "%s was removed", name);
    if (!*c->training.guided_alignment.suffix)
        return fail(c, err, "training.guided_alignment.suffix", NULL,
                    "it is empty; it is the suffix of the alignment's file, such as align");
    return true;
}

int64_t hw_guided_layer(const hw_config *c)
{
    int64_t layer = c->training.guided_alignment.layer, layers = c->model.decoder_layers;
    return layer >= 0 ? layer : layers > 1 ? layers - 2 : 0;
}

static bool check_decoding(const hw_config *c, hw_error *err)
{
    char message[512];
    const char *key, *other;
    if (!hw_decoding_fault(&c->decoding, &key, &other, message)) return true;
    return fail(c, err, key, other, "%s", message);
}

/* ---- warnings ---------------------------------------------------------------------------------------------------- */

static void warn(hw_config *c, hw_names *warnings, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void warn(hw_config *c, hw_names *warnings, const char *key, const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const char **items = hw_arena_calloc(c->arena, (size_t)warnings->count + 1, sizeof *items);
    if (warnings->count) memcpy(items, warnings->items, (size_t)warnings->count * sizeof *items);
    items[warnings->count++] = hw_arena_string(c->arena, "%s: %s: %s", place_of(c, key, NULL), key, message);
    warnings->items = items;
}

/* Has an attention of one of the places two heads at least, after those removed? A head's name begins with its
 * attention's. */
static bool has_two_heads(const hw_config *c, const char *const *of, int count)
{
    const hw_names *removed = &c->model.removed_heads;
    for (int i = 0; i < count; i++) {
        bool encoder = !strcmp(of[i], "encoder"), cross = !strcmp(of[i], "cross");
        int64_t layers = encoder ? c->model.encoder_layers : c->model.decoder_layers;
        for (int64_t layer = 0; layer < layers; layer++) {
            char start[64];
            int length = snprintf(start, sizeof start, "%s.%lld.%s.", encoder ? "encoder" : "decoder", (long long)layer,
                                  cross ? "cross" : "self");
            int64_t heads = c->model.heads;
            for (int r = 0; r < removed->count; r++) heads -= !strncmp(removed->items[r], start, (size_t)length);
            if (heads > 1) return true;
        }
    }
    return false;
}

/* Not an error, since the configuration of a model without heads keeps how it was trained. */
static void warn_of_one_head(hw_config *c, hw_names *warnings)
{
    const hw_names *where = &c->training.head_diversity.where;
    if (c->training.head_diversity.kind && !has_two_heads(c, where->items, where->count))
        warn(c, warnings, "training.head_diversity.where",
             "model.removed_heads leaves one head in each of these attentions: there is nothing to diversify");
    if (c->training.drop_head.rate > 0 && !has_two_heads(c, places, 3))
        warn(c, warnings, "training.drop_head.rate",
             "model.removed_heads leaves one head in each attention: there is nothing to drop");
}

static void add_warnings(hw_config *c, hw_names *warnings)
{
    if (c->training.max_steps < c->training.warmup_steps)
        warn(c, warnings, "training.max_steps",
             "%lld %s fewer than training.warmup_steps %lld, so the learning rate never reaches "
             "training.learning_rate",
             (long long)c->training.max_steps, hw_plural(c->training.max_steps, "step is", "steps are"),
             (long long)c->training.warmup_steps);
    if (c->training.head_l0.weight > 0 && !*c->training.init_from)
        warn(c, warnings, "training.head_l0.weight",
             "gates close heads before these have learned anything; begin with a trained model, training.init_from");
    warn_of_one_head(c, warnings);
    if (c->training.schedule == HW_SCHEDULE_NOAM && c->training.learning_rate < 0.05)
        warn(c, warnings, "training.learning_rate",
             "with schedule noam it is a factor of about 1, not a rate; %g will hardly train",
             c->training.learning_rate);
}

bool hw_config_check(hw_config *config, hw_names *warnings, hw_error *err)
{
    settle_batch(config);
    if (!check_model(config, err) || !check_removed_heads(config, err) || !check_data(config, err) ||
        !check_model_dir(config, err) || !check_text(config, err) || !check_training(config, err) ||
        !check_averages(config, err) || !check_diversity(config, err) || !check_gates(config, err) ||
        !check_guided(config, err) || !check_decoding(config, err))
        return false;
    if (warnings) add_warnings(config, warnings);
    return true;
}
