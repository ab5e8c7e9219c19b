/* Typed request parameters, and the error messages of servers. */
#include "wire/message.h"

#include <string.h>

#include "core/params.h"
#include "core/text.h"
#include "port/json_read.h"

static const char *skip_digits(const char *c)
{
    return c + strspn(c, "0123456789");
}

/* By the grammar of JSON, which is narrower than that of strtod. */
static bool is_json_number(const char *c)
{
    c += *c == '-';
    const char *integer = c;
    c = skip_digits(c);
    if (c == integer || (*integer == '0' && c > integer + 1))
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

static bool is_json_literal(const char *value)
{
    return !strcmp(value, "true") || !strcmp(value, "false") || !strcmp(value, "null");
}

void message_write_param(struct json *json, const char *key, const char *value)
{
    struct jv *tree = NULL;
    struct text printed = {0};
    if (is_json_number(value) || is_json_literal(value))
        json_raw(json, key, value);
    else if (*value && strchr("[{\"", *value) && !jv_parse(value, strlen(value), &tree, NULL) &&
             !jv_print(tree, &printed))
        json_raw(json, key, text_get(&printed));
    else
        json_string(json, key, value);
    jv_free(tree);
    text_release(&printed);
}

enum err message_check_reserved(const struct params *params, const char *const *reserved,
                                struct error *why)
{
    for (; *reserved; reserved++)
        if (params_get(params, *reserved))
            return err_set(why, ERR_USAGE, "'%s' is not a request parameter: ipw sets it",
                           *reserved);
    return ERR_OK;
}

void message_copy_value(struct json *json, const char *key, const struct jv *value)
{
    int64_t number;
    if (jv_text(value))
        json_string(json, key, jv_text(value));
    else if (jv_integer(value, &number))
        json_integer(json, key, number);
}

const char *message_error(const struct jv *object)
{
    static const char *const PATHS[] = {"error.message", "error.detail", "error", "message",
                                        "detail.0.msg",  "detail",       NULL};
    for (const char *const *path = PATHS; *path; path++) {
        const char *text = jv_text(jv_path(object, *path));
        if (text && *text)
            return text;
    }
    return jv_is_null(jv_get(object, "error")) ? NULL : MESSAGE_UNSPECIFIED_ERROR;
}
