/* Learning rates, and strengths of terms and rates that change; the formulas stand in train.h. */
#include <math.h>

#include <headwise/train.h>

/* How far the fall has come, from 0 at the end of the warm-up to 1 behind the last step. */
static double fallen(const hw_config *c, double step)
{
    double warmup = (double)c->training.warmup_steps, steps = (double)c->training.max_steps + 1 - warmup;
    double share = steps > 0 ? (step - warmup) / steps : 0;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

static double constant(const hw_config *c, double step)
{
    (void)c, (void)step;
    return 1;
}

static double inverse_sqrt(const hw_config *c, double step)
{
    double warmup = c->training.warmup_steps > 0 ? (double)c->training.warmup_steps : 1;
    return step > warmup ? sqrt(warmup / step) : 1;
}

static double noam(const hw_config *c, double step)
{
    return 1 / sqrt((double)c->model.width * fmax(step, (double)c->training.warmup_steps));
}

static double linear(const hw_config *c, double step) { return 1 - fallen(c, step); }
static double cosine(const hw_config *c, double step) { return 0.5 * (1 + cos(acos(-1.0) * fallen(c, step))); }

double hw_learning_rate(const hw_config *c, int64_t step)
{
    static double (*const shapes[])(const hw_config *, double) = {
        [HW_SCHEDULE_CONSTANT] = constant, [HW_SCHEDULE_INVERSE_SQRT] = inverse_sqrt, [HW_SCHEDULE_NOAM] = noam,
        [HW_SCHEDULE_LINEAR] = linear,     [HW_SCHEDULE_COSINE] = cosine,
    };
    double at = (double)step, warmup = (double)c->training.warmup_steps, rise = at < warmup ? at / warmup : 1;
    return c->training.learning_rate * rise * shapes[c->training.schedule](c, at);
}

double hw_strength(const hw_config *c, int schedule, int64_t step)
{
    double warmup = (double)c->training.warmup_steps, last = (double)c->training.max_steps, at = (double)step;
    switch (schedule) {
    case HW_STRENGTH_RISE:
        return at / last;
    case HW_STRENGTH_FALL:
        return 1 - at / last;
    case HW_STRENGTH_V:
        if (at < warmup) return 1 - at / warmup;
        return last > warmup ? (at - warmup) / (last - warmup) : 0;
    default:
        return 1;
    }
}
