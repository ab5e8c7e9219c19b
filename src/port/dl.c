#define _GNU_SOURCE
#include "port/dl.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/text.h"

enum err dl_open(struct dl *dl, const char *variable, const char *const *names, struct error *why)
{
    const char *const given[] = {variable ? getenv(variable) : NULL, NULL};
    char first_failure[200] = "";
    *dl = (struct dl){0};
    if (given[0] && *given[0])
        names = given;
    for (; *names; names++) {
        dl->handle = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (dl->handle) {
            dl->name = *names;
            return ERR_OK;
        }
        const char *message = dlerror();
        if (!first_failure[0] && message)
            chars_copy(first_failure, message);
    }
    return err_set(why, ERR_ABSENT, "%s",
                   first_failure[0] ? first_failure : "no library name given");
}

enum err dl_load(struct dl *dl, const struct dl_symbol *symbols, size_t count, struct error *why)
{
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(dl->handle, symbols[i].name);
        /* ISO C has no cast from object to function pointer; POSIX says the bytes are the same. */
        memcpy(symbols[i].slot, &address, sizeof address);
        if (!address && symbols[i].required)
            return err_set(why, ERR_UNSUPPORTED, "%s has no %s", dl->name, symbols[i].name);
    }
    return ERR_OK;
}

void dl_close(struct dl *dl)
{
    if (dl->handle)
        dlclose(dl->handle);
    *dl = (struct dl){0};
}

struct search {
    const char *part;
    char *path;
};

static int match_loaded(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct search *search = context;
    if (!info->dlpi_name || !strstr(info->dlpi_name, search->part))
        return 0;
    search->path = memory_string(info->dlpi_name);
    return 1;
}

char *dl_loaded(const char *part)
{
    struct search search = {.part = part};
    dl_iterate_phdr(match_loaded, &search);
    return search.path;
}

/* The result is library->why. */
static void try_library(struct dl_library *library)
{
    struct dl dl;
    struct error inner;
    if (dl_open(&dl, NULL, library->names, &inner))
        err_set(&library->why, ERR_UNSUPPORTED, "%s", library->absent);
    else if (!dl_load(&dl, library->symbols, library->count, &library->why) && library->start &&
             !library->start())
        err_set(&library->why, ERR_UNSUPPORTED, "%s cannot be initialized", dl.name);
    library->was_tried = true;
}

enum err dl_library_open(struct dl_library *library, struct error *why)
{
    pthread_mutex_lock(&library->lock);
    if (!library->was_tried)
        try_library(library);
    pthread_mutex_unlock(&library->lock);
    const struct error *found = &library->why;
    return found->code ? err_set(why, found->code, "%s", found->text) : ERR_OK;
}
