/* The sensor readings as counters and gauges.
 *
 * Joules are taken from the running sums of the sampler, up to the newest reading; in its low-overhead sessions an
 * energy counter that is read rarely is extrapolated with power.  The readings of an update are requested before it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/channel_energy.h"
#include "attribute/ledger.h"
#include "core/clock.h"
#include "core/xalloc.h"
#include "monitor/parts.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

/* Window over which the devices of the total are chosen. */
#define TOTAL_WINDOW (10 * NS_PER_S)
/* Minimum averaging window of power. */
#define POWER_WINDOW (500 * NS_PER_MS)
/* Period of values that change or are read rarely: gauges, sensors, the devices of the total. */
#define SLOW_PERIOD NS_PER_S
/* A counter that does not change for this long is dead. */
#define COUNTER_TIMEOUT (10 * NS_PER_S)
/* Readings for an update are requested for this long before it: drivers deliver them about 35 ms late. */
#define READ_AHEAD (60 * NS_PER_MS)

/* Energy is extrapolated by two periods of the readings plus this: the reading thread may wait for a busy machine. */
#define REACH_MORE NS_PER_S

/* A reading older than three of its periods plus this is stale. */
#define STALE_MORE (2 * NS_PER_S)

/* A gauge: the newest value of one channel. */
struct gauge {
    size_t source, channel;
    enum family family;
    double scale;
    struct text labels;
    double value; /* UNKNOWN if stale */
    bool is_part; /* of a MIG instance: excluded from sums */
};

enum sensor_counter { COUNT_READS, COUNT_FAILED, COUNT_SECONDS, COUNT_LOST, SENSOR_COUNTERS };

struct sensor_row {
    char id[48];
    struct text labels, info;
    long source;               /* -1: not open */
    enum sensor_status status; /* status when it was opened */
    bool is_lost, has_read;
    bool is_up;
    double age_s;                   /* UNKNOWN before the first reading */
    double before[SENSOR_COUNTERS]; /* totals of earlier sessions */
    double now[SENSOR_COUNTERS];
};

struct state {
    struct session *session;
    nanos period;
    struct domain *domains;
    size_t domain_count, domain_capacity;
    struct gauge *gauges;
    size_t gauge_count, gauge_capacity;
    struct sensor_row *sensors;
    size_t sensor_count, sensor_capacity;
    nanos slow_next; /* earliest next slow update, unless a domain appeared or disappeared */
    double joules[METHOD_ESTIMATED + 1], watts[METHOD_ESTIMATED + 1]; /* machine, by method */
};

void family_begin(struct exposition *to, enum family family)
{
    static const struct metric_family FAMILIES[FAMILY_COUNT] = {
#define FAMILY(constant, type, name, unit, help)                                                   \
    [FAMILY_##constant] = {name, METRIC_##type, unit, help},
#include "monitor/families.def"
#undef FAMILY
    };
    exposition_family(to, &FAMILIES[family]);
}

/* ---- domains, gauges and sensors ---- */

struct state *state_new(void)
{
    struct state *state = XNEW(state);
    for (int i = 0; i <= METHOD_ESTIMATED; i++)
        state->watts[i] = UNKNOWN;
    return state;
}

static void forget_gauges(struct state *state)
{
    for (size_t i = 0; i < state->gauge_count; i++)
        text_release(&state->gauges[i].labels);
    state->gauge_count = 0;
}

void state_free(struct state *state)
{
    if (!state)
        return;
    forget_gauges(state);
    for (size_t i = 0; i < state->domain_count; i++) {
        text_release(&state->domains[i].labels);
        text_release(&state->domains[i].brief);
    }
    for (size_t i = 0; i < state->sensor_count; i++) {
        text_release(&state->sensors[i].labels);
        text_release(&state->sensors[i].info);
    }
    free(state->gauges);
    free(state->domains);
    free(state->sensors);
    free(state);
}

struct domain *state_domains(struct state *state, size_t *count)
{
    *count = state->domain_count;
    return state->domains;
}

double domain_ahead(const struct domain *domain, nanos t)
{
    nanos length = min_nanos(t - domain->t, domain->reach);
    return domain->is_up && is_known(domain->newest_w) && length > 0
               ? domain->newest_w * seconds(length)
               : 0;
}

struct sampler *state_sampler(const struct state *state)
{
    return state->session ? state->session->sampler : NULL;
}

bool state_gauge(const struct state *state, size_t index, size_t *source, size_t *channel,
                 bool *known)
{
    if (index >= state->gauge_count)
        return false;
    *source = state->gauges[index].source;
    *channel = state->gauges[index].channel;
    *known = is_known(state->gauges[index].value);
    return true;
}

double state_sum(const struct state *state, enum family family, size_t *count)
{
    double sum = 0;
    *count = 0;
    for (size_t i = 0; i < state->gauge_count; i++) {
        const struct gauge *gauge = &state->gauges[i];
        if (gauge->family != family || gauge->is_part || isnan(gauge->value))
            continue;
        sum += gauge->value;
        ++*count;
    }
    return *count ? sum : UNKNOWN;
}

double state_gauge_of(const struct state *state, size_t source, enum family family)
{
    for (size_t i = 0; i < state->gauge_count; i++)
        if (state->gauges[i].source == source && state->gauges[i].family == family &&
            !state->gauges[i].is_part)
            return state->gauges[i].value;
    return UNKNOWN;
}

void state_health(const struct state *state, size_t source, bool *is_lost, double *age_s)
{
    *is_lost = false;
    *age_s = UNKNOWN;
    for (size_t i = 0; i < state->sensor_count; i++)
        if (state->sensors[i].source == (long)source) {
            *is_lost = state->sensors[i].is_lost;
            *age_s = state->sensors[i].age_s;
        }
}

static void add_gpu_names(struct text *labels, const struct sensor *sensor, const char *device)
{
    const char *digits = device + strcspn(device, "0123456789");
    char number[16];
    chars_format(number, "%.*s", (int)strcspn(digits, ":"), digits);
    exposition_label(labels, "gpu", number);
    exposition_label(labels, "UUID", sensor_fact(sensor, "uuid"));
}

void add_instance_labels(struct text *labels, const struct sensor *sensor, const char *device)
{
    const char *id = strstr(device, ":gi");
    char key[24], profile[24];
    if (!id)
        return;
    id += strlen(":gi");
    chars_format(key, "mig_gi%s", id);
    const char *text = sensor_fact(sensor, key); /* "1g.18gb MIG-..." */
    chars_format(profile, "%.*s", (int)strcspn(text, " "), text);
    exposition_label(labels, "GPU_I_ID", id);
    exposition_label(labels, "GPU_I_PROFILE", profile);
}

/* Labels as in dcgm-exporter. */
static void add_gpu_labels(struct text *labels, const struct sensor *sensor, const char *device)
{
    const char *number = device + strcspn(device, "0123456789");
    char node[32];
    bool is_nvidia = str_equal(sensor->driver->name, "nvml");
    chars_format(node, "%s%.*s", is_nvidia ? "nvidia" : device,
                 is_nvidia ? (int)strcspn(number, ":") : 0, number);
    add_gpu_names(labels, sensor, device);
    exposition_label(labels, "pci_bus_id", sensor_fact(sensor, "pci_bus_id"));
    exposition_label(labels, "device", node);
    exposition_label(labels, "model_name", sensor->name);
    add_instance_labels(labels, sensor, device);
}

static enum domain_kind kind_of(const struct sensor *sensor, enum scope scope)
{
    if (sensor->kind == SENSOR_GPU)
        return DOMAIN_GPU;
    return scope_contains(SCOPE_PLATFORM, scope) || scope == SCOPE_GRACE_CPU ? DOMAIN_CPU
                                                                             : DOMAIN_PLATFORM;
}

static void add_energy_labels(struct text *labels, const struct sensor *sensor,
                              const struct sensor_channel *row)
{
    if (sensor->kind == SENSOR_GPU)
        add_gpu_labels(labels, sensor, row->device);
    exposition_label(labels, "zone", scope_name(row->scope));
    if (sensor->kind == SENSOR_GPU)
        return;
    exposition_label(labels, "device", row->device);
    exposition_label(labels, "sensor", sensor->id);
    if (kind_of(sensor, row->scope) == DOMAIN_PLATFORM)
        exposition_label(labels, "channel", row->name);
}

/* The domain with these labels, taking ownership of them. */
static struct domain *find_domain(struct state *state, struct text *labels)
{
    for (size_t i = 0; i < state->domain_count; i++)
        if (str_equal(text_get(&state->domains[i].labels), text_get(labels))) {
            text_release(labels);
            return &state->domains[i];
        }
    struct domain *added = XADD(state->domains, state->domain_count, state->domain_capacity);
    *added = (struct domain){.labels = *labels};
    return added;
}

static void add_domain(struct state *state, size_t source, size_t channel)
{
    const struct sensor *sensor = sampler_sensor(state->session->sampler, source);
    const struct sensor_channel *row = &sensor->channels[channel];
    struct text labels = {0};
    if (row->secondary || row->scope == SCOPE_NONE)
        return;
    add_energy_labels(&labels, sensor, row);
    struct domain *domain = find_domain(state, &labels);
    domain->kind = kind_of(sensor, row->scope);
    if (domain->kind == DOMAIN_GPU && !domain->brief.length)
        add_gpu_names(&domain->brief, sensor, row->device);
    domain->scope = row->scope;
    domain->location = row->location;
    chars_copy(domain->device, row->device);
    domain->accuracy = row->relative_accuracy;
    domain->is_present = true;
    domain->source = source;
    domain->channel = channel;
    domain->t = 0;
    domain->method = channel_energy_method(row);
    domain->watts = domain->utilization = UNKNOWN;
}

static const struct gauge_kind {
    enum quantity quantity;
    bool is_gpu;
    enum family family;
    double scale;
} GAUGES[] = {
    {QTY_UTILIZATION, true, FAMILY_GPU_UTILIZATION, 0.01},
    {QTY_MEMORY_UTILIZATION, true, FAMILY_GPU_MEMORY_UTILIZATION, 0.01},
    {QTY_TENSOR_UTILIZATION, true, FAMILY_GPU_TENSOR_UTILIZATION, 0.01},
    {QTY_SM_ACTIVE, true, FAMILY_GPU_SM_ACTIVE, 0.01},
    {QTY_SM_OCCUPANCY, true, FAMILY_GPU_SM_OCCUPANCY, 0.01},
    {QTY_DRAM_ACTIVE, true, FAMILY_GPU_DRAM_ACTIVE, 0.01},
    {QTY_FP64_ACTIVE, true, FAMILY_GPU_FP64_ACTIVE, 0.01},
    {QTY_FP32_ACTIVE, true, FAMILY_GPU_FP32_ACTIVE, 0.01},
    {QTY_FP16_ACTIVE, true, FAMILY_GPU_FP16_ACTIVE, 0.01},
    {QTY_MEMORY_USED, true, FAMILY_GPU_MEMORY_USED, 1},
    {QTY_MEMORY_TOTAL, true, FAMILY_GPU_MEMORY_TOTAL, 1},
    {QTY_TEMPERATURE, true, FAMILY_GPU_TEMPERATURE, 1},
    {QTY_CLOCK, true, FAMILY_GPU_CLOCK, 1e6},
    {QTY_MEMORY_CLOCK, true, FAMILY_GPU_MEMORY_CLOCK, 1e6},
    {QTY_POWER_LIMIT, true, FAMILY_GPU_POWER_LIMIT, 1},
    {QTY_THROTTLE, true, FAMILY_GPU_THROTTLE, 1},
    {QTY_UTILIZATION, false, FAMILY_HOST_UTILIZATION, 0.01},
    {QTY_MEMORY_USED, false, FAMILY_HOST_MEMORY_USED, 1},
    {QTY_MEMORY_TOTAL, false, FAMILY_HOST_MEMORY_TOTAL, 1},
    {QTY_TEMPERATURE, false, FAMILY_HOST_TEMPERATURE, 1},
    {QTY_CLOCK, false, FAMILY_HOST_CLOCK, 1e6},
};

static const struct gauge_kind *find_gauge_kind(const struct sensor *sensor, enum quantity quantity)
{
    for (size_t i = 0; i < COUNT_OF(GAUGES); i++)
        if (GAUGES[i].quantity == quantity && GAUGES[i].is_gpu == (sensor->kind == SENSOR_GPU))
            return &GAUGES[i];
    return NULL;
}

/* A GPU has one gauge of each kind; a second channel of the same kind is redundant. */
static bool has_gauge(const struct state *state, size_t source, enum family family,
                      const char *device)
{
    const struct sensor *sensor = sampler_sensor(state->session->sampler, source);
    for (size_t i = 0; i < state->gauge_count; i++)
        if (state->gauges[i].source == source && state->gauges[i].family == family &&
            str_equal(sensor->channels[state->gauges[i].channel].device, device))
            return true;
    return false;
}

static void add_gauge(struct state *state, size_t source, size_t channel)
{
    const struct sensor *sensor = sampler_sensor(state->session->sampler, source);
    const struct sensor_channel *row = &sensor->channels[channel];
    const struct gauge_kind *kind = find_gauge_kind(sensor, row->quantity);
    if (!kind || (kind->is_gpu && has_gauge(state, source, kind->family, row->device)))
        return;
    struct gauge *added = XADD(state->gauges, state->gauge_count, state->gauge_capacity);
    *added = (struct gauge){source, channel, kind->family, kind->scale, {0}, UNKNOWN, false};
    added->is_part = strstr(row->device, ":gi") != NULL;
    if (kind->is_gpu) {
        add_gpu_labels(&added->labels, sensor, row->device);
    } else {
        exposition_label(&added->labels, "device", row->device);
        exposition_label(&added->labels, "sensor", sensor->id);
        exposition_label(&added->labels, "channel", row->name);
    }
}

static struct sensor_row *find_sensor(struct state *state, const char *id)
{
    for (size_t i = 0; i < state->sensor_count; i++)
        if (str_equal(state->sensors[i].id, id))
            return &state->sensors[i];
    struct sensor_row *added = XADD(state->sensors, state->sensor_count, state->sensor_capacity);
    *added = (struct sensor_row){0};
    chars_copy(added->id, id);
    return added;
}

/* Drivers whose hardware is absent are omitted. */
static void add_sensor(struct state *state, const struct sensor_finding *finding, long source)
{
    if (finding->status == SENSOR_ABSENT || (finding->kind == SENSOR_TEST && source < 0))
        return;
    struct sensor_row *row = find_sensor(state, finding->id);
    row->has_read = false;
    row->source = source;
    text_clear(&row->labels);
    text_clear(&row->info);
    exposition_label(&row->labels, "sensor", finding->id);
    exposition_label(&row->labels, "driver", finding->driver->name);
    exposition_label(&row->info, "kind", sensor_kind_name(finding->kind));
    exposition_label(&row->info, "name", finding->name);
    row->status = finding->status;
    exposition_label(&row->info, "reason", finding->reason);
}

static void detach(struct state *state)
{
    for (size_t i = 0; i < state->domain_count; i++) {
        state->domains[i].is_present = state->domains[i].is_up = false;
        state->domains[i].is_pending = false;
        state->domains[i].is_counted = false;
    }
    for (size_t i = 0; i < state->sensor_count; i++) {
        struct sensor_row *row = &state->sensors[i];
        row->source = -1;
        row->is_up = false;
        row->age_s = UNKNOWN;
        for (int c = 0; c < SENSOR_COUNTERS; c++) {
            row->before[c] += row->now[c];
            row->now[c] = 0;
        }
    }
    forget_gauges(state);
}

void state_attach(struct state *state, struct session *session, nanos period)
{
    if (session)
        sampler_ready(session->sampler);
    if (state->session)
        state_update(state, clock_now());
    detach(state);
    state->session = session;
    state->period = period;
    state->slow_next = 0;
    for (size_t i = 0; session && i < session->findings.count; i++)
        add_sensor(state, &session->findings.items[i], session->source_of[i]);
    for (size_t s = 0; session && s < sampler_count(session->sampler); s++) {
        const struct sensor *sensor = sampler_sensor(session->sampler, s);
        for (size_t c = 0; c < sensor->channel_count; c++)
            if (quantity_gives_joules(sensor->channels[c].quantity))
                add_domain(state, s, c);
            else
                add_gauge(state, s, c);
    }
}

/* ---- updating ---- */

/* Whether the newest reading is current. */
static bool is_fresh(const struct state *state, size_t source, size_t channel,
                     const struct channel_state *read, nanos now)
{
    const struct sensor *sensor = sampler_sensor(state->session->sampler, source);
    const struct sensor_group *group = &sensor->groups[sensor->channels[channel].group];
    bool is_gauge = !quantity_gives_joules(sensor->channels[channel].quantity);
    nanos period = is_gauge && group->slow_period > group->period_default ? group->slow_period
                                                                          : group->period_default;
    period = period > state->period ? period : state->period;
    period = period > read->period ? period : read->period;
    return read->t > 0 && now - read->t <= 3 * period + STALE_MORE;
}

/* Mean power of the last interval. */
static double mean_power(const struct state *state, const struct domain *domain,
                         const struct channel_state *read)
{
    nanos length = state->period > POWER_WINDOW ? state->period : POWER_WINDOW;
    struct window window;
    length = length > 2 * read->period ? length : 2 * read->period;
    if (sampler_window(state->session->sampler, domain->source, domain->channel, read->t - length,
                       read->t, &window) == ERR_OK &&
        window.covered_s > 0)
        return window.sum / window.covered_s;
    return read->value;
}

/* Energy since the last update.  Running sums exclude time without readings. */
static double gain(struct sampler *sampler, struct domain *domain, nanos t)
{
    const nanos times[2] = {domain->t, t};
    double sums[2];
    nanos covered[2];
    if (t <= domain->t || sampler_running(sampler, domain->source, domain->channel, -1, times, 2,
                                          sums, covered) != ERR_OK)
        return 0;
    domain->covered += covered[1] - covered[0];
    return sums[1] > sums[0] ? sums[1] - sums[0] : 0;
}

static void add_point(struct domain *domain)
{
    if (domain->point_count == DOMAIN_POINTS_MAX)
        memmove(domain->points, domain->points + 1, --domain->point_count * sizeof *domain->points);
    domain->points[domain->point_count++] =
        (struct reading_point){domain->t, domain->covered, domain->joules};
}

/* If a counter is dead but power is measured, the integral of power replaces it from now on. */
static void use_power(const struct state *state, struct domain *domain, nanos now)
{
    const struct sensor *sensor = sampler_sensor(state->session->sampler, domain->source);
    long power = sensor_shape_channel(sensor, domain->channel);
    if (power < 0 || now - state->session->started < COUNTER_TIMEOUT)
        return;
    domain->channel = (size_t)power;
    domain->method = METHOD_INTEGRAL;
    domain->t = now;
}

/* Returns true if the domain went up or down. */
static bool update_domain(const struct state *state, struct domain *domain, nanos now)
{
    bool was_up = domain->is_up;
    struct sampler *sampler = state->session->sampler;
    const struct sensor_channel *row =
        &sampler_sensor(sampler, domain->source)->channels[domain->channel];
    struct channel_state read;
    struct source_state source;
    sampler_source(sampler, domain->source, &source);
    sampler_channel(sampler, domain->source, domain->channel, &read);
    bool has_readings = read.updates > 0 || row->quantity != QTY_ENERGY;
    if (!has_readings)
        use_power(state, domain, now);
    domain->gained_j = has_readings ? gain(sampler, domain, read.t) : 0;
    domain->joules += domain->gained_j;
    if (read.t > domain->t) {
        domain->t = read.t;
        if (has_readings)
            add_point(domain);
    }
    domain->is_up = !source.is_lost && has_readings &&
                    is_fresh(state, domain->source, domain->channel, &read, now);
    domain->is_pending =
        !domain->is_up && !source.is_lost && now - state->session->started < COUNTER_TIMEOUT;
    domain->watts = domain->is_up ? mean_power(state, domain, &read) : UNKNOWN;
    domain->newest_w = domain->is_up && read.has_value ? read.value : domain->watts;
    domain->reach = 2 * max_nanos(read.period, state->period) + REACH_MORE;
    return domain->is_up != was_up;
}

/* Marks the domains that make up the machine, excluding those contained in another. */
static void mark_counted(struct state *state, nanos now)
{
    struct ledger ledger;
    nanos length = 3 * state->period > TOTAL_WINDOW ? 3 * state->period : TOTAL_WINDOW;
    nanos from = now - length > state->session->started ? now - length : state->session->started;
    for (size_t i = 0; i < state->domain_count; i++)
        state->domains[i].is_counted = false;
    ledger_take(state->session->sampler, from, now, NULL, &ledger);
    for (size_t i = 0; i < ledger.count; i++) {
        const struct ledger_device *device = &ledger.devices[i];
        for (size_t d = 0; device->counted && d < state->domain_count; d++) {
            struct domain *domain = &state->domains[d];
            if (domain->is_up && domain->source == device->source &&
                domain->scope == device->sensor->channels[device->channel].scope &&
                str_equal(domain->device, device->id))
                domain->is_counted = true;
        }
    }
    ledger_release(&ledger);
}

static void update_domains(struct state *state, nanos now)
{
    bool is_other = false;
    for (size_t i = 0; i < state->domain_count; i++)
        if (state->domains[i].is_present)
            is_other |= update_domain(state, &state->domains[i], now);
    if (is_other)
        state->slow_next = 0;
    if (now >= state->slow_next)
        mark_counted(state, now);
    for (int i = 0; i <= METHOD_ESTIMATED; i++)
        state->watts[i] = UNKNOWN;
    for (size_t i = 0; i < state->domain_count; i++) {
        struct domain *domain = &state->domains[i];
        if (domain->is_present && domain->is_counted) {
            state->joules[domain->method] += domain->gained_j;
            add_known(&state->watts[domain->method], domain->watts);
        }
    }
}

static void update_gauges(struct state *state, nanos now)
{
    struct sampler *sampler = state->session->sampler;
    for (size_t i = 0; i < state->gauge_count; i++) {
        struct gauge *gauge = &state->gauges[i];
        struct channel_state read;
        struct source_state source;
        sampler_channel(sampler, gauge->source, gauge->channel, &read);
        sampler_source(sampler, gauge->source, &source);
        bool known = !source.is_lost && read.has_value &&
                     is_fresh(state, gauge->source, gauge->channel, &read, now);
        gauge->value = known ? read.value * gauge->scale : UNKNOWN;
        for (size_t d = 0; gauge->family == FAMILY_GPU_UTILIZATION && d < state->domain_count; d++)
            if (state->domains[d].is_present && state->domains[d].source == gauge->source)
                state->domains[d].utilization = gauge->value;
    }
}

static void update_sensor(struct state *state, struct sensor_row *row, nanos now)
{
    struct sampler *sampler = state->session->sampler;
    size_t index = (size_t)row->source;
    const struct sensor *sensor = sampler_sensor(sampler, index);
    struct source_state source;
    sampler_source(sampler, index, &source);
    row->now[COUNT_READS] = (double)source.reads;
    row->now[COUNT_FAILED] = (double)source.failed;
    row->now[COUNT_SECONDS] = source.read_s;
    row->now[COUNT_LOST] = (double)source.lost;
    row->is_up = false;
    row->is_lost = source.is_lost;
    row->age_s = UNKNOWN;
    for (size_t c = 0; c < sensor->channel_count; c++) {
        struct channel_state read;
        sampler_channel(sampler, index, c, &read);
        if (read.t > 0 && !(seconds(now - read.t) > row->age_s))
            row->age_s = seconds(now - read.t);
        bool counts = sensor->channels[c].quantity != QTY_ENERGY || read.updates > 0;
        row->has_read |= counts && read.t > 0;
        row->is_up |= !source.is_lost && counts && is_fresh(state, index, c, &read, now);
    }
}

void state_update(struct state *state, nanos now)
{
    if (!state->session)
        return;
    update_domains(state, now);
    if (now >= state->slow_next) {
        update_gauges(state, now);
        for (size_t i = 0; i < state->sensor_count; i++)
            if (state->sensors[i].source >= 0)
                update_sensor(state, &state->sensors[i], now);
        state->slow_next =
            now + SLOW_PERIOD - SLOW_PERIOD / 20; /* tolerance: ticks are not exact */
    }
}

void state_request(const struct state *state, nanos next)
{
    nanos ahead = state->period / 2 < READ_AHEAD ? state->period / 2 : READ_AHEAD;
    if (state->session)
        sampler_tick(state->session->sampler, next - ahead, 0);
}

bool state_is_up(const struct state *state)
{
    for (size_t i = 0; i < state->sensor_count; i++)
        if (state->sensors[i].is_up)
            return true;
    return false;
}

/* ---- a scrape ---- */

static const char *method_label(enum method method)
{
    static const char *const LABELS[] = {
        [METHOD_NONE] = "",
        [METHOD_COUNTER] = "method=\"counter\"",
        [METHOD_INTEGRAL] = "method=\"integral\"",
        [METHOD_ESTIMATED] = "method=\"estimated\"",
    };
    return LABELS[method];
}

static void render_node(const struct state *state, struct exposition *to)
{
    family_begin(to, FAMILY_NODE_JOULES);
    for (int i = METHOD_COUNTER; i <= METHOD_ESTIMATED; i++)
        if (is_known(state->watts[i]) ||
            state->joules[i] > 0) /* a known total stays at its value */
            exposition_sample(to, "", method_label((enum method)i), state->joules[i]);
    family_begin(to, FAMILY_NODE_WATTS);
    for (int i = METHOD_COUNTER; i <= METHOD_ESTIMATED; i++)
        exposition_sample(to, "", method_label((enum method)i), state->watts[i]);
}

/* Whether the domain has figures: an estimate has none while a measurement of the same quantity exists. */
static bool has_figures(const struct domain *domain)
{
    return domain->is_up && (domain->method != METHOD_ESTIMATED || domain->is_counted);
}

static void render_energies(const struct state *state, struct exposition *to)
{
    for (int kind = DOMAIN_CPU; kind <= DOMAIN_PLATFORM; kind++)
        for (int is_power = 0; is_power < 2; is_power++) {
            family_begin(to, (enum family)(FAMILY_CPU_JOULES + 2 * kind + is_power));
            for (size_t i = 0; i < state->domain_count; i++) {
                const struct domain *domain = &state->domains[i];
                if ((int)domain->kind == kind && has_figures(domain))
                    exposition_sample(to, text_get(&domain->labels), method_label(domain->method),
                                      is_power ? domain->watts : domain->joules);
            }
        }
}

static double evidence_of(const struct domain *domain, enum family family)
{
    if (family == FAMILY_ENERGY_UP)
        return domain->is_up;
    return family == FAMILY_COUNTED ? domain->is_counted : domain->accuracy;
}

static void render_evidence(const struct state *state, struct exposition *to)
{
    for (enum family family = FAMILY_UNCERTAINTY; family <= FAMILY_ENERGY_UP; family++) {
        family_begin(to, family);
        for (size_t i = 0; i < state->domain_count; i++) {
            const struct domain *domain = &state->domains[i];
            if (family == FAMILY_ENERGY_UP || has_figures(domain))
                exposition_sample(to, text_get(&domain->labels), "", evidence_of(domain, family));
        }
    }
}

static void render_throttle(const struct gauge *gauge, struct exposition *to)
{
    static const char *const REASONS[] = {"power", "thermal", "brake", "limit", "sync", "other"};
    for (unsigned bit = 0; is_known(gauge->value) && bit < COUNT_OF(REASONS); bit++) {
        char reason[32];
        chars_format(reason, "reason=\"%s\"", REASONS[bit]);
        exposition_sample(to, text_get(&gauge->labels), reason, (unsigned)gauge->value >> bit & 1);
    }
}

void state_render(const struct state *state, struct exposition *to)
{
    render_node(state, to);
    render_energies(state, to);
    render_evidence(state, to);
    for (enum family family = FAMILY_GPU_UTILIZATION; family <= FAMILY_HOST_CLOCK; family++) {
        family_begin(to, family);
        for (size_t i = 0; i < state->gauge_count; i++) {
            const struct gauge *gauge = &state->gauges[i];
            if (gauge->family == family && family == FAMILY_GPU_THROTTLE)
                render_throttle(gauge, to);
            else if (gauge->family == family)
                exposition_sample(to, text_get(&gauge->labels), "", gauge->value);
        }
    }
}

/* The current status: an opened sensor may be lost, may have delivered no reading yet, or none any more. */
static void render_info(const struct sensor_row *row, struct exposition *to)
{
    const char *status = sensor_status_name(SENSOR_DEAD);
    if (row->is_up || row->source < 0)
        status = sensor_status_name(row->status);
    else if (row->is_lost)
        status = "lost";
    else if (row->has_read)
        status = "stale";
    struct text labels = {0};
    exposition_label(&labels, "status", status);
    text_addf(&labels, ",%s", text_get(&row->info));
    exposition_sample(to, text_get(&row->labels), text_get(&labels), 1);
    text_release(&labels);
}

void state_render_sensors(const struct state *state, struct exposition *to)
{
    for (enum family family = FAMILY_SENSOR_UP; family <= FAMILY_SENSOR_LOSSES; family++) {
        family_begin(to, family);
        for (size_t i = 0; i < state->sensor_count; i++) {
            const struct sensor_row *row = &state->sensors[i];
            const char *labels = text_get(&row->labels);
            size_t counter = family >= FAMILY_SENSOR_READS ? family - FAMILY_SENSOR_READS : 0;
            if (family == FAMILY_SENSOR_UP)
                exposition_sample(to, labels, "", row->is_up);
            else if (family == FAMILY_SENSOR_INFO)
                render_info(row, to);
            else if (family == FAMILY_SENSOR_AGE)
                exposition_sample(to, labels, "", row->age_s);
            else
                exposition_sample(to, labels, "", row->before[counter] + row->now[counter]);
        }
    }
}
