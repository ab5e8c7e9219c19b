/* The candidates that a user asks for: devices of the catalog or of files, each in every precision wanted.
 *
 * Ownership: a zeroed struct candidates is empty; candidates_release frees everything. */
#ifndef IPW_ESTIMATE_CANDIDATES_H
#define IPW_ESTIMATE_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>

#include "catalog/hardware.h"
#include "core/err.h"
#include "estimate/estimate_grid.h"

/* As on the command line; NULL and 0: not given. */
struct candidate_options {
    const char *const *hardware; /* ids with commas between, or "all" */
    size_t hardware_count;
    const char *const *files; /* hardware files */
    size_t file_count;
    const char *precision; /* names with commas between; "stored": that of the file */
    unsigned devices;      /* that share the model */
    bool compare;          /* without a device: the whole catalog */
    bool sweep;            /* without a precision: all that the device offers */
};

struct candidates {
    struct hardware *hardware;
    bool *is_catalogued; /* by device: of the catalog, not of a file */
    size_t hardware_count;
    struct {
        enum precision precision;
        bool is_stored;
    } precisions[PRECISION_COUNT + 1]; /* as given */
    size_t precision_count;            /* 0: the default of each device */
    struct grid_candidate *items;      /* by candidates_make */
    size_t count;
};

/* Finds devices and precisions.  Without a device given, hardware_count is 0 and the caller adds one.
 * ERR_USAGE and ERR_NOT_FOUND are mistakes of the user. */
enum err candidates_find(const struct candidate_options *options, struct candidates *out,
                         struct error *why) MUST_USE;

/* Takes ownership of a device of the catalog. */
void candidates_add(struct candidates *candidates, const struct hardware *hardware);

/* Combines devices and precisions into items, once it is known whether the model has stored precisions. */
enum err candidates_make(const struct candidate_options *options, bool has_stored,
                         struct candidates *candidates, struct error *why) MUST_USE;
void candidates_release(struct candidates *candidates);

#endif
