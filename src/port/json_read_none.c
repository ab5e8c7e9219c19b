/* A build without cJSON: JSON cannot be read, and every call returns an error. */
#include "port/json_read.h"

#include "core/text.h"
#include "core/units.h"

const char *const JV_MISSING = "built without cJSON: install libcjson-dev and build again";

enum err jv_parse(const char *bytes, size_t length, struct jv **out, struct error *why)
{
    *out = NULL;
    return jv_available(why);
}

enum err jv_read(const char *path, size_t max, struct jv **out, struct error *why)
{
    *out = NULL;
    return jv_available(why);
}

enum err jv_object_new(struct jv **out)
{
    *out = NULL;
    return ERR_UNSUPPORTED;
}

void jv_free(struct jv *value)
{
}

bool jv_is_null(const struct jv *value)
{
    return true;
}

bool jv_is_object(const struct jv *value)
{
    return false;
}

bool jv_is_array(const struct jv *value)
{
    return false;
}

bool jv_is_bool(const struct jv *value)
{
    return false;
}

const struct jv *jv_get(const struct jv *object, const char *key)
{
    return NULL;
}

const struct jv *jv_path(const struct jv *value, const char *path)
{
    return NULL;
}

const char *jv_text(const struct jv *value)
{
    return NULL;
}

double jv_number(const struct jv *value)
{
    return UNKNOWN;
}

bool jv_numbers(const struct jv *array, double *out, size_t count)
{
    return false;
}

bool jv_integer(const struct jv *value, int64_t *out)
{
    return false;
}

bool jv_bool(const struct jv *value, bool fallback)
{
    return fallback;
}

size_t jv_count(const struct jv *value)
{
    return 0;
}

const struct jv *jv_first(const struct jv *value)
{
    return NULL;
}

const struct jv *jv_first_member(const struct jv *object)
{
    return NULL;
}

const struct jv *jv_next(const struct jv *child)
{
    return NULL;
}

const char *jv_key(const struct jv *child)
{
    return NULL;
}

enum err jv_index_init(struct jv_index *index, const struct jv *object)
{
    *index = (struct jv_index){0};
    return ERR_UNSUPPORTED;
}

void jv_index_release(struct jv_index *index)
{
}

const struct jv *jv_index_get(const struct jv_index *index, const char *key)
{
    return NULL;
}

enum err jv_put_text(struct jv *object, const char *key, const char *value)
{
    return ERR_UNSUPPORTED;
}

enum err jv_put_number(struct jv *object, const char *key, double value)
{
    return ERR_UNSUPPORTED;
}

enum err jv_put_bool(struct jv *object, const char *key, bool value)
{
    return ERR_UNSUPPORTED;
}

struct jv *jv_put_object(struct jv *object, const char *key)
{
    return NULL;
}

enum err jv_index_put(struct jv_index *index, struct jv *object, const char *key,
                      const struct jv *value)
{
    return ERR_UNSUPPORTED;
}

enum err jv_merge(struct jv *into, const struct jv *from)
{
    return ERR_UNSUPPORTED;
}

enum err jv_print(const struct jv *value, struct text *out)
{
    return ERR_UNSUPPORTED;
}

enum err jv_to_json(const struct jv *value, const char *key, struct json *json)
{
    return ERR_UNSUPPORTED;
}
