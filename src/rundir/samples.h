/* samples.csv: every reading of every sensor during a start of a run, one row each.  samples-2.csv and so on
 * are those of later starts.  The rows are plain data; the runner makes them of the sampler's points.
 *
 * Ownership: a writer owns its file and buffer (samples_close); rows that are read are valid during the call
 * that gets them. */
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
    double t_s; /* seconds from the moment at which the start began with its queries */
    const char *sensor, *device, *channel;
    const char *scope, *quantity, *unit; /* as core/quantity.h names them */
    double value;                        /* UNKNOWN of a counter's first point and after a gap */
    double sum;            /* running: joules, or value x time of what has no joules */
    double covered;        /* share of the time since the row before; or UNKNOWN */
    double t_plus_minus_s; /* UNKNOWN where t_s is exact */
};

/* ---- writing ---- */

struct samples_writer {
    struct output file; /* of fd -1: not open */
    struct text text;
};

/* Writes the columns' names; replaces a file that is there.  `own`: it is in a run directory, and grows. */
enum err samples_create(struct samples_writer *writer, const char *path, bool own,
                        struct error *why) MUST_USE;

/* Rows go out together, in pieces of 64 KiB and with samples_flush. */
enum err samples_add(struct samples_writer *writer, const struct sample *sample) MUST_USE;
enum err samples_flush(struct samples_writer *writer) MUST_USE;

/* Flushes and closes; the first error of the file. */
enum err samples_close(struct samples_writer *writer);

/* ---- reading ---- */

enum samples_kind {
    SAMPLES_ALL,
    SAMPLES_ENERGY, /* energy counters and power */
    SAMPLES_GAUGES, /* what gives no joules: clocks, utilization, temperature */
};

struct samples_query {
    enum samples_kind kind;
    const char *quantity; /* of this one alone; NULL: any */
    uint64_t
        bytes_max; /* of a larger file evenly spread pieces, so many bytes in total; 0: no limit */
};

struct samples_found {
    uint64_t damaged; /* rows that cannot be read */
    bool in_part;     /* pieces were read */
};

typedef enum err samples_take(void *context, const struct sample *sample);

/* Those of a start, from 1, each channel's in the order of time, until `take` returns anything but ERR_OK.  A
 * last row without its line end was cut by a kill and is left out.  ERR_NOT_FOUND without the file, ERR_BAD_VALUE
 * when it does not have the columns. */
enum err samples_read(const char *directory, unsigned start, const struct samples_query *query,
                      samples_take *take, void *context, struct samples_found *found,
                      struct error *why) MUST_USE;

/* The last start that has a file; 0: none has. */
unsigned samples_starts(const char *directory);

/* ---- power over time ---- */

/* The power of a run's devices over its time, out of samples.csv: for each channel that made a figure, the
 * mean, least and largest power in each of some thousand buckets.  The joules of a bucket are differences
 * of the running sum, so what is drawn adds up to what was counted.
 *
 * power_read fills what power_release frees. */

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
