/* Networks of the named sizes, how much work they are and how much memory they take.
 *
 * Sizes, rates of dropout and everything else that decides the work are those that other systems are measured with
 * (docs/benchmarks.md). What does not fit in memory is refused by a reckoning, before anything is allocated. */
#include "cli/bench.h"

#include <string.h>

#include <headwise/bundle.h>

static const struct {
    const char *name;
    int64_t layers, width, feed_forward, heads;
    double dropout;
    int64_t micro_batch_tokens, shards; /* the larger the weights, the more rows pay for reading them; a gradient each */
} sizes[] = {
    {"toy", 2, 64, 256, 4, 0.1, 64, 4},
    {"tiny", 4, 128, 256, 4, 0.3, 96, 4},
    {"small", 6, 256, 1024, 4, 0.1, 256, 4},
    {"base", 6, 512, 2048, 8, 0.1, 256, 2},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static const char *name_at(int i, const void *unused)
{
    (void)unused;
    return sizes[i].name;
}

static void apply(hw_config *c, int size)
{
    c->model.encoder_layers = c->model.decoder_layers = sizes[size].layers;
    c->model.width = sizes[size].width;
    c->model.feed_forward = sizes[size].feed_forward;
    c->model.heads = sizes[size].heads;
    c->model.tied_embeddings = HW_TIE_ALL;
    c->text.shared_vocabulary = true;
    c->training.dropout_embedding = c->training.dropout_residual = sizes[size].dropout;
    c->training.dropout_attention = c->training.dropout_feed_forward = sizes[size].dropout;
    c->training.micro_batch_tokens = sizes[size].micro_batch_tokens;
    c->training.shards = sizes[size].shards;
    c->training.schedule = HW_SCHEDULE_CONSTANT;
    c->training.warmup_steps = 0;
    c->training.learning_rate = 1e-4;
}

/* The row of a size; -1, and the message is printed, where there is none. */
static int find(const hw_cli *cli, const char *size)
{
    for (int i = 0; i < SIZES; i++)
        if (!strcmp(sizes[i].name, size)) return i;
    const char *nearest = hw_nearest(size, SIZES, name_at, NULL);
    if (nearest) {
        hw_cli_say("%s: there is no size %s; did you mean %s?", cli->name, size, nearest);
        return -1;
    }
    hw_cli_say("%s: there is no size %s; sizes are toy, tiny, small and base; --set model.width=N varies them",
               cli->name, size);
    return -1;
}

/* How the keys begin that change the work of any mode, and of those that begin with "training." the ones that change no
 * step. */
static const char *const of_network[] = {"model.", "training.seed=", NULL};
static const char *const of_no_step[] = {
    "training.model_dir",  "training.init_from",  "training.validate_",        "training.track_heads",
    "training.metric",     "training.patience",   "training.ema",              "training.average",
    "training.save_every", "training.keep_checkpoints", "training.guided_alignment", "training.log_every",
    "training.tensorboard", NULL};

static bool begins_with(const char *const *prefixes, const char *text)
{
    for (; *prefixes; prefixes++)
        if (!strncmp(text, *prefixes, strlen(*prefixes))) return true;
    return false;
}

/* A figure must not seem to be that of an option that was never looked at. */
static bool set(hw_config *c, const char *assignment, bool trains, hw_error *err)
{
    if (!hw_config_set(c, assignment, err)) return false;
    if (begins_with(of_network, assignment)) return true;
    if (trains && !strncmp(assignment, "training.", 9) && !begins_with(of_no_step, assignment)) return true;
    return hw_fail(err, "--set: %.*s: it changes nothing here; what does are options of model%s",
                   (int)strcspn(assignment, "="), assignment,
                   trains ? ", and those of training that a step depends on" : " and training.seed");
}

hw_config *hw_bench_config(hw_cli *cli, const char *size, bool trains)
{
    hw_error err;
    int row = find(cli, size);
    if (row < 0) return NULL;
    hw_config *c = hw_config_new(cli->arena);
    apply(c, row);
    bool ok = true;
    for (int i = 0; ok && i < cli->set.count; i++) ok = set(c, cli->set.items[i], trains, &err);
    if (ok && hw_config_check(c, NULL, &err)) return c;
    hw_cli_refuse(&err);
    return NULL;
}

static hw_transformer_options network_options(const hw_config *config, int64_t vocabulary)
{
    return hw_bundle_options(config, vocabulary, vocabulary);
}

hw_transformer *hw_bench_network(const hw_config *config, int64_t vocabulary)
{
    hw_error err;
    hw_transformer_options o = network_options(config, vocabulary);
    hw_transformer *m = hw_transformer_new(&o, false, &err);
    if (!m) {
        hw_cli_refuse(&err);
        return NULL;
    }
    hw_parameters_draw(m->parameters, (uint64_t)config->training.seed);
    return m;
}

/* ---- work -------------------------------------------------------------------------------------------------------- */

double hw_bench_flops(const hw_transformer *m, int64_t source, int64_t target, int64_t beam)
{
    double n = (double)source, t = (double)target, k = (double)beam, source_token, target_token;
    hw_transformer_flops(m, &source_token, &target_token);
    double flops = n * source_token + k * t * target_token;
    for (int i = 0; i < m->attentions; i++) { /* a score and a weighted value for each number of Query, Key and Value */
        const hw_attention_layer *a = hw_transformer_attention(m, i);
        double width = 4.0 * (double)(a->heads * a->head_width);
        if (i < m->options.encoder_layers)
            flops += width * n * n;
        else if ((i - m->options.encoder_layers) % 2 == 0)
            flops += width * k * t * (t + 1) / 2;
        else
            flops += width * k * t * n;
    }
    return flops;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Of the process itself: libraries, and BLAS's own buffers, of which training uses more. */
static const double TRAINING_PROGRAM = 24 << 20, DECODING_PROGRAM = 14 << 20;

static double least(double a, double b) { return a < b ? a : b; }
static double most(double a, double b) { return a > b ? a : b; }

static double parameters(const hw_config *c, int64_t vocabulary)
{
    hw_transformer_options o = network_options(c, vocabulary);
    return (double)hw_transformer_size(&o, NULL);
}

/* What a tape keeps of `rows` rows a side, forward and backward, in numbers: an activation and its gradient for every
 * row and op, and the weights of attention. */
static double tape_numbers(const hw_config *c, double rows, double longest)
{
    double width = (double)c->model.width, inner = (double)c->model.feed_forward;
    double weights = (double)c->model.heads * least(longest + 15, 128);
    double encoder = (double)c->model.encoder_layers * (2 * (9 * width + inner) + weights);
    double decoder = (double)c->model.decoder_layers * (2 * (16 * width + inner) + 2 * weights);
    return rows * (encoder + decoder + 4 * width);
}

double hw_bench_training_bytes(const hw_config *c, int64_t vocabulary, int64_t rows)
{
    double numbers = parameters(c, vocabulary), shards = (double)c->training.shards, longest = (double)rows;
    double batch = most((double)c->training.batch_tokens, longest), micro = most(batch / shards, longest);
    if (c->training.micro_batch_tokens) micro = least(micro, most((double)c->training.micro_batch_tokens, longest));
    double logits = most(1 << 17, 12.0 * (double)vocabulary);
    /* Where sentences are longer than a shard, some shards have none. */
    double tapes = tape_numbers(c, least(shards * micro, batch), longest) + shards * logits;
    /* Values, packed values, two moments, and a gradient a shard. */
    return TRAINING_PROGRAM + (double)sizeof(hw_real) * (numbers * (4 + shards) + tapes) + 256 * batch;
}

double hw_bench_decoding_bytes(const hw_config *c, int64_t vocabulary, int64_t rows, int64_t batch, int64_t beam)
{
    double layers = (double)c->model.decoder_layers, width = (double)c->model.width;
    double hypotheses = (double)batch * (double)beam;
    /* Weights, which are packed one by one; the output layer as the screen keeps it; keys and values of the sources,
     * and of the hypotheses, whose slots have up to twice the rows that they need. */
    double caches = 2 * width * layers * (double)rows * ((double)batch + 2 * hypotheses);
    double step = hypotheses * (20 * width + (double)c->model.feed_forward) * layers;
    double logits = most(1 << 17, 12.0 * (double)vocabulary) * hw_threads();
    double numbers = parameters(c, vocabulary) + (double)vocabulary * width / 2;
    return DECODING_PROGRAM + (double)sizeof(hw_real) * (numbers + caches + step + logits);
}

bool hw_bench_fits(double bytes, hw_error *err)
{
    double needed = bytes / (1 << 20), available = hw_bench_available() / (1 << 20);
    if (needed <= available) return true;
    return hw_fail(err,
                   "about %.0f MiB of memory would be needed, and %.0f are available; a smaller size, vocabulary or "
                   "batch, fewer or shorter sentences, a smaller beam and fewer threads need less",
                   needed, available);
}
