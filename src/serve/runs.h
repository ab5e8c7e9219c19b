/* The runs of the dashboard: a table in memory, kept up to date (runs.c), and where its rows come from, a folder or a
 * database (source.c).  open gives what close frees; a row owns its texts. */
#ifndef IPW_SERVE_RUNS_H
#define IPW_SERVE_RUNS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "port/file.h"

struct json;
struct request;
struct serve_options;
struct text;

enum run_column {
#define RUN_TEXT(constant, name, index)   ROW_##constant,
#define RUN_NUMBER(constant, name, index) ROW_##constant,
#include "serve/columns.def"
#undef RUN_TEXT
#undef RUN_NUMBER
    ROW_COLUMNS
};

/* One run.  Numbers that are not known are UNKNOWN, texts NULL. */
struct run_row {
    char *id;
    double written_at;              /* of what it was read from: another one is another row */
    bool is_final;                  /* the run has ended */
    bool is_attempt;                /* of a sweep: found by its id, and in no list */
    struct sweep_best {             /* of a sweep, kept from when it was asked for */
        char *conclusion, *setting; /* a sentence; the setting of the least energy */
        double saving_pct, plus_minus_pct;
    } *best; /* NULL: not yet */
    union {
        char *text;
        double number;
    } values[ROW_COLUMNS];
};
extern const struct run_row_column {
    const char *name, *index;
    bool is_text;
} ROW_COLUMN[ROW_COLUMNS];
void run_row_release(struct run_row *row);
void run_row_to_json(const struct run_row *row, struct json *json); /* members of an open object */

struct row_source;

/* A new folder in $TMPDIR. */
enum err scratch_folder(char to[static FILE_PATH_MAX], struct error *why) MUST_USE;

/* take: takes the row over.  keep: whether the row of this id, written at this time, is there already and stays. */
struct row_taker {
    enum err (*take)(void *context, struct run_row *row);
    bool (*keep)(void *context, const char *id, double written_at);
    void *context;
};

enum err row_source_open(const struct serve_options *options, struct row_source **out,
                         struct error *why) MUST_USE;
void row_source_close(struct row_source *source);
const char *row_source_shown(const struct row_source *source);
/* The row of a run directory, under this id. */
enum err run_row_of(const char *directory, const char *id, struct run_row *out) MUST_USE;
/* Whether it may differ from what was read last. */
bool row_source_changed(struct row_source *source);
enum err row_source_read(struct row_source *source, const struct row_taker *taker,
                         struct error *why) MUST_USE;
enum err row_source_directory(struct row_source *source, const char *id,
                              char to[static FILE_PATH_MAX], struct error *why) MUST_USE;

/* ---- the table ---- */

struct runs;

enum err runs_open(const struct serve_options *options, struct runs **out, struct error *why)
    MUST_USE;
void runs_close(struct runs *runs);

/* Looks what has changed, if the last look was long enough ago.  One thread calls this and what reads rows; the others
 * may be called by any. */
enum err runs_refresh(struct runs *runs, struct error *why) MUST_USE;
/* The next look is due at once, by any thread: a run that we started has ended. */
void runs_expire(struct runs *runs);
enum err runs_page(struct runs *runs, const struct request *request, struct json *json,
                   struct error *why) MUST_USE;
/* The newest first, without attempts of sweeps; NULL behind the last. */
struct run_row *runs_at(struct runs *runs, size_t i);
bool runs_pass(const struct request *request, const struct run_row *row); /* its filters */
/* The row of a run, as members of an open object, also of an attempt that is in no table. */
enum err runs_put(struct runs *runs, const char *id, const char *directory, struct json *json,
                  struct error *why) MUST_USE;

/* Those that are being measured, as a JSON array. */
void runs_running(struct runs *runs, struct text *out);

bool runs_are_read(struct runs *runs); /* a first time */
size_t runs_count(struct runs *runs);
const char *runs_shown(const struct runs *runs); /* where they are, without secrets */
/* The directory of a run, also of an attempt of a sweep ("SWEEP/points/p001_r1"); of a database, a copy of it.
 * ERR_NOT_FOUND for an unknown one. */
enum err runs_directory(struct runs *runs, const char *id, char to[static FILE_PATH_MAX],
                        struct error *why) MUST_USE;

#endif
