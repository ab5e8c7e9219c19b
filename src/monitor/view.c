/* The readings of all sensors for others: for a program that displays them itself, a session and its state, updated by
 * the caller; for another host, the state of the monitor. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/xalloc.h"
#include "monitor/parts.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

enum err monitor_session_open(const char *drivers, const char *devices, nanos interval,
                              bool is_fine, struct session **out, struct error *why)
{
    struct session_options wanted = {.drivers = drivers,
                                     .period = interval,
                                     .recent = true,
                                     .low_overhead = true,
                                     .tick_period = is_fine ? interval : 0,
                                     .sensors = {.devices = devices}};
    struct session *session = *out = xmalloc(sizeof *session);
    enum err err = session_open(session, &wanted, why);
    if (err) {
        free(session);
        *out = NULL;
    }
    return err;
}

void monitor_session_close(struct session *session)
{
    if (!session)
        return;
    session_close(session);
    free(session);
}

struct monitor_view {
    struct session *session;
    struct state *state;
    nanos interval;
};

enum err monitor_view_open(const char *drivers, const char *devices, nanos interval,
                           struct monitor_view **out, struct error *why)
{
    struct monitor_view *view = *out = XNEW(view);
    view->state = state_new();
    view->interval = interval;
    enum err err = monitor_session_open(drivers, devices, interval, false, &view->session, why);
    if (err) {
        monitor_view_close(view);
        *out = NULL;
        return err;
    }
    state_attach(view->state, view->session, interval);
    return ERR_OK;
}

void monitor_view_close(struct monitor_view *view)
{
    if (!view)
        return;
    state_free(view->state);
    monitor_session_close(view->session);
    free(view);
}

void monitor_view_update(struct monitor_view *view, nanos now)
{
    state_update(view->state, now);
    state_request(view->state, now + view->interval);
}

const struct sensor_findings *monitor_view_findings(const struct monitor_view *view)
{
    return &view->session->findings;
}

double monitor_view_gauge(const struct monitor_view *view, enum monitor_gauge gauge)
{
    static const enum family FAMILIES[] = {[MONITOR_HOST_UTILIZATION] = FAMILY_HOST_UTILIZATION,
                                           [MONITOR_HOST_MEMORY] = FAMILY_HOST_MEMORY_USED};
    size_t count;
    double sum = state_sum(view->state, FAMILIES[gauge], &count);
    return gauge == MONITOR_HOST_UTILIZATION && count ? sum / (double)count : sum;
}

/* Excludes an estimate of a quantity that is also measured, and domains that are still awaited. */
static bool is_shown(const struct domain *domain)
{
    return domain->is_present && !domain->is_pending &&
           (domain->method != METHOD_ESTIMATED || domain->is_counted);
}

static void fill_device(const struct monitor_view *view, const struct domain *domain,
                        struct monitor_device *out)
{
    static const char *const KINDS[] = {
        [DOMAIN_CPU] = "cpu", [DOMAIN_GPU] = "gpu", [DOMAIN_PLATFORM] = "platform"};
    const struct sensor *sensor = sampler_sensor(view->session->sampler, domain->source);
    const struct sensor_channel *channel = &sensor->channels[domain->channel];
    bool is_lost, is_gpu = domain->kind == DOMAIN_GPU;
    *out = (struct monitor_device){.kind = KINDS[domain->kind],
                                   .source = sensor->id,
                                   .method = domain->method,
                                   .power_w = domain->watts,
                                   .energy_j = domain->joules,
                                   .relative_accuracy = domain->accuracy,
                                   .is_counted = domain->is_counted};
    chars_format(out->id, "%s/%s%s%s", domain->device, scope_name(domain->scope),
                 domain->kind == DOMAIN_PLATFORM ? "/" : "",
                 domain->kind == DOMAIN_PLATFORM ? channel->name : "");
    chars_copy(out->name, sensor->name);
    state_health(view->state, domain->source, &is_lost, &out->age_s);
    out->health = domain->is_up ? "ok" : is_lost ? "lost" : "stale";
    out->utilization = is_gpu ? domain->utilization : UNKNOWN;
    out->memory_used =
        is_gpu ? state_gauge_of(view->state, domain->source, FAMILY_GPU_MEMORY_USED) : UNKNOWN;
    out->temperature_c = state_gauge_of(view->state, domain->source,
                                        is_gpu ? FAMILY_GPU_TEMPERATURE : FAMILY_HOST_TEMPERATURE);
    out->clock_hz =
        state_gauge_of(view->state, domain->source, is_gpu ? FAMILY_GPU_CLOCK : FAMILY_HOST_CLOCK);
}

size_t monitor_view_devices(const struct monitor_view *view, struct monitor_device *out, size_t max)
{
    size_t count, shown = 0;
    const struct domain *domains = state_domains(view->state, &count);
    for (size_t i = 0; i < count && shown < max; i++)
        if (is_shown(&domains[i]))
            fill_device(view, &domains[i], &out[shown++]);
    return shown;
}

/* ---- for another host ---- */

/* The energy of all domains as points in time, and the newest other values, for another ipw: the response of
 * /api/v1/readings (wire/readings.h). */

/* The points after `since`. */
static struct reading_point *copy_points(const struct domain *domain, nanos since, size_t *count)
{
    size_t first = 0;
    while (first < domain->point_count && domain->points[first].t <= since)
        first++;
    *count = domain->point_count - first;
    return xmemdup(domain->points + first, *count * sizeof(struct reading_point));
}

static void fill_domain(struct sampler *sampler, const struct domain *domain, nanos since,
                        nanos now, size_t number, struct reading_domain *out)
{
    const struct sensor *sensor = sampler_sensor(sampler, domain->source);
    const struct sensor_channel *row = &sensor->channels[domain->channel];
    struct channel_state read;
    size_t point_count;
    struct reading_point *points = copy_points(domain, since, &point_count);
    sampler_channel(sampler, domain->source, domain->channel, &read);
    *out = (struct reading_domain){
        .number = number,
        .scope = domain->scope,
        .location = domain->location,
        .method = domain->method,
        .accuracy = domain->accuracy,
        .watts = domain->watts,
        .watts_max = row->watts_max > 0 ? row->watts_max : UNKNOWN,
        .period_s = read.period > 0 ? seconds(read.period) : UNKNOWN,
        .age_s = domain->t > 0 ? seconds(now - domain->t) : UNKNOWN,
        .is_up = domain->is_up,
        .is_counted = domain->is_counted,
        .points = points,
        .point_count = point_count,
    };
    chars_copy(out->device, domain->device);
    chars_copy(out->name, sensor->name);
    chars_copy(out->kind, sensor_kind_name(sensor->kind));
    chars_format(out->source, "%s %s", sensor->id, row->name);
    chars_copy(out->channel, row->name);
    chars_copy(out->uuid, sensor_fact(sensor, "uuid"));
}

static void fill_gauges(const struct state *state, struct sampler *sampler, nanos now,
                        struct readings *out)
{
    size_t source, channel;
    bool known;
    for (size_t i = 0; state_gauge(state, i, &source, &channel, &known); i++) {
        const struct sensor_channel *row = &sampler_sensor(sampler, source)->channels[channel];
        struct reading_gauge *gauge = &out->gauges[out->gauge_count++];
        struct channel_state read;
        sampler_channel(sampler, source, channel, &read);
        *gauge = (struct reading_gauge){
            .quantity = row->quantity,
            .value = known ? read.value : UNKNOWN,
            .age_s = read.t > 0 ? seconds(now - read.t) : UNKNOWN,
        };
        chars_copy(gauge->device, row->device);
        chars_copy(gauge->channel, row->name);
    }
}

void readings_page(struct state *state, nanos since, struct readings *out)
{
    struct sampler *sampler = state_sampler(state);
    size_t count, channels = sampler ? sampler_channel_count(sampler) : 0;
    const struct domain *domains = state_domains(state, &count);
    nanos now = clock_now();
    *out = (struct readings){
        .domains = xcalloc(count + 1, sizeof *out->domains),
        .gauges = xcalloc(channels + 1, sizeof *out->gauges),
    };
    for (size_t i = 0; sampler && i < count; i++)
        if (domains[i].is_present && (domains[i].point_count || domains[i].is_pending))
            fill_domain(sampler, &domains[i], since, now, i, &out->domains[out->domain_count++]);
    if (sampler)
        fill_gauges(state, sampler, now, out);
}
