/* Clearing, releasing and writing of whole structs: a loop over the table, and a switch over the types. */
#include "core/json_bind.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/jv.h"
#include "core/memory.h"
#include "core/text.h"

static void *member_of(const struct json_field *field, void *object)
{
    return (char *)object + field->offset;
}

static size_t count_in(const struct json_field *field, const void *object)
{
    return *(const size_t *)(const void *)((const char *)object + field->count);
}

/* The structs of a FIELD_LIST or FIELD_ARRAY. */
static void *items_of(const struct json_field *field, void *object)
{
    void *member = member_of(field, object);
    return field->type == FIELD_ARRAY ? member : *(void **)member;
}

/* ---- clearing ---- */

void json_field_clear(const struct json_field *field, void *object)
{
    void *member = member_of(field, object);
    bool has_default = field->flags & FIELD_DEFAULT;
    switch (field->type) {
    case FIELD_NUMBER:
    case FIELD_INTEGRAL:
        *(double *)member = has_default ? field->otherwise : UNKNOWN;
        break;
    case FIELD_INTEGER:
        *(int64_t *)member = has_default ? (int64_t)field->otherwise : INTEGER_UNKNOWN;
        break;
    case FIELD_BOOL:
        *(int8_t *)member = -1;
        break;
    case FIELD_JSON:
    case FIELD_METADATA:
        *(struct json_any *)member = (struct json_any){0};
        break;
    case FIELD_FLAG:
        *(bool *)member = field->otherwise != 0;
        break;
    case FIELD_INT:
        *(int *)member = (int)field->otherwise;
        break;
    case FIELD_UNSIGNED:
        *(unsigned *)member = (unsigned)field->otherwise;
        break;
    case FIELD_SIZE:
    case FIELD_ORDINAL:
        *(size_t *)member = (size_t)field->otherwise;
        break;
    case FIELD_NANOS:
    case FIELD_SECONDS:
        *(nanos *)member = (nanos)field->otherwise;
        break;
    case FIELD_ENUM:
        *(int *)member = has_default ? (int)field->otherwise : field->first;
        break;
    case FIELD_CHARS:
        *(char *)member = '\0';
        break;
    case FIELD_TEXT:
    case FIELD_STRING:
        *(const char **)member = NULL;
        break;
    case FIELD_STRINGS:
    case FIELD_NUMBERS:
    case FIELD_LIST:
        *(void **)member = NULL;
        *json_field_count(field, object) = 0;
        break;
    case FIELD_VECTOR:
        for (size_t i = 0; i < field->most; i++)
            ((double *)member)[i] = UNKNOWN;
        break;
    case FIELD_SERIES:
    case FIELD_ARRAY:
        *json_field_count(field, object) = 0;
        break;
    case FIELD_OBJECT:
        json_fields_clear(field->fields, member);
        break;
    case FIELD_CUSTOM:
        if (field->custom->clear)
            field->custom->clear(field, object);
        break;
    case FIELD_CONSTANT:
        break;
    }
}

void json_fields_clear(const struct json_field *field, void *object)
{
    for (; field->path; field++)
        json_field_clear(field, object);
}

/* ---- releasing ---- */

static void release_member(const struct json_field *field, void *object)
{
    void *member = member_of(field, object);
    switch (field->type) {
    case FIELD_STRING:
        free(*(char **)member);
        break;
    case FIELD_STRINGS:
        memory_free_strings(*(char ***)member, count_in(field, object));
        break;
    case FIELD_NUMBERS:
        free(*(double **)member);
        break;
    case FIELD_OBJECT:
        json_fields_release(field->fields, member);
        break;
    case FIELD_LIST:
    case FIELD_ARRAY:
        for (size_t i = 0; i < count_in(field, object); i++)
            json_fields_release(field->fields, (char *)items_of(field, object) + i * field->size);
        if (field->type == FIELD_LIST)
            free(items_of(field, object));
        break;
    case FIELD_CUSTOM:
        if (field->custom->release)
            field->custom->release(field, object);
        break;
    default:
        break;
    }
}

void json_fields_release(const struct json_field *fields, void *object)
{
    for (const struct json_field *field = fields; field->path; field++)
        release_member(field, object);
    json_fields_clear(fields, object);
}

/* ---- writing ---- */

/* Whole numbers of all types, as in JSON. */
static int64_t whole_of(const struct json_field *field, const void *member)
{
    switch (field->type) {
    case FIELD_INT:
        return *(const int *)member;
    case FIELD_UNSIGNED:
        return *(const unsigned *)member;
    case FIELD_SIZE:
        return (int64_t)*(const size_t *)member;
    case FIELD_ORDINAL:
        return (int64_t)*(const size_t *)member + 1;
    default:
        return *(const nanos *)member;
    }
}

/* Neither unknown nor, for a row that omits it, its default. */
static bool is_told(const struct json_field *field, const void *object)
{
    const void *member = json_field_member(field, object);
    switch (field->type) {
    case FIELD_FLAG:
        return *(const bool *)member != (field->otherwise != 0);
    case FIELD_INT:
    case FIELD_UNSIGNED:
    case FIELD_SIZE:
    case FIELD_NANOS:
    case FIELD_SECONDS:
        return whole_of(field, member) != (int64_t)field->otherwise;
    case FIELD_CHARS:
        return *(const char *)member;
    case FIELD_STRING:
        return *(char *const *)member;
    case FIELD_STRINGS:
    case FIELD_NUMBERS:
    case FIELD_SERIES:
    case FIELD_LIST:
    case FIELD_ARRAY:
        return count_in(field, object) > 0;
    case FIELD_CUSTOM:
    case FIELD_OBJECT:
        return !field->custom || !field->custom->is_known || field->custom->is_known(field, object);
    case FIELD_ORDINAL:
    case FIELD_ENUM:
    case FIELD_VECTOR:
    case FIELD_CONSTANT:
        return true;
    default:
        return json_field_is_known(field, object) &&
               !((field->flags & FIELD_DEFAULT) &&
                 json_field_number(field, object) == field->otherwise);
    }
}

static void write_strings(struct json *json, const char *key, char *const *strings, size_t count)
{
    json_array(json, key);
    for (size_t i = 0; i < count; i++)
        json_string(json, NULL, strings[i]);
    json_array_end(json);
}

static void write_list(struct json *json, const char *key, const struct json_field *field,
                       const void *object)
{
    const void *member = json_field_member(field, object);
    const char *item = field->type == FIELD_ARRAY ? member : *(const char *const *)member;
    if (field->custom && field->custom->write) {
        field->custom->write(json, key, field, object);
        return;
    }
    if (field->flags & FIELD_SINGLE && count_in(field, object) == 1) {
        json_fields_write_object(json, key, field->fields, item);
        return;
    }
    json_array(json, key);
    for (size_t i = 0; i < count_in(field, object); i++, item += field->size)
        json_fields_write_object(json, NULL, field->fields, item);
    json_array_end(json);
}

static void write_any(struct json *json, const char *key, const struct json_any *value)
{
    if (value->text)
        json_raw(json, key, value->text);
    else if (jv_to_json(value->value, key, json))
        json->out->failed = true;
}

static void write_value(struct json *json, const char *key, const struct json_field *field,
                        const void *object)
{
    const void *member = json_field_member(field, object);
    switch (field->type) {
    case FIELD_NUMBER:
    case FIELD_INTEGRAL:
        if (field->factor)
            json_number_in(json, key, *(const double *)member, field->factor);
        else
            json_number(json, key, *(const double *)member);
        break;
    case FIELD_INTEGER:
        json_integer(json, key, *(const int64_t *)member);
        break;
    case FIELD_BOOL:
        json_bool(json, key, *(const int8_t *)member);
        break;
    case FIELD_JSON:
    case FIELD_METADATA:
        write_any(json, key, member);
        break;
    case FIELD_FLAG:
        json_bool(json, key, *(const bool *)member);
        break;
    case FIELD_INT:
    case FIELD_UNSIGNED:
    case FIELD_SIZE:
    case FIELD_ORDINAL:
    case FIELD_NANOS:
        json_integer(json, key, whole_of(field, member));
        break;
    case FIELD_SECONDS:
        json_number(json, key, seconds(*(const nanos *)member));
        break;
    case FIELD_ENUM:
        json_string(json, key, field->name(*(const int *)member));
        break;
    case FIELD_CHARS:
        json_string(json, key, member);
        break;
    case FIELD_TEXT:
    case FIELD_STRING:
        json_string(json, key, *(const char *const *)member);
        break;
    case FIELD_STRINGS:
        write_strings(json, key, *(char **const *)member, count_in(field, object));
        break;
    case FIELD_NUMBERS:
        json_numbers(json, key, *(double *const *)member, count_in(field, object));
        break;
    case FIELD_VECTOR:
        json_numbers(json, key, member, field->most);
        break;
    case FIELD_SERIES:
        json_numbers(json, key, member, count_in(field, object));
        break;
    case FIELD_OBJECT:
        json_fields_write_object(json, key, field->fields, member);
        break;
    case FIELD_LIST:
    case FIELD_ARRAY:
        write_list(json, key, field, object);
        break;
    case FIELD_CONSTANT:
        json_string(json, key, field->what);
        break;
    case FIELD_CUSTOM:
        field->custom->write(json, key, field, object);
    }
}

bool json_field_is_omitted(const struct json_field *field, const void *object)
{
    return (field->flags & FIELD_OMIT) && !is_told(field, object);
}

void json_field_write(struct json_field_writer *writer, const struct json_field *field,
                      const void *object)
{
    const char *key = json_field_enter(writer, field->path);
    bool is_basic = field->type <= FIELD_METADATA;
    if ((field->flags & FIELD_NULL) ? !is_told(field, object)
                                    : is_basic && !json_field_is_known(field, object))
        json_null(writer->json, key);
    else
        write_value(writer->json, key, field, object);
}

void json_fields_write(struct json *json, const struct json_field *field, const void *object)
{
    struct json_field_writer writer = {.json = json};
    for (; field->path; field++)
        if (!json_field_is_omitted(field, object))
            json_field_write(&writer, field, object);
    json_field_writer_end(&writer);
}

void json_fields_write_object(struct json *json, const char *key, const struct json_field *fields,
                              const void *object)
{
    json_object(json, key);
    json_fields_write(json, fields, object);
    json_object_end(json);
}

struct jv *json_fields_value(const struct json_field *fields, const void *object)
{
    struct text text = {0};
    struct json json;
    struct jv *value = NULL;
    json_init(&json, &text, false);
    json_fields_write_object(&json, NULL, fields, object);
    enum err err = text.failed ? ERR_NO_MEMORY : jv_parse(text.bytes, text.length, &value, NULL);
    text_release(&text);
    return jv_finish(value, err);
}
