/* How far a long work has come: one line that is rewritten on a terminal, lines at growing intervals elsewhere.
 *
 *     train 1,200/3,200, 38 %, loss 2.31, learning rate 0.0012, 61,200 tokens/s, 0:23 left */
#include "cli/cli.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const double TERMINAL_PAUSE = 0.1, FIRST_PAUSE = 2, LONGEST_PAUSE = 60; /* seconds */

/* There is one terminal, so whether a progress line stands on it is one fact, whoever printed it. */
static bool line_open;

static bool on_terminal(void) { return isatty(STDERR_FILENO); }

static int terminal_width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 20 ? 80 : size.ws_col;
}

hw_cli_progress hw_cli_progress_new(const hw_cli *cli) { return (hw_cli_progress){.quiet = cli->quiet}; }

void hw_cli_progress_clear(void)
{
    if (line_open) fputs("\r\033[K", stderr);
    line_open = false;
}

static void append(char *line, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void append(char *line, size_t size, const char *format, ...)
{
    size_t used = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, size - used, format, arguments);
    va_end(arguments);
}

static void compose(char *line, size_t size, const hw_progress *p, const hw_cli_progress *shown)
{
    char done[32], total[32], left[32];
    snprintf(line, size, "%s %s", p->what, hw_thousands(p->done, done));
    if (p->total > 0) append(line, size, "/%s, %d %%", hw_thousands(p->total, total), (int)(100 * p->done / p->total));
    if (p->detail && *p->detail) append(line, size, ", %s", p->detail);
    int64_t progressed = p->done - shown->first_done;
    double seconds = p->seconds - shown->first_seconds;
    if (p->last) append(line, size, ", %s", hw_cli_duration(p->seconds, left));
    else if (p->total > 0 && progressed > 0)
        append(line, size, ", %s left",
               hw_cli_duration(seconds * (double)(p->total - p->done) / (double)progressed, left));
}

/* Cuts the line, so that a terminal does not break it, at the border of a character. */
static void cut(char *line, int columns)
{
    size_t length = strlen(line);
    while (length && hw_cli_width(line) >= columns) {
        do length--;
        while (length && ((unsigned char)line[length] & 0xC0) == 0x80);
        line[length] = 0;
    }
}

void hw_cli_progress_show(const hw_progress *p, void *context)
{
    hw_cli_progress *shown = context;
    if (shown->quiet) return;
    bool terminal = on_terminal();
    if (!shown->begun) {
        shown->begun = true;
        shown->first_done = p->done;
        shown->first_seconds = p->seconds;
        shown->shown = p->seconds;
        shown->pause = terminal ? 0 : FIRST_PAUSE;
    }
    if (!p->last && p->seconds < shown->shown + shown->pause) return;
    shown->shown = p->seconds;
    if (terminal) shown->pause = TERMINAL_PAUSE;
    else if (shown->pause < LONGEST_PAUSE) shown->pause *= 1.5;
    char line[512];
    compose(line, sizeof line, p, shown);
    if (!terminal) {
        fprintf(stderr, "%s\n", line);
        return;
    }
    if (!p->last) cut(line, terminal_width());
    hw_cli_progress_clear();
    fprintf(stderr, "%s%s", line, p->last ? "\n" : "");
    fflush(stderr);
    line_open = !p->last;
}
