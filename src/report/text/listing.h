/* Lists of drivers, as text or as JSON.  listing_init gives a listing that listing_release takes
 * back. */
#ifndef IPW_REPORT_LISTING_H
#define IPW_REPORT_LISTING_H

#include <stdbool.h>

#include "core/json.h"
#include "core/text.h"

struct param_spec;

struct listing_row {
    const char *name, *summary;
    const struct param_spec *params; /* may be NULL */
    char missing[240];               /* why it cannot be used here; "" when it can */
};

struct listing {
    struct text text;
    struct json json_writer;
    bool json, verbose, colour;
    bool open; /* a kind has begun */
};

void listing_init(struct listing *listing, bool json, bool verbose, bool colour);
void listing_begin(struct listing *listing, const char *kind, const char *what);
void listing_add(struct listing *listing, const struct listing_row *row);
void listing_end(struct listing *listing);
void listing_release(struct listing *listing);

#endif
