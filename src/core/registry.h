/* Lookup by a name that the user typed: drivers, analyses, plots and other named entries; the error suggests the
 * nearest name.  Nothing here owns memory. */
#ifndef IPW_CORE_REGISTRY_H
#define IPW_CORE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

/* The entry of that name in a NULL-terminated list of pointers to structs whose first member is their name, such as
 * SENSOR_DRIVERS; or NULL, with *why (which may be NULL) set as registry_unknown does. */
const void *registry_find(const char *kind, const void *list, const char *name, enum err code,
                          struct error *why);

/* Whether the first `count` of a list of such pointers include this entry. */
bool registry_has(const void *list, size_t count, const void *entry);

/* "unknown KIND 'NAME': did you mean 'OTHER'?", or the known names when none is similar; returns code. */
enum err registry_unknown(const char *kind, const char *name, const char *const *names,
                          size_t count, enum err code, struct error *why);

/* Levenshtein distance; 64 for longer names. */
size_t name_distance(const char *a, const char *b);

/* The entry of names[] that the user most likely meant, or NULL when none is similar. */
const char *nearest_name(const char *word, const char *const *names, size_t count);

#endif
