/* heads_trace.tsv: what every head does at each validation (training.track_heads). A line a head and figure, written as
 * the other logs are, so that a run that was interrupted ends with the same bytes. */
#include <math.h>

#include "run.h"

bool hw_run_track_begin(hw_run *r, hw_error *err)
{
    char path[HW_PATH];
    return !r->tracer ||
           hw_log_open(&r->trace_log, hw_run_path(r, "heads_trace.tsv", path), hw_trace_header, r->state.step, err);
}

/* A number, or nothing where there is none. */
static const char *cell(double x, const char *format, char text[32])
{
    *text = 0;
    if (isfinite(x)) snprintf(text, 32, format, x);
    return text;
}

bool hw_run_track(hw_run *r, hw_error *err)
{
    const hw_trace_row *rows;
    int count = r->tracer ? hw_tracer_look(r->tracer, &rows) : 0;
    for (int i = 0; i < count; i++) {
        const hw_trace_row *x = &rows[i];
        char value[32], baseline[32], p[32];
        if (!hw_log_line(&r->trace_log, err, "%lld\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", (long long)r->state.step, x->name,
                         x->figure, x->subset, x->step, cell(x->value, "%.6f", value),
                         cell(x->baseline, "%.6f", baseline), cell(x->p, "%.6g", p),
                         !x->is_role ? ""
                         : x->found  ? "1"
                                     : "0"))
            return false;
    }
    return true;
}
