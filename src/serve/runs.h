/* The runs of the dashboard: a table in memory, kept up to date (runs.c), and the source of its rows, a folder or a
 * database (source.c).  Every open has a close; a row owns its strings. */
#ifndef IPW_SERVE_RUNS_H
#define IPW_SERVE_RUNS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "port/file.h"

struct json;
struct request;
struct serve_options;
struct summary_field;
struct text;

/* Columns of the table that do not come from the run index; the others are in rundir/record.def. */
#define ROWS_OWN(TEXT, NUMBER)                                                                     \
    TEXT(NAME, "name", none)                                                                       \
    TEXT(KIND, "kind", none)                                                                       \
    TEXT(STATE, "state", none)                                                                     \
    NUMBER(CREATED, "created_at", none)                                                            \
    TEXT(PRECISION, "precision", none)

enum run_column {
#define ROW(constant, name, index) ROW_##constant,
    ROWS_OWN(ROW, ROW)
#undef ROW
#define ROW_TEXT(constant, name, index)   (ROW_##constant, )
#define ROW_NUMBER(constant, name, index) (ROW_##constant, )
#include "rundir/record.def"
        ROW_COLUMNS
};

/* One run.  Unknown numbers are UNKNOWN, unknown strings NULL. */
struct run_row {
    char *id;
    double written_at;              /* mtime of the source file, to detect changes */
    bool is_final;                  /* the run has ended */
    bool is_attempt;                /* of a sweep: found by its id, but not listed */
    struct sweep_best {             /* of a sweep; cached after the first request */
        char *conclusion, *setting; /* one sentence; the setting with the least energy */
        double saving_pct, plus_minus_pct;
    } *best; /* NULL: not computed */
    union {
        char *text;
        double number;
    } values[ROW_COLUMNS];
};
extern const struct run_row_column {
    const char *name;
    int index; /* enum summary_index */
    bool is_text;
} ROW_COLUMN[ROW_COLUMNS];
/* The figure of record.def that a column has, if pages show its label; else NULL. */
const struct summary_field *run_row_figure(enum run_column column);
void run_row_release(struct run_row *row);
void run_row_to_json(const struct run_row *row,
                     struct json *json); /* as members of an open object */

struct row_source;

/* Creates a temporary folder in $TMPDIR. */
enum err scratch_folder(char to[static FILE_PATH_MAX], struct error *why) MUST_USE;

/* take: takes ownership of the row.  keep: whether the table keeps the row with this id and time. */
struct row_handler {
    void (*take)(void *context, struct run_row *row);
    bool (*keep)(void *context, const char *id, double written_at);
    void *context;
};

enum err row_source_open(const struct serve_options *options, struct row_source **out,
                         struct error *why) MUST_USE;
void row_source_close(struct row_source *source);
const char *row_source_display(const struct row_source *source);
/* Reads a run directory as a row with this id. */
enum err run_row_of(const char *directory, const char *id, struct run_row *out) MUST_USE;
/* Whether it may have changed since the last read. */
bool row_source_changed(struct row_source *source);
enum err row_source_read(struct row_source *source, const struct row_handler *handler,
                         struct error *why) MUST_USE;
enum err row_source_directory(struct row_source *source, const char *id,
                              char to[static FILE_PATH_MAX], struct error *why) MUST_USE;

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
/* Newest first, without attempts of sweeps; NULL past the last. */
struct run_row *runs_at(struct runs *runs, size_t i);
bool runs_match(const struct request *request, const struct run_row *row); /* by its filters */
/* Writes a run's row as members of an open object, also of an attempt that is not in the table. */
enum err runs_put(struct runs *runs, const char *id, const char *directory, struct json *json,
                  struct error *why) MUST_USE;

/* Runs in progress, as a JSON array. */
void runs_running(struct runs *runs, struct text *out);

bool runs_is_loaded(struct runs *runs); /* the first scan has completed */
size_t runs_count(struct runs *runs);
const char *runs_display(const struct runs *runs); /* folder or database address, without secrets */
/* The directory of a run, also of an attempt of a sweep ("SWEEP/points/p001_r1"); for a database, of a copy.
 * ERR_NOT_FOUND: none. */
enum err runs_directory(struct runs *runs, const char *id, char to[static FILE_PATH_MAX],
                        struct error *why) MUST_USE;

#endif
