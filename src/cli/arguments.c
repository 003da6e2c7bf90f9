/* Reads a command's words by its table of options.
 *
 * Options may stand anywhere: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, flags together (-qv); what follows `--` is
 * no option, and `-` alone is a file's name. The common options stand in a table like everybody's. */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the common options ------------------------------------------------------------------------------------------ */

/* Kept apart from hw_cli, so that one function sets an option wherever it goes. */
typedef struct common {
    bool help, version, help_config, quiet, json;
    int64_t threads;
    hw_cli_list set, decoding;
} common;

static const struct {
    unsigned takes; /* 0: every command has it */
    hw_cli_option option;
} common_table[] = {
    {HW_CLI_SET, {"set", 0, "KEY=VALUE", HW_CLI_LIST, offsetof(common, set),
                  "sets an option of the configuration, over what the file says; may be given again", 0, 0, NULL}},
    {HW_CLI_JSON, {"json", 0, NULL, HW_CLI_FLAG, offsetof(common, json), "print JSON in place of text", 0, 0, NULL}},
    {0, {"threads", 0, "N", HW_CLI_INTEGER, offsetof(common, threads),
         "how many threads work (all cores); results do not depend on it", 1, INFINITY, NULL}},
    {0, {"quiet", 'q', NULL, HW_CLI_FLAG, offsetof(common, quiet), "show no progress and no notes", 0, 0, NULL}},
    {HW_CLI_SET, {"help-config", 0, NULL, HW_CLI_FLAG, offsetof(common, help_config),
                  "print every option of the configuration and end", 0, 0, NULL}},
    {0, {"help", 'h', NULL, HW_CLI_FLAG, offsetof(common, help), "print this help and end", 0, 0, NULL}},
    {0, {"version", 0, NULL, HW_CLI_FLAG, offsetof(common, version), "print the version and end", 0, 0, NULL}},
};

const hw_cli_option *hw_cli_common_option(unsigned takes, int i)
{
    const hw_cli_option *option;
    for (int k = 0; (takes & HW_CLI_DECODING) && (option = hw_cli_decoding_option(k)); k++)
        if (i-- == 0) return option;
    for (size_t k = 0; k < sizeof common_table / sizeof *common_table; k++)
        if ((common_table[k].takes & ~takes) == 0 && i-- == 0) return &common_table[k].option;
    return NULL;
}

/* ---- finding an option ------------------------------------------------------------------------------------------- */

/* The command's options, then the common ones; NULL past the last. *own tells which. */
static const hw_cli_option *option_at(const hw_cli_command *command, int i, bool *own)
{
    *own = i < command->option_count;
    return *own ? &command->options[i] : hw_cli_common_option(command->takes, i - command->option_count);
}

static const hw_cli_option *find(const hw_cli_command *command, const char *name, size_t length, char letter, bool *own)
{
    const hw_cli_option *option;
    for (int i = 0; (option = option_at(command, i, own)); i++)
        if (letter ? option->letter == letter : strlen(option->name) == length && !memcmp(option->name, name, length))
            return option;
    return NULL;
}

static const char *name_at(int i, const void *command)
{
    bool own;
    return option_at(command, i, &own)->name;
}

static bool fail_unknown(const hw_cli *cli, const char *name, hw_error *err)
{
    bool own;
    int count = 0;
    while (option_at(cli->command, count, &own)) count++;
    const char *nearest = hw_nearest(name, count, name_at, cli->command);
    if (nearest) return hw_fail(err, "%s: unknown option --%s; did you mean --%s?", cli->name, name, nearest);
    return hw_fail(err, "%s: unknown option --%s; headwise %s --help lists them", cli->name, name, cli->name);
}

/* ---- one value --------------------------------------------------------------------------------------------------- */

static void append(hw_arena *arena, hw_cli_list *list, const char *item)
{
    const char **items = hw_arena_alloc(arena, ((size_t)list->count + 1) * sizeof *items);
    if (list->count) memcpy(items, list->items, (size_t)list->count * sizeof *items);
    items[list->count++] = item;
    list->items = items;
}

static const char *choice_at(int i, const void *choices) { return ((const char *const *)choices)[i]; }

static bool read_choice(const hw_cli *cli, const hw_cli_option *option, const char *value, int *to, hw_error *err)
{
    int count = 0;
    for (; option->choices[count]; count++) {
        if (strcmp(option->choices[count], value)) continue;
        *to = count;
        return true;
    }
    char words[512] = "";
    size_t used = 0;
    for (int i = 0; i < count && used < sizeof words - 64; i++)
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", i ? ", " : "", option->choices[i]);
    char suggestion[HW_SUGGESTION];
    return hw_fail(err, "%s: --%s: %s is none of %s%s", cli->name, option->name, value, words,
                   hw_suggestion(hw_nearest(value, count, choice_at, option->choices), suggestion));
}

static bool read_value(const hw_cli *cli, const hw_cli_option *option, const char *value, void *to, hw_error *err)
{
    /* Numbers are read as a configuration's are, with the same messages. */
    hw_yaml word = {.kind = HW_YAML_SCALAR, .file = cli->name, .text = value};
    char what[80];
    snprintf(what, sizeof what, "--%s", option->name);
    bool named = (option->kind == HW_CLI_TEXT || option->kind == HW_CLI_LIST) && strcmp(option->value, "TEXT");
    if (named && !*value)
        return hw_fail(err, "%s: %s: %s is empty; is a variable not set?", cli->name, what, option->value);
    bool bounded = option->low != 0 || option->high != 0;
    double low = bounded ? option->low : -INFINITY, high = bounded ? option->high : INFINITY;
    switch (option->kind) {
    case HW_CLI_FLAG:
        *(bool *)to = true;
        return true;
    case HW_CLI_TEXT:
        *(const char **)to = value;
        return true;
    case HW_CLI_INTEGER:
        return hw_yaml_integer(&word, what, low > -0x1p63 ? (int64_t)low : INT64_MIN,
                               high < 0x1p63 ? (int64_t)high : INT64_MAX, to, err);
    case HW_CLI_NUMBER:
        return hw_yaml_number(&word, what, low, high, to, err);
    case HW_CLI_CHOICE:
        return read_choice(cli, option, value, to, err);
    case HW_CLI_LIST:
        append(cli->arena, to, value);
        return true;
    }
    return true;
}

/* ---- options and each other -------------------------------------------------------------------------------------- */

/* Of commands that have these. */
static const hw_cli_rule common_rules[] = {{"tsv", HW_CLI_EXCLUDES, "json", NULL}, {0}};

/* Options that were given, by name. */
static bool is_given(const hw_cli_list *given, const char *name, size_t length)
{
    for (int i = 0; i < given->count; i++)
        if (strlen(given->items[i]) == length && !memcmp(given->items[i], name, length)) return true;
    return false;
}

static bool keeps_rule(const hw_cli *cli, const hw_cli_rule *rule, const hw_cli_list *given, hw_error *err)
{
    const char *why = rule->why ? rule->why : "", *list = "";
    if (!is_given(given, rule->option, strlen(rule->option))) return true;
    for (const char *other = rule->others; *other; other += strspn(other, " ")) {
        size_t length = strcspn(other, " ");
        bool there = is_given(given, other, length);
        if (there && rule->kind == HW_CLI_NEEDS) return true;
        if (there)
            return hw_fail(err, "%s: --%s and --%.*s exclude each other%s", cli->name, rule->option, (int)length, other,
                           why);
        list = hw_arena_string(cli->arena, "%s%s--%.*s", list, *list ? " or " : "", (int)length, other);
        other += length;
    }
    return rule->kind == HW_CLI_EXCLUDES || hw_fail(err, "%s: --%s needs %s%s", cli->name, rule->option, list, why);
}

static bool keeps_rules(const hw_cli *cli, const hw_cli_rule *rules, const hw_cli_list *given, hw_error *err)
{
    for (; rules && rules->option; rules++)
        if (!keeps_rule(cli, rules, given, err)) return false;
    return true;
}

/* ---- all words --------------------------------------------------------------------------------------------------- */

typedef struct parse {
    hw_cli *cli;
    void *options;
    common *common;
    int next; /* the word to come */
    hw_cli_list given;
    hw_error *err;
} parse;

static bool apply(parse *p, const hw_cli_option *option, bool own, const char *value)
{
    if (option->kind != HW_CLI_FLAG && !value) {
        if (p->next == p->cli->given_count)
            return hw_fail(p->err, "%s: --%s needs a value, %s", p->cli->name, option->name, option->value);
        value = p->cli->given[p->next++];
    }
    append(p->cli->arena, &p->given, option->name);
    if (hw_cli_is_decoding(option)) {
        union {
            int64_t integer;
            double number;
            bool flag;
        } checked;
        if (!read_value(p->cli, option, value, &checked, p->err)) return false;
        append(p->cli->arena, &p->common->decoding, hw_cli_decoding_assignment(p->cli->arena, option, value));
        return true;
    }
    char *base = own ? p->options : (void *)p->common;
    return read_value(p->cli, option, value, base + option->offset, p->err);
}

static bool parse_long(parse *p, const char *word)
{
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    bool own;
    const hw_cli_option *option = find(p->cli->command, word, length, 0, &own);
    if (!option) return fail_unknown(p->cli, hw_arena_string(p->cli->arena, "%.*s", (int)length, word), p->err);
    if (equals && option->kind == HW_CLI_FLAG)
        return hw_fail(p->err, "%s: --%s takes no value", p->cli->name, option->name);
    return apply(p, option, own, equals ? equals + 1 : NULL);
}

static bool parse_letters(parse *p, const char *letters)
{
    for (; *letters; letters++) {
        bool own;
        const hw_cli_option *option = find(p->cli->command, NULL, 0, *letters, &own);
        if (!option)
            return hw_fail(p->err, "%s: unknown option -%c; headwise %s --help lists them", p->cli->name, *letters,
                           p->cli->name);
        const char *value = option->kind == HW_CLI_FLAG || !letters[1] ? NULL : letters + 1;
        if (!apply(p, option, own, value)) return false;
        if (value) break;
    }
    return true;
}

static bool parse_words(parse *p)
{
    hw_cli *cli = p->cli;
    bool only_arguments = false;
    while (p->next < cli->given_count) {
        const char *word = cli->given[p->next++];
        if (only_arguments || word[0] != '-' || !word[1]) {
            cli->arguments[cli->argument_count++] = word;
        } else if (!strcmp(word, "--")) {
            only_arguments = true;
        } else if (!(word[1] == '-' ? parse_long(p, word + 2) : parse_letters(p, word + 1))) {
            return false;
        }
    }
    return true;
}

static bool enough_arguments(const hw_cli *cli, hw_error *err)
{
    const hw_cli_command *command = cli->command;
    if (cli->argument_count < command->least)
        return hw_fail(err, "%s: too few arguments; usage: headwise %s %s", cli->name, cli->name, command->usage);
    if (command->most >= 0 && cli->argument_count > command->most)
        return hw_fail(err, "%s: %s is one argument too many; usage: headwise %s%s%s", cli->name,
                       cli->arguments[command->most], cli->name, *command->usage ? " " : "", command->usage);
    for (int i = 0; i < cli->argument_count; i++)
        if (!*cli->arguments[i])
            return hw_fail(err, "%s: argument %d is empty; is a variable not set? Usage: headwise %s %s", cli->name, i + 1,
                           cli->name, command->usage);
    return true;
}

static bool printed(const hw_cli *cli, const common *c)
{
    if (c->help) hw_cli_help(stdout, cli->name, cli->command);
    else if (c->help_config) hw_config_help(stdout);
    else if (c->version) hw_cli_print_version();
    return c->help || c->help_config || c->version;
}

static void use_threads(hw_cli *cli, int64_t threads)
{
    cli->threads = threads;
    if (threads > HW_MOST_THREADS) {
        cli->threads = 0;
        hw_threads_set(0);
        hw_cli_say("--threads: %lld is more than the %d that are supported; using all cores, %d", (long long)threads,
                   HW_MOST_THREADS, hw_threads());
    } else if (threads) {
        hw_threads_set((int)threads);
    }
}

bool hw_cli_parse(hw_cli *cli, void *options)
{
    hw_error err = {""};
    common c = {0};
    parse p = {.cli = cli, .options = options, .common = &c, .err = &err};
    cli->arguments = hw_arena_calloc(cli->arena, (size_t)cli->given_count + 1, sizeof *cli->arguments);
    cli->argument_count = 0;
    bool ok = parse_words(&p);
    if (ok && printed(cli, &c)) {
        cli->status = HW_CLI_DONE;
        return false;
    }
    if (!ok || !keeps_rules(cli, cli->command->rules, &p.given, &err) ||
        !keeps_rules(cli, common_rules, &p.given, &err) || !enough_arguments(cli, &err)) {
        cli->status = hw_cli_refuse(&err);
        return false;
    }
    cli->quiet = c.quiet;
    cli->json = c.json;
    cli->set = c.set;
    cli->decoding = c.decoding;
    use_threads(cli, c.threads);
    return true;
}

hw_config *hw_cli_config(hw_cli *cli, const char *path)
{
    hw_error err;
    hw_names warnings = {0};
    hw_config *config = hw_config_load(cli->arena, path, &err);
    bool ok = config;
    for (int i = 0; ok && i < cli->set.count; i++) ok = hw_config_set(config, cli->set.items[i], &err);
    if (!ok || !hw_config_check(config, &warnings, &err)) {
        hw_cli_refuse(&err);
        return NULL;
    }
    for (int i = 0; i < warnings.count; i++) hw_cli_say("%s", warnings.items[i]);
    return config;
}
