#include "clients/wire/request_json.h"

#include <string.h>

#include "core/text.h"
#include "port/json_read.h"

static const char *skip_digits(const char *c)
{
    return c + strspn(c, "0123456789");
}

/* By JSON's own grammar, which is narrower than strtod's. */
static bool is_json_number(const char *c)
{
    c += *c == '-';
    const char *whole = c;
    c = skip_digits(c);
    if (c == whole || (*whole == '0' && c > whole + 1))
        return false;
    if (*c == '.') {
        const char *fraction = ++c;
        c = skip_digits(c);
        if (c == fraction)
            return false;
    }
    if (*c == 'e' || *c == 'E') {
        c++;
        c += *c == '+' || *c == '-';
        const char *exponent = c;
        c = skip_digits(c);
        if (c == exponent)
            return false;
    }
    return *c == '\0';
}

static bool is_json_word(const char *value)
{
    return !strcmp(value, "true") || !strcmp(value, "false") || !strcmp(value, "null");
}

void request_json_value(struct json *json, const char *key, const char *value)
{
    struct jv *tree = NULL;
    struct text printed = {0};
    if (is_json_number(value) || is_json_word(value))
        json_raw(json, key, value);
    else if (*value && strchr("[{\"", *value) && !jv_parse(value, strlen(value), &tree, NULL) &&
             !jv_print(tree, &printed))
        json_raw(json, key, text_get(&printed));
    else
        json_string(json, key, value);
    jv_free(tree);
    text_release(&printed);
}

enum err request_json_check(const struct params *params, const char *const *reserved,
                            struct error *why)
{
    for (; *reserved; reserved++)
        if (params_get(params, *reserved))
            return err_set(why, ERR_USAGE, "the request's '%s' is not a parameter: ipw sets it",
                           *reserved);
    return ERR_OK;
}

static void write_message(struct json *json, const char *role, const char *content)
{
    json_object(json, NULL);
    json_string(json, "role", role);
    json_string(json, "content", content);
    json_object_end(json);
}

void request_json_messages(struct json *json, const struct client_request *request)
{
    json_array(json, "messages");
    if (request->system)
        write_message(json, "system", request->system);
    write_message(json, "user", request->prompt);
    json_array_end(json);
}

void request_json_copy(struct json *json, const char *key, const struct jv *value)
{
    int64_t number;
    if (jv_text(value))
        json_string(json, key, jv_text(value));
    else if (jv_integer(value, &number))
        json_integer(json, key, number);
}
