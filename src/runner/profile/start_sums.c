#include "runner/profile/start_sums.h"

#include "attribute/share.h"
#include "core/energy.h"
#include "core/json.h"
#include "core/text.h"
#include "sensors/sensor.h"

enum { DEVICES_MOST = 64 };

struct start_sums start_sums_nothing(void)
{
    return (struct start_sums){
        .energy = energy_unknown("no query was asked"),
        .accounted_joules = UNKNOWN,
        .idle_joules = UNKNOWN,
        .unattributed_joules = UNKNOWN,
        .busy.joules = UNKNOWN,
    };
}

void joules_add_known(double *sum, double part)
{
    if (is_known(part))
        *sum = (is_known(*sum) ? *sum : 0) + part;
}

/* A device that was measured for a part of the time only: its sensor was lost, or a kill took the last
 * samples with it. */
static void note_uncovered(const struct ledger *ledger, struct energy *total)
{
    const struct ledger_device *worst = NULL;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct ledger_device *device = &ledger->devices[i];
        if (device->counted && device->energy.coverage < 0.995 &&
            (!worst || device->energy.coverage < worst->energy.coverage))
            worst = device;
    }
    if (worst && !total->note[0])
        str_format(total->note, sizeof total->note,
                   "%s (%s) was not measured for %.1f %% of the time; those joules are not in it",
                   worst->id, worst->sensor->id, 100 * (1 - worst->energy.coverage));
}

enum err start_sums_take(struct sampler *sampler, const struct sharing *sharing, nanos from,
                         const struct baseline *idle, struct start_sums *out, struct ledger *ledger,
                         struct error *why)
{
    struct sharing_device_sum sums[DEVICES_MOST];
    *out = start_sums_nothing();
    out->busy_s = out->busy.seconds = sharing_busy_s(sharing);
    enum err err = ledger_take(sampler, from, sharing_settled(sharing), idle, ledger);
    if (err)
        return err_set(why, err, "cannot add up the energy: %s", err_text(err));
    out->energy = ledger->total;
    note_uncovered(ledger, &out->energy);
    size_t count = sharing_sums(sharing, sums, DEVICES_MOST);
    for (size_t i = 0; i < count; i++) {
        if (!sums[i].counted)
            continue;
        joules_add_known(&out->busy.joules, sums[i].requests_joules);
        joules_add_known(&out->accounted_joules, sums[i].settled_joules);
        joules_add_known(&out->idle_joules, sums[i].idle_joules);
        joules_add_known(&out->unattributed_joules, sums[i].unattributed_joules);
    }
    /* Joules that nobody got, because their sensor told them late, are of time that was not covered: it
     * leaves with them. */
    double watts = sharing_busy_w(sharing);
    if (watts > 0 && out->busy.joules > 0)
        out->busy.seconds = out->busy.joules / watts;
    out->busy.plus_minus = out->energy.plus_minus / out->energy.joules * out->busy.joules;
    return ERR_OK;
}

void start_sums_line(const struct start_sums *sums, unsigned start, double ended_at,
                     struct text *line)
{
    struct json json;
    text_clear(line);
    json_init(&json, line, false);
    json_object(&json, NULL);
    json_string(&json, "kind", "end");
    json_integer(&json, "start", start);
    json_number(&json, "ended_at", ended_at);
    energy_to_json(&json, "energy", &sums->energy);
    json_number(&json, "accounted_joules", sums->accounted_joules);
    json_number(&json, "idle_joules", sums->idle_joules);
    json_number(&json, "unattributed_joules", sums->unattributed_joules);
    json_number(&json, "busy_joules", sums->busy.joules);
    json_number(&json, "busy_s", sums->busy_s);
    json_number(&json, "busy_covered_s", sums->busy.seconds);
    json_object_end(&json);
}
