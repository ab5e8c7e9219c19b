/* Libraries opened at run time, with declarations of our own: the program builds without vendor headers and runs where
 * the library is missing.  A struct dl owns the handle. */
#ifndef IPW_PORT_DL_H
#define IPW_PORT_DL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct dl {
    void *handle;
    const char *name; /* the one that opened: the caller's, which must remain */
};

/* One function to look up.  slot points to a function pointer variable, set to NULL when an
 * optional symbol is missing. */
struct dl_symbol {
    const char *name;
    void *slot; /* really a pointer to a function pointer; copied byte-wise */
    bool required;
};

/* Tries names in order (NULL-terminated list) until one opens; if the environment variable is set, its value is the only
 * name.  `variable` may be NULL. */
enum err dl_open(struct dl *dl, const char *variable, const char *const *names, struct error *why)
    MUST_USE;

/* Fills every slot; a missing required symbol is ERR_UNSUPPORTED. */
enum err dl_load(struct dl *dl, const struct dl_symbol *symbols, size_t count, struct error *why)
    MUST_USE;

void dl_close(struct dl *dl);

/* A library that is opened when it is first needed, and never closed: it may have started threads and registered handlers. */
struct dl_library {
    const char *const *names;
    const struct dl_symbol *symbols; /* all required */
    size_t count;
    const char *absent;  /* the error where none of the names opens: how to install it */
    bool (*start)(void); /* optional: called once after opening; false: it cannot be initialized */
    /* dl_library_open's: */
    pthread_mutex_t lock;
    bool was_tried;
    struct error why;
};

/* Any thread; every call after the first gives the same result. */
enum err dl_library_open(struct dl_library *library, struct error *why) MUST_USE;

/* The path of a library loaded into this process whose path contains `part`, such as "/libfoo-", to be freed; NULL when
 * there is none, or in libipw out of memory. */
char *dl_loaded(const char *part);

#endif
