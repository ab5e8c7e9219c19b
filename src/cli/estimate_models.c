/* Models on one device: energy, latency and published accuracies. */
#include "cli/estimate_views.h"

#include <stdlib.h>

#include "cli/common.h"
#include "core/result.h"
#include "core/text.h"
#include "estimate/estimate_grid.h"
#include "estimate/model_compare.h"
#include "report/text/estimate_report.h"

static enum err add_estimate(const struct models_command *command,
                             const struct estimate_workload *work,
                             struct model_comparison *comparison, struct error *why)
{
    struct candidates *candidates = command->candidates;
    struct workload_estimate estimate;
    free(candidates->items);
    candidates->count = 0;
    enum err err = candidates_make(command->wanted, work, candidates, why);
    if (err)
        return err;
    if (candidates->count != 1)
        return err_set(why, ERR_USAGE, "--compare-models takes one precision");
    err = workload_estimate_make(work, &candidates->hardware[0], &candidates->items[0].config,
                                 false, &estimate, why);
    if (err)
        return err;
    model_comparison_add(comparison, &estimate);
    workload_estimate_release(&estimate);
    return ERR_OK;
}

static enum err add_model(const struct models_command *command, const struct model *model,
                          struct model_comparison *comparison, struct error *why)
{
    struct workload_list list;
    struct estimate_workload work;
    enum err err = workload_list_make(command->workload, model, &list, why);
    if (err)
        return err;
    if (list.count != 1)
        err = err_set(why, ERR_USAGE,
                      "--compare-models takes one --batch, --prompt-tokens and --context");
    workload_spec_run_on(&list.items[0], &command->candidates->hardware[0]);
    if (!err)
        err = workload_make(&list.items[0], &work, why);
    if (!err) {
        err = add_estimate(command, &work, comparison, why);
        workload_release(&work);
    }
    workload_list_release(&list);
    return err;
}

static enum err add_named(const struct models_command *command, const char *name,
                          struct model_comparison *comparison, struct error *why)
{
    struct model model;
    enum err err = model_open(name, &model, why);
    if (err)
        return err;
    if (model.has_phases != command->model->has_phases)
        err =
            err_set(why, ERR_USAGE, "--compare-models: %.80s and %.80s process different workloads",
                    model.name, command->model->name);
    if (!err)
        err = add_model(command, &model, comparison, why);
    model_close(&model);
    return err;
}

static enum err add_list(const struct models_command *command, const char *names,
                         struct model_comparison *comparison, struct error *why)
{
    enum err err = ERR_OK;
    for (const char *rest = names; !err && rest;) {
        char name[256];
        if (!str_next_item(&rest, name, sizeof name))
            return err_set(why, ERR_USAGE,
                           "--compare-models takes names separated by commas, not '%.80s'", names);
        err = add_named(command, name, comparison, why);
    }
    return err;
}

static enum err find_axis(const char *name, const struct benchmark **out, struct error *why)
{
    struct text names = {0};
    *out = name ? benchmark_find(name) : NULL;
    if (!name || *out)
        return ERR_OK;
    for (size_t i = 0; i < BENCHMARK_COUNT; i++)
        text_addf(&names, "%s%s", i ? ", " : "", BENCHMARKS[i].name);
    enum err err = err_set(why, ERR_USAGE, "--benchmark %.40s is unknown; there are %s", name,
                           text_get(&names));
    text_release(&names);
    return err;
}

/* Rejects options without effect. */
static enum err check_options(struct error *why)
{
    static const char *const OTHERS[] = {"serve",
                                         "sweep",
                                         "graph",
                                         "plot",
                                         "top",
                                         "max-latency-ms",
                                         "max-energy-j",
                                         "max-memory-gb",
                                         "max-power-w",
                                         "price-per-kwh",
                                         "device-price-per-hour",
                                         "gco2-per-kwh",
                                         NULL};
    const char *other = option_given(OTHERS);
    return other ? err_set(why, ERR_USAGE, "--compare-models takes no --%s", other) : ERR_OK;
}

int estimate_models(const struct models_command *command)
{
    struct model_comparison comparison = {0};
    struct result result = {0};
    struct error why = {0};
    const struct benchmark *axis;
    int code;
    enum err err = check_options(&why);
    if (!err)
        err = find_axis(command->benchmark, &axis, &why);
    if (!err && command->candidates->hardware_count != 1)
        err = err_set(&why, ERR_USAGE, "--compare-models takes one --hardware");
    if (!err)
        err = add_model(command, command->model, &comparison, &why);
    for (size_t i = 0; !err && i < command->names->count; i++)
        err = add_list(command, command->names->items[i], &comparison, &why);
    if (err) {
        code = print_name_err(err, &why);
    } else {
        model_comparison_finish(&comparison, axis);
        model_comparison_result(&comparison, &result);
        code = deliver_printed(command->output, &result, command->format, &MODELS_VIEWS);
    }
    model_comparison_release(&comparison);
    result_release(&result);
    return code;
}
