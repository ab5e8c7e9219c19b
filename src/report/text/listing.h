/* Lists of drivers, models and hardware, as text or JSON.  A struct listing owns its text: release it with
 * listing_release. */
#ifndef IPW_REPORT_LISTING_H
#define IPW_REPORT_LISTING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/json.h"
#include "core/text.h"

struct hardware;
struct param_spec;

struct listing_row {
    const char *name, *summary;
    const struct param_spec *params; /* may be NULL */
    char missing[240];               /* why it is unavailable; "" if it is available */
    char note[240];                  /* what a user must know of it; "" */
};

struct listing {
    struct text text;
    struct json json_writer;
    bool json, verbose, color;
    bool brief;    /* text: names alone */
    size_t column; /* brief: what the line holds */
    bool open;     /* a kind has begun */
};

void listing_init(struct listing *listing, bool json, bool verbose, bool color);
void listing_begin(struct listing *listing, const char *kind, const char *what);
void listing_add(struct listing *listing, const struct listing_row *row);
/* Brief: how many there are, in place of their names. */
void listing_count(struct listing *listing, size_t count);
void listing_end(struct listing *listing);
void listing_release(struct listing *listing);

/* All models of the catalog with their size, and the file formats that models are read from. */
void listing_models(struct listing *listing);
/* Only these, in detail; ERR_NOT_FOUND for an unknown name. */
enum err listing_models_named(struct listing *listing, const char **names, size_t count,
                              struct error *why) MUST_USE;

/* The runs in a folder; brings its run index up to date. */
enum err listing_runs(struct listing *listing, const char *parent, struct error *why) MUST_USE;

/* Hardware as text (its JSON is catalog/hardware_json.h): a table of all, or one device. */
enum err listing_hardware_table(bool color, struct text *out, struct error *why) MUST_USE;
void listing_hardware_details(const struct hardware *hardware, bool color, struct text *out);

#endif
