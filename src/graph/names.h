/* Strings that last as long as their graph, in blocks: a hundred thousand names are a few allocations.
 * names_release takes everything back. */
#ifndef IPW_GRAPH_NAMES_H
#define IPW_GRAPH_NAMES_H

#include <stddef.h>

struct names_block;

struct names {
    struct names_block *last;
};

char *names_keep(struct names *names, const char *bytes, size_t length); /* NULL: no memory */
void names_release(struct names *names);

#endif
