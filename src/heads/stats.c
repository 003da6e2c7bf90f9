/* Statistics of heads: what a head's attention looks like, whatever it is for.
 *
 * Entropy and confidence after Voita et al. 2019 (confidence leaves </s> out, as keys and as queries); the same over
 * norms of what arrives in place of weights, after Kobayashi et al. 2020. By words, pieces are joined, those that a
 * tokenizer cuts and those that text.joiner marks in the data; gold has the latter apart, so roles do too. A data set
 * is read and run some pairs at a time. Each batch has sums of its own, which are added up in the order of the batches,
 * so that neither memory nor figures depend on how many there are or on threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

/* ---- one head in one pair ---------------------------------------------------------------------------------------- */

static int bin_of(int32_t offset)
{
    if (offset < -HW_STATS_FARTHEST) return 0;
    return offset > HW_STATS_FARTHEST ? HW_STATS_OFFSETS - 1 : offset + HW_STATS_FARTHEST + 1;
}

/* Every key that has the query's largest weight counts for its part. */
static void add_offsets(hw_stats_sums *s, const hw_word_attention *a, int32_t q, hw_real best)
{
    const hw_real *row = a->weights + q * a->stride;
    int32_t ties = 0;
    for (int32_t k = 0; k < a->visible[q]; k++) ties += row[k] == best;
    for (int32_t k = 0; k < a->visible[q]; k++) {
        if (row[k] != best) continue;
        if (k == a->special)
            s->at_special += 1.0 / ties;
        else
            s->offsets[bin_of(k - a->place->first_key - q)] += 1.0 / ties;
    }
}

static void add_query(hw_stats_sums *s, const hw_word_attention *a, int32_t q)
{
    const hw_real *row = a->weights + q * a->stride;
    int32_t n = a->visible[q], first = a->place->first_key;
    hw_real largest = 0, confidence = 0;
    double distance = 0, punct = 0;
    for (int32_t k = 0; k < n; k++) {
        if (row[k] > largest) largest = row[k];
        distance += (double)row[k] * abs(k - first - q);
        if (k == a->special) continue;
        if (row[k] > confidence) confidence = row[k];
        if (a->key->words[k - first].punctuation) punct += (double)row[k];
    }
    double entropy = hw_attention_entropy(row, n);
    s->queries++;
    s->entropy += entropy;
    if (n > 1) {
        s->choices++;
        s->relative += entropy / log((double)n);
    }
    s->confidence += (double)confidence;
    s->distance += distance;
    s->first += (double)row[0];
    s->last += a->visible[q] == a->keys ? (double)row[a->keys - 1] : 0;
    s->self += first + q < n ? (double)row[first + q] : 0;
    s->punct += punct;
    s->special += a->special < n ? (double)row[a->special] : 0;
    add_offsets(s, a, q, largest);
}

void hw_stats_add(hw_stats_sums *sums, const hw_word_attention *a)
{
    for (int32_t q = 0; q < a->queries; q++) add_query(sums, a, q);
    sums->arriving += a->arriving;
}

static void add_sums(hw_stats_sums *to, const hw_stats_sums *from)
{
    double *x = (double *)to;
    const double *y = (const double *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *x; i++) x[i] += y[i];
}

/* ---- a batch ----------------------------------------------------------------------------------------------------- */

enum { AT_ONCE = 1024, WAYS = 4 }; /* pairs that are read together; by tokens or words, weights or norms */

typedef struct survey {
    const hw_transformer *network;
    const hw_value_norms *norms;
    const int *first; /* [attentions] of each one's rows in a table of sums: [heads][places of its kind][WAYS] */
    int rows;
    const hw_study_set *set;
    hw_stats_sums **batches; /* [batches] -> [rows] */
} survey;

static int places_of(hw_attention_kind kind)
{
    int count = 0;
    for (int p = 0; p < HW_PLACES; p++) count += hw_place_at(p)->kind == kind;
    return count;
}

/* Words as they are spelled: "bo@@ ti" is one. */
static hw_sentence spelled(const hw_sentence *s, hw_arena *arena)
{
    hw_study_word *words = hw_arena_alloc(arena, ((size_t)s->count + 1) * sizeof *words);
    hw_sentence out = {.ids = s->ids, .words = words};
    for (int32_t w = 0; w < s->count; w++) {
        const hw_study_word *piece = &s->words[w];
        if (w && s->words[w - 1].goes_on) {
            hw_study_word *word = &words[out.count - 1];
            word->bytes = (size_t)(piece->text - word->text) + piece->bytes;
            word->count += piece->count;
            word->rank = piece->rank > word->rank ? piece->rank : word->rank;
            word->punctuation &= piece->punctuation;
            word->goes_on = piece->goes_on;
        } else {
            words[out.count++] = *piece;
        }
    }
    return out.count == s->count ? *s : out;
}

static void add_pair(const survey *s, hw_stats_sums *table, int attention, const hw_visit *v, int64_t b,
                     const hw_real *block, const hw_real *norms)
{
    const hw_recorded *r = &v->attentions[attention];
    hw_arena *arena = hw_tape_arena(v->tape);
    hw_attention_kind kind = hw_attention_kind_of(s->network, attention);
    const hw_study_pair *pair = &s->set->pairs[v->batch->lines[b]];
    int64_t cols = r->keys.length[b], size = r->queries.length[b] * cols,
            heads = hw_transformer_attention(s->network, attention)->heads;
    int places = places_of(kind), at = 0;
    const hw_sentence words[2] = {spelled(&pair->words[0], arena), spelled(&pair->words[1], arena)};
    const hw_sentence *units[2] = {pair->tokens, words};
    bool alike = true;
    for (int side = 0; side < 2; side++) alike &= pair->tokens[side].words == words[side].words;
    for (int p = 0; p < HW_PLACES; p++) {
        const hw_place *place = hw_place_at(p);
        if (place->kind != kind) continue;
        for (int by_words = 0; by_words < (alike ? 1 : 2); by_words++) {
            const hw_sentence *u = units[by_words];
            hw_word_attention a = hw_word_attention_new(place, &u[place->query_side], &u[place->key_side], arena);
            for (int64_t h = 0; h < heads; h++)
                for (int norm = 0; norm < 2; norm++) {
                    hw_word_attention_fill(&a, block + h * size, cols, norm ? norms + h * cols : NULL);
                    hw_stats_sums sums = {0}, *rows = table + s->first[attention] + (h * places + at) * WAYS + norm;
                    hw_stats_add(&sums, &a);
                    add_sums(&rows[2 * by_words], &sums);
                    if (alike) add_sums(&rows[2], &sums);
                }
        }
        at++;
    }
}

static void visit(int i, const hw_visit *v, void *argument)
{
    const survey *s = argument;
    hw_arena *arena = hw_tape_arena(v->tape);
    hw_stats_sums *table = calloc((size_t)s->rows, sizeof *table);
    HW_CHECK(table, "no memory for statistics");
    s->batches[i] = table;
    for (int a = 0; a < s->network->attentions; a++) {
        const hw_recorded *r = &v->attentions[a];
        const hw_real *block = r->weights->data;
        int64_t heads = hw_transformer_attention(s->network, a)->heads;
        for (int64_t b = 0; b < v->batch->sentences; b++) {
            hw_arena_mark mark = hw_arena_begin(arena);
            hw_real *norms = hw_arena_alloc(arena, (size_t)(heads * r->keys.length[b]) * sizeof *norms);
            hw_value_norms_of(s->norms, a, r, b, norms);
            add_pair(s, table, a, v, b, block, norms);
            hw_arena_end(arena, mark);
            block += heads * r->queries.length[b] * r->keys.length[b];
        }
    }
}

/* ---- a data set -------------------------------------------------------------------------------------------------- */

/* Everything that is counted, with nothing in it yet; the order is that of survey.first. */
static hw_stats *empty(const hw_transformer *network, hw_arena *arena, int *first)
{
    int heads, at = 0;
    const hw_head *all = hw_heads_of(network, arena, &heads);
    hw_stats *stats = hw_arena_calloc(arena, 1, sizeof *stats);
    stats->items = hw_arena_calloc(arena, (size_t)heads * 2 * WAYS, sizeof *stats->items);
    for (int h = 0; h < heads; h++) {
        if (!all[h].head) first[all[h].attention] = at;
        for (int p = 0; p < HW_PLACES; p++)
            for (int way = 0; way < WAYS && hw_place_at(p)->kind == all[h].kind; way++)
                stats->items[at++] =
                    (hw_head_stats){.head = all[h], .place = p, .by_words = way >= 2, .norms = way % 2};
    }
    stats->count = at;
    return stats;
}

static void add_chunk(hw_stats *stats, survey *s, hw_runner *runner)
{
    s->batches = calloc((size_t)s->set->count, sizeof *s->batches);
    HW_CHECK(s->batches, "no memory for statistics");
    hw_study_visit(s->set, runner, &(hw_visit_options){.weights = true}, visit, s);
    for (int64_t i = 0; i < s->set->count && s->batches[i]; i++) {
        for (int row = 0; row < s->rows; row++) add_sums(&stats->items[row].sums, &s->batches[i][row]);
        free(s->batches[i]);
    }
    free(s->batches);
    stats->pairs += s->set->count;
}

hw_stats *hw_stats_of(const hw_transformer *m, hw_runner *runner, const hw_study_set *set, hw_arena *arena)
{
    int *first = hw_arena_alloc(arena, (size_t)m->attentions * sizeof *first);
    hw_stats *stats = empty(m, arena, first);
    hw_value_norms *norms = hw_value_norms_new(m);
    survey s = {.network = m, .norms = norms, .first = first, .rows = stats->count, .set = set};
    add_chunk(stats, &s, runner);
    hw_value_norms_free(norms);
    return stats;
}

hw_stats *hw_stats_study(const hw_bundle *bundle, hw_study_stream *stream, hw_progress_function progress, void *context,
                         hw_arena *arena, hw_error *err)
{
    const hw_transformer *m = bundle->network;
    int *first = hw_arena_alloc(arena, (size_t)m->attentions * sizeof *first), got;
    hw_stats *stats = empty(m, arena, first);
    hw_value_norms *norms = hw_value_norms_new(m);
    hw_runner *runner = hw_runner_new(m);
    hw_arena *chunk = hw_arena_new(0);
    hw_study_set set;
    double begun = hw_seconds();
    while ((got = hw_study_stream_next(stream, chunk, AT_ONCE, &set, err)) == 1) {
        survey s = {.network = m, .norms = norms, .first = first, .rows = stats->count, .set = &set};
        add_chunk(stats, &s, runner);
        hw_arena_reset(chunk);
        hw_progress p = {.what = "stats", .done = stats->pairs, .seconds = hw_seconds() - begun, .detail = "pairs"};
        if (progress) progress(&p, context);
    }
    hw_arena_free(chunk);
    hw_runner_free(runner);
    hw_value_norms_free(norms);
    if (got < 0 || (!stats->pairs && !hw_study_fail_empty(bundle, &set, err))) return NULL;
    return stats;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *share(double sum, double count)
{
    return count > 0 && isfinite(sum) ? json_real(sum / count) : json_null();
}

static json_t *row_json(const hw_head_stats *x)
{
    const hw_stats_sums *s = &x->sums;
    const hw_place *place = hw_place_at(x->place);
    json_t *o = json_object(), *offsets = json_array();
    json_object_set_new(o, "name", json_string(x->head.name));
    if (place->step) json_object_set_new(o, "step", json_string(place->step));
    json_object_set_new(o, "unit", json_string(x->by_words ? "word" : "token"));
    json_object_set_new(o, "measure", json_string(x->norms ? "norms" : "weights"));
    json_object_set_new(o, "queries", json_real(s->queries));
    json_object_set_new(o, "entropy", share(s->entropy, s->queries));
    json_object_set_new(o, "relative_entropy", share(s->relative, s->choices));
    json_object_set_new(o, "confidence", share(s->confidence, s->queries));
    json_object_set_new(o, "distance", share(s->distance, s->queries));
    json_object_set_new(o, "first", share(s->first, s->queries));
    json_object_set_new(o, "last", place->causal ? json_null() : share(s->last, s->queries));
    json_object_set_new(o, "self", place->kind == HW_CROSS ? json_null() : share(s->self, s->queries));
    json_object_set_new(o, "punct", share(s->punct, s->queries));
    json_object_set_new(o, "special", share(s->special, s->queries));
    for (int i = 0; i < HW_STATS_OFFSETS; i++) json_array_append_new(offsets, share(s->offsets[i], s->queries));
    json_object_set_new(o, "offsets", offsets);
    json_object_set_new(o, "argmax_special", share(s->at_special, s->queries));
    json_object_set_new(o, "arriving", x->norms ? share(s->arriving, s->queries) : json_null());
    return o;
}

json_t *hw_stats_json(const hw_stats *stats)
{
    json_t *heads = json_array();
    for (int i = 0; i < stats->count; i++) json_array_append_new(heads, row_json(&stats->items[i]));
    return json_pack("{s:I, s:o}", "sentences", (json_int_t)stats->pairs, "heads", heads);
}
