#include "report/html/shares.h"

#include <math.h>
#include <stddef.h>

#include "rundir/run_table.h"
#include "core/json.h"
#include "core/units.h"

enum { PREFILL, DECODE, OTHER, FAILED, IDLE, UNATTRIBUTED, PARTS };

static const struct {
    const char *key, *label, *fact;
} ROWS[PARTS] = {
    [PREFILL] = {"prefill", "Prefill", "ipw.joules.prefill"},
    [DECODE] = {"decode", "Decode", "ipw.joules.decode"},
    [OTHER] = {"queries", "Queries, phase not known", NULL},
    [FAILED] = {"failed", "Failed queries", "ipw.joules.failed"},
    [IDLE] = {"idle", "Between queries", "ipw.joules.idle"},
    [UNATTRIBUTED] = {"unattributed", "Not attributed", "ipw.joules.unattributed"},
};

/* A rounding error is no part. */
#define LEAST_SHARE 1e-6

void shares_put(struct json *json, const struct run_table *table)
{
    double parts[PARTS] = {0}, total = 0, queries = run_fact(table, "ipw.joules.queries");
    for (size_t i = 0; i < PARTS; i++) {
        double joules = ROWS[i].fact ? run_fact(table, ROWS[i].fact) : UNKNOWN;
        parts[i] = joules > 0 ? joules : 0;
    }
    /* An answer that came in one piece has no phases. */
    parts[OTHER] = fmax(0, queries - parts[PREFILL] - parts[DECODE]);
    for (size_t i = 0; i < PARTS; i++)
        total += parts[i];
    json_array(json, "shares");
    for (size_t i = 0; is_known(queries) && i < PARTS; i++) {
        if (!(parts[i] > LEAST_SHARE * total))
            continue;
        json_object(json, NULL);
        json_string(json, "key", ROWS[i].key);
        json_string(json, "label", ROWS[i].label);
        json_number(json, "joules", parts[i]);
        json_number(json, "share", parts[i] / total);
        json_object_end(json);
    }
    json_array_end(json);
}
