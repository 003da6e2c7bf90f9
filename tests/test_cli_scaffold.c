/* What all commands share: the parser of options, help, dispatch, messages, progress, tables. */
#include <check.h>
#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "support_files.h"

/* ---- a command to try things on ---------------------------------------------------------------------------------- */

typedef struct options {
    int64_t pairs;
    double share;
    const char *output;
    bool dry, verbose;
    int mode;
    hw_cli_list names;
} options;

static const char *const modes[] = {"zero", "mean", "uniform", NULL};
static const hw_cli_option table[] = {
    {"pairs", 'n', "N", HW_CLI_INTEGER, offsetof(options, pairs), "how many pairs are made (10)", 1, 1000, NULL},
    {"share", 0, "X", HW_CLI_NUMBER, offsetof(options, share),
     "which share of them is long enough to need a second line here", 0, 1, NULL},
    {"output", 'o', "DIR", HW_CLI_TEXT, offsetof(options, output), "where they are written", 0, 0, NULL},
    {"dry-run", 'd', NULL, HW_CLI_FLAG, offsetof(options, dry), "only say what would be done", 0, 0, NULL},
    {"verbose", 'v', NULL, HW_CLI_FLAG, offsetof(options, verbose), "say more", 0, 0, NULL},
    {"mode", 0, "zero|mean|uniform", HW_CLI_CHOICE, offsetof(options, mode), "in place of a head", 0, 0, modes},
    {"name", 0, "NAME", HW_CLI_LIST, offsetof(options, names), "a name; may be given again", 0, 0, NULL},
};

static int run(hw_cli *cli)
{
    options o = {.pairs = 10, .output = "-"};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    printf("%s %lld %g %s %d%d %d", cli->name, (long long)o.pairs, o.share, o.output, o.dry, o.verbose, o.mode);
    for (int i = 0; i < o.names.count; i++) printf(" [%s]", o.names.items[i]);
    for (int i = 0; i < cli->argument_count; i++) printf(" <%s>", cli->arguments[i]);
    printf(" q%d j%d t%lld s%d", cli->quiet, cli->json, (long long)cli->threads, cli->set.count);
    hw_cli_note(cli, "a note");
    return cli->arguments[cli->argument_count] ? 9 : HW_CLI_DONE;
}

static const hw_cli_command make = {
    .usage = "GRAMMAR [FILE]",
    .least = 1,
    .most = 2,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description =
        "Makes pairs of sentences from a grammar, and this paragraph is long enough to be wrapped.\n\nA second one.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .run = run,
};

static int call_make(void *words)
{
    char **given = words;
    int count = 0;
    while (given[count]) count++;
    hw_cli cli = {.arena = hw_arena_new(0), .name = "make", .command = &make, .given_count = count, .given = given};
    int status = make.run(&cli);
    hw_arena_free(cli.arena);
    return hw_cli_flush() ? status : HW_CLI_FAILED;
}
#define MAKE(...) run_captured(call_make, (char *[]){__VA_ARGS__, NULL})

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *words[8];
    int status;
    const char *out, *err;
} calls[] = {
    {{"g"}, 0, "make 10 0 - 00 0 <g> q0 j0 t0 s0", "headwise: a note\n"},
    {{"-q", "g"}, 0, "make 10 0 - 00 0 <g> q1 j0 t0 s0", ""},
    {{"g", "-q", "f", "--json"}, 0, "make 10 0 - 00 0 <g> <f> q1 j1 t0 s0", ""},
    {{"-qn5", "g"}, 0, "make 5 0 - 00 0 <g> q1 j0 t0 s0", ""},
    {{"-q", "-n", "5", "g"}, 0, "make 5 0 - 00 0 <g> q1 j0 t0 s0", ""},
    {{"-q", "--pairs=5", "--share", ".5", "g"}, 0, "make 5 0.5 - 00 0 <g> q1 j0 t0 s0", ""},
    {{"-qdv", "-oDIR", "g"}, 0, "make 10 0 DIR 11 0 <g> q1 j0 t0 s0", ""},
    {{"-q", "--output= ", "-"}, 0, "make 10 0   00 0 <-> q1 j0 t0 s0", ""},
    {{"-q", "--", "--pairs", "-n"}, 0, "make 10 0 - 00 0 <--pairs> <-n> q1 j0 t0 s0", ""},
    {{"-q", "g", "--mode", "uniform"}, 0, "make 10 0 - 00 2 <g> q1 j0 t0 s0", ""},
    {{"-q", "g", "--name", "a", "--name=b=c"}, 0, "make 10 0 - 00 0 [a] [b=c] <g> q1 j0 t0 s0", ""},
    {{"-q", "g", "--set", "a=b", "--set=c=d", "--threads", "3"}, 0, "make 10 0 - 00 0 <g> q1 j0 t3 s2", ""},
    {{"-q", "g", "-n", "5", "-n", "6"}, 0, "make 6 0 - 00 0 <g> q1 j0 t0 s0", ""},
    {{"g", "--output="}, 2, "", "headwise: make: --output: DIR is empty; is a variable not set?\n"},
    {{"g", ""}, 2, "", "headwise: make: argument 2 is empty; is a variable not set? Usage: headwise make GRAMMAR [FILE]\n"},
    {{NULL}, 2, "", "headwise: make: too few arguments; usage: headwise make GRAMMAR [FILE]\n"},
    {{"a", "b", "c"}, 2, "", "headwise: make: c is one argument too many; usage: headwise make GRAMMAR [FILE]\n"},
    {{"g", "--piars", "5"}, 2, "", "headwise: make: unknown option --piars; did you mean --pairs?\n"},
    {{"g", "--treads=5"}, 2, "", "headwise: make: unknown option --treads; did you mean --threads?\n"},
    {{"g", "--completely-else"},
     2,
     "",
     "headwise: make: unknown option --completely-else; headwise make --help lists them\n"},
    {{"g", "-x"}, 2, "", "headwise: make: unknown option -x; headwise make --help lists them\n"},
    {{"g", "--pairs"}, 2, "", "headwise: make: --pairs needs a value, N\n"},
    {{"g", "-n"}, 2, "", "headwise: make: --pairs needs a value, N\n"},
    {{"g", "--dry-run=yes"}, 2, "", "headwise: make: --dry-run takes no value\n"},
    {{"g", "--pairs", "five"}, 2, "", "headwise: make: --pairs: expected a whole number, found five\n"},
    {{"g", "--pairs="}, 2, "", "headwise: make: --pairs: expected a whole number, found nothing\n"},
    {{"g", "--pairs", "0"}, 2, "", "headwise: make: --pairs: 0 is out of range; it goes from 1 to 1000\n"},
    {{"g", "--share", "2"}, 2, "", "headwise: make: --share: 2 is out of range; it goes from 0 to 1\n"},
    {{"g", "--share", "nan"}, 2, "", "headwise: make: --share: expected a number, found nan\n"},
    {{"g", "--mode", "meen"},
     2,
     "",
     "headwise: make: --mode: meen is none of zero, mean, uniform; did you mean mean?\n"},
    {{"g", "--threads", "0"}, 2, "", "headwise: make: --threads: 0 is too small; it must be at least 1\n"},
    {{"g", "--threads", "-1"}, 2, "", "headwise: make: --threads: -1 is too small; it must be at least 1\n"},
    {{"--version"}, 0, "headwise " HW_VERSION "\n", ""},
    {{"g", "--\x1b[31m"}, 2, "", "headwise: make: unknown option --?[31m; headwise make --help lists them\n"},
    {{"g", "--\xc2\x9b"
           "3m\xc2\xa0"},
     2,
     "",
     "headwise: make: unknown option --??3m\xc2\xa0; headwise make --help lists them\n"},
};

START_TEST(words_are_read)
{
    const outcome *o = run_captured(call_make, (void *)(uintptr_t)calls[_i].words);
    ck_assert_str_eq(o->err, calls[_i].err);
    ck_assert_str_eq(o->out, calls[_i].out);
    ck_assert_int_eq(o->status, calls[_i].status);
}
END_TEST

START_TEST(too_many_threads)
{
    const outcome *o = MAKE("g", "-q", "--threads", "10000");
    ck_assert_int_eq(o->status, 0);
    ck_assert_msg(
        strstr(o->err, "headwise: --threads: 10000 is more than the 1024 that are supported; using all cores, ") ==
            o->err,
        "%s", o->err);
}
END_TEST

START_TEST(help_of_a_command)
{
    const outcome *o = MAKE("--pairs", "3", "--help");
    ck_assert_int_eq(o->status, 0);
    ck_assert_str_eq(o->err, "");
    ck_assert_str_eq(o->out,
                     "usage: headwise make GRAMMAR [FILE] [OPTION]...\n"
                     "\n"
                     "Makes pairs of sentences from a grammar, and this paragraph is long enough to be\n"
                     "wrapped.\n"
                     "\n"
                     "A second one.\n"
                     "\n"
                     "Options:\n"
                     "  -n, --pairs N           how many pairs are made (10)\n"
                     "      --share X           which share of them is long enough to need a second\n"
                     "                          line here\n"
                     "  -o, --output DIR        where they are written\n"
                     "  -d, --dry-run           only say what would be done\n"
                     "  -v, --verbose           say more\n"
                     "      --mode zero|mean|uniform\n"
                     "                          in place of a head\n"
                     "      --name NAME         a name; may be given again\n"
                     "      --set KEY=VALUE     sets an option of the configuration, over what the\n"
                     "                          file says; may be given again\n"
                     "      --json              print JSON in place of text\n"
                     "      --threads N         how many threads work (all cores); results do not\n"
                     "                          depend on it\n"
                     "  -q, --quiet             show no progress and no notes\n"
                     "      --help-config       print every option of the configuration and end\n"
                     "  -h, --help              print this help and end\n"
                     "      --version           print the version and end\n"
                     "\n"
                     "Exit status: 0 done, 1 the run failed, 2 wrong usage or configuration.\n");
    ck_assert_ptr_nonnull(strstr(MAKE("--help-config")->out, "\n  heads: 8    # a whole number, 1 to 1024\n"));
}
END_TEST

/* ---- verbs ------------------------------------------------------------------------------------------------------- */

static const hw_cli_entry verbs[] = {{"make", &make, "makes"}, {"again", &make, "makes again"}, {NULL, NULL, NULL}};
static const hw_cli_command family = {.usage = "VERB ...", .description = "A family.", .verbs = verbs};

START_TEST(help_of_verbs)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    hw_cli_help(f, "family", &family);
    fclose(f);
    ck_assert_str_eq(text, "usage: headwise family VERB ...\n\nA family.\n\n"
                           "  make                    makes\n"
                           "  again                   makes again\n\n"
                           "headwise family make --help tells more.\n");
    free(text);
}
END_TEST

/* ---- the program ------------------------------------------------------------------------------------------------- */

START_TEST(program)
{
    const outcome *o = RUN("headwise");
    ck_assert_int_eq(o->status, 2);
    ck_assert_str_eq(o->out, "");
    ck_assert(strstr(o->err, "usage: headwise COMMAND ...\n") == o->err);
    o = RUN("/usr/bin/headwise", "--help");
    ck_assert_int_eq(o->status, 0);
    ck_assert(strstr(o->out, "usage: headwise COMMAND ...\n") == o->out);
    for (const hw_cli_entry *c = hw_cli_commands(); c->name; c++) {
        char line[64];
        snprintf(line, sizeof line, "\n  %s  ", c->name);
        ck_assert_ptr_nonnull(strstr(o->out, line));
    }
    ck_assert_str_eq(RUN("headwise", "--version")->out, "headwise " HW_VERSION "\n");
    ck_assert_ptr_nonnull(strstr(RUN("headwise", "--help-config")->out, "\ntraining:\n"));
    o = RUN("headwise", "--quiet", "x");
    ck_assert_int_eq(o->status, 2);
    ck_assert_str_eq(o->err, "headwise: --quiet stands before any command; usage: headwise COMMAND ...\n");
    o = RUN("headwise", "zzzzzzzzzz");
    ck_assert_int_eq(o->status, 2);
    ck_assert_str_eq(o->err, "headwise: there is no command zzzzzzzzzz; headwise --help lists what there is\n");
}
END_TEST

static void check_help(const outcome *o, const char *name)
{
    ck_assert_msg(o->status == 0 && *o->out && !*o->err, "%s --help: %s", name, o->err);
    char *help = strdup(o->out);
    for (char *line = strtok(help, "\n"); line; line = strtok(NULL, "\n"))
        ck_assert_msg(hw_cli_width(line) <= 82, "%s --help: %s", name, line);
    free(help);
}

/* No name and no letter stands for two options, the common ones included; each has its help. */
static void check_options(const hw_cli_command *command, const char *name)
{
    const hw_cli_option *all[128];
    int count = 0;
    for (; count < command->option_count; count++) all[count] = &command->options[count];
    const hw_cli_option *common;
    while ((common = hw_cli_common_option(command->takes, count - command->option_count))) all[count++] = common;
    for (int i = 0; i < count; i++) {
        ck_assert_msg(*all[i]->help && (all[i]->kind == HW_CLI_FLAG) == !all[i]->value, "%s --%s", name, all[i]->name);
        for (int k = 0; k < i; k++)
            ck_assert_msg(strcmp(all[i]->name, all[k]->name) && (!all[i]->letter || all[i]->letter != all[k]->letter),
                          "%s --%s and --%s", name, all[i]->name, all[k]->name);
    }
}

static void check_verbs(const hw_cli_entry *c)
{
    const outcome *o = RUN("headwise", c->name);
    ck_assert_msg(o->status == 2 && strstr(o->err, ": which? usage: headwise "), "%s: %s", c->name, o->err);
    o = RUN("headwise", c->name, "zzzzzzzz");
    ck_assert_msg(o->status == 2 && strstr(o->err, ": there is no verb zzzzzzzz; "), "%s: %s", c->name, o->err);
    for (const hw_cli_entry *verb = c->command->verbs; verb->name; verb++) {
        char misspelt[64];
        snprintf(misspelt, sizeof misspelt, "%sx", verb->name);
        ck_assert_ptr_nonnull(strstr(RUN("headwise", c->name, misspelt)->err, verb->name));
        check_help(RUN("headwise", c->name, verb->name, "--help"), verb->name);
        check_help(RUN("headwise", "help", c->name, verb->name), verb->name);
        check_options(verb->command, verb->name);
    }
}

/* Behind the name of a command, help is a word like others. */
START_TEST(a_model_called_help)
{
    const outcome *o = RUN("bin/score", "help", "no", "such");
    ck_assert_int_eq(o->status, 1);
    ck_assert_str_eq(o->err, "headwise: help: there is no such model directory\n");
}
END_TEST

START_TEST(every_command)
{
    for (const hw_cli_entry *c = hw_cli_commands(); c->name; c++) {
        char path[64], misspelt[64];
        snprintf(path, sizeof path, "bin/%s", c->name);
        snprintf(misspelt, sizeof misspelt, "%sx", c->name);
        check_help(RUN(path, "--help"), c->name);
        check_help(RUN("headwise", c->name, "--help"), c->name);
        check_help(RUN("headwise", "help", c->name), c->name);
        ck_assert_ptr_nonnull(strstr(RUN("headwise", misspelt)->err, c->name));
        if (c->command->verbs) {
            check_verbs(c);
            continue;
        }
        check_options(c->command, c->name);
        const outcome *o = RUN("headwise", c->name, "--zzzzzzzzzzz");
        ck_assert_msg(o->status == 2 && strstr(o->err, "unknown option --zzzzzzzzzzz"), "%s: %s", c->name, o->err);
    }
}
END_TEST

static int version_to_full_disk(void *unused)
{
    (void)unused;
    int full = open("/dev/full", O_WRONLY);
    dup2(full, STDOUT_FILENO);
    char *words[] = {"headwise", "--version", NULL};
    return hw_cli_main(2, words);
}

static int version_to_closed_output(void *unused)
{
    (void)unused;
    close(STDOUT_FILENO);
    char *words[] = {"headwise", "--version", NULL};
    int status = hw_cli_main(2, words);
    return open("/dev/null", O_RDONLY) == STDOUT_FILENO ? 9 : status; /* the next file must not take its place */
}

static int version_to_nobody(void *unused)
{
    (void)unused;
    int ends[2];
    if (pipe(ends)) return 9;
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    char *words[] = {"headwise", "--version", NULL};
    return hw_cli_main(2, words);
}

/* Standard output is a small pipe that does not wait, as whoever shares it may have set; it is read late. */
static int help_to_a_slow_reader(void *unused)
{
    (void)unused;
    int ends[2], status;
    char block[4096];
    ssize_t got;
    if (pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, 4096) < 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK)) return 9;
    pid_t reader = fork();
    if (!reader) {
        close(ends[1]);
        usleep(50000);
        while ((got = read(ends[0], block, sizeof block)) > 0)
            if (write(STDOUT_FILENO, block, (size_t)got) != got) _exit(9);
        _exit(got < 0);
    }
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    int told = hw_cli_main(2, (char *[]){"headwise", "--help-config", NULL});
    close(STDOUT_FILENO);
    return waitpid(reader, &status, 0) != reader || status ? 9 : told;
}

START_TEST(a_slow_reader_is_waited_for)
{
    const outcome *o = RUN("headwise", "--help-config");
    ck_assert(!o->status && strlen(o->out) > 3 * 4096);
    char *whole = strdup(o->out);
    o = run_captured(help_to_a_slow_reader, NULL);
    ck_assert_msg(!o->status && !*o->err, "%d %s", o->status, o->err);
    ck_assert_str_eq(o->out, whole);
    free(whole);
}
END_TEST

START_TEST(output_that_cannot_be_written)
{
    static const struct {
        int (*call)(void *);
        const char *reason;
    } cases[] = {{version_to_full_disk, "No space left on device"},
                 {version_to_closed_output, "Bad file descriptor"},
                 {version_to_nobody, "Broken pipe"}};
    for (int i = 0; i < 3; i++) {
        const outcome *o = run_captured(cases[i].call, NULL);
        char expected[128];
        snprintf(expected, sizeof expected, "headwise: standard output could not be written: %s\n", cases[i].reason);
        ck_assert_str_eq(o->err, expected);
        ck_assert_int_eq(o->status, 1);
    }
}
END_TEST

/* ---- configuration ----------------------------------------------------------------------------------------------- */

static int load_config(void *words)
{
    hw_cli cli = {.arena = hw_arena_new(0), .name = "make"};
    const char **given = words;
    for (cli.set.items = given + 1; given[cli.set.count + 1];) cli.set.count++;
    hw_config *config = hw_cli_config(&cli, given[0]);
    if (config) printf("%lld", (long long)config->model.heads);
    hw_arena_free(cli.arena);
    return config ? HW_CLI_DONE : HW_CLI_USAGE;
}

START_TEST(configurations)
{
    const char *path = scratch_text("c.yaml", "model: {width: 64, heads: 4}\ntraining: {max_steps: 10}\n");
    char expected[512];
    const outcome *o = run_captured(load_config, (const char *[]){path, "model.heads=2", NULL});
    ck_assert_str_eq(o->out, "2");
    snprintf(expected, sizeof expected,
             "headwise: %s:2:23: training.max_steps: 10 steps are fewer than training.warmup_steps 4000, so the "
             "learning rate "
             "never reaches training.learning_rate\n",
             path);
    ck_assert_str_eq(o->err, expected);
    o = run_captured(load_config, (const char *[]){path, "model.width=66", NULL});
    ck_assert_int_eq(o->status, 2);
    ck_assert_str_eq(o->err, "headwise: --set: model.heads: 4 does not divide model.width 66\n");
    o = run_captured(load_config, (const char *[]){path, "model.hedas=66", NULL});
    ck_assert_str_eq(o->err, "headwise: --set: unknown key model.hedas; did you mean model.heads?\n");
    o = run_captured(load_config, (const char *[]){scratch_path("none"), NULL});
    ck_assert_int_eq(o->status, 2);
}
END_TEST

/* ---- progress ---------------------------------------------------------------------------------------------------- */

static int show_progress(void *argument)
{
    hw_cli cli = {.quiet = argument && !strcmp(argument, "quiet")};
    hw_cli_progress shown = hw_cli_progress_new(&cli);
    for (int i = 0; i <= 400; i++) {
        hw_progress p = {.what = "train", .done = 1000 + i * 10, .total = 5000, .seconds = i * 0.25,
                         .detail = "loss 2.31", .last = i == 400};
        hw_cli_progress_show(&p, &shown);
        if (i == 4) hw_cli_say("a message");
    }
    return 0;
}

START_TEST(progress_in_lines)
{
    const outcome *o = run_captured(show_progress, NULL);
    ck_assert_str_eq(o->err,
                     "headwise: a message\n"
                     "train 1,080/5,000, 21 %, loss 2.31, 1:38 left\n"
                     "train 1,200/5,000, 24 %, loss 2.31, 1:35 left\n"
                     "train 1,380/5,000, 27 %, loss 2.31, 1:31 left\n"
                     "train 1,650/5,000, 33 %, loss 2.31, 1:24 left\n"
                     "train 2,060/5,000, 41 %, loss 2.31, 1:14 left\n"
                     "train 2,670/5,000, 53 %, loss 2.31, 0:58 left\n"
                     "train 3,590/5,000, 71 %, loss 2.31, 0:35 left\n"
                     "train 4,960/5,000, 99 %, loss 2.31, 0:01 left\n"
                     "train 5,000/5,000, 100 %, loss 2.31, 1:40\n");
    ck_assert_str_eq(run_captured(show_progress, "quiet")->err, "headwise: a message\n");
}
END_TEST

START_TEST(progress_on_a_terminal)
{
    struct winsize size = {.ws_row = 24, .ws_col = 30};
    int master, slave, saved = dup(STDERR_FILENO);
    ck_assert_int_eq(openpty(&master, &slave, NULL, NULL, &size), 0);
    dup2(slave, STDERR_FILENO);
    hw_cli cli = {0};
    hw_cli_progress shown = hw_cli_progress_new(&cli);
    for (int i = 1; i <= 3; i++) {
        hw_progress p = {
            .what = "train", .done = i, .total = 3, .seconds = i, .detail = "loss 2.31 and more", .last = i == 3};
        hw_cli_progress_show(&p, &shown);
        if (i == 2) hw_cli_say("hello");
    }
    dup2(saved, STDERR_FILENO);
    close(slave);
    char text[1024] = "";
    size_t used = 0;
    for (ssize_t got; (got = read(master, text + used, sizeof text - 1 - used)) > 0;) used += (size_t)got;
    ck_assert_str_eq(text,
                     "train 1/3, 33 %, loss 2.31 an\r\x1b[Ktrain 2/3, 66 %, loss 2.31 an\r\x1b[Kheadwise: hello\r\n"
                     "train 3/3, 100 %, loss 2.31 and more, 0:03\r\n");
    close(master);
}
END_TEST

/* ---- text -------------------------------------------------------------------------------------------------------- */

START_TEST(numbers_for_people)
{
    char text[32];
    static const struct {
        int64_t number;
        const char *text;
    } counts[] = {{0, "0"},       {999, "999"},      {1000, "1,000"},        {-1, "-1"},
                  {-999, "-999"}, {-1000, "-1,000"}, {1234567, "1,234,567"}, {INT64_MIN, "-9,223,372,036,854,775,808"}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        ck_assert_str_eq(hw_thousands(counts[i].number, text), counts[i].text);
    static const struct {
        double seconds;
        const char *text;
    } durations[] = {{0, "0:00"},       {59.4, "0:59"},        {59.6, "1:00"}, {3599, "59:59"},
                     {3600, "1:00:00"}, {360000, "100:00:00"}, {-5, "0:00"},   {1e300, "0:00"}};
    static const struct {
        int64_t number;
        const char *word;
    } words[] = {{0, "lines"}, {1, "line"}, {2, "lines"}, {-1, "lines"}, {11, "lines"}, {INT64_MAX, "lines"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_str_eq(hw_plural(words[i].number, "line", "lines"), words[i].word);
    for (size_t i = 0; i < sizeof durations / sizeof *durations; i++)
        ck_assert_str_eq(hw_cli_duration(durations[i].seconds, text), durations[i].text);
}
END_TEST

START_TEST(widths)
{
    ck_assert_int_eq(hw_cli_width(""), 0);
    ck_assert_int_eq(hw_cli_width("été"), 3);
    ck_assert_int_eq(hw_cli_width("e\xcc\x81"), 1);
    ck_assert_int_eq(hw_cli_width("漢字"), 4);
    ck_assert_int_eq(hw_cli_width("\xff"), 1);
}
END_TEST

START_TEST(tables)
{
    hw_arena *arena = hw_arena_new(0);
    hw_cli_table *t = hw_cli_table_new(arena, "lrl");
    static const char *const cells[] = {"head", "score", "role", "été", "1", "a", "x", "100.25", "long one"};
    for (int i = 0; i < 9; i++) hw_cli_cell(t, "%s", cells[i]);
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    hw_cli_table_print(t, f);
    fclose(f);
    ck_assert_str_eq(text, "head   score  role\n"
                           "été        1  a\n"
                           "x     100.25  long one\n");
    free(text);
    hw_arena_free(arena);
}
END_TEST

Suite *test_cli_scaffold(void);
Suite *test_cli_scaffold(void)
{
    Suite *suite = suite_create("cli");
    TCase *t = tcase_create("scaffold");
    tcase_add_checked_fixture(t, scratch_begin, scratch_end);
    tcase_add_loop_test(t, words_are_read, 0, sizeof calls / sizeof *calls);
    tcase_add_test(t, too_many_threads);
    tcase_add_test(t, help_of_a_command);
    tcase_add_test(t, help_of_verbs);
    tcase_add_test(t, program);
    tcase_add_test(t, a_model_called_help);
    tcase_add_test(t, every_command);
    tcase_add_test(t, a_slow_reader_is_waited_for);
    tcase_add_test(t, output_that_cannot_be_written);
    tcase_add_test(t, configurations);
    tcase_add_test(t, progress_in_lines);
    tcase_add_test(t, progress_on_a_terminal);
    tcase_add_test(t, numbers_for_people);
    tcase_add_test(t, widths);
    tcase_add_test(t, tables);
    suite_add_tcase(suite, t);
    return suite;
}
