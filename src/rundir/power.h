/* The power of a run's devices over its time, out of samples.csv: for each channel that made a figure, the
 * mean, least and largest power in each of some thousand buckets.  The joules of a bucket are differences
 * of the running sum, so what is drawn adds up to what was counted.
 *
 * power_read fills what power_release frees. */
#ifndef IPW_RUNDIR_POWER_H
#define IPW_RUNDIR_POWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct summary;

struct power_channel {
    char sensor[96], device[96], name[96], scope[48];
    bool is_counter; /* of energy; else of power */
    bool shown;
    uint64_t rows;
    double first_t, last_t;
    double last_sum;            /* while it is read */
    double *joules, *covered_s; /* of each bucket, when shown */
    double *least, *largest;    /* watts; UNKNOWN in a bucket without a reading */
};

/* The time axis: bucket i is from + i x step and on, in seconds from the start of the queries. */
struct time_grid {
    double from, step;
    size_t count;
};

struct power {
    struct power_channel *channels;
    size_t count;
    struct time_grid grid;
    uint64_t damaged; /* lines that could not be read */
};

/* Of a start, from 1, in at most `buckets_most` buckets.  The sources of the summary's devices say which channels
 * count; where they name none, the outermost metered part of every device does, so that no joule is counted twice.
 * ERR_NOT_FOUND without the file, ERR_NO_DATA when nothing in it is of energy. */
enum err power_read(const char *directory, unsigned start, const struct summary *summary,
                    size_t buckets_most, struct power *out, struct error *why) MUST_USE;

/* Mean watts of a bucket; UNKNOWN where no reading covers it. */
double power_mean(const struct power_channel *channel, size_t bucket);

void power_release(struct power *power);

#endif
