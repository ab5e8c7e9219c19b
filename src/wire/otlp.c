#include "wire/otlp.h"

#include <inttypes.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"

void otlp_digits(struct json *json, const char *key, int64_t value)
{
    char digits[24];
    str_format(digits, sizeof digits, "%" PRId64, value);
    json_string(json, key, digits);
}

void otlp_open_value(struct json *json, const char *key)
{
    json_object(json, NULL);
    json_string(json, "key", key);
    json_object(json, "value");
}

void otlp_close_value(struct json *json)
{
    json_object_end(json);
    json_object_end(json);
}

void otlp_text(struct json *json, const char *key, const char *value)
{
    if (!value || !value[0])
        return;
    otlp_open_value(json, key);
    json_string(json, "stringValue", value);
    otlp_close_value(json);
}

void otlp_number(struct json *json, const char *key, double value)
{
    if (!is_known(value))
        return;
    otlp_open_value(json, key);
    json_number(json, "doubleValue", value);
    otlp_close_value(json);
}

void otlp_integer(struct json *json, const char *key, int64_t value)
{
    otlp_open_value(json, key);
    otlp_digits(json, "intValue", value);
    otlp_close_value(json);
}

void otlp_bool(struct json *json, const char *key, bool value)
{
    otlp_open_value(json, key);
    json_bool(json, "boolValue", value);
    otlp_close_value(json);
}

void otlp_open(struct json *json, const char *of_resources, const char *instance, const char *host)
{
    json_object(json, NULL);
    json_array(json, of_resources);
    json_object(json, NULL);
    json_object(json, "resource");
    json_array(json, "attributes");
    otlp_text(json, "service.name", "ipw");
    otlp_text(json, "service.version", IPW_VERSION);
    otlp_text(json, "service.instance.id", instance);
    otlp_text(json, "host.name", host);
}

void otlp_scope(struct json *json, const char *of_scopes)
{
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
