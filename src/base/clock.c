/* Time for progress lines and measurements. It comes from the monotonic clock, so that setting the machine's clock back
 * changes no duration. */
#include <headwise/base.h>

#include <time.h>

double hw_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
