/* What headwise translate reads: lines, and beside them what their translations begin with.
 *
 * Lines are read until a window is full or the input pauses, so a million of them take the memory of a window, and
 * whoever types one gets its translation at once. */
#include "cli/translate.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* The prefix of the line that was just read; none where there are fewer, which is told at the end. */
static int read_prefix(hw_translate_input *in, hw_text *prefix, hw_error *err)
{
    *prefix = (hw_text){0};
    if (in->prefixes_ended) return 1;
    int got = hw_cli_lines_next(&in->begins, in->arena, prefix, err);
    in->prefixes_ended = got == 0;
    return got < 0 ? got : 1;
}

int hw_translate_read(hw_translate_input *in, hw_error *err)
{
    hw_arena_reset(in->arena);
    in->count = 0;
    for (size_t total = 0; in->count < in->window && total < HW_CLI_WINDOW_BYTES; in->count++) {
        if (hw_reader_waiting(in->text.reader)) {
            if (in->count) return 1;
            if (in->prompt) fputs("> ", stderr);
        }
        hw_text *line = &in->lines[in->count], prefix = {0};
        int got = hw_cli_lines_next(&in->text, in->arena, line, err);
        if (got > 0 && in->prefixes) got = read_prefix(in, &prefix, err);
        if (got <= 0) return got;
        if (in->prefixes) in->prefixes[in->count] = prefix;
        total += line->bytes + prefix.bytes;
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
static int64_t check_prefixes(hw_translate_input *in, const char *path, hw_translator *translator, hw_error *err)
{
    hw_text prefix;
    hw_cli_lines lines;
    int got;
    int64_t most = hw_translator_longest_prefix(translator);
    if (!hw_cli_lines_open(&lines, path, err)) return -1;
    while (hw_arena_reset(in->arena), (got = hw_cli_lines_next(&lines, in->arena, &prefix, err)) > 0) {
        int64_t tokens = hw_translator_prefix_tokens(translator, prefix);
        if (tokens <= most) continue;
        hw_fail(err, "%s:%lld: the prefix has %lld tokens, but it can have %lld at most (decoding.max_length)", path,
                (long long)hw_reader_number(lines.reader), (long long)tokens, (long long)most);
        got = -1;
        break;
    }
    int64_t count = hw_reader_number(lines.reader);
    hw_cli_lines_close(&lines);
    in->begins.warned = lines.warned;
    return got < 0 ? -1 : count;
}

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static bool uneven(const hw_translate_input *in, int64_t lines, int64_t prefixes, hw_error *err)
{
    return hw_fail(err, "%s has %lld %s, but %s has %lld; each line is the prefix of one translation", in->text.path,
                   (long long)lines, hw_plural(lines, "line", "lines"), in->begins.path, (long long)prefixes);
}

/* source NULL: the lines cannot be counted before they are read. */
static bool open_prefixes(hw_translate_input *in, const char *path, const char *source, hw_translator *translator,
                          hw_error *err)
{
    bool standard = !strcmp(path, "-");
    if (standard || !is_file(path))
        return hw_fail(err, "%s: %s", standard ? "standard input" : path,
                       standard || hw_file_exists(path)
                           ? "it is no file; prefixes are read more than once, so a pipe or a device will not do"
                           : "there is no such file of prefixes");
    in->begins.path = path;
    int64_t prefixes = check_prefixes(in, path, translator, err), lines = prefixes;
    if (prefixes >= 0 && source && is_file(source)) lines = count_lines(source, err);
    if (prefixes < 0 || lines < 0) return false;
    if (lines != prefixes) return uneven(in, lines, prefixes, err);
    in->begins.reader = hw_reader_open(path, err);
    return in->begins.reader;
}

bool hw_translate_open(hw_translate_input *in, hw_cli *cli, const char *path, const char *prefixes,
                       hw_translator *translator, hw_error *err)
{
    bool standard = !strcmp(path, "-");
    in->prompt = standard && isatty(STDIN_FILENO) && !cli->quiet;
    in->arena = hw_arena_new(0);
    in->lines = hw_arena_alloc(cli->arena, (size_t)in->window * sizeof *in->lines);
    if (prefixes) in->prefixes = hw_arena_alloc(cli->arena, (size_t)in->window * sizeof *in->prefixes);
    return hw_cli_lines_open(&in->text, path, err) &&
           (!prefixes || open_prefixes(in, prefixes, standard ? NULL : path, translator, err));
}

bool hw_translate_even(hw_translate_input *in, int64_t done, hw_error *err)
{
    char *line;
    size_t bytes;
    int got = 1;
    if (!in->prefixes) return true;
    while (!in->prefixes_ended && (got = hw_reader_line(in->begins.reader, &line, &bytes, err)) > 0) {
    }
    if (got < 0) return false;
    int64_t prefixes = hw_reader_number(in->begins.reader);
    return prefixes == done || uneven(in, done, prefixes, err);
}

void hw_translate_close(hw_translate_input *in)
{
    hw_cli_lines_close(&in->begins);
    hw_cli_lines_close(&in->text);
    hw_arena_free(in->arena);
}
