/* The options of a search, for commands that translate: every row of the section `decoding` in the table of options is
 * an option of theirs, with the same bounds and meaning. They go over what the model's configuration says. */
#include "cli/cli.h"

#include <string.h>

enum { MOST = 32, HELP = 512 };
static const char section[] = "decoding.";

/* How options are spelled whose key alone does not say it. */
static const struct {
    const char *key, *name, *value;
    char letter;
} spelling[] = {
    {"beam", NULL, "K", 'b'},
    {"n_best", NULL, "N", 'n'},
    {"length_penalty", NULL, "ALPHA", 0},
    {"coverage_penalty", NULL, "BETA", 0},
    {"patience", NULL, "P", 0},
    {"temperature", NULL, "T", 0},
    {"top_k", NULL, "K", 0},
    {"top_p", NULL, "P", 0},
    {"batch_sentences", "batch", "N", 0},
};

static hw_cli_option rows[MOST + 1];
static char names[MOST][32], help[MOST][HELP];
static const char *keys[MOST];

static void spell(hw_cli_option *o, const char *key, char name[32])
{
    snprintf(name, 32, "%s", key);
    for (char *c = name; *c; c++)
        if (*c == '_') *c = '-';
    o->name = name;
    o->value = o->kind == HW_CLI_FLAG ? NULL : "N";
    for (size_t i = 0; i < sizeof spelling / sizeof *spelling; i++) {
        if (strcmp(spelling[i].key, key)) continue;
        if (spelling[i].name) o->name = spelling[i].name;
        o->value = spelling[i].value;
        o->letter = spelling[i].letter;
    }
}

static void add_row(int k, const hw_config_row *row)
{
    static const hw_cli_kind kinds[] = {
        [HW_ROW_INTEGER] = HW_CLI_INTEGER, [HW_ROW_NUMBER] = HW_CLI_NUMBER, [HW_ROW_BOOLEAN] = HW_CLI_FLAG};
    HW_CHECK(k < MOST && row->kind != HW_ROW_TEXT, "%s has no place among the commands' options", row->key);
    rows[k] = (hw_cli_option){.kind = kinds[row->kind], .help = help[k], .low = row->low, .high = row->high};
    keys[k] = row->key;
    spell(&rows[k], row->key + strlen(section), names[k]);
    snprintf(help[k], HELP, "%s (%s)", row->help, row->key);
    for (char *c = help[k]; *c; c++)
        if (*c == '\n') *c = ' ';
}

const hw_cli_option *hw_cli_decoding_option(int i)
{
    static int count;
    if (!count) {
        hw_config_row row;
        for (int k = 0; hw_config_row_at(k, &row); k++)
            if (!strncmp(row.key, section, strlen(section))) add_row(count++, &row);
    }
    return i < count ? &rows[i] : NULL;
}

bool hw_cli_is_decoding(const hw_cli_option *option) { return option >= rows && option < rows + MOST; }

const char *hw_cli_decoding_assignment(hw_arena *arena, const hw_cli_option *option, const char *value)
{
    return hw_arena_string(arena, "--%s %s=%s", option->name, keys[option - rows], value ? value : "true");
}

/* ---- over a configuration ---------------------------------------------------------------------------------------- */

/* Was the option given to the command itself? */
static bool given(const hw_config *c, const char *key)
{
    const char *place = hw_config_place(c, key);
    return place && !strncmp(place, "--", 2);
}

/* Who gives one option wants those of the configuration that do not go with it to follow. */
static void settle(hw_config *c)
{
    hw_decoding *d = &c->decoding;
    bool beam = given(c, "decoding.beam");
    if (given(c, "decoding.temperature") || given(c, "decoding.top_k") || given(c, "decoding.top_p"))
        d->sampling = true;
    else if (beam && d->beam > 1 && !given(c, "decoding.sampling"))
        d->sampling = false;
    if (d->sampling) {
        if (!beam) d->beam = 1;
        if (!given(c, "decoding.patience")) d->patience = 1;
        return;
    }
    if (!beam && d->beam < d->n_best) d->beam = d->n_best;
    if (!given(c, "decoding.n_best") && d->n_best > d->beam) d->n_best = d->beam;
    /* A beam of 1 is greedy, and as many hypotheses must finish as are wanted. */
    bool asked = beam || given(c, "decoding.n_best"), few = d->n_best > hw_decoding_enough(d);
    if (!given(c, "decoding.patience") && asked && (d->beam == 1 || few)) d->patience = 1;
}

bool hw_cli_decoding_apply(const hw_cli *cli, hw_config *config, hw_error *err)
{
    for (int i = 0; i < cli->decoding.count; i++) {
        const char *item = cli->decoding.items[i], *blank = strchr(item, ' ');
        const char *place = hw_arena_string(cli->arena, "%.*s", (int)(blank - item), item);
        if (!hw_config_set_from(config, place, blank + 1, err)) return false;
    }
    settle(config);
    const char *seed = hw_config_place(config, "decoding.seed");
    if (!seed || strcmp(seed, "--seed") || config->decoding.sampling) return true;
    return hw_fail(err,
                   "--seed: nothing is drawn, so there is no seed; --sampling, --temperature, --top-k or --top-p draw");
}
