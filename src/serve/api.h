/* Inside the dashboard: live power (live.c), runs that are started (launch.c), and the functions of the API, each in one
 * row of routes.def.  open gives what close frees. */
#ifndef IPW_SERVE_API_H
#define IPW_SERVE_API_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"
#include "serve/request.h"
#include "serve/runs.h"
#include "serve/serve.h"

struct event_loop;
struct http_exchange;

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
