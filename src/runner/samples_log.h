/* Writes the points of a session's sampler as rows of samples.csv, incrementally: every call appends new points.
 *
 * The caller owns the sampler, which must outlive the log; samples_log_close closes the file and frees everything
 * else. */
#ifndef IPW_RUNNER_SAMPLES_LOG_H
#define IPW_RUNNER_SAMPLES_LOG_H

#include "core/err.h"
#include "core/units.h"
#include "rundir/samples.h"

struct sampler;

/* A run's samples start this long before it, to include the last reading of a slow sensor. */
#define SAMPLES_LEAD (2 * NS_PER_S)

/* The newest written point of a channel. */
struct samples_written {
    nanos t;       /* INT64_MIN before the first */
    nanos covered; /* as in struct timeline_point */
};

struct samples_log {
    struct sampler *sampler;
    nanos zero;  /* origin of the times in the rows */
    nanos since; /* earlier samples belong to another run of the session */
    struct samples_writer out;
    struct samples_written *written; /* one per channel of each source */
};

/* `own`: the file is part of a run directory.  Must be closed even after an error. */
enum err samples_log_open(struct samples_log *log, struct sampler *sampler, nanos zero, nanos since,
                          const char *path, bool own, struct error *why) MUST_USE;
enum err samples_log_append(struct samples_log *log) MUST_USE;
enum err samples_log_close(struct samples_log *log);

/* All points in one call. */
enum err samples_log_save(struct sampler *sampler, nanos zero, nanos since, const char *path,
                          bool own, struct error *why) MUST_USE;

#endif
