/* Lack of memory has two answers.  The program ends, in one place (port/out_of_memory.h), so that nothing above has to
 * handle it: modules that are not linked into libipw allocate with core/xalloc.h and check nothing.  libipw lives in
 * another program's process, and returns ERR_NO_MEMORY: modules that are linked into it allocate with these functions,
 * which return NULL there, and never in the program. */
#ifndef IPW_CORE_MEMORY_H
#define IPW_CORE_MEMORY_H

#include <stddef.h>

/* Called with the size that could not be allocated, 0 if it is not known; does not return.  Set once, before any thread starts. */
typedef void memory_ending(size_t size);
void memory_end_with(memory_ending *ending);

/* realloc and calloc, of at least one byte. */
void *memory_resize(void *block, size_t size);
void *memory_zeroed(size_t count, size_t size);
char *memory_string(const char *string);              /* a copy */
char *memory_bytes(const char *bytes, size_t length); /* a copy, and a NUL */

/* Frees an array of strings that were allocated each by itself. */
void memory_free_strings(char **strings, size_t count);

/* What another library allocated: NULL is treated as if it had been allocated here. */
void *memory_need(void *allocated);

/* Counts an allocation that another library could not make. */
void memory_failed(void);

/* How many allocations have failed, for an operation whose parts tolerate errors: it must not succeed with less than it
 * would have had with enough memory. */
unsigned memory_failures(void);

#endif
