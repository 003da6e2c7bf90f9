/* --help, made from the tables: of the program, of a command, of a command with verbs. */
#include "cli/cli.h"

#include <string.h>

enum { WIDTH = 80, COLUMN = 26 }; /* of the page; where explanations begin */

/* Two columns: what is typed, and what it does. */
static void print_entry(FILE *out, const char *left, const char *right)
{
    int length = (int)strlen(left);
    fputs(left, out);
    if (length > COLUMN - 2) fprintf(out, "\n%*s", COLUMN, "");
    else fprintf(out, "%*s", COLUMN - length, "");
    hw_cli_wrap(out, right, COLUMN, COLUMN, WIDTH);
    fputc('\n', out);
}

static void print_option(FILE *out, const hw_cli_option *option)
{
    char left[128], letter[8] = "    ";
    if (option->letter) snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, option->name, option->value ? " " : "",
             option->value ? option->value : "");
    print_entry(out, left, option->help);
}

static void print_entries(FILE *out, const hw_cli_entry *entries)
{
    for (; entries->name; entries++) {
        char left[64];
        snprintf(left, sizeof left, "  %s", entries->name);
        print_entry(out, left, entries->summary);
    }
}

static void print_paragraphs(FILE *out, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        char paragraph[4096];
        snprintf(paragraph, sizeof paragraph, "%.*s", (int)length, text);
        hw_cli_wrap(out, paragraph, 0, 0, WIDTH);
        fputc('\n', out);
        text += length + (text[length] == '\n');
    }
}

void hw_cli_print_version(void) { printf("headwise %s\n", HW_VERSION); }

static void print_program(FILE *out)
{
    fputs("usage: headwise COMMAND ...\n\n", out);
    print_paragraphs(out, HW_CLI_PROGRAM);
    fputs("\nCommands:\n", out);
    print_entries(out, hw_cli_commands());
    fputs("\nheadwise COMMAND --help tells more; headwise --help-config lists every option of a\nconfiguration; "
          "headwise --version prints the version.\n", out);
}

void hw_cli_help(FILE *out, const char *name, const hw_cli_command *command)
{
    if (!command) {
        print_program(out);
        return;
    }
    fprintf(out, "usage: headwise %s%s%s%s\n\n", name, *command->usage ? " " : "", command->usage,
            command->verbs ? "" : " [OPTION]...");
    print_paragraphs(out, command->description);
    if (command->verbs) {
        fputc('\n', out);
        print_entries(out, command->verbs);
        fprintf(out, "\nheadwise %s %s --help tells more.\n", name, command->verbs->name);
        return;
    }
    fputs("\nOptions:\n", out);
    for (int i = 0; i < command->option_count; i++) print_option(out, &command->options[i]);
    const hw_cli_option *option;
    for (int i = 0; (option = hw_cli_common_option(command->takes, i)); i++) print_option(out, option);
    fputs("\nExit status: 0 done, 1 the run failed, 2 wrong usage or configuration.\n", out);
}
