/* A build without cJSON: there are no JSON values, and every call returns an error. */
#include "core/jv.h"

#include "core/units.h"

const char *const JV_MISSING = "built without cJSON: install libcjson-dev and build again";

/* A function that returns `result`. */
#define NONE(type, result, name, ...)                                                              \
    type name(__VA_ARGS__)                                                                         \
    {                                                                                              \
        return result;                                                                             \
    }

enum err jv_parse(const char *bytes, size_t length, struct jv **out, struct error *why)
{
    *out = NULL;
    return jv_available(why);
}

enum err jv_parse_repaired(const char *bytes, size_t length, struct jv **out, struct error *why)
{
    return jv_parse(bytes, length, out, why);
}

enum err jv_index_init(struct jv_index *index, const struct jv *object)
{
    *index = (struct jv_index){0};
    return ERR_UNSUPPORTED;
}

/* clang-format off */
NONE(void, , jv_free, struct jv *value)
NONE(struct jv *, NULL, jv_new_object, void)
NONE(struct jv *, NULL, jv_new_array, void)
NONE(struct jv *, NULL, jv_new_text, const char *text)
NONE(struct jv *, NULL, jv_new_bytes, const char *bytes, size_t length)
NONE(struct jv *, NULL, jv_new_number, double value)
NONE(struct jv *, NULL, jv_new_integer, int64_t value)
NONE(struct jv *, NULL, jv_new_unsigned, uint64_t value)
NONE(struct jv *, NULL, jv_new_bool, bool value)
NONE(struct jv *, NULL, jv_new_members, const struct jv_member *members, size_t count)
NONE(struct jv *, NULL, jv_copy, const struct jv *value)
NONE(enum err, ERR_UNSUPPORTED, jv_add, struct jv *to, const char *key, struct jv *value)
NONE(bool, true, jv_is_null, const struct jv *value)
NONE(bool, false, jv_is_object, const struct jv *value)
NONE(bool, false, jv_is_array, const struct jv *value)
NONE(bool, false, jv_is_bool, const struct jv *value)
NONE(const struct jv *, NULL, jv_get, const struct jv *object, const char *key)
NONE(const struct jv *, NULL, jv_path, const struct jv *value, const char *path)
NONE(const char *, NULL, jv_text, const struct jv *value)
NONE(double, UNKNOWN, jv_number, const struct jv *value)
NONE(bool, false, jv_integer, const struct jv *value, int64_t *out)
NONE(bool, fallback, jv_bool, const struct jv *value, bool fallback)
NONE(bool, false, jv_numbers, const struct jv *array, double *out, size_t count)
NONE(size_t, 0, jv_count, const struct jv *value)
NONE(const struct jv *, NULL, jv_first, const struct jv *value)
NONE(const struct jv *, NULL, jv_first_member, const struct jv *object)
NONE(const struct jv *, NULL, jv_next, const struct jv *child)
NONE(const char *, NULL, jv_key, const struct jv *child)
NONE(void, , jv_index_release, struct jv_index *index)
NONE(const struct jv *, NULL, jv_index_get, const struct jv_index *index, const char *key)
NONE(enum err, ERR_UNSUPPORTED, jv_index_put, struct jv_index *index, struct jv *object, const char *key,
     const struct jv *value)
NONE(enum err, ERR_UNSUPPORTED, jv_put_text, struct jv *object, const char *key, const char *value)
NONE(enum err, ERR_UNSUPPORTED, jv_put_number, struct jv *object, const char *key, double value)
NONE(enum err, ERR_UNSUPPORTED, jv_put_bool, struct jv *object, const char *key, bool value)
NONE(struct jv *, NULL, jv_put_object, struct jv *object, const char *key)
NONE(enum err, ERR_UNSUPPORTED, jv_merge, struct jv *into, const struct jv *from)
NONE(void, , jv_hide_secrets, struct jv *value)
NONE(enum err, ERR_UNSUPPORTED, jv_print, const struct jv *value, struct text *out)
NONE(enum err, ERR_UNSUPPORTED, jv_to_json, const struct jv *value, const char *key, struct json *json)
/* clang-format on */
