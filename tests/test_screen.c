/* The screen: the largest of x W' + b found through bounds is the largest of what `multiply` computes, to the bit and
 * to the tie, for any shape, with ties, near-ties, lone rows and outputs left aside. Where the processor has no screen,
 * there is nothing to hold. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/tensor.h>

typedef struct layer {
    int64_t outputs, inputs;
    hw_real *w, *b, *x, *y;
    hw_packed packed;
} layer;

enum { ROWS = 13 };

static layer layer_new(hw_arena *arena, int64_t outputs, int64_t inputs, double bias)
{
    hw_random random = hw_random_new((uint64_t)(outputs * 1000 + inputs), 7);
    layer l = {outputs, inputs, NULL, NULL, NULL, NULL, {outputs, inputs, NULL}};
    l.w = hw_arena_alloc(arena, (size_t)(outputs * inputs) * sizeof *l.w);
    l.b = hw_arena_alloc(arena, (size_t)outputs * sizeof *l.b);
    l.x = hw_arena_alloc(arena, (size_t)(ROWS * inputs) * sizeof *l.x);
    l.y = hw_arena_alloc(arena, (size_t)(ROWS * outputs) * sizeof *l.y);
    l.packed.panels = hw_arena_alloc(arena, (size_t)hw_packed_size(outputs, inputs) * sizeof *l.y);
    for (int64_t i = 0; i < outputs * inputs; i++) l.w[i] = (hw_real)(hw_random_normal(&random) / sqrt((double)inputs));
    for (int64_t i = 0; i < outputs; i++) l.b[i] = (hw_real)(bias * hw_random_normal(&random));
    for (int64_t i = 0; i < ROWS * inputs; i++) l.x[i] = (hw_real)hw_random_normal(&random);
    return l;
}

static hw_screen *new_screen(const layer *l)
{
    hw_packed packed = l->packed;
    hw_pack(&packed, l->w, l->inputs, false);
    return hw_screen_new(&l->packed, l->b);
}

static int32_t plain_largest(const layer *l, int64_t row, const int32_t *without, int count)
{
    int32_t best = -1;
    for (int32_t o = 0; o < l->outputs; o++) {
        bool left_aside = false;
        for (int i = 0; i < count; i++) left_aside = left_aside || without[i] == o;
        if (!left_aside && (best < 0 || l->y[row * l->outputs + o] > l->y[row * l->outputs + best])) best = o;
    }
    return best;
}

static void same_as_multiply(const layer *l, hw_arena *arena)
{
    static const int32_t without[] = {1, 2};
    hw_screen *screen = new_screen(l);
    if (!screen) return;
    hw_kernels_get()->multiply(l->y, l->outputs, l->x, l->inputs, ROWS, &l->packed, l->b);
    for (int count = 0; count <= 2 && count < l->outputs; count++) {
        int32_t ids[ROWS];
        hw_real values[ROWS];
        ck_assert(hw_screen_largest(screen, ids, values, l->x, ROWS, without, count, arena));
        for (int64_t r = 0; r < ROWS; r++) {
            ck_assert_int_eq(ids[r], plain_largest(l, r, without, count));
            ck_assert_mem_eq(&values[r], &l->y[r * l->outputs + ids[r]], sizeof values[r]);
        }
    }
    hw_screen_free(screen);
}

START_TEST(finds_what_multiplying_finds)
{
    static const int64_t shapes[][2] = {{3, 1}, {16, 4}, {63, 5}, {64, 64}, {65, 130}, {1000, 128}, {4099, 33}};
    hw_arena *arena = hw_arena_new(0);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int bias = 0; bias < 2; bias++) {
            layer l = layer_new(arena, shapes[i][0], shapes[i][1], bias * 3.0);
            same_as_multiply(&l, arena);
        }
    hw_arena_free(arena);
}
END_TEST

/* All rows of W nearly one: only the last bits of the values tell them apart, and of equal ones the first counts. */
START_TEST(tells_ties_and_near_ties_apart)
{
    hw_arena *arena = hw_arena_new(0);
    layer l = layer_new(arena, 700, 64, 0);
    for (int64_t o = 1; o < l.outputs; o++)
        for (int64_t k = 0; k < l.inputs; k++)
            l.w[o * l.inputs + k] = l.w[k] * (hw_real)(1 + (o % 5) * 1e-7 * (k % 3 == 0));
    same_as_multiply(&l, arena);
    memset(l.w, 0, (size_t)(l.outputs * l.inputs) * sizeof *l.w);
    same_as_multiply(&l, arena);
    hw_arena_free(arena);
}
END_TEST

START_TEST(numbers_of_every_size)
{
    hw_arena *arena = hw_arena_new(0);
    static const double sizes[] = {1e-38, 1e-20, 1e-3, 1e6, 1e12};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        layer l = layer_new(arena, 300, 40, 1e-3);
        for (int64_t k = 0; k < ROWS * l.inputs; k++) l.x[k] *= (hw_real)sizes[i];
        for (int64_t k = 0; k < l.inputs; k++) l.w[5 * l.inputs + k] *= 1e6f, l.w[6 * l.inputs + k] *= 1e-30f;
        memset(l.x, 0, (size_t)l.inputs * sizeof *l.x);
        same_as_multiply(&l, arena);
    }
    hw_arena_free(arena);
}
END_TEST

START_TEST(refuses_what_is_not_finite)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    hw_arena *arena = hw_arena_new(0);
    layer l = layer_new(arena, 100, 20, 1);
    int32_t ids[ROWS];
    hw_real values[ROWS];
    for (int i = 0; i < 3; i++) {
        hw_screen *screen = new_screen(&l);
        hw_real kept = l.x[25];
        l.x[25] = (hw_real)bad[i];
        ck_assert(!screen || !hw_screen_largest(screen, ids, values, l.x, ROWS, NULL, 0, arena));
        l.x[25] = kept;
        hw_screen_free(screen);
        kept = l.w[77];
        l.w[77] = (hw_real)bad[i];
        ck_assert_ptr_null(new_screen(&l));
        l.w[77] = kept;
        kept = l.b[9];
        l.b[9] = (hw_real)bad[i];
        ck_assert_ptr_null(new_screen(&l));
        l.b[9] = kept;
    }
    hw_arena_free(arena);
}
END_TEST

Suite *test_screen(void);
Suite *test_screen(void)
{
    Suite *suite = suite_create("screen");
    TCase *tests = tcase_create("screen");
    tcase_add_test(tests, finds_what_multiplying_finds);
    tcase_add_test(tests, tells_ties_and_near_ties_apart);
    tcase_add_test(tests, numbers_of_every_size);
    tcase_add_test(tests, refuses_what_is_not_finite);
    suite_add_tcase(suite, tests);
    return suite;
}
