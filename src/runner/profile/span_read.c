#include "runner/profile/span_read.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "port/json_read.h"
#include "runner/profile/energy_read.h"

static bool find_kind(const char *name, enum span_kind *out)
{
    for (int i = 0; name && i < SPAN_COUNT; i++)
        if (!strcmp(span_name((enum span_kind)i), name)) {
            *out = (enum span_kind)i;
            return true;
        }
    return false;
}

bool span_is_whole(const struct span *span)
{
    return span->kind == SPAN_REQUEST || span->kind == SPAN_FAILED_ATTEMPT ||
           span->kind == SPAN_JUDGE;
}

bool span_is_judges(const struct span *span)
{
    return span->kind == SPAN_JUDGE_SENT || span->kind == SPAN_JUDGE ||
           span->kind == SPAN_JUDGE_BROKEN_OFF;
}

/* 0 when it is not there. */
static nanos time_of(const struct jv *line, const char *key, nanos zero)
{
    double t_s = jv_number(jv_get(line, key));
    return is_known(t_s) && fabs(t_s) < 1e9 ? zero + from_seconds(t_s) : 0;
}

static bool take_number(const struct jv *value, unsigned least, unsigned *out)
{
    int64_t number;
    if (!jv_integer(value, &number) || number < least || number > INT32_MAX)
        return false;
    *out = (unsigned)number;
    return true;
}

static enum err take_pieces(const struct jv *gaps, struct request_trace *trace)
{
    size_t count = jv_count(gaps);
    nanos t = trace->first_token ? trace->first_token : trace->from;
    if (count == 0)
        return ERR_OK;
    trace->arrivals = malloc(count * sizeof *trace->arrivals);
    if (!trace->arrivals)
        return ERR_NO_MEMORY;
    for (const struct jv *gap = jv_first(gaps); gap; gap = jv_next(gap)) {
        int64_t us = 0;
        if (jv_integer(gap, &us) && us > 0 && us < INT64_C(1000000000000000))
            t += us * NS_PER_US;
        trace->arrivals[trace->arrival_count++] = t;
    }
    return ERR_OK;
}

static void take_judgement(const struct jv *line, struct judgement *out)
{
    out->gpu_joules = jv_number(jv_get(line, "query_gpu_joules"));
    out->cpu_joules = jv_number(jv_get(line, "query_cpu_joules"));
    energy_from_json(jv_get(line, "earlier_energy"), &out->earlier);
    out->earlier_gpu_joules = jv_number(jv_get(line, "earlier_gpu_joules"));
    out->earlier_cpu_joules = jv_number(jv_get(line, "earlier_cpu_joules"));
}

enum err span_from_json(const struct jv *line, nanos zero, struct span *out, bool *ours)
{
    const char *key = jv_text(jv_get(line, "key"));
    *ours = false;
    *out = (struct span){
        .trace = {.from = time_of(line, "from_s", zero),
                  .first_token = time_of(line, "first_token_s", zero),
                  .to = time_of(line, "to_s", zero),
                  .prompt_tokens = jv_number(jv_get(line, "input_tokens")),
                  .output_tokens = jv_number(jv_get(line, "output_tokens"))},
    };
    if (!key || !str_copy(out->key, sizeof out->key, key) ||
        !find_kind(jv_text(jv_get(line, "span")), &out->kind) ||
        !take_number(jv_get(line, "start"), 1, &out->start) ||
        !take_number(jv_get(line, "attempt"), 1, &out->attempt) || !out->trace.from ||
        (span_is_whole(out) && !out->trace.to))
        return ERR_OK;
    *ours = true;
    if (out->kind == SPAN_JUDGE_SENT)
        take_judgement(line, &out->judgement);
    return take_pieces(jv_get(line, "piece_gaps_us"), &out->trace);
}

void span_release(struct span *span)
{
    request_trace_release(&span->trace);
}
