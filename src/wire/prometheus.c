/* A hand-written parser: a name, labels in braces with three escapes, a number, optionally a timestamp and, in
 * OpenMetrics, an exemplar.  Samples are sorted, so that a sample of the older scrape is found by bisection, and a
 * histogram is contiguous.  Label sets are identified by an order-independent hash. */
#include "wire/prometheus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"

/* ---- writing ---- */

/* The two formats differ in the header of a counter, whose name has "_total" in one and not in the other, in the unit
 * line, and in the last line. */

static const char OPEN_METRICS[] = "application/openmetrics-text";

/* ---- negotiation ---- */

/* The weight (q) of a media type in an Accept header; 0 if it is not listed. */
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

bool exposition_wants_openmetrics(const char *accept)
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

/* With `quoted`, for a label value.  Control characters, which the format allows but a terminal would obey, are
 * displayed, except for the line feed, which has an escape of the format. */
static void add_escaped(struct text *out, const char *value, bool quoted)
{
    struct text repaired = {0};
    char shown[PLAIN_MAX];
    size_t taken;
    text_add_repaired(&repaired, value, strlen(value));
    const char *end = text_get(&repaired) + repaired.length;
    for (const char *at = text_get(&repaired); at < end; at += taken) {
        size_t length = plain_character(at, (size_t)(end - at), shown, &taken);
        if (*at == '\n')
            text_add(out, "\\n");
        for (size_t i = 0; i < length && *at != '\n'; i++) {
            if (shown[i] == '\\' || (shown[i] == '"' && quoted))
                text_add(out, "\\");
            text_add_bytes(out, shown + i, 1);
        }
    }
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

enum { SAMPLES_MAX = 1 << 18, LABEL_MAX = 256, NUMBER_MAX = 48 };

/* ---- one line ---- */

struct cursor {
    const char *at, *end;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static void skip_space(struct cursor *c)
{
    while (c->at < c->end && is_space(*c->at))
        c->at++;
}

static bool take_char(struct cursor *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* Up to white space or one of the characters in `stops`; false if it is empty or too long. */
static bool take_word(struct cursor *c, const char *stops, char *to, size_t size)
{
    const char *from = c->at;
    while (c->at < c->end && !is_space(*c->at) && (!*c->at || !strchr(stops, *c->at)))
        c->at++;
    size_t length = (size_t)(c->at - from);
    if (!length || length >= size || memchr(from, '\0', length))
        return false;
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

/* A quoted string; truncated to fit, but hashed completely through *hash. */
static bool take_quoted(struct cursor *c, char *to, size_t size, uint64_t *hash)
{
    size_t length = 0;
    if (!take_char(c, '"'))
        return false;
    while (c->at < c->end && *c->at != '"') {
        char byte = *c->at++;
        if (byte == '\\' && c->at < c->end) {
            byte = *c->at++;
            byte = (char)(byte == 'n' ? '\n' : byte);
        }
        *hash = hash_bytes(*hash, &byte, 1);
        if (length + 1 < size)
            to[length++] = byte;
    }
    to[length] = '\0';
    return take_char(c, '"');
}

/* Numbers as Go and Python write them. */
static bool read_number(const char *word, double *out)
{
    bool minus = *word == '-';
    const char *digits = word + (minus || *word == '+');
    if (str_equal_nocase(digits, "inf") || str_equal_nocase(digits, "infinity")) {
        *out = minus ? -INFINITY : INFINITY;
        return true;
    }
    if (str_equal_nocase(digits, "nan")) {
        *out = NAN;
        return true;
    }
    return parse_double(word, out) == ERR_OK;
}

/* One label, or the name in quotes that may be in its place. */
static bool take_label(struct cursor *c, struct prometheus_sample *sample)
{
    char name[LABEL_MAX], value[LABEL_MAX];
    uint64_t hash = HASH_START;
    skip_space(c);
    if (c->at < c->end && *c->at == '"') {
        if (sample->name[0] || !take_quoted(c, value, sizeof value, &hash))
            return false;
        return chars_copy(sample->name, value);
    }
    if (!take_word(c, "=,}\"", name, sizeof name) || !take_char(c, '='))
        return false;
    hash = hash_bytes(hash, name, strlen(name) + 1);
    if (!take_quoted(c, value, sizeof value, &hash))
        return false;
    if (str_equal(name, "le"))
        return read_number(value, &sample->le) && !isnan(sample->le);
    if (str_equal(name, "quantile"))
        return read_number(value, &sample->quantile) && sample->quantile >= 0 &&
               sample->quantile <= 1;
    sample->series += hash_mix(hash);
    return true;
}

static bool take_labels(struct cursor *c, struct prometheus_sample *sample)
{
    if (!take_char(c, '{'))
        return true;
    while (!take_char(c, '}'))
        if (!take_label(c, sample) || (!take_char(c, ',') && (c->at == c->end || *c->at != '}')))
            return false;
    return true;
}

/* A timestamp must be a number; "#" starts an exemplar. */
static bool take_rest(struct cursor *c)
{
    char word[NUMBER_MAX];
    double ignored;
    skip_space(c);
    if (c->at == c->end || *c->at == '#')
        return true;
    if (!take_word(c, "", word, sizeof word) || !read_number(word, &ignored))
        return false;
    skip_space(c);
    return c->at == c->end || *c->at == '#';
}

static bool read_sample(const char *line, size_t length, struct prometheus_sample *out)
{
    struct cursor c = {line, line + length};
    char word[NUMBER_MAX];
    *out = (struct prometheus_sample){.le = UNKNOWN, .quantile = UNKNOWN};
    skip_space(&c);
    if (c.at < c.end && *c.at != '{' && !take_word(&c, "{\"", out->name, sizeof out->name))
        return false;
    if (!take_labels(&c, out) || !out->name[0])
        return false;
    skip_space(&c);
    return take_word(&c, "", word, sizeof word) && read_number(word, &out->value) && take_rest(&c);
}

/* ---- a scrape ---- */

/* Unknown first, for a total order. */
static int compare_bounds(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(b) - isnan(a);
    return compare_numbers(a, b);
}

static int compare(const void *left, const void *right)
{
    const struct prometheus_sample *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    if (!order)
        order = (a->series > b->series) - (a->series < b->series);
    if (!order)
        order = compare_bounds(a->le, b->le);
    return order ? order : compare_bounds(a->quantile, b->quantile);
}

static void add_line(struct prometheus *out, const char *line, size_t length)
{
    struct prometheus_sample sample;
    while (length && (is_space(line[length - 1]) || line[length - 1] == '\r'))
        length--;
    size_t blank = 0;
    while (blank < length && is_space(line[blank]))
        blank++;
    if (blank == length || line[blank] == '#')
        return;
    if (out->count == SAMPLES_MAX || !read_sample(line, length, &sample)) {
        out->skipped++;
        return;
    }
    *XADD(out->items, out->count, out->capacity) = sample;
}

enum err prometheus_parse(struct prometheus *out, const char *text, size_t length,
                          struct error *why)
{
    const char *end = text + length;
    out->count = out->skipped = 0;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t line = (size_t)((stop ? stop : end) - text);
        add_line(out, text, line);
        text += line + 1;
    }
    if (!out->count && out->skipped)
        return err_set(why, ERR_BAD_VALUE, "not Prometheus' text format");
    if (out->count)
        qsort(out->items, out->count, sizeof *out->items, compare);
    return ERR_OK;
}

void prometheus_release(struct prometheus *metrics)
{
    free(metrics->items);
    *metrics = (struct prometheus){0};
}

/* The first sample with a name, or its insertion point. */
static size_t first_of(const struct prometheus *metrics, const char *name)
{
    size_t low = 0, high = metrics->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(metrics->items[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_name(const struct prometheus *metrics, size_t i, const char *name)
{
    return i < metrics->count && str_equal(metrics->items[i].name, name);
}

static bool part_of(const char *name, const char *suffix, char *to, size_t size)
{
    return str_join(to, size, name, suffix, "");
}

bool prometheus_has(const struct prometheus *metrics, const char *name)
{
    char part[sizeof metrics->items->name];
    return part_of(name, "_count", part, sizeof part) &&
           has_name(metrics, first_of(metrics, part), part);
}

void prometheus_bounds(const struct prometheus *metrics, const char *name, double value,
                       double *low, double *high)
{
    char part[sizeof metrics->items->name];
    *low = 0;
    *high = INFINITY;
    if (!part_of(name, "_bucket", part, sizeof part))
        return;
    for (size_t i = first_of(metrics, part); has_name(metrics, i, part); i++) {
        double le = metrics->items[i].le;
        if (le < value && le > *low)
            *low = le;
        if (le >= value && le < *high)
            *high = le;
    }
}

/* ---- between two scrapes ---- */

/* The same sample in the older scrape; 0 if it is new. */
static double value_before(const struct prometheus *older, const struct prometheus_sample *sample)
{
    const struct prometheus_sample *found =
        older->count ? bsearch(sample, older->items, older->count, sizeof *sample, compare) : NULL;
    return found && is_known(found->value) ? found->value : 0;
}

static double increase_of(const struct prometheus *older, const struct prometheus_sample *sample)
{
    double before = value_before(older, sample);
    if (!is_known(sample->value) || sample->value < 0)
        return 0;
    return sample->value >= before ? sample->value - before : sample->value;
}

double prometheus_increase(const struct prometheus *older, const struct prometheus *newer,
                           const char *name)
{
    size_t i = first_of(newer, name);
    double sum = has_name(newer, i, name) ? 0 : UNKNOWN;
    for (; has_name(newer, i, name); i++)
        sum += increase_of(older, &newer->items[i]);
    return sum;
}

struct bucket {
    double le, count;
};

static int compare_buckets(const void *left, const void *right)
{
    const struct bucket *a = left, *b = right;
    return compare_bounds(a->le, b->le);
}

/* A histogram was reset if one of its buckets was: the others may have exceeded their old counts. */
static bool was_reset(const struct prometheus *older, const struct prometheus_sample *series,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (series[i].value < value_before(older, &series[i]))
            return true;
    return false;
}

/* Non-cumulative bucket counts of one series; decreasing cumulative counts are ignored. */
static void add_series(const struct prometheus *older, const struct prometheus_sample *series,
                       size_t count, struct bucket *out)
{
    static const struct prometheus NONE;
    double below = 0;
    if (was_reset(older, series, count))
        older = &NONE;
    for (size_t i = 0; i < count; i++) {
        double up_to = is_known(series[i].value) ? increase_of(older, &series[i]) : below;
        out[i] = (struct bucket){series[i].le, fmax(0, up_to - below)};
        below = fmax(below, up_to);
    }
}

/* The quantile of ascending buckets, as in Prometheus: linear interpolation, the first bucket starts at 0. */
static void find_quantile(const struct bucket *buckets, size_t count, double p,
                          struct prometheus_window *out)
{
    double total = 0, below = 0, bound = 0, previous = 0;
    for (size_t i = 0; i < count; i++)
        total += buckets[i].count;
    for (size_t i = 0; i < count && total > 0; i++) {
        double inside = 0;
        for (bound = buckets[i].le; i + 1 < count && buckets[i + 1].le == bound; i++)
            inside += buckets[i].count;
        inside += buckets[i].count;
        if (below + inside >= p * total && inside > 0) {
            out->is_at_least = isinf(bound);
            if (out->is_at_least)
                out->quantile = previous;
            else if (bound <= 0)
                out->quantile = bound;
            else
                out->quantile = previous + (bound - previous) * (p * total - below) / inside;
            return;
        }
        below += inside;
        previous = bound > 0 ? bound : 0;
    }
}

static void quantile_of_buckets(const struct prometheus *older, const struct prometheus *newer,
                                const char *name, double p, struct prometheus_window *out)
{
    size_t first = first_of(newer, name), count = 0;
    while (has_name(newer, first + count, name))
        count++;
    struct bucket *buckets = xcalloc(count + 1, sizeof *buckets);
    for (size_t i = 0, length; i < count; i += length) {
        const struct prometheus_sample *series = &newer->items[first + i];
        for (length = 1; i + length < count && series[length].series == series->series;)
            length++;
        add_series(older, series, length, &buckets[i]);
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(buckets[i].le))
            buckets[kept++] = buckets[i];
    qsort(buckets, kept, sizeof *buckets, compare_buckets);
    find_quantile(buckets, kept, p, out);
    free(buckets);
}

/* The smallest quantile of a summary at or above p, for the label set with the largest value. */
static void quantile_of_summary(const struct prometheus *newer, const char *name, double p,
                                struct prometheus_window *out)
{
    double nearest = INFINITY;
    for (size_t i = first_of(newer, name); has_name(newer, i, name); i++)
        if (newer->items[i].quantile >= p - 1e-9)
            nearest = fmin(nearest, newer->items[i].quantile);
    for (size_t i = first_of(newer, name); has_name(newer, i, name); i++)
        if (newer->items[i].quantile == nearest && is_known(newer->items[i].value)) {
            out->quantile = fmax(out->quantile, newer->items[i].value); /* fmax skips UNKNOWN */
            out->is_running = true;
        }
}

enum err prometheus_between(const struct prometheus *older, const struct prometheus *newer,
                            const char *name, double p, struct prometheus_window *out)
{
    char part[sizeof newer->items->name];
    *out = (struct prometheus_window){.mean = UNKNOWN, .quantile = UNKNOWN};
    if (!prometheus_has(newer, name) || !part_of(name, "_count", part, sizeof part))
        return ERR_NOT_FOUND;
    out->count = prometheus_increase(older, newer, part);
    if (!(out->count > 0))
        return ERR_OK;
    if (part_of(name, "_sum", part, sizeof part))
        out->mean = ratio(prometheus_increase(older, newer, part), out->count);
    if (!part_of(name, "_bucket", part, sizeof part) ||
        !has_name(newer, first_of(newer, part), part)) {
        quantile_of_summary(newer, name, p, out);
        return ERR_OK;
    }
    quantile_of_buckets(older, newer, part, p, out);
    return ERR_OK;
}
