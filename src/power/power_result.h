/* The results of `ipw power` (core/result.h): a fitted model, predictions, a validation, and the findings of the data
 * checks.  The caller owns the arguments and releases the result. */
#ifndef IPW_POWER_POWER_RESULT_H
#define IPW_POWER_POWER_RESULT_H

#include <stdbool.h>
#include <stddef.h>

struct freq_data;
struct freq_model;
struct freq_prediction;
struct freq_target;
struct freq_validation;
struct freq_value;
struct result;

/* A list, also for commands other than `ipw power`. */
/* A group of the value and the ends of its interval. */
void power_result_value(struct result *result, const char *key, const struct freq_value *value,
                        const char *unit);
/* Three of these: power, time and energy. */
void power_result_figures(struct result *result, const struct freq_value *figures);

/* A model's predictions at fmax for one of the applications that it was fitted to. */
struct power_fit_row {
    const char *gpu, *application;
    size_t clocks;
    const struct freq_prediction *at_fmax;
    const char *no_optimum_reason; /* why an optimum is not meaningful; NULL: it is */
};

struct power_fitted {
    const struct freq_model *model;
    const struct freq_data *data;
    const struct power_fit_row *rows;
    size_t count;
    const char *file; /* output file; NULL: none */
};
void power_result_fit(struct result *result, const struct power_fitted *fit);

struct power_predictions {
    const struct freq_model *model;
    const struct freq_target *target;
    const struct freq_prediction *rows;
    size_t count;
};
void power_result_predict(struct result *result, const struct power_predictions *predictions);

struct power_validations {
    const struct freq_validation *items;
    size_t count;
    const struct freq_data *data;
    double max; /* --max-mape, as a share; or UNKNOWN */
    bool pass;  /* within --max-mape */
};
void power_result_validate(struct result *result, const struct power_validations *validations);

#endif
