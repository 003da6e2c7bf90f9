/* The program: from the name it was called by and its words to a command.
 *
 * bin/train is a link to bin/headwise, so `bin/train X` and `headwise train X` are the same. Before a command runs,
 * standard output is made safe: a closed one must fail to be written, not land in the next file that is opened; a slow
 * reader is waited for; and a pipe that nobody reads is an error like a full disk, not a silent death. */
#include "cli/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <headwise/tensor.h>

#define COMMAND(name, command, summary) extern const hw_cli_command command;
#include "cli/commands.h"
#undef COMMAND

static const hw_cli_entry commands[] = {
#define COMMAND(name, command, summary) {#name, &command, summary},
#include "cli/commands.h"
#undef COMMAND
    {NULL, NULL, NULL},
};

const hw_cli_entry *hw_cli_commands(void) { return commands; }

static const hw_cli_entry *find(const hw_cli_entry *entries, const char *name)
{
    for (; entries->name; entries++)
        if (!strcmp(entries->name, name)) return entries;
    return NULL;
}

static const char *name_at(int i, const void *entries) { return ((const hw_cli_entry *)entries)[i].name; }

/* "there is no command trian; did you mean train?" above: the command whose verbs these are, or NULL. */
static int unknown(const hw_cli_entry *entries, const char *above, const char *word)
{
    const char *kind = above ? "verb" : "command", *colon = above ? ": " : "", *blank = above ? " " : "";
    int count = 0;
    while (entries[count].name) count++;
    const char *nearest = hw_nearest(word, count, name_at, entries);
    if (!above) above = "";
    if (nearest)
        hw_cli_say("%s%sthere is no %s %s; did you mean %s?", above, colon, kind, word, nearest);
    else
        hw_cli_say("%s%sthere is no %s %s; headwise %s%s--help lists what there is", above, colon, kind, word, above,
                   blank);
    return HW_CLI_USAGE;
}

static int run(hw_cli *cli)
{
    const hw_cli_command *command = cli->command;
    if (!command->verbs) return command->run(cli);
    const char *word = cli->given_count ? cli->given[0] : "";
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
        hw_cli_help(stdout, cli->name, command);
        return HW_CLI_DONE;
    }
    if (!strcmp(word, "--version")) {
        hw_cli_print_version();
        return HW_CLI_DONE;
    }
    if (!*word || *word == '-') {
        hw_cli_say("%s: which? usage: headwise %s %s; headwise %s --help lists them", cli->name, cli->name,
                   command->usage, cli->name);
        return HW_CLI_USAGE;
    }
    const hw_cli_entry *verb = find(command->verbs, word);
    if (!verb) return unknown(command->verbs, cli->name, word);
    cli->name = hw_arena_string(cli->arena, "%s %s", cli->name, verb->name);
    cli->command = verb->command;
    cli->given++;
    cli->given_count--;
    return run(cli);
}

/* `headwise ...` without a command; NULL ends the words. */
static int run_program(char **words)
{
    const char *word = *words ? *words : "";
    if (!strcmp(word, "--write-pages") && words[1]) return hw_cli_write_pages(words[1]);
    if (!*word) {
        hw_cli_help(stderr, NULL, NULL);
        return HW_CLI_USAGE;
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) hw_cli_help(stdout, NULL, NULL);
    else if (!strcmp(word, "--version")) hw_cli_print_version();
    else if (!strcmp(word, "--help-config")) hw_config_help(stdout);
    else if (*word != '-')
        return unknown(commands, NULL, word);
    else {
        hw_cli_say("%s stands before any command; usage: headwise COMMAND ...", word);
        return HW_CLI_USAGE;
    }
    return HW_CLI_DONE;
}

/* Who shares output may have set that it does not wait for a slow reader (EAGAIN), which stdio cannot write to. */
static void let_output_wait(void)
{
    for (int fd = 1; fd <= 2; fd++) {
        int flags = fcntl(fd, F_GETFL);
        if (flags != -1 && flags & O_NONBLOCK) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    }
}

/* Standard streams that the caller closed are opened such that using them fails: input for writing, output for
 * reading. */
static void occupy_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
            _exit(HW_CLI_FAILED);
}

void hw_cli_end_by(int number)
{
    hw_atomic_remove_all();
    signal(number, SIG_DFL);
    raise(number); /* comes when the handler returns */
}

void hw_cli_catch(int number, void (*handler)(int number))
{
    struct sigaction before, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask); /* a second signal waits for the end of the first one's handler */
    if (!sigaction(number, NULL, &before) && before.sa_handler != SIG_IGN) sigaction(number, &action, NULL);
}

/* Ctrl-C and the like end the program as ever, but leave no half-written file. */
static void catch_signals(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) hw_cli_catch(numbers[i], hw_cli_end_by);
}

int hw_cli_main(int argc, char **argv)
{
    occupy_standard_streams();
    let_output_wait();
    catch_signals();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files too */
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *called = slash ? slash + 1 : argc > 0 ? argv[0] : "";
    const hw_cli_entry *entry = find(commands, called);
    if (!entry && argc > 2 && !strcmp(argv[1], "help")) { /* help heads roles: heads roles --help */
        char *words[] = {argv[0], argv[2], argc > 3 ? argv[3] : "--help", "--help", NULL};
        return hw_cli_main(argc > 3 ? 4 : 3, words);
    }
    int skip = 1;
    if (!entry && argc > 1 && (entry = find(commands, argv[1]))) skip = 2;
    int status;
    hw_error err;
    if (!hw_kernels_check(&err)) {
        status = hw_cli_refuse(&err);
    } else if (entry) {
        hw_arena *arena = hw_arena_new(0);
        hw_cli cli = {.arena = arena, .name = entry->name, .command = entry->command, .given_count = argc - skip,
                      .given = argv + skip};
        status = run(&cli);
        hw_arena_free(arena);
    } else {
        status = run_program(argc > 1 ? argv + 1 : (char *[]){NULL});
    }
    if (!hw_cli_flush()) status = HW_CLI_FAILED;
    if (status) hw_directories_remove_empty();
    return status;
}
