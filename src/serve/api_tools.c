/* API functions that are not about runs: server status and files, catalogs, estimates. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/embed.h"
#include "core/energy.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/result.h"
#include "core/slice.h"
#include "core/text.h"
#include "core/units.h"
#include "estimate/estimate_result.h"
#include "report/html/html.h"
#include "report/print/print.h"
#include "rundir/summary.h"
#include "serve/api.h"

/* ---- embedded files ---- */

/* The files of web/serve, and those of web/report that the pages share, embedded at build time. */

#define WEB_FILE(symbol, name) EMBED(symbol, IPW_SERVE_WEB "/" name);
#include "serve/web_files.def"
#undef WEB_FILE

#define SHARED "report/" /* prefix of files of the report */

static const struct embedded {
    const char *name, *begin, *end;
} FILES[] = {
#define WEB_FILE(symbol, name) {name, symbol, symbol##_end},
#include "serve/web_files.def"
#undef WEB_FILE
};

static const char *type_of(const char *name)
{
    static const char *const TYPES[][2] = {{".html", "text/html; charset=utf-8"},
                                           {".js", "text/javascript; charset=utf-8"},
                                           {".css", "text/css; charset=utf-8"},
                                           {".svg", "image/svg+xml"},
                                           {".json", "application/json"}};
    const char *dot = strrchr(name, '.');
    const char *const *found = STR_FIND(dot, TYPES);
    if (found)
        return found[1];
    return dot ? "application/octet-stream" : "text/plain; charset=utf-8"; /* licenses */
}

bool web_file_find(const char *name, struct web_file *out)
{
    *out = (struct web_file){.type = type_of(name)};
    const struct embedded *found = STR_FIND(name, FILES);
    if (found) {
        out->bytes = found->begin;
        out->length = (size_t)((uintptr_t)found->end - (uintptr_t)found->begin);
    }
    if (!out->bytes && str_starts(name, SHARED))
        (void)html_file(name + strlen(SHARED), &out->bytes, &out->length);
    if (!out->bytes)
        return false;
    chars_format(out->tag, "\"%016llx\"",
                 (unsigned long long)hash_mix(hash_bytes(HASH_START, out->bytes, out->length)));
    return true;
}

/* ---- the server itself ---- */

enum err api_status(const struct api *api, const struct request *request,
                    struct api_response *answer, struct error *why)
{
    struct json json;
    char host[128] = "", when[CLOCK_TEXT_MAX];
    (void)request, (void)why;
    response_object(answer, &json);
    json_string(&json, "version", IPW_VERSION);
    json_string(&json, "host", gethostname(host, sizeof host - 1) ? NULL : host);
    json_string(&json, "started_at", clock_text(when, api->started_at));
    json_object(&json, "runs");
    json_string(&json, "source", api->options->runs ? "directory" : "database");
    if (runs_is_loaded(api->runs))
        json_integer(&json, "count", (int64_t)runs_count(api->runs));
    else
        json_null(&json, "count");
    json_string(&json, "path_shown", runs_display(api->runs));
    json_object_end(&json);
    json_bool(&json, "live", live_has_sensors(api->live));
    json_bool(&json, "allow_runs", api->options->allow_runs);
    summary_labels_to_json(&json);
    json_object_end(&json);
    return ERR_OK;
}

/* The next member of the object of which `at` is inside; NULL: there is none. */
static const char *next_member(const char *at, const char *end, struct slice *key,
                               struct slice *value)
{
    static const char BETWEEN[] = " \n,:";
    at += strspn(at, BETWEEN);
    const char *after = *at == '"' ? json_skip_string(at, end) : NULL;
    if (!after)
        return NULL;
    *key = slice_between(at, after);
    at = after + strspn(after, BETWEEN);
    after = json_skip_value(at, end);
    *value = slice_between(at, after ? after : at);
    return after;
}

enum level { DOCUMENT, PATHS, METHODS };

/* Copies the description without the requests that change state. */
static void add_read_only(struct text *out, struct slice object, enum level level)
{
    struct slice key, value;
    const char *at = object.start + 1, *separator = "";
    text_add(out, "{");
    while ((at = next_member(at, slice_end(object), &key, &value))) {
        if (level == METHODS && !slice_is(key, "\"get\""))
            continue;
        text_addf(out, "%s%.*s:", separator, (int)key.length, key.start);
        if (level == PATHS || (level == DOCUMENT && slice_is(key, "\"paths\"")))
            add_read_only(out, value, level + 1);
        else
            text_add_bytes(out, value.start, value.length);
        separator = ",";
    }
    text_add(out, "}");
}

enum err api_openapi(const struct api *api, const struct request *request,
                     struct api_response *answer, struct error *why)
{
    struct web_file file;
    (void)request;
    if (!web_file_find("openapi.json", &file))
        return err_set(why, ERR_NOT_FOUND, "this build has no openapi.json");
    answer->type = file.type;
    if (api->options->allow_runs)
        text_add_bytes(&answer->body, file.bytes, file.length);
    else
        add_read_only(&answer->body, (struct slice){file.bytes, file.length}, DOCUMENT);
    return ERR_OK;
}

/* ---- the catalogs ---- */

enum err api_models(const struct api *api, const struct request *request,
                    struct api_response *answer, struct error *why)
{
    struct result result = {0};
    (void)api, (void)request, (void)why;
    result_begin(&result, "models");
    catalog_models_to_result(&result);
    result_end(&result);
    response_result(answer, &result);
    return ERR_OK;
}

enum err api_hardware(const struct api *api, const struct request *request,
                      struct api_response *answer, struct error *why)
{
    struct result result = {0};
    (void)api, (void)request, (void)why;
    result_begin(&result, "hardware");
    catalog_hardware_to_result(&result);
    result_end(&result);
    response_result(answer, &result);
    return ERR_OK;
}

/* ---- an estimate ---- */

/* Numbers are passed on as text: checks that each is one. */
static enum err check_numbers(const struct request *request, unsigned *output_tokens,
                              struct error *why)
{
    unsigned ignored = 1;
    enum err err = request_count(request, "batch", 1, 4096, &ignored, why);
    if (!err)
        err = request_count(request, "input_tokens", 1, 1000000, &ignored, why);
    if (!err)
        err = request_count(request, "output_tokens", 1, 1000000, output_tokens, why);
    return err;
}

/* Same as --price-per-kwh and related options of the command, with the same limits. */
static enum err read_tariff(const struct request *request, struct tariff *out, struct error *why)
{
    const struct {
        const char *name;
        double *value, max;
    } PRICES[] = {{"price_per_kwh", &out->price_per_kwh, 1e6},
                  {"gco2_per_kwh", &out->gco2_per_kwh, 1e4},
                  {"device_price_per_hour", &out->device_price_per_hour, 1e6}};
    for (size_t i = 0; i < COUNT_OF(PRICES); i++) {
        const char *given = request_param(request, PRICES[i].name);
        double value = 0;
        if (given && (parse_double(given, &value) || value < 0 || value > PRICES[i].max))
            return err_set(why, ERR_USAGE, "%s: a number from 0 to %.0f", PRICES[i].name,
                           PRICES[i].max);
        if (given)
            *PRICES[i].value = value;
    }
    return ERR_OK;
}

enum err api_estimate(const struct api *api, const struct request *request,
                      struct api_response *answer, struct error *why)
{
    struct tariff tariff = TARIFF_NONE;
    struct catalog_question question = {.model = request_param(request, "model"),
                                        .hardware = request_param(request, "hardware"),
                                        .precision = request_param(request, "precision"),
                                        .batch = request_param(request, "batch"),
                                        .prompt_tokens = request_param(request, "input_tokens"),
                                        .tariff = &tariff,
                                        .names = "/api/v1/models"};
    struct result result = {0};
    (void)api;
    if (!question.model || !question.hardware)
        return err_set(why, ERR_USAGE, "missing parameter: model and hardware are needed");
    if (strchr(question.hardware, ',') || str_equal(question.hardware, "all") ||
        (question.precision && strchr(question.precision, ',')))
        return err_set(why, ERR_USAGE, "expected one hardware and one precision");
    enum err err = check_numbers(request, &question.output_tokens, why);
    if (!err)
        err = read_tariff(request, &tariff, why);
    if (!err)
        err = catalog_estimate(&question, &result, why);
    answer->type = "application/json";
    if (!err)
        result_print(&result, PRINT_JSON, NULL, false, &answer->body);
    result_release(&result);
    return err;
}
