/* Logs that survive interruptions; see log.h. */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Copies the header and the lines up to `step`, leaving out what is no line of a step, and a last one that was cut
 * short. */
static bool keep_until(const char *path, const char *header, int64_t step, hw_error *err)
{
    hw_map map;
    hw_atomic file;
    if (!hw_map_open(&map, path, err)) return false;
    if (!hw_atomic_begin(&file, path, err)) {
        hw_map_close(&map);
        return false;
    }
    fprintf(file.stream, "%s\n", header);
    const char *at = (const char *)map.data, *end = at + map.size;
    for (bool first = true; at && at < end; first = false) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline) break;
        bool numbered = *at >= '0' && *at <= '9'; /* strtoll would look for a number in the lines behind it */
        if (!first && numbered && strtoll(at, NULL, 10) <= step) fwrite(at, 1, (size_t)(newline + 1 - at), file.stream);
        at = newline + 1;
    }
    hw_map_close(&map);
    return hw_atomic_commit(&file, err);
}

static bool begin(const char *path, const char *header, hw_error *err)
{
    hw_atomic file;
    if (!hw_atomic_begin(&file, path, err)) return false;
    fprintf(file.stream, "%s\n", header);
    return hw_atomic_commit(&file, err);
}

bool hw_log_open(hw_log *log, const char *path, const char *header, int64_t step, hw_error *err)
{
    snprintf(log->path, sizeof log->path, "%s", path);
    log->header = header;
    if (!(step > 0 && hw_file_exists(path) ? keep_until(path, header, step, err) : begin(path, header, err)))
        return false;
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0) return hw_fail(err, "%s: cannot be opened for writing: %s", path, strerror(errno));
    log->file = file;
    return true;
}

bool hw_log_line(hw_log *log, hw_error *err, const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    HW_CHECK(length >= 0 && length < (int)sizeof line - 1, "%s: a line of %d bytes", log->path, length);
    line[length++] = '\n';
    if (!hw_append_whole(log->file, log->path, line, (size_t)length, err)) return false;
    line[length - 1] = 0;
    return !log->events || hw_events_row(log->events, log->group, log->header, line, err);
}

bool hw_log_sync(hw_log *log, hw_error *err)
{
    if (fsync(log->file) == 0) return true;
    return hw_fail(err, "%s: cannot be written: %s", log->path, strerror(errno));
}

void hw_log_close(hw_log *log)
{
    if (log->file > 0) close(log->file);
    log->file = 0;
}
