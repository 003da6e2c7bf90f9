/* headwise bench multiply: our multiplications beside those of OpenBLAS, on one thread, at every shape that a network
 * of a size uses.
 *
 * Forward, y [rows, outputs] = x W', runs on packed weights. Backward, dx [rows, inputs] = dy W and
 * dW [outputs, inputs] += dy' x run on hw_product, which leaves long rows to OpenBLAS. */
#include "cli/bench.h"

#include <stdlib.h>

typedef struct options {
    int64_t rows, vocabulary;
    double seconds;
} options;

static const hw_cli_option table[] = {
    {"rows", 0, "N", HW_CLI_INTEGER, offsetof(options, rows), "only for so many rows (1, 5, 12, 64, 320 and 512)", 1,
     1e6, NULL},
    {"vocabulary", 0, "N", HW_CLI_INTEGER, offsetof(options, vocabulary), "rows of the output layer (9537)", 4,
     INT32_MAX, NULL},
    {"seconds", 0, "S", HW_CLI_NUMBER, offsetof(options, seconds), "how long each figure is measured (0.05)", 1e-6,
     3600, NULL},
};

enum { SHAPES = 6, KINDS = 6, STRETCHES = 5 };
static const int64_t usual_rows[] = {1, 5, 12, 64, 320, 512};

typedef struct shape {
    const char *name;
    int64_t outputs, inputs;
} shape;

static void shapes_of(const hw_config *c, int64_t vocabulary, shape shapes[SHAPES])
{
    int64_t width = c->model.width, inner = c->model.feed_forward;
    const shape all[SHAPES] = {
        {"query, key and value", 3 * width, width},
        {"output of attention, cross-attention's query", width, width},
        {"keys and values of all cross-attentions", 2 * width * c->model.decoder_layers, width},
        {"expand", inner, width},
        {"contract", width, inner},
        {"output layer", vocabulary, width},
    };
    for (int i = 0; i < SHAPES; i++) shapes[i] = all[i];
}

/* ---- one figure -------------------------------------------------------------------------------------------------- */

/* What a product reads and writes: x [rows, inputs], dy and y [rows, outputs], W and dW [outputs, inputs]. */
typedef struct product {
    int64_t rows, outputs, inputs;
    hw_real *x, *y, *w, *dx, *dw;
    hw_packed packed;
} product;

static void packed(const product *p)
{
    hw_kernels_get()->multiply(p->y, p->outputs, p->x, p->inputs, p->rows, &p->packed, NULL);
}

static void blas(const product *p)
{
    hw_gemm(false, true, p->rows, p->outputs, p->inputs, 1, p->x, p->inputs, p->w, p->inputs, 0, p->y, p->outputs);
}

static void dx(const product *p)
{
    hw_product(false, p->rows, p->inputs, p->outputs, p->y, p->outputs, p->w, p->inputs, false, p->dx, p->inputs);
}

static void blas_dx(const product *p)
{
    hw_gemm(false, false, p->rows, p->inputs, p->outputs, 1, p->y, p->outputs, p->w, p->inputs, 0, p->dx, p->inputs);
}

static void dw(const product *p)
{
    hw_product(true, p->outputs, p->inputs, p->rows, p->y, p->outputs, p->x, p->inputs, true, p->dw, p->inputs);
}

static void blas_dw(const product *p)
{
    hw_gemm(true, false, p->outputs, p->inputs, p->rows, 1, p->y, p->outputs, p->x, p->inputs, 1, p->dw, p->inputs);
}

static const struct {
    const char *key, *head;
    void (*run)(const product *p);
} kinds[KINDS] = {
    {"packed_gflops", "y", packed},          {"blas_gflops", "OpenBLAS", blas}, {"dx_gflops", "dx", dx},
    {"blas_dx_gflops", "OpenBLAS", blas_dx}, {"dw_gflops", "dW", dw},           {"blas_dw_gflops", "OpenBLAS", blas_dw},
};

static double time_of(const product *p, void (*run)(const product *p), int64_t times)
{
    double start = hw_bench_thread_seconds();
    for (int64_t i = 0; i < times; i++) run(p);
    return hw_bench_thread_seconds() - start;
}

/* GFLOP/s, the best of STRETCHES that last about so many seconds together. */
static double measure(const product *p, void (*run)(const product *p), double seconds)
{
    double best;
    int64_t times = 1;
    run(p); /* so that memory is there */
    while ((best = time_of(p, run, times)) < seconds / STRETCHES) times *= 2;
    for (int i = 1; i < STRETCHES; i++) {
        double taken = time_of(p, run, times);
        if (taken < best) best = taken;
    }
    return 2e-9 * (double)times * (double)p->rows * (double)p->outputs * (double)p->inputs / best;
}

static hw_real *numbers(hw_arena *arena, int64_t count)
{
    hw_real *block = hw_arena_alloc(arena, (size_t)count * sizeof *block);
    for (int64_t i = 0; i < count; i++) block[i] = (hw_real)(i % 13 - 6) / 64;
    return block;
}

static product product_new(hw_arena *arena, int64_t rows, const shape *s)
{
    product p = {.rows = rows,
                 .outputs = s->outputs,
                 .inputs = s->inputs,
                 .x = numbers(arena, rows * s->inputs),
                 .y = numbers(arena, rows * s->outputs),
                 .w = numbers(arena, s->outputs * s->inputs),
                 .dx = numbers(arena, rows * s->inputs),
                 .dw = numbers(arena, s->outputs * s->inputs)};
    p.packed = (hw_packed){s->outputs, s->inputs, numbers(arena, hw_packed_size(s->outputs, s->inputs))};
    hw_pack(&p.packed, p.w, s->inputs, false);
    return p;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* A row of the table and an object of the list. */
static void add_shape(hw_cli_table *out, json_t *list, hw_arena *arena, int64_t rows, const shape *s, double seconds)
{
    hw_arena_reset(arena);
    product p = product_new(arena, rows, s);
    double speed[KINDS];
    json_t *object = json_pack("{s:s, s:I, s:I, s:I}", "use", s->name, "rows", (json_int_t)rows, "outputs",
                               (json_int_t)s->outputs, "inputs", (json_int_t)s->inputs);
    for (int k = 0; k < KINDS; k++) {
        speed[k] = measure(&p, kinds[k].run, seconds);
        json_object_set_new(object, kinds[k].key, json_real(speed[k]));
    }
    json_array_append_new(list, object);
    hw_cli_cell(out, "%lld", (long long)rows);
    hw_cli_cell(out, "%lld", (long long)s->outputs);
    hw_cli_cell(out, "%lld", (long long)s->inputs);
    for (int k = 0; k < KINDS; k++) hw_cli_cell(out, "%.1f", speed[k]);
    hw_cli_cell(out, "%s", s->name);
}

static void head(hw_cli_table *out)
{
    static const char *const first[] = {"rows", "outputs", "inputs"};
    for (int i = 0; i < 3; i++) hw_cli_cell(out, "%s", first[i]);
    for (int k = 0; k < KINDS; k++) hw_cli_cell(out, "%s", kinds[k].head);
    hw_cli_cell(out, "use");
}

/* Bytes of the largest product, and of the program with what measures the roof. */
static double bytes_needed(const shape shapes[SHAPES], int64_t rows)
{
    double most = 0, program = 28 << 20;
    for (int i = 0; i < SHAPES; i++) {
        double outputs = (double)shapes[i].outputs, inputs = (double)shapes[i].inputs;
        double bytes = (3 * outputs * inputs + (double)rows * (2 * inputs + outputs)) * (double)sizeof(hw_real);
        if (bytes > most) most = bytes;
    }
    return program + most;
}

static int run(hw_cli *cli)
{
    options o = {.vocabulary = 9537, .seconds = 0.05};
    hw_error err;
    shape shapes[SHAPES];
    if (!hw_cli_parse(cli, &o)) return cli->status;
    hw_config *config = hw_bench_config(cli, cli->arguments[0], false);
    if (!config) return HW_CLI_USAGE;
    shapes_of(config, o.vocabulary, shapes);
    const int64_t *rows = o.rows ? &o.rows : usual_rows;
    size_t count = o.rows ? 1 : sizeof usual_rows / sizeof *usual_rows;
    if (!hw_bench_fits(bytes_needed(shapes, rows[count - 1]), &err)) return hw_cli_fail(&err);

    hw_arena *arena = hw_arena_new(0);
    hw_cli_table *machine = hw_cli_table_new(cli->arena, "ll"), *out = hw_cli_table_new(cli->arena, "rrrrrrrrrl");
    json_t *list = json_array();
    head(out);
    for (int s = 0; s < SHAPES; s++)
        for (size_t i = 0; i < count; i++) add_shape(out, list, arena, rows[i], &shapes[s], o.seconds);
    hw_arena_free(arena);
    double roof = hw_bench_roof();
    json_t *root = json_pack("{s:s, s:s, s:o, s:o}", "mode", "multiply", "size", cli->arguments[0], "machine",
                             hw_bench_machine_json(roof), "shapes", list);
    if (cli->json) {
        hw_bench_json_print(root);
        return HW_CLI_DONE;
    }
    json_decref(root);
    hw_bench_machine_rows(machine, roof);
    hw_cli_table_print(machine, stdout);
    printf("\nGFLOP/s of one thread\n");
    hw_cli_table_print(out, stdout);
    return HW_CLI_DONE;
}

const hw_cli_command hw_bench_multiply = {
    .usage = "SIZE",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description =
        "Multiplies matrices of every shape that a network of SIZE (toy, tiny, small, base) uses, on one thread: "
        "y = x W' of forward, dx = dy W and dW += dy' x of backward, each as the network does it and by OpenBLAS. "
        "Prints GFLOP/s.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .run = run,
};
