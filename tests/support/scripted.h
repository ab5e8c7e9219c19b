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
    const struct scripted_load
        *load; /* instead of all values: its own readings of a load; NULL: none */
};

/* A load by its running energy, and how a sensor reads it. */
struct scripted_load {
    double (*joules)(const void *context, double s); /* from 0 to s; also defined for negative s */
    const void *context;
    double period_s, offset_s; /* of readings; the first one at the offset */
    double
        sigma_s; /* of a counter: uncertainty of the times given to its ticks, which are Gaussian */
    double mean_s;         /* of power: each reading is a mean over this time; 0: momentary */
    double delay_s;        /* and it is that much later */
    bool is_interval_mean; /* the channel says that readings are means since the one before */
    double averaging_s;    /* the channel says that the meter averages over this time */
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
