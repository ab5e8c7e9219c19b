/* RAPL: the energy counters of x86 packages, their parts, their memory, and of the platform.
 * This file is the driver; rapl/probe.c says what there is and rapl/<path>.c how to read it. */
#include <stdlib.h>

#include "core/clock.h"
#include "core/text.h"
#include "sensors/rapl/paths.h"
#include "sensors/sensor.h"

/* watts_max is far above any such part: it tells a reset from a load, no more. */
static const struct {
    const char *channel;
    const char *device; /* the place follows */
    enum scope scope;
    double watts_max;
} KINDS[RAPL_KINDS] = {
    [RAPL_PACKAGE] = {"package", "cpu", SCOPE_PACKAGE, 1000},
    [RAPL_CORE] = {"core", "cpu", SCOPE_CORE, 1000},
    [RAPL_UNCORE] = {"uncore", "cpu", SCOPE_UNCORE, 1000},
    [RAPL_DRAM] = {"dram", "dram", SCOPE_DRAM, 500},
    [RAPL_PSYS] = {"psys", "psys", SCOPE_PLATFORM, 3000},
};

/* Standard uncertainty of the calibration; nobody publishes one, so these are what independent
 * comparisons with meters allow.  Intel measures the package at the voltage regulator since
 * Haswell: a few per cent.  AMD computes it from activity, which follows the meter less well.
 * Core and uncore are split off inside, also by model.  DRAM is measured on servers; on client
 * parts it is modelled, with an offset that is worst when idle.  psys is what the board's maker
 * wired to it. */
static double accuracy(enum rapl_kind kind, const struct rapl_cpu *cpu)
{
    bool is_server = rapl_dram_unit_fixed(cpu) || rapl_psys_whole_joules(cpu);
    switch (kind) {
    case RAPL_PACKAGE:
        return cpu->vendor == RAPL_INTEL ? 0.03 : 0.05;
    case RAPL_DRAM:
        return is_server ? 0.05 : 0.10;
    default:
        return 0.05;
    }
}

/* ---- an open sensor ---- */

struct rapl_state {
    const struct rapl_path *path;
    size_t count;
    struct rapl_domain domains[]; /* the order of the channels */
};

static void rapl_close(struct sensor *sensor)
{
    struct rapl_state *state = sensor->state;
    for (size_t i = 0; state && i < state->count; i++)
        rapl_domain_close(&state->domains[i]);
    free(state);
    sensor->state = NULL;
}

/* The layers above keep a part out of a sum that has the whole by comparing locations, so each
 * die with a counter of its own needs a location of its own. */
static int location_of(struct rapl_place place)
{
    return place.package + (place.die << 20);
}

static void add_channel(struct sensor *out, const struct rapl_domain *domain,
                        const struct rapl_cpu *cpu, bool whole)
{
    char device[24], label[16];
    bool psys = domain->kind == RAPL_PSYS;
    rapl_place_label(domain->place, label, sizeof label);
    str_format(device, sizeof device, "%s%s", KINDS[domain->kind].device, whole ? "" : label);
    struct sensor_channel *channel =
        sensor_add_channel(out, KINDS[domain->kind].channel, device, QTY_ENERGY);
    channel->scope = KINDS[domain->kind].scope;
    channel->location = whole ? -1 : location_of(domain->place);
    channel->joules_per_count = domain->joules_per_count;
    channel->wraps_at = domain->wraps_at;
    channel->watts_max = KINDS[domain->kind].watts_max;
    channel->relative_accuracy = accuracy(domain->kind, cpu);
    /* Intel: about 976 us, AMD: 1 ms.  psys has no stated period, and whether a guest sees every
     * update is its host's business. */
    channel->period = psys || cpu->guest ? 0 : NS_PER_MS;
}

static void add_facts(struct sensor *out, const struct rapl_state *state,
                      const struct rapl_cpu *cpu)
{
    sensor_add_fact(out, "path", state->path->name);
    sensor_add_fact(out, "source", state->domains[0].source);
    if (state->domains[0].kind == RAPL_PSYS && rapl_psys_whole_joules(cpu))
        sensor_add_fact(out, "resolution", "psys counts whole joules on this CPU");
    if (state->path == &rapl_path_powercap && state->domains[0].wraps_at == 0)
        sensor_add_fact(out, "wrap", "unknown: max_energy_range_uj is missing");
}

/* Opens every domain of the place.  A part that fails is left out and said to be; *err keeps the
 * first failure, for when nothing opens. */
static void open_domains(struct sensor *out, struct rapl_table *table, struct rapl_place place,
                         enum err *err)
{
    struct rapl_state *state = out->state;
    for (size_t i = 0; i < table->count && state->count < SENSOR_CHANNELS_MAX; i++) {
        struct rapl_domain *domain = &table->domains[i];
        if (!rapl_same_place(domain->place, place))
            continue;
        enum err result = state->path->open(domain);
        if (!result) {
            state->domains[state->count++] = *domain;
            continue;
        }
        char text[72];
        str_format(text, sizeof text, "%s: %s", KINDS[domain->kind].channel, err_text(result));
        sensor_add_fact(out, "not_read", text);
        if (*err == ERR_ABSENT)
            *err = result;
    }
}

static enum err rapl_open(const struct sensor_finding *finding, struct sensor *out,
                          struct error *why)
{
    struct rapl_cpu cpu;
    struct rapl_table table;
    struct rapl_note note = {0};
    struct rapl_key key = rapl_key_unpack(finding->key);
    const struct rapl_path *path = rapl_path_at(key.path);
    if (!path)
        return err_set(why, ERR_USAGE, "%s is not a finding of this driver", finding->id);
    rapl_cpu_read(&cpu);
    enum err err = rapl_list_set(path, key.set, &cpu, &table, &note);
    if (err)
        return err_set(why, err, "%s: %s", finding->id, note.reason);
    struct rapl_state *state =
        calloc(1, sizeof *state + SENSOR_CHANNELS_MAX * sizeof *state->domains);
    if (!state)
        return err_set(why, ERR_NO_MEMORY, "%s: %s", finding->id, err_text(ERR_NO_MEMORY));
    state->path = path;
    out->state = state;
    err = ERR_ABSENT;
    open_domains(out, &table, key.place, &err);
    if (state->count == 0) {
        rapl_close(out);
        return err_set(why, err, "%s: %s by %s", finding->id, err_text(err), path->name);
    }
    for (size_t i = 0; i < state->count; i++)
        add_channel(out, &state->domains[i], &cpu, key.whole);
    add_facts(out, state, &cpu);
    out->pin_cpu = state->domains[0].cpu;
    out->groups[0] = (struct sensor_group){
        .period_default = 20 * NS_PER_MS,
        .period_min = NS_PER_MS,
    };
    out->group_count = 1;
    return ERR_OK;
}

/* A reading stands for the middle of the call that made it; one call's end is the next one's
 * beginning, so n readings cost n + 1 looks at the clock. */
static enum err rapl_read(struct sensor *sensor, unsigned group, struct observations *out)
{
    (void)group;
    struct rapl_state *state = sensor->state;
    nanos before = clock_now();
    for (size_t i = 0; i < state->count; i++) {
        uint64_t count;
        enum err err = state->path->read(&state->domains[i], &count);
        nanos after = clock_now();
        nanos t = before + (after - before) / 2;
        if (err == ERR_LOST)
            return ERR_LOST;
        if (err)
            observe_missing(out, (unsigned)i, t, err);
        else
            observe_count(out, (unsigned)i, t, count);
        before = after;
    }
    return ERR_OK;
}

const struct sensor_driver sensor_rapl = {
    .name = "rapl",
    .summary = "energy counters of Intel and AMD CPUs, their memory and platform (RAPL)",
    .probe = rapl_probe,
    .open = rapl_open,
    .read = rapl_read,
    .close = rapl_close,
};
