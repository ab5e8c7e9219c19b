/* Denoising diffusion implicit models: Song et al. (2021), equations 12 and 16. */
#include <math.h>

#include "workloads/noise_levels.h"
#include "workloads/scheduler.h"

static void set_timesteps(struct scheduler *scheduler)
{
    const struct scheduler_config *config = &scheduler->config;
    noise_timesteps(config, config->train_steps, scheduler->steps, false, scheduler->timesteps);
    for (size_t i = 0; i < scheduler->steps; i++)
        scheduler->timesteps[i] = nearbyint(scheduler->timesteps[i]);
    scheduler->init_sigma = 1;
}

/* The cumulative product after the step: that of the timestep one step of "leading" below, whatever the spacing. */
static double alpha_after(const struct scheduler *scheduler, size_t timestep)
{
    size_t stride = scheduler->config.train_steps / scheduler->steps;
    if (timestep >= stride)
        return scheduler->alphas[timestep - stride];
    return scheduler->config.set_alpha_to_one ? 1 : scheduler->alphas[0];
}

static double predicted_noise(struct noise_level level, enum prediction_type prediction,
                              double sample, double output)
{
    switch (prediction) {
    case PREDICT_EPSILON:
        break;
    case PREDICT_VELOCITY:
        return level.alpha * output + level.sigma * sample;
    case PREDICT_SAMPLE:
        return (sample - level.alpha * output) / level.sigma;
    }
    return output;
}

static void step(struct scheduler *scheduler, const float *output, const float *noise,
                 float *sample)
{
    const struct scheduler_config *config = &scheduler->config;
    size_t timestep = (size_t)scheduler->timesteps[scheduler->index];
    double before = scheduler->alphas[timestep];
    double after = alpha_after(scheduler, timestep);
    struct noise_level level = {.alpha = sqrt(before), .sigma = sqrt(1 - before)};
    double variance = (1 - after) / (1 - before) * (1 - before / after);
    double added = scheduler->eta * sqrt(fmax(variance, 0));
    double direction = sqrt(fmax(1 - after - added * added, 0));
    for (size_t i = 0; i < scheduler->count; i++) {
        double image = noise_level_image(level, config->prediction, sample[i], output[i]);
        double epsilon = predicted_noise(level, config->prediction, sample[i], output[i]);
        if (config->clip_range > 0)
            image = fmin(fmax(image, -config->clip_range), config->clip_range);
        double next = sqrt(after) * image + direction * epsilon;
        sample[i] = (float)(noise ? next + added * noise[i] : next);
    }
}

const struct scheduler_driver scheduler_ddim = {
    .name = "ddim",
    .class_name = "DDIMScheduler",
    .default_spacing = SPACING_LEADING,
    .has_eta = true,
    .set_timesteps = set_timesteps,
    .step = step,
};
