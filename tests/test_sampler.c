/* Subword regularization: cuts are drawn as often as SentencePiece's own package draws them, the text stays the same,
 * and every draw is a function of seed, epoch and pair. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_text.h"

#define FIXTURES "tests/fixtures/sentencepiece/"
static const char *const models[] = {"unigram.model", "foreign.model"};
enum { MODELS = 2, BPE = 1 };

static hw_arena *arena;
static hw_tokenizer *tokenizer;
static const hw_vocabulary *vocabulary;
static json_t *fixture;

static void begin(int model)
{
    hw_error err;
    arena = hw_arena_new(0);
    fixture = json_load_file(FIXTURES "pieces.json", JSON_ALLOW_NUL, NULL);
    ck_assert_ptr_nonnull(fixture);
    hw_tokenizer_options o = {.name = "sentencepiece", .model = hw_arena_string(arena, FIXTURES "%s", models[model])};
    tokenizer = hw_tokenizer_new(&o, &err);
    ck_assert_msg(tokenizer, "%s", err.message);
    vocabulary = hw_tokenizer_vocabulary(tokenizer, arena);
}

static void end(void)
{
    json_decref(fixture);
    hw_tokenizer_free(tokenizer);
    hw_arena_free(arena);
}

static hw_sampler *sampler_of(double alpha)
{
    hw_error err;
    hw_sampler *s = hw_sampler_new(tokenizer, vocabulary, alpha, &err);
    ck_assert_msg(s, "%s", err.message);
    return s;
}

static hw_ids best_of(const char *line, size_t bytes)
{
    hw_tokens tokens = hw_tokens_new(arena);
    hw_tokenizer_encode(tokenizer, vocabulary, line, bytes, &tokens);
    int32_t *ids = hw_arena_calloc(arena, (size_t)tokens.count, sizeof *ids);
    for (int64_t i = 0; i < tokens.count; i++) ids[i] = tokens.items[i].id;
    return (hw_ids){ids, tokens.count};
}

static const char *text_of(hw_ids ids)
{
    return hw_tokenizer_decode_ids(tokenizer, vocabulary, arena, ids.ids, ids.count, NULL);
}

/* The ids of a cut that is spelled with blanks between; what the vocabulary lacks is unknown. */
static hw_ids spelled(const char *cut)
{
    char *copy = hw_arena_string(arena, "%s", cut), *place;
    int32_t *ids = hw_arena_calloc(arena, strlen(cut) + 1, sizeof *ids);
    int64_t count = 0;
    for (char *piece = strtok_r(copy, " ", &place); piece; piece = strtok_r(NULL, " ", &place))
        ids[count++] = hw_vocabulary_find(vocabulary, piece, strlen(piece));
    return (hw_ids){ids, count};
}

static bool same(hw_ids a, hw_ids b)
{
    return a.count == b.count && (!a.count || !memcmp(a.ids, b.ids, (size_t)a.count * sizeof *a.ids));
}

/* ---- how often --------------------------------------------------------------------------------------------------- */

enum { DRAWS = 20000, CUTS = 12 };

/* Both sides drew 20,000 times: five deviations of their difference. */
START_TEST(cuts_are_drawn_as_often_as_by_the_package)
{
    begin(_i);
    const json_t *rows = json_object_get(fixture, hw_arena_string(arena, "%s drawn", models[_i])), *value;
    ck_assert_uint_eq(json_array_size(rows), 9);
    for (size_t r = 0; r < json_array_size(rows); r++) {
        const char *line = json_string_value(json_array_get(json_array_get(rows, r), 0)), *cut;
        json_t *cuts = json_array_get(json_array_get(rows, r), 2);
        hw_ids expected[CUTS], best = best_of(line, strlen(line));
        double share[CUTS];
        int times[CUTS] = {0}, count = 0;
        json_object_foreach(cuts, cut, value)
        {
            expected[count] = spelled(cut);
            share[count++] = json_number_value(value);
        }
        hw_sampler *s = sampler_of(json_number_value(json_array_get(json_array_get(rows, r), 1)));
        hw_random random = hw_random_new(5, r);
        for (int i = 0; i < DRAWS; i++) {
            hw_arena_mark mark = hw_arena_begin(arena);
            hw_ids drawn = hw_sampler_draw(s, best, &random, arena);
            for (int k = 0; k < count; k++) times[k] += same(drawn, expected[k]);
            hw_arena_end(arena, mark);
        }
        for (int k = 0; k < count; k++) {
            double found = (double)times[k] / DRAWS, deviation = sqrt(2 * share[k] * (1 - share[k]) / DRAWS);
            ck_assert_msg(fabs(found - share[k]) <= 5 * deviation + 1e-3, "row %zu, cut %d: %g, not %g", r, k, found,
                          share[k]);
        }
        hw_sampler_free(s);
    }
    end();
}
END_TEST

/* ---- what stays -------------------------------------------------------------------------------------------------- */

/* Nothing is left out: the one best cut. And a power so high that only the most probable cut is ever drawn. */
START_TEST(without_chance_it_is_the_best_cut)
{
    begin(_i);
    hw_sampler *s = sampler_of(_i == BPE ? 0 : 1e5);
    hw_random random = hw_random_new(1, 1);
    const json_t *cases = json_object_get(fixture, models[_i]);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *line = json_array_get(json_array_get(cases, i), 0);
        hw_ids best = best_of(json_string_value(line), json_string_length(line));
        ck_assert(same(hw_sampler_draw(s, best, &random, arena), best));
    }
    hw_sampler_free(s);
    end();
}
END_TEST

START_TEST(the_text_stays_the_same)
{
    static const double alphas[] = {0, 0.1, 0.5, 1};
    begin(_i);
    const json_t *cases = json_object_get(fixture, models[_i]);
    for (int a = 0; a < 4; a++) {
        hw_sampler *s = sampler_of(alphas[a]);
        int64_t others = 0;
        for (size_t i = 0; i < json_array_size(cases); i++) {
            const json_t *line = json_array_get(json_array_get(cases, i), 0);
            hw_ids best = best_of(json_string_value(line), json_string_length(line));
            hw_random random = hw_random_new(3, i), again = random;
            hw_ids drawn = hw_sampler_draw(s, best, &random, arena);
            ck_assert(same(drawn, hw_sampler_draw(s, best, &again, arena)));
            ck_assert_str_eq(text_of(drawn), text_of(best));
            for (int64_t k = 0; k < drawn.count; k++) ck_assert_int_ne(drawn.ids[k], HW_BEGIN);
            others += !same(drawn, best);
        }
        ck_assert(_i == BPE && alphas[a] == 0 ? others == 0 : others > 0);
        hw_sampler_free(s);
    }
    end();
}
END_TEST

START_TEST(only_pieces_can_be_drawn)
{
    hw_error err;
    begin(0);
    hw_tokenizer *word = tokenizer_of("word", NULL);
    ck_assert_ptr_null(hw_sampler_new(word, vocabulary, 0.1, &err));
    ck_assert_str_eq(err.message,
                     "text.sampling needs a SentencePiece model of the type unigram or bpe; this tokenizer has "
                     "one cut a line");
    hw_tokenizer_free(word);
    end();
}
END_TEST

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* The text of every pair once an epoch, cut otherwise in the next one, and the same from any saved place. */
START_TEST(epochs_cut_anew_and_reproducibly)
{
    begin(_i);
    enum { PAIRS = 40 };
    const json_t *cases = json_object_get(fixture, models[_i]);
    hw_corpus *corpus = hw_corpus_new();
    for (size_t i = 0, pairs = 0; pairs < PAIRS; i++) {
        const json_t *line = json_array_get(json_array_get(cases, json_array_size(cases) - 1 - i), 0);
        hw_ids ids = best_of(json_string_value(line), json_string_length(line));
        if (ids.count) hw_corpus_add(corpus, ids, ids, (int64_t)++pairs);
    }
    hw_sampler *s = sampler_of(_i == BPE ? 0.2 : 0.1);
    hw_batcher_options o = {.seed = 4, .target_tokens = 150, .source_sampler = s, .target_sampler = s};
    hw_batcher batcher = hw_batcher_new(corpus, &o);
    int seen[2][PAIRS] = {{0}}, changed = 0, sides = 0, epochs = 0;
    hw_ids first[PAIRS];
    while (batcher.place.epoch < 2) {
        hw_batch_place place = batcher.place;
        const hw_batch *batch = hw_batcher_next(&batcher, arena);
        hw_batcher again = hw_batcher_new(corpus, &o);
        again.place = place;
        const hw_batch *other = hw_batcher_next(&again, arena);
        ck_assert_int_eq(batch->target_rows, other->target_rows);
        ck_assert_int_eq(batch->source_rows, other->source_rows);
        ck_assert_mem_eq(batch->source_ids, other->source_ids, (size_t)batch->source_rows * 4);
        ck_assert_mem_eq(batch->target_out, other->target_out, (size_t)batch->target_rows * 4);
        ck_assert(batch->sentences == 1 || batch->target_rows <= 150);
        for (int64_t b = 0; b < batch->sentences; b++) {
            hw_ids source = {batch->source_ids + batch->source.start[b], batch->source.length[b] - 1};
            hw_ids target = {batch->target_out + batch->target.start[b], batch->target.length[b] - 1};
            hw_ids best = hw_corpus_source(corpus, batch->lines[b] - 1);
            ck_assert_str_eq(text_of(source), text_of(best));
            ck_assert_str_eq(text_of(target), text_of(best));
            seen[place.epoch][batch->lines[b] - 1]++;
            if (place.epoch == 0)
                first[batch->lines[b] - 1] = source;
            else
                epochs += !same(source, first[batch->lines[b] - 1]);
            changed += !same(source, best);
            sides += !same(source, target);
        }
    }
    for (int i = 0; i < PAIRS; i++) ck_assert(seen[0][i] == 1 && seen[1][i] == 1);
    ck_assert_int_gt(changed, PAIRS);
    ck_assert_int_gt(sides, PAIRS);
    ck_assert_int_gt(epochs, PAIRS / 2);
    hw_sampler_free(s);
    hw_corpus_free(corpus);
    end();
}
END_TEST

/* Symbols of a user's, here one that stands at the end of the model file, are neither cut nor merged. */
START_TEST(symbols_stay_whole)
{
    static const char symbol[] = {0x0A, 13, 0x0A, 4, 'b', 'a', 'd', 'e', 0x15, 0, 0, 0, 0, 0x18, 4};
    begin(_i);
    scratch_begin();
    size_t size;
    char *bytes = scratch_read(hw_arena_string(arena, FIXTURES "%s", models[_i]), &size);
    char *all = hw_arena_alloc(arena, size + sizeof symbol);
    memcpy(all, bytes, size);
    memcpy(all + size, symbol, sizeof symbol);
    free(bytes);
    hw_tokenizer_free(tokenizer);
    hw_error err;
    hw_tokenizer_options o = {.name = "sentencepiece", .model = scratch_write("m", all, size + sizeof symbol)};
    tokenizer = hw_tokenizer_new(&o, &err);
    ck_assert_msg(tokenizer, "%s", err.message);
    vocabulary = hw_tokenizer_vocabulary(tokenizer, arena);
    int32_t id = hw_vocabulary_find(vocabulary, "bade", 4);
    hw_ids best = best_of("ba gobadebo bade", 16);
    hw_sampler *s = sampler_of(0.2);
    hw_random random = hw_random_new(2, 2);
    for (int i = 0; i < 300; i++) {
        hw_ids drawn = hw_sampler_draw(s, best, &random, arena);
        int found = 0;
        for (int64_t k = 0; k < drawn.count; k++) found += drawn.ids[k] == id;
        ck_assert_int_eq(found, 2);
    }
    hw_sampler_free(s);
    end();
    scratch_end();
}
END_TEST

Suite *test_sampler(void);
Suite *test_sampler(void)
{
    Suite *suite = suite_create("sampler");
    TCase *c = tcase_create("draws");
    tcase_add_loop_test(c, cuts_are_drawn_as_often_as_by_the_package, 0, MODELS);
    tcase_add_loop_test(c, without_chance_it_is_the_best_cut, 0, MODELS);
    tcase_add_loop_test(c, the_text_stays_the_same, 0, MODELS);
    tcase_add_loop_test(c, symbols_stay_whole, 0, MODELS);
    tcase_add_test(c, only_pieces_can_be_drawn);
    tcase_add_loop_test(c, epochs_cut_anew_and_reproducibly, 0, MODELS);
    suite_add_tcase(suite, c);
    return suite;
}
