#include "runner/profile/run_energy.h"

#include <math.h>
#include <string.h>

#include "core/text.h"
#include "port/json_read.h"

struct run_energy run_energy_unknown(const char *note)
{
    return (struct run_energy){
        .energy = energy_unknown(note),
        .accounted_joules = UNKNOWN,
        .idle_joules = UNKNOWN,
        .unattributed_joules = UNKNOWN,
        .requests_joules = UNKNOWN,
        .busy.joules = UNKNOWN,
    };
}

void add_known(double *sum, double part)
{
    if (is_known(part))
        *sum = (is_known(*sum) ? *sum : 0) + part;
}

static enum method method_called(const char *name)
{
    for (enum method m = METHOD_COUNTER; name && m <= METHOD_ESTIMATED; m++)
        if (strcmp(method_name(m), name) == 0)
            return m;
    return METHOD_NONE;
}

void energy_from_json(const struct jv *value, struct energy *out)
{
    const char *note = jv_text(jv_get(value, "note"));
    int64_t updates = 0;
    *out = energy_unknown(note ? note : "not recorded");
    out->method = method_called(jv_text(jv_get(value, "method")));
    if (out->method == METHOD_NONE)
        return;
    out->joules = jv_number(jv_get(value, "joules"));
    out->plus_minus = jv_number(jv_get(value, "plus_minus"));
    out->statistical = jv_number(jv_get(value, "plus_minus_statistical"));
    out->coverage = jv_number(jv_get(value, "coverage"));
    out->idle_joules = jv_number(jv_get(value, "idle_joules"));
    out->active_joules = jv_number(jv_get(value, "active_joules"));
    out->low_confidence = jv_bool(jv_get(value, "low_confidence"), false);
    if (jv_integer(jv_get(value, "updates"), &updates) && updates > 0)
        out->updates = (unsigned long)updates;
    const char *source = jv_text(jv_get(value, "source"));
    str_copy(out->source, sizeof out->source, source ? source : "");
    str_copy(out->note, sizeof out->note, note ? note : "");
}

static double calibration(const struct energy *energy)
{
    return sqrt(fmax(0, energy->plus_minus * energy->plus_minus -
                            energy->statistical * energy->statistical));
}

void energy_add(struct energy *sum, const struct energy *part)
{
    if (part->method == METHOD_NONE)
        return;
    if (sum->method == METHOD_NONE) {
        *sum = *part;
        return;
    }
    double systematic = calibration(sum) + calibration(part);
    double share = part->joules / (sum->joules + part->joules);
    sum->coverage += (part->coverage - sum->coverage) * (is_known(share) ? share : 0.5);
    sum->joules += part->joules;
    sum->statistical = hypot(sum->statistical, part->statistical);
    sum->plus_minus = hypot(sum->statistical, systematic);
    sum->idle_joules += part->idle_joules;
    sum->active_joules += part->active_joules;
    sum->updates += part->updates;
    sum->low_confidence = sum->low_confidence && part->low_confidence;
    if (part->method > sum->method)
        sum->method = part->method;
}
