#include "report/export/otlp.h"

#include <inttypes.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/export/export.h"
#include "rundir/summary.h"

void otlp_digits(struct json *json, const char *key, int64_t value)
{
    char digits[24];
    str_format(digits, sizeof digits, "%" PRId64, value);
    json_string(json, key, digits);
}

static void open_value(struct json *json, const char *key)
{
    json_object(json, NULL);
    json_string(json, "key", key);
    json_object(json, "value");
}

static void close_value(struct json *json)
{
    json_object_end(json);
    json_object_end(json);
}

void otlp_text(struct json *json, const char *key, const char *value)
{
    if (!value || !value[0])
        return;
    open_value(json, key);
    json_string(json, "stringValue", value);
    close_value(json);
}

void otlp_number(struct json *json, const char *key, double value)
{
    if (!is_known(value))
        return;
    open_value(json, key);
    json_number(json, "doubleValue", value);
    close_value(json);
}

void otlp_integer(struct json *json, const char *key, const struct jv *value)
{
    int64_t integer;
    if (!jv_integer(value, &integer))
        return;
    open_value(json, key);
    otlp_digits(json, "intValue", integer);
    close_value(json);
}

void otlp_truth(struct json *json, const char *key, const struct jv *value)
{
    if (!jv_is_bool(value))
        return;
    open_value(json, key);
    json_bool(json, "boolValue", jv_truth(value, false));
    close_value(json);
}

void otlp_open(struct json *json, const struct export_run *run, const char *of_resources,
               const char *of_scopes)
{
    const struct summary *summary = run->summary;
    json_object(json, NULL);
    json_array(json, of_resources);
    json_object(json, NULL);
    json_object(json, "resource");
    json_array(json, "attributes");
    otlp_text(json, "service.name", "ipw");
    otlp_text(json, "service.version", IPW_VERSION);
    otlp_text(json, "service.instance.id", run->name);
    otlp_text(json, "host.name", summary ? summary->host_name : NULL);
    otlp_text(json, "host.cpu.model.name", summary ? summary->cpu_brand : NULL);
    otlp_text(json, "os.description", summary ? summary->os_name : NULL);
    otlp_text(json, "ipw.hardware", summary ? summary->hardware_label : NULL);
    otlp_text(json, "ipw.dataset", summary ? summary->dataset_name : NULL);
    json_array_end(json);
    json_object_end(json);
    json_array(json, of_scopes);
    json_object(json, NULL);
    json_object(json, "scope");
    json_string(json, "name", "ipw");
    json_string(json, "version", IPW_VERSION);
    json_object_end(json);
}

void otlp_close(struct json *json)
{
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
}
