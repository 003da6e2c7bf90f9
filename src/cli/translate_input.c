/* What headwise translate reads: lines, and beside them what their translations begin with.
 *
 * Lines are read until a window is full or the input pauses, so a million of them take the memory of a window, and
 * whoever types one gets its translation at once. Bytes that are not UTF-8 are read as U+FFFD, with one warning. */
#include "cli/translate.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* The line with U+FFFD for every byte that is not UTF-8. */
static hw_text mend(hw_translate_input *in, const char *path, const hw_reader *reader, hw_text line, int64_t bad)
{
    if (!in->warned)
        hw_cli_say(
            "%s:%lld: byte %lld is 0x%02X, which is not valid UTF-8; it is read as U+FFFD, and so are all like it",
            path, (long long)hw_reader_number(reader), (long long)bad + 1, (unsigned)(unsigned char)line.text[bad]);
    in->warned = true;
    char *out = hw_arena_alloc(in->arena, 3 * line.bytes + 1);
    return (hw_text){out, hw_utf8_mend(line.text, line.bytes, out)};
}

static int read_one(hw_translate_input *in, const char *path, hw_reader *reader, hw_text *line, hw_error *err)
{
    char *text;
    int got = hw_reader_line(reader, &text, &line->bytes, err);
    if (got <= 0) return got;
    line->text = text;
    int64_t bad = hw_utf8_invalid(text, line->bytes);
    if (bad < 0)
        line->text = hw_arena_copy(in->arena, text, line->bytes + 1);
    else
        *line = mend(in, path, reader, *line, bad);
    return 1;
}

/* The prefix of the line that was just read; none where there are fewer, which is told at the end. */
static int read_prefix(hw_translate_input *in, hw_text *prefix, hw_error *err)
{
    *prefix = (hw_text){0};
    if (in->prefixes_ended) return 1;
    int got = read_one(in, in->prefix_path, in->prefix_reader, prefix, err);
    in->prefixes_ended = got == 0;
    return got < 0 ? got : 1;
}

int hw_translate_read(hw_translate_input *in, hw_error *err)
{
    hw_arena_reset(in->arena);
    in->count = 0;
    for (int64_t total = 0; in->count < in->window && total < in->window_bytes; in->count++) {
        if (hw_reader_waiting(in->reader)) {
            if (in->count) return 1;
            if (in->prompt) fputs("> ", stderr);
        }
        hw_text *line = &in->lines[in->count];
        int got = read_one(in, in->path, in->reader, line, err);
        if (got > 0 && in->prefixes) got = read_prefix(in, &in->prefixes[in->count], err);
        if (got <= 0) return got;
        total += (int64_t)line->bytes;
    }
    return 1;
}

/* ---- prefixes before the first sentence -------------------------------------------------------------------------- */

/* -1: it cannot be read. */
static int64_t count_lines(const char *path, hw_error *err)
{
    char *line;
    size_t bytes;
    int got;
    hw_reader *reader = hw_reader_open(path, err);
    if (!reader) return -1;
    while ((got = hw_reader_line(reader, &line, &bytes, err)) > 0) {
    }
    int64_t count = hw_reader_number(reader);
    hw_reader_close(reader);
    return got < 0 ? -1 : count;
}

/* Goes through all prefixes, as they will be read -> their number; -1: an error, or one that is too long. */
static int64_t check_prefixes(hw_translate_input *in, hw_translator *translator, int64_t max_length, hw_error *err)
{
    hw_text prefix;
    int got;
    hw_reader *reader = hw_reader_open(in->prefix_path, err);
    if (!reader) return -1;
    while (hw_arena_reset(in->arena), (got = read_one(in, in->prefix_path, reader, &prefix, err)) > 0) {
        int64_t tokens = hw_translator_prefix_tokens(translator, prefix);
        if (!max_length || tokens <= max_length) continue;
        hw_fail(err, "%s:%lld: the prefix has %lld tokens, but decoding.max_length is %lld", in->prefix_path,
                (long long)hw_reader_number(reader), (long long)tokens, (long long)max_length);
        got = -1;
        break;
    }
    int64_t count = hw_reader_number(reader);
    hw_reader_close(reader);
    return got < 0 ? -1 : count;
}

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static bool uneven(const hw_translate_input *in, int64_t lines, int64_t prefixes, hw_error *err)
{
    return hw_fail(err, "%s has %lld %s, but %s has %lld; each line is the prefix of one translation", in->path,
                   (long long)lines, hw_plural(lines, "line", "lines"), in->prefix_path, (long long)prefixes);
}

/* path NULL: the lines cannot be counted before they are read. */
static bool open_prefixes(hw_translate_input *in, const char *path, hw_translator *translator, int64_t max_length,
                          hw_error *err)
{
    bool standard = !strcmp(in->prefix_path, "-");
    if (standard || !is_file(in->prefix_path))
        return hw_fail(err, "%s: %s", standard ? "standard input" : in->prefix_path,
                       standard || hw_file_exists(in->prefix_path)
                           ? "it is no file; prefixes are read more than once, so a pipe or a device will not do"
                           : "there is no such file of prefixes");
    int64_t prefixes = check_prefixes(in, translator, max_length, err), lines = prefixes;
    if (prefixes >= 0 && path && is_file(path)) lines = count_lines(path, err);
    if (prefixes < 0 || lines < 0) return false;
    if (lines != prefixes) return uneven(in, lines, prefixes, err);
    in->prefix_reader = hw_reader_open(in->prefix_path, err);
    return in->prefix_reader;
}

bool hw_translate_open(hw_translate_input *in, hw_cli *cli, const char *path, const char *prefixes,
                       hw_translator *translator, int64_t max_length, hw_error *err)
{
    bool standard = !strcmp(path, "-");
    in->path = standard ? "standard input" : path;
    in->prompt = standard && isatty(STDIN_FILENO) && !cli->quiet;
    in->prefix_path = prefixes;
    in->arena = hw_arena_new(0);
    in->lines = hw_arena_alloc(cli->arena, (size_t)in->window * sizeof *in->lines);
    if (prefixes) in->prefixes = hw_arena_alloc(cli->arena, (size_t)in->window * sizeof *in->prefixes);
    in->reader = hw_reader_open(path, err);
    return in->reader && (!prefixes || open_prefixes(in, standard ? NULL : path, translator, max_length, err));
}

bool hw_translate_even(hw_translate_input *in, int64_t done, hw_error *err)
{
    char *line;
    size_t bytes;
    int got = 1;
    if (!in->prefixes) return true;
    while (!in->prefixes_ended && (got = hw_reader_line(in->prefix_reader, &line, &bytes, err)) > 0) {
    }
    if (got < 0) return false;
    int64_t prefixes = hw_reader_number(in->prefix_reader);
    return prefixes == done || uneven(in, done, prefixes, err);
}

void hw_translate_close(hw_translate_input *in)
{
    hw_reader_close(in->prefix_reader);
    hw_reader_close(in->reader);
    hw_arena_free(in->arena);
}
