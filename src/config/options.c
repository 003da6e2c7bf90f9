/* The table of options: what a run can be told.
 *
 * One row says an option's key, type, place in hw_config, default, bounds or words, and meaning. Reading YAML, --set,
 * the defaults, --help-config, writing a complete config.yaml and comparing two configurations go by this table; what
 * concerns several options at once stands in check.c. A new option is a field in hw_config and a row here. */
#include "config/options.h"

#include <math.h>
#include <string.h>

#define PLACE(section, name) #section "." #name, offsetof(hw_config, section.name)
#define ROW(section, name, kind, initial, low, high, choices, help)                                                    \
    {PLACE(section, name), HW_OPTION_##kind, initial, low, high, choices, help}
#define INTEGER(section, name, initial, low, high, help) ROW(section, name, INTEGER, initial, low, high, NULL, help)
#define NUMBER(section, name, initial, low, high, help) ROW(section, name, NUMBER, initial, low, high, NULL, help)
#define BOOLEAN(section, name, initial, help) ROW(section, name, BOOLEAN, initial, 0, 0, NULL, help)
#define TEXT(section, name, initial, help) ROW(section, name, TEXT, initial, 0, 0, NULL, help)
#define WORD(section, name, initial, words, help) ROW(section, name, WORD, initial, 0, 0, words, help)
#define CHOICE(section, name, initial, first, words, help) ROW(section, name, CHOICE, initial, first, 0, words, help)
#define NAMES(section, name, help) ROW(section, name, NAMES, "", 0, 0, NULL, help)
#define LIST(section, name, initial, help) ROW(section, name, NAMES, initial, 0, 0, NULL, help)
#define ANY INFINITY /* no upper bound */

const hw_option hw_options[] = {
    /* ---- the network: fixed once training has begun ---- */
    INTEGER(model, encoder_layers, "6", 1, 256, "layers of the encoder"),
    INTEGER(model, decoder_layers, "6", 1, 256, "layers of the decoder"),
    INTEGER(model, width, "512", 2, 65536, "features of a token throughout the network (D); even"),
    INTEGER(model, heads, "8", 1, 1024, "attention heads a layer; divides model.width"),
    INTEGER(model, feed_forward, "2048", 1, 1048576, "features inside a feed-forward layer (F)"),
    CHOICE(model, activation, "relu", HW_CONFIG_RELU, "relu|gelu|swish", "the function inside a feed-forward layer"),
    CHOICE(model, norm, "post", HW_NORM_POST, "post|pre",
           "layer norm after each residual connection, as in the paper, or\n"
           "before each sublayer (deep networks train more easily)"),
    CHOICE(model, tied_embeddings, "output", HW_TIE_ALL, "all|output|none",
           "which matrices are one: source and target embedding and output\n"
           "layer; target embedding and output layer; none"),
    NAMES(model, removed_heads, "heads taken out by pruning, by their names: encoder.0.self.2"),

    /* ---- the corpus: DIR/PREFIX.SUFFIX, plain or .gz ---- */
    TEXT(data, dir, "", "directory of the corpus; files are DIR/PREFIX.SUFFIX or .SUFFIX.gz"),
    TEXT(data, train, "train", "prefix of the training set's files"),
    TEXT(data, valid, "valid", "prefix of the validation set's files"),
    TEXT(data, test, "test", "prefix of the test set's files"),
    TEXT(data, source, "en", "suffix of the source side's files, without the dot"),
    TEXT(data, target, "fr", "suffix of the target side's files, without the dot"),
    INTEGER(data, max_length, "0", 0, ANY,
            "pairs with more tokens on a side are left out of training and\n"
            "counted (0: none are)"),
    NUMBER(data, max_ratio, "0", 0, ANY,
           "pairs whose longer side has more than so many times the tokens of\n"
           "the shorter are left out of training and counted (0: none are)"),
    BOOLEAN(data, drop_identical, "false", "pairs whose sides are the same text are left out of training and counted"),
    BOOLEAN(data, drop_duplicates, "false", "pairs that stood in the training set before are left out and counted"),

    /* ---- from text to tokens ---- */
    WORD(text, tokenizer, "word", "word|char|sentencepiece",
         "how a line is cut into tokens; sentencepiece: into pieces that a model\n"
         "has found in the training set"),
    TEXT(text, joiner, "",
         "end of a token whose word goes on in the next, such as \"@@ \";\n"
         "word tokenizer only (\"\": none)"),
    INTEGER(text, min_count, "1", 1, ANY, "how often a token must stand in the training set to be known"),
    INTEGER(text, max_vocabulary, "0", 0, 2147483647,
            "tokens of a vocabulary at most, special ones included (0: all, or\n"
            "8000 for sentencepiece)"),
    BOOLEAN(text, shared_vocabulary, "false", "one vocabulary for both sides"),
    TEXT(text, model, "",
         "an existing SentencePiece .model for both sides, or a directory with\n"
         "shared.model or source.model and target.model (\"\": those that stand in\n"
         "training.model_dir, else new ones)"),
    WORD(text, model_type, "unigram", "unigram|bpe", "kind of a new SentencePiece model"),
    WORD(text, normalization, "nmt_nfkc", "nmt_nfkc|nfkc|nmt_nfkc_cf|nfkc_cf|identity",
         "how a new SentencePiece model changes text before it cuts it; nfkc:\n"
         "Unicode's compatibility composition, nmt: and spaces made blanks, cf:\n"
         "and capitals made small; identity: not at all"),
    NUMBER(text, character_coverage, "0.9995", 0.9, 1,
           "share of the characters of the training set, rare ones left out, that\n"
           "a new SentencePiece model has pieces for"),
    BOOLEAN(text, byte_fallback, "true",
            "a new SentencePiece model has pieces for the 256 bytes, of which any\n"
            "other character is made: nothing is unknown"),
    INTEGER(text, model_lines, "2000000", 0, ANY,
            "lines that a SentencePiece model is made of at most, evenly over the\n"
            "training set (0: all)"),
    NUMBER(text, sampling, "0", 0, 1,
           "cuts text anew in each epoch of training; unigram: the cut is drawn by\n"
           "probability to this power (0.2); BPE: merges are left out with this\n"
           "probability (0.1) (0: always the best cut)"),

    /* ---- training ---- */
    TEXT(training, model_dir, "", "directory that the model is written to"),
    INTEGER(training, seed, "1", 0, ANY, "seed of initial weights, order of the data and dropout"),
    NUMBER(training, attention_gain, "1", 0.01, 10,
           "factor of the initial weights of queries, keys and values; 0.7071, as\n"
           "if the three were drawn as one matrix, lets post-norm learn sooner"),
    INTEGER(training, max_steps, "100000", 1, ANY, "updates of the weights"),
    INTEGER(training, batch_tokens, "4096", 0, ANY,
            "target tokens of a batch at most, </s> included; 0 where\n"
            "training.batch_sentences says how large a batch is"),
    INTEGER(training, batch_sentences, "0", 0, ANY,
            "sentence pairs of a batch at most (0: training.batch_tokens counts)"),
    INTEGER(training, shards, "4", 1, 1024,
            "parts of a batch that are computed side by side, whatever the\n"
            "number of threads; results depend on it in their last bits"),
    INTEGER(training, micro_batch_tokens, "96", 0, ANY,
            "tokens of a shard that are computed at once, so that activations\n"
            "stay in cache (0: the whole shard)"),
    CHOICE(training, optimizer, "adam", HW_ADAM, "adam|adamw",
           "how gradients change weights; adamw decouples weight_decay"),
    NUMBER(training, learning_rate, "0.001", 1e-12, 1000,
           "largest learning rate; with schedule noam the factor before the\n"
           "paper's formula, about 1"),
    CHOICE(training, schedule, "inverse_sqrt", HW_SCHEDULE_CONSTANT, "constant|inverse_sqrt|noam|linear|cosine",
           "learning rate after the warm-up: the same; falling with the root of\n"
           "the step; the paper's formula; falling to 0 at max_steps in a line or\n"
           "half a cosine"),
    INTEGER(training, warmup_steps, "4000", 0, ANY, "steps in which the learning rate rises in a line from 0"),
    NUMBER(training, beta1, "0.9", 0, 0.999999, "decay of Adam's mean of gradients, a step"),
    NUMBER(training, beta2, "0.98", 0, 0.999999, "decay of Adam's mean of squared gradients, a step"),
    NUMBER(training, epsilon, "1e-9", 1e-20, 1, "added to the root in Adam's denominator"),
    NUMBER(training, weight_decay, "0", 0, 100, "pull of the weights towards 0"),
    NUMBER(training, label_smoothing, "0.1", 0, 0.99,
           "share of the probability that is spread over the whole vocabulary"),
    NUMBER(training, clip_norm, "1", 0, ANY, "gradients are scaled down to this norm (0: never)"),
    NUMBER(training, dropout_embedding, "0.1", 0, 0.99, "share of the embeddings' numbers set to 0"),
    NUMBER(training, dropout_residual, "0.1", 0, 0.99, "share of each sublayer's output set to 0"),
    NUMBER(training, dropout_attention, "0.1", 0, 0.99, "share of the attention weights set to 0"),
    NUMBER(training, dropout_feed_forward, "0.1", 0, 0.99, "share of the numbers inside feed-forward layers set to 0"),
    CHOICE(training, head_diversity.kind, "none", HW_DIVERSITY_NONE, "none|output|subspace|position|orthogonal",
           "what pushes the heads of an attention apart, as a term of the loss:\n"
           "the cosine of their outputs; that of their values; the product of\n"
           "their weights; |A A' - I|^2 of a query's weights A of all heads"),
    NUMBER(training, head_diversity.weight, "1", 0, ANY,
           "factor of that term, a mean over rows and attentions (0: no term)"),
    LIST(training, head_diversity.where, "encoder,decoder,cross",
         "attentions that have the term: any of encoder, decoder, cross"),
    CHOICE(training, head_diversity.schedule, "constant", HW_STRENGTH_CONSTANT, "constant|rise|fall|v",
           "how strong the term is: all along the same; from 0 in a line to the\n"
           "whole at max_steps; the other way; down to 0 in warmup_steps and up\n"
           "again"),
    BOOLEAN(training, head_diversity.diagonal, "false",
            "pairs of a head with itself belong to the mean (output, subspace,\n"
            "position)"),
    BOOLEAN(training, head_diversity.squared, "false",
            "the cosine's square, which wants right angles, not opposite heads\n"
            "(output, subspace)"),
    NUMBER(training, head_diversity.entropy, "0", 0, ANY,
           "position: factor, within the term, of the heads' mean entropy over\n"
           "its largest, so that heads do not just become flat"),
    NUMBER(training, drop_head.rate, "0", 0, 0.99,
           "how likely a sentence goes without a head in a step (DropHead); one\n"
           "of an attention always stays"),
    CHOICE(training, drop_head.schedule, "constant", HW_STRENGTH_CONSTANT, "constant|rise|fall|v",
           "how the rate changes, as head_diversity.schedule; v is the paper's"),
    NUMBER(training, guided_alignment.weight, "0", 0, ANY,
           "teaches one cross-attention head to align words: factor of a term of\n"
           "the loss, the cross-entropy between the links of a target word in\n"
           "DIR/TRAIN.align and the head's weights, a mean over tokens with links\n"
           "(0: no term, and no file is read)"),
    INTEGER(training, guided_alignment.layer, "-1", -1, 255,
            "decoder layer of that head, from 0 (-1: the last but one, or the only\n"
            "one)"),
    INTEGER(training, guided_alignment.head, "0", 0, 1023, "its number in the layer, from 0"),
    CHOICE(training, guided_alignment.step, "predicted", HW_STEP_PREDICTED, "predicted|fed",
           "where a target word's links are taught: in the step that predicts it,\n"
           "or in the one that it is fed to"),
    TEXT(training, guided_alignment.suffix, "align",
         "suffix of the alignment's file, a line a pair with links i-j or ipj of\n"
         "source word i and target word j, from 0; a line may be empty"),
    NUMBER(training, head_l0.weight, "0", 0, ANY,
           "what an open head costs: factor of the expected number of open heads,\n"
           "whose gates are trained with the network, best from a trained one\n"
           "(training.init_from) (0: no gates)"),
    NUMBER(training, head_l0.learning_rate, "0.05", 1e-12, 1000,
           "largest learning rate of the gates; it changes as learning_rate does"),
    TEXT(training, init_from, "",
         "model directory, or a file of weights in one (no checkpoint), whose\n"
         "weights and vocabularies training begins with (\"\": new ones)"),
    INTEGER(training, validate_every, "1000", 0, ANY,
            "steps between validations, one more is made at the end (0: never)"),
    INTEGER(training, validate_sentences, "0", 0, ANY,
            "pairs of the validation set that are used, from its start (0: all)"),
    INTEGER(training, track_heads, "0", 0, ANY,
            "pairs of the validation set, 2 at least, on which statistics and roles\n"
            "of all heads are taken at every validation, for `heads trace` (0: none;\n"
            "400 will do)"),
    CHOICE(training, metric, "bleu", HW_METRIC_EXACT_MATCH, "exact_match|bleu|chrf|token_accuracy|perplexity|loss",
           "figure on the validation set by which the best model is chosen; of equal\n"
           "ones the lower loss is better"),
    INTEGER(training, patience, "0", 0, ANY,
            "validations in a row without a better one (see metric) that end the run\n"
            "(0: any number goes by)"),
    NUMBER(training, ema, "0", 0, 0.999999,
           "decay a step of the exponential moving average of the weights, which\n"
           "is then what is validated and saved (0: the weights themselves are)"),
    INTEGER(training, average, "0", 0, 1000,
            "how many of the last weights, taken every training.average_every\n"
            "steps, are averaged into what is validated and saved; each takes the\n"
            "room of a model in memory and checkpoint (0: none)"),
    INTEGER(training, average_every, "0", 0, ANY,
            "steps between the weights that are averaged (0: as many as between\n"
            "validations)"),
    INTEGER(training, save_every, "1000", 0, ANY, "steps between checkpoints (0: only at the end)"),
    INTEGER(training, keep_checkpoints, "0", 0, 1000000,
            "how many of the last weights, one every training.save_every steps,\n"
            "are kept as checkpoints/step-N.safetensors"),
    INTEGER(training, log_every, "100", 1, ANY, "steps between lines of the log"),
    BOOLEAN(training, tensorboard, "false",
            "figures of the logs also go to a file that TensorBoard reads, in\n"
            "training.model_dir"),

    /* ---- translating ---- */
    INTEGER(decoding, beam, "1", 1, 1024, "hypotheses kept at each step (1: greedy)"),
    INTEGER(decoding, n_best, "1", 1, 1024,
            "translations given for each line, the best first; at most\n"
            "decoding.beam, or as many samples as are wanted"),
    INTEGER(decoding, min_length, "0", 0, 1000000, "tokens of a translation at least, </s> not counted"),
    INTEGER(decoding, max_length, "0", 0, 1000000,
            "tokens of a translation at most (0: twice the source's and 20 more,\n"
            "or as many as min_length or a prefix has)"),
    NUMBER(decoding, length_penalty, "0.6", 0, 10,
           "alpha of Wu et al. 2016: hypotheses are compared by log-probability\n"
           "over ((5 + tokens) / 6) ^ alpha (0: by log-probability alone)"),
    NUMBER(decoding, coverage_penalty, "0", 0, 100,
           "beta of Wu et al. 2016: to the score of a hypothesis is added beta\n"
           "times the sum over source tokens of log(min(1, attention that they\n"
           "got)), from the mean of the last layer's cross-attention heads"),
    NUMBER(decoding, patience, "1", 0.001, 1000,
           "search goes on until beam times so many hypotheses have finished, or\n"
           "none can become better (Kasai et al. 2022)"),
    INTEGER(decoding, no_repeat_ngram, "0", 0, 1000000,
            "no run of so many tokens stands twice in a translation (0: any may)"),
    BOOLEAN(decoding, sampling, "false",
            "draws each token by its probability in place of searching for the\n"
            "best; needs a beam of 1"),
    NUMBER(decoding, temperature, "1", 0.001, 1000,
           "sampling: logits are divided by it; below 1 likely tokens become\n"
           "likelier, above 1 less so"),
    INTEGER(decoding, top_k, "0", 0, ANY, "sampling: only the so many likeliest tokens are drawn (0: all)"),
    NUMBER(decoding, top_p, "1", 0.000001, 1,
           "sampling: only the likeliest tokens are drawn, the fewest that have\n"
           "this probability together (of those that top_k leaves)"),
    INTEGER(decoding, seed, "1", 0, ANY, "sampling: seed; with it and a line's number all draws are fixed"),
    BOOLEAN(decoding, replace_unknown, "false",
            "an unknown word in a translation is replaced by the source word that\n"
            "was attended most, by the mean of the last layer's cross heads"),
    INTEGER(decoding, longest_source, "0", 0, ANY,
            "tokens of a line that are read; what stands behind them is left out,\n"
            "with a warning (0: 1024, or data.max_length where that is more)"),
    INTEGER(decoding, batch_sentences, "64", 1, 1000000, "sentences translated together; no result depends on it"),
};
const int hw_option_count = sizeof hw_options / sizeof *hw_options;

int hw_option_find(const char *key)
{
    for (int i = 0; i < hw_option_count; i++)
        if (!strcmp(hw_options[i].key, key)) return i;
    return -1;
}

const char *hw_config_key(int i) { return i >= 0 && i < hw_option_count ? hw_options[i].key : NULL; }

bool hw_config_row_at(int i, hw_config_row *row)
{
    if (i < 0 || i >= hw_option_count) return false;
    const hw_option *o = &hw_options[i];
    *row = (hw_config_row){.key = o->key, .help = o->help, .kind = HW_ROW_TEXT, .low = o->low, .high = o->high};
    if (o->kind == HW_OPTION_INTEGER) row->kind = HW_ROW_INTEGER;
    if (o->kind == HW_OPTION_NUMBER) row->kind = HW_ROW_NUMBER;
    if (o->kind == HW_OPTION_BOOLEAN) row->kind = HW_ROW_BOOLEAN;
    return true;
}

bool hw_option_choice(const hw_option *option, int i, char word[64])
{
    const char *at = option->choices;
    for (; at && i > 0; i--) {
        at = strchr(at, '|');
        if (at) at++;
    }
    if (!at) return false;
    snprintf(word, 64, "%.*s", (int)strcspn(at, "|"), at);
    return true;
}
