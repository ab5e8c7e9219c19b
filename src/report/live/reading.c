#include "report/live/reading.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/text.h"
#include "report/text/format.h"
#include "sampler/sampler.h"

enum err reading_take(struct sampler *sampler, nanos start, nanos from, nanos to,
                      struct reading *out)
{
    *out = (struct reading){
        .wall = clock_wall() - (clock_now() - to),
        .interval_s = seconds(to - from),
        .elapsed_s = seconds(to - start),
    };
    enum err err = ledger_take(sampler, from, to, NULL, &out->now);
    if (!err)
        err = ledger_take(sampler, start, to, NULL, &out->since);
    if (!err && !(out->lost = calloc(out->now.count + 1, sizeof *out->lost)))
        err = ERR_NO_MEMORY;
    if (err) {
        reading_release(out);
        return err;
    }
    for (size_t i = 0; i < out->now.count; i++) {
        struct source_state state;
        sampler_source(sampler, out->now.devices[i].source, &state);
        out->lost[i] = state.is_lost;
    }
    return ERR_OK;
}

void reading_release(struct reading *reading)
{
    ledger_release(&reading->now);
    ledger_release(&reading->since);
    free(reading->lost);
    *reading = (struct reading){0};
}

static bool fluctuates(enum quantity quantity)
{
    return quantity == QTY_UTILISATION || quantity == QTY_MEMORY_UTILISATION ||
           quantity == QTY_TENSOR_UTILISATION || quantity == QTY_CLOCK ||
           quantity == QTY_MEMORY_CLOCK;
}

double reading_vital(const struct reading *reading, size_t device, enum quantity quantity)
{
    const struct ledger_gauge *gauge = &reading->now.devices[device].gauges[quantity];
    if (!gauge->present || reading->lost[device])
        return UNKNOWN;
    return fluctuates(quantity) && is_known(gauge->mean) ? gauge->mean : gauge->last;
}

void reading_throttle(const struct reading *reading, size_t device, char *to, size_t size)
{
    double bits = reading_vital(reading, device, QTY_THROTTLE);
    if (!is_known(bits)) {
        str_copy(to, size, "-");
        return;
    }
    throttle_words((unsigned)bits, to, (unsigned)size);
    if (!to[0])
        str_copy(to, size, "none");
}

const char *reading_method(const struct reading *reading, size_t device)
{
    const char *name = method_name(reading->now.devices[device].energy.method);
    if (!name)
        name = method_name(reading->since.devices[device].energy.method);
    return name ? name : "-";
}

double reading_total_power(const struct ledger *ledger)
{
    double watts = UNKNOWN;
    for (size_t i = 0; i < ledger->count; i++)
        if (ledger->devices[i].counted)
            watts = (is_known(watts) ? watts : 0) + ledger->devices[i].power_mean;
    return watts;
}

void reading_figure(char *to, double value, const char *unit, enum method method)
{
    char rough[FORMAT_MAX];
    if (method == METHOD_ESTIMATED && is_known(value))
        str_format(to, FORMAT_MAX, "~%s", format_rough(rough, value, unit));
    else
        format_si(to, value, unit);
}

bool reading_wants_total(const struct reading *reading)
{
    size_t figures = 0;
    for (size_t i = 0; i < reading->since.count; i++)
        figures += reading->since.devices[i].has_energy;
    return figures > 1 || reading->since.count == 0;
}
