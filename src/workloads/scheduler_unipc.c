/* UniPC with B(h) = e^h - 1 on predicted images: Zhao et al. (2023), algorithms 5 to 8.  Each new prediction of the model
 * first corrects the sample that the last step predicted, then predicts the next. */
#include <math.h>

#include "workloads/noise_levels.h"
#include "workloads/scheduler.h"

static void set_timesteps(struct scheduler *scheduler)
{
    noise_set_multistep(scheduler, scheduler->config.train_steps);
    for (size_t i = 0; i < scheduler->steps; i++)
        scheduler->timesteps[i] = nearbyint(scheduler->timesteps[i]);
    if (scheduler->config.uses_karras_sigmas && !scheduler->config.ends_at_zero)
        scheduler->sigmas[scheduler->steps] = scheduler->sigmas[scheduler->steps - 1];
}

/* What the predictor and the corrector have in common: a step from one level to another, sigma[0] to sigma[1], after
 * sigma[-1] if the order is 2. */
struct unipc_step {
    struct noise_level from, to;
    double h;
    double growth; /* alpha (1 - e^-h) */
    double ratio;  /* of the last step to this one: negative; 0 for the first order */
};

static struct unipc_step unipc_step(const double *sigma, unsigned order)
{
    struct unipc_step step = {.from = noise_level_of(sigma[0]), .to = noise_level_of(sigma[1])};
    step.h = step.to.lambda - step.from.lambda;
    step.growth = -step.to.alpha * expm1(-step.h);
    if (order == 2)
        step.ratio = (noise_level_of(sigma[-1]).lambda - step.from.lambda) / step.h;
    return step;
}

/* Weights of the difference to the earlier image and of that to the new one: for the second order those that make
 * the polynomial through all three exact. */
static void corrector_weights(const struct unipc_step *step, double *earlier, double *latest)
{
    *earlier = 0;
    *latest = 0.5;
    if (step->ratio == 0)
        return;
    double b = expm1(-step->h);
    double first = -b / step->h - 1;
    double second = -first / step->h - 0.5;
    *earlier = (first / b - 2 * second / b) / (1 - step->ratio);
    *latest = first / b - *earlier;
}

/* The sample with the image that the model predicts from it: predicted[0] is that of step `index`. */
static void correct(struct scheduler *scheduler, float *sample)
{
    struct unipc_step step =
        unipc_step(scheduler->sigmas + scheduler->index - 1, scheduler->last_order);
    double earlier_weight = 0;
    double latest_weight = 0;
    corrector_weights(&step, &earlier_weight, &latest_weight);
    const float *latest = scheduler->predicted[0];
    const float *image = scheduler->predicted[1];
    const float *earlier = step.ratio != 0 ? scheduler->predicted[2] : image;
    double divisor = step.ratio != 0 ? step.ratio : 1;
    for (size_t i = 0; i < scheduler->count; i++) {
        double difference = ((double)earlier[i] - image[i]) / divisor * earlier_weight +
                            ((double)latest[i] - image[i]) * latest_weight;
        sample[i] = (float)(step.to.sigma / step.from.sigma * scheduler->last_sample[i] +
                            step.growth * (image[i] + difference));
    }
}

static void predict(struct scheduler *scheduler, float *sample)
{
    struct unipc_step step =
        unipc_step(scheduler->sigmas + scheduler->index, scheduler->last_order);
    double weight = step.ratio != 0 ? 0.5 / step.ratio : 0;
    const float *image = scheduler->predicted[0];
    const float *earlier = step.ratio != 0 ? scheduler->predicted[1] : image;
    for (size_t i = 0; i < scheduler->count; i++) {
        double middle = image[i] + weight * ((double)earlier[i] - image[i]);
        scheduler->last_sample[i] = sample[i];
        sample[i] = (float)(step.to.sigma / step.from.sigma * sample[i] + step.growth * middle);
    }
}

static unsigned step_order(const struct scheduler *scheduler)
{
    const struct scheduler_config *config = &scheduler->config;
    bool is_last = scheduler->index + 1 == scheduler->steps;
    if (scheduler->index == 0 || (is_last && (config->lower_order_final || config->ends_at_zero)))
        return 1;
    return config->order;
}

static void step(struct scheduler *scheduler, const float *output, const float *noise,
                 float *sample)
{
    (void)noise;
    noise_keep_image(scheduler, output, sample);
    if (scheduler->index > 0)
        correct(scheduler, sample);
    scheduler->last_order = step_order(scheduler);
    predict(scheduler, sample);
}

const struct scheduler_driver scheduler_unipc = {
    .name = "unipc",
    .class_name = "UniPCMultistepScheduler",
    .default_spacing = SPACING_LINSPACE,
    .set_timesteps = set_timesteps,
    .step = step,
};
