/* The test set of a command, and the configuration of a trained model with --set; see test_set.h. */
#include "cli/test_set.h"

#include <string.h>

/* ---- files ------------------------------------------------------------------------------------------------------- */

void hw_test_set_place(hw_cli *cli, const hw_config *c, const char *data, const char **directory, const char **prefix)
{
    char path[HW_PATH];
    const char *slash = data ? strrchr(data, '/') : NULL;
    *directory = c->data.dir;
    *prefix = data ? data : c->data.test;
    if (!slash || (*c->data.dir && hw_corpus_path(path, c->data.dir, data, c->data.source, NULL))) return;
    *directory = slash == data ? "/" : hw_arena_string(cli->arena, "%.*s", (int)(slash - data), data);
    *prefix = slash + 1;
}

static hw_lines *load_side(hw_cli *cli, const hw_test_set *set, const char *suffix, bool named, hw_error *err)
{
    char path[HW_PATH];
    if (hw_corpus_path(path, set->directory, set->prefix, suffix, err)) return hw_lines_load(cli->arena, path, err);
    if (!named)
        hw_fail(err, "%s. Paths count from the current directory; --set data.dir=DIR or --data PREFIX says where the "
                     "set is", hw_arena_string(cli->arena, "%s", err->message));
    return NULL;
}

static bool load_groups(hw_cli *cli, hw_test_set *set, hw_error *err)
{
    char path[HW_PATH];
    if (!hw_corpus_path(path, set->directory, set->prefix, "groups", NULL)) return true;
    set->groups = hw_groups_load(cli->arena, path, err);
    if (!set->groups || set->groups->count == set->count) return set->groups;
    return hw_fail(err, "%s has %lld %s, but %s has %lld; each line is the group of one pair", path,
                   (long long)set->groups->count, hw_plural(set->groups->count, "line", "lines"), set->source->path,
                   (long long)set->count);
}

static bool load_alignments(hw_cli *cli, hw_test_set *set, hw_error *err)
{
    char path[HW_PATH];
    if (!hw_corpus_path(path, set->directory, set->prefix, "align", NULL)) return true;
    set->alignments = hw_alignments_load(cli->arena, path, err);
    return set->alignments && hw_alignments_fit(set->alignments, set->source, set->target, err);
}

bool hw_test_set_load(hw_cli *cli, const hw_bundle *bundle, const hw_config *config, const char *data, hw_test_set *set,
                      hw_error *err)
{
    *set = (hw_test_set){0};
    hw_test_set_place(cli, config, data, &set->directory, &set->prefix);
    if (!*set->directory)
        return hw_fail(err,
                       "the model's configuration has no data.dir, so there is no test set; --data PREFIX names one");
    if (!(set->source = load_side(cli, set, config->data.source, data, err)) ||
        !(set->target = load_side(cli, set, config->data.target, data, err)) ||
        !hw_lines_parallel(set->source, set->target, err))
        return false;
    set->count = set->source->count;
    if (!set->count) return hw_fail(err, "%s is empty: there is nothing to evaluate", set->source->path);
    set->references = hw_arena_alloc(cli->arena, (size_t)set->count * sizeof *set->references);
    for (int64_t i = 0; i < set->count; i++)
        set->references[i] = hw_reference_of(set->target, i, bundle->target_tokenizer, cli->arena);
    return load_groups(cli, set, err) && load_alignments(cli, set, err);
}

/* ---- configuration ----------------------------------------------------------------------------------------------- */

/* What a trained model keeps: two sections, and what its sides are called. */
static bool is_kept(const char *key)
{
    return !strncmp(key, "model.", 6) || !strncmp(key, "text.", 5) || !strcmp(key, "data.source") ||
           !strcmp(key, "data.target");
}

static bool configure(hw_cli *cli, hw_config *config, const char *directory, hw_error *err)
{
    const hw_config *trained = hw_bundle_config(directory, cli->arena, err);
    if (!trained) return false;
    for (int i = 0; i < cli->set.count; i++)
        if (!hw_config_set(config, cli->set.items[i], err)) return false;
    if (!hw_cli_decoding_apply(cli, config, err) || !hw_config_check(config, NULL, err)) return false;
    hw_names changed = hw_config_differences(trained, config, cli->arena);
    for (int i = 0; i < changed.count; i++)
        if (is_kept(changed.items[i]))
            return hw_fail(err, "--set %s: %s was trained with %s; it cannot be changed any more", changed.items[i],
                           directory, hw_config_value(trained, changed.items[i], cli->arena));
    return true;
}

hw_config *hw_cli_model_config(hw_cli *cli, const char *directory)
{
    hw_error err;
    hw_config *config = hw_bundle_config(directory, cli->arena, &err);
    if (!config) {
        cli->status = hw_cli_fail(&err);
        return NULL;
    }
    if (configure(cli, config, directory, &err)) return config;
    cli->status = hw_cli_refuse(&err);
    return NULL;
}
