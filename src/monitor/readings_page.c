/* The energy of all domains as points in time, and the newest of other values, for another ipw: what /api/v1/readings
 * answers (wire/readings.h). */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "monitor/parts.h"
#include "sampler/sampler.h"

static const char *uuid_of(const struct sensor *sensor)
{
    for (size_t i = 0; i < sensor->fact_count; i++)
        if (!strcmp(sensor->facts[i].key, "uuid"))
            return sensor->facts[i].text;
    return "";
}

static void fill_domain(struct sampler *sampler, const struct domain *domain, nanos since,
                        nanos now, size_t number, struct reading_domain *out)
{
    const struct sensor *sensor = sampler_sensor(sampler, domain->source);
    const struct sensor_channel *row = &sensor->channels[domain->channel];
    struct channel_state read;
    size_t first = 0;
    sampler_channel(sampler, domain->source, domain->channel, &read);
    while (first < domain->point_count && domain->points[first].t <= since)
        first++;
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
        .points = domain->points + first,
        .point_count = domain->point_count - first,
    };
    str_copy(out->device, sizeof out->device, domain->device);
    str_copy(out->name, sizeof out->name, sensor->name);
    str_copy(out->kind, sizeof out->kind, sensor_kind_name(sensor->kind));
    str_format(out->source, sizeof out->source, "%s %s", sensor->id, row->name);
    str_copy(out->channel, sizeof out->channel, row->name);
    str_copy(out->uuid, sizeof out->uuid, uuid_of(sensor));
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
        str_copy(gauge->device, sizeof gauge->device, row->device);
        str_copy(gauge->channel, sizeof gauge->channel, row->name);
    }
}

enum err readings_page(struct state *state, nanos since, struct readings *out)
{
    struct sampler *sampler = state_sampler(state);
    size_t count, channels = sampler ? sampler_channel_count(sampler) : 0;
    const struct domain *domains = state_domains(state, &count);
    nanos now = clock_now();
    *out = (struct readings){
        .domains = calloc(count + 1, sizeof *out->domains),
        .gauges = calloc(channels + 1, sizeof *out->gauges),
    };
    if (!out->domains || !out->gauges) {
        readings_release(out);
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; sampler && i < count; i++)
        if (domains[i].is_present && (domains[i].point_count || domains[i].is_awaited))
            fill_domain(sampler, &domains[i], since, now, i, &out->domains[out->domain_count++]);
    if (sampler)
        fill_gauges(state, sampler, now, out);
    return ERR_OK;
}
