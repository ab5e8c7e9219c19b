/* One loop, in the thread of the command: wait for the end of an interval, read, decide, set.  Requests in flight
 * during a change belong to both settings; the control law ignores the first reading after a change.  An interval ends
 * when the server's metrics were scraped, so that GPU energy and server metrics cover the same time. */
#include "runner/govern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/ledger.h"
#include "core/clock.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/http.h"
#include "port/proc.h"
#include "power/freq_model.h"
#include "runner/gpu_control.h"
#include "sampler/sampler.h"
#include "sampler/session.h"
#include "stats/descriptive.h"
#include "wire/prometheus.h"

enum {
    BODY_MAX = 32 << 20,
    OBSERVATIONS_MIN = 10,
    WINDOW_MAX = 6,
    LIMIT_STEPS = 40,
    SCRAPE_MOST_S = 2
};
static const double QUANTILE = 0.95;
static const double WINDOW_ERROR_MAX = 0.05; /* relative to the window's length, for a rate */
static char *const RESTORE[] = {"/proc/self/exe", "sweep", "--restore", NULL};

/* ---- names of metrics ---- */

/* Histograms or summaries in seconds, or else two counters whose ratio is a mean. */
struct metric_name {
    const char *name, *seconds_total, *count_total;
};

static const struct metric_name NAMES[GOVERN_METRICS][12] = {
    [GOVERN_TTFT] = {{.name = "vllm:time_to_first_token_seconds"},
                     {.name = "sglang:time_to_first_token_seconds"},
                     {.name = "trtllm_time_to_first_token_seconds"},
                     {.name = "dynamo_frontend_time_to_first_token_seconds"},
                     {.name = "ipw_proxy_time_to_first_token_seconds"},
                     {.name = "time_to_first_token_seconds"}},
    [GOVERN_ITL] = {{.name = "vllm:inter_token_latency_seconds"},
                    {.name = "vllm:time_per_output_token_seconds"},
                    {.name = "sglang:inter_token_latency_seconds"},
                    {.name = "sglang:time_per_output_token_seconds"},
                    {.name = "tgi_request_mean_time_per_token_duration"},
                    {.name = "trtllm_time_per_output_token_seconds"},
                    {.name = "dynamo_frontend_inter_token_latency_seconds"},
                    {.name = "ipw_proxy_inter_token_latency_seconds"},
                    {.name = "time_per_output_token_seconds"},
                    {.name = "llamacpp:tokens_predicted_seconds_total",
                     .seconds_total = "llamacpp:tokens_predicted_seconds_total",
                     .count_total = "llamacpp:tokens_predicted_total"}},
};
static const char *const TOKENS[] = {
    "vllm:generation_tokens_total", "sglang:generation_tokens_total",
    "tgi_request_generated_tokens_sum", "llamacpp:tokens_predicted_total",
    "ipw_proxy_generation_tokens_total"};
static const char *const METRIC_WORDS[GOVERN_METRICS] = {"time to first token",
                                                         "inter-token latency"};

/* ---- state ---- */

/* One scrape; its time is uncertain by half of the duration of the request. */
struct scrape {
    nanos at, error; /* error: upper bound */
};

struct loop {
    const struct govern_options *options;
    struct gpu_control *control;
    const char *id; /* id of the GPU */
    struct session session;
    struct http *http;
    char url[1024];
    struct prometheus older, newer;
    bool has_older, has_missed; /* has_missed: the last scrape failed */
    unsigned window;            /* intervals since `older` */
    const struct metric_name *names[GOVERN_METRICS];
    char problem[160];
    double *settings, *slowdown, *energy;
    size_t count;
    struct governor governor;
    nanos start, from;
    struct scrape older_at;
    double power_sum[2]; /* [0] at the default, [1] governed */
    size_t power_count[2];
};

/* In seconds. */
static double slo_of(const struct govern_options *options, int metric)
{
    return options->slo_ms[metric] / 1e3;
}

static bool wants_latency(const struct govern_options *options)
{
    return is_known(slo_of(options, GOVERN_TTFT)) || is_known(slo_of(options, GOVERN_ITL));
}

/* ---- settings ---- */

static enum err list_clocks(struct loop *loop, struct sensor *sensor,
                            const struct sensor_limits *limits, struct error *why)
{
    double memory_mhz =
        is_known(limits->memory_max_mhz) ? limits->memory_max_mhz : limits->memory_mhz;
    enum err err = sensor->driver->control->clocks(sensor, KNOB_GRAPHICS_CLOCK,
                                                   is_known(memory_mhz) ? memory_mhz : 0,
                                                   &loop->settings, &loop->count, why);
    if (!err)
        sort_ascending(loop->settings, loop->count);
    return err;
}

static enum err list_limits(struct loop *loop, const struct sensor *sensor,
                            const struct sensor_limits *limits, struct error *why)
{
    double low = limits->limit_min_w;
    double high = limits->limit_default_w;
    if (!(low > 0 && high >= low))
        return err_set(why, ERR_UNSUPPORTED, "%s does not report the range of its power limit",
                       sensor->id);
    loop->settings = xcalloc(LIMIT_STEPS + 1, sizeof *loop->settings);
    for (size_t i = 0; i < LIMIT_STEPS; i++) {
        double watts = ceil(low + (high - low) * (double)i / LIMIT_STEPS);
        if (watts < high && (!loop->count || watts > loop->settings[loop->count - 1]))
            loop->settings[loop->count++] = watts;
    }
    loop->settings[loop->count++] = high;
    return ERR_OK;
}

static enum err check_lowest(const struct loop *loop, const struct sensor *sensor,
                             struct error *why)
{
    double lowest = loop->options->lowest;
    double max = loop->settings[loop->count - 1];
    if (lowest > max)
        return err_set(why, ERR_USAGE, "--lowest %g is above the highest setting of %s, %g", lowest,
                       sensor->id, max);
    return ERR_OK;
}

/* ---- the model ---- */

/* The requested application, or the only one. */
static enum err find_application(const struct govern_options *options,
                                 const struct freq_model *model, struct freq_curve *out,
                                 double *lowest_mhz, struct error *why)
{
    struct freq_curve curve;
    double lowest;
    size_t found = 0;
    if (!model->kind->application)
        return err_set(why, ERR_BAD_VALUE,
                       "%.160s: a model of kind %s keeps no applications: fit "
                       "roofline",
                       options->model, model->kind->name);
    for (size_t i = 0; model->kind->application(model->state, i, &curve, &lowest); i++)
        if (!options->application || str_equal_nocase(options->application, curve.application)) {
            *out = curve;
            *lowest_mhz = lowest;
            found++;
        }
    if (found == 1)
        return ERR_OK;
    return err_set(why, ERR_USAGE,
                   found ? "%.160s has several applications or GPUs: select one with "
                           "--application"
                         : "%.160s has no application '%.60s'",
                   options->model, options->application ? options->application : "");
}

/* Time and energy of every setting relative to the default; clocks that were not measured are unknown. */
static enum err predict(struct loop *loop, const struct freq_model *model, struct error *why)
{
    struct freq_curve curve = {0};
    double lowest = 0;
    struct freq_prediction *at = xcalloc(loop->count, sizeof *at);
    loop->slowdown = xcalloc(loop->count, sizeof *loop->slowdown);
    loop->energy = xcalloc(loop->count, sizeof *loop->energy);
    enum err err = find_application(loop->options, model, &curve, &lowest, why);
    struct freq_target target = {.gpu = curve.gpu,
                                 .application = curve.application,
                                 .fmax_mhz = curve.fmax_mhz,
                                 .idle_w = curve.idle_w};
    if (!err)
        err = freq_model_predict(model, &target, loop->settings, loop->count, at, why);
    for (size_t i = 0; !err && i < loop->count; i++) {
        const struct freq_value *last = at[loop->count - 1].figures;
        bool is_known_clock = loop->settings[i] >= lowest - 1;
        loop->slowdown[i] = ratio(at[i].figures[FREQ_TIME_S].value, last[FREQ_TIME_S].value);
        loop->energy[i] = is_known_clock
                              ? ratio(at[i].figures[FREQ_ENERGY_J].value, last[FREQ_ENERGY_J].value)
                              : UNKNOWN;
    }
    if (!err && !is_known(loop->slowdown[0]))
        err = err_set(why, ERR_BAD_VALUE, "%.160s does not predict time", loop->options->model);
    free(at);
    return err;
}

static enum err load_model(struct loop *loop, struct error *why)
{
    struct freq_model model;
    if (!loop->options->model)
        return ERR_OK;
    enum err err = freq_model_load(&model, loop->options->model, why);
    if (err)
        return err;
    err = predict(loop, &model, why);
    freq_model_release(&model);
    return err;
}

/* ---- the server's metrics ---- */

/* A URL without a path is the server's base URL. */
static enum err set_url(struct loop *loop, struct error *why)
{
    const char *given = loop->options->metrics_url;
    const char *host = strstr(given, "://");
    const char *path = host && strchr(host + 3, '/') ? "" : "/metrics";
    return str_join(loop->url, sizeof loop->url, given, path, "")
               ? ERR_OK
               : err_set(why, ERR_USAGE, "--metrics-url is too long");
}

static enum err fetch(struct loop *loop, struct prometheus *out, struct scrape *when,
                      struct error *why)
{
    nanos asked = clock_now();
    struct text body = {0};
    struct http_response response = {0};
    enum err err = http_fetch(loop->http, loop->url, NULL, SCRAPE_MOST_S * NS_PER_S, BODY_MAX,
                              &body, &response, why);
    nanos error = (clock_now() - asked) / 2;
    *when = (struct scrape){asked + error, error};
    if (!err && response.status / 100 != 2)
        err = err_set(why, ERR_IO, "the metrics endpoint returned HTTP status %d", response.status);
    if (!err) {
        err = prometheus_parse(out, text_get(&body), body.length, why);
        if (err == ERR_BAD_VALUE)
            (void)err_set(why, err, "the metrics endpoint did not return Prometheus' text format");
    }
    http_response_release(&response);
    text_release(&body);
    return err;
}

static bool has_metric(const struct prometheus *metrics, const struct metric_name *name)
{
    return name->count_total ? is_known(prometheus_increase(metrics, metrics, name->count_total))
                             : prometheus_has(metrics, name->name);
}

/* A server may create a series with the first request: missing ones are looked up again. */
static void find_names(struct loop *loop, const struct prometheus *metrics)
{
    for (int m = 0; m < GOVERN_METRICS; m++)
        for (size_t i = 0; is_known(slo_of(loop->options, m)) && !loop->names[m] &&
                           i < sizeof NAMES[m] / sizeof *NAMES[m] && NAMES[m][i].name;
             i++)
            if (has_metric(metrics, &NAMES[m][i]))
                loop->names[m] = &NAMES[m][i];
}

static bool is_of_server(const char *name)
{
    static const char *const PREFIXES[] = {"vllm:",   "sglang:", "tgi_",
                                           "trtllm_", "dynamo_", "ipw_proxy_"};
    for (size_t k = 0; k < COUNT_OF(PREFIXES); k++)
        if (str_starts(name, PREFIXES[k]))
            return true;
    return false;
}

/* Whether these are metrics of an inference server, which may add the metric later. */
static bool is_server(const struct prometheus *metrics)
{
    for (size_t i = 0; i < metrics->count; i++)
        if (is_of_server(metrics->items[i].name))
            return true;
    return false;
}

/* Whether a counter of the server has increased: it processes requests, even if the required metrics are missing. */
static bool is_working(const struct loop *loop)
{
    for (size_t i = 0; i < loop->newer.count; i++) {
        const char *name = loop->newer.items[i].name;
        const char *last = strrchr(name, '_');
        bool is_new = i == 0 || !str_equal(name, loop->newer.items[i - 1].name);
        if (is_new && is_of_server(name) && last &&
            (str_equal(last, "_count") || str_equal(last, "_total")) &&
            prometheus_increase(&loop->older, &loop->newer, name) > 0)
            return true;
    }
    return false;
}

/* The reason for missing latencies.  One that is missing although requests were served is probably not supported. */
static const char *explain_missing(struct loop *loop)
{
    for (int m = 0; m < GOVERN_METRICS; m++)
        if (is_known(slo_of(loop->options, m)) && !loop->names[m] && is_working(loop)) {
            (void)chars_format(loop->problem,
                               "requests were served, but there is no metric of %s yet",
                               METRIC_WORDS[m]);
            return loop->problem;
        }
    return "no requests";
}

static enum err begin_metrics(struct loop *loop, struct error *why)
{
    if (!wants_latency(loop->options))
        return ERR_OK;
    enum err err = set_url(loop, why);
    if (!err)
        err = http_open(&loop->http, why);
    if (!err)
        err = fetch(loop, &loop->older, &loop->older_at, why);
    if (err)
        return err;
    loop->has_older = true;
    find_names(loop, &loop->older);
    for (int m = 0; m < GOVERN_METRICS; m++)
        if (is_known(slo_of(loop->options, m)) && !loop->names[m] && !is_server(&loop->older))
            return err_set(why, ERR_NOT_FOUND,
                           "the metrics endpoint has no known metric of %s (see ipw-govern(1))",
                           METRIC_WORDS[m]);
    return ERR_OK;
}

static void read_metric(struct loop *loop, enum govern_metric metric, struct govern_step *step)
{
    const struct metric_name *name = loop->names[metric];
    struct prometheus_window window = {.mean = UNKNOWN, .quantile = UNKNOWN};
    if (!name)
        return;
    if (name->count_total) {
        double seconds = prometheus_increase(&loop->older, &loop->newer, name->seconds_total);
        window.count = prometheus_increase(&loop->older, &loop->newer, name->count_total);
        window.mean = ratio(seconds, window.count);
    } else if (prometheus_between(&loop->older, &loop->newer, name->name, QUANTILE, &window)) {
        return;
    }
    double slo_s = slo_of(loop->options, metric);
    step->is_mean[metric] = !is_known(window.quantile) && is_known(window.mean);
    step->latency_s[metric] = step->is_mean[metric] ? window.mean : window.quantile;
    if (window.is_at_least && window.quantile <= slo_s) /* above the last bucket bound */
        step->latency_s[metric] = 2 * slo_s;
    if (!(step->observations <= window.count))
        step->observations = window.count;
}

static double tokens_between(const struct loop *loop)
{
    for (size_t i = 0; i < COUNT_OF(TOKENS); i++) {
        double tokens = prometheus_increase(&loop->older, &loop->newer, TOKENS[i]);
        if (is_known(tokens))
            return tokens;
    }
    return UNKNOWN;
}

/* The maximum of latency / SLO; UNKNOWN unless every metric has a value. */
static double relative_latency(const struct loop *loop, const struct govern_step *step)
{
    double largest = 0;
    for (int m = 0; m < GOVERN_METRICS; m++)
        if (is_known(slo_of(loop->options, m))) {
            double one = step->latency_s[m] / slo_of(loop->options, m);
            largest = is_known(one) && is_known(largest) ? fmax(largest, one) : UNKNOWN;
        }
    return largest > 0 ? largest : UNKNOWN;
}

/* Rate per second between two scrapes; UNKNOWN if the duration is too uncertain, as after a stall. */
static double rate_between(const struct loop *loop, const struct scrape *newer, double count)
{
    double window = seconds(newer->at - loop->older_at.at);
    double error = seconds(newer->error + loop->older_at.error);
    return error <= WINDOW_ERROR_MAX * window ? ratio(count, window) : UNKNOWN;
}

static void advance_scrape(struct loop *loop, const struct scrape *when)
{
    struct prometheus older = loop->older;
    loop->older = loop->newer;
    loop->newer = older;
    loop->older_at = *when;
    loop->window = 0;
}

/* One scrape may fail: the next one covers both intervals.  After two, the default has been restored, and requests of
 * the outage are ignored. */
static void handle_failed_scrape(struct loop *loop, struct govern_step *step,
                                 const struct error *why)
{
    (void)chars_copy(loop->problem, why->text);
    step->problem = loop->problem;
    if (loop->has_missed)
        loop->has_older = false;
    loop->has_missed = true;
}

/* Reads the metrics since `older`; sets `to` to the time of the scrape.  With too few observations for a percentile,
 * the window is extended. */
static void read_metrics(struct loop *loop, nanos *to, struct govern_step *step,
                         struct governor_reading *reading)
{
    struct error why = {0};
    struct scrape when;
    if (!wants_latency(loop->options))
        return;
    loop->window++;
    enum err err = fetch(loop, &loop->newer, &when, &why);
    *to = when.at > *to ? when.at : *to;
    if (err) {
        handle_failed_scrape(loop, step, &why);
        return;
    }
    loop->has_missed = false;
    find_names(loop, &loop->newer);
    if (!loop->has_older) {
        step->problem = "first reading";
        loop->has_older = true;
        advance_scrape(loop, &when);
        return;
    }
    for (int m = 0; m < GOVERN_METRICS; m++)
        if (is_known(slo_of(loop->options, m)))
            read_metric(loop, m, step);
    reading->latency = relative_latency(loop, step);
    step->tokens_per_s = rate_between(loop, &when, tokens_between(loop));
    reading->work_per_s = step->tokens_per_s > 0 ? step->tokens_per_s : UNKNOWN;
    bool is_few = step->observations < OBSERVATIONS_MIN && !(reading->latency > 1);
    if (is_few && step->observations > 0 && loop->window < WINDOW_MAX) {
        reading->is_waiting = true;
        step->problem = "too few requests yet";
        return;
    }
    if (!is_known(reading->latency))
        step->problem = explain_missing(loop);
    advance_scrape(loop, &when);
}

/* ---- the GPU ---- */

static const struct ledger_device *find_device(const struct loop *loop, const struct ledger *ledger)
{
    for (size_t i = 0; i < ledger->count; i++)
        if (ledger->devices[i].has_energy && str_equal(ledger->devices[i].sensor->id, loop->id))
            return &ledger->devices[i];
    return NULL;
}

static double gauge(const struct ledger_device *device, enum quantity quantity)
{
    return device->gauges[quantity].present ? device->gauges[quantity].mean : UNKNOWN;
}

static void read_device(struct loop *loop, nanos to, struct govern_step *step)
{
    struct ledger ledger;
    sampler_settle(loop->session.sampler, to);
    ledger_take(loop->session.sampler, loop->from, to, NULL, &ledger);
    const struct ledger_device *device = find_device(loop, &ledger);
    if (device) {
        if (device->energy.coverage > 0.5)
            step->power_w = device->power_mean;
        step->clock_mhz = gauge(device, QTY_CLOCK);
        step->utilization = gauge(device, QTY_UTILIZATION) / 100;
    }
    ledger_release(&ledger);
}

static enum err open_gpu(struct loop *loop, struct govern_result *out, struct error *why)
{
    const struct govern_options *options = loop->options;
    struct sensor_limits limits;
    unsigned knobs = 1U << options->knob | GPU_CONTROL_IN_USE;
    enum err err = options->dry_run
                       ? gpu_control_open(options->devices, &loop->control, why)
                       : gpu_control_begin(options->devices, knobs, RESTORE, &loop->control, why);
    if (err)
        return err;
    struct sensor *sensor = gpu_control_sensor(loop->control);
    (void)chars_copy(out->device, sensor->id);
    loop->id = out->device;
    (void)chars_copy(out->name, sensor->name);
    err = sensor->driver->control->limits(sensor, &limits, why);
    if (!err)
        err = options->knob == KNOB_POWER_LIMIT ? list_limits(loop, sensor, &limits, why)
                                                : list_clocks(loop, sensor, &limits, why);
    if (!err)
        err = check_lowest(loop, sensor, why);
    if (err)
        return err;
    struct session_options session = {
        .sensors = {.devices = options->devices[0] ? options->devices : NULL},
        .drivers = sensor->driver->name};
    err = session_open(&loop->session, &session, why);
    if (!err)
        sampler_ready(loop->session.sampler);
    return err;
}

/* ---- the loop ---- */

static enum err set_decided(struct loop *loop, const struct govern_step *step, struct error *why)
{
    enum gpu_knob knob = loop->options->knob;
    if (!step->decision.is_change || loop->options->dry_run)
        return ERR_OK;
    return step->decision.is_default ? gpu_control_reset(loop->control, knob, why)
                                     : gpu_control_set(loop->control, knob, step->decided, why);
}

/* A power limit is not a clock: the clock that was read says nothing about it. */
static double running_setting(const struct loop *loop, const struct govern_step *step)
{
    return loop->options->knob == KNOB_GRAPHICS_CLOCK ? step->clock_mhz : UNKNOWN;
}

static void count_step(struct loop *loop, const struct govern_step *step, bool was_default,
                       struct govern_result *out)
{
    bool has_reading = wants_latency(loop->options) ? !step->problem : is_known(step->power_w);
    out->steps++;
    out->readings += has_reading;
    out->violations += step->is_violated;
    out->changes += step->decision.is_change && !loop->options->dry_run;
    if (has_reading && is_known(step->power_w)) {
        loop->power_sum[!was_default] += step->power_w;
        loop->power_count[!was_default]++;
    }
}

static enum err run_step(struct loop *loop, nanos to, const struct govern_watch *watch,
                         struct govern_result *out, struct error *why)
{
    struct govern_step step = {.latency_s = {UNKNOWN, UNKNOWN},
                               .observations = UNKNOWN,
                               .power_w = UNKNOWN,
                               .clock_mhz = UNKNOWN,
                               .utilization = UNKNOWN,
                               .tokens_per_s = UNKNOWN,
                               .setting = UNKNOWN,
                               .decided = UNKNOWN};
    struct governor_reading reading = {.latency = UNKNOWN, .work_per_s = UNKNOWN};
    bool was_default = loop->governor.at + 1 == loop->count;
    read_metrics(loop, &to, &step, &reading);
    read_device(loop, to, &step);
    step.t_s = reading.t_s = seconds(to - loop->start);
    reading.power_w = step.power_w;
    reading.utilization = step.utilization;
    reading.setting = running_setting(loop, &step);
    step.is_violated = reading.latency > 1 || step.power_w > loop->options->max_power_w;
    step.decision = governor_step(&loop->governor, &reading);
    if (!step.decision.is_default)
        step.decided = loop->settings[step.decision.index];
    enum err err = set_decided(loop, &step, why);
    if (err)
        return err;
    if (!loop->options->dry_run)
        step.setting = step.decided;
    count_step(loop, &step, was_default, out);
    loop->from = to;
    return watch->step(watch->context, &step, why);
}

static enum err run_loop(struct loop *loop, const struct govern_watch *watch,
                         struct govern_result *out, struct error *why)
{
    const struct govern_options *options = loop->options;
    enum err err = ERR_OK;
    loop->start = loop->from = clock_now();
    while (!err && !out->signal) {
        nanos to = loop->from + options->interval, now;
        nanos end = options->duration ? loop->start + options->duration : INT64_MAX;
        while (!out->signal && (now = clock_now()) < (to < end ? to : end))
            out->signal = proc_poll_signal((to < end ? to : end) - now);
        if (out->signal || (now >= end && end < to))
            break;
        err = run_step(loop, now, watch, out, why);
        if (!out->signal)
            out->signal = proc_poll_signal(0);
    }
    return err;
}

static void name_metrics(const struct loop *loop, struct govern_result *out)
{
    for (int m = 0; m < GOVERN_METRICS; m++)
        out->metric_name[m] = loop->names[m] ? loop->names[m]->name : NULL;
}

/* From the reading at the start. */
static void find_bounds(const struct loop *loop, struct govern_result *out)
{
    for (int m = 0; m < GOVERN_METRICS; m++) {
        double low = 0, high = INFINITY;
        if (loop->names[m])
            prometheus_bounds(&loop->older, loop->names[m]->name, slo_of(loop->options, m), &low,
                              &high);
        out->bounds_s[m][0] = low > 0 || is_known(high) ? low : UNKNOWN;
        out->bounds_s[m][1] = high;
    }
}

static void fill_result(struct loop *loop, struct govern_result *out)
{
    nanos now = clock_now();
    struct ledger ledger;
    name_metrics(loop, out); /* some series appear with the first request */
    out->seconds = seconds(now - loop->start);
    out->default_w = ratio(loop->power_sum[0], (double)loop->power_count[0]);
    out->governed_w = ratio(loop->power_sum[1], (double)loop->power_count[1]);
    sampler_settle(loop->session.sampler, now);
    ledger_take(loop->session.sampler, loop->start, now, NULL, &ledger);
    const struct ledger_device *device = find_device(loop, &ledger);
    if (device)
        out->energy = device->energy;
    ledger_release(&ledger);
}

static void release(struct loop *loop)
{
    if (loop->session.sampler)
        session_close(&loop->session);
    http_close(loop->http);
    prometheus_release(&loop->older);
    prometheus_release(&loop->newer);
    free(loop->settings);
    free(loop->slowdown);
    free(loop->energy);
}

static void init_governor(struct loop *loop)
{
    const struct govern_options *options = loop->options;
    bool is_clock = options->knob == KNOB_GRAPHICS_CLOCK;
    double highest = loop->settings[loop->count - 1];
    double lowest = is_clock ? highest / 2 : loop->settings[0];
    if (is_known(options->lowest))
        lowest = options->lowest;
    governor_init(&loop->governor, &(struct governor_options){
                                       .settings = loop->settings,
                                       .count = loop->count,
                                       .lowest = lowest,
                                       .has_slo = wants_latency(options),
                                       .max_power_w = options->max_power_w,
                                       .elasticity = is_clock ? 1 : 2,
                                       .slowdown = loop->slowdown,
                                       .energy = loop->energy,
                                       .is_advice = options->dry_run,
                                   });
}

enum err govern_execute(const struct govern_options *options, const struct govern_watch *watch,
                        struct govern_result *out, struct error *why)
{
    struct loop loop = {.options = options};
    struct error late = {0};
    *out = (struct govern_result){.default_w = UNKNOWN,
                                  .governed_w = UNKNOWN,
                                  .energy = energy_unknown("no reading of the GPU")};
    enum err err = begin_metrics(&loop, why);
    if (!err)
        err = open_gpu(&loop, out, why);
    if (!err)
        err = load_model(&loop, why);
    if (!err) {
        init_governor(&loop);
        name_metrics(&loop, out);
        find_bounds(&loop, out);
        watch->begin(watch->context, out);
        err = run_loop(&loop, watch, out, why);
    }
    /* Restores first: the cleanup below takes a while. */
    enum err ended = gpu_control_end(loop.control, &late);
    loop.control = NULL;
    if (ended && !err) {
        err = ended;
        *why = late;
    }
    if (loop.start)
        fill_result(&loop, out);
    out->was_set = out->changes > 0;
    release(&loop);
    return err;
}
