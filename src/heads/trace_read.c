/* heads_trace.tsv read back: when does each role arise?
 *
 * Every validation left the same figures in the same order, so the file is a table of series by steps. A role arises in
 * a head at the first validation from which on the head has it until the end; what came and went does not count, but
 * stands there as the first time that it was seen. What came at the very last validation may go at the next: it is not
 * confirmed yet. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/diversity.h"
#include "role.h"

enum { STEP, NAME, FIGURE, SUBSET, AT, VALUE, BASELINE, P, FOUND, COLUMNS };

typedef struct row {
    int64_t step;
    const char *cell[COLUMNS];
    double value, baseline, p;
    bool is_role, found;
} row;

typedef struct trace {
    char path[HW_PATH];
    hw_arena *arena;
    row *rows;
    int64_t count, capacity;
    int64_t series, steps; /* rows of a validation; validations: row s of step t is rows[t * series + s] */
} trace;

static const row *at(const trace *t, int64_t step, int64_t series) { return &t->rows[step * t->series + series]; }

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool number(const trace *t, int64_t line, const char *cell, double *out, hw_error *err)
{
    char *end;
    *out = *cell ? strtod(cell, &end) : NAN;
    if (!*cell || (end != cell && !*end)) return true;
    return hw_fail(err, "%s:%lld: \"%.40s\" is not a number", t->path, (long long)line, cell);
}

static bool add_line(trace *t, int64_t line, char *text, hw_error *err)
{
    row r = {0};
    char *copy = hw_arena_string(t->arena, "%s", text);
    int columns = 0;
    for (char *next; copy; copy = next, columns++) {
        next = strchr(copy, '\t');
        if (next) *next++ = 0;
        if (columns < COLUMNS) r.cell[columns] = copy;
    }
    if (columns != COLUMNS)
        return hw_fail(err, "%s:%lld: there are %d columns, not %d; the file is damaged", t->path, (long long)line,
                       columns, COLUMNS);
    double step;
    if (!number(t, line, r.cell[STEP], &step, err) || !number(t, line, r.cell[VALUE], &r.value, err) ||
        !number(t, line, r.cell[BASELINE], &r.baseline, err) || !number(t, line, r.cell[P], &r.p, err))
        return false;
    if (!(step >= 1 && step < 9e15))
        return hw_fail(err, "%s:%lld: \"%.40s\" is no step of training", t->path, (long long)line, r.cell[STEP]);
    r.step = (int64_t)step;
    r.is_role = *r.cell[FOUND];
    r.found = !strcmp(r.cell[FOUND], "1");
    if (t->count == t->capacity) {
        int64_t room = t->capacity ? 2 * t->capacity : 1024;
        row *larger = hw_arena_alloc(t->arena, (size_t)room * sizeof *larger);
        if (t->count) memcpy(larger, t->rows, (size_t)t->count * sizeof *larger);
        t->rows = larger;
        t->capacity = room;
    }
    t->rows[t->count++] = r;
    return true;
}

static bool read_lines(trace *t, hw_reader *reader, hw_error *err)
{
    char *line;
    size_t bytes;
    int got = hw_reader_line(reader, &line, &bytes, err);
    if (got < 0) return false;
    if (!got || strcmp(line, hw_trace_header))
        return hw_fail(err, "%s:1: the columns are not those of a trace; the file is damaged", t->path);
    while ((got = hw_reader_line(reader, &line, &bytes, err)) == 1) {
        if (hw_utf8_invalid(line, bytes) >= 0)
            return hw_fail(err, "%s:%lld: this is not valid UTF-8; the file is damaged", t->path,
                           (long long)hw_reader_number(reader));
        if (!add_line(t, hw_reader_number(reader), line, err)) return false;
    }
    return got == 0;
}

/* Finds the validations; one that is being written, or was when the run was killed, is left out. */
static bool find_steps(trace *t, hw_error *err)
{
    while (t->series < t->count && t->rows[t->series].step == t->rows[0].step) t->series++;
    t->steps = t->series ? t->count / t->series : 0;
    for (int64_t i = 0; i < t->steps * t->series; i++) {
        const row *r = &t->rows[i], *first = &t->rows[i % t->series], *block = &t->rows[i / t->series * t->series];
        bool same = r->step == block->step && (i < t->series || block->step > (block - 1)->step);
        for (int c = NAME; c <= AT; c++) same &= !strcmp(r->cell[c], first->cell[c]);
        if (!same)
            return hw_fail(err, "%s:%lld: this should be %s of %s at the next validation; the file is damaged", t->path,
                           (long long)i + 2, first->cell[FIGURE], first->cell[NAME]);
    }
    if (t->steps) return true;
    return hw_fail(err, "%s: the network was not validated yet, so there is nothing in it", t->path);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *step_or_null(const trace *t, int64_t step)
{
    return step >= 0 ? json_integer(at(t, step, 0)->step) : json_null();
}

/* From when on a series holds to the end, and when it held first; -1: never. */
static int64_t arises(const trace *t, int64_t series)
{
    int64_t step = t->steps;
    while (step > 0 && at(t, step - 1, series)->found) step--;
    return step < t->steps ? step : -1;
}

/* Has no later validation seen it again? */
static json_t *unconfirmed(const trace *t, int64_t from) { return json_boolean(from == t->steps - 1); }

static int64_t first_seen(const trace *t, int64_t series)
{
    for (int64_t step = 0; step < t->steps; step++)
        if (at(t, step, series)->found) return step;
    return -1;
}

static void add_scope(json_t *o, const row *r)
{
    if (*r->cell[SUBSET]) json_object_set_new(o, "subset", json_string(r->cell[SUBSET]));
    if (*r->cell[AT]) json_object_set_new(o, "step", json_string(r->cell[AT]));
}

static json_t *role_json(const trace *t, int64_t series)
{
    const row *last = at(t, t->steps - 1, series);
    json_t *o = json_pack("{s:s}", "role", last->cell[FIGURE]), *scores = json_array(), *held = json_array();
    add_scope(o, last);
    json_object_set_new(o, "arises", step_or_null(t, arises(t, series)));
    json_object_set_new(o, "unconfirmed", unconfirmed(t, arises(t, series)));
    json_object_set_new(o, "first", step_or_null(t, first_seen(t, series)));
    json_object_set_new(o, "score", hw_json_number(last->value));
    json_object_set_new(o, "baseline", hw_json_number(last->baseline));
    json_object_set_new(o, "p", hw_json_number(last->p));
    json_object_set_new(o, "found", json_boolean(last->found));
    for (int64_t step = 0; step < t->steps; step++) {
        json_array_append_new(scores, hw_json_number(at(t, step, series)->value));
        json_array_append_new(held, json_boolean(at(t, step, series)->found));
    }
    json_object_set_new(o, "scores", scores);
    json_object_set_new(o, "held", held);
    return o;
}

static json_t *statistic_json(const trace *t, int64_t series)
{
    json_t *o = json_pack("{s:s}", "figure", at(t, 0, series)->cell[FIGURE]), *values = json_array();
    add_scope(o, at(t, 0, series));
    for (int64_t step = 0; step < t->steps; step++)
        json_array_append_new(values, hw_json_number(at(t, step, series)->value));
    json_object_set_new(o, "values", values);
    return o;
}

static json_t *entry(json_t *list, const char *name)
{
    size_t i;
    json_t *o;
    json_array_foreach(list, i, o) if (!strcmp(json_string_value(json_object_get(o, "name")), name)) return o;
    o = json_pack("{s:s, s:[], s:[]}", "name", name, "roles", "statistics");
    json_array_append_new(list, o);
    return o;
}

static json_t *heads_json(const trace *t)
{
    json_t *heads = json_array();
    for (int64_t s = 0; s < t->series; s++) {
        const row *r = at(t, 0, s);
        json_t *o = entry(heads, r->cell[NAME]);
        json_array_append_new(json_object_get(o, r->is_role ? "roles" : "statistics"),
                              r->is_role ? role_json(t, s) : statistic_json(t, s));
    }
    return heads;
}

static bool same_scope(const row *a, const row *b)
{
    return !strcmp(a->cell[FIGURE], b->cell[FIGURE]) && !strcmp(a->cell[SUBSET], b->cell[SUBSET]) &&
           !strcmp(a->cell[AT], b->cell[AT]);
}

/* What the heads together make of one role: the earliest of them, and how many have it at the end. NULL: none ever. */
static json_t *over_heads(const trace *t, int64_t series)
{
    int64_t stays = -1, stays_in = -1, seen = -1, heads = 0;
    for (int64_t s = series; s < t->series; s++) {
        if (!at(t, 0, s)->is_role || !same_scope(at(t, 0, s), at(t, 0, series))) continue;
        int64_t from = arises(t, s), first = first_seen(t, s);
        heads += from >= 0;
        if (from >= 0 && (stays < 0 || from < stays)) stays = from, stays_in = s;
        if (first >= 0 && (seen < 0 || first < seen)) seen = first;
    }
    if (seen < 0) return NULL;
    json_t *o = json_pack("{s:s}", "role", at(t, 0, series)->cell[FIGURE]);
    add_scope(o, at(t, 0, series));
    json_object_set_new(o, "arises", step_or_null(t, stays));
    json_object_set_new(o, "unconfirmed", unconfirmed(t, stays));
    json_object_set_new(o, "name", stays_in >= 0 ? json_string(at(t, 0, stays_in)->cell[NAME]) : json_null());
    json_object_set_new(o, "first", step_or_null(t, seen));
    json_object_set_new(o, "heads", json_integer(heads));
    return o;
}

static json_t *roles_json(const trace *t)
{
    json_t *list = json_array();
    for (int64_t s = 0; s < t->series; s++) {
        bool known = !at(t, 0, s)->is_role;
        for (int64_t k = 0; k < s && !known; k++) known = at(t, 0, k)->is_role && same_scope(at(t, 0, k), at(t, 0, s));
        json_t *o = known ? NULL : over_heads(t, s);
        if (o) json_array_append_new(list, o);
    }
    return list;
}

/* Of the rows of one validation, those that count: how many different heads, or roles, they name. */
static int64_t different(const trace *t, int64_t step, int column)
{
    int64_t count = 0;
    for (int64_t s = 0; s < t->series; s++) {
        bool counts = at(t, step, s)->found;
        for (int64_t k = 0; k < s && counts; k++)
            counts = !at(t, step, k)->found || strcmp(at(t, step, k)->cell[column], at(t, step, s)->cell[column]);
        count += counts;
    }
    return count;
}

static double mean_of(const trace *t, int64_t step, const char *figure)
{
    double sum = 0;
    int64_t count = 0;
    for (int64_t s = 0; s < t->series; s++) {
        const row *r = at(t, step, s);
        if (r->is_role || strcmp(r->cell[FIGURE], figure) || !isfinite(r->value)) continue;
        sum += r->value;
        count++;
    }
    return count ? sum / (double)count : NAN;
}

static json_t *course_json(const trace *t)
{
    json_t *list = json_array();
    for (int64_t step = 0; step < t->steps; step++) {
        json_t *o =
            json_pack("{s:I, s:I, s:I}", "training_step", (json_int_t)at(t, step, 0)->step, "heads_with_role",
                      (json_int_t)different(t, step, NAME), "kinds_of_roles", (json_int_t)different(t, step, FIGURE));
        json_object_set_new(o, "relative_entropy", hw_json_number(mean_of(t, step, "relative_entropy")));
        json_object_set_new(o, "confidence", hw_json_number(mean_of(t, step, "confidence")));
        json_array_append_new(list, o);
    }
    return list;
}

static bool is_tested(const trace *t, const hw_role *role, hw_attention_kind kind)
{
    for (int64_t s = 0; s < t->series; s++)
        if (at(t, 0, s)->is_role && hw_head_kind_of(at(t, 0, s)->cell[NAME]) == kind &&
            !strcmp(at(t, 0, s)->cell[FIGURE], role->name))
            return true;
    return false;
}

static bool has_heads(const trace *t, hw_attention_kind kind)
{
    for (int64_t s = 0; s < t->series; s++)
        if (hw_head_kind_of(at(t, 0, s)->cell[NAME]) == kind) return true;
    return false;
}

/* The roles of the table that nothing is said of, although there are heads that could have them. */
static json_t *untested_json(const trace *t)
{
    json_t *list = json_array();
    const hw_role *role;
    for (int k = 0; k < HW_ATTENTION_KINDS; k++) {
        hw_attention_kind kind = (hw_attention_kind)k;
        for (int i = 0; has_heads(t, kind) && (role = hw_role_at(i)); i++) {
            if (!(role->kinds & 1u << k) || is_tested(t, role, kind)) continue;
            const char *why = role->gold == HW_GOLD_NONE
                                  ? "there was no case in the first pairs of the validation set"
                                  : "there was no gold beside the validation set, or no case in its first pairs";
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:s}", "role", role->name, "in", hw_kind_name(kind), "why", why));
        }
    }
    return list;
}

static json_t *trace_json(const trace *t)
{
    json_t *steps = json_array();
    for (int64_t i = 0; i < t->steps; i++) json_array_append_new(steps, json_integer(at(t, i, 0)->step));
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "steps", steps, "course", course_json(t), "roles", roles_json(t),
                     "untested", untested_json(t), "heads", heads_json(t));
}

json_t *hw_trace_load(const char *model, hw_error *err)
{
    trace t = {0};
    if (!hw_bundle_path(t.path, model, "heads_trace.tsv", err)) return NULL;
    if (!hw_file_exists(t.path)) {
        hw_fail(err,
                "%s: heads were not tracked in training; train with training.track_heads (such as 400, pairs of the "
                "validation set), which looks at them at every validation",
                model);
        return NULL;
    }
    hw_reader *reader = hw_reader_open(t.path, err);
    if (!reader) return NULL;
    t.arena = hw_arena_new(0);
    json_t *result = read_lines(&t, reader, err) && find_steps(&t, err) ? trace_json(&t) : NULL;
    hw_reader_close(reader);
    hw_arena_free(t.arena);
    return result;
}
