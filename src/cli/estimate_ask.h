/* What `ipw estimate` is asked: words of the command line made into devices and formats (sizes of work:
 * estimate_work.h).
 *
 * Ownership: a zeroed struct estimate_asked is empty; estimate_asked_release takes everything back. */
#ifndef IPW_CLI_ESTIMATE_ASK_H
#define IPW_CLI_ESTIMATE_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/options.h"
#include "core/err.h"
#include "core/params.h"
#include "estimate/budget.h"
#include "catalog/hardware.h"
#include "estimate/estimate_grid.h"

enum { ESTIMATE_TOP_USUAL = 0x7fffffff }; /* nobody gave --top */

struct estimate_options {
    const char *model, *precision, *batch, *prompt_tokens, *context, *phase, *graph, *plot, *format,
        *output;
    struct option_list hardware, hardware_files, dim_words;
    struct params dims;
    unsigned output_tokens, image, devices, top;
    double max_latency_ms, max_energy_mj, max_memory_gb, max_power_w;
    bool compare, sweep, no_fusion, compat, json, verbose;
};

/* What formats were asked for. */
struct estimate_formats {
    struct {
        enum precision precision;
        bool keeps_stored;
    } items[PRECISION_COUNT + 1];
    size_t count; /* 0: what suits each device */
};

struct estimate_asked {
    struct hardware *hardware;
    bool *is_catalogued; /* each: found in the catalogue, not read from a file */
    size_t hardware_count;
    struct estimate_formats formats;
    struct grid_candidate *candidates;
    size_t candidate_count;
};

/* Devices and formats as the options name them.  ERR_USAGE and ERR_NOT_FOUND are the user's to
 * mend. */
enum err estimate_ask(const struct estimate_options *options, struct estimate_asked *out,
                      struct error *why) MUST_USE;
/* The candidates, now that it is known whether weights of the model have a format of their own. */
enum err estimate_ask_candidates(const struct estimate_options *options, bool has_stored,
                                 struct estimate_asked *asked, struct error *why) MUST_USE;
struct budget estimate_ask_budget(const struct estimate_options *options);
void estimate_asked_release(struct estimate_asked *asked);

#endif
