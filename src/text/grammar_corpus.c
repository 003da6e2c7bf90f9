/* Makes the three sets of a corpus from a grammar: different sentences throughout, and combinations that only the test
 * set shows.
 *
 * A combination is a pair of words of two classes that agree in a feature, wherever they stand (an adjective and the
 * noun that it describes). A hash of the two words decides whether it is held out, so the same ones are for every seed
 * (the idea of testing on new combinations of known words: Lake and Baroni 2018, "Generalization without
 * systematicity"). The test set is drawn first, then valid, then train, each from its own sequence of random numbers,
 * each refusing what was there before. */
#include "grammar.h"

#include <string.h>

enum { MOST_TRIES = 200000, PROGRESS_EVERY = 1000 };

typedef struct generator {
    const hw_grammar *g;
    const char *directory;
    hw_derivation derivation;
    hw_random random;
    hw_keys seen; /* sources -> targets, both as hashes */
    hw_grammar_tally *tally;
    hw_grammar_report *report;
    hw_progress_function progress;
    void *context;
    double began;
    int64_t done, total;
} generator;

/* ---- held-out combinations --------------------------------------------------------------------------------------- */

static bool held_out(const hw_grammar *g, const hw_entry *a, const hw_entry *b)
{
    uint64_t h = hw_text_hash(a->name) * 31 + hw_text_hash(b->name);
    h = (h ^ h >> 31) * 0x94D049BB133111EBu; /* a step of splitmix64, for the upper bits */
    h ^= h >> 29;
    return (double)(h >> 11) * 0x1p-53 < g->held_share;
}

static bool has_held_out(const hw_grammar *g, const hw_derivation *d)
{
    for (int i = 0; i < d->leaves && g->held[0]; i++) {
        if (d->leaf[i]->symbol != g->held[0]) continue;
        for (int k = 0; k < d->leaves; k++)
            if (d->leaf[k]->symbol == g->held[1] &&
                d->leaf[k]->variable[g->held_feature] == d->leaf[i]->variable[g->held_feature] &&
                held_out(g, d->leaf[i]->entry, d->leaf[k]->entry))
                return true;
    }
    return false;
}

/* ---- one pair ---------------------------------------------------------------------------------------------------- */

static bool fits_length(const hw_grammar *g, const hw_pair *pair)
{
    for (int s = 0; s < HW_SIDES; s++)
        if (pair->count[s] < g->min_length || pair->count[s] > g->max_length) return false;
    return true;
}

/* Does the text have these words in a row? */
static bool has_words(const char *text, const char *words)
{
    size_t size = strlen(words);
    for (const char *at = text; (at = strstr(at, words)); at++)
        if ((at == text || at[-1] == ' ') && (!at[size] || at[size] == ' ')) return true;
    return false;
}

static bool has_avoided(const hw_grammar *g, const hw_pair *pair)
{
    for (int s = 0; s < HW_SIDES; s++)
        for (int i = 0; i < g->avoided[s]; i++)
            if (has_words(pair->text[s], g->avoid[s][i])) return true;
    return false;
}

/* Is the source new? Notes a source that has two targets. */
static bool is_new(generator *v, const hw_pair *pair)
{
    bool added;
    uint64_t target = hw_text_hash(pair->text[HW_TARGET]),
             *known = hw_keys_add(&v->seen, hw_text_hash(pair->text[HW_SOURCE]), &added);
    if (added) *known = target;
    if (*known == target) return added;
    if (!v->report->ambiguous++)
        snprintf(v->report->ambiguity, sizeof v->report->ambiguity, "%s => %s", pair->text[HW_SOURCE],
                 pair->text[HW_TARGET]);
    return false;
}

/* Draws until a pair comes that may be the set's next; unseen: with a held-out combination, otherwise without. */
static bool next_pair(generator *v, const hw_rule *pin, bool unseen, hw_pair *pair, hw_error *err)
{
    const char *reason = "";
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        if (!hw_derive(v->g, pin, &v->random, &v->derivation)) {
            reason = v->derivation.reason;
            continue;
        }
        if (!pin && has_held_out(v->g, &v->derivation) != unseen) {
            reason = unseen ? "it has no held-out combination" : "it has a held-out combination";
            continue;
        }
        if (!hw_surface(v->g, &v->derivation, pair, err)) return false;
        reason = "it is shorter or longer than `corpus: length:` allows";
        if (!fits_length(v->g, pair)) continue;
        reason = "it has words in a row that `avoid:` excludes";
        if (has_avoided(v->g, pair)) continue;
        reason = "it was there already";
        if (is_new(v, pair)) return true;
    }
    return hw_fail(
        err,
        "%s: no further sentence was found in %d tries; of the last one: %s. Ask for fewer pairs or let the grammar "
        "say more",
        v->g->path, (int)MOST_TRIES, reason);
}

/* ---- a set ------------------------------------------------------------------------------------------------------- */

typedef struct subset {
    const char *name;
    uint64_t stream;
    int64_t pairs, unseen;
    int pinned;
    bool annotated, grouped;
} subset;

static void show_progress(generator *v, const subset *set)
{
    v->done++;
    bool last = v->done == v->total;
    if (!v->progress || (v->done % PROGRESS_EVERY && !last)) return;
    hw_progress progress = {"generate", v->done, v->total, hw_seconds() - v->began, set->name, last};
    v->progress(&progress, v->context);
}

static bool fill(generator *v, const subset *set, hw_grammar_files *files, hw_error *err)
{
    int64_t unseen_left = set->unseen;
    for (int64_t i = 0; i < set->pairs; i++) {
        const hw_rule *pin = i < set->pinned ? &v->g->pin[i] : NULL;
        int64_t left = set->pairs - (i < set->pinned ? set->pinned : i);
        bool unseen = !pin && (int64_t)hw_random_below(&v->random, (uint64_t)left) < unseen_left;
        hw_pair pair;
        if (!next_pair(v, pin, unseen, &pair, err)) return false;
        unseen = has_held_out(v->g, &v->derivation);
        unseen_left -= unseen;
        v->report->unseen += unseen;
        hw_grammar_files_add(files, &pair, unseen);
        hw_grammar_tally_add(v->tally, &v->derivation, &pair);
        show_progress(v, set);
    }
    return true;
}

static bool make_set(generator *v, const subset *set, int64_t seed, hw_grammar_files **files, hw_error *err)
{
    v->random = hw_random_new((uint64_t)seed, set->stream);
    *files = hw_grammar_files_begin(v->g, v->directory, set->name, set->annotated, set->grouped, err);
    return *files && fill(v, set, *files, err);
}

static int64_t chosen(int64_t option, int64_t own) { return option < 0 ? own : option; }

bool hw_grammar_generate(const hw_grammar *g, const hw_grammar_options *options, const char *directory,
                         hw_grammar_report *report, hw_progress_function progress, void *context, hw_error *err)
{
    *report = (hw_grammar_report){.side = {g->side[0], g->side[1]},
                                  .train = chosen(options->pairs, g->pairs),
                                  .valid = chosen(options->valid, g->valid),
                                  .test = chosen(options->test, g->test),
                                  .seed = chosen(options->seed, g->seed)};
    bool grouped = g->held[0] != NULL;
    int pinned = report->test < g->pinned ? (int)report->test : g->pinned;
    int64_t unseen = grouped ? (int64_t)((double)report->test * g->held_test + 0.5) : 0;
    if (unseen > report->test - pinned) unseen = report->test - pinned;
    const subset sets[HW_SETS] = {{"test", 2, report->test, unseen, pinned, true, grouped},
                           {"valid", 1, report->valid, 0, 0, true, false},
                           {"train", 0, report->train, 0, 0, options->train_annotation, false}};
    generator v = {.g = g,
                   .directory = directory,
                   .report = report,
                   .progress = progress,
                   .context = context,
                   .began = hw_seconds(),
                   .total = report->train + report->valid + report->test};
    if (!hw_directory_make(directory, err)) return false;
    v.derivation.arena = hw_arena_new(1 << 18);
    v.tally = hw_grammar_tally_new(g);
    hw_grammar_files *files[HW_SETS] = {NULL};
    bool good = true;
    for (int i = 0; i < HW_SETS && good; i++)
        if (sets[i].pairs) good = make_set(&v, &sets[i], report->seed, &files[i], err);
    good = hw_grammar_files_end(files, HW_SETS, good, err);
    if (good) hw_grammar_tally_report(v.tally, report);
    hw_grammar_tally_free(v.tally);
    hw_keys_clear(&v.seen);
    hw_arena_free(v.derivation.arena);
    return good;
}
