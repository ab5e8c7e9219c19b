/* Turns the bytes of generated tokens into text: whole UTF-8 characters only, and nothing from a stop
 * string on.  A struct stop_filter owns its buffers and borrows the stop strings: zero-initialize,
 * stop_filter_release. */
#ifndef IPW_ENGINE_STOP_FILTER_H
#define IPW_ENGINE_STOP_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/text.h"

struct stop_filter {
    char *const *stops; /* ends with NULL; may be NULL */
    struct text text;   /* ready for the caller, who clears it */
    bool has_stopped;   /* a stop string was found; it and what follows are dropped */
    struct text held;   /* may become part of a character or of a stop string */
};

/* Adds the bytes of a token; what cannot be part of more is appended to filter->text.  An invalid byte
 * becomes U+FFFD. */
enum err stop_filter_add(struct stop_filter *filter, const char *bytes, size_t length) MUST_USE;

/* No more will follow: what was held is appended too. */
enum err stop_filter_end(struct stop_filter *filter) MUST_USE;

void stop_filter_release(struct stop_filter *filter);

#endif
