/* Reading back what samples_csv.h wrote: the history of a session, into a sampler of history.  Nothing
 * here keeps state. */
#ifndef IPW_RUNNER_SAMPLES_READ_H
#define IPW_RUNNER_SAMPLES_READ_H

#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

struct sampler;

struct samples_found {
    uint64_t rows;    /* that became points */
    uint64_t damaged; /* rows that cannot be used, or are of a channel that the sampler lacks */
    nanos last;       /* the newest of the channels that give joules; INT64_MIN for none */
};

/* Puts every row into the channel of its name; t_s 0 becomes `zero`.  A last line without its newline was
 * cut by a kill and is left out; sums are running sums, so a row that is missing costs resolution and no
 * joules.  ERR_NOT_FOUND without the file, ERR_BAD_VALUE when it has not the columns. */
enum err samples_read(const char *path, struct sampler *sampler, nanos zero,
                      struct samples_found *out, struct error *why) MUST_USE;

#endif
