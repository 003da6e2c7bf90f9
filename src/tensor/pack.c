/* Laying a weight out for the packed multiplication (src/tensor/kernels/multiply.c): panels of 32 outputs; within one,
 * number k * 32 + o is W[o, k], so that each step of k reads one run of memory. Outputs beyond the last are zeros. */
#include <string.h>

#include <headwise/tensor.h>

enum { PANEL = 32, STEP = 16 };

int64_t hw_packed_size(int64_t outputs, int64_t inputs)
{
    return (outputs + PANEL - 1) / PANEL * PANEL * inputs;
}

/* W stored [outputs, inputs]: STEP numbers of a row at a time, so that the part of the panel being filled stays in
 * cache. */
static void pack_rows(hw_real *panel, const hw_real *w, int64_t ldw, int64_t count, int64_t inputs)
{
    for (int64_t start = 0; start < inputs; start += STEP) {
        int64_t end = start + STEP < inputs ? start + STEP : inputs;
        for (int64_t o = 0; o < count; o++)
            for (int64_t k = start; k < end; k++) panel[k * PANEL + o] = w[o * ldw + k];
    }
}

void hw_pack(hw_packed *p, const hw_real *w, int64_t ldw, bool transposed)
{
    for (int64_t first = 0; first < p->outputs; first += PANEL) {
        hw_real *panel = p->panels + first * p->inputs;
        int64_t count = p->outputs - first < PANEL ? p->outputs - first : PANEL;
        if (count < PANEL) memset(panel, 0, (size_t)(PANEL * p->inputs) * sizeof *panel);
        if (transposed) {
            for (int64_t k = 0; k < p->inputs; k++)
                memcpy(panel + k * PANEL, w + k * ldw + first, (size_t)count * sizeof *panel);
        } else {
            pack_rows(panel, w + first * ldw, ldw, count, p->inputs);
        }
    }
}

void hw_packed_row(const hw_packed *p, int64_t output, hw_real *row)
{
    const hw_real *panel = p->panels + output / PANEL * PANEL * p->inputs + output % PANEL;
    for (int64_t k = 0; k < p->inputs; k++) row[k] = panel[k * PANEL];
}
