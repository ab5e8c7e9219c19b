/* Whole structs bound to JSON objects by tables of rows (core/json_field.h): one row per key serves writing, reading,
 * checking, clearing and releasing.
 *
 *     static const struct json_field POINT_FIELDS[] = {
 *         BIND_NANOS(reading_point, t, "t_ns", .flags = FIELD_REQUIRED),
 *         BIND_NUMBER(reading_point, joules, "energy_j", .flags = FIELD_REQUIRED, .max = INFINITY),
 *         {0}};
 *     static const struct json_field DOMAIN_FIELDS[] = {
 *         BIND_CHARS(reading_domain, device, "device", .flags = FIELD_REQUIRED),
 *         BIND_LIST(reading_domain, points, point_count, POINT_FIELDS, "points", .most = 100),
 *         {0}};
 *
 * Ownership: a struct that was read owns its lists and its FIELD_STRINGs, which json_fields_release frees; a FIELD_TEXT
 * and a FIELD_JSON point into the tree. */
#ifndef IPW_CORE_JSON_BIND_H
#define IPW_CORE_JSON_BIND_H

#include "core/json_field.h"

/* ---- rows: the struct's tag, a member, its key or path, and further members of struct json_field ---- */

/* Its offset; a member of another type does not compile. */
#define BIND_AT(of, member_, type)                                                                 \
    _Generic(&((struct of *)0)->member_, type *: offsetof(struct of, member_))

#define BIND_ROW(of, member_, c_type, type_, ...)                                                  \
    {.type = (type_), .offset = BIND_AT(of, member_, c_type), .path = __VA_ARGS__}

#define BIND_TEXT(of, member_, ...)     BIND_ROW(of, member_, const char *, FIELD_TEXT, __VA_ARGS__)
#define BIND_NUMBER(of, member_, ...)   BIND_ROW(of, member_, double, FIELD_NUMBER, __VA_ARGS__)
#define BIND_INTEGER(of, member_, ...)  BIND_ROW(of, member_, int64_t, FIELD_INTEGER, __VA_ARGS__)
#define BIND_INTEGRAL(of, member_, ...) BIND_ROW(of, member_, double, FIELD_INTEGRAL, __VA_ARGS__)
#define BIND_BOOL(of, member_, ...)     BIND_ROW(of, member_, int8_t, FIELD_BOOL, __VA_ARGS__)
#define BIND_JSON(of, member_, ...)     BIND_ROW(of, member_, struct json_any, FIELD_JSON, __VA_ARGS__)
#define BIND_FLAG(of, member_, ...)     BIND_ROW(of, member_, bool, FIELD_FLAG, __VA_ARGS__)
#define BIND_INT(of, member_, ...)      BIND_ROW(of, member_, int, FIELD_INT, __VA_ARGS__)
#define BIND_UNSIGNED(of, member_, ...) BIND_ROW(of, member_, unsigned, FIELD_UNSIGNED, __VA_ARGS__)
#define BIND_SIZE(of, member_, ...)     BIND_ROW(of, member_, size_t, FIELD_SIZE, __VA_ARGS__)
#define BIND_ORDINAL(of, member_, ...)  BIND_ROW(of, member_, size_t, FIELD_ORDINAL, __VA_ARGS__)
#define BIND_NANOS(of, member_, ...)    BIND_ROW(of, member_, nanos, FIELD_NANOS, __VA_ARGS__)
#define BIND_SECONDS(of, member_, ...)  BIND_ROW(of, member_, nanos, FIELD_SECONDS, __VA_ARGS__)
#define BIND_STRING(of, member_, ...)   BIND_ROW(of, member_, char *, FIELD_STRING, __VA_ARGS__)

/* name_: const char *(*)(int); values first_ ... first_ + values_ - 1. */
#define BIND_ENUM(of, member_, name_, first_, values_, ...)                                        \
    {.type = FIELD_ENUM,                                                                           \
     .offset = offsetof(struct of, member_),                                                       \
     .name = (name_),                                                                              \
     .first = (first_),                                                                            \
     .values = (values_),                                                                          \
     .path = __VA_ARGS__}
#define BIND_CHARS(of, member_, ...)                                                               \
    {.type = FIELD_CHARS,                                                                          \
     .offset = offsetof(struct of, member_),                                                       \
     .size = sizeof(((struct of *)0)->member_),                                                    \
     .path = __VA_ARGS__}
#define BIND_STRINGS(of, member_, count_, ...)                                                     \
    {.type = FIELD_STRINGS,                                                                        \
     .offset = BIND_AT(of, member_, char **),                                                      \
     .count = BIND_AT(of, count_, size_t),                                                         \
     .path = __VA_ARGS__}
#define BIND_NUMBERS(of, member_, count_, ...)                                                     \
    {.type = FIELD_NUMBERS,                                                                        \
     .offset = BIND_AT(of, member_, double *),                                                     \
     .count = BIND_AT(of, count_, size_t),                                                         \
     .path = __VA_ARGS__}
#define BIND_VECTOR(of, member_, ...)                                                              \
    {.type = FIELD_VECTOR,                                                                         \
     .offset = offsetof(struct of, member_),                                                       \
     .most = sizeof(((struct of *)0)->member_) / sizeof(double),                                   \
     .path = __VA_ARGS__}
#define BIND_SERIES(of, member_, count_, ...)                                                      \
    {.type = FIELD_SERIES,                                                                         \
     .offset = offsetof(struct of, member_),                                                       \
     .count = BIND_AT(of, count_, size_t),                                                         \
     .most = sizeof(((struct of *)0)->member_) / sizeof(double),                                   \
     .path = __VA_ARGS__}
#define BIND_OBJECT(of, member_, fields_, ...)                                                     \
    {.type = FIELD_OBJECT,                                                                         \
     .offset = offsetof(struct of, member_),                                                       \
     .fields = (fields_),                                                                          \
     .path = __VA_ARGS__}
#define BIND_LIST(of, member_, count_, fields_, ...)                                               \
    {.type = FIELD_LIST,                                                                           \
     .offset = offsetof(struct of, member_),                                                       \
     .count = BIND_AT(of, count_, size_t),                                                         \
     .size = sizeof *((struct of *)0)->member_,                                                    \
     .fields = (fields_),                                                                          \
     .path = __VA_ARGS__}
#define BIND_ARRAY(of, member_, count_, fields_, ...)                                              \
    {.type = FIELD_ARRAY,                                                                          \
     .offset = offsetof(struct of, member_),                                                       \
     .count = BIND_AT(of, count_, size_t),                                                         \
     .size = sizeof *((struct of *)0)->member_,                                                    \
     .most = sizeof(((struct of *)0)->member_) / sizeof *((struct of *)0)->member_,                \
     .fields = (fields_),                                                                          \
     .path = __VA_ARGS__}
#define BIND_CONSTANT(text, ...) {.type = FIELD_CONSTANT, .what = (text), .path = __VA_ARGS__}
/* custom_: a struct json_custom; member_ is for its functions, which have the whole struct as well. */
#define BIND_CUSTOM(of, member_, custom_, ...)                                                     \
    {.type = FIELD_CUSTOM,                                                                         \
     .offset = offsetof(struct of, member_),                                                       \
     .custom = &(custom_),                                                                         \
     .path = __VA_ARGS__}

/* ---- whole structs ----
 *
 * A table ends with a row without a path. */

/* Everything is unknown, 0 or its default. */
void json_fields_clear(const struct json_field *fields, void *object);
/* Frees what the struct owns, and clears it. */
void json_fields_release(const struct json_field *fields, void *object);

/* Members of an open object. */
void json_fields_write(struct json *json, const struct json_field *fields, const void *object);
/* One object, with a key in another object, or NULL. */
void json_fields_write_object(struct json *json, const char *key, const struct json_field *fields,
                              const void *object);
/* The same as a tree; NULL: out of memory. */
struct jv *json_fields_value(const struct json_field *fields, const void *object);

/* Lenient, for files of any version: a value that is absent, or of another type, leaves its member unchanged; of a list
 * that is too long the first items are read.  The only error is ERR_NO_MEMORY, of lists and of strings that are owned.
 */
enum err json_fields_read(const struct jv *tree, const struct json_field *fields, void *object);

/* Strict: clears the struct, then reads it.  ERR_BAD_VALUE for the first value that violates its row, with its path and
 * the rule: "points.3.t_ns: is missing"; the struct is then cleared.  `manual`: where the keys are documented; keys
 * without a row and keys given more than once are refused, too.  NULL: they are ignored. */
enum err json_fields_read_strict(const struct jv *tree, const struct json_field *fields,
                                 void *object, const char *manual, struct error *why) MUST_USE;

/* One row, for a table that has other members as well: with a writer of core/json_field.h; lenient. */
void json_field_write(struct json_field_writer *writer, const struct json_field *field,
                      const void *object);
bool json_field_is_omitted(const struct json_field *field, const void *object); /* FIELD_OMIT */
void json_field_clear(const struct json_field *field, void *object);
enum err json_member_read(const struct jv *value, const struct json_field *field, void *object);

/* ---- custom types ----
 *
 * Other types may have a `custom` as well: an object, whether it is known; a list, how it is written, and how an item is
 * cleared before it is read. */

struct json_reading;

/* Where a value is, for messages. */
struct json_place {
    const struct json_place *outer; /* NULL: the top */
    const char *key;                /* NULL: an item of a list */
    size_t index;                   /* of that item */
    const struct json_reading *reading;
};

struct json_custom {
    void (*write)(struct json *json, const char *key, const struct json_field *field,
                  const void *object);
    /* For a value that is not null; NULL: the member is only written.  `at`: of the object. */
    enum err (*read)(const struct json_place *at, const struct json_field *field,
                     const struct jv *value, void *object);
    bool (*is_known)(const struct json_field *field, const void *object); /* NULL: always */
    void (*clear)(const struct json_field *field, void *object);          /* NULL: nothing */
    void (*release)(const struct json_field *field, void *object);        /* NULL: nothing */
};

/* Returns ERR_BAD_VALUE, with "PATH.KEY: PROBLEM"; ERR_OK for a lenient reader, which ignores it. */
enum err json_refuse(const struct json_place *at, const char *key, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Where other errors of a custom type are set; may be NULL. */
struct error *json_place_why(const struct json_place *at);
/* The place of a member of an object. */
struct json_place json_place_in(const struct json_place *outer, const char *key);
/* Reads a struct at a place, as strictly as what surrounds it; it must have been cleared. */
enum err json_fields_read_at(const struct json_place *at, const struct jv *tree,
                             const struct json_field *fields, void *object) MUST_USE;
/* Refuses a value that is no object, and keys that are not listed, given more than once, where the reader does. */
enum err json_check_keys(const struct json_place *at, const struct jv *tree,
                         const char *const *keys, size_t count) MUST_USE;

#endif
