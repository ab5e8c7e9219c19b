/* Allocation that does not fail: without memory the program ends (core/memory.h).  Not for modules that are linked into
 * libipw, nor for a size that came from outside (a request, a file, a reply), which is bounded and refused before.  The
 * caller frees the result with free. */
#ifndef IPW_CORE_XALLOC_H
#define IPW_CORE_XALLOC_H

#include <stdarg.h>
#include <stddef.h>

#include "core/err.h"

#define NEVER_NULL __attribute__((returns_nonnull, warn_unused_result))

void *xmalloc(size_t size) NEVER_NULL;
void *xcalloc(size_t count, size_t size) NEVER_NULL;
#define XNEW(pointer)                                                                              \
    xcalloc(1, sizeof *(pointer)) /* zeroed, for an initializer of `pointer` too */
void *xrealloc(void *block, size_t size) NEVER_NULL;
void *xreallocarray(void *block, size_t count, size_t size) NEVER_NULL;
void *xmemdup(const void *bytes, size_t length) NEVER_NULL;
char *xstrdup(const char *string) NEVER_NULL;
char *xstrndup(const char *bytes, size_t length) NEVER_NULL; /* `length` bytes, and a NUL */

char *xformat(const char *format, ...) NEVER_NULL PRINTF_LIKE(1, 2);
char *xvformat(const char *format, va_list arguments) NEVER_NULL PRINTF_LIKE(1, 0);
/* directory/name; `name` alone where the directory is "" or the name is absolute. */
char *path_join(const char *directory, const char *name) NEVER_NULL;

/* Replaces *field, which owns its string, by a copy; NULL is stored as "". */
void str_set(char **field, const char *value);
/* The same with the bytes of a text, which is then empty. */
struct text;
void str_take(char **field, struct text *value);

/* What another library allocated, and is NULL only for lack of memory. */
void *xneed(void *allocated) NEVER_NULL;

/* Ends the program, where another library reports lack of memory by a code. */
_Noreturn void end_without_memory(void);

/* Ensures capacity for one more element after `count`; returns the array, perhaps moved. */
void *xgrow(void *items, size_t *capacity, size_t count, size_t item_size) NEVER_NULL;
/* The same for a variable or member that has the array. */
#define XGROW(items, count, capacity)                                                              \
    ((items) = xgrow((void *)(items), &(capacity), count, sizeof *(items)))
/* Appends an element, which is not initialized, and returns its address:
 *
 *     *XADD(list->items, list->count, list->capacity) = item;
 *
 * `item` must not depend on the list, since it may be evaluated before or after. */
#define XADD(items, count, capacity) (XGROW(items, count, capacity), &(items)[(count)++])

#endif
