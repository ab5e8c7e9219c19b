/* The list of schedulers, reading scheduler_config.json, and the state that they share. */
#include "workloads/scheduler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/jv.h"
#include "core/registry.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "workloads/noise_levels.h"

#define SCHEDULER(name) extern const struct scheduler_driver scheduler_##name;
#include "workloads/schedulers.def"
#undef SCHEDULER

const struct scheduler_driver *const SCHEDULER_DRIVERS[] = {
#define SCHEDULER(name) &scheduler_##name,
#include "workloads/schedulers.def"
#undef SCHEDULER
    NULL,
};

const struct scheduler_driver *scheduler_find(const char *name, struct error *why)
{
    return registry_find("scheduler", SCHEDULER_DRIVERS, name, ERR_USAGE, why);
}

const struct scheduler_driver *scheduler_of_config(const struct jv *config, struct error *why)
{
    const char *class_name = text_or_empty(jv_get_text(config, "_class_name"));
    for (const struct scheduler_driver *const *at = SCHEDULER_DRIVERS; *at; at++)
        if (str_equal((*at)->class_name, class_name))
            return *at;
    struct text names = {0};
    for (const struct scheduler_driver *const *at = SCHEDULER_DRIVERS; *at; at++)
        text_addf(&names, "%s%s", at == SCHEDULER_DRIVERS ? "" : ", ", (*at)->name);
    (void)err_set(why, ERR_UNSUPPORTED,
                  "scheduler_config.json: scheduler '%s' is not supported: choose another with "
                  "scheduler= (%s)",
                  plain_text(class_name).text, text_get(&names));
    text_release(&names);
    return NULL;
}

/* ---- reading the configuration ---- */

enum err scheduler_config_read(const char *path, struct jv **out, struct error *why)
{
    static const char INFINITE[] = "-Infinity";
    static const char UNSET[] = "null     ";
    struct text bytes = {0};
    struct error inner = {0};
    *out = NULL;
    enum err err = file_read(path, FILE_SMALL, &bytes, why);
    if (err)
        return err;
    for (char *at = bytes.bytes; at && (at = strstr(at, INFINITE));)
        memcpy(at, UNSET, sizeof UNSET - 1);
    err = jv_parse(text_get(&bytes), bytes.length, out, &inner);
    text_release(&bytes);
    if (err)
        return err_set(why, err, "%.200s: %s", path, inner.text);
    if (jv_is_object(*out))
        return ERR_OK;
    jv_free(*out);
    *out = NULL;
    return err_set(why, ERR_BAD_VALUE, "%.200s: expected a JSON object", path);
}

/* Options of diffusers with the values that are supported, as comma-separated words, besides null. */
static const struct {
    const char *key, *accepted;
    const char *drivers; /* that would use it; NULL: all */
} LIMITED_OPTIONS[] = {
    {"trained_betas", "", NULL},
    {"rescale_betas_zero_snr", "false", NULL},
    {"thresholding", "false", "ddim,dpm++2m,unipc"},
    {"use_exponential_sigmas", "false", "euler,dpm++2m,unipc"},
    {"use_beta_sigmas", "false", "euler,dpm++2m,unipc"},
    {"use_lu_lambdas", "false", "dpm++2m"},
    {"use_flow_sigmas", "false", "dpm++2m,unipc"},
    {"use_dynamic_shifting", "false", "dpm++2m,unipc"},
    {"interpolation_type", "linear", "euler"},
    {"timestep_type", "discrete", "euler"},
    {"sigma_min", "", "euler"},
    {"sigma_max", "", "euler"},
    {"solver_order", "1,2", "dpm++2m,unipc"},
    {"algorithm_type", "dpmsolver++,deis", "dpm++2m"},
    {"variance_type", "fixed_small,fixed_small_log,fixed_large,fixed_large_log", "dpm++2m"},
    {"solver_type", "midpoint,bh1,bh2,logrho", "dpm++2m"},
    {"solver_type", "bh2,midpoint,heun,logrho", "unipc"},
    {"predict_x0", "true", "unipc"},
    {"solver_p", "", "unipc"},
    {"disable_corrector", "[]", "unipc"},
};

static enum err check_limited(const struct scheduler_driver *driver, const struct jv *config,
                              struct error *why)
{
    enum err err = ERR_OK;
    for (size_t i = 0; i < COUNT_OF(LIMITED_OPTIONS) && !err; i++) {
        const char *key = LIMITED_OPTIONS[i].key;
        const char *drivers = LIMITED_OPTIONS[i].drivers;
        const struct jv *value = jv_get(config, key);
        if (jv_is_null(value) || (drivers && !str_list_has(drivers, driver->name)))
            continue;
        struct text printed = {0};
        const char *word = jv_text(value);
        if (!word) {
            (void)jv_print(value, &printed);
            word = text_get(&printed);
        }
        if (!str_list_has(LIMITED_OPTIONS[i].accepted, word))
            err = err_set(why, ERR_UNSUPPORTED,
                          "scheduler_config.json: %s: %.60s is not supported by scheduler %s", key,
                          plain_text(word).text, driver->name);
        text_release(&printed);
    }
    return err;
}

/* The first failure is kept, as in params_reader. */
struct config_reader {
    const struct jv *config;
    struct error *why;
    enum err err;
};

static double read_number(struct config_reader *reader, const char *key, double otherwise,
                          double min, double max)
{
    const struct jv *value = jv_get(reader->config, key);
    double number = jv_is_null(value) ? otherwise : jv_number(value);
    if (jv_is_null(value) || (number >= min && number <= max))
        return number;
    if (!reader->err)
        reader->err =
            err_set(reader->why, ERR_BAD_VALUE,
                    "scheduler_config.json: %s is not a number from %g to %g", key, min, max);
    return otherwise;
}

static int read_word(struct config_reader *reader, const char *key, const char *const *words,
                     int otherwise)
{
    const struct jv *value = jv_get(reader->config, key);
    const char *word = text_or_empty(jv_text(value));
    if (jv_is_null(value))
        return otherwise;
    struct text known = {0};
    for (int i = 0; words[i]; i++) {
        if (str_equal(words[i], word))
            return text_release(&known), i;
        text_addf(&known, "%s%s", i ? ", " : "", words[i]);
    }
    if (!reader->err)
        reader->err = err_set(reader->why, ERR_UNSUPPORTED,
                              "scheduler_config.json: %s '%s' is not supported (only %s)", key,
                              plain_text(word).text, text_get(&known));
    text_release(&known);
    return otherwise;
}

/* Numbers in the order of the enums. */
static const char *const BETA_SCHEDULES[] = {"linear", "scaled_linear", "squaredcos_cap_v2", NULL};
static const char *const PREDICTIONS[] = {"epsilon", "v_prediction", "sample", NULL};
static const char *const SPACINGS[] = {"leading", "linspace", "trailing", NULL};
static const char *const FINAL_SIGMAS[] = {"zero", "sigma_min", NULL};

static struct scheduler_config read_config(struct config_reader *reader,
                                           const struct scheduler_driver *driver)
{
    const struct jv *config = reader->config;
    bool clips = jv_bool(jv_get(config, "clip_sample"), true);
    struct scheduler_config out = {
        .train_steps =
            (size_t)read_number(reader, "num_train_timesteps", 1000, 2, SCHEDULER_STEPS_MAX),
        .beta_start = read_number(reader, "beta_start", 0.0001, 0, 0.999),
        .beta_end = read_number(reader, "beta_end", 0.02, 0, 0.999),
        .beta_schedule = read_word(reader, "beta_schedule", BETA_SCHEDULES, BETA_LINEAR),
        .prediction = read_word(reader, "prediction_type", PREDICTIONS, PREDICT_EPSILON),
        .spacing = read_word(reader, "timestep_spacing", SPACINGS, (int)driver->default_spacing),
        .steps_offset = (size_t)read_number(reader, "steps_offset", 0, 0, SCHEDULER_STEPS_MAX),
        .set_alpha_to_one = jv_bool(jv_get(config, "set_alpha_to_one"), true),
        .clip_range = clips ? read_number(reader, "clip_sample_range", 1, 1e-6, 1e6) : 0,
        .uses_karras_sigmas = jv_bool(jv_get(config, "use_karras_sigmas"), false),
        .ends_at_zero = read_word(reader, "final_sigmas_type", FINAL_SIGMAS, 0) == 0,
        .order = jv_get_number(config, "solver_order") == 1 ? 1 : 2,
        .lower_order_final = jv_bool(jv_get(config, "lower_order_final"), true),
        .euler_at_final = jv_bool(jv_get(config, "euler_at_final"), false),
        .lambda_min = read_number(reader, "lambda_min_clipped", -INFINITY, -1e6, 1e6),
    };
    return out;
}

enum err scheduler_open(const struct scheduler_driver *driver, const struct jv *config,
                        struct scheduler *out, struct error *why)
{
    *out = (struct scheduler){.driver = driver};
    struct config_reader reader = {.config = config, .why = why};
    enum err err = check_limited(driver, config, why);
    if (err)
        return err;
    out->config = read_config(&reader, driver);
    if (reader.err)
        return reader.err;
    out->alphas = xcalloc(out->config.train_steps, sizeof *out->alphas);
    noise_alphas(&out->config, out->alphas);
    if (out->alphas[0] < 1 && out->alphas[out->config.train_steps - 1] > 0)
        return ERR_OK;
    scheduler_release(out);
    return err_set(why, ERR_BAD_VALUE,
                   "scheduler_config.json: betas from %g to %g leave no noise or no image",
                   read_number(&reader, "beta_start", 0.0001, 0, 1),
                   read_number(&reader, "beta_end", 0.02, 0, 1));
}

/* ---- the state ---- */

static void release_state(struct scheduler *scheduler)
{
    free(scheduler->timesteps);
    free(scheduler->sigmas);
    free(scheduler->last_sample);
    scheduler->timesteps = scheduler->sigmas = NULL;
    scheduler->last_sample = NULL;
    for (size_t i = 0; i < SCHEDULER_HISTORY; i++) {
        free(scheduler->predicted[i]);
        scheduler->predicted[i] = NULL;
    }
}

void scheduler_release(struct scheduler *scheduler)
{
    release_state(scheduler);
    free(scheduler->alphas);
    *scheduler = (struct scheduler){0};
}

enum err scheduler_start(struct scheduler *scheduler, size_t steps, size_t count, struct error *why)
{
    size_t train_steps = scheduler->config.train_steps;
    if (steps < 1 || steps > train_steps)
        return err_set(why, ERR_USAGE, "%zu steps: must be 1 to %zu, the timesteps of training",
                       steps, train_steps);
    release_state(scheduler);
    scheduler->steps = steps;
    scheduler->index = 0;
    scheduler->count = count;
    scheduler->last_order = 0;
    scheduler->timesteps = xcalloc(steps, sizeof *scheduler->timesteps);
    scheduler->sigmas = xcalloc(steps + 1, sizeof *scheduler->sigmas);
    scheduler->last_sample = xcalloc(count, sizeof *scheduler->last_sample);
    for (size_t i = 0; i < SCHEDULER_HISTORY; i++)
        scheduler->predicted[i] = xcalloc(count, sizeof *scheduler->predicted[i]);
    scheduler->driver->set_timesteps(scheduler);
    for (size_t i = 0; i < steps; i++) {
        double timestep = scheduler->timesteps[i];
        if (timestep < 0 || timestep > (double)train_steps - 1)
            return err_set(why, ERR_USAGE,
                           "%zu steps: timestep %g of scheduler %s is not one of 0 to %zu; use "
                           "fewer steps",
                           steps, timestep, scheduler->driver->name, train_steps - 1);
    }
    return ERR_OK;
}

bool scheduler_wants_noise(const struct scheduler *scheduler)
{
    return scheduler->driver->has_eta && scheduler->eta > 0;
}

double scheduler_input_scale(const struct scheduler *scheduler)
{
    return scheduler->driver->input_scale ? scheduler->driver->input_scale(scheduler) : 1;
}

void scheduler_step(struct scheduler *scheduler, const float *output, const float *noise,
                    float *sample)
{
    scheduler->driver->step(scheduler, output, scheduler_wants_noise(scheduler) ? noise : NULL,
                            sample);
    scheduler->index++;
}
