/* GPM compares two samples that are at least 100 ms apart; they are taken once a second, and at window edges.
 * `dcgmi dmon` writes a row per second, read without blocking; its first row is invalid. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/text.h"
#include "core/units.h"
#include "port/proc.h"
#include "sensors/nvml/api.h"
#include "sensors/nvml/card.h"
#include "wire/gpu_log.h"

#define GPM_PERIOD_MIN (100 * NS_PER_MS)

enum { NVML_ACTIVITIES = 7 };

struct nvml_activity {
    bool is_gpm;      /* else dcgmi */
    unsigned channel; /* the first of NVML_ACTIVITIES, in order */
    const struct nvml_api *api;
    nvml_device card;
    nvml_gpm_sample samples[2]; /* used alternately; [last] is the newer */
    unsigned last;
    nanos taken;             /* when it was */
    bool has_begun, has_row; /* read; dcgmi: has written a row */
    struct nvml_gpm_metrics metrics;
    char *program; /* dcgmi, owned; started by the first read */
    unsigned index;
    struct helper dcgmi;
    struct gpu_log log;
    char line[1024];
    size_t length;
};

static const struct {
    enum quantity quantity;
    const char *name;
    unsigned gpm; /* id of the metric, in percent */
    enum gpu_log_value dcgm;
} METRICS[NVML_ACTIVITIES] = {
    {QTY_TENSOR_UTILIZATION, NULL, 5, GPU_LOG_TENSOR}, /* its channel exists already */
    {QTY_SM_ACTIVE, "sm", 2, GPU_LOG_SM},
    {QTY_SM_OCCUPANCY, "occupancy", 3, GPU_LOG_OCCUPANCY},
    {QTY_DRAM_ACTIVE, "dram", 10, GPU_LOG_DRAM},
    {QTY_FP64_ACTIVE, "fp64", 11, GPU_LOG_FP64},
    {QTY_FP32_ACTIVE, "fp32", 12, GPU_LOG_FP32},
    {QTY_FP16_ACTIVE, "fp16", 13, GPU_LOG_FP16},
};
#define DCGM_FIELDS "1001,1002,1003,1004,1005,1006,1007,1008"

struct sensor_group nvml_activity_pace(const struct nvml_activity *activity)
{
    return (struct sensor_group){.period_default =
                                     !activity || activity->is_gpm ? NS_PER_S : 500 * NS_PER_MS,
                                 .period_min = GPM_PERIOD_MIN,
                                 .slow_period = 2 * NS_PER_S,
                                 .slow_period_min = 2 * NS_PER_S,
                                 .fixed_period = true};
}

static void observe_none(const struct nvml_activity *activity, nanos t, enum err why,
                         struct observations *out)
{
    for (unsigned i = 0; i < NVML_ACTIVITIES; i++)
        observe_missing(out, activity->channel + i, t, why);
}

static void observe_share(const struct nvml_activity *activity, unsigned i, nanos t, enum err err,
                          double percent, struct observations *out)
{
    if (err == ERR_OK && !(percent >= 0 && percent <= 101))
        err = ERR_BAD_VALUE;
    if (err == ERR_OK)
        observe_value(out, activity->channel + i, t, percent < 100 ? percent : 100);
    else
        observe_missing(out, activity->channel + i, t, err);
}

/* ---- GPM ---- */

static int open_gpm(struct nvml_activity *activity)
{
    const struct nvml_api *api = activity->api;
    struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};
    int code = NVML_CALL(api, gpm_support, activity->card, &support);
    if (code != NVML_OK)
        return code;
    if (!support.supported || !api->gpm_free || !api->gpm_get || !api->gpm_metrics)
        return NVML_NOT_SUPPORTED;
    for (int i = 0; i < 2 && code == NVML_OK; i++)
        code = NVML_CALL(api, gpm_alloc, &activity->samples[i]);
    if (code == NVML_OK)
        code = api->gpm_get(activity->card, activity->samples[0]);
    activity->taken = clock_now();
    return code;
}

static void close_gpm(struct nvml_activity *activity)
{
    for (int i = 0; i < 2; i++)
        if (activity->samples[i])
            activity->api->gpm_free(activity->samples[i]);
    activity->samples[0] = activity->samples[1] = NULL;
}

static enum err read_gpm(struct nvml_activity *activity, struct observations *out)
{
    struct nvml_gpm_metrics *metrics = &activity->metrics;
    unsigned next = 1 - activity->last;
    nanos before = clock_now();
    bool is_early = before - activity->taken < GPM_PERIOD_MIN;
    if (is_early && !activity->has_begun)
        observe_none(activity, activity->taken, ERR_NO_DATA, out); /* start of the first mean */
    activity->has_begun = true;
    if (is_early)
        return ERR_OK;
    int code = activity->api->gpm_get(activity->card, activity->samples[next]);
    nanos t = before + (clock_now() - before) / 2;
    if (code == NVML_OK) {
        *metrics = (struct nvml_gpm_metrics){.version = NVML_GPM_VERSION, .count = NVML_ACTIVITIES};
        metrics->first = activity->samples[activity->last];
        metrics->second = activity->samples[next];
        for (unsigned i = 0; i < NVML_ACTIVITIES; i++)
            metrics->metrics[i].id = METRICS[i].gpm;
        activity->last = next;
        activity->taken = t;
        code = activity->api->gpm_metrics(metrics);
    }
    for (unsigned i = 0; i < NVML_ACTIVITIES; i++) {
        enum err err = nvml_err(code == NVML_OK ? metrics->metrics[i].code : code);
        if (err == ERR_LOST)
            return ERR_LOST;
        observe_share(activity, i, t, err, metrics->metrics[i].value, out);
    }
    return ERR_OK;
}

/* ---- dcgmi ---- */

static bool find_dcgmi(struct nvml_activity *activity)
{
    const char *given = getenv("IPW_DCGMI");
    if (given && !given[0])
        return false;
    activity->program = given ? memory_string(given) : proc_find("dcgmi");
    return activity->program;
}

static void start_dcgmi(struct nvml_activity *activity, struct observations *out)
{
    char index[16];
    struct error why;
    const char *const argv[] = {activity->program, "dmon", "-i",   index, "-e",
                                DCGM_FIELDS,       "-d",   "1000", NULL};
    (void)chars_format(index, "%u", activity->index);
    enum err err = helper_start(&activity->dcgmi, argv, &why);
    observe_none(activity, clock_now(), err ? err : ERR_NO_DATA, out);
}

/* Rows of this card since the last read. */
struct rows {
    double sums[NVML_ACTIVITIES];
    unsigned counts[NVML_ACTIVITIES], rows;
};

static void take_line(struct nvml_activity *activity, struct rows *rows)
{
    struct gpu_log_row row;
    activity->line[activity->length] = '\0';
    activity->length = 0;
    if (gpu_log_line(&activity->log, activity->line, &row) != GPU_LOG_ROW ||
        row.gpu != activity->index)
        return;
    rows->rows++;
    for (unsigned i = 0; i < NVML_ACTIVITIES; i++)
        if (is_known(row.values[METRICS[i].dcgm])) {
            rows->sums[i] += 100 * row.values[METRICS[i].dcgm];
            rows->counts[i]++;
        }
}

static enum err read_dcgmi(struct nvml_activity *activity, struct observations *out)
{
    struct rows rows = {.rows = 0};
    char bytes[1024];
    ssize_t n;
    if (!activity->has_begun)
        start_dcgmi(activity, out);
    activity->has_begun = true;
    if (!activity->dcgmi.pid)
        return ERR_OK; /* the reason was reported when it exited */
    while ((n = read(activity->dcgmi.output, bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < n; i++)
            if (bytes[i] == '\n')
                take_line(activity, &rows);
            else if (activity->length < sizeof activity->line - 1)
                activity->line[activity->length++] = bytes[i];
    nanos now = clock_now();
    bool has_ended = n == 0 || (errno != EAGAIN && errno != EINTR);
    for (unsigned i = 0; rows.rows && i < NVML_ACTIVITIES; i++)
        observe_share(activity, i, now, rows.counts[i] && activity->has_row ? ERR_OK : ERR_NO_DATA,
                      rows.sums[i] / rows.counts[i], out);
    activity->has_row |= rows.rows > 0;
    if (has_ended) {
        observe_none(activity, now, ERR_ABSENT, out);
        helper_end(&activity->dcgmi);
    }
    return ERR_OK;
}

/* ---- either ---- */

static void add_channels(struct nvml_activity *activity, struct sensor *sensor, unsigned group)
{
    const struct sensor_channel *of = &sensor->channels[0]; /* of the same card */
    activity->channel = (unsigned)sensor->channel_count;
    for (unsigned i = 0; i < NVML_ACTIVITIES; i++) {
        char name[32] = "utilisation.tensor";
        if (METRICS[i].name)
            (void)chars_format(name, "%s.%s", activity->is_gpm ? "gpm" : "dcgmi", METRICS[i].name);
        struct sensor_channel *channel =
            sensor_add_channel(sensor, name, of->device, METRICS[i].quantity);
        channel->location = of->location;
        channel->group = group;
        channel->interval_mean = true;
    }
}

struct nvml_activity *nvml_activity_open(const struct nvml_api *api, nvml_device card,
                                         unsigned index, struct sensor *sensor, unsigned group)
{
    struct nvml_activity *activity = memory_zeroed(1, sizeof *activity);
    if (!activity)
        return NULL;
    activity->api = api;
    activity->card = card;
    activity->index = index;
    activity->is_gpm = !nvml_is_final(open_gpm(activity)) && activity->samples[1];
    if (!activity->is_gpm)
        close_gpm(activity);
    if (activity->is_gpm || find_dcgmi(activity)) {
        add_channels(activity, sensor, group);
        return activity;
    }
    free(activity);
    return NULL;
}

void nvml_activity_close(struct nvml_activity *activity)
{
    if (!activity)
        return;
    close_gpm(activity);
    helper_end(&activity->dcgmi);
    free(activity->program);
    free(activity);
}

enum err nvml_activity_read(struct nvml_activity *activity, struct observations *out)
{
    return activity->is_gpm ? read_gpm(activity, out) : read_dcgmi(activity, out);
}
