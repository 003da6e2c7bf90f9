/* Probes of everything in a network: its embeddings, every head's output (before gate and output projection), and what
 * comes out of every layer, of the trained network and of one with initial values.
 *
 * A word is the mean of its tokens; in the decoder it is seen where it is fed. Probes learn from one set and are tested
 * on another. Where a label is nearly a function of the word, half of all word types are kept for the test. Selectivity
 * is taken on words that were learnt from, since its control task is a function of the word by design. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probe_study.h"

enum { FEW = 20, COMMONEST = 20, WORDS_A_LABEL = 5 }; /* of so many words one may have a label */

/* ---- labelled words ---------------------------------------------------------------------------------------------- */

typedef struct item {
    int64_t row;      /* in the vectors */
    int64_t sentence; /* counted within the range */
    int32_t label;
    uint64_t word; /* a hash of its form */
} item;

typedef struct items {
    int64_t count;
    item *list;
} items;

typedef struct class_list {
    int count, capacity;
    char (*name)[128];
    int64_t *uses;
} class_list;

static int class_of(class_list *c, const char *name, bool add, hw_arena *arena)
{
    int i = 0;
    while (i < c->count && strcmp(c->name[i], name)) i++;
    if (i < c->count || !add) return i < c->count ? i : -1;
    if (c->count == c->capacity) {
        int capacity = c->capacity ? 2 * c->capacity : 64;
        char(*names)[128] = hw_arena_alloc(arena, (size_t)capacity * sizeof *names);
        int64_t *uses = hw_arena_calloc(arena, (size_t)capacity, sizeof *uses);
        if (c->count) {
            memcpy(names, c->name, (size_t)c->count * sizeof *names);
            memcpy(uses, c->uses, (size_t)c->count * sizeof *uses);
        }
        *c = (class_list){c->count, capacity, names, uses};
    }
    snprintf(c->name[c->count], sizeof *c->name, "%.127s", name);
    return c->count++;
}

/* The labelled words of a range; the labels are those of `classes`, to which new ones are added where asked for. */
static items label_words(const hw_probe_label *label, const hw_vectors *v, class_list *classes, bool add,
                         hw_arena *arena)
{
    items out = {0, hw_arena_alloc(arena, ((size_t)v->start[v->pairs] + 1) * sizeof(item))};
    for (int64_t i = 0; i < v->pairs; i++) {
        const hw_study_pair *pair = &v->set->pairs[v->first + i];
        const hw_sentence *s = &pair->words[v->side];
        const hw_conllu *gold = v->set->trees[v->side];
        const hw_conllu_word *tree = gold ? gold->words + gold->start[pair->line] : NULL;
        for (int32_t w = 0; w < s->count; w++) {
            char text[128], form[128];
            const char *name = label->of(s, tree, w, text);
            int c = name ? class_of(classes, name, add, arena) : -1;
            if (c < 0) continue;
            classes->uses[c] += add;
            snprintf(form, sizeof form, "%.*s", (int)s->words[w].bytes, s->words[w].text);
            out.list[out.count++] = (item){v->start[i] + w, i, c, hw_fingerprint_text(0, form)};
        }
    }
    return out;
}

/* Keeps the commonest classes, which get the numbers 0, 1, ... -> how many. */
static int keep_commonest(class_list *c, items *learn, items *test, hw_arena *arena)
{
    int *number = hw_arena_alloc(arena, ((size_t)c->count + 1) * sizeof *number), kept = 0;
    for (int i = 0; i < c->count; i++) number[i] = -1;
    for (; kept < COMMONEST && kept < c->count; kept++) {
        int best = -1;
        for (int i = 0; i < c->count; i++)
            if (number[i] < 0 && (best < 0 || c->uses[i] > c->uses[best])) best = i;
        number[best] = kept;
    }
    items *both[2] = {learn, test};
    for (int k = 0; k < 2; k++) {
        int64_t left = 0;
        for (int64_t i = 0; i < both[k]->count; i++) {
            item x = both[k]->list[i];
            x.label = number[x.label];
            if (x.label >= 0) both[k]->list[left++] = x;
        }
        both[k]->count = left;
    }
    return kept;
}

/* ---- what a seed draws ------------------------------------------------------------------------------------------- */

static bool is_for_test(uint64_t word, uint64_t seed)
{
    hw_random random = hw_random_new(seed ^ 0x9e3779b97f4a7c15u, word);
    return hw_random_below(&random, 2);
}

/* At most `most` of the words, drawn without order; with words held out, half of the word types each. */
static items draw(const items *all, int64_t most, uint64_t seed, int hold_out, hw_arena *arena)
{
    items out = {0, hw_arena_alloc(arena, ((size_t)all->count + 1) * sizeof(item))};
    for (int64_t i = 0; i < all->count; i++)
        if (hold_out < 0 || is_for_test(all->list[i].word, seed) == hold_out) out.list[out.count++] = all->list[i];
    hw_random random = hw_random_new(seed, 11);
    for (int64_t i = 0; i < out.count && i < most; i++) {
        int64_t other = i + (int64_t)hw_random_below(&random, (uint64_t)(out.count - i));
        item x = out.list[i];
        out.list[i] = out.list[other];
        out.list[other] = x;
    }
    if (out.count > most) out.count = most;
    return out;
}

/* The control task: each word type gets the label of a word drawn at random from those learnt, the same one in both
 * sets; so labels are as frequent as the real ones. */
static items control_of(const items *from, const items *learnt, uint64_t seed, hw_arena *arena)
{
    items out = {from->count, hw_arena_copy(arena, from->list, ((size_t)from->count + 1) * sizeof(item))};
    for (int64_t i = 0; i < out.count; i++) {
        hw_random random = hw_random_new(seed + 77, out.list[i].word);
        out.list[i].label = learnt->list[hw_random_below(&random, (uint64_t)learnt->count)].label;
    }
    return out;
}

typedef struct drawn {
    items learn, test;                 /* what accuracy is about */
    items plain_learn, plain_test;     /* the same where no words are held out */
    items control_learn, control_test; /* of the plain ones */
} drawn;

/* ---- one label on one side --------------------------------------------------------------------------------------- */

typedef struct task {
    const hw_probe_options *options;
    const hw_probe_label *label;
    int classes;
    const drawn *seeds;                         /* [seeds] */
    const hw_vectors *learn, *test;             /* of the network, */
    const hw_vectors *fresh_learn, *fresh_test; /* and of the untrained one */
    hw_probed *out;                             /* [things] */
} task;

static hw_probe_data gather(const task *t, const items *from, const hw_vectors *v, int thing, hw_arena *arena)
{
    const hw_thing *x = &v->things[thing];
    double *numbers = hw_arena_alloc(arena, (size_t)from->count * (size_t)x->width * sizeof *numbers + 1);
    int32_t *labels = hw_arena_alloc(arena, (size_t)from->count * sizeof *labels + 1);
    for (int64_t i = 0; i < from->count; i++) {
        const float *row = v->x + from->list[i].row * v->total + x->column;
        for (int k = 0; k < x->width; k++) numbers[i * x->width + k] = (double)row[k];
        labels[i] = from->list[i].label;
    }
    return (hw_probe_data){from->count, x->width, t->classes, numbers, labels};
}

/* Accuracy on test after learning; right as in hw_probe_test. */
static double accuracy(const task *t, const items *learn, const hw_vectors *from, const items *test,
                       const hw_vectors *on, int thing, uint64_t seed, bool *right)
{
    hw_arena *arena = hw_arena_new(0);
    hw_probe_data known = gather(t, learn, from, thing, arena), asked = gather(t, test, on, thing, arena);
    const hw_probe *p = hw_probe_train(&known, t->options->hidden, seed, arena);
    double share = (double)hw_probe_test(p, &asked, right, NULL) / (double)asked.count;
    hw_arena_free(arena);
    return share;
}

/* What one thing's probes got right, a sentence: right and asked, over all seeds. A seed counts the same however many
 * words it asks, as in the accuracy, which is the mean over seeds and so the sums' ratio. */
typedef double (*by_sentence)[2];

static void add_right(const items *test, const bool *right, by_sentence rows)
{
    for (int64_t i = 0; i < test->count; i++) {
        rows[test->list[i].sentence][0] += right[i] / (double)test->count;
        rows[test->list[i].sentence][1] += 1 / (double)test->count;
    }
}

static void set_interval(const task *t, const by_sentence rows, hw_probed *out)
{
    hw_tally tally;
    hw_tally_init(&tally, 2, hw_ratio_score, NULL);
    for (int64_t i = 0; i < t->test->pairs; i++)
        if (rows[i][1] > 0) hw_tally_add(&tally, rows[i]);
    out->low = out->high = NAN;
    if (tally.count > 1 && t->options->trials) {
        hw_interval x = hw_bootstrap_interval(&tally, t->options->trials, t->options->seed);
        out->low = x.low;
        out->high = x.high;
    }
    hw_tally_clear(&tally);
}

static double commonest_share(const items *learn, const items *test, int classes)
{
    int64_t *count = calloc((size_t)classes, sizeof *count), hits = 0;
    HW_CHECK(count, "no memory for %d classes", classes);
    int best = 0;
    for (int64_t i = 0; i < learn->count; i++) count[learn->list[i].label]++;
    for (int c = 1; c < classes; c++)
        if (count[c] > count[best]) best = c;
    for (int64_t i = 0; i < test->count; i++) hits += test->list[i].label == best;
    free(count);
    return (double)hits / (double)test->count;
}

static double probe_seed(const task *t, int thing, int s, by_sentence rows, hw_probed *out)
{
    const drawn *d = &t->seeds[s];
    uint64_t seed = t->options->seed + (uint64_t)s;
    bool *right = malloc((size_t)d->test.count + 1);
    HW_CHECK(right, "no memory for a probe");
    double share = accuracy(t, &d->learn, t->learn, &d->test, t->test, thing, seed, right);
    double control = accuracy(t, &d->control_learn, t->learn, &d->control_test, t->test, thing, seed, NULL);
    double plain =
        t->label->lexical ? accuracy(t, &d->plain_learn, t->learn, &d->plain_test, t->test, thing, seed, NULL) : share;
    if (!s) {
        out->learnt = d->learn.count;
        out->tested = d->test.count;
        hw_arena *arena = hw_arena_new(0);
        hw_probe_data known = gather(t, &d->plain_learn, t->learn, thing, arena);
        out->bits = hw_probe_code_length(&known, t->options->hidden, seed);
        out->uniform = (double)known.count * log2(t->classes);
        hw_arena_free(arena);
    }
    add_right(&d->test, right, rows);
    double untrained = accuracy(t, &d->learn, t->fresh_learn, &d->test, t->fresh_test, thing, seed, NULL);
    out->majority += commonest_share(&d->learn, &d->test, t->classes) / t->options->seeds;
    out->untrained += untrained / t->options->seeds;
    out->control += control / t->options->seeds;
    out->selectivity += (plain - control) / t->options->seeds;
    free(right);
    return share;
}

static void probe_thing(int thing, void *argument)
{
    const task *t = argument;
    const hw_thing *x = &t->learn->things[thing];
    hw_probed *out = &t->out[thing];
    double sum = 0, squares = 0, n = t->options->seeds;
    *out = (hw_probed){.is_head = x->is_head, .label = t->label, .classes = t->classes};
    snprintf(out->name, sizeof out->name, "%s", x->name);
    by_sentence rows = calloc((size_t)t->test->pairs + 1, sizeof *rows);
    HW_CHECK(rows, "no memory for %lld sentences", (long long)t->test->pairs);
    for (int s = 0; s < t->options->seeds; s++) {
        double share = probe_seed(t, thing, s, rows, out);
        sum += share;
        squares += share * share;
    }
    set_interval(t, rows, out);
    free(rows);
    out->accuracy = sum / n;
    out->deviation = n > 1 ? sqrt(fmax(0, (squares - sum * sum / n) / (n - 1))) : NAN;
}

/* ---- the study --------------------------------------------------------------------------------------------------- */

typedef struct sides {
    hw_vectors *learn, *test, *fresh_learn, *fresh_test;
} sides;

/* Why a label cannot be probed there; NULL: it can, and everything is drawn. */
static const char *prepare(task *t, const sides *v, hw_arena *arena)
{
    const hw_probe_options *o = t->options;
    int side = v->learn->side;
    if (t->label->gold && (!v->learn->set->trees[side] || !v->test->set->trees[side]))
        return "there is no gold annotation (PREFIX.SUFFIX.conllu)";
    class_list classes = {0};
    items learn = label_words(t->label, v->learn, &classes, true, arena);
    items test = label_words(t->label, v->test, &classes, false, arena);
    t->classes = keep_commonest(&classes, &learn, &test, arena);
    if (learn.count && t->classes < 2) return "all words have one and the same label";
    drawn *seeds = hw_arena_alloc(arena, (size_t)o->seeds * sizeof *seeds);
    for (int s = 0; s < o->seeds; s++) {
        drawn *d = &seeds[s];
        uint64_t seed = o->seed + (uint64_t)s;
        d->plain_learn = draw(&learn, o->words, seed, -1, arena);
        d->plain_test = draw(&test, o->words, seed + 1000, -1, arena);
        d->learn = t->label->lexical ? draw(&learn, o->words, seed, 0, arena) : d->plain_learn;
        d->test = t->label->lexical ? draw(&test, o->words, seed, 1, arena) : d->plain_test;
        if (d->learn.count < FEW || d->test.count < FEW) return "there are too few words that have one";
        d->control_learn = control_of(&d->plain_learn, &d->plain_learn, seed, arena);
        d->control_test = control_of(&d->plain_test, &d->plain_learn, seed, arena);
    }
    t->seeds = seeds;
    t->learn = v->learn;
    t->test = v->test;
    t->fresh_learn = v->fresh_learn;
    t->fresh_test = v->fresh_test;
    return NULL;
}

static void probe_label(hw_probes *out, task *t, hw_arena *arena)
{
    int things = t->learn->count;
    hw_probed *all = hw_arena_alloc(arena, (size_t)(out->count + things) * sizeof *all);
    if (out->count) memcpy(all, out->items, (size_t)out->count * sizeof *all);
    t->out = all + out->count;
    hw_parallel(things, probe_thing, t);
    for (int i = 0; i < things; i++) t->out[i].embeddings = t->out[0].accuracy;
    out->items = all;
    out->count += things;
}

/* The end of a range of pairs that has words enough. */
static int64_t enough(const hw_study_set *set, int64_t first, int64_t end, int side, int64_t words)
{
    int64_t have = 0, i = first;
    while (i < end && have < words * WORDS_A_LABEL) have += set->pairs[i++].words[side].count;
    return i;
}

static sides vectors_of(const hw_bundle *bundle, const hw_bundle *fresh, const hw_study_set *learn,
                        const hw_study_set *test, int side, const hw_probe_options *o, hw_arena *arena)
{
    bool halves = learn->pairs == test->pairs;
    int64_t middle = halves ? learn->count / 2 : 0;
    int64_t learnt = enough(learn, 0, halves ? middle : learn->count, side, o->words);
    int64_t tested = enough(test, middle, test->count, side, o->words);
    return (sides){hw_vectors_of(bundle->network, learn, 0, learnt, side, arena),
                   hw_vectors_of(bundle->network, test, middle, tested, side, arena),
                   hw_vectors_of(fresh->network, learn, 0, learnt, side, arena),
                   hw_vectors_of(fresh->network, test, middle, tested, side, arena)};
}

static void nothing(const json_t *skipped, hw_arena *arena, hw_error *err)
{
    const char *all = "";
    size_t i;
    json_t *why;
    json_array_foreach(skipped, i, why) all =
        hw_arena_string(arena, "%s%s%s", all, i ? "; " : "", json_string_value(why));
    hw_fail(err, "there is nothing to probe: %s", all);
}

hw_probes *hw_probe_study(const hw_bundle *bundle, const hw_study_set *learn, const hw_study_set *test,
                          const hw_probe_options *o, hw_progress_function progress, void *context, hw_arena *arena,
                          hw_error *err)
{
    hw_bundle *fresh = hw_bundle_untrained(bundle, o->seed, err);
    if (!fresh) return NULL;
    hw_probes *out = hw_arena_calloc(arena, 1, sizeof *out);
    out->skipped = json_array();
    int64_t labels = 0, done = 0;
    while (hw_probe_label_at((int)labels)) labels++;
    double begun = hw_seconds();
    for (int side = 0; side < 2; side++) {
        sides v = vectors_of(bundle, fresh, learn, test, side, o, arena);
        for (int i = 0; i < labels; i++, done++) {
            task t = {.options = o, .label = hw_probe_label_at(i)};
            if (o->only && o->only != t.label) continue;
            hw_progress p = {.what = "probe",
                             .done = done,
                             .total = 2 * labels,
                             .seconds = hw_seconds() - begun,
                             .detail = t.label->name};
            if (progress) progress(&p, context);
            const char *reason = prepare(&t, &v, arena);
            if (!reason) {
                probe_label(out, &t, arena);
                continue;
            }
            const char *why = hw_arena_string(arena, "%s: %s: %s", side ? "target" : "source", t.label->name, reason);
            json_array_append_new(out->skipped, hw_json_text(why));
        }
    }
    hw_bundle_free(fresh);
    if (out->count) return out;
    nothing(out->skipped, arena, err);
    json_decref(out->skipped);
    return NULL;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

json_t *hw_probes_json(const hw_probes *p)
{
    json_t *heads = json_array();
    for (int i = 0; i < p->count; i++) {
        const hw_probed *x = &p->items[i];
        const struct {
            const char *key;
            double value;
        } figures[] = {
            {"accuracy", x->accuracy},
            {"low", x->low},
            {"high", x->high},
            {"deviation", x->deviation},
            {"majority", x->majority},
            {"embeddings", x->embeddings},
            {"untrained", x->untrained},
            {"control", x->control},
            {"selectivity", x->selectivity},
            {"bits", x->bits},
            {"uniform_bits", x->uniform},
            {"compression", x->uniform / x->bits},
        };
        json_t *o = json_pack("{s:s, s:b, s:s, s:b, s:i, s:I, s:I}", "name", x->name, "is_head", x->is_head, "label",
                              x->label->name, "words_held_out", x->label->lexical, "classes", x->classes, "learnt",
                              (json_int_t)x->learnt, "tested", (json_int_t)x->tested);
        for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
            json_object_set_new(o, figures[k].key, hw_json_number(figures[k].value));
        json_array_append_new(heads, o);
    }
    return json_pack("{s:o, s:O}", "heads", heads, "skipped", p->skipped);
}
