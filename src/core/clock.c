#include "core/clock.h"

#include <stddef.h>
#include <time.h>

static nanos read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (nanos)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static nanos kernel_monotonic(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static nanos kernel_boot(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

static nanos kernel_wall(void)
{
    return read_clock(CLOCK_REALTIME);
}

static const struct clock_source KERNEL = {kernel_monotonic, kernel_boot, kernel_wall};
static const struct clock_source *current = &KERNEL;

nanos clock_now(void)
{
    return current->monotonic();
}

nanos clock_wall(void)
{
    return current->wall();
}

nanos clock_suspended(void)
{
    /* Two reads cannot be simultaneous; but a suspend takes seconds, the skew is well under a millisecond, and callers
     * compare with a threshold far above it. */
    nanos mono = current->monotonic();
    return current->boot() - mono;
}

void clock_replace(const struct clock_source *source)
{
    current = source ? source : &KERNEL;
}
