#include "support_wired.h"

#include "support_model.h"

#include <check.h>
#include <math.h>
#include <string.h>

/* Where things stand among the 64 numbers of a row: frequencies of positions as sines and cosines, the word itself,
 * the word that was brought, and numbers that are always 0, by which the mean that layer norm takes off is known. */
enum { WIDTH = 64, K = 16, FREQUENCIES = 8, COSINES = WIDTH / 2, WORD = 24, BROUGHT = 48, ZERO = 56, SLOTS = 8 };

static const char *const words = "a b c d e f .";
enum { WORDS = 7, FULL_STOP = HW_SPECIALS + WORDS - 1, END = 2 };

static hw_real *find(const hw_transformer *m, const char *name)
{
    hw_parameter *p = hw_parameters_find(m->parameters, name);
    ck_assert_msg(p != NULL, "no parameter %s", name);
    return p->tensor.data;
}

/* A row that reads what it reads of the numbers before layer norm. */
static void without_mean(hw_real *row)
{
    double sum = 0;
    for (int i = 0; i < WIDTH; i++) sum += (double)row[i];
    for (int i = 0; i < SLOTS; i++) row[ZERO + i] -= (hw_real)(sum / SLOTS);
}

/* Head h looks `back` places back: the query turns each frequency by as much. */
static void look_back(hw_real *query, hw_real *key, int h, int back, double strength)
{
    for (int i = 0; i < FREQUENCIES; i++) {
        double angle = back * pow(10000, -2.0 * i / WIDTH);
        hw_real *q = query + (h * K + 2 * i) * WIDTH, *k = key + (h * K + 2 * i) * WIDTH;
        q[i] = q[WIDTH + COSINES + i] = (hw_real)(strength * cos(angle));
        q[COSINES + i] = (hw_real)(-strength * sin(angle));
        q[WIDTH + i] = (hw_real)(strength * sin(angle));
        k[i] = k[WIDTH + COSINES + i] = (hw_real)strength;
        for (int r = 0; r < 2; r++) without_mean(q + r * WIDTH), without_mean(k + r * WIDTH);
    }
}

/* Head h carries slots from one place to another. */
static void carry(hw_real *value, hw_real *output, int h, int from, int to, double strength)
{
    for (int i = 0; i < SLOTS; i++) {
        value[(h * K + i) * WIDTH + from + i] = 1;
        without_mean(value + (h * K + i) * WIDTH);
        output[(to + i) * WIDTH + h * K + i] = (hw_real)strength;
    }
}

/* The slot of a word; special tokens share the last one, so that layer norm makes all rows about equally long.
 * Embeddings are multiplied by 8 = sqrt(64) and added to positions, whose slow cosines are near 1. */
static void embed(hw_real *table, bool source)
{
    for (int id = 0; id < HW_SPECIALS + WORDS; id++) {
        hw_real *row = table + id * WIDTH;
        for (int i = BROUGHT; i < WIDTH; i++) row[i] = (hw_real)-0.125;
        if (source) row[WORD + (id < HW_SPECIALS ? SLOTS - 1 : id - HW_SPECIALS)] = 1;
    }
}

static void wire(hw_transformer *m)
{
    for (int i = 0; i < hw_parameters_count(m->parameters); i++) {
        hw_parameter *p = hw_parameters_at(m->parameters, i);
        for (int64_t k = 0; k < hw_tensor_size(&p->tensor); k++) p->tensor.data[k] = p->initial == HW_INITIAL_ONE;
    }
    embed(find(m, "source_embedding.weight"), true);
    embed(find(m, "target_embedding.weight"), false);
    hw_real *query = find(m, "encoder.0.self_attention.query.weight");
    hw_real *key = find(m, "encoder.0.self_attention.key.weight");
    hw_real *value = find(m, "encoder.0.self_attention.value.weight");
    hw_real *output = find(m, "encoder.0.self_attention.output.weight");
    look_back(query, key, 0, 1, 10);
    carry(value, output, 0, WORD, BROUGHT, 1);
    look_back(query, key, 1, 0, 10); /* it looks at itself and brings nothing */
    carry(value, output, 2, WORD, BROUGHT, 0.25);
    look_back(query, key, 3, 1, 10);
    carry(value, output, 3, WORD, BROUGHT, -0.0625);
    look_back(find(m, "decoder.0.cross_attention.query.weight"), find(m, "decoder.0.cross_attention.key.weight"), 0, 0,
              10);
    carry(find(m, "decoder.0.cross_attention.value.weight"), find(m, "decoder.0.cross_attention.output.weight"), 0,
          BROUGHT, BROUGHT, 1);
    hw_real *table = find(m, "output.weight");
    for (int i = 0; i < WORDS; i++)
        table[(HW_SPECIALS + i == FULL_STOP ? END : HW_SPECIALS + i) * WIDTH + BROUGHT + i] = 1;
    hw_parameters_pack(m->parameters);
}

static void write_set(hw_arena *arena, const char *directory, const char *prefix, int sentences, uint64_t seed)
{
    FILE *out[2];
    static const char *const suffixes[] = {"en", "fr"};
    for (int s = 0; s < 2; s++) out[s] = fopen(hw_arena_string(arena, "%s/%s.%s", directory, prefix, suffixes[s]), "w");
    ck_assert(out[0] && out[1]);
    hw_random random = hw_random_new(seed, 0);
    for (int i = 0; i < sentences; i++) {
        int count = 2 + (int)hw_random_below(&random, 5);
        for (int w = 0; w < count; w++) {
            char word = (char)('a' + hw_random_below(&random, WORDS - 1));
            fprintf(out[0], "%c ", word);
            if (!w) fprintf(out[1], "%c ", word);
            fprintf(out[1], "%c%c", word, w + 1 < count ? ' ' : '\n');
        }
        fprintf(out[0], ".\n");
    }
    for (int s = 0; s < 2; s++) fclose(out[s]);
}

hw_bundle *wired_bundle(hw_arena *arena, const char *directory, int sentences)
{
    directory = hw_arena_string(arena, "%s", directory);
    write_set(arena, directory, "test", sentences, 1);
    write_set(arena, directory, "valid", sentences, 2);
    write_set(arena, directory, "train", 4 * sentences, 3);
    const hw_config *config = tiny_config(
        arena, hw_arena_string(arena,
                               "model.encoder_layers=1;model.decoder_layers=1;model.width=64;model.heads=4;"
                               "model.norm=pre;model.tied_embeddings=none;text.shared_vocabulary=true;data.dir=%s;"
                               "data.source=en;data.target=fr;training.model_dir=%s/model",
                               directory, directory));
    hw_bundle *b = tiny_bundle(arena, config, words, NULL);
    wire(b->network);
    save_bundle(b, config->training.model_dir);
    return b;
}
