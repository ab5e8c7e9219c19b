/* Where a record has a column's values: the paths of run_columns.def, split into names.
 * A struct places owns its text: places_init, places_release; the names point into it. */
#ifndef IPW_RUNDIR_RUN_TABLE_PLACES_H
#define IPW_RUNDIR_RUN_TABLE_PLACES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct jv;

enum { PLACE_NAMES_MOST = 6, PLACES_MOST = 4 };

struct place {
    bool from_top; /* else below the model's metrics */
    size_t count;
    const char *names[PLACE_NAMES_MOST];
    const char *inside; /* a key of the object that the text there holds as JSON; or NULL */
};

struct places {
    char *text;
    size_t count;
    struct place items[PLACES_MOST];
};

enum err places_init(struct places *places, const char *paths) MUST_USE;
void places_release(struct places *places);

/* The value at a place, or NULL.  Of one inside a text: the text. */
const struct jv *place_find(const struct place *place, const struct jv *record,
                            const struct jv *metrics);

#endif
