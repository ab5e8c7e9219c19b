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

/* ---- requests of others ---- */

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && slice_is_space(*at))
        at++;
    return at;
}

/* After the closing quote of the string that begins at `at`; NULL without one. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at < end ? at + 1 : NULL;
}

/* After the value that begins at `at`; NULL when it does not end. */
static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
            if (!at)
                return NULL;
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (depth && (*at == '}' || *at == ']')) {
            depth--;
            at++;
        } else if (depth || !strchr(",}]", *at)) {
            at++;
            continue;
        }
        if (depth == 0)
            return at;
    }
    return depth ? NULL : at;
}

struct slice message_member(const char *bytes, size_t length, const char *key)
{
    const char *end = bytes + length, *at = skip_space(bytes, end);
    if (at == end || *at != '{')
        return (struct slice){"", 0};
    for (;;) {
        const char *name = skip_space(at + 1, end);
        const char *after = name < end && *name == '"' ? skip_string(name, end) : NULL;
        const char *colon = after ? skip_space(after, end) : end;
        if (colon == end || *colon != ':')
            return (struct slice){"", 0};
        const char *value = skip_space(colon + 1, end), *last = skip_value(value, end);
        if (!last)
            return (struct slice){"", 0};
        if (slice_is(slice_between(name + 1, after - 1), key))
            return slice_trim(slice_between(value, last));
        at = skip_space(last, end);
        if (at == end || *at != ',')
            return (struct slice){"", 0};
    }
}

static void add_content(const struct jv *content, struct text *out)
{
    text_add(out, jv_text(content) ? jv_text(content) : "");
    for (const struct jv *part = jv_is_array(content) ? jv_first(content) : NULL; part;
         part = jv_next(part)) {
        const char *text = jv_text(part) ? jv_text(part) : jv_text(jv_get(part, "text"));
        text_add(out, text ? text : "");
    }
}

static const struct jv *last_of_user(const struct jv *messages)
{
    const struct jv *last = NULL;
    for (const struct jv *m = jv_is_array(messages) ? jv_first(messages) : NULL; m;
         m = jv_next(m)) {
        const char *role = jv_text(jv_get(m, "role"));
        if (role && strcmp(role, "user") == 0)
            last = jv_get(m, "content");
    }
    return last;
}

void message_question(const char *bytes, size_t length, struct text *out)
{
    struct jv *root = NULL;
    text_clear(out);
    if (jv_parse(bytes, length, &root, NULL))
        return;
    const struct jv *input = jv_get(root, "input");
    const struct jv *content = last_of_user(jv_get(root, "messages"));
    if (!content)
        content = last_of_user(input);
    if (!content)
        content = jv_get(root, "prompt");
    add_content(content ? content : input, out);
    jv_free(root);
}
