/* Templates: text with fields of the row in braces, "{question}\n{options}".  \n, \t, \\, \{ and \}
 * are what they are in C.  The template and the texts are the caller's. */
#ifndef IPW_DATASETS_ROWS_TEMPLATE_H
#define IPW_DATASETS_ROWS_TEMPLATE_H

#include "core/err.h"

struct text;

/* Adds the text of a field; ERR_BAD_VALUE when there is none. */
struct template_fields {
    enum err (*add)(void *context, const char *name, struct text *out, struct error *why);
    void *context;
};

/* ERR_USAGE for a brace that is not closed. */
enum err template_expand(const char *template, const struct template_fields *fields,
                         struct text *out, struct error *why) MUST_USE;

#endif
