/* Figures, words and lists out of a hardware file: what stands there is checked on the way, and an
 * error names the file, the key and the rule.  Everything points into the JSON tree. */
#ifndef IPW_CATALOG_HARDWARE_ENTRY_H
#define IPW_CATALOG_HARDWARE_ENTRY_H

#include <stddef.h>

#include "core/err.h"
#include "catalog/hardware.h"

struct jv;

/* Where in which file we are, for errors; a part of a file knows the whole that it is in. */
struct entry {
    const char *file;
    const struct entry *outer; /* NULL at the top */
    const char *key;           /* of this object in the outer one; "" at the top */
    struct error *why;
};

struct entry entry_inside(const struct entry *outer, const char *key);

/* "FILE: matrix.bf16.peak: PROBLEM"; key may be "" for the object itself. */
enum err entry_refuse(const struct entry *at, const char *key, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Of what an object may hold: a key that is none of these, or stands twice, is refused. */
enum err entry_keys(const struct entry *at, const struct jv *object, const char *const *known,
                    size_t count) MUST_USE;

/* One line of text that is there and not empty. */
enum err entry_line(const struct entry *at, const struct jv *object, const char *key,
                    const char **out) MUST_USE;

/* Its place in names, the nearest of which is suggested. */
enum err entry_word(const struct entry *at, const struct jv *object, const char *key,
                    const char *const *names, size_t count, size_t *out) MUST_USE;

enum entry_quantity {
    ENTRY_RATE,      /* tflops, gflops, tops */
    ENTRY_BANDWIDTH, /* gb_per_s, tb_per_s, mb_per_s */
    ENTRY_CAPACITY,  /* gib, mib, kib, gb, mb */
    ENTRY_ENERGY,    /* pj, nj */
    ENTRY_POWER,     /* w, mw */
    ENTRY_TIME,      /* us, ns, ms */
    ENTRY_COUNT,     /* no unit, 1 or more */
    ENTRY_SHARE,     /* no unit, above 0 and at most 1 */
};

/* {"value", "unit", "evidence", "plus_minus", "source"} in SI units; missing or null is UNKNOWN. */
enum err entry_figure(const struct entry *outer, const struct jv *object, const char *key,
                      enum entry_quantity quantity, struct hardware_figure *out) MUST_USE;

/* A plain number above 0, watts or a ratio; `otherwise` where it is missing. */
enum err entry_number(const struct entry *at, const struct jv *object, const char *key,
                      double otherwise, double *out) MUST_USE;

#endif
