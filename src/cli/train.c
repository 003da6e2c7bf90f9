/* train: trains what a configuration says, or goes on where an earlier call stopped. */
#include <signal.h>
#include <string.h>

#include <headwise/train.h>

#include "cli/cli.h"

typedef struct options {
    bool overwrite, dry_run;
} options;

static const hw_cli_option table[] = {
    {"overwrite", 0, NULL, HW_CLI_FLAG, offsetof(options, overwrite), "begin anew, whatever the model directory holds",
     .low = 0},
    {"dry-run", 0, NULL, HW_CLI_FLAG, offsetof(options, dry_run),
     "check configuration and data, print counts, parameters, memory and a time estimate, and train nothing", .low = 0},
};

static const hw_cli_rule rules[] = {{"dry-run", HW_CLI_EXCLUDES, "overwrite", ", for a dry run writes nothing"}, {0}};

static volatile int stop, running; /* stop: the signal that came */

/* The first Ctrl-C (or SIGTERM, SIGHUP) lets the step finish and saves; the second, or one before there are steps
 * (vocabularies take their time), ends at once, which loses nothing saved. Either way the program ends by the signal, so
 * that a script does not go on with what is not finished. */
static void on_signal(int number)
{
    if (stop || !running) hw_cli_end_by(number);
    stop = number;
}

static void say(const char *line, void *context) { hw_cli_note(context, "%s", line); }

static int dry_run(hw_cli *cli, const hw_config *config)
{
    hw_error err;
    const char *text = hw_train_dry_run(config, cli->arena, &err);
    if (!text) return hw_cli_fail(&err);
    fputs(text, stdout);
    return HW_CLI_DONE;
}

/* What ended, and how it can go on. */
static void tell_end(hw_cli *cli, const hw_config *config, const hw_train_result *result)
{
    const char *directory = config->training.model_dir;
    long long step = (long long)result->step;
    if (result->out_of_patience)
        hw_cli_note(
            cli,
            "%s ended at step %lld, after %lld %s without a better one. A larger training.patience (0: none) "
            "goes on, --overwrite begins anew",
            directory, step, (long long)config->training.patience,
            hw_plural(config->training.patience, "validation", "validations"));
    else if (result->finished_before)
        hw_cli_note(
            cli,
            "%s is finished: %lld of %lld %s done. A larger training.max_steps goes on, --overwrite begins anew",
            directory, step, (long long)config->training.max_steps,
            hw_plural(config->training.max_steps, "step is", "steps are"));
    if (result->best_step)
        hw_cli_note(cli, "%s/model.safetensors is the best one, of step %lld", directory, (long long)result->best_step);
    else hw_cli_note(cli, "%s/model.safetensors is the last one, of step %lld", directory, step);
}

static void tell(hw_cli *cli, const hw_config *config, const hw_train_result *result, bool overwrite)
{
    char time[32], rate[32];
    double seconds = result->seconds > 0 ? result->seconds : 1;
    if (!result->finished_before)
        hw_cli_note(cli, "%s at step %lld after %s, %s target tokens/s", result->stopped ? "stopped" : "finished",
                    (long long)result->step, hw_cli_duration(result->seconds, time),
                    hw_thousands((int64_t)((double)result->target_tokens / seconds), rate));
    if (result->skipped)
        hw_cli_note(cli, "%lld %s skipped, because the loss or gradient was not finite",
                    (long long)result->skipped, hw_plural(result->skipped, "step was", "steps were"));
    if (result->stopped)
        hw_cli_say("everything is saved in %s; the same command%s goes on from here", config->training.model_dir,
                   overwrite ? " without --overwrite" : "");
    else tell_end(cli, config, result);
}

static int run(hw_cli *cli)
{
    options o = {0};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    hw_config *config = hw_cli_config(cli, cli->arguments[0]);
    if (!config) return HW_CLI_USAGE;
    static const char *const required[] = {"training.model_dir", "data.dir", NULL};
    hw_error err;
    if (!hw_config_require(config, required, &err)) return hw_cli_refuse(&err);
    if (o.dry_run) return dry_run(cli, config);
    hw_cli_catch(SIGINT, on_signal);
    hw_cli_catch(SIGTERM, on_signal);
    hw_cli_catch(SIGHUP, on_signal); /* the terminal is gone */
    hw_cli_progress progress = hw_cli_progress_new(cli);
    hw_train_options train = {.overwrite = o.overwrite, .progress = hw_cli_progress_show, .progress_context = &progress,
                              .say = say, .say_context = cli, .stop = &stop, .running = &running};
    hw_train_result result;
    if (!hw_train(config, &train, &result, &err)) return hw_cli_fail(&err);
    tell(cli, config, &result, o.overwrite);
    if (result.stopped) {
        fflush(NULL);
        hw_cli_end_by(stop);
    }
    return HW_CLI_DONE;
}

const hw_cli_command hw_cli_train = {
    .usage = "CONFIG",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_SET,
    .description =
        "Trains the network that CONFIG describes into its training.model_dir: model.safetensors (the best so far by "
        "training.metric, the last where nothing is validated), checkpoint.safetensors, the vocabularies, a complete "
        "config.yaml, "
        "train.tsv, valid.tsv and curves.svg.\n\n"
        "The same command goes on where an earlier one was stopped or killed, and ends with the same bytes as if it "
        "had not been. "
        "Ctrl-C finishes the step and saves; a second Ctrl-C, or one before the first step, ends at once and loses nothing "
        "saved; both end the program by the signal. training.model_dir, "
        "data.dir, "
        "--threads, a larger training.max_steps and a larger training.patience may differ from call to call; with "
        "anything else "
        "changed the directory is refused.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = rules,
    .run = run,
};
