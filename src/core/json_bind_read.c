/* Reading of whole structs, lenient or strict: the same switch over the types, where a lenient reader ignores what a
 * strict one refuses. */
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json_bind.h"
#include "core/jv.h"
#include "core/memory.h"
#include "core/registry.h"
#include "core/text.h"

enum { NAMES_MAX = 64, PATH_MAX_BYTES = 160 };

struct json_reading {
    bool is_strict;
    const char *manual; /* NULL: other keys are ignored */
    struct error *why;
};

/* ---- messages ---- */

/* "matrix.bf16." */
static void add_path(const struct json_place *at, char *to, size_t size)
{
    if (!at->outer)
        return;
    add_path(at->outer, to, size);
    size_t length = strlen(to);
    if (at->key)
        str_format(to + length, size - length, "%s.", at->key);
    else
        str_format(to + length, size - length, "%zu.", at->index);
}

enum err json_refuse(const struct json_place *at, const char *key, const char *format, ...)
{
    char path[PATH_MAX_BYTES] = "", problem[200];
    va_list arguments;
    if (!at->reading->is_strict)
        return ERR_OK;
    va_start(arguments, format);
    vsnprintf(problem, sizeof problem, format, arguments);
    va_end(arguments);
    add_path(at, path, sizeof path);
    if (!key[0] && path[0])
        path[strlen(path) - 1] = '\0'; /* the dot */
    const char *colon = path[0] || key[0] ? ": " : "";
    return err_set(at->reading->why, ERR_BAD_VALUE, "%s%s%s%s", path, plain_text(key).text, colon,
                   problem);
}

struct error *json_place_why(const struct json_place *at)
{
    return at->reading->why;
}

struct json_place json_place_in(const struct json_place *outer, const char *key)
{
    return (struct json_place){.outer = outer, .key = key, .reading = outer->reading};
}

/* ---- keys ---- */

static enum err check_key(const struct json_place *at, const struct jv *tree,
                          const struct jv *member, const char *const *keys, size_t count)
{
    const char *key = jv_key(member);
    for (size_t i = 0; i < count; i++)
        if (str_equal(key, keys[i]))
            return jv_get(tree, key) == member ? ERR_OK
                                               : json_refuse(at, key, "given more than once");
    const char *near = nearest_name(key, keys, count);
    if (near)
        return json_refuse(at, key, "unknown key: did you mean '%s'?", near);
    return json_refuse(at, key, "unknown key: see %s", at->reading->manual);
}

enum err json_check_keys(const struct json_place *at, const struct jv *tree,
                         const char *const *keys, size_t count)
{
    enum err err = jv_is_object(tree) ? ERR_OK : json_refuse(at, "", "must be an object");
    if (!at->reading->manual)
        return err;
    for (const struct jv *member = jv_first_member(tree); !err && member; member = jv_next(member))
        err = check_key(at, tree, member, keys, count);
    return err;
}

struct known_keys {
    const char *items[NAMES_MAX];
    char copies[NAMES_MAX][FIELD_NAME_MAX]; /* of names that do not end their paths */
    size_t count;
};

/* The name that follows `prefix` in a path. */
static void add_key(struct known_keys *keys, const char *path, const char *prefix)
{
    size_t length = strlen(prefix);
    if (!path || strncmp(path, prefix, length) != 0)
        return;
    struct json_field_name name = {path + length, strcspn(path + length, ".")};
    const char *key = json_field_key(&name, keys->copies[keys->count]);
    if (keys->count < NAMES_MAX - 1 && !str_is_listed(key, keys->items, keys->count))
        keys->items[keys->count++] = key;
}

/* The keys of one object: the top, or one on a path ("power" of "power.limit"), whose path and dot are `prefix`. */
static enum err check_object(const struct json_place *at, const struct jv *tree,
                             const struct json_field *fields, const char *prefix)
{
    struct known_keys keys = {0};
    if (!at->reading->manual)
        return jv_is_object(tree) ? ERR_OK : json_refuse(at, "", "must be an object");
    for (const struct json_field *field = fields; field->path; field++) {
        add_key(&keys, field->path, prefix);
        add_key(&keys, field->former, prefix);
    }
    enum err err = json_check_keys(at, tree, keys.items, keys.count);
    for (size_t i = 0; !err && i < keys.count; i++) {
        char inner[FIELD_NAME_MAX * 2];
        bool is_object = keys.items[i] == keys.copies[i];
        const struct jv *value = is_object ? jv_get(tree, keys.items[i]) : NULL;
        struct json_place place = json_place_in(at, keys.items[i]);
        if (!jv_is_null(value) && chars_format(inner, "%s%s.", prefix, keys.items[i]))
            err = check_object(&place, value, fields, inner);
    }
    return err;
}

/* ---- numbers ---- */

static bool is_within(const struct json_field *field, double value)
{
    if (field->min == 0 && field->max == 0)
        return is_known(value);
    return is_known(value) && value >= field->min && value <= field->max &&
           !((field->flags & FIELD_ABOVE) && value == field->min);
}

static enum err refuse_number(const struct json_place *at, const struct json_field *field)
{
    const char *from = field->flags & FIELD_ABOVE ? "above" : "from";
    if (field->min == 0 && field->max == 0)
        return json_refuse(at, field->path, "must be a finite number");
    if (!is_known(field->max))
        return json_refuse(at, field->path, "must be a number %s %g", from, field->min);
    return json_refuse(at, field->path, "must be a number %s %g, at most %g", from, field->min,
                       field->max);
}

static enum err read_number(const struct json_place *at, const struct json_field *field,
                            const struct jv *value, double *to)
{
    double number = jv_number(value);
    if (!is_within(field, number))
        return refuse_number(at, field);
    *to = field->factor ? number * field->factor : number;
    return ERR_OK;
}

/* What a type can represent, where its row does not say. */
static void range_of(const struct json_field *field, int64_t *min, int64_t *max)
{
    *min = field->type == FIELD_ORDINAL ? 1 : 0;
    *max = INT64_MAX;
    if (field->type == FIELD_INT) {
        *min = INT_MIN;
        *max = INT_MAX;
    } else if (field->type == FIELD_UNSIGNED) {
        *max = UINT_MAX;
    }
    if (field->min != 0 || field->max != 0) {
        *min = (int64_t)field->min;
        *max = (int64_t)field->max;
    }
}

static void set_whole(const struct json_field *field, int64_t number, void *member)
{
    switch (field->type) {
    case FIELD_INT:
        *(int *)member = (int)number;
        break;
    case FIELD_UNSIGNED:
        *(unsigned *)member = (unsigned)number;
        break;
    case FIELD_SIZE:
        *(size_t *)member = (size_t)number;
        break;
    case FIELD_ORDINAL:
        *(size_t *)member = (size_t)number - 1;
        break;
    default:
        *(nanos *)member = number;
    }
}

static enum err read_whole(const struct json_place *at, const struct json_field *field,
                           const struct jv *value, void *member)
{
    int64_t number, min, max;
    range_of(field, &min, &max);
    if (!jv_integer(value, &number) || number < min || number > max)
        return json_refuse(at, field->path, "must be a %s, %lld to %lld",
                           field->what ? field->what : "whole number", (long long)min,
                           (long long)max);
    set_whole(field, number, member);
    return ERR_OK;
}

static enum err read_seconds(const struct json_place *at, const struct json_field *field,
                             const struct jv *value, nanos *to)
{
    static const double SECONDS_MAX = 9e9; /* that nanos can represent */
    double number = UNKNOWN;
    enum err err = read_number(at, field, value, &number);
    if (!err && is_known(number) && fabs(number) > SECONDS_MAX)
        err = json_refuse(at, field->path, "must be a number of seconds, at most %g", SECONDS_MAX);
    else if (!err && is_known(number))
        *to = from_seconds(number);
    return err;
}

/* ---- text ---- */

static bool is_text(const struct json_field *field, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    bool has_to_be = field->least > 0 || (field->flags & FIELD_REQUIRED);
    return text && (length || !has_to_be) && length >= field->least &&
           (!field->most || length <= field->most) &&
           ((field->flags & FIELD_ANY_TEXT) || str_is_plain(text));
}

static enum err refuse_text(const struct json_place *at, const struct json_field *field)
{
    if (field->flags & FIELD_ANY_TEXT)
        return json_refuse(at, field->path, "must be text");
    if (field->most)
        return json_refuse(at, field->path,
                           "must be one line of text without control characters, %zu to %zu bytes",
                           field->least, field->most);
    return json_refuse(at, field->path, "must be one line of text without control characters%s",
                       field->flags & FIELD_REQUIRED ? ", not empty" : "");
}

/* The text of a value; NULL: it was refused, or is ignored. */
static enum err read_text(const struct json_place *at, const struct json_field *field,
                          const struct jv *value, const char **out)
{
    bool is_valid = !at->reading->is_strict || is_text(field, jv_text(value));
    *out = is_valid ? jv_text(value) : NULL;
    return is_valid ? ERR_OK : refuse_text(at, field);
}

static enum err read_chars(const struct json_place *at, const struct json_field *field,
                           const struct jv *value, char *to)
{
    const char *text;
    enum err err = read_text(at, field, value, &text);
    if (err || !text)
        return err;
    if (!str_copy(to, field->size, text))
        err = json_refuse(at, field->path, "must be shorter than %zu bytes", field->size);
    if (!(field->flags & FIELD_ANY_TEXT))
        str_plain(to, field->size);
    return err;
}

static enum err read_string(const struct json_place *at, const struct json_field *field,
                            const struct jv *value, char **to)
{
    const char *text;
    enum err err = read_text(at, field, value, &text);
    if (err || !text)
        return err;
    char *copy = memory_string(text);
    if (!copy)
        return err_no_memory(at->reading->why);
    free(*to);
    *to = copy;
    return ERR_OK;
}

static const char *last_name(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static enum err read_enum(const struct json_place *at, const struct json_field *field,
                          const struct jv *value, int *to)
{
    const char *names[NAMES_MAX], *text;
    size_t count = 0;
    struct error reason = {0};
    enum err err = read_text(at, field, value, &text);
    if (err || !text)
        return err;
    for (int i = field->first; i < field->first + field->values && count < NAMES_MAX; i++) {
        names[count++] = field->name(i);
        if (str_equal(text, field->name(i))) {
            *to = i;
            return ERR_OK;
        }
    }
    registry_unknown(last_name(field->path), text, names, count, ERR_BAD_VALUE, &reason);
    return json_refuse(at, field->path, "%s", reason.text);
}

static enum err read_constant(const struct json_place *at, const struct json_field *field,
                              const struct jv *value)
{
    const char *text = jv_text(value);
    return text && str_equal(text, field->what)
               ? ERR_OK
               : json_refuse(at, field->path, "must be \"%s\"", field->what);
}

/* ---- lists ---- */

static enum err check_count(const struct json_place *at, const struct json_field *field,
                            const struct jv *list, bool *is_valid)
{
    size_t count = jv_count(list);
    *is_valid =
        jv_is_array(list) && count >= field->least && (!field->most || count <= field->most);
    if (*is_valid)
        return ERR_OK;
    if (field->what)
        return json_refuse(at, field->path, "must be an array of %s", field->what);
    return field->most ? json_refuse(at, field->path, "must be an array of %zu to %zu",
                                     field->least, field->most)
                       : json_refuse(at, field->path, "must be an array");
}

static enum err read_strings(const struct json_place *at, const struct json_field *field,
                             const struct jv *list, void *object)
{
    bool is_valid;
    enum err err = check_count(at, field, list, &is_valid);
    char **strings = is_valid ? memory_zeroed(jv_count(list) + 1, sizeof *strings) : NULL;
    size_t count = 0;
    const struct json_field item = {.path = field->path, .flags = field->flags & FIELD_ANY_TEXT};
    if (!is_valid)
        return err;
    err = strings ? ERR_OK : err_no_memory(at->reading->why);
    for (const struct jv *one = jv_first(list); one && !err; one = jv_next(one)) {
        err = read_string(at, &item, one, &strings[count]);
        count += strings[count] != NULL;
    }
    *(char ***)((char *)object + field->offset) = strings;
    *json_field_count(field, object) = count;
    return err;
}

/* Numbers or nulls, which are UNKNOWN. */
static enum err read_numbers(const struct json_place *at, const struct json_field *field,
                             const struct jv *list, double *to, size_t count)
{
    return jv_numbers(list, to, count)
               ? ERR_OK
               : json_refuse(at, field->path, "must be an array of %zu numbers", count);
}

static enum err read_owned_numbers(const struct json_place *at, const struct json_field *field,
                                   const struct jv *list, void *object)
{
    bool is_valid;
    enum err err = check_count(at, field, list, &is_valid);
    double *numbers = is_valid ? memory_zeroed(jv_count(list) + 1, sizeof *numbers) : NULL;
    if (!is_valid)
        return err;
    if (!numbers)
        return err_no_memory(at->reading->why);
    *(double **)(void *)((char *)object + field->offset) = numbers;
    if (jv_numbers(list, numbers, jv_count(list)))
        *json_field_count(field, object) = jv_count(list);
    else
        err = json_refuse(at, field->path, "must be an array of numbers");
    return err;
}

static enum err read_series(const struct json_place *at, const struct json_field *field,
                            const struct jv *list, void *object)
{
    bool is_valid;
    enum err err = check_count(at, field, list, &is_valid);
    if (is_valid)
        err = read_numbers(at, field, list, (double *)(void *)((char *)object + field->offset),
                           jv_count(list));
    if (is_valid && !err)
        *json_field_count(field, object) = jv_count(list);
    return err;
}

static enum err read_item(const struct json_place *at, const struct json_field *field,
                          const struct jv *value, void *item)
{
    if (field->custom && field->custom->clear)
        field->custom->clear(field, item);
    else
        json_fields_clear(field->fields, item);
    return json_fields_read_at(at, value, field->fields, item);
}

/* Space for the items is allocated before they are read, for a count that was checked. */
static enum err read_list(const struct json_place *at, const struct json_field *field,
                          const struct jv *list, void *object)
{
    void *member = (char *)object + field->offset;
    size_t *count = json_field_count(field, object);
    struct json_place above = json_place_in(at, field->path);
    bool is_valid;
    if (field->flags & FIELD_SINGLE && !jv_is_array(list)) {
        *count = 1;
        return read_item(&above, field, list, member);
    }
    enum err err = check_count(at, field, list, &is_valid);
    if (err || !jv_is_array(list) || jv_count(list) == 0)
        return err;
    size_t size = field->most && jv_count(list) > field->most ? field->most : jv_count(list);
    char *items = field->type == FIELD_ARRAY ? member : memory_zeroed(size, field->size);
    if (!items)
        return err_no_memory(at->reading->why);
    if (field->type == FIELD_LIST)
        *(void **)member = items;
    for (const struct jv *one = jv_first(list); *count < size && !err; one = jv_next(one)) {
        struct json_place place = {.outer = &above, .index = *count, .reading = at->reading};
        err = read_item(&place, field, one, items + (*count)++ * field->size);
    }
    return err;
}

/* ---- a member ---- */

/* A basic type, of record.def. */
static enum err read_basic(const struct json_place *at, const struct json_field *field,
                           const struct jv *value, void *object)
{
    void *member = (char *)object + field->offset;
    bool has_rule = at->reading->is_strict || field->min != 0 || field->max != 0 || field->factor;
    int64_t integer;
    if (!has_rule) {
        json_field_take(field, value, object);
        return ERR_OK;
    }
    if (field->type == FIELD_TEXT)
        return read_text(at, field, value, member);
    if (field->type == FIELD_NUMBER || field->type == FIELD_INTEGRAL)
        return read_number(at, field, value, member);
    if (field->type == FIELD_BOOL && !jv_is_bool(value))
        return json_refuse(at, field->path, "must be true or false");
    if (field->type == FIELD_INTEGER && !jv_integer(value, &integer))
        return json_refuse(at, field->path, "must be a whole number");
    json_field_take(field, value, object);
    return ERR_OK;
}

static enum err read_value(const struct json_place *at, const struct json_field *field,
                           const struct jv *value, void *object)
{
    void *member = (char *)object + field->offset;
    struct json_place place = json_place_in(at, field->path);
    switch (field->type) {
    case FIELD_FLAG:
        if (!jv_is_bool(value))
            return json_refuse(at, field->path, "must be true or false");
        *(bool *)member = jv_bool(value, false);
        return ERR_OK;
    case FIELD_INT:
    case FIELD_UNSIGNED:
    case FIELD_SIZE:
    case FIELD_ORDINAL:
    case FIELD_NANOS:
        return read_whole(at, field, value, member);
    case FIELD_SECONDS:
        return read_seconds(at, field, value, member);
    case FIELD_ENUM:
        return read_enum(at, field, value, member);
    case FIELD_CHARS:
        return read_chars(at, field, value, member);
    case FIELD_STRING:
        return read_string(at, field, value, member);
    case FIELD_STRINGS:
        return read_strings(at, field, value, object);
    case FIELD_NUMBERS:
        return read_owned_numbers(at, field, value, object);
    case FIELD_VECTOR:
        return read_numbers(at, field, value, member, field->most);
    case FIELD_SERIES:
        return read_series(at, field, value, object);
    case FIELD_OBJECT:
        return json_fields_read_at(&place, value, field->fields, member);
    case FIELD_LIST:
    case FIELD_ARRAY:
        return read_list(at, field, value, object);
    case FIELD_CONSTANT:
        return read_constant(at, field, value);
    case FIELD_CUSTOM:
        return field->custom->read ? field->custom->read(at, field, value, object) : ERR_OK;
    default:
        return read_basic(at, field, value, object);
    }
}

static enum err read_member(const struct json_place *at, const struct json_field *field,
                            const struct jv *value, void *object)
{
    const struct json_reading lenient = {.why = at->reading->why};
    struct json_place place = *at;
    if (jv_is_null(value))
        return field->flags & FIELD_REQUIRED ? json_refuse(at, field->path, "is missing") : ERR_OK;
    if (field->flags & FIELD_LENIENT)
        place.reading = &lenient;
    return read_value(&place, field, value, object);
}

/* ---- whole structs ---- */

enum err json_fields_read_at(const struct json_place *at, const struct jv *tree,
                             const struct json_field *field, void *object)
{
    struct json_field_reader reader = {.root = tree};
    enum err err = check_object(at, tree, field, "");
    for (; !err && field->path; field++)
        err = read_member(at, field, json_field_find(&reader, field), object);
    return err;
}

enum err json_member_read(const struct jv *value, const struct json_field *field, void *object)
{
    const struct json_reading reading = {0};
    return read_member(&(struct json_place){.reading = &reading}, field, value, object);
}

enum err json_fields_read(const struct jv *tree, const struct json_field *fields, void *object)
{
    const struct json_reading reading = {0};
    return json_fields_read_at(&(struct json_place){.reading = &reading}, tree, fields, object);
}

enum err json_fields_read_strict(const struct jv *tree, const struct json_field *fields,
                                 void *object, const char *manual, struct error *why)
{
    const struct json_reading reading = {true, manual, why};
    json_fields_clear(fields, object);
    enum err err =
        json_fields_read_at(&(struct json_place){.reading = &reading}, tree, fields, object);
    if (err)
        json_fields_release(fields, object);
    return err;
}
