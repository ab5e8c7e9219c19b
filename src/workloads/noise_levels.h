/* Noise levels of a diffusion process, and how the schedulers choose some of them.  Nothing here owns memory. */
#ifndef IPW_WORKLOADS_NOISE_LEVELS_H
#define IPW_WORKLOADS_NOISE_LEVELS_H

#include <stddef.h>

#include "workloads/scheduler.h"

/* A noisy sample is alpha * image + sigma * noise, with alpha^2 + sigma^2 = 1; lambda = ln(alpha / sigma).  In the form
 * of Euler's method it is divided by alpha: image + (sigma / alpha) * noise, and that ratio is what `sigmas` are. */
struct noise_level {
    double alpha, sigma, lambda;
};
struct noise_level noise_level_of(double sigma);

/* The image of which `sample` is the noisy version, given the model's output. */
double noise_level_image(struct noise_level level, enum prediction_type prediction, double sample,
                         double output);

/* Cumulative products of 1 - beta, rounded to float as they are in diffusers: near the image 1 - product is only
 * that exact. */
void noise_alphas(const struct scheduler_config *config, float *alphas);

/* Timesteps from the most to the least noisy one.  `usable` of training are used.  DDIM and Euler's method divide them
 * into steps (`leaves_end` false), while the multistep solvers divide them into one more and leave out the last. */
void noise_timesteps(const struct scheduler_config *config, size_t usable, size_t steps,
                     bool leaves_end, double *timesteps);

/* sigma / alpha at a timestep, interpolated between those of training. */
double noise_sigma_at(const struct scheduler *scheduler, double timestep);
/* The inverse, interpolated between the logarithms. */
double noise_timestep_of(const struct scheduler *scheduler, double sigma);

/* Karras et al. (2022), equation 5, with rho = 7: `steps` sigmas from max to min. */
void noise_karras(double max, double min, size_t steps, double *sigmas);

/* Rounds the sigmas to float and sets the last one, and init_sigma to 1. */
void noise_finish_sigmas(struct scheduler *scheduler, double smallest);

/* Timesteps and sigmas of the multistep solvers.  `usable`: as for noise_timesteps.  Timesteps of Karras' sigmas are not
 * whole numbers yet. */
void noise_set_multistep(struct scheduler *scheduler, size_t usable);

/* Keeps the image that the model predicts at step `index` as predicted[0], and the one before as predicted[1]. */
void noise_keep_image(struct scheduler *scheduler, const float *output, const float *sample);

#endif
