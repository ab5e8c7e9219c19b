#include "attribute/ledger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/figure.h"
#include "attribute/total.h"
#include "core/text.h"
#include "sampler/sampler.h"

/* ---- collecting the devices and their channels ---- */

static struct ledger_device *find_device(struct ledger *ledger, const char *id)
{
    for (size_t i = 0; i < ledger->count; i++)
        if (!strcmp(ledger->devices[i].id, id))
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
    str_copy(device->id, sizeof device->id, id);
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

/* ---- one device: which of its figures is the figure ---- */

struct choice {
    struct figure *figures; /* of all energy channels of the machine */
    size_t count;
    const struct figure **main_of; /* per device: its chosen figure, or NULL */
    struct total_part *counted;    /* room for the parts of the total */
};

static bool same_thing(const struct sensor_channel *a, const struct sensor_channel *b)
{
    return a->scope == b->scope && a->location == b->location && !strcmp(a->device, b->device);
}

/* Is b's figure about a part of what a's is about, on the same device? */
static bool is_part(const struct sensor_channel *a, const struct sensor_channel *b)
{
    return !strcmp(a->device, b->device) && a->scope != b->scope &&
           scope_contains(a->scope, b->scope);
}

static double power_of(const struct figure *f)
{
    return f->energy.joules / f->covered_s;
}

/* Shall f speak for a device rather than best?  A living figure before a silent one, a measured one
 * before a guess (however much more that spans), one with a place in the machine before one without,
 * the whole before a part, and then the better method. */
static bool speaks_before(const struct sampler *sampler, const struct figure *f,
                          const struct figure *best)
{
    const struct sensor_channel *row = figure_row(sampler, f),
                                *best_row = figure_row(sampler, best);
    if (figure_lives(f) != figure_lives(best))
        return figure_lives(f);
    if (figure_is_measured(f) != figure_is_measured(best))
        return figure_is_measured(f);
    if ((row->scope == SCOPE_NONE) != (best_row->scope == SCOPE_NONE))
        return best_row->scope == SCOPE_NONE;
    if (row->scope != best_row->scope) {
        if (scope_contains(row->scope, best_row->scope))
            return true;
        if (scope_contains(best_row->scope, row->scope))
            return false;
    }
    return figure_better(sampler, f, best);
}

static const struct figure *choose_main(const struct sampler *sampler, const struct choice *choice,
                                        const char *device)
{
    const struct figure *best = NULL;
    for (size_t i = 0; i < choice->count; i++) {
        const struct figure *f = &choice->figures[i];
        if (strcmp(figure_row(sampler, f)->device, device) != 0)
            continue;
        if (!best || speaks_before(sampler, f, best))
            best = f;
    }
    return best;
}

static void add_part(struct ledger_device *device, const char *name, const struct energy *energy)
{
    if (device->part_count == LEDGER_PARTS_MAX)
        return;
    struct ledger_part *part = &device->parts[device->part_count++];
    str_copy(part->name, sizeof part->name, name);
    part->energy = *energy;
}

/* The best other living figure of the same thing, for comparison; and the parts. */
static void add_company(const struct sampler *sampler, const struct choice *choice,
                        const struct figure *main_figure, struct ledger_device *device)
{
    const struct sensor_channel *main_row = figure_row(sampler, main_figure);
    const struct figure *check = NULL;
    for (size_t i = 0; i < choice->count; i++) {
        const struct figure *f = &choice->figures[i];
        const struct sensor_channel *row = figure_row(sampler, f);
        if (f == main_figure || strcmp(row->device, device->id) != 0)
            continue;
        if (same_thing(main_row, row)) {
            if (f->energy.method != METHOD_NONE && (!check || figure_better(sampler, f, check)))
                check = f;
        } else if (row->scope == SCOPE_NONE || is_part(main_row, row)) {
            add_part(device, row->name, &f->energy);
        }
    }
    if (check && main_figure->energy.method != METHOD_NONE) {
        device->cross_check = check->energy;
        /* As mean powers: the two may not cover the same part of the window. */
        device->residual = power_of(check) / power_of(main_figure) - 1;
    }
}

/* Where the whole of a device is silent, a part speaks for it: it must say that it is one. */
static void note_silent_whole(const struct sampler *sampler, const struct choice *choice,
                              const struct figure *main_figure, struct ledger_device *device)
{
    const struct sensor_channel *row = figure_row(sampler, main_figure);
    for (size_t i = 0; i < choice->count; i++) {
        const struct figure *f = &choice->figures[i];
        if (!figure_lives(f) && is_part(figure_row(sampler, f), row)) {
            str_format(device->energy.note, sizeof device->energy.note, "%s alone: %s", row->name,
                       f->energy.note);
            return;
        }
    }
}

static void split_idle(struct ledger_device *device, const struct baseline *idle, double covered_s)
{
    for (size_t i = 0; idle && i < idle->count; i++) {
        if (strcmp(idle->rows[i].device, device->id) != 0)
            continue;
        device->energy.idle_joules = idle->rows[i].watts * covered_s;
        device->energy.active_joules = device->energy.joules - device->energy.idle_joules;
    }
}

static void fill_device(struct sampler *sampler, const struct choice *choice,
                        const struct baseline *idle, struct ledger_device *device,
                        const struct figure *main_figure)
{
    device->has_energy = true;
    device->source = main_figure->source;
    device->channel = main_figure->channel;
    device->sensor = sampler_sensor(sampler, main_figure->source);
    device->energy = main_figure->energy;
    device->power_max = main_figure->power_max;
    if (figure_lives(main_figure)) {
        device->power_mean = power_of(main_figure);
        /* In a window shorter than a sample the mean is the better peak. */
        device->power_max = fmax(device->power_max, device->power_mean);
        split_idle(device, idle, main_figure->covered_s);
        note_silent_whole(sampler, choice, main_figure, device);
    }
    add_company(sampler, choice, main_figure, device);
}

/* ---- taking it ---- */

static size_t channels_in_all(const struct sampler *sampler)
{
    size_t count = 0;
    for (size_t s = 0; s < sampler_count(sampler); s++)
        count += sampler_sensor(sampler, s)->channel_count;
    return count;
}

static void collect(struct sampler *sampler, struct ledger *ledger, struct choice *choice)
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
                figure_take(sampler, s, c, ledger->from, ledger->to,
                            &choice->figures[choice->count++]);
            else if (!is_known(device->gauges[row->quantity].mean) ||
                     !device->gauges[row->quantity].present)
                read_gauge(sampler, s, c, ledger, &device->gauges[row->quantity]);
        }
    }
}

enum err ledger_take(struct sampler *sampler, nanos from, nanos to, const struct baseline *idle,
                     struct ledger *out)
{
    *out = (struct ledger){.from = from,
                           .to = to,
                           .total = energy_unknown("no sensor measures "
                                                   "energy here")};
    size_t most = channels_in_all(sampler);
    struct choice choice = {
        .figures = calloc(most + 1, sizeof *choice.figures),
        .main_of = calloc(most + 1, sizeof *choice.main_of),
        .counted = calloc(most + 1, sizeof *choice.counted),
    };
    out->devices = calloc(most + 1, sizeof *out->devices);
    enum err err = ERR_NO_MEMORY;
    if (choice.figures && choice.main_of && choice.counted && out->devices) {
        collect(sampler, out, &choice);
        for (size_t i = 0; i < out->count; i++) {
            choice.main_of[i] = choose_main(sampler, &choice, out->devices[i].id);
            if (choice.main_of[i])
                fill_device(sampler, &choice, idle, &out->devices[i], choice.main_of[i]);
        }
        total_take(sampler, choice.main_of, choice.counted, out);
        err = ERR_OK;
    }
    free(choice.figures);
    free(choice.main_of);
    free(choice.counted);
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

enum err baseline_from(const struct ledger *ledger, struct baseline *out)
{
    *out = (struct baseline){.seconds = seconds(ledger->to - ledger->from)};
    out->rows = calloc(ledger->count + 1, sizeof *out->rows);
    if (!out->rows)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct ledger_device *device = &ledger->devices[i];
        if (!is_known(device->power_mean))
            continue;
        struct baseline_row *row = &out->rows[out->count++];
        str_copy(row->device, sizeof row->device, device->id);
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
