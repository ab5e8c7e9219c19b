/* Writes metrics in Prometheus' text format or, for a client that asks for it, in OpenMetrics.
 *
 * All samples of a family follow one another: exposition_family, then for each sample its labels and its value.  The
 * header of a family is written with its first sample, so that one without samples leaves nothing.  The text is the
 * caller's. */
#ifndef IPW_WIRE_EXPOSITION_H
#define IPW_WIRE_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

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

#endif
