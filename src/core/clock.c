#include "core/clock.h"

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "core/text.h"

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

/* Two clocks cannot be read at the same instant, and the thread may be preempted between the two reads, on a busy
 * machine for longer than what callers treat as a suspend. So one clock is read before and after the other, and the
 * pair is repeated while the two reads are far apart. */
#define SKEW_MAX    NS_PER_MS
#define SKEW_TRIALS 20

static nanos offset_of(nanos (*clock)(void))
{
    nanos offset = 0, min = INT64_MAX;
    for (int i = 0; i < SKEW_TRIALS && min > SKEW_MAX; i++) {
        nanos before = current->monotonic();
        nanos t = clock();
        nanos skew = current->monotonic() - before;
        if (skew < min) {
            offset = t - before - skew / 2;
            min = skew;
        }
    }
    return offset;
}

nanos clock_wall_offset(void)
{
    return offset_of(current->wall);
}

nanos clock_suspended(void)
{
    return offset_of(current->boot);
}

char *clock_text(char *to, nanos wall)
{
    time_t whole = (time_t)(wall / NS_PER_S);
    struct tm parts;
    char day[32];
    gmtime_r(&whole, &parts);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
    str_format(to, CLOCK_TEXT_MAX, "%s.%03dZ", day, (int)(wall % NS_PER_S / NS_PER_MS));
    return to;
}

void clock_replace(const struct clock_source *source)
{
    current = source ? source : &KERNEL;
}

/* ---- the clock of another host ---- */

/* The largest slew that a kernel applies when NTP corrects a clock; crystals drift a tenth of that. */
#define DRIFT_PPM 500

static nanos drift(nanos elapsed)
{
    return (elapsed > 0 ? elapsed : -elapsed) / (1000000 / DRIFT_PPM);
}

bool clock_offset_add(struct clock_offset *clock, nanos sent, nanos answered, nanos server)
{
    nanos since = drift(answered - sent); /* the server read its clock at some point between */
    struct clock_offset seen = {.is_known = true,
                                .low = server - answered - since,
                                .high = server - sent + since,
                                .t = answered};
    bool agrees = true;
    if (clock->is_known) {
        nanos slack = drift(answered - clock->t);
        nanos low = clock->low - slack, high = clock->high + slack;
        agrees = low <= seen.high && high >= seen.low;
        if (agrees && low > seen.low)
            seen.low = low;
        if (agrees && high < seen.high)
            seen.high = high;
    }
    *clock = seen;
    return agrees;
}

nanos clock_offset_to_local(const struct clock_offset *clock, nanos server)
{
    return server - clock->low - (clock->high - clock->low) / 2;
}

nanos clock_offset_error(const struct clock_offset *clock, nanos now)
{
    return (clock->high - clock->low) / 2 + drift(now - clock->t);
}
