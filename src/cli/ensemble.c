/* Loads the models of a command that decide together; see ensemble.h. */
#include "cli/ensemble.h"

bool hw_cli_ensemble_load(hw_cli_ensemble *e, const char *model, const hw_cli_list *others, bool settled, hw_error *err)
{
    if (others->count >= HW_MOST_NETWORKS)
        return hw_fail(err, "--ensemble: %d models are too many; %d work together at most", others->count + 1,
                       HW_MOST_NETWORKS);
    for (int i = 0; i <= others->count; i++) {
        const char *directory = i ? others->items[i - 1] : model;
        e->bundles[i] = settled ? hw_bundle_load_settled(directory, err) : hw_bundle_load(directory, err);
        if (!e->bundles[i]) return false;
        e->count++;
        if (i && !hw_same_texts(e->bundles[0], e->bundles[i], err))
            return hw_fail_in(err, "%s and %s: ", model, directory);
    }
    return true;
}

void hw_cli_ensemble_free(hw_cli_ensemble *e)
{
    for (int i = 0; i < e->count; i++) hw_bundle_free(e->bundles[i]);
    e->count = 0;
}
