/* The model directory of a run: who may write to it, whose run it holds, and the files of former steps in it.
 *
 * The directory itself is what is locked, so no file is left over, and the lock is gone with its process however that
 * ends. */
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainer.h"

/* What a run writes, beside the kept weights: first what a new one removes, in that order, then what it replaces. */
static const char *const files[] = {
    "checkpoint.safetensors", "model.safetensors", "train.tsv",    "valid.tsv",    "times.tsv",    "curves.svg",
    "gates.tsv",              "heads_trace.tsv",   HW_EVENTS,      "config.yaml",  "corpus.json",  "source.vocab",
    "target.vocab",           "shared.vocab",      "source.model", "target.model", "shared.model",
};
enum { REMOVED = 9, FILES = sizeof files / sizeof *files };

#define KEPT "checkpoints" /* their directory, and the form of their names */
#define KEPT_FORM "step-%" PRId64 ".safetensors"

const char *hw_run_path(const hw_run *r, const char *name, char path[HW_PATH])
{
    hw_error err;
    HW_CHECK(hw_bundle_path(path, r->config->training.model_dir, name, &err), "%s",
             err.message); /* hw_run_take tried it */
    return path;
}

bool hw_run_has(const hw_run *r, const char *name)
{
    char path[HW_PATH];
    return hw_file_exists(hw_run_path(r, name, path));
}

/* ---- whose it is ------------------------------------------------------------------------------------------------- */

static bool lock(hw_run *r, const char *directory, hw_error *err)
{
    int reason;
    r->lock = hw_directory_lock(directory, &reason);
    if (r->lock < 0) return hw_fail(err, "%s: cannot be opened: %s", directory, strerror(reason));
    if (reason == EWOULDBLOCK)
        return hw_fail(err, "%s: another process is training in this directory; wait for it, or choose another "
                            "training.model_dir", directory);
    if (reason)
        hw_run_say(r,
                   "warning: %s: this file system locks no directories (%s); see to it that no other process trains "
                   "there", directory, strerror(reason));
    return true;
}

bool hw_run_take(hw_run *r, hw_error *err)
{
    char path[HW_PATH], name[128];
    const char *directory = r->config->training.model_dir;
    snprintf(name, sizeof name, KEPT "/" KEPT_FORM, INT64_MAX); /* the longest */
    if (!hw_bundle_path(path, directory, name, err) || !hw_directory_make(directory, err) || !lock(r, directory, err))
        return false;
    hw_atomic_clean(directory); /* what a killed run left half-written */
    hw_atomic_clean(hw_run_path(r, KEPT, path));
    return true;
}

bool hw_run_holds(const hw_run *r, hw_error *err)
{
    struct stat held, there;
    const char *directory = r->config->training.model_dir;
    if (!fstat(r->lock, &held) && !stat(directory, &there) && held.st_dev == there.st_dev &&
        held.st_ino == there.st_ino)
        return true;
    return hw_fail(err, "%s: the directory was moved away while the run wrote into it. What was saved is in it; the same "
                        "command goes on when it is back, or another training.model_dir says where it is", directory);
}

/* What two parts of one run may differ in: where things are, and when it ends, if that is later. */
static bool may_differ(const hw_config *there, const hw_config *now, const char *key)
{
    const struct {
        const char *key;
        bool may;
    } table[] = {
        {"training.model_dir", true},
        {"data.dir", true},
        {"training.tensorboard", true},
        {"training.max_steps", now->training.max_steps > there->training.max_steps},
        {"training.patience", !now->training.patience || /* 0: it never ends the run */
                                  (there->training.patience && now->training.patience > there->training.patience)},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(key, table[i].key)) return table[i].may;
    return false;
}

const char *hw_run_add_difference(const char *list, const hw_config *there, const hw_config *now, const char *key,
                                  hw_arena *arena)
{
    return hw_arena_string(arena, "%s%s%s (there %s, now %s)", list, *list ? ", " : "", key,
                           hw_config_value(there, key, arena), hw_config_value(now, key, arena));
}

/* Adds what must not differ but does to the list; `outside`: of what checkpoints leave out, else of the rest. */
static const char *differing(const hw_run *r, const hw_config *there, bool outside, const char *list)
{
    hw_names keys = hw_config_differences(there, r->config, r->arena);
    for (int i = 0; i < keys.count; i++) {
        const char *key = keys.items[i];
        if (hw_checkpoint_leaves_out(key) != outside || may_differ(there, r->config, key)) continue;
        list = hw_run_add_difference(list, there, r->config, key, r->arena);
    }
    return list;
}

bool hw_run_same(hw_run *r, hw_error *err)
{
    char path[HW_PATH];
    hw_config *kept, *there = hw_config_load(r->arena, hw_run_path(r, "config.yaml", path), err);
    if (!there || !hw_config_check(there, NULL, err) ||
        !hw_checkpoint_config(hw_run_path(r, "checkpoint.safetensors", path), r->arena, &kept, err))
        return false;
    const char *list = differing(r, there, true, differing(r, kept ? kept : there, false, ""));
    if (!*list) return true;
    return hw_fail(err, "%s holds a run of another configuration: %.1000s. Go on with that one, choose another "
                        "training.model_dir, or begin anew with --overwrite", r->config->training.model_dir, list);
}

/* ---- weights of former steps ------------------------------------------------------------------------------------- */

static int later_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The steps of the kept weights, the latest first -> their number. */
static int64_t list_kept(const hw_run *r, hw_arena *arena, int64_t **steps)
{
    char path[HW_PATH], expected[64];
    DIR *directory = opendir(hw_run_path(r, KEPT, path));
    int64_t count = 0, capacity = 0, step;
    *steps = NULL;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (sscanf(entry->d_name, "step-%" SCNd64, &step) != 1) continue;
        snprintf(expected, sizeof expected, KEPT_FORM, step);
        if (strcmp(entry->d_name, expected)) continue;
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            int64_t *larger = hw_arena_alloc(arena, (size_t)capacity * sizeof *larger);
            if (count) memcpy(larger, *steps, (size_t)count * sizeof *larger);
            *steps = larger;
        }
        (*steps)[count++] = step;
    }
    if (directory) closedir(directory);
    if (count) qsort(*steps, (size_t)count, sizeof **steps, later_first);
    return count;
}

static const char *kept_path(const hw_run *r, int64_t step, char path[HW_PATH])
{
    char name[128];
    snprintf(name, sizeof name, KEPT "/" KEPT_FORM, step);
    return hw_run_path(r, name, path);
}

/* The `most` latest that are not beyond the state's step stay. */
static void prune(const hw_run *r, int64_t most)
{
    char path[HW_PATH];
    hw_arena *arena = hw_arena_new(0);
    int64_t *steps, count = list_kept(r, arena, &steps), stay = 0;
    for (int64_t i = 0; i < count; i++)
        if (steps[i] > r->state.step || stay++ >= most) unlink(kept_path(r, steps[i], path));
    hw_arena_free(arena);
}

void hw_run_prune(const hw_run *r) { prune(r, r->config->training.keep_checkpoints); }

bool hw_run_keep(const hw_run *r, hw_error *err)
{
    char path[HW_PATH];
    if (!hw_directory_make(hw_run_path(r, KEPT, path), err) ||
        !hw_bundle_save_weights(r->bundle->network, NULL, kept_path(r, r->state.step, path), err))
        return false;
    hw_run_prune(r);
    return true;
}

/* ---- beginning ---------------------------------------------------------------------------------------------------- */

/* Is the file one of a tokenizer's that the run will use? */
static bool found(const hw_config *c, const char *path)
{
    char model[HW_PATH];
    for (int side = 0; side < 2; side++)
        if (hw_texts_found(c, side, model) && !strcmp(model, path)) return true;
    return false;
}

static bool in_the_way(const char *path, hw_error *err)
{
    return hw_fail(err, "%s: training would replace this file; move it, choose another training.model_dir, or begin with "
                        "--overwrite", path);
}

bool hw_run_may_begin(const hw_run *r, hw_error *err)
{
    char path[HW_PATH];
    struct stat status;
    if (hw_run_has(r, "model.safetensors"))
        return hw_fail(err, "%s holds a model without a checkpoint, which training would replace; choose another "
                            "training.model_dir, or begin anew with --overwrite", r->config->training.model_dir);
    if (hw_config_is_saved(hw_run_path(r, "config.yaml", path))) return true; /* a run that was killed early */
    for (int i = 0; i < FILES; i++)
        if (!stat(hw_run_path(r, files[i], path), &status) && S_ISREG(status.st_mode) && !found(r->config, path))
            return in_the_way(path, err);
    int64_t *steps;
    return !list_kept(r, r->arena, &steps) || in_the_way(kept_path(r, steps[0], path), err);
}

void hw_run_clear(const hw_run *r)
{
    char path[HW_PATH];
    for (int i = 0; i < REMOVED; i++) unlink(hw_run_path(r, files[i], path));
    prune(r, 0);
    rmdir(hw_run_path(r, KEPT, path));
}
