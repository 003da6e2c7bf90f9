/* TensorBoard's file holds the figures of the logs, framed as its readers want it, once for each step whatever happened
 * on the way. The reader here is written from the format's description and shares nothing with what writes. */
#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "support_files.h"
#include "support_train.h"
#include "train/events.h"

Suite *test_events(void);

#define NAME "events.out.tfevents.headwise"

static hw_arena *arena;
static train_call call;

static void begin(void)
{
    scratch_begin_in_memory();
    arena = hw_arena_new(0);
    train_corpus("data", NULL);
    call = (train_call){0};
}

static void end(void)
{
    hw_arena_free(arena);
    scratch_end();
}

/* ---- the reader -------------------------------------------------------------------------------------------------- */

/* CRC-32C by a table, most significant bit first on reflected bits, so that it is not the writer's loop. */
static uint32_t reflect(uint32_t x, int bits)
{
    uint32_t y = 0;
    for (int i = 0; i < bits; i++) y |= (x >> i & 1) << (bits - 1 - i);
    return y;
}
static uint32_t crc32c(const unsigned char *bytes, size_t size)
{
    uint32_t crc = 0xFFFFFFFF;
    for (size_t i = 0; i < size; i++) {
        crc ^= reflect(bytes[i], 8) << 24;
        for (int k = 0; k < 8; k++) crc = crc << 1 ^ (crc & 0x80000000 ? 0x1EDC6F41 : 0);
    }
    return reflect(~crc, 32);
}

static uint32_t masked(const unsigned char *bytes, size_t size)
{
    uint32_t crc = crc32c(bytes, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static uint32_t four(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t varint(const unsigned char **at)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        value |= (uint64_t)(**at & 127) << shift;
        if (*(*at)++ < 128) return value;
    }
}

/* A field of a message: its number, and its bytes; numbers of fixed width have 8 or 4. False at the end. */
typedef struct field {
    int number, type;
    const unsigned char *bytes;
    uint64_t size; /* or the value of a varint */
} field;
static bool next_field(const unsigned char **at, const unsigned char *stop, field *f)
{
    if (*at == stop) return false;
    uint64_t key = varint(at);
    *f = (field){.number = (int)(key >> 3), .type = (int)(key & 7)};
    switch (f->type) {
    case 0:
        f->size = varint(at);
        return true;
    case 1:
        f->size = 8;
        break;
    case 2:
        f->size = varint(at);
        break;
    case 5:
        f->size = 4;
        break;
    default:
        ck_abort_msg("wire type %d", f->type);
    }
    f->bytes = *at;
    *at += f->size;
    ck_assert(*at <= stop);
    return true;
}

/* A value of the file as "step tag number", the times in a list of their own. */
typedef struct board {
    int events, values;
    double first_time, last_time;
    char *lines[4096];
} board;

static void read_value(board *b, int64_t step, field value)
{
    const unsigned char *at = value.bytes, *stop = at + value.size;
    const char *tag = NULL;
    float number = 0;
    for (field f; next_field(&at, stop, &f);) {
        if (f.number == 1) tag = hw_arena_string(arena, "%.*s", (int)f.size, (const char *)f.bytes);
        if (f.number == 2) memcpy(&number, f.bytes, 4);
        ck_assert_int_eq(f.type, f.number == 1 ? 2 : 5);
    }
    ck_assert(tag && b->values < 4096);
    if (strncmp(tag, "times/", 6))
        b->lines[b->values++] = hw_arena_string(arena, "%lld %s %.6g", (long long)step, tag, (double)number);
}

static void read_event(board *b, const unsigned char *at, size_t size)
{
    const unsigned char *stop = at + size;
    int64_t step = 0;
    double time = 0;
    for (field f; next_field(&at, stop, &f);) {
        if (f.number == 1) memcpy(&time, f.bytes, 8);
        if (f.number == 2) step = (int64_t)f.size;
        if (f.number == 3) ck_assert(b->events == 0 && f.size == 13 && !memcmp(f.bytes, "brain.Event:2", 13));
        if (f.number == 5) {
            const unsigned char *in = f.bytes, *out = in + f.size;
            for (field value; next_field(&in, out, &value);) read_value(b, step, value);
        }
    }
    ck_assert(time >= b->last_time && time > 1e9);
    if (!b->events++) b->first_time = time;
    b->last_time = time;
}

static board *read_board(const char *directory)
{
    size_t size;
    board *b = hw_arena_calloc(arena, 1, sizeof *b);
    char *bytes = scratch_read(scratch_path(hw_arena_string(arena, "%s/" NAME, directory)), &size);
    ck_assert_ptr_nonnull(bytes);
    const unsigned char *at = (const unsigned char *)bytes, *stop = at + size;
    while (at < stop) {
        ck_assert(stop - at >= 16);
        size_t length = four(at);
        ck_assert_uint_eq(four(at + 4), 0);
        ck_assert_uint_eq(four(at + 8), masked(at, 8));
        ck_assert(at + 12 + length + 4 <= stop);
        ck_assert_uint_eq(four(at + 12 + length), masked(at + 12, length));
        read_event(b, at + 12, length);
        at += 12 + length + 4;
    }
    free(bytes);
    return b;
}

START_TEST(the_reader_knows_its_checksum)
{
    ck_assert_uint_eq(crc32c((const unsigned char *)"123456789", 9), 0xE3069283); /* RFC 3720's polynomial */
    unsigned char zeros[32] = {0};
    ck_assert_uint_eq(crc32c(zeros, 32), 0x8A9136AA); /* RFC 3720, appendix B.4 */
}
END_TEST

/* ---- what stands in it ------------------------------------------------------------------------------------------- */

/* The numbers of a log, as "step GROUP/NAME number", in its order. */
static int read_log(const char *path, const char *group, char **lines)
{
    char *text = scratch_read(scratch_path(path), NULL), *place = NULL, *names[32];
    int columns = 0, count = 0;
    for (char *line = strtok_r(text, "\n", &place); line; line = strtok_r(NULL, "\n", &place)) {
        char *inner = NULL, *end;
        int column = 0;
        const char *step = line;
        for (char *cell = strtok_r(line, "\t", &inner); cell; cell = strtok_r(NULL, "\t", &inner), column++) {
            double number = strtod(cell, &end);
            if (!columns || line == text)
                names[columns++] = hw_arena_string(arena, "%s", cell);
            else if (column && !*end)
                lines[count++] =
                    hw_arena_string(arena, "%s %s/%s %.6g", step, group, names[column], (double)(float)number);
        }
    }
    free(text);
    return count;
}

static bool among(char *const *lines, int count, const char *line)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(lines[i], line)) return true;
    return false;
}

START_TEST(it_holds_the_figures_of_the_logs)
{
    train_whole(train_config(arena, "m", "training.tensorboard=true;training.head_diversity.kind=output"), 2);
    const board *b = read_board("m");
    char *lines[2048];
    int count = read_log("m/train.tsv", "train", lines);
    count += read_log("m/valid.tsv", "valid", lines + count);
    ck_assert_int_eq(b->values, count);
    for (int i = 0; i < count; i++) ck_assert_msg(among(b->lines, b->values, lines[i]), "%s", lines[i]);
    ck_assert(among(b->lines, b->values, "14 valid/best 1") || among(b->lines, b->values, "14 valid/best 0"));
}
END_TEST

/* Stopped, killed with lines beyond the checkpoint and half a record, or switched on late: no step stands twice. */
START_TEST(a_run_that_goes_on_repeats_no_step)
{
    const hw_config *whole = train_config(arena, "whole", "training.tensorboard=true"),
                    *parts = train_config(arena, "parts", "training.tensorboard=true");
    size_t size;
    train_whole(whole, 2);
    train_until(&call, parts, 6);
    train_until(&call, parts, 9);
    char *bytes = scratch_read(scratch_path("whole/" NAME), &size);
    scratch_write("parts/" NAME, bytes, size - 7);
    free(bytes);
    train_until(&call, parts, 0);
    const board *a = read_board("whole"), *b = read_board("parts");
    ck_assert_int_eq(a->values, b->values);
    for (int i = 0; i < a->values; i++) ck_assert_str_eq(a->lines[i], b->lines[i]);
}
END_TEST

static const char *const damaged[] = {"", "x", "no events at all, but longer than a frame would be ..............."};

START_TEST(what_is_no_such_file_begins_anew)
{
    train_until(&call, train_config(arena, "m", ""), 9);
    ck_assert(!hw_file_exists(scratch_path("m/" NAME)));
    scratch_text("m/" NAME, damaged[_i]);
    train_until(&call, train_config(arena, "m", "training.tensorboard=true"), 0);
    const board *b = read_board("m");
    ck_assert_int_gt(b->values, 0);
    for (int i = 0; i < b->values; i++) ck_assert_int_gt(atoi(b->lines[i]), 9);
}
END_TEST

START_TEST(it_changes_nothing_else)
{
    train_whole(train_config(arena, "with", "training.tensorboard=true"), 1);
    train_whole(train_config(arena, "without", ""), 1);
    ck_assert_int_eq(remove(scratch_path("with/" NAME)), 0);
    same_directories(scratch_path("with"), scratch_path("without"));
    call = (train_call){.overwrite = true, .stop_after = 1};
    scratch_text("without/" NAME, "of a run before");
    train_run(&call, train_config(arena, "without", ""));
    ck_assert(!hw_file_exists(scratch_path("without/" NAME)));
}
END_TEST

static void limit_files(rlim_t bytes)
{
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}), 0);
}

static off_t size_of(const char *path)
{
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_size;
}

/* A limit on the size of files takes a few bytes of a record, as a disk that fills up does: none must stay, since what
 * comes behind them could not be read. */
START_TEST(a_full_disk_keeps_no_piece_of_a_record)
{
    static const char header[] = "step\tloss", *const lines[] = {"1\t0.5", "2\t0.25", "3\t0.125"};
    hw_events e = {0};
    hw_error err = {""};
    ck_assert_int_eq(mkdir(scratch_path("m"), 0777), 0);
    const char *path = scratch_path("m/" NAME);
    ck_assert_msg(hw_events_open(&e, path, 0, &err) && hw_events_row(&e, "train", header, lines[0], &err), "%s",
                  err.message);
    off_t size = size_of(path);
    for (rlim_t more = 0; more < 30; more += 7) {
        limit_files((rlim_t)size + more);
        ck_assert(!hw_events_row(&e, "train", header, lines[1], &err));
        ck_assert_str_eq(err.message, hw_arena_string(arena, "%s: cannot be written: File too large", path));
        ck_assert_int_eq(size_of(path), size);
    }
    limit_files(RLIM_INFINITY);
    ck_assert_msg(hw_events_row(&e, "train", header, lines[2], &err), "%s", err.message);
    hw_events_close(&e);
    const board *b = read_board("m");
    ck_assert_int_eq(b->values, 2);
    ck_assert_str_eq(b->lines[1], "3 train/loss 0.125");
}
END_TEST

Suite *test_events(void)
{
    Suite *s = suite_create("events");
    TCase *tc = tcase_create("events");
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, the_reader_knows_its_checksum);
    tcase_add_test(tc, it_holds_the_figures_of_the_logs);
    tcase_add_test(tc, a_run_that_goes_on_repeats_no_step);
    tcase_add_loop_test(tc, what_is_no_such_file_begins_anew, 0, sizeof damaged / sizeof *damaged);
    tcase_add_test(tc, it_changes_nothing_else);
    tcase_add_test(tc, a_full_disk_keeps_no_piece_of_a_record);
    suite_add_tcase(s, tc);
    return s;
}
