/* The models that are known by name, with what they count to at their default size, and the kinds of
 * files that models are read from.  Added to a listing of the caller's. */
#ifndef IPW_REPORT_LISTING_MODELS_H
#define IPW_REPORT_LISTING_MODELS_H

#include <stddef.h>

#include "core/err.h"

struct listing;

void listing_models(struct listing *listing);
/* These alone, with all that is known of each; ERR_NOT_FOUND for a name that is none. */
enum err listing_models_named(struct listing *listing, const char **names, size_t count,
                              struct error *why) MUST_USE;

#endif
