/* What the program says on standard error, and whether standard output could be written.
 *
 * A message is a line that begins with "headwise: ". It may quote a file's name or a corpus' words, so control
 * characters, which a terminal would obey, are shown as `?`. */
#include "cli/cli.h"

#include <errno.h>
#include <string.h>

static void say(const char *format, va_list arguments)
{
    char text[sizeof((hw_error *)0)->message + 256];
    vsnprintf(text, sizeof text, format, arguments);
    for (char *c = text; *c; c++) {
        bool upper = *c == '\xc2' && (c[1] & 0xe0) == 0x80; /* U+0080 to U+009F */
        if (upper) c[1] = '?';
        if (upper || ((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f) *c = '?';
    }
    hw_cli_progress_clear();
    fprintf(stderr, "headwise: %s\n", text);
}

void hw_cli_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void hw_cli_note(const hw_cli *cli, const char *format, ...)
{
    if (cli->quiet) return;
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

int hw_cli_fail(const hw_error *err)
{
    hw_cli_say("%s", err->message);
    return HW_CLI_FAILED;
}

int hw_cli_refuse(const hw_error *err)
{
    hw_cli_say("%s", err->message);
    return HW_CLI_USAGE;
}

bool hw_cli_flush(void)
{
    static bool told;
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout)) return true;
    if (!told)
        hw_cli_say("standard output could not be written: %s", errno ? strerror(errno) : "an earlier write failed");
    told = true;
    return false;
}
