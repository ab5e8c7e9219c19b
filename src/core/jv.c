#include "core/jv.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cjson/cJSON.h>

#include "core/hash.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/secret.h"
#include "core/text.h"
#include "core/units.h"

/* A struct jv is a cJSON. */
static const cJSON *cjson_of(const struct jv *value)
{
    return (const cJSON *)value;
}

static struct jv *jv_of(cJSON *item)
{
    return (struct jv *)item;
}

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
    char *copy = memory_bytes(bytes, length);
    if (!copy)
        return err_set(why, ERR_NO_MEMORY, "out of memory for JSON");
    for (const char *at = copy; (at = find_unusable(at, copy + length)); at += 6)
        memcpy(copy + (at - copy), REPLACEMENT, sizeof REPLACEMENT);
    enum err err = parse(copy, length, out, why);
    free(copy);
    return err;
}

/* ---- integers that a double cannot represent ----
 *
 * cJSON reads every number as a double.  The digits of an integer beyond 2^53 are the number's valuestring, which cJSON
 * copies and frees with it. */

#define EXACT_MAX 9007199254740992.0

enum { EXACT_DIGITS = 16 }; /* of the shortest integer beyond 2^53 */

static bool is_digit(char c)
{
    return isdigit((unsigned char)c);
}

/* Whether the text may contain such an integer, by looking at every 16th byte; digits after a point do not count. */
static bool has_long_integer(const char *bytes, size_t length)
{
    for (size_t at = EXACT_DIGITS - 1; at < length; at += EXACT_DIGITS) {
        size_t start = at;
        while (start > 0 && is_digit(bytes[at]) && is_digit(bytes[start - 1]))
            start--;
        while (at < length && is_digit(bytes[at]))
            at++;
        if (at >= start + EXACT_DIGITS && (start == 0 || bytes[start - 1] != '.'))
            return true;
    }
    return false;
}

static bool is_number_byte(char c)
{
    return is_digit(c) || (c && strchr("+-.eE", c));
}

/* Keeps the digits of such integers: the numbers of the tree and of its text have the same order. */
static bool keep_digits(cJSON *item, const char **at, const char *end)
{
    if (cJSON_IsNumber(item)) {
        while (*at < end && !is_digit(**at) && **at != '-')
            *at = **at == '"' ? json_skip_string(*at, end) : *at + 1;
        const char *start = *at;
        bool is_long =
            *at < end && fabs(item->valuedouble) >= EXACT_MAX && start[*start == '-'] != '0';
        for (; *at < end && is_number_byte(**at); ++*at)
            is_long = is_long && (is_digit(**at) || *at == start);
        if (is_long && !(item->valuestring = memory_bytes(start, (size_t)(*at - start))))
            return false;
    }
    for (cJSON *child = item->child; child; child = child->next)
        if (!keep_digits(child, at, end))
            return false;
    return true;
}

static cJSON *integer_new(double value, const char *digits)
{
    cJSON *item = cJSON_CreateNumber(value);
    if (item && fabs(value) >= EXACT_MAX && !(item->valuestring = memory_string(digits))) {
        cJSON_Delete(item);
        return NULL;
    }
    return item;
}

enum err jv_parse(const char *bytes, size_t length, struct jv **out, struct error *why)
{
    *out = NULL;
    const char *nul = length ? memchr(bytes, '\0', length) : NULL;
    if (nul)
        return bad_at("not JSON: a NUL", bytes, (size_t)(nul - bytes), why);
    bool is_usable = length == 0 || !find_unusable(bytes, bytes + length);
    enum err err = (is_usable ? parse : parse_replaced)(bytes, length, out, why);
    if (err || !has_long_integer(bytes, length) ||
        keep_digits((cJSON *)*out, &(const char *){bytes}, bytes + length))
        return err;
    jv_free(*out);
    *out = NULL;
    return err_set(why, ERR_NO_MEMORY, "out of memory for JSON");
}

/* A string of valid UTF-8; NULL: out of memory. */
static char *repair(const char *bytes, size_t length)
{
    struct text valid = {0};
    for (size_t part; length > 0; bytes += part, length -= part) {
        part = strnlen(bytes, length);
        text_add_repaired(&valid, bytes, part);
        if (part < length) {
            text_add(&valid, "\xEF\xBF\xBD");
            part++;
        }
    }
    char *string = valid.failed ? NULL : memory_string(text_get(&valid));
    text_release(&valid);
    return string;
}

enum err jv_parse_repaired(const char *bytes, size_t length, struct jv **out, struct error *why)
{
    if (!memchr(bytes, '\0', length) && utf8_valid_prefix(bytes, length) == length)
        return jv_parse(bytes, length, out, why); /* the usual case: no copy */
    char *valid = repair(bytes, length);
    *out = NULL;
    enum err err = valid ? jv_parse(valid, strlen(valid), out, why) : err_no_memory(why);
    free(valid);
    return err;
}

void jv_allocate_with(void *(*allocate)(size_t size))
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = allocate, .free_fn = free});
}

void jv_free(struct jv *value)
{
    cJSON_Delete((cJSON *)value);
}

/* ---- new values ---- */

struct jv *jv_new_object(void)
{
    return jv_of(cJSON_CreateObject());
}

struct jv *jv_new_array(void)
{
    return jv_of(cJSON_CreateArray());
}

struct jv *jv_new_bytes(const char *bytes, size_t length)
{
    cJSON *item = cJSON_CreateNull();
    if (!item)
        return NULL;
    item->type = cJSON_String;
    item->valuestring = repair(bytes, length);
    if (item->valuestring)
        return jv_of(item);
    cJSON_Delete(item);
    return NULL;
}

struct jv *jv_new_text(const char *text)
{
    return text ? jv_new_bytes(text, strlen(text)) : jv_of(cJSON_CreateNull());
}

struct jv *jv_new_number(double value)
{
    return jv_of(isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

struct jv *jv_new_integer(int64_t value)
{
    char digits[24];
    chars_format(digits, "%" PRId64, value);
    return jv_of(integer_new((double)value, digits));
}

struct jv *jv_new_unsigned(uint64_t value)
{
    char digits[24];
    chars_format(digits, "%" PRIu64, value);
    return jv_of(integer_new((double)value, digits));
}

struct jv *jv_new_bool(bool value)
{
    return jv_of(cJSON_CreateBool(value));
}

struct jv *jv_copy(const struct jv *value)
{
    return jv_of(cJSON_Duplicate(cjson_of(value), 1));
}

enum err jv_add(struct jv *to, const char *key, struct jv *value)
{
    char *valid = NULL;
    bool is_valid = !key || utf8_valid_prefix(key, strlen(key)) == strlen(key);
    if (!is_valid)
        key = valid = repair(key, strlen(key));
    bool is_added = to && value && (is_valid || valid) &&
                    (key ? cJSON_AddItemToObject((cJSON *)to, key, (cJSON *)value)
                         : cJSON_AddItemToArray((cJSON *)to, (cJSON *)value));
    free(valid);
    if (!is_added)
        jv_free(value);
    return is_added ? ERR_OK : ERR_NO_MEMORY;
}

struct jv *jv_new_members(const struct jv_member *members, size_t count)
{
    struct jv *object = jv_new_object();
    enum err err = ERR_OK;
    for (size_t i = 0; i < count; i++)
        if (!members[i].key)
            jv_free(members[i].value);
        else if (jv_add(object, members[i].key, members[i].value))
            err = ERR_NO_MEMORY;
    return jv_finish(object, err);
}

/* ---- reading values ---- */

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
    double number = cJSON_IsNumber(cjson_of(value)) ? cjson_of(value)->valuedouble : UNKNOWN;
    return isfinite(number) ? number : UNKNOWN;
}

bool jv_integer(const struct jv *value, int64_t *out)
{
    double number = jv_number(value);
    const char *digits = is_known(number) ? cjson_of(value)->valuestring : NULL;
    if (digits) {
        errno = 0;
        long long parsed = strtoll(digits, NULL, 10);
        *out = errno ? *out : parsed;
        return !errno;
    }
    if (!is_known(number) || floor(number) != number || fabs(number) > EXACT_MAX)
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
    JV_EACH (child, jv_first(value))
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
    struct jv *copy = jv_copy(value);
    return jv_add(jv_of(object), key, copy) ? NULL : copy;
}

static enum err put(struct jv *object, const char *key, const struct jv *value)
{
    cJSON *known = cJSON_GetObjectItemCaseSensitive((cJSON *)object, key);
    if (known)
        return assign(known, value);
    return append((cJSON *)object, key, value) ? ERR_OK : ERR_NO_MEMORY;
}

static enum err put_new(struct jv *object, const char *key, struct jv *value)
{
    enum err err = value ? put(object, key, value) : ERR_NO_MEMORY;
    jv_free(value);
    return err;
}

enum err jv_put_text(struct jv *object, const char *key, const char *value)
{
    return put_new(object, key, jv_new_text(value));
}

enum err jv_put_number(struct jv *object, const char *key, double value)
{
    return put_new(object, key, jv_new_number(value));
}

enum err jv_put_bool(struct jv *object, const char *key, bool value)
{
    return put_new(object, key, jv_new_bool(value));
}

struct jv *jv_put_object(struct jv *object, const char *key)
{
    if (!jv_is_object(jv_get(object, key)) && put_new(object, key, jv_new_object()))
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
        if (!*slot || str_equal(cjson_of(*slot)->string, key))
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
    *index = (struct jv_index){.slots = memory_zeroed(capacity, sizeof *index->slots)};
    if (!index->slots)
        return ERR_NO_MEMORY;
    index->capacity = capacity;
    JV_EACH (member, jv_first_member(object))
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
    JV_EACH (child, jv_first(from)) {
        cJSON *known = cJSON_GetObjectItemCaseSensitive((cJSON *)into, cjson_of(child)->string);
        enum err err = cJSON_IsObject(known) && jv_is_object(child)
                           ? jv_merge(jv_of(known), child)
                           : put(into, cjson_of(child)->string, child);
        if (err)
            return err;
    }
    return ERR_OK;
}

void jv_hide_secrets(struct jv *value)
{
    if (jv_text(value))
        secret_hide_value(((cJSON *)value)->valuestring);
    JV_EACH (child, jv_first(value))
        jv_hide_secrets((struct jv *)child);
}

/* Prints a string, number or literal; nesting is printed without the writer, whose depth is limited. */
static void print_leaf(const cJSON *item, struct text *out)
{
    struct json json;
    int64_t integer;
    json_init(&json, out, false);
    if (cJSON_IsString(item))
        json_string(&json, NULL, item->valuestring);
    else if (cJSON_IsNumber(item) && item->valuestring)
        json_raw(&json, NULL, item->valuestring);
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
