#include "port/json_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cjson/cJSON.h>

#include "core/hash.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "port/file.h"

/* A struct jv is a cJSON. */
static const cJSON *cjson_of(const struct jv *value)
{
    return (const cJSON *)value;
}

static struct jv *jv_of(cJSON *item)
{
    return (struct jv *)item;
}

const char *const JV_MISSING = NULL;

static size_t skip_space(const char *bytes, size_t length, size_t at)
{
    while (at < length && strchr(" \t\r\n", bytes[at]) && bytes[at])
        at++;
    return at;
}

/* "not JSON at byte 57, line 3"; without the line when it is the first. */
static enum err bad_at(const char *what, const char *bytes, size_t at, struct error *why)
{
    size_t line = 1;
    for (size_t i = 0; i < at; i++)
        line += bytes[i] == '\n';
    if (line > 1)
        return err_set(why, ERR_BAD_VALUE, "%s at byte %zu, line %zu", what, at, line);
    return err_set(why, ERR_BAD_VALUE, "%s at byte %zu", what, at);
}

static enum err parse(const char *bytes, size_t length, struct jv **out, struct error *why)
{
    const char *end = NULL;
    cJSON *item = cJSON_ParseWithLengthOpts(bytes, length, &end, 0);
    size_t stopped = end ? (size_t)(end - bytes) : 0;
    if (!item)
        return bad_at("not JSON", bytes, stopped, why);
    if (skip_space(bytes, length, stopped) != length) {
        cJSON_Delete(item);
        return bad_at("text after the JSON value", bytes, stopped, why);
    }
    *out = jv_of(item);
    return ERR_OK;
}

/* The next escape at or after `from` that cJSON cannot represent, or NULL: a NUL, which ends its strings, or an
 * unpaired surrogate, which servers send when they split an emoji between chunks. */
static const char *find_unusable(const char *from, const char *end)
{
    while ((from = memchr(from, '\\', (size_t)(end - from)))) {
        long unit = json_escaped_unit(from, end);
        bool is_pair =
            json_is_high_surrogate(unit) && json_is_low_surrogate(json_escaped_unit(from + 6, end));
        if (unit == 0 || json_is_low_surrogate(unit) || (json_is_high_surrogate(unit) && !is_pair))
            return from;
        from += is_pair ? 12 : end - from >= 2 ? 2 : 1; /* past an escaped backslash too */
    }
    return NULL;
}

static enum err parse_replaced(const char *bytes, size_t length, struct jv **out, struct error *why)
{
    static const char REPLACEMENT[] = {'\\', 'u', 'f', 'f', 'f', 'd'};
    char *copy = malloc(length);
    if (!copy)
        return err_set(why, ERR_NO_MEMORY, "out of memory for JSON");
    memcpy(copy, bytes, length);
    for (const char *at = copy; (at = find_unusable(at, copy + length)); at += 6)
        memcpy(copy + (at - copy), REPLACEMENT, sizeof REPLACEMENT);
    enum err err = parse(copy, length, out, why);
    free(copy);
    return err;
}

enum err jv_parse(const char *bytes, size_t length, struct jv **out, struct error *why)
{
    *out = NULL;
    const char *nul = length ? memchr(bytes, '\0', length) : NULL;
    if (nul)
        return bad_at("not JSON: a NUL", bytes, (size_t)(nul - bytes), why);
    if (length && find_unusable(bytes, bytes + length))
        return parse_replaced(bytes, length, out, why);
    return parse(bytes, length, out, why);
}

enum err jv_read(const char *path, size_t max, struct jv **out, struct error *why)
{
    struct text bytes = {0};
    struct error reason = {0};
    *out = NULL;
    enum err err = file_read(path, max, &bytes, why);
    if (!err && (err = jv_parse(text_get(&bytes), bytes.length, out, &reason)))
        err_set(why, err, "%.160s: %s", path, reason.text);
    text_release(&bytes);
    return err;
}

enum err jv_object_new(struct jv **out)
{
    *out = jv_of(cJSON_CreateObject());
    return *out ? ERR_OK : ERR_NO_MEMORY;
}

void jv_free(struct jv *value)
{
    cJSON_Delete((cJSON *)value);
}

bool jv_is_null(const struct jv *value)
{
    return !value || cJSON_IsNull(cjson_of(value));
}

bool jv_is_object(const struct jv *value)
{
    return cJSON_IsObject(cjson_of(value));
}

bool jv_is_array(const struct jv *value)
{
    return cJSON_IsArray(cjson_of(value));
}

bool jv_is_bool(const struct jv *value)
{
    return cJSON_IsBool(cjson_of(value));
}

const struct jv *jv_get(const struct jv *object, const char *key)
{
    return cJSON_IsObject(cjson_of(object))
               ? jv_of(cJSON_GetObjectItemCaseSensitive(cjson_of(object), key))
               : NULL;
}

const struct jv *jv_path(const struct jv *value, const char *path)
{
    char step[128];
    while (value && *path) {
        size_t length = strcspn(path, ".");
        if (length >= sizeof step)
            return NULL;
        memcpy(step, path, length);
        step[length] = '\0';
        path += length + (path[length] == '.');
        uint64_t index;
        if (jv_is_array(value))
            value = parse_u64(step, &index) == ERR_OK && index < jv_count(value)
                        ? jv_of(cJSON_GetArrayItem(cjson_of(value), (int)index))
                        : NULL;
        else
            value = jv_get(value, step);
    }
    return value;
}

const char *jv_text(const struct jv *value)
{
    return cJSON_IsString(cjson_of(value)) ? cjson_of(value)->valuestring : NULL;
}

double jv_number(const struct jv *value)
{
    return cJSON_IsNumber(cjson_of(value)) ? cjson_of(value)->valuedouble : UNKNOWN;
}

bool jv_integer(const struct jv *value, int64_t *out)
{
    double number = jv_number(value);
    /* Beyond 2^53 a double cannot represent every integer. */
    if (!is_known(number) || floor(number) != number || fabs(number) > 9007199254740992.0)
        return false;
    *out = (int64_t)number;
    return true;
}

bool jv_bool(const struct jv *value, bool fallback)
{
    return jv_is_bool(value) ? cJSON_IsTrue(cjson_of(value)) : fallback;
}

size_t jv_count(const struct jv *value)
{
    size_t count = 0;
    for (const struct jv *child = jv_first(value); child; child = jv_next(child))
        count++;
    return count;
}

const struct jv *jv_first(const struct jv *value)
{
    return jv_is_array(value) || jv_is_object(value) ? jv_of(cjson_of(value)->child) : NULL;
}

const struct jv *jv_first_member(const struct jv *object)
{
    return jv_is_object(object) ? jv_first(object) : NULL;
}

const struct jv *jv_next(const struct jv *child)
{
    return child ? jv_of(cjson_of(child)->next) : NULL;
}

bool jv_numbers(const struct jv *array, double *out, size_t count)
{
    const struct jv *value = jv_first(array);
    if (!jv_is_array(array) || jv_count(array) != count)
        return false;
    for (size_t i = 0; i < count; i++, value = jv_next(value)) {
        out[i] = jv_number(value);
        if (!is_known(out[i]) && !jv_is_null(value))
            return false;
    }
    return true;
}

const char *jv_key(const struct jv *child)
{
    return child ? cjson_of(child)->string : NULL;
}

/* Replaces a value by a copy of another; its key and siblings stay. */
static enum err assign(cJSON *place, const struct jv *value)
{
    cJSON *copy = cJSON_Duplicate(cjson_of(value), 1);
    if (!copy)
        return ERR_NO_MEMORY;
    cJSON before = *place;
    *place = *copy;
    place->next = before.next;
    place->prev = before.prev;
    place->string = before.string;
    before.next = before.prev = NULL;
    before.string = copy->string;
    *copy = before;
    cJSON_Delete(copy);
    return ERR_OK;
}

/* The appended member, or NULL when out of memory. */
static const struct jv *append(cJSON *object, const char *key, const struct jv *value)
{
    cJSON *copy = cJSON_Duplicate(cjson_of(value), 1);
    if (!copy || cJSON_AddItemToObject(object, key, copy))
        return jv_of(copy);
    cJSON_Delete(copy);
    return NULL;
}

static enum err put(struct jv *object, const char *key, const struct jv *value)
{
    cJSON *known = cJSON_GetObjectItemCaseSensitive((cJSON *)object, key);
    if (known)
        return assign(known, value);
    return append((cJSON *)object, key, value) ? ERR_OK : ERR_NO_MEMORY;
}

static enum err put_new(struct jv *object, const char *key, cJSON *item)
{
    enum err err = item ? put(object, key, jv_of(item)) : ERR_NO_MEMORY;
    cJSON_Delete(item);
    return err;
}

enum err jv_put_text(struct jv *object, const char *key, const char *value)
{
    return put_new(object, key, value ? cJSON_CreateString(value) : cJSON_CreateNull());
}

enum err jv_put_number(struct jv *object, const char *key, double value)
{
    return put_new(object, key, is_known(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

enum err jv_put_bool(struct jv *object, const char *key, bool value)
{
    return put_new(object, key, cJSON_CreateBool(value));
}

struct jv *jv_put_object(struct jv *object, const char *key)
{
    if (!jv_is_object(jv_get(object, key)) && put_new(object, key, cJSON_CreateObject()))
        return NULL;
    return (struct jv *)jv_get(object, key);
}

/* ---- members by key ---- */

/* The slot of the key, or the free slot for it. */
static const struct jv **find_slot(const struct jv_index *index, const char *key)
{
    size_t at = (size_t)hash_mix(hash_string(HASH_START, key));
    for (;; at++) {
        const struct jv **slot = &index->slots[at & (index->capacity - 1)];
        if (!*slot || !strcmp(cjson_of(*slot)->string, key))
            return slot;
    }
}

/* Of duplicate keys the first one is kept. */
static void add_to_index(struct jv_index *index, const struct jv *member)
{
    const struct jv **slot = find_slot(index, jv_key(member));
    if (!*slot) {
        *slot = member;
        index->count++;
    }
}

enum err jv_index_init(struct jv_index *index, const struct jv *object)
{
    size_t capacity = 64, count = jv_is_object(object) ? jv_count(object) : 0;
    while (capacity < 4 * count)
        capacity *= 2;
    *index = (struct jv_index){.slots = calloc(capacity, sizeof *index->slots)};
    if (!index->slots)
        return ERR_NO_MEMORY;
    index->capacity = capacity;
    for (const struct jv *member = jv_first_member(object); member; member = jv_next(member))
        add_to_index(index, member);
    return ERR_OK;
}

void jv_index_release(struct jv_index *index)
{
    free(index->slots);
    *index = (struct jv_index){0};
}

const struct jv *jv_index_get(const struct jv_index *index, const char *key)
{
    return index->capacity ? *find_slot(index, key) : NULL;
}

enum err jv_index_put(struct jv_index *index, struct jv *object, const char *key,
                      const struct jv *value)
{
    const struct jv *known = jv_index_get(index, key);
    if (known)
        return assign((cJSON *)known, value);
    const struct jv *member = append((cJSON *)object, key, value);
    if (!member)
        return ERR_NO_MEMORY;
    if (2 * (index->count + 1) <= index->capacity) {
        add_to_index(index, member);
        return ERR_OK;
    }
    jv_index_release(index);
    return jv_index_init(index, object);
}

enum err jv_merge(struct jv *into, const struct jv *from)
{
    for (const struct jv *child = jv_first(from); child; child = jv_next(child)) {
        cJSON *known = cJSON_GetObjectItemCaseSensitive((cJSON *)into, cjson_of(child)->string);
        enum err err = cJSON_IsObject(known) && jv_is_object(child)
                           ? jv_merge(jv_of(known), child)
                           : put(into, cjson_of(child)->string, child);
        if (err)
            return err;
    }
    return ERR_OK;
}

/* Prints a string, number or literal; nesting is printed without the writer, whose depth is limited. */
static void print_leaf(const cJSON *item, struct text *out)
{
    struct json json;
    int64_t integer;
    json_init(&json, out, false);
    if (cJSON_IsString(item))
        json_string(&json, NULL, item->valuestring);
    else if (jv_integer((const struct jv *)item, &integer) && integer != 0)
        json_integer(&json, NULL, integer);
    else if (cJSON_IsNumber(item))
        json_number(&json, NULL, item->valuedouble);
    else if (cJSON_IsBool(item))
        json_bool(&json, NULL, cJSON_IsTrue(item));
    else
        json_null(&json, NULL);
}

/* Not by cJSON, which prints only 15 digits. */
static void print_value(const cJSON *item, struct text *out)
{
    bool is_object = cJSON_IsObject(item);
    if (!is_object && !cJSON_IsArray(item)) {
        print_leaf(item, out);
        return;
    }
    text_add(out, is_object ? "{" : "[");
    for (const cJSON *child = item->child; child; child = child->next) {
        if (is_object) {
            struct json json;
            json_init(&json, out, false);
            json_string(&json, NULL, child->string);
            text_add(out, ":");
        }
        print_value(child, out);
        if (child->next)
            text_add(out, ",");
    }
    text_add(out, is_object ? "}" : "]");
}

enum err jv_print(const struct jv *value, struct text *out)
{
    print_value(cjson_of(value), out);
    return out->failed ? ERR_NO_MEMORY : ERR_OK;
}

enum err jv_to_json(const struct jv *value, const char *key, struct json *json)
{
    struct text text = {0};
    enum err err = value ? jv_print(value, &text) : ERR_OK;
    json_raw(json, key, value && !err ? text_get(&text) : "null");
    text_release(&text);
    return err;
}
