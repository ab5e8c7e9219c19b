/* Reading JSON, by cJSON.  The only file that knows that library; a build without it says so in
 * jv_available, and everything that needs to read JSON is then unavailable with that reason.
 *
 * jv_parse gives a tree that jv_free takes back; every other pointer points into it.  Every reader
 * takes NULL and answers as for a missing value, so that paths can be followed without checks. */
#ifndef IPW_PORT_JSON_READ_H
#define IPW_PORT_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct jv;
struct text;

/* ERR_UNSUPPORTED, with what brings it, when this build has no JSON reader. */
enum err jv_available(struct error *why) MUST_USE;

/* Exactly one JSON value with white space around it; anything else is ERR_BAD_VALUE, and *why says
 * where.  A NUL that a string holds in escaped form reads as U+FFFD. */
enum err jv_parse(const char *bytes, size_t length, struct jv **out, struct error *why) MUST_USE;
void jv_free(struct jv *value);

bool jv_is_null(const struct jv *value); /* null, or missing */
bool jv_is_object(const struct jv *value);
bool jv_is_array(const struct jv *value);

/* Case-sensitive; the first of several.  NULL when missing. */
const struct jv *jv_get(const struct jv *object, const char *key);

/* Keys and indices with dots between: "choices.0.delta.content". */
const struct jv *jv_path(const struct jv *value, const char *path);

const char *jv_text(const struct jv *value);           /* NULL unless a string */
double jv_number(const struct jv *value);              /* UNKNOWN unless a number */
bool jv_integer(const struct jv *value, int64_t *out); /* false unless a whole number */
bool jv_truth(const struct jv *value, bool otherwise); /* otherwise unless true or false */
bool jv_is_bool(const struct jv *value);

/* Children of an array or object, in order. */
size_t jv_count(const struct jv *value);
const struct jv *jv_first(const struct jv *value);
const struct jv *jv_next(const struct jv *child);
const char *jv_key(const struct jv *child); /* NULL in an array */

/* A copy of the value under that key, in place of what was there. */
enum err jv_put(struct jv *object, const char *key, const struct jv *value) MUST_USE;

/* Copies `from` into the object `into`: objects are merged key by key, all else is replaced. */
enum err jv_merge(struct jv *into, const struct jv *from) MUST_USE;

/* Compact JSON, added to *out. */
enum err jv_print(const struct jv *value, struct text *out) MUST_USE;

#endif
