/* A report of `ipw layers --json`, read: its models, and what each of their settings ran.  A struct
 * layers_file owns its tree; layers_file_close takes it back, and everything else points into it. */
#ifndef IPW_ESTIMATE_LAYERS_REPORT_H
#define IPW_ESTIMATE_LAYERS_REPORT_H

#include <stdbool.h>

#include "core/err.h"
#include "estimate/predictor.h"

struct jv;

struct layers_file {
    const char *path;
    struct jv *report;
};

enum err layers_file_open(const char *path, struct layers_file *out, struct error *why) MUST_USE;
void layers_file_close(struct layers_file *file);

/* The models of a report, one after the other: NULL first, NULL behind the last. */
const struct jv *layers_file_model(const struct layers_file *file, const struct jv *before);
bool layers_model_is_estimated(const struct jv *model);

/* What one pass of a setting is, as a question: tokens that were decoded one after another cost a straight
 * line in the length of the cache, so theirs is the step in their middle, `times` that. */
struct layers_pass {
    struct measured_pass question;
    double times;
    char label[112];
};
enum err layers_pass_of(const struct layers_file *file, const struct jv *model,
                        const struct jv *setting, struct layers_pass *out, struct error *why)
    MUST_USE;

#endif
