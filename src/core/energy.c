#include "core/energy.h"

#include <math.h>
#include <stddef.h>

#include "core/json.h"
#include "core/text.h"

const char *method_name(enum method method)
{
    switch (method) {
    case METHOD_COUNTER:
        return "counter";
    case METHOD_INTEGRAL:
        return "integral";
    case METHOD_ESTIMATED:
        return "estimated";
    case METHOD_NONE:
        break;
    }
    return NULL;
}

bool energy_is_measured(const struct energy *energy)
{
    return energy->method == METHOD_COUNTER || energy->method == METHOD_INTEGRAL;
}

struct energy energy_unknown(const char *note)
{
    struct energy energy = {
        .joules = UNKNOWN,
        .plus_minus = UNKNOWN,
        .statistical = UNKNOWN,
        .coverage = UNKNOWN,
        .idle_joules = UNKNOWN,
        .active_joules = UNKNOWN,
    };
    str_copy(energy.note, sizeof energy.note, note);
    return energy;
}

void energy_to_json(struct json *json, const char *key, const struct energy *energy)
{
    json_object(json, key);
    json_number(json, "joules", energy->joules);
    json_number(json, "plus_minus", energy->plus_minus);
    json_number(json, "plus_minus_statistical", energy->statistical);
    json_string(json, "method", method_name(energy->method));
    json_string(json, "source", energy->source[0] ? energy->source : NULL);
    json_number(json, "coverage", energy->coverage);
    json_number(json, "idle_joules", energy->idle_joules);
    json_number(json, "active_joules", energy->active_joules);
    if (energy->method == METHOD_NONE)
        json_null(json, "updates");
    else
        json_integer(json, "updates", (int64_t)energy->updates);
    json_bool(json, "low_confidence", energy->low_confidence);
    json_string(json, "note", energy->note[0] ? energy->note : NULL);
    json_object_end(json);
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
