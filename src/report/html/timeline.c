#include "report/html/sections.h"

#include <math.h>
#include <stdlib.h>

#include "core/json.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "rundir/run_table.h"
#include "rundir/samples.h"
#include "rundir/spans.h"

enum { COLUMN_BYTES = 2, BUCKETS_OF_SPANS = 2000, BUCKETS_OF_POWER = 6000 };

/* ---- requests in flight ---- */

static void add_in_flight(const struct time_grid *grid, const struct span *span, double *in_flight)
{
    double first = floor((span->from - grid->from) / grid->step);
    double last = floor((span->to - grid->from) / grid->step);
    first = fmax(first, 0);
    last = fmin(last, (double)grid->count - 1);
    for (size_t b = (size_t)first; (double)b <= last; b++) {
        double from = grid->from + (double)b * grid->step;
        double part = fmin(span->to, from + grid->step) - fmax(span->from, from);
        in_flight[b] += fmax(part, 0) / grid->step;
    }
}

static void put_in_flight(struct json *json, const struct time_grid *grid,
                          const struct spans *spans, unsigned start)
{
    double *in_flight = xcalloc(grid->count, sizeof *in_flight);
    for (size_t i = 0; i < spans->count; i++)
        if (spans->items[i].start == start)
            add_in_flight(grid, &spans->items[i], in_flight);
    column_put_even(json, "in_flight", in_flight, grid->count, COLUMN_BYTES);
    free(in_flight);
}

/* ---- power ---- */

static void put_channel(struct json *json, const struct power_channel *channel, size_t count)
{
    char source[200];
    double *mean = xmalloc(count * sizeof *mean);
    for (size_t i = 0; i < count; i++)
        mean[i] = power_mean(channel, i);
    chars_format(source, "%s %s", channel->sensor, channel->name);
    json_object(json, NULL);
    json_string(json, "device", channel->device);
    json_string(json, "scope", channel->scope);
    json_string(json, "source", source);
    column_put_even(json, "mean", mean, count, COLUMN_BYTES);
    column_put_even(json, "least", channel->min, count, COLUMN_BYTES);
    column_put_even(json, "largest", channel->max, count, COLUMN_BYTES);
    json_object_end(json);
    free(mean);
}

static void put_power(struct json *json, const struct power *power)
{
    json_array(json, "power");
    for (size_t i = 0; i < power->count; i++)
        if (power->channels[i].shown)
            put_channel(json, &power->channels[i], power->grid.count);
    json_array_end(json);
}

/* ---- a start ---- */

/* Without samples, the range of the requests. */
static struct time_grid grid_of_spans(const struct spans *spans, unsigned start)
{
    double to = 0;
    for (size_t i = 0; i < spans->count; i++)
        if (spans->items[i].start == start)
            to = fmax(to, spans->items[i].to);
    return (struct time_grid){0, fmax(to, 1e-3) / BUCKETS_OF_SPANS, BUCKETS_OF_SPANS};
}

static void put_start(struct json *json, const struct run_table *table, const struct spans *spans,
                      unsigned start)
{
    struct power power = {0};
    struct error missing = {0};
    enum err err =
        power_read(table->directory, start, &table->summary, BUCKETS_OF_POWER, &power, &missing);
    power.grid = err ? grid_of_spans(spans, start) : power.grid;
    json_object(json, NULL);
    json_integer(json, "start", start);
    json_number(json, "from", power.grid.from);
    json_number(json, "step", power.grid.step);
    json_integer(json, "count", (int64_t)power.grid.count);
    json_string(json, "missing", err ? missing.text : NULL);
    json_integer(json, "damaged", (int64_t)power.damaged);
    put_power(json, &power);
    put_in_flight(json, &power.grid, spans, start);
    json_object_end(json);
    power_release(&power);
}

enum { STARTS_MAX = 16 };

void timeline_put(struct json *json, const struct run_table *table, const struct spans *spans)
{
    double recorded = integer_number(table->summary.starts);
    unsigned starts = spans->starts > 1 ? spans->starts : 1;
    starts = recorded > starts ? (unsigned)fmin(recorded, STARTS_MAX) : starts;
    if (!table->ours && !spans->count)
        starts = 0; /* the Python IPW stores neither samples nor times */
    json_array(json, "timelines");
    for (unsigned start = 1; start <= starts && start <= STARTS_MAX; start++)
        put_start(json, table, spans, start);
    json_array_end(json);
}
