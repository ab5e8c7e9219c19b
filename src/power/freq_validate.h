/* Cross-validation of a kind of model.
 *
 *   random       rows in k folds.  Leaks: neighboring clocks of the same application stay in the fit.
 *   frequency    every clock left out in turn (in groups for models that are slow to fit).  Leaks in the same way.
 *   application  every application left out, and predicted from probes or activities: error for a new application.
 *   gpu          every GPU left out, its applications predicted from probes: error for a new GPU.
 *
 * Ownership: freq_validation_release frees a validation. */
#ifndef IPW_POWER_FREQ_VALIDATE_H
#define IPW_POWER_FREQ_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>

#include "power/data_checks.h"
#include "power/freq_model.h"

enum freq_protocol { FREQ_RANDOM, FREQ_FREQUENCY, FREQ_APPLICATION, FREQ_GPU, FREQ_PROTOCOLS };
const char *freq_protocol_name(enum freq_protocol protocol);
bool freq_protocol_leaks(enum freq_protocol protocol);
enum err freq_protocol_find(const char *name, enum freq_protocol *out, struct error *why) MUST_USE;

struct freq_validate_options {
    enum freq_protocol protocol;
    unsigned folds; /* of random; 0: 5 */
    int probes; /* of a left-out application; -1: 3 for probe models and across GPUs, else none */
    unsigned probe_near; /* clocks per probe, which is their median; 0: 5 */
    struct freq_model_options model;
};

/* Scores of one figure over the predictions.  UNKNOWN without any. */
struct freq_score {
    size_t rows;
    double mae, rmse; /* in its unit */
    double r2;
    double mape;      /* a share, like the following: the mean over applications of their means */
    double within[3]; /* 5, 10, 15 % */
    double total;     /* sum predicted / sum measured - 1 */
    double coverage;  /* of the FREQ_LEVEL intervals */
};

/* Scores of one predicted curve. */
struct freq_curve_score {
    const struct freq_curve *curve;
    double mape[FREQ_FIGURES];
    double picked_mhz; /* with the lowest predicted EDP */
    double
        regret; /* EDP there, by the curve's own fit, over its minimum, - 1; UNKNOWN: no time, or meaningless */
};

struct freq_validation {
    const struct freq_model_kind *kind;
    enum freq_protocol protocol;
    size_t folds, probes;
    struct freq_score figures[FREQ_FIGURES];
    struct freq_curve_score *curves;
    size_t curve_count;
    double regret_mean, regret_max; /* over curves that have one */
};

/* `findings` (NULL: none) name curves whose optimum is meaningless: these have no regret.  ERR_NO_DATA if the
 * protocol is not applicable: one application, one GPU, too few rows. */
enum err freq_validate(const struct freq_model_kind *kind, const struct freq_curves *curves,
                       const struct findings *findings, const struct freq_validate_options *options,
                       struct freq_validation *out, struct error *why) MUST_USE;
void freq_validation_release(struct freq_validation *validation);

#endif
