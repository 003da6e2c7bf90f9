/* What may not come next: lengths, prefixes, repeated runs of tokens.
 *
 * Logits change only after the row's normaliser was taken, so that probabilities stay those of the network. A run is
 * never repeated since its last token is refused (Paulus, Xiong and Socher 2018, "A deep reinforced model for
 * abstractive summarization", section 2.5); tokens of the prefix count, though they themselves are not refused. */
#include "decode/constraints.h"

#include <math.h>
#include <string.h>

static const hw_real never = -(hw_real)INFINITY;

static void keep_only(int32_t id, hw_real *logits, int64_t n)
{
    hw_real kept = logits[id];
    for (int64_t i = 0; i < n; i++) logits[i] = never;
    logits[id] = kept;
}

static void refuse_repeats(const hw_constraints *c, hw_real *logits)
{
    if (c->length < c->no_repeat) return;
    int64_t before = c->no_repeat - 1; /* tokens of a run before its last */
    const int32_t *latest = c->ids + c->length - before;
    for (int64_t i = 0; i + before < c->length; i++)
        if (!before || !memcmp(c->ids + i, latest, (size_t)before * sizeof *latest)) logits[c->ids[i + before]] = never;
}

static bool nothing_left(const hw_real *logits, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (logits[i] > never) return false;
    return true;
}

void hw_constrain(const hw_constraints *c, hw_real *logits, int64_t n)
{
    hw_real end = logits[HW_END];
    if (c->forced >= 0 || c->length >= c->most) {
        keep_only(c->forced >= 0 ? c->forced : HW_END, logits, n);
        return;
    }
    logits[HW_BEGIN] = never;
    if (c->no_repeat) refuse_repeats(c, logits);
    if (c->length >= c->least) return;
    logits[HW_END] = never;
    if (nothing_left(logits, n)) logits[HW_END] = end;
}
