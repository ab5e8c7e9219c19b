/* Architectures built in code, by the names of torchvision and Hugging Face.  The table (zoo.def) is constant; graphs
 * belong to the caller. */
#ifndef IPW_GRAPH_ZOO_ZOO_H
#define IPW_GRAPH_ZOO_ZOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/reader.h"

struct build;

struct zoo_entry {
    const char *name;               /* "resnet18" */
    const char *family;             /* "resnet" */
    const char *summary;            /* one line */
    const char *source;             /* origin of architecture, names and published figures */
    int64_t image, tokens, context; /* defaults; 0: not applicable */
    /* Adds the nodes of a graph of this name and returns its output; NULL: one of the model catalog. */
    tensor_id (*build)(struct build *b, const struct graph_options *options);
    int64_t context_length; /* maximum of a decoder; 0: unknown, or the default */
};

size_t zoo_count(void);
const struct zoo_entry *zoo_at(size_t index);

/* Finds an entry by its name or an alternative one, ignoring case, "-", "_", "." except between digits, and an organization before a slash
 * ("microsoft/resnet-50").  NULL: unknown. */
const struct zoo_entry *zoo_find(const char *source);
/* Writes the names that may have been meant, "a, b or c"; false: there are none. */
bool zoo_suggest(const char *source, char *to, size_t size);

static inline bool zoo_has_phases(const struct zoo_entry *entry)
{
    return entry->context > 0;
}

/* Sets defaults, and rejects options that no model supports. */
enum err zoo_build(const struct zoo_entry *entry, struct graph_options *options, struct graph *out,
                   struct error *why) MUST_USE;

#endif
