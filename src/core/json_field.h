/* Members of a struct bound to paths of a JSON object ("ipw.energy.joules"): a table row gives the location of a value
 * in both, and the functions here follow its path and read it.  A key is written once, in its row.  core/json_bind.h
 * writes and clears members, and reads whole structs with lists and nested structs; it has macros for rows.
 *
 * Nothing here owns memory: strings and trees belong to the caller, and a struct that was read points into its tree. */
#ifndef IPW_CORE_JSON_FIELD_H
#define IPW_CORE_JSON_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

struct json;
struct jv;

/* The types of a member.  The functions of this header know those of record.def, core/json_bind.h all. */
enum json_field_type {
    FIELD_TEXT,     /* const char *; NULL is unknown */
    FIELD_NUMBER,   /* double; UNKNOWN */
    FIELD_INTEGER,  /* int64_t; INTEGER_UNKNOWN */
    FIELD_INTEGRAL, /* double with an integer value, stored as one; UNKNOWN */
    FIELD_BOOL,     /* int8_t: 1, 0, or -1 for unknown */
    FIELD_JSON,     /* struct json_any */
    FIELD_METADATA, /* the same: an object whose keys are not known in advance */

    FIELD_FLAG,     /* bool */
    FIELD_INT,      /* int */
    FIELD_UNSIGNED, /* unsigned */
    FIELD_SIZE,     /* size_t */
    FIELD_ORDINAL,  /* size_t from 0, which is 1 in JSON */
    FIELD_NANOS,    /* nanos */
    FIELD_SECONDS,  /* nanos, which are seconds in JSON */
    FIELD_ENUM,     /* an enum, which has names in JSON */
    FIELD_CHARS,    /* char[size] */
    FIELD_STRING,   /* char *, owned; NULL is unknown */
    FIELD_STRINGS,  /* char **, owned, NULL-terminated, and their count */
    FIELD_NUMBERS,  /* double *, owned, and their count */
    FIELD_VECTOR,   /* double[most]: exactly so many numbers */
    FIELD_SERIES,   /* double[most], and a count of those used */
    FIELD_OBJECT,   /* a struct, with a table of its own */
    FIELD_LIST,     /* a pointer to structs, owned, and their count */
    FIELD_ARRAY,    /* the same for an array of `most` structs */
    FIELD_CONSTANT, /* no member: the text `what` */
    FIELD_CUSTOM,   /* functions */
};

#define INTEGER_UNKNOWN INT64_MIN

static inline double integer_number(int64_t value)
{
    return value == INTEGER_UNKNOWN ? UNKNOWN : (double)value;
}

/* Any JSON value: as text when written; as a tree when read. */
struct json_any {
    const char *text;       /* NULL: not text */
    const struct jv *value; /* NULL: not parsed; unknown if both are NULL */
};

#define FIELD_C_TEXT     const char *
#define FIELD_C_NUMBER   double
#define FIELD_C_INTEGER  int64_t
#define FIELD_C_INTEGRAL double
#define FIELD_C_BOOL     int8_t
#define FIELD_C_JSON     struct json_any
#define FIELD_C_METADATA struct json_any

enum {
    FIELD_REQUIRED = 1,  /* a strict reader refuses an object without it */
    FIELD_OMIT = 2,      /* not written if it has its default or is unknown; otherwise null */
    FIELD_NULL = 4,      /* a value of 0 or "" is null in JSON */
    FIELD_DEFAULT = 8,   /* of a number: `otherwise` if it is absent, not UNKNOWN */
    FIELD_ABOVE = 16,    /* of a number: `min` itself is refused */
    FIELD_ANY_TEXT = 32, /* text may have several lines and control characters */
    FIELD_LENIENT = 64,  /* a strict reader ignores what violates its row */
    FIELD_SINGLE = 128   /* of a FIELD_ARRAY: one item alone has no list */
};

struct json_field {
    const char *path;
    const char *
        former; /* its path in earlier versions: read where `path` is absent or null, never written; or NULL */
    enum json_field_type type;
    unsigned flags;
    size_t offset; /* of the member in its struct */

    /* The following are used by core/json_bind.h alone. */
    size_t size;        /* of a char array, or of a struct of a list */
    size_t count;       /* offset of the count of a list */
    size_t least, most; /* bytes of text, items of a list; most 0: any number */
    double min, max;    /* of a number in JSON; both 0: any that the type can represent */
    double factor;      /* of a number: from the unit in JSON to that of the member; 0: 1 */
    double otherwise;   /* of a number: its default */
    const char *what;   /* a constant; for messages: "a year", "at most 32 names" */
    int first, values;  /* of an enum: the first value that has a name, and their number */
    int variant;        /* for a custom type */
    const char *(*name)(int value);   /* of an enum's value */
    const struct json_field *fields;  /* of a nested struct, or of those of a list */
    const struct json_custom *custom; /* core/json_bind.h */
};

void json_field_copy(const struct json_field *field, const void *from, void *to);
bool json_field_is_known(const struct json_field *field, const void *object);

static inline const void *json_field_member(const struct json_field *field, const void *object)
{
    return (const char *)object + field->offset;
}

/* The member that counts the items of a list. */
static inline size_t *json_field_count(const struct json_field *field, void *object)
{
    return (size_t *)(void *)((char *)object + field->count);
}

/* Numbers of any type as a double; UNKNOWN if it is not a number; a bool is 1 or 0. */
static inline double json_field_number(const struct json_field *field, const void *object)
{
    const void *member = json_field_member(field, object);
    if (field->type == FIELD_NUMBER || field->type == FIELD_INTEGRAL)
        return *(const double *)member;
    if (field->type == FIELD_INTEGER)
        return integer_number(*(const int64_t *)member);
    if (field->type == FIELD_BOOL && *(const int8_t *)member >= 0)
        return *(const int8_t *)member;
    return UNKNOWN;
}
const char *json_field_text(const struct json_field *field,
                            const void *object); /* NULL: unknown, or not text */
const struct jv *json_field_value(const struct json_field *field,
                                  const void *object); /* of a FIELD_JSON that was read; or NULL */

/* ---- JSON ----
 *
 * Fields are written and read in the order of their table, where those of one object are adjacent: each object on a
 * path is opened, or found, once. */

enum { FIELD_DEPTH_MAX = 8, FIELD_NAME_MAX = 64 };

/* Where paths start: below group.name, unless a path begins with "/"; "*" in a path stands for the name.  Without a
 * name all paths start at the top. */
struct json_base {
    const char *group, *name;
};

struct json_field_name {
    const char *bytes;
    size_t length;
};

struct json_field_writer {
    struct json *json; /* with an open object, to which everything is written */
    struct json_base base;
    const char *last; /* the previous path; NULL at first */
    size_t above;     /* length of its parent's path */
    struct json_field_name open[FIELD_DEPTH_MAX];
    size_t depth;
};

/* Opens the objects on `path` and closes the others; returns the key to write. */
const char *json_field_enter(struct json_field_writer *writer, const char *path);
void json_field_writer_end(struct json_field_writer *writer);

/* Puts the value into a tree instead; JSON values are omitted.  Fails only in libipw, for lack of memory. */
enum err json_field_put(const struct json_field *field, struct json_base base, const void *object,
                        struct jv *tree);

struct json_field_reader {
    const struct jv *root;
    struct json_base base;
    const char *last;        /* the previous path; NULL at first */
    size_t above;            /* length of its parent's path */
    const struct jv *parent; /* its parent object; NULL: none */
    const struct jv *found;  /* the last value found in that object */
    struct json_field_name open[FIELD_DEPTH_MAX];
    const struct jv *values[FIELD_DEPTH_MAX]; /* of `open` */
    size_t depth;
};

/* The field's value: at its path or, if there is none, at its former one; NULL if absent. */
const struct jv *json_field_find(struct json_field_reader *reader, const struct json_field *field);
/* The member is unchanged if the value is absent or null. */
void json_field_take(const struct json_field *field, const struct jv *value, void *object);
void json_field_read(struct json_field_reader *reader, const struct json_field *field,
                     void *object);

/* Splits a path into names, the last its own; returns their number, 0: too many. */
size_t json_field_split(const char *path, struct json_base base,
                        struct json_field_name names[static FIELD_DEPTH_MAX]);
/* A name as a string: itself, or a copy in `to`; only the base's name is longer than that, and it ends its string. */
const char *json_field_key(const struct json_field_name *name, char to[static FIELD_NAME_MAX]);

#endif
