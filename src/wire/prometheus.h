/* Prometheus' text format: writing metrics, and reading those of a server. */
#ifndef IPW_WIRE_PROMETHEUS_H
#define IPW_WIRE_PROMETHEUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct text;

/* ---- writing ---- */

/* Writes metrics in Prometheus' text format or, if the client prefers it, in OpenMetrics.
 *
 * All samples of a family are contiguous: exposition_family, then for each sample its labels and its value.  The header
 * of a family is written with its first sample, so a family without samples writes nothing.  The text belongs to the
 * caller. */

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_family {
    const char *name; /* for a counter without "_total", which is added */
    enum metric_type type;
    const char *unit; /* suffix of the name: "joules"; "" for none */
    const char *help; /* one sentence */
};

struct exposition {
    struct text *out;
    bool open_metrics;
    const struct metric_family *family;
    bool is_headed;
};

/* Whether an Accept header (NULL: none) prefers OpenMetrics; and the Content-Type of each format. */
bool exposition_wants_openmetrics(const char *accept);
const char *exposition_content_type(bool open_metrics);

void exposition_family(struct exposition *to, const struct metric_family *family);

/* One sample: `labels` and `more` come from exposition_label, or are "".  An unknown value is omitted. */
void exposition_sample(struct exposition *to, const char *labels, const char *more, double value);

/* A histogram without labels: non-cumulative counts of the buckets, the last one for +Inf. */
struct metric_histogram {
    const double *bounds; /* upper ones, ascending */
    const uint64_t *counts;
    size_t bound_count;
    double sum;
};
void exposition_histogram(struct exposition *to, const struct metric_histogram *histogram);

/* After the last family. */
void exposition_end(struct exposition *to);

/* Appends name="value", escaped, with a comma unless it is the first. */
void exposition_label(struct text *labels, const char *name, const char *value);

/* ---- reading ---- */

/* The metrics of a server, and their change between two scrapes.
 *
 * A metric has a sample for each label set (model, engine, rank ...), which are added up here.  Counters and buckets
 * only increase until the server restarts: one that decreased is counted from 0 again.  Lines that cannot be parsed are
 * skipped.
 *
 * Ownership: a zeroed struct prometheus is empty; prometheus_parse fills it, prometheus_release frees it. */
struct prometheus_sample {
    char name[96];
    uint64_t series; /* hash of its labels, without le and quantile */
    double le;       /* upper bound of a bucket, INFINITY for the last; UNKNOWN: not a bucket */
    double quantile; /* of a summary; UNKNOWN: not a quantile */
    double value;    /* may be NaN */
};

struct prometheus {
    struct prometheus_sample *items; /* by name, series, le and quantile */
    size_t count, capacity;
    size_t skipped; /* lines that could not be parsed */
};

/* Replaces the samples.  ERR_BAD_VALUE: text without any sample is not in this format. */
enum err prometheus_parse(struct prometheus *out, const char *text, size_t length,
                          struct error *why) MUST_USE;
void prometheus_release(struct prometheus *metrics);

/* Whether there is a histogram or summary of that name. */
bool prometheus_has(const struct prometheus *metrics, const char *name);

/* Observations of a histogram or summary between two scrapes. */
struct prometheus_window {
    double count;     /* observations */
    double mean;      /* UNKNOWN without any, or without a sum */
    double quantile;  /* the same */
    bool is_at_least; /* the quantile is above the last bound, which is returned */
    bool is_running;  /* for a summary: over the server's own window, not this one */
};
/* The quantile p (0..1) is interpolated in its bucket, as in Prometheus.  ERR_NOT_FOUND: the newer scrape has no such
 * metric. */
enum err prometheus_between(const struct prometheus *older, const struct prometheus *newer,
                            const char *name, double p, struct prometheus_window *out) MUST_USE;

/* The bounds of the histogram bucket of a value: low < value <= high; 0 and INFINITY if it has none. */
void prometheus_bounds(const struct prometheus *metrics, const char *name, double value,
                       double *low, double *high);

/* Increase of a counter; UNKNOWN if the newer scrape does not have it. */
double prometheus_increase(const struct prometheus *older, const struct prometheus *newer,
                           const char *name);

#endif
