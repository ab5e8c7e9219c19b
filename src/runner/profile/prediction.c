/* What the estimator says of a model that was measured, on this machine where the catalog has it, else on a device that it
 * has. */

#include <math.h>

#include "catalog/hardware.h"
#include "core/text.h"
#include "core/units.h"
#include "estimate/estimate_grid.h"
#include "estimate/workload.h"
#include "estimate/workload_estimate.h"
#include "graph/reader.h"
#include "runner/host_report.h"
#include "runner/profile/phases.h"
#include "runner/profile/profile.h"

/* Where this machine is not in the catalog. */
static const char COMMON_DEVICE[] = "h100-sxm";

enum err prediction_device(struct hardware *out, struct error *why)
{
    struct error unknown = {0};
    if (host_find_hardware(out, &unknown) == ERR_OK)
        return ERR_OK;
    return hardware_find(COMMON_DEVICE, out, why);
}

/* ---- one estimate ---- */

static void take(const struct workload_estimate *estimate, double passes, struct predicted *out)
{
    const struct estimate_totals *total = &estimate->total;
    struct estimate_interval energy =
        workload_estimate_interval(estimate, total->joules.total, total->joules_plus_minus);
    out->joules = passes * total->joules.total;
    out->plus_minus = passes * energy.plus_minus;
    out->seconds = passes * total->latency_s;
}

static enum err estimate_on(const struct workload_spec *spec, const struct hardware *device,
                            double passes, struct predicted *out, struct error *why)
{
    struct estimate_workload work;
    struct workload_estimate estimate;
    struct candidates candidates = {0};
    const char *id = device->id;
    const struct candidate_options options = {.hardware = &id, .hardware_count = 1};
    enum err err = candidates_find(&options, &candidates, why);
    if (err)
        return err;
    err = workload_make(spec, &work, why);
    if (!err) {
        err = candidates_make(&options, &work, &candidates, why);
        if (!err)
            err = workload_estimate_make(&work, &candidates.hardware[0],
                                         &candidates.items[0].config, false, &estimate, why);
        if (!err) {
            take(&estimate, passes, out);
            workload_estimate_release(&estimate);
        }
        workload_release(&work);
    }
    candidates_release(&candidates);
    return err;
}

static enum err estimate_model(const struct predicted_work *work, const struct model *model,
                               const struct hardware *device, struct predicted *out,
                               struct error *why)
{
    char prompt[24];
    struct workload_list list;
    bool has_answer = is_known(work->output_tokens);
    chars_format(prompt, "%.0f", fmax(1, known_or(work->prompt_tokens, 1)));
    const struct workload_options options = {
        .batch = "1",
        .image = work->image,
        .prompt_tokens = is_known(work->prompt_tokens) ? prompt : NULL,
        .output_tokens = has_answer ? (unsigned)fmax(1, round(work->output_tokens)) : 0,
    };
    enum err err = workload_list_make(&options, model, &list, why);
    if (err)
        return err;
    workload_spec_run_on(&list.items[0], device);
    err = estimate_on(&list.items[0], device, known_or(work->passes, 1), out, why);
    workload_list_release(&list);
    return err;
}

enum err prediction_make(const struct predicted_work *work, const struct hardware *device,
                         struct predicted *out, struct error *why)
{
    struct model model;
    *out = (struct predicted){UNKNOWN, UNKNOWN, UNKNOWN};
    enum err err = model_open(work->model, &model, why);
    if (err)
        return err;
    err = estimate_model(work, &model, device, out, why);
    model_close(&model);
    return err;
}
