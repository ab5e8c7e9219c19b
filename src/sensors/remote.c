/* Sensors of another host, through the `ipw monitor` running there.
 *
 * Each of its devices is a sensor here.  A read requests the energy points since the last one (wire/readings.h) and
 * places them on our timeline by the clock offset, whose uncertainty is that of their times: it enters the energy of
 * a window as time error x power at its edges.  A restarted monitor counts from 0: its device is lost and comes
 * back, and the time between stays uncovered.  A short connection failure loses nothing, as the monitor keeps the
 * points of the last minutes.
 *
 * An energy-monitor sends its readings in one stream over gRPC, which stays open (port/http.h): a read takes those
 * that have arrived. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/secret.h"
#include "core/text.h"
#include "port/file.h"
#include "port/http.h"
#include "port/json_read.h"
#include "port/thread.h"
#include "port/url.h"
#include "sensors/sensor.h"
#include "wire/readings.h"

#define TOKEN_NAME      "IPW_MONITOR_TOKEN"
#define TOKEN_FILE_NAME "IPW_MONITOR_TOKEN_FILE"
#define DEFAULT_PORT    "9860"
#define GRPC_SCHEME     "grpc://"
#define GRPC_PORT       "50053"

/* A read must return within two seconds. */
#define REQUEST_TIMEOUT (1500 * NS_PER_MS)
/* Without an answer for this long, or for several intervals of a stream, the device counts as lost. */
#define LOST_AFTER (3 * NS_PER_S)
/* Until the second message of a stream: on a busy machine, and for an interval of seconds. */
#define STREAM_TIMEOUT (10 * NS_PER_S)
/* Calls before the first message: the server may be starting. */
#define STREAM_ATTEMPTS 4
/* Period of additional calls that bound the clock offset: only the start of a call bounds it from both sides.  The
 * first ones are repeated at once while it is known to less than this share of the interval. */
#define CHECK_PERIOD  (30 * NS_PER_S)
#define CHECK_SHARE   8
#define CHECK_REPEATS 6
/* How long opening a sensor waits for these. */
#define CHECK_OPENING (500 * NS_PER_MS)
#define CHECK_POLL    (5 * NS_PER_MS)
/* Minimum assumed time between the messages of a stream. */
#define STREAM_PERIOD_MIN (50 * NS_PER_MS)
/* How far back the first read goes, so that a window has a start immediately. */
#define HISTORY (20 * NS_PER_S)
/* Minimum and maximum delay of a point of the monitor in addition to two of its intervals. */
#define LATE_MIN (50 * NS_PER_MS)
#define LATE_MAX NS_PER_S
/* Sums of covered time are exact except for rounding in JSON. */
#define ROUNDING         NS_PER_US

#define JOULES_PER_COUNT 1e-6
/* For devices without a known limit: no device draws more. */
#define WATTS_MAX 1e5

enum { BODY_MAX = 8 << 20, FIRST_EXCHANGES = 3 };

/* One energy channel: its domain on the server, and the last point read, in the server's terms. */
struct progress {
    char source[96];
    enum scope scope;
    int location;
    nanos t, covered;
    double joules;
    bool has_begun;
};

struct remote {
    struct http *http;
    struct params headers;
    struct text body;
    char url[200];
    struct grpc_stream *stream;    /* over gRPC; NULL: over HTTP */
    nanos interval;                /* between its messages */
    nanos newest, heard;           /* time of its newest message, by its clock and ours */
    bool has_read;                 /* was read before */
    struct grpc_stream *check;     /* an additional call, for the clock offset; NULL: none now */
    nanos checked, check_at;       /* when it was started; when the next one is due */
    nanos stepped;                 /* when the server's clock was set; 0: never */
    unsigned repeats;              /* of it */
    char device[DEVICE_NAME_SIZE]; /* its name on the server */
    char instance[40];
    struct clock_offset clock;
    nanos asked_since;   /* server's time */
    nanos failing_since; /* 0: the last request succeeded */
    struct progress progress[SENSOR_CHANNELS_MAX];
};

/* ---- addresses ---- */

/* Converts "HOST", "HOST:PORT" or a URL to a URL and to the label of its devices. */
static enum err read_address(const char *given, char *address, size_t size, char *label,
                             size_t label_size, struct error *why)
{
    const char *scheme = strstr(given, "://");
    const char *host = scheme ? scheme + 3 : given;
    const char *end = strchr(host, ']');
    bool is_grpc = str_starts(given, GRPC_SCHEME);
    const char *port = is_grpc ? ":" GRPC_PORT : ":" DEFAULT_PORT;
    bool has_port = strchr(end ? end : host, ':') || (scheme && !is_grpc);
    size_t length = strcspn(host, "/?#");
    struct url url;
    if (!str_format(address, size, "%.*s%.*s%s", scheme ? (int)(host - given) : 7,
                    scheme ? given : "http://", (int)length, host, has_port ? "" : port) ||
        !length || !str_is_plain(given))
        return err_set(why, ERR_USAGE, "'%s' is not an address: expected HOST or HOST:PORT",
                       plain_text(given).text);
    char plain[200];
    chars_format(plain, "%s%s", is_grpc ? "http://" : "",
                 address + (is_grpc ? strlen(GRPC_SCHEME) : 0));
    enum err err = url_read(plain, &url, why);
    if (err)
        return err;
    if (length > strlen(port) && !strncmp(host + length - strlen(port), port, strlen(port)))
        length -= strlen(port);
    if (!str_format(label, label_size, "%.*s", (int)length, host))
        return err_set(why, ERR_USAGE, "'%.60s...' is too long: give the host's address", given);
    return ERR_OK;
}

static enum err add_token(struct params *headers, struct error *why)
{
    const char *token = getenv(TOKEN_NAME), *path = getenv(TOKEN_FILE_NAME);
    struct text file = {0}, value = {0};
    enum err err = ERR_OK;
    if (!(token && *token) && path && *path) {
        err = file_read(path, FILE_SMALL, &file, why);
        if (!err)
            file.bytes[strcspn(text_get(&file), " \t\r\n")] = '\0';
        token = err ? NULL : text_get(&file);
    }
    if (token && *token) {
        secret_add(token);
        text_addf(&value, "Bearer %s", token);
        err = err_explain(why, value.failed ? ERR_NO_MEMORY
                                            : params_set(headers, "Authorization", value.bytes));
    }
    text_release(&file);
    text_release(&value);
    return err;
}

/* ---- requests ---- */

static enum err check_status(int status, struct error *why)
{
    if (status == 401)
        return err_set(why, ERR_DENIED, "its ipw monitor requires a token");
    if (status == 429)
        return err_set(why, ERR_DENIED,
                       "its ipw monitor got too many wrong tokens: try again in a minute");
    if (status == 403)
        return err_set(why, ERR_USAGE,
                       "the server there refuses this host name: start its ipw monitor with "
                       "--allow-host NAME, or give its address");
    if (status < 200 || status > 299)
        return err_set(why, ERR_UNSUPPORTED,
                       "the server there is not an ipw monitor (HTTP status %d)", status);
    return ERR_OK;
}

/* ---- the messages of an energy-monitor, over gRPC ----
 *
 * The first message of a call arrives immediately and may be as old as the server's collection interval; later ones were
 * collected after our request, so that they bound the clock offset as a response of our own monitor does: well from one
 * side, but from the other only as well as the call is young.  So the offset is checked by short additional calls, while
 * the stream of readings stays open. */

static enum err open_stream(const struct remote *remote, unsigned attempts,
                            struct grpc_stream **out, struct error *why)
{
    const struct grpc_stream_options options = {
        .server = remote->url + strlen("http://"),
        .method = "/energy.EnergyMonitor/StreamTelemetry",
        .attempts = attempts,
    };
    return grpc_stream_new(&options, out, why);
}

static void end_check(struct remote *remote, nanos next)
{
    grpc_stream_free(remote->check);
    remote->check = NULL;
    remote->check_at = next;
}

/* The server's clock was set: its offset is unknown until a call that starts from now on. */
static void forget_clock(struct remote *remote)
{
    remote->clock = (struct clock_offset){0};
    remote->stepped = clock_now();
    remote->newest = 0;
    remote->repeats = 0;
    end_check(remote, 0);
}

/* Adds a message to the clock offset.  False: it contradicts the earlier ones. */
static bool add_exchange(struct remote *remote, const struct grpc_message *message, nanos stamp)
{
    bool counts = !message->is_first && (remote->clock.is_known || message->sent > remote->stepped);
    return !counts || clock_offset_add(&remote->clock, message->sent, message->t, stamp);
}

/* One message of an additional call, the second of which is the result. */
static enum err take_check(struct remote *remote, struct grpc_message *message, bool *agrees)
{
    struct readings readings;
    enum err err = readings_from_telemetry(message->bytes, message->length, &readings, NULL);
    if (!err) {
        *agrees = add_exchange(remote, message, readings.monotonic);
        readings_release(&readings);
    }
    nanos good = max_nanos(remote->interval, STREAM_PERIOD_MIN) / CHECK_SHARE;
    bool is_last = !err && !message->is_first;
    if (is_last && clock_offset_error(&remote->clock, message->t) > good &&
        remote->repeats++ < CHECK_REPEATS)
        end_check(remote, 0);
    else if (is_last || err)
        end_check(remote, clock_now() + CHECK_PERIOD);
    grpc_message_release(message);
    return err;
}

/* Makes the additional calls; does not wait for them.  False: the server's clock was set. */
static bool check_clock(struct remote *remote)
{
    nanos now = clock_now();
    struct grpc_message message;
    bool agrees = true;
    enum err err = ERR_OK;
    if (!remote->check && now >= remote->check_at) {
        remote->checked = now;
        err = open_stream(remote, 1, &remote->check, NULL);
    }
    while (!err && agrees && remote->check &&
           !(err = grpc_stream_next(remote->check, 0, &message, NULL)))
        err = take_check(remote, &message, &agrees);
    if ((err && err != ERR_NO_DATA) || (remote->check && now - remote->checked > STREAM_TIMEOUT))
        end_check(remote, now + CHECK_PERIOD);
    return agrees;
}

/* The next message whose time can be placed on our timeline, or one that contradicts the earlier ones.  ERR_NO_DATA:
 * none until then.  The caller releases *out after ERR_OK. */
static enum err next_message(struct remote *remote, nanos until, struct readings *out, bool *agrees,
                             struct error *why)
{
    for (;;) {
        struct grpc_message message;
        enum err err = grpc_stream_next(remote->stream, until, &message, why);
        if (err)
            return err;
        err = readings_from_telemetry(message.bytes, message.length, out, why);
        nanos before = remote->newest;
        bool is_new = !err && out->monotonic != before;
        *agrees =
            !is_new || (out->monotonic > before && add_exchange(remote, &message, out->monotonic));
        if (is_new && *agrees) {
            remote->newest = out->monotonic;
            remote->heard = message.t;
            out->interval = before > 0 ? out->monotonic - before : 0;
        }
        grpc_message_release(&message);
        if (err || (is_new && (!*agrees || remote->clock.is_known)))
            return err;
        readings_release(out);
    }
}

/* The first reading, which is the second message: it shows the interval. */
static enum err first_message(struct remote *remote, struct readings *out, struct error *why)
{
    bool agrees;
    enum err err = next_message(remote, clock_now() + STREAM_TIMEOUT, out, &agrees, why);
    if (!err) {
        remote->interval = out->interval = max_nanos(out->interval, STREAM_PERIOD_MIN);
        return ERR_OK;
    }
    if (err != ERR_NO_DATA || why->text[0])
        return err == ERR_NO_DATA ? ERR_LOST : err;
    return err_set(why, ERR_TIMEOUT, "%s sent %s within %.0f s", remote->url + strlen("http://"),
                   remote->newest ? "one reading and no other: its collection interval is too long"
                                  : "no reading",
                   seconds(STREAM_TIMEOUT));
}

/* ---- requests to an ipw monitor ---- */

/* Requests data newer than a time of the server.  The caller releases *out after ERR_OK. */
static enum err request_readings(struct remote *remote, nanos since, struct readings *out,
                                 bool *agrees, struct error *why)
{
    char url[sizeof remote->url + 64];
    struct http_response response;
    chars_format(url, "%s" READINGS_PATH "?since=%lld", remote->url, (long long)since);
    enum err err = http_fetch(remote->http, url, &remote->headers, REQUEST_TIMEOUT, BODY_MAX,
                              &remote->body, &response, why);
    if (!err)
        err = check_status(response.status, why);
    if (!err)
        err = readings_read(text_get(&remote->body), remote->body.length, out, why);
    if (!err)
        *agrees = clock_offset_add(&remote->clock, response.sent,
                                   response.first_byte > 0 ? response.first_byte : response.done,
                                   out->monotonic);
    http_response_release(&response);
    return err;
}

static void free_remote(struct remote *remote)
{
    if (!remote)
        return;
    grpc_stream_free(remote->stream);
    grpc_stream_free(remote->check);
    http_close(remote->http);
    params_release(&remote->headers);
    text_release(&remote->body);
    free(remote);
}

static enum err connect_http(struct remote *remote, struct readings *readings, struct error *why)
{
    bool agrees;
    enum err err = add_token(&remote->headers, why);
    if (!err)
        err = http_open(&remote->http, why);
    return err ? err : request_readings(remote, INT64_MAX, readings, &agrees, why);
}

static enum err connect_grpc(struct remote *remote, struct readings *readings, struct error *why)
{
    enum err err = open_stream(remote, STREAM_ATTEMPTS, &remote->stream, why);
    return err ? err : first_message(remote, readings, why);
}

/* Connects to a URL and gets the first readings. */
static enum err connect_to(const char *url, struct remote **out, struct readings *readings,
                           struct error *why)
{
    struct remote *remote = memory_zeroed(1, sizeof *remote);
    if (!remote)
        return err_no_memory(why);
    bool is_grpc = str_starts(url, GRPC_SCHEME);
    chars_format(remote->url, "%s%s", is_grpc ? "http://" : "",
                 url + (is_grpc ? strlen(GRPC_SCHEME) : 0));
    enum err err = http_available(why);
    if (!err)
        err = is_grpc ? connect_grpc(remote, readings, why) : connect_http(remote, readings, why);
    if (err)
        free_remote(remote);
    else
        *out = remote;
    return err;
}

/* ---- a remote device as a sensor ---- */

static enum sensor_kind kind_of(const char *name)
{
    for (int kind = SENSOR_CPU; kind < SENSOR_TEST; kind++)
        if (str_equal(sensor_kind_name((enum sensor_kind)kind), name))
            return (enum sensor_kind)kind;
    return SENSOR_BOARD;
}

/* An estimate is ignored if the same device is measured. */
static bool is_estimate(const struct readings *readings, const char *device)
{
    for (size_t i = 0; i < readings->domain_count; i++)
        if (str_equal(readings->domains[i].device, device) &&
            readings->domains[i].method != METHOD_ESTIMATED)
            return false;
    return true;
}

static bool is_used(const struct readings *readings, size_t domain, const char *device)
{
    const struct reading_domain *of = &readings->domains[domain];
    return str_equal(of->device, device) &&
           (of->method != METHOD_ESTIMATED || is_estimate(readings, device));
}

static bool has_channel(const struct sensor *sensor, const char *name)
{
    for (size_t i = 0; i < sensor->channel_count; i++)
        if (str_equal(sensor->channels[i].name, name))
            return true;
    return false;
}

static void add_energy(struct sensor *out, const struct reading_domain *domain, const char *device,
                       unsigned host, nanos interval)
{
    char name[sizeof domain->channel];
    chars_copy(name, domain->channel);
    for (unsigned n = 2; has_channel(out, name); n++)
        chars_format(name, "%.24s.%u", domain->channel, n);
    struct sensor_channel *row = sensor_add_channel(out, name, device, QTY_ENERGY);
    if (!row)
        return;
    row->scope = domain->scope;
    row->location = domain->location;
    row->host = host;
    row->joules_per_count = JOULES_PER_COUNT;
    row->watts_max = domain->watts_max > 0 ? domain->watts_max : WATTS_MAX;
    row->relative_accuracy = domain->accuracy;
    row->estimated = domain->method == METHOD_ESTIMATED;
    row->integrated = domain->method == METHOD_INTEGRAL;
    row->period = interval;
    row->lag = 2 * interval + LATE_MIN; /* an update there contains readings of the one before */
    row->behind = 2 * interval + LATE_MAX;
}

static void add_channels(struct sensor *out, const struct readings *readings, const char *there,
                         const char *device, unsigned host)
{
    for (size_t i = 0; i < readings->domain_count; i++)
        if (is_used(readings, i, there))
            add_energy(out, &readings->domains[i], device, host, readings->interval);
    for (size_t i = 0; i < readings->gauge_count && out->channel_count; i++) {
        const struct reading_gauge *gauge = &readings->gauges[i];
        if (str_equal(gauge->device, there) && !quantity_gives_joules(gauge->quantity) &&
            !gauge->is_absent && !has_channel(out, gauge->channel))
            sensor_add_channel(out, gauge->channel, device, gauge->quantity);
    }
    const nanos most_often = 20 * NS_PER_MS, least_often = 250 * NS_PER_MS;
    nanos often = readings->interval / 4;
    if (often < most_often)
        often = most_often;
    else if (often > least_often)
        often = least_often;
    out->groups[0] = (struct sensor_group){
        .period_default = readings->interval,
        .period_min = often,
        .fixed_period = true,
    };
    out->group_count = 1;
}

/* Assigns a domain to each energy channel, in the order of add_channels. */
static void note_domains(struct remote *remote, const struct readings *readings, struct sensor *out)
{
    size_t channel = 0;
    for (size_t i = 0; i < readings->domain_count && channel < SENSOR_CHANNELS_MAX; i++) {
        const struct reading_domain *domain = &readings->domains[i];
        if (!is_used(readings, i, remote->device))
            continue;
        struct progress *at = &remote->progress[channel++];
        chars_copy(at->source, domain->source);
        at->scope = domain->scope;
        at->location = domain->location;
        if (domain->uuid[0] && channel == 1)
            sensor_add_fact(out, "uuid", domain->uuid);
    }
}

static void await_checks(struct remote *remote)
{
    nanos until = clock_now() + CHECK_OPENING;
    while (clock_now() < until && remote->check_at < until && check_clock(remote))
        thread_sleep(CHECK_POLL);
}

static enum err remote_open(const struct sensor_finding *finding, struct sensor *out,
                            struct error *why)
{
    const char *mark = strchr(finding->address, '#');
    char url[sizeof finding->address];
    struct readings readings;
    struct remote *remote;
    bool agrees;
    chars_format(url, "%.*s", (int)(mark - finding->address), finding->address);
    enum err err = connect_to(url, &remote, &readings, why);
    if (err)
        return err;
    chars_copy(remote->device, mark + 1);
    chars_copy(remote->instance, readings.instance);
    nanos several = 3 * readings.interval;
    remote->asked_since = readings.monotonic - (several > HISTORY ? several : HISTORY);
    add_channels(out, &readings, remote->device, finding->id + strlen("remote:"), finding->key);
    note_domains(remote, &readings, out);
    if (readings.host[0])
        sensor_add_fact(out, "host", readings.host);
    readings_release(&readings);
    if (!out->channel_count)
        err = err_set(why, ERR_NOT_FOUND, "its ipw monitor has no readings of %s", remote->device);
    /* The first exchange included connection setup; later ones bound the clock offset better. */
    if (remote->stream && !err)
        await_checks(remote);
    for (int i = 1; i < FIRST_EXCHANGES && !err && !remote->stream; i++) {
        err = request_readings(remote, INT64_MAX, &readings, &agrees, why);
        if (!err)
            readings_release(&readings);
    }
    if (err)
        free_remote(remote);
    else
        out->state = remote;
    return err;
}

static void remote_close(struct sensor *sensor)
{
    free_remote(sensor->state);
}

/* ---- reading ---- */

static void observe_points(struct remote *remote, const struct reading_domain *domain,
                           unsigned channel, nanos now, struct observations *out)
{
    struct progress *at = &remote->progress[channel];
    nanos error = clock_offset_error(&remote->clock, now);
    for (size_t i = 0; i < domain->point_count; i++) {
        const struct reading_point *point = &domain->points[i];
        nanos t = clock_offset_to_local(&remote->clock, point->t);
        t = t < now ? t : now;
        if (at->has_begun && (point->t <= at->t || (remote->stream && point->joules == at->joules)))
            continue;
        /* An energy-monitor reports when it collected; the counter changed since its last collection. */
        nanos sigma = error + (remote->stream ? (point->t - at->t) / 2 : 0);
        if (at->has_begun && point->t - at->t - (point->covered - at->covered) > ROUNDING)
            observe_missing(out, channel, t, ERR_LOST);
        if (at->has_begun || !remote->stream)
            observe_timed(out, channel, t, sigma, (uint64_t)(point->joules / JOULES_PER_COUNT));
        at->t = point->t;
        at->covered = point->covered;
        at->joules = point->joules;
        at->has_begun = true;
        if (point->t > remote->asked_since)
            remote->asked_since = point->t;
    }
}

static void observe_gauges(struct remote *remote, const struct sensor *sensor,
                           const struct readings *readings, nanos now, struct observations *out)
{
    for (unsigned c = 0; c < sensor->channel_count; c++) {
        const struct sensor_channel *row = &sensor->channels[c];
        for (size_t i = 0; row->quantity != QTY_ENERGY && i < readings->gauge_count; i++) {
            const struct reading_gauge *gauge = &readings->gauges[i];
            if (!str_equal(gauge->channel, row->name) || gauge->quantity != row->quantity ||
                !str_equal(gauge->device, remote->device))
                continue;
            if (is_known(gauge->value)) /* still current there, whenever it was read */
                observe_value(out, c, now, gauge->value);
            else
                observe_missing(out, c, now, ERR_NO_DATA);
            break;
        }
    }
}

static bool is_of(const struct progress *at, const struct reading_domain *domain)
{
    return at->scope == domain->scope && at->location == domain->location &&
           str_equal(at->source, domain->source);
}

static enum err lost(struct sensor *sensor, const char *why)
{
    chars_copy(sensor->lost_why, why);
    return ERR_LOST;
}

/* A response of a restarted monitor, or one without our domains: the device is lost. */
static enum err observe_answer(struct remote *remote, struct sensor *sensor,
                               const struct readings *readings, struct observations *out)
{
    nanos now = clock_now();
    bool any = false;
    if (!str_equal(readings->instance, remote->instance))
        return lost(sensor, "its ipw monitor was restarted");
    for (unsigned c = 0; c < sensor->channel_count; c++)
        for (size_t i = 0; sensor->channels[c].quantity == QTY_ENERGY && i < readings->domain_count;
             i++)
            if (is_of(&remote->progress[c], &readings->domains[i])) {
                observe_points(remote, &readings->domains[i], c, now, out);
                any = true;
                break;
            }
    observe_gauges(remote, sensor, readings, now, out);
    return any ? ERR_OK : lost(sensor, "the monitor there has no readings of it");
}

/* A clock stopped or stepped: the interval between the points before and after is unknown, and so are the times of
 * the points in this response. */
static void restart(struct remote *remote, const struct sensor *sensor, nanos since,
                    struct observations *out)
{
    nanos now = clock_now();
    for (unsigned c = 0; c < sensor->channel_count; c++) {
        if (sensor->channels[c].quantity == QTY_ENERGY)
            observe_missing(out, c, now, ERR_LOST);
        remote->progress[c].has_begun = false;
    }
    remote->asked_since = since;
}

static bool has_energy(const struct sensor *sensor, const struct observations *seen)
{
    for (size_t i = 0; i < seen->count; i++)
        if (sensor->channels[seen->items[i].channel].quantity == QTY_ENERGY)
            return true;
    return false;
}

/* Takes the messages that have arrived.  A call that ended is repeated meanwhile. */
static enum err read_stream(struct sensor *sensor, struct observations *out)
{
    struct remote *remote = sensor->state;
    struct readings readings;
    struct error why = {0};
    bool agrees = check_clock(remote);
    /* Only the first read waits: a measurement begins with it. */
    nanos until = remote->has_read ? 0 : clock_now() + REQUEST_TIMEOUT;
    enum err err = ERR_OK, seen = ERR_OK;
    while (agrees && !seen && !(err = next_message(remote, until, &readings, &agrees, &why))) {
        if (agrees)
            seen = observe_answer(remote, sensor, &readings, out);
        readings_release(&readings);
        until = has_energy(sensor, out) ? 0 : until;
    }
    remote->has_read = true;
    if (!agrees) {
        forget_clock(remote);
        restart(remote, sensor, 0, out);
        return ERR_OK;
    }
    nanos silent = clock_now() - remote->heard, limit = max_nanos(LOST_AFTER, 3 * remote->interval);
    if (seen || (err == ERR_NO_DATA && silent <= limit))
        return seen;
    if (!why.text[0])
        (void)err_set(&why, ERR_LOST, "no reading for %.1f s", seconds(silent));
    return lost(sensor, why.text);
}

static enum err read_http(struct sensor *sensor, struct observations *out)
{
    struct remote *remote = sensor->state;
    struct readings readings;
    struct error why;
    bool agrees;
    enum err err = request_readings(remote, remote->asked_since, &readings, &agrees, &why);
    nanos now = clock_now();
    if (!err) {
        remote->failing_since = 0;
        if (agrees)
            err = observe_answer(remote, sensor, &readings, out);
        else
            restart(remote, sensor, readings.monotonic, out);
        readings_release(&readings);
        return err;
    }
    if (!remote->failing_since)
        remote->failing_since = now;
    if (now - remote->failing_since > LOST_AFTER)
        return lost(sensor, why.text);
    return err == ERR_LOST ? ERR_IO : err;
}

static enum err remote_read(struct sensor *sensor, unsigned group, struct observations *out)
{
    const struct remote *remote = sensor->state;
    (void)group;
    return remote->stream ? read_stream(sensor, out) : read_http(sensor, out);
}

/* ---- probing ---- */

static void found_none(struct sensor_findings *out, const char *label, bool is_grpc, enum err err,
                       const struct error *why)
{
    char id[sizeof out->items->id];
    chars_format(id, "remote:%s", label);
    struct sensor_finding *finding =
        sensor_found(out, id, SENSOR_HOST, err == ERR_DENIED ? SENSOR_DENIED : SENSOR_UNSUPPORTED);
    if (!finding)
        return;
    chars_copy(finding->reason, why->text);
    if (err == ERR_DENIED)
        chars_copy(finding->fix,
                   "set " TOKEN_NAME " to the token of that monitor, or " TOKEN_FILE_NAME
                   " to a file with it");
    else if (err == ERR_NO_DATA)
        chars_copy(finding->fix, "run `ipw doctor` there");
    else if (is_grpc && err == ERR_UNSUPPORTED)
        chars_copy(finding->fix, "give the port of an energy-monitor, or, without " GRPC_SCHEME
                                 ", of an ipw monitor");
    else if (err != ERR_USAGE)
        chars_copy(finding->fix, is_grpc ? "run `energy-monitor --bind-address ADDRESS` there"
                                         : "run `ipw monitor --listen ADDRESS:" DEFAULT_PORT
                                           " --token-file FILE` there");
}

static void found_device(struct sensor_findings *out, const char *address, const char *label,
                         unsigned host, const struct readings *readings,
                         const struct reading_domain *domain)
{
    char id[sizeof out->items->id], full[sizeof out->items->address];
    struct sensor sensor = {0};
    struct error why;
    if (!chars_format(id, "remote:%s/%s", label, domain->device) ||
        !chars_format(full, "%s#%s", address, domain->device)) {
        enum err err =
            err_set(&why, ERR_UNSUPPORTED, "%s: name too long; give its address", domain->device);
        found_none(out, label, false, err, &why);
        return;
    }
    bool estimated = is_estimate(readings, domain->device);
    struct sensor_finding *finding =
        sensor_found(out, id, kind_of(domain->kind), estimated ? SENSOR_ESTIMATED : SENSOR_OK);
    if (!finding)
        return;
    chars_copy(finding->name, domain->name);
    chars_copy(finding->address, full);
    chars_copy(finding->uuid, domain->uuid);
    if (estimated)
        chars_copy(finding->reason, "a model there, not a measurement");
    finding->key = host;
    add_channels(&sensor, readings, domain->device, "device", host);
    sensor_measures(&sensor, finding->measures, sizeof finding->measures);
}

/* A host given twice would be counted twice. */
static bool is_found(const struct sensor_findings *findings, const char *label)
{
    size_t length = strlen(label);
    for (size_t i = 0; i < findings->count; i++) {
        const char *id = findings->items[i].id;
        if (str_starts(id, "remote:") && !strncmp(id + 7, label, length) && id[7 + length] == '/')
            return true;
    }
    return false;
}

static void probe_host(const char *given, unsigned host, struct sensor_findings *out)
{
    char address[sizeof out->items->address], label[40];
    struct error why;
    struct readings readings;
    struct remote *remote;
    bool is_grpc = str_starts(given, GRPC_SCHEME);
    enum err err = read_address(given, address, sizeof address, label, sizeof label, &why);
    if (err) {
        chars_format(label, "%.36s", plain_text(given).text);
        found_none(out, label, is_grpc, err, &why);
        return;
    }
    err = is_found(out, label) ? err_set(&why, ERR_USAGE, "given more than once")
                               : connect_to(address, &remote, &readings, &why);
    if (!err && !readings.domain_count) {
        err = err_set(&why, ERR_NO_DATA, "no sensor of that host measures energy");
        readings_release(&readings);
        free_remote(remote);
    }
    if (err) {
        found_none(out, label, is_grpc, err, &why);
        return;
    }
    for (size_t i = 0; i < readings.domain_count; i++) {
        bool is_first = true;
        for (size_t k = 0; k < i; k++)
            is_first &= !str_equal(readings.domains[k].device, readings.domains[i].device);
        if (is_first)
            found_device(out, address, label, host, &readings, &readings.domains[i]);
    }
    readings_release(&readings);
    free_remote(remote);
}

static void remote_probe(const struct sensor_config *config, struct sensor_findings *out)
{
    const char *list = config->arguments;
    char given[256];
    if (!list) {
        struct sensor_finding *finding = sensor_found(out, "remote", SENSOR_HOST, SENSOR_ABSENT);
        if (finding)
            chars_copy(finding->reason, "no remote host given: --sensors remote=HOST[:PORT]");
        return;
    }
    for (unsigned host = 1; list && str_next_item(&list, given, sizeof given); host++)
        probe_host(given, host, out);
}

const struct sensor_driver sensor_remote = {
    .name = "remote",
    .summary = "sensors of another host, through the ipw monitor that runs there",
    .argument = "HOST[:PORT]",
    .probe = remote_probe,
    .open = remote_open,
    .read = remote_read,
    .close = remote_close,
};
