/* One thread runs the event loop: it updates the state at every interval and answers scrapes from it.  Opening sensors
 * takes seconds, so a reload runs in its own thread, and the old session keeps running until the new one is open. */
#include "monitor/monitor.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/xalloc.h"
#include "monitor/parts.h"
#include "port/event_loop.h"
#include "port/http_server.h"
#include "port/proc.h"
#include "sensors/system/host_info.h"

enum { BODY_MAX = 1 << 10, CONNECTIONS_MAX = 512 };

struct monitor {
    struct monitor_options options;
    struct event_loop *loop;
    struct http_server *server;
    struct http_access *access;
    struct session *session;
    struct state *state;
    struct processes *processes;
    struct instances *instances;
    struct telemetry_feed *feed; /* NULL: none */
    struct otlp_push *otlp;      /* NULL: none */
    nanos next, updated;         /* times of the next and of the last update */
    double started_at;
    char instance[40], host[64]; /* identify the monitor to other hosts */
    unsigned long updates, scrapes, reloads;
    int signal;
    struct text page[2]; /* metrics of the last update, in both formats; empty until requested */
    /* State of a reload. */
    bool is_reloading, wants_reload;
    pthread_t reloader;
    struct session *opened; /* result of the reload thread; NULL: it failed */
    struct error why;
    atomic_bool is_opened;
};

/* ---- the session ---- */

static enum err open_session(const struct monitor_options *options, struct session **out,
                             struct error *why)
{
    bool is_fed = options->grpc_address || options->telemetry_fd >= 0;
    return monitor_session_open(options->drivers, options->devices, options->interval, is_fed, out,
                                why);
}

static void attach_session(struct monitor *monitor, struct session *session)
{
    struct session *former = monitor->session;
    state_attach(monitor->state, session, monitor->options.interval);
    monitor->session = session;
    if (monitor->processes)
        processes_attach(monitor->processes, monitor->state);
    instances_attach(monitor->instances, monitor->state);
    monitor_session_close(former);
}

static void *reload_main(void *argument)
{
    struct monitor *monitor = argument;
    enum err err = open_session(&monitor->options, &monitor->opened, &monitor->why);
    (void)err; /* opened stays NULL */
    atomic_store(&monitor->is_opened, true);
    event_loop_wake(monitor->loop);
    return NULL;
}

static void begin_reload(struct monitor *monitor)
{
    monitor->wants_reload = false;
    atomic_store(&monitor->is_opened, false);
    if (pthread_create(&monitor->reloader, NULL, reload_main, monitor) != 0) {
        log_warn("cannot reload: cannot create a thread");
        return;
    }
    monitor->is_reloading = true;
}

static void end_reload(struct monitor *monitor)
{
    pthread_join(monitor->reloader, NULL);
    monitor->is_reloading = false;
    if (!monitor->opened) {
        log_warn("cannot reload: %s; continuing with the current sensors", monitor->why.text);
        return;
    }
    attach_session(monitor, monitor->opened);
    monitor->opened = NULL;
    monitor->reloads++;
    monitor->next = 0;
}

/* ---- pages ---- */

static void render_self_metrics(struct monitor *monitor, struct exposition *to)
{
    struct own_cost cost;
    proc_own_cost(&cost);
    const double values[] = {
        1,
        monitor->started_at,
        cost.cpu_s,
        cost.rss_mb * 1024 * 1024,
        seconds(monitor->options.interval),
        seconds(clock_now() - monitor->updated),
        (double)monitor->updates,
        (double)monitor->scrapes,
        (double)monitor->reloads,
    };
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        family_begin(to, (enum family)(FAMILY_OWN_INFO + i));
        exposition_sample(to, i == 0 ? "version=\"" IPW_VERSION "\"" : "", "", values[i]);
    }
    struct otlp_counts counts;
    if (!monitor->otlp)
        return;
    otlp_push_count(monitor->otlp, &counts);
    const unsigned long pushed[] = {counts.pushes, counts.failures, counts.dropped};
    for (size_t i = 0; i < COUNT_OF(pushed); i++) {
        family_begin(to, (enum family)(FAMILY_OTLP_PUSHES + i));
        exposition_sample(to, "", "", (double)pushed[i]);
    }
}

/* The metrics of an update are rendered once for all scrapes until the next; its own metrics per scrape. */
static void reply_metrics(struct monitor *monitor, struct http_exchange *exchange)
{
    bool open = exposition_wants_openmetrics(http_exchange_header(exchange, "Accept"));
    struct text *page = &monitor->page[open];
    struct text own = {0};
    struct exposition to = {.out = page, .open_metrics = open};
    if (!page->length) {
        state_render(monitor->state, &to);
        if (monitor->processes)
            processes_render(monitor->processes, &to);
        instances_render(monitor->instances, &to);
        state_render_sensors(monitor->state, &to);
    }
    monitor->scrapes++;
    to.out = &own;
    render_self_metrics(monitor, &to);
    exposition_end(&to);
    http_exchange_add_header(exchange, "Content-Type", exposition_content_type(open));
    http_exchange_begin(exchange, 200, page->length + own.length);
    http_exchange_send(exchange, text_get(page), page->length);
    http_exchange_send(exchange, text_get(&own), own.length);
    http_exchange_end(exchange, true);
    text_release(&own);
}

/* The value of NAME=INTEGER in the query string; 0 if absent. */
static nanos query_number(const char *target, const char *name)
{
    const char *at = strchr(target, '?');
    size_t length = strlen(name);
    int64_t value = 0;
    char digits[24];
    for (; at; at = strchr(at, '&')) {
        at++;
        if (strncmp(at, name, length) != 0 || at[length] != '=')
            continue;
        chars_format(digits, "%.*s", (int)strcspn(at + length + 1, "&"), at + length + 1);
        if (parse_i64(digits, &value))
            value = 0;
    }
    return value;
}

/* For another ipw, which derives its clock offset from these clocks: they are read last. */
static void reply_readings(struct monitor *monitor, struct http_exchange *exchange)
{
    struct readings readings;
    struct text text = {0};
    readings_page(monitor->state, query_number(http_exchange_target(exchange), "since"), &readings);
    chars_copy(readings.instance, monitor->instance);
    chars_copy(readings.host, monitor->host);
    readings.interval = monitor->options.interval;
    readings.wall = clock_wall();
    readings.monotonic = clock_now();
    readings_write(&readings, &text);
    readings_release(&readings);
    http_exchange_reply(exchange, 200, "application/json", text_get(&text), text.length);
    text_release(&text);
}

static void reply_text(struct http_exchange *exchange, int status, const char *text)
{
    http_exchange_reply(exchange, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* Liveness: this response shows that the loop runs.  Readiness: some sensor has current readings. */
static void reply_ready(const struct monitor *monitor, struct http_exchange *exchange)
{
    nanos late = 3 * monitor->options.interval + 5 * NS_PER_S;
    if (!monitor->updates || clock_now() - monitor->updated > late)
        reply_text(exchange, 503, "not ready: no update yet\n");
    else if (!state_is_up(monitor->state))
        reply_text(exchange, 503, "not ready: no sensor has current readings\n");
    else
        reply_text(exchange, 200, "ready\n");
}

static const char INDEX[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>ipw monitor</title>"
    "</head>\n<body><h1>ipw monitor</h1>\n<p>Energy and power of this machine, for Prometheus: "
    "<a href=\"/metrics\">/metrics</a>; for another ipw: "
    "<a href=\"" READINGS_PATH "\">" READINGS_PATH
    "</a>.</p>\n<p><a href=\"/healthz\">/healthz</a> answers while "
    "the monitor runs, <a href=\"/readyz\">/readyz</a> while sensors have readings.</p>\n"
    "<p>ipw " IPW_VERSION "; see ipw-monitor(1).</p></body></html>\n";

/* Requests of pages of other sites, which may name processes, and those without the token. */
static bool refuse(struct monitor *monitor, struct http_exchange *exchange, bool is_public)
{
    struct error why = {0};
    struct text line = {0};
    const char *message = why.text;
    int status = 403;
    if (!http_access_check_site(monitor->access, exchange, &why)) {
        enum http_admission admission =
            is_public ? HTTP_ADMITTED : http_access_admit(monitor->access, exchange);
        if (admission == HTTP_ADMITTED)
            return false;
        status = http_access_refuse(exchange, admission, &message);
    }
    text_addf(&line, "%s\n", message);
    reply_text(exchange, status, text_get(&line));
    text_release(&line);
    return true;
}

static void on_request(void *context, struct http_exchange *exchange)
{
    struct monitor *monitor = context;
    const char *target = http_exchange_target(exchange), *method = http_exchange_method(exchange);
    char path[64];
    chars_format(path, "%.*s", (int)strcspn(target, "?"), target);
    bool is_alive = str_equal(path, "/healthz"), is_ready = str_equal(path, "/readyz");
    http_exchange_add_header(exchange, "Cache-Control", "no-store");
    http_exchange_add_header(exchange, "X-Content-Type-Options", "nosniff");
    if (!str_equal(method, "GET") && !str_equal(method, "HEAD")) {
        http_exchange_add_header(exchange, "Allow", "GET, HEAD");
        reply_text(exchange, 405, "only GET and HEAD\n");
    } else if (refuse(monitor, exchange, is_alive || is_ready)) {
        return;
    } else if (is_alive) {
        reply_text(exchange, 200, "ok\n");
    } else if (is_ready) {
        reply_ready(monitor, exchange);
    } else if (str_equal(path, "/metrics")) {
        reply_metrics(monitor, exchange);
    } else if (str_equal(path, READINGS_PATH)) {
        reply_readings(monitor, exchange);
    } else if (str_equal(path, "/")) {
        http_exchange_add_header(exchange, "Content-Security-Policy", "default-src 'none'");
        http_exchange_reply(exchange, 200, "text/html; charset=utf-8", INDEX, strlen(INDEX));
    } else {
        reply_text(exchange, 404, "not found: see /\n");
    }
}

/* ---- the loop ---- */

static void on_signal(void *context, int number)
{
    struct monitor *monitor = context;
    if (number == SIGHUP)
        monitor->wants_reload = true;
    else
        monitor->signal = number;
}

static enum err update(struct monitor *monitor, nanos now)
{
    state_update(monitor->state, now);
    if (monitor->processes)
        processes_update(monitor->processes, monitor->state, now);
    instances_update(monitor->instances, monitor->state, now);
    text_clear(&monitor->page[0]);
    text_clear(&monitor->page[1]);
    monitor->updated = now;
    monitor->updates++;
    monitor->next += monitor->options.interval;
    if (monitor->next <= now) /* first update, or the process was stopped meanwhile */
        monitor->next = now + monitor->options.interval;
    state_request(monitor->state, monitor->next);
    if (monitor->otlp)
        otlp_push_update(monitor->otlp, monitor->state, now);
    return monitor->feed
               ? telemetry_feed_write(monitor->feed, monitor->state, monitor->session, now)
               : ERR_OK;
}

static void run_loop(struct monitor *monitor)
{
    while (!monitor->signal) {
        nanos now = clock_now();
        if (now >= monitor->next && update(monitor, now))
            break; /* the process that started us has exited */
        if (monitor->is_reloading && atomic_load(&monitor->is_opened))
            end_reload(monitor);
        if (monitor->wants_reload && !monitor->is_reloading)
            begin_reload(monitor);
        nanos due = monitor->next;
        if (monitor->server) {
            http_server_process(monitor->server);
            nanos served = http_server_due(monitor->server);
            due = served < due ? served : due;
        }
        event_loop_run_once(monitor->loop, due);
    }
}

static enum err check_addresses(const struct monitor_options *options, struct error *why)
{
    enum err err = ERR_OK;
    if (options->access.address)
        err = http_access_check(
            options->access.address, options->access.token, options->is_open,
            "set a token (--token-file), or allow access without one with --no-token", why);
    if (!err && options->grpc_address)
        err = http_access_check(
            options->grpc_address, NULL, options->is_open,
            "gRPC does not support tokens; allow access without one with --no-token", why);
    return err;
}

static enum err open_parts(struct monitor *monitor, struct error *why)
{
    const struct monitor_options *options = &monitor->options;
    const struct http_server_options server = {
        .address = options->access.address,
        .port = options->access.port,
        .body_max = BODY_MAX,
        .connections_max = CONNECTIONS_MAX,
        .request = on_request,
        .context = monitor,
    };
    struct session *session;
    enum err err = event_loop_new(&monitor->loop, why);
    if (!err && options->access.address)
        err = http_server_open(monitor->loop, &server, &monitor->server, why);
    if (!err)
        err = event_loop_take_signals(monitor->loop, on_signal, monitor, why);
    monitor->state = state_new();
    monitor->processes = options->processes ? processes_new(options->processes) : NULL;
    monitor->instances = instances_new();
    monitor->access = http_access_new(&options->access);
    if (!err)
        err = open_session(options, &session, why);
    if (!err)
        attach_session(monitor, session);
    if (!err && options->otlp_url)
        err = otlp_push_open(options->otlp_url, options->otlp_interval, monitor->instance,
                             monitor->host, &monitor->otlp, why);
    if (!err && (options->grpc_address || options->telemetry_fd >= 0))
        err = telemetry_feed_open(options->telemetry_fd, options->grpc_address, options->grpc_port,
                                  &monitor->feed, why);
    return err;
}

static void release(struct monitor *monitor)
{
    if (monitor->is_reloading)
        return; /* the reload thread still uses these until the process exits, since a driver may not return */
    telemetry_feed_close(monitor->feed);
    otlp_push_close(monitor->otlp);
    http_server_close(monitor->server);
    http_access_free(monitor->access);
    event_loop_free(monitor->loop);
    processes_free(monitor->processes);
    instances_free(monitor->instances);
    state_free(monitor->state);
    monitor_session_close(monitor->session);
    text_release(&monitor->page[0]);
    text_release(&monitor->page[1]);
    free(monitor);
}

/* A new id for each start: counters do not continue those of an earlier process. */
static void make_instance_id(struct monitor *monitor)
{
    struct host_info host;
    uint64_t random[2] = {0};
    if (getrandom(random, sizeof random, 0) != sizeof random)
        random[0] = (uint64_t)clock_wall();
    chars_format(monitor->instance, "%016llx%016llx", (unsigned long long)random[0],
                 (unsigned long long)random[1]);
    host_info_read(&host);
    chars_copy(monitor->host, host.host_name);
}

enum err monitor_run(const struct monitor_options *options, int *signal, struct error *why)
{
    enum err err = check_addresses(options, why);
    if (err)
        return err;
    struct monitor *monitor = XNEW(monitor);
    monitor->options = *options;
    monitor->started_at = seconds(clock_wall());
    make_instance_id(monitor);
    proc_block_signals();
    err = open_parts(monitor, why);
    if (!err && !update(monitor, clock_now())) {
        if (monitor->server)
            options->listening(http_server_port(monitor->server));
        run_loop(monitor);
    }
    *signal = monitor->signal;
    release(monitor);
    return err;
}
