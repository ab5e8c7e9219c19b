/* Sensors that replay a script into a real sampler: a test says what each channel draws and when it
 * fails, and the whole history is available immediately, dated by the script and not by the clock,
 * so that no figure depends on how busy the machine is. One machine at a time; scripted_start
 * begins it and scripted_stop frees everything. */
#ifndef TESTS_SUPPORT_SCRIPTED_H
#define TESTS_SUPPORT_SCRIPTED_H

#include <stdbool.h>

#include "core/quantity.h"
#include "core/units.h"

struct sampler;

/* Readings are this far apart, and the history this long. */
#define SCRIPTED_STEP   (10 * NS_PER_MS)
#define SCRIPTED_LENGTH (4 * NS_PER_S)
#define SCRIPTED_POINTS (SCRIPTED_LENGTH / SCRIPTED_STEP + 1)

struct scripted_channel {
    const char *name, *device;
    enum quantity quantity;
    enum scope scope;
    int location;
    double value; /* watts of a counter or a power sensor, else the reading itself */
    bool estimated, secondary;
    double relative_accuracy;
    bool dead;                   /* a counter that never changes */
    bool missing;                /* every reading fails with ERR_IO */
    double ends_s;               /* no reading after this; 0: to the end */
    double reset_s;              /* a counter restarts from 0 here; 0: never */
    double step_s, step_value;   /* from step_s on the value is step_value; 0: never */
    const double *profile;       /* instead of all these: SCRIPTED_POINTS values, one per step */
    double gap_from_s, gap_to_s; /* no reading between these; 0: none */
};

/* Starts a sampler over sensors "test:0", "test:1" ..., one for each NULL-name-ended list of
 * channels; `sensors` ends with NULL.  Returns when all of the script has been read. */
struct sampler *scripted_start(const struct scripted_channel *const *sensors);
void scripted_stop(struct sampler *sampler);

/* The same, but readings later than s are available only after scripted_resume: a sampler that is behind. */
struct sampler *scripted_start_until(const struct scripted_channel *const *sensors, double s);
void scripted_resume(void);

/* s seconds into the script. */
nanos scripted_time(double s);

#endif
