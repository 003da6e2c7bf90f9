/* A trace as a picture: a small panel for each role that some head came to have, with a line a head over the steps of
 * training. Heads that have the role at the end are drawn strong and ringed where it arises; the dashed line is the
 * better of baseline and untrained heads. Plain SVG 1.1 that follows the reader's choice of light or dark; no dates, so
 * equal traces make equal bytes. */
#include <math.h>
#include <string.h>

#include <headwise/heads.h>

enum { COLUMNS = 3, WIDTH = 300, HEIGHT = 196, LEFT = 34, RIGHT = 284, TOP = 52, BOTTOM = 164, MARGIN = 8 };

static const char style[] =
    "text{font:11px system-ui,sans-serif;fill:#333}.title{font-size:12px;font-weight:600}.end{text-anchor:end}\n"
    ".paper{fill:#fff}.grid{stroke:#e3e3e3}.frame{stroke:#777}path{fill:none;stroke-linejoin:round}\n"
    ".off{stroke:#b9bcc2;stroke-width:1}.on{stroke:#0067a5;stroke-width:2}.base{stroke:#c04a00;stroke-dasharray:6 4}\n"
    ".from{fill:#fff;stroke:#0067a5;stroke-width:1.6}\n"
    "@media (prefers-color-scheme:dark){\n"
    "text{fill:#d6d6d6}.paper,.from{fill:#17191d}.grid{stroke:#303338}.frame{stroke:#8a8d93}\n"
    ".off{stroke:#5a5e66}.on,.from{stroke:#5fb4f0}.base{stroke:#ff9a52}}\n";

typedef struct panel {
    FILE *out;
    const json_t *steps, *role;
    double last_step;
    int left, top;
} panel;

static bool has(const json_t *o, const char *key) { return json_is_number(json_object_get(o, key)); }
static double number(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }

static double x_of(const panel *p, double step) { return p->left + LEFT + (RIGHT - LEFT) * step / p->last_step; }
static double y_of(const panel *p, double score) { return p->top + BOTTOM - (BOTTOM - TOP) * fmin(fmax(score, 0), 1); }

static bool same_scope(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"role", "subset", "step"};
    for (int i = 0; i < 3; i++)
        if (strcmp(hw_study_text(a, keys[i]), hw_study_text(b, keys[i]))) return false;
    return true;
}

static void draw_frame(const panel *p)
{
    const json_t *r = p->role;
    fprintf(p->out, "<text class=\"title\" x=\"%d\" y=\"%d\">%s%s%s</text>\n", p->left + LEFT, p->top + 20,
            hw_study_text(r, "role"), strcmp(hw_study_text(r, "subset"), "pieces") ? "" : ", pieces of names",
            !*hw_study_text(r, "step")                 ? ""
            : !strcmp(hw_study_text(r, "step"), "fed") ? ", word fed"
                                                       : ", word predicted");
    if (has(r, "arises"))
        fprintf(p->out, "<text x=\"%d\" y=\"%d\">from step %.0f on: %s%s</text>\n", p->left + LEFT, p->top + 38,
                number(r, "arises"), hw_study_text(r, "name"),
                json_is_true(json_object_get(r, "unconfirmed")) ? " (not confirmed yet)" : "");
    else
        fprintf(p->out, "<text x=\"%d\" y=\"%d\">seen at step %.0f, does not stay</text>\n", p->left + LEFT,
                p->top + 38, number(r, "first"));
    for (int i = 0; i <= 2; i++)
        fprintf(p->out, "<path class=\"%s\" d=\"M%d %.1fH%d\"/><text class=\"end\" x=\"%d\" y=\"%.1f\">%g</text>\n",
                i ? "grid" : "frame", p->left + LEFT, y_of(p, i / 2.0), p->left + RIGHT, p->left + LEFT - 5,
                y_of(p, i / 2.0) + 4, i / 2.0);
    fprintf(p->out, "<text x=\"%d\" y=\"%d\">0</text><text class=\"end\" x=\"%d\" y=\"%d\">step %.0f</text>\n",
            p->left + LEFT, p->top + BOTTOM + 16, p->left + RIGHT, p->top + BOTTOM + 16, p->last_step);
}

static void draw_line(const panel *p, const char *name, const json_t *line)
{
    const json_t *scores = json_object_get(line, "scores");
    size_t i;
    json_t *score;
    bool apart = true, on = has(line, "arises");
    fprintf(p->out, "<path class=\"%s\" d=\"", on ? "on" : "off");
    json_array_foreach(scores, i, score)
    {
        double step = json_number_value(json_array_get(p->steps, i));
        if (json_is_number(score))
            fprintf(p->out, "%c%.1f %.1f", apart ? 'M' : 'L', x_of(p, step), y_of(p, json_number_value(score)));
        apart = !json_is_number(score);
    }
    fprintf(p->out, "\"><title>%s</title></path>\n", name);
    for (i = 0; on && i < json_array_size(scores); i++)
        if (json_number_value(json_array_get(p->steps, i)) == number(line, "arises"))
            fprintf(p->out, "<circle class=\"from\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n",
                    x_of(p, number(line, "arises")), y_of(p, json_number_value(json_array_get(scores, i))));
}

/* Lines of heads without the role first, so that the others lie on them. */
static void draw_panel(const panel *p, const json_t *heads)
{
    draw_frame(p);
    double baseline = NAN;
    for (int on = 0; on < 2; on++) {
        size_t h, i;
        json_t *head, *line;
        json_array_foreach(heads, h, head)
        {
            json_array_foreach(json_object_get(head, "roles"), i, line)
            {
                if (!same_scope(line, p->role)) continue;
                if (has(line, "baseline")) baseline = number(line, "baseline");
                if (has(line, "arises") == on) draw_line(p, hw_study_text(head, "name"), line);
            }
        }
    }
    if (!isfinite(baseline)) return;
    fprintf(p->out, "<path class=\"base\" d=\"M%d %.1fH%d\"/>\n", p->left + LEFT, y_of(p, baseline), p->left + RIGHT);
}

void hw_trace_draw(FILE *out, const json_t *trace)
{
    const json_t *roles = json_object_get(trace, "roles"), *steps = json_object_get(trace, "steps");
    int count = (int)json_array_size(roles), rows = (count + COLUMNS - 1) / COLUMNS;
    int width = COLUMNS * WIDTH + 2 * MARGIN, height = (rows ? rows : 1) * HEIGHT + 2 * MARGIN;
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" ", width, height);
    fprintf(out, "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>Roles over training</title>\n<style>\n%s</style>\n",
            width, height, style);
    fprintf(out, "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", width, height);
    if (!count) fprintf(out, "<text x=\"%d\" y=\"%d\">No head came to have a role.</text>\n", LEFT, TOP);
    panel p = {.out = out, .steps = steps};
    p.last_step = json_number_value(json_array_get(steps, json_array_size(steps) - 1));
    for (int i = 0; i < count; i++) {
        p.role = json_array_get(roles, (size_t)i);
        p.left = MARGIN + i % COLUMNS * WIDTH;
        p.top = MARGIN + i / COLUMNS * HEIGHT;
        draw_panel(&p, json_object_get(trace, "heads"));
    }
    fputs("</svg>\n", out);
}
