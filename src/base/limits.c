/* How much memory there is to be had: the machine's, or what a limit leaves of it. A machine that promises more memory
 * than it has ends processes without a word, so whoever asks for much asks here first. */
#include <headwise/base.h>

#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* What this process has mapped already, which counts against `ulimit -v`. */
static double mapped(void)
{
    double pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%lf", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * (double)sysconf(_SC_PAGESIZE);
}

/* The limit of a control group, as containers have it; "max" is none. */
static double group_limit(void)
{
    double bytes = INFINITY;
    FILE *f = fopen("/sys/fs/cgroup/memory.max", "re");
    if (f && fscanf(f, "%lf", &bytes) != 1) bytes = INFINITY;
    if (f) fclose(f);
    return bytes;
}

double hw_memory_most(void)
{
    struct rlimit limit;
    double most = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    most = fmin(most, group_limit());
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        most = fmin(most, fmax((double)limit.rlim_cur - mapped(), 0));
    return most;
}
