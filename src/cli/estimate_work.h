/* What `ipw estimate` is to compute: every batch, prompt and context that the command line names, as works.
 *
 * Ownership: zeroed structs are empty; each has a release that takes everything back.  Works borrow from the
 * options and the model. */
#ifndef IPW_CLI_ESTIMATE_WORK_H
#define IPW_CLI_ESTIMATE_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "cli/estimate_ask.h"
#include "core/err.h"
#include "estimate/workload.h"

/* Numbers out of "8", "1,8,32", "1..64" or "1..64x2". */
struct estimate_numbers {
    int64_t *items; /* NULL: none were given */
    size_t count;
};

struct estimate_sizes {
    struct estimate_numbers batches, prompts, contexts;
};

/* As the options have them; --sweep brings batches of its own.  ERR_USAGE for what is no list of numbers. */
enum err estimate_sizes_ask(const struct estimate_options *options, struct estimate_sizes *out,
                            struct error *why) MUST_USE;
void estimate_sizes_release(struct estimate_sizes *sizes);

struct estimate_works {
    struct workload_spec *items;
    size_t count; /* at least 1 */
};

/* Every batch of every demand: of each prompt, of each context.  Batches that --sweep brought are dropped where
 * the file or --dim has one.  What the model was not trained for is warned
 * of, and estimated. */
enum err estimate_works_make(const struct estimate_options *options, struct estimate_sizes *sizes,
                             const struct model *model, struct estimate_works *out,
                             struct error *why) MUST_USE;
void estimate_works_release(struct estimate_works *works);

#endif
