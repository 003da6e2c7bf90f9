/* Lines from plain and gzip files, pipes and standard input.
 *
 * One growing buffer holds what was read and not yet handed out; a line is handed out in place, so nothing is copied.
 * Reading is by read(2), because a pipe's first line must come out before the second was written, and gzip (RFC 1952,
 * any number of members) is told by its first two bytes. NUL bytes are text like any other. */
#include <headwise/base.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = 1 << 16 };

typedef enum state { OPEN, ENDED, FAILED } state;

struct hw_reader {
    char *path;                       /* as messages call it */
    int fd;
    state state;                      /* of what comes in; the buffer may hold lines still */
    hw_error failure;                 /* why, where FAILED; told after the lines before it */
    char *buffer;                     /* lines from start on; text up to end; no \n before searched */
    size_t start, searched, end, capacity;
    int64_t number;
    bool begun, gzip, between_members;
    int mark;                         /* the bytes of a byte order mark that was dropped from the last line read */
    z_stream stream;
    uint8_t *packed;                  /* gzip: BLOCK bytes as they stand in the file */
};

/* Waits where an input does not (standard input may be such, by whoever shares it). */
static bool again(int fd)
{
    struct pollfd input = {.fd = fd, .events = POLLIN};
    return errno == EINTR || (errno == EAGAIN && (poll(&input, 1, -1) > 0 || errno == EINTR));
}

/* Reads what is there, at least one byte; 0 at the end, -1 with errno. */
static ssize_t read_some(int fd, void *to, size_t size)
{
    ssize_t got;
    do got = read(fd, to, size);
    while (got < 0 && again(fd));
    return got;
}

static void fail(hw_reader *reader, const char *reason)
{
    reader->state = FAILED;
    hw_fail(&reader->failure, "%s: %s", reader->path, reason);
}

hw_reader *hw_reader_open(const char *path, hw_error *err)
{
    bool standard_input = !strcmp(path, "-");
    int fd = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    const char *reason = NULL;
    if (fd < 0 || fstat(fd, &status)) reason = strerror(errno);
    else if (S_ISDIR(status.st_mode)) reason = "it is a directory; a text file is needed";
    hw_reader *reader = reason ? NULL : calloc(1, sizeof *reader);
    if (!reader) {
        if (fd >= 0 && !standard_input) close(fd);
        hw_fail(err, "%s: cannot be read: %s", standard_input ? "standard input" : path,
                reason ? reason : "out of memory");
        return NULL;
    }
    reader->fd = fd;
    reader->path = strdup(standard_input ? "standard input" : path);
    reader->capacity = BLOCK;
    reader->buffer = malloc(reader->capacity + 1);
    if (!reader->path || !reader->buffer) {
        hw_reader_close(reader);
        hw_fail(err, "%s: cannot be read: out of memory", path);
        return NULL;
    }
    return reader;
}

void hw_reader_close(hw_reader *reader)
{
    if (!reader) return;
    if (reader->gzip) inflateEnd(&reader->stream);
    if (reader->fd != STDIN_FILENO) close(reader->fd);
    free(reader->packed);
    free(reader->buffer);
    free(reader->path);
    free(reader);
}

/* Makes room for at least one more byte after end. What is there has no end of a line: it is asked for only then. */
static bool make_room(hw_reader *reader)
{
    if (reader->end - reader->start >= HW_LONGEST_LINE) {
        reader->state = FAILED;
        hw_fail(&reader->failure, "%s:%lld: the line has more than %d MiB; a text with a sentence a line is expected",
                reader->path, (long long)reader->number + 1, HW_LONGEST_LINE >> 20);
        return false;
    }
    if (reader->start > 0 && reader->end - reader->start <= reader->capacity / 2) {
        memmove(reader->buffer, reader->buffer + reader->start, reader->end - reader->start);
        reader->searched -= reader->start;
        reader->end -= reader->start;
        reader->start = 0;
    }
    if (reader->end < reader->capacity) return true;
    char *larger = reader->capacity > SIZE_MAX / 4 ? NULL : realloc(reader->buffer, reader->capacity * 2 + 1);
    if (!larger) {
        fail(reader, "a line is too long for this machine's memory");
        return false;
    }
    reader->buffer = larger;
    reader->capacity *= 2;
    return true;
}

static bool begin_gzip(hw_reader *reader)
{
    reader->packed = malloc(BLOCK);
    if (!reader->packed || inflateInit2(&reader->stream, 16 + MAX_WBITS) != Z_OK) {
        fail(reader, "cannot be read: out of memory");
        return false;
    }
    reader->gzip = true;
    reader->stream.avail_in = (uInt)reader->end;
    reader->stream.next_in = memcpy(reader->packed, reader->buffer, reader->end);
    reader->end = 0;
    return true;
}

/* The first block decides: gzip or text. */
static void begin(hw_reader *reader)
{
    reader->begun = true;
    ssize_t got = 1;
    while (reader->end == 0 || (reader->end == 1 && reader->buffer[0] == '\x1f')) {
        got = read_some(reader->fd, reader->buffer + reader->end, BLOCK - reader->end);
        if (got <= 0) break;
        reader->end += (size_t)got;
    }
    size_t length = strlen(reader->path);
    if (got < 0) fail(reader, strerror(errno));
    else if (reader->end >= 2 && !memcmp(reader->buffer, "\x1f\x8b", 2)) begin_gzip(reader);
    else if (length > 3 && !strcmp(reader->path + length - 3, ".gz")) {
        reader->end = 0; /* none of its lines */
        fail(reader, "it is no gzip file, in spite of its name");
    } else if (got == 0) {
        reader->state = ENDED;
    }
}

/* Inflates what there is, and reads more before that where nothing is. */
static void fill_gzip(hw_reader *reader)
{
    z_stream *z = &reader->stream;
    if (!z->avail_in) {
        ssize_t got = read_some(reader->fd, reader->packed, BLOCK);
        if (got < 0) fail(reader, strerror(errno));
        else if (got == 0 && reader->between_members) reader->state = ENDED;
        else if (got == 0) fail(reader, "the gzip data ends too early; the file was cut off");
        if (got <= 0) return;
        z->next_in = reader->packed;
        z->avail_in = (uInt)got;
    }
    if (reader->between_members) {
        for (; z->avail_in && !*z->next_in; z->avail_in--) z->next_in++; /* padding */
        if (!z->avail_in) return;
        inflateReset(z);
        reader->between_members = false;
    }
    size_t room = reader->capacity - reader->end;
    uInt most = room < 1 << 30 ? (uInt)room : 1 << 30;
    z->avail_out = most;
    z->next_out = (Bytef *)reader->buffer + reader->end;
    int code = inflate(z, Z_NO_FLUSH);
    reader->end += most - z->avail_out;
    if (code == Z_STREAM_END) reader->between_members = true;
    else if (code != Z_OK && code != Z_BUF_ERROR) fail(reader, "the gzip data is corrupt");
}

/* Brings at least one more byte into the buffer, or changes the state. */
static void fill(hw_reader *reader)
{
    if (!reader->begun) {
        begin(reader);
    } else if (make_room(reader)) {
        if (reader->gzip) {
            fill_gzip(reader);
            return;
        }
        ssize_t got = read_some(reader->fd, reader->buffer + reader->end, reader->capacity - reader->end);
        if (got > 0) reader->end += (size_t)got;
        else if (got == 0) reader->state = ENDED;
        else fail(reader, strerror(errno));
    }
}

/* The length of the first line in the buffer, or -1 where its end is not there yet. */
static ptrdiff_t find_line(hw_reader *reader)
{
    char *end = memchr(reader->buffer + reader->searched, '\n', reader->end - reader->searched);
    reader->searched = end ? (size_t)(end - reader->buffer) : reader->end;
    return end ? (ptrdiff_t)(reader->searched - reader->start) : -1;
}

int hw_reader_line(hw_reader *reader, char **line, size_t *length, hw_error *err)
{
    ptrdiff_t found;
    while ((found = find_line(reader)) < 0 && reader->state == OPEN) fill(reader);
    size_t size = found < 0 ? reader->end - reader->start : (size_t)found;
    if (found < 0 && reader->state == FAILED) {
        hw_fail(err, "%s", reader->failure.message);
        return -1;
    }
    if (found < 0 && size == 0) return 0;
    char *text = reader->buffer + reader->start;
    reader->start = reader->searched = reader->start + size + (found >= 0);
    reader->mark = ++reader->number == 1 && size >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0;
    text += reader->mark;
    size -= (size_t)reader->mark;
    if (found >= 0 && size > 0 && text[size - 1] == '\r') size--;
    text[size] = 0;
    *line = text;
    *length = size;
    return 1;
}

int64_t hw_reader_number(const hw_reader *reader) { return reader->number; }

int64_t hw_reader_byte(const hw_reader *reader, int64_t at) { return at + reader->mark + 1; }

bool hw_reader_waiting(hw_reader *reader)
{
    while (find_line(reader) < 0 && reader->state == OPEN) {
        struct pollfd input = {.fd = reader->fd, .events = POLLIN};
        if (!(reader->gzip && reader->stream.avail_in) && poll(&input, 1, 0) == 0) return true;
        fill(reader);
    }
    return false;
}
