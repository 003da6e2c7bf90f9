/* Errors, nearest names, arenas, Philox, UTF-8. */
#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <headwise/base.h>

/* Keeps an expected abort's message off the screen. */
static void hush(void)
{
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    close(null);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

START_TEST(messages)
{
    hw_error err;
    ck_assert(!hw_fail(&err, "%s is %d", "x", 3));
    ck_assert_str_eq(err.message, "x is 3");
    ck_assert(!hw_fail_in(&err, "%s: ", "a/b"));
    ck_assert_str_eq(err.message, "a/b: x is 3");
    hw_fail(&err, "<%s>", err.message);
    ck_assert_str_eq(err.message, "<a/b: x is 3>");
    ck_assert(!hw_fail(NULL, "nobody listens"));
    ck_assert(!hw_fail_in(NULL, "nobody listens"));
}
END_TEST

START_TEST(long_messages_end_in_dots)
{
    char text[5000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    hw_error err;
    hw_fail(&err, "%s", text);
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
    ck_assert_str_eq(err.message + sizeof err.message - 5, "a...");
}
END_TEST

START_TEST(failed_check_aborts)
{
    hush();
    HW_CHECK(1 + 1 == 3, "arithmetic is %s", "broken");
}
END_TEST

static const char *name_at(int i, const void *names) { return ((const char *const *)names)[i]; }

START_TEST(nearest_names)
{
    static const char *const names[] = {"train", "translate", "heads", "model.heads", "x", "id"};
    static const struct {
        const char *word, *nearest;
    } cases[] = {
        {"train", "train"},       {"trian", "train"},         {"tranlsate", "translate"}, {"translat", "translate"},
        {"head", "heads"},        {"headss", "heads"},        {"model.haeds", "model.heads"},
        {"", "x"},                {"zzzzzz", NULL},           {"t", "x"},                 {"completely", NULL},
        {"di", "id"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *nearest = hw_nearest(cases[i].word, 6, name_at, names);
        ck_assert_msg(cases[i].nearest ? nearest && !strcmp(nearest, cases[i].nearest) : !nearest, "%s: %s",
                      cases[i].word, nearest ? nearest : "none");
    }
    ck_assert_ptr_null(hw_nearest("train", 0, name_at, names));
    char longer[200];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    const char *one = longer;
    ck_assert_ptr_null(hw_nearest("aa", 1, name_at, &one));
}
END_TEST

/* ---- arenas ------------------------------------------------------------------------------------------------------ */

START_TEST(blocks_are_aligned_and_apart)
{
    hw_arena *arena = hw_arena_new(0);
    uint8_t *blocks[200];
    for (size_t i = 0; i < 200; i++) {
        blocks[i] = hw_arena_alloc(arena, i * 37);
        ck_assert_uint_eq((uintptr_t)blocks[i] % 64, 0);
        memset(blocks[i], (int)i, i * 37);
    }
    for (size_t i = 0; i < 200; i++) {
        size_t same = 0;
        while (same < i * 37 && blocks[i][same] == i) same++;
        ck_assert_uint_eq(same, i * 37);
    }
    ck_assert_ptr_ne(hw_arena_alloc(arena, 0), hw_arena_alloc(arena, 0));
    const int *zeros = hw_arena_calloc(arena, 1000, sizeof *zeros);
    int nonzero = 0;
    for (int i = 0; i < 1000; i++) nonzero += zeros[i] != 0;
    ck_assert_int_eq(nonzero, 0);
    ck_assert_mem_eq(hw_arena_copy(arena, "abc", 4), "abc", 4);
    ck_assert_str_eq(hw_arena_string(arena, "%s-%05d", "x", 42), "x-00042");
    hw_arena_free(arena);
}
END_TEST

START_TEST(steady_steps_never_ask_for_memory)
{
    hw_arena *arena = hw_arena_new(0);
    for (int step = 0; step < 3; step++) {
        for (size_t i = 1; i < 300; i++) memset(hw_arena_alloc(arena, i * 1000), 1, i * 1000);
        hw_arena_reset(arena);
    }
    int64_t mallocs = hw_arena_mallocs(arena);
    ck_assert_int_gt(mallocs, 1);
    size_t peak = hw_arena_peak(arena);
    for (int step = 0; step < 10; step++) {
        for (size_t i = 299; i > 0; i--) memset(hw_arena_alloc(arena, i * 1000), 1, i * 1000);
        ck_assert_uint_eq(hw_arena_used(arena), peak);
        hw_arena_reset(arena);
        ck_assert_uint_eq(hw_arena_used(arena), 0);
    }
    hw_arena_alloc(arena, 100);
    ck_assert_uint_eq(hw_arena_used(arena), 128);
    ck_assert_int_eq(hw_arena_mallocs(arena), mallocs);
    ck_assert_uint_eq(hw_arena_peak(arena), peak);
    hw_arena_free(arena);
}
END_TEST

/* Blocks that come and go within a step find room of their own, and after a reset all of it is one piece. */
START_TEST(marks_in_steps_never_ask_for_memory)
{
    hw_arena *arena = hw_arena_new(0);
    int64_t mallocs = 0;
    for (int step = 0; step < 10; step++) {
        hw_arena_alloc(arena, 60000);
        for (int part = 0; part < 5; part++) {
            hw_arena_mark mark = hw_arena_begin(arena);
            memset(hw_arena_alloc(arena, 50000), 1, 50000);
            memset(hw_arena_alloc(arena, 3000), 1, 3000);
            hw_arena_end(arena, mark);
        }
        if (step == 0) ck_assert_int_le(hw_arena_mallocs(arena), 2);
        if (step == 1) mallocs = hw_arena_mallocs(arena);
        hw_arena_reset(arena);
    }
    ck_assert_int_eq(hw_arena_mallocs(arena), mallocs);
    hw_arena_free(arena);
}
END_TEST

START_TEST(reserved_memory_is_used)
{
    hw_arena *arena = hw_arena_new(1 << 20);
    ck_assert_int_eq(hw_arena_mallocs(arena), 1);
    for (int i = 0; i < 16; i++) hw_arena_alloc(arena, 1 << 16);
    ck_assert_int_eq(hw_arena_mallocs(arena), 1);
    hw_arena_alloc(arena, 1);
    ck_assert_int_eq(hw_arena_mallocs(arena), 2);
    hw_arena_free(arena);
    hw_arena_free(NULL);
}
END_TEST

START_TEST(marks_give_back)
{
    hw_arena *arena = hw_arena_new(0);
    char *kept = hw_arena_string(arena, "kept");
    size_t used = hw_arena_used(arena);
    int64_t mallocs = 0;
    for (int round = 0; round < 20; round++) {
        hw_arena_mark mark = hw_arena_begin(arena);
        for (int i = 0; i < 50; i++) memset(hw_arena_alloc(arena, 10000), 7, 10000);
        hw_arena_end(arena, mark);
        ck_assert_uint_eq(hw_arena_used(arena), used);
        if (round == 5) mallocs = hw_arena_mallocs(arena);
    }
    ck_assert_int_gt(mallocs, 0);
    ck_assert_int_eq(hw_arena_mallocs(arena), mallocs);
    ck_assert_str_eq(kept, "kept");
    hw_arena_mark empty = hw_arena_begin(arena);
    hw_arena_end(arena, empty);
    ck_assert_uint_eq(hw_arena_used(arena), used);
    hw_arena_free(arena);

    arena = hw_arena_new(0);
    hw_arena_mark start = hw_arena_begin(arena);
    hw_arena_alloc(arena, 100);
    hw_arena_end(arena, start);
    ck_assert_uint_eq(hw_arena_used(arena), 0);
    memset(hw_arena_alloc(arena, 100), 1, 100);
    hw_arena_free(arena);
}
END_TEST

static hw_arena *volatile lost; /* where an abort ends a test, what it has is not lost to valgrind */

START_TEST(huge_alloc_aborts)
{
    hush();
    hw_arena_alloc(lost = hw_arena_new(0), SIZE_MAX - 10);
}
END_TEST

START_TEST(huge_calloc_aborts)
{
    hush();
    hw_arena_calloc(lost = hw_arena_new(0), (size_t)1 << 40, (size_t)1 << 40);
}
END_TEST

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

/* The known answers for philox4x32-10 that Random123 publishes (kat_vectors). */
START_TEST(philox_known_answers)
{
    static const struct {
        uint64_t key;
        uint32_t counter[4], out[4];
    } cases[] = {
        {0, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX,
         {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822,
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        hw_philox(cases[i].key, cases[i].counter, out);
        ck_assert_mem_eq(out, cases[i].out, sizeof out);
    }
}
END_TEST

START_TEST(sequences)
{
    hw_random a = hw_random_new(7, 1), b = hw_random_new(7, 1), other = hw_random_new(7, 2);
    uint32_t block[4], counter[4] = {0, 0, 1, 0};
    hw_philox(7, counter, block);
    int same = 0;
    for (int i = 0; i < 100; i++) {
        uint32_t bits = hw_random_bits(&a);
        if (i < 4) ck_assert_uint_eq(bits, block[i]);
        ck_assert_uint_eq(bits, hw_random_bits(&b));
        same += bits == hw_random_bits(&other);
    }
    ck_assert_int_eq(same, 0);
    hw_random saved = a;
    double next = hw_random_uniform(&a);
    ck_assert_double_eq(hw_random_uniform(&saved), next);
}
END_TEST

START_TEST(distributions)
{
    enum { N = 60000 };
    hw_random random = hw_random_new(1, 0);
    double sum = 0, square = 0, fourth = 0, uniform = 0;
    int counts[6] = {0};
    int outside = 0;
    for (int i = 0; i < N; i++) {
        double u = hw_random_uniform(&random), x = hw_random_normal(&random);
        outside += !(u >= 0 && u < 1);
        uniform += u;
        sum += x;
        square += x * x;
        fourth += x * x * x * x;
        counts[hw_random_below(&random, 6)]++;
    }
    ck_assert_int_eq(outside, 0);
    ck_assert_double_eq_tol(uniform / N, 0.5, 0.005);
    ck_assert_double_eq_tol(sum / N, 0, 0.02);
    ck_assert_double_eq_tol(square / N, 1, 0.03);
    ck_assert_double_eq_tol(fourth / N, 3, 0.2);
    for (int i = 0; i < 6; i++) ck_assert_int_lt(abs(counts[i] - N / 6), 400); /* four deviations */
    ck_assert_uint_eq(hw_random_below(&random, 1), 0);
    int upper = 0;
    for (int i = 0; i < 1000; i++) upper += hw_random_below(&random, (uint64_t)3 << 62) >= (uint64_t)1 << 63;
    ck_assert_int_lt(abs(upper - 333), 60); /* a biased draw gives 500 or 250 */
}
END_TEST

START_TEST(draws_below_zero_abort)
{
    hush();
    hw_random random = hw_random_new(1, 0);
    hw_random_below(&random, 0);
}
END_TEST

/* ---- UTF-8 ------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *bytes;
    size_t size;
    int32_t codepoint; /* -1: malformed */
} utf8_cases[] = {
#define BYTES(text) text, sizeof text - 1
    {BYTES("a"), 'a'},
    {BYTES("\0"), 0},
    {BYTES("\x7f"), 0x7f},
    {BYTES("\xc2\x80"), 0x80},
    {BYTES("\xc3\xa9"), 0xe9},
    {BYTES("\xdf\xbf"), 0x7ff},
    {BYTES("\xe0\xa0\x80"), 0x800},
    {BYTES("\xe2\x80\xa8"), 0x2028},
    {BYTES("\xed\x9f\xbf"), 0xd7ff},
    {BYTES("\xee\x80\x80"), 0xe000},
    {BYTES("\xef\xbf\xbf"), 0xffff},
    {BYTES("\xf0\x90\x80\x80"), 0x10000},
    {BYTES("\xf0\x9f\x98\x80"), 0x1f600},
    {BYTES("\xf4\x8f\xbf\xbf"), 0x10ffff},
    {BYTES("\x80"), -1},             /* continuation alone */
    {BYTES("\xbf"), -1},
    {BYTES("\xc0\x80"), -1},         /* overlong */
    {BYTES("\xc1\xbf"), -1},
    {BYTES("\xe0\x80\x80"), -1},
    {BYTES("\xe0\x9f\xbf"), -1},
    {BYTES("\xf0\x80\x80\x80"), -1},
    {BYTES("\xf0\x8f\xbf\xbf"), -1},
    {BYTES("\xed\xa0\x80"), -1},     /* surrogates */
    {BYTES("\xed\xbf\xbf"), -1},
    {BYTES("\xf4\x90\x80\x80"), -1}, /* beyond U+10FFFF */
    {BYTES("\xf5\x80\x80\x80"), -1},
    {BYTES("\xff"), -1},
    {BYTES("\xc3"), -1},             /* cut off */
    {BYTES("\xe2\x80"), -1},
    {BYTES("\xf0\x9f\x98"), -1},
    {BYTES("\xc3" "a"), -1},         /* continuation missing */
    {BYTES("\xe2\x80" "a"), -1},
    {BYTES("\xf0\x9f\x98" "a"), -1},
    {BYTES(""), -1},
};

START_TEST(utf8)
{
    const char *text = utf8_cases[_i].bytes;
    size_t size = utf8_cases[_i].size;
    int32_t codepoint = utf8_cases[_i].codepoint;
    int bytes = 0;
    ck_assert_int_eq(hw_utf8_decode(text, size, &bytes), codepoint);
    ck_assert_int_eq(bytes, codepoint < 0 ? 1 : (int)size);
    ck_assert_int_eq(hw_utf8_invalid(text, size), codepoint < 0 && size ? 0 : -1);
    char line[64];
    memset(line, 'x', sizeof line);
    memcpy(line + 37, text, size);
    ck_assert_int_eq(hw_utf8_invalid(line, sizeof line), codepoint < 0 && size ? 37 : -1);
    if (codepoint < 0) return;
    char encoded[4];
    ck_assert_int_eq(hw_utf8_encode(codepoint, encoded), (int)size);
    ck_assert_mem_eq(encoded, text, size);
}
END_TEST

START_TEST(utf8_round_trips)
{
    int wrong = 0;
    for (int32_t c = 0; c <= 0x10ffff; c++) {
        if (c == 0xd800) c = 0xe000;
        char text[4];
        int bytes, size = hw_utf8_encode(c, text);
        wrong += hw_utf8_decode(text, (size_t)size, &bytes) != c || bytes != size;
    }
    ck_assert_int_eq(wrong, 0);
    static const int32_t none[] = {0xd800, 0xdfff, 0x110000, -1};
    for (int i = 0; i < 4; i++) {
        char text[4];
        ck_assert_int_eq(hw_utf8_encode(none[i], text), 3);
        ck_assert_mem_eq(text, "\xef\xbf\xbd", 3);
    }
}
END_TEST

START_TEST(clock_never_runs_back)
{
    double before = hw_seconds();
    for (int i = 0; i < 1000; i++) {
        double now = hw_seconds();
        ck_assert(now >= before);
        before = now;
    }
}
END_TEST

Suite *test_base(void);
Suite *test_base(void)
{
    Suite *suite = suite_create("base");
    TCase *t = tcase_create("errors");
    tcase_add_test(t, messages);
    tcase_add_test(t, long_messages_end_in_dots);
    tcase_add_test_raise_signal(t, failed_check_aborts, SIGABRT);
    tcase_add_test(t, nearest_names);
    suite_add_tcase(suite, t);
    t = tcase_create("arena");
    tcase_add_test(t, blocks_are_aligned_and_apart);
    tcase_add_test(t, steady_steps_never_ask_for_memory);
    tcase_add_test(t, marks_in_steps_never_ask_for_memory);
    tcase_add_test(t, reserved_memory_is_used);
    tcase_add_test(t, marks_give_back);
    tcase_add_test_raise_signal(t, huge_alloc_aborts, SIGABRT);
    tcase_add_test_raise_signal(t, huge_calloc_aborts, SIGABRT);
    suite_add_tcase(suite, t);
    t = tcase_create("random");
    tcase_add_test(t, philox_known_answers);
    tcase_add_test(t, sequences);
    tcase_add_test(t, distributions);
    tcase_add_test_raise_signal(t, draws_below_zero_abort, SIGABRT);
    suite_add_tcase(suite, t);
    t = tcase_create("utf8");
    tcase_add_loop_test(t, utf8, 0, sizeof utf8_cases / sizeof *utf8_cases);
    tcase_add_test(t, utf8_round_trips);
    tcase_add_test(t, clock_never_runs_back);
    suite_add_tcase(suite, t);
    return suite;
}
