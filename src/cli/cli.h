/* Layer 12, the command line: what every subcommand has in common.
 *
 * A command is one file, src/cli/NAME.c, and one line in commands.h. To add one:
 *
 *     typedef struct options { int64_t pairs; const char *output; bool dry_run; } options;
 *
 *     static const hw_cli_option table[] = {
 *         {"pairs", 'n', "N", HW_CLI_INTEGER, offsetof(options, pairs), "how many pairs (1000)", 1, 1e9, NULL},
 *         {"output", 'o', "DIR", HW_CLI_TEXT, offsetof(options, output), "where they go", 0, 0, NULL},
 *         {"dry-run", 0, NULL, HW_CLI_FLAG, offsetof(options, dry_run), "only say what would be done", 0, 0, NULL},
 *     };
 *
 *     static int run(hw_cli *cli)
 *     {
 *         options o = {.pairs = 1000};                                    (defaults)
 *         if (!hw_cli_parse(cli, &o)) return cli->status;                 (--help was asked for, or an option is wrong)
 *         hw_error err;
 *         if (!work(cli->arguments[0], o.pairs, &err)) return hw_cli_fail(&err);             (status 1: the run failed)
 *         return HW_CLI_DONE;
 *     }
 *
 *     const hw_cli_command hw_cli_generate = {
 *         .usage = "GRAMMAR", .least = 1, .most = 1, .takes = HW_CLI_JSON,
 *         .description = "What it does, in a paragraph or two for --help.",
 *         .options = table, .option_count = sizeof table / sizeof *table, .run = run,
 *     };
 *
 * and in commands.h:  COMMAND(generate, hw_cli_generate, "make a parallel corpus from a grammar")
 *
 * Data goes to standard output by stdio, whose errors are reported at the end; a loop that writes much should stop when
 * ferror(stdout). Everything else goes through hw_cli_say and hw_cli_note, which keep clear of the progress line. */
#ifndef HW_CLI_H
#define HW_CLI_H

#include <headwise/base.h>
#include <headwise/config.h>

enum { HW_CLI_DONE = 0, HW_CLI_FAILED = 1, HW_CLI_USAGE = 2 }; /* exit status */

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* An option that may be given several times. */
typedef struct hw_cli_list {
    int count;
    const char **items;
} hw_cli_list;

typedef enum hw_cli_kind {
    HW_CLI_FLAG,    /* bool: true where given */
    HW_CLI_TEXT,    /* const char * */
    HW_CLI_INTEGER, /* int64_t */
    HW_CLI_NUMBER,  /* double */
    HW_CLI_CHOICE,  /* int: which of the choices */
    HW_CLI_LIST,    /* hw_cli_list: one more item each time */
} hw_cli_kind;

typedef struct hw_cli_option {
    const char *name;           /* without the dashes */
    char letter;                /* of the short form, or 0 */
    const char *value;          /* what help calls its value ("FILE"); NULL for a flag */
    hw_cli_kind kind;
    size_t offset;              /* where it goes in the command's struct of options */
    const char *help;           /* one sentence without a full stop, the default in parentheses */
    double low, high;           /* bounds of numbers, INFINITY: none on this side; both 0: none at all */
    const char *const *choices; /* HW_CLI_CHOICE: the words, ended by NULL */
} hw_cli_option;

/* What an option cannot do without, or has no effect beside. Rules are checked before the command runs. */
typedef struct hw_cli_rule {
    const char *option;
    enum { HW_CLI_NEEDS, HW_CLI_EXCLUDES } kind;
    const char *others; /* "json tsv": needs one of these; excludes each */
    const char *why;    /* the end of the message, such as ", which have both"; may be NULL */
} hw_cli_rule;

/* Options that many commands take. --help, --version, --quiet and --threads every command has. */
enum {
    HW_CLI_JSON = 1,
    HW_CLI_SET = 2,     /* --set key=value and --help-config */
    HW_CLI_DECODING = 4 /* an option for each of the section `decoding`; see hw_cli_decoding_apply */
};

typedef struct hw_cli hw_cli;

typedef struct hw_cli_command {
    const char *usage;       /* its arguments: "MODEL [FILE]" */
    int least, most;         /* how many arguments; most -1: any number */
    unsigned takes;          /* HW_CLI_JSON | HW_CLI_SET */
    const char *description; /* for --help: paragraphs, which are wrapped */
    const hw_cli_option *options;
    int option_count;
    int (*run)(hw_cli *cli);              /* returns the exit status */
    const struct hw_cli_entry *verbs;     /* in place of run: a table of subcommands, ended by a NULL name */
    const hw_cli_rule *rules;             /* between its options, ended by a NULL option; may be NULL */
} hw_cli_command;

typedef struct hw_cli_entry {
    const char *name;
    const hw_cli_command *command;
    const char *summary;
} hw_cli_entry;

/* One call of a command. */
struct hw_cli {
    hw_arena *arena; /* lives as long as the call */
    const char *name; /* "train", "heads roles" */
    const hw_cli_command *command;
    int given_count; /* the words after the command's name */
    char **given;
    int argument_count; /* after hw_cli_parse: what is left of them when the options are taken out; NULL after the last
                         */
    const char **arguments;
    int status; /* after hw_cli_parse returned false */

    bool quiet, json; /* --quiet, --json */
    hw_cli_list set;  /* --set */
    hw_cli_list decoding; /* "--beam decoding.beam=5": options of the search */
    int64_t threads;  /* --threads, already passed to hw_threads_set; 0: not given */
};

/* Reads what was given into the struct of options (may be NULL where the command has none) and into cli. False where
 * the call ends here, with the exit status in cli->status: --help was printed, or a message about a wrong option. */
bool hw_cli_parse(hw_cli *cli, void *options);

/* The configuration at path with --set applied and checked; warnings are printed. NULL: it is wrong, the message is
 * printed, and the exit status is HW_CLI_USAGE. */
hw_config *hw_cli_config(hw_cli *cli, const char *path);

/* Sets the options of the search that were given over the configuration's; those of the configuration that do not go
 * with them follow. Before hw_config_check. */
bool hw_cli_decoding_apply(const hw_cli *cli, hw_config *config, hw_error *err);
/* The table of these options: the i-th row, NULL past the last; whether an option is one of them; and an item
 * of cli->decoding from its value (NULL: a flag). */
const hw_cli_option *hw_cli_decoding_option(int i);
bool hw_cli_is_decoding(const hw_cli_option *option);
const char *hw_cli_decoding_assignment(hw_arena *arena, const hw_cli_option *option, const char *value);

/* The program: finds the command by the name it was called by or by its first argument. Returns the exit status. */
int hw_cli_main(int argc, char **argv);

/* The table of commands, ended by a NULL name. */
const hw_cli_entry *hw_cli_commands(void);

#define HW_CLI_PROGRAM                                                                                                 \
    "Trains small Transformers on one machine, translates with them, and shows what each attention head does."

/* --help of a command, and of the program (command NULL). */
void hw_cli_help(FILE *out, const char *name, const hw_cli_command *command);
void hw_cli_print_version(void);

/* The common options that a command with these `takes` has, in the order of --help; NULL past the last. */
const hw_cli_option *hw_cli_common_option(unsigned takes, int i);

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* "headwise: ..." on standard error, always. */
void hw_cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, but not with --quiet. */
void hw_cli_note(const hw_cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
int hw_cli_fail(const hw_error *err);   /* prints it; returns HW_CLI_FAILED */
int hw_cli_refuse(const hw_error *err); /* prints it; returns HW_CLI_USAGE: arguments or configuration are wrong */

/* Writes out what standard output holds. False, with a message the first time, where it could not be written. */
bool hw_cli_flush(void);

/* Handles a signal: removes what is half-written, and lets the signal end the program. */
void hw_cli_end_by(int number);
/* Sets the handler of a signal, which no other one interrupts. What the caller ignores (nohup, a script's `&`) stays
 * ignored. */
void hw_cli_catch(int number, void (*handler)(int number));

/* ---- progress ---------------------------------------------------------------------------------------------------- */

/* Pass &progress as the context of hw_cli_progress_show wherever the library takes an hw_progress_function. On a
 * terminal one line is rewritten; elsewhere lines come at growing intervals; with --quiet nothing is shown. */
typedef struct hw_cli_progress {
    bool quiet, begun;
    double shown, pause;                   /* when the last line was shown, and for how long the next waits */
    int64_t first_done;                    /* where this run began: the time left is reckoned from there */
    double first_seconds;
} hw_cli_progress;
hw_cli_progress hw_cli_progress_new(const hw_cli *cli);
void hw_cli_progress_show(const hw_progress *progress, void *context);
void hw_cli_progress_clear(void); /* takes the line off the terminal, before something else is printed there */

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* "1:02:03" into text, which is returned. */
const char *hw_cli_duration(double seconds, char text[32]);

/* Prints text wrapped to `width` columns, continued lines indented; the first line begins at column `at`. */
void hw_cli_wrap(FILE *out, const char *text, int at, int indent, int width);

/* How many columns of a terminal the text takes (Unicode East Asian width; combining marks take none). */
int hw_cli_width(const char *text);

/* A table of text whose columns are as wide as their widest cell. A cell is a printf of its own. */
typedef struct hw_cli_table hw_cli_table;
/* align: a letter a column, l or r. Lives in the arena. */
hw_cli_table *hw_cli_table_new(hw_arena *arena, const char *align);
/* The next cell, row by row; a new row begins when the last one is full. */
void hw_cli_cell(hw_cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hw_cli_table_print(const hw_cli_table *table, FILE *out);

/* Prints a text that stands in a line between tabs: one within it becomes a blank. */
void hw_cli_print_column(const char *text, size_t bytes);

#endif
