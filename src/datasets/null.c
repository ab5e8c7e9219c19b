/* The null dataset: one question, repeated.  For the overhead of a run, for tests, and as the smallest
 * example of a driver. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "datasets/dataset.h"

struct null {
    char *problem;
    uint64_t yielded, count;
};

static void null_close(struct dataset *dataset)
{
    struct null *null = dataset->state;
    free(null->problem);
    free(null);
}

static enum err null_open(const struct dataset_config *config, struct dataset *out,
                          struct error *why)
{
    struct params_reader read = {config->params, why, ERR_OK};
    const char *problem = params_get(config->params, "problem");
    struct null *null = XNEW(null);
    out->state = null;
    null->count = params_count(&read, "count", 8, 1, INT64_MAX);
    str_set(&null->problem, problem && *problem ? problem : "Hello.");
    if (read.err) {
        null_close(out);
        return read.err;
    }
    out->count = (int64_t)null->count;
    return ERR_OK;
}

static enum err null_next(struct dataset *dataset, struct item *out, bool *end, struct error *why)
{
    struct null *null = dataset->state;
    char id[24];
    (void)why;
    *end = null->yielded == null->count;
    if (*end)
        return ERR_OK;
    chars_format(id, "%" PRIu64, null->yielded++);
    str_set(&out->id, id);
    str_set(&out->problem, null->problem);
    return ERR_OK;
}

static const struct param_spec PARAMS[] = {
    {"count", "ITEMS", "number of items (8)"},
    {"problem", "TEXT", "the prompt (Hello.)"},
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_null = {
    .name = "null",
    .summary = "one short question, repeated; for the overhead of a run",
    .params = PARAMS,
    .open = null_open,
    .next = null_next,
    .close = null_close,
};
