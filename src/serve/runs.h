/* The runs of the dashboard: the run index, kept up to date and asked for pages (runs.c), and the source of its rows, a
 * folder or a database (source.c).  Every open has a close. */
#ifndef IPW_SERVE_RUNS_H
#define IPW_SERVE_RUNS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "port/file.h"
#include "rundir/run_index.h"
#include "rundir/run_row.h"

struct json;
struct request;
struct serve_options;
struct text;

void run_row_to_json(const struct run_row *row,
                     struct json *json); /* as members of an open object */

struct row_source;

/* Creates a temporary folder in $TMPDIR, whose path the caller frees. */
enum err scratch_folder(char **to, struct error *why) MUST_USE;

/* take: of a row, and its summary if it has one.  keep: whether the table keeps the row with this id and time. */
struct row_handler {
    void (*take)(void *context, const struct run_row *row, const struct summary *summary);
    bool (*keep)(void *context, const char *id, int64_t written_at);
    void *context;
};

enum err row_source_open(const struct serve_options *options, struct row_source **out,
                         struct error *why) MUST_USE;
void row_source_close(struct row_source *source);
const char *row_source_display(const struct row_source *source);
/* The folder of runs; NULL for a database. */
const char *row_source_folder(const struct row_source *source);
/* Whether it may have changed since the last read. */
bool row_source_changed(struct row_source *source);
enum err row_source_read(struct row_source *source, const struct row_handler *handler,
                         struct error *why) MUST_USE;
/* The caller frees the path; NULL after an error. */
enum err row_source_directory(struct row_source *source, const char *id, char **to,
                              struct error *why) MUST_USE;

/* ---- the table ---- */

struct runs;

enum err runs_open(const struct serve_options *options, struct runs **out, struct error *why)
    MUST_USE;
void runs_close(struct runs *runs);

/* Scans for changes, if the last scan is long enough ago.  Only one thread may call this and the functions that read
 * rows; the others are thread-safe. */
enum err runs_refresh(struct runs *runs, struct error *why) MUST_USE;
/* Makes the next scan due at once: a run that we started has ended.  Thread-safe. */
void runs_expire(struct runs *runs);
enum err runs_page(struct runs *runs, const struct request *request, struct json *json,
                   struct error *why) MUST_USE;
/* What the filters of a request ask for. */
void runs_filter(const struct request *request, struct run_query *out);
enum err runs_select(struct runs *runs, const struct run_query *query, run_take_row *take,
                     void *context, struct error *why) MUST_USE;

/* Copies of rows, for callers that take their time with each; rows_release frees them. */
struct rows {
    struct run_row **rows;
    size_t count, capacity;
};
enum err runs_copy(struct runs *runs, const struct run_query *query, struct rows *out,
                   struct error *why) MUST_USE;
void rows_release(struct rows *rows);

/* What the setting with the least energy of a sweep saves, cached until the sweep changes; the caller fills it in. */
struct sweep_best {
    char *id;
    int64_t written_at;
    unsigned scan;
    bool is_computed;
    char *conclusion, *setting; /* owned: one sentence; the setting */
    double saving_pct, plus_minus_pct;
};
/* Valid until the next call. */
struct sweep_best *runs_sweep_best(struct runs *runs, const struct run_row *row);

/* Writes a run's row as members of an open object, also of an attempt that is not in the index. */
enum err runs_put(struct runs *runs, const char *id, const char *directory, struct json *json,
                  struct error *why) MUST_USE;

/* Runs in progress, as a JSON array. */
void runs_running(struct runs *runs, struct text *out);

bool runs_is_loaded(struct runs *runs); /* the first scan has completed */
size_t runs_count(struct runs *runs);
const char *runs_display(const struct runs *runs); /* folder or database address, without secrets */
/* The directory of a run, also of an attempt of a sweep ("SWEEP/points/p001_r1"); for a database, of a copy.
 * ERR_NOT_FOUND: none.  The caller frees the path; NULL after an error. */
enum err runs_directory(struct runs *runs, const char *id, char **to, struct error *why) MUST_USE;

#endif
