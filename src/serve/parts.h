/* Inside the dashboard: requests and answers (request.c), workers (jobs.c), the table of runs (runs.c and where its rows
 * come from, source.c), runs that are started (launch.c), the embedded files (assets.c), and the functions of the API.  Private to this folder. */
#ifndef IPW_SERVE_PARTS_H
#define IPW_SERVE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "port/file.h"
#include "serve/serve.h"

struct event_loop;
struct http_exchange;

/* ---- request.c ---- */

enum { PARAMS_MAX = 32, FILE_NAME_MAX = 512, PATH_ID_MAX = 2 };

/* What a client asks for, decoded; it owns its texts. */
struct request {
    struct text bytes; /* that the others point into */
    const char *path;
    const char *ids[PATH_ID_MAX]; /* what stands in the place of {id} and {name} */
    struct {
        const char *name, *value;
    } params[PARAMS_MAX];
    size_t param_count;
    struct text body;
};

/* ERR_USAGE for a target that is malformed. */
enum err request_read(const char *target, struct request *out, struct error *why) MUST_USE;
void request_release(struct request *request);
/* Whether its path is like "/api/v1/runs/{id}"; fills in ids. */
bool request_matches(struct request *request, const char *pattern);
/* The value of a parameter; NULL without it, or if it is empty. */
const char *request_param(const struct request *request, const char *name);
/* A segment of a path, or a value. */
void request_encode(struct text *to, const char *string);
/* ERR_USAGE for a parameter that is not among these, separated by blanks, or is given twice unless its name ends in
 * "*" there. */
enum err request_check(const struct request *request, const char *names, struct error *why)
    MUST_USE;
/* A whole number from least to most; stays as it is without one. */
enum err request_count(const struct request *request, const char *name, unsigned least,
                       unsigned most, unsigned *inout, struct error *why) MUST_USE;

struct api_answer {
    int status; /* 0: 200 */
    const char *type;
    const char *policy;           /* Content-Security-Policy; NULL: that of the pages */
    char file[FILE_NAME_MAX];     /* of a download; "" */
    char location[FILE_NAME_MAX]; /* header; "" */
    struct text body;
};

/* {"error": {...}} with the status that suits the error. */
void answer_error(struct api_answer *answer, enum err err, const char *message);
void answer_status(struct api_answer *answer, int status, const char *code, const char *message);

/* ---- access.c ---- */

#define SESSION_COOKIE "ipw_session"
/* ACCESS_RATE: requests per second of one address, ACCESS_BURST at once; ACCESS_TRIES: wrong tokens per minute. */
enum { SESSION_ID_MAX = 33, ACCESS_RATE = 200, ACCESS_BURST = 2000, ACCESS_TRIES = 10 };

struct access;

struct access *access_new(void);
void access_free(struct access *access);
bool access_may_ask(struct access *access, const char *peer, nanos now);
bool access_may_try(struct access *access, nanos now); /* after a wrong token */
/* A new session; false without random numbers. */
bool access_begin(struct access *access, nanos now, char id[static SESSION_ID_MAX]);
/* Whether the header Cookie has a session; NULL: it has none. */
bool access_has_session(const struct access *access, const char *cookies, nanos now);

/* ---- source.c ---- */

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

/* ---- runs.c ---- */

struct runs;

enum err runs_open(const struct serve_options *options, struct runs **out, struct error *why)
    MUST_USE;
void runs_close(struct runs *runs);

/* Looks what has changed, if the last look was long enough ago.  One thread calls this and what reads rows; the others
 * may be called by any. */
enum err runs_refresh(struct runs *runs, struct error *why) MUST_USE;
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

/* ---- jobs.c ---- */

/* Runs `work` in a thread; `done` is called by jobs_turn, in the thread that turns the loop. */
struct job {
    void (*work)(struct job *job);
    void (*done)(struct job *job);
    struct job *next;
};
struct jobs;

/* queue_max: jobs that wait. */
enum err jobs_open(struct event_loop *loop, const char *name, unsigned queue_max, struct jobs **out,
                   struct error *why) MUST_USE;
bool jobs_add(struct jobs *jobs, struct job *job); /* false: too many wait */
void jobs_turn(struct jobs *jobs);
/* Waits for the one that runs; false: it has not ended in time, and is left behind with all that it uses. */
bool jobs_close(struct jobs *jobs) MUST_USE;

/* ---- live.c ---- */

struct live;

/* Also without sensors: then there are no devices, and the reason. */
enum err live_open(const struct serve_options *options, struct live **out, struct error *why)
    MUST_USE;
void live_close(struct live *live);
bool live_has_sensors(const struct live *live);
/* Takes a sample when its time has come; returns when the next is due. */
nanos live_turn(struct live *live, nanos now);
void live_set_running(struct live *live, const struct text *running); /* a JSON array */
/* A stream that gets every sample; false: there are too many. */
bool live_add(struct live *live, struct http_exchange *exchange);
void live_remove(struct live *live, const struct http_exchange *exchange);
size_t live_watchers(const struct live *live);

/* ---- launch.c ---- */

struct launch;

enum err launch_open(const struct serve_options *options, struct event_loop *loop,
                     struct launch **out, struct error *why) MUST_USE;
/* Ends the run that it has started, as Ctrl-C would, and waits until that is written. */
void launch_close(struct launch *launch);
/* Sees whether the run has ended. */
void launch_turn(struct launch *launch);

/* ---- assets.c ---- */

/* A constant of the program. */
struct web_file {
    const char *type, *bytes;
    size_t length;
    char tag[20]; /* ETag */
};
/* "app.js"; "report/charts.js" of those that the report has.  False without one. */
bool web_file_find(const char *name, struct web_file *out);

/* ---- the API ---- */

/* What its functions have in common. */
struct api {
    const struct serve_options *options;
    struct runs *runs;
    struct live *live;
    struct launch *launch;
    nanos started_at; /* wall time */
};

typedef enum err api_function(const struct api *api, const struct request *request,
                              struct api_answer *answer, struct error *why);
#define ROUTE(path, function, where, params) api_function function;
#define ACTION(method, path, function)       api_function function;
#include "serve/routes.def"
#undef ROUTE
#undef ACTION

#endif
