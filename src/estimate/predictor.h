/* Predicts one measured row at a time: a pass or a request of a model, or a single load of known operations and
 * bytes.
 *
 * Ownership: predictor_init borrows the hardware; predictor_release closes the model that is kept open, since
 * rows of one model usually follow each other. */
#ifndef IPW_ESTIMATE_PREDICTOR_H
#define IPW_ESTIMATE_PREDICTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "estimate/calibrate_rows.h"
#include "estimate/partition.h"
#include "estimate/workload_estimate.h"
#include "graph/reader.h"

struct predictor {
    const struct hardware *hardware; /* NULL: for predictor_count only */
    const char *model_word;          /* replaces the models that rows name; NULL: theirs */
    enum partition_fusion fusion;
    enum runtime_id runtime; /* with the fusion that it has */
    bool has_usual_runtime;  /* that of the row, or the default of the device */
    bool has_precision;      /* else that of the row, of the file, or the default of the device */
    enum precision precision;
    struct model model; /* the last one, if is_open */
    bool is_open;
};

struct prediction {
    double latency_s, joules;
    struct estimate_interval latency_range, joules_range; /* over those; UNKNOWN for single loads */
    enum estimate_bound regime;                           /* that most of the time is bound by */
};

/* What a measured row ran; 0 where it does not say. */
struct measured_pass {
    const char *model; /* a file or a name */
    bool has_precision;
    enum precision precision;
    const char *runtime; /* as a file says it: "pytorch-graph", "eager"; NULL and others: unknown */
    double host_launch_s; /* of the host that launched it; 0: not known */
    struct graph_options setting;
    int64_t output_tokens; /* above 0: a whole request, prefill and decode */
};

void predictor_init(struct predictor *predictor, const struct hardware *hardware);
void predictor_release(struct predictor *predictor);

enum err predictor_predict(struct predictor *predictor, const struct measured_pass *pass,
                           struct prediction *out, struct error *why) MUST_USE;

/* Its operations and bytes, which do not depend on the device. */
enum err predictor_count(struct predictor *predictor, const struct measured_pass *pass,
                         double *flops, double *bytes, struct error *why) MUST_USE;

/* is_product: the operations are matrix products. */
enum err predictor_predict_load(const struct predictor *predictor, const struct calibrate_row *row,
                                bool is_product, struct prediction *out, struct error *why)
    MUST_USE;

#endif
