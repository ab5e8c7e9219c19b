/* RAPL: the energy counters of x86 packages, their parts, their memory, and of the platform.
 *
 * Two sets of domains are searched separately, because they fail separately: the sockets (package, core,
 * uncore, DRAM) and psys.  Each set takes the first of three access paths by which it can be read:
 * perf_event, powercap, MSR (perf.c, powercap.c, msr.c).  A set that exists and cannot be read is
 * reported with the first path's fix; sockets that exist nowhere are reported as absent with what
 * each path lacks. */
#include <stdlib.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/text.h"
#include "sensors/rapl/rapl.h"
#include "sensors/sensor.h"

static const struct rapl_path *const PATHS[] = {&rapl_path_perf, &rapl_path_powercap,
                                                &rapl_path_msr};
enum { PATH_COUNT = COUNT_OF(PATHS) };

/* ---- domains of a set ---- */

enum rapl_set { RAPL_SOCKETS, RAPL_PLATFORM, RAPL_SETS };

static enum rapl_set set_of(const struct rapl_domain *domain)
{
    return domain->kind == RAPL_PSYS ? RAPL_PLATFORM : RAPL_SOCKETS;
}

/* A package with a single die is treated as a package, whatever the number of the die. */
static void drop_lone_dies(struct rapl_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        struct rapl_location location = table->domains[i].location;
        bool alone = true;
        for (size_t k = 0; k < table->count; k++)
            if (table->domains[k].location.package == location.package &&
                table->domains[k].kind != RAPL_PSYS &&
                table->domains[k].location.die != location.die)
                alone = false;
        if (alone)
            for (size_t k = 0; k < table->count; k++)
                if (table->domains[k].location.package == location.package)
                    table->domains[k].location.die = 0;
    }
}

/* The domains of one set that a path lists; ERR_ABSENT when there are none. */
static enum err list_set(const struct rapl_path *path, enum rapl_set set,
                         const struct rapl_cpu *cpu, struct rapl_table *out, struct rapl_note *note)
{
    size_t kept = 0;
    out->count = 0;
    enum err err = path->list(cpu, out, note);
    if (err)
        return err;
    drop_lone_dies(out);
    for (size_t i = 0; i < out->count; i++)
        if (set_of(&out->domains[i]) == set)
            out->domains[kept++] = out->domains[i];
    out->count = kept;
    if (kept)
        return ERR_OK;
    chars_format(note->reason, "%s has %s", path->name,
                 set == RAPL_PLATFORM ? "no psys" : "psys only");
    return ERR_ABSENT;
}

/* The first domain of every location, in table order: the package where there is one. */
static size_t pick_primaries(const struct rapl_table *table, struct rapl_domain *primaries)
{
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++) {
        size_t k = 0;
        while (k < count && !rapl_same_location(primaries[k].location, table->domains[i].location))
            k++;
        if (k == count && count < RAPL_UNITS_MAX)
            primaries[count++] = table->domains[i];
    }
    return count;
}

static enum err try_open(const struct rapl_path *path, struct rapl_domain *domain)
{
    uint64_t ignored;
    enum err err = path->open(domain);
    if (!err)
        err = path->read(domain, &ignored);
    if (err)
        rapl_domain_close(domain);
    return err;
}

/* ---- findings ---- */

/* The locations of one set on one path, each with its primary domain; those that could be read are open. */
struct survey {
    unsigned path;
    size_t count;
    struct rapl_domain primaries[RAPL_UNITS_MAX];
    enum err errs[RAPL_UNITS_MAX];
    int mirror_of[RAPL_UNITS_MAX];
};

static void survey_release(struct survey *survey)
{
    for (size_t i = 0; i < survey->count; i++)
        rapl_domain_close(&survey->primaries[i]);
    survey->count = 0;
}

/* The best outcome of a survey: readable, denied, otherwise broken. */
static enum err survey_result(const struct survey *survey)
{
    enum err result = ERR_ABSENT;
    for (size_t i = 0; i < survey->count; i++) {
        if (!survey->errs[i])
            return ERR_OK;
        if (result != ERR_DENIED)
            result = survey->errs[i] == ERR_DENIED ? ERR_DENIED : ERR_BAD_VALUE;
    }
    return result;
}

static enum err survey_path(unsigned path, enum rapl_set set, const struct rapl_cpu *cpu,
                            struct survey *out, struct rapl_note *note)
{
    struct rapl_table table;
    out->path = path;
    out->count = 0;
    enum err err = list_set(PATHS[path], set, cpu, &table, note);
    if (err)
        return err;
    out->count = pick_primaries(&table, out->primaries);
    for (size_t i = 0; i < out->count; i++) {
        out->errs[i] = try_open(PATHS[path], &out->primaries[i]);
        out->mirror_of[i] = -1;
    }
    return survey_result(out);
}

/* Whether this is a better outcome than the one so far.  A counter that exists and is broken says
 * more than a path without counters; denied can be fixed. */
static bool is_better(enum err result, enum err than)
{
    static const enum err RANK[] = {ERR_ABSENT, ERR_UNSUPPORTED, ERR_BAD_VALUE, ERR_DENIED, ERR_OK};
    size_t a = 0, b = 0;
    for (size_t i = 0; i < COUNT_OF(RANK); i++) {
        if (RANK[i] == result)
            a = i;
        if (RANK[i] == than)
            b = i;
    }
    return a > b;
}

/* Surveys the set by the first path that can be read; `missing` collects the reasons of the others. */
static enum err survey_set(enum rapl_set set, const struct rapl_cpu *cpu, struct survey *best,
                           struct text *missing)
{
    enum err result = ERR_ABSENT;
    struct survey next;
    best->count = 0;
    for (unsigned path = 0; path < PATH_COUNT && result != ERR_OK; path++) {
        struct rapl_note note = {0};
        enum err err = survey_path(path, set, cpu, &next, &note);
        if (note.reason[0])
            text_addf(missing, "%s%s", missing->length ? "; " : "", note.reason);
        if (is_better(err, result)) {
            survey_release(best);
            *best = next;
            result = err;
        } else {
            survey_release(&next);
        }
    }
    return result;
}

/* Looks for mirrors among the primaries that are open. */
static void mark_mirrors(struct survey *survey)
{
    struct rapl_domain open[RAPL_UNITS_MAX];
    size_t at[RAPL_UNITS_MAX], count = 0;
    int mirror_of[RAPL_UNITS_MAX];
    for (size_t i = 0; i < survey->count; i++) {
        if (!survey->errs[i]) {
            at[count] = i;
            open[count++] = survey->primaries[i];
        }
    }
    rapl_find_mirrors(PATHS[survey->path], open, count, mirror_of);
    for (size_t i = 0; i < count; i++)
        if (mirror_of[i] >= 0)
            survey->mirror_of[at[i]] = (int)at[mirror_of[i]];
}

/* Identifies a finding for open: packed into sensor_finding.key. */
struct key {
    unsigned path;
    enum rapl_set set;
    bool whole; /* the only psys there is: it covers the whole machine */
    struct rapl_location location;
};

/* path 2 bits, set 1, whole 1, die 8, package 20 */
static unsigned key_pack(struct key key)
{
    return key.path | (unsigned)(key.set == RAPL_PLATFORM) << 2 | (unsigned)key.whole << 3 |
           ((unsigned)key.location.die & 0xff) << 4 | (unsigned)key.location.package << 12;
}

static struct key key_unpack(unsigned packed)
{
    return (struct key){
        .path = packed & 3,
        .set = packed >> 2 & 1 ? RAPL_PLATFORM : RAPL_SOCKETS,
        .whole = packed >> 3 & 1,
        .location = {.package = (int)(packed >> 12), .die = (int)(packed >> 4 & 0xff)},
    };
}

/* "0"; "0.1" for a further die of a package whose dies have counters of their own. */
static void location_label(struct rapl_location location, char *to, size_t size)
{
    if (location.die)
        str_format(to, size, "%d.%d", location.package, location.die);
    else
        str_format(to, size, "%d", location.package);
}

static void finding_id(const struct survey *survey, size_t i, bool whole, char *to, size_t size)
{
    char label[24];
    bool psys = set_of(&survey->primaries[i]) == RAPL_PLATFORM;
    location_label(survey->primaries[i].location, label, sizeof label);
    str_format(to, size, "rapl:%s%s", psys ? "psys" : "", psys && whole ? "" : label);
}

static void describe(const struct survey *survey, size_t i, bool whole,
                     struct sensor_finding *finding)
{
    const struct rapl_path *path = PATHS[survey->path];
    struct rapl_note note = {0};
    if (survey->mirror_of[i] >= 0) {
        char original[48];
        finding_id(survey, (size_t)survey->mirror_of[i], whole, original, sizeof original);
        finding->status = SENSOR_UNSUPPORTED;
        chars_format(note.reason, "mirrors %s: the same counter, counted once", original);
    } else if (survey->errs[i] == ERR_DENIED) {
        finding->status = SENSOR_DENIED;
        path->denied(&survey->primaries[i], &note);
    } else if (survey->errs[i]) {
        finding->status = SENSOR_UNSUPPORTED;
        chars_format(note.reason, "%s: %s", survey->primaries[i].source, err_text(survey->errs[i]));
    }
    chars_copy(finding->reason, note.reason);
    chars_copy(finding->fix, note.fix);
}

static void report_set(enum rapl_set set, const struct rapl_cpu *cpu, struct survey *survey,
                       struct sensor_findings *out)
{
    const char *brand = cpu->brand[0] ? cpu->brand : "CPU";
    size_t originals = 0;
    mark_mirrors(survey);
    for (size_t i = 0; i < survey->count; i++)
        originals += survey->mirror_of[i] < 0;
    for (size_t i = 0; i < survey->count; i++) {
        char id[48];
        /* The one psys that is not a copy covers the whole machine. */
        bool whole = set == RAPL_PLATFORM && originals == 1;
        finding_id(survey, i, whole && survey->mirror_of[i] < 0, id, sizeof id);
        struct sensor_finding *finding =
            sensor_found(out, id, set == RAPL_PLATFORM ? SENSOR_HOST : SENSOR_CPU, SENSOR_OK);
        if (!finding)
            return;
        chars_format(finding->name, "%s%s", brand, set == RAPL_PLATFORM ? " platform" : "");
        chars_copy(finding->measures, "energy");
        finding->key =
            key_pack((struct key){survey->path, set, whole, survey->primaries[i].location});
        describe(survey, i, whole, finding);
    }
}

/* No path gives the energy of any socket. */
static void report_absent(const struct rapl_cpu *cpu, enum err result, const char *missing,
                          struct sensor_findings *out)
{
    struct sensor_finding *finding = sensor_found(
        out, "rapl", SENSOR_CPU, result == ERR_UNSUPPORTED ? SENSOR_UNSUPPORTED : SENSOR_ABSENT);
    if (!finding)
        return;
    chars_copy(finding->name, cpu->brand);
    if (cpu->vendor == RAPL_NOT_X86) {
        chars_copy(finding->reason, "RAPL is an x86 facility");
        return;
    }
    chars_format(finding->reason, "%s%s",
                 cpu->guest ? "a virtual machine, whose host has the counters: " : "", missing);
    if (!cpu->guest && cpu->vendor != RAPL_VENDOR_UNKNOWN)
        chars_copy(finding->fix, "sudo modprobe intel_rapl_msr");
}

static void rapl_probe(const struct sensor_config *config, struct sensor_findings *out)
{
    (void)config;
    struct rapl_cpu cpu;
    struct survey survey;
    rapl_cpu_read(&cpu);
    if (cpu.vendor == RAPL_NOT_X86) {
        report_absent(&cpu, ERR_ABSENT, "", out);
        return;
    }
    for (enum rapl_set set = RAPL_SOCKETS; set < RAPL_SETS; set++) {
        struct text missing = {0};
        enum err result = survey_set(set, &cpu, &survey, &missing);
        if (survey.count)
            report_set(set, &cpu, &survey, out);
        else if (set == RAPL_SOCKETS)
            report_absent(&cpu, result, text_get(&missing), out);
        survey_release(&survey);
        text_release(&missing);
    }
}

/* ---- opening ---- */

/* watts_max is far above any such part: it only separates a reset from a load. */
static const struct {
    const char *channel;
    const char *device; /* the location follows */
    enum scope scope;
    double watts_max;
} KINDS[RAPL_KINDS] = {
    [RAPL_PACKAGE] = {"package", "cpu", SCOPE_PACKAGE, 1000},
    [RAPL_CORE] = {"core", "cpu", SCOPE_CORE, 1000},
    [RAPL_UNCORE] = {"uncore", "cpu", SCOPE_UNCORE, 1000},
    [RAPL_DRAM] = {"dram", "dram", SCOPE_DRAM, 500},
    [RAPL_PSYS] = {"psys", "psys", SCOPE_PLATFORM, 3000},
};

/* Standard uncertainty of the calibration; none is published, so these are based on independent comparisons with
 * meters.  Intel measures the package at the voltage regulator since Haswell: a few percent.  AMD computes it from
 * activity, which follows the meter less well.  Core and uncore are split off inside, also by model.  DRAM is
 * measured on servers; on client parts it is modeled, with an offset that is worst when idle.  psys is what the
 * board vendor wired to it. */
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

/* Sums exclude the parts of a counted whole by comparing locations, so each die with its own counter needs its own
 * location. */
static int channel_location(struct rapl_location location)
{
    return location.package + (location.die << 20);
}

static void add_channel(struct sensor *out, const struct rapl_domain *domain,
                        const struct rapl_cpu *cpu, bool whole)
{
    char device[24], label[16];
    bool psys = domain->kind == RAPL_PSYS;
    location_label(domain->location, label, sizeof label);
    chars_format(device, "%s%s", KINDS[domain->kind].device, whole ? "" : label);
    struct sensor_channel *channel =
        sensor_add_channel(out, KINDS[domain->kind].channel, device, QTY_ENERGY);
    channel->scope = KINDS[domain->kind].scope;
    channel->location = whole ? -1 : channel_location(domain->location);
    channel->joules_per_count = domain->joules_per_count;
    channel->wraps_at = domain->wraps_at;
    channel->watts_max = KINDS[domain->kind].watts_max;
    channel->relative_accuracy = accuracy(domain->kind, cpu);
    /* Intel: about 976 us, AMD: 1 ms.  psys has no stated period, and whether a guest sees every
     * update depends on its host. */
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

/* Opens every domain of the location.  A part that fails is left out and reported as a fact;
 * *err keeps the first failure, for when nothing opens. */
static void open_domains(struct sensor *out, struct rapl_table *table,
                         struct rapl_location location, enum err *err)
{
    struct rapl_state *state = out->state;
    for (size_t i = 0; i < table->count && state->count < SENSOR_CHANNELS_MAX; i++) {
        struct rapl_domain *domain = &table->domains[i];
        if (!rapl_same_location(domain->location, location))
            continue;
        enum err result = state->path->open(domain);
        if (!result) {
            state->domains[state->count++] = *domain;
            continue;
        }
        char text[72];
        chars_format(text, "%s: %s", KINDS[domain->kind].channel, err_text(result));
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
    struct key key = key_unpack(finding->key);
    const struct rapl_path *path = key.path < PATH_COUNT ? PATHS[key.path] : NULL;
    if (!path)
        return err_set(why, ERR_USAGE, "%s was not found by this driver", finding->id);
    rapl_cpu_read(&cpu);
    enum err err = list_set(path, key.set, &cpu, &table, &note);
    if (err)
        return err_set(why, err, "%s: %s", finding->id, note.reason);
    struct rapl_state *state =
        memory_zeroed(1, sizeof *state + SENSOR_CHANNELS_MAX * sizeof *state->domains);
    if (!state)
        return err_set(why, ERR_NO_MEMORY, "%s: %s", finding->id, err_text(ERR_NO_MEMORY));
    state->path = path;
    out->state = state;
    err = ERR_ABSENT;
    open_domains(out, &table, key.location, &err);
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

/* The timestamp of a reading is the middle of its call; the end of a call is the start of the next one, so n
 * readings cost n + 1 clock reads. */
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
