/* headwise heads trace: when each role arose in training, from what training.track_heads left in the model directory.
 */
#include <math.h>
#include <string.h>

#include "cli/heads.h"

typedef struct options {
    bool tsv, all;
    const char *svg;
} options;

static const hw_cli_option table[] = {
    {"all", 'a', NULL, HW_CLI_FLAG, offsetof(options, all),
     .help = "print roles that came and went too, not only those that stayed"},
    {"svg", 0, "FILE", HW_CLI_TEXT, offsetof(options, svg), .help = "draw it there: a panel a role, a line a head"},
    {"tsv", 0, NULL, HW_CLI_FLAG, offsetof(options, tsv), .help = "print tab-separated rows, a header first"},
};

static const hw_cli_rule rules[] = {
    {"all", HW_CLI_EXCLUDES, "json tsv", ": these have every role"},
    {0},
};

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void step_cell(hw_cli_table *t, const json_t *o, const char *key, const char *mark)
{
    const json_t *x = json_object_get(o, key);
    char digits[32];
    hw_cli_cell(t, "%s%s", json_is_integer(x) ? hw_thousands(json_integer_value(x), digits) : "-", mark);
}

/* When it arises, and a mark where only the last validation says so. */
static void arises_cell(hw_cli_table *t, const json_t *o)
{
    step_cell(t, o, "arises", json_is_true(json_object_get(o, "unconfirmed")) ? " ?" : "");
}

static void score_cell(hw_cli_table *t, const json_t *x)
{
    if (json_is_number(x))
        hw_cli_cell(t, "%.3f", json_number_value(x));
    else
        hw_cli_cell(t, "-");
}

static void scope_cell(hw_cli_table *t, const json_t *o)
{
    bool pieces = !strcmp(hw_study_text(o, "subset"), "pieces");
    hw_cli_cell(t, "%s%s%s", pieces ? "pieces" : "", pieces && *hw_study_text(o, "step") ? ", " : "",
                hw_study_text(o, "step"));
}

/* A mark a validation, at most `most` of them: how high the score is. */
static const char *bars(hw_arena *arena, const json_t *scores, int most)
{
    static const char *const marks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    size_t count = json_array_size(scores), shown = count < (size_t)most ? count : (size_t)most;
    char *text = hw_arena_calloc(arena, 4 * shown + 1, 1);
    for (size_t i = 0; i < shown; i++) {
        const json_t *x = json_array_get(scores, shown > 1 ? i * (count - 1) / (shown - 1) : count - 1);
        double score = json_is_number(x) ? fmin(fmax(json_number_value(x), 0), 1) : 0;
        strcat(text, marks[(int)lround(score * 7)]);
    }
    return text;
}

static void print_heads(hw_arena *arena, const json_t *trace, bool all)
{
    enum { BARS = 40 };
    hw_cli_table *t = hw_cli_table_new(arena, "lllrrrrl");
    static const char *const titles[] = {"head",       "role",       "",       "arises",
                                         "first seen", "at the end", "chance", "score by validation"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) hw_cli_cell(t, "%s", titles[i]);
    size_t h, i;
    json_t *head, *r;
    int shown = 0;
    json_array_foreach(json_object_get(trace, "heads"), h, head)
    {
        json_array_foreach(json_object_get(head, "roles"), i, r)
        {
            if (!json_is_integer(json_object_get(r, all ? "first" : "arises"))) continue;
            hw_cli_cell(t, "%s", hw_study_text(head, "name"));
            hw_cli_cell(t, "%s", hw_study_text(r, "role"));
            scope_cell(t, r);
            arises_cell(t, r), step_cell(t, r, "first", "");
            score_cell(t, json_object_get(r, "score")), score_cell(t, json_object_get(r, "baseline"));
            hw_cli_cell(t, "%s", bars(arena, json_object_get(r, "scores"), BARS));
            shown++;
        }
    }
    if (shown)
        hw_cli_table_print(t, stdout);
    else
        printf("No head came to have a role.\n");
}

static void print_roles(hw_arena *arena, const json_t *trace)
{
    const json_t *roles = json_object_get(trace, "roles");
    if (!json_array_size(roles)) return;
    hw_cli_table *t = hw_cli_table_new(arena, "llrlrr");
    static const char *const titles[] = {"role", "", "arises", "in", "first seen", "heads at the end"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) hw_cli_cell(t, "%s", titles[i]);
    size_t i;
    json_t *r;
    json_array_foreach(roles, i, r)
    {
        hw_cli_cell(t, "%s", hw_study_text(r, "role"));
        scope_cell(t, r);
        arises_cell(t, r);
        hw_cli_cell(t, "%s", *hw_study_text(r, "name") ? hw_study_text(r, "name") : "-");
        step_cell(t, r, "first", ""), step_cell(t, r, "heads", "");
    }
    putchar('\n');
    hw_cli_table_print(t, stdout);
}

static void print_course(hw_arena *arena, const json_t *trace)
{
    hw_cli_table *t = hw_cli_table_new(arena, "rrrrr");
    static const char *const titles[] = {"step", "heads with a role", "kinds of roles", "relative entropy",
                                         "confidence"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) hw_cli_cell(t, "%s", titles[i]);
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(trace, "course"), i, row)
    {
        step_cell(t, row, "training_step", ""), step_cell(t, row, "heads_with_role", ""),
            step_cell(t, row, "kinds_of_roles", "");
        score_cell(t, json_object_get(row, "relative_entropy")), score_cell(t, json_object_get(row, "confidence"));
    }
    putchar('\n');
    hw_cli_table_print(t, stdout);
}

static bool any_unconfirmed(const json_t *trace)
{
    size_t h, i;
    json_t *head, *r;
    json_array_foreach(json_object_get(trace, "heads"), h, head) json_array_foreach(
        json_object_get(head, "roles"), i, r) if (json_is_true(json_object_get(r, "unconfirmed"))) return true;
    return false;
}

static void print(hw_cli *cli, const json_t *trace, bool all)
{
    printf("%s: roles over training, on the first %.0f pairs of the validation set (or all)\n", cli->arguments[0],
           json_number_value(json_object_get(trace, "sentences")));
    print_heads(cli->arena, trace, all);
    print_roles(cli->arena, trace);
    print_course(cli->arena, trace);
    putchar('\n');
    hw_cli_wrap(stdout,
                "A role arises at the first validation from which on the head has it to the end. As in heads roles it "
                "must exceed chance (the better of baseline and untrained heads) significantly; but here labels are "
                "chosen on one half of these pairs and scored on the other, so a weak role may be missed or waver. "
                "This is one run: another seed may grow other heads at other times.",
                0, 0, 100);
    putchar('\n');
    if (any_unconfirmed(trace)) printf("?: seen at the last validation only, and not yet confirmed by a later one.\n");
    hw_heads_print_untested(cli->arena, trace);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

json_t *hw_heads_trace_of(const char *model, const hw_config *config, hw_error *err)
{
    json_t *trace = hw_trace_load(model, err);
    if (trace) json_object_set_new(trace, "sentences", json_integer(config->training.track_heads));
    return trace;
}

static bool draw(const char *path, const json_t *trace, hw_error *err)
{
    hw_atomic file;
    if (!hw_output_begin(&file, path, err)) return false;
    hw_trace_draw(file.stream, trace);
    return hw_atomic_commit(&file, err);
}

static const char *const columns[] = {"name",     "role", "subset", "step",   "arises",      "first", "score",
                                      "baseline", "p",    "found",  "scores", "unconfirmed", NULL};

static int run(hw_cli *cli)
{
    options o = {0};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    hw_config *config = hw_cli_model_config(cli, cli->arguments[0]);
    if (!config) return cli->status;
    hw_error err;
    json_t *trace = hw_heads_trace_of(cli->arguments[0], config, &err);
    if (!trace) return hw_cli_fail(&err);
    bool ok = !o.svg || draw(o.svg, trace, &err);
    if (ok && cli->json)
        json_dumpf(trace, stdout, JSON_INDENT(2)), putchar('\n');
    else if (ok && o.tsv)
        hw_study_tsv(stdout, trace, "roles", columns);
    else if (ok)
        print(cli, trace, o.all);
    json_decref(trace);
    return ok ? HW_CLI_DONE : hw_cli_fail(&err);
}

const hw_cli_command hw_cli_heads_trace = {
    .usage = "MODEL",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON,
    .description =
        "When did each role arise in training? Reads heads_trace.tsv in the model directory, which a training "
        "with training.track_heads leaves: at every validation each head's score in each role, and "
        "statistics. Prints a line for each head and role that came to stay, the earliest head of each role, "
        "and the course of the whole. What came at the very last validation is marked: it is not confirmed yet.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = rules,
    .run = run,
};
