/* A JSON writer (the measuring core parses none).  It handles commas, quoting and nesting; a number that is not
 * finite becomes null, because unknown is never 0.  It writes into a struct text owned by the caller, or calls a struct
 * json_target, so that a function that writes a struct as JSON also fills a result with it (result_writer). */
#ifndef IPW_CORE_JSON_H
#define IPW_CORE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

/* Takes what is written, in order; a key is NULL inside an array. */
struct json_target {
    void (*open)(void *to, const char *key, bool is_array);
    void (*close)(void *to);
    void (*string)(void *to, const char *key, const char *value); /* NULL: null */
    void (*number)(void *to, const char *key, double value);
    void (*integer)(void *to, const char *key, int64_t value);
    void (*flag)(void *to, const char *key, bool value);
    void (*null)(void *to, const char *key);
    void (*raw)(void *to, const char *key, const char *value);
};

struct json {
    struct text *out;
    const struct json_target *target; /* NULL: `out` */
    void *to;
    unsigned depth;
    bool has_items[32]; /* per depth: the next item needs a comma */
    bool pretty;        /* newlines, and two spaces per level */
};

void json_init(struct json *json, struct text *out, bool pretty);

/* key is NULL inside an array and at the top. */
void json_object(struct json *json, const char *key);
void json_object_end(struct json *json);
void json_array(struct json *json, const char *key);
void json_array_end(struct json *json);

void json_string(struct json *json, const char *key, const char *value); /* NULL gives null */
/* A string that need not be NUL-terminated and may contain NULs. */
void json_string_bytes(struct json *json, const char *key, const char *bytes, size_t length);
void json_number(struct json *json, const char *key, double value); /* not finite: null */
/* The same in a unit of which 1 is `factor`: with the fewest digits that give the value when multiplied by it. */
void json_number_in(struct json *json, const char *key, double value, double factor);
void json_integer(struct json *json, const char *key, int64_t value);
/* A member that is left out where its value is unknown: not finite, NULL. */
void json_optional_number(struct json *json, const char *key, double value);
void json_optional_string(struct json *json, const char *key, const char *value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
void json_numbers(struct json *json, const char *key, const double *values, size_t count);

/* A value that is JSON already, copied unchanged: a number keeps its digits. */
void json_raw(struct json *json, const char *key, const char *value);
/* The same for compact JSON, which is indented like the surrounding document. */
void json_raw_indented(struct json *json, const char *key, const char *value);

/* ---- finding the end of JSON without parsing it ---- */

/* Position after the closing quote of the string at `at`; NULL if it is not closed. */
const char *json_skip_string(const char *at, const char *end);

/* Position after the value at `at`, whatever follows it; NULL if it is incomplete. */
const char *json_skip_value(const char *at, const char *end);

/* The UTF-16 code unit of the escape \uXXXX at `at`; -1 for anything else. */
long json_escaped_unit(const char *at, const char *end);

static inline bool json_is_high_surrogate(long unit)
{
    return unit >= 0xD800 && unit < 0xDC00;
}

static inline bool json_is_low_surrogate(long unit)
{
    return unit >= 0xDC00 && unit < 0xE000;
}

#endif
