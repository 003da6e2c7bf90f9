/* From evidence to scores, intervals, p and labels.
 *
 * A head has a role if on the selection set it reaches the role's threshold and exceeds its baseline by the role's
 * margin, does so on the test set too and exceeds there, by the same margin, the best untrained head, and its advantage
 * over the better of the two is significant. (The margin is asked of both because a test over sentences knows nothing
 * of the luck of initial values: of 480 heads of untrained networks 18 got a label without it, 9 with it.) Where the
 * baseline exceeds the role's ceiling, no head has the role: the data cannot tell. The test is paired and clustered:
 * one sum of differences a sentence, whose sign is flipped (Fisher); many sentences make that normal with variance sum
 * d^2. Holm (1979) corrects over all tests of the model. Intervals are bootstrap percentiles over sentences (Efron and
 * Tibshirani 1993): they speak of this one model, not of others trained alike. */
#include <math.h>
#include <stdlib.h>

#include "role.h"

enum { EXACT_SENTENCES = 14, EXACT_TRIALS = 1 << EXACT_SENTENCES };
static const double significant = 0.05;

static const struct {
    double from;
    const char *name;
} tiers[] = {{0.9, "strict"}, {0.7, "mostly"}, {0.5, "partly"}, {0, "weak"}};

/* ---- p ----------------------------------------------------------------------------------------------------------- */

double hw_paired_p(const double *differences, int64_t count)
{
    double sum = 0, squares = 0;
    double few[EXACT_SENTENCES];
    int64_t nonzero = 0;
    for (int64_t i = 0; i < count; i++) {
        if (differences[i] == 0) continue;
        if (nonzero < EXACT_SENTENCES) few[nonzero] = differences[i];
        nonzero++;
        sum += differences[i];
        squares += differences[i] * differences[i];
    }
    if (!(sum > 0)) return 1;
    if (nonzero <= EXACT_SENTENCES) return hw_cluster_test(few, NULL, nonzero, nonzero, EXACT_TRIALS, 0);
    return erfc(sum / sqrt(squares) / sqrt(2));
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static double total(const float *x, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)x[i];
    return sum;
}

static const float *got_by(const hw_evidence *e, int test, int head) { return e->got[test] + head * e->set->count; }

static double score(const hw_evidence *e, int test, int head)
{
    return total(got_by(e, test, head), e->set->count) / total(e->size[test], e->set->count);
}

static int heads_of(const hw_evidence *e, int test) { return e->heads[hw_place_at(e->tests[test].place)->kind]; }

/* The best head of the untrained copies in one test. */
typedef struct control {
    double score;
    const float *got; /* [pairs]; NULL: there are no copies */
} control;

static control best_control(hw_evidence *const *copies, int count, int test)
{
    control best = {.score = 0};
    for (int c = 0; c < count; c++)
        for (int h = 0; h < heads_of(copies[c], test); h++) {
            double s = score(copies[c], test, h);
            if (!best.got || s > best.score) best = (control){s, got_by(copies[c], test, h)};
        }
    return best;
}

static double norm_ratio(const hw_evidence *e, int test, int head)
{
    if (!e->mass[test]) return NAN;
    const float *mass = e->mass[test] + 2 * head * e->set->count;
    double weights = 0, norms = 0;
    for (int64_t i = 0; i < e->set->count; i++) {
        weights += (double)mass[2 * i];
        norms += (double)mass[2 * i + 1];
    }
    return weights > 0 && norms > 0 ? norms / weights : NAN;
}

static const char *tier_of(double x)
{
    int i = 0;
    while (x < tiers[i].from) i++;
    return tiers[i].name;
}

/* ---- one head in one test ---------------------------------------------------------------------------------------- */

/* What is the same for every head of a test. */
typedef struct question {
    int test;
    const hw_evidence *selection, *evidence;
    const hw_roles_options *options;
    double selection_baseline, baseline;
    control control;
} question;

/* By the margin, or, near 1, by half of what is left. */
static bool fits(const hw_role *role, double x, double other)
{
    return x >= role->threshold && x >= other + fmin(role->margin, 0.5 * (1 - other));
}

static void interval(const question *q, const float *got, hw_role_result *r)
{
    const float *size = q->evidence->size[q->test];
    hw_tally tally;
    hw_tally_init(&tally, 2, hw_ratio_score, NULL);
    for (int64_t i = 0; i < q->evidence->set->count; i++)
        if (size[i] > 0) hw_tally_add(&tally, (double[]){(double)got[i], (double)size[i]});
    r->sentences = tally.count;
    r->low = r->high = NAN;
    if (tally.count > 1 && q->options->trials) {
        hw_interval x = hw_bootstrap_interval(&tally, q->options->trials, q->options->seed);
        r->low = x.low;
        r->high = x.high;
    }
    hw_tally_clear(&tally);
}

static double against_best(const question *q, const float *got)
{
    const hw_evidence *e = q->evidence;
    bool untrained =
        q->control.got && (e->tests[q->test].role->baseline == HW_BASELINE_CONTROL || q->control.score > q->baseline);
    const float *other = untrained ? q->control.got : e->guess[q->test];
    double *differences = malloc((size_t)e->set->count * sizeof *differences);
    HW_CHECK(differences, "no memory for %lld sentences", (long long)e->set->count);
    for (int64_t i = 0; i < e->set->count; i++) differences[i] = (double)got[i] - (double)other[i];
    double p = hw_paired_p(differences, e->set->count);
    free(differences);
    return p;
}

/* Keeps the pairs where more was lost (sign 1) or achieved (-1) than elsewhere; equal ones in the order of the file. */
static void examples(const question *q, const float *got, double sign, int64_t out[HW_ROLE_EXAMPLES])
{
    const float *size = q->evidence->size[q->test];
    double key[HW_ROLE_EXAMPLES];
    for (int k = 0; k < HW_ROLE_EXAMPLES; k++) out[k] = -1;
    for (int64_t i = 0; i < q->evidence->set->count; i++) {
        if (!(size[i] > 0)) continue;
        double share = (double)got[i] / (double)size[i];
        double value = sign > 0 ? (1 - share) * (double)size[i] : share * (double)got[i];
        if (value <= 0) continue;
        int k = HW_ROLE_EXAMPLES;
        for (; k > 0 && (out[k - 1] < 0 || value > key[k - 1]); k--)
            if (k < HW_ROLE_EXAMPLES) {
                out[k] = out[k - 1];
                key[k] = key[k - 1];
            }
        if (k == HW_ROLE_EXAMPLES) continue;
        out[k] = i;
        key[k] = value;
    }
}

static void answer(const question *q, int head, hw_role_result *r)
{
    const float *got = got_by(q->evidence, q->test, head);
    *r = (hw_role_result){.test = &q->evidence->tests[q->test], .offset = q->evidence->offset[q->test], .tier = ""};
    r->score = score(q->evidence, q->test, head);
    r->selection = score(q->selection, q->test, head);
    r->control = q->control.got ? q->control.score : NAN;
    r->baseline = q->baseline;
    r->cases = total(q->evidence->size[q->test], q->evidence->set->count);
    r->norm_ratio = norm_ratio(q->evidence, q->test, head);
    r->p = r->p_raw = against_best(q, got);
    interval(q, got, r);
    examples(q, got, -1, r->strongest);
    examples(q, got, 1, r->failing);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* One head's result in one test, to be worked out on any thread. */
typedef struct job {
    const question *question;
    int head;
    hw_role_result *result;
} job;

static void work(int i, void *argument)
{
    const job *j = (const job *)argument + i;
    answer(j->question, j->head, j->result);
}

bool hw_evidence_has_cases(const hw_evidence *e, int test) { return total(e->size[test], e->set->count) > 0; }

static question *questions(const hw_evidence *selection, const hw_evidence *test, hw_evidence *const *controls,
                           int control_count, const hw_roles_options *options, hw_arena *arena, int *count)
{
    question *all = hw_arena_alloc(arena, ((size_t)test->count + 1) * sizeof *all);
    *count = 0;
    for (int t = 0; t < test->count; t++) {
        if (!hw_evidence_has_cases(selection, t) || !hw_evidence_has_cases(test, t)) continue;
        question *q = &all[(*count)++];
        *q = (question){.test = t, .selection = selection, .evidence = test, .options = options};
        q->control = best_control(controls, control_count, t);
        bool own = test->tests[t].role->baseline != HW_BASELINE_CONTROL;
        q->baseline =
            own ? total(test->guess[t], test->set->count) / total(test->size[t], test->set->count) : q->control.score;
        q->selection_baseline =
            own ? total(selection->guess[t], selection->set->count) / total(selection->size[t], selection->set->count)
                : 0;
    }
    return all;
}

static void label(const question *q, hw_role_result *r)
{
    const hw_role *role = r->test->role;
    r->too_strong = role->ceiling > 0 && r->baseline > role->ceiling;
    r->found = !r->too_strong && fits(role, r->selection, q->selection_baseline) &&
               fits(role, r->score, fmax(r->baseline, q->control.score)) && r->p < significant;
    if (r->found) r->tier = tier_of(r->score);
}

/* Holm over all results, and then the labels that stand on p. */
static void correct(const job *jobs, int count, hw_arena *arena)
{
    double *p = hw_arena_alloc(arena, ((size_t)count + 1) * sizeof *p);
    for (int i = 0; i < count; i++) p[i] = jobs[i].result->p_raw;
    hw_holm(p, count, p);
    for (int i = 0; i < count; i++) {
        jobs[i].result->p = p[i];
        label(jobs[i].question, jobs[i].result);
    }
}

hw_roles *hw_roles_judge(const hw_head *heads, int count, const hw_evidence *selection, const hw_evidence *test,
                         hw_evidence *const *controls, int control_count, const hw_roles_options *options,
                         hw_arena *arena)
{
    int question_count, jobs_count = 0;
    const question *asked = questions(selection, test, controls, control_count, options, arena, &question_count);
    hw_roles *roles = hw_arena_alloc(arena, sizeof *roles);
    *roles = (hw_roles){.heads = count, .head = hw_arena_calloc(arena, (size_t)count, sizeof *roles->head)};
    job *jobs = hw_arena_alloc(arena, ((size_t)count * (size_t)question_count + 1) * sizeof *jobs);
    for (int h = 0; h < count; h++) {
        hw_head_roles *head = &roles->head[h];
        head->name = heads[h].name;
        head->results = hw_arena_alloc(arena, ((size_t)question_count + 1) * sizeof *head->results);
        for (int i = 0; i < question_count; i++)
            if (hw_place_at(test->tests[asked[i].test].place)->kind == heads[h].kind)
                jobs[jobs_count++] = (job){&asked[i], heads[h].of_kind, &head->results[head->count++]};
    }
    hw_parallel(jobs_count, work, jobs);
    roles->tests = jobs_count;
    correct(jobs, jobs_count, arena);
    return roles;
}
