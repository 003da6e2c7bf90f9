/* Text for people: numbers, durations, wrapped paragraphs, tables. Widths are columns of a terminal, as utf8proc's
 * Unicode data has them. */
#include "cli/cli.h"

#include <string.h>
#include <utf8proc.h>

const char *hw_cli_duration(double seconds, char text[32])
{
    int64_t whole = seconds > 0 && seconds < 1e15 ? (int64_t)(seconds + 0.5) : 0;
    int minutes = (int)(whole / 60 % 60), rest = (int)(whole % 60);
    if (whole < 3600) snprintf(text, 32, "%d:%02d", minutes, rest);
    else snprintf(text, 32, "%lld:%02d:%02d", (long long)(whole / 3600), minutes, rest);
    return text;
}

int hw_cli_width(const char *text)
{
    int width = 0, bytes;
    for (size_t left = strlen(text); left; left -= (size_t)bytes, text += bytes) {
        int32_t codepoint = hw_utf8_decode(text, left, &bytes);
        width += codepoint < 0 ? 1 : utf8proc_charwidth(codepoint);
    }
    return width;
}

void hw_cli_wrap(FILE *out, const char *text, int at, int indent, int width)
{
    for (bool first = true; *(text += strspn(text, " ")); first = false) {
        size_t length = strcspn(text, " ");
        char word[256];
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        int columns = hw_cli_width(word);
        if (!first && at + 1 + columns > width) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
        } else if (!first) {
            fputc(' ', out);
            at++;
        }
        fwrite(text, 1, length, out);
        at += columns;
        text += length;
    }
}

struct hw_cli_table {
    hw_arena *arena;
    const char *align;
    int columns, cells, room;
    const char **cell;
};

hw_cli_table *hw_cli_table_new(hw_arena *arena, const char *align)
{
    hw_cli_table *table = hw_arena_calloc(arena, 1, sizeof *table);
    table->arena = arena;
    table->align = align;
    table->columns = (int)strlen(align);
    return table;
}

void hw_cli_cell(hw_cli_table *table, const char *format, ...)
{
    if (table->cells == table->room) {
        table->room = table->room ? 2 * table->room : 64;
        const char **cell = hw_arena_alloc(table->arena, (size_t)table->room * sizeof *cell);
        if (table->cells) memcpy(cell, table->cell, (size_t)table->cells * sizeof *cell);
        table->cell = cell;
    }
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    table->cell[table->cells++] = hw_arena_copy(table->arena, text, strlen(text) + 1);
}

/* Are this cell and all behind it in its row empty? So is what stands behind the end of a row or of the table. */
static bool nothing_follows(const hw_cli_table *table, int cell)
{
    while (cell < table->cells && cell % table->columns && !*table->cell[cell]) cell++;
    return cell >= table->cells || cell % table->columns == 0;
}

void hw_cli_table_print(const hw_cli_table *table, FILE *out)
{
    int columns = table->columns;
    int *widths = hw_arena_calloc(table->arena, (size_t)columns, sizeof *widths);
    for (int i = 0; i < table->cells; i++) {
        int width = hw_cli_width(table->cell[i]);
        if (width > widths[i % columns]) widths[i % columns] = width;
    }
    for (int i = 0; i < table->cells; i++) {
        if (i % columns && nothing_follows(table, i)) continue;
        int column = i % columns, pad = widths[column] - hw_cli_width(table->cell[i]);
        bool right = table->align[column] == 'r', last = nothing_follows(table, i + 1);
        fprintf(out, "%*s%s", right ? pad : 0, "", table->cell[i]);
        if (last) fputc('\n', out);
        else fprintf(out, "%*s", (right ? 0 : pad) + 2, "");
    }
}

void hw_cli_print_column(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) putchar(text[i] == '\t' ? ' ' : text[i]);
}
