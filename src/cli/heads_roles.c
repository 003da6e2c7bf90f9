/* headwise heads roles: what every head does. */
#include <math.h>
#include <string.h>

#include "cli/heads.h"

typedef struct options {
    hw_heads_options common;
    bool all;
} options;

static const hw_cli_option table[] = {
    HW_HEADS_OPTIONS,
    {"all", 'a', NULL, HW_CLI_FLAG, offsetof(options, all),
     .help = "print every test of every head, not only the roles found"},
};

static const hw_cli_rule rules[] = {
    {"all", HW_CLI_EXCLUDES, "json tsv", ": these have every test"},
    {0},
};

enum { TRIALS = 1000, EXACT = 14 /* up to so many sentences hw_paired_p counts signs */ };

static json_t *compute(hw_heads *h, hw_error *err)
{
    hw_study_set test, selection;
    if (!hw_heads_sets(h, &test, &selection, err)) return NULL;
    hw_roles_options o = {.seed = (uint64_t)h->options->seed, .trials = TRIALS};
    hw_roles *roles =
        hw_roles_study(h->bundle, &selection, &test, &o, hw_cli_progress_show, &h->progress, h->cli->arena, err);
    return roles ? hw_roles_json(roles, &test) : NULL;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* "previous (pieces, fed)" */
static const char *label(hw_cli *cli, const json_t *r)
{
    const char *step = hw_study_text(r, "step");
    bool pieces = !strcmp(hw_study_text(r, "subset"), "pieces");
    if (!pieces && !*step) return hw_study_text(r, "role");
    return hw_arena_string(cli->arena, "%s (%s%s%s)", hw_study_text(r, "role"), pieces ? "pieces" : "",
                           pieces && *step ? ", " : "", step);
}

static void print_result(hw_cli *cli, hw_cli_table *t, const char *head, const json_t *r)
{
    hw_cli_cell(t, "%s", head);
    hw_cli_cell(t, "%s", label(cli, r));
    hw_heads_number(t, r, "score", 1, 3, false);
    hw_heads_interval(t, r, "low", "high", 1, 3, false);
    hw_heads_number(t, r, "baseline", 1, 3, false);
    hw_heads_number(t, r, "control", 1, 3, false);
    hw_heads_p(t, r);
    hw_heads_number(t, r, "cases", 1, 0, false);
    hw_heads_number(t, r, "sentences", 1, 0, false);
    double ratio = hw_study_number(r, "norm_ratio");
    if (json_is_true(json_object_get(r, "too_strong")))
        hw_cli_cell(t, "baseline too strong (%.0f %%)", 100 * hw_study_number(r, "baseline"));
    else
        hw_cli_cell(t, "%s%s", hw_study_text(r, "tier"), ratio < 0.5 ? ", parked" : "");
}

/* ---- tests that tell nothing ------------------------------------------------------------------------------------- */

static double ceiling_of(const json_t *result, const char *role)
{
    const json_t *roles = json_object_get(result, "table");
    for (size_t i = 0; i < json_array_size(roles); i++)
        if (!strcmp(hw_study_text(json_array_get(roles, i), "name"), role))
            return hw_study_number(json_array_get(roles, i), "ceiling");
    return NAN;
}

/* "decoder amod (fed) 76 % (at most 60 %)", each once: a test is the same for all heads of its kind. */
static const char *too_strong(hw_cli *cli, const json_t *result)
{
    const json_t *heads = json_object_get(result, "heads");
    const char *list = "";
    for (size_t i = 0; i < json_array_size(heads); i++) {
        const json_t *head = json_array_get(heads, i), *roles = json_object_get(head, "roles");
        for (size_t k = 0; k < json_array_size(roles); k++) {
            const json_t *r = json_array_get(roles, k);
            if (!json_is_true(json_object_get(r, "too_strong"))) continue;
            const char *name = hw_study_text(head, "name");
            const char *item = hw_arena_string(cli->arena, "%.*s %s %.0f %% (at most %.0f %%)", (int)strcspn(name, "."),
                                               name, label(cli, r), 100 * hw_study_number(r, "baseline"),
                                               100 * ceiling_of(result, hw_study_text(r, "role")));
            if (!strstr(list, item)) list = hw_arena_string(cli->arena, "%s%s%s", list, *list ? "; " : "", item);
        }
    }
    return list;
}

/* Where sentences are so few that no test can come out: the signs of all agree by chance in 2 of 2^n cases. */
static void print_hopeless(hw_cli *cli, const json_t *result)
{
    double sentences = hw_study_number(result, "sentences"), tests = hw_study_number(result, "tests");
    double least = fmin(1, tests * ldexp(1, 1 - (int)fmin(sentences, 100)));
    if (sentences > EXACT || least < 0.05) return;
    putchar('\n');
    hw_heads_say(hw_arena_string(cli->arena,
                                 "So few sentences can show no role: after Holm over %.0f tests p is at least "
                                 "%.2g, whatever heads do.",
                                 tests, least));
}

/* Where the set is large, but not the sentences with a case of some role. */
static void print_fewest(hw_cli *cli, const json_t *result, int64_t fewest)
{
    if (!hw_heads_is_rough(fewest) || json_is_true(json_object_get(result, "rough_intervals"))) return;
    putchar('\n');
    hw_heads_say(hw_heads_rough(cli->arena, fewest));
}

static void print(hw_heads *h, const json_t *result)
{
    const options *o = (const options *)h->options;
    hw_cli_table *t = hw_cli_table_new(h->cli->arena, "llrlrrrrrl");
    static const char *const titles[] = {"head",      "role", "score", "95 %",      "baseline",
                                         "untrained", "p",    "cases", "sentences", "how"};
    int64_t fewest = INT32_MAX;
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) hw_cli_cell(t, "%s", titles[i]);
    const json_t *heads = json_object_get(result, "heads");
    for (size_t i = 0; i < json_array_size(heads); i++) {
        const json_t *head = json_array_get(heads, i), *roles = json_object_get(head, "roles");
        int found = 0;
        for (size_t k = 0; k < json_array_size(roles); k++) {
            const json_t *r = json_array_get(roles, k);
            bool is = json_is_true(json_object_get(r, "found"));
            if (!is && !o->all) continue;
            print_result(h->cli, t, found++ ? "" : hw_study_text(head, "name"), r);
            fewest = (int64_t)fmin((double)fewest, hw_study_number(r, "sentences"));
        }
        if (found) continue;
        hw_cli_cell(t, "%s", hw_study_text(head, "name")), hw_cli_cell(t, "no role found");
        for (size_t k = 2; k < sizeof titles / sizeof *titles; k++) hw_cli_cell(t, " ");
    }
    printf("%s on %s, %s\n", h->model, hw_study_text(result, "data"), hw_heads_sentences(h, result));
    hw_cli_table_print(t, stdout);
    putchar('\n');
    hw_heads_say(
        "p: head against the better of baseline and untrained heads, paired and clustered by sentence, after Holm "
        "over all tests of the model. Intervals are over the sentences that have a case, and speak of this model "
        "only, not of others trained alike. Attention tells where a head looks, not whether the model needs it: "
        "see headwise heads ablate.");
    print_hopeless(h->cli, result);
    print_fewest(h->cli, result, fewest);
    hw_heads_print_untested(h->cli->arena, result);
    const char *list = too_strong(h->cli, result);
    if (!*list) return;
    putchar('\n');
    hw_heads_say(
        hw_arena_string(h->cli->arena,
                        "No head is given a role whose baseline leaves little to claim, which is a fault of the "
                        "data and no result. Baseline too strong: %s.",
                        list));
}

static const char *const columns[] = {"name",  "role",      "subset",  "step",       "score",      "low",
                                      "high",  "baseline",  "control", "p",          "p_raw",      "selection_score",
                                      "cases", "sentences", "offset",  "norm_ratio", "too_strong", "found",
                                      "tier",  NULL};

const hw_heads_verb hw_heads_roles = {.name = "roles",
                                      .depends = hw_heads_depends_on_selection,
                                      .compute = compute,
                                      .print = print,
                                      .list = "roles",
                                      .columns = columns};

static int run(hw_cli *cli)
{
    options o = {.common.seed = 1};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    return hw_heads_run(cli, &o.common, &hw_heads_roles);
}

const hw_cli_command hw_cli_heads_roles = {
    .usage = "MODEL",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description =
        "Holds every head against a table of roles: positional, matching marks, dependencies in both directions, rare "
        "words, the ends of the sentence, punctuation, broad, aligned. A head has a role if it exceeds the role's "
        "baseline by 10 points (broad: by 2; near 1: by half of what is left) and is significantly better. The "
        "baseline of brackets, quotation marks and dependencies is the best fixed offset, that of aligned the "
        "diagonal, both on the validation set and on the test set; that of all others is the best head of three "
        "untrained copies on the test set, which heads of the former roles must exceed too. These others need a score "
        "of 50 % at least on both sets, broad of 90 %. Where a fixed offset alone reaches more than 60 %, the data "
        "cannot tell grammar from position and no head is given the role. Gold comes from PREFIX.*.conllu and "
        "PREFIX.align beside the data; roles that need none run without. In the decoder a word has two rows: where it "
        "is fed, and where it is predicted.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = rules,
    .run = run,
};
