/* The sections of a run's report, which the page renders: each *_fill function adds its keys to the open group of a
 * result, each *_put function, for many rows, to the open JSON object.  Callers own the arguments; results_of fills what
 * results_release frees. */
#ifndef IPW_REPORT_HTML_SECTIONS_H
#define IPW_REPORT_HTML_SECTIONS_H

#include <stddef.h>

#include "core/err.h"
#include "core/result.h"
#include "rundir/run_table.h"

struct json;
struct spans;

enum { RESULTS_MAX = 32 };

struct results {
    struct result items[RESULTS_MAX];
    size_t count;
};

/* The columns required by the analyses. */
struct run_wanted results_need(void);
enum err results_of(const struct run_table *table, struct results *out, struct error *why) MUST_USE;
void results_release(struct results *results);

/* "analyses": {name: result}. */
void results_put(struct json *json, const struct results *results);

/* An element of "sweeps": {"name", "directory", "result": of the analysis sweep}. */
enum err sweep_put(struct json *json, const char *directory, struct error *why) MUST_USE;

/* "headline": [{"key", "figure", "value", "text", "note"}]: `text` is the formatted figure, with its ± if known, and
 * `note` its basis.  Unknown figures are shown as such. */
void headline_fill(const struct run_table *table, const struct results *results,
                   struct result *out);

/* "agent": null without traces.jsonl; else {"count", "queries": [{"key", "joules", ..., "spans": [...]}]}, the most
 * expensive queries. */
enum err agent_put(struct json *json, const char *directory, struct error *why) MUST_USE;

/* Columns required for queries_put. */
#define QUERIES_NEED                                                                               \
    (RUN_WANT(RUN_INDEX) | RUN_WANT(RUN_REPEAT) | RUN_WANT(RUN_START) | RUN_WANT(RUN_JOULES) |     \
     RUN_WANT(RUN_PLUS_MINUS) | RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_TTFT) |                       \
     RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_OUTPUT_TOKENS))

/* "queries": {"rows", "listed", "subjects": [...], and the COLUMNs "index", "repeat", "start", "joules",
 * "plus_minus", "latency_s", "ttft_s", "input_tokens", "output_tokens", "subject", "flags", "from_s", "lane"}; and
 * "others": attempts that failed and judgments, "kinds", "row", "from_s", "length_s", "lane", "start".  Of more than
 * `max` queries evenly picked ones are listed.  Bits of `flags`: 1 right, 2 wrong, 4 failed, 8 low confidence. */
void queries_put(struct json *json, const struct run_table *table, const struct spans *spans,
                 size_t max);

/* "excerpts": [{"at", "problem", "expected", "answer"}], `at` an index of the listed queries, of which there are at
 * most `max_listed`. */
void excerpts_put(struct json *json, const struct run_table *table, size_t max_listed);

/* "timelines": one of each start of the run that left samples or spans:
 *   {"start", "from", "step", "count", "in_flight": COLUMN, "missing",
 *    "power": [{"name", "device", "source", "mean": COLUMN, "least": COLUMN, "largest": COLUMN}]}
 * `missing` is why there is no power, or null. */
void timeline_put(struct json *json, const struct run_table *table, const struct spans *spans);

/* "predicted": null without DIR/estimate.json; else the estimate of a request, under the keys of the headline, or
 * {"note"} why it is invalid. */
void predicted_fill(const char *directory, struct result *out);

/* "files": [{"name", "href", "bytes"}] of existing files; href is relative to the page's folder. */
void files_fill(const char *directory, const char *page, struct result *out);

/* "command": string, or null if the summary lacks the options. */
void command_fill(const struct run_table *table, struct result *out);

/* ---- columns of many numbers (column.c) ---- */

/* A column of many numbers as a short text: quantized to a few bytes each, in base64.  The page shows
 * three or four digits of a figure, and a hundred thousand queries must stay a small file.
 *
 *   {"same": x}                                   every value is x, or null
 *   {"first": a, "by": d}                         a, a + d, a + 2 d ...
 *   {"bytes": b, "low": l, "step": s, "data": t}  l + code x s; little-endian codes of b bytes
 *   {..., "log": true}                            l x exp(code x s)
 * A code of all ones is null. */

/* Integers are exact; others are quantized to `bytes` (2 or 3) of their range, or of its logarithm if all are
 * positive. */
void column_put(struct json *json, const char *key, const double *values, size_t count,
                unsigned bytes);

/* Quantized evenly over the range: for times. */
void column_put_even(struct json *json, const char *key, const double *values, size_t count,
                     unsigned bytes);

/* ---- the files of the page, embedded at build time (assets.c) ---- */

/* Our own from web/report, and ECharts if it was installed.  Constants of the program; never freed. */
struct asset {
    const char *bytes;
    size_t length;
};

/* By its name in the template: "style", "charts.js" ...; {NULL, 0} if there is none. */
struct asset asset_find(const char *name, size_t length);
struct asset asset_template(void);

#endif
