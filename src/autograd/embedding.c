/* embedding: y_i = dropout(s E[id_i] + PE[position_i])        E [V, D] -> [N, D]
 *   dE[id_i] += s dropout(dy_i)
 *   PE[p, i] = sin(p 10000^(-2i/D)), PE[p, D/2 + i] = cos of the same
 * (Vaswani et al. 2017, sections 3.4 and 3.5; all sines before all cosines, as in MarianMT). The encodings of the first
 * positions are computed once for a width and shared by all threads. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "op.h"

typedef struct embedding_options {
    const int32_t *ids, *positions;
    int64_t count;
    hw_real scale;
    int64_t first_row;
    hw_dropout drop;
} embedding_options;

void hw_positional_encoding(hw_real *out, int64_t position, int64_t width)
{
    int64_t half = width / 2;
    for (int64_t i = 0; i < half; i++) {
        double angle = (double)position * pow(10000.0, -2.0 * (double)i / (double)width);
        out[i] = (hw_real)sin(angle);
        out[half + i] = (hw_real)cos(angle);
    }
    if (width % 2) out[width - 1] = 0;
}

/* One table a width, never given back: a process has few widths. */
enum { TABLE_POSITIONS = 512 };
typedef struct position_table {
    struct position_table *next;
    int64_t width;
    hw_real values[];
} position_table;

static position_table *tables;
static pthread_mutex_t tables_lock = PTHREAD_MUTEX_INITIALIZER;

static position_table *find_table(int64_t width)
{
    for (position_table *p = __atomic_load_n(&tables, __ATOMIC_ACQUIRE); p; p = p->next)
        if (p->width == width) return p;
    return NULL;
}

static const hw_real *table_of(int64_t width)
{
    position_table *p = find_table(width);
    if (p) return p->values;
    pthread_mutex_lock(&tables_lock);
    p = find_table(width);
    if (!p) {
        p = malloc(sizeof *p + (size_t)(TABLE_POSITIONS * width) * sizeof(hw_real));
        HW_CHECK(p, "no memory for the table of positions");
        p->width = width;
        p->next = tables;
        for (int64_t i = 0; i < TABLE_POSITIONS; i++) hw_positional_encoding(p->values + i * width, i, width);
        __atomic_store_n(&tables, p, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&tables_lock);
    return p->values;
}

static const char *embedding_shape(hw_node *n)
{
    const embedding_options *o = n->options;
    const hw_tensor *w = n->in[0];
    char text[96];
    if (w->rank != 2)
        return hw_node_reason(n, "the table has shape %s, [V, D] expected", hw_tensor_shape_text(w, text));
    for (int64_t i = 0; i < o->count; i++)
        if (o->ids[i] < 0 || o->ids[i] >= w->shape[0])
            return hw_node_reason(n, "token %d of a vocabulary of %lld", (int)o->ids[i], (long long)w->shape[0]);
    hw_node_output(n, 2, (int64_t[]){o->count, w->shape[1]})->first_row = o->first_row;
    return NULL;
}

static void embedding_forward(hw_node *n)
{
    const embedding_options *o = n->options;
    const hw_tensor *w = n->in[0];
    int64_t width = w->shape[1];
    const hw_real *table = o->positions ? table_of(width) : NULL;
    hw_real *far = o->positions ? hw_node_scratch(n, (size_t)width) : NULL;
    hw_real *unpacked = w->data ? NULL : hw_node_scratch(n, (size_t)width);
    for (int64_t i = 0; i < o->count; i++) {
        hw_real *y = n->out[0]->data + i * width;
        if (unpacked) hw_packed_row(w->packed, o->ids[i], unpacked);
        n->kernels->scale(y, o->scale, unpacked ? unpacked : w->data + (int64_t)o->ids[i] * width, width);
        if (!o->positions) continue;
        if (o->positions[i] < TABLE_POSITIONS) {
            n->kernels->add(y, table + (int64_t)o->positions[i] * width, width);
        } else {
            hw_positional_encoding(far, o->positions[i], width);
            n->kernels->add(y, far, width);
        }
    }
    if (o->drop.threshold)
        n->kernels->activation(n->out[0]->data, n->out[0]->data, o->count * width, HW_IDENTITY, &o->drop,
                               o->first_row * width);
}

static void embedding_backward(hw_node *n)
{
    const embedding_options *o = n->options;
    int64_t width = n->in[0]->shape[1];
    hw_real *dw = hw_input_gradient(n, 0), *dy = n->out[0]->grad;
    if (!dw) return;
    if (o->drop.threshold)
        n->kernels->activation_backward(dy, dy, dy, o->count * width, HW_IDENTITY, &o->drop, o->first_row * width,
                                        true);
    for (int64_t i = 0; i < o->count; i++)
        n->kernels->axpy(dw + (int64_t)o->ids[i] * width, o->scale, dy + i * width, width);
}

const hw_op hw_op_embedding = {"embedding", embedding_shape, embedding_forward, embedding_backward, NULL};

hw_tensor *hw_embedding(hw_tape *t, hw_tensor *w, const int32_t *ids, const int32_t *positions, int64_t count,
                        hw_real scale, int64_t first_row, hw_dropout drop)
{
    embedding_options o = {ids, positions, count, scale, first_row, drop};
    return hw_apply(t, &hw_op_embedding, 1, &w, &o, sizeof o)->out[0];
}
