/* The raw samples of a session as CSV, so that what was measured can be re-attributed later: rows
 * t_s,sensor,device,channel,scope,quantity,unit,value,sum,covered,t_plus_minus_s with t_s counted from
 * `zero`.  samples_read.h reads it.
 *
 * A log is written as the run goes: every call appends what is new, in one piece as far as that is
 * small.  samples_log_init gives a log that samples_log_release takes back. */
#ifndef IPW_RUNNER_SAMPLES_CSV_H
#define IPW_RUNNER_SAMPLES_CSV_H

#include "core/err.h"
#include "core/units.h"

struct sampler;

#define SAMPLES_HEADER                                                                             \
    "t_s,sensor,device,channel,scope,quantity,unit,value,sum,covered,t_plus_minus_s\n"

/* A channel's newest point that was written. */
struct samples_written {
    nanos t;       /* INT64_MIN before the first */
    nanos covered; /* as in struct timeline_point */
};

struct samples_log {
    struct sampler *sampler;
    nanos zero;
    struct samples_written *written; /* one for each channel of each source */
    enum err (*put)(const char *bytes,
                    void *context); /* gets the bytes in pieces; ERR_OK to go on */
    void *context;
};

enum err samples_log_init(struct samples_log *log, struct sampler *sampler, nanos zero,
                          enum err (*put)(const char *bytes, void *context), void *context)
    MUST_USE;
enum err samples_log_append(struct samples_log *log) MUST_USE;
void samples_log_release(struct samples_log *log);

/* All of it at once. */
enum err samples_to_csv(struct sampler *sampler, nanos zero,
                        enum err (*put)(const char *bytes, void *context), void *context) MUST_USE;

#endif
