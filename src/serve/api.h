/* Internal to the dashboard: requests (request.c), live power (live.c), starting runs (launch.c), and the API
 * functions, one row of routes.def each.  Every open has a close; the caller releases the structs that it fills. */
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
struct json;
struct result;

/* ---- request.c: a request, its path and parameters decoded, its authorization, and errors ---- */

enum { PARAMS_MAX = 32, FILE_NAME_MAX = 512, PATH_ID_MAX = 2 };

/* A decoded request; owns its strings. */
struct request {
    struct text bytes; /* storage of the strings below */
    const char *path;
    const char *ids[PATH_ID_MAX]; /* values of {id} and {name} in the path */
    struct request_param {
        const char *name, *value;
    } params[PARAMS_MAX];
    size_t param_count;
    struct text body;
};

/* ERR_USAGE: the target is malformed. */
enum err request_read(const char *target, struct request *out, struct error *why) MUST_USE;
void request_release(struct request *request);
/* Whether the path matches a pattern such as "/api/v1/runs/{id}"; fills in ids. */
bool request_matches(struct request *request, const char *pattern);
/* The value of a parameter; NULL if absent or empty. */
const char *request_param(const struct request *request, const char *name);
/* Percent-encodes a path segment or a value. */
void request_encode(struct text *to, const char *string);
/* ERR_USAGE for a parameter that is not in this blank-separated list, or is repeated unless its name there ends in
 * "*". */
enum err request_check(const struct request *request, const char *names, struct error *why)
    MUST_USE;
/* A whole number from least to most; unchanged if the parameter is absent. */
enum err request_count(const struct request *request, const char *name, unsigned min, unsigned max,
                       unsigned *inout, struct error *why) MUST_USE;

struct api_response {
    int status; /* 0: 200 */
    const char *type;
    const char *policy;           /* Content-Security-Policy; NULL: the default of pages */
    char file[FILE_NAME_MAX];     /* file name of a download; or "" */
    char location[FILE_NAME_MAX]; /* Location header; or "" */
    struct text body;
};

/* Begins a JSON object, which the caller ends. */
void response_object(struct api_response *answer, struct json *json);
/* The JSON of a result, which is released. */
void response_result(struct api_response *answer, struct result *result);
/* {"error": {...}} with the HTTP status of the error. */
void response_set_error(struct api_response *answer, enum err err, const char *message);
void response_set_status(struct api_response *answer, int status, const char *code,
                         const char *message);

/* ---- access ---- */

#define SESSION_COOKIE "ipw_session"
/* ACCESS_RATE: requests per second per address, ACCESS_BURST: bucket size. */
enum { SESSION_ID_MAX = 33, ACCESS_RATE = 200, ACCESS_BURST = 2000 };

struct access;

struct access *access_new(void);
void access_free(struct access *access);
bool access_check_rate(struct access *access, const char *peer, nanos now);
/* Creates a session; false if the random number generator fails. */
bool access_new_session(struct access *access, nanos now, char id[static SESSION_ID_MAX]);
/* Whether the Cookie header has a valid session; cookies may be NULL. */
bool access_has_session(const struct access *access, const char *cookies, nanos now);

/* ---- live.c ---- */

struct live;

/* Without sensors there are no devices, and the reason is reported. */
struct live *live_new(const struct serve_options *options);
void live_close(struct live *live);
bool live_has_sensors(const struct live *live);
/* Takes a sample if one is due; returns when the next is. */
nanos live_tick(struct live *live, nanos now);
void live_set_running(struct live *live, const struct text *running); /* a JSON array */
/* Adds a stream that gets every sample; false: too many streams. */
bool live_add(struct live *live, struct http_exchange *exchange);
void live_remove(struct live *live, const struct http_exchange *exchange);
size_t live_subscribers(const struct live *live);

/* ---- launch.c ---- */

struct launch;

/* Borrows all arguments. */
struct launch *launch_new(const struct serve_options *options, struct event_loop *loop,
                          struct runs *runs);
/* Interrupts the run that was started, as Ctrl-C would, and waits until it has written its results. */
void launch_close(struct launch *launch);
/* Checks whether the run has ended. */
void launch_poll(struct launch *launch);

/* ---- embedded files (api_tools.c) ---- */

/* A constant of the program. */
struct web_file {
    const char *type, *bytes;
    size_t length;
    char tag[20]; /* ETag */
};
/* "app.js", or "report/charts.js" for files shared with the report.  False: no such file. */
bool web_file_find(const char *name, struct web_file *out);

/* ---- the API ---- */

/* Context of the API functions. */
struct api {
    const struct serve_options *options;
    struct runs *runs;
    struct live *live;
    struct launch *launch;
    nanos started_at; /* wall time */
};

typedef enum err api_function(const struct api *api, const struct request *request,
                              struct api_response *answer, struct error *why);
#define ROUTE(path, function, where, params) api_function function;
#define ACTION(method, path, function)       api_function function;
#include "serve/routes.def"
#undef ROUTE
#undef ACTION

#endif
