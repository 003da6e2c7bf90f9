/* headwise bench: how fast this machine does the work, how near that is to what it could do, and where the time goes.
 *
 * The modes are verbs, a file each. What they have in common stands in bench.h; what is measured, in
 * docs/benchmarks.md. */
#include "cli/bench.h"

static const hw_cli_entry verbs[] = {
    {"machine", &hw_bench_machine, "what this machine is and how fast it multiplies"},
    {"train", &hw_bench_train, "steps of training"},
    {"decode", &hw_bench_decode, "translation in batches"},
    {"latency", &hw_bench_latency, "translation of one sentence at a time, on one thread"},
    {"multiply", &hw_bench_multiply, "our multiplications beside those of OpenBLAS, at every shape of a network"},
    {NULL, NULL, NULL},
};

const hw_cli_command hw_cli_bench = {
    .usage = "machine|train|decode|latency|multiply ...",
    .description =
        "Measures this machine. SIZE is toy, tiny, small or base (2, 4, 6 and 6 layers a side of width 64, 128, 256 "
        "and 512).\n"
        "\n"
        "Shares of the roof are useful work over what the threads could do: the multiplications of real tokens a "
        "second, over what one thread's multiplication of 1024 x 1024 x 1024 does in the same run, times the threads.",
    .verbs = verbs,
};
