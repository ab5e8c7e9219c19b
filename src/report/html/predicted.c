#include "report/html/predicted.h"

#include "core/json.h"
#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"

enum { FILE_MOST = 64 << 20, PATH_LONGEST = 1200 };

static void put_number(struct json *json, const char *key, const struct jv *estimate,
                       const char *path)
{
    json_number(json, key, jv_number(jv_path(estimate, path)));
}

static void put_estimate(struct json *json, const struct jv *estimate)
{
    json_string(json, "hardware", jv_text(jv_get(estimate, "hardware_name")));
    json_string(json, "precision", jv_text(jv_get(estimate, "precision")));
    json_string(json, "confidence", jv_text(jv_get(estimate, "confidence")));
    put_number(json, "batch", estimate, "batch");
    put_number(json, "prompt_tokens", estimate, "setting.prompt_tokens");
    put_number(json, "output_tokens", estimate, "setting.output_tokens");
    put_number(json, "joules_per_query", estimate, "request.energy_j");
    put_number(json, "joules_per_query_plus_minus", estimate, "request.plus_minus");
    put_number(json, "joules_per_output_token", estimate, "each.energy_j");
    put_number(json, "joules_per_output_token_plus_minus", estimate, "each.plus_minus");
    put_number(json, "busy_watts", estimate, "power_w.average");
    put_number(json, "busy_watts_plus_minus", estimate, "power_w.plus_minus");
    put_number(json, "latency_s", estimate, "latency_s");
    put_number(json, "latency_s_plus_minus", estimate, "latency_plus_minus");
    put_number(json, "time_to_first_token_s", estimate, "request.first_token_s");
    put_number(json, "output_tokens_per_s", estimate, "request.tokens_per_s");
}

void predicted_put(struct json *json, const char *directory)
{
    char path[PATH_LONGEST];
    struct text bytes = {0};
    struct error why = {0};
    struct jv *estimate = NULL;
    str_format(path, sizeof path, "%s/estimate.json", directory);
    enum err err = file_read(path, FILE_MOST, &bytes, &why);
    if (err == ERR_NOT_FOUND) {
        json_null(json, "predicted");
        text_release(&bytes);
        return;
    }
    if (!err)
        err = jv_parse(text_get(&bytes), bytes.length, &estimate, &why);
    json_object(json, "predicted");
    if (err)
        json_string(json, "note", why.text);
    else if (!jv_is_object(jv_get(estimate, "request")))
        json_string(json, "note", "estimate.json is no estimate of a request");
    else
        put_estimate(json, estimate);
    json_object_end(json);
    jv_free(estimate);
    text_release(&bytes);
}
