/* The files of data/hardware and data/models, which are part of the program.  Each is parsed when it is first needed,
 * and kept: a start that needs no device parses none.  Their ids are known without parsing, and so are the names in
 * them, which are found in their text.
 *
 * Everything here is the program's and lives as long as it; any thread may call. */
#ifndef IPW_CATALOG_CATALOG_FILE_H
#define IPW_CATALOG_CATALOG_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

enum catalog_kind {
    CATALOG_DEVICE, /* data/hardware/ID.json */
    CATALOG_PEAKS,  /* data/hardware/peaks-*.json: peak rates of further devices */
    CATALOG_POWER,  /* data/hardware/power-*.json: power of further processors */
    CATALOG_MODELS, /* data/models/ID.json */
};

struct json_field;

struct catalog_file {
    enum catalog_kind kind;
    const char *id, *begin, *end; /* the file's name, its text, which a NUL follows */
    _Atomic(void *) parsed;       /* NULL: not yet */
};

/* In the order of their ids. */
extern struct catalog_file HARDWARE_FILES[], MODEL_FILES[];
extern const size_t HARDWARE_FILE_COUNT, MODEL_FILE_COUNT;

/* How a file is parsed. */
struct catalog_format {
    /* `name` is for messages; *out is allocated, and never freed. */
    enum err (*parse)(const struct catalog_format *format, const char *name, const char *bytes,
                      size_t length, void **out, struct error *why);
    /* For catalog_list_parse: a struct of `size` bytes that is bound to the file by `fields`, and begins with a struct
     * jv *tree, which has its strings; and the rules for more than one value, or NULL. */
    const struct json_field *fields;
    size_t size;
    enum err (*check)(void *list, struct error *why);
};

extern const struct catalog_format CATALOG_PEAK_LIST, CATALOG_POWER_LIST, CATALOG_MODEL_LIST;

/* The file, parsed once.  NULL: out of memory; the next call tries again. */
void *catalog_file_get(struct catalog_file *file, const struct catalog_format *format);

/* catalog_list_free frees *out. */
enum err catalog_list_parse(const struct catalog_format *format, const char *name,
                            const char *bytes, size_t length, void **out, struct error *why)
    MUST_USE;
void catalog_list_free(const struct catalog_format *format, void *list);

/* Whether a key occurs in it, which is known without parsing. */
bool catalog_file_has(const struct catalog_file *file, const char *key);

/* Names in the file, found without parsing it. */
enum catalog_names {
    CATALOG_ALIASES,    /* "aliases" of a device */
    CATALOG_PEAK_NAMES, /* "match" of a device, or of devices in a list */
    CATALOG_PROCESSORS, /* "match" of a processor, or of processors in a list */
};
struct catalog_name {
    const char *at, *end; /* what is left of the text */
    bool is_in_list;      /* `at` is in an array of names */
    enum catalog_names of;
    char text[96];
};
struct catalog_name catalog_names(const struct catalog_file *file, enum catalog_names of);
/* False at the end. */
bool catalog_name_next(struct catalog_name *name);

#endif
