/* samples.csv: every reading of every sensor during a start of a run, one row each.  samples-2.csv and so on are those
 * of later starts.  The rows are plain data, which the runner fills from the sampler's points.
 *
 * Ownership: a writer owns its file and buffer (samples_close); rows that are read are valid during the callback. */
#ifndef IPW_RUNDIR_SAMPLES_H
#define IPW_RUNDIR_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/text.h"
#include "port/file.h"

struct summary;

struct sample {
    double t_s; /* seconds since the start's queries began */
    const char *sensor, *device, *channel;
    const char *scope, *quantity, *unit; /* as core/quantity.h names them */
    double value;                        /* UNKNOWN for a counter's first point and after a gap */
    double sum;            /* running sum: joules, or value x time for other quantities */
    double covered;        /* share of the time since the previous row; or UNKNOWN */
    double t_plus_minus_s; /* UNKNOWN: t_s is exact */
};

/* ---- writing ---- */

struct samples_writer {
    struct output file; /* fd -1: not open */
    struct text text;
};

/* Writes the header; replaces an existing file.  `own`: it is in a run directory, and grows. */
enum err samples_create(struct samples_writer *writer, const char *path, bool own,
                        struct error *why) MUST_USE;

/* Rows are buffered, and written in blocks of 64 KiB and by samples_flush. */
enum err samples_add(struct samples_writer *writer, const struct sample *sample) MUST_USE;
enum err samples_flush(struct samples_writer *writer) MUST_USE;

/* Flushes and closes; returns the first error of the file. */
enum err samples_close(struct samples_writer *writer);

/* ---- reading ---- */

enum samples_kind {
    SAMPLES_ALL,
    SAMPLES_ENERGY, /* energy counters and power */
    SAMPLES_GAUGES, /* other quantities: clocks, utilization, temperature */
};

struct samples_query {
    enum samples_kind kind;
    const char *quantity; /* only this one; NULL: any */
    uint64_t bytes_max;   /* read evenly spaced pieces of a larger file, this many bytes; 0: all */
};

struct samples_found {
    uint64_t damaged; /* unreadable rows */
    bool in_part;     /* only pieces were read */
};

typedef enum err samples_take(void *context, const struct sample *sample);

/* The samples of a start, from 1, each channel's in the order of time, until `take` returns an error.  A last row
 * without a newline was truncated by a kill and is skipped.  ERR_NOT_FOUND: no such file, ERR_BAD_VALUE: missing
 * columns. */
enum err samples_read(const char *directory, unsigned start, const struct samples_query *query,
                      samples_take *take, void *context, struct samples_found *found,
                      struct error *why) MUST_USE;

/* The last start with a file; 0: none. */
unsigned samples_starts(const char *directory);

/* ---- power over time ---- */

/* Power of a run's devices over time, from samples.csv: for each channel used in the figures, the mean, minimum and
 * maximum power in each of some thousand buckets.  The joules of a bucket are differences of the running sum, so the
 * plot adds up to the total.
 *
 * power_read fills what power_release frees. */

struct power_channel {
    char sensor[96], device[96], name[96], scope[48];
    bool is_counter; /* of energy; else of power */
    bool shown;
    uint64_t rows;
    double first_t, last_t;
    double last_sum;            /* while reading */
    double *joules, *covered_s; /* of each bucket, if shown */
    double *min, *max;          /* watts; UNKNOWN in a bucket without a reading */
};

/* The time axis: bucket i starts at from + i x step, in seconds since the start of the queries. */
struct time_grid {
    double from, step;
    size_t count;
};

struct power {
    struct power_channel *channels;
    size_t count;
    struct time_grid grid;
    uint64_t damaged; /* unreadable lines */
};

/* For a start, from 1, in at most `buckets_max` buckets.  The sources of the summary's devices determine the channels;
 * if there are none, the outermost metered domain of every device is used, so that no joule is counted twice.
 * ERR_NOT_FOUND: no file, ERR_NO_DATA: no energy in it. */
enum err power_read(const char *directory, unsigned start, const struct summary *summary,
                    size_t buckets_max, struct power *out, struct error *why) MUST_USE;

/* Mean watts of a bucket; UNKNOWN if no reading covers it. */
double power_mean(const struct power_channel *channel, size_t bucket);

void power_release(struct power *power);

#endif
