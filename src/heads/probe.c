/* Probes: small classifiers that read a label off a vector, and what it takes to describe the labels with them.
 *
 * All rows are learnt from at once with a fixed number of steps of Adam (Kingma and Ba 2015) on the mean cross-entropy
 * and a little weight decay, in double precision, so that a figure is a function of data and seed, and can be computed
 * again elsewhere. Accuracy alone says little (Hewitt and Liang 2019); the online code (Voita and Titov 2020) also
 * counts what learning took. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

enum { STEPS = 150 };
static const double RATE = 0.05, BETA1 = 0.9, BETA2 = 0.999, EPSILON = 1e-8, DECAY = 2e-3;

/* A layer's weights: [inputs + 1][outputs], the bias last. */
typedef struct layer {
    int inputs, outputs;
    double *w, *gradient, *m, *v;
} layer;

struct hw_probe {
    int width, classes, hidden;
    double *mean, *scale; /* [width] of standardising */
    layer first, second;  /* linear: first only */
};

/* ---- one row ----------------------------------------------------------------------------------------------------- */

static void apply(const layer *l, const double *x, double *y)
{
    memcpy(y, l->w + l->inputs * l->outputs, (size_t)l->outputs * sizeof *y);
    for (int i = 0; i < l->inputs; i++) {
        const double *w = l->w + i * l->outputs;
        for (int o = 0; o < l->outputs; o++) y[o] += x[i] * w[o];
    }
}

static void add_gradient(layer *l, const double *x, const double *dy)
{
    for (int i = 0; i <= l->inputs; i++) {
        double *g = l->gradient + i * l->outputs, by = i < l->inputs ? x[i] : 1;
        if (by != 0)
            for (int o = 0; o < l->outputs; o++) g[o] += by * dy[o];
    }
}

/* Scores become probabilities. */
static void softmax(double *y, int count)
{
    double top = y[0], sum = 0;
    for (int c = 1; c < count; c++) top = fmax(top, y[c]);
    for (int c = 0; c < count; c++) sum += y[c] = exp(y[c] - top);
    for (int c = 0; c < count; c++) y[c] /= sum;
}

static void standardise(const hw_probe *p, const double *x, double *out)
{
    for (int i = 0; i < p->width; i++) out[i] = (x[i] - p->mean[i]) * p->scale[i];
}

/* in [width] standardised -> inner [hidden], out [classes] probabilities */
static void predict(const hw_probe *p, const double *in, double *inner, double *out)
{
    if (!p->hidden) {
        apply(&p->first, in, out);
    } else {
        apply(&p->first, in, inner);
        for (int i = 0; i < p->hidden; i++) inner[i] = fmax(0, inner[i]);
        apply(&p->second, inner, out);
    }
    softmax(out, p->classes);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static layer layer_new(int inputs, int outputs, hw_random *random, hw_arena *arena)
{
    layer l = {.inputs = inputs, .outputs = outputs};
    size_t size = (size_t)(inputs + 1) * (size_t)outputs;
    double **all[] = {&l.w, &l.gradient, &l.m, &l.v};
    for (int k = 0; k < 4; k++) *all[k] = hw_arena_calloc(arena, size, sizeof(double));
    double bound = sqrt(6.0 / (inputs + outputs));
    for (int i = 0; i < inputs * outputs && random; i++) l.w[i] = bound * (2 * hw_random_uniform(random) - 1);
    return l;
}

static void step(layer *l, int t, int64_t rows)
{
    double correct1 = 1 - pow(BETA1, t), correct2 = 1 - pow(BETA2, t);
    for (int i = 0; i < (l->inputs + 1) * l->outputs; i++) {
        double decay = i < l->inputs * l->outputs ? DECAY * l->w[i] : 0;
        double g = l->gradient[i] / (double)rows + decay;
        l->m[i] = BETA1 * l->m[i] + (1 - BETA1) * g;
        l->v[i] = BETA2 * l->v[i] + (1 - BETA2) * g * g;
        l->w[i] -= RATE * (l->m[i] / correct1) / (sqrt(l->v[i] / correct2) + EPSILON);
        l->gradient[i] = 0;
    }
}

/* A number that never changes is left as it is. */
static void measure_scale(hw_probe *p, const hw_probe_data *d, hw_arena *arena)
{
    p->mean = hw_arena_calloc(arena, (size_t)p->width, sizeof *p->mean);
    p->scale = hw_arena_calloc(arena, (size_t)p->width, sizeof *p->scale);
    for (int64_t r = 0; r < d->count; r++)
        for (int i = 0; i < p->width; i++) p->mean[i] += d->x[r * p->width + i] / (double)d->count;
    for (int64_t r = 0; r < d->count; r++)
        for (int i = 0; i < p->width; i++) {
            double x = d->x[r * p->width + i] - p->mean[i];
            p->scale[i] += x * x / (double)d->count;
        }
    for (int i = 0; i < p->width; i++) p->scale[i] = p->scale[i] > 1e-18 ? 1 / sqrt(p->scale[i]) : 1;
}

/* Back from the scores' gradient, which stands in out. */
static void backward(hw_probe *p, const double *in, const double *inner, const double *out, double *dinner)
{
    if (!p->hidden) {
        add_gradient(&p->first, in, out);
        return;
    }
    add_gradient(&p->second, inner, out);
    for (int i = 0; i < p->hidden; i++) {
        const double *w = p->second.w + i * p->classes;
        dinner[i] = 0;
        for (int c = 0; c < p->classes && inner[i] > 0; c++) dinner[i] += w[c] * out[c];
    }
    add_gradient(&p->first, in, dinner);
}

hw_probe *hw_probe_train(const hw_probe_data *d, int hidden, uint64_t seed, hw_arena *arena)
{
    hw_probe *p = hw_arena_calloc(arena, 1, sizeof *p);
    *p = (hw_probe){.width = d->width, .classes = d->classes, .hidden = hidden};
    hw_random random = hw_random_new(seed, 0);
    p->first = layer_new(d->width, hidden ? hidden : d->classes, hidden ? &random : NULL, arena);
    if (hidden) p->second = layer_new(hidden, d->classes, &random, arena);
    measure_scale(p, d, arena);
    size_t width = (size_t)d->width;
    double *in = hw_arena_alloc(arena, (size_t)d->count * width * sizeof *in + 1);
    for (int64_t r = 0; r < d->count; r++) standardise(p, d->x + r * d->width, in + r * d->width);
    double *inner = hw_arena_alloc(arena, 2 * ((size_t)hidden + 1) * sizeof *inner);
    double *out = hw_arena_alloc(arena, (size_t)d->classes * sizeof *out);
    for (int t = 1; t <= STEPS; t++) {
        for (int64_t r = 0; r < d->count; r++) {
            predict(p, in + r * d->width, inner, out);
            out[d->label[r]] -= 1;
            backward(p, in + r * d->width, inner, out, inner + hidden);
        }
        step(&p->first, t, d->count);
        if (hidden) step(&p->second, t, d->count);
    }
    return p;
}

/* ---- testing ----------------------------------------------------------------------------------------------------- */

int64_t hw_probe_test(const hw_probe *p, const hw_probe_data *d, bool *right, double *bits)
{
    double *in = malloc((size_t)(p->width + p->hidden + p->classes) * sizeof *in);
    HW_CHECK(in, "no memory for a probe");
    double *inner = in + p->width, *out = inner + p->hidden;
    int64_t hits = 0;
    for (int64_t r = 0; r < d->count; r++) {
        int best = 0;
        standardise(p, d->x + r * d->width, in);
        predict(p, in, inner, out);
        for (int c = 1; c < p->classes; c++)
            if (out[c] > out[best]) best = c;
        hits += best == d->label[r];
        if (right) right[r] = best == d->label[r];
        if (bits) *bits -= log2(fmax(out[d->label[r]], 1e-300));
    }
    free(in);
    return hits;
}

static hw_probe_data part_of(const hw_probe_data *d, int64_t from, int64_t to)
{
    return (hw_probe_data){to - from, d->width, d->classes, d->x + from * d->width, d->label + from};
}

double hw_probe_code_length(const hw_probe_data *d, int hidden, uint64_t seed)
{
    static const double thousandths[] = {1, 2, 4, 8, 16, 32, 62.5, 125, 250, 500, 1000};
    hw_arena *arena = hw_arena_new(0);
    int64_t known = 0;
    double bits = 0;
    for (size_t i = 0; i < sizeof thousandths / sizeof *thousandths; i++) {
        int64_t end = (int64_t)ceil((double)d->count * thousandths[i] / 1000);
        hw_probe_data before = part_of(d, 0, known), part = part_of(d, known, end);
        if (!known)
            bits += (double)end * log2(d->classes);
        else if (end > known) {
            hw_arena_reset(arena);
            hw_probe_test(hw_probe_train(&before, hidden, seed, arena), &part, NULL, &bits);
        }
        known = end;
    }
    hw_arena_free(arena);
    return bits;
}
