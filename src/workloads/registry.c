/* The list of workloads, opening one with validated parameters, and one query from its input to its answer. */
#include <math.h>

#include "core/registry.h"
#include "core/text.h"
#include "core/units.h"
#include "wire/completion.h"
#include "workloads/workload.h"

#define WORKLOAD(name) extern const struct workload_driver workload_##name;
#include "workloads/workloads.def"
#undef WORKLOAD

const struct workload_driver *const WORKLOAD_DRIVERS[] = {
#define WORKLOAD(name) &workload_##name,
#include "workloads/workloads.def"
#undef WORKLOAD
    NULL,
};

const struct workload_driver *workload_driver_find(const char *name, struct error *why)
{
    return registry_find("workload", WORKLOAD_DRIVERS, name, ERR_USAGE, why);
}

enum err workload_open(const struct workload_driver *driver, const struct workload_config *config,
                       struct workload *out, struct error *why)
{
    char owner[64];
    *out = (struct workload){0};
    chars_format(owner, "workload %s", driver->name);
    enum err err = params_check(config->params, driver->params, owner, why);
    if (err)
        return err;
    out->driver = driver;
    err = driver->open(config, out, why);
    if (err)
        *out = (struct workload){0};
    return err;
}

void workload_close(struct workload *workload)
{
    if (workload->driver)
        workload->driver->close(workload);
    *workload = (struct workload){0};
}

void workload_query_begin(struct workload_query *query)
{
    query->state = NULL;
    query->images = query->audio_s = query->denoise_steps = UNKNOWN;
    query->input_tokens = query->output_tokens = -1;
}

enum err workload_query_end(struct workload *workload, struct workload_query *query,
                            struct completion *out, struct error *why)
{
    enum err err = workload->driver->finish(workload, query, out, why);
    out->images = query->images;
    out->audio_s = query->audio_s;
    out->denoise_steps = query->denoise_steps;
    out->prompt_tokens = query->input_tokens;
    out->output_tokens = query->output_tokens;
    return err;
}

enum err workload_answer(struct workload *workload, struct workload_query *query,
                         struct completion *out, struct error *why)
{
    const struct workload_driver *driver = workload->driver;
    char owner[64];
    chars_format(owner, "workload %s", driver->name);
    workload_query_begin(query);
    enum err err = params_check(query->params, driver->query_params, owner, why);
    if (!err)
        err = driver->prepare(workload, query, why);
    if (!err)
        err = driver->run(workload, query, why);
    if (!err)
        err = workload_query_end(workload, query, out, why);
    driver->discard(workload, query);
    return err;
}
