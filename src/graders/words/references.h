/* All the answers that count as right: the expected one, and those in the item's metadata.
 * A struct references owns the parsed metadata: references_release. */
#ifndef IPW_GRADERS_WORDS_REFERENCES_H
#define IPW_GRADERS_WORDS_REFERENCES_H

#include <stddef.h>

#include "core/err.h"

struct grading;
struct jv;
struct params;

enum { REFERENCES_MAX = 64 };

struct references {
    const char *items[REFERENCES_MAX]; /* the expected answer first */
    unsigned count;
    struct jv *metadata;
};

#define REFERENCES_PARAM                                                                           \
    {"references", "PATH", "where the metadata lists more right answers (references)"}

/* The parameter "references": the path for references_open. */
enum err references_read(const struct params *params, char *path, size_t size, struct error *why)
    MUST_USE;

/* `path` says where in the metadata more of them stand: an array of strings, "answers.text".
 * Metadata that is missing, or has no such array, adds none; what is more than fits is left out. */
void references_open(struct references *references, const struct grading *what, const char *path);
void references_release(struct references *references);

#endif
