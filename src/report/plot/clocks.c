#include "report/plot/clocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/quantity.h"
#include "core/text.h"
#include "core/units.h"
#include "report/plot/samples.h"

/* ---- when requests ran ---- */

/* Stretches of one start in which at least one request ran, in order and apart from each other. */
struct stretch {
    double from, to, before; /* before: seconds of those before it */
};

struct busy {
    struct stretch *items;
    size_t count;
};

static int by_start_and_time(const void *a, const void *b)
{
    const struct request_span *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

/* Of sorted spans, all of one start. */
static void find_stretches(const struct request_span *spans, size_t count, struct busy *out)
{
    out->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct stretch *last = out->count ? &out->items[out->count - 1] : NULL;
        if (spans[i].to <= spans[i].from)
            continue;
        if (last && spans[i].from <= last->to)
            last->to = fmax(last->to, spans[i].to);
        else
            out->items[out->count++] = (struct stretch){
                spans[i].from, spans[i].to, last ? last->before + last->to - last->from : 0};
    }
}

/* Seconds with requests, up to t. */
static double busy_until(const struct busy *busy, double t)
{
    size_t low = 0, high = busy->count; /* those before `low` begin by t, those from `high` later */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (busy->items[middle].from <= t)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return 0;
    const struct stretch *at = &busy->items[low - 1];
    return at->before + fmin(t, at->to) - at->from;
}

/* ---- means ---- */

/* A clock or how busy a device was, over the time with requests. */
struct gauge {
    char sensor[64], device[128];
    bool is_clock;
    double t, sum;          /* of the sample before; t is UNKNOWN at the begin of a start */
    double seconds, amount; /* with requests: time that is covered, and value times time */
};

struct gauges {
    struct gauge *items;
    size_t count, capacity;
    struct busy busy; /* of the start that is read */
};

static struct gauge *gauge_of(struct gauges *all, const struct gauge_sample *sample, bool is_clock)
{
    for (size_t i = 0; i < all->count; i++) {
        struct gauge *gauge = &all->items[i];
        if (gauge->is_clock == is_clock && strcmp(gauge->device, sample->device) == 0 &&
            strcmp(gauge->sensor, sample->sensor) == 0)
            return gauge;
    }
    struct gauge *items = grow(all->items, &all->capacity, all->count, sizeof *items);
    if (!items)
        return NULL;
    all->items = items;
    struct gauge *gauge = &items[all->count++];
    *gauge = (struct gauge){.is_clock = is_clock, .t = UNKNOWN};
    str_copy(gauge->sensor, sizeof gauge->sensor, sample->sensor);
    str_copy(gauge->device, sizeof gauge->device, sample->device);
    return gauge;
}

static enum err take(void *context, const struct gauge_sample *sample)
{
    struct gauges *all = context;
    bool is_clock = strcmp(sample->quantity, quantity_name(QTY_CLOCK)) == 0;
    if (!is_clock && strcmp(sample->quantity, quantity_name(QTY_UTILISATION)) != 0)
        return ERR_OK;
    struct gauge *gauge = gauge_of(all, sample, is_clock);
    if (!gauge)
        return ERR_NO_MEMORY;
    double passed = sample->t - gauge->t; /* UNKNOWN for the first: no comparison holds */
    if (passed > 0 && sample->covered > 0) {
        double share =
            (busy_until(&all->busy, sample->t) - busy_until(&all->busy, gauge->t)) / passed;
        gauge->seconds += share * sample->covered * passed;
        gauge->amount += share * (sample->sum - gauge->sum);
    }
    gauge->t = sample->t;
    gauge->sum = sample->sum;
    return ERR_OK;
}

static double mean_of(const struct gauge *gauge)
{
    return gauge->seconds > 0 ? gauge->amount / gauge->seconds : UNKNOWN;
}

/* All starts, one after the other; one without samples leaves the others theirs. */
static enum err read_gauges(const char *directory, const struct request_spans *spans,
                            struct gauges *all, struct error *why)
{
    bool any = false;
    for (size_t from = 0, to; from < spans->count; from = to) {
        unsigned start = spans->items[from].start;
        struct error missing = {0};
        for (to = from; to < spans->count && spans->items[to].start == start;)
            to++;
        for (size_t i = 0; i < all->count; i++)
            all->items[i].t = UNKNOWN;
        find_stretches(spans->items + from, to - from, &all->busy);
        enum err err = gauge_samples_each(directory, start, take, all, &missing);
        if (err && err != ERR_NO_DATA)
            return err_set(why, err, "%s", missing.text);
        if (err && from == 0)
            err_set(why, err, "%s", missing.text);
        any = any || !err;
    }
    return any ? ERR_OK : ERR_NO_DATA;
}

/* ---- whose ---- */

static bool is_cpu(const struct gauge *gauge)
{
    return strcmp(gauge->device, "host") == 0 || str_starts(gauge->device, "cpu");
}

/* UNKNOWN where the device does not tell. */
static double utilisation(const struct gauges *all, const char *device)
{
    double most = UNKNOWN;
    for (size_t i = 0; i < all->count; i++)
        if (!all->items[i].is_clock && strcmp(all->items[i].device, device) == 0)
            most = fmax(most, mean_of(&all->items[i]));
    return most;
}

static enum err choose(const struct gauges *all, struct busy_clock *out, struct error *why)
{
    double busiest = -1; /* below what is not told, which is below what is */
    size_t clocks = 0, idle = 0;
    *out = (struct busy_clock){.mhz = UNKNOWN};
    for (size_t i = 0; i < all->count; i++) {
        const struct gauge *gauge = &all->items[i];
        double busy = utilisation(all, gauge->device);
        clocks += gauge->is_clock;
        if (!gauge->is_clock || !(mean_of(gauge) > 0))
            continue;
        if (is_cpu(gauge)) {
            if (!is_known(out->mhz))
                *out = (struct busy_clock){mean_of(gauge), true};
            continue;
        }
        idle += busy == 0;
        busy = is_known(busy) ? busy : -0.5;
        if (busy == 0 || busy <= busiest)
            continue;
        busiest = busy;
        *out = (struct busy_clock){mean_of(gauge), false};
    }
    if (is_known(out->mhz))
        return ERR_OK;
    if (!clocks)
        return err_set(why, ERR_NO_DATA, "no device's clock is among the samples");
    if (!idle)
        return err_set(why, ERR_NO_DATA, "no clock was read while requests ran");
    return err_set(why, ERR_NO_DATA,
                   "no GPU worked while requests ran, and the CPU's clock is not known");
}

enum err busy_clock_read(const char *directory, struct busy_clock *out, struct error *why)
{
    struct request_spans spans = {0};
    struct gauges all = {0};
    enum err err = request_spans_read(directory, &spans, why);
    if (!err) {
        qsort(spans.items, spans.count, sizeof *spans.items, by_start_and_time);
        all.busy.items = malloc(spans.count * sizeof *all.busy.items);
        err = all.busy.items ? read_gauges(directory, &spans, &all, why)
                             : err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    }
    if (!err)
        err = choose(&all, out, why);
    free(all.busy.items);
    free(all.items);
    request_spans_release(&spans);
    return err;
}
