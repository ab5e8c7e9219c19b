/* JSON values as trees, and a parser of them, based on cJSON, which only this module uses.
 *
 * jv_parse and jv_new_* return a tree that jv_free frees; every other pointer points into it.  Every accessor accepts
 * NULL as a missing value, so that paths can be followed without checks.  A number is a double; an integer that a
 * double cannot represent keeps its digits as well.
 *
 * What builds or prints a tree fails only in libipw, for lack of memory (core/memory.h): elsewhere its result need not
 * be checked. */
#ifndef IPW_CORE_JV_H
#define IPW_CORE_JV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct jv;
struct json;
struct text;

/* Exactly one JSON value with white space around it; anything else is ERR_BAD_VALUE, and *why says where.  An escaped
 * NUL and half of an escaped surrogate pair become U+FFFD. */
enum err jv_parse(const char *bytes, size_t length, struct jv **out, struct error *why) MUST_USE;

/* The same for bytes that may not be valid text: invalid UTF-8 and NULs become U+FFFD. */
enum err jv_parse_repaired(const char *bytes, size_t length, struct jv **out, struct error *why)
    MUST_USE;

void jv_free(struct jv *value);

/* Allocates trees with this function from now on, where lack of memory ends the program.  Call before any thread
 * starts. */
void jv_allocate_with(void *(*allocate)(size_t size));

/* New values; NULL: out of memory.  In strings and keys, invalid UTF-8 and NULs become U+FFFD.  A string that is NULL,
 * and a number that is not finite, is null. */
struct jv *jv_new_object(void);
struct jv *jv_new_array(void);
struct jv *jv_new_text(const char *text);
struct jv *jv_new_bytes(const char *bytes, size_t length);
struct jv *jv_new_number(double value);
struct jv *jv_new_integer(int64_t value);
struct jv *jv_new_unsigned(uint64_t value);
struct jv *jv_new_bool(bool value);
struct jv *jv_copy(const struct jv *value);

/* Appends to an array, whose key is NULL, or to an object, which must not have the key yet.  Takes ownership of the
 * value, also when it fails: for a value of NULL, or in libipw for lack of memory (core/memory.h). */
enum err jv_add(struct jv *to, const char *key, struct jv *value);

/* An object of these members; those without a key are left out.  Takes ownership of all values. */
struct jv_member {
    const char *key;
    struct jv *value;
};
struct jv *jv_new_members(const struct jv_member *members, size_t count);

/* The value that was built; after an error, NULL, and it is freed. */
static inline struct jv *jv_finish(struct jv *value, enum err err)
{
    if (!err)
        return value;
    jv_free(value);
    return NULL;
}

bool jv_is_null(const struct jv *value); /* null, or missing */
bool jv_is_object(const struct jv *value);
bool jv_is_array(const struct jv *value);

/* Case-sensitive; the first of several.  NULL when missing. */
const struct jv *jv_get(const struct jv *object, const char *key);

/* Keys and indices separated by dots: "choices.0.delta.content". */
const struct jv *jv_path(const struct jv *value, const char *path);

const char *jv_text(const struct jv *value); /* NULL unless a string */
double jv_number(const struct jv *value);    /* UNKNOWN unless a finite number: not 1e999 */
/* The same for a member. */
static inline const char *jv_get_text(const struct jv *object, const char *key)
{
    return jv_text(jv_get(object, key));
}
static inline double jv_get_number(const struct jv *object, const char *key)
{
    return jv_number(jv_get(object, key));
}
bool jv_integer(const struct jv *value, int64_t *out); /* false unless an integer that fits */
bool jv_bool(const struct jv *value, bool fallback);   /* fallback unless true or false */
bool jv_is_bool(const struct jv *value);

/* Exactly `count` numbers or nulls, which are UNKNOWN; false for anything else. */
bool jv_numbers(const struct jv *array, double *out, size_t count);

/* Children of an array or object, in order. */
size_t jv_count(const struct jv *value);
const struct jv *jv_first(const struct jv *value);
const struct jv *jv_first_member(const struct jv *object); /* NULL unless an object: has a key */
const struct jv *jv_next(const struct jv *child);
/* From jv_first or jv_first_member on. */
#define JV_EACH(child, first) for (const struct jv *child = (first); child; child = jv_next(child))
const char *jv_key(const struct jv *child); /* NULL in an array */

/* An index of an object's members: jv_get is a linear search, which is too slow for each of 50,000 columns.  Only
 * jv_index_put may change an object while it is indexed.  Release with jv_index_release; an index whose init
 * failed, or of a value that is not an object, is empty.  Init and put fail only in libipw, for lack of memory. */
struct jv_index {
    const struct jv **slots; /* a hash table, at most half full */
    size_t capacity, count;
};

enum err jv_index_init(struct jv_index *index, const struct jv *object);
void jv_index_release(struct jv_index *index);
const struct jv *jv_index_get(const struct jv_index *index, const char *key); /* as jv_get */
/* Sets the key to a copy of the value. */
enum err jv_index_put(struct jv_index *index, struct jv *object, const char *key,
                      const struct jv *value);

/* Sets the key; NULL and UNKNOWN are null. */
enum err jv_put_text(struct jv *object, const char *key, const char *value);
enum err jv_put_number(struct jv *object, const char *key, double value);
enum err jv_put_bool(struct jv *object, const char *key, bool value);
/* The object of that key, which replaces any other value; NULL: out of memory. */
struct jv *jv_put_object(struct jv *object, const char *key);

/* Copies `from` into the object `into`: objects are merged key by key, anything else is replaced. */
enum err jv_merge(struct jv *into, const struct jv *from);

/* Hides secrets in every string (core/secret.h); keys stay. */
void jv_hide_secrets(struct jv *value);

/* Appends compact JSON.  This and jv_to_json fail only in libipw, for lack of memory (core/memory.h). */
enum err jv_print(const struct jv *value, struct text *out);

/* Writes the value as a member of the current object; null for NULL. */
enum err jv_to_json(const struct jv *value, const char *key, struct json *json);

#endif
