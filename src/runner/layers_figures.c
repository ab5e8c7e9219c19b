/* Names and figures of what `ipw layers` measured: looked up, not measured. */
#include <math.h>

#include "runner/layers.h"
#include "runner/layers/plan.h"

/* ---- names ---- */

const char *layers_phase_name(enum layers_phase phase)
{
    return phase == LAYERS_PREFILL ? "prefill" : "decode";
}

const char *layers_granularity_name(enum layers_granularity granularity)
{
    static const char *const NAMES[] = {"component", "layer", "phase"};
    return NAMES[granularity];
}

const char *layers_component_name(unsigned component)
{
    return component == LAYERS_WHOLE ? "all"
                                     : decoder_component_name((enum decoder_component)component);
}

const char *layers_component_words(unsigned component)
{
    return component == LAYERS_WHOLE ? "all together"
                                     : decoder_component_label((enum decoder_component)component);
}

double layers_plus_minus(const struct layers_model *model, double joules, double sigma)
{
    return hypot(sigma, model->systematic * joules);
}

const char *layers_method(const struct layers_model *model, enum layers_phase phase,
                          unsigned component)
{
    const struct fit_power *power = &model->fit.columns[phase * LAYERS_PHASE_COLUMNS + component];
    if (!model->gave_energy || !is_known(power->watts))
        return NULL;
    if (model->total.method == METHOD_ESTIMATED)
        return "estimated";
    return power->is_alone ? "nnls" : "time-share";
}

const struct layers_share *layers_share_of(const struct layers_model *model,
                                           enum layers_phase phase, int layer, unsigned component)
{
    return &model->shares[phase][plan_slot(layer, component)];
}

struct layers_share layers_component_sum(const struct layers_model *model, enum layers_phase phase,
                                         unsigned component)
{
    struct layers_share sum = {0};
    for (int layer = -1; layer < model->facts.layers; layer++) {
        const struct layers_share *share = layers_share_of(model, phase, layer, component);
        if (share->time_s <= 0)
            continue;
        sum.time_s += share->time_s;
        sum.time_sigma += share->time_sigma;
        sum.joules += share->joules;
        sum.sigma += share->sigma; /* one power: they err together */
    }
    return sum;
}

double layers_work_share(const struct layers_model *model, unsigned phase, unsigned component,
                         unsigned kind)
{
    double sum = 0;
    for (unsigned c = 0; c < DECODER_COMPONENT_COUNT; c++)
        sum += model->work[phase][c][kind];
    return model->work[phase][component][kind] / sum;
}
