/* The two formats differ in the header of a counter, whose name has "_total" in one and not in the other, in the line
 * of the unit, and in the last line. */
#include "wire/exposition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"

static const char OPEN_METRICS[] = "application/openmetrics-text";

/* ---- negotiation ---- */

/* The weight of a media type in an Accept header; 0 where it is not named. */
static double weight_of(const char *accept, const char *type)
{
    size_t length = strlen(type);
    for (const char *range = accept; range && *range; range = strchr(range, ',')) {
        range += strspn(range, ", \t");
        size_t end = strcspn(range, ",");
        if (strncmp(range, type, length) != 0 || !strchr("; \t,", range[length]))
            continue;
        for (const char *at = range + length; at < range + end; at++)
            if (at[0] == ';' && str_starts(at + 1 + strspn(at + 1, " \t"), "q="))
                return strtod(at + 1 + strspn(at + 1, " \t") + 2, NULL);
        return 1;
    }
    return 0;
}

bool exposition_is_open_wanted(const char *accept)
{
    double open = accept ? weight_of(accept, OPEN_METRICS) : 0;
    return open > 0 && open >= weight_of(accept, "text/plain");
}

const char *exposition_content_type(bool open_metrics)
{
    return open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                        : "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- families and samples ---- */

/* With `quoted`, as the value of a label. */
static void add_escaped(struct text *out, const char *value, bool quoted)
{
    struct text repaired = {0};
    text_add_repaired(&repaired, value, strlen(value));
    for (const char *at = text_get(&repaired); *at; at++)
        if (*at == '\n')
            text_add(out, "\\n");
        else if (*at == '\\' || (*at == '"' && quoted)) {
            text_add(out, "\\");
            text_add_bytes(out, at, 1);
        } else
            text_add_bytes(out, at, 1);
    out->failed |= repaired.failed;
    text_release(&repaired);
}

void exposition_label(struct text *labels, const char *name, const char *value)
{
    if (labels->length)
        text_add(labels, ",");
    text_add(labels, name);
    text_add(labels, "=\"");
    add_escaped(labels, value, true);
    text_add(labels, "\"");
}

void exposition_family(struct exposition *to, const struct metric_family *family)
{
    to->family = family;
    to->is_headed = false;
}

static const char *suffix(const struct metric_family *family)
{
    return family->type == METRIC_COUNTER ? "_total" : "";
}

static void add_header(struct exposition *to)
{
    static const char *const TYPES[] = {
        [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};
    const struct metric_family *family = to->family;
    const char *end = to->open_metrics ? "" : suffix(family);
    text_addf(to->out, "# HELP %s%s ", family->name, end);
    add_escaped(to->out, family->help, to->open_metrics);
    text_addf(to->out, "\n# TYPE %s%s %s\n", family->name, end, TYPES[family->type]);
    if (to->open_metrics && family->unit[0])
        text_addf(to->out, "# UNIT %s %s\n", family->name, family->unit);
    to->is_headed = true;
}

static void add_value(struct text *out, double value)
{
    text_add(out, " ");
    if (isinf(value)) {
        text_add(out, value > 0 ? "+Inf" : "-Inf");
    } else {
        struct json json;
        json_init(&json, out, false);
        json_number(&json, NULL, value); /* the same digits everywhere */
    }
    text_add(out, "\n");
}

void exposition_sample(struct exposition *to, const char *labels, const char *more, double value)
{
    struct text *out = to->out;
    if (isnan(value))
        return;
    if (!to->is_headed)
        add_header(to);
    text_add(out, to->family->name);
    text_add(out, suffix(to->family));
    if (labels[0] || more[0]) {
        text_add(out, "{");
        text_add(out, labels);
        text_add(out, labels[0] && more[0] ? "," : "");
        text_add(out, more);
        text_add(out, "}");
    }
    add_value(out, value);
}

void exposition_histogram(struct exposition *to, const struct metric_histogram *histogram)
{
    const char *name = to->family->name;
    uint64_t count = 0;
    add_header(to);
    for (size_t i = 0; i <= histogram->bound_count; i++) {
        count += histogram->counts[i];
        if (i < histogram->bound_count)
            text_addf(to->out, "%s_bucket{le=\"%g\"}", name, histogram->bounds[i]);
        else
            text_addf(to->out, "%s_bucket{le=\"+Inf\"}", name);
        add_value(to->out, (double)count);
    }
    text_addf(to->out, "%s_sum", name);
    add_value(to->out, histogram->sum);
    text_addf(to->out, "%s_count", name);
    add_value(to->out, (double)count);
}

void exposition_end(struct exposition *to)
{
    if (to->open_metrics)
        text_add(to->out, "# EOF\n");
}
