/* What is wrong with the options of a search: the one table of what does not go together, for configurations, commands
 * and whoever calls the library. Bounds of single values are those of the table of options. */
#include "config/options.h"

#include <math.h>
#include <string.h>

/* ---- one value --------------------------------------------------------------------------------------------------- */

static double value_of(const hw_config *c, const hw_option *o)
{
    const void *at = (const char *)c + o->offset;
    return o->kind == HW_OPTION_INTEGER ? (double)*(const int64_t *)at : *(const double *)at;
}

static bool out_of_bounds(const hw_config *c, const hw_option *o, char message[512])
{
    if (strncmp(o->key, "decoding.", 9) || (o->kind != HW_OPTION_INTEGER && o->kind != HW_OPTION_NUMBER)) return false;
    double value = value_of(c, o);
    if (value >= o->low && value <= o->high) return false;
    int used = snprintf(message, 512, "%g is out of range; it goes from %.10g ", value, o->low);
    if (isfinite(o->high))
        snprintf(message + used, 512 - (size_t)used, "to %.10g", o->high);
    else
        snprintf(message + used, 512 - (size_t)used, "on");
    return true;
}

/* ---- several ----------------------------------------------------------------------------------------------------- */

int64_t hw_decoding_enough(const hw_decoding *d) { return llround((double)d->beam * d->patience); }

static bool more_than_kept(const hw_decoding *d) { return !d->sampling && d->n_best > d->beam; }
static bool more_than_finish(const hw_decoding *d) { return !d->sampling && d->n_best > hw_decoding_enough(d); }
static bool beam_of_samples(const hw_decoding *d) { return d->sampling && d->beam > 1; }
static bool nothing_between(const hw_decoding *d) { return d->max_length && d->min_length > d->max_length; }
static bool patient_samples(const hw_decoding *d) { return d->sampling && d->patience != 1; }

/* The message is: KEY: its value, `text`, OTHER, its value, `advice`. */
static const struct {
    const char *key, *other;
    bool (*wrong)(const hw_decoding *d);
    const char *text, *advice;
} together[] = {
    {"decoding.n_best", "decoding.beam", more_than_kept, "is more than", ""},
    {"decoding.n_best", "decoding.patience", more_than_finish, "is more than the beam lets finish with", ""},
    {"decoding.beam", "decoding.sampling", beam_of_samples, "hypotheses do not go with",
     "; a sample is one hypothesis, set the beam to 1"},
    {"decoding.patience", "decoding.sampling", patient_samples, "does not go with", "; samples are not searched for"},
    {"decoding.min_length", "decoding.max_length", nothing_between, "is more than", ""},
};

bool hw_decoding_fault(const hw_decoding *given, const char **key, const char **other, char message[512])
{
    hw_config c = {.decoding = *given}; /* so that values are found by their rows */
    hw_decoding *d = &c.decoding;
    double *ones[] = {&d->patience, &d->temperature, &d->top_p};
    for (int i = 0; i < 3; i++) *ones[i] += *ones[i] == 0;
    for (int i = 0; i < hw_option_count; i++) {
        *key = hw_options[i].key;
        *other = NULL;
        if (out_of_bounds(&c, &hw_options[i], message)) return true;
    }
    for (size_t i = 0; i < sizeof together / sizeof *together; i++) {
        if (!together[i].wrong(d)) continue;
        *key = together[i].key;
        *other = together[i].other;
        hw_arena *arena = hw_arena_new(0);
        snprintf(message, 512, "%s %s %s %s%s", hw_option_text(&c, hw_option_find(*key), arena), together[i].text,
                 *other, hw_option_text(&c, hw_option_find(*other), arena), together[i].advice);
        hw_arena_free(arena);
        return true;
    }
    return false;
}

bool hw_decoding_check(const hw_decoding *d, hw_error *err)
{
    char message[512];
    const char *key, *other;
    return !hw_decoding_fault(d, &key, &other, message) || hw_fail(err, "%s: %s", key, message);
}
