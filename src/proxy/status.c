/* The proxy's own metrics: counters for Prometheus, and the latest requests as JSON.  Model names come from clients, so
 * the number of series is limited; further models count as "other". */
#include "proxy/observer.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/xalloc.h"
#include "wire/prometheus.h"

enum { RECENT = 1024, MODELS_MAX = 32, UNSETTLED_MAX = 1 << 16 };

/* Upper bounds in s; the last bucket is +Inf. */
static const double BOUNDS[] = {0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2,
                                0.3,   0.5,    0.75,  1,    2,    5,    10,   20,    40,  80};
enum { BUCKETS = COUNT_OF(BOUNDS) };

struct histogram {
    uint64_t counts[BUCKETS + 1];
    double sum;
};

enum outcome { OUTCOME_COMPLETED, OUTCOME_FAILED, OUTCOME_CANCELED, OUTCOMES };
static const char *const OUTCOME_NAMES[OUTCOMES] = {"completed", "failed", "canceled"};

struct model_totals {
    char name[96];
    uint64_t requests[OUTCOMES];
    double prompt_tokens, output_tokens, joules;
};

struct recent {
    uint64_t id;
    bool is_used, is_ended;
    enum outcome outcome;
    int status;
    char path[96], name[96], query[64], turn[32], key[64], why[200];
    bool is_stream;
    double started_at, latency_s, ttft_s, itl_s;
    int64_t prompt_tokens, output_tokens;
    bool is_settled;
    struct energy energy;
};

struct status {
    struct model_totals models[MODELS_MAX]; /* the last one is "other" */
    size_t model_count;
    uint64_t in_flight, others, unknown, settled, unmeasured;
    struct histogram ttft, itl, duration;
    uint64_t newest; /* highest id */
    unsigned char model_of
        [UNSETTLED_MAX]; /* by id: the energy may be reported after a request has left the recent list */
    struct recent recent[RECENT];
};

struct status *status_new(void)
{
    return xcalloc(1, sizeof(struct status));
}

void status_free(struct status *status)
{
    free(status);
}

static size_t find_model(struct status *status, const char *name)
{
    for (size_t i = 0; i < status->model_count; i++)
        if (str_equal(status->models[i].name, name))
            return i;
    if (status->model_count < MODELS_MAX) {
        bool is_last = status->model_count == MODELS_MAX - 1;
        str_copy(status->models[status->model_count].name, sizeof status->models[0].name,
                 is_last ? "other" : name);
        return status->model_count++;
    }
    return MODELS_MAX - 1;
}

static void observe(struct histogram *histogram, double value)
{
    size_t i = 0;
    while (i < BUCKETS && value > BOUNDS[i])
        i++;
    histogram->counts[i]++;
    histogram->sum += value;
}

static struct recent *find(struct status *status, uint64_t id)
{
    struct recent *entry = &status->recent[id % RECENT];
    return entry->is_used && entry->id == id ? entry : NULL;
}

void status_count_other(struct status *status)
{
    status->others++;
}

void status_count_unknown(struct status *status)
{
    status->unknown++;
}

void status_begin(struct status *status, const struct proxy_request *request)
{
    struct recent *entry = &status->recent[request->id % RECENT];
    *entry = (struct recent){
        .id = request->id,
        .is_used = true,
        .is_stream = request->is_stream,
        .started_at = seconds(request->began_wall),
        .latency_s = UNKNOWN,
        .ttft_s = UNKNOWN,
        .itl_s = UNKNOWN,
        .prompt_tokens = -1,
        .output_tokens = -1,
    };
    chars_copy(entry->path, request->path);
    chars_copy(entry->name, request->model);
    chars_copy(entry->query, request->query);
    chars_copy(entry->turn, request->turn);
    chars_copy(entry->key, request->key);
    status->newest = request->id;
    status->in_flight++;
}

static void add_latencies(struct status *status, const struct completion *reply)
{
    const struct arrivals *arrivals = &reply->arrivals;
    observe(&status->duration, seconds(reply->done - reply->sent));
    if (reply->first_token)
        observe(&status->ttft, seconds(reply->first_token - reply->sent));
    for (size_t i = 1; i < arrivals->count; i++)
        observe(&status->itl, seconds(arrivals->times[i] - arrivals->times[i - 1]));
}

void status_end(struct status *status, const struct proxy_request *request)
{
    const struct completion *reply = &request->reply;
    size_t model = find_model(status, request->model[0] ? request->model : "unknown");
    struct model_totals *totals = &status->models[model];
    struct recent *entry = find(status, request->id);
    enum outcome outcome = request->err ? OUTCOME_FAILED : OUTCOME_COMPLETED;
    if (request->canceled)
        outcome = OUTCOME_CANCELED;
    status->in_flight--;
    status->model_of[request->id % UNSETTLED_MAX] = (unsigned char)model;
    totals->requests[outcome]++;
    totals->prompt_tokens += reply->prompt_tokens > 0 ? (double)reply->prompt_tokens : 0;
    totals->output_tokens += reply->output_tokens > 0 ? (double)reply->output_tokens : 0;
    if (outcome == OUTCOME_COMPLETED)
        add_latencies(status, reply);
    if (!entry)
        return;
    entry->is_ended = true;
    entry->outcome = outcome;
    entry->status = reply->status;
    entry->latency_s = seconds(reply->done - reply->sent);
    entry->prompt_tokens = reply->prompt_tokens;
    entry->output_tokens = reply->output_tokens;
    if (reply->first_token)
        entry->ttft_s = seconds(reply->first_token - reply->sent);
    if (reply->arrivals.count > 1)
        entry->itl_s =
            seconds(reply->last_token - reply->first_token) / (double)(reply->arrivals.count - 1);
    chars_copy(entry->why, request->why);
}

void status_settle(struct status *status, uint64_t id, const struct energy *energy, bool again)
{
    struct recent *entry = find(status, id);
    size_t model = status->model_of[id % UNSETTLED_MAX];
    status->settled += !again;
    if (!again && is_known(energy->joules))
        status->models[model].joules += energy->joules;
    else if (!again)
        status->unmeasured++;
    if (entry) {
        entry->energy = *energy;
        entry->is_settled = true;
    }
}

/* ---- Prometheus ---- */

static const struct metric_family REQUESTS = {"ipw_proxy_requests", METRIC_COUNTER, "",
                                              "Inference requests that have ended."};

static void add_count(struct exposition *to, enum metric_type type, const char *name,
                      const char *help, uint64_t value)
{
    const struct metric_family family = {name, type, "", help};
    exposition_family(to, &family);
    exposition_sample(to, "", "", (double)value);
}

static void add_per_model(const struct status *status, struct exposition *to, const char *name,
                          const char *help, size_t offset)
{
    const struct metric_family family = {name, METRIC_COUNTER, "", help};
    exposition_family(to, &family);
    for (size_t i = 0; i < status->model_count; i++) {
        struct text labels = {0};
        double value;
        memcpy(&value, (const char *)&status->models[i] + offset, sizeof value);
        exposition_label(&labels, "model", status->models[i].name);
        exposition_sample(to, text_get(&labels), "", value);
        text_release(&labels);
    }
}

static void add_requests(const struct status *status, struct exposition *to)
{
    exposition_family(to, &REQUESTS);
    for (size_t i = 0; i < status->model_count; i++)
        for (int k = 0; k < OUTCOMES; k++) {
            struct text labels = {0};
            exposition_label(&labels, "model", status->models[i].name);
            exposition_label(&labels, "outcome", OUTCOME_NAMES[k]);
            exposition_sample(to, text_get(&labels), "", (double)status->models[i].requests[k]);
            text_release(&labels);
        }
}

static void add_histogram(struct exposition *to, const char *name, const char *help,
                          const struct histogram *histogram)
{
    const struct metric_family family = {name, METRIC_HISTOGRAM, "seconds", help};
    exposition_family(to, &family);
    exposition_histogram(
        to, &(struct metric_histogram){BOUNDS, histogram->counts, BUCKETS, histogram->sum});
}

void status_metrics(const struct status *status, uint64_t unrecorded, struct text *out)
{
    struct exposition exposition = {.out = out}, *to = &exposition;
    add_requests(status, to);
    add_count(to, METRIC_COUNTER, "ipw_proxy_other_requests",
              "Requests other than inference, such as lists of models.", status->others);
    add_count(to, METRIC_COUNTER, "ipw_proxy_unrecorded_inference_requests",
              "Requests that count as inference, to endpoints that are not recorded.",
              status->unknown);
    add_count(to, METRIC_GAUGE, "ipw_proxy_requests_in_flight", "Inference requests in flight.",
              status->in_flight);
    add_per_model(status, to, "ipw_proxy_prompt_tokens",
                  "Prompt tokens, as the upstream server counts them.",
                  offsetof(struct model_totals, prompt_tokens));
    add_per_model(status, to, "ipw_proxy_generation_tokens",
                  "Output tokens, as the upstream server counts them.",
                  offsetof(struct model_totals, output_tokens));
    add_per_model(status, to, "ipw_proxy_request_energy_joules",
                  "Energy attributed to requests, of those whose energy was measured.",
                  offsetof(struct model_totals, joules));
    add_count(
        to, METRIC_COUNTER, "ipw_proxy_settled_requests",
        "Requests whose energy attribution is complete, including those without a known energy.",
        status->settled);
    add_count(to, METRIC_COUNTER, "ipw_proxy_unmeasured_requests",
              "Requests whose energy stays unknown.", status->unmeasured);
    add_count(to, METRIC_COUNTER, "ipw_proxy_unrecorded_requests",
              "Requests that have no record because the disk was too slow.", unrecorded);
    add_histogram(to, "ipw_proxy_time_to_first_token_seconds",
                  "Time to first token of completed requests.", &status->ttft);
    add_histogram(to, "ipw_proxy_inter_token_latency_seconds",
                  "Time between chunks of streamed answers.", &status->itl);
    add_histogram(to, "ipw_proxy_request_duration_seconds", "Duration of completed requests.",
                  &status->duration);
    exposition_end(to);
}

/* ---- JSON ---- */

static void put_count(struct json *json, const char *key, int64_t count)
{
    if (count >= 0)
        json_integer(json, key, count);
    else
        json_null(json, key);
}

static void add_request(struct json *json, const struct recent *entry)
{
    json_object(json, NULL);
    json_integer(json, "id", (int64_t)entry->id);
    json_number(json, "started_at", entry->started_at);
    json_string(json, "path", entry->path);
    json_string(json, "model", str_or_null(entry->name));
    json_string(json, "query", str_or_null(entry->query));
    json_string(json, "turn", str_or_null(entry->turn));
    json_string(json, "key", str_or_null(entry->key));
    json_bool(json, "stream", entry->is_stream);
    json_string(json, "state", entry->is_ended ? OUTCOME_NAMES[entry->outcome] : "in_flight");
    put_count(json, "http_status", entry->status ? entry->status : -1);
    json_string(json, "error", str_or_null(entry->why));
    json_number(json, "latency_s", entry->latency_s);
    json_number(json, "time_to_first_token_s", entry->ttft_s);
    json_number(json, "inter_token_latency_s", entry->itl_s);
    put_count(json, "input_tokens", entry->prompt_tokens);
    put_count(json, "output_tokens", entry->output_tokens);
    if (entry->is_settled)
        energy_to_json(json, "energy", &entry->energy);
    else
        json_null(json, "energy");
    json_object_end(json);
}

void status_requests(const struct status *status, size_t max, struct text *out)
{
    struct json json;
    json_init(&json, out, false);
    json_object(&json, NULL);
    json_integer(&json, "in_flight", (int64_t)status->in_flight);
    json_array(&json, "requests");
    for (size_t i = 0; i < RECENT && i < max && i <= status->newest; i++) {
        const struct recent *entry = &status->recent[(status->newest - i) % RECENT];
        if (entry->is_used && entry->id == status->newest - i)
            add_request(&json, entry);
    }
    json_array_end(&json);
    json_object_end(&json);
    text_add(out, "\n");
}
