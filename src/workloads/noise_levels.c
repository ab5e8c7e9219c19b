/* Sources: Ho et al. (2020) for the process and its linear schedule, Nichol and Dhariwal (2021) for the cosine one, Lin et
 * al. (2023), table 2, for the spacings of timesteps, Karras et al. (2022) for their sigmas. */
#include "workloads/noise_levels.h"

#include <math.h>

struct noise_level noise_level_of(double sigma)
{
    double alpha = 1 / sqrt(sigma * sigma + 1);
    return (struct noise_level){alpha, sigma * alpha, -log(sigma)};
}

double noise_level_image(struct noise_level level, enum prediction_type prediction, double sample,
                         double output)
{
    switch (prediction) {
    case PREDICT_EPSILON:
        return (sample - level.sigma * output) / level.alpha;
    case PREDICT_VELOCITY:
        return level.alpha * sample - level.sigma * output;
    case PREDICT_SAMPLE:
        break;
    }
    return output;
}

/* ---- the schedule of training ---- */

static float linear(double from, double to, size_t i, size_t count)
{
    float step = ((float)to - (float)from) / (float)(count - 1);
    /* From the nearer end, so that both are exact. */
    if (i < count / 2)
        return (float)from + step * (float)i;
    return (float)to - step * (float)(count - 1 - i);
}

static double squared_cosine(double t)
{
    double cosine = cos((t + 0.008) / 1.008 * 1.5707963267948966);
    return cosine * cosine;
}

static float beta_at(const struct scheduler_config *config, size_t i)
{
    size_t count = config->train_steps;
    if (config->beta_schedule == BETA_LINEAR)
        return linear(config->beta_start, config->beta_end, i, count);
    if (config->beta_schedule == BETA_SCALED_LINEAR) {
        float root = linear(sqrt(config->beta_start), sqrt(config->beta_end), i, count);
        return root * root;
    }
    double kept =
        squared_cosine((double)(i + 1) / (double)count) / squared_cosine((double)i / (double)count);
    return (float)fmin(1 - kept, 0.999);
}

void noise_alphas(const struct scheduler_config *config, float *alphas)
{
    double product = 1;
    for (size_t i = 0; i < config->train_steps; i++) {
        product *= 1 - beta_at(config, i);
        alphas[i] = (float)product;
    }
}

/* ---- timesteps ---- */

/* i of `count` points from 0 to `last`. */
static double linspace(double last, size_t i, size_t count)
{
    if (count > 1 && i == count - 1)
        return last;
    return count > 1 ? (double)i * (last / (double)(count - 1)) : 0;
}

/* Backwards from the end in steps of a fraction; computed with the difference of the first two, as NumPy's arange
 * does, which decides how halves are rounded. */
static double trailing(size_t usable, size_t train_steps, size_t i, size_t steps)
{
    double start = (double)usable;
    double difference = (start - (double)train_steps / (double)steps) - start;
    return nearbyint(start + (double)i * difference) - 1;
}

void noise_timesteps(const struct scheduler_config *config, size_t usable, size_t steps,
                     bool leaves_end, double *timesteps)
{
    size_t points = leaves_end ? steps + 1 : steps;
    for (size_t i = 0; i < steps; i++) {
        size_t from_end = points - 1 - i;
        switch (config->spacing) {
        case SPACING_LEADING:
            timesteps[i] = (double)(from_end * (usable / points) + config->steps_offset);
            break;
        case SPACING_LINSPACE:
            timesteps[i] = linspace((double)usable - 1, from_end, points);
            break;
        case SPACING_TRAILING:
            timesteps[i] = trailing(usable, config->train_steps, i, steps);
            break;
        }
    }
}

/* ---- sigmas ---- */

static float train_sigma(const struct scheduler *scheduler, size_t timestep)
{
    float alpha = scheduler->alphas[timestep];
    return sqrtf((1 - alpha) / alpha);
}

double noise_sigma_at(const struct scheduler *scheduler, double timestep)
{
    size_t last = scheduler->config.train_steps - 1;
    size_t below = timestep > 0 ? (size_t)timestep : 0;
    if (below >= last)
        return train_sigma(scheduler, last);
    double low = train_sigma(scheduler, below);
    double high = train_sigma(scheduler, below + 1);
    return low + (high - low) * (timestep - (double)below);
}

double noise_timestep_of(const struct scheduler *scheduler, double sigma)
{
    size_t below = 0;
    size_t above = scheduler->config.train_steps - 1;
    double wanted = log(fmax(sigma, 1e-10));
    while (above - below > 1) {
        size_t middle = below + (above - below) / 2;
        if (logf(train_sigma(scheduler, middle)) <= wanted)
            below = middle;
        else
            above = middle;
    }
    double low = logf(train_sigma(scheduler, below));
    double high = logf(train_sigma(scheduler, above));
    double share = fmin(fmax((wanted - low) / (high - low), 0), 1);
    return (double)below + share;
}

void noise_karras(double max, double min, size_t steps, double *sigmas)
{
    const double rho = 7;
    double high = pow(max, 1 / rho);
    double low = pow(min, 1 / rho);
    for (size_t i = 0; i < steps; i++)
        sigmas[i] = pow(high + linspace(1, i, steps) * (low - high), rho);
}

void noise_finish_sigmas(struct scheduler *scheduler, double smallest)
{
    for (size_t i = 0; i < scheduler->steps; i++)
        scheduler->sigmas[i] = (float)scheduler->sigmas[i];
    scheduler->sigmas[scheduler->steps] = scheduler->config.ends_at_zero ? 0 : (float)smallest;
    scheduler->init_sigma = 1;
}

/* ---- what the multistep solvers share ---- */

static void set_karras(struct scheduler *scheduler)
{
    const struct scheduler_config *config = &scheduler->config;
    noise_karras(train_sigma(scheduler, config->train_steps - 1), train_sigma(scheduler, 0),
                 scheduler->steps, scheduler->sigmas);
    for (size_t i = 0; i < scheduler->steps; i++)
        scheduler->timesteps[i] = noise_timestep_of(scheduler, scheduler->sigmas[i]);
}

void noise_set_multistep(struct scheduler *scheduler, size_t usable)
{
    const struct scheduler_config *config = &scheduler->config;
    if (config->uses_karras_sigmas) {
        set_karras(scheduler);
    } else {
        noise_timesteps(config, usable, scheduler->steps, true, scheduler->timesteps);
        for (size_t i = 0; i < scheduler->steps; i++) {
            scheduler->timesteps[i] = nearbyint(scheduler->timesteps[i]);
            scheduler->sigmas[i] = noise_sigma_at(scheduler, scheduler->timesteps[i]);
        }
    }
    noise_finish_sigmas(scheduler, train_sigma(scheduler, 0));
}

void noise_keep_image(struct scheduler *scheduler, const float *output, const float *sample)
{
    struct noise_level level = noise_level_of(scheduler->sigmas[scheduler->index]);
    float *oldest = scheduler->predicted[SCHEDULER_HISTORY - 1];
    for (size_t i = SCHEDULER_HISTORY - 1; i > 0; i--)
        scheduler->predicted[i] = scheduler->predicted[i - 1];
    scheduler->predicted[0] = oldest;
    for (size_t i = 0; i < scheduler->count; i++)
        oldest[i] =
            (float)noise_level_image(level, scheduler->config.prediction, sample[i], output[i]);
}
