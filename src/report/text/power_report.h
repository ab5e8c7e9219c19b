/* Reports of `ipw power`: a fitted model, predictions, a validation, and the findings of the data checks.  The caller
 * owns the arguments and the output. */
#ifndef IPW_REPORT_POWER_REPORT_H
#define IPW_REPORT_POWER_REPORT_H

#include <stdbool.h>
#include <stddef.h>

struct data_findings;
struct freq_data;
struct freq_model;
struct freq_prediction;
struct freq_target;
struct freq_validation;
struct freq_value;
struct json;
struct text;

/* A line for each finding, most severe first. */
void power_findings_text(const struct data_findings *findings, bool color, struct text *out);
/* An array of objects. */
void power_findings_json(const struct data_findings *findings, const char *key, struct json *json);
void power_value_json(const struct freq_value *value, const char *key, struct json *json);

/* A model's predictions at fmax for one of the applications that it was fitted to. */
struct power_fit_row {
    const char *gpu, *application;
    size_t clocks;
    const struct freq_prediction *at_fmax;
    const char *no_optimum_reason; /* why an optimum is not meaningful; NULL: it is */
};

struct power_fit_report {
    const struct freq_model *model;
    const struct freq_data *data;
    const struct power_fit_row *rows;
    size_t count;
    const char *file; /* output file; NULL: none */
};
void power_fit_text(const struct power_fit_report *report, bool color, struct text *out);
void power_fit_json(const struct power_fit_report *report, struct text *out);

struct power_predict_report {
    const struct freq_model *model;
    const struct freq_target *target;
    const struct freq_prediction *rows;
    size_t count;
};
void power_predict_text(const struct power_predict_report *report, bool color, struct text *out);
void power_predict_json(const struct power_predict_report *report, struct text *out);
void power_predict_csv(const struct power_predict_report *report, struct text *out);

struct power_validate_report {
    const struct freq_validation *validations;
    size_t count;
    const struct freq_data *data;
    double max; /* --max-mape, as a share; or UNKNOWN */
    bool pass;  /* within --max-mape */
};
void power_validate_text(const struct power_validate_report *report, bool color, struct text *out);
void power_validate_json(const struct power_validate_report *report, struct text *out);
void power_validate_csv(const struct power_validate_report *report, struct text *out);

#endif
