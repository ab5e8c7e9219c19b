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

static bool has_param(const struct param_spec *specs, const char *name)
{
    for (; specs && specs->name; specs++)
        if (str_equal(specs->name, name))
            return true;
    return false;
}

/* A parameter given with the option of the others is not merely unknown: it is listed. */
static enum err check_params(const struct workload_driver *driver, const struct params *params,
                             bool is_of_query, struct error *why)
{
    const struct param_spec *own = is_of_query ? driver->query_params : driver->params;
    const struct param_spec *others = is_of_query ? driver->params : driver->query_params;
    char owner[64];
    for (size_t i = 0; params && i < params->count; i++) {
        const struct param *param = &params->items[i];
        bool is_batch =
            is_of_query && driver->run_batch && has_param(WORKLOAD_BATCH_PARAMS, param->key);
        if (!has_param(own, param->key) && (has_param(others, param->key) || is_batch))
            return err_set(why, ERR_USAGE, "%s is a parameter of %s: give --%sparam %s=%s",
                           param->key, is_of_query ? "the model" : "each query",
                           is_of_query ? "client-" : "", param->key, param->value);
    }
    chars_format(owner, "workload %s", driver->name);
    return params_check(params, own, owner, why);
}

enum err workload_check_query(const struct workload_driver *driver, const struct params *params,
                              struct error *why)
{
    return check_params(driver, params, true, why);
}

enum err workload_open(const struct workload_driver *driver, const struct workload_config *config,
                       struct workload *out, struct error *why)
{
    *out = (struct workload){0};
    enum err err = check_params(driver, config->params, false, why);
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
    workload_query_begin(query);
    enum err err = workload_check_query(driver, query->params, why);
    if (!err)
        err = driver->prepare(workload, query, why);
    if (!err)
        err = driver->run(workload, query, why);
    if (!err)
        err = workload_query_end(workload, query, out, why);
    driver->discard(workload, query);
    return err;
}
