/* Estimates by the names of the catalogs alone, and the lists of these names: for callers that must not read files. */
#include <string.h>

#include "core/result.h"
#include "core/units.h"
#include "estimate/estimate_grid.h"
#include "estimate/estimate_result.h"
#include "graph/zoo/zoo.h"

/* ---- the catalogs ---- */

void catalog_models_to_result(struct result *result)
{
    result_list(result, "models");
    for (size_t i = 0; i < zoo_count(); i++) {
        const struct zoo_entry *entry = zoo_at(i);
        result_group(result, NULL);
        result_text(result, "id", entry->name);
        result_text(result, "name", entry->name);
        result_text(result, "summary", entry->summary);
        result_text(result, "family", entry->family);
        result_text(result, "kind", zoo_has_phases(entry) ? "decoder" : "model");
        result_end(result);
    }
    result_end(result);
}

void catalog_hardware_to_result(struct result *result)
{
    result_list(result, "hardware");
    for (size_t i = 0; i < hardware_count(); i++) {
        const struct hardware *device = hardware_at(i);
        result_group(result, NULL);
        result_text(result, "id", device->id);
        result_text(result, "name", device->name);
        result_text(result, "vendor", device->vendor);
        result_text(result, "kind", hardware_class_name(device->class));
        result_number(result, "year", device->year ? (double)device->year : UNKNOWN, "");
        result_number(result, "memory_bytes", hardware_main_memory(device)->capacity_bytes.value,
                      "B");
        result_number(result, "limit_w", device->limit_w.value, "W");
        result_end(result);
    }
    result_end(result);
}

/* ---- an estimate ---- */

/* A path would read a file of this machine. */
static enum err open_model(const struct catalog_question *question, struct model *out,
                           struct error *why)
{
    const struct zoo_entry *entry = zoo_find(question->model);
    if (!entry)
        return err_set(why, ERR_NOT_FOUND, "model: unknown name '%.80s'; see %s", question->model,
                       question->names);
    for (size_t i = 0; i < graph_reader_count(); i++)
        if (str_equal(graph_reader_at(i)->name, "zoo"))
            return model_open_with(graph_reader_at(i), entry->name, out, why);
    return err_set(why, ERR_UNSUPPORTED, "this build has no models");
}

static enum err estimate_candidate(const struct estimate_workload *work,
                                   const struct candidates *candidates, const struct tariff *tariff,
                                   struct result *out, struct error *why)
{
    struct workload_estimate estimate;
    const struct grid_candidate *first = &candidates->items[0];
    const struct budget budget = budget_none();
    const struct recommend_question question = {&estimate, &budget, true};
    const struct estimate_shown shown = {.tariff = tariff};
    enum err err = workload_estimate_make(work, &candidates->hardware[first->device],
                                          &first->config, true, &estimate, why);
    if (err)
        return err;
    estimate_result_make(&question, &shown, out);
    workload_estimate_release(&estimate);
    return ERR_OK;
}

static enum err estimate_model(const struct model *model, const struct catalog_question *question,
                               struct result *out, struct error *why)
{
    const struct workload_options workload = {.batch = question->batch,
                                              .prompt_tokens = question->prompt_tokens,
                                              .output_tokens = question->output_tokens};
    const struct candidate_options wanted = {
        .hardware = &question->hardware, .hardware_count = 1, .precision = question->precision};
    struct candidates candidates = {0};
    struct workload_list list = {0};
    struct estimate_workload work;
    enum err err = candidates_find(&wanted, &candidates, why);
    if (!err)
        err = workload_list_make(&workload, model, &list, why);
    if (!err)
        workload_spec_run_on(&list.items[0], &candidates.hardware[0]);
    if (!err && !(err = workload_make(&list.items[0], &work, why))) {
        err = workload_list_check(&list, &work, why);
        if (!err)
            err = candidates_make(&wanted, &work, &candidates, why);
        if (!err)
            err = estimate_candidate(&work, &candidates, question->tariff, out, why);
        workload_release(&work);
    }
    if (list.items)
        workload_list_release(&list);
    candidates_release(&candidates);
    return err;
}

enum err catalog_estimate(const struct catalog_question *question, struct result *out,
                          struct error *why)
{
    struct model model;
    enum err err = open_model(question, &model, why);
    if (err)
        return err;
    err = estimate_model(&model, question, out, why);
    model_close(&model);
    return err;
}
