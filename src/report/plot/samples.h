/* Reading samples.csv and spans.jsonl for pictures: power by channel, gauges, and requests.
 * What is read is released by the caller. */
#ifndef IPW_REPORT_PLOTS_SAMPLES_H
#define IPW_REPORT_PLOTS_SAMPLES_H

#include <stddef.h>

#include "core/err.h"

struct power_sample {
    double t, watts, sum; /* watts is UNKNOWN after a gap */
};

struct power_channel {
    char device[128], channel[64], scope[32];
    struct power_sample *samples;
    size_t count, capacity;
};

struct power_samples {
    struct power_channel *channels;
    size_t count, capacity;
};

/* Those of a start, from 1.  Of every device the outermost part that has a meter, once: no channel's
 * joules are in another's.  ERR_NO_DATA without the file, and without a sample of power. */
enum err power_samples_read(const char *directory, unsigned start, struct power_samples *out,
                            struct error *why) MUST_USE;
void power_samples_release(struct power_samples *samples);

/* A reading of what is no power: a clock, how busy a device is.  Texts are good until the next one. */
struct gauge_sample {
    const char *sensor, *device, *quantity;
    double t, sum;  /* sum: of value and time, as far as readings cover that */
    double covered; /* of the time since the one before, a share; or UNKNOWN */
};

/* Those of a start, each channel's in the order of time, until take returns anything but ERR_OK.
 * ERR_NO_DATA without the file. */
enum err gauge_samples_each(const char *directory, unsigned start,
                            enum err (*take)(void *context, const struct gauge_sample *sample),
                            void *context, struct error *why) MUST_USE;

struct request_span {
    double from, first_token, to; /* in seconds of its start; first_token may be UNKNOWN */
    unsigned start;
};

struct request_spans {
    struct request_span *items;
    size_t count, capacity;
};

/* Requests of all starts that have ended, in no order.  ERR_NO_DATA without one. */
enum err request_spans_read(const char *directory, struct request_spans *out, struct error *why)
    MUST_USE;
void request_spans_release(struct request_spans *spans);

#endif
