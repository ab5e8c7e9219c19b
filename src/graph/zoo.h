/* Architectures that are built in code, by the names that torchvision and Hugging Face give them.  The
 * table (zoo.def) is constant and lasts as long as the program; graphs are the caller's. */
#ifndef IPW_GRAPH_ZOO_H
#define IPW_GRAPH_ZOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/graph.h"
#include "graph/reader.h"

struct zoo_entry {
    const char *name;    /* "resnet18" */
    const char *family;  /* "resnet" */
    const char *summary; /* one line */
    const char *source;  /* whose architecture, names and published figures these are */
    /* Defaults; 0: it has no such thing. */
    int64_t image, tokens, context;
    /* Builds and finishes a graph of this name; every setting that it has is filled in. */
    enum err (*build)(const char *name, const struct graph_options *setting, struct graph *out,
                      struct error *why);
    int64_t context_length; /* maximum of a decoder; 0: unknown, or no longer one can be built */
};

size_t zoo_count(void);
const struct zoo_entry *zoo_at(size_t index);

/* By its name or another one of it: case, "-", "_" and "." do not count, and an organisation before a
 * slash may be given ("microsoft/resnet-50").  NULL: no such architecture. */
const struct zoo_entry *zoo_find(const char *word);
const char *
zoo_nearest(const char *word); /* the name that was meant most likely; NULL: none is near */

static inline bool zoo_has_phases(const struct zoo_entry *entry)
{
    return entry->context > 0;
}

/* Fills in defaults, refuses what no model can be run with. */
enum err zoo_build(const struct zoo_entry *entry, struct graph_options *setting, struct graph *out,
                   struct error *why) MUST_USE;

#endif
