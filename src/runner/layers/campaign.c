/* What the measurement of every kind of model says and keeps. */
#include "runner/layers/campaign.h"

#include <stdlib.h>

#include "core/clock.h"

void campaign_report(const struct campaign *c, const char *activity,
                     const struct layers_setting *setting)
{
    struct layers_progress state = {
        .model = c->model->path,
        .activity = activity,
        .phase = setting ? setting->phase : LAYERS_PREFILL,
        .prompt = setting ? setting->prompt : 0,
        .round = c->model->rounds + 1,
        .rounds = c->options->repeats,
        .elapsed_s = seconds(clock_now() - c->began),
    };
    if (c->options->progress)
        c->options->progress(&state);
}

struct layers_setting *campaign_add_setting(struct layers_model *model, enum layers_phase phase,
                                            unsigned prompt, unsigned tokens)
{
    struct layers_setting *setting = &model->settings[model->setting_count++];
    *setting = (struct layers_setting){.phase = phase,
                                       .prompt = prompt,
                                       .tokens = tokens,
                                       .stride = 1,
                                       .pass_s = UNKNOWN,
                                       .joules = UNKNOWN,
                                       .joules_sigma = UNKNOWN,
                                       .overhead = UNKNOWN,
                                       .overhead_sigma = UNKNOWN};
    return setting;
}
