/* DPM-Solver++ as a multistep method of the second order, 2M, with the midpoint rule: Lu et al. (2022), algorithm 2. */
#include <math.h>

#include "workloads/noise_levels.h"
#include "workloads/scheduler.h"

/* Timesteps below the least signal-to-noise ratio are not used. */
static size_t usable_timesteps(const struct scheduler *scheduler)
{
    size_t usable = scheduler->config.train_steps;
    while (usable > 1) {
        double alpha = scheduler->alphas[usable - 1];
        if (0.5 * log(alpha / (1 - alpha)) >= scheduler->config.lambda_min)
            break;
        usable--;
    }
    return usable;
}

static void set_timesteps(struct scheduler *scheduler)
{
    /* Else it truncates, except for what the rounding of logarithms took away. */
    bool rounds = scheduler->config.beta_schedule != BETA_SQUARED_COSINE;
    noise_set_multistep(scheduler, usable_timesteps(scheduler));
    for (size_t i = 0; i < scheduler->steps; i++) {
        double timestep = scheduler->timesteps[i];
        scheduler->timesteps[i] = rounds ? nearbyint(timestep) : floor(timestep + 1e-3);
    }
}

static unsigned step_order(const struct scheduler *scheduler)
{
    const struct scheduler_config *config = &scheduler->config;
    bool is_last = scheduler->index + 1 == scheduler->steps;
    /* Few steps are unstable with a high order at the end. */
    bool is_lower = config->euler_at_final || config->ends_at_zero ||
                    (config->lower_order_final && scheduler->steps < 15);
    if (scheduler->index == 0 || (is_last && is_lower))
        return 1;
    return config->order;
}

static void step(struct scheduler *scheduler, const float *output, const float *noise,
                 float *sample)
{
    (void)noise;
    noise_keep_image(scheduler, output, sample);
    const double *sigma = scheduler->sigmas + scheduler->index;
    struct noise_level from = noise_level_of(sigma[0]);
    struct noise_level to = noise_level_of(sigma[1]);
    double h = to.lambda - from.lambda;
    double growth = -to.alpha * expm1(-h);
    double slope = 0; /* of the image in half a step, relative to the last difference */
    if (step_order(scheduler) == 2)
        slope = 0.5 * h / (from.lambda - noise_level_of(sigma[-1]).lambda);
    const float *image = scheduler->predicted[0];
    const float *earlier = slope != 0 ? scheduler->predicted[1] : image;
    for (size_t i = 0; i < scheduler->count; i++) {
        double middle = image[i] + slope * ((double)image[i] - earlier[i]);
        sample[i] = (float)(to.sigma / from.sigma * sample[i] + growth * middle);
    }
}

const struct scheduler_driver scheduler_dpm = {
    .name = "dpm++2m",
    .class_name = "DPMSolverMultistepScheduler",
    .default_spacing = SPACING_LINSPACE,
    .set_timesteps = set_timesteps,
    .step = step,
};
