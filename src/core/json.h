/* A JSON writer (the measuring core parses none).  It handles commas, quoting and nesting; a number that is not
 * finite becomes null, because unknown is never 0.  It writes into a struct text owned by the caller. */
#ifndef IPW_CORE_JSON_H
#define IPW_CORE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

struct json {
    struct text *out;
    unsigned depth;
    bool has_items[32]; /* per depth: does the next item need a comma? */
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
void json_integer(struct json *json, const char *key, int64_t value);
/* A member that is left out where its value is unknown: not finite, NULL. */
void json_optional_number(struct json *json, const char *key, double value);
void json_optional_string(struct json *json, const char *key, const char *value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
void json_numbers(struct json *json, const char *key, const double *values, size_t count);

/* A value that is JSON already, copied unchanged: a number keeps its digits. */
void json_raw(struct json *json, const char *key, const char *value);
/* The same, of compact JSON: laid out like the rest. */
void json_raw_indented(struct json *json, const char *key, const char *value);

#endif
