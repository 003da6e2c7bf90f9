/* What `make install` puts beside the program, made from the same tables as --help: a manual page a command and a verb,
 * and the completion of bash. `headwise --write-pages DIRECTORY` writes them.
 *
 * Pages are in the macros of man(7). In their text a hyphen is written \- so that options can be copied, a backslash
 * \e, and a line must not begin with a dot or an apostrophe. */
#include "cli/pages.h"

#include <stdlib.h>
#include <string.h>

/* ---- text of a page ---------------------------------------------------------------------------------------------- */

static void put_text(FILE *out, const char *text, size_t length)
{
    if (length && (*text == '.' || *text == '\'')) fputs("\\&", out);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '-') fputs("\\-", out);
        else if (text[i] == '\\') fputs("\\e", out);
        else fputc(text[i], out);
    }
}

static void put_line(FILE *out, const char *text)
{
    put_text(out, text, strlen(text));
    fputc('\n', out);
}

/* As it stands, line by line. */
static void put_lines(FILE *out, const char *text)
{
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        put_text(out, text, length);
        fputc('\n', out);
    }
}

static void put_paragraphs(FILE *out, const char *text)
{
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        if (!length) continue;
        fputs(".PP\n", out);
        put_text(out, text, length);
        fputc('\n', out);
    }
}

static void put_term(FILE *out, const char *term, const char *text)
{
    fputs(".TP\n.B ", out);
    put_line(out, term);
    put_line(out, text);
}

static void put_option(FILE *out, const hw_cli_option *option)
{
    fputs(".TP\n", out);
    if (option->letter) fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
    fputs("\\fB\\-\\-", out);
    put_text(out, option->name, strlen(option->name));
    fputs("\\fR", out);
    if (option->value) {
        fputs(" \\fI", out);
        put_text(out, option->value, strlen(option->value));
        fputs("\\fR", out);
    }
    fputc('\n', out);
    put_line(out, option->help);
}

static void put_entries(FILE *out, const hw_cli_entry *entries)
{
    for (; entries->name; entries++) put_term(out, entries->name, entries->summary);
}

/* "heads roles" -> "headwise-heads-roles"; NULL: the program itself. */
static const char *page_name(hw_arena *arena, const char *name)
{
    char *page = hw_arena_string(arena, "headwise%s%s", name ? "-" : "", name ? name : "");
    for (char *c = page; *c; c++)
        if (*c == ' ') *c = '-';
    return page;
}

static void begin_page(FILE *out, const char *page, const char *summary)
{
    fputs(".TH ", out);
    for (const char *c = page; *c; c++) fputc(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c, out);
    fprintf(out, " 1 \"\" \"headwise %s\" \"Headwise\"\n.SH NAME\n", HW_VERSION);
    put_text(out, page, strlen(page));
    fputs(" \\- ", out);
    put_line(out, summary);
    fputs(".SH SYNOPSIS\n", out);
}

static void put_exit_status(FILE *out)
{
    fputs(".SH EXIT STATUS\n", out);
    put_term(out, "0", "done");
    put_term(out, "1", "the run failed");
    put_term(out, "2", "wrong usage or configuration");
}

/* ---- the pages --------------------------------------------------------------------------------------------------- */

static void put_command(FILE *out, hw_arena *arena, const char *name, const hw_cli_entry *entry)
{
    const hw_cli_command *command = entry->command;
    begin_page(out, page_name(arena, name), entry->summary);
    fprintf(out, ".B headwise %s\n", name);
    put_line(out, hw_arena_string(arena, "%s%s", command->usage, command->verbs ? "" : " [OPTION]..."));
    fputs(".SH DESCRIPTION\n", out);
    put_paragraphs(out, command->description);
    if (command->verbs) {
        fputs(".SH VERBS\n", out);
        put_entries(out, command->verbs);
        return;
    }
    fputs(".SH OPTIONS\n", out);
    for (int i = 0; i < command->option_count; i++) put_option(out, &command->options[i]);
    const hw_cli_option *option;
    for (int i = 0; (option = hw_cli_common_option(command->takes, i)); i++) put_option(out, option);
    put_exit_status(out);
}

static void put_program(FILE *out, hw_arena *arena)
{
    char *config = NULL;
    size_t size;
    FILE *text = open_memstream(&config, &size);
    HW_CHECK(text, "no memory for the manual page");
    hw_config_help(text);
    fclose(text);
    begin_page(out, page_name(arena, NULL), "train a Transformer, translate with it, look at its attention heads");
    fputs(".B headwise\n.I COMMAND\n\\&...\n.SH DESCRIPTION\n", out);
    put_paragraphs(out, HW_CLI_PROGRAM);
    fputs(".SH COMMANDS\nEach has a page of its own, headwise\\-COMMAND(1).\n", out);
    put_entries(out, hw_cli_commands());
    put_exit_status(out);
    fputs(".SH CONFIGURATION\nEvery option, its meaning, its default and what may be given:\n.PP\n.nf\n", out);
    put_lines(out, config);
    fputs(".fi\n", out);
    free(config);
}

static bool write_page(const char *directory, hw_arena *arena, const char *name, const hw_cli_entry *entry,
                       hw_error *err)
{
    hw_atomic file;
    if (!hw_atomic_begin(&file, hw_arena_string(arena, "%s/%s.1", directory, page_name(arena, name)), err))
        return false;
    if (entry) put_command(file.stream, arena, name, entry);
    else put_program(file.stream, arena);
    return hw_atomic_commit(&file, err);
}

/* Of commands and, below them, of their verbs. */
static bool write_commands(const char *directory, hw_arena *arena, const char *above, const hw_cli_entry *entries,
                           hw_error *err)
{
    for (; entries->name; entries++) {
        const char *name = hw_arena_string(arena, "%s%s", above, entries->name);
        if (!write_page(directory, arena, name, entries, err)) return false;
        if (entries->command->verbs && !write_commands(directory, arena, hw_arena_string(arena, "%s ", name),
                                                       entries->command->verbs, err))
            return false;
    }
    return true;
}

int hw_cli_write_pages(const char *directory)
{
    hw_error err;
    hw_atomic file;
    hw_arena *arena = hw_arena_new(0);
    bool ok = hw_directory_make(directory, &err) && write_page(directory, arena, NULL, NULL, &err) &&
              write_commands(directory, arena, "", hw_cli_commands(), &err) &&
              hw_atomic_begin(&file, hw_arena_string(arena, "%s/headwise.bash", directory), &err);
    if (ok) {
        hw_cli_completion(file.stream, arena);
        ok = hw_atomic_commit(&file, &err);
    }
    hw_arena_free(arena);
    return ok ? HW_CLI_DONE : hw_cli_fail(&err);
}
