/* Prometheus' text format: writing metrics, and reading those of a server. */
#ifndef IPW_WIRE_PROMETHEUS_H
#define IPW_WIRE_PROMETHEUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct text;

/* ---- writing ---- */

/* Writes metrics in Prometheus' text format or, for a client that asks for it, in OpenMetrics.
 *
 * All samples of a family follow one another: exposition_family, then for each sample its labels and its value.  The
 * header of a family is written with its first sample, so that one without samples leaves nothing.  The text is the
 * caller's. */

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_family {
    const char *name; /* of a counter without "_total", which is added */
    enum metric_type type;
    const char *unit; /* the end of the name: "joules"; "" for none */
    const char *help; /* one sentence */
};

struct exposition {
    struct text *out;
    bool open_metrics;
    const struct metric_family *family;
    bool is_headed;
};

/* Whether an Accept header (NULL: none) prefers OpenMetrics; and the Content-Type of each format. */
bool exposition_is_open_wanted(const char *accept);
const char *exposition_content_type(bool open_metrics);

void exposition_family(struct exposition *to, const struct metric_family *family);

/* One sample: `labels` and `more` were made with exposition_label, or are "".  An unknown value is left out. */
void exposition_sample(struct exposition *to, const char *labels, const char *more, double value);

/* The samples of a histogram without labels: counts of what is above the last bound and not above the next one, and at the
 * end of what is above all. */
struct metric_histogram {
    const double *bounds; /* upper ones, ascending */
    const uint64_t *counts;
    size_t bound_count;
    double sum;
};
void exposition_histogram(struct exposition *to, const struct metric_histogram *histogram);

/* After the last family. */
void exposition_end(struct exposition *to);

/* Appends name="value", escaped, with a comma where it is not the first. */
void exposition_label(struct text *labels, const char *name, const char *value);

/* ---- reading ---- */

/* The metrics of a server, and what they say of the time between two readings of them.
 *
 * A metric has a sample for each set of labels (model, engine, rank ...), which are added up here.  Counters and
 * buckets only grow until the server restarts: one that fell is counted from 0 again.  A line that is not understood is
 * left out.
 *
 * Ownership: a zeroed struct prometheus is empty; prometheus_parse fills it, prometheus_release frees it. */
struct prometheus_sample {
    char name[96];
    uint64_t series; /* of its labels, without le and quantile */
    double le;       /* upper bound of a bucket, INFINITY for the last; UNKNOWN: not a bucket */
    double quantile; /* of a summary; UNKNOWN: not a quantile */
    double value;    /* not a number too */
};

struct prometheus {
    struct prometheus_sample *items; /* by name, series, le and quantile */
    size_t count, capacity;
    size_t skipped; /* lines that were not understood */
};

/* Replaces the samples.  ERR_BAD_VALUE: none, though there is text; it is no such format. */
enum err prometheus_parse(struct prometheus *out, const char *text, size_t length,
                          struct error *why) MUST_USE;
void prometheus_release(struct prometheus *metrics);

/* Whether there is a histogram or summary of that name. */
bool prometheus_has(const struct prometheus *metrics, const char *name);

/* What a histogram or summary has observed between two readings. */
struct prometheus_window {
    double count;     /* observations */
    double mean;      /* UNKNOWN without any, or without a sum */
    double quantile;  /* likewise */
    bool is_at_least; /* the quantile is beyond the last bound, which is given */
    bool is_running;  /* of a summary: over the server's own time, not this one */
};
/* The quantile p (0..1) is interpolated in its bucket, as Prometheus does.  ERR_NOT_FOUND: the newer reading has no
 * such metric. */
enum err prometheus_between(const struct prometheus *older, const struct prometheus *newer,
                            const char *name, double p, struct prometheus_window *out) MUST_USE;

/* The bounds of a histogram around a value: low < value <= high; 0 and INFINITY where it has none. */
void prometheus_bounds(const struct prometheus *metrics, const char *name, double value,
                       double *low, double *high);

/* By how much a counter has grown; UNKNOWN where the newer reading has none. */
double prometheus_increase(const struct prometheus *older, const struct prometheus *newer,
                           const char *name);

#endif
