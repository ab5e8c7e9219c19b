#include "attribute/total.h"

#include <math.h>
#include <string.h>

#include "attribute/figure.h"
#include "attribute/ledger.h"
#include "core/text.h"
#include "sampler/sampler.h"

static bool overlaps(const struct sensor_channel *outer, const struct sensor_channel *inner)
{
    return scope_contains(outer->scope, inner->scope) &&
           (outer->location < 0 || inner->location < 0 || outer->location == inner->location);
}

static bool has_platform_at(const struct sampler *sampler, const struct figure *const *main_of,
                            size_t devices, int location)
{
    for (size_t i = 0; i < devices; i++) {
        const struct figure *f = main_of[i];
        if (figure_is_measured(f) && figure_row(sampler, f)->scope == SCOPE_PLATFORM &&
            figure_row(sampler, f)->location == location)
            return true;
    }
    return false;
}

/* perf lists a psys for every socket; on some machines all of them count, on others one does, and
 * whether for its socket or for all nobody says.  Uncertain while another socket that is measured
 * has no living psys. */
static bool psys_reach_is_unknown(const struct sampler *sampler,
                                  const struct figure *const *main_of, size_t devices,
                                  const struct sensor_channel *row)
{
    if (row->location < 0)
        return false;
    for (size_t i = 0; i < devices; i++) {
        const struct figure *f = main_of[i];
        if (!figure_is_measured(f))
            continue;
        const struct sensor_channel *other = figure_row(sampler, f);
        if (other->scope != SCOPE_PLATFORM && scope_contains(SCOPE_PLATFORM, other->scope) &&
            other->location >= 0 && !has_platform_at(sampler, main_of, devices, other->location))
            return true;
    }
    return false;
}

static size_t count_measured(const struct sampler *sampler, const struct figure *const *main_of,
                             size_t devices, enum scope scope)
{
    size_t count = 0;
    for (size_t i = 0; i < devices; i++)
        count += figure_is_measured(main_of[i]) && figure_row(sampler, main_of[i])->scope == scope;
    return count;
}

/* Is it uncertain what this figure spans?  Then it may stand neither beside what it perhaps contains
 * (joules counted twice) nor in its place (joules lost): those, whose reach is certain, are summed,
 * and it is shown beside the sum.
 *
 * A module's meter contains its GPUs, but nothing tells which they are: with one GPU a module the
 * numbers agree; with two (GB200), or with other cards in the machine, they do not. */
static bool reach_is_unknown(const struct sampler *sampler, const struct figure *const *main_of,
                             size_t devices, size_t self)
{
    const struct sensor_channel *row = figure_row(sampler, main_of[self]);
    if (row->scope == SCOPE_PLATFORM)
        return psys_reach_is_unknown(sampler, main_of, devices, row);
    if (row->scope != SCOPE_MODULE)
        return false;
    size_t gpus = count_measured(sampler, main_of, devices, SCOPE_GPU);
    return gpus > 0 && gpus != count_measured(sampler, main_of, devices, SCOPE_MODULE);
}

/* Does some other device's figure already contain this one's joules?  An estimate never displaces
 * a measurement; between two figures of the very same thing the better (then the earlier) wins. */
static bool is_contained(const struct sampler *sampler, const struct figure *const *main_of,
                         size_t devices, size_t self)
{
    const struct figure *mine = main_of[self];
    const struct sensor_channel *row = figure_row(sampler, mine);
    for (size_t i = 0; i < devices; i++) {
        const struct figure *other = main_of[i];
        if (i == self || !other || other->energy.method == METHOD_NONE)
            continue;
        if (figure_is_measured(mine) && !figure_is_measured(other))
            continue;
        const struct sensor_channel *other_row = figure_row(sampler, other);
        if (!overlaps(other_row, row) || reach_is_unknown(sampler, main_of, devices, i))
            continue;
        if (other_row->scope != row->scope)
            return true;
        if (figure_better(sampler, other, mine) ||
            (!figure_better(sampler, mine, other) && i < self))
            return true;
    }
    return false;
}

static void add_to_total(struct energy *total, const struct energy *part)
{
    if (total->method == METHOD_NONE) {
        *total = *part;
        total->note[0] = '\0';
        return;
    }
    size_t used = strlen(total->source);
    str_format(total->source + used, sizeof total->source - used, " + %s", part->source);
    total->joules += part->joules;
    total->statistical = hypot(total->statistical, part->statistical);
    total->coverage = fmin(total->coverage, part->coverage);
    total->idle_joules += part->idle_joules;
    total->active_joules += part->active_joules;
    total->updates = part->updates < total->updates ? part->updates : total->updates;
    total->low_confidence = total->low_confidence || part->low_confidence;
    if (part->method > total->method)
        total->method = part->method;
}

static double calibration_of(const struct energy *energy)
{
    double squared = energy->plus_minus * energy->plus_minus;
    return sqrt(fmax(0, squared - energy->statistical * energy->statistical));
}

/* Sensors of one kind are wrong alike (every card of a model reads a few per cent low), so their
 * calibration errors add up; those of different kinds have nothing to do with each other. */
static double total_calibration(const struct total_part *parts, size_t count)
{
    double squared = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            if (parts[i].driver == parts[j].driver && parts[i].scope == parts[j].scope)
                squared += calibration_of(parts[i].energy) * calibration_of(parts[j].energy);
    return sqrt(squared);
}

void total_add_up(const struct total_part *parts, size_t count, struct energy *out)
{
    if (count == 0)
        return;
    out->method = METHOD_NONE;
    for (size_t i = 0; i < count; i++)
        add_to_total(out, parts[i].energy);
    out->plus_minus = hypot(out->statistical, total_calibration(parts, count));
}

/* Is what f is about in the sum under another name? */
static bool is_represented(const struct sampler *sampler, const struct figure *const *main_of,
                           const struct ledger *ledger, const struct figure *f)
{
    const struct sensor_channel *row = figure_row(sampler, f);
    for (size_t i = 0; i < ledger->count; i++) {
        const struct figure *counted = main_of[i];
        if (!counted || !ledger->devices[i].counted)
            continue;
        const struct sensor_channel *other = figure_row(sampler, counted);
        if (overlaps(other, row) || overlaps(row, other))
            return true;
    }
    return false;
}

/* What a reader of the total must know: devices that should be in it, are not, and are not there
 * under another name either. */
static void note_absent(const struct sampler *sampler, const struct figure *const *main_of,
                        struct ledger *ledger)
{
    const struct ledger_device *first = NULL;
    unsigned others = 0;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct figure *f = main_of[i];
        if (!f || ledger->devices[i].counted || figure_row(sampler, f)->scope == SCOPE_NONE ||
            is_represented(sampler, main_of, ledger, f))
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
        str_format(more, sizeof more, " and %u more", others);
    str_format(ledger->total.note, sizeof ledger->total.note, "without %s%s: %s", first->id, more,
               first->energy.method == METHOD_ESTIMATED ? "only estimated" : first->energy.note);
}

void total_take(const struct sampler *sampler, const struct figure *const *main_of,
                struct total_part *room, struct ledger *ledger)
{
    bool any_measured = false;
    size_t counted = 0;
    for (size_t i = 0; i < ledger->count; i++)
        any_measured = any_measured || (figure_is_measured(main_of[i]) &&
                                        figure_row(sampler, main_of[i])->scope != SCOPE_NONE);
    for (size_t i = 0; i < ledger->count; i++) {
        const struct figure *f = main_of[i];
        struct ledger_device *device = &ledger->devices[i];
        if (!figure_lives(f) || figure_row(sampler, f)->scope == SCOPE_NONE)
            continue;
        /* A sum of measurements and guesses would be a guess: guesses stand beside it instead. */
        if (any_measured && !figure_is_measured(f))
            continue;
        if (reach_is_unknown(sampler, main_of, ledger->count, i)) {
            str_copy(device->energy.note, sizeof device->energy.note,
                     figure_row(sampler, f)->scope == SCOPE_MODULE
                         ? "not in the total: which of the GPUs it contains is unknown"
                         : "not in the total: another socket has no psys, so what this one spans "
                           "is unknown");
            continue;
        }
        if (is_contained(sampler, main_of, ledger->count, i))
            continue;
        device->counted = true;
        room[counted++] = (struct total_part){&device->energy, device->sensor->driver,
                                              figure_row(sampler, f)->scope};
    }
    total_add_up(room, counted, &ledger->total);
    note_absent(sampler, main_of, ledger);
}
