/* Euler's method on the probability flow equation dx/dsigma = (x - image) / sigma: Karras et al. (2022), algorithm 1
 * without its correction of the second order. */
#include <math.h>

#include "workloads/noise_levels.h"
#include "workloads/scheduler.h"

static void set_timesteps(struct scheduler *scheduler)
{
    const struct scheduler_config *config = &scheduler->config;
    size_t steps = scheduler->steps;
    double *sigmas = scheduler->sigmas;
    noise_timesteps(config, config->train_steps, steps, false, scheduler->timesteps);
    for (size_t i = 0; i < steps; i++) {
        scheduler->timesteps[i] = (float)scheduler->timesteps[i];
        sigmas[i] = noise_sigma_at(scheduler, scheduler->timesteps[i]);
    }
    if (config->uses_karras_sigmas) {
        noise_karras(sigmas[0], sigmas[steps - 1], steps, sigmas);
        for (size_t i = 0; i < steps; i++)
            scheduler->timesteps[i] = (float)noise_timestep_of(scheduler, sigmas[i]);
    }
    noise_finish_sigmas(scheduler, noise_sigma_at(scheduler, 0));
    /* "leading" does not start at the noisiest timestep: the sample has an image's share, too. */
    scheduler->init_sigma = sigmas[0];
    if (config->spacing == SPACING_LEADING)
        scheduler->init_sigma = sqrt(sigmas[0] * sigmas[0] + 1);
}

static double input_scale(const struct scheduler *scheduler)
{
    return noise_level_of(scheduler->sigmas[scheduler->index]).alpha;
}

/* The image, given the sample of this method, which is that of the process divided by alpha. */
static float predicted_image(const struct scheduler *scheduler, float sigma, float sample,
                             float output)
{
    float square = sigma * sigma + 1;
    switch (scheduler->config.prediction) {
    case PREDICT_EPSILON:
        return sample - sigma * output;
    case PREDICT_VELOCITY:
        return output * (-sigma / sqrtf(square)) + sample / square;
    case PREDICT_SAMPLE:
        break;
    }
    return output;
}

/* In single precision, as it is defined by what diffusers computes: the first sigma of a cosine schedule is 20,000, and
 * the sample after that step a difference of numbers of this size. */
static void step(struct scheduler *scheduler, const float *output, const float *noise,
                 float *sample)
{
    (void)noise;
    float sigma = (float)scheduler->sigmas[scheduler->index];
    float change = (float)scheduler->sigmas[scheduler->index + 1] - sigma;
    for (size_t i = 0; i < scheduler->count; i++) {
        float image = predicted_image(scheduler, sigma, sample[i], output[i]);
        sample[i] += (sample[i] - image) / sigma * change;
    }
}

const struct scheduler_driver scheduler_euler = {
    .name = "euler",
    .class_name = "EulerDiscreteScheduler",
    .default_spacing = SPACING_LINSPACE,
    .set_timesteps = set_timesteps,
    .step = step,
    .input_scale = input_scale,
};
