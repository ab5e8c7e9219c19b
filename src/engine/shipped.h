/* Models that go by a name: NAME is the file NAME.gguf in the folder that IPW_MODELS names; without that,
 * in share/ipw/models of where the program is installed, or in models/ of the build (what comes with ipw) or
 * third_party/models (what was brought) of the source tree that it was built from.
 * The caller owns the buffers and releases the list. */
#ifndef IPW_ENGINE_SHIPPED_H
#define IPW_ENGINE_SHIPPED_H

#include <stddef.h>

#include "core/err.h"

struct shipped_names {
    char **items; /* sorted, without .gguf */
    size_t count, capacity;
};

/* No folder and an empty one are lists of none. */
enum err shipped_list(struct shipped_names *out, struct error *why) MUST_USE;
void shipped_names_release(struct shipped_names *names);

/* The file that a user means by a model's name: that file when there is one or the name has a slash in
 * it, otherwise the shipped model.  ERR_NOT_FOUND with the near names. */
enum err shipped_find(const char *name, char *path, size_t size, struct error *why) MUST_USE;

#endif
