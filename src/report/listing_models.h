/* The models that are known by name, with what they count to at their default size, and the kinds of
 * files that models are read from.  Added to a listing of the caller's. */
#ifndef IPW_REPORT_LISTING_MODELS_H
#define IPW_REPORT_LISTING_MODELS_H

struct listing;

void listing_models(struct listing *listing);

#endif
