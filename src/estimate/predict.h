/* One prediction for one measured row: of a model's pass or request, or of a single load of known operations
 * and bytes.  predictor_begin borrows the hardware; predictor_end gives back the model that it keeps open,
 * because rows of one model usually stand together. */
#ifndef IPW_ESTIMATE_PREDICT_H
#define IPW_ESTIMATE_PREDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "estimate/calibrate_rows.h"
#include "estimate/estimate.h"
#include "estimate/partition.h"
#include "graph/reader.h"

struct predictor {
    const struct hardware *hardware; /* NULL: for predict_count alone */
    const char *model_word;          /* stands for every model that rows name; NULL: theirs */
    enum partition_fusion fusion;
    bool has_precision; /* else: that of the row, of the file, or what suits the device */
    enum precision precision;
    struct model model; /* the last one, where is_open */
    bool is_open;
};

struct predicted {
    double latency_s, joules;
    enum estimate_bound regime;
};

/* What a row says of its pass; 0 where it does not. */
struct predict_question {
    const char *model; /* a file or a name */
    bool has_precision;
    enum precision precision;
    struct graph_setting setting;
    int64_t output_tokens; /* above 0: a whole request, prompt and answer */
};

void predictor_begin(struct predictor *predictor, const struct hardware *hardware);
void predictor_end(struct predictor *predictor);

enum err predict_model(struct predictor *predictor, const struct predict_question *question,
                       struct predicted *out, struct error *why) MUST_USE;

/* Operations and bytes of it, whatever the device. */
enum err predict_count(struct predictor *predictor, const struct predict_question *question,
                       double *flops, double *bytes, struct error *why) MUST_USE;

/* `is_product` where the operations are multiplications of matrices. */
enum err predict_load(const struct predictor *predictor, const struct calibrate_row *row,
                      bool is_product, struct predicted *out, struct error *why) MUST_USE;

#endif
