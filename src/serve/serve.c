/* Front end of the dashboard: one thread runs the event loop, checks host, rate limit and token, and either responds or
 * passes the request to a worker.  The response is dropped if the client has disconnected. */
#include "serve/serve.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/secret.h"
#include "core/xalloc.h"
#include "core/text.h"
#include "core/units.h"
#include "port/event_loop.h"
#include "port/http_server.h"
#include "port/proc.h"
#include "serve/api.h"

#define SCAN_PERIOD (2 * NS_PER_S)
#define WATCHED_FOR (10 * NS_PER_S)
enum {
    BODY_MAX = 16 << 10,
    CONNECTIONS_MAX = 2048,
    QUEUE_MAX = 64,
};

static const char POLICY[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'";

enum worker { ROWS, FILES, WORKERS, IN_LOOP, STREAM };

struct serve {
    struct serve_options options;
    struct event_loop *loop;
    struct http_server *server;
    struct api api;
    struct access *access;
    struct http_access *http_access;
    struct jobs *workers[WORKERS];
    nanos last_request, last_scan; /* of the last request, of the last scan for runs */
    bool is_scanning;
    int signal;
};

/* ---- answers ---- */

static void send_response(struct http_exchange *exchange, const struct api_response *answer)
{
    char file[FILE_NAME_MAX + 32];
    http_exchange_add_header(exchange, "Content-Security-Policy",
                             answer->policy ? answer->policy : POLICY);
    if (answer->file[0]) {
        chars_format(file, "attachment; filename=\"%s\"", answer->file);
        http_exchange_add_header(exchange, "Content-Disposition", file);
    }
    if (answer->location[0])
        http_exchange_add_header(exchange, "Location", answer->location);
    http_exchange_reply(exchange, answer->status ? answer->status : 200, answer->type,
                        text_get(&answer->body), answer->body.length);
}

static void send_status(struct http_exchange *exchange, int status, const char *code,
                        const char *message)
{
    struct api_response answer = {0};
    response_set_status(&answer, status, code, message);
    send_response(exchange, &answer);
    text_release(&answer.body);
}

static void send_text(struct http_exchange *exchange, int status, const char *text)
{
    http_exchange_reply(exchange, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* ---- the API ---- */

static const struct route {
    const char *path;
    api_function *function;
    enum worker worker;
    const char *params;
} ROUTES[] = {
#define ROUTE(path, function, where, params) {path, function, where, params},
#define ACTION(method, path, function)
#include "serve/routes.def"
#undef ROUTE
#undef ACTION
};

static const struct action {
    const char *method;
    struct route route;
} ACTIONS[] = {
#define ROUTE(path, function, where, params)
#define ACTION(method, path, function) {method, {path, function, IN_LOOP, ""}},
#include "serve/routes.def"
#undef ROUTE
#undef ACTION
};

/* A request and its response, processed by a worker. */
struct task {
    struct job job;
    struct serve *serve;
    const struct route *route;
    struct request request;
    struct api_response answer;
    struct http_exchange *exchange; /* NULL: the client has disconnected */
};

static void perform(const struct api *api, const struct route *route, const struct request *request,
                    struct api_response *answer)
{
    struct error why = {0};
    enum err err = route->function(api, request, answer, &why);
    if (err)
        response_set_error(answer, err, why.text[0] ? why.text : err_text(err));
}

static void task_work(struct job *job)
{
    struct task *task = (struct task *)job;
    perform(&task->serve->api, task->route, &task->request, &task->answer);
}

static void task_done(struct job *job)
{
    struct task *task = (struct task *)job;
    if (task->exchange) {
        http_exchange_set_data(task->exchange, NULL);
        if (!task->answer.type) /* the server shuts down before it was processed */
            response_set_status(&task->answer, 503, "busy", "ipw serve is shutting down");
        send_response(task->exchange, &task->answer);
    }
    request_release(&task->request);
    text_release(&task->answer.body);
    free(task);
}

static void submit_task(struct serve *serve, const struct route *route, struct request *request,
                        struct http_exchange *exchange)
{
    struct task *task = xmalloc(sizeof *task);
    *task = (struct task){.job = {.work = task_work, .done = task_done},
                          .serve = serve,
                          .route = route,
                          .request = *request,
                          .exchange = exchange};
    *request = (struct request){0};
    if (jobs_add(serve->workers[route->worker], &task->job)) {
        http_exchange_set_data(exchange, task);
        return;
    }
    request_release(&task->request);
    free(task);
    http_exchange_add_header(exchange, "Retry-After", "1");
    send_status(exchange, 503, "busy", "too many pending requests");
}

static void begin_stream(struct serve *serve, struct http_exchange *exchange)
{
    http_exchange_set_data(exchange, NULL);
    if (live_add(serve->api.live, exchange))
        return;
    http_exchange_add_header(exchange, "Retry-After", "10");
    send_status(exchange, 503, "busy", "too many streams");
}

static void handle_api(struct serve *serve, struct request *request, struct http_exchange *exchange)
{
    struct error why = {0};
    const struct route *route = NULL;
    struct api_response answer = {0};
    for (size_t i = 0; !route && i < COUNT_OF(ROUTES); i++)
        if (request_matches(request, ROUTES[i].path))
            route = &ROUTES[i];
    if (!route) {
        send_status(exchange, 404, "not_found", "see /api/v1/openapi.json");
    } else if (request_check(request, route->params, &why)) {
        send_status(exchange, 400, "bad_request", why.text);
    } else if (route->worker == STREAM && str_equal(http_exchange_method(exchange), "GET")) {
        begin_stream(serve, exchange);
    } else if (route->worker < WORKERS) {
        submit_task(serve, route, request, exchange);
    } else {
        perform(&serve->api, route, request, &answer);
        if (route->worker == STREAM) /* HEAD: same type as the stream */
            answer.type = "text/event-stream";
        send_response(exchange, &answer);
        text_release(&answer.body);
    }
}

/* ---- pages ---- */

static void send_file(struct http_exchange *exchange, const char *name)
{
    struct web_file file;
    if (!web_file_find(name, &file)) {
        send_status(exchange, 404, "not_found", "no such file");
        return;
    }
    const char *have = http_exchange_header(exchange, "If-None-Match");
    http_exchange_add_header(exchange, "ETag", file.tag);
    http_exchange_add_header(exchange, "Content-Security-Policy", POLICY);
    if (have && str_equal(have, file.tag))
        http_exchange_reply(exchange, 304, file.type, "", 0);
    else
        http_exchange_reply(exchange, 200, file.type, file.bytes, file.length);
}

/* All pages are one file, which routes by its own URL. */
static bool is_page(struct request *request)
{
    static const char *const PAGES[] = {"/",        "/runs",   "/runs/{id}",   "/compare",
                                        "/pareto",  "/sweeps", "/sweeps/{id}", "/estimate",
                                        "/sensors", "/live"};
    for (size_t i = 0; i < COUNT_OF(PAGES); i++)
        if (request_matches(request, PAGES[i]))
            return true;
    return false;
}

/* ---- the login ---- */

static void send_to(struct http_exchange *exchange, const char *location)
{
    http_exchange_add_header(exchange, "Location", location);
    http_exchange_add_header(exchange, "Content-Security-Policy", POLICY);
    http_exchange_reply(exchange, 303, "text/plain; charset=utf-8", "", 0);
}

static void send_to_login(struct http_exchange *exchange, const char *next, bool has_failed)
{
    struct text location = {0};
    text_addf(&location, "/login?%snext=", has_failed ? "failed=1&" : "");
    request_encode(&location, next);
    send_to(exchange, text_get(&location));
    text_release(&location);
}

/* A path on this server, not a URL: browsers treat "//host" and "/\\host" as one. */
static bool is_own_path(const char *next)
{
    return next && next[0] == '/' && next[1] != '/' && !strchr(next, '\\');
}

static void begin_session(struct serve *serve, struct http_exchange *exchange, const char *next)
{
    char id[SESSION_ID_MAX], cookie[200];
    struct text location = {0};
    if (!access_new_session(serve->access, clock_now(), id)) {
        send_status(exchange, 500, "failed", "the random number generator failed");
        return;
    }
    chars_format(cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict%s", SESSION_COOKIE, id,
                 serve->options.tls_cert ? "; Secure" : "");
    http_exchange_add_header(exchange, "Set-Cookie", cookie);
    /* The remainder of the location is already encoded: it was a request target. */
    text_add(&location, is_own_path(next) ? next : "/");
    send_to(exchange, text_get(&location));
    text_release(&location);
}

static void refuse_unauthorized(struct http_exchange *exchange, enum http_admission admission)
{
    const char *message;
    int status = http_access_refuse(exchange, admission, &message);
    send_status(exchange, status, status == 429 ? "too_many_requests" : "unauthorized", message);
}

/* The form: token=...&next=... */
static void log_in(struct serve *serve, struct http_exchange *exchange)
{
    size_t length;
    struct text target = {0};
    struct request form = {0};
    struct error why = {0};
    const char *body = http_exchange_body(exchange, &length);
    text_add(&target, "/login?");
    text_add_bytes(&target, body, length);
    if (strlen(text_get(&target)) != target.length ||
        request_read(text_get(&target), &form, &why)) {
        send_status(exchange, 400, "bad_request", "malformed form");
    } else {
        const char *next = request_param(&form, "next"), *token = request_param(&form, "token");
        enum http_admission admission = http_access_admit_token(
            serve->http_access, exchange, http_access_token(token),
            !serve->options.access.token || secret_matches(token, serve->options.access.token));
        if (admission == HTTP_ADMITTED)
            begin_session(serve, exchange, next);
        else if (admission == HTTP_REFUSED)
            send_to_login(exchange, is_own_path(next) ? next : "/", true);
        else
            refuse_unauthorized(exchange, admission);
    }
    request_release(&form);
    text_release(&target);
}

/* ---- requests ---- */

static void add_headers(struct http_exchange *exchange, bool is_asset)
{
    http_exchange_add_header(exchange, "Cache-Control", is_asset ? "no-cache" : "no-store");
    http_exchange_add_header(exchange, "X-Content-Type-Options", "nosniff");
    http_exchange_add_header(exchange, "Referrer-Policy", "no-referrer");
    http_exchange_add_header(exchange, "Cross-Origin-Opener-Policy", "same-origin");
    http_exchange_add_header(exchange, "Cross-Origin-Resource-Policy", "same-origin");
    http_exchange_add_header(exchange, "X-Frame-Options", "SAMEORIGIN");
}

static enum http_admission admit(const struct serve *serve, struct http_exchange *exchange)
{
    if (!access_has_session(serve->access, http_exchange_header(exchange, "Cookie"), clock_now()))
        return http_access_admit(serve->http_access, exchange);
    http_exchange_trust(exchange);
    return HTTP_ADMITTED;
}

static void refuse_method(struct http_exchange *exchange, const char *allowed)
{
    http_exchange_add_header(exchange, "Allow", allowed);
    send_status(exchange, 405, "method_not_allowed", "this method is not allowed here");
}

/* The login form and its files need no authorization. */
static bool serve_public(struct serve *serve, struct request *request,
                         struct http_exchange *exchange)
{
    if (str_equal(request->path, "/healthz")) {
        send_text(exchange, 200, "ok\n");
    } else if (str_equal(request->path, "/readyz")) {
        bool is_ready = runs_is_loaded(serve->api.runs);
        send_text(exchange, is_ready ? 200 : 503,
                  is_ready ? "ready\n" : "not ready: reading runs\n");
    } else if (str_equal(request->path, "/login")) {
        send_file(exchange, "login.html");
    } else if (str_starts(request->path, "/assets/")) {
        send_file(exchange, request->path + strlen("/assets/"));
    } else {
        return false;
    }
    return true;
}

static void serve_read(struct serve *serve, struct request *request, struct http_exchange *exchange)
{
    bool is_api = str_starts(request->path, "/api/");
    if (serve_public(serve, request, exchange))
        return;
    enum http_admission admission = admit(serve, exchange);
    if (admission == HTTP_REFUSED && !is_api && is_page(request)) {
        send_to_login(exchange, http_exchange_target(exchange), false);
    } else if (admission != HTTP_ADMITTED) {
        refuse_unauthorized(exchange, admission);
    } else if (is_api) {
        handle_api(serve, request, exchange);
    } else if (is_page(request)) {
        send_file(exchange, "index.html");
    } else {
        send_status(exchange, 404, "not_found", "no such page");
    }
}

/* The action of this path; NULL if there is none, or if runs are not allowed. */
static const struct action *find_action(const struct serve *serve, const char *path)
{
    for (size_t i = 0; serve->options.allow_runs && i < COUNT_OF(ACTIONS); i++)
        if (str_equal(ACTIONS[i].route.path, path))
            return &ACTIONS[i];
    return NULL;
}

/* CSRF protection: a form on another site cannot send JSON; a script needs a CORS preflight, which we refuse. */
static bool is_json(const char *type)
{
    char name[32] = "";
    chars_copy(name, text_or_empty(type));
    name[strcspn(name, ";")] = '\0';
    return str_equal_nocase(str_trim(name), "application/json");
}

static void run_action(struct serve *serve, const struct action *action, struct request *request,
                       struct http_exchange *exchange)
{
    struct api_response answer = {0};
    struct error why = {0};
    size_t length;
    const char *body = http_exchange_body(exchange, &length);
    enum http_admission admission = admit(serve, exchange);
    if (admission != HTTP_ADMITTED) {
        refuse_unauthorized(exchange, admission);
    } else if (http_access_check_origin(serve->http_access,
                                        http_exchange_header(exchange, "Origin"),
                                        http_exchange_header(exchange, "Host"), &why)) {
        send_status(exchange, 403, "forbidden", why.text);
    } else if (str_equal(action->method, "POST") &&
               !is_json(http_exchange_header(exchange, "Content-Type"))) {
        send_status(exchange, 415, "unsupported_type", "Content-Type must be application/json");
    } else if (request_check(request, action->route.params, &why)) {
        send_status(exchange, 400, "bad_request", why.text);
    } else {
        text_add_bytes(&request->body, body, length);
        perform(&serve->api, &action->route, request, &answer);
        send_response(exchange, &answer);
        text_release(&answer.body);
    }
}

static void handle_request(struct serve *serve, struct request *request,
                           struct http_exchange *exchange)
{
    const char *method = http_exchange_method(exchange);
    bool is_login = str_equal(request->path, "/login");
    const struct action *action = find_action(serve, request->path);
    char allowed[40] = "GET, HEAD";
    if (is_login || action)
        chars_format(allowed, "GET, HEAD, %s", action ? action->method : "POST");
    if (str_equal(method, "GET") || str_equal(method, "HEAD"))
        serve_read(serve, request, exchange);
    else if (is_login && str_equal(method, "POST"))
        log_in(serve, exchange);
    else if (action && str_equal(method, action->method))
        run_action(serve, action, request, exchange);
    else
        refuse_method(exchange, allowed);
}

static void on_request(void *context, struct http_exchange *exchange)
{
    struct serve *serve = context;
    const char *target = http_exchange_target(exchange);
    char peer[HTTP_PEER_MAX];
    struct request request = {0};
    struct error why = {0};
    serve->last_request = clock_now();
    http_exchange_peer(exchange, peer);
    add_headers(exchange, str_starts(target, "/assets/"));
    if (http_access_check_host(serve->http_access, http_exchange_header(exchange, "Host"), &why)) {
        send_status(exchange, 403, "forbidden", why.text);
    } else if (!access_check_rate(serve->access, peer, clock_now())) {
        http_exchange_add_header(exchange, "Retry-After", "1");
        send_status(exchange, 429, "too_many_requests", "too many requests from this address");
    } else if (request_read(target, &request, &why)) {
        send_status(exchange, 400, "bad_request", why.text);
    } else {
        handle_request(serve, &request, exchange);
    }
    request_release(&request);
}

static void on_ended(void *context, struct http_exchange *exchange, bool complete)
{
    struct serve *serve = context;
    struct task *task = http_exchange_data(exchange);
    (void)complete;
    if (task)
        task->exchange = NULL;
    else
        live_remove(serve->api.live, exchange);
}

/* ---- the loop ---- */

static void on_signal(void *context, int number)
{
    ((struct serve *)context)->signal = number;
}

/* Scans for runs in progress while a client is connected. */
struct running_job {
    struct job job;
    struct serve *serve;
    struct text running;
};

static void running_work(struct job *job)
{
    struct running_job *task = (struct running_job *)job;
    struct error why = {0};
    if (!runs_refresh(task->serve->api.runs, &why))
        runs_running(task->serve->api.runs, &task->running);
}

static void running_done(struct job *job)
{
    struct running_job *task = (struct running_job *)job;
    if (!task->running.failed)
        live_set_running(task->serve->api.live, &task->running);
    task->serve->is_scanning = false;
    text_release(&task->running);
    free(task);
}

static void find_running(struct serve *serve, nanos now)
{
    bool is_watched = live_subscribers(serve->api.live) > 0 ||
                      now - serve->last_request < WATCHED_FOR || !serve->last_scan;
    if (serve->is_scanning || !is_watched || now < serve->last_scan + SCAN_PERIOD)
        return;
    struct running_job *task = xmalloc(sizeof *task);
    *task =
        (struct running_job){.job = {.work = running_work, .done = running_done}, .serve = serve};
    serve->last_scan = now;
    serve->is_scanning = jobs_add(serve->workers[ROWS], &task->job);
    if (!serve->is_scanning)
        free(task);
}

static void run_loop(struct serve *serve)
{
    while (!serve->signal) {
        nanos now = clock_now();
        for (size_t i = 0; i < WORKERS; i++)
            jobs_dispatch(serve->workers[i]);
        find_running(serve, now);
        launch_poll(serve->api.launch);
        nanos due = live_tick(serve->api.live, now);
        http_server_process(serve->server);
        nanos served = http_server_due(serve->server);
        event_loop_run_once(serve->loop, served < due ? served : due);
    }
}

static enum err open_parts(struct serve *serve, struct error *why)
{
    const struct http_server_options server = {
        .address = serve->options.access.address,
        .port = serve->options.access.port,
        .tls_cert = serve->options.tls_cert,
        .tls_key = serve->options.tls_key,
        .body_max = BODY_MAX,
        .connections_max = CONNECTIONS_MAX,
        .request = on_request,
        .ended = on_ended,
        .context = serve,
    };
    serve->access = access_new();
    serve->http_access = http_access_new(&serve->options.access);
    enum err err = runs_open(&serve->options, &serve->api.runs, why);
    if (!err)
        err = event_loop_new(&serve->loop, why);
    if (!err)
        err = http_server_open(serve->loop, &server, &serve->server, why);
    if (!err) {
        serve->api.launch = launch_new(&serve->options, serve->loop, serve->api.runs);
        err = event_loop_take_signals(serve->loop, on_signal, serve, why);
    }
    if (!err)
        err = jobs_open(serve->loop, "ipw-rows", QUEUE_MAX, &serve->workers[ROWS], why);
    if (!err)
        err = jobs_open(serve->loop, "ipw-files", QUEUE_MAX, &serve->workers[FILES], why);
    if (!err)
        serve->api.live = live_new(&serve->options);
    return err;
}

static void release(struct serve *serve)
{
    bool all_ended = true;
    launch_close(serve->api.launch);
    for (size_t i = 0; i < WORKERS; i++)
        all_ended &= jobs_close(serve->workers[i]);
    if (!all_ended)
        return; /* a thread still uses these until the process exits */
    http_server_close(serve->server);
    event_loop_free(serve->loop);
    live_close(serve->api.live);
    runs_close(serve->api.runs);
    access_free(serve->access);
    http_access_free(serve->http_access);
    free(serve);
}

enum err serve_run(const struct serve_options *options, int *signal, struct error *why)
{
    const struct http_access_options *access = &options->access;
    enum err err =
        http_access_check(access->address, access->token, false, "set a token (--token-file)", why);
    if (!err && options->allow_runs && !access->token)
        err = err_set(why, ERR_USAGE,
                      "--allow-runs needs a token (--token-file), even on loopback: every user and "
                      "every page of this machine could start runs");
    if (!err && options->allow_runs && !options->runs)
        err = err_set(why, ERR_USAGE, "--allow-runs and --db are mutually exclusive");
    if (err)
        return err;
    struct serve *serve = XNEW(serve);
    serve->options = *options;
    serve->api.options = &serve->options;
    serve->api.started_at = clock_wall();
    proc_block_signals();
    proc_raise_file_limit(2 * CONNECTIONS_MAX);
    err = open_parts(serve, why);
    if (!err) {
        options->listening(http_server_port(serve->server));
        run_loop(serve);
    }
    *signal = serve->signal;
    release(serve);
    return err;
}
