#include "cli/estimate_legacy.h"

#include "cli/estimate_ask.h"
#include "cli/estimate_work.h"
#include "core/text.h"
#include "estimate/legacy.h"
#include "port/file.h"
#include "report/text/estimate_compat.h"

/* An option that changes nothing would be read as one that did. */
static enum err check_options(const struct estimate_options *o, struct error *why)
{
    const struct {
        bool is_given;
        const char *name;
    } OTHERS[] = {
        {o->batch != NULL, "batch"},
        {o->devices != 0, "devices"},
        {o->compare, "compare"},
        {o->sweep, "sweep"},
        {o->no_fusion, "no-fusion"},
        {o->max_latency_ms > 0, "max-latency-ms"},
        {o->max_energy_mj > 0, "max-energy-mj"},
        {o->max_memory_gb > 0, "max-memory-gb"},
        {o->max_power_w > 0, "max-power-w"},
        {o->plot != NULL, "plot"},
        {o->graph != NULL, "graph"},
        {o->top != ESTIMATE_TOP_USUAL, "top"},
        {o->verbose, "verbose"},
    };
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        if (OTHERS[i].is_given)
            return err_set(why, ERR_USAGE,
                           "--model-compat takes no --%s: it is of one sample on one device, "
                           "nothing fused, all of it shown, to compare with reports",
                           OTHERS[i].name);
    return ERR_OK;
}

static enum err read_device(const struct estimate_options *options, struct legacy_hardware *out,
                            struct error *why)
{
    struct text bytes = {0};
    if (options->hardware_files.count != 1 || options->hardware.count)
        return err_set(why, ERR_USAGE,
                       "--model-compat wants one --hardware-file that describes a device as the "
                       "legacy model has it, under \"legacy\"");
    const char *path = options->hardware_files.items[0];
    enum err err = check_options(options, why);
    if (!err)
        err = file_read(path, FILE_SMALL, &bytes, why);
    if (!err)
        err = legacy_hardware_parse(path, text_get(&bytes), bytes.length, out, why);
    text_release(&bytes);
    return err;
}

static enum err ask_setting(const struct estimate_options *options, const struct model *model,
                            struct graph_options *out, struct error *why)
{
    struct estimate_sizes sizes;
    struct estimate_works works;
    enum err err = estimate_sizes_ask(options, &sizes, why);
    if (err)
        return err;
    err = estimate_works_make(options, &sizes, model, &works, why);
    if (!err && works.count > 1)
        err = err_set(why, ERR_USAGE,
                      "--model-compat is of one setting: give one --prompt-tokens and --context");
    if (!err)
        *out = works.items[0].setting;
    estimate_works_release(&works);
    estimate_sizes_release(&sizes);
    return err;
}

static enum err estimate_graph(const struct estimate_options *options, const struct model *model,
                               const struct legacy_hardware *device, bool json, struct text *out,
                               struct error *why)
{
    struct graph_options setting;
    struct graph graph;
    struct legacy_estimate compat;
    struct error unknown = {0};
    enum precision precision = PRECISION_FP32;
    if (options->precision && precision_find(options->precision, &precision, &unknown))
        return err_set(why, ERR_USAGE, "--precision: %s", unknown.text);
    enum err err = ask_setting(options, model, &setting, why);
    if (!err)
        err = model_graph(model, &setting, &graph, why);
    if (err)
        return err;
    err = legacy_estimate_make(&graph, device, precision, &compat, why);
    if (!err) {
        if (json)
            compat_json(&compat, out);
        else
            compat_text(&compat, out);
        legacy_estimate_release(&compat);
    }
    graph_release(&graph);
    return err;
}

enum err estimate_legacy(const struct estimate_options *options, bool json, struct text *out,
                         struct error *why)
{
    struct legacy_hardware device;
    struct model model;
    enum err err = read_device(options, &device, why);
    if (!err)
        err = model_open(options->model, &model, why);
    if (err)
        return err;
    err = estimate_graph(options, &model, &device, json, out, why);
    model_close(&model);
    return err;
}
