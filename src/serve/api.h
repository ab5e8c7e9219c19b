/* Inside the dashboard: requests (request.c), live power (live.c), runs that are started (launch.c), and the functions of
 * the API, each in one row of routes.def.  open gives what close frees; whoever fills a struct releases it. */
#ifndef IPW_SERVE_API_H
#define IPW_SERVE_API_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "serve/runs.h"
#include "serve/serve.h"

struct event_loop;
struct http_exchange;

/* ---- request.c: a request, its path and parameters decoded, its authorization, and errors ---- */

enum { PARAMS_MAX = 32, FILE_NAME_MAX = 512, PATH_ID_MAX = 2 };

/* What a client asks for, decoded; it owns its texts. */
struct request {
    struct text bytes; /* that the others point into */
    const char *path;
    const char *ids[PATH_ID_MAX]; /* what stands for {id} and {name} */
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

/* ---- access ---- */

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
size_t live_subscribers(const struct live *live);

/* ---- launch.c ---- */

struct launch;

/* Borrows all of them. */
enum err launch_open(const struct serve_options *options, struct event_loop *loop,
                     struct runs *runs, struct launch **out, struct error *why) MUST_USE;
/* Ends the run that it has started, as Ctrl-C would, and waits until that is written. */
void launch_close(struct launch *launch);
/* Sees whether the run has ended. */
void launch_turn(struct launch *launch);

/* ---- embedded files (api_tools.c) ---- */

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
