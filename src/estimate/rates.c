#include "estimate/rates.h"

/* How far off a figure is when it does not say so itself: by its evidence. */
static const double BY_EVIDENCE[EVIDENCE_COUNT] = {
    [EVIDENCE_MEASURED] = 0.05, [EVIDENCE_FITTED] = 0.10,  [EVIDENCE_PUBLISHED] = 0.10,
    [EVIDENCE_DERIVED] = 0.25,  [EVIDENCE_ASSUMED] = 0.50,
};

/* For a device that does not state them: what good code reaches, and what a start costs, by class. */
static const struct {
    double compute_share, memory_share, launch_s;
    const char *source;
} OF_CLASS[HARDWARE_CLASS_COUNT] = {
    [HARDWARE_GPU] = {0.70, 0.80, 4e-6, "not stated: assumed of GPUs"},
    [HARDWARE_CPU] = {0.70, 0.75, 2e-6, "not stated: assumed of processors"},
    [HARDWARE_TPU] = {0.60, 0.80, 2e-6, "not stated: assumed of TPUs"},
    [HARDWARE_NPU] = {0.50, 0.70, 5e-6, "not stated: assumed of NPUs"},
};

static struct rate rate_of(const struct hardware_figure *figure)
{
    bool is_told = is_known(figure->plus_minus) && figure->value > 0;
    return (struct rate){figure->value, is_told ? figure->plus_minus / figure->value
                                                : BY_EVIDENCE[figure->evidence]};
}

static struct hardware_figure figure_or(const struct hardware_figure *figure, double assumed,
                                        const char *source)
{
    if (is_known(figure->value))
        return *figure;
    return (struct hardware_figure){.value = assumed,
                                    .evidence = EVIDENCE_ASSUMED,
                                    .plus_minus = BY_EVIDENCE[EVIDENCE_ASSUMED] * assumed,
                                    .source = source};
}

struct rates_stated rates_stated_or_assumed(const struct hardware *hardware)
{
    enum hardware_class class = hardware->class;
    const char *source = OF_CLASS[class].source;
    return (struct rates_stated){
        .compute_share = figure_or(&hardware->compute_share, OF_CLASS[class].compute_share, source),
        .memory_share = figure_or(&hardware->memory_share, OF_CLASS[class].memory_share, source),
        .launch_s = figure_or(&hardware->launch_s, OF_CLASS[class].launch_s, source),
    };
}

static struct rate rate_at(const struct hardware_figure *figure)
{
    return figure ? rate_of(figure) : (struct rate){UNKNOWN, BY_EVIDENCE[EVIDENCE_ASSUMED]};
}

static void look_up_units(const struct hardware *hardware, enum precision precision,
                          struct rates *out)
{
    struct hardware_way products = hardware_product_way(hardware, precision);
    struct hardware_way others = hardware_other_way(hardware, precision);
    out->used = products.flops ? products.used : precision;
    out->product_flops = rate_at(products.flops);
    out->product_joules = rate_at(products.joules);
    out->other_flops = rate_at(others.flops);
    out->other_joules = rate_at(others.joules);
}

static bool is_positive(double value)
{
    return is_known(value) && value > 0;
}

enum err rates_of(const struct hardware *hardware, enum precision precision, struct rates *out,
                  struct error *why)
{
    *out = (struct rates){.widths = precision_widths(precision)};
    if (hardware->memory_count == 0)
        return err_set(why, ERR_BAD_VALUE, "%s states no memory: add one to its file",
                       hardware->id);
    const struct hardware_memory *memory = hardware_main_memory(hardware);
    struct rates_stated stated = rates_stated_or_assumed(hardware);
    look_up_units(hardware, precision, out);
    out->bytes_per_s = rate_of(&memory->bytes_per_s);
    out->joules_per_byte = rate_of(&memory->joules_per_byte);
    out->capacity = memory->capacity_bytes.value;
    out->compute_share = rate_of(&stated.compute_share);
    out->memory_share = rate_of(&stated.memory_share);
    out->launch_s = rate_of(&stated.launch_s);
    out->limit_w = rate_of(&hardware->limit_w);
    out->idle_w = rate_of(&hardware->idle_w);
    out->link_bytes_per_s = rate_of(&hardware->link_bytes_per_s);
    out->link_latency_s = rate_of(&hardware->link_latency_s);
    out->units = hardware->units.value;
    if (!is_positive(out->product_flops.value))
        return err_set(why, ERR_BAD_VALUE, "%s states no operations a second in %s or wider",
                       hardware->id, precision_name(precision));
    if (!is_positive(out->bytes_per_s.value))
        return err_set(why, ERR_BAD_VALUE, "%s states no bandwidth of its memory %s", hardware->id,
                       memory->name);
    if (out->limit_w.value <= out->idle_w.value)
        return err_set(why, ERR_BAD_VALUE, "%s idles at %g W, which is not below its limit of %g W",
                       hardware->id, out->idle_w.value, out->limit_w.value);
    return ERR_OK;
}
