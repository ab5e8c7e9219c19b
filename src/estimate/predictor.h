/* One prediction for one measured row: of a model's pass or request, or of a single load of known operations
 * and bytes.  predictor_init borrows the hardware; predictor_release gives back the model that it keeps open,
 * because rows of one model usually stand together. */
#ifndef IPW_ESTIMATE_PREDICTOR_H
#define IPW_ESTIMATE_PREDICTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "estimate/calibrate_rows.h"
#include "estimate/pass_estimate.h"
#include "estimate/partition.h"
#include "graph/reader.h"

struct predictor {
    const struct hardware *hardware; /* NULL: for predictor_count alone */
    const char *model_word;          /* stands for every model that rows name; NULL: theirs */
    enum partition_fusion fusion;
    bool has_precision; /* else: that of the row, of the file, or what suits the device */
    enum precision precision;
    struct model model; /* the last one, where is_open */
    bool is_open;
};

struct prediction {
    double latency_s, joules;
    enum estimate_bound regime;
};

/* What a row says of its pass; 0 where it does not. */
struct measured_pass {
    const char *model; /* a file or a name */
    bool has_precision;
    enum precision precision;
    struct graph_options setting;
    int64_t output_tokens; /* above 0: a whole request, prompt and answer */
};

void predictor_init(struct predictor *predictor, const struct hardware *hardware);
void predictor_release(struct predictor *predictor);

enum err predictor_predict(struct predictor *predictor, const struct measured_pass *question,
                           struct prediction *out, struct error *why) MUST_USE;

/* Operations and bytes of it, whatever the device. */
enum err predictor_count(struct predictor *predictor, const struct measured_pass *question,
                         double *flops, double *bytes, struct error *why) MUST_USE;

/* `is_product` where the operations are multiplications of matrices. */
enum err predictor_predict_load(const struct predictor *predictor, const struct calibrate_row *row,
                                bool is_product, struct prediction *out, struct error *why)
    MUST_USE;

#endif
