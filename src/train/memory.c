/* What a training takes at least, known from the configuration and the vocabularies alone, so that one that memory
 * cannot hold is refused before anything is allocated. */
#include "run.h"

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

bool hw_train_fits(const hw_config *c, const hw_texts *texts, const hw_corpus *corpus, hw_error *err)
{
    hw_transformer_options o = hw_bundle_options(c, hw_vocabulary_size(texts->source_vocabulary),
                                                 hw_vocabulary_size(texts->target_vocabulary));
    int64_t numbers = hw_transformer_size(&o, err);
    if (numbers < 0) return false;
    double values = hw_train_values_bytes(c, (double)numbers), gib = 1 << 30, memory = hw_memory_most();
    double step = corpus ? step_bytes(c, hw_train_batch_tokens(c, hw_corpus_count(corpus))) : 0;
    if (values + step <= memory) return true;
    return hw_fail(err,
                   "training needs at least %.1f GiB of memory, but this process has at most %.1f: %.1f GiB for %.3g "
                   "parameters, their moments, averages, and gradients in each of training.shards %lld, and %.1f GiB "
                   "for a step. Make model.width, model.feed_forward, the numbers of layers, training.shards or "
                   "training.%s smaller",
                   (values + step) / gib, memory / gib, values / gib, (double)numbers, (long long)c->training.shards,
                   step / gib, c->training.micro_batch_tokens ? "micro_batch_tokens" : "batch_tokens");
}
