/* Guided alignment: the links of a corpus reach the tokens they belong to whatever is dropped, shuffled, cut or kept in
 * a file; training by them teaches the head that was named; and runs with it are as repeatable as runs without. The
 * gradient of the term stands in test_gradient.c. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

#include "support_files.h"
#include "support_text.h"
#include "support_train.h"

Suite *test_guided(void);

static hw_arena *arena;
static hw_tokenizer *tokenizer;

static void begin(void)
{
    scratch_begin_in_memory();
    arena = scratch_arena();
}

static void end(void)
{
    hw_tokenizer_free(tokenizer);
    tokenizer = NULL;
    scratch_end();
}

/* ---- the term ---------------------------------------------------------------------------------------------------- */

START_TEST(cross_entropy_of_known_rows)
{
    static const int64_t start[] = {0, 2}, two[] = {2, 1}, keys_start[] = {0, 2}, keys_length[] = {2, 3};
    const hw_attention_blocks blocks = {2, {2, start, two}, {2, keys_start, keys_length}, false};
    /* [2 heads][2 queries][2 keys], then [2][1][3] */
    static const hw_real weights[] = {0.5, 0.5, 1, 0, 0.25, 0.75, 0, 1, 1, 0, 0, 0.5, 0.25, 0.25};
    static const int64_t first[] = {0, 1, 1, 3};
    static const int32_t wanted[] = {1, 0, 2};
    hw_tape *t = hw_tape_new();
    hw_tape_reset(t, HW_INFERENCE);
    hw_tensor *w = hw_reshape(t, hw_tape_matrix(t, 1, 14, weights, false), 1, (int64_t[]){14});
    const double should[2][3] = {{-log(0.5), 0, -log(1e-30) / 2}, {-log(0.75), 0, -(log(0.5) + log(0.25)) / 2}};
    for (int h = 0; h < 2; h++) {
        const hw_tensor *y = hw_head_targets(t, w, &blocks, h, first, wanted);
        for (int i = 0; i < 3; i++) ck_assert_double_eq_tol((double)y->data[i], should[h][i], 1e-5);
    }
    hw_tape_free(t);
}
END_TEST

/* ---- links ------------------------------------------------------------------------------------------------------- */

/* A side whose tokens are all unknown but for what `words` says. */
static hw_side side_of(const char *suffix, const char *words)
{
    return (hw_side){suffix, tokenizer, vocabulary_of(arena, words)};
}

static hw_corpus *load(const hw_side *source, const hw_side *target, const hw_corpus_options *options)
{
    hw_error err = {""};
    const char *path = scratch_path("d"); /* the directory itself is one up */
    hw_corpus *corpus = hw_corpus_load(hw_arena_string(arena, "%.*s", (int)strlen(path) - 2, path), "train", source,
                                       target, options, &err);
    ck_assert_msg(corpus != NULL, "%s", err.message);
    return corpus;
}

/* What a batch has for each pair, "3: 0-1 2-2|5:|": its line and its links. */
static const char *links_text(const hw_batch *batch)
{
    const char *text = "";
    ck_assert_ptr_nonnull(batch->links);
    for (int64_t b = 0; b < batch->sentences; b++) {
        text = hw_arena_string(arena, "%s%d:", text, (int)batch->lines[b]);
        for (int64_t i = 0; i < batch->links[b].count; i++) {
            const hw_link *l = &batch->links[b].links[i];
            ck_assert_int_lt(l->source, batch->source.length[b] - 1);
            ck_assert_int_lt(l->target, batch->target.length[b] - 1);
            text = hw_arena_string(arena, "%s %d-%d", text, l->source, l->target);
        }
        text = hw_arena_string(arena, "%s|", text);
    }
    return text;
}

static hw_batch *whole_batch(const hw_corpus *corpus)
{
    hw_batcher b = hw_batcher_new(corpus, &(hw_batcher_options){.sentences = 1000, .in_order = true});
    return hw_batcher_next(&b, arena);
}

START_TEST(links_stay_with_their_pairs)
{
    tokenizer = tokenizer_of("word", NULL);
    hw_side source = side_of("en", "a b"), target = side_of("fr", "x y");
    scratch_text("train.en", "a b\n\na b a\na a a a\nb\na b\n");
    scratch_text("train.fr", "x y\nx\ny x\ny\nb\nx y\n");
    scratch_text("train.align", "1-0 0-1 0p1\n\n2-1 1p0 0-1\n3-0\n\n0-0\n"); /* 4 is long, 6 stood there before */
    hw_corpus *corpus =
        load(&source, &target, &(hw_corpus_options){.alignment = "align", .max_length = 3, .drop_duplicates = true});
    ck_assert_int_eq(hw_corpus_count(corpus)->aligned, 2);
    hw_batch *batch = whole_batch(corpus);
    ck_assert_str_eq(links_text(batch), "1: 1-0 0-1|3: 1-0 0-1 2-1|5:|");
    /* shards put the longest first, micro-batches are views of them */
    hw_batch *shards = hw_batch_shards(arena, batch, 2);
    ck_assert_str_eq(links_text(&shards[0]), "3: 1-0 0-1 2-1|");
    ck_assert_str_eq(links_text(&shards[1]), "1: 1-0 0-1|5:|");
    int64_t count;
    hw_batch *micro = hw_batch_micro(arena, &shards[1], 3, &count);
    ck_assert_int_eq(count, 2);
    ck_assert_str_eq(links_text(&micro[1]), "5:|");
    hw_corpus_free(corpus);
    corpus = load(&source, &target, NULL);
    ck_assert_ptr_null(whole_batch(corpus)->links);
    hw_corpus_free(corpus);
}
END_TEST

/* Links of words without end would be more links of tokens than memory holds. */
START_TEST(long_words_are_not_linked)
{
    hw_error err;
    char word[1101] = "";
    memset(word, 'a', sizeof word - 1);
    tokenizer = tokenizer_of("char", NULL);
    hw_side source = side_of("en", "a"), target = side_of("fr", "a");
    scratch_text("train.en", hw_arena_string(arena, "a\nb %s\n", word));
    scratch_text("train.fr", hw_arena_string(arena, "a\n%s\n", word));
    scratch_text("train.align", "0-0\n0-0\n");
    hw_corpus *corpus = load(&source, &target, &(hw_corpus_options){.alignment = "align"});
    ck_assert_int_eq(whole_batch(corpus)->links[1].count, 1100);
    hw_corpus_free(corpus);
    const char *align = scratch_text("train.align", "0-0\n0-0 1-0\n"), *directory = scratch_root();
    ck_assert_ptr_null(
        hw_corpus_load(directory, "train", &source, &target, &(hw_corpus_options){.alignment = "align"}, &err));
    ck_assert_str_eq(err.message,
                     hw_arena_string(arena,
                                     "%s:2: these links of words would be more than 1048576 links of tokens, so long "
                                     "are the words; leave the pair out, or set data.max_length",
                                     align));
}
END_TEST

/* Another alignment is another corpus, and none is none. */
START_TEST(fingerprints_know_links)
{
    static const char *const alignments[] = {"0-0\n\n", "\n0-0\n", "0-1\n\n", "0p0\n\n", "\n\n"};
    uint64_t prints[6];
    tokenizer = tokenizer_of("word", NULL);
    hw_side source = side_of("en", "a"), target = side_of("fr", "x");
    scratch_text("train.en", "a a\na a\n");
    scratch_text("train.fr", "x x\nx x\n");
    for (int i = 0; i < 6; i++) {
        if (i < 5) scratch_text("train.align", alignments[i]);
        hw_corpus *corpus = load(&source, &target, i < 5 ? &(hw_corpus_options){.alignment = "align"} : NULL);
        prints[i] = hw_corpus_fingerprint(corpus);
        hw_corpus_free(corpus);
        for (int k = 0; k < i; k++) ck_assert((prints[k] == prints[i]) == (k == 0 && i == 3));
    }
}
END_TEST

static const struct {
    const char *name, *joiner, *source, *target, *align, *links;
} cuts[] = {
    {"word", "@@", "the bo@@ ra@@ ti", "un bor", "0-0 1-1 2-1",
     "0-0 1-1 2-1 1-2 2-2"},                                                      /* words: what blanks separate */
    {"word", "@@", "the borati", "un bor", "1-1", "1-1 2-1 3-1 1-2 2-2 3-2"},     /* cut here: bo@@ ra@@ ti, bo@@ r */
    {"char", NULL, "ab c", "d ef", "0-1 1-0", "2-0 3-0 0-1 1-1 0-2 1-2 0-3 1-3"}, /* a b _ c and d _ e f */
};

START_TEST(pieces_have_the_links_of_their_word)
{
    tokenizer = tokenizer_of(cuts[_i].name, cuts[_i].joiner);
    hw_side source = side_of("en", "the bo@@ ra@@ ti a b c"), target = side_of("fr", "un bo@@ r d e f");
    scratch_text("train.en", hw_arena_string(arena, "%s\n", cuts[_i].source));
    scratch_text("train.fr", hw_arena_string(arena, "%s\n", cuts[_i].target));
    scratch_gzip("train.links.gz", hw_arena_string(arena, "%s\n", cuts[_i].align));
    hw_corpus *corpus = load(&source, &target, &(hw_corpus_options){.alignment = "links"});
    ck_assert_str_eq(links_text(whole_batch(corpus)), hw_arena_string(arena, "1: %s|", cuts[_i].links));
    hw_corpus_free(corpus);
}
END_TEST

/* The text of a token of a sentence, U+2581 at its beginning left out. */
static const char *piece_text(const hw_side *side, const int32_t *ids, int64_t i)
{
    const char *piece = hw_vocabulary_token(side->vocabulary, ids[i], NULL);
    return strncmp(piece, "\xE2\x96\x81", 3) ? piece : piece + 3;
}

/* A model for which a word at the beginning is other pieces than elsewhere: a message of protocol buffers goes on with
 * fields that stand in place of those before, here normalizer_spec.add_dummy_prefix. */
static const char *without_dummy_prefix(const char *model)
{
    static const char more[] = {0x1A, 2, 0x18, 0};
    size_t size;
    char *bytes = scratch_read(model, &size);
    char *all = hw_arena_alloc(arena, size + sizeof more);
    memcpy(all, bytes, size);
    memcpy(all + size, more, sizeof more);
    free(bytes);
    return scratch_write("plain.model", all, size + sizeof more);
}

/* However SentencePiece's pieces are drawn, those that a word's tokens are linked to spell the word it is linked to. */
START_TEST(links_follow_other_cuts)
{
    hw_error err;
    hw_tokenizer_options o = {.name = "sentencepiece", .model = "tests/fixtures/sentencepiece/unigram.model"};
    if (_i == 1) o.model = "tests/fixtures/sentencepiece/foreign.model";
    if (_i == 2) o.model = without_dummy_prefix(o.model);
    tokenizer = hw_tokenizer_new(&o, &err);
    ck_assert_msg(tokenizer, "%s", err.message);
    const hw_vocabulary *v = hw_tokenizer_vocabulary(tokenizer, arena);
    hw_side source = {"en", tokenizer, v}, target = {"fr", tokenizer, v};
    /* The fourth word, a blank of no width, is nothing to the first model. */
    scratch_text("train.en", "lebodaé ba \xE2\x98\x83 \xE2\x80\x8B sonsariden\n");
    scratch_text("train.fr", "sonsariden lebodaé ba \xE2\x98\x83\n");
    scratch_text("train.align", "4-0 0-1 1-2 2-3\n");
    hw_corpus *corpus = load(&source, &target, &(hw_corpus_options){.alignment = "align"});
    hw_sampler *s = hw_sampler_new(tokenizer, v, _i == 1 ? 0.4 : 0.2, &err);
    ck_assert_msg(s, "%s", err.message);
    hw_batcher b = hw_batcher_new(
        corpus, &(hw_batcher_options){.seed = 3, .sentences = 1, .source_sampler = s, .target_sampler = s});
    int64_t shortest = INT64_MAX, longest = 0;
    for (int epoch = 0; epoch < 200; epoch++) {
        const hw_batch *batch = hw_batcher_next(&b, arena);
        const hw_pair_links *l = &batch->links[0];
        int64_t tokens = batch->target_rows - 1, next = 0;
        shortest = tokens < shortest ? tokens : shortest;
        longest = tokens > longest ? tokens : longest;
        const char *word = "", *own = "";
        for (int64_t t = 0; t < tokens; t++) { /* every target token has links to all of one word */
            int64_t from = next;
            const char *linked = "";
            for (; next < l->count && l->links[next].target == t; next++)
                linked = hw_arena_string(arena, "%s%s", linked,
                                         piece_text(&source, batch->source_ids, l->links[next].source));
            ck_assert_int_gt(next, from);
            bool starts = !strncmp(hw_vocabulary_token(v, batch->target_out[t], NULL), "\xE2\x96\x81", 3);
            if (starts) ck_assert_str_eq(own, word);
            own = hw_arena_string(arena, "%s%s", starts ? "" : own, piece_text(&target, batch->target_out, t));
            word = linked;
        }
        ck_assert_str_eq(own, word);
        ck_assert_int_eq(next, l->count);
    }
    ck_assert_int_lt(shortest, longest); /* the cuts do differ */
    hw_sampler_free(s);
    hw_corpus_free(corpus);
}
END_TEST

START_TEST(a_corpus_in_a_file_has_the_same_links)
{
    tokenizer = tokenizer_of("word", NULL);
    hw_side source = side_of("en", "a b"), target = side_of("fr", "x y");
    hw_random random = hw_random_new(5, 5);
    char *text[3] = {"", "", ""};
    for (int i = 0; i < 500; i++) {
        int n = 1 + (int)hw_random_below(&random, 6), m = 1 + (int)hw_random_below(&random, 6);
        for (int k = 0; k < n; k++) text[0] = hw_arena_string(arena, "%sa%s", text[0], k + 1 < n ? " " : "\n");
        for (int k = 0; k < m; k++) text[1] = hw_arena_string(arena, "%sx%s", text[1], k + 1 < m ? " " : "\n");
        for (int k = (int)hw_random_below(&random, 4); k > 0; k--)
            text[2] = hw_arena_string(arena, "%s%d-%d ", text[2], (int)hw_random_below(&random, (uint64_t)n),
                                      (int)hw_random_below(&random, (uint64_t)m));
        text[2] = hw_arena_string(arena, "%s\n", text[2]);
    }
    scratch_text("train.en", text[0]);
    scratch_text("train.fr", text[1]);
    scratch_text("train.align", text[2]);
    const char *scratch = scratch_path("");
    hw_corpus *corpora[] = {
        load(&source, &target, &(hw_corpus_options){.alignment = "align"}),
        load(&source, &target, &(hw_corpus_options){.alignment = "align", .scratch = scratch, .memory = 1000})};
    ck_assert(hw_corpus_fingerprint(corpora[0]) == hw_corpus_fingerprint(corpora[1]));
    const hw_batcher_options o = {.seed = 7, .sentences = 37};
    hw_batcher b[] = {hw_batcher_new(corpora[0], &o), hw_batcher_new(corpora[1], &o)};
    for (int i = 0; i < 40; i++)
        ck_assert_str_eq(links_text(hw_batcher_next(&b[0], arena)), links_text(hw_batcher_next(&b[1], arena)));
    for (int i = 0; i < 2; i++) hw_corpus_free(corpora[i]);
}
END_TEST

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static train_call call;

/* The alignment of a made-up set, whose target is its source reversed. */
static const char *reversed(const char *name)
{
    char *text = scratch_read(scratch_path(name), NULL), *place = NULL;
    const char *out = "";
    for (char *line = strtok_r(text, "\n", &place); line; line = strtok_r(NULL, "\n", &place)) {
        int words = 1;
        for (const char *c = line; *c; c++) words += *c == ' ';
        for (int i = 0; i < words; i++) out = hw_arena_string(arena, "%s%d-%d ", out, i, words - 1 - i);
        out = hw_arena_string(arena, "%s\n", out);
    }
    free(text);
    return out;
}

static void begin_run(void)
{
    begin();
    train_corpus("data", NULL);
    scratch_text("data/train.align", reversed("data/train.en"));
    scratch_text("data/valid.align", reversed("data/valid.en"));
    call = (train_call){0};
}

#define BLANK_38 "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
#define GUIDED "training.guided_alignment.weight=0.5;"

/* The alignment error rates of decoder.0.cross.0 and .1, where words are predicted and where they are fed. */
static void error_rates(const char *directory, double aer[2][2])
{
    hw_error err;
    hw_bundle *bundle = hw_bundle_load(directory, &err);
    ck_assert_msg(bundle != NULL, "%s", err.message);
    hw_study_set set;
    ck_assert_msg(hw_study_set_load(arena, bundle, scratch_path("data"), "valid", &set, &err), "%s", err.message);
    hw_runner *runner = hw_runner_new(bundle->network);
    const hw_linkings *l = hw_link_heads(runner, bundle->network, &set, arena);
    for (int i = 0; i < l->count; i++) {
        const hw_linking *x = &l->items[i];
        if (!x->is_head || x->norms) continue;
        hw_tally tally;
        hw_linking_tally(l, i, &tally);
        aer[x->name[strlen(x->name) - 1] - '0'][!strcmp(x->step, "fed")] = hw_tally_score(&tally);
        hw_tally_clear(&tally);
    }
    hw_runner_free(runner);
    hw_bundle_free(bundle);
}

/* More pairs than train_corpus has, since 40 are learned by heart. */
static void larger_corpus(int pairs)
{
    hw_random random = hw_random_new(3, 3);
    char *text[2] = {hw_arena_calloc(arena, (size_t)pairs, 64), hw_arena_calloc(arena, (size_t)pairs, 64)};
    for (int i = 0; i < pairs; i++) {
        int words[6], count = 2 + (int)hw_random_below(&random, 5);
        for (int k = 0; k < count; k++) words[k] = (int)hw_random_below(&random, 12);
        for (int k = 0; k < count; k++) {
            const char *end = k + 1 < count ? " " : "\n";
            sprintf(text[0] + strlen(text[0]), "w%d%s", words[k], end);
            sprintf(text[1] + strlen(text[1]), "w%d%s", words[count - 1 - k], end);
        }
    }
    scratch_text("data/train.en", text[0]);
    scratch_text("data/train.fr", text[1]);
    scratch_text("data/train.align", reversed("data/train.en"));
}

/* The head that is named, in the step that is named, aligns far better than in the run without it. */
START_TEST(the_named_head_learns_to_align)
{
    const char *common = "training.max_steps=200;training.validate_every=200;training.save_every=0;"
                         "training.batch_sentences=30;training.micro_batch_tokens=0";
    int head = _i % 2, fed = _i / 2;
    larger_corpus(600);
    train_whole(train_config(arena, "without", common), 2);
    train_whole(train_config(arena, "with",
                             hw_arena_string(arena,
                                             "%s;" GUIDED "training.guided_alignment.head=%d;"
                                             "training.guided_alignment.step=%s",
                                             common, head, fed ? "fed" : "predicted")),
                2);
    double before[2][2], after[2][2];
    error_rates(scratch_path("without"), before);
    error_rates(scratch_path("with"), after);
    ck_assert_msg(after[head][fed] < 0.35 && after[head][fed] < before[head][fed] - 0.2,
                  "head %d, fed %d: %g with it, %g without; the other head %g", head, fed, after[head][fed],
                  before[head][fed], after[1 - head][fed]);
}
END_TEST

START_TEST(weight_0_gives_the_bits_of_none)
{
    train_whole(train_config(arena, "zero",
                             "training.guided_alignment.weight=0;training.guided_alignment.head=1;"
                             "training.keep_checkpoints=1"),
                1);
    remove(scratch_path("data/train.align")); /* and no file is read */
    train_whole(train_config(arena, "none", "training.keep_checkpoints=1"), 1);
    same_but_configuration("none", "zero");
}
END_TEST

static const char *const repeated[] = {
    GUIDED,
    GUIDED "training.guided_alignment.step=fed;training.head_diversity.kind=position;training.drop_head.rate=0.2",
    GUIDED "text.tokenizer=char;training.micro_batch_tokens=0;data.max_length=20",
};

START_TEST(threads_and_interruptions_change_no_byte)
{
    train_whole_and_in_parts(arena, repeated[_i], (const int64_t[]){3, 5, 9, 14, 0});
    char *log = scratch_read(scratch_path("whole/train.tsv"), NULL);
    ck_assert_ptr_nonnull(strstr(log, "\tguided_alignment\n"));
    free(log);
}
END_TEST

/* Each setting counts: no two of these runs end with the same weights. */
START_TEST(every_setting_counts)
{
    static const char *const settings[] = {
        "",
        GUIDED,
        GUIDED "training.guided_alignment.weight=0.25",
        GUIDED "training.guided_alignment.head=1",
        GUIDED "training.guided_alignment.step=fed",
        GUIDED "training.guided_alignment.suffix=other",
        GUIDED "training.head_diversity.kind=output",
    };
    enum { RUNS = sizeof settings / sizeof *settings };
    char *bytes[RUNS];
    size_t sizes[RUNS];
    scratch_text("data/train.other", "0-0\n\n" BLANK_38);
    for (int i = 0; i < RUNS; i++) {
        train_whole(train_config(arena, hw_arena_string(arena, "run%d", i), settings[i]), 2);
        bytes[i] = scratch_read(scratch_path(hw_arena_string(arena, "run%d/model.safetensors", i)), &sizes[i]);
        for (int k = 0; k < i; k++)
            ck_assert_msg(sizes[i] != sizes[k] || memcmp(bytes[i], bytes[k], sizes[i]), "runs %d and %d are the same",
                          i, k);
    }
    for (int i = 0; i < RUNS; i++) free(bytes[i]);
}
END_TEST

START_TEST(what_is_known_of_it_is_said)
{
    train_until(&call, train_config(arena, "m", GUIDED "training.max_steps=1"), 0);
    ck_assert_msg(strstr(call.said, "guided alignment: 40 of 40 pairs have links for decoder.0.cross.0\n"), "%s",
                  call.said);
    hw_error err;
    const char *text = hw_train_dry_run(train_config(arena, "n", GUIDED), arena, &err);
    ck_assert_msg(text && strstr(text, "\nalignment    40 of 40 pairs have links for decoder.0.cross.0\n"), "%s",
                  text ? text : err.message);
}
END_TEST

START_TEST(another_alignment_is_not_gone_on_with)
{
    const hw_config *c = train_config(arena, "m", GUIDED);
    train_until(&call, c, 5);
    char *text = scratch_read(scratch_path("data/train.align"), NULL);
    *strchr(text, '0') = '1';
    scratch_text("data/train.align", text);
    free(text);
    call = (train_call){0};
    train_refused(&call, c,
                  hw_arena_string(arena,
                                  "%s/train: the training set is not the one that the run in %s began with. Give that "
                                  "one back, begin anew with --overwrite, or begin another run with its weights "
                                  "(training.init_from)",
                                  scratch_path("data"), scratch_path("m")));
    train_refused(&call, train_config(arena, "m", GUIDED "training.guided_alignment.head=1"),
                  hw_arena_string(arena,
                                  "%s holds a run of another configuration: training.guided_alignment.head (there 0, "
                                  "now 1). Go on with that one, choose another training.model_dir, or begin anew with "
                                  "--overwrite",
                                  scratch_path("m")));
}
END_TEST

/* ---- bad input --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *text, *message; /* DIR is the data directory */
} files[] = {
    {NULL, "training.guided_alignment needs an alignment of the training set: DIR/train.align: there is no such file, "
           "nor DIR/train.align.gz"},
    {"0-0\n0-0\n", "DIR/train.align has 2 lines, but DIR/train.en has 40; each pair needs a line, empty or not"},
    {"\n" BLANK_38 "\n\n\n", "DIR/train.align has 42 lines, but DIR/train.en has 40; each pair needs a line, empty or "
                             "not"},
    {"\n0-0 1:1\n" BLANK_38, "DIR/train.align:2:5: \"1:1\" is no link; links are i-j (sure) or ipj (possible), counted "
                             "from 0"},
    {"0-0\t7p1\n\n" BLANK_38, "DIR/train.align:1:5: link 7p1 points beyond the pair, which has 6 source and 6 target "
                              "words"},
    {"\n\n" BLANK_38, "DIR/train.align: no pair that is trained on has a link in it, so there is nothing that "
                      "training.guided_alignment could teach"},
    {"\xE9\n\n" BLANK_38, "DIR/train.align:1: byte 1 is 0xE9, which is not valid UTF-8; convert the file to UTF-8"},
};

START_TEST(wrong_files_are_refused)
{
    if (files[_i].text)
        scratch_text("data/train.align", files[_i].text);
    else
        remove(scratch_path("data/train.align"));
    const char *message = "", *at = files[_i].message, *next;
    for (; (next = strstr(at, "DIR")); at = next + 3)
        message = hw_arena_string(arena, "%s%.*s%s", message, (int)(next - at), at, scratch_path("data"));
    message = hw_arena_string(arena, "%s%s", message, at);
    const hw_config *c = train_config(arena, "m", GUIDED);
    train_refused(&call, c, message);
    hw_error err;
    ck_assert_ptr_null(hw_train_dry_run(c, arena, &err));
    ck_assert_str_eq(err.message, message);
}
END_TEST

static const struct {
    const char *settings[3], *message;
} wrong[] = {
    {{"training.guided_alignment.weight=1", "training.guided_alignment.layer=6", NULL},
     "--set: training.guided_alignment.layer: there is no layer 6; the decoder has 6, from 0"},
    {{"training.guided_alignment.weight=1", "training.guided_alignment.head=8", NULL},
     "--set: training.guided_alignment.head: there is no head 8; a layer has 8, from 0"},
    {{"training.guided_alignment.weight=1", "model.removed_heads=decoder.4.cross.0", NULL},
     "--set: training.guided_alignment.head: decoder.4.cross.0 was removed"},
    {{"training.guided_alignment.weight=1", "training.guided_alignment.suffix=", NULL},
     "--set: training.guided_alignment.suffix: it is empty; it is the suffix of the alignment's file, such as align"},
    {{"training.guided_alignment.weight=-1", NULL, NULL},
     "--set: training.guided_alignment.weight: -1 is too small; it must be at least 0"},
    {{"training.guided_alignment.step=both", NULL, NULL},
     "--set: training.guided_alignment.step: both is none of predicted, fed"},
};

START_TEST(wrong_configurations_are_refused)
{
    config_refused(arena, wrong[_i].settings, 3, wrong[_i].message);
}
END_TEST

#define ADD_ROWS(tc, test, table) tcase_add_loop_test(tc, test, 0, sizeof table / sizeof *table)

Suite *test_guided(void)
{
    Suite *s = suite_create("guided");
    TCase *links = tcase_create("links"), *runs = tcase_create("runs"), *bad = tcase_create("bad input");
    tcase_add_checked_fixture(links, begin, end);
    tcase_add_test(links, cross_entropy_of_known_rows);
    tcase_add_test(links, links_stay_with_their_pairs);
    tcase_add_test(links, long_words_are_not_linked);
    tcase_add_test(links, fingerprints_know_links);
    ADD_ROWS(links, pieces_have_the_links_of_their_word, cuts);
    tcase_add_loop_test(links, links_follow_other_cuts, 0, 3);
    tcase_add_test(links, a_corpus_in_a_file_has_the_same_links);
    tcase_add_checked_fixture(runs, begin_run, end);
    tcase_add_loop_test(runs, the_named_head_learns_to_align, 0, 4);
    tcase_add_test(runs, weight_0_gives_the_bits_of_none);
    ADD_ROWS(runs, threads_and_interruptions_change_no_byte, repeated);
    tcase_add_test(runs, every_setting_counts);
    tcase_add_test(runs, what_is_known_of_it_is_said);
    tcase_add_test(runs, another_alignment_is_not_gone_on_with);
    tcase_add_checked_fixture(bad, begin_run, end);
    ADD_ROWS(bad, wrong_files_are_refused, files);
    ADD_ROWS(bad, wrong_configurations_are_refused, wrong);
    suite_add_tcase(s, links);
    suite_add_tcase(s, runs);
    suite_add_tcase(s, bad);
    return s;
}
