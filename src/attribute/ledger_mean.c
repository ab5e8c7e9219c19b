/* The mean of several ledgers of the same work. */
#include "attribute/ledger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/xalloc.h"
#include "core/text.h"
#include "stats/descriptive.h"

/* Sums over the runs in which an energy is known. */
struct tally {
    struct online joules, idle, active, coverage;
    double statistical; /* sum of squares */
    double calibration; /* sum of relative calibration errors x joules: common to all runs */
    unsigned long updates;
    bool low_confidence;
};

static void tally_add(struct tally *tally, const struct energy *energy)
{
    online_add(&tally->joules, energy->joules);
    online_add(&tally->idle, energy->idle_joules);
    online_add(&tally->active, energy->active_joules);
    online_add(&tally->coverage, energy->coverage);
    tally->statistical += square(energy->statistical);
    tally->calibration += sqrt(fmax(0, square(energy->plus_minus) - square(energy->statistical)));
    tally->updates += energy->updates;
    tally->low_confidence = tally->low_confidence || energy->low_confidence;
}

/* The mean, from the sums and from the first energy that was known (NULL: none was). */
static struct energy tally_mean(const struct tally *tally, const struct energy *model, size_t runs)
{
    struct energy mean = *model;
    double n = (double)tally->joules.count;
    /* Repeating reduces what differs between runs, not what they share: the spread of the runs (or, if larger, the
     * sensor's own statistical part) decreases with the square root of n, the calibration error stays.  With one run
     * there is no spread, only the sensor's part. */
    double sensor = sqrt(tally->statistical / n) / sqrt(n);
    double spread = online_standard_error(&tally->joules);
    mean.joules = online_mean(&tally->joules);
    mean.statistical = is_known(spread) ? fmax(spread, sensor) : sensor;
    mean.plus_minus = hypot(mean.statistical, tally->calibration / n);
    mean.idle_joules = online_mean(&tally->idle);
    mean.active_joules = online_mean(&tally->active);
    mean.coverage = online_mean(&tally->coverage);
    mean.updates = tally->updates / (unsigned long)tally->joules.count;
    mean.low_confidence = tally->low_confidence;
    if (tally->joules.count < runs)
        chars_format(mean.note, "measured in %llu of %zu runs",
                     (unsigned long long)tally->joules.count, runs);
    return mean;
}

/* How to find an energy in a ledger; NULL when it has none. */
typedef const struct energy *getter(const struct ledger *ledger, size_t device, const char *name);

/* The mean over the `count` of all `runs` in which the energy is known.  Where some measured it and others only
 * estimated it, the estimates are ignored: a mean of both would be an estimate. */
static struct energy mean_over(const struct ledger *const *ledgers, size_t count, size_t runs,
                               getter *get, size_t device, const char *name)
{
    struct tally tally = {0};
    const struct energy *model = NULL, *remark = NULL;
    enum method method = METHOD_NONE;
    bool any_measured = false;
    for (size_t i = 0; i < count; i++) {
        const struct energy *energy = get(ledgers[i], device, name);
        any_measured = any_measured || (energy && energy_is_measured(energy));
    }
    for (size_t i = 0; i < count; i++) {
        const struct energy *energy = get(ledgers[i], device, name);
        if (energy && energy->note[0] && !remark)
            remark = energy;
        if (!energy || energy->method == METHOD_NONE ||
            (any_measured && !energy_is_measured(energy)))
            continue;
        if (!model)
            model = energy;
        if (energy->method > method)
            method = energy->method;
        tally_add(&tally, energy);
    }
    if (!model)
        return *get(ledgers[0], device, name);
    struct energy mean = tally_mean(&tally, model, runs);
    mean.method = method;
    if (remark && !mean.note[0])
        chars_copy(mean.note, remark->note);
    return mean;
}

static const struct energy *get_total(const struct ledger *ledger, size_t device, const char *name)
{
    (void)device;
    (void)name;
    return &ledger->total;
}

static const struct energy *get_energy(const struct ledger *ledger, size_t device, const char *name)
{
    (void)name;
    return &ledger->devices[device].energy;
}

static const struct energy *get_check(const struct ledger *ledger, size_t device, const char *name)
{
    (void)name;
    return &ledger->devices[device].cross_check;
}

/* Finds a part by name, because the main channel of a device, and so its parts, may differ between runs. */
static const struct energy *get_part(const struct ledger *ledger, size_t device, const char *name)
{
    const struct ledger_device *from = &ledger->devices[device];
    for (size_t i = 0; i < from->part_count; i++)
        if (str_equal(from->parts[i].name, name))
            return &from->parts[i].energy;
    return NULL;
}

static void mean_gauges(const struct ledger *const *ledgers, size_t count, size_t device,
                        struct ledger_device *out)
{
    for (size_t q = 0; q < QTY_COUNT; q++) {
        struct online means = {0}, highs = {0};
        for (size_t i = 0; i < count; i++) {
            online_add(&means, ledgers[i]->devices[device].gauges[q].mean);
            online_add(&highs, ledgers[i]->devices[device].gauges[q].max);
        }
        out->gauges[q].mean = online_mean(&means);
        out->gauges[q].max = online_max(&highs);
        out->gauges[q].last = ledgers[count - 1]->devices[device].gauges[q].last;
    }
}

static void mean_device(const struct ledger *const *ledgers, size_t count, size_t device,
                        struct ledger_device *out)
{
    struct online power = {0}, peak = {0}, residual = {0};
    for (size_t i = 0; i < count; i++) {
        online_add(&power, ledgers[i]->devices[device].power_mean);
        online_add(&peak, ledgers[i]->devices[device].power_max);
        online_add(&residual, ledgers[i]->devices[device].residual);
    }
    out->power_mean = online_mean(&power);
    out->power_max = online_max(&peak);
    out->energy = mean_over(ledgers, count, count, get_energy, device, NULL);
    out->cross_check = mean_over(ledgers, count, count, get_check, device, NULL);
    out->residual = online_mean(&residual);
    for (size_t p = 0; p < out->part_count; p++)
        out->parts[p].energy =
            mean_over(ledgers, count, count, get_part, device, out->parts[p].name);
    mean_gauges(ledgers, count, device, out);
}

/* ---- the total ---- */

static size_t devices_counted(const struct ledger *ledger)
{
    size_t counted = 0;
    for (size_t i = 0; i < ledger->count; i++)
        counted += ledger->devices[i].counted;
    return counted;
}

/* The run with the most complete total: measured before estimated, then of the most devices. */
static const struct ledger *most_complete(const struct ledger *const *ledgers, size_t count)
{
    const struct ledger *best = ledgers[0];
    for (size_t i = 1; i < count; i++) {
        bool measured = energy_is_measured(&ledgers[i]->total),
             best_measured = energy_is_measured(&best->total);
        if (measured != best_measured ? measured
                                      : devices_counted(ledgers[i]) > devices_counted(best))
            best = ledgers[i];
    }
    return best;
}

static bool sums_same_devices(const struct ledger *a, const struct ledger *b)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->devices[i].counted != b->devices[i].counted)
            return false;
    return true;
}

/* A run in which a device had no reading has a smaller total than the others: a mean of both would not be the energy
 * of any real configuration.  Only runs that sum the same devices as the most complete one are used. */
static void mean_total(const struct ledger *const *ledgers, size_t count, struct ledger *out)
{
    const struct ledger *full = most_complete(ledgers, count);
    const struct ledger **alike = xcalloc(count, sizeof *alike);
    size_t alike_count = 0;
    for (size_t i = 0; i < count; i++)
        if (sums_same_devices(ledgers[i], full))
            alike[alike_count++] = ledgers[i];
    out->total = mean_over(alike, alike_count, count, get_total, 0, NULL);
    for (size_t d = 0; d < out->count; d++)
        out->devices[d].counted = full->devices[d].counted;
    free(alike);
}

void ledger_mean(const struct ledger *const *ledgers, size_t count, struct ledger *out)
{
    const struct ledger *first = ledgers[0];
    *out = *first;
    out->to = ledgers[count - 1]->to;
    out->devices = xcalloc(first->count + 1, sizeof *out->devices);
    memcpy(out->devices, first->devices, first->count * sizeof *out->devices);
    for (size_t d = 0; d < first->count; d++)
        mean_device(ledgers, count, d, &out->devices[d]);
    mean_total(ledgers, count, out);
}
