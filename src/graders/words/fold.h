/* Folding: making texts equal that differ only in what a grader was told not to mind.
 * The results are added to a struct text of the caller's. */
#ifndef IPW_GRADERS_WORDS_FOLD_H
#define IPW_GRADERS_WORDS_FOLD_H

#include <stdbool.h>

#include "core/err.h"
#include "core/slice.h"

struct params;
struct text;

enum fold_strip {
    FOLD_NOTHING,     /* white space at the ends goes, runs of it become one space: always done */
    FOLD_EDGES,       /* also marks at both ends: . , ; : ! ? quotes, and Markdown's * _ ` */
    FOLD_PUNCTUATION, /* all punctuation */
    FOLD_ALL,         /* all punctuation and all white space */
};

struct fold {
    bool keep_case;
    enum fold_strip strip;
};

/* The parameters "case" (ignore or keep) and "strip" (none, edges, punctuation, all); what is not
 * given stays as *fold has it. */
enum err fold_read(const struct params *params, struct fold *fold, struct error *why) MUST_USE;

/* Adds the folded text.  Typographic quotes and dashes become their ASCII kin. */
void fold_add(struct text *out, const struct fold *fold, struct slice from);

/* Without the marks that FOLD_EDGES takes away. */
struct slice fold_edges(struct slice from);

/* Compares both folded.  A text of nothing but marks is compared as it stands. */
enum err fold_equal(const struct fold *fold, struct slice a, struct slice b, bool *equal,
                    struct error *why) MUST_USE;

#endif
