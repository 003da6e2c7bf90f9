/* The picture of a run: train.tsv and valid.tsv as curves.svg.
 *
 * One table says which panels there are and which column of which log each curve shows. The picture is plain SVG 1.1
 * with a style sheet inside, which follows the reader's choice of light or dark; curves differ in dashes and signs as
 * well as in colour. Long logs are thinned out such that every peak stays. No dates, so that the bytes depend on the
 * logs alone. */
#include "curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/bundle.h>

enum { TRAIN, VALID, LOGS };
static const char *const log_names[LOGS] = {[TRAIN] = "train.tsv", [VALID] = "valid.tsv"};

typedef struct curve {
    const char *label, *column;
    int log;
    double factor; /* from the log's unit to the picture's */
} curve;

enum { MOST_CURVES = 4, PANELS = 3 };

static const struct panel {
    const char *title;
    int height;
    bool from_zero; /* the axis begins at 0, not at the smallest number */
    double top;     /* where it ends; 0: at the largest number */
    int count;
    curve curves[MOST_CURVES];
} panels[PANELS] = {
    {"Loss", 190, false, 0, 2,
     {{"training", "loss", TRAIN, 1}, {"validation", "loss", VALID, 1}}},
    {"Quality on the validation set", 190, true, 100, 4,
     {{"exact match, %", "exact_match", VALID, 100},
      {"token accuracy, %", "token_accuracy", VALID, 100},
      {"BLEU", "bleu", VALID, 1},
      {"chrF", "chrf", VALID, 1}}},
    {"Learning rate", 90, true, 0, 1, {{"", "learning_rate", TRAIN, 1}}},
};

/* ---- logs -------------------------------------------------------------------------------------------------------- */

typedef struct table {
    char path[HW_PATH];
    int64_t columns, rows;
    const char **cells; /* [1 + rows][columns], the header first */
} table;

static int64_t count_byte(const char *text, char byte)
{
    int64_t count = 0;
    for (; *text; text++) count += *text == byte;
    return count;
}

/* Cuts the text in place into lines and cells. */
static bool cut(table *t, char *text, hw_arena *arena, hw_error *err)
{
    int64_t lines = count_byte(text, '\n');
    size_t end = strlen(text);
    if (end && text[end - 1] != '\n') lines++;
    if (!lines) return hw_fail(err, "%s:1: the line with the columns' names is missing", t->path);
    t->rows = lines - 1;
    for (int64_t line = 0; line < lines; line++) {
        char *next = text + strcspn(text, "\n");
        if (*next) *next++ = 0;
        int64_t columns = count_byte(text, '\t') + 1;
        if (line == 0) {
            t->columns = columns;
            t->cells = hw_arena_alloc(arena, (size_t)(lines * columns) * sizeof *t->cells);
        }
        if (columns != t->columns)
            return hw_fail(err, "%s:%lld: %lld %s here, but the first line has %lld", t->path, (long long)line + 1,
                           (long long)columns, hw_plural(columns, "column", "columns"), (long long)t->columns);
        for (int64_t column = 0; column < columns; column++) {
            t->cells[line * columns + column] = text;
            text += strcspn(text, "\t");
            *text++ = 0;
        }
        text = next;
    }
    return true;
}

static bool read_table(table *t, const char *directory, const char *name, hw_arena *arena, hw_error *err)
{
    if (!hw_bundle_path(t->path, directory, name, err)) return false;
    hw_map map;
    if (!hw_map_open(&map, t->path, err)) return false;
    char *text = hw_arena_calloc(arena, map.size + 1, 1);
    if (map.size) memcpy(text, map.data, map.size);
    size_t size = map.size;
    hw_map_close(&map);
    if (strlen(text) < size)
        return hw_fail(err, "%s:%lld: there is a byte 0; the file is damaged", t->path,
                       (long long)count_byte(text, '\n') + 1);
    return cut(t, text, arena, err);
}

/* A column's numbers, "nan" and "inf" among them, into out [rows]. */
static bool read_column(const table *t, const char *name, double *out, hw_error *err)
{
    int64_t column = 0;
    while (column < t->columns && strcmp(t->cells[column], name)) column++;
    if (column == t->columns) return hw_fail(err, "%s:1: there is no column %s", t->path, name);
    for (int64_t row = 0; row < t->rows; row++) {
        const char *cell = t->cells[(row + 1) * t->columns + column];
        char *end;
        out[row] = strtod(cell, &end);
        if (end == cell || *end)
            return hw_fail(err, "%s:%lld: %s: \"%.40s\" is not a number", t->path, (long long)row + 2, name, cell);
    }
    return true;
}

/* ---- points ------------------------------------------------------------------------------------------------------ */

typedef struct point {
    double step, value;
    bool apart; /* not joined to the one before it: numbers that are not finite lie between */
} point;

typedef struct trace {
    int64_t count;
    point *items;
} trace;

static const double LARGEST = 1e300, SMALLEST = 1e-300; /* beyond these no axis can be drawn */

enum { BUCKETS = 250 };

/* Of each of BUCKETS runs of neighbours the lowest and the highest stay, in their order. */
static void thin_out(trace *p)
{
    if (p->count <= 2 * BUCKETS) return;
    int64_t kept = 0;
    for (int64_t bucket = 0; bucket < BUCKETS; bucket++) {
        int64_t begin = bucket * p->count / BUCKETS, end = (bucket + 1) * p->count / BUCKETS, low = begin, high = begin;
        bool apart = false;
        for (int64_t i = begin; i < end; i++) {
            if (p->items[i].value < p->items[low].value) low = i;
            if (p->items[i].value > p->items[high].value) high = i;
            apart |= p->items[i].apart;
        }
        point first = p->items[low < high ? low : high], second = p->items[low < high ? high : low];
        first.apart = apart;
        second.apart = false;
        p->items[kept++] = first;
        if (low != high) p->items[kept++] = second;
    }
    p->count = kept;
}

static bool read_trace(const table *t, const curve *c, const double *steps, hw_arena *arena, trace *p, hw_error *err)
{
    double *values = hw_arena_alloc(arena, ((size_t)t->rows + 1) * sizeof *values);
    p->items = hw_arena_alloc(arena, ((size_t)t->rows + 1) * sizeof *p->items);
    p->count = 0;
    if (!read_column(t, c->column, values, err)) return false;
    bool apart = true;
    for (int64_t i = 0; i < t->rows; i++) {
        bool finite = fabs(values[i]) < LARGEST;
        if (finite) p->items[p->count++] = (point){steps[i], values[i] * c->factor, apart};
        apart = !finite;
    }
    thin_out(p);
    return true;
}

/* All that is drawn. */
typedef struct run {
    table tables[LOGS];
    trace traces[PANELS][MOST_CURVES];
    double last_step, best_step; /* best_step < 0: there is none */
} run;

static bool read_steps(run *r, const table *t, double *steps, hw_error *err)
{
    if (!read_column(t, "step", steps, err)) return false;
    for (int64_t i = 0; i < t->rows; i++) {
        if (!(steps[i] >= 0 && steps[i] <= 1e15))
            return hw_fail(err, "%s:%lld: step: %g is not the number of a step", t->path, (long long)i + 2, steps[i]);
        r->last_step = fmax(r->last_step, steps[i]);
    }
    return true;
}

static bool read_best(run *r, const table *t, const double *steps, hw_arena *arena, hw_error *err)
{
    double *best = hw_arena_alloc(arena, ((size_t)t->rows + 1) * sizeof *best);
    if (!read_column(t, "best", best, err)) return false;
    for (int64_t i = 0; i < t->rows; i++)
        if (best[i] > 0) r->best_step = steps[i];
    return true;
}

static bool read_log(run *r, int log, hw_arena *arena, hw_error *err)
{
    const table *t = &r->tables[log];
    double *steps = hw_arena_alloc(arena, ((size_t)t->rows + 1) * sizeof *steps);
    if (!read_steps(r, t, steps, err)) return false;
    if (log == VALID && !read_best(r, t, steps, arena, err)) return false;
    for (int i = 0; i < PANELS; i++)
        for (int k = 0; k < panels[i].count; k++)
            if (panels[i].curves[k].log == log &&
                !read_trace(t, &panels[i].curves[k], steps, arena, &r->traces[i][k], err))
                return false;
    return true;
}

static bool read_run(run *r, const char *directory, hw_arena *arena, hw_error *err)
{
    char path[HW_PATH];
    *r = (run){.best_step = -1};
    for (int log = 0; log < LOGS; log++) {
        if (!hw_bundle_path(path, directory, log_names[log], err)) return false;
        if (log == VALID && !hw_file_exists(path)) continue;
        if (!read_table(&r->tables[log], directory, log_names[log], arena, err) || !read_log(r, log, arena, err))
            return false;
    }
    return true;
}

/* ---- axes -------------------------------------------------------------------------------------------------------- */

/* The smallest of 1, 2, 5, 10, 20 ... (and tenths ...) that cuts the range into at most so many parts. */
static double tick_distance(double range, int most)
{
    double power = pow(10, floor(log10(range / most)));
    for (int i = 0; i < 3; i++) {
        static const double factors[] = {1, 2, 5};
        if (factors[i] * power * most >= range) return factors[i] * power;
    }
    return 10 * power;
}

typedef struct axis {
    double low, high, tick;
} axis;

/* An axis over the numbers from low to high that begins and ends at a tick. */
static axis axis_over(double low, double high, int ticks)
{
    double size = fmax(fabs(low), fabs(high));
    if (high - low < 1e-6 * size + SMALLEST) {
        double margin = size > SMALLEST ? size / 2 : 1;
        if (low != 0) low -= margin;
        high += margin;
    }
    double tick = tick_distance(high - low, ticks);
    return (axis){floor(low / tick) * tick, ceil(high / tick) * tick, tick};
}

static axis panel_axis(const struct panel *panel, const trace *p)
{
    double low = INFINITY, high = -INFINITY;
    for (int k = 0; k < panel->count; k++)
        for (int64_t i = 0; i < p[k].count; i++) {
            low = fmin(low, p[k].items[i].value);
            high = fmax(high, p[k].items[i].value);
        }
    if (low > high) low = high = 0;
    if (panel->from_zero) low = 0;
    return axis_over(low, panel->top > 0 ? panel->top : high, panel->height / 30);
}

/* "12,000" */
static const char *step_text(double step, char text[48])
{
    char digits[32];
    int count = snprintf(digits, sizeof digits, "%.0f", step), at = 0;
    for (int i = 0; i < count; i++) {
        if (i && (count - i) % 3 == 0) text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return text;
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

enum { WIDTH = 860, LEFT = 64, RIGHT = 824, TITLE = 40, FOOT = 44, GAP = 12, MOST_MARKS = 32, LETTER = 7 };

static const char style[] =
    "text{font:12px system-ui,sans-serif;fill:#333}.title{font-weight:600}\n"
    ".end{text-anchor:end}.middle{text-anchor:middle}\n"
    ".paper{fill:#fff}.grid{stroke:#e3e3e3}.frame{stroke:#777}.best{stroke:#555;stroke-dasharray:2 3}\n"
    "path{fill:none;stroke-width:1}.m{stroke-width:1.4}\n"
    ".c{stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}\n"
    ".k0{stroke:#0067a5}.k1{stroke:#c04a00;stroke-dasharray:7 4}\n"
    ".k2{stroke:#00795a;stroke-dasharray:1 4}.k3{stroke:#8a3f8f;stroke-dasharray:9 4 1 4}\n"
    ".m{stroke-dasharray:none;fill:#fff}\n"
    "@media (prefers-color-scheme:dark){\n"
    "text{fill:#d6d6d6}.paper,.m{fill:#17191d}.grid{stroke:#303338}.frame{stroke:#8a8d93}.best{stroke:#b0b0b0}\n"
    ".k0{stroke:#5fb4f0}.k1{stroke:#ff9a52}.k2{stroke:#45cf9d}.k3{stroke:#dc9be0}}\n";

/* Where numbers lie on the paper. */
typedef struct plot {
    FILE *out;
    axis x, y;
    double top, bottom;
} plot;

static double x_of(const plot *p, double step) { return LEFT + (RIGHT - LEFT) * step / p->x.high; }

static double y_of(const plot *p, double value)
{
    return p->bottom + (p->top - p->bottom) * (value - p->y.low) / (p->y.high - p->y.low);
}

/* The k-th curve's sign: circle, square, triangle, diamond. */
static void draw_mark(FILE *out, int k, double x, double y)
{
    static const char *const shapes[MOST_CURVES] = {"m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", "m-3 -3h6v6h-6z",
                                                    "m0 -4l4 7h-8z", "m0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z"};
    fprintf(out, "<path class=\"m k%d\" d=\"M%.1f %.1f%s\"/>\n", k, x, y, shapes[k]);
}

static void draw_frame(const plot *p, bool last)
{
    char text[48];
    int rows = (int)lround((p->y.high - p->y.low) / p->y.tick), columns = (int)(p->x.high / p->x.tick);
    for (int i = 0; i <= rows; i++) {
        double value = p->y.low + i * p->y.tick, y = y_of(p, value);
        fprintf(p->out, "<path class=\"%s\" d=\"M%d %.1fH%d\"/>", i ? "grid" : "frame", LEFT, y, RIGHT);
        if (fabs(value) < p->y.tick / 2) value = 0; /* not 1e-17 */
        fprintf(p->out, "<text class=\"end\" x=\"%d\" y=\"%.1f\">%g</text>\n", LEFT - 8, y + 4, value);
    }
    for (int i = 0; i <= columns; i++) {
        double step = i * p->x.tick, x = x_of(p, step);
        fprintf(p->out, "<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>", i ? "grid" : "frame", x, p->top, p->bottom);
        if (last)
            fprintf(p->out, "<text class=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>", x, p->bottom + 18,
                    step_text(step, text));
        fputc('\n', p->out);
    }
    if (last)
        fprintf(p->out, "<text class=\"middle\" x=\"%d\" y=\"%.1f\">step</text>\n", (LEFT + RIGHT) / 2, p->bottom + 36);
}

/* Where nothing was validated, nothing speaks of it. */
static bool is_there(const run *r, int log) { return log == TRAIN || r->tables[log].rows > 0; }

/* The title, and behind it a stroke, a sign and a name for each curve. */
static void draw_head(const plot *p, const run *r, const struct panel *panel)
{
    double x = LEFT + LETTER * (double)strlen(panel->title) + 28, y = p->top - 14;
    fprintf(p->out, "<text class=\"title\" x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT, y, panel->title);
    for (int k = 0; k < panel->count && *panel->curves[k].label; k++) {
        if (!is_there(r, panel->curves[k].log)) continue;
        fprintf(p->out, "<path class=\"c k%d\" d=\"M%.1f %.1fh30\"/>", k, x, y - 4);
        if (panel->curves[k].log == VALID) draw_mark(p->out, k, x + 15, y - 4);
        fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 37, y, panel->curves[k].label);
        x += 37 + LETTER * (double)strlen(panel->curves[k].label) + 20;
    }
}

/* Signs stand on the curves of few points, and where a point has gaps on both sides and nothing else would show it. */
static void draw_curve(const plot *p, const trace *t, int k, bool marks)
{
    if (!t->count) return;
    fprintf(p->out, "<path class=\"c k%d\" d=\"", k);
    for (int64_t i = 0; i < t->count; i++)
        fprintf(p->out, "%c%.1f %.1f", t->items[i].apart ? 'M' : 'L', x_of(p, t->items[i].step),
                y_of(p, t->items[i].value));
    fputs("\"/>\n", p->out);
    int64_t distance = (t->count + MOST_MARKS - 1) / MOST_MARKS;
    for (int64_t i = 0; i < t->count; i++) {
        bool alone = t->items[i].apart && (i + 1 == t->count || t->items[i + 1].apart);
        if (alone || (marks && (t->count - 1 - i) % distance == 0))
            draw_mark(p->out, k, x_of(p, t->items[i].step), y_of(p, t->items[i].value));
    }
}

static void draw_best(const plot *p, const run *r, bool first)
{
    if (r->best_step < 0) return;
    char text[48];
    double x = x_of(p, r->best_step);
    bool right = x > (LEFT + RIGHT) / 2.0;
    fprintf(p->out, "<path class=\"best\" d=\"M%.1f %.1fV%.1f\"/>", x, p->top, p->bottom);
    if (first)
        fprintf(p->out, "<text%s x=\"%.1f\" y=\"%.1f\">best: step %s</text>", right ? " class=\"end\"" : "",
                x + (right ? -6 : 6), p->top + 14, step_text(r->best_step, text));
    fputc('\n', p->out);
}

static void draw_panel(const plot *p, const run *r, int i, bool last)
{
    draw_frame(p, last);
    draw_head(p, r, &panels[i]);
    draw_best(p, r, i == 0);
    for (int k = 0; k < panels[i].count; k++)
        draw_curve(p, &r->traces[i][k], k, panels[i].curves[k].log == VALID);
}

static bool panel_is_there(const run *r, int i)
{
    for (int k = 0; k < panels[i].count; k++)
        if (is_there(r, panels[i].curves[k].log)) return true;
    return false;
}

static void draw(FILE *out, const run *r)
{
    int height = FOOT, last_panel = 0;
    for (int i = 0; i < PANELS; i++) {
        if (!panel_is_there(r, i)) continue;
        height += TITLE + panels[i].height + GAP;
        last_panel = i;
    }
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" ", WIDTH, height);
    fprintf(out, "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>Training curves</title>\n<style>\n%s</style>\n", WIDTH,
            height, style);
    fprintf(out, "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", WIDTH, height);
    double last_step = fmax(1, r->last_step);
    plot p = {.out = out, .x = {0, last_step, fmax(1, tick_distance(last_step, 8))}};
    for (int i = 0; i < PANELS; i++) {
        if (!panel_is_there(r, i)) continue;
        p.top = p.bottom + TITLE;
        p.bottom = p.top + panels[i].height;
        p.y = panel_axis(&panels[i], r->traces[i]);
        draw_panel(&p, r, i, i == last_panel);
        p.bottom += GAP;
    }
    fputs("</svg>\n", out);
}

bool hw_curves_write(const char *directory, hw_error *err)
{
    char path[HW_PATH];
    if (!hw_bundle_path(path, directory, "curves.svg", err)) return false;
    hw_arena *arena = hw_arena_new(0);
    run *r = hw_arena_alloc(arena, sizeof *r);
    hw_atomic file;
    bool ok = read_run(r, directory, arena, err) && hw_atomic_begin(&file, path, err);
    if (ok) {
        draw(file.stream, r);
        ok = hw_atomic_commit(&file, err);
    }
    hw_arena_free(arena);
    return ok;
}
