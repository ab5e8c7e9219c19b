/* Current power of this machine, the last hour, and the event streams of clients.
 *
 * Once per second the readings are sampled and formatted as JSON, once for all clients.  The history is a ring buffer
 * of seconds with a row for each device seen so far.  Everything belongs to the thread of the event loop. */
#include <math.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/result.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "monitor/monitor.h"
#include "port/http_server.h"
#include "report/html/html.h"
#include "report/plot/figure.h"
#include "report/print/print.h"
#include "runner/check.h"
#include "runner/doctor.h"
#include "runner/host_report.h"
#include "serve/api.h"

#define INTERVAL (1 * NS_PER_S)
enum {
    DEVICES_MAX = 128,
    HISTORY_SECONDS = 3600,
    STREAMS_MAX = 1500,
    UNSENT_MAX = 64 << 10, /* maximum unsent bytes of a slow client; then samples are skipped */
};

struct history {
    char id[96];
    float watts[HISTORY_SECONDS];
};

struct live {
    struct monitor_view *view; /* NULL: no sensors */
    char missing[300];         /* why there are none */
    struct text sample, event, running;
    double times[HISTORY_SECONDS]; /* seconds since 1970 */
    size_t at, filled;             /* ring buffer position */
    struct history *history[DEVICES_MAX];
    size_t history_count;
    struct http_exchange **streams;
    size_t stream_count, stream_capacity;
    nanos next;
};

/* ---- samples ---- */

static struct history *history_of(struct live *live, const char *id)
{
    for (size_t i = 0; i < live->history_count; i++)
        if (str_equal(live->history[i]->id, id))
            return live->history[i];
    if (live->history_count == DEVICES_MAX)
        return NULL;
    struct history *added = xmalloc(sizeof *added);
    chars_copy(added->id, id);
    for (size_t i = 0; i < HISTORY_SECONDS; i++)
        added->watts[i] = NAN;
    return live->history[live->history_count++] = added;
}

static void append_history(struct live *live, const struct monitor_device *devices, size_t count)
{
    live->at = live->filled ? (live->at + 1) % HISTORY_SECONDS : 0;
    live->filled += live->filled < HISTORY_SECONDS;
    live->times[live->at] = seconds(clock_wall());
    for (size_t i = 0; i < live->history_count; i++)
        live->history[i]->watts[live->at] = NAN;
    for (size_t i = 0; i < count; i++) {
        struct history *history = history_of(live, devices[i].id);
        if (history)
            history->watts[live->at] = (float)devices[i].power_w;
    }
}

static void write_sample(struct live *live, const struct monitor_device *devices, size_t count)
{
    struct result result = {0};
    struct json json;
    char when[CLOCK_TEXT_MAX];
    result_begin(&result, "sample");
    result_text(&result, "time", clock_text(when, clock_wall()));
    result_text(&result, "missing", str_or_null(live->missing));
    monitor_view_to_result(live->view, devices, count, &result);
    result_json(&result, "running", live->running.length ? text_get(&live->running) : "[]");
    result_end(&result);
    text_clear(&live->sample);
    json_init(&json, &live->sample, false);
    result_to_json(&result, NULL, &json);
    result_release(&result);
}

/* ---- streams ---- */

bool live_add(struct live *live, struct http_exchange *exchange)
{
    if (live->stream_count >= STREAMS_MAX)
        return false;
    *XADD(live->streams, live->stream_count, live->stream_capacity) = exchange;
    http_exchange_add_header(exchange, "Content-Type", "text/event-stream");
    http_exchange_begin(exchange, 200, HTTP_LENGTH_UNKNOWN);
    http_exchange_send(exchange, text_get(&live->event), live->event.length);
    return true;
}

void live_remove(struct live *live, const struct http_exchange *exchange)
{
    for (size_t i = 0; i < live->stream_count; i++)
        if (live->streams[i] == exchange) {
            live->streams[i] = live->streams[--live->stream_count];
            return;
        }
}

size_t live_subscribers(const struct live *live)
{
    return live->stream_count;
}

/* A slow client misses samples. */
static void send_sample(struct live *live)
{
    text_clear(&live->event);
    text_addf(&live->event, "event: sample\ndata: %s\n\n", text_get(&live->sample));
    if (live->event.failed) {
        text_release(&live->event);
        return;
    }
    for (size_t i = 0; i < live->stream_count; i++)
        if (http_exchange_unsent(live->streams[i]) < UNSENT_MAX)
            http_exchange_send(live->streams[i], text_get(&live->event), live->event.length);
}

/* ---- sampling ---- */

nanos live_tick(struct live *live, nanos now)
{
    struct monitor_device devices[DEVICES_MAX];
    size_t count = 0;
    if (now < live->next)
        return live->next;
    if (live->view) {
        monitor_view_update(live->view, now);
        count = monitor_view_devices(live->view, devices, DEVICES_MAX);
    }
    append_history(live, devices, count);
    write_sample(live, devices, count);
    send_sample(live);
    live->next += INTERVAL;
    if (live->next <= now) /* first sample, or the process was stopped meanwhile */
        live->next = now + INTERVAL;
    return live->next;
}

void live_set_running(struct live *live, const struct text *running)
{
    text_clear(&live->running);
    text_add(&live->running, text_get(running));
}

struct live *live_new(const struct serve_options *options)
{
    struct live *live = XNEW(live);
    struct error missing = {0};
    if (options->no_live)
        chars_copy(live->missing, "started with --no-live");
    else if (monitor_view_open(options->drivers, options->devices, INTERVAL, &live->view, &missing))
        chars_copy(live->missing, missing.text);
    return live;
}

void live_close(struct live *live)
{
    if (!live)
        return;
    monitor_view_close(live->view);
    for (size_t i = 0; i < live->history_count; i++)
        free(live->history[i]);
    text_release(&live->sample);
    text_release(&live->event);
    text_release(&live->running);
    free(live->streams);
    free(live);
}

bool live_has_sensors(const struct live *live)
{
    return live->view && monitor_view_findings(live->view)->count > 0;
}

/* ---- the API ---- */

enum err api_live(const struct api *api, const struct request *request, struct api_response *answer,
                  struct error *why)
{
    (void)request, (void)why;
    answer->type = "application/json";
    text_add_bytes(&answer->body, text_get(&api->live->sample), api->live->sample.length);
    return ERR_OK;
}

enum err api_history(const struct api *api, const struct request *request,
                     struct api_response *answer, struct error *why)
{
    const struct live *live = api->live;
    unsigned wanted = 600;
    struct json json;
    enum err err = request_count(request, "seconds", 1, HISTORY_SECONDS, &wanted, why);
    if (err)
        return err;
    size_t count = wanted < live->filled ? wanted : live->filled;
    size_t first = (live->at + HISTORY_SECONDS + 1 - count) % HISTORY_SECONDS;
    response_object(answer, &json);
    json_number(&json, "interval_s", seconds(INTERVAL));
    json_array(&json, "devices");
    for (size_t d = 0; d < live->history_count; d++) {
        json_object(&json, NULL);
        json_string(&json, "id", live->history[d]->id);
        json_array(&json, "t");
        for (size_t i = 0; i < count; i++)
            json_number(&json, NULL, live->times[(first + i) % HISTORY_SECONDS]);
        json_array_end(&json);
        json_array(&json, "power_w");
        for (size_t i = 0; i < count; i++)
            json_number(
                &json, NULL,
                round(1e3 * (double)live->history[d]->watts[(first + i) % HISTORY_SECONDS]) / 1e3);
        json_array_end(&json);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    return ERR_OK;
}

/* Same as `ipw doctor`, without the test under load, which would disturb measurements. */
enum err api_sensors(const struct api *api, const struct request *request,
                     struct api_response *answer, struct error *why)
{
    struct sensor_findings none = {0};
    const struct sensor_findings *findings =
        api->live->view ? monitor_view_findings(api->live->view) : &none;
    struct check_row *rows = xcalloc(findings->count + 1, sizeof *rows);
    struct result result = {0};
    struct host_report host;
    (void)request, (void)why;
    check_untested(findings, rows);
    host_report_fill(findings, &host);
    answer->type = "application/json";
    doctor_fill(&host, findings, rows, gnuplot_available, &result);
    result_print(&result, PRINT_JSON, NULL, false, &answer->body);
    result_release(&result);
    free(rows);
    return ERR_OK;
}
