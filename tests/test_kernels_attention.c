/* Attention of one query, all heads at once (as a decoding step has it): the bits are those of one head at a time, on
 * every path, for any number of heads, width and number of keys, and wherever the keys stand; nothing beside the arrays
 * is read. */
#include "tensor/attention_kernel.h"

#include <string.h>

#include "support_kernels.h"

static const int64_t cases[][3] = { /* heads, width, keys */
    {1, 16, 1}, {4, 16, 15}, {4, 32, 16}, {4, 32, 17}, {8, 64, 33}, {5, 24, 7},
    {3, 5, 31}, {7, 16, 32}, {6, 1, 40},  {4, 16, 0},  {9, 20, 70}, {2, 64, 3},
};
enum { CASES = sizeof cases / sizeof *cases };

START_TEST(single_equals_a_head_at_a_time)
{
    const int64_t heads = cases[_i][0], width = cases[_i][1], m = cases[_i][2], all = heads * width;
    const int64_t stride = hw_attention_stride(m);
    const hw_real *q = array_random(all, -2, 2), *keys = array_random(m * 2 * all, -2, 2);
    const hw_real *sharpness = array_random(heads, 0, 2);
    hw_real *scratch = array_new(hw_attention_scratch(m, width)), *kept[2] = {NULL, NULL};
    hw_real *turned = array_copy(keys, m * 2 * all); /* key i stands in row m - 1 - i */
    int32_t rows[80];
    for (int64_t i = 0; i < m; i++) {
        rows[i] = (int32_t)(m - 1 - i);
        memcpy(turned + rows[i] * 2 * all, keys + i * 2 * all, (size_t)(2 * all) * sizeof *turned);
    }
    EACH_PATH(k) {
        hw_attention_head head = {.n = 1, .m = m, .width = width, .q = q, .k = keys, .v = keys + all, .ldq = all,
                                  .ldk = 2 * all, .ldv = 2 * all, .scale = 0.25, .heads = heads, .scratch = scratch};
        hw_real *got[4] = {array_new(all), array_new(all), array_new(all), array_new(heads * stride)}, *want[2];
        k->attention->single(&head, heads, NULL, got[0], NULL);
        k->attention->single(&head, heads, sharpness, got[1], NULL);
        k->attention->single(&head, heads, sharpness, got[2], got[3]);
        for (int sharp = 0; sharp < 2; sharp++) {
            want[0] = array_new(all);
            want[1] = array_new(heads * stride);
            for (int64_t h = 0; h < heads; h++) {
                hw_attention_head one = head;
                one.q += h * width;
                one.k += h * width;
                one.v += h * width;
                if (sharp) one.scale *= sharpness[h];
                k->attention->forward(&one, want[0] + h * width, all, want[1] + h * stride);
            }
            expect_same_bits("single", got[sharp], want[0], all);
            expect_same_on_paths("single", &kept[sharp], got[sharp], all);
        }
        expect_same_bits("single with weights", got[2], got[1], all);
        expect_same_bits("weights", got[3], want[1], heads * stride);
        head.k = turned;
        head.v = turned + all;
        head.rows = rows;
        k->attention->single(&head, heads, sharpness, got[2], NULL);
        expect_same_bits("keys of rows", got[2], got[1], all);
    }
}
END_TEST

Suite *test_kernels_attention(void);
Suite *test_kernels_attention(void)
{
    Suite *suite = suite_create("kernels: attention");
    TCase *tests = tcase_create("attention");
    tcase_add_checked_fixture(tests, array_begin, array_end);
    tcase_add_loop_test(tests, single_equals_a_head_at_a_time, 0, CASES);
    suite_add_tcase(suite, tests);
    return suite;
}
