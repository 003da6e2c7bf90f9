/* TensorBoard's event files, written by hand: three kinds of fields of three messages are all that is needed of
 * protocol buffers. See events.h for the format. */
#include "events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 8192, FRAME = 12, FRAME_END = 4 }; /* bytes of an event; before and behind it in its record */

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static void put_number(uint8_t *to, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(number >> (8 * i));
}

static uint64_t get_number(const uint8_t *from, int bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++) number |= (uint64_t)from[i] << (8 * i);
    return number;
}

/* CRC-32C (Castagnoli), masked as TFRecord files have it. */
static uint32_t checksum(const uint8_t *bytes, size_t size)
{
    uint32_t crc = ~UINT32_C(0);
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (crc & 1 ? UINT32_C(0x82F63B78) : 0);
    }
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xA282EAD8);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* A message while it is written. Fields have a number and a wire type, in one byte. */
typedef struct message {
    uint8_t bytes[MOST];
    size_t size;
} message;
enum {
    TIME = 1 << 3 | 1,
    STEP = 2 << 3,
    VERSION = 3 << 3 | 2,
    SUMMARY = 5 << 3 | 2, /* of an Event */
    VALUE = 1 << 3 | 2,   /* of a Summary */
    TAG = 1 << 3 | 2,
    SIMPLE = 2 << 3 | 5 /* of a Value */
};

static void add_varint(message *m, uint64_t number)
{
    for (; number >= 128; number >>= 7) m->bytes[m->size++] = (uint8_t)(number | 128);
    m->bytes[m->size++] = (uint8_t)number;
}

static void add_bytes(message *m, int field, const void *bytes, size_t size)
{
    HW_CHECK(m->size + size + 8 < MOST, "an event of more than %d bytes", MOST);
    m->bytes[m->size++] = (uint8_t)field;
    add_varint(m, size);
    memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static void begin_event(message *m, int64_t step)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    *m->bytes = TIME;
    put_number(m->bytes + 1, bits, 8);
    m->bytes[9] = STEP;
    m->size = 10;
    add_varint(m, (uint64_t)step);
}

static void add_value(message *summary, const char *group, const char *name, int length, float number)
{
    message value = {.size = 0};
    char tag[256];
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    int size = snprintf(tag, sizeof tag, "%s/%.*s", group, length, name);
    add_bytes(&value, TAG, tag, (size_t)size < sizeof tag ? (size_t)size : sizeof tag - 1);
    value.bytes[value.size++] = SIMPLE;
    put_number(value.bytes + value.size, bits, 4);
    add_bytes(summary, VALUE, value.bytes, value.size + 4);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static bool fail(const hw_events *e, int number, hw_error *err)
{
    return hw_fail(err, "%s: cannot be written: %s", e->path, strerror(number));
}

static bool write_record(hw_events *e, const message *m, hw_error *err)
{
    uint8_t record[FRAME + MOST + FRAME_END];
    size_t size = FRAME + m->size + FRAME_END;
    put_number(record, m->size, 8);
    put_number(record + 8, checksum(record, 8), 4);
    memcpy(record + FRAME, m->bytes, m->size);
    put_number(record + FRAME + m->size, checksum(m->bytes, m->size), 4);
    return hw_append_whole(e->file, e->path, record, size, err);
}

/* How many bytes from here on are a record of a step up to `step`; 0: none. Only what was written here is known. */
static size_t good_record(const uint8_t *at, size_t left, int64_t step)
{
    if (left < FRAME || checksum(at, 8) != get_number(at + 8, 4)) return 0;
    uint64_t size = get_number(at, 8), found = 0;
    if (size < 11 || size > MOST || left < FRAME + size + FRAME_END) return 0;
    const uint8_t *event = at + FRAME;
    if (checksum(event, size) != get_number(event + size, 4) || event[0] != TIME || event[9] != STEP) return 0;
    for (uint64_t i = 0; i < 10 && 10 + i < size; i++) {
        found |= (uint64_t)(event[10 + i] & 127) << (7 * i);
        if (event[10 + i] < 128) break;
    }
    return (int64_t)found <= step ? FRAME + size + FRAME_END : 0;
}

/* Where the records up to `step` end. */
static bool end_of(const char *path, int64_t step, off_t *end, hw_error *err)
{
    hw_map map;
    if (!hw_map_open(&map, path, err)) return false;
    size_t at = 0, size;
    while ((size = good_record(map.data + at, map.size - at, step))) at += size;
    hw_map_close(&map);
    *end = (off_t)at;
    return true;
}

bool hw_events_open(hw_events *e, const char *path, int64_t step, hw_error *err)
{
    off_t end = 0;
    snprintf(e->path, sizeof e->path, "%s", path);
    if (step > 0 && hw_file_exists(path) && !end_of(path, step, &end, err)) return false;
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666);
    if (file < 0) return hw_fail(err, "%s: cannot be opened for writing: %s", path, strerror(errno));
    e->file = file;
    if (ftruncate(file, end)) return fail(e, errno, err);
    if (end) return true;
    message first;
    begin_event(&first, 0);
    add_bytes(&first, VERSION, "brain.Event:2", 13);
    return write_record(e, &first, err);
}

bool hw_events_row(hw_events *e, const char *group, const char *header, const char *line, hw_error *err)
{
    char *end;
    message event, summary = {.size = 0};
    begin_event(&event, strtoll(line, NULL, 10));
    for (bool first = true; *line && *header; first = false) {
        size_t name = strcspn(header, "\t"), cell = strcspn(line, "\t");
        double number = strtod(line, &end);
        if (!first && cell && end == line + cell) add_value(&summary, group, header, (int)name, (float)number);
        header += name + (header[name] == '\t');
        line += cell + (line[cell] == '\t');
    }
    add_bytes(&event, SUMMARY, summary.bytes, summary.size);
    return write_record(e, &event, err);
}

bool hw_events_sync(hw_events *e, hw_error *err) { return e->file <= 0 || fsync(e->file) == 0 || fail(e, errno, err); }

void hw_events_close(hw_events *e)
{
    if (e->file > 0) close(e->file);
    e->file = 0;
}
