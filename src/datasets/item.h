/* Filling an item.  The item owns every string that these functions put into it. */
#ifndef IPW_DATASETS_ITEM_H
#define IPW_DATASETS_ITEM_H

#include "core/err.h"

struct item;
struct text;

/* Replaces *field by a copy; NULL counts as "". */
enum err item_set(char **field, const char *value) MUST_USE;

/* Replaces *field by what a text holds, and empties the text.  ERR_NO_MEMORY when the text had
 * already failed. */
enum err item_take(char **field, struct text *value) MUST_USE;

/* Gives every field that is still NULL its default: "", "general", "{}". */
enum err item_complete(struct item *item) MUST_USE;

#endif
