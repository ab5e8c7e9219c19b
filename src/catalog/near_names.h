/* Names of products that someone who wrote another may have meant, for messages.  A near miss is never of another
 * generation or size: h200 is not what h100 stands for, nor a model of 8 billion parameters one of 7.  So the numbers of
 * a name must agree, and only its letters may be misspelled or missing. */
#ifndef IPW_CATALOG_NEAR_NAMES_H
#define IPW_CATALOG_NEAR_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum { NEAR_NAMES_MAX = 4 };

/* Writes up to NEAR_NAMES_MAX such names that contain the word, or differ from it by a few letters, nearest first: "a,
 * b or c".  False, and "", if there is none. */
bool near_names(const char *word, const char *const *names, size_t count, char *to, size_t size);

#endif
