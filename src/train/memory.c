/* What a training takes at least, known from configuration, vocabularies and the lengths of the corpus' pairs, so that
 * one that memory cannot hold is refused before the network is made or run. */
#include "run.h"

#include <string.h>

double hw_train_values_bytes(const hw_config *c, double numbers)
{
    double averages = (double)c->training.average + (c->training.average || c->training.ema > 0 ? 2 : 0);
    /* values, the same packed, two moments, a gradient a shard */
    return numbers * (double)sizeof(hw_real) * (4 + (double)c->training.shards + averages);
}

double hw_train_batch_tokens(const hw_config *c, const hw_corpus_counts *n)
{
    double tokens = c->training.batch_tokens > 0
                        ? (double)c->training.batch_tokens
                        : (double)c->training.batch_sentences * (double)n->target_tokens / (double)n->pairs;
    double epoch = (double)(n->target_tokens + n->pairs);
    return tokens < epoch ? tokens : epoch; /* a batch ends with the epoch */
}

/* The largest arrays of a layer on the tape, with their gradients, for the rows of a micro-batch in each shard; tokens: a
 * batch's. */
static double step_bytes(const hw_config *c, double tokens)
{
    double shards = (double)c->training.shards, rows = (double)c->training.micro_batch_tokens;
    if (rows <= 0 || rows > tokens / shards) rows = tokens / shards;
    double encoder = 9 * (double)c->model.width + (double)c->model.feed_forward;
    double decoder = 15 * (double)c->model.width + (double)c->model.feed_forward;
    double row = (double)c->model.encoder_layers * encoder + (double)c->model.decoder_layers * decoder;
    return 2 * shards * rows * row * (double)sizeof(hw_real);
}

/* Heads that were taken out of the attentions whose names begin and go on like this. */
static double removed(const hw_config *c, const char *start, const char *part)
{
    int count = 0;
    for (int i = 0; i < c->model.removed_heads.count; i++) {
        const char *name = c->model.removed_heads.items[i];
        count += !strncmp(name, start, strlen(start)) && strstr(name, part);
    }
    return count;
}

/* How many heads' weights a term of the loss keeps: of the encoder, the decoder's self- and its cross-attention. */
static void kept_weights(const hw_config *c, double heads[3])
{
    double each = (double)c->model.heads;
    memset(heads, 0, 3 * sizeof *heads);
    if (c->training.head_diversity.weight > 0 && hw_diversity_needs_weights(c)) {
        heads[0] = (double)c->model.encoder_layers * each - removed(c, "encoder.", ".self.");
        heads[1] = (double)c->model.decoder_layers * each - removed(c, "decoder.", ".self.");
        heads[2] = (double)c->model.decoder_layers * each - removed(c, "decoder.", ".cross.");
    } else if (c->training.guided_alignment.weight > 0) {
        char layer[64];
        snprintf(layer, sizeof layer, "decoder.%lld.cross.", (long long)hw_guided_layer(c));
        heads[2] = each - removed(c, layer, "");
    }
}

/* Bytes of attention weights and their gradients that are kept of the pair that has most of them, which is *largest. */
static double weights_bytes(const hw_config *c, const hw_corpus *corpus, int64_t *largest)
{
    double heads[3], most = 0;
    kept_weights(c, heads);
    for (int64_t i = 0; heads[2] > 0 && i < hw_corpus_count(corpus)->pairs; i++) {
        double source = (double)hw_corpus_source(corpus, i).count + 1;
        double target = (double)hw_corpus_target(corpus, i).count + 1;
        double numbers = heads[0] * source * source + heads[1] * target * target + heads[2] * source * target;
        if (numbers > most) most = numbers, *largest = i;
    }
    return 2 * most * (double)sizeof(hw_real);
}

static bool weights_fit(const hw_config *c, const hw_corpus *corpus, double others, hw_error *err)
{
    int64_t pair = 0;
    double weights = weights_bytes(c, corpus, &pair), memory = hw_memory_most(), gib = 1 << 30;
    if (others + weights <= memory) return true;
    return hw_fail(err,
                   "%s/%s, line %lld: the pair has %lld source and %lld target tokens, and a term of the loss (%s) "
                   "keeps the attention weights of a pair, here %.1f GiB, but this process has at most %.1f. "
                   "data.max_length leaves such pairs out",
                   c->data.dir, c->data.train, (long long)hw_corpus_line(corpus, pair),
                   (long long)hw_corpus_source(corpus, pair).count, (long long)hw_corpus_target(corpus, pair).count,
                   c->training.guided_alignment.weight > 0 ? "training.guided_alignment" : "training.head_diversity",
                   weights / gib, memory / gib);
}

bool hw_train_fits(const hw_config *c, const hw_texts *texts, const hw_corpus *corpus, hw_error *err)
{
    hw_transformer_options o = hw_bundle_options(c, hw_vocabulary_size(texts->source_vocabulary),
                                                 hw_vocabulary_size(texts->target_vocabulary));
    int64_t numbers = hw_transformer_size(&o, err);
    if (numbers < 0) return false;
    double values = hw_train_values_bytes(c, (double)numbers), gib = 1 << 30, memory = hw_memory_most();
    double step = corpus ? step_bytes(c, hw_train_batch_tokens(c, hw_corpus_count(corpus))) : 0;
    if (values + step <= memory) return !corpus || weights_fit(c, corpus, values + step, err);
    return hw_fail(err,
                   "training needs at least %.1f GiB of memory, but this process has at most %.1f: %.1f GiB for %.3g "
                   "parameters, their moments, averages, and gradients in each of training.shards %lld, and %.1f GiB "
                   "for a step. Make model.width, model.feed_forward, the numbers of layers, training.shards or "
                   "training.%s smaller",
                   (values + step) / gib, memory / gib, values / gib, (double)numbers, (long long)c->training.shards,
                   step / gib, c->training.micro_batch_tokens ? "micro_batch_tokens" : "batch_tokens");
}
