#include "report/export/moment.h"

#include <math.h>

#include "core/units.h"
#include "port/json_read.h"
#include "report/export/export.h"

bool moments_of(const struct export_run *run, const struct jv *record, struct moments *out)
{
    const struct jv *metrics = jv_get(jv_get(record, "model_metrics"), run->model);
    double from = jv_number(jv_path(record, "ipw.started_at"));
    double latency = jv_number(jv_path(metrics, "latency_metrics.total_query_seconds"));
    double prefill = jv_number(jv_path(record, "ipw.prefill_s"));
    if (!is_known(latency)) /* a query that failed has no latency */
        latency = fmax(jv_number(jv_path(record, "ipw.decode_s")), 0) + fmax(prefill, 0);
    if (!(from > 0 && from < 9e9) || !(latency >= 0 && latency < 1e9))
        return false;
    *out = (struct moments){.from_ns = (int64_t)llround(from * 1e9)};
    out->to_ns = out->from_ns + (int64_t)llround(latency * 1e9);
    if (prefill >= 0 && prefill <= latency)
        out->first_ns = out->from_ns + (int64_t)llround(prefill * 1e9);
    if (out->first_ns > out->to_ns)
        out->first_ns = out->to_ns;
    return true;
}
