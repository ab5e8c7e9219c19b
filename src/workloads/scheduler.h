/* Schedulers of diffusion models: at which timesteps the model is run, and how its output takes the sample one step
 * further.  They compute what the classes of the same algorithms in diffusers compute, from the same
 * scheduler_config.json.
 *
 * A driver is one file scheduler_<name>.c and one line in schedulers.def.  The caller owns a struct scheduler:
 * scheduler_open, scheduler_release; samples are the caller's. */
#ifndef IPW_WORKLOADS_SCHEDULER_H
#define IPW_WORKLOADS_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct jv;

enum beta_schedule { BETA_LINEAR, BETA_SCALED_LINEAR, BETA_SQUARED_COSINE };

/* What the model predicts: the noise, the velocity sqrt(a) noise - sqrt(1-a) image, or the image. */
enum prediction_type { PREDICT_EPSILON, PREDICT_VELOCITY, PREDICT_SAMPLE };

enum timestep_spacing { SPACING_LEADING, SPACING_LINSPACE, SPACING_TRAILING };

/* scheduler_config.json; what it leaves out has the default of the driver's class. */
struct scheduler_config {
    size_t train_steps;
    double beta_start, beta_end;
    enum beta_schedule beta_schedule;
    enum prediction_type prediction;
    enum timestep_spacing spacing;
    size_t steps_offset; /* added to the timesteps of "leading" */
    /* DDIM: */
    bool set_alpha_to_one;
    double clip_range; /* of the predicted image; 0: not clipped */
    /* The others: */
    bool uses_karras_sigmas;
    bool ends_at_zero; /* the last sigma; else it is the smallest one of training */
    unsigned order;    /* 1 or 2 */
    bool lower_order_final, euler_at_final;
    double
        lambda_min; /* timesteps of a lower logarithm of the signal-to-noise ratio are not used */
};

enum { SCHEDULER_STEPS_MAX = 10000, SCHEDULER_HISTORY = 3 };

struct scheduler {
    const struct scheduler_driver *driver;
    struct scheduler_config config;
    double eta;    /* DDIM: share of the noise added at each step; 0 by default */
    float *alphas; /* cumulative products of 1 - beta, for every timestep of training */

    /* After scheduler_start: */
    size_t steps, index;                 /* `index` steps are done */
    size_t count;                        /* elements of a sample */
    double *timesteps;                   /* `steps`, for the model */
    double *sigmas;                      /* `steps` + 1: noise relative to the image; 0 for DDIM */
    double init_sigma;                   /* the initial noise is multiplied by it */
    float *predicted[SCHEDULER_HISTORY]; /* images of the last steps, the latest first */
    float *last_sample;                  /* before the last step */
    unsigned last_order;                 /* of the last step */
};

struct scheduler_driver {
    const char *name;       /* "ddim" */
    const char *class_name; /* of diffusers: "DDIMScheduler" */
    enum timestep_spacing default_spacing;
    bool has_eta; /* noise may be added at each step */
    /* Fills timesteps, sigmas and init_sigma. */
    void (*set_timesteps)(struct scheduler *scheduler);
    /* Step `index`: replaces the sample.  noise is NULL where scheduler_wants_noise is false. */
    void (*step)(struct scheduler *scheduler, const float *output, const float *noise,
                 float *sample);
    /* Factor of the sample as the model's input at step `index`; NULL: 1. */
    double (*input_scale)(const struct scheduler *scheduler);
};

/* NULL-terminated, in the order of schedulers.def. */
extern const struct scheduler_driver *const SCHEDULER_DRIVERS[];

/* By its name; NULL with similar names in *why. */
const struct scheduler_driver *scheduler_find(const char *name, struct error *why);
/* That of a configuration, by its "_class_name"; NULL, with the supported ones in *why, for another class. */
const struct scheduler_driver *scheduler_of_config(const struct jv *config, struct error *why);

/* Reads scheduler_config.json, to be freed with jv_free.  diffusers writes an infinite number as -Infinity, which is not
 * JSON: it is read as null. */
enum err scheduler_config_read(const char *path, struct jv **out, struct error *why) MUST_USE;

/* Interprets the configuration, an object, for a driver that may be of another class than the file's.  ERR_UNSUPPORTED names
 * an option that the driver lacks, ERR_BAD_VALUE a value that is wrong. */
enum err scheduler_open(const struct scheduler_driver *driver, const struct jv *config,
                        struct scheduler *out, struct error *why) MUST_USE;
void scheduler_release(struct scheduler *scheduler);

/* Prepares for `steps` steps of samples with `count` elements.  ERR_USAGE if the configuration has fewer timesteps. */
enum err scheduler_start(struct scheduler *scheduler, size_t steps, size_t count, struct error *why)
    MUST_USE;
/* Whether each step needs standard normal noise of the sample's size. */
bool scheduler_wants_noise(const struct scheduler *scheduler);
double scheduler_input_scale(const struct scheduler *scheduler);
/* Takes the sample one step further with the model's output. */
void scheduler_step(struct scheduler *scheduler, const float *output, const float *noise,
                    float *sample);

#endif
