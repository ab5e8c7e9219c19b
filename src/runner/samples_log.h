/* The points of a session's sampler as rows of samples.csv, written as the run goes: every call appends what is
 * new.
 *
 * The caller owns the sampler, which must outlive the log; samples_log_close closes the file and frees the rest. */
#ifndef IPW_RUNNER_SAMPLES_LOG_H
#define IPW_RUNNER_SAMPLES_LOG_H

#include "core/err.h"
#include "core/units.h"
#include "rundir/samples.h"

struct sampler;

/* A run's samples begin so long before it: where a slow sensor has its last reading. */
#define SAMPLES_LEAD (2 * NS_PER_S)

/* A channel's newest point that was written. */
struct samples_written {
    nanos t;       /* INT64_MIN before the first */
    nanos covered; /* as in struct timeline_point */
};

struct samples_log {
    struct sampler *sampler;
    nanos zero;  /* second 0 of the rows */
    nanos since; /* what a session sampled up to here is an earlier run's */
    struct samples_writer out;
    struct samples_written *written; /* one for each channel of each source */
};

/* `own`: the file is one of a run directory.  To be closed after an error, too. */
enum err samples_log_open(struct samples_log *log, struct sampler *sampler, nanos zero, nanos since,
                          const char *path, bool own, struct error *why) MUST_USE;
enum err samples_log_append(struct samples_log *log) MUST_USE;
enum err samples_log_close(struct samples_log *log);

/* All of it at once. */
enum err samples_log_save(struct sampler *sampler, nanos zero, nanos since, const char *path,
                          bool own, struct error *why) MUST_USE;

#endif
