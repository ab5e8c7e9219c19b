/* Models of power, time and energy against the GPU's clock: fitting, predicting with 90 % intervals, saving as JSON.
 *
 * A model is fitted to curves (power/freq_points.h) that data checks (power/data_checks.h) have passed.  It predicts
 * for a target: an application by name that it was fitted to, or a new one by probes (a few measured clocks of it, the
 * highest first) or by its activities at fmax.  Which of these a kind of model needs is in its summary.
 *
 *     struct freq_model model;
 *     freq_model_fit(&model, "roofline", &curves, &(struct freq_model_options){0}, &why);
 *     freq_model_predict(&model, &(struct freq_target){.gpu = "A100", .application = "llama"}, mhz, n, out, &why);
 *     freq_model_release(&model);
 *
 * Ownership: freq_model_fit and freq_model_load fill a struct freq_model, which freq_model_release frees. */
#ifndef IPW_POWER_FREQ_MODEL_H
#define IPW_POWER_FREQ_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/units.h"
#include "power/freq_points.h"

struct json_custom;
struct json_field;
struct json_place;
struct text;

/* Level of every interval. */
#define FREQ_LEVEL 0.9

enum freq_figure { FREQ_POWER_W, FREQ_TIME_S, FREQ_ENERGY_J, FREQ_FIGURES };
static inline const char *freq_figure_name(enum freq_figure figure)
{
    return figure == FREQ_POWER_W ? "power_w" : figure == FREQ_TIME_S ? "time_s" : "energy_j";
}

struct freq_value {
    double value, low, high; /* low, high: UNKNOWN where no interval could be calibrated */
};

struct freq_prediction {
    double freq_mhz;
    struct freq_value figures[FREQ_FIGURES]; /* UNKNOWN: the model has no such figure */
    bool is_extrapolated;                    /* outside the clocks that were measured */
    /* Of a sweep: half-widths of ln(figure / figure at fmax) as measurements at both clocks show it: errors that both
     * ends of one fit share cancel. */
    bool has_change;
    double change[FREQ_FIGURES];
};

/* The target of a prediction.  Unknown figures are UNKNOWN or 0. */
struct freq_target {
    const char *gpu, *application; /* NULL: not an application that the model was fitted to */
    double fmax_mhz;
    double idle_w;
    double activity[FREQ_ACTIVITIES]; /* at fmax */
    double fmax_time_s,
        fmax_window_s; /* measured at fmax, for activity models; else of the first probe */
    const struct freq_sample *probes; /* the highest clock first */
    size_t probe_count;
};

struct freq_model_options {
    uint64_t seed;
    double ridge;          /* penalty of ridge; 0: 1.0 */
    unsigned trees;        /* of rf and gbt; 0: their defaults */
    bool is_published;     /* fgcs with its published coefficients */
    bool without_interval; /* skips the calibration, which takes several fits */
};

/* Where a model comes from. */
struct freq_provenance {
    char program[64];
    char data[256];     /* the files, as the user named them */
    uint64_t data_hash; /* 0: unknown */
    nanos created;      /* wall clock; 0: unknown */
    size_t rows, rows_used;
    size_t curves;
    uint64_t seed;
    char findings[256]; /* comma-separated names of the data checks with findings */
    char invalid[512];  /* comma-separated "GPU application" whose optimum is meaningless */
};

struct freq_model {
    const struct freq_model_kind *kind;
    void *state;
    double error[FREQ_FIGURES]; /* relative half-width of the interval for new applications */
    struct freq_provenance provenance;
};

/* One kind of model; each is a module. */
struct freq_model_kind {
    const char *name, *summary;
    bool has_probes; /* predicts a new application from probes, else from its activities */
    bool is_slow;    /* to fit: fewer folds in a validation */
    enum err (*fit)(const struct freq_curves *curves, const struct freq_model_options *options,
                    void **state, struct error *why);
    /* Values, and intervals where the model has its own: else UNKNOWN, and freq_model_predict adds them. */
    enum err (*predict)(const void *state, const struct freq_target *target, const double *mhz,
                        size_t count, struct freq_prediction *out, struct error *why);
    /* Half-widths of its intervals; NULL: freq_calibrate is used. */
    void (*errors)(const void *state, double *error);
    /* Names, fmax and idle power of an application that it was fitted to, without samples, and its lowest clock;
     * false past the last.  NULL: none are kept. */
    bool (*application)(const void *state, size_t index, struct freq_curve *out,
                        double *lowest_mhz);
    /* The state as JSON, in files; it is a struct of this size. */
    const struct json_field *fields;
    size_t size;
    /* Checks and completes a state that was read: json_refuse.  NULL: nothing to do. */
    enum err (*check)(const struct json_place *at, void *state);
};

extern const struct freq_model_kind *const FREQ_MODELS[]; /* ends in NULL */
const struct freq_model_kind *freq_model_find(const char *name, struct error *why);

/* ERR_NO_DATA without enough curves or samples; ERR_ABSENT where a library is missing. */
enum err freq_model_fit(struct freq_model *model, const char *name,
                        const struct freq_curves *curves, const struct freq_model_options *options,
                        struct error *why) MUST_USE;
void freq_model_release(struct freq_model *model);

/* out[count]; mhz in any order. */
enum err freq_model_predict(const struct freq_model *model, const struct freq_target *target,
                            const double *mhz, size_t count, struct freq_prediction *out,
                            struct error *why) MUST_USE;

/* One JSON object; docs/power-models.md has its format. */
void freq_model_save(const struct freq_model *model, struct text *out);
enum err freq_model_load(struct freq_model *model, const char *path, struct error *why) MUST_USE;

/* ---- for kinds of models ---- */

/* freq_state.c: the member "state" of a file, of the struct freq_model at the offset of its row, whose kind is read before it. */
extern const struct json_custom FREQ_STATE;
void freq_state_free(const struct json_field *fields, void *state); /* NULL is allowed */

/* The value with a relative half-width around it. */
static inline struct freq_value freq_value_within(double value, double error)
{
    return (struct freq_value){value, is_known(error) ? value * fmax(0, 1 - error) : UNKNOWN,
                               is_known(error) ? value * (1 + error) : UNKNOWN};
}

/* ---- intervals: freq_calibrate.c ---- */

/* Interval widths of a model, for applications that it was not fitted to.
 *
 * Conformal prediction: the model is refitted without each application, and the interval is the FREQ_LEVEL quantile
 * of the relative errors on the one left out.  This assumes nothing about the model, and `ipw power validate`
 * reports the actual coverage. */

/* error[FREQ_FIGURES]: relative half-widths; UNKNOWN for fewer than two curves.  Uses the kind's own method if it
 * has one. */
enum err freq_calibrate(const struct freq_model_kind *kind, const void *state,
                        const struct freq_curves *curves, const struct freq_model_options *options,
                        double *error, struct error *why) MUST_USE;

/* Collected relative errors of predictions, by figure. */
struct freq_errors {
    double *items[FREQ_FIGURES];
    size_t count[FREQ_FIGURES];
    size_t curves; /* that they are from */
};
/* With capacity for every sample of the curves. */
void freq_errors_init(struct freq_errors *errors, const struct freq_curves *curves);
/* predicted: one per sample of the curve. */
void freq_errors_add(struct freq_errors *errors, const struct freq_curve *curve,
                     const struct freq_prediction *predicted);
/* The half-widths; releases the errors. */
void freq_errors_finish(struct freq_errors *errors, double *error);

/* How much wider than the quantile of errors from that many curves the interval for another curve must be.  The samples
 * of a curve err alike, so that it is the number of curves that counts: as Student's t for so many degrees of freedom. */
double freq_curves_factor(size_t curves);

/* The number of probes assumed by a calibration for a new application. */
enum { FREQ_PROBES = 3, FREQ_PROBE_NEAR = 5 };

/* The target of a curve that the model was not fitted to: its probes, and its activities and times at fmax. */
struct freq_target freq_target_of(const struct freq_curve *curve, const struct freq_sample *probes,
                                  size_t probe_count);

#endif
