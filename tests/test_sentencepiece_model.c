/* SentencePiece in a whole model: made by training, found in the directory, taken from elsewhere; a run that is stopped
 * goes on with the same bytes; and the command line around it. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <headwise/decode.h>

#include "support_files.h"
#include "support_model.h"
#include "support_train.h"

#define PIECES "text.tokenizer=sentencepiece;text.max_vocabulary=300;text.character_coverage=1;"
#define UNIGRAM "tests/fixtures/sentencepiece/unigram.model"
#define FOREIGN "tests/fixtures/sentencepiece/foreign.model"

static hw_arena *arena;
static hw_error err;

static void begin(void) { arena = train_begin(); }

static bool there(const char *name) { return hw_file_exists(scratch_path(name)); }

static void copy(const char *from, const char *to)
{
    size_t size;
    char *bytes = scratch_read(from, &size);
    ck_assert_ptr_nonnull(bytes);
    scratch_write(to, bytes, size);
    free(bytes);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static hw_texts texts_of(const hw_config *c)
{
    hw_texts texts;
    ck_assert_msg(hw_texts_new(c, arena, &texts, &err), "%s", err.message);
    return texts;
}

START_TEST(one_model_a_side_or_one_for_both)
{
    hw_texts a = texts_of(train_config(arena, "m", PIECES));
    ck_assert_ptr_ne(a.source_tokenizer, a.target_tokenizer);
    ck_assert_ptr_ne(a.source_vocabulary, a.target_vocabulary);
    hw_config *c = train_config(arena, "m", PIECES "text.shared_vocabulary=true;text.model_type=bpe");
    hw_texts b = texts_of(c);
    ck_assert_ptr_eq(b.source_tokenizer, b.target_tokenizer);
    ck_assert_ptr_eq(b.source_vocabulary, b.target_vocabulary);
    ck_assert_int_le(hw_vocabulary_size(b.source_vocabulary), 300);
    ck_assert(hw_directory_make(scratch_path("m"), &err) && hw_texts_save(&b, c, scratch_path("m"), &err));
    ck_assert(there("m/shared.model") && there("m/shared.vocab") && !there("m/source.vocab"));
    hw_texts read;
    ck_assert_msg(hw_texts_load(c, scratch_path("m"), arena, &read, &err), "%s", err.message);
    ck_assert_uint_eq(hw_vocabulary_fingerprint(read.source_vocabulary),
                      hw_vocabulary_fingerprint(b.source_vocabulary));
    hw_texts_free(&a);
    hw_texts_free(&b);
    hw_texts_free(&read);
}
END_TEST

/* Where a model comes from: the option, a file for both sides or a directory; the model directory; else it is made. */
START_TEST(a_model_can_be_there_already)
{
    hw_texts t = texts_of(train_config(arena, "m", PIECES "text.model=" FOREIGN));
    ck_assert_int_eq(hw_vocabulary_size(t.source_vocabulary), 198);
    ck_assert_int_eq(hw_vocabulary_size(t.target_vocabulary), 198);
    hw_texts_free(&t);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(mkdir(scratch_path(i ? "m" : "other"), 0777), 0);
    copy(FOREIGN, "other/source.model");
    copy(UNIGRAM, "other/target.model");
    t = texts_of(train_config(arena, "m", hw_arena_string(arena, PIECES "text.model=%s", scratch_path("other"))));
    ck_assert_int_eq(hw_vocabulary_size(t.source_vocabulary), 198);
    ck_assert_int_eq(hw_vocabulary_size(t.target_vocabulary), 420);
    hw_texts_free(&t);
    copy(FOREIGN, "m/source.model");
    t = texts_of(train_config(arena, "m", PIECES));
    ck_assert_int_eq(hw_vocabulary_size(t.source_vocabulary), 198);
    ck_assert_int_ne(hw_vocabulary_size(t.target_vocabulary), 198);
    hw_texts_free(&t);
    scratch_text("m/corpus.json", "{}"); /* that of an earlier run, whose models are not to be found again */
    t = texts_of(train_config(arena, "m", PIECES));
    ck_assert_int_ne(hw_vocabulary_size(t.source_vocabulary), 198);
    hw_texts_free(&t);
    hw_config *c = train_config(arena, "n", PIECES "text.model=nowhere.model");
    ck_assert(!hw_texts_new(c, arena, &t, &err));
    ck_assert_str_eq(err.message, "nowhere.model: cannot be read: No such file or directory");
}
END_TEST

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static const char *const runs[] = {
    PIECES,
    PIECES "text.sampling=0.3",
    PIECES "text.sampling=0.3;text.model_type=bpe;text.shared_vocabulary=true;training.batch_sentences=0;"
           "training.batch_tokens=60",
};
enum { RUNS = sizeof runs / sizeof *runs };

START_TEST(a_stopped_run_ends_with_the_same_bytes)
{
    static const int64_t stops[] = {1, 9, 14};
    static train_call call;
    const hw_config *whole = train_config(arena, "whole", runs[_i]), *parts = train_config(arena, "parts", runs[_i]);
    train_whole(whole, 1);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        call = (train_call){.stop_after = stops[i]};
        train_run(&call, parts);
        ck_assert_msg(call.ok && call.result.stopped, "%s", call.err.message);
    }
    train_whole(parts, 2);
    same_directories(scratch_path("whole"), scratch_path("parts"));
    ck_assert(there(_i == 2 ? "parts/shared.model" : "parts/target.model"));
    hw_bundle *b = hw_bundle_load(scratch_path("parts"), &err);
    ck_assert_msg(b, "%s", err.message);
    hw_bundle_free(b);
}
END_TEST

START_TEST(sampling_changes_what_is_learned)
{
    train_whole(train_config(arena, "a", runs[0]), 1);
    train_whole(train_config(arena, "b", runs[1]), 1);
    size_t sizes[2];
    char *a = scratch_read(scratch_path("a/model.safetensors"), &sizes[0]);
    char *b = scratch_read(scratch_path("b/model.safetensors"), &sizes[1]);
    ck_assert(sizes[0] == sizes[1] && memcmp(a, b, sizes[0]));
    free(a);
    free(b);
}
END_TEST

/* Begun anew, a run makes new models; a longer one goes on with those that are there. */
START_TEST(beginning_anew_makes_new_models)
{
    static train_call call;
    train_whole(train_config(arena, "m", PIECES "training.max_steps=3"), 1);
    size_t before, after;
    free(scratch_read(scratch_path("m/source.model"), &before));
    call = (train_call){.overwrite = true};
    train_run(&call,
              train_config(arena, "m", PIECES "text.byte_fallback=false;text.max_vocabulary=25;training.max_steps=3"));
    ck_assert_msg(call.ok, "%s", call.err.message);
    free(scratch_read(scratch_path("m/source.model"), &after));
    ck_assert_uint_lt(after, before);
    train_run(&call, train_config(arena, "m", "training.max_steps=3"));
    ck_assert_msg(call.ok, "%s", call.err.message);
    ck_assert(there("m/source.vocab") && !there("m/source.model") && !there("m/target.model"));
}
END_TEST

static void same_model(const char *name, const char *original)
{
    size_t sizes[2];
    char *a = scratch_read(scratch_path(name), &sizes[0]), *b = scratch_read(original, &sizes[1]);
    ck_assert(a && b && sizes[0] == sizes[1] && !memcmp(a, b, sizes[0]));
    free(a);
    free(b);
}

/* A model that somebody put into the directory is used however often a run begins there, whatever became of the one
 * before: one that could not write its files, one that was killed at its beginning, a whole one. */
START_TEST(a_found_model_stays)
{
    static train_call call;
    const hw_config *c = train_config(arena, "m", PIECES "text.shared_vocabulary=true;training.max_steps=2");
    ck_assert(hw_directory_make(scratch_path("m/shared.vocab"), &err));
    copy(UNIGRAM, "m/shared.model");
    train_refused(&call, c,
                  hw_arena_string(arena, "%s: cannot be written: it is a directory", scratch_path("m/shared.vocab")));
    same_model("m/shared.model", UNIGRAM);
    ck_assert_int_eq(rmdir(scratch_path("m/shared.vocab")), 0);
    for (int i = 0; i < 3; i++) {
        call = (train_call){.overwrite = i == 1};
        train_run(&call, c);
        ck_assert_msg(call.ok, "%s", call.err.message);
        ck_assert_ptr_nonnull(strstr(call.said, hw_arena_string(arena, "text is cut by %s, which was there",
                                                                scratch_path("m/shared.model"))));
        same_model("m/shared.model", UNIGRAM);
        unlink(scratch_path("m/checkpoint.safetensors"));
        unlink(scratch_path("m/model.safetensors"));
    }
    /* one that a run wrote is made anew */
    call = (train_call){.overwrite = true};
    train_run(&call, train_config(arena, "m", PIECES "training.max_steps=2"));
    ck_assert_msg(call.ok && !there("m/shared.model") && !strstr(call.said, "which was there"), "%s", call.err.message);
    train_run(&call, train_config(arena, "m", PIECES "text.max_vocabulary=290;training.max_steps=2"));
    ck_assert_msg(call.ok && !strstr(call.said, "which was there"), "%s", call.err.message);
}
END_TEST

/* Who goes on from a network has its pieces. */
START_TEST(a_network_keeps_its_pieces)
{
    static train_call call;
    train_whole(train_config(arena, "m", PIECES "training.max_steps=1;text.model=" UNIGRAM), 1);
    const char *from = scratch_path("m"), *common = PIECES "training.max_steps=1;training.init_from=";
    train_run(&call, train_config(arena, "other", hw_arena_string(arena, "%s%s;text.model=" FOREIGN, common, from)));
    ck_assert(!call.ok);
    ck_assert_ptr_nonnull(strstr(call.err.message,
                                 hw_arena_string(arena, "training.init_from: %s has other pieces than text.model, "
                                                        FOREIGN, from)));
    ck_assert(!there("other/config.yaml"));
    static const char *const others[] = {UNIGRAM, "moved.model", ""};
    for (int i = 0; i < 3; i++) {
        const char *settings = hw_arena_string(arena, "%s%s;text.model=%s", common, from, others[i]);
        train_whole(train_config(arena, hw_arena_string(arena, "f%d", i), settings), 1);
    }
}
END_TEST

START_TEST(parts_of_different_models_are_refused)
{
    train_whole(train_config(arena, "m", PIECES "training.max_steps=1"), 1);
    copy(FOREIGN, "m/source.model");
    ck_assert_ptr_null(hw_bundle_load(scratch_path("m"), &err));
    hw_vocabulary *v = hw_vocabulary_load(arena, scratch_path("m/source.vocab"), &err);
    const char *directory = hw_arena_string(arena, "%s", scratch_path("m"));
    ck_assert_str_eq(err.message,
                     hw_arena_string(arena,
                                     "%s/source.vocab has %d tokens, but the model %s/source.model has 198, special "
                                     "tokens included; they do not belong together",
                                     directory, hw_vocabulary_size(v), directory));
    unlink(scratch_path("m/source.model"));
    ck_assert_ptr_null(hw_bundle_load(directory, &err));
    ck_assert_str_eq(err.message,
                     hw_arena_string(arena, "%s/source.model: cannot be read: No such file or directory", directory));
    /* both parts of another model: then it is the network that does not fit */
    copy(FOREIGN, "m/source.model");
    const outcome *o = RUN("vocab", "-q", "--train", scratch_path("m/source.model"), "--max-size", "25",
                           "--no-byte-fallback", "--coverage", "1", scratch_path("data/train.en"));
    ck_assert_int_eq(o->status, 0);
    ck_assert_ptr_null(hw_bundle_load(directory, &err));
    ck_assert_ptr_nonnull(strstr(err.message, "source.vocab"));
    ck_assert_ptr_nonnull(strstr(err.message, "source_embedding.weight"));
}
END_TEST

/* The last score of a model is changed: the pieces stay, and yet a line may be cut otherwise. */
START_TEST(an_ensemble_needs_one_model)
{
    train_whole(train_config(arena, "m", PIECES "training.max_steps=1"), 1);
    train_whole(train_config(arena, "other", PIECES "training.max_steps=1"), 1);
    hw_bundle *a = hw_bundle_load(scratch_path("m"), &err), *b = hw_bundle_load(scratch_path("other"), &err);
    ck_assert_msg(hw_same_texts(a, b, &err), "%s", err.message);
    hw_bundle_free(b);
    size_t size, length;
    char *bytes = scratch_read(scratch_path("other/target.model"), &size);
    int32_t last = (int32_t)hw_vocabulary_size(a->target_vocabulary) - 1;
    const char *piece = hw_vocabulary_token(a->target_vocabulary, last, &length);
    char *at = memmem(bytes, size, piece, length); /* then 0x15 and the score, a float */
    ck_assert(at && at[length] == 0x15);
    at[length + 1] ^= 1;
    scratch_write("other/target.model", bytes, size);
    free(bytes);
    b = hw_bundle_load(scratch_path("other"), &err);
    ck_assert_msg(b != NULL, "%s", err.message);
    ck_assert(!hw_same_texts(a, b, &err));
    ck_assert_str_eq(err.message, "the SentencePiece models are not the same, though their pieces are: they cut text "
                                  "otherwise");
    hw_bundle_free(a);
    hw_bundle_free(b);
}
END_TEST

/* ---- the command line -------------------------------------------------------------------------------------------- */

START_TEST(vocab_cuts_and_joins_line_by_line)
{
    const char *text = scratch_text("text", "ba bo\n\n \xE2\x80\xA8 \nba\xFF\xC2\xA0so\nlast");
    const outcome *o = RUN("vocab", "--encode", UNIGRAM, text);
    ck_assert_int_eq(o->status, 0);
    ck_assert_str_eq(o->err, hw_arena_string(arena,
                                             "headwise: %s:4: byte 3 is 0xFF, which is not valid UTF-8; it is read as "
                                             "U+FFFD, and so are all like it\n",
                                             text));
    ck_assert_str_eq(o->out, "\xE2\x96\x81"
                             "ba \xE2\x96\x81 b o\n\n\n\xE2\x96\x81"
                             "ba \xE2\x96\x81 so" /* this model takes U+FFFD for a blank */
                             "\n\xE2\x96\x81"
                             "l a s t\n");
    const char *pieces = scratch_text("pieces", o->out);
    o = RUN("vocab", "--decode", UNIGRAM, pieces, pieces);
    ck_assert_str_eq(o->out, "ba bo\n\n\nba so\nlast\nba bo\n\n\nba so\nlast\n");
    o = RUN("vocab", "--decode", UNIGRAM, scratch_text("newline", "b <0x0A> o\n<0x0A>\n"));
    ck_assert_str_eq(o->out, "b o\n \n"); /* a line stays one */
    o = RUN("vocab", "--decode", UNIGRAM); /* empty standard input */
    ck_assert_int_eq(o->status, 0);
    ck_assert_str_eq(o->out, "");
}
END_TEST

/* What pieces that a model lacks are spelled like goes with their line when a corpus is read. */
START_TEST(unknown_pieces_take_no_memory)
{
    const char *call = hw_arena_string(
        arena,
        "train configs/toy_translate.yaml --dry-run --threads 1 --set data.dir=%s --set training.model_dir=%s/none --set "
        "text.tokenizer=sentencepiece --set text.joiner= --set text.model=tests/fixtures/sentencepiece/char.model --set "
        "training.validate_every=0 --set training.batch_tokens=50 --set model.width=16 --set model.feed_forward=16",
        scratch_root(), scratch_root());
    long peak[2];
    for (int unknown = 0; unknown < 2; unknown++) {
        run_bash(hw_arena_string(arena,
                                 "cd %s && line=$(yes %s | head -50 | tr '\\n' ' ') && yes \"$line\" | head -3000 > "
                                 "train.en && yes a | head -3000 > train.fr",
                                 scratch_root(), unknown ? "\xE4\xB8\xAD" : "a"));
        peak[unknown] = peak_of_program(call);
    }
    ck_assert_msg(peak[1] - peak[0] < 5 << 10, "%ld kB, then %ld kB", peak[0], peak[1]);
}
END_TEST

/* A model directory has a tokenizer of any kind. */
START_TEST(vocab_uses_model_directories)
{
    hw_bundle *b = tiny_bundle(arena, tiny_config(arena, ""), "the cat", "le bo@@ ra@@");
    save_bundle(b, scratch_path("word"));
    hw_bundle_free(b);
    const char *text = scratch_text("text", "the  bora cat\n");
    const outcome *o = RUN("vocab", "--encode", scratch_path("word"), "--side", "target", text);
    ck_assert_str_eq(o->out, "the bora cat\n");
    o = RUN("vocab", "--decode", scratch_path("word"), scratch_text("pieces", "bo@@ ra@@ ti\n"));
    ck_assert_str_eq(o->out, "borati\n");
    train_whole(train_config(arena, "m", PIECES "training.max_steps=1"), 1);
    o = RUN("vocab", "--encode", scratch_path("m"), scratch_text("w", "w1 w2\n"));
    ck_assert_int_eq(o->status, 0);
    o = RUN("vocab", "--decode", scratch_path("m"), scratch_text("p", o->out));
    ck_assert_str_eq(o->out, "w1 w2\n");
}
END_TEST

START_TEST(vocab_trains_models)
{
    const char *model = scratch_path("x.model"), *file = scratch_path("data/train.en");
    const outcome *o = RUN("vocab", "--train", model, "--type", "bpe", "--max-size", "290", "--json", file,
                           scratch_path("data/train.fr"));
    ck_assert_int_eq(o->status, 0);
    hw_vocabulary *v = hw_vocabulary_load(arena, scratch_path("x.vocab"), &err);
    ck_assert_msg(v, "%s", err.message);
    ck_assert_str_eq(o->out, hw_arena_string(arena, "{\"size\": %d}\n", hw_vocabulary_size(v)));
    ck_assert_str_eq(o->err, hw_arena_string(arena, "headwise: %s and %s: %d tokens\n", model, scratch_path("x.vocab"),
                                             hw_vocabulary_size(v)));
    o = RUN("vocab", "-q", "--train", scratch_path("small"), "--no-byte-fallback", "--max-size", "20", "--coverage",
            "1", "--normalization", "identity", "--lines", "30", file);
    ck_assert_int_eq(o->status, 0);
    v = hw_vocabulary_load(arena, scratch_path("small.vocab"), &err);
    ck_assert_int_le(hw_vocabulary_size(v), 20);
}
END_TEST

static const struct {
    const char *words[6], *message;
} wrong[] = {
    {{"--encode", "a", "--train", "b"}, "vocab: --train and --encode exclude each other"},
    {{"--encode", "a", "--counts"}, "vocab: --counts and --encode exclude each other"},
    {{"--train", "a", "--side", "source", "f"}, "vocab: --side needs --encode or --decode"},
    {{"--type", "bpe", "f"}, "vocab: --type needs --train"},
    {{"--train", "a"}, "vocab: too few arguments; a FILE is needed"},
    {{NULL}, "vocab: too few arguments; a FILE is needed, - is standard input"},
};
enum { WRONG = sizeof wrong / sizeof *wrong };

START_TEST(vocab_refuses_what_makes_no_sense)
{
    const char *const *w = wrong[_i].words;
    const outcome *o = RUN("vocab", w[0], w[1], w[2], w[3], w[4], w[5]);
    ck_assert_int_eq(o->status, 2);
    ck_assert_str_eq(o->err, hw_arena_string(arena, "headwise: %s\n", wrong[_i].message));
}
END_TEST

START_TEST(what_cannot_be_read_ends_vocab)
{
    const outcome *o = RUN("vocab", "--encode", scratch_text("none", "no model"), scratch_text("t", "a\n"));
    ck_assert_int_eq(o->status, 1);
    ck_assert_ptr_nonnull(strstr(o->err, "none: it is no SentencePiece model (the bytes are none)"));
    o = RUN("vocab", "--encode", UNIGRAM, scratch_path("missing"));
    ck_assert_int_eq(o->status, 1);
    ck_assert_ptr_nonnull(strstr(o->err, "missing: cannot be read"));
    o = RUN("vocab", "--decode", scratch_path("data"), scratch_path("t"));
    ck_assert_int_eq(o->status, 1);
    ck_assert_ptr_nonnull(strstr(o->err, "it is no model directory"));
}
END_TEST

/* Among the pieces for bytes is one for the newline, and drawn by chance alone it comes often. */
START_TEST(no_piece_ends_a_line)
{
    enum { LINES = 60 };
    train_whole(train_config(arena, "m", PIECES "training.max_steps=1"), 1);
    const char *text = "";
    for (int i = 0; i < LINES; i++) text = hw_arena_string(arena, "%sw1 w2\n", text);
    const outcome *o = RUN("headwise", "translate", scratch_path("m"), scratch_text("lines", text), "--temperature",
                           "1000", "--max-length", "40");
    ck_assert_int_eq(o->status, 0);
    int lines = 0;
    for (const char *c = o->out; *c; c++) lines += *c == '\n';
    ck_assert_int_eq(lines, LINES);
}
END_TEST

Suite *test_sentencepiece_model(void);
Suite *test_sentencepiece_model(void)
{
    Suite *suite = suite_create("sentencepiece model");
    TCase *c = tcase_create("texts");
    tcase_add_checked_fixture(c, begin, scratch_end);
    tcase_add_test(c, one_model_a_side_or_one_for_both);
    tcase_add_test(c, a_model_can_be_there_already);
    tcase_add_test(c, a_found_model_stays);
    suite_add_tcase(suite, c);
    c = tcase_create("runs");
    tcase_add_checked_fixture(c, begin, scratch_end);
    tcase_add_loop_test(c, a_stopped_run_ends_with_the_same_bytes, 0, RUNS);
    tcase_add_test(c, sampling_changes_what_is_learned);
    tcase_add_test(c, beginning_anew_makes_new_models);
    tcase_add_test(c, a_network_keeps_its_pieces);
    tcase_add_test(c, parts_of_different_models_are_refused);
    tcase_add_test(c, an_ensemble_needs_one_model);
    suite_add_tcase(suite, c);
    c = tcase_create("command line");
    tcase_add_checked_fixture(c, begin, scratch_end);
    tcase_add_test(c, vocab_cuts_and_joins_line_by_line);
    tcase_add_test(c, unknown_pieces_take_no_memory);
    tcase_add_test(c, no_piece_ends_a_line);
    tcase_add_test(c, vocab_uses_model_directories);
    tcase_add_test(c, vocab_trains_models);
    tcase_add_loop_test(c, vocab_refuses_what_makes_no_sense, 0, WRONG);
    tcase_add_test(c, what_cannot_be_read_ends_vocab);
    suite_add_tcase(suite, c);
    return suite;
}
