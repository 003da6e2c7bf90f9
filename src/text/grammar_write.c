/* What a grammar's corpus leaves on disk, and the counts that are printed of it.
 *
 * Text is words joined by blanks; alignments are in Pharaoh's format, `i-j` sure and `ipj` possible; dependencies in
 * CoNLL-U (universaldependencies.org/format.html) with features in FEATS, matched marks as Match= and the pieces of
 * spelled names as Piece= in MISC. */
#include "grammar.h"

#include <stdlib.h>
#include <string.h>

/* ---- keys -------------------------------------------------------------------------------------------------------- */

uint64_t hw_text_hash(const char *text) /* FNV-1a, 64 bits */
{
    uint64_t h = 0xCBF29CE484222325u;
    for (; *text; text++) h = (h ^ (uint8_t)*text) * 0x100000001B3u;
    return h ? h : 1;
}

static int64_t place_of(const hw_keys *keys, uint64_t key)
{
    int64_t i = (int64_t)((key * 0x9E3779B97F4A7C15u) >> 20) & (keys->capacity - 1);
    while (keys->key[i] && keys->key[i] != key) i = (i + 1) & (keys->capacity - 1);
    return i;
}

static void *zeroed(int64_t count, size_t size)
{
    void *p = calloc((size_t)count, size);
    HW_CHECK(p, "out of memory for %lld numbers", (long long)count);
    return p;
}

static void grow(hw_keys *keys)
{
    hw_keys more = {keys->count, keys->capacity ? 2 * keys->capacity : 1024, NULL, NULL};
    more.key = zeroed(more.capacity, sizeof *more.key);
    more.value = zeroed(more.capacity, sizeof *more.value);
    for (int64_t i = 0; i < keys->capacity; i++) {
        if (!keys->key[i]) continue;
        int64_t to = place_of(&more, keys->key[i]);
        more.key[to] = keys->key[i];
        more.value[to] = keys->value[i];
    }
    hw_keys_clear(keys);
    *keys = more;
}

uint64_t *hw_keys_add(hw_keys *keys, uint64_t key, bool *added)
{
    if (4 * keys->count >= 3 * keys->capacity) grow(keys);
    int64_t i = place_of(keys, key);
    *added = !keys->key[i];
    keys->count += *added;
    keys->key[i] = key;
    return &keys->value[i];
}

void hw_keys_clear(hw_keys *keys)
{
    free(keys->key);
    free(keys->value);
    *keys = (hw_keys){.count = 0};
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

enum { TEXT, CONLLU = TEXT + HW_SIDES, ALIGN = CONLLU + HW_SIDES, GROUPS, FILES };

struct hw_grammar_files {
    const hw_grammar *g;
    bool open[FILES];
    hw_atomic file[FILES];
};

static bool begin_file(hw_grammar_files *files, int i, const char *directory, const char *prefix, const char *suffix,
                       hw_error *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s.%s", directory, prefix, suffix) >= (int)sizeof path)
        return hw_fail(err, "%s: the path is too long", directory);
    return files->open[i] = hw_atomic_begin(&files->file[i], path, err);
}

hw_grammar_files *hw_grammar_files_begin(const hw_grammar *g, const char *directory, const char *prefix, bool annotated,
                                         bool grouped, hw_error *err)
{
    hw_grammar_files *files = zeroed(1, sizeof *files);
    files->g = g;
    bool good = true;
    for (int s = 0; s < HW_SIDES && good; s++) {
        char suffix[300];
        snprintf(suffix, sizeof suffix, "%.250s.conllu", g->side[s]);
        good = begin_file(files, TEXT + s, directory, prefix, g->side[s], err) &&
               (!annotated || begin_file(files, CONLLU + s, directory, prefix, suffix, err));
    }
    good = good && (!annotated || begin_file(files, ALIGN, directory, prefix, "align", err)) &&
           (!grouped || begin_file(files, GROUPS, directory, prefix, "groups", err));
    if (good) return files;
    hw_grammar_files_end(&files, 1, false, err);
    return NULL;
}

bool hw_grammar_files_end(hw_grammar_files *const *sets, int count, bool keep, hw_error *err)
{
    hw_atomic *open[HW_SETS * FILES] = {NULL};
    int files = 0;
    HW_CHECK(count <= HW_SETS, "%d sets", count);
    for (int s = 0; s < count; s++)
        for (int i = 0; sets[s] && i < FILES; i++)
            if (sets[s]->open[i]) open[files++] = &sets[s]->file[i];
    keep = keep && hw_atomic_commit_all(open, files, err);
    for (int i = 0; i < files; i++) hw_atomic_abandon(open[i]);
    for (int s = 0; s < count; s++) free(sets[s]);
    return keep;
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* FEATS: Name=Value|Name=Value in the order of the names, or _ */
static void write_features(FILE *out, const hw_grammar *g, int side, const hw_word *word)
{
    char text[HW_FEATURES][128];
    const char *sorted[HW_FEATURES];
    int count = 0;
    for (int f = 0; f < g->features; f++) {
        int value = word->says.value[f];
        if (value < 0 || !(g->annotated[side] >> f & 1)) continue;
        snprintf(text[count], sizeof text[count], "%s=%s", g->feature[f].name, g->feature[f].values[value]);
        sorted[count] = text[count];
        count++;
    }
    qsort(sorted, (size_t)count, sizeof *sorted, by_name);
    for (int i = 0; i < count; i++) fprintf(out, "%s%s", i ? "|" : "", sorted[i]);
    if (!count) fputc('_', out);
}

static void write_conllu(FILE *out, const hw_grammar *g, int side, const hw_pair *pair)
{
    for (int i = 0; i < pair->count[side]; i++) {
        const hw_word *word = &pair->word[side][i];
        fprintf(out, "%d\t%s\t_\t%s\t_\t", i + 1, word->text, word->pos);
        write_features(out, g, side, word);
        fprintf(out, "\t%d\t%s\t_\t", word->head + 1, word->relation);
        if (word->match >= 0)
            fprintf(out, "Match=%d\n", word->match + 1);
        else if (word->piece)
            fprintf(out, "Piece=%d\n", word->piece);
        else
            fputs("_\n", out);
    }
    fputc('\n', out);
}

void hw_grammar_files_add(hw_grammar_files *files, const hw_pair *pair, bool unseen)
{
    for (int s = 0; s < HW_SIDES; s++) {
        fprintf(files->file[TEXT + s].stream, "%s\n", pair->text[s]);
        if (files->open[CONLLU + s]) write_conllu(files->file[CONLLU + s].stream, files->g, s, pair);
    }
    if (files->open[ALIGN]) {
        FILE *out = files->file[ALIGN].stream;
        for (int i = 0; i < pair->links; i++)
            fprintf(out, "%s%d%c%d", i ? " " : "", pair->link[i].source, pair->link[i].sure ? '-' : 'p',
                    pair->link[i].target);
        fputc('\n', out);
    }
    if (files->open[GROUPS]) fputs(unseen ? "unseen\n" : "seen\n", files->file[GROUPS].stream);
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

enum { FARTHEST = 64 }; /* distances beyond it are counted as it */

typedef struct distances {
    int side;
    const char *name;
    int64_t count, distance[2 * FARTHEST + 1];
} distances;

struct hw_grammar_tally {
    const hw_grammar *g;
    hw_arena *arena;
    int64_t sentences, words[HW_SIDES], pieces;
    int shortest[HW_SIDES], longest[HW_SIDES];
    hw_keys vocabulary[HW_SIDES];
    hw_grammar_phenomenon *phenomenon;
    int relations, capacity;
    distances *relation;
};

hw_grammar_tally *hw_grammar_tally_new(const hw_grammar *g)
{
    hw_arena *arena = hw_arena_new(0);
    hw_grammar_tally *tally = hw_arena_calloc(arena, 1, sizeof *tally);
    tally->g = g;
    tally->arena = arena;
    tally->phenomenon = hw_arena_calloc(arena, (size_t)g->phenomena + 1, sizeof *tally->phenomenon);
    return tally;
}

void hw_grammar_tally_free(hw_grammar_tally *tally)
{
    for (int s = 0; s < HW_SIDES; s++) hw_keys_clear(&tally->vocabulary[s]);
    hw_arena_free(tally->arena);
}

static distances *find_relation(hw_grammar_tally *tally, int side, const char *name)
{
    for (int i = 0; i < tally->relations; i++)
        if (tally->relation[i].side == side && !strcmp(tally->relation[i].name, name)) return &tally->relation[i];
    if (tally->relations == tally->capacity) {
        distances *more =
            hw_arena_calloc(tally->arena, (size_t)(tally->capacity = 2 * tally->capacity + 16), sizeof *more);
        if (tally->relations) memcpy(more, tally->relation, (size_t)tally->relations * sizeof *more);
        tally->relation = more;
    }
    distances *new = &tally->relation[tally->relations++];
    *new = (distances){.side = side, .name = hw_arena_string(tally->arena, "%s", name)};
    return new;
}

static void add_distance(hw_grammar_tally *tally, int side, const char *name, int distance)
{
    distances *relation = find_relation(tally, side, name);
    relation->count++;
    if (distance < -FARTHEST) distance = -FARTHEST;
    if (distance > FARTHEST) distance = FARTHEST;
    relation->distance[distance + FARTHEST]++;
}

static void add_words(hw_grammar_tally *tally, const hw_pair *pair, int side)
{
    int count = pair->count[side];
    tally->words[side] += count;
    if (!tally->sentences || count < tally->shortest[side]) tally->shortest[side] = count;
    if (count > tally->longest[side]) tally->longest[side] = count;
    for (int i = 0; i < count; i++) {
        const hw_word *word = &pair->word[side][i];
        bool added;
        hw_keys_add(&tally->vocabulary[side], hw_text_hash(word->text), &added);
        tally->pieces += side == HW_SOURCE && word->piece;
        if (word->head >= 0) add_distance(tally, side, word->relation, word->head - i);
        if (word->match < 0 || word->match > i) continue;
        char name[128];
        snprintf(name, sizeof name, "match %.100s", word->text);
        add_distance(tally, side, name, word->match - i);
    }
}

void hw_grammar_tally_add(hw_grammar_tally *tally, const hw_derivation *d, const hw_pair *pair)
{
    for (int s = 0; s < HW_SIDES; s++) add_words(tally, pair, s);
    for (int p = 0; p < tally->g->phenomena; p++) {
        tally->phenomenon[p].sentences += d->counts[p] > 0;
        tally->phenomenon[p].repeated += d->counts[p] > 1;
        tally->phenomenon[p].times += d->counts[p];
    }
    tally->sentences++;
}

static int by_side_and_count(const void *x, const void *y)
{
    const distances *a = x, *b = y;
    if (a->side != b->side) return a->side - b->side;
    return a->count != b->count ? (a->count < b->count ? 1 : -1) : strcmp(a->name, b->name);
}

void hw_grammar_tally_report(const hw_grammar_tally *tally, hw_grammar_report *report)
{
    const hw_grammar *g = tally->g;
    for (int s = 0; s < HW_SIDES; s++) {
        report->vocabulary[s] = tally->vocabulary[s].count;
        report->mean_length[s] = tally->sentences ? (double)tally->words[s] / (double)tally->sentences : 0;
        report->shortest[s] = tally->shortest[s];
        report->longest[s] = tally->longest[s];
    }
    report->spelled_share = tally->words[0] ? (double)tally->pieces / (double)tally->words[0] : 0;
    report->phenomena = g->phenomena;
    report->phenomenon = zeroed(g->phenomena + 1, sizeof *report->phenomenon);
    for (int p = 0; p < g->phenomena; p++) {
        report->phenomenon[p] = tally->phenomenon[p];
        report->phenomenon[p].name = g->phenomenon[p];
    }
    report->relations = tally->relations;
    report->relation = zeroed(tally->relations + 1, sizeof *report->relation);
    if (tally->relations) qsort(tally->relation, (size_t)tally->relations, sizeof *tally->relation, by_side_and_count);
    for (int i = 0; i < tally->relations; i++) {
        const distances *from = &tally->relation[i];
        int best = 0;
        for (int k = 1; k <= 2 * FARTHEST; k++)
            if (from->distance[k] > from->distance[best]) best = k;
        report->relation[i] =
            (hw_grammar_relation){g->side[from->side], hw_arena_string(g->arena, "%s", from->name), from->count,
                                  best - FARTHEST, (double)from->distance[best] / (double)from->count};
    }
}

void hw_grammar_report_clear(hw_grammar_report *report)
{
    free(report->phenomenon);
    free(report->relation);
    report->phenomenon = NULL;
    report->relation = NULL;
}
