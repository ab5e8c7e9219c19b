#include "attribute/ledger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/channel_energy.h"
#include "core/memory.h"
#include "core/text.h"
#include "sampler/sampler.h"

/* ---- collecting the devices and their channels ---- */

static struct ledger_device *find_device(struct ledger *ledger, const char *id)
{
    for (size_t i = 0; i < ledger->count; i++)
        if (str_equal(ledger->devices[i].id, id))
            return &ledger->devices[i];
    return NULL;
}

static struct ledger_device *add_device(struct ledger *ledger, const char *id)
{
    struct ledger_device *device = &ledger->devices[ledger->count++];
    *device = (struct ledger_device){
        .energy = energy_unknown("no sensor measures its energy"),
        .cross_check = energy_unknown(""),
        .power_mean = UNKNOWN,
        .power_max = UNKNOWN,
        .residual = UNKNOWN,
    };
    chars_copy(device->id, id);
    return device;
}

static void read_gauge(struct sampler *sampler, size_t source, size_t channel,
                       const struct ledger *ledger, struct ledger_gauge *gauge)
{
    struct window window;
    struct channel_state state;
    double low;
    *gauge = (struct ledger_gauge){true, UNKNOWN, UNKNOWN, UNKNOWN};
    sampler_channel(sampler, source, channel, &state);
    if (state.has_value)
        gauge->last = state.value;
    if (sampler_window(sampler, source, channel, ledger->from, ledger->to, &window) == ERR_OK)
        gauge->mean = window.sum / window.covered_s;
    if (sampler_extremes(sampler, source, channel, ledger->from, ledger->to, &low, &gauge->max) !=
        ERR_OK)
        gauge->max = gauge->last;
}

const char *ledger_activity_source(const struct ledger_device *device)
{
    const struct sensor *sensor = device->sensor;
    const struct ledger_gauge *active = &device->gauges[QTY_SM_ACTIVE];
    if (sensor->kind != SENSOR_GPU)
        return NULL;
    for (size_t i = 0; active->present && is_known(active->mean) && i < sensor->channel_count; i++)
        if (sensor->channels[i].quantity == QTY_SM_ACTIVE)
            return str_starts(sensor->channels[i].name, "gpm.") ? "gpm" : "dcgmi";
    return device->gauges[QTY_UTILIZATION].present && is_known(device->gauges[QTY_UTILIZATION].mean)
               ? "utilization"
               : NULL;
}

/* ---- one device: which of its channels gives its energy ---- */

struct candidates {
    struct channel_energy *channels; /* all energy channels of the machine */
    size_t count;
    const struct channel_energy **main_of; /* per device: the channel chosen for it, or NULL */
    struct energy_term *counted;           /* buffer for the terms of the total */
};

static bool same_scope(const struct sensor_channel *a, const struct sensor_channel *b)
{
    return a->scope == b->scope && a->location == b->location && str_equal(a->device, b->device);
}

/* Whether b measures a part of a, on the same device. */
static bool is_part(const struct sensor_channel *a, const struct sensor_channel *b)
{
    return str_equal(a->device, b->device) && a->scope != b->scope &&
           scope_contains(a->scope, b->scope);
}

static double power_of(const struct channel_energy *f)
{
    return f->energy.joules / f->covered_s;
}

/* Whether f represents a device better than best: a known energy before an unknown one, a measurement before an
 * estimate (even one with more coverage), one with a scope before one without, the whole before a part, and then the
 * better method. */
static bool ranks_before(const struct channel_energy *f, const struct channel_energy *best)
{
    const struct sensor_channel *row = f->row, *best_row = best->row;
    if (channel_energy_is_known(f) != channel_energy_is_known(best))
        return channel_energy_is_known(f);
    if (channel_energy_is_measured(f) != channel_energy_is_measured(best))
        return channel_energy_is_measured(f);
    if ((row->scope == SCOPE_NONE) != (best_row->scope == SCOPE_NONE))
        return best_row->scope == SCOPE_NONE;
    if (row->scope != best_row->scope) {
        if (scope_contains(row->scope, best_row->scope))
            return true;
        if (scope_contains(best_row->scope, row->scope))
            return false;
    }
    return channel_energy_is_better(f, best);
}

static const struct channel_energy *choose_main(const struct candidates *all, const char *device)
{
    const struct channel_energy *best = NULL;
    for (size_t i = 0; i < all->count; i++) {
        const struct channel_energy *f = &all->channels[i];
        if (!str_equal(f->row->device, device))
            continue;
        if (!best || ranks_before(f, best))
            best = f;
    }
    return best;
}

static void add_part(struct ledger_device *device, const char *name, const struct energy *energy)
{
    if (device->part_count == LEDGER_PARTS_MAX)
        return;
    struct ledger_part *part = &device->parts[device->part_count++];
    chars_copy(part->name, name);
    part->energy = *energy;
}

/* The best other channel of the same scope, as a cross-check; and the parts. */
static void add_secondary(const struct candidates *all, const struct channel_energy *primary,
                          struct ledger_device *device)
{
    const struct sensor_channel *main_row = primary->row;
    const struct channel_energy *check = NULL;
    for (size_t i = 0; i < all->count; i++) {
        const struct channel_energy *f = &all->channels[i];
        const struct sensor_channel *row = f->row;
        if (f == primary || !str_equal(row->device, device->id))
            continue;
        if (same_scope(main_row, row)) {
            if (f->energy.method != METHOD_NONE && (!check || channel_energy_is_better(f, check)))
                check = f;
        } else if (row->scope == SCOPE_NONE || is_part(main_row, row)) {
            add_part(device, row->name, &f->energy);
        }
    }
    if (check && primary->energy.method != METHOD_NONE) {
        device->cross_check = check->energy;
        /* Compared as mean powers: the two may not cover the same part of the window. */
        device->residual = power_of(check) / power_of(primary) - 1;
    }
}

/* Where the channel of a whole device has no value, a part represents it, and a note is added. */
static void note_partial(const struct candidates *all, const struct channel_energy *primary,
                         struct ledger_device *device)
{
    const struct sensor_channel *row = primary->row;
    for (size_t i = 0; i < all->count; i++) {
        const struct channel_energy *f = &all->channels[i];
        if (!channel_energy_is_known(f) && is_part(f->row, row)) {
            chars_format(device->energy.note, "%s only: %s", row->name, f->energy.note);
            return;
        }
    }
}

static void split_idle(struct ledger_device *device, const struct baseline *idle, double covered_s)
{
    for (size_t i = 0; idle && i < idle->count; i++) {
        if (!str_equal(idle->rows[i].device, device->id))
            continue;
        device->energy.idle_joules = idle->rows[i].watts * covered_s;
        device->energy.active_joules = device->energy.joules - device->energy.idle_joules;
    }
}

static void fill_device(struct sampler *sampler, const struct candidates *all,
                        const struct baseline *idle, struct ledger_device *device,
                        const struct channel_energy *primary)
{
    device->has_energy = true;
    device->source = primary->source;
    device->channel = primary->channel;
    device->sensor = sampler_sensor(sampler, primary->source);
    device->energy = primary->energy;
    device->power_max = primary->power_max;
    if (channel_energy_is_known(primary)) {
        device->power_mean = power_of(primary);
        /* In a window shorter than a sample the mean is the better peak. */
        device->power_max = fmax(device->power_max, device->power_mean);
        split_idle(device, idle, primary->covered_s);
        note_partial(all, primary, device);
    }
    add_secondary(all, primary, device);
}

/* ---- the total: a sum of devices without double counting ---- */

static bool overlaps(const struct sensor_channel *outer, const struct sensor_channel *inner)
{
    return outer->host == inner->host && scope_contains(outer->scope, inner->scope) &&
           (outer->location < 0 || inner->location < 0 || outer->location == inner->location);
}

static bool has_platform_at(const struct channel_energy *const *main_of, size_t devices,
                            const struct sensor_channel *row)
{
    for (size_t i = 0; i < devices; i++) {
        const struct channel_energy *f = main_of[i];
        if (channel_energy_is_measured(f) && f->row->scope == SCOPE_PLATFORM &&
            f->row->host == row->host && f->row->location == row->location)
            return true;
    }
    return false;
}

/* perf lists a psys for every socket; on some machines all of them count, on others one does, and whether it covers
 * its socket or the whole machine is not documented.  Unknown while another measured socket has no working psys. */
static bool psys_span_is_unknown(const struct channel_energy *const *main_of, size_t devices,
                                 const struct sensor_channel *row)
{
    if (row->location < 0)
        return false;
    for (size_t i = 0; i < devices; i++) {
        const struct channel_energy *f = main_of[i];
        if (!channel_energy_is_measured(f))
            continue;
        const struct sensor_channel *other = f->row;
        if (other->host == row->host && other->scope != SCOPE_PLATFORM &&
            scope_contains(SCOPE_PLATFORM, other->scope) && other->location >= 0 &&
            !has_platform_at(main_of, devices, other))
            return true;
    }
    return false;
}

static size_t count_measured(const struct channel_energy *const *main_of, size_t devices,
                             enum scope scope, unsigned host)
{
    size_t count = 0;
    for (size_t i = 0; i < devices; i++)
        count += channel_energy_is_measured(main_of[i]) && main_of[i]->row->scope == scope &&
                 main_of[i]->row->host == host;
    return count;
}

/* Whether the coverage of this channel is unknown.  It may then neither be added to devices that it may contain (double
 * counting) nor replace them (lost joules): the others, whose coverage is known, are summed, and it is shown
 * separately.
 *
 * A module's meter contains its GPUs, but which ones is not reported: with one GPU per module the counts agree; with
 * two (GB200), or with other cards in the machine, they do not. */
static bool span_is_unknown(const struct channel_energy *const *main_of, size_t devices,
                            size_t self)
{
    const struct sensor_channel *row = main_of[self]->row;
    if (row->scope == SCOPE_PLATFORM)
        return psys_span_is_unknown(main_of, devices, row);
    if (row->scope != SCOPE_MODULE)
        return false;
    size_t gpus = count_measured(main_of, devices, SCOPE_GPU, row->host);
    return gpus > 0 && gpus != count_measured(main_of, devices, SCOPE_MODULE, row->host);
}

/* Whether another device's energy already contains this one's.  An estimate never replaces a measurement; of two
 * channels of the same scope the better (then the first) wins. */
static bool is_contained(const struct channel_energy *const *main_of, size_t devices, size_t self)
{
    const struct channel_energy *own = main_of[self];
    const struct sensor_channel *row = own->row;
    for (size_t i = 0; i < devices; i++) {
        const struct channel_energy *other = main_of[i];
        if (i == self || !other || other->energy.method == METHOD_NONE)
            continue;
        if (channel_energy_is_measured(own) && !channel_energy_is_measured(other))
            continue;
        const struct sensor_channel *other_row = other->row;
        if (!overlaps(other_row, row) || span_is_unknown(main_of, devices, i))
            continue;
        if (other_row->scope != row->scope)
            return true;
        if (channel_energy_is_better(other, own) ||
            (!channel_energy_is_better(own, other) && i < self))
            return true;
    }
    return false;
}

/* Whether the energy of f is in the sum under another name. */
static bool is_represented(const struct channel_energy *const *main_of, const struct ledger *ledger,
                           const struct channel_energy *f)
{
    const struct sensor_channel *row = f->row;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct channel_energy *counted = main_of[i];
        if (!counted || !ledger->devices[i].counted)
            continue;
        const struct sensor_channel *other = counted->row;
        if (overlaps(other, row) || overlaps(row, other))
            return true;
    }
    return false;
}

/* Adds a note on the devices that are missing in the total, also under another name. */
static void note_absent(const struct channel_energy *const *main_of, struct ledger *ledger)
{
    const struct ledger_device *first = NULL;
    unsigned others = 0;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct channel_energy *f = main_of[i];
        if (!f || ledger->devices[i].counted || f->row->scope == SCOPE_NONE ||
            is_represented(main_of, ledger, f))
            continue;
        if (!first)
            first = &ledger->devices[i];
        else
            others++;
    }
    if (!first)
        return;
    char more[32] = "";
    if (others)
        chars_format(more, " and %u more", others);
    chars_format(ledger->total.note, "without %s%s: %s", first->id, more,
                 first->energy.method == METHOD_ESTIMATED ? "only estimated" : first->energy.note);
}

static void take_total(const struct channel_energy *const *main_of, struct energy_term *terms,
                       struct ledger *ledger)
{
    bool any_measured = false;
    size_t counted = 0;
    for (size_t i = 0; i < ledger->count; i++)
        any_measured = any_measured || (channel_energy_is_measured(main_of[i]) &&
                                        main_of[i]->row->scope != SCOPE_NONE);
    for (size_t i = 0; i < ledger->count; i++) {
        const struct channel_energy *f = main_of[i];
        struct ledger_device *device = &ledger->devices[i];
        if (!channel_energy_is_known(f) || f->row->scope == SCOPE_NONE)
            continue;
        /* A sum of measurements and estimates would be an estimate: these are shown separately. */
        if (any_measured && !channel_energy_is_measured(f))
            continue;
        if (span_is_unknown(main_of, ledger->count, i)) {
            chars_copy(
                device->energy.note,
                f->row->scope == SCOPE_MODULE
                    ? "not in the total: which of the GPUs it contains is unknown"
                    : "not in the total: another socket has no psys, so its coverage is unknown");
            continue;
        }
        if (is_contained(main_of, ledger->count, i))
            continue;
        device->counted = true;
        terms[counted++] =
            (struct energy_term){&device->energy, device->sensor->driver, f->row->scope};
    }
    energy_sum(terms, counted, &ledger->total);
    note_absent(main_of, ledger);
}

/* ---- MIG instances ---- */

/* Spread of the energy per slice and activity between workloads: some keep the SMs busy at low power. */
#define INSTANCE_ACCURACY 0.3
/* An older activity is not used. */
#define ACTIVITY_STALE (5 * NS_PER_S)

static const struct sensor_channel *instance_channel(const struct ledger_device *device)
{
    const struct sensor *sensor = device->sensor;
    for (size_t c = 0; c < sensor->channel_count; c++)
        if (sensor->channels[c].share > 0 && str_equal(sensor->channels[c].device, device->id))
            return &sensor->channels[c];
    return NULL;
}

/* A monitor reads activity every other second: a row without a reading uses the newest. */
static double activity_of(struct sampler *sampler, const struct ledger *ledger,
                          const struct ledger_device *device, const struct sensor_channel *row)
{
    struct channel_state read;
    double mean = device->gauges[QTY_SM_ACTIVE].mean;
    if (is_known(mean))
        return mean / 100;
    sampler_channel(sampler, device->source, (size_t)(row - device->sensor->channels), &read);
    return read.has_value && ledger->to - read.t <= ACTIVITY_STALE ? read.value / 100 : UNKNOWN;
}

static struct energy instance_energy(const struct ledger_device *gpu, double part)
{
    struct energy energy = gpu->energy;
    energy.joules *= part;
    energy.statistical *= part;
    energy.plus_minus = hypot(energy.plus_minus * part, INSTANCE_ACCURACY * energy.joules);
    energy.method = METHOD_ESTIMATED;
    energy.idle_joules = energy.active_joules = UNKNOWN;
    chars_format(energy.source, "%.200s x slices x SM activity", gpu->energy.source);
    energy.note[0] = '\0';
    return energy;
}

/* Attributes the energy of a partitioned GPU by the slices and the SM activity of each instance; the remainder
 * (idle, or instances that report no activity) is a part of the GPU. */
static void attribute_instances(struct sampler *sampler, struct ledger *ledger,
                                struct ledger_device *gpu)
{
    double given = 0;
    bool any = false;
    for (size_t i = 0; i < ledger->count; i++) {
        struct ledger_device *device = &ledger->devices[i];
        const struct sensor_channel *row =
            device->source == gpu->source && !device->has_energy ? instance_channel(device) : NULL;
        if (!row)
            continue;
        double part = row->share * activity_of(sampler, ledger, device, row);
        any = device->is_instance = true;
        if (is_known(part) && given + part > 1)
            part = 1 - given; /* more slices than the card can have: joules are attributed once */
        given += is_known(part) ? part : 0;
        device->energy = !is_known(part) ? energy_unknown("no SM activity of this instance")
                         : gpu->energy.method == METHOD_NONE ? energy_unknown(gpu->energy.note)
                                                             : instance_energy(gpu, part);
        device->power_mean = is_known(part) ? gpu->power_mean * part : UNKNOWN;
        device->power_max = UNKNOWN;
    }
    if (!any || gpu->energy.method == METHOD_NONE)
        return;
    struct energy rest = instance_energy(gpu, 1 - given);
    add_part(gpu, "mig.unattributed", &rest);
}

/* ---- the ledger ---- */

static void collect(struct sampler *sampler, struct ledger *ledger, struct candidates *all)
{
    for (size_t s = 0; s < sampler_count(sampler); s++) {
        const struct sensor *sensor = sampler_sensor(sampler, s);
        for (size_t c = 0; c < sensor->channel_count; c++) {
            const struct sensor_channel *row = &sensor->channels[c];
            struct ledger_device *device = find_device(ledger, row->device);
            if (!device) {
                device = add_device(ledger, row->device);
                device->sensor = sensor;
                device->source = s;
            }
            if (quantity_gives_joules(row->quantity))
                channel_energy_take(sampler, s, c, ledger->from, ledger->to,
                                    &all->channels[all->count++]);
            else if (!is_known(device->gauges[row->quantity].mean) ||
                     !device->gauges[row->quantity].present)
                read_gauge(sampler, s, c, ledger, &device->gauges[row->quantity]);
        }
    }
}

/* Upper bound on the number of devices: the sum over the sensors.  They are large, and monitors take many ledgers. */
static size_t device_count_max(const struct sampler *sampler)
{
    size_t count = 0;
    for (size_t s = 0; s < sampler_count(sampler); s++) {
        const struct sensor *sensor = sampler_sensor(sampler, s);
        for (size_t i = 0, k; i < sensor->channel_count; i++) {
            for (k = 0; k < i && strcmp(sensor->channels[k].device, sensor->channels[i].device);)
                k++;
            count += k == i;
        }
    }
    return count;
}

enum err ledger_take(struct sampler *sampler, nanos from, nanos to, const struct baseline *idle,
                     struct ledger *out)
{
    *out = (struct ledger){.from = from,
                           .to = to,
                           .total = energy_unknown("no sensor measures "
                                                   "energy here")};
    size_t channel_count = sampler_channel_count(sampler);
    struct candidates all = {
        .channels = memory_zeroed(channel_count + 1, sizeof *all.channels),
        .main_of = memory_zeroed(channel_count + 1, sizeof *all.main_of),
        .counted = memory_zeroed(channel_count + 1, sizeof *all.counted),
    };
    out->devices = memory_zeroed(device_count_max(sampler) + 1, sizeof *out->devices);
    enum err err = ERR_NO_MEMORY;
    if (all.channels && all.main_of && all.counted && out->devices) {
        collect(sampler, out, &all);
        for (size_t i = 0; i < out->count; i++) {
            all.main_of[i] = choose_main(&all, out->devices[i].id);
            if (all.main_of[i])
                fill_device(sampler, &all, idle, &out->devices[i], all.main_of[i]);
        }
        take_total(all.main_of, all.counted, out);
        for (size_t i = 0; i < out->count; i++)
            if (out->devices[i].has_energy && out->devices[i].sensor->kind == SENSOR_GPU)
                attribute_instances(sampler, out, &out->devices[i]);
        err = ERR_OK;
    }
    free(all.channels);
    free(all.main_of);
    free(all.counted);
    if (err)
        ledger_release(out);
    return err;
}

void ledger_release(struct ledger *ledger)
{
    free(ledger->devices);
    ledger->devices = NULL;
    ledger->count = 0;
}

/* ---- selections and baselines ---- */

static bool is_selected(const struct ledger_device *device, const char *wanted)
{
    if (wanted)
        return str_equal(device->id, wanted);
    return str_starts(device->id, "cpu") || str_starts(device->id, "dram");
}

static void append(char *to, size_t size, const char *more)
{
    size_t length = strlen(to);
    (void)str_format(to + length, size - length, "%s%s", length ? " + " : "", more);
}

static enum err none_selected(const struct ledger *ledger, const char *wanted, struct error *why)
{
    char known[160] = "";
    for (size_t i = 0; i < ledger->count; i++)
        if (is_known(ledger->devices[i].energy.joules))
            append(known, sizeof known, ledger->devices[i].id);
    return err_set(why, ERR_NO_DATA,
                   "energy of %s is not measured (measured: %s); see `ipw doctor`",
                   wanted ? wanted : "the processor", *known ? known : "nothing");
}

enum err ledger_select(const struct ledger *ledger, const char *device,
                       struct ledger_selection *out, struct error *why)
{
    *out = (struct ledger_selection){.updates = UNKNOWN};
    bool any = false;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct ledger_device *d = &ledger->devices[i];
        if (!d->has_energy || !is_selected(d, device) || !is_known(d->energy.joules))
            continue;
        any = true;
        out->joules += d->energy.joules;
        out->updates = fmin(out->updates, (double)d->energy.updates);
        out->is_estimated |= !energy_is_measured(&d->energy);
        append(out->devices, sizeof out->devices, d->id);
        append(out->source, sizeof out->source, d->energy.source);
    }
    return any ? ERR_OK : none_selected(ledger, device, why);
}

enum err baseline_from(const struct ledger *ledger, struct baseline *out)
{
    *out = (struct baseline){.seconds = seconds(ledger->to - ledger->from)};
    out->rows = memory_zeroed(ledger->count + 1, sizeof *out->rows);
    if (!out->rows)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct ledger_device *device = &ledger->devices[i];
        if (!is_known(device->power_mean))
            continue;
        struct baseline_row *row = &out->rows[out->count++];
        chars_copy(row->device, device->id);
        row->watts = device->power_mean;
        row->sigma = device->energy.statistical / (out->seconds * device->energy.coverage);
    }
    return ERR_OK;
}

void baseline_release(struct baseline *baseline)
{
    free(baseline->rows);
    *baseline = (struct baseline){0};
}
