/* Lines for commands whose answers go line by line beside their input: a byte that is no text must not end them, so it
 * is read as U+FFFD; see lines.h. */
#include "cli/lines.h"

#include <string.h>

bool hw_cli_say_losses(int64_t lines, const hw_cli_loss_words *words, const hw_cli_loss *losses)
{
    bool any = false;
    for (const hw_cli_loss *l = losses; l->why; l++) {
        if (!l->count) continue;
        hw_cli_say("of %lld %s %lld %s: %s", (long long)lines, hw_plural(lines, words->lines[0], words->lines[1]),
                   (long long)l->count, hw_plural(l->count, words->fate[0], words->fate[1]), l->why);
        any = true;
    }
    return any;
}

bool hw_cli_lines_open(hw_cli_lines *l, const char *path, hw_error *err)
{
    *l = (hw_cli_lines){.path = strcmp(path, "-") ? path : "standard input"};
    l->reader = hw_reader_open(path, err);
    return l->reader;
}

/* The line with U+FFFD for every byte that is not UTF-8, of which line[bad] is the first. */
static hw_text mend(hw_cli_lines *l, hw_arena *arena, hw_text line, int64_t bad)
{
    if (!l->warned)
        hw_cli_say(
            "%s:%lld: byte %lld is 0x%02X, which is not valid UTF-8; it is read as U+FFFD, and so are all like it",
            l->path, (long long)hw_reader_number(l->reader), (long long)hw_reader_byte(l->reader, bad),
            (unsigned)(unsigned char)line.text[bad]);
    l->warned = true;
    char *out = hw_arena_alloc(arena, 3 * line.bytes + 1);
    return (hw_text){out, hw_utf8_mend(line.text, line.bytes, out)};
}

int hw_cli_lines_next(hw_cli_lines *l, hw_arena *arena, hw_text *line, hw_error *err)
{
    char *text;
    size_t bytes;
    int got = hw_reader_line(l->reader, &text, &bytes, err);
    if (got <= 0) return got;
    int64_t bad = hw_utf8_invalid(text, bytes);
    *line = bad < 0 ? (hw_text){hw_arena_copy(arena, text, bytes + 1), bytes}
                    : mend(l, arena, (hw_text){text, bytes}, bad);
    return 1;
}

void hw_cli_lines_close(hw_cli_lines *l) { hw_reader_close(l->reader); }
